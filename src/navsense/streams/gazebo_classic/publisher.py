"""The stream of Gazebo Classic: a run as a node of a running gzserver, without an installed Gazebo.

    gazebo://HOST:PORT?messages=FORM&host=ADDRESS&wait=SECONDS        default: 127.0.0.1:11345, gazebo11, 30 s

HOST:PORT is the address of the master, which is a part of gzserver. The node listens at ADDRESS of this machine, by
default on loopback. The run starts with the first subscriber, or after SECONDS.

Topics are those of the recordings. A message is sent at its time of arrival. A topic without subscribers is not
encoded. FORM is `gazebo11` for the messages that Gazebo 11 reads. With `document`, magnetometers and altimeters have
the messages of Gazebo's design documents, as in a `.gazebo.mcap` recording.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Mapping
from operator import itemgetter

from navsense.core.errors import RecordingError, Where, show
from navsense.core.readings import TimeSlice, to_nanosecond
from navsense.core.text import format_count
from navsense.recordings.base import check_recorded_run, make_closed_error
from navsense.recordings.gazebo import GAZEBO_11, GAZEBO_CLASSIC, GazeboPackage, NumberedEncoder
from navsense.recordings.info import RecordedRun
from navsense.streams.device_port import CONNECT_TIMEOUT, parse_wait
from navsense.streams.gazebo_classic.node import DEFAULT_PORT, ClassicNode, ClassicNodeError, ClassicTopic
from navsense.streams.gazebo_classic.packet import format_frame
from navsense.streams.gazebo_classic.subscriber import MOTION_OPTIONS, GazeboClassicSubscriber
from navsense.streams.stream import LOOPBACK, Publisher, Stream, StreamUrl
from navsense.world import World

LOG = logging.getLogger(__name__)

FORMS: Mapping[str, GazeboPackage] = {"gazebo11": GAZEBO_11, "document": GAZEBO_CLASSIC}
"""Values of the option `messages`."""

get_time = itemgetter(0)
"""Returns the time of arrival of a message that waits."""


class GazeboClassicPublisher(Publisher):
    """Publishes a run as a node of Gazebo Classic."""

    def __init__(self, url: StreamUrl, recorded_run: RecordedRun) -> None:
        """Connect to the master, and advertise the topics. Raises `RecordingError`."""
        check(url, recorded_run.world)
        check_recorded_run(url.text, recorded_run, "Gazebo Classic")
        self._run, self._wait, where = recorded_run, parse_wait(url, CONNECT_TIMEOUT), Where(url.text)
        port = DEFAULT_PORT if url.port is None else url.port
        self.url = url.with_port(port)
        package = FORMS[url.options.get("messages", "gazebo11")]
        self._encoders = {
            sensor.name: NumberedEncoder(package, sensor) for sensor in package.list_sensors(recorded_run)
        }
        self._topics = {
            name: ClassicTopic(recorded_run.topics.get_sensor_topic(name, "measured"), encoder.type)
            for name, encoder in self._encoders.items()
        }
        self._messages: list[tuple[int, ClassicTopic, bytes]] = []
        self._is_open = True
        try:
            self._node = ClassicNode((url.host, port), url.options.get("host", LOOPBACK), name=self.url)
        except ClassicNodeError as error:
            what, remedy = "master of Gazebo Classic", "start it: gzserver WORLD"
            raise RecordingError(what, f"{url.host}:{port}", where=where, allowed=str(error), remedy=remedy) from error
        try:
            self._check_topics(where)
            self._node.advertise(list(self._topics.values()))
        except BaseException:
            self._node.stop()
            raise
        LOG.info("%s: publishes %s to %s", self.url, format_count(len(self._topics), "topic"), self._node.version)

    def _check_topics(self, where: Where) -> None:
        """Raise `RecordingError` for a topic that another program publishes with another type.

        The server would end: it does not accept a second type of a topic.
        """
        for topic in self._topics.values():
            for other in self._node.list_publishers(topic.name):
                place = f"{other.host}:{other.port}"
                if other.type != topic.type:
                    allowed = f"is published at {place} as {show(other.type)}"
                    raise RecordingError(
                        f"topic {topic.name} of type {topic.type}", where=where, allowed=allowed, remedy="rename it"
                    )
                LOG.warning("%s: topic %s is published at %s too", self.url, topic.name, place)

    @property
    def subscriber_count(self) -> int:
        """The number of subscriptions so far, of all topics."""
        return self._node.subscriber_count

    def wait_for_subscriber(self) -> None:
        """Wait for the first subscriber of any topic."""
        if self._wait > 0.0 and not self._node.wait_for_subscriber(self._wait):
            LOG.warning("%s: no subscriber within %g s; the run continues", self.url, self._wait)

    def write(self, time_slice: TimeSlice) -> None:
        """Send the messages that arrive until the end of a time slice."""
        if not self._is_open:
            raise make_closed_error(self.url)
        if reason := self._node.lost:
            raise RecordingError(reason, where=Where(self.url))
        for name, reading in time_slice.readings.items():
            if name in self._encoders:
                topic, encoder = self._topics[name], self._encoders[name]
                if topic.subscribers:
                    self._messages += [(time, topic, data) for _, time, _, data in encoder.encode(reading)]
        self._messages.sort(key=get_time)
        end = to_nanosecond(self._run.epoch, time_slice.end)
        self._send(bisect_right(self._messages, end, key=get_time))

    def _send(self, count: int) -> None:
        """Send the first of the messages that wait."""
        messages, self._messages = self._messages[:count], self._messages[count:]
        frames: dict[str, list[bytes]] = {}
        topics = {topic.name: topic for _, topic, _ in messages}
        for _, topic, data in messages:
            frames.setdefault(topic.name, []).append(format_frame(data))
        for name, parts in frames.items():
            self._node.publish(topics[name], parts)

    def close(self) -> None:
        """Send all messages to the subscribers that still read, end the topics and disconnect."""
        if self._is_open:
            self._is_open = False
            self._send(len(self._messages))
            self._node.finish()
            self._node.stop()
            count, sent = self._node.subscriber_count, self._node.sent_messages
            result = f"sent {format_count(sent, 'message')} in {format_count(count, 'subscription')}"
            LOG.info("%s: %s", self.url, result if count else "no subscriber connected")

    def abort(self) -> None:
        """Disconnect at once. Never raises."""
        if self._is_open:
            self._is_open = False
            self._node.stop()


def check(url: StreamUrl, world: World | None) -> None:
    """Raise `RecordingError` for an invalid URL, and for a world without a sensor that has a message."""
    where = Where(url.text)
    parse_wait(url, CONNECT_TIMEOUT)
    if url.path not in ("", "/"):
        raise RecordingError("path of the URL", url.path, where=where, allowed="must be empty")
    if url.port == 0:
        raise RecordingError("port of the master", 0, where=where, allowed="must be a number from 1 to 65535")
    form = url.options.get("messages", "gazebo11")
    if form not in FORMS:
        raise RecordingError("option messages", form, where=where, allowed=f"must be one of {', '.join(FORMS)}")
    host = url.options.get("host", LOOPBACK)
    if host in ("", "0.0.0.0", "::", "*"):  # noqa: S104  # it is rejected
        allowed = "must be an address of this machine that subscribers can reach"
        raise RecordingError("option host", host, where=where, allowed=allowed)
    package = FORMS[form]
    if world is not None and not any(package.has_message(sensor.spec) for sensor in world.sensors):
        allowed = f"must have one of {', '.join(package.list_types())}"
        raise RecordingError(f"no sensor has a message in {package.name}", where=where, allowed=allowed)


STREAMS = (
    Stream(
        scheme="gazebo",
        name="Gazebo Classic",
        url_format="gazebo://HOST:PORT",
        open_publisher=GazeboClassicPublisher,
        options=("messages", "host", "wait"),
        check=check,
        is_live=True,
        open_subscriber=GazeboClassicSubscriber,
        motion_options=MOTION_OPTIONS,
        motion_format="gazebo://HOST:PORT?model=MODEL&link=LINK",
    ),
)
