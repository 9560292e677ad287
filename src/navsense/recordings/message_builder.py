"""Messages of time slices: the channels of a recording, and blocks of messages before they are encoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from navsense import messages
from navsense.core.errors import RecordingError
from navsense.core.names import WORLD_FRAME
from navsense.core.readings import ON, Current, Reading, RunChange, TimeSlice, Truth, to_nanoseconds
from navsense.core.typing import AnyArray, FloatArray, IntArray, UInt64Array
from navsense.messages import world_messages
from navsense.messages.base import AGE, IS_ON, TRUE_TIME, SeriesKind, compute_stamps, get_clock_name
from navsense.messages.cdr import MessageEncoder, to_humble
from navsense.messages.schemas import HUMBLE
from navsense.recordings import static_transforms
from navsense.recordings.format import format_runs_remedy
from navsense.recordings.info import RecordedRun
from navsense.recordings.run_changes import CHANGES_TOPIC, format_change
from navsense.recordings.topic_names import CLOCK, STATIC, TRANSFORMS


@dataclass(frozen=True, eq=False)
class OutputChannel:
    """A channel to write: its topic, the encoder of its messages, and the clock of its stamps.

    latched: true if late subscribers get the last message.
    """

    topic: str
    encoder: MessageEncoder
    clock: str = TRUE_TIME
    latched: bool = False


@dataclass(frozen=True, eq=False)
class MessageBlock:
    """Arrays of n messages of one channel that are not yet encoded.

    log_time, publish_time, stamp: (n,) ns.
    arrays: (n, ...) by name.
    """

    channel: OutputChannel
    log_time: UInt64Array
    publish_time: UInt64Array
    stamp: IntArray
    arrays: Mapping[str, AnyArray]

    def slice_rows(self, start: int, end: int) -> MessageBlock:
        """Return some of the rows."""
        rows = slice(start, end)
        arrays = {name: array[rows] for name, array in self.arrays.items()}
        return MessageBlock(self.channel, self.log_time[rows], self.publish_time[rows], self.stamp[rows], arrays)


def make_true_block(channel: OutputChannel, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> MessageBlock:
    """Return messages without latency and clock error: log time = publish time = stamp (n,) ns."""
    time = stamp.view(np.uint64)
    return MessageBlock(channel, time, time, stamp, arrays)


def list_true_stamps(time_slice: TimeSlice) -> IntArray | None:
    """Return the instants (n,) ns of a clock: those of truth, else of any reading; None without any."""
    distinct = {id(truth.time): truth for truth in time_slice.truth.values()}
    stamps = [truth.stamp for truth in distinct.values()]
    stamps = stamps or [reading.true_stamp for reading in time_slice.readings.values()]
    if not stamps:
        return None
    are_equal = all(np.array_equal(part, stamps[0]) for part in stamps[1:])
    return stamps[0] if are_equal else np.unique(np.concatenate(stamps))


class MessageBuilder:
    """Builds the message blocks of one recording or stream."""

    def __init__(
        self, recorded_run: RecordedRun, is_needed: Callable[[OutputChannel], bool] = lambda _channel: True
    ) -> None:
        """Allocate the topics.

        is_needed: returns False for a channel without subscribers. Its messages are not built.
        """
        self._recorded_run, self._is_needed = recorded_run, is_needed
        self._world = recorded_run.world
        self._topics = recorded_run.topics
        self._sensors = {sensor.name: sensor for sensor in self._world.sensors}
        moving = [model for model in self._world.models if static_transforms.has_motion(model)]
        self._moving_links = [model.canonical_link for model in moving]
        self._moving_links += [link for model in self._world.models for link in model.joint_paths]
        self._fixed_links = {link.name for model in moving for link in model.links} - set(self._moving_links)
        self._static_links = {
            link.name for model in self._world.models for link in model.links if not static_transforms.has_motion(model)
        } - set(self._moving_links)
        self._written_static_links: set[str] = set()
        self._sensor_channels: dict[tuple[str, SeriesKind], list[OutputChannel]] = {}
        self._channels: dict[str, OutputChannel] = {}

    def _get_channel(
        self, topic: str, make_encoder: Callable[[], MessageEncoder], key: str = "", *, latched: bool = False
    ) -> OutputChannel:
        """Return the channel of a topic, made at its first use; `key` distinguishes several channels of one topic."""
        if topic + key not in self._channels:
            self._channels[topic + key] = OutputChannel(topic, make_encoder(), latched=latched)
        return self._channels[topic + key]

    def _get_sensor_channels(self, name: str, series_kind: SeriesKind) -> list[OutputChannel]:
        """Return the channels of a series of a sensor: its main message, then its companions."""
        if (name, series_kind) in self._sensor_channels:
            return self._sensor_channels[name, series_kind]
        channels, sensor = [], self._sensors[name]
        for companion in messages.list_message_suffixes(sensor, series_kind):
            topic = self._topics.get_sensor_topic(name, series_kind, companion)
            if topic not in self._channels:
                encoder = messages.make_encoder(sensor, series_kind, companion)
                encoder = to_humble(encoder) if self._recorded_run.ros == HUMBLE else encoder
                self._channels[topic] = OutputChannel(topic, encoder, get_clock_name(sensor))
            channels.append(self._channels[topic])
        self._sensor_channels[name, series_kind] = channels
        return channels

    def list_measured_channels(self) -> list[OutputChannel]:
        """Return the channels of the measured values of all sensors."""
        return [
            channel for sensor in self._world.sensors for channel in self._get_sensor_channels(sensor.name, "measured")
        ]

    def build_static_transforms(self) -> list[MessageBlock]:
        """Return `/tf_static`: one message or none."""
        transforms = static_transforms.list_static_transforms(self._world)
        if not transforms:
            return []
        encoder = world_messages.make_transforms_encoder([(t.parent, t.child) for t in transforms])
        stamp = to_nanoseconds(self._recorded_run.epoch, np.zeros(1))
        arrays = {
            "position": np.array([[t.pose.position for t in transforms]]),
            "orientation": np.array([[t.pose.rotation for t in transforms]]),
        }
        channel = OutputChannel(self._topics.get_common_topic(STATIC), encoder, latched=True)
        return [make_true_block(channel, stamp, arrays)]

    def build_blocks(self, time_slice: TimeSlice) -> list[MessageBlock]:
        """Return the messages of a time slice of all needed channels; a block may be empty.

        Raises `RecordingError` for readings or currents with a run axis.
        """
        blocks: list[MessageBlock] = []
        for change in time_slice.changes:
            blocks += self._build_change(change)
            if change.property == ON and change.name in self._sensors:
                sensor = self._sensors[change.name]
                self._sensors[sensor.name] = sensor.switch(change.time, on=bool(change.value), start=time_slice.start)
        for name, reading in time_slice.readings.items():
            blocks += self._build_sensor_blocks(name, reading)
        if self._recorded_run.has_simulated_series:
            for name, truth in time_slice.truth.items():
                blocks += self._build_truth(name, truth)
            if time_slice.current is not None:
                blocks += self._build_current(time_slice.current)
        return blocks + self._build_clock_and_poses(time_slice)

    def _build_change(self, change: RunChange) -> list[MessageBlock]:
        """Return the message of a change of the run."""
        text = format_change(change)
        channel = OutputChannel(CHANGES_TOPIC, world_messages.make_string_encoder(text))
        if not self._is_needed(channel):
            return []
        return [make_true_block(channel, to_nanoseconds(self._recorded_run.epoch, np.array([change.time])), {})]

    def _build_sensor_blocks(self, name: str, reading: Reading) -> list[MessageBlock]:
        """Return the messages of one sensor: measured values, ideal values, biases and fault flags.

        The publish time is the time of validity. The log time of the measured values is their arrival. Ideal values and
        biases are simulated truth: no message of the vehicle carries them, so their log time is the publish time.
        """
        if name not in self._sensors:
            raise RecordingError("a reading of a sensor that the world does not have", name)
        if reading.clock_error.ndim != 1:
            raise RecordingError(f"readings of {name!r} have a run axis", remedy=format_runs_remedy())
        series: dict[SeriesKind, Mapping[str, AnyArray]] = {"measured": reading.arrays}
        if self._recorded_run.has_simulated_series:
            series |= {"ideal": reading.ideal} if reading.ideal else {}
            if any(key in reading.bias for key in reading.arrays):
                series["bias"] = {key: value for key, value in reading.bias.items() if key in reading.arrays}
        channels = {
            series_kind: list(filter(self._is_needed, self._get_sensor_channels(name, series_kind)))
            for series_kind in series
        }
        if not any(channels.values()):
            return self._build_faults(name, reading)
        time_of_validity = messages.time_of_validity(reading)
        if time_of_validity is None:
            publish_time = to_nanoseconds(reading.epoch, reading.time).view(np.uint64)
        else:
            publish_time = to_nanoseconds(reading.epoch, time_of_validity).view(np.uint64)
            age = reading.time - time_of_validity
            series = {series_kind: {**arrays, AGE: age} for series_kind, arrays in series.items()}
        stamp = compute_stamps(reading, get_clock_name(self._sensors[name]), time_of_validity)
        arrival = publish_time
        if time_of_validity is not None or reading.arrival_after_latency is not None:
            arrival = to_nanoseconds(reading.epoch, reading.arrival).view(np.uint64)
        indices = None if reading.emitted.all() else np.flatnonzero(reading.emitted)
        blocks = []
        for series_kind, arrays in series.items():
            log_time = arrival if series_kind == "measured" else publish_time
            times, emitted_arrays = (log_time, publish_time, stamp), arrays
            if indices is not None:
                times = (log_time[indices], publish_time[indices], stamp[indices])
                emitted_arrays = {key: array[indices] for key, array in arrays.items()}
            for channel in channels[series_kind]:
                if channel.encoder.ignores_arrays:
                    first = int(np.searchsorted(reading.time, self._recorded_run.start))
                    on = self._sensors[name].compute_on(reading.time[first:])
                    blocks.append(make_true_block(channel, reading.true_stamp[first:], {IS_ON: on}))
                else:
                    blocks.append(MessageBlock(channel, *times, emitted_arrays))
        return blocks + self._build_faults(name, reading)

    def _build_faults(self, name: str, reading: Reading) -> list[MessageBlock]:
        """Return the fault flags of a sensor with faults, at every sample."""
        if not (self._recorded_run.has_simulated_series and reading.fault):
            return []
        channel = self._get_channel(self._topics.get_fault_topic(name), world_messages.make_fault_encoder)
        if not self._is_needed(channel):
            return []
        bits = world_messages.pack_fault_bits(reading.fault)
        return [make_true_block(channel, reading.true_stamp, {world_messages.FAULT: bits})]

    def _build_truth(self, name: str, truth: Truth) -> list[MessageBlock]:
        """Return the ground truth of one link; for a static link only its first row.

        A link that is fixed to a moving canonical link has no messages: `/tf_static` has its pose.
        """
        is_static = name in self._static_links
        if name in self._fixed_links or name in self._written_static_links or not truth.time.size:
            return []
        if is_static:
            self._written_static_links.add(name)
            truth = truth.select_rows(0, 1)
        pose_topic, accel_topic = self._topics.get_truth_topics(name)
        if not pose_topic:
            raise RecordingError("the truth of a link that the world does not have", name)
        pose = {
            "position": truth.position,
            "orientation": truth.orientation,
            "velocity": truth.velocity,
            "angular_velocity": truth.angular_velocity,
        }
        accel = {
            "orientation": truth.orientation,
            "acceleration": truth.acceleration,
            "angular_acceleration": truth.angular_acceleration,
        }
        poses = self._get_channel(pose_topic, lambda: world_messages.make_odometry_encoder(name), latched=is_static)
        accels = self._get_channel(accel_topic, lambda: world_messages.make_accel_encoder(name), latched=is_static)
        channels = [(poses, pose), (accels, accel)]
        twist_topic, world_accel_topic = self._topics.get_state_topics(name)
        if twist_topic:
            twists = self._get_channel(twist_topic, world_messages.make_world_twist_encoder)
            world_accels = self._get_channel(world_accel_topic, world_messages.make_world_accel_encoder)
            channels += [(twists, pose), (world_accels, accel)]
        channels = [(channel, arrays) for channel, arrays in channels if self._is_needed(channel)]
        if not channels:
            return []
        stamp = truth.stamp
        return [make_true_block(channel, stamp, arrays) for channel, arrays in channels]

    def _build_current(self, current: Current) -> list[MessageBlock]:
        """Return the velocity of the water, at one position and in layers."""
        if current.velocity.ndim != 2:
            raise RecordingError("the current has a run axis", remedy=format_runs_remedy())
        blocks, stamp = [], current.stamp
        channel = self._get_channel(self._topics.current, world_messages.make_current_encoder)
        if self._is_needed(channel):
            blocks.append(make_true_block(channel, stamp, {"velocity": current.velocity}))
        if current.layers is not None:
            depths = current.layers.depths
            channel = self._get_channel(self._topics.layers, lambda: world_messages.make_current_layers_encoder(depths))
            if self._is_needed(channel):
                blocks.append(make_true_block(channel, stamp, {"velocity": current.layers.velocity}))
        return blocks

    def _build_clock_and_poses(self, time_slice: TimeSlice) -> list[MessageBlock]:
        """Return `/clock` at every instant of truth, else of any reading, and `/tf` of the moving models."""
        blocks = []
        channel = self._get_channel(self._topics.get_common_topic(CLOCK), world_messages.make_clock_encoder)
        if self._is_needed(channel) and (stamp := list_true_stamps(time_slice)) is not None:
            blocks.append(make_true_block(channel, stamp, {}))
        groups: dict[bytes, list[Truth]] = {}
        for name in self._moving_links:
            if name in time_slice.truth:
                groups.setdefault(time_slice.truth[name].time.tobytes(), []).append(time_slice.truth[name])
        for truths in groups.values():
            blocks += self._build_poses(truths)
        return blocks

    def _build_poses(self, truths: list[Truth]) -> list[MessageBlock]:
        """Return `/tf` of models with the same instants of truth; each such group has a channel."""
        names = [(WORLD_FRAME, truth.name) for truth in truths]
        channel = self._get_channel(
            self._topics.get_common_topic(TRANSFORMS),
            lambda: world_messages.make_transforms_encoder(names),
            key=repr(names),
        )
        if not self._is_needed(channel):
            return []
        arrays = {
            "position": stack_models([truth.position for truth in truths]),
            "orientation": stack_models([truth.orientation for truth in truths]),
        }
        return [make_true_block(channel, truths[0].stamp, arrays)]


def stack_models(arrays: list[FloatArray]) -> FloatArray:
    """Return arrays (n, k) of several models as one (n, model, k); no copy for one model."""
    return arrays[0][:, None] if len(arrays) == 1 else np.stack(arrays, axis=1)
