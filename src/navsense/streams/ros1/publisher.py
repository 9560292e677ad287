"""The stream of ROS 1: a run as a node with publishers, without an installed ROS.

    ros1://HOST:PORT?wait=SECONDS&host=ADDRESS&node=NAME        default: 127.0.0.1:11311, 30 s

HOST:PORT is the address of the ROS master. The node listens at ADDRESS of this machine, by default on loopback. The run
starts with the first subscriber, or after SECONDS.

Topics and messages are those of a `.bag`. A message is sent at its time of arrival: one with a latency waits for it. A
topic without subscribers is not encoded. All messages of a topic in a time slice are sent in one block.

Services pause the run, switch and set its sensors, and set its current (`streams.services`).
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import socket
import time
from dataclasses import dataclass, field, replace

import numpy as np

from navsense.core.errors import RecordingError, Where
from navsense.core.readings import TimeSlice, to_nanosecond
from navsense.core.text import format_count
from navsense.core.typing import ByteArray, IntArray, UInt64Array
from navsense.messages import world_messages
from navsense.messages.cdr import encode
from navsense.messages.ros1 import Ros1Packing, make_ros1_packing
from navsense.messages.schemas import HUMBLE
from navsense.recordings.base import check_recorded_run, make_closed_error
from navsense.recordings.info import RecordedRun
from navsense.recordings.message_builder import MessageBlock, MessageBuilder, OutputChannel
from navsense.recordings.rosbag.writer import compute_type_hash
from navsense.recordings.topic_names import CLOCK, TRANSFORMS
from navsense.streams.device_port import CONNECT_TIMEOUT, parse_wait
from navsense.streams.ros1.master import Master, MasterError, Registration
from navsense.streams.ros1.node import Packet, Ros1Node, Ros1Topic, Service
from navsense.streams.ros1.services import SET_BOOL_MD5, make_service
from navsense.streams.services import list_services
from navsense.streams.stream import LOOPBACK, Pace, Publisher, StreamUrl, SupportsRunChanges
from navsense.world import World

LOG = logging.getLogger(__name__)

DEFAULT_PORT = 11311
"""Port of a ROS master."""

PACKET_BYTES = 1 << 17
"""Bytes that are queued or dropped at once, unless one message is larger."""

ABORT_TIMEOUT = 0.5
"""Longest time (s) to unregister the topics of an aborted run."""

NODE_NAME = re.compile(r"/?[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*")
"""Names of nodes."""


@dataclass(eq=False)
class _Publication:
    """A topic, the number of its messages, and the blocks of messages that wait for their time of arrival.

    blocks: times of arrival (n,) ns and rows (n, size).
    earliest: the earliest of these times (ns), if there are any.
    """

    topic: Ros1Topic
    count: int = 0
    has_negative_stamps: bool = False
    packings: dict[OutputChannel, Ros1Packing] = field(default_factory=dict)
    blocks: list[tuple[UInt64Array, ByteArray]] = field(default_factory=list)
    earliest: int = 0

    def add(self, times: UInt64Array, rows: ByteArray) -> None:
        """Add messages (n, size) with their times of arrival (n,) ns."""
        earliest = int(times.min())
        self.earliest = min(self.earliest, earliest) if self.blocks else earliest
        self.blocks.append((times, rows))

    def take(self, end: int | None) -> list[Packet]:
        """Return the waiting messages that arrive until a time (ns), in order; all of them without a time."""
        if not self.blocks or (end is not None and end < self.earliest):
            return []
        parts = [rows for _, rows in self.blocks]
        times = np.concatenate([part for part, _ in self.blocks]) if len(parts) > 1 else self.blocks[0][0]
        due = times.size if end is None else int(np.count_nonzero(times <= np.uint64(end)))
        self.blocks = []
        if len({rows.shape[1] for rows in parts}) > 1:
            order = np.argsort(times, kind="stable")
            return self._take_rows([row for rows in parts for row in rows], times, order, due)
        rows = np.concatenate(parts) if len(parts) > 1 else parts[0]
        if times.size > 1 and (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, rows = times[order], rows[order]
        if due < times.size:
            self.add(times[due:], rows[due:])
        data, width = memoryview(rows[:due].tobytes()), rows.shape[1]
        step = 1 if self.topic.latched else max(PACKET_BYTES // width, 1)
        return [
            Packet(data[first * width : (first + step) * width], min(step, due - first))
            for first in range(0, due, step)
        ]

    def _take_rows(
        self, rows: list[ByteArray], times: UInt64Array, order: np.ndarray[tuple[int], np.dtype[np.intp]], due: int
    ) -> list[Packet]:
        """Return messages of several sizes."""
        for i in order[due:].tolist():
            self.add(times[i : i + 1], rows[i][None])
        return [Packet(memoryview(rows[i].tobytes()), 1) for i in order[:due].tolist()]


class Ros1Publisher(Publisher):
    """Publishes a run as a ROS 1 node."""

    def __init__(self, url: StreamUrl, recorded_run: RecordedRun) -> None:
        """Register at the master. Raises `RecordingError`."""
        self._wait, where = parse_wait(url, CONNECT_TIMEOUT), Where(url.text)
        check_recorded_run(url.text, recorded_run, "ROS 1")
        self._run = replace(recorded_run, ros=HUMBLE)  # ROS 1 has the same definitions
        self._builder = MessageBuilder(self._run, self._has_subscribers)
        self._publications: dict[str, _Publication] = {}
        self._waiting: list[_Publication] = []
        self._is_open = True
        port = url.port or DEFAULT_PORT
        self.url = url.with_port(port)
        host = get_own_host(url)
        if host == LOOPBACK and not is_loopback(url.host):
            LOG.warning(
                "%s: the node listens on %s, where other machines cannot subscribe; add ?host=ADDRESS of this machine",
                self.url,
                host,
            )
        name = url.options.get("node", f"navsense_{os.getpid()}_{time.time_ns() // 1_000_000}")
        caller_id = "/" + name.removeprefix("/")
        master_host = f"[{url.host}]" if ":" in url.host else url.host
        master_uri = f"http://{master_host}:{port}/"
        self._node = Ros1Node(host, caller_id=caller_id, master_uri=master_uri, name=self.url, where=where)
        self._master = Master(
            url.host, port, caller_id=caller_id, caller_api=self._node.uri, name=self.url, fail=self._node.end
        )
        self._clock_topic = self._run.topics.get_common_topic(CLOCK)
        try:
            # A second clock beside that of a simulator would move the time of all nodes back and forth.
            self._has_clock = not (set(self._master.list_topics()[0].get(self._clock_topic, ())) - {caller_id})
            if not self._has_clock:
                LOG.info("%s: another node publishes %s", self.url, self._clock_topic)
            for channel in self._list_first_channels():
                self._get_publication(channel, register=False)
            for block in self._builder.build_static_transforms():
                self._get_publication(block.channel, register=False)
                self._queue(block)
            self._send()
            topics = [publication.topic for publication in self._publications.values()]
            self._master.start((Registration(topic.name, topic.type) for topic in topics), where)
        except MasterError as error:
            self.abort()
            raise RecordingError(
                "ROS master", f"{url.host}:{port}", where=where, allowed=str(error), remedy=error.remedy
            ) from error
        except BaseException:
            self.abort()
            raise
        LOG.info("%s: node %s publishes %s", self.url, caller_id, format_count(len(topics), "topic"))

    @property
    def subscriber_count(self) -> int:
        """The number of subscriptions so far, of all topics."""
        return self._node.subscriber_count

    def wait_for_subscriber(self) -> None:
        """Wait for the first subscriber of any topic."""
        self._node.wait(self._wait)

    def attach_pace(self, pace: Pace | None) -> None:
        """Offer the service NODE/pause of type `std_srvs/SetBool`, which lets the run wait."""
        if pace is None:
            return

        def handle(request: bytes) -> bytes:
            if len(request) != 1:
                raise ValueError(f"{len(request)} bytes; std_srvs/SetBool has 1")
            pace.is_paused = request != b"\0"
            text = b"paused" if pace.is_paused else b"running"
            return b"\1" + len(text).to_bytes(4, "little") + text

        self._add_service(Service(f"{self._node.caller_id}/pause", "std_srvs/SetBool", SET_BOOL_MD5, handle))

    def attach_controls(self, controls: SupportsRunChanges) -> None:
        """Offer the services of `streams.services`."""
        for service in list_services(controls, self._run.world, self._run.topics):
            self._add_service(make_service(service))

    def _add_service(self, service: Service) -> None:
        """Offer a service and register it."""
        self._node.add_service(service)
        self._master.add(Registration(service.name, service.type, self._node.service_uri))

    def _list_first_channels(self) -> list[OutputChannel]:
        """Return the channels that are registered before the run starts. The others follow with their first message."""
        clock = [OutputChannel(self._clock_topic, world_messages.make_clock_encoder())] if self._has_clock else []
        transforms = OutputChannel(
            self._run.topics.get_common_topic(TRANSFORMS), world_messages.make_transforms_encoder([])
        )
        return [*self._builder.list_measured_channels(), *clock, transforms]

    def _get_publication(self, channel: OutputChannel, *, register: bool) -> _Publication:
        """Return the publication of a topic, made at its first use."""
        if channel.topic not in self._publications:
            definition = make_ros1_packing(channel.encoder).definition
            md5 = compute_type_hash(channel.encoder.type, definition, 1)
            kind = channel.encoder.type.replace("/msg/", "/")
            topic = Ros1Topic(channel.topic, kind, md5, definition, latched=channel.latched)
            self._publications[channel.topic] = _Publication(topic)
            self._node.add_topic(topic)
            if register:
                self._master.add(Registration(topic.name, topic.type))
        return self._publications[channel.topic]

    def write(self, time_slice: TimeSlice) -> None:
        """Send the messages that arrive until the end of a time slice."""
        if not self._is_open:
            raise make_closed_error(self.url)
        if reason := self._node.shutdown_reason:
            raise RecordingError(f"the node was shut down: {reason}", where=Where(self.url))
        for block in self._builder.build_blocks(time_slice):
            self._queue(block)
        self._send(to_nanosecond(self._run.epoch, time_slice.end))

    def _has_subscribers(self, channel: OutputChannel) -> bool:
        """Return whether the topic of a channel has subscribers, or late subscribers get its last message."""
        if channel.topic == self._clock_topic and not self._has_clock:
            return False
        topic = self._get_publication(channel, register=True).topic
        return bool(topic.subscribers) or topic.latched

    def _queue(self, block: MessageBlock) -> None:
        """Encode the messages of a block."""
        channel, count = block.channel, block.stamp.shape[0]
        publication = self._get_publication(channel, register=True)
        if not count:
            return
        if channel not in publication.packings:
            publication.packings[channel] = make_ros1_packing(channel.encoder)
        messages = encode(channel.encoder, self._limit_stamps(publication, block.stamp), block.arrays)
        rows = publication.packings[channel].pack(messages, publication.count)
        if not publication.blocks:
            self._waiting.append(publication)
        publication.add(block.log_time, _add_lengths(rows))
        publication.count += count

    def _limit_stamps(self, publication: _Publication, stamp: IntArray) -> IntArray:
        """Return stamps (n,) ns with 0 for those below, which ROS 1 does not have, and warn once for each topic."""
        if stamp.min() >= 0:
            return stamp
        if not publication.has_negative_stamps:
            publication.has_negative_stamps = True
            LOG.warning(
                "%s: topic %s has stamps below 0, which are sent as 0; choose a later --epoch",
                self.url,
                publication.topic.name,
            )
        return np.maximum(stamp, 0)

    def _send(self, end: int | None = None) -> None:
        """Send the messages that arrive until a time (ns); all of them without a time."""
        waiting, self._waiting = self._waiting, []
        for publication in waiting:
            if packets := publication.take(end):
                self._node.publish(publication.topic, packets)
            if publication.blocks:
                self._waiting.append(publication)

    def close(self) -> None:
        """Send all messages to the subscribers that still read, unregister and disconnect."""
        if self._is_open:
            self._is_open = False
            self._send()
            self._node.finish()
            self._master.close()
            self._node.stop()
            count, sent = self._node.subscriber_count, self._node.sent_messages
            result = f"sent {format_count(sent, 'message')} in {format_count(count, 'subscription')}"
            LOG.info("%s: %s", self.url, result if count else "no subscriber connected")

    def abort(self) -> None:
        """Disconnect at once. Never raises."""
        if self._is_open:
            self._is_open = False
            self._node.stop()
            self._master.close(ABORT_TIMEOUT)


def _add_lengths(rows: ByteArray) -> ByteArray:
    """Return messages (n, size) with their length before each of them."""
    out = np.empty((rows.shape[0], 4 + rows.shape[1]), dtype=np.uint8)
    out[:, :4] = np.array([rows.shape[1]], dtype="<u4").view(np.uint8)
    out[:, 4:] = rows
    return out


def get_own_host(url: StreamUrl) -> str:
    """Return the address at which the node listens. Raises `RecordingError`."""
    host = url.options.get("host", LOOPBACK)
    if host in ("", "0.0.0.0", "::", "*"):  # noqa: S104  # it is rejected
        allowed = "must be an address of this machine that subscribers can reach"
        raise RecordingError("option host", host, where=Where(url.text), allowed=allowed)
    return host


def is_loopback(host: str) -> bool:
    """Return True for the name or address of this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in ("localhost", socket.gethostname())


def check(url: StreamUrl, _world: World | None) -> None:
    """Raise `RecordingError` for an invalid URL."""
    parse_wait(url, CONNECT_TIMEOUT)
    get_own_host(url)
    where = Where(url.text)
    if url.path not in ("", "/"):
        raise RecordingError("path of the URL", url.path, where=where, allowed="must be empty")
    if url.port == 0:
        raise RecordingError("port of the ROS master", 0, where=where, allowed="must be a number from 1 to 65535")
    if "node" in url.options and not NODE_NAME.fullmatch(url.options["node"]):
        allowed = "must be a name of ROS: letters, digits, _ and /"
        raise RecordingError("option node", url.options["node"], where=where, allowed=allowed)
