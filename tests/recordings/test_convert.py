"""Conversions between all formats equal direct recordings and other readers."""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import Reader as Reader2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense import cli, recordings
from navsense.calibration import load
from navsense.core.errors import FieldError, MotionError, RecordingError, SdfError
from navsense.core.pose import Pose
from navsense.environment.base import UniformField
from navsense.environment.current import CurrentReplay
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.messages.world_messages import pack_fault_bits
from navsense.noise.specification import Noise
from navsense.recordings import channels, csv_tables, message_copy
from navsense.recordings.convert import convert
from navsense.recordings.currents import read_current
from navsense.recordings.euroc import format_sensor_yaml
from navsense.recordings.mcap import reader as mcap_reader
from navsense.recordings.mcap.writer import McapFileWriter
from navsense.recordings.rosbag.metadata import METADATA_TOPIC
from navsense.recordings.summary import read_summary
from navsense.recordings.world_json import FORMAT_VERSION
from navsense.sensors import AirPressure, Altimeter, Depth, Dvl, Imu, Magnetometer, NavSat, Range
from navsense.testing import example_world, is_identical

EPOCH, DURATION = 1000, 0.5
KINDS = (Imu, Magnetometer, Altimeter, AirPressure, NavSat, Depth, Range, Dvl)
NAMES = ("a.mcap", "a.bag", "a.db3", "a.npz", "a.parquet", "t.csv", "e.euroc")
FLOW = "/hydrodynamics/current_velocity"
PLAY = Path("/usr/lib/rosbag/play")
IMU = "robot::arm::imu"

pytestmark = pytest.mark.compiled  # no test uses a kernel


def make_world() -> ns.World:
    """Return a robot with one of each sensor, in a current."""
    world = example_world(*((kind.type, kind.example_spec()) for kind in KINDS))
    return dataclasses.replace(
        world, environment=dataclasses.replace(world.environment, current=UniformField((0.1, -0.2, 0.05)))
    )


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one recording in every format."""
    folder = tmp_path_factory.mktemp("convert")
    ns.record(make_world(), [folder / name for name in NAMES], DURATION, seed=5, epoch=EPOCH, ros="humble")
    return folder


Messages = dict[str, list[tuple[int, int, bytes]]]


def read_mcap(path: Path) -> Messages:
    """Return (log time, publish time, bytes) by topic, sorted, as the package mcap reads them."""
    found: Messages = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            found.setdefault(channel.topic, []).append((message.log_time, message.publish_time, message.data))
    return {topic: sorted(messages) for topic, messages in found.items()}


def read_bag(path: Path) -> Messages:
    """Return (time, time, bytes) by topic, sorted, as rosbags reads them."""
    found: Messages = {}
    with Reader1(path) if path.suffix == ".bag" else Reader2(path) as reader:
        for connection, time, data in reader.messages():
            found.setdefault(connection.topic, []).append((time, time, bytes(data)))
    return {topic: sorted(messages) for topic, messages in found.items()}


def merge_times(found: Messages) -> Messages:
    """Return messages with one time, as in a bag."""
    return {topic: sorted((log, log, data) for log, _, data in several) for topic, several in found.items()}


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("name", ["a.mcap", "a.bag", "a.db3"])
def test_messages_are_copied_unchanged(recording: Path, tmp_path: Path, name: str) -> None:
    messages, old = read_mcap(recording / "a.mcap"), read_bag(recording / "a.bag")
    one = merge_times(messages)
    for suffix in (".mcap", ".bag", ".db3", ""):
        conversion = convert(recording / name, tmp_path / f"b{suffix[1:]}{suffix}")
        assert conversion.count == sum(map(len, messages.values()))
        if suffix == ".mcap":
            assert read_mcap(conversion.path) == (messages if name == "a.mcap" else one)
        else:
            assert read_bag(conversion.path) == (old if suffix == ".bag" else one)
        assert (
            read_summary(conversion.path).entries
            == read_summary(recording / ("a.bag" if suffix == ".bag" else "a.mcap")).entries
        )
        is_late = name == "a.mcap" and suffix in (".bag", ".db3")
        assert [line for line in conversion.losses if "the time of validity of" in line] == conversion.losses
        assert bool(conversion.losses) == is_late
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "bbag.bag", "bdb3", "bmcap.mcap"]


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "t.csv"])
def test_converted_arrays_equal_the_direct_recording(recording: Path, tmp_path: Path, name: str) -> None:
    conversion = convert(recording / name, tmp_path / "b.mcap", ros="humble")
    assert read_mcap(conversion.path) == read_mcap(recording / "a.mcap")
    assert any(line.startswith(f"{IMU}: ") and line.endswith(" had no output") for line in conversion.losses)
    assert f"{IMU}: turn-on biases" in conversion.losses
    convert(recording / name, tmp_path / "b.bag")
    assert read_bag(tmp_path / "b.bag") == read_bag(recording / "a.bag")


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(("a.npz", "a.parquet", "t.csv"), 2)))
def test_arrays_round_trip_bitwise(recording: Path, tmp_path: Path, first: str, second: str) -> None:
    conversion = convert(recording / first, tmp_path / f"b{Path(second).suffix}")
    assert conversion.losses == []
    before, after = ns.open(recording / "a.npz"), ns.open(conversion.path)
    assert list(after) == list(before)
    for name, reading in before.items():
        assert is_identical(dataclasses.asdict(after[name]), dataclasses.asdict(reading))
    assert is_identical(dict(after.truth), dict(before.truth))
    assert is_identical(after.current, before.current)
    assert {k: v for k, v in after.metadata.items() if k != "sensors"} == {
        k: v for k, v in before.metadata.items() if k != "sensors"
    }


def read_messages(path: Path) -> dict[str, list[Any]]:
    """Return the messages of an MCAP recording by topic, as rosbags reads them."""
    found: dict[str, list[Any]] = {}
    with AnyReader([path]) as reader:
        for connection, _, data in reader.messages():
            found.setdefault(connection.topic, []).append(reader.deserialize(data, connection.msgtype))
    return found


@pytest.mark.requirement("REC-1:convert", "CLK-5")
def test_losses_equal_the_documentation(recording: Path, tmp_path: Path) -> None:
    convert(recording / "a.mcap", tmp_path / "b.npz")
    convert(tmp_path / "b.npz", tmp_path / "b.mcap", ros="humble")
    before, after = read_mcap(recording / "a.mcap"), read_mcap(tmp_path / "b.mcap")
    assert before.keys() == after.keys()
    for topic, several in before.items():
        assert [one[:2] for one in after[topic]] == [one[:2] for one in several]
    unlike = {topic for topic, several in before.items() if several != after[topic]}
    assert unlike <= {"/navsat", "/navsat/ideal", "/truth/robot", "/truth/robot/accel"}
    old, new = read_messages(recording / "a.mcap"), read_messages(tmp_path / "b.mcap")
    for topic in unlike:
        for one, other in zip(old[topic], new[topic], strict=True):
            assert find_differences(one, other) <= {"latitude", "longitude", "twist", "accel"}
            for name in ("latitude", "longitude"):
                if hasattr(one, name) and not np.isnan(getattr(one, name)):
                    assert abs(getattr(one, name) - getattr(other, name)) <= np.spacing(abs(getattr(one, name)))
            if "truth" in topic:
                vector, again = (m.twist.twist.linear if hasattr(m, "twist") else m.accel.linear for m in (one, other))
                size = np.hypot(np.hypot(vector.x, vector.y), vector.z)
                for axis in "xyz":
                    assert abs(getattr(vector, axis) - getattr(again, axis)) <= 8.0 * np.finfo(float).eps * size


def find_differences(one: Any, other: Any) -> set[str]:
    """Return the fields in which two messages differ."""
    names = {field.name for field in dataclasses.fields(one)}
    return {name for name in names if repr(getattr(one, name)) != repr(getattr(other, name))}


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("name", ["a.mcap", "a.bag", "a.db3"])
def test_readings_are_restored_from_messages(recording: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known, found = ns.open(recording / "a.npz"), ns.open(recording / name)
    for module, word in (
        (message_copy, "BATCH_BYTES"),
        (channels, "BATCH_BYTES"),
        (mcap_reader, "MIN_BATCH_BYTES"),
    ):
        monkeypatch.setattr(module, word, 30_000)
    cut = ns.open(recording / name)
    assert is_identical(
        {n: dataclasses.asdict(r) for n, r in cut.items()}, {n: dataclasses.asdict(r) for n, r in found.items()}
    )
    for fail_with_full_disk, expected in known.items():
        reading, rows = found[fail_with_full_disk], expected.emitted
        assert np.array_equal(reading.stamp, expected.stamp[rows])
        assert np.array_equal(reading.true_stamp, expected.true_stamp[rows])
        assert np.array_equal(reading.time, expected.time[rows])
        for key in ("angular_velocity", "field", "pressure", "depth", "velocity", "altitude", "vertical_position"):
            if key in expected:
                assert np.array_equal(reading[key], expected[key][rows], equal_nan=True)
                if key in expected.ideal:
                    assert np.array_equal(reading.ideal[key], expected.ideal[key][rows], equal_nan=True)
        if expected.type == "range":
            assert np.array_equal(reading["out_of_range"], expected["out_of_range"][rows])
            assert np.allclose(reading["range"], expected["range"][rows], rtol=2**-24, equal_nan=True, atol=0.0)
    for link, truth in known.truth.items():
        assert np.array_equal(found.truth[link].position, truth.position)
        assert np.array_equal(found.truth[link].orientation, truth.orientation)
        assert np.allclose(found.truth[link].acceleration, truth.acceleration, rtol=0, atol=1e-13)
    assert found.current is not None
    assert is_identical((found.current.velocity, found.current.time), (known.current.velocity, known.current.time))


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("size", [500, 5_000, 1 << 22])
def test_scheduled_faults_are_converted(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds at any block size."""
    for module, word in (
        (message_copy, "BATCH_BYTES"),
        (channels, "BATCH_BYTES"),
        (mcap_reader, "MIN_BATCH_BYTES"),
    ):
        monkeypatch.setattr(module, word, size)
    world = example_world(("imu", Imu.example_spec()))
    planned = ScheduledFault("bias", 0.1, 0.2, "angular_velocity", (0.1, 0.0, 0.0))
    faulty = dataclasses.replace(world.sensors[0], faults=Faults(scheduled=(planned,)))
    world = dataclasses.replace(world, sensors=(faulty,))
    ns.record(world, [tmp_path / name for name in ("a.mcap", "a.npz", "a.db3")], 0.4, seed=5, epoch=EPOCH)
    convert(tmp_path / "a.npz", tmp_path / "b.mcap")
    assert read_mcap(tmp_path / "b.mcap") == read_mcap(tmp_path / "a.mcap")
    known = ns.open(tmp_path / "a.npz")[IMU]
    for name in ("a.mcap", "a.db3"):
        found = ns.open(tmp_path / name)[IMU]
        assert np.array_equal(pack_fault_bits(found.fault), pack_fault_bits(known.fault)[known.emitted])
        assert pack_fault_bits(found.fault).any()


OTHER = "other_msgs/msg/Leak"
DEFINED = "Header header\nstring where\nfloat32[] wet\n" + "=" * 80
DEFINED += "\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n"


@pytest.fixture(scope="module")
def third_party_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a ROS 1 bag written by rosbags: an IMU, an unknown type, a header at 0."""
    path = tmp_path_factory.mktemp("foreign") / "dive.bag"
    store = get_typestore(Stores.ROS1_NOETIC)
    store.register(get_types_from_msg(DEFINED, OTHER))
    types = store.types
    vector, turn = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"]
    with Writer1(path) as writer:
        lines = {kind: writer.add_connection(topic, kind, typestore=store) for topic, kind in FOREIGN.items()}
        for k in range(50):
            stamp = types["builtin_interfaces/msg/Time"](500, 20_000_000 * k + 7)
            header = types["std_msgs/msg/Header"](k, stamp, "imu_link")
            covariances = (np.full(9, -1.0), np.diag([1.0, 4.0, 9.0]).ravel(), np.zeros(9))
            vectors = (turn(0.0, 0.0, 0.0, 1.0), vector(0.1 * k, 0.2, -0.3), vector(1.0, 2.0, 9.8))
            parts = itertools.chain.from_iterable(zip(vectors, covariances, strict=True))
            imu = types["sensor_msgs/msg/Imu"](header, *parts)
            leak = types[OTHER](header, "bow" * (k % 3), np.arange(k % 4, dtype=np.float32))
            for kind, message in (("sensor_msgs/msg/Imu", imu), (OTHER, leak)):
                data = store.serialize_ros1(message, kind)
                writer.write(lines[kind], 500_100_000_000 + 20_000_000 * k, data)
    return path


FOREIGN = {"/imu/data": "sensor_msgs/msg/Imu", "/leak": OTHER}


@pytest.mark.requirement("REC-1:convert")
def test_messages_of_other_types_keep_their_definitions(third_party_bag: Path, tmp_path: Path) -> None:
    places = [third_party_bag, tmp_path / "b.mcap", tmp_path / "b.db3", tmp_path / "c", tmp_path / "d.bag"]
    for one, other in itertools.pairwise(places):
        assert convert(one, other).losses == []
    assert read_bag(places[-1]) == read_bag(third_party_bag)
    with AnyReader([tmp_path / "b.mcap"]) as reader:
        leaks: list[Any] = [
            reader.deserialize(data, c.msgtype) for c, _, data in reader.messages() if c.topic == "/leak"
        ]
    assert [leak.where for leak in leaks] == ["bow" * (k % 3) for k in range(50)]
    assert [leak.wet.tolist() for leak in leaks] == [list(map(float, range(k % 4))) for k in range(50)]
    assert not hasattr(leaks[0].header, "seq")


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("by", ["", ".mcap", ".db3"])
def test_readings_of_other_programs_have_the_times_of_their_stamps(
    third_party_bag: Path, tmp_path: Path, by: str
) -> None:
    path = third_party_bag if not by else convert(third_party_bag, tmp_path / f"b{by}").path
    conversion = convert(path, tmp_path / "c.npz")
    assert conversion.losses == [f"topic /leak of type {OTHER} is not read"]
    (reading,) = ns.open(conversion.path).values()
    assert (reading.name, reading.frame, reading.epoch) == ("imu::data", "imu_link", 500)
    assert reading.stamp.tolist() == [500_000_000_007 + 20_000_000 * k for k in range(50)]
    assert not reading.clock_error.any()
    assert np.allclose(reading.arrival, 0.1 + 0.02 * np.arange(50), rtol=0, atol=1e-9)
    assert reading["angular_velocity"].tolist() == [[0.1 * k, 0.2, -0.3] for k in range(50)]
    assert "orientation" not in reading
    assert ns.open(conversion.path).metadata["sensors"]["imu::data"]["noise"]["angular_velocity"] == [1.0, 2.0, 3.0]


WITH_MASTER = """
import json, os, subprocess, sys, threading
from xmlrpc.server import SimpleXMLRPCServer

published = {}
answers = {"registerPublisher": [1, "", []], "getParam": [-1, "", 0], "hasParam": [1, "", False]}

class Master:
    def _dispatch(self, method, given):
        if method == "registerPublisher":
            published[given[1]] = given[2]
        return answers.get(method, [1, "", 0])

with SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as server:
    server.register_instance(Master())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    places = {"ROS_MASTER_URI": address, "ROS_HOSTNAME": "127.0.0.1", "ROS_HOME": sys.argv[3]}
    command = [sys.argv[1], "--immediate", "--quiet", sys.argv[2]]
    ran = subprocess.run(command, env={**os.environ, **places}, stdout=subprocess.PIPE, text=True)
    server.shutdown()
json.dump([ran.returncode, ran.stdout, published], sys.stdout)
"""
"""The test implements the parts of a ROS 1 master that `rosbag play` needs."""


@pytest.mark.requirement("REC-1:convert", "REC-1:bag")
def test_rosbag_of_debian_plays_a_converted_bag(recording: Path, tmp_path: Path) -> None:
    if not PLAY.exists() or subprocess.run(["/usr/bin/python3", "-c", "import rosbag"], check=False).returncode:
        pytest.skip("needs ROS 1: apt-get install python3-rosbag rosbag")
    convert(recording / "a.npz", tmp_path / "b.bag")
    command = [sys.executable, "-c", WITH_MASTER, PLAY, tmp_path / "b.bag", tmp_path]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    code, output, published = json.loads(ran.stdout)
    assert (code, "Done." in output) == (0, True), output + ran.stderr
    types = {entry.name: entry.type.replace("/msg/", "/") for entry in read_summary(recording / "a.bag").entries}
    types[METADATA_TOPIC] = "std_msgs/String"
    own = ("/rosout", "/clock")
    assert {topic: kind for topic, kind in published.items() if topic not in own} == {
        topic: kind for topic, kind in types.items() if topic not in own
    }
    listing = ["/usr/bin/rosbag", "info", "--yaml", tmp_path / "b.bag"]
    listed = subprocess.run(listing, capture_output=True, text=True, check=True)
    assert f"messages: {1 + sum(entry.count for entry in read_summary(recording / 'a.bag').entries)}" in listed.stdout


@pytest.mark.requirement("REC-1:convert")
def test_euroc_has_the_state_of_the_imu_frame(recording: Path) -> None:
    known, folder = ns.open(recording / "a.npz"), recording / "e" / "mav0"
    imu = known[IMU]
    table = np.loadtxt(folder / "imu0" / "data.csv", delimiter=",")
    assert np.array_equal(
        np.loadtxt(folder / "imu0" / "data.csv", delimiter=",", usecols=0, dtype=np.int64), imu.stamp[imu.emitted]
    )
    assert np.array_equal(table[:, 1:4], imu["angular_velocity"][imu.emitted])
    assert np.array_equal(table[:, 4:], imu["linear_acceleration"][imu.emitted])
    state = np.loadtxt(folder / "state_groundtruth_estimate0" / "data.csv", delimiter=",")
    link, pose = known.truth["robot::arm"], make_world().sensors[0].pose
    turn = Rotation.from_quat(link.orientation, scalar_first=True)
    assert np.allclose(state[:, 1:4], link.position + turn.apply(pose.position), rtol=0, atol=1e-12)
    own = turn * Rotation.from_quat(pose.rotation, scalar_first=True)
    assert np.allclose(
        (own.inv() * Rotation.from_quat(state[:, 4:8], scalar_first=True)).magnitude(), 0.0, atol=1e-12, rtol=0.0
    )
    lever = turn.apply(np.cross(link.angular_velocity, pose.position))
    assert np.allclose(state[:, 8:11], link.velocity + lever, rtol=0, atol=1e-12)
    rows = np.searchsorted(imu.time, link.time)  # 100 Hz within 200 Hz
    assert np.array_equal(imu.time[rows], link.time)
    assert np.array_equal(state[:, 11:14], imu.bias["angular_velocity"][rows])
    assert np.array_equal(state[:, 14:], imu.bias["linear_acceleration"][rows])
    text = (folder / "imu0" / "sensor.yaml").read_text(encoding="utf-8")
    assert "data: [1.0, 0.0, 0.0, 0.0," in text
    assert "rate_hz: 200\n" in text


@pytest.mark.requirement("REC-1:convert")
def test_euroc_comments_list_unsupported_values() -> None:
    """A random walk of 0 with flicker would look like an IMU without drift."""
    flicker = Noise(bias_instability=2e-4)
    (sensor,) = example_world(
        ("imu", Imu(angular_velocity_x=Noise(bias_instability=1e-4), angular_velocity_y=flicker))
    ).sensors
    lines = format_sensor_yaml(sensor, Pose()).splitlines()
    assert "gyroscope_random_walk: 0" in lines
    assert "# gyroscope: bias instability B 0.0002 is not part of Kalibr's model" in lines
    assert not any("accelerometer: bias" in line for line in lines)


@pytest.mark.requirement("REC-1:convert")
def test_columns_of_tables_have_units(recording: Path, tmp_path: Path) -> None:
    """This includes biases, which for a NavSat are in metres."""
    header = (recording / "t" / "robot.arm.navsat.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    for column in ("latitude [rad]", "ideal.latitude [rad]", "bias.latitude [m]", "turn_on_bias.longitude [m]"):
        assert column in header
    assert {"bias.altitude [m]", "bias.velocity.y [m/s]"} <= set(header)
    for kind in KINDS:
        table = (recording / "t" / f"robot.arm.{kind.type}.csv").read_text(encoding="utf-8")
        bare = {column for column in table.splitlines()[0].split(",") if not column.endswith("]")}
        assert bare == {"valid", "emitted"}, kind
    shutil.copytree(recording / "t", tmp_path / "old")
    metadata = json.loads((tmp_path / "old" / "navsense.json").read_text(encoding="utf-8"))
    for name, head in metadata["sensors"].items():
        del head["bias_unit"]
        file = tmp_path / "old" / f"{name.replace('::', '.')}.csv"
        first, *rows = file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text(re.sub(r"(bias\.[^,]*) \[[^]]*\]", r"\1", first) + "".join(rows), encoding="utf-8")
    (tmp_path / "old" / "navsense.json").write_text(json.dumps(metadata), encoding="utf-8")
    before, known = ns.open(tmp_path / "old"), ns.open(recording / "t")
    assert all(is_identical(before[name].bias, known[name].bias) for name in known)


@pytest.mark.requirement("REC-1:convert", "REC-1:bag", "CLK-5")
def test_recording_of_epoch_0_gets_another_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From arrays, the messages equal those of a run at that epoch."""
    world = make_world()
    ns.record(world, [tmp_path / "a.mcap", tmp_path / "a.npz"], DURATION, seed=5)
    ns.record(world, [tmp_path / "b.mcap", tmp_path / "b.npz"], DURATION, seed=5, epoch=EPOCH)
    convert(tmp_path / "a.npz", tmp_path / "c.mcap", epoch=EPOCH)
    assert read_mcap(tmp_path / "c.mcap") == read_mcap(tmp_path / "b.mcap")
    convert(tmp_path / "b.npz", tmp_path / "d.npz", epoch=0)
    assert read_summary(tmp_path / "d.npz").start == 0
    monkeypatch.setattr(
        sys,
        "argv",
        ["navsense", "convert", "--epoch", str(EPOCH), *map(str, (tmp_path / "a.mcap", tmp_path / "e.bag"))],
    )
    cli.main()
    known, found = ns.open(tmp_path / "b.mcap"), ns.open(tmp_path / "e.bag")
    assert found.metadata["epoch"] == EPOCH
    for name, reading in known.items():
        assert np.array_equal(found[name].stamp, reading.stamp)
        assert np.array_equal(found[name].time, reading.time)
    assert found.current is not None
    assert found.current.epoch == next(iter(found.truth.values())).epoch == EPOCH
    for epoch in (-1, 2**31):
        with pytest.raises(RecordingError, match=f"--epoch: {epoch}; must be an integer of seconds from 0 to"):
            convert(tmp_path / "a.npz", tmp_path / "x.npz", epoch=epoch)


@pytest.mark.requirement("REC-1:convert")
def test_evo_reads_the_euroc_state(recording: Path) -> None:
    reader = pytest.importorskip("evo.tools.file_interface", reason="needs evo: pip install evo", exc_type=ImportError)
    file = recording / "e" / "mav0" / "state_groundtruth_estimate0" / "data.csv"
    found = reader.read_euroc_csv_trajectory(str(file))
    state = np.loadtxt(file, delimiter=",")
    assert np.allclose(found.timestamps, state[:, 0] * 1e-9, rtol=0, atol=1e-6)
    assert np.array_equal(found.positions_xyz, state[:, 1:4])
    assert np.array_equal(found.orientations_quat_wxyz, state[:, 4:8])


@pytest.mark.requirement("REC-1:convert")
def test_euroc_is_read_back(recording: Path, tmp_path: Path) -> None:
    known, conversion = ns.open(recording / "a.npz")[IMU], convert(recording / "e", tmp_path / "b.mcap")
    (reading,) = ns.open(conversion.path).values()
    assert np.array_equal(reading.stamp, known.stamp[known.emitted])
    assert np.array_equal(reading["linear_acceleration"], known["linear_acceleration"][known.emitted])
    assert len(ns.open(conversion.path).truth["mav0::body"].time) == int(100 * DURATION)
    shutil.copytree(recording / "e" / "mav0" / "imu0", tmp_path / "other" / "imu0")
    (tmp_path / "other" / "imu0" / "data.csv").write_text("#timestamp [ns],w,w,w,a,a,a\n1,2,3\n", encoding="utf-8")
    with pytest.raises(RecordingError, match=r"imu0/data\.csv:2: number of columns: 3; must be 7"):
        convert(tmp_path / "other", tmp_path / "c.npz")


@pytest.mark.requirement("REC-1:convert")
def test_every_recording_can_be_used_as_a_motion(recording: Path) -> None:
    world = make_world()
    still = dataclasses.replace(world, sensors=world.sensors[:1])
    truth = ns.open(recording / "a.npz").truth["robot::base"]
    until = float(truth.time[-1])
    folder = recording / "t"
    arguments = [recording / name for name in NAMES[:-1]]
    arguments += [
        folder,
        folder / "truth.robot.base.csv",
        Path(f"{recording}/a.mcap:/truth/robot"),
        Path(f"{recording}/a.npz:robot"),
    ]
    for path in arguments:
        found = ns.simulate(still, until, motion=path).truth["robot::base"]
        assert np.allclose(found.position, truth.position[:-1], rtol=0, atol=1e-12), path
        assert np.allclose(np.abs((found.orientation * truth.orientation[:-1]).sum(axis=1)), 1.0, atol=1e-12, rtol=0.0)
    for path, why in (
        (recording / "a.mcap:/nix", "must be one of /truth/robot"),
        (recording / "nix.npz", "no such file"),
    ):
        with pytest.raises(MotionError, match=why):
            ns.simulate(still, until, motion=path)


@pytest.mark.requirement("REC-1:convert", "CUR-1")
def test_every_recording_can_be_used_as_a_current(recording: Path) -> None:
    known = ns.open(recording / "a.npz").current
    assert known is not None
    for name in ("a.mcap", "a.bag", "a", "a.db3", "a.npz", "a.parquet", "t/current.csv", "t", "t.csv"):
        topic = FLOW if name in ("a.mcap", "a.bag", "a", "a.db3") else None
        found = read_current(recording / name, topic=topic)
        assert np.array_equal(found.velocity, known.velocity)
        assert np.allclose(found.times, known.time, rtol=0, atol=1e-9)
    world = recording / "flow.sdf"
    for arguments in ('"t"', '"t.csv"', f'"a.db3" topic="{FLOW}"', f'"a" topic="{FLOW}"'):
        flow = f"<navsense:current><replay file={arguments}/></navsense:current>"
        world.write_text(
            f'<sdf version="1.10" xmlns:navsense="https://navsense.org/sdf"><world name="w">{flow}</world></sdf>',
            encoding="utf-8",
        )
        current = ns.load(world).environment.current
        assert isinstance(current, CurrentReplay)
        assert np.array_equal(current.velocity, known.velocity)
    world.write_text(world.read_text(encoding="utf-8").replace('"a"', '"nix.csv"'), encoding="utf-8")
    with pytest.raises(SdfError, match=r"nix\.csv; is not found;"):
        ns.load(world)
    with pytest.raises(FieldError, match="record of a current: File name too long"):
        read_current("x" * 300 + ".csv")
    (recording / "dry").mkdir()
    (recording / "dry" / "navsense.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FieldError, match=r"dry: recording: holds no current; record a world with a current"):
        read_current(recording / "dry")


@pytest.mark.requirement("REC-1:convert")
def test_table_gives_the_same_calibration_as_the_recording(recording: Path) -> None:
    table = load.read(recording / "t" / "robot.arm.magnetometer.csv")
    known = ns.open(recording / "a.npz")["robot::arm::magnetometer"]
    assert (table.unit, len(table.field)) == ("T", int(np.isfinite(known["field"]).all(axis=1).sum()))
    bags = [load.read(recording / name, sensor="/magnetometer") for name in ("a", "a.db3")]
    assert np.array_equal(bags[0].field, bags[1].field)
    assert len(bags[0].field) == len(table.field)


@pytest.mark.requirement("REC-1:convert", "BAT-1")
def test_one_of_several_runs_is_chosen(tmp_path: Path) -> None:
    world = example_world(("imu", Imu.example_spec()))
    ns.simulate(world, 0.2, seed=5, runs=3, epoch=1).save(tmp_path / "many.npz")
    with pytest.raises(RecordingError, match=r"many\.npz: a \.mcap holds one run: 3; choose one with --run"):
        convert(tmp_path / "many.npz", tmp_path / "b.mcap")
    with pytest.raises(RecordingError, match="run: 7; must be one of 0, 1, 2"):
        convert(tmp_path / "many.npz", tmp_path / "b.mcap", run=7)
    convert(tmp_path / "many.npz", tmp_path / "b.mcap", run=2)
    ns.record(world, tmp_path / "c.mcap", 0.2, seed=5, run=2, epoch=1)
    assert read_mcap(tmp_path / "b.mcap") == read_mcap(tmp_path / "c.mcap")
    convert(tmp_path / "many.npz", tmp_path / "b.parquet")
    assert ns.open(tmp_path / "b.parquet")[IMU]["angular_velocity"].shape[0] == 3


def copy_first_half(path: Path, to: Path) -> Path:
    """Return a copy of the first half of a file."""
    to.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return to


@pytest.mark.requirement("REC-1:convert")
def test_unreadable_source_is_an_error_and_changes_no_file(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.mcap").write_bytes(b"#ROSBAG V2.0\n" + bytes(99))
    (tmp_path / "other.bag").write_bytes((recording / "a.mcap").read_bytes())
    cases = [
        (
            copy_first_half(recording / "a.mcap", tmp_path / "cut.mcap"),
            r"cut\.mcap: is a truncated recording; recover it with: navsense recover",
        ),
        (
            copy_first_half(recording / "a.bag", tmp_path / "cut.bag"),
            r"cut\.bag: cannot be read.*navsense recover .*cut\.bag",
        ),
        (
            copy_first_half(recording / "a.npz", tmp_path / "cut.npz"),
            r"cut\.npz: is not a NumPy archive, or is damaged; must be an \.npz recording; copy it again: ",
        ),
        (
            copy_first_half(recording / "a.parquet", tmp_path / "cut.parquet"),
            r"cut\.parquet: is not a Parquet file, or is damaged; must be a \.parquet recording; copy it again: ",
        ),
        (tmp_path / "other.mcap", r"other\.mcap: is not an MCAP file"),
        (tmp_path / "other.bag", r"other\.bag: is not a ROS 1 bag"),
        (tmp_path / "empty", r"empty: is a directory, and no recording; name a file in it"),
        (tmp_path / "missing.mcap", r"missing\.mcap: cannot be read: no such file"),
        (tmp_path / "missing.csv", r"missing\.csv: is not a recording"),
    ]
    for target in (tmp_path / "b.npz", tmp_path / "b.bag"):
        target.write_bytes(b"older")
        before = sorted(tmp_path.iterdir())
        for path, why in cases:
            with pytest.raises(RecordingError, match=why):
                convert(path, target)
            assert target.read_bytes() == b"older"
            assert sorted(tmp_path.iterdir()) == before


@pytest.mark.requirement("REC-1:convert")
def test_write_error_is_reported(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = recording / "a.mcap"
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter").write_text("dear", encoding="utf-8")
    cases = (
        (source, "is an input of the same command"),
        (recording / "a.mcap.mcap" / ".." / "a.mcap", "is an input|does not exist"),
        (tmp_path / "b.xyz", r"no recording has this suffix: \.xyz"),
        (tmp_path / "absent" / "b.npz", "the directory does not exist"),
        (tmp_path / "taken", "is something else.*must contain only metadata.yaml and taken_0.mcap; choose another"),
        (tmp_path / "taken.csv", "something else"),
        (tmp_path / "taken.db3", "something else"),
    )
    for target, why in cases:
        with pytest.raises(RecordingError, match=why):
            convert(source, target)
    with pytest.raises(RecordingError, match="is an input"):
        convert(recording / "a", recording / "a.db3")

    def fail_with_full_disk(*_given: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(csv_tables.TableFolder, "write", fail_with_full_disk)
    monkeypatch.setattr(McapFileWriter, "write_compressed_chunk", fail_with_full_disk)
    for name in ("b.csv", "b.mcap", "b"):
        with pytest.raises(
            RecordingError, match=rf"{name}: cannot be written: no space left on device; free some space"
        ):
            convert(recording / "a.npz" if name != "b" else source, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize(("kept", "other"), [("a.euroc", "a.csv"), ("a.csv", "a.euroc")])
def test_folder_of_another_format_is_not_replaced(recording: Path, tmp_path: Path, kept: str, other: str) -> None:
    source = recording / "a.mcap"
    for _ in range(2):  # a recording of the same format is replaced
        convert(source, tmp_path / kept)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(RecordingError, match=r"holds a recording of format (EuRoC|csv).*choose another name"):
        convert(source, tmp_path / other)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("epoch", [None, 7])
def test_bag_can_have_the_name_of_its_mcap_file(recording: Path, tmp_path: Path, epoch: int | None) -> None:
    source, bag = tmp_path / "run.mcap", tmp_path / "run"
    source.write_bytes((recording / "a.mcap").read_bytes())
    for _ in range(2):  # the second conversion replaces the bag
        assert convert(source, bag, epoch=epoch).count > 0
    assert source.read_bytes() == (recording / "a.mcap").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.mcap"]
    assert list(ns.open(bag)) == list(ns.open(source))


@pytest.mark.requirement("REC-1:convert")
def test_gazebo_messages_cannot_be_written_to_a_ros_bag(recording: Path, tmp_path: Path) -> None:
    convert(recording / "a.npz", tmp_path / "a.gz.mcap")
    for name, why in (
        ("b.bag", "nothing in it can be converted: no bag of ROS holds messages in protobuf"),
        ("b.npz", "holds messages of Gazebo, which navsense writes but does not read; "),
    ):
        with pytest.raises(RecordingError, match=why):
            convert(tmp_path / "a.gz.mcap", tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["a.gz.mcap"]


@pytest.mark.requirement("REC-1:convert")
def test_command_lists_losses(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_command(*arguments: object) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["navsense", "convert", *map(str, arguments)])
        cli.main()
        output = capsys.readouterr()
        return output.out, output.err

    out, err = run_command(recording / "a.npz", tmp_path / "b.euroc")
    assert out.startswith(f"wrote {tmp_path / 'b'}: ")
    assert f"not converted: {IMU}: orientation, ideal values" in out.splitlines()
    assert err == ""
    with pytest.raises(SystemExit, match="2"):
        run_command(tmp_path / "nix.mcap", tmp_path / "c.npz")
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == f"error: {tmp_path / 'nix.mcap'}: cannot be read: no such file or directory; check the name\n"


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("suffix", [".csv", ".euroc"])
def test_folders_are_replaced_completely_and_keep_slices_before_an_error(
    recording: Path, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"run{suffix}"
    known = ns.open(recording / "a.npz")
    recorded_run = known.make_recorded_run()
    with pytest.raises(RuntimeError, match="elsewhere"), recordings.open_writer(path, recorded_run) as writer:  # noqa: PT012 - it is raised around the writer
        for time_slice in known.iter_slices():
            writer.write(time_slice)
        raise RuntimeError("elsewhere")
    first = ns.open(path)
    convert(recording / "a.npz", path)
    assert is_identical(dict(ns.open(path).truth), dict(first.truth))
    assert [one.name for one in tmp_path.iterdir()] == ["run"]
    with pytest.raises(RuntimeError, match="elsewhere"), recordings.open_writer(path, recorded_run):
        raise RuntimeError("elsewhere")
    assert is_identical(dict(ns.open(path).truth), dict(first.truth))


@pytest.mark.requirement("REC-1:convert")
def test_damaged_specification_is_reported(recording: Path, tmp_path: Path) -> None:
    with np.load(recording / "a.npz") as archive:
        arrays = dict(archive)
    metadata = json.loads(str(arrays["meta"]))
    metadata["layout"] = {"format": FORMAT_VERSION, "models": 3}
    np.savez(tmp_path / "bad.npz", **{**arrays, "meta": np.array(json.dumps(metadata))})
    with pytest.raises(
        RecordingError, match=r"bad\.npz: is not a recording of navsense: damaged: its world cannot be read"
    ):
        convert(tmp_path / "bad.npz", tmp_path / "out.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.npz"]
