"""The environment of a world: fields as functions of position and time, in the world frame w."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from navsense.core import pose
from navsense.core.errors import FieldError
from navsense.core.geodesy import Origin
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternion, Times, Vector, Vectors
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.geoid import Geoid
from navsense.environment.signal import Signal
from navsense.environment.terrain.scene import Scene
from navsense.environment.water import Water


class VectorField(Protocol):
    """A vector field in the world frame."""

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3) at positions (n, 3) m and times (n,) s."""
        ...

    def rotate(self, rotation: Quaternion) -> VectorField:
        """Return the field in a world rotated by `rotation`."""
        ...


@lru_cache(maxsize=32)
def _tile(vector: bytes, count: int) -> Vectors:
    """Return a cached read-only array with `count` rows of a vector."""
    rows = np.tile(np.frombuffer(vector), (count, 1))
    rows.flags.writeable = False
    return rows


@dataclass(frozen=True)
class UniformField:
    """A field that is constant in space and time: `value_w` (3,), world frame.

    >>> field = ns.environment.UniformField((20e-6, 0.0, -40e-6))  # T
    >>> field.at(np.zeros((2, 3)), np.zeros(2))
    array([[ 2.e-05,  0.e+00, -4.e-05],
           [ 2.e-05,  0.e+00, -4.e-05]])
    """

    value_w: Vector

    __repr__, _repr_html_ = format_spec, format_spec_html

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3), read-only."""
        return _tile(struct.pack("3d", *self.value_w), time.shape[0])

    def rotate(self, rotation: Quaternion) -> UniformField:
        """Return the field in a world rotated by `rotation`."""
        return replace(self, value_w=pose.rotate(rotation, self.value_w))


@dataclass(frozen=True)
class FieldSum:
    """The sum of fields with the same unit.

    >>> earth = ns.environment.UniformField((20e-6, 0.0, -40e-6))
    >>> magnet = ns.environment.Dipole(position_w=(0.0, 0.0, 0.0), moment_w=(0.0, 0.0, 1.0))
    >>> total = ns.environment.FieldSum((earth, magnet))
    >>> total.at(np.array([[1.0, 0.0, 0.0]]), np.zeros(1))  # T, 1 m beside the magnet
    array([[ 2.00e-05,  0.00e+00, -4.01e-05]])
    """

    fields: tuple[VectorField, ...]

    __repr__, _repr_html_ = format_spec, format_spec_html

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3). Raises `FieldError` as the fields do."""
        out = np.zeros((time.shape[0], 3))
        for part in self.fields:
            out += part.at(position_w, time)
        return out

    def rotate(self, rotation: Quaternion) -> FieldSum:
        """Return the sum in a world rotated by `rotation`."""
        return FieldSum(tuple(part.rotate(rotation) for part in self.fields))


DEFAULT_MAGNETIC_FIELD = (5.5645e-6, 22.8758e-6, -42.3884e-6)
"""Tesla, world frame: the default of SDF's `<magnetic_field>` (SDF 1.12, `world.sdf`)."""

DEFAULT_GRAVITY = (0.0, 0.0, -9.8)
"""m/s^2, world frame: the default of SDF's `<gravity>` (SDF 1.12, `world.sdf`)."""


@dataclass(frozen=True)
class Environment:
    """The environment of a world.

    gravity: m/s^2; magnetic_field: T.
    origin: geodetic position and heading of the world's origin, None if unknown.
    atmosphere: air; water: None if not specified.
    current: velocity of the water (m/s), None for still water.
    signals: named functions of time.
    scene: the bodies for ray casting; hull: name of the model whose bodies are the vehicle's own.
    geoid: the mean sea level above the ellipsoid; None: the elevation of the origin is taken as above sea level.

    Raises `FieldError` for a geoid without an origin.

    >>> air = ns.environment.Environment(signals={"temperature": ns.environment.Signal((0.0, 60.0), (290.0, 300.0))})
    >>> air.signal("temperature", np.array([30.0]))
    array([295.])
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
    geoid: Geoid | None = None

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the geoid."""
        if self.geoid is not None and self.origin is None:
            remedy = "give Environment(origin=Origin(...)), or leave the geoid out"
            raise FieldError("geoid", self.geoid.file, allowed="requires a place on earth", remedy=remedy)

    @property
    def heading(self) -> float:
        """The angle (rad) from east to the world's x axis, counter-clockwise from above; 0 without an origin."""
        return self.origin.heading if self.origin else 0.0

    def signal(self, name: str, time: Times) -> FloatArray:
        """Return the signal `name` (n,) at times (n,) s in its own unit. Raises `FieldError` for an unknown name."""
        if name not in self.signals:
            allowed = f"must be one of {', '.join(self.signals) or 'none: the world has no signal'}"
            remedy = f'give the world <navsense:signal name="{name}">, or Environment(signals={{{name!r}: ...}})'
            raise FieldError("signal", name, allowed=allowed, remedy=remedy)
        return self.signals[name].at(time)

    def altitude_at(self, position_w: Vectors, raised: float = 0.0) -> FloatArray:
        """Return the altitude (n,) m above mean sea level at positions (n, 3) m, plus `raised` m.

        The altitude is ``h(p) - N(p)`` with a geoid, h the height above the ellipsoid and N the undulation. Without one
        it is ``z + elevation``. Raises `FieldError` as `Origin.to_geodetic` and `Geoid.undulation_at` do.
        """
        if self.geoid is None or self.origin is None:
            return position_w[:, 2] + ((self.origin.elevation if self.origin else 0.0) + raised)
        place = self.origin.to_geodetic(position_w)
        return place[:, 2] - self.geoid.undulation_at(place[:, 0], place[:, 1]) + raised

    def rotate(self, rotation: Quaternion) -> Environment:
        """Return the environment in a world rotated by `rotation`.

        Raises `FieldError` for a world with an origin unless the rotation is about the vertical.
        """
        return replace(
            self,
            gravity=self.gravity.rotate(rotation),
            magnetic_field=self.magnetic_field.rotate(rotation),
            origin=self.origin.rotate(rotation) if self.origin else None,
            current=self.current.rotate(rotation) if self.current else None,
            scene=self.scene.rotate(rotation),
        )
