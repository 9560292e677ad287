"""The UUV Simulator's magnetometer, a `<plugin filename="libuuv_gazebo_ros_magnetometer_plugin.so">` of a model.

    <intensity>65</intensity>                                   microtesla; default 1
    <reference_heading>3.14159</reference_heading>              rad, default pi
    <declination>0</declination> <inclination>1.0472</inclination>      rad; defaults 0, 60 degrees
    <noise_xy>1</noise_xy> <noise_z>1.4</noise_z>               microtesla per sample, standard deviations (defaults)
    <turn_on_bias>2</turn_on_bias>                              microtesla, standard deviation of each axis (default)

`uuv_common` lists the other elements. The magnetic field is that of the world. If the world does not define one, it is
that of the plug-in, see `earth_reference`::

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

from navsense.core.geodesy import Origin
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import EarthReference, NoiseTable, NoiseTag
from navsense.sdf.plugins.uuv_common import AMPLITUDE, FIXED_MESSAGES, MODEL_TAGS, refine_by_fidelity
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.sensors.magnetometer import Magnetometer

MICROTESLA = 1e-6
"""T."""

FIELD_DEFAULTS = {"intensity": 1.0, "reference_heading": math.pi, "declination": 0.0, "inclination": math.pi / 3.0}
"""Element of the field -> default (microtesla, rad)."""

TABLE = NoiseTable(
    "magnetometer",
    (
        NoiseTag("noise_xy", ("x", "y"), "stddev", MICROTESLA, default=1.0),
        NoiseTag("noise_z", ("z",), "stddev", MICROTESLA, default=1.4),
        NoiseTag("turn_on_bias", ("x", "y", "z"), "bias_stddev", MICROTESLA, default=2.0),
    ),
    AMPLITUDE,
)


def _refine_magnetometer(context: Context, plugin: Element, spec: Sensor, sensor_context: SensorContext) -> Sensor:
    reason = "readings are in T; the plug-in writes microtesla"
    context.add_note("warning", f"<plugin>: {sensor_context.name}", reason, plugin.where)
    return refine_by_fidelity(context, plugin, spec, sensor_context, Magnetometer())


def _parse_field(context: Context, plugin: Element, _origin: Origin | None) -> EarthReference:
    """Return the field of the plug-in."""
    heading, declination, inclination = (
        parse_child_number(context, plugin, tag, FIELD_DEFAULTS[tag]) for tag in tuple(FIELD_DEFAULTS)[1:]
    )
    intensity = parse_child_number(context, plugin, "intensity", FIELD_DEFAULTS["intensity"], minimum=0.0)
    level, azimuth = MICROTESLA * intensity * math.cos(inclination), heading - declination
    field = (level * math.cos(azimuth), level * math.sin(azimuth), -MICROTESLA * intensity * math.sin(inclination))
    return EarthReference(magnetic_field=field, is_default=plugin.find(*FIELD_DEFAULTS) is None)


MODEL_PLUGINS = {
    "libuuv_gazebo_ros_magnetometer_plugin.so": TABLE.make_plugin(
        MODEL_TAGS,
        " ".join(("robotNamespace", *FIELD_DEFAULTS)),
        unsupported={
            "noise_sigma": "has no effect in the plug-in",
            "enable_gazebo_messages": FIXED_MESSAGES,
            "static_reference_frame": "the field is in the axes of the sensor",
            "reference_link_name": "the field is in the axes of the sensor",
        },
        parse_field=_parse_field,
        refine_spec=_refine_magnetometer,
    )
}
