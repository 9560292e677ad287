"""Piecewise polynomial motion: position, and attitude as a quaternion of any length, differentiated exactly.

Position p(t) and quaternion s(t) are polynomials in time between knots:

    v = p',  a = p'',  rotation_wb = s / |s|
    omega_b = 2 Im(s* s') / |s|^2
    alpha_b = 2 Im(s* s'') / |s|^2 - 2 omega_b (s . s') / |s|^2

where s* is the conjugate and Im the vector part. They follow from s = |s| q with q' = q omega_b / 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from navsense.errors import MotionError
from navsense.motion._checks import check_instants, copy_read_only, pose_row
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
from navsense.motion.base import MotionBlock, empty_arrays
from navsense.pose import Pose
from navsense.typing import FloatArray, Times

MIN_QUATERNION_NORM = 0.25
"""Least length of the attitude spline within a segment, as a share of its largest there."""

LOOP_TOLERANCE = 1e-9
"""How far apart (m, and in quaternion components) the first and last pose of a loop may lie."""


@dataclass(frozen=True, eq=False, init=False)
class Trajectory:
    """Motion by polynomials of degree k in time on m segments.

    `knots` (m + 1,) s, strictly increasing from 0. `coefficients` (m, k + 1, 7), the highest power of (t - knots[i])
    first; columns x y z (m, world) and w x y z (a quaternion of any length). With `loop` the motion repeats for ever
    after the last knot, and its polynomials have to join there. Both arrays are kept read-only.

    Raises `MotionError` for wrong shapes, numbers that are not finite, knots that do not increase from 0, and a
    quaternion that comes close to zero length within a segment.
    """

    knots: Times
    loop: bool
    _rows: FloatArray
    _form: int

    def __init__(self, knots: Times, coefficients: FloatArray | Spline, loop: bool = False) -> None:
        """Check the arrays and keep them read-only."""
        spline = coefficients if isinstance(coefficients, Spline) else Spline(coefficients, POLYNOMIALS)
        object.__setattr__(self, "knots", copy_read_only(knots))
        object.__setattr__(self, "loop", loop)
        object.__setattr__(self, "_rows", copy_read_only(spline.rows))
        object.__setattr__(self, "_form", spline.form)
        shape = self._rows.shape
        count = shape[0] + (spline.form == POLYNOMIALS) if len(shape) == 3 else 0  # of knots
        if count < 2 or shape[1] < 1 or shape[2] != 7 or self.knots.shape != (count,):
            raise MotionError(
                "shapes of knots and coefficients",
                (self.knots.shape, shape),
                allowed="must be (m + 1,) and (m, k + 1, 7) with m >= 1",
            )
        check_times(self.knots, "knot")
        with np.errstate(all="ignore"):  # the interpreter warns of the overflow that is looked for
            bad = first_not_finite(self.knots, self._rows, self._form)
        if bad >= 0:
            raise MotionError(
                f"coefficients of segment {bad}, from {self.knots[bad]} s",
                allowed="must be finite",
                remedy="move the times apart or the positions nearer",
            )
        segment = find_short_quaternion(self.knots, self._rows, self._form, MIN_QUATERNION_NORM)
        if segment >= 0:
            raise MotionError(
                f"attitude spline between {self.knots[segment]} and {self.knots[segment + 1]} s comes near zero length",
                remedy="add a waypoint there, space the times more evenly, or raise the bandwidth of a log",
            )

    @property
    def coefficients(self) -> FloatArray:
        """Coefficients (m, k + 1, 7), read-only. A spline keeps half as many numbers: each access computes them."""
        if self._form == POLYNOMIALS:
            return self._rows
        coefficients = np.empty((self.knots.shape[0] - 1, 4, 7))
        expand_all(self.knots, self._rows, self._form, coefficients)
        coefficients.setflags(write=False)
        return coefficients

    @property
    def end(self) -> float:
        """Last instant (s): the last knot, infinity for a loop."""
        return math.inf if self.loop else float(self.knots[-1])

    def at(self, time: Times) -> MotionBlock:
        """Return the truth at the instants `time` (n,) s, in any order; m, rad and s, as `MotionBlock` says.

        Raises `MotionError` for an instant below 0, past `end` or not finite.
        """
        time = check_instants(time, self.end)
        arrays = empty_arrays(time.shape[0])
        evaluate(
            self.knots,
            self._rows,
            self._form,
            float(self.knots[-1]) if self.loop else math.inf,
            time,
            *arrays,
        )
        return MotionBlock(*arrays)


def check_times(time: Times, name: str) -> None:
    """Raise `MotionError` where the times (n,) s of the `name`s are not finite, or do not increase from 0."""
    bad = np.flatnonzero(~np.isfinite(time))
    if bad.size:
        raise MotionError(f"time of {name} {bad[0]} (s)", float(time[bad[0]]), allowed="must be finite")
    if time[0] != 0.0:
        raise MotionError(
            f"time of {name} 0 (s)", float(time[0]), allowed="must be 0", remedy="subtract it from all times"
        )
    bad = np.flatnonzero(time[1:] <= time[:-1]) + 1
    if bad.size:
        before = float(time[bad[0] - 1])
        raise MotionError(
            f"time of {name} {bad[0]} (s)",
            float(time[bad[0]]),
            allowed=f"must be past that of the one before, {before!r}",
            remedy="put the times in order and leave out repeats",
        )


def waypoints(time: Sequence[float] | Times, poses: Sequence[Pose], *, loop: bool = False) -> Trajectory:
    """Return the motion through `poses` (world, m) at `time` (n,) s: cubic splines of position and quaternion, C2.

    Without `loop` it starts and ends at rest, and ends with the last waypoint. With `loop` the last pose has to be the
    first one again, and the motion goes round for ever, smooth at the joint as well.

    Raises `MotionError` for fewer than two waypoints, times that do not increase from 0, poses that are not finite or
    not unit, successive attitudes more than 120 degrees apart, and a loop that does not close.
    """
    times = np.array(time, dtype=np.float64)
    if times.ndim != 1 or times.shape[0] != len(poses):
        shapes = (times.shape, len(poses))
        raise MotionError("shape of the times and number of poses", shapes, allowed="must be one time a pose")
    if len(poses) < 2:
        raise MotionError("number of waypoints", len(poses), allowed="must be >= 2", remedy="use Still for one pose")
    check_times(times, "waypoint")
    values = np.array([pose_row(pose) for pose in poses])
    far = make_continuous(values[:, 3:])
    if far:
        cosine = min(abs(float(np.dot(values[far, 3:], values[far - 1, 3:]))), 1.0)
        raise MotionError(
            f"turn from waypoint {far - 1} to {far} (degrees)",
            round(math.degrees(2.0 * math.acos(cosine)), 6),
            allowed="must be <= 120",
            remedy="add a waypoint between them",
        )
    if loop:
        return _make_loop(times, values)
    return _make_spline(times, values, "clamped")


def _make_loop(time: Times, values: FloatArray) -> Trajectory:
    """Return the periodic spline through `values` (n, 7). Raise MotionError where the last row is not the first."""
    sign = -1.0 if float(np.dot(values[0, 3:], values[-1, 3:])) < 0.0 else 1.0
    turned = values[0] * np.array([1.0, 1.0, 1.0, sign, sign, sign, sign])
    gap = float(np.abs(values[-1] - turned).max())
    if gap > LOOP_TOLERANCE:
        raise MotionError(
            "largest difference between the first and last pose of the loop",
            gap,
            allowed=f"must be <= {LOOP_TOLERANCE}",
            remedy="end with the first pose, or leave out loop",
        )
    values[-1] = turned
    if sign < 0.0:
        # An odd number of full turns brings the quaternion back with its sign turned: it repeats after two rounds.
        second = values[1:].copy()
        second[:, 3:] *= -1.0
        time = np.concatenate((time, time[-1] + time[1:]))
        values = np.concatenate((values, second))
    return _make_spline(time, values, "periodic")


def _make_spline(time: Times, values: FloatArray, ends: str) -> Trajectory:
    """Return the motion by the cubic spline through `values` (n, 7)."""
    rows = np.empty((values.shape[0], 2, 7))
    rows[:, 0] = values
    return trajectory_from_spline(time, interpolate(time, rows, ends), loop=ends == "periodic")


def trajectory_from_spline(time: Times, spline: Spline, *, loop: bool = False) -> Trajectory:
    """Return the trajectory of arrays that nobody else holds, without copying them."""
    time.setflags(write=False)
    spline.rows.setflags(write=False)
    return Trajectory(time, spline, loop)
