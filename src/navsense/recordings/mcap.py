"""Recordings as MCAP, ROS 2 profile: CDR messages in chunks, packed as they are made, block by block.

log_time is the true time of arrival, publish_time the true time of the sample, header.stamp what the sensor's clock
showed. A chunk holds one span of time of all channels, at most 12 MB before it is packed, which leaves a third of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from navsense.errors import RecordingError, Where
from navsense.faults import list_faults
from navsense.kernels import kernel
from navsense.messages.base import GLOBAL_TIME, MAX_STAMP_SECONDS
from navsense.messages.cdr import FieldOffset, MessageLayout, get_field, make_row_dtype
from navsense.recordings.base import add_path_to_errors
from navsense.recordings.header import ROS_KEY, WORLD_KEY, RecordingHeader, format_runs, get_version, requested_duration
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
from navsense.recordings.mcap.writer import McapFileWriter, McapWriterBase, MessageIndex, build_message_index
from navsense.recordings.message_builder import MessageBlock, MessageBuilder, OutputChannel
from navsense.recordings.world_json import world_to_json
from navsense.series import TimeSlice
from navsense.typing import AnyArray, ByteArray, WordArray

CHUNK_BYTES = 12_000_000
"""A chunk is at most this before it is packed, unless one instant alone is larger."""

WRITE_BYTES = 500_000
"""Packed messages are handed to the system once they are as many."""

LATCHED_QOS_PROFILE = (
    "- history: 1\n  depth: 1\n  reliability: 1\n  durability: 1\n"
    "  deadline:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  lifespan:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  liveliness: 1\n  liveliness_lease_duration:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  avoid_ros_namespace_conventions: false"
)
"""Quality of service of `/tf_static` as rosbag2 notes it: reliable, and handed to those who come late."""

RECORD_FIELDS: Mapping[str, FieldOffset] = {
    "record.sequence": FieldOffset("<u4", 0, 11),
    "record.log_time": FieldOffset("<u8", 0, 15),
    "record.publish_time": FieldOffset("<u8", 0, 23),
}
"""The fields of a message record that change from message to message."""


@dataclass(eq=False)
class ChannelWriter:
    """One channel: how its messages are made, a whole record as a template for them, and how such are packed."""

    number: int
    message_layout: MessageLayout
    template: bytes
    fields: Mapping[str, FieldOffset]
    sequence: int = 0
    compressor: RowCompressor | None = None

    def fill(self, rows: AnyArray, block: MessageBlock) -> None:
        """Write the numbers of a block's records into rows."""
        places = tuple(
            get_field(rows, f"record.{name}", block.log_time) for name in ("sequence", "log_time", "publish_time")
        )
        _fill_record_headers(self.sequence, block.log_time, block.publish_time, *places)
        self.message_layout.fill(rows, block.stamp, block.arrays)

    def _make_compressor(self, block: MessageBlock) -> RowCompressor:
        """Return how such blocks are packed: what the encoder writes into the first row shows it."""
        row = np.frombuffer(bytearray(self.template), dtype=make_row_dtype(self.fields, len(self.template)))
        noted = AccessRecorder(row)
        self.fill(cast("AnyArray", noted), block.slice_rows(0, 1))
        return build_compressor(self.template, self.fields, noted.names)

    def write_records(self, out: ByteArray, offset: int, block: MessageBlock) -> int:
        """Write the records of a block from `at` on; return where they end."""
        count = block.publish_time.size
        self.compressor = self.compressor or self._make_compressor(block)
        try:
            end = self.compressor.compress_into(out, offset, count, lambda rows: self.fill(rows, block))
        except ValueError:
            # An encoder that writes more than it did at first; whatever else is wrong is wrong again.
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
    """Write the numbers of records from `first` on, and their times (n,) ns."""
    for i in range(arrival_time.size):
        sequence[i] = (first + i) & 0xFFFFFFFF
        log_time[i] = arrival_time[i]
        publish_time[i] = validity_time[i]


def check_header(path: Path, recording: RecordingHeader, what: str = "an MCAP file") -> None:
    """Raise `RecordingError` where the format, which is called `what`, cannot hold the recording."""
    where = Where(str(path))
    if len(recording.runs) != 1:
        raise RecordingError(
            f"{what} holds one run",
            len(recording.runs),
            where=where,
            remedy="write many runs to .npz or .parquet",
        )
    # A live run has no end of its own; its stamps are checked as they come.
    last = recording.epoch + (recording.duration if math.isfinite(recording.duration) else 0.0)
    if recording.epoch < 0 or last > MAX_STAMP_SECONDS:
        raise RecordingError(
            f"{GLOBAL_TIME} at the {'start' if recording.epoch < 0 else 'end'}, in seconds",
            recording.epoch if recording.epoch < 0 else last,
            allowed=f"a recording holds 0 to {MAX_STAMP_SECONDS}",
            where=where,
            remedy="choose another --epoch",
        )


def run_metadata(recording: RecordingHeader) -> dict[str, str]:
    """Return what a recording says of itself."""
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
    """Return the record of what the recording is of."""
    return records.encode_record(
        records.METADATA, records.encode_text("navsense"), records.encode_map(run_metadata(recording))
    )


WORLD_METADATA = "navsense.world"
"""Name of the metadata record with the world's JSON, see `world_json`."""


def format_world(recording: RecordingHeader) -> str:
    """Return the text of the world's JSON."""
    return json.dumps(world_to_json(recording.world, recording.allocate_topics()))


def encode_world_metadata(recording: RecordingHeader) -> bytes:
    """Return the record of what is on which topic, and how sensors are mounted and made."""
    return records.encode_record(
        records.METADATA, records.encode_text(WORLD_METADATA), records.encode_map({WORLD_KEY: format_world(recording)})
    )


class McapWriter(McapWriterBase):
    """Writes slabs to one MCAP file."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Open the file and write its head and `/tf_static`. Raise `RecordingError` where that cannot be."""
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
        """Make the sensors' channels and write the transforms that never change."""
        for source in self._builder.list_reading_channels():
            self._get_writer(source)
        fixed = self._builder.build_static_transforms()
        for block in fixed:
            self._get_writer(block.channel)
        if self._pending:
            self._write_chunk(fixed)

    def _get_writer(self, channel: OutputChannel) -> ChannelWriter:
        """Return the channel of a source, made at its first use."""
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
        """Write all messages of a slab, as chunks that follow one another in time."""
        with add_path_to_errors(self._file.path):
            blocks = self._builder.build_blocks(time_slice)
            for block in blocks:
                self._get_writer(block.channel)
            for span in self._split_by_size([block for block in blocks if block.publish_time.size]):
                self._write_chunk(span)

    def _block_size(self, block: MessageBlock) -> int:
        """Return how many bytes the records of a block take."""
        return int(block.publish_time.size * len(self._writers[block.channel].template))

    def _split_by_size(self, blocks: list[MessageBlock]) -> Iterator[list[MessageBlock]]:
        """Yield the blocks in spans of time, each of a chunk's size."""
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
        """Write one chunk: definitions that are new, then each channel's messages."""
        definitions = np.frombuffer(b"".join(self._pending), dtype=np.uint8)
        entries, size = list[MessageIndex](), definitions.size
        for block in blocks:
            channel, count = self._writers[block.channel], block.publish_time.size
            width = len(channel.template)
            offsets = np.arange(size, size + width * count, width, dtype=np.uint64)
            entries.append(build_message_index(channel.number, block.log_time, offsets))
            size += width * count
        # No CRC of what is unpacked: each block has its checksum.
        self._file.write_compressed_chunk(self._compress_chunk(definitions, blocks), "lz4", size, 0, entries)
        self._pending.clear()

    def _compress_chunk(self, definitions: ByteArray, blocks: list[MessageBlock]) -> Iterator[memoryview]:
        """Yield one frame of LZ4 piece by piece, each in the same few bytes, which so stay near the processor."""
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
