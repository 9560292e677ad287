"""The robots of the UUV Simulator: their macros with the published values of their sensors, each in a run of 60 s.

The macros are the original files. The robots here call them as the `*_sensors.xacro` of each robot does, with the
arguments of its `upload_*.launch`. Sources, Apache-2.0:

- rexrov: uuvsimulator/uuv_simulator, `uuv_descriptions/urdf/rexrov_sensors.xacro` and
  `launch/upload_rexrov_default.launch`, 9baba95
- rexrov2: uuvsimulator/rexrov2, `rexrov2_description/xacro/rexrov2_sensors.xacro`, 5633316, and
  `launch/upload_rexrov2.launch`, 602a9f4
- eca_a9: uuvsimulator/eca_a9, `eca_a9_description/urdf/eca_a9_sensors.xacro`, b5ab466, and
  `launch/upload_eca_a9.launch`, 3fe1ac5
- desistek_saga: the original robot, `desistek_saga_description`

Files that are not at hand (cameras, thrusters, common properties) are replaced by macros without a sensor.
"""

from __future__ import annotations

import importlib.util
import math
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import navsense as ns
from navsense import sdf
from navsense.cli import cli
from navsense.core.readings import Reading
from navsense.core.typing import FloatArray
from navsense.world import World

pytestmark = pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="needs the extra xacro")

ROOT = Path(__file__).resolve().parents[2]

Text = Callable[..., str]
Load = Callable[..., World]

SNIPPETS = ("dvl", "imu", "magnetometer", "pressure", "gps_sensor", "pose_3d", "rpt", "sonar")
"""The original files of macros, without `_snippets.xacro`."""

OTHER_MACROS = {
    "uuv_sensor_ros_plugins/urdf/sensor_snippets.xacro": "".join(
        f'<xacro:include filename="$(find uuv_sensor_ros_plugins)/urdf/{name}_snippets.xacro"/>'
        for name in (*SNIPPETS, "other")
    ),
    "uuv_sensor_ros_plugins/urdf/other_snippets.xacro": """
<xacro:macro name="regular_camera_plugin_macro" params="namespace suffix parent_link topic mass update_rate hfov width
  height stddev scale *inertia *origin"/>
<xacro:macro name="default_chemical_concentration_sensor" params="namespace parent_link *origin">
  <gazebo><plugin name="particle_concentration" filename="libuuv_gazebo_ros_cpc_plugin.so">
    <robot_namespace>${namespace}</robot_namespace><link_name>${namespace}/base_link</link_name>
    <sensor_topic>particle_concentration</sensor_topic><gamma>0.001</gamma><radius>3.0</radius></plugin></gazebo>
</xacro:macro>""",
    "uuv_descriptions/urdf/common.urdf.xacro": '<xacro:property name="d2r" value="0.01745329"/>',
    "uuv_gazebo_ros_plugins/urdf/snippets.xacro": """
<xacro:macro name="thruster_module_first_order_basic_fcn_macro" params="namespace thruster_id *origin mesh_filename
  dyn_time_constant rotor_constant">
  <link name="${namespace}/thruster_${thruster_id}"/>
  <joint name="${namespace}/thruster_${thruster_id}_joint" type="continuous"><xacro:insert_block name="origin"/>
    <axis xyz="1 0 0"/><parent link="${namespace}/base_link"/><child link="${namespace}/thruster_${thruster_id}"/>
  </joint>
  <gazebo><plugin name="thruster_${thruster_id}" filename="libuuv_thruster_ros_plugin.so">
    <jointName>${namespace}/thruster_${thruster_id}_joint</jointName></plugin></gazebo>
</xacro:macro>
<xacro:macro name="default_joint_state_publisher" params="namespace update_rate">
  <gazebo><plugin name="joint_state_publisher" filename="libuuv_joint_state_publisher.so">
    <robotNamespace>${namespace}</robotNamespace><updateRate>${update_rate}</updateRate></plugin></gazebo>
</xacro:macro>""",
}
"""File in the packages -> our own content."""


def call(macro: str, xyz: str = "", **arguments: str) -> str:
    """Return the call of a macro for the base link, with the `<origin>` of a sensor."""
    values = {"namespace": "${namespace}", "parent_link": "${namespace}/base_link", **arguments}
    attributes = " ".join(f'{name}="{value}"' for name, value in values.items())
    rpy = "0 ${0.5*pi} 0" if "dvl" in macro else "0 0 0"
    origin = f'<origin xyz="{xyz}" rpy="{rpy}"/>' if xyz else ""
    return f"<xacro:{macro} {attributes}>{origin}</xacro:{macro}>"


FRAME = {"inertial_reference_frame": "${inertial_reference_frame}"}
ECA_DVL = {"suffix": "", "topic": "dvl", "scale": "0.62", "noise_sigma": "0", "noise_amplitude": "0"}

SENSORS = {
    "rexrov": [
        call("default_dvl_macro", "-1.4 0 -0.312", **FRAME),
        call("default_magnetometer"),
        call("default_rpt", "-1.32 0 0.8"),
        call("default_pressure_macro", "-1.32 0.5 0.85"),
        call("default_imu_macro", "0 0 0", **FRAME),
        call("default_gps"),
        call("default_pose_3d_macro", **FRAME),
    ],
    "rexrov2": [
        call("default_dvl_macro", "0.294307 0.468494 -0.68", **FRAME),
        call("default_magnetometer"),
        call("default_rpt", "-1.32 0 0.8"),
        call("default_pressure_macro", "-1.32 0.5 0.85"),
        call("default_imu_macro", "0 0 0", **FRAME),
        call("default_gps"),
        call("default_pose_3d_macro", **FRAME),
        call("default_chemical_concentration_sensor", "0 0 0"),
    ],
    "eca_a9": [
        call("default_pose_3d_macro", **FRAME),
        call("dvl_plugin_macro", "0.4785 0.0 -0.0825", **ECA_DVL, update_rate="7", reference_frame="world"),
        call("sidescan_sonar", "0.41225 0.1498 -0.04615", suffix="left"),
        call("sidescan_sonar", "0.41225 -0.1498 -0.04615", suffix="right"),
        call("default_pressure", "0 0 0"),
        call("default_imu", "0 0 0"),
        call("default_gps"),
        call("default_chemical_concentration_sensor", "0 0 0"),
    ],
}
"""Robot -> its sensors, cameras and batteries excepted."""

LAUNCH = {
    "rexrov": {"debug": "0", "namespace": "rexrov", "inertial_reference_frame": "world"},
    "rexrov2": {"debug": "0", "namespace": "rexrov2", "inertial_reference_frame": "world"},
    "eca_a9": {"debug": "0", "namespace": "eca_a9", "inertial_reference_frame": "world_ned"},
    "desistek_saga": {"debug": "0", "namespace": "desistek_saga"},
}
"""Robot -> the arguments of xacro in its launch file. All have the position 0 0 -20."""

DVL_POSITIONS = {
    "rexrov": (-1.4, 0.0, -0.312),
    "rexrov2": (0.294307, 0.468494, -0.68),
    "eca_a9": (0.4785, 0.0, -0.0825),
}
PRESSURE_HEIGHTS = {"rexrov": 0.85, "rexrov2": 0.85, "eca_a9": 0.0}
"""Published places in the base link (m)."""

HEADER = '<robot name="{}" xmlns:xacro="http://www.ros.org/wiki/xacro">'


@pytest.fixture
def packages(shared_data: Path, tmp_path: Path) -> Path:
    """Return a folder with the packages of the robots."""
    folder, originals = tmp_path / "packages", shared_data / "uuv"
    (folder / "uuv_sensor_ros_plugins/urdf").mkdir(parents=True)
    for name in SNIPPETS:
        file = f"uuv_sensor_ros_plugins/urdf/{name}_snippets.xacro"
        (folder / file).symlink_to(originals / file)
    (folder / "desistek_saga_description").symlink_to(originals / "desistek_saga_description")
    for file, content in OTHER_MACROS.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(f"{HEADER.format('macros')}{content}</robot>", encoding="utf-8")
    for robot, calls in SENSORS.items():
        arguments = "".join(f'<xacro:arg name="{name}" default=""/>' for name in LAUNCH[robot])
        properties = "".join(f'<xacro:property name="{name}" value="$(arg {name})"/>' for name in LAUNCH[robot])
        body = f"""{arguments}{properties}
<xacro:include filename="$(find uuv_sensor_ros_plugins)/urdf/sensor_snippets.xacro"/>
<link name="${{namespace}}/base_link"/>
{"".join(calls)}"""
        target = find_robot(folder, robot)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{HEADER.format(robot)}{body}</robot>", encoding="utf-8")
    return folder


def find_robot(packages: Path, robot: str) -> Path:
    """Return the file of a robot, with its published name."""
    package = "uuv_descriptions" if robot == "rexrov" else f"{robot}_description"
    ending = ".urdf.xacro" if robot == "eca_a9" else ".xacro"
    return packages / package / "robots" / f"{robot}_default{ending}"


SPEED = (0.5, 0.2, 0.0)
"""m/s along the axes of the world: east, north, up."""

YAW = 0.6
"""rad, counter-clockwise from east."""

WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="sea">
<spherical_coordinates><latitude_deg>56.71897669633431</latitude_deg><longitude_deg>3.515625</longitude_deg>
<elevation>0</elevation></spherical_coordinates><gravity>0 0 -9.8</gravity>
<include><uri>{}</uri><pose>0 0 -20 0 0 0</pose></include>
<model name="seabed"><static>true</static><link name="bed"><collision name="bed"><geometry>
<plane><normal>0 0 1</normal><size>1000 1000</size></plane></geometry></collision></link><pose>0 0 -60 0 0 0</pose>
</model></world></sdf>"""
"""The place is that of `ocean_waves.world`."""


@pytest.fixture
def load_robot(packages: Path, tmp_path: Path) -> Callable[..., World]:
    """Return a function that loads a robot in a world, as its launch file spawns it."""

    def load(robot: str, **options: Any) -> World:
        (tmp_path / "sea.sdf").write_text(WORLD.format(find_robot(packages, robot)), encoding="utf-8")
        arguments = {**LAUNCH[robot], **options.pop("xacro", {})}
        defaults = {"path": str(packages), "expand_xacro": True, "missing": "skip"}
        return sdf.load(tmp_path / "sea.sdf", xacro=arguments, **{**defaults, **options})

    return load


def simulate(world: World, robot: str) -> Mapping[str, Reading]:
    """Return the readings of a run of 60 s with a constant velocity, by topic."""
    start = [0.0, 0.0, -20.0, math.cos(YAW / 2.0), 0.0, 0.0, math.sin(YAW / 2.0)]
    motion = ns.motion.Trajectory(np.array([0.0, 60.0]), np.array([[[*SPEED, 0.0, 0.0, 0.0, 0.0], start]]))
    run = ns.simulate(world, 60.0, seed=3, motion={robot: motion})
    return {sensor.topic: run[sensor.name] for sensor in world.sensors}


def rotate_to_link(vector: tuple[float, float, float]) -> FloatArray:
    """Return a vector of the world in the base link, by the matrix of a rotation about z."""
    c, s = math.cos(YAW), math.sin(YAW)
    return np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ np.array(vector)


TOPICS = {
    "rexrov": {"dvl": 7.0, **{f"dvl_sonar{i}": 7.0 for i in range(4)}, "magnetometer": 50.0, "pressure": 10.0},
    "rexrov2": {"dvl": 7.0, **{f"dvl_sonar{i}": 7.0 for i in range(4)}, "magnetometer": 50.0, "pressure": 10.0},
    "eca_a9": {"dvl": 7.0, **{f"dvl_sonar{i}": 7.0 for i in range(4)}, "pressure": 10.0},
    "desistek_saga": {},
}
"""Robot -> rates (Hz) by topic in its namespace, in addition to an IMU of 50 Hz and a GPS of 30 Hz."""


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize("robot", TOPICS)
def test_robot_runs_with_every_navigation_sensor(load_robot: Load, robot: str) -> None:
    world = load_robot(robot)
    rates = {f"/{robot}/{topic}": rate for topic, rate in {**TOPICS[robot], "imu": 50.0, "gps": 30.0}.items()}
    assert {sensor.topic: sensor.rate for sensor in world.sensors} == rates
    assert [note for note in world.notes if note.reason == "not simulated"] == []
    readings = simulate(world, robot)
    for topic, rate in rates.items():
        reading = readings[topic]
        assert reading.time.size == 60.0 * rate, topic
        assert reading.valid[1:].all(), topic  # the echoes of the first ping arrive after its tick
        assert reading.frame.startswith(f"{robot}/"), topic
    imu = readings[f"/{robot}/imu"]
    assert imu.ideal["angular_velocity"] == pytest.approx(np.zeros((3000, 3)), abs=1e-12)
    assert imu.ideal["linear_acceleration"] == pytest.approx(np.tile([0.0, 0.0, 9.8], (3000, 1)), abs=1e-9)
    gps = readings[f"/{robot}/gps"]
    assert gps.frame == f"{robot}/gps_link"
    # Metres per radian of the WGS-84 ellipsoid at the origin; the curvature over 33 m is below 0.1 mm.
    latitude, longitude = math.radians(56.71897669633431), math.radians(3.515625)
    eccentricity = 6.69437999014e-3
    prime = 6378137.0 / math.sqrt(1.0 - eccentricity * math.sin(latitude) ** 2)
    meridian = prime * (1.0 - eccentricity) / (1.0 - eccentricity * math.sin(latitude) ** 2)
    east, north = SPEED[0] * gps.time, SPEED[1] * gps.time
    height = -20.0
    assert (gps["longitude"] - longitude) * (prime + height) * math.cos(latitude) == pytest.approx(east, abs=1e-3)
    assert (gps["latitude"] - latitude) * (meridian + height) == pytest.approx(north, abs=1e-3)
    assert gps["altitude"] == pytest.approx(np.full(gps.time.size, height), abs=1e-3)


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize("robot", SENSORS)
def test_dvl_and_pressure_have_published_values(load_robot: Load, robot: str) -> None:
    """The link of the DVL is turned by 90 degrees: its x axis points down, its z axis ahead."""
    readings = simulate(load_robot(robot), robot)
    dvl, pressure = readings[f"/{robot}/dvl"], readings[f"/{robot}/pressure"]
    x, y, z = rotate_to_link(SPEED)
    assert dvl["velocity"][2:] == pytest.approx(np.tile([-z, y, x], (dvl.time.size - 2, 1)), abs=1e-9)
    assert dvl.frame == f"{robot}/dvl_link"
    # The beams have a half width of 0.03 rad and the noise of the range plug-ins, 0.005 m, rounded to 0.01 m. The mean
    # over the run has 5 deviations of room.
    altitude, level = 40.0 + DVL_POSITIONS[robot][2], math.cos(0.52)
    slack = 5.0 * math.hypot(0.005, 0.01 / math.sqrt(12.0)) / 2.0 / math.sqrt(dvl.time.size) + 1e-4
    least, most = altitude * level / math.cos(0.49) - slack, altitude * level / math.cos(0.55) + slack
    assert least < dvl["altitude"][2:].mean() < most
    # kPa of the plug-in: standard_pressure + kPa_per_meter depth.
    expected = 1000.0 * (101.325 + 9.80638 * (20.0 - PRESSURE_HEIGHTS[robot]))
    assert pressure["pressure"] == pytest.approx(np.full(600, expected), rel=1e-12, abs=0.0)
    assert pressure.frame == f"{robot}/pressure_link"


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize("robot", ["rexrov", "rexrov2"])
def test_magnetometer_measures_the_field_of_the_plug_in(load_robot: Load, robot: str) -> None:
    """65 microtesla, 60 degrees down, along -x of the world; noise_amplitude 0 switches the noise off."""
    world = load_robot(robot)
    reading = simulate(world, robot)[f"/{robot}/magnetometer"]
    field = rotate_to_link((-32.5e-6, 0.0, -65e-6 * math.sqrt(0.75)))
    assert reading["field"] == pytest.approx(np.tile(field, (3000, 1)), abs=1e-15)
    assert reading.frame == f"{robot}/magnetometer_link"
    (note,) = (note for note in world.notes if "magnetometer_plugin.so" in note.what)
    assert note.reason == "its field is that of the world, -32.5 0 -56.292 uT; the world has no <magnetic_field>"


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize("robot", ["rexrov", "rexrov2", "desistek_saga"])
def test_imu_in_the_ned_frame(load_robot: Load, robot: str) -> None:
    """With `use_ned_frame`, axes are forward, right, down, and the heading counts from north."""
    world = load_robot(robot, xacro={"inertial_reference_frame": "world_ned"})
    reading = simulate(world, robot)[f"/{robot}/imu"]
    assert reading.frame == f"{robot}/imu_link_ned"
    assert reading.ideal["linear_acceleration"] == pytest.approx(np.tile([0.0, 0.0, -9.8], (3000, 1)), abs=1e-9)
    heading = math.pi / 2.0 - YAW
    orientation = reading["orientation"] * np.sign(reading["orientation"][:, :1])
    expected = [math.cos(heading / 2.0), 0.0, 0.0, math.sin(heading / 2.0)]
    assert orientation == pytest.approx(np.tile(expected, (3000, 1)), abs=1e-9)


@pytest.mark.requirement("DVU-9")
def test_robot_without_a_world_loads(packages: Path) -> None:
    """Its GPS is listed: a robot has no place on earth."""
    world = sdf.load(find_robot(packages, "rexrov"), path=str(packages), xacro=LAUNCH["rexrov"])
    assert {sensor.topic.removeprefix("/rexrov/") for sensor in world.sensors} == {*TOPICS["rexrov"], "imu"}
    (note,) = (note for note in world.notes if note.what.startswith('<sensor type="gps">'))
    assert "no place on earth" in note.reason


@pytest.mark.requirement("DVU-9")
def test_sensors_that_are_not_simulated_are_warnings(load_robot: Load) -> None:
    notes = {note.what: note for note in load_robot("rexrov2").notes if "filename=" in note.what}
    reasons = {
        file: next((note.kind, note.reason) for what, note in notes.items() if file in what)
        for file in ("ros_rpt_plugin", "ros_pose_gt_plugin", "ros_cpc_plugin")
    }
    scanner = "scanners are not simulated, only beams: "
    for robot, count in (("eca_a9", 2), ("desistek_saga", 1)):
        found = [note for note in load_robot(robot).notes if note.what.startswith('<sensor type="gpu_ray">')]
        assert [note.reason.startswith(scanner) for note in found] == [True] * count
    assert reasons == {
        "ros_rpt_plugin": ("warning", "acoustic positioning is not simulated"),
        "ros_pose_gt_plugin": ("unsupported", "the true state of each model is recorded on /truth/MODEL"),
        "ros_cpc_plugin": ("warning", "concentrations in the water are not simulated"),
    }


@pytest.mark.requirement("DVU-9")
def test_recording_of_a_robot_is_complete(load_robot: Load, tmp_path: Path) -> None:
    """The world of the recording has the same sensors: topics, frames, poses and specifications."""
    world = load_robot("rexrov", xacro={"inertial_reference_frame": "world_ned"})
    ns.record(world, tmp_path / "dive.mcap", 2.0, seed=1)
    recorded = {sensor.name: sensor for sensor in ns.open(tmp_path / "dive.mcap").world.sensors}
    for sensor in world.sensors:
        other = recorded[sensor.name]
        assert (other.topic, other.frame, other.pose, other.spec) == (
            sensor.topic,
            sensor.frame,
            sensor.pose,
            sensor.spec,
        )


@pytest.mark.requirement("DVU-9")
def test_commands_of_the_guide_run(packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the robot, the run of 60 s in the world of the guide, and its report."""
    text = (ROOT / "docs/how-to/uuv-simulator.md").read_text(encoding="utf-8")
    (world,) = re.findall(r"^:caption: sea.sdf\n\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (log,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^```shell\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert packages == tmp_path / "packages"
    monkeypatch.chdir(tmp_path)
    Path("sea.sdf").write_text(world, encoding="utf-8")
    exec(compile(log, "log", "exec"), {})  # noqa: S102 - code of our own page
    for command in commands:
        program, *arguments = shlex.split(command.replace("\\\n", " "))
        result = CliRunner().invoke(cli, arguments)
        assert (program, result.exit_code) == ("navsense", 0), result.output
    recording = ns.open("dive.mcap")
    counts = {sensor.topic: recording[sensor.name].time.size for sensor in recording.world.sensors}
    expected = {f"/rexrov/{topic}": 60 * rate for topic, rate in {**TOPICS["rexrov"], "imu": 50, "gps": 30}.items()}
    # The echoes of the last ping would arrive after the end.
    assert counts == {**expected, "/rexrov/dvl": 419}
