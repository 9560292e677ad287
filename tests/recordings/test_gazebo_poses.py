"""Motions from Gazebo's poses in MCAP files, which MCAP's writer and protobuf make with the messages of gz-msgs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.writer import Writer

import navsense as ns
from navsense.core.errors import MotionError
from navsense.motion import Replay
from navsense.motion.base import LogContext
from navsense.recordings.gazebo_poses import iterate_fields, read_varint
from navsense.recordings.recorded_motion import load_motion
from navsense.runner.run import Run

FILES = {
    "time": ("Time", "int64 sec 1, int32 nsec 2"),
    "header": ("Header", "Time stamp 1, repeated Map data 2"),
    "vector3d": ("Vector3d", "Header header 1, double x 2, double y 3, double z 4"),
    "quaternion": ("Quaternion", "Header header 1, double x 2, double y 3, double z 4, double w 5"),
    "pose": ("Pose", "Header header 1, string name 2, uint32 id 3, Vector3d position 4, Quaternion orientation 5"),
    "pose_v": ("Pose_V", "Header header 1, repeated Pose pose 2"),
    "twist": ("Twist", "Header header 1, Vector3d linear 2, Vector3d angular 3"),
    "odometry": ("Odometry", "Header header 1, Pose pose 2, Twist twist 3"),
    "float_v": ("Float_V", "Header header 1, repeated float data 2"),
    "pose_with_covariance": ("PoseWithCovariance", "Pose pose 1, Float_V covariance 2"),
    "twist_with_covariance": ("TwistWithCovariance", "Twist twist 1, Float_V covariance 2"),
    "odometry_with_covariance": (
        "OdometryWithCovariance",
        "Header header 1, PoseWithCovariance pose_with_covariance 2, TwistWithCovariance twist_with_covariance 3",
    ),
}
"""File of gz-msgs -> its message and fields.

Sources: the descriptors of gz-msgs 10 in the PyPI package gazebo-py-bindings 1.0.0, which protoc has generated from
`proto/gz/msgs`; for the files with covariances also `proto/gz/msgs` in the repository of gz-sim, commit 23171bb.
`tests/streams/test_gz_ignition.py` compares those of ign-msgs 8.
"""

SCALARS = {"double": 1, "float": 2, "int64": 3, "int32": 5, "string": 9, "uint32": 13}
MAP = "string key 1, repeated string value 2"


def add_fields(message: Any, package: str, text: str) -> None:
    for part in text.split(", "):
        *label, kind, name, number = part.split()
        field = message.field.add(name=name, number=int(number), label=3 if label else 1)
        if kind in SCALARS:
            field.type = SCALARS[kind]
        else:
            field.type, field.type_name = 11, f".{package}.Header.Map" if kind == "Map" else f".{package}.{kind}"


class GazeboMessages:
    """The messages of a package: one file each with its imports, as protoc makes them."""

    def __init__(self, package: str = "gz.msgs") -> None:
        self.package = package
        self.files = descriptor_pb2.FileDescriptorSet()
        folder = package.replace(".", "/")
        for stem, (name, text) in FILES.items():
            file = self.files.file.add(name=f"{folder}/{stem}.proto", package=package, syntax="proto3")
            file.dependency.extend(earlier.name for earlier in self.files.file[:-1])
            message = file.message_type.add(name=name)
            add_fields(message, package, text)
            if name == "Header":
                add_fields(message.nested_type.add(name="Map"), package, MAP)
        self.pool = descriptor_pool.DescriptorPool()
        for file in self.files.file:
            self.pool.Add(file)

    def make(self, name: str) -> Any:
        message_class: Any = message_factory.GetMessageClass(self.pool.FindMessageTypeByName(f"{self.package}.{name}"))
        return message_class()

    def write(
        self, path: Path, topic: str, name: str, messages: Sequence[Any], definition: bytes | None = None
    ) -> Path:
        """Write messages, or their bytes, of one topic with log times of 0, 1, 2, ... s after 5 s."""
        with path.open("wb") as file:
            writer = Writer(file)
            writer.start()
            data = self.files.SerializeToString() if definition is None else definition
            schema = writer.register_schema(f"{self.package}.{name}", "protobuf", data)
            channel = writer.register_channel(topic, "protobuf", schema)
            for k, message in enumerate(messages):
                raw = message if isinstance(message, bytes) else message.SerializeToString()
                writer.add_message(channel, (5 + k) * 10**9, raw, (5 + k) * 10**9)
            writer.finish()  # type: ignore[no-untyped-call]
        return path


GZ = GazeboMessages()


def set_stamp(header: Any, stamp: int) -> None:
    header.stamp.sec, header.stamp.nsec = divmod(stamp, 10**9)


def set_pose(pose: Any, position: Sequence[float], orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0)) -> None:
    """Set position and orientation (w x y z)."""
    pose.position.x, pose.position.y, pose.position.z = position
    pose.orientation.w, pose.orientation.x, pose.orientation.y, pose.orientation.z = orientation


def set_frames(header: Any, parent: str, child: str) -> None:
    for key, value in (("frame_id", parent), ("child_frame_id", child)):
        header.data.add(key=key).value.append(value)


def make_scene(k: int, names: Sequence[str] = ("ground", "robot", "base", "robot")) -> Any:
    """Return message k of a scene: 0.5 s apart from 3 s on. Entity i is at x = i k, y = i."""
    scene = GZ.make("Pose_V")
    set_stamp(scene.header, 3 * 10**9 + k * 5 * 10**8)
    for i, name in enumerate(names):
        pose = scene.pose.add(name=name, id=i + 4)
        set_pose(pose, (float(i * k), float(i), 0.0))
    return scene


def assert_track(motion: object, time: Sequence[float], x: Sequence[float], y: float) -> None:
    assert isinstance(motion, Replay)
    np.testing.assert_array_equal(motion.trajectory.knots, time)
    np.testing.assert_array_equal(motion.at(np.array(time)).position_w[:, :2], [(value, y) for value in x])


WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="lake">
  <model name="robot"><pose>1 2 3 0 0 0.5</pose>
    <link name="base"><pose>0.2 0.1 -0.3 0.1 0.2 0.3</pose>
      <sensor name="imu" type="imu"><update_rate>50</update_rate></sensor></link>
    <link name="arm"/><joint name="weld" type="fixed"><parent>base</parent><child>arm</child></joint>{motion}
  </model></world></sdf>"""

MOTION = """<navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>
  <navsense:waypoint time="2">2 1 0.5 0.1 -0.2 1</navsense:waypoint>
  <navsense:waypoint time="4">4 0 0 0 0 2</navsense:waypoint></navsense:motion>"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ns.World:
    path = tmp_path_factory.mktemp("worlds") / "still.sdf"
    path.write_text(WORLD.format(motion=""))
    return ns.load(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("worlds") / "moving.sdf"
    path.write_text(WORLD.format(motion=MOTION))
    return ns.simulate(ns.load(path), 4.0, seed=3)


def write_truth(path: Path, run: Run, make: Callable[[Any, Any], Any], name: str) -> Path:
    """Write the truth of the canonical link; `make` returns a message from a row of truth and its pose."""
    truth = run.truth["base"]
    messages = []
    for k, stamp in enumerate(truth.stamp.tolist()):
        message = GZ.make(name)
        pose = make(message, stamp)
        set_pose(pose, truth.position[k].tolist(), truth.orientation[k].tolist())
        messages.append(message)
    return GZ.write(path, "/model/robot/pose", name, messages)


def add_to_vector(message: Any, stamp: int) -> Any:
    set_stamp(message.header, stamp)
    message.pose.add(name="ground", id=4).orientation.w = 1.0
    return message.pose.add(name="robot::base", id=9)


def add_to_odometry(message: Any, stamp: int) -> Any:
    set_stamp(message.header, stamp)
    set_frames(message.header, "robot/odom", "robot/base")
    message.twist.linear.x = 3.0
    return message.pose


def add_to_odometry_with_covariance(message: Any, stamp: int) -> Any:
    set_stamp(message.header, stamp)
    set_frames(message.header, "robot/odom", "robot/base")
    message.pose_with_covariance.covariance.data.extend([0.1] * 36)
    return message.pose_with_covariance.pose


def add_to_pose(message: Any, stamp: int) -> Any:
    set_stamp(message.header, stamp)
    set_frames(message.header, "robot", "robot::base")
    message.name = "robot::base"
    return message


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("Pose_V", add_to_vector),
        ("Pose", add_to_pose),
        ("Odometry", add_to_odometry),
        ("OdometryWithCovariance", add_to_odometry_with_covariance),
    ],
)
def test_poses_of_gazebo_give_the_readings_of_the_truth(
    tmp_path: Path, world: ns.World, run: Run, name: str, make: Callable[[Any, Any], Any]
) -> None:
    path = write_truth(tmp_path / "gz.mcap", run, make, name)
    truth = run.truth["base"]
    log = ns.motion.from_arrays(truth.time, truth.position, truth.orientation)
    expected = ns.simulate(world, 3.9, motion=log, seed=3)
    replayed = ns.simulate(world, 3.9, motion=f"{path}?topic=/model/robot/pose&frame=base", seed=3)
    for key, array in expected["imu"].arrays.items():
        np.testing.assert_array_equal(replayed["imu"].arrays[key], array)
    # The spline of the truth differs from the track of the waypoints at the ends.
    inner = slice(20, -20)
    rate = "angular_velocity"
    np.testing.assert_allclose(
        replayed["imu"].arrays[rate][inner],
        run["imu"].arrays[rate][: len(replayed["imu"].time)][inner],
        rtol=0.0,
        atol=1e-4,
    )


def test_default_entity_is_the_model(tmp_path: Path, world: ns.World) -> None:
    """Models are first, as SceneBroadcaster lists them: a link with the name of the model does not count."""
    path = GZ.write(tmp_path / "s.mcap", "/world/lake/pose/info", "Pose_V", [make_scene(k) for k in range(4)])
    motion = load_motion(path, LogContext(model="robot"))
    assert_track(motion, (0.0, 0.5, 1.0, 1.5), (0.0, 1.0, 2.0, 3.0), 1.0)
    assert isinstance(motion, Replay)
    assert motion.notes == (
        "/world/lake/pose/info: of poses of one name in a message, the first one counts: 4 not read",
    )
    assert_track(load_motion(f"{path}?frame=base"), (0.0, 0.5, 1.0, 1.5), (0.0, 2.0, 4.0, 6.0), 2.0)
    placed = ns.simulate(world, 1.5, motion=str(path), truth_rate=2.0).truth["base"]
    link = world.model("robot").link("base").pose
    expected = [ns.Pose((float(k), 1.0, 0.0)) @ link for k in range(3)]
    np.testing.assert_allclose(placed.position, [pose.position for pose in expected], rtol=1e-14, atol=0.0)
    np.testing.assert_allclose(placed.orientation, [pose.rotation for pose in expected], rtol=1e-14, atol=0.0)


def test_package_of_ignition_and_the_only_entity(tmp_path: Path) -> None:
    messages = GazeboMessages("ignition.msgs")
    scenes = [make_scene(k, ("vehicle_blue",)).SerializeToString() for k in range(3)]
    path = messages.write(tmp_path / "i.mcap", "/world/lake/dynamic_pose/info", "Pose_V", scenes)
    assert_track(load_motion(path, LogContext(model="robot")), (0.0, 0.5, 1.0), (0.0, 0.0, 0.0), 0.0)


def test_stamps_are_those_of_the_pose_then_of_the_message_then_the_log_time(tmp_path: Path) -> None:
    scenes = [make_scene(k, ("a", "b")) for k in range(3)]
    for k, scene in enumerate(scenes):
        set_stamp(scene.pose[1].header, 7 * 10**9 + k * 10**8)
    path = GZ.write(tmp_path / "s.mcap", "/p", "Pose_V", scenes)
    assert_track(load_motion(f"{path}?frame=a"), (0.0, 0.5, 1.0), (0.0, 0.0, 0.0), 0.0)
    assert_track(load_motion(f"{path}?frame=b"), (0.0, 0.1, 0.2), (0.0, 1.0, 2.0), 1.0)
    for scene in scenes:
        scene.ClearField("header")
    path = GZ.write(tmp_path / "s.mcap", "/p", "Pose_V", scenes)
    assert_track(load_motion(f"{path}?frame=a"), (0.0, 1.0, 2.0), (0.0, 0.0, 0.0), 0.0)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "entity of /p; must be one of a::x, b::x, ground; write ?topic=TOPIC&frame=ENTITY"),
        ("?frame=c", "entity of /p: c; must be one of a::x, b::x, ground; write ?topic=TOPIC&frame=ENTITY"),
        ("?frame=x", "entity of /p: x; must be one of a::x, b::x; write ?topic=TOPIC&frame=ENTITY"),
        ("?type=gz.msgs.Pose", "no topic of the type gz.msgs.Pose; needs a topic of a type of"),
        ("?topic=/p&type=gz.msgs.Pose", "type: gz.msgs.Pose; /p has the type gz.msgs.Pose_V; omit type="),
    ],
)
def test_errors_of_a_selection_list_the_entities(tmp_path: Path, query: str, expected: str) -> None:
    scenes = [make_scene(k, ("a::x", "b::x", "ground")) for k in range(3)]
    path = GZ.write(tmp_path / "s.mcap", "/p", "Pose_V", scenes)
    with pytest.raises(MotionError) as caught:
        load_motion(f"{path}{query}")
    assert str(caught.value).startswith(f"{path}: {expected}")


def test_every_truncated_message_is_an_error_or_is_read(tmp_path: Path) -> None:
    """A message ends between two fields, or it is an error with its number."""
    data = make_scene(1, ("a",)).SerializeToString()
    errors = 0
    for size in range(len(data)):
        path = GZ.write(tmp_path / "s.mcap", "/p", "Pose_V", [data, data[:size], data])
        try:
            load_motion(path)
        except MotionError as error:
            errors += "message 1 of /p cannot be read as gz.msgs.Pose_V" in str(error)
    boundaries = {0}
    for end in range(1, len(data)):
        try:
            list(iterate_fields(data[:end]))
        except ValueError:
            continue
        boundaries.add(end)
    assert errors == len(data) - len(boundaries)


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (b"", "topic /p: gz.msgs.Pose_V is defined without gz.msgs.Pose_V.pose; name another topic"),
        (b"\x0a\x7f", "topic /p: the definition of gz.msgs.Pose_V: a field is truncated"),
    ],
)
def test_missing_definitions_are_errors(tmp_path: Path, definition: bytes, expected: str) -> None:
    path = GZ.write(tmp_path / "s.mcap", "/p", "Pose_V", [make_scene(0)], definition)
    with pytest.raises(MotionError) as caught:
        load_motion(path)
    assert expected in str(caught.value)


def test_wire_format() -> None:
    """Values of the page "Encoding" of protobuf: 150 is 96 01, and field 1 with it is 08 96 01."""
    assert read_varint(b"\x96\x01", 0) == (150, 2)
    assert list(iterate_fields(b"\x08\x96\x01\x12\x07testing")) == [(8, 150), (18, b"testing")]
    for data in (b"\x08\x96", b"\x12\x07test", b"\x09\x00", b"\x0b", b"\x08" + b"\xff" * 10 + b"\x01"):
        with pytest.raises(ValueError, match=r"truncated|wire type"):
            list(iterate_fields(data))


def test_recording_of_gazebo_messages_names_the_reason(tmp_path: Path, world: ns.World) -> None:
    path = tmp_path / "run.gz.mcap"
    ns.record(world, path, 0.1)
    with pytest.raises(MotionError) as caught:
        load_motion(path)
    assert str(caught.value) == (
        f"{path}: holds messages of Gazebo, which navsense writes; needs the true poses of a link that moves; "
        "record to .mcap too, and name that file"
    )
