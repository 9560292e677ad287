"""Latitude, longitude, altitude and the directions of east, north and up, patch by patch: quick along a track.

The world is cut into cubes of 16 m, counted from its origin. At a cube's middle the place (phi, lambda, h) and the
directions are worked out; from there, with (e, n, u) the way along them,

    d phi = n / (M + h),   d lambda = e / ((N + h) cos phi),   d h = u

M and N the radii of curvature along the meridian and across. What is left out is e^2 / 2R and alike: below 0.03 mm, and
times tan phi. The directions stay those of the middle, which turns a vector by up to 2e-6 rad, times tan phi. Within
12 km of a pole each place is worked out by itself.
"""

from __future__ import annotations

import math

from navsense.compiled import kernel
from navsense.environment.current._checks import FARTHEST
from navsense.geodesy import ECCENTRICITY_2, SEMI_MAJOR, geodetic
from navsense.typing import FloatArray

SIDE, HALF = 16.0, 8.0
"""m: edge of a cube, and half of it."""

PATCH, MIDDLE, PLACE, SLOPE, TURN, REACH = 25, 0, 3, 6, 15, 24
"""Numbers of a cube; from which on are its middle (m), the place there, the slopes of the place along the world's axes
(3 x 3), and east, north, up along these (3 x 3); last how far along each axis they reach (m), 0 for there alone."""
_NEAR_A_POLE = 2e-3
"""Cosine of the latitude."""


@kernel
def _work_out(frame: FloatArray, x: float, y: float, z: float, here: FloatArray) -> None:
    """Leave the place, slopes and directions at x, y, z (m)."""
    ex = frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z + frame[0, 3]
    ey = frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z + frame[1, 3]
    ez = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z + frame[2, 3]
    latitude, longitude, altitude = geodetic(ex, ey, ez)
    s, c = math.sin(latitude), math.cos(latitude)
    sine, cosine = math.sin(longitude), math.cos(longitude)
    w = 1.0 - ECCENTRICITY_2 * s * s
    across = SEMI_MAJOR / math.sqrt(w)
    along = across * (1.0 - ECCENTRICITY_2) / w
    here[MIDDLE], here[MIDDLE + 1], here[MIDDLE + 2] = x, y, z
    here[PLACE], here[PLACE + 1], here[PLACE + 2] = latitude, longitude, altitude
    here[REACH] = HALF if c > _NEAR_A_POLE else 0.0
    for axis in range(3):
        fx, fy, fz = frame[0, axis], frame[1, axis], frame[2, axis]
        outward = cosine * fx + sine * fy
        here[TURN + axis] = cosine * fy - sine * fx
        here[TURN + 3 + axis] = c * fz - s * outward
        here[TURN + 6 + axis] = s * fz + c * outward
        here[SLOPE + axis] = here[TURN + 3 + axis] / (along + altitude)
        here[SLOPE + 3 + axis] = here[TURN + axis] / ((across + altitude) * c)
        here[SLOPE + 6 + axis] = here[TURN + 6 + axis]


@kernel
def settle(frame: FloatArray, x: float, y: float, z: float, here: FloatArray) -> None:
    """Leave in here (PATCH,) the cube that holds x, y, z (m), or near a pole that place itself; NaN for no position."""
    if not (abs(x) <= FARTHEST and abs(y) <= FARTHEST and abs(z) <= FARTHEST):
        for k in range(TURN):
            here[k] = math.nan
        return
    i, j, k = math.floor(x / SIDE), math.floor(y / SIDE), math.floor(z / SIDE)
    _work_out(frame, (i + 0.5) * SIDE, (j + 0.5) * SIDE, (k + 0.5) * SIDE, here)
    if not here[REACH] > 0.0:
        _work_out(frame, x, y, z, here)
        here[REACH] = 0.0
        for k in range(9):
            here[SLOPE + k] = 0.0
