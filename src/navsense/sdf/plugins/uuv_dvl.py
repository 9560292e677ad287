"""The UUV Simulator's DVL, a `<plugin filename="libuuv_gazebo_ros_dvl_plugin.so">` of a model.

    <robot_namespace>dvl</robot_namespace> <sensor_topic>dvl</sensor_topic>     its topic is both, joined by a slash
    <link_name>robot_link</link_name>                       link whose velocity is told, in its own axes
    <update_rate>7</update_rate>                            Hz; 30 where not given
    <noise_amplitude>0.005</noise_amplitude>                m/s, deviation of the noise; 0 where not given
    <noise_sigma>0.005</noise_sigma>                        m/s, deviation that the covariance states; 0 where not given
    <enable_local_ned_frame>false</enable_local_ned_frame>  true, as where not given: axes turned by half a turn about x
    <is_on>true</is_on>
    <beam_link_name_0>dvl/dvl_sonar0_link</beam_link_name_0> ... 3      links with a range sensor each
    <beam_topic_0>dvl_sonar0</beam_topic_0> ... 3                       topics of these sensors, in the namespace

The range sensors remain sensors of their own. What they are is what the DVL's beams are: rays, place, limits, noise of
the range, whether told by sound; the DVL draws noise of its own. Under classic velocity and altitude are the plug-in's
as it is documented: the link's own velocity with `noise_amplitude` on each axis, the mean of the four ranges. Else both
come of the beams: velocities along them have a deviation of `noise_amplitude`, the covariance is of `noise_sigma` each,
the real one where that is 0, and what moves is the place of the transducers. The plug-in's code has the product of the
two numbers for its noise, which its document does not say: that is not done here. A frame turned to NED is called after
the link, with `_ned` behind it. One that is not on at the start is a sensor that emits nothing until a live run
switches it on (`sim.sensor(name).switch(on=True)`). `<navsense:fidelity>` may stand in it, as in a sensor.
Source: UUV Simulator, `DVLROSPlugin`, `ROSBasePlugin` and `dvl_snippets.xacro`; its description by Field Robotics Lab.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from navsense.core.errors import SdfError
from navsense.core.pose import Pose
from navsense.core.typing import Quaternion
from navsense.noise.channel import Noise
from navsense.sdf import values
from navsense.sdf.context import Context
from navsense.sdf.parse._mount import Mount
from navsense.sdf.parse._plugin_sensor import PluginSensor, parse_topic
from navsense.sdf.parse.children import map_spec_errors, parse_child_flag, parse_child_number
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element
from navsense.sensors.doppler import IDENTITY_ROTATION, Beam, Beams, DopplerTrack, DvlMessageOptions, MessageDialect
from navsense.sensors.dvl import Dvl
from navsense.sensors.range import Range, Sound
from navsense.world import MountedSensor

BEAM_COUNT = 4
"""Beams."""

NED: Quaternion = (0.0, 1.0, 0.0, 0.0)
"""Half a turn about x: forward, left, up to forward, right, down."""

NED_SUFFIX = "_ned"

REQUIRED_TAGS = ("robot_namespace", "sensor_topic")


def parse(context: Context, element: Element, mount: Mount, others: Sequence[MountedSensor]) -> PluginSensor | None:
    """Return what a plug-in describes, given the other sensors of its model; None where problems were found.

    Raises `SdfError` for what no instrument can have.
    """
    _check_required(element)
    is_on = parse_child_flag(context, element, "is_on", default=True)
    if not is_on:
        child, reason = element.find("is_on") or element, "tells nothing until a live run switches it on"
        context.add_note("warning", f"<plugin><is_on>: {mount.name}", reason, child.where)
    before = context.problem_count
    sonars = [_find_sonar(context, element, mount, others, i) for i in range(BEAM_COUNT)]
    found = [sonar for sonar in sonars if sonar is not None]
    track = _parse_track(context, element, mount)
    turned = parse_child_flag(context, element, "enable_local_ned_frame", default=True)
    if len(found) < BEAM_COUNT or context.problem_count > before:
        return None  # each of these is a problem already
    _warn_about_differences(context, element, mount, found)
    specs = [sonar.spec for sonar in found]
    with map_spec_errors(element):
        sheet = Dvl(
            beams=Beams(tuple(_make_beam(mount, sonar) for sonar in found)),
            minimum_range=max(spec.minimum_range for spec in specs),
            maximum_range=min(spec.maximum_range for spec in specs),
            bottom=track,
            range=replace(specs[0].range, classic=mount.classic),
            sound=specs[0].sound or Sound(),
            reference=NED if turned else IDENTITY_ROTATION,
            own_hull=specs[0].own_hull,
            classic=mount.classic,
            dialect=MessageDialect.UUV,
            message_options=DvlMessageOptions(beam_frames=tuple(sonar.sensor.frame for sonar in found)),
        )
    return PluginSensor(sheet, NED_SUFFIX if turned else "", is_on)


def _check_required(element: Element) -> None:
    """Raise `SdfError` for an element without which the plug-in does not start."""
    for tag in (
        *REQUIRED_TAGS,
        *(f"{name}_{i}" for i in range(BEAM_COUNT) for name in ("beam_link_name", "beam_topic")),
    ):
        if element.find(tag) is None:
            raise SdfError(f"<plugin><{tag}>", "missing", where=element.where, allowed="must be given")


def _parse_track(context: Context, element: Element, mount: Mount) -> DopplerTrack:
    """Return the errors of the velocity. Raise `SdfError` for deviations that are none."""
    sigma, amplitude = (
        parse_child_number(context, element, tag, 0.0, minimum=0.0) for tag in ("noise_sigma", "noise_amplitude")
    )
    child = element.find("noise_amplitude") or element.find("noise_sigma")
    if child is not None and sigma + amplitude > 0.0:
        reason = f"noise of {amplitude:g} m/s and a covariance of {sigma:g} m/s, as documented; the plug-in's code has"
        reason += f" noise of their product, {sigma * amplitude:.3g} m/s"
        context.add_note("warning", f"<plugin><{child.tag}>: {child.text}", reason, child.where)
    with map_spec_errors(child or element):
        return DopplerTrack(Noise(stddev=amplitude, classic=mount.classic), reported_stddev=sigma)


class Sonar(NamedTuple):
    """The range sensor of a beam, and its sheet."""

    sensor: MountedSensor
    spec: Range


def _find_sonar(
    context: Context, element: Element, mount: Mount, others: Sequence[MountedSensor], index: int
) -> Sonar | None:
    """Return the range sensor of a beam; where there is none, None and a problem."""
    link, topic = (element.find(f"{name}_{index}") or element for name in ("beam_link_name", "beam_topic"))
    with context.collect_errors():
        name, wanted = values.parse_text(link, parent=element.tag), parse_topic(element, topic.tag)
        ranges = [Sonar(one, one.spec) for one in others if isinstance(one.spec, Range)]
        links = [one.sensor.link for one in ranges]
        on_link = [one for one, of in zip(ranges, links, strict=True) if of == name or of.endswith(f"::{name}")]
        if not on_link and context.problem_count and mount.find_pose(name) is not None:
            return None  # its range sensor may be one of the problems
        if not on_link:
            known = ", ".join(of.rpartition("::")[2] for of in links) or "none: the model has no range sensor"
            raise invalid_value(link, name, f"must be a link with a range sensor, one of {known}", parent=element.tag)
        found = [one for one in on_link if one.sensor.topic == wanted]
        if not found:
            known = ", ".join(one.sensor.topic for one in on_link)
            raise invalid_value(
                topic, wanted, f"must be the topic of the range sensor on {name}: {known}", parent="plugin"
            )
        return found[0]
    return None


def _make_beam(mount: Mount, sonar: Sonar) -> Beam:
    """Return the beam that a range sensor is, in the frame of the plug-in's link."""
    pose = (mount.find_pose(sonar.sensor.link) or Pose()) @ sonar.sensor.pose
    return Beam(sonar.spec.beam, pose.rotation, pose.position)


SHARED_FIELDS: Mapping[str, Callable[[Range], object]] = {
    "limits": lambda spec: (spec.minimum_range, spec.maximum_range),
    "noise": lambda spec: spec.range,
    "sound": lambda spec: spec.sound,
    "own_hull": lambda spec: spec.own_hull,
}
"""What one sheet has for all beams."""


def _warn_about_differences(context: Context, element: Element, mount: Mount, sonars: Sequence[Sonar]) -> None:
    """Warn of range sensors that are not alike, or not as fast as the plug-in: one sheet stands for them all."""
    for name, of in SHARED_FIELDS.items():
        if any(of(sonar.spec) != of(sonars[0].spec) for sonar in sonars[1:]):
            taken = "those that all beams keep" if name == "limits" else f"that of {sonars[0].sensor.name}"
            reason = f"the range sensors of its beams differ in {name}: {taken} is taken for the DVL"
            context.add_note("warning", f"<plugin>: {mount.name}", reason, element.where)
    child = element.find("update_rate")
    rate = parse_child_number(context, element, "update_rate", 0.0)
    if child is not None and any(sonar.sensor.rate != rate for sonar in sonars):
        shown = ", ".join(f"{sonar.sensor.rate:g}" for sonar in sonars)
        reason = f"differs from that of its range sensors, {shown} Hz: beams are heard at the rate of the plug-in"
        context.add_note("warning", f"<plugin><update_rate>: {child.text}", reason, child.where)
