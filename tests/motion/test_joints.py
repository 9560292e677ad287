"""Joints that follow a log move the links below them: closed forms, finite differences, recordings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense.cli import cli
from navsense.core.errors import MotionError, SimulationError
from navsense.core.pose import Pose, from_rpy
from navsense.motion import JointTrack, joint_positions
from navsense.motion.base import LogSource
from navsense.recordings.joint_log import load_joint_log
from navsense.recordings.static_transforms import list_static_transforms
from navsense.recordings.summary import read_summary
from navsense.simulation.motions import replace_joint_tracks
from navsense.world import Joint, Link, Model, World

Array = NDArray[np.float64]

GRAVITY = 9.8
"""m/s^2, the default of SDF's world."""

END, RATE = 4.0, 200.0
TIME = np.linspace(0.0, END, 8001)
"""Times of the logs: the spline of such a dense log has an acceleration error below 1e-6 of the amplitude."""

JOINT = (
    '<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>'
    "<pose>{pose}</pose><axis>{axis}</axis></joint>"
)


def make_joint(name: str, parent: str, child: str, axis: str, kind: str = "revolute", pose: str = "0 0 0 0 0 0") -> str:
    return JOINT.format(
        name=name, kind=kind, parent=parent, child=child, pose=pose, axis=axis if "<" in axis else f"<xyz>{axis}</xyz>"
    )


def load_world(folder: Path, content: str, *, rate: float = RATE) -> World:
    """Return the world of a robot with an IMU in the link `tool`."""
    path = folder / "arm.sdf"
    content = content.replace("<imu/>", f'<sensor name="imu" type="imu"><update_rate>{rate}</update_rate></sensor>')
    path.write_text(f'<sdf version="1.11"><world name="w"><model name="arm">{content}</model></world></sdf>')
    return ns.load(path)


LINKS = (
    '<link name="base"/><link name="upper"><pose>0 0 0.5 0 0 0</pose></link>'
    '<link name="tool"><pose>0.9 0 0.5 0 0 0</pose><imu/></link>'
)


def swing(time: Array) -> tuple[Array, Array, Array]:
    """Return an angle of 0.7 sin(2 t) rad and its derivatives."""
    return 0.7 * np.sin(2.0 * time), 1.4 * np.cos(2.0 * time), -2.8 * np.sin(2.0 * time)


@pytest.mark.requirement("IMU-2")
def test_an_imu_on_a_revolute_joint_feels_centripetal_and_tangential_acceleration(tmp_path: Path) -> None:
    """About the vertical: -omega^2 r along the arm, alpha r across it, gravity up; the gyroscope measures omega."""
    fixed = make_joint("mount", "base", "upper", "0 0 1", "fixed")
    elbow = make_joint("elbow", "upper", "tool", "0 0 3", pose="-0.9 0 0 0 0 0")
    world = load_world(tmp_path, LINKS + fixed + elbow)
    run = ns.simulate(world, joints=joint_positions(TIME, {"elbow": swing(TIME)[0]}), seed=7)
    reading = run["imu"]
    assert run.session.duration == END
    _, omega, alpha = swing(reading.time)
    force = reading.ideal["linear_acceleration"]
    np.testing.assert_allclose(force[:, 0], -0.9 * omega**2, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(force[:, 1], 0.9 * alpha, rtol=0.0, atol=1e-5)
    np.testing.assert_allclose(force[:, 2], GRAVITY, rtol=0.0, atol=1e-12)
    expected = np.column_stack((0.0 * omega, 0.0 * omega, omega))
    np.testing.assert_allclose(reading.ideal["angular_velocity"], expected, rtol=0.0, atol=1e-7)


def test_a_pendulum_turns_gravity_in_the_frame_of_the_imu(tmp_path: Path) -> None:
    """About the y axis by theta: the accelerometer reads R^T g up, and the centripetal and tangential acceleration."""
    world = load_world(tmp_path, LINKS + make_joint("elbow", "base", "tool", "0 1 0", pose="-0.9 0 0 0 0 0"))
    reading = ns.simulate(world, joints=joint_positions(TIME, {"elbow": swing(TIME)[0]}))["imu"]
    theta, omega, alpha = swing(reading.time)
    force = reading.ideal["linear_acceleration"]
    np.testing.assert_allclose(force[:, 0], -0.9 * omega**2 - GRAVITY * np.sin(theta), rtol=0.0, atol=1e-5)
    np.testing.assert_allclose(force[:, 2], -0.9 * alpha + GRAVITY * np.cos(theta), rtol=0.0, atol=1e-5)
    np.testing.assert_allclose(force[:, 1], 0.0, rtol=0.0, atol=1e-12)


@pytest.mark.requirement("IMU-2")
def test_a_slide_on_a_turntable_feels_the_coriolis_acceleration(tmp_path: Path) -> None:
    """At r = 0.2 + 0.3 t on a table with omega = 1.5 rad/s: -omega^2 r along the slide, 2 omega r' across it."""
    table = make_joint("table", "base", "upper", "0 0 1", "continuous")
    slide = make_joint("slide", "upper", "tool", "1 0 0", "prismatic")
    links = LINKS.replace("<pose>0.9 0 0.5 0 0 0</pose>", "<pose>0.2 0 0.5 0 0 0</pose>")
    world = load_world(tmp_path, links + table + slide)
    tracks = joint_positions(TIME[::400], {"table": 1.5 * TIME[::400], "arm::slide": 0.3 * TIME[::400]})
    reading = ns.simulate(world, joints=tracks)["imu"]
    force = reading.ideal["linear_acceleration"]
    np.testing.assert_allclose(force[:, 0], -(1.5**2) * (0.2 + 0.3 * reading.time), rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(force[:, 1], 2.0 * 1.5 * 0.3, rtol=0.0, atol=1e-8)


def make_tree(*, canonical: str = "base") -> World:
    """Return a robot of three moving joints with poses and axes in all directions."""
    links = {
        "base": Pose((0.1, 0.2, 0.3), from_rpy(0.1, 0.2, 0.3)),
        "upper": Pose((0.4, 0.1, 0.9), from_rpy(-0.4, 0.6, 0.1)),
        "lower": Pose((0.9, -0.3, 0.7), from_rpy(0.5, -0.2, 1.1)),
        "tool": Pose((1.4, 0.2, 0.1), from_rpy(0.2, 0.9, -0.7)),
    }
    axis = np.array([1.0, 2.0, -2.0]) / 3.0
    kinds = [("shoulder", "base", "upper", "revolute"), ("slide", "upper", "lower", "prismatic")]
    kinds += [("wrist", "lower", "tool", "continuous")]
    joints = tuple(
        Joint(
            f"arm::{name}",
            f"arm::{parent}",
            f"arm::{child}",
            kind,
            links[child] @ Pose((0.1, -0.2, 0.15), from_rpy(0.3, 0.1, 0.2)),
            tuple(axis),
        )
        for name, parent, child, kind in kinds
    )
    pose = Pose((1.0, 2.0, 3.0), from_rpy(0.3, -0.5, 0.7))
    model = Model(
        "arm",
        tuple(Link(f"arm::{name}", where) for name, where in links.items()),
        f"arm::{canonical}",
        pose,
        joints=joints,
    )
    return World("w", (model,))


TRACKS = {"shoulder": swing(TIME)[0], "slide": 0.3 * np.cos(3.0 * TIME), "wrist": 0.8 * TIME + 0.2 * np.sin(5.0 * TIME)}


def test_poses_are_the_product_of_the_transforms_of_the_chain() -> None:
    """T(q) = J exp(q) J^-1 of each joint, in the frame of the model at position 0, by SciPy's rotations."""
    world = make_tree()
    run = ns.simulate(world, 3.0, joints=joint_positions(TIME, TRACKS), truth_rate=10.0)
    model = world.models[0]

    def to_matrix(pose: Pose) -> Array:
        matrix = np.eye(4)
        matrix[:3, :3] = Rotation.from_quat(pose.rotation, scalar_first=True).as_matrix()
        matrix[:3, 3] = pose.position
        return matrix

    truth = run.truth["tool"]
    for row, instant in enumerate(truth.time):
        matrix = to_matrix(model.pose)
        for joint in model.joints:
            position = np.interp(instant, TIME, TRACKS[joint.name.removeprefix("arm::")])
            motion = np.eye(4)
            if joint.type == "prismatic":
                motion[:3, 3] = position * np.array(joint.axis)
            else:
                motion[:3, :3] = Rotation.from_rotvec(position * np.array(joint.axis)).as_matrix()
            frame = to_matrix(joint.pose)
            matrix = matrix @ frame @ motion @ np.linalg.inv(frame)
        matrix = matrix @ to_matrix(model.link("tool").pose)
        np.testing.assert_allclose(truth.position[row], matrix[:3, 3], rtol=0.0, atol=1e-6)
        found = Rotation.from_quat(truth.orientation[row], scalar_first=True).as_matrix()
        np.testing.assert_allclose(found, matrix[:3, :3], rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("canonical", ["base", "lower"])
def test_rates_are_the_derivatives_of_the_poses(canonical: str) -> None:
    """Central differences at 0.2 ms, on a base that drives a curve. The canonical link can be inside the chain."""
    commands = ns.motion.velocity_commands([0.0, END], [[0.4, 0.1, -0.2]] * 2, [[0.3, -0.2, 0.5]] * 2)
    rate = 5000.0
    run = ns.simulate(
        make_tree(canonical=canonical), 1.0, motion=commands, joints=joint_positions(TIME, TRACKS), truth_rate=rate
    )
    for link in ("base", "upper", "lower", "tool"):
        truth = run.truth[link]
        for values, derivative in ((truth.position, truth.velocity), (truth.velocity, truth.acceleration)):
            difference = (values[2:] - values[:-2]) * rate / 2.0
            np.testing.assert_allclose(difference, derivative[1:-1], rtol=0.0, atol=2e-5)
        rotation = Rotation.from_quat(truth.orientation, scalar_first=True)
        omega = (rotation[:-2].inv() * rotation[2:]).as_rotvec() * rate / 2.0
        np.testing.assert_allclose(omega, truth.angular_velocity[1:-1], rtol=0.0, atol=2e-5)
        alpha = (truth.angular_velocity[2:] - truth.angular_velocity[:-2]) * rate / 2.0
        np.testing.assert_allclose(alpha, truth.angular_acceleration[1:-1], rtol=0.0, atol=2e-5)


def test_links_that_no_joint_moves_keep_their_bits() -> None:
    world = make_tree()
    still = ns.simulate(world, 1.0).truth
    moved = ns.simulate(world, 1.0, joints=joint_positions(TIME, {"wrist": TRACKS["wrist"]})).truth
    for link in ("base", "upper", "lower"):
        np.testing.assert_array_equal(moved[link].position, still[link].position)
    assert not np.array_equal(moved["tool"].orientation, still["tool"].orientation)


@pytest.mark.parametrize("count", [2, 3, 12])
def test_a_track_is_the_spline_of_scipy(count: int) -> None:
    rng = np.random.default_rng(count)
    time = np.concatenate(([0.0], np.cumsum(rng.uniform(0.1, 1.0, count - 1))))
    position = rng.normal(0.0, 1.0, count)
    instants = rng.uniform(0.0, time[-1], 50)
    found, spline = JointTrack(time, position).at(instants), CubicSpline(time, position)
    for derivative in range(3):
        scale = np.abs(spline(instants, derivative)).max()
        np.testing.assert_allclose(found[:, derivative], spline(instants, derivative), rtol=0.0, atol=1e-12 * scale)


@pytest.mark.parametrize(
    ("time", "position", "message"),
    [
        ([0.0], [0.0], "number of rows of a joint: 1; must be >= 2"),
        ([0.0, 0.0], [0.0, 1.0], "time of row 1 of a joint (s): 0.0; must be after the row before, 0.0"),
        ([0.0, 1.0], [0.0, math.nan], "position of row 1 of a joint: nan; must be finite"),
        ([0.0, 1.0], [0.0], "shapes of time and position of a joint"),
        ([1.0, 2.0], [0.0, 1.0], "time of row 0 of a joint: 1.0; must be 0 or earlier"),
        ([0.0, 1.0], [1e300, -1e300], "position in row 0 of a joint: 1e+300; must be below 1e+100; correct the row"),
        ([0.0, 1e-200], [0.0, 1.0], "velocity in row 0 of a joint: 1e+200; must be below 1e+100"),
    ],
)
def test_invalid_tracks_are_errors(time: list[float], position: list[float], message: str) -> None:
    with pytest.raises(MotionError) as error:
        JointTrack(np.array(time), np.array(position))
    assert message in str(error.value)


def test_axes_are_read_in_the_frame_of_expressed_in(tmp_path: Path) -> None:
    """The joint is turned by 90 degrees about x: its z axis is -y of the model."""
    pose = "0 0 0 1.5707963267948966 0 0"
    axes = {
        "0 0 1": (0.0, 0.0, 1.0),
        '<xyz expressed_in="__model__">0 -2 0</xyz>': (0.0, 0.0, 1.0),
        "": (0.0, 0.0, 1.0),
    }
    for axis, expected in axes.items():
        world = load_world(tmp_path, LINKS + make_joint("elbow", "base", "tool", axis or "<xyz/>", pose=pose))
        joint = world.models[0].joints[0]
        np.testing.assert_allclose(joint.axis, expected, rtol=0.0, atol=1e-15)
        turned = Rotation.from_quat(joint.pose.rotation, scalar_first=True).apply(joint.axis)
        np.testing.assert_allclose(turned, (0.0, -1.0, 0.0), rtol=0.0, atol=1e-15)


def test_joints_of_urdf_have_their_axes(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="base"/><link name="tool"/><joint name="elbow" type="revolute">'
        '<origin xyz="0.1 0.2 0.3" rpy="0 0 1"/><parent link="base"/><child link="tool"/><axis xyz="0 2 0"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>'
    )
    (joint,) = ns.load(path).models[0].joints
    assert (joint.name, joint.parent, joint.child, joint.type) == ("arm::elbow", "arm::base", "arm::tool", "revolute")
    np.testing.assert_allclose(joint.pose.position, (0.1, 0.2, 0.3), rtol=0.0, atol=1e-15)
    np.testing.assert_array_equal(joint.axis, (0.0, 1.0, 0.0))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("elbo", "joint: elbo"),
        ("ball", "type of joint arm::ball: ball; must be of type revolute, continuous, prismatic to be moved"),
        ("left", "joint: arm::left; must not be in a loop of links"),
    ],
)
def test_joints_that_cannot_move_are_errors(tmp_path: Path, name: str, message: str) -> None:
    joints = make_joint("ball", "base", "tool", "0 0 1", "ball")
    joints += make_joint("left", "base", "upper", "0 0 1") + make_joint("right", "base", "upper", "0 0 1")
    with pytest.raises(SimulationError) as error:
        ns.simulate(load_world(tmp_path, LINKS + joints), 1.0, joints=joint_positions(TIME, {name: TIME}))
    assert message in str(error.value)


def test_a_run_after_the_end_of_a_track_is_an_error() -> None:
    with pytest.raises(MotionError) as error:
        ns.simulate(make_tree(), 5.0, joints=joint_positions(TIME, {"wrist": TIME}))
    assert "duration of the run against the motion of 'arm::wrist': 5.0; must be at most 4.0 s" in str(error.value)


@pytest.mark.parametrize("suffix", ["mcap", "bag", "npz", "parquet"])
def test_recordings_have_the_truth_of_moved_links(tmp_path: Path, suffix: str) -> None:
    run = ns.simulate(make_tree(), 1.0, joints=joint_positions(TIME, TRACKS))
    path = tmp_path / f"a.{suffix}"
    run.save(path)
    stored = ns.open(path)
    for link in ("base", "upper", "lower", "tool"):
        expected = run.truth[link].acceleration[0]
        np.testing.assert_allclose(stored.truth[link].acceleration[0], expected, rtol=0.0, atol=1e-14)
    np.testing.assert_array_equal(stored.truth["tool"].position, run.truth["tool"].position)
    assert stored.world.models[0].joints == run.session.world.models[0].joints
    assert [joint.track is not None for joint in stored.world.models[0].joints] == [True, True, True]


def test_a_recording_of_a_moving_robot_is_still_one_motion(tmp_path: Path) -> None:
    """The truth of moved links is recorded, but `--motion` takes that of the model."""
    line = ns.motion.velocity_commands([0.0, END], [[0.5, 0.0, 0.0]] * 2, [[0.0, 0.0, 0.2]] * 2)
    run = ns.simulate(make_tree(), 1.0, motion=line, joints=joint_positions(TIME, TRACKS))
    path = tmp_path / "a.mcap"
    run.save(path)
    again = ns.simulate(make_tree(), 0.9, motion=str(path))
    count = again.truth["base"].time.size
    np.testing.assert_allclose(again.truth["base"].position, run.truth["base"].position[:count], rtol=0.0, atol=1e-9)
    with pytest.raises(
        SimulationError, match=r"joint: arm::shoulder; moved in the recording, .*; give its log: joints="
    ):
        ns.simulate(ns.open(path).world, 1.0)
    fixed = {transform.child for transform in list_static_transforms(run.session.world)}
    assert not fixed & {"arm::upper", "arm::lower", "arm::tool"}


def write_csv(path: Path) -> None:
    rows = np.column_stack((TIME[::40] + 100.0, swing(TIME[::40])[0]))
    np.savetxt(path, rows, delimiter=",", header="time,elbow", comments="")


def test_the_command_reads_a_csv_log(tmp_path: Path) -> None:
    load_world(tmp_path, LINKS + make_joint("elbow", "base", "tool", "0 0 1", pose="-0.9 0 0 0 0 0"))
    write_csv(tmp_path / "joints.csv")
    arguments = [
        "run",
        str(tmp_path / "arm.sdf"),
        "--joints",
        str(tmp_path / "joints.csv"),
        "-o",
        str(tmp_path / "a.npz"),
    ]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert "elbow: follows --joints" in result.stderr
    assert "stationary" not in result.stderr
    assert "arm::elbow follows joints.csv" in str(read_summary(tmp_path / "a.npz"))
    (joint,) = ns.open(tmp_path / "a.npz").world.models[0].joints
    assert joint.track is not None
    assert joint.track.source == LogSource("joints.csv")
    reading = ns.open(tmp_path / "a.npz")["imu"]
    inner = slice(100, -100)  # the ends of a spline of 20 ms are less accurate
    omega = swing(reading.time)[1]
    np.testing.assert_allclose(reading.ideal["angular_velocity"][inner, 2], omega[inner], rtol=0.0, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,elbow\n0,1\n", "joints.csv:1: header of the log of joints: x,elbow; must be time,JOINT,..."),
        ("time\n0\n", "joints.csv:1: header of the log of joints: time"),
        ("time,elbow\n0,1\n1,a\n", "joints.csv:3: elbow: a; must be a finite number"),
        ("time,elbow\n0,1\n1,2,3\n", "joints.csv:3: number of columns: 3; must be 2: time,elbow"),
        ("time,elbow\n0,1\n", "joints.csv: number of rows of joint elbow: 1"),
        ("time,elbow\n0,1\n1,nan\n", "joints.csv:3: elbow of row 1: nan; must be finite"),
        ("time,elbow\n0,1\n0,2\n", "joints.csv:3: time of row 1 (s): 0.0; must be after the row before, 0.0; sort"),
        ("time,elbow\n0,1e300\n1,-1e300\n", "joints.csv: position in row 0 of joint elbow: 1e+300; must be below"),
        ("time,elbow [V]\n0,1\n1,2\n", "joints.csv:1: unit of elbow [V]: v; must be one of rad, "),
        ("", "joints.csv:1: header of the log of joints; must be time,JOINT,... with the name of each joint once; "),
        ("time,elbow\n", "joints.csv: log without rows; must hold rows of time,elbow"),
    ],
)
def test_errors_of_a_csv_log_have_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "joints.csv"
    path.write_text(text)
    with pytest.raises(MotionError) as error:
        load_joint_log(path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("time,elbow_deg", "{t},{deg}"),
        ("time;elbow [deg]", "{t};{deg}"),
        ("elbow (rad),time_ns", "{rad},{ns}"),
        ('"time";"arm::elbow"', '"{t}";"{rad}"'),
        ("# robot of 2026\n# timestamp [ns], elbow_degrees", "{ns}, {deg}"),
    ],
)
def test_units_and_delimiters_of_a_csv_log_are_those_of_motion_logs(tmp_path: Path, header: str, row: str) -> None:
    path, stamps = tmp_path / "joints.csv", np.arange(5)
    angles = 0.3 * np.sin(stamps)
    rows = (
        row.format(t=100.0 + t, ns=1_700_000_000_000_000_001 + 10**9 * t, rad=repr(float(q)), deg=repr(math.degrees(q)))
        for t, q in zip(stamps.tolist(), angles, strict=True)
    )
    path.write_text("\n".join((header, *rows)) + "\n")
    ((name, track),) = load_joint_log(path).items()
    assert name in ("elbow", "arm::elbow")
    np.testing.assert_array_equal(track.time, stamps)
    np.testing.assert_allclose(track.position, angles, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("ellbow", "joints.csv:2: joint: ellbow; must be one of arm::elbow; did you mean arm::elbow?"),
        ("elbow [m]", "joints.csv:2: unit of joint arm::elbow: m; must be rad: the joint is revolute"),
    ],
)
def test_a_column_that_no_joint_has_is_an_error_at_the_header(tmp_path: Path, column: str, message: str) -> None:
    world = load_world(tmp_path, LINKS + make_joint("elbow", "base", "tool", "0 0 1"))
    path = tmp_path / "joints.csv"
    path.write_text(f"\ntime,{column}\n0,1\n1,2\n")
    with pytest.raises(SimulationError) as error:
        ns.simulate(world, joints=path)
    assert message in str(error.value)


@pytest.fixture
def write_joint_states(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a bag of joint states with rosbags."""

    def write(*topics: str, repeated: bool = False) -> Path:
        path, store = tmp_path / "states", get_typestore(Stores.ROS2_JAZZY)
        state, header = store.types["sensor_msgs/msg/JointState"], store.types["std_msgs/msg/Header"]
        stamp = store.types["builtin_interfaces/msg/Time"]
        with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            for topic in topics:
                channel = writer.add_connection(topic, state.__msgtype__, typestore=store)
                for k, position in enumerate(swing(TIME[::40])[0]):
                    time = 1_700_000_000_000_000_000 + 20_000_000 * k
                    names, values = ["elbow", "wheel"], np.array([position, 3.0])
                    if k % 3 == 1:  # another publisher
                        names, values = ["wheel"], values[1:]
                    message = state(
                        header=header(stamp=stamp(sec=time // 10**9, nanosec=time % 10**9), frame_id=""),
                        name=names, position=values, velocity=np.zeros(0), effort=np.zeros(0),
                    )  # fmt: skip
                    data = store.serialize_cdr(message, state.__msgtype__)
                    values += 1.0  # also in the message
                    old_data = store.serialize_cdr(message, state.__msgtype__)
                    for row in [old_data, data] if repeated else [data]:
                        writer.write(channel, time + 5_000_000, row)
        return path

    return write


@pytest.mark.parametrize("repeated", [False, True])
def test_joint_states_are_read_by_name_and_stamp(write_joint_states: Callable[..., Path], *, repeated: bool) -> None:
    """The last of several messages of one time counts."""
    tracks = load_joint_log(write_joint_states("/joint_states", repeated=repeated))
    assert set(tracks) == {"elbow", "wheel"}
    kept = np.arange(201) % 3 != 1
    np.testing.assert_allclose(tracks["elbow"].time, TIME[::40][kept], rtol=0.0, atol=1e-9)
    np.testing.assert_array_equal(tracks["elbow"].position, swing(TIME[::40])[0][kept])
    np.testing.assert_array_equal(tracks["wheel"].position, np.full(201, 3.0))


def test_one_of_several_topics_of_joint_states_must_be_named(write_joint_states: Callable[..., Path]) -> None:
    path = write_joint_states("/left/joint_states", "/right/joint_states")
    with pytest.raises(
        MotionError, match="2 topics of sensor_msgs/msg/JointState; must be one of /left/joint_states, "
    ):
        load_joint_log(path)
    file = next(path.glob("*.mcap"))
    for name in (f"{file}:/left/joint_states", f"{path}:/left/joint_states", f"{path}?topic=/left/joint_states"):
        assert load_joint_log(name)["elbow"].end > 3.9
    with pytest.raises(MotionError, match=r"query of .*: frame=elbow; must be topic=TOPIC for joints"):
        load_joint_log(f"{path}?frame=elbow")


UNIX_TIME = 1_700_000_000
"""s, of a day in 2023."""


def write_states(folder: Path, messages: Sequence[tuple[float, Sequence[str], Sequence[float]]]) -> Path:
    """Write an MCAP file of joint states, each with its stamp (s), names and positions; log times follow each other."""
    store = get_typestore(Stores.ROS2_JAZZY)
    state, header = store.types["sensor_msgs/msg/JointState"], store.types["std_msgs/msg/Header"]
    stamp = store.types["builtin_interfaces/msg/Time"]
    with Writer(folder / "states", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        channel = writer.add_connection("/joint_states", state.__msgtype__, typestore=store)
        for row, (time, names, positions) in enumerate(messages):
            seconds, nanoseconds = divmod(round(time * 1e9), 10**9)
            message = state(
                header=header(stamp=stamp(sec=seconds, nanosec=nanoseconds), frame_id=""), name=list(names),
                position=np.array(positions, dtype=np.float64), velocity=np.zeros(0), effort=np.zeros(0),
            )  # fmt: skip
            writer.write(channel, UNIX_TIME * 10**9 + row, store.serialize_cdr(message, state.__msgtype__))
    return next((folder / "states").glob("*.mcap"))


def test_stamps_of_zero_before_unix_time_are_not_read(tmp_path: Path) -> None:
    """A driver that starts before its clock writes them."""
    times = [0.0, *(UNIX_TIME + 0.5 * k for k in range(4))]
    track = load_joint_log(write_states(tmp_path, [(time, ["elbow"], [0.1]) for time in times]))["elbow"]
    np.testing.assert_allclose(track.time, [0.0, 0.5, 1.0, 1.5], rtol=0.0, atol=1e-9)


def test_stamps_of_two_clocks_are_an_error(tmp_path: Path) -> None:
    times = [1.0, 2.0, UNIX_TIME + 3.0, UNIX_TIME + 4.0]
    path = write_states(tmp_path, [(time, ["elbow"], [0.1]) for time in times])
    message = (
        r"states.*: stamps of joint elbow in /joint_states \(s\): 2 and 1700000003; "
        "must all be times of a simulation, or all Unix time; "
    )
    with pytest.raises(MotionError, match=message):
        load_joint_log(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"uint32 nanosec", b"uint32 nanosex"), (b"int32 sec", b"bool  sec"), (b"[] position", b"[] positiox")],
)
def test_joint_states_of_another_definition_are_an_error(tmp_path: Path, old: bytes, new: bytes) -> None:
    path = write_states(tmp_path, [(float(k), ["elbow"], [0.1]) for k in range(3)])
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    with pytest.raises(MotionError, match=r"topic /joint_states: .* is defined otherwise than by ROS; record"):
        load_joint_log(path)


def test_joints_that_are_recorded_one_after_the_other_are_an_error(tmp_path: Path) -> None:
    names = ["elbow", "elbow", "wrist", "wrist"]
    path = write_states(tmp_path, [(k + 1.0, [name], [0.1]) for k, name in enumerate(names)])
    message = "states.*: positions of joint elbow in /joint_states; end 1 s before those of joint wrist begin; "
    with pytest.raises(MotionError, match=message):
        load_joint_log(path)


@pytest.mark.parametrize("suffix", [".mcap", ".db3", ".bag", ".npz", ".csv"])
def test_a_joint_that_moves_is_not_the_motion_of_its_model(tmp_path: Path, suffix: str) -> None:
    """The model of the recording stands still, so that the base must not follow the tool."""
    world = load_world(tmp_path, LINKS + make_joint("elbow", "base", "tool", "0 0 1"), rate=10.0)
    joints = joint_positions(np.array([0.0, 1.0]), {"elbow": np.array([0.0, 1.0])})
    (path,) = ns.record(world, tmp_path / f"arm{suffix}", joints=joints).paths
    with pytest.raises(MotionError) as error:
        ns.simulate(world, motion=path)
    remedy = f"for the motion of a link, write {path}?link=arm::tool"
    assert str(error.value) == f"{path}: no model that moves; needs the true poses of a link that moves; {remedy}"
    truth = ns.simulate(world, motion=f"{path}?link=arm::tool").truth["arm::base"]
    np.testing.assert_allclose(truth.position[0], (0.9, 0.0, 0.5), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(("kind", "limit"), [("continuous", "1"), ("revolute", "inf"), ("revolute", "6")])
def test_positions_that_are_wrapped_to_one_turn_are_unwrapped(tmp_path: Path, kind: str, limit: str) -> None:
    """A wheel at 3 rad/s, as drivers publish it, from -pi to pi. A joint with limits cannot turn on."""
    axis = f"<xyz>0 0 1</xyz><limit><lower>-{limit}</lower><upper>{limit}</upper></limit>"
    world = load_world(tmp_path, LINKS + make_joint("wheel", "base", "tool", axis, kind), rate=10.0)
    time = np.arange(0.0, 4.0, 0.01)
    tracks = joint_positions(time, {"wheel": (3.0 * time + np.pi) % (2.0 * np.pi) - np.pi})
    robot = replace_joint_tracks(world, tracks)
    track = robot.models[0].joints[0].track
    assert track is not None
    rates = track.at(time)[:, 1]
    if limit == "6":
        assert np.abs(rates).max() > 100.0
        return
    np.testing.assert_allclose(rates, 3.0, rtol=0.0, atol=1e-9)
    assert track.notes == ("positions are wrapped to one turn: 2 steps above half a turn unwrapped",)
    fast = joint_positions(time[:5], {"wheel": 4.0 * np.arange(5.0)})
    unchanged = replace_joint_tracks(world, fast).models[0].joints[0].track
    assert unchanged is not None
    np.testing.assert_array_equal(unchanged.position, fast["wheel"].position)


def test_joints_of_a_topic_that_the_world_lacks_are_a_note(tmp_path: Path) -> None:
    """A recorded robot has more joints than the world, and a recording cannot be edited."""
    names = ["elbow", "mount", "wrist_3_joint", "elbow"]
    rows = [(float(k), names, [0.5, 0.0, 0.0, 0.1 * k]) for k in (1, 3, 2, 2, 4)]
    path = write_states(tmp_path, rows)
    joints = make_joint("mount", "base", "upper", "0 0 1", "fixed") + make_joint("elbow", "upper", "tool", "0 0 1")
    world = load_world(tmp_path, LINKS + joints)
    arguments = ["run", str(tmp_path / "arm.sdf"), "--joints", str(path), "-o", str(tmp_path / "a.npz")]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    lines = result.stderr.splitlines()
    series = "note: joint elbow in /joint_states"
    index = lines.index("arm::elbow: follows --joints")
    assert lines[index + 1 : index + 5] == [
        f"{series}: 1 message sorted by time: earlier than the one before",
        f"{series}: of messages of one time, the last one counts: 1 not read",
        f"{series}: of positions of one joint in a message, the last one counts: 5 not read",
        "note: joints of the log that the world lacks or cannot move: mount, wrist_3_joint",
    ]
    tracks = {name: track for name, track in load_joint_log(path).items() if name != "elbow"}
    message = r"states.*: type of joint arm::mount: fixed; must be of type .* to be moved; remove it from the log"
    with pytest.raises(SimulationError, match=message):
        replace_joint_tracks(world, tracks)
    del tracks["mount"]
    with pytest.raises(SimulationError, match=r"states.*: joint: wrist_3_joint; must be one of arm::elbow; write"):
        replace_joint_tracks(world, tracks)


MIMIC = (
    '<xyz>0 0 1</xyz><mimic joint="{leader}"><multiplier>2</multiplier><offset>0.3</offset>'
    "<reference>0.1</reference></mimic>"
)


def test_a_joint_that_mimics_another_one_follows_its_log(tmp_path: Path) -> None:
    """SDF 1.11: position = 2 (position of the leader - 0.1) + 0.3; a follower of the follower too."""
    joints = make_joint("finger", "base", "upper", MIMIC.format(leader="elbow"))
    joints += make_joint("elbow", "base", "tool", "0 0 1") + make_joint(
        "tip", "upper", "end", MIMIC.format(leader="finger")
    )
    world = load_world(tmp_path, LINKS + '<link name="end"/>' + joints)
    run = ns.simulate(world, 1.0, joints=joint_positions(TIME, {"elbow": swing(TIME)[0]}))
    leader, omega, _ = swing(run.truth["upper"].time)
    finger = 2.0 * (leader - 0.1) + 0.3
    angles = Rotation.from_quat(run.truth["upper"].orientation, scalar_first=True).as_rotvec()[:, 2]
    np.testing.assert_allclose(angles, finger, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(run.truth["upper"].angular_velocity[:, 2], 2.0 * omega, rtol=0.0, atol=1e-6)
    both = finger + 2.0 * (finger - 0.1) + 0.3
    turns = Rotation.from_quat(run.truth["end"].orientation, scalar_first=True)
    assert (turns * Rotation.from_rotvec(np.outer(both, (0.0, 0.0, 1.0))).inv()).magnitude().max() < 1e-8
    own = joint_positions(TIME, {"elbow": swing(TIME)[0], "finger": 0.0 * TIME})
    still = ns.simulate(world, 1.0, joints=own).truth["upper"]
    np.testing.assert_array_equal(still.angular_velocity, 0.0)
    run.save(tmp_path / "arm.npz")
    recorded = ns.open(tmp_path / "arm.npz").world
    assert recorded.models[0].joints == world.models[0].joints
    again = ns.simulate(recorded, 1.0, joints=joint_positions(TIME, {"elbow": swing(TIME)[0]}))
    np.testing.assert_array_equal(again.truth["end"].orientation, run.truth["end"].orientation)


@pytest.mark.parametrize("factor", ['multiplier="-1.5" offset="0.2"', ""])
def test_a_mimic_of_urdf_follows_the_log_of_its_leader(tmp_path: Path, factor: str) -> None:
    """value = multiplier * other + offset."""
    path = tmp_path / "gripper.urdf"
    joint = (
        '<joint name="{}" type="revolute"><parent link="base"/><child link="{}"/><axis xyz="0 0 1"/>'
        '<limit lower="-2" upper="2" effort="1" velocity="1"/>{}</joint>'
    )
    path.write_text(
        '<robot name="gripper"><link name="base"/><link name="left"/><link name="right"/>'
        + joint.format("left_joint", "left", "")
        + joint.format("right_joint", "right", f'<mimic joint="left_joint" {factor}/>')
        + '<gazebo reference="right"><sensor name="imu" type="imu"/></gazebo></robot>'
    )
    np.savetxt(
        tmp_path / "log.csv", np.column_stack((TIME, swing(TIME)[0])), delimiter=",", header="t,left_joint", comments=""
    )
    arguments = [
        "run",
        str(path),
        "--joints",
        str(tmp_path / "log.csv"),
        "-o",
        str(tmp_path / "g.npz"),
        "--duration",
        "1",
    ]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert "note: gripper::right_joint mimics gripper::left_joint" in result.stderr
    truth = ns.open(tmp_path / "g.npz").truth["gripper::right"]
    slope, offset = (-1.5, 0.2) if factor else (1.0, 0.0)
    angles = Rotation.from_quat(truth.orientation, scalar_first=True).as_rotvec()[:, 2]
    np.testing.assert_allclose(angles, slope * swing(truth.time)[0] + offset, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize(
    ("leader", "message"),
    [
        ("elbo", "must name a joint of the model; did you mean elbow?: the joint does not follow"),
        ("finger", "is the joint itself; name the joint that it follows: the joint does not follow"),
        ('elbow" axis="axis2', "follows a second axis, which does not move: the joint does not follow"),
    ],
)
def test_a_mimic_without_a_leader_is_a_warning(tmp_path: Path, leader: str, message: str) -> None:
    joints = make_joint("finger", "base", "upper", MIMIC.format(leader=leader))
    world = load_world(tmp_path, LINKS + joints + make_joint("elbow", "base", "tool", "0 0 1"))
    assert [note.reason for note in world.notes if note.kind == "warning" and "mimic" in note.what] == [message]
    truth = ns.simulate(world, 1.0, joints=joint_positions(TIME, {"elbow": TIME})).truth["upper"]
    np.testing.assert_array_equal(truth.angular_velocity, 0.0)


def test_a_follower_in_a_loop_of_links_stands_still(tmp_path: Path) -> None:
    joints = make_joint("finger", "base", "upper", MIMIC.format(leader="elbow"))
    joints += make_joint("rod", "base", "upper", "0 1 0") + make_joint("elbow", "base", "tool", "0 0 1")
    world = load_world(tmp_path, LINKS + joints)
    moved = replace_joint_tracks(world, joint_positions(TIME, {"elbow": TIME}))
    tracks = {joint.name: joint.track for joint in moved.models[0].joints}
    assert tracks["arm::finger"] is None
    track = tracks["arm::elbow"]
    assert track is not None
    assert track.notes == ("arm::finger, which mimics arm::elbow, stands still: it is in a loop of links",)


def turn(time: Array, *, has_odom: bool) -> tuple[Array, Array]:
    """Return the x of the base (m) and the angle of the joint (rad) at times (s) in the recording of a test."""
    return (0.2 * (time - 100.0) ** 2 if has_odom else 0.5 * (time - 100.0)), 0.1 * (time - 100.0)


@pytest.mark.parametrize("has_odom", [True, False])
@pytest.mark.parametrize("first", ["motion", "joints"])
def test_logs_of_one_recording_have_one_time(tmp_path: Path, first: str, *, has_odom: bool) -> None:
    """t = 0 is the start of the log that starts last, of poses or of velocity commands and of joints."""
    store = get_typestore(Stores.ROS2_JAZZY)
    types = store.types
    vector, point = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Point"]

    def make_header(time: float) -> object:
        seconds, nanoseconds = divmod(round(time * 1e9), 10**9)
        return types["std_msgs/msg/Header"](types["builtin_interfaces/msg/Time"](seconds, nanoseconds), "odom")

    with Writer(tmp_path / "drive", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        kind = "geometry_msgs/msg/PoseStamped" if has_odom else "geometry_msgs/msg/Twist"
        channels = {
            name: writer.add_connection(name, message_type, typestore=store)
            for name, message_type in (("/base", kind), ("/joint_states", "sensor_msgs/msg/JointState"))
        }
        for time in np.arange(100.0, 120.05, 0.1).tolist():
            x, angle = (float(value) for value in turn(np.array(time), has_odom=has_odom))
            late = {"motion": "/joint_states", "joints": "/base"}[first]
            no_turn = types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
            pose = types["geometry_msgs/msg/Pose"](point(x, 0.0, 0.0), no_turn)
            empty = np.zeros(0)
            messages = {
                "/base": types[kind](make_header(time), pose)
                if has_odom
                else types[kind](vector(0.5, 0.0, 0.0), vector(0.0, 0.0, 0.0)),
                "/joint_states": types["sensor_msgs/msg/JointState"](
                    make_header(time), ["elbow"], np.array([angle]), empty, empty
                ),
            }
            for name, message in messages.items():
                if time > 104.96 or name != late:
                    data = store.serialize_cdr(message, channels[name].msgtype)
                    writer.write(channels[name], round(time * 1e9), data)
    path = next((tmp_path / "drive").glob("*.mcap"))
    world = load_world(tmp_path, LINKS + make_joint("elbow", "base", "tool", "0 0 1"))
    run = ns.simulate(world, 2.0, motion=f"{path}:/base", joints=f"{path}:/joint_states", truth_rate=33.0)
    truth = run.truth["arm::tool"]
    position, expected = turn(truth.time + 105.0, has_odom=has_odom)
    position -= (
        0.0 if has_odom else turn(np.array([105.0]), has_odom=False)[0]
    )  # commands start at the pose of the model
    angles = Rotation.from_quat(truth.orientation, scalar_first=True).as_rotvec()[:, 2]
    np.testing.assert_allclose(angles, expected, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(run.truth["arm::base"].position[:, 0], position, rtol=0.0, atol=1e-9)
    arguments = ["run", str(tmp_path / "arm.sdf"), "--motion", f"{path}:/base", "--joints", f"{path}:/joint_states"]
    result = CliRunner().invoke(cli, [*arguments, "-o", str(tmp_path / "a.npz"), "--truth-rate", "33"])
    assert result.exit_code == 0, result.output
    series = "/base" if first == "motion" else "/joint_states"
    assert "arm: follows --motion /base (" in result.stderr
    assert f"note: {series}: the first 5 s are before t = 0, where the last log of {path.name} begins" in result.stderr
    recorded = ns.open(tmp_path / "a.npz").truth["arm::tool"].orientation
    np.testing.assert_array_equal(recorded[: truth.time.size], truth.orientation)


def test_a_joint_of_driven_links_only_has_no_track(tmp_path: Path) -> None:
    world = load_world(tmp_path, LINKS + make_joint("elbow", "base", "tool", "0 0 1"))
    tracks = joint_positions(TIME, {"elbow": TIME})
    with pytest.raises(SimulationError) as error:
        ns.live(world, driven=["arm::tool"], joints=tracks)
    remedy = "omit the track of the joint, or do not drive these links"
    assert str(error.value) == f"joint: arm::elbow; moves only links of driven=: arm::tool; {remedy}"
    ns.live(world, driven=["arm::upper"], joints=tracks)


def test_the_warning_about_actuated_joints_names_the_option_joints(tmp_path: Path) -> None:
    world = load_world(tmp_path, LINKS + make_joint("elbow", "base", "tool", SDF_LIMITS.format(upper="1")))
    (reason,) = (note.reason for note in world.notes if note.kind == "warning")
    assert reason.endswith(
        "although it has joint elbow; set --joints for its joints, --motion or <navsense:motion> for the model"
    )


def test_a_recording_without_joints_lists_its_topics(tmp_path: Path) -> None:
    world = load_world(tmp_path, LINKS)
    (path,) = ns.record(world, tmp_path / "arm.mcap", 0.1).paths
    with pytest.raises(
        MotionError, match=r"no topics of sensor_msgs/msg/JointState; the recording has .*\(sensor_msgs/"
    ):
        load_joint_log(path)
    log = tmp_path / "log.csv"
    log.write_text("time,elbow\n0,0\n1,1\n")
    with pytest.raises(
        MotionError, match=r"log.csv: query of .*; selects a topic of a recording, but this file is a CSV"
    ):
        load_joint_log(f"{log}?topic=/joint_states")


def test_a_joint_of_the_world_is_listed_with_the_remedy(tmp_path: Path) -> None:
    world = load_world(tmp_path, LINKS + make_joint("axis", "world", "base", "0 0 1"))
    (note,) = (note for note in world.notes if "axis" in note.what and note.kind == "unsupported")
    expected = "a joint of the world keeps position 0; give the motion of its model, or make its base a link"
    assert note.reason == expected


SDF_LIMITS = "<xyz>0 0 1</xyz><limit><lower>-1</lower><upper>{upper}</upper><effort>5</effort></limit>"

DEGREES = "; if the log has degrees, name the column elbow_deg, or convert them to radians"


@pytest.mark.parametrize(
    ("kind", "upper", "highest", "expected"),
    [
        ("revolute", "1", 1.0 + 1e-9, ""),
        ("revolute", "1", 1.01, "its log has the position 1.01 rad, 0.01 rad above its upper limit 1 rad"),
        ("revolute", "1", 57.0, f"its log has the position 57 rad, 56 rad above its upper limit 1 rad{DEGREES}"),
        ("prismatic", "0.5", 57.0, "its log has the position 57 m, 56.5 m above its upper limit 0.5 m"),
        ("revolute", "1e16", 57.0, ""),
        ("revolute", "inf", 57.0, ""),
        ("continuous", "1", 57.0, ""),
    ],
)
def test_positions_beyond_a_limit_of_sdf_are_one_warning(
    tmp_path: Path, kind: str, upper: str, highest: float, expected: str
) -> None:
    joint = make_joint("elbow", "base", "tool", SDF_LIMITS.format(upper=upper), kind)
    world = load_world(tmp_path, '<link name="base"/><link name="tool"><imu/></link>' + joint)
    log = tmp_path / "log.csv"
    log.write_text(f"time,elbow\n0,0\n1,{highest!r}\n2,0\n")
    robot = replace_joint_tracks(world, load_joint_log(log))
    reasons = [note.reason for note in robot.notes if note.what == "joint arm::elbow"]
    assert reasons == [expected] * bool(expected)
    assert not [note for note in world.notes if note.what == "joint arm::elbow"]


def test_a_column_in_degrees_is_within_the_limits(tmp_path: Path) -> None:
    joint = make_joint("elbow", "base", "tool", SDF_LIMITS.format(upper="1"))
    world = load_world(tmp_path, '<link name="base"/><link name="tool"><imu/></link>' + joint)
    log = tmp_path / "log.csv"
    log.write_text("time,elbow_deg\n0,0\n1,57\n2,-57\n")
    assert not [
        note for note in replace_joint_tracks(world, load_joint_log(log)).notes if note.what == "joint arm::elbow"
    ]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ('lower="-1" upper="1" effort="3" velocity="2"', (-1.0, 1.0)),
        ('upper="1" effort="3" velocity="2"', (0.0, 1.0)),
        ('effort="3" velocity="2"', (-math.inf, math.inf)),
    ],
)
def test_limits_of_urdf_are_read_and_recorded(tmp_path: Path, limit: str, expected: tuple[float, float]) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="base"/><link name="tool"/>'
        '<joint name="elbow" type="revolute"><parent link="base"/>'
        f'<child link="tool"/><axis xyz="0 0 1"/><limit {limit}/></joint>'
        '<gazebo reference="tool"><sensor name="imu" type="imu"><update_rate>10</update_rate></sensor></gazebo></robot>'
    )
    world = ns.load(path)
    (joint,) = world.models[0].joints
    assert (joint.lower, joint.upper) == expected
    ns.record(world, tmp_path / "arm.mcap", 0.2)
    assert ns.open(tmp_path / "arm.mcap").world.models[0].joints == (joint,)
    track = joint_positions(np.array([0.0, 1.0]), {"elbow": np.array([0.0, -3.0])})
    notes = replace_joint_tracks(world, track).notes
    warnings = [note.reason for note in notes if note.what == f"joint {joint.name}"]
    assert len(warnings) == (expected[0] > -math.inf)
    assert all("below its lower limit" in warning for warning in warnings)


def test_an_invalid_limit_is_an_error_with_its_line(tmp_path: Path) -> None:
    joint = make_joint("elbow", "base", "tool", SDF_LIMITS.format(upper="one"))
    with pytest.raises(ns.NavsenseError, match=r"arm\.sdf:1: .*one; must be a number or inf"):
        load_world(tmp_path, '<link name="base"/><link name="tool"/>' + joint)
