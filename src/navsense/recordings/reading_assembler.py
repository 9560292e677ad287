"""Readings, truth and currents from a recording of messages, slice by slice: the inverse of `message_builder`.

    time = publish_time - epoch,   clock_error = header.stamp - publish_time        in a recording of navsense
    time = header.stamp - epoch,   clock_error = 0,   arrival = log_time - epoch    in a recording of another program

A bag has no publish time. In a bag of navsense the time of validity of a reading is the log time of its `ideal`
message, if it has one. The epoch is in the metadata; without metadata it is the second of the first message. Samples
that were not published are not in the recording.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from navsense import messages
from navsense.core import inputs
from navsense.core.errors import RecordingError
from navsense.core.pose import Pose
from navsense.core.series import NANOSECONDS, Current, Layers, Reading, TimeSlice, Truth, all_true, to_nanoseconds
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray, Times
from navsense.messages import world_topics
from navsense.messages.base import NANOSECONDS_PER_SECOND, SeriesKind
from navsense.motion.base import MotionBlock
from navsense.motion.derived import attach
from navsense.recordings import dataset, static_transforms
from navsense.recordings.channels import Channel, MessageReader
from navsense.recordings.columns import (
    OWN_TYPE_PREFIX,
    Arrays,
    ColumnBatch,
    TopicBuffer,
    align_columns,
    has_same_type,
    is_readable,
    join_columns,
)
from navsense.recordings.header import RecordingHeader
from navsense.recordings.mcap.records import DamagedError
from navsense.recordings.message_reader import parse_stored_world
from navsense.recordings.topic_names import FIXED, SERIES_KINDS, TopicNames, allocate_topics
from navsense.recordings.world_inference import infer_world, normalize_topics, select_channels
from navsense.recordings.world_json import StoredWorld, UnspecifiedLatency, format_note, world_from_json
from navsense.world import Model, MountedSensor, World

IGNORED_TOPICS = frozenset(("/rosout", "/parameter_events"))
"""Topics that are ignored."""

SLICE_BYTES = 12_000_000
"""Bytes of the messages of one time slice."""

MAX_WAITING_ROWS = 20_000
"""Largest number of rows of a sensor that wait for its fault messages."""

SeriesKey = tuple[SeriesKind, str]
"""Series of a sensor and name of the companion message, "" for the main message."""

GapMasks = Mapping[SeriesKey, BoolArray]
"""Rows (n,) of each series without a message."""


@dataclass(eq=False)
class TimeBase:
    """Times of a recording: its epoch (s), if navsense wrote it, and if it has the rates of the sensors."""

    epoch: int
    is_navsense: bool
    has_rates: bool

    def to_seconds(self, stamp: IntArray, rate: float) -> Times:
        """Return stamps (n,) ns as s after the epoch, exactly at the instants of a known rate (Hz)."""
        since = stamp - self.epoch * NANOSECONDS_PER_SECOND
        found: Times = since / NANOSECONDS
        if self.has_rates and rate:
            at = np.rint(found * rate) / rate
            found = np.where(np.rint(at * NANOSECONDS).astype(np.int64) == since, at, found)
        return found

    def subtract_latency(self, log_time: IntArray, sensor: MountedSensor) -> IntArray:
        """Return log times (n,) ns minus the constant latency of a sensor, the inverse of `Latency`."""
        delay = _constant_latency(sensor)
        if not delay:
            return log_time
        found = log_time - round(delay * NANOSECONDS)
        if self.has_rates and sensor.rate:
            # Sum and instant were rounded to ns, so their difference may be off by one.
            at = np.rint((found - self.epoch * NANOSECONDS_PER_SECOND) / NANOSECONDS * sensor.rate) / sensor.rate
            found = np.where(to_nanoseconds(self.epoch, at + delay) == log_time, to_nanoseconds(self.epoch, at), found)
        return found


@dataclass(eq=False)
class SensorAssembler:
    """Assembles the readings of one sensor from its topics."""

    sensor: MountedSensor
    time_base: TimeBase
    buffers: dict[SeriesKey, TopicBuffer] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    incomplete: set[SeriesKey] = field(default_factory=set)
    faults: TopicBuffer | None = None
    _last_fault_time: int = -1
    _rows: int = 0
    _unmatched: int = 0
    _held: list[Reading] = field(default_factory=list)
    _stopped_waiting: bool = False

    @property
    def main_key(self) -> SeriesKey:
        """The series that the others are matched to: the main message, or its first companion that has arrays."""
        found = (key for key, buffer in self.buffers.items() if key[0] == "reading" and not buffer.has_no_arrays)
        return next(found, ("reading", ""))

    def pop(self, *, last: bool) -> Reading | None:
        """Remove and return the complete rows, None without any; with `last`, also rows with missing messages.

        Rows of a sensor with faults wait for the first fault message, at most `MAX_WAITING_ROWS` of them.
        """
        was_released = self._is_released
        found = self._pop_aligned(last=last)
        if self.faults is None or was_released or not (found or self._held):
            return found
        self._held += [found] if found else []
        self._stopped_waiting = self._rows > MAX_WAITING_ROWS
        if not (self._is_released or last):
            return None
        joined, self._held = dataset.join_readings(self._held), []
        if self._is_released:
            return joined
        return replace(joined, fault={})

    def _pop_aligned(self, *, last: bool) -> Reading | None:
        """Remove and return the complete rows, with fault flags 0 for rows without a fault message."""
        own = self.buffers[self.main_key]
        if own.has_no_arrays:
            return None
        others = {key: c for key, c in self.buffers.items() if not c.has_no_arrays and key != self.main_key}
        if last:
            others = {key: buffer for key, buffer in others.items() if buffer.batches}
        limit = own.count if last else self._count_rows_with_faults()
        together = [key for key in others if key[0] == "reading"]
        found = align_columns(
            own,
            others,
            limit,
            self.incomplete,
            by_publish_time=self.time_base.is_navsense,
            last=last,
            simultaneous=together,
        )
        if found is None:
            return None
        for key in found.missing:
            if key not in self.incomplete:
                self.incomplete.add(key)
                self.notes.append(_format_gaps(others[key], own))
        return self._build_reading(found.main, found.others, found.missing)

    def _count_rows_with_faults(self) -> int:
        """Return the number of waiting rows with known fault flags."""
        own = self.buffers[self.main_key]
        if self.faults is None or not own.batches:
            return own.count
        known = self.faults.batches[-1].log_time[-1:] if self.faults.batches else np.zeros(0, dtype=np.int64)
        last = int(known[0]) if known.size else self._last_fault_time
        return max(
            int(np.searchsorted(join_columns(own.batches).log_time, last, side="right")), own.count - MAX_WAITING_ROWS
        )

    def _validity_and_stamp(
        self, main: ColumnBatch, parts: Mapping[SeriesKey, ColumnBatch]
    ) -> tuple[IntArray, IntArray]:
        """Return the times of validity (n,) ns of the messages, and the stamps."""
        if not self.time_base.is_navsense:
            shown = np.where(main.stamp == 0, main.log_time, main.stamp)
            return shown, shown
        return _times_of_validity(main, parts), main.stamp

    def _build_reading(self, main: ColumnBatch, parts: Mapping[SeriesKey, ColumnBatch], gaps: GapMasks) -> Reading:
        """Return rows as a reading."""
        sensor, head = self.sensor, self.time_base
        validity, stamp = self._validity_and_stamp(main, parts)
        is_known = head.is_navsense and (head.has_rates or sensor.spec.type in messages.TIME_OF_VALIDITY_READERS)
        late = sensor.latency is not None if is_known else bool((main.log_time != validity).any())
        sample_time = validity
        if sensor.spec.type in messages.TIME_OF_VALIDITY_READERS and head.is_navsense:
            sample_time = (
                head.subtract_latency(main.log_time, sensor) if _constant_latency(sensor) is not None else validity
            )
        time = head.to_seconds(sample_time, sensor.rate)
        instant = time if sample_time is validity else head.to_seconds(validity, 0.0)
        fault_time = sample_time
        if not head.is_navsense:
            fault_time = (
                main.log_time
                if sensor.spec.type in messages.TIME_OF_VALIDITY_READERS
                else _times_of_validity(main, parts)
            )
        extra = {"time_of_validity": instant} if sensor.spec.type in messages.TIME_OF_VALIDITY_READERS else {}
        arrays = _merge_arrays("reading", parts, gaps, extra | main.arrays)
        order = [output.name for output in sensor.spec.outputs]
        kept = {name: arrays[name] for name in order if name in arrays}
        first = next(iter(kept.values()), np.zeros(time.size))
        return Reading(
            name=sensor.name,
            type=sensor.spec.type,
            frame=sensor.frame,
            unit={output.name: output.unit for output in sensor.spec.outputs if output.name in kept},
            time=time,
            clock_error=(stamp - head.epoch * NANOSECONDS_PER_SECOND) / NANOSECONDS - instant,
            arrays=kept,
            ideal=_merge_arrays("ideal", parts, gaps),
            bias=_merge_arrays("bias", parts, gaps),
            fault=self._match_faults(fault_time),
            valid=np.asarray(np.isfinite(first).reshape(time.size, -1).any(axis=1)),
            emitted=all_true((time.size,)),
            epoch=head.epoch,
            arrivals=(main.log_time - head.epoch * NANOSECONDS_PER_SECOND) / NANOSECONDS if late else None,
        )

    def _match_faults(self, times: IntArray) -> Mapping[str, BoolArray]:
        """Return the rows on which each kind of fault acts at true times (n,) ns; false where no message exists."""
        if self.faults is None:
            return {}
        flags, alike = np.zeros(times.size, dtype=np.uint8), np.zeros(times.size, dtype=np.bool_)
        known = join_columns(self.faults.batches) if self.faults.batches else None
        if known is not None and known.log_time.size:
            self._last_fault_time = int(known.log_time[-1])
            at = np.minimum(np.searchsorted(known.log_time, times), known.log_time.size - 1)
            alike = known.log_time[at] == times
            flags[alike] = known.arrays[world_topics.FAULT][at[alike]]
            self.faults.batches = [known.split(int(at[-1]))[1]]
        self._rows += times.size
        self._unmatched += int((~alike).sum())
        return world_topics.unpack_fault_bits(flags)

    @property
    def _has_fault_messages(self) -> bool:
        """True if a row has a fault message."""
        return self._unmatched < self._rows

    @property
    def _is_released(self) -> bool:
        """True if rows no longer wait for fault messages."""
        return self._stopped_waiting or self._has_fault_messages

    def format_losses(self) -> list[str]:
        """Return the notes about topics with lost messages."""
        if self.faults is None or not self._unmatched:
            return self.notes
        whose, but = "its sensor's readings", ""
        if self._is_released:
            whose, but = f"{self._unmatched} of {self._rows} of {whose}", "; they are taken as without a fault"
        return [*self.notes, f"topic {self.faults.channel.topic}: has no message of the instants of {whose}{but}"]


def _merge_arrays(
    part: SeriesKind, parts: Mapping[SeriesKey, ColumnBatch], gaps: GapMasks, initial: Arrays | None = None
) -> Arrays:
    """Merge the arrays of one series.

    If a message is missing, its arrays have the values of the previous companion in `parts`.
    """
    found = dict(initial or {})
    for key, batch in parts.items():
        if key[0] == part:
            found |= {name: _fill_gaps(array, found.get(name), gaps.get(key)) for name, array in batch.arrays.items()}
    return found


def _fill_gaps(array: AnyArray, before: AnyArray | None, gaps: BoolArray | None) -> AnyArray:
    """Return an array with the rows `gaps` (n,) from `before`, the array of the same name in another message."""
    if before is None or gaps is None or before.shape != array.shape:
        return array
    found = array.copy()
    found[gaps] = before[gaps]
    return found


def _constant_latency(sensor: MountedSensor) -> float | None:
    """Return the constant latency (s) of a sensor, None for a random or unknown one."""
    latency = sensor.latency
    if latency is None:
        return 0.0
    return (
        latency.fixed + latency.mean if latency.stddev == 0.0 and not isinstance(latency, UnspecifiedLatency) else None
    )


def _times_of_validity(main: ColumnBatch, parts: Mapping[SeriesKey, ColumnBatch]) -> IntArray:
    """Return the times of validity (n,) ns: the log times of the bias or ideal messages, if there are any."""
    found = main.publish_time
    for part in ("bias", "ideal"):
        for log in (batch.log_time for (kind, _), batch in parts.items() if kind == part):
            found = np.where(log == 0, found, log)
    return found


def _format_gaps(buffer: TopicBuffer, main: TopicBuffer) -> str:
    """Return the note about a topic with lost messages."""
    return f"topic {buffer.channel.topic}: has not a message for each of {main.channel.topic}; what is missing is NaN"


@dataclass(eq=False)
class LinkAssembler:
    """Assembles the truth of one link from its two topics."""

    link: str
    pose: TopicBuffer
    accel: TopicBuffer | None
    notes: list[str] = field(default_factory=list)

    def pop(self, time_base: TimeBase, *, last: bool) -> Truth | None:
        """Remove and return the complete rows, None without any; with `last` also rows without acceleration."""
        others = {"accel": self.accel} if self.accel and (self.accel.batches or not last) else {}
        found = align_columns(
            self.pose, others, self.pose.count, self.notes and others, by_publish_time=time_base.is_navsense, last=last
        )
        if found is None:
            return None
        if self.accel and found.missing and not self.notes:
            self.notes.append(_format_gaps(self.accel, self.pose))
        shown, stamp = found.main.arrays, found.main.stamp
        unknown = np.full((stamp.size, 3), np.nan)
        rest: Arrays = {"acceleration": unknown, "angular_acceleration": unknown}
        if found.others:
            rows = found.others["accel"].arrays
            turned = world_topics.rotate_inverse(
                world_topics.conjugate_quaternions(shown["orientation"]), rows["linear"]
            )
            rest = {"acceleration": turned, "angular_acceleration": rows["angular"]}
        return Truth(self.link, time_base.to_seconds(stamp, 0.0), **shown, **rest, epoch=time_base.epoch)


@dataclass(frozen=True, eq=False)
class TruthMotion:
    """The truth of a link as a motion, valid at the recorded times only."""

    truth: Truth

    @property
    def end(self) -> float:
        """Last instant (s)."""
        return math.inf

    def at(self, _time: Times) -> MotionBlock:
        """Return the truth; the instants are ignored."""
        t = self.truth
        rest = (t.velocity, t.angular_velocity, t.acceleration, t.angular_acceleration)
        return MotionBlock(t.position, t.orientation, *rest)


def transform_truth(truth: Truth, pose: Pose, name: str) -> Truth:
    """Return the truth of a frame with a fixed pose on a link."""
    block = attach(TruthMotion(truth), pose).at(truth.time)
    p, q, v, w, a, alpha = block.arrays
    return Truth(name, truth.time, p, q, v, w, a, alpha, truth.epoch)


class ReadingAssembler:
    """Reads a recording of messages as time slices. `header` is its header, `losses` lists the skipped content."""

    def __init__(self, reader: MessageReader) -> None:
        """Assign the topics to sensors and links.

        Raises `RecordingError` if the recording has neither a world nor messages.
        """
        self._reader = reader
        layout = parse_stored_world(reader)
        try:
            stored_world = world_from_json(layout) if layout else None
            self.stored_world = stored_world or StoredWorld(
                infer_world(reader), notes=(format_note(layout),) if layout else ()
            )
            self.world: World = self.stored_world.world
            runs = [int(run) for run in inputs.parse_json(reader.metadata.get("runs", "[0]"))] or [0]
            epoch = (
                int(reader.metadata["epoch"])
                if "epoch" in reader.metadata
                else self._first_arrival() // NANOSECONDS_PER_SECOND
            )
            seed, asked = int(reader.metadata.get("seed", 0)), float(reader.metadata.get("duration_asked", math.inf))
        except (DamagedError, ValueError, TypeError) as error:
            raise RecordingError(f"the recording is damaged: {error}", where=reader.where) from error
        self.time_base = TimeBase(epoch, reader.is_navsense, stored_world is not None)
        self.header = RecordingHeader(self.world, epoch, seed, asked, runs[:1], topics=self.stored_world.topics)
        self._buffers: dict[str, TopicBuffer] = {}
        selected = select_channels(reader.channels)
        channels = {name: selected[topic] for topic, name in normalize_topics(selected).items()}
        topics = self.stored_world.topics or allocate_topics(self.world)
        self._sensors = [
            one for s in self.world.sensors if (one := self._make_sensor_assembler(s, topics, channels)) is not None
        ]
        self._links = [
            found
            for link in self._list_links()
            if (found := self._make_link_assembler(link, topics, channels)) is not None
        ]
        self._current = (
            self._make_buffer(channels.get(topics.current), world_topics.CURRENT_TYPE, _extract_velocity)
            if topics.current
            else None
        )
        self._layers = self._make_layers_buffer(channels.get(topics.layers)) if topics.layers else None
        known = IGNORED_TOPICS | {topics.get_common_topic(what) for what in FIXED}
        unread = (channel for channel in reader.channels if channel.topic not in known and not self._is_read(channel))
        self.losses = list(dict.fromkeys(_format_unread(channel) for channel in unread))

    def _is_read(self, channel: Channel) -> bool:
        """Return True if the messages of a channel are read."""
        buffer = self._buffers.get(channel.topic)
        return buffer is not None and has_same_type(channel, buffer.channel)

    def _first_arrival(self) -> int:
        """Return the log time (ns) of the first message, 0 without messages."""
        return next((item.log_time for item in self._reader.read_messages()), 0)

    def _list_links(self) -> list[str]:
        """Return the links of the world."""
        return [link.name for model in self.world.models for link in model.links]

    def _make_buffer(self, channel: Channel | None, message_type: str, extract: Any) -> TopicBuffer | None:
        """Return the buffer of a topic, None for a missing topic and for another type or definition."""
        if channel is None or not channel.is_ros or (message_type and channel.type != message_type):
            return None
        if not is_readable(channel):
            return None
        buffer = TopicBuffer(channel, extract)
        self._buffers[channel.topic] = buffer
        return buffer

    def _make_sensor_assembler(
        self, sensor: MountedSensor, topics: TopicNames, channels: Mapping[str, Channel]
    ) -> SensorAssembler | None:
        """Return the assembler of one sensor, None without its main topic."""
        found = SensorAssembler(sensor, self.time_base)
        for part in SERIES_KINDS:
            for companion in topics.list_companions(sensor.name, part):
                channel = channels.get(topics.get_sensor_topic(sensor.name, part, companion))
                is_generic = channel is not None and channel.type.startswith(OWN_TYPE_PREFIX)

                def extract(
                    rows: AnyArray, part: SeriesKind = part, companion: str = companion, is_generic: bool = is_generic
                ) -> Arrays:
                    return messages.extract_arrays(sensor, rows, part, companion, is_generic=is_generic)

                buffer = self._make_buffer(channel, "", extract)
                if buffer is not None:
                    found.buffers[part, companion] = buffer
        # Fault messages have the arrival time. It is known only without latency, or with a constant one.
        if sensor.faults.has_faults and (
            sensor.spec.type not in messages.TIME_OF_VALIDITY_READERS or _constant_latency(sensor) is not None
        ):
            found.faults = self._make_buffer(
                channels.get(topics.get_fault_topic(sensor.name)), world_topics.FAULT_TYPE, _extract_faults
            )
        return found if ("reading", "") in found.buffers else None

    def _make_link_assembler(
        self, link: str, topics: TopicNames, channels: Mapping[str, Channel]
    ) -> LinkAssembler | None:
        """Return the assembler of the truth of one link, None without its topics."""
        pose_topic, accel_topic = topics.get_truth_topics(link)
        pose = self._make_buffer(channels.get(pose_topic), world_topics.ODOMETRY_TYPE, world_topics.extract_truth)
        accel = self._make_buffer(channels.get(accel_topic), world_topics.ACCEL_TYPE, _extract_acceleration)
        return LinkAssembler(link, pose, accel) if pose is not None else None

    def _make_layers_buffer(self, channel: Channel | None) -> TopicBuffer | None:
        """Return the buffer of the velocities at several depths."""
        layers = self.world.current_topic.layers
        count = len(layers.depths) if layers else 0
        return self._make_buffer(
            channel,
            world_topics.CURRENT_LAYERS_TYPE,
            lambda rows: {"velocity": world_topics.extract_current_layers(rows, count)},
        )

    def iter_slices(self) -> Iterator[TimeSlice]:
        """Yield the content of the recording in time slices of bounded size. Raises `RecordingError`."""
        size = 0
        for batches in self._reader.read_batches(self._buffers):
            for batch in batches:
                if self._is_read(batch.channel):
                    self._buffers[batch.channel.topic].append(batch)
                    size += batch.size
            if size >= SLICE_BYTES:
                yield self._build_slice(last=False)
                size = 0
        yield self._build_slice(last=True)
        noted = [one.format_losses() for one in self._sensors] + [one.notes for one in self._links]
        self.losses += [note for notes in noted for note in notes]
        self.losses += [_format_empty(buffer) for buffer in self._buffers.values() if buffer.empty_count]
        own = [sensor.buffers[sensor.main_key] for sensor in self._sensors]
        own += [
            one
            for sensor in self._sensors
            for one in sensor.buffers.values()
            if one.channel.type.startswith(OWN_TYPE_PREFIX)
        ]
        self.losses += [_format_unread(buffer.channel) for buffer in dict.fromkeys(own) if buffer.has_no_arrays]

    def _build_slice(self, *, last: bool) -> TimeSlice:
        """Remove and return the complete rows of all sensors and links."""
        readings = {one.sensor.name: found for one in self._sensors if (found := one.pop(last=last)) is not None}
        truth = {one.link: part for one in self._links if (part := one.pop(self.time_base, last=last)) is not None}
        for model in self.world.models:
            if model.canonical_link in truth and static_transforms.is_moving(model):
                truth |= {
                    link: own
                    for link, own in _fixed_link_truth(model, truth[model.canonical_link])
                    if link not in truth
                }
        times = [one.time for one in readings.values()] + [one.time for one in truth.values()]
        start = min((float(time[0]) for time in times), default=0.0)
        end = max((float(time[-1]) for time in times), default=0.0)
        return TimeSlice(start, end, readings, truth, self._pop_current(last=last))

    def _pop_current(self, *, last: bool) -> Current | None:
        """Remove and return the complete rows of the water's velocity, None without any."""
        if self._current is None:
            return None
        others = {"layers": self._layers} if self._layers and (self._layers.batches or not last) else {}
        taken = align_columns(
            self._current, others, self._current.count, (), by_publish_time=self.time_base.is_navsense, last=last
        )
        if taken is None:
            return None
        batch, shown = taken.main, self.world.current_topic
        time = self.time_base.to_seconds(batch.stamp, shown.rate)
        found = Current(
            "/" + shown.topic.strip("/"), shown.position, time, batch.arrays["velocity"], self.time_base.epoch
        )
        if "layers" not in taken.others or shown.layers is None:
            return found
        deep: FloatArray = taken.others["layers"].arrays["velocity"]
        return replace(found, topic=shown.topic, layers=Layers(shown.layers.topic, shown.layers.depths, deep))


def _format_unread(channel: Channel) -> str:
    """Return the note about a topic that is not read."""
    return f"topic {channel.topic} of {channel.type or channel.encoding}: nothing that is read"


def _format_empty(buffer: TopicBuffer) -> str:
    """Return the note about empty messages."""
    count = buffer.empty_count
    return f"topic {buffer.channel.topic}: {count} {'message' if count == 1 else 'messages'} without any bytes"


def _extract_velocity(rows: AnyArray) -> Arrays:
    """Return the velocities of the water."""
    return {"velocity": world_topics.extract_current(rows)}


def _extract_faults(rows: AnyArray) -> Arrays:
    """Return which faults act."""
    return {world_topics.FAULT: rows["data"]}


def _extract_acceleration(rows: AnyArray) -> Arrays:
    """Return the accelerations in the frame of the link."""
    return {"linear": rows["accel.linear"], "angular": rows["accel.angular"]}


def _fixed_link_truth(model: Model, truth: Truth) -> Iterator[tuple[str, Truth]]:
    """Yield the truth of each other link of a moving model."""
    root = model.link(model.canonical_link).pose.inverse()
    for link in model.links:
        if link.name != model.canonical_link:
            yield link.name, transform_truth(truth, root @ link.pose, link.name)
