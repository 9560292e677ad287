"""Plug-ins of hector_gazebo_plugins and hector_quadrotor: IMU, magnetometer, barometer, GPS and sonar.

    <plugin filename="libhector_gazebo_ros_imu.so">                       of a model
      <accelOffset/> <accelDrift/> <accelDriftFrequency/> <accelGaussianNoise/>     m/s^2, Hz
      <rateOffset/> <rateDrift/> <rateDriftFrequency/> <rateGaussianNoise/>         rad/s, Hz
      <gaussianNoise/>                 deprecated: replaces both white noises unless it is 0
      <accelScaleError>1</accelScaleError> <rateScaleError>1</rateScaleError>       factors
      <xyzOffset/> <rpyOffset/>        m, rad: pose of the sensor in the link
    <plugin filename="libhector_gazebo_ros_magnetic.so">                  of a model
      <magnitude>1</magnitude>         of the field; errors have the same unit, whichever that is
      <referenceHeading>0</referenceHeading> <declination>0</declination> <inclination>60</inclination>     degrees
      <offset/> <drift/> <driftFrequency/> <gaussianNoise/>
    <plugin filename="libhector_gazebo_ros_baro.so">                      of a model: an altimeter
      <offset/> <drift/> <driftFrequency/> <gaussianNoise/>               m
    <plugin filename="libhector_gazebo_ros_gps.so">                       of a model
      <offset/> <drift/> <driftFrequency/> <gaussianNoise/>               m: north, west, up at heading 0
      <velocityOffset/> <velocityDrift/> ... <velocityGaussianNoise/>     m/s
      <referenceLatitude/> <referenceLongitude/> <referenceHeading/> <referenceAltitude/>     degrees, m
    <plugin filename="libhector_gazebo_ros_sonar.so">                     in a <sensor type="ray">
      <offset/> <drift/> <driftFrequency/> <gaussianNoise/>               m

An element has one number, or one for each axis. The error model of all plug-ins, with the frequency f (Hz)::

    reading = scaleError truth + offset + drift_k + gaussianNoise w_k

1/f is the correlation time of the drift, 1 h by default. With f = 0 the drift is a constant of the run: `bias_stddev`
is d.

| of the plug-in | field of `Noise` |
|---|---|
| offset | `mean` |
| drift d | `dynamic_bias_stddev` = d sqrt(2 f), so that the stationary deviation is d |
| driftFrequency f | `dynamic_bias_correlation_time` = 1/f |
| gaussianNoise | `stddev` |
| scaleError | `scale_factor` = scaleError - 1 |

d is the standard deviation of the drift, as the plug-ins document it. Their code multiplies the noise of a step dt by
dt instead of its root. It draws the first drift with the deviation d, which then shrinks to d sqrt(dt) within a few
correlation times; a warning gives the number. In navsense the drift has the deviation d at all times.

`xyzOffset` and `rpyOffset` are the mounting of the sensor, as the changelog of release 0.3.6 says. The code ignores the
first; it applies the rotation along the axes of the world, which is the same for a level link.

The horizontal noise of a GPS is the same on both axes here; the larger of two values applies. A drift of the velocity
is not integrated to the position, and a GPS has no scale error. The orientation of the IMU has no noise here. The
barometer of hector measures the height z in the world with errors in metres: it is an altimeter.

The field of the magnetometer is that of the world; errors are multiplied by the magnitude of that field over
`magnitude`. Without a field of the world, the direction is that of the plug-in and the magnitude that of SDF's default.
The reference heading is from north to the x axis of the world, clockwise; the world's heading is 90 degrees minus it.
It is 0 by default: x is north. In a world with an origin, the default of the magnetometer is the heading of this
world. The origin may be the reference of a GPS plug-in, so readings of a magnetometer and a GPS agree.
`<useWorldSphericalCoordinates>` gives the GPS and the magnetometer the defaults of the world. Without
`<spherical_coordinates>`, these are Gazebo's: latitude and longitude 0, x is east.
Source: hector_gazebo_plugins, commit a8ebcb1c1bbda1c2a714003cb0e7cf6fbaf4fd8e: `sensor_model.h`, `update_timer.h`,
`gazebo_ros_imu`, `gazebo_ros_magnetic`, `gazebo_ros_gps`, `gazebo_ros_sonar`; `<useWorldSphericalCoordinates>` and
`<useMagneticFieldMsgs>` are those of release 0.5.4; hector_quadrotor_gazebo_plugins, `gazebo_ros_baro`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace

from navsense.core.geodesy import Origin
from navsense.core.typing import Vector
from navsense.environment.base import DEFAULT_MAGNETIC_FIELD
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_flag, parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import (
    ACCELEROMETER,
    GYROSCOPE,
    HORIZONTAL_POSITION,
    HORIZONTAL_VELOCITY,
    VERTICAL_POSITION,
    VERTICAL_VELOCITY,
    ChannelNoise,
    EarthReference,
    ModelPlugin,
    PluginTags,
    SensorPlugin,
    limit_rate,
    make_plugin_schema,
    make_type_element,
    make_world_reference,
    merge_noise,
    parse_origin,
    parse_values,
    set_child,
)
from navsense.sdf.plugins.gazebo_range import add_sound, find_ray_tag, mark_range
from navsense.sdf.ros_names import find_declared_namespace, join_ros_topic
from navsense.sdf.values import map_spec_errors
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.sensors.magnetometer import Magnetometer
from navsense.sensors.range import Range

DEFAULT_FREQUENCY = 1.0 / 3600.0
"""Hz, of the drift."""

GPS_REFERENCE = {
    "referenceLatitude": 49.9,
    "referenceLongitude": 8.9,
    "referenceAltitude": 0.0,
    "referenceHeading": 0.0,
}
"""Degrees and m, for a world without `<spherical_coordinates>`; x is north."""

GAZEBO_REFERENCE = (0.0, 0.0, 0.0, 90.0)
"""Degrees and m, Gazebo's for such a world, see `WORLD_TAG`; y is north."""

WORLD_TAG = "useWorldSphericalCoordinates"
"""Flag for the defaults of the world instead of those of the plug-in."""

DEFAULT_INCLINATION = 60.0
"""Degrees."""

SCALED_FIELDS = ("mean", "stddev", "bias_stddev", "dynamic_bias_stddev")
"""Fields of `Noise` in the unit of the magnetometer's `<magnitude>`."""

_TAGS = PluginTags(
    "bodyName", "robotNamespace", "topicName", "updateRate", "frameId", default_rate=0.0, requires_link=False
)
IMU_TAGS = _TAGS._replace(default_topic="imu", pose="xyzOffset", rotation="rpyOffset")
MAGNETIC_TAGS = _TAGS._replace(default_topic="magnetic")
BARO_TAGS = _TAGS._replace(default_topic="pressure_height")
GPS_TAGS = _TAGS._replace(default_topic="fix", default_rate=4.0)


def list_model_tags(prefix: str = "") -> tuple[str, ...]:
    """Return the elements of an error model: offset, drift, frequency of the drift, noise, factor."""
    names = ("Offset", "Drift", "DriftFrequency", "GaussianNoise", "ScaleError")
    return tuple(prefix + name if prefix else name[0].lower() + name[1:] for name in names)


def parse_error_model(context: Context, plugin: Element, channels: Sequence[str], prefix: str = "") -> ChannelNoise:
    """Return the noise of channels by the error model of hector."""
    offset, drift, frequency, noise, scale = (
        parse_values(context, plugin, tag, len(channels), minimum=0.0 if 0 < i < 4 else -math.inf)
        for i, tag in enumerate(list_model_tags(prefix))
    )
    frequency = frequency or [DEFAULT_FREQUENCY] * len(channels)
    result: ChannelNoise = {}
    for i, channel in enumerate(channels):
        fields: dict[str, float] = {}
        if offset:
            fields["mean"] = offset[i]
        if noise:
            fields["stddev"] = noise[i]
        if drift and drift[i] > 0.0 and frequency[i] == 0.0:
            fields["bias_stddev"] = drift[i]
        elif drift and drift[i] > 0.0:
            fields["dynamic_bias_stddev"] = drift[i] * math.sqrt(2.0 * frequency[i])
            fields["dynamic_bias_correlation_time"] = 1.0 / frequency[i]
        if scale and scale[i] != 1.0:
            fields["scale_factor"] = scale[i] - 1.0
        if fields:
            result[channel] = fields
    drifts = [value for value, rate in zip(drift or (), frequency, strict=False) if value > 0.0 and rate > 0.0]
    if drifts:
        _warn_about_drift(context, plugin, list_model_tags(prefix)[1], max(drifts))
    return result


def _warn_about_drift(context: Context, plugin: Element, tag: str, drift: float) -> None:
    """Add a warning with the deviation of a drift by the code of the plug-in."""
    rate, child = parse_child_number(context, plugin, "updateRate", 0.0, minimum=0.0), plugin.find(tag) or plugin
    reason = f"is a drift of {drift:g} (1 sigma), as documented; after a few correlation times the plug-in's code has"
    reason += f" {drift / math.sqrt(rate):.3g} at {rate:g} Hz" if rate > 0.0 else " less, depending on its rate"
    context.add_note("warning", f"<plugin><{tag}>: {child.text}", reason, child.where)


def _convert_imu(context: Context, plugin: Element) -> list[Element]:
    channels = parse_error_model(context, plugin, ACCELEROMETER, "accel")
    channels |= parse_error_model(context, plugin, GYROSCOPE, "rate")
    deprecated = parse_child_number(context, plugin, "gaussianNoise", 0.0, minimum=0.0)
    if deprecated > 0.0:
        for channel in (*ACCELEROMETER, *GYROSCOPE):
            channels.setdefault(channel, {})["stddev"] = deprecated
    imu = make_type_element(plugin, "imu", channels)
    imu.children.append(make_world_reference(plugin))
    return [imu]


def _convert_magnetic(context: Context, plugin: Element) -> list[Element]:
    return [make_type_element(plugin, "magnetometer", parse_error_model(context, plugin, ("x", "y", "z")))]


def _find_reference(context: Context, plugin: Element, origin: Origin | None) -> tuple[float, float, float, float]:
    """Return the default reference of a plug-in: latitude, longitude (degrees), altitude (m) and heading (degrees)."""
    if not parse_child_flag(context, plugin, WORLD_TAG, default=False):
        latitude, longitude, altitude, heading = GPS_REFERENCE.values()
        return latitude, longitude, altitude, heading
    if origin is None:
        return GAZEBO_REFERENCE
    latitude, longitude, heading = map(math.degrees, (origin.latitude, origin.longitude, origin.heading))
    return latitude, longitude, origin.elevation, 90.0 - heading


def _parse_magnetic_field(context: Context, plugin: Element, origin: Origin | None) -> EarthReference:
    """Return the field of the plug-in, with the magnitude (T) of SDF's default field."""
    default_heading = _find_reference(context, plugin, origin)[3]
    if origin is not None:
        default_heading = 90.0 - math.degrees(origin.heading)
    declination, inclination, heading = (
        math.radians(parse_child_number(context, plugin, tag, default))
        for tag, default in (
            ("declination", 0.0),
            ("inclination", DEFAULT_INCLINATION),
            ("referenceHeading", default_heading),
        )
    )
    # The world's x axis points to the heading, y to its left: at heading 90 degrees, east and north.
    east_x = math.hypot(*DEFAULT_MAGNETIC_FIELD) * math.cos(inclination)
    field: Vector = (
        east_x * math.cos(heading - declination),
        east_x * math.sin(heading - declination),
        -math.hypot(*DEFAULT_MAGNETIC_FIELD) * math.sin(inclination),
    )
    tags = ("magnitude", "declination", "inclination", "referenceHeading")
    return EarthReference(magnetic_field=field, is_default=plugin.find(*tags) is None)


def _scale_magnetometer(context: Context, plugin: Element, spec: Sensor, sensor_context: SensorContext) -> Sensor:
    """Return the magnetometer with errors in tesla."""
    magnitude = parse_child_number(context, plugin, "magnitude", 1.0, above=0.0)
    if not isinstance(spec, Magnetometer) or magnitude <= 0.0:
        return spec
    child = plugin.find("magnitude") or plugin
    with map_spec_errors(child):
        strength = sensor_context.measure_field()
        factor = strength / magnitude
        x, y, z = (
            replace(noise, **{name: factor * asdict(noise)[name] for name in SCALED_FIELDS})
            for noise in (spec.x, spec.y, spec.z)
        )
    reason = f"errors are relative to a field of {magnitude:g}: they are multiplied by {factor:.4g} T, for"
    reason += f" the world's {strength * 1e6:.4g} uT"
    context.add_note("warning", f"<plugin>: {sensor_context.name}", reason, child.where)
    return replace(spec, x=x, y=y, z=z)


def _convert_baro(context: Context, plugin: Element) -> list[Element]:
    altimeter = make_type_element(plugin, "altimeter", parse_error_model(context, plugin, ("vertical_position",)))
    elevation = parse_child_number(context, plugin, "elevation", 0.0)
    if elevation != 0.0:
        child, reason = plugin.find("elevation") or plugin, "is not added: the height is that in the world"
        context.add_note("warning", f"<plugin><elevation>: {child.text}", reason, child.where)
    return [altimeter]


def _convert_gps(context: Context, plugin: Element) -> list[Element]:
    channels: ChannelNoise = {}
    for prefix, horizontal, vertical in (
        ("", HORIZONTAL_POSITION, VERTICAL_POSITION),
        ("velocity", HORIZONTAL_VELOCITY, VERTICAL_VELOCITY),
    ):
        axes = parse_error_model(context, plugin, ("x", "y", "z"), prefix)
        x, y = axes.get("x", {}), axes.get("y", {})
        if x != y:
            reason = "the horizontal errors of a receiver are the same on both axes: the larger values are used"
            context.add_note("warning", f"<plugin>: {plugin.get_attribute('name')}", reason, plugin.where)
        if x or y:
            channels[horizontal] = {name: max(x.get(name, 0.0), y.get(name, 0.0), key=abs) for name in {**x, **y}}
        if "z" in axes:
            channels[vertical] = axes["z"]
    return [make_type_element(plugin, "navsat", channels)]


def _parse_reference(context: Context, plugin: Element, origin: Origin | None) -> EarthReference:
    defaults = _find_reference(context, plugin, origin)
    return parse_origin(context, plugin, dict(zip(GPS_REFERENCE, defaults, strict=True)))


def _apply_sonar(context: Context, sensor: Element, plugin: Element) -> Element:
    sensor = merge_noise(sensor, plugin, find_ray_tag(sensor), parse_error_model(context, plugin, ("",)))
    sensor = add_sound(sensor, plugin)
    sensor = limit_rate(context, sensor, plugin, "updateRate", default=10.0)
    topic = join_ros_topic(find_declared_namespace(plugin), plugin.get_text("topicName", "sonar"))
    sensor = set_child(sensor, plugin.make_element("topic", topic))
    return set_child(sensor, plugin.make_element("frame_id", plugin.get_text("frameId", "sonar_link").strip("/")))


_NO_SERVICE = "services of other programs are not offered"
_NO_HEADING_NOISE = "the orientation has no noise"
_UNUSED = {
    "updatePhase": "the first sample is at time 0",
    "timeout": "the sensor does not stop",
    "serviceName": _NO_SERVICE,
    "randomEngineSeed": "the seed is that of the run",
}
_NO_OFFSET = dict.fromkeys(("xyzOffset", "rpyOffset"), "the plug-in ignores it")
_NO_SCALE = "a receiver has no scale error"

_POSITION_TAGS, _VELOCITY_TAGS = list_model_tags(), list_model_tags("velocity")

MODEL_PLUGINS = {
    "libhector_gazebo_ros_imu.so": ModelPlugin(
        make_plugin_schema(
            IMU_TAGS,
            " ".join((*list_model_tags("accel"), *list_model_tags("rate"), "gaussianNoise")),
            unsupported={
                **_UNUSED,
                **dict.fromkeys((*list_model_tags("heading"), *list_model_tags("yaw")), _NO_HEADING_NOISE),
                "biasTopicName": "the error of a reading is in the recording",
            },
        ),
        "imu",
        convert=_convert_imu,
        tags=IMU_TAGS,
    ),
    "libhector_gazebo_ros_magnetic.so": ModelPlugin(
        make_plugin_schema(
            MAGNETIC_TAGS,
            " ".join((*list_model_tags(), "magnitude referenceHeading declination inclination", WORLD_TAG)),
            unsupported={
                **_UNUSED,
                **_NO_OFFSET,
                "useMagneticFieldMsgs": "messages are always sensor_msgs/MagneticField",
            },
        ),
        "magnetometer",
        convert=_convert_magnetic,
        tags=MAGNETIC_TAGS,
        parse_field=_parse_magnetic_field,
        refine_spec=_scale_magnetometer,
    ),
    "libhector_gazebo_ros_baro.so": ModelPlugin(
        make_plugin_schema(
            BARO_TAGS,
            " ".join((*list_model_tags(), "elevation")),
            unsupported={
                **_UNUSED,
                **_NO_OFFSET,
                "altimeterTopicName": "the message of that topic is not published",
                "qnh": "the pressure of that message is not published",
            },
        ),
        "altimeter",
        convert=_convert_baro,
        tags=BARO_TAGS,
    ),
    "libhector_gazebo_ros_gps.so": ModelPlugin(
        make_plugin_schema(
            GPS_TAGS,
            " ".join((*_POSITION_TAGS[:-1], *_VELOCITY_TAGS[:-1], *GPS_REFERENCE, WORLD_TAG)),
            unsupported={
                **_UNUSED,
                **_NO_OFFSET,
                **dict.fromkeys((_POSITION_TAGS[-1], _VELOCITY_TAGS[-1]), _NO_SCALE),
                "velocityTopicName": "the velocity is on the topic of the position with _velocity",
                **dict.fromkeys(("status", "service"), "the status is always a fix"),
            },
        ),
        "navsat",
        convert=_convert_gps,
        tags=GPS_TAGS,
        parse_origin=_parse_reference,
    ),
}

SENSOR_PLUGINS = {
    "libhector_gazebo_ros_sonar.so": SensorPlugin(
        make_plugin_schema(
            children=" ".join((*list_model_tags(), "robotNamespace topicName frameId updateRate")),
            unsupported={**_UNUSED, **_NO_OFFSET},
        ),
        frozenset((Range.type,)),
        _apply_sonar,
        merges_rays=lambda _: True,
        refine_spec=lambda _context, _plugin, spec, _sensor_context: mark_range(spec),
    )
}
