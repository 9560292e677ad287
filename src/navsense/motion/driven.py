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

from navsense.errors import MotionError
from navsense.motion._checks import pose_row
from navsense.motion.base import MotionBlock
from navsense.pose import Pose, conjugate, multiply, normalised
from navsense.typing import Quaternion, Times, Vector


@dataclass(frozen=True)
class State:
    """Pose (m, w x y z) and velocity (m/s) of a frame in the world, at one instant."""

    pose: Pose = Pose()
    velocity: Vector = (0.0, 0.0, 0.0)


def rotation_vector(q: Quaternion) -> Vector:
    """Return the rotation vector (rad), at most pi long, of a unit quaternion w x y z."""
    w, x, y, z = q if q[0] >= 0.0 else (-q[0], -q[1], -q[2], -q[3])
    sine = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 if sine < 1e-12 else 2.0 * math.atan2(sine, w) / sine
    return (scale * x, scale * y, scale * z)


def exponential(v: Vector) -> Quaternion:
    """Return the unit quaternion of a rotation vector (rad)."""
    angle = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    scale = 0.5 if angle < 1e-12 else math.sin(0.5 * angle) / angle
    return normalised((math.cos(0.5 * angle), scale * v[0], scale * v[1], scale * v[2]))


def checked(state: State) -> State:
    """Return the state; raise `MotionError` unless all is finite and the quaternion of unit length."""
    pose_row(state.pose)
    if len(state.velocity) != 3 or not all(map(math.isfinite, state.velocity)):
        raise MotionError("velocity of a driven model", state.velocity, allowed="must be 3 finite numbers")
    return state


class Driven:
    """The caller's motion: `push(time, state)` ends a step; instants inside the last step can be asked for."""

    def __init__(self, state: State) -> None:
        """Stand in `state` at t = 0. Raises `MotionError` for a state that is none."""
        checked(state)
        self._first = state
        self._states = (state, state)
        self._times = (0.0, 0.0)

    @property
    def end(self) -> float:
        """Return infinity: the caller decides."""
        return math.inf

    def push(self, time: float, state: State) -> None:
        """End the step at `time` (s) in `state`. Raises `MotionError` where time does not advance or a value is bad."""
        checked(state)
        if time == 0.0:
            self._first = state
            self._states = (state, state)
            return
        if not time > self._times[1]:
            raise MotionError("time of a driven model", time, allowed=f"must be after {self._times[1]!r} s")
        self._states = (self._states[1], state)
        self._times = (self._times[1], time)

    def at(self, time: Times) -> MotionBlock:
        """Return the truth at instants (n,) s inside the last step, or at 0. Raises `MotionError` elsewhere."""
        if time.shape[0] == 1 and time[0] == 0.0 and self._times[0] > 0.0:
            begun = Driven(self._first)
            return begun.at(time)
        count = time.shape[0]
        block = MotionBlock(*(np.zeros((count, axes)) for axes in (3, 4, 3, 3, 3, 3)))
        (start, end), (before, after) = self._times, self._states
        h = end - start
        turn = rotation_vector(multiply(conjugate(before.pose.rotation), after.pose.rotation))
        for i in range(count):
            t = float(time[i])
            if not start <= t <= end:
                raise MotionError("time", t, allowed=f"must be inside the last step, {start!r} to {end!r} s")
            s = (t - start) / h if h else 1.0
            block.rotation_wb[i] = multiply(before.pose.rotation, exponential((s * turn[0], s * turn[1], s * turn[2])))
            for axis in range(3):
                p0, p1 = before.pose.position[axis], after.pose.position[axis]
                v0, v1 = before.velocity[axis], after.velocity[axis]
                rest = (2.0 * s - 3.0) * s * s
                bend = ((s - 2.0) * s + 1.0) * s * v0 + (s - 1.0) * s * s * v1
                block.position_w[i, axis] = p0 + rest * (p0 - p1) + h * bend
                block.velocity_w[i, axis] = v0 + s * (v1 - v0)
                block.acceleration_w[i, axis] = (v1 - v0) / h if h else 0.0
                block.angular_velocity_b[i, axis] = turn[axis] / h if h else 0.0
        return block
