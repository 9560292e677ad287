"""Matrices on the axes of a sensor: the cross-axis sensitivity of an IMU, the soft iron of a magnetometer.

``y = A x``, x and y rows of channels, A a constant matrix.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray

IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
"""The identity matrix (3, 3), row by row."""


@kernel
def mix_axes(matrix: FloatArray, axes: FloatArray, out: FloatArray) -> None:
    """Write A x (m, n) of the matrix A (m, c) and axes x (c, n). Entries of A that are 0 are skipped, also for NaN."""
    for i in range(matrix.shape[0]):
        sums = out[i]
        sums[:] = 0.0
        for j in range(matrix.shape[1]):
            entry, values = matrix[i, j], axes[j]
            if entry != 0.0:
                for k in range(sums.shape[0]):
                    sums[k] = sums[k] + entry * values[k]


def make_matrix(numbers: Iterable[float]) -> FloatArray:
    """Return nine numbers, row by row, as a matrix (3, 3)."""
    return np.array(tuple(numbers), dtype=np.float64).reshape(3, 3)
