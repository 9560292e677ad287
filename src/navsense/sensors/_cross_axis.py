"""Cross-axis effects: ``y = A x``, x and y rows of channels, A a constant matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray
from navsense.core.validation import MAX_MAGNITUDE, is_number

IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
"""The identity matrix (3, 3), row by row."""


@kernel
def mix_axes(matrix: FloatArray, rows: FloatArray, out: FloatArray) -> None:
    """Write A x (m, n) of the matrix (m, c) and rows (c, n). Entries of A that are 0 are skipped, also if x is NaN."""
    for i in range(matrix.shape[0]):
        made = out[i]
        made[:] = 0.0
        for j in range(matrix.shape[1]):
            share, row = matrix[i, j], rows[j]
            if share != 0.0:
                for k in range(made.shape[0]):
                    made[k] = made[k] + share * row[k]


def make_matrix(numbers: Iterable[float]) -> FloatArray:
    """Return nine numbers, row by row, as a matrix (3, 3)."""
    return np.array(tuple(numbers), dtype=np.float64).reshape(3, 3)


def check_numbers(name: str, given: Iterable[float], count: int, *, below: float = MAX_MAGNITUDE) -> tuple[float, ...]:
    """Return `count` numbers as floats. The first word of `name` is the name of the field.

    Raises `SensorError` for another count, and for an absolute value of `below` or more.
    """
    many = "a finite number" if count == 1 else f"{count} finite numbers"
    allowed = f"must be {many} of absolute value below {below:g}"
    shown, field = repr(*given) if count == 1 else repr(given), name.partition(" ")[0]
    try:
        raw = tuple(given)
        numbers = tuple(float(number) for number in raw)
    except (TypeError, ValueError, OverflowError) as error:
        raise SensorError(name, shown, allowed=allowed, field=field) from error
    small = all(math.isfinite(number) and abs(number) < below for number in numbers)
    if not small or len(numbers) != count or not all(is_number(number) for number in raw):
        raise SensorError(name, shown, allowed=allowed, field=field)
    return numbers
