"""The earth's magnetic field from NOAA's World Magnetic Model, by place and date.

    (X, Y, Z)  field along geodetic north, east and down;   B_w = Rz(-heading) (Y, X, -Z) at the world's origin
    X = X' cos psi - Z' sin psi,   Z = X' sin psi + Z' cos psi,   psi = phi' - phi
    H = sqrt(X^2 + Y^2),  F = sqrt(H^2 + Z^2),  D = atan2(Y, X),  I = atan2(Z, H)

X', Y', Z' along geocentric north, east and down come from the sum of `_harmonics`. Away from the origin north, east and
down are those of the place, turned into the world's axes. The model is the field of the earth's core alone: no crust,
no daily variation, no storms. Its date stands still during a run; a day changes it by 0.2 nT, in places by 0.6 nT.
Source: Chulliat et al. 2020, The US/UK World Magnetic Model for 2020-2025: Technical Report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from navsense.environment._harmonics import compute_coefficients, sum_harmonics
from navsense.environment._lattice import MAX_DISTANCE, get_lattice
from navsense.errors import FieldError
from navsense.geodesy import Origin, geodetic_to_ecef
from navsense.kernels import kernel
from navsense.typing import BoolArray, FloatArray, Quaternion, Times, Vectors

BLACKOUT_LIMIT, CAUTION_LIMIT = 2e-6, 6e-6
"""T of horizontal field: below, NOAA calls a compass useless, or to be used with caution."""


@kernel
def _write_field_ned(
    coefficients: FloatArray, latitude: FloatArray, longitude: FloatArray, altitude: FloatArray, out: Vectors
) -> int:
    """Write (X, Y, Z) (n, 3) T; return the first row that is no place, -1 where there is none."""
    for i in range(out.shape[0]):
        if not (
            abs(latitude[i]) <= 0.5 * math.pi and abs(longitude[i]) < math.inf and abs(altitude[i]) <= MAX_DISTANCE
        ):
            return i
        x, y, z = geodetic_to_ecef(latitude[i], longitude[i], altitude[i])
        p, r = math.sqrt(x * x + y * y), math.sqrt(x * x + y * y + z * z)
        s, c = z / r, p / r
        north, east, down = sum_harmonics(coefficients, r, s, c, math.sin(longitude[i]), math.cos(longitude[i]))
        sine, cosine = math.sin(latitude[i]), math.cos(latitude[i])
        turn, ahead = s * cosine - c * sine, c * cosine + s * sine
        out[i, 0], out[i, 1] = 1e-9 * (north * ahead - down * turn), 1e-9 * east
        out[i, 2] = 1e-9 * (north * turn + down * ahead)
    return -1


@kernel
def _write_elements(field: Vectors, out: Vectors) -> None:
    """Write H, F, D, I (n, 4) of (X, Y, Z) (n, 3)."""
    for i in range(field.shape[0]):
        x, y, z = field[i, 0], field[i, 1], field[i, 2]
        h = math.sqrt(x * x + y * y)
        out[i, 0], out[i, 1] = h, math.sqrt(h * h + z * z)
        out[i, 2], out[i, 3] = math.atan2(y, x), math.atan2(z, h)


def field_ned(
    latitude: FloatArray, longitude: FloatArray, altitude: FloatArray, date: float, model: str = "WMM2025"
) -> Vectors:
    """Return the field (n, 3) T along geodetic north, east and down: the model itself, without a lattice.

    `latitude`, `longitude` (n,) rad and `altitude` (n,) m are of the WGS-84 ellipsoid, `date` is a decimal year. At a
    pole north is where the longitude says.

    Raises `FieldError` for an unknown model, a date that it does not hold at and what is no place.
    """
    out = np.empty((latitude.shape[0], 3))
    row = _write_field_ned(compute_coefficients(model, date), latitude, longitude, altitude, out)
    if row >= 0:
        raise FieldError(
            "place (latitude, longitude, altitude)",
            (float(latitude[row]), float(longitude[row]), float(altitude[row])),
            row=row,
            allowed="must be finite, the latitude from -pi/2 to pi/2, the altitude at most 5000 km",
        )
    return out


@dataclass(frozen=True, eq=False)
class MagneticElements:
    """Magnetic elements (n,): `horizontal` and `total` T, `declination` (east of north) and `inclination` (down) rad.

    `blackout` is true where the horizontal field is below 2000 nT, `caution` where it is from there to 6000 nT.
    """

    horizontal: FloatArray
    total: FloatArray
    declination: FloatArray
    inclination: FloatArray

    @property
    def blackout(self) -> BoolArray:
        """Return where a compass is useless (n,)."""
        return self.horizontal < BLACKOUT_LIMIT

    @property
    def caution(self) -> BoolArray:
        """Return where a compass is to be used with caution (n,)."""
        return (self.horizontal >= BLACKOUT_LIMIT) & (self.horizontal < CAUTION_LIMIT)


def compute_elements(field: Vectors) -> MagneticElements:
    """Return the elements of a field (n, 3) T along north, east and down."""
    out = np.empty((4, field.shape[0])).T
    _write_elements(field, out)
    return MagneticElements(out[:, 0], out[:, 1], out[:, 2], out[:, 3])


@dataclass(frozen=True)
class WorldMagneticModel:
    """The field (T) of the model around a world's origin at a decimal year, on a lattice 1 km wide.

    Within 0.1 nT of the model itself. Raises `FieldError` for an unknown model and a date that it does not hold at.
    """

    origin: Origin
    date: float
    model: str = "WMM2025"

    def __post_init__(self) -> None:
        """Refuse a date that the model does not hold at."""
        compute_coefficients(self.model, self.date)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3) T. Raises `FieldError` farther than 5000 km from the origin."""
        here, out = self.origin, np.empty(position_w.shape)
        nodes = get_lattice(self.model, self.date, here.latitude, here.longitude, here.elevation)
        row = nodes.write_field(position_w, here.heading, out)
        if row >= 0:
            raise FieldError(
                "position (m)",
                tuple(position_w[row].tolist()),
                row=row,
                allowed=f"must be within {MAX_DISTANCE / 1000.0:g} km of the origin along each axis",
            )
        return out

    def rotate(self, rotation: Quaternion) -> WorldMagneticModel:
        """Return the same field in a world turned by `rotation`, about the vertical. Raises `FieldError` otherwise."""
        return replace(self, origin=self.origin.rotate(rotation))
