"""A TCP server that sends one stream of bytes to all clients, in its own thread. A run never waits for a client.

Each client has a queue, and a client with a full queue is disconnected. A client receives all blocks that are sent
after it connected.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import threading
import time
import warnings
from collections import deque
from dataclasses import dataclass, field

from navsense.core.errors import RecordingError, Where
from navsense.recordings.base import make_no_thread_error

MAX_QUEUE_BYTES = 64 << 20
"""Size of the queue of one client (bytes)."""

STALL_TIMEOUT = 2.0
"""Time (s) without progress after which `close` no longer waits for a client."""

CLOSE_TIMEOUT = 60.0
"""Longest time (s) that `close` waits for all clients."""

SEND_BYTES = 1 << 18
"""Bytes in one call of the operating system."""


@dataclass(eq=False)
class _Client:
    """A client.

    queue, size: the blocks that are not sent yet, and their bytes.
    last_progress: monotonic time (s) when the client last received bytes, or its queue was last empty.
    is_half_closed: true if the client has closed its sending direction; it can still receive.
    """

    name: str
    queue: deque[memoryview] = field(default_factory=deque)
    size: int = 0
    last_progress: float = field(default_factory=time.monotonic)
    is_half_closed: bool = False


class TcpServer:
    """Sends one stream of bytes to all clients."""

    def __init__(self, host: str, port: int, where: Where) -> None:
        """Listen. Warnings begin with `where`. Raises `RecordingError` for a port in use and an invalid host."""
        self.name = str(where)
        self.client_count = self.sent_bytes = 0
        """Number of clients so far, and of bytes sent to all of them."""
        self._listener = listen(host, port, where)
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, _Client] = {}
        self._warnings: list[str] = []
        self._connected, self._ending = threading.Event(), threading.Event()
        self._wake_sender, self._wake_receiver = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        for source in (self._listener, self._wake_receiver):
            self._selector.register(source, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="navsense-port", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            for resource in (self._listener, self._wake_receiver, self._wake_sender, self._selector):
                resource.close()
            raise make_no_thread_error(where) from error

    def wait(self, seconds: float) -> None:
        """Wait for the first client, at most `seconds`."""
        if seconds > 0.0 and not self._connected.wait(seconds):
            self._warnings.append(f"{self.name}: no client connected within {seconds:g} s; the run continues")
            self._emit_warnings()

    def send(self, data: bytes) -> None:
        """Queue bytes for all clients, and disconnect clients whose queue is full."""
        if data:
            with self._lock:
                for connection, client in list(self._clients.items()):
                    if client.size + len(data) > MAX_QUEUE_BYTES:
                        self._warnings.append(f"{self.name}: client {client.name} was too slow and is disconnected")
                        self._disconnect(connection)
                        continue
                    if not client.size:
                        client.last_progress = time.monotonic()
                    client.queue.append(memoryview(data))
                    client.size += len(data)
            self._wake()
        self._emit_warnings()

    def close(self) -> None:
        """Send the queues of clients that make progress, and stop."""
        end = time.monotonic() + CLOSE_TIMEOUT
        while time.monotonic() < end:
            with self._lock:
                now = time.monotonic()
                if not any(
                    client.size and now - client.last_progress < STALL_TIMEOUT for client in self._clients.values()
                ):
                    break
            time.sleep(0.005)
        with self._lock:
            late = [client.name for client in self._clients.values() if client.size]
        self._warnings += [f"{self.name}: client {name} did not receive all data" for name in late]
        self.abort()
        self._emit_warnings()

    def abort(self) -> None:
        """Stop at once. Never raises."""
        if not self._ending.is_set():
            self._ending.set()
            self._wake()
            self._thread.join(5.0)

    def _emit_warnings(self) -> None:
        """Issue the warnings about clients in the thread of the run."""
        while self._warnings:
            warnings.warn(self._warnings.pop(0), RuntimeWarning, stacklevel=4)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_sender.send(b"\0")

    def _disconnect(self, connection: socket.socket) -> None:
        """Disconnect a client. The caller holds the lock."""
        self._clients.pop(connection, None)
        with contextlib.suppress(OSError, ValueError, KeyError):
            self._selector.unregister(connection)
        with contextlib.suppress(OSError):
            connection.close()

    def _serve(self) -> None:
        while not self._ending.is_set():
            with self._lock:
                for connection, client in self._clients.items():
                    self._select_events(connection, client)
            ready = self._selector.select(1.0)
            with self._lock:
                for key, events in ready:
                    self._handle_events(key.fileobj, events)
        with self._lock:
            for connection in list(self._clients):
                self._disconnect(connection)
            for end in (self._listener, self._wake_receiver, self._wake_sender):
                end.close()
            self._selector.close()

    def _select_events(self, connection: socket.socket, client: _Client) -> None:
        """Select the events of a client. The caller holds the lock."""
        events = (0 if client.is_half_closed else selectors.EVENT_READ) | (selectors.EVENT_WRITE if client.queue else 0)
        if connection not in self._selector.get_map():
            if events:
                self._selector.register(connection, events)
        elif events:
            self._selector.modify(connection, events)
        else:
            self._selector.unregister(connection)

    def _handle_events(self, ready: object, events: int) -> None:
        """Handle the events of a socket. The caller holds the lock."""
        if ready is self._listener:
            self._accept_client()
        elif ready is self._wake_receiver:
            with contextlib.suppress(OSError):
                self._wake_receiver.recv(4096)
        elif isinstance(ready, socket.socket) and ready in self._clients:
            try:
                if events & selectors.EVENT_READ and not ready.recv(4096):
                    self._clients[ready].is_half_closed = True
                elif events & selectors.EVENT_WRITE:
                    self._send_to(ready, self._clients[ready])
            except BlockingIOError:
                pass
            except OSError:
                self._disconnect(ready)

    def _accept_client(self) -> None:
        with contextlib.suppress(OSError):
            connection, name = self._listener.accept()
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ)
            self._clients[connection] = _Client(f"{name[0]}:{name[1]}")
            self.client_count += 1
            self._connected.set()

    def _send_to(self, connection: socket.socket, client: _Client) -> None:
        while client.queue:
            block = client.queue.popleft()
            try:
                count = connection.send(block[:SEND_BYTES])
            except BlockingIOError:
                client.queue.appendleft(block)
                raise
            client.size -= count
            self.sent_bytes += count
            client.last_progress = time.monotonic()
            if count < len(block):
                client.queue.appendleft(block[count:])


def listen(host: str, port: int, where: Where) -> socket.socket:
    """Return a socket that listens, without blocking. Raises `RecordingError` for a port in use and an invalid host."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise _server_error(host, port, where, error) from error
    except ValueError as error:  # a label of more than 63 characters or an empty one, a null character
        raise RecordingError(
            "host", host, where=where, allowed="must be a name or an address of this machine"
        ) from error
    listener.setblocking(False)
    return listener


def _server_error(host: str, port: int, where: Where, error: OSError) -> RecordingError:
    if error.errno == errno.EADDRINUSE:
        return RecordingError(
            "port is in use", port, where=where, remedy="choose another, or end the program that uses it"
        )
    if error.errno == errno.EACCES:
        return RecordingError("port may not be served", port, where=where, remedy="choose one above 1023")
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    what = f"cannot be served: {reason.lower()}"
    return RecordingError(what, f"{host}:{port}", where=where, remedy="name an address of this machine, as 127.0.0.1")
