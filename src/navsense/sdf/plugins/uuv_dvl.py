"""The UUV Simulator's DVL, a `<plugin filename="libuuv_gazebo_ros_dvl_plugin.so">` of a model.

    <robot_namespace>dvl</robot_namespace> <sensor_topic>dvl</sensor_topic>     topic: both, joined by a slash;
                                                            also <robotNamespace>, see `namespace`
    <link_name>robot_link</link_name>                       link whose velocity is measured, in its own axes
    <update_rate>7</update_rate>                            Hz; default 30
    <noise_amplitude>0.005</noise_amplitude>                m/s, stddev of the noise; default 0
    <noise_sigma>0.005</noise_sigma>                        m/s, stddev in the covariance; default 0
    <enable_local_ned_frame>false</enable_local_ned_frame>  true, the default: axes rotated by pi about x
    <static_reference_frame>world</static_reference_frame>  or world_ned, see below
    <is_on>true</is_on>
    <beam_link_name_0>dvl/dvl_sonar0_link</beam_link_name_0> ... 3      links with a range sensor each
    <beam_topic_0>dvl_sonar0</beam_topic_0> ... 3                       topics of these sensors, in the namespace
    <navsense:bottom_track> <per_speed>0.002</per_speed> ... </navsense:bottom_track>    as in `<dvl>`, without <noise>
    <navsense:strength level="90"/>                                     as in `<dvl>`
    <navsense:long_term acceleration_density="0.05" stddev="0.002"/>    as in `<dvl>`

The range sensors remain sensors. The beams of the DVL have their rays, pose, limits, range noise and sound; the DVL
draws its own noise. Under classic, velocity and altitude are those that the plug-in documents. The velocity is that
of the link with `noise_amplitude` on each axis, the altitude the mean of the four ranges. Otherwise both are solved
from the beams.
Velocities along them have a standard deviation of `noise_amplitude`. The covariance has `noise_sigma` per beam, or the
true deviation if that is 0. The velocity is then that of the transducers, not of the origin of the link.

The elements of navsense give the errors that the plug-in lacks: noise that grows with the speed, range and rate, and a
long-term velocity. The noise of a beam is then `noise_amplitude + per_speed |v|`, and `noise_sigma` should be 0 for the
true covariance. Under classic the velocity has the noise of `noise_amplitude` only.

The plug-in's code multiplies the two numbers for its noise, which its document does not mention. navsense follows the
document. A frame rotated to NED has the name of the link with the suffix `_ned`. Messages have the frame of the link
for any `<static_reference_frame>`, as documented and in the plug-in's code, whose DVL does not use the element. The
frame `world_ned` of the UUV Simulator is then in `/tf_static`. A sensor with `<is_on>` false emits nothing until it is
switched on. `<navsense:fidelity>` and `<navsense:switch>` are allowed, as in a sensor.
Source: UUV Simulator, `DVLROSPlugin`, `ROSBasePlugin` and `dvl_snippets.xacro`; its description by Field Robotics Lab.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from navsense.core.names import WORLD_FRAME, get_short_name, suggest_name
from navsense.core.pose import Pose
from navsense.noise.specification import Noise
from navsense.sdf.context import Context
from navsense.sdf.names import normalize_topic
from navsense.sdf.parse.children import parse_child_flag, parse_child_number, parse_child_text
from navsense.sdf.parse.doppler import (
    STRENGTH_TAG,
    make_plugin_track_binding,
    parse_plugin_extras,
    parse_plugin_track,
)
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import NED, NED_SUFFIX, ModelPlugin, PluginSensor, parse_topic
from navsense.sdf.ros_names import find_declared_namespace
from navsense.sdf.schema import UUV_DVL_FILE, UUV_DVL_PLUGIN
from navsense.sdf.values import invalid_value, map_spec_errors, parse_text, require_child
from navsense.sdf.xml_reader import Element
from navsense.sensors.doppler import IDENTITY_ROTATION, Beam, Beams, DvlMessageOptions, MessageDialect, TrackErrors
from navsense.sensors.dvl import Dvl
from navsense.sensors.range import Range, Sound
from navsense.world import MountedSensor

BEAM_COUNT = 4
"""Number of beams."""

FRAME_TAG, WORLD_NED_FRAME = "static_reference_frame", "world_ned"

BEAM_TAGS = tuple(f"{name}_{i}" for i in range(BEAM_COUNT) for name in ("beam_link_name", "beam_topic"))

TRACK_TAG = "navsense:bottom_track"

TRACK_BINDING = make_plugin_track_binding(noise="noise_amplitude", reported_stddev="noise_sigma")

REQUIRED_TAGS = ("sensor_topic", *BEAM_TAGS)
"""Elements without which the plug-in does not start."""


def parse(
    context: Context, element: Element, sensor_context: SensorContext, sensors: Sequence[MountedSensor]
) -> PluginSensor | None:
    """Return the sensor of a plug-in; `sensors` are the sensors of its model so far. Problems give None.

    Raises `SdfError`.
    """
    if not find_declared_namespace(element):
        require_child(element, "robot_namespace", "must be given; or give the namespace with --namespace")
    for tag in REQUIRED_TAGS:
        require_child(element, tag)
    problems_before = context.problem_count
    candidates = [_find_sonar(context, element, sensor_context, sensors, i) for i in range(BEAM_COUNT)]
    sonars = [sonar for sonar in candidates if sonar is not None]
    track, extras = _parse_track(context, element, sensor_context), {}
    with context.collect_errors():
        track = parse_plugin_track(context, element, TRACK_TAG, TRACK_BINDING, track)
        extras = parse_plugin_extras(context, element)
    uses_ned = parse_child_flag(context, element, "enable_local_ned_frame", default=True)
    if len(sonars) < BEAM_COUNT or context.problem_count > problems_before:
        return None  # each of these is already a problem
    _warn_about_differences(context, element, sensor_context, sonars)
    specs = [sonar.spec for sonar in sonars]
    with map_spec_errors(element):
        spec = Dvl(
            beams=Beams(tuple(_make_beam(sensor_context, sonar) for sonar in sonars)),
            minimum_range=max(spec.minimum_range for spec in specs),
            maximum_range=min(spec.maximum_range for spec in specs),
            bottom=track,
            range_noise=replace(specs[0].range_noise, classic=sensor_context.classic),
            sound=specs[0].sound or Sound(),
            reference=NED if uses_ned else IDENTITY_ROTATION,
            own_hull=specs[0].own_hull,
            classic=sensor_context.classic,
            dialect=MessageDialect.UUV,
            **extras,
            message_options=DvlMessageOptions(
                beam_frames=tuple(sonar.sensor.frame for sonar in sonars),
                world_ned_frame=_parse_reference_frame(context, element, sensor_context),
            ),
        )
    _note_extensions(context, element, spec)
    return PluginSensor(spec, NED_SUFFIX if uses_ned else "")


def _parse_track(context: Context, element: Element, sensor_context: SensorContext) -> TrackErrors:
    """Return the errors of the velocity. Raises `SdfError` for invalid deviations."""
    tags = ("noise_sigma", "noise_amplitude")
    sigma, amplitude = (parse_child_number(context, element, tag, 0.0, minimum=0.0) for tag in tags)
    child = element.find("noise_amplitude") or element.find("noise_sigma")
    if child is not None and sigma + amplitude > 0.0:
        reason = f"noise of {amplitude:g} m/s and a covariance of {sigma:g} m/s, as documented; the plug-in's code has"
        reason += f" noise of their product, {sigma * amplitude:.3g} m/s"
        context.add_note("warning", f"<plugin><{child.tag}>: {child.text}", reason, child.where)
    with map_spec_errors(child or element):
        return TrackErrors(Noise(stddev=amplitude, classic=sensor_context.classic), reported_stddev=sigma)


def _parse_reference_frame(context: Context, element: Element, sensor_context: SensorContext) -> str:
    """Return the name of the world's NED frame if the plug-in names it, else "". Another frame gives a warning."""
    name = parse_child_text(context, element, FRAME_TAG, WORLD_FRAME)
    if name not in (WORLD_FRAME, WORLD_NED_FRAME) and sensor_context.find_pose(name) is None:
        reason = "is not a frame of the recording; messages have the frame of the link, as in the plug-in"
        context.add_note(
            "warning", f"<plugin><{FRAME_TAG}>: {name}", reason, (element.find(FRAME_TAG) or element).where
        )
    return WORLD_NED_FRAME if name == WORLD_NED_FRAME else ""


def _note_extensions(context: Context, element: Element, spec: Dvl) -> None:
    """Add notes about elements of navsense that `<noise_sigma>` or classic contradicts."""
    sigma, child = element.find("noise_sigma"), element.find(TRACK_TAG, STRENGTH_TAG)
    if spec.classic:
        for tag in (TRACK_TAG, STRENGTH_TAG):
            extension = element.find(tag)
            if extension is not None:
                reason = (
                    "under classic the velocity has the noise of <noise_amplitude> on each axis, and no other error"
                )
                context.add_note("unsupported", f"<{tag}>", reason, extension.where)
    elif child is not None and sigma is not None and spec.bottom.reported_stddev > 0.0:
        reason = f"the covariance does not include <{child.tag}>; write 0 for the true covariance"
        context.add_note("warning", f"<plugin><noise_sigma>: {sigma.text}", reason, sigma.where)


class Sonar(NamedTuple):
    """The range sensor of a beam, and its specification."""

    sensor: MountedSensor
    spec: Range


def _find_sonar(
    context: Context, element: Element, sensor_context: SensorContext, sensors: Sequence[MountedSensor], index: int
) -> Sonar | None:
    """Return the range sensor of a beam; an unknown one gives None and a problem."""
    link_child, topic_child = (element.find(f"{name}_{index}") or element for name in ("beam_link_name", "beam_topic"))
    with context.collect_errors():
        name, topic = parse_text(link_child, parent=element.tag), parse_topic(element, topic_child.tag)
        topic = normalize_topic(topic) or topic
        sonars = [Sonar(sensor, sensor.spec) for sensor in sensors if isinstance(sensor.spec, Range)]
        on_link = [sonar for sonar in sonars if f"::{sonar.sensor.link}".endswith(f"::{name}")]
        if not on_link and context.problem_count and sensor_context.find_pose(name) is not None:
            return None  # its range sensor may have a problem
        if not on_link:
            links = [sonar.sensor.link.rpartition("::")[2] for sonar in sonars]
            names = ", ".join(links) or "none: the model has no range sensor"
            allowed = f"must be a link with a range sensor, one of {names}"
            raise invalid_value(link_child, name, allowed, parent=element.tag)
        for sonar in on_link:
            if sonar.sensor.topic == topic:
                return sonar
        topics = [sonar.sensor.topic for sonar in on_link]
        allowed = f"must be the topic of the range sensor on {name}: {', '.join(topics)}"
        remedy = suggest_name(topic, topics, separator="/")
        if get_short_name(topic, "/") in [get_short_name(name, "/") for name in topics]:
            remedy = "give the namespace of its range plug-in: <robotNamespace> or --namespace"
            declared = find_declared_namespace(element)
            if context.namespace and context.namespace != declared:
                remedy = f"the DVL has the namespace {declared}: give --namespace {declared}, or omit --namespace"
        raise invalid_value(topic_child, topic, allowed, parent="plugin", remedy=remedy)
    return None


def _make_beam(sensor_context: SensorContext, sonar: Sonar) -> Beam:
    """Return the beam of a range sensor, in the frame of the plug-in's link."""
    pose = (sensor_context.find_pose(sonar.sensor.link) or Pose()) @ sonar.sensor.pose
    return Beam(sonar.spec.beam, pose.rotation, pose.position)


SHARED_FIELDS: Mapping[str, Callable[[Range], object]] = {
    "limits": lambda spec: (spec.minimum_range, spec.maximum_range),
    "noise": lambda spec: spec.range_noise,
    "sound": lambda spec: spec.sound,
    "own_hull": lambda spec: spec.own_hull,
}
"""Fields that all beams of a specification share."""


def _warn_about_differences(
    context: Context, element: Element, sensor_context: SensorContext, sonars: Sequence[Sonar]
) -> None:
    """Add a warning if the range sensors differ from each other, or from the rate of the plug-in."""
    for name, get_value in SHARED_FIELDS.items():
        if any(get_value(sonar.spec) != get_value(sonars[0].spec) for sonar in sonars[1:]):
            choice = "the limits common to all" if name == "limits" else f"that of {sonars[0].sensor.name}"
            reason = f"the range sensors of its beams differ in {name}: {choice} is used for the DVL"
            context.add_note("warning", f"<plugin>: {sensor_context.name}", reason, element.where)
    child = element.find("update_rate")
    rate = parse_child_number(context, element, "update_rate", 0.0)
    if child is not None and any(sonar.sensor.rate != rate for sonar in sonars):
        rates = ", ".join(f"{sonar.sensor.rate:g}" for sonar in sonars)
        reason = f"differs from that of its range sensors, {rates} Hz: the DVL pings at the rate of the plug-in"
        context.add_note("warning", f"<plugin><update_rate>: {child.text}", reason, child.where)


MODEL_PLUGINS = {UUV_DVL_FILE: ModelPlugin(UUV_DVL_PLUGIN, Dvl.type, parse)}
