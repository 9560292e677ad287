"""Services of Gazebo transport: requests to other processes, and services of this process.

Requests and responses go through ROUTER sockets, which address each other by their ROUTING_ID. A process that has a
service binds one socket, and a process that requests binds another::

    request     ROUTING_ID of the service, name, address and ROUTING_ID of the requester, UUID of its node,
                UUID of the request, bytes, type of the request, type of the response
    response    ROUTING_ID of the requester, name, UUID of its node, UUID of the request, bytes, "1" or "0"

"0" means that the service has failed. A service whose response is `Empty` sends no response.

Sources: `NodeShared.cc` of gz-transport, `RecvSrvRequest` and `SendPendingRemoteReqs`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from navsense.core.errors import RecordingError, Where
from navsense.recordings.base import make_no_thread_error
from navsense.streams.gz.directory import Directory, find_address_problem
from navsense.streams.gz.discovery import Advert, Discovery
from navsense.streams.gz.settings import Settings, resolve_host
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)
"""Logs requests that cannot be handled."""

MAX_MESSAGE_BYTES = 1 << 24
"""Longest request or response (bytes). The scene of a large world has some 10 MB."""

MAX_WAITING, MAX_PEERS = 1000, 32
"""Largest numbers of responses that wait for their connection, of connected requesters, and of warnings."""

CONNECT_TIMEOUT = 2.0
"""Longest time (s) that a response waits until the requester is connected."""

CLOSE_LINGER = 200
"""Longest time (ms) to send the last responses."""

RETRY = 2e-3
"""Time (s) between two tries to send to a socket that is being connected."""

Handler = Callable[[bytes], bytes | None]
"""Gets a request and returns the response; None if the service fails. It can raise `ValueError` with the reason."""


@dataclass(frozen=True)
class GzService:
    """A service of this process.

    name: its full name.
    request_type, response_type: full names of the message types.
    handler: called in the thread of the services.
    """

    name: str
    request_type: str
    response_type: str
    handler: Handler

    @property
    def is_one_way(self) -> bool:
        """True if the requester gets no response."""
        return self.response_type.endswith(".Empty")


class ServiceServer:
    """Answers the requests to the services of this process, in a thread of its own."""

    def __init__(self, zmq: Any, settings: Settings, host: str, process: str, where: Where) -> None:
        """Open the socket and start the discovery. Raises `RecordingError`."""
        self._zmq, self._host, self._process = zmq, host, process
        self._services: dict[str, GzService] = {}
        self._socket_id = str(uuid4())
        self._waiting: deque[tuple[float, list[bytes]]] = deque()
        self._peers: OrderedDict[str, None] = OrderedDict()
        self._warnings = WarningLog(LOG, where)
        self._ending = threading.Event()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._context = zmq.Context()
        self._socket: Any = None
        try:
            self._socket = open_router(zmq, self._context, host, self._socket_id, where)
            self._address = self._socket.get_string(zmq.LAST_ENDPOINT)
            self._discovery = Discovery(settings, host, process, where, port=settings.service_discovery_port)
        except BaseException:
            self._close_sockets()
            raise
        self._thread = threading.Thread(target=self._serve, name="navsense-gz-services", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._discovery.close()
            self._close_sockets()
            raise make_no_thread_error(where) from error

    def add(self, service: GzService) -> None:
        """Offer a service; it replaces one with the same name."""
        self._services = {**self._services, service.name: service}
        self._discovery.advertise(
            Advert(
                name=service.name,
                address=self._address,
                process=self._process,
                node=self._process,
                socket_id=self._socket_id,
                request_type=service.request_type,
                response_type=service.response_type,
            )
        )

    def close(self) -> None:
        """Say BYE and stop the thread. A second call does nothing."""
        if not self._ending.is_set():
            self._ending.set()
            self._discovery.close()
            with contextlib.suppress(OSError):
                self._wake_sender.send(b"\0")
            self._thread.join(5.0)

    def _serve(self) -> None:
        zmq = self._zmq
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._wake_receiver, zmq.POLLIN)
        try:
            while not self._ending.is_set():
                poller.poll(int(1000 * RETRY) if self._waiting else None)
                for _ in range(MAX_WAITING):
                    try:
                        frames = self._socket.recv_multipart(zmq.NOBLOCK)
                    except zmq.Again:
                        break
                    self._handle(frames)
                self._send_waiting()
        finally:
            self._close_sockets()

    def _handle(self, frames: list[bytes]) -> None:
        """Answer a request."""
        if len(frames) != 9:
            self._warn("frames", f"a request has {len(frames)} frames, not 9; it is ignored")
            return
        _, name, address, requester, node, number, data, request_type, response_type = frames
        service = self._services.get(name.decode(errors="replace"))
        sender = address.decode(errors="replace")
        if service is None:
            self._warn("name", f"a request of {sender[:80]} names an unknown service; it is ignored")
            return
        asked = f"{request_type[:80].decode(errors='replace')} -> {response_type[:80].decode(errors='replace')}"
        own = f"{service.request_type} -> {service.response_type}"
        if asked != own:
            text = f"service {service.name}: {sender[:80]} requests {asked}, the service is {own}; choose ?version="
            self._warn(f"type {service.name} {sender[:80]}", text)
            return
        try:
            response = service.handler(data)
        except ValueError as error:
            self._warn(f"value {service.name}", f"service {service.name}: request of {sender[:80]}: {error}")
            response = None
        except Exception as error:  # the thread has to live  # noqa: BLE001
            self._warn(f"error {service.name}", f"service {service.name} failed: {error!r}")
            response = None
        if service.is_one_way:
            return
        if problem := find_address_problem(sender, self._host):
            self._warn(f"address {sender[:80]}", f"service {service.name}: no response: {problem}")
            return
        self._connect(sender)
        result = b"0" if response is None else b"1"
        if len(self._waiting) == MAX_WAITING:
            self._waiting.popleft()
            self._warn("full", "too many requests; the earliest gets no response")
        expiry = time.monotonic() + CONNECT_TIMEOUT
        self._waiting.append((expiry, [requester, name, node, number, response or b"", result]))

    def _connect(self, address: str) -> None:
        """Connect to a requester, and disconnect from the one that has been silent longest."""
        if address in self._peers:
            self._peers.move_to_end(address)
            return
        if len(self._peers) == MAX_PEERS:
            oldest, _ = self._peers.popitem(last=False)
            with contextlib.suppress(self._zmq.ZMQError):
                self._socket.disconnect(oldest)
        self._socket.connect(address)
        self._peers[address] = None

    def _send_waiting(self) -> None:
        """Send the responses whose requester is connected; the others wait."""
        now, later = time.monotonic(), deque[tuple[float, list[bytes]]]()
        for expiry, frames in self._waiting:
            if not try_send(self._zmq, self._socket, frames):
                if now < expiry:
                    later.append((expiry, frames))
                else:
                    name = frames[1].decode(errors="replace")
                    self._warn(f"gone {name}", f"service {name}: a requester has vanished before its response")
        self._waiting = later

    def _warn(self, key: str, text: str) -> None:
        """Log a warning, once for each key."""
        self._warnings.add(key, "", text)

    def _close_sockets(self) -> None:
        self._context.destroy(linger=CLOSE_LINGER)
        self._wake_receiver.close()
        self._wake_sender.close()


def open_router(zmq: Any, context: Any, host: str, socket_id: str, where: Where) -> Any:
    """Return a ROUTER socket with a ROUTING_ID, bound to a free port. Raises `RecordingError`."""
    opened = context.socket(zmq.ROUTER)
    opened.setsockopt(zmq.ROUTING_ID, socket_id.encode())
    opened.setsockopt(zmq.ROUTER_MANDATORY, 1)  # an error instead of a lost message
    opened.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    opened.setsockopt(zmq.LINGER, 0)
    try:
        opened.bind(f"tcp://{host}:*")
    except zmq.ZMQError as error:
        opened.close()
        what, remedy = f"cannot be served: {os.strerror(error.errno).lower()}", "name an address of this machine"
        raise RecordingError(what, host, where=where, remedy=remedy) from error
    return opened


def try_send(zmq: Any, opened: Any, frames: list[bytes]) -> bool:
    """Return True if a message is sent, False if its receiver is not connected or its queue is full."""
    try:
        opened.send_multipart(frames, zmq.NOBLOCK)
    except zmq.ZMQError as error:
        if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
            return False
        raise
    return True


class ServiceError(Exception):
    """A service does not exist, does not respond, or has failed."""


def request_service(
    zmq: Any, settings: Settings, service: str, response_type: str, where: Where, *, data: bytes = b"", timeout: float
) -> bytes:
    """Return the response of a service of another process.

    service: its full name.
    response_type: without its package.
    timeout: longest time (s) to find the service, and again until its response.

    Raises `ServiceError`, and `RecordingError` if the sockets cannot be opened.
    """
    host, process = resolve_host(settings, where), str(uuid4())
    directory = Directory(host, where)
    discovery = Discovery(
        settings, host, process, where, port=settings.service_discovery_port, listener=directory.update
    )
    try:
        advert = _find_service(discovery, directory, service, response_type, timeout)
        with zmq.Context() as context:
            receiver_id = str(uuid4())
            receiver = open_router(zmq, context, host, receiver_id, where)
            requester = open_router(zmq, context, host, str(uuid4()), where)
            try:
                requester.connect(advert.address)
                address, number = receiver.get_string(zmq.LAST_ENDPOINT), str(uuid4())
                texts = (advert.socket_id, service, address, receiver_id, process, number)
                frames = [*(text.encode() for text in texts), data]
                frames += [advert.request_type.encode(), advert.response_type.encode()]
                return _exchange(zmq, requester, receiver, frames, timeout)
            finally:
                requester.close(linger=0)
                receiver.close(linger=0)
    finally:
        discovery.close()


def _find_service(
    discovery: Discovery, directory: Directory, service: str, response_type: str, timeout: float
) -> Advert:
    def select(adverts: list[Advert]) -> Advert | None:
        matching = (advert for advert in adverts if advert.is_service and advert.name == service)
        return next((advert for advert in matching if advert.response_type.endswith(f".{response_type}")), None)

    end = time.monotonic() + timeout
    while True:  # a datagram can be lost
        discovery.ask(service)
        left = end - time.monotonic()
        advert = directory.wait(select, min(left, 0.5))
        if advert is not None:
            return advert
        if left <= 0.0:
            raise ServiceError(f"no process has the service within {timeout:g} s")


def _exchange(zmq: Any, requester: Any, receiver: Any, frames: list[bytes], timeout: float) -> bytes:
    """Send a request and return the response. Raises `ServiceError`."""
    end = time.monotonic() + timeout
    while not try_send(zmq, requester, frames):
        if time.monotonic() >= end:
            raise ServiceError(f"the process of the service cannot be reached within {timeout:g} s")
        time.sleep(RETRY)
    while (left := end - time.monotonic()) > 0.0 and receiver.poll(int(1000 * left) + 1):
        response: list[bytes] = receiver.recv_multipart()
        if len(response) == 6 and response[3] == frames[5]:
            if response[5] != b"1":
                raise ServiceError("the service has failed")
            return response[4]
    raise ServiceError(f"no response within {timeout:g} s")
