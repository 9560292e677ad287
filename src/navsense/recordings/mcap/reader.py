"""Reader of MCAP files: the messages of a file in order of log time, by columns.

A segment of a file is a chunk, or a run of messages outside chunks. Segments that follow one another in time are read
one by one. Where segments overlap, the messages before the start of the next segment are yielded, and the others wait.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from navsense.core import atomic
from navsense.core.errors import RecordingError, Where
from navsense.core.kernels import INTERPRETED, kernel
from navsense.core.typing import AnyArray, ByteArray, IntArray, WordArray
from navsense.recordings.base import NOT_RECOVERABLE, open_for_reading, recovery_remedy
from navsense.recordings.channels import (
    LATCHED_DURABILITIES,
    QOS_KEY,
    ROS1,
    Channel,
    ChannelKey,
    MessageBatch,
    MessageCounts,
    RawMessage,
    SizeGroup,
    join_small_batches,
    sort_batches,
)
from navsense.recordings.header import WORLD_KEY
from navsense.recordings.mcap import records
from navsense.recordings.mcap.records import MESSAGE, MESSAGE_HEADER, RECORD_HEADER, WORLD_METADATA, DamagedError

HEAD_DTYPE = np.dtype(
    {
        "names": ["channel", "log", "time"],
        "formats": ["<u2", "<u8", "<u8"],
        "offsets": [9, 15, 23],
        "itemsize": MESSAGE_HEADER.size,
    }
)
"""Fields of the header of a message record that differ between messages."""

INITIAL_CAPACITY = 1 << 16
"""Number of records up to which a segment is scanned once; a segment with more records is scanned twice."""

MIN_RUN_LENGTH = 16
"""Average length of a run of records of one size from which on runs are read with a stride."""


@kernel
def scan_offsets(data: ByteArray | bytes, out: IntArray) -> tuple[int, int]:
    """Return the number of complete records and the end of the last one; `out` receives the offset of each."""
    count, at, size = 0, 0, len(data)
    while at + 9 <= size:
        length = int(data[at + 1]) | int(data[at + 2]) << 8 | int(data[at + 3]) << 16 | int(data[at + 4]) << 24
        # The opcode 0 is invalid, and so is a length of more than four bytes.
        if data[at] == 0 or data[at + 5] | data[at + 6] | data[at + 7] | data[at + 8] or length > size - at - 9:
            break
        if count < len(out):
            out[count] = at
        count += 1
        at += 9 + length
    return count, at


@dataclass(frozen=True, eq=False)
class RecordIndex:
    """The complete records of a segment: its bytes, the offset of each record and the end of the last one (n + 1,)."""

    data: ByteArray
    offsets: IntArray

    @property
    def is_complete(self) -> bool:
        """True if the segment ends at the end of a record."""
        return bool(self.offsets[-1] == self.data.size)

    @cached_property
    def kinds(self) -> ByteArray:
        """Opcodes of the records (n,)."""
        return self.data[self.offsets[:-1]]

    def body(self, place: int) -> bytes:
        """Return the body of one record."""
        return self.data[self.offsets[place] + RECORD_HEADER.size : self.offsets[place + 1]].tobytes()

    def messages(self) -> ScannedMessages:
        """Return the message records. Raises `DamagedError` for a message that is shorter than its header."""
        own = np.flatnonzero(self.kinds == MESSAGE)
        chosen = as_slice(own)
        starts, stops = self.offsets[:-1][chosen], self.offsets[1:][chosen]
        if (stops - starts < MESSAGE_HEADER.size).any():
            raise DamagedError("a message ends too early")
        return ScannedMessages(
            self.data, own, starts + MESSAGE_HEADER.size, stops, *read_heads(self.data, starts, stops)
        )


@dataclass(frozen=True, eq=False)
class ScannedMessages:
    """The messages of a segment.

    record_places (n,) are their numbers among the records; starts, stops (n,) the offsets of their data; channel (n,)
    the channel ids; log_time, publish_time (n,) ns.
    """

    data: ByteArray
    record_places: IntArray
    starts: IntArray
    stops: IntArray
    channel: AnyArray
    log_time: WordArray
    publish_time: WordArray

    def group_by_size(self, selection: IntArray | slice) -> list[SizeGroup]:
        """Return the data of the selected messages, grouped by size."""
        starts, sizes = self.starts[selection], self.stops[selection] - self.starts[selection]
        if (sizes == sizes[:1]).all():
            return [(np.arange(sizes.size), gather_rows(self.data, starts, int(sizes[0])))] if sizes.size else []
        found = []
        for size in np.unique(sizes).tolist():
            places = np.flatnonzero(sizes == size)
            found.append((places, gather_rows(self.data, starts[places], size)))
        return found


def scan_records(data: bytes) -> RecordIndex:
    """Return the records of a segment up to the first incomplete one."""
    view = np.frombuffer(data, dtype=np.uint8)
    # Without compilation, bytes are faster than arrays.
    walk = data if INTERPRETED else view
    edges = np.empty(INITIAL_CAPACITY + 1, dtype=np.int64)
    count, end = scan_offsets(walk, edges[:-1])
    if count > INITIAL_CAPACITY:
        edges = np.empty(count + 1, dtype=np.int64)
        scan_offsets(walk, edges[:-1])
    edges[count] = end
    return RecordIndex(view, edges[: count + 1])


def as_slice(places: IntArray) -> IntArray | slice:
    """Return ascending indices (n,) as a slice if they are consecutive: a slice makes views, not copies."""
    if places.size and int(places[-1]) - int(places[0]) == places.size - 1:
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def group_places(kinds: IntArray, count: int) -> list[tuple[int, IntArray | slice]]:
    """Return (kind, indices) for each kind in `kinds` (n,), all below `count`; a slice if consecutive."""
    cuts = np.flatnonzero(kinds[1:] != kinds[:-1]) + 1
    edges = [0, *cuts.tolist(), kinds.size]
    firsts = kinds[edges[:-1]].tolist() if kinds.size else []
    if len(set(firsts)) == len(firsts):
        return [(one, slice(a, b)) for one, a, b in zip(firsts, edges[:-1], edges[1:], strict=False)]
    # NumPy sorts integers of 16 bits in linear time.
    order = np.argsort(kinds.astype(np.uint16) if count <= 1 << 16 else kinds, kind="stable")
    ends = np.searchsorted(kinds, np.arange(count + 1), sorter=order).tolist()
    return [(one, order[a:b]) for one, (a, b) in enumerate(pairwise(ends)) if b > a]


def read_heads(data: ByteArray, starts: IntArray, stops: IntArray) -> tuple[AnyArray, WordArray, WordArray]:
    """Return channel, log time and publish time (n,) of the message records between these offsets."""
    names, count = ("channel", "log", "time"), starts.size
    found = [np.empty(count, dtype=HEAD_DTYPE[name]) for name in names]
    if not count:
        return found[0], found[1], found[2]
    sizes = stops - starts
    cuts = np.flatnonzero((sizes[1:] != sizes[:-1]) | (starts[1:] != stops[:-1])) + 1
    if cuts.size * MIN_RUN_LENGTH > count:
        whole = view_every_byte(data, HEAD_DTYPE)
        return tuple(np.asarray(whole[name][starts]) for name in names)  # type: ignore[return-value]
    edges = [0, *cuts.tolist(), count]
    for first, stop in pairwise(edges):
        rows = np.ndarray((stop - first,), HEAD_DTYPE, data, int(starts[first]), (int(sizes[first]),))
        for name, out in zip(names, found, strict=True):
            out[first:stop] = rows[name]
    return found[0], found[1], found[2]


def view_every_byte(data: ByteArray, kind: np.dtype[np.void]) -> AnyArray:
    """Return a view with one value per byte: the value that starts there. Nothing is copied."""
    return np.ndarray((data.size - kind.itemsize + 1,), kind, data, strides=(1,))


def gather_rows(data: ByteArray, starts: IntArray, size: int) -> ByteArray:
    """Return the `size` bytes from each start (n,), (n, size): a view if the starts are evenly spaced."""
    if not size:
        return np.zeros((starts.size, 0), dtype=np.uint8)
    step = int(starts[1] - starts[0]) if starts.size > 1 else size
    if step > 0 and (starts[1:] - starts[:-1] == step).all():
        return np.ndarray((starts.size, size), np.uint8, data, int(starts[0]), (step, 1))
    rows: AnyArray = view_every_byte(data, np.dtype((np.void, size)))[starts]
    return rows.view(np.uint8).reshape(starts.size, size)


MAX_HELD_BYTES = 1 << 29
"""Limit on the bytes of overlapping segments in memory."""

SEGMENT_BYTES = 4_000_000
"""Bytes at which a run of messages outside chunks is split."""

HEAD_SIZE = records.RECORD_HEADER.size + max(records.CHUNK_HEADER.size, records.MESSAGE_HEADER.size)
"""Bytes at the start of a record that hold its opcode and its times."""


@dataclass(frozen=True)
class Segment:
    """A chunk, or a run of messages outside chunks: its offsets and the log times (ns) of its first and last message.

    For a chunk these are the times in its header.
    """

    start: int
    stop: int
    first: int
    last: int
    is_chunk: bool


class SegmentMessages(NamedTuple):
    """Messages of a segment, the number of the channel of each, and the selected ones, in the order of the file."""

    messages: ScannedMessages
    channels: IntArray
    selection: IntArray | slice = slice(None)

    def split(self, time: int | None) -> tuple[SegmentMessages | None, SegmentMessages | None]:
        """Return the messages before `time` (ns), all for None, and the others; None instead of an empty part."""
        log = self.messages.log_time[self.selection]
        early = None if time is None else log < np.uint64(time)
        if early is None or early.all():
            return (self if log.size else None), None
        if not early.any():
            return None, self
        places = np.arange(self.messages.log_time.size)[self.selection]
        return self._replace(selection=places[early]), self._replace(selection=places[~early])


def list_segments(file: BinaryIO, span: tuple[int, int]) -> list[Segment]:
    """Return the segments between two offsets, in the order of the file. Only the headers of chunks are read."""
    found: list[Segment] = []
    run: list[int] = []
    begun = size = 0
    offset, end = span
    while offset + records.RECORD_HEADER.size <= end:
        file.seek(offset)
        head = file.read(min(HEAD_SIZE, end - offset))
        kind, length = records.RECORD_HEADER.unpack_from(head)
        after = offset + records.RECORD_HEADER.size + length
        if kind == 0 or after > end:
            break
        is_unchunked = kind in (records.MESSAGE, records.SCHEMA, records.CHANNEL)
        if is_unchunked:
            begun = begun if size else offset
            size += after - offset
            if kind == records.MESSAGE and after - offset >= records.MESSAGE_HEADER.size:
                run.append(records.MESSAGE_HEADER.unpack_from(head)[4])
        if size and (size >= SEGMENT_BYTES or kind in (records.CHUNK, records.DATA_END)):
            stop = after if is_unchunked else offset
            found.append(Segment(begun, stop, min(run, default=0), max(run, default=0), is_chunk=False))
            run, size = [], 0
        if kind == records.CHUNK:
            if length < records.CHUNK_HEADER.size:
                raise records.DamagedError("a record ends too early")
            first, last = records.CHUNK_HEADER.unpack_from(head, records.RECORD_HEADER.size)[:2]
            found.append(Segment(offset, after, first, last, is_chunk=True))
        if kind == records.DATA_END:
            break
        offset = after
    if size:
        found.append(Segment(begun, offset, min(run, default=0), max(run, default=0), is_chunk=False))
    return found


def read_segment(file: BinaryIO, segment: Segment) -> bytes:
    """Return the messages of a segment and their definitions, as records."""
    own = records.read_records(file, segment.start, segment.stop)
    if segment.is_chunk:
        return records.decompress(records.parse_chunk(next(own).body))
    kinds = (records.MESSAGE, records.SCHEMA, records.CHANNEL)
    return b"".join(records.encode_record(raw.opcode, raw.body) for raw in own if raw.opcode in kinds)


def read_windows(
    segments: Sequence[Segment], load: Callable[[Segment], tuple[ScannedMessages, IntArray]], where: Where
) -> Iterator[list[SegmentMessages]]:
    """Yield the messages window by window in order of log time; the parts of a window are not ordered.

    Raises `RecordingError` if segments overlap by more than `MAX_HELD_BYTES`.
    """
    if all(after.first >= before.last for before, after in pairwise(segments)):
        for segment in segments:
            yield [SegmentMessages(*load(segment))]
        return
    planned = sorted(segments, key=lambda segment: segment.first)
    held: list[tuple[int, SegmentMessages]] = []
    for segment, after in zip(planned, [*planned[1:], None], strict=True):
        held.append((segment.start, SegmentMessages(*load(segment))))
        held.sort(key=lambda one: one[0])
        if sum(part.messages.data.size for _, part in held) > MAX_HELD_BYTES:
            what = f"its messages are in no order of time over more than {MAX_HELD_BYTES >> 20} MiB"
            raise RecordingError(what, where=where, remedy="put them in order with: mcap sort")
        ready, rest = [], []
        for start, part in held:
            early, late = part.split(None if after is None else after.first)
            ready += [early] if early is not None else []
            rest += [(start, late)] if late is not None else []
        held = rest
        if ready:
            yield ready


MIN_BATCH_BYTES = 1_000_000
"""Bytes of a window of batches; smaller chunks are joined."""


def read_profile(file: BinaryIO, path: Path, end: int) -> tuple[str, int]:
    """Return the profile of an MCAP file and the offset after its header. Raises `RecordingError` for another file."""
    where = Where(str(path))
    file.seek(0)
    magic = file.read(len(records.MAGIC))
    if magic != records.MAGIC:
        other = path.suffix.lower() in (".npz", ".parquet") or magic.startswith((b"PK", b"PAR1"))
        raise RecordingError("is not an MCAP file", where=where, remedy=NOT_RECOVERABLE if other else "")
    head = next(records.read_records(file, len(records.MAGIC), end), None)
    if head is None or head.opcode != records.HEADER:
        raise RecordingError("the file ends inside its header; it contains no messages", where=where)
    try:
        name = records.FieldReader(head.body).read_string()
    except records.DamagedError as error:
        raise RecordingError(f"the file's header is damaged: {error}", where=where) from error
    return name, head.offset + records.RECORD_HEADER.size + len(head.body)


def truncated_error(path: Path) -> RecordingError:
    """Return the error of an MCAP file without an end: a live process writes to it, or it is truncated."""
    if atomic.is_being_written(path):
        return atomic.reader_error(path)
    return RecordingError("the recording was cut off", where=Where(str(path)), remedy=recovery_remedy(path))


@dataclass(eq=False)
class McapReader:
    """Reader of one MCAP file."""

    path: Path
    file: BinaryIO
    channels: list[Channel] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    profile: str = ""
    _schemas: dict[int, tuple[str, str, bytes]] = field(default_factory=dict)
    _channels: dict[int, Channel] = field(default_factory=dict)
    _all_channels: list[Channel] = field(default_factory=list)
    _channel_places: IntArray = field(default_factory=lambda: np.full(1 << 16, -1, dtype=np.int64))
    _span: tuple[int, int] = (0, 0)
    _statistics: bytes = b""
    _key_cache: tuple[list[ChannelKey], IntArray] = field(default_factory=lambda: ([], np.zeros(0, dtype=np.int64)))

    def __post_init__(self) -> None:
        """Read the summary, else all definitions. Raises `RecordingError` for another or a truncated file."""
        self.where = Where(str(self.path))
        size = self.file.seek(0, os.SEEK_END)
        self.profile, start = read_profile(self.file, self.path, size)
        tail = records.RECORD_HEADER.size + records.FOOTER_FIELDS.size + len(records.MAGIC)
        self.file.seek(max(start, size - tail))
        ending = self.file.read(tail)
        if len(ending) < tail or not ending.endswith(records.MAGIC) or ending[0] != records.FOOTER:
            raise truncated_error(self.path)
        self._span = (start, size - tail)
        summary = records.FOOTER_FIELDS.unpack_from(ending, records.RECORD_HEADER.size)[0]
        if not (summary and self._read_summary(summary)):
            self._schemas, self._channels, self._all_channels, self.metadata = {}, {}, [], {}
            self._statistics = b""
            for raw in self._read_data_records():
                self._add_definition(raw.opcode, raw.body)
        self.channels = list(dict.fromkeys(self._channels.values()))
        self.is_navsense = bool(self.metadata)

    def count_messages(self, *, from_data: bool = False) -> MessageCounts:
        """Return the counts in the summary; without a summary, or with `from_data`, all messages are read."""
        counts = dict.fromkeys(((one.topic, one.type) for one in self._channels.values()), 0)
        if self._statistics and not from_data:
            reader = records.FieldReader(self._statistics)
            total = reader.read_int(8)
            reader.read(18)
            first, last = reader.read_int(8), reader.read_int(8)
            table = records.FieldReader(reader.read(reader.read_int(4)))
            while table.offset < len(table.body):
                channel, count = self._channels[table.read_int(2)], table.read_int(8)
                counts[channel.topic, channel.type] += count
            return MessageCounts(counts, first, last) if total else MessageCounts(counts)
        times = []
        for segment in list_segments(self.file, self._span):
            messages, places = self._load_segment(segment)
            for place, count in zip(*(one.tolist() for one in np.unique(places, return_counts=True)), strict=True):
                key = self._all_channels[place].topic, self._all_channels[place].type
                counts[key] = counts.get(key, 0) + count
            if places.size:
                times += [int(messages.log_time.min()), int(messages.log_time.max())]
        return MessageCounts(counts, min(times, default=None), max(times, default=None))

    def _read_summary(self, summary: int) -> bool:
        """Read the summary. Return True if it has all channels of the messages in the file, and their schemas."""
        used: set[int] = set()
        found = list(self._read_summary_records(summary))
        for raw in sorted(found, key=lambda one: one.opcode != records.SCHEMA):
            self._add_definition(raw.opcode, raw.body)
            used |= records.list_channels(raw)
            self._statistics = raw.body if raw.opcode == records.STATISTICS else self._statistics
        schemas = {int.from_bytes(raw.body[2:4], "little") for raw in found if raw.opcode == records.CHANNEL} - {0}
        return bool(self._channels) and used <= self._channels.keys() and schemas <= self._schemas.keys()

    def _read_summary_records(self, summary: int) -> Iterator[records.RawRecord]:
        """Yield the records of the summary, and the metadata records in its index."""
        for raw in records.read_records(self.file, summary, self._span[1]):
            if raw.opcode == records.METADATA_INDEX:
                at, length = struct.unpack_from("<QQ", raw.body)
                if at + length > self._span[1]:
                    raise records.DamagedError("its index points outside the file")
                yield from records.read_records(self.file, at, at + length)
            else:
                yield raw

    def _read_data_records(self) -> Iterator[records.RawRecord]:
        """Yield all records before the summary, also those in chunks."""
        end = self._span[0]
        for raw in records.read_records(self.file, *self._span):
            end = raw.offset + records.RECORD_HEADER.size + len(raw.body)
            if raw.opcode == records.CHUNK:
                inner = records.parse_records(records.decompress(records.parse_chunk(raw.body)))
                yield from (records.RawRecord(kind, at, bytes(body)) for kind, at, body in inner)
            else:
                yield raw
            if raw.opcode == records.DATA_END:
                return
        if end != self._span[1]:
            raise records.DamagedError("a record ends outside the file")

    def _add_definition(self, kind: int, body: bytes) -> None:
        """Add a schema, a channel, or metadata of navsense."""
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
            channel = Channel(topic, _full_type_name(name, encoding), encoding, text, form, latched, quality)
            if self._channels.get(number) != channel:
                self._channels[number] = channel
                self._channel_places[number] = len(self._all_channels)
                self._all_channels.append(channel)
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
                    np.full(channel_numbers.size, i)[own],
                    channel_numbers[own],
                    *(one[own] for one in (f.log_time, f.publish_time, f.starts, f.stops)),
                )
                for i, (f, channel_numbers, own) in enumerate(parts)
            ]
            columns = [np.concatenate(column) for column in zip(*every, strict=True)]
            order = np.argsort(columns[2], kind="stable")
            for i, number, log, time, start, stop in zip(*(one[order].tolist() for one in columns), strict=True):
                yield RawMessage(known[number], log, time, data[i][start:stop])

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics in order of arrival, in batches of bounded size."""
        waiting: dict[ChannelKey, list[MessageBatch]] = {}
        size = 0
        for parts in self._read_windows():
            window: dict[ChannelKey, list[MessageBatch]] = {}
            for part in parts:
                size += int((part.messages.stops[part.selection] - part.messages.starts[part.selection]).sum())
                for batch in self._split_by_channel(part, topics):
                    window.setdefault(batch.channel.key, []).append(batch)
            for kind, batches in window.items():
                waiting.setdefault(kind, []).extend(sort_batches(batches))
            if size >= MIN_BATCH_BYTES:
                yield [batch for batches in waiting.values() for batch in join_small_batches(batches)]
                waiting, size = {}, 0
        yield [batch for batches in waiting.values() for batch in join_small_batches(batches)]

    def _split_by_channel(self, part: SegmentMessages, topics: Collection[str]) -> Iterator[MessageBatch]:
        """Yield the messages of a part by channel key."""
        messages, channel_numbers, selection = part
        log_time, publish_time = messages.log_time.view(np.int64), messages.publish_time.view(np.int64)
        if (log_time < 0).any() or (publish_time < 0).any():
            raise records.DamagedError("a message's time is more than 292 years after 1970")
        indices = np.arange(channel_numbers.size)[selection]
        keys, key_numbers = self._channel_keys()
        for number, members in group_places(key_numbers[channel_numbers[selection]], len(keys)):
            if keys[number].topic in topics:
                rows = as_slice(indices[members])
                channel = self._all_channels[channel_numbers[indices[members][0]]]
                yield MessageBatch(channel, log_time[rows], publish_time[rows], messages.group_by_size(rows))

    def _channel_keys(self) -> tuple[list[ChannelKey], IntArray]:
        """Return the channel keys, and the index of the key of each channel number.

        A channel id can be defined again in another chunk. Each definition has a channel number: its index in
        `_all_channels`.
        """
        if len(self._key_cache[1]) != len(self._all_channels):
            keys = list(dict.fromkeys(channel.key for channel in self._all_channels))
            index_of_key = {key: index for index, key in enumerate(keys)}
            numbers = np.array([index_of_key[channel.key] for channel in self._all_channels], dtype=np.int64)
            self._key_cache = keys, numbers
        return self._key_cache

    def _read_windows(self) -> Iterator[list[SegmentMessages]]:
        """Yield the messages in log time order by windows: no later segment precedes the messages of a window."""
        return read_windows(list_segments(self.file, self._span), self._load_segment, self.where)

    def _load_segment(self, segment: Segment) -> tuple[ScannedMessages, IntArray]:
        """Return the messages of a segment in the order of the file, with the number of the channel of each."""
        scanned = scan_records(read_segment(self.file, segment))
        found = scanned.messages()
        channel_numbers, first, kinds = np.empty(found.log_time.size, dtype=np.int64), 0, scanned.kinds
        for place in np.flatnonzero(kinds != records.MESSAGE).tolist():
            stop = int(np.searchsorted(found.record_places, place))
            channel_numbers[first:stop] = self._find_channels(found.channel[first:stop])
            first = stop
            self._add_definition(int(kinds[place]), scanned.body(place))
        channel_numbers[first:] = self._find_channels(found.channel[first:])
        if not scanned.is_complete:
            raise records.DamagedError("a chunk ends inside a record")
        return found, channel_numbers

    def _find_channels(self, channels: AnyArray) -> IntArray:
        """Return the numbers of the channels with these ids."""
        found: IntArray = self._channel_places[channels]
        if (found < 0).any():
            raise records.DamagedError("a message of an unknown channel")
        return found


def _full_type_name(name: str, encoding: str) -> str:
    """Return a ROS message type in the spelling of ROS 2."""
    package, _, short = name.rpartition("/")
    return f"{package}/msg/{short}" if encoding == ROS1 and package and "/" not in package else name


@contextmanager
def open_mcap(path: Path) -> Iterator[McapReader]:
    """Yield a reader of an MCAP file. Raises `RecordingError` if the file cannot be read."""
    with open_for_reading(path) as file:
        yield McapReader(path, file)
