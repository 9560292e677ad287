"""A field on nodes 1 km apart, straight between them: what makes the magnetic model cheap along a track.

Node (i, j, k) stands at (i, j, k) km east, north and up of the world's origin, whatever the heading. Its value depends
on nothing but its place, so a reading is the same whatever track led there. Between the nodes of a cell the field is
trilinear; it differs from the model by less than d^2/8 (|B_xx| + |B_yy| + |B_zz|), some 0.01 nT.

The eight nodes of each cell met are kept, in a table that a later cell may write over.
"""

from __future__ import annotations

import math
from functools import lru_cache
from threading import Lock

import numpy as np

from navsense.environment._harmonics import compute_coefficients, sum_harmonics
from navsense.geodesy import Origin
from navsense.kernels import kernel
from navsense.typing import FloatArray, IntArray, Vectors

NODE_SPACING = 1000.0
"""m between nodes."""

MAX_DISTANCE = 5.0e6
"""m from the origin along an axis: farther out there are no nodes."""

_SIDE = 8
_SLOTS = _SIDE**3
_EMPTY = 1 << 62


@kernel
def field_e(table: FloatArray, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the field (nT) in earth-centred coordinates at an earth-centred place (m)."""
    p2 = x * x + y * y
    r, p = math.sqrt(p2 + z * z), math.sqrt(p2)
    s, c, sine, cosine = z / r, p / r, 0.0, 1.0
    if p > 0.0:
        sine, cosine = y / p, x / p
    north, east, down = sum_harmonics(table, r, s, c, sine, cosine)
    outward = -north * s - down * c
    return outward * cosine - east * sine, outward * sine + east * cosine, north * c - down * s


@kernel
def _fill_cell(table: FloatArray, frame: FloatArray, i: int, j: int, k: int, corners: FloatArray) -> None:
    """Write the field (T) along east, north, up of the origin at the eight nodes of cell (i, j, k), (8, 3)."""
    for corner in range(8):
        x, y, z = (
            (i + (corner & 1)) * NODE_SPACING,
            (j + ((corner >> 1) & 1)) * NODE_SPACING,
            (k + (corner >> 2)) * NODE_SPACING,
        )
        ex, ey, ez = field_e(
            table,
            frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z + frame[0, 3],
            frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z + frame[1, 3],
            frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z + frame[2, 3],
        )
        for axis in range(3):
            corners[corner, axis] = 1e-9 * (frame[0, axis] * ex + frame[1, axis] * ey + frame[2, axis] * ez)


@kernel
def _interpolate(corners: FloatArray, axis: int, x: float, y: float, z: float) -> float:
    """Return one component at the shares x, y, z of a cell."""
    a: float = corners[0, axis] + x * (corners[1, axis] - corners[0, axis])
    b: float = corners[2, axis] + x * (corners[3, axis] - corners[2, axis])
    c: float = corners[4, axis] + x * (corners[5, axis] - corners[4, axis])
    d: float = corners[6, axis] + x * (corners[7, axis] - corners[6, axis])
    low, high = a + y * (b - a), c + y * (d - c)
    return low + z * (high - low)


@kernel
def _write_field(
    table: FloatArray,
    frame: FloatArray,
    cells: IntArray,
    corners: FloatArray,
    sine: float,
    cosine: float,
    position_w: Vectors,
    out: Vectors,
) -> int:
    """Write the field (T) in the world frame; return the first row out of reach, -1 where there is none."""
    for row in range(position_w.shape[0]):
        x, y, z = position_w[row, 0], position_w[row, 1], position_w[row, 2]
        if not (abs(x) <= MAX_DISTANCE and abs(y) <= MAX_DISTANCE and abs(z) <= MAX_DISTANCE):
            return row
        east, north, up = (
            (cosine * x - sine * y) / NODE_SPACING,
            (sine * x + cosine * y) / NODE_SPACING,
            z / NODE_SPACING,
        )
        i, j, k = math.floor(east), math.floor(north), math.floor(up)
        slot = (i % _SIDE) + _SIDE * ((j % _SIDE) + _SIDE * (k % _SIDE))
        if cells[slot, 0] != i or cells[slot, 1] != j or cells[slot, 2] != k:
            _fill_cell(table, frame, i, j, k, corners[slot])
            cells[slot, 0], cells[slot, 1], cells[slot, 2] = i, j, k
        east, north, up = east - i, north - j, up - k
        be = _interpolate(corners[slot], 0, east, north, up)
        bn = _interpolate(corners[slot], 1, east, north, up)
        out[row, 0], out[row, 1] = cosine * be + sine * bn, cosine * bn - sine * be
        out[row, 2] = _interpolate(corners[slot], 2, east, north, up)
    return -1


class MagneticLattice:
    """The nodes of one model, date and place, and the cells of them that were met."""

    def __init__(self, model: str, date: float, origin: Origin) -> None:
        """Start without cells; raises `FieldError` as `coefficients` does."""
        self._table, self._frame = compute_coefficients(model, date), origin.ecef_transform
        self._cells = np.full((_SLOTS, 3), _EMPTY, dtype=np.int64)
        self._corners = np.empty((_SLOTS, 8, 3))
        self._lock = Lock()

    def write_field(self, position_w: Vectors, heading: float, out: Vectors) -> int:
        """Write the field (n, 3) T of a world of that heading; return the first row out of reach, -1 for none."""
        sine, cosine = math.sin(heading), math.cos(heading)
        with self._lock:
            return _write_field(self._table, self._frame, self._cells, self._corners, sine, cosine, position_w, out)


@lru_cache(maxsize=16)
def get_lattice(model: str, date: float, latitude: float, longitude: float, elevation: float) -> MagneticLattice:
    """Return the lattice of a model, a decimal year and a place; the same one each time while it is in use."""
    return MagneticLattice(model, date, Origin(latitude, longitude, elevation))
