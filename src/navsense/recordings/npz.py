"""Recordings as NumPy archives: one array a key, read by `numpy.load` alone.

Keys are `SENSOR/NAME`, `SENSOR/ideal/NAME`, `SENSOR/bias/NAME`, `SENSOR/turn_on_bias/NAME`, `SENSOR/fault/KIND`,
`SENSOR/time`, `SENSOR/clock_error`, `SENSOR/valid`, `SENSOR/emitted`, `truth/LINK/NAME`, `current/time`,
`current/velocity`, `current/layers`, and `meta`, a JSON text with units, frames and the run. Time slices are appended
to files in a hidden directory next to the target, so that memory stays within one time slice. The archive gets its name
when it is complete. After an error elsewhere it holds the time slices that were written before. If a write fails, the
hidden directory remains for `navsense recover`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from navsense.core import inputs
from navsense.core.atomic import HiddenFolder, replace_file, save_text
from navsense.core.errors import DamagedError, RecordingError, Where
from navsense.core.readings import ARRAY_GROUPS, TRUTH_ARRAYS, Current, Reading, RunChange, Truth, to_nanoseconds
from navsense.core.typing import AnyArray, FloatArray
from navsense.recordings import metadata
from navsense.recordings.array_columns import EntryMetadata, list_entries, make_current, make_reading, make_truth
from navsense.recordings.base import (
    AtomicWriter,
    PendingArrays,
    find_unrecoverable_remedy,
    format_rescue,
    open_for_reading,
)
from navsense.recordings.dataset import Dataset, LinkSelection, select_links
from navsense.recordings.format import LOSSLESS, Capability, Format, Recovery, RecoveryResult
from navsense.recordings.info import WORLD_JSON_KEY, RecordedRun, RecordingSummary, SummaryEntry
from navsense.recordings.summary import make_summary
from navsense.recordings.world_json import list_notes

_STATE_KIND = inputs.FileKind("truncated recording", RecordingError, "must hold a file state.json")

BLOCK_BYTES = 1 << 22
"""Bytes moved at a time when the archive is put together."""


@dataclass(eq=False)
class DiskArray:
    """One array in a file, with time as its first axis.

    owner: the sensor, link or current of the array.
    row_shape: the shape of one row, with `run_axes` axes of runs first.
    count: the number of rows.
    """

    owner: str
    path: Path
    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    run_axes: int
    count: int = 0

    def append(self, array: AnyArray) -> None:
        """Append rows; `array` begins with its run axes."""
        rows = np.moveaxis(array, self.run_axes, 0) if self.run_axes else array
        if rows.dtype != self.dtype or rows.shape[1:] != self.row_shape:
            raise RecordingError(f"array {self.path.name} changed its type or shape", f"{array.dtype} {array.shape}")
        # The file is opened for each append: a world can have more arrays than a process can have open files.
        with self.path.open("ab") as file:
            file.write(np.ascontiguousarray(rows).data)
        self.count += rows.shape[0]

    def truncate(self, count: int) -> None:
        """Remove all rows after the first `count`."""
        os.truncate(self.path, count * self.dtype.itemsize * int(np.prod(self.row_shape)))
        self.count = count

    def write(self, target: IO[bytes]) -> None:
        """Write the array in the format of NumPy, with the run axes first."""
        shape = (*self.row_shape[: self.run_axes], self.count, *self.row_shape[self.run_axes :])
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(target, header)
        if self.count == 0 or 0 in shape:
            return
        if not self.run_axes:
            with self.path.open("rb") as source:
                shutil.copyfileobj(source, target, BLOCK_BYTES)
            return
        rows = np.memmap(self.path, dtype=self.dtype, mode="r", shape=(self.count, *self.row_shape))
        step = max(1, BLOCK_BYTES // max(1, self.dtype.itemsize * int(np.prod(self.row_shape[self.run_axes :]))))
        for run in np.ndindex(*self.row_shape[: self.run_axes]):
            for start in range(0, self.count, step):
                target.write(np.ascontiguousarray(rows[(slice(start, start + step), *run)]).tobytes())


class PendingNpz(PendingArrays):
    """A NumPy archive that is written by one thread."""

    def __init__(self, path: Path, recorded_run: RecordedRun) -> None:
        """Create the hidden folder. Raises `RecordingError` if two arrays have one key."""
        check_keys(path, recorded_run)
        self.path, self._recorded_run = path, recorded_run
        self._arrays: dict[str, DiskArray] = {}
        self._metadata = EntryMetadata(path, recorded_run)
        self._files = self._saved_count = 0
        self._work = HiddenFolder(path, is_recording=True)

    def save_metadata(self) -> None:
        """Write the list of arrays if it is new."""
        if len(self._arrays) == self._saved_count:
            return
        self._saved_count = len(self._arrays)
        columns = [
            {
                "key": key,
                "owner": array.owner,
                "file": array.path.name,
                "dtype": array.dtype.str,
                "row": array.row_shape,
                "runs": array.run_axes,
            }
            for key, array in self._arrays.items()
        ]
        save_text(self._work.folder / STATE_FILE, json.dumps({"meta": self._metadata.format(), "columns": columns}))

    def append_reading(self, name: str, reading: Reading) -> None:
        """Append the arrays of a reading."""
        runs = reading.clock_error.ndim - 1
        owner = f"sensor {name!r}"
        self._append(f"{name}/time", owner, reading.time, 0)
        self._append(f"{name}/clock_error", owner, reading.clock_error, runs)
        if reading.arrival_after_latency is not None:
            self._append(f"{name}/arrival", owner, reading.arrival_after_latency, runs)
        self._append(f"{name}/valid", owner, reading.valid, runs)
        self._append(f"{name}/emitted", owner, reading.emitted, runs)
        for key, array in reading.arrays.items():
            if key in RESERVED_NAMES:
                raise RecordingError(f"sensor {name!r} has an array of a name that is taken", key)
            self._append(f"{name}/{key}", owner, array, runs)
        for group in ARRAY_GROUPS[1:] if self._recorded_run.has_simulated_series else ():
            axes = len(reading.ideal_run_shape) if group == "ideal" else runs
            for key, array in getattr(reading, group).items():
                self._append(f"{name}/{group}/{key}", f"{group} of {owner}", array, axes)
        self._metadata.add_reading(name, reading)

    def append_truth(self, name: str, truth: Truth) -> None:
        """Append the arrays of the truth of a link."""
        for key in ("time", *TRUTH_ARRAYS):
            self._append(f"truth/{name}/{key}", f"the truth of link {name!r}", getattr(truth, key), 0)
        self._metadata.add_truth(name)

    def append_current(self, current: Current) -> None:
        """Append the arrays of the current."""
        self._append("current/time", CURRENT_OWNER, current.time, 0)
        runs = current.velocity.ndim - 2
        self._append("current/velocity", CURRENT_OWNER, current.velocity, runs)
        if current.layers is not None:
            self._append("current/layers", CURRENT_OWNER, current.layers.velocity, runs)
        self._metadata.add_current(current)

    def append_changes(self, changes: Sequence[RunChange]) -> None:
        """Append changes of the run to the metadata."""
        self._metadata.changes += changes

    def _append(self, key: str, owner: str, array: AnyArray, runs: int) -> None:
        column = self._arrays.get(key)
        if column is None:
            path = self._work.folder / f"{self._files}.raw"
            self._files += 1
            row = (*array.shape[:runs], *array.shape[runs + 1 :])
            column = self._arrays[key] = DiskArray(owner, path, array.dtype, row, runs)
        if column.owner != owner:
            raise make_collision_error(self.path, key, owner, column.owner)
        column.append(array)

    def complete(self) -> None:
        """Write the archive and give it its name."""
        write_archive(self._archive, self._arrays, self._metadata.format())
        self._work.commit(self._archive)

    @property
    def _archive(self) -> Path:
        """The archive before it gets its name."""
        return self._work.folder / "archive.npz"

    def keep_content(self) -> str:
        """Keep the files of the arrays for `navsense recover`. Never raises."""
        with contextlib.suppress(OSError):
            self._archive.unlink(missing_ok=True)  # incomplete, and the disk may be full
        self._work.keep()
        return format_rescue(self.path)

    def release(self) -> None:
        """Remove the unfinished archive. Never raises."""
        self._work.release()


def write_archive(path: Path, columns: Mapping[str, DiskArray], text: str) -> None:
    """Write an archive of arrays and of the metadata of the recording."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for key, column in columns.items():
            with archive.open(make_entry(key), "w", force_zip64=True) as target:
                column.write(target)
        with archive.open(make_entry("meta"), "w", force_zip64=True) as target:
            np.lib.format.write_array(target, np.array(text), allow_pickle=False)


def read_truncated_columns(folder: Path) -> tuple[dict[str, DiskArray], str]:
    """Return the arrays in the hidden folder of a truncated recording, and its metadata.

    The arrays of a sensor, a link or the current are truncated to one length: the last time slice may be incomplete.
    """
    state = inputs.parse_json(inputs.read_bytes(str(folder / STATE_FILE), _STATE_KIND, inputs.MAX_METADATA))
    columns: dict[str, DiskArray] = {}
    columns_of: dict[str, list[DiskArray]] = {}
    for entry in state["columns"]:
        dtype, row = np.dtype(entry["dtype"]), tuple(entry["row"])
        column = DiskArray(entry["owner"], folder / Path(entry["file"]).name, dtype, row, entry["runs"])
        size = dtype.itemsize * int(np.prod(row))
        column.count = column.path.stat().st_size // size if size and column.path.exists() else 0
        columns[entry["key"]] = column
        owner = re.sub(f"^({'|'.join(ARRAY_GROUPS)}) of ", "", column.owner)
        columns_of.setdefault(owner, []).append(column)
    for owner_columns in columns_of.values():
        count = min(column.count for column in owner_columns)
        for column in owner_columns:
            column.truncate(count)
    return columns, str(state["meta"])


STATE_FILE = "state.json"
"""File in the hidden folder that lists the arrays and their files."""

CURRENT_OWNER = "the current of the water"
"""Owner of the arrays `current/...`."""

RESERVED_NAMES = frozenset(("time", "clock_error", "arrival", "valid", "emitted", *ARRAY_GROUPS))
"""Names that an output of a sensor cannot have in an archive."""


def list_keys(recorded_run: RecordedRun) -> Iterator[tuple[str, str]]:
    """Yield the key and the owner of each array of the recording of a world."""
    world = recorded_run.world
    for sensor in world.sensors:
        owner = f"sensor {sensor.name!r}"
        outputs = [output.name for output in sensor.spec.outputs]
        arrival = ("arrival",) if sensor.latency else ()
        for key in ("time", "clock_error", *arrival, "valid", "emitted", *outputs):
            yield f"{sensor.name}/{key}", owner
        for key in outputs if recorded_run.has_simulated_series else ():
            yield from ((f"{sensor.name}/{group}/{key}", f"{group} of {owner}") for group in ARRAY_GROUPS[1:4])
    for link in (link for model in world.models for link in model.links if recorded_run.has_simulated_series):
        for key in ("time", *TRUTH_ARRAYS):
            yield f"truth/{link.name}/{key}", f"the truth of link {link.name!r}"
    if world.environment.current is not None and recorded_run.has_simulated_series:
        layers = ("layers",) if world.current_topic.layers else ()
        yield from ((f"current/{key}", CURRENT_OWNER) for key in ("time", "velocity", *layers))


def check_keys(path: Path, recorded_run: RecordedRun) -> None:
    """Raise `RecordingError` if two arrays of a recording have one key: names can contain a slash."""
    owners: dict[str, str] = {}
    for key, owner in list_keys(recorded_run):
        first_owner = owners.setdefault(key, owner)
        if first_owner != owner:
            raise make_collision_error(path, key, owner, first_owner)


def make_collision_error(path: Path, key: str, owner: str, first_owner: str) -> RecordingError:
    """Return the error of two arrays with one key."""
    return RecordingError(
        f"{owner} and {first_owner} would have one key",
        key,
        where=Where(str(path)),
        remedy="rename the sensor without a slash, or write .mcap",
    )


def make_entry(key: str) -> zipfile.ZipInfo:
    """Return the entry of a key in the archive. Its date is constant: the same run gives the same bytes."""
    return zipfile.ZipInfo(key + ".npy")


@contextlib.contextmanager
def _open_archive(path: Path) -> Iterator[Mapping[str, AnyArray]]:
    """Yield the arrays of an archive. Any error of a damaged archive becomes a `RecordingError`."""
    with open_for_reading(path) as file:
        try:
            _check_archive(file)
            metadata.check_expansion(path, inputs.archive_expansion_problem(file))
            with np.load(file, allow_pickle=False) as archive:
                yield archive
        except RecordingError:
            raise
        except zipfile.BadZipFile as error:
            raise RecordingError(
                "is not a NumPy archive, or is damaged",
                allowed="must be an .npz recording",
                where=Where(str(path)),
                remedy=find_unrecoverable_remedy(path),
            ) from error
        except Exception as error:
            raise metadata.make_damaged_error(path, error) from error


def _check_archive(file: BinaryIO) -> None:
    # NumPy reads a file without this signature as another format.
    if file.read(4) != b"PK\x03\x04":
        raise zipfile.BadZipFile
    file.seek(0)


def _read_metadata(archive: Mapping[str, AnyArray]) -> dict[str, Any]:
    return metadata.parse_metadata(str(archive["meta"]))


def _read_times(archive: Mapping[str, AnyArray], name: str) -> FloatArray:
    time = archive[f"{name}/time"]
    _check_array(f"{name}/time", time, (time.size,), "f")
    if time.ndim != 1:
        raise DamagedError(f"damaged: array {name}/time has {time.ndim} axes")
    return time


def _check_array(key: str, array: AnyArray, shape: tuple[int, ...], kinds: str = "fiub") -> None:
    """Raise `DamagedError` if the first axes of an array are not `shape`, or its element type is of another kind."""
    if array.shape[: len(shape)] != shape or array.dtype.kind not in kinds:
        raise DamagedError(f"damaged: array {key} is {array.dtype} {array.shape}, which does not fit its times")


def _read_arrays(
    archive: Mapping[str, AnyArray], prefix: str, keys: Any, shape: tuple[int, ...]
) -> dict[str, AnyArray]:
    out = {}
    for key in keys:
        out[key] = archive[prefix + key]
        _check_array(prefix + key, out[key], shape)
    return out


def _read_reading(archive: Mapping[str, AnyArray], name: str, sensor_metadata: Mapping[str, Any]) -> Reading:
    time = _read_times(archive, name)
    keys = ("clock_error", "valid", "emitted", *(("arrival",) if sensor_metadata["latency"] else ()))
    columns = {key: archive[f"{name}/{key}"] for key in keys}
    shape = (*columns["clock_error"].shape[:-1], time.size)
    for key, column in columns.items():
        _check_array(f"{name}/{key}", column, shape, "b" if key in ("valid", "emitted") else "f")
        if column.ndim != len(shape):
            raise DamagedError(f"damaged: array {name}/{key} has too many axes")
    groups = {
        group: _read_arrays(
            archive,
            f"{name}/" if group == "arrays" else f"{name}/{group}/",
            sensor_metadata[group],
            time.shape if group == "ideal" and not sensor_metadata["ideal_in_runs"] else shape,
        )
        for group in ARRAY_GROUPS
    }
    return make_reading(name, sensor_metadata, time, columns, groups)


def _read_truth(archive: Mapping[str, AnyArray], name: str, epoch: int) -> Truth:
    time = _read_times(archive, f"truth/{name}")
    arrays = _read_arrays(archive, f"truth/{name}/", TRUTH_ARRAYS, time.shape)
    for key, array in arrays.items():
        if array.ndim != 2 or array.shape[1] != (4 if key == "orientation" else 3):
            raise DamagedError(f"damaged: array truth/{name}/{key} is {array.shape}")
    return make_truth(name, time, arrays, epoch)


def _read_current(archive: Mapping[str, AnyArray], current_metadata: Mapping[str, Any]) -> Current:
    time, velocity = _read_times(archive, "current"), archive["current/velocity"]
    if velocity.ndim not in (2, 3) or velocity.shape[-2:] != (time.size, 3) or velocity.dtype.kind != "f":
        raise DamagedError(f"damaged: array current/velocity is {velocity.dtype} {velocity.shape}")
    arrays = {"velocity": velocity}
    if "layers" in current_metadata:
        layers = arrays["layers"] = archive["current/layers"]
        shape = (*velocity.shape[:-1], len(current_metadata["layers"]["depths"]), 3)
        if layers.shape != shape or layers.dtype.kind != "f":
            raise DamagedError(f"damaged: array current/layers is {layers.dtype} {layers.shape}")
    return make_current(current_metadata, time, arrays)


def read(path: Path) -> Dataset:
    """Return the recording in an archive, bit for bit. Raises `RecordingError`."""
    with _open_archive(path) as archive:
        meta = _read_metadata(archive)
        readings = {name: _read_reading(archive, name, data) for name, data in meta["sensors"].items()}
        truth = {name: _read_truth(archive, name, meta["epoch"]) for name in meta["links"]}
        current = _read_current(archive, meta["current"]) if "current" in meta else None
        return Dataset(readings, truth, meta, current)


def read_truth(path: Path, select: LinkSelection) -> Dataset:
    """Return the truth of the selected links, and no reading. Raises `RecordingError`."""
    with _open_archive(path) as archive:
        meta = _read_metadata(archive)
        links = select_links(meta, select)
        if links is not None:
            return Dataset({}, {name: _read_truth(archive, name, meta["epoch"]) for name in links}, meta)
    return read(path)


def summarize(path: Path) -> RecordingSummary:
    """Return what an archive holds. Only the headers of the arrays and the times are read."""
    with _open_archive(path) as archive:
        meta = _read_metadata(archive)
        times = {entry: _read_times(archive, entry.label) for entry in list_entries(meta)}
        ends = [end for time in times.values() for end in (time[:1], time[-1:])]
        span = to_nanoseconds(meta["epoch"], np.concatenate([np.empty(0), *ends]))
    entries = tuple(SummaryEntry(entry.label, entry.type, int(time.size)) for entry, time in times.items())
    return make_summary(path, FORMAT.name, span, entries, meta)


def recover(file: Path, out: Path) -> RecoveryResult:
    """Write the complete rows of a truncated recording; `file` lists its arrays."""
    columns, text = read_truncated_columns(file.parent)
    with replace_file(out) as archive:
        write_archive(archive, columns, text)
    meta = inputs.parse_json(text)
    count = sum(columns[f"{name}/time"].count for name in meta["sensors"])
    return RecoveryResult(str(out), count, unit="row", notes=list_notes(meta.get(WORLD_JSON_KEY)))


FORMAT = Format(
    name="npz",
    suffixes=(".npz",),
    capabilities=LOSSLESS | {Capability.RUNS, Capability.RECOVERY},
    read=read,
    read_truth=read_truth,
    open_writer=lambda path, recorded_run: AtomicWriter(path, lambda: PendingNpz(path, recorded_run)),
    summarize=summarize,
    recovery=Recovery((STATE_FILE,), recover, magic=b"PK"),
)
