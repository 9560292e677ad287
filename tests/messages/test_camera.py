"""Camera info in ROS 2, ROS 1 and Gazebo, read by other programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense.core.pose import Pose
from navsense.messages import get_messages
from navsense.messages.camera import TYPE
from navsense.recordings.convert import convert
from navsense.recordings.type_tags import from_json, to_json
from navsense.recordings.world_json import world_from_json, world_to_json
from navsense.sensors import Camera, CameraIntrinsics, LensDistortion
from navsense.testing import example_world
from navsense.world import OPTICAL, OpticalFrame, World

K = [457.6, 0.0, 379.9, 0.0, 456.1, 255.2, 0.0, 0.0, 1.0]
P = [436.2, 0.0, 364.4, -47.98, 0.0, 436.2, 256.9, 0.5, 0.0, 0.0, 1.0, 0.0]
D = [-0.28, 0.07, 2e-4, -1e-4, -0.01]
"""The example specification: an asymmetric camera with a lens. Messages have k1, k2, p1, p2, k3."""

EPOCH = 1_700_000_000


@pytest.fixture
def world() -> World:
    return example_world(("eye", Camera.example_spec()))


@pytest.mark.requirement("CLK-11", "REC-1:mcap", "REC-1:bag")
@pytest.mark.parametrize(
    ("suffix", "names", "store"),
    [
        (".mcap", "dkrp", Stores.ROS2_JAZZY),
        (".db3", "dkrp", Stores.ROS2_HUMBLE),
        (".bag", "DKRP", Stores.ROS1_NOETIC),
    ],
)
def test_other_programs_read_the_camera_info(
    world: World, tmp_path: Path, suffix: str, names: str, store: Stores
) -> None:
    """In ROS 1 the matrices have capital letters. The definition in the file is that of the distribution."""
    path, reading = tmp_path / f"run{suffix}", ns.simulate(world, 0.2, seed=2, epoch=EPOCH)["eye"]
    ns.record(world, path, 0.2, seed=2, epoch=EPOCH)
    with AnyReader([path.with_suffix("") if suffix == ".db3" else path]) as reader:
        (connection,) = (one for one in reader.connections if one.topic == "/eye")
        infos: list[Any] = [reader.deserialize(raw, TYPE) for *_, raw in reader.messages([connection])]
        assert reader.typestore.fielddefs[TYPE] == get_typestore(store).fielddefs[TYPE]
    assert len(infos) == reading.time.size
    stamps = [info.header.stamp.sec * 10**9 + info.header.stamp.nanosec for info in infos]
    assert stamps == reading.stamp.tolist()
    d, k, r, p = (getattr(infos[-1], name).tolist() for name in names)
    assert (d, k, r, p) == (D, K, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], P)
    assert (infos[0].width, infos[0].height, infos[0].distortion_model) == (752, 480, "plumb_bob")
    assert (infos[0].header.frame_id, infos[0].roi.do_rectify, infos[0].binning_x) == ("eye", False, 0)


@pytest.mark.requirement("CLK-11", "REC-1:bag")
def test_converted_recordings_have_the_names_of_their_version_of_ros(world: World, tmp_path: Path) -> None:
    """The MD5 sum of ROS 1 depends on the names of the fields: c9a58c1b... of sensor_msgs 1.13.1."""
    ns.record(world, tmp_path / "run.mcap", 0.2, seed=2, epoch=EPOCH)
    convert(tmp_path / "run.mcap", tmp_path / "run.bag")
    convert(tmp_path / "run.bag", tmp_path / "back.mcap")
    for name, letters in (("run.bag", "DKRP"), ("back.mcap", "dkrp")):
        with AnyReader([tmp_path / name]) as reader:
            (connection,) = (one for one in reader.connections if one.topic == "/eye")
            fields = [field for field, _ in reader.typestore.fielddefs[TYPE][1]]
            assert [field for field in fields if len(field) == 1] == list(letters)
            if name == "run.bag":
                assert connection.digest == "c9a58c1b0b154e0e6da7578cb991d214"
    first, second = (ns.open(tmp_path / name)["eye"] for name in ("run.mcap", "back.mcap"))
    for array in first.arrays:
        assert np.array_equal(first[array], second[array])


@pytest.mark.requirement("CLK-11")
@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".npz", ".parquet", ".csv"])
def test_recording_returns_the_readings_and_the_specification(world: World, tmp_path: Path, suffix: str) -> None:
    ns.record(world, tmp_path / f"run{suffix}", 0.5, seed=2, epoch=EPOCH)
    path = tmp_path / f"run{suffix}"
    recording = ns.open(path if path.exists() else path.with_suffix(""))
    reading, expected = recording["eye"], ns.simulate(world, 0.5, seed=2, epoch=EPOCH)["eye"]
    for array in expected.arrays:
        assert np.array_equal(reading[array], expected[array])
    assert np.array_equal(reading.stamp, expected.stamp)
    assert recording.recorded_world.world.sensor("eye").spec == Camera.example_spec()


@pytest.mark.requirement("CLK-11")
def test_camera_of_another_program_is_inferred_from_its_first_message(world: World, tmp_path: Path) -> None:
    """Without the world of navsense the specification is that of the first message."""
    from mcap.reader import make_reader
    from mcap.writer import Writer

    ns.record(world, tmp_path / "run.mcap", 0.2, seed=2, epoch=EPOCH)
    with (tmp_path / "run.mcap").open("rb") as source, (tmp_path / "other.mcap").open("wb") as target:
        writer = Writer(target)
        writer.start("ros2", "other")
        channels: dict[str, int] = {}
        for schema, channel, message in make_reader(source).iter_messages():
            if channel.topic == "/eye" and schema is not None:
                if channel.topic not in channels:
                    kept = writer.register_schema(schema.name, schema.encoding, schema.data)
                    channels[channel.topic] = writer.register_channel(channel.topic, channel.message_encoding, kept)
                writer.add_message(channels[channel.topic], message.log_time, message.data, message.publish_time)
        writer.finish()  # type: ignore[no-untyped-call]  # mcap has no types for it
    recording = ns.open(tmp_path / "other.mcap")
    (name,) = recording
    assert recording.recorded_world.world.sensor(name).spec == Camera.example_spec()
    assert recording[name]["projection_matrix"][0].ravel().tolist() == P


def make_info_class() -> Any:
    """Return `gz.msgs.CameraInfo` by protobuf: camera_info.proto of gz-msgs (header 1 left out)."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="info.proto", package="info", syntax="proto3")
    message = file.message_type.add(name="CameraInfo")
    for name, field, number in (("Distortion", "k", 2), ("Intrinsics", "k", 1), ("Projection", "p", 1)):
        nested = message.nested_type.add(name=name)
        nested.field.add(name=field, number=number, type=kinds.TYPE_DOUBLE, label=kinds.LABEL_REPEATED)
        if name == "Distortion":
            nested.field.add(name="model", number=1, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    for name, number in (("width", 2), ("height", 3)):
        message.field.add(name=name, number=number, type=kinds.TYPE_UINT32, label=kinds.LABEL_OPTIONAL)
    for name, number in (("distortion", 4), ("intrinsics", 5), ("projection", 6)):
        message.field.add(
            name=name,
            number=number,
            type=kinds.TYPE_MESSAGE,
            type_name=f".info.CameraInfo.{name.capitalize()}",
            label=kinds.LABEL_OPTIONAL,
        )
    message.field.add(name="rectification_matrix", number=7, type=kinds.TYPE_DOUBLE, label=kinds.LABEL_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("info.CameraInfo"))


@pytest.mark.requirement("CLK-11")
def test_gazebo_camera_info(world: World) -> None:
    reading = ns.simulate(world, 0.05, seed=2)["eye"]
    raw = get_messages("camera").encode_gz_messages(world.sensor("eye"), reading, 3)
    assert len(raw) == reading.time.size
    value = make_info_class().FromString(raw[0])
    assert (value.width, value.height, value.distortion.model) == (752, 480, 0)
    assert list(value.distortion.k) == D
    assert list(value.intrinsics.k) == K
    assert list(value.projection.p) == P
    assert list(value.rectification_matrix) == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.requirement("CLK-11", "FIL-1")
def test_stored_specification_has_its_numbers() -> None:
    """A later default of the field of view must not change what a file says."""
    stored = json.loads(json.dumps(to_json(Camera())))
    assert stored["intrinsics"]["type"] == "camera_intrinsics"
    assert stored["intrinsics"]["fx"] == CameraIntrinsics.from_field_of_view(1.047, 320, 240).fx
    assert stored["distortion"] == {"type": "camera_distortion"} | dict.fromkeys(("k1", "k2", "k3", "p1", "p2"), 0.0)
    assert LensDistortion() == from_json(stored["distortion"])


@pytest.mark.requirement("CLK-11")
@pytest.mark.parametrize("frame", [None, OpticalFrame("optical"), OpticalFrame("optical", Pose((0.0, 0.0, 1.0)))])
def test_optical_frame_is_in_the_world_of_recordings(world: World, frame: OpticalFrame | None) -> None:
    """Older recordings have it in the specification of the camera."""
    sensor = replace(world.sensor("eye"), optical_frame=frame)
    data = world_to_json(replace(world, sensors=(sensor,)))
    older = json.loads(json.dumps(data))
    (stored,) = older["sensors"]
    stored.pop("optical_frame", None)
    stored["spec"]["optical_frame"] = frame.name if frame else ""
    stored["spec"]["optical_pose"] = to_json(frame.pose if frame else OPTICAL)
    for version in (data, older):
        recorded = world_from_json(version)
        assert recorded is not None
        assert recorded.notes == ()
        restored = recorded.world.sensor("eye")
        assert (restored.optical_frame, restored.spec) == (frame, sensor.spec)


def write_camera_info(path: Path, model: str, coefficients: list[float], *, is_ros1: bool) -> None:
    """Write four messages of a camera as another program would."""
    store = get_typestore(Stores.ROS1_NOETIC if is_ros1 else Stores.ROS2_HUMBLE)
    types, kind = store.types, "sensor_msgs/msg/CameraInfo"
    roi = types["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
    with Writer1(path) if is_ros1 else Writer2(path, version=8) as writer:
        connection = writer.add_connection("/cam/camera_info", kind, typestore=store)
        for i in range(4):
            stamp = types["builtin_interfaces/msg/Time"](100 + i, 0)
            header = types["std_msgs/msg/Header"](*((i,) if is_ros1 else ()), stamp, "cam")
            d = np.array(coefficients)
            info = types[kind](header, 8, 10, model, d, np.array(K), np.zeros(9), np.array(P), 0, 0, roi)
            raw = store.serialize_ros1(info, kind) if is_ros1 else store.serialize_cdr(info, kind)
            writer.write(connection, (100 + i) * 10**9, raw)


@pytest.mark.requirement("CLK-11", "REC-1:bag")
@pytest.mark.parametrize("is_ros1", [False, True])
@pytest.mark.parametrize(
    ("model", "coefficients", "expected"),
    [
        ("plumb_bob", [0.1, 0.2, 0.3, 0.4, 0.5], [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("", [0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4, 0.0]),
        ("none", [], [0.0] * 5),
        ("equidistant", [0.1, 0.2, 0.3, 0.4], [np.nan] * 5),
        ("rational_polynomial", [0.1] * 8, [np.nan] * 5),
    ],
)
def test_distortion_of_another_model_is_not_read(
    tmp_path: Path, model: str, coefficients: list[float], expected: list[float], *, is_ros1: bool
) -> None:
    """Its coefficients have another meaning. The losses name the model."""
    source = tmp_path / ("cam.bag" if is_ros1 else "cam")
    write_camera_info(source, model, coefficients, is_ros1=is_ros1)
    losses = convert(source, tmp_path / "cam.npz").losses
    (reading,) = ns.open(tmp_path / "cam.npz").values()
    np.testing.assert_array_equal(reading["distortion"], [expected] * 4)
    assert reading["intrinsic_matrix"][0].ravel().tolist() == K
    is_named = (
        f"topic /cam/camera_info: distortion, which is NaN: distortion_model: {model}; must be plumb_bob" in losses
    )
    assert is_named == bool(np.isnan(expected[0]))
