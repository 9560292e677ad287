"""Search of the interval between increasing points that contains a value."""

from __future__ import annotations

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray


@kernel
def find_interval(points: FloatArray, value: float, guess: int) -> int:
    """Return the last index from 0 to n - 2 of increasing points (n,) that is not above `value`; 0 below all points.

    `guess` (0 to n - 2) shortens the search for increasing values. The result does not depend on it.
    """
    low, high = 0, points.shape[0] - 2
    if points[guess] > value:
        high = guess - 1
    elif guess == high or value < points[guess + 1]:
        return guess
    else:
        low = guess + 1
        if low == high or value < points[low + 1]:
            return low
    while low < high:
        middle = (low + high + 1) // 2
        if points[middle] <= value:
            low = middle
        else:
            high = middle - 1
    return low
