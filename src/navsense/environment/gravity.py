"""Normal gravity of the WGS-84 ellipsoid: the vector sum of attraction and centrifugal acceleration.

In ellipsoidal coordinates u, beta, lambda of the confocal ellipsoid through the position, with E^2 = a^2 - b^2:

    p = sqrt(u^2 + E^2) cos beta,   z = u sin beta,   w = sqrt((u^2 + E^2 sin^2 beta) / (u^2 + E^2))
    g_u    = (omega^2 u cos^2 beta
              - (GM + omega^2 a^2 E (q'/q0) (sin^2 beta / 2 - 1/6)) / (u^2 + E^2)) / w
    g_beta = (omega^2 a^2 (q/q0) / sqrt(u^2 + E^2) - omega^2 sqrt(u^2 + E^2)) sin beta cos beta / w
    q  = ((1 + 3 u^2/E^2) atan(E/u) - 3 u/E) / 2,   q0 = q(b),   q' = 3 (1 + u^2/E^2) (1 - (u/E) atan(E/u)) - 1

GM = 3.986004418e14 m^3/s^2, omega = 7.292115e-5 rad/s. The closed form is exact. On the ellipsoid it equals
Somigliana's formula, along the normal. Above, its direction includes the curvature of the plumb line. Below the
ellipsoid the free-air formula applies: the mass of rock or water above is not subtracted.
Source: NIMA TR8350.2 (2000), chapter 4; Hofmann-Wellenhof and Moritz 2006, Physical Geodesy, 2.7 and 2.8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.geodesy import EARTH_RATE, ECCENTRICITY_2, MIN_RADIUS, SEMI_MAJOR, SEMI_MINOR, Origin
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternion, Times, Vectors

GRAVITATIONAL_CONSTANT = 3.986004418e14
"""GM of the earth including the atmosphere (m^3/s^2), a defining constant of WGS-84."""

_E2 = SEMI_MAJOR * SEMI_MAJOR * ECCENTRICITY_2
_E = math.sqrt(_E2)
_WA2 = EARTH_RATE * EARTH_RATE * SEMI_MAJOR * SEMI_MAJOR
_B = SEMI_MINOR / _E
_Q0 = 0.5 * ((1.0 + 3.0 * _B * _B) * math.atan(1.0 / _B) - 3.0 * _B)


@kernel
def gravity_e(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return normal gravity (m/s^2) in earth-centred coordinates at an earth-centred position (m)."""
    p2, z2 = x * x + y * y, z * z
    excess = p2 + z2 - _E2
    u = math.sqrt(0.5 * (excess + math.sqrt(excess * excess + 4.0 * _E2 * z2)))
    v2 = u * u + _E2
    v, p, k = math.sqrt(v2), math.sqrt(p2), u / _E
    s, c = z / u, p / v
    w = math.sqrt((u * u + _E2 * s * s) / v2)
    angle = math.atan(1.0 / k)
    q = 0.5 * ((1.0 + 3.0 * k * k) * angle - 3.0 * k) / _Q0
    q1 = (3.0 * (1.0 + k * k) * (1.0 - k * angle) - 1.0) / _Q0
    spin = EARTH_RATE * EARTH_RATE
    gu = (spin * u * c * c - (GRAVITATIONAL_CONSTANT + _WA2 * _E * q1 * (0.5 * s * s - 1.0 / 6.0)) / v2) / w
    gb = (_WA2 * q / v - spin * v) * s * c / w
    outward = (u * c / v * gu - s * gb) / w
    upward = (s * gu + u * c / v * gb) / w
    if p == 0.0:
        return 0.0, 0.0, upward
    return outward * x / p, outward * y / p, upward


@kernel
def _write_gravity(frame: FloatArray, position_w: Vectors, out: Vectors) -> int:
    """Write gravity (m/s^2) in the world frame; return the first row too near to or far from the centre, or -1."""
    for i in range(position_w.shape[0]):
        px, py, pz = position_w[i, 0], position_w[i, 1], position_w[i, 2]
        x = frame[0, 0] * px + frame[0, 1] * py + frame[0, 2] * pz + frame[0, 3]
        y = frame[1, 0] * px + frame[1, 1] * py + frame[1, 2] * pz + frame[1, 3]
        z = frame[2, 0] * px + frame[2, 1] * py + frame[2, 2] * pz + frame[2, 3]
        if not MIN_RADIUS * MIN_RADIUS <= x * x + y * y + z * z <= 1e20:
            return i
        gx, gy, gz = gravity_e(x, y, z)
        for axis in range(3):
            out[i, axis] = frame[0, axis] * gx + frame[1, axis] * gy + frame[2, axis] * gz
    return -1


@dataclass(frozen=True)
class NormalGravity:
    """Normal gravity (m/s^2) of WGS-84 around a world's origin.

    >>> from navsense.core.geodesy import Origin
    >>> oslo = Origin(latitude=np.radians(59.9), longitude=np.radians(10.7))
    >>> ns.environment.NormalGravity(oslo).at(np.zeros((1, 3)), np.zeros(1)).round(4)
    array([[-0.    , -0.    , -9.8191]])
    """

    origin: Origin

    __repr__, _repr_html_ = format_spec, format_spec_html

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return gravity (n, 3) m/s^2. Raises `FieldError` for a position outside the range of the formula."""
        out = np.empty(position_w.shape)
        row = _write_gravity(self.origin.ecef_transform, position_w, out)
        if row >= 0:
            allowed = f"must be from {MIN_RADIUS / 1000.0:g} to 10000000 km from the earth's centre"
            raise FieldError("position (m)", tuple(position_w[row].tolist()), row=row, allowed=allowed)
        return out

    def rotate(self, rotation: Quaternion) -> NormalGravity:
        """Return gravity in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        return replace(self, origin=self.origin.rotate(rotation))
