"""Recordings as MCAP, ROS 2 profile: CDR messages in chunks, written in blocks rather than message by message.

log_time is the true time of arrival, publish_time the true time of the sample, header.stamp what the sensor's clock
showed. A chunk holds one span of time of all channels, at most 1 MB before compression.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from navsense.errors import SinkError, Where
from navsense.messages.base import GLOBAL_TIME, SEC_MAX
from navsense.messages.cdr import Message, Place
from navsense.series import Slab
from navsense.sinks import records
from navsense.sinks.base import Recording, asked, numbers, version
from navsense.sinks.blocks import Block, Blocks, Source
from navsense.sinks.container import Compression, Container, ContainerSink, Entries
from navsense.typing import AnyArray

CHUNK_BYTES = 1_000_000
"""A chunk is at most this before compression, unless one instant alone is larger."""

LATCHED = (
    "- history: 1\n  depth: 1\n  reliability: 1\n  durability: 1\n"
    "  deadline:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  lifespan:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  liveliness: 1\n  liveliness_lease_duration:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  avoid_ros_namespace_conventions: false"
)
"""Quality of service of `/tf_static` as rosbag2 notes it: reliable, and handed to those who come late."""

RECORD_PLACES: Mapping[str, Place] = {
    "record.sequence": Place("<u4", 0, 11),
    "record.log_time": Place("<u8", 0, 15),
    "record.publish_time": Place("<u8", 0, 23),
}
"""The fields of a message record that change from message to message."""


@dataclass(eq=False)
class Channel:
    """One channel: how its messages are made, and a whole record as a template for them."""

    number: int
    message: Message
    dtype: np.dtype[np.void]
    template: AnyArray
    sequence: int = 0


def check_head(path: Path, recording: Recording, what: str = "an MCAP file") -> None:
    """Raise `SinkError` where the format, which is called `what`, cannot hold the recording."""
    where = Where(str(path))
    if len(recording.runs) != 1:
        raise SinkError(
            f"{what} holds one run",
            len(recording.runs),
            where=where,
            remedy="write many runs to .npz or .parquet",
        )
    # A live run has no end of its own; its stamps are checked as they come.
    last = recording.epoch + (recording.duration if math.isfinite(recording.duration) else 0.0)
    if recording.epoch < 0 or last > SEC_MAX:
        raise SinkError(
            f"{GLOBAL_TIME} at the {'start' if recording.epoch < 0 else 'end'}, in seconds",
            recording.epoch if recording.epoch < 0 else last,
            allowed=f"a recording holds 0 to {SEC_MAX}",
            where=where,
            remedy="choose another --epoch",
        )


def about(recording: Recording) -> dict[str, str]:
    """Return what a recording says of itself."""
    values = {
        "world": recording.world.name,
        "seed": str(recording.seed),
        "epoch": str(recording.epoch),
        "runs": numbers(recording),
        "version": version(),
    }
    duration = asked(recording)
    if duration is not None:
        values["duration_asked"] = repr(duration)
    return values


def description(recording: Recording) -> bytes:
    """Return the record of what the recording is of."""
    return records.record(records.METADATA, records.text("navsense"), records.mapping(about(recording)))


class McapSink(ContainerSink):
    """Writes slabs to one MCAP file."""

    def __init__(self, path: Path, recording: Recording, compression: Compression = "zstd") -> None:
        """Open the file and write its head and `/tf_static`. Raise `SinkError` where that cannot be."""
        check_head(path, recording)
        self._blocks = Blocks(recording)
        self._container = Container(path, compression=compression)
        self._pending: list[bytes] = []
        self._schemas: dict[tuple[str, str], int] = {}
        self._channels: dict[Source, Channel] = {}
        try:
            self._container.add_metadata(description(recording), "navsense")
            self._latch()
        except BaseException:
            self._container.release()
            raise

    def _latch(self) -> None:
        """Make the sensors' channels and write the transforms that never change."""
        for source in self._blocks.readings():
            self._channel(source)
        fixed = self._blocks.fixed()
        for block in fixed:
            self._channel(block.source)
        if self._pending:
            self._container.write_chunks([self._encoded(fixed)])

    def _channel(self, source: Source) -> Channel:
        """Return the channel of a source, made at its first use."""
        if source in self._channels:
            return self._channels[source]
        message = source.message
        kind = (message.type, message.schema)
        if kind not in self._schemas:
            number = self._schemas[kind] = len(self._schemas) + 1
            self._container.schemas[number] = records.schema(number, message.type, message.schema.encode())
            self._pending.append(self._container.schemas[number])
        number = len(self._channels)
        if number > 65535:
            raise SinkError("too many topics for one MCAP file", number, allowed="at most 65536")
        qos = LATCHED if source.latched else ""
        record = records.channel(number, self._schemas[kind], source.topic, {"offered_qos_profiles": qos})
        self._container.channels[number] = record
        self._container.counts[number] = 0
        self._pending.append(record)
        data = message.layout.template
        head = records.MESSAGE_HEAD.pack(records.MESSAGE, 22 + len(data), number, 0, 0, 0)
        channel = Channel(
            number,
            message,
            message.layout.dtype(len(head), RECORD_PLACES),
            np.frombuffer(head + data, dtype=np.uint8),
        )
        self._channels[source] = channel
        return channel

    def write(self, slab: Slab) -> None:
        """Write all messages of a slab, as chunks that follow one another in time."""
        blocks = self._blocks.of(slab)
        for block in blocks:
            self._channel(block.source)
        spans = self._spans([block for block in blocks if block.time.size])
        self._container.write_chunks(self._encoded(span) for span in spans)

    def _bytes(self, block: Block) -> int:
        """Return how many bytes the records of a block take."""
        return int(block.time.size * self._channels[block.source].dtype.itemsize)

    def _spans(self, blocks: list[Block]) -> Iterator[list[Block]]:
        """Yield the blocks in spans of time, each of a chunk's size."""
        if not blocks:
            return
        largest = max(blocks, key=self._bytes)
        cut = largest.log[largest.log.size // 2]
        if sum(map(self._bytes, blocks)) <= CHUNK_BYTES or cut == largest.log[0]:
            yield blocks
            return
        places = [int(np.searchsorted(block.log, cut)) for block in blocks]
        halves = [(b.part(0, at), b.part(at, b.time.size)) for b, at in zip(blocks, places, strict=True)]
        yield from self._spans([early for early, _ in halves if early.time.size])
        yield from self._spans([late for _, late in halves if late.time.size])

    def _encoded(self, blocks: list[Block]) -> tuple[memoryview, list[Entries]]:
        """Return one chunk's records: definitions that are new, then each channel's messages."""
        definitions = b"".join(self._pending)
        self._pending.clear()
        data = np.empty(len(definitions) + sum(map(self._bytes, blocks)), dtype=np.uint8)
        data[: len(definitions)] = np.frombuffer(definitions, dtype=np.uint8)
        entries, at = [], len(definitions)
        for block in blocks:
            channel, count, size = self._channels[block.source], block.time.size, self._bytes(block)
            width = channel.dtype.itemsize
            span = data[at : at + size]
            span.reshape(count, width)[:] = channel.template
            rows = span.view(channel.dtype)
            rows["record.sequence"] = (np.arange(count) + channel.sequence) & 0xFFFFFFFF
            rows["record.log_time"] = block.log
            rows["record.publish_time"] = block.time
            channel.message.fill(rows, block.stamp, block.arrays)
            channel.sequence += count
            entries.append(Entries(channel.number, block.log, at + width * np.arange(count, dtype=np.uint64)))
            at += size
        return data.data, entries
