"""Checks of the types and the limits of the fields of a specification. An error names the field.

A text and a truth value are not numbers, and a number is not a truth value.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable
from dataclasses import fields
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints

import numpy as np

from navsense.core.errors import NavsenseError, SensorError, SimulationError, Where
from navsense.core.field_metadata import get_file_fields

_TYPE_NAMES = {float: "a number", int: "a whole number", bool: "True or False", str: "a text", NoneType: "None"}

_TOP_LEVEL_CLASSES = ("Noise", "Pose")
"""Classes of fields of a spec that are public outside `ns.sensors`."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True if a value is a real number."""
    if isinstance(value, (float, int)):  # also np.float64; a tuple of types is faster than a union
        return not isinstance(value, bool)
    return isinstance(value, np.integer | np.floating)


MAX_MAGNITUDE = 1e100
"""Largest absolute value of a quantity. Larger whole numbers may have no double."""


def _exceeds_double(value: object) -> bool:
    """Return True for a whole number that exceeds all doubles."""
    return isinstance(value, int) and abs(value) > sys.float_info.max


@cache
def _get_hints(kind: type) -> dict[str, Any]:
    """Return the type hints of the fields of a specification class."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _split_union(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union; another type alone."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _matches_type(value: object, hint: Any) -> bool:
    """Return True if a value has a type; a number must fit into a double."""
    if type(value) is hint and hint is not int:  # the usual case; an int may be too large
        return True
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_matches_type(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin is tuple:
        if not isinstance(value, tuple | list):
            return False
        hints = (parts[0],) * len(value) if parts[-1] is Ellipsis else parts
        return len(hints) == len(value) and all(map(_matches_type, value, hints))
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint not in (float, int):
        return isinstance(value, hint)
    if not is_number(value) or _exceeds_double(value):
        return False
    return hint is float or (math.isfinite(value) and value == int(value))  # a whole number of any type is an int


def _format_class(kind: type) -> str:
    """Return the public name of a class of navsense."""
    if ".sensors." in kind.__module__:
        return f"ns.sensors.{kind.__name__}"
    return f"ns.{kind.__name__}" if kind.__name__ in _TOP_LEVEL_CLASSES else f"{kind.__module__}.{kind.__name__}"


def _format_invalid_value(value: object) -> str:
    """Return a value as text for an error. Python does not print whole numbers with thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return "too many digits to print"


def _format_type(hint: Any) -> str:
    """Return a type in words."""
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return " or ".join(repr(part) for part in parts)
    if get_origin(hint) is tuple:
        many = "a tuple" if parts[-1] is Ellipsis else f"a tuple of {len(parts)}"
        return f"{many}, each {_format_allowed(parts[0])}"
    return _TYPE_NAMES.get(hint) or f"of {hint.__name__}"


def _format_allowed(hint: Any) -> str:
    return " or ".join(_format_type(one) for one in _split_union(hint))


def _suggest_remedy(value: object, hint: Any) -> str:
    """Return how to write the intended value; "" if that only repeats what is allowed."""
    choices = _split_union(hint)
    if isinstance(value, str) and {float, int, bool} & set(choices):
        return "write it without quotes"
    classes = [one for one in choices if isinstance(one, type) and one.__module__.startswith("navsense.")]
    names = [_format_class(one) for one in classes]
    articles = ["an" if name.startswith("ns.") else "a" for name in names]  # letters are spelled: "an ns.Noise"
    return f"give {' or '.join(map(' '.join, zip(articles, names, strict=True)))}" if names else ""


def _make_enum_error(name: str, value: object, kind: type[StrEnum], field: str) -> SensorError:
    """Return the error of a value that is not a member of an enumeration."""
    members = {str(one): f"{_format_class(kind)}.{one.name}" for one in kind}
    allowed = f"must be of {_format_class(kind)}, which {type(value).__name__} is not"
    wanted = members.get(str(value), ", ".join(members.values()))
    return SensorError(name, value, allowed=allowed, remedy=f"write {wanted}", field=field)


def validate_types(
    spec: Any, owner: str = "", *, skip: Collection[str] = (), error: type[NavsenseError] = SensorError
) -> None:
    """Raise `error` for the first field of the dataclass `spec` with a wrong type; `owner` is named in the error.

    skip: fields that are not checked.

    >>> from dataclasses import dataclass
    >>> from navsense.core.validation import validate_types
    >>> @dataclass(frozen=True)
    ... class Lag:
    ...     time_constant: float = 0.1
    ...     def __post_init__(self):
    ...         validate_types(self, "of a lag")
    >>> try:
    ...     Lag("slow")
    ... except ns.NavsenseError as error:
    ...     print(error)
    time_constant of a lag: 'slow'; must be a number; write it without quotes
    """
    values = vars(spec)
    kind: type = type(spec)
    for name, hint in _get_hints(kind).items():
        value, what = values[name], f"{name}{owner and ' '}{owner}"
        if name in skip or _matches_type(value, hint):
            continue
        if _exceeds_double(value) and {float, int} & set(_split_union(hint)):
            allowed = f"must be of absolute value below {MAX_MAGNITUDE:g}"
            raise error(what, _format_invalid_value(value), allowed=allowed, field=name)
        if isinstance(hint, type) and issubclass(hint, StrEnum):
            raise _make_enum_error(what, value, hint, name)
        allowed, remedy = f"must be {_format_allowed(hint)}", _suggest_remedy(value, hint)
        raise error(what, _format_invalid_value(value), allowed=allowed, remedy=remedy, field=name)


def check_number(
    what: str,
    value: object,
    low: float = -MAX_MAGNITUDE,
    high: float = MAX_MAGNITUDE,
    *,
    error: type[NavsenseError] = SensorError,
    where: Where | None = None,
    remedy: str = "",
    field: str = "",
) -> float:
    """Return `value` as a float. Raise `error` for the field `field` unless it is a number from `low` to `high`.

    >>> from navsense.core.validation import check_number
    >>> try:
    ...     check_number("time constant (s)", -0.1, 0.0)
    ... except ns.NavsenseError as error:
    ...     print(error)
    time constant (s): -0.1; must be >= 0
    """
    if is_number(value) and low <= value <= high:
        return float(value)
    if high != MAX_MAGNITUDE:
        allowed = f"must be a number from {low:g} to {high:g}"
    elif not (is_number(value) and -math.inf < value < math.inf):
        allowed = "must be a finite number"
    elif abs(value) > MAX_MAGNITUDE:
        allowed = f"must be of absolute value below {MAX_MAGNITUDE:g}"
    else:
        allowed = f"must be >= {low:g}"
    raise error(what, value, allowed=allowed, where=where, remedy=remedy, field=field)


def check_limits(spec: Any, *, skip: Collection[str] = (), error: type[NavsenseError] = SensorError) -> None:
    """Raise `error` for the first number of a specification below the minimum of its `FileField`, or not finite.

    skip: fields that are not checked.
    """
    for name, file_field in get_file_fields(type(spec)).items():
        value = getattr(spec, name)
        if name not in skip and not (file_field.may_be_infinite and value == math.inf):
            check_number(name, value, max(file_field.minimum, -MAX_MAGNITUDE), error=error, field=name)


def check_numbers(
    name: str, values: Iterable[float], count: int, *, magnitude_below: float = MAX_MAGNITUDE
) -> tuple[float, ...]:
    """Return `count` numbers as floats. The first word of `name` is the name of the field.

    Raises `SensorError` for another count, and for an absolute value of `magnitude_below` or more.

    >>> from navsense.core.validation import check_numbers
    >>> check_numbers("size (m)", (1, 2, 3), 3)
    (1.0, 2.0, 3.0)
    """
    many = "a finite number" if count == 1 else f"{count} finite numbers"
    allowed = f"must be {many} of absolute value below {magnitude_below:g}"
    shown, field = repr(*values) if count == 1 else repr(values), name.partition(" ")[0]
    try:
        raw = tuple(values)
        numbers = tuple(float(number) for number in raw)
    except (TypeError, ValueError, OverflowError) as error:
        raise SensorError(name, shown, allowed=allowed, field=field) from error
    small = all(math.isfinite(number) and abs(number) < magnitude_below for number in numbers)
    if not small or len(numbers) != count or not all(is_number(number) for number in raw):
        raise SensorError(name, shown, allowed=allowed, field=field)
    return numbers


def check_integer(what: str, value: object, maximum: int, allowed: str) -> int:
    """Return `value` as an int. Raise `SimulationError` unless it is an integer from 0 to `maximum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= maximum:
        raise SimulationError(what, value, allowed=allowed)
    return int(value)
