"""Conversion of readings to ROS 2 and Gazebo messages, by sensor type.

The module of each sensor type has `make_encoder`, `GZ_TYPE` and `encode_gz_messages`. It may have the other names in
the tables below. A type without a module gets the message of `generic`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from navsense.core.pose import Pose
from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, Times
from navsense.messages import generic
from navsense.messages.base import SeriesKind
from navsense.messages.cdr import EncoderMaker, MessageEncoder, MessageRows
from navsense.sensors import SENSORS
from navsense.sensors.base import OpaqueSensor, Sensor
from navsense.world import MountedSensor

_MODULES = {sensor.type: import_module(f"navsense.messages.{sensor.type}") for sensor in SENSORS}


def _collect(name: str) -> dict[str, Any]:
    """Return the objects with this name in the modules, by sensor type."""
    return {sensor_type: vars(module)[name] for sensor_type, module in _MODULES.items() if name in vars(module)}


ENCODER_MAKERS: Mapping[str, EncoderMaker] = _collect("make_encoder")
"""Sensor type -> function that returns the encoder of its main message."""

COMPANIONS: Mapping[str, Mapping[str, EncoderMaker]] = _collect("COMPANIONS")
"""Sensor type -> companion messages by suffix."""

COMPANION_LISTERS: Mapping[str, Callable[[MountedSensor, SeriesKind], Mapping[str, EncoderMaker]]] = _collect(
    "list_companions"
)
"""Sensor type -> function that returns the companion messages, if they depend on the specification or the series."""

TIME_OF_VALIDITY_READERS: Mapping[str, Callable[[Reading], Times]] = _collect("time_of_validity")
"""Sensor type -> function that returns the times of validity (n,) s of a reading."""

FRAME_LISTERS: Mapping[str, Callable[[MountedSensor], Mapping[str, Pose]]] = _collect("list_frames")
"""Sensor type -> function that returns the frames in its messages."""

ARRAY_EXTRACTORS: Mapping[str, Callable[[MountedSensor, AnyArray, SeriesKind, str], dict[str, AnyArray]]] = _collect(
    "extract_arrays"
)
"""Sensor type -> function that returns the arrays in its messages."""

SERIES_ARRAYS: Mapping[str, Mapping[SeriesKind, tuple[str, ...]]] = _collect("SERIES_ARRAYS")
"""Sensor type -> arrays of ideal values and of biases."""

GZ_ENCODERS: Mapping[str, Callable[[MountedSensor, Reading, int], list[bytes]]] = _collect("encode_gz_messages")
"""Sensor type -> function that returns Gazebo's messages of a reading, numbered from its last argument."""

GZ_TYPES: Mapping[str, str] = _collect("GZ_TYPE")
"""Sensor type -> full name of Gazebo's message."""


def make_encoder(sensor: MountedSensor, series_kind: SeriesKind = "measured", companion: str = "") -> MessageEncoder:
    """Return the encoder of the messages of a series; `companion` is the suffix of a companion message.

    Raises `RecordingError` for a specification of another sensor type.
    """
    if companion:
        return list_companions(sensor, series_kind)[companion](sensor, series_kind)
    if isinstance(sensor.spec, OpaqueSensor) and sensor.spec.type in ENCODER_MAKERS:
        # The message of the type needs its specification. The message of `generic` does not.
        spec = replace(sensor.spec, type=f"{sensor.spec.type}_arrays")
        return generic.make_encoder(replace(sensor, spec=spec), series_kind)
    return ENCODER_MAKERS.get(sensor.spec.type, generic.make_encoder)(sensor, series_kind)


def list_companions(sensor: MountedSensor, series_kind: SeriesKind = "measured") -> Mapping[str, EncoderMaker]:
    """Return the companion messages of a sensor by topic suffix.

    Raises `RecordingError` for a specification of another sensor type.
    """
    sensor_type = sensor.spec.type
    if isinstance(sensor.spec, OpaqueSensor):
        return {}
    if sensor_type in COMPANION_LISTERS:
        return COMPANION_LISTERS[sensor_type](sensor, series_kind)
    return COMPANIONS.get(sensor_type, {})


def list_message_suffixes(sensor: MountedSensor, series_kind: SeriesKind = "measured") -> tuple[str, ...]:
    """Return the suffixes of all messages of a series: "" for the main message, then the companions."""
    return ("", *list_companions(sensor, series_kind))


def format_companion_topic(topic: str, companion: str) -> str:
    """Return the topic of a companion: the topic with the suffix. `//a/b` is the topic `/a/b` for any sensor."""
    return companion[1:] if companion.startswith("//") else topic + companion


def time_of_validity(reading: Reading) -> Times | None:
    """Return the times of validity (n,) s of a reading's messages; None if they are the times of the reading."""
    return TIME_OF_VALIDITY_READERS[reading.type](reading) if reading.type in TIME_OF_VALIDITY_READERS else None


def extract_arrays(
    sensor: MountedSensor, rows: MessageRows, series_kind: SeriesKind, companion: str = "", *, is_generic: bool = False
) -> dict[str, AnyArray]:
    """Return the arrays in messages, which are rows of numbers by path (`cdr.CdrLayout`).

    For a sensor without a specification, `is_generic` is true for the message of `generic`. Raises `RecordingError` for
    a specification of another sensor type.
    """
    kind = sensor.spec.type
    if isinstance(sensor.spec, OpaqueSensor) and is_generic:
        arrays = generic.extract_arrays(sensor, rows, series_kind, companion)
        names = SERIES_ARRAYS.get(kind, {}).get(series_kind, tuple(arrays))
        return {name: array for name, array in arrays.items() if name in names}
    if kind in ENCODER_MAKERS and kind not in ARRAY_EXTRACTORS:
        return {}
    return ARRAY_EXTRACTORS.get(kind, generic.extract_arrays)(sensor, rows, series_kind, companion)


def list_frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frames in a sensor's messages that differ from its own, with their pose in it."""
    kind = sensor.spec.type
    return FRAME_LISTERS[kind](sensor) if kind in FRAME_LISTERS and not isinstance(sensor.spec, OpaqueSensor) else {}


def has_gz(spec: Sensor) -> bool:
    """Return True if Gazebo has a message for a sensor."""
    return spec.type in GZ_ENCODERS and not isinstance(spec, OpaqueSensor)
