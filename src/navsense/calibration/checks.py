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

from navsense.errors import CalibrationError
from navsense.kernels import kernel
from navsense.typing import AnyArray, FloatArray, IntArray, Quaternions, Vectors

AXES: Final = ("x", "y", "z")

MIN_COUNT_AT_LIMIT = 10
"""Readings at an extreme value from which they may be saturated."""

MIN_COUNT_RATIO = 5
"""Times as many as at the next value, twice what a parabola's top gives."""

MIN_OTHER_MOTION = 0.05
"""Part of another axis' span that it has to go through meanwhile."""

OUTLIER_SPANS = 3.0
"""Spans of all other readings of an axis beyond which one is none: a sensor that turns comes by what is between."""

MAX_OUTLIER_SHARE = 0.02
"""Share of the readings up to which those at one value may be such."""

CONSTANT_SPAN = 1e-6
"""Span of an axis, of the largest value, below which all its readings are alike."""

SUBSAMPLE_SIZE = 1 << 12
"""Rows of a record at most on which the shape of the residuals is judged."""

UNIT_TOLERANCE = 1e-2
"""What the square of a quaternion's length may be off 1; it is divided out."""


def _validate_rows(what: str, values: ArrayLike, columns: int) -> FloatArray:
    """Return values (n, columns) as contiguous floats; raise `CalibrationError` for what is none of these."""
    try:
        given: AnyArray = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise CalibrationError(what, str(error), allowed=f"must be an array (n, {columns}) of numbers") from error
    if np.ma.is_masked(values):
        remedy = "leave out the masked rows: field[~field.mask.any(axis=1)], and their attitudes"
        raise CalibrationError(what, "is masked in part", allowed="must be numbers throughout", remedy=remedy)
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


def validate_bool(what: str, value: object) -> bool:
    """Return True or False; raise `CalibrationError` for another thing."""
    if not isinstance(value, bool | np.bool_):
        raise CalibrationError(what, value, allowed="must be True or False")
    return bool(value)


def validate_field(field: ArrayLike) -> Vectors:
    """Return readings (n, 3), any unit, as contiguous floats; raise `CalibrationError` unless finite numbers."""
    rows = _validate_rows("field", field, 3)
    _check_finite("field", rows)
    return rows


def validate_rotation(rotation_ws: ArrayLike, count: int) -> Quaternions:
    """Return attitudes (n, 4) w x y z, one a reading; raise `CalibrationError` unless quaternions of unit length."""
    rows = _validate_rows("rotation_ws", rotation_ws, 4)
    if rows.shape[0] != count:
        allowed = f"must be ({count}, 4), an attitude for each reading"
        raise CalibrationError("rotation_ws", f"shape {rows.shape}", allowed=allowed)
    row = _first_non_unit(rows)
    if row >= 0:
        _check_finite("rotation_ws", rows)
        remedy = "give rotations from sensor to world as unit quaternions w x y z"
        raise CalibrationError(
            f"rotation_ws of row {row}", rows[row].tolist(), allowed="must be of unit length", remedy=remedy
        )
    return rows


@kernel
def _first_non_unit(rotation: Quaternions) -> int:
    """Return the first row (n, 4) whose length is not 1, or is no number; -1 where there is none."""
    for i in range(rotation.shape[0]):
        w, x, y, z = rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3]
        if not abs(w * w + x * x + y * y + z * z - 1.0) <= UNIT_TOLERANCE:
            return i
    return -1


@kernel
def _update_side(
    row: FloatArray, v: float, number: int, value: FloatArray, count: IntArray, low: FloatArray, high: FloatArray
) -> None:
    """Follow the extreme values of one side with one more value v, that of a reading (3,) and its number."""
    if v > value[0]:
        value[1], count[1] = value[0], count[0]
        value[0], count[0], count[2] = v, 1, number
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
def _update_extremes(
    field: Vectors, seen: int, value: FloatArray, count: IntArray, low: FloatArray, high: FloatArray, zeros: IntArray
) -> None:
    """Follow the extreme values of readings (n, 3), of each axis and of its negative, `seen` being there before.

    value (6, 2): the largest and the next one; count (6, 3): readings there, and the first row at the largest; low,
    high (6, 3): span of all axes while at the largest; zeros (2,): readings that are 0 on all axes, and the first.
    """
    a, b, c, d, e, f = value[0, 1], value[1, 1], value[2, 1], -value[3, 1], -value[4, 1], -value[5, 1]
    for i in range(field.shape[0]):
        x, y, z = field[i, 0], field[i, 1], field[i, 2]
        if x == 0.0 and y == 0.0 and z == 0.0:
            if zeros[0] == 0:
                zeros[1] = seen + i
            zeros[0] += 1
        if d < x < a and e < y < b and f < z < c:
            continue
        for side in range(6):
            v = field[i, side % 3] if side < 3 else -field[i, side % 3]
            _update_side(field[i], v, seen + i, value[side], count[side], low[side], high[side])
        a, b, c, d, e, f = value[0, 1], value[1, 1], value[2, 1], -value[3, 1], -value[4, 1], -value[5, 1]


class SaturationCheck:
    """The extreme values of readings that come in parts, and what they give away."""

    def __init__(self) -> None:
        """Start with no reading."""
        self._value = np.full((6, 2), -np.inf)
        self._count = np.zeros((6, 3), dtype=np.int64)
        self._zeros, self._seen = np.zeros(2, dtype=np.int64), 0
        self._low, self._high = np.zeros((6, 3)), np.zeros((6, 3))

    def update(self, field: Vectors) -> None:
        """Take further readings (n, 3)."""
        _update_extremes(field, self._seen, self._value, self._count, self._low, self._high, self._zeros)
        self._seen += field.shape[0]

    @property
    def zeros(self) -> tuple[int, int]:
        """Return how many readings are exactly 0 on all axes, and which row is the first."""
        return int(self._zeros[0]), int(self._zeros[1])

    @property
    def span(self) -> FloatArray:
        """Return how far each axis (3,) went, in the unit of the readings."""
        return np.asarray(self._value[:3, 0] + self._value[3:, 0])

    def check(self) -> None:
        """Raise `CalibrationError` for a reading far off, an axis still or at its limit; there must be a reading."""
        for side in range(6):
            self._check_far(side)
        largest = float(np.abs(self._value[:, 0]).max())
        span = self.span
        dead = [name for name, length in zip(AXES, span, strict=True) if not length > CONSTANT_SPAN * largest]
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

    def _check_far(self, side: int) -> None:
        """Raise `CalibrationError` where one or a few readings of a side lie far beyond all the others."""
        (far, following), count = self._value[side].tolist(), int(self._count[side, 0])
        if count > max(1.0, MAX_OUTLIER_SHARE * self._seen) or self._seen < 3:
            return
        gap, others = far - following, following + float(self._value[side - 3, 1])
        if not (np.isfinite(gap) and gap > OUTLIER_SPANS * max(others, CONSTANT_SPAN * abs(far))):
            return
        value, row = far * (1.0 if side < 3 else -1.0), int(self._count[side, 2])
        some = f"{count} readings, this the first" if count > 1 else "this reading"
        raise CalibrationError(
            f"field of row {row} along {AXES[side % 3]}",
            f"{value:.6g}",
            allowed=f"must be among the others, which span {others:.3g}",
            remedy=f"leave out {some}: values that stand for none, or faults",
        )

    def _check_limit(self, side: int, span: FloatArray) -> None:
        """Raise `CalibrationError` where the readings of one side of one axis stand at a limit."""
        count, following = int(self._count[side, 0]), int(self._count[side, 1])
        moved = (self._high[side] - self._low[side]) / span
        if count < MIN_COUNT_AT_LIMIT or count < MIN_COUNT_RATIO * following or float(moved.max()) < MIN_OTHER_MOTION:
            return
        limit = float(self._value[side, 0]) * (1.0 if side < 3 else -1.0)
        raise CalibrationError(
            f"field along {AXES[side % 3]}",
            f"{count} readings stand at {limit:.6g}",
            allowed="must be below the sensor's limit: these are saturated",
            remedy="choose a wider range of the sensor, go away from magnets, or leave these readings out",
        )


@kernel
def _choose_row(block: int, level: int) -> int:
    """Return the number of the row that is kept of a block of 2^level."""
    number = block
    for step in range(level, 0, -1):  # the first half or the second, as a hash says
        number = 2 * number + (((((number + step) & 0x7FFFFFFF) * 2654435761) >> 31) & 1)
    return number


@kernel
def _update_subsample(
    rows: FloatArray, count: int, old: int, level: int, held: int, index: IntArray, kept: FloatArray
) -> int:
    """Keep one row in 2^level of those that were (held, k) and of new ones (n, k) from `count` on; return how many."""
    found = held
    if level > old:
        found = 0
        for i in range(held):
            if _choose_row(index[i] >> level, level) == index[i]:
                index[found] = index[i]
                for k in range(rows.shape[1]):
                    kept[found, k] = kept[i, k]
                found += 1
    for block in range(count >> level, (count + rows.shape[0] - 1 >> level) + 1):
        number = _choose_row(block, level)
        if count <= number < count + rows.shape[0]:
            index[found] = number
            for k in range(rows.shape[1]):
                kept[found, k] = rows[number - count, k]
            found += 1
    return found


class Subsample:
    """Some thousand rows of a record that comes in parts, one of each 2^k, however the parts are cut.

    Of each block of 2^k rows one half is kept, of that one half, and so on, by a hash of its number: periods of the
    record are neither met nor missed.
    """

    def __init__(self, columns: int) -> None:
        """Start with no row."""
        self._kept, self._index = np.empty((SUBSAMPLE_SIZE + 1, columns)), np.empty(SUBSAMPLE_SIZE + 1, dtype=np.int64)
        self._count, self._held, self._level = 0, 0, 0

    def update(self, rows: FloatArray) -> None:
        """Take further rows (n, columns)."""
        if not rows.shape[0]:
            return
        level, count = self._level, self._count
        while (count + rows.shape[0] - 1) >> level >= SUBSAMPLE_SIZE:
            level += 1
        self._held = _update_subsample(rows, count, self._level, level, self._held, self._index, self._kept)
        self._count, self._level = count + rows.shape[0], level

    @property
    def rows(self) -> FloatArray:
        """Return what is kept (n, columns)."""
        return self._kept[: self._held]

    @property
    def index(self) -> IntArray:
        """Return the numbers (n,) of the rows kept, from the record's first on."""
        return self._index[: self._held]


def check_count(count: int, fewest: int, sought: int) -> None:
    """Raise `CalibrationError` where there are fewer readings than so many parameters need."""
    if count < fewest:
        what = f"{count} reading{'s' * (count != 1)}"
        allowed = f"must be at least {fewest} for {sought} parameters"
        raise CalibrationError("field", what, allowed=allowed, remedy="record for longer, while turning")
