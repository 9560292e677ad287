"""What is given to a calibration: arrays of numbers, and readings that stand at the sensor's limit.

A sensor that saturates gives one value again and again on an axis while the field goes on turning: many readings at the
axis' extreme value, few at the next one, the other axes moving meanwhile. A quantised reading of a smooth motion has at
most 1 / (sqrt 2 - 1) = 2.4 times as many at the extreme as at the next value (the top of a parabola), and a sensor at
rest has other axes at rest: both are told apart from saturation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from navsense.compiled import kernel
from navsense.errors import CalibrationError
from navsense.typing import AnyArray, FloatArray, IntArray, Quaternions, Vectors

AXES: Final = ("x", "y", "z")

PILED = 10
"""Readings at an extreme value from which they may be saturated."""

PILED_TO_NEXT = 5
"""Times as many as at the next value, twice what a parabola's top gives."""

MOVING = 0.05
"""Part of another axis' span that it has to go through meanwhile."""

ALIKE = 1e-6
"""Span of an axis, of the largest value, below which all its readings are alike."""

UNIT_LENGTH = 1e-2
"""What the square of a quaternion's length may be off 1; it is divided out."""


def _numbers(what: str, values: ArrayLike, columns: int) -> FloatArray:
    """Return values (n, columns) as contiguous floats; raise `CalibrationError` for what is none of these."""
    try:
        given: AnyArray = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise CalibrationError(what, str(error), allowed=f"must be an array (n, {columns}) of numbers") from error
    if given.dtype.kind not in "fiu":
        raise CalibrationError(what, f"of type {given.dtype}", allowed=f"must be an array (n, {columns}) of numbers")
    if given.ndim != 2 or given.shape[1] != columns:
        raise CalibrationError(what, f"shape {given.shape}", allowed=f"must be (n, {columns}), one row a reading")
    return np.ascontiguousarray(given, dtype=np.float64)


def _check_finite(what: str, rows: FloatArray) -> None:
    """Raise `CalibrationError` where a number of rows (n, k) is not finite, or all are too large to be added."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = rows.sum()
    if np.isfinite(total):  # which of them is not is found in a second pass
        return
    finite = np.isfinite(rows)
    if finite.all():
        raise CalibrationError(what, "too large", allowed="must be numbers whose sum is one")
    row = int(np.argwhere(~finite)[0, 0])
    count = int((~finite.all(axis=1)).sum())
    remedy = f"leave out the {count} row{'s' if count > 1 else ''} that are not numbers, here and beside it"
    raise CalibrationError(f"{what} of row {row}", rows[row].tolist(), allowed="must be finite", remedy=remedy)


def checked_field(field: ArrayLike) -> Vectors:
    """Return readings (n, 3), any unit, as contiguous floats; raise `CalibrationError` unless finite numbers."""
    rows = _numbers("field", field, 3)
    _check_finite("field", rows)
    return rows


def checked_rotation(rotation_ws: ArrayLike, count: int) -> Quaternions:
    """Return attitudes (n, 4) w x y z, one a reading; raise `CalibrationError` unless quaternions of unit length."""
    rows = _numbers("rotation_ws", rotation_ws, 4)
    if rows.shape[0] != count:
        allowed = f"must be ({count}, 4), an attitude for each reading"
        raise CalibrationError("rotation_ws", f"shape {rows.shape}", allowed=allowed)
    row = _first_off(rows)
    if row >= 0:
        _check_finite("rotation_ws", rows)
        remedy = "give rotations from sensor to world as unit quaternions w x y z"
        raise CalibrationError(
            f"rotation_ws of row {row}", rows[row].tolist(), allowed="must be of unit length", remedy=remedy
        )
    return rows


@kernel
def _first_off(rotation: Quaternions) -> int:
    """Return the first row (n, 4) whose length is not 1, or is no number; -1 where there is none."""
    for i in range(rotation.shape[0]):
        w, x, y, z = rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3]
        if not abs(w * w + x * x + y * y + z * z - 1.0) <= UNIT_LENGTH:
            return i
    return -1


@kernel
def _watch_side(
    row: FloatArray, v: float, value: FloatArray, count: IntArray, low: FloatArray, high: FloatArray
) -> None:
    """Follow the extreme values of one side with one more value v, that of a reading (3,)."""
    if v > value[0]:
        value[1], count[1] = value[0], count[0]
        value[0], count[0] = v, 1
        for k in range(3):
            low[k] = row[k]
            high[k] = row[k]
    elif v == value[0]:
        count[0] += 1
        for k in range(3):
            low[k] = min(low[k], row[k])
            high[k] = max(high[k], row[k])
    elif v > value[1]:
        value[1], count[1] = v, 1
    elif v == value[1]:
        count[1] += 1


@kernel
def _watch(field: Vectors, value: FloatArray, count: IntArray, low: FloatArray, high: FloatArray) -> None:
    """Follow the extreme values of readings (n, 3), of each axis and of its negative.

    value (6, 2): the largest and the next one; count (6, 2): readings there; low, high (6, 3): span of all axes while
    at the largest.
    """
    a, b, c, d, e, f = value[0, 1], value[1, 1], value[2, 1], -value[3, 1], -value[4, 1], -value[5, 1]
    for i in range(field.shape[0]):
        x, y, z = field[i, 0], field[i, 1], field[i, 2]
        if d < x < a and e < y < b and f < z < c:
            continue
        for side in range(6):
            v = field[i, side % 3] if side < 3 else -field[i, side % 3]
            _watch_side(field[i], v, value[side], count[side], low[side], high[side])
        a, b, c, d, e, f = value[0, 1], value[1, 1], value[2, 1], -value[3, 1], -value[4, 1], -value[5, 1]


class Extremes:
    """The extreme values of readings that come in parts, and what they give away."""

    def __init__(self) -> None:
        """Start with no reading."""
        self._value = np.full((6, 2), -np.inf)
        self._count = np.zeros((6, 2), dtype=np.int64)
        self._low, self._high = np.zeros((6, 3)), np.zeros((6, 3))

    def update(self, field: Vectors) -> None:
        """Take further readings (n, 3)."""
        _watch(field, self._value, self._count, self._low, self._high)

    @property
    def span(self) -> FloatArray:
        """Return how far each axis (3,) went, in the unit of the readings."""
        return np.asarray(self._value[:3, 0] + self._value[3:, 0])

    def check(self) -> None:
        """Raise `CalibrationError` where an axis stood still or at its limit; ask after the first reading."""
        largest = float(np.abs(self._value[:, 0]).max())
        span = self.span
        dead = [name for name, length in zip(AXES, span, strict=True) if not length > ALIKE * largest]
        if len(dead) == len(AXES):
            remedy = "record while the sensor is turned through many attitudes"
            raise CalibrationError("field", "all readings are alike", allowed="must vary", remedy=remedy)
        if dead:
            remedy = "check that the axis is read at all; turn the sensor through many attitudes"
            raise CalibrationError(
                f"field along {' and '.join(dead)}", "all readings are alike", allowed="must vary", remedy=remedy
            )
        for side in range(6):
            self._check_limit(side, span)

    def _check_limit(self, side: int, span: FloatArray) -> None:
        """Raise `CalibrationError` where the readings of one side of one axis stand at a limit."""
        count, following = int(self._count[side, 0]), int(self._count[side, 1])
        moved = (self._high[side] - self._low[side]) / span
        if count < PILED or count < PILED_TO_NEXT * following or float(moved.max()) < MOVING:
            return
        limit = float(self._value[side, 0]) * (1.0 if side < 3 else -1.0)
        raise CalibrationError(
            f"field along {AXES[side % 3]}",
            f"{count} readings stand at {limit:.6g}",
            allowed="must be below the sensor's limit: these are saturated",
            remedy="choose a wider range of the sensor, go away from magnets, or leave these readings out",
        )
