"""A magnetic dipole: a motor, a battery, a wreck.

    B = mu0 / (4 pi r^3) (3 (m . u) u - m),   mu0 / 4 pi = 1e-7 T m/A,   u = (x - p) / r

m is the moment (A m^2) and p the place of the dipole, fixed in the world. Nearer than `radius` the field is that of the
surface in the same direction, r = radius in the formula, so that it stays bounded; at p itself u points along m.
Since 2019 mu0 / 4 pi is measured, and 1e-7 to 1 in 10^9. Source: Jackson 1998, Classical Electrodynamics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from navsense import pose
from navsense.errors import FieldError
from navsense.kernels import kernel
from navsense.typing import Quaternion, Times, Vector, Vectors

MU0_OVER_4_PI = 1e-7
"""T m/A."""

_MIN_LENGTH, _MAX_LENGTH = 1e-6, 1e9
"""m: limits of a radius, and of coordinates; what lies outside is a mistake, and its powers leave the doubles."""


@kernel
def _write_field(
    px: float, py: float, pz: float, mx: float, my: float, mz: float, radius: float, position_w: Vectors, out: Vectors
) -> None:
    """Write the field (n, 3) T."""
    for i in range(out.shape[0]):
        x, y, z = position_w[i, 0] - px, position_w[i, 1] - py, position_w[i, 2] - pz
        r = math.sqrt(x * x + y * y + z * z)
        if r == 0.0:
            x, y, z = mx, my, mz
            r = math.sqrt(x * x + y * y + z * z)
            if r == 0.0:
                r = 1.0
            x, y, z, r = x / r, y / r, z / r, 0.0
        else:
            x, y, z = x / r, y / r, z / r
        away = max(r, radius)
        scale = MU0_OVER_4_PI / (away * away * away)
        along = 3.0 * (mx * x + my * y + mz * z)
        out[i, 0], out[i, 1] = scale * (along * x - mx), scale * (along * y - my)
        out[i, 2] = scale * (along * z - mz)


@dataclass(frozen=True)
class Dipole:
    """A dipole at `position_w` (m) of the moment `moment_w` (A m^2), bounded within `radius` (m).

    Raises `FieldError` for a value that is not finite and a radius that is not positive.
    """

    position_w: Vector
    moment_w: Vector
    radius: float = 0.01

    def __post_init__(self) -> None:
        """Refuse what is no dipole."""
        for name in ("position_w", "moment_w"):
            if not all(abs(part) <= _MAX_LENGTH for part in getattr(self, name)):
                allowed = f"must be three numbers of a size up to {_MAX_LENGTH:g}"
                raise FieldError(f"{name} of a dipole", getattr(self, name), allowed=allowed)
        if not _MIN_LENGTH <= self.radius <= _MAX_LENGTH:
            allowed = f"must be from {_MIN_LENGTH:g} to {_MAX_LENGTH:g}"
            raise FieldError("radius of a dipole (m)", self.radius, allowed=allowed)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3) T."""
        out = np.empty(position_w.shape)
        px, py, pz = (float(part) for part in self.position_w)
        mx, my, mz = (float(part) for part in self.moment_w)
        _write_field(px, py, pz, mx, my, mz, float(self.radius), position_w, out)
        return out

    def rotate(self, rotation: Quaternion) -> Dipole:
        """Return the dipole of a world turned by `rotation`."""
        place, moment = pose.rotate(rotation, self.position_w), pose.rotate(rotation, self.moment_w)
        return replace(self, position_w=place, moment_w=moment)
