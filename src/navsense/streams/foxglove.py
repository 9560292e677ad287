"""The stream of Foxglove: a WebSocket server with the messages of the MCAP writer, time, parameters and playback.

    foxglove://HOST:PORT?wait=SECONDS               default: port 8765 on loopback, 30 s

Messages are CDR with definitions of ROS 2. A message is sent at its time of arrival: one with a latency waits for it.
A channel without subscribers is not encoded. The clients get the simulated time, can pause the run and change its
speed, and see the parameters of the world. They can switch sensors, lower their rates and set the current. The run
starts with the first subscriber, or after SECONDS.
"""

from __future__ import annotations

import importlib.util
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from navsense.core.errors import NavsenseError, RecordingError, SimulationError, Where
from navsense.core.readings import CURRENT, RATE, TimeSlice, to_nanosecond
from navsense.environment.current.adjustment import PROCESSES
from navsense.messages.cdr import encode
from navsense.parameters import list_parameters
from navsense.recordings.base import check_recorded_run, make_closed_error
from navsense.recordings.info import RecordedRun, get_version
from navsense.recordings.message_builder import MessageBlock, MessageBuilder, OutputChannel
from navsense.simulation.real_time import MIN_SPEED
from navsense.streams.device_port import CONNECT_TIMEOUT, parse_wait
from navsense.streams.stream import Pace, Publisher, Stream, StreamUrl, SupportsRunChanges
from navsense.world import World

if TYPE_CHECKING:
    from navsense.streams.foxglove_server import FoxgloveServer, PlaybackState, ServedChannel

LOG = logging.getLogger(__name__)

DEFAULT_PORT = 8765
"""The port that the apps of Foxglove propose."""

SPEED, PAUSED = "speed", "paused"
"""Parameters of the run that a client can set."""

ON_PARAMETER = "is_on"
"""Name of the parameter that switches a sensor."""


@dataclass(frozen=True, order=True)
class _Message:
    """An encoded message that waits for its time of arrival `time` (ns). `number` keeps the order of equal times."""

    time: int
    number: int
    channel: int
    data: bytes


class FoxglovePublisher(Publisher):
    """Publishes a run to the apps of Foxglove, and to other clients of their WebSocket protocol."""

    def __init__(self, url: StreamUrl, recorded_run: RecordedRun) -> None:
        """Start the server. Raises `RecordingError`."""
        self._wait = parse_wait(url, CONNECT_TIMEOUT)
        check_recorded_run(url.text, recorded_run, "Foxglove")
        check_library(url)
        from navsense.streams.foxglove_server import FoxgloveServer

        self._run = recorded_run
        self._builder = MessageBuilder(recorded_run, self._has_subscribers)
        self._channels: dict[tuple[str, str], ServedChannel] = {}
        self._waiting: list[_Message] = []
        self._count = 0
        self._pace: Pace | None = None
        self._controls: SupportsRunChanges | None = None
        self._setters: dict[str, Callable[[object], None]] = {}
        self._sent: dict[str, object] = {}
        start, end = self._to_time(0.0), self._to_time(recorded_run.requested_duration or 0.0)
        self._time, self._is_open = start, True
        self._server: FoxgloveServer = FoxgloveServer(
            f"navsense {get_version()}: {recorded_run.world.name}",
            url.host,
            DEFAULT_PORT if url.port is None else url.port,
            Where(url.text),
            self,
            (start, end) if end > start else None,
        )
        self.url = self._server.name = url.with_port(self._server.port)
        try:
            for channel in self._builder.list_measured_channels():
                self._get_channel(channel)
            for block in self._builder.build_static_transforms():
                self._queue(block)
        except BaseException:
            self.abort()
            raise
        LOG.info("%s: open ws://%s:%d in Foxglove", self.url, url.host, self._server.port)

    @property
    def subscriber_count(self) -> int:
        """The number of clients so far that subscribed to a channel."""
        return self._server.client_count

    def wait_for_subscriber(self) -> None:
        """Wait for the first client that subscribes to a channel."""
        if self._wait > 0.0 and not self._server.has_subscriber.wait(self._wait):
            LOG.warning("%s: no client subscribed within %g s; the run continues", self.url, self._wait)

    def attach_pace(self, pace: Pace | None) -> None:
        """Let the clients pause the run and change its speed."""
        self._pace = pace
        self._server.send_parameters((SPEED, PAUSED))
        self._server.send_playback(self._make_playback_state())

    def attach_controls(self, controls: SupportsRunChanges) -> None:
        """Let the clients switch the sensors, lower their rates, and set the means of the current."""
        self._controls = controls
        self._sent = _list_changeable(controls)
        for sensor in self._run.world.sensors:
            self._setters[f"{sensor.name}.{ON_PARAMETER}"] = partial(_switch, controls, sensor.name)
            self._setters[f"{sensor.name}.{RATE}"] = partial(_set_rate, controls, sensor.name)
        for process in PROCESSES if controls.has_adjustable_current else ():
            self._setters[f"{CURRENT}.{process}.mean"] = partial(_set_mean, controls, process)
        self._server.send_parameters(self._sent)

    def write(self, time_slice: TimeSlice) -> None:
        """Send the messages that arrive until the end of a time slice."""
        if not self._is_open:
            raise make_closed_error(self.url)
        for block in self._builder.build_blocks(time_slice):
            self._queue(block)
        self._time = self._to_time(time_slice.end)
        self._send(self._time)
        if time_slice.changes and self._controls is not None:
            self._send_changes(self._controls)

    def _send_changes(self, controls: SupportsRunChanges) -> None:
        """Send the parameters that another stream or the caller of the run has changed."""
        values = _list_changeable(controls)
        changed = [name for name, value in values.items() if value != self._sent.get(name)]
        self._sent = values
        if changed:
            self._server.send_parameters(changed)

    def close(self) -> None:
        """Send all messages that wait, and stop the server."""
        if self._is_open:
            self._is_open = False
            self._send(None)
            self._server.send_playback(self._make_playback_state())
            self._server.close()

    def abort(self) -> None:
        """Stop the server at once. Never raises."""
        self._is_open = False
        self._server.abort()

    def _to_time(self, seconds: float) -> int:
        """Return a simulated time (s) as time since 1970 (ns)."""
        return to_nanosecond(self._run.epoch, seconds)

    def _get_channel(self, channel: OutputChannel) -> ServedChannel:
        """Return the channel of a topic and type, made at its first use."""
        key, encoder = (channel.topic, channel.encoder.type), channel.encoder
        if key not in self._channels:
            self._channels[key] = self._server.add_channel(channel.topic, encoder.type, encoder.schema)
        return self._channels[key]

    def _has_subscribers(self, channel: OutputChannel) -> bool:
        """Return whether a channel has subscribers, or late subscribers get its last message."""
        return self._server.has_subscribers(self._get_channel(channel)) or channel.latched

    def _queue(self, block: MessageBlock) -> None:
        """Encode the messages of a block."""
        channel, count = self._get_channel(block.channel), block.stamp.shape[0]
        is_latched = block.channel.latched
        if not count:
            return
        rows = [row.tobytes() for row in encode(block.channel.encoder, block.stamp, block.arrays)]
        times = block.log_time.tolist()
        if is_latched:
            channel.latched = times[-1], rows[-1]
        self._waiting += map(_Message, times, range(self._count, self._count + count), [channel.id] * count, rows)
        self._count += count

    def _send(self, end: int | None) -> None:
        """Send the messages that arrive until a time (ns), in the order of their arrival; all of them for None."""
        self._waiting.sort()
        due = len(self._waiting) if end is None else sum(message.time <= end for message in self._waiting)
        self._server.send([(one.channel, one.time, one.data) for one in self._waiting[:due]], self._time)
        del self._waiting[:due]

    # Called in the thread of the server

    def list_parameters(self) -> Mapping[str, Any]:
        """Return the parameters of the run and of the world by name."""
        values: dict[str, Any] = {"world": self._run.world.name, "seed": self._run.seed, "epoch": self._run.epoch}
        if self._pace is not None:
            values |= {SPEED: self._pace.speed, PAUSED: self._pace.is_paused}
        values |= dict(list_parameters(self._run.world))
        return values if self._controls is None else values | _list_changeable(self._controls)

    def set_parameter(self, name: str, value: object) -> bool:
        """Pause the run, change its speed, or change it as the services do.

        Return False for an invalid value, with a warning, and for other parameters, which cannot be set.
        """
        if name in self._setters:
            return self._set(name, value)
        if self._pace is None:
            return False
        if name == PAUSED and isinstance(value, bool):
            self._pace.is_paused = value
        elif name == SPEED and isinstance(value, int | float) and not isinstance(value, bool):
            if not MIN_SPEED <= value < math.inf:
                return False
            self._pace.speed = float(value)
        else:
            return False
        self._server.send_playback(self._make_playback_state())
        return True

    def _set(self, name: str, value: object) -> bool:
        """Change a sensor or the current. The server sends the new value to the clients."""
        try:
            self._setters[name](value)
            self._sent[name] = value
        except NavsenseError as error:
            LOG.warning("%s: parameter %s: %s", self.url, name, error)
            return False
        return True

    def control_playback(self, *, is_paused: bool, speed: float) -> PlaybackState:
        """Pause the run, or let it go on with a speed. A run cannot go to another time."""
        self.set_parameter(SPEED, speed)
        self.set_parameter(PAUSED, is_paused)
        self._server.send_parameters((SPEED, PAUSED))
        return self._make_playback_state()

    def _make_playback_state(self) -> PlaybackState:
        """Return the state of the run for the playback controls of the clients."""
        from navsense.streams.foxglove_server import PlaybackState, PlaybackStatus

        is_paused = self._pace is not None and self._pace.is_paused
        status = PlaybackStatus.PAUSED if is_paused else PlaybackStatus.PLAYING
        speed = 1.0 if self._pace is None else self._pace.speed
        return PlaybackState(status if self._is_open else PlaybackStatus.ENDED, self._time, speed)


def _list_changeable(controls: SupportsRunChanges) -> dict[str, object]:
    """Return the parameters by which clients change a run, with their values."""
    values: dict[str, object] = {}
    for sensor in controls.sensors:
        values[f"{sensor.name}.{ON_PARAMETER}"] = controls.is_on(sensor.name)
        values[f"{sensor.name}.{RATE}"] = controls.get_rate(sensor.name)
    for process in PROCESSES if controls.has_adjustable_current else ():
        values[f"{CURRENT}.{process}.mean"] = controls.get_current_model(process)[0]
    return values


def _switch(controls: SupportsRunChanges, name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise SimulationError("value", repr(value), allowed="must be true or false")
    controls.switch(name, on=value)


def _set_rate(controls: SupportsRunChanges, name: str, value: object) -> None:
    controls.set_rate(name, _check_number(value))


def _set_mean(controls: SupportsRunChanges, process: str, value: object) -> None:
    controls.set_current({f"{process}.mean": _check_number(value)})


def _check_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SimulationError("value", repr(value), allowed="must be a number")
    return float(value)


def check_library(url: StreamUrl) -> None:
    """Raise `RecordingError` if the library `websockets` is not installed."""
    if importlib.util.find_spec("websockets") is None:
        remedy = "pip install 'navsense[foxglove]'"
        raise RecordingError("Foxglove needs websockets", where=Where(url.text), remedy=remedy)


def check(url: StreamUrl, _world: World | None) -> None:
    """Raise `RecordingError` for an invalid URL, and without the library `websockets`."""
    parse_wait(url, CONNECT_TIMEOUT)
    if url.path not in ("", "/"):
        raise RecordingError("path of the URL", url.path, where=Where(url.text), allowed="must be empty")
    check_library(url)


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
