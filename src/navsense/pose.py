"""One rigid transform, as plain floats: the poses that files give and frames compose.

`Pose(position, rotation)` takes the coordinates of a frame `b` to those of its parent `a`:
``x_a = rotation_ab * x_b + position_a``. Blocks of poses over time are arrays and live in `motion`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from navsense.fields import refuse_types
from navsense.rotation import product, turned
from navsense.typing import Quaternion, Vector


def multiply(q: Quaternion, p: Quaternion) -> Quaternion:
    """Return the Hamilton product q p of two quaternions w x y z."""
    return product(*q, *p)


def conjugate(q: Quaternion) -> Quaternion:
    """Return the inverse of a unit quaternion w x y z."""
    return (q[0], -q[1], -q[2], -q[3])


def rotate(q: Quaternion, v: Vector) -> Vector:
    """Return the vector v (any unit) turned by the unit quaternion q: q v q*."""
    return turned(*q, *v)


def normalised(q: Quaternion) -> Quaternion:
    """Return q at unit length. Raise ValueError where its length is zero or not finite."""
    largest = max(abs(part) for part in q)
    if not (largest > 0.0 and math.isfinite(largest)):
        raise ValueError("a quaternion of zero or infinite length has no direction")
    scaled = [part / largest for part in q]
    length = math.sqrt(sum(part * part for part in scaled))
    return (scaled[0] / length, scaled[1] / length, scaled[2] / length, scaled[3] / length)


def from_rotation_vector(vector: Vector) -> Quaternion:
    """Return the rotation about `vector` by its length (rad)."""
    angle = math.hypot(*vector)
    share = 0.5 if angle < 1e-8 else math.sin(0.5 * angle) / angle
    return math.cos(0.5 * angle), share * vector[0], share * vector[1], share * vector[2]


def from_rpy(roll: float, pitch: float, yaw: float) -> Quaternion:
    """Return the quaternion of SDF's fixed-axis roll, pitch, yaw (rad): Rz(yaw) Ry(pitch) Rx(roll)."""
    cr, sr = math.cos(roll / 2.0), math.sin(roll / 2.0)
    cp, sp = math.cos(pitch / 2.0), math.sin(pitch / 2.0)
    cy, sy = math.cos(yaw / 2.0), math.sin(yaw / 2.0)
    return normalised(
        (
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        )
    )


@dataclass(frozen=True)
class Pose:
    """Position (m) and unit quaternion (w x y z) of a frame in its parent.

    Raises `SensorError` unless these are 3 and 4 numbers.
    """

    position: Vector = (0.0, 0.0, 0.0)
    rotation: Quaternion = (1.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Reject values that are not 3 and 4 numbers."""
        for name, count in (("position", 3), ("rotation", 4)):
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                value = tuple(value.tolist())
                object.__setattr__(self, name, value)
            if type(value) is not tuple or len(value) != count or not all(type(part) is float for part in value):
                refuse_types(self, "of a pose")

    def __matmul__(self, inner: Pose) -> Pose:
        """Return the pose in this one's parent of a frame that has the pose `inner` in this frame."""
        moved = rotate(self.rotation, inner.position)
        position = (self.position[0] + moved[0], self.position[1] + moved[1], self.position[2] + moved[2])
        return Pose(position, normalised(multiply(self.rotation, inner.rotation)))

    def inverse(self) -> Pose:
        """Return the pose of the parent in this frame."""
        back = conjugate(self.rotation)
        moved = rotate(back, self.position)
        return Pose((-moved[0], -moved[1], -moved[2]), back)


IDENTITY = Pose()
