"""Writers of MCAP files: recordings of runs in the ROS 2 profile, compressed block by block, and single messages.

log_time is the true time of arrival, publish_time the true time of the sample, header.stamp the time of the sensor's
clock. A chunk has the messages of all channels in one span of time, at most 12 MB before compression.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
import zstandard

from navsense.core import atomic
from navsense.core.errors import RecordingError, Where
from navsense.core.kernels import kernel
from navsense.core.series import TimeSlice
from navsense.core.typing import AnyArray, ByteArray, WordArray
from navsense.fault_file import list_faults
from navsense.messages.cdr import FieldOffset, MessageLayout, get_field, make_row_dtype
from navsense.recordings.base import WriterBase, add_path_to_errors, check_target, is_recovered, os_error, write_all
from navsense.recordings.channels import (
    CDR,
    QOS_KEY,
    ROS1,
    Channel,
    MessageReader,
    RawMessage,
    complete_metadata,
)
from navsense.recordings.header import (
    ROS_KEY,
    WORLD_KEY,
    RecordingHeader,
    check_header,
    format_runs,
    get_version,
    requested_duration,
)
from navsense.recordings.mcap import records
from navsense.recordings.mcap.lz4_rows import (
    BLOCK_OVERHEAD,
    FRAME_END,
    FRAME_HEADER,
    MAX_BLOCK_SIZE,
    AccessRecorder,
    RowCompressor,
    build_compressor,
    max_compressed_size,
    write_uncompressed,
)
from navsense.recordings.mcap.records import WORLD_METADATA
from navsense.recordings.message_builder import MessageBlock, MessageBuilder, OutputChannel
from navsense.recordings.world_json import world_to_json

CHUNK_BYTES = 12_000_000
"""Largest uncompressed size of a chunk, unless the messages of one instant are larger."""

WRITE_BYTES = 500_000
"""Bytes of compressed messages that are written to the file at once."""

LATCHED_QOS_PROFILE = (
    "- history: 1\n  depth: 1\n  reliability: 1\n  durability: 1\n"
    "  deadline:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  lifespan:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  liveliness: 1\n  liveliness_lease_duration:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  avoid_ros_namespace_conventions: false"
)
"""QoS profile of `/tf_static` as rosbag2 writes it: reliable and transient local."""

RECORD_FIELDS: Mapping[str, FieldOffset] = {
    "record.sequence": FieldOffset("<u4", 0, 11),
    "record.log_time": FieldOffset("<u8", 0, 15),
    "record.publish_time": FieldOffset("<u8", 0, 23),
}
"""Fields of the header of a message record that differ between messages."""

ZSTD_LEVEL = -1
"""Level of zstd. On sensor data it is 1.4 times as fast as level 1; files are 3 % larger."""

INDEX_ENTRY_SIZE = 16
"""Bytes of a log time and an offset in a MessageIndex record."""

Buffer: TypeAlias = bytes | memoryview


@dataclass(frozen=True, eq=False)
class MessageIndex:
    """Message index of one channel in one chunk, in order: log times (ns) and offsets in the uncompressed chunk."""

    channel: int
    log_time: WordArray
    offset: WordArray


def build_message_indexes(messages: Mapping[int, tuple[Sequence[int], Sequence[int]]]) -> list[MessageIndex]:
    """Return the message indexes of a chunk; `messages` are log times (ns) and offsets by channel."""
    return [
        build_message_index(channel, np.array(logs, dtype=np.uint64), np.array(offsets, dtype=np.uint64))
        for channel, (logs, offsets) in messages.items()
    ]


def build_message_index(channel: int, log_time: WordArray, offset: WordArray) -> MessageIndex:
    """Return the message index of one channel, sorted by log time: a faulty clock may disorder messages."""
    if not (log_time[1:] < log_time[:-1]).any():
        return MessageIndex(channel, log_time, offset)
    order = np.argsort(log_time, kind="stable")
    return MessageIndex(channel, log_time[order], offset[order])


class McapFileWriter:
    """Writes one MCAP file. After a failure it is truncated to its last complete chunk, so that it can be recovered."""

    def __init__(self, path: Path, profile: str = "ros2", final_path: Path | None = None) -> None:
        """Open `path` for writing and write its header. Raises `RecordingError` if that fails.

        `final_path` is the name that the caller gives the complete file. With it `path` must be new, errors name
        `final_path`, and a file is not kept after an error.
        """
        check_target(path)
        self.path = path
        self._final = final_path
        self.schemas: dict[int, bytes] = {}
        self.channels: dict[int, bytes] = {}
        self.message_counts: dict[int, int] = {}
        self._compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
        self._chunk_indexes: list[bytes] = []
        self._metadata_indexes: list[bytes] = []
        self._attachment_indexes: list[bytes] = []
        self._start: int | None = None
        self._end = 0
        self._size = 0
        self._failed = False
        keep = None if is_recovered(path) else records.is_truncated
        try:
            # Unbuffered: written bytes survive a crash of this process.
            self._file = atomic.open_in_place(path, keep) if final_path is None else path.open("xb", buffering=0)
        except OSError as error:
            raise os_error(final_path or path, error) from error
        try:
            head = records.encode_record(records.HEADER, records.encode_text(profile), records.encode_text("navsense"))
            self._append(records.MAGIC, head)
        except BaseException:
            if final_path is None:
                self.release()
            else:
                self.discard()
            raise

    @property
    def size(self) -> int:
        """Return the bytes written."""
        return self._size

    def _append(self, *parts: Buffer) -> None:
        """Append all parts or none."""
        with self._all_or_nothing():
            size = self._write_at(self._size, parts)
        self._size += size

    def _write_at(self, offset: int, parts: Iterable[Buffer]) -> int:
        """Write parts at an offset; return their size."""
        self._file.seek(offset)
        size = 0
        for part in parts:
            size += len(part)
            write_all(self._file, part)
        return size

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undo the writes inside this context if one fails."""
        if self._failed:
            raise RecordingError("the recording has already failed", where=Where(str(self._final or self.path)))
        try:
            yield
        except RecordingError:
            # The messages could not be encoded; the file is unchanged.
            self._truncate()
            raise
        except BaseException as error:
            self._failed = True
            self._truncate()
            if isinstance(error, OSError):
                raise self._write_error(error) from error
            raise

    def _write_error(self, error: OSError) -> RecordingError:
        """Return the error of a failed write, with its remedy."""
        if self._final is not None:
            return os_error(self._final, error)
        failure = os_error(self.path, error)
        if not self._chunk_indexes:
            return failure
        failure.rescue = f"recover the written part with: navsense recover {self.path}"
        return failure

    def _truncate(self) -> None:
        """Truncate the file to the last complete chunk."""
        with contextlib.suppress(OSError):
            self._file.truncate(self._size)
            self._file.seek(0, os.SEEK_END)

    def add_metadata(self, record: bytes, name: str) -> None:
        """Write one Metadata record."""
        at = self._size
        self._append(record)
        self._metadata_indexes.append(
            records.encode_record(
                records.METADATA_INDEX, struct.pack("<QQ", at, len(record)), records.encode_text(name)
            )
        )

    def add_attachment(self, body: bytes) -> None:
        """Write one Attachment record from its body as another file had it."""
        reader = records.FieldReader(body)
        times = bytes(reader.read(16))
        name, media = reader.read_string(), reader.read_string()
        size = reader.read_int(8)
        at = self._size
        self._append(records.encode_record(records.ATTACHMENT, body))
        self._attachment_indexes.append(
            records.encode_record(
                records.ATTACHMENT_INDEX,
                struct.pack("<QQ", at, self._size - at),
                times,
                struct.pack("<Q", size),
                records.encode_text(name),
                records.encode_text(media),
            )
        )

    def write_chunks(self, chunks: Iterable[tuple[Buffer, Sequence[MessageIndex]]]) -> None:
        """Write chunks: the records of each, and their message indexes. All are written when this returns."""
        for data, entries in chunks:
            self.write_compressed_chunk([self._compressor.compress(data)], "zstd", len(data), zlib.crc32(data), entries)

    def write_compressed_chunk(
        self, parts: Iterable[Buffer], compression: str, size: int, crc: int, message_indexes: Sequence[MessageIndex]
    ) -> None:
        """Write one compressed chunk; `size` and `crc` are those of the uncompressed bytes.

        Parts are written one by one. If one of them fails, the chunk is removed.
        """
        filled = [part for part in message_indexes if part.log_time.size]
        start = min((int(part.log_time[0]) for part in filled), default=0)
        end = max((int(part.log_time[-1]) for part in filled), default=0)
        name, at = records.encode_text(compression), self._size
        before = records.CHUNK_HEAD.size + len(name) + 8
        indexes, starts = _encode_message_indexes(filled)
        with self._all_or_nothing():
            # The length is known after the data. Until then the header is zeros, where a reader of the file stops.
            length = self._write_at(at + records.PREFIX.size + before, parts)
            chunk_size = records.PREFIX.size + before + length
            self._write_at(at + chunk_size, [indexes])
            times = records.CHUNK_HEAD.pack(start, end, size, crc)
            prefix = records.PREFIX.pack(records.CHUNK, before + length)
            # In one write: half a header would be a chunk of another size.
            self._write_at(at, [prefix + times + name + struct.pack("<Q", length)])
            self._file.seek(0, os.SEEK_END)
        self._size = at + chunk_size + len(indexes)
        places = [struct.pack("<HQ", part.channel, at + chunk_size + start) for part, start in starts]
        for part in filled:
            self.message_counts[part.channel] = self.message_counts.get(part.channel, 0) + part.log_time.size
        if filled:
            self._start = start if self._start is None else min(start, self._start)
            self._end = max(end, self._end)
        self._chunk_indexes.append(
            records.encode_record(
                records.CHUNK_INDEX,
                struct.pack("<QQQQ", start, end, at, chunk_size),
                records.encode_bytes(b"".join(places)),
                struct.pack("<Q", len(indexes)),
                name,
                struct.pack("<QQ", length, size),
            )
        )

    def finish(self) -> None:
        """Write the summary and close the file."""
        try:
            # Zero: no checksum of the data section, because each chunk has one.
            self._append(records.encode_record(records.DATA_END, struct.pack("<I", 0)))
            self._append(self._encode_summary(), records.MAGIC)
        finally:
            self.release()

    def release(self) -> None:
        """Close the file without a summary; never raises."""
        self._failed = True
        with contextlib.suppress(OSError):
            self._file.close()

    def discard(self) -> None:
        """Close and remove the file; never raises."""
        self.release()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def _encode_summary(self) -> bytes:
        """Return the summary section and the footer."""
        groups: Iterable[tuple[int, Iterable[bytes]]] = (
            (records.SCHEMA, self.schemas.values()),
            (records.CHANNEL, self.channels.values()),
            (records.STATISTICS, (self._encode_statistics(),)),
            (records.CHUNK_INDEX, self._chunk_indexes),
            (records.ATTACHMENT_INDEX, self._attachment_indexes),
            (records.METADATA_INDEX, self._metadata_indexes),
        )
        summary, offsets = bytearray(), bytearray()
        for kind, members in groups:
            start = len(summary)
            for member in members:
                summary += member
            if len(summary) > start:
                place = struct.pack("<BQQ", kind, self._size + start, len(summary) - start)
                offsets += records.encode_record(records.SUMMARY_OFFSET, place)
        footer = records.PREFIX.pack(records.FOOTER, records.FOOTER_BODY.size)
        footer += struct.pack("<QQ", self._size, self._size + len(summary))
        summary_section = bytes(summary + offsets) + footer
        return summary_section + struct.pack("<I", zlib.crc32(summary_section))

    def _encode_statistics(self) -> bytes:
        """Return the Statistics record."""
        counts = b"".join(struct.pack("<HQ", number, count) for number, count in self.message_counts.items())
        return records.encode_record(
            records.STATISTICS,
            struct.pack("<QH", sum(self.message_counts.values()), len(self.schemas)),
            struct.pack("<II", len(self.channels), len(self._attachment_indexes)),
            struct.pack("<II", len(self._metadata_indexes), len(self._chunk_indexes)),
            struct.pack("<QQ", self._start or 0, self._end),
            records.encode_bytes(counts),
        )


def _encode_message_indexes(parts: Sequence[MessageIndex]) -> tuple[memoryview, list[tuple[MessageIndex, int]]]:
    """Return the MessageIndex records of one chunk, one per channel, and the offset of each."""
    head = records.MESSAGE_INDEX_HEAD
    out = np.empty(sum(head.size + INDEX_ENTRY_SIZE * part.log_time.size for part in parts), dtype=np.uint8)
    starts, at = [], 0
    for part in parts:
        size = INDEX_ENTRY_SIZE * part.log_time.size
        starts.append((part, at))
        head.pack_into(out.data, at, records.MESSAGE_INDEX, head.size - records.PREFIX.size + size, part.channel, size)
        table = np.ndarray((part.log_time.size, 2), "<u8", out, at + head.size)
        table[:, 0], table[:, 1] = part.log_time, part.offset
        at += head.size + size
    return out.data, starts


class McapWriterBase(WriterBase):
    """Base of writers of one MCAP file: how they end."""

    _file: McapFileWriter

    def close(self) -> None:
        """Write the summary; the file is then complete."""
        self._file.finish()

    def salvage(self) -> None:
        """Write the summary if it can be written."""
        self.abort()

    def abort(self) -> None:
        """Write the summary if possible. The file is then readable, or can be recovered."""
        try:
            self._file.finish()
        except RecordingError:
            self._file.release()


@dataclass(frozen=True)
class MessageRecord:
    """One message record: channel id, sequence number, log time and publish time (ns), bytes."""

    channel: int
    sequence: int
    log_time: int
    publish_time: int
    data: bytes


def chunk_messages(messages: Iterable[MessageRecord]) -> Iterator[tuple[bytes, list[MessageIndex]]]:
    """Yield chunks of the messages, each of at most `CHUNK_BYTES` and one message."""
    data, places = bytearray(), dict[int, tuple[list[int], list[int]]]()
    for one in messages:
        logs, offsets = places.setdefault(one.channel, ([], []))
        logs.append(one.log_time)
        offsets.append(len(data))
        head = (
            records.MESSAGE,
            22 + len(one.data),
            one.channel,
            one.sequence & 0xFFFFFFFF,
            one.log_time,
            one.publish_time,
        )
        data += records.MESSAGE_HEAD.pack(*head) + one.data
        if len(data) >= CHUNK_BYTES:
            yield bytes(data), build_message_indexes(places)
            data, places = bytearray(), {}
    if data:
        yield bytes(data), build_message_indexes(places)


@dataclass(eq=False)
class ChannelWriter:
    """One channel: the layout of its messages, a record as their template, and the compressor of such records."""

    number: int
    message_layout: MessageLayout
    template: bytes
    fields: Mapping[str, FieldOffset]
    sequence: int = 0
    compressor: RowCompressor | None = None

    def fill(self, rows: AnyArray, block: MessageBlock) -> None:
        """Write the values of the records of a block into rows."""
        places = tuple(
            get_field(rows, f"record.{name}", block.log_time) for name in ("sequence", "log_time", "publish_time")
        )
        _fill_record_headers(self.sequence, block.log_time, block.publish_time, *places)
        self.message_layout.fill(rows, block.stamp, block.arrays)

    def _make_compressor(self, block: MessageBlock) -> RowCompressor:
        """Return the compressor of such blocks. Encoding the first row shows which fields are written."""
        row = np.frombuffer(bytearray(self.template), dtype=make_row_dtype(self.fields, len(self.template)))
        noted = AccessRecorder(row)
        self.fill(cast("AnyArray", noted), block.slice_rows(0, 1))
        return build_compressor(self.template, self.fields, noted.names)

    def write_records(self, out: ByteArray, offset: int, block: MessageBlock) -> int:
        """Write the records of a block at an offset; return their end."""
        count = block.publish_time.size
        self.compressor = self.compressor or self._make_compressor(block)
        try:
            end = self.compressor.compress_into(out, offset, count, lambda rows: self.fill(rows, block))
        except ValueError:
            # The encoder writes more fields than for its first block. Another error is raised again.
            self.compressor = self._make_compressor(block)
            end = self.compressor.compress_into(out, offset, count, lambda rows: self.fill(rows, block))
        self.sequence += count
        return end


@kernel
def _fill_record_headers(
    first: int,
    arrival_time: WordArray,
    validity_time: WordArray,
    sequence: AnyArray,
    log_time: AnyArray,
    publish_time: AnyArray,
) -> None:
    """Write the sequence numbers of records from `first` on, and their times (n,) ns."""
    for i in range(arrival_time.size):
        sequence[i] = (first + i) & 0xFFFFFFFF
        log_time[i] = arrival_time[i]
        publish_time[i] = validity_time[i]


def run_metadata(recording: RecordingHeader) -> dict[str, str]:
    """Return the metadata of a recording."""
    values = {
        "world": recording.world.name,
        "seed": str(recording.seed),
        "epoch": str(recording.epoch),
        "runs": format_runs(recording),
        "version": get_version(),
        ROS_KEY: recording.ros,
    }
    duration = requested_duration(recording)
    if duration is not None:
        values["duration_asked"] = repr(duration)
    faults = list_faults(recording.world)
    if faults:
        values["faults"] = json.dumps(faults)
    return values


def encode_run_metadata(recording: RecordingHeader) -> bytes:
    """Return the Metadata record of a recording."""
    return records.encode_record(
        records.METADATA, records.encode_text("navsense"), records.encode_map(run_metadata(recording))
    )


def format_world(recording: RecordingHeader) -> str:
    """Return the text of the world's JSON."""
    return json.dumps(world_to_json(recording.world, recording.allocate_topics()))


def encode_world_metadata(recording: RecordingHeader) -> bytes:
    """Return the Metadata record of the world: topics, mountings and specifications of the sensors."""
    return records.encode_record(
        records.METADATA, records.encode_text(WORLD_METADATA), records.encode_map({WORLD_KEY: format_world(recording)})
    )


class McapWriter(McapWriterBase):
    """Writes time slices to one MCAP file."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Open the file and write its header and `/tf_static`. Raises `RecordingError` if that fails."""
        check_header(path, recording)
        self._builder = MessageBuilder(recording)
        self._file = McapFileWriter(path)
        self._buffer: ByteArray = np.empty(0, dtype=np.uint8)
        self._pending: list[bytes] = []
        self._schemas: dict[tuple[str, str], int] = {}
        self._writers: dict[OutputChannel, ChannelWriter] = {}
        try:
            self._file.add_metadata(encode_run_metadata(recording), "navsense")
            self._file.add_metadata(encode_world_metadata(recording), WORLD_METADATA)
            self._write_static()
        except BaseException:
            self._file.release()
            raise

    def _write_static(self) -> None:
        """Make the channels of the sensors and write the static transforms."""
        for source in self._builder.list_reading_channels():
            self._get_writer(source)
        fixed = self._builder.build_static_transforms()
        for block in fixed:
            self._get_writer(block.channel)
        if self._pending:
            self._write_chunk(fixed)

    def _get_writer(self, channel: OutputChannel) -> ChannelWriter:
        """Return the writer of a channel, made at its first use."""
        if channel in self._writers:
            return self._writers[channel]
        message = channel.message_layout
        kind = (message.type, message.schema)
        if kind not in self._schemas:
            number = self._schemas[kind] = len(self._schemas) + 1
            self._file.schemas[number] = records.encode_schema(number, message.type, message.schema.encode())
            self._pending.append(self._file.schemas[number])
        number = len(self._writers)
        if number > 65535:
            raise RecordingError("too many topics for one MCAP file", number, allowed="at most 65536")
        qos = LATCHED_QOS_PROFILE if channel.latched else ""
        record = records.encode_channel(number, self._schemas[kind], channel.topic, {"offered_qos_profiles": qos})
        self._file.channels[number] = record
        self._file.message_counts[number] = 0
        self._pending.append(record)
        data = message.layout.template
        head = records.MESSAGE_HEAD.pack(records.MESSAGE, 22 + len(data), number, 0, 0, 0)
        places = {**message.layout.shift_fields(len(head)), **RECORD_FIELDS}
        writer = ChannelWriter(number, message, head + data, places)
        self._writers[channel] = writer
        return writer

    def write(self, time_slice: TimeSlice) -> None:
        """Write the messages of a time slice, as chunks in order of time."""
        with add_path_to_errors(self._file.path):
            blocks = self._builder.build_blocks(time_slice)
            for block in blocks:
                self._get_writer(block.channel)
            for span in self._split_by_size([block for block in blocks if block.publish_time.size]):
                self._write_chunk(span)

    def _block_size(self, block: MessageBlock) -> int:
        """Return the size (bytes) of the records of a block."""
        return int(block.publish_time.size * len(self._writers[block.channel].template))

    def _split_by_size(self, blocks: list[MessageBlock]) -> Iterator[list[MessageBlock]]:
        """Yield the blocks in spans of time, each at most as large as a chunk."""
        if not blocks:
            return
        largest = max(blocks, key=self._block_size)
        cut = largest.log_time[largest.log_time.size // 2]
        fits = sum(map(self._block_size, blocks)) <= CHUNK_BYTES and self._block_size(largest) <= MAX_BLOCK_SIZE
        if fits or cut == largest.log_time[0]:
            yield blocks
            return
        places = [int(np.searchsorted(block.log_time, cut)) for block in blocks]
        halves = [
            (b.slice_rows(0, at), b.slice_rows(at, b.publish_time.size)) for b, at in zip(blocks, places, strict=True)
        ]
        yield from self._split_by_size([early for early, _ in halves if early.publish_time.size])
        yield from self._split_by_size([late for _, late in halves if late.publish_time.size])

    def _write_chunk(self, blocks: list[MessageBlock]) -> None:
        """Write one chunk: new definitions, then the messages of each channel."""
        definitions = np.frombuffer(b"".join(self._pending), dtype=np.uint8)
        entries, size = list[MessageIndex](), definitions.size
        for block in blocks:
            channel, count = self._writers[block.channel], block.publish_time.size
            width = len(channel.template)
            offsets = np.arange(size, size + width * count, width, dtype=np.uint64)
            entries.append(build_message_index(channel.number, block.log_time, offsets))
            size += width * count
        # No CRC of the uncompressed bytes: each LZ4 block has a checksum.
        self._file.write_compressed_chunk(self._compress_chunk(definitions, blocks), "lz4", size, 0, entries)
        self._pending.clear()

    def _compress_chunk(self, definitions: ByteArray, blocks: list[MessageBlock]) -> Iterator[memoryview]:
        """Yield one LZ4 frame in parts. All parts use one small buffer, which stays in the cache of the processor."""
        channels = [self._writers[block.channel] for block in blocks]
        counts = [block.publish_time.size for block in blocks]
        room = max(map(max_compressed_size, (len(channel.template) for channel in channels), counts), default=0)
        room += (
            len(FRAME_HEADER)
            + definitions.size
            + BLOCK_OVERHEAD * (2 + definitions.size // MAX_BLOCK_SIZE)
            + WRITE_BYTES
        )
        if self._buffer.size < room:
            self._buffer = np.empty(room, dtype=np.uint8)
        out = self._buffer
        out[: len(FRAME_HEADER)] = np.frombuffer(FRAME_HEADER, dtype=np.uint8)
        at = write_uncompressed(out, len(FRAME_HEADER), definitions)
        for channel, block in zip(channels, blocks, strict=True):
            if at > WRITE_BYTES:
                yield out[:at].data
                at = 0
            at = channel.write_records(out, at, block)
        yield out[:at].data
        yield memoryview(FRAME_END)


class McapTarget:
    """An MCAP file, ROS 2 profile, that messages of another recording are copied to."""

    encoding = CDR

    def __init__(self, folder: Path, target: Path, reader: MessageReader) -> None:
        """Create the file in the hidden folder, with the name of the target."""
        self.output = folder / target.name
        self.file = McapFileWriter(self.output, final_path=target)
        self._numbers: dict[Channel, int] = {}
        self._schemas: dict[tuple[str, bytes], int] = {}
        self._counts: list[int] = []
        self._pending: list[bytes] = []
        metadata = complete_metadata(reader)
        values = {key: value for key, value in metadata.items() if key != WORLD_KEY}
        named = [
            ("navsense", values),
            (WORLD_METADATA, {key: v for key, v in metadata.items() if key == WORLD_KEY}),
        ]
        for name, values in named:
            if values:
                record = records.encode_record(records.METADATA, records.encode_text(name), records.encode_map(values))
                self.file.add_metadata(record, name)

    def add_channel(self, channel: Channel) -> None:
        """Add a channel."""
        if channel in self._numbers:
            return
        number = self._numbers[channel] = len(self._numbers)
        if number > 65535:
            raise RecordingError("too many topics for one MCAP file", number, allowed="at most 65536")
        schema, form = channel.definition, channel.schema_encoding
        if channel.encoding == ROS1 or (channel.is_ros and not channel.definition.strip()):
            schema, form = channel.parse_type().ros2_text.encode(), "ros2msg"
        encoding = CDR if channel.encoding == ROS1 else channel.encoding
        known = self._schemas.setdefault((channel.type, schema), len(self._schemas) + 1)
        if known not in self.file.schemas:
            self.file.schemas[known] = records.encode_schema(known, channel.type, schema, form)
            self._pending.append(self.file.schemas[known])
        quality = channel.qos_profiles or (LATCHED_QOS_PROFILE if channel.latched else "")
        record = records.encode_channel(number, known, channel.topic, {QOS_KEY: quality}, encoding)
        self.file.channels[number] = record
        self.file.message_counts[number] = 0
        self._counts.append(0)
        self._pending.append(record)

    def write(self, batch: Sequence[RawMessage]) -> None:
        """Write messages in chunks, new definitions first."""
        if self._pending:
            self.file.write_chunks([(b"".join(self._pending), [])])
            self._pending.clear()
        found = []
        for channel, log, time, data in batch:
            number = self._numbers[channel]
            found.append(MessageRecord(number, self._counts[number], log, time, data))
            self._counts[number] += 1
        self.file.write_chunks(chunk_messages(found))

    def close(self) -> None:
        """Write the summary."""
        self.write(())
        self.file.finish()

    def abort(self) -> None:
        """Close the file."""
        self.file.release()
