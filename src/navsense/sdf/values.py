"""Values of elements: numbers, flags, vectors, poses. An error gives file, line, value and allowed values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from navsense.core.errors import CompilerError, NavsenseError, SdfError
from navsense.core.names import suggest_name
from navsense.core.pose import Pose, from_rpy, normalize
from navsense.core.text import parse_decimal
from navsense.core.typing import Vector
from navsense.sdf.xml_reader import Element

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def invalid_value(
    element: Element, value: object, allowed: str, *, parent: str = "", attribute: str = "", remedy: str = ""
) -> SdfError:
    """Return the error of an invalid value: `FILE:LINE: <parent><tag attribute>: value; ...`."""
    what = f"<{element.tag} {attribute}>" if attribute else f"<{element.tag}>"
    what = f"<{parent}>{what}" if parent else what
    return SdfError(what, value, where=element.where, allowed=allowed, remedy=remedy)


def invalid_choice(
    element: Element, value: str | None, choices: Iterable[str], *, parent: str = "", attribute: str = ""
) -> SdfError:
    """Return the error of a value that is not one of `choices`, with the most similar choice."""
    names = tuple(choices)
    allowed, remedy = f"must be one of {', '.join(names)}", suggest_name(value or "", names)
    text = "missing" if value is None else value or "empty"
    return invalid_value(element, text, allowed, parent=parent, attribute=attribute, remedy=remedy)


def error_at(element: Element, error: NavsenseError, *, attribute: str = "") -> SdfError:
    """Return the error of a specification as an error of the SDF file at an element, or at an attribute of it."""
    place = f"{error.where}: " if error.where else ""
    what = f"<{element.tag} {attribute}> {place}{error.what}" if attribute else f"<{element.tag}> {place}{error.what}"
    return SdfError(what, error.value, where=element.where, allowed=error.allowed, remedy=error.remedy)


@contextmanager
def map_spec_errors(element: Element) -> Iterator[None]:
    """Raise an error of a specification, field or motion as an `SdfError` at the line of an element.

    A `CompilerError` is no error of the file.
    """
    try:
        yield
    except (SdfError, CompilerError):
        raise
    except NavsenseError as error:
        raise error_at(element, error) from error


def require_child(element: Element, tag: str, allowed: str = "must be given") -> Element:
    """Return the first child with a tag. Raises `SdfError` if it is absent."""
    child = element.find(tag)
    if child is None:
        raise SdfError(f"<{element.tag}><{tag}>", "missing", where=element.where, allowed=allowed)
    return child


def parse_number(
    element: Element,
    *,
    parent: str = "",
    attribute: str = "",
    minimum: float = -math.inf,
    above: float = -math.inf,
    magnitude_below: float = math.inf,
) -> float:
    """Return the finite number of an element or attribute.

    It must be >= `minimum` and > `above`, and its absolute value < `magnitude_below`.
    """
    text = element.attributes[attribute] if attribute else element.text
    value = parse_decimal(text)
    if value is not None and value >= minimum and value > above and abs(value) < magnitude_below:
        return value
    if value is not None and abs(value) >= magnitude_below:
        allowed = f"must be a finite number of absolute value below {magnitude_below:g}"
    else:
        limit = f" > {above:g}" if above > -math.inf else f" >= {minimum:g}" if minimum > -math.inf else ""
        allowed = f"must be{limit}" if value is not None and not attribute else "must be a finite number"
        allowed += limit if attribute else ""
    raise invalid_value(element, text or "empty", allowed, parent=parent, attribute=attribute)


def parse_attribute_number(
    element: Element, name: str, *, minimum: float = -math.inf, above: float = -math.inf
) -> float | None:
    """Return the finite number of an attribute, which must be >= `minimum` and > `above`; None if it is absent."""
    if name not in element.attributes:
        return None
    return parse_number(element, attribute=name, minimum=minimum, above=above)


def require_attribute_number(element: Element, name: str) -> float:
    """Return the finite number of a required attribute."""
    if name not in element.attributes:
        raise invalid_value(element, "missing", "must be given", attribute=name)
    return parse_number(element, attribute=name)


def require_attribute_text(element: Element, name: str) -> str:
    """Return the text of a required attribute."""
    word = element.get_attribute(name)
    if word is None:
        raise invalid_value(element, "missing", "must be given", attribute=name)
    return word


def parse_attribute_integer(element: Element, name: str) -> int | None:
    """Return the whole number of an attribute; None if it is absent."""
    value = parse_attribute_number(element, name)
    if value is not None and value != int(value):
        raise invalid_value(element, element.get_attribute(name), "must be a whole number", attribute=name)
    return None if value is None else int(value)


def parse_attribute_choice(element: Element, name: str, default: str, allowed: tuple[str, ...]) -> str:
    """Return the text of an attribute, which must be one of `allowed`; `default` if it is absent."""
    return parse_choice(element, allowed, attribute=name) if element.get_attribute(name) else default


def parse_flag(element: Element, *, parent: str = "", attribute: str = "") -> bool:
    """Return the truth value of an element or attribute."""
    text = element.attributes[attribute] if attribute else element.text
    value = _FLAGS.get(text.strip().lower())
    if value is None:
        raise invalid_value(element, text, "must be true, false, 1 or 0", parent=parent, attribute=attribute)
    return value


def parse_attribute_flag(element: Element, name: str, *, default: bool = False) -> bool:
    """Return the truth value of an attribute; `default` if it is absent."""
    return parse_flag(element, attribute=name) if name in element.attributes else default


def parse_text(element: Element, *, parent: str = "") -> str:
    """Return the text of an element, which must not be empty."""
    if not element.text:
        raise invalid_value(element, "empty", "must not be empty", parent=parent)
    return element.text


def split_numbers(text: str, count: int) -> tuple[float, ...] | None:
    """Return the `count` finite numbers of a text, separated by blanks; None for another text."""
    values = [parse_decimal(part) for part in text.split(maxsplit=count)]
    numbers = tuple(value for value in values if value is not None)
    return numbers if len(values) == len(numbers) == count else None


def parse_numbers(
    element: Element,
    count: int,
    allowed: str = "",
    *,
    parent: str = "",
    attribute: str = "",
    magnitude_below: float = math.inf,
) -> tuple[float, ...]:
    """Return `count` finite numbers of an element or attribute, with absolute values below `magnitude_below`."""
    text = element.attributes[attribute] if attribute else element.text
    numbers = split_numbers(text, count)
    if numbers is None or not all(abs(number) < magnitude_below for number in numbers):
        limit = f" of absolute value below {magnitude_below:g}" if magnitude_below < math.inf else ""
        allowed = allowed or f"must be {count} finite numbers{limit}"
        raise invalid_value(element, text or "empty", allowed, parent=parent, attribute=attribute)
    return numbers


def parse_choice(element: Element, allowed: tuple[str, ...], *, parent: str = "", attribute: str = "") -> str:
    """Return the text of an element or attribute, which must be one of `allowed`."""
    text = element.attributes[attribute].strip() if attribute else element.text
    if text not in allowed:
        raise invalid_choice(element, text, allowed, parent=parent, attribute=attribute)
    return text


def parse_vector(element: Element, *, parent: str = "") -> Vector:
    """Return three finite numbers of an element."""
    x, y, z = parse_numbers(element, 3, parent=parent)
    return (x, y, z)


def parse_pose(element: Element, *, parent: str = "", degrees: bool = False) -> Pose:
    """Return the pose of an element: x y z (m) and roll pitch yaw (rad; degrees with `degrees` or its attribute).

    With `rotation_format="quat_xyzw"` the last four numbers are a quaternion x y z w, of any length except 0. An empty
    element is the identity, as in SDF.
    """
    form = element.get_attribute("rotation_format") or "euler_rpy"
    degrees = parse_attribute_flag(element, "degrees", default=degrees and form == "euler_rpy")
    if form not in ("euler_rpy", "quat_xyzw"):
        raise invalid_value(element, form, "must be euler_rpy or quat_xyzw", parent=parent, attribute="rotation_format")
    if form == "quat_xyzw" and degrees:
        raise invalid_value(element, "true", "is not allowed with a quaternion", parent=parent, attribute="degrees")
    if not element.text:
        return Pose()
    if form == "euler_rpy":
        x, y, z, *angles = parse_numbers(element, 6, "must be 6 finite numbers: x y z roll pitch yaw", parent=parent)
        roll, pitch, yaw = (math.radians(angle) for angle in angles) if degrees else angles
        return Pose((x, y, z), from_rpy(roll, pitch, yaw))
    x, y, z, qx, qy, qz, qw = parse_numbers(element, 7, "must be 7 finite numbers: x y z qx qy qz qw", parent=parent)
    try:
        return Pose((x, y, z), normalize((qw, qx, qy, qz)))
    except ValueError as error:
        allowed, remedy = "a quaternion must not have length 0", "for no rotation write 0 0 0 1"
        raise invalid_value(element, element.text, allowed, parent=parent, remedy=remedy) from error


def is_effort(text: str | None) -> bool:
    """Return True if the effort limit of a joint is that of an actuator: a number above 0."""
    effort = None if text is None else parse_decimal(text)
    return effort is not None and effort > 0.0
