"""Values of optional children. An absent child gives the default; an invalid child is a problem of the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from navsense.core.errors import NavsenseError, SdfError, SensorError
from navsense.core.typing import Vector
from navsense.sdf import values
from navsense.sdf.context import Context
from navsense.sdf.schema import LEAF
from navsense.sdf.xml_reader import Element

Value = TypeVar("Value")


def parse_child(
    context: Context, element: Element, tag: str, default: Value, parse: Callable[[Element], Value]
) -> Value:
    """Return the value of the child `tag` by the function `parse`; the default if the child is absent or invalid."""
    child = element.find(tag)
    if child is not None:
        context.check(child, LEAF)
        with context.collect_errors():
            return parse(child)
    return default


def parse_child_number(
    context: Context,
    element: Element,
    tag: str,
    default: float,
    *,
    minimum: float = -math.inf,
    above: float = -math.inf,
) -> float:
    """Return the finite number of the child `tag`, which must be >= `minimum` and > `above`."""
    return parse_child(
        context,
        element,
        tag,
        default,
        lambda child: values.parse_number(child, parent=element.tag, minimum=minimum, above=above),
    )


def parse_child_flag(context: Context, element: Element, tag: str, *, default: bool) -> bool:
    """Return the truth value of the child `tag`."""
    return parse_child(context, element, tag, default, lambda child: values.parse_flag(child, parent=element.tag))


def parse_child_vector(context: Context, element: Element, tag: str, default: Vector) -> Vector:
    """Return the vector of the child `tag`."""
    return parse_child(context, element, tag, default, lambda child: values.parse_vector(child, parent=element.tag))


def parse_child_numbers(
    context: Context, element: Element, tag: str, default: tuple[float, ...], *, below: float = math.inf
) -> tuple[float, ...]:
    """Return the numbers of the child `tag`, as many as the default has, each with an absolute value below `below`."""
    count = len(default)
    return parse_child(
        context,
        element,
        tag,
        default,
        lambda child: values.parse_numbers_below(child, count, below, parent=element.tag),
    )


def parse_child_choice(context: Context, element: Element, tag: str, default: str, allowed: tuple[str, ...]) -> str:
    """Return the text of the child `tag`, which must be one of `allowed`."""
    return parse_child(
        context, element, tag, default, lambda child: values.parse_choice(child, allowed, parent=element.tag)
    )


def error_at(element: Element, error: NavsenseError) -> SdfError:
    """Return the error of a specification as an error of the SDF file at the line of an element."""
    inside = f" {error.where}" if error.where else ""
    what = f"<{element.tag}>{inside} {error.what}"
    return SdfError(what, error.value, where=element.where, allowed=error.allowed, remedy=error.remedy)


@contextmanager
def map_spec_errors(element: Element, kind: type[NavsenseError] = SensorError) -> Iterator[None]:
    """Raise an error of a specification as an `SdfError` at the element's line."""
    try:
        yield
    except kind as error:
        raise error_at(element, error) from error
