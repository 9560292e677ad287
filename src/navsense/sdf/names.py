"""Names and topics: what may be one, and how Gazebo makes one valid."""

from __future__ import annotations

from navsense.sdf.read import Element
from navsense.sdf.values import refusal


def checked_name(element: Element) -> str:
    """Return an element's name; raise `SdfError` where it has none or one that SDF keeps for itself."""
    name = element.attribute("name")
    if name is None:
        raise refusal(
            element,
            "missing" if "name" not in element.attributes else "empty",
            "must be given",
            attribute="name",
            remedy='write name="..."',
        )
    return possible_name(name, element, "name")


def possible_name(name: str, element: Element, attribute: str = "") -> str:
    """Return a name that an element or its attribute gives; raise `SdfError` for one that SDF keeps for itself."""
    if len(name) > LONGEST:
        raise refusal(element, name, f"must be at most {LONGEST} characters", attribute=attribute)
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        raise refusal(element, name, "must not contain control characters", attribute=attribute)
    if "::" in name:
        raise refusal(element, name, 'must not contain "::", which joins names', attribute=attribute)
    if name == "world" or (name.startswith("__") and name.endswith("__")):
        raise refusal(element, name, "is reserved by SDF", attribute=attribute, remedy="choose another name")
    return name


def full_name(element: Element, around: str, name: str) -> str:
    """Return a name with that of what it stands in; raise `SdfError` where the two are too long."""
    full = f"{around}::{name}" if around else name
    if len(full) > LONGEST:
        allowed = f"must be at most {LONGEST} characters with the names around it"
        raise refusal(element, name, allowed, attribute="name")
    return full


def valid_topic(text: str) -> str | None:
    """Return a topic by Gazebo's rules, with a leading slash; None where nothing valid is left of it.

    Blanks become underscores; `@`, `~`, `//` and `:=` go. Source: gz-transport, `TopicUtils::AsValidTopic`.
    """
    if not text.isprintable():
        return None
    topic = text.replace(" ", "_")
    out: list[str] = []
    at = 0
    while at < len(topic):
        if topic[at] in "@~":
            at += 1
        elif topic.startswith(("//", ":="), at):
            at += 2
        else:
            out.append(topic[at])
            at += 1
    topic = "".join(out)
    if not topic or topic == "/" or "//" in topic or ":=" in topic or len(topic) > 65535:
        return None
    return topic if topic.startswith("/") else "/" + topic


def default_topic(world: str, models: tuple[str, ...], link: str, sensor: str, kind: str) -> str:
    """Return Gazebo's topic of a sensor: `/world/W/model/M/link/L/sensor/S/<kind>`, a `model/` for each nesting."""
    parts = ("world", world, *(part for model in models for part in ("model", model)))
    return "/" + "/".join((*parts, "link", link, "sensor", sensor, kind))


def minor_of(version: str) -> int | None:
    """Return y of a version "1.y" of SDF, whether it is read or not; None where the text is none."""
    whole, dot, part = version.strip().partition(".")
    digits = part.isascii() and part.isdigit() and len(part) <= 4
    return int(part) if whole == "1" and dot and digits else None


def version_of(root: Element) -> int:
    """Return y of a root element's `version="1.y"`; raise `SdfError` outside 1.4 to 1.12."""
    given = root.attribute("version")
    allowed = f"must be 1.{OLDEST} to 1.{NEWEST}"
    if given is None:
        value = "missing" if "version" not in root.attributes else "empty"
        raise refusal(root, value, allowed, attribute="version", remedy=f'write <sdf version="1.{NEWEST}">')
    minor = minor_of(given)
    if minor is None or not OLDEST <= minor <= NEWEST:
        remedy = f'write <sdf version="1.{NEWEST}"> if it uses nothing newer'
        if minor is not None and minor < OLDEST:
            remedy = f"the format was another then; bring the file to 1.{OLDEST} or newer by hand"
        raise refusal(root, given, allowed, attribute="version", remedy=remedy)
    return minor


LONGEST = 1000
"""Characters of a world-relative name: without a limit a file of some megabytes could fill the memory."""

OLDEST, NEWEST = 4, 12
"""Versions 1.y of SDF that are read."""
