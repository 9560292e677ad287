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
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from navsense import inputs
from navsense.errors import SinkError, Where
from navsense.outputs import HiddenFolder, save_text
from navsense.recordings import metadata
from navsense.recordings.base import RecordingHeader, WriterBase, check_target, closed_error, os_error
from navsense.series import ARRAY_GROUPS, TRUTH_ARRAYS, Current, Reading, TimeSlice, Truth
from navsense.typing import AnyArray

_STATE_KIND = inputs.FileKind("unfinished recording", SinkError, "must hold a file state.json")

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
            raise SinkError(f"array {self.path.name} changed its type or shape", f"{array.dtype} {array.shape}")
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
        """Make the working directory beside `path`. Raise `SinkError` where that cannot be."""
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
                raise SinkError(f"sensor {name!r} has an array of a name that is taken", key)
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
    """Raise `SinkError` where two arrays of a recording would have one key: a name may hold a slash."""
    owners: dict[str, str] = {}
    for key, owner in list_keys(recording):
        other = owners.setdefault(key, owner)
        if other != owner:
            raise collision_error(path, key, owner, other)


def collision_error(path: Path, key: str, owner: str, other: str) -> SinkError:
    """Return the error of a key that two arrays would have."""
    return SinkError(
        f"{owner} and {other} would have one key",
        key,
        where=Where(str(path)),
        remedy="rename the sensor without a slash, or write .mcap",
    )


def make_entry(key: str) -> zipfile.ZipInfo:
    """Return the archive's entry of a key; its date is fixed, so that the same run gives the same bytes."""
    return zipfile.ZipInfo(key + ".npy")
