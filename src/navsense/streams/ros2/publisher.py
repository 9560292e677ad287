"""The streams of ROS 2: a run as a node with publishers on DDS or on Zenoh, without an installed ROS.

    ros2://ADDRESS?domain=N&node=NAME&wait=SECONDS              default: loopback, ROS_DOMAIN_ID or 0, 30 s
    ros2+zenoh://HOST:PORT?domain=N&node=NAME&wait=SECONDS      default: 127.0.0.1:7447

ADDRESS is that of a network interface of this machine, or the name of the interface. HOST:PORT is the address of a
router of Zenoh. The run starts with the first subscription, or after SECONDS.

Topics, types and bytes are those of an `.mcap`. A message is sent at its time of arrival: one with a latency waits for
it. A topic without subscriptions is not encoded, unless it is latched.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias

import numpy as np

from navsense.core.errors import RecordingError, Where
from navsense.core.readings import TimeSlice, to_nanosecond
from navsense.core.text import format_count
from navsense.messages import world_messages
from navsense.messages.cdr import MessageEncoder, encode
from navsense.messages.schemas import HUMBLE
from navsense.recordings.base import check_recorded_run, make_closed_error
from navsense.recordings.info import RecordedRun
from navsense.recordings.message_builder import MessageBlock, MessageBuilder, OutputChannel
from navsense.recordings.rosbag.writer import compute_type_hash
from navsense.recordings.topic_names import CLOCK, TRANSFORMS
from navsense.streams.device_port import CONNECT_TIMEOUT, parse_wait
from navsense.streams.ros2.naming import is_valid_topic
from navsense.streams.ros2.remote import RemotePublisher
from navsense.streams.ros2.url import format_query, parse_domain
from navsense.streams.stream import Publisher, StreamUrl

LOG = logging.getLogger(__name__)

POLL_INTERVAL = 0.01
"""Time (s) between two looks for the first subscription."""


class TopicWriter(Protocol):
    """The writer of one topic.

    dropped: the number of messages that the transport did not accept.
    """

    dropped: int

    @property
    def has_readers(self) -> bool:
        """True if a program reads the topic."""
        ...

    @property
    def reader_count(self) -> int:
        """The number of readers since the start; on Zenoh, how often a first one subscribed."""
        ...

    def write(self, data: bytes) -> None:
        """Send a message, without waiting for readers."""
        ...


class Node(Protocol):
    """A node on a transport.

    alignment: the size of a message is a multiple of it.
    errors: what the library of the transport raises.
    """

    alignment: int
    errors: tuple[type[Exception], ...]

    @property
    def writers(self) -> Sequence[TopicWriter]:
        """The writers of all topics."""
        ...

    def add_writer(self, topic: str, encoder: MessageEncoder, type_hash: str, *, is_latched: bool) -> TopicWriter:
        """Return the writer of a topic."""
        ...

    def announce(self) -> None:
        """Tell the other nodes the name of this one, and its writers."""
        ...

    def list_publishers(self) -> list[RemotePublisher]:
        """Return the publishers of other programs that are known now."""
        ...

    def flush(self) -> None:
        """Wait until all readers that answer have all messages."""
        ...

    def close(self) -> None:
        """Disconnect."""
        ...


NodeOpener: TypeAlias = Callable[[StreamUrl, int, str, bool], Node]
"""Opens the node of a URL in a domain (number) with a name, for Humble or for later distributions."""


class Ros2Publisher(Publisher):
    """Publishes a run as a ROS 2 node."""

    def __init__(self, url: StreamUrl, recorded_run: RecordedRun, open_node: NodeOpener) -> None:
        """Open the node, and its writers. Raises `RecordingError`."""
        self._wait, domain = parse_wait(url, CONNECT_TIMEOUT), parse_domain(url)
        check_recorded_run(url.text, recorded_run, "ROS 2")
        address = url.host if url.port is None else f"{url.host}:{url.port}"
        self._run, self.url = recorded_run, f"{url.scheme}://{address}?{format_query(url, domain)}"
        self._builder = MessageBuilder(recorded_run, self._has_readers)
        self._writers: dict[str, TopicWriter] = {}
        self._pending: list[tuple[int, int, TopicWriter, bytes]] = []
        self._count = self._sent = 0
        self._clock_topic, self._has_warned = recorded_run.topics.get_common_topic(CLOCK), False
        self._is_open = True
        name = "/" + url.options.get("node", f"navsense_{os.getpid()}").strip("/")
        self._node = open_node(url, domain, name, recorded_run.ros == HUMBLE)
        try:
            for channel in self._list_first_channels():
                self._get_writer(channel)
            self._node.announce()
            for block in self._builder.build_static_transforms():
                self._queue(block)
            self._send()
        except BaseException:
            self.abort()
            raise
        topics = format_count(len(self._writers), "topic")
        LOG.info("%s: node %s publishes %s in domain %d", self.url, name, topics, domain)

    @property
    def subscriber_count(self) -> int:
        """The number of subscriptions since the start, of all topics."""
        return sum(writer.reader_count for writer in self._node.writers) if self._is_open else self._subscriptions

    def wait_for_subscriber(self) -> None:
        """Wait for the first subscription to any topic."""
        until = time.monotonic() + self._wait
        while not self.subscriber_count:
            if time.monotonic() >= until:
                if self._wait > 0.0:
                    LOG.warning("%s: no program subscribed within %g s; the run continues", self.url, self._wait)
                return
            time.sleep(POLL_INTERVAL)

    def _list_first_channels(self) -> list[OutputChannel]:
        """Return the channels that exist before the run starts. The others follow with their first message."""
        clock = OutputChannel(self._clock_topic, world_messages.make_clock_encoder())
        transforms = OutputChannel(
            self._run.topics.get_common_topic(TRANSFORMS), world_messages.make_transforms_encoder([])
        )
        return [*self._builder.list_measured_channels(), clock, transforms]

    def _get_writer(self, channel: OutputChannel) -> TopicWriter:
        """Return the writer of a topic, made at its first use."""
        if channel.topic not in self._writers:
            encoder = channel.encoder
            if not is_valid_topic(channel.topic):
                LOG.warning(
                    "%s: no node of ROS 2 can subscribe to topic %s: its parts must be letters, digits and _",
                    self.url,
                    channel.topic,
                )
            type_hash = compute_type_hash(encoder.type, encoder.schema, 2)
            self._writers[channel.topic] = self._node.add_writer(
                channel.topic, encoder, type_hash, is_latched=channel.latched
            )
        return self._writers[channel.topic]

    def write(self, time_slice: TimeSlice) -> None:
        """Send the messages that arrive until the end of a time slice."""
        if not self._is_open:
            raise make_closed_error(self.url)
        count = len(self._writers)
        with self._convert_errors():
            for block in self._builder.build_blocks(time_slice):
                self._queue(block)
            if len(self._writers) > count:
                self._node.announce()
            self._send(to_nanosecond(self._run.epoch, time_slice.end))

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Raise `RecordingError` for the errors of the transport, so that other outputs go on."""
        try:
            yield
        except self._node.errors as error:
            raise RecordingError(f"{type(error).__name__}: {error}", where=Where(self.url)) from error

    def _has_readers(self, channel: OutputChannel) -> bool:
        """Return whether the topic of a channel has readers, or late readers get its last message.

        False for the clock if another program publishes it.
        """
        if channel.topic == self._clock_topic and self._has_other_clock():
            return False
        return self._get_writer(channel).has_readers or channel.latched

    def _queue(self, block: MessageBlock) -> None:
        """Encode the messages of a block."""
        writer, count = self._get_writer(block.channel), block.stamp.shape[0]
        if not count:
            return
        rows = encode(block.channel.encoder, block.stamp, block.arrays)
        if padding := -rows.shape[1] % self._node.alignment:
            rows = np.pad(rows, ((0, 0), (0, padding)))
        data, size = rows.tobytes(), rows.shape[1]
        numbers = range(self._count, self._count + count)
        self._count += count
        self._pending += [
            (arrival, number, writer, data[first : first + size])
            for arrival, number, first in zip(block.log_time.tolist(), numbers, range(0, len(data), size), strict=True)
        ]

    def _has_other_clock(self) -> bool:
        """Return True if another program publishes the clock. Two clocks would move the time of all nodes."""
        others = [one for one in self._node.list_publishers() if one.topic == self._clock_topic]
        if others and not self._has_warned:
            self._has_warned = True
            LOG.warning("%s: %s publishes %s; this run does not", self.url, others[0], self._clock_topic)
        return bool(others)

    def _send(self, end: int | None = None) -> None:
        """Send the messages that arrive until a time (ns), by their arrival; all of them without a time."""
        self._pending.sort(key=_get_order)
        due = len(self._pending)
        if end is not None:
            due = sum(arrival <= end for arrival, *_ in self._pending)
        for _, _, writer, data in self._pending[:due]:
            writer.write(data)
        self._sent += due
        del self._pending[:due]

    def close(self) -> None:
        """Send all messages that wait, and leave the domain when the readers that answer have confirmed them."""
        if not self._is_open:
            return
        try:
            with self._convert_errors():
                self._send()
                self._node.flush()
        except BaseException:
            self.abort()
            raise
        dropped = sum(writer.dropped for writer in self._node.writers)
        self._leave()
        count, sent = self._subscriptions, self._sent - dropped
        result = f"sent {format_count(sent, 'message')} in {format_count(count, 'subscription')}"
        LOG.info("%s: %s", self.url, result if count else "no program subscribed")
        if dropped:
            LOG.warning("%s: slow subscribers: %s lost", self.url, format_count(dropped, "message"))

    def abort(self) -> None:
        """Leave the domain at once. Never raises."""
        if self._is_open:
            self._leave()

    def _leave(self) -> None:
        """Leave the domain, and keep the number of subscriptions."""
        self._subscriptions = self.subscriber_count
        self._is_open = False
        self._node.close()


def _get_order(message: tuple[int, int, TopicWriter, bytes]) -> tuple[int, int]:
    """Return the place of a message in the order of arrival."""
    return message[:2]
