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

_FILES = {kind.type: import_module(f"navsense.messages.{kind.type}") for kind in SENSORS}

ENCODERS: Mapping[str, Callable[[MountedSensor, Part], Message]] = {
    kind: module.message for kind, module in _FILES.items()
}
"""Sensor type -> `message` of the file named after it; a type that is not here is written by `generic`."""

COMPANIONS: Mapping[str, Mapping[str, Callable[[MountedSensor, Part], Message]]] = {
    kind: module.COMPANIONS for kind, module in _FILES.items() if "COMPANIONS" in vars(module)
}
"""Sensor type -> `COMPANIONS` of the file named after it: messages beside the one of its own topic."""

GZ_ENCODERS: Mapping[str, Callable[[MountedSensor, Reading, int], list[bytes]]] = {
    kind: module.gz_messages for kind, module in _FILES.items()
}
"""Sensor type -> `gz_messages` of the file named after it: a reading as Gazebo's messages, numbered."""


def for_sensor(sensor: MountedSensor, part: Part = "reading", beside: str = "") -> Message:
    """Return how one of a sensor's series becomes messages; `beside` names a companion.

    Raise `SinkError` for a sheet of a wrong kind.
    """
    if beside:
        return COMPANIONS[sensor.spec.type][beside](sensor, part)
    return ENCODERS.get(sensor.spec.type, generic.message)(sensor, part)


def topics_beside(sensor: MountedSensor) -> tuple[str, ...]:
    """Return what is put behind a sensor's topic for each message that it has: nothing for its own, then companions."""
    return ("", *COMPANIONS.get(sensor.spec.type, ()))
