"""Topics of ROS 2 of other programs on Zenoh, with the names of `rmw_zenoh_cpp`.

    publishers      liveliness tokens @ros2_lv/DOMAIN/SESSION/.../MP/ENCLAVE/NAMESPACE/NODE/TOPIC/TYPE/HASH/...
    messages        DOMAIN/TOPIC/TYPE/HASH, with an attachment: number, time (ns) and identifier of the publisher

The hash of a type is not compared: CDR with another definition is an invalid message. A gap in the numbers of a
publisher is a loss. Source: the design document of `rmw_zenoh`.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import zenoh

from navsense.streams.ros2.naming import format_dds_type, parse_dds_type
from navsense.streams.ros2.remote import Receive, RemotePublisher, Warn
from navsense.streams.ros2.zenoh import ATTACHMENT, OWN_SESSIONS, ZenohPublisherList, connect
from navsense.streams.stream import StreamUrl

SILENCE = 5.0
"""Time (s) without a message after which a publisher without a token counts as disconnected."""


class ZenohTopicReader:
    """The subscriber of one topic. A message names its publisher by an identifier, and the graph by a token.

    The identifier gets the token if the topic has only one token without an identifier. A publisher without a token is
    active until it is silent for `SILENCE`.
    """

    def __init__(self, topic: str, publishers: ZenohTopics, receive: Receive, warn: Warn) -> None:
        """Start without publishers."""
        self._topic, self._publishers, self._receive, self._warn = topic, publishers, receive, warn
        self._sources: dict[bytes, RemotePublisher] = {}
        self._numbers: dict[bytes, int] = {}
        self._last_times: dict[bytes, float] = {}  # of publishers without a token

    def handle(self, sample: Any) -> None:
        """Pass a message on. Called in a thread of Zenoh."""
        gid = b""
        with suppress(AttributeError, struct.error):  # a program without ROS sends none, or another one
            number, _, _, gid = ATTACHMENT.unpack(sample.attachment.to_bytes())
            if number > self._numbers.get(gid, number) + 1:
                self._warn("lost", gid.hex(), "messages are lost on the network")
            self._numbers[gid] = number
        if gid not in self._sources:
            self._sources[gid] = self._find_publisher(gid, parse_dds_type(str(sample.key_expr).split("/")[-2]))
        self._update_activity(gid, time.monotonic())
        self._receive(self._sources[gid], sample.payload.to_bytes())

    def _find_publisher(self, gid: bytes, kind: str) -> RemotePublisher:
        """Return the publisher with an identifier and a type."""
        used = list(self._sources.values())
        tokens = [
            one
            for one in self._publishers.list_publishers()
            if (one.topic, one.type) == (self._topic, kind) and one not in used
        ]
        if len(tokens) == 1:
            return tokens[0]
        self._last_times[gid] = time.monotonic()
        return RemotePublisher(self._topic, kind, gid.hex() or "without ROS")

    def _update_activity(self, gid: bytes, now: float) -> None:
        """Update which publishers without a token are active, at a message of one publisher."""
        if gid in self._last_times:
            self._last_times[gid], self._sources[gid].is_active = now, True
        for other, last in list(self._last_times.items()):
            if now - last > SILENCE:
                self._sources[other].is_active = False


class ZenohTopics:
    """A session with the subscribers of a run. Its threads are those of Zenoh."""

    errors: tuple[type[Exception], ...] = (zenoh.ZError,)

    def __init__(self, url: StreamUrl, domain: int, fail: Callable[[str], None]) -> None:
        """Connect to a router, and read the tokens. Raises `RecordingError`."""
        self._domain, self._fail = domain, fail
        self._is_closed = False
        self._session = connect(url)
        self._session_id = str(self._session.info.zid())
        OWN_SESSIONS.add(self._session_id)
        self._list = ZenohPublisherList(self._session, domain)
        self._subscribers: list[Any] = []

    def list_publishers(self) -> list[RemotePublisher]:
        """Return the publishers that are known now, without those of this process."""
        return self._list.list_publishers()

    def subscribe(self, topic: str, types: Sequence[str], receive: Receive, warn: Warn) -> None:
        """Receive the messages of a topic, of all publishers with some types. Raises `ZError`."""
        reader = ZenohTopicReader(topic, self, receive, warn)

        def handle(sample: Any) -> None:
            if self._is_closed:
                return
            try:
                reader.handle(sample)
            except Exception as error:  # noqa: BLE001  # the run learns of it
                self._fail(f"{type(error).__name__}: {error}")

        for kind in types:
            key = f"{self._domain}/{topic.strip('/')}/{format_dds_type(kind)}/*"
            self._subscribers.append(self._session.declare_subscriber(key, handle))

    def close(self) -> None:
        """Disconnect."""
        self._is_closed = True
        OWN_SESSIONS.discard(self._session_id)
        with suppress(zenoh.ZError):
            self._session.close()
