"""What a factor is given: keys, numbers and directions, each checked once, by name.

GTSAM takes NaN, a direction of length zero and numbers of mixed units in silence. Here the first two are errors and the
third is a warning. Units are the caller's, one unit for the field, the bias and the measurement of a factor.
"""

from __future__ import annotations

import inspect
import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from navsense.errors import FactorError
from navsense.factors.library import is_gtsam
from navsense.typing import AnyArray, FloatArray

Numbers: TypeAlias = tuple[float, ...]
"""The finite floats of one argument, row by row."""

APART = 300.0
"""How many times a field and what is measured of it may differ before two units are likelier than an odd field."""

UNITS = {"T": 1.0, "mT": 1e-3, "uT": 1e-6, "nT": 1e-9, "G": 1e-4, "mG": 1e-7}
"""Tesla in one of each unit."""

_EARTH = 50e-6
_PACKAGE = __name__.partition(".")[0]


class FactorWarning(UserWarning):
    """A factor that can be made but hardly meant, such as a field in nT beside a measurement in tesla."""


def key(what: str, value: object) -> int:
    """Return a key, an integer from 0 to 2^64 - 1."""
    try:
        number = -1 if isinstance(value, bool | np.bool_) else operator.index(cast("Any", value))
    except TypeError:
        number = -1
    if not 0 <= number < 2**64:
        raise FactorError(what, value, allowed="must be an integer from 0 to 2^64 - 1, such as gtsam.symbol('r', 0)")
    return number


def keys(values: Sequence[object]) -> list[int]:
    """Return the keys of a factor, no two of them alike."""
    found = [key("key" if len(values) == 1 else f"key{i}", value) for i, value in enumerate(values, 1)]
    if len(set(found)) < len(found):
        raise FactorError("keys", found, allowed="must differ: each names one unknown")
    return found


def array(what: str, value: object, shapes: Sequence[tuple[int, ...]], allowed: str) -> AnyArray:
    """Return finite float64 numbers of one of the shapes."""
    try:
        given = np.asarray(value)
    except ValueError as cause:  # rows of unequal length
        raise FactorError(what, value, allowed=allowed) from cause
    if given.dtype.kind not in "fiu":
        raise FactorError(what, value, allowed=allowed)
    if given.shape not in shapes:
        raise FactorError(f"shape of {what}", given.shape, allowed=allowed)
    numbers = given.astype(np.float64, copy=False)
    if not all_finite(numbers):
        raise FactorError(what, numbers.tolist(), allowed="must be finite")
    return numbers


def all_finite(numbers: FloatArray) -> bool:
    """Tell whether all numbers are finite; their squares' sum tells it of few numbers in less time."""
    return math.isfinite(np.vdot(numbers, numbers)) or bool(np.isfinite(numbers).all())


def number(what: str, value: object) -> float:
    """Return one finite number: a float, an integer or an array without axes."""
    if type(value) is not float:
        value = float(array(what, value, [()], "must be one number"))
    if not math.isfinite(value):
        raise FactorError(what, value, allowed="must be finite")
    return value


def vector(what: str, value: object, n: int) -> Numbers:
    """Return n finite numbers from an array (n,) or a sequence."""
    if not (type(value) is np.ndarray and value.dtype == np.float64 and value.shape == (n,)):
        value = array(what, value, [(n,)], f"must be {n} numbers, an array ({n},)")
    return finite(what, tuple(value.tolist()))


def finite(what: str, numbers: Numbers) -> Numbers:
    """Return the numbers; raise FactorError where one is not finite."""
    if math.isfinite(sum(numbers)) or all(map(math.isfinite, numbers)):
        return numbers
    raise FactorError(what, numbers, allowed="must be finite")


def direction(what: str, value: object, n: int = 3) -> Numbers:
    """Return a unit vector of n numbers: a gtsam.Unit3 as it is, a vector of any length but zero at length 1."""
    if n == 3 and is_gtsam(value, "Unit3"):
        numbers = tuple(cast("Any", value).point3().tolist())
        if abs(math.hypot(*numbers) - 1.0) <= 1e-6:  # what GTSAM made of zeros or NaN is no direction
            return numbers
        raise FactorError(what, numbers, allowed="must have a length", remedy="check the vector it was made of")
    numbers = vector(what, value, n)
    largest = max(map(abs, numbers))
    if largest == 0.0:
        raise FactorError(what, numbers, allowed="must not be zero")
    numbers = tuple(part / largest for part in numbers)
    length = math.sqrt(sum(part * part for part in numbers))
    return tuple(part / length for part in numbers)


def unit_of(strength: float) -> str:
    """Return the unit in which a field of this strength is likest the earth's."""
    return min(UNITS, key=lambda unit: abs(math.log10(strength * UNITS[unit] / _EARTH)))


def warn_of_units(name: str, scale: float, measured: Numbers, bias: Numbers) -> None:
    """Warn where the known field and the measurement less its bias look like two different units."""
    field = abs(scale)
    reading = math.hypot(*(part - fixed for part, fixed in zip(measured, bias, strict=True)))
    if field == 0.0 or reading == 0.0 or 1.0 / APART <= field / reading <= APART:
        return
    theirs, ours = unit_of(field), unit_of(reading)
    likely = f"; the scale looks like {theirs}, the measurement like {ours}" if theirs != ours else ""
    warnings.warn(
        f"{name}: scale is {field:.6g} and measured less bias {reading:.6g} long{likely}; "
        "give scale, bias, measured and sigma in one unit",
        FactorWarning,
        stacklevel=_outside(),
    )


def _outside() -> int:
    """Return the `stacklevel`, for the caller's warning, of the line outside this package that led to it."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    return level
