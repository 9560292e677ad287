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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense import sdf
from navsense.core.pose import Pose
from navsense.noise.specification import NO_NOISE, Noise
from navsense.runner.run import Run
from navsense.sensors import Imu, Magnetometer
from navsense.world import MountedSensor, World

pytestmark = pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="needs the extra xacro")

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
        (folder / robot).mkdir()
        arguments = "".join(f'<xacro:arg name="{name}" default=""/>' for name in LAUNCH[robot])
        properties = "".join(f'<xacro:property name="{name}" value="$(arg {name})"/>' for name in LAUNCH[robot])
        body = f"""{arguments}{properties}
<xacro:include filename="$(find uuv_sensor_ros_plugins)/urdf/sensor_snippets.xacro"/>
<link name="${{namespace}}/base_link"/>
{"".join(calls)}"""
        (folder / robot / f"{robot}.xacro").write_text(f"{HEADER.format(robot)}{body}</robot>", encoding="utf-8")
    return folder


def find_robot(packages: Path, robot: str) -> Path:
    """Return the file of a robot."""
    if robot == "desistek_saga":
        return packages / "desistek_saga_description/robots/desistek_saga_default.xacro"
    return packages / robot / f"{robot}.xacro"


SPEED = (0.5, 0.2, 0.0)
"""m/s along the axes of the world: east, north, up."""

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


def simulate(world: World, robot: str) -> Run:
    """Return a run of 60 s with a constant velocity."""
    times = np.linspace(0.0, 60.0, 61)
    positions = np.array([0.0, 0.0, -20.0]) + times[:, None] * np.array(SPEED)
    rotations = np.tile([1.0, 0.0, 0.0, 0.0], (times.size, 1))
    motion = ns.motion.Trajectory(times, positions, rotations)
    return ns.simulate(world, 60.0, seed=3, motion={robot: motion})


def find(world: World, ending: str) -> MountedSensor:
    """Return the sensor whose topic has an ending."""
    (sensor,) = (sensor for sensor in world.sensors if sensor.topic.endswith(ending))
    return sensor
