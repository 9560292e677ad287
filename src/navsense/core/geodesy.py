"""The earth's ellipsoid, and the place of the world on it.

WGS-84: a = 6378137 m, f = 1 / 298.257223563, e^2 = f (2 - f), b = a (1 - f). Geodetic latitude phi, longitude lambda
(rad), altitude h (m above the ellipsoid) and earth-centred coordinates e, x to longitude 0, z to the north pole:

    x = (N + h) cos phi cos lambda,  y = (N + h) cos phi sin lambda,  z = ((1 - e^2) N + h) sin phi
    N = a / sqrt(1 - e^2 sin^2 phi)

The inverse is Bowring's: with p = sqrt(x^2 + y^2) and the reduced latitude beta, tan beta = (1 - f) tan phi,

    tan phi = (z + e'^2 b sin^3 beta) / (p - e^2 a cos^3 beta),   e'^2 = e^2 / (1 - e^2)
    h = p cos phi + z sin phi - a sqrt(1 - e^2 sin^2 phi)

It is iterated three times on sine and cosine, so the poles need no special case. The world is a flat frame, level at
its origin: x_e = rotation_ew x_w + origin_e, where the world's x axis points `heading` from east towards north and its
z axis along the ellipsoid's normal. Sources: NIMA TR8350.2 (2000); Bowring 1976, Survey Review 23 (181).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternion, Vector, Vectors

SEMI_MAJOR = 6378137.0
"""a, m (WGS-84, defining)."""

FLATTENING = 1.0 / 298.257223563
"""f (WGS-84, defining)."""

SEMI_MINOR = SEMI_MAJOR * (1.0 - FLATTENING)
ECCENTRICITY_2 = FLATTENING * (2.0 - FLATTENING)

EARTH_RATE = 7.292115e-5
"""rad/s: the earth's rotation rate relative to the stars (WGS-84, defining)."""

MIN_RADIUS = 1.0e6
"""m: smallest distance from the earth's centre for a latitude."""

_SECOND_ECCENTRICITY_2 = ECCENTRICITY_2 / (1.0 - ECCENTRICITY_2)
_ITERATIONS = 3
MAX_ELEVATION = 1.0e6
"""m: largest distance of the world's origin from the ellipsoid."""

_VERTICAL_TOLERANCE = 1e-9
"""Largest x or y of a unit quaternion that counts as a rotation about the vertical."""


@kernel
def geodetic_to_ecef(latitude: float, longitude: float, altitude: float) -> tuple[float, float, float]:
    """Return the earth-centred x, y, z (m) of geodetic latitude, longitude (rad) and altitude (m)."""
    s, c = math.sin(latitude), math.cos(latitude)
    n = SEMI_MAJOR / math.sqrt(1.0 - ECCENTRICITY_2 * s * s)
    p = (n + altitude) * c
    z = ((1.0 - ECCENTRICITY_2) * n + altitude) * s
    return p * math.cos(longitude), p * math.sin(longitude), z


@kernel
def ecef_to_geodetic(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return geodetic latitude, longitude in [-pi, pi] (rad) and altitude (m) of an earth-centred position (m).

    NaN within `MIN_RADIUS` of the centre, and for a coordinate that is not finite.
    """
    p2 = x * x + y * y
    if not MIN_RADIUS * MIN_RADIUS <= p2 + z * z < math.inf:
        return math.nan, math.nan, math.nan
    p = math.sqrt(p2)
    s, c = z, p * (1.0 - FLATTENING)
    up, out = z, p
    for _ in range(_ITERATIONS):
        length = math.sqrt(s * s + c * c)
        s, c = s / length, c / length
        up = z + _SECOND_ECCENTRICITY_2 * SEMI_MINOR * s * s * s
        out = p - ECCENTRICITY_2 * SEMI_MAJOR * c * c * c
        s, c = (1.0 - FLATTENING) * up, out
    length = math.sqrt(up * up + out * out)
    s, c = up / length, out / length
    altitude = p * c + z * s - SEMI_MAJOR * math.sqrt(1.0 - ECCENTRICITY_2 * s * s)
    return math.atan2(up, out), math.atan2(y, x), altitude


@kernel
def _write_geodetic(frame: FloatArray, position_w: Vectors, out: Vectors) -> int:
    """Write latitude, longitude, altitude (n, 3); return the first row with NaN, -1 without one."""
    for i in range(position_w.shape[0]):
        x, y, z = position_w[i, 0], position_w[i, 1], position_w[i, 2]
        out[i, 0], out[i, 1], out[i, 2] = ecef_to_geodetic(
            frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z + frame[0, 3],
            frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z + frame[1, 3],
            frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z + frame[2, 3],
        )
        if out[i, 2] != out[i, 2]:
            return i
    return -1


@kernel
def _write_positions(frame: FloatArray, coordinates: Vectors, out: Vectors) -> None:
    """Write world positions (n, 3) m of rows of latitude, longitude, altitude."""
    for i in range(coordinates.shape[0]):
        x, y, z = geodetic_to_ecef(coordinates[i, 0], coordinates[i, 1], coordinates[i, 2])
        x, y, z = x - frame[0, 3], y - frame[1, 3], z - frame[2, 3]
        for axis in range(3):
            out[i, axis] = frame[0, axis] * x + frame[1, axis] * y + frame[2, axis] * z


@kernel
def _write_enu(sine: float, cosine: float, vector_w: Vectors, out: Vectors) -> None:
    """Write Rz(heading) v (n, 3)."""
    for i in range(vector_w.shape[0]):
        x, y = vector_w[i, 0], vector_w[i, 1]
        out[i, 0], out[i, 1], out[i, 2] = cosine * x - sine * y, sine * x + cosine * y, vector_w[i, 2]


@kernel
def _write_enu_at(frame: FloatArray, coordinates: Vectors, vector_w: Vectors, out: Vectors) -> None:
    """Write the vectors (n, 3) along east, north and up of each position."""
    for i in range(vector_w.shape[0]):
        x, y, z = vector_w[i, 0], vector_w[i, 1], vector_w[i, 2]
        vx = frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z
        vy = frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z
        vz = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z
        s, c = math.sin(coordinates[i, 0]), math.cos(coordinates[i, 0])
        sine, cosine = math.sin(coordinates[i, 1]), math.cos(coordinates[i, 1])
        outward = cosine * vx + sine * vy
        out[i, 0] = cosine * vy - sine * vx
        out[i, 1] = c * vz - s * outward
        out[i, 2] = s * vz + c * outward


@dataclass(frozen=True)
class Origin:
    """The place of the world's origin: latitude, longitude (rad), elevation (m above the ellipsoid), heading (rad).

    The world's x axis points `heading` from east towards north: v_w = Rz(-heading) v_enu.

    Raises `FieldError` for an invalid value.

    >>> from navsense.core.geodesy import Origin
    >>> oslo = Origin(latitude=np.radians(59.9), longitude=np.radians(10.7))
    >>> north = oslo.to_geodetic(np.array([[0.0, 1000.0, 0.0]]))
    >>> np.degrees(north[0, :2]).round(4)  # 1 km to the north
    array([59.909, 10.7  ])
    """

    latitude: float
    longitude: float
    elevation: float = 0.0
    heading: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        for name, limit in _LIMITS.items():
            value = getattr(self, name)
            if not (abs(value) <= limit and math.isfinite(value)):
                allowed = f"must be from {-limit!r} to {limit!r}" if limit < math.inf else "must be a finite number"
                raise FieldError(f"{name} of the origin", value, allowed=allowed)

    @cached_property
    def ecef_transform(self) -> FloatArray:
        """Rotation_ew and the earth-centred position (m) of the origin as one array (3, 4), read-only."""
        s, c = math.sin(self.latitude), math.cos(self.latitude)
        sine, cosine = math.sin(self.longitude), math.cos(self.longitude)
        east = (-sine, cosine, 0.0)
        north = (-s * cosine, -s * sine, c)
        turn, ahead = math.sin(self.heading), math.cos(self.heading)
        rows = np.empty((3, 4))
        for axis in range(3):
            rows[axis, 0] = ahead * east[axis] + turn * north[axis]
            rows[axis, 1] = ahead * north[axis] - turn * east[axis]
        rows[:, 2] = (c * cosine, c * sine, s)
        rows[:, 3] = geodetic_to_ecef(self.latitude, self.longitude, self.elevation)
        rows.setflags(write=False)
        return rows

    def to_geodetic(self, position_w: Vectors) -> Vectors:
        """Return latitude, longitude (rad) and altitude (m) (n, 3) at world positions (n, 3) m.

        Raises `FieldError` for a position that is not finite or nearer than `MIN_RADIUS` to the earth's centre.
        """
        out = np.empty(position_w.shape)
        row = _write_geodetic(self.ecef_transform, position_w, out)
        if row >= 0:
            raise FieldError(
                "position (m)",
                tuple(position_w[row].tolist()),
                row=row,
                allowed=f"must be finite and at least {MIN_RADIUS / 1000.0:g} km from the earth's centre",
            )
        return out

    def to_world(self, coordinates: Vectors) -> Vectors:
        """Return world positions (n, 3) m of rows of latitude, longitude (rad) and altitude (m)."""
        out = np.empty(coordinates.shape)
        _write_positions(self.ecef_transform, coordinates, out)
        return out

    def to_enu(self, vector_w: Vectors) -> Vectors:
        """Return vectors (n, 3), any unit, of the world along east, north and up of the origin."""
        out = np.empty(vector_w.shape)
        _write_enu(math.sin(self.heading), math.cos(self.heading), vector_w, out)
        return out

    def to_enu_at(self, coordinates: Vectors, vector_w: Vectors) -> Vectors:
        """Return vectors (n, 3), any unit, of the world along east, north and up of each of the `places` (n, 3).

        A place is a row of latitude, longitude (rad) and altitude (m), as `to_geodetic` returns them.
        """
        out = np.empty(vector_w.shape)
        _write_enu_at(self.ecef_transform, coordinates, vector_w, out)
        return out

    def rotate(self, rotation: Quaternion) -> Origin:
        """Return the origin of a world rotated by `rotation`, which must be about the vertical.

        Raises `FieldError` for another rotation.
        """
        w, x, y, z = rotation
        if max(abs(x), abs(y)) > _VERTICAL_TOLERANCE:
            raise FieldError("rotation of a world on earth", rotation, allowed="must be about the vertical")
        return replace(self, heading=math.remainder(self.heading - 2.0 * math.atan2(z, w), 2.0 * math.pi))


_LIMITS = {"latitude": math.pi / 2.0, "longitude": 2.0 * math.pi, "elevation": MAX_ELEVATION, "heading": math.inf}


MEAN_RADIUS = 6_371_000.0
"""m, of the sphere that has the mean radius of WGS-84."""


def compute_distances(origin: Origin, coordinates: FloatArray) -> FloatArray:
    """Return the distances (n,) m on a sphere from the origin of a world.

    coordinates: (n, 2) latitude and longitude, rad.

    >>> oslo = Origin(math.radians(59.9), math.radians(10.7))
    >>> compute_distances(oslo, np.radians([[60.9, 10.7]])).round(-2)
    array([111200.])
    """
    latitude, east = coordinates[:, 0], coordinates[:, 1] - origin.longitude
    # Haversines keep the digits of short distances.
    square = (
        np.sin(0.5 * (latitude - origin.latitude)) ** 2
        + np.cos(latitude) * np.cos(origin.latitude) * np.sin(0.5 * east) ** 2
    )
    distances: FloatArray = 2.0 * MEAN_RADIUS * np.arcsin(np.sqrt(np.minimum(square, 1.0)))
    return distances


def compute_earth_rate_w(origin: Origin) -> Vector:
    """Return the earth's angular velocity (rad/s) in the world frame, which is the same everywhere.

    A gyroscope on a body that rotates at omega_wb relative to the world measures ``omega_wb + rotation_wb^-1
    earth_rate_w``. An accelerometer that moves with v_w measures ``rotation_wb^-1 (a_w + 2 compute_earth_rate_w x v_w -
    g_w)``: normal gravity includes the centrifugal part.
    """
    x, y, z = (EARTH_RATE * float(part) for part in origin.ecef_transform[2, :3])
    return (x, y, z)
