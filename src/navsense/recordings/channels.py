"""Channels, messages and batches of messages of a recording that is read: the types that all readers share."""

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
"""Metadata of an MCAP channel: its QoS profiles. The topic is latched if they contain one of `LATCHED_DURABILITIES`."""

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

    @cached_property
    def definition_problem(self) -> str:
        """The reason why the definition is missing or invalid; "" for a valid one."""
        try:
            self.parse_type()
        except RecordingError as error:
            return str(error.__cause__)
        return ""


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
    messages = list(messages)
    sizes = np.array(list(map(len, messages)), dtype=np.int64)
    groups = []
    for size in np.unique(sizes).tolist():
        indices = np.flatnonzero(sizes == size)
        data = b"".join([messages[i] for i in indices.tolist()])
        groups.append((indices, np.frombuffer(data, dtype=np.uint8).reshape(indices.size, size)))
    return groups


def join_size_groups(parts: list[tuple[int, list[SizeGroup]]]) -> list[SizeGroup]:
    """Return the groups of several parts as one; each part starts at an index among all messages."""
    if len(parts) == 1:
        return parts[0][1]
    groups: dict[int, list[SizeGroup]] = {}
    for first, part in parts:
        for indices, rows in part:
            groups.setdefault(rows.shape[1], []).append((indices + first, rows))
    return [
        (np.concatenate([indices for indices, _ in group]), np.concatenate([rows for _, rows in group]))
        for _, group in sorted(groups.items())
    ]


def join_batches(batches: list[MessageBatch]) -> MessageBatch:
    """Return consecutive batches of one topic as one."""
    if len(batches) == 1:
        return batches[0]
    log_time = np.concatenate([batch.log_time for batch in batches])
    publish_time = np.concatenate([batch.publish_time for batch in batches])
    firsts = np.cumsum([0, *(batch.log_time.size for batch in batches)]).tolist()
    groups = join_size_groups([(first, batch.size_groups) for first, batch in zip(firsts, batches, strict=False)])
    return MessageBatch(batches[0].channel, log_time, publish_time, groups)


def sort_batch(batch: MessageBatch) -> MessageBatch:
    """Return a batch sorted by log time."""
    if (batch.log_time[1:] >= batch.log_time[:-1]).all():
        return batch
    order = np.argsort(batch.log_time, kind="stable")
    new_index = np.empty_like(order)
    new_index[order] = np.arange(order.size)
    groups = []
    for indices, rows in batch.size_groups:
        group_order = np.argsort(new_index[indices])
        groups.append((new_index[indices][group_order], rows[group_order]))
    return MessageBatch(batch.channel, batch.log_time[order], batch.publish_time[order], groups)


def sort_batches(batches: list[MessageBatch]) -> list[MessageBatch]:
    """Return the batches of one topic in log time order; batches in that order are not joined."""
    sorted_batches = [sort_batch(batch) for batch in batches]
    if all(int(after.log_time[0]) >= int(before.log_time[-1]) for before, after in pairwise(sorted_batches)):
        return sorted_batches
    return [sort_batch(join_batches(batches))]


def join_small_batches(batches: list[MessageBatch]) -> list[MessageBatch]:
    """Return consecutive batches of one topic, small ones joined."""
    joined: list[MessageBatch] = []
    for is_small, group in groupby(batches, lambda batch: batch.size < SMALL_BATCH_BYTES):
        run = list(group)
        joined += [join_batches(run)] if is_small else run
    return joined


def batch_messages(messages: Iterable[RawMessage], topics: Collection[str]) -> Iterator[list[MessageBatch]]:
    """Yield single messages of some topics as batches of bounded size."""
    groups: dict[ChannelKey, list[RawMessage]] = {}
    size = 0
    for message in messages:
        size += len(message.data) + 64
        if message.channel.topic in topics:
            groups.setdefault(message.channel.key, []).append(message)
        if size >= BATCH_BYTES:
            yield [_make_batch(group) for group in groups.values()]
            groups, size = {}, 0
    yield [_make_batch(group) for group in groups.values()]


def _make_batch(messages: Sequence[RawMessage]) -> MessageBatch:
    """Return messages of one channel as a batch."""
    log_time = np.array([message.log_time for message in messages], dtype=np.int64)
    publish_time = np.array([message.publish_time for message in messages], dtype=np.int64)
    return MessageBatch(
        messages[0].channel, log_time, publish_time, group_by_size(message.data for message in messages)
    )


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
        """Yield the messages of some topics in batches of bounded size. Those of one topic are in order."""
        ...


def make_copy_metadata(reader: MessageReader) -> dict[str, str]:
    """Return the metadata of a copy. A recording of navsense without metadata gets a default name of the world."""
    return reader.metadata or ({"world": DEFAULT_WORLD_NAME} if reader.is_navsense else {})


class MessageCopy(Protocol):
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


class IndexedReader(MessageReader, Protocol):
    """A reader of a complete recording, which can have an index of its messages."""

    def count_messages(self) -> MessageCounts:
        """Return the counts in the index; without an index all messages are read."""
        ...
