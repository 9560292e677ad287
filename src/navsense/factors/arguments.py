"""Validation of the arguments of one factor: keys, numbers, vectors and directions.

GTSAM accepts NaN, a direction of length zero and numbers of different units. Here the first two raise `FactorError`;
the third gives a `FactorWarning`. Any unit is allowed; field, bias and measurement of a factor must have the same one.
"""

from __future__ import annotations

import inspect
import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from navsense.core.errors import FactorError
from navsense.core.typing import AnyArray, FloatArray
from navsense.core.units import MAGNETIC_FIELD_UNITS
from navsense.factors.gtsam_support import is_gtsam

Numbers: TypeAlias = tuple[float, ...]
"""The finite floats of one argument, row by row."""

MAX_STRENGTH_RATIO = 300.0
"""Ratio between field and measurement beyond which different units are more likely than an unusual field."""

_EARTH_FIELD = 50e-6
_PACKAGE = __name__.partition(".")[0]


class FactorWarning(UserWarning):
    """A factor is valid but probably wrong, for example with a field in nT and a measurement in tesla.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = ns.factors.MagFactor1(0, (3e-5, 0.0, 3e-5), 50_000.0, (0.6, 0.0, 0.8), (0, 0, 0))  # tesla, and nT
    >>> caught[0].category is ns.factors.FactorWarning
    True
    """


def validate_keys(values: Sequence[object]) -> list[int]:
    """Return the keys of a factor as integers, all different."""
    keys = [_validate_key("key" if len(values) == 1 else f"key{i}", value) for i, value in enumerate(values, 1)]
    if len(set(keys)) < len(keys):
        raise FactorError("keys", keys, allowed="must differ: each names one unknown")
    return keys


def _validate_key(what: str, value: object) -> int:
    try:
        key = -1 if isinstance(value, bool | np.bool_) else operator.index(cast("Any", value))
    except TypeError:
        key = -1
    if not 0 <= key < 2**64:
        raise FactorError(what, value, allowed="must be an integer from 0 to 2^64 - 1, such as gtsam.symbol('r', 0)")
    return key


def to_floats(what: str, value: object, allowed: str = "must be an array of numbers") -> FloatArray:
    """Return an array of floats. Raises `FactorError` for texts, booleans and rows of unequal length."""
    try:
        array = np.asarray(value)
    except ValueError as cause:  # rows of unequal length
        raise FactorError(what, value, allowed=allowed) from cause
    if array.dtype.kind not in "fiu":
        raise FactorError(what, value, allowed=allowed)
    return array.astype(np.float64, copy=False)


def validate_array(what: str, value: object, shapes: Sequence[tuple[int, ...]], allowed: str) -> AnyArray:
    """Return an array of finite float64 numbers with one of the shapes."""
    numbers = to_floats(what, value, allowed)
    if numbers.shape not in shapes:
        raise FactorError(f"shape of {what}", numbers.shape, allowed=allowed)
    if not all_finite(numbers):
        raise FactorError(what, numbers.tolist(), allowed="must be finite")
    return numbers


def all_finite(numbers: FloatArray) -> bool:
    """Return True if all numbers are finite. The sum of squares is the faster test for a few numbers."""
    return math.isfinite(np.vdot(numbers, numbers)) or bool(np.isfinite(numbers).all())


def validate_number(what: str, value: object) -> float:
    """Return one finite number from a float, an integer or an array without axes."""
    if type(value) is not float:
        value = float(validate_array(what, value, [()], "must be one number"))
    if not math.isfinite(value):
        raise FactorError(what, value, allowed="must be finite")
    return value


def validate_vector(what: str, value: object, n: int) -> Numbers:
    """Return n finite numbers from an array (n,) or a sequence."""
    if not (type(value) is np.ndarray and value.dtype == np.float64 and value.shape == (n,)):
        value = validate_array(what, value, [(n,)], f"must be {n} numbers, an array ({n},)")
    return validate_finite(what, tuple(value.tolist()))


def validate_finite(what: str, numbers: Numbers) -> Numbers:
    """Return the numbers unchanged. Raises `FactorError` if one is not finite."""
    if math.isfinite(sum(numbers)) or all(map(math.isfinite, numbers)):
        return numbers
    raise FactorError(what, numbers, allowed="must be finite")


def validate_direction(what: str, value: object, n: int = 3) -> Numbers:
    """Return a unit vector of n numbers from a gtsam.Unit3 or a vector of any length above 0."""
    if n == 3 and is_gtsam(value, "Unit3"):
        numbers = tuple(cast("Any", value).point3().tolist())
        if abs(math.hypot(*numbers) - 1.0) <= 1e-6:  # GTSAM makes a Unit3 of zeros and of NaN too
            return numbers
        raise FactorError(what, numbers, allowed="must have a length", remedy="check the vector it was made of")
    numbers = validate_vector(what, value, n)
    largest = max(map(abs, numbers))
    if largest == 0.0:
        raise FactorError(what, numbers, allowed="must not be zero")
    numbers = tuple(part / largest for part in numbers)
    length = math.sqrt(sum(part * part for part in numbers))
    return tuple(part / length for part in numbers)


def validate_positive(what: str, value: object) -> float:
    """Return one finite number above 0."""
    checked = validate_number(what, value)
    if checked <= 0.0:
        raise FactorError(what, checked, allowed="must be > 0")
    return checked


def find_likely_unit(strength: float) -> str:
    """Return the unit that brings a field strength closest to the earth's field."""
    sizes = MAGNETIC_FIELD_UNITS
    return min(sizes, key=lambda unit: abs(math.log10(strength * sizes[unit] / _EARTH_FIELD)))


def warn_if_units_differ(name: str, scale: float, measured: Numbers, bias: Numbers) -> None:
    """Issue a `FactorWarning` if the field `scale` and the vector measured - bias seem to have different units."""
    field = abs(scale)
    reading = math.hypot(*(part - offset for part, offset in zip(measured, bias, strict=True)))
    if field == 0.0 or reading == 0.0 or 1.0 / MAX_STRENGTH_RATIO <= field / reading <= MAX_STRENGTH_RATIO:
        return
    field_unit, reading_unit = find_likely_unit(field), find_likely_unit(reading)
    guess = f"; the scale looks like {field_unit}, the measurement like {reading_unit}"
    warnings.warn(
        f"{name}: scale is {field:.6g} and measured less bias {reading:.6g} long"
        f"{guess if field_unit != reading_unit else ''}; give scale, bias, measured and sigma in one unit",
        FactorWarning,
        stacklevel=_caller_stacklevel(),
    )


def _caller_stacklevel() -> int:
    """Return the `stacklevel` with which a warning names the first caller outside this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    return level
