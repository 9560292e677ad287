"""The fields around the robot, as functions of position and time, world frame w."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from navsense import pose
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.signal import Signal
from navsense.environment.terrain.scene import Scene
from navsense.environment.water import Water
from navsense.errors import FieldError
from navsense.geodesy import Origin
from navsense.typing import FloatArray, Quaternion, Times, Vector, Vectors


class VectorField(Protocol):
    """A field of vectors in the world frame."""

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3) at positions (n, 3) m and instants (n,) s."""
        ...

    def rotate(self, rotation: Quaternion) -> VectorField:
        """Return the same field in a world rotated by `rotation`."""
        ...


@lru_cache(maxsize=32)
def _tile(vector: bytes, count: int) -> Vectors:
    """Return `count` rows of a vector, read-only: whoever asks again gets the same."""
    rows = np.tile(np.frombuffer(vector), (count, 1))
    rows.flags.writeable = False
    return rows


@dataclass(frozen=True)
class UniformField:
    """A field that is the same everywhere and always."""

    value_w: Vector

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3), read-only."""
        return _tile(struct.pack("3d", *self.value_w), time.shape[0])

    def rotate(self, rotation: Quaternion) -> UniformField:
        """Return the field rotated by `rotation`."""
        return replace(self, value_w=pose.rotate(rotation, self.value_w))


@dataclass(frozen=True)
class FieldSum:
    """The sum of fields of one unit, added in their order."""

    fields: tuple[VectorField, ...]

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3). Raises `FieldError` where one of the fields does."""
        out = np.zeros((time.shape[0], 3))
        for one in self.fields:
            out += one.at(position_w, time)
        return out

    def rotate(self, rotation: Quaternion) -> FieldSum:
        """Return the sum of the fields, each rotated by `rotation`."""
        return FieldSum(tuple(one.rotate(rotation) for one in self.fields))


DEFAULT_MAGNETIC_FIELD = (5.5645e-6, 22.8758e-6, -42.3884e-6)
"""Tesla, world frame: the default of SDF's `<magnetic_field>` (SDF 1.12, `world.sdf`)."""

DEFAULT_GRAVITY = (0.0, 0.0, -9.8)
"""m/s^2, world frame: the default of SDF's `<gravity>` (SDF 1.12, `world.sdf`)."""


@dataclass(frozen=True)
class Environment:
    """Gravity (m/s^2) and magnetic field (T) of the world, its place on earth, its air and water, and named inputs.

    `origin` is None where the world stands nowhere on earth, `water` where nothing says what water it has, `current`
    (m/s) where the water stands still; `signals` are functions of time by name. `scene` holds the bodies that rays
    meet, `hull` the name of the model whose bodies are the vehicle's own, for whoever asks.
    """

    gravity: VectorField = UniformField(DEFAULT_GRAVITY)
    magnetic_field: VectorField = UniformField(DEFAULT_MAGNETIC_FIELD)
    origin: Origin | None = None
    atmosphere: Atmosphere = Atmosphere()
    water: Water | None = None
    current: VectorField | None = None
    signals: Mapping[str, Signal] = field(default_factory=dict, hash=False)
    scene: Scene = field(default=Scene(), hash=False)
    hull: str = ""

    @property
    def heading(self) -> float:
        """Return the angle (rad) from east to the world's x axis, counter-clockwise from above; 0 off the earth."""
        return self.origin.heading if self.origin else 0.0

    def signal(self, name: str, time: Times) -> FloatArray:
        """Return the signal `name` (n,) at instants (n,) s, in its own unit. Raises `FieldError` if there is none."""
        if name not in self.signals:
            raise FieldError(
                "signal",
                name,
                allowed=f"must be one of {', '.join(self.signals) or 'none: the world has no signal'}",
                remedy=f'give the world <navsense:signal name="{name}">, or Environment(signals={{{name!r}: ...}})',
            )
        return self.signals[name].at(time)

    def rotate(self, rotation: Quaternion) -> Environment:
        """Return the same surroundings in a world rotated by `rotation`, about the vertical if it stands on earth.

        Raises `FieldError` for another rotation of a world on earth.
        """
        return replace(
            self,
            gravity=self.gravity.rotate(rotation),
            magnetic_field=self.magnetic_field.rotate(rotation),
            origin=self.origin.rotate(rotation) if self.origin else None,
            current=self.current.rotate(rotation) if self.current else None,
            scene=self.scene.rotate(rotation),
        )
