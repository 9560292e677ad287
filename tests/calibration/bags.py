"""Bags that rosbags writes, as other programs record them: a rotating IMU and a magnetometer mounted on it."""

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
"""Unix time (s) of the first stamp."""

MOUNTING = Rotation.from_euler("xyz", [0.3, -0.2, 0.7])
"""rotation_bs: the magnetometer in the frame of the IMU."""

IMU_MOUNTING = Rotation.from_euler("xyz", [0.1, 0.4, -0.5])
"""The IMU in the base frame."""

TRANSFORMS = "geometry_msgs/TransformStamped[] transforms"


def compute_attitudes(time: np.ndarray) -> Rotation:
    """Return rotation_wb at times (s): full rotations about two axes."""
    return Rotation.from_euler("zyx", np.stack([0.5 * time, 0.9 * np.sin(0.7 * time), 1.3 * time], axis=1))


def to_wxyz(rotation: Rotation) -> np.ndarray:
    """Return quaternions (n, 4) in the order w, x, y, z."""
    return np.atleast_2d(rotation.as_quat())[:, [3, 0, 1, 2]]


@dataclass
class BagContent:
    """The content of a bag.

    stamp_offset: seconds added to the stamps of the magnetometer. constant_stamp: all its stamps are equal.
    attitude_step: one of so many attitudes is written. invalid_attitudes: number of zero quaternions at the start.
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
    stamp_offset: float = 0.0
    constant_stamp: bool = False
    attitude_step: int = 1
    invalid_attitudes: int = 0
    unit: float = 1.0
    gap: tuple[float, float] = (0.0, 0.0)
    field_w: np.ndarray = field(default_factory=lambda: np.array([1.2e-6, 21.5e-6, -43.0e-6]))
    soft_iron: np.ndarray = field(
        default_factory=lambda: np.array([[1.08, 0.03, -0.02], [0.01, 0.95, 0.04], [0.02, -0.03, 0.99]])
    )
    bias: np.ndarray = field(default_factory=lambda: np.array([9e-6, -6e-6, 15e-6]))


class Recorder:
    """Writes the content of one bag."""

    def __init__(self, content: BagContent) -> None:
        self.content, self.old = content, content.kind == "bag"
        self.store = get_typestore(Stores.ROS1_NOETIC if self.old else Stores.ROS2_JAZZY)
        if self.old:
            self.store.register(get_types_from_msg(TRANSFORMS, "tf2_msgs/msg/TFMessage"))
        self.types: Any = self.store.types
        self.connections: dict[str, Any] = {}

    def make_header(self, time: float, frame: str) -> Any:
        """Return a header with this stamp (s since the start)."""
        nanoseconds = round(time * 1e9) + START * 1_000_000_000
        seconds, rest = divmod(nanoseconds, 1_000_000_000)
        stamp = self.types["builtin_interfaces/msg/Time"](sec=seconds, nanosec=rest)
        extra = {"seq": 0} if self.old else {}
        return self.types["std_msgs/msg/Header"](stamp=stamp, frame_id=frame, **extra)

    def make_vector(self, values: Any) -> Any:
        """Return a vector."""
        return self.types["geometry_msgs/msg/Vector3"](*map(float, values))

    def make_quaternion(self, rotation: Rotation | None) -> Any:
        """Return a quaternion, zeros for None."""
        parts = [0.0] * 4 if rotation is None else rotation.as_quat().tolist()
        return self.types["geometry_msgs/msg/Quaternion"](*parts)

    def make_transform(self, time: float, parent: str, child: str, rotation: Rotation) -> Any:
        """Return the transform of a child frame in its parent frame."""
        inner = self.types["geometry_msgs/msg/Transform"](self.make_vector((0, 0, 0)), self.make_quaternion(rotation))
        return self.types["geometry_msgs/msg/TransformStamped"](self.make_header(time, parent), child, inner)

    def make_attitude(self, time: float, rotation: Rotation | None) -> Any:
        """Return a message with an attitude."""
        kind, make = self.content.attitude, self.types[self.content.attitude]
        none, turn = np.zeros(9), self.make_quaternion(rotation)
        if kind == "sensor_msgs/msg/Imu":
            known = np.array([self.content.orientation_covariance, *np.zeros(8)])
            still = self.make_vector((0, 0, 0))
            return make(self.make_header(time, self.content.body_frame), turn, known, still, none, still, none)
        pose = self.types["geometry_msgs/msg/Pose"](self.types["geometry_msgs/msg/Point"](1.0, 2.0, 3.0), turn)
        if kind == "geometry_msgs/msg/PoseStamped":
            return make(self.make_header(time, "map"), pose)
        still = self.types["geometry_msgs/msg/Twist"](self.make_vector((0, 0, 0)), self.make_vector((0, 0, 0)))
        with_pose = self.types["geometry_msgs/msg/PoseWithCovariance"](pose, np.zeros(36))
        with_twist = self.types["geometry_msgs/msg/TwistWithCovariance"](still, np.zeros(36))
        return make(self.make_header(time, "odom"), self.content.body_frame, with_pose, with_twist)

    def make_reading(self, time: float, values: Any) -> Any:
        """Return a message with a field."""
        stamp = self.content.stamp_offset + (0.0 if self.content.constant_stamp else time)
        header, vector = self.make_header(stamp, self.content.mag_frame), self.make_vector(values)
        if self.content.magnetic == "sensor_msgs/msg/MagneticField":
            covariance = (np.eye(3) * self.content.covariance).ravel()
            return self.types[self.content.magnetic](header, vector, covariance)
        return self.types[self.content.magnetic](header, vector)

    def write(self, writer: Any, topic: str, kind: str, time: float, message: Any) -> None:
        """Write one message."""
        if topic not in self.connections:
            self.connections[topic] = writer.add_connection(topic, kind, typestore=self.store)
        encode = self.store.serialize_ros1 if self.old else self.store.serialize_cdr
        writer.write(self.connections[topic], START * 1_000_000_000 + round(time * 1e9), encode(message, kind))


def make_times(content: BagContent) -> np.ndarray:
    """Return the times (s) of the readings. None equals the time of an attitude."""
    return np.arange(content.count) / content.rate + 0.0037


def make_readings(content: BagContent) -> np.ndarray:
    """Return the readings (n, 3)."""
    field_s = (compute_attitudes(make_times(content)) * MOUNTING).inv().apply(content.field_w)
    noise = np.random.default_rng(3).normal(0.0, content.noise, (content.count, 3))
    return content.unit * (field_s @ content.soft_iron.T + content.bias + noise)


def record(content: BagContent, errors: np.ndarray | float = 0.0) -> Path:
    """Write a bag and return its path; `errors` (T) are added to the readings."""
    recorder, values, at = Recorder(content), make_readings(content) + errors, make_times(content)
    storage = StoragePlugin.MCAP if content.kind == "mcap" else StoragePlugin.SQLITE3
    writer = OldWriter(content.path) if recorder.old else Writer(content.path, version=9, storage_plugin=storage)
    message = recorder.types["tf2_msgs/msg/TFMessage"]
    transforms = "tf2_msgs/msg/TFMessage"
    with writer:
        if content.fixed:
            pair = [
                recorder.make_transform(0.0, "base_link", "imu_link", IMU_MOUNTING),
                recorder.make_transform(0.0, "base_link", "mag_link", IMU_MOUNTING * MOUNTING),
            ]
            recorder.write(writer, "/tf_static", transforms, 0.0, message(pair))
        for k in range(content.count + 1):
            time = k / content.rate
            if content.gap[0] < time < content.gap[1] or k % content.attitude_step:
                continue
            rotation = compute_attitudes(np.array([time]))[0]
            text = recorder.make_attitude(time, None if k < content.invalid_attitudes else rotation)
            recorder.write(writer, content.attitude_topic, content.attitude, time, text)
            if content.moving:
                transform = recorder.make_transform(time, "map", "base_link", rotation * IMU_MOUNTING.inv())
                recorder.write(writer, "/tf", transforms, time, message([transform]))
        for time, value in zip(at, values, strict=True):
            for topic in content.topics:
                recorder.write(writer, topic, content.magnetic, time, recorder.make_reading(time, value))
    return content.path
