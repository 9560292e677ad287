"""Validation of the arrays given to a calibration, detection of saturated and faulty readings, and subsampling.

A saturated sensor repeats one value on an axis while the field turns: many readings at the extreme value of the axis,
few at the next value, and changes on the other axes meanwhile. A quantised reading of a smooth motion has at most
1 / (sqrt 2 - 1) = 2.4 times as many readings at the extreme value as at the next one (the top of a parabola). For a
sensor at rest, the other axes are at rest too. Neither counts as saturation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.errors import CalibrationError
from navsense.core.kernels import kernel
from navsense.core.typing import AnyArray, FloatArray, IntArray, Quaternions, Vectors

AXES: Final = ("x", "y", "z")

MIN_COUNT_AT_LIMIT = 10
"""Smallest number of saturated readings."""

MIN_COUNT_RATIO = 5
"""Saturated readings relative to those at the next value: twice the ratio at the top of a parabola."""

MIN_OTHER_MOTION = 0.05
"""Share of its span that another axis must cover during saturation."""

OUTLIER_SPANS = 3.0
"""Distance of a faulty reading from all others, in spans of these. A rotating sensor has readings in between."""

REST_SPAN = 0.01
"""Span of an axis at rest, relative to the largest reading of any axis.

All readings of such an axis but a few can be equal. One step of the sensor is then neither a fault nor a limit.
"""

MAX_OUTLIER_SHARE = 0.02
"""Largest share of readings at one value that can be faulty."""

CONSTANT_SPAN = 1e-6
"""Span of an axis, relative to the largest value, below which the axis is constant."""

SUBSAMPLE_SIZE = 1 << 12
"""Largest number of readings for the tests of the residuals."""

UNIT_TOLERANCE = 1e-2
"""Tolerance on the squared length of a quaternion. Only the direction of the quaternion is used."""


def validate_array(what: str, values: ArrayLike, allowed: str) -> AnyArray:
    """Return an array of numbers, of any shape. Raises `CalibrationError` for other values."""
    try:
        array: AnyArray = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise CalibrationError(what, str(error), allowed=allowed) from error
    if array.dtype.kind not in "fiu":
        raise CalibrationError(what, f"of type {array.dtype}", allowed=allowed)
    return array


def _validate_rows(what: str, values: ArrayLike, columns: int) -> FloatArray:
    """Return values (n, columns) as contiguous floats. Raises `CalibrationError` for other arrays."""
    array = validate_array(what, values, f"must be an array (n, {columns}) of numbers")
    if np.ma.is_masked(values):
        remedy = "leave out the masked rows: field[~field.mask.any(axis=1)], and their attitudes"
        raise CalibrationError(what, "is masked in part", allowed="must be numbers without a mask", remedy=remedy)
    if array.ndim != 2 or array.shape[1] != columns:
        raise CalibrationError(what, f"shape {array.shape}", allowed=f"must be (n, {columns}), one row per reading")
    return np.ascontiguousarray(array, dtype=np.float64)


def _check_finite(what: str, rows: FloatArray) -> None:
    """Raise `CalibrationError` if a number of rows (n, k), or their sum, is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = rows.sum()
    if np.isfinite(total):  # a second pass finds the row
        return
    finite = np.isfinite(rows)
    if finite.all():
        raise CalibrationError(what, "too large", allowed="must have a finite sum")
    row = int(np.argwhere(~finite)[0, 0])
    count = int((~finite.all(axis=1)).sum())
    remedy = f"leave out the {count} row{'s' if count > 1 else ''} with invalid numbers, in all arrays"
    raise CalibrationError(f"{what} of row {row}", rows[row].tolist(), allowed="must be finite", remedy=remedy)


def validate_bool(what: str, value: object) -> bool:
    """Return True or False. Raises `CalibrationError` for other values."""
    if not isinstance(value, bool | np.bool_):
        raise CalibrationError(what, value, allowed="must be True or False")
    return bool(value)


def validate_field(field: ArrayLike) -> Vectors:
    """Return readings (n, 3), any unit, as contiguous floats. Raises `CalibrationError` unless all are finite."""
    rows = _validate_rows("field", field, 3)
    _check_finite("field", rows)
    return rows


def validate_rotation(rotation_ws: ArrayLike, count: int) -> Quaternions:
    """Return attitudes (n, 4) w x y z, one per reading. Raises `CalibrationError` unless they are unit quaternions."""
    rows = _validate_rows("rotation_ws", rotation_ws, 4)
    if rows.shape[0] != count:
        allowed = f"must be ({count}, 4), an attitude for each reading"
        raise CalibrationError("rotation_ws", f"shape {rows.shape}", allowed=allowed)
    row = _find_non_unit(rows)
    if row >= 0:
        _check_finite("rotation_ws", rows)
        remedy = "give rotations from sensor to world as unit quaternions w x y z"
        what, value = f"rotation_ws of row {row}", rows[row].tolist()
        raise CalibrationError(what, value, allowed="must be of unit length", remedy=remedy)
    return rows


def check_count(count: int, minimum: int, parameters: int) -> None:
    """Raise `CalibrationError` if there are fewer readings than `minimum`, which so many parameters need."""
    if count < minimum:
        what = f"{count} reading{'s' * (count != 1)}"
        allowed = f"must be at least {minimum} for {parameters} parameters"
        raise CalibrationError("field", what, allowed=allowed, remedy="record for longer, while turning")


@kernel
def _find_non_unit(rotation: Quaternions) -> int:
    """Return the first row (n, 4) whose length is not 1 or not finite, -1 if there is none."""
    for i in range(rotation.shape[0]):
        w, x, y, z = rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3]
        if not abs(w * w + x * x + y * y + z * z - 1.0) <= UNIT_TOLERANCE:
            return i
    return -1


@kernel
def _update_side(
    row: FloatArray, v: float, number: int, value: FloatArray, count: IntArray, low: FloatArray, high: FloatArray
) -> None:
    """Update the extreme values of one side with one value v of a reading (3,) and the number of its row."""
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
    field: Vectors, first: int, value: FloatArray, count: IntArray, low: FloatArray, high: FloatArray, zeros: IntArray
) -> None:
    """Update the extreme values of each axis and of its negative with readings (n, 3); `first` is the first row number.

    value (6, 2): the largest value and the next one.
    count (6, 3): readings at both, and the first row at the largest.
    low, high (6, 3): span of all axes while at the largest value.
    zeros (2,): readings that are 0 on all axes, and the first such row.
    """
    a, b, c, d, e, f = value[0, 1], value[1, 1], value[2, 1], -value[3, 1], -value[4, 1], -value[5, 1]
    for i in range(field.shape[0]):
        x, y, z = field[i, 0], field[i, 1], field[i, 2]
        if x == 0.0 and y == 0.0 and z == 0.0:
            if zeros[0] == 0:
                zeros[1] = first + i
            zeros[0] += 1
        if d < x < a and e < y < b and f < z < c:
            continue
        for side in range(6):
            v = field[i, side % 3] if side < 3 else -field[i, side % 3]
            _update_side(field[i], v, first + i, value[side], count[side], low[side], high[side])
        a, b, c, d, e, f = value[0, 1], value[1, 1], value[2, 1], -value[3, 1], -value[4, 1], -value[5, 1]


class SaturationCheck:
    """Extreme values of a stream of readings. Detects saturated and constant axes, and faulty readings."""

    def __init__(self) -> None:
        """Start without readings."""
        self._value = np.full((6, 2), -np.inf)
        self._count = np.zeros((6, 3), dtype=np.int64)
        self._zeros, self._total = np.zeros(2, dtype=np.int64), 0
        self._low, self._high = np.zeros((6, 3)), np.zeros((6, 3))

    def update(self, field: Vectors) -> None:
        """Add readings (n, 3)."""
        _update_extremes(field, self._total, self._value, self._count, self._low, self._high, self._zeros)
        self._total += field.shape[0]

    @property
    def zeros(self) -> tuple[int, int]:
        """The number of readings that are exactly 0 on all axes, and the first such row."""
        return int(self._zeros[0]), int(self._zeros[1])

    @property
    def span(self) -> FloatArray:
        """The span of each axis (3,), in the unit of the readings."""
        return np.asarray(self._value[:3, 0] + self._value[3:, 0])

    def check(self) -> None:
        """Raise `CalibrationError` for a faulty reading, or a constant or saturated axis. Needs a reading."""
        for side in range(6):
            self._check_outliers(side)
        largest = float(np.abs(self._value[:, 0]).max())
        span = self.span
        constant = [name for name, length in zip(AXES, span, strict=True) if not length > CONSTANT_SPAN * largest]
        if constant:
            what, remedy = "field", "record while the sensor is turned through many attitudes"
            if len(constant) < len(AXES):
                what = f"field along {' and '.join(constant)}"
                remedy = "check that the axis is read at all; turn the sensor through many attitudes"
            raise CalibrationError(what, "all readings are equal", allowed="must vary", remedy=remedy)
        for side in range(6):
            if span[side % 3] > REST_SPAN * largest:
                self._check_limit(side, span)

    def _check_outliers(self, side: int) -> None:
        """Raise `CalibrationError` if a few readings of a side are far beyond all others."""
        (extreme, following), count = self._value[side].tolist(), int(self._count[side, 0])
        if count > max(1.0, MAX_OUTLIER_SHARE * self._total) or self._total < 3:
            return
        gap, others = extreme - following, following + float(self._value[side - 3, 1])
        second = np.abs(self._value[:, 1])
        rest_span = REST_SPAN * float(second[np.isfinite(second)].max(initial=0.0))
        if not (np.isfinite(gap) and gap > max(OUTLIER_SPANS * others, rest_span)):
            return
        value, row = extreme * (1.0 if side < 3 else -1.0), int(self._count[side, 2])
        subject = f"{count} readings, this the first" if count > 1 else "this reading"
        raise CalibrationError(
            f"field of row {row} along {AXES[side % 3]}",
            f"{value:.6g}",
            allowed=f"must be near the other readings, which span {others:.3g}",
            remedy=f"leave out {subject}: a placeholder or a fault",
        )

    def _check_limit(self, side: int, span: FloatArray) -> None:
        """Raise `CalibrationError` if the readings of one side of an axis are saturated."""
        count, following = int(self._count[side, 0]), int(self._count[side, 1])
        covered = (self._high[side] - self._low[side]) / span
        if count < MIN_COUNT_AT_LIMIT or count < MIN_COUNT_RATIO * following or float(covered.max()) < MIN_OTHER_MOTION:
            return
        limit = float(self._value[side, 0]) * (1.0 if side < 3 else -1.0)
        raise CalibrationError(
            f"field along {AXES[side % 3]}",
            f"{count} readings are equal to {limit:.6g}",
            allowed="must be below the sensor's limit: these are saturated",
            remedy="choose a wider range of the sensor, go away from magnets, or leave these readings out",
        )


@kernel
def _choose_row(block: int, level: int) -> int:
    """Return the number of the row that represents a block of 2^level rows."""
    number = block
    for step in range(level, 0, -1):  # the first or the second half, by a hash
        number = 2 * number + (((((number + step) & 0x7FFFFFFF) * 2654435761) >> 31) & 1)
    return number


@kernel
def _update_subsample(
    rows: FloatArray, first: int, old_level: int, level: int, size: int, index: IntArray, kept: FloatArray
) -> int:
    """Keep one row in 2^level of the `size` rows in `kept` and of new rows (n, k). Return the new size.

    first: number of the first new row.
    index: numbers of the rows in `kept`.
    """
    end = size
    if level > old_level:
        end = 0
        for i in range(size):
            if _choose_row(index[i] >> level, level) == index[i]:
                index[end] = index[i]
                for k in range(rows.shape[1]):
                    kept[end, k] = kept[i, k]
                end += 1
    for block in range(first >> level, (first + rows.shape[0] - 1 >> level) + 1):
        number = _choose_row(block, level)
        if first <= number < first + rows.shape[0]:
            index[end] = number
            for k in range(rows.shape[1]):
                kept[end, k] = rows[number - first, k]
            end += 1
    return end


class Subsample:
    """At most `SUBSAMPLE_SIZE` rows of a stream: one of each 2^k, independent of how the stream is split.

    A hash chooses one half of each block of 2^k rows, one half of that half, and so on. The choice is therefore not
    synchronous with any period of the record.
    """

    def __init__(self, columns: int) -> None:
        """Start without rows."""
        self._rows, self._index = np.empty((SUBSAMPLE_SIZE + 1, columns)), np.empty(SUBSAMPLE_SIZE + 1, dtype=np.int64)
        self._count, self._size, self._level = 0, 0, 0

    def update(self, rows: FloatArray) -> None:
        """Add rows (n, columns)."""
        if not rows.shape[0]:
            return
        level, count = self._level, self._count
        while (count + rows.shape[0] - 1) >> level >= SUBSAMPLE_SIZE:
            level += 1
        self._size = _update_subsample(rows, count, self._level, level, self._size, self._index, self._rows)
        self._count, self._level = count + rows.shape[0], level

    @property
    def rows(self) -> FloatArray:
        """The rows of the subsample (n, columns)."""
        return self._rows[: self._size]

    @property
    def index(self) -> IntArray:
        """The numbers (n,) of these rows in the stream, from 0."""
        return self._index[: self._size]
