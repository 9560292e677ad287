"""The definitions of Gazebo's messages that navsense writes, as data, and what describes them to a protobuf reader.

`encode_descriptor_set` is a `google.protobuf.FileDescriptorSet` of one file, `gz.msgs`, with all of them: the schema
that MCAP
has for `protobuf`. Not every field of gz-msgs is here, nor is every one that is here ever written: readers take it for
its default. Sources: the files of gz-msgs, those of the DVL being in gz-sensors now; where they differ, in the numbers
of `DVLTrackingTarget`, the latter hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from navsense.messages.gz import encode_int, encode_nested

PACKAGE = "gz.msgs"

MESSAGES: Mapping[str, str] = {
    "Time": "int64 sec = 1\nint32 nsec = 2",
    "Header": "Time stamp = 1\nrepeated Header.Map data = 2",
    "Header.Map": "string key = 1\nrepeated string value = 2",
    "Vector3d": "Header header = 1\ndouble x = 2\ndouble y = 3\ndouble z = 4",
    "Quaternion": "Header header = 1\ndouble x = 2\ndouble y = 3\ndouble z = 4\ndouble w = 5",
    "Float_V": "Header header = 1\nrepeated float data = 2",
    "IMU": (
        "Header header = 1\nstring entity_name = 2\nQuaternion orientation = 3\nFloat_V orientation_covariance = 4\n"
        "Vector3d angular_velocity = 5\nFloat_V angular_velocity_covariance = 6\n"
        "Vector3d linear_acceleration = 7\nFloat_V linear_acceleration_covariance = 8"
    ),
    "Magnetometer": "Header header = 1\nVector3d field_tesla = 2",
    "Altimeter": (
        "Header header = 1\ndouble vertical_position = 2\ndouble vertical_velocity = 3\ndouble vertical_reference = 4"
    ),
    "FluidPressure": "Header header = 1\ndouble pressure = 2\ndouble variance = 3",
    "NavSat": (
        "Header header = 1\ndouble latitude_deg = 2\ndouble longitude_deg = 3\ndouble altitude = 4\n"
        "double velocity_east = 5\ndouble velocity_north = 6\ndouble velocity_up = 7\nstring frame_id = 8"
    ),
    "LaserScan": (
        "Header header = 1\nstring frame = 2\ndouble angle_min = 4\ndouble angle_max = 5\ndouble angle_step = 6\n"
        "double range_min = 7\ndouble range_max = 8\nuint32 count = 9\n"
        "double vertical_angle_min = 10\ndouble vertical_angle_max = 11\ndouble vertical_angle_step = 12\n"
        "uint32 vertical_count = 13\nrepeated double ranges = 14\nrepeated double intensities = 15"
    ),
    "DVLRangeEstimate": "double mean = 1\ndouble variance = 2",
    "DVLKinematicEstimate": (
        "DVLKinematicEstimate.ReferenceType reference = 1\nVector3d mean = 2\nrepeated double covariance = 3"
    ),
    "DVLTrackingTarget": (
        "DVLTrackingTarget.TargetType type = 1\nDVLRangeEstimate range = 2\nDVLKinematicEstimate position = 3"
    ),
    "DVLBeamState": (
        "int32 id = 1\nDVLKinematicEstimate velocity = 2\nDVLRangeEstimate range = 3\n"
        "double rssi = 4\ndouble nsd = 5\nbool locked = 6"
    ),
    "DVLVelocityTracking": (
        "Header header = 1\nDVLVelocityTracking.DVLType type = 2\nDVLTrackingTarget target = 3\n"
        "DVLKinematicEstimate velocity = 4\nrepeated DVLBeamState beams = 5\nint32 status = 6"
    ),
}
"""Message -> one `type name = number` a line; a dot is in the name of a message inside another."""

ENUMS: Mapping[str, str] = {
    "DVLKinematicEstimate.ReferenceType": "DVL_REFERENCE_UNSPECIFIED DVL_REFERENCE_EARTH DVL_REFERENCE_SHIP",
    "DVLTrackingTarget.TargetType": "DVL_TARGET_UNSPECIFIED DVL_TARGET_BOTTOM DVL_TARGET_WATER_MASS",
    "DVLVelocityTracking.DVLType": "DVL_TYPE_UNSPECIFIED DVL_TYPE_PISTON DVL_TYPE_PHASED_ARRAY",
}
"""Enumeration inside a message -> its names, numbered from 0."""

PRIMITIVES: Mapping[str, int] = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "int32": 5,
    "bool": 8,
    "string": 9,
    "uint32": 13,
}
"""Type -> `FieldDescriptorProto.Type`."""

MESSAGE, ENUM = 11, 14
"""`FieldDescriptorProto.Type` of a message and of an enumeration."""

OPTIONAL, REPEATED = 1, 3
"""`FieldDescriptorProto.Label`."""


def _encode_name(name: str) -> bytes:
    """Return the first field of every descriptor, the last part of its name."""
    return encode_nested(1, name.rpartition(".")[2].encode())


def _encode_field(line: str) -> bytes:
    """Return `FieldDescriptorProto` of one line."""
    left, _, number = line.partition(" = ")
    *label, kind, name = left.split()
    out = _encode_name(name) + encode_int(3, int(number)) + encode_int(4, REPEATED if label else OPTIONAL)
    if kind in PRIMITIVES:
        return out + encode_int(5, PRIMITIVES[kind])
    return out + encode_int(5, ENUM if kind in ENUMS else MESSAGE) + encode_nested(6, f".{PACKAGE}.{kind}".encode())


def _encode_enum(name: str) -> bytes:
    """Return `EnumDescriptorProto` of one enumeration."""
    values = enumerate(ENUMS[name].split())
    return _encode_name(name) + b"".join(
        encode_nested(2, _encode_name(value) + encode_int(2, i)) for i, value in values
    )


def _encode_message(name: str) -> bytes:
    """Return `DescriptorProto` of one message with all that is inside it."""
    out = _encode_name(name) + b"".join(encode_nested(2, _encode_field(line)) for line in MESSAGES[name].splitlines())
    out += b"".join(encode_nested(3, _encode_message(inner)) for inner in MESSAGES if inner.rpartition(".")[0] == name)
    return out + b"".join(encode_nested(4, _encode_enum(inner)) for inner in ENUMS if inner.rpartition(".")[0] == name)


@cache
def encode_descriptor_set() -> bytes:
    """Return the `FileDescriptorSet` of all messages."""
    file = encode_nested(1, b"gz/msgs/navsense.proto") + encode_nested(2, PACKAGE.encode())
    file += b"".join(encode_nested(4, _encode_message(name)) for name in MESSAGES if "." not in name)
    return encode_nested(1, file + encode_nested(12, b"proto3"))
