"""The wire of Gazebo Classic: frames on a TCP connection, and protobuf messages of the package `gazebo.msgs`.

A frame is its size as eight hexadecimal digits, then the bytes. The frames of the master, and the first frame to a
publisher, are packets:

    Packet      stamp = 1, type = 2, serialized_data = 3
    Publish     topic = 1, msg_type = 2, host = 3, port = 4
    Subscribe   topic = 1, host = 2, port = 3, msg_type = 4

All other frames of a publisher are the messages of its topic. Sources: `Connection.cc` and the `.proto` files of Gazebo
11, whose descriptors are in `libgazebo_msgs.so.11`.
"""

from __future__ import annotations

import math
import struct
import time
from typing import NamedTuple

from navsense.core.pose import Pose, ensure_unit
from navsense.core.typing import Quaternion, Vector
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.messages.gz import FIXED64, LENGTH_DELIMITED, VARINT, encode_int, encode_nested
from navsense.recordings.gazebo_poses import Value, iterate_fields, read_varint

HEADER_BYTES = 8
"""Size of the length of a frame."""

MAX_FRAME_BYTES = 16 << 20
"""Largest frame that is accepted: the list of 100,000 publishers is smaller."""

PACKAGE = "gazebo.msgs"
"""Package of the messages."""


class TopicEndpoint(NamedTuple):
    """A topic, its message type, and the address of one of its publishers or subscribers."""

    topic: str
    type: str
    host: str
    port: int


class LinkData(NamedTuple):
    """`gazebo.msgs.LinkData`: stamp (ns), velocity (m/s) and angular velocity (rad/s) of the link in the world.

    A velocity is None if the message does not have it.
    """

    stamp: int
    velocity: Vector | None
    angular_velocity: Vector | None


def format_frame(data: bytes) -> bytes:
    """Return a frame."""
    return b"%08x" % len(data) + data


class FrameReader:
    """Splits the bytes of a connection into frames."""

    def __init__(self) -> None:
        """Start before the first frame."""
        self._data = bytearray()

    @property
    def is_partial(self) -> bool:
        """True after a part of a frame."""
        return bool(self._data)

    def add(self, data: bytes) -> list[bytes]:
        """Return the frames that `data` completes. Raises `ValueError` for an invalid size of a frame."""
        received = self._data
        received += data
        frames, start = [], 0
        while len(received) - start >= HEADER_BYTES:
            header = bytes(received[start : start + HEADER_BYTES])
            try:
                size = int(header.decode("ascii").strip(), 16)
            except ValueError:
                raise ValueError(f"{header!r} instead of the size of a frame") from None
            if not 0 <= size <= MAX_FRAME_BYTES:
                raise ValueError(f"a frame of {size} bytes")
            end = start + HEADER_BYTES + size
            if len(received) < end:
                break
            frames.append(bytes(received[start + HEADER_BYTES : end]))
            start = end
        del received[:start]
        return frames


def encode_packet(kind: str, body: bytes) -> bytes:
    """Return a packet in a frame, stamped with the time of the system."""
    seconds, nanoseconds = divmod(time.time_ns(), NANOSECONDS_PER_SECOND)
    stamp = encode_int(1, seconds, required=True) + encode_int(2, nanoseconds, required=True)
    return format_frame(encode_nested(1, stamp) + encode_nested(2, kind.encode()) + encode_nested(3, body))


def decode_packet(data: bytes) -> tuple[str, bytes]:
    """Return the type and the content of a packet. Raises `ValueError`."""
    fields = dict(iterate_fields(data))
    kind, body = fields.get(_NESTED[2]), fields.get(_NESTED[3])
    if not isinstance(kind, bytes) or not isinstance(body, bytes):
        raise ValueError("a packet without a type or content")  # noqa: TRY004
    return _decode_text(kind), body


def encode_publish(endpoint: TopicEndpoint) -> bytes:
    """Return `gazebo.msgs.Publish`."""
    texts = (endpoint.topic, endpoint.type, endpoint.host)
    body = b"".join(encode_nested(number, text.encode()) for number, text in enumerate(texts, 1))
    return body + encode_int(4, endpoint.port, required=True)


def decode_publish(data: bytes) -> TopicEndpoint:
    """Return the endpoint in `gazebo.msgs.Publish`. Raises `ValueError`."""
    fields = dict(iterate_fields(data))
    return _make_endpoint(*(fields.get(tag) for tag in (*_NESTED[1:4], 4 << 3 | VARINT)))


def encode_subscribe(endpoint: TopicEndpoint) -> bytes:
    """Return `gazebo.msgs.Subscribe`."""
    body = encode_nested(1, endpoint.topic.encode()) + encode_nested(2, endpoint.host.encode())
    return body + encode_int(3, endpoint.port, required=True) + encode_nested(4, endpoint.type.encode())


def decode_subscribe(data: bytes) -> TopicEndpoint:
    """Return the endpoint in `gazebo.msgs.Subscribe`. Raises `ValueError`."""
    fields = dict(iterate_fields(data))
    topic, host, port, kind = (fields.get(tag) for tag in (_NESTED[1], _NESTED[2], 3 << 3 | VARINT, _NESTED[4]))
    return _make_endpoint(topic, kind, host, port)


def _make_endpoint(topic: Value | None, kind: Value | None, host: Value | None, port: Value | None) -> TopicEndpoint:
    if not (isinstance(topic, bytes) and isinstance(kind, bytes) and isinstance(host, bytes) and isinstance(port, int)):
        raise ValueError("an endpoint without topic, type, host or port")  # noqa: TRY004
    return TopicEndpoint(_decode_text(topic), _decode_text(kind), _decode_text(host), port)


def decode_texts(data: bytes) -> list[str]:
    """Return the texts in `gazebo.msgs.GzString` or `GzString_V`. Raises `ValueError`."""
    return [_decode_text(value) for value in decode_nested_list(data, 1)]


def decode_nested_list(data: bytes, number: int) -> list[bytes]:
    """Return the values of a repeated field with messages or texts. Raises `ValueError`."""
    return [value for tag, value in iterate_fields(data) if tag == _NESTED[number] and isinstance(value, bytes)]


_NESTED = tuple(number << 3 | LENGTH_DELIMITED for number in range(6))
"""Tags of the fields with messages and texts, by number."""

_XYZ = tuple(number << 3 | FIXED64 for number in (1, 2, 3))
_OLD_XYZ = tuple(number << 3 | FIXED64 for number in (2, 3, 4))
_XYZW = tuple(number << 3 | FIXED64 for number in (2, 3, 4, 5))
"""Tags of the coordinates of `Vector3d`, in old versions of Gazebo too, and of `Quaternion`."""

_VECTOR, _QUATERNION = struct.Struct("<BdBdBd"), struct.Struct("<BdBdBdBd")
"""Both messages as Gazebo writes them: all fields, in order."""

_VELOCITIES = struct.Struct("<BBBdBdBdBBBdBdBd")
_VELOCITY_TAGS = (_NESTED[3], _VECTOR.size, *_XYZ, _NESTED[4], _VECTOR.size, *_XYZ)
"""The end of `LinkData` as Gazebo writes it: both velocities."""


def _decode_text(data: bytes) -> str:
    return data.decode(errors="replace")


def _decode_stamp(data: bytes) -> int:
    """Return `gazebo.msgs.Time` in ns. Raises `ValueError`."""
    if data[:1] != b"\x08":
        raise ValueError("a time without seconds")
    seconds, position = read_varint(data, 1)
    if data[position : position + 1] != b"\x10":
        raise ValueError("a time without nanoseconds")
    nanoseconds, _ = read_varint(data, position + 1)
    seconds, nanoseconds = (value - (1 << 64) if value >> 63 else value for value in (seconds, nanoseconds))
    if not (abs(seconds) < 1 << 31 and abs(nanoseconds) < 1 << 31):
        raise ValueError("a time of more than 32 bits")
    return seconds * NANOSECONDS_PER_SECOND + nanoseconds


def _decode_coordinates(data: bytes, tags: tuple[int, ...]) -> list[float]:
    """Return the doubles of a message, whatever their order. Raises `ValueError` for missing ones."""
    fields = dict(iterate_fields(data))
    values = [fields.get(tag) for tag in tags]
    if not all(isinstance(value, bytes) for value in values):
        raise ValueError("a vector or quaternion without all coordinates")
    return [struct.unpack("<d", value)[0] for value in values if isinstance(value, bytes)]


def _check_finite(what: str, values: tuple[float, ...]) -> None:
    # A sum is finite if all values are; large finite values may overflow, and are no position or velocity either.
    if not math.isfinite(sum(values)):
        raise ValueError(f"{what} {values} with an invalid number")


def _decode_vector(data: bytes, what: str) -> Vector:
    """Return `gazebo.msgs.Vector3d`. Raises `ValueError` for invalid numbers."""
    values: Vector
    if len(data) == _VECTOR.size and (data[0], data[9], data[18]) == _XYZ:
        _, x, _, y, _, z = _VECTOR.unpack(data)
    else:
        is_old = not any(tag == _XYZ[0] for tag, _ in iterate_fields(data))
        x, y, z = _decode_coordinates(data, _OLD_XYZ if is_old else _XYZ)
    values = (x, y, z)
    _check_finite(what, values)
    return values


def _decode_quaternion(data: bytes) -> Quaternion:
    """Return `gazebo.msgs.Quaternion` as w x y z. Raises `ValueError` for invalid numbers and length 0."""
    values: Quaternion
    if len(data) == _QUATERNION.size and (data[0], data[9], data[18], data[27]) == _XYZW:
        _, x, _, y, _, z, _, w = _QUATERNION.unpack(data)
    else:
        x, y, z, w = _decode_coordinates(data, _XYZW)
    values = (w, x, y, z)
    _check_finite("orientation", values)
    if not any(values):
        raise ValueError("an orientation of length 0")
    return values


def decode_pose(data: bytes) -> Pose:
    """Return the pose in `gazebo.msgs.Pose`. Raises `ValueError`."""
    fields = dict(iterate_fields(data))
    position, rotation = fields.get(_NESTED[3]), fields.get(_NESTED[4])
    if not isinstance(position, bytes) or not isinstance(rotation, bytes):
        raise ValueError("a pose without position or orientation")  # noqa: TRY004
    return Pose(_decode_vector(position, "position"), ensure_unit(_decode_quaternion(rotation)))


def decode_link_data(data: bytes) -> LinkData:
    """Return a message of type `gazebo.msgs.LinkData`. Raises `ValueError`."""
    size = data[1] if len(data) > _VELOCITIES.size + 2 and data[0] == _NESTED[1] else 0
    if size:
        a, b, c, x, d, y, e, z, f, g, h, u, i, v, j, w = _VELOCITIES.unpack_from(data, len(data) - _VELOCITIES.size)
        if (a, b, c, d, e, f, g, h, i, j) == _VELOCITY_TAGS and math.isfinite(x + y + z + u + v + w):
            return LinkData(_decode_stamp(data[2 : 2 + size]), (x, y, z), (u, v, w))
    stamp = velocity = angular = None
    for tag, value in iterate_fields(data):
        if not isinstance(value, bytes):
            continue
        if tag == _NESTED[1]:
            stamp = _decode_stamp(value)
        elif tag == _NESTED[3]:
            velocity = _decode_vector(value, "velocity")
        elif tag == _NESTED[4]:
            angular = _decode_vector(value, "angular velocity")
    if stamp is None:
        raise ValueError("a message without a time")
    return LinkData(stamp, velocity, angular)


def decode_poses(data: bytes, names: frozenset[bytes]) -> tuple[int, dict[str, Pose], list[str]]:
    """Return the stamp (ns) of `gazebo.msgs.PosesStamped`, the poses of some entities, and the names of all entities.

    The first of several poses of one name counts. Raises `ValueError`.
    """
    stamp = None
    poses: dict[str, Pose] = {}
    all_names = []
    for tag, value in iterate_fields(data):
        if not isinstance(value, bytes):
            continue
        if tag == _NESTED[1]:
            stamp = _decode_stamp(value)
        elif tag == _NESTED[2]:
            name = next((field for key, field in iterate_fields(value) if key == _NESTED[1]), None)
            if not isinstance(name, bytes):
                continue
            text = _decode_text(name)
            all_names.append(text)
            if name in names and text not in poses:
                poses[text] = decode_pose(value)
    if stamp is None:
        raise ValueError("a message without a time")
    return stamp, poses, all_names
