"""`<sensor type="dvl">`: navsense's own `<dvl>`, with an element for each field of the spec, and Gazebo's `<gz:dvl>`.

    <dvl>
      <beams angle_deg="30" width_deg="4" rings="1" weighting="plane" absorption="0">   or nearest, or pattern (dB/m)
        <azimuths_deg>-135 135 45 -45</azimuths_deg> <down>0 0 -1</down>        counter-clockwise from x, along down
      </beams>
      <beams> <beam width_deg="4" rings="1" id="1"> <pose>...</pose> </beam>    or each beam: along x of its pose,
              <beam rotation_deg="45" tilt_deg="30"/> ... </beams>              or with Gazebo's angles
      <min>0.5</min> <max>100</max>                                             m along a beam
      <bottom_track when="always">                                              never, always, best
        <noise type="gaussian"> <stddev>0.002</stddev> </noise>                 m/s, of each beam
        <per_speed>0.001</per_speed> <reference_rate>8</reference_rate> <reported_stddev>0.004</reported_stddev>
        <long_term_scale>0.001</long_term_scale> <long_term_offset>0.001</long_term_offset>
        <maximum_velocity>9</maximum_velocity>                                  m/s; no usable echo above it
      </bottom_track>
      <water_track when="fallback">                                             or as above
        ... <layer near="5" far="30" minimum_size="2" samples="5" share="0.8"/> m along the instrument's axis
      </water_track>
      <range> <noise .../> </range>                                             m, of each beam
      <strength level="90" absorption="0.04" correlation="0.9" threshold="6" slope="1"/>
      <sound speed="1500"/> <transducer>piston</transducer>                     or phased_array
      <misalignment_deg>0 0 0.5</misalignment_deg> <misalignment_stddev_deg>0.2</misalignment_stddev_deg>
      <min_incidence_cosine>0.2</min_incidence_cosine> <error_velocity_limit>0.3</error_velocity_limit>
      <dropout_probability>0.01</dropout_probability> <reacquisition_time>2</reacquisition_time>
      <propagation>true</propagation> <processing_time>0.01</processing_time>
      <long_term acceleration_density="0.05" stddev="0.002" scale="0.001"/>
      <reference link="base_link" degrees="true">180 0 0</reference>            axes of the velocities
      <own_hull>false</own_hull>
    </dvl>

All in it may be left out: defaults are those of the classes in `navsense.sensors.dvl`. A water track that is given
without `when` is a fallback. A reference without a link is turned against the sensor's own axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from navsense.core.errors import SensorError
from navsense.core.pose import Pose, conjugate, from_rpy, multiply, normalize
from navsense.core.typing import Quaternion
from navsense.sdf import values
from navsense.sdf.binder import ChildParser, ElementBinding
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse.children import error_at, map_spec_errors
from navsense.sdf.parse.dvl_gazebo import parse_beam_ids, parse_gz_dvl
from navsense.sdf.parse.mount import Mount
from navsense.sdf.parse.noise import parse_channel_noise, parse_noise
from navsense.sdf.parse.range import SOUND
from navsense.sdf.schema import LEAF
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element
from navsense.sensors.doppler import (
    IDENTITY_ROTATION,
    X_AZIMUTHS_DEG,
    Beam,
    Beams,
    BeamWeighting,
    DopplerTrack,
    DvlMessageOptions,
    EchoStrength,
    LongTermFilter,
    WaterMassLayer,
    make_gazebo_rotation,
    make_janus_beams,
)
from navsense.sensors.dvl import BEAM_ANGLE, Dvl, TrackMode
from navsense.sensors.range import Cone

BEAM_ANGLES = ("rotation", "tilt")
"""Attributes of a beam with Gazebo's angles, without their unit."""

MIN_ANGLE_DEG = 5.0
"""Angle (degrees) from the axis below which the angle of beams is probably in radians; a warning reports it."""

_WIDTH_ATTRIBUTES = frozenset(("width_deg", "rings"))
BEAMS = ElementSchema(
    children=frozenset(("azimuths_deg", "down", "beam")),
    repeatable=frozenset(("beam",)),
    attributes=_WIDTH_ATTRIBUTES | {"angle_deg", "weighting", "absorption"},
)
BEAM = ElementSchema(children=frozenset(("pose",)), attributes=_WIDTH_ATTRIBUTES | {"rotation_deg", "tilt_deg", "id"})
BEAM_POSE = ElementSchema(attributes=frozenset(("rotation_format", "degrees")))
TRACK = ElementBinding(DopplerTrack, other_attributes=("when",))
WATER_TRACK = ElementBinding(DopplerTrack, other_children=("layer",), other_attributes=("when",))
LAYER = ElementBinding(WaterMassLayer, attributes=True)
ECHO_STRENGTH = ElementBinding(EchoStrength, attributes=True)
LONG_TERM = ElementBinding(LongTermFilter, attributes=True)
DVL = ElementBinding(
    Dvl,
    parsers={"strength": ECHO_STRENGTH.read, "sound": SOUND.read, "long_term": LONG_TERM.read},
    causes={"far": "water_track", "angle": "beams"},
)
REFERENCE = ElementSchema(attributes=frozenset(("link", "degrees")))


def parse(context: Context, block: Element | None, mount: Mount) -> Dvl:
    """Return the specification of a block; without a block the default. Raises `SdfError`."""
    if block is None:
        return Dvl(classic=mount.classic)
    return BLOCK_PARSERS[block.tag](context, block, mount)


def _parse_dvl(context: Context, block: Element, mount: Mount) -> Dvl:
    """Return the specification of a `<dvl>`. Raises `SdfError`."""
    context.check(block, DVL.schema)
    bottom, water = block.find("bottom_track"), block.find("water_track")
    found: dict[str, Any] = {}
    if (element := block.find("beams")) is not None:
        found["beams"], found["message_options"] = parse_beams(context, element)
    parsers: dict[str, ChildParser] = {
        "bottom": partial(_parse_track, binding=TRACK, classic=mount.classic),
        "water": partial(_parse_track, binding=WATER_TRACK, classic=mount.classic),
        "range": partial(parse_channel_noise, classic=mount.classic),
        "reference": partial(parse_reference, mount=mount),
    }
    found |= DVL.read_values(context, block, parsers)
    found |= {
        "bottom_mode": _parse_mode(bottom, TrackMode.ALWAYS, (TrackMode.NEVER, TrackMode.ALWAYS, TrackMode.BEST)),
        "water_mode": TrackMode.NEVER if water is None else _parse_mode(water, TrackMode.FALLBACK, tuple(TrackMode)),
    }
    if water is not None and (element := water.find("layer")) is not None:
        found["layer"] = LAYER.read(context, element)
    try:
        return Dvl(classic=mount.classic, **found)
    except SensorError as error:
        child = DVL.find_cause(block, error)
        raise error_at(child.find("layer") or child, error) from error


def _parse_mode(element: Element | None, default: TrackMode, allowed: tuple[TrackMode, ...]) -> TrackMode:
    """Return when a track supplies the velocity."""
    return default if element is None else TrackMode(values.parse_attribute_choice(element, "when", default, allowed))


def parse_beams(context: Context, element: Element, angle: float = BEAM_ANGLE) -> tuple[Beams, DvlMessageOptions]:
    """Return the beams, by default at `angle` (rad) from the axis, and their numbers."""
    context.check(element, BEAMS)
    weighting = BeamWeighting(
        values.parse_attribute_choice(element, "weighting", BeamWeighting.PLANE, tuple(BeamWeighting))
    )
    absorption = values.parse_attribute_number(element, "absorption") or 0.0
    each = list(element.find_all("beam"))
    with map_spec_errors(element):
        if not each:
            return replace(
                _parse_janus(context, element, angle), weighting=weighting, absorption=absorption
            ), DvlMessageOptions()
        _check_beam_layout(element)
        names = DvlMessageOptions(beam_ids=parse_beam_ids(each))
        return Beams(tuple(_parse_beam(context, beam, element) for beam in each), weighting, absorption), names


def _check_beam_layout(element: Element) -> None:
    """Raise `SdfError` if attributes of all beams are combined with single beams."""
    child = element.find("azimuths_deg", "down")
    allowed = "must not be combined with <beam>, which defines its own direction"
    if child is not None:
        raise invalid_value(child, child.text, allowed, parent=element.tag)
    if element.get_attribute("angle_deg"):
        raise invalid_value(element, element.get_attribute("angle_deg"), allowed, attribute="angle_deg")


def _parse_janus(context: Context, element: Element, default: float) -> Beams:
    """Return beams at one angle (rad) from `down`."""
    angle = values.parse_attribute_number(element, "angle_deg")
    if angle is not None and 0.0 < angle < MIN_ANGLE_DEG:
        reason = f"is read as degrees; if it is in radians, write {math.degrees(angle):.4g}"
        context.add_note("warning", f"<beams angle_deg>: {angle:g}", reason, element.where)
    cone = _parse_cone(element, element)
    azimuths = [math.radians(azimuth) for azimuth in _parse_azimuths(context, element.find("azimuths_deg"))]
    tilt = default if angle is None else math.radians(angle)
    child, made = element.find("down"), partial(make_janus_beams, tilt, azimuths, width=cone.width, rings=cone.rings)
    if child is None:
        return made()
    context.check(child, LEAF)
    return made(down=values.parse_vector(child, parent=element.tag))


def _parse_azimuths(context: Context, element: Element | None) -> Sequence[float]:
    """Return the azimuths (degrees), any number of them."""
    if element is None:
        return X_AZIMUTHS_DEG
    context.check(element, LEAF)
    return values.parse_numbers(element, max(1, len(element.text.split())), "must be finite numbers", parent="beams")


def _parse_cone(element: Element, parent: Element) -> Cone:
    """Return the shape of a beam: its own attributes, else those of the parent element."""
    widths = (values.parse_attribute_number(one, "width_deg") for one in (element, parent))
    rings = (values.parse_attribute_integer(one, "rings") for one in (element, parent))
    width = next((one for one in widths if one is not None), 0.0)
    return Cone(math.radians(width), next((one for one in rings if one is not None), 1) if width else 0)


def _parse_beam(context: Context, element: Element, parent: Element) -> Beam:
    """Return one beam, by its pose in the sensor or by rotation and tilt. Raises `SdfError`."""
    context.check(element, BEAM)
    pose, turns = element.find("pose"), [values.parse_attribute_number(element, f"{name}_deg") for name in BEAM_ANGLES]
    with map_spec_errors(element):
        shape = _parse_cone(element, parent)
        if pose is None:
            rotation, tilt = (math.radians(turn or 0.0) for turn in turns)
            if turns[1] is None:
                raise invalid_value(element, "missing", "must be given, or a <pose>", attribute="tilt_deg")
            return Beam(shape, make_gazebo_rotation(rotation, tilt))
        for name, turn in zip(BEAM_ANGLES, turns, strict=True):
            if turn is not None:
                raise invalid_value(element, turn, "must not be combined with <pose>", attribute=f"{name}_deg")
        context.check(pose, BEAM_POSE)
        place: Pose = values.parse_pose(pose, parent=element.tag)
        return Beam(shape, place.rotation, place.position)


def _parse_track(
    context: Context, element: Element, binding: ElementBinding[DopplerTrack], *, classic: bool
) -> DopplerTrack:
    return binding.read(context, element, {"noise": partial(parse_noise, classic=classic)})


def parse_reference(context: Context, element: Element, mount: Mount) -> Quaternion:
    """Return the rotation from the sensor's frame to the frame of the velocities. Raises `SdfError`."""
    context.check(element, REFERENCE)
    name, rotation_ws = element.get_attribute("link"), mount.rotation_ws
    within = rotation_ws if name is None else mount.find_rotation(name)
    if within is None:
        raise invalid_value(element, name, "must name a link of the model", attribute="link")
    turned = IDENTITY_ROTATION
    if element.text:
        angles = values.parse_numbers(element, 3, "must be 3 finite numbers: roll pitch yaw", parent="dvl")
        if values.parse_attribute_flag(element, "degrees"):
            angles = tuple(math.radians(angle) for angle in angles)
        turned = from_rpy(*angles)
    return normalize(multiply(conjugate(multiply(within, turned)), rotation_ws))


BLOCK_PARSERS: Mapping[str, Callable[[Context, Element, Mount], Dvl]] = {
    "dvl": _parse_dvl,
    "gz:dvl": parse_gz_dvl,
}
"""Tag of a block -> parser."""
