"""Messages of a depth sensor are read by rosbags, also from a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader

import navsense as ns
from navsense.core.errors import RecordingError
from navsense.messages import get_messages, list_message_suffixes
from navsense.noise.specification import Noise
from navsense.sensors import AirPressure, Depth
from navsense.testing import example_world
from navsense.world import MountedSensor

WORLD = example_world(("d", Depth.example_spec()))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("depths") / "run.mcap"
    ns.record(WORLD, path, 0.5, seed=5, epoch=1000)
    return path


@pytest.mark.requirement("PRS-1", "ALT-8", "REC-1:mcap", "TRU-1")
@pytest.mark.parametrize("part", ["measured", "ideal", "bias"])
def test_pressure_and_depth_round_trip_bitwise(recording: Path, part: str) -> None:
    reading = ns.simulate(WORLD, 0.5, seed=5, epoch=1000)["robot::arm::d"]
    series: Any = {"measured": reading.arrays, "ideal": reading.ideal, "bias": reading.bias}[part]
    behind = "" if part == "measured" else f"/{part}"
    found: dict[str, list[Any]] = {}
    with recording.open("rb") as file:
        for _, channel, _, value in make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages():
            found.setdefault(channel.topic, []).append(value)
    pressed, deep = found[f"/d{behind}"], found[f"/d_depth{behind}"]
    assert np.array_equal([value.fluid_pressure for value in pressed], series["pressure"])
    deviation = Depth.example_spec().pressure.white_stddev(200.0) if part == "measured" else 0.0
    assert {value.variance for value in pressed} == {deviation * deviation}
    assert np.array_equal([value.point.z for value in deep], series.get("depth", np.zeros(100)))
    assert {(value.point.x, value.point.y, value.header.frame_id) for value in deep} == {(0.0, 0.0, "d")}
    shown = [value.header.stamp.sec * 10**9 + value.header.stamp.nanosec for value in deep]
    assert np.array_equal(shown, reading.stamp)


@pytest.mark.requirement("PRS-1", "ALT-8")
def test_rosbags_reads_pressure_and_depth_messages(recording: Path) -> None:
    with AnyReader([recording]) as reader:
        types = {connection.topic: connection.msgtype for connection in reader.connections}
        for connection, _, raw in reader.messages():
            reader.deserialize(raw, connection.msgtype)
    assert types["/d"] == "sensor_msgs/msg/FluidPressure"
    assert types["/d_depth"] == "geometry_msgs/msg/PointStamped"
    assert list_message_suffixes(WORLD.sensors[0]) == ("", "_depth")


@pytest.mark.requirement("PRS-1", "ALT-8")
def test_gazebo_pressure_message() -> None:
    """protobuf reads `gz.msgs.FluidPressure` (fluid_pressure.proto): header 1, pressure 2, variance 3."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="depth.proto", package="depth", syntax="proto3")
    message = file.message_type.add(name="FluidPressure")
    for number, name, kind in ((1, "header", kinds.TYPE_BYTES), (2, "pressure", kinds.TYPE_DOUBLE)):
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    message.field.add(name="variance", number=3, type=kinds.TYPE_DOUBLE, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message_class: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("depth.FluidPressure"))
    own = np.array([101325.0, 201325.0, 301325.0])
    reading = Depth(Noise(stddev=0.2)).apply(np.arange(3.0), own, seed=2)
    sensor = MountedSensor("m::l::s", Depth(Noise(stddev=0.2)), "m", "l", 10.0)
    values = [message_class.FromString(raw) for raw in get_messages("depth").encode_gz_messages(sensor, reading, 7)]
    assert [value.pressure for value in values] == reading["pressure"].tolist()
    assert {value.variance for value in values} == {0.2 * 0.2}
    assert [str(7 + i).encode() in value.header for i, value in enumerate(values)] == [True] * 3


def test_spec_of_another_type_is_an_error() -> None:
    sensor = MountedSensor("m::l::s", Depth(), "m", "l", 10.0)
    reading = Depth().apply(np.arange(3.0), np.full(3, 2e5), seed=1)
    wrong = MountedSensor("m::l::s", AirPressure(), "m", "l", 10.0)
    assert len(get_messages("depth").encode_gz_messages(sensor, reading, 0)) == 3
    with pytest.raises(RecordingError, match="of type air_pressure"):
        get_messages("depth").encode_gz_messages(wrong, reading, 0)
