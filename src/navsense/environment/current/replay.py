"""Replay of a recorded current: velocities by time from arrays, a table or a recording, with linear interpolation.

    v(t) = v_i + (t - t_i) / (t_(i+1) - t_i) (v_(i+1) - v_i)

The current is the same everywhere. Times are from the start of the run. `outside` is the rule outside the record:
"error" raises `FieldError`, "hold" returns the first or last velocity.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import (
    MAX_FILE_SIZE,
    FileKind,
    archive_expansion_problem,
    check_regular_file,
    expansion_problem,
    path_exists,
)
from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Quaternion, Times, Vectors
from navsense.environment.current._tables import parse_numbers, read_rows
from navsense.environment.current.base import (
    MAX_COORDINATE,
    MAX_SPEED,
    OutsideRule,
    check_coordinate,
    check_outside_rule,
    find_interval,
    make_read_only_array,
    rotate_heading,
    to_world_axes,
)

HEADERS = {
    "time,x,y,z": "world",
    "time,east,north,up": "enu",
    "time,north,east,down": "ned",
}
"""Frame by the header of a table."""

FRAMES = ("world", "enu", "ned")

_ALLOWED = "must be a CSV file of time and velocity, a bag, an .npz archive or a .parquet table"
_FILE_KIND = FileKind("record of a current", FieldError, _ALLOWED)
_BAGS = (".bag", ".mcap", ".db3")


@kernel
def _interpolate(time: Times, times: FloatArray, values: Vectors, hold: bool, out: Vectors) -> int:
    """Write the velocity (n, 3); return the first row outside, or -1."""
    near, last = 0, times.shape[0] - 1
    for i in range(time.shape[0]):
        t = time[i]
        if not times[0] <= t <= times[last]:
            if not hold or t != t:
                return i
            t = max(times[0], min(times[last], t))
        if last == 0:
            for axis in range(3):
                out[i, axis] = values[0, axis]
        else:
            near = find_interval(times, t, near)
            fraction = (t - times[near]) / (times[near + 1] - times[near])
            for axis in range(3):
                out[i, axis] = values[near, axis] + fraction * (values[near + 1, axis] - values[near, axis])
    return -1


@dataclass(frozen=True, eq=False)
class CurrentReplay:
    """A recorded current.

    times: (n,) s, increasing.
    velocity: (n, 3) m/s.
    frame: "world", "enu" or "ned".
    heading: angle from east to the world's x axis (rad), for "enu" and "ned".
    outside: rule for times outside the record.

    Raises `FieldError` for times that do not increase and for invalid velocities.
    """

    times: FloatArray
    velocity: Vectors
    frame: str = "world"
    heading: float = 0.0
    outside: OutsideRule = "error"

    def __post_init__(self) -> None:
        """Check the values."""
        if self.frame not in FRAMES:
            raise FieldError("frame of a current", self.frame, allowed=f"must be one of {', '.join(FRAMES)}")
        check_outside_rule("outside of a record", self.outside)
        check_coordinate("heading of a current (rad)", self.heading)
        _check_velocities(np.asarray(self.times, dtype=np.float64), np.asarray(self.velocity, dtype=np.float64), None)

    @cached_property
    def _arrays(self) -> tuple[FloatArray, Vectors]:
        """The times, and the velocities along the world's axes."""
        velocity = np.asarray(self.velocity, dtype=np.float64)
        if self.frame == "ned":
            velocity = np.stack((velocity[:, 1], velocity[:, 0], -velocity[:, 2]), axis=1)
        return make_read_only_array(np.asarray(self.times).tolist()), to_world_axes(velocity.tolist(), self.heading)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        topic: str | None = None,
        frame: str | None = None,
        heading: float = 0.0,
        start: float | None = None,
        outside: OutsideRule = "error",
    ) -> CurrentReplay:
        """Read a record of a current.

        | file | content |
        |---|---|
        | `.csv` | one of `HEADERS`, which defines the frame |
        | folder of CSV files | a recording of navsense with a current |
        | `.npz` | arrays `time` (n,) s and `velocity` (n, 3) m/s, or a recording of navsense |
        | `.parquet` | a recording of navsense |
        | `.bag`, `.mcap`, `.db3`, ROS bag folder | a `topic` of geometry_msgs |

        Supported messages are Twist, TwistStamped, TwistWithCovarianceStamped, Vector3 and Vector3Stamped. The time of
        a message is its stamp, or its receive time if it has no stamp. Except for CSV, `frame` defaults to "world".
        `start` is the time (s) in the record at the start of the run. It defaults to the first row.

        Raises `FieldError` with file and line for an unreadable file, another header, message type or topic, and rows
        out of order.
        """
        name = _find_table(os.fspath(path))
        suffix = Path(name).suffix.lower()
        lines: Sequence[int] | None = None
        if suffix in _BAGS or (path_exists(Path(name)) and Path(name).is_dir()):
            quantities = import_module("navsense.recordings.quantities")
            times, velocity = quantities.read_velocities(Path(name), topic, start)
            start = 0.0
            frame = frame or "world"
        elif topic is not None:
            allowed = "must not be given: only a ROS bag has topics"
            raise FieldError("topic of the current", topic, allowed=allowed, where=Where(name))
        elif suffix == ".npz":
            times, velocity = _read_npz(name)
            frame = frame or "world"
        elif suffix == ".parquet":
            times, velocity = _read_parquet(name)
            frame = frame or "world"
        else:
            times, velocity, table_frame, lines = _read_table(name)
            if frame not in (None, table_frame):
                allowed = f"must be {table_frame}, the frame of the header"
                raise FieldError("frame of a current", frame, allowed=allowed, where=Where(name))
            frame = table_frame
        begin = float(times[0]) if start is None and times.size else start or 0.0
        frame_heading = 0.0 if frame == "world" else heading
        try:
            _check_velocities(times, velocity, None if lines is None else [Where(name, line) for line in lines])
            return cls(times - begin, velocity, frame, frame_heading, outside)
        except FieldError as error:
            error.where = error.where or Where(name)
            raise

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` outside the record if the rule is "error"."""
        times, values = self._arrays
        out = np.empty((time.shape[0], 3))
        row = _interpolate(time, times, values, self.outside == "hold", out)
        if row >= 0:
            raise FieldError(
                "instant (s)",
                float(time[row]),
                row=row,
                allowed=f"must be from {times[0]:.9g} to {times[-1]:.9g}, the span of the recorded current",
                remedy='use outside="hold" for the first or last velocity',
            )
        return out

    def rotate(self, rotation: Quaternion) -> CurrentReplay:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        return replace(self, heading=rotate_heading(self.heading, rotation))


def _check_velocities(times: FloatArray, velocity: Vectors, where: Sequence[Where] | None) -> None:
    """Raise `FieldError` for wrong shapes, times that do not increase and invalid velocities."""
    if times.ndim != 1 or times.size == 0 or velocity.shape != (times.size, 3):
        shapes = f"{times.shape} and {velocity.shape}"
        raise FieldError("shapes of times and velocities", shapes, allowed="must be (n,) and (n, 3), n at least 1")
    bad_times = ~(np.abs(times) <= MAX_COORDINATE * 1e3)
    bad_times[1:] |= ~(np.diff(times) > 0.0)
    bad_velocities = ~(np.abs(velocity) <= MAX_SPEED).all(axis=1)
    for bad, what, allowed in (
        (bad_times, "time of a current (s)", "must be finite and after the row before"),
        (bad_velocities, "velocity of a current (m/s)", f"must be finite and of absolute value up to {MAX_SPEED:g}"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            value = float(times[row]) if bad is bad_times else tuple(velocity[row].tolist())
            raise FieldError(what, value, row=row, allowed=allowed, where=where[row] if where else None)


def _find_table(name: str) -> str:
    """Return the table of the current in a CSV recording, otherwise the path of the recording."""
    if path_exists(Path(name)) and Path(name).is_file():
        return name
    # The recordings package imports this one, so it is imported when a recording is read.
    found: Path = import_module("navsense.recordings.csv_tables").find_current_table(Path(name))
    return name if found == Path(name) else str(found)


def _read_table(name: str) -> tuple[FloatArray, Vectors, str, list[int]]:
    """Return times, velocities, frame and line numbers of a CSV table. Raises `FieldError`."""
    (line, header), *table = read_rows(name, _FILE_KIND)
    frame = HEADERS.get(",".join(header))
    if frame is None:
        allowed = "must be one of " + " | ".join(HEADERS)
        raise FieldError("header of the record", ",".join(header), allowed=allowed, where=Where(name, line))
    if not table:
        raise FieldError("rows of the record", "none", allowed="must have at least one", where=Where(name))
    found = parse_numbers(name, table, header, range(4))
    return found[:, 0].copy(), found[:, 1:].copy(), frame, [number for number, _ in table]


def _select_single_run(name: str, velocity: FloatArray) -> Vectors:
    """Return velocities without the axis of runs. Raises `FieldError` for several runs."""
    if velocity.ndim != 3:
        return velocity
    if velocity.shape[0] != 1:
        raise _run_count_error(name, velocity.shape[0])
    first: Vectors = velocity[0]
    return first


def _run_count_error(name: str, runs: int) -> FieldError:
    """Return the error of a record of several runs or without a run."""
    remedy = "extract one run with: navsense convert --run" if runs else "record a world with a current"
    return FieldError(
        "record of a current", f"{runs} runs", allowed="must have one run", where=Where(name), remedy=remedy
    )


def _read_parquet(name: str) -> tuple[FloatArray, Vectors]:
    """Return times and velocities of the current in a Parquet recording of navsense. Raises `FieldError`."""
    check_regular_file(name, _FILE_KIND, MAX_FILE_SIZE)
    picked = ["run", "time", *(f"velocity.{axis}" for axis in "xyz")]
    try:
        from pyarrow import parquet

        data = parquet.read_metadata(name)
        problem = expansion_problem(8 * data.num_rows * len(picked), Path(name).stat().st_size)
        if problem:
            raise FieldError("record of a current", problem, where=Where(name))  # noqa: TRY301
        table = parquet.read_table(name, columns=picked, filters=[("series", "==", "current")])
        columns = [np.asarray(table[key], dtype=np.float64) for key in picked]
    except FieldError:
        raise
    except Exception as cause:
        raise FieldError("record of a current", str(cause), allowed=_FILE_KIND.allowed, where=Where(name)) from cause
    runs = np.unique(columns[0]).size
    if runs != 1:
        raise _run_count_error(name, runs)
    return columns[1], np.stack(columns[2:], axis=1)


def _read_npz(name: str) -> tuple[FloatArray, Vectors]:
    """Return times and velocities of an .npz archive. Raises `FieldError`."""
    check_regular_file(name, _FILE_KIND, MAX_FILE_SIZE)
    if not zipfile.is_zipfile(name):  # the error of NumPy would recommend allow_pickle
        raise FieldError("record of a current", "is not an archive", allowed=_FILE_KIND.allowed, where=Where(name))
    try:
        problem = archive_expansion_problem(name)
        if problem:
            raise FieldError("record of a current", problem, where=Where(name))
        with np.load(name, allow_pickle=False) as archive:
            prefix = "current/" if "current/time" in archive else ""
            time, velocity = (np.array(archive[prefix + key], dtype=np.float64) for key in ("time", "velocity"))
            return time, _select_single_run(name, velocity)
    except KeyError as cause:
        allowed = "must hold time and velocity, or be a recording of navsense with a current"
        raise FieldError("record of a current", str(cause), allowed=allowed, where=Where(name)) from cause
    except (OSError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as cause:
        raise FieldError("record of a current", str(cause), allowed=_FILE_KIND.allowed, where=Where(name)) from cause
