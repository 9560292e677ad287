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

from navsense.compiled import kernel
from navsense.errors import SinkError, Where
from navsense.faults import listed
from navsense.messages.base import GLOBAL_TIME, SEC_MAX
from navsense.messages.cdr import Message, Place, room, row_type
from navsense.series import Slab
from navsense.sinks import records
from navsense.sinks.base import LAYOUT, ROS, Recording, add_path_to_errors, asked, numbers, version
from navsense.sinks.blocks import Block, Blocks, Source
from navsense.sinks.container import Container, ContainerSink, Entries, ordered
from navsense.sinks.packed import AROUND, FRAME, FRAME_END, LARGEST, Noted, Plan, most, plan, put_stored
from navsense.sinks.world_json import world_to_json
from navsense.typing import AnyArray, ByteArray, WordArray

CHUNK_BYTES = 12_000_000
"""A chunk is at most this before it is packed, unless one instant alone is larger."""

PIECE_BYTES = 500_000
"""Packed messages are handed to the system once they are as many."""

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
    """One channel: how its messages are made, a whole record as a template for them, and how such are packed."""

    number: int
    message: Message
    template: bytes
    places: Mapping[str, Place]
    sequence: int = 0
    plan: Plan | None = None

    def fill(self, rows: AnyArray, block: Block) -> None:
        """Write the numbers of a block's records into rows."""
        places = tuple(room(rows, f"record.{name}", block.log) for name in ("sequence", "log_time", "publish_time"))
        _number(self.sequence, block.log, block.time, *places)
        self.message.fill(rows, block.stamp, block.arrays)

    def planned(self, block: Block) -> Plan:
        """Return how such blocks are packed: what the encoder writes into the first row shows it."""
        row = np.frombuffer(bytearray(self.template), dtype=row_type(self.places, len(self.template)))
        noted = Noted(row)
        self.fill(cast("AnyArray", noted), block.part(0, 1))
        return plan(self.template, self.places, noted.names)

    def put(self, out: ByteArray, at: int, block: Block) -> int:
        """Write the records of a block from `at` on; return where they end."""
        count = block.time.size
        self.plan = self.plan or self.planned(block)
        try:
            end = self.plan.put(out, at, count, lambda rows: self.fill(rows, block))
        except ValueError:
            # An encoder that writes more than it did at first; whatever else is wrong is wrong again.
            self.plan = self.planned(block)
            end = self.plan.put(out, at, count, lambda rows: self.fill(rows, block))
        self.sequence += count
        return end


@kernel
def _number(
    first: int, log: WordArray, time: WordArray, sequence: AnyArray, log_time: AnyArray, publish_time: AnyArray
) -> None:
    """Write the numbers of records from `first` on, and their times (n,) ns."""
    for i in range(log.size):
        sequence[i] = (first + i) & 0xFFFFFFFF
        log_time[i] = log[i]
        publish_time[i] = time[i]


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
        ROS: recording.ros,
    }
    duration = asked(recording)
    if duration is not None:
        values["duration_asked"] = repr(duration)
    faults = listed(recording.world)
    if faults:
        values["faults"] = json.dumps(faults)
    return values


def description(recording: Recording) -> bytes:
    """Return the record of what the recording is of."""
    return records.record(records.METADATA, records.text("navsense"), records.mapping(about(recording)))


OUR_WORLD = "navsense.world"
"""Name of the metadata record with the world's JSON, see `world_json`."""


def layout_of(recording: Recording) -> str:
    """Return the text of the world's JSON."""
    return json.dumps(world_to_json(recording.world, recording.allocate_topics()))


def layout_record(recording: Recording) -> bytes:
    """Return the record of what is on which topic, and how sensors are mounted and made."""
    return records.record(records.METADATA, records.text(OUR_WORLD), records.mapping({LAYOUT: layout_of(recording)}))


class McapSink(ContainerSink):
    """Writes slabs to one MCAP file."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Open the file and write its head and `/tf_static`. Raise `SinkError` where that cannot be."""
        check_head(path, recording)
        self._blocks = Blocks(recording)
        self._container = Container(path)
        self._out: ByteArray = np.empty(0, dtype=np.uint8)
        self._pending: list[bytes] = []
        self._schemas: dict[tuple[str, str], int] = {}
        self._channels: dict[Source, Channel] = {}
        try:
            self._container.add_metadata(description(recording), "navsense")
            self._container.add_metadata(layout_record(recording), OUR_WORLD)
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
            self._write(fixed)

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
        places = {**message.layout.behind(len(head)), **RECORD_PLACES}
        channel = Channel(number, message, head + data, places)
        self._channels[source] = channel
        return channel

    def write(self, slab: Slab) -> None:
        """Write all messages of a slab, as chunks that follow one another in time."""
        with add_path_to_errors(self._container.path):
            blocks = self._blocks.of(slab)
            for block in blocks:
                self._channel(block.source)
            for span in self._spans([block for block in blocks if block.time.size]):
                self._write(span)

    def _bytes(self, block: Block) -> int:
        """Return how many bytes the records of a block take."""
        return int(block.time.size * len(self._channels[block.source].template))

    def _spans(self, blocks: list[Block]) -> Iterator[list[Block]]:
        """Yield the blocks in spans of time, each of a chunk's size."""
        if not blocks:
            return
        largest = max(blocks, key=self._bytes)
        cut = largest.log[largest.log.size // 2]
        fits = sum(map(self._bytes, blocks)) <= CHUNK_BYTES and self._bytes(largest) <= LARGEST
        if fits or cut == largest.log[0]:
            yield blocks
            return
        places = [int(np.searchsorted(block.log, cut)) for block in blocks]
        halves = [(b.part(0, at), b.part(at, b.time.size)) for b, at in zip(blocks, places, strict=True)]
        yield from self._spans([early for early, _ in halves if early.time.size])
        yield from self._spans([late for _, late in halves if late.time.size])

    def _write(self, blocks: list[Block]) -> None:
        """Write one chunk: definitions that are new, then each channel's messages."""
        definitions = np.frombuffer(b"".join(self._pending), dtype=np.uint8)
        entries, size = list[Entries](), definitions.size
        for block in blocks:
            channel, count = self._channels[block.source], block.time.size
            width = len(channel.template)
            offsets = np.arange(size, size + width * count, width, dtype=np.uint64)
            entries.append(ordered(channel.number, block.log, offsets))
            size += width * count
        # No CRC of what is unpacked: each block has its checksum.
        self._container.write_packed(self._packed(definitions, blocks), "lz4", size, 0, entries)
        self._pending.clear()

    def _packed(self, definitions: ByteArray, blocks: list[Block]) -> Iterator[memoryview]:
        """Yield one frame of LZ4 piece by piece, each in the same few bytes, which so stay near the processor."""
        channels = [self._channels[block.source] for block in blocks]
        counts = [block.time.size for block in blocks]
        room = max(map(most, (len(channel.template) for channel in channels), counts), default=0)
        room += len(FRAME) + definitions.size + AROUND * (2 + definitions.size // LARGEST) + PIECE_BYTES
        if self._out.size < room:
            self._out = np.empty(room, dtype=np.uint8)
        out = self._out
        out[: len(FRAME)] = np.frombuffer(FRAME, dtype=np.uint8)
        at = put_stored(out, len(FRAME), definitions)
        for channel, block in zip(channels, blocks, strict=True):
            if at > PIECE_BYTES:
                yield out[:at].data
                at = 0
            at = channel.put(out, at, block)
        yield out[:at].data
        yield memoryview(FRAME_END)
