"""ROS bags are read by rosbags and, if Debian's packages are installed, by ROS 1."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from rosbags.interfaces import QosDurability
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag2 import Reader as Reader2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

import navsense as ns
from navsense import recordings
from navsense.clock import Latency
from navsense.core.errors import RecordingError
from navsense.noise.specification import Noise
from navsense.recordings.base import make_os_error
from navsense.recordings.convert import convert
from navsense.recordings.rosbag import writer as rosbag_writer
from navsense.recordings.rosbag.metadata import METADATA_TOPIC
from navsense.recordings.summary import read_summary
from navsense.sensors import AirPressure, Altimeter, Depth, Dvl, Imu, Magnetometer, NavSat, Range
from navsense.sensors.doppler import DvlMessageOptions, MessageDialect
from navsense.testing import example_world
from navsense.world import World

EPOCH = 1_700_000_000
SECONDS = 3
SUFFIXES = (".bag", ".db3")

ORACLES = Path(__file__).parent.parent / "oracles" / "genmsg" / "md5.csv"
SYSTEM = "/usr/bin/python3"


def find_ros1() -> str:
    """Return Debian's Python with the ROS 1 library; skip the test if it is missing."""
    probe = [SYSTEM, "-c", "import rosbag"]
    if not Path(SYSTEM).exists() or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("needs ROS 1: apt-get install python3-rosbag")
    return SYSTEM


def write(builders: ModuleType, path: Path, seconds: int = SECONDS, **changes: Any) -> Path:
    """Record some seconds of all data and return the file."""
    head = {"epoch": EPOCH, "seed": 7, "duration": float(seconds), **changes}
    with recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), **head)) as writer:
        for second in range(seconds):
            writer.write(builders.make_time_slice(second, EPOCH))
    return recordings.get_data_path(path)


@pytest.fixture(scope="module")
def recording(builders: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one recording in three formats."""
    folder = tmp_path_factory.mktemp("bags")
    for suffix in (".bag", ".db3", ".mcap"):
        write(builders, folder / f"run{suffix}")
    return folder


def read_raw_messages(path: Path) -> dict[str, list[tuple[int, bytes]]]:
    """Return (time of arrival, bytes) by topic of an MCAP recording, as the package mcap reads it."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            found.setdefault(channel.topic, []).append((message.log_time, message.data))
    return found


def read_messages(path: Path, *, complete: bool = False) -> dict[str, list[tuple[int, Any]]]:
    """Return (time, message) by topic, by the definitions in the bag; `complete` includes the metadata."""
    found: dict[str, list[tuple[int, Any]]] = {}
    with AnyReader([path if path.suffix == ".bag" else path.parent]) as reader:
        for connection, time, data in reader.messages():
            if complete or connection.topic != METADATA_TOPIC:
                found.setdefault(connection.topic, []).append((time, reader.deserialize(data, connection.msgtype)))
    return found


def to_plain(value: Any) -> Any:
    """Return a message as lists and numbers, without the sequence number of a ROS 1 header."""
    if dataclasses.is_dataclass(value):
        names = [part.name for part in dataclasses.fields(value) if part.name not in ("seq", "__msgtype__")]
        return {name: to_plain(getattr(value, name)) for name in names}
    if isinstance(value, np.ndarray):
        return [repr(one) for one in value.tolist()]
    return [to_plain(one) for one in value] if isinstance(value, list) else repr(value)


@pytest.mark.requirement("REC-1:bag", "TRU-1", "CLK-5")
def test_ros2_bag_messages_equal_those_of_mcap_bytewise(recording: Path) -> None:
    expected = read_raw_messages(recording / "run.mcap")
    found: dict[str, list[tuple[int, bytes]]] = {}
    with Reader2(recording / "run") as reader:
        for connection, time, data in reader.messages():
            found.setdefault(connection.topic, []).append((time, bytes(data)))
    assert found == expected
    assert sum(map(len, expected.values())) == 3 * 530 + 1


@pytest.mark.requirement("REC-1:bag", "TRU-1", "CLK-5")
def test_ros1_bag_messages_are_equal_and_numbered(recording: Path) -> None:
    found, expected = read_messages(recording / "run.bag"), read_messages(recording / "run" / "run.db3")
    assert set(found) == set(expected)
    for topic, messages in expected.items():
        assert [(time, to_plain(one)) for time, one in found[topic]] == [
            (time, to_plain(one)) for time, one in messages
        ]
        if hasattr(found[topic][0][1], "header"):
            assert [one.header.seq for _, one in found[topic]] == list(range(len(messages)))


@pytest.mark.requirement("REC-1:bag")
def test_static_transforms_are_latched(recording: Path) -> None:
    with Reader1(recording / "run.bag") as reader:
        extras = {connection.topic: connection.ext for connection in reader.connections}
    assert {topic for topic, ext in extras.items() if ext.latching} == {"/tf_static", METADATA_TOPIC}
    assert {ext.callerid for ext in extras.values()} == {"/navsense"}
    with Reader2(recording / "run") as reader:
        kept = {connection.topic: connection.ext.offered_qos_profiles for connection in reader.connections}
        assert (reader.storage.metadata.custom or {})["world"] == "sea"
    assert {topic for topic, profiles in kept.items() if profiles} == {"/tf_static"}
    assert kept["/tf_static"][0].durability is QosDurability.TRANSIENT_LOCAL


@pytest.mark.requirement("REC-1:bag")
def test_ros2_database_passes_the_integrity_check(recording: Path) -> None:
    with contextlib.closing(sqlite3.connect(recording / "run" / "run.db3")) as found:
        assert found.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert found.execute("SELECT count(*) FROM messages").fetchone() == (3 * 530 + 1,)
    assert sorted(part.name for part in (recording / "run").iterdir()) == ["metadata.yaml", "run.db3"]


WITH_ROS = """
import json, sys, rosbag
found = {}
with rosbag.Bag(sys.argv[1]) as bag:
    kinds = {topic: (one.msg_type, one.message_count) for topic, one in bag.get_type_and_topic_info().topics.items()}
    for topic, message, time in bag.read_messages():
        stamp = message.header.stamp.to_nsec() if hasattr(message, "header") else 0
        seq = message.header.seq if hasattr(message, "header") else 0
        found.setdefault(topic, []).append((time.to_nsec(), stamp, seq, str(message)))
json.dump([kinds, found], sys.stdout)
"""


def read_with_ros1(path: Path) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return types and counts, and messages, as ROS 1 reads a bag with the definitions in it."""
    ran = subprocess.run([find_ros1(), "-c", WITH_ROS, str(path)], capture_output=True, text=True, check=True)
    kinds, found = json.loads(ran.stdout)
    return kinds, found


@pytest.mark.requirement("REC-1:bag", "CLK-5")
def test_ros1_reads_the_bags(recording: Path) -> None:
    kinds, found = read_with_ros1(recording / "run.bag")
    expected = read_messages(recording / "run.bag", complete=True)
    assert {topic: count for topic, (_, count) in kinds.items()} == {t: len(m) for t, m in expected.items()}
    assert kinds["/imu"] == ["sensor_msgs/Imu", 300]
    for topic, messages in expected.items():
        assert [time for time, *_ in found[topic]] == [time for time, _ in messages]
        if hasattr(messages[0][1], "header"):
            stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for _, m in messages]
            assert [(stamp, seq) for _, stamp, seq, _ in found[topic]] == list(zip(stamps, range(10**6), strict=False))
    field = expected["/mag"][-1][1].magnetic_field
    assert f"x: {field.x!r}\n" in found["/mag"][-1][3]


@pytest.mark.requirement("REC-1:bag")
def test_rosbag_info_lists_every_topic(recording: Path) -> None:
    find_ros1()
    command = ["/usr/bin/rosbag", "info", "--yaml", str(recording / "run.bag")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    listed = {line.split()[-1] for line in ran.stdout.splitlines() if "topic:" in line}
    assert listed == set(read_messages(recording / "run.bag", complete=True))
    assert "indexed: True" in ran.stdout


TABLES = {
    MessageDialect.UUV: {
        "/dvl/dvl": "uuv_sensor_ros_plugins_msgs/DVL",
        "/dvl/dvl_twist": "geometry_msgs/TwistWithCovarianceStamped",
        "/dvl/dvl/state": "std_msgs/Bool",
        **{f"/dvl/dvl_sonar{i}": "sensor_msgs/Range" for i in range(4)},
    },
    MessageDialect.DSROS: {
        "/dvl/dvl": "ds_sensor_msgs/Dvl",
        "/dvl/ranges": "ds_sensor_msgs/Ranges3D",
        "/dvl/dvl_cloud": "sensor_msgs/PointCloud",
    },
    MessageDialect.OWN: {"/dvl/dvl": "marine_acoustic_msgs/Dvl"},
    MessageDialect.GZ: {"/dvl/dvl": "marine_acoustic_msgs/Dvl"},
}
"""Topics of the two DVL plug-ins from their documentation, and navsense's."""


def make_doppler_world(dialect: MessageDialect) -> World:
    """Return a world with a DVL of a dialect, with the four ranges of the UUV Simulator."""
    sheet = dataclasses.replace(
        Dvl.example_spec(), dialect=dialect, message_options=DvlMessageOptions(ranges_topic="/dvl/ranges")
    )
    sonars = [(f"sonar{i}", Range.example_spec()) for i in range(4 if dialect is MessageDialect.UUV else 0)]
    world = example_world(("dvl", sheet), *sonars)
    topics = {"robot::arm::dvl": "/dvl/dvl", **{f"robot::arm::sonar{i}": f"/dvl/dvl_sonar{i}" for i in range(4)}}
    return dataclasses.replace(
        world, sensors=tuple(dataclasses.replace(sensor, topic=topics[sensor.name]) for sensor in world.sensors)
    )


@pytest.fixture(scope="module", params=list(MessageDialect))
def dive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[MessageDialect, Path]:
    """Return a dialect and the folder with its recording in three formats."""
    folder = tmp_path_factory.mktemp("dives")
    outputs = [folder / "dive.bag", folder / "dive.db3", folder / "dive.mcap"]
    summary = ns.record(make_doppler_world(request.param), outputs, 0.4, seed=5, epoch=1000, ros="humble")
    assert summary.paths == (outputs[0], folder / "dive" / "dive.db3", outputs[2])
    return request.param, folder


@pytest.mark.requirement("DVU-4", "DVW-5", "REC-1:bag")
def test_doppler_messages_are_in_both_bags_with_ros_md5_sums(dive: tuple[MessageDialect, Path]) -> None:
    dialect, folder = dive
    sums = dict(line.split(",")[:2] for line in ORACLES.read_text(encoding="utf-8").splitlines()[1:])
    noetic = get_typestore(Stores.ROS1_NOETIC)
    expected = read_raw_messages(folder / "dive.mcap")
    with Reader1(folder / "dive.bag") as reader:
        found = {connection.topic: connection for connection in reader.connections}
    for topic, kind in TABLES[dialect].items():
        full = kind.replace("/", "/msg/")
        assert found[topic].msgtype == full
        known = sums[full] if full in sums else noetic.generate_msgdef(full, ros_version=1)[1]
        assert found[topic].digest == known
        assert found[topic].msgcount == len(expected[topic]) > 0
    assert set(found) == {*expected, METADATA_TOPIC}
    old, new = read_messages(folder / "dive.bag"), read_messages(folder / "dive" / "dive.db3")
    for topic in TABLES[dialect]:
        assert [(t, to_plain(one)) for t, one in old[topic]] == [(t, to_plain(one)) for t, one in new[topic]]
    with Reader2(folder / "dive") as reader:
        hashes = {connection.topic: connection.digest for connection in reader.connections}
    assert all(value.startswith("RIHS01_") for value in hashes.values())


@pytest.mark.requirement("DVU-4", "DVW-5", "REC-1:bag")
def test_ros1_lists_the_documented_topics(dive: tuple[MessageDialect, Path]) -> None:
    dialect, folder = dive
    kinds, found = read_with_ros1(folder / "dive.bag")
    for topic, kind in TABLES[dialect].items():
        assert kinds[topic] == [kind, len(found[topic])]
        assert kinds[topic][1] > 0


KINDS = (AirPressure, Altimeter, Depth, Imu, Magnetometer, NavSat, Range)


@pytest.mark.requirement("REC-1:bag", "ALT-4", "PRS-1", "NAV-1")
def test_every_sensor_is_in_both_bags_saved_and_streamed(tmp_path: Path) -> None:
    world = example_world(*((kind.type, kind.example_spec()) for kind in KINDS))
    outputs = [tmp_path / "streamed.bag", tmp_path / "streamed.db3", tmp_path / "run.mcap"]
    ns.record(world, outputs, 1.0, seed=5, epoch=1000, ros="humble")
    expected = read_raw_messages(outputs[2])
    old, new = read_messages(outputs[0]), read_messages(recordings.get_data_path(outputs[1]))
    assert {topic: len(rows) for topic, rows in old.items()} == {topic: len(rows) for topic, rows in expected.items()}
    for topic, messages in new.items():
        assert [(t, to_plain(one)) for t, one in old[topic]] == [(t, to_plain(one)) for t, one in messages]
    run = ns.simulate(world, 1.0, seed=5, epoch=1000)
    for suffix in SUFFIXES:
        run.save(tmp_path / f"saved{suffix}", ros="humble")
    assert (tmp_path / "saved.bag").read_bytes() == outputs[0].read_bytes()
    with Reader2(tmp_path / "saved") as reader:
        saved = [(connection.topic, time, bytes(data)) for connection, time, data in reader.messages()]
    assert Counter(saved) == Counter((topic, time, data) for topic, rows in expected.items() for time, data in rows)


@pytest.mark.requirement("REC-1:bag")
def test_bag_time_includes_the_latency(builders: ModuleType, tmp_path: Path) -> None:
    world = example_world(("imu", Imu.example_spec()))
    late = dataclasses.replace(world.sensors[0], latency=Latency(fixed=0.2, mean=0.05, stddev=0.02))
    world = dataclasses.replace(world, sensors=(late,))
    ns.record(world, [tmp_path / "run.bag", tmp_path / "run.db3"], 1.0, seed=5, epoch=1000)
    part = ns.simulate(world, 1.0, seed=5, epoch=1000)["robot::arm::imu"]
    arrival = 1000 * 10**9 + np.rint(part.arrival * 1e9).astype(np.int64)
    for path in (tmp_path / "run.bag", tmp_path / "run" / "run.db3"):
        times = [
            time for time, _ in read_messages(path)[late.topic if late.topic.startswith("/") else "/" + late.topic]
        ]
        assert times == sorted(arrival[part.emitted].tolist())
    assert part.arrival[part.emitted].min() > 0.2


@pytest.mark.requirement("REC-1:bag")
def test_ros1_bag_may_begin_at_epoch_0(builders: ModuleType, tmp_path: Path) -> None:
    """Readers of ROS 1 reject the time 0: messages at 0 are recorded at 1 ns, and their stamps stay 0."""
    time_slice = builders.make_time_slice(0)
    time_slice.readings[builders.IMU].clock_error[:] = 0.0
    for name in ("run.bag", "run.db3"):
        with recordings.open_writer(
            tmp_path / name, recordings.RecordedRun(builders.make_world(), duration=1.0)
        ) as writer:
            writer.write(time_slice)
    old, new = read_messages(tmp_path / "run.bag"), read_messages(tmp_path / "run" / "run.db3")
    assert old.keys() - {"/navsense/recording"} == new.keys()
    assert all(len(old[topic]) == len(new[topic]) for topic in new)
    with Reader1(tmp_path / "run.bag") as bag:
        assert bag.start_time == 1
    assert old["/imu"][0][1].header.stamp.sec == 0
    assert convert(tmp_path / "run.db3", tmp_path / "again.bag").count == sum(map(len, new.values()))


@pytest.mark.requirement("REC-1:bag")
def test_clock_with_a_known_negative_offset_fails_before_the_run(builders: ModuleType, tmp_path: Path) -> None:
    world = builders.make_world()
    behind = dataclasses.replace(world.clocks[0], noise=Noise(mean=-2.0), oscillator=None, discipline=None)
    world = dataclasses.replace(world, clocks=(behind, *world.clocks[1:]))
    with pytest.raises(RecordingError, match=rf"run\.bag.*{behind.name}.*: -1.*must not be below 0.*later --epoch"):
        recordings.open_writer(tmp_path / "run.bag", recordings.RecordedRun(world, epoch=1))
    assert not list(tmp_path.iterdir())
    recordings.open_writer(tmp_path / "run.bag", recordings.RecordedRun(world, epoch=2)).abort()


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("names", [("run.bag", "run.mcap", "run.npz"), ("run.npz", "run.mcap", "run.bag")])
def test_negative_stamp_in_a_bag_does_not_end_the_other_outputs(
    tmp_path: Path, names: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    world = ns.load(str(Path(__file__).resolve().parents[2] / "examples" / "quadrotor.sdf"))
    with pytest.raises(RecordingError, match=r"run\.bag: stamp of clock .*autopilot.*must not be below 0"):
        ns.record(world, [tmp_path / name for name in names], 70.0)
    (warning,) = (record.getMessage() for record in caplog.records if "continues" in record.getMessage())
    assert warning.endswith("; the run continues with the other outputs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.mcap", "run.npz"]
    for name in ("run.mcap", "run.npz"):
        assert ns.open(tmp_path / name)["imu"].time[-1] > 69.9
    with pytest.raises(RecordingError, match=r"alone\.bag: stamp"):
        ns.record(world, tmp_path / "alone.bag", 1.0)


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("error", [-1.5, -1.000000001])
def test_negative_stamp_in_a_ros1_bag_is_an_error(builders: ModuleType, tmp_path: Path, error: float) -> None:
    time_slice = builders.make_time_slice(1, 0)
    time_slice.readings[builders.IMU].clock_error[0] = error - 1.0
    path = tmp_path / "run.bag"
    writer = recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), epoch=1, duration=2.0))
    writer.write(dataclasses.replace(builders.make_time_slice(0, 1)))
    shifted = dataclasses.replace(time_slice.readings[builders.IMU], epoch=1)
    with pytest.raises(RecordingError, match=rf"run\.bag.*rov::base::clock.*{error + 1.0:g}.*--epoch"):
        writer.write(dataclasses.replace(time_slice, readings={builders.IMU: shifted}, truth={}))
    writer.close()
    assert len(read_messages(path)["/imu"]) == 100


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_stamp_out_of_range_keeps_earlier_slices(builders: ModuleType, tmp_path: Path, suffix: str) -> None:
    time_slice = builders.make_time_slice(1, EPOCH)
    time_slice.readings[builders.IMU].clock_error[3] = 1e10
    path = tmp_path / f"run{suffix}"
    head = recordings.RecordedRun(builders.make_world(), epoch=EPOCH)
    with (  # noqa: PT012 - the second write fails
        pytest.raises(RecordingError, match=r"rov::base::clock.*--epoch"),
        recordings.open_writer(path, head) as writer,
    ):
        writer.write(builders.make_time_slice(0, EPOCH))
        writer.write(time_slice)
    found = read_messages(recordings.get_data_path(path))
    assert {topic: len(found[topic]) for topic in ("/imu", "/mag", "/clock")} == {"/imu": 100, "/mag": 10, "/clock": 50}


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_error_in_another_output_keeps_earlier_slices(builders: ModuleType, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    head = recordings.RecordedRun(builders.make_world(), epoch=EPOCH)
    file = write(builders, path, 1)
    before = file.read_bytes()
    with pytest.raises(RuntimeError, match="elsewhere"), recordings.open_writer(path, head):
        raise RuntimeError("elsewhere")
    assert file.read_bytes() == before  # nothing was written
    with pytest.raises(RuntimeError, match="elsewhere"), recordings.open_writer(path, head) as writer:  # noqa: PT012 - it is raised around the writer
        writer.write(builders.make_time_slice(0, EPOCH))
        writer.write(builders.make_time_slice(1, EPOCH))
        raise RuntimeError("elsewhere")
    assert len(read_messages(file)["/imu"]) == 200
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(RecordingError, match="already failed"):
        writer.write(builders.make_time_slice(0))


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_aborted_recording_leaves_no_file(builders: ModuleType, tmp_path: Path, suffix: str) -> None:
    writer = recordings.open_writer(
        tmp_path / f"run{suffix}", recordings.RecordedRun(builders.make_world(), epoch=EPOCH)
    )
    writer.write(builders.make_time_slice(0, EPOCH))
    assert len(list(tmp_path.iterdir())) == 1
    writer.abort()
    writer.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_interrupt_within_a_slice_leaves_complete_slices(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, suffix: str
) -> None:
    calls, original = [], rosbag_writer.PendingBag._write

    def write_and_interrupt(bag: rosbag_writer.PendingBag, blocks: Any) -> None:
        calls.append(1)
        if len(calls) == 4:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        original(bag, blocks)

    monkeypatch.setattr(rosbag_writer.PendingBag, "_write", write_and_interrupt)
    path = tmp_path / f"run{suffix}"
    writer = recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), epoch=EPOCH, duration=9.0))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with pytest.raises(KeyboardInterrupt), writer:  # noqa: PT012 - which write is interrupted is open
        for second in range(9):
            writer.write(builders.make_time_slice(second, EPOCH))
    found = read_messages(recordings.get_data_path(path))
    seconds, rest = divmod(len(found["/imu"]), 100)
    assert (rest, len(found["/mag"]), len(found["/truth/rov"])) == (0, 10 * seconds, 50 * seconds)
    assert seconds in (3, 4)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_interrupt_on_open_leaves_no_file(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, suffix: str
) -> None:
    held, original = threading.Event(), rosbag_writer.PendingBag._write

    def write_and_interrupt(bag: rosbag_writer.PendingBag, blocks: Any) -> None:
        main = threading.main_thread().ident or 0
        signal.pthread_kill(main, signal.SIGINT)
        # Repeat until it is handled: Python may miss a signal just before it waits, until the next one.
        while not held.wait(0.05):
            signal.pthread_kill(main, signal.SIGUSR1)
        original(bag, blocks)

    monkeypatch.setattr(rosbag_writer.PendingBag, "_write", write_and_interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    waking = signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
    request.addfinalizer(lambda: signal.signal(signal.SIGUSR1, waking))
    request.addfinalizer(held.set)
    threads = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        recordings.open_writer(tmp_path / f"run{suffix}", recordings.RecordedRun(builders.make_world(), epoch=EPOCH))
    held.set()
    for thread in set(threading.enumerate()) - threads:
        thread.join(60.0)
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("REC-1:bag")
def test_sqlite_errors_have_remedies(builders: ModuleType, tmp_path: Path) -> None:
    for code, words in ((sqlite3.SQLITE_FULL, "no space left"), (sqlite3.SQLITE_READONLY, "read-only")):
        error = sqlite3.OperationalError("said by SQLite")
        error.sqlite_errorcode = code
        with pytest.raises(OSError, match="said by SQLite") as caught, rosbag_writer.map_sqlite_errors():
            raise error
        assert words in str(make_os_error(tmp_path, OSError(caught.value.errno, os.strerror(caught.value.errno))))
    with pytest.raises(OSError, match="another"), rosbag_writer.map_sqlite_errors():
        raise sqlite3.ProgrammingError("another")


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_memory_does_not_grow_with_the_recording(builders: ModuleType, tmp_path: Path, suffix: str) -> None:
    def measure_peak(seconds: int) -> int:
        tracemalloc.start()
        with recordings.open_writer(
            tmp_path / f"run{suffix}", recordings.RecordedRun(builders.make_world(), EPOCH, 7, float(seconds))
        ) as writer:
            for second in range(seconds):
                writer.write(builders.make_time_slice(second, EPOCH))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    measure_peak(2)
    # 30 time slices more are 19 000 messages, of which rosbags would keep 2.5 MB. Only index entries stay in memory.
    assert measure_peak(40) - measure_peak(10) < 400_000


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_unwritable_paths_are_errors(builders: ModuleType, tmp_path: Path, suffix: str) -> None:
    head = recordings.RecordedRun(builders.make_world(), epoch=EPOCH)
    (tmp_path / f"dir{suffix}").mkdir()
    with pytest.raises(RecordingError, match=r"is a directory.*name a file"):
        recordings.open_writer(tmp_path / f"dir{suffix}", head)
    with pytest.raises(RecordingError, match=r"does not exist.*create it"):
        recordings.open_writer(tmp_path / "none" / f"run{suffix}", head)
    with pytest.raises(RecordingError):
        recordings.open_writer(tmp_path / ("x" * 300 + suffix), head)
    with pytest.raises(RecordingError, match=r"a recording in \.(bag|db3) holds one run.*\.npz"):
        recordings.open_writer(tmp_path / f"run{suffix}", dataclasses.replace(head, runs=(0, 1)))
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(RecordingError, match="permission"):
            recordings.open_writer(tmp_path / "locked" / f"run{suffix}", head)
    assert not (tmp_path / f"run{suffix}").exists()


@pytest.mark.requirement("REC-1:bag")
def test_ros2_bag_replaces_only_a_ros2_bag(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "dive.db3"
    (tmp_path / "dive").mkdir()
    file = write(builders, path, 1)  # an empty folder can be used
    first = file.read_bytes()
    (tmp_path / "dive" / "notes.txt").write_text("mine")
    for _ in range(2):
        with pytest.raises(RecordingError, match=r"dive\.db3.*folder of this name, which is something else.*dive"):
            recordings.find_output_format(path)
    assert file.read_bytes() == first
    (tmp_path / "dive" / "notes.txt").unlink()
    writer = recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), epoch=EPOCH))
    (tmp_path / "dive" / "notes.txt").write_text("mine, in the meantime")
    with pytest.raises(RecordingError, match="something else"):
        writer.close()
    assert file.read_bytes() == first
    (tmp_path / "dive" / "notes.txt").unlink()
    write(builders, path, 2)
    assert len(read_messages(file)["/imu"]) == 200
    (tmp_path / "swim").write_text("a file")
    with pytest.raises(RecordingError, match="something else"):
        recordings.open_writer(tmp_path / "swim.db3", recordings.RecordedRun(builders.make_world(), epoch=EPOCH))
    assert sorted(part.name for part in tmp_path.iterdir()) == ["dive", "swim"]


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("name", ["run#1.db3", "50%.db3", "what?.db3"])
def test_names_with_a_special_meaning_in_sqlite(builders: ModuleType, tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match=r"SQLite.*another name"):
        recordings.open_writer(tmp_path / name, recordings.RecordedRun(builders.make_world(), epoch=EPOCH))
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("REC-1:bag")
def test_two_pose_types_and_custom_topics(builders: ModuleType, tmp_path: Path) -> None:
    world = builders.make_world()
    other = dataclasses.replace(world.models[1], static=False, motion=builders.UnusedMotion())
    world = dataclasses.replace(world, models=(world.models[0], other))
    time_slice = builders.make_time_slice(0, EPOCH)
    time_slice = dataclasses.replace(
        time_slice, truth={**time_slice.truth, "dock::pier": builders.make_truth("dock::pier", 0, 20, EPOCH)}
    )
    for suffix in SUFFIXES:
        with recordings.open_writer(
            tmp_path / f"run{suffix}", recordings.RecordedRun(world, epoch=EPOCH, duration=1.0)
        ) as writer:
            writer.write(time_slice)
        found = read_messages(recordings.get_data_path(tmp_path / f"run{suffix}"))
        frames = Counter(t.child_frame_id for _, value in found["/tf"] for t in value.transforms)
        assert frames == {"rov::base": 50, "dock::pier": 20}


@pytest.mark.requirement("REC-1:bag")
def test_dropped_samples_have_no_message(builders: ModuleType, tmp_path: Path) -> None:
    time_slice = builders.make_time_slice(0, EPOCH)
    time_slice.readings[builders.MAG].emitted[:] = False
    time_slice.readings[builders.IMU].emitted[3] = False
    for suffix in SUFFIXES:
        with recordings.open_writer(
            tmp_path / f"run{suffix}",
            recordings.RecordedRun(builders.make_world(), epoch=EPOCH, has_simulated_series=False),
        ) as writer:
            writer.write(time_slice)
        found = read_summary(tmp_path / f"run{suffix}")
        counts = {entry.name: entry.count for entry in found.entries}
        assert counts == {"/imu": 99, "/mag": 0, "/clock": 50, "/tf": 50, "/tf_static": 1}


@pytest.mark.parametrize(("where", "name"), [(".", "run"), (".", "run.db3"), (".", "run/run.db3"), ("run", "run.db3")])
def test_info_of_a_ros2_bag_by_any_path(
    recording: Path, monkeypatch: pytest.MonkeyPatch, where: str, name: str
) -> None:
    monkeypatch.chdir(recording / where)
    assert read_summary(name).entries == read_summary(recording / "run").entries


@pytest.mark.requirement("REC-1:bag")
def test_info_of_bags(recording: Path, tmp_path: Path) -> None:
    expected = read_summary(recording / "run.mcap")
    for path in ("run.bag", "run.db3", "run", "run/run.db3"):
        found = read_summary(recording / path)
        assert found.entries == expected.entries
        assert (found.start, found.end) == (expected.start, expected.end)
        assert found.format == ("ROS 1 bag" if path == "run.bag" else "ROS 2 bag")
        assert found.size > 100_000
        ros = "noetic" if path == "run.bag" else "jazzy"
        assert dict(found.metadata) == {**expected.metadata, "ros": ros}
        assert f"{3 * 530 + 1} messages from {EPOCH} s" in found.headline
    complete = (recording / "run.bag").read_bytes()
    (tmp_path / "empty.bag").touch()
    with pytest.raises(RecordingError, match=r"empty\.bag: is not a ROS 1 bag; must start with #ROSBAG; copy it again"):
        read_summary(tmp_path / "empty.bag")
    for size in (10, 5000, len(complete) // 2, len(complete) - 10):
        (tmp_path / "cut.bag").write_bytes(complete[:size])
        with pytest.raises(
            RecordingError, match=r"cut\.bag: cannot be read: .*[^.]; recover it with: navsense recover .*cut\.bag"
        ):
            read_summary(tmp_path / "cut.bag")
    (tmp_path / "bad.db3").write_bytes(b"no database")
    with pytest.raises(RecordingError, match=r"bad\.db3: cannot be read"):
        read_summary(tmp_path / "bad.db3")
    for name in ("none.bag", "none.db3"):
        with pytest.raises(RecordingError, match="check the name"):
            read_summary(tmp_path / name)
    (tmp_path / "bag").mkdir()
    (tmp_path / "bag" / "metadata.yaml").write_text("- nothing")
    with pytest.raises(RecordingError, match="cannot be read"):
        read_summary(tmp_path / "bag")
    assert len(ns.open(recording / "run.bag")["rov::base::imu"].time) == 100 * SECONDS


@pytest.mark.requirement("REC-1:bag")
def test_command_line_writes_and_describes_bags(tmp_path: Path) -> None:
    world = Path(__file__).resolve().parents[2] / "examples" / "quadrotor.sdf"
    command = [sys.executable, "-m", "navsense"]
    outputs = ["-o", str(tmp_path / "run.bag"), "-o", str(tmp_path / "run.db3")]
    ran = subprocess.run(
        [*command, "run", str(world), "--duration", "0.2", "--epoch", "100", *outputs],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert f"wrote {tmp_path / 'run.bag'}: 0.2 s simulated" in ran.stdout
    assert f"wrote {tmp_path / 'run' / 'run.db3'}: 0.2 s simulated" in ran.stdout
    for name, form in (("run.bag", "ROS 1 bag"), ("run.db3", "ROS 2 bag")):
        looked = subprocess.run([*command, "info", str(tmp_path / name)], capture_output=True, text=True, check=False)
        assert looked.returncode == 0, looked.stderr
        assert form in looked.stdout
        assert "sensor_msgs/msg/Imu" in looked.stdout
    result = subprocess.run(
        [*command, "run", str(world), "--duration", "0.2", *outputs], capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "--epoch" in result.stderr


def test_definitions_in_a_bag_are_parsed(recording: Path) -> None:
    with Reader1(recording / "run.bag") as reader:
        assert METADATA_TOPIC in {connection.topic for connection in reader.connections}
        for connection in reader.connections:
            store = get_typestore(Stores.EMPTY)
            store.register(get_types_from_msg(connection.msgdef.data, connection.msgtype))
            assert store.generate_msgdef(connection.msgtype, ros_version=1)[1] == connection.digest
