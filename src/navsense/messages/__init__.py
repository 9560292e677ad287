"""Readings and truth as messages: pure functions, and one table from a sensor's type to its encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from navsense.messages import generic, imu, magnetometer
from navsense.messages.base import Part
from navsense.messages.cdr import Message
from navsense.world import MountedSensor

ENCODERS: Mapping[str, Callable[[MountedSensor, Part], Message]] = {
    "imu": imu.message,
    "magnetometer": magnetometer.message,
}
"""Sensor type -> what makes its messages; a type that is not here is written by `generic`."""


def for_sensor(sensor: MountedSensor, part: Part = "reading") -> Message:
    """Return how one of a sensor's series becomes messages. Raise `SinkError` for a sheet of a wrong kind."""
    return ENCODERS.get(sensor.spec.type, generic.message)(sensor, part)
