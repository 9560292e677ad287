"""Values of elements: numbers, flags, vectors, poses. Each refusal names file, line, value and what is allowed."""

from __future__ import annotations

import math

from navsense.errors import SdfError
from navsense.inputs import decimal
from navsense.pose import Pose, from_rpy, normalised
from navsense.sdf.read import Element
from navsense.typing import Quaternion, Vector

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def refusal(
    element: Element, value: object, allowed: str, *, parent: str = "", attribute: str = "", remedy: str = ""
) -> SdfError:
    """Return the error of a value that an element cannot have: `FILE:LINE <parent><tag attribute>: value; ...`."""
    what = f"<{element.tag} {attribute}>" if attribute else f"<{element.tag}>"
    what = f"<{parent}>{what}" if parent else what
    return SdfError(what, value, where=element.where, allowed=allowed, remedy=remedy)


def number(element: Element, *, parent: str = "", least: float = -math.inf, above: float = -math.inf) -> float:
    """Return an element's finite number, which must be >= `least` and > `above`."""
    value = decimal(element.text)
    if value is None:
        raise refusal(element, element.text, "must be a finite number", parent=parent)
    if value < least:
        raise refusal(element, element.text, f"must be >= {least:g}", parent=parent)
    if value <= above:
        raise refusal(element, element.text, f"must be > {above:g}", parent=parent)
    return value


def attribute_number(element: Element, name: str, *, above: float = -math.inf) -> float | None:
    """Return the finite number of an attribute, which must be > `above`; None where it is absent."""
    text = element.attributes.get(name)
    if text is None:
        return None
    value = decimal(text)
    if value is None or value <= above:
        allowed = "must be a finite number" + (f" > {above:g}" if above > -math.inf else "")
        raise refusal(element, text, allowed, attribute=name)
    return value


def given_number(element: Element, name: str) -> float:
    """Return the finite number of an attribute that must be given."""
    value = attribute_number(element, name)
    if value is None:
        raise refusal(element, "missing", "must be given", attribute=name)
    return value


def given_word(element: Element, name: str) -> str:
    """Return the text of an attribute that must be given."""
    word = element.attribute(name)
    if word is None:
        raise refusal(element, "missing", "must be given", attribute=name)
    return word


def attribute_whole(element: Element, name: str) -> int | None:
    """Return the whole number of an attribute; None where it is absent."""
    value = attribute_number(element, name)
    if value is not None and value != int(value):
        raise refusal(element, element.attribute(name), "must be a whole number", attribute=name)
    return None if value is None else int(value)


def attribute_word(element: Element, name: str, default: str, allowed: tuple[str, ...]) -> str:
    """Return the word of an attribute, which must be one of `allowed`, `default` where it is absent."""
    word = element.attribute(name) or default
    if word not in allowed:
        raise refusal(element, word, f"must be one of {', '.join(allowed)}", attribute=name)
    return word


def flag(element: Element, *, parent: str = "") -> bool:
    """Return an element's truth value."""
    value = _FLAGS.get(element.text.lower())
    if value is None:
        raise refusal(element, element.text, "must be true, false, 1 or 0", parent=parent)
    return value


def attribute_flag(element: Element, name: str, *, default: bool = False) -> bool:
    """Return the truth value of an attribute, `default` where it is absent."""
    text = element.attributes.get(name)
    if text is None:
        return default
    value = _FLAGS.get(text.strip().lower())
    if value is None:
        raise refusal(element, text, "must be true, false, 1 or 0", attribute=name)
    return value


def text(element: Element, *, parent: str = "") -> str:
    """Return an element's text, which must not be empty."""
    if not element.text:
        raise refusal(element, "empty", "must not be empty", parent=parent)
    return element.text


def numbers(element: Element, count: int, allowed: str, *, parent: str = "") -> tuple[float, ...]:
    """Return `count` finite numbers separated by blanks."""
    parts = element.text.split(maxsplit=count)
    values = [decimal(part) for part in parts]
    found = tuple(value for value in values if value is not None)
    if len(parts) != count or len(found) != count:
        raise refusal(element, element.text, allowed, parent=parent)
    return found


def vector(element: Element, *, parent: str = "") -> Vector:
    """Return an element's three finite numbers."""
    x, y, z = numbers(element, 3, "must be 3 finite numbers", parent=parent)
    return (x, y, z)


def pose(element: Element, *, parent: str = "", degrees: bool = False) -> Pose:
    """Return an element's pose: x y z (m) and roll pitch yaw (rad; degrees where `degrees` or its attribute says so).

    With `rotation_format="quat_xyzw"` the last four numbers are a quaternion x y z w of any length but zero. An empty
    element is the identity, as SDF has it.
    """
    form = element.attribute("rotation_format") or "euler_rpy"
    degrees = attribute_flag(element, "degrees", default=degrees and form == "euler_rpy")
    if form not in ("euler_rpy", "quat_xyzw"):
        raise refusal(element, form, "must be euler_rpy or quat_xyzw", parent=parent, attribute="rotation_format")
    if form == "quat_xyzw" and degrees:
        raise refusal(element, "true", "a quaternion has no degrees", parent=parent, attribute="degrees")
    if not element.text:
        return Pose()
    if form == "quat_xyzw":
        return _with_quaternion(element, parent)
    x, y, z, *angles = numbers(element, 6, "must be 6 finite numbers: x y z roll pitch yaw", parent=parent)
    roll, pitch, yaw = (math.radians(angle) for angle in angles) if degrees else angles
    return Pose((x, y, z), from_rpy(roll, pitch, yaw))


def _with_quaternion(element: Element, parent: str) -> Pose:
    x, y, z, qx, qy, qz, qw = numbers(element, 7, "must be 7 finite numbers: x y z qx qy qz qw", parent=parent)
    try:
        rotation: Quaternion = normalised((qw, qx, qy, qz))
    except ValueError as error:
        allowed = "a quaternion must not be of length zero"
        raise refusal(element, element.text, allowed, parent=parent, remedy="0 0 0 1 is no rotation") from error
    return Pose((x, y, z), rotation)


def is_effort(text: str | None) -> bool:
    """Return True if the effort limit of a joint is that of an actuator: a number above 0."""
    effort = None if text is None else decimal(text)
    return effort is not None and effort > 0.0
