"""`<sensor type="dvl">`: navsense's own `<dvl>`, with an element for every field of the sheet, and Gazebo's `<gz:dvl>`.

    <dvl>
      <beams angle_deg="30" width_deg="4" rings="1" weighting="plane" absorption="0">   or nearest, or pattern (dB/m)
        <azimuths_deg>-135 135 45 -45</azimuths_deg> <down>0 0 -1</down>        counter-clockwise from x, along down
      </beams>
      <beams> <beam width_deg="4" rings="1" id="1"> <pose>...</pose> </beam>    or one by one: along x of its pose,
              <beam rotation_deg="45" tilt_deg="30"/> ... </beams>              or as Gazebo lays it
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
      <reference link="base_link" degrees="true">180 0 0</reference>            axes in which velocities are told
      <own_hull>false</own_hull>
    </dvl>

All in it may be left out: defaults are those of the classes in `navsense.sensors.dvl`. A water track that is given
without `when` is a fallback. A reference without a link is turned against the sensor's own axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from navsense.errors import SensorError
from navsense.pose import Pose, conjugate, from_rpy, multiply, normalize
from navsense.sdf import values
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse._mount import Mount
from navsense.sdf.parse.children import (
    error_at,
    map_spec_errors,
    parse_child_choice,
    parse_child_flag,
    parse_child_number,
    parse_child_vector,
)
from navsense.sdf.parse.dvl_gazebo import parse_beam_ids, parse_gz_dvl
from navsense.sdf.parse.noise import parse_channel_noise, parse_child_noise
from navsense.sdf.schema import LEAF, SOUND
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element
from navsense.sensors.doppler import (
    IDENTITY_ROTATION,
    X_AZIMUTHS,
    Beam,
    Beams,
    BeamWeighting,
    DopplerTrack,
    DvlMessageOptions,
    EchoStrength,
    LongTermFilter,
    Transducer,
    WaterMassLayer,
    make_gazebo_rotation,
    make_janus_beams,
)
from navsense.sensors.dvl import BEAM_ANGLE, Dvl, TrackMode
from navsense.sensors.range import Cone, Sound
from navsense.typing import Quaternion, Vector

MIN_ANGLE_DEG = 5.0
"""Degrees off the axis, below which the angle of beams is taken for one in radians, and a warning tells of it."""

NUMBER_TAGS: Mapping[str, str] = {
    "min": "minimum_range",
    "max": "maximum_range",
    **{
        name: name
        for name in (
            "min_incidence_cosine",
            "error_velocity_limit",
            "dropout_probability",
            "reacquisition_time",
            "processing_time",
        )
    },
}
"""Element with one number: field of the sheet."""

ERROR_TAGS: Mapping[str, str] = {
    **{field: tag for tag, field in NUMBER_TAGS.items()},
    "misalignment_stddev": "misalignment_stddev_deg",
    "misalignment (rad)": "misalignment_deg",
    "bottom_mode": "bottom_track",
    "layer": "water_track",
    "far boundary": "water_track",
    "angle of beam": "beams",
}
"""How what a sheet refuses begins: the element that gave it."""

_TRACK_FIELDS = tuple(field.name for field in fields(DopplerTrack) if field.name != "noise")
_LAYER_FIELDS, _STRENGTH_FIELDS, _LONG_TERM_FIELDS = (
    tuple(field.name for field in fields(kind)) for kind in (WaterMassLayer, EchoStrength, LongTermFilter)
)

DVL = ElementSchema(
    children=frozenset(
        """beams bottom_track water_track range strength sound transducer misalignment_deg misalignment_stddev_deg
        propagation long_term reference own_hull""".split()
    )
    | NUMBER_TAGS.keys()
)
_WIDTH_ATTRIBUTES = frozenset(("width_deg", "rings"))
BEAMS = ElementSchema(
    children=frozenset(("azimuths_deg", "down", "beam")),
    repeatable=frozenset(("beam",)),
    attributes=_WIDTH_ATTRIBUTES | {"angle_deg", "weighting", "absorption"},
)
BEAM = ElementSchema(children=frozenset(("pose",)), attributes=_WIDTH_ATTRIBUTES | {"rotation_deg", "tilt_deg", "id"})
BEAM_POSE = ElementSchema(attributes=frozenset(("rotation_format", "degrees")))
TRACK = ElementSchema(children=frozenset(("noise", *_TRACK_FIELDS)), attributes=frozenset(("when",)))
WATER_TRACK = replace(TRACK, children=TRACK.children | {"layer"})
LAYER = ElementSchema(attributes=frozenset(_LAYER_FIELDS))
STRENGTH = ElementSchema(attributes=frozenset(_STRENGTH_FIELDS))
LONG_TERM = ElementSchema(attributes=frozenset(_LONG_TERM_FIELDS))
REFERENCE = ElementSchema(attributes=frozenset(("link", "degrees")))


def parse(context: Context, block: Element | None, mount: Mount) -> Dvl:
    """Return the data sheet that a block describes, without one the default. Raise `SdfError` for what cannot be."""
    if block is None:
        return Dvl(classic=mount.classic)
    return BLOCK_PARSERS[block.tag](context, block, mount)


def _parse_dvl(context: Context, block: Element, mount: Mount) -> Dvl:
    """Return the sheet of a `<dvl>`. Raise `SdfError`."""
    context.check(block, DVL)
    sheet = Dvl()
    beams, names = parse_beams(context, block.find("beams"), sheet.beams)
    given: dict[str, Any] = {
        name: parse_child_number(context, block, tag, getattr(sheet, name)) for tag, name in NUMBER_TAGS.items()
    }
    turned = _to_radians(parse_child_vector(context, block, "misalignment_deg", sheet.misalignment))
    spread = math.radians(parse_child_number(context, block, "misalignment_stddev_deg", sheet.misalignment_stddev))
    bottom, water = block.find("bottom_track"), block.find("water_track")
    wanted = Transducer(parse_child_choice(context, block, "transducer", sheet.transducer, tuple(Transducer)))
    try:
        return Dvl(
            beams=beams,
            bottom=_parse_track(context, bottom, TRACK, classic=mount.classic),
            water=_parse_track(context, water, WATER_TRACK, classic=mount.classic),
            range=parse_channel_noise(context, block.find("range"), classic=mount.classic),
            bottom_mode=_parse_mode(bottom, TrackMode.ALWAYS, (TrackMode.NEVER, TrackMode.ALWAYS, TrackMode.BEST)),
            water_mode=TrackMode.NEVER if water is None else _parse_mode(water, TrackMode.FALLBACK, tuple(TrackMode)),
            layer=_parse_layer(context, water),
            strength=parse_echo_strength(context, block.find("strength")),
            sound=parse_sound(context, block.find("sound")),
            transducer=wanted,
            misalignment=turned,
            misalignment_stddev=spread,
            propagation=parse_child_flag(context, block, "propagation", default=sheet.propagation),
            long_term=_parse_long_term(context, block.find("long_term")),
            reference=parse_reference(context, block.find("reference"), mount),
            own_hull=parse_child_flag(context, block, "own_hull", default=sheet.own_hull),
            classic=mount.classic,
            message_options=names,
            **given,
        )
    except SensorError as error:
        raise error_at(_find_cause(block, error), error) from error


def _find_cause(block: Element, error: SensorError) -> Element:
    """Return the element that gave what a sheet refuses, the block where none did."""
    tags = (tag for start, tag in ERROR_TAGS.items() if error.what.startswith(start))
    child = next((child for tag in tags if (child := block.find(tag)) is not None), block)
    return child.find("layer") or child


def _to_radians(degrees: Vector) -> Vector:
    x, y, z = (math.radians(angle) for angle in degrees)
    return (x, y, z)


def parse_attribute_numbers(element: Element, names: tuple[str, ...], required: str) -> dict[str, float]:
    """Return the numbers that an element's attributes give. Raise `SdfError` where one `required` is missing."""
    found = {name: number for name in names if (number := values.parse_attribute_number(element, name)) is not None}
    for name in required.split():
        if name not in found:
            raise invalid_value(element, "missing", "must be given", attribute=name)
    return found


def _parse_mode(element: Element | None, default: TrackMode, allowed: tuple[TrackMode, ...]) -> TrackMode:
    """Return when a track gives the velocity."""
    return default if element is None else TrackMode(values.parse_attribute_choice(element, "when", default, allowed))


def parse_beams(
    context: Context, element: Element | None, default: Beams, angle: float = BEAM_ANGLE
) -> tuple[Beams, DvlMessageOptions]:
    """Return the beams, at an angle (rad) where none is given, and how they are numbered."""
    if element is None:
        return default, DvlMessageOptions()
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
    """Raise `SdfError` where what lays all beams stands beside beams that are laid one by one."""
    child = element.find("azimuths_deg", "down")
    allowed = "must not stand beside <beam>, of which each says how it is laid"
    if child is not None:
        raise invalid_value(child, child.text, allowed, parent=element.tag)
    if element.get_attribute("angle_deg"):
        raise invalid_value(element, element.get_attribute("angle_deg"), allowed, attribute="angle_deg")


def _parse_janus(context: Context, element: Element, default: float) -> Beams:
    """Return beams at one angle from `down`, the default (rad) where none is given."""
    angle = values.parse_attribute_number(element, "angle_deg")
    if angle is not None and 0.0 < angle < MIN_ANGLE_DEG:
        reason = f"is taken as degrees; if it is radians, write {math.degrees(angle):.4g}"
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
    """Return the azimuths (degrees), as many as there are."""
    if element is None:
        return X_AZIMUTHS
    context.check(element, LEAF)
    return values.parse_numbers(element, max(1, len(element.text.split())), "must be finite numbers", parent="beams")


def _parse_cone(element: Element, parent: Element) -> Cone:
    """Return the shape of a beam by its own attributes, else by those of the element around it."""
    widths = (values.parse_attribute_number(one, "width_deg") for one in (element, parent))
    rings = (values.parse_attribute_integer(one, "rings") for one in (element, parent))
    width = next((one for one in widths if one is not None), 0.0)
    return Cone(math.radians(width), next((one for one in rings if one is not None), 1) if width else 0)


def _parse_beam(context: Context, element: Element, parent: Element) -> Beam:
    """Return one beam, by its pose in the sensor or by rotation and tilt. Raise `SdfError`."""
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
                raise invalid_value(element, turn, "must not stand beside <pose>", attribute=f"{name}_deg")
        context.check(pose, BEAM_POSE)
        place: Pose = values.parse_pose(pose, parent=element.tag)
        return Beam(shape, place.rotation, place.position)


def _parse_track(context: Context, element: Element | None, schema: ElementSchema, *, classic: bool) -> DopplerTrack:
    """Return the errors of one track."""
    if element is None:
        return DopplerTrack()
    context.check(element, schema)
    given = {
        name: parse_child_number(context, element, name, getattr(DopplerTrack(), name), minimum=0.0)
        for name in _TRACK_FIELDS
    }
    with map_spec_errors(element):
        return DopplerTrack(parse_child_noise(context, element, classic=classic), **given)


def _parse_layer(context: Context, water: Element | None) -> WaterMassLayer | None:
    """Return the layer of water, None where there is none."""
    element = water.find("layer") if water is not None else None
    if element is None:
        return None
    context.check(element, LAYER)
    samples = values.parse_attribute_integer(element, "samples")
    given: dict[str, Any] = {} if samples is None else {"samples": samples}
    given |= parse_attribute_numbers(element, tuple(name for name in _LAYER_FIELDS if name != "samples"), "near far")
    with map_spec_errors(element):
        return WaterMassLayer(**given)


def parse_echo_strength(context: Context, element: Element | None) -> EchoStrength | None:
    """Return the strength of the bottom's echo, None where it does not count."""
    if element is None:
        return None
    context.check(element, STRENGTH)
    with map_spec_errors(element):
        return EchoStrength(**parse_attribute_numbers(element, _STRENGTH_FIELDS, "level"))


def _parse_long_term(context: Context, element: Element | None) -> LongTermFilter | None:
    """Return the filter over single pings, None where there is none."""
    if element is None:
        return None
    context.check(element, LONG_TERM)
    with map_spec_errors(element):
        return LongTermFilter(**parse_attribute_numbers(element, _LONG_TERM_FIELDS, "acceleration_density"))


def parse_sound(context: Context, element: Element | None) -> Sound:
    """Return what the speed of sound is taken for."""
    if element is None:
        return Sound()
    context.check(element, SOUND)
    with map_spec_errors(element):
        return Sound(values.parse_attribute_number(element, "speed", above=0.0))


def parse_reference(context: Context, element: Element | None, mount: Mount) -> Quaternion:
    """Return the rotation from the sensor's frame to the one in which velocities are told. Raise `SdfError`."""
    if element is None:
        return IDENTITY_ROTATION
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


BEAM_ANGLES = ("rotation", "tilt")
"""Attributes of a beam that is laid as Gazebo lays it, without their unit."""

BLOCK_PARSERS: Mapping[str, Callable[[Context, Element, Mount], Dvl]] = {
    "dvl": _parse_dvl,
    "gz:dvl": parse_gz_dvl,
}
"""Tag of a block -> what reads it."""
