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
from navsense.motion._checks import pose_numbers
from navsense.motion.base import MotionBlock, empty_arrays
from navsense.pose import Pose, conjugate
from navsense.pose import multiply as multiply_poses
from navsense.rotation import multiply, shortest_vector
from navsense.typing import FloatArray, Quaternion, Quaternions, Times, Vector, Vectors

_ROOM = 64
"""Ends of steps that there is room for at first."""


@dataclass(frozen=True)
class State:
    """Pose (m, w x y z) and velocity (m/s) of a frame in the world, at one instant."""

    pose: Pose = Pose()
    velocity: Vector = (0.0, 0.0, 0.0)


@kernel
def _within(
    first: int,
    last: int,
    ends: FloatArray,
    rows: FloatArray,
    turns: FloatArray,
    time: Times,
    position: Vectors,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    acceleration: Vectors,
    alpha: Vectors,
) -> int:
    """Write the truth in the steps from `first` to `last`; return the first instant outside, -1 where there is none.

    Step k ends at `ends` k (s) in `rows` k (10,): position m, quaternion, velocity m/s; the one before ends where it
    begins. `turns` k (3,) rad is the rotation vector in it. An instant between two steps is of the later one.
    """
    for i in range(time.shape[0]):
        if not ends[first - 1] <= time[i] <= ends[last]:
            return i
        low, high = first, last
        while low < high:
            middle = (low + high + 1) // 2
            if ends[middle - 1] <= time[i]:
                low = middle
            else:
                high = middle - 1
        before, after, turn, h = rows[low - 1], rows[low], turns[low], ends[low] - ends[low - 1]
        angle = math.sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2])
        s = (time[i] - ends[low - 1]) / h if h > 0.0 else 1.0
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
    pose, velocity = pose_numbers(state.pose), state.velocity
    if len(velocity) != 3 or not all(map(math.isfinite, velocity)):
        raise MotionError("velocity of a driven model", velocity, allowed="must be 3 finite numbers")
    return np.array((*pose, *velocity), dtype=np.float64)


def _rotation(row: FloatArray) -> Quaternion:
    """Return the quaternion of a row (10,)."""
    _, _, _, w, x, y, z, *_ = row.tolist()
    return (w, x, y, z)


class Driven:
    """The caller's motion: `push(time, state)` ends a step; instants inside the last step can be asked for.

    So can those of the `memory` (s) before it, for a sensor that tells of what was: sound takes its time.
    """

    def __init__(self, state: State, memory: float = 0.0) -> None:
        """Stand in `state` at t = 0. Raises `MotionError` for a state that is none."""
        self._memory = memory
        self._asked: dict[float, MotionBlock] = {}
        self._stand(checked_row(state))

    def _stand(self, row: FloatArray) -> None:
        """Begin with a step of no length, which ends in `row`."""
        self._ends, self._rows, self._turns = np.zeros(_ROOM), np.empty((_ROOM, 10)), np.zeros((_ROOM, 3))
        self._rows[:2] = row
        self._start = (1, 1, np.zeros(2), np.array((row, row)), np.zeros((2, 3)))
        self._oldest = self._last = 1

    @property
    def end(self) -> float:
        """Return infinity: the caller decides."""
        return math.inf

    def push(self, time: float, state: State) -> None:
        """End the step at `time` (s) in `state`. Raises `MotionError` where time does not advance or a value is bad."""
        self.advance(time, checked_row(state))

    def advance(self, time: float, row: FloatArray) -> None:
        """End the step at `time` (s) in a checked state (10,). Raises `MotionError` where time does not advance."""
        self._asked.clear()
        if time == 0.0:
            self._stand(row)
            return
        before = float(self._ends[self._last])
        if not time > before:
            raise MotionError("time of a driven model", time, allowed=f"must be after {before!r} s")
        if self._last + 1 == self._ends.shape[0]:
            self._make_room()
        turn = multiply_poses(conjugate(_rotation(self._rows[self._last])), _rotation(row))
        self._last += 1
        self._ends[self._last], self._rows[self._last] = time, row
        self._turns[self._last] = shortest_vector(*turn)
        while self._oldest < self._last and self._ends[self._oldest] <= before - self._memory:
            self._oldest += 1

    def _make_room(self) -> None:
        """Let go of the steps that are forgotten; have room for as many as are not, and more."""
        kept = slice(self._oldest - 1, self._last + 1)
        held = (self._ends[kept], self._rows[kept], self._turns[kept])
        room = max(_ROOM, 2 * held[0].size)
        self._ends, self._rows, self._turns = (np.zeros((room, *array.shape[1:])) for array in held)
        for array, old in zip((self._ends, self._rows, self._turns), held, strict=True):
            array[: old.shape[0]] = old
        self._oldest, self._last = 1, held[0].size - 1

    def at(self, time: Times) -> MotionBlock:
        """Return the truth at instants (n,) s inside the last step, or at 0. Raises `MotionError` elsewhere.

        One instant is worked out once a step, however many sensors ask for it.
        """
        if time.shape[0] != 1:
            return self._at(time, self._steps)
        instant = time.item()
        block = self._asked.get(instant)
        if block is None:
            block = self._asked[instant] = self._at(time, self._start if instant == 0.0 else self._steps)
        return block

    @property
    def _steps(self) -> tuple[int, int, FloatArray, FloatArray, FloatArray]:
        """The steps that are remembered, as `_within` takes them."""
        return self._oldest, self._last, self._ends, self._rows, self._turns

    def _at(self, time: Times, steps: tuple[int, int, FloatArray, FloatArray, FloatArray]) -> MotionBlock:
        time, arrays = np.ascontiguousarray(time, dtype=np.float64), empty_arrays(time.shape[0])
        outside = _within(*steps, time, *arrays)
        if outside >= 0:
            begin, end = float(self._ends[self._oldest - 1]), float(self._ends[self._last])
            steps_kept = "step" if self._oldest == self._last else f"{self._last - self._oldest + 1} steps"
            allowed = f"must be inside the last {steps_kept}, {begin!r} to {end!r} s"
            raise MotionError("time", float(time[outside]), allowed=allowed)
        return MotionBlock(*arrays)
