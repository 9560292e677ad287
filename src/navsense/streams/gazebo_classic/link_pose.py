"""The pose of a link, integrated from its velocities as the physics engine of Gazebo does it.

`LinkData` has the velocities of a link at each physics step, but no pose. Poses come at about 60 Hz. Between them, this
module repeats the step of ODE, of length h, from state 0 to state 1. The centre of mass is c in the link and r in the
world:

    r_1 = r_0 + h (v_1 + w_1 x R_1 c)              v, w: velocity of the link's origin, angular velocity, in the world
    q_1 = normalize(q_0 + h / 2 (0, w_1) q_0)
    p_1 = r_1 - R_1 c

A pose that arrives shows the error of the integrated pose of its time. Normally, the error is that of rounding. It is
larger if c is not known, if physics steps are missing, or if the link has a `<velocity_decay>`. The engine can also
move the link without a velocity, for example in a contact. The error is removed in equal parts until about the next
pose, so that neither position nor attitude jumps. An error larger than `MAX_ERROR` is a jump of the link itself.

Source: `dxStepBody` of ODE, and `ODELink.cc` of Gazebo 11.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from navsense.core.pose import conjugate, from_rotation_vector, multiply, normalize, rotate
from navsense.core.rotation import to_rotation_vector_python
from navsense.core.typing import Quaternion, Vector

MAX_SPREAD_STEPS = 64
"""Largest number of steps over which an error is removed. Otherwise it is the number between the last two poses."""

ROUNDING = 1e-9
"""Largest error (m, rad) that is removed at once."""

MAX_ERROR = 0.01
"""Largest error (m, rad) that is not a jump."""

MEMORY_STEPS = 4096
"""Number of steps to which a pose can belong."""

ZERO = (0.0, 0.0, 0.0)


class PoseError(NamedTuple):
    """The distance (m) and the angle (rad) between an integrated pose and that of Gazebo."""

    distance: float
    angle: float


class _Step(NamedTuple):
    """The number of a step, the pose after it, and the sum of all corrections (m, rotation vector in rad)."""

    number: int

    position: Vector
    rotation: Quaternion
    total_move: Vector
    total_turn: Vector


class LinkPose:
    """The integrated pose of a link.

    center: the centre of mass in the link (m).
    stamp: of the last step (ns).
    position, rotation: of the link in the world after it.
    largest_error: of all poses so far, jumps not included.
    """

    def __init__(self, stamp: int, position: Vector, rotation: Quaternion, center: Vector = ZERO) -> None:
        """Start at a pose of Gazebo."""
        self.center = center
        self.largest_error = PoseError(0.0, 0.0)
        self.stamp, self.position, self.rotation = stamp, position, normalize(rotation)
        self._steps: dict[int, _Step] = {}
        self._stamps: deque[int] = deque()
        self._move, self._turn, self._count = ZERO, ZERO, 0
        self._total_move, self._total_turn = ZERO, ZERO
        self._number = self._last_pose = 0
        self._store()

    def step(self, stamp: int, velocity: Vector, angular_velocity: Vector) -> None:
        """Integrate one physics step, until a stamp (ns)."""
        h = (stamp - self.stamp) / 1e9
        w, x, y, z = self.rotation
        ox, oy, oz = angular_velocity
        half = 0.5 * h
        w, x, y, z = (
            w + half * (-ox * x - oy * y - oz * z),
            x + half * (ox * w + oy * z - oz * y),
            y + half * (-ox * z + oy * w + oz * x),
            z + half * (ox * y - oy * x + oz * w),
        )
        length = math.sqrt(w * w + x * x + y * y + z * z)
        rotation = (w / length, x / length, y / length, z / length)
        (px, py, pz), (vx, vy, vz) = self.position, velocity
        if self.center == ZERO:
            position = (px + h * vx, py + h * vy, pz + h * vz)
        else:
            ax, ay, az = rotate(self.rotation, self.center)
            bx, by, bz = rotate(rotation, self.center)
            position = (
                px + ax + h * (vx + oy * bz - oz * by) - bx,
                py + ay + h * (vy + oz * bx - ox * bz) - by,
                pz + az + h * (vz + ox * by - oy * bx) - bz,
            )
        self.stamp, self.position, self.rotation = stamp, position, rotation
        self._number += 1
        if self._count:
            self._correct(1.0 / self._count)
            self._count -= 1
        self._store()

    def correct(self, stamp: int, position: Vector, rotation: Quaternion) -> PoseError | None:
        """Take over a pose of Gazebo with the stamp of a past step; None if there was no such step."""
        past = self._steps.get(stamp)
        if past is None:
            return None
        move = _subtract(position, past.position)
        turn = to_rotation_vector_python(*multiply(normalize(rotation), conjugate(past.rotation)))
        error = PoseError(math.hypot(*move), math.hypot(*turn))
        # What was corrected after this step is not an error any more.
        self._move = _subtract(move, _subtract(self._total_move, past.total_move))
        self._turn = _subtract(turn, _subtract(self._total_turn, past.total_turn))
        self._count = min(max(past.number - self._last_pose, 1), MAX_SPREAD_STEPS)
        self._last_pose = past.number
        if max(error) <= MAX_ERROR:
            self.largest_error = PoseError(*map(max, self.largest_error, error))
        if self._count == 1 or max(error) <= ROUNDING or max(error) > MAX_ERROR:
            self._correct(1.0)
            self._count = 0
            self._steps[self.stamp] = self._get_step()
        return error

    def _correct(self, share: float) -> None:
        """Remove a share of the remaining error."""
        move, turn = _scale(share, self._move), _scale(share, self._turn)
        self.position = _add(self.position, move)
        if turn != ZERO:
            self.rotation = normalize(multiply(from_rotation_vector(turn), self.rotation))
        self._move, self._turn = _subtract(self._move, move), _subtract(self._turn, turn)
        self._total_move, self._total_turn = _add(self._total_move, move), _add(self._total_turn, turn)

    def _get_step(self) -> _Step:
        return _Step(self._number, self.position, self.rotation, self._total_move, self._total_turn)

    def _store(self) -> None:
        self._steps[self.stamp] = self._get_step()
        self._stamps.append(self.stamp)
        if len(self._stamps) > MEMORY_STEPS:
            self._steps.pop(self._stamps.popleft(), None)


def _add(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def _subtract(a: Vector, b: Vector) -> Vector:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def _scale(factor: float, a: Vector) -> Vector:
    return (factor * a[0], factor * a[1], factor * a[2])
