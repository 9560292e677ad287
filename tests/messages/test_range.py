"""Messages of a range sensor are read by other programs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader

import navsense as ns
from navsense.messages import get_messages
from navsense.noise.specification import Noise
from navsense.sensors import Cone, Fan, Range, Sound
from navsense.testing import example_world
from navsense.world import MountedSensor

WORLD = example_world(("r", Range.example_spec()))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranges") / "run.mcap"
    ns.record(WORLD, path, 2.0, seed=5, epoch=1000)
    return path


def convert_to_rep_117(reading: Any) -> Any:
    """Return ranges in the convention of REP 117."""
    rows = zip(reading["range"].tolist(), reading["out_of_range"].tolist(), strict=True)
    return np.array([math.inf if side == 1 else -math.inf if side == -1 else r for r, side in rows], dtype=np.float32)


@pytest.mark.requirement("DVU-2", "ALT-8", "REC-1:mcap")
def test_range_messages_round_trip(recording: Path) -> None:
    reading = ns.simulate(WORLD, 2.0, seed=5, epoch=1000)["robot::arm::r"]
    found: list[Any] = []
    with recording.open("rb") as file:
        for _, channel, _, value in make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages():
            if channel.topic == "/r":
                found.append(value)
    assert np.array_equal(np.array([value.range for value in found], dtype=np.float32), convert_to_rep_117(reading))
    assert np.isfinite(convert_to_rep_117(reading)).any()
    assert np.isposinf(convert_to_rep_117(reading)).any()
    sheet = Range.example_spec()
    first = found[0]
    assert (first.radiation_type, first.header.frame_id) == (0, "r")
    limits = [first.field_of_view, first.min_range, first.max_range]
    assert limits == pytest.approx([sheet.beam.width, sheet.minimum_range, sheet.maximum_range], rel=1e-7, abs=0.0)
    with AnyReader([recording]) as reader:
        (connection,) = (connection for connection in reader.connections if connection.topic == "/r")
        assert connection.msgtype == "sensor_msgs/msg/Range"
        raws = [raw for _, _, raw in reader.messages([connection])]
        assert reader.deserialize(raws[0], connection.msgtype).range == np.float32(found[0].range)  # type: ignore[attr-defined]


@pytest.mark.requirement("DVU-2")
def test_ranges_beyond_both_limits() -> None:
    sensor = MountedSensor("m::l::s", Range(minimum_range=1.0, maximum_range=9.0), "m", "l", 10.0)
    reading = Range(minimum_range=1.0, maximum_range=9.0).apply(np.arange(3.0), np.array([0.5, math.inf, 3.0]), seed=1)
    values = [make_scan_class().FromString(raw) for raw in get_messages("range").encode_gz_messages(sensor, reading, 0)]
    assert [list(value.ranges) for value in values] == [[-math.inf], [math.inf], [3.0]]


def make_scan_class() -> Any:
    """Return `gz.msgs.LaserScan` by protobuf: laserscan.proto, fields 1 to 15."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="scan.proto", package="scan", syntax="proto3")
    message = file.message_type.add(name="LaserScan")
    one, many = kinds.LABEL_OPTIONAL, kinds.LABEL_REPEATED
    names = """frame=2 angle_min=4 angle_max=5 angle_step=6 range_min=7 range_max=8 count=9 vertical_angle_min=10
    vertical_angle_max=11 vertical_angle_step=12 vertical_count=13 ranges=14 intensities=15""".split()
    for name, number in (part.split("=") for part in names):
        kind = kinds.TYPE_STRING if name == "frame" else kinds.TYPE_UINT32 if "count" in name else kinds.TYPE_DOUBLE
        label = many if name in ("ranges", "intensities") else one
        message.field.add(name=name, number=int(number), type=kind, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("scan.LaserScan"))


@pytest.mark.requirement("DVU-2", "ALT-8")
@pytest.mark.parametrize(
    ("beam", "angles"),
    [
        (Fan(3, -0.03, 0.04, 1, 0.1, 0.2), (-0.03, 0.04, 0.0, 0.0)),
        (Cone(0.1), (-0.05, 0.05, -0.05, 0.05)),
    ],
)
def test_gazebo_range_message(beam: Fan | Cone, angles: tuple[float, ...]) -> None:
    sheet = Range(Noise(stddev=0.2), 0.5, 40.0, beam, Sound())
    sensor = MountedSensor("m::l::s", sheet, "m", "l", 10.0, frame="f")
    reading = sheet.apply(np.arange(3.0), np.array([3.0, 4.0, 5.0]), seed=2)
    values = [make_scan_class().FromString(raw) for raw in get_messages("range").encode_gz_messages(sensor, reading, 7)]
    assert [list(value.ranges) for value in values] == [[distance] for distance in reading["range"].tolist()]
    for value in values:
        assert (value.frame, value.count, value.vertical_count) == ("f", 1, 1)
        assert (value.range_min, value.range_max) == (0.5, 40.0)
        found = (value.angle_min, value.angle_max, value.vertical_angle_min, value.vertical_angle_max)
        assert found == pytest.approx(angles, abs=1e-15)
