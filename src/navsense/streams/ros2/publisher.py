"""The stream of ROS 2: a run as a node with publishers on DDS, without an installed ROS.

    ros2://ADDRESS?domain=N&node=NAME&wait=SECONDS          default: loopback, ROS_DOMAIN_ID or 0, 30 s

ADDRESS is that of a network interface of this machine, or the name of the interface. The run starts with the first
subscription, or after SECONDS.

Topics, types and bytes are those of an `.mcap`. A message is sent at its time of arrival: one with a latency waits for
it. A topic without subscriptions is not encoded, unless it is latched.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import logging
import os
import time
from typing import TYPE_CHECKING

import numpy as np

from navsense.core.errors import RecordingError, Where
from navsense.core.readings import TimeSlice, to_nanoseconds
from navsense.core.text import format_count
from navsense.messages import world_messages
from navsense.messages.cdr import encode
from navsense.messages.ros1 import split_definitions
from navsense.messages.schemas import HUMBLE
from navsense.recordings.base import check_recorded_run, make_closed_error
from navsense.recordings.info import RecordedRun
from navsense.recordings.message_builder import MessageBlock, MessageBuilder, OutputChannel
from navsense.recordings.rosbag.writer import compute_type_hash
from navsense.recordings.topic_names import CLOCK, TRANSFORMS
from navsense.streams.device_port import CONNECT_TIMEOUT, parse_wait
from navsense.streams.ros2.naming import MAX_DOMAIN, TOKEN, is_valid_topic
from navsense.streams.stream import LOOPBACK, Publisher, Stream, StreamUrl
from navsense.world import World

if TYPE_CHECKING:
    from navsense.streams.ros2.dds import DdsTopicWriter, Ros2Node

LOG = logging.getLogger(__name__)

DOMAIN_VARIABLE = "ROS_DOMAIN_ID"
"""Environment variable with the domain of all programs of ROS 2."""

POLL_INTERVAL = 0.01
"""Time (s) between two looks for the first subscription."""


class Ros2Publisher(Publisher):
    """Publishes a run as a ROS 2 node."""

    def __init__(self, url: StreamUrl, recorded_run: RecordedRun) -> None:
        """Join the domain. Raises `RecordingError`."""
        self._wait, where = parse_wait(url, CONNECT_TIMEOUT), Where(url.text)
        domain = parse_domain(url)
        check_recorded_run(url.text, recorded_run, "ROS 2")
        check_library(url)
        from navsense.streams.ros2.dds import Ros2Node

        self._run, self.url = recorded_run, f"ros2://{url.host}?{format_query(url, domain)}"
        self._builder = MessageBuilder(recorded_run)
        self._writers: dict[str, DdsTopicWriter] = {}
        self._waiting: list[tuple[int, int, DdsTopicWriter, bytes]] = []
        self._count = self._sent = 0
        self._is_open = True
        name = "/" + url.options.get("node", f"navsense_{os.getpid()}").strip("/")
        self._node: Ros2Node = Ros2Node(domain, url.host, name, is_humble=recorded_run.ros == HUMBLE, where=where)
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
        """The number of subscriptions so far, of all topics."""
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
        clock = OutputChannel(self._run.topics.get_common_topic(CLOCK), world_messages.make_clock_encoder())
        transforms = OutputChannel(
            self._run.topics.get_common_topic(TRANSFORMS), world_messages.make_transforms_encoder([])
        )
        return [*self._builder.list_measured_channels(), clock, transforms]

    def _get_writer(self, channel: OutputChannel) -> DdsTopicWriter:
        """Return the writer of a topic, made at its first use."""
        if channel.topic not in self._writers:
            from navsense.streams.ros2.dds import MessageTypes

            encoder = channel.encoder
            if not is_valid_topic(channel.topic):
                LOG.warning(
                    "%s: no node of ROS 2 can subscribe to topic %s: its parts must be letters, digits and _",
                    self.url,
                    channel.topic,
                )
            user_data = b""
            if self._run.ros != HUMBLE:
                user_data = f"typehash={compute_type_hash(encoder.type, encoder.schema, 2)};".encode()
            self._writers[channel.topic] = self._node.add_writer(
                channel.topic,
                MessageTypes(split_definitions(encoder)).describe(encoder.type),
                size=len(encoder.layout.template),
                user_data=user_data,
                is_latched=channel.latched,
            )
        return self._writers[channel.topic]

    def write(self, time_slice: TimeSlice) -> None:
        """Send the messages that arrive until the end of a time slice."""
        if not self._is_open:
            raise make_closed_error(self.url)
        count = len(self._writers)
        for block in self._builder.build_blocks(time_slice):
            self._queue(block)
        if len(self._writers) > count:
            self._node.announce()
        self._send(int(to_nanoseconds(self._run.epoch, np.array([time_slice.end]))[0]))

    def _queue(self, block: MessageBlock) -> None:
        """Encode the messages of a block, unless nobody reads its topic."""
        writer, count = self._get_writer(block.channel), block.stamp.shape[0]
        if not count or not (block.channel.latched or writer.has_readers):
            return
        rows = encode(block.channel.encoder, block.stamp, block.arrays)
        if padding := -rows.shape[1] % 4:  # DDS sends words
            rows = np.pad(rows, ((0, 0), (0, padding)))
        data, size = rows.tobytes(), rows.shape[1]
        numbers = range(self._count, self._count + count)
        self._count += count
        self._waiting += [
            (arrival, number, writer, data[first : first + size])
            for arrival, number, first in zip(block.log_time.tolist(), numbers, range(0, len(data), size), strict=True)
        ]

    def _send(self, end: int | None = None) -> None:
        """Send the messages that arrive until a time (ns), by their arrival; all of them without a time."""
        self._waiting.sort(key=_get_order)
        due = len(self._waiting)
        if end is not None:
            due = sum(arrival <= end for arrival, *_ in self._waiting)
        for _, _, writer, data in self._waiting[:due]:
            writer.write(data)
        self._sent += due
        del self._waiting[:due]

    def close(self) -> None:
        """Send all messages that wait, and leave the domain when the readers that answer have confirmed them."""
        if not self._is_open:
            return
        self._send()
        self._node.flush()
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


def _get_order(message: tuple[int, int, DdsTopicWriter, bytes]) -> tuple[int, int]:
    """Return the place of a message in the order of arrival."""
    return message[:2]


def parse_domain(url: StreamUrl) -> int:
    """Return the domain of a URL, or that of the environment. Raises `RecordingError`."""
    text = url.options.get("domain", os.environ.get(DOMAIN_VARIABLE) or "0")
    domain = int(text) if text.isascii() and text.isdecimal() else -1
    if not 0 <= domain <= MAX_DOMAIN:
        what = "domain" if "domain" in url.options else DOMAIN_VARIABLE
        raise RecordingError(what, text, where=Where(url.text), allowed=f"must be a number from 0 to {MAX_DOMAIN}")
    return domain


def format_query(url: StreamUrl, domain: int) -> str:
    """Return the query of a URL with its domain."""
    return "&".join(f"{name}={value}" for name, value in {**url.options, "domain": str(domain)}.items())


def check_library(url: StreamUrl) -> None:
    """Raise `RecordingError` if the library `cyclonedds` is not installed."""
    if importlib.util.find_spec("cyclonedds") is None:
        remedy = "pip install 'navsense[ros2]'"
        raise RecordingError("ROS 2 needs cyclonedds", where=Where(url.text), remedy=remedy)


def check(url: StreamUrl, _world: World | None) -> None:
    """Raise `RecordingError` for an invalid URL, and without the library `cyclonedds`."""
    parse_wait(url, CONNECT_TIMEOUT)
    parse_domain(url)
    where = Where(url.text)
    if url.path not in ("", "/"):
        raise RecordingError("path of the URL", url.path, where=where, allowed="must be empty")
    if url.port is not None:
        allowed = "must be omitted; ?domain= selects the ports"
        raise RecordingError("port of the URL", url.port, where=where, allowed=allowed)
    if ":" in url.host or (url.host != LOOPBACK and is_unspecified(url.host)):
        allowed = "must be an IPv4 address of this machine, or the name of a network interface"
        raise RecordingError("address of this machine", url.host, where=where, allowed=allowed)
    if "node" in url.options and not all(map(TOKEN.fullmatch, url.options["node"].removeprefix("/").split("/"))):
        allowed = "must be a name of ROS 2: letters, digits, _ and /"
        raise RecordingError("option node", url.options["node"], where=where, allowed=allowed)
    check_library(url)


def is_unspecified(host: str) -> bool:
    """Return True for the address of all interfaces."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


STREAMS = (
    Stream(
        scheme="ros2",
        name="ROS 2",
        url_format="ros2://ADDRESS",
        open_publisher=Ros2Publisher,
        options=("domain", "node", "wait"),
        check=check,
        is_live=True,
    ),
)
