"""A long series as a screen shows it: in each pixel column the least and the greatest value, so that no spike is lost.

    column of row i = floor(columns (x_i - low) / (high - low)),     points of a column: (middle, min), (middle, max)

The order of the two turns from column to column, which keeps the line short. A column whose rows are all NaN breaks the
line; a series with fewer rows than twice the columns is left as it is.
"""

from __future__ import annotations

import numpy as np

from navsense.typing import FloatArray

GAP = 5.0
"""Usual steps of a series beyond which nothing is drawn from one row to the next."""

COLUMNS = 520
"""Columns that a panel has at most: more than its pixels on a usual screen."""


def envelope(x: FloatArray, y: FloatArray, columns: int = COLUMNS) -> tuple[FloatArray, FloatArray]:
    """Return places and values (m,) of a line through the series y (n,) at the rising places x (n,); NaN breaks it."""
    if x.size <= 2 * columns or not x[-1] > x[0]:
        return x, y
    places, low, high = extremes(x, y, columns)
    found_x, found_y = np.repeat(places, 2), np.empty(2 * places.size)
    even = np.arange(places.size) % 2 == 0
    found_y[0::2], found_y[1::2] = np.where(even, low, high), np.where(even, high, low)
    return found_x, found_y


def opened(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a series with a NaN in each gap of the rising places x (n,): steps of more than `GAP` usual ones."""
    if x.size < 3:
        return x, y
    steps = np.diff(x)
    if not steps.max() > GAP * steps.min():
        return x, y
    after = np.flatnonzero(steps > GAP * np.median(steps)) + 1
    return np.insert(x, after, 0.5 * (x[after - 1] + x[after])), np.insert(y, after, np.nan)


def extremes(x: FloatArray, y: FloatArray, columns: int = COLUMNS) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the middles, least and greatest values (k,) of the columns that have rows; NaN where all of them are."""
    share = (x - x[0]) / (x[-1] - x[0])
    column = np.minimum((columns * share).astype(np.int64), columns - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    middle = x[0] + (column[starts] + 0.5) * ((x[-1] - x[0]) / columns)
    low, high = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)
    return middle, np.asarray(low), np.asarray(high)
