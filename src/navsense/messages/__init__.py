"""Readings and truth as messages: pure functions, and one table from a sensor's type to its encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from navsense.messages import generic
from navsense.messages.base import Part
from navsense.messages.cdr import Message
from navsense.sensors import SENSORS
from navsense.series import Reading
from navsense.world import MountedSensor

ENCODERS: Mapping[str, Callable[[MountedSensor, Part], Message]] = {
    kind.type: import_module(f"navsense.messages.{kind.type}").message for kind in SENSORS
}
"""Sensor type -> `message` of the file named after it; a type that is not here is written by `generic`."""

GZ_ENCODERS: Mapping[str, Callable[[MountedSensor, Reading, int], list[bytes]]] = {
    kind.type: import_module(f"navsense.messages.{kind.type}").gz_messages for kind in SENSORS
}
"""Sensor type -> `gz_messages` of the file named after it: a reading as Gazebo's messages, numbered."""


def for_sensor(sensor: MountedSensor, part: Part = "reading") -> Message:
    """Return how one of a sensor's series becomes messages. Raise `SinkError` for a sheet of a wrong kind."""
    return ENCODERS.get(sensor.spec.type, generic.message)(sensor, part)
