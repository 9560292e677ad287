"""The receiver of one topic of Gazebo transport: a ZeroMQ socket, the discovery, and a thread.

A publisher that vanishes is disconnected after `LAST_TIME`: its last messages can be slower than its BYE. The receiver
connects again when it is back.

Source: `NodeShared.cc` of gz-transport.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol
from uuid import uuid4

from navsense.core.errors import NavsenseError, Where
from navsense.recordings.base import make_no_thread_error
from navsense.streams.gz.directory import Directory
from navsense.streams.gz.discovery import Advert, Discovery
from navsense.streams.gz.settings import Settings, resolve_host
from navsense.streams.warning_log import WarningLog

POLL_TIME = 0.1
"""Longest time (s) between two looks at the publishers."""

LAST_TIME = 0.5
"""Time (s) in which the last messages of a publisher arrive after it has vanished."""

RETRY_INTERVAL = 5.0
"""Time (s) until a publisher is tried again whose messages cannot be read yet."""

MISSING_TIME = 5.0
"""Time (s) after which a topic without a publisher is logged."""

QUEUE_MESSAGES = 100_000
"""Number of messages in the queue of the socket."""

MAX_MESSAGE_BYTES = 1 << 24
"""Longest message (bytes). ZeroMQ closes a connection with a longer one."""


class TopicHandler(Protocol):
    """Reads the messages of a topic. The thread of the receiver calls the methods.

    accepts_many: true to connect to all publishers of the topic; false to use one of them and warn of the others.
    warnings: gets the problems of publishers.
    """

    @property
    def accepts_many(self) -> bool:
        """True to connect to all publishers."""
        ...

    @property
    def warnings(self) -> WarningLog:
        """The log of the problems of publishers."""
        ...

    def has_type(self, advert: Advert) -> bool:
        """Return True if the messages of a publisher have a type that can be read."""
        ...

    def open_publisher(self, advert: Advert) -> None:
        """Prepare for a publisher. Raises `NavsenseError` if its messages cannot be read yet."""
        ...

    def report_publisher(self, advert: Advert, *, is_connected: bool) -> None:
        """Log that a publisher is connected, or has vanished."""
        ...

    def read(self, data: bytes, advert: Advert) -> None:
        """Read a message of a publisher."""
        ...

    def fail(self, problem: str) -> None:
        """End the samples of the topic."""
        ...


class TopicReceiver:
    """Receives the messages of one topic.

    host: IPv4 address of this process.
    directory: the topics of other processes.
    is_ending: set by `close`.
    """

    def __init__(self, settings: Settings, where: Where, zmq: Any) -> None:
        """Start the discovery. Raises `RecordingError`."""
        self._settings, self._where, self._zmq = settings, where, zmq
        self.host = resolve_host(settings, where)
        self.is_ending = threading.Event()
        self.directory = Directory(self.host, where)
        self._name = ""
        self._publishers: dict[bytes, Advert] = {}
        self._last_times: dict[bytes, float] = {}
        self._next_try = 0.0
        self._thread: threading.Thread | None = None
        self._socket: Any = None
        self._context = zmq.Context()
        try:
            self._discovery = Discovery(
                settings,
                self.host,
                str(uuid4()),
                where,
                port=settings.discovery_port,
                listener=self.directory.update,
            )
        except BaseException:
            self._context.destroy(linger=0)
            raise

    def to_local_name(self, name: str) -> str:
        """Return the name of a topic without the partition."""
        return name.removeprefix(self._settings.make_topic(""))

    def find(self, topic: str, select: Callable[[list[Advert]], Advert | None], wait: float) -> Advert | None:
        """Return the publisher that `select` returns; None without one within a time (s).

        topic: the local name to ask other processes for; "" to listen only.
        """
        end = time.monotonic() + wait
        while True:
            if topic:
                self._discovery.ask(self._settings.make_topic(topic))
            left = end - time.monotonic()
            advert = self.directory.wait(select, min(max(left, 0.0), 1.0))
            if advert is not None or left <= 0.0:
                return advert

    def start(self, topic: str, reader: TopicHandler, publisher: Advert | None = None) -> None:
        """Connect to a publisher, and receive from now on. Without one, connect to those that come.

        topic: local name of the topic.
        """
        self._name, self._reader = topic, reader
        if publisher is not None:
            reader.open_publisher(publisher)
            self._connect(publisher)
        else:
            self._discovery.ask(self._settings.make_topic(topic))
        self._thread = threading.Thread(target=self._serve, name="navsense-gz-subscriber", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._thread = None
            raise make_no_thread_error(self._where) from error

    def _connect(self, advert: Advert) -> None:
        """Connect to a publisher."""
        if not self._reader.accepts_many:
            for vanished in list(self._publishers.values()):
                self._disconnect(vanished)
        if self._socket is None:
            zmq = self._zmq
            self._socket = self._context.socket(zmq.SUB)
            self._socket.setsockopt(zmq.RCVHWM, QUEUE_MESSAGES)
            self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
            self._socket.setsockopt(zmq.LINGER, 0)
            self._socket.setsockopt(zmq.SUBSCRIBE, advert.name.encode())
        self._socket.connect(advert.address)
        self._publishers[advert.address.encode()] = advert
        self._discovery.register(advert)

    def _disconnect(self, advert: Advert) -> None:
        """Disconnect from a publisher that has vanished."""
        del self._publishers[advert.address.encode()]
        self._last_times.pop(advert.address.encode(), None)
        if self._publishers:
            self._socket.disconnect(advert.address)
        else:  # a new socket has no messages of an earlier publisher
            self._socket.close()
            self._socket = None

    def _serve(self) -> None:
        """Receive until `close`."""
        missing_time: float | None = time.monotonic() + MISSING_TIME
        try:
            while not self.is_ending.is_set():
                self._update_publishers()
                if self._publishers:
                    missing_time = None
                    self._receive(POLL_TIME)
                    continue
                if missing_time is not None and time.monotonic() >= missing_time:
                    missing_time, partition = None, self._settings.partition
                    self._reader.warnings.add("missing", "", f"no publisher in the partition {partition} yet; waiting")
                self.directory.wait(self._find_publisher, POLL_TIME)
        except Exception as error:  # noqa: BLE001  # the run learns of it
            self._reader.fail(f"the receiver has failed: {error!r}")
        finally:
            if self._socket is not None:
                self._socket.close()

    def _find_publisher(self, adverts: list[Advert]) -> Advert | None:
        """Return a publisher to connect to."""
        if time.monotonic() < self._next_try:
            return None
        return next((advert for advert in self._list_publishers(adverts) if self._reader.has_type(advert)), None)

    def _list_publishers(self, adverts: list[Advert]) -> list[Advert]:
        name = self._settings.make_topic(self._name)
        return [advert for advert in adverts if advert.name == name and advert.type]

    def _update_publishers(self) -> None:
        """Disconnect from publishers that have vanished, connect to those that are there, and log further ones."""
        adverts, reader = self._list_publishers(self.directory.list_adverts()), self._reader
        for address, advert in list(self._publishers.items()):
            if advert in adverts:
                self._last_times.pop(address, None)
            elif address not in self._last_times:
                self._last_times[address] = time.monotonic() + LAST_TIME
                reader.report_publisher(advert, is_connected=False)
            elif time.monotonic() >= self._last_times[address]:
                self._disconnect(advert)
        for advert in adverts:
            address = advert.address.encode()
            current = self._publishers.get(address)
            if not reader.has_type(advert):
                text = f"process {advert.process} publishes the type {advert.type}; it is ignored"
                reader.warnings.add("type", advert.process, text)
            elif current is None and (reader.accepts_many or self._publishers.keys() <= self._last_times.keys()):
                if time.monotonic() >= self._next_try:
                    self._try_to_connect(advert)
            elif current != advert and not reader.accepts_many and address not in self._last_times:
                used = next(iter(self._publishers.values()))
                same = ", which cannot be told apart" if advert.address == used.address else " and ignored"
                text = f"two publishers: {used.address} is used; {advert.address} is another node{same}"
                reader.warnings.add("two", advert.process, text)

    def _try_to_connect(self, advert: Advert) -> None:
        """Connect to a publisher, or try again later if its messages cannot be read yet."""
        try:
            self._reader.open_publisher(advert)
        except NavsenseError as error:
            self._reader.warnings.add("open", "", str(error))
            self._next_try = time.monotonic() + RETRY_INTERVAL
            return
        self._connect(advert)
        self._reader.report_publisher(advert, is_connected=True)

    def _receive(self, seconds: float) -> None:
        """Receive messages for a time (s)."""
        zmq, opened, publishers, reader = self._zmq, self._socket, self._publishers, self._reader
        opened.setsockopt(zmq.RCVTIMEO, int(1000 * seconds))
        end, name = time.monotonic() + seconds, self._settings.make_topic(self._name).encode()
        receive, get_option, has_more = opened.recv, opened.getsockopt, zmq.RCVMORE
        living: set[str] = set()
        while time.monotonic() < end:
            try:
                # One call that waits takes half of the time of a poller and a call; `recv_multipart` asks after each
                # frame whether there are more. A message with fewer frames takes the rest from the next one.
                frames = (receive(), receive(), receive(), receive())
            except zmq.Again:
                break
            while get_option(has_more):  # statistics, or not a message
                receive()
            advert = publishers.get(frames[1])
            if advert is not None and frames[3] == advert.type.encode() and frames[0] == name:
                living.add(advert.process)
                reader.read(frames[2], advert)
            elif frames[0] == name or not frames[0].startswith(name):  # not one of a topic with a longer name
                text = f"a message of {frames[1][:80]!r} with the type {frames[3][:80]!r} is ignored"
                reader.warnings.add("other", "", text)
        for process in living:
            self.directory.touch(process)

    def close(self) -> None:
        """Stop the thread and close the sockets."""
        self.is_ending.set()
        if self._thread is not None:
            self._thread.join(5.0)
        self._discovery.close()
        self._context.destroy(linger=0)
