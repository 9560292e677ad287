"""Drive plug-ins give a model its velocity commands: which ones, about which axle, within which limits."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rosbags.rosbag1 import Writer as BagWriter
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense.cli import cli
from navsense.core.errors import MotionError, SdfError
from navsense.motion import CommandLimits, Drive, VelocityCommands
from navsense.motion.derived import get_base
from navsense.world import World

Text = Callable[..., str]

HEADER = "time,vx,vy,vz,wx,wy,wz\n"

ROWS = HEADER + "0,0,0,0,0,0,0\n1,0,0,0,0,0,0\n"
POSES = "time,x,y,z,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n1,0,0,0,1,0,0,0\n"

IN_MODEL = "/model/robot/cmd_vel"

WHEELS = "".join(
    f'<link name="{name}"><pose>{x} {y} 0.1 0 0 0</pose></link><joint name="{name}_joint" type="revolute">'
    f"<parent>base</parent><child>{name}</child><axis><xyz>0 1 0</xyz></axis></joint>"
    for name, x, y in (("fl", 0.5, 0.3), ("fr", 0.5, -0.3), ("rl", -0.2, 0.3), ("rr", -0.2, -0.3))
)


def load_robot(folder: Path, plugin: str, content: str = "", pose: str = "0 0 0 0 0 0") -> World:
    path = folder / "robot.sdf"
    sensor = '<sensor name="imu" type="imu"><update_rate>50</update_rate></sensor>'
    path.write_text(
        f'<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w"><model name="robot">'
        f'<pose>{pose}</pose><link name="base">{sensor}</link>{WHEELS}{plugin}{content}</model></world></sdf>'
    )
    return ns.load(path)


def read_drive(folder: Path, plugin: str) -> Drive:
    drive = load_robot(folder, plugin).models[0].drive
    assert drive is not None
    return drive


@pytest.mark.parametrize(
    ("file", "name", "kind", "topic"),
    [
        ("gz-sim-diff-drive-system", "gz::sim::systems::DiffDrive", "differential", IN_MODEL),
        ("libignition-gazebo-diff-drive-system.so", "ignition::gazebo::systems::DiffDrive", "differential", IN_MODEL),
        ("gz-sim-ackermann-steering-system", "gz::sim::systems::AckermannSteering", "differential", IN_MODEL),
        ("gz-sim-tracked-vehicle-system", "gz::sim::systems::TrackedVehicle", "differential", IN_MODEL),
        ("gz-sim-mecanum-drive-system", "gz::sim::systems::MecanumDrive", "holonomic", IN_MODEL),
        ("gz-sim-velocity-control-system", "gz::sim::systems::VelocityControl", "free", IN_MODEL),
        ("libgazebo_ros_diff_drive.so", "drive", "differential", "cmd_vel"),
        ("libgazebo_ros_skid_steer_drive.so", "drive", "differential", "cmd_vel"),
        ("libgazebo_ros_planar_move.so", "drive", "holonomic", "cmd_vel"),
        ("/opt/ros/lib/libridgeback_ros_force_based_move.so", "drive", "holonomic", "cmd_vel"),
        ("libdiffdrive_plugin_6w.so", "drive", "differential", "cmd_vel"),
        ("libDiffDrivePlugin.so", "drive", "differential", "cmd_vel"),
        ("libgz-sim8-diff-drive-system.so", "drive", "differential", IN_MODEL),
        ("libdrives.so", "gz::sim::v8::systems::MecanumDrive", "holonomic", IN_MODEL),
    ],
)  # fmt: skip
def test_a_drive_plugin_gives_the_kind_and_topic(tmp_path: Path, file: str, name: str, kind: str, topic: str) -> None:
    drive = read_drive(tmp_path, f'<plugin filename="{file}" name="{name}"/>')
    assert (drive.kind, drive.topic, drive.name) == (kind, topic, f"plug-in {file}")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("libgazebo_ros_control.so", "p"),
        ("gz-sim-thruster-system", "p"),
        ("libgazebo_ros_p3d.so", "p"),
        ("libmotor.so", "p"),
        ("libfoo.so", "velocity_control"),
        ("libfoo.so", "diff_drive"),
        ("libgazebo_ros_diff_drive_odom_monitor.so", "p"),
    ],
)
def test_other_plugins_are_no_drive(tmp_path: Path, file: str, name: str) -> None:
    assert load_robot(tmp_path, f'<plugin filename="{file}" name="{name}"/>').models[0].drive is None


@pytest.mark.parametrize(
    ("content", "topic"),
    [
        ("<topic>/go</topic>", "/go"),
        ("<commandTopic>go</commandTopic>", "go"),
        ("<robotNamespace>/r1</robotNamespace><commandTopic>go</commandTopic>", "/r1/go"),
        ("<robotNamespace>r1/</robotNamespace>", "/r1/cmd_vel"),
        ("<robotNamespace>r1</robotNamespace><commandTopic>/go</commandTopic>", "/go"),
        ("<ros><namespace>/demo</namespace><remapping>cmd_vel:=cmd_demo</remapping></ros>", "/demo/cmd_demo"),
        ("<ros><namespace>demo</namespace></ros><command_topic>go</command_topic>", "/demo/cmd_vel"),
        ("<ros><remapping>cmd_vel:=/go</remapping></ros>", "/go"),
        ("<ros><namespace>/demo</namespace></ros>", "/demo/cmd_vel"),
    ],
)
def test_topics_of_a_drive(tmp_path: Path, content: str, topic: str) -> None:
    plugin = f'<plugin filename="libgazebo_ros_diff_drive.so" name="p">{content}</plugin>'
    assert read_drive(tmp_path, plugin).topic == topic


def test_the_center_is_that_of_the_driven_wheels(tmp_path: Path) -> None:
    """Two wheels at the rear; four wheels of a skid-steer drive; the rear axle of a vehicle that steers in front."""
    rear = "<left_joint>rl_joint</left_joint><right_joint>rr_joint</right_joint>"
    drive = read_drive(tmp_path, f'<plugin filename="gz-sim-diff-drive-system" name="p">{rear}</plugin>')
    np.testing.assert_allclose(drive.pose.position, (-0.2, 0.0, 0.0), rtol=0.0, atol=1e-15)
    scoped = rear.replace("rl_joint", "robot::rl_joint")
    drive = read_drive(tmp_path, f'<plugin filename="gz-sim-diff-drive-system" name="p">{scoped}</plugin>')
    np.testing.assert_allclose(drive.pose.position, (-0.2, 0.0, 0.0), rtol=0.0, atol=1e-15)
    tags = {"leftFrontJoint": "fl", "rightFrontJoint": "fr", "leftRearJoint": "rl", "rightRearJoint": "rr"}
    skid = "".join(f"<{tag}>{name}_joint</{tag}>" for tag, name in tags.items())
    drive = read_drive(tmp_path, f'<plugin filename="libgazebo_ros_skid_steer_drive.so" name="p">{skid}</plugin>')
    np.testing.assert_allclose(drive.pose.position, (0.15, 0.0, 0.0), rtol=0.0, atol=1e-15)
    wheels = "".join(f"<{side}_joint>{end}{side[0]}_joint</{side}_joint>" for end in "fr" for side in ("left", "right"))
    steering = (
        "<left_steering_joint>fl_joint</left_steering_joint><right_steering_joint>fr_joint</right_steering_joint>"
    )
    drive = read_drive(
        tmp_path, f'<plugin filename="gz-sim-ackermann-steering-system" name="p">{wheels}{steering}</plugin>'
    )
    np.testing.assert_allclose(drive.pose.position, (-0.2, 0.0, 0.0), rtol=0.0, atol=1e-15)
    radius = 1.0 / math.sin(0.5)  # the defaults of gz-sim
    assert drive.limits.min_turning_radius == pytest.approx(radius, rel=1e-14, abs=0.0)


def test_limits_of_gazebo_and_of_gazebo_ros(tmp_path: Path) -> None:
    limits = (
        "<min_velocity>-1</min_velocity><max_linear_velocity>0.5</max_linear_velocity>"
        "<max_angular_velocity>2</max_angular_velocity><max_acceleration>3</max_acceleration>"
        "<min_linear_acceleration>-4</min_linear_acceleration><max_linear_acceleration>1</max_linear_acceleration>"
    )
    drive = read_drive(tmp_path, f'<plugin filename="gz-sim-diff-drive-system" name="p">{limits}</plugin>')
    assert drive.limits == CommandLimits(-1.0, 0.5, -1.0, 2.0, 1.0, 4.0, 3.0, math.inf)
    wheels = "<wheelSeparation>0.4</wheelSeparation><wheelAcceleration>1.5</wheelAcceleration>"
    drive = read_drive(tmp_path, f'<plugin filename="libgazebo_ros_diff_drive.so" name="p">{wheels}</plugin>')
    assert drive.limits == CommandLimits(max_acceleration=1.5, track=0.4)
    up = "<max_linear_acceleration>0.5</max_linear_acceleration>"
    drive = read_drive(tmp_path, f'<plugin filename="gz-sim-diff-drive-system" name="p">{up}</plugin>')
    assert drive.limits == CommandLimits(max_acceleration=0.5, max_deceleration=math.inf)
    none = "<max_linear_acceleration>fast</max_linear_acceleration><wheelAcceleration>0</wheelAcceleration>"
    world = load_robot(tmp_path, f'<plugin filename="gz-sim-diff-drive-system" name="p">{none}</plugin>')
    assert world.models[0].drive is not None
    assert world.models[0].drive.limits == CommandLimits()
    assert any("'fast' is not a number: ignored" in note.reason for note in world.notes)


WITHOUT_EFFECT = (
    *("odom_topic", "tf_topic", "wheel_radius", "wheelDiameter", "max_jerk", "min_jerk", "kingpin_width"),
    *("odom_publish_frequency", "command_timeout", "max_wheel_torque", "odometry_topic", "num_wheel_pairs"),
)
"""Elements of drive plug-ins that do not change the motion."""


@pytest.mark.parametrize(
    ("content", "warnings"),
    [
        (
            "<max_linear_accelaration>1</max_linear_accelaration>",
            ["is not read; did you mean max_linear_acceleration?"],
        ),
        ("<lft_joint>rl_joint</lft_joint>", ["is not read; did you mean left_joint?"]),
        (
            "<left_joint>rl_jont</left_joint>",
            ["'rl_jont' is not a joint of the model: ignored; did you mean rl_joint?"],
        ),
        ("<left_joint>base</left_joint>", ["'base' is not a joint of the model: ignored"]),
        ("".join(f"<{tag}>1</{tag}>" for tag in WITHOUT_EFFECT), []),
    ],
)
def test_misspelt_parts_of_a_drive_give_a_warning(tmp_path: Path, content: str, warnings: list[str]) -> None:
    world = load_robot(tmp_path, f'<plugin filename="gz-sim-diff-drive-system" name="p">{content}</plugin>')
    notes = [note for note in world.notes if note.kind == "warning" and note.what.startswith("<plugin><")]
    assert [note.reason for note in notes] == warnings
    assert all(note.where is not None and note.where.line == 1 for note in notes)


def test_a_tracked_vehicle_has_its_limits_in_two_elements_and_turns_about_its_body_link(tmp_path: Path) -> None:
    """The elements are those of gz-sim, TrackedVehicle.cc (commit 00b43a02)."""
    content = (
        "<body_link>rl</body_link><left_track><link>fl</link></left_track><right_track><link>fr</link></right_track>"
        "<tracks_separation>0.4</tracks_separation><steering_efficiency>0.5</steering_efficiency>"
        "<linear_velocity><min_velocity>-0.2</min_velocity><max_velocity>0.3</max_velocity>"
        "<min_acceleration>-2</min_acceleration><max_acceleration>1</max_acceleration></linear_velocity>"
        "<angular_velocity><max_acceleration>6</max_acceleration></angular_velocity>"
    )
    file = '<plugin filename="gz-sim-tracked-vehicle-system" name="gz::sim::systems::TrackedVehicle">'
    world = load_robot(tmp_path, f"{file}{content}</plugin>")
    drive = world.models[0].drive
    assert drive is not None
    assert drive.limits == CommandLimits(
        -0.2, 0.3, max_acceleration=1.0, max_deceleration=2.0, max_angular_acceleration=6.0,
        max_angular_deceleration=math.inf,
    )  # fmt: skip
    assert drive.pose.position == (-0.2, 0.3, 0.0)
    assert not [note for note in world.notes if note.what.startswith(("<plugin>", "<linear", "<angular"))]
    flat = "<max_linear_velocity>0.3</max_linear_velocity><body_link>chassis</body_link>"
    typo = "<linear_velocity><max_velocty>0.3</max_velocty></linear_velocity>"
    world = load_robot(tmp_path, f"{file}{flat}{typo}</plugin>")
    drive = world.models[0].drive
    assert drive is not None
    assert drive.limits == CommandLimits()
    assert drive.pose.position == (0.0, 0.0, 0.0)  # the canonical link
    assert [(note.what, note.reason) for note in world.notes if "elocit" in note.what or "body" in note.what] == [
        ("<plugin><max_linear_velocity>", "is not read; did you mean linear_velocity?"),
        ("<linear_velocity><max_velocty>", "is not read; did you mean max_velocity?"),
        ("<plugin><body_link>", "'chassis' is not a link of the model: ignored"),
    ]


def test_topics_of_ackermann_steering(tmp_path: Path) -> None:
    plugin = '<plugin filename="gz-sim-ackermann-steering-system" name="p">{}</plugin>'
    assert read_drive(tmp_path, plugin.format("<sub_topic>go</sub_topic>")).topic == "/model/robot/go"
    assert read_drive(tmp_path, plugin.format("<topic>t</topic><sub_topic>go</sub_topic>")).topic == "t"
    assert read_drive(tmp_path, plugin.format("<steering_only>false</steering_only>")).topic == IN_MODEL
    for content in ("<steering_only>true</steering_only>", "<steering_only>1</steering_only><topic>t</topic>"):
        assert load_robot(tmp_path, plugin.format(content)).models[0].drive is None


def test_a_joint_may_have_the_name_of_its_model(tmp_path: Path) -> None:
    wheels = "<left_joint>robot::rl_joint</left_joint><right_joint>rr_joint</right_joint>"
    drive = read_drive(tmp_path, f'<plugin filename="libgazebo_ros_diff_drive.so" name="p">{wheels}</plugin>')
    np.testing.assert_allclose(drive.pose.position, (-0.2, 0.0, 0.0), rtol=0.0, atol=1e-15)


STEERING = (
    "<left_steering_joint>fl_joint</left_steering_joint><right_steering_joint>fr_joint</right_steering_joint>"
    "<left_joint>rl_joint</left_joint><right_joint>rr_joint</right_joint>"
)


@pytest.mark.parametrize(
    ("content", "what", "reason"),
    [
        (
            "<min_linear_velocity>1</min_linear_velocity><max_linear_velocity>0.5</max_linear_velocity>",
            "min_linear_velocity",
            "1 is above the maximum, 0.5: both are ignored",
        ),
        (
            "<max_linear_acceleration>-1</max_linear_acceleration>",
            "max_linear_acceleration",
            "-1; must be above 0: ignored",
        ),
        ("<min_acceleration>0.5</min_acceleration>", "min_acceleration", "0.5; must be below 0: ignored"),
        ("<steering_limit>0</steering_limit>", "steering_limit", "0; must be above 0 and at most pi / 2 (rad)"),
        ("<steering_limit>30</steering_limit>", "steering_limit", "30; must be above 0 and at most pi / 2 (rad)"),
        ("<wheel_base>-1</wheel_base>", "wheel_base", "-1; must be above 0: ignored"),
        ("<wheel_separation>-1</wheel_separation>", "wheel_separation", "-1; must be >= 0: ignored"),
        (
            "<wheel_base>1e300</wheel_base><steering_limit>1e-300</steering_limit>",
            "wheel_base",
            "1e+300 m / sin(1e-300 rad) is not a turning radius: ignored",
        ),
    ],
)
def test_invalid_limit_gives_a_warning(tmp_path: Path, content: str, what: str, reason: str) -> None:
    plugin = f'<plugin filename="gz-sim-ackermann-steering-system" name="p">{STEERING}{content}</plugin>'
    world = load_robot(tmp_path, plugin)
    notes = {note.what: note for note in world.notes if note.kind == "warning" and note.what.startswith("<plugin><")}
    assert set(notes) == {f"<plugin><{what}>"}
    note = notes[f"<plugin><{what}>"]
    assert note.reason.startswith(reason)
    assert note.where is not None
    drive = world.models[0].drive
    assert drive is not None
    expected = CommandLimits() if "turning radius" in reason else CommandLimits(min_turning_radius=1.0 / math.sin(0.5))
    assert drive.limits == expected


def test_note_of_a_drive_names_its_elements(tmp_path: Path) -> None:
    world = load_robot(tmp_path, DRIVE)
    reasons = [note.reason for note in world.notes if "libgazebo_ros_diff_drive" in note.what]
    assert reasons == ["is not run; the first drive of a model selects the velocity commands, their frame and limits"]


DRIVE = (
    '<plugin filename="libgazebo_ros_diff_drive.so" name="p">'
    "<left_joint>rl_joint</left_joint><right_joint>rr_joint</right_joint></plugin>"
)

SQUARE = [(2.0 * side + part, 0.5 * (1 - part), 0.5 * math.pi * part) for side in range(4) for part in (0, 1)]
"""Time (s), vx (m/s) and wz (rad/s): four sides of 0.5 m, and four turns by 90 degrees, each 1 s long."""


def write_square(path: Path) -> Path:
    path.write_text(HEADER + "".join(f"{t},{vx},0,0,0,0,{wz!r}\n" for t, vx, wz in (*SQUARE, (8.0, 0.0, 0.0))))
    return path


def assert_square(world: World, motion: Path | str) -> None:
    """Assert that the axle, 0.2 m behind the link, drives a square of 0.5 m from the initial pose of the model."""
    run = ns.simulate(world, motion=str(motion))
    assert run.session.duration == pytest.approx(8.0, rel=0.0, abs=1e-9)
    model = run.session.world.models[0]
    found = run.session.link_motions["robot::base"].at(np.arange(0.0, 7.5, 1.0))
    corners = np.array([(0, 0), (0.5, 0), (0.5, 0), (0.5, 0.5), (0.5, 0.5), (0, 0.5), (0, 0.5), (0, 0)])
    headings = 0.5 * math.pi * np.array([0, 0, 1, 1, 2, 2, 3, 3])
    corners = corners + 0.2 * (np.column_stack((np.cos(headings), np.sin(headings))) - [1.0, 0.0])
    x, y, z = model.pose.position
    yaw = 2.0 * math.atan2(model.pose.rotation[3], model.pose.rotation[0])
    turn = np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])
    np.testing.assert_allclose(found.position_w[:, :2], corners @ turn.T + [x, y], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(found.position_w[:, 2], z, rtol=0.0, atol=1e-14)


def test_a_csv_log_drives_a_square(tmp_path: Path) -> None:
    assert_square(load_robot(tmp_path, DRIVE, pose="3 4 0.5 0 0 0.7"), write_square(tmp_path / "square.csv"))


def test_a_log_in_the_world_file_drives_a_square(tmp_path: Path) -> None:
    write_square(tmp_path / "square.csv")
    world = load_robot(tmp_path, DRIVE, '<navsense:motion file="square.csv"/>', "3 4 0.5 0 0 0.7")
    motion = world.models[0].root_motion
    assert motion is not None
    assert isinstance(get_base(motion), VelocityCommands)
    assert not any("stationary" in note.reason for note in world.notes)
    np.testing.assert_allclose(motion.at(np.zeros(1)).position_w, [[3.0, 4.0, 0.5]], rtol=0.0, atol=1e-14)


def test_python_loads_commands(tmp_path: Path) -> None:
    commands = ns.motion.load(write_square(tmp_path / "square.csv"))
    assert isinstance(commands, VelocityCommands)
    assert (commands.end, commands.commands.shape) == (8.0, (9, 6))
    assert commands.source is not None
    assert commands.source.file == "square.csv"


@pytest.mark.parametrize(
    "name", ["wz_deg", "wz_dps", "wz [deg/s]", "/cmd_vel/twist/angular/z_deg", "angular.z (deg/s)"]
)
def test_a_turn_rate_may_be_in_degrees_per_second(tmp_path: Path, name: str) -> None:
    (tmp_path / "log.csv").write_text(HEADER.replace("wz", name) + "0,0,0,0,0,0,90\n1,0,0,0,0,0,0\n")
    commands = ns.motion.load(tmp_path / "log.csv")
    assert isinstance(commands, VelocityCommands)
    assert commands.commands[0, 5] == pytest.approx(0.5 * math.pi, rel=1e-15, abs=0.0)


def test_an_error_of_the_ramps_names_the_log(tmp_path: Path) -> None:
    log = tmp_path / "fast.csv"
    log.write_text(HEADER + "0,0,0,0,0,0,1e8\n5e9,0,0,0,0,0,0\n")
    plugin = (
        '<plugin filename="gz-sim-diff-drive-system" name="p">'
        "<max_angular_acceleration>1e-3</max_angular_acceleration></plugin>"
    )
    with pytest.raises(MotionError, match=r"fast\.csv: number of steps of the ramps"):
        ns.simulate(load_robot(tmp_path, plugin), 1.0, motion=str(log))


Commands = Sequence[tuple[float, float, float]]
"""Time (s), vx (m/s) and wz (rad/s) of each command."""


def write_bag2(path: Path, *topics: str, commands: Commands = (*SQUARE, (8.0, 0.0, 0.0))) -> Path:
    store = get_typestore(Stores.ROS2_JAZZY)
    twist, vector = (store.types[f"geometry_msgs/msg/{name}"] for name in ("Twist", "Vector3"))
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for topic in topics:
            channel = writer.add_connection(topic, twist.__msgtype__, typestore=store)
            for t, vx, wz in commands:
                message = twist(linear=vector(x=vx, y=0.0, z=0.0), angular=vector(x=0.0, y=0.0, z=wz))
                time = 1_700_000_000_000_000_000 + round(t * 1e9)
                writer.write(channel, time, store.serialize_cdr(message, twist.__msgtype__))
    return path


def write_bag1(path: Path) -> Path:
    """Write TwistStamped with log times that are late by up to 90 ms."""
    store = get_typestore(Stores.ROS1_NOETIC)
    twist, vector, stamped = (store.types[f"geometry_msgs/msg/{name}"] for name in ("Twist", "Vector3", "TwistStamped"))
    header, stamp = store.types["std_msgs/msg/Header"], store.types["builtin_interfaces/msg/Time"]
    with BagWriter(path) as writer:
        channel = writer.add_connection("/robot/cmd_vel", stamped.__msgtype__, typestore=store)
        for k, (t, vx, wz) in enumerate((*SQUARE, (8.0, 0.0, 0.0))):
            time = 1_700_000_000_000_000_000 + round(t * 1e9)
            message = stamped(
                header=header(seq=k, stamp=stamp(sec=time // 10**9, nanosec=time % 10**9), frame_id="base"),
                twist=twist(linear=vector(x=vx, y=0.0, z=0.0), angular=vector(x=0.0, y=0.0, z=wz)),
            )
            writer.write(channel, time + 10_000_000 * k, store.serialize_ros1(message, stamped.__msgtype__))
    return path


def test_recorded_twists_drive_a_square(tmp_path: Path) -> None:
    world = load_robot(tmp_path, DRIVE)
    assert_square(world, write_bag2(tmp_path / "one", "/anything"))
    assert_square(world, write_bag1(tmp_path / "stamped.bag"))


def test_the_topic_of_the_drive_is_selected(tmp_path: Path) -> None:
    bag = write_bag2(tmp_path / "two", "/other", "/robot/cmd_vel")
    assert_square(load_robot(tmp_path, DRIVE), bag)
    other = DRIVE.replace("</plugin>", "<topic>drive</topic></plugin>")
    with pytest.raises(MotionError, match="must be one of /other, /robot/cmd_vel"):
        ns.simulate(load_robot(tmp_path, other), motion=str(bag))
    file = next(bag.glob("*.mcap"))
    assert_square(load_robot(tmp_path, DRIVE), f"{file}:/other")


def test_the_longest_ending_of_a_topic_has_priority(tmp_path: Path) -> None:
    """Both topics end in /cmd_vel, and one in the namespace of the plug-in too."""
    drive = DRIVE.replace("</plugin>", "<robotNamespace>a</robotNamespace></plugin>")
    bag = write_bag2(tmp_path / "two", "/x/b/cmd_vel", "/x/a/cmd_vel")
    run = ns.simulate(load_robot(tmp_path, drive), motion=str(bag))
    motion = run.session.world.models[0].motion
    assert isinstance(motion, VelocityCommands)
    assert motion.source is not None
    assert motion.source.series == "/x/a/cmd_vel"


def test_commands_give_a_warning_with_their_remedy(tmp_path: Path) -> None:
    load_robot(tmp_path, DRIVE)
    result = CliRunner().invoke(cli, ["check", str(tmp_path / "robot.sdf")])
    assert "give a log of its velocity commands (topic cmd_vel) as --motion or <navsense:motion>" in result.output
    square = write_square(tmp_path / "square.csv")
    result = CliRunner().invoke(cli, ["run", str(tmp_path / "robot.sdf"), "--motion", str(square), "--duration", "1"])
    assert result.exit_code == 0, result.output
    assert "its velocity jumps by up to 0.5 m/s" in result.stderr
    assert (
        "robot: follows --motion (9 velocity commands: vx and wz, plug-in libgazebo_ros_diff_drive.so)" in result.stderr
    )


def test_limits_of_the_world_file_replace_those_of_the_drive(tmp_path: Path) -> None:
    write_square(tmp_path / "square.csv")
    motion = '<navsense:motion file="square.csv" max_acceleration="0.5" max_angular_acceleration="4"/>'
    world = load_robot(tmp_path, DRIVE, motion)
    assert world.models[0].root_motion is not None
    commands = get_base(world.models[0].root_motion)
    assert isinstance(commands, VelocityCommands)
    assert commands.limits == CommandLimits(max_acceleration=0.5, max_angular_acceleration=4.0)
    assert not any("jumps" in note.reason for note in world.notes)


@pytest.mark.parametrize(
    ("attributes", "limits"),
    [
        ('max_acceleration="0.5"', {"max_acceleration": 0.5, "max_deceleration": None}),
        ('max_angular_acceleration="1"', {"max_angular_acceleration": 1.0, "max_angular_deceleration": None}),
    ],
)
def test_an_attribute_replaces_both_directions_of_its_limit_alone(
    tmp_path: Path, attributes: str, limits: dict[str, float | None]
) -> None:
    write_square(tmp_path / "square.csv")
    signs = (("min", "-2", "-0.25"), ("max", "3", "0.75"))
    tags = "".join(
        f"<{end}_linear_acceleration>{linear}</{end}_linear_acceleration>"
        f"<{end}_angular_acceleration>{angular}</{end}_angular_acceleration>"
        for end, linear, angular in signs
    )
    plugin = f'<plugin filename="gz-sim-diff-drive-system" name="p">{tags}</plugin>'
    world = load_robot(tmp_path, plugin, f'<navsense:motion file="square.csv" {attributes}/>')
    assert world.models[0].root_motion is not None
    commands = get_base(world.models[0].root_motion)
    assert isinstance(commands, VelocityCommands)
    plugin_limits: dict[str, float | None] = {
        "max_acceleration": 3.0,
        "max_deceleration": 2.0,
        "max_angular_acceleration": 0.75,
        "max_angular_deceleration": 0.25,
    }
    assert commands.limits == CommandLimits(**{**plugin_limits, **limits})  # type: ignore[arg-type]


def test_gazebo_limits_the_directions_of_a_velocity_apart(tmp_path: Path) -> None:
    """`max_linear_acceleration` alone, as gz-math's `SpeedLimiter`: 1 s up to 0.5 m/s, down at once, 1 s up to 0."""
    rows = HEADER + "0,0.5,0,0,0,0,0\n2,-0.5,0,0,0,0,0\n3,0,0,0,0,0,0\n5,0,0,0,0,0,0\n"
    (tmp_path / "commands.csv").write_text(rows)
    plugin = (
        '<plugin filename="gz-sim-diff-drive-system" name="p">'
        "<max_linear_acceleration>0.5</max_linear_acceleration></plugin>"
    )
    world = load_robot(tmp_path, plugin, '<navsense:motion file="commands.csv"/>')
    assert world.models[0].root_motion is not None
    block = world.models[0].root_motion.at(np.array([0.5, 1.5, 2.0, 2.5, 3.5, 4.5]))
    np.testing.assert_allclose(block.velocity_w[:, 0], [0.25, 0.5, -0.5, -0.5, -0.25, 0.0], rtol=0.0, atol=1e-14)


@pytest.mark.parametrize(
    ("attributes", "log", "message"),
    [
        ('max_acceleration="0"', ROWS, "motion max_acceleration>: 0; must be a finite number > 0"),
        ('max_acceleration="1"', POSES, "is allowed with velocity commands only"),
        ('bandwidth="1"', ROWS, "smooths poses, not velocity commands"),
        ("", HEADER + "0,0,0,0,0,0,0\n1,0,a,0,0,0,0\n", "log.csv:3: vy: a; must be a finite number"),
        ("", HEADER + "0,0,0,0,0,0,0\n\n0,0,0,0,0,0,0\n", "log.csv:4: time of row 1 (s): 0.0; must be after"),
        ("", HEADER + "0,0,0,0,0,0,0\n", "number of velocity commands: 1; must be >= 2"),
        ("", "time,vx,wz\n0,0,0\n1,0,0\n", "header of the log without vy, vz, wx, wy: time,vx,wz; must have time,"),
    ],
)  # fmt: skip
def test_errors_of_logs_in_the_world_file(tmp_path: Path, attributes: str, log: str, message: str) -> None:
    (tmp_path / "log.csv").write_text(log)
    with pytest.raises(SdfError) as error:
        load_robot(tmp_path, DRIVE, f'<navsense:motion file="log.csv" {attributes}/>')
    assert message in str(error.value)


TURTLEBOT3 = Path(__file__).resolve().parent.parent / "worlds" / "robots" / "turtlebot3_burger.sdf"

CLASSIC_DRIVE = (
    '<plugin name="turtlebot3_diff_drive" filename="libgazebo_ros_diff_drive.so"><ros/><update_rate>30</update_rate>'
    "<left_joint>wheel_left_joint</left_joint><right_joint>wheel_right_joint</right_joint>"
    "<wheel_separation>0.160</wheel_separation><wheel_diameter>0.066</wheel_diameter>"
    "<max_wheel_torque>20</max_wheel_torque><max_wheel_acceleration>1.0</max_wheel_acceleration>"
    "<command_topic>cmd_vel</command_topic><robot_base_frame>base_footprint</robot_base_frame></plugin>"
)
"""The drive of the ROS 2 packages with Gazebo Classic, with the same figures: at commit 28314d3b of the fork
github.com/mblaich/turtlebot3_simulations, turtlebot3_gazebo/models/turtlebot3_burger/model.sdf."""

SPEED, TURN_RATE, ACCELERATION, SIDE_TIME, LEVER_ARM = 0.2, 0.25 * math.pi, 1.0, 5.0, 0.032
"""m/s and rad/s of the commands, below the limits of the robot, 0.22 m/s and 2.84 rad/s; m/s^2; s; m."""

ROUND_TIME = SIDE_TIME + 4.0
"""Time (s) of a side, a stop of 1 s, a turn of 2 s and a stop of 1 s."""


def write_rounds(path: Path) -> Path:
    """Write the commands of the square of a TurtleBot3: four sides and four turns to the left."""
    parts = ((0.0, SPEED, 0.0), (SIDE_TIME, 0.0, 0.0), (SIDE_TIME + 1.0, 0.0, TURN_RATE), (SIDE_TIME + 3.0, 0.0, 0.0))
    commands = [(side * ROUND_TIME + t, vx, wz) for side in range(4) for t, vx, wz in parts]
    return write_bag2(path, "/cmd_vel", commands=[*commands, (4.0 * ROUND_TIME, 0.0, 0.0)])


def test_the_report_of_a_turtlebot3_shows_its_square(tmp_path: Path) -> None:
    """Four sides, each shorter by the ramp at its start, and the duration of the commands."""
    recording, page = tmp_path / "square.mcap", tmp_path / "square.html"
    motion = f"--motion={write_rounds(tmp_path / 'drive')}"
    for arguments in (
        ["run", str(TURTLEBOT3), motion, "-o", str(recording)],
        ["report", str(recording), "-o", str(page)],
    ):
        result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    length = 4.0 * (SPEED * SIDE_TIME - SPEED**2 / (2.0 * ACCELERATION))
    assert f"{length:.2f} m" in text
    assert "35.99 s" in text  # of the last sample


@pytest.mark.requirement("IMU-2")
@pytest.mark.parametrize("plugin", ["", CLASSIC_DRIVE], ids=["gz", "classic"])
def test_a_turtlebot3_drives_a_square_from_recorded_twists(tmp_path: Path, plugin: str) -> None:
    """Commands and limits give the square, and the IMU measures the rate of the turns and its centripetal acceleration.

    A ramp up takes v^2 / (2 a) from a side. Gazebo has no limit down; gazebo_ros has the same one, so its ramp down
    gives this length back. The turns have no limit in Gazebo, and equal ramps in gazebo_ros. False alarm: 4e-8 for each
    of 16 means.
    """
    text = TURTLEBOT3.read_text()
    if plugin:
        text = re.sub(r"<plugin.*</plugin>", plugin, text, flags=re.DOTALL)
    path = tmp_path / "robot.sdf"
    path.write_text(text)
    bag = write_rounds(tmp_path / "drive")
    run = ns.simulate(ns.load(path), motion=str(bag), seed=11)
    side = SPEED * SIDE_TIME - (0.0 if plugin else SPEED**2 / (2.0 * ACCELERATION))
    corners = run.session.link_motions["turtlebot3_burger::base_footprint"].at(ROUND_TIME * np.arange(5.0))
    square = np.array([(0.0, 0.0), (side, 0.0), (side, side), (0.0, side), (0.0, 0.0)])
    np.testing.assert_allclose(corners.position_w[:, :2], square, rtol=0.0, atol=1e-9)
    headings = 2.0 * np.arctan2(corners.rotation_wb[:, 3], corners.rotation_wb[:, 0])
    expected = 0.5 * math.pi * np.arange(5.0)
    np.testing.assert_allclose(np.cos(headings - expected), 1.0, rtol=0.0, atol=1e-12)
    imu = run["imu"]
    for k in range(4):
        turn = imu.time - k * ROUND_TIME - SIDE_TIME - 1.0
        # Both ends of the turn are on ramps in gazebo_ros: the rims reach TURN_RATE within 0.063 s.
        for start, end, rate in ((0.1, 1.9, TURN_RATE), (-3.0, -2.0, 0.0)):
            rows = (turn > start) & (turn < end)
            bound = 5.5 / math.sqrt(np.count_nonzero(rows))
            assert abs(imu["angular_velocity"][rows, 2].mean() - rate) < 2e-4 * bound
            assert abs(imu["linear_acceleration"][rows, 0].mean() - LEVER_ARM * rate**2) < 1.7e-2 * bound
