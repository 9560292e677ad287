"""What slabs say in ROS: the topics of a recording, and their messages as blocks that are not yet bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from navsense import messages
from navsense.errors import SinkError
from navsense.messages import clock, current, fault, transforms, truth
from navsense.messages.base import AGE, GLOBAL_TIME, Part, clock_of, stamps
from navsense.messages.cdr import Message, to_humble
from navsense.messages.schemas import HUMBLE
from navsense.noise.planned import FAULT
from navsense.series import Current, Reading, Slab, Truth, nanoseconds
from navsense.sinks import frames
from navsense.sinks.base import Recording
from navsense.sinks.topics import CLOCK, STATIC, TRANSFORMS
from navsense.typing import AnyArray, FloatArray, IntArray, WordArray


@dataclass(frozen=True, eq=False)
class Source:
    """Messages of one layout on one topic, stamped by one clock; `latched` where they are for those who come late."""

    topic: str
    message: Message
    clock: str = GLOBAL_TIME
    latched: bool = False


@dataclass(frozen=True, eq=False)
class Block:
    """Messages of one source that are not yet bytes; rows in order of `log` and `time` (n,) ns, arrays time first.

    `log` is when a message arrives, `time` the instant that it is about.
    """

    source: Source
    log: WordArray
    time: WordArray
    stamp: IntArray
    arrays: Mapping[str, AnyArray]

    def part(self, start: int, end: int) -> Block:
        """Return some of the rows."""
        span = slice(start, end)
        arrays = {name: array[span] for name, array in self.arrays.items()}
        return Block(self.source, self.log[span], self.time[span], self.stamp[span], arrays)


class Blocks:
    """Makes the blocks of one recording."""

    def __init__(self, recording: Recording) -> None:
        """Give out the topics."""
        self._recording = recording
        self._world = recording.world
        self._topics = recording.allocate_topics()
        self._sensors = {sensor.name: sensor for sensor in self._world.sensors}
        moving = [model for model in self._world.models if frames.moves(model)]
        self._moving = [model.canonical_link for model in moving]
        self._welded = {link.name for model in moving for link in model.links} - set(self._moving)
        self._still = {link.name for model in self._world.models for link in model.links if not frames.moves(model)}
        self._told: set[str] = set()
        self._own: dict[tuple[str, Part], list[Source]] = {}
        self._sources: dict[str, Source] = {}

    def _source(self, topic: str, make: Callable[[], Message], key: str = "", *, latched: bool = False) -> Source:
        """Return the source on a topic, made at its first use; `key` tells those of one topic apart."""
        if topic + key not in self._sources:
            self._sources[topic + key] = Source(topic, make(), latched=latched)
        return self._sources[topic + key]

    def _of_sensor(self, name: str, part: Part) -> list[Source]:
        """Return the sources of one of a sensor's series: its own, then those of its companions."""
        if (name, part) not in self._own:
            self._own[name, part] = self._opened(name, part)
        return self._own[name, part]

    def _opened(self, name: str, part: Part) -> list[Source]:
        found, sensor = [], self._sensors[name]
        for beside in messages.topics_beside(sensor, part):
            topic = self._topics.sensor(name, part, beside)
            if topic not in self._sources:
                message = messages.for_sensor(sensor, part, beside)
                message = to_humble(message) if self._recording.ros == HUMBLE else message
                self._sources[topic] = Source(topic, message, clock_of(sensor))
            found.append(self._sources[topic])
        return found

    def readings(self) -> list[Source]:
        """Return the sources of what all sensors say, whether or not they come to say it."""
        return [source for sensor in self._world.sensors for source in self._of_sensor(sensor.name, "reading")]

    def fixed(self) -> list[Block]:
        """Return `/tf_static`, the transforms that never change: one message or none."""
        found = frames.fixed(self._world)
        if not found:
            return []
        message = transforms.message([(f.parent, f.child) for f in found])
        stamp = nanoseconds(self._recording.epoch, np.zeros(1))
        arrays = {
            "position": np.array([[f.pose.position for f in found]]),
            "orientation": np.array([[f.pose.rotation for f in found]]),
        }
        time = stamp.view(np.uint64)
        return [Block(Source(self._topics.fixed(STATIC), message, latched=True), time, time, stamp, arrays)]

    def of(self, slab: Slab) -> list[Block]:
        """Return all messages of a slab; a block may be empty. Raise `SinkError` where ROS has no room for them."""
        blocks: list[Block] = []
        for name, reading in slab.readings.items():
            blocks += self._reading(name, reading)
        if self._recording.truth:
            for name, part in slab.truth.items():
                blocks += self._truth(name, part)
            if slab.current is not None:
                blocks += self._current(slab.current)
        return blocks + self._clock_and_poses(slab)

    def _reading(self, name: str, reading: Reading) -> list[Block]:
        """Return the messages of one sensor: what it says, what is true, and its hidden errors."""
        if name not in self._sensors:
            raise SinkError("a reading of a sensor that the world does not have", name)
        if reading.clock_error.ndim != 1:
            raise SinkError(f"readings of {name!r} carry a run axis", remedy="write many runs to .npz or .parquet")
        rows = None if reading.emitted.all() else np.flatnonzero(reading.emitted)
        series: dict[Part, Mapping[str, AnyArray]] = {"reading": reading.arrays}
        if self._recording.truth:
            series |= {"ideal": reading.truth} if reading.truth else {}
            if any(key in reading.errors for key in reading.arrays):
                series["bias"] = {key: value for key, value in reading.errors.items() if key in reading.arrays}
        about = messages.about(reading)
        if about is not None:
            series = {part: {**arrays, AGE: reading.time - about} for part, arrays in series.items()}
        time = nanoseconds(reading.epoch, reading.time if about is None else about).view(np.uint64)
        stamp = stamps(reading, clock_of(self._sensors[name]), about)
        own = about is None and reading.arrivals is None
        arrived = time if own else nanoseconds(reading.epoch, reading.arrival).view(np.uint64)
        blocks = []
        for part, arrays in series.items():
            kept = arrays if rows is None else {key: array[rows] for key, array in arrays.items()}
            spans = (arrived if part == "reading" else time, time, stamp)
            spans = spans if rows is None else (spans[0][rows], spans[1][rows], spans[2][rows])
            for source in self._of_sensor(name, part):
                if source.message.constant:
                    whole = reading.true_stamp
                    at = whole.view(np.uint64)
                    blocks.append(Block(source, at, at, whole, {}))
                else:
                    blocks.append(Block(source, *spans, kept))
        return blocks + self._faults(name, reading)

    def _faults(self, name: str, reading: Reading) -> list[Block]:
        """Return which faults act on a sensor that has any, at every sample."""
        if not (self._recording.truth and FAULT in reading.errors):
            return []
        stamp = reading.true_stamp
        time, acts = stamp.view(np.uint64), {FAULT: reading.errors[FAULT]}
        return [Block(self._source(self._topics.fault(name), fault.message), time, time, stamp, acts)]

    def _truth(self, name: str, part: Truth) -> list[Block]:
        """Return the ground truth of one link: of one that never moves its first instant, of a welded one nothing.

        A welded link is where `/tf_static` says, against a canonical link whose truth is there.
        """
        still = name in self._still
        if name in self._welded or name in self._told or not part.time.size:
            return []
        if still:
            self._told.add(name)
            part = part.between(0, 1)
        pose_topic, accel_topic = self._topics.truth(name)
        if not pose_topic:
            raise SinkError("the truth of a link that the world does not have", name)
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
            Block(self._source(pose_topic, lambda: truth.odometry(name), latched=still), time, time, stamp, pose),
            Block(self._source(accel_topic, lambda: truth.accel(name), latched=still), time, time, stamp, accel),
        ]

    def _current(self, part: Current) -> list[Block]:
        """Return the velocity of the water, at one place and in layers."""
        if part.velocity.ndim != 2:
            raise SinkError("the current carries a run axis", remedy="write many runs to .npz or .parquet")
        stamp = part.stamp
        time = stamp.view(np.uint64)
        source = self._source(self._topics.current, current.message)
        blocks = [Block(source, time, time, stamp, {"velocity": part.velocity})]
        if part.layers is not None:
            depths = part.layers.depths
            source = self._source(self._topics.layers, lambda: current.layers(depths))
            blocks.append(Block(source, time, time, stamp, {"velocity": part.layers.velocity}))
        return blocks

    def _clock_and_poses(self, slab: Slab) -> list[Block]:
        """Return `/clock` at every instant of truth, else of any reading, and `/tf` of the models that move."""
        times = {id(part.time): part for part in slab.truth.values()}
        spans = [part.stamp for part in times.values()]
        spans = spans or [reading.true_stamp for reading in slab.readings.values()]
        if not spans:
            return []
        alike = all(np.array_equal(span, spans[0]) for span in spans[1:])
        stamp = spans[0] if alike else np.unique(np.concatenate(spans))
        time = stamp.view(np.uint64)
        blocks = [Block(self._source(self._topics.fixed(CLOCK), clock.message), time, time, stamp, {})]
        groups: dict[bytes, list[Truth]] = {}
        for name in self._moving:
            if name in slab.truth:
                groups.setdefault(slab.truth[name].time.tobytes(), []).append(slab.truth[name])
        return blocks + [self._poses(parts) for parts in groups.values()]

    def _poses(self, parts: list[Truth]) -> Block:
        """Return `/tf` of models whose truth has the same instants; each such group has a source of its own."""
        names = [(truth.WORLD, part.name) for part in parts]
        source = self._source(self._topics.fixed(TRANSFORMS), lambda: transforms.message(names), key=repr(names))
        stamp = parts[0].stamp
        arrays = {
            "position": abreast([part.position for part in parts]),
            "orientation": abreast([part.orientation for part in parts]),
        }
        time = stamp.view(np.uint64)
        return Block(source, time, time, stamp, arrays)


def abreast(arrays: list[FloatArray]) -> FloatArray:
    """Return arrays (n, k) of several models as one (n, model, k), of one model without a copy."""
    return arrays[0][:, None] if len(arrays) == 1 else np.stack(arrays, axis=1)
