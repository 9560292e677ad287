"""The stream of Gazebo transport: the messages of the `.gz.mcap` recording, for `gz topic` and for nodes of Gazebo.

    gz://HOST:PORT?partition=PARTITION&version=VERSION&world=WORLD&wait=SECONDS

Topics and bytes are those of the recording. A message is sent at its time of arrival: one with a latency waits for it.
The messages of a topic without subscribers are counted, but not encoded. `/clock` has the true time, unless another
process publishes it.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from dataclasses import replace
from operator import itemgetter

from navsense.core.errors import RecordingError, Where
from navsense.core.readings import TimeSlice, to_nanosecond
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.messages.gz import PACKAGE, encode_int, encode_nested
from navsense.recordings.base import check_recorded_run, make_closed_error
from navsense.recordings.gazebo import GazeboPackage, NumberedEncoder
from navsense.recordings.info import RecordedRun
from navsense.recordings.message_builder import list_true_stamps
from navsense.streams.gz.currents import CURRENT_OPTIONS, GzCurrentSubscriber
from navsense.streams.gz.discovery import AdvertisedTopic
from navsense.streams.gz.node import GzNode, GzTopic, import_zmq
from navsense.streams.gz.run_services import decode_boolean, encode_boolean, make_handler
from navsense.streams.gz.settings import OPTIONS, Settings, read_settings
from navsense.streams.gz.subscriber import GZ_MOTION_OPTIONS, open_subscriber
from navsense.streams.gz.versions import get_package, get_type_name
from navsense.streams.services import list_services
from navsense.streams.stream import Pace, Publisher, Stream, StreamUrl, SupportsRunChanges
from navsense.world import World

LOG = logging.getLogger(__name__)
"""Logs the URL with its port, and how to watch the topics."""

CLOCK_TOPIC, CLOCK_TYPE = "/clock", f"{PACKAGE}.Clock"
"""Topic of the true time and its message type."""

CLOCK_TIMEOUT = 0.1
"""Time (s) within which another process answers that it publishes the clock."""

WORLD_PREFIX = re.compile(r"^/world/[^/]+/")
"""The name of the world in a topic."""

BOOLEAN_TYPE = f"{PACKAGE}.Boolean"
"""Message type of switches."""

get_time = itemgetter(0)
"""Returns the time of arrival of a message that waits."""


class GzPublisher(Publisher):
    """Publishes a run on Gazebo transport."""

    def __init__(self, url: StreamUrl, recorded_run: RecordedRun) -> None:
        """Open the port and advertise the topics. Raises `RecordingError`."""
        settings = read_settings(url)
        check_recorded_run(url.text, recorded_run, "Gazebo transport")
        package = get_package(settings.version)
        _check_sensors(url, recorded_run.world, package)
        self._run, self._wait, self._is_open = recorded_run, settings.wait, True
        self._world_name, self._has_other_world = settings.world or recorded_run.world.name, bool(settings.world)
        sensors = package.list_sensors(recorded_run)
        self._encoders = {sensor.name: NumberedEncoder(package, sensor) for sensor in sensors}
        topics = {name: self._make_topic(settings, name) for name in self._encoders}
        self._node = GzNode(settings, list(topics.values()), Where(url.text))
        self._topics = {name: self._node.topics[topic.name] for name, topic in topics.items()}
        self._queue: list[tuple[int, GzTopic, bytes]] = []
        self._clock = self._add_clock(settings)
        self.url = replace(url, host=settings.host).with_port(self._node.port)
        LOG.info("%s: publishes %d topics in the partition %s", self.url, len(self._node.topics), settings.partition)

    def _add_clock(self, settings: Settings) -> GzTopic | None:
        """Return the topic of the clock; None if another process publishes it."""
        topic = AdvertisedTopic(settings.make_topic(CLOCK_TOPIC), get_type_name(CLOCK_TYPE, settings.version))
        if self._node.has_other_publisher(topic.name, CLOCK_TIMEOUT):
            LOG.info("%s: another process publishes %s", self._node.where, CLOCK_TOPIC)
            return None
        return self._node.add_topic(topic)

    def wait_for_subscriber(self) -> None:
        """Wait for the first subscription."""
        if self._wait > 0.0 and not self._node.wait_for_subscriber(self._wait):
            LOG.warning("%s: no subscriber within %g s; the run continues", self.url, self._wait)

    def attach_pace(self, pace: Pace | None) -> None:
        """Offer the service /world/WORLD/pause from Boolean to Boolean, which lets the run wait."""
        if pace is None or not self._is_open:
            return

        def handle(request: bytes) -> bytes:
            pace.is_paused = decode_boolean(request)
            return encode_boolean(pace.is_paused)

        name = f"/world/{self._world_name}/pause"
        self._node.add_service(name, BOOLEAN_TYPE, BOOLEAN_TYPE, handle)

    def attach_controls(self, controls: SupportsRunChanges) -> None:
        """Offer the services of `streams.services`."""
        for service in list_services(controls, self._run.world, self._run.topics):
            request_type, response_type, handler = make_handler(service)
            self._node.add_service(self._rename_world(service.name), request_type, response_type, handler)

    def _rename_world(self, name: str) -> str:
        """Return the name of a topic or service with the world of the URL."""
        return WORLD_PREFIX.sub(lambda _: f"/world/{self._world_name}/", name) if self._has_other_world else name

    def _make_topic(self, settings: Settings, name: str) -> AdvertisedTopic:
        """Return the topic of a sensor."""
        topic = self._run.topics.get_sensor_topic(name, "measured")
        return AdvertisedTopic(settings.make_topic(self._rename_world(topic)), self._encoders[name].type)

    @property
    def subscriber_count(self) -> int:
        """The number of subscriptions so far. Some programs repeat theirs."""
        if self._is_open:
            self._node.update_subscribers()
        return self._node.subscriber_count

    def write(self, time_slice: TimeSlice) -> None:
        """Send the messages that arrive until the end of a time slice."""
        if not self._is_open:
            raise make_closed_error(self.url)
        self._node.update_subscribers()
        for name, reading in time_slice.readings.items():
            if name not in self._encoders:
                continue
            topic, encoder = self._topics[name], self._encoders[name]
            if topic.has_subscribers:
                self._queue += [(time, topic, data) for _, time, _, data in encoder.encode(reading)]
            else:
                encoder.skip(reading)
        stamps = list_true_stamps(time_slice) if self._clock is not None and self._clock.has_subscribers else None
        if self._clock is not None and stamps is not None:
            self._queue += [(stamp, self._clock, encode_clock(stamp)) for stamp in stamps.tolist()]
        self._queue.sort(key=get_time)
        end = to_nanosecond(self._run.epoch, time_slice.end)
        self._send(bisect_right(self._queue, end, key=get_time))

    def _send(self, count: int) -> None:
        """Send the first of the messages that wait."""
        sent, self._queue = self._queue[:count], self._queue[count:]
        self._node.send((topic, data) for _, topic, data in sent)

    def close(self) -> None:
        """Send all messages that wait, and close."""
        if self._is_open:
            self._is_open = False
            self._send(len(self._queue))
            self._node.close()

    def abort(self) -> None:
        """Close at once. Never raises."""
        if self._is_open:
            self._is_open = False
            self._node.abort()


def encode_clock(stamp: int) -> bytes:
    """Return a `Clock` with a time (ns) of the simulation, and with the same stamp."""
    seconds, nanoseconds = divmod(stamp, NANOSECONDS_PER_SECOND)
    time = encode_int(1, seconds) + encode_int(2, nanoseconds)
    return encode_nested(1, encode_nested(1, time)) + encode_nested(4, time)


def _check_sensors(url: StreamUrl, world: World, package: GazeboPackage) -> None:
    """Raise `RecordingError` if no sensor has a message."""
    if not any(package.has_message(sensor.spec) for sensor in world.sensors):
        allowed = f"must have one of {', '.join(package.list_types())}"
        raise RecordingError(f"no sensor has a message in {package.name}", where=Where(url.text), allowed=allowed)


def check(url: StreamUrl, world: World | None) -> None:
    """Raise `RecordingError` for an invalid URL, a world without messages, and without pyzmq."""
    settings = read_settings(url)
    if world is not None:
        _check_sensors(url, world, get_package(settings.version))
    import_zmq(Where(url.text))


STREAMS = (
    Stream(
        scheme="gz",
        name="Gazebo transport",
        url_format="gz://HOST:PORT",
        open_publisher=GzPublisher,
        options=OPTIONS,
        check=check,
        is_live=True,
        open_subscriber=open_subscriber,
        motion_options=GZ_MOTION_OPTIONS,
        motion_format="gz://HOST?partition=PARTITION&topic=TOPIC&model=MODEL",
        open_current=GzCurrentSubscriber,
        current_options=CURRENT_OPTIONS,
    ),
)
