"""The stream of Foxglove: a WebSocket server with the messages of the MCAP writer, time, parameters and playback.

    foxglove://HOST:PORT?wait=SECONDS                 default: port 8765 on loopback, without waiting for a client

Messages are CDR with definitions of ROS 2. A message is sent at its time of arrival: one with a latency waits for it.
A channel without subscribers is not encoded. The clients get the simulated time, can pause the run and change its
speed, and see the parameters of the world.

The server is that of foxglove-sdk. It has a queue for each client. If a queue is full, the server drops the oldest
message of this client.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from navsense.core.errors import RecordingError, Where
from navsense.core.readings import TimeSlice, to_nanoseconds
from navsense.messages.cdr import encode
from navsense.parameters import list_parameters
from navsense.recordings.base import check_recorded_run, make_closed_error
from navsense.recordings.info import RecordedRun, get_version
from navsense.recordings.message_builder import MessageBlock, MessageBuilder, OutputChannel
from navsense.streams.device_port import parse_wait
from navsense.streams.stream import Pace, Publisher, Stream, StreamUrl
from navsense.world import World

if TYPE_CHECKING:
    from foxglove import Channel, Parameter
    from foxglove.websocket import ChannelView, Client, PlaybackControlRequest, PlaybackState

LOG = logging.getLogger(__name__)

DEFAULT_PORT = 8765
"""The port that the apps of Foxglove propose."""

QUEUE_MESSAGES = 100_000
"""Number of messages in the queue of a client."""

STOP_TIMEOUT = 5.0
"""Longest time (s) until the server is stopped."""

SPEED, PAUSED = "speed", "paused"
"""Parameters that a client can set."""


@dataclass(eq=False)
class _OpenChannel:
    """A channel of the server, and the last message of a latched topic for late subscribers."""

    channel: Channel
    encoder_channel: OutputChannel
    latched: tuple[bytes, int] | None = None


@dataclass
class _Messages:
    """Encoded messages that wait for their time of arrival: times (ns), bytes and channels, in order of the times."""

    times: list[int] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    channels: list[_OpenChannel] = field(default_factory=list)


class FoxglovePublisher(Publisher):
    """Publishes a run to the apps of Foxglove, and to other clients of their WebSocket protocol."""

    def __init__(self, url: StreamUrl, recorded_run: RecordedRun) -> None:
        """Start the server, and wait for the first client. Raises `RecordingError`."""
        wait = parse_wait(url, 0.0)
        check_recorded_run(url.text, recorded_run, "Foxglove")
        foxglove = import_sdk(url)
        from foxglove.websocket import Capability

        self._foxglove, self._run = foxglove, recorded_run
        self._builder = MessageBuilder(recorded_run)
        self._channels: dict[tuple[str, str], _OpenChannel] = {}
        self._waiting = _Messages()
        self._pace: Pace | None = None
        self._time = to_nanoseconds(recorded_run.epoch, np.zeros(1))[0]
        self._connected, self._is_open = threading.Event(), True
        self._client_ids: set[int] = set()
        self._context = foxglove.Context()
        end = to_nanoseconds(recorded_run.epoch, np.array([recorded_run.requested_duration or 0.0]))[0]
        capabilities = [Capability.Time, Capability.Parameters]
        try:
            self._server = foxglove.start_server(
                name=f"navsense {get_version()}: {recorded_run.world.name}",
                host=url.host,
                port=DEFAULT_PORT if url.port is None else url.port,
                capabilities=capabilities,
                server_listener=_Listener(self),
                supported_encodings=["cdr"],
                context=self._context,
                playback_time_range=(int(self._time), int(end)) if end > self._time else None,
                message_backlog_size=QUEUE_MESSAGES,
            )
        except (OSError, RuntimeError) as error:
            allowed = f"cannot be served: {str(error).lower()}"
            raise RecordingError(
                "address", f"{url.host}:{url.port or DEFAULT_PORT}", where=Where(url.text), allowed=allowed
            ) from error
        self.url = url.with_port(self._server.port)
        for channel in self._builder.list_measured_channels():
            self._get_channel(channel)
        for block in self._builder.build_static_transforms():
            self._queue(block)
        LOG.info("%s: open ws://%s:%d in Foxglove", self.url, url.host, self._server.port)
        if wait > 0.0 and not self._connected.wait(wait):
            LOG.warning("%s: no client connected within %g s; the run continues", self.url, wait)

    def attach_pace(self, pace: Pace | None) -> None:
        """Let the clients pause the run and change its speed."""
        self._pace = pace
        self._server.publish_parameter_values(_make_parameters(self.list_parameters(), (SPEED, PAUSED)))
        self._broadcast_playback()

    def write(self, time_slice: TimeSlice) -> None:
        """Send the messages that arrive until the end of a time slice."""
        if not self._is_open:
            raise make_closed_error(self.url)
        for block in self._builder.build_blocks(time_slice):
            self._queue(block)
        self._time = to_nanoseconds(self._run.epoch, np.array([time_slice.end]))[0]
        self._send(int(self._time))
        self._server.broadcast_time(int(self._time))

    def _get_channel(self, channel: OutputChannel) -> _OpenChannel:
        """Return the channel of a topic and type, made at its first use."""
        key = channel.topic, channel.encoder.type
        if key not in self._channels:
            encoder = channel.encoder
            schema = self._foxglove.Schema(name=encoder.type, encoding="ros2msg", data=encoder.schema.encode())
            made = self._foxglove.Channel(channel.topic, schema=schema, message_encoding="cdr", context=self._context)
            self._channels[key] = _OpenChannel(made, channel)
        return self._channels[key]

    def _queue(self, block: MessageBlock) -> None:
        """Encode the messages of a block, unless nobody listens to its channel."""
        opened, count = self._get_channel(block.channel), block.stamp.shape[0]
        if count and block.channel.latched:
            data = encode(block.channel.encoder, block.stamp[-1:], {k: v[-1:] for k, v in block.arrays.items()})
            opened.latched = data[0].tobytes(), int(block.log_time[-1])
        if count and opened.channel.has_sinks():
            rows = encode(block.channel.encoder, block.stamp, block.arrays)
            self._waiting.times += block.log_time.tolist()
            self._waiting.data += [row.tobytes() for row in rows]
            self._waiting.channels += [opened] * count

    def _send(self, end: int | None = None) -> None:
        """Send the queued messages that arrive until a time (ns), in order; all of them without a time."""
        waiting, self._waiting = self._waiting, _Messages()
        order = np.argsort(np.array(waiting.times, dtype=np.int64), kind="stable")
        for index in order.tolist():
            time, data, opened = waiting.times[index], waiting.data[index], waiting.channels[index]
            if end is None or time <= end:
                opened.channel.log(data, log_time=time)
            else:
                self._waiting.times.append(time)
                self._waiting.data.append(data)
                self._waiting.channels.append(opened)

    def add_client(self, client_id: int) -> None:
        """Count a client that has subscribed to a channel."""
        self._client_ids.add(client_id)
        self._connected.set()

    @property
    def subscriber_count(self) -> int:
        """The number of clients so far."""
        return len(self._client_ids)

    def send_latched(self, channel_id: int) -> None:
        """Send the last message of a latched topic again, for a new subscriber."""
        for opened in list(self._channels.values()):
            if opened.latched is not None and opened.channel.id() == channel_id:
                data, time = opened.latched
                opened.channel.log(data, log_time=time)

    def list_parameters(self) -> dict[str, Any]:
        """Return the parameters of the run and of the world by name."""
        values: dict[str, Any] = {"world": self._run.world.name, "seed": self._run.seed, "epoch": self._run.epoch}
        if self._pace is not None:
            values |= {SPEED: self._pace.speed, PAUSED: self._pace.is_paused}
        return values | dict(list_parameters(self._run.world))

    def set_parameter(self, name: str, value: object) -> None:
        """Pause the run or change its speed. Other parameters cannot be set."""
        if self._pace is None:
            return
        if name == PAUSED and isinstance(value, bool):
            self._pace.is_paused = value
        elif name == SPEED and isinstance(value, int | float) and not isinstance(value, bool) and value > 0.0:
            self._pace.speed = float(value)
        self._broadcast_playback()

    def make_playback_state(self, request_id: str | None = None) -> PlaybackState:
        """Return the state of the run for the playback controls of a client."""
        from foxglove.websocket import PlaybackState, PlaybackStatus

        is_paused = self._pace is not None and self._pace.is_paused
        status = PlaybackStatus.Paused if is_paused else PlaybackStatus.Playing
        if not self._is_open:
            status = PlaybackStatus.Ended
        speed = 1.0 if self._pace is None else self._pace.speed
        return PlaybackState(
            status=status,
            current_time=int(self._time),
            playback_speed=speed,
            did_seek=False,
            request_id=request_id,
        )

    def _broadcast_playback(self) -> None:
        """Send the state of the run to all clients."""
        if self._run.requested_duration:
            self._server.broadcast_playback_state(self.make_playback_state())

    def close(self) -> None:
        """Send all queued messages, and stop the server."""
        if self._is_open:
            self._is_open = False
            self._send()
            self._broadcast_playback()
            self._stop()

    def abort(self) -> None:
        """Stop the server at once. Never raises."""
        if self._is_open:
            self._is_open = False
            self._stop()

    def _stop(self) -> None:
        """Stop the server. It waits for clients that are connecting, so stop it in a thread with a time limit."""
        for opened in self._channels.values():
            opened.channel.close()
        stopping = threading.Thread(target=self._server.stop, name="navsense-foxglove", daemon=True)
        stopping.start()
        stopping.join(STOP_TIMEOUT)
        if stopping.is_alive():
            LOG.warning("%s: a client that has not finished its handshake keeps the port open", self.url)


class _Listener:
    """Gets the requests of the clients, in threads of the server."""

    def __init__(self, publisher: FoxglovePublisher) -> None:
        """Store the publisher."""
        self._publisher = publisher

    def on_subscribe(self, client: Client, channel: ChannelView) -> None:
        """Send a latched message to a new subscriber. The first one starts the run."""
        self._publisher.add_client(client.id)
        self._publisher.send_latched(channel.id)

    def on_unsubscribe(self, client: Client, channel: ChannelView) -> None:
        """Do nothing: the server knows its subscribers."""

    def on_client_advertise(self, client: Client, channel: object) -> None:
        """Do nothing: clients do not publish."""

    def on_client_unadvertise(self, client: Client, client_channel_id: int) -> None:
        """Do nothing: clients do not publish."""

    def on_message_data(self, client: Client, client_channel_id: int, data: bytes) -> None:
        """Do nothing: clients do not publish."""

    def on_get_parameters(self, client: Client, names: Sequence[str], request_id: str | None = None) -> list[Parameter]:
        """Return parameters by name; all of them without names."""
        return _make_parameters(self._publisher.list_parameters(), names)

    def on_set_parameters(
        self, client: Client, parameters: Sequence[Parameter], request_id: str | None = None
    ) -> list[Parameter]:
        """Set the speed or the pause, and return the values of the parameters."""
        for parameter in parameters:
            self._publisher.set_parameter(parameter.name, parameter.get_value())
        return _make_parameters(self._publisher.list_parameters(), [parameter.name for parameter in parameters])

    def on_parameters_subscribe(self, names: Sequence[str]) -> None:
        """Do nothing: the server sends the parameters that `on_set_parameters` returns."""

    def on_parameters_unsubscribe(self, names: Sequence[str]) -> None:
        """Do nothing."""

    def on_connection_graph_subscribe(self) -> None:
        """Do nothing: the server has no connection graph."""

    def on_connection_graph_unsubscribe(self) -> None:
        """Do nothing."""

    def on_playback_control_request(self, request: PlaybackControlRequest) -> PlaybackState:
        """Pause the run, or let it go on with a speed. A run cannot go to another time."""
        from foxglove.websocket import PlaybackCommand

        self._publisher.set_parameter(SPEED, request.playback_speed)
        self._publisher.set_parameter(PAUSED, request.playback_command == PlaybackCommand.Pause)
        return self._publisher.make_playback_state(request.request_id)


def _make_parameters(values: Mapping[str, Any], names: Sequence[str]) -> list[Parameter]:
    """Return the parameters with these names; all of them without names."""
    from foxglove import Parameter
    from foxglove.websocket import ParameterType

    def make_parameter(name: str, value: Any) -> Parameter:
        kind = ParameterType.Float64 if isinstance(value, float) else None
        return Parameter(name, value=list(value) if isinstance(value, tuple) else value, type=kind)

    return [make_parameter(name, value) for name, value in values.items() if not names or name in names]


def import_sdk(url: StreamUrl) -> Any:
    """Import foxglove-sdk. Raises `RecordingError` without it."""
    try:
        import foxglove
    except ImportError as error:
        raise RecordingError(
            "Foxglove needs foxglove-sdk", where=Where(url.text), remedy="pip install 'navsense[foxglove]'"
        ) from error
    return foxglove


def check(url: StreamUrl, _world: World | None) -> None:
    """Raise `RecordingError` for an invalid URL, and without foxglove-sdk."""
    parse_wait(url, 0.0)
    if url.path not in ("", "/"):
        raise RecordingError("path of the URL", url.path, where=Where(url.text), allowed="must be empty")
    import_sdk(url)


STREAMS = (
    Stream(
        scheme="foxglove",
        name="Foxglove",
        url_format="foxglove://HOST:PORT",
        open_publisher=FoxglovePublisher,
        options=("wait",),
        check=check,
        is_live=True,
    ),
)
