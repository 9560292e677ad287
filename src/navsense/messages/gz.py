"""The protobuf encoding of Gazebo's messages: `gz.msgs`, and `gazebo.msgs` of Gazebo Classic, and their descriptors.

In `gz.msgs` (proto3) fields that are zero are omitted; in `gazebo.msgs` (proto2, required) every field is written.

`encode_descriptor_set` returns a `google.protobuf.FileDescriptorSet` with one file, `gz.msgs` or `gazebo.msgs`: the
`protobuf` schema of MCAP. `gz.msgs` lacks fields of gz-msgs that navsense never writes. `gazebo.msgs` has the messages
of Gazebo's design documents for the magnetometer and the altimeter. Gazebo 11 has the same altimeter. Its magnetometer
has no `entity_name`, and `field_tesla` has the number 2. Sources: the files of gz-msgs (`imu.proto`,
`magnetometer.proto`, `altimeter.proto`, `fluid_pressure.proto`, `navsat.proto`, `laserscan.proto`,
`camera_info.proto`, `header.proto`), and for the DVL those of gz-sensors, whose numbers in `DVLTrackingTarget` differ
and apply.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.readings import Reading
from navsense.messages.base import MAX_STAMP_SECONDS, MIN_STAMP_SECONDS, NANOSECONDS_PER_SECOND, make_stamp_error

VARINT, FIXED64, LENGTH_DELIMITED = 0, 1, 2
"""Protobuf wire types."""

ONE_BYTE_VARINTS = tuple(bytes((value,)) for value in range(0x80))
"""Varints of one byte: nearly all tags and lengths."""


def encode_varint(value: int) -> bytes:
    """Return an integer with seven bits per byte; negative integers in 64-bit two's complement."""
    if 0 <= value <= 0x7F:
        return ONE_BYTE_VARINTS[value]
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_nested(number: int, body: bytes) -> bytes:
    """Return a field with a message, a string or packed numbers."""
    return encode_varint(number << 3 | LENGTH_DELIMITED) + encode_varint(len(body)) + body


def encode_int(number: int, value: int, required: bool = False) -> bytes:
    """Return an integer field. A zero is omitted unless it is required."""
    return encode_varint(number << 3 | VARINT) + encode_varint(value) if value or required else b""


def encode_double(number: int, value: float, required: bool = False) -> bytes:
    """Return a double field. A positive zero is omitted unless it is required."""
    raw = struct.pack("<d", value)
    return encode_varint(number << 3 | FIXED64) + raw if required or any(raw) else b""


def encode_doubles(first: int, values: Sequence[float], required: bool = False) -> bytes:
    """Return double fields numbered from `first`."""
    return b"".join(encode_double(first + i, value, required) for i, value in enumerate(values))


def encode_packed(number: int, values: Sequence[float]) -> bytes:
    """Return a packed field of doubles."""
    return encode_nested(number, struct.pack(f"<{len(values)}d", *values))


def encode_header(stamp: int, frame: str | None, sequence: int) -> bytes:
    """Return `gz.msgs.Header` of a stamp (ns), with `frame_id` and `seq` as data, as Gazebo writes them.

    `frame` is None for messages that have a field for it.
    """
    seconds, nanoseconds = divmod(stamp, NANOSECONDS_PER_SECOND)
    time = encode_int(1, seconds) + encode_int(2, nanoseconds)
    data = b"".join(
        encode_nested(2, encode_nested(1, key.encode()) + encode_nested(2, value.encode()))
        for key, value in (("frame_id", frame), ("seq", str(sequence)))
        if value is not None
    )
    return encode_nested(1, time) + data


def encode_gazebo_classic_time(stamp: int, entity: str) -> bytes:
    """Return `gazebo.msgs.Time` of a stamp (ns).

    Raises `RecordingError` with the name of the entity if the seconds do not fit into 32 bits.
    """
    seconds, nanoseconds = divmod(stamp, NANOSECONDS_PER_SECOND)
    if not MIN_STAMP_SECONDS <= seconds <= MAX_STAMP_SECONDS:
        raise make_stamp_error(f"of {entity}", seconds)
    return encode_int(1, seconds, required=True) + encode_int(2, nanoseconds, required=True)


def encode_float_v(values: Sequence[float]) -> bytes:
    """Return `gz.msgs.Float_V`: packed single-precision numbers."""
    return encode_nested(2, struct.pack(f"<{len(values)}f", *values))


def list_emitted_rows(reading: Reading) -> list[int]:
    """Return the emitted rows, which become messages. Raises `RecordingError` for readings of several runs."""
    if reading.clock_error.ndim != 1:
        raise RecordingError(f"readings of {reading.name!r} have a run axis", remedy="encode one run at a time")
    return [int(row) for row in np.flatnonzero(reading.emitted)]


PACKAGE, CLASSIC_PACKAGE = "gz.msgs", "gazebo.msgs"
"""Packages of Gazebo and of Gazebo Classic."""

CLASSIC_MESSAGES: Mapping[str, str] = {
    "Time": "required int32 sec = 1\nrequired int32 nsec = 2",
    "Vector3d": "required double x = 1\nrequired double y = 2\nrequired double z = 3",
    "Magnetometer": "required Time time = 1\nrequired string entity_name = 2\nrequired Vector3d field_tesla = 3",
    "Altimeter": (
        "required Time time = 1\nrequired double vertical_position = 2\nrequired double vertical_velocity = 3\n"
        "required double vertical_reference = 4"
    ),
}
"""Message of Gazebo Classic -> one `label type name = number` per line, as `MESSAGES`."""

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
    "CameraInfo": (
        "Header header = 1\nuint32 width = 2\nuint32 height = 3\nCameraInfo.Distortion distortion = 4\n"
        "CameraInfo.Intrinsics intrinsics = 5\nCameraInfo.Projection projection = 6\n"
        "repeated double rectification_matrix = 7"
    ),
    "CameraInfo.Distortion": "CameraInfo.Distortion.DistortionModelType model = 1\nrepeated double k = 2",
    "CameraInfo.Intrinsics": "repeated double k = 1",
    "CameraInfo.Projection": "repeated double p = 1",
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
"""Message -> one `type name = number` per line. The name of a nested message has a dot."""

ENUMS: Mapping[str, str] = {
    "CameraInfo.Distortion.DistortionModelType": "PLUMB_BOB RATIONAL_POLYNOMIAL EQUIDISTANT",
    "DVLKinematicEstimate.ReferenceType": "DVL_REFERENCE_UNSPECIFIED DVL_REFERENCE_EARTH DVL_REFERENCE_SHIP",
    "DVLTrackingTarget.TargetType": "DVL_TARGET_UNSPECIFIED DVL_TARGET_BOTTOM DVL_TARGET_WATER_MASS",
    "DVLVelocityTracking.DVLType": "DVL_TYPE_UNSPECIFIED DVL_TYPE_PISTON DVL_TYPE_PHASED_ARRAY",
}
"""Enumeration in a message -> its names, numbered from 0."""

FIELD_TYPES: Mapping[str, int] = {
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
"""`FieldDescriptorProto.Type` of messages and enumerations."""

LABELS: Mapping[str, int] = {"optional": 1, "required": 2, "repeated": 3}
"""Label of a field -> `FieldDescriptorProto.Label`."""


def _encode_name(name: str) -> bytes:
    """Return the name of a descriptor, its first field, without the name of the parent."""
    return encode_nested(1, name.rpartition(".")[2].encode())


def _encode_field(line: str, package: str) -> bytes:
    """Return `FieldDescriptorProto` of a line of `MESSAGES`."""
    declaration, _, number = line.partition(" = ")
    *labels, kind, name = declaration.split()
    (label,) = labels or ["optional"]
    out = _encode_name(name) + encode_int(3, int(number)) + encode_int(4, LABELS[label])
    if kind in FIELD_TYPES:
        return out + encode_int(5, FIELD_TYPES[kind])
    return out + encode_int(5, ENUM if kind in ENUMS else MESSAGE) + encode_nested(6, f".{package}.{kind}".encode())


def _encode_enum(name: str) -> bytes:
    """Return `EnumDescriptorProto`."""
    values = enumerate(ENUMS[name].split())
    return _encode_name(name) + b"".join(
        encode_nested(2, _encode_name(value) + encode_int(2, i)) for i, value in values
    )


def _encode_message(name: str, package: str) -> bytes:
    """Return `DescriptorProto` of a message with its nested messages and enumerations."""
    messages = PACKAGE_MESSAGES[package]
    fields = (encode_nested(2, _encode_field(line, package)) for line in messages[name].splitlines())
    inner_messages = (inner for inner in messages if inner.rpartition(".")[0] == name)
    out = _encode_name(name) + b"".join(fields)
    out += b"".join(encode_nested(3, _encode_message(inner, package)) for inner in inner_messages)
    return out + b"".join(encode_nested(4, _encode_enum(inner)) for inner in ENUMS if inner.rpartition(".")[0] == name)


PACKAGE_MESSAGES: Mapping[str, Mapping[str, str]] = {PACKAGE: MESSAGES, CLASSIC_PACKAGE: CLASSIC_MESSAGES}
"""Package -> its messages."""


@cache
def encode_descriptor_set(package: str = PACKAGE) -> bytes:
    """Return the `FileDescriptorSet` of all messages of a package."""
    path, syntax = f"{package.replace('.', '/')}/navsense.proto", "proto3" if package == PACKAGE else "proto2"
    file = encode_nested(1, path.encode()) + encode_nested(2, package.encode())
    names = (name for name in PACKAGE_MESSAGES[package] if "." not in name)
    file += b"".join(encode_nested(4, _encode_message(name, package)) for name in names)
    return encode_nested(1, file + encode_nested(12, syntax.encode()))
