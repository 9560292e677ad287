"""Recordings as a folder of CSV tables: one for each sensor, each link's truth, and the water's current.

    NAME/SENSOR.csv              time [s],stamp [ns],clock_error [s],arrival [s],valid,emitted,ARRAY.AXIS [unit],...
    NAME/truth.LINK.csv          time,x,y,z,qw,qx,qy,qz            a motion log, as `--motion` reads it
    NAME/truth.LINK.rates.csv    time,velocity.x,...,angular_velocity.x,...,acceleration.x,...
    NAME/current.csv             time,x,y,z                        a record of a current, as a world reads it
    NAME/navsense.json           the metadata, as in an archive of NumPy

Columns have the names of a Parquet table; `::` in names becomes `.`. Numbers are the shortest decimals that give the
same bits. The folder gets its name when it is complete. After an error elsewhere it holds the time slices before it. If
a write fails, the hidden folder remains for `navsense recover`.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from navsense.core import inputs
from navsense.core.atomic import HiddenFolder, save_text
from navsense.core.errors import DamagedError, FieldError, RecordingError, Where
from navsense.core.readings import Current, Reading, RunChange, Truth
from navsense.core.typing import AnyArray, FloatArray
from navsense.motion.logs import LOG_COLUMNS as POSES
from navsense.recordings import metadata
from navsense.recordings.array_columns import (
    TRUTH_COMPONENTS,
    ArrayComponent,
    EntryMetadata,
    join_components,
    list_sensor_components,
    make_current,
    make_reading,
    make_truth,
    select_component,
)
from navsense.recordings.base import (
    AtomicWriter,
    PendingArrays,
    find_hidden_recording_remedy,
    format_rescue,
    make_folder_error,
    make_os_error,
    open_for_reading,
)
from navsense.recordings.dataset import Dataset, LinkSelection, select_links
from navsense.recordings.format import (
    LOSSLESS,
    Capability,
    Format,
    Recovery,
    RecoveryResult,
    get_storage_path,
    resolve_folder,
)
from navsense.recordings.info import WORLD_JSON_KEY, RecordedRun
from navsense.recordings.world_json import list_notes

CSV, EUROC = "csv", "EuRoC"
"""Names of the formats that are folders of tables."""

METADATA_FILE = "navsense.json"
"""File with the metadata of the recording."""

FILES = "files"
"""Key in that file: the names of all files of a complete recording. A new recording replaces only these."""

CONTENT_FOLDER = "made"
"""Folder in the hidden folder that becomes the recording."""

COMMON_COLUMNS = ("time [s]", "stamp [ns]", "clock_error [s]", "arrival [s]", "valid", "emitted")
"""First columns of the table of each sensor."""

POSE_COUNT = len(POSES) - 1
"""Number of components of a pose, the first components of the truth of a link."""

RATE_COLUMNS = ("time", *(part.column for part in TRUTH_COMPONENTS[POSE_COUNT:]))
"""Columns of the velocities and accelerations of a link."""

CURRENT_FILE = "current.csv"

CURRENT_COLUMNS = ("time", "x", "y", "z")

_FILE = inputs.FileKind("table", RecordingError, "must be a CSV table in UTF-8")
_METADATA_KIND = inputs.FileKind("metadata", RecordingError, "must be a JSON object")


def find_folder(path: Path) -> Path:
    """Return the folder of a recording, given the folder or NAME.csv. Raises `RecordingError` if it is missing."""
    folder = path if path.is_dir() else get_storage_path(path)
    if folder.is_dir():
        return folder
    if find_hidden_recording_remedy(path):
        raise make_os_error(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), "read")
    raise RecordingError(
        "is not a recording",
        path.suffix,
        allowed="a recording in CSV is a folder: of tables of navsense, or of EuRoC",
        where=Where(str(path)),
        remedy="name the folder; --motion and calibrate read a single table",
    )


def check_table_folder(path: Path, name: str) -> None:
    """Raise `RecordingError` if the folder of a recording holds other files, or a recording of another format.

    name: of the format of NAME.csv or NAME.euroc.
    """
    folder = get_storage_path(path)
    try:
        if not folder.exists() and not folder.is_symlink():
            return
        stored = _read_folder_metadata(folder)
        foreign = _find_foreign_file(folder, stored) if folder.is_dir() else folder
    except OSError as error:
        raise make_os_error(path, error) from error
    what = "something else" if foreign is not None else f"a recording of format {stored.format_name}"
    if foreign is not None or stored.format_name not in ("", name):
        raise RecordingError(
            f"the recording is the folder of this name, which holds {what}",
            str(foreign or folder),
            where=Where(str(path)),
            remedy="choose another name, or move away what is there",
        )


class FolderMetadata(NamedTuple):
    """What a folder says of its recording: its files, and the name of its format, "" without a recording."""

    files: frozenset[str] = frozenset()
    format_name: str = ""


def _read_folder_metadata(folder: Path) -> FolderMetadata:
    """Return what the metadata of a folder say, nothing for metadata of another program."""
    if not (folder / METADATA_FILE).is_file():
        return FolderMetadata()
    try:
        # In an empty context the file is not an input of the command, so the recording can be replaced.
        stored = inputs.parse_json(Context().run(inputs.read_bytes, str(folder / METADATA_FILE), _FILE))
        # In a folder of EuRoC it is a name, in one of tables a number.
        format_name = EUROC if stored["format"] == EUROC.lower() else CSV
        return FolderMetadata(frozenset((METADATA_FILE, *stored[FILES])), format_name)
    except (RecordingError, ValueError, KeyError, TypeError):
        return FolderMetadata()


def _find_foreign_file(folder: Path, stored: FolderMetadata) -> Path | None:
    """Return the first file in a folder that its recording did not write, or None."""
    inside = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return next((path for path in inside if path.relative_to(folder).as_posix() not in stored.files), None)


def format_file_name(name: str) -> str:
    """Return the file name of a sensor or link."""
    return name.replace("::", ".").replace("/", "_")


@dataclass(eq=False)
class TableFolder:
    """A hidden folder next to its target, with tables to which rows are appended; `format_name` is CSV or EUROC."""

    path: Path
    format_name: str
    row_counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create the folder."""
        self._work = HiddenFolder(get_storage_path(self.path), is_recording=True)
        self.content = self._work.folder / CONTENT_FOLDER
        self.content.mkdir()
        self._metadata = "{}"

    def append(self, name: str, header: Sequence[str], columns: Sequence[AnyArray]) -> None:
        """Append rows to a table. The first rows write its header."""
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
        """Write a text file."""
        if name == METADATA_FILE:
            self._metadata = text
        file = self.content / name
        file.parent.mkdir(parents=True, exist_ok=True)
        save_text(file, text)

    def finish(self) -> None:
        """List the files of the folder in its metadata, and rename it to its target."""
        names = sorted(path.relative_to(self.content).as_posix() for path in self.content.rglob("*") if path.is_file())
        self.write(METADATA_FILE, json.dumps({**inputs.parse_json(self._metadata), FILES: names}))
        check_table_folder(self.path, self.format_name)
        self._work.commit(self.content)

    def keep(self) -> str:
        """Keep the hidden folder for `navsense recover`, and return that command. Never raises."""
        self._work.keep()
        return format_rescue(self.path)

    def discard(self) -> None:
        """Remove the hidden folder. Never raises."""
        self._work.release()


class PendingCsv(PendingArrays):
    """A folder of tables that is written by one thread."""

    def __init__(self, path: Path, recorded_run: RecordedRun) -> None:
        """Create the hidden folder."""
        self.path, self._recorded_run = path, recorded_run
        self._folder = TableFolder(path, CSV)
        self._metadata = EntryMetadata(path, recorded_run)
        self._components: dict[str, tuple[ArrayComponent, ...]] = {}
        self._files: dict[str, str] = {}
        self._stored_entry_count = -1

    def save_metadata(self) -> None:
        """Write the metadata if there is a new sensor, link or current."""
        if self._metadata.count() != self._stored_entry_count:
            self._stored_entry_count = self._metadata.count()
            self._folder.write(METADATA_FILE, self._metadata.format())

    def _reserve_name(self, name: str, owner: str) -> str:
        if self._files.setdefault(name, owner) != owner:
            what = f"{owner} and {self._files[name]} would have one table"
            raise RecordingError(what, name, where=Where(str(self.path)), remedy="rename one of them")
        return name

    def append_reading(self, name: str, reading: Reading) -> None:
        """Append the rows of a reading to its table."""
        sensor_metadata = self._metadata.add_reading(name, reading)
        if name not in self._components:
            self._components[name] = list_sensor_components(sensor_metadata)
        columns = [reading.time, reading.stamp, reading.clock_error, reading.arrival, reading.valid, reading.emitted]
        columns += [
            select_component(getattr(reading, part.group)[part.name], part.indices) for part in self._components[name]
        ]
        header = [*COMMON_COLUMNS, *(_format_column_header(part, sensor_metadata) for part in self._components[name])]
        self._folder.append(self._reserve_name(f"{format_file_name(name)}.csv", f"sensor {name!r}"), header, columns)

    def append_truth(self, name: str, truth: Truth) -> None:
        """Append the truth of a link to its tables."""
        self._metadata.add_truth(name)
        file, owner = f"truth.{format_file_name(name)}", f"the truth of link {name!r}"
        columns = [select_component(getattr(truth, part.name), part.indices) for part in TRUTH_COMPONENTS]
        pose, rates = columns[:POSE_COUNT], columns[POSE_COUNT:]
        self._folder.append(self._reserve_name(f"{file}.csv", owner), POSES, [truth.time, *pose])
        self._folder.append(self._reserve_name(f"{file}.rates.csv", owner), RATE_COLUMNS, [truth.time, *rates])

    def append_current(self, current: Current) -> None:
        """Append the rows of the current to its tables."""
        self._metadata.add_current(current)
        owner = "the current of the water"
        self._folder.append(
            self._reserve_name(CURRENT_FILE, owner), CURRENT_COLUMNS, [current.time, *current.velocity.T]
        )
        if current.layers is not None:
            layers = current.layers.velocity.reshape(current.time.size, -1)
            header = [f"layers.{i}.{axis}" for i in range(layers.shape[1] // 3) for axis in "xyz"]
            name = self._reserve_name("current.layers.csv", owner)
            self._folder.append(name, ("time", *header), [current.time, *layers.T])

    def append_changes(self, changes: Sequence[RunChange]) -> None:
        """Append changes of the run to the metadata."""
        self._metadata.changes += changes

    def complete(self) -> None:
        """Write the metadata, and give the folder its name."""
        self.save_metadata()
        self._folder.finish()

    def keep_content(self) -> str:
        """Keep the tables for `navsense recover`. Never raises."""
        return self._folder.keep()

    def release(self) -> None:
        """Remove the hidden folder. Never raises."""
        self._folder.discard()


def _format_column_header(part: ArrayComponent, sensor_metadata: Mapping[str, Any]) -> str:
    # A bias can have another unit than its array, or an unknown one.
    units = sensor_metadata.get("bias_unit", {}) if part.group in ("bias", "turn_on_bias") else sensor_metadata["unit"]
    unit = units.get(part.name, "")
    return f"{part.column} [{unit}]" if unit else part.column


def read_metadata(folder: Path) -> dict[str, Any]:
    """Return the metadata of a folder. Raises `RecordingError` if it is not a recording."""
    if not (folder / METADATA_FILE).is_file():
        raise make_folder_error(folder)
    try:
        return metadata.parse_metadata(inputs.read_bytes(str(folder / METADATA_FILE), _FILE))
    except RecordingError:
        raise
    except Exception as error:
        raise metadata.make_damaged_error(folder, error) from error


def read(path: Path, select: LinkSelection | None = None) -> Dataset:
    """Return the recording in a folder of CSV tables, bit for bit; with `select` the truth of these links alone.

    Raises `RecordingError`.
    """
    folder = find_folder(path)
    meta = {key: value for key, value in read_metadata(folder).items() if key != FILES}
    try:
        links = None if select is None else select_links(meta, select)
        if links is not None:
            return Dataset({}, {name: _read_truth(folder, name, meta["epoch"]) for name in links}, meta)
        readings = {name: _read_reading(folder, name, data) for name, data in meta["sensors"].items()}
        truth = {name: _read_truth(folder, name, meta["epoch"]) for name in meta["links"]}
        current = _read_current(folder, meta["current"]) if meta.get("current") else None
        return Dataset(readings, truth, meta, current)
    except RecordingError:
        raise
    except Exception as error:
        raise metadata.make_damaged_error(folder, error) from error


def read_table(file: Path, header: Sequence[str]) -> FloatArray:
    """Return the columns (n, columns) of a table. Raises `RecordingError` with file and line."""
    lines = inputs.read_lines(str(file), _FILE)
    first = next(lines, "")
    if first != ",".join(header):
        allowed = "must be " + ",".join(header)
        raise RecordingError("header of the table", first, allowed=allowed, where=Where(str(file), 1))
    rows = _check_rows(lines, file, len(header))
    first = next(rows, "")
    if not first:
        return np.empty((0, len(header)))
    try:
        return np.loadtxt(chain((first,), rows), delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        raise RecordingError("table", str(error), where=Where(str(file)), allowed="must hold numbers") from error


def _check_rows(lines: Iterable[str], file: Path, columns: int) -> Iterator[str]:
    """Yield the rows of a table. Raises `RecordingError` for a row with another number of columns."""
    for number, line in enumerate(lines, 2):
        if line.count(",") != columns - 1:
            what = "number of columns"
            raise RecordingError(
                what, line.count(",") + 1, allowed=f"must be {columns}", where=Where(str(file), number)
            )
        yield line


def _read_reading(folder: Path, name: str, sensor_metadata: Mapping[str, Any]) -> Reading:
    components = list_sensor_components(sensor_metadata)
    names = [*COMMON_COLUMNS, *(_format_column_header(part, sensor_metadata) for part in components)]
    columns = [np.ascontiguousarray(column) for column in read_table(folder / f"{format_file_name(name)}.csv", names).T]
    time, _, clock_error, arrival, valid, emitted = columns[: len(COMMON_COLUMNS)]
    common_arrays = {"clock_error": clock_error, "arrival": arrival, "valid": valid != 0.0, "emitted": emitted != 0.0}
    by_component = dict(zip(components, columns[len(COMMON_COLUMNS) :], strict=True))
    groups = join_components(components, by_component.__getitem__)
    groups["fault"] = {kind: rows != 0.0 for kind, rows in groups.get("fault", {}).items()}
    return make_reading(name, sensor_metadata, time, common_arrays, groups)


def _read_truth(folder: Path, name: str, epoch: int) -> Truth:
    file = f"truth.{format_file_name(name)}"
    pose, rates = read_table(folder / f"{file}.csv", POSES), read_table(folder / f"{file}.rates.csv", RATE_COLUMNS)
    if pose.shape[0] != rates.shape[0]:
        raise DamagedError(f"damaged: the tables of link {name!r} are of different lengths")
    by_component = dict(zip(TRUTH_COMPONENTS, (*pose.T[1:], *rates.T[1:]), strict=True))
    arrays = join_components(TRUTH_COMPONENTS, by_component.__getitem__)["truth"]
    return make_truth(name, np.ascontiguousarray(pose[:, 0]), arrays, epoch)


def _read_current(folder: Path, current_metadata: Mapping[str, Any]) -> Current:
    table = read_table(folder / CURRENT_FILE, CURRENT_COLUMNS)
    arrays = {"velocity": np.ascontiguousarray(table[:, 1:])}
    if "layers" in current_metadata:
        names = [f"layers.{i}.{axis}" for i in range(len(current_metadata["layers"]["depths"])) for axis in "xyz"]
        layers = read_table(folder / "current.layers.csv", ("time", *names))[:, 1:]
        arrays["layers"] = layers.reshape(table.shape[0], -1, 3)
    return make_current(current_metadata, np.ascontiguousarray(table[:, 0]), arrays)


def recover(file: Path, out: Path) -> RecoveryResult:
    """Write the tables of a truncated recording without their incomplete last lines; `file` is its metadata."""
    meta = inputs.parse_json(inputs.read_bytes(str(file), _METADATA_KIND))
    work = HiddenFolder(get_storage_path(out))
    try:
        folder = work.folder / work.target.name
        shutil.copytree(file.parent, folder, ignore=shutil.ignore_patterns("*.new"))
        count = _truncate_tables(folder)
        work.commit(folder)
    finally:
        work.release()
    return RecoveryResult(str(out), count, unit="row", notes=list_notes(meta.get(WORLD_JSON_KEY)))


def _truncate_tables(folder: Path) -> int:
    """Remove the incomplete last lines of the tables in a folder; return the number of all rows."""
    files = sorted(folder.rglob("*.csv"))
    counts = {file: sum(1 for _ in _read_complete_lines(file)) for file in files}
    companions = set[Path]()
    for file in files:  # two tables of one sensor or link get the length of the shorter one
        for suffix in (".rates.csv", ".layers.csv"):
            companion = file.with_name(file.name.removesuffix(".csv") + suffix)
            if companion in counts:
                counts[file] = counts[companion] = min(counts[file], counts[companion])
                companions.add(companion)
    for file, count in counts.items():
        os.truncate(file, sum(map(len, islice(_read_complete_lines(file), count))))
    return sum(max(count - 1, 0) for file, count in counts.items() if file not in companions)


def _read_complete_lines(file: Path) -> Iterator[bytes]:
    """Yield the complete lines of a table."""
    with open_for_reading(file) as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield line


def find_current_table(path: Path) -> Path:
    """Return the table of the current in a recording in CSV, otherwise the path of the recording."""
    folder = resolve_folder(path)
    if not inputs.path_exists(folder / METADATA_FILE):
        return folder
    table = folder / CURRENT_FILE
    if not table.is_file():
        what, remedy = "holds no current", "record a world with a current"
        raise FieldError("recording", what, where=Where(str(path)), remedy=remedy)
    return table


RECOVERY = Recovery((f"{CONTENT_FOLDER}/{METADATA_FILE}",), recover)

FORMAT = Format(
    name=CSV,
    suffixes=(".csv",),
    capabilities=LOSSLESS | {Capability.RECOVERY},
    read=read,
    read_truth=read,
    open_writer=lambda path, recorded_run: AtomicWriter(path, lambda: PendingCsv(path, recorded_run)),
    is_folder=True,
    folder_files=(METADATA_FILE,),
    check_path=lambda path, _: check_table_folder(path, CSV),
    recovery=RECOVERY,
)
