"""Messages of time slices: the channels of a recording, and blocks of messages before they are encoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from navsense import messages
from navsense.core.errors import RecordingError
from navsense.core.series import Current, Reading, TimeSlice, Truth, to_nanoseconds
from navsense.core.typing import AnyArray, FloatArray, IntArray, WordArray
from navsense.messages import world_topics
from navsense.messages.base import AGE, GLOBAL_TIME, SeriesKind, compute_stamps, get_clock_name
from navsense.messages.cdr import MessageLayout, to_humble
from navsense.messages.schemas import HUMBLE
from navsense.recordings import static_transforms
from navsense.recordings.header import RecordingHeader
from navsense.recordings.topic_names import CLOCK, STATIC, TRANSFORMS


@dataclass(frozen=True, eq=False)
class OutputChannel:
    """Messages of one layout on one topic, stamped by one clock; `latched` if late subscribers get the last message."""

    topic: str
    message_layout: MessageLayout
    clock: str = GLOBAL_TIME
    latched: bool = False


@dataclass(frozen=True, eq=False)
class MessageBlock:
    """Messages of one channel before they are encoded; log_time, publish_time, stamp (n,) ns, arrays (n, ...)."""

    channel: OutputChannel
    log_time: WordArray
    publish_time: WordArray
    stamp: IntArray
    arrays: Mapping[str, AnyArray]

    def slice_rows(self, start: int, end: int) -> MessageBlock:
        """Return some of the rows."""
        span = slice(start, end)
        arrays = {name: array[span] for name, array in self.arrays.items()}
        return MessageBlock(self.channel, self.log_time[span], self.publish_time[span], self.stamp[span], arrays)


class MessageBuilder:
    """Builds the message blocks of one recording."""

    def __init__(self, recording: RecordingHeader) -> None:
        """Allocate the topics."""
        self._recording = recording
        self._world = recording.world
        self._topics = recording.allocate_topics()
        self._sensors = {sensor.name: sensor for sensor in self._world.sensors}
        moving = [model for model in self._world.models if static_transforms.is_moving(model)]
        self._moving = [model.canonical_link for model in moving]
        self._fixed_links = {link.name for model in moving for link in model.links} - set(self._moving)
        self._static_links = {
            link.name for model in self._world.models for link in model.links if not static_transforms.is_moving(model)
        }
        self._written_links: set[str] = set()
        self._sensor_channels: dict[tuple[str, SeriesKind], list[OutputChannel]] = {}
        self._channels: dict[str, OutputChannel] = {}

    def _get_channel(
        self, topic: str, make_layout: Callable[[], MessageLayout], key: str = "", *, latched: bool = False
    ) -> OutputChannel:
        """Return the channel of a topic, made at its first use; `key` distinguishes several channels of one topic."""
        if topic + key not in self._channels:
            self._channels[topic + key] = OutputChannel(topic, make_layout(), latched=latched)
        return self._channels[topic + key]

    def _get_sensor_channels(self, name: str, part: SeriesKind) -> list[OutputChannel]:
        """Return the channels of a series of a sensor: its main message, then its companions."""
        if (name, part) not in self._sensor_channels:
            self._sensor_channels[name, part] = self._make_sensor_channels(name, part)
        return self._sensor_channels[name, part]

    def _make_sensor_channels(self, name: str, part: SeriesKind) -> list[OutputChannel]:
        found, sensor = [], self._sensors[name]
        for companion in messages.list_companion_topics(sensor, part):
            topic = self._topics.sensor(name, part, companion)
            if topic not in self._channels:
                message = messages.make_layout(sensor, part, companion)
                message = to_humble(message) if self._recording.ros == HUMBLE else message
                self._channels[topic] = OutputChannel(topic, message, get_clock_name(sensor))
            found.append(self._channels[topic])
        return found

    def list_reading_channels(self) -> list[OutputChannel]:
        """Return the channels of the readings of all sensors."""
        return [
            source for sensor in self._world.sensors for source in self._get_sensor_channels(sensor.name, "reading")
        ]

    def build_static_transforms(self) -> list[MessageBlock]:
        """Return `/tf_static`: one message or none."""
        found = static_transforms.list_static_transforms(self._world)
        if not found:
            return []
        message = world_topics.make_transforms_layout([(f.parent, f.child) for f in found])
        stamp = to_nanoseconds(self._recording.epoch, np.zeros(1))
        arrays = {
            "position": np.array([[f.pose.position for f in found]]),
            "orientation": np.array([[f.pose.rotation for f in found]]),
        }
        time = stamp.view(np.uint64)
        return [
            MessageBlock(OutputChannel(self._topics.common(STATIC), message, latched=True), time, time, stamp, arrays)
        ]

    def build_blocks(self, time_slice: TimeSlice) -> list[MessageBlock]:
        """Return all messages of a time slice; a block may be empty.

        Raises `RecordingError` for readings or currents with a run axis.
        """
        blocks: list[MessageBlock] = []
        for name, reading in time_slice.readings.items():
            blocks += self._build_reading(name, reading)
        if self._recording.truth:
            for name, part in time_slice.truth.items():
                blocks += self._build_truth(name, part)
            if time_slice.current is not None:
                blocks += self._build_current(time_slice.current)
        return blocks + self._build_clock_and_poses(time_slice)

    def _build_reading(self, name: str, reading: Reading) -> list[MessageBlock]:
        """Return the messages of one sensor: readings, ideal values and biases."""
        if name not in self._sensors:
            raise RecordingError("a reading of a sensor that the world does not have", name)
        if reading.clock_error.ndim != 1:
            raise RecordingError(f"readings of {name!r} carry a run axis", remedy="write many runs to .npz or .parquet")
        rows = None if reading.emitted.all() else np.flatnonzero(reading.emitted)
        series: dict[SeriesKind, Mapping[str, AnyArray]] = {"reading": reading.arrays}
        if self._recording.truth:
            series |= {"ideal": reading.ideal} if reading.ideal else {}
            if any(key in reading.bias for key in reading.arrays):
                series["bias"] = {key: value for key, value in reading.bias.items() if key in reading.arrays}
        validity = messages.time_of_validity(reading)
        if validity is not None:
            series = {part: {**arrays, AGE: reading.time - validity} for part, arrays in series.items()}
        time = to_nanoseconds(reading.epoch, reading.time if validity is None else validity).view(np.uint64)
        stamp = compute_stamps(reading, get_clock_name(self._sensors[name]), validity)
        own = validity is None and reading.arrivals is None
        arrived = time if own else to_nanoseconds(reading.epoch, reading.arrival).view(np.uint64)
        blocks = []
        for part, arrays in series.items():
            kept = arrays if rows is None else {key: array[rows] for key, array in arrays.items()}
            spans = (arrived if part == "reading" else time, time, stamp)
            spans = spans if rows is None else (spans[0][rows], spans[1][rows], spans[2][rows])
            for source in self._get_sensor_channels(name, part):
                if source.message_layout.constant:
                    whole = reading.true_stamp
                    at = whole.view(np.uint64)
                    blocks.append(MessageBlock(source, at, at, whole, {}))
                else:
                    blocks.append(MessageBlock(source, *spans, kept))
        return blocks + self._build_faults(name, reading)

    def _build_faults(self, name: str, reading: Reading) -> list[MessageBlock]:
        """Return the fault flags of a sensor with faults, at every sample."""
        if not (self._recording.truth and reading.fault):
            return []
        stamp = reading.true_stamp
        time, bits = stamp.view(np.uint64), world_topics.pack_fault_bits(reading.fault)
        channel = self._get_channel(self._topics.fault(name), world_topics.make_fault_layout)
        return [MessageBlock(channel, time, time, stamp, {world_topics.FAULT: bits})]

    def _build_truth(self, name: str, part: Truth) -> list[MessageBlock]:
        """Return the ground truth of one link, of a static link only the first instant.

        A link that is fixed to a moving canonical link has no messages: `/tf_static` has its pose.
        """
        still = name in self._static_links
        if name in self._fixed_links or name in self._written_links or not part.time.size:
            return []
        if still:
            self._written_links.add(name)
            part = part.between(0, 1)
        pose_topic, accel_topic = self._topics.truth(name)
        if not pose_topic:
            raise RecordingError("the truth of a link that the world does not have", name)
        stamp = part.stamp
        time = stamp.view(np.uint64)
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
            MessageBlock(
                self._get_channel(pose_topic, lambda: world_topics.make_odometry_layout(name), latched=still),
                time,
                time,
                stamp,
                pose,
            ),
            MessageBlock(
                self._get_channel(accel_topic, lambda: world_topics.make_accel_layout(name), latched=still),
                time,
                time,
                stamp,
                accel,
            ),
        ]

    def _build_current(self, part: Current) -> list[MessageBlock]:
        """Return the velocity of the water, at one position and in layers."""
        if part.velocity.ndim != 2:
            raise RecordingError("the current carries a run axis", remedy="write many runs to .npz or .parquet")
        stamp = part.stamp
        time = stamp.view(np.uint64)
        source = self._get_channel(self._topics.current, world_topics.make_current_layout)
        blocks = [MessageBlock(source, time, time, stamp, {"velocity": part.velocity})]
        if part.layers is not None:
            depths = part.layers.depths
            source = self._get_channel(self._topics.layers, lambda: world_topics.make_current_layers_layout(depths))
            blocks.append(MessageBlock(source, time, time, stamp, {"velocity": part.layers.velocity}))
        return blocks

    def _build_clock_and_poses(self, time_slice: TimeSlice) -> list[MessageBlock]:
        """Return `/clock` at every instant of truth, else of any reading, and `/tf` of the moving models."""
        times = {id(part.time): part for part in time_slice.truth.values()}
        spans = [part.stamp for part in times.values()]
        spans = spans or [reading.true_stamp for reading in time_slice.readings.values()]
        if not spans:
            return []
        alike = all(np.array_equal(span, spans[0]) for span in spans[1:])
        stamp = spans[0] if alike else np.unique(np.concatenate(spans))
        time = stamp.view(np.uint64)
        blocks = [
            MessageBlock(
                self._get_channel(self._topics.common(CLOCK), world_topics.make_clock_layout), time, time, stamp, {}
            )
        ]
        groups: dict[bytes, list[Truth]] = {}
        for name in self._moving:
            if name in time_slice.truth:
                groups.setdefault(time_slice.truth[name].time.tobytes(), []).append(time_slice.truth[name])
        return blocks + [self._build_poses(parts) for parts in groups.values()]

    def _build_poses(self, parts: list[Truth]) -> MessageBlock:
        """Return `/tf` of models with the same instants of truth; each such group has a channel."""
        names = [(world_topics.WORLD_FRAME, part.name) for part in parts]
        source = self._get_channel(
            self._topics.common(TRANSFORMS), lambda: world_topics.make_transforms_layout(names), key=repr(names)
        )
        stamp = parts[0].stamp
        arrays = {
            "position": stack_models([part.position for part in parts]),
            "orientation": stack_models([part.orientation for part in parts]),
        }
        time = stamp.view(np.uint64)
        return MessageBlock(source, time, time, stamp, arrays)


def stack_models(arrays: list[FloatArray]) -> FloatArray:
    """Return arrays (n, k) of several models as one (n, model, k); no copy for one model."""
    return arrays[0][:, None] if len(arrays) == 1 else np.stack(arrays, axis=1)
