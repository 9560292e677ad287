"""Readings, truth and currents out of a recording of messages, window by window: the inverse of `blocks`.

    time = publish_time - epoch,   clock_error = header.stamp - publish_time        of a recording of navsense
    time = header.stamp - epoch,   clock_error = 0,   arrival = log_time - epoch    of another program's: no truth in it

A bag has one time a message, and so has what was made of one: of a recording of navsense the instant that a reading is
about is that of its `ideal` message, which arrives then, where it has one. The epoch is what the recording says, else
the second of its first message. Rows that were dropped are no messages, and are not there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from navsense import inputs, messages
from navsense.errors import SinkError
from navsense.messages import current as currents
from navsense.messages import fault
from navsense.messages import truth as truths
from navsense.messages.base import NANOSECONDS_PER_SECOND, SeriesKind
from navsense.motion.attached import attach
from navsense.motion.base import MotionBlock
from navsense.pose import Pose
from navsense.recordings import dataset, static_transforms
from navsense.recordings.alignment import align_columns
from navsense.recordings.base import RecordingHeader
from navsense.recordings.columns import (
    OWN_TYPE_PREFIX,
    Arrays,
    ColumnBatch,
    TopicBuffer,
    has_same_type,
    is_readable,
    join_columns,
)
from navsense.recordings.message_reader import MessageChannel, MessageReader, parse_stored_world
from navsense.recordings.records import DamagedError
from navsense.recordings.topic_names import FIXED, PARTS, TopicNames, allocate_topics
from navsense.recordings.world_inference import infer_world, normalize_topics, select_channels
from navsense.recordings.world_json import StoredWorld, UnspecifiedLatency, format_note, world_from_json
from navsense.series import NANOSECONDS, Current, Layers, Reading, TimeSlice, Truth, all_true, to_nanoseconds
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray, Times
from navsense.world import Model, MountedSensor, World

IGNORED_TOPICS = frozenset(("/rosout", "/parameter_events"))
"""Topics that say nothing that is not known from others."""

SLICE_BYTES = 12_000_000
"""Messages of one window take about as many bytes."""

MAX_WAITING_ROWS = 20_000
"""So many rows of a sensor wait for messages of its faults, and no more."""

SeriesKey = tuple[SeriesKind, str]
"""Which of a sensor's series, and whose companion."""

GapMasks = Mapping[SeriesKey, BoolArray]
"""Of which rows (n,) a series has no message."""


@dataclass(eq=False)
class TimeBase:
    """What all sensors of a recording go by: its epoch (s), who wrote it, whether it says their rates."""

    epoch: int
    is_navsense: bool
    has_rates: bool

    def to_seconds(self, stamp: IntArray, rate: float) -> Times:
        """Return stamps (n,) ns as s after the epoch; the very instants of a rate (Hz) where it is known exactly."""
        since = stamp - self.epoch * NANOSECONDS_PER_SECOND
        found: Times = since / NANOSECONDS
        if self.has_rates and rate:
            at = np.rint(found * rate) / rate
            found = np.where(np.rint(at * NANOSECONDS).astype(np.int64) == since, at, found)
        return found

    def subtract_latency(self, log_time: IntArray, sensor: MountedSensor) -> IntArray:
        """Return when messages that arrived at `log` (n,) ns were sent: the latency before, as `Latency` adds it."""
        delay = _constant_latency(sensor)
        if not delay:
            return log_time
        found = log_time - round(delay * NANOSECONDS)
        if self.has_rates and sensor.rate:
            # The sum was rounded to ns, and the instant itself is: their difference may be off by one.
            at = np.rint((found - self.epoch * NANOSECONDS_PER_SECOND) / NANOSECONDS * sensor.rate) / sensor.rate
            found = np.where(to_nanoseconds(self.epoch, at + delay) == log_time, to_nanoseconds(self.epoch, at), found)
        return found


@dataclass(eq=False)
class SensorAssembler:
    """The topics of one sensor."""

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
        """Return the series that the others go by: the sensor's own, or the first beside it where that is not read."""
        found = (key for key, column in self.buffers.items() if key[0] == "reading" and not column.has_no_arrays)
        return next(found, ("reading", ""))

    def pop(self, *, last: bool) -> Reading | None:
        """Return the rows of which all topics are there, None for none; with `last` those whose others never came.

        Of a sensor that has faults none are before there is a fault message of one of them, or they are too many.
        """
        goes_on = self._is_released
        found = self._pop_aligned(last=last)
        if self.faults is None or goes_on or not (found or self._held):
            return found
        self._held += [found] if found else []
        self._stopped_waiting = self._rows > MAX_WAITING_ROWS
        if not (self._is_released or last):
            return None
        whole, self._held = dataset.join_readings(self._held), []
        if self._is_released:
            return whole
        return replace(whole, fault={})

    def _pop_aligned(self, *, last: bool) -> Reading | None:
        """Return the rows of which all topics are there, as `pop` does, with faults 0 where there is no message."""
        own = self.buffers[self.main_key]
        if own.has_no_arrays:
            return None
        others = {key: c for key, c in self.buffers.items() if not c.has_no_arrays and key != self.main_key}
        if last:
            others = {key: column for key, column in others.items() if column.batches}
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
        """Return how many of the rows that wait are known with the faults that act on them."""
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
        """Return the true instants that the messages are about (n,) ns, and the stamps."""
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
        told, alike = np.zeros(times.size, dtype=np.uint8), np.zeros(times.size, dtype=np.bool_)
        known = join_columns(self.faults.batches) if self.faults.batches else None
        if known is not None and known.log_time.size:
            self._last_fault_time = int(known.log_time[-1])
            at = np.minimum(np.searchsorted(known.log_time, times), known.log_time.size - 1)
            alike = known.log_time[at] == times
            told[alike] = known.arrays[fault.FAULT][at[alike]]
            self.faults.batches = [known.split(int(at[-1]))[1]]
        self._rows += times.size
        self._unmatched += int((~alike).sum())
        return fault.unpack_bits(told)

    @property
    def _has_fault_messages(self) -> bool:
        """Tell whether there is a fault message of any row."""
        return self._unmatched < self._rows

    @property
    def _is_released(self) -> bool:
        """Tell whether rows are handed on with what is known of their faults."""
        return self._stopped_waiting or self._has_fault_messages

    def format_losses(self) -> list[str]:
        """Return what is said of topics of which messages were lost."""
        if self.faults is None or not self._unmatched:
            return self.notes
        whose, but = "its sensor's readings", ""
        if self._is_released:
            whose, but = f"{self._unmatched} of {self._rows} of {whose}", "; they are taken as without a fault"
        return [*self.notes, f"topic {self.faults.channel.topic}: has no message of the instants of {whose}{but}"]


def _merge_arrays(
    part: SeriesKind, parts: Mapping[SeriesKey, ColumnBatch], gaps: GapMasks, initial: Arrays | None = None
) -> Arrays:
    """Return all arrays of one of the three series: of rows whose message was lost, what those before it say."""
    found = dict(initial or {})
    for key, batch in parts.items():
        if key[0] == part:
            found |= {name: _fill_gaps(array, found.get(name), gaps.get(key)) for name, array in batch.arrays.items()}
    return found


def _fill_gaps(array: AnyArray, before: AnyArray | None, gaps: BoolArray | None) -> AnyArray:
    """Return rows of an array, those of gaps (n,) out of what was said before of the same name."""
    if before is None or gaps is None or before.shape != array.shape:
        return array
    found = array.copy()
    found[gaps] = before[gaps]
    return found


def _constant_latency(sensor: MountedSensor) -> float | None:
    """Return the latency (s) that all messages of a sensor have, None where it is another for each, or is not known.

    A recording may hold only that there is one.
    """
    latency = sensor.latency
    if latency is None:
        return 0.0
    return (
        latency.fixed + latency.mean if latency.stddev == 0.0 and not isinstance(latency, UnspecifiedLatency) else None
    )


def _times_of_validity(main: ColumnBatch, parts: Mapping[SeriesKey, ColumnBatch]) -> IntArray:
    """Return the true instants (n,) ns that messages are about: those of their hidden messages, if they have any."""
    found = main.publish_time
    for part in ("bias", "ideal"):
        for log in (batch.log_time for (kind, _), batch in parts.items() if kind == part):
            found = np.where(log == 0, found, log)
    return found


def _format_gaps(buffer: TopicBuffer, main: TopicBuffer) -> str:
    """Return what is said of a topic of which messages were lost."""
    return f"topic {buffer.channel.topic}: has not a message for each of {main.channel.topic}; what is missing is NaN"


@dataclass(eq=False)
class LinkAssembler:
    """The two topics of one link's truth."""

    link: str
    pose: TopicBuffer
    accel: TopicBuffer | None
    notes: list[str] = field(default_factory=list)

    def pop(self, time_base: TimeBase, *, last: bool) -> Truth | None:
        """Return the rows of which both topics are there, None for none; with `last` those without acceleration."""
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
            turned = truths.rotate_to_link(truths.conjugate_quaternions(shown["orientation"]), rows["linear"])
            rest = {"acceleration": turned, "angular_acceleration": rows["angular"]}
        return Truth(self.link, time_base.to_seconds(stamp, 0.0), **shown, **rest, epoch=time_base.epoch)


@dataclass(frozen=True, eq=False)
class TruthMotion:
    """The truth of a link as a motion that is asked for its own instants alone."""

    truth: Truth

    @property
    def end(self) -> float:
        """Last instant (s)."""
        return math.inf

    def at(self, _time: Times) -> MotionBlock:
        """Return the truth, whatever the instants."""
        t = self.truth
        rest = (t.velocity, t.angular_velocity, t.acceleration, t.angular_acceleration)
        return MotionBlock(t.position, t.orientation, *rest)


def transform_truth(truth: Truth, pose: Pose, name: str) -> Truth:
    """Return the truth of what stands still at `pose` on a link."""
    block = attach(TruthMotion(truth), pose).at(truth.time)
    p, q, v, w, a, alpha = block.arrays
    return Truth(name, truth.time, p, q, v, w, a, alpha, truth.epoch)


class ReadingAssembler:
    """A recording of messages as readings: the head of the recording, its slabs, and what is left out of them."""

    def __init__(self, reader: MessageReader) -> None:
        """Tell what is on which topic. Raises `SinkError` where the recording does not say it, and holds no message."""
        self._reader = reader
        layout = parse_stored_world(reader)
        try:
            dataset = world_from_json(layout) if layout else None
            self.stored = dataset or StoredWorld(infer_world(reader), notes=(format_note(layout),) if layout else ())
            self.world: World = self.stored.world
            runs = [int(run) for run in inputs.parse_json(reader.metadata.get("runs", "[0]"))] or [0]
            epoch = (
                int(reader.metadata["epoch"])
                if "epoch" in reader.metadata
                else self._first_arrival() // NANOSECONDS_PER_SECOND
            )
            seed, asked = int(reader.metadata.get("seed", 0)), float(reader.metadata.get("duration_asked", math.inf))
        except (DamagedError, ValueError, TypeError) as error:
            raise SinkError(f"the recording is damaged: {error}", where=reader.where) from error
        self.time_base = TimeBase(epoch, reader.is_navsense, dataset is not None)
        self.header = RecordingHeader(self.world, epoch, seed, asked, runs[:1], topics=self.stored.topics)
        self._buffers: dict[str, TopicBuffer] = {}
        read = select_channels(reader.channels)
        lines = {name: read[topic] for topic, name in normalize_topics(read).items()}
        topics = self.stored.topics or allocate_topics(self.world)
        self._sensors = [
            one for s in self.world.sensors if (one := self._make_sensor_assembler(s, topics, lines)) is not None
        ]
        self._links = [
            found
            for link in self._list_links()
            if (found := self._make_link_assembler(link, topics, lines)) is not None
        ]
        self._current = (
            self._make_buffer(lines.get(topics.current), currents.TYPE, _extract_velocity) if topics.current else None
        )
        self._layers = self._make_layers_buffer(lines.get(topics.layers)) if topics.layers else None
        known = IGNORED_TOPICS | {topics.fixed(what) for what in FIXED}
        unread = (line for line in reader.channels if line.topic not in known and not self._is_read(line))
        self.losses = list(dict.fromkeys(_format_unread(line) for line in unread))

    def _is_read(self, channel: MessageChannel) -> bool:
        """Tell whether messages of a topic and type are read."""
        column = self._buffers.get(channel.topic)
        return column is not None and has_same_type(channel, column.channel)

    def _first_arrival(self) -> int:
        """Return when the first message arrived (ns), 0 where there is none."""
        return next((item.log_time for item in self._reader.read_messages()), 0)

    def _list_links(self) -> list[str]:
        """Return the links whose truth may be there."""
        return [link.name for model in self.world.models for link in model.links]

    def _make_buffer(self, channel: MessageChannel | None, message_type: str, extract: Any) -> TopicBuffer | None:
        """Return the column of a topic, None where it is not there or of another type, or of one defined otherwise."""
        if channel is None or not channel.is_ros or (message_type and channel.type != message_type):
            return None
        if not is_readable(channel):
            return None
        column = TopicBuffer(channel, extract)
        self._buffers[channel.topic] = column
        return column

    def _make_sensor_assembler(
        self, sensor: MountedSensor, topics: TopicNames, channels: Mapping[str, MessageChannel]
    ) -> SensorAssembler | None:
        """Return the topics of one sensor, None where its own is not there."""
        found = SensorAssembler(sensor, self.time_base)
        for part in PARTS:
            for beside in topics.companions(sensor.name, part):
                line = channels.get(topics.sensor(sensor.name, part, beside))
                is_generic = line is not None and line.type.startswith(OWN_TYPE_PREFIX)

                def extract(
                    rows: AnyArray, part: SeriesKind = part, beside: str = beside, is_generic: bool = is_generic
                ) -> Arrays:
                    return messages.extract_arrays(sensor, rows, part, beside, is_generic=is_generic)

                column = self._make_buffer(line, "", extract)
                if column is not None:
                    found.buffers[part, beside] = column
        # What is told of a fault is the instant at which a reading is sent.
        if sensor.faults.has_faults and (
            sensor.spec.type not in messages.TIME_OF_VALIDITY_READERS or _constant_latency(sensor) is not None
        ):
            found.faults = self._make_buffer(channels.get(topics.fault(sensor.name)), fault.TYPE, _extract_faults)
        return found if ("reading", "") in found.buffers else None

    def _make_link_assembler(
        self, link: str, topics: TopicNames, channels: Mapping[str, MessageChannel]
    ) -> LinkAssembler | None:
        """Return the topics of one link's truth, None where they are not there."""
        pose_topic, accel_topic = topics.truth(link)
        pose = self._make_buffer(channels.get(pose_topic), truths.ODOMETRY_TYPE, truths.extract_truth)
        accel = self._make_buffer(channels.get(accel_topic), truths.ACCEL_TYPE, _extract_acceleration)
        return LinkAssembler(link, pose, accel) if pose is not None else None

    def _make_layers_buffer(self, channel: MessageChannel | None) -> TopicBuffer | None:
        """Return the column of the velocities at several depths."""
        layers = self.world.current_topic.layers
        count = len(layers.depths) if layers else 0
        return self._make_buffer(
            channel, currents.LAYERS_TYPE, lambda rows: {"velocity": currents.extract_layer_velocity(rows, count)}
        )

    def iter_slices(self) -> Iterator[TimeSlice]:
        """Yield all that the recording holds, in windows of bounded size. Raises `SinkError`."""
        size = 0
        for lots in self._reader.read_batches(self._buffers):
            for lot in lots:
                if self._is_read(lot.channel):
                    self._buffers[lot.channel.topic].append(lot)
                    size += lot.size
            if size >= SLICE_BYTES:
                yield self._build_slice(last=False)
                size = 0
        yield self._build_slice(last=True)
        noted = [one.format_losses() for one in self._sensors] + [one.notes for one in self._links]
        self.losses += [note for notes in noted for note in notes]
        self.losses += [_format_empty(column) for column in self._buffers.values() if column.empty_count]
        own = [sensor.buffers[sensor.main_key] for sensor in self._sensors]
        own += [
            one
            for sensor in self._sensors
            for one in sensor.buffers.values()
            if one.channel.type.startswith(OWN_TYPE_PREFIX)
        ]
        self.losses += [_format_unread(column.channel) for column in dict.fromkeys(own) if column.has_no_arrays]

    def _build_slice(self, *, last: bool) -> TimeSlice:
        """Return what is whole."""
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
        """Return the water's velocity, None where none is whole."""
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


def _format_unread(channel: MessageChannel) -> str:
    """Return what is said of a topic of which nothing is read."""
    return f"topic {channel.topic} of {channel.type or channel.encoding}: nothing that is read"


def _format_empty(buffer: TopicBuffer) -> str:
    """Return what is said of messages that have not a single byte."""
    count = buffer.empty_count
    return f"topic {buffer.channel.topic}: {count} {'message' if count == 1 else 'messages'} without any bytes"


def _extract_velocity(rows: AnyArray) -> Arrays:
    """Return the velocities of the water."""
    return {"velocity": currents.extract_velocity(rows)}


def _extract_faults(rows: AnyArray) -> Arrays:
    """Return which faults act."""
    return {fault.FAULT: rows["data"]}


def _extract_acceleration(rows: AnyArray) -> Arrays:
    """Return what messages of acceleration say, in the link's own frame."""
    return {"linear": rows["accel.linear"], "angular": rows["accel.angular"]}


def _fixed_link_truth(model: Model, truth: Truth) -> Iterator[tuple[str, Truth]]:
    """Yield the truth of each other link of a model that moves."""
    root = model.link(model.canonical_link).pose.inverse()
    for link in model.links:
        if link.name != model.canonical_link:
            yield link.name, transform_truth(truth, root @ link.pose, link.name)
