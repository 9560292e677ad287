"""Readings and truth as messages: pure functions, and one table from a sensor's type to its encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TypeAlias

from navsense.messages import generic
from navsense.messages.base import Part
from navsense.messages.cdr import Message
from navsense.pose import Pose
from navsense.sensors import SENSORS
from navsense.sensors.base import OpaqueSensor, Sensor
from navsense.series import Reading
from navsense.typing import AnyArray, Times
from navsense.world import MountedSensor

_FILES = {kind.type: import_module(f"navsense.messages.{kind.type}") for kind in SENSORS}

ENCODERS: Mapping[str, Callable[[MountedSensor, Part], Message]] = {
    kind: module.message for kind, module in _FILES.items()
}
"""Sensor type -> `message` of the file named after it; a type that is not here is written by `generic`."""

Encoder: TypeAlias = Callable[[MountedSensor, Part], Message]

COMPANIONS: Mapping[str, Mapping[str, Encoder]] = {
    kind: module.COMPANIONS for kind, module in _FILES.items() if "COMPANIONS" in vars(module)
}
"""Sensor type -> `COMPANIONS` of the file named after it: messages beside the one of its own topic."""

CHOSEN: Mapping[str, Callable[[MountedSensor, Part], Mapping[str, Encoder]]] = {
    kind: module.companions for kind, module in _FILES.items() if "companions" in vars(module)
}
"""Sensor type -> `companions` of the file named after it: the same where they go by the sheet or the series."""

ABOUT: Mapping[str, Callable[[Reading], Times]] = {
    kind: module.about for kind, module in _FILES.items() if "about" in vars(module)
}
"""Sensor type -> `about` of the file named after it: the instants that its readings are about."""

FRAMES: Mapping[str, Callable[[MountedSensor], Mapping[str, Pose]]] = {
    kind: module.frames for kind, module in _FILES.items() if "frames" in vars(module)
}
"""Sensor type -> `frames` of the file named after it: those that its messages name."""

READERS: Mapping[str, Callable[[MountedSensor, AnyArray, Part, str], dict[str, AnyArray]]] = {
    kind: module.arrays for kind, module in _FILES.items() if "arrays" in vars(module)
}
"""Sensor type -> `arrays` of the file named after it: what the numbers of its messages say."""

HIDDEN: Mapping[str, Mapping[Part, tuple[str, ...]]] = {
    kind: module.HIDDEN for kind, module in _FILES.items() if "HIDDEN" in vars(module)
}
"""Sensor type -> `HIDDEN` of the file named after it: the arrays that truth and hidden errors have."""

GZ_ENCODERS: Mapping[str, Callable[[MountedSensor, Reading, int], list[bytes]]] = {
    kind: module.gz_messages for kind, module in _FILES.items()
}
"""Sensor type -> `gz_messages` of the file named after it: a reading as Gazebo's messages, numbered."""

GZ_TYPES: Mapping[str, str] = {kind: module.GZ_TYPE for kind, module in _FILES.items()}
"""Sensor type -> `GZ_TYPE` of the file named after it: the full name of these messages."""


def for_sensor(sensor: MountedSensor, part: Part = "reading", beside: str = "") -> Message:
    """Return how one of a sensor's series becomes messages; `beside` names a companion.

    Raise `SinkError` for a sheet of a wrong kind.
    """
    if beside:
        return companions(sensor, part)[beside](sensor, part)
    if isinstance(sensor.spec, OpaqueSensor) and sensor.spec.type in ENCODERS:
        # Without a specification no message of the type can be filled in; one of all arrays can.
        return generic.message(replace(sensor, spec=replace(sensor.spec, type=f"{sensor.spec.type}_arrays")), part)
    return ENCODERS.get(sensor.spec.type, generic.message)(sensor, part)


def companions(sensor: MountedSensor, part: Part = "reading") -> Mapping[str, Encoder]:
    """Return the messages beside the one of a sensor's own topic, by what `topic_beside` makes of their names.

    Raise `SinkError` for a sheet of a wrong kind.
    """
    kind = sensor.spec.type
    if isinstance(sensor.spec, OpaqueSensor):
        return {}
    return CHOSEN[kind](sensor, part) if kind in CHOSEN else COMPANIONS.get(kind, {})


def topics_beside(sensor: MountedSensor, part: Part = "reading") -> tuple[str, ...]:
    """Return a name for each message of one of a sensor's series: nothing for its own, then its companions'."""
    return ("", *companions(sensor, part))


def topic_beside(topic: str, beside: str) -> str:
    """Return the topic of a companion: its name behind the sensor's own, or by itself where it begins with two slashes.

    Of those one is left: `//a/b` is `/a/b`, whatever the sensor's topic.
    """
    return beside[1:] if beside.startswith("//") else topic + beside


def about(reading: Reading) -> Times | None:
    """Return the instants (n,) s that a reading's messages are about; None where those are its own times."""
    return ABOUT[reading.type](reading) if reading.type in ABOUT else None


def arrays_of(
    sensor: MountedSensor, rows: AnyArray, part: Part, beside: str = "", *, is_generic: bool = False
) -> dict[str, AnyArray]:
    """Return what messages say, as rows of numbers by path (`cdr.Layout`); `beside` names a companion's.

    Of a sensor without a specification, `is_generic` says that the message is one of all arrays. Raise `SinkError` for
    a sheet of a wrong kind.
    """
    kind = sensor.spec.type
    if isinstance(sensor.spec, OpaqueSensor) and is_generic:
        found = generic.arrays(sensor, rows, part, beside)
        kept = HIDDEN.get(kind, {}).get(part, tuple(found))
        return {name: array for name, array in found.items() if name in kept}
    if kind in ENCODERS and kind not in READERS:
        return {}
    return READERS.get(kind, generic.arrays)(sensor, rows, part, beside)


def frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frames that a sensor's messages name and that are not as it is itself, posed in its own."""
    kind = sensor.spec.type
    return FRAMES[kind](sensor) if kind in FRAMES and not isinstance(sensor.spec, OpaqueSensor) else {}


def has_gz(spec: Sensor) -> bool:
    """Return whether Gazebo has a message of a sensor."""
    return spec.type in GZ_ENCODERS and not isinstance(spec, OpaqueSensor)
