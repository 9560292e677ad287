"""File names of plug-ins: their spellings, drives and actuators, and the plug-ins of sensors that are not read.

A file name has three spellings: `libgazebo_ros_imu.so`, `gazebo_ros_imu`, and either of them after a folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from navsense.motion.velocity_commands import DriveKind

Entry = TypeVar("Entry")

_ENDING = re.compile(r"\.(so|dylib|dll)(\.[0-9]+)*$")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""A word of a file name in snake case, kebab case or camel case."""

SENSOR_WORDS = frozenset(
    """
    acoustic adcp ahrs airspeed altimeter anemometer baro barometer bathymetry bumper camera cameras compass contact
    depth doppler dvl echosounder encoder fog gnss gps gyro gyroscope hokuyo hydrophone imu ins irlock kinect laser
    lidar mag magnetic magnetometer multicamera navsat odometry opticalflow pinger pressure prosilica radar range
    rangefinder ray realsense rfid sensor sonar tachometer thermal torque ultrasonic usbl velodyne vision
    """.split()
)
"""Words in the file name of a plug-in that is a sensor.

`force` and `wind` are none: plug-ins with these names act on the robot, unless they have another word of a sensor.
"""

OTHER_WORDS = frozenset(
    """
    control controller controllers gimbal gui interface joint manager origin synchronizer visual visualize
    """.split()
)
"""Words in the file name of a plug-in that is no sensor, also if it has a word of a sensor."""

SYSTEM_PREFIXES = ("gz-sim", "ignition-gazebo", "ign-gazebo")
"""Beginnings of the files of Gazebo's systems, which run the sensors that `<sensor>` describes."""

UNREAD_SENSORS: Mapping[str, str] = {
    "uuv_gazebo_ros_rpt_plugin": "acoustic positioning is not simulated",
    "uuv_gazebo_ros_cpc_plugin": "concentrations in the water are not simulated",
    "image_sonar_ros_plugin": "imaging sonars are not simulated",
    "gazebo_ros_ft_sensor": "forces are not simulated",
    "gazebo_ros_f3d": "forces are not simulated",
    "gazebo_ros_bumper": "contacts are not simulated",
    "rotors_gazebo_odometry_plugin": "odometry is not simulated; the true state is on /truth/MODEL",
}
"""File of the plug-in of a sensor -> reason why it is not read."""


class DrivePlugin(NamedTuple):
    """A plug-in of a drive: its kind, the pattern of its whole file name, and its class if it is a system of Gazebo."""

    kind: DriveKind
    pattern: str
    system: str = ""


_GAZEBO = r"(gz-sim|ignition-gazebo)\d*"
TRACKED_VEHICLE, ACKERMANN_STEERING = "TrackedVehicle", "AckermannSteering"

DRIVE_PLUGINS: Sequence[DrivePlugin] = (
    DrivePlugin(
        "differential",
        r"(\w+_)?(diff_?drive|skid_steer_drive|ackermann_drive)(_plugin(_6w|_multi_wheel)?)?"
        r"|(DiffDrive|SkidSteerDrive|(Simple|Wheel)?TrackedVehicle)Plugin",
    ),
    DrivePlugin("holonomic", r"(\w+_)?(planar_move|force_based_move)(_plugin)?"),
    DrivePlugin("differential", rf"{_GAZEBO}-diff-drive-system", "DiffDrive"),
    DrivePlugin("differential", rf"{_GAZEBO}-ackermann-steering-system", ACKERMANN_STEERING),
    DrivePlugin("differential", rf"{_GAZEBO}-tracked-vehicle-system", TRACKED_VEHICLE),
    DrivePlugin("holonomic", rf"{_GAZEBO}-mecanum-drive-system", "MecanumDrive"),
    DrivePlugin("free", rf"{_GAZEBO}-velocity-control-system", "VelocityControl"),
)
"""Drives of Gazebo, Gazebo Classic, gazebo_ros_pkgs and robots' packages."""

_SYSTEM = re.compile(r"(gz::sim|ignition::gazebo)(::v\d+)?::systems::(\w+)")

ACTUATOR_WORDS = re.compile(
    r"drive(?!r)|thruster|thrust_|ackermann|mecanum|tracked|velocity[-_]?control|motor|multicopter"
    r"|planar_move|force_based_move|joint.*control|ros2?_control|trajectory[-_]?follow|ardupilot|propeller|fin_plugin"
    r"|apply[-_]?joint[-_]?force",
    re.IGNORECASE,
)
"""Words in the file or the name of a plug-in that moves a model."""

NO_SENSOR = "is not read: the sensor that it describes is missing"
NO_EFFECT = "is not read: its noise, topic and frame have no effect on the sensor"


def normalize_file(name: str) -> str:
    """Return the file name of a plug-in without folder, `lib` and `.so`.

    >>> from navsense.sdf.plugin_files import normalize_file
    >>> normalize_file("/opt/ros/lib/libgazebo_ros_imu.so")
    'gazebo_ros_imu'
    """
    return _ENDING.sub("", re.split(r"[/\\]", name.strip())[-1]).removeprefix("lib")


def normalize_files(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return a table of plug-ins with its files as `normalize_file` returns them."""
    return {normalize_file(name): entry for name, entry in entries.items()}


def find_drive_plugin(file: str, name: str) -> DrivePlugin | None:
    """Return the drive with this file and name; None for another plug-in.

    >>> from navsense.sdf.plugin_files import find_drive_plugin
    >>> find_drive_plugin("libgazebo_ros_planar_move.so", "move").kind, find_drive_plugin("libmove.so", "diff_drive")
    ('holonomic', None)
    """
    system, normalized = _SYSTEM.fullmatch(name.strip()), normalize_file(file)
    by_system = (plugin for plugin in DRIVE_PLUGINS if system is not None and system[3] == plugin.system)
    by_file = (plugin for plugin in DRIVE_PLUGINS if re.fullmatch(plugin.pattern, normalized))
    return next(by_system, None) or next(by_file, None)


def is_actuator(file: str, name: str) -> bool:
    """Return True for a plug-in that moves a model, by a drive or by joints."""
    return find_drive_plugin(file, name) is not None or any(map(ACTUATOR_WORDS.search, (file, name)))


def is_among(name: str, files: Iterable[str]) -> bool:
    """Return True if a file name, in any spelling, is one of `files`."""
    file = normalize_file(name)
    return any(file == normalize_file(entry) for entry in files)


def explain_unread_sensor(name: str, parent: str) -> str:
    """Return why the plug-in of a sensor in an element `parent` is not read; "" for a plug-in that is no sensor."""
    file = normalize_file(name)
    if file in UNREAD_SENSORS:
        return UNREAD_SENSORS[file]
    if file.startswith(SYSTEM_PREFIXES):
        return ""
    words = {word.lower() for word in _WORD.findall(file)}
    if words & SENSOR_WORDS and not words & OTHER_WORDS and not is_actuator(file, ""):
        return NO_EFFECT if parent == "sensor" else NO_SENSOR
    return ""
