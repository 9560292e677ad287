"""A ROS 1 node with publishers and services: the Slave API and TCPROS on one port, in a thread of its own.

Each connection of a subscriber has a queue. If it is full, the oldest messages of this subscriber are dropped and
counted. No method waits for a peer, except `finish`.

The first bytes of a connection tell what it is: a header of TCPROS begins with its length, a request of the Slave API
with "POST", which is no length that is accepted.

Sources: the ROS wiki, "ROS/Slave_API" and "ROS/TCPROS".
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import selectors
import socket
import threading
import time
import xmlrpc.client
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from navsense.core.errors import RecordingError, Where
from navsense.core.text import format_count
from navsense.recordings.base import make_no_thread_error
from navsense.streams.ros1 import xmlrpc as rpc
from navsense.streams.ros1.header import format_header, parse_header
from navsense.streams.tcp_server import CLOSE_TIMEOUT, MAX_QUEUE_BYTES, STALL_TIMEOUT
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)

SEND_BYTES = 1 << 20
"""Bytes that are sent to one subscriber before others get their turn."""

MAX_CONNECTIONS = 500
"""Number of open connections."""

HANDSHAKE_TIMEOUT = 5.0
"""Time (s) in which a peer has to send its header or request."""

SUCCESS, ERROR = 1, -1
"""Codes of the results of the Slave API."""


_own_uris: set[str] = set()
"""URIs of the nodes of this process."""


def is_own_node(uri: str) -> bool:
    """Return True for the URI of a node of this process."""
    return uri in _own_uris


class Packet(NamedTuple):
    """Bytes of messages in the form of TCPROS, each with its length, and the number of messages."""

    data: memoryview
    messages: int


@dataclass(eq=False)
class Ros1Topic:
    """A topic that the node publishes.

    type, md5, definition: of its messages; the type as in `sensor_msgs/Imu`.
    latched: true if late subscribers get the last message, which is `last`.
    dropped: the number of messages that slow subscribers did not get.
    """

    name: str
    type: str
    md5: str
    definition: str
    latched: bool = False
    last: Packet | None = None
    dropped: int = 0
    subscribers: list[_Peer] = field(default_factory=list)


@dataclass(frozen=True)
class Service:
    """A service of the node.

    type, md5: as in `std_srvs/SetBool`, and of its definition.
    other_types: other types with the same bytes, by MD5 sum. A client that asks for one of them gets it.
    handle: returns the response to a request, both in the serialisation of ROS 1. It is called in the thread of the
        node and must not wait. It raises `ValueError` for an invalid request.
    """

    name: str
    type: str
    md5: str
    handle: Callable[[bytes], bytes]
    other_types: Mapping[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class _Peer:
    """A connection.

    topic, service: that of a subscriber or of a client of a service. None before its header, and for calls of the
        Slave API.
    is_persistent: true if the client of a service sends several requests.
    queue, size: what is not sent yet, and its bytes.
    is_head_partial: true if a part of the first packet is sent.
    deadline: monotonic time (s) at which a peer without a topic is disconnected.
    last_progress: monotonic time (s) when bytes were last sent, or the queue was last empty.
    closes: true if the connection is closed when the queue is empty.
    """

    connection: socket.socket
    name: str
    number: int
    deadline: float
    topic: Ros1Topic | None = None
    service: Service | None = None
    is_persistent: bool = False
    caller_id: str = ""
    received: bytearray = field(default_factory=bytearray)
    queue: deque[Packet] = field(default_factory=deque)
    size: int = 0
    is_head_partial: bool = False
    events: int = selectors.EVENT_READ
    last_progress: float = field(default_factory=time.monotonic)
    sent_count: int = 0
    sent_bytes: int = 0
    dropped: int = 0
    closes: bool = False


class Ros1Node:
    """A ROS 1 node with publishers and services."""

    def __init__(
        self,
        host: str,
        *,
        caller_id: str,
        master_uri: str,
        name: str,
        where: Where,
        api: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        """Listen on a free port of `host`. Log messages begin with `name`. Raises `RecordingError`.

        api: methods of the Slave API that replace those of a node without subscriptions. They are called in the thread
            of the node and must not wait.
        """
        self.caller_id, self._master_uri, self._name = caller_id, master_uri, name
        self.shutdown_reason = ""
        """Why the node has to end: another program has shut it down, or an error. "" if it goes on."""
        self.subscriber_count = self.sent_messages = 0
        """Number of subscriptions so far, and of messages sent to all of them."""
        try:
            family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
            self._listener = socket.create_server((host, 0), family=family)
        except (OSError, ValueError) as error:
            allowed = "must be a name or an address of this machine"
            raise RecordingError("option host", host, where=where, allowed=allowed) from error
        self._listener.setblocking(False)
        self.host: str = host
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._topics: dict[str, Ros1Topic] = {}
        self._services: dict[str, Service] = {}
        self._peers: dict[socket.socket, _Peer] = {}
        self._peer_number = 0
        self._warnings = WarningLog(LOG, name)
        self._connected, self._ending = threading.Event(), threading.Event()
        self._wake_sender, self._wake_receiver = socket.socketpair()
        for end in (self._wake_sender, self._wake_receiver):
            end.setblocking(False)
        self._selector = selectors.DefaultSelector()
        for source in (self._listener, self._wake_receiver):
            self._selector.register(source, selectors.EVENT_READ)
        self._api: dict[str, Callable[..., Any]] = {
            "getBusInfo": lambda: [SUCCESS, "", self._list_connections()],
            "getBusStats": lambda: [SUCCESS, "", [self._list_statistics(), [], []]],
            "getMasterUri": lambda: [SUCCESS, "", self._master_uri],
            "getPid": lambda: [SUCCESS, "", os.getpid()],
            "getPublications": lambda: [SUCCESS, "", [[one.name, one.type] for one in self._topics.values()]],
            "getSubscriptions": lambda: [SUCCESS, "", []],
            "paramUpdate": lambda *_: [SUCCESS, "", 0],
            "publisherUpdate": lambda *_: [SUCCESS, "", 0],
            "requestTopic": self._request_topic,
            "shutdown": self._shut_down,
            **(api or {}),
        }
        self._thread = threading.Thread(target=self._serve, name="navsense-ros1", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            for resource in (self._listener, self._wake_receiver, self._wake_sender, self._selector):
                resource.close()
            raise make_no_thread_error(where) from error
        _own_uris.add(self.uri)

    @property
    def uri(self) -> str:
        """The URI of the Slave API."""
        return f"http://[{self.host}]:{self.port}/" if ":" in self.host else f"http://{self.host}:{self.port}/"

    def add_topic(self, topic: Ros1Topic) -> None:
        """Accept subscribers of a topic."""
        with self._lock:
            self._topics[topic.name] = topic

    @property
    def service_uri(self) -> str:
        """The address of the services."""
        return f"rosrpc://{self.uri.partition('://')[2].rstrip('/')}"

    def add_service(self, service: Service) -> None:
        """Accept clients of a service."""
        with self._lock:
            self._services[service.name] = service

    def end(self, reason: str) -> None:
        """Store why the node has to end; the run ends it."""
        self.shutdown_reason = reason

    def wait(self, seconds: float) -> None:
        """Wait for the first subscriber, at most `seconds`."""
        if seconds > 0.0 and not self._connected.wait(seconds):
            LOG.warning("%s: no subscriber connected within %g s; the run continues", self._name, seconds)

    def publish(self, topic: Ros1Topic, packets: Sequence[Packet]) -> None:
        """Send messages to the subscribers of a topic, or queue them. A packet of a latched topic is one message.

        An empty queue is sent from here: a wake of the thread costs more than the call of the operating system.
        """
        needs_thread = False
        with self._lock:
            if topic.latched and packets:
                topic.last = packets[-1]
            for peer in list(topic.subscribers):
                was_empty = not peer.queue
                for packet in packets:
                    self._queue(peer, packet)
                if was_empty:
                    self._send(peer)
                needs_thread = needs_thread or bool(peer.queue)
        if needs_thread:
            self._wake()

    def finish(self) -> None:
        """Accept no more connections, and wait until all subscribers that make progress have received everything."""
        with self._lock:
            self._close_listener()
        self._wait_for(lambda peer: bool(peer.queue), CLOSE_TIMEOUT)
        with self._lock:
            for peer in self._list_subscribers():
                if peer.queue:
                    self._warn("did not receive all data", peer)
                    if peer.topic:
                        peer.topic.dropped += sum(packet.messages for packet in peer.queue)
                    self._disconnect(peer)
                else:
                    # The subscriber reads to the end and disconnects. Until then the master must list the node: roscpp
                    # disconnects at once from a publisher that is no longer listed.
                    peer.last_progress = time.monotonic()
                    with contextlib.suppress(OSError):
                        peer.connection.shutdown(socket.SHUT_WR)
        self._wait_for(lambda _: True, CLOSE_TIMEOUT)

    def stop(self) -> None:
        """Disconnect at once, and log the numbers of messages. Never raises."""
        if self._ending.is_set():
            return
        self._ending.set()
        self._wake()
        self._thread.join(5.0)
        _own_uris.discard(self.uri)
        for topic in self._topics.values():
            if topic.dropped:
                count = format_count(topic.dropped, "message")
                LOG.warning("%s: topic %s: %s dropped for slow subscribers", self._name, topic.name, count)

    def _wait_for(self, is_busy: Callable[[_Peer], bool], timeout: float) -> None:
        """Wait while a subscriber is busy and makes progress."""
        end = time.monotonic() + timeout
        while (now := time.monotonic()) < end and not self._ending.is_set():
            with self._lock:
                busy = (peer for peer in self._list_subscribers() if is_busy(peer))
                if not any(now - peer.last_progress < STALL_TIMEOUT for peer in busy):
                    return
            time.sleep(0.005)

    def _list_subscribers(self) -> list[_Peer]:
        return [peer for topic in self._topics.values() for peer in topic.subscribers]

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_sender.send(b"\0")

    def _warn(self, what: str, peer: _Peer) -> None:
        """Log a warning about a peer."""
        topic = f" of topic {peer.topic.name}" if peer.topic else ""
        role = "subscriber" if peer.topic else "client"
        who = f"{role} {peer.caller_id} at {peer.name}" if peer.caller_id else f"peer {peer.name}"
        self._warnings.add(what, peer.name, f"{who}{topic} {what}")

    def _queue(self, peer: _Peer, packet: Packet) -> None:
        """Queue messages of a subscriber; drop its oldest ones if the queue is full. The caller holds the lock."""
        first = 1 if peer.is_head_partial else 0
        while peer.size + len(packet.data) > MAX_QUEUE_BYTES and len(peer.queue) > first:
            oldest = peer.queue[first]
            del peer.queue[first]
            peer.size -= len(oldest.data)
            if not peer.dropped:
                self._warn("is too slow; its oldest messages are dropped", peer)
            peer.dropped += oldest.messages
            if peer.topic:
                peer.topic.dropped += oldest.messages
        if not peer.queue:
            peer.last_progress = time.monotonic()
        peer.queue.append(packet)
        peer.size += len(packet.data)

    def _send(self, peer: _Peer) -> None:
        """Send what the connection of a peer takes now, about `SEND_BYTES` at most. The caller holds the lock."""
        first = peer.sent_bytes
        try:
            while peer.queue and peer.sent_bytes - first < SEND_BYTES:
                data, count = peer.queue[0]
                sent = peer.connection.send(data)
                peer.last_progress = time.monotonic()
                peer.size -= sent
                peer.sent_bytes += sent
                peer.is_head_partial = sent < len(data)
                if peer.is_head_partial:
                    peer.queue[0] = Packet(data[sent:], count)
                else:
                    peer.queue.popleft()
                    peer.sent_count += count
                    self.sent_messages += count
        except BlockingIOError:
            return
        except OSError:
            self._disconnect(peer)
            return
        if peer.closes and not peer.queue:
            self._disconnect(peer)

    def _disconnect(self, peer: _Peer) -> None:
        """Disconnect a peer. The caller holds the lock."""
        self._peers.pop(peer.connection, None)
        if peer.topic and peer in peer.topic.subscribers:
            peer.topic.subscribers.remove(peer)
        with contextlib.suppress(OSError, ValueError, KeyError):
            self._selector.unregister(peer.connection)
        with contextlib.suppress(OSError):
            peer.connection.close()
        peer.queue.clear()
        peer.size = 0

    def _close_listener(self) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            self._selector.unregister(self._listener)
        self._listener.close()

    def _serve(self) -> None:
        try:
            while not self._ending.is_set():
                self._wait_for_events()
        except Exception as error:
            LOG.exception("%s: node %s", self._name, self.caller_id)
            self._api["shutdown"](f"internal error: {error!r}")
        with self._lock:
            for peer in list(self._peers.values()):
                self._disconnect(peer)
            self._close_listener()
            self._wake_receiver.close()
            self._wake_sender.close()
            self._selector.close()

    def _wait_for_events(self) -> None:
        """Handle the events of the sockets, and disconnect peers that are late with their header."""
        with self._lock:
            for peer in self._peers.values():
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.queue else 0)
                if events != peer.events:
                    self._selector.modify(peer.connection, events)
                    peer.events = events
        ready = self._selector.select(1.0)
        with self._lock:
            for key, events in ready:
                self._handle_events(key.fileobj, events)
            now = time.monotonic()
            for peer in [one for one in self._peers.values() if one.topic is None and one.deadline < now]:
                self._warn("did not send a complete header or request in time", peer)
                self._disconnect(peer)

    def _handle_events(self, ready: object, events: int) -> None:
        """Handle the events of a socket. The caller holds the lock."""
        if ready is self._listener:
            self._accept()
        elif ready is self._wake_receiver:
            with contextlib.suppress(OSError):
                self._wake_receiver.recv(4096)
        elif isinstance(ready, socket.socket) and ready in self._peers:
            peer = self._peers[ready]
            if events & selectors.EVENT_READ:
                self._receive(peer)
            if events & selectors.EVENT_WRITE and ready in self._peers:
                self._send(peer)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, address = self._listener.accept()
            self._peer_number += 1
            deadline = time.monotonic() + HANDSHAKE_TIMEOUT
            peer = _Peer(connection, f"{address[0]}:{address[1]}", self._peer_number, deadline)
            if len(self._peers) >= MAX_CONNECTIONS:
                self._warn(f"is refused: {MAX_CONNECTIONS} connections are open", peer)
                connection.close()
                return
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(connection, selectors.EVENT_READ)
            self._peers[connection] = peer

    def _receive(self, peer: _Peer) -> None:
        """Read what a peer sends. A subscriber sends nothing after its header, so what it sends is ignored."""
        try:
            data = peer.connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            if peer.topic is None and peer.received and not peer.closes:
                self._warn("has disconnected within its header or request", peer)
            self._disconnect(peer)
        elif peer.topic is None and not peer.closes:
            peer.received += data
            try:
                self._parse(peer)
            except ValueError as error:
                self._warn(f"is disconnected: it sent {error}", peer)
                self._disconnect(peer)

    def _parse(self, peer: _Peer) -> None:
        """Handle a header or a request, if it is complete. Raises `ValueError` if it is invalid."""
        if peer.service is not None:
            self._answer_requests(peer, peer.service)
        elif b"POST".startswith(bytes(peer.received[:4])):
            request = rpc.split_message(peer.received)
            if request is not None:
                self._reply(peer, rpc.format_response(self._call(*rpc.parse_body(request[1]))))
            elif len(peer.received) > rpc.MAX_REQUEST_BYTES:
                raise ValueError(f"a request of more than {rpc.MAX_REQUEST_BYTES} bytes")
        elif (fields := parse_header(peer.received)) is not None:
            del peer.received[: 4 + int.from_bytes(peer.received[:4], "little")]
            peer.caller_id = fields.get("callerid", "")[:200]
            if "service" in fields:
                self._connect_service(peer, fields)
            else:
                self._subscribe(peer, fields)

    def _connect_service(self, peer: _Peer, fields: dict[str, str]) -> None:
        """Answer the header of a client of a service. A probe only wants the answer."""
        name, md5 = fields["service"][:200], fields.get("md5sum", "")[:40]
        service, problem = self._services.get(name), ""
        if service is None:
            problem = f"service {name} is not offered by {self.caller_id}"
        elif md5 not in ("*", service.md5, *service.other_types):
            problem = f"service {name} is {service.type} with md5sum {service.md5}, not {md5}"
        if service is None or problem:
            self._refuse(peer, problem)
            return
        kind = service.other_types.get(md5, service.type)
        answer = {
            "callerid": self.caller_id,
            "md5sum": md5 if md5 in service.other_types else service.md5,
            "request_type": f"{kind}Request",
            "response_type": f"{kind}Response",
            "type": kind,
        }
        if fields.get("probe") == "1":
            self._reply(peer, format_header(answer))
            return
        peer.service, peer.is_persistent = service, fields.get("persistent", "0").lower() in ("1", "true")
        if peer.is_persistent:
            peer.deadline = math.inf
        self._queue(peer, Packet(memoryview(format_header(answer)), 0))
        self._send(peer)
        if peer.connection in self._peers:
            self._answer_requests(peer, service)

    def _answer_requests(self, peer: _Peer, service: Service) -> None:
        """Answer the complete requests of a client. Raises `ValueError` for one that is too large."""
        while len(peer.received) >= 4 and not peer.closes:
            size = int.from_bytes(peer.received[:4], "little")
            if size > rpc.MAX_REQUEST_BYTES:
                raise ValueError(f"a request of {size} bytes to service {service.name}")
            if len(peer.received) < 4 + size:
                return
            request = bytes(peer.received[4 : 4 + size])
            del peer.received[: 4 + size]
            try:
                is_valid, response = b"\1", service.handle(request)
            except ValueError as error:
                is_valid, response = b"\0", str(error).encode()
                self._warn(f"sent an invalid request to service {service.name}: {error}", peer)
            peer.closes = not peer.is_persistent
            data = is_valid + len(response).to_bytes(4, "little") + response
            self._queue(peer, Packet(memoryview(data), 0))
            self._send(peer)

    def _refuse(self, peer: _Peer, problem: str) -> None:
        """Send an error instead of a header, and close the connection."""
        self._warn(f"is refused: {problem}", peer)
        self._reply(peer, format_header({"error": problem}))

    def _reply(self, peer: _Peer, data: bytes) -> None:
        """Send an answer, and close the connection."""
        peer.received.clear()
        peer.closes = True
        self._queue(peer, Packet(memoryview(data), 0))
        self._send(peer)

    def _subscribe(self, peer: _Peer, fields: dict[str, str]) -> None:
        """Answer the header of a subscriber. A latched topic sends its last message."""
        topic = self._topics.get(fields.get("topic", ""))
        problem = ""
        if topic is None:
            problem = f"topic {fields.get('topic', '')[:200]} is not published by {self.caller_id}"
        elif fields.get("md5sum", "") not in ("*", topic.md5) or fields.get("type", "*") not in ("*", topic.type):
            kind, md5 = fields.get("type", "")[:200], fields.get("md5sum", "")[:40]
            problem = f"topic {topic.name} is {topic.type} with md5sum {topic.md5}, not {kind} with md5sum {md5}"
        if topic is None or problem:
            self._refuse(peer, problem)
            return
        peer.topic = topic
        answer = {
            "callerid": self.caller_id,
            "latching": "1" if topic.latched else "0",
            "md5sum": topic.md5,
            "message_definition": topic.definition,
            "topic": topic.name,
            "type": topic.type,
        }
        self._queue(peer, Packet(memoryview(format_header(answer)), 0))
        if topic.last is not None:
            self._queue(peer, topic.last)
        topic.subscribers.append(peer)
        self.subscriber_count += 1
        self._connected.set()
        self._send(peer)

    def _call(self, arguments: tuple[Any, ...], method: str | None) -> Any:
        """Return the result of a call of the Slave API; its first argument is the name of the caller."""
        function = self._api.get(method or "")
        if function is None:
            return xmlrpc.client.Fault(1, f"method {str(method)[:80]!r} is not supported")
        try:
            return function(*arguments[1:])
        except TypeError:
            return [ERROR, f"{method}: wrong number or type of arguments", 0]

    def _request_topic(self, topic: str, protocols: list[list[Any]]) -> list[Any]:
        """Return the address of the TCPROS server."""
        if topic not in self._topics:
            return [ERROR, f"topic {topic[:200]} is not published by {self.caller_id}", 0]
        if not any(isinstance(one, list) and one[:1] == ["TCPROS"] for one in protocols):
            return [ERROR, "only TCPROS is supported", 0]
        return [SUCCESS, "", ["TCPROS", self.host, self.port]]

    def _shut_down(self, reason: str = "") -> list[Any]:
        self.end(str(reason)[:200] or "no reason given")
        return [SUCCESS, "", 0]

    def _list_connections(self) -> list[list[Any]]:
        """Return the connections as `getBusInfo` does."""
        return [
            [peer.number, peer.caller_id, "o", "TCPROS", peer.topic.name, True, f"TCPROS connection to {peer.name}"]
            for peer in self._list_subscribers()
            if peer.topic
        ]

    def _list_statistics(self) -> list[list[Any]]:
        """Return the statistics of all publishers as `getBusStats` does. XML-RPC has no integers above 2^31 - 1."""
        largest = 2**31 - 1
        return [
            [
                topic.name,
                min(sum(peer.sent_bytes for peer in topic.subscribers), largest),
                [
                    [peer.number, min(peer.sent_bytes, largest), min(peer.sent_count, largest), True]
                    for peer in topic.subscribers
                ],
            ]
            for topic in self._topics.values()
        ]
