"""Recordings as MCAP, ROS 2 profile: CDR messages in chunks, written in blocks rather than message by message.

log_time is the true time of arrival, publish_time the true time of the sample, header.stamp what the sensor's clock
showed. A chunk holds one span of time of all channels, at most 1 MB before compression.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from navsense import messages
from navsense.errors import SinkError, Where
from navsense.messages import clock, current, transforms, truth
from navsense.messages.base import GLOBAL_TIME, SEC_MAX, Part, clock_of, stamps
from navsense.messages.cdr import Message, Place
from navsense.series import Current, Reading, Slab, Truth, nanoseconds
from navsense.sinks import frames, records
from navsense.sinks.base import Recording, asked, numbers, version
from navsense.sinks.container import Compression, Container, Entries
from navsense.sinks.topics import Topics
from navsense.typing import AnyArray, IntArray, WordArray

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


@dataclass(frozen=True, eq=False)
class Block:
    """Messages of one channel that are not yet bytes; rows in order of `log` and `time` (n,) ns, arrays time first.

    `log` is when a message arrives, `time` the instant that it is about.
    """

    channel: Channel
    log: WordArray
    time: WordArray
    stamp: IntArray
    arrays: Mapping[str, AnyArray]

    @property
    def bytes(self) -> int:
        """Return how many bytes the records take."""
        return int(self.time.size * self.channel.dtype.itemsize)

    def part(self, start: int, end: int) -> Block:
        """Return some of the rows."""
        span = slice(start, end)
        arrays = {name: array[span] for name, array in self.arrays.items()}
        return Block(self.channel, self.log[span], self.time[span], self.stamp[span], arrays)


class McapSink:
    """Writes slabs to one MCAP file."""

    def __init__(self, path: Path, recording: Recording, compression: Compression = "zstd") -> None:
        """Open the file and write its head and `/tf_static`. Raise `SinkError` where that cannot be."""
        self._recording = recording
        self._world = recording.world
        self._refuse(path)
        self._container = Container(path, compression=compression)
        self._pending: list[bytes] = []
        self._schemas: dict[tuple[str, str], int] = {}
        self._channels: dict[str, Channel] = {}
        self._topics = Topics(self._world)
        self._sensors = {sensor.name: sensor for sensor in self._world.sensors}
        self._moving = [m.canonical_link for m in self._world.models if frames.moves(m)]
        try:
            self._describe()
            self._latch()
        except BaseException:
            self._container.release()
            raise

    def __enter__(self) -> Self:
        """Return this sink."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close, or end after an error."""
        if kind is None:
            self.close()
        else:
            self.abort()

    def _refuse(self, path: Path) -> None:
        """Raise where the format cannot hold the recording."""
        recording, where = self._recording, Where(str(path))
        if len(recording.runs) != 1:
            raise SinkError(
                "an MCAP file holds one run",
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

    def _describe(self) -> None:
        """Write what the recording is of."""
        recording = self._recording
        values = {
            "world": self._world.name,
            "seed": str(recording.seed),
            "epoch": str(recording.epoch),
            "runs": numbers(recording),
            "version": version(),
        }
        duration = asked(recording)
        if duration is not None:
            values["duration_asked"] = repr(duration)
        body = (records.text("navsense"), records.mapping(values))
        self._container.add_metadata(records.record(records.METADATA, *body), "navsense")

    def _latch(self) -> None:
        """Make the sensors' channels and write the transforms that never change."""
        for sensor in self._world.sensors:
            self._sensor_channels(sensor.name, "reading")
        fixed = frames.fixed(self._world)
        latched: list[Block] = []
        if fixed:
            channel = self._channel("/tf_static", transforms.message([(f.parent, f.child) for f in fixed]), LATCHED)
            stamp = nanoseconds(self._recording.epoch, np.zeros(1))
            arrays = {
                "position": np.array([[f.pose.position for f in fixed]]),
                "orientation": np.array([[f.pose.rotation for f in fixed]]),
            }
            time = stamp.astype(np.uint64)
            latched = [Block(channel, time, time, stamp, arrays)]
        if self._pending:
            self._container.write_chunks([self._encoded(latched)])

    def _channel(self, topic: str, message: Message, qos: str = "", key: str = "") -> Channel:
        """Return the channel of a topic, made at its first use; `key` tells channels of one topic apart."""
        if topic + key in self._channels:
            return self._channels[topic + key]
        kind = (message.type, message.schema)
        if kind not in self._schemas:
            number = self._schemas[kind] = len(self._schemas) + 1
            self._container.schemas[number] = records.schema(number, message.type, message.schema)
            self._pending.append(self._container.schemas[number])
        number = len(self._channels)
        if number > 65535:
            raise SinkError("too many topics for one MCAP file", number, allowed="at most 65536")
        record = records.channel(number, self._schemas[kind], topic, {"offered_qos_profiles": qos})
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
        self._channels[topic + key] = channel
        return channel

    def _sensor_channels(self, name: str, part: Part) -> list[Channel]:
        """Return the channels of one of a sensor's series: its own, then those of its companions."""
        found, sensor = [], self._sensors[name]
        for beside in messages.topics_beside(sensor):
            topic = self._topics.sensor(name, part, beside)
            if topic not in self._channels:
                self._channel(topic, messages.for_sensor(sensor, part, beside))
            found.append(self._channels[topic])
        return found

    def write(self, slab: Slab) -> None:
        """Write all messages of a slab, as chunks that follow one another in time."""
        blocks: list[Block] = []
        for name, reading in slab.readings.items():
            blocks += self._reading_blocks(name, reading)
        if self._recording.truth:
            for name, part in slab.truth.items():
                blocks += self._truth_blocks(name, part)
            if slab.current is not None:
                blocks.append(self._current_block(slab.current))
        blocks += self._clock_and_poses(slab)
        spans = self._spans([block for block in blocks if block.time.size])
        self._container.write_chunks(self._encoded(span) for span in spans)

    def _reading_blocks(self, name: str, reading: Reading) -> list[Block]:
        """Return the messages of one sensor: what it says, what is true, and its hidden errors."""
        if name not in self._sensors:
            raise SinkError("a reading of a sensor that the world does not have", name)
        if reading.clock_error.ndim != 1:
            raise SinkError(f"readings of {name!r} carry a run axis", remedy="write many runs to .npz or .parquet")
        rows = None if reading.emitted.all() else np.flatnonzero(reading.emitted)
        series: dict[Part, Mapping[str, AnyArray]] = {"reading": reading.arrays}
        if self._recording.truth:
            series["ideal"] = reading.truth
            if any(key in reading.errors for key in reading.arrays):
                series["bias"] = {key: value for key, value in reading.errors.items() if key in reading.arrays}
        time, stamp = reading.true_stamp.astype(np.uint64), stamps(reading, clock_of(self._sensors[name]))
        arrived = time if reading.arrivals is None else nanoseconds(reading.epoch, reading.arrivals).astype(np.uint64)
        blocks = []
        for part, arrays in series.items():
            kept = arrays if rows is None else {key: array[rows] for key, array in arrays.items()}
            spans = (arrived if part == "reading" else time, time, stamp)
            spans = spans if rows is None else (spans[0][rows], spans[1][rows], spans[2][rows])
            blocks += [Block(channel, *spans, kept) for channel in self._sensor_channels(name, part)]
        return blocks

    def _truth_blocks(self, name: str, part: Truth) -> list[Block]:
        """Return the ground truth of one link."""
        pose_topic, accel_topic = self._topics.truth(name)
        stamp = part.stamp
        time = stamp.astype(np.uint64)
        pose = {
            "position": part.position,
            "orientation": part.orientation,
            "velocity": part.velocity,
            "angular_velocity": part.angular_velocity,
        }
        accel = {
            "orientation": part.orientation,
            "acceleration": part.acceleration,
            "angular_acceleration": part.angular_acceleration,
        }
        return [
            Block(self._channel(pose_topic, truth.odometry(name)), time, time, stamp, pose),
            Block(self._channel(accel_topic, truth.accel(name)), time, time, stamp, accel),
        ]

    def _current_block(self, part: Current) -> Block:
        """Return the velocity of the water."""
        if part.velocity.ndim != 2:
            raise SinkError("the current carries a run axis", remedy="write many runs to .npz or .parquet")
        stamp = part.stamp
        time = stamp.astype(np.uint64)
        channel = self._channel(self._topics.current, current.message())
        return Block(channel, time, time, stamp, {"velocity": part.velocity})

    def _clock_and_poses(self, slab: Slab) -> list[Block]:
        """Return `/clock` at every instant of truth, else of any reading, and `/tf` of the models that move."""
        spans = [part.stamp for part in slab.truth.values()]
        spans = spans or [reading.true_stamp for reading in slab.readings.values()]
        if not spans:
            return []
        alike = all(np.array_equal(span, spans[0]) for span in spans[1:])
        stamp = spans[0] if alike else np.unique(np.concatenate(spans))
        time = stamp.astype(np.uint64)
        blocks = [Block(self._channel("/clock", clock.message()), time, time, stamp, {})]
        groups: dict[bytes, list[Truth]] = {}
        for name in self._moving:
            if name in slab.truth:
                groups.setdefault(slab.truth[name].time.tobytes(), []).append(slab.truth[name])
        return blocks + [self._poses(parts) for parts in groups.values()]

    def _poses(self, parts: list[Truth]) -> Block:
        """Return `/tf` of models whose truth has the same instants; each such group has a channel of its own."""
        names = [(truth.WORLD, part.name) for part in parts]
        channel = self._channel("/tf", transforms.message(names), key=repr(names))
        stamp = parts[0].stamp
        arrays = {
            "position": np.stack([part.position for part in parts], axis=1),
            "orientation": np.stack([part.orientation for part in parts], axis=1),
        }
        time = stamp.astype(np.uint64)
        return Block(channel, time, time, stamp, arrays)

    def _spans(self, blocks: list[Block]) -> Iterator[list[Block]]:
        """Yield the blocks in spans of time, each of a chunk's size."""
        if not blocks:
            return
        largest = max(blocks, key=lambda block: block.bytes)
        cut = largest.log[largest.log.size // 2]
        if sum(block.bytes for block in blocks) <= CHUNK_BYTES or cut == largest.log[0]:
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
        data = np.empty(len(definitions) + sum(block.bytes for block in blocks), dtype=np.uint8)
        data[: len(definitions)] = np.frombuffer(definitions, dtype=np.uint8)
        entries, at = [], len(definitions)
        for block in blocks:
            channel, count = block.channel, block.time.size
            width = channel.dtype.itemsize
            span = data[at : at + block.bytes]
            span.reshape(count, width)[:] = channel.template
            rows = span.view(channel.dtype)
            rows["record.sequence"] = (np.arange(count) + channel.sequence) & 0xFFFFFFFF
            rows["record.log_time"] = block.log
            rows["record.publish_time"] = block.time
            channel.message.fill(rows, block.stamp, block.arrays)
            channel.sequence += count
            entries.append(Entries(channel.number, block.log, at + width * np.arange(count, dtype=np.uint64)))
            at += block.bytes
        return data.data, entries

    def close(self) -> None:
        """Write the summary; the file is then whole."""
        self._container.finish()

    def abort(self) -> None:
        """Write the summary if it can be written; what is there is readable, or can be recovered."""
        try:
            self._container.finish()
        except SinkError:
            self._container.release()
