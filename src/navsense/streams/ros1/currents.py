"""An ocean current from a ROS 1 topic.

    ros1://HOST:PORT?topic=TOPIC&type=TYPE&frame=FRAME&host=ADDRESS&node=NAME

HOST:PORT is the address of the ROS master; default: 127.0.0.1:11311. `ros_currents` has the other options. An invalid
velocity is dropped, with a warning.
"""

from __future__ import annotations

import threading

from navsense.core.errors import FieldError, Where
from navsense.streams.current import CurrentSubscriber
from navsense.streams.ros1.master import MasterError
from navsense.streams.ros1.md5 import CURRENT_MD5
from navsense.streams.ros1.subscriber_node import NODE_OPTIONS, SubscriberNode
from navsense.streams.ros1.subscription import Connection, PeerError
from navsense.streams.ros_currents import CURRENT_TYPES, TOPIC_OPTIONS, decode_velocity, parse_current
from navsense.streams.ros_messages import Reader, normalize_type
from navsense.streams.ros_motion import PublisherChoice
from navsense.streams.stream import StreamUrl

CURRENT_OPTIONS = (*TOPIC_OPTIONS, *NODE_OPTIONS)
"""Options of the URL of a current."""


class Ros1CurrentSubscriber(CurrentSubscriber):
    """Receives the velocity of the water from a ROS 1 topic."""

    def __init__(self, url: StreamUrl) -> None:
        """Register at the master. Raises `FieldError`, and `RecordingError` for an invalid host or node."""
        topic, where = parse_current(url, normalize_type), Where(url.text)
        super().__init__(url.text, f"topic {topic.name}", topic.frame)
        self._where, self._allowed = where, f"must be one of {', '.join(CURRENT_TYPES)}"
        self._type = topic.type
        self._lock = threading.Lock()
        self._node = SubscriberNode(url, self.fail)
        try:
            self._subscribe(topic.name)
            self._node.start()
        except MasterError as error:
            self._node.close()
            raise FieldError(
                "ROS master", self._node.address, where=where, allowed=str(error), remedy=error.remedy
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
        expected = CURRENT_MD5.get(kind)
        if expected is None:
            raise PeerError(f"publishes {kind}; must be one of {', '.join(CURRENT_TYPES)}")
        if md5 != expected:
            raise PeerError(f"publishes another version of {kind}: md5sum {md5}, not {expected}")
        with self._lock:
            if self._type not in ("", kind):
                raise PeerError(f"publishes {kind}, not {self._type}")
            self._type = kind

    def handle(self, connection: Connection, message: bytes) -> None:
        """Store the velocity in a message. Invalid messages are dropped, with one warning for each cause and node."""
        try:
            velocity = decode_velocity(connection.type, Reader(message))
        except ValueError as error:
            self._warnings.add("message", connection, f"{connection} sent {error}")
            return
        with self._lock:
            if self._choice.accepts(connection):
                self.put(velocity)
