"""A server and subscribers of Gazebo Classic on Python's sockets, with the descriptors of Gazebo 11 and protobuf.

The server plays a recorded session of a real gzserver, see `tests/oracles/gazebo-classic/README.md`.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ORACLES = Path(__file__).resolve().parents[1] / "oracles" / "gazebo-classic"

HOST = "127.0.0.1"


def load_types() -> dict[str, Any]:
    """Return the message classes by name."""
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString((ORACLES / "gazebo_msgs.desc").read_bytes())
    missing = {file.name: file for file in files.file}

    def add(name: str) -> None:
        if name in missing:
            file = missing.pop(name)
            for dependency in file.dependency:
                add(dependency)
            pool.Add(file)

    names = [message.name for file in files.file for message in file.message_type]
    for file in files.file:
        add(file.name)
    find = pool.FindMessageTypeByName
    return {name: message_factory.GetMessageClass(find(f"gazebo.msgs.{name}")) for name in names}


TYPES = load_types()


def frame(data: bytes) -> bytes:
    """Return a frame."""
    return f"{len(data):08x}".encode() + data


def packet(kind: str, body: Any) -> bytes:
    """Return a packet in a frame."""
    message = TYPES["Packet"](type=kind, serialized_data=body.SerializeToString())
    message.stamp.sec, message.stamp.nsec = 1, 2
    return frame(message.SerializeToString())


def read_frame(connection: socket.socket) -> bytes | None:
    """Return the next frame; None at the end of the connection."""
    header = read_exactly(connection, 8)
    return None if header is None else read_exactly(connection, int(header, 16))


def read_exactly(connection: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        try:
            part = connection.recv(size - len(data))
        except OSError:
            return None
        if not part:
            return None
        data += part
    return data


class Chunk(NamedTuple):
    """Bytes that gzserver sent on the connection of a topic, or on that of its master ("")."""

    topic: str
    data: bytes


def load_session() -> list[Chunk]:
    """Return the recorded session in the order of arrival."""
    chunks = []
    with gzip.open(ORACLES / "session.gz") as file:
        while line := file.readline():
            header = json.loads(line)
            chunks.append(Chunk(header["topic"], file.read(header["size"])))
    return chunks


def split_frames(data: bytes) -> list[bytes]:
    """Return the complete frames in bytes."""
    frames = []
    while len(data) >= 8 and len(data) >= 8 + int(data[:8], 16):
        size = int(data[:8], 16)
        frames.append(data[8 : 8 + size])
        data = data[8 + size :]
    return frames


class GazeboServer:
    """A master, and the publishers of a world.

    publishers: type and address by topic, with those of other nodes.
    subscriptions: the topics that others subscribe to at the master.
    connections: those of subscribers of the server, by topic.
    received: the messages of other nodes that the server reads, by topic.
    answers: the answer to each request by its text and name; others are not answered.
    """

    def __init__(self, topics: dict[str, str] | None = None, version: str = "gazebo 11.1", port: int = 0) -> None:
        self._master = socket.create_server((HOST, port))
        self._peers = socket.create_server((HOST, 0))
        self.port: int = self._master.getsockname()[1]
        self.peer_port: int = self._peers.getsockname()[1]
        self.version = version
        self.publishers = {
            topic: TYPES["Publish"](topic=topic, msg_type=kind, host=HOST, port=self.peer_port)
            for topic, kind in (topics or {}).items()
        }
        self.namespaces = ["field", "/gazebo"]
        self.subscriptions: list[str] = []
        self.connections: dict[str, list[socket.socket]] = {}
        self.received: dict[str, list[bytes]] = {}
        self.answers: dict[tuple[str, str], Any] = {}
        self.nodes: list[socket.socket] = []
        self.changed = threading.Condition()
        self._open: list[socket.socket] = [self._master, self._peers]
        self._threads: list[threading.Thread] = []
        self._start(self._accept, self._master, self._serve_node)
        self._start(self._accept, self._peers, self._serve_peer)

    def _start(self, function: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._start(serve, connection)

    def _serve_node(self, node: socket.socket) -> None:
        """Answer a node as the master does."""
        publishers = TYPES["Publishers"](publisher=list(self.publishers.values()))
        node.sendall(
            packet("version_init", TYPES["GzString"](data=self.version))
            + packet("topic_namepaces_init", TYPES["GzString_V"](data=self.namespaces))
            + packet("publishers_init", publishers)
        )
        with self.changed:
            self.nodes.append(node)
            self.changed.notify_all()
        own: list[str] = []
        while (data := read_frame(node)) is not None:
            message = TYPES["Packet"].FromString(data)
            if message.type == "subscribe":
                subscribe = TYPES["Subscribe"].FromString(message.serialized_data)
                with self.changed:
                    self.subscriptions.append(subscribe.topic)
                    self.changed.notify_all()
                if subscribe.topic in self.publishers:
                    node.sendall(packet("publisher_subscribe", self.publishers[subscribe.topic]))
            elif message.type == "advertise":
                publish = TYPES["Publish"].FromString(message.serialized_data)
                own.append(publish.topic)
                with self.changed:
                    self.publishers[publish.topic] = publish
                    self.changed.notify_all()
                if publish.topic.endswith("/request"):
                    self._start(self._read, publish)
            elif message.type == "unadvertise":
                own.remove(self._remove(TYPES["Publish"].FromString(message.serialized_data).topic))
        for topic in own:
            self._remove(topic)
        with self.changed:
            self.nodes.remove(node)
            self.changed.notify_all()

    def _remove(self, topic: str) -> str:
        with self.changed:
            self.publishers.pop(topic, None)
            self.changed.notify_all()
        return topic

    def _serve_peer(self, peer: socket.socket) -> None:
        """Accept a subscriber of a topic of the server."""
        data = read_frame(peer)
        if data is None:
            return
        message = TYPES["Packet"].FromString(data)
        assert message.type == "sub"
        topic = TYPES["Subscribe"].FromString(message.serialized_data).topic
        with self.changed:
            self.connections.setdefault(topic, []).append(peer)
            self.changed.notify_all()

    def _read(self, publish: Any) -> None:
        """Subscribe to the topic of requests of a node, and answer them."""
        with GazeboSubscription(publish) as subscription:
            self._open.append(subscription.connection)
            while (data := read_frame(subscription.connection)) is not None:
                request = TYPES["Request"].FromString(data)
                self.received.setdefault(publish.topic, []).append(data)
                answer = self.answers.get((request.request, request.data))
                if answer is not None:
                    answer.id, topic = request.id, publish.topic.replace("/request", "/response")
                    self.wait(lambda topic=topic: bool(self.connections.get(topic)))  # type: ignore[misc]
                    self.send(topic, frame(answer.SerializeToString()))

    def send(self, topic: str, data: bytes) -> None:
        """Send bytes to all subscribers of a topic of the server."""
        for connection in self.connections.get(topic, []):
            connection.sendall(data)

    def send_to_nodes(self, kind: str, body: Any) -> None:
        """Send a packet of the master to all nodes."""
        for node in self.nodes:
            node.sendall(packet(kind, body))

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Wait until a change."""
        with self.changed:
            assert self.changed.wait_for(is_done, 20.0)

    def disconnect(self, topic: str) -> None:
        """Close the connections of the subscribers of a topic."""
        for connection in self.connections.pop(topic, []):
            connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join(10.0)
            assert not thread.is_alive()


class GazeboSubscription:
    """A subscriber of a topic of a node."""

    def __init__(self, publish: Any, kind: str | None = None) -> None:
        self.connection = socket.create_connection((publish.host, publish.port), timeout=60.0)
        host, port = self.connection.getsockname()
        kind = publish.msg_type if kind is None else kind
        self.connection.sendall(
            packet("sub", TYPES["Subscribe"](topic=publish.topic, host=host, port=port, msg_type=kind))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.connection.close()
