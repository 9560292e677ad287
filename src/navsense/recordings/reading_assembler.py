"""Readings, truth and currents from a recording of messages, slice by slice: the inverse of `message_builder`.

    time = publish_time - epoch,   clock_error = header.stamp - publish_time        in a recording of navsense
    time = log_time - latency - epoch                  of a Doppler sensor of navsense with a constant latency
    time = header.stamp - epoch,   clock_error = 0,   arrival = log_time - epoch    in a recording of another program

A bag has no publish time. In a bag of navsense, the log time of the `ideal` or `bias` message of a reading is its time
of validity. The epoch is in the metadata; without metadata it is the second of the first message.
Samples that were not published are not in the recording.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from navsense import messages
from navsense.core import inputs
from navsense.core.errors import DamagedError, RecordingError, describe_damage
from navsense.core.readings import (
    NANOSECONDS,
    Current,
    Layers,
    Reading,
    TimeSlice,
    Truth,
    join_readings,
    make_all_true,
    to_nanoseconds,
)
from navsense.core.text import format_count
from navsense.core.typing import AnyArray, BoolArray, IntArray, Times
from navsense.messages import world_messages
from navsense.messages.base import NANOSECONDS_PER_SECOND, SeriesKind
from navsense.messages.markers import MARKERS_SUFFIX
from navsense.messages.repack import MessageShape
from navsense.recordings import static_transforms
from navsense.recordings.base import require_format
from navsense.recordings.channels import Channel, MessageReader
from navsense.recordings.columns import (
    GENERIC_TYPE_PREFIX,
    Arrays,
    ColumnBatch,
    TopicBuffer,
    align_columns,
    has_same_type,
    is_readable,
    join_columns,
)
from navsense.recordings.dataset import LinkSelection
from navsense.recordings.info import DURATION_KEY, RecordedRun
from navsense.recordings.message_recordings import open_messages, parse_stored_world
from navsense.recordings.run_changes import CHANGES_TOPIC, change_from_json, read_changes
from navsense.recordings.topic_names import ROS_TOPICS, SERIES_KINDS, STATIC, allocate_topics
from navsense.recordings.world_inference import infer_world, normalize_topics, select_channels
from navsense.recordings.world_json import RecordedWorld, UnspecifiedLatency, format_note, world_from_json
from navsense.world import MountedSensor, World

IGNORED_TOPICS = frozenset(("/rosout", "/parameter_events", CHANGES_TOPIC))
"""Topics that are ignored."""

SLICE_BYTES = 12_000_000
"""Bytes of the messages of one time slice."""

MAX_HELD_ROWS = 20_000
"""Largest number of rows of a sensor that wait for its first or its next fault message."""

SeriesKey = tuple[SeriesKind, str]
"""Series of a sensor and name of the companion message, "" for the main message."""

GapMasks = Mapping[SeriesKey, BoolArray]
"""Rows (n,) of each series without a message."""


@dataclass(eq=False)
class TimeBase:
    """Times of a recording: its epoch (s), whether navsense wrote it, and whether it has the world with all rates."""

    epoch: int
    is_navsense: bool
    has_world_json: bool

    def to_seconds(self, time_ns: IntArray, rate: float) -> Times:
        """Return times (n,) ns as s after the epoch, exactly at the instants of a known rate (Hz)."""
        since = time_ns - self.epoch * NANOSECONDS_PER_SECOND
        seconds: Times = since / NANOSECONDS
        if self.has_world_json and rate:
            tick_time = np.rint(seconds * rate) / rate
            seconds = np.where(np.rint(tick_time * NANOSECONDS).astype(np.int64) == since, tick_time, seconds)
        return seconds

    def subtract_latency(self, log_time: IntArray, sensor: MountedSensor) -> IntArray:
        """Return log times (n,) ns minus the constant latency of a sensor, the inverse of `Latency`."""
        delay = _get_constant_latency(sensor)
        if not delay:
            return log_time
        sample_time = log_time - round(delay * NANOSECONDS)
        if self.has_world_json and sensor.rate:
            # Arrival and sample time were rounded to ns, so their difference may be off by one.
            seconds = (sample_time - self.epoch * NANOSECONDS_PER_SECOND) / NANOSECONDS
            tick_time = np.rint(seconds * sensor.rate) / sensor.rate
            has_tick = to_nanoseconds(self.epoch, tick_time + delay) == log_time
            sample_time = np.where(has_tick, to_nanoseconds(self.epoch, tick_time), sample_time)
        return sample_time


@dataclass(eq=False)
class SensorAssembler:
    """Assembles the readings of one sensor from its topics.

    `pop` returns a row when all topics of the sensor have its messages, or later ones. Of a sensor with faults it holds
    back the rows until the first fault message, at most `MAX_HELD_ROWS` of them.

    notes: about topics with missing messages.
    incomplete: topics with missing messages. `pop` returns rows without messages of these topics.
    faults: the topic of the fault flags, None without one.
    """

    sensor: MountedSensor
    time_base: TimeBase
    buffers: dict[SeriesKey, TopicBuffer] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    incomplete: set[SeriesKey] = field(default_factory=set)
    faults: TopicBuffer | None = None
    _last_fault_time: int = -1
    _row_count: int = 0
    _unmatched_count: int = 0
    _held_readings: list[Reading] = field(default_factory=list)
    _has_too_many_rows: bool = False

    @property
    def main_key(self) -> SeriesKey:
        """The topic to which the companions are matched: the first topic of the readings that has arrays."""
        keys = (key for key, buffer in self.buffers.items() if key[0] == "measured" and not buffer.has_no_arrays)
        return next(keys, ("measured", ""))

    def pop(self, *, last: bool) -> Reading | None:
        """Remove and return the complete rows, None without any; with `last`, also rows with missing messages."""
        knew_faults = self._knows_faults
        reading = self._pop_aligned(last=last)
        if self.faults is None or knew_faults or not (reading or self._held_readings):
            return reading
        self._held_readings += [reading] if reading else []
        self._has_too_many_rows = self._row_count > MAX_HELD_ROWS
        if not (self._knows_faults or last):
            return None
        joined, self._held_readings = join_readings(self._held_readings), []
        return joined if self._knows_faults else replace(joined, fault={})

    def _pop_aligned(self, *, last: bool) -> Reading | None:
        """Remove and return the complete rows, with fault flags 0 for rows without a fault message."""
        main_key = self.main_key
        main = self.buffers[main_key]
        if main.has_no_arrays:
            return None
        companions = {
            key: buffer
            for key, buffer in self.buffers.items()
            if key != main_key and not buffer.has_no_arrays and (buffer.batches or not last)
        }
        aligned = align_columns(
            main,
            companions,
            main.count if last else self._count_rows_with_faults(main),
            self.incomplete,
            has_validity_times=self.time_base.is_navsense,
            last=last,
            with_own_stamps=[key for key in companions if key[0] == "measured"],
        )
        if aligned is None:
            return None
        for key in aligned.missing:
            if key not in self.incomplete:
                self.incomplete.add(key)
                self.notes.append(_format_gaps(companions[key], main))
        return self._build_reading(aligned.main, aligned.companions, aligned.missing)

    def _count_rows_with_faults(self, main: TopicBuffer) -> int:
        """Return the number of rows in the buffer with known fault flags."""
        if self.faults is None or not main.batches:
            return main.count
        last = self._last_fault_time
        if self.faults.batches and self.faults.batches[-1].log_time.size:
            last = int(self.faults.batches[-1].log_time[-1])
        known = int(np.searchsorted(join_columns(main.batches).log_time, last, side="right"))
        return max(known, main.count - MAX_HELD_ROWS)

    def _build_reading(self, main: ColumnBatch, parts: Mapping[SeriesKey, ColumnBatch], gaps: GapMasks) -> Reading:
        """Return rows as a reading.

        | time | recording of navsense | recording of another program |
        |---|---|---|
        | arrival | log time | log time |
        | time of validity | publish time; in a bag, log time of the ideal or bias message | stamp, else log time |
        | stamp | stamp | time of validity |
        | sample time | time of validity; of a Doppler sensor, arrival minus a constant latency | time of validity |
        """
        sensor, base = self.sensor, self.time_base
        is_doppler = messages.has_time_of_validity(sensor.spec.type)
        if base.is_navsense:
            validity, stamp = _find_times_of_validity(main, parts), main.stamp
            sample_time = validity
            if is_doppler and _get_constant_latency(sensor) is not None:
                sample_time = base.subtract_latency(main.log_time, sensor)
            fault_time = sample_time
        else:
            validity = sample_time = stamp = np.where(main.stamp == 0, main.log_time, main.stamp)
            fault_time = main.log_time if is_doppler else _find_times_of_validity(main, parts)
        has_latency = sensor.latency is not None
        if not (base.is_navsense and (base.has_world_json or is_doppler)):
            has_latency = bool((main.log_time != validity).any())
        time = base.to_seconds(sample_time, sensor.rate)
        time_of_validity = time if sample_time is validity else base.to_seconds(validity, 0.0)
        extra = {"time_of_validity": time_of_validity} if is_doppler else {}
        merged = _merge_arrays("measured", parts, gaps, extra | main.arrays)
        outputs = [output for output in sensor.spec.outputs if output.name in merged]
        arrays = {output.name: merged[output.name] for output in outputs}
        first = next(iter(arrays.values()), np.zeros(time.size))
        return Reading(
            name=sensor.name,
            type=sensor.spec.type,
            frame=sensor.frame,
            unit={output.name: output.unit for output in outputs},
            time=time,
            clock_error=(stamp - base.epoch * NANOSECONDS_PER_SECOND) / NANOSECONDS - time_of_validity,
            arrays=arrays,
            ideal=_merge_arrays("ideal", parts, gaps),
            bias=_merge_arrays("bias", parts, gaps),
            fault=self._match_faults(fault_time),
            valid=np.asarray(np.isfinite(first).reshape(time.size, -1).any(axis=1)),
            emitted=make_all_true((time.size,)),
            epoch=base.epoch,
            arrival_after_latency=(main.log_time - base.epoch * NANOSECONDS_PER_SECOND) / NANOSECONDS
            if has_latency
            else None,
        )

    def _match_faults(self, times: IntArray) -> Mapping[str, BoolArray]:
        """Return the rows on which each kind of fault acts at true times (n,) ns; false where no message exists."""
        if self.faults is None:
            return {}
        flags, has_message = np.zeros(times.size, dtype=np.uint8), np.zeros(times.size, dtype=np.bool_)
        known = join_columns(self.faults.batches) if self.faults.batches else None
        if known is not None and known.log_time.size:
            self._last_fault_time = int(known.log_time[-1])
            indices = np.minimum(np.searchsorted(known.log_time, times), known.log_time.size - 1)
            has_message = known.log_time[indices] == times
            flags[has_message] = known.arrays[world_messages.FAULT][indices[has_message]]
            self.faults.batches = [known.split(int(indices[-1]))[1]]
        self._row_count += times.size
        self._unmatched_count += int((~has_message).sum())
        return world_messages.unpack_fault_bits(flags)

    @property
    def _knows_faults(self) -> bool:
        """True if no rows are held back any more: a row had a fault message, or there were too many rows."""
        return self._has_too_many_rows or self._unmatched_count < self._row_count

    def format_notes(self) -> list[str]:
        """Return the notes about topics with missing messages."""
        if self.faults is None or not self._unmatched_count:
            return self.notes
        lack = "the readings of its sensor"
        if self._knows_faults:
            lack = f"{self._unmatched_count} of {self._row_count} readings; they are read as without a fault"
        return [*self.notes, f"topic {self.faults.channel.topic}: has no message for {lack}"]


def _merge_arrays(
    series_kind: SeriesKind, parts: Mapping[SeriesKey, ColumnBatch], gaps: GapMasks, initial: Arrays | None = None
) -> Arrays:
    """Merge the arrays of one series.

    If a message is missing, its arrays have the values of the previous companion in `parts`.
    """
    merged = dict(initial or {})
    for key, batch in parts.items():
        if key[0] == series_kind:
            merged |= {name: _fill_gaps(array, merged.get(name), gaps.get(key)) for name, array in batch.arrays.items()}
    return merged


def _fill_gaps(array: AnyArray, before: AnyArray | None, gaps: BoolArray | None) -> AnyArray:
    """Return an array with the rows `gaps` (n,) from `before`, the array of the same name in another message."""
    if before is None or gaps is None or before.shape != array.shape:
        return array
    filled = array.copy()
    filled[gaps] = before[gaps]
    return filled


def _get_constant_latency(sensor: MountedSensor) -> float | None:
    """Return the constant latency (s) of a sensor, None for a random or unknown one."""
    latency = sensor.latency
    if latency is None:
        return 0.0
    return (
        latency.fixed + latency.mean if latency.stddev == 0.0 and not isinstance(latency, UnspecifiedLatency) else None
    )


def _find_times_of_validity(main: ColumnBatch, parts: Mapping[SeriesKey, ColumnBatch]) -> IntArray:
    """Return the times of validity (n,) ns: the log times of the bias or ideal messages, if there are any.

    In MCAP they are equal to the publish times. A bag has log times only.
    """
    times = main.publish_time
    for series_kind in ("bias", "ideal"):
        for log_time in (batch.log_time for (kind, _), batch in parts.items() if kind == series_kind):
            times = np.where(log_time == 0, times, log_time)
    return times


def _format_gaps(buffer: TopicBuffer, main: TopicBuffer) -> str:
    """Return the note about a topic with lost messages."""
    topic, main_topic = buffer.channel.topic, main.channel.topic
    return f"topic {topic}: has no message for some messages of {main_topic}; their values are NaN"


@dataclass(eq=False)
class LinkAssembler:
    """Assembles the truth of one link from its topics.

    companions: the topics besides that of the pose, by "accel", "world_twist" and "world_accel".
    """

    link: str
    pose: TopicBuffer
    companions: Mapping[str, TopicBuffer]
    notes: list[str] = field(default_factory=list)

    def pop(self, time_base: TimeBase, *, last: bool) -> Truth | None:
        """Remove and return the complete rows, None without any; with `last` also rows without acceleration."""
        companions = {name: buffer for name, buffer in self.companions.items() if buffer.batches or not last}
        incomplete = list(companions) if self.notes else []  # the note is about missing accelerations
        aligned = align_columns(
            self.pose, companions, self.pose.count, incomplete, has_validity_times=time_base.is_navsense, last=last
        )
        if aligned is None:
            return None
        if aligned.missing and not self.notes:
            self.notes += [_format_gaps(self.companions[name], self.pose) for name in aligned.missing]
        pose, stamp = dict(aligned.main.arrays), aligned.main.stamp
        acceleration = angular_acceleration = np.full((stamp.size, 3), np.nan)
        if "accel" in aligned.companions:
            accel = aligned.companions["accel"].arrays
            inverse = world_messages.conjugate_quaternions(pose["orientation"])
            acceleration = world_messages.rotate_inverse(inverse, accel["linear"])
            angular_acceleration = accel["angular"]
        # These are as they were received. The rotation from the frame of the link rounds.
        if "world_twist" in aligned.companions:
            pose["velocity"] = aligned.companions["world_twist"].arrays["linear"]
        if "world_accel" in aligned.companions:
            acceleration = aligned.companions["world_accel"].arrays["linear"]
        return Truth(
            self.link,
            time_base.to_seconds(stamp, 0.0),
            **pose,
            acceleration=acceleration,
            angular_acceleration=angular_acceleration,
            epoch=time_base.epoch,
        )


class ReadingAssembler:
    """Reads a recording of messages as time slices.

    reader: the reader of the messages.
    recorded_run: the world and the run of the recording.
    topic_notes: about topics that are not read, or have no message for some rows; complete after `iter_slices`.
    """

    def __init__(self, reader: MessageReader, select: LinkSelection | None = None) -> None:
        """Assign the topics to sensors and links; with `select` only to the links that it returns for the world.

        Raises `RecordingError` if the recording has neither a world nor messages.
        """
        self.reader = reader
        world_data, metadata = parse_stored_world(reader), reader.metadata
        try:
            stored_world = world_from_json(world_data) if world_data else None
            if stored_world is None:
                notes = (format_note(world_data),) if world_data else ()
                stored_world = RecordedWorld(infer_world(reader), has_world_json=False, notes=notes)
            self.recorded_world = stored_world
            self.world: World = self.recorded_world.world
            runs = [int(run) for run in inputs.parse_json(metadata.get("runs", "[0]"))] or [0]
            if "epoch" in metadata:
                epoch = int(metadata["epoch"])
            else:
                first_log_time = next((message.log_time for message in reader.read_messages()), 0)
                epoch = first_log_time // NANOSECONDS_PER_SECOND
            seed, duration = int(metadata.get("seed", 0)), float(metadata.get(DURATION_KEY, math.inf))
        except (DamagedError, ValueError, TypeError) as error:
            raise RecordingError(f"the recording is damaged: {describe_damage(error)}", where=reader.where) from error
        self.time_base = TimeBase(epoch, reader.is_navsense, self.recorded_world.has_world_json)
        self.recorded_run = RecordedRun(
            self.world, epoch, seed, duration, runs[:1], stored_topics=self.recorded_world.topics
        )
        self._topics = self.recorded_world.topics or allocate_topics(self.world)
        selected = select_channels(reader.channels)
        self._channels = {name: selected[topic] for topic, name in normalize_topics(selected).items()}
        self._buffers: dict[str, TopicBuffer] = {}
        self._marker_topics: set[str] = set()
        self._derives_fixed_links = select is None
        sensors = map(self._make_sensor_assembler, self.world.sensors if select is None else ())
        self._sensors = [assembler for assembler in sensors if assembler is not None]
        names = (link.name for model in self.world.models for link in model.links)
        links = map(self._make_link_assembler, names if select is None else select(self.world))
        self._links = [assembler for assembler in links if assembler is not None]
        self._current = self._make_buffer(
            self._topics.current if select is None else "",
            world_messages.CURRENT_TYPE,
            lambda rows: {"velocity": world_messages.extract_current(rows)},
        )
        layers = self.world.current_topic.layers
        depth_count = len(layers.depths) if layers else 0
        self._layers = self._make_buffer(
            self._topics.layers if select is None else "",
            world_messages.CURRENT_LAYERS_TYPE,
            lambda rows: {"velocity": world_messages.extract_current_layers(rows, depth_count)},
        )
        # In a recording of navsense they repeat its world and truth. Of another one only the static frames are read.
        common = ROS_TOPICS if reader.is_navsense else (STATIC,)
        known = IGNORED_TOPICS | self._marker_topics | {self._topics.get_common_topic(name) for name in common}
        unread = (channel for channel in reader.channels if channel.topic not in known and not self._is_read(channel))
        self.topic_notes = list(dict.fromkeys(map(_format_unread, unread)))

    def _is_read(self, channel: Channel) -> bool:
        """Return True if the messages of a channel are read."""
        buffer = self._buffers.get(channel.topic)
        return buffer is not None and has_same_type(channel, buffer.channel)

    def _make_buffer(
        self,
        topic: str,
        message_type: str,
        extract: Callable[[AnyArray], Arrays],
        find_unreadable: Callable[[MessageShape], Mapping[str, str]] = lambda _: {},
    ) -> TopicBuffer | None:
        """Return the buffer of a topic, None for a missing topic and for another type or definition.

        `message_type` "" accepts any type.
        """
        channel = self._channels.get(topic) if topic else None
        if channel is None or (message_type and channel.type != message_type):
            return None
        if not (channel.is_ros and is_readable(channel)):
            return None
        buffer = self._buffers[channel.topic] = TopicBuffer(channel, extract, find_unreadable)
        return buffer

    def _make_sensor_assembler(self, sensor: MountedSensor) -> SensorAssembler | None:
        """Return the assembler of one sensor, None without its main topic."""
        assembler = SensorAssembler(sensor, self.time_base)
        for series_kind in SERIES_KINDS:
            for companion in self._topics.list_companions(sensor.name, series_kind):
                topic = self._topics.get_sensor_topic(sensor.name, series_kind, companion)
                if companion == MARKERS_SUFFIX:
                    self._marker_topics.add(topic)
                    continue
                channel = self._channels.get(topic)
                is_generic = channel is not None and channel.type.startswith(GENERIC_TYPE_PREFIX)
                extract = partial(
                    messages.extract_arrays, sensor, series_kind=series_kind, companion=companion, is_generic=is_generic
                )
                find_unreadable = messages.get_messages(sensor.spec.type).find_unreadable_arrays
                buffer = self._make_buffer(topic, "", extract, find_unreadable)
                if buffer is not None:
                    assembler.buffers[series_kind, companion] = buffer
        # Fault messages have the sample time. It is known only without latency, or with a constant one.
        if sensor.faults.has_faults and (
            not messages.has_time_of_validity(sensor.spec.type) or _get_constant_latency(sensor) is not None
        ):
            topic = self._topics.get_fault_topic(sensor.name)
            assembler.faults = self._make_buffer(
                topic, world_messages.FAULT_TYPE, lambda rows: {world_messages.FAULT: rows["data"]}
            )
        return assembler if ("measured", "") in assembler.buffers else None

    def _make_link_assembler(self, link: str) -> LinkAssembler | None:
        """Return the assembler of the truth of one link, None without its topics."""
        pose_topic, accel_topic = self._topics.get_truth_topics(link)
        pose = self._make_buffer(pose_topic, world_messages.ODOMETRY_TYPE, world_messages.extract_truth)
        accel = self._make_buffer(
            accel_topic,
            world_messages.ACCEL_TYPE,
            lambda rows: {"linear": rows["accel.linear"], "angular": rows["accel.angular"]},
        )
        twist_topic, world_accel_topic = self._topics.get_state_topics(link)
        twist = self._make_buffer(twist_topic, world_messages.TWIST_TYPE, lambda rows: {"linear": rows["twist.linear"]})
        world_accel = self._make_buffer(
            world_accel_topic, world_messages.ACCEL_TYPE, lambda rows: {"linear": rows["accel.linear"]}
        )
        buffers = {"accel": accel, "world_twist": twist, "world_accel": world_accel}
        companions = {name: buffer for name, buffer in buffers.items() if buffer is not None}
        return LinkAssembler(link, pose, companions) if pose is not None else None

    def iter_slices(self) -> Iterator[TimeSlice]:
        """Yield the content of the recording in time slices of bounded size. Raises `RecordingError`."""
        size, changes = 0, tuple(map(change_from_json, read_changes(self.reader)))
        for batches in self.reader.read_batches(self._buffers):
            for batch in batches:
                if self._is_read(batch.channel):
                    self._buffers[batch.channel.topic].append(batch)
                    size += batch.size
            if size >= SLICE_BYTES:
                yield replace(self._build_slice(last=False), changes=changes)
                size, changes = 0, ()
        yield replace(self._build_slice(last=True), changes=changes)
        for assembler in self._sensors:
            self.topic_notes += assembler.format_notes()
        for link in self._links:
            self.topic_notes += link.notes
        for buffer in self._buffers.values():
            if buffer.empty_count:
                count = format_count(buffer.empty_count, "message")
                self.topic_notes.append(f"topic {buffer.channel.topic}: {count} without any bytes")
            self.topic_notes += [
                f"topic {buffer.channel.topic}: {name}, which is NaN: {reason}"
                for name, reason in buffer.unreadable.items()
            ]
        required = [assembler.buffers[assembler.main_key] for assembler in self._sensors]
        buffers = [buffer for assembler in self._sensors for buffer in assembler.buffers.values()]
        required += [buffer for buffer in buffers if buffer.channel.type.startswith(GENERIC_TYPE_PREFIX)]
        self.topic_notes += [
            _format_unread(buffer.channel) for buffer in dict.fromkeys(required) if buffer.has_no_arrays
        ]

    def _build_slice(self, *, last: bool) -> TimeSlice:
        """Remove and return the complete rows of all sensors and links."""
        readings, truth = dict[str, Reading](), dict[str, Truth]()
        for sensor_assembler in self._sensors:
            if (reading := sensor_assembler.pop(last=last)) is not None:
                readings[sensor_assembler.sensor.name] = reading
        for link_assembler in self._links:
            if (rows := link_assembler.pop(self.time_base, last=last)) is not None:
                truth[link_assembler.link] = rows
        for model in self.world.models if self._derives_fixed_links else ():
            if model.canonical_link in truth and static_transforms.has_motion(model):
                fixed = static_transforms.derive_fixed_links(model, truth[model.canonical_link])
                truth |= {link: rows for link, rows in fixed.items() if link not in truth}
        times = [reading.time for reading in readings.values()] + [rows.time for rows in truth.values()]
        start = min((float(time[0]) for time in times), default=0.0)
        end = max((float(time[-1]) for time in times), default=0.0)
        return TimeSlice(start, end, readings, truth, self._pop_current(last=last))

    def _pop_current(self, *, last: bool) -> Current | None:
        """Remove and return the complete rows of the water's velocity, None without any."""
        if self._current is None:
            return None
        companions = {"layers": self._layers} if self._layers and (self._layers.batches or not last) else {}
        aligned = align_columns(
            self._current, companions, self._current.count, (), has_validity_times=self.time_base.is_navsense, last=last
        )
        if aligned is None:
            return None
        velocity, declared = aligned.main.arrays["velocity"], self.world.current_topic
        time = self.time_base.to_seconds(aligned.main.stamp, declared.rate)
        layers = None
        if "layers" in aligned.companions and declared.layers is not None:
            layers = Layers(
                declared.layers.topic, declared.layers.depths, aligned.companions["layers"].arrays["velocity"]
            )
        return Current(declared.topic, declared.position, time, velocity, self.time_base.epoch, layers)


@contextmanager
def open_readings(path: Path, select: LinkSelection | None = None) -> Iterator[ReadingAssembler]:
    """Yield the assembler of the readings in a recording of messages; with `select` of the truth of these links alone.

    Raises the errors of `open_messages`, and `RecordingError` for a format that navsense writes but does not read.
    """
    with open_messages(path) as reader:
        if content := require_format(path).unread_content:
            what = f"holds {content}, which navsense writes but does not read"
            remedy = f"record to .mcap too, or list its contents with: navsense info {path}"
            raise RecordingError(what, where=reader.where, remedy=remedy)
        yield ReadingAssembler(reader, select)


def _format_unread(channel: Channel) -> str:
    """Return the note about a topic that is not read."""
    return f"topic {channel.topic} of type {channel.type or channel.encoding} is not read"
