"""A peer of Gazebo transport on pyzmq and protobuf, written from the specification of its discovery.

Source: `discovery.proto` of gz-msgs, and `Discovery.hh` and `NodeShared.cc` of gz-transport.
"""

from __future__ import annotations

import contextlib
import inspect
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import zmq
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

DEADLINE = 60.0
"""Time (s) after which a test stops waiting. A busy machine needs a part of it."""

GROUP, PORT = "239.255.0.7", 10317
ADVERTISE, SUBSCRIBE, UNADVERTISE, HEARTBEAT, BYE, NEW_CONNECTION, END_CONNECTION = range(1, 8)

STRING, UINT32, UINT64, BOOL, MESSAGE = (
    descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{name}")
    for name in ("STRING", "UINT32", "UINT64", "BOOL", "MESSAGE")
)

FIELDS: dict[str, list[tuple[str, int, int, str]]] = {
    "Flags": [("relay", 1, BOOL, ""), ("no_relay", 2, BOOL, "")],
    "Subscriber": [("topic", 1, STRING, "")],
    "MessagePublisher": [
        ("ctrl", 1, STRING, ""),
        ("msg_type", 2, STRING, ""),
        ("throttled", 3, BOOL, ""),
        ("msgs_per_sec", 4, UINT64, ""),
    ],
    "Publisher": [
        ("topic", 1, STRING, ""),
        ("address", 2, STRING, ""),
        ("process_uuid", 3, STRING, ""),
        ("node_uuid", 4, STRING, ""),
        ("scope", 5, UINT32, ""),
        ("msg_pub", 6, MESSAGE, "MessagePublisher"),
    ],
    "Discovery": [
        ("version", 2, UINT32, ""),
        ("process_uuid", 3, STRING, ""),
        ("type", 4, UINT32, ""),
        ("flags", 5, MESSAGE, "Flags"),
        ("sub", 6, MESSAGE, "Subscriber"),
        ("pub", 7, MESSAGE, "Publisher"),
    ],
}
"""Message -> name, number, type and message type of its fields. An enumeration is a number."""


def make_class(fields: dict[str, list[tuple[str, int, int, str]]], name: str) -> Any:
    """Return the class of a message."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{uuid.uuid4()}.proto", package="peer", syntax="proto3")
    for message_name, rows in fields.items():
        message = file.message_type.add(name=message_name)
        for field_name, number, kind, type_name in rows:
            field = message.field.add(name=field_name, number=number, type=kind, label=1)
            if type_name:
                field.type_name = f".peer.{type_name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"peer.{name}"))


Discovery = make_class(FIELDS, "Discovery")


@dataclass(frozen=True)
class Advert:
    """A topic that a process advertises."""

    topic: str
    type: str
    address: str
    process: str
    scope: int


class GzPeer:
    """A process with a discovery thread, and a socket that receives messages.

    adverts: by full name of the topic.
    goodbyes: the processes that have said BYE.
    kinds: the types of the discovery messages of other processes.
    """

    def __init__(self, version: int = 10, group: str = GROUP, port: int = PORT) -> None:
        self.version, self.process = version, str(uuid.uuid4())
        self.adverts: dict[str, Advert] = {}
        self.goodbyes: set[str] = set()
        self.kinds: list[int] = []
        self.datagrams: list[bytes] = []
        self._target = (group, port)
        self._wanted: set[str] = set()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        loopback = socket.inet_aton("127.0.0.1")
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
        self._socket.bind(("", port))
        membership = struct.pack("4s4s", socket.inet_aton(group), loopback)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        self._socket.settimeout(0.05)
        self.context = zmq.Context()
        self.subscriber = self.context.socket(zmq.SUB)
        self.subscriber.rcvhwm = 0
        self._addresses: set[str] = set()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def send(self, kind: int, **fields: Any) -> None:
        """Send a discovery message."""
        message = Discovery(version=self.version, process_uuid=self.process, type=kind)
        for name, value in fields.items():
            getattr(message, name).CopyFrom(type(getattr(message, name))(**value))
        self.send_datagram(message.SerializeToString())

    def send_datagram(self, body: bytes, prefix: bytes | None = None) -> None:
        """Send a datagram with its length, or with another prefix."""
        data = (struct.pack("<H", len(body)) if prefix is None else prefix) + body
        self._socket.sendto(data, self._target)

    def subscribe(self, topic: str) -> None:
        """Subscribe to a topic as the library does: ask for it, connect, and tell its publisher."""
        self._wanted.add(topic)
        self.send(SUBSCRIBE, sub={"topic": topic})
        wait_until(lambda: topic in self.adverts)
        advert = self.adverts[topic]
        if advert.address not in self._addresses:
            self.subscriber.connect(advert.address)
            self._addresses.add(advert.address)
        self.subscriber.setsockopt(zmq.SUBSCRIBE, topic.encode())
        self._send_connection(NEW_CONNECTION, advert)

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic."""
        self.subscriber.setsockopt(zmq.UNSUBSCRIBE, topic.encode())
        self._send_connection(END_CONNECTION, self.adverts[topic])

    def _send_connection(self, kind: int, advert: Advert) -> None:
        fields = {"topic": advert.topic, "process_uuid": self.process, "node_uuid": self.process}
        self.send(kind, pub=fields | {"msg_pub": {"ctrl": advert.process, "msg_type": advert.type}})

    def _read(self) -> None:
        while not self._ending.is_set():
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                continue
            self.datagrams.append(data)
            (length,) = struct.unpack_from("<H", data)
            assert length == len(data) - 2
            message = Discovery.FromString(data[2:])
            if message.process_uuid == self.process or message.version != self.version:
                continue
            self.kinds.append(message.type)
            if message.type == ADVERTISE:
                pub = message.pub
                self.adverts[pub.topic] = Advert(
                    pub.topic, pub.msg_pub.msg_type, pub.address, pub.process_uuid, pub.scope
                )
            elif message.type == BYE:
                self.goodbyes.add(message.process_uuid)

    def count_adverts(self, topic: str) -> int:
        """Return how often a topic was advertised so far."""
        messages = [Discovery.FromString(data[2:]) for data in self.datagrams]
        return sum(message.type == ADVERTISE and message.pub.topic == topic for message in messages)

    def receive(self, timeout: float = 1.0) -> list[bytes] | None:
        """Return the frames of a message; None if none arrives in time."""
        if not self.subscriber.poll(int(1000 * timeout)):
            return None
        frames: list[bytes] = self.subscriber.recv_multipart()
        return frames

    def receive_count(self, count: int) -> list[list[bytes]]:
        """Return a number of messages, and those that have arrived after them."""
        received: list[list[bytes]] = []
        end = time.monotonic() + DEADLINE
        while len(received) < count:
            assert time.monotonic() < end, f"{len(received)} of {count} messages within {DEADLINE:g} s"
            frames = self.receive(0.1)
            received += [] if frames is None else [frames]
        while (frames := self.receive(0.1)) is not None:
            received.append(frames)
        return received

    def close(self) -> None:
        """Say goodbye."""
        if not self._ending.is_set():
            with contextlib.suppress(OSError):
                self.send(BYE)
            self._ending.set()
            self._thread.join(10.0)
            self._socket.close()
            self.context.destroy(linger=0)


class Simulator:
    """A process that publishes one topic, and advertises it with each heartbeat and when it is asked for."""

    def __init__(self, topic: str, type_name: str = "gz.msgs.Pose_V", address: str = "") -> None:
        self.peer = GzPeer()
        self.topic, self.type = topic, type_name
        self.publisher = self.peer.context.socket(zmq.XPUB)
        self.publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
        port = self.publisher.bind_to_random_port("tcp://127.0.0.1")
        self.own_address = f"tcp://127.0.0.1:{port}"
        self.address = address or self.own_address
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._advertise, daemon=True)
        self._thread.start()

    def _advertise(self) -> None:
        asked, next_time = 0, 0.0
        while not self._ending.wait(0.01):
            count = self.peer.kinds.count(SUBSCRIBE)
            if count > asked or time.monotonic() > next_time:
                next_time = time.monotonic() + 1.0 if time.monotonic() > next_time else next_time
                asked = count
                self.peer.send(HEARTBEAT)
                self.advertise()

    def advertise(self) -> None:
        fields = {"topic": self.topic, "address": self.address, "process_uuid": self.peer.process, "scope": 2}
        fields |= {"node_uuid": self.peer.process, "msg_pub": {"ctrl": "unused", "msg_type": self.type}}
        self.peer.send(ADVERTISE, pub=fields)

    def wait_for_subscriber(self) -> None:
        assert self.publisher.poll(int(1000 * DEADLINE))
        assert self.publisher.recv() == b"\1" + self.topic.encode()

    def publish(self, data: bytes, *extra: bytes) -> None:
        self.publisher.send_multipart(
            [self.topic.encode(), self.own_address.encode(), data, self.type.encode(), *extra]
        )

    def close(self, *, is_silent: bool = False) -> None:
        self._ending.set()
        self._thread.join(10.0)
        if is_silent:
            self.peer.send = lambda *_, **__: None  # type: ignore[method-assign]  # it dies without BYE
        self.publisher.close(linger=500)
        self.peer.close()


def wait_until(is_done: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + DEADLINE
    while not is_done():
        assert time.monotonic() < end, f"after {DEADLINE:g} s: {_describe(is_done)}"
        time.sleep(0.005)


def _describe(is_done: Callable[[], bool]) -> str:
    """Return the source of a condition."""
    try:
        return inspect.getsource(is_done).strip()
    except (OSError, TypeError):
        return repr(is_done)
