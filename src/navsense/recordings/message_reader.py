"""Messages out of recordings of anybody as they lie there: MCAP, bags of ROS 1, bags of ROS 2, one after the other.

Memory is bounded by a chunk. Only MCAP has two times a message; a bag's one is that of arrival.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from navsense import atomic, inputs
from navsense.errors import NavsenseError, RecordingError, Where
from navsense.recordings.base import open_for_reading, os_error
from navsense.recordings.format import format_of_recording, storage_path
from navsense.recordings.header import WORLD_KEY
from navsense.recordings.mcap import reader, records
from navsense.recordings.mcap.reader import (
    Segment,
    SegmentMessages,
    list_segments,
    read_profile,
    read_segment,
    read_windows,
)
from navsense.recordings.mcap.records import WORLD_METADATA
from navsense.recordings.rosbag.definitions import TypeDefinition, parse_definition
from navsense.recordings.rosbag.limits import limit_rosbags
from navsense.recordings.rosbag.metadata import CALLER_ID, is_metadata, read_ros1_metadata
from navsense.recordings.rosbag.writer import BAG_METADATA_FILE
from navsense.typing import AnyArray, IntArray

BAG = inputs.FileKind("bag", RecordingError, "must be a bag of ROS")

CDR, ROS1 = "cdr", "ros1"
"""Encodings of ROS 2 and of ROS 1."""

QOS_KEY, LATCHED_DURABILITIES = "offered_qos_profiles", ("durability: 1", "durability: transient_local")
"""How the channel of an MCAP file says that its messages are for those who come late."""

DEFAULT_WORLD_NAME = "recording"
"""The world of a recording that does not name it."""

DEFINITION_LANGUAGES: Mapping[str, str] = {
    "ros2msg": "msg",
    "ros1msg": "msg",
    "ros2idl": "idl",
    "omgidl": "idl",
    "": "none",
}
"""What MCAP calls the language of a definition -> what `definitions` does."""

BATCH_BYTES = 4_000_000
"""Messages are handed on when there are as many bytes of them."""

SMALL_BATCH_BYTES = 50_000
"""Messages of one topic that are fewer bytes than this are handed on with others; each time takes time."""

MIN_BATCH_BYTES = 1_000_000
"""Smaller chunks than this are handed on with others; joining them takes time."""


class ChannelKey(NamedTuple):
    """A topic, and how its messages are to be read."""

    topic: str
    type: str
    encoding: str
    schema_encoding: str
    definition: bytes


@dataclass(frozen=True)
class MessageChannel:
    """One topic: message type, encoding, its definition and the language of that (as MCAP calls it).

    `latched` where the messages are for those who come late; `quality` is what ROS 2 notes of the service.
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
        """Return what its messages have in common, whoever sends them."""
        return ChannelKey(self.topic, self.type, self.encoding, self.schema_encoding, self.definition)

    @property
    def is_ros(self) -> bool:
        """Return whether a program of ROS sent it."""
        return self.encoding in (CDR, ROS1) and self.schema_encoding in DEFINITION_LANGUAGES

    def parse_type(self) -> TypeDefinition:
        """Return the type. Raises `RecordingError` where its definition is missing or is none."""
        try:
            return parse_definition(
                self.type, self.definition.decode(errors="replace"), DEFINITION_LANGUAGES[self.schema_encoding]
            )
        except ValueError as error:
            raise RecordingError(f"topic {self.topic}: {error}") from error


class RawMessage(NamedTuple):
    """One message: its topic, when it arrived and the instant that it is about (ns), its bytes."""

    channel: MessageChannel
    log_time: int
    publish_time: int
    data: bytes


@dataclass(frozen=True, eq=False)
class MessageBatch:
    """Messages of one topic in order: their bytes by size, when each arrived, the instant that it is about (n,) ns."""

    channel: MessageChannel
    log_time: IntArray
    publish_time: IntArray
    size_groups: list[record_scan.SizeGroup]

    @property
    def size(self) -> int:
        """Return how many bytes the messages are."""
        return sum(rows.size for _, rows in self.size_groups)


def join_batches(batches: list[MessageBatch]) -> MessageBatch:
    """Return messages of one topic that follow one another as one."""
    if len(batches) == 1:
        return batches[0]
    log, time = np.concatenate([lot.log_time for lot in batches]), np.concatenate([lot.publish_time for lot in batches])
    firsts = np.cumsum([0, *(lot.log_time.size for lot in batches)]).tolist()
    sized = record_scan.join_size_groups(
        [(first, lot.size_groups) for first, lot in zip(firsts, batches, strict=False)]
    )
    return MessageBatch(batches[0].channel, log, time, sized)


def sort_batch(batch: MessageBatch) -> MessageBatch:
    """Return messages in order of arrival."""
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
    """Return messages of one topic in order of arrival, as they come where that is so already."""
    each = [sort_batch(lot) for lot in batches]
    follow = all(int(after.log_time[0]) >= int(before.log_time[-1]) for before, after in pairwise(each))
    return each if follow else [sort_batch(join_batches(batches))]


def join_small_batches(batches: list[MessageBatch]) -> list[MessageBatch]:
    """Return messages of one topic that follow one another with those joined that come in few bytes."""
    found: list[MessageBatch] = []
    for are_few, group in groupby(batches, lambda lot: lot.size < SMALL_BATCH_BYTES):
        own = list(group)
        found += [join_batches(own)] if are_few else own
    return found


def batch_messages(messages: Iterable[RawMessage], topics: Collection[str]) -> Iterator[list[MessageBatch]]:
    """Yield messages of some topics that come one by one, in batches of bounded size."""
    groups: dict[ChannelKey, list[RawMessage]] = {}
    size = 0

    def build_batches() -> list[MessageBatch]:
        found = []
        for own in groups.values():
            log, time = (np.array([one[k] for one in own], dtype=np.int64) for k in (1, 2))
            found.append(MessageBatch(own[0].channel, log, time, record_scan.group_by_size(one.data for one in own)))
        return found

    for item in messages:
        size += len(item.data) + 64
        if item.channel.topic in topics:
            groups.setdefault(item.channel.key, []).append(item)
        if size >= BATCH_BYTES:
            yield build_batches()
            groups, size = {}, 0
    yield build_batches()


class MessageReader(Protocol):
    """An open recording of messages: `about` is what it says of itself, `own` where navsense wrote it."""

    where: Where
    channels: list[MessageChannel]
    metadata: dict[str, str]
    is_navsense: bool

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in order of arrival, as far as the recording has them so."""
        ...

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics in the same order, in batches of bounded size."""
        ...


def truncated_error(path: Path) -> RecordingError:
    """Return the error of an MCAP file without its end: a live process writes to it, or it was cut off."""
    if atomic.is_being_written(path):
        return atomic.reader_error(path)
    return RecordingError("the recording was cut off", where=Where(str(path)), remedy=atomic.recovery_remedy(path))


@dataclass(eq=False)
class McapReader:
    """An MCAP file."""

    path: Path
    file: BinaryIO
    channels: list[MessageChannel] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    profile: str = ""
    _schemas: dict[int, tuple[str, str, bytes]] = field(default_factory=dict)
    _channels: dict[int, MessageChannel] = field(default_factory=dict)
    _all_channels: list[MessageChannel] = field(default_factory=list)
    _channel_places: IntArray = field(default_factory=lambda: np.full(1 << 16, -1, dtype=np.int64))
    _span: tuple[int, int] = (0, 0)
    _key_cache: tuple[list[ChannelKey], IntArray] = field(default_factory=lambda: ([], np.zeros(0, dtype=np.int64)))

    def __post_init__(self) -> None:
        """Read what the file says of its contents. Raises `RecordingError` where it is none, or was cut off."""
        self.where = Where(str(self.path))
        size = self.file.seek(0, os.SEEK_END)
        self.profile, start = read_profile(self.file, self.path, size)
        tail = records.PREFIX.size + records.FOOTER_BODY.size + len(records.MAGIC)
        self.file.seek(max(start, size - tail))
        ending = self.file.read(tail)
        if len(ending) < tail or not ending.endswith(records.MAGIC) or ending[0] != records.FOOTER:
            raise truncated_error(self.path)
        self._span = (start, size - tail)
        summary = records.FOOTER_BODY.unpack_from(ending, records.PREFIX.size)[0]
        if not (summary and self._read_summary(summary)):
            self._schemas, self._channels, self._all_channels, self.metadata = {}, {}, [], {}
            for raw in self._read_data_records():
                self._add_definition(raw.kind, raw.body)
        self.channels = list(dict.fromkeys(self._channels.values()))
        self.is_navsense = bool(self.metadata)

    def count_messages(self) -> int:
        """Return how many messages there are, by reading all of them."""
        return sum(self._load_segment(piece)[0].log_time.size for piece in list_segments(self.file, self._span))

    def _read_summary(self, summary: int) -> bool:
        """Note what the summary says; tell whether it has all channels of the file's messages, and their schemas."""
        used: set[int] = set()
        told = list(self._read_summary_records(summary))
        for raw in sorted(told, key=lambda one: one.kind != records.SCHEMA):
            self._add_definition(raw.kind, raw.body)
            used |= records.list_channels(raw)
        schemas = {int.from_bytes(raw.body[2:4], "little") for raw in told if raw.kind == records.CHANNEL} - {0}
        return bool(self._channels) and used <= self._channels.keys() and schemas <= self._schemas.keys()

    def _read_summary_records(self, summary: int) -> Iterator[records.RawRecord]:
        """Yield the records of the summary, and the metadata that it points to."""
        for raw in records.read_records(self.file, summary, self._span[1]):
            if raw.kind == records.METADATA_INDEX:
                at, length = struct.unpack_from("<QQ", raw.body)
                if at + length > self._span[1]:
                    raise records.DamagedError("its index points outside the file")
                yield from records.read_records(self.file, at, at + length)
            else:
                yield raw

    def _read_data_records(self) -> Iterator[records.RawRecord]:
        """Yield all records but those of the summary, those in chunks too."""
        end = self._span[0]
        for raw in records.read_records(self.file, *self._span):
            end = raw.offset + records.PREFIX.size + len(raw.body)
            if raw.kind == records.CHUNK:
                inner = records.parse_records(records.decompress(records.parse_chunk(raw.body)))
                yield from (records.RawRecord(kind, at, bytes(body)) for kind, at, body in inner)
            else:
                yield raw
            if raw.kind == records.DATA_END:
                return
        if end != self._span[1]:
            raise records.DamagedError("a record ends outside the file")

    def _add_definition(self, kind: int, body: bytes) -> None:
        """Note a schema, a channel or our own metadata."""
        reader = records.FieldReader(body)
        if kind == records.SCHEMA:
            number, name, form = reader.read_int(2), reader.read_string(), reader.read_string()
            self._schemas[number] = (name, form, bytes(reader.read(reader.read_int(4))))
        elif kind == records.CHANNEL:
            number, schema = reader.read_int(2), reader.read_int(2)
            topic, encoding, values = reader.read_string(), reader.read_string(), reader.read_map()
            name, form, text = self._schemas.get(schema, ("", "", b""))
            quality = values.get(QOS_KEY, "")
            latched = any(value in quality for value in LATCHED_DURABILITIES) or values.get("latching") == "1"
            line = MessageChannel(topic, _full_type_name(name, encoding), encoding, text, form, latched, quality)
            if self._channels.get(number) != line:
                self._channels[number] = line
                self._channel_places[number] = len(self._all_channels)
                self._all_channels.append(line)
        elif kind == records.METADATA:
            name = reader.read_string()
            if name == "navsense":
                self.metadata |= reader.read_map()
            elif name == WORLD_METADATA:
                self.metadata[WORLD_KEY] = reader.read_map().get(WORLD_KEY, "")

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in order of arrival."""
        known = self._all_channels
        for parts in self._read_windows():
            data = [part.messages.data.tobytes() for part in parts]
            every = [
                (
                    np.full(lines.size, i)[own],
                    lines[own],
                    *(one[own] for one in (f.log_time, f.publish_time, f.starts, f.stops)),
                )
                for i, (f, lines, own) in enumerate(parts)
            ]
            columns = [np.concatenate(column) for column in zip(*every, strict=True)]
            order = np.argsort(columns[2], kind="stable")
            for i, line, log, time, start, stop in zip(*(one[order].tolist() for one in columns), strict=True):
                yield RawMessage(known[line], log, time, data[i][start:stop])

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics in the order of `items`, in batches of bounded size."""
        waiting: dict[ChannelKey, list[MessageBatch]] = {}
        size = 0
        for parts in self._read_windows():
            window: dict[ChannelKey, list[MessageBatch]] = {}
            for part in parts:
                size += int((part.messages.stops[part.selection] - part.messages.starts[part.selection]).sum())
                for lot in self._split_by_channel(part, topics):
                    window.setdefault(lot.channel.key, []).append(lot)
            for kind, lots in window.items():
                waiting.setdefault(kind, []).extend(sort_batches(lots))
            if size >= MIN_BATCH_BYTES:
                yield [lot for lots in waiting.values() for lot in join_small_batches(lots)]
                waiting, size = {}, 0
        yield [lot for lots in waiting.values() for lot in join_small_batches(lots)]

    def _split_by_channel(self, part: SegmentMessages, topics: Collection[str]) -> Iterator[MessageBatch]:
        """Yield the messages of a part by what kind they are of."""
        found, lines, chosen = part
        log_time, time = found.log_time.view(np.int64), found.publish_time.view(np.int64)
        if (log_time < 0).any() or (time < 0).any():
            raise records.DamagedError("a message's time is more than 292 years after 1970")
        places = np.arange(lines.size)[chosen]
        names, numbers = self._channel_keys()
        for number, own in record_scan.group_places(numbers[lines[chosen]], len(names)):
            if names[number].topic in topics:
                which = record_scan.as_slice(places[own])
                line = self._all_channels[lines[places[own][0]]]
                yield MessageBatch(line, log_time[which], time[which], found.group_by_size(which))

    def _channel_keys(self) -> tuple[list[ChannelKey], IntArray]:
        """Return the kinds of the lines, and the place of each line's among them."""
        if len(self._key_cache[1]) != len(self._all_channels):
            kinds = [line.key for line in self._all_channels]
            names = list(dict.fromkeys(kinds))
            places = {name: place for place, name in enumerate(names)}
            self._key_cache = names, np.array([places[one] for one in kinds], dtype=np.int64)
        return self._key_cache

    def _read_windows(self) -> Iterator[list[SegmentMessages]]:
        """Yield the messages in order of arrival, window by window."""
        return read_windows(list_segments(self.file, self._span), self._load_segment, self.where)

    def _load_segment(self, segment: Segment) -> tuple[record_scan.ScannedMessages, IntArray]:
        """Return the messages of a piece in the order of its records, with the place of each one's line."""
        piece = record_scan.scan_records(read_segment(self.file, segment))
        found = piece.messages()
        lines, first, kinds = np.empty(found.log_time.size, dtype=np.int64), 0, piece.kinds
        for place in np.flatnonzero(kinds != records.MESSAGE).tolist():
            stop = int(np.searchsorted(found.record_places, place))
            lines[first:stop] = self._find_channels(found.channel[first:stop])
            first = stop
            self._add_definition(int(kinds[place]), piece.body(place))
        lines[first:] = self._find_channels(found.channel[first:])
        if not piece.is_complete:
            raise records.DamagedError("a chunk ends inside a record")
        return found, lines

    def _find_channels(self, channels: AnyArray) -> IntArray:
        """Return the places of the lines of some channels."""
        found: IntArray = self._channel_places[channels]
        if (found < 0).any():
            raise records.DamagedError("a message of a channel that is not known")
        return found


def _full_type_name(name: str, encoding: str) -> str:
    """Return the name of a type of ROS as ROS 2 has it."""
    package, _, short = name.rpartition("/")
    return f"{package}/msg/{short}" if encoding == ROS1 and package and "/" not in package else name


@dataclass(eq=False)
class RosbagsReader:
    """A bag that rosbags reads: `old` one of ROS 1."""

    path: Path
    reader: Any
    is_ros1: bool

    def __post_init__(self) -> None:
        """Read what the bag says of its contents."""
        self.where = Where(str(self.path))
        connections = list(self.reader.connections)
        custom: Mapping[str, Any] = {} if self.is_ros1 else self.reader.storage.metadata.custom or {}
        self.metadata = {key: str(value) for key, value in custom.items()} if "world" in custom else {}
        if self.is_ros1 and {one.ext.callerid for one in connections} == {CALLER_ID}:
            with map_bag_errors(self.path):
                self.metadata = read_ros1_metadata(self.reader) or {"world": DEFAULT_WORLD_NAME}
            connections = [one for one in connections if not is_metadata(one)]
        self._channels = {connection.id: self._make_channel(connection) for connection in connections}
        self.channels = list(dict.fromkeys(self._channels.values()))
        self.is_navsense = bool(self.metadata)

    def _make_channel(self, connection: Any) -> MessageChannel:
        """Return the topic of a connection."""
        form = {"MSG": "ros2msg", "IDL": "ros2idl"}.get(connection.msgdef.format.name, "")
        text = connection.msgdef.data.encode()
        if self.is_ros1:
            return MessageChannel(
                connection.topic, connection.msgtype, ROS1, text, "ros1msg", bool(connection.ext.latching)
            )
        profiles = connection.ext.offered_qos_profiles
        latched = any(one.durability.name == "TRANSIENT_LOCAL" for one in profiles)
        quality = _format_qos(profiles)
        return MessageChannel(
            connection.topic, connection.msgtype, connection.ext.serialization_format, text, form, latched, quality
        )

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in order of arrival."""
        for connection, time, data in self.reader.messages():
            if connection.id not in self._channels:
                continue
            yield RawMessage(self._channels[connection.id], time, time, bytes(data))


def _format_qos(profiles: list[Any]) -> str:
    """Return qualities of service as ROS 2 notes them."""
    from rosbags.rosbag2.metadata import dump_qos_v8

    return str(dump_qos_v8(profiles)) if profiles else ""


@dataclass(eq=False)
class SplitBagReader:
    """The MCAP files of one bag of ROS 2, one after the other."""

    path: Path
    readers: list[McapReader]
    metadata: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Join what the files say."""
        self.where = Where(str(self.path))
        self.channels = list(dict.fromkeys(chain.from_iterable(part.channels for part in self.readers)))
        for part in self.readers:
            self.metadata |= part.metadata
        self.is_navsense = bool(self.metadata)

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages of all files."""
        return chain.from_iterable(part.read_messages() for part in self.readers)

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics, file by file, in batches of bounded size."""
        return chain.from_iterable(part.read_batches(topics) for part in self.readers)


def ros2_bag_folder(path: Path) -> Path:
    """Return the folder of a bag of ROS 2 that may be named by a file; the path itself where there is none."""
    if path.suffix.lower() == ".db3":
        if path.stem == path.absolute().parent.name and (path.parent / BAG_METADATA_FILE).is_file():
            return path.parent
        if not path.exists() and (storage_path(path) / BAG_METADATA_FILE).is_file():
            return storage_path(path)
    return path


def is_message_recording(path: Path) -> bool:
    """Return True if a path is read as a recording of messages."""
    found = format_of_recording(path)
    return found is not None and found.holds_messages


@contextmanager
def open_messages(path: Path) -> Iterator[MessageReader]:
    """Yield a recording of messages.

    Raises `RecordingError` for what is none, was cut off, is damaged, cannot be read.
    """
    where = Where(str(path))
    try:
        if path.suffix.lower() == ".mcap" and not path.is_dir():
            with open_for_reading(path) as file:
                yield McapReader(path, file)
            return
        with limit_rosbags(), _open_bag(path) as source:
            yield source
    except NavsenseError:
        raise
    except (records.DamagedError, struct.error) as error:
        remedy = atomic.recovery_remedy(path)
        raise RecordingError(f"the recording is damaged: {error}", where=where, remedy=remedy) from error
    except OSError as error:
        if error.strerror:
            raise os_error(path, error, "read") from error
        raise RecordingError(f"is no bag that can be read: {error}", where=where) from error


@contextmanager
def _open_bag(path: Path) -> Iterator[MessageReader]:
    """Yield a bag. What rosbags says of a damaged one becomes a `RecordingError`; what comes from outside stays."""
    from rosbags.rosbag1 import Reader as OldReader
    from rosbags.rosbag2 import Reader

    old = path.suffix.lower() == ".bag" and not path.is_dir()
    folder = path if old else ros2_bag_folder(path)
    if folder.is_dir() and not (folder / BAG_METADATA_FILE).is_file():
        remedy = f"name the folder that holds {BAG_METADATA_FILE}, or a file"
        raise RecordingError("is a directory, and no bag of ROS 2", where=Where(str(path)), remedy=remedy)
    inputs.add_input(folder)
    if not folder.is_dir():
        open_for_reading(folder).close()
    inputs.check_bag(folder, BAG)
    remedy = atomic.recovery_remedy(path) if old else ""
    with map_bag_errors(path, remedy):
        reader: Any = OldReader(path) if old else Reader(folder)
        reader.open()
    try:
        parts = [] if old else _list_mcap_files(reader)
        if parts:
            with ExitStack() as stack:
                files = [stack.enter_context(open_for_reading(part)) for part in parts]
                yield SplitBagReader(folder, [McapReader(part, file) for part, file in zip(parts, files, strict=True)])
        else:
            yield ErrorMappingReader(RosbagsReader(folder, reader, old), path, remedy)
    finally:
        reader.close()


@dataclass(eq=False)
class ErrorMappingReader:
    """A bag whose reader's errors are ours."""

    reader: RosbagsReader
    path: Path
    remedy: str

    def __post_init__(self) -> None:
        """Say what the bag says."""
        self.where, self.channels, self.metadata = self.reader.where, self.reader.channels, self.reader.metadata
        self.is_navsense = self.reader.is_navsense

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in order of arrival."""
        found = self.reader.read_messages()
        while True:
            with map_bag_errors(self.path, self.remedy):
                item = next(found, None)
            if item is None:
                return
            yield item

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics in order of arrival, in batches of bounded size."""
        return batch_messages(self.read_messages(), topics)


@contextmanager
def map_bag_errors(path: Path, remedy: str = "") -> Iterator[None]:
    """Make whatever rosbags says of a damaged bag a `RecordingError`."""
    try:
        yield
    except NavsenseError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise
        raise RecordingError(f"is no bag that can be read: {error}", where=Where(str(path)), remedy=remedy) from error


def _list_mcap_files(reader: Any) -> list[Path]:
    """Return the MCAP files of a bag of ROS 2 that are as they were written; none where it has others."""
    from rosbags.rosbag2.reader import DirectoryReader

    if not isinstance(reader.storage, DirectoryReader) or reader.storage.metadata.compression_mode:
        return []
    parts: list[Any] = list(reader.storage.storages)
    paths = [Path(part.path) for part in parts]
    return paths if all(path.suffix == ".mcap" for path in paths) else []


def parse_stored_world(reader: MessageReader) -> Mapping[str, Any] | None:
    """Return the plain world of a recording of navsense, None where it has none."""
    text = reader.metadata.get(WORLD_KEY)
    if not text:
        return None
    try:
        found = inputs.parse_json(text)
    except ValueError as error:
        raise RecordingError(
            f"the recording is damaged: its world cannot be read: {error}", where=reader.where
        ) from error
    return found if isinstance(found, dict) else None
