"""The world of a recording as JSON, and back. docs/reference/recordings.md describes the keys.

    {"format", "name", "models": [...], "sensors": [...], "clocks": {name: clock or null}, "current", "topics",
     "origin", "water", "anomalies", "geoid"}

Values with a "type" are those of `type_tags`. A reader that does not know a type omits the value: a sensor
keeps its arrays, units and topics, and everything else in the world stays typed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from navsense.clock import Clock, Latency
from navsense.core import inputs
from navsense.core.errors import DamagedError, NavsenseError, describe_damage
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.environment.base import Environment, FieldSum, UniformField
from navsense.environment.geoid import Geoid
from navsense.environment.magnetic import Anomaly
from navsense.environment.signal import Signal
from navsense.environment.water import Water
from navsense.faults.injection import Faults
from navsense.messages.world_messages import FAULT
from navsense.motion.base import LogSource
from navsense.motion.derived import get_source
from navsense.motion.joints import JointTrack
from navsense.motion.stationary import Stationary
from navsense.motion.velocity_commands import Drive
from navsense.recordings.topic_names import TopicNames, allocate_topics, topics_from_json
from navsense.recordings.type_tags import EQUIVARIANCE_KEY, HasType, UnknownTypeError, from_json, to_json
from navsense.sensors.base import OpaqueSensor, Output, Sensor, list_signals
from navsense.world import (
    OPTICAL,
    CurrentTopic,
    Joint,
    LayersTopic,
    Link,
    Model,
    MountedSensor,
    Note,
    OpticalFrame,
    Switch,
    World,
)

LOG = logging.getLogger(__name__)

FORMAT_VERSION = 2
"""Version of a world's JSON, and of the metadata of recordings of arrays; 1 was in use before the first release."""

UNSPECIFIED = "unspecified"
"""JSON value of a latency with unknown parameters."""

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class UnspecifiedLatency(Latency):
    """A latency with unknown parameters."""


def make_opaque_sensor(kind: str, outputs: Sequence[Output]) -> Sensor:
    """Return a sensor with known type and outputs. It is written and read, and measures nothing."""
    return cast("Sensor", OpaqueSensor(kind, tuple(outputs)))


RECORDED_MOTION = Stationary(is_recorded=True)
"""Placeholder for the unknown motion of a model that moves, or whose truth is recorded. It does not stand still."""

RECORDED_CURRENT = UniformField((0.0, 0.0, 0.0))
"""Placeholder for the unknown current of a world that has one. The water does not stand still."""


def make_recorded_track(source: LogSource | None) -> JointTrack:
    """Return a placeholder for the unknown track of a joint that moves. No constant: a track loads a kernel."""
    return JointTrack(np.array((0.0, 1.0)), np.zeros(2), is_recorded=True, source=source)


@dataclass(frozen=True)
class RecordedWorld:
    """The world of a recording, as stored or inferred.

    world: the world.
    has_world_json: true if the metadata has the world as JSON. False: the world is inferred, from messages (the first
        one gives the specification) or from arrays (white noise only). True also for an inferred world in a `Dataset`
        from messages or EuRoC, whose metadata has it.
    topics: None if the recording does not contain them.
    clocks: clocks with a specification.
    notes: for the user.
    """

    world: World
    has_world_json: bool
    topics: TopicNames | None = None
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def world_to_json(world: World, topics: TopicNames | None = None) -> dict[str, Any]:
    """Return a world as JSON; `topics` are those of the recording, by default those that a writer allocates."""
    topics = topics or allocate_topics(world)
    environment = world.environment
    data: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "name": world.name,
        "models": [_model_to_json(model) for model in world.models],
        "sensors": [_sensor_to_json(sensor, topics) for sensor in world.sensors],
        "clocks": {clock.name: _to_json_or_none(clock) for clock in world.clocks},
        "current": None if environment.current is None else to_json(world.current_topic),
        "topics": topics.to_json(),
    }
    # A class of another package without a type tag is not stored.
    for key, value in (("origin", environment.origin), ("water", environment.water)):
        if value is None or type(value) in (Origin, Water):
            data[key] = to_json(value)
    field = environment.magnetic_field
    fields = field.fields if isinstance(field, FieldSum) else (field,)
    anomalies = [to_json(anomaly) for anomaly in fields if type(anomaly) is Anomaly]
    unread = [{"what": note.what, "reason": note.reason} for note in world.notes if note.subject == "plugin"]
    # The name of a grid is stored without its folder, which is of one machine.
    geoid = environment.geoid and to_json(replace(environment.geoid, file=Path(environment.geoid.file).name))
    optional = {"anomalies": anomalies, "unread_plugins": unread, "geoid": geoid}
    return {**data, **{key: value for key, value in optional.items() if value}}


def _to_json_or_none(value: object) -> Any:
    """Return a value as JSON, None if it has no such form."""
    try:
        return to_json(value)
    except TypeError:
        return None


def _model_to_json(model: Model) -> dict[str, Any]:
    """Return a model as JSON. The sources of its motion and of its joints are stored if they are files."""
    source = get_source(model.motion)
    joint_logs = {
        joint.name: to_json(joint.track.source)
        for joint in model.joints
        if joint.track is not None and joint.track.source is not None
    }
    return {
        "name": model.name,
        "pose": to_json(model.pose),
        "static": model.static,
        "moves": model.motion is not None,
        **({} if source is None else {"motion": to_json(source)}),
        "canonical_link": model.canonical_link,
        "links": {link.name: to_json(link.pose) for link in model.links},
        "actuators": list(model.actuators),
        "drive": to_json(model.drive),
        "joints": [to_json(joint) for joint in model.joints],
        "moved_joints": [joint.name for joint in model.joints if joint.track is not None],
        **({"joint_logs": joint_logs} if joint_logs else {}),
    }


def list_motion_sources(world: World) -> list[str]:
    """Return a text about each motion and each joint from a file, for the summary of a recording."""
    sources = [(model.name, get_source(model.motion)) for model in world.models]
    joints = [joint for model in world.models for joint in model.joints if joint.track is not None]
    sources += [(joint.name, joint.track.source) for joint in joints if joint.track is not None]
    return [f"{name} follows {format_source(source)}" for name, source in sources if source is not None]


def format_source(source: LogSource) -> str:
    """Return the source of a motion as text."""
    series = f" {source.series}" if source.series else ""
    return f"{source.file}{series}{'' if source.bandwidth is None else f' smoothed at {source.bandwidth!r} Hz'}"


def _sensor_to_json(sensor: MountedSensor, topics: TopicNames) -> dict[str, Any]:
    """Return a sensor as JSON."""
    spec, latency = sensor.spec, sensor.latency
    stored = None
    if isinstance(spec, OpaqueSensor):
        stored = inputs.parse_json(spec.stored or "null")
    else:
        try:
            stored = to_json(spec)
        except TypeError as error:
            remedy = "see register_type in docs/how-to/adding-a-sensor.md"
            LOG.warning("sensor %s: its specification is not stored: %s; %s", sensor.name, error, remedy)
    return {
        "name": sensor.name,
        "model": sensor.model,
        "link": sensor.link,
        "rate": float(sensor.rate),
        "pose": to_json(sensor.pose),
        "frame": sensor.frame,
        "topic": sensor.topic,
        **topics.sensor_to_json(sensor.name),
        "clock": sensor.clock,
        "latency": None if latency is None else _to_json_or_none(latency) or UNSPECIFIED,
        "is_on": sensor.is_on,
        "switches": to_json(sensor.switches),
        **({"visualize": True} if sensor.visualize else {}),
        **({} if sensor.optical_frame is None else {"optical_frame": to_json(sensor.optical_frame)}),
        "type": spec.type,
        "outputs": [to_json(output) for output in spec.outputs],
        "noise": noise_to_json(sensor),
        "spec": stored,
        "faults": to_json(sensor.faults),
    }


def noise_to_json(sensor: MountedSensor) -> dict[str, list[float]]:
    """Return the standard deviation of the white noise of one sample, by array and axis."""
    return {key: [noise.white_stddev(sensor.rate) for noise in noises] for key, noises in sensor.spec.noise().items()}


def has_heading_and_water(data: Mapping[str, Any]) -> bool:
    """Return True if the JSON of a world contains its origin, which has the heading of its axes, and its water."""
    return "origin" in data and "water" in data


@dataclass
class WorldParser:
    """Reads values; those of unknown types are None and listed."""

    unknown: dict[str, list[str]] = field(default_factory=dict)

    def parse_value(self, what: str, data: Any, kind: type[Kind]) -> Kind | None:
        """Return a value of a class, None if it is null or of an unknown type. Raises `DamagedError` for another."""
        try:
            value = from_json(data)
        except UnknownTypeError as error:
            self.unknown.setdefault(str(error), []).append(what)
            return None
        if value is not None and not isinstance(value, kind):
            raise DamagedError(f"damaged: {what} has a wrong type")
        return value

    @property
    def notes(self) -> tuple[str, ...]:
        """One note for all unknown types, or none."""
        if not self.unknown:
            return ()
        listed = "; ".join(f"{error} ({', '.join(owners)})" for error, owners in self.unknown.items())
        remedy = "update navsense, or install the package that defines the type"
        return (f"some values of its world cannot be read: {listed}; {remedy}",)

    def parse_sensor(self, data: Mapping[str, Any]) -> MountedSensor:
        """Return a sensor, opaque if its specification is of an unknown type."""
        name = str(data["name"])
        latency: Latency = UnspecifiedLatency()
        if data["latency"] != UNSPECIFIED:
            latency = self.parse_value(f"latency of {name}", data["latency"], Latency) or latency
        spec = self.parse_value(f"sensor {name}", data["spec"], object) or _parse_opaque_sensor(data)
        if not isinstance(spec, HasType) or spec.type != data["type"]:
            raise DamagedError(f"damaged: sensor {name} has a specification of a wrong type")
        return MountedSensor(
            name,
            cast("Sensor", spec),
            str(data["model"]),
            str(data["link"]),
            float(data["rate"]),
            _parse_pose(data["pose"]),
            str(data["topic"]),
            str(data["frame"]),
            None if data["clock"] is None else str(data["clock"]),
            None if data["latency"] is None else latency,
            self.parse_value(f"faults of {name}", data["faults"], Faults) or Faults(recorded=FAULT in data["topics"]),
            is_on=bool(data["is_on"]),
            switches=self._parse_switches(name, data.get("switches", [])),
            visualize=bool(data.get("visualize", False)),
            optical_frame=self._parse_optical_frame(name, data),
        )

    def _parse_optical_frame(self, name: str, data: Mapping[str, Any]) -> OpticalFrame | None:
        """Return the optical frame of a camera; older recordings have it in the specification."""
        spec = data["spec"]
        if isinstance(spec, Mapping) and spec.get("optical_frame"):
            pose = self.parse_value(f"optical_pose of {name}", spec.get("optical_pose"), Pose)
            return OpticalFrame(str(spec["optical_frame"]), pose or OPTICAL)
        return self.parse_value(f"optical frame of {name}", data.get("optical_frame"), OpticalFrame)

    def parse_model(self, data: Mapping[str, Any]) -> Model:
        """Return a model; a moving one has `RECORDED_MOTION`, with the source of the motion if it is stored."""
        name, pose = str(data["name"]), _parse_pose(data["pose"])
        links = tuple(Link(str(name), _parse_pose(pose)) for name, pose in data["links"].items())
        source = self.parse_value(f"motion of {name}", data.get("motion"), LogSource)
        motion = replace(RECORDED_MOTION, source=source) if data["moves"] else None
        actuators = tuple(map(str, data["actuators"]))
        canonical, is_static = str(data["canonical_link"]), bool(data["static"])
        drive = self.parse_value(f"drive of {name}", data.get("drive"), Drive)
        joints = tuple(self._parse_joints(name, data))
        return Model(name, links, canonical, pose, is_static, motion, actuators, drive=drive, joints=joints)

    def _parse_joints(self, model: str, data: Mapping[str, Any]) -> Iterator[Joint]:
        """Yield the joints of a model; one that moves has the track of `make_recorded_track`."""
        moving_names = data.get("moved_joints", ())
        for item in data.get("joints", ()):
            joint = self.parse_value(f"a joint of {model}", item, Joint)
            if joint is not None:
                text = data.get("joint_logs", {}).get(joint.name)
                source = self.parse_value(f"log of {joint.name}", text, LogSource)
                track = make_recorded_track(source) if joint.name in moving_names else None
                yield replace(joint, track=track)

    def _parse_switches(self, name: str, items: Any) -> tuple[Switch, ...]:
        """Return the scheduled switches of a sensor; older recordings have none."""
        if not isinstance(items, list):
            raise DamagedError(f"damaged: switches of {name} has a wrong type")
        switches = (self.parse_value(f"switch of {name}", item, Switch) for item in items)
        return tuple(switch for switch in switches if switch is not None)

    def parse_environment(self, data: Mapping[str, Any], sensors: Sequence[MountedSensor]) -> Environment:
        """Return the environment: place on earth, water, anomalies, and whether it has a current and signals."""
        origin = self.parse_value("origin", data.get("origin"), Origin)
        water = self.parse_value("water", data.get("water"), Water)
        items = data.get("anomalies", [])
        if not isinstance(items, list):
            raise DamagedError("damaged: anomalies has a wrong type")
        parsed = [self.parse_value("anomaly", item, Anomaly) for item in items]
        anomalies = [anomaly for anomaly in parsed if anomaly is not None]
        current = None if data["current"] is None else RECORDED_CURRENT
        signals = {name: Signal((0.0,), (0.0,)) for sensor in sensors for name in list_signals(sensor.spec)}
        geoid = self.parse_value("geoid", data.get("geoid"), Geoid) if origin else None
        environment = Environment(current=current, signals=signals, origin=origin, water=water, geoid=geoid)
        if not anomalies:
            return environment
        return replace(environment, magnetic_field=FieldSum((environment.magnetic_field, *anomalies)))


def _parse_opaque_sensor(data: Mapping[str, Any]) -> Sensor:
    """Return a sensor with known type and outputs; its specification is kept unchanged."""
    noise = tuple((str(key), tuple(map(float, axes))) for key, axes in data["noise"].items())
    outputs = tuple(map(_parse_output, data["outputs"]))
    stored = "" if data["spec"] is None else json.dumps(data["spec"])
    return cast("Sensor", OpaqueSensor(str(data["type"]), outputs, noise, stored))


def _parse_pose(data: Mapping[str, Any]) -> Pose:
    """Return a pose; keys of later versions are ignored."""
    x, y, z = map(float, data["position"])
    w, a, b, c = map(float, data["rotation"])
    return Pose((x, y, z), (w, a, b, c))


def _parse_output(data: Mapping[str, Any]) -> Output:
    """Return an array of a reading; keys of later versions are ignored."""
    axes = data["axes"]
    shape = tuple(axes) if isinstance(axes, list) else int(axes)
    return Output(str(data["name"]), shape, str(data["unit"]), data[EQUIVARIANCE_KEY])


def world_from_json(data: Any) -> RecordedWorld | None:
    """Return the world that `world_to_json` wrote, None for another format. Raises `DamagedError`."""
    try:
        if data.get("format") != FORMAT_VERSION:
            return None
        return _parse_world(data)
    except (KeyError, TypeError, ValueError, AttributeError, NavsenseError) as error:
        raise DamagedError(f"damaged: its world cannot be read: {error}") from error


def _parse_world(data: Mapping[str, Any]) -> RecordedWorld:
    """Return the world of JSON with the supported format."""
    parser = WorldParser()
    sensors = tuple(map(parser.parse_sensor, data["sensors"]))
    models = tuple(map(parser.parse_model, data["models"]))
    stored = {str(name): parser.parse_value(f"clock {name}", value, Clock) for name, value in data["clocks"].items()}
    clocks = {name: clock for name, clock in stored.items() if clock is not None}
    topic = parser.parse_value("current", data["current"], CurrentTopic) or CurrentTopic()
    if not isinstance(topic.layers, LayersTopic | None):
        raise DamagedError("damaged: current has a wrong type")
    environment = parser.parse_environment(data, sensors)
    all_clocks = tuple(clocks.get(name) or Clock(name) for name in stored)
    notes = _parse_unread_plugins(data.get("unread_plugins", []))
    world = World(str(data["name"]), models, sensors, all_clocks, environment, notes=notes, current_topic=topic)
    topics = topics_from_json(data["sensors"], data["topics"])
    return RecordedWorld(world, has_world_json=True, topics=topics, clocks=clocks, notes=parser.notes)


def _parse_unread_plugins(items: Sequence[Mapping[str, Any]]) -> tuple[Note, ...]:
    """Return the notes about plug-ins of sensors that were not read."""
    return tuple(Note("warning", str(item["what"]), str(item["reason"]), subject="plugin") for item in items)


def list_notes(data: Any) -> tuple[str, ...]:
    """Return the notes for the user about a world's JSON or its text, which may be None or empty."""
    try:
        world_data = inputs.parse_json(data) if isinstance(data, str | bytes) and data else data
        stored = world_from_json(world_data) if world_data else None
    except (DamagedError, ValueError) as error:
        return (f"its world cannot be read: {describe_damage(error).removeprefix('its world cannot be read: ')}",)
    if stored is None:
        return (format_note(world_data),) if world_data else ()
    return stored.notes


def format_note(data: Any) -> str:
    """Return the note about a world's JSON of another format."""
    version = data.get("format", 1) if isinstance(data, Mapping) else 1
    return (
        f"its world is stored in format {version}, and this version of navsense reads format {FORMAT_VERSION}: sensors "
        "are known by their messages or arrays only; read it with the version of navsense that wrote it"
    )
