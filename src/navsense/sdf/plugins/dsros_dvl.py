"""Woods Hole's DVL plug-in, in a `<sensor type="dsros_dvl">`.

    <plugin filename="libdsros_ros_dvl.so" name="dvl_sensor_controller">     the only plug-in of such a sensor
      <robotNamespace>dvl</robotNamespace>                                   default: the model's name
      <topicName>dvl</topicName> <rangesTopicName>ranges</rangesTopicName>   in the namespace, unless with a slash
      <frameName>dvl_link</frameName>                 link whose axes are those of the velocity
      <pointcloudFrame>robot_link</pointcloudFrame>   link of the point cloud
      <updateRateHZ>7</updateRateHZ>                  Hz; default 1; the smaller of it and <update_rate> applies
      <gaussianNoiseBeamVel>0.005</gaussianNoiseBeamVel>           m/s along a beam; default 0
      <gaussianNoiseBeamWtrVel>0.01</gaussianNoiseBeamWtrVel>      m/s, through water; default: twice the above
      <gaussianNoiseBeamRange>0.1</gaussianNoiseBeamRange>         m; default 0
      <minRange>0.7</minRange> <maxRange>90</maxRange> <maxRangeDiff>10</maxRangeDiff>     m along a beam
      <beamAngleDeg>30</beamAngleDeg> <beamWidthDeg>4</beamWidthDeg>         from the axis; full width
      <beamAzimuthDeg1>-135</beamAzimuthDeg1> ... 4 <pos_z_down>true</pos_z_down>          see `make_dsros_beams`
      <enableWaterTrack>1</enableWaterTrack>          water track if there is no bottom track
      <ocean_current_topic>hydrodynamics/current_velocity</ocean_current_topic>
      <waterTrackBins>10</waterTrackBins>             cells of the current profile, default 1
      <currentProfileCoordMode>0</currentProfileCoordMode>     its axes: 0 beam, 1 instrument, 2 ship, 3 earth
      <navsense:layer near="1" far="24" minimum_size="8" samples="5" share="0.8"/>         m along the instrument's axis
      <navsense:cloud_points>2</navsense:cloud_points>                       per beam in the point cloud
      <navsense:bottom_track> <per_speed>0.002</per_speed> ... </navsense:bottom_track>   as in `<dvl>`, without <noise>
      <navsense:water_track> ... </navsense:water_track>                     the same, through the water
      <navsense:strength level="90"/>                                        as in `<dvl>`
      <navsense:long_term acceleration_density="0.05" stddev="0.002"/>       as in `<dvl>`
    </plugin>

A beam is seven rays weighted by its pattern; under classic it is one ray, as in the plug-in. The default layer is the
span of the plug-in's profile, from `minRange` to `maxRange` along the beams; under classic it may reach to the bottom.
The elements of navsense give the errors that the plug-in lacks: noise that grows with the speed, range and rate, and a
long-term velocity. The noise of a beam is then `gaussianNoiseBeamVel + per_speed |v|`. Under classic the noise of the
water track does not grow.

The plug-in requires `maxRangeDiff` and ignores it. The plug-in receives currents from a topic. Here the world's current
acts; a topic that the world does not publish gives a warning.

With water track and an element of the current profile, the plug-in is also a profiler: a second sensor with
`_current` after its name and topic. It has `waterTrackBins` cells of equal length between `minRange` and `maxRange`
along the beams, one ping per ensemble, and the noise of the water track. Velocities are those of the water relative to
the instrument, from all four beams. Cells have uniform weight over their length and end where side lobes reach the
bottom. Under classic each cell is one point, and cells end at the bottom. Ship and earth axes, which the plug-in does
not support, are then not published.
Source: ds_sim, `dsros_ros_dvl_plugin`, `dsros_dvl`, in the version with water track of the Naval Postgraduate School.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from navsense.core.errors import SdfError, SensorError
from navsense.core.pose import Pose, conjugate, rotate
from navsense.noise.specification import Noise
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_count, parse_child_flag, parse_child_number
from navsense.sdf.parse.doppler import (
    LAYER_BINDING,
    make_plugin_track_binding,
    parse_plugin_extras,
    parse_plugin_track,
)
from navsense.sdf.parse.noise import EXPLICIT_NO_NOISE
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugin_files import is_among
from navsense.sdf.plugins.base import resolve_topic
from navsense.sdf.schema import DSROS_DVL_FILE, DSROS_DVL_PLUGIN
from navsense.sdf.values import error_at, invalid_value, map_spec_errors, parse_text, require_child
from navsense.sdf.xml_reader import Element
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import (
    IDENTITY_ROTATION,
    Beams,
    BeamVelocityErrors,
    BeamWeighting,
    BinMapping,
    CoordinateSystem,
    DepthCells,
    DvlMessageOptions,
    MessageDialect,
    TrackErrors,
    WaterMassLayer,
    make_dsros_beams,
)
from navsense.sensors.dvl import Dvl, TrackMode

AZIMUTH_TAGS = tuple(f"beamAzimuthDeg{i}" for i in (1, 2, 3, 4))

REQUIRED_TAGS = ("frameName", "pointcloudFrame", "minRange", "maxRange", "maxRangeDiff", "beamAngleDeg", "beamWidthDeg")
"""Elements without which the plug-in does not start, in addition to the azimuths and the direction."""

LAYER_TAG, CLOUD_TAG = "navsense:layer", "navsense:cloud_points"

BOTTOM_TAG, WATER_TAG = "navsense:bottom_track", "navsense:water_track"

BOTTOM_NOISE_TAG, WATER_NOISE_TAG = "gaussianNoiseBeamVel", "gaussianNoiseBeamWtrVel"

BOTTOM_BINDING = make_plugin_track_binding(noise=BOTTOM_NOISE_TAG)
WATER_BINDING = make_plugin_track_binding(noise=WATER_NOISE_TAG)

BINS_TAG = "waterTrackBins"

PROFILE_DEFAULTS = {BINS_TAG: 1.0, "currentProfileCoordMode": 0.0}
"""Element of the current profile -> default."""

PROFILER_SUFFIX = "_current"
"""Suffix of the name and topic of the profiler."""

DEFAULT_CURRENT_TOPIC = "hydrodynamics/current_velocity"

DEFAULT_RATE = 1.0
"""Hz, the default of the plug-in."""

FIELD_TAGS: Mapping[str, str] = {
    "angle": "beamAngleDeg",
    "azimuths": AZIMUTH_TAGS[0],
    "beams": AZIMUTH_TAGS[0],
    "width": "beamWidthDeg",
    "minimum_range": "minRange",
    "maximum_range": "maxRange",
    **dict.fromkeys(("layer", *(field.name for field in fields(WaterMassLayer))), LAYER_TAG),
}
"""Field of the DVL or of its layer, or argument of `make_dsros_beams` -> element."""


class DsrosDvl(NamedTuple):
    """A sensor of the plug-in: specification, topic, frame of its messages, and its profiler."""

    spec: Dvl
    topic: str
    frame: str
    profiler: Adcp | None = None


def find_plugin(context: Context, sensor: Element) -> Element:
    """Return the plug-in of a sensor after a check.

    Raises `SdfError` for a sensor without this plug-in.
    """
    children = list(sensor.find_all("plugin"))
    plugins = [child for child in children if is_among(child.get_attribute("filename") or "", (DSROS_DVL_FILE,))]
    if not plugins:
        allowed = f"must be {DSROS_DVL_FILE}: a sensor of type dsros_dvl supports no other plug-in"
        name = require_child(sensor, "plugin", allowed).get_attribute("filename") or "missing"
        raise invalid_value(children[0], name, allowed, parent="sensor", attribute="filename")
    plugin, *duplicates = plugins
    for duplicate in duplicates:
        reason = f"is one of several; the one on line {plugin.line} is used"
        context.add_note("unsupported", f'<sensor><plugin filename="{DSROS_DVL_FILE}">', reason, duplicate.where)
    context.check(plugin, DSROS_DVL_PLUGIN)
    problems_before = context.problem_count
    for tag in (*REQUIRED_TAGS, *AZIMUTH_TAGS, "pos_z_down"):
        with context.collect_errors():
            require_child(plugin, tag, "must be given: the plug-in requires it")
    if context.problem_count > problems_before and isinstance(context.last_problem, SdfError):
        raise context.last_problem
    return plugin


def parse(
    context: Context, sensor: Element, plugin: Element, sensor_context: SensorContext, current_topic: str
) -> DsrosDvl | None:
    """Return the sensor of a plug-in. An invalid plug-in gives None and a problem.

    `current_topic` is the topic of the world's current, "" without one. Raises `SdfError`.
    """
    problems_before = context.problem_count
    topic = _parse_topic(context, plugin, sensor_context, "topicName", "/dvl")
    ranges_topic = _parse_topic(context, plugin, sensor_context, "rangesTopicName", "/dvl_ranges")
    reason = "velocities are in the axes of the sensor"
    frame, frame_pose = _find_link_pose(context, plugin, sensor_context, "frameName", reason)
    reference = IDENTITY_ROTATION if frame_pose is None else conjugate(frame_pose.rotation)
    fields = _parse_limits_and_noises(context, plugin, sensor_context) | {"reference": reference}
    tracks_water = parse_child_flag(context, plugin, "enableWaterTrack", default=False)
    cloud_points = parse_child_count(context, plugin, CLOUD_TAG, DvlMessageOptions().cloud_points)
    try:
        fields["beams"] = beams = _parse_beams(context, plugin)
        if tracks_water:
            layer = _parse_layer(context, plugin, beams, fields["minimum_range"], fields["maximum_range"])
            fields |= {"water_mode": TrackMode.FALLBACK, "layer": layer}
        reason = "the point cloud is in the axes of the velocity"
        cloud_frame, pose = _find_link_pose(context, plugin, sensor_context, "pointcloudFrame", reason)
        cloud_pose = Pose() if pose is None else pose.inverse() @ Pose(rotation=conjugate(reference))
        with map_spec_errors(plugin.find(CLOUD_TAG) or plugin):
            options = DvlMessageOptions(ranges_topic, cloud_frame, cloud_pose, cloud_points)
        spec = Dvl(**fields, classic=sensor_context.classic, dialect=MessageDialect.DSROS, message_options=options)
        profiler = _parse_profiler(context, plugin, spec, tracks_water=tracks_water)
    except SensorError as error:
        if context.problem_count > problems_before:
            return None  # invalid numbers are already reported
        raise error_at(plugin.find(FIELD_TAGS.get(error.field, "")) or plugin, error) from error
    if context.problem_count > problems_before:
        return None
    _warn_about_current(context, sensor, plugin, current_topic, tracks_water=tracks_water)
    _warn_about_direction(context, plugin, sensor_context, spec.beams)
    water = plugin.find(WATER_TAG)
    if water is not None and not tracks_water:
        context.add_note("warning", f"<{WATER_TAG}>", "has no effect: <enableWaterTrack> is not set", water.where)
    if spec.classic:
        _note_classic(context, plugin)
    return DsrosDvl(spec, topic, frame, profiler)


def _parse_topic(context: Context, plugin: Element, sensor_context: SensorContext, tag: str, default: str) -> str:
    """Return an absolute topic: one with a leading slash, or one in the namespace of the plug-in."""
    name, namespace = plugin.get_text(tag, default), plugin.get_text("robotNamespace").strip("/")
    if not namespace and not name.startswith("/"):
        namespace = sensor_context.name.partition("::")[0]
        reason = f"is absent: topics are in /{namespace}, the namespace of the model"
        context.add_note("warning", "<plugin><robotNamespace>", reason, plugin.where)
    text = name if name.startswith("/") else f"{namespace}/{name}"
    return resolve_topic(context, plugin.find(tag) or plugin, text) or ""


def _find_link_pose(
    context: Context, plugin: Element, sensor_context: SensorContext, tag: str, reason: str
) -> tuple[str, Pose | None]:
    """Return the link of a child, and its pose in the sensor; an unknown link gives None and a warning."""
    child = plugin.find(tag) or plugin
    name = parse_text(child, parent=plugin.tag)
    pose = sensor_context.find_pose(name)
    if pose is None:
        context.add_note("warning", f"<plugin><{tag}>: {name}", f"is not a link of the model: {reason}", child.where)
    return name, pose


def _parse_limits_and_noises(context: Context, plugin: Element, sensor_context: SensorContext) -> dict[str, Any]:
    """Return limits (m) and noises by field."""
    bottom_noise = _parse_noise(context, plugin, BOTTOM_NOISE_TAG, 0.0, sensor_context)
    water_noise = _parse_noise(context, plugin, WATER_NOISE_TAG, 2.0 * bottom_noise.stddev, sensor_context)
    range_noise = _parse_noise(context, plugin, "gaussianNoiseBeamRange", 0.0, sensor_context)
    parse_child_number(context, plugin, "maxRangeDiff", 0.0)
    child = plugin.find("maxRangeDiff")
    if child is not None:
        reason = "is required by the plug-in, but has no effect"
        context.add_note("unsupported", "<plugin><maxRangeDiff>", reason, child.where)
    return {
        "minimum_range": parse_child_number(context, plugin, "minRange", 0.0, minimum=0.0),
        "maximum_range": parse_child_number(context, plugin, "maxRange", 1.0),
        "bottom": parse_plugin_track(context, plugin, BOTTOM_TAG, BOTTOM_BINDING, TrackErrors(bottom_noise)),
        "water": parse_plugin_track(context, plugin, WATER_TAG, WATER_BINDING, TrackErrors(water_noise)),
        "range_noise": range_noise,
        **parse_plugin_extras(context, plugin),
    }


def _parse_noise(context: Context, plugin: Element, tag: str, default: float, sensor_context: SensorContext) -> Noise:
    """Return the noise with the standard deviation of a child. Raises `SdfError` for an invalid value.

    A child with 0 is the noise that a part of the catalogue does not replace.
    """
    child, stddev = plugin.find(tag), parse_child_number(context, plugin, tag, default, minimum=0.0)
    if child is not None and stddev == 0.0:
        return EXPLICIT_NO_NOISE
    with map_spec_errors(child or plugin):
        return Noise(stddev=stddev, classic=sensor_context.classic)


def _parse_beams(context: Context, plugin: Element) -> Beams:
    """Return the beams. Raises `SensorError` if no velocity can be solved from them."""
    angle, width = (
        math.radians(parse_child_number(context, plugin, tag, 30.0)) for tag in ("beamAngleDeg", "beamWidthDeg")
    )
    azimuths = [math.radians(parse_child_number(context, plugin, tag, 90.0 * i)) for i, tag in enumerate(AZIMUTH_TAGS)]
    down = parse_child_flag(context, plugin, "pos_z_down", default=False)
    return replace(make_dsros_beams(angle, azimuths, pos_z_down=down, width=width), weighting=BeamWeighting.PATTERN)


def _parse_layer(
    context: Context, plugin: Element, beams: Beams, minimum_range: float, maximum_range: float
) -> WaterMassLayer:
    """Return the tracked water layer, by default the span of the plug-in. Raises `SensorError`."""
    cosine = min(beams.positive_janus_cosines.tolist())
    near, far = minimum_range * cosine, maximum_range * cosine
    element = context.find_child(plugin, LAYER_TAG, LAYER_BINDING.schema)
    if element is None:
        return WaterMassLayer(near, far)
    attributes = {"near": repr(near), "far": repr(far), **element.attributes}
    return WaterMassLayer(**LAYER_BINDING.read_fields(context, replace(element, attributes=attributes)))


def _parse_profiler(context: Context, plugin: Element, spec: Dvl, *, tracks_water: bool) -> Adcp | None:
    """Return the profiler of the plug-in; None without one. Raises `SensorError`."""
    bins, mode = (parse_child_number(context, plugin, tag, default) for tag, default in PROFILE_DEFAULTS.items())
    children = [child for tag in PROFILE_DEFAULTS if (child := plugin.find(tag)) is not None]
    if mode not in range(len(CoordinateSystem)):
        raise invalid_value(children[-1], children[-1].text, "must be 0, 1, 2 or 3", parent=plugin.tag)
    if not tracks_water:
        for child in children:
            reason = "has no effect: <enableWaterTrack> is not set"
            context.add_note("warning", f"<plugin><{child.tag}>: {child.text}", reason, child.where)
    if not children or not tracks_water:
        return None
    cosine = min(spec.beams.positive_janus_cosines.tolist())
    count = int(bins) if bins == int(bins) else bins
    size = (spec.maximum_range - spec.minimum_range) * cosine / max(bins, 1.0)
    with map_spec_errors(plugin.find(BINS_TAG) or plugin):
        cells = DepthCells(count, size, spec.minimum_range * cosine, 0.0)  # type: ignore[arg-type]
    return Adcp(
        beams=spec.beams,
        cells=cells,
        bottom_pings=0,
        minimum_range=spec.minimum_range,
        maximum_range=spec.maximum_range,
        profile=BeamVelocityErrors(spec.water.noise.stddev),
        coordinates=list(CoordinateSystem)[int(mode)],
        bin_mapping=BinMapping.NONE,
        min_beams=len(AZIMUTH_TAGS),
        reference=spec.reference,
        classic=spec.classic,
        dialect=MessageDialect.DSROS,
    )


def _warn_about_current(
    context: Context, sensor: Element, plugin: Element, current_topic: str, *, tracks_water: bool
) -> None:
    """Add a warning if the topic of the current differs from that of the world, or the world has no current."""
    child = plugin.find("ocean_current_topic") or sensor.find("ocean_current_topic")
    name = plugin.get_text("ocean_current_topic") or sensor.get_text("ocean_current_topic", DEFAULT_CURRENT_TOPIC)
    what, where = f"<plugin><ocean_current_topic>: {name}", (child or plugin).where
    default = "" if child is not None else "is the default, and "
    if not tracks_water:
        if child is not None:
            context.add_note("warning", what, "has no effect: <enableWaterTrack> is not set", where)
    elif not current_topic:
        context.add_note("warning", what, f"{default}nothing in the world publishes it: the water is still", where)
    elif current_topic.strip("/") != name.strip("/"):
        reason = f"{default}nothing publishes it: the world's current, on {current_topic}, is used"
        context.add_note("warning", what, reason, where)


def _warn_about_direction(context: Context, plugin: Element, sensor_context: SensorContext, beams: Beams) -> None:
    """Add a warning if the beams point upwards in the initial pose, where they cannot hit the bottom."""
    x, y, z = (math.fsum(column) for column in zip(*beams.axes.tolist(), strict=True))
    child = plugin.find("pos_z_down")
    if child is not None and rotate(sensor_context.rotation_ws, (x, y, z))[2] > 0.0:
        reason = "the beams point upwards in this pose and cannot hit the bottom"
        context.add_note("warning", f"<plugin><pos_z_down>: {child.text}", reason, child.where)


def _note_classic(context: Context, plugin: Element) -> None:
    """Add notes about elements without effect under classic."""
    width, layer = plugin.find("beamWidthDeg"), plugin.find(LAYER_TAG)
    if width is not None:
        context.add_note("unsupported", "<plugin><beamWidthDeg>", "under classic a beam is one ray", width.where)
    if layer is not None and layer.get_attribute("share") is not None:
        reason = "under classic the layer may reach to the bottom"
        context.add_note("unsupported", f"<{LAYER_TAG} share>", reason, layer.where)
    water = plugin.find(WATER_TAG)
    for tag in ("per_speed", "reference_rate"):
        child = None if water is None else water.find(tag)
        if child is not None:
            reason = f"under classic the water track has the noise of <{WATER_NOISE_TAG}> on each axis"
            context.add_note("unsupported", f"<{WATER_TAG}><{tag}>", reason, child.where)


def choose_rate(context: Context, sensor: Element, plugin: Element, sensor_rate: float, rate: float) -> float:
    """Return the rate (Hz): the smaller of the sensor's and the plug-in's, with a note if they differ."""
    child = plugin.find("updateRateHZ")
    if child is None:
        reason = f"is absent: the default is {DEFAULT_RATE:g} Hz"
        context.add_note("warning", "<plugin><updateRateHZ>", reason, plugin.where)
    elif sensor.find("update_rate") is not None and rate != sensor_rate:
        reason = f"and {sensor_rate:g} Hz of <update_rate>: the smaller one is used"
        context.add_note("warning", f"<plugin><updateRateHZ>: {child.text}", reason, child.where)
    return min(sensor_rate, rate)
