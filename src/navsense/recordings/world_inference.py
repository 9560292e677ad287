"""Inference of the world of a recording without one: sensors from message types, links from static transforms.

The name of a sensor is its frame if that is a unique full name (`rov::base::imu`), else its topic. Its link is the
parent of its frame in `/tf_static`. It had faults if there is a topic `<topic>/fault`. Its specification comes from its
first message (covariances, limits, beams), its rate from its first two messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from navsense import messages
from navsense.core.errors import NavsenseError
from navsense.core.pose import IDENTITY, Pose, ensure_unit, from_rpy, normalize
from navsense.core.ticks import MAX_RATE, MIN_RATE
from navsense.core.typing import AnyArray
from navsense.environment.base import Environment
from navsense.faults.injection import Faults
from navsense.messages import air_pressure, altimeter, camera, depth, dvl, imu, magnetometer, navsat, world_messages
from navsense.messages import range as ranges
from navsense.messages.cdr import MessageRows, read_stamps
from navsense.messages.repack import MessageShape
from navsense.noise.specification import Noise
from navsense.recordings.channels import DEFAULT_WORLD_NAME, Channel, MessageReader, group_by_size
from navsense.recordings.columns import GENERIC_TYPE_PREFIX, MessageDecoder, has_same_type, is_readable
from navsense.recordings.topic_names import TRUTH_PREFIX
from navsense.recordings.world_json import RECORDED_CURRENT, RECORDED_MOTION, make_opaque_sensor
from navsense.sensors import (
    AirPressure,
    Altimeter,
    Camera,
    CameraIntrinsics,
    CameraProjection,
    Depth,
    Dvl,
    Imu,
    LensDistortion,
    Magnetometer,
    NavSat,
    Range,
)
from navsense.sensors.base import Output, Sensor
from navsense.sensors.doppler import Beam, Beams, DvlMessageOptions, MessageDialect
from navsense.sensors.range import Cone, Sound
from navsense.world import CurrentTopic, Link, Model, MountedSensor, World

DEFAULT_MODEL = "robot"
"""Model of sensors on a link without a known model."""

TF_STATIC = "/tf_static"


@dataclass(eq=False)
class FirstMessage:
    """The first message of a topic: its shape and row, its `time` (ns), and the `period` (s) to the next one."""

    shape: MessageShape
    row: AnyArray
    time: int
    period: float = math.nan
    companions: frozenset[str] = frozenset()

    @property
    def frame(self) -> str:
        """The frame in the header, "" for a message without one."""
        return self.shape.strings.get("header.frame_id", "").lstrip("/")

    def make_noise(self, path: str, count: int) -> list[Noise]:
        """Return the white noise of the diagonal of a covariance at a path."""
        variances = self.row[path][0].reshape(count, count).diagonal().tolist()
        return [Noise(stddev=math.sqrt(value)) if 0.0 < value < math.inf else Noise() for value in variances]


def _make_imu(first: FirstMessage) -> Sensor:
    oriented = bool(first.row["orientation_covariance"][0][0] != -1.0)
    rates = first.make_noise("angular_velocity_covariance", 3)
    forces = first.make_noise("linear_acceleration_covariance", 3)
    return Imu(
        angular_velocity_x=rates[0],
        angular_velocity_y=rates[1],
        angular_velocity_z=rates[2],
        linear_acceleration_x=forces[0],
        linear_acceleration_y=forces[1],
        linear_acceleration_z=forces[2],
        orientation=oriented,
    )


def _make_magnetometer(first: FirstMessage) -> Sensor:
    x, y, z = first.make_noise("magnetic_field_covariance", 3)
    return Magnetometer(x=x, y=y, z=z)


def _make_pressure(first: FirstMessage) -> Sensor:
    variance = float(first.row["variance"][0])
    noise = Noise(stddev=math.sqrt(variance)) if 0.0 < variance < math.inf else Noise()
    return Depth(pressure=noise) if "_depth" in first.companions else AirPressure(pressure=noise)


def _make_navsat(first: FirstMessage) -> Sensor:
    east, _, up = first.make_noise("position_covariance", 3)
    return NavSat(horizontal_position=east, vertical_position=up)


def _make_range(first: FirstMessage) -> Sensor:
    row = first.row
    least, most, width = (float(row[name][0]) for name in ("min_range", "max_range", "field_of_view"))
    sound = Sound() if int(row["radiation_type"][0]) == ranges.ULTRASOUND else None
    return Range(minimum_range=least, maximum_range=most, beam=Cone(width, 0), sound=sound)


def _make_camera(first: FirstMessage) -> Sensor:
    arrays = camera.extract_arrays(first.row)
    (fx, _, cx), (_, fy, cy), _ = arrays["intrinsic_matrix"][0].tolist()
    (p_fx, _, p_cx, tx), (_, p_fy, p_cy, ty), _ = arrays["projection_matrix"][0].tolist()
    k1, k2, p1, p2, k3 = arrays["distortion"][0].tolist()
    width, height = (int(size) for size in arrays["image_size"][0])
    intrinsics, projection = CameraIntrinsics(fx, fy, cx, cy), CameraProjection(p_fx, p_fy, p_cx, p_cy, tx, ty)
    is_readable_lens = math.isfinite(k1) and not camera.find_unreadable_arrays(first.shape)
    lens = LensDistortion(k1, k2, k3, p1, p2) if is_readable_lens else LensDistortion()
    return Camera(width, height, intrinsics, lens, projection)


def _make_beam(axis: Any) -> Beam:
    """Return a beam along a unit vector."""
    x, y, z = (float(part) for part in axis)
    return Beam(rotation=from_rpy(0.0, math.atan2(-z, math.hypot(x, y)), math.atan2(y, x)))


def _make_dvl(first: FirstMessage, dialect: MessageDialect) -> Sensor:
    axes = [first.row[f"beam_unit_vec.{i}"][0] for i in range(4)]
    return Dvl(beams=Beams(tuple(_make_beam(axis) for axis in axes if axis.any())), dialect=dialect)


def _make_uuv_dvl(first: FirstMessage) -> Sensor:
    beams, names = [], []
    for i in range(first.shape.lengths.get("beams", 0)):
        x, y, z, w = first.row[f"beams.{i}.pose.pose.orientation"][0].tolist()
        px, py, pz = first.row[f"beams.{i}.pose.pose.position"][0].tolist()
        beams.append(Beam(rotation=normalize((w, x, y, z)), position=(px, py, pz)))
        names.append(first.shape.strings.get(f"beams.{i}.pose.header.frame_id", ""))
    return Dvl(
        beams=Beams(tuple(beams)),
        dialect=MessageDialect.UUV,
        message_options=DvlMessageOptions(beam_frames=tuple(names)),
    )


SENSOR_TYPES: Mapping[str, tuple[Callable[[FirstMessage], Sensor], Callable[[], Sensor]]] = {
    imu.TYPE: (_make_imu, Imu),
    magnetometer.TYPE: (_make_magnetometer, Magnetometer),
    altimeter.TYPE: (lambda _first: Altimeter(), Altimeter),
    air_pressure.TYPE: (_make_pressure, AirPressure),
    navsat.TYPE: (_make_navsat, NavSat),
    ranges.TYPE: (_make_range, Range),
    camera.TYPE: (_make_camera, Camera),
    dvl.MARINE_TYPE: (partial(_make_dvl, dialect=MessageDialect.OWN), Dvl),
    dvl.DS_TYPE: (partial(_make_dvl, dialect=MessageDialect.DSROS), partial(Dvl, dialect=MessageDialect.DSROS)),
    dvl.UUV_TYPE: (_make_uuv_dvl, partial(Dvl, dialect=MessageDialect.UUV)),
}
"""Message type -> factories of a specification: from the first message of a sensor, and if that is invalid."""

COMPANION_TYPES: Mapping[str, tuple[tuple[str, str], ...]] = {
    air_pressure.TYPE: (("_depth", depth.DEPTH_TYPE),),
    navsat.TYPE: (("_velocity", navsat.VELOCITY_TYPE),),
    dvl.MARINE_TYPE: (("_water", dvl.MARINE_TYPE), dvl.PING_MESSAGE),
    dvl.DS_TYPE: (dvl.PING_MESSAGE,),
    dvl.UUV_TYPE: (dvl.PING_MESSAGE,),
}
"""Message type -> suffixes of the topics of its companion messages, and their types."""


@dataclass(eq=False)
class WorldInference:
    """Infers a world from the first messages of a recording."""

    reader: MessageReader
    first_messages: dict[str, FirstMessage] = field(default_factory=dict)
    transforms: dict[str, tuple[str, Pose]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Select the topics of sensors."""
        self.channels = select_channels(self.reader.channels)
        self.topics = normalize_topics(self.channels)
        self.companion_topics = {
            channel.topic + suffix
            for channel in self.channels.values()
            for suffix, kind in COMPANION_TYPES.get(channel.type, ())
            if self._get_topic_type(channel.topic + suffix) == kind
        }
        self.sensor_channels = [
            channel
            for channel in self.channels.values()
            if _is_instrument(channel) and self._is_standalone(channel.topic) and is_readable(channel)
        ]
        self.sensor_topics = {channel.topic for channel in self.sensor_channels}

    def _get_topic_type(self, topic: str) -> str:
        """Return the type of a topic, "" for a missing one."""
        return self.channels[topic].type if topic in self.channels else ""

    def read(self) -> None:
        """Read the first two messages of each sensor, the first of each link's truth, and all static transforms."""
        channels = [
            channel
            for channel in self.channels.values()
            if channel.topic in self.sensor_topics
            or channel.topic == TF_STATIC
            or (channel.type == world_messages.ODOMETRY_TYPE and channel.topic.startswith(TRUTH_PREFIX))
        ]
        decoders = {
            channel.topic: MessageDecoder(channel) for channel in channels if channel.is_ros and is_readable(channel)
        }
        waiting = set(decoders)
        for message in self.reader.read_messages():
            topic = message.channel.topic
            if topic not in waiting or not message.data or not has_same_type(message.channel, self.channels[topic]):
                continue
            ((shape, _, rows),) = decoders[topic].decode_groups(group_by_size([message.data]))
            if topic == TF_STATIC:
                self._add_transforms(shape, rows)
                waiting.discard(topic)
            elif self._add_sensor_message(topic, shape, rows, message.log_time):
                waiting.discard(topic)
            if not waiting:
                return

    def _add_sensor_message(self, topic: str, shape: MessageShape, rows: MessageRows, log_time: int) -> bool:
        """Store the first message of a topic, or the time to its second one. Return True for the second one."""
        time = int(read_stamps(rows)[0]) if "header.stamp.sec" in (rows.dtype.names or ()) else log_time
        if topic in self.first_messages:
            self.first_messages[topic].period = (time - self.first_messages[topic].time) * 1e-9
            return True
        suffixes = (suffix for suffix, _ in COMPANION_TYPES.get(self._get_topic_type(topic), ()))
        companions = frozenset(suffix for suffix in suffixes if topic + suffix in self.companion_topics)
        self.first_messages[topic] = FirstMessage(shape, rows.copy(), time, companions=companions)
        return False

    def _add_transforms(self, shape: MessageShape, rows: MessageRows) -> None:
        """Store the transforms of one message."""
        for i in range(shape.lengths.get("transforms", 0)):
            path = f"transforms.{i}"
            child = shape.strings[f"{path}.child_frame_id"].lstrip("/")
            parent = shape.strings[f"{path}.header.frame_id"].lstrip("/")
            x, y, z = rows[f"{path}.transform.translation"][0].tolist()
            a, b, c, w = rows[f"{path}.transform.rotation"][0].tolist()
            if not all(map(math.isfinite, (x, y, z, w, a, b, c))):
                continue  # as tf2 does
            rotation = ensure_unit((w, a, b, c)) if any((w, a, b, c)) else IDENTITY.rotation
            self.transforms[child] = (parent, Pose((x, y, z), rotation))

    def build_world(self) -> World:
        """Return the world."""
        model_of_link = {
            first.shape.strings.get("child_frame_id", ""): topic.removeprefix(TRUTH_PREFIX).replace("/", "::")
            for topic, first in self.first_messages.items()
            if topic.startswith(TRUTH_PREFIX)
        }
        model_of_link.pop("", None)
        channels = (channel for channel in self.sensor_channels if channel.topic in self.first_messages)
        sensors = _make_names_unique(self._make_sensor(channel, model_of_link) for channel in channels)
        canonical_links = {name: link for link, name in model_of_link.items()}
        for sensor in sensors:
            canonical_links.setdefault(sensor.model, sensor.link)
        models: list[Model] = []
        for name, canonical in canonical_links.items():
            names = {sensor.link for sensor in sensors if sensor.model == name} - {canonical}
            names |= {
                child
                for child, (parent, _) in self.transforms.items()
                if parent == canonical and self._is_link(child, sensors)
            }
            links = (Link(canonical), *(Link(link, self._get_link_pose(link, canonical)) for link in sorted(names)))
            models.append(Model(name, links, canonical, motion=RECORDED_MOTION if canonical in model_of_link else None))
        world = World(self.reader.metadata.get("world", DEFAULT_WORLD_NAME), tuple(models), sensors)
        # In a recording of navsense, the only twist without a sensor is the velocity of the water.
        twists = [
            channel.topic
            for channel in self.reader.channels
            if channel.type == world_messages.CURRENT_TYPE and self._is_standalone(channel.topic)
        ]
        if len(twists) != 1 or not self.reader.is_navsense:
            return world
        environment = Environment(current=RECORDED_CURRENT)
        return replace(world, environment=environment, current_topic=CurrentTopic(twists[0]))

    def _is_standalone(self, topic: str) -> bool:
        """Return True if a topic is neither a companion nor the ideal values or biases of a sensor."""
        base, _, part = topic.rpartition("/")
        return topic not in self.companion_topics and not (part in ("ideal", "bias") and base in self.channels)

    def _is_link(self, frame: str, sensors: tuple[MountedSensor, ...]) -> bool:
        """Return True if a frame belongs to no sensor."""
        return all(
            frame not in (sensor.name, sensor.frame) and not frame.startswith(f"{sensor.frame}/") for sensor in sensors
        )

    def _get_link_pose(self, link: str, parent_link: str) -> Pose:
        """Return the pose of a link in its parent link, the identity without a transform."""
        parent, pose = self.transforms.get(link, ("", IDENTITY))
        return pose if parent == parent_link else IDENTITY

    def _make_sensor(self, channel: Channel, models: Mapping[str, str]) -> MountedSensor:
        """Return one sensor."""
        first = self.first_messages[channel.topic]
        frame = first.frame
        frames = [message.frame for topic, message in self.first_messages.items() if topic in self.sensor_topics]
        topic = self.topics[channel.topic]
        is_full_name = "::" in frame and frames.count(frame) == 1
        name = frame if is_full_name else topic.strip("/").replace("/", "::")
        link, pose = self.transforms.get(frame, (frame or "base", IDENTITY))
        parent, _ = self.transforms.get(link, ("", IDENTITY))
        model = models.get(link) or models.get(parent) or DEFAULT_MODEL
        rate = 1.0 / first.period if first.period > 0.0 else 1.0
        rate = min(max(float(f"{rate:.6g}"), 1.001 * MIN_RATE), MAX_RATE)
        topic_type = self._get_topic_type(f"{channel.topic}/{world_messages.FAULT}")
        faults = Faults(recorded=topic_type == world_messages.FAULT_TYPE)
        return MountedSensor(
            name, self._make_spec(channel, first), model, link, rate, pose, topic, frame, faults=faults
        )

    def _make_spec(self, channel: Channel, first: FirstMessage) -> Sensor:
        """Return the specification in the first message of a sensor, the default one if that is invalid."""
        if channel.type.startswith(GENERIC_TYPE_PREFIX):
            return _make_generic_spec(channel, first.shape.lengths)
        try:
            return SENSOR_TYPES[channel.type][0](first)
        except (NavsenseError, ValueError):
            return SENSOR_TYPES[channel.type][1]()


def _is_instrument(channel: Channel) -> bool:
    """Return True for a message type of sensors."""
    return channel.is_ros and (channel.type in SENSOR_TYPES or channel.type.startswith(GENERIC_TYPE_PREFIX))


def select_channels(channels: Sequence[Channel]) -> dict[str, Channel]:
    """Return the channel of each topic that is read.

    Of several types on a topic this is the first sensor type, else the first readable one. The others are ignored.
    """
    by_topic: dict[str, list[Channel]] = {}
    for channel in channels:
        by_topic.setdefault(channel.topic, []).append(channel)
    selected: dict[str, Channel] = {}
    for topic, several in by_topic.items():
        selected[topic] = several[0]
        if len(several) > 1:
            usable = [channel for channel in several if channel.is_ros and is_readable(channel)] or several
            selected[topic] = next((channel for channel in usable if _is_instrument(channel)), usable[0])
    return selected


def normalize_topics(topics: Iterable[str]) -> dict[str, str]:
    """Return each topic with one leading and no trailing slash, and the suffix `_` if another topic has that name."""
    names: dict[str, str] = {}
    used: set[str] = set()
    for topic in sorted(topics, key=lambda topic: topic != "/" + topic.strip("/")):
        name = "/" + (topic.strip("/") or "topic")
        while name in used:
            name += "_"
        used.add(name)
        names[topic] = name
    return names


def _make_names_unique(sensors: Iterable[MountedSensor]) -> tuple[MountedSensor, ...]:
    """Return the sensors with unique names."""
    unique: dict[str, MountedSensor] = {}
    for sensor in sensors:
        name = sensor.name
        while name in unique:
            name += "_"
        unique[name] = sensor if name == sensor.name else replace(sensor, name=name)
    return tuple(unique.values())


def _make_generic_spec(channel: Channel, lengths: Mapping[str, int]) -> Sensor:
    """Return the specification for a generic message type; `lengths` are those of the arrays in the first message."""
    short = channel.type.removeprefix(GENERIC_TYPE_PREFIX)
    kind = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in short).lstrip("_")
    parts = channel.parse_type().definitions[channel.type][1:]
    # Arrays of a sensor type with its own messages are read and written as those of a generic type.
    kind = f"{kind}_arrays" if kind in messages.SENSOR_MESSAGES else kind
    return make_opaque_sensor(
        kind, [Output(part.name, lengths.get(part.name, part.length or 0), "1") for part in parts]
    )


def infer_world(reader: MessageReader) -> World:
    """Return the inferred world of a recording without one. Raises `RecordingError`."""
    inference = WorldInference(reader)
    inference.read()
    return inference.build_world()
