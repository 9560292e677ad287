"""Readings, truth and currents out of a recording of messages, window by window: the inverse of `blocks`.

    time = publish_time - epoch,   clock_error = header.stamp - publish_time        of a recording of navsense
    time = header.stamp - epoch,   clock_error = 0,   arrival = log_time - epoch    of another program's: no truth in it

A bag has one time a message: of a recording of navsense the instant that a reading is about is that of its `ideal`
message, which arrives then, else its own without latency. The epoch is what the recording says, else the second of its
first message. Rows that were dropped are no messages, and are not there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from navsense import messages
from navsense.errors import SinkError
from navsense.messages import current as currents
from navsense.messages import fault
from navsense.messages import truth as truths
from navsense.messages.base import SECOND, Part
from navsense.motion.base import MotionBlock
from navsense.motion.mounted import mounted
from navsense.noise.planned import FAULT
from navsense.pose import Pose
from navsense.series import NANOSECONDS, Current, Layers, Reading, Slab, Truth, all_true
from navsense.sinks import frames
from navsense.sinks.base import Recording
from navsense.sinks.columns import Arrays, Batch, Column, joined
from navsense.sinks.described import world_of
from navsense.sinks.guessed import guessed
from navsense.sinks.records import DamagedError
from navsense.sinks.sources import Item, Line, Source, layout_of
from navsense.sinks.topics import Topics
from navsense.sinks.transfer import batches
from navsense.typing import AnyArray, FloatArray, IntArray, Times
from navsense.world import Model, MountedSensor, World

ALREADY = frozenset(("/clock", "/tf", "/tf_static", "/rosout", "/parameter_events"))
"""Topics that say nothing that is not known from others."""

Series = tuple[Part, str]
"""Which of a sensor's series, and whose companion."""


@dataclass(eq=False)
class Head:
    """What all sensors of a recording go by: its epoch (s), who wrote it, what times its messages have."""

    epoch: int
    own: bool
    two_times: bool
    exact: bool

    def seconds(self, stamp: IntArray, rate: float) -> Times:
        """Return stamps (n,) ns as s after the epoch; the very instants of a rate (Hz) where it is known exactly."""
        since = stamp - self.epoch * SECOND
        found: Times = since / NANOSECONDS
        if self.exact and rate:
            at = np.rint(found * rate) / rate
            found = np.where(np.rint(at * NANOSECONDS).astype(np.int64) == since, at, found)
        return found


@dataclass(eq=False)
class SensorColumns:
    """The topics of one sensor."""

    sensor: MountedSensor
    head: Head
    columns: dict[Series, Column] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    spoilt: set[Series] = field(default_factory=set)
    faults: Column | None = None
    _heard: int = -1

    @property
    def own(self) -> Series:
        """Return the series that the others go by: the sensor's own, or the first beside it where that is not read."""
        found = (key for key, column in self.columns.items() if key[0] == "reading" and not column.is_silent)
        return next(found, ("reading", ""))

    def pop(self, *, last: bool) -> Reading | None:
        """Return the rows of which all topics are there, None for none; with `last` those whose others never came."""
        own = self.columns[self.own]
        if own.is_silent:
            return None
        others = {key: c for key, c in self.columns.items() if not c.is_silent and key != self.own}
        if last:
            others = {key: column for key, column in others.items() if column.parts}
        waited = [column.count for key, column in others.items() if key not in self.spoilt]
        count = own.count if last else min([own.count, *waited, self._faults_known()])
        if not count:
            return None
        batch = own.pop(count)
        parts = {key: column.padded(count) for key, column in others.items()}
        for key, part in parts.items():
            self._check(key, batch, part)
        return self._reading(batch, parts)

    def _faults_known(self) -> int:
        """Return how many of the rows that wait are known with the faults that act on them."""
        own = self.columns[self.own]
        if self.faults is None or not own.parts:
            return own.count
        known = self.faults.parts[-1].log[-1:] if self.faults.parts else np.zeros(0, dtype=np.int64)
        last = int(known[0]) if known.size else self._heard
        return int(np.searchsorted(joined(own.parts).log, last, side="right"))

    def _check(self, key: Series, own: Batch, part: Batch) -> None:
        """Make NaN of what is not of the reading's own instants, and say so once."""
        alike = (own.stamp == part.stamp) | (self.head.own & (own.time == part.time))
        if alike.all():
            return
        for name, array in part.arrays.items():
            part.arrays[name] = np.where(alike.reshape(-1, *[1] * (array.ndim - 1)), array, np.nan)
        if key not in self.spoilt:
            self.spoilt.add(key)
            topics = self.columns[key].line.topic, self.columns[self.own].line.topic
            self.notes.append(f"topic {topics[0]}: has not a message for each of {topics[1]}; what is missing is NaN")

    def _times(self, own: Batch, parts: Mapping[Series, Batch]) -> tuple[IntArray, IntArray]:
        """Return the true instants that the messages are about (n,) ns, and the stamps."""
        if not self.head.own:
            shown = np.where(own.stamp == 0, own.log, own.stamp)
            return shown, shown
        ideal = parts.get(("ideal", ""))
        if self.head.two_times or ideal is None:
            return own.time, own.stamp
        return np.where(ideal.log == 0, own.time, ideal.log), own.stamp

    def _reading(self, own: Batch, parts: Mapping[Series, Batch]) -> Reading:
        """Return rows as a reading."""
        sensor, head = self.sensor, self.head
        about, stamp = self._times(own, parts)
        arrays = self._named("reading", parts, own.arrays)
        late = bool((own.log != about).any()) if not head.own else sensor.latency is not None
        told = own.log if sensor.spec.type in messages.ABOUT and not late and head.own else about
        time = head.seconds(told, sensor.rate)
        instant = time if told is about else head.seconds(about, 0.0)
        if sensor.spec.type in messages.ABOUT:
            arrays.setdefault("time_of_validity", instant)
        order = [output.name for output in sensor.spec.outputs]
        kept = {name: arrays[name] for name in order if name in arrays}
        first = next(iter(kept.values()), np.zeros(time.size))
        return Reading(
            name=sensor.name,
            type=sensor.spec.type,
            frame=sensor.frame,
            unit={output.name: output.unit for output in sensor.spec.outputs if output.name in kept},
            time=time,
            clock_error=(stamp - head.epoch * SECOND) / NANOSECONDS - instant,
            arrays=kept,
            truth=self._named("ideal", parts),
            errors=self._named("bias", parts) | self._faults(told),
            valid=np.asarray(np.isfinite(first).reshape(time.size, -1).any(axis=1)),
            emitted=all_true((time.size,)),
            epoch=head.epoch,
            arrivals=(own.log - head.epoch * SECOND) / NANOSECONDS if late else None,
        )

    def _faults(self, true: IntArray) -> Arrays:
        """Return which faults act at true instants (n,) ns; nothing where they are not recorded."""
        if self.faults is None or not self.faults.parts:
            return {}
        known = joined(self.faults.parts)
        if not known.log.size:
            return {}
        self._heard = int(known.log[-1])
        at = np.minimum(np.searchsorted(known.log, true), known.log.size - 1)
        told = np.where(known.log[at] == true, known.arrays[FAULT][at], 0).astype(np.uint8)
        _, rest = known.cut(int(at[-1]))
        self.faults.parts = [rest]
        return {FAULT: told}

    @staticmethod
    def _named(part: Part, parts: Mapping[Series, Batch], own: Arrays | None = None) -> Arrays:
        """Return all arrays of one of the three series."""
        found = dict(own or {})
        for (kind, _), batch in parts.items():
            if kind == part:
                found |= batch.arrays
        return found


@dataclass(eq=False)
class LinkColumns:
    """The two topics of one link's truth."""

    link: str
    pose: Column
    accel: Column | None

    def pop(self, head: Head) -> Truth | None:
        """Return the rows of which both topics are there, None for none."""
        count = min(self.pose.count, self.accel.count) if self.accel else self.pose.count
        if not count:
            return None
        batch = self.pose.pop(count)
        found = batch.arrays
        unknown = np.full((count, 3), np.nan)
        rest: Arrays = {"acceleration": unknown, "angular_acceleration": unknown}
        if self.accel:
            rows = self.accel.pop(count).arrays
            turned = truths.to_link(truths.conjugates(found["orientation"]), rows["linear"])
            rest = {"acceleration": turned, "angular_acceleration": rows["angular"]}
        return Truth(self.link, head.seconds(batch.stamp, 0.0), **found, **rest, epoch=head.epoch)


@dataclass(frozen=True, eq=False)
class Given:
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


def carried(truth: Truth, pose: Pose, name: str) -> Truth:
    """Return the truth of what stands still at `pose` on a link."""
    block = mounted(Given(truth), pose).at(truth.time)
    p, q, v, w, a, alpha = block.arrays
    return Truth(name, truth.time, p, q, v, w, a, alpha, truth.epoch)


class MessageReader:
    """A recording of messages as readings: the head of the recording, its slabs, and what is left out of them."""

    def __init__(self, source: Source) -> None:
        """Tell what is on which topic. Raises `SinkError` where the recording does not say it, and holds no message."""
        self._source = source
        told = layout_of(source)
        try:
            self.world: World = world_of(told) if told else guessed(source)
            runs = [int(run) for run in json.loads(source.about.get("runs", "[0]"))] or [0]
            epoch = int(source.about["epoch"]) if "epoch" in source.about else self._first() // SECOND
            seed, asked = int(source.about.get("seed", 0)), float(source.about.get("duration_asked", math.inf))
        except (DamagedError, ValueError, TypeError) as error:
            raise SinkError(f"the recording is damaged: {error}", where=source.where) from error
        self.head = Head(epoch, source.own, source.two_times, told is not None)
        self.recording = Recording(self.world, epoch, seed, asked, runs[:1])
        self._columns: dict[str, Column] = {}
        lines: dict[str, Line] = {}
        for line in source.lines:
            lines.setdefault(line.topic, line)
        topics = Topics(self.world)
        self._sensors = [one for s in self.world.sensors if (one := self._sensor(s, topics, lines)) is not None]
        self._links = [found for link in self._names() if (found := self._link(link, topics, lines)) is not None]
        self._current = self._column(lines.get(topics.current), currents.TYPE, _velocities) if topics.current else None
        self._layers = self._deep(lines.get(topics.layers)) if topics.layers else None
        self.left = [
            _unread(line) for line in lines.values() if line.topic not in self._columns and line.topic not in ALREADY
        ]

    def _first(self) -> int:
        """Return when the first message arrived (ns), 0 where there is none."""
        return next((item.log for item in self._source.items()), 0)

    def _names(self) -> list[str]:
        """Return the links whose truth may be there."""
        return [link.name for model in self.world.models for link in model.links]

    def _column(self, line: Line | None, kind: str, arrays: Any) -> Column | None:
        """Return the column of a topic, None where it is not there or of another type, or of one defined otherwise."""
        if line is None or not line.is_ros or (kind and line.type != kind):
            return None
        column = Column(line, arrays)
        if not column.is_known:
            return None
        self._columns[line.topic] = column
        return column

    def _sensor(self, sensor: MountedSensor, topics: Topics, lines: Mapping[str, Line]) -> SensorColumns | None:
        """Return the topics of one sensor, None where its own is not there."""
        found = SensorColumns(sensor, self.head)
        parts: tuple[Part, ...] = ("reading", "ideal", "bias")
        for part in parts:
            for beside in messages.topics_beside(sensor, part):

                def arrays(rows: AnyArray, part: Part = part, beside: str = beside) -> Arrays:
                    return messages.arrays_of(sensor, rows, part, beside)

                column = self._column(lines.get(topics.sensor(sensor.name, part, beside)), "", arrays)
                if column is not None:
                    found.columns[part, beside] = column
        if sensor.faults.act:
            found.faults = self._column(lines.get(topics.fault(sensor.name)), fault.TYPE, _acting)
        return found if ("reading", "") in found.columns else None

    def _link(self, link: str, topics: Topics, lines: Mapping[str, Line]) -> LinkColumns | None:
        """Return the topics of one link's truth, None where they are not there."""
        pose_topic, accel_topic = topics.truth(link)
        pose = self._column(lines.get(pose_topic), truths.ODOMETRY, truths.arrays)
        accel = self._column(lines.get(accel_topic), truths.ACCEL, _accelerations)
        return LinkColumns(link, pose, accel) if pose is not None else None

    def _deep(self, line: Line | None) -> Column | None:
        """Return the column of the velocities at several depths."""
        layers = self.world.current_topic.layers
        count = len(layers.depths) if layers else 0
        return self._column(line, currents.LAYERS, lambda rows: {"velocity": currents.layer_arrays(rows, count)})

    def slabs(self) -> Iterator[Slab]:
        """Yield all that the recording holds, in windows of bounded size. Raises `SinkError`."""
        for batch in batches(self._source):
            self._take(batch)
            yield self._slab(last=False)
        yield self._slab(last=True)
        self.left += [note for sensor in self._sensors for note in sensor.notes]
        own = [sensor.columns[sensor.own] for sensor in self._sensors]
        self.left += [_unread(column.line) for column in own if column.is_silent]

    def _take(self, batch: Sequence[Item]) -> None:
        """Take messages."""
        groups: dict[str, list[Item]] = {}
        for item in batch:
            groups.setdefault(item.line.topic, []).append(item)
        for topic, items in groups.items():
            if topic in self._columns:
                self._columns[topic].take(items)

    def _slab(self, *, last: bool) -> Slab:
        """Return what is whole."""
        readings = {one.sensor.name: found for one in self._sensors if (found := one.pop(last=last)) is not None}
        truth = {one.link: part for one in self._links if (part := one.pop(self.head)) is not None}
        for model in self.world.models:
            if model.canonical_link in truth and frames.moves(model):
                truth |= {link: own for link, own in _welded(model, truth[model.canonical_link]) if link not in truth}
        times = [one.time for one in readings.values()] + [one.time for one in truth.values()]
        start = min((float(time[0]) for time in times), default=0.0)
        end = max((float(time[-1]) for time in times), default=0.0)
        return Slab(start, end, readings, truth, self._flow())

    def _flow(self) -> Current | None:
        """Return the water's velocity, None where none is whole."""
        if self._current is None:
            return None
        count = min(self._current.count, self._layers.count) if self._layers else self._current.count
        if not count:
            return None
        batch, shown = self._current.pop(count), self.world.current_topic
        time = self.head.seconds(batch.stamp, shown.rate)
        found = Current("/" + shown.topic.strip("/"), shown.position, time, batch.arrays["velocity"], self.head.epoch)
        if self._layers is None or shown.layers is None:
            return found
        deep: FloatArray = self._layers.pop(count).arrays["velocity"]
        return replace(found, topic=shown.topic, layers=Layers(shown.layers.topic, shown.layers.depths, deep))


def _unread(line: Line) -> str:
    """Return what is said of a topic of which nothing is read."""
    return f"topic {line.topic} of {line.type or line.encoding}: nothing that is read"


def _velocities(rows: AnyArray) -> Arrays:
    """Return the velocities of the water."""
    return {"velocity": currents.arrays(rows)}


def _acting(rows: AnyArray) -> Arrays:
    """Return which faults act."""
    return {FAULT: rows["data"]}


def _accelerations(rows: AnyArray) -> Arrays:
    """Return what messages of acceleration say, in the link's own frame."""
    return {"linear": rows["accel.linear"], "angular": rows["accel.angular"]}


def _welded(model: Model, truth: Truth) -> Iterator[tuple[str, Truth]]:
    """Yield the truth of each other link of a model that moves."""
    root = model.link(model.canonical_link).pose.inverse()
    for link in model.links:
        if link.name != model.canonical_link:
            yield link.name, carried(truth, root @ link.pose, link.name)
