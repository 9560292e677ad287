"""Plug-ins of rotors_simulator: IMU, magnetometer, pressure and GPS.

    <plugin filename="librotors_gazebo_imu_plugin.so">                     of a model
      <gyroscopeNoiseDensity>0.0003394</gyroscopeNoiseDensity>             rad/s/sqrt(Hz), two-sided
      <gyroscopeRandomWalk>3.9e-05</gyroscopeRandomWalk>                   rad/s/sqrt(s), driving density of the bias
      <gyroscopeBiasCorrelationTime>1000</gyroscopeBiasCorrelationTime>    s
      <gyroscopeTurnOnBiasSigma>0.0087</gyroscopeTurnOnBiasSigma>          rad/s; the same for `accelerometer`, m/s^2
    <plugin filename="librotors_gazebo_magnetometer_plugin.so">
      <noiseNormal>8e-8 8e-8 8e-8</noiseNormal>                            T, per sample
      <noiseUniformInitialBias>4e-7 4e-7 4e-7</noiseUniformInitialBias>    T, bounds of a uniform distribution
      <refMagNorth/> <refMagEast/> <refMagDown/>                           T, the field of a world without one
    <plugin filename="librotors_gazebo_pressure_plugin.so">
      <pressureVariance>0</pressureVariance>                               Pa^2
      <referenceAltitude>500</referenceAltitude>                           m, added to the height in the world
    <plugin filename="librotors_gazebo_gps_plugin.so">                     in a <sensor type="gps">
      <horPosStdDev>3</horPosStdDev> <verPosStdDev>6</verPosStdDev>        m
      <horVelStdDev>0.1</horVelStdDev> <verVelStdDev>0.1</verVelStdDev>    m/s

The law of the IMU is that of Maybeck 4-114, as in `Noise`. White noise is N / sqrt(dt). The bias is exponentially
correlated, with the driving density and the correlation time. The plug-in starts this bias at 0, navsense in its
stationary state. The parameter of the gyroscope's bias has two names in the versions of the plug-in;
both are read.

A uniform distribution with bounds a becomes a turn-on bias with the same standard deviation, a / sqrt(3). The noise
and the bias of the magnetometer are along the axes of the sensor, as the description of the parameters says. The code
of the plug-in adds them along those of the world.

The field has components to north, east and down. `heading_deg` of the world, or the reference of a GPS plug-in, gives
the direction of north.

The GPS plug-in takes the position from its sensor, with the sensor's noise; its deviations of the position only fill
the covariance. They apply here to a sensor without noise.
Source: ethz-asl/rotors_simulator, commit 04f25c63401edf93524a15ace806a9ca676f52eb:
`gazebo_imu_plugin`, `gazebo_magnetometer_plugin`, `gazebo_pressure_plugin`,
`gazebo_gps_plugin`, and the values of their headers.
"""

from __future__ import annotations

import math
from dataclasses import replace

from navsense.core.geodesy import Origin
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.plugins.base import (
    ACCELEROMETER,
    GYROSCOPE,
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
    merge_noise,
    parse_noise_tags,
    rotate_to_world,
    set_child,
)
from navsense.sdf.ros_names import find_declared_namespace, join_ros_topic
from navsense.sdf.xml_reader import Element

IMU_TAGS = PluginTags("linkName", "robotNamespace", "imuTopic", "", default_topic="imu", default_rate=0.0)
MAGNETOMETER_TAGS = IMU_TAGS._replace(topic="magnetometerTopic", default_topic="magnetic_field")
PRESSURE_TAGS = IMU_TAGS._replace(topic="pressureTopic", default_topic="air_pressure")

IMU_NOISE = (
    NoiseTag("gyroscopeNoiseDensity", GYROSCOPE, "noise_density", default=math.radians(2.0 * 35.0 / 3600.0)),
    NoiseTag("gyroscopeRandomWalk", GYROSCOPE, "dynamic_bias_stddev", default=math.radians(2.0 * 4.0 / 3600.0)),
    NoiseTag("gyroscopeBiasRandomWalk", GYROSCOPE, "dynamic_bias_stddev"),
    NoiseTag("gyroscopeBiasCorrelationTime", GYROSCOPE, "dynamic_bias_correlation_time", default=1000.0),
    NoiseTag("gyroscopeTurnOnBiasSigma", GYROSCOPE, "bias_stddev", default=math.radians(0.5)),
    NoiseTag("accelerometerNoiseDensity", ACCELEROMETER, "noise_density", default=4e-3),
    NoiseTag("accelerometerRandomWalk", ACCELEROMETER, "dynamic_bias_stddev", default=6e-3),
    NoiseTag("accelerometerBiasCorrelationTime", ACCELEROMETER, "dynamic_bias_correlation_time", default=300.0),
    NoiseTag("accelerometerTurnOnBiasSigma", ACCELEROMETER, "bias_stddev", default=0.196),
)
"""The defaults are those of an ADIS16448, as in the header of the plug-in."""

MAGNETOMETER_NOISE = (
    NoiseTag("noiseNormal", ("x", "y", "z")),
    NoiseTag("noiseUniformInitialBias", ("x", "y", "z"), "bias_stddev", 1.0 / math.sqrt(3.0)),
)

FIELD_DEFAULTS = {"refMagNorth": 0.000021493, "refMagEast": 0.000000815, "refMagDown": 0.000042795}
"""T, the field of Zurich."""

GPS_POSITION_NOISE = (
    NoiseTag("horPosStdDev", (HORIZONTAL_POSITION,), default=3.0),
    NoiseTag("verPosStdDev", (VERTICAL_POSITION,), default=6.0),
)
GPS_VELOCITY_NOISE = (
    NoiseTag("horVelStdDev", (HORIZONTAL_VELOCITY,), default=0.1),
    NoiseTag("verVelStdDev", (VERTICAL_VELOCITY,), default=0.1),
)


IMU_TABLE = NoiseTable(
    "imu", IMU_NOISE, make_children=lambda _, plugin: [plugin.make_element("enable_orientation", "false")]
)
"""The plug-in does not estimate an orientation."""

MAGNETOMETER_TABLE = NoiseTable("magnetometer", MAGNETOMETER_NOISE)


def _parse_field(context: Context, plugin: Element, origin: Origin | None) -> EarthReference:
    """Return the field of the plug-in along the axes of a world with an origin."""
    north, east, down = (parse_child_number(context, plugin, tag, value) for tag, value in FIELD_DEFAULTS.items())
    field = rotate_to_world(origin, east, north, -down)
    return EarthReference(magnetic_field=field, is_default=plugin.find(*FIELD_DEFAULTS) is None)


def _convert_pressure(context: Context, plugin: Element) -> list[Element]:
    variance = parse_child_number(context, plugin, "pressureVariance", 0.0, minimum=0.0)
    element = make_type_element(plugin, "air_pressure", {"pressure": {"stddev": math.sqrt(variance)}})
    altitude = parse_child_number(context, plugin, "referenceAltitude", 500.0)
    source = plugin.find("referenceAltitude") or plugin
    return [replace(element, children=[*element.children, source.make_element("reference_altitude", repr(altitude))])]


def _apply_gps(context: Context, sensor: Element, plugin: Element) -> Element:
    gps = sensor.find("gps", "navsat")
    channels = parse_noise_tags(context, plugin, GPS_VELOCITY_NOISE)
    if gps is None or gps.find("position_sensing") is None:
        channels = parse_noise_tags(context, plugin, GPS_POSITION_NOISE) | channels
    topic = join_ros_topic(find_declared_namespace(plugin), plugin.get_text("gpsTopic", "gps"))
    sensor = set_child(sensor, plugin.make_element("topic", topic))
    link = plugin.get_text("linkName").rpartition("::")[2]
    if link:
        sensor = set_child(sensor, plugin.make_element("frame_id", link))
    return merge_noise(sensor, plugin, gps.tag if gps else "navsat", channels, replaces=True)


_NO_GROUND_SPEED = "the velocity is in the reading of the receiver"

MODEL_PLUGINS = {
    "librotors_gazebo_imu_plugin.so": IMU_TABLE.make_plugin(IMU_TAGS),
    "librotors_gazebo_magnetometer_plugin.so": MAGNETOMETER_TABLE.make_plugin(
        MAGNETOMETER_TAGS, " ".join(FIELD_DEFAULTS), parse_field=_parse_field
    ),
    "librotors_gazebo_pressure_plugin.so": ModelPlugin(
        make_plugin_schema(PRESSURE_TAGS, "pressureVariance referenceAltitude"),
        "air_pressure",
        convert=_convert_pressure,
        tags=PRESSURE_TAGS,
    ),
}

SENSOR_PLUGINS = {
    "librotors_gazebo_gps_plugin.so": SensorPlugin(
        make_plugin_schema(
            children=f"robotNamespace linkName gpsTopic {list_tags(GPS_POSITION_NOISE, GPS_VELOCITY_NOISE)}",
            unsupported={"groundSpeedTopic": _NO_GROUND_SPEED},
        ),
        frozenset(("navsat",)),
        _apply_gps,
    )
}
