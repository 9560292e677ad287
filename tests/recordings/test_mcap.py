"""MCAP recordings are read by two other programs."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense import recordings
from navsense.core.errors import RecordingError
from navsense.recordings.mcap import records
from navsense.recordings.mcap import writer as mcap_writer
from navsense.recordings.mcap.writer import McapWriter

EPOCH = 1_700_000_000
SECONDS = 3
QUADROTOR = Path(__file__).resolve().parents[2] / "examples" / "quadrotor.sdf"


@pytest.fixture(scope="module")
def recording(builders: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcap") / "run.mcap"
    with recordings.open_writer(
        path, recordings.RecordedRun(builders.make_world(), epoch=EPOCH, seed=7, duration=float(SECONDS))
    ) as writer:
        for second in range(SECONDS):
            writer.write(builders.make_time_slice(second, EPOCH))
    return path


def decode(path: Path) -> dict[str, list[tuple[Any, Any, Any]]]:
    """Return (channel, message, decoded) by topic, as the mcap packages read a file with checksums."""
    found: dict[str, list[tuple[Any, Any, Any]]] = {}
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()], validate_crcs=True)
        for _, channel, message, value in reader.iter_decoded_messages():
            found.setdefault(channel.topic, []).append((channel, message, value))
    return found


def list_xyz(part: Any) -> list[float]:
    return [part.x, part.y, part.z]


def list_wxyz(part: Any) -> list[float]:
    return [part.w, part.x, part.y, part.z]


def to_nanoseconds(stamp: Any) -> int:
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def make_slices(builders: ModuleType) -> list[Any]:
    return [builders.make_time_slice(second, EPOCH) for second in range(SECONDS)]


@pytest.mark.requirement("REC-1:mcap")
def test_every_topic_has_all_its_messages(builders: ModuleType, recording: Path) -> None:
    counts = Counter({topic: len(rows) for topic, rows in decode(recording).items()})
    poses = ("/truth/rov", "/truth/rov/accel", "/clock", "/tf")
    expected = dict.fromkeys(poses, 50 * SECONDS)
    expected |= dict.fromkeys(("/imu", "/imu/ideal", "/imu/bias"), 100 * SECONDS)
    expected |= dict.fromkeys(("/mag", "/mag/ideal", "/mag/bias"), 10 * SECONDS)
    assert counts == expected | {"/tf_static": 1}
    with AnyReader([recording]) as reader:
        assert Counter(connection.topic for connection, _, _ in reader.messages()) == counts


@pytest.mark.requirement("CLK-5")
@pytest.mark.parametrize("by_rosbags", [False, True])
def test_both_times_are_recorded_with_every_reading(builders: ModuleType, recording: Path, by_rosbags: bool) -> None:
    stamps: dict[str, list[int]] = {}
    if by_rosbags:
        with AnyReader([recording]) as reader:
            for connection, _, raw in reader.messages():
                value = reader.deserialize(raw, connection.msgtype)
                if hasattr(value, "header"):
                    stamps.setdefault(connection.topic, []).append(to_nanoseconds(value.header.stamp))
    else:
        for topic, rows in decode(recording).items():
            if hasattr(rows[0][2], "header"):
                stamps[topic] = [to_nanoseconds(value.header.stamp) for _, _, value in rows]
    for name, topic in ((builders.IMU, "/imu"), (builders.MAG, "/mag")):
        expected = np.concatenate([time_slice.readings[name].stamp for time_slice in make_slices(builders)])
        for part in ("", "/ideal", "/bias"):
            assert stamps[topic + part] == expected.tolist()
        true = np.concatenate([time_slice.readings[name].true_stamp for time_slice in make_slices(builders)]).tolist()
        messages = [message for _, message, _ in decode(recording)[topic]]
        assert [message.publish_time for message in messages] == true
        assert [message.log_time for message in messages] == true
        assert true != expected.tolist()
        assert [message.sequence for message in messages] == list(range(len(true)))
    for link in ("/truth/rov", "/truth/rov/accel"):
        assert (
            stamps[link] == np.concatenate([s.truth[builders.LINKS[0]].stamp for s in make_slices(builders)]).tolist()
        )


@pytest.mark.requirement("TRU-1", "MAG-5")
@pytest.mark.parametrize("part", ["measured", "ideal", "bias"])
def test_readings_truth_and_biases_round_trip_bitwise(builders: ModuleType, recording: Path, part: str) -> None:
    topics = decode(recording)
    suffix = "" if part == "measured" else "/" + part
    attribute = {"measured": "arrays", "ideal": "ideal", "bias": "bias"}[part]

    def expected(name: str, key: str) -> list[list[float]]:
        rows = [getattr(time_slice.readings[name], attribute)[key] for time_slice in make_slices(builders)]
        return np.concatenate(rows).tolist()  # type: ignore[no-any-return]

    imu = [value for _, _, value in topics["/imu" + suffix]]
    assert [list_xyz(v.angular_velocity) for v in imu] == expected(builders.IMU, "angular_velocity")
    assert [list_xyz(v.linear_acceleration) for v in imu] == expected(builders.IMU, "linear_acceleration")
    if part == "bias":
        assert all(list_wxyz(v.orientation) == [1.0, 0.0, 0.0, 0.0] for v in imu)
        assert all(v.orientation_covariance[0] == -1.0 for v in imu)
    else:
        assert [list_wxyz(v.orientation) for v in imu] == expected(builders.IMU, "orientation")
        assert all(not any(v.orientation_covariance) for v in imu)
    field = [value for _, _, value in topics["/mag" + suffix]]
    assert [list_xyz(v.magnetic_field) for v in field] == expected(builders.MAG, "field")
    assert {v.header.frame_id for v in field} == {"mag_frame"}
    assert {v.header.frame_id for v in imu} == {builders.IMU}
    diagonal = list(imu[0].angular_velocity_covariance)[::4] + list(imu[0].linear_acceleration_covariance)[::4]
    assert diagonal == ([0.0625, 0.0625, 0.0625, 0.25, 0.0, 0.0] if part == "measured" else [0.0] * 6)
    assert list(field[0].magnetic_field_covariance) == [0.0625 if part == "measured" else 0.0] + [0.0] * 8


@pytest.mark.requirement("TRU-1")
def test_truth_round_trips_in_ros_frames(builders: ModuleType, recording: Path) -> None:
    topics = decode(recording)
    parts = [time_slice.truth["rov::base"] for time_slice in make_slices(builders)]
    poses = [value for _, _, value in topics["/truth/rov"]]
    assert [list_xyz(v.pose.pose.position) for v in poses] == np.concatenate([p.position for p in parts]).tolist()
    assert [list_wxyz(v.pose.pose.orientation) for v in poses] == np.concatenate(
        [p.orientation for p in parts]
    ).tolist()
    rates = np.concatenate([p.angular_velocity for p in parts]).tolist()
    assert [list_xyz(v.twist.twist.angular) for v in poses] == rates
    assert {(v.header.frame_id, v.child_frame_id) for v in poses} == {("world", "rov::base")}
    accels = [value for _, _, value in topics["/truth/rov/accel"]]
    assert {v.header.frame_id for v in accels} == {"rov::base"}
    turns = np.concatenate([p.angular_acceleration for p in parts]).tolist()
    assert [list_xyz(v.accel.angular) for v in accels] == turns


@pytest.mark.requirement("TRU-1")
def test_static_links_have_one_latched_message(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    pier = builders.make_truth("dock::pier", 0, 50)
    with recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=2.0)) as writer:
        for second in range(2):
            time_slice = builders.make_time_slice(second)
            writer.write(dataclasses.replace(time_slice, truth={**time_slice.truth, "dock::pier": pier}))
    topics = decode(path)
    for topic in ("/truth/dock", "/truth/dock/accel"):
        ((channel, message, _),) = topics[topic]
        assert "durability: 1" in channel.metadata["offered_qos_profiles"]
        assert (message.log_time, message.publish_time) == (0, 0)
    ((_, _, pose),) = topics["/truth/dock"]
    assert list_xyz(pose.pose.pose.position) == pier.position[0].tolist()
    assert not [topic for topic in topics if topic.startswith("/truth/rov/arm")]
    assert len(topics["/truth/rov"]) == 100


@pytest.mark.requirement("TRU-1")
def test_truth_of_a_fixed_link_equals_the_model_with_its_static_transform(tmp_path: Path) -> None:
    """p + R r, v + R (w x r), a + R (w' x r + w x (w x r)) from the recording equal the truth in memory."""
    path = tmp_path / "run.mcap"
    run = ns.simulate(ns.load(QUADROTOR), 0.5, seed=3)
    run.save(path)
    topics = decode(path)
    model = run.session.world.models[0]
    fixed = {t.child_frame_id: t for t in topics["/tf_static"][0][2].transforms}
    name = next(link.name for link in model.links if link.name.endswith("rotor_0"))
    assert fixed[name].header.frame_id == model.canonical_link
    arm = np.array(list_xyz(fixed[name].transform.translation))
    expected = run.truth[name]
    rows = zip(topics[f"/truth/{model.name}"], topics[f"/truth/{model.name}/accel"], strict=True)
    found = []
    for (_, _, pose), (_, _, accel) in rows:
        turn = Rotation.from_quat([*list_wxyz(pose.pose.pose.orientation)[1:], pose.pose.pose.orientation.w])
        rate, change = np.array(list_xyz(pose.twist.twist.angular)), np.array(list_xyz(accel.accel.angular))
        moved = turn.apply(np.array(list_xyz(pose.twist.twist.linear)) + np.cross(rate, arm))
        pushed = np.array(list_xyz(accel.accel.linear)) + np.cross(change, arm) + np.cross(rate, np.cross(rate, arm))
        found.append([np.array(list_xyz(pose.pose.pose.position)) + turn.apply(arm), moved, turn.apply(pushed)])
    places, velocities, accelerations = np.array(found).swapaxes(0, 1)
    np.testing.assert_allclose(places, expected.position, rtol=0, atol=1e-12)
    np.testing.assert_allclose(velocities, expected.velocity, rtol=0, atol=1e-12)
    np.testing.assert_allclose(accelerations, expected.acceleration, rtol=0, atol=1e-11)


@pytest.mark.requirement("DVU-6")
def test_transforms_of_every_link_and_sensor(builders: ModuleType, recording: Path) -> None:
    topics = decode(recording)
    channel, _, value = topics["/tf_static"][0]
    assert "durability: 1" in channel.metadata["offered_qos_profiles"]
    static = {t.child_frame_id: (t.header.frame_id, list_xyz(t.transform.translation)) for t in value.transforms}
    assert static == {
        "rov::arm::tip": ("rov::base", [0.9, 2.0, 2.8]),
        "dock::pier": ("world", [5.0, 6.0, 7.0]),
        builders.IMU: ("rov::base", [0.0, 0.0, 0.1]),
        builders.MAG: ("rov::base", [0.0, 0.0, 0.0]),
        "mag_frame": ("rov::base", [0.0, 0.0, 0.0]),
    }
    truth = [time_slice.truth["rov::base"] for time_slice in make_slices(builders)]
    moving = [v.transforms[0] for _, _, v in topics["/tf"]]
    assert {(t.header.frame_id, t.child_frame_id) for t in moving} == {("world", "rov::base")}
    assert [list_xyz(t.transform.translation) for t in moving] == np.concatenate([t.position for t in truth]).tolist()
    assert [list_wxyz(t.transform.rotation) for t in moving] == np.concatenate([t.orientation for t in truth]).tolist()
    times = np.concatenate([t.stamp for t in truth]).tolist()
    assert [to_nanoseconds(t.header.stamp) for t in moving] == times
    assert [to_nanoseconds(v.clock) for _, _, v in topics["/clock"]] == times


def test_dropped_samples_have_no_message_and_invalid_ones_are_nan(builders: ModuleType, tmp_path: Path) -> None:
    time_slice = builders.make_time_slice(0)
    reading = time_slice.readings[builders.MAG]
    reading.emitted[[0, 4, 9]] = False
    reading.valid[5] = False
    reading.arrays["field"][5] = np.nan
    path = tmp_path / "run.mcap"
    with recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=1.0)) as writer:
        writer.write(time_slice)
    topics = decode(path)
    kept = [1, 2, 3, 5, 6, 7, 8]
    for suffix in ("", "/ideal", "/bias"):
        assert [m.publish_time for _, m, _ in topics["/mag" + suffix]] == reading.true_stamp[kept].tolist()
    got = np.array([list_xyz(v.magnetic_field) for _, _, v in topics["/mag"]])
    assert got.tobytes() == reading.arrays["field"][kept].tobytes()


def test_without_truth_only_readings_clock_and_transforms_are_written(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    with recordings.open_writer(
        path, recordings.RecordedRun(builders.make_world(), duration=1.0, has_simulated_series=False)
    ) as writer:
        writer.write(builders.make_time_slice(0))
    assert set(decode(path)) == {"/imu", "/mag", "/clock", "/tf", "/tf_static"}


def test_chunks_are_bounded_and_ordered_in_time(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcap_writer, "CHUNK_BYTES", 20_000)
    path = tmp_path / "run.mcap"
    with McapWriter(path, recordings.RecordedRun(builders.make_world(), duration=3.0)) as writer:
        for second in range(3):
            writer.write(builders.make_time_slice(second))
    with path.open("rb") as file:
        chunks = make_reader(file, validate_crcs=True).get_summary().chunk_indexes  # type: ignore[union-attr]
    assert len(chunks) > 10
    assert {chunk.compression for chunk in chunks} == {"lz4"}
    assert all(chunk.uncompressed_size <= 20_000 for chunk in chunks[2:])
    assert all(a.message_end_time < b.message_start_time for a, b in pairwise(chunks[1:]))
    assert len(decode(path)["/imu"]) == 300


def test_truth_at_other_times_and_duplicate_topics(builders: ModuleType, tmp_path: Path) -> None:
    world = builders.make_world()
    other = dataclasses.replace(world.models[1], static=False, motion=builders.UnusedMotion())
    sensors = tuple(dataclasses.replace(sensor, topic="/same") for sensor in world.sensors)
    world = dataclasses.replace(world, models=(world.models[0], other), sensors=sensors)
    time_slice = builders.make_time_slice(0)
    time_slice = dataclasses.replace(
        time_slice, truth={**time_slice.truth, "dock::pier": builders.make_truth("dock::pier", 0, 20)}
    )
    path = tmp_path / "run.mcap"
    with recordings.open_writer(path, recordings.RecordedRun(world, duration=1.0)) as writer:
        writer.write(time_slice)
    topics = decode(path)
    frames = Counter(t.child_frame_id for _, _, value in topics["/tf"] for t in value.transforms)
    assert frames == {"rov::base": 50, "dock::pier": 20}
    assert len(topics["/clock"]) == 50
    assert len(topics["/same"]) == 100
    assert len(topics["/rov/base/mag"]) == 10


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epoch": -1}, ("true time", "--epoch")),
        ({"epoch": 2**31 - 2, "duration": 3.0}, ("true time", "--epoch")),
        ({"runs": range(4)}, ("one run", ".npz")),
    ],
)
def test_unsupported_content_is_an_error(
    builders: ModuleType, tmp_path: Path, change: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(RecordingError) as error:
        recordings.open_writer(tmp_path / "run.mcap", recordings.RecordedRun(builders.make_world(), **change))
    assert all(word in str(error.value) for word in words)
    assert not list(tmp_path.iterdir())


def test_stamp_out_of_range_names_the_clock_and_leaves_a_complete_file(builders: ModuleType, tmp_path: Path) -> None:
    time_slice = builders.make_time_slice(1)
    time_slice.readings[builders.IMU].clock_error[3] = 1e10
    path = tmp_path / "run.mcap"
    writer = recordings.open_writer(path, recordings.RecordedRun(builders.make_world()))
    writer.write(builders.make_time_slice(0))
    with pytest.raises(RecordingError, match=r"rov::base::clock.*--epoch"):
        writer.write(time_slice)
    writer.abort()
    assert len(decode(path)["/imu"]) == 100


@pytest.mark.requirement("REC-1:mcap")
def test_failed_chunk_is_removed(builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcap_writer, "WRITE_BYTES", 1)
    path, late = tmp_path / "run.mcap", builders.make_time_slice(1)
    # It fits into 64 bits but not into a message: the error comes after the earlier messages are written.
    late.readings[builders.MAG].clock_error[3] = 2.2e9
    writer = recordings.open_writer(path, recordings.RecordedRun(builders.make_world()))
    writer.write(builders.make_time_slice(0))
    complete = path.read_bytes()
    with pytest.raises(RecordingError, match=r"true time.*--epoch"):
        writer.write(late)
    assert path.read_bytes() == complete
    writer.write(builders.make_time_slice(2))
    writer.close()
    topics = decode(path)
    assert [len(topics[name]) for name in ("/imu", "/mag", "/clock")] == [200, 20, 100]


@pytest.mark.requirement("REC-1:mcap")
def test_message_index_is_sorted_for_out_of_order_messages(builders: ModuleType, tmp_path: Path) -> None:
    path, time_slice = tmp_path / "run.mcap", builders.make_time_slice(0)
    late = time_slice.readings[builders.MAG].time + 0.01
    late[[2, 7, 9]] += [5.0, -0.3, 2.0]
    time_slice.readings[builders.MAG] = dataclasses.replace(
        time_slice.readings[builders.MAG], arrival_after_latency=late
    )
    with recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=1.0)) as writer:
        writer.write(time_slice)
    with path.open("rb") as file:
        raws = list(records.read_records(file, len(records.MAGIC), path.stat().st_size))
        chunks = make_reader(file, validate_crcs=True).get_summary().chunk_indexes  # type: ignore[union-attr]
    tables = [np.frombuffer(raw.body[6:], "<u8").reshape(-1, 2) for raw in raws if raw.opcode == records.MESSAGE_INDEX]
    assert all((table[1:, 0] >= table[:-1, 0]).all() for table in tables)
    expected = sorted(np.rint(late * 1e9).astype(int).tolist())
    assert expected in [table[:, 0].tolist() for table in tables]
    assert chunks[-1].message_end_time == 5_210_000_000
    assert [m.log_time for _, m, _ in decode(path)["/mag"]] == expected


def test_file_does_not_depend_on_write_block_size(
    builders: ModuleType, tmp_path: Path, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcap_writer, "WRITE_BYTES", 1)
    path = tmp_path / "run.mcap"
    with recordings.open_writer(
        path, recordings.RecordedRun(builders.make_world(), epoch=EPOCH, seed=7, duration=float(SECONDS))
    ) as writer:
        for second in range(SECONDS):
            writer.write(builders.make_time_slice(second, EPOCH))
    assert path.read_bytes() == recording.read_bytes()


@pytest.mark.parametrize("name", ["run.txt", "run", "run.bag2"])
def test_unknown_suffix_error_lists_the_known_suffixes(builders: ModuleType, tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match=r"\.mcap, \.npz"):
        recordings.open_writer(tmp_path / name, recordings.RecordedRun(builders.make_world()))


@pytest.mark.parametrize("suffix", [".mcap", ".npz"])
def test_unwritable_paths_are_errors(builders: ModuleType, tmp_path: Path, suffix: str) -> None:
    recording = recordings.RecordedRun(builders.make_world())
    (tmp_path / f"dir{suffix}").mkdir()
    with pytest.raises(RecordingError, match=r"is a directory.*name a file"):
        recordings.open_writer(tmp_path / f"dir{suffix}", recording)
    with pytest.raises(RecordingError, match=r"does not exist.*create it"):
        recordings.open_writer(tmp_path / "none" / f"run{suffix}", recording)
    with pytest.raises(RecordingError):
        recordings.open_writer(tmp_path / ("x" * 300 + suffix), recording)
    if os.geteuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        with pytest.raises(RecordingError, match="permission"):
            recordings.open_writer(locked / f"run{suffix}", recording)
