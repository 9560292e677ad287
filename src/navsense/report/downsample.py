"""Downsampling of long series for drawing: the least and greatest value per pixel column, so that no spike is lost.

    column of row i = floor(columns (x_i - low) / (high - low)),     points of a column: (middle, min), (middle, max)

The order of the two points alternates between columns, which keeps the line short. A column with only NaN breaks the
line. A series with fewer rows than twice the columns stays as it is.
"""

from __future__ import annotations

import numpy as np

from navsense.core.typing import BoolArray, FloatArray

GAP = 5.0
"""Median steps of a series above which a gap breaks the line."""

COLUMNS = 520
"""Columns of a plot at most: more than its pixels on a usual screen."""


def downsample(x: FloatArray, y: FloatArray, columns: int = COLUMNS) -> tuple[FloatArray, FloatArray]:
    """Return the points x and y (m,) of a line through the series y (n,) at increasing x (n,); NaN breaks the line."""
    if x.size <= 2 * columns or not x[-1] > x[0]:
        return x, y
    middle, low, high = column_extremes(x, y, columns)
    values = np.empty(2 * middle.size)
    even = np.arange(middle.size) % 2 == 0
    values[0::2], values[1::2] = np.where(even, low, high), np.where(even, high, low)
    return np.repeat(middle, 2), values


def insert_gaps(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a series with a NaN in each gap of the increasing x (n,): a step above `GAP` median steps."""
    if x.size < 3:
        return x, y
    steps = np.diff(x)
    if not steps.max() > GAP * steps.min():
        return x, y
    rows = np.flatnonzero(steps > GAP * np.median(steps)) + 1
    return np.insert(x, rows, 0.5 * (x[rows - 1] + x[rows])), np.insert(y, rows, np.nan)


def column_extremes(x: FloatArray, y: FloatArray, columns: int = COLUMNS) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return middle, least and greatest value (k,) of each column with rows; NaN if the column has only NaN."""
    share = (x - x[0]) / (x[-1] - x[0])
    column = np.minimum((columns * share).astype(np.int64), columns - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    middle = x[0] + (column[starts] + 0.5) * ((x[-1] - x[0]) / columns)
    low, high = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)
    return middle, np.asarray(low), np.asarray(high)


def find_intervals(mask: BoolArray) -> list[slice]:
    """Return the intervals of consecutive rows in which a mask (n,) is true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8))).tolist()
    return [slice(first, stop) for first, stop in zip(edges[::2], edges[1::2], strict=True)]


def find_time_spans(time: FloatArray, mask: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return starts and ends (k,) s of the spans in which a mask (n,) is true; each row lasts until the next one."""
    rows = find_intervals(mask)
    step = float(np.median(np.diff(time))) if time.size > 1 else 1.0
    ends = np.append(time, time[-1:] + step)
    return time[[row.start for row in rows]], ends[[row.stop for row in rows]]
