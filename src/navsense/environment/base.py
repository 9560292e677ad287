"""The fields around the robot, as functions of position and time, world frame w."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from navsense import pose
from navsense.compiled import kernel
from navsense.typing import Quaternion, Times, Vector, Vectors


class VectorField(Protocol):
    """A field of vectors in the world frame."""

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3) at positions (n, 3) m and instants (n,) s."""
        ...

    def turned(self, rotation: Quaternion) -> VectorField:
        """Return the same field in a world turned by `rotation`."""
        ...


@kernel
def _everywhere(x: float, y: float, z: float, out: Vectors) -> None:
    """Write one vector into every row."""
    for i in range(out.shape[0]):
        out[i, 0], out[i, 1], out[i, 2] = x, y, z


@dataclass(frozen=True)
class Uniform:
    """A field that is the same everywhere and always."""

    value_w: Vector

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3)."""
        out = np.empty((time.shape[0], 3))
        x, y, z = self.value_w
        _everywhere(float(x), float(y), float(z), out)
        return out

    def turned(self, rotation: Quaternion) -> Uniform:
        """Return the field turned by `rotation`."""
        return replace(self, value_w=pose.rotate(rotation, self.value_w))


DEFAULT_MAGNETIC_FIELD = (5.5645e-6, 22.8758e-6, -42.3884e-6)
"""Tesla, world frame: the default of SDF's `<magnetic_field>` (SDF 1.12, `world.sdf`)."""

DEFAULT_GRAVITY = (0.0, 0.0, -9.8)
"""m/s^2, world frame: the default of SDF's `<gravity>` (SDF 1.12, `world.sdf`)."""


@dataclass(frozen=True)
class Environment:
    """Gravity (m/s^2), magnetic field (T); `heading` (rad) turns the world's x axis from east, counter-clockwise."""

    gravity: VectorField = Uniform(DEFAULT_GRAVITY)
    magnetic_field: VectorField = Uniform(DEFAULT_MAGNETIC_FIELD)
    heading: float = 0.0

    def turned(self, rotation: Quaternion) -> Environment:
        """Return the same surroundings in a world turned by `rotation`."""
        return replace(self, gravity=self.gravity.turned(rotation), magnetic_field=self.magnetic_field.turned(rotation))
