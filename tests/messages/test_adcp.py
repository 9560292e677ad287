"""Current profiles in recordings are read by rosbags, mcap and protobuf."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense import messages
from navsense.core.errors import RecordingError
from navsense.core.pose import conjugate
from navsense.core.readings import Reading
from navsense.messages import adcp
from navsense.messages.cdr import encode
from navsense.sensors import Adcp, CoordinateSystem, Depth, MessageDialect
from navsense.testing import example_world
from navsense.world import MountedSensor, World

EPOCH, DURATION = 1000, 0.2
SHEET = replace(Adcp.example_spec(), dialect=MessageDialect.OWN, side_lobes=False)
BEAMS = replace(SHEET, coordinates=CoordinateSystem.BEAM)


def make_world(spec: Adcp = SHEET) -> World:
    return example_world(("a", spec))


def simulate_reading(spec: Adcp = SHEET) -> Reading:
    return ns.simulate(make_world(spec), DURATION, seed=5, epoch=EPOCH)["robot::arm::a"]


def find_emitted(reading: Reading) -> Any:
    return np.nonzero(reading.emitted)[0]


def assert_equal(found: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.requirement("GAP-8", "REC-1:mcap", "REC-1:bag")
@pytest.mark.parametrize("suffix", ["mcap", "bag"])
@pytest.mark.parametrize("spec", [SHEET, BEAMS], ids=["ship", "beam"])
def test_profile_messages_round_trip(tmp_path: Path, suffix: str, spec: Adcp) -> None:
    path, one = tmp_path / f"run.{suffix}", simulate_reading(spec)
    ns.record(make_world(spec), path, DURATION, seed=5, epoch=EPOCH)
    rows = find_emitted(one)
    assert rows.size > 3
    with AnyReader([path]) as reader:
        topics = {connection.topic: connection for connection in reader.connections}
        connection, complete = topics["/a"], topics["/a_ensemble"]
        assert (connection.msgtype, complete.msgtype) == ("ds_sensor_msgs/msg/Adcp", "navsense_msgs/msg/Adcp")
        if suffix == "bag":
            assert connection.digest == "20cf0cc6667acb5c9186d027facfbfc5"
        found: Any = [reader.deserialize(raw, connection.msgtype) for _, _, raw in reader.messages([connection])]
        full: Any = [reader.deserialize(raw, complete.msgtype) for _, _, raw in reader.messages([complete])]
    assert len(found) == len(full) == rows.size
    for row, value, rest in zip(rows, found, full, strict=True):
        velocities = [[(v.x, v.y, v.z) for v in cell.velocity_bin_beam] for cell in value.vel_bin_beams]
        if spec is SHEET:
            assert_equal(np.array(velocities)[:, 0], one["velocity"][row])
        else:
            assert_equal(np.array(velocities), -one["beam_velocity"][row][:, :, None] * spec.beam_direction)
        assert (value.cells, value.cell_depth, value.coordinate_mode) == (4, 1, 2 if spec is SHEET else 0)
        assert value.bin0_distance == np.float32(spec.cells.first_distance)
        assert_equal([(v.x, v.y, v.z) for v in value.beam_unit_vec], spec.beam_direction)
        stamp = value.header.stamp.sec - EPOCH + 1e-9 * value.header.stamp.nanosec
        assert stamp == pytest.approx(one["time_of_validity"][row] + one.clock_error[row], abs=1e-9)
        age = value.ds_header.io_time.sec - EPOCH + 1e-9 * value.ds_header.io_time.nanosec - stamp
        assert age == pytest.approx(one.time[row] - one["time_of_validity"][row], abs=2e-9)
        for name, array in one.arrays.items():
            assert_equal(np.ravel(getattr(rest, name)), np.ravel(array[row]))


@pytest.mark.requirement("GAP-8", "REC-1:mcap")
def test_gazebo_message_has_a_water_mass_per_cell(tmp_path: Path) -> None:
    path, one = tmp_path / "run.gz.mcap", simulate_reading()
    ns.record(make_world(), path, DURATION, seed=5, epoch=EPOCH)
    found: list[Any] = []
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file, decoder_factories=[DecoderFactory()]).iter_messages():
            assert schema is not None
            files = descriptor_pb2.FileDescriptorSet.FromString(schema.data)
            pool = descriptor_pool.DescriptorPool()
            for each in files.file:
                pool.Add(each)  # type: ignore[attr-defined]
            kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name))
            assert (channel.topic, schema.name) == ("/a", "gz.msgs.DVLVelocityTracking")
            found.append(kind.FromString(message.data))
    rows, cells = find_emitted(one), SHEET.cell_distance
    assert len(found) == rows.size * cells.size
    against = -one["relative_velocity"]
    for i, value in enumerate(found):
        row, m = rows[i // cells.size], i % cells.size
        assert (value.target.type, value.target.range.mean) == (2, cells[m])
        assert value.HasField("velocity") == (not math.isnan(against[row, m, 0]))
        if value.HasField("velocity"):
            assert_equal((value.velocity.mean.x, value.velocity.mean.y, value.velocity.mean.z), against[row, m])
            assert value.velocity.reference == 2
        for k, beam in enumerate(value.beams):
            along = one["beam_velocity"][row, m, k]
            assert beam.locked == (not math.isnan(along))
            if beam.locked:
                mean = (beam.velocity.mean.x, beam.velocity.mean.y, beam.velocity.mean.z)
                assert mean == pytest.approx(along * SHEET.beam_direction[k], abs=1e-15)
                assert beam.range.mean == cells[m] / SHEET.beams.janus_cosines[k]


@pytest.mark.requirement("GAP-8", "DVW-5")
def test_ds_msgs_ranges_are_along_the_beam() -> None:
    one = simulate_reading()
    for dialect, slant in ((MessageDialect.OWN, 1.0), (MessageDialect.DSROS, SHEET.beams.janus_cosines[0])):
        sensor = MountedSensor("m::l::a", replace(SHEET, dialect=dialect), "m", "l", 4.0, topic="/a", frame="f")
        encoder = adcp.make_encoder(sensor, "measured")
        rows = encode(encoder, np.zeros(one.time.size, dtype=np.int64), one.arrays).view(encoder.layout.dtype)[:, 0]
        assert rows["bin0_distance"][0] == np.float32(SHEET.cells.first_distance / slant)
        (turn,) = messages.list_frames(sensor).values()
        back = Rotation.from_quat(turn.rotation, scalar_first=True)
        assert (back * Rotation.from_quat(SHEET.reference, scalar_first=True)).magnitude() == pytest.approx(
            0.0, abs=1e-12
        )
        assert turn.rotation == conjugate(SHEET.reference)
    with pytest.raises(RecordingError, match=r"must be an ns\.sensors\.Adcp"):
        adcp.make_encoder(MountedSensor("m::l::a", Depth(), "m", "l", 4.0, topic="/a", frame="f"), "measured")


@pytest.mark.requirement("GAP-8", "REC-1:npz", "REC-1:parquet")
@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_profile_tables_round_trip(tmp_path: Path, suffix: str) -> None:
    run = ns.simulate(make_world(), DURATION, seed=5, epoch=EPOCH)
    path = tmp_path / f"run.{suffix}"
    run.save(path)

    found, one = ns.open(path)["robot::arm::a"], run["robot::arm::a"]
    assert found.arrays.keys() == one.arrays.keys()
    for name, array in one.arrays.items():
        assert_equal(found.arrays[name], array)
