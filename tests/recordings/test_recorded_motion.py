"""Motions from pose topics of recordings that rosbags writes, and what recordings store about a motion from a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag1 import Writer as OldWriter
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense import cli
from navsense.core.errors import MotionError, SimulationError
from navsense.motion import Replay, VelocityCommands
from navsense.motion.derived import get_source
from navsense.recordings.convert import convert
from navsense.recordings.recorded_motion import load_motion
from navsense.recordings.summary import read_summary

START, COUNT, PERIOD = 1_700_000_000, 20, 0.1
TIME = np.arange(COUNT) * PERIOD
POSITION = np.column_stack((0.3 * TIME, np.sin(TIME), 0.1 * TIME**2))
ROTATION = Rotation.from_euler("ZYX", np.column_stack((0.4 * TIME, 0.1 * TIME, -0.2 * TIME)))
TYPES = {
    "/odom": "nav_msgs/msg/Odometry",
    "/amcl_pose": "geometry_msgs/msg/PoseWithCovarianceStamped",
    "/vicon": "geometry_msgs/msg/PoseStamped",
    "/tf": "tf2_msgs/msg/TFMessage",
}
COMMANDS = {"/cmd_vel": "geometry_msgs/msg/TwistStamped"}


class PoseWriter:
    """Makes messages with the poses of the test."""

    def __init__(self, *, is_old: bool) -> None:
        self.is_old = is_old
        self.store = get_typestore(Stores.ROS1_NOETIC if is_old else Stores.ROS2_JAZZY)
        if is_old:
            self.store.register(
                get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf2_msgs/msg/TFMessage")
            )
        self.types: Any = self.store.types

    def make(self, kind: str, k: int, offset: float) -> Any:
        """Return message `k` of a type; its position is `offset` m off the track."""
        types = self.types
        seconds, nanoseconds = divmod(round(TIME[k] * 1e9), 1_000_000_000)
        stamp = types["builtin_interfaces/msg/Time"](sec=START + seconds, nanosec=nanoseconds)
        header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="odom", **({"seq": 0} if self.is_old else {}))
        x, y, z = (POSITION[k] + offset).tolist()
        turn = types["geometry_msgs/msg/Quaternion"](*ROTATION[k].as_quat().tolist())
        pose = types["geometry_msgs/msg/Pose"](types["geometry_msgs/msg/Point"](x, y, z), turn)
        if kind == "geometry_msgs/msg/PoseStamped":
            return types[kind](header, pose)
        with_pose = types["geometry_msgs/msg/PoseWithCovariance"](pose, np.zeros(36))
        if kind == "geometry_msgs/msg/PoseWithCovarianceStamped":
            return types[kind](header, with_pose)
        vector = types["geometry_msgs/msg/Vector3"]
        if kind == "geometry_msgs/msg/TwistStamped":
            return types[kind](header, types["geometry_msgs/msg/Twist"](vector(0.3, 0.0, 0.0), vector(0.0, 0.0, 0.1)))
        if kind == "nav_msgs/msg/Odometry":
            still = types["geometry_msgs/msg/Twist"](vector(0.0, 0.0, 0.0), vector(0.0, 0.0, 0.0))
            with_twist = types["geometry_msgs/msg/TwistWithCovariance"](still, np.zeros(36))
            return types[kind](header, "base_link", with_pose, with_twist)
        inner = types["geometry_msgs/msg/Transform"](vector(x, y, z), turn)
        moving = types["geometry_msgs/msg/TransformStamped"](header, "base_link", inner)
        still = types["geometry_msgs/msg/TransformStamped"](
            header, "wheel", types["geometry_msgs/msg/Transform"](vector(0.0, 0.0, 0.0), turn)
        )
        # As in real bags: several transforms in one message, in a changing order and number.
        return types[kind]([[moving], [still, moving], [moving, still]][k % 3])


ALL_MESSAGES = tuple((k, 0.0) for k in range(COUNT))


def write_bag(
    path: Path, topics: dict[str, float], messages: Sequence[tuple[int, float]] = ALL_MESSAGES, text: str = ""
) -> Path:
    """Write a bag in the format of the suffix and return it.

    topics: with their offsets from the track (m).
    messages: numbers of the messages in order, each with another offset (m).
    text: of a message of the topic /words, if it is not empty.
    """
    writer = PoseWriter(is_old=path.suffix == ".bag")
    storage = StoragePlugin.MCAP if path.suffix == ".mcap" else StoragePlugin.SQLITE3
    folder = path.with_suffix("")
    bag = OldWriter(path) if writer.is_old else Writer(folder, version=9, storage_plugin=storage)
    with bag:
        for topic, offset in topics.items():
            kind = (TYPES | COMMANDS)[topic]
            connection: Any = bag.add_connection(topic, kind, typestore=writer.store)
            encode = writer.store.serialize_ros1 if writer.is_old else writer.store.serialize_cdr
            for row, (k, more) in enumerate(messages):
                log_time = START * 10**9 + round(0.01 * row * 1e9) + 7
                bag.write(connection, log_time, encode(writer.make(kind, k, offset + more), kind))
        if text:
            kind = "std_msgs/msg/String"
            words = bag.add_connection("/words", kind, typestore=writer.store)
            message = writer.types[kind](text)
            data = (writer.store.serialize_ros1 if writer.is_old else writer.store.serialize_cdr)(message, kind)
            bag.write(words, START * 10**9, data)
    return path if writer.is_old else folder / f"{folder.name}{path.suffix}"


@pytest.fixture(scope="module", params=[".mcap", ".db3", ".bag"])
def bag(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    offsets = {topic: float(number) for number, topic in enumerate(TYPES)}
    return write_bag(tmp_path_factory.mktemp("bags") / f"drive{request.param}", offsets)


def assert_on_track(motion: Any, offset: float) -> None:
    """Assert that a motion has the poses of the test at its rows."""
    assert isinstance(motion, Replay)
    block = motion.at(motion.trajectory.knots)
    np.testing.assert_allclose(motion.trajectory.knots, TIME, atol=1e-9, rtol=0.0)
    np.testing.assert_allclose(block.position_w, POSITION + offset, atol=1e-12, rtol=0.0)
    difference = Rotation.from_quat(block.rotation_wb, scalar_first=True) * ROTATION.inv()
    assert difference.magnitude().max() < 1e-12


@pytest.mark.requirement("TRU-1")
@pytest.mark.parametrize(
    ("query", "offset"),
    [
        ("?topic=/odom", 0.0),
        (":/odom", 0.0),
        ("?topic=odom&frame=base_link", 0.0),
        ("?topic=%2Fodom&type=nav_msgs/msg/Odometry", 0.0),
        ("?type=geometry_msgs/msg/PoseWithCovarianceStamped", 1.0),
        ("?topic=/vicon", 2.0),
        ("?topic=/tf&frame=base_link", 3.0),
    ],
)
def test_pose_topics_of_other_programs_are_motions(bag: Path, query: str, offset: float) -> None:
    motion = load_motion(f"{bag}{query}")
    assert_on_track(motion, offset)
    source = get_source(motion)
    assert source is not None
    assert (source.file, source.series.startswith("/"), source.bandwidth) == (bag.name, True, None)


def test_topic_of_poses_has_priority_over_transforms(tmp_path: Path) -> None:
    assert_on_track(load_motion(write_bag(tmp_path / "a.mcap", {"/tf": 1.0, "/odom": 5.0})), 5.0)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "3 topics that a motion could be; must be one of /odom, /amcl_pose, /vicon; write .*/odom"),
        ("?topic=/cmd_vel", "poses: /cmd_vel; must be one of /odom, /amcl_pose, /vicon, /tf"),
        ("?topic=/tf", r"frame that moves; must be one of base_link \(in odom\), wheel \(in odom\); write \?topic="),
        ("?topic=/tf&frame=arm", r"frame that moves: arm; must be one of base_link \(in odom\)"),
        ("?topic=/odom&frame=arm", "frame of /odom: arm; is base_link"),
        ("?topic=/vicon&frame=arm", "frame of /vicon: arm; geometry_msgs/msg/PoseStamped has no name of its frame"),
        (
            "?topic=/odom&speed=2",
            "query of .*; must be topic=TOPIC&link=LINK&type=TYPE&frame=FRAME&bandwidth=BANDWIDTH",
        ),
        ("?topic=", "query of .*: topic=; must be"),
        ("?topic=/odom&topic=/tf", "each at most once"),
        ("?topic=/odom&bandwidth=fast", r"bandwidth of .* \(Hz\): fast; must be a number above 0"),
        ("?topic=/odom&bandwidth=9", r"bandwidth \(Hz\): 9.0; .* half the log's rate"),
    ],
)
def test_ambiguous_or_invalid_query_is_an_error(bag: Path, query: str, message: str) -> None:
    with pytest.raises(MotionError, match=message):
        load_motion(f"{bag}{query}")


@pytest.mark.parametrize("topic", ["/odom", "/tf"])
def test_messages_are_sorted_and_the_last_of_one_time_counts(tmp_path: Path, topic: str) -> None:
    """Real odometry has messages that arrive late, and repeated stamps."""
    messages = [(0, 0.0), (2, 0.0), (1, 0.0), (3, 9.0), (3, 0.0), *ALL_MESSAGES[4:]]
    query, name = ("", topic) if topic == "/odom" else ("?topic=/tf&frame=base_link", "/tf, frame base_link")
    motion = load_motion(f"{write_bag(tmp_path / 'a.mcap', {topic: 0.0}, messages)}{query}")
    assert_on_track(motion, 0.0)
    assert isinstance(motion, Replay)
    assert motion.notes == (
        f"{name}: 1 message sorted by time: earlier than the one before",
        f"{name}: of messages of one time, the last one counts: 1 not read",
    )


def test_velocities_in_a_frame_of_the_world_have_a_note(tmp_path: Path) -> None:
    store, path = get_typestore(Stores.ROS2_JAZZY), tmp_path / "drive"
    types: Any = store.types
    kind = "geometry_msgs/msg/TwistStamped"
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        for frame in ("map", "base_link"):
            connection = bag.add_connection(f"/{frame}/cmd_vel", kind, typestore=store)
            for k in range(3):
                stamp = types["builtin_interfaces/msg/Time"](sec=START + k, nanosec=0)
                header = types["std_msgs/msg/Header"](stamp=stamp, frame_id=frame)
                vector = types["geometry_msgs/msg/Vector3"]
                twist = types["geometry_msgs/msg/Twist"](vector(1.0, 0.0, 0.0), vector(0.0, 0.0, 0.0))
                bag.write(connection, k, store.serialize_cdr(types[kind](header, twist), kind))
    one, other = (load_motion(f"{path}?topic=/{frame}/cmd_vel") for frame in ("map", "base_link"))
    assert isinstance(one, VelocityCommands)
    assert isinstance(other, VelocityCommands)
    assert one.notes == (
        "/map/cmd_vel: the velocities have the frame map; they are read as those in the frame of the body",
    )
    assert other.notes == ()
    with pytest.raises(MotionError, match="frame of /map/cmd_vel: base_link; is map"):
        load_motion(f"{path}?topic=/map/cmd_vel&frame=base_link")


def test_pose_that_is_not_finite_is_an_error_with_its_topic(tmp_path: Path) -> None:
    messages = [*ALL_MESSAGES[:7], (7, np.nan), *ALL_MESSAGES[8:]]
    path = write_bag(tmp_path / "a.bag", {"/odom": 0.0}, messages)
    with pytest.raises(MotionError, match=r"a\.bag: /odom: x of row 7: nan; must be finite"):
        load_motion(path)


@pytest.mark.parametrize(
    ("topics", "query", "message"),
    [
        (
            {},
            "",
            r"no poses that a motion could be; needs a topic of a type of .*; the recording has /words \(std_msgs",
        ),
        ({}, "?topic=/words", "type of /words: std_msgs/msg/String; must be one of geometry_msgs/msg/PoseStamped, "),
        ({"/odom": 0.0}, "?topic=words", "type of /words: std_msgs/msg/String; must be one of"),
        (
            {"/odom": 0.0},
            "?topic=/odom&type=geometry_msgs/msg/PoseStamped",
            "type: geometry_msgs/msg/PoseStamped; /odom has the type nav_msgs/msg/Odometry; omit type=",
        ),
        ({"/odom": 0.0}, "?type=tf2_msgs/msg/TFMessage", "no topic of the type tf2_msgs/msg/TFMessage; needs a topic"),
    ],
)
def test_recording_without_such_a_topic_is_an_error_with_its_topics(
    tmp_path: Path, topics: dict[str, float], query: str, message: str
) -> None:
    path = write_bag(tmp_path / "a.mcap", topics, text="hello")
    with pytest.raises(MotionError, match=message):
        load_motion(f"{path}{query}")


def test_topic_of_a_bag_that_is_a_folder_is_named_after_a_colon(tmp_path: Path) -> None:
    path = write_bag(tmp_path / "drive.db3", {"/odom": 0.0, "/vicon": 2.0})
    assert_on_track(load_motion(f"{path.parent}:/vicon"), 2.0)


@pytest.mark.parametrize("suffix", [".bag", ".mcap", ".npz"])
def test_stamp_zero_is_the_start_of_a_simulation(tmp_path: Path, suffix: str) -> None:
    """The log time of a ROS 1 bag is 1 ns or later, so it must not replace the stamp 0."""
    world = ns.world.World("w", (ns.world.Model("auv", (ns.world.Link("auv::base"),), "auv::base"),))
    line = ns.motion.waypoints([0.0, 1.0], [ns.Pose(), ns.Pose((1.0, 0.0, 0.0))])
    path = tmp_path / f"run{suffix}"
    ns.simulate(world, 1.0, motion=line, truth_rate=10.0).save(path)
    motion = load_motion(path)
    assert isinstance(motion, Replay)
    np.testing.assert_allclose(motion.trajectory.knots, np.arange(10) * 0.1, atol=1e-15, rtol=0.0)


def test_query_of_a_table_is_an_error(tmp_path: Path) -> None:
    log = write_log(tmp_path, 0.0)
    assert get_bandwidth(load_motion(f"{log}?bandwidth=0.5")) == 0.5
    with pytest.raises(MotionError, match=r"selects a part of a recording, but this file is a motion log"):
        load_motion(f"{log}?topic=/odom")
    with pytest.raises(MotionError, match=r"0\.5; is given twice; omit one"):
        load_motion(f"{log}?bandwidth=0.5", bandwidth=1.0)


def write_log(folder: Path, noise: float) -> Path:
    """Write a log at 10 Hz with white noise (m) and return its path."""
    rows = np.random.default_rng(5).normal(0.0, noise, (200, 3)) + np.arange(200)[:, None] * 0.1
    text = [f"{0.1 * k!r},{x!r},{y!r},{z!r},1,0,0,0" for k, (x, y, z) in enumerate(rows.tolist())]
    path = folder / "dive.csv"
    path.write_text("\n".join(["time,x,y,z,qw,qx,qy,qz", *text]), encoding="utf-8")
    return path


def get_bandwidth(motion: Any) -> float | None:
    """Return the bandwidth of a motion log."""
    assert isinstance(motion, Replay)
    return motion.bandwidth


WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="sea">
  <model name="auv"><link name="base">
    <sensor name="imu" type="imu"><update_rate>20</update_rate></sensor>
  </link>{}</model>
</world></sdf>"""


@pytest.fixture
def navsense(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the command in this process and returns its code and output."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["navsense", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        output = capsys.readouterr()
        return code, output.out, output.err

    return run


def test_noisy_log_has_a_warning_that_names_the_remedy(
    tmp_path: Path, navsense: Callable[..., tuple[int, str, str]]
) -> None:
    world, log = tmp_path / "w.sdf", write_log(tmp_path, 0.02)
    world.write_text(WORLD.format(""), encoding="utf-8")
    code, _, err = navsense("run", world, "--motion", log, "--duration", 5)
    assert code == 0
    warning = next(line for line in err.splitlines() if line.startswith("warning: "))
    assert "m/s^2 of noise in its acceleration; smooth it with --bandwidth " in warning
    assert "<navsense:motion bandwidth=" in warning
    bandwidth = warning.split("--bandwidth ")[1].split(",")[0]
    code, _, err = navsense("run", world, "--motion", log, "--bandwidth", bandwidth, "--duration", 5)
    assert code == 0
    assert "warning" not in err
    assert f"smoothed at {bandwidth} Hz" in err
    replay = load_motion(log, bandwidth=float(bandwidth))
    assert isinstance(replay, Replay)
    assert 0.0 < replay.acceleration_noise <= 0.1
    world.write_text(WORLD.format('<navsense:motion file="dive.csv"/>'), encoding="utf-8")
    code, out, _ = navsense("check", world)
    assert code == 0
    assert f"--bandwidth {bandwidth}" in out


@pytest.mark.parametrize("suffix", [".mcap", ".npz", ".csv", ".db3"])
def test_recording_stores_the_log_and_its_bandwidth(
    tmp_path: Path, navsense: Callable[..., tuple[int, str, str]], suffix: str
) -> None:
    """The file, the bandwidth and the world file determine the run, whatever way the bandwidth is given."""
    world, log = tmp_path / "w.sdf", write_log(tmp_path, 0.02)
    world.write_text(WORLD.format(""), encoding="utf-8")
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    arguments = ("--duration", 5, "--seed", 7)
    assert navsense("run", world, "--motion", log, "--bandwidth", "auv=0.4", *arguments, "-o", first)[0] == 0
    recorded = ns.open(first).world.model("auv").motion
    source = get_source(recorded)
    assert source is not None
    assert (source.file, source.series, source.bandwidth) == ("dive.csv", "", 0.4)
    assert read_summary(first).metadata["motions"] == json.dumps(["auv follows dive.csv smoothed at 0.4 Hz"])
    code, out, _ = navsense("info", first)
    assert code == 0
    assert "auv follows dive.csv smoothed at 0.4 Hz" in " ".join(out.split())
    world.write_text(WORLD.format('<navsense:motion file="dive.csv" bandwidth="0.4"/>'), encoding="utf-8")
    assert navsense("run", world, *arguments, "-o", second)[0] == 0
    one, two = ns.open(first), ns.open(second)
    np.testing.assert_array_equal(one["imu"]["linear_acceleration"], two["imu"]["linear_acceleration"])
    assert get_source(two.world.model("auv").motion) == source
    back = convert(first, tmp_path / f"c{'.npz' if suffix != '.npz' else '.mcap'}").path
    assert get_source(ns.open(back).world.model("auv").motion) == source


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bandwidth", "2"], "bandwidth: 2.0; needs the motion that it smooths; in a world file: <navsense:motion"),
        (["--motion", "LOG", "--bandwidth", "fast"], "--bandwidth (Hz): fast; must be a frequency above 0"),
        (["--motion", "LOG", "--bandwidth", "-1"], "--bandwidth (Hz): -1; must be a frequency above 0"),
        (
            ["--motion", "LOG", "--bandwidth", "1", "--bandwidth", "2"],
            "--bandwidth (Hz): 1, 2; must be given once: it applies to all models; omit the others, or write MODEL",
        ),
        (["--motion", "LOG", "--bandwidth", "rov=1"], "bandwidth of model: rov; must be one of auv"),
        (["--motion", "LOG", "--bandwidth", "7"], "dive.csv: bandwidth (Hz): 7.0; must be >= "),
    ],
)
def test_invalid_bandwidth_is_an_error(
    tmp_path: Path, navsense: Callable[..., tuple[int, str, str]], options: list[str], message: str
) -> None:
    world, log = tmp_path / "w.sdf", write_log(tmp_path, 0.02)
    world.write_text(WORLD.format(""), encoding="utf-8")
    code, _, err = navsense("run", world, *(str(log) if option == "LOG" else option for option in options))
    assert code == 2
    assert message in err


def test_bandwidth_of_a_motion_that_is_no_file_is_an_error() -> None:
    from navsense.runner.motion_sources import load_motions

    world = ns.testing.example_world(("imu", ns.sensors.Imu()))
    with pytest.raises(SimulationError, match="needs a motion file"):
        load_motions(world, ns.motion.Stationary(), 2.0)


@pytest.mark.parametrize("topic", ["/vicon", "/cmd_vel"])
def test_messages_before_the_clock_are_not_read(tmp_path: Path, topic: str) -> None:
    """A publisher that starts before its clock writes the stamp 0."""
    path = write_bag(tmp_path / "drive.mcap", {topic: 0.0})
    data = path.read_bytes()
    first = (START).to_bytes(4, "little") + (0).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"odom"
    assert data.count(first) == 1
    path.write_bytes(data.replace(first, bytes(8) + first[8:]))
    motion = load_motion(f"{path}?topic={topic}")
    assert isinstance(motion, Replay | VelocityCommands)
    assert motion.end == pytest.approx(TIME[-1] - TIME[1], rel=0.0, abs=1e-9)
    assert f"{topic}: 1 message not read: the stamp is 0, and the others are Unix time" in motion.notes


@pytest.mark.parametrize("suffix", [".mcap", ".npz", ".csv", ".euroc"])
def test_a_run_of_a_recorded_world_needs_the_motions_of_its_models(tmp_path: Path, suffix: str) -> None:
    """The world of a recording does not have them, and a model that stands still has other readings."""
    file = tmp_path / "sea.sdf"
    file.write_text(
        '<sdf version="1.9"><world name="sea"><model name="auv"><link name="base"><sensor name="imu" type="imu">'
        "<update_rate>10</update_rate></sensor></link></model></world></sdf>"
    )
    line = ns.motion.waypoints([0.0, 2.0], [ns.Pose(), ns.Pose((1.0, 0.0, 0.0))])
    (path,) = ns.record(ns.load(file), tmp_path / f"run{suffix}", motion=line).paths
    recorded = ns.open(path).world
    (model,) = recorded.models
    message = f"motion of model: {model.name}; moved in the recording, whose world does not have its motion; "
    with pytest.raises(SimulationError, match=message):
        ns.simulate(recorded, 1.0)
    with pytest.raises(SimulationError, match=message):
        ns.live(recorded)
    assert ns.simulate(recorded, 1.0, motion=line).truth[model.canonical_link].velocity[50, 0] > 0.0
    assert ns.live(recorded, driven=[model.name]).step({model.name: ns.State()}).time == 0.0
