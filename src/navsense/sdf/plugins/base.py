"""Plug-ins of a model that are sensors: their parsers and topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.names import normalize_topic
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.namespace import find_declared_namespace, join_topic
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.world import MountedSensor

DEFAULT_RATE = 30.0
"""Hz, the default of plug-ins of the UUV Simulator."""


class PluginSensor(NamedTuple):
    """A sensor in a plug-in: specification, suffix of its frame after the link's name, initial switch."""

    spec: Sensor
    frame_suffix: str = ""
    is_on: bool = True


class PluginParser(NamedTuple):
    """The schema of a plug-in, the type of its sensor, and its parser.

    `parse` gets the other sensors of the model. It returns None if the plug-in has problems, which are already
    reported.
    """

    schema: ElementSchema
    sensor_type: str
    parse: Callable[[Context, Element, SensorContext, Sequence[MountedSensor]], PluginSensor | None]


def parse_topic(element: Element, tag: str) -> str:
    """Return the topic of a child in the namespace of the plug-in; "" without one."""
    topic = join_topic(find_declared_namespace(element), element.get_text(tag).rstrip("/"))
    return (normalize_topic(topic) or "") if topic else ""
