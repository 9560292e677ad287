"""Writers of MCAP files: recordings of runs, and copies of messages of other recordings.

| class | writes |
|---|---|
| `McapWriter` | time slices: splits them into chunks |
| `ChannelWriter` | the messages of one channel in a chunk, encoded and compressed |
| `McapCopy` | encoded messages of another recording |
| `McapFileWriter` | records, chunks and the summary, for all of them |

A recording of a run has the ROS 2 profile. A chunk contains the messages of all channels in one time interval, at most
12 MB before compression. A message has three times:

log_time: true time of arrival.
publish_time: true time of validity. This is the time of the sample for a sensor without echoes.
header.stamp: time on the sensor's clock.
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
from navsense.core.kernels import strided_kernel
from navsense.core.readings import TimeSlice
from navsense.core.typing import AnyArray, ByteArray, UInt64Array
from navsense.fault_file import list_faults
from navsense.messages.cdr import FieldOffset, MessageEncoder, MessageRows, get_field, make_row_dtype
from navsense.recordings.base import (
    add_path_to_errors,
    check_recorded_run,
    format_rescue,
    is_recovered,
    make_os_error,
    write_all,
)
from navsense.recordings.channels import (
    CDR,
    QOS_KEY,
    ROS1,
    Channel,
    MessageReader,
    RawMessage,
    make_copy_metadata,
)
from navsense.recordings.info import (
    DURATION_KEY,
    ROS_KEY,
    WORLD_JSON_KEY,
    RecordedRun,
    RecordingWriter,
    get_version,
)
from navsense.recordings.mcap import lz4_rows, records
from navsense.recordings.message_builder import MessageBlock, MessageBuilder, OutputChannel
from navsense.recordings.world_json import list_motion_sources, world_to_json

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
"""QoS profile of latched topics, as rosbag2 writes it for `/tf_static`: reliable and transient local."""

RECORD_FIELDS: Mapping[str, FieldOffset] = {
    f"record.{name}": FieldOffset(dtype.str, 0, offset)
    for name, (dtype, offset, *_) in (records.MESSAGE_FIELDS.fields or {}).items()
    if name in ("sequence", "log_time", "publish_time")
}
"""Fields of the header of a message record that differ between messages of a channel."""

ZSTD_LEVEL = -1
"""Level of zstd. On sensor data it is 1.4 times as fast as level 1; files are 3 % larger."""

INDEX_ENTRY_SIZE = 16
"""Bytes of a log time and an offset in a MessageIndex record."""

MAX_CHANNEL_ID = 65_535

Buffer: TypeAlias = bytes | memoryview


@dataclass(frozen=True, eq=False)
class MessageIndex:
    """Message index of one channel in one chunk, in order: log times (ns) and offsets in the uncompressed chunk."""

    channel_id: int
    log_time: UInt64Array
    offset: UInt64Array


def build_message_indexes(messages: Mapping[int, tuple[Sequence[int], Sequence[int]]]) -> list[MessageIndex]:
    """Return the message indexes of a chunk; `messages` are log times (ns) and offsets by channel id."""
    return [
        build_message_index(channel_id, np.array(logs, dtype=np.uint64), np.array(offsets, dtype=np.uint64))
        for channel_id, (logs, offsets) in messages.items()
    ]


def build_message_index(channel_id: int, log_time: UInt64Array, offset: UInt64Array) -> MessageIndex:
    """Return the message index of one channel, sorted by log time: another recording may have disordered messages."""
    if not (log_time[1:] < log_time[:-1]).any():
        return MessageIndex(channel_id, log_time, offset)
    order = np.argsort(log_time, kind="stable")
    return MessageIndex(channel_id, log_time[order], offset[order])


class McapFileWriter:
    """Writes one MCAP file. After a failure it is truncated to its last complete chunk, so that it can be recovered.

    schemas, channels: records by id.
    message_counts: number of messages by channel id.
    new_definitions: records of schemas and channels that the next chunk must contain.
    """

    def __init__(self, path: Path, profile: str = "ros2", final_path: Path | None = None) -> None:
        """Open `path` for writing and write the MCAP header. Raises `RecordingError` if that fails.

        final_path: the path to which the caller moves the complete file; it is used in errors. With it, `path` must
            not exist, and the file is deleted after an error.
        """
        self.path = path
        self._final_path = final_path
        self.schemas: dict[int, bytes] = {}
        self.channels: dict[int, bytes] = {}
        self.message_counts: dict[int, int] = {}
        self.new_definitions: list[bytes] = []
        self._schema_ids: dict[tuple[str, bytes], int] = {}
        self._compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
        self._chunk_indexes: list[bytes] = []
        self._metadata_indexes: list[bytes] = []
        self._attachment_indexes: list[bytes] = []
        self._first_log_time: int | None = None
        self._last_log_time = 0
        self._size = 0
        self._failed = False
        # A truncated recording with this name is kept, unless it has been recovered.
        must_keep = None if is_recovered(path) else records.is_truncated
        try:
            # Unbuffered: written bytes survive a crash of this process.
            self._file = atomic.open_in_place(path, must_keep) if final_path is None else path.open("xb", buffering=0)
        except OSError as error:
            raise make_os_error(final_path or path, error) from error
        try:
            library = records.encode_string("navsense")
            header = records.encode_record(records.HEADER, records.encode_string(profile), library)
            self._append(records.MAGIC, header)
        except BaseException:
            if final_path is None:
                self.release()
            else:
                self.discard()
            raise

    @property
    def size(self) -> int:
        """The bytes written."""
        return self._size

    def _append(self, *parts: Buffer) -> None:
        """Append bytes, all or none."""
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
            raise RecordingError("the recording has already failed", where=Where(str(self._final_path or self.path)))
        try:
            yield
        except RecordingError:
            # The messages could not be encoded. Their written parts are removed, and the recording goes on.
            self._truncate()
            raise
        except BaseException as error:
            self._failed = True
            self._truncate()
            if isinstance(error, OSError):
                raise self._make_write_error(error) from error
            raise

    def _make_write_error(self, error: OSError) -> RecordingError:
        """Return the error of a failed write, with its remedy."""
        if self._final_path is not None:
            return make_os_error(self._final_path, error)
        write_error = make_os_error(self.path, error)
        if self._chunk_indexes:
            write_error.rescue = format_rescue(self.path)
        return write_error

    def _truncate(self) -> None:
        """Truncate the file to the last complete chunk."""
        with contextlib.suppress(OSError):
            self._file.truncate(self._size)
            self._file.seek(0, os.SEEK_END)

    def add_metadata(self, name: str, values: Mapping[str, str]) -> None:
        """Write one Metadata record."""
        offset = self._size
        self._append(records.encode_metadata(name, values))
        position = struct.pack("<QQ", offset, self._size - offset)
        self._metadata_indexes.append(
            records.encode_record(records.METADATA_INDEX, position, records.encode_string(name))
        )

    def add_schema(self, name: str, definition: bytes, encoding: str = "ros2msg") -> int:
        """Return the id of a schema; a new one is appended to `new_definitions`."""
        schema_id = self._schema_ids.setdefault((name, definition), len(self._schema_ids) + 1)
        if schema_id not in self.schemas:
            self.schemas[schema_id] = records.encode_schema(schema_id, name, definition, encoding)
            self.new_definitions.append(self.schemas[schema_id])
        return schema_id

    def add_channel(self, schema_id: int, topic: str, metadata: Mapping[str, str], encoding: str = CDR) -> int:
        """Append a new channel to `new_definitions`; return its id. Raises `RecordingError` for too many channels."""
        channel_id = len(self.channels)
        if channel_id > MAX_CHANNEL_ID:
            allowed = f"at most {MAX_CHANNEL_ID + 1}"
            raise RecordingError("too many topics for one MCAP file", channel_id, allowed=allowed)
        self.channels[channel_id] = records.encode_channel(channel_id, schema_id, topic, metadata, encoding)
        self.message_counts[channel_id] = 0
        self.new_definitions.append(self.channels[channel_id])
        return channel_id

    def add_run_metadata(self, values: Mapping[str, str]) -> None:
        """Write the metadata of a run and of its world as two Metadata records; one without values is omitted."""
        run = {key: value for key, value in values.items() if key != WORLD_JSON_KEY}
        world = {key: value for key, value in values.items() if key == WORLD_JSON_KEY}
        for name, group in ((records.RUN_METADATA, run), (records.WORLD_METADATA, world)):
            if group:
                self.add_metadata(name, group)

    def add_attachment(self, body: bytes) -> None:
        """Write one Attachment record."""
        reader = records.FieldReader(body)
        times = bytes(reader.read(16))
        name, media_type = reader.read_string(), reader.read_string()
        size = reader.read_int(8)
        offset = self._size
        self._append(records.encode_record(records.ATTACHMENT, body))
        self._attachment_indexes.append(
            records.encode_record(
                records.ATTACHMENT_INDEX,
                struct.pack("<QQ", offset, self._size - offset),
                times,
                struct.pack("<Q", size),
                records.encode_string(name),
                records.encode_string(media_type),
            )
        )

    def write_chunks(self, chunks: Iterable[tuple[Buffer, Sequence[MessageIndex]]]) -> None:
        """Write chunks; each is its records and its message indexes."""
        for data, indexes in chunks:
            self.write_compressed_chunk([self._compressor.compress(data)], "zstd", len(data), zlib.crc32(data), indexes)

    def write_compressed_chunk(
        self,
        parts: Iterable[Buffer],
        compression: str,
        uncompressed_size: int,
        crc: int,
        message_indexes: Sequence[MessageIndex],
    ) -> None:
        """Write one chunk of compressed parts; `crc` is that of the uncompressed bytes.

        Parts are written as soon as they are generated, so the encoder of a message may raise an error here. The chunk
        is removed if a part fails.
        """
        nonempty = [index for index in message_indexes if index.log_time.size]
        first = min((int(index.log_time[0]) for index in nonempty), default=0)
        last = max((int(index.log_time[-1]) for index in nonempty), default=0)
        compression_field, chunk_offset = records.encode_string(compression), self._size
        header_size = records.CHUNK_HEADER.size + len(compression_field) + 8
        index_records, index_offsets = _encode_message_indexes(nonempty)
        with self._all_or_nothing():
            # The size is known only after the data. Until then the header is zeros, where a reader stops.
            compressed_size = self._write_at(chunk_offset + records.RECORD_HEADER.size + header_size, parts)
            record_size = records.RECORD_HEADER.size + header_size + compressed_size
            self._write_at(chunk_offset + record_size, [index_records])
            chunk_header = records.CHUNK_HEADER.pack(first, last, uncompressed_size, crc)
            chunk_header += compression_field + struct.pack("<Q", compressed_size)
            record_header = records.RECORD_HEADER.pack(records.CHUNK, header_size + compressed_size)
            # One write call: a header that is partly written would have a wrong length.
            self._write_at(chunk_offset, [record_header + chunk_header])
            self._file.seek(0, os.SEEK_END)
        self._size = chunk_offset + record_size + len(index_records)
        index_map = [
            records.CHANNEL_PAIR.pack(index.channel_id, chunk_offset + record_size + index_offset)
            for index, index_offset in zip(nonempty, index_offsets, strict=True)
        ]
        for index in nonempty:
            self.message_counts[index.channel_id] = self.message_counts.get(index.channel_id, 0) + index.log_time.size
        if nonempty:
            self._first_log_time = first if self._first_log_time is None else min(first, self._first_log_time)
            self._last_log_time = max(last, self._last_log_time)
        self._chunk_indexes.append(
            records.encode_record(
                records.CHUNK_INDEX,
                struct.pack("<QQQQ", first, last, chunk_offset, record_size),
                records.encode_bytes(b"".join(index_map)),
                struct.pack("<Q", len(index_records)),
                compression_field,
                struct.pack("<QQ", compressed_size, uncompressed_size),
            )
        )

    def finish(self) -> None:
        """Write the summary and close the file."""
        try:
            # Zero: no CRC of the data section. Its chunks and metadata have checksums of their own.
            self._append(records.encode_record(records.DATA_END, records.DATA_END_FIELDS.pack(0)))
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
        for opcode, group in groups:
            start = len(summary)
            for record in group:
                summary += record
            if len(summary) > start:
                position = struct.pack("<BQQ", opcode, self._size + start, len(summary) - start)
                offsets += records.encode_record(records.SUMMARY_OFFSET, position)
        footer = records.RECORD_HEADER.pack(records.FOOTER, records.FOOTER_FIELDS.size)
        footer += struct.pack("<QQ", self._size, self._size + len(summary))
        summary_section = bytes(summary + offsets) + footer
        return summary_section + struct.pack("<I", zlib.crc32(summary_section))

    def _encode_statistics(self) -> bytes:
        """Return the Statistics record."""
        counts = b"".join(records.CHANNEL_PAIR.pack(*item) for item in self.message_counts.items())
        totals = struct.pack(
            records.FIELDS_BEFORE_CHANNEL_MAP[records.STATISTICS],
            *(sum(self.message_counts.values()), len(self.schemas), len(self.channels)),
            *(len(self._attachment_indexes), len(self._metadata_indexes), len(self._chunk_indexes)),
            *(self._first_log_time or 0, self._last_log_time),
        )
        return records.encode_record(records.STATISTICS, totals, records.encode_bytes(counts))


def _encode_message_indexes(indexes: Sequence[MessageIndex]) -> tuple[memoryview, list[int]]:
    """Return the MessageIndex records of one chunk, one per channel, and the offset of each."""
    header = records.MESSAGE_INDEX_HEADER
    out = np.empty(sum(header.size + INDEX_ENTRY_SIZE * index.log_time.size for index in indexes), dtype=np.uint8)
    offsets, offset = [], 0
    for index in indexes:
        size = INDEX_ENTRY_SIZE * index.log_time.size
        offsets.append(offset)
        length = header.size - records.RECORD_HEADER.size + size
        header.pack_into(out.data, offset, records.MESSAGE_INDEX, length, index.channel_id, size)
        table = np.ndarray((index.log_time.size, 2), "<u8", out, offset + header.size)
        table[:, 0], table[:, 1] = index.log_time, index.offset
        offset += header.size + size
    return out.data, offsets


class McapWriterBase(RecordingWriter):
    """Base class of the writers of one MCAP file: completes the file, also after an error."""

    _mcap: McapFileWriter

    def close(self) -> None:
        """Write the summary; the file is then complete."""
        self._mcap.finish()

    def abort(self) -> None:
        """Write the summary if possible. The file is then readable, or can be recovered."""
        try:
            self._mcap.finish()
        except RecordingError:
            self._mcap.release()


@dataclass(frozen=True)
class MessageRecord:
    """One message record: channel id, sequence number, log time and publish time (ns), bytes."""

    channel_id: int
    sequence: int
    log_time: int
    publish_time: int
    data: bytes


def chunk_messages(messages: Iterable[MessageRecord]) -> Iterator[tuple[bytes, list[MessageIndex]]]:
    """Yield chunks of the messages, each of at most `CHUNK_BYTES` and one message."""
    data, entries = bytearray(), dict[int, tuple[list[int], list[int]]]()
    for message in messages:
        log_times, offsets = entries.setdefault(message.channel_id, ([], []))
        log_times.append(message.log_time)
        offsets.append(len(data))
        times = message.log_time, message.publish_time
        record_header = records.encode_message_header(message.channel_id, message.sequence, *times, len(message.data))
        data += record_header + message.data
        if len(data) >= CHUNK_BYTES:
            yield bytes(data), build_message_indexes(entries)
            data, entries = bytearray(), {}
    if data:
        yield bytes(data), build_message_indexes(entries)


@dataclass(eq=False)
class ChannelWriter:
    """Writes the message records of one channel.

    channel_id: the id of the channel in the file.
    template: the bytes of a message record in which the numbers that differ between messages are 0.
    fields: the offsets of the numbers in the record.
    sequence: the number of the next message.
    """

    channel_id: int
    encoder: MessageEncoder
    template: bytes
    fields: Mapping[str, FieldOffset]
    sequence: int = 0
    compressor: lz4_rows.RowCompressor | None = None

    def fill_records(self, rows: MessageRows, block: MessageBlock) -> None:
        """Write the values of the records of a block into rows, by the name of each field.

        The rows are those of plain records, compressed rows with the written fields only (`lz4_rows`), or the
        `AccessTracker` of a trial. Access by name is all that the three have in common.
        """
        columns = tuple(
            get_field(rows, f"record.{name}", block.log_time) for name in ("sequence", "log_time", "publish_time")
        )
        _fill_record_headers(self.sequence, block.log_time, block.publish_time, *columns)
        self.encoder.fill(rows, block.stamp, block.arrays)

    def _make_compressor(self, block: MessageBlock) -> lz4_rows.RowCompressor:
        """Return the compressor for such blocks.

        A trial on one row finds the fields that the encoder writes. Only these become literals in LZ4.
        """
        row = np.frombuffer(bytearray(self.template), dtype=make_row_dtype(self.fields, len(self.template)))
        tracker = lz4_rows.AccessTracker(row)
        self.fill_records(cast("AnyArray", tracker), block.slice_rows(0, 1))
        return lz4_rows.build_compressor(self.template, self.fields, tracker.names)

    def write_records(self, out: ByteArray, offset: int, block: MessageBlock) -> int:
        """Write the records of a block at an offset; return their end."""
        count = block.publish_time.size
        self.compressor = self.compressor or self._make_compressor(block)
        try:
            end = self.compressor.compress_into(out, offset, count, lambda rows: self.fill_records(rows, block))
        except ValueError:
            # The encoder writes a field that it did not write for its first block, so the rows lack this field. The
            # second attempt raises any other error again.
            self.compressor = self._make_compressor(block)
            end = self.compressor.compress_into(out, offset, count, lambda rows: self.fill_records(rows, block))
        self.sequence += count
        return end


@strided_kernel("sequence", "log_time", "publish_time")
def _fill_record_headers(
    first: int,
    log_times: UInt64Array,
    publish_times: UInt64Array,
    sequence: AnyArray,
    log_time: AnyArray,
    publish_time: AnyArray,
) -> None:
    """Write the sequence numbers of records from `first` on, and their times (n,) ns."""
    for i in range(log_times.size):
        sequence[i] = (first + i) & 0xFFFFFFFF
        log_time[i] = log_times[i]
        publish_time[i] = publish_times[i]


def make_mcap_metadata(recorded_run: RecordedRun) -> dict[str, str]:
    """Return the metadata of a recording, with the world as JSON."""
    values = {
        "world": recorded_run.world.name,
        "seed": str(recorded_run.seed),
        "epoch": str(recorded_run.epoch),
        "runs": json.dumps([int(run) for run in recorded_run.runs]),
        "version": get_version(),
        ROS_KEY: recorded_run.ros,
    }
    if recorded_run.requested_duration is not None:
        values[DURATION_KEY] = repr(recorded_run.requested_duration)
    faults = list_faults(recorded_run.world)
    if faults:
        values["faults"] = json.dumps(faults)
    sources = list_motion_sources(recorded_run.world)
    if sources:
        values["motions"] = json.dumps(sources)
    return {**values, WORLD_JSON_KEY: json.dumps(world_to_json(recorded_run.world, recorded_run.topics))}


class McapWriter(McapWriterBase):
    """Writes time slices to one MCAP file."""

    def __init__(self, path: Path, recorded_run: RecordedRun) -> None:
        """Open the file and write its metadata, channels and `/tf_static`. Raises `RecordingError` if that fails."""
        check_recorded_run(path, recorded_run)
        self._builder = MessageBuilder(recorded_run)
        self._mcap = McapFileWriter(path)
        self._buffer: ByteArray = np.empty(0, dtype=np.uint8)
        self._writers: dict[OutputChannel, ChannelWriter] = {}
        try:
            self._mcap.add_run_metadata(make_mcap_metadata(recorded_run))
            blocks = self._builder.build_static_transforms()
            self._define_channels([*self._builder.list_measured_channels(), *(block.channel for block in blocks)])
            if self._mcap.new_definitions:
                self._write_chunk(blocks)
        except BaseException:
            self._mcap.release()
            raise

    def _define_channels(self, channels: Iterable[OutputChannel]) -> None:
        """Define the channels that the file does not have yet, and make their writers."""
        for channel in channels:
            if channel in self._writers:
                continue
            encoder, qos_profile = channel.encoder, LATCHED_QOS_PROFILE if channel.latched else ""
            schema_id = self._mcap.add_schema(encoder.type, encoder.schema.encode())
            channel_id = self._mcap.add_channel(schema_id, channel.topic, {QOS_KEY: qos_profile})
            message = encoder.layout.template
            record_header = records.encode_message_header(channel_id, 0, 0, 0, len(message))
            fields = {**encoder.layout.shift_fields(len(record_header)), **RECORD_FIELDS}
            self._writers[channel] = ChannelWriter(channel_id, encoder, record_header + message, fields)

    def write(self, time_slice: TimeSlice) -> None:
        """Write the messages of a time slice, as chunks in order of time."""
        with add_path_to_errors(self._mcap.path):
            blocks = self._builder.build_blocks(time_slice)
            self._define_channels(block.channel for block in blocks)
            for chunk_blocks in self._split_by_time([block for block in blocks if block.publish_time.size]):
                self._write_chunk(chunk_blocks)

    def _split_by_time(self, blocks: list[MessageBlock]) -> Iterator[list[MessageBlock]]:
        """Yield the blocks of consecutive time intervals that fit into a chunk, each channel into one LZ4 block."""
        if not blocks:
            return
        sizes = [int(block.publish_time.size * len(self._writers[block.channel].template)) for block in blocks]
        largest = blocks[int(np.argmax(sizes))]
        split_time = largest.log_time[largest.log_time.size // 2]
        fits = sum(sizes) <= CHUNK_BYTES and max(sizes) <= lz4_rows.MAX_BLOCK_SIZE
        if fits or split_time == largest.log_time[0]:
            yield blocks
            return
        first_half, second_half = [], []
        for block in blocks:
            split_row = int(np.searchsorted(block.log_time, split_time))
            first_half.append(block.slice_rows(0, split_row))
            second_half.append(block.slice_rows(split_row, block.publish_time.size))
        for half in (first_half, second_half):
            yield from self._split_by_time([block for block in half if block.publish_time.size])

    def _write_chunk(self, blocks: list[MessageBlock]) -> None:
        """Write one chunk: new definitions, then the messages of each channel."""
        definitions = np.frombuffer(b"".join(self._mcap.new_definitions), dtype=np.uint8)
        indexes, size = list[MessageIndex](), definitions.size
        for block in blocks:
            writer, count = self._writers[block.channel], block.publish_time.size
            record_size = len(writer.template)
            offsets = np.arange(size, size + record_size * count, record_size, dtype=np.uint64)
            indexes.append(build_message_index(writer.channel_id, block.log_time, offsets))
            size += record_size * count
        # No CRC of the uncompressed bytes: each LZ4 block has a checksum.
        self._mcap.write_compressed_chunk(self._compress_chunk(definitions, blocks), "lz4", size, 0, indexes)
        self._mcap.new_definitions.clear()

    def _compress_chunk(self, definitions: ByteArray, blocks: list[MessageBlock]) -> Iterator[memoryview]:
        """Yield one LZ4 frame in parts. All parts use one small buffer, which stays in the cache of the processor."""
        writers = [self._writers[block.channel] for block in blocks]
        counts = [block.publish_time.size for block in blocks]
        sizes = (len(writer.template) for writer in writers)
        capacity = max(map(lz4_rows.compute_max_compressed_size, sizes, counts), default=0) + WRITE_BYTES
        capacity += len(lz4_rows.FRAME_HEADER) + definitions.size
        capacity += lz4_rows.BLOCK_OVERHEAD * (2 + definitions.size // lz4_rows.MAX_BLOCK_SIZE)
        if self._buffer.size < capacity:
            self._buffer = np.empty(capacity, dtype=np.uint8)
        out = self._buffer
        out[: len(lz4_rows.FRAME_HEADER)] = np.frombuffer(lz4_rows.FRAME_HEADER, dtype=np.uint8)
        end = lz4_rows.write_uncompressed(out, len(lz4_rows.FRAME_HEADER), definitions)
        for writer, block in zip(writers, blocks, strict=True):
            if end > WRITE_BYTES:
                yield out[:end].data
                end = 0
            end = writer.write_records(out, end, block)
        yield out[:end].data
        yield memoryview(lz4_rows.FRAME_END)


class McapCopy:
    """An MCAP file in the ROS 2 profile to which the messages of another recording are copied."""

    encoding, has_publish_times = CDR, True

    def __init__(self, folder: Path, target: Path, reader: MessageReader) -> None:
        """Create the file in the hidden folder, with the name of the target."""
        self.output = folder / target.name
        self.file = McapFileWriter(self.output, final_path=target)
        self._channel_ids: dict[Channel, int] = {}
        self._counts: list[int] = []
        self.file.add_run_metadata(make_copy_metadata(reader))

    def find_obstacle(self, channel: Channel) -> str:
        """Return the reason why messages of ROS 1 cannot be converted; "" for others: MCAP holds any encoding."""
        return channel.definition_problem if channel.encoding == ROS1 else ""

    def add_channel(self, channel: Channel) -> None:
        """Add a channel."""
        if channel in self._channel_ids:
            return
        schema, schema_encoding = channel.definition, channel.schema_encoding
        if channel.encoding == ROS1 or (channel.is_ros and not channel.definition.strip()):
            schema, schema_encoding = channel.parse_type().ros2_text.encode(), "ros2msg"
        encoding = CDR if channel.encoding == ROS1 else channel.encoding
        qos_profile = channel.qos_profiles or (LATCHED_QOS_PROFILE if channel.latched else "")
        schema_id = self.file.add_schema(channel.type, schema, schema_encoding)
        self._channel_ids[channel] = self.file.add_channel(schema_id, channel.topic, {QOS_KEY: qos_profile}, encoding)
        self._counts.append(0)

    def write(self, batch: Sequence[RawMessage]) -> None:
        """Write messages in chunks, new definitions first."""
        if self.file.new_definitions:
            self.file.write_chunks([(b"".join(self.file.new_definitions), [])])
            self.file.new_definitions.clear()
        messages = []
        for channel, log_time, publish_time, data in batch:
            channel_id = self._channel_ids[channel]
            messages.append(MessageRecord(channel_id, self._counts[channel_id], log_time, publish_time, data))
            self._counts[channel_id] += 1
        self.file.write_chunks(chunk_messages(messages))

    def close(self) -> None:
        """Write the summary."""
        self.write(())
        self.file.finish()

    def abort(self) -> None:
        """Close the file."""
        self.file.release()
