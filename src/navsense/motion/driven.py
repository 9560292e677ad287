"""Motion that the caller gives state by state, for a controller or another simulator in the loop.

The caller gives the state at the end of each step. A step of length h is from state 0 to state 1. The step before it
has length h_p. Given quantities are used exactly. Missing quantities are derived from this and earlier states and never
change afterwards:

    mean rate over a step      m = (p_1 - p_0) / h,  or the rotation vector from attitude 0 to attitude 1 over h
    velocity not given         v_1 = m + a_1 h / 2                             error of order h^2
    acceleration not given     a_1 = (v_1 - v_0) / h                           error of order h, velocity given
                               a_1 = 2 (m - m_p) / (h + h_p)                   error of order h, velocity not given

Angular velocity and angular acceleration follow the same three rules in body coordinates. The orders hold for states of
one smooth motion at equal steps. If velocities are given, accelerations are not derived from positions. A simulator
with semi-implicit steps (p_1 = p_0 + h v_1) therefore gets its own accelerations.

At t = 0 there is no earlier state: a missing quantity of the first state is zero there. If you give it, the orders hold
from the first step. In the first step, m_p is the given v_0 with h_p = 0. A missing v_0 becomes ``2 m - v_1``, a
missing a_0 ``2 (v_1 - v_0) / h - a_1``. If v_0 and v_1 are both missing, the rate is constant in the first step with an
error of order h. The acceleration is then unknown until the second step.

Inside a step, at s = (t - t_0) / h:

    position, velocity         cubic Hermite curve of p and v;  cubic Hermite curve of v and a
    acceleration               the derivative of the velocity's curve
    attitude                   rotation 0 times the exponential of a cubic rotation vector, whose ends match both
                               attitudes and both angular velocities
    angular velocity and acceleration    as velocity and acceleration

Errors inside a step: position and attitude h^4 (h^3 if the rate is derived); rates h^2 (h^4 if rate and acceleration
are given); accelerations h (h^3 if rate and acceleration are given). All quantities are continuous from step to step.
Position and velocity are two curves, and so are attitude and angular velocity. One is the integral of the other to
order h^2.

A step turns by less than pi. The orders exclude rounding: attitudes rounded to e rad add 2 e / h^2 to an angular
acceleration that is derived from attitudes.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np

from navsense.core.errors import MotionError
from navsense.core.kernels import kernel
from navsense.core.pose import Pose, rotate
from navsense.core.rotation import cross, multiply, to_rotation_vector
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternion, Quaternions, Times, Vector, Vectors
from navsense.motion.base import MotionBlock, empty_arrays

_INITIAL_CAPACITY = 64
"""Initial number of steps of the arrays."""

LIMITS = {
    "position": (1e13, "m"),
    "velocity": (1e9, "m/s"),
    "angular_velocity": (1e9, "rad/s"),
    "acceleration": (1e18, "m/s^2"),
    "angular_acceleration": (1e18, "rad/s^2"),
}
"""Largest coordinate in a state, and its unit. Readings are finite within these limits.

The limits are above any physical value. The largest product is that of two squared angular velocities and a lever arm:
1e18 x 1e18 x 1e13 = 1e49.
"""

_UNKNOWN = (math.nan, math.nan, math.nan)

Frame = Literal["world", "body"]
"""The axes of a vector's coordinates: those of the world or of the moving frame."""


@dataclass(frozen=True)
class State:
    """The state of one frame at one time: its pose in the world and optional derivatives.

    >>> ns.State(ns.Pose((0.0, 0.0, 2.0)), velocity=(1.0, 0.0, 0.0), angular_velocity=(0.0, 0.0, 0.5))
    State(
        pose=Pose(position=(0.0, 0.0, 2.0)),
        velocity=(1.0, 0.0, 0.0),
        angular_velocity=(0.0, 0.0, 0.5),
    )

    pose: position (m) and unit quaternion w x y z of the frame in the world. velocity (m/s), acceleration (m/s^2,
        gravity not included): of the frame's origin in the world. angular_velocity (rad/s), angular_acceleration
        (rad/s^2): of the frame in the world.
    frame: "world" or "body", the axes of the coordinates of all four vectors. An acceleration in "body" is the second
        derivative of the position in the world, expressed in body axes.
    angular_frame: the axes of the two angular vectors if they differ. MuJoCo's free joints and `Truth` have velocities
        in the world frame and angular velocities in the body frame.

    Coordinates above `navsense.motion.driven.LIMITS` are errors. Fields after `velocity` are keyword-only. A field that
    is None is derived from this and earlier states, see `navsense.motion.driven`.
    """

    pose: Pose = Pose()
    velocity: Vector | None = None
    _: KW_ONLY
    angular_velocity: Vector | None = None
    acceleration: Vector | None = None
    angular_acceleration: Vector | None = None
    frame: Frame = "world"
    angular_frame: Frame | None = None

    __repr__, _repr_html_ = format_spec, format_spec_html


@kernel
def _derive_rates(
    start: FloatArray, end: FloatArray, rate: int, acceleration: int, mean: float, mean_p: float, h: float, span: float
) -> None:
    """Replace NaN in one axis of a rate and its derivative at the start and the end of a step.

    mean: mean rate over the step of length h.
    mean_p: mean rate over the step before, NaN for the first step.
    span: length of both steps.
    """
    slope = 2.0 * (mean - mean_p) / span if not math.isnan(mean_p) else 0.0
    if math.isnan(end[rate]):
        if math.isnan(end[acceleration]):
            end[acceleration] = slope
        end[rate] = mean + 0.5 * h * end[acceleration]
    if math.isnan(start[rate]):
        start[rate] = 2.0 * mean - end[rate]
    if math.isnan(end[acceleration]):
        end[acceleration] = (end[rate] - start[rate]) / h
    if math.isnan(start[acceleration]):
        start[acceleration] = 2.0 * (end[rate] - start[rate]) / h - end[acceleration]


@kernel
def complete_step(step: int, ends: FloatArray, rows: FloatArray, turns: FloatArray) -> None:
    """Write the missing quantities (NaN) at the end of a step and the rotation vector over the step.

    The arrays are those of `evaluate_step`. The step before the first one has length zero.
    """
    start, end, h = rows[step - 1], rows[step], ends[step] - ends[step - 1]
    h_p = ends[step - 1] - ends[step - 2]
    w, x, y, z = multiply(start[3], -start[4], -start[5], -start[6], end[3], end[4], end[5], end[6])
    turns[step, 0], turns[step, 1], turns[step, 2] = to_rotation_vector(w, x, y, z)
    for axis in range(3):
        mean_p, angular = start[7 + axis], start[10 + axis]
        if h_p > 0.0:
            mean_p = (start[axis] - rows[step - 2, axis]) / h_p
            angular = turns[step - 1, axis] / h_p
        _derive_rates(start, end, 7 + axis, 13 + axis, (end[axis] - start[axis]) / h, mean_p, h, h + h_p)
        _derive_rates(start, end, 10 + axis, 16 + axis, turns[step, axis] / h, angular, h, h + h_p)


@kernel
def _find_slope(tx: float, ty: float, tz: float, ox: float, oy: float, oz: float) -> tuple[float, float, float]:
    """Return the derivative of a rotation vector t (rad) for the angular velocity o (rad/s) in the body frame.

    o + t x o / 2 + c t x (t x o), with c = (1 - (|t| / 2) cot(|t| / 2)) / |t|^2.
    """
    square = tx * tx + ty * ty + tz * tz
    if square < 1e-4:
        c = 1.0 / 12.0 + square / 720.0
    else:
        half = 0.5 * math.sqrt(square)
        c = (1.0 - half * math.cos(half) / math.sin(half)) / square
    ux, uy, uz = cross(tx, ty, tz, ox, oy, oz)
    wx, wy, wz = cross(tx, ty, tz, ux, uy, uz)
    return ox + 0.5 * ux + c * wx, oy + 0.5 * uy + c * wy, oz + 0.5 * uz + c * wz


@kernel
def _interpolate_hermite(s: float, h: float, x0: float, d0: float, x1: float, d1: float) -> tuple[float, float]:
    """Return the cubic Hermite curve of values x0, x1 and derivatives d0, d1 over a step h at s, and its derivative."""
    mean = (x1 - x0) / h
    second, third = 3.0 * mean - 2.0 * d0 - d1, d0 + d1 - 2.0 * mean
    return x0 + s * h * (d0 + s * (second + s * third)), d0 + s * (2.0 * second + 3.0 * s * third)


@kernel
def evaluate_step(
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
    """Write the motion in the steps from `first` to `last`; return the first row outside these steps, or -1.

    ends (m,): end of each step (s), the start of the next.
    rows (m, 19): state at the end of each step: position m, quaternion, velocity m/s, angular velocity rad/s (body),
        acceleration m/s^2, angular acceleration rad/s^2 (body). At the end of a step the result is its row, exactly.
    turns (m, 3): rotation vector over each step (rad).
    """
    for i in range(time.shape[0]):
        if not ends[first - 1] <= time[i] <= ends[last]:
            return i
        low, high = first, last
        while low < high:
            middle = (low + high) // 2
            if ends[middle] >= time[i]:
                high = middle
            else:
                low = middle + 1
        start, end, turn, h = rows[low - 1], rows[low], turns[low], ends[low] - ends[low - 1]
        if time[i] == ends[low] or time[i] == ends[low - 1]:
            state = end if time[i] == ends[low] else start
            for axis in range(3):
                position[i, axis], velocity[i, axis], omega[i, axis] = state[axis], state[7 + axis], state[10 + axis]
                acceleration[i, axis], alpha[i, axis] = state[13 + axis], state[16 + axis]
            for part in range(4):
                rotation[i, part] = state[3 + part]
            continue
        s = (time[i] - ends[low - 1]) / h
        for axis in range(3):
            v0, v1, o0, o1 = start[7 + axis], end[7 + axis], start[10 + axis], end[10 + axis]
            position[i, axis], _ = _interpolate_hermite(s, h, start[axis], v0, end[axis], v1)
            velocity[i, axis], acceleration[i, axis] = _interpolate_hermite(
                s, h, v0, start[13 + axis], v1, end[13 + axis]
            )
            omega[i, axis], alpha[i, axis] = _interpolate_hermite(s, h, o0, start[16 + axis], o1, end[16 + axis])
        dx, dy, dz = _find_slope(turn[0], turn[1], turn[2], end[10], end[11], end[12])
        x, _ = _interpolate_hermite(s, h, 0.0, start[10], turn[0], dx)
        y, _ = _interpolate_hermite(s, h, 0.0, start[11], turn[1], dy)
        z, _ = _interpolate_hermite(s, h, 0.0, start[12], turn[2], dz)
        angle = math.sqrt(x * x + y * y + z * z)
        scale = 0.5 if angle < 1e-12 else math.sin(0.5 * angle) / angle
        ew = math.cos(0.5 * angle)
        w, x, y, z = multiply(start[3], start[4], start[5], start[6], ew, scale * x, scale * y, scale * z)
        length = math.sqrt(w * w + x * x + y * y + z * z)
        rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3] = w / length, x / length, y / length, z / length
    return -1


def _vector_in_frame(name: str, owner: str, vector: Vector | None, rotation: Quaternion | None) -> Vector:
    """Return a rotated vector of a state, NaN for None. Raises `MotionError` for an invalid vector."""
    if vector is None:
        return _UNKNOWN
    try:
        x, y, z = map(float, vector)
    except (TypeError, ValueError, OverflowError):
        x, y, z = _UNKNOWN
    limit, unit = LIMITS[name]
    if not (abs(x) <= limit and abs(y) <= limit and abs(z) <= limit):
        derived = "" if name == "position" else ", or None to be derived"
        allowed = f"must be 3 finite numbers of at most {limit:g} {unit}{derived}"
        raise MotionError(f"{name} of {owner}", vector, allowed=allowed)
    return (x, y, z) if rotation is None else rotate(rotation, (x, y, z))


def state_row(state: State, owner: str = "a driven model") -> FloatArray:
    """Return a state as a row (19,) of `evaluate_step`, NaN for missing quantities.

    Raises `MotionError` for a value that is not a `State`, numbers beyond `LIMITS` or an unknown frame. Errors call
    the frame `owner`.

    >>> ns.motion.state_row(ns.State(ns.Pose((1.0, 2.0, 3.0))))[:8]
    array([ 1.,  2.,  3.,  1.,  0.,  0.,  0., nan])
    """
    if not isinstance(state, State) or not isinstance(state.pose, Pose):
        allowed = "must be a navsense.State with a navsense.Pose"
        remedy = "write navsense.State(navsense.Pose((x, y, z), (w, x, y, z)), velocity=(vx, vy, vz))"
        raise MotionError(f"state of {owner}", repr(state), allowed=allowed, remedy=remedy)
    linear, angular = state.frame, state.frame if state.angular_frame is None else state.angular_frame
    for name, frame in (("frame", linear), ("angular_frame", angular)):
        if frame not in ("world", "body"):
            raise MotionError(f"{name} of the state of {owner}", frame, allowed="must be world or body")
    position = _vector_in_frame("position", owner, state.pose.position, None)
    w, x, y, z = state.pose.rotation
    length = math.sqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = w / length, x / length, y / length, z / length
    to_world = (w, x, y, z) if linear == "body" else None
    to_body = (w, -x, -y, -z) if angular == "world" else None
    velocity = _vector_in_frame("velocity", owner, state.velocity, to_world)
    omega = _vector_in_frame("angular_velocity", owner, state.angular_velocity, to_body)
    acceleration = _vector_in_frame("acceleration", owner, state.acceleration, to_world)
    alpha = _vector_in_frame("angular_acceleration", owner, state.angular_acceleration, to_body)
    return np.array((*position, w, x, y, z, *velocity, *omega, *acceleration, *alpha), dtype=np.float64)


class DrivenMotion:
    """The motion of a driven frame. `push(time, state)` ends a step. The motion is defined inside the last step.

    It is also defined for `memory` (s) before that step, for sensors with a travel time of sound.
    """

    def __init__(self, state: State, memory: float = 0.0, owner: str = "a driven model") -> None:
        """Start at t = 0 in `state`. Raises `MotionError` for an invalid state; errors call the frame `owner`."""
        self._memory = memory
        self._blocks: dict[float, MotionBlock] = {}
        self._reset(state_row(state, owner))

    def _reset(self, row: FloatArray) -> None:
        """Start with a step of length zero that ends in `row`."""
        count = _INITIAL_CAPACITY
        self._ends, self._rows, self._turns = np.zeros(count), np.empty((count, 19)), np.zeros((count, 3))
        self._rows[:2] = row
        known = np.where(np.isnan(row), 0.0, row)
        self._start = (1, 1, np.zeros(2), np.array((known, known)), np.zeros((2, 3)))
        self._oldest = self._last = 1

    @property
    def end(self) -> float:
        """Infinity: the caller decides when the motion ends."""
        return math.inf

    def push(self, time: float, state: State) -> None:
        """End the step at `time` (s) in `state`. Raises `MotionError` for an earlier time or an invalid state."""
        self.advance(time, state_row(state))

    def advance(self, time: float, row: FloatArray) -> None:
        """End the step at `time` (s) in a checked state (19,). Raises `MotionError` if time does not increase.

        A state at t = 0 restarts the motion. If it replaces another state at t = 0, missing quantities are kept.
        """
        self._blocks.clear()
        before = float(self._ends[self._last])
        if time == 0.0:
            self._reset(np.where(np.isnan(row), self._rows[1], row) if before == 0.0 else row)
            return
        if not time > before:
            raise MotionError("time of a driven model", time, allowed=f"must be after {before!r} s")
        if self._last + 1 == self._ends.shape[0]:
            self._compact()
        self._last += 1
        self._ends[self._last], self._rows[self._last] = time, row
        complete_step(self._last, self._ends, self._rows, self._turns)
        while self._oldest < self._last and self._ends[self._oldest] <= before - self._memory:
            self._oldest += 1

    def _compact(self) -> None:
        """Remove the steps before `_oldest` and resize the arrays to twice the number of steps left."""
        rows = slice(self._oldest - 1, self._last + 1)
        kept = (self._ends[rows], self._rows[rows], self._turns[rows])
        capacity = max(_INITIAL_CAPACITY, 2 * kept[0].size)
        self._ends, self._rows, self._turns = (np.zeros((capacity, *array.shape[1:])) for array in kept)
        for array, values in zip((self._ends, self._rows, self._turns), kept, strict=True):
            array[: values.shape[0]] = values
        self._oldest, self._last = 1, kept[0].size - 1

    def at(self, time: Times) -> MotionBlock:
        """Return the motion at times (n,) s in the last step or the memory, or at 0. Raises `MotionError` elsewhere.

        A single time is evaluated once per step, because several sensors query it.
        """
        if time.shape[0] != 1:
            return self._evaluate(time, self._steps)
        t = time.item()
        block = self._blocks.get(t)
        if block is None:
            block = self._blocks[t] = self._evaluate(time, self._start if t == 0.0 else self._steps)
        return block

    @property
    def _steps(self) -> tuple[int, int, FloatArray, FloatArray, FloatArray]:
        """The first five arguments of `evaluate_step` for the steps in memory."""
        if self._ends[self._last] == 0.0:
            return self._start
        return self._oldest, self._last, self._ends, self._rows, self._turns

    def _evaluate(self, time: Times, steps: tuple[int, int, FloatArray, FloatArray, FloatArray]) -> MotionBlock:
        time, arrays = np.ascontiguousarray(time, dtype=np.float64), empty_arrays(time.shape[0])
        row = evaluate_step(*steps, time, *arrays)
        if row >= 0:
            start, end = float(self._ends[self._oldest - 1]), float(self._ends[self._last])
            span = "step" if self._oldest == self._last else f"{self._last - self._oldest + 1} steps"
            allowed = f"must be inside the last {span}, {start!r} to {end!r} s"
            raise MotionError("time", float(time[row]), allowed=allowed)
        return MotionBlock(*arrays)
