"""Woods Hole's DVL, `<sensor type="dsros_dvl">`, as its plug-in describes it.

    <plugin filename="libdsros_ros_dvl.so" name="dvl_sensor_controller">     the sensor works with no other
      <robotNamespace>dvl</robotNamespace>                                   the model's name where not given
      <topicName>dvl</topicName> <rangesTopicName>ranges</rangesTopicName>   below it, unless they begin with a slash
      <frameName>dvl_link</frameName>                 link in whose axes the velocity is told
      <pointcloudFrame>robot_link</pointcloudFrame>   link in which the point cloud is
      <updateRateHZ>7</updateRateHZ>                  Hz; the smaller of it (1 where not given) and <update_rate> counts
      <gaussianNoiseBeamVel>0.005</gaussianNoiseBeamVel>           m/s along a beam; 0 where not given
      <gaussianNoiseBeamWtrVel>0.01</gaussianNoiseBeamWtrVel>      m/s, through water; twice the one over the bottom
      <gaussianNoiseBeamRange>0.1</gaussianNoiseBeamRange>         m; 0 where not given
      <minRange>0.7</minRange> <maxRange>90</maxRange> <maxRangeDiff>10</maxRangeDiff>     m along a beam
      <beamAngleDeg>30</beamAngleDeg> <beamWidthDeg>4</beamWidthDeg>         off the axis; full width
      <beamAzimuthDeg1>-135</beamAzimuthDeg1> ... 4 <pos_z_down>true</pos_z_down>          see `dsros`
      <enableWaterTrack>1</enableWaterTrack>          water is tracked where the bottom is not
      <ocean_current_topic>hydrodynamics/current_velocity</ocean_current_topic>
      <waterTrackBins>10</waterTrackBins>             cells of a profile of the current, 1 where not given
      <currentProfileCoordMode>0</currentProfileCoordMode>     its axes: 0 beam, 1 instrument, 2 ship, 3 earth
      <navsense:layer near="1" far="24" minimum_size="8" samples="5" share="0.8"/>         m along the instrument's axis
      <navsense:cloud_points>2</navsense:cloud_points>                       of one beam in the point cloud
    </plugin>

A beam is seven rays weighted by its pattern, under classic the one ray that the plug-in casts. Where no layer is given
it is what the plug-in's profile spans, from `minRange` to `maxRange` along the beams; under classic all of the way to
the bottom. The plug-in demands `maxRangeDiff` and does nothing with it. Its currents come by a topic: here the world's
current acts, and a warning tells of a topic that nothing in the world publishes.

Where the water is tracked, an element of the profile makes a profiler of it too, a sensor of its own with `_current`
behind name and topic: `waterTrackBins` cells of equal length between `minRange` and `maxRange` along the beams, one
ping at a time, velocities of the water against the instrument with the noise of the water's track, out of all four
beams. Its cells hear evenly over their length and end where side lobes meet the bottom; under classic each is one
point, they end at the bottom, and nothing is published in the axes of ship and earth, which the plug-in leaves out.
Source: ds_sim, `dsros_ros_dvl_plugin`, `dsros_dvl`, in the version with water track of the Naval Postgraduate School.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from navsense.errors import SdfError, SensorError
from navsense.noise.channel import Noise
from navsense.pose import Pose, conjugate, rotate
from navsense.sdf import values
from navsense.sdf.context import Context, Place
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.fields import flag_of, located, number_of, refused_at
from navsense.sdf.names import valid_topic
from navsense.sdf.places import DSROS_DVL, DSROS_DVL_PLUGIN
from navsense.sdf.read import Element
from navsense.sdf.values import refusal
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import (
    Accuracy,
    Beams,
    BinMapping,
    Cells,
    Coordinates,
    Dialect,
    Layer,
    Names,
    Track,
    Weighting,
    cosines,
    dsros,
)
from navsense.sensors.dvl import Dvl, Mode
from navsense.typing import Quaternion

AZIMUTHS = tuple(f"beamAzimuthDeg{i}" for i in (1, 2, 3, 4))

NEEDED = ("frameName", "pointcloudFrame", "minRange", "maxRange", "maxRangeDiff", "beamAngleDeg", "beamWidthDeg")
"""Elements that the plug-in does not start without, beside the azimuths and the direction."""

LAYER, CLOUD = "navsense:layer", "navsense:cloud_points"

BINS, AXES = "waterTrackBins", "currentProfileCoordMode"
"""Elements of a profile of the current."""

CURRENT = "_current"
"""What stands behind name and topic of the profiler."""

CURRENT_TOPIC = "hydrodynamics/current_velocity"

DEFAULT_RATE = 1.0
"""Hz, where the plug-in gives none."""

LAYER_PLACE = Place(attributes=frozenset(field.name for field in fields(Layer)))

BLAMED: Mapping[str, str] = {
    "angle of the beams (rad)": "beamAngleDeg",
    "axes of the beams": AZIMUTHS[0],
    "width of a beam (rad)": "beamWidthDeg",
    "minimum_range": "minRange",
    "maximum_range": "maxRange",
    "maximum_range (m)": "maxRange",
    "near boundary of the water layer (m)": LAYER,
    "far boundary of the water layer (m)": LAYER,
    "minimum size of the water layer (m)": LAYER,
    "samples of the water layer": LAYER,
    "share of the way to the bottom": LAYER,
    "points of a beam in the point cloud": CLOUD,
    "number of cells": BINS,
}
"""What a sheet refuses: the element that says it."""


class Plugged(NamedTuple):
    """A sensor as its plug-in has it: data sheet, topic, and frame of its messages; the profiler that it is too."""

    sheet: Dvl
    topic: str
    frame: str
    profile: Adcp | None = None


def plugin_of(context: Context, sensor: Element) -> Element:
    """Return the plug-in of a sensor, checked. Raise `SdfError` where it has none, or another one alone."""
    found = list(sensor.all("plugin"))
    own = [child for child in found if child.attribute("filename") == DSROS_DVL]
    if not own:
        allowed = f"must be {DSROS_DVL}: a sensor of type dsros_dvl works with no other plug-in"
        if not found:
            raise SdfError("<sensor><plugin>", "missing", where=sensor.where, allowed=allowed)
        name = found[0].attribute("filename") or "missing"
        raise refusal(found[0], name, allowed, parent="sensor", attribute="filename")
    plugin, *others = own
    for other in others:
        reason = f"is one of several; the one on line {plugin.line} counts"
        context.note("unsupported", f'<sensor><plugin filename="{DSROS_DVL}">', reason, other.where)
    context.check(plugin, DSROS_DVL_PLUGIN)
    _check_given(context, plugin)
    return plugin


def _check_given(context: Context, plugin: Element) -> None:
    """Raise `SdfError` for an element that is missing; each further one is a problem of its own."""
    lost = [tag for tag in (*NEEDED, *AZIMUTHS, "pos_z_down") if plugin.first(tag) is None]
    missing = [
        SdfError(f"<plugin><{tag}>", "missing", where=plugin.where, allowed="must be given: the plug-in needs it")
        for tag in lost
    ]
    for problem in missing[1:]:
        context.problem(problem)
    if missing:
        raise missing[0]


def fill(context: Context, sensor: Element, plugin: Element, mount: Mount, current: str) -> Plugged | None:
    """Return what a plug-in describes; None where it holds what cannot be, which is then a problem.

    `current` is the topic of the world's current, empty where it has none. Raises `SdfError`.
    """
    before = context.found
    topic = _topic(context, plugin, mount, "topicName", "/dvl")
    ranges = _topic(context, plugin, mount, "rangesTopicName", "/dvl_ranges")
    frame, reference = _frame(context, plugin, mount)
    given = _errors(context, plugin, mount) | {"reference": reference}
    tracks_water = flag_of(context, plugin, "enableWaterTrack", default=False)
    points = _points(context, plugin)
    try:
        given["beams"] = beams = _beams(context, plugin)
        if tracks_water:
            layer = _layer(context, plugin, beams, given)
            given |= {"water_mode": Mode.FALLBACK, "layer": layer}
        cloud = _cloud(context, plugin, mount, reference)
        names = Names(ranges, *cloud, points)
        sheet = Dvl(**given, classic=mount.classic, dialect=Dialect.DSROS, names=names)
        profile = _profile(context, plugin, sheet, tracks_water=tracks_water)
    except SensorError as error:
        if context.found > before:
            return None  # numbers that could not be read were told already
        raise refused_at(plugin.first(BLAMED.get(error.what, "")) or plugin, error) from error
    if context.found > before:
        return None
    _tell_of_current(context, sensor, plugin, current, tracks_water=tracks_water)
    _tell_of_direction(context, plugin, mount, sheet.beams)
    if sheet.classic:
        _tell_of_classic(context, plugin)
    return Plugged(sheet, topic, frame, profile)


def _text(element: Element, tag: str, default: str = "") -> str:
    """Return the text of a child, the default where there is none."""
    child = element.first(tag)
    return child.text if child is not None and child.text else default


def _topic(context: Context, plugin: Element, mount: Mount, tag: str, default: str) -> str:
    """Return a whole topic: one that begins with a slash, or one in the plug-in's namespace."""
    name, space = _text(plugin, tag, default), _text(plugin, "robotNamespace").strip("/")
    if not space and not name.startswith("/"):
        space = mount.name.partition("::")[0]
        reason = f"is not given: topics are in /{space}, that of the model"
        context.note("warning", "<plugin><robotNamespace>", reason, plugin.where)
    topic = valid_topic(name if name.startswith("/") else f"{space}/{name}")
    if topic is None:
        raise refusal(plugin.first(tag) or plugin, name, "must be a topic", parent=plugin.tag)
    return topic


def _frame(context: Context, plugin: Element, mount: Mount) -> tuple[str, Quaternion]:
    """Return the frame of the velocity, and the rotation that takes the sensor's axes to its."""
    child = plugin.first("frameName") or plugin
    name = values.text(child, parent=plugin.tag)
    pose = mount.pose_of(name)
    if pose is None:
        reason = "names no link of the model: velocities are told in the sensor's own axes"
        context.note("warning", f"<plugin><frameName>: {name}", reason, child.where)
        return name, (1.0, 0.0, 0.0, 0.0)
    return name, conjugate(pose.rotation)


def _cloud(context: Context, plugin: Element, mount: Mount, reference: Quaternion) -> tuple[str, Pose]:
    """Return the frame of the point cloud, and the pose in it of the sensor, turned to the axes of the velocity."""
    child = plugin.first("pointcloudFrame") or plugin
    name = values.text(child, parent=plugin.tag)
    link = mount.pose_of(name)
    if link is None:
        reason = "names no link of the model: the point cloud is in the axes of the velocity"
        context.note("warning", f"<plugin><pointcloudFrame>: {name}", reason, child.where)
        return name, Pose()
    return name, link.inverse() @ Pose(rotation=conjugate(reference))


def _points(context: Context, plugin: Element) -> int:
    """Return how many points of each beam are in the point cloud."""
    child, found = plugin.first(CLOUD), number_of(context, plugin, CLOUD, Names().cloud_points)
    if child is not None and found != int(found):
        raise refusal(child, child.text, "must be a whole number", parent=plugin.tag)
    return int(found)


def _errors(context: Context, plugin: Element, mount: Mount) -> dict[str, Any]:
    """Return limits (m) and noises of a sheet by its fields."""
    bottom = _noise(context, plugin, "gaussianNoiseBeamVel", 0.0, mount)
    through = _noise(context, plugin, "gaussianNoiseBeamWtrVel", 2.0 * bottom.stddev, mount)
    echo = _noise(context, plugin, "gaussianNoiseBeamRange", 0.0, mount)
    number_of(context, plugin, "maxRangeDiff", 0.0)
    child = plugin.first("maxRangeDiff")
    if child is not None:
        reason = "does nothing in the plug-in, which demands it"
        context.note("unsupported", "<plugin><maxRangeDiff>", reason, child.where)
    return {
        "minimum_range": number_of(context, plugin, "minRange", 0.0, least=0.0),
        "maximum_range": number_of(context, plugin, "maxRange", 1.0),
        "bottom": Track(bottom),
        "water": Track(through),
        "range": echo,
    }


def _noise(context: Context, plugin: Element, tag: str, default: float, mount: Mount) -> Noise:
    """Return the noise of which a child gives the deviation. Raise `SdfError` for one that is none."""
    stddev = number_of(context, plugin, tag, default, least=0.0)
    with located(plugin.first(tag) or plugin):
        return Noise(stddev=stddev, classic=mount.classic)


def _beams(context: Context, plugin: Element) -> Beams:
    """Return the beams. Raise `SensorError` for such as no velocity can be solved from."""
    angle, width = (math.radians(number_of(context, plugin, tag, 30.0)) for tag in ("beamAngleDeg", "beamWidthDeg"))
    azimuths = [math.radians(number_of(context, plugin, tag, 90.0 * i)) for i, tag in enumerate(AZIMUTHS)]
    down = flag_of(context, plugin, "pos_z_down", default=False)
    return replace(dsros(angle, azimuths, pos_z_down=down, width=width), weighting=Weighting.PATTERN)


def _layer(context: Context, plugin: Element, beams: Beams, given: Mapping[str, Any]) -> Layer:
    """Return the layer of water that is tracked, of the plug-in's own span where none is given. Raise `SensorError`."""
    element = plugin.first(LAYER)
    least = min(cosines(beams).tolist())
    near, far = given["minimum_range"] * least, given["maximum_range"] * least
    if element is None:
        return Layer(near, far)
    context.check(element, LAYER_PLACE)
    found = {field.name: values.attribute_number(element, field.name) for field in fields(Layer)}
    sheet: dict[str, Any] = {name: number for name, number in found.items() if number is not None}
    if "samples" in sheet and sheet["samples"] == int(sheet["samples"]):
        sheet["samples"] = int(sheet["samples"])
    return Layer(**{"near": near, "far": far, **sheet})


def _profile(context: Context, plugin: Element, sheet: Dvl, *, tracks_water: bool) -> Adcp | None:
    """Return the profiler that the plug-in describes too, None where it has none. Raise `SensorError`."""
    bins, mode = number_of(context, plugin, BINS, 1.0), number_of(context, plugin, AXES, 0.0)
    given = [child for tag in (BINS, AXES) if (child := plugin.first(tag)) is not None]
    if mode not in range(len(Coordinates)):
        raise refusal(given[-1], given[-1].text, "must be 0, 1, 2 or 3", parent=plugin.tag)
    axes = list(Coordinates)[int(mode)]
    for child in given:
        if not tracks_water:
            reason = "does not act: <enableWaterTrack> is not set"
            context.note("warning", f"<plugin><{child.tag}>: {child.text}", reason, child.where)
    if not given or not tracks_water:
        return None
    slant = min(cosines(sheet.beams).tolist())
    whole = int(bins) if bins == int(bins) else bins
    size = (sheet.maximum_range - sheet.minimum_range) * slant / max(bins, 1.0)
    return Adcp(
        beams=sheet.beams,
        cells=Cells(whole, size, sheet.minimum_range * slant, 0.0),  # type: ignore[arg-type]
        bottom_pings=0,
        minimum_range=sheet.minimum_range,
        maximum_range=sheet.maximum_range,
        profile=Accuracy(sheet.water.noise.stddev),
        coordinates=axes,
        bin_mapping=BinMapping.NONE,
        least_beams=len(AZIMUTHS),
        reference=sheet.reference,
        classic=sheet.classic,
        dialect=Dialect.DSROS,
    )


def _tell_of_current(context: Context, sensor: Element, plugin: Element, current: str, *, tracks_water: bool) -> None:
    """Warn of a current that is asked for by another topic than that of the world's, or that the world has not."""
    child = plugin.first("ocean_current_topic") or sensor.first("ocean_current_topic")
    name = _text(plugin, "ocean_current_topic") or _text(sensor, "ocean_current_topic", CURRENT_TOPIC)
    what, where = f"<plugin><ocean_current_topic>: {name}", (child or plugin).where
    if not tracks_water:
        if child is not None:
            context.note("warning", what, "does not act: <enableWaterTrack> is not set", where)
    elif not current:
        reason = "nothing in the world publishes it: the water is taken to stand still"
        context.note("warning", what, reason, where)
    elif current.strip("/") != name.strip("/"):
        context.note("warning", what, f"nothing publishes it: the world's current, on {current}, acts", where)


def _tell_of_direction(context: Context, plugin: Element, mount: Mount, beams: Beams) -> None:
    """Warn of beams that look up as the file poses them: they would meet no bottom."""
    x, y, z = (math.fsum(column) for column in zip(*beams.axes.tolist(), strict=True))
    child = plugin.first("pos_z_down")
    if child is not None and rotate(mount.rotation_ws, (x, y, z))[2] > 0.0:
        reason = "the beams look up, as the sensor is posed: they meet no bottom"
        context.note("warning", f"<plugin><pos_z_down>: {child.text}", reason, child.where)


def _tell_of_classic(context: Context, plugin: Element) -> None:
    """List what the plug-in's own rules leave no room for."""
    width, layer = plugin.first("beamWidthDeg"), plugin.first(LAYER)
    if width is not None:
        context.note("unsupported", "<plugin><beamWidthDeg>", "under classic a beam is one ray", width.where)
    if layer is not None and layer.attribute("share") is not None:
        reason = "under classic the layer may reach all of the way to the bottom"
        context.note("unsupported", f"<{LAYER} share>", reason, layer.where)


def rated(context: Context, sensor: Element, plugin: Element, own: float, rate: float) -> float:
    """Return the rate (Hz) in effect: the smaller of the sensor's own and the plug-in's; tell where they differ."""
    child = plugin.first("updateRateHZ")
    if child is None:
        reason = f"is not given: the plug-in's {DEFAULT_RATE:g} Hz"
        context.note("warning", "<plugin><updateRateHZ>", reason, plugin.where)
    elif sensor.first("update_rate") is not None and rate != own:
        reason = f"and {own:g} Hz of <update_rate>: the smaller one counts"
        context.note("warning", f"<plugin><updateRateHZ>: {child.text}", reason, child.where)
    return min(own, rate)
