"""What a subscriber of ROS 2 needs of a transport: the publishers of other programs, and bytes of their messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from navsense.streams.stream import StreamUrl


@dataclass(eq=False)
class RemotePublisher:
    """A publisher of another program.

    topic: its name, "/odom".
    type: of its messages, "nav_msgs/msg/Odometry".
    identity: its name on the transport.
    node: the full name of its node; "" before it is known, and for a program without ROS.
    is_reliable: it offers reliable delivery.
    is_active: true until it disconnects.
    """

    topic: str
    type: str
    identity: str
    node: str = ""
    is_reliable: bool = True
    is_active: bool = True

    def __str__(self) -> str:
        """Return the name for messages."""
        return f"node {self.node}" if self.node else f"publisher {self.identity}"


Receive: TypeAlias = Callable[[RemotePublisher, bytes], None]
"""Receives the CDR of a message with its encapsulation. Called in a thread of the transport."""

Warn: TypeAlias = Callable[[str, object, str], None]
"""Logs a warning once: its cause, its source, and the text."""


class RemoteTopics(Protocol):
    """The topics of other programs in one domain of ROS 2.

    errors: what the library of the transport raises.
    """

    errors: tuple[type[Exception], ...]

    def list_publishers(self) -> list[RemotePublisher]:
        """Return the publishers that are known now, without those of this process."""
        ...

    def subscribe(self, topic: str, types: Sequence[str], receive: Receive, warn: Warn) -> None:
        """Receive the messages of a topic, of publishers with these types."""
        ...

    def close(self) -> None:
        """Disconnect. No message is received afterwards. Never raises."""
        ...


RemoteTopicsOpener: TypeAlias = Callable[[StreamUrl, int, Callable[[str], None]], RemoteTopics]
"""Connects to the domain (number) of a URL. The function is called with the problem that ends the connection."""
