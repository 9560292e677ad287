"""A client of the WebSocket protocol of Foxglove, on the library `websockets`.

Source: the specification of the protocol, https://github.com/foxglove/ws-protocol/blob/main/docs/spec.md.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

MESSAGE, TIME, PLAYBACK = 1, 2, 5
"""Codes of binary messages of a server."""


@dataclass(frozen=True)
class Message:
    """A message of a channel: topic, log time (ns) and data."""

    topic: str
    log_time: int
    data: bytes


class FoxgloveClient:
    """A connection to a server.

    channels: the advertised channels by topic.
    times: the times (ns) that the server has sent.
    replies: the other texts that the server has sent, by operation.
    """

    def __init__(self, url: str) -> None:
        """Connect, and wait until the server has advertised its channels."""
        address = url.partition("://")[2].partition("?")[0]
        connecting = connect(f"ws://{address}", subprotocols=[Subprotocol("foxglove.sdk.v1")], max_size=None)
        self._stack = ExitStack()
        self._connection: ClientConnection = self._stack.enter_context(connecting)
        self.channels: dict[str, dict[str, Any]] = {}
        self.times: list[int] = []
        self.states: list[bytes] = []
        self.replies: dict[str, list[dict[str, Any]]] = {}
        self._topics: dict[int, str] = {}
        self._early: list[Message] = []
        while not self.channels:
            self._receive(self._connection.recv(timeout=20.0))

    @property
    def topics(self) -> list[str]:
        """The topics that the server has advertised."""
        return list(self.channels)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to topics, and wait until the server has done so: it answers the operations in order."""
        subscriptions = []
        for topic in topics:
            number = len(self._topics) + 1
            self._topics[number] = topic
            subscriptions.append({"id": number, "channelId": self.channels[topic]["id"]})
        self.send("subscribe", subscriptions=subscriptions)
        self.send("getParameters", parameterNames=["seed"], id="subscribed")
        while not any(reply.get("id") == "subscribed" for reply in self.replies.get("parameterValues", [])):
            message = self._receive(self._connection.recv(timeout=20.0))
            if message is not None:
                self._early.append(message)

    def send(self, operation: str, **values: Any) -> None:
        """Send an operation as JSON."""
        self._connection.send(json.dumps({"op": operation, **values}))

    def control_playback(self, *, is_paused: bool, speed: float) -> None:
        """Send a request of playback control."""
        self._connection.send(struct.pack("<BBfBQI", 3, is_paused, speed, 0, 0, 0))

    def receive_reply(self, identifier: str) -> int:
        """Wait for the reply to the last request. Return the number of messages before it."""
        replies = self.replies.setdefault("parameterValues", [])
        start, count = len(replies), 0
        while not any(reply.get("id") == identifier for reply in replies[start:]):
            count += self._receive(self._connection.recv(timeout=20.0)) is not None
        return count

    def _receive(self, data: str | bytes) -> Message | None:
        """Return the message in what the server has sent; None for anything else."""
        if isinstance(data, str):
            text = json.loads(data)
            if text["op"] == "advertise":
                self.channels |= {channel["topic"]: channel for channel in text["channels"]}
            self.replies.setdefault(text["op"], []).append(text)
        elif data[0] == MESSAGE:
            number, log_time = struct.unpack("<IQ", data[1:13])
            return Message(self._topics[number], log_time, data[13:])
        elif data[0] == TIME:
            self.times.append(struct.unpack("<Q", data[1:9])[0])
        elif data[0] == PLAYBACK:
            self.states.append(data)
        return None

    def __iter__(self) -> Iterator[Message]:
        """Yield the messages until the server closes the connection."""
        yield from self._early
        while True:
            try:
                message = self._receive(self._connection.recv(timeout=60.0))
            except ConnectionClosed:
                return
            if message is not None:
                yield message

    def close(self) -> None:
        """Close the connection."""
        self._stack.close()
