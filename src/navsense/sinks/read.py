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
from navsense.messages.base import SECOND, Part
from navsense.motion.base import MotionBlock
from navsense.motion.mounted import mounted
from navsense.noise.planned import FAULT
from navsense.pose import Pose
from navsense.series import NANOSECONDS, Current, Layers, Reading, Slab, Truth, all_true, nanoseconds
from navsense.sinks import frames, stored
from navsense.sinks.base import Recording
from navsense.sinks.columns import OURS, Arrays, Batch, Column, is_alike, joined, reads
from navsense.sinks.guessed import absolute, chosen, guessed
from navsense.sinks.pairs import popped
from navsense.sinks.records import DamagedError
from navsense.sinks.sources import Line, Source, layout_of
from navsense.sinks.topics import FIXED, PARTS, Topics, allocate_topics
from navsense.sinks.world_json import StoredWorld, UnspecifiedLatency, format_note, world_from_json
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray, Times
from navsense.world import Model, MountedSensor, World

ALREADY = frozenset(("/rosout", "/parameter_events"))
"""Topics that say nothing that is not known from others."""

SLAB_BYTES = 12_000_000
"""Messages of one window take about as many bytes."""

MOST_ROWS = 20_000
"""So many rows of a sensor wait for messages of its faults, and no more."""

Series = tuple[Part, str]
"""Which of a sensor's series, and whose companion."""

Gaps = Mapping[Series, BoolArray]
"""Of which rows (n,) a series has no message."""


@dataclass(eq=False)
class Head:
    """What all sensors of a recording go by: its epoch (s), who wrote it, whether it says their rates."""

    epoch: int
    own: bool
    exact: bool

    def seconds(self, stamp: IntArray, rate: float) -> Times:
        """Return stamps (n,) ns as s after the epoch; the very instants of a rate (Hz) where it is known exactly."""
        since = stamp - self.epoch * SECOND
        found: Times = since / NANOSECONDS
        if self.exact and rate:
            at = np.rint(found * rate) / rate
            found = np.where(np.rint(at * NANOSECONDS).astype(np.int64) == since, at, found)
        return found

    def sent(self, log: IntArray, sensor: MountedSensor) -> IntArray:
        """Return when messages that arrived at `log` (n,) ns were sent: the latency before, as `Latency` adds it."""
        delay = _delay(sensor)
        if not delay:
            return log
        found = log - round(delay * NANOSECONDS)
        if self.exact and sensor.rate:
            # The sum was rounded to ns, and the instant itself is: their difference may be off by one.
            at = np.rint((found - self.epoch * SECOND) / NANOSECONDS * sensor.rate) / sensor.rate
            found = np.where(nanoseconds(self.epoch, at + delay) == log, nanoseconds(self.epoch, at), found)
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
    _rows: int = 0
    _untold: int = 0
    _held: list[Reading] = field(default_factory=list)
    _gone_on: bool = False

    @property
    def own(self) -> Series:
        """Return the series that the others go by: the sensor's own, or the first beside it where that is not read."""
        found = (key for key, column in self.columns.items() if key[0] == "reading" and not column.is_silent)
        return next(found, ("reading", ""))

    def pop(self, *, last: bool) -> Reading | None:
        """Return the rows of which all topics are there, None for none; with `last` those whose others never came.

        Of a sensor that has faults none are before there is a fault message of one of them, or they are too many.
        """
        goes_on = self._goes_on
        found = self._popped(last=last)
        if self.faults is None or goes_on or not (found or self._held):
            return found
        self._held += [found] if found else []
        self._gone_on = self._rows > MOST_ROWS
        if not (self._goes_on or last):
            return None
        whole, self._held = stored.joined(self._held), []
        if self._goes_on:
            return whole
        return replace(whole, errors={name: array for name, array in whole.errors.items() if name != FAULT})

    def _popped(self, *, last: bool) -> Reading | None:
        """Return the rows of which all topics are there, as `pop` does, with faults 0 where there is no message."""
        own = self.columns[self.own]
        if own.is_silent:
            return None
        others = {key: c for key, c in self.columns.items() if not c.is_silent and key != self.own}
        if last:
            others = {key: column for key, column in others.items() if column.parts}
        limit = own.count if last else self._faults_known()
        together = [key for key in others if key[0] == "reading"]
        found = popped(own, others, limit, self.spoilt, instants=self.head.own, last=last, together=together)
        if found is None:
            return None
        for key in found.missing:
            if key not in self.spoilt:
                self.spoilt.add(key)
                self.notes.append(_gaps(others[key], own))
        return self._reading(found.own, found.others, found.missing)

    def _faults_known(self) -> int:
        """Return how many of the rows that wait are known with the faults that act on them."""
        own = self.columns[self.own]
        if self.faults is None or not own.parts:
            return own.count
        known = self.faults.parts[-1].log[-1:] if self.faults.parts else np.zeros(0, dtype=np.int64)
        last = int(known[0]) if known.size else self._heard
        return max(int(np.searchsorted(joined(own.parts).log, last, side="right")), own.count - MOST_ROWS)

    def _times(self, own: Batch, parts: Mapping[Series, Batch]) -> tuple[IntArray, IntArray]:
        """Return the true instants that the messages are about (n,) ns, and the stamps."""
        if not self.head.own:
            shown = np.where(own.stamp == 0, own.log, own.stamp)
            return shown, shown
        return _instants(own, parts), own.stamp

    def _reading(self, own: Batch, parts: Mapping[Series, Batch], gaps: Gaps) -> Reading:
        """Return rows as a reading."""
        sensor, head = self.sensor, self.head
        about, stamp = self._times(own, parts)
        is_known = head.own and (head.exact or sensor.spec.type in messages.ABOUT)
        late = sensor.latency is not None if is_known else bool((own.log != about).any())
        told = about
        if sensor.spec.type in messages.ABOUT and head.own:
            told = head.sent(own.log, sensor) if _delay(sensor) is not None else about
        time = head.seconds(told, sensor.rate)
        instant = time if told is about else head.seconds(about, 0.0)
        struck = told
        if not head.own:
            struck = own.log if sensor.spec.type in messages.ABOUT else _instants(own, parts)
        said = {"time_of_validity": instant} if sensor.spec.type in messages.ABOUT else {}
        arrays = _named("reading", parts, gaps, said | own.arrays)
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
            truth=_named("ideal", parts, gaps),
            errors=_named("bias", parts, gaps) | self._faults(struck),
            valid=np.asarray(np.isfinite(first).reshape(time.size, -1).any(axis=1)),
            emitted=all_true((time.size,)),
            epoch=head.epoch,
            arrivals=(own.log - head.epoch * SECOND) / NANOSECONDS if late else None,
        )

    def _faults(self, true: IntArray) -> Arrays:
        """Return which faults act at true instants (n,) ns, 0 where no message says it; nothing without faults."""
        if self.faults is None:
            return {}
        told, alike = np.zeros(true.size, dtype=np.uint8), np.zeros(true.size, dtype=np.bool_)
        known = joined(self.faults.parts) if self.faults.parts else None
        if known is not None and known.log.size:
            self._heard = int(known.log[-1])
            at = np.minimum(np.searchsorted(known.log, true), known.log.size - 1)
            alike = known.log[at] == true
            told[alike] = known.arrays[FAULT][at[alike]]
            self.faults.parts = [known.cut(int(at[-1]))[1]]
        self._rows += true.size
        self._untold += int((~alike).sum())
        return {FAULT: told}

    @property
    def _tells(self) -> bool:
        """Tell whether there is a fault message of any row."""
        return self._untold < self._rows

    @property
    def _goes_on(self) -> bool:
        """Tell whether rows are handed on with what is known of their faults."""
        return self._gone_on or self._tells

    def said(self) -> list[str]:
        """Return what is said of topics of which messages were lost."""
        if self.faults is None or not self._untold:
            return self.notes
        whose, but = "its sensor's readings", ""
        if self._goes_on:
            whose, but = f"{self._untold} of {self._rows} of {whose}", "; they are taken as without a fault"
        return [*self.notes, f"topic {self.faults.line.topic}: has no message of the instants of {whose}{but}"]


def _named(part: Part, parts: Mapping[Series, Batch], gaps: Gaps, own: Arrays | None = None) -> Arrays:
    """Return all arrays of one of the three series: of rows whose message was lost, what those before it say."""
    found = dict(own or {})
    for key, batch in parts.items():
        if key[0] == part:
            found |= {name: _filled(array, found.get(name), gaps.get(key)) for name, array in batch.arrays.items()}
    return found


def _filled(array: AnyArray, before: AnyArray | None, gaps: BoolArray | None) -> AnyArray:
    """Return rows of an array, those of gaps (n,) out of what was said before of the same name."""
    if before is None or gaps is None or before.shape != array.shape:
        return array
    found = array.copy()
    found[gaps] = before[gaps]
    return found


def _delay(sensor: MountedSensor) -> float | None:
    """Return the latency (s) that all messages of a sensor have, None where it is another for each, or is not known.

    A recording may hold only that there is one.
    """
    latency = sensor.latency
    if latency is None:
        return 0.0
    return (
        latency.fixed + latency.mean if latency.stddev == 0.0 and not isinstance(latency, UnspecifiedLatency) else None
    )


def _instants(own: Batch, parts: Mapping[Series, Batch]) -> IntArray:
    """Return the true instants (n,) ns that messages are about: those of their hidden messages, if they have any."""
    found = own.time
    for part in ("bias", "ideal"):
        for log in (batch.log for (kind, _), batch in parts.items() if kind == part):
            found = np.where(log == 0, found, log)
    return found


def _gaps(column: Column, own: Column) -> str:
    """Return what is said of a topic of which messages were lost."""
    return f"topic {column.line.topic}: has not a message for each of {own.line.topic}; what is missing is NaN"


@dataclass(eq=False)
class LinkColumns:
    """The two topics of one link's truth."""

    link: str
    pose: Column
    accel: Column | None
    notes: list[str] = field(default_factory=list)

    def pop(self, head: Head, *, last: bool) -> Truth | None:
        """Return the rows of which both topics are there, None for none; with `last` those without acceleration."""
        others = {"accel": self.accel} if self.accel and (self.accel.parts or not last) else {}
        found = popped(self.pose, others, self.pose.count, self.notes and others, instants=head.own, last=last)
        if found is None:
            return None
        if self.accel and found.missing and not self.notes:
            self.notes.append(_gaps(self.accel, self.pose))
        shown, stamp = found.own.arrays, found.own.stamp
        unknown = np.full((stamp.size, 3), np.nan)
        rest: Arrays = {"acceleration": unknown, "angular_acceleration": unknown}
        if found.others:
            rows = found.others["accel"].arrays
            turned = truths.to_link(truths.conjugates(shown["orientation"]), rows["linear"])
            rest = {"acceleration": turned, "angular_acceleration": rows["angular"]}
        return Truth(self.link, head.seconds(stamp, 0.0), **shown, **rest, epoch=head.epoch)


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
        layout = layout_of(source)
        try:
            stored = world_from_json(layout) if layout else None
            self.stored = stored or StoredWorld(guessed(source), notes=(format_note(layout),) if layout else ())
            self.world: World = self.stored.world
            runs = [int(run) for run in inputs.parse_json(source.about.get("runs", "[0]"))] or [0]
            epoch = int(source.about["epoch"]) if "epoch" in source.about else self._first() // SECOND
            seed, asked = int(source.about.get("seed", 0)), float(source.about.get("duration_asked", math.inf))
        except (DamagedError, ValueError, TypeError) as error:
            raise SinkError(f"the recording is damaged: {error}", where=source.where) from error
        self.head = Head(epoch, source.own, stored is not None)
        self.recording = Recording(self.world, epoch, seed, asked, runs[:1], topics=self.stored.topics)
        self._columns: dict[str, Column] = {}
        read = chosen(source.lines)
        lines = {name: read[topic] for topic, name in absolute(read).items()}
        topics = self.stored.topics or allocate_topics(self.world)
        self._sensors = [one for s in self.world.sensors if (one := self._sensor(s, topics, lines)) is not None]
        self._links = [found for link in self._names() if (found := self._link(link, topics, lines)) is not None]
        self._current = self._column(lines.get(topics.current), currents.TYPE, _velocities) if topics.current else None
        self._layers = self._deep(lines.get(topics.layers)) if topics.layers else None
        known = ALREADY | {topics.fixed(what) for what in FIXED}
        unread = (line for line in source.lines if line.topic not in known and not self._is_read(line))
        self.left = list(dict.fromkeys(_unread(line) for line in unread))

    def _is_read(self, line: Line) -> bool:
        """Tell whether messages of a topic and type are read."""
        column = self._columns.get(line.topic)
        return column is not None and is_alike(line, column.line)

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
        if not reads(line):
            return None
        column = Column(line, arrays)
        self._columns[line.topic] = column
        return column

    def _sensor(self, sensor: MountedSensor, topics: Topics, lines: Mapping[str, Line]) -> SensorColumns | None:
        """Return the topics of one sensor, None where its own is not there."""
        found = SensorColumns(sensor, self.head)
        for part in PARTS:
            for beside in topics.companions(sensor.name, part):
                line = lines.get(topics.sensor(sensor.name, part, beside))
                is_generic = line is not None and line.type.startswith(OURS)

                def arrays(
                    rows: AnyArray, part: Part = part, beside: str = beside, is_generic: bool = is_generic
                ) -> Arrays:
                    return messages.arrays_of(sensor, rows, part, beside, is_generic=is_generic)

                column = self._column(line, "", arrays)
                if column is not None:
                    found.columns[part, beside] = column
        # What is told of a fault is the instant at which a reading is sent.
        if sensor.faults.act and (sensor.spec.type not in messages.ABOUT or _delay(sensor) is not None):
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
        size = 0
        for lots in self._source.lots(self._columns):
            for lot in lots:
                if self._is_read(lot.line):
                    self._columns[lot.line.topic].take(lot)
                    size += lot.size
            if size >= SLAB_BYTES:
                yield self._slab(last=False)
                size = 0
        yield self._slab(last=True)
        noted = [one.said() for one in self._sensors] + [one.notes for one in self._links]
        self.left += [note for notes in noted for note in notes]
        self.left += [_empty(column) for column in self._columns.values() if column.empty]
        own = [sensor.columns[sensor.own] for sensor in self._sensors]
        own += [one for sensor in self._sensors for one in sensor.columns.values() if one.line.type.startswith(OURS)]
        self.left += [_unread(column.line) for column in dict.fromkeys(own) if column.is_silent]

    def _slab(self, *, last: bool) -> Slab:
        """Return what is whole."""
        readings = {one.sensor.name: found for one in self._sensors if (found := one.pop(last=last)) is not None}
        truth = {one.link: part for one in self._links if (part := one.pop(self.head, last=last)) is not None}
        for model in self.world.models:
            if model.canonical_link in truth and frames.moves(model):
                truth |= {link: own for link, own in _welded(model, truth[model.canonical_link]) if link not in truth}
        times = [one.time for one in readings.values()] + [one.time for one in truth.values()]
        start = min((float(time[0]) for time in times), default=0.0)
        end = max((float(time[-1]) for time in times), default=0.0)
        return Slab(start, end, readings, truth, self._flow(last=last))

    def _flow(self, *, last: bool) -> Current | None:
        """Return the water's velocity, None where none is whole."""
        if self._current is None:
            return None
        others = {"layers": self._layers} if self._layers and (self._layers.parts or not last) else {}
        taken = popped(self._current, others, self._current.count, (), instants=self.head.own, last=last)
        if taken is None:
            return None
        batch, shown = taken.own, self.world.current_topic
        time = self.head.seconds(batch.stamp, shown.rate)
        found = Current("/" + shown.topic.strip("/"), shown.position, time, batch.arrays["velocity"], self.head.epoch)
        if "layers" not in taken.others or shown.layers is None:
            return found
        deep: FloatArray = taken.others["layers"].arrays["velocity"]
        return replace(found, topic=shown.topic, layers=Layers(shown.layers.topic, shown.layers.depths, deep))


def _unread(line: Line) -> str:
    """Return what is said of a topic of which nothing is read."""
    return f"topic {line.topic} of {line.type or line.encoding}: nothing that is read"


def _empty(column: Column) -> str:
    """Return what is said of messages that have not a single byte."""
    count = column.empty
    return f"topic {column.line.topic}: {count} {'message' if count == 1 else 'messages'} without any bytes"


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
