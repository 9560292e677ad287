"""A subscription of a ROS 1 node: a connection to each publisher of a topic, each in a thread of its own.

The master lists the publishers: at the registration, and in `publisherUpdate` later. A publisher that disconnects is
connected again as long as it is listed. One that is no longer listed is read to the end of its connection.

Sources: the ROS wiki, "ROS/Slave_API", "ROS/TCPROS" and "ROS/Connection Header".
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol
from urllib.parse import urlsplit

from navsense.streams.ros1 import xmlrpc
from navsense.streams.ros1.header import format_header, parse_header
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 1 << 24
"""Largest message that is accepted. That of a topic with the states of 10 000 links has 2 MB."""

MAX_PUBLISHERS = 32
"""Number of publishers of one topic that are connected."""

CONNECT_TIMEOUT = 3.0
"""Longest time (s) to connect, of a call of the Slave API, and until the header is complete."""

RECEIVE_PERIOD = 0.0025
"""Time (s) from one read of a connection to the next, unless the receiver selects it."""

PART_TIMEOUT = 5.0
"""Time (s) after which an incomplete message ends the connection."""

MIN_RETRY, MAX_RETRY = 0.1, 5.0
"""Times (s) between two attempts to connect: the first, and the largest. Each is twice the one before."""


class PeerError(Exception):
    """A publisher does not follow the protocol, or sends what the subscription cannot read. The text says how."""


@dataclass(eq=False)
class Connection:
    """A connection to a publisher.

    uri: of the Slave API of its node.
    node: its name, "" before its header.
    type: of its messages.
    is_listed: true as long as the master lists the publisher.
    is_open: true from its header on, until it disconnects.
    has_ended: true if its thread ends.
    """

    uri: str
    node: str = ""
    type: str = ""
    is_listed: bool = True
    is_open: bool = False
    has_ended: bool = False
    socket: socket.socket | None = None
    thread: threading.Thread | None = None

    @property
    def is_active(self) -> bool:
        """True until the publisher disconnects, or is not listed any more."""
        return self.is_open and self.is_listed

    def __str__(self) -> str:
        """Return the name of the node, for messages."""
        return f"node {self.node}" if self.node else f"the node at {self.uri}"


class Receiver(Protocol):
    """What a subscription passes its messages to. The methods are called in the threads of the connections."""

    def check_type(self, connection: Connection, md5: str) -> None:
        """Raise `PeerError` if messages of this type and with this sum cannot be read."""
        ...

    def handle(self, connection: Connection, message: bytes) -> None:
        """Handle a message. Raises `PeerError` if the connection has to end."""
        ...

    def fail(self, problem: str) -> None:
        """End the subscription after an error."""
        ...


@dataclass(eq=False)
class Subscription:
    """The connections to the publishers of one topic.

    topic: its name.
    type: of its messages, "*" before it is known.
    caller_id: the name of the node that subscribes.
    name: log messages begin with it, such as "ros1://127.0.0.1:11311: topic /odom".
    pause: waits after each read of a connection. A thread that wakes for each message of 1 kHz costs more than the
        messages.
    """

    topic: str
    type: str
    caller_id: str
    name: str
    receiver: Receiver
    pause: Callable[[], object] = field(default=partial(time.sleep, RECEIVE_PERIOD))
    connections: list[Connection] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start without a connection."""
        self.warnings = WarningLog(LOG, self.name)
        self._lock, self._ending = threading.Lock(), threading.Event()

    def update(self, uris: list[str]) -> None:
        """Connect to the publishers that the master lists now. Never waits."""
        with self._lock:
            if self._ending.is_set():
                return
            self.connections = [one for one in self.connections if not one.has_ended]
            for connection in self.connections:
                connection.is_listed = connection.uri in uris
            known = {one.uri for one in self.connections}
            for uri in dict.fromkeys(uris):
                if uri in known:
                    continue
                if len(self.connections) >= MAX_PUBLISHERS:
                    text = f"has more than {MAX_PUBLISHERS} publishers; the others are not connected"
                    self.warnings.add("many", "", text)
                    break
                connection = Connection(uri)
                connection.thread = threading.Thread(
                    target=self._follow, args=(connection,), name="navsense-ros1-topic", daemon=True
                )
                self.connections.append(connection)
                try:
                    connection.thread.start()
                except RuntimeError:
                    connection.has_ended, connection.thread = True, None
                    self.receiver.fail("the system starts no more threads")

    def list_open(self) -> list[Connection]:
        """Return the connections that are open."""
        with self._lock:
            return [one for one in self.connections if one.is_open]

    def close(self, timeout: float) -> None:
        """Disconnect, and wait for the threads, at most `timeout` (s). Never raises."""
        self._ending.set()
        end = time.monotonic() + timeout
        with self._lock:
            connections = list(self.connections)
            for connection in connections:
                _shut_down(connection)
        for connection in connections:
            if connection.thread is not None and connection.thread is not threading.current_thread():
                connection.thread.join(max(end - time.monotonic(), 0.0))

    def _follow(self, connection: Connection) -> None:
        """Connect to a publisher as long as the master lists it, and read its messages."""
        delay = MIN_RETRY
        try:
            while True:
                was_open = False
                try:
                    self._read(connection)
                except PeerError as error:
                    self._warn(str(error), connection, str(error))
                except OSError as error:
                    reason = "no answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
                    if connection.is_open:
                        self._warn_of_end(connection)
                    else:
                        remedy = "set ROS_IP or ROS_HOSTNAME there to an address that this machine can reach"
                        self._warn("reach", connection, f"cannot be reached: {reason.lower()}; {remedy}")
                finally:
                    was_open, connection.is_open = connection.is_open, False
                delay = MIN_RETRY if was_open else min(2.0 * delay, MAX_RETRY)
                if self._ending.wait(delay):
                    return
                with self._lock:
                    # `update` runs under the lock too: a publisher that is listed from now on gets another thread.
                    if not connection.is_listed:
                        connection.has_ended = True
                        return
        except Exception as error:
            LOG.exception("%s: %s", self.name, connection)
            self.receiver.fail(f"{connection}: internal error: {error!r}")
        finally:
            connection.has_ended = True

    def _read(self, connection: Connection) -> None:
        """Read the messages of a publisher until it disconnects. Raises `PeerError` and `OSError`."""
        address = self._request_address(connection)
        with socket.create_connection(address, CONNECT_TIMEOUT) as own:
            with self._lock:
                if self._ending.is_set():
                    return
                connection.socket = own
            own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            fields = {
                "callerid": self.caller_id,
                "topic": self.topic,
                "type": self.type,
                "md5sum": "*",
                "message_definition": "",
                "tcp_nodelay": "1",
            }
            own.sendall(format_header(fields))
            received = bytearray()
            own.settimeout(CONNECT_TIMEOUT)
            while (header := self._parse_header(received)) is None:
                data = own.recv(1 << 16)
                if not data:
                    raise PeerError("disconnected within its header")
                received += data
            del received[: 4 + int.from_bytes(received[:4], "little")]
            connection.node, connection.type = header.get("callerid", "")[:200], header.get("type", "")[:200]
            if "error" in header:
                raise PeerError(f"refuses the subscription: {header['error'][:300]}")
            if header.get("topic", self.topic) != self.topic:
                raise PeerError(f"publishes topic {header['topic'][:200]} on this connection")
            try:
                self.receiver.check_type(connection, header.get("md5sum", "")[:40])
            except PeerError as error:
                connection.is_listed = False  # it stays as it is until the master lists it again
                if not self.list_open():
                    self.receiver.fail(f"{connection} {error}")
                raise
            connection.is_open = True
            LOG.info("%s: subscribed to %s", self.name, connection)
            self._read_messages(connection, own, received)

    def _request_address(self, connection: Connection) -> tuple[str, int]:
        """Return the address of the TCPROS server of a publisher. Raises `PeerError` and `OSError`."""
        try:
            parts = urlsplit(connection.uri)
            address = (parts.hostname or "", parts.port or 0)
        except ValueError as error:
            raise PeerError("has an invalid URI") from error
        if not (address[0] and address[1]):
            raise PeerError("has an invalid URI")
        try:
            answer = xmlrpc.call(address, "requestTopic", (self.caller_id, self.topic, [["TCPROS"]]), CONNECT_TIMEOUT)
        except ValueError as error:
            raise PeerError(f"does not answer as a ROS node: {error}") from error
        return self._parse_address(answer)

    def _parse_address(self, answer: Any) -> tuple[str, int]:
        """Return the address in the result of `requestTopic`. Raises `PeerError`."""
        match answer:
            case [1, _, ["TCPROS", str(host), int(port), *_]] if 0 < port < 65536:
                return host, port
            case [int(code), text, _] if code != 1:
                raise PeerError(f"refuses the subscription: {str(text)[:300]}")
        raise PeerError("does not answer as a ROS node: the result is not the address of a TCPROS server")

    def _parse_header(self, received: bytearray) -> dict[str, str] | None:
        """Return the fields of a header, None if it is not complete. Raises `PeerError` for an invalid header."""
        try:
            return parse_header(received)
        except ValueError as error:
            raise PeerError(f"sent {error}") from error

    def _read_messages(self, connection: Connection, own: socket.socket, received: bytearray) -> None:
        """Read messages until the publisher disconnects. Raises `PeerError` and `OSError`."""
        own.settimeout(1.0)
        progress = time.monotonic()
        while True:
            del received[: self._pass_messages(connection, received)]
            self.pause()
            try:
                data = own.recv(1 << 18)
            except TimeoutError:
                if received and time.monotonic() - progress > PART_TIMEOUT:
                    raise PeerError(f"sent a part of a message and then nothing for {PART_TIMEOUT:g} s") from None
                continue
            if self._ending.is_set():
                return
            if not data:
                if received:
                    raise PeerError("disconnected within a message")
                self._warn_of_end(connection)
                return
            progress = time.monotonic()
            received += data

    def _pass_messages(self, connection: Connection, received: bytearray) -> int:
        """Pass the complete messages to the receiver, and return their bytes. Raises `PeerError`."""
        offset, end = 0, len(received)
        while end - offset >= 4:
            size = int.from_bytes(received[offset : offset + 4], "little")
            if size > MAX_MESSAGE_BYTES:
                raise PeerError(f"sent a message of {size} bytes; at most {MAX_MESSAGE_BYTES} are read")
            if end - offset < 4 + size:
                break
            self.receiver.handle(connection, bytes(received[offset + 4 : offset + 4 + size]))
            offset += 4 + size
        return offset

    def _warn(self, cause: str, connection: Connection, problem: str) -> None:
        if not self._ending.is_set():
            self.warnings.add(cause, connection, f"{connection} {problem}")

    def _warn_of_end(self, connection: Connection) -> None:
        others = [one for one in self.list_open() if one is not connection]
        waits = "" if others else "; waiting for a publisher"
        self._warn("end", connection, f"has disconnected{waits}")


def _shut_down(connection: Connection) -> None:
    """Wake the thread that reads a connection."""
    if connection.socket is not None:
        with contextlib.suppress(OSError):
            connection.socket.shutdown(socket.SHUT_RDWR)
