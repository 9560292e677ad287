"""Recordings as NumPy archives: one array a key, read by `numpy.load` alone.

Keys are `SENSOR/NAME`, `SENSOR/truth/NAME`, `SENSOR/errors/NAME`, `SENSOR/time`, `SENSOR/clock_error`, `SENSOR/valid`,
`SENSOR/emitted`, `truth/LINK/NAME`, and `meta`, a JSON text with units, frames and the run. Slabs are appended to files
in a directory beside the target, so memory is bounded by a slab; the archive appears under its name when it is whole.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from navsense.errors import SinkError
from navsense.series import TRUTH_ARRAYS, Reading, Slab, Truth
from navsense.sinks.base import Recording, check_target, os_error, version
from navsense.typing import AnyArray

BLOCK_BYTES = 1 << 22
"""Bytes moved at a time when the archive is put together."""

FORMAT = 1
"""Version of the keys and of `meta`."""


@dataclass(eq=False)
class Column:
    """One array on disk, time first: element type, shape of a row, number of leading run axes, rows so far."""

    path: Path
    dtype: np.dtype[Any]
    row: tuple[int, ...]
    runs: int
    count: int = 0

    def append(self, array: AnyArray) -> None:
        """Add rows; `array` has its run axes in front."""
        moved = np.moveaxis(array, self.runs, 0) if self.runs else array
        if moved.dtype != self.dtype or moved.shape[1:] != self.row:
            raise SinkError(f"array {self.path.name} changed its type or shape", f"{array.dtype} {array.shape}")
        # Opened anew each time: a world may have more arrays than a process may have files.
        with self.path.open("ab") as file:
            file.write(np.ascontiguousarray(moved).data)
        self.count += moved.shape[0]

    def write(self, target: IO[bytes]) -> None:
        """Write the whole array in NumPy's own format, run axes in front again."""
        shape = (*self.row[: self.runs], self.count, *self.row[self.runs :])
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(target, header)
        if self.count == 0 or 0 in shape:
            return
        if not self.runs:
            with self.path.open("rb") as source:
                shutil.copyfileobj(source, target, BLOCK_BYTES)
            return
        rows = np.memmap(self.path, dtype=self.dtype, mode="r", shape=(self.count, *self.row))
        step = max(1, BLOCK_BYTES // max(1, self.dtype.itemsize * int(np.prod(self.row[self.runs :]))))
        for run in np.ndindex(*self.row[: self.runs]):
            for start in range(0, self.count, step):
                target.write(np.ascontiguousarray(rows[(slice(start, start + step), *run)]).tobytes())


class NpzSink:
    """Writes slabs to one NumPy archive."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Make the working directory beside `path`. Raise `SinkError` where that cannot be."""
        check_target(path)
        self._path = path
        self._recording = recording
        self._columns: dict[str, Column] = {}
        self._constants: dict[str, AnyArray] = {}
        self._sensors: dict[str, dict[str, Any]] = {}
        self._links: list[str] = []
        self._closed = False
        try:
            self._directory = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        except OSError as error:
            raise os_error(path, error) from error

    def __enter__(self) -> Self:
        """Return this sink."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close, or end after an error."""
        if kind is None:
            self.close()
        else:
            self.abort()

    def write(self, slab: Slab) -> None:
        """Append a slab to the arrays."""
        try:
            for name, reading in slab.readings.items():
                self._write_reading(name, reading)
            if self._recording.truth:
                for name, truth in slab.truth.items():
                    self._write_truth(name, truth)
        except OSError as error:
            self.abort()
            raise os_error(self._path, error) from error
        except BaseException:
            self.abort()
            raise

    def _write_reading(self, name: str, reading: Reading) -> None:
        """Append one sensor's rows."""
        runs = reading.clock_error.ndim - 1
        self._append(f"{name}/time", reading.time, 0)
        self._append(f"{name}/clock_error", reading.clock_error, runs)
        self._append(f"{name}/valid", reading.valid, runs)
        self._append(f"{name}/emitted", reading.emitted, runs)
        for key, array in reading.arrays.items():
            if key in RESERVED:
                raise SinkError(f"sensor {name!r} has an array of a name that is taken", key)
            self._append(f"{name}/{key}", array, runs)
        kept: Mapping[str, AnyArray] = reading.truth if self._recording.truth else {}
        hidden: Mapping[str, AnyArray] = reading.errors if self._recording.truth else {}
        for key, array in kept.items():
            self._append(f"{name}/truth/{key}", array, 0)
        for key, array in hidden.items():
            if is_constant(key, array, hidden):
                self._constants.setdefault(f"{name}/errors/{key}", array.copy())
            else:
                self._append(f"{name}/errors/{key}", array, runs)
        self._sensors.setdefault(
            name,
            {
                "type": reading.type,
                "frame": reading.frame,
                "unit": dict(reading.unit),
                "epoch": reading.epoch,
                "arrays": list(reading.arrays),
                "truth": list(kept),
                "errors": list(hidden),
            },
        )

    def _write_truth(self, name: str, truth: Truth) -> None:
        """Append one link's rows."""
        for key in ("time", *TRUTH_ARRAYS):
            self._append(f"truth/{name}/{key}", getattr(truth, key), 0)
        if name not in self._links:
            self._links.append(name)

    def _append(self, key: str, array: AnyArray, runs: int) -> None:
        """Append rows to one array, which its first rows define."""
        column = self._columns.get(key)
        if column is None:
            path = self._directory / f"{len(self._columns)}.raw"
            row = (*array.shape[:runs], *array.shape[runs + 1 :])
            column = self._columns[key] = Column(path, array.dtype, row, runs)
        column.append(array)

    def _meta(self) -> str:
        """Return what the arrays are, as JSON."""
        recording = self._recording
        return json.dumps(
            {
                "format": FORMAT,
                "program": "navsense",
                "version": version(),
                "world": recording.world.name,
                "seed": recording.seed,
                "epoch": recording.epoch,
                "duration": recording.duration,
                "runs": [int(run) for run in recording.runs],
                "sensors": self._sensors,
                "links": self._links,
            }
        )

    def close(self) -> None:
        """Put the archive together and give it its name."""
        if self._closed:
            return
        whole = self._directory / "whole.npz"
        try:
            with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                for key, column in self._columns.items():
                    with archive.open(entry(key), "w", force_zip64=True) as target:
                        column.write(target)
                for key, array in {**self._constants, "meta": np.array(self._meta())}.items():
                    with archive.open(entry(key), "w", force_zip64=True) as target:
                        np.lib.format.write_array(target, np.asarray(array), allow_pickle=False)
            whole.replace(self._path)
        except OSError as error:
            raise os_error(self._path, error) from error
        finally:
            self.abort()

    def abort(self) -> None:
        """Throw the unfinished archive away; never raises."""
        self._closed = True
        shutil.rmtree(self._directory, ignore_errors=True)


RESERVED = frozenset(("time", "clock_error", "valid", "emitted", "truth", "errors"))
"""Names that a sensor's own array cannot have in an archive."""


def is_constant(key: str, array: AnyArray, errors: Mapping[str, AnyArray]) -> bool:
    """Return whether a hidden error is one value for the run: a turn-on bias without a time axis."""
    base = errors.get(key.removesuffix("_turn_on"))
    return key.endswith("_turn_on") and base is not None and array.ndim == base.ndim - 1


def entry(key: str) -> zipfile.ZipInfo:
    """Return the archive's entry of a key; its date is fixed, so that the same run gives the same bytes."""
    return zipfile.ZipInfo(key + ".npy")
