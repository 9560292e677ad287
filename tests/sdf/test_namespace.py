"""ROS namespaces of plug-ins: that of the plug-in, of the caller, of a DVL for its beams, and absolute topics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import navsense as ns
from navsense.cli import cli
from navsense.core.errors import SdfError
from navsense.world import World

Load = Callable[..., World]
Text = Callable[[str], str]


def make_range(name: str, plugin: str, yaw: float = 0.0) -> str:
    """Return a link with a range sensor, whose beam points down and to `yaw` (rad); `plugin` is in its plug-in."""
    return f"""<link name="{name}"><pose>0 0 0 0 1.05 {yaw}</pose>
<sensor name="{name}" type="ray"><update_rate>7</update_rate>
<ray><scan><horizontal><samples>1</samples><min_angle>0</min_angle><max_angle>0</max_angle></horizontal></scan>
<range><min>0.5</min><max>80</max></range></ray>
<plugin name="{name}" filename="libgazebo_ros_range.so">{plugin}</plugin></sensor></link>"""


def make_robot(
    beam: str = "<topicName>dvl_sonar{}</topicName>",
    dvl: str = "<robot_namespace>auv</robot_namespace>",
    topic: str = "dvl_sonar{}",
) -> str:
    """Return a model with a DVL of the UUV Simulator; `beam` is in the range plug-in of each beam."""
    beams = "".join(make_range(f"s{i}", beam.format(i), 1.57 * i) for i in range(4))
    links = "".join(f"<beam_link_name_{i}>s{i}</beam_link_name_{i}>" for i in range(4))
    topics = "".join(f"<beam_topic_{i}>{topic.format(i)}</beam_topic_{i}>" for i in range(4))
    joined = f'<plugin name="dvl" filename="libuuv_gazebo_ros_dvl_plugin.so">{dvl}<link_name>base</link_name>'
    return f"""<model name="auv"><link name="base"/>{beams}{joined}<sensor_topic>dvl</sensor_topic>{links}{topics}
</plugin></model>"""


def list_topics(world: World) -> list[str]:
    """Return the topics of a world, beams first."""
    return [sensor.topic for sensor in world.sensors]


def expect(namespace: str) -> list[str]:
    """Return the topics of the robot in one namespace."""
    return [*(f"{namespace}/dvl_sonar{i}" for i in range(4)), f"{namespace}/dvl"]


BEAM = "<topicName>dvl_sonar{}</topicName>"
ABSOLUTE = "<topicName>/dvl_sonar{}</topicName>"
IN_AUV = "<robotNamespace>auv</robotNamespace>"


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize(
    ("robot", "namespace", "topics"),
    [
        # The macros of the UUV Simulator: only the DVL has a namespace.
        (make_robot(), None, expect("/auv")),
        (make_robot(), "auv", expect("/auv")),
        # DAVE's macros write the namespace into the topic.
        (make_robot("<topicName>auv/dvl_sonar{}</topicName>"), None, expect("/auv")),
        # The spawner's element, in the range plug-ins or in the DVL.
        (make_robot(IN_AUV + BEAM), None, expect("/auv")),
        (make_robot(dvl=IN_AUV), None, expect("/auv")),
        (make_robot(dvl="<robotNamespace>/auv/</robotNamespace>"), None, expect("/auv")),
        (make_robot(dvl=f"{IN_AUV}<robot_namespace>fleet/auv</robot_namespace>"), None, expect("/fleet/auv")),
        (make_robot(dvl=""), "/fleet/auv", expect("/fleet/auv")),
        # The namespace of the plug-in has priority over that of the caller.
        (make_robot(IN_AUV + BEAM), "fleet", expect("/auv")),
        # An absolute topic is not in a namespace.
        (make_robot(ABSOLUTE, topic="/dvl_sonar{}"), None, [*expect("")[:4], "/auv/dvl"]),
        (make_robot(IN_AUV + ABSOLUTE, topic="/dvl_sonar{}"), "fleet", [*expect("")[:4], "/auv/dvl"]),
    ],
)
def test_beams_have_the_topics_that_the_dvl_expects(
    load: Load, wrap_in_world: Text, robot: str, namespace: str | None, topics: list[str]
) -> None:
    assert list_topics(load(wrap_in_world(robot), namespace=namespace)) == topics


@pytest.mark.requirement("DVU-9")
def test_namespaces_that_differ_are_an_error_with_a_remedy(
    list_problems: Callable[..., list[str]], wrap_in_world: Text
) -> None:
    (problem, *_) = list_problems(wrap_in_world(make_robot()), namespace="fleet")
    assert problem.endswith(
        "<plugin><beam_topic_0>: /auv/dvl_sonar0; must be the topic of the range sensor on s0: /fleet/dvl_sonar0; "
        "the DVL has the namespace auv: give --namespace auv, or omit --namespace"
    )
    (problem, *_) = list_problems(wrap_in_world(make_robot("<robotNamespace>x</robotNamespace>" + BEAM)))
    assert problem.endswith("give the namespace of its range plug-in: <robotNamespace> or --namespace")
    misspelt = make_robot().replace("<topicName>dvl_sonar0", "<topicName>dvl_sonr0")
    (problem, *_) = list_problems(wrap_in_world(misspelt), namespace="auv")
    assert problem.endswith("range sensor on s0: /auv/dvl_sonr0; did you mean /auv/dvl_sonr0?")
    (missing,) = list_problems(wrap_in_world(make_robot(dvl="")))
    assert missing.endswith("<plugin><robot_namespace>: missing; must be given; or give the namespace with --namespace")


@pytest.mark.requirement("DVU-9")
def test_range_sensor_without_a_dvl_is_in_the_namespace_of_the_caller(load: Load, wrap_in_world: Text) -> None:
    """As with Gazebo's spawner. Without a namespace the topic stays as it is."""
    robot = f'<model name="car">{make_range("front", "<topicName>sonar</topicName>")}</model>'
    assert list_topics(load(wrap_in_world(robot))) == ["/sonar"]
    assert list_topics(load(wrap_in_world(robot), namespace="car/left")) == ["/car/left/sonar"]


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize("text", ["", "/", "a b", "a//b", "~", "a~b", "ä", "1a", "a/1b", "_a", "../x", "{ns}", "a%00b"])
def test_invalid_namespace_is_an_error(load: Load, wrap_in_world: Text, text: str) -> None:
    with pytest.raises(SdfError, match=r"namespace: .*; must be a ROS namespace: letters, digits, _ and / between"):
        load(wrap_in_world(make_robot()), namespace=text)


PX4_MAGNETOMETER = (
    '<model name="m"><link name="base"/><plugin name="p" filename="libgazebo_magnetometer_plugin.so">'
    "<robotNamespace>{}</robotNamespace></plugin></model>"
)
ROS1_IMU = PX4_MAGNETOMETER.replace("libgazebo_magnetometer_plugin", "libhector_gazebo_ros_imu")
ROS2_IMU = """<model name="m"><link name="base"><sensor name="s" type="imu"><plugin name="p"
filename="libgazebo_ros_imu_sensor.so"><ros><namespace>{}</namespace></ros></plugin></sensor></link></model>"""
DIFF_DRIVE = """<model name="m"><link name="base"/><plugin name="p" filename="libgazebo_ros_diff_drive.so">
<ros><namespace>{}</namespace></ros></plugin></model>"""


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize(
    ("robot", "text", "rule"),
    [
        *((ROS1_IMU, text, ", beginning with a letter") for text in ("1a", "a b", "ä", "{ns}", "a/../b", "_a")),
        *((ROS2_IMU, text, ", no digit after a /") for text in ("1a", "a/1b", "/a/", "a//b", "~/a", "ä", "a-b")),
        (DIFF_DRIVE, "1a", ", no digit after a /"),
    ],
)
def test_invalid_namespace_of_a_plug_in_is_an_error(
    list_problems: Callable[..., list[str]], wrap_in_world: Text, robot: str, text: str, rule: str
) -> None:
    """The constructor of a node of ROS raises an exception, so the plug-in does not start."""
    (problem,) = list_problems(wrap_in_world(robot.format(text)))
    assert f"amespace>: {text}; must be a ROS namespace: letters, digits, _ and / between them{rule}; " in problem
    assert problem.endswith("the plug-in does not start with this name; give another one")


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize(
    ("robot", "text"),
    [
        *((ROS1_IMU, text) for text in ("", "/", "/a/", "a/1", "a//b", "~/a", "a_")),
        *((ROS2_IMU, text) for text in ("", "/", "/a", "_a/b1", "A")),
        (DIFF_DRIVE, "/a"),
    ],
)
def test_valid_namespace_of_a_plug_in_is_accepted(load: Load, wrap_in_world: Text, robot: str, text: str) -> None:
    assert load(wrap_in_world(robot.format(text))).models


@pytest.mark.requirement("DVU-9")
def test_tilde_is_the_node_of_gazebo(load: Load, wrap_in_world: Text) -> None:
    """In ROS 1, all plug-ins of Gazebo are in one node."""
    assert list_topics(load(wrap_in_world(ROS1_IMU.format("~/a")))) == ["/gazebo/a/imu"]


@pytest.mark.requirement("DVU-9")
def test_namespace_of_a_plug_in_without_ros_is_a_warning(load: Load, wrap_in_world: Text) -> None:
    """PX4's plug-ins use the transport of Gazebo, whose names may have any character."""
    world = load(wrap_in_world(PX4_MAGNETOMETER.format("1a")))
    assert list_topics(world) == ["/1a/mag"]
    reasons = [note.reason for note in world.notes if note.what == "<plugin><robotNamespace>: 1a"]
    assert reasons == ["is not a ROS namespace: programs of ROS cannot subscribe to the topic"]


def test_topic_that_changes_gives_a_warning_with_both_names(load: Load, wrap_in_world: Text) -> None:
    robots = {
        ROS1_IMU.format("bot</robotNamespace><topicName>bad topic name</topicName><robotNamespace>").replace(
            "<robotNamespace></robotNamespace>", ""
        ): ("/bot/bad topic name", "/bot/bad_topic_name"),
        """<model name="m"><link name="base"><sensor name="s" type="imu"><topic>a@b c</topic></sensor></link>
        </model>""": ("a@b c", "/ab_c"),
        """<model name="m"><link name="base"/><plugin name="p"
        filename="libuuv_gazebo_ros_subsea_pressure_plugin.so"><link_name>base</link_name><sensor_topic>my depth
        </sensor_topic></plugin></model>""": ("/my depth", "/my_depth"),
    }
    for robot, (text, topic) in robots.items():
        world = load(wrap_in_world(robot))
        assert list_topics(world) == [topic]
        (note,) = (note for note in world.notes if "has invalid characters" in note.reason)
        assert note.what.endswith(f"topic>: {text}")
        assert note.reason == f"has invalid characters: the topic is {topic}"
    plain = load(wrap_in_world(ROS1_IMU.format("bot")))
    assert not any("invalid characters" in note.reason for note in plain.notes)


@pytest.mark.requirement("DVU-9")
def test_commands_accept_a_namespace(tmp_path: Path, wrap_in_world: Text) -> None:
    """The recorded topics are those of the namespace; a recording needs no further option."""
    path, output = tmp_path / "sea.sdf", tmp_path / "sea.mcap"
    path.write_text(wrap_in_world(make_robot(dvl="")), encoding="utf-8")
    options = [str(path), "--namespace", "fleet"]
    run = CliRunner()
    assert run.invoke(cli, ["check", str(path)]).exit_code == 2
    assert run.invoke(cli, ["check", *options]).stdout.splitlines()[-1].endswith("1 model, 5 sensors, 0 clocks")
    assert "/fleet/dvl_sonar3" in run.invoke(cli, ["describe", "--verbose", *options]).stdout
    result = run.invoke(cli, ["run", *options, "--duration", "1", "--output", str(output)])
    assert result.exit_code == 0, result.output
    assert list_topics(ns.open(output).world) == expect("/fleet")
