"""A node of Gazebo transport: one ZeroMQ socket that publishes all topics, their discovery, and services.

A message has four frames: full name of the topic, address of the publisher, bytes, and name of the type. With
statistics it has a fifth frame with the time (ms) and the number of the message, both in 8 bytes.

The socket knows the subscriptions, so a topic without subscribers is not encoded. A subscriber has a queue. If it is
full, ZeroMQ drops messages for this subscriber until half of the queue is sent. It reports the first one only.

Sources: `NodeShared.cc` and `NodeSharedPrivate.hh` of gz-transport, and the manual of libzmq (zmq_setsockopt).
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import struct
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from navsense.core.errors import RecordingError, Where
from navsense.core.text import format_count
from navsense.streams.gz.directory import Directory
from navsense.streams.gz.discovery import Advert, AdvertisedTopic, Discovery
from navsense.streams.gz.services import GzService, Handler, ServiceServer
from navsense.streams.gz.settings import Settings, resolve_host
from navsense.streams.gz.versions import get_type_name

LOG = logging.getLogger(__name__)
"""Logs queues that overflow, and programs that are not nodes."""

CLOSE_TIMEOUT = 5.0
"""Longest time (s) that `close` waits until the subscribers have received their queues."""

REGISTRATION_TIMEOUT = 3.0
"""Time (s) after a subscription within which a subscriber sends NEW_CONNECTION."""

MAX_INPUT_BYTES = 1 << 16
"""Longest message from a subscriber (bytes). A subscription has the name of a topic; a longer message is invalid."""

MAX_INPUTS = 10_000
"""Number of subscriptions that are handled at a time."""


class GzTopic:
    """A topic of a node.

    has_subscribers: true if a subscriber has asked for it.
    check_time: monotonic time (s) at which a subscriber should have sent NEW_CONNECTION; None without a check.
    """

    def __init__(self, topic: AdvertisedTopic, address: str) -> None:
        """Encode the frames that all messages have."""
        self.topic, self.has_subscribers = topic, False
        self.check_time: float | None = None
        self.name, self.address, self.type = topic.name.encode(), address.encode(), topic.type.encode()
        self.count = 0


class GzNode:
    """Publishes topics. One thread at a time calls its methods."""

    def __init__(self, settings: Settings, topics: Sequence[AdvertisedTopic], where: Where) -> None:
        """Open the socket and start the discovery. Raises `RecordingError`."""
        zmq = import_zmq(where)
        self._zmq, self.where, self._settings = zmq, where, settings
        self._has_statistics = settings.has_statistics
        self._services: ServiceServer | None = None
        self._lock = threading.Lock()
        self._filters: set[bytes] = set()
        self._has_stranger = False
        self.subscriber_count = self.overflow_count = 0
        host, process = self._host, self._process = resolve_host(settings, where), str(uuid4())
        self._context = zmq.Context()
        try:
            self._socket = self._open_socket(settings, host)
            address = self._socket.get_string(zmq.LAST_ENDPOINT)
            self.port = int(address.rpartition(":")[2])
            self._address = address
            self.topics = {topic.name: GzTopic(topic, address) for topic in topics}
            adverts = [Advert(topic.name, address, process, process, type=topic.type) for topic in topics]
            self._directory = Directory(host, where)
            self._discovery = Discovery(
                settings,
                host,
                process,
                where,
                port=settings.discovery_port,
                adverts=adverts,
                listener=self._directory.update,
            )
        except BaseException:
            self._context.destroy(linger=0)
            raise

    def has_other_publisher(self, name: str, seconds: float) -> bool:
        """Return True if another process answers within a time (s) that it publishes a topic, by its full name."""
        self._discovery.ask(name)
        others = self._directory.wait(lambda adverts: any(advert.name == name for advert in adverts) or None, seconds)
        return others is not None

    def add_topic(self, topic: AdvertisedTopic) -> GzTopic:
        """Advertise a further topic."""
        with self._lock:
            added = GzTopic(topic, self._address)
            self.topics = {**self.topics, topic.name: added}
            added.has_subscribers = any(map(added.name.startswith, self._filters))
        self._discovery.advertise(Advert(topic.name, self._address, self._process, self._process, type=topic.type))
        return added

    def _open_socket(self, settings: Settings, host: str) -> Any:
        """Return the socket, bound to the port. Raises `RecordingError`."""
        zmq = self._zmq
        opened = self._context.socket(zmq.XPUB)
        opened.setsockopt(zmq.SNDHWM, settings.queue_messages)
        opened.setsockopt(zmq.XPUB_VERBOSE, 1)
        opened.setsockopt(zmq.XPUB_NODROP, 1)  # reports a full queue
        opened.setsockopt(zmq.MAXMSGSIZE, MAX_INPUT_BYTES)
        try:
            opened.bind(f"tcp://{host}:{settings.port or '*'}")
        except zmq.ZMQError as error:
            what, remedy = f"cannot be served: {os.strerror(error.errno).lower()}", "name an address of this machine"
            if error.errno == errno.EADDRINUSE:
                what, remedy = "port is in use", "choose another, or end the program that uses it"
            raise RecordingError(what, f"{host}:{settings.port}", where=self.where, remedy=remedy) from error
        return opened

    def update_subscribers(self) -> None:
        """Read the subscriptions that have arrived."""
        with self._lock:
            self._read_subscriptions()

    def _read_subscriptions(self) -> None:
        filters = set(self._filters)
        for _ in range(MAX_INPUTS):
            try:
                first, *others = self._socket.recv_multipart(self._zmq.NOBLOCK)
            except self._zmq.Again:
                break
            # A subscription is one frame: 1 or 0, and the beginning of the names to receive.
            kind, text = first[:1], first[1:]
            if others or not any(topic.name.startswith(text) for topic in self.topics.values()):
                continue
            if not text:
                # Nodes name a topic. ZeroMQ takes any bytes, such as HTTP, for an old program that asks for everything.
                self._warn_of_stranger()
            elif kind == b"\1":
                self.subscriber_count += 1
                filters.add(text)
            elif kind == b"\0":
                filters.discard(text)
        if filters != self._filters:
            self._filters = filters
            for topic in self.topics.values():
                had_subscribers, topic.has_subscribers = topic.has_subscribers, any(map(topic.name.startswith, filters))
                if topic.has_subscribers != had_subscribers:
                    topic.check_time = time.monotonic() + REGISTRATION_TIMEOUT if topic.has_subscribers else None
        self._check_registrations()

    def _check_registrations(self) -> None:
        """Log topics whose subscribers do not have their type: they receive the messages and ignore them."""
        now = time.monotonic()
        for topic in self.topics.values():
            if topic.check_time is not None and now >= topic.check_time:
                topic.check_time = None
                if topic.topic.name not in self._discovery.registered_topics:
                    text = f"a subscriber of {topic.topic.name} may expect another type than {topic.topic.type}"
                    LOG.warning("%s: %s; choose ?version= of the subscriber", self.where, text)

    def _warn_of_stranger(self) -> None:
        """Log once that a program has connected that is not a node. ZeroMQ does not report its address."""
        if not self._has_stranger:
            self._has_stranger = True
            text = "a program that is not a node of Gazebo transport has connected; it is ignored"
            LOG.warning("%s: %s", self.where, text)

    def wait_for_subscriber(self, seconds: float) -> bool:
        """Wait for the first subscription, and return True if it has arrived in time."""
        end = time.monotonic() + seconds
        while not self.subscriber_count and (left := end - time.monotonic()) > 0.0:
            with self._lock:
                self._socket.poll(int(1000.0 * left) + 1)
                self._read_subscriptions()
        return self.subscriber_count > 0

    def send(self, messages: Iterable[tuple[GzTopic, bytes]]) -> None:
        """Send messages without waiting for a subscriber."""
        zmq, send = self._zmq, self._socket.send
        last, more = zmq.NOBLOCK, zmq.NOBLOCK | zmq.SNDMORE
        with self._lock:
            if self._has_statistics:
                for topic, data in messages:
                    self._send_frames(topic, data)
                return
            for topic, data in messages:
                try:
                    send(topic.name, more)
                except zmq.Again:
                    self._drop(topic, data)
                    continue
                # A queue that has room for the first frame has room for all.
                send(topic.address, more)
                send(data, more)
                send(topic.type, last)

    def _send_frames(self, topic: GzTopic, data: bytes) -> None:
        """Send a message with statistics."""
        frames = [topic.name, topic.address, data, topic.type, struct.pack("<QQ", _now_ms(), topic.count)]
        topic.count += 1
        try:
            self._socket.send_multipart(frames, self._zmq.NOBLOCK)
        except self._zmq.Again:
            self._drop(topic, data)

    def _drop(self, topic: GzTopic, data: bytes) -> None:
        """Send a message to the subscribers whose queue is not full."""
        self.overflow_count += 1
        if self.overflow_count == 1:
            LOG.warning("%s: the queue of a subscriber of %s is full; it loses messages", self.where, topic.topic.name)
        frames = [topic.name, topic.address, data, topic.type]
        if self._has_statistics:
            frames.append(struct.pack("<QQ", _now_ms(), topic.count - 1))
        self._socket.setsockopt(self._zmq.XPUB_NODROP, 0)
        self._socket.send_multipart(frames, self._zmq.NOBLOCK)
        self._socket.setsockopt(self._zmq.XPUB_NODROP, 1)

    def add_service(self, name: str, request_type: str, response_type: str, handler: Handler) -> None:
        """Offer a service; it replaces one with the same name.

        name: without the partition.
        request_type, response_type: in the package `gz.msgs`; Ignition gets those of `ignition.msgs`.
        handler: gets the bytes of a request and returns those of the response, None if the service fails. It is called
            in the thread of the services. It can raise `ValueError` with the reason.

        Raises `RecordingError` if the socket of the services cannot be opened.
        """
        if self._services is None:
            self._services = ServiceServer(self._zmq, self._settings, self._host, self._process, self.where)
        request_type, response_type = (
            get_type_name(kind, self._settings.version) for kind in (request_type, response_type)
        )
        self._services.add(GzService(self._settings.make_topic(name), request_type, response_type, handler))

    def close(self) -> None:
        """Deliver the queues of the subscribers that read, and close."""
        self._close(CLOSE_TIMEOUT)
        if self.overflow_count:
            count = format_count(self.overflow_count, "time")
            LOG.warning("%s: the queue of a subscriber was full %s; it lost messages", self.where, count)

    def abort(self) -> None:
        """Close at once. Never raises."""
        with contextlib.suppress(Exception):
            self._close(0.0)

    def _close(self, timeout: float) -> None:
        """Close the socket, which sends its queues for at most `timeout` (s), then send BYE."""
        if self._services is not None:
            self._services.close()
        with self._lock:
            self._context.destroy(linger=int(1000.0 * timeout))
        self._discovery.close()


def _now_ms() -> int:
    """Return the time of the statistics (ms)."""
    return time.monotonic_ns() // 1_000_000


def import_zmq(where: Where) -> Any:
    """Import pyzmq. Raises `RecordingError` without it."""
    try:
        import zmq
    except ImportError as error:
        remedy = "pip install 'navsense[gz]'"
        raise RecordingError("Gazebo transport needs pyzmq", where=where, remedy=remedy) from error
    return zmq
