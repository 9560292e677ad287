"""Recordings as a folder of CSV tables: one for each sensor, each link's truth, and the water's current.

    NAME/SENSOR.csv              time [s],stamp [ns],clock_error [s],arrival [s],valid,emitted,ARRAY.AXIS [unit],...
    NAME/truth.LINK.csv          time,x,y,z,qw,qx,qy,qz            a motion log, as `--motion` reads it
    NAME/truth.LINK.rates.csv    time,velocity.x,...,angular_velocity.x,...,acceleration.x,...
    NAME/current.csv             time,x,y,z                        a record of a current, as a world reads it
    NAME/navsense.json           what the recording says of itself: the text of `meta`

Columns are called as in a Parquet table, `::` in names is `.`. Numbers are the shortest decimals that give the same
bits. The folder appears under its name when it is whole, after an error elsewhere with the slabs before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from navsense import inputs
from navsense.errors import SinkError, Where
from navsense.motion._log import HEADER as POSES
from navsense.outputs import HiddenFolder, save_text
from navsense.recordings import metadata
from navsense.recordings.atomic import AtomicWriter
from navsense.recordings.base import RecordingHeader, closed_error, os_error
from navsense.recordings.dataset import Dataset
from navsense.recordings.parquet import ArrayComponent, select_component, sensor_components
from navsense.recordings.records import DamagedError
from navsense.series import ARRAY_GROUPS, TRUTH_ARRAYS, Current, Layers, Reading, TimeSlice, Truth
from navsense.typing import AnyArray, FloatArray

METADATA_FILE = "navsense.json"
"""The file with what the recording says of itself."""

FILES = "files"
"""Key in that file: the names of all files of a complete recording. A new recording replaces only these."""

CONTENT_FOLDER = "made"
"""The folder inside the hidden folder that becomes the recording."""

COMMON_COLUMNS = ("time [s]", "stamp [ns]", "clock_error [s]", "arrival [s]", "valid", "emitted")
"""The columns that every sensor's table has."""

RATE_COLUMNS = tuple(f"{name}.{axis}" for name in TRUTH_ARRAYS[2:] for axis in "xyz")
"""Columns of a link's rates, behind the time."""

CURRENT_COLUMNS = ("time", "x", "y", "z")

_FILE = inputs.FileKind("table", SinkError, "must be a CSV table in UTF-8")


def folder_path(path: Path) -> Path:
    """Return the folder that a recording `NAME.csv` or `NAME.euroc` is: NAME."""
    return path.with_suffix("")


def check_table_folder(path: Path) -> None:
    """Raise `SinkError` if the folder of `NAME.csv` or `NAME.euroc` exists and is no such recording, or holds more."""
    folder = folder_path(path)
    try:
        if not folder.exists() and not folder.is_symlink():
            return
        foreign = _foreign_file(folder) if folder.is_dir() else folder
    except OSError as error:
        raise os_error(path, error) from error
    if foreign is not None:
        raise SinkError(
            "the recording is the folder of this name, which holds something else",
            str(foreign),
            where=Where(str(path)),
            remedy="choose another name, or move away what is there",
        )


def _foreign_file(folder: Path) -> Path | None:
    """Return the first file in a folder that its recording did not write, or None."""
    written: set[str] = set()
    if (folder / METADATA_FILE).is_file():
        try:
            text = Context().run(
                inputs.read_bytes, str(folder / METADATA_FILE), _FILE
            )  # in this context it is no input
            written = {METADATA_FILE, *inputs.parse_json(text)[FILES]}
        except (SinkError, ValueError, KeyError, TypeError):
            return folder / METADATA_FILE
    inside = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return next((path for path in inside if path.relative_to(folder).as_posix() not in written), None)


def file_name(name: str) -> str:
    """Return the name of a file for a full name."""
    return name.replace("::", ".").replace("/", "_")


@dataclass(eq=False)
class TableFolder:
    """A hidden folder beside its place: files of lines, that are appended to."""

    path: Path
    row_counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the folder."""
        self._work = HiddenFolder(folder_path(self.path), is_recording=True)
        self.content = self._work.folder / CONTENT_FOLDER
        self.content.mkdir()
        self._metadata = "{}"

    def append(self, name: str, header: Sequence[str], columns: Sequence[AnyArray]) -> None:
        """Add rows to a table, whose first rows bring its header; floats are written as the shortest same decimals."""
        file = self.content / name
        if name not in self.row_counts:
            file.parent.mkdir(parents=True, exist_ok=True)
            self.row_counts[name] = 0
            file.write_text(",".join(header) + "\n", encoding="utf-8")
        lists = [
            column.astype(np.int64).tolist() if column.dtype.kind in "biu" else column.tolist() for column in columns
        ]
        with file.open("a", encoding="utf-8") as out:
            out.writelines(",".join(map(repr, row)) + "\n" for row in zip(*lists, strict=True))
        self.row_counts[name] += len(lists[0])

    def write(self, name: str, text: str) -> None:
        """Write a file of text."""
        if name == METADATA_FILE:
            self._metadata = text
        file = self.content / name
        file.parent.mkdir(parents=True, exist_ok=True)
        save_text(file, text)

    def finish(self) -> None:
        """List the files of the folder in its metadata, and rename it to its target."""
        names = sorted(path.relative_to(self.content).as_posix() for path in self.content.rglob("*") if path.is_file())
        self.write(METADATA_FILE, json.dumps({**inputs.parse_json(self._metadata), FILES: names}))
        check_table_folder(self.path)
        self._work.commit(self.content)

    def discard(self) -> None:
        """Take the hidden folder away. Never raises."""
        self._work.release()


class PendingCsv:
    """The tables being written. Its methods are called from one thread, one after the other."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Make the hidden folder."""
        self._path, self._recording = path, recording
        self._folder = TableFolder(path)
        self._headers: dict[str, dict[str, Any]] = {}
        self._components: dict[str, tuple[ArrayComponent, ...]] = {}
        self._files: dict[str, str] = {}
        self._links: list[str] = []
        self._current: dict[str, Any] | None = None
        self._metadata_state: tuple[int, int, bool] | None = None
        self._has_slices = False
        self.is_open = True

    def write(self, time_slice: TimeSlice) -> None:
        """Take all of a slab; after an error nothing is left."""
        try:
            for name, reading in time_slice.readings.items():
                self._write_reading(name, reading)
            if self._recording.truth:
                for name, truth in time_slice.truth.items():
                    self._write_truth(name, truth)
                if time_slice.current is not None:
                    self._write_current(time_slice.current)
            self._write_metadata()
        except BaseException:
            self.discard()
            raise
        self._has_slices = True

    def _write_metadata(self) -> None:
        """Write the metadata of the recording if it changed, so that the tables can be read after a crash."""
        series = len(self._headers), len(self._links), self._current is not None
        if series != self._metadata_state:
            self._metadata_state = series
            self._folder.write(
                METADATA_FILE, metadata.format_metadata(self._recording, self._headers, self._links, self._current)
            )

    def _reserve_name(self, name: str, owner: str) -> str:
        """Return the file of a sensor or link. Raises `SinkError` where it is another's."""
        if self._files.setdefault(name, owner) != owner:
            what = f"{owner} and {self._files[name]} would have one table"
            raise SinkError(what, name, where=Where(str(self._path)), remedy="rename one of them")
        return name

    def _write_reading(self, name: str, reading: Reading) -> None:
        """Add one sensor's rows."""
        head = metadata.sensor_header(self._recording, name, reading)
        if self._headers.setdefault(name, head) != head:
            raise SinkError(f"sensor {name!r} changed its arrays or their shapes", where=Where(str(self._path)))
        if name not in self._components:
            self._components[name] = tuple(sensor_components(head))
        columns = [reading.time, reading.stamp, reading.clock_error, reading.arrival, reading.valid, reading.emitted]
        columns += [
            select_component(getattr(reading, part.group)[part.name], part.indices) for part in self._components[name]
        ]
        header = [*COMMON_COLUMNS, *(_column_header(part, head) for part in self._components[name])]
        self._folder.append(self._reserve_name(f"{file_name(name)}.csv", f"sensor {name!r}"), header, columns)

    def _write_truth(self, name: str, truth: Truth) -> None:
        """Add the rows of a link's truth."""
        if name not in self._links:
            self._links.append(name)
        file, owner = f"truth.{file_name(name)}", f"the truth of link {name!r}"
        pose = [truth.time, *truth.position.T, *truth.orientation.T]
        self._folder.append(self._reserve_name(f"{file}.csv", owner), POSES, pose)
        rates = [column for array in TRUTH_ARRAYS[2:] for column in getattr(truth, array).T]
        self._folder.append(
            self._reserve_name(f"{file}.rates.csv", owner), ("time", *RATE_COLUMNS), [truth.time, *rates]
        )

    def _write_current(self, current: Current) -> None:
        """Add the rows of the water's velocity."""
        self._current = metadata.current_header(current)
        owner = "the current of the water"
        self._folder.append(
            self._reserve_name("current.csv", owner), CURRENT_COLUMNS, [current.time, *current.velocity.T]
        )
        if current.layers is not None:
            deep = current.layers.velocity.reshape(current.time.size, -1)
            header = [f"layers.{i}.{axis}" for i in range(deep.shape[1] // 3) for axis in "xyz"]
            name = self._reserve_name("current.layers.csv", owner)
            self._folder.append(name, ("time", *header), [current.time, *deep.T])

    def finish(self, *, empty: bool = True) -> None:
        """Write what the recording says of itself, and give the folder its name."""
        if not self.is_open:
            raise closed_error(self._path)
        try:
            if empty or self._has_slices:
                self._write_metadata()
                self._folder.finish()
        finally:
            self.discard()

    def discard(self) -> None:
        """Let go of the folder. Never raises."""
        self.is_open = False
        self._folder.discard()


def _column_header(part: ArrayComponent, header: Mapping[str, Any]) -> str:
    """Return the header of a column; a hidden error may have another unit than its array, or none that is known."""
    units = header.get("bias_unit", {}) if part.group in ("bias", "turn_on_bias") else header["unit"]
    unit = units.get(part.name, "")
    return f"{part.column} [{unit}]" if unit else part.column


def check_single_run(path: Path, recording: RecordingHeader, what: str) -> None:
    """Raise `SinkError` for a recording of several runs."""
    if len(recording.runs) != 1:
        remedy = "choose one with --run, or write .npz or .parquet"
        raise SinkError(f"{what} holds one run", len(recording.runs), where=Where(str(path)), remedy=remedy)


class CsvWriter(AtomicWriter):
    """Writes slabs to a folder of CSV tables: `NAME` for the path `NAME.csv`."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Make the hidden folder beside `path`. Raise `SinkError` where that cannot be."""
        check_table_folder(path)
        check_single_run(path, recording, "a folder of CSV tables")
        super().__init__(path, lambda: PendingCsv(path, recording))


def read_metadata(folder: Path) -> dict[str, Any]:
    """Return what a folder says of itself. Raises `SinkError` where it is none of ours."""
    if not (folder / METADATA_FILE).is_file():
        remedy = f"name a file in it, or a folder that holds metadata.yaml, {METADATA_FILE} or mav0/imu0/data.csv"
        raise SinkError("is a directory, and no recording", where=Where(str(folder)), remedy=remedy)
    try:
        return metadata.parse_metadata(inputs.read_bytes(str(folder / METADATA_FILE), _FILE))
    except SinkError:
        raise
    except Exception as error:
        raise metadata.damaged_error(folder, error) from error


def read(folder: Path) -> Dataset:
    """Return a folder of CSV tables, bit for bit. Raises `SinkError`."""
    about = {key: value for key, value in read_metadata(folder).items() if key != FILES}
    try:
        readings = {name: _read_reading(folder, name, head) for name, head in about["sensors"].items()}
        truth = {name: _read_truth(folder, name, about["epoch"]) for name in about["links"]}
        return Dataset(readings, truth, about, _read_current(folder, about.get("current")))
    except SinkError:
        raise
    except Exception as error:
        raise metadata.damaged_error(folder, error) from error


def read_table(file: Path, header: Sequence[str]) -> FloatArray:
    """Return the columns (n, columns) of a table. Raises `SinkError` with file and line."""
    lines = inputs.read_lines(str(file), _FILE)
    first = next(lines, "")
    if first != ",".join(header):
        allowed = "must be " + ",".join(header)
        raise SinkError("header of the table", first, allowed=allowed, where=Where(str(file), 1))
    rows = _check_rows(lines, file, len(header))
    first = next(rows, "")
    if not first:
        return np.empty((0, len(header)))
    try:
        return np.loadtxt(chain((first,), rows), delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        raise SinkError("table", str(error), where=Where(str(file)), allowed="must hold numbers") from error


def _check_rows(lines: Iterable[str], file: Path, columns: int) -> Iterator[str]:
    """Yield the rows of a table. Raises `SinkError` with file and line for one of another number of columns."""
    for number, line in enumerate(lines, 2):
        if line.count(",") != columns - 1:
            what = "number of columns"
            raise SinkError(what, line.count(",") + 1, allowed=f"must be {columns}", where=Where(str(file), number))
        yield line


def _read_reading(folder: Path, name: str, header: Mapping[str, Any]) -> Reading:
    """Return the readings of one sensor."""
    plan = tuple(sensor_components(header))
    table = read_table(
        folder / f"{file_name(name)}.csv", [*COMMON_COLUMNS, *(_column_header(part, header) for part in plan)]
    )
    groups: dict[str, dict[str, AnyArray]] = {group: {} for group in ARRAY_GROUPS}
    for column, part in enumerate(plan, len(COMMON_COLUMNS)):
        shape = (table.shape[0], *header[part.group][part.name])
        whole = groups[part.group].setdefault(part.name, np.empty(shape))
        select_component(whole, part.indices)[...] = table[:, column]
    time, _, clock_error, arrival, valid, emitted = (
        np.ascontiguousarray(table[:, i]) for i in range(len(COMMON_COLUMNS))
    )
    return Reading(
        name=name,
        type=header["type"],
        frame=header["frame"],
        unit=header["unit"],
        time=time,
        clock_error=clock_error,
        arrays=groups["arrays"],
        ideal=groups["ideal"],
        bias=groups["bias"],
        turn_on_bias=groups["turn_on_bias"],
        fault={kind: rows != 0.0 for kind, rows in groups["fault"].items()},
        valid=valid != 0.0,
        emitted=emitted != 0.0,
        epoch=header["epoch"],
        arrivals=arrival if header["latency"] else None,
    )


def _read_truth(folder: Path, name: str, epoch: int) -> Truth:
    """Return the truth of one link."""
    file = f"truth.{file_name(name)}"
    pose = read_table(folder / f"{file}.csv", POSES)
    rates = read_table(folder / f"{file}.rates.csv", ("time", *RATE_COLUMNS))
    if pose.shape[0] != rates.shape[0]:
        raise DamagedError(f"damaged: the tables of link {name!r} are of different lengths")
    columns = np.concatenate((pose[:, 1:], rates[:, 1:]), axis=1)
    ends = np.cumsum([4 if array == "orientation" else 3 for array in TRUTH_ARRAYS])
    parts = dict(zip(TRUTH_ARRAYS, map(np.ascontiguousarray, np.split(columns, ends[:-1], axis=1)), strict=True))
    return Truth(name, np.ascontiguousarray(pose[:, 0]), **parts, epoch=epoch)


def _read_current(folder: Path, header: Mapping[str, Any] | None) -> Current | None:
    """Return the water's velocity, None where there is none."""
    if not header:
        return None
    table = read_table(folder / "current.csv", CURRENT_COLUMNS)
    layers: Layers | None = metadata.make_layers(header)
    if layers is not None:
        names = [f"layers.{i}.{axis}" for i in range(len(layers.depths)) for axis in "xyz"]
        deep = read_table(folder / "current.layers.csv", ("time", *names))[:, 1:]
        layers = Layers(layers.topic, layers.depths, deep.reshape(table.shape[0], -1, 3))
    velocity = np.ascontiguousarray(table[:, 1:])
    return Current(
        header["topic"], tuple(header["position"]), np.ascontiguousarray(table[:, 0]), velocity, header["epoch"], layers
    )
