"""Plug-ins of PX4 for Gazebo Classic: IMU, magnetometer, barometer and GPS.

    <plugin filename="libgazebo_imu_plugin.so">                          of a model; the elements of `rotors`
    <plugin filename="libgazebo_magnetometer_plugin.so">                 of a model
      <noiseDensity>0.0004</noiseDensity>                                gauss/sqrt(Hz), two-sided
      <randomWalk>6.4e-06</randomWalk>                                   gauss/sqrt(s), driving density of the bias
      <biasCorrelationTime>600</biasCorrelationTime> <pubRate>100</pubRate>     s, Hz
    <plugin filename="libgazebo_barometer_plugin.so">                    of a model; noise of 1 Pa per sample
      <pubRate>50</pubRate> <baroDriftPaPerSec>0</baroDriftPaPerSec>     Hz, Pa/s
    <plugin filename="libgazebo_gps_plugin.so">                          in a <sensor type="gps">
      <gpsNoise>true</gpsNoise>                                          default false: no noise
      <gpsXYNoiseDensity>2e-4</gpsXYNoiseDensity>                        m/sqrt(Hz); also Z, VXY, VZ: m/s/sqrt(Hz)
      <gpsXYRandomWalk>2</gpsXYRandomWalk> <gpsZRandomWalk/>             m/s/sqrt(Hz), driving density of the bias
      <homeLatitude/> <homeLongitude/> <homeAltitude/>                   degrees, m: the origin of a world without one

1 gauss is 1e-4 T. The bias of the GPS has a correlation time of 60 s. Its position and velocity have the noise that the
units of the parameters declare. The code differs: it multiplies densities by the square root of the step of the physics
instead of dividing, and the bias decays per step. Its noise is millimetres; a warning gives the numbers. The delay of
120 ms is not reproduced.

The magnetometer of the plug-in has axes forward, right, down. The reading of navsense is along the axes of the link.
The field is that of the world; the plug-in has a table of the World Magnetic Model. A ramp of the barometer is not
simulated.
Source: PX4/PX4-SITL_gazebo-classic, commit 03fa8f2970dd1e0573906a2aacec2c030cd56a4d:
`gazebo_imu_plugin`, `gazebo_magnetometer_plugin`, `gazebo_barometer_plugin`,
`gazebo_gps_plugin`, and the values of their headers.
"""

from __future__ import annotations

import math

from navsense.core.geodesy import Origin
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_flag, parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import (
    HORIZONTAL_POSITION,
    HORIZONTAL_VELOCITY,
    VERTICAL_POSITION,
    VERTICAL_VELOCITY,
    EarthReference,
    ModelPlugin,
    NoiseTable,
    NoiseTag,
    PluginTags,
    SensorPlugin,
    list_tags,
    make_plugin_schema,
    make_type_element,
    make_world_reference,
    merge_noise,
    parse_noise_tags,
    parse_origin,
    set_child,
)
from navsense.sdf.plugins.rotors import IMU_NOISE, IMU_TAGS
from navsense.sdf.ros_names import find_declared_namespace, join_ros_topic
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.sensors.navsat import NavSat

GAUSS = 1e-4
"""T."""

BAROMETER_STDDEV = 1.0
"""Pa."""

GPS_CORRELATION_TIME = 60.0
"""s."""

HOME = {"homeLatitude": 47.397742, "homeLongitude": 8.545594, "homeAltitude": 488.0}
"""Degrees and m, in Zurich."""

MAGNETOMETER_TAGS = PluginTags(
    "linkName", "robotNamespace", "magTopic", "pubRate", default_topic="mag", default_rate=100.0, requires_link=False
)
BAROMETER_TAGS = MAGNETOMETER_TAGS._replace(topic="baroTopic", default_topic="baro", default_rate=50.0)

_AXES = ("x", "y", "z")

MAGNETOMETER_NOISE = (
    NoiseTag("noiseDensity", _AXES, "noise_density", GAUSS, default=0.4e-3),
    NoiseTag("randomWalk", _AXES, "dynamic_bias_stddev", GAUSS, default=6.4e-6),
    NoiseTag("biasCorrelationTime", _AXES, "dynamic_bias_correlation_time", default=600.0),
)

IMU_TABLE = NoiseTable("imu", IMU_NOISE, make_children=lambda _, plugin: [make_world_reference(plugin)])

MAGNETOMETER_TABLE = NoiseTable("magnetometer", MAGNETOMETER_NOISE)

GPS_NOISE = (
    NoiseTag("gpsXYNoiseDensity", (HORIZONTAL_POSITION,), "noise_density", default=2e-4),
    NoiseTag("gpsZNoiseDensity", (VERTICAL_POSITION,), "noise_density", default=4e-4),
    NoiseTag("gpsVXYNoiseDensity", (HORIZONTAL_VELOCITY,), "noise_density", default=0.2),
    NoiseTag("gpsVZNoiseDensity", (VERTICAL_VELOCITY,), "noise_density", default=0.4),
    NoiseTag("gpsXYRandomWalk", (HORIZONTAL_POSITION,), "dynamic_bias_stddev", default=2.0),
    NoiseTag("gpsZRandomWalk", (VERTICAL_POSITION,), "dynamic_bias_stddev", default=4.0),
)


def _convert_barometer(context: Context, plugin: Element) -> list[Element]:
    if parse_child_number(context, plugin, "baroDriftPaPerSec", 0.0) != 0.0:
        child, reason = plugin.find("baroDriftPaPerSec") or plugin, "a ramp of the pressure is not simulated"
        context.add_note("warning", f"<plugin><baroDriftPaPerSec>: {child.text}", reason, child.where)
    return [make_type_element(plugin, "air_pressure", {"pressure": {"stddev": BAROMETER_STDDEV}})]


def _apply_gps(context: Context, sensor: Element, plugin: Element) -> Element:
    if parse_child_flag(context, plugin, "gpsNoise", default=False):
        channels = parse_noise_tags(context, plugin, GPS_NOISE)
        for path in (HORIZONTAL_POSITION, VERTICAL_POSITION):
            if path in channels:
                channels[path]["dynamic_bias_correlation_time"] = GPS_CORRELATION_TIME
        gps = sensor.find("gps", "navsat")
        sensor = merge_noise(sensor, plugin, gps.tag if gps else "navsat", channels, replaces=True)
    topic = join_ros_topic(find_declared_namespace(plugin), plugin.get_text("topic"))
    return set_child(sensor, plugin.make_element("topic", topic)) if topic else sensor


def _parse_home(context: Context, plugin: Element, _origin: Origin | None) -> EarthReference:
    return parse_origin(context, plugin, HOME)


def _compute_code_drift(spec: NavSat) -> float:
    """Return the deviation (m) of the horizontal bias by the code of the plug-in, at PX4's step of 4 ms.

    b_k = (1 - 1/60) b_(k-1) + walk dt^1.5 w_k
    """
    decay = 1.0 - 1.0 / GPS_CORRELATION_TIME
    return spec.horizontal_position.dynamic_bias_stddev * math.pow(0.004, 1.5) / math.sqrt(1.0 - decay * decay)


def _warn_about_gps(context: Context, plugin: Element, spec: Sensor, _sensor_context: SensorContext) -> Sensor:
    """Add a warning with the deviations of the declared bias, which the code of the plug-in does not have."""
    if isinstance(spec, NavSat) and spec.horizontal_position.has_dynamic_bias:
        scale = math.sqrt(0.5 * GPS_CORRELATION_TIME)
        horizontal = scale * spec.horizontal_position.dynamic_bias_stddev
        vertical = scale * spec.vertical_position.dynamic_bias_stddev
        reason = f"the position drifts by {horizontal:.3g} m horizontally and {vertical:.3g} m vertically (1 sigma), as"
        reason += f" its units declare; the plug-in's code has {_compute_code_drift(spec):.2g} m at a step of 4 ms"
        child = plugin.find("gpsXYRandomWalk") or plugin
        context.add_note("warning", f"<plugin><{child.tag}>: {child.text}", reason, child.where)
    return spec


MODEL_PLUGINS = {
    "libgazebo_imu_plugin.so": IMU_TABLE.make_plugin(IMU_TAGS),
    "libgazebo_magnetometer_plugin.so": MAGNETOMETER_TABLE.make_plugin(MAGNETOMETER_TAGS),
    "libgazebo_barometer_plugin.so": ModelPlugin(
        make_plugin_schema(BAROMETER_TAGS, "baroDriftPaPerSec"),
        "air_pressure",
        convert=_convert_barometer,
        tags=BAROMETER_TAGS,
    ),
}

SENSOR_PLUGINS = {
    "libgazebo_gps_plugin.so": SensorPlugin(
        make_plugin_schema(children=" ".join(("robotNamespace topic gpsNoise", *HOME, list_tags(GPS_NOISE)))),
        frozenset(("navsat",)),
        _apply_gps,
        parse_origin=_parse_home,
        refine_spec=_warn_about_gps,
    )
}
