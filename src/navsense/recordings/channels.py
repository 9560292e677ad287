"""Channels of a recording, their messages, and batches of messages: the types that all readers share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from navsense.core.errors import RecordingError, Where
from navsense.core.typing import ByteArray, IntArray
from navsense.recordings.rosbag.definitions import TypeDefinition, parse_definition

CDR, ROS1 = "cdr", "ros1"
"""Encodings of ROS 2 and of ROS 1."""

DEFAULT_WORLD_NAME = "recording"
"""Name of the world of a recording without one."""

DEFINITION_LANGUAGES: Mapping[str, str] = {
    "ros2msg": "msg",
    "ros1msg": "msg",
    "ros2idl": "idl",
    "omgidl": "idl",
    "": "none",
}
"""Schema encoding in MCAP -> language in `rosbag.definitions`."""

QOS_KEY, LATCHED_DURABILITIES = "offered_qos_profiles", ("durability: 1", "durability: transient_local")
"""Metadata of an MCAP channel that marks a latched topic."""

BATCH_BYTES = 4_000_000
"""Bytes of messages in memory at which they are yielded."""

SMALL_BATCH_BYTES = 50_000
"""Smaller batches of one topic are joined, because each batch takes time."""

SizeGroup = tuple[IntArray, ByteArray]
"""Messages of one size: their indices among the messages (k,), and their bytes (k, size)."""


class ChannelKey(NamedTuple):
    """A topic and the definition of its messages; channels with one key are read alike."""

    topic: str
    type: str
    encoding: str
    schema_encoding: str
    definition: bytes


@dataclass(frozen=True)
class Channel:
    """A channel of MCAP: topic, type (schema name), message encoding, definition (schema data), schema encoding.

    latched: true if late subscribers get the last message.
    qos_profiles: the QoS profiles of ROS 2 as text.
    """

    topic: str
    type: str
    encoding: str
    definition: bytes
    schema_encoding: str
    latched: bool = False
    qos_profiles: str = ""

    @cached_property
    def key(self) -> ChannelKey:
        """Topic and definition, without sender and QoS."""
        return ChannelKey(self.topic, self.type, self.encoding, self.schema_encoding, self.definition)

    @property
    def is_ros(self) -> bool:
        """True for messages of ROS."""
        return self.encoding in (CDR, ROS1) and self.schema_encoding in DEFINITION_LANGUAGES

    def parse_type(self) -> TypeDefinition:
        """Return the parsed type. Raises `RecordingError` for a missing or invalid definition."""
        try:
            return parse_definition(
                self.type, self.definition.decode(errors="replace"), DEFINITION_LANGUAGES[self.schema_encoding]
            )
        except ValueError as error:
            raise RecordingError(f"topic {self.topic}: {error}") from error


class RawMessage(NamedTuple):
    """One message: its channel, log time and publish time (ns), and its bytes."""

    channel: Channel
    log_time: int
    publish_time: int
    data: bytes


@dataclass(frozen=True, eq=False)
class MessageBatch:
    """Messages of one channel in order: log times and publish times (n,) ns, and the bytes by size."""

    channel: Channel
    log_time: IntArray
    publish_time: IntArray
    size_groups: list[SizeGroup]

    @property
    def size(self) -> int:
        """Size of the messages in bytes."""
        return sum(rows.size for _, rows in self.size_groups)


def group_by_size(messages: Iterable[bytes]) -> list[SizeGroup]:
    """Return messages grouped by size."""
    every_one = list(messages)
    sizes = np.array([len(one) for one in every_one], dtype=np.int64)
    found = []
    for size in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == size)
        data = b"".join([every_one[i] for i in places.tolist()])
        found.append((places, np.frombuffer(data, dtype=np.uint8).reshape(places.size, size)))
    return found


def join_size_groups(parts: list[tuple[int, list[SizeGroup]]]) -> list[SizeGroup]:
    """Return the groups of several parts as one; each part starts at an index among all messages."""
    if len(parts) == 1:
        return parts[0][1]
    groups: dict[int, list[SizeGroup]] = {}
    for first, part in parts:
        for places, rows in part:
            groups.setdefault(rows.shape[1], []).append((places + first, rows))
    return [
        (np.concatenate([places for places, _ in group]), np.concatenate([rows for _, rows in group]))
        for _, group in sorted(groups.items())
    ]


def join_batches(batches: list[MessageBatch]) -> MessageBatch:
    """Return consecutive batches of one topic as one."""
    if len(batches) == 1:
        return batches[0]
    log, time = (
        np.concatenate([batch.log_time for batch in batches]),
        np.concatenate([batch.publish_time for batch in batches]),
    )
    firsts = np.cumsum([0, *(batch.log_time.size for batch in batches)]).tolist()
    sized = join_size_groups([(first, batch.size_groups) for first, batch in zip(firsts, batches, strict=False)])
    return MessageBatch(batches[0].channel, log, time, sized)


def sort_batch(batch: MessageBatch) -> MessageBatch:
    """Return a batch sorted by log time."""
    if (batch.log_time[1:] >= batch.log_time[:-1]).all():
        return batch
    order = np.argsort(batch.log_time, kind="stable")
    to = np.empty_like(order)
    to[order] = np.arange(order.size)
    sized = []
    for places, rows in batch.size_groups:
        inner = np.argsort(to[places])
        sized.append((to[places][inner], rows[inner]))
    return MessageBatch(batch.channel, batch.log_time[order], batch.publish_time[order], sized)


def sort_batches(batches: list[MessageBatch]) -> list[MessageBatch]:
    """Return the batches of one topic in log time order; batches in that order are not joined."""
    each = [sort_batch(batch) for batch in batches]
    follow = all(int(after.log_time[0]) >= int(before.log_time[-1]) for before, after in pairwise(each))
    return each if follow else [sort_batch(join_batches(batches))]


def join_small_batches(batches: list[MessageBatch]) -> list[MessageBatch]:
    """Return consecutive batches of one topic, small ones joined."""
    found: list[MessageBatch] = []
    for are_few, group in groupby(batches, lambda batch: batch.size < SMALL_BATCH_BYTES):
        own = list(group)
        found += [join_batches(own)] if are_few else own
    return found


def batch_messages(messages: Iterable[RawMessage], topics: Collection[str]) -> Iterator[list[MessageBatch]]:
    """Yield single messages of some topics as batches of bounded size."""
    groups: dict[ChannelKey, list[RawMessage]] = {}
    size = 0

    def build_batches() -> list[MessageBatch]:
        found = []
        for own in groups.values():
            log, time = (np.array([one[k] for one in own], dtype=np.int64) for k in (1, 2))
            found.append(MessageBatch(own[0].channel, log, time, group_by_size(one.data for one in own)))
        return found

    for item in messages:
        size += len(item.data) + 64
        if item.channel.topic in topics:
            groups.setdefault(item.channel.key, []).append(item)
        if size >= BATCH_BYTES:
            yield build_batches()
            groups, size = {}, 0
    yield build_batches()


@dataclass(frozen=True)
class MessageCounts:
    """Number of messages by topic and type, and the log times (ns) of the first and the last, None without messages."""

    by_topic: Mapping[tuple[str, str], int]
    first: int | None = None
    last: int | None = None

    @property
    def total(self) -> int:
        """Number of messages."""
        return sum(self.by_topic.values())


def join_counts(parts: Iterable[MessageCounts]) -> MessageCounts:
    """Return the counts of several files as one."""
    by_topic: dict[tuple[str, str], int] = {}
    firsts, lasts = list[int](), list[int]()
    for part in parts:
        for key, count in part.by_topic.items():
            by_topic[key] = by_topic.get(key, 0) + count
        firsts += [] if part.first is None else [part.first]
        lasts += [] if part.last is None else [part.last]
    return MessageCounts(by_topic, min(firsts, default=None), max(lasts, default=None))


class MessageReader(Protocol):
    """An open recording of messages.

    metadata: the metadata of navsense; empty in recordings of other programs.
    is_navsense: true if navsense wrote the recording.
    """

    where: Where
    channels: list[Channel]
    metadata: dict[str, str]
    is_navsense: bool

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in log time order, if the recording stores them in that order."""
        ...

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics in the same order, in batches of bounded size."""
        ...


def complete_metadata(reader: MessageReader) -> dict[str, str]:
    """Return the metadata of a copy. A recording of navsense without metadata gets a default name of the world."""
    return reader.metadata or ({"world": DEFAULT_WORLD_NAME} if reader.is_navsense else {})


class MessageTarget(Protocol):
    """A recording that messages are copied to.

    encoding: the encoding of the messages.
    output: the file or folder that is written, in the hidden folder.
    has_publish_times: false if the recording stores the log times only.
    """

    encoding: str
    output: Path
    has_publish_times: bool

    def find_obstacle(self, channel: Channel) -> str:
        """Return the reason why the recording cannot hold a channel; "" if it can."""
        ...

    def add_channel(self, channel: Channel) -> None:
        """Add a channel, if it is new."""
        ...

    def write(self, batch: Sequence[RawMessage]) -> None:
        """Write messages of added channels."""
        ...

    def close(self) -> None:
        """Finish the recording."""
        ...

    def abort(self) -> None:
        """Close all files; never raises."""
        ...


class CompleteReader(MessageReader, Protocol):
    """A reader of a complete recording, which has an index of its messages."""

    def count_messages(self) -> MessageCounts:
        """Return the counts in the index; without an index all messages are read."""
        ...
