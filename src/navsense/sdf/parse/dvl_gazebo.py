"""`<gz:dvl>`: the Doppler velocity log of gz-sensors, in a `<sensor type="custom" gz:type="dvl">`.

    <gz:dvl>
      <type>piston</type>                                                       or phased_array
      <arrangement degrees="true">                                              default: radians
        <beam id="1"> <aperture>2</aperture> <rotation>45</rotation> <tilt>30</tilt> </beam> ...       full aperture
      </arrangement>
      <tracking>
        <bottom_mode> <when>best</when> <noise type="gaussian"> ... </noise> </bottom_mode>       m/s, of each beam
        <water_mass_mode> <when>best</when> <noise .../> <bins>5</bins>
          <water_velocity> <x>east</x> <y>north</y> <z>up</z> </water_velocity> columns of the world's table
          <boundaries> <near>20</near> <far>60</far> </boundaries>              m; else 0.2 and 0.8 of the maximum
        </water_mass_mode>
      </tracking>
      <resolution>0.01</resolution>                                             rad, between rays (m at 1 m)
      <minimum_range>0.1</minimum_range> <maximum_range>100</maximum_range>     m along a beam
      <reference_frame>0 0 0 0 0 -1.570796</reference_frame>                    its axes are those of the velocity
    </gz:dvl>

An absent mode is off. A mode without `<when>` is always on. Each mode has its own noise. In Gazebo that of
`<water_mass_mode>` has no effect. The table of the world is a current like any other (`current_gazebo`). As in Gazebo,
the water layer is tracked only if the bottom is beyond its far boundary. Its bins have triangular weights: those of a
pulse as long as the layer (`doppler.water`).

The beams hit `<collision>` elements, in Gazebo `<visual>` elements. Sound has a travel time, except under classic.
`<navsense:propagation>` and `<navsense:own_hull>` in `<gz:dvl>` are as in `<dvl>`.
Source: gz-sensors, `DopplerVelocityLog.cc`.
"""

from __future__ import annotations

import math

from navsense.core.errors import SdfError
from navsense.core.pose import conjugate
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sdf.context import LEAF, Context, ElementSchema, make_schema
from navsense.sdf.parse.children import parse_child_choice, parse_child_count, parse_child_flag, parse_child_number
from navsense.sdf.parse.noise import parse_child_noise
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.values import (
    invalid_value,
    map_spec_errors,
    parse_attribute_flag,
    parse_attribute_integer,
    parse_pose,
)
from navsense.sdf.xml_reader import Element
from navsense.sensors.doppler import (
    IDENTITY_ROTATION,
    Beams,
    DvlMessageOptions,
    MessageDialect,
    TrackErrors,
    Transducer,
    WaterMassLayer,
    make_gazebo_beams,
)
from navsense.sensors.dvl import Dvl, TrackMode

MAX_RINGS = 10
"""Largest number of rings of rays in a beam: 331 rays."""

NEAR_SHARE, FAR_SHARE = 0.2, 0.8
"""Default boundaries of the water layer, as shares of the maximum range."""

DEFAULT_BINS = 5

DEFAULT_APERTURE = math.radians(90.0)
"""Default aperture (rad) of a beam."""

MODES = (TrackMode.NEVER, TrackMode.ALWAYS, TrackMode.BEST)

DVL = make_schema(
    """
    type arrangement tracking resolution minimum_range maximum_range reference_frame navsense:own_hull
    navsense:propagation visualize
    """
)
ARRANGEMENT = make_schema(repeatable="beam", attributes="degrees")
BEAM = make_schema("aperture rotation tilt", attributes="id")
TRACKING = make_schema("bottom_mode water_mass_mode")
BOTTOM_MODE = make_schema("when noise visualize")
WATER_MASS_MODE = ElementSchema(children=BOTTOM_MODE.children | {"water_velocity", "boundaries", "bins"})
WATER_VELOCITY = make_schema("x y z")
BOUNDARIES = make_schema("near far")
FRAME = make_schema(attributes="rotation_format degrees")


def parse_gz_dvl(context: Context, type_element: Element, sensor_context: SensorContext) -> Dvl:
    """Return the specification of a `<gz:dvl>`. Raises `SdfError`."""
    context.check(type_element, DVL)
    minimum = parse_child_number(context, type_element, "minimum_range", 0.1, minimum=0.0)
    maximum = parse_child_number(context, type_element, "maximum_range", 100.0, above=0.0)
    resolution = parse_child_number(context, type_element, "resolution", 0.01, above=0.0)
    transducer = Transducer(parse_child_choice(context, type_element, "type", Transducer.PISTON, tuple(Transducer)))
    beams, options = _parse_beams(context, context.require_child(type_element, "arrangement", ARRANGEMENT), resolution)
    tracking = context.require_child(type_element, "tracking", TRACKING)
    bottom_mode, bottom_noise = _parse_mode(context, tracking, "bottom_mode", BOTTOM_MODE, sensor_context)
    water_mode, water_noise = _parse_mode(context, tracking, "water_mass_mode", WATER_MASS_MODE, sensor_context)
    if bottom_mode is TrackMode.NEVER and water_mode is TrackMode.NEVER:
        allowed = "requires a <bottom_mode> or a <water_mass_mode> that is not never"
        raise SdfError("<tracking>", "nothing", where=tracking.where, allowed=allowed)
    water = tracking.find("water_mass_mode")
    layer = None if water is None or water_mode is TrackMode.NEVER else _parse_layer(context, water, beams, maximum)
    frame = context.find_child(type_element, "reference_frame", FRAME)
    reference = IDENTITY_ROTATION if frame is None else conjugate(parse_pose(frame, parent="gz:dvl").rotation)
    with map_spec_errors(type_element.find("maximum_range") or type_element):
        return Dvl(
            beams=beams,
            minimum_range=minimum,
            maximum_range=maximum,
            bottom=TrackErrors(bottom_noise),
            water=TrackErrors(water_noise),
            bottom_mode=bottom_mode,
            water_mode=water_mode,
            layer=layer,
            transducer=transducer,
            propagation=parse_child_flag(context, type_element, "navsense:propagation", default=True),
            own_hull=parse_child_flag(context, type_element, "navsense:own_hull", default=False),
            reference=reference,
            classic=sensor_context.classic,
            dialect=MessageDialect.GZ,
            message_options=options,
        )


def _parse_beams(context: Context, element: Element, resolution: float) -> tuple[Beams, DvlMessageOptions]:
    """Return the beams and their numbers; `resolution` is the angle (rad) between rays."""
    unit = math.radians(1.0) if parse_attribute_flag(element, "degrees") else 1.0
    beam_elements = list(element.find_all("beam"))
    for beam in beam_elements:
        context.check(beam, BEAM)
        if beam.find("aperture") is None:
            reason = "has no <aperture>: the default is 90 degrees, as Gazebo documents it"
            context.add_note("warning", "<arrangement><beam>", reason, beam.where)

    def parse_angle(beam: Element, tag: str) -> float:
        """Return an angle (rad) from -pi to pi."""
        return math.remainder(parse_child_number(context, beam, tag, 0.0) * unit, 2.0 * math.pi)

    rotations, tilts = ([parse_angle(beam, tag) for beam in beam_elements] for tag in ("rotation", "tilt"))
    default = DEFAULT_APERTURE / unit
    apertures = [parse_child_number(context, b, "aperture", default, minimum=0.0) * unit for b in beam_elements]
    widest = 0.5 * max(apertures, default=0.0)
    if math.ceil(widest / resolution) - 1 > MAX_RINGS:
        finest = widest / MAX_RINGS
        reason = f"is finer than supported: {MAX_RINGS} rings of rays in a beam, {finest:.3g} rad apart"
        context.add_note("warning", "<gz:dvl><resolution>", reason, element.where)
    rings_and_shares = [_count_rings(0.5 * aperture, resolution) for aperture in apertures]
    widths = [share * aperture for (_, share), aperture in zip(rings_and_shares, apertures, strict=True)]
    with map_spec_errors(element):
        beams = make_gazebo_beams(rotations, tilts, widths, rings=[rings for rings, _ in rings_and_shares])
    return beams, DvlMessageOptions(beam_ids=parse_beam_ids(beam_elements))


def _count_rings(half: float, resolution: float) -> tuple[int, float]:
    """Return the number of rings of rays inside half an aperture (rad), and the share of it inside the last ring.

    The rings are `resolution` (rad) apart, as are the points of Gazebo's image. There are at most `MAX_RINGS`.
    """
    rings = max(math.ceil(half / resolution) - 1, 0)
    if rings > MAX_RINGS:
        return MAX_RINGS, 1.0
    return rings, rings * resolution / half if rings else 0.0


def parse_beam_ids(beams: list[Element]) -> tuple[int, ...]:
    """Return the numbers of beams: the attribute, else one more than the previous number, 0 for the first."""
    ids: list[int] = []
    for beam in beams:
        number = parse_attribute_integer(beam, "id")
        if number is None:
            number = ids[-1] + 1 if ids else 0
        if number in ids or not 0 <= number < 1 << 31:
            raise invalid_value(beam, number, "must be unique among the beams, from 0 to 2147483647", attribute="id")
        ids.append(number)
    return tuple(ids)


def _parse_mode(
    context: Context, tracking: Element, tag: str, schema: ElementSchema, sensor_context: SensorContext
) -> tuple[TrackMode, Noise]:
    """Return when a mode supplies the velocity, and its noise; never and no noise without the mode."""
    element = context.find_child(tracking, tag, schema)
    if element is None:
        return TrackMode.NEVER, NO_NOISE
    mode = TrackMode(parse_child_choice(context, element, "when", TrackMode.ALWAYS, MODES))
    noise = parse_child_noise(context, element, classic=sensor_context.classic)
    return mode, NO_NOISE if mode is TrackMode.NEVER else noise


def _parse_layer(context: Context, water: Element, beams: Beams, maximum: float) -> WaterMassLayer:
    """Return the tracked water layer, at most `maximum` (m) away. Raises `SdfError`.

    `current_gazebo` reads its current.
    """
    velocity = context.require_child(water, "water_velocity", WATER_VELOCITY)
    for child in velocity.children:
        context.check(child, LEAF)
    if not any(child.text for child in velocity.find_all(*"xyz")):
        allowed = "must name a column of the world's table in <x>, <y> or <z>"
        raise invalid_value(velocity, "empty", allowed, parent="water_mass_mode")
    near, far = NEAR_SHARE * maximum, FAR_SHARE * maximum
    element = water
    boundaries = context.find_child(water, "boundaries", BOUNDARIES)
    if boundaries is not None:
        near = parse_child_number(context, boundaries, "near", near, minimum=0.0)
        far = parse_child_number(context, boundaries, "far", far, above=0.0)
        element = boundaries.find("far") or boundaries
    if far > maximum:
        allowed, remedy = (f"must be at most the maximum range, {maximum:g} m", "Gazebo does not load such a sensor")
        raise invalid_value(element, far, allowed, parent=water.tag, remedy=remedy)
    bins = parse_child_count(context, water, "bins", DEFAULT_BINS)
    with map_spec_errors(element):
        reach = maximum * min(beams.positive_janus_cosines.tolist())
        if far > reach:
            reason = f"{far:g} m is beyond the reach of the beams along the instrument's axis: {reach:.6g} m is used"
            context.add_note("warning", "<water_mass_mode><boundaries>", reason, element.where)
        end = min(far, reach)
        return WaterMassLayer(near, end, minimum_size=max(end - near, 0.0), samples=bins, share=1.0)
