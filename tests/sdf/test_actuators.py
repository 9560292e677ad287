"""Warnings about models with actuators but without motion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import navsense as ns
from navsense.cli import cli
from navsense.motion.stationary import Stationary
from navsense.report import write
from navsense.world import World

Load = Callable[..., World]
Text = Callable[..., str]

LINKS = (
    '<link name="base"><sensor name="imu" type="imu"><update_rate>50</update_rate></sensor></link><link name="arm"/>'
)
DRIVE = '<plugin filename="gz-sim-diff-drive-system" name="gz::sim::systems::DiffDrive"/>'
MOTION = (
    '<navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>'
    '<navsense:waypoint time="9">1 0 0 0 0 0</navsense:waypoint></navsense:motion>'
)
LOG = "".join(f"{0.1 * k} {0.01 * k * k} 0 1 0 0 0 1\n" for k in range(50))

PAIR = (
    '<transmission name="pair"><type>transmission_interface/DifferentialTransmission</type>'
    '<joint name="j"><hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></joint>'
    '<joint name="k"/><actuator name="m"><mechanicalReduction>5</mechanicalReduction></actuator>'
    '<actuator name="n"/></transmission>'
)
"""A transmission of ros_control with two joints and two actuators."""

WHEELS = (
    '<ros2_control name="base" type="system"><hardware><plugin>gz_ros2_control/GazeboSimSystem</plugin></hardware>'
    '<joint name="j"><command_interface name="velocity"/><state_interface name="position"/></joint></ros2_control>'
)


def make_joint(content: str = "", kind: str = "revolute") -> str:
    ends = "<parent>base</parent><child>arm</child>"
    return f'<joint name="elbow" type="{kind}">{ends}<axis><xyz>0 0 1</xyz>{content}</axis></joint>'


def make_robot(content: str) -> str:
    return f'<model name="robot">{LINKS}{content}</model>'


@pytest.mark.parametrize(
    ("content", "first"),
    [
        (DRIVE, "plug-in gz-sim-diff-drive-system"),
        ('<plugin filename="libuuv_thruster_ros_plugin.so" name="t"/>', "plug-in libuuv_thruster_ros_plugin.so"),
        ('<plugin filename="libsome.so" name="ignition::gazebo::systems::Thruster"/>', "plug-in libsome.so"),
        (make_joint("<limit><effort>5</effort></limit>"), "joint elbow"),
        (
            make_joint() + '<plugin filename="libarm.so" name="a"><servo><name>elbow</name></servo></plugin>',
            "joint elbow",
        ),
        (make_joint() + DRIVE, "plug-in gz-sim-diff-drive-system"),
        (f'<model name="in">{LINKS}{DRIVE}</model>', "plug-in gz-sim-diff-drive-system"),
        (make_joint(), ""),
        (make_joint("<limit><effort>-1</effort></limit>"), ""),
        (make_joint("<limit><effort>5</effort></limit>", "fixed"), ""),
        ('<plugin filename="libcamera_driver.so" name="camera"/>', ""),
        ('<link name="l"><sensor name="s" type="imu"><plugin filename="libmotor.so" name="p"/></sensor></link>', ""),
    ],
)
def test_model_with_actuators_and_no_motion_warns(load: Load, wrap_in_world: Text, content: str, first: str) -> None:
    world = load(wrap_in_world(make_robot(content)))
    assert world.models[0].actuators[:1] == ((first,) if first else ())
    warned = [note for note in world.notes if note.model]
    assert [(note.kind, note.what) for note in warned] == ([("warning", "model robot")] if first else [])
    for note in warned:
        assert note.reason.startswith(f"stationary, although it has {first}")
        assert note.where is not None


@pytest.mark.parametrize("content", ["<static>true</static>", MOTION])
def test_static_or_moving_model_has_no_warning(load: Load, wrap_in_world: Text, content: str) -> None:
    assert not [note for note in load(wrap_in_world(make_robot(DRIVE + content))).notes if note.model]


@pytest.mark.parametrize(
    ("part", "actuator"),
    [
        ('<transmission name="t"><joint name="j"/></transmission>', "<transmission> t"),
        ('<ros2_control name="arm" type="system"/>', "<ros2_control> arm"),
        ("", "joint j"),
        (PAIR, "<transmission> pair"),
        (WHEELS, "<ros2_control> base"),
        ('<gazebo><transmission name="t"><joint name="j"/></transmission></gazebo>', "<transmission> t"),
        (f"<gazebo>{DRIVE}</gazebo>", "plug-in gz-sim-diff-drive-system"),
    ],
)
def test_urdf_robot_with_actuators_warns(tmp_path: Path, part: str, actuator: str) -> None:
    effort = 0 if part else 3
    file = tmp_path / "arm.urdf"
    file.write_text(
        f'<robot name="arm"><link name="a"/><link name="b"/><joint name="j" type="revolute"><parent link="a"/>'
        f'<child link="b"/><limit effort="{effort}" velocity="1" lower="0" upper="1"/></joint>{part}</robot>',
        encoding="utf-8",
    )
    assert ns.load(file).models[0].actuators == (actuator,)


@pytest.mark.parametrize(
    "part",
    [
        PAIR.replace("EffortJointInterface", "JointStateInterface"),
        WHEELS.replace("command_interface", "state_interface"),
        WHEELS.replace('type="system"', 'type="sensor"'),
    ],
)
def test_part_that_only_measures_is_no_actuator(tmp_path: Path, part: str) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(f'<robot name="arm"><link name="a"/>{part}</robot>', encoding="utf-8")
    assert ns.load(file).models[0].actuators == ()


@pytest.fixture
def files(tmp_path: Path, wrap_in_world: Text) -> tuple[str, str]:
    """Return a world whose one model could move, and a log of its motion."""
    world, log = tmp_path / "yard.sdf", tmp_path / "log.tum"
    world.write_text(wrap_in_world(make_robot(DRIVE)), encoding="utf-8")
    log.write_text(LOG, encoding="utf-8")
    return str(world), str(log)


def test_command_line_warns_without_a_motion(files: tuple[str, str], tmp_path: Path) -> None:
    world, log = files
    out = ["--duration", "2", "-o", str(tmp_path / "out.npz")]
    for arguments in (["check", world], ["run", world, *out], ["describe", world]):
        assert "model robot: stationary, although it has" in CliRunner().invoke(cli, arguments).output
    for arguments in (["run", world, "--motion", log, *out], ["describe", world, "--motion", log]):
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 0
        assert "although it has" not in result.output


def test_describe_shows_the_motion_from_the_command_line(files: tuple[str, str]) -> None:
    world, log = files
    lines = CliRunner().invoke(cli, ["describe", world, "--motion", log, "-v"]).output.splitlines()
    (line,) = [line for line in lines if "robot:" in line and "base" in line and "links" in line]
    assert line.startswith("  robot: follows --motion (log not smoothed")
    assert not [line for line in lines if "stationary" in line]
    problems = CliRunner().invoke(cli, ["describe", world, "--motion", f"boat={log}"])
    assert "boat; must be one of robot" in str(problems.exception)


@pytest.mark.parametrize("suffix", [".npz", ".mcap", ".parquet", ".bag"])
def test_report_of_a_recording_warns_about_a_stationary_model(
    files: tuple[str, str], tmp_path: Path, suffix: str
) -> None:
    world = ns.load(files[0])
    for motion, warned in ((None, True), (Stationary(), False)):
        recording, page = tmp_path / f"dive{suffix}", tmp_path / "page.html"
        ns.record(world, recording, 1.0, motion=motion, epoch=1)
        (tmp_path / "yard.sdf").unlink(missing_ok=True)
        write(str(recording), str(page))
        text = page.read_text(encoding="utf-8")
        assert ("stationary, although it has plug-in gz-sim-diff-drive-system" in text) == warned
        assert ("No warnings:" in text) != warned
