"""Conversion of readings to ROS 2 and Gazebo messages, by sensor type.

The module of each sensor type declares its messages as `MESSAGES`, see `sensor_messages.SensorMessages`. The functions
of this module call them. A type without a module gets the message of `generic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

from navsense.core.pose import Pose
from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, Times
from navsense.messages import generic
from navsense.messages.base import SeriesKind
from navsense.messages.cdr import EncoderMaker, MessageEncoder, MessageRows
from navsense.messages.markers import MARKERS_SUFFIX
from navsense.messages.sensor_messages import SensorMessages
from navsense.sensors import SENSORS
from navsense.sensors.base import OpaqueSensor, Sensor
from navsense.world import MountedSensor

SENSOR_MESSAGES: Mapping[str, SensorMessages] = {
    sensor.type: import_module(f"{__name__}.{sensor.type}").MESSAGES
    for sensor in SENSORS
    if find_spec(f"{__name__}.{sensor.type}")
}
"""Sensor type -> `MESSAGES` of the module of that name, which is imported by its name; for the types with a module."""


def get_messages(sensor_type: str) -> SensorMessages:
    """Return the messages of a sensor type, those of `generic` for an unknown one."""
    return SENSOR_MESSAGES.get(sensor_type, generic.MESSAGES)


def make_encoder(sensor: MountedSensor, series_kind: SeriesKind = "measured", companion: str = "") -> MessageEncoder:
    """Return the encoder of a message of a series: of the main message, or of the companion with a topic suffix.

    Raises `RecordingError` for a specification of another sensor type.
    """
    if companion:
        return list_companions(sensor, series_kind)[companion](sensor, series_kind)
    if isinstance(sensor.spec, OpaqueSensor) and sensor.spec.type in SENSOR_MESSAGES:
        # The message of the type needs its specification. The message of `generic` does not.
        spec = replace(sensor.spec, type=f"{sensor.spec.type}_arrays")
        return generic.make_encoder(replace(sensor, spec=spec), series_kind)
    return get_messages(sensor.spec.type).make_encoder(sensor, series_kind)


def list_companions(sensor: MountedSensor, series_kind: SeriesKind = "measured") -> Mapping[str, EncoderMaker]:
    """Return the companions of a sensor by topic suffix: further messages of the same sample, such as `_velocity`.

    Raises `RecordingError` for a specification of another sensor type.
    """
    if isinstance(sensor.spec, OpaqueSensor):
        return {}
    sensor_messages = get_messages(sensor.spec.type)
    companions = sensor_messages.list_companions(sensor, series_kind)
    make_markers = sensor_messages.make_marker_encoder
    if make_markers is None or not sensor.visualize or series_kind != "measured":
        return companions
    return {**companions, MARKERS_SUFFIX: lambda marked, _: make_markers(marked)}


def list_message_suffixes(sensor: MountedSensor, series_kind: SeriesKind = "measured") -> tuple[str, ...]:
    """Return the suffixes of all messages of a series: "" for the main message, then the companions."""
    return ("", *list_companions(sensor, series_kind))


def format_companion_topic(topic: str, companion: str) -> str:
    """Return the topic of a companion: the topic with the suffix. `//a/b` is the topic `/a/b` for any sensor."""
    return companion[1:] if companion.startswith("//") else topic + companion


def time_of_validity(reading: Reading) -> Times | None:
    """Return the times of validity (n,) s of a reading's messages; None if they are the times of the reading."""
    function = get_messages(reading.type).time_of_validity
    return None if function is None else function(reading)


def has_time_of_validity(sensor_type: str) -> bool:
    """Return True if the messages of a sensor type have their own times of validity."""
    return get_messages(sensor_type).time_of_validity is not None


def extract_arrays(
    sensor: MountedSensor, rows: MessageRows, series_kind: SeriesKind, companion: str = "", *, is_generic: bool = False
) -> dict[str, AnyArray]:
    """Return the arrays in messages, which are rows of numbers by path (`cdr.CdrLayout`).

    For a sensor without a specification, `is_generic` is true for the message of `generic`. Raises `RecordingError` for
    a specification of another sensor type.
    """
    if companion == MARKERS_SUFFIX:
        return {}
    sensor_messages = get_messages(sensor.spec.type)
    if isinstance(sensor.spec, OpaqueSensor) and is_generic:
        arrays = generic.extract_arrays(sensor, rows, series_kind, companion)
        names = sensor_messages.series_arrays.get(series_kind, tuple(arrays))
        return {name: array for name, array in arrays.items() if name in names}
    return sensor_messages.extract_arrays(sensor, rows, series_kind, companion)


def list_frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frames in a sensor's messages that differ from its own, with their pose in it."""
    return {} if isinstance(sensor.spec, OpaqueSensor) else get_messages(sensor.spec.type).list_frames(sensor)


def list_world_frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frames fixed in the world that the description of a sensor names, with their pose in the world."""
    return {} if isinstance(sensor.spec, OpaqueSensor) else get_messages(sensor.spec.type).list_world_frames(sensor)


def has_gazebo_classic(spec: Sensor) -> bool:
    """Return True if Gazebo Classic has a message for a sensor."""
    return bool(get_messages(spec.type).gazebo_classic_type) and not isinstance(spec, OpaqueSensor)


def has_gazebo_11(spec: Sensor) -> bool:
    """Return True if Gazebo 11 has a message for a sensor."""
    return bool(get_messages(spec.type).gazebo_11_type) and not isinstance(spec, OpaqueSensor)


def has_gz(spec: Sensor) -> bool:
    """Return True if Gazebo has a message for a sensor."""
    return bool(get_messages(spec.type).gz_type) and not isinstance(spec, OpaqueSensor)
