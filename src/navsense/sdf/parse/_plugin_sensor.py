"""A plug-in of a model that is a sensor: the link that it is on, its topic, and what its file is read by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from navsense.core.errors import SdfError
from navsense.sdf import values
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.names import normalize_topic
from navsense.sdf.parse._mount import Mount
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.world import MountedSensor

DEFAULT_RATE = 30.0
"""Hz, where a plug-in of the UUV Simulator gives none."""


class PluginPlacement(NamedTuple):
    """What a plug-in says of where its sensor is: the name of its link, and its topic (empty for none)."""

    link: str
    topic: str


class PluginSensor(NamedTuple):
    """What a plug-in describes: data sheet, what its frame has behind the link's name, whether it starts on."""

    spec: Sensor
    frame_suffix: str = ""
    is_on: bool = True


class PluginParser(NamedTuple):
    """What may stand in a plug-in, the type of its sensor, and what reads it.

    `fill` is given the other sensors of the model, and returns None where the plug-in is none.
    """

    schema: ElementSchema
    sensor_type: str
    parse: Callable[[Context, Element, Mount, Sequence[MountedSensor]], PluginSensor | None]


def parse_placement(context: Context, element: Element, schema: ElementSchema) -> PluginPlacement:
    """Return where the sensor of a plug-in is. Raise `SdfError` where it names no link."""
    context.check(element, schema)
    link = element.find("link_name")
    if link is None:
        raise SdfError("<plugin><link_name>", "missing", where=element.where, allowed="must be given")
    return PluginPlacement(values.parse_text(link, parent=element.tag), parse_topic(element, "sensor_topic"))


def parse_topic(element: Element, tag: str) -> str:
    """Return the topic of a child in the plug-in's namespace, empty where there is none."""
    names = (element.find(name) for name in ("robot_namespace", tag))
    topic = "/".join(child.text.strip("/") for child in names if child is not None and child.text)
    return (normalize_topic(topic) or "") if topic else ""
