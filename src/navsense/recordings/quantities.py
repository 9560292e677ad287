"""Quantities in messages of any program: the message types that hold a pose, attitude, field or velocity, and where.

Values are read by the definition in the recording, so a type needs no definition in navsense.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from navsense.core import inputs
from navsense.core.errors import FieldError, RecordingError, Where
from navsense.core.typing import FloatArray, IntArray, Vectors
from navsense.messages.cdr import MessageRows
from navsense.messages.repack import MessageShape
from navsense.recordings.channels import Channel, ChannelKey, MessageReader
from navsense.recordings.columns import MessageDecoder, drop_empty, read_stamp_field
from navsense.recordings.message_recordings import open_messages
from navsense.recordings.rosbag.reader import check_bag


@dataclass(frozen=True)
class MessageQuantities:
    """Paths of the quantities in a message type, None for a quantity that it does not hold.

    frame: path of the frame of the orientation or the field.
    covariance: path of the nine covariances of the orientation or the field.
    """

    position: str | None = None
    orientation: str | None = None
    field: str | None = None
    velocity: str | None = None
    frame: str | None = None
    covariance: str | None = None


ODOMETRY = "nav_msgs/msg/Odometry"

QUANTITIES: Mapping[str, MessageQuantities] = {
    "sensor_msgs/msg/Imu": MessageQuantities(
        orientation="orientation", frame="header.frame_id", covariance="orientation_covariance"
    ),
    "sensor_msgs/msg/MagneticField": MessageQuantities(
        field="magnetic_field", frame="header.frame_id", covariance="magnetic_field_covariance"
    ),
    ODOMETRY: MessageQuantities(
        position="pose.pose.position", orientation="pose.pose.orientation", frame="child_frame_id"
    ),
    "geometry_msgs/msg/PoseStamped": MessageQuantities(position="pose.position", orientation="pose.orientation"),
    "geometry_msgs/msg/PoseWithCovarianceStamped": MessageQuantities(
        position="pose.pose.position", orientation="pose.pose.orientation"
    ),
    "geometry_msgs/msg/QuaternionStamped": MessageQuantities(orientation="quaternion"),
    "geometry_msgs/msg/TransformStamped": MessageQuantities(
        position="transform.translation", orientation="transform.rotation", frame="child_frame_id"
    ),
    "geometry_msgs/msg/Vector3": MessageQuantities(velocity=""),
    "geometry_msgs/msg/Vector3Stamped": MessageQuantities(field="vector", velocity="vector", frame="header.frame_id"),
    "geometry_msgs/msg/Twist": MessageQuantities(velocity="linear"),
    "geometry_msgs/msg/TwistStamped": MessageQuantities(velocity="twist.linear", frame="header.frame_id"),
    "geometry_msgs/msg/TwistWithCovarianceStamped": MessageQuantities(velocity="twist.twist.linear"),
}
"""Message type -> the quantities that it holds."""

ATTITUDE_TYPES = tuple(kind for kind, quantities in QUANTITIES.items() if quantities.orientation is not None)
FIELD_TYPES = tuple(kind for kind, quantities in QUANTITIES.items() if quantities.field is not None)
POSE_TYPES = tuple(kind for kind, quantities in QUANTITIES.items() if quantities.position is not None)
VELOCITY_TYPES = tuple(kind for kind, quantities in QUANTITIES.items() if quantities.velocity is not None)


_VELOCITY_FILE = inputs.FileKind("recording", FieldError, "must be a ROS bag that can be read")


@dataclass(frozen=True, eq=False)
class TopicValues:
    """Values of one quantity in the messages of a topic, in order of arrival.

    log_time, stamp (n,) ns, the stamp 0 where a message has none; values (n, k). `frame` and `covariance` (9,) are
    those of the first message, "" and zeros where the type has none.
    """

    log_time: IntArray
    stamp: IntArray
    values: FloatArray
    frame: str
    covariance: FloatArray


@dataclass(frozen=True, eq=False)
class DecodedRows:
    """Messages of one shape: their number in order of reading (n,), log times (n,) ns, rows, strings and lengths."""

    number: IntArray
    log_time: IntArray
    rows: MessageRows
    shape: MessageShape


def decode_topic(reader: MessageReader, topic: str, message_type: str) -> Iterator[DecodedRows]:
    """Yield the messages of one topic and type by shape, without empty messages.

    Raises `RecordingError` for a message of another type.
    """
    decoders: dict[ChannelKey, MessageDecoder] = {}
    first = 0
    for batches in reader.read_batches((topic,)):
        for batch in map(drop_empty, batches):
            channel = batch.channel
            if channel.type != message_type:
                continue
            decoder = decoders.get(channel.key) or decoders.setdefault(channel.key, _make_decoder(channel))
            for shape, indices, rows in decoder.decode_groups(batch.size_groups):
                yield DecodedRows(indices + first, batch.log_time[indices], rows, shape)
            first += batch.log_time.size


def _make_decoder(channel: Channel) -> MessageDecoder:
    if not channel.is_ros:
        allowed = "must be messages of ROS"
        raise RecordingError(f"topic {channel.topic}", channel.encoding, allowed=allowed)
    return MessageDecoder(channel)


def list_members(path: str, axes: str) -> list[str]:
    """Return the paths of the members `axes` of a value; the path "" is the message."""
    return [f"{path}.{axis}" if path else axis for axis in axes]


def read_values(reader: MessageReader, topic: str, message_type: str, members: Sequence[str]) -> TopicValues:
    """Return some members, a column each, of all messages of a topic.

    Raises `RecordingError` for a topic without messages, and for a type that is defined without these members.
    """
    parts = list(decode_topic(reader, topic, message_type))
    count = sum(part.number.size for part in parts)
    if not count:
        raise RecordingError("topic without messages", topic, where=reader.where)
    log_time, stamp = np.zeros((2, count), dtype=np.int64)
    values = np.empty((count, len(members)))
    quantities = QUANTITIES[message_type]
    frame, covariance = "", np.zeros(9)
    for part in parts:
        log_time[part.number] = part.log_time
        stamp[part.number] = read_stamp_field(part.rows)
        missing = [name for name in members if name not in (part.rows.dtype.names or ())]
        if missing:
            what = f"topic {topic}: {message_type} is defined without {missing[0]}"
            raise RecordingError(what, where=reader.where, remedy="name another topic")
        for column, name in enumerate(members):
            values[part.number, column] = part.rows[name]
        if part.number[0] == 0:
            frame = part.shape.strings.get(quantities.frame or "", "")
            if quantities.covariance:
                covariance = np.asarray(part.rows[quantities.covariance][0], dtype=np.float64)
    order = np.argsort(log_time, kind="stable")
    return TopicValues(log_time[order], stamp[order], values[order], frame, covariance)


def read_velocities(path: Path, topic: str | None, start: float | None) -> tuple[FloatArray, Vectors]:
    """Return instants (n,) s from `start` (s), else from the first, and velocities (n, 3) m/s of a topic.

    Without `topic` the recording must have one topic that holds a velocity. Raises `FieldError`.
    """
    where = Where(str(path))
    check_bag(path, _VELOCITY_FILE)
    try:
        with open_messages(path) as reader:
            types = {channel.topic: channel.type for channel in reader.channels}
            velocity_topics = sorted(name for name, kind in types.items() if kind in VELOCITY_TYPES)
            if topic is None and len(velocity_topics) == 1:
                topic = velocity_topics[0]
            if topic not in velocity_topics:
                listed = f"{topic} of type {types[topic]}" if topic in types else topic or "none"
                allowed = f"must be a topic of Twist or Vector3: {', '.join(velocity_topics) or 'none'}"
                raise FieldError(
                    "topic of the current", listed, allowed=allowed, where=where, remedy="name one as topic"
                )
            message_type = types[topic]
            members = list_members(QUANTITIES[message_type].velocity or "", "xyz")
            topic_values = read_values(reader, topic, message_type, members)
    except RecordingError as error:
        allowed = error.allowed or _VELOCITY_FILE.allowed
        raise FieldError(error.what, error.value, allowed=allowed, where=where, remedy=error.remedy) from error
    times = topic_values.stamp if "Stamped" in message_type else topic_values.log_time
    zero = int(times[0]) if start is None else round(start * 1e9)
    return np.asarray((times - zero) * 1e-9, dtype=np.float64), topic_values.values
