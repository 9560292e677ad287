"""Readings and truth as messages: pure functions, and one table from a sensor's type to its encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TypeAlias

from navsense.messages import generic
from navsense.messages.base import SeriesKind
from navsense.messages.cdr import MessageLayout
from navsense.pose import Pose
from navsense.sensors import SENSORS
from navsense.sensors.base import OpaqueSensor, Sensor
from navsense.series import Reading
from navsense.typing import AnyArray, Times
from navsense.world import MountedSensor

_MODULES = {kind.type: import_module(f"navsense.messages.{kind.type}") for kind in SENSORS}

LAYOUT_MAKERS: Mapping[str, Callable[[MountedSensor, SeriesKind], MessageLayout]] = {
    kind: module.make_layout for kind, module in _MODULES.items()
}
"""Sensor type -> `message` of the file named after it; a type that is not here is written by `generic`."""

LayoutMaker: TypeAlias = Callable[[MountedSensor, SeriesKind], MessageLayout]

COMPANIONS: Mapping[str, Mapping[str, LayoutMaker]] = {
    kind: module.COMPANIONS for kind, module in _MODULES.items() if "COMPANIONS" in vars(module)
}
"""Sensor type -> `COMPANIONS` of the file named after it: messages beside the one of its own topic."""

COMPANION_LISTERS: Mapping[str, Callable[[MountedSensor, SeriesKind], Mapping[str, LayoutMaker]]] = {
    kind: module.list_companions for kind, module in _MODULES.items() if "list_companions" in vars(module)
}
"""Sensor type -> `companions` of the file named after it: the same where they go by the sheet or the series."""

TIME_OF_VALIDITY_READERS: Mapping[str, Callable[[Reading], Times]] = {
    kind: module.time_of_validity for kind, module in _MODULES.items() if "time_of_validity" in vars(module)
}
"""Sensor type -> `about` of the file named after it: the instants that its readings are about."""

FRAME_LISTERS: Mapping[str, Callable[[MountedSensor], Mapping[str, Pose]]] = {
    kind: module.list_frames for kind, module in _MODULES.items() if "list_frames" in vars(module)
}
"""Sensor type -> `frames` of the file named after it: those that its messages name."""

ARRAY_EXTRACTORS: Mapping[str, Callable[[MountedSensor, AnyArray, SeriesKind, str], dict[str, AnyArray]]] = {
    kind: module.extract_arrays for kind, module in _MODULES.items() if "extract_arrays" in vars(module)
}
"""Sensor type -> `arrays` of the file named after it: what the numbers of its messages say."""

HIDDEN: Mapping[str, Mapping[SeriesKind, tuple[str, ...]]] = {
    kind: module.SERIES_ARRAYS for kind, module in _MODULES.items() if "SERIES_ARRAYS" in vars(module)
}
"""Sensor type -> `HIDDEN` of the file named after it: the arrays that truth and hidden errors have."""

GZ_ENCODERS: Mapping[str, Callable[[MountedSensor, Reading, int], list[bytes]]] = {
    kind: module.encode_gz_messages for kind, module in _MODULES.items()
}
"""Sensor type -> `encode_gz_messages` of the file named after it: a reading as Gazebo's messages, numbered."""

GZ_TYPES: Mapping[str, str] = {kind: module.GZ_TYPE for kind, module in _MODULES.items()}
"""Sensor type -> `GZ_TYPE` of the file named after it: the full name of these messages."""


def make_layout(sensor: MountedSensor, series_kind: SeriesKind = "reading", companion: str = "") -> MessageLayout:
    """Return how one of a sensor's series becomes messages; `beside` names a companion.

    Raise `RecordingError` for a sheet of a wrong kind.
    """
    if companion:
        return list_companions(sensor, series_kind)[companion](sensor, series_kind)
    if isinstance(sensor.spec, OpaqueSensor) and sensor.spec.type in LAYOUT_MAKERS:
        # Without a specification no message of the type can be filled in; one of all arrays can.
        return generic.make_layout(
            replace(sensor, spec=replace(sensor.spec, type=f"{sensor.spec.type}_arrays")), series_kind
        )
    return LAYOUT_MAKERS.get(sensor.spec.type, generic.make_layout)(sensor, series_kind)


def list_companions(sensor: MountedSensor, series_kind: SeriesKind = "reading") -> Mapping[str, LayoutMaker]:
    """Return the companion messages of a sensor by the suffix that `format_companion_topic` takes.

    Raise `RecordingError` for a sheet of a wrong kind.
    """
    kind = sensor.spec.type
    if isinstance(sensor.spec, OpaqueSensor):
        return {}
    return COMPANION_LISTERS[kind](sensor, series_kind) if kind in COMPANION_LISTERS else COMPANIONS.get(kind, {})


def list_companion_topics(sensor: MountedSensor, series_kind: SeriesKind = "reading") -> tuple[str, ...]:
    """Return a name for each message of one of a sensor's series: nothing for its own, then its companions'."""
    return ("", *list_companions(sensor, series_kind))


def format_companion_topic(topic: str, companion: str) -> str:
    """Return the topic of a companion: its name behind the sensor's own, or by itself where it begins with two slashes.

    Of those one is left: `//a/b` is `/a/b`, whatever the sensor's topic.
    """
    return companion[1:] if companion.startswith("//") else topic + companion


def time_of_validity(reading: Reading) -> Times | None:
    """Return the instants (n,) s that a reading's messages are about; None where those are its own times."""
    return TIME_OF_VALIDITY_READERS[reading.type](reading) if reading.type in TIME_OF_VALIDITY_READERS else None


def extract_arrays(
    sensor: MountedSensor, rows: AnyArray, series_kind: SeriesKind, companion: str = "", *, is_generic: bool = False
) -> dict[str, AnyArray]:
    """Return what messages say, as rows of numbers by path (`cdr.CdrLayout`); `beside` names a companion's.

    Of a sensor without a specification, `is_generic` says that the message is one of all arrays.
    Raise `RecordingError` for
    a sheet of a wrong kind.
    """
    kind = sensor.spec.type
    if isinstance(sensor.spec, OpaqueSensor) and is_generic:
        found = generic.extract_arrays(sensor, rows, series_kind, companion)
        kept = HIDDEN.get(kind, {}).get(series_kind, tuple(found))
        return {name: array for name, array in found.items() if name in kept}
    if kind in LAYOUT_MAKERS and kind not in ARRAY_EXTRACTORS:
        return {}
    return ARRAY_EXTRACTORS.get(kind, generic.extract_arrays)(sensor, rows, series_kind, companion)


def list_frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frames that a sensor's messages name and that are not as it is itself, posed in its own."""
    kind = sensor.spec.type
    return FRAME_LISTERS[kind](sensor) if kind in FRAME_LISTERS and not isinstance(sensor.spec, OpaqueSensor) else {}


def has_gz(spec: Sensor) -> bool:
    """Return whether Gazebo has a message of a sensor."""
    return spec.type in GZ_ENCODERS and not isinstance(spec, OpaqueSensor)
