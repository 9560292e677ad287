"""Rules for names and topics."""

from __future__ import annotations

import re
from collections.abc import Sequence

from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element


def parse_name(element: Element) -> str:
    """Return the name of an element. Raises `SdfError` for a missing, invalid or reserved name."""
    name = element.get_attribute("name")
    if name is None:
        value = "missing" if "name" not in element.attributes else "empty"
        raise invalid_value(element, value, "must be given", attribute="name", remedy='write name="..."')
    return check_name(name, element, "name")


def check_name(name: str, element: Element, attribute: str = "") -> str:
    """Return a valid name from an element or attribute. Raises `SdfError` for an invalid or reserved name."""
    if len(name) > MAX_NAME_LENGTH:
        raise invalid_value(element, name, f"must be at most {MAX_NAME_LENGTH} characters", attribute=attribute)
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        raise invalid_value(element, name, "must not contain control characters", attribute=attribute)
    if "::" in name:
        raise invalid_value(element, name, 'must not contain "::", which joins names', attribute=attribute)
    if name == "world" or (name.startswith("__") and name.endswith("__")):
        raise invalid_value(element, name, "is reserved by SDF", attribute=attribute, remedy="choose another name")
    return name


def check_unique(element: Element, name: str, elements: dict[str, Element], group: str) -> None:
    """Add an element to those of its group by name. Raises `SdfError` if another one has the name."""
    first = elements.setdefault(name, element)
    if first is not element:
        remedy = f"first on line {first.line}; rename one"
        raise invalid_value(element, name, f"must be unique among {group}", attribute="name", remedy=remedy)


def join_names(element: Element, parent: str, name: str) -> str:
    """Return a name with the name of its parent. Raises `SdfError` if the result is too long."""
    full_name = f"{parent}::{name}" if parent else name
    if len(full_name) > MAX_NAME_LENGTH:
        allowed = f"must be at most {MAX_NAME_LENGTH} characters with the names of its parents"
        raise invalid_value(element, name, allowed, attribute="name")
    return full_name


def normalize_topic(text: str) -> str | None:
    """Return a topic by Gazebo's rules, with a leading slash; None if no valid character remains.

    Blanks become underscores; `@`, `~`, `//` and `:=` are removed. Source: gz-transport, `TopicUtils::AsValidTopic`.
    """
    if not text.isprintable():
        return None
    topic = re.sub(r"[@~]|//|:=", "", text.replace(" ", "_"))
    if not topic or topic == "/" or "//" in topic or ":=" in topic or len(topic) > 65535:
        return None
    return topic if topic.startswith("/") else "/" + topic


def make_default_topic(world: str, models: Sequence[str], link: str, sensor: str, ending: str) -> str:
    """Return Gazebo's topic of a sensor: `/world/W/model/M/link/L/sensor/S/ENDING`, one `model/` per nesting level."""
    parts = ("world", world, *(part for model in models for part in ("model", model)))
    return "/" + "/".join((*parts, "link", link, "sensor", sensor, ending))


def parse_minor_version(version: str) -> int | None:
    """Return y of an SDF version "1.y", also of an unsupported one; None for an invalid text."""
    match = re.fullmatch(r"1\.([0-9]{1,4})", version.strip())
    return int(match[1]) if match else None


def parse_version(root: Element) -> int:
    """Return y of the root element's `version="1.y"`. Raises `SdfError` outside 1.4 to 1.12."""
    version = root.get_attribute("version")
    minor = None if version is None else parse_minor_version(version)
    if minor is not None and OLDEST_VERSION <= minor <= NEWEST_VERSION:
        return minor
    remedy = f'write <sdf version="1.{NEWEST_VERSION}">'
    if version is None:
        version = "missing" if "version" not in root.attributes else "empty"
    elif minor is not None and minor < OLDEST_VERSION:
        remedy = f"the old format differs; convert the file to 1.{OLDEST_VERSION} or newer by hand"
    else:
        remedy += " if it uses nothing newer"
    allowed = f"must be 1.{OLDEST_VERSION} to 1.{NEWEST_VERSION}"
    raise invalid_value(root, version, allowed, attribute="version", remedy=remedy)


MAX_NAME_LENGTH = 1000
"""Largest length of a world-relative name. Without a limit, a file of some megabytes could exhaust the memory."""

OLDEST_VERSION, NEWEST_VERSION = 4, 12
"""Supported SDF versions 1.y."""
