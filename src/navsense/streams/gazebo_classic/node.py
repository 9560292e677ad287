"""A node of Gazebo Classic: its connections to the master, to publishers and to subscribers, in a thread of its own.

The node connects to the master, which sends its version, the namespaces of topics and all publishers. Then:

    node -> master        subscribe, advertise, unadvertise
    master -> node        publisher_subscribe, publisher_advertise: connect to this publisher of a subscribed topic
                          publisher_add, publisher_del, topic_namespace_add
    node -> publisher     sub: the only packet of a subscriber; the publisher answers with the messages of the topic

Each subscriber of the node has a queue. If it is full, its oldest messages are dropped and counted. No method waits for
a peer, except the constructor and `finish`.

A gzserver crashes if a subscriber names a topic that it does not publish, and if a topic is advertised with a second
type. The node does neither.

Sources: `Master.cc`, `Connection.cc`, `ConnectionManager.cc` and `TopicManager.cc` of Gazebo 11.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from navsense.core.errors import NavsenseError, show
from navsense.core.text import format_count
from navsense.streams.gazebo_classic.packet import (
    FrameReader,
    TopicEndpoint,
    decode_nested_list,
    decode_packet,
    decode_publish,
    decode_subscribe,
    decode_texts,
    encode_packet,
    encode_publish,
    encode_subscribe,
)
from navsense.streams.tcp_server import CLOSE_TIMEOUT, MAX_QUEUE_BYTES, STALL_TIMEOUT
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)

DEFAULT_PORT = 11345
"""Port of the master."""

CONNECT_TIMEOUT = 5.0
"""Longest time (s) until the master has sent its first packets."""

PEER_TIMEOUT = 2.0
"""Longest time (s) to connect to a publisher, and in which a subscriber has to send its packet."""

REST = 0.002
"""Time (s) for which a node with subscriptions does not read: it then reads several messages at once.

At 1 kHz this halves the processor time, most of which is that of the calls of the operating system.
"""

DISCONNECT_TIMEOUT = 1.0
"""Longest time (s) in which subscribers disconnect after the last message."""

SEND_BYTES = 1 << 20
"""Bytes that are sent to one subscriber before others get their turn."""

MAX_CONNECTIONS = 500
"""Number of open connections."""

MAX_PUBLISHERS = 100_000
"""Number of publishers that the master may list."""

FIRST_PACKETS = ("version_init", "topic_namepaces_init", "publishers_init")
"""Types of the first packets of the master. Gazebo spells the second one like this."""


class ClassicNodeError(Exception):
    """The master or a publisher does not answer, or not as one of Gazebo Classic. The text says how."""


@dataclass(eq=False)
class ClassicTopic:
    """A topic that the node publishes, with the number of messages that slow subscribers did not get."""

    name: str
    type: str
    dropped: int = 0
    subscribers: list[_ClassicPeer] = field(default_factory=list)


@dataclass(eq=False)
class ClassicSubscription:
    """A topic that the node subscribes to.

    on_message: is called in the thread of the node with each message. It raises `ValueError` for an invalid one.
    on_end: is called with the reason when the publisher is lost.
    is_last: true if messages of other topics that arrive together with one of this topic are handled first.
    """

    name: str
    type: str
    on_message: Callable[[bytes], None]
    on_end: Callable[[str], None]
    is_last: bool = False
    publisher: TopicEndpoint | None = None


@dataclass(eq=False)
class _ClassicPeer:
    """A connection.

    topic: that of a subscriber. subscription: that of a publisher. Both are None for the master, and for a peer that
        has not sent its packet yet.
    deadline: monotonic time (s) at which a peer without a topic is disconnected, 0 for other peers.
    queue, size: what is not sent yet, and its bytes.
    is_head_partial: true if a part of the first frame is sent.
    last_progress: monotonic time (s) when bytes were last sent, or the queue was last empty.
    """

    connection: socket.socket
    name: str
    topic: ClassicTopic | None = None
    subscription: ClassicSubscription | None = None
    deadline: float = 0.0
    frames: FrameReader = field(default_factory=FrameReader)
    queue: deque[memoryview] = field(default_factory=deque)
    size: int = 0
    is_head_partial: bool = False
    events: int = selectors.EVENT_READ
    last_progress: float = field(default_factory=time.monotonic)
    dropped: int = 0


class ClassicNode:
    """A node of Gazebo Classic.

    version: of the master, such as `gazebo 11.1`.
    namespaces: of topics: the names of the worlds, and `/gazebo`.
    publishers: all publishers that the master lists.
    subscriber_count, sent_messages: the subscriptions so far, and the messages sent to all of them.
    is_local: true if the master is on this machine.
    lost: why the connection to the master has ended; "" while it is open.
    """

    def __init__(
        self,
        address: tuple[str, int],
        host: str,
        *,
        name: str,
        on_lost: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Connect to the master at an address, and listen on a free port of `host`. Raises `ClassicNodeError`.

        name: the begin of log messages.
        on_lost: is called with the reason if the connection to the master ends.
        """
        self.host, self._name, self._on_lost = host, name, on_lost
        self.version, self.lost = "", ""
        self.is_local = False
        self.namespaces: list[str] = []
        self.publishers: list[TopicEndpoint] = []
        self.subscriber_count = self.sent_messages = 0
        self._lock = threading.RLock()
        self._topics: dict[str, ClassicTopic] = {}
        self._subscriptions: dict[str, ClassicSubscription] = {}
        self._peers: dict[socket.socket, _ClassicPeer] = {}
        self._warnings = WarningLog(LOG, name)
        self._connected, self._changed, self._ending = threading.Event(), threading.Event(), threading.Event()
        self._selector = selectors.DefaultSelector()
        self._wake_sender, self._wake_receiver = socket.socketpair()
        for end in (self._wake_sender, self._wake_receiver):
            end.setblocking(False)
        self._listener: socket.socket | None = None
        self.port = 0
        try:
            self._master = self._connect_master(address)
            self._listener = _listen(host)
            self.port = self._listener.getsockname()[1]
            self._selector.register(self._listener, selectors.EVENT_READ)
            self._selector.register(self._wake_receiver, selectors.EVENT_READ)
            self._thread = threading.Thread(target=self._serve, name="navsense-gazebo", daemon=True)
            self._thread.start()
        except RuntimeError as error:
            self._release()
            raise ClassicNodeError("the system cannot start another thread") from error
        except BaseException:
            self._release()
            raise

    def _connect_master(self, address: tuple[str, int]) -> _ClassicPeer:
        """Connect, and read the first three packets. Raises `ClassicNodeError`."""
        end, text = time.monotonic() + CONNECT_TIMEOUT, f"{address[0]}:{address[1]}"
        try:
            connection = socket.create_connection(address, CONNECT_TIMEOUT)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ClassicNodeError(f"does not answer: {reason.lower()}") from error
        peer = _ClassicPeer(connection, f"master {text}")
        self._peers[connection] = peer
        frames: list[bytes] = []
        try:
            while len(frames) < len(FIRST_PACKETS):
                connection.settimeout(max(end - time.monotonic(), 0.01))
                data = connection.recv(1 << 16)
                frames += peer.frames.add(data)
                if not data:
                    break
            self._read_first_packets(frames[: len(FIRST_PACKETS)])
        except ValueError as error:
            raise ClassicNodeError(f"is no master of Gazebo Classic: it sent {error}") from error
        except OSError as error:
            raise ClassicNodeError(f"has not sent its version and its topics within {CONNECT_TIMEOUT:g} s") from error
        self.is_local = connection.getpeername()[0] == connection.getsockname()[0]
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(connection, selectors.EVENT_READ)
        for frame in frames[len(FIRST_PACKETS) :]:
            self._handle_master(frame)
        return peer

    def _read_first_packets(self, frames: Sequence[bytes]) -> None:
        """Store version, namespaces and publishers. Raises `ValueError`."""
        packets = [decode_packet(frame) for frame in frames]
        if [kind for kind, _ in packets] != list(FIRST_PACKETS):
            raise ValueError(f"{', '.join(show(kind) for kind, _ in packets) or 'nothing'}, and no other packets")
        self.version = "".join(decode_texts(packets[0][1]))
        if not self.version.startswith("gazebo "):
            raise ValueError(f"the version {show(self.version)}")
        self.namespaces = decode_texts(packets[1][1])
        publishers = decode_nested_list(packets[2][1], 1)[:MAX_PUBLISHERS]
        self.publishers = [decode_publish(publisher) for publisher in publishers]

    def list_publishers(self, topic: str) -> list[TopicEndpoint]:
        """Return the publishers of a topic."""
        with self._lock:
            return [publisher for publisher in self.publishers if publisher.topic == topic]

    def wait_for_change(self, timeout: float) -> None:
        """Wait until the master reports another publisher or namespace, or has closed the connection."""
        if self._changed.wait(timeout):
            self._changed.clear()

    def advertise(self, topics: Sequence[ClassicTopic]) -> None:
        """Offer topics to subscribers."""
        with self._lock:
            for topic in topics:
                self._topics[topic.name] = topic
                endpoint = TopicEndpoint(topic.name, topic.type, self.host, self.port)
                self._send_to_master("advertise", encode_publish(endpoint))
        self._wake()

    def subscribe(self, subscription: ClassicSubscription) -> None:
        """Subscribe to a topic. The master lists its publishers, now and later."""
        with self._lock:
            self._subscriptions[subscription.name] = subscription
            endpoint = TopicEndpoint(subscription.name, subscription.type, self.host, self.port)
            self._send_to_master("subscribe", encode_subscribe(endpoint))
        self._wake()

    def _send_to_master(self, kind: str, body: bytes) -> None:
        self._queue(self._master, memoryview(encode_packet(kind, body)))

    def wait_for_subscriber(self, seconds: float) -> bool:
        """Wait for the first subscriber of any topic; false after `seconds`."""
        return self._connected.wait(seconds)

    def publish(self, topic: ClassicTopic, frames: Sequence[bytes]) -> None:
        """Send frames to the subscribers of a topic, or queue them.

        An empty queue is sent from here: a wake of the thread costs more than the call of the operating system.
        """
        needs_thread = False
        with self._lock:
            for peer in list(topic.subscribers):
                was_empty = not peer.queue
                for frame in frames:
                    self._queue(peer, memoryview(frame))
                if was_empty:
                    self._send(peer)
                needs_thread = needs_thread or bool(peer.queue)
        if needs_thread:
            self._wake()

    def finish(self) -> None:
        """Wait until all subscribers that make progress have received everything, and end all topics."""
        with self._lock:
            self._close_listener()
        self._wait_for(lambda peer: bool(peer.queue), CLOSE_TIMEOUT)
        with self._lock:
            for peer in self._list_subscribers():
                if peer.queue and peer.topic:
                    self._warn("late", "did not receive all messages", peer)
                    peer.topic.dropped += len(peer.queue)
                    self._disconnect(peer)
                else:
                    # The subscriber reads to the end. Then the topics end: a subscriber of Gazebo discards at once what
                    # it has not read of a topic that has ended.
                    with contextlib.suppress(OSError):
                        peer.connection.shutdown(socket.SHUT_WR)
        self._wait_for(lambda _: True, DISCONNECT_TIMEOUT)
        with self._lock:
            for topic in self._topics.values():
                self._send_to_master("unadvertise", encode_publish(TopicEndpoint(topic.name, "", self.host, self.port)))
            if not self.lost:
                self._send(self._master)

    def stop(self) -> None:
        """Disconnect at once, and log the numbers of messages. Never raises."""
        if self._ending.is_set():
            return
        self._ending.set()
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)
        for topic in self._topics.values():
            if topic.dropped:
                count = format_count(topic.dropped, "message")
                LOG.warning("%s: topic %s: %s dropped for slow subscribers", self._name, topic.name, count)

    def _wait_for(self, is_busy: Callable[[_ClassicPeer], bool], timeout: float) -> None:
        """Wait while a subscriber is busy and makes progress."""
        end = time.monotonic() + timeout
        while (now := time.monotonic()) < end and not self._ending.is_set():
            with self._lock:
                busy = (peer for peer in self._list_subscribers() if is_busy(peer))
                if not any(now - peer.last_progress < STALL_TIMEOUT for peer in busy):
                    return
            time.sleep(0.005)

    def _list_subscribers(self) -> list[_ClassicPeer]:
        return [peer for topic in self._topics.values() for peer in topic.subscribers]

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_sender.send(b"\0")

    def _warn(self, cause: str, text: str, peer: _ClassicPeer) -> None:
        """Log a warning about a peer, once for each cause."""
        name = peer.topic.name if peer.topic else peer.subscription.name if peer.subscription else ""
        self._warnings.add(cause, peer.name, f"{peer.name}{f' of topic {name}' if name else ''} {text}")

    def _queue(self, peer: _ClassicPeer, frame: memoryview) -> None:
        """Queue a frame; drop the oldest ones if the queue is full. The caller holds the lock."""
        first = 1 if peer.is_head_partial else 0
        while peer.size + len(frame) > MAX_QUEUE_BYTES and len(peer.queue) > first:
            peer.size -= len(peer.queue[first])
            del peer.queue[first]
            if not peer.dropped:
                self._warn("slow", "is too slow; its oldest messages are dropped", peer)
            peer.dropped += 1
            if peer.topic:
                peer.topic.dropped += 1
        if not peer.queue:
            peer.last_progress = time.monotonic()
        peer.queue.append(frame)
        peer.size += len(frame)

    def _send(self, peer: _ClassicPeer) -> None:
        """Send what the connection of a peer takes now, about `SEND_BYTES` at most. The caller holds the lock."""
        total = 0
        try:
            while peer.queue and total < SEND_BYTES:
                # One call of the operating system for many small messages.
                frames = [peer.queue[i] for i in range(min(len(peer.queue), 64))]
                sent = peer.connection.send(b"".join(frames))
                total += sent
                peer.last_progress = time.monotonic()
                peer.size -= sent
                for frame in frames:
                    if sent < len(frame):
                        break
                    sent -= len(frame)
                    peer.queue.popleft()
                    peer.is_head_partial = False
                    self.sent_messages += peer.topic is not None
                if sent:
                    peer.queue[0] = peer.queue[0][sent:]
                    peer.is_head_partial = True
        except BlockingIOError:
            return
        except OSError:
            self._disconnect(peer)

    def _disconnect(self, peer: _ClassicPeer, reason: str = "") -> None:
        """Disconnect a peer. The caller holds the lock."""
        if self._peers.pop(peer.connection, None) is None:
            return
        if peer.topic and peer in peer.topic.subscribers:
            peer.topic.subscribers.remove(peer)
        with contextlib.suppress(OSError, ValueError, KeyError):
            self._selector.unregister(peer.connection)
        with contextlib.suppress(OSError):
            peer.connection.close()
        peer.queue.clear()
        peer.size = 0
        if self._ending.is_set():
            return
        if peer is self._master:
            self.lost = reason or "the master has closed the connection"
            self._changed.set()
            self._on_lost(self.lost)
        elif peer.subscription is not None:
            peer.subscription.publisher = None
            peer.subscription.on_end(
                f"the {peer.name} of topic {peer.subscription.name} {reason or 'has disconnected'}"
            )

    def _close_listener(self) -> None:
        if self._listener is not None:
            with contextlib.suppress(OSError, ValueError, KeyError):
                self._selector.unregister(self._listener)
            self._listener.close()

    def _release(self) -> None:
        """Close all connections."""
        self._ending.set()
        for peer in list(self._peers.values()):
            self._disconnect(peer)
        self._close_listener()
        for resource in (self._wake_receiver, self._wake_sender, self._selector):
            resource.close()

    def _serve(self) -> None:
        try:
            self._handle_connections()
        except Exception as error:
            self.lost = f"the connections have ended: {error!r}"
            self._on_lost(self.lost)
            raise
        finally:
            with self._lock:
                self._release()

    def _handle_connections(self) -> None:
        """Read and write until the end."""
        while not self._ending.is_set():
            with self._lock:
                for peer in self._peers.values():
                    events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.queue else 0)
                    if events != peer.events:
                        self._selector.modify(peer.connection, events)
                        peer.events = events
            if self._subscriptions:
                time.sleep(REST)
            ready = self._selector.select(0.5)
            with self._lock:
                if len(ready) > 1:
                    ready.sort(key=lambda one: self._is_last(one[0].fileobj))
                for key, events in ready:
                    self._handle_events(key.fileobj, events)
                now = time.monotonic()
                for peer in [one for one in self._peers.values() if 0.0 < one.deadline < now]:
                    self._warn("packet", f"did not name a topic within {PEER_TIMEOUT:g} s and is disconnected", peer)
                    self._disconnect(peer)

    def _is_last(self, ready: object) -> bool:
        """Return True for the connection of a topic that is handled last."""
        peer = self._peers.get(ready) if isinstance(ready, socket.socket) else None
        return peer is not None and peer.subscription is not None and peer.subscription.is_last

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
            if self._listener is None:
                return
            connection, address = self._listener.accept()
            peer = _ClassicPeer(connection, f"subscriber {address[0]}:{address[1]}")
            if len(self._peers) >= MAX_CONNECTIONS:
                self._warn("full", f"is refused: {MAX_CONNECTIONS} connections are open", peer)
                connection.close()
                return
            peer.deadline = time.monotonic() + PEER_TIMEOUT
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(connection, selectors.EVENT_READ)
            self._peers[connection] = peer

    def _receive(self, peer: _ClassicPeer) -> None:
        """Read what a peer sends, and handle its complete frames."""
        try:
            data = peer.connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            reason = "has disconnected within a frame" if peer.frames.is_partial else ""
            if reason and peer.subscription is None and peer is not self._master:
                self._warn("partial", reason, peer)
            self._disconnect(peer, reason)
            return
        try:
            for frame in peer.frames.add(data):
                self._handle_frame(peer, frame)
                if peer.connection not in self._peers:
                    return
        except ValueError as error:
            if peer.subscription is None and peer is not self._master:
                self._warn("invalid", f"is disconnected: it sent {error}", peer)
            self._disconnect(peer, f"sent {error}")

    def _handle_frame(self, peer: _ClassicPeer, frame: bytes) -> None:
        """Handle a frame. Raises `ValueError` if it is invalid."""
        if peer is self._master:
            try:
                self._handle_master(frame)
            except ValueError as error:
                self._warn("packet", f"sent {error}", peer)
        elif peer.subscription is not None:
            try:
                peer.subscription.on_message(frame)
            except (ValueError, NavsenseError) as error:
                self._warn("message", f"sent {error}; the message is ignored", peer)
        elif peer.topic is None:
            self._accept_subscriber(peer, frame)

    def _accept_subscriber(self, peer: _ClassicPeer, frame: bytes) -> None:
        """Handle the packet of a subscriber. Raises `ValueError`."""
        kind, body = decode_packet(frame)
        if kind != "sub":
            raise ValueError(f"a packet {show(kind)}")
        endpoint = decode_subscribe(body)
        topic = self._topics.get(endpoint.topic)
        if topic is None:
            raise ValueError(f"a request for topic {show(endpoint.topic)}, which is not published here")
        if endpoint.type not in ("", topic.type):
            raise ValueError(f"a request for {show(endpoint.type)} from topic {topic.name}, which has {topic.type}")
        peer.topic, peer.deadline = topic, 0.0
        topic.subscribers.append(peer)
        self.subscriber_count += 1
        self._connected.set()

    def _handle_master(self, frame: bytes) -> None:
        """Handle a packet of the master. Raises `ValueError`."""
        kind, body = decode_packet(frame)
        if kind == "topic_namespace_add":
            self.namespaces += [name for name in decode_texts(body) if name not in self.namespaces]
            self._changed.set()
        elif kind == "publisher_add" and len(self.publishers) < MAX_PUBLISHERS:
            self.publishers.append(decode_publish(body))
            self._changed.set()
        elif kind == "publisher_del":
            removed = decode_publish(body)
            self.publishers = [one for one in self.publishers if (one.topic, *one[2:]) != (removed.topic, *removed[2:])]
            self._changed.set()
        elif kind in ("publisher_subscribe", "publisher_advertise", "publisher_update"):
            self._connect_publisher(decode_publish(body))

    def _connect_publisher(self, publisher: TopicEndpoint) -> None:
        """Connect to a publisher of a subscribed topic."""
        subscription = self._subscriptions.get(publisher.topic)
        if subscription is None or publisher == subscription.publisher:
            return
        peer = _ClassicPeer(socket.socket(), f"publisher {publisher.host}:{publisher.port}", subscription=subscription)
        peer.connection.close()
        if subscription.publisher is not None:
            first = subscription.publisher
            self._warn("second", f"is ignored: {first.host}:{first.port} publishes the topic too", peer)
            return
        if publisher.type != subscription.type:
            text = f"the {peer.name} of topic {publisher.topic} sends {show(publisher.type)}, not {subscription.type}"
            subscription.on_end(text)
            return
        try:
            peer.connection = socket.create_connection((publisher.host, publisher.port), PEER_TIMEOUT)
        except (OSError, ValueError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            subscription.on_end(f"the {peer.name} of topic {publisher.topic} does not answer: {reason.lower()}")
            return
        subscription.publisher = publisher
        peer.connection.setblocking(False)
        host, port = peer.connection.getsockname()[:2]
        self._selector.register(peer.connection, selectors.EVENT_READ)
        self._peers[peer.connection] = peer
        request = encode_subscribe(TopicEndpoint(publisher.topic, publisher.type, host, port))
        self._queue(peer, memoryview(encode_packet("sub", request)))
        self._send(peer)


def _listen(host: str) -> socket.socket:
    """Return a socket that listens on a free port. Raises `ClassicNodeError`."""
    try:
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, 0), family=family)
    except (OSError, ValueError) as error:
        raise ClassicNodeError(f"needs a port of {host}, which is no name or address of this machine") from error
    listener.setblocking(False)
    return listener
