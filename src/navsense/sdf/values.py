"""Values of elements: numbers, flags, vectors, poses. An error gives file, line, value and allowed values."""

from __future__ import annotations

import math

from navsense.core.errors import SdfError
from navsense.core.inputs import parse_decimal
from navsense.core.pose import Pose, from_rpy, normalize
from navsense.core.typing import Quaternion, Vector
from navsense.sdf.xml_reader import Element

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def invalid_value(
    element: Element, value: object, allowed: str, *, parent: str = "", attribute: str = "", remedy: str = ""
) -> SdfError:
    """Return the error of an invalid value: `FILE:LINE <parent><tag attribute>: value; ...`."""
    what = f"<{element.tag} {attribute}>" if attribute else f"<{element.tag}>"
    what = f"<{parent}>{what}" if parent else what
    return SdfError(what, value, where=element.where, allowed=allowed, remedy=remedy)


def parse_number(element: Element, *, parent: str = "", minimum: float = -math.inf, above: float = -math.inf) -> float:
    """Return the finite number of an element, which must be >= `minimum` and > `above`."""
    value = parse_decimal(element.text)
    if value is None:
        raise invalid_value(element, element.text, "must be a finite number", parent=parent)
    if value < minimum:
        raise invalid_value(element, element.text, f"must be >= {minimum:g}", parent=parent)
    if value <= above:
        raise invalid_value(element, element.text, f"must be > {above:g}", parent=parent)
    return value


def parse_attribute_number(element: Element, name: str, *, above: float = -math.inf) -> float | None:
    """Return the finite number of an attribute, which must be > `above`; None if it is absent."""
    text = element.attributes.get(name)
    if text is None:
        return None
    value = parse_decimal(text)
    if value is None or value <= above:
        allowed = "must be a finite number" + (f" > {above:g}" if above > -math.inf else "")
        raise invalid_value(element, text, allowed, attribute=name)
    return value


def require_attribute_number(element: Element, name: str) -> float:
    """Return the finite number of a required attribute."""
    value = parse_attribute_number(element, name)
    if value is None:
        raise invalid_value(element, "missing", "must be given", attribute=name)
    return value


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
    word = element.get_attribute(name) or default
    if word not in allowed:
        raise invalid_value(element, word, f"must be one of {', '.join(allowed)}", attribute=name)
    return word


def parse_flag(element: Element, *, parent: str = "") -> bool:
    """Return the truth value of an element."""
    value = _FLAGS.get(element.text.lower())
    if value is None:
        raise invalid_value(element, element.text, "must be true, false, 1 or 0", parent=parent)
    return value


def parse_attribute_flag(element: Element, name: str, *, default: bool = False) -> bool:
    """Return the truth value of an attribute; `default` if it is absent."""
    text = element.attributes.get(name)
    if text is None:
        return default
    value = _FLAGS.get(text.strip().lower())
    if value is None:
        raise invalid_value(element, text, "must be true, false, 1 or 0", attribute=name)
    return value


def parse_text(element: Element, *, parent: str = "") -> str:
    """Return the text of an element, which must not be empty."""
    if not element.text:
        raise invalid_value(element, "empty", "must not be empty", parent=parent)
    return element.text


def parse_numbers(element: Element, count: int, allowed: str, *, parent: str = "") -> tuple[float, ...]:
    """Return `count` finite numbers separated by blanks."""
    parts = element.text.split(maxsplit=count)
    values = [parse_decimal(part) for part in parts]
    found = tuple(value for value in values if value is not None)
    if len(parts) != count or len(found) != count:
        raise invalid_value(element, element.text, allowed, parent=parent)
    return found


def parse_numbers_below(element: Element, count: int, below: float, *, parent: str = "") -> tuple[float, ...]:
    """Return `count` finite numbers with absolute values below `below`."""
    size = f" of absolute value below {below:g}" if below < math.inf else ""
    allowed = f"must be {count} finite numbers{size}"
    found = parse_numbers(element, count, allowed, parent=parent)
    if not all(abs(number) < below for number in found):
        raise invalid_value(element, element.text, allowed, parent=parent)
    return found


def parse_choice(element: Element, allowed: tuple[str, ...], *, parent: str = "") -> str:
    """Return the text of an element, which must be one of `allowed`."""
    if element.text not in allowed:
        raise invalid_value(element, element.text or "empty", f"must be one of {', '.join(allowed)}", parent=parent)
    return element.text


def parse_vector(element: Element, *, parent: str = "") -> Vector:
    """Return three finite numbers of an element."""
    x, y, z = parse_numbers(element, 3, "must be 3 finite numbers", parent=parent)
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
    if form == "quat_xyzw":
        return _parse_quaternion_pose(element, parent)
    x, y, z, *angles = parse_numbers(element, 6, "must be 6 finite numbers: x y z roll pitch yaw", parent=parent)
    roll, pitch, yaw = (math.radians(angle) for angle in angles) if degrees else angles
    return Pose((x, y, z), from_rpy(roll, pitch, yaw))


def _parse_quaternion_pose(element: Element, parent: str) -> Pose:
    x, y, z, qx, qy, qz, qw = parse_numbers(element, 7, "must be 7 finite numbers: x y z qx qy qz qw", parent=parent)
    try:
        rotation: Quaternion = normalize((qw, qx, qy, qz))
    except ValueError as error:
        allowed = "a quaternion must not have length 0"
        raise invalid_value(
            element, element.text, allowed, parent=parent, remedy="for no rotation write 0 0 0 1"
        ) from error
    return Pose((x, y, z), rotation)


def is_effort(text: str | None) -> bool:
    """Return True if the effort limit of a joint is that of an actuator: a number above 0."""
    effort = None if text is None else parse_decimal(text)
    return effort is not None and effort > 0.0
