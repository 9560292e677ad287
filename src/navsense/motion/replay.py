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
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from navsense.core.errors import MotionError, Where
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import AnyArray, FloatArray, Quaternions, Times, Vectors
from navsense.motion._spline import interpolate, make_continuous, smooth, split_rows
from navsense.motion.base import LogSource, MotionBlock, find_first_true
from navsense.motion.trajectory import Trajectory, trajectory_from_spline

ROW_COLUMNS = ("time", "x", "y", "z", "qw", "qx", "qy", "qz")
"""Names of the numbers of a row in errors."""

MIN_BANDWIDTH_SHARE = 1e-3
"""Smallest 2 pi bandwidth times spacing. Below it, rounding errors of the smoothing spline exceed micrometres."""


NOISY_ACCELERATION = 0.1
"""m/s^2: noise of the acceleration above which a log that is not smoothed has a warning."""


@dataclass(frozen=True, eq=False)
class Replay:
    """The motion of a log from its first row (t = 0) to its last row.

    trajectory: the spline.
    bandwidth: frequency (Hz) at which smoothing halves the amplitude, None for the interpolating spline.
    position_noise: rms noise per axis (m), estimated from the rows. NaN for fewer than five rows.
    acceleration_noise: rms noise per axis (m/s^2) of the spline's acceleration. NaN for fewer than five rows.
    source: where the rows were read; None for arrays.
    notes: what was not read.

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
    source: LogSource | None = None
    notes: tuple[str, ...] = ()

    __repr__, _repr_html_ = format_spec, format_spec_html

    @property
    def end(self) -> float:
        """Time (s) of the last row."""
        return self.trajectory.end

    def find_warnings(self) -> Iterator[str]:
        """Yield a warning if the rows are not smoothed and the noise of the acceleration exceeds `NOISY_ACCELERATION`.

        The warning names a bandwidth that reduces the noise to this value.
        """
        if self.bandwidth is None and self.acceleration_noise > NOISY_ACCELERATION:
            noise = f"the motion log has {self.acceleration_noise:.2g} m/s^2 of noise in its acceleration"
            bandwidth = suggest_bandwidth(self.position_noise, float(np.median(np.diff(self.trajectory.knots))))
            options = (
                f'--bandwidth {bandwidth:g}, <navsense:motion bandwidth="{bandwidth:g}"> or bandwidth={bandwidth:g}'
            )
            yield f"{noise}; smooth it with {options} (Hz)"

    def at(self, time: Times) -> MotionBlock:
        """Return the motion at `time` (n,) s, in any order.

        Raises `MotionError` for a time that is below 0, after `end` or not finite.
        """
        return self.trajectory.at(time)


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
    return build_replay(*stack_rows(arrays[0], arrays[1], arrays[2], lambda _: None), bandwidth)


def stack_rows(
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


def build_replay(time: Times, rows: FloatArray, bandwidth: float | None) -> Replay:
    """Return the motion through the values `rows[:, 0]`, x y z qw qx qy qz, of `rows` (n, 2, 7) at times (n,) s from 0.

    Raises `MotionError` for an invalid bandwidth (Hz) and for rows without a finite spline.
    """
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
    row = find_first_true(bad)
    if row >= 0:
        values = [time[row], *position[row], *rotation[row]]
        column = find_first_true(~np.isfinite(values))
        what, value = f"{ROW_COLUMNS[column]} of row {row}", float(values[column])
        raise MotionError(what, value, allowed="must be finite", where=find_line(row))
    row = find_first_true(np.concatenate(([False], time[1:] <= time[:-1])))
    if row >= 0:
        what, value = f"time of row {row} (s)", float(time[row])
        allowed, remedy = (
            f"must be after the row before, {float(time[row - 1])!r}",
            "sort the rows and remove duplicates",
        )
        raise MotionError(what, value, allowed=allowed, where=find_line(row), remedy=remedy)
    row = find_first_true(~np.any(rotation, axis=1))
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


def suggest_bandwidth(noise: float, spacing: float) -> float:
    """Return a bandwidth (Hz) that reduces the noise of the acceleration to `NOISY_ACCELERATION`, to one digit.

    Arguments as for `acceleration_noise`. The value is at most a quarter of the log's rate.
    """
    low, high = MIN_BANDWIDTH_SHARE / (2.0 * math.pi * spacing), 0.25 / spacing
    for _ in range(40):
        middle = math.sqrt(low * high)
        if acceleration_noise(noise, spacing, middle) > NOISY_ACCELERATION:
            high = middle
        else:
            low = middle
    size = 10.0 ** math.floor(math.log10(low))
    return math.floor(low / size) * size
