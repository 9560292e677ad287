"""Reader of MCAP files: the messages of a file in order of log time, by columns.

A segment of a file is a chunk, or consecutive messages outside chunks. Segments that do not overlap in time are read
one by one. Of overlapping segments, the messages before the first log time of the next segment are yielded, and the
others are held back. The messages that are yielded together are a window. A batch has messages of one channel, from
some windows. The definitions are the records of schemas and channels, and the metadata of navsense.
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
from navsense.core.errors import DamagedError, RecordingError, Where
from navsense.core.kernels import INTERPRETED, kernel
from navsense.core.typing import AnyArray, ByteArray, IntArray, UInt64Array
from navsense.recordings.base import find_damaged_file_remedy, find_unrecoverable_remedy, open_for_reading
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
from navsense.recordings.info import WORLD_JSON_KEY
from navsense.recordings.mcap import records

HEADER_FIELDS = ("channel_id", "log_time", "publish_time")
"""Fields of the header of a message record that differ between messages."""

INITIAL_CAPACITY = 1 << 16
"""Number of records up to which a segment is scanned once; a segment with more records is scanned twice."""

MIN_STRIDE_RECORDS = 16
"""If consecutive records of one size are on average at least this many, they are read with a stride."""


@kernel
def scan_offsets(data: ByteArray | bytes, out: IntArray) -> tuple[int, int]:
    """Return the number of complete records and the end of the last one; `out` receives the offset of each."""
    count, i, size = 0, 0, len(data)
    while i + 9 <= size:
        length = int(data[i + 1]) | int(data[i + 2]) << 8 | int(data[i + 3]) << 16 | int(data[i + 4]) << 24
        # The opcode 0 is invalid, and so is a length of more than four bytes.
        if data[i] == 0 or data[i + 5] | data[i + 6] | data[i + 7] | data[i + 8] or length > size - i - 9:
            break
        if count < len(out):
            out[count] = i
        count += 1
        i += 9 + length
    return count, i


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
    def opcodes(self) -> ByteArray:
        """Opcodes of the records (n,)."""
        return self.data[self.offsets[:-1]]

    def get_body(self, index: int) -> bytes:
        """Return the body of one record."""
        return self.data[self.offsets[index] + records.RECORD_HEADER.size : self.offsets[index + 1]].tobytes()

    def scan_messages(self) -> ScannedMessages:
        """Return the message records. Raises `DamagedError` for a message that is shorter than its header."""
        indices = np.flatnonzero(self.opcodes == records.MESSAGE)
        selection = to_slice(indices)
        starts, stops = self.offsets[:-1][selection], self.offsets[1:][selection]
        if (stops - starts < records.MESSAGE_HEADER.size).any():
            raise DamagedError("a message ends too early")
        headers = read_message_headers(self.data, starts, stops)
        return ScannedMessages(self.data, indices, starts + records.MESSAGE_HEADER.size, stops, *headers)


@dataclass(frozen=True, eq=False)
class ScannedMessages:
    """The messages of a segment.

    record_indices: (n,), indices among the records.
    starts, stops: (n,), offsets of their data.
    channel_id: (n,)
    log_time, publish_time: (n,), ns.
    """

    data: ByteArray
    record_indices: IntArray
    starts: IntArray
    stops: IntArray
    channel_id: AnyArray
    log_time: UInt64Array
    publish_time: UInt64Array

    def group_by_size(self, selection: IntArray | slice) -> list[SizeGroup]:
        """Return the data of the selected messages, grouped by size."""
        starts, sizes = self.starts[selection], self.stops[selection] - self.starts[selection]
        if (sizes == sizes[:1]).all():
            return [(np.arange(sizes.size), gather_rows(self.data, starts, int(sizes[0])))] if sizes.size else []
        groups = [(np.flatnonzero(sizes == size), size) for size in np.unique(sizes).tolist()]
        return [(indices, gather_rows(self.data, starts[indices], size)) for indices, size in groups]


def scan_records(data: bytes) -> RecordIndex:
    """Return the records of a segment up to the first incomplete one."""
    view = np.frombuffer(data, dtype=np.uint8)
    # Without compilation, bytes are faster than arrays.
    buffer = data if INTERPRETED else view
    offsets = np.empty(INITIAL_CAPACITY + 1, dtype=np.int64)
    count, end = scan_offsets(buffer, offsets[:-1])
    if count > INITIAL_CAPACITY:
        offsets = np.empty(count + 1, dtype=np.int64)
        scan_offsets(buffer, offsets[:-1])
    offsets[count] = end
    return RecordIndex(view, offsets[: count + 1])


def to_slice(indices: IntArray) -> IntArray | slice:
    """Return ascending indices (n,) as a slice if they are consecutive: a slice makes views, not copies."""
    if indices.size and int(indices[-1]) - int(indices[0]) == indices.size - 1:
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def group_indices(keys: IntArray, count: int) -> list[tuple[int, IntArray | slice]]:
    """Return (key, indices) for each key in `keys` (n,), all below `count`; a slice if the indices are consecutive."""
    cuts = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    edges = [0, *cuts.tolist(), keys.size]
    firsts = keys[edges[:-1]].tolist() if keys.size else []
    if len(set(firsts)) == len(firsts):
        return [(key, slice(start, stop)) for key, (start, stop) in zip(firsts, pairwise(edges), strict=False)]
    # NumPy sorts integers of 16 bits in linear time.
    order = np.argsort(keys.astype(np.uint16) if count <= 1 << 16 else keys, kind="stable")
    ends = np.searchsorted(keys, np.arange(count + 1), sorter=order).tolist()
    return [(key, order[start:stop]) for key, (start, stop) in enumerate(pairwise(ends)) if stop > start]


def read_message_headers(
    data: ByteArray, starts: IntArray, stops: IntArray
) -> tuple[AnyArray, UInt64Array, UInt64Array]:
    """Return channel id, log time and publish time (n,) of the message records between these offsets."""
    columns = [np.empty(starts.size, dtype=records.MESSAGE_FIELDS[name]) for name in HEADER_FIELDS]
    if starts.size:
        sizes = stops - starts
        cuts = np.flatnonzero((sizes[1:] != sizes[:-1]) | (starts[1:] != stops[:-1])) + 1
        if cuts.size * MIN_STRIDE_RECORDS > starts.size:
            headers = view_every_byte(data, records.MESSAGE_FIELDS)
            columns = [np.asarray(headers[name][starts]) for name in HEADER_FIELDS]
        else:
            for first, stop in pairwise([0, *cuts.tolist(), starts.size]):
                start, stride = int(starts[first]), int(sizes[first])
                rows = np.ndarray((stop - first,), records.MESSAGE_FIELDS, data, start, (stride,))
                for name, column in zip(HEADER_FIELDS, columns, strict=True):
                    column[first:stop] = rows[name]
    return columns[0], columns[1], columns[2]


def view_every_byte(data: ByteArray, dtype: np.dtype[np.void]) -> AnyArray:
    """Return a view with one value per byte: the value that starts there. Nothing is copied."""
    return np.ndarray((data.size - dtype.itemsize + 1,), dtype, data, strides=(1,))


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
"""Bytes of consecutive messages outside chunks in one segment."""

HEADER_SIZE = records.RECORD_HEADER.size + max(records.CHUNK_HEADER.size, records.MESSAGE_HEADER.size)
"""Bytes at the start of a record that hold its opcode and its times."""


@dataclass(frozen=True)
class Segment:
    """A chunk, or consecutive messages outside chunks: its offsets, and the least and greatest log time (ns).

    For a chunk these are the times in its header.
    """

    start: int
    stop: int
    first: int
    last: int
    is_chunk: bool


class SegmentMessages(NamedTuple):
    """Messages of a segment in file order, the index of the channel of each (n,), and the selected ones."""

    messages: ScannedMessages
    channel_indices: IntArray
    selection: IntArray | slice = slice(None)

    def split(self, time: int | None) -> tuple[SegmentMessages | None, SegmentMessages | None]:
        """Return the messages before `time`, the first log time (ns) of the next segment, and the others. None: none.

        `time` is None after the last segment: all messages are before it.
        """
        log_time = self.messages.log_time[self.selection]
        is_before = np.ones(log_time.size, dtype=np.bool_) if time is None else log_time < np.uint64(time)
        if is_before.all():
            return (self if log_time.size else None), None
        if not is_before.any():
            return None, self
        indices = np.arange(self.messages.log_time.size)[self.selection]
        return self._replace(selection=indices[is_before]), self._replace(selection=indices[~is_before])


def list_segments(file: BinaryIO, byte_range: tuple[int, int]) -> list[Segment]:
    """Return the segments between two offsets, in the order of the file. Only the headers of chunks are read."""
    segments: list[Segment] = []
    log_times: list[int] = []
    start = size = 0
    offset, end = byte_range
    while offset + records.RECORD_HEADER.size <= end:
        file.seek(offset)
        header = file.read(min(HEADER_SIZE, end - offset))
        opcode, length = records.RECORD_HEADER.unpack_from(header)
        next_offset = offset + records.RECORD_HEADER.size + length
        if opcode == 0 or next_offset > end:
            break
        is_unchunked = opcode in (records.MESSAGE, records.SCHEMA, records.CHANNEL)
        if is_unchunked:
            start = start if size else offset
            size += next_offset - offset
            if opcode == records.MESSAGE and next_offset - offset >= records.MESSAGE_HEADER.size:
                log_times.append(records.MESSAGE_HEADER.unpack_from(header)[4])
        if size and (size >= SEGMENT_BYTES or opcode in (records.CHUNK, records.DATA_END)):
            stop = next_offset if is_unchunked else offset
            segments.append(Segment(start, stop, min(log_times, default=0), max(log_times, default=0), is_chunk=False))
            log_times, size = [], 0
        if opcode == records.CHUNK:
            if length < records.CHUNK_HEADER.size:
                raise DamagedError("a record ends too early")
            first, last = records.CHUNK_HEADER.unpack_from(header, records.RECORD_HEADER.size)[:2]
            segments.append(Segment(offset, next_offset, first, last, is_chunk=True))
        if opcode == records.DATA_END:
            break
        offset = next_offset
    if size:
        segments.append(Segment(start, offset, min(log_times, default=0), max(log_times, default=0), is_chunk=False))
    return segments


def read_segment(file: BinaryIO, segment: Segment) -> bytes:
    """Return the messages of a segment and their definitions, as records."""
    raw_records = records.read_records(file, segment.start, segment.stop)
    if segment.is_chunk:
        return records.decompress(records.parse_chunk(next(raw_records).body))
    opcodes = (records.MESSAGE, records.SCHEMA, records.CHANNEL)
    return b"".join(records.encode_record(raw.opcode, raw.body) for raw in raw_records if raw.opcode in opcodes)


def read_windows(
    segments: Sequence[Segment], load: Callable[[Segment], tuple[ScannedMessages, IntArray]], where: Where
) -> Iterator[list[SegmentMessages]]:
    """Yield the messages window by window in order of log time; the parts of a window are not ordered.

    Raises `RecordingError` if segments overlap by more than `MAX_HELD_BYTES`.
    """
    if all(following.first >= segment.last for segment, following in pairwise(segments)):
        for segment in segments:
            yield [SegmentMessages(*load(segment))]
        return
    by_time = sorted(segments, key=lambda segment: segment.first)
    held_parts: list[tuple[int, SegmentMessages]] = []
    for segment, following in zip(by_time, [*by_time[1:], None], strict=True):
        held_parts.append((segment.start, SegmentMessages(*load(segment))))
        held_parts.sort(key=lambda item: item[0])
        if sum(part.messages.data.size for _, part in held_parts) > MAX_HELD_BYTES:
            what = f"its messages are in no order of time over more than {MAX_HELD_BYTES >> 20} MiB"
            raise RecordingError(what, where=where, remedy="put them in order with: mcap sort")
        ready, later_parts = [], []
        for start, part in held_parts:
            ready_part, later_part = part.split(None if following is None else following.first)
            ready += [ready_part] if ready_part is not None else []
            later_parts += [(start, later_part)] if later_part is not None else []
        held_parts = later_parts
        if ready:
            yield ready


MIN_BATCH_BYTES = 1_000_000
"""Bytes of messages from which on `read_batches` yields them; smaller windows are joined."""


def read_profile(file: BinaryIO, path: Path, end: int) -> tuple[str, int]:
    """Return the profile of an MCAP file and the offset after its header. Raises `RecordingError` for another file."""
    where = Where(str(path))
    file.seek(0)
    magic = file.read(len(records.MAGIC))
    if magic != records.MAGIC:
        raise RecordingError("is not an MCAP file", where=where, remedy=find_unrecoverable_remedy(path, magic))
    header = next(records.read_records(file, len(records.MAGIC), end), None)
    if header is None or header.opcode != records.HEADER:
        raise RecordingError("the file ends inside its header; it contains no messages", where=where)
    try:
        name = records.FieldReader(header.body).read_string()
    except DamagedError as error:
        raise RecordingError(f"the file's header is damaged: {error}", where=where) from error
    return name, header.offset + records.RECORD_HEADER.size + len(header.body)


def make_truncated_error(path: Path) -> RecordingError:
    """Return the error of an MCAP file without an end: a live process writes to it, or it is truncated."""
    if atomic.is_being_written(path):
        return atomic.make_unfinished_error(path)
    return RecordingError("is a truncated recording", where=Where(str(path)), remedy=find_damaged_file_remedy(path))


@dataclass(eq=False)
class McapReader:
    """Reader of one MCAP file.

    A channel id can be defined again in another chunk. `_defined_channels` has all channels in order,
    `_channel_index_of_id` the index (65536,) of the latest one of each id, -1 without one.

    summary_definitions: the schemas and channels in a summary with a CRC: opcode and first two bytes (the id) -> body.
    `_indexed_chunks`: the chunks in the index of such a summary. Only a summary with a correct CRC proves that the data
    section is wrong.
    `_byte_range`: the offsets from the end of the header to the footer.
    """

    path: Path
    file: BinaryIO
    channels: list[Channel] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    profile: str = ""
    summary_definitions: dict[tuple[int, bytes], bytes] = field(default_factory=dict)
    _schemas: dict[int, tuple[str, str, bytes]] = field(default_factory=dict)
    _channels: dict[int, Channel] = field(default_factory=dict)
    _defined_channels: list[Channel] = field(default_factory=list)
    _channel_index_of_id: IntArray = field(default_factory=lambda: np.full(1 << 16, -1, dtype=np.int64))
    _byte_range: tuple[int, int] = (0, 0)
    _statistics: bytes = b""
    _has_summary_crc: bool = False
    _indexed_chunks: set[Segment] = field(default_factory=set)
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
            raise make_truncated_error(self.path)
        self._byte_range = (start, size - tail)
        footer = records.RawRecord(records.FOOTER, self._byte_range[1], ending[records.RECORD_HEADER.size :])
        self._has_summary_crc = records.has_summary_crc(self.file, footer)
        summary_start = records.FOOTER_FIELDS.unpack_from(footer.body)[0]
        if not (summary_start and self._read_summary(summary_start)):
            self._schemas, self._channels, self._defined_channels, self.metadata = {}, {}, [], {}
            self._statistics = b""
            self._read_definitions()
        self.channels = list(dict.fromkeys(self._channels.values()))
        self.is_navsense = bool(self.metadata)

    def count_messages(self, *, from_data: bool = False) -> MessageCounts:
        """Return the counts in the summary; without a summary, or with `from_data`, all messages are read."""
        counts = dict.fromkeys(((channel.topic, channel.type) for channel in self._channels.values()), 0)
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
        for segment in self.list_segments():
            messages, channel_indices = self._load_segment(segment)
            for index, count in zip(*np.unique(channel_indices, return_counts=True), strict=True):
                key = self._defined_channels[index].topic, self._defined_channels[index].type
                counts[key] = counts.get(key, 0) + int(count)
            if channel_indices.size:
                times += [int(messages.log_time.min()), int(messages.log_time.max())]
        return MessageCounts(counts, min(times, default=None), max(times, default=None))

    def _read_summary(self, summary_start: int) -> bool:
        """Read the summary. Return True if it has all channels of the messages in the file, and their schemas."""
        channel_ids: set[int] = set()
        summary_records = list(self._read_summary_records(summary_start))
        for raw in sorted(summary_records, key=lambda raw: raw.opcode != records.SCHEMA):
            self._add_definition(raw.opcode, raw.body)
            if self._has_summary_crc and raw.opcode in (records.SCHEMA, records.CHANNEL):
                self.summary_definitions[raw.opcode, raw.body[:2]] = raw.body
            elif self._has_summary_crc and raw.opcode == records.CHUNK_INDEX:
                first, last, start, size = records.CHUNK_INDEX_FIELDS.unpack_from(raw.body)
                self._indexed_chunks.add(Segment(start, start + size, first, last, is_chunk=True))
            channel_ids |= records.list_channels(raw)
            self._statistics = raw.body if raw.opcode == records.STATISTICS else self._statistics
        channel_bodies = [raw.body for raw in summary_records if raw.opcode == records.CHANNEL]
        schemas = {int.from_bytes(body[2:4], "little") for body in channel_bodies} - {0}
        return bool(self._channels) and channel_ids <= self._channels.keys() and schemas <= self._schemas.keys()

    def _read_summary_records(self, summary_start: int) -> Iterator[records.RawRecord]:
        """Yield the records of the summary, and the metadata records in its index."""
        for raw in records.read_records(self.file, summary_start, self._byte_range[1]):
            if raw.opcode == records.METADATA_INDEX:
                offset, length = struct.unpack_from("<QQ", raw.body)
                if offset + length > self._byte_range[1]:
                    raise DamagedError("its index points outside the file")
                name = records.FieldReader(raw.body[16:]).read_string()
                metadata_records = list(records.read_records(self.file, offset, offset + length))
                if self._has_summary_crc and [
                    (entry.opcode, len(entry.body), records.FieldReader(entry.body).read_string())
                    for entry in metadata_records
                ] != [(records.METADATA, length - records.RECORD_HEADER.size, name)]:
                    raise DamagedError("its metadata are not those of its index")
                yield from metadata_records
            else:
                yield raw

    def _read_definitions(self) -> None:
        """Read the schemas, channels and metadata before the summary, also those in chunks."""
        end = self._byte_range[0]
        for raw in records.read_records(self.file, *self._byte_range):
            end = raw.offset + records.RECORD_HEADER.size + len(raw.body)
            if raw.opcode == records.CHUNK:
                scanned = scan_records(records.decompress(records.parse_chunk(raw.body)))
                if not scanned.is_complete:
                    raise DamagedError("a chunk ends inside a record")
                for index in np.flatnonzero(scanned.opcodes != records.MESSAGE).tolist():
                    self._add_definition(int(scanned.opcodes[index]), scanned.get_body(index))
            else:
                self._add_definition(raw.opcode, raw.body)
            if raw.opcode == records.DATA_END:
                records.check_data_section(self.file, raw)
                return
        if end != self._byte_range[1]:
            raise DamagedError("a record ends outside the file")

    def _add_definition(self, opcode: int, body: bytes) -> None:
        """Add a schema, a channel, or metadata of navsense."""
        reader = records.FieldReader(body)
        if opcode == records.SCHEMA:
            schema_id, name, encoding = reader.read_int(2), reader.read_string(), reader.read_string()
            self._schemas[schema_id] = (name, encoding, bytes(reader.read(reader.read_int(4))))
        elif opcode == records.CHANNEL:
            channel_id, schema_id = reader.read_int(2), reader.read_int(2)
            topic, encoding, metadata = reader.read_string(), reader.read_string(), reader.read_map()
            name, schema_encoding, definition = self._schemas.get(schema_id, ("", "", b""))
            profiles = metadata.get(QOS_KEY, "")
            latched = any(value in profiles for value in LATCHED_DURABILITIES) or metadata.get("latching") == "1"
            package, _, short = name.rpartition("/")
            if encoding == ROS1 and package and "/" not in package:
                name = f"{package}/msg/{short}"  # the spelling of ROS 2
            channel = Channel(topic, name, encoding, definition, schema_encoding, latched, profiles)
            if self._channels.get(channel_id) != channel:
                self._channels[channel_id] = channel
                self._channel_index_of_id[channel_id] = len(self._defined_channels)
                self._defined_channels.append(channel)
        elif opcode == records.METADATA:
            name = reader.read_string()
            if name == records.RUN_METADATA:
                self.metadata |= records.parse_metadata(body)[1]
            elif name == records.WORLD_METADATA:
                self.metadata[WORLD_JSON_KEY] = records.parse_metadata(body)[1].get(WORLD_JSON_KEY, "")

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in order of log time."""
        channels = self._defined_channels
        for parts in self._read_windows():
            data = [part.messages.data.tobytes() for part in parts]
            rows = []
            for number, (messages, channel_indices, selection) in enumerate(parts):
                columns = (messages.log_time, messages.publish_time, messages.starts, messages.stops)
                part_numbers = np.full(channel_indices.size, number)
                rows.append([column[selection] for column in (part_numbers, channel_indices, *columns)])
            joined = [np.concatenate(column) for column in zip(*rows, strict=True)]
            order = np.argsort(joined[2], kind="stable")
            for number, channel_index, log_time, publish_time, start, stop in zip(
                *(column[order].tolist() for column in joined), strict=True
            ):
                yield RawMessage(channels[channel_index], log_time, publish_time, data[number][start:stop])

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics in batches; those of one topic are in order of log time.

        A batch has whole windows and at least `MIN_BATCH_BYTES`, except the last one.
        """
        waiting: dict[ChannelKey, list[MessageBatch]] = {}
        size = 0
        for parts in self._read_windows():
            window: dict[ChannelKey, list[MessageBatch]] = {}
            for part in parts:
                size += int((part.messages.stops[part.selection] - part.messages.starts[part.selection]).sum())
                for batch in self._split_by_channel(part, topics):
                    window.setdefault(batch.channel.key, []).append(batch)
            for key, batches in window.items():
                waiting.setdefault(key, []).extend(sort_batches(batches))
            if size >= MIN_BATCH_BYTES:
                yield [batch for batches in waiting.values() for batch in join_small_batches(batches)]
                waiting, size = {}, 0
        yield [batch for batches in waiting.values() for batch in join_small_batches(batches)]

    def _split_by_channel(self, part: SegmentMessages, topics: Collection[str]) -> Iterator[MessageBatch]:
        """Yield the messages of a part by channel key."""
        messages, channel_indices, selection = part
        log_time, publish_time = messages.log_time.view(np.int64), messages.publish_time.view(np.int64)
        if (log_time < 0).any() or (publish_time < 0).any():
            raise DamagedError("a message's time is more than 292 years after 1970")
        indices = np.arange(channel_indices.size)[selection]
        keys, key_indices = self._index_channel_keys()
        for index, members in group_indices(key_indices[channel_indices[selection]], len(keys)):
            if keys[index].topic in topics:
                rows = to_slice(indices[members])
                channel = self._defined_channels[channel_indices[indices[members][0]]]
                yield MessageBatch(channel, log_time[rows], publish_time[rows], messages.group_by_size(rows))

    def _index_channel_keys(self) -> tuple[list[ChannelKey], IntArray]:
        """Return the channel keys, and the index of the key of each channel."""
        if len(self._key_cache[1]) != len(self._defined_channels):
            keys = list(dict.fromkeys(channel.key for channel in self._defined_channels))
            index_of_key = {key: index for index, key in enumerate(keys)}
            indices = np.array([index_of_key[channel.key] for channel in self._defined_channels], dtype=np.int64)
            self._key_cache = keys, indices
        return self._key_cache

    def _read_windows(self) -> Iterator[list[SegmentMessages]]:
        """Yield the messages in log time order by windows: no later segment precedes the messages of a window."""
        return read_windows(self.list_segments(), self._load_segment, self.where)

    def list_segments(self) -> list[Segment]:
        """Return the segments. Raises `DamagedError` if the chunks are not those of the index."""
        segments = list_segments(self.file, self._byte_range)
        chunks = {segment for segment in segments if segment.is_chunk}
        if self._indexed_chunks and self._indexed_chunks != chunks:
            raise DamagedError("its chunks are not those of its index")
        return segments

    def _load_segment(self, segment: Segment) -> tuple[ScannedMessages, IntArray]:
        """Return the messages of a segment in the order of the file, with the index of the channel of each.

        It also adds the definitions in the segment, which later segments can need.
        """
        scanned = scan_records(read_segment(self.file, segment))
        messages = scanned.scan_messages()
        channel_indices, first = np.empty(messages.log_time.size, dtype=np.int64), 0
        for index in (*np.flatnonzero(scanned.opcodes != records.MESSAGE).tolist(), None):
            stop = messages.log_time.size if index is None else int(np.searchsorted(messages.record_indices, index))
            channel_indices[first:stop] = self._channel_index_of_id[messages.channel_id[first:stop]]
            if (channel_indices[first:stop] < 0).any():
                raise DamagedError("a message of an unknown channel")
            if index is not None:
                opcode, body = int(scanned.opcodes[index]), scanned.get_body(index)
                if not segment.is_chunk and self.summary_definitions.get((opcode, body[:2]), body) != body:
                    raise DamagedError("a schema or a channel is not that of its summary")
                self._add_definition(opcode, body)
            first = stop
        if not scanned.is_complete:
            raise DamagedError("a chunk ends inside a record")
        return messages, channel_indices


@contextmanager
def open_mcap(path: Path) -> Iterator[McapReader]:
    """Yield a reader of an MCAP file. Raises `RecordingError` if the file cannot be read."""
    with open_for_reading(path) as file:
        yield McapReader(path, file)
