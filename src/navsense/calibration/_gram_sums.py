"""Sums over readings with known attitude: all that the calibration needs, in one pass and a few hundred numbers.

    z = (R_ws row by row, 1) (10,)    u = (z, m - m_0) (13,)    U_k = sum over blocks of 8^k samples of v v', v = sum u

R_ws takes sensor to world coordinates. m_0 is the first reading (any unit); it preserves the digits of readings with a
large bias. U_0 is the Gram matrix of z and m: it determines every fit that is linear in z, with its residuals. U_k
gives the variance of the block sums of the residuals (`verdict`). Blocks are counted over all samples: the sums are
bitwise equal for a record that is split anywhere.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from navsense.calibration.verdict import BLOCK_FACTOR, BLOCK_LEVELS
from navsense.core.kernels import kernel
from navsense.core.rotation import to_matrix
from navsense.core.typing import FloatArray, Quaternions, Vectors

SIZE: Final = 13
"""Length of u: nine numbers of the rotation, the constant 1, three of the reading."""

PADDED_SIZE: Final = 16
"""Columns of a row of u in memory, padded with zeros to full SIMD registers."""

TILE: Final = BLOCK_FACTOR * BLOCK_FACTOR
"""Rows in one product."""


@kernel
def _add_products(u: FloatArray, out: FloatArray) -> None:
    """Add the sum of u u' over the rows of a tile (n, 16) to `out` (16, 16), at least on and below the diagonal."""
    for i in range(SIZE):
        for j in range(0, i + 1, 4):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(u.shape[0]):
                x = u[k, i]
                a += x * u[k, j]
                b += x * u[k, j + 1]
                c += x * u[k, j + 2]
                d += x * u[k, j + 3]
            out[i, j] += a
            out[i, j + 1] += b
            out[i, j + 2] += c
            out[i, j + 3] += d


@kernel
def _add_blocks(u: FloatArray, out: FloatArray) -> None:
    """Write the sums over blocks of `BLOCK_FACTOR` rows of a tile (n, 16) to `out` (n / BLOCK_FACTOR, 16)."""
    for block in range(out.shape[0]):
        for j in range(PADDED_SIZE):
            total = 0.0
            for k in range(block * BLOCK_FACTOR, (block + 1) * BLOCK_FACTOR):
                total += u[k, j]
            out[block, j] = total


@kernel
def _write_rotation(w: float, x: float, y: float, z: float, u: FloatArray) -> None:
    """Write the rotation matrix of a quaternion of any length to u (16,), row by row, and the constant 1."""
    u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8] = to_matrix(w, x, y, z)
    u[9] = 1.0


@kernel
def _add_readings(
    field: Vectors, rotation: Quaternions, first: FloatArray, count: int, products: FloatArray, rows: FloatArray
) -> None:
    """Add readings (n, 3) - `first` (3,) and attitudes (n, 4) w x y z to the sums of `count` readings.

    products (levels, 16, 16): U_k of full tiles.
    rows (levels, 64, 16): incomplete tiles of block sums.
    """
    for i in range(field.shape[0]):
        index = count + i
        row = rows[0, index % TILE]
        _write_rotation(rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3], row)
        for axis in range(3):
            row[10 + axis] = field[i, axis] - first[axis]
        k = 0
        while index % TILE == TILE - 1 and k < rows.shape[0]:
            _add_products(rows[k], products[k])
            index = index // TILE * BLOCK_FACTOR  # the first row of this tile, one level up
            k += 1
            if k < rows.shape[0]:
                start = index % TILE
                _add_blocks(rows[k - 1], rows[k, start : start + BLOCK_FACTOR])
                index += BLOCK_FACTOR - 1


@kernel
def _write_attitude_rows(rotation: Quaternions, out: FloatArray) -> None:
    """Write z of attitudes (n, 4) to `out` (n, 10)."""
    for i in range(rotation.shape[0]):
        _write_rotation(rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3], out[i])


def attitude_rows(rotation_ws: Quaternions) -> FloatArray:
    """Return z (n, 10) of attitudes (n, 4)."""
    out = np.empty((rotation_ws.shape[0], 10))
    _write_attitude_rows(rotation_ws, out)
    return out


class GramSums:
    """U_k of all readings, in time order."""

    def __init__(self) -> None:
        """Start without readings."""
        self.count = 0
        self.first = np.zeros(3)
        self._products = np.zeros((BLOCK_LEVELS + 1, PADDED_SIZE, PADDED_SIZE))
        self._rows = np.zeros((BLOCK_LEVELS + 1, TILE, PADDED_SIZE))

    def update(self, field: Vectors, rotation_ws: Quaternions) -> None:
        """Add readings (n, 3) with their attitudes (n, 4)."""
        if not field.shape[0]:
            return
        if not self.count:
            self.first = field[0].copy()
        with np.errstate(all="ignore"):  # the caller of `products` checks for overflow
            _add_readings(field, rotation_ws, self.first, self.count, self._products, self._rows)
        self.count += field.shape[0]

    def blocks(self, level: int) -> int:
        """Return the number of blocks of 8^level samples in U_level: those of full tiles of the level below."""
        count = self.count
        for _ in range(level):
            count = count // TILE * BLOCK_FACTOR
        return count

    def products(self, level: int) -> FloatArray:
        """Return U_level (13, 13)."""
        lower = np.tril(self._products[level][:SIZE, :SIZE])
        full = lower + np.tril(lower, -1).T
        incomplete = self._rows[level, : self.blocks(level) % TILE, :SIZE]
        with np.errstate(all="ignore"):
            return np.asarray(full + incomplete.T @ incomplete)
