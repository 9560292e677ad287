"""Streams of one Doppler instrument in a device format, to all clients of a TCP port.

    pd0+tcp://HOST:PORT?sensor=SENSOR&frame=FRAME&wait=SECONDS            also pd6+tcp, wl+tcp and nmea+tcp

SENSOR is the full name of a sensor or the end of it. It is required if several sensors fit. FRAME is beam, instrument,
ship or earth. The run starts with the first client, or after SECONDS.
"""

from __future__ import annotations

import logging

from navsense.core.errors import RecordingError, Where
from navsense.core.readings import TimeSlice
from navsense.core.text import format_count, parse_decimal
from navsense.devices import format_encoders
from navsense.devices.format_encoders import DeviceFormat
from navsense.devices.instrument_encoder import InstrumentEncoder, check_coordinates, select_sensor
from navsense.recordings.base import check_recorded_run, make_closed_error
from navsense.recordings.info import RecordedRun
from navsense.streams.stream import Publisher, Stream, StreamUrl
from navsense.streams.tcp_server import TcpServer
from navsense.world import MountedSensor, World

LOG = logging.getLogger(__name__)
"""Logs the URL with its port, and the number of bytes sent."""

CONNECT_TIMEOUT = 30.0
"""Default time (s) that a run waits for the first client."""


class DevicePublisher(Publisher):
    """Publishes the output of one instrument to the clients of a TCP port."""

    def __init__(self, url: StreamUrl, recorded_run: RecordedRun, device_format: DeviceFormat) -> None:
        """Listen. Raises `RecordingError`."""
        check_recorded_run(url.text, recorded_run, "a device port")
        sensor, self._wait = _select(url, recorded_run.world, device_format), parse_wait(url, CONNECT_TIMEOUT)
        self._encoder = InstrumentEncoder(recorded_run.world, device_format, sensor, url.options.get("frame", ""))
        self._is_open = True
        self._server = TcpServer(url.host, _get_port(url), Where(url.text))
        self.url = self._server.name = url.with_port(self._server.port)
        LOG.info("%s: serves all clients", self.url)

    @property
    def subscriber_count(self) -> int:
        """The number of clients so far."""
        return self._server.client_count

    def wait_for_subscriber(self) -> None:
        """Wait for the first client."""
        self._server.wait(self._wait)

    def write(self, time_slice: TimeSlice) -> None:
        """Send the output of the instrument in a time slice to all clients, without waiting for them."""
        if not self._is_open:
            raise make_closed_error(self.url)
        self._server.send(self._encoder.encode(time_slice))

    def close(self) -> None:
        """Send the queues of clients that make progress, and close."""
        was_open, self._is_open = self._is_open, False
        self._server.close()
        if was_open:
            count, sent = self._server.client_count, self._server.sent_bytes
            result = f"sent {sent} bytes to {format_count(count, 'client')}" if count else "no client connected"
            LOG.info("%s: %s", self.url, result)

    def abort(self) -> None:
        """Close at once. Never raises."""
        self._is_open = False
        self._server.abort()


def _get_port(url: StreamUrl) -> int:
    if url.port is None:
        allowed = "must be a number from 0 to 65535; 0 selects a free port"
        raise RecordingError("the URL has no port", where=Where(url.text), allowed=allowed)
    return url.port


def parse_wait(url: StreamUrl, default: float) -> float:
    """Return the option `wait`, a time (s). Raises `RecordingError`."""
    text = url.options.get("wait", "")
    wait = parse_decimal(text) if "wait" in url.options else default
    if wait is None or not 0.0 <= wait <= 1e6:
        raise RecordingError("wait (s)", text, where=Where(url.text), allowed="must be a number from 0 to 1e6")
    return wait


def _select(url: StreamUrl, world: World, device_format: DeviceFormat) -> MountedSensor:
    """Return the sensor of a URL. Raises `RecordingError` if the device format does not support its frame."""
    where = Where(url.text)
    check_coordinates(device_format, url.options.get("frame", ""), where)
    hint = "?sensor=SENSOR after the port"
    return select_sensor(world, device_format, url.options.get("sensor", ""), where, hint)


def _make_stream(suffix: str, device_format: DeviceFormat) -> Stream:
    scheme = f"{suffix.split('.')[1]}+tcp"

    def check(url: StreamUrl, world: World | None) -> None:
        _get_port(url)
        parse_wait(url, CONNECT_TIMEOUT)
        if world is not None:
            _select(url, world, device_format)

    return Stream(
        scheme=scheme,
        name=f"{device_format.name} to TCP clients",
        url_format=f"{scheme}://HOST:PORT",
        open_publisher=lambda url, recorded_run: DevicePublisher(url, recorded_run, device_format),
        options=("sensor", "frame", "wait") if device_format.has_coordinates else ("sensor", "wait"),
        check=check,
    )


STREAMS = tuple(_make_stream(suffix, device_format) for suffix, device_format in format_encoders.FORMATS.items())
"""A stream for each device format."""
