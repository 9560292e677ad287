"""Recordings as NumPy archives: one array a key, read by `numpy.load` alone.

Keys are `SENSOR/NAME`, `SENSOR/ideal/NAME`, `SENSOR/bias/NAME`, `SENSOR/turn_on_bias/NAME`, `SENSOR/fault/KIND`,
`SENSOR/time`, `SENSOR/clock_error`, `SENSOR/valid`, `SENSOR/emitted`, `truth/LINK/NAME`, `current/time`,
`current/velocity`, `current/layers`, and `meta`, a JSON text with units, frames and the run. Time slices are appended
to files in a hidden directory next to the target, so that memory stays within one time slice. The archive gets its name
when it is complete. After an error elsewhere it holds the time slices that were written before.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from navsense import inputs
from navsense.atomic import HiddenFolder, save_text
from navsense.errors import RecordingError, Where
from navsense.recordings import metadata
from navsense.recordings.base import WriterBase, check_target, closed_error, open_for_reading, os_error
from navsense.recordings.dataset import Dataset
from navsense.recordings.format import LOSSLESS, Capability, Format
from navsense.recordings.header import RecordingHeader, RecordingSummary, SummaryEntry
from navsense.recordings.mcap.reader import NOT_RECOVERABLE
from navsense.recordings.mcap.records import DamagedError
from navsense.recordings.summary import make_summary
from navsense.series import ARRAY_GROUPS, TRUTH_ARRAYS, Current, Reading, TimeSlice, Truth, to_nanoseconds
from navsense.typing import AnyArray, FloatArray

_STATE_KIND = inputs.FileKind("unfinished recording", RecordingError, "must hold a file state.json")

BLOCK_BYTES = 1 << 22
"""Bytes moved at a time when the archive is put together."""


@dataclass(eq=False)
class DiskArray:
    """One array on disk, time first: whose it is, element type, shape of a row, number of leading run axes, rows."""

    owner: str
    path: Path
    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    run_axes: int
    count: int = 0

    def append(self, array: AnyArray) -> None:
        """Add rows; `array` has its run axes in front."""
        moved = np.moveaxis(array, self.run_axes, 0) if self.run_axes else array
        if moved.dtype != self.dtype or moved.shape[1:] != self.row_shape:
            raise RecordingError(f"array {self.path.name} changed its type or shape", f"{array.dtype} {array.shape}")
        # Opened anew each time: a world may have more arrays than a process may have files.
        with self.path.open("ab") as file:
            file.write(np.ascontiguousarray(moved).data)
        self.count += moved.shape[0]

    def truncate(self, count: int) -> None:
        """Take away all rows behind the first `count`."""
        os.truncate(self.path, count * self.dtype.itemsize * int(np.prod(self.row_shape)))
        self.count = count

    def write(self, target: IO[bytes]) -> None:
        """Write the whole array in NumPy's own format, run axes in front again."""
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


class NpzWriter(WriterBase):
    """Writes slabs to one NumPy archive."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Make the working directory beside `path`. Raise `RecordingError` where that cannot be."""
        check_target(path)
        check_keys(path, recording)
        self._path = path
        self._recording = recording
        self._arrays: dict[str, DiskArray] = {}
        self._sensors: dict[str, dict[str, Any]] = {}
        self._links: list[str] = []
        self._current: dict[str, Any] | None = None
        self._files = 0
        self._closed = False
        try:
            self._work = HiddenFolder(path, is_recording=True)
        except OSError as error:
            raise os_error(path, error) from error

    def write(self, time_slice: TimeSlice) -> None:
        """Append a slab to the arrays; one that is interrupted leaves the slabs before it."""
        if self._closed:
            raise closed_error(self._path)
        counts = {key: column.count for key, column in self._arrays.items()}
        sensors, links = dict(self._sensors), list(self._links)
        try:
            for name, reading in time_slice.readings.items():
                self._write_reading(name, reading)
            if self._recording.truth:
                for name, truth in time_slice.truth.items():
                    self._write_truth(name, truth)
                if time_slice.current is not None:
                    self._write_current(time_slice.current)
        except OSError as error:
            self.abort()
            raise os_error(self._path, error) from error
        except Exception:
            self.abort()
            raise
        except BaseException:
            self._sensors, self._links = sensors, links
            self._truncate(counts)
            raise
        if len(self._arrays) > len(counts):
            self._save_state()

    def _save_state(self) -> None:
        """Store the file name of each array, so that the arrays can be read after a crash."""
        columns = [
            {
                "key": key,
                "owner": one.owner,
                "file": one.path.name,
                "dtype": one.dtype.str,
                "row": one.row_shape,
                "runs": one.run_axes,
            }
            for key, one in self._arrays.items()
        ]
        try:
            save_text(self._work.folder / STATE_FILE, json.dumps({"meta": self._format_metadata(), "columns": columns}))
        except OSError as error:
            self.abort()
            raise os_error(self._path, error) from error

    def _format_metadata(self) -> str:
        """Return the metadata of the recording."""
        return metadata.format_metadata(self._recording, self._sensors, self._links, self._current)

    def _truncate(self, counts: Mapping[str, int]) -> None:
        """Take the arrays back to these numbers of rows."""
        self._arrays = {key: column for key, column in self._arrays.items() if key in counts}
        try:
            for key, column in self._arrays.items():
                column.truncate(counts[key])
        except OSError:
            self.abort()

    def _write_reading(self, name: str, reading: Reading) -> None:
        """Append one sensor's rows."""
        runs = reading.clock_error.ndim - 1
        owner = f"sensor {name!r}"
        self._append(f"{name}/time", owner, reading.time, 0)
        self._append(f"{name}/clock_error", owner, reading.clock_error, runs)
        if reading.arrivals is not None:
            self._append(f"{name}/arrival", owner, reading.arrivals, runs)
        self._append(f"{name}/valid", owner, reading.valid, runs)
        self._append(f"{name}/emitted", owner, reading.emitted, runs)
        for key, array in reading.arrays.items():
            if key in RESERVED_NAMES:
                raise RecordingError(f"sensor {name!r} has an array of a name that is taken", key)
            self._append(f"{name}/{key}", owner, array, runs)
        for group in ARRAY_GROUPS[1:] if self._recording.truth else ():
            axes = len(reading.ideal_lead) if group == "ideal" else runs
            for key, array in getattr(reading, group).items():
                self._append(f"{name}/{group}/{key}", f"{group} of {owner}", array, axes)
        self._sensors.setdefault(name, metadata.sensor_header(self._recording, name, reading))

    def _write_truth(self, name: str, truth: Truth) -> None:
        """Append one link's rows."""
        for key in ("time", *TRUTH_ARRAYS):
            self._append(f"truth/{name}/{key}", f"the truth of link {name!r}", getattr(truth, key), 0)
        if name not in self._links:
            self._links.append(name)

    def _write_current(self, current: Current) -> None:
        """Append the water's velocity."""
        self._append("current/time", CURRENT_OWNER, current.time, 0)
        runs = current.velocity.ndim - 2
        self._append("current/velocity", CURRENT_OWNER, current.velocity, runs)
        if current.layers is not None:
            self._append("current/layers", CURRENT_OWNER, current.layers.velocity, runs)
        self._current = metadata.current_header(current)

    def _append(self, key: str, owner: str, array: AnyArray, runs: int) -> None:
        """Append rows to one array, which its first rows define."""
        column = self._arrays.get(key)
        if column is None:
            path = self._work.folder / f"{self._files}.raw"
            self._files += 1
            row = (*array.shape[:runs], *array.shape[runs + 1 :])
            column = self._arrays[key] = DiskArray(owner, path, array.dtype, row, runs)
        if column.owner != owner:
            raise collision_error(self._path, key, owner, column.owner)
        column.append(array)

    def close(self) -> None:
        """Put the archive together and give it its name."""
        if self._closed:
            return
        whole = self._work.folder / "whole.npz"
        try:
            write_archive(whole, self._arrays, self._format_metadata())
            self._work.commit(whole)
        except OSError as error:
            raise os_error(self._path, error) from error
        finally:
            self.abort()

    def salvage(self) -> None:
        """Keep the slabs that came before an error elsewhere, if there are any."""
        if self._arrays:
            self.close()
        else:
            self.abort()

    def abort(self) -> None:
        """Throw the unfinished archive away; never raises."""
        self._closed = True
        self._work.release()


def write_archive(path: Path, columns: Mapping[str, DiskArray], text: str) -> None:
    """Write an archive of arrays and of the metadata of the recording."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for key, column in columns.items():
            with archive.open(make_entry(key), "w", force_zip64=True) as target:
                column.write(target)
        with archive.open(make_entry("meta"), "w", force_zip64=True) as target:
            np.lib.format.write_array(target, np.array(text), allow_pickle=False)


def read_unfinished_columns(folder: Path) -> tuple[dict[str, DiskArray], str]:
    """Return the arrays in the hidden folder of a crashed recording, and its metadata.

    The arrays of a sensor, a link or the current are truncated to one length: the last slab may be incomplete.
    """
    state = inputs.parse_json(inputs.read_bytes(str(folder / STATE_FILE), _STATE_KIND, inputs.MAX_METADATA))
    columns: dict[str, DiskArray] = {}
    groups: dict[str, list[DiskArray]] = {}
    for one in state["columns"]:
        dtype, row = np.dtype(one["dtype"]), tuple(one["row"])
        column = DiskArray(one["owner"], folder / Path(one["file"]).name, dtype, row, one["runs"])
        size = dtype.itemsize * int(np.prod(row))
        column.count = column.path.stat().st_size // size if size and column.path.exists() else 0
        columns[one["key"]] = column
        group = column.owner.removeprefix("the errors of ").removeprefix("the truth of ")
        groups.setdefault(group, []).append(column)
    for together in groups.values():
        least = min(column.count for column in together)
        for column in together:
            column.truncate(least)
    return columns, str(state["meta"])


STATE_FILE = "state.json"
"""The file in a hidden folder that lists the file of each array."""

CURRENT_OWNER = "the current of the water"
"""Whose the arrays `current/...` are."""

RESERVED_NAMES = frozenset(("time", "clock_error", "arrival", "valid", "emitted", *ARRAY_GROUPS))
"""Names that a sensor's own array cannot have in an archive."""


def list_keys(recording: RecordingHeader) -> Iterator[tuple[str, str]]:
    """Yield the key of each array that a recording's world will have, and whose it is."""
    world = recording.world
    for sensor in world.sensors:
        owner = f"sensor {sensor.name!r}"
        outputs = [output.name for output in sensor.spec.outputs]
        arrival = ("arrival",) if sensor.latency else ()
        for key in ("time", "clock_error", *arrival, "valid", "emitted", *outputs):
            yield f"{sensor.name}/{key}", owner
        for key in outputs if recording.truth else ():
            yield from ((f"{sensor.name}/{group}/{key}", f"{group} of {owner}") for group in ARRAY_GROUPS[1:4])
    for link in (link for model in world.models for link in model.links if recording.truth):
        for key in ("time", *TRUTH_ARRAYS):
            yield f"truth/{link.name}/{key}", f"the truth of link {link.name!r}"
    if world.environment.current is not None and recording.truth:
        layers = ("layers",) if world.current_topic.layers else ()
        yield from ((f"current/{key}", CURRENT_OWNER) for key in ("time", "velocity", *layers))


def check_keys(path: Path, recording: RecordingHeader) -> None:
    """Raise `RecordingError` where two arrays of a recording would have one key: a name may hold a slash."""
    owners: dict[str, str] = {}
    for key, owner in list_keys(recording):
        other = owners.setdefault(key, owner)
        if other != owner:
            raise collision_error(path, key, owner, other)


def collision_error(path: Path, key: str, owner: str, other: str) -> RecordingError:
    """Return the error of a key that two arrays would have."""
    return RecordingError(
        f"{owner} and {other} would have one key",
        key,
        where=Where(str(path)),
        remedy="rename the sensor without a slash, or write .mcap",
    )


def make_entry(key: str) -> zipfile.ZipInfo:
    """Return the archive's entry of a key; its date is fixed, so that the same run gives the same bytes."""
    return zipfile.ZipInfo(key + ".npy")


@contextmanager
def _open_archive(path: Path) -> Iterator[Mapping[str, AnyArray]]:
    """Yield the arrays of an archive; whatever a damaged one makes NumPy raise becomes a `RecordingError`."""
    with open_for_reading(path) as file:
        try:
            _check_archive(file)
            metadata.check_expansion(path, inputs.archive_expansion_problem(file))
            with np.load(file, allow_pickle=False) as archive:
                yield archive
        except RecordingError:
            raise
        except zipfile.BadZipFile as error:
            remedy = NOT_RECOVERABLE if path.suffix.lower() == ".npz" else ""
            raise metadata.not_recording_error(
                path, "it is no NumPy archive, or was cut off or damaged", remedy
            ) from error
        except Exception as error:
            raise metadata.damaged_error(path, error) from error


def _check_archive(file: BinaryIO) -> None:
    """Raise where a file does not begin as an archive does: NumPy would take it for something else."""
    if file.read(4) != b"PK\x03\x04":
        raise zipfile.BadZipFile
    file.seek(0)


def _read_metadata(archive: Mapping[str, AnyArray]) -> dict[str, Any]:
    """Return what an archive says of itself."""
    return metadata.parse_metadata(str(archive["meta"]))


def _read_times(archive: Mapping[str, AnyArray], name: str) -> FloatArray:
    """Return the times of a sensor or of a link's truth."""
    time = archive[f"{name}/time"]
    _check_array(f"{name}/time", time, (time.size,), "f")
    if time.ndim != 1:
        raise DamagedError(f"damaged: array {name}/time has {time.ndim} axes")
    return time


def _check_array(key: str, array: AnyArray, shape: tuple[int, ...], kinds: str = "fiub") -> None:
    """Raise where an array's first axes are not those of `shape`, or its numbers of another kind."""
    if array.shape[: len(shape)] != shape or array.dtype.kind not in kinds:
        raise DamagedError(f"damaged: array {key} is {array.dtype} {array.shape}, which does not fit its times")


def _read_arrays(
    archive: Mapping[str, AnyArray], prefix: str, keys: Any, shape: tuple[int, ...]
) -> dict[str, AnyArray]:
    """Return arrays by their keys behind `prefix`; their first axes must be `shape`."""
    out = {}
    for key in keys:
        out[key] = archive[prefix + key]
        _check_array(prefix + key, out[key], shape)
    return out


def _read_reading(archive: Mapping[str, AnyArray], name: str, header: Mapping[str, Any]) -> Reading:
    """Return what an archive holds of one sensor."""
    time = _read_times(archive, name)
    clock_error = archive[f"{name}/clock_error"]
    shape = (*clock_error.shape[:-1], time.size)
    _check_array(f"{name}/clock_error", clock_error, shape, "f")
    flags = {key: archive[f"{name}/{key}"] for key in ("valid", "emitted")}
    for key, flag in flags.items():
        _check_array(f"{name}/{key}", flag, shape, "b")
        if flag.ndim != len(shape):
            raise DamagedError(f"damaged: array {name}/{key} has too many axes")
    arrivals = archive[f"{name}/arrival"] if header.get("latency") else None
    if arrivals is not None:
        _check_array(f"{name}/arrival", arrivals, shape, "f")
    varied = bool(header["ideal_in_runs"])
    groups = {
        group: _read_arrays(
            archive,
            f"{name}/" if group == "arrays" else f"{name}/{group}/",
            header[group],
            time.shape if group == "ideal" and not varied else shape,
        )
        for group in ARRAY_GROUPS
    }
    return Reading(
        name=name,
        type=header["type"],
        frame=header["frame"],
        unit=header["unit"],
        time=time,
        clock_error=clock_error,
        epoch=header["epoch"],
        arrivals=arrivals,
        arrays=groups["arrays"],
        ideal=groups["ideal"],
        bias=groups["bias"],
        turn_on_bias=groups["turn_on_bias"],
        fault=groups["fault"],
        ideal_in_runs=varied,
        **flags,
    )


def _read_truth(archive: Mapping[str, AnyArray], name: str, epoch: int) -> Truth:
    """Return what an archive holds of one link."""
    time = _read_times(archive, f"truth/{name}")
    arrays = _read_arrays(archive, f"truth/{name}/", TRUTH_ARRAYS, time.shape)
    for key, array in arrays.items():
        if array.ndim != 2 or array.shape[1] != (4 if key == "orientation" else 3):
            raise DamagedError(f"damaged: array truth/{name}/{key} is {array.shape}")
    return Truth(name=name, time=time, epoch=epoch, **arrays)


def _read_current(archive: Mapping[str, AnyArray], about: Mapping[str, Any]) -> Current | None:
    """Return the water's velocity, None where the archive has none."""
    if "current" not in about:
        return None
    time, velocity, head = _read_times(archive, "current"), archive["current/velocity"], about["current"]
    if velocity.ndim not in (2, 3) or velocity.shape[-2:] != (time.size, 3) or velocity.dtype.kind != "f":
        raise DamagedError(f"damaged: array current/velocity is {velocity.dtype} {velocity.shape}")
    layers = metadata.make_layers(head)
    if layers is not None:
        layers = replace(layers, velocity=archive["current/layers"])
        if layers.velocity.shape != (*velocity.shape[:-1], len(layers.depths), 3) or layers.velocity.dtype.kind != "f":
            raise DamagedError(f"damaged: array current/layers is {layers.velocity.dtype} {layers.velocity.shape}")
    return Current(head["topic"], tuple(head["position"]), time, velocity, head["epoch"], layers)


def read(path: Path) -> Dataset:
    """Return the recording in an archive, bit for bit. Raises `RecordingError`."""
    with _open_archive(path) as archive:
        meta = _read_metadata(archive)
        readings = {name: _read_reading(archive, name, head) for name, head in meta["sensors"].items()}
        truth = {name: _read_truth(archive, name, meta["epoch"]) for name in meta["links"]}
        return Dataset(readings, truth, meta, _read_current(archive, meta))


def summarize(path: Path) -> RecordingSummary:
    """Return what a NumPy archive holds; only the arrays' heads and the times are read."""
    with _open_archive(path) as archive:
        meta = _read_metadata(archive)
        entries, spans = [], [np.empty(0)]
        named = [(name, name, str(head["type"])) for name, head in meta["sensors"].items()]
        named += [(f"truth/{name}",) * 2 + ("truth",) for name in meta["links"]]
        named += [("current",) * 3] if meta.get("current") else []
        for key, name, kind in named:
            time = _read_times(archive, key)
            entries.append(SummaryEntry(name, kind, int(time.size)))
            spans += [time[:1], time[-1:]]
        times = to_nanoseconds(meta["epoch"], np.concatenate(spans))
    return make_summary(path, "npz", times, tuple(entries), meta)


FORMAT = Format(
    name="npz",
    suffixes=(".npz",),
    capabilities=LOSSLESS | {Capability.RUNS, Capability.RECOVERY},
    read=read,
    open_writer=NpzWriter,
    summarize=summarize,
)
