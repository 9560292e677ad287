"""A master, subscribers and publishers of ROS 1 from the specification, on Python's XML-RPC.

Sources: the ROS wiki, "ROS/Master_API", "ROS/Slave_API", "ROS/TCPROS" and "ROS/Connection Header".
"""

from __future__ import annotations

import socket
import struct
import threading
from socketserver import ThreadingMixIn
from typing import Any
from xmlrpc.client import ServerProxy
from xmlrpc.server import SimpleXMLRPCServer

MASTER, SUBSCRIBER = "/master", "/test_subscriber"
"""Names of nodes."""


class _Server(ThreadingMixIn, SimpleXMLRPCServer):
    daemon_threads = True
    allow_reuse_address = True


class RosMaster:
    """A master with the calls that publishers and subscribers need.

    publishers, subscribers: node -> URI by topic.
    types: type by topic.
    services: address by service.
    parameters: value by name.
    calls: the calls so far.
    """

    def __init__(self, port: int = 0) -> None:
        self.publishers: dict[str, dict[str, str]] = {}
        self.subscribers: dict[str, dict[str, str]] = {}
        self.types: dict[str, str] = {}
        self.services: dict[str, str] = {}
        self.parameters: dict[str, Any] = {}
        self.calls: list[tuple[str, ...]] = []
        self._server = _Server(("127.0.0.1", port), logRequests=False, allow_none=False)
        self.port: int = self._server.server_address[1]
        self.uri = f"http://127.0.0.1:{self.port}/"
        for name in (
            "registerPublisher",
            "unregisterPublisher",
            "registerService",
            "unregisterService",
            "registerSubscriber",
            "unregisterSubscriber",
            "getSystemState",
            "getTopicTypes",
            "getParam",
            "lookupNode",
        ):
            self._server.register_function(self.__getattribute__(name), name)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def registerPublisher(self, caller: str, topic: str, kind: str, uri: str) -> list[Any]:  # noqa: N802
        self.calls.append(("registerPublisher", caller, topic, kind))
        self.publishers.setdefault(topic, {})[caller] = uri
        self.types[topic] = kind
        self._announce(topic)
        return [1, "registered", []]

    def unregisterPublisher(self, caller: str, topic: str, uri: str) -> list[Any]:  # noqa: N802
        self.calls.append(("unregisterPublisher", caller, topic))
        known = self.publishers.get(topic, {})
        count = int(known.get(caller) == uri and bool(known.pop(caller)))
        self._announce(topic)
        return [1, "unregistered", count]

    def _announce(self, topic: str) -> None:
        """Call publisherUpdate of all subscribers of a topic."""
        for uri in self.subscribers.get(topic, {}).values():
            node: Any = ServerProxy(uri)
            assert node.publisherUpdate(MASTER, topic, list(self.publishers.get(topic, {}).values()))[0] == 1

    def registerService(self, caller: str, service: str, address: str, uri: str) -> list[Any]:  # noqa: N802
        self.services[service] = address
        return [1, "registered", 1]

    def unregisterService(self, caller: str, service: str, address: str) -> list[Any]:  # noqa: N802
        return [1, "unregistered", int(self.services.get(service) == address and bool(self.services.pop(service)))]

    def registerSubscriber(self, caller: str, topic: str, kind: str, uri: str) -> list[Any]:  # noqa: N802
        self.calls.append(("registerSubscriber", caller, topic, kind))
        self.subscribers.setdefault(topic, {})[caller] = uri
        return [1, "subscribed", list(self.publishers.get(topic, {}).values())]

    def unregisterSubscriber(self, caller: str, topic: str, uri: str) -> list[Any]:  # noqa: N802
        known = self.subscribers.get(topic, {})
        return [1, "unregistered", int(known.get(caller) == uri and bool(known.pop(caller)))]

    def getSystemState(self, caller: str) -> list[Any]:  # noqa: N802
        lists = [
            [[topic, list(nodes)] for topic, nodes in part.items() if nodes]
            for part in (self.publishers, self.subscribers)
        ]
        return [1, "state", [*lists, []]]

    def getTopicTypes(self, caller: str) -> list[Any]:  # noqa: N802
        return [1, "types", [[topic, kind] for topic, kind in self.types.items()]]

    def getParam(self, caller: str, key: str) -> list[Any]:  # noqa: N802
        if key in self.parameters:
            return [1, "parameter", self.parameters[key]]
        return [-1, f"Parameter [{key}] is not set", 0]

    def lookupNode(self, caller: str, name: str) -> list[Any]:  # noqa: N802
        for nodes in (*self.publishers.values(), *self.subscribers.values()):
            if name in nodes:
                return [1, "node api", nodes[name]]
        return [-1, f"unknown node [{name}]", ""]

    def list_topics(self) -> list[str]:
        """The topics with a publisher."""
        return [topic for topic, nodes in self.publishers.items() if nodes]

    def find_node(self, topic: str) -> str:
        """The URI of the publisher of a topic."""
        return next(iter(self.publishers[topic].values()))

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def pack_header(fields: dict[str, str]) -> bytes:
    """Return a connection header."""
    parts = [f"{name}={value}".encode() for name, value in fields.items()]
    body = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    return struct.pack("<I", len(body)) + body


def unpack_header(body: bytes) -> dict[str, str]:
    """Return the fields of a connection header."""
    fields = {}
    while body:
        (size,) = struct.unpack("<I", body[:4])
        name, _, value = body[4 : 4 + size].decode().partition("=")
        fields[name] = value
        body = body[4 + size :]
    return fields


def request_topic(node_uri: str, topic: str) -> tuple[str, int]:
    """Return the address of the TCPROS server of a publisher."""
    node: Any = ServerProxy(node_uri)
    code, text, protocol = node.requestTopic(SUBSCRIBER, topic, [["TCPROS"]])
    assert code == 1, text
    name, host, port = protocol
    assert name == "TCPROS"
    return str(host), int(port)


def receive(connection: socket.socket, size: int) -> bytes:
    """Return bytes of a connection. Raises `EOFError` if it ends before."""
    data = bytearray()
    while len(data) < size:
        block = connection.recv(size - len(data))
        if not block:
            raise EOFError(bytes(data))
        data += block
    return bytes(data)


class RosServiceClient:
    """A persistent connection to a service.

    header: the connection header of the node.
    """

    def __init__(self, address: str, service: str, md5: str = "*", **fields: str) -> None:
        host, port = address.removeprefix("rosrpc://").split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20.0)
        self.socket.sendall(pack_header({"callerid": "/client", "service": service, "md5sum": md5, **fields}))
        self.header = unpack_header(receive(self.socket, struct.unpack("<I", receive(self.socket, 4))[0]))

    def call(self, request: bytes) -> tuple[bool, bytes]:
        """Return whether a call succeeded, and its response or error."""
        self.socket.sendall(struct.pack("<I", len(request)) + request)
        is_valid, size = struct.unpack("<?I", receive(self.socket, 5))
        return is_valid, receive(self.socket, size)

    def is_closed(self) -> bool:
        """True if the node has closed the connection. Close it on this side too."""
        with self.socket:
            return self.socket.recv(1) == b""


class RosSubscriber:
    """A subscriber of one topic, which reads in a thread.

    header: the connection header of the publisher.
    messages: the messages so far, complete after `finish`.
    """

    def __init__(self, node_uri: str, topic: str, kind: str = "*", md5: str = "*", receive_buffer: int = 0) -> None:
        self.messages: list[bytes] = []
        self.reads, self.is_leaving = threading.Event(), False
        self.reads.set()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.settimeout(60.0)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(request_topic(node_uri, topic))
        fields = {"callerid": SUBSCRIBER, "topic": topic, "md5sum": md5, "type": kind, "tcp_nodelay": "1"}
        self.socket.sendall(pack_header(fields))
        header = self._read_block()
        assert header is not None
        self.header = unpack_header(header)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read_block(self) -> bytes | None:
        """Return the next header or message; None at the end of the connection."""
        size = self._read_bytes(4)
        return None if size is None else self._read_bytes(struct.unpack("<I", size)[0])

    def _read_bytes(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            block = self.socket.recv(size - len(data))
            if not block:
                assert not data, "the connection ends within a message"
                return None
            data += block
        return bytes(data)

    def _read(self) -> None:
        with self.socket:
            try:
                while self.reads.wait(60.0) and (message := self._read_block()) is not None:
                    self.messages.append(message)
            except ConnectionResetError:
                assert self.is_leaving

    def leave(self) -> None:
        """Disconnect."""
        self.is_leaving = True
        self.socket.shutdown(socket.SHUT_RDWR)

    def finish(self) -> list[bytes]:
        """Wait for the end of the connection, and return the messages."""
        self._thread.join(60.0)
        assert not self._thread.is_alive()
        return self.messages


class RosPublisher:
    """A node that publishes one topic. It registers at a master, and sends what the test gives to its subscribers.

    fields: of its connection header, which differ from the right ones.
    headers: those of its subscribers so far.
    """

    def __init__(
        self, master: RosMaster, topic: str, kind: str, md5: str, node: str = "/gazebo", **fields: str
    ) -> None:
        self.master, self.topic, self.kind, self.node = master, topic, kind, node
        self.headers: list[dict[str, str]] = []
        self.connections: list[socket.socket] = []
        self._fields = {"callerid": node, "md5sum": md5, "type": kind, "topic": topic, "latching": "0", **fields}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._api = _Server(("127.0.0.1", 0), logRequests=False, allow_none=False)
        self._api.register_function(self.requestTopic, "requestTopic")
        self._api.register_function(lambda _: [1, "", 1], "getPid")
        self.uri = f"http://127.0.0.1:{self._api.server_address[1]}/"
        targets = (self._accept, lambda: self._api.serve_forever(0.02))
        self._threads = [threading.Thread(target=target) for target in targets]
        for thread in self._threads:
            thread.start()
        self.register()

    def register(self) -> None:
        """Register at the master."""
        self.master.registerPublisher(self.node, self.topic, self.kind, self.uri)

    def unregister(self) -> None:
        """Unregister at the master."""
        self.master.unregisterPublisher(self.node, self.topic, self.uri)

    def requestTopic(self, caller: str, topic: str, protocols: list[Any]) -> list[Any]:  # noqa: N802
        assert (topic, protocols) == (self.topic, [["TCPROS"]])
        return [1, "ready", ["TCPROS", "127.0.0.1", self._listener.getsockname()[1]]]

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            header = unpack_header(receive(connection, struct.unpack("<I", receive(connection, 4))[0]))
            connection.sendall(pack_header(self._fields))
            if header.get("tcp_nodelay") == "1":
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections.append(connection)
            self.headers.append(header)

    def send(self, *messages: bytes) -> None:
        """Send messages with their lengths to all subscribers."""
        self.send_bytes(b"".join(struct.pack("<I", len(message)) + message for message in messages))

    def send_bytes(self, data: bytes) -> None:
        """Send bytes to all subscribers."""
        for connection in self.connections:
            connection.sendall(data)

    def disconnect(self) -> None:
        """Close the connections."""
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def vanish(self) -> None:
        """End as a program that is killed: the master still lists the node."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._api.shutdown()
        self._api.server_close()
        for thread in self._threads:
            thread.join()
        self.disconnect()
