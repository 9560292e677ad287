"""Replay of a motion log: an interpolating or smoothing spline of its rows, and the noise of its acceleration.

The rows of a log are measured. Let sigma (m) be the standard deviation of white position noise in rows at even spacing
h (s). The acceleration of the spline then has the mean square over time

    a^2 = sigma^2 / h^4 * mean over theta in [-pi, pi] of e / (1 + kappa e)^2
    e(theta) = 12 (1 - cos theta)^2 / (2 + cos theta),   kappa = (2 pi bandwidth h)^-4

sigma^2 e / h^4 is the spectrum of the interpolating spline's acceleration (kappa = 0). 1 / (1 + kappa e) is the gain of
the smoothing spline at theta = 2 pi f h. There are two limits:

    a = sqrt(12 (3 sqrt 3 - 4)) sigma / h^2 = 3.78864 sigma / h^2          without smoothing
    a = sigma w^2 sqrt(h w sqrt(2) / 16),   w = 2 pi bandwidth             for a bandwidth far below the log's rate

sqrt(2) / 16 is the integral of u^4 / (1 + u^4)^2 over the real line, pi sqrt(2) / 8, divided by 2 pi.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from navsense.core import inputs
from navsense.core.errors import MotionError, Where
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.text import parse_decimal
from navsense.core.typing import AnyArray, FloatArray, Quaternions, Times, Vectors
from navsense.motion._spline import interpolate, make_continuous, smooth, split_rows
from navsense.motion.base import MotionBlock
from navsense.motion.trajectory import Trajectory, trajectory_from_spline

LOG_COLUMNS = ("time", "x", "y", "z", "qw", "qx", "qy", "qz")
"""Columns of a CSV log: s, m, unit quaternion."""

TUM_COLUMNS = ("t", "x", "y", "z", "qx", "qy", "qz", "qw")
TUM_ORDER = (0, 1, 2, 3, 7, 4, 5, 6)
"""Columns of a TUM row in the order of `LOG_COLUMNS`."""

_FILE_KIND = inputs.FileKind("log", MotionError, "must be a CSV or TUM file in UTF-8")

MIN_BANDWIDTH_SHARE = 1e-3
"""Smallest 2 pi bandwidth times spacing. Below it, rounding errors of the smoothing spline exceed micrometres."""


@dataclass(frozen=True, eq=False)
class Replay:
    """The motion of a log from its first row (t = 0) to its last row.

    trajectory: the spline.
    bandwidth: frequency (Hz) at which smoothing halves the amplitude, None for the interpolating spline.
    position_noise: rms noise per axis (m), estimated from the rows. NaN for fewer than five rows.
    acceleration_noise: rms noise per axis (m/s^2) of the spline's acceleration. NaN for fewer than five rows.

    Motion that is too fast for the rate of the log counts as noise.

    >>> time = np.linspace(0.0, 2.0, 21)
    >>> position = np.column_stack((time, np.zeros(21), np.zeros(21)))
    >>> log = ns.motion.from_arrays(time, position, np.tile([1.0, 0.0, 0.0, 0.0], (21, 1)))
    >>> log.end, log.bandwidth
    (2.0, None)
    """

    trajectory: Trajectory
    bandwidth: float | None
    position_noise: float
    acceleration_noise: float

    __repr__, _repr_html_ = format_spec, format_spec_html

    @property
    def end(self) -> float:
        """Time (s) of the last row."""
        return self.trajectory.end

    def at(self, time: Times) -> MotionBlock:
        """Return the motion at `time` (n,) s, in any order.

        Raises `MotionError` for a time that is below 0, after `end` or not finite.
        """
        return self.trajectory.at(time)


def load(path: str | os.PathLike[str], *, bandwidth: float | None = None) -> Replay:
    """Read a motion log and return its motion.

    CSV has the header ``time,x,y,z,qw,qx,qy,qz`` (s, m, world frame, of the model's canonical link) and no comments.
    TUM has rows ``t x y z qx qy qz qw`` and `#` comments. The suffix .csv, .tum or .txt decides, otherwise the first
    row. The first row is at t = 0. `bandwidth` is that of `from_arrays`.

    Raises `MotionError` with file and line for an unreadable file and for invalid rows.

    >>> rows = [[0, 0, 0, 5, 1, 0, 0, 0], [1, 1, 0, 5, 1, 0, 0, 0], [2, 2, 0, 5, 1, 0, 0, 0]]
    >>> np.savetxt("track.csv", rows, delimiter=",", header="time,x,y,z,qw,qx,qy,qz", comments="")
    >>> log = ns.motion.load("track.csv")
    >>> replayed = ns.simulate(world, motion={"quadrotor": log}, seed=7)  # ends with the log
    >>> replayed["imu"].time.size
    2000
    """
    try:
        return _build_replay(*_read_columns(path), bandwidth)
    except MotionError as error:
        if error.where is None:
            error.where = Where(os.fspath(path))
        raise


def from_arrays(time: Times, position: Vectors, rotation: Quaternions, *, bandwidth: float | None = None) -> Replay:
    """Return the motion of the rows `time` (n,) s, `position` (n, 3) m (world) and `rotation` (n, 4) w x y z.

    The first row is at t = 0. Quaternions are normalised. Without `bandwidth`, the motion is the cubic C2 spline
    through the rows. With `bandwidth` (Hz), it is a smoothing spline of position and quaternion with the gain
    ``1 / (1 + (f / bandwidth)^4)`` at frequency f.

    Raises `MotionError` for wrong shapes, fewer than two rows, numbers that are not finite and times that do not
    increase. Quaternions must not be zero, and a turn between rows must be at most 120 degrees. The bandwidth must be
    below half the log's rate.

    >>> time, rotation = [0.0, 1.0, 2.0], np.tile([1.0, 0.0, 0.0, 0.0], (3, 1))
    >>> log = ns.motion.from_arrays(time, [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], rotation)
    >>> log.at(np.array([1.5])).velocity_w.round(6)
    array([[1., 0., 0.]])
    """
    try:
        arrays = [np.asarray(array, dtype=np.float64) for array in (time, position, rotation)]
    except (TypeError, ValueError) as error:
        raise MotionError("time, position and rotation", str(error), allowed="must be arrays of numbers") from error
    shapes = tuple(array.shape for array in arrays)
    count = arrays[0].size
    if shapes != ((count,), (count, 3), (count, 4)):
        raise MotionError("shapes of time, position and rotation", shapes, allowed="must be (n,), (n, 3) and (n, 4)")
    return _build_replay(*_stack_rows(arrays[0], arrays[1], arrays[2], lambda _: None), bandwidth)


def _read_columns(path: str | os.PathLike[str]) -> tuple[Times, FloatArray]:
    """Return times and values of a log file. The parsed table is freed on return."""
    table, find_line = _read_log(os.fspath(path))
    return _stack_rows(table[:, 0], table[:, 1:4], table[:, 4:], find_line)


def _read_log(name: str) -> tuple[FloatArray, Callable[[int], Where]]:
    """Return the rows (n, 8) of a log in the order of `LOG_COLUMNS`, and a function that finds the line of a row.

    The suffix .csv, .tum or .txt decides on the format; otherwise a comma in the first row means CSV. NumPy parses the
    rows in blocks. If it fails, the rows are parsed one by one to find the first invalid line. Raises `MotionError`.
    """
    suffix = Path(name).suffix.lower()
    is_csv = suffix == ".csv"
    if suffix not in (".csv", ".tum", ".txt"):
        is_csv = "," in next((line for _, line in _list_rows(name, is_csv=False)), "")
    start, count = _scan_log(name, is_csv)

    def list_numbers() -> Iterator[tuple[int, str]]:
        return ((number, line) for number, line in _list_rows(name, is_csv) if number >= start)

    def find_line(row: int) -> Where:
        return Where(name, next(islice(list_numbers(), row, None))[0])

    values = np.empty((count, len(LOG_COLUMNS)))
    lines = (line for _, line in list_numbers())
    for part in split_rows(count):
        try:
            text = islice(lines, part.stop - part.start)
            block = np.loadtxt(text, delimiter="," if is_csv else None, comments=None, ndmin=2)
            values[part] = block if is_csv else block[:, TUM_ORDER]
        except (ValueError, IndexError) as error:
            _raise_first_error(name, list_numbers(), is_csv)
            raise MotionError("log", str(error), where=Where(name), allowed=_allowed_rows(is_csv)) from error
        if block.shape[1] != len(LOG_COLUMNS):
            _raise_first_error(name, list_numbers(), is_csv)
    return values, find_line


def _list_rows(name: str, is_csv: bool) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of each row that is not blank and, in TUM, not a comment."""
    for number, line in enumerate(inputs.read_lines(name, _FILE_KIND), 1):
        if line and not line.isspace() and (is_csv or not line.lstrip().startswith("#")):
            yield number, line


def _scan_log(name: str, is_csv: bool) -> tuple[int, int]:
    """Return the line of the first row of numbers and the number of rows. Raises `MotionError` for another header."""
    rows = _list_rows(name, is_csv)
    if is_csv:
        line, header = next(rows, (1, ""))
        if tuple(part.strip() for part in header.split(",")) != LOG_COLUMNS:
            allowed, remedy = f"must be {','.join(LOG_COLUMNS)}", "a TUM log is a .tum or .txt file"
            what, where = "header of the log", Where(name, line)
            raise MotionError(what, header.strip(), allowed=allowed, where=where, remedy=remedy)
    first, _ = next(rows, (0, ""))
    if not first:
        raise MotionError("log without rows", where=Where(name), allowed=_allowed_rows(is_csv))
    return first, 1 + sum(1 for _ in rows)


def _allowed_rows(is_csv: bool) -> str:
    return f"must hold rows of {','.join(LOG_COLUMNS) if is_csv else ' '.join(TUM_COLUMNS)}"


def _raise_first_error(name: str, rows: Iterable[tuple[int, str]], is_csv: bool) -> None:
    """Raise `MotionError` for the first row that is not eight numbers."""
    columns = LOG_COLUMNS if is_csv else TUM_COLUMNS
    for number, line in rows:
        parts = line.split(",") if is_csv else line.split()
        if len(parts) != len(columns):
            allowed = f"must be {len(columns)}: {(',' if is_csv else ' ').join(columns)}"
            raise MotionError("number of columns", len(parts), allowed=allowed, where=Where(name, number))
        for part, column in zip(parts, columns, strict=True):
            if parse_decimal(part) is None:
                raise MotionError(column, part.strip(), allowed="must be a finite number", where=Where(name, number))


def _stack_rows(
    time: Times, position: Vectors, rotation: Quaternions, find_line: Callable[[int], Where | None]
) -> tuple[Times, FloatArray]:
    """Check the rows of a log; return times from 0 and values for a spline. `find_line` locates a row in the file."""
    if time.shape[0] < 2:
        raise MotionError("number of rows", time.shape[0], allowed="must be >= 2")
    _check_rows(time, position, rotation, find_line)
    rows = np.empty((time.shape[0], 2, 7))
    rows[:, 0, :3] = position
    for part in split_rows(time.shape[0]):
        unit = rotation[part] / np.abs(rotation[part]).max(axis=1, keepdims=True)
        unit /= np.sqrt((unit * unit).sum(axis=1, keepdims=True))
        rows[part, 0, 3:] = unit
    make_continuous(rows[:, 0, 3:], "row", "log at a higher rate", find_line)
    return time - time[0], rows


def _build_replay(time: Times, rows: FloatArray, bandwidth: float | None) -> Replay:
    """Return the motion of the values `rows[:, 0]`."""
    position = rows[:, 0, :3]
    spacing = float(np.median(np.diff(time)))
    # After an overflow the coefficients are not finite; `Trajectory` raises an error for them.
    with np.errstate(all="ignore"):
        noise = position_noise(time, position)
        if bandwidth is None:
            spline = interpolate(time, rows, "not-a-knot")
        else:
            _check_bandwidth(bandwidth, spacing, time.shape[0])
            spline = smooth(time, rows, bandwidth)
    return Replay(trajectory_from_spline(time, spline), bandwidth, noise, acceleration_noise(noise, spacing, bandwidth))


def _check_rows(
    time: Times, position: Vectors, rotation: Quaternions, find_line: Callable[[int], Where | None]
) -> None:
    """Raise `MotionError` for the first row that is not finite, has a zero quaternion or does not increase."""
    bad = ~np.isfinite(time)
    for array in (position, rotation):
        bad |= ~np.isfinite(array).all(axis=1)
    row = _first_true(bad)
    if row >= 0:
        values = [time[row], *position[row], *rotation[row]]
        column = _first_true(~np.isfinite(values))
        what, value = f"{LOG_COLUMNS[column]} of row {row}", float(values[column])
        raise MotionError(what, value, allowed="must be finite", where=find_line(row))
    row = _first_true(np.concatenate(([False], time[1:] <= time[:-1])))
    if row >= 0:
        what, value = f"time of row {row} (s)", float(time[row])
        allowed, remedy = (
            f"must be after the row before, {float(time[row - 1])!r}",
            "sort the rows and remove duplicates",
        )
        raise MotionError(what, value, allowed=allowed, where=find_line(row), remedy=remedy)
    row = _first_true(~np.any(rotation, axis=1))
    if row >= 0:
        raise MotionError(f"quaternion of row {row}", "0 0 0 0", allowed="must not be zero", where=find_line(row))


def _check_bandwidth(bandwidth: float, spacing: float, count: int) -> None:
    """Raise `MotionError` if rows `spacing` s apart cannot be smoothed to `bandwidth` Hz."""
    if count < 5:
        raise MotionError("number of rows", count, allowed="must be >= 5 to smooth", remedy="omit bandwidth")
    low, high = MIN_BANDWIDTH_SHARE / (2.0 * math.pi * spacing), 0.5 / spacing
    if not low <= bandwidth < high:
        allowed = f"must be >= {low:.6g} and below {high:.6g}, half the log's rate"
        remedy = "subsample the log" if bandwidth < low else "omit it for an interpolating spline"
        raise MotionError("bandwidth (Hz)", bandwidth, allowed=allowed, remedy=remedy)


def position_noise(time: Times, position: Vectors) -> float:
    """Return the rms per axis (m) of white noise in `position` (n, 3) m at `time` (n,) s; NaN for n < 5.

    It is the rms of fourth divided differences, which are zero for a cubic, each scaled to the variance of one row. For
    even spacing: ``(p0 - 4 p1 + 6 p2 - 4 p3 + p4) / sqrt(70)``.
    """
    count = time.shape[0] - 4
    if count < 1:
        return math.nan
    difference = np.zeros((count, 3))
    for rows in split_rows(count):
        part = slice(rows.start, rows.stop + 4)
        difference[rows] = _scaled_differences(time[part], position[part])
    difference *= difference
    return float(np.sqrt(np.mean(difference)))


def _scaled_differences(time: Times, position: Vectors) -> FloatArray:
    """Return the fourth divided differences (n - 4, 3) of rows, scaled to the variance of one row."""
    count = time.shape[0] - 4
    times = [time[k : k + count] for k in range(5)]
    span = times[4] - times[0]
    weights: list[FloatArray] = []
    for k in range(5):
        product = np.ones(count)
        for j in range(5):
            if j != k:
                product *= (times[k] - times[j]) / span
        weights.append(1.0 / product)
    scale = np.sqrt(sum((weight * weight for weight in weights), np.zeros(count)))
    difference: AnyArray = np.zeros((count, 3))
    for k in range(5):
        difference += (weights[k] / scale)[:, None] * (position[k : k + count] - position[2 : 2 + count])
    return difference


def acceleration_noise(noise: float, spacing: float, bandwidth: float | None) -> float:
    """Return the rms acceleration per axis (m/s^2) of the spline for white position noise of rms `noise` (m).

    Rows are `spacing` s apart. The module docstring has the formula. With theta = 2 atan z it is
    e = 48 z^4 / ((1 + z^2)(3 + z^2)). The mean is computed by the midpoint rule over phi with
    z = b tan(phi / 2); b is of the order of the pass band.
    """
    kappa, band = 0.0, 1.0
    if bandwidth is not None:
        angle = 2.0 * math.pi * bandwidth * spacing
        kappa, band = angle**-4, min(angle / 2.0, 1.0)
    points = 4096
    tangent = np.tan((np.arange(points) + 0.5) * (math.pi / points) - math.pi / 2.0)
    z2 = (band * tangent) ** 2
    energy = 48.0 * z2 * z2 / ((1.0 + z2) * (3.0 + z2))
    mean = float(np.mean(energy / (1.0 + kappa * energy) ** 2 * band * (1.0 + tangent * tangent) / (1.0 + z2)))
    return noise / spacing / spacing * math.sqrt(mean)


def _first_true(flags: AnyArray) -> int:
    """Return the index of the first true flag, or -1."""
    return int(np.argmax(flags)) if bool(flags.any()) else -1
