"""A server of the WebSocket protocol of Foxglove, in its own thread. A run never waits for a client.

The library `websockets` implements WebSocket. This module implements the protocol on it: channels and their
subscriptions, messages, time, parameters and playback control. Each client has a queue. A client that reads too slowly
loses the newest messages, which are counted.

Source: the specification of the protocol, https://github.com/foxglove/ws-protocol/blob/main/docs/spec.md. The playback
control is in no specification: the tests hold it against foxglove-sdk.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol
from weakref import WeakSet

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol

from navsense.core import inputs
from navsense.core.errors import Where
from navsense.core.text import format_count
from navsense.recordings.base import make_no_thread_error
from navsense.streams.tcp_server import CLOSE_TIMEOUT, MAX_QUEUE_BYTES, STALL_TIMEOUT, listen

LOG = logging.getLogger(__name__)

SUBPROTOCOLS = ("foxglove.sdk.v1", "foxglove.websocket.v1")
"""Names of the protocol: that of foxglove-sdk and of today's apps, and that of the specification."""

MESSAGE, TIME, PLAYBACK_STATE = 1, 2, 5
"""Codes of the binary messages of the server."""

PLAYBACK_REQUEST = 3
"""Code of the binary message of a client that controls the playback."""


class PlaybackStatus(IntEnum):
    """Status of the playback in the protocol."""

    PLAYING = 0
    PAUSED = 1
    ENDED = 3


STATUS_ERROR = 2
"""Level of a status message."""

MAX_REQUEST_BYTES = 1 << 20
"""Largest message of a client (bytes)."""

BATCH_MESSAGES = 256
"""Number of messages that are sent to a client at once."""

MAX_CLIENTS = 64
"""Largest number of clients at once."""

INVALID_REQUEST_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
"""Errors that JSON of any form can cause."""

HANDSHAKE_TIMEOUT = 2.0
"""Longest time (s) of a handshake."""

pack_message = struct.Struct("<BIQ").pack
"""Head of a message: code, subscription, log time (ns)."""

PLAYBACK_REQUEST_HEAD = struct.Struct("<BBfBQI")
"""Code, command (1: pause), speed, has a time, time (ns), length of the identifier."""


@dataclass(eq=False)
class ServedChannel:
    """A channel of the server.

    latched: log time (ns) and bytes of the message that new subscribers get; None without one.
    """

    id: int
    topic: str
    schema_name: str
    schema: str
    latched: tuple[int, bytes] | None = None


@dataclass(frozen=True)
class PlaybackState:
    """The state of the playback: status, time (ns), and speed in simulated seconds per second of real time."""

    status: PlaybackStatus
    time: int
    speed: float

    def encode(self, request: bytes = b"") -> bytes:
        """Return the binary message, with the identifier of the request that it answers. The time did not jump."""
        head = struct.pack("<BBQfBI", PLAYBACK_STATE, self.status, self.time, self.speed, 0, len(request))
        return head + request


class Controls(Protocol):
    """What clients can read and change. The server calls the methods in its own thread."""

    def list_parameters(self) -> Mapping[str, Any]:
        """Return all parameters by name."""
        ...

    def set_parameter(self, name: str, value: object) -> bool:
        """Set a parameter. Return False if it cannot be set, or not to this value."""
        ...

    def control_playback(self, *, is_paused: bool, speed: float) -> PlaybackState:
        """Pause the run, or let it go on with a speed. Return the new state."""
        ...


@dataclass(eq=False)
class _FoxgloveClient:
    """A client.

    channels: the channel of each subscription. subscriptions: the subscription of each channel.
    parameters: the names of the parameters whose changes it gets; all for an empty name.
    dropped: the number of messages that it lost.
    has_warned: True after the warning of an invalid request.
    """

    connection: ServerConnection
    channels: dict[int, int] = field(default_factory=dict)
    subscriptions: dict[int, int] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    dropped: int = 0
    has_warned: bool = False

    @property
    def name(self) -> str:
        """Address and port."""
        address = self.connection.remote_address
        return f"{address[0]}:{address[1]}" if address else "unknown"

    @property
    def queue_bytes(self) -> int:
        """The bytes that are not sent yet."""
        return int(self.connection.transport.get_write_buffer_size())

    def write(self, frames: bytes) -> None:
        """Send frames of WebSocket, without waiting."""
        if self.connection.state is State.OPEN:
            self.connection.transport.write(frames)


OPEN_CONNECTIONS = WeakSet[ServerConnection]()
"""The connections of all servers, also those whose handshake has not ended."""


class _Connection(ServerConnection):
    """A connection in `OPEN_CONNECTIONS`."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        super().connection_made(transport)
        OPEN_CONNECTIONS.add(self)


class FoxgloveServer:
    """Sends messages to all clients that subscribed to their channels."""

    def __init__(
        self, name: str, host: str, port: int, where: Where, controls: Controls, time_range: tuple[int, int] | None
    ) -> None:
        """Listen. Messages in the log begin with `where`. Raises `RecordingError`.

        name: the name of the server for its clients.
        time_range: start and end (ns) of a run with playback control; None for a run without.
        """
        self.name = str(where)
        self.client_count = 0
        """Number of clients so far that subscribed to a channel."""
        self.has_subscriber = threading.Event()
        self._controls = controls
        self._info = _make_server_info(name, time_range)
        self._channels: dict[int, ServedChannel] = {}
        self._clients: list[_FoxgloveClient] = []
        self._subscriber_counts: Counter[int] = Counter()
        self._lock, self._pending_bytes, self._dropped = threading.Lock(), 0, 0
        self._listener = listen(host, port, where)
        self.port: int = self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._end: asyncio.Future[bool] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="navsense-foxglove", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._listener.close()
            self._loop.close()
            raise make_no_thread_error(where) from error

    def add_channel(self, topic: str, schema_name: str, schema: str) -> ServedChannel:
        """Return a new channel, and advertise it to the clients."""
        channel = ServedChannel(len(self._channels) + 1, topic, schema_name, schema)
        self._call(self._advertise, channel)
        self._channels = {**self._channels, channel.id: channel}
        return channel

    def has_subscribers(self, channel: ServedChannel) -> bool:
        """Return True if a client has subscribed to a channel."""
        return self._subscriber_counts[channel.id] > 0

    def send(self, messages: Sequence[tuple[int, int, bytes]], time_now: int) -> None:
        """Send messages to their subscribers, then the time (ns) to all clients.

        messages: identifier of the channel, log time (ns) and bytes of each.
        """
        for start in range(0, len(messages), BATCH_MESSAGES):
            batch = messages[start : start + BATCH_MESSAGES]
            size = sum(len(data) for _, _, data in batch)
            with self._lock:
                is_full = self._pending_bytes + size > MAX_QUEUE_BYTES
                self._pending_bytes += 0 if is_full else size
                self._dropped += len(batch) if is_full else 0
            if not is_full:
                self._call(self._deliver, batch, size)
        self._call(self._broadcast, encode_binary(struct.pack("<BQ", TIME, time_now)))

    def send_playback(self, state: PlaybackState) -> None:
        """Send the state of the playback to all clients."""
        self._call(self._broadcast, encode_binary(state.encode()))

    def send_parameters(self, names: Iterable[str]) -> None:
        """Send parameters to the clients that get their changes."""
        self._call(self._send_changed_parameters, list(names))

    def close(self) -> None:
        """Send the queues of clients that make progress, and stop."""
        self._stop(is_complete=True)

    def abort(self) -> None:
        """Stop at once. Never raises."""
        self._stop(is_complete=False)

    def _stop(self, *, is_complete: bool) -> None:
        """Stop the thread, and log how many messages were lost."""
        if not self._thread.is_alive():
            return
        self._call(self._set_end, is_complete)
        self._thread.join(CLOSE_TIMEOUT + 2.0 * STALL_TIMEOUT + HANDSHAKE_TIMEOUT)
        if self._dropped:
            text = "%s: %s dropped, because clients read too slowly"
            LOG.warning(text, self.name, format_count(self._dropped, "message"))

    def _call(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function in the thread of the server."""
        with suppress(RuntimeError):  # the server has stopped
            self._loop.call_soon_threadsafe(function, *args)

    def _set_end(self, is_complete: bool) -> None:  # an argument of `_call`
        if not self._end.done():
            self._end.set_result(is_complete)

    # In the thread of the server

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self) -> None:
        """Serve until the end."""
        quiet = logging.getLogger(f"{__name__}.websockets")  # its errors are those of clients that vanish
        quiet.setLevel(logging.CRITICAL)
        async with serve(
            self._serve_client,
            sock=self._listener,
            subprotocols=[Subprotocol(name) for name in SUBPROTOCOLS],
            compression=None,
            max_size=MAX_REQUEST_BYTES,
            close_timeout=HANDSHAKE_TIMEOUT,
            server_header=None,
            logger=quiet,
            open_timeout=HANDSHAKE_TIMEOUT,
            create_connection=_Connection,
        ) as server:
            is_complete = await self._end
            if is_complete:
                await self._flush()
            for client in self._clients:
                self._dropped += client.dropped
                client.dropped = 0
                if client.queue_bytes:
                    if is_complete:
                        LOG.warning("%s: client %s did not receive all messages", self.name, client.name)
                    client.connection.transport.abort()
            for connection in OPEN_CONNECTIONS:
                is_new = connection.state is State.CONNECTING  # the end would wait for its handshake
                if connection.server is server and (is_new or not is_complete):
                    connection.transport.abort()
            server.close()

    async def _flush(self) -> None:
        """Wait until the queues of the clients that make progress are empty."""
        end = time.monotonic() + CLOSE_TIMEOUT
        progress: dict[
            _FoxgloveClient, tuple[float, float]
        ] = {}  # size of the queue, and the time when it became smaller
        while (now := time.monotonic()) < end:
            is_waiting = False
            for client in self._clients:
                if client.queue_bytes < progress.get(client, (math.inf, now))[0]:
                    progress[client] = client.queue_bytes, now
                is_waiting |= client.queue_bytes > 0 and now - progress[client][1] < STALL_TIMEOUT
            if not is_waiting:
                return
            await asyncio.sleep(0.005)

    async def _serve_client(self, connection: ServerConnection) -> None:
        """Serve one client until it disconnects."""
        if len(self._clients) >= MAX_CLIENTS:
            await connection.close(1013, f"the server has {MAX_CLIENTS} clients")
            return
        client = _FoxgloveClient(connection)
        client.write(encode_text(self._info))
        client.write(encode_text(_make_advertisement(self._channels.values())))
        self._clients.append(client)
        try:
            async for request in connection:
                self._handle(client, request)
                # It asks, but does not read the answers. Transports have no event for this.
                while client.queue_bytes > MAX_QUEUE_BYTES:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        except ConnectionClosed:
            pass
        finally:
            self._clients.remove(client)
            self._dropped += client.dropped
            self._subscriber_counts.subtract(client.subscriptions.keys())

    def _advertise(self, channel: ServedChannel) -> None:
        self._broadcast(encode_text(_make_advertisement([channel])))

    def _broadcast(self, frame: bytes) -> None:
        for client in self._clients:
            client.write(frame)

    def _deliver(self, messages: Sequence[tuple[int, int, bytes]], size: int) -> None:
        """Send messages to the clients, and drop those that do not fit into the queue of a client."""
        for client in self._clients:
            subscriptions = client.subscriptions
            frames = [
                encode_binary(pack_message(MESSAGE, subscriptions[channel], log_time) + data)
                for channel, log_time, data in messages
                if channel in subscriptions
            ]
            if client.queue_bytes + size > MAX_QUEUE_BYTES:
                if frames and not client.dropped:
                    LOG.warning("%s: client %s reads too slowly and loses messages", self.name, client.name)
                client.dropped += len(frames)
                continue
            client.write(b"".join(frames))
        with self._lock:
            self._pending_bytes -= size

    def _handle(self, client: _FoxgloveClient, request: str | bytes) -> None:
        """Answer a request. An invalid one is answered by a status, and logged once for each client."""
        try:
            if isinstance(request, bytes):
                self._handle_binary(client, request)
            else:
                self._handle_text(client, inputs.parse_json(request))
        except INVALID_REQUEST_ERRORS as error:
            problem = f"invalid request: {type(error).__name__}: {error}"
            client.write(encode_text({"op": "status", "level": STATUS_ERROR, "message": problem[:1000]}))
            if not client.has_warned:
                client.has_warned = True
                LOG.warning("%s: client %s: %s", self.name, client.name, problem[:200])

    def _handle_text(self, client: _FoxgloveClient, request: Mapping[str, Any]) -> None:
        """Answer a request in JSON."""
        operation = request["op"]
        if operation == "subscribe":
            for subscription in request["subscriptions"]:
                self._subscribe(client, int(subscription["id"]), int(subscription["channelId"]))
        elif operation == "unsubscribe":
            for number in request["subscriptionIds"]:
                channel = client.channels.pop(int(number))
                del client.subscriptions[channel]
                self._subscriber_counts[channel] -= 1
        elif operation == "getParameters":
            self._send_parameters(client, request["parameterNames"], request.get("id"))
        elif operation == "setParameters":
            names = [str(parameter["name"]) for parameter in request["parameters"]]
            changed = [
                name
                for name, parameter in zip(names, request["parameters"], strict=True)
                if self._controls.set_parameter(name, parameter.get("value"))
            ]
            if "id" in request:
                self._send_parameters(client, names, request["id"])
            self._send_changed_parameters(changed)
        elif operation == "subscribeParameterUpdates":
            client.parameters |= set(map(str, request["parameterNames"])) or {""}
        elif operation == "unsubscribeParameterUpdates":
            client.parameters -= set(map(str, request["parameterNames"])) or client.parameters
        else:
            raise ValueError(f"operation {operation!r} is not supported")

    def _subscribe(self, client: _FoxgloveClient, number: int, channel: int) -> None:
        """Add a subscription, and send the latched message of the channel."""
        if channel not in self._channels:
            raise ValueError(f"channel {channel} does not exist")
        if not 0 <= number < 1 << 32 or number in client.channels or channel in client.subscriptions:
            raise ValueError(f"subscription {number} of channel {channel} is out of range, or exists")
        is_new = not client.subscriptions
        client.channels[number], client.subscriptions[channel] = channel, number
        self._subscriber_counts[channel] += 1
        latched = self._channels[channel].latched
        if latched is not None:
            client.write(encode_binary(pack_message(MESSAGE, number, latched[0]) + latched[1]))
        self.client_count += is_new
        self.has_subscriber.set()

    def _handle_binary(self, client: _FoxgloveClient, request: bytes) -> None:
        """Answer a request of playback control."""
        if request[0] != PLAYBACK_REQUEST:
            raise ValueError(f"binary operation {request[0]} is not supported")
        _, command, speed, _, _, length = PLAYBACK_REQUEST_HEAD.unpack_from(request)
        identifier = request[PLAYBACK_REQUEST_HEAD.size :][:length]
        state = self._controls.control_playback(is_paused=command == 1, speed=speed)
        client.write(encode_binary(state.encode(identifier)))

    def _send_parameters(self, client: _FoxgloveClient, names: Sequence[str], identifier: object = None) -> None:
        """Send parameters to a client; all of them without names."""
        values = self._controls.list_parameters()
        parameters = [_make_parameter(name, value) for name, value in values.items() if not names or name in names]
        answer = {"op": "parameterValues", "parameters": parameters}
        client.write(encode_text(answer if identifier is None else {**answer, "id": identifier}))

    def _send_changed_parameters(self, names: Sequence[str]) -> None:
        """Send parameters to the clients that get their changes."""
        for client in self._clients:
            wanted = [name for name in names if name in client.parameters or "" in client.parameters]
            if wanted:
                self._send_parameters(client, wanted)


def encode_text(message: Mapping[str, Any]) -> bytes:
    """Return a message in JSON as a frame of WebSocket."""
    return bytes(Frame(Opcode.TEXT, json.dumps(message).encode()).serialize(mask=False))


def encode_binary(data: bytes) -> bytes:
    """Return a binary message as a frame of WebSocket."""
    return bytes(Frame(Opcode.BINARY, data).serialize(mask=False))


def _make_server_info(name: str, time_range: tuple[int, int] | None) -> dict[str, Any]:
    """Return the first message to a client."""
    info: dict[str, Any] = {
        "op": "serverInfo",
        "name": name,
        "capabilities": ["time", "parameters", "parametersSubscribe"],
        "sessionId": str(time.time_ns() // 1_000_000),
    }
    if time_range is not None:
        info["capabilities"].append("playbackControl")
        for key, value in zip(("dataStartTime", "dataEndTime"), time_range, strict=True):
            info[key] = {"sec": value // 10**9, "nsec": value % 10**9}
    return info


def _make_advertisement(channels: Iterable[ServedChannel]) -> dict[str, Any]:
    """Return the message that advertises channels."""
    rows = [
        {
            "id": channel.id,
            "topic": channel.topic,
            "encoding": "cdr",
            "schemaName": channel.schema_name,
            "schemaEncoding": "ros2msg",
            "schema": channel.schema,
        }
        for channel in channels
    ]
    return {"op": "advertise", "channels": rows}


def _make_parameter(name: str, value: Any) -> dict[str, Any]:
    """Return a parameter as JSON, which has no numbers that are not finite: they are texts."""
    parameter: dict[str, Any] = {"name": name}
    if isinstance(value, tuple | list):
        is_finite = all(isinstance(one, int | float) and math.isfinite(one) for one in value)
        parameter["value"] = list(value) if is_finite else [str(one) for one in value]
        if is_finite and any(isinstance(one, float) for one in value):
            parameter["type"] = "float64_array"
    elif isinstance(value, float):
        parameter["value"] = value if math.isfinite(value) else str(value)
        if math.isfinite(value):
            parameter["type"] = "float64"
    else:
        parameter["value"] = value
    return parameter
