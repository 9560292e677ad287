"""Discovery of Gazebo transport: datagrams that announce topics and services to other programs.

All programs send to one multicast group, on one port for topics and on another for services. A datagram is the length
of the message (2 bytes, little endian) and a `gz.msgs.Discovery` in protobuf::

    HEARTBEAT, ADVERTISE     each second, ADVERTISE for every topic or service
    SUBSCRIBE                asks for a topic or a service
    ADVERTISE                the answer to SUBSCRIBE of a topic or service of this process
    BYE                      at the end

Subscribers connect to the address in ADVERTISE. They send NEW_CONNECTION if they have the type of the topic. The ZeroMQ
socket knows the subscriptions more exactly, so END_CONNECTION is ignored. `directory` has the topics and services of
other processes.

Datagrams with the flag RELAY come from another network; they are forwarded to the group with the flag NO_RELAY.

Sources: `Discovery.hh` of gz-transport and `discovery.proto` of gz-msgs.
"""

from __future__ import annotations

import contextlib
import enum
import ipaddress
import logging
import os
import selectors
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from navsense.core.errors import RecordingError, Where
from navsense.messages.gz import LENGTH_DELIMITED, VARINT, encode_int, encode_nested
from navsense.recordings.base import make_no_thread_error
from navsense.recordings.gazebo_poses import iterate_fields
from navsense.streams.gz.settings import Settings
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)
"""Logs peers that cannot be understood, each once."""

WIRE_VERSION, STATISTICS_VERSION = 10, 110
"""Version of the protocol, without and with statistics in each message."""

HEARTBEAT_INTERVAL, SILENCE = 1.0, 3.0
"""Time (s) from one heartbeat to the next, and time after which a silent process has vanished."""

MAX_DATAGRAM = 0xFFFF
"""Longest datagram (bytes)."""

BURST_DATAGRAMS, BURST_PAUSE = 16, 2e-3
"""A pause (s) after this number of datagrams: a flood of datagrams takes no processor time from the run."""

MAX_RELAYS = 16
"""Largest number of relays: a program with many addresses does not use up memory."""

IP_MULTICAST_ALL = 49
"""Option of Linux that Python does not name; 0 receives from the networks of this socket only."""


class MessageType(enum.IntEnum):
    """Type of a discovery message."""

    ADVERTISE = 1
    SUBSCRIBE = 2
    UNADVERTISE = 3
    HEARTBEAT = 4
    BYE = 5
    NEW_CONNECTION = 6


class AdvertScope(enum.IntEnum):
    """Which programs may use a topic or service."""

    PROCESS = 0
    HOST = 1
    ALL = 2


@dataclass(frozen=True)
class AdvertisedTopic:
    """A topic to advertise: its full name and the full name of its message type."""

    name: str
    type: str


@dataclass(frozen=True)
class Advert:
    """A topic or a service of a process, as ADVERTISE has it.

    name: full name.
    address: tcp://HOST:PORT of the messages or requests.
    process, node: UUIDs.
    type: of the messages of a topic; "" for a service.
    control: UUID of the publisher in NEW_CONNECTION. The library sends "unused" in ADVERTISE.
    socket_id, request_type, response_type: of a service; "" for a topic.
    """

    name: str
    address: str
    process: str
    node: str
    scope: int = AdvertScope.ALL
    type: str = ""
    control: str = "unused"
    socket_id: str = ""
    request_type: str = ""
    response_type: str = ""

    @property
    def is_service(self) -> bool:
        """True for a service."""
        return bool(self.socket_id)


@dataclass(frozen=True)
class DiscoveryMessage:
    """The fields of a discovery message.

    process: UUID of the sender.
    topic: of SUBSCRIBE and of messages with an advert; "" in other messages.
    publisher: UUID of the process to which NEW_CONNECTION is addressed; "" in other messages.
    advert: the topic or service of ADVERTISE and UNADVERTISE; None in other messages.
    """

    version: int = 0
    type: int = 0
    process: str = ""
    topic: str = ""
    publisher: str = ""
    is_relayed: bool = False
    is_not_for_relays: bool = False
    advert: Advert | None = None


Listener = Callable[[DiscoveryMessage, str], None]
"""Gets each message of another process, and the address of its sender, in the thread of the discovery."""

Fields = Mapping[int, int | bytes]
"""Tag (number and wire type) of each field of a message -> its value."""


def _get_text(fields: Fields, number: int) -> str:
    value = fields.get(number << 3 | LENGTH_DELIMITED, b"")
    return value.decode() if isinstance(value, bytes) else ""


def _get_number(fields: Fields, number: int) -> int:
    value = fields.get(number << 3 | VARINT, 0)
    return value if isinstance(value, int) else 0


def _get_message(fields: Fields, number: int) -> Fields:
    value = fields.get(number << 3 | LENGTH_DELIMITED, b"")
    return dict(iterate_fields(value)) if isinstance(value, bytes) else {}


def parse_datagram(data: bytes) -> DiscoveryMessage:
    """Return the message of a datagram. Raises `ValueError`."""
    if len(data) < 2 or int.from_bytes(data[:2], "little") != len(data) - 2:
        raise ValueError("its length is wrong")
    fields = dict(iterate_fields(data[2:]))
    flags, subscriber, publisher = (_get_message(fields, number) for number in (5, 6, 7))
    process, kind = _get_text(fields, 3), _get_number(fields, 4)
    if not process:
        raise ValueError("it has no sender")
    return DiscoveryMessage(
        version=_get_number(fields, 2),
        type=kind,
        process=process,
        topic=_get_text(subscriber, 1) or _get_text(publisher, 1),
        publisher=_get_text(_get_message(publisher, 6), 1),
        is_relayed=bool(_get_number(flags, 1)),
        is_not_for_relays=bool(_get_number(flags, 2)),
        advert=_parse_advert(publisher, process) if kind in (MessageType.ADVERTISE, MessageType.UNADVERTISE) else None,
    )


def _parse_advert(publisher: Fields, process: str) -> Advert | None:
    """Return the topic or service of a process; None without a name."""
    message, service = _get_message(publisher, 6), _get_message(publisher, 7)
    name = _get_text(publisher, 1)
    if not name:
        return None
    return Advert(
        name=name,
        address=_get_text(publisher, 2),
        process=process,
        node=_get_text(publisher, 4),
        scope=_get_number(publisher, 5),
        type=_get_text(message, 2),
        control=_get_text(message, 1),
        socket_id=_get_text(service, 1),
        request_type=_get_text(service, 2),
        response_type=_get_text(service, 3),
    )


def encode_advert(advert: Advert) -> bytes:
    """Return the field of a topic or service in a discovery message."""
    texts = ((1, advert.name), (2, advert.address), (3, advert.process), (4, advert.node))
    publisher = b"".join(encode_nested(number, text.encode()) for number, text in texts)
    parts: tuple[str, ...] = (advert.control, advert.type)
    if advert.is_service:
        parts = (advert.socket_id, advert.request_type, advert.response_type)
    kind = b"".join(encode_nested(number, text.encode()) for number, text in enumerate(parts, 1))
    publisher += encode_int(5, advert.scope) + encode_nested(7 if advert.is_service else 6, kind)
    return encode_nested(7, publisher)


def encode_datagram(body: bytes, *, is_relayed: bool = False, is_not_for_relays: bool = False) -> bytes:
    """Return a datagram with a message; its flags come last, so they replace those in the message."""
    if is_relayed or is_not_for_relays:
        body += encode_nested(5, encode_int(1, is_relayed, required=True) + encode_int(2, is_not_for_relays))
    return len(body).to_bytes(2, "little") + body


class Discovery:
    """Advertises topics or services, and listens to those of other processes, in its own thread, until `close`.

    registered_topics: full names of the topics that a subscriber with their type has asked for.
    """

    def __init__(
        self,
        settings: Settings,
        host: str,
        process: str,
        where: Where,
        *,
        port: int,
        adverts: Iterable[Advert] = (),
        listener: Listener | None = None,
    ) -> None:
        """Open the sockets and start the thread.

        host: IPv4 address of the network to use.
        process: UUID of this process.
        port: that of topics or that of services.
        adverts: the topics or services of this process.

        Raises `RecordingError`.
        """
        self._where, self._process, self._listener = where, process, listener
        self._is_loopback = ipaddress.IPv4Address(host).is_loopback
        self._version = STATISTICS_VERSION if settings.has_statistics else WIRE_VERSION
        self._group = (settings.group, port)
        self._relays = [] if self._is_loopback else [(relay, port) for relay in settings.relays]
        if self._is_loopback and settings.relays:
            LOG.warning("%s: relays are ignored, as other machines cannot reach %s; name another host", where, host)
        self._adverts = {advert.name: self._encode_advert(advert) for advert in adverts}
        self.registered_topics: set[str] = set()
        self._warnings = WarningLog(LOG, where)
        self._ending = threading.Event()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        try:
            self._socket = _open_socket(host, self._group)
        except OSError as error:
            self._wake_receiver.close()
            self._wake_sender.close()
            what = (
                f"discovery on {host} with the group {self._group[0]} cannot be opened: {os.strerror(error.errno or 0)}"
            )
            raise RecordingError(what.lower(), where=where, remedy="name an IPv4 address of this machine") from error
        self._selector = selectors.DefaultSelector()
        for source in (self._socket, self._wake_receiver):
            self._selector.register(source, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="navsense-gz", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._close_sockets()
            raise make_no_thread_error(where) from error

    def close(self) -> None:
        """Send BYE and stop the thread. Never raises; a second call does nothing."""
        if not self._ending.is_set():
            self._ending.set()
            with contextlib.suppress(OSError):
                self._wake_sender.send(b"\0")
            self._thread.join(5.0)

    def _encode_message(self, kind: MessageType, contents: bytes = b"") -> bytes:
        body = encode_int(2, self._version) + encode_nested(3, self._process.encode()) + encode_int(4, kind)
        return body + contents

    def _encode_advert(self, advert: Advert) -> bytes:
        return self._encode_message(MessageType.ADVERTISE, encode_advert(advert))

    def advertise(self, advert: Advert) -> None:
        """Add a topic or a service of this process."""
        body = self._encode_advert(advert)
        self._adverts = {**self._adverts, advert.name: body}
        self._send(body)

    def ask(self, name: str) -> None:
        """Ask other processes for a topic or service by its full name."""
        self._send(self._encode_message(MessageType.SUBSCRIBE, encode_nested(6, encode_nested(1, name.encode()))))

    def register(self, advert: Advert) -> None:
        """Tell the publisher of a topic that this process subscribes to it."""
        connection = replace(advert, address="", process=self._process, node=self._process, control=advert.process)
        self._send(self._encode_message(MessageType.NEW_CONNECTION, encode_advert(connection)))

    def _send(self, body: bytes) -> None:
        """Send a message to the group and to the relays."""
        self._send_to(self._group, encode_datagram(body))
        self._send_to_relays(body)

    def _send_to_relays(self, body: bytes) -> None:
        for relay in self._relays:
            self._send_to(relay, encode_datagram(body, is_relayed=True))

    def _send_to(self, address: tuple[str, int], datagram: bytes) -> None:
        """Send a datagram. One that the system cannot send now is lost, as on the network."""
        try:
            self._socket.sendto(datagram, address)
        except OSError as error:
            self._warn(f"send {address[0]}", f"a datagram to {address[0]} cannot be sent: {error.strerror}")

    def _serve(self) -> None:
        next_heartbeat = time.monotonic()
        while not self._ending.is_set():
            now = time.monotonic()
            if now >= next_heartbeat:
                next_heartbeat = now + HEARTBEAT_INTERVAL
                for body in (self._encode_message(MessageType.HEARTBEAT), *self._adverts.values()):
                    self._send(body)
            ready = self._selector.select(max(next_heartbeat - time.monotonic(), 0.0))
            if any(key.fileobj is self._socket for key, _ in ready):
                self._receive()
        self._send(self._encode_message(MessageType.BYE))
        self._close_sockets()

    def _receive(self) -> None:
        """Handle the datagrams that have arrived."""
        for _ in range(BURST_DATAGRAMS):
            try:
                data, (host, port) = self._socket.recvfrom(MAX_DATAGRAM)
            except OSError:  # none left, or the answer of a relay that has no program
                return
            if self._is_loopback and not ipaddress.IPv4Address(host).is_loopback:
                continue
            try:
                message = parse_datagram(data)
            except ValueError as error:
                self._warn(f"invalid {host}", f"a datagram of {host}:{port} is not a discovery message: {error}")
                continue
            self._handle(message, data, host)
        time.sleep(BURST_PAUSE)

    def _handle(self, message: DiscoveryMessage, data: bytes, host: str) -> None:
        """Answer a message of another process, and forward it to other networks."""
        if message.process == self._process:
            return
        if message.version != self._version:
            problem = f"process {message.process} at {host} has version {message.version} of the protocol"
            self._warn(f"version {message.process}", f"{problem}, not {self._version}; it is ignored")
            return
        if message.is_relayed:
            self._send_to(self._group, encode_datagram(data[2:], is_not_for_relays=True))
            relay = (host, self._group[1])
            if relay not in self._relays and len(self._relays) < MAX_RELAYS:
                self._relays.append(relay)
            return
        if not message.is_not_for_relays:
            self._send_to_relays(data[2:])
        if self._listener is not None:
            self._listener(message, host)
        if message.topic not in self._adverts:
            return
        if message.type == MessageType.SUBSCRIBE:
            self._send(self._adverts[message.topic])
        elif message.type == MessageType.NEW_CONNECTION and message.publisher == self._process:
            self.registered_topics.add(message.topic)

    def _warn(self, key: str, text: str) -> None:
        """Log a warning about a peer, once for each key."""
        self._warnings.add(key, "", text)

    def _close_sockets(self) -> None:
        for one in (self._selector, self._socket, self._wake_receiver, self._wake_sender):
            one.close()


def _open_socket(host: str, group: tuple[str, int]) -> socket.socket:
    """Return a socket that sends to and receives from a multicast group, on the network of a host. Raises `OSError`."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform != "win32":  # other programs of this machine have the same port
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(host))
        is_loopback = ipaddress.IPv4Address(host).is_loopback
        if is_loopback:
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        if sys.platform == "linux":
            opened.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
        # Datagrams of relays go to the address of this machine, all others to the group, which Windows cannot bind to.
        has_address = is_loopback and sys.platform != "win32"
        opened.bind((group[0] if has_address else "", group[1]))
        membership = struct.pack("4s4s", socket.inet_aton(group[0]), socket.inet_aton(host))
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except BaseException:
        opened.close()
        raise
    return opened
