"""The topic /clock of ROS 1."""

from __future__ import annotations

from collections.abc import Callable

from navsense.streams.ros1.md5 import CLOCK_MD5
from navsense.streams.ros1.subscriber_node import SubscriberNode
from navsense.streams.ros1.subscription import Connection, PeerError
from navsense.streams.ros_messages import CLOCK_TYPE, Reader, decode_clock
from navsense.streams.ros_motion import PublisherChoice
from navsense.streams.ros_stamps import CLOCK


class ClockTopic:
    """The time of the topic /clock.

    time: the last one (ns), None before the first.
    """

    def __init__(self, node: SubscriberNode, fail: Callable[[str], None]) -> None:
        """Subscribe before the start of the node."""
        self.time: int | None = None
        self._fail = fail
        self._subscription = node.subscribe(CLOCK, CLOCK_TYPE, self)
        self._choice = PublisherChoice(self._subscription.warnings)

    def has_publisher(self, *, connected: bool) -> bool:
        """Return True if the master lists a node that publishes /clock. connected: it is connected too."""
        return any(one.is_listed and (one.is_open or not connected) for one in self._subscription.connections)

    def check_type(self, connection: Connection, md5: str) -> None:
        """Raise `PeerError` for another type."""
        if (connection.type, md5) != (CLOCK_TYPE, CLOCK_MD5):
            raise PeerError(f"publishes {CLOCK} as {connection.type} with md5sum {md5}, not {CLOCK_TYPE}")

    def handle(self, connection: Connection, message: bytes) -> None:
        """Store the time of a message."""
        try:
            if self._choice.accepts(connection):
                self.time = decode_clock(Reader(message))
        except ValueError as error:
            raise PeerError(f"sent {error}") from error

    def fail(self, problem: str) -> None:
        """End the subscription of the topic that needs the clock."""
        self._fail(f"{CLOCK}: {problem}")
