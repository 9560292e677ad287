"""Values of optional children. An absent child gives the default; an invalid child is a problem of the file."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from navsense.core.typing import Vector
from navsense.sdf.context import Context
from navsense.sdf.values import invalid_value, parse_choice, parse_flag, parse_number, parse_text, parse_vector
from navsense.sdf.xml_reader import Element

Value = TypeVar("Value")


def parse_child(
    context: Context, element: Element, tag: str, default: Value, parse: Callable[[Element], Value]
) -> Value:
    """Return the value of the child `tag` by the function `parse`; the default if the child is absent or invalid."""
    child = context.find_child(element, tag)
    if child is not None:
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
    """Return the finite number of the child `tag`, which has the limits of `parse_number`."""
    parse = partial(parse_number, parent=element.tag, minimum=minimum, above=above)
    return parse_child(context, element, tag, default, parse)


def parse_child_count(context: Context, element: Element, tag: str, default: int) -> int:
    """Return the whole number >= 1 of the child `tag`."""

    def parse_count(child: Element) -> int:
        number = parse_number(child, parent=element.tag, minimum=1.0)
        if number != int(number):
            raise invalid_value(child, child.text, "must be a whole number", parent=element.tag)
        return int(number)

    return parse_child(context, element, tag, default, parse_count)


def parse_child_flag(context: Context, element: Element, tag: str, *, default: bool) -> bool:
    """Return the truth value of the child `tag`."""
    return parse_child(context, element, tag, default, partial(parse_flag, parent=element.tag))


def parse_child_text(context: Context, element: Element, tag: str, default: str) -> str:
    """Return the text of the child `tag`."""
    return parse_child(context, element, tag, default, partial(parse_text, parent=element.tag))


def parse_child_vector(context: Context, element: Element, tag: str, default: Vector) -> Vector:
    """Return the vector of the child `tag`."""
    return parse_child(context, element, tag, default, partial(parse_vector, parent=element.tag))


def parse_child_choice(context: Context, element: Element, tag: str, default: str, allowed: tuple[str, ...]) -> str:
    """Return the text of the child `tag`, which must be one of `allowed`."""
    return parse_child(context, element, tag, default, partial(parse_choice, allowed=allowed, parent=element.tag))
