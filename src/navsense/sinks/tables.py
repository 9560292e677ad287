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
from navsense.series import TRUTH_ARRAYS, Current, Layers, Reading, Slab, Truth
from navsense.sinks import meta
from navsense.sinks.base import Recording, failed, os_error
from navsense.sinks.parquet import Component, columns_of_head, component_of
from navsense.sinks.records import DamagedError
from navsense.sinks.stored import Loaded
from navsense.sinks.whole import WholeSink
from navsense.typing import AnyArray, FloatArray

ABOUT = "navsense.json"
"""The file with what the recording says of itself."""

FILES = "files"
"""Key in that file: the names of all files of a complete recording. A new recording replaces only these."""

MADE = "made"
"""The folder inside the hidden folder that becomes the recording."""

OWN = ("time [s]", "stamp [ns]", "clock_error [s]", "arrival [s]", "valid", "emitted")
"""The columns that every sensor's table has."""

RATES = tuple(f"{name}.{axis}" for name in TRUTH_ARRAYS[2:] for axis in "xyz")
"""Columns of a link's rates, behind the time."""

FLOW = ("time", "x", "y", "z")

_FILE = inputs.Kind("table", SinkError, "must be a CSV table in UTF-8")


def folder_of(path: Path) -> Path:
    """Return the folder that a recording `NAME.csv` or `NAME.euroc` is: NAME."""
    return path.with_suffix("")


def check_folder(path: Path) -> None:
    """Raise `SinkError` if the folder of `NAME.csv` or `NAME.euroc` exists and is no such recording, or holds more."""
    folder = folder_of(path)
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
    if (folder / ABOUT).is_file():
        try:
            text = Context().run(inputs.content, str(folder / ABOUT), _FILE)  # in this context it is no input
            written = {ABOUT, *inputs.parse_json(text)[FILES]}
        except (SinkError, ValueError, KeyError, TypeError):
            return folder / ABOUT
    inside = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return next((path for path in inside if path.relative_to(folder).as_posix() not in written), None)


def file_of(name: str) -> str:
    """Return the name of a file for a full name."""
    return name.replace("::", ".").replace("/", "_")


@dataclass(eq=False)
class Folder:
    """A hidden folder beside its place: files of lines, that are appended to."""

    path: Path
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the folder."""
        self._work = HiddenFolder(folder_of(self.path), is_recording=True)
        self.made = self._work.folder / MADE
        self.made.mkdir()
        self._metadata = "{}"

    def append(self, name: str, header: Sequence[str], columns: Sequence[AnyArray]) -> None:
        """Add rows to a table, whose first rows bring its header; floats are written as the shortest same decimals."""
        file = self.made / name
        if name not in self.counts:
            file.parent.mkdir(parents=True, exist_ok=True)
            self.counts[name] = 0
            file.write_text(",".join(header) + "\n", encoding="utf-8")
        lists = [
            column.astype(np.int64).tolist() if column.dtype.kind in "biu" else column.tolist() for column in columns
        ]
        with file.open("a", encoding="utf-8") as out:
            out.writelines(",".join(map(repr, row)) + "\n" for row in zip(*lists, strict=True))
        self.counts[name] += len(lists[0])

    def write(self, name: str, text: str) -> None:
        """Write a file of text."""
        if name == ABOUT:
            self._metadata = text
        file = self.made / name
        file.parent.mkdir(parents=True, exist_ok=True)
        save_text(file, text)

    def finish(self) -> None:
        """List the files of the folder in its metadata, and rename it to its target."""
        names = sorted(path.relative_to(self.made).as_posix() for path in self.made.rglob("*") if path.is_file())
        self.write(ABOUT, json.dumps({**inputs.parse_json(self._metadata), FILES: names}))
        check_folder(self.path)
        self._work.commit(self.made)

    def drop(self) -> None:
        """Take the hidden folder away. Never raises."""
        self._work.release()


class Tables:
    """The tables being written. Its methods are called from one thread, one after the other."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Make the hidden folder."""
        self._path, self._recording = path, recording
        self._folder = Folder(path)
        self._heads: dict[str, dict[str, Any]] = {}
        self._plans: dict[str, tuple[Component, ...]] = {}
        self._files: dict[str, str] = {}
        self._links: list[str] = []
        self._current: dict[str, Any] | None = None
        self._described: tuple[int, int, bool] | None = None
        self._holds = False
        self.open = True

    def take(self, slab: Slab) -> None:
        """Take all of a slab; after an error nothing is left."""
        try:
            for name, reading in slab.readings.items():
                self._reading(name, reading)
            if self._recording.truth:
                for name, truth in slab.truth.items():
                    self._truth(name, truth)
                if slab.current is not None:
                    self._flow(slab.current)
            self._describe()
        except BaseException:
            self.drop()
            raise
        self._holds = True

    def _describe(self) -> None:
        """Write the metadata of the recording if it changed, so that the tables can be read after a crash."""
        series = len(self._heads), len(self._links), self._current is not None
        if series != self._described:
            self._described = series
            self._folder.write(ABOUT, meta.text_of(self._recording, self._heads, self._links, self._current))

    def _name(self, name: str, owner: str) -> str:
        """Return the file of a sensor or link. Raises `SinkError` where it is another's."""
        if self._files.setdefault(name, owner) != owner:
            what = f"{owner} and {self._files[name]} would have one table"
            raise SinkError(what, name, where=Where(str(self._path)), remedy="rename one of them")
        return name

    def _reading(self, name: str, reading: Reading) -> None:
        """Add one sensor's rows."""
        head = meta.head_of(self._recording, name, reading)
        if self._heads.setdefault(name, head) != head:
            raise SinkError(f"sensor {name!r} changed its arrays or their shapes", where=Where(str(self._path)))
        if name not in self._plans:
            self._plans[name] = tuple(columns_of_head(head))
        sources = {"arrays": reading.arrays, "truth": reading.truth, "errors": reading.errors}
        columns = [reading.time, reading.stamp, reading.clock_error, reading.arrival, reading.valid, reading.emitted]
        columns += [component_of(sources[part.group][part.name], part.place) for part in self._plans[name]]
        header = [*OWN, *(_label(part, head) for part in self._plans[name])]
        self._folder.append(self._name(f"{file_of(name)}.csv", f"sensor {name!r}"), header, columns)

    def _truth(self, name: str, truth: Truth) -> None:
        """Add the rows of a link's truth."""
        if name not in self._links:
            self._links.append(name)
        file, owner = f"truth.{file_of(name)}", f"the truth of link {name!r}"
        pose = [truth.time, *truth.position.T, *truth.orientation.T]
        self._folder.append(self._name(f"{file}.csv", owner), POSES, pose)
        rates = [column for array in TRUTH_ARRAYS[2:] for column in getattr(truth, array).T]
        self._folder.append(self._name(f"{file}.rates.csv", owner), ("time", *RATES), [truth.time, *rates])

    def _flow(self, current: Current) -> None:
        """Add the rows of the water's velocity."""
        self._current = meta.current_head(current)
        owner = "the current of the water"
        self._folder.append(self._name("current.csv", owner), FLOW, [current.time, *current.velocity.T])
        if current.layers is not None:
            deep = current.layers.velocity.reshape(current.time.size, -1)
            header = [f"layers.{i}.{axis}" for i in range(deep.shape[1] // 3) for axis in "xyz"]
            name = self._name("current.layers.csv", owner)
            self._folder.append(name, ("time", *header), [current.time, *deep.T])

    def finish(self, *, empty: bool = True) -> None:
        """Write what the recording says of itself, and give the folder its name."""
        if not self.open:
            raise failed(self._path)
        try:
            if empty or self._holds:
                self._describe()
                self._folder.finish()
        finally:
            self.drop()

    def drop(self) -> None:
        """Let go of the folder. Never raises."""
        self.open = False
        self._folder.drop()


def _label(part: Component, head: Mapping[str, Any]) -> str:
    """Return the header of a column; a hidden error may have another unit than its array, or none that is known."""
    units = head.get("error_unit", {}) if part.group == "errors" else head["unit"]
    unit = units.get(part.name, "")
    return f"{part.column} [{unit}]" if unit else part.column


def check_runs(path: Path, recording: Recording, what: str) -> None:
    """Raise `SinkError` for a recording of several runs."""
    if len(recording.runs) != 1:
        remedy = "choose one with --run, or write .npz or .parquet"
        raise SinkError(f"{what} holds one run", len(recording.runs), where=Where(str(path)), remedy=remedy)


class CsvSink(WholeSink):
    """Writes slabs to a folder of CSV tables: `NAME` for the path `NAME.csv`."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Make the hidden folder beside `path`. Raise `SinkError` where that cannot be."""
        check_folder(path)
        check_runs(path, recording, "a folder of CSV tables")
        super().__init__(path, lambda: Tables(path, recording))


def about_of(folder: Path) -> dict[str, Any]:
    """Return what a folder says of itself. Raises `SinkError` where it is none of ours."""
    if not (folder / ABOUT).is_file():
        remedy = f"name a file in it, or a folder that holds metadata.yaml, {ABOUT} or mav0/imu0/data.csv"
        raise SinkError("is a directory, and no recording", where=Where(str(folder)), remedy=remedy)
    try:
        return meta.parsed(inputs.content(str(folder / ABOUT), _FILE))
    except SinkError:
        raise
    except Exception as error:
        raise meta.damage(folder, error) from error


def read(folder: Path) -> Loaded:
    """Return a folder of CSV tables, bit for bit. Raises `SinkError`."""
    about = {key: value for key, value in about_of(folder).items() if key != FILES}
    try:
        readings = {name: _read_reading(folder, name, head) for name, head in about["sensors"].items()}
        truth = {name: _read_truth(folder, name, about["epoch"]) for name in about["links"]}
        return Loaded(readings, truth, about, _read_current(folder, about.get("current")))
    except SinkError:
        raise
    except Exception as error:
        raise meta.damage(folder, error) from error


def table_of(file: Path, header: Sequence[str]) -> FloatArray:
    """Return the columns (n, columns) of a table. Raises `SinkError` with file and line."""
    lines = inputs.read_lines(str(file), _FILE)
    first = next(lines, "")
    if first != ",".join(header):
        allowed = "must be " + ",".join(header)
        raise SinkError("header of the table", first, allowed=allowed, where=Where(str(file), 1))
    rows = _checked(lines, file, len(header))
    first = next(rows, "")
    if not first:
        return np.empty((0, len(header)))
    try:
        return np.loadtxt(chain((first,), rows), delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        raise SinkError("table", str(error), where=Where(str(file)), allowed="must hold numbers") from error


def _checked(lines: Iterable[str], file: Path, columns: int) -> Iterator[str]:
    """Yield the rows of a table. Raises `SinkError` with file and line for one of another number of columns."""
    for number, line in enumerate(lines, 2):
        if line.count(",") != columns - 1:
            what = "number of columns"
            raise SinkError(what, line.count(",") + 1, allowed=f"must be {columns}", where=Where(str(file), number))
        yield line


def _read_reading(folder: Path, name: str, head: Mapping[str, Any]) -> Reading:
    """Return the readings of one sensor."""
    plan = tuple(columns_of_head(head))
    table = table_of(folder / f"{file_of(name)}.csv", [*OWN, *(_label(part, head) for part in plan)])
    groups: dict[str, dict[str, AnyArray]] = {"arrays": {}, "truth": {}, "errors": {}}
    for column, part in enumerate(plan, len(OWN)):
        shape = (table.shape[0], *head[part.group][part.name])
        whole = groups[part.group].setdefault(part.name, np.empty(shape))
        component_of(whole, part.place)[...] = table[:, column]
    time, _, clock_error, arrival, valid, emitted = (np.ascontiguousarray(table[:, i]) for i in range(len(OWN)))
    return Reading(
        name=name,
        type=head["type"],
        frame=head["frame"],
        unit=head["unit"],
        time=time,
        clock_error=clock_error,
        arrays=groups["arrays"],
        truth=groups["truth"],
        errors=groups["errors"],
        valid=valid != 0.0,
        emitted=emitted != 0.0,
        epoch=head["epoch"],
        arrivals=arrival if head["latency"] else None,
    )


def _read_truth(folder: Path, name: str, epoch: int) -> Truth:
    """Return the truth of one link."""
    file = f"truth.{file_of(name)}"
    pose = table_of(folder / f"{file}.csv", POSES)
    rates = table_of(folder / f"{file}.rates.csv", ("time", *RATES))
    if pose.shape[0] != rates.shape[0]:
        raise DamagedError(f"damaged: the tables of link {name!r} are of different lengths")
    columns = np.concatenate((pose[:, 1:], rates[:, 1:]), axis=1)
    ends = np.cumsum([4 if array == "orientation" else 3 for array in TRUTH_ARRAYS])
    parts = dict(zip(TRUTH_ARRAYS, map(np.ascontiguousarray, np.split(columns, ends[:-1], axis=1)), strict=True))
    return Truth(name, np.ascontiguousarray(pose[:, 0]), **parts, epoch=epoch)


def _read_current(folder: Path, head: Mapping[str, Any] | None) -> Current | None:
    """Return the water's velocity, None where there is none."""
    if not head:
        return None
    table = table_of(folder / "current.csv", FLOW)
    layers: Layers | None = meta.layers_of(head)
    if layers is not None:
        names = [f"layers.{i}.{axis}" for i in range(len(layers.depths)) for axis in "xyz"]
        deep = table_of(folder / "current.layers.csv", ("time", *names))[:, 1:]
        layers = Layers(layers.topic, layers.depths, deep.reshape(table.shape[0], -1, 3))
    velocity = np.ascontiguousarray(table[:, 1:])
    return Current(
        head["topic"], tuple(head["position"]), np.ascontiguousarray(table[:, 0]), velocity, head["epoch"], layers
    )
