"""The UUV Simulator's magnetometer, a `<plugin filename="libuuv_gazebo_ros_magnetometer_plugin.so">` of a model.

    <intensity>65</intensity>                                   microtesla; default 1
    <reference_heading>3.14159</reference_heading>              rad, default pi
    <declination>0</declination> <inclination>1.0472</inclination>      rad; defaults 0, 60 degrees
    <noise_xy>1</noise_xy> <noise_z>1.4</noise_z>               microtesla per sample, standard deviations (defaults)
    <turn_on_bias>2</turn_on_bias>                              microtesla, standard deviation of each axis (default)

`uuv_common` lists the other elements. The magnetic field is that of the world. If the world does not define one, it is
that of the plug-in, see `place`::

    B = intensity (cos(inclination) cos(a), cos(inclination) sin(a), -sin(inclination)),    a = heading - declination

along the axes of the world, z up. The field belongs to the earth, not to an instrument, so it is that of all sensors.

Differences from the plug-in:

- Readings are in tesla. The plug-in writes microtesla into the same field.
- Readings have the rate of the plug-in. After its first period the plug-in publishes at each step of the physics.
- Noise is along the axes of the messages. The plug-in adds it before the rotation to NED, which changes only signs.

Source: UUV Simulator, `MagnetometerROSPlugin` and `magnetometer_snippets.xacro`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from navsense.core.geodesy import Origin
from navsense.noise.specification import Noise
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import UUV_TAGS, ModelPlugin, Place, PluginSensor, make_plugin_schema
from navsense.sdf.plugins.uuv_common import COMMON_TAGS, FIXED_MESSAGES, parse_amplitude, parse_ned_pose
from navsense.sdf.values import map_spec_errors
from navsense.sdf.xml_reader import Element
from navsense.sensors.magnetometer import Magnetometer
from navsense.world import MountedSensor

MICROTESLA = 1e-6
"""T."""

FIELD_DEFAULTS = {"intensity": 1.0, "reference_heading": math.pi, "declination": 0.0, "inclination": math.pi / 3.0}
"""Element of the field -> default (microtesla, rad)."""

NOISE_DEFAULTS = {"noise_xy": 1.0, "noise_z": 1.4, "turn_on_bias": 2.0}
"""Element -> default (microtesla)."""


def parse(
    context: Context, element: Element, sensor_context: SensorContext, _sensors: Sequence[MountedSensor]
) -> PluginSensor | None:
    """Return the sensor of a plug-in. Problems give None."""
    problems_before = context.problem_count
    amplitude = parse_amplitude(context, element, sensor_context)
    stddev_xy, stddev_z, turn_on = (
        amplitude * MICROTESLA * parse_child_number(context, element, tag, default, minimum=0.0)
        for tag, default in NOISE_DEFAULTS.items()
    )
    pose, suffix = parse_ned_pose(context, element)
    if context.problem_count > problems_before:
        return None
    context.add_note(
        "warning", f"<plugin>: {sensor_context.name}", "readings are in T; the plug-in writes microtesla", element.where
    )
    with map_spec_errors(element):
        level, vertical = (
            Noise(stddev=stddev, bias_stddev=turn_on, classic=sensor_context.classic)
            for stddev in (stddev_xy, stddev_z)
        )
        return PluginSensor(Magnetometer(level, level, vertical), suffix, pose)


def parse_field(context: Context, element: Element, _origin: Origin | None) -> Place:
    """Return the field of the plug-in."""
    heading, declination, inclination = (
        parse_child_number(context, element, tag, FIELD_DEFAULTS[tag]) for tag in tuple(FIELD_DEFAULTS)[1:]
    )
    number = parse_child_number(context, element, "intensity", FIELD_DEFAULTS["intensity"], minimum=0.0)
    level, azimuth = MICROTESLA * number * math.cos(inclination), heading - declination
    field = (level * math.cos(azimuth), level * math.sin(azimuth), -MICROTESLA * number * math.sin(inclination))
    return Place(magnetic_field=field, is_given=element.find(*FIELD_DEFAULTS) is not None)


SCHEMA = make_plugin_schema(
    UUV_TAGS,
    " ".join((COMMON_TAGS, *NOISE_DEFAULTS, *FIELD_DEFAULTS)),
    unsupported={
        "noise_sigma": "has no effect in the plug-in",
        "enable_gazebo_messages": FIXED_MESSAGES,
        "static_reference_frame": "the field is in the axes of the sensor",
        "reference_link_name": "the field is in the axes of the sensor",
    },
)

MODEL_PLUGINS = {
    "libuuv_gazebo_ros_magnetometer_plugin.so": ModelPlugin(SCHEMA, Magnetometer.type, parse, field=parse_field)
}
