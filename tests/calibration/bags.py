"""Bags as other programs record them, written by rosbags itself: a turning IMU, a magnetometer turned on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag1 import Writer as OldWriter
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from scipy.spatial.transform import Rotation

START = 1_700_000_000
"""Seconds of the first stamp."""

MOUNTED = Rotation.from_euler("xyz", [0.3, -0.2, 0.7])
"""rotation_bs: the magnetometer on the IMU."""

DOCKED = Rotation.from_euler("xyz", [0.1, 0.4, -0.5])
"""The IMU on the base."""

TRANSFORMS = "geometry_msgs/TransformStamped[] transforms"


def body(time: np.ndarray) -> Rotation:
    """Return rotation_wb at instants (s): all the way round about two axes."""
    return Rotation.from_euler("zyx", np.stack([0.5 * time, 0.9 * np.sin(0.7 * time), 1.3 * time], axis=1))


def wxyz(rotation: Rotation) -> np.ndarray:
    """Return quaternions (n, 4) in the order of navsense."""
    return np.atleast_2d(rotation.as_quat())[:, [3, 0, 1, 2]]


@dataclass
class Scene:
    """What is recorded.

    `lie` seconds are added to the magnetometer's stamps, which stand still where `stuck`; of the attitudes each
    `every`th is there, the first `asleep` of them zeros.
    """

    path: Path
    kind: str = "mcap"
    attitude: str = "sensor_msgs/msg/Imu"
    magnetic: str = "sensor_msgs/msg/MagneticField"
    mag_frame: str = "mag_link"
    body_frame: str = "imu_link"
    count: int = 1500
    rate: float = 100.0
    noise: float = 2e-7
    covariance: float = 4e-14
    moving: bool = False
    fixed: bool = True
    orientation_covariance: float = 0.0
    topics: tuple[str, ...] = ("/imu/mag",)
    attitude_topic: str = "/attitude"
    lie: float = 0.0
    stuck: bool = False
    every: int = 1
    asleep: int = 0
    unit: float = 1.0
    gap: tuple[float, float] = (0.0, 0.0)
    field_w: np.ndarray = field(default_factory=lambda: np.array([1.2e-6, 21.5e-6, -43.0e-6]))
    soft_iron: np.ndarray = field(
        default_factory=lambda: np.array([[1.08, 0.03, -0.02], [0.01, 0.95, 0.04], [0.02, -0.03, 0.99]])
    )
    bias: np.ndarray = field(default_factory=lambda: np.array([9e-6, -6e-6, 15e-6]))


class Recorder:
    """Writes one scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.old = scene, scene.kind == "bag"
        self.store = get_typestore(Stores.ROS1_NOETIC if self.old else Stores.ROS2_JAZZY)
        if self.old:
            self.store.register(get_types_from_msg(TRANSFORMS, "tf2_msgs/msg/TFMessage"))
        self.types: Any = self.store.types
        self.connections: dict[str, Any] = {}

    def header(self, time: float, frame: str) -> Any:
        """Return a header of an instant (s since the start)."""
        nanoseconds = round(time * 1e9) + START * 1_000_000_000
        seconds, rest = divmod(nanoseconds, 1_000_000_000)
        stamp = self.types["builtin_interfaces/msg/Time"](sec=seconds, nanosec=rest)
        extra = {"seq": 0} if self.old else {}
        return self.types["std_msgs/msg/Header"](stamp=stamp, frame_id=frame, **extra)

    def vector(self, values: Any) -> Any:
        """Return a vector."""
        return self.types["geometry_msgs/msg/Vector3"](*map(float, values))

    def turn(self, rotation: Rotation | None) -> Any:
        """Return a quaternion, zeros for none."""
        parts = [0.0] * 4 if rotation is None else rotation.as_quat().tolist()
        return self.types["geometry_msgs/msg/Quaternion"](*parts)

    def transform(self, time: float, parent: str, child: str, rotation: Rotation) -> Any:
        """Return a transform of a child in its parent."""
        inner = self.types["geometry_msgs/msg/Transform"](self.vector((0, 0, 0)), self.turn(rotation))
        return self.types["geometry_msgs/msg/TransformStamped"](self.header(time, parent), child, inner)

    def attitude(self, time: float, rotation: Rotation | None) -> Any:
        """Return a message that holds an attitude."""
        kind, make = self.scene.attitude, self.types[self.scene.attitude]
        none, turn = np.zeros(9), self.turn(rotation)
        if kind == "sensor_msgs/msg/Imu":
            known = np.array([self.scene.orientation_covariance, *np.zeros(8)])
            still = self.vector((0, 0, 0))
            return make(self.header(time, self.scene.body_frame), turn, known, still, none, still, none)
        pose = self.types["geometry_msgs/msg/Pose"](self.types["geometry_msgs/msg/Point"](1.0, 2.0, 3.0), turn)
        if kind == "geometry_msgs/msg/PoseStamped":
            return make(self.header(time, "map"), pose)
        still = self.types["geometry_msgs/msg/Twist"](self.vector((0, 0, 0)), self.vector((0, 0, 0)))
        with_pose = self.types["geometry_msgs/msg/PoseWithCovariance"](pose, np.zeros(36))
        with_twist = self.types["geometry_msgs/msg/TwistWithCovariance"](still, np.zeros(36))
        return make(self.header(time, "odom"), self.scene.body_frame, with_pose, with_twist)

    def reading(self, time: float, values: Any) -> Any:
        """Return a message that holds a field."""
        stamp = self.scene.lie + (0.0 if self.scene.stuck else time)
        header, vector = self.header(stamp, self.scene.mag_frame), self.vector(values)
        if self.scene.magnetic == "sensor_msgs/msg/MagneticField":
            covariance = (np.eye(3) * self.scene.covariance).ravel()
            return self.types[self.scene.magnetic](header, vector, covariance)
        return self.types[self.scene.magnetic](header, vector)

    def put(self, writer: Any, topic: str, kind: str, time: float, message: Any) -> None:
        """Write one message."""
        if topic not in self.connections:
            self.connections[topic] = writer.add_connection(topic, kind, typestore=self.store)
        encode = self.store.serialize_ros1 if self.old else self.store.serialize_cdr
        writer.write(self.connections[topic], START * 1_000_000_000 + round(time * 1e9), encode(message, kind))


def times(scene: Scene) -> np.ndarray:
    """Return the instants (s) of the readings, none of them an attitude's."""
    return np.arange(scene.count) / scene.rate + 0.0037


def readings(scene: Scene) -> np.ndarray:
    """Return the readings (n, 3) of a scene."""
    field_s = (body(times(scene)) * MOUNTED).inv().apply(scene.field_w)
    noise = np.random.default_rng(3).normal(0.0, scene.noise, (scene.count, 3))
    return scene.unit * (field_s @ scene.soft_iron.T + scene.bias + noise)


def record(scene: Scene, away: np.ndarray | float = 0.0) -> Path:
    """Write a bag, its readings (n, 3) off by `away` (T), and return its path."""
    recorder, values, at = Recorder(scene), readings(scene) + away, times(scene)
    storage = StoragePlugin.MCAP if scene.kind == "mcap" else StoragePlugin.SQLITE3
    writer = OldWriter(scene.path) if recorder.old else Writer(scene.path, version=9, storage_plugin=storage)
    message = recorder.types["tf2_msgs/msg/TFMessage"]
    transforms = "tf2_msgs/msg/TFMessage"
    with writer:
        if scene.fixed:
            pair = [
                recorder.transform(0.0, "base_link", "imu_link", DOCKED),
                recorder.transform(0.0, "base_link", "mag_link", DOCKED * MOUNTED),
            ]
            recorder.put(writer, "/tf_static", transforms, 0.0, message(pair))
        for k in range(scene.count + 1):
            time = k / scene.rate
            if scene.gap[0] < time < scene.gap[1] or k % scene.every:
                continue
            rotation = body(np.array([time]))[0]
            text = recorder.attitude(time, None if k < scene.asleep else rotation)
            recorder.put(writer, scene.attitude_topic, scene.attitude, time, text)
            if scene.moving:
                moved = recorder.transform(time, "map", "base_link", rotation * DOCKED.inv())
                recorder.put(writer, "/tf", transforms, time, message([moved]))
        for time, value in zip(at, values, strict=True):
            for topic in scene.topics:
                recorder.put(writer, topic, scene.magnetic, time, recorder.reading(time, value))
    return scene.path
