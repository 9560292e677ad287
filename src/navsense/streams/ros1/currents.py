"""An ocean current from a ROS 1 topic.

    ros1://HOST:PORT?topic=TOPIC&type=TYPE&frame=FRAME&host=ADDRESS&node=NAME

HOST:PORT is the address of the ROS master; default: 127.0.0.1:11311. The default topic is that of the UUV Simulator,
/hydrodynamics/current_velocity. FRAME is "world" (default), "enu" or "ned", as in a recorded current. The stamp of a
message is not used. An invalid velocity is dropped, with a warning.

Source: the UUV Simulator, UnderwaterCurrentROSPlugin.cc: a geometry_msgs/TwistStamped in the frame /world.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from navsense.core.errors import FieldError, RecordingError, Where
from navsense.core.typing import Vector
from navsense.environment.current.base import check_speed
from navsense.environment.current.replay import FRAMES
from navsense.streams.current import CurrentSubscriber
from navsense.streams.ros1.master import MasterError
from navsense.streams.ros1.subscriber_node import NODE_OPTIONS, SubscriberNode
from navsense.streams.ros1.subscription import Connection, PeerError
from navsense.streams.ros_messages import COVARIANCE_BYTES, Reader, normalize_type
from navsense.streams.ros_motion import PublisherChoice
from navsense.streams.stream import StreamUrl

DEFAULT_TOPIC = "/hydrodynamics/current_velocity"

CURRENT_OPTIONS = ("topic", "type", "frame", *NODE_OPTIONS)
"""Options of the URL of a current."""


def _decode_twist(reader: Reader) -> Vector:
    return reader.read_twist()[0]


def _decode_twist_with_covariance(reader: Reader) -> Vector:
    linear = reader.read_twist()[0]
    reader.skip(COVARIANCE_BYTES)
    return linear


@dataclass(frozen=True)
class CurrentType:
    """A message type that a current can be.

    md5: the sum of its definition.
    decode: reads the velocity after the header.
    has_header: True if the message starts with a header.
    """

    md5: str
    decode: Callable[[Reader], Vector]
    has_header: bool = True


CURRENT_TYPES: Mapping[str, CurrentType] = {
    "geometry_msgs/TwistStamped": CurrentType("98d34b0043a2093cf9d9345ab6eef12e", _decode_twist),
    "geometry_msgs/Twist": CurrentType("9f195f881246fdfa2798d1d3eebca84a", _decode_twist, has_header=False),
    "geometry_msgs/TwistWithCovarianceStamped": CurrentType(
        "8927a1a12fb2607ceea095b2dc440a96", _decode_twist_with_covariance
    ),
    "geometry_msgs/Vector3Stamped": CurrentType("7b324c7325e683bf02a9b14b01090ec7", Reader.read_vector),
    "geometry_msgs/Vector3": CurrentType("4a842b65f413084dc2b10fb484ea7f17", Reader.read_vector, has_header=False),
}
"""Message type -> what reads it: those of a recorded current."""


class Ros1CurrentSubscriber(CurrentSubscriber):
    """Receives the velocity of the water from a ROS 1 topic."""

    def __init__(self, url: StreamUrl) -> None:
        """Register at the master. Raises `FieldError`, and `RecordingError` for an invalid host or node."""
        options, where = url.options, Where(url.text)
        for option in options:
            if option not in CURRENT_OPTIONS:
                allowed = f"must be one of {', '.join(CURRENT_OPTIONS)}"
                raise FieldError("option of the URL", option, allowed=allowed, where=where)
        topic, frame = "/" + options.get("topic", DEFAULT_TOPIC).lstrip("/"), options.get("frame", "world")
        if frame not in FRAMES:
            raise FieldError("frame of a current", frame, allowed=f"must be one of {', '.join(FRAMES)}", where=where)
        super().__init__(url.text, f"topic {topic}", frame)
        self._where, self._allowed = where, f"must be one of {', '.join(CURRENT_TYPES)}"
        self._type = normalize_type(options.get("type", ""))
        if self._type and self._type not in CURRENT_TYPES:
            raise FieldError("option type", self._type, allowed=self._allowed, where=where)
        self._lock = threading.Lock()
        self._node = SubscriberNode(url, self.fail)
        try:
            self._subscribe(topic)
            self._node.start()
        except MasterError as error:
            self._node.close()
            raise FieldError(
                "ROS master", self._node.address, where=where, allowed=str(error), remedy="start it: roscore"
            ) from error
        except BaseException:
            self._node.close()
            raise

    def _subscribe(self, topic: str) -> None:
        """Subscribe to the topic. Raises `FieldError` and `MasterError`."""
        known = normalize_type(self._node.master.list_topics()[1].get(topic, "*"))
        if known != "*" and self._type not in ("", known):
            allowed = f"{self.topic} is {known}"
            raise FieldError("option type", self._type, allowed=allowed, where=self._where, remedy="omit it")
        kind = self._type or known
        if kind != "*" and kind not in CURRENT_TYPES:
            raise FieldError(f"type of {self.topic}", kind, allowed=self._allowed, where=self._where)
        subscription = self._node.subscribe(topic, kind, self)
        self._warnings = subscription.warnings
        self._choice = PublisherChoice(subscription.warnings)

    def disconnect(self) -> None:
        """Disconnect and unregister."""
        self._node.close()

    def check_type(self, connection: Connection, md5: str) -> None:
        """Raise `PeerError` if messages of this type and with this sum cannot be read."""
        kind = connection.type
        expected = CURRENT_TYPES.get(kind)
        if expected is None:
            raise PeerError(f"publishes {kind}; must be one of {', '.join(CURRENT_TYPES)}")
        if md5 != expected.md5:
            raise PeerError(f"publishes another version of {kind}: md5sum {md5}, not {expected.md5}")
        with self._lock:
            if self._type not in ("", kind):
                raise PeerError(f"publishes {kind}, not {self._type}")
            self._type = kind

    def handle(self, connection: Connection, message: bytes) -> None:
        """Store the velocity in a message. Invalid messages are dropped, with one warning for each cause and node."""
        kind, reader = CURRENT_TYPES[connection.type], Reader(message)
        try:
            if kind.has_header:
                reader.read_header()
            velocity = kind.decode(reader)
            reader.finish()
            for value in velocity:
                check_speed("velocity of a current (m/s)", value)
        except (ValueError, FieldError) as error:
            problem = f"sent {error}" if isinstance(error, ValueError) else f"sent a message that is dropped: {error}"
            self._warnings.add("message", connection, f"{connection} {problem}")
            return
        with self._lock:
            if self._choice.accepts(connection):
                self.put(velocity)


def open_current(url: StreamUrl) -> Ros1CurrentSubscriber:
    """Return the subscriber of a current. Raises `FieldError`."""
    try:
        return Ros1CurrentSubscriber(url)
    except RecordingError as error:
        where = error.where or Where(url.text)
        raise FieldError(error.what, error.value, allowed=error.allowed, where=where, remedy=error.remedy) from error
