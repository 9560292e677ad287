"""A rigid transform as plain floats, for poses in files and frames.

`Pose(position, rotation)` transforms coordinates of a frame `b` to those of its parent `a`::

    x_a = rotation_ab * x_b + position_a

Blocks of poses over time are arrays; see `motion`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.rotation import multiply_python, rotate_python
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import Quaternion, Vector
from navsense.core.validation import validate_types

UNIT_TOLERANCE = 1e-9
"""Tolerance of the length of the quaternion of a `Pose`."""

_PLAIN_NUMBERS = {float, int, np.float64}
"""Types of numbers that need no further check."""


def multiply(q: Quaternion, p: Quaternion) -> Quaternion:
    """Return the Hamilton product q p of two quaternions w x y z."""
    return multiply_python(*q, *p)


def conjugate(q: Quaternion) -> Quaternion:
    """Return the inverse of a unit quaternion w x y z."""
    return (q[0], -q[1], -q[2], -q[3])


def rotate(q: Quaternion, v: Vector) -> Vector:
    """Return the vector v (any unit) rotated by the unit quaternion q: q v q*."""
    return rotate_python(*q, *v)


def normalize(q: Quaternion) -> Quaternion:
    """Return q at unit length. Raises ValueError if its length is zero or not finite."""
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
    """Return the quaternion of SDF's fixed-axis roll, pitch, yaw (rad): Rz(yaw) Ry(pitch) Rx(roll).

    >>> from navsense.core.pose import from_rpy
    >>> [round(part, 4) for part in from_rpy(0.0, 0.0, np.pi / 2)]  # a quarter turn to the left
    [0.7071, 0.0, 0.0, 0.7071]
    """
    cr, sr = math.cos(roll / 2.0), math.sin(roll / 2.0)
    cp, sp = math.cos(pitch / 2.0), math.sin(pitch / 2.0)
    cy, sy = math.cos(yaw / 2.0), math.sin(yaw / 2.0)
    return normalize(
        (
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        )
    )


def ensure_unit(q: Quaternion) -> Quaternion:
    """Return q itself if its length is 1 within `UNIT_TOLERANCE`, else `normalize(q)`."""
    return q if abs(math.hypot(*q) - 1.0) < UNIT_TOLERANCE else normalize(q)


def is_near_unit(q: Quaternion) -> bool:
    """Return True if the length of q is 1 up to the rounding of other programs: its square within 0.01, as in tf2.

    Source: geometry2, tf2/src/buffer_core.cpp, QUATERNION_NORMALIZATION_TOLERANCE.
    """
    return abs(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1.0) < 0.01


WORLD_NED = from_rpy(math.pi, 0.0, math.pi / 2.0)
"""Rotation of the UUV Simulator's `world_ned` (x north, y east, z down) in `world` (x east, y north, z up).

Source: uuv_assistants, `publish_world_ned_frame.launch`, commit 64007c79 and later.
"""


@dataclass(frozen=True, init=False)
class Pose:
    """Position (m) and unit quaternion (w x y z) of a frame in its parent.

    Both may be any sequence of numbers, NumPy numbers too; they become tuples of floats. Raises `SensorError` unless
    these are 3 and 4 finite numbers and the length of the quaternion is 1 within `UNIT_TOLERANCE`.

    >>> mast = ns.Pose((0.0, 0.0, 1.5)) @ ns.Pose((0.2, 0.0, 0.0))  # the second pose is in the frame of the first
    >>> mast.position
    (0.2, 0.0, 1.5)
    >>> mast.inverse()
    Pose(position=(-0.2, -0.0, -1.5))
    """

    position: Vector = (0.0, 0.0, 0.0)
    rotation: Quaternion = (1.0, 0.0, 0.0, 0.0)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __init__(self, position: Vector = (0.0, 0.0, 0.0), rotation: Quaternion = (1.0, 0.0, 0.0, 0.0)) -> None:
        """Check the numbers. Driven runs make a pose in each step, so valid tuples of floats take one expression."""
        fields = self.__dict__
        fields["position"] = position
        fields["rotation"] = rotation
        try:
            x, y, z = position
            w, a, b, c = rotation
        except (TypeError, ValueError):
            validate_types(self, "of a pose")
            raise
        kind = x.__class__
        if (
            kind is float is y.__class__ is z.__class__ is w.__class__ is a.__class__ is b.__class__ is c.__class__
            and position.__class__ is tuple is rotation.__class__
            and -UNIT_TOLERANCE <= w * w + a * a + b * b + c * c - 1.0 + 0.0 * (x + y + z) <= UNIT_TOLERANCE
        ):
            return
        fields["position"], fields["rotation"] = self._to_floats("position"), self._to_floats("rotation")
        self._check()

    def _to_floats(self, name: str) -> tuple[Any, ...]:
        """Return the numbers of a field as floats. Raises `SensorError` for other values."""
        value = self.__dict__[name]
        if isinstance(value, np.ndarray):
            value = self.__dict__[name] = value.tolist()
        if not {*map(type, value)} <= _PLAIN_NUMBERS:
            validate_types(self, "of a pose")
        try:
            return tuple([float(part) for part in value])
        except OverflowError:
            validate_types(self, "of a pose")
            raise

    def _check(self) -> None:
        """Raise `SensorError` unless all numbers are finite and the quaternion has length 1."""
        length = math.hypot(*self.rotation)
        if abs(length - 1.0) <= UNIT_TOLERANCE and math.isfinite(math.hypot(*self.position)):
            return
        for name in ("position", "rotation"):
            value = self.__dict__[name]
            if not all(map(math.isfinite, value)):
                raise SensorError(f"{name} of a pose", value, allowed="must be finite numbers")
        if abs(length - 1.0) > UNIT_TOLERANCE:
            remedy = "use navsense.core.pose.normalize"
            raise SensorError("length of the quaternion of a pose", length, allowed="must be 1", remedy=remedy)

    @classmethod
    def from_rpy(cls, position: Vector, roll: float, pitch: float, yaw: float) -> Pose:
        """Return a pose from SDF's fixed-axis roll, pitch, yaw (rad): rotation = Rz(yaw) Ry(pitch) Rx(roll).

        >>> ns.Pose.from_rpy((1.0, 2.0, 0.0), 0.0, 0.0, yaw=0.5)
        Pose(position=(1.0, 2.0, 0.0), rotation=(0.9689124217106447, 0.0, 0.0, 0.2474039592545229))
        """
        return cls(position, from_rpy(roll, pitch, yaw))

    def __matmul__(self, inner: Pose) -> Pose:
        """Return the pose in this pose's parent of a frame with the pose `inner` in this frame."""
        moved = rotate(self.rotation, inner.position)
        position = (self.position[0] + moved[0], self.position[1] + moved[1], self.position[2] + moved[2])
        return Pose(position, normalize(multiply(self.rotation, inner.rotation)))

    def inverse(self) -> Pose:
        """Return the pose of the parent in this frame."""
        back = conjugate(self.rotation)
        moved = rotate(back, self.position)
        return Pose((-moved[0], -moved[1], -moved[2]), back)


IDENTITY = Pose()
