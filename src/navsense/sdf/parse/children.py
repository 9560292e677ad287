"""Values of children that may be absent: a default where they are, a problem of the file where they are wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from navsense.errors import NavsenseError, SdfError, SensorError
from navsense.sdf import values
from navsense.sdf.context import Context
from navsense.sdf.schema import LEAF
from navsense.sdf.xml_reader import Element
from navsense.typing import Vector


def parse_child_number(
    context: Context,
    element: Element,
    tag: str,
    default: float,
    *,
    minimum: float = -math.inf,
    above: float = -math.inf,
) -> float:
    """Return the finite number of the child `tag`, which must be >= `least` and > `above`."""
    child = element.find(tag)
    if child is not None:
        context.check(child, LEAF)
        with context.collect_errors():
            return values.parse_number(child, parent=element.tag, minimum=minimum, above=above)
    return default


def parse_child_flag(context: Context, element: Element, tag: str, *, default: bool) -> bool:
    """Return the truth value of the child `tag`."""
    child = element.find(tag)
    if child is not None:
        context.check(child, LEAF)
        with context.collect_errors():
            return values.parse_flag(child, parent=element.tag)
    return default


def parse_child_vector(context: Context, element: Element, tag: str, default: Vector) -> Vector:
    """Return the vector of the child `tag`."""
    child = element.find(tag)
    if child is not None:
        context.check(child, LEAF)
        with context.collect_errors():
            return values.parse_vector(child, parent=element.tag)
    return default


def parse_child_numbers(
    context: Context, element: Element, tag: str, default: tuple[float, ...], *, below: float = math.inf
) -> tuple[float, ...]:
    """Return the numbers of the child `tag`, as many as the default has, each of a size below `below`."""
    child = element.find(tag)
    if child is not None:
        context.check(child, LEAF)
        size = f" of a size below {below:g}" if below < math.inf else ""
        allowed = f"must be {len(default)} finite numbers{size}"
        with context.collect_errors():
            found = values.parse_numbers(child, len(default), allowed, parent=element.tag)
            if all(abs(number) < below for number in found):
                return found
            raise values.invalid_value(child, child.text, allowed, parent=element.tag)
    return default


def parse_child_choice(context: Context, element: Element, tag: str, default: str, allowed: tuple[str, ...]) -> str:
    """Return the text of the child `tag`, which must be one of `allowed`."""
    child = element.find(tag)
    if child is not None:
        context.check(child, LEAF)
        if child.text in allowed:
            return child.text
        choice = f"must be one of {', '.join(allowed)}"
        context.add_problem(values.invalid_value(child, child.text or "empty", choice, parent=element.tag))
    return default


def error_at(element: Element, error: NavsenseError) -> SdfError:
    """Return what a motion, field or signal says of its values as an error of the SDF file, at the element's line."""
    inside = f" {error.where}" if error.where else ""
    what = f"<{element.tag}>{inside} {error.what}"
    return SdfError(what, error.value, where=element.where, allowed=error.allowed, remedy=error.remedy)


@contextmanager
def map_spec_errors(element: Element) -> Iterator[None]:
    """Raise what a data sheet refuses inside as an `SdfError` at the element's line."""
    try:
        yield
    except SensorError as error:
        raise error_at(element, error) from error
