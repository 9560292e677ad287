"""A node of ROS 2 on Zenoh, with the names of `rmw_zenoh_cpp`.

    messages    DOMAIN/TOPIC/TYPE/HASH, with an attachment: number, time (ns) and identifier of the publisher
    graph       liveliness tokens @ros2_lv/DOMAIN/SESSION/NODE/ENTITY/KIND/...

The session is a client of a router, which programs of ROS 2 need too. Source: the design document of `rmw_zenoh`.
"""

from __future__ import annotations

import secrets
import struct
import threading
import time
from contextlib import suppress
from typing import Any

import zenoh
from zenoh import ext
from zenoh import open as open_session

from navsense.core.errors import RecordingError, Where
from navsense.messages.cdr import MessageEncoder
from navsense.streams.ros2.naming import format_dds_type, parse_dds_type, split_node_name
from navsense.streams.ros2.remote import RemotePublisher
from navsense.streams.stream import StreamUrl

DEFAULT_PORT = 7447
"""Port of a router."""

CONNECT_TIMEOUT = 3.0
"""Longest time (s) to connect to the router."""

FLUSH_TIME = 0.1
"""Time (s) in which the session sends its queue at the end of a run. It does not report the end."""

ATTACHMENT = struct.Struct("<qqB16s")
"""Number of the message, time (ns), and the size and bytes of the identifier of the publisher."""

OWN_SESSIONS: set[str] = set()
"""Sessions of this process, whose publishers are not followed."""

GRAPH = "@ros2_lv"
"""First part of the keys of all tokens."""

PUBLISHER = "MP"
"""The kind of the token of a publisher."""

VOLATILE_QOS, LATCHED_QOS = "::,10:,:,:,,", ":1:,1:,:,:,,"
"""Policies in a token: reliability, durability, history, deadline, lifespan and liveliness; empty where default."""


def parse_token(key: str) -> RemotePublisher | None:
    """Return the publisher of a token; None for a token of another kind, or of a session of this process.

    >>> key = "@ros2_lv/7/aa/0/3/MP/%/%/sim/%odom/nav_msgs::msg::dds_::Odometry_/RIHS01_00/::,10:,:,:,,"
    >>> publisher = parse_token(key)
    >>> publisher.topic, publisher.type, publisher.node
    ('/odom', 'nav_msgs/msg/Odometry', '/sim')
    """
    parts = key.split("/")
    if len(parts) < 12 or parts[0] != GRAPH or parts[5] != PUBLISHER or parts[2] in OWN_SESSIONS:
        return None
    namespace, node, topic, dds_type = parts[7:11]
    kind = parse_dds_type(dds_type)
    if not kind:
        return None
    full_name = f"{namespace.replace('%', '/').rstrip('/')}/{node}"
    return RemotePublisher("/" + topic.replace("%", "/").strip("/"), kind, key, node=full_name)


class ZenohPublisherList:
    """The publishers of ROS topics that a session has found, without those of this process."""

    def __init__(self, session: Any, domain: int) -> None:
        """Read the tokens."""
        self._lock = threading.Lock()
        self._publishers: dict[str, RemotePublisher] = {}
        self._tokens = session.liveliness().declare_subscriber(f"{GRAPH}/{domain}/**", self._handle, history=True)

    def _handle(self, sample: Any) -> None:
        """Add or remove a publisher. Called in a thread of Zenoh."""
        key = str(sample.key_expr)
        publisher = parse_token(key)
        if publisher is None:
            return
        with self._lock:
            if sample.kind == zenoh.SampleKind.PUT:
                self._publishers.setdefault(key, publisher)
            elif key in self._publishers:
                self._publishers.pop(key).is_active = False

    def list_publishers(self) -> list[RemotePublisher]:
        """Return the publishers that are connected."""
        with self._lock:
            return list(self._publishers.values())


class ZenohTopicWriter:
    """The publisher of one topic.

    dropped: always 0: the session does not report the messages that it drops.
    reader_count: how often a first subscriber came.
    """

    def __init__(self, publisher: Any, listener_publisher: Any) -> None:
        """Listen for subscribers."""
        self._publisher = publisher
        self._gid, self._count = secrets.token_bytes(16), 0
        self.dropped = self.reader_count = 0
        self._listener = listener_publisher.declare_matching_listener(self._match)
        self.has_readers = bool(listener_publisher.matching_status.matching)

    def _match(self, status: Any) -> None:
        """Store whether there is a subscriber. Called in a thread of Zenoh."""
        self.has_readers = bool(status.matching)
        self.reader_count += self.has_readers

    def write(self, data: bytes) -> None:
        """Send a message. A full queue drops it."""
        attachment = ATTACHMENT.pack(self._count, time.time_ns(), 16, self._gid)
        self._count += 1
        self._publisher.put(data, attachment=attachment)


class ZenohNode:
    """A session with the publishers of one node of ROS 2."""

    alignment = 1
    errors: tuple[type[Exception], ...] = (zenoh.ZError,)

    def __init__(self, url: StreamUrl, domain: int, name: str, is_humble: bool) -> None:
        """Connect to a router. Raises `RecordingError`."""
        if is_humble:
            allowed = "must be jazzy: rmw_zenoh needs type hashes, which Humble lacks"
            raise RecordingError("distribution of ROS", "humble", where=Where(url.text), allowed=allowed)
        self._session = connect(url)
        self._domain, self._session_id = domain, str(self._session.info.zid())
        OWN_SESSIONS.add(self._session_id)
        self._others = ZenohPublisherList(self._session, domain)
        namespace, node = split_node_name(name)
        self._node = f"%/{namespace.replace('/', '%')}/{node}"  # enclave, namespace, name
        self.writers: list[ZenohTopicWriter] = []
        self._tokens = [self._session.liveliness().declare_token(self._format_token(0, "NN"))]

    def _format_token(self, entity: int, kind: str) -> str:
        """Return the key of the token of the node or of an endpoint."""
        return f"{GRAPH}/{self._domain}/{self._session_id}/0/{entity}/{kind}/{self._node}"

    def add_writer(self, topic: str, encoder: MessageEncoder, type_hash: str, *, is_latched: bool) -> ZenohTopicWriter:
        """Return the publisher of a topic. One of a latched topic keeps its last message for later subscribers."""
        kind = f"{format_dds_type(encoder.type)}/{type_hash}"
        key = f"{self._domain}/{topic.strip('/')}/{kind}"
        control = zenoh.CongestionControl.DROP
        publisher = self._session.declare_publisher(key, congestion_control=control)
        listener, qos = publisher, VOLATILE_QOS
        if is_latched:
            cache, qos = ext.CacheConfig(max_samples=1), LATCHED_QOS
            publisher = ext.declare_advanced_publisher(
                self._session, key, congestion_control=control, cache=cache, publisher_detection=True
            )
        self.writers.append(ZenohTopicWriter(publisher, listener))
        token = f"{self._format_token(len(self.writers), 'MP')}/{topic.replace('/', '%')}/{kind}/{qos}"
        self._tokens.append(self._session.liveliness().declare_token(token))
        return self.writers[-1]

    def announce(self) -> None:
        """Do nothing: the tokens have the names."""

    def list_publishers(self) -> list[RemotePublisher]:
        """Return the publishers of other programs that are known now."""
        return self._others.list_publishers()

    def flush(self) -> None:
        """Wait while the session sends its queue."""
        time.sleep(FLUSH_TIME)

    def close(self) -> None:
        """Disconnect."""
        OWN_SESSIONS.discard(self._session_id)
        with suppress(zenoh.ZError):
            self._session.close()


def connect(url: StreamUrl) -> Any:
    """Return a session with the router of a URL. Raises `RecordingError`."""
    address = f"{url.host}:{url.port or DEFAULT_PORT}"
    try:
        return open_session(make_settings(address))
    except zenoh.ZError as error:
        raise RecordingError(
            "router of Zenoh",
            address,
            where=Where(url.text),
            allowed=f"does not answer: {str(error).partition(' at /')[0]}",
            remedy="start it: ros2 run rmw_zenoh_cpp rmw_zenohd",
        ) from error


def make_settings(address: str) -> Any:
    """Return the settings of a client: it connects to one router, and searches for nothing. A put never waits."""
    settings = zenoh.Config()
    for name, value in {
        "mode": '"client"',
        "connect/endpoints": f'["tcp/{address}"]',
        "connect/timeout_ms": str(round(1000 * CONNECT_TIMEOUT)),
        "timestamping/enabled": "true",  # the cache of latched topics needs it
        "scouting/multicast/enabled": "false",
        "transport/link/tx/queue/size/data": "16",  # packets of 64 KiB, the most that there can be
        "transport/link/tx/queue/congestion_control/drop/wait_before_drop": "0",
    }.items():
        settings.insert_json5(name, value)
    return settings
