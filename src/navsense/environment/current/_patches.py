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

from navsense.environment.current._checks import MAX_COORDINATE
from navsense.geodesy import ECCENTRICITY_2, SEMI_MAJOR, ecef_to_geodetic
from navsense.kernels import kernel
from navsense.typing import FloatArray

CUBE_SIDE, HALF = 16.0, 8.0
"""m: edge of a cube, and half of it."""

PATCH_SIZE, MIDDLE, PLACE, SLOPE, TURN, REACH = 25, 0, 3, 6, 15, 24
"""Numbers of a cube; from which on are its middle (m), the place there, the slopes of the place along the world's axes
(3 x 3), and east, north, up along these (3 x 3); last how far along each axis they reach (m), 0 for there alone."""
_POLE_COSINE = 2e-3
"""Cosine of the latitude."""


@kernel
def _write_patch(frame: FloatArray, x: float, y: float, z: float, patch: FloatArray) -> None:
    """Leave the place, slopes and directions at x, y, z (m)."""
    ex = frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z + frame[0, 3]
    ey = frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z + frame[1, 3]
    ez = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z + frame[2, 3]
    latitude, longitude, altitude = ecef_to_geodetic(ex, ey, ez)
    s, c = math.sin(latitude), math.cos(latitude)
    sine, cosine = math.sin(longitude), math.cos(longitude)
    w = 1.0 - ECCENTRICITY_2 * s * s
    across = SEMI_MAJOR / math.sqrt(w)
    along = across * (1.0 - ECCENTRICITY_2) / w
    patch[MIDDLE], patch[MIDDLE + 1], patch[MIDDLE + 2] = x, y, z
    patch[PLACE], patch[PLACE + 1], patch[PLACE + 2] = latitude, longitude, altitude
    patch[REACH] = HALF if c > _POLE_COSINE else 0.0
    for axis in range(3):
        fx, fy, fz = frame[0, axis], frame[1, axis], frame[2, axis]
        outward = cosine * fx + sine * fy
        patch[TURN + axis] = cosine * fy - sine * fx
        patch[TURN + 3 + axis] = c * fz - s * outward
        patch[TURN + 6 + axis] = s * fz + c * outward
        patch[SLOPE + axis] = patch[TURN + 3 + axis] / (along + altitude)
        patch[SLOPE + 3 + axis] = patch[TURN + axis] / ((across + altitude) * c)
        patch[SLOPE + 6 + axis] = patch[TURN + 6 + axis]


@kernel
def update_patch(frame: FloatArray, x: float, y: float, z: float, patch: FloatArray) -> None:
    """Leave in here (PATCH,) the cube that holds x, y, z (m), or near a pole that place itself; NaN for no position."""
    if not (abs(x) <= MAX_COORDINATE and abs(y) <= MAX_COORDINATE and abs(z) <= MAX_COORDINATE):
        for k in range(TURN):
            patch[k] = math.nan
        return
    i, j, k = math.floor(x / CUBE_SIDE), math.floor(y / CUBE_SIDE), math.floor(z / CUBE_SIDE)
    _write_patch(frame, (i + 0.5) * CUBE_SIDE, (j + 0.5) * CUBE_SIDE, (k + 0.5) * CUBE_SIDE, patch)
    if not patch[REACH] > 0.0:
        _write_patch(frame, x, y, z, patch)
        patch[REACH] = 0.0
        for k in range(9):
            patch[SLOPE + k] = 0.0
