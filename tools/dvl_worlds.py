"""The worlds of docs/explanation/dvl.md: a sea with a bed, one vehicle, and a DVL in each of the dialects."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import navsense as ns
from navsense.motion.trajectory import Trajectory
from navsense.world import World

RATE = 7.0
"""Rate (Hz) of the examples of the two plug-ins."""

SEA = """\
<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf">
  <world name="sea">
{around}
    <model name="auv">
      <link name="base">
{sensors}
      </link>
{more}
    </model>
  </world>
</sdf>
"""

BODY = """\
    <model name="{name}">
      <static>true</static>
      <pose>{pose}</pose>
      <link name="bed"><collision name="c"><geometry>{shape}</geometry></collision></link>
    </model>"""

OWN = """\
<sensor name="own" type="dvl">
  <update_rate>7</update_rate>
  <dvl>
    <max>90</max>
    <bottom_track> <noise type="gaussian"> <stddev>0.003</stddev> </noise> <per_speed>0.001</per_speed> </bottom_track>
  </dvl>
</sensor>"""

GAZEBO = """\
<sensor name="gz" type="custom" gz:type="dvl" xmlns:gz="http://gazebosim.org/schema">
  <update_rate>7</update_rate>
  <gz:dvl>
    <type>piston</type>
    <arrangement degrees="true">
      <beam id="1"> <aperture>4</aperture> <rotation>45</rotation> <tilt>30</tilt> </beam>
      <beam id="2"> <aperture>4</aperture> <rotation>135</rotation> <tilt>30</tilt> </beam>
      <beam id="3"> <aperture>4</aperture> <rotation>-45</rotation> <tilt>30</tilt> </beam>
      <beam id="4"> <aperture>4</aperture> <rotation>-135</rotation> <tilt>30</tilt> </beam>
    </arrangement>
    <tracking>
      <bottom_mode> <when>best</when> <noise type="gaussian"> <stddev>0.005</stddev> </noise> </bottom_mode>
    </tracking>
    <minimum_range>0.7</minimum_range> <maximum_range>90</maximum_range>
  </gz:dvl>
</sensor>"""

WOODS_HOLE = """\
<sensor name="{name}" type="dsros_dvl">
  <update_rate>7</update_rate>
  <plugin name="{name}" filename="libdsros_ros_dvl.so">
    <robotNamespace>dvl</robotNamespace> <topicName>{name}</topicName> <rangesTopicName>{ranges}</rangesTopicName>
    <frameName>{frame}</frameName> <pointcloudFrame>base</pointcloudFrame>
    <updateRateHZ>7</updateRateHZ>
    <gaussianNoiseBeamVel>{deviation}</gaussianNoiseBeamVel>
    <minRange>0.7</minRange> <maxRange>90</maxRange> <maxRangeDiff>10</maxRangeDiff>
    <beamAngleDeg>{angle}</beamAngleDeg> <beamWidthDeg>4</beamWidthDeg>
    <beamAzimuthDeg1>{azimuths[0]}</beamAzimuthDeg1> <beamAzimuthDeg2>{azimuths[1]}</beamAzimuthDeg2>
    <beamAzimuthDeg3>{azimuths[2]}</beamAzimuthDeg3> <beamAzimuthDeg4>{azimuths[3]}</beamAzimuthDeg4>
    <pos_z_down>false</pos_z_down>
    <enableWaterTrack>1</enableWaterTrack>
    <navsense:layer near="5" far="25" minimum_size="4"/>
  </plugin>
</sensor>"""

BEAM = """\
<link name="sonar{i}_link">
  <pose>0 0 0 0 {pitch:.6g} {yaw:.6g}</pose>
  <sensor name="sonar{i}" type="ray">
    <update_rate>7</update_rate>
    <ray>
      <scan> <horizontal> <samples>1</samples> <min_angle>0</min_angle> <max_angle>0</max_angle> </horizontal> </scan>
      <range> <min>0.7</min> <max>90</max> </range>
    </ray>
    <plugin name="sonar{i}" filename="libgazebo_ros_range.so">
      <topicName>dvl/sonar{i}</topicName> <frameName>sonar{i}_link</frameName> <radiation>ultrasound</radiation>
    </plugin>
  </sensor>
</link>"""

UUV = """\
<plugin name="uuv" filename="libuuv_gazebo_ros_dvl_plugin.so">
  <robot_namespace>dvl</robot_namespace> <sensor_topic>uuv</sensor_topic>
  <link_name>base</link_name>
  <update_rate>7</update_rate>
  <noise_amplitude>{deviation}</noise_amplitude> <noise_sigma>{deviation}</noise_sigma>
  <enable_local_ned_frame>false</enable_local_ned_frame>
  <beam_link_name_0>sonar0_link</beam_link_name_0> <beam_topic_0>sonar0</beam_topic_0>
  <beam_link_name_1>sonar1_link</beam_link_name_1> <beam_topic_1>sonar1</beam_topic_1>
  <beam_link_name_2>sonar2_link</beam_link_name_2> <beam_topic_2>sonar2</beam_topic_2>
  <beam_link_name_3>sonar3_link</beam_link_name_3> <beam_topic_3>sonar3</beam_topic_3>
</plugin>"""

DEVIATION = 0.005
"""Deviation (m/s) of one beam in one ping."""

PLUS, CROSS = (0.0, 180.0, 90.0, -90.0), (-135.0, 135.0, 45.0, -45.0)
"""Azimuths (degrees) of four beams: fore, aft, port, starboard, or between them."""


def make_plane(slope: float = 0.0) -> str:
    """Return a bed through the world origin with a slope towards x."""
    return BODY.format(name="bed", pose=f"0 0 0 0 {-math.atan(slope):.9g} 0", shape="<plane/>")


def make_block(name: str, east: float, top: float, size: tuple[float, float, float]) -> str:
    """Return a box with its centre at `east` (m) and its top at a height (m)."""
    shape = f"<box><size>{size[0]:g} {size[1]:g} {size[2]:g}</size></box>"
    return BODY.format(name=name, pose=f"{east:g} 0 {top - 0.5 * size[2]:g} 0 0 0", shape=shape)


def make_woods_hole_sensor(
    name: str = "dvl",
    frame: str = "base",
    angle: float = 30.0,
    azimuths: Sequence[float] = CROSS,
    deviation: float = DEVIATION,
) -> str:
    """Return the Woods Hole sensor with beams (degrees) and the deviation (m/s) of a beam."""
    values = {"name": name, "frame": frame, "angle": f"{angle:g}", "deviation": f"{deviation:g}"}
    ranges = "ranges" if name == "dvl" else f"{name}_ranges"
    return WOODS_HOLE.format(**values, ranges=ranges, azimuths=[f"{a:g}" for a in azimuths])


def make_beam(i: int, azimuth: float) -> str:
    """Return the link of a UUV Simulator beam at 30 degrees with an azimuth (degrees)."""
    return BEAM.format(i=i, pitch=math.radians(60.0), yaw=math.radians(azimuth))


def make_uuv_plugin(azimuths: Sequence[float] = CROSS, deviation: float = DEVIATION) -> str:
    """Return the UUV Simulator's plug-in and its four beams at 30 degrees."""
    return "\n".join(
        [*(make_beam(i, azimuth) for i, azimuth in enumerate(azimuths)), UUV.format(deviation=f"{deviation:g}")]
    )


def load(around: str, sensors: str, more: str = "", fidelity: str = "physical") -> World:
    """Return a world with surfaces and water, a vehicle with sensors on its base, and further elements."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sea.sdf"
        path.write_text(SEA.format(around=around, sensors=sensors, more=more), encoding="utf-8")
        return ns.load(path, fidelity=fidelity)


def make_straight_motion(
    start: tuple[float, float, float], velocity: tuple[float, float, float], duration: float, yaw: float = 0.0
) -> Trajectory:
    """Return a level motion with a constant velocity (m/s) from a position (m), with a yaw (rad)."""
    there = [*start, math.cos(0.5 * yaw), 0.0, 0.0, math.sin(0.5 * yaw)]
    return Trajectory(np.array([0.0, duration]), np.array([[[*velocity, 0.0, 0.0, 0.0, 0.0], there]]))


def make_pitching_motion(height: float, most: float, duration: float, roll: float = 0.0) -> Trajectory:
    """Return a motion `height` (m) above the origin with a roll, and a pitch from -`most` to `most` (rad)."""
    end, c, s = math.tan(0.5 * most), math.cos(0.5 * roll), math.sin(0.5 * roll)
    turn = 2.0 * end / duration
    rows = [[0.0, 0.0, 0.0, 0.0, 0.0, c * turn, -s * turn], [0.0, 0.0, height, c, s, -c * end, s * end]]
    return Trajectory(np.array([0.0, duration]), np.array([rows]))
