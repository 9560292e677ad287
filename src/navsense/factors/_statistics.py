"""Sums that carry any number of measurements of a field and a bias, both unknown, without loss.

    E(x) = 1/2 sum_i (J_i x - m_i)' W (J_i x - m_i)        x = (f_n, b), J_i = [R_i' 1], R_i = R_nb of measurement i
         = 1/2 x' L x - g' x + c
    L = | sum R W R'   (sum R) W |    g = | sum R W m |    c = 1/2 sum m' W m
        | W (sum R)'   N W       |        | W sum m   |

W is the inverse covariance of one measurement, the same for all. 22 sums hold L, g and c. Measurements are added up in
blocks of 64, and the blocks with their rounding errors carried along (Neumaier 1974), so that the sums of a million
are as exact as those of a few, and the same to the last bit however the record is cut into updates.

With L = V D V' the rows A = D^1/2 V' and y = D^-1/2 V' g give E = 1/2 |A x - y|^2 + E_0: six rows, whatever N is. What
the motion has not shown, D = 0, is a row of zeros. E_0 = c - 1/2 |y|^2 is the error that no field and bias undoes.
"""

from __future__ import annotations

import numpy as np

from navsense.factors._rows import matrix
from navsense.kernels import kernel
from navsense.typing import FloatArray, Vectors

SUMS = 22
BLOCK = 64
"""Measurements that are added up plainly before their sum is added with its rounding error."""

UNSEEN = 64.0 * np.finfo(np.float64).eps
"""Share of the largest D below which one is rounding."""


@kernel
def add(
    sums: FloatArray, seen: int, rotation: FloatArray, measured: Vectors, weight: FloatArray, row: FloatArray
) -> int:
    """Add measurements to sums (3, 22): totals, their rounding errors, the open block. Return the first row not finite.

    `seen` measurements are in the sums. `row` (22,) is room to work in.
    """
    w00, w01, w02, w11, w12, w22 = weight[0, 0], weight[0, 1], weight[0, 2], weight[1, 1], weight[1, 2], weight[2, 2]
    step = int(rotation.shape[0] > 1)
    for i in range(measured.shape[0]):
        r = matrix(rotation, i * step)
        x, y, z = measured[i, 0], measured[i, 1], measured[i, 2]
        wx, wy, wz = w00 * x + w01 * y + w02 * z, w01 * x + w11 * y + w12 * z, w02 * x + w12 * y + w22 * z
        a00, a01, a02 = (
            r[0] * w00 + r[1] * w01 + r[2] * w02,
            r[0] * w01 + r[1] * w11 + r[2] * w12,
            r[0] * w02 + r[1] * w12 + r[2] * w22,
        )
        a10, a11, a12 = (
            r[3] * w00 + r[4] * w01 + r[5] * w02,
            r[3] * w01 + r[4] * w11 + r[5] * w12,
            r[3] * w02 + r[4] * w12 + r[5] * w22,
        )
        a20, a21, a22 = (
            r[6] * w00 + r[7] * w01 + r[8] * w02,
            r[6] * w01 + r[7] * w11 + r[8] * w12,
            r[6] * w02 + r[7] * w12 + r[8] * w22,
        )
        row[0] = a00 * r[0] + a01 * r[1] + a02 * r[2]
        row[1] = a00 * r[3] + a01 * r[4] + a02 * r[5]
        row[2] = a00 * r[6] + a01 * r[7] + a02 * r[8]
        row[3] = a10 * r[3] + a11 * r[4] + a12 * r[5]
        row[4] = a10 * r[6] + a11 * r[7] + a12 * r[8]
        row[5] = a20 * r[6] + a21 * r[7] + a22 * r[8]
        row[6], row[7], row[8] = r[0], r[1], r[2]
        row[9], row[10], row[11] = r[3], r[4], r[5]
        row[12], row[13], row[14] = r[6], r[7], r[8]
        row[15] = r[0] * wx + r[1] * wy + r[2] * wz
        row[16] = r[3] * wx + r[4] * wy + r[5] * wz
        row[17] = r[6] * wx + r[7] * wy + r[8] * wz
        row[18], row[19], row[20] = x, y, z
        row[21] = x * wx + y * wy + z * wz
        if not row[21] < np.inf:
            return i
        for j in range(SUMS):
            sums[2, j] += row[j]
        if (seen + i + 1) % BLOCK == 0:
            close(sums)
    return -1


@kernel
def close(sums: FloatArray) -> None:
    """Add the open block to the totals, with its rounding error."""
    for j in range(SUMS):
        total, part = sums[0, j], sums[2, j]
        after = total + part
        if abs(total) >= abs(part):
            sums[1, j] += (total - after) + part
        else:
            sums[1, j] += (part - after) + total
        sums[0, j], sums[2, j] = after, 0.0


class Statistics:
    """The sums of measurements with one inverse covariance `weight` (3, 3), and the six rows that stand for them."""

    def __init__(self, weight: FloatArray) -> None:
        """Start without measurements."""
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        self.count = 0
        self._sums = np.zeros((3, SUMS))

    def copy(self) -> Statistics:
        """Return a copy that more can be added to."""
        other = Statistics(self.weight)
        other.count, other._sums = self.count, self._sums.copy()
        return other

    def add(self, measured: Vectors, rotation: FloatArray) -> int:
        """Add measurements (n, 3) at rotations (n or 1, 4 or 9); return the first row that is not finite, -1 if none.

        Where there is one the sums are no longer of use.
        """
        row = add(self._sums, self.count, rotation, measured, self.weight, np.empty(SUMS))
        self.count += len(measured)
        return row

    def quadratic(self) -> tuple[FloatArray, FloatArray, float]:
        """Return L (6, 6), g (6,) and c."""
        sums = self._sums.copy()
        close(sums)
        s, w = sums[0] + sums[1], self.weight
        information, g = np.empty((6, 6)), np.empty(6)
        information[:3, :3] = s[[0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(3, 3)
        information[:3, 3:] = s[6:15].reshape(3, 3) @ w
        information[3:, :3] = information[:3, 3:].T
        information[3:, 3:] = self.count * w
        g[:3], g[3:] = s[15:18], w @ s[18:21]
        return information, g, 0.5 * float(s[21])

    def rows(self) -> tuple[FloatArray, FloatArray, float]:
        """Return A (6, 6), y (6,) and E_0."""
        information, g, c = self.quadratic()
        values, vectors = np.linalg.eigh(information)
        seen = values > UNSEEN * max(float(values[-1]), 0.0)
        root = np.sqrt(np.where(seen, values, 0.0))
        y = np.where(seen, vectors.T @ g, 0.0) / np.where(seen, root, 1.0)
        return root[:, None] * vectors.T, y, max(c - 0.5 * float(y @ y), 0.0)
