"""A motion that the caller drives, step by step: for a controller or another simulator in the loop.

The caller gives the finished state at the end of each step. Inside a step of length h, from state 0 to state 1, with
s = (t - t_0) / h: position is the cubic Hermite curve of positions and velocities, velocity is linear, acceleration is
``(v_1 - v_0) / h``, the attitude turns at a constant rate (the rotation vector between the two attitudes over h), and
so the angular acceleration is zero. The residual of this reading against the caller's own continuous motion is of order
h in acceleration and h^2 in attitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from navsense.compiled import kernel
from navsense.errors import MotionError
from navsense.motion._checks import pose_row
from navsense.motion.base import MotionBlock, empty_arrays
from navsense.pose import Pose, conjugate
from navsense.pose import multiply as multiply_poses
from navsense.rotation import multiply, shortest_vector
from navsense.typing import FloatArray, Quaternion, Quaternions, Times, Vector, Vectors


@dataclass(frozen=True)
class State:
    """Pose (m, w x y z) and velocity (m/s) of a frame in the world, at one instant."""

    pose: Pose = Pose()
    velocity: Vector = (0.0, 0.0, 0.0)


@kernel
def _within(
    span: FloatArray,
    before: FloatArray,
    after: FloatArray,
    turn: FloatArray,
    time: Times,
    position: Vectors,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    acceleration: Vectors,
    alpha: Vectors,
) -> int:
    """Write the truth inside the step span (2,) s; return the first instant outside it, -1 where there is none.

    before, after (10,): position m, quaternion, velocity m/s; turn (3,) rad: the rotation vector from one to the other.
    """
    h = span[1] - span[0]
    angle = math.sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2])
    for i in range(time.shape[0]):
        if not span[0] <= time[i] <= span[1]:
            return i
        s = (time[i] - span[0]) / h if h > 0.0 else 1.0
        half = 0.5 * s * angle
        scale = 0.5 * s if angle < 1e-12 else math.sin(half) / angle
        ew, ex, ey, ez = math.cos(half), scale * turn[0], scale * turn[1], scale * turn[2]
        w, x, y, z = multiply(before[3], before[4], before[5], before[6], ew, ex, ey, ez)
        length = math.sqrt(w * w + x * x + y * y + z * z)
        rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3] = w / length, x / length, y / length, z / length
        rest = (2.0 * s - 3.0) * s * s
        for axis in range(3):
            p0, p1, v0, v1 = before[axis], after[axis], before[7 + axis], after[7 + axis]
            bend = ((s - 2.0) * s + 1.0) * s * v0 + (s - 1.0) * s * s * v1
            position[i, axis] = p0 + rest * (p0 - p1) + h * bend
            velocity[i, axis] = v0 + s * (v1 - v0)
            acceleration[i, axis] = (v1 - v0) / h if h > 0.0 else 0.0
            omega[i, axis] = turn[axis] / h if h > 0.0 else 0.0
            alpha[i, axis] = 0.0
    return -1


def checked_row(state: State) -> FloatArray:
    """Return position, quaternion and velocity (10,); raise `MotionError` unless finite, the quaternion of length 1."""
    row = pose_row(state.pose)
    if len(state.velocity) != 3 or not all(map(math.isfinite, state.velocity)):
        raise MotionError("velocity of a driven model", state.velocity, allowed="must be 3 finite numbers")
    return np.concatenate((row, np.array(state.velocity, dtype=np.float64)))


def _rotation(row: FloatArray) -> Quaternion:
    """Return the quaternion of a row (10,)."""
    return (float(row[3]), float(row[4]), float(row[5]), float(row[6]))


class Driven:
    """The caller's motion: `push(time, state)` ends a step; instants inside the last step can be asked for."""

    def __init__(self, state: State) -> None:
        """Stand in `state` at t = 0. Raises `MotionError` for a state that is none."""
        self._first = checked_row(state)
        self._asked: dict[float, MotionBlock] = {}
        self._stand()

    def _stand(self) -> None:
        self._before = self._after = self._first
        self._turn, self._span = np.zeros(3), np.zeros(2)

    @property
    def end(self) -> float:
        """Return infinity: the caller decides."""
        return math.inf

    def push(self, time: float, state: State) -> None:
        """End the step at `time` (s) in `state`. Raises `MotionError` where time does not advance or a value is bad."""
        self.advance(time, checked_row(state))

    def advance(self, time: float, row: FloatArray) -> None:
        """End the step at `time` (s) in a checked state (10,). Raises `MotionError` where time does not advance."""
        if time == 0.0:
            self._asked.clear()
            self._first = row
            self._stand()
            return
        if not time > self._span[1]:
            raise MotionError("time of a driven model", time, allowed=f"must be after {float(self._span[1])!r} s")
        self._asked.clear()
        self._before, self._after = self._after, row
        turn = multiply_poses(conjugate(_rotation(self._before)), _rotation(row))
        self._turn, self._span = np.array(shortest_vector(*turn)), np.array((self._span[1], time))

    def at(self, time: Times) -> MotionBlock:
        """Return the truth at instants (n,) s inside the last step, or at 0. Raises `MotionError` elsewhere.

        One instant is worked out once a step, however many sensors ask for it.
        """
        if time.shape[0] != 1:
            return self._at(time)
        instant = float(time[0])
        block = self._asked.get(instant)
        if block is None:
            block = self._asked[instant] = self._at(time)
        return block

    def _at(self, time: Times) -> MotionBlock:
        time = np.ascontiguousarray(time, dtype=np.float64)
        arrays = empty_arrays(time.shape[0])
        if time.shape[0] == 1 and time[0] == 0.0:
            outside = _within(np.zeros(2), self._first, self._first, np.zeros(3), time, *arrays)
        else:
            outside = _within(self._span, self._before, self._after, self._turn, time, *arrays)
        if outside >= 0:
            allowed = f"must be inside the last step, {self._span[0]!r} to {self._span[1]!r} s"
            raise MotionError("time", float(time[outside]), allowed=allowed)
        return MotionBlock(*arrays)
