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
        <per_speed>0.001</per_speed> <reference_rate>8</reference_rate> <stated_stddev>0.004</stated_stddev>
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
      <least_incidence>0.2</least_incidence> <error_velocity_limit>0.3</error_velocity_limit>
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
from navsense.pose import Pose, conjugate, from_rpy, multiply, normalised
from navsense.sdf import values
from navsense.sdf.context import Context, Place
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.dvl_gazebo import beam_ids, gazebo
from navsense.sdf.fill.fields import flag_of, located, number_of, refused_at, vector_of, word_of
from navsense.sdf.fill.noise import channel_of, noise_of
from navsense.sdf.places import LEAF, SOUND
from navsense.sdf.read import Element
from navsense.sdf.values import refusal
from navsense.sensors.doppler import Beam, Beams, EchoStrength, Layer, LongTerm, Names, Track, Weighting, janus, tilted
from navsense.sensors.dvl import ANGLE, CROSSED, UNTURNED, Dvl, Mode, Transducer
from navsense.sensors.range import Cone, Sound
from navsense.typing import Quaternion, Vector

LEAST_ANGLE = 5.0
"""Degrees off the axis, below which the angle of beams is taken for one in radians, and a warning tells of it."""

NUMBERS: Mapping[str, str] = {
    "min": "minimum_range",
    "max": "maximum_range",
    **{
        name: name
        for name in (
            "least_incidence",
            "error_velocity_limit",
            "dropout_probability",
            "reacquisition_time",
            "processing_time",
        )
    },
}
"""Element with one number: field of the sheet."""

BLAMED: Mapping[str, str] = {
    **{field: tag for tag, field in NUMBERS.items()},
    "misalignment_stddev": "misalignment_stddev_deg",
    "misalignment (rad)": "misalignment_deg",
    "bottom_mode": "bottom_track",
    "layer": "water_track",
    "far boundary": "water_track",
    "angle of beam": "beams",
}
"""How what a sheet refuses begins: the element that gave it."""

_OF_TRACK = tuple(field.name for field in fields(Track) if field.name != "noise")
_OF_LAYER, _OF_STRENGTH, _OF_LONG_TERM = (
    tuple(field.name for field in fields(kind)) for kind in (Layer, EchoStrength, LongTerm)
)

DVL = Place(
    read=frozenset(
        """beams bottom_track water_track range strength sound transducer misalignment_deg misalignment_stddev_deg
        propagation long_term reference own_hull""".split()
    )
    | NUMBERS.keys()
)
_WIDTH = frozenset(("width_deg", "rings"))
BEAMS = Place(
    read=frozenset(("azimuths_deg", "down", "beam")),
    several=frozenset(("beam",)),
    attributes=_WIDTH | {"angle_deg", "weighting", "absorption"},
)
BEAM = Place(read=frozenset(("pose",)), attributes=_WIDTH | {"rotation_deg", "tilt_deg", "id"})
BEAM_POSE = Place(attributes=frozenset(("rotation_format", "degrees")))
TRACK = Place(read=frozenset(("noise", *_OF_TRACK)), attributes=frozenset(("when",)))
WATER_TRACK = replace(TRACK, read=TRACK.read | {"layer"})
LAYER = Place(attributes=frozenset(_OF_LAYER))
STRENGTH = Place(attributes=frozenset(_OF_STRENGTH))
LONG_TERM = Place(attributes=frozenset(_OF_LONG_TERM))
REFERENCE = Place(attributes=frozenset(("link", "degrees")))


def fill(context: Context, block: Element | None, mount: Mount) -> Dvl:
    """Return the data sheet that a block describes, without one the default. Raise `SdfError` for what cannot be."""
    if block is None:
        return Dvl(classic=mount.classic)
    return BLOCKS[block.tag](context, block, mount)


def _own(context: Context, block: Element, mount: Mount) -> Dvl:
    """Return the sheet of a `<dvl>`. Raise `SdfError`."""
    context.check(block, DVL)
    sheet = Dvl()
    beams, names = beams_of(context, block.first("beams"), sheet.beams)
    given: dict[str, Any] = {
        name: number_of(context, block, tag, getattr(sheet, name)) for tag, name in NUMBERS.items()
    }
    turned = _radians(vector_of(context, block, "misalignment_deg", sheet.misalignment))
    spread = math.radians(number_of(context, block, "misalignment_stddev_deg", sheet.misalignment_stddev))
    bottom, water = block.first("bottom_track"), block.first("water_track")
    wanted = Transducer(word_of(context, block, "transducer", sheet.transducer, tuple(Transducer)))
    try:
        return Dvl(
            beams=beams,
            bottom=_track(context, bottom, TRACK, classic=mount.classic),
            water=_track(context, water, WATER_TRACK, classic=mount.classic),
            range=channel_of(context, block.first("range"), classic=mount.classic),
            bottom_mode=_mode(bottom, Mode.ALWAYS, (Mode.NEVER, Mode.ALWAYS, Mode.BEST)),
            water_mode=Mode.NEVER if water is None else _mode(water, Mode.FALLBACK, tuple(Mode)),
            layer=_layer(context, water),
            strength=strength_of(context, block.first("strength")),
            sound=sound_of(context, block.first("sound")),
            transducer=wanted,
            misalignment=turned,
            misalignment_stddev=spread,
            propagation=flag_of(context, block, "propagation", default=sheet.propagation),
            long_term=_long_term(context, block.first("long_term")),
            reference=reference_of(context, block.first("reference"), mount),
            own_hull=flag_of(context, block, "own_hull", default=sheet.own_hull),
            classic=mount.classic,
            names=names,
            **given,
        )
    except SensorError as error:
        raise refused_at(_blamed(block, error), error) from error


def _blamed(block: Element, error: SensorError) -> Element:
    """Return the element that gave what a sheet refuses, the block where none did."""
    tags = (tag for start, tag in BLAMED.items() if error.what.startswith(start))
    child = next((child for tag in tags if (child := block.first(tag)) is not None), block)
    return child.first("layer") or child


def _radians(degrees: Vector) -> Vector:
    x, y, z = (math.radians(angle) for angle in degrees)
    return (x, y, z)


def given_of(element: Element, names: tuple[str, ...], required: str) -> dict[str, float]:
    """Return the numbers that an element's attributes give. Raise `SdfError` where one `required` is missing."""
    found = {name: number for name in names if (number := values.attribute_number(element, name)) is not None}
    for name in required.split():
        if name not in found:
            raise refusal(element, "missing", "must be given", attribute=name)
    return found


def _mode(element: Element | None, default: Mode, allowed: tuple[Mode, ...]) -> Mode:
    """Return when a track gives the velocity."""
    return default if element is None else Mode(values.attribute_word(element, "when", default, allowed))


def beams_of(context: Context, element: Element | None, default: Beams, angle: float = ANGLE) -> tuple[Beams, Names]:
    """Return the beams, at an angle (rad) where none is given, and how they are numbered."""
    if element is None:
        return default, Names()
    context.check(element, BEAMS)
    weighting = Weighting(values.attribute_word(element, "weighting", Weighting.PLANE, tuple(Weighting)))
    absorption = values.attribute_number(element, "absorption") or 0.0
    each = list(element.all("beam"))
    with located(element):
        if not each:
            return replace(_janus(context, element, angle), weighting=weighting, absorption=absorption), Names()
        _check_alone(element)
        names = Names(beam_ids=beam_ids(each))
        return Beams(tuple(_beam(context, beam, element) for beam in each), weighting, absorption), names


def _check_alone(element: Element) -> None:
    """Raise `SdfError` where what lays all beams stands beside beams that are laid one by one."""
    child = element.first("azimuths_deg", "down")
    allowed = "must not stand beside <beam>, of which each says how it is laid"
    if child is not None:
        raise refusal(child, child.text, allowed, parent=element.tag)
    if element.attribute("angle_deg"):
        raise refusal(element, element.attribute("angle_deg"), allowed, attribute="angle_deg")


def _janus(context: Context, element: Element, default: float) -> Beams:
    """Return beams at one angle from `down`, the default (rad) where none is given."""
    angle = values.attribute_number(element, "angle_deg")
    if angle is not None and 0.0 < angle < LEAST_ANGLE:
        reason = f"is taken as degrees; if it is radians, write {math.degrees(angle):.4g}"
        context.note("warning", f"<beams angle_deg>: {angle:g}", reason, element.where)
    cone = _cone(element, element)
    azimuths = [math.radians(azimuth) for azimuth in _azimuths(context, element.first("azimuths_deg"))]
    tilt = default if angle is None else math.radians(angle)
    child, made = element.first("down"), partial(janus, tilt, azimuths, width=cone.width, rings=cone.rings)
    if child is None:
        return made()
    context.check(child, LEAF)
    return made(down=values.vector(child, parent=element.tag))


def _azimuths(context: Context, element: Element | None) -> Sequence[float]:
    """Return the azimuths (degrees), as many as there are."""
    if element is None:
        return CROSSED
    context.check(element, LEAF)
    return values.numbers(element, max(1, len(element.text.split())), "must be finite numbers", parent="beams")


def _cone(element: Element, around: Element) -> Cone:
    """Return the shape of a beam by its own attributes, else by those of the element around it."""
    widths = (values.attribute_number(one, "width_deg") for one in (element, around))
    rings = (values.attribute_whole(one, "rings") for one in (element, around))
    width = next((one for one in widths if one is not None), 0.0)
    return Cone(math.radians(width), next((one for one in rings if one is not None), 1) if width else 0)


def _beam(context: Context, element: Element, around: Element) -> Beam:
    """Return one beam, by its pose in the sensor or by rotation and tilt. Raise `SdfError`."""
    context.check(element, BEAM)
    pose, turns = element.first("pose"), [values.attribute_number(element, f"{name}_deg") for name in ROTATION]
    with located(element):
        shape = _cone(element, around)
        if pose is None:
            rotation, tilt = (math.radians(turn or 0.0) for turn in turns)
            if turns[1] is None:
                raise refusal(element, "missing", "must be given, or a <pose>", attribute="tilt_deg")
            return Beam(shape, tilted(rotation, tilt))
        for name, turn in zip(ROTATION, turns, strict=True):
            if turn is not None:
                raise refusal(element, turn, "must not stand beside <pose>", attribute=f"{name}_deg")
        context.check(pose, BEAM_POSE)
        place: Pose = values.pose(pose, parent=element.tag)
        return Beam(shape, place.rotation, place.position)


def _track(context: Context, element: Element | None, place: Place, *, classic: bool) -> Track:
    """Return the errors of one track."""
    if element is None:
        return Track()
    context.check(element, place)
    given = {name: number_of(context, element, name, getattr(Track(), name), least=0.0) for name in _OF_TRACK}
    with located(element):
        return Track(noise_of(context, element, classic=classic), **given)


def _layer(context: Context, water: Element | None) -> Layer | None:
    """Return the layer of water, None where there is none."""
    element = water.first("layer") if water is not None else None
    if element is None:
        return None
    context.check(element, LAYER)
    samples = values.attribute_whole(element, "samples")
    given: dict[str, Any] = {} if samples is None else {"samples": samples}
    given |= given_of(element, tuple(name for name in _OF_LAYER if name != "samples"), "near far")
    with located(element):
        return Layer(**given)


def strength_of(context: Context, element: Element | None) -> EchoStrength | None:
    """Return the strength of the bottom's echo, None where it does not count."""
    if element is None:
        return None
    context.check(element, STRENGTH)
    with located(element):
        return EchoStrength(**given_of(element, _OF_STRENGTH, "level"))


def _long_term(context: Context, element: Element | None) -> LongTerm | None:
    """Return the filter over single pings, None where there is none."""
    if element is None:
        return None
    context.check(element, LONG_TERM)
    with located(element):
        return LongTerm(**given_of(element, _OF_LONG_TERM, "acceleration_density"))


def sound_of(context: Context, element: Element | None) -> Sound:
    """Return what the speed of sound is taken for."""
    if element is None:
        return Sound()
    context.check(element, SOUND)
    with located(element):
        return Sound(values.attribute_number(element, "speed", above=0.0))


def reference_of(context: Context, element: Element | None, mount: Mount) -> Quaternion:
    """Return the rotation from the sensor's frame to the one in which velocities are told. Raise `SdfError`."""
    if element is None:
        return UNTURNED
    context.check(element, REFERENCE)
    name, rotation_ws = element.attribute("link"), mount.rotation_ws
    within = rotation_ws if name is None else mount.rotation_of(name)
    if within is None:
        raise refusal(element, name, "must name a link of the model", attribute="link")
    turned = UNTURNED
    if element.text:
        angles = values.numbers(element, 3, "must be 3 finite numbers: roll pitch yaw", parent="dvl")
        if values.attribute_flag(element, "degrees"):
            angles = tuple(math.radians(angle) for angle in angles)
        turned = from_rpy(*angles)
    return normalised(multiply(conjugate(multiply(within, turned)), rotation_ws))


ROTATION = ("rotation", "tilt")
"""Attributes of a beam that is laid as Gazebo lays it, without their unit."""

BLOCKS: Mapping[str, Callable[[Context, Element, Mount], Dvl]] = {
    "dvl": _own,
    "gz:dvl": gazebo,
}
"""Tag of a block -> what reads it."""
