"""The world of a recording that does not say it: sensors by the types of their topics, links by the static transforms.

A sensor is called by its frame where that is a full name (`rov::base::imu`) and no other's, else by its topic; its link
is the parent of its frame in `/tf_static`. It has had faults where `<topic>/fault` is there. What its sheet is told of
is what its first message holds: covariances, limits, beams. Rates are those between its first two messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from navsense import messages
from navsense.environment.base import Environment, Uniform
from navsense.errors import NavsenseError
from navsense.messages import air_pressure, altimeter, current, depth, dvl, fault, imu, magnetometer, navsat, truth
from navsense.messages import range as ranges
from navsense.messages.cdr import stamps_in
from navsense.messages.repack import Shape
from navsense.motion.still import Still
from navsense.noise.channel import Noise
from navsense.noise.faults import Faults
from navsense.noise.planned import FAULT
from navsense.pose import IDENTITY, Pose, from_rpy, normalised, unit
from navsense.sensors import AirPressure, Altimeter, Depth, Dvl, Imu, Magnetometer, NavSat, Range
from navsense.sensors.base import Output, Sensor
from navsense.sensors.doppler import Beam, Beams, Dialect, Names
from navsense.sensors.range import Cone, Sound
from navsense.sinks.columns import OURS, Decoder, is_alike, reads
from navsense.sinks.sources import NAMELESS, Line, Source
from navsense.sinks.world_json import opaque_sensor
from navsense.ticks import FASTEST, SLOWEST
from navsense.typing import AnyArray
from navsense.world import CurrentTopic, Link, Model, MountedSensor, World

TRUTH = "/truth/"
"""What the topics of a link's truth begin with in recordings of navsense."""

ROBOT = "robot"
"""The model of a sensor whose link belongs to no model that is known."""

STATIC = "/tf_static"


@dataclass(eq=False)
class First:
    """The first message of a topic: its shape and row, and the time (s) to the next."""

    shape: Shape
    row: AnyArray
    time: int
    spacing: float = math.nan
    beside: frozenset[str] = frozenset()

    def deviations(self, path: str, count: int) -> list[Noise]:
        """Return the white noise of the diagonal of a covariance at a path."""
        variances = self.row[path][0].reshape(count, count).diagonal().tolist()
        return [Noise(stddev=math.sqrt(value)) if 0.0 < value < math.inf else Noise() for value in variances]


def _imu(first: First) -> Sensor:
    oriented = bool(first.row["orientation_covariance"][0][0] != -1.0)
    rates = first.deviations("angular_velocity_covariance", 3)
    forces = first.deviations("linear_acceleration_covariance", 3)
    return Imu(
        angular_velocity_x=rates[0],
        angular_velocity_y=rates[1],
        angular_velocity_z=rates[2],
        linear_acceleration_x=forces[0],
        linear_acceleration_y=forces[1],
        linear_acceleration_z=forces[2],
        orientation=oriented,
    )


def _magnetometer(first: First) -> Sensor:
    x, y, z = first.deviations("magnetic_field_covariance", 3)
    return Magnetometer(x=x, y=y, z=z)


def _pressure(first: First) -> Sensor:
    variance = float(first.row["variance"][0])
    noise = Noise(stddev=math.sqrt(variance)) if 0.0 < variance < math.inf else Noise()
    return Depth(pressure=noise) if "_depth" in first.beside else AirPressure(pressure=noise)


def _navsat(first: First) -> Sensor:
    east, _, up = first.deviations("position_covariance", 3)
    return NavSat(horizontal_position=east, vertical_position=up)


def _range(first: First) -> Sensor:
    row = first.row
    least, most, width = (float(row[name][0]) for name in ("min_range", "max_range", "field_of_view"))
    sound = Sound() if int(row["radiation_type"][0]) == ranges.ULTRASOUND else None
    return Range(minimum_range=least, maximum_range=most, beam=Cone(width, 0), sound=sound)


def _along(axis: Any) -> Beam:
    """Return a beam along a unit vector."""
    x, y, z = (float(part) for part in axis)
    return Beam(rotation=from_rpy(0.0, math.atan2(-z, math.hypot(x, y)), math.atan2(y, x)))


def _dvl(dialect: Dialect) -> Callable[[First], Sensor]:
    def made(first: First) -> Sensor:
        axes = [first.row[f"beam_unit_vec.{i}"][0] for i in range(4)]
        return Dvl(beams=Beams(tuple(_along(axis) for axis in axes if axis.any())), dialect=dialect)

    return made


def _uuv(first: First) -> Sensor:
    beams, names = [], []
    for i in range(first.shape.lengths.get("beams", 0)):
        x, y, z, w = first.row[f"beams.{i}.pose.pose.orientation"][0].tolist()
        px, py, pz = first.row[f"beams.{i}.pose.pose.position"][0].tolist()
        beams.append(Beam(rotation=normalised((w, x, y, z)), position=(px, py, pz)))
        names.append(first.shape.texts.get(f"beams.{i}.pose.header.frame_id", ""))
    return Dvl(beams=Beams(tuple(beams)), dialect=Dialect.UUV, names=Names(beam_frames=tuple(names)))


SHEETS: Mapping[str, Callable[[First], Sensor]] = {
    imu.TYPE: _imu,
    magnetometer.TYPE: _magnetometer,
    altimeter.TYPE: lambda _first: Altimeter(),
    air_pressure.TYPE: _pressure,
    navsat.TYPE: _navsat,
    ranges.TYPE: _range,
    dvl.MARINE_TYPE: _dvl(Dialect.OWN),
    dvl.DS_TYPE: _dvl(Dialect.DSROS),
    dvl.UUV_TYPE: _uuv,
}
"""Message type -> what makes a sheet of the first message of a sensor."""

DEFAULTS: Mapping[str, Callable[[], Sensor]] = {
    imu.TYPE: Imu,
    magnetometer.TYPE: Magnetometer,
    altimeter.TYPE: Altimeter,
    air_pressure.TYPE: AirPressure,
    navsat.TYPE: NavSat,
    ranges.TYPE: Range,
    dvl.MARINE_TYPE: Dvl,
    dvl.DS_TYPE: lambda: Dvl(dialect=Dialect.DSROS),
    dvl.UUV_TYPE: lambda: Dvl(dialect=Dialect.UUV),
}
"""Message type -> the sheet of a sensor whose first message tells of none."""

BESIDE: Mapping[str, tuple[tuple[str, str], ...]] = {
    air_pressure.TYPE: (("_depth", depth.DEPTH_TYPE),),
    navsat.TYPE: (("_velocity", navsat.VELOCITY_TYPE),),
    dvl.MARINE_TYPE: (("_water", dvl.MARINE_TYPE), dvl.WHOLE),
    dvl.DS_TYPE: (dvl.WHOLE,),
    dvl.UUV_TYPE: (dvl.WHOLE,),
}
"""Message type -> what stands behind the topics of the messages beside it, and their types."""


@dataclass(eq=False)
class Guess:
    """What the first messages of a recording tell of its world."""

    source: Source
    firsts: dict[str, First] = field(default_factory=dict)
    edges: dict[str, tuple[str, Pose]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Tell which topics are sensors'."""
        self.lines = chosen(self.source.lines)
        self.topics = absolute(self.lines)
        self.beside = {
            line.topic + behind
            for line in self.lines.values()
            for behind, kind in BESIDE.get(line.type, ())
            if self._kind(line.topic + behind) == kind
        }
        self.sensors = [line for line in self.lines.values() if self._is_sensor(line)]

    def _kind(self, topic: str) -> str:
        """Return the type of a topic, empty where there is none."""
        return self.lines[topic].type if topic in self.lines else ""

    def _is_sensor(self, line: Line) -> bool:
        """Tell whether a topic is what a sensor says."""
        base, _, part = line.topic.rpartition("/")
        hidden = part in ("ideal", "bias") and base in self.lines
        return _is_instrument(line) and not hidden and line.topic not in self.beside and reads(line)

    def read(self) -> None:
        """Read the first two messages of each sensor, the first of each link's truth, and all static transforms."""
        wanted = {line.topic for line in self.sensors} | {
            line.topic for line in self.lines.values() if line.type == truth.ODOMETRY and line.topic.startswith(TRUTH)
        }
        read = (self.lines[topic] for topic in (*wanted, STATIC) if topic in self.lines)
        decoders = {line.topic: Decoder(line) for line in read if line.is_ros and reads(line)}
        waiting = set(decoders)
        for item in self.source.items():
            topic = item.line.topic
            if topic not in waiting or not item.data or not is_alike(item.line, self.lines[topic]):
                continue
            ((shape, _, rows),) = decoders[topic].blocks([item.data])
            if topic == STATIC:
                self._transforms(shape, rows)
                waiting.discard(topic)
            else:
                self._sensor(topic, shape, rows, item.log, waiting)
            if not waiting:
                return

    def _sensor(self, topic: str, shape: Shape, rows: AnyArray, log: int, waiting: set[str]) -> None:
        """Note the first message of a topic, or the time to its second."""
        time = int(stamps_in(rows)[0]) if "header.stamp.sec" in (rows.dtype.names or ()) else log
        if topic in self.firsts:
            self.firsts[topic].spacing = (time - self.firsts[topic].time) * 1e-9
            waiting.discard(topic)
        else:
            behind = frozenset(b for b, _ in BESIDE.get(self._kind(topic), ()) if topic + b in self.beside)
            self.firsts[topic] = First(shape, rows.copy(), time, beside=behind)

    def _transforms(self, shape: Shape, rows: AnyArray) -> None:
        """Note the transforms of one message."""
        for i in range(shape.lengths.get("transforms", 0)):
            path = f"transforms.{i}"
            child = shape.texts[f"{path}.child_frame_id"].lstrip("/")
            parent = shape.texts[f"{path}.header.frame_id"].lstrip("/")
            x, y, z = rows[f"{path}.transform.translation"][0].tolist()
            a, b, c, w = rows[f"{path}.transform.rotation"][0].tolist()
            turn = (w, a, b, c)
            if not all(map(math.isfinite, (x, y, z, *turn))):
                continue  # as tf2 does
            rotation = unit(turn) if any(turn) else IDENTITY.rotation
            self.edges[child] = (parent, Pose((x, y, z), rotation))

    def world(self) -> World:
        """Return the world."""
        links = {
            one.shape.texts.get("child_frame_id", ""): topic
            for topic, one in self.firsts.items()
            if topic.startswith(TRUTH)
        }
        models = {link: topic.removeprefix(TRUTH).replace("/", "::") for link, topic in links.items() if link}
        sensors = _told_apart([self._mounted(line, models) for line in self.sensors if line.topic in self.firsts])
        canonical = {name: link for link, name in models.items()}
        for sensor in sensors:
            canonical.setdefault(sensor.model, sensor.link)
        made: list[Model] = []
        for name, own in canonical.items():
            carried = {sensor.link for sensor in sensors if sensor.model == name} - {own}
            carried |= {
                child for child, (parent, _) in self.edges.items() if parent == own and self._is_link(child, sensors)
            }
            others = tuple(Link(link, self._pose(link, own)) for link in sorted(carried))
            made.append(Model(name, (Link(own), *others), own, motion=Still() if own in models else None))
        name, flow = self.source.about.get("world", NAMELESS), self._current()
        if flow is None:
            return World(name, tuple(made), sensors)
        still = Environment(current=Uniform((0.0, 0.0, 0.0)))
        return World(name, tuple(made), sensors, environment=still, current_topic=CurrentTopic(flow))

    def _current(self) -> str | None:
        """Return the topic of the water's velocity in a recording of navsense: the one twist that is no sensor's."""
        twists = [line.topic for line in self.source.lines if line.type == current.TYPE and self._is_free(line.topic)]
        return twists[0] if len(twists) == 1 and self.source.own else None

    def _is_free(self, topic: str) -> bool:
        """Tell whether a topic is neither beside a sensor's nor one of its hidden ones."""
        base, _, part = topic.rpartition("/")
        return topic not in self.beside and not (part in ("ideal", "bias") and base in self.lines)

    def _is_link(self, frame: str, sensors: tuple[MountedSensor, ...]) -> bool:
        """Tell whether a frame is no sensor's."""
        return all(
            frame not in (sensor.name, sensor.frame) and not frame.startswith(f"{sensor.frame}/") for sensor in sensors
        )

    def _pose(self, link: str, above: str) -> Pose:
        """Return the pose of a link in the one that carries it, as far as transforms say."""
        parent, pose = self.edges.get(link, ("", IDENTITY))
        return pose if parent == above else IDENTITY

    def _mounted(self, line: Line, models: Mapping[str, str]) -> MountedSensor:
        """Return one sensor."""
        first = self.firsts[line.topic]
        frame = first.shape.texts.get("header.frame_id", "").lstrip("/")
        frames = [
            one.shape.texts.get("header.frame_id", "").lstrip("/")
            for t, one in self.firsts.items()
            if t in {s.topic for s in self.sensors}
        ]
        own = "::" in frame and frames.count(frame) == 1
        topic = self.topics[line.topic]
        name = frame if own else topic.strip("/").replace("/", "::")
        link, pose = self.edges.get(frame, (frame or "base", IDENTITY))
        model = models.get(link) or next((models[p] for p in (self.edges.get(link, ("", 0))[0],) if p in models), ROBOT)
        rate = 1.0 / first.spacing if first.spacing > 0.0 else 1.0
        rate = min(max(float(f"{rate:.6g}"), 1.001 * SLOWEST), FASTEST)
        faults = Faults(recorded=self._kind(f"{line.topic}/{FAULT}") == fault.TYPE)
        return MountedSensor(name, self._sheet(line, first), model, link, rate, pose, topic, frame, faults=faults)

    def _sheet(self, line: Line, first: First) -> Sensor:
        """Return what a sensor's first message tells of its sheet; its type alone where that is none."""
        if line.type.startswith(OURS):
            return _generic(line, first.shape.lengths)
        try:
            return SHEETS[line.type](first)
        except (NavsenseError, ValueError):
            return DEFAULTS[line.type]()


def _is_instrument(line: Line) -> bool:
    """Tell whether a topic is of a type that sensors have."""
    return line.is_ros and (line.type in SHEETS or line.type.startswith(OURS))


def chosen(lines: Sequence[Line]) -> dict[str, Line]:
    """Return what is read of each topic: of one that has several types the first that a sensor has, else that is read.

    The rest of such a topic is not read.
    """
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.topic, []).append(line)
    out = {topic: several[0] for topic, several in found.items()}
    for topic, several in found.items():
        if len(several) > 1:
            usable = [line for line in several if line.is_ros and reads(line)] or several
            out[topic] = next((line for line in usable if _is_instrument(line)), usable[0])
    return out


def absolute(topics: Iterable[str]) -> dict[str, str]:
    """Return each topic with a slash before it and none behind; where two become one, the later gets `_` behind it."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for topic in sorted(topics, key=lambda one: one != "/" + one.strip("/")):
        name = "/" + (topic.strip("/") or "topic")
        while name in taken:
            name += "_"
        taken.add(name)
        found[topic] = name
    return found


def _told_apart(sensors: Iterable[MountedSensor]) -> tuple[MountedSensor, ...]:
    """Return sensors no two of which have one name."""
    found: dict[str, MountedSensor] = {}
    for sensor in sensors:
        name = sensor.name
        while name in found:
            name += "_"
        found[name] = sensor if name == sensor.name else replace(sensor, name=name)
    return tuple(found.values())


def _generic(line: Line, lengths: Mapping[str, int]) -> Sensor:
    """Return a sensor of a type that is made of its outputs; `lengths` of the arrays in its first message."""
    short = line.type.removeprefix(OURS)
    kind = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in short).lstrip("_")
    parts = line.defined().definitions[line.type][1:]
    # The arrays of a sensor that has messages of other kinds are read, and written, as those of one of our own.
    kind = f"{kind}_arrays" if kind in messages.ENCODERS else kind
    return opaque_sensor(kind, [Output(part.name, lengths.get(part.name, part.length or 0), "1") for part in parts])


def guessed(source: Source) -> World:
    """Return the world of a recording of messages that does not say it. Raises `SinkError`."""
    guess = Guess(source)
    guess.read()
    return guess.world()
