"""The messages of each version of Gazebo transport.

    11       ignition.msgs of ign-msgs 8, an IMU without covariances, no message of a DVL
    12       gz.msgs of gz-msgs 9, the same IMU
    13, ...  gz.msgs as in the recording

An IMU without covariances has other field numbers: the angular velocity is 4 and the linear acceleration 5. Programs of
one version cannot read the other. Source: https://github.com/gazebosim/gz-msgs/issues/449, and `imu.proto` of ign-msgs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from navsense import messages
from navsense.core.readings import Reading
from navsense.messages.gz import LENGTH_DELIMITED, PACKAGE, encode_nested
from navsense.messages.sensor_messages import GazeboEncoder, SensorMessages
from navsense.recordings.gazebo import GZ, GazeboPackage
from navsense.recordings.gazebo_poses import iterate_fields
from navsense.sensors.base import Sensor
from navsense.world import MountedSensor

OLDEST_VERSION, NEWEST_VERSION = 11, 15
"""Versions that the stream supports."""

IGNITION_VERSION = 11
"""The version with the names of Ignition: `ignition.msgs` and `IGN_` instead of `gz.msgs` and `GZ_`."""

IMU_COVARIANCE_VERSION = 13
"""The first version with covariances in the message of an IMU."""

IGNITION_PACKAGE = "ignition.msgs"
"""Package of the message types of Ignition."""

IMU_TYPE, DVL_TYPE = f"{PACKAGE}.IMU", f"{PACKAGE}.DVLVelocityTracking"
"""Messages that differ between versions."""

IMU_NUMBERS: Mapping[int, int] = {1: 1, 2: 2, 3: 3, 5: 4, 7: 5}
"""Number of a field of an IMU -> its number in a message without covariances, which has no other fields."""


def remove_imu_covariances(data: bytes) -> bytes:
    """Return a message of an IMU as older versions have it. Every field is a message or a string."""
    return b"".join(
        encode_nested(IMU_NUMBERS[tag >> 3], value)
        for tag, value in iterate_fields(data)
        if tag >> 3 in IMU_NUMBERS and tag & 7 == LENGTH_DELIMITED and isinstance(value, bytes)
    )


def get_type_name(name: str, version: int) -> str:
    """Return the name of a message type of `gz.msgs` in a version of the library."""
    return name.replace(PACKAGE, IGNITION_PACKAGE, 1) if version <= IGNITION_VERSION else name


def split_type_name(name: str) -> tuple[str, str]:
    """Return the package and the name of a message type of any version; "" for another package.

    >>> split_type_name("ignition.msgs.Pose_V"), split_type_name("sim.Pose")
    (('ignition.msgs', 'Pose_V'), ('', ''))
    """
    package, _, kind = name.rpartition(".")
    return (package, kind) if package in (PACKAGE, IGNITION_PACKAGE) else ("", "" if package else kind)


def get_package(version: int) -> GazeboPackage:
    """Return the messages of a version of the library."""
    if version >= IMU_COVARIANCE_VERSION:
        return GZ

    def get_encoder(sensor_messages: SensorMessages) -> GazeboEncoder:
        encode = sensor_messages.encode_gz_messages
        if sensor_messages.gz_type != IMU_TYPE:
            return encode

        def encode_imu(sensor: MountedSensor, reading: Reading, first: int) -> list[bytes]:
            return [remove_imu_covariances(data) for data in encode(sensor, reading, first)]

        return encode_imu

    if version > IGNITION_VERSION:
        return replace(GZ, get_encoder=get_encoder)

    def has_message(spec: Sensor) -> bool:
        return messages.has_gz(spec) and messages.get_messages(spec.type).gz_type != DVL_TYPE

    def get_type(sensor_messages: SensorMessages) -> str:
        name = "" if sensor_messages.gz_type == DVL_TYPE else sensor_messages.gz_type
        return get_type_name(name, version)

    return GazeboPackage(IGNITION_PACKAGE, has_message, get_type, get_encoder)
