"""Poses in Gazebo's protobuf messages, read by the definitions in the recording.

    Pose_V                   poses of entities by name: `/world/WORLD/pose/info`, `/model/MODEL/pose`
    Pose                     a pose with the name of its entity
    Odometry                 a pose with the name of its frame, `child_frame_id`, in the header
    OdometryWithCovariance   the same

The packages are `gz.msgs` and `ignition.msgs`. Sources: the files of gz-msgs (`pose.proto`, `pose_v.proto`,
`odometry.proto`, `odometry_with_covariance.proto`, `header.proto`), the encoding of protobuf
(https://protobuf.dev/programming-guides/encoding), and the systems SceneBroadcaster, PosePublisher and
OdometryPublisher of gz-sim.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.typing import FloatArray, IntArray
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.messages.gz import FIXED64, LENGTH_DELIMITED, VARINT
from navsense.recordings.channels import Channel, MessageReader
from navsense.recordings.gazebo import ENCODING

FIXED32 = 5
"""Protobuf wire type of fields that no pose has."""

Value = int | bytes
"""A field: the number of a varint, or the bytes of any other field."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned integer and the position after it. Raises `ValueError`."""
    value = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("an integer is truncated")


def iterate_fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the tag (number and wire type) and the value of each field. Raises `ValueError` for an invalid message."""
    # Most tags and sizes have one byte: a call of `read_varint` for each would take twice as long.
    position, end = 0, len(data)
    while position < end:
        tag, position = data[position], position + 1
        if tag >= 0x80:
            tag, position = read_varint(data, position - 1)
        wire_type = tag & 7
        if wire_type == VARINT:
            value, position = read_varint(data, position)
            yield tag, value
            continue
        if wire_type == LENGTH_DELIMITED and position < end and data[position] < 0x80:
            size, position = data[position], position + 1
        elif wire_type == LENGTH_DELIMITED:
            size, position = read_varint(data, position)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
        else:
            raise ValueError(f"a field has the wire type {wire_type}")
        if position + size > end:
            raise ValueError("a field is truncated")
        yield tag, data[position : position + size]
        position += size


class FieldDefinition(NamedTuple):
    """A field in a definition: its number, and the full name of its message type, "" for other types."""

    number: int
    type_name: str


Definitions = Mapping[str, Mapping[str, FieldDefinition]]
"""Full name of a message type -> its fields by name."""


def parse_definitions(descriptor_set: bytes) -> Definitions:
    """Return the message types of a `FileDescriptorSet` without nested types. Raises `ValueError`."""
    definitions: dict[str, dict[str, FieldDefinition]] = {}
    for file in _list_nested(descriptor_set, 1):
        package = b"".join(_list_nested(file, 2)[:1]).decode(errors="replace")
        for message in _list_nested(file, 4):
            name = b"".join(_list_nested(message, 1)[:1]).decode(errors="replace")
            fields = {}
            for body in _list_nested(message, 2):
                values = dict(iterate_fields(body))
                number, name_bytes, type_name = (
                    values.get(tag, default)
                    for tag, default in (
                        (3 << 3 | VARINT, 0),
                        (1 << 3 | LENGTH_DELIMITED, b""),
                        (6 << 3 | LENGTH_DELIMITED, b""),
                    )
                )
                if isinstance(number, int) and isinstance(name_bytes, bytes) and isinstance(type_name, bytes):
                    text = type_name.decode(errors="replace").lstrip(".")
                    fields[name_bytes.decode(errors="replace")] = FieldDefinition(number, text)
            definitions[f"{package}.{name}"] = fields
    return definitions


def _list_nested(data: bytes, number: int) -> list[bytes]:
    """Return the values of a length-delimited field."""
    tag = number << 3 | LENGTH_DELIMITED
    return [value for key, value in iterate_fields(data) if key == tag and isinstance(value, bytes)]


POSE_PATHS: Mapping[str, tuple[str, ...]] = {
    "Pose": (),
    "Pose_V": ("pose",),
    "Odometry": ("pose",),
    "OdometryWithCovariance": ("pose_with_covariance", "pose"),
}
"""Message type -> path of its poses."""

GAZEBO_POSE_TYPES = tuple(f"{package}.{name}" for package in ("gz.msgs", "ignition.msgs") for name in POSE_PATHS)
"""Message types of Gazebo with poses."""


def has_gazebo_poses(channel: Channel) -> bool:
    """Return True for a channel of Gazebo messages with poses."""
    return channel.encoding == ENCODING and channel.type in GAZEBO_POSE_TYPES


@dataclass
class EntityPoses:
    """Poses of one entity in order of reading; none unless the entity has the required name.

    stamp, log_time: ns; the stamp is that of the pose, otherwise that of its message, 0 without one.
    pose: rows of x y z (m) and w x y z.
    repeated: number of further poses with the same name in one message, which are left out.
    message: number of the message of the last pose.
    """

    has_name: bool
    stamp: list[int] = field(default_factory=list)
    log_time: list[int] = field(default_factory=list)
    pose: list[tuple[float, ...]] = field(default_factory=list)
    repeated: int = 0
    message: int = -1

    def to_arrays(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return stamps (n,) ns, log times (n,) ns and poses (n, 7)."""
        return np.array(self.stamp, np.int64), np.array(self.log_time, np.int64), np.array(self.pose, np.float64)


class PoseDecoder:
    """Decodes the poses in the messages of one channel."""

    def __init__(self, channel: Channel) -> None:
        """Look up the fields. Raises `RecordingError` for a definition without them."""
        package, _, name = channel.type.rpartition(".")
        try:
            self._definitions = parse_definitions(channel.definition)
        except ValueError as error:
            raise RecordingError(f"topic {channel.topic}: the definition of {channel.type}: {error}") from error
        self._channel = channel
        kind, path = channel.type, []
        for step in POSE_PATHS[name]:
            number, kind = self._find_field(kind, step)
            path.append(number << 3 | LENGTH_DELIMITED)
        self._path = tuple(path)
        self._header = self._tag(channel.type, "header")
        pose = f"{package}.Pose"
        self._pose_header, self._name = self._tag(pose, "header"), self._tag(pose, "name")
        self._position, self._orientation = self._tag(pose, "position"), self._tag(pose, "orientation")
        vector, quaternion = f"{package}.Vector3d", f"{package}.Quaternion"
        self._xyz = {self._tag(vector, axis, FIXED64): i for i, axis in enumerate("xyz")}
        self._wxyz = {self._tag(quaternion, axis, FIXED64): i for i, axis in enumerate("wxyz")}
        header, time = f"{package}.Header", f"{package}.Time"
        self._stamp, self._data = self._tag(header, "stamp"), self._tag(header, "data")
        self._sec, self._nsec = self._tag(time, "sec", VARINT), self._tag(time, "nsec", VARINT)

    def _find_field(self, kind: str, name: str) -> FieldDefinition:
        definition = self._definitions.get(kind, {}).get(name)
        if definition is None:
            what = f"topic {self._channel.topic}: {self._channel.type} is defined without {kind}.{name}"
            raise RecordingError(what, remedy="name another topic")
        return definition

    def _tag(self, kind: str, name: str, wire_type: int = LENGTH_DELIMITED) -> int:
        return self._find_field(kind, name).number << 3 | wire_type

    def iterate_poses(self, data: bytes) -> Iterator[tuple[str, int | None, bytes]]:
        """Yield the name of the entity, the stamp of the message (ns) and the pose as bytes. Raises `ValueError`."""
        header, bodies = b"", [data]
        for depth, step in enumerate(self._path):
            nested: list[bytes] = []
            for body in bodies:
                for tag, value in iterate_fields(body):
                    if tag == step and isinstance(value, bytes):
                        nested.append(value)
                    elif tag == self._header and depth == 0 and isinstance(value, bytes):
                        header = value
            bodies = nested
        stamp, frame = self._decode_header(header)
        for body in bodies:
            name = frame
            for tag, value in iterate_fields(body):
                if tag == self._name and isinstance(value, bytes):
                    name = value.decode(errors="replace")
                    break
                if tag == self._pose_header and isinstance(value, bytes) and b"child_frame_id" in value:
                    name = self._decode_header(value)[1] or name
            yield name, stamp, body

    def decode_pose(self, body: bytes, message_stamp: int | None) -> tuple[int, tuple[float, ...]]:
        """Return the stamp (ns), 0 without one, and x y z (m) w x y z of a pose. Raises `ValueError`."""
        stamp = message_stamp
        position, orientation = tuple[float, ...]((0.0,) * 3), tuple[float, ...]((0.0,) * 4)
        for tag, value in iterate_fields(body):
            if not isinstance(value, bytes):
                continue
            if tag == self._position:
                position = _decode_doubles(value, self._xyz, 3)
            elif tag == self._orientation:
                orientation = _decode_doubles(value, self._wxyz, 4)
            elif tag == self._pose_header:
                pose_stamp = self._decode_header(value)[0]
                stamp = message_stamp if pose_stamp is None else pose_stamp
        return stamp or 0, (*position, *orientation)

    def _decode_header(self, data: bytes) -> tuple[int | None, str]:
        """Return the stamp (ns), None without one, and `child_frame_id`."""
        stamp, frame = None, ""
        for tag, value in iterate_fields(data):
            if not isinstance(value, bytes):
                continue
            if tag == self._stamp:
                numbers = dict(iterate_fields(value))
                seconds, nanoseconds = numbers.get(self._sec, 0), numbers.get(self._nsec, 0)
                if isinstance(seconds, int) and isinstance(nanoseconds, int):
                    stamp = _to_signed(seconds) * NANOSECONDS_PER_SECOND + _to_signed(nanoseconds)
                    if not -(1 << 63) <= stamp < 1 << 63:
                        raise ValueError(f"a stamp of {_to_signed(seconds)} s does not fit into 64 bits of ns")
            elif tag == self._data and b"child_frame_id" in value:
                texts = [text for _, text in iterate_fields(value) if isinstance(text, bytes)]
                if len(texts) == 2 and texts[0] == b"child_frame_id":
                    frame = texts[1].decode(errors="replace")
        return stamp, frame


def _decode_doubles(data: bytes, indices: Mapping[int, int], count: int) -> tuple[float, ...]:
    """Return the doubles of a message by their tags; absent ones are 0, as in proto3."""
    values = [0.0] * count
    for tag, value in iterate_fields(data):
        index = indices.get(tag)
        if index is not None and isinstance(value, bytes):
            (values[index],) = struct.unpack("<d", value)
    return tuple(values)


def _to_signed(value: int) -> int:
    """Return a varint in two's complement as a signed integer."""
    return value - (1 << 64) if value >> 63 else value


def read_entity_poses(reader: MessageReader, channel: Channel, name: str) -> dict[str, EntityPoses]:
    """Return the poses of the entities of a name in a topic, by full name; without poses for other entities.

    An entity has the name if it equals its full name or the end of it, after `::` or `/`. The name "" is that of all
    entities. Gazebo lists the poses of models first, so the first of several entities of one name in a message counts.

    Raises `RecordingError` for messages that cannot be decoded.
    """
    entities: dict[str, EntityPoses] = {}
    endings = (f"::{name}", f"/{name}")
    decoder = PoseDecoder(channel)
    count = 0
    for batches in reader.read_batches((channel.topic,)):
        for batch in batches:
            if batch.channel.key != channel.key:
                channel = batch.channel
                decoder = PoseDecoder(channel)
            messages = sorted(
                (index, row.tobytes())
                for indices, rows in batch.size_groups
                for index, row in zip(indices.tolist(), rows, strict=True)
            )
            for index, data in messages:
                try:
                    for full_name, message_stamp, body in decoder.iterate_poses(data):
                        entity = entities.get(full_name)
                        if entity is None:
                            has_name = not name or full_name == name or full_name.endswith(endings)
                            entity = entities.setdefault(full_name, EntityPoses(has_name))
                        if not entity.has_name:
                            continue
                        if entity.message == count:
                            entity.repeated += 1
                            continue
                        stamp, pose = decoder.decode_pose(body, message_stamp)
                        entity.message = count
                        entity.stamp.append(stamp)
                        entity.log_time.append(int(batch.log_time[index]))
                        entity.pose.append(pose)
                except ValueError as error:
                    what = f"message {count} of {channel.topic} cannot be read as {channel.type}: {error}"
                    raise RecordingError(what, where=reader.where, remedy="name another topic") from error
                count += 1
    if not count:
        raise RecordingError("topic without messages", channel.topic, where=reader.where)
    return entities
