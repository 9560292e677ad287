"""Piecewise polynomial motion: position and an unnormalised quaternion, differentiated exactly.

Position p(t) and quaternion s(t) are polynomials in time between knots:

    v = p',  a = p'',  rotation_wb = s / |s|
    omega_b = 2 Im(s* s') / |s|^2
    alpha_b = 2 Im(s* s'') / |s|^2 - 2 omega_b (s . s') / |s|^2

where s* is the conjugate and Im the vector part. The formulas follow from s = |s| q with q' = q omega_b / 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from navsense.core.errors import MotionError
from navsense.core.pose import Pose
from navsense.core.typing import FloatArray, Times
from navsense.motion._spline import (
    POLYNOMIALS,
    Spline,
    evaluate,
    expand_all,
    find_short_quaternion,
    first_not_finite,
    interpolate,
    make_continuous,
)
from navsense.motion.base import MotionBlock, check_instants, copy_read_only, empty_arrays, pose_row

MIN_QUATERNION_NORM = 0.25
"""Smallest ratio of the shortest to the longest quaternion within a segment."""

LOOP_TOLERANCE = 1e-9
"""Largest difference (m, and of quaternion components) between the first and last pose of a loop."""


@dataclass(frozen=True, eq=False, init=False)
class Trajectory:
    """A motion of polynomials of degree k in time on m segments.

    knots: (m + 1,) s, strictly increasing from 0.
    coefficients: (m, k + 1, 7), the highest power of (t - knots[i]) first. Columns x y z (m, world) and w x y z
        (quaternion, not normalised).
    loop: the motion repeats after the last knot. The caller must make the polynomials continuous there.

    Raises `MotionError` for wrong shapes, numbers that are not finite, knots that do not increase from 0, and a
    quaternion of nearly zero length.

    >>> line = ns.motion.waypoints([0.0, 10.0], [ns.Pose(), ns.Pose((10.0, 0.0, 0.0))])
    >>> line.end, line.at(np.array([5.0])).velocity_w.round(6)
    (10.0, array([[1.5, 0. , 0. ]]))
    """

    knots: Times
    loop: bool
    _rows: FloatArray
    _form: int

    def __init__(self, knots: Times, coefficients: FloatArray | Spline, loop: bool = False) -> None:
        """Check the arrays and store them read-only."""
        spline = coefficients if isinstance(coefficients, Spline) else Spline(coefficients, POLYNOMIALS)
        object.__setattr__(self, "knots", copy_read_only(knots))
        object.__setattr__(self, "loop", loop)
        object.__setattr__(self, "_rows", copy_read_only(spline.rows))
        object.__setattr__(self, "_form", spline.form)
        shape = self._rows.shape
        knot_count = shape[0] + (spline.form == POLYNOMIALS) if len(shape) == 3 else 0
        if knot_count < 2 or shape[1] < 1 or shape[2] != 7 or self.knots.shape != (knot_count,):
            allowed = "must be (m + 1,) and (m, k + 1, 7) with m >= 1"
            raise MotionError("shapes of knots and coefficients", (self.knots.shape, shape), allowed=allowed)
        check_times(self.knots, "knot")
        with np.errstate(all="ignore"):  # the interpreted kernel warns about overflow
            bad = first_not_finite(self.knots, self._rows, self._form)
        if bad >= 0:
            remedy = "move the times apart or the positions nearer"
            what = f"coefficients of segment {bad}, from {self.knots[bad]} s"
            raise MotionError(what, allowed="must be finite", remedy=remedy)
        segment = find_short_quaternion(self.knots, self._rows, self._form, MIN_QUATERNION_NORM)
        if segment >= 0:
            start, end = self.knots[segment], self.knots[segment + 1]
            remedy = "add a waypoint there, space the times more evenly, or raise the bandwidth of a log"
            raise MotionError(f"attitude spline between {start} and {end} s comes near zero length", remedy=remedy)

    @property
    def coefficients(self) -> FloatArray:
        """Coefficients (m, k + 1, 7), read-only. For a spline, each access computes them."""
        if self._form == POLYNOMIALS:
            return self._rows
        coefficients = np.empty((self.knots.shape[0] - 1, 4, 7))
        expand_all(self.knots, self._rows, self._form, coefficients)
        coefficients.setflags(write=False)
        return coefficients

    @property
    def end(self) -> float:
        """Time (s) of the last knot, infinity for a loop."""
        return math.inf if self.loop else float(self.knots[-1])

    def at(self, time: Times) -> MotionBlock:
        """Return the motion at `time` (n,) s, in any order.

        Raises `MotionError` for a time that is below 0, after `end` or not finite.
        """
        time = check_instants(time, self.end)
        arrays = empty_arrays(time.shape[0])
        period = float(self.knots[-1]) if self.loop else math.inf
        evaluate(self.knots, self._rows, self._form, period, time, *arrays)
        return MotionBlock(*arrays)


def check_times(time: Times, name: str) -> None:
    """Raise `MotionError` if times (n,) s are not finite or do not increase from 0. `name` is the noun for an entry."""
    bad = np.flatnonzero(~np.isfinite(time))
    if bad.size:
        raise MotionError(f"time of {name} {bad[0]} (s)", float(time[bad[0]]), allowed="must be finite")
    if time[0] != 0.0:
        remedy = "subtract it from all times"
        raise MotionError(f"time of {name} 0 (s)", float(time[0]), allowed="must be 0", remedy=remedy)
    bad = np.flatnonzero(time[1:] <= time[:-1]) + 1
    if bad.size:
        allowed = f"must be after {float(time[bad[0] - 1])!r} s, the time before"
        remedy = "sort the times and remove duplicates"
        raise MotionError(f"time of {name} {bad[0]} (s)", float(time[bad[0]]), allowed=allowed, remedy=remedy)


def waypoints(time: Sequence[float] | Times, poses: Sequence[Pose], *, loop: bool = False) -> Trajectory:
    """Return the motion through `poses` (world, m) at `time` (n,) s: cubic C2 splines of position and quaternion.

    Without `loop`, the motion starts and ends at rest. With `loop`, the last pose must equal the first, and the motion
    repeats without a discontinuity.

    Raises `MotionError` for fewer than two waypoints and times that do not increase from 0. A turn between waypoints
    must be at most 120 degrees, and a loop must close.

    >>> poses = [ns.Pose(), ns.Pose((10.0, 0.0, 0.0)), ns.Pose((10.0, 5.0, 0.0))]
    >>> track = ns.motion.waypoints([0.0, 10.0, 15.0], poses)
    >>> track.at(np.array([0.0, 10.0, 15.0])).position_w.round(6)
    array([[ 0.,  0.,  0.],
           [10.,  0.,  0.],
           [10.,  5.,  0.]])
    """
    times = np.array(time, dtype=np.float64)
    if times.ndim != 1 or times.shape[0] != len(poses):
        shapes = (times.shape, len(poses))
        raise MotionError("shape of the times and number of poses", shapes, allowed="must be one time per pose")
    if len(poses) < 2:
        remedy = "use Stationary for one pose"
        raise MotionError("number of waypoints", len(poses), allowed="must be >= 2", remedy=remedy)
    check_times(times, "waypoint")
    values = np.array([pose_row(pose) for pose in poses])
    make_continuous(values[:, 3:], "waypoint", "add a waypoint between them")
    if loop:
        times, values = _close_loop(times, values)
    rows = np.empty((values.shape[0], 2, 7))
    rows[:, 0] = values
    return trajectory_from_spline(times, interpolate(times, rows, "periodic" if loop else "clamped"), loop=loop)


def _close_loop(time: Times, values: FloatArray) -> tuple[Times, FloatArray]:
    """Return the waypoints of one period. Raises `MotionError` if the last pose is not the first."""
    sign = -1.0 if float(np.dot(values[0, 3:], values[-1, 3:])) < 0.0 else 1.0
    first = values[0] * np.array([1.0, 1.0, 1.0, sign, sign, sign, sign])
    gap = float(np.abs(values[-1] - first).max())
    if gap > LOOP_TOLERANCE:
        what, allowed = "largest difference between the first and last pose of the loop", f"must be <= {LOOP_TOLERANCE}"
        raise MotionError(what, gap, allowed=allowed, remedy="end with the first pose, or omit loop")
    values[-1] = first
    if sign < 0.0:
        # An odd number of full turns changes the sign of the quaternion, so the quaternion repeats after two rounds.
        second = values[1:].copy()
        second[:, 3:] *= -1.0
        time = np.concatenate((time, time[-1] + time[1:]))
        values = np.concatenate((values, second))
    return time, values


def trajectory_from_spline(time: Times, spline: Spline, *, loop: bool = False) -> Trajectory:
    """Return the trajectory of a spline without copying its arrays. The caller must not keep references to them."""
    time.setflags(write=False)
    spline.rows.setflags(write=False)
    return Trajectory(time, spline, loop)
