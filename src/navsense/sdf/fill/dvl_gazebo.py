"""`<gz:dvl>`: the Doppler velocity log of gz-sensors, in a `<sensor type="custom" gz:type="dvl">`.

    <gz:dvl>
      <type>piston</type>                                                       or phased_array
      <arrangement degrees="true">                                              radians where it does not say
        <beam id="1"> <aperture>2</aperture> <rotation>45</rotation> <tilt>30</tilt> </beam> ...       full aperture
      </arrangement>
      <tracking>
        <bottom_mode> <when>best</when> <noise type="gaussian"> ... </noise> </bottom_mode>       m/s, of each beam
        <water_mass_mode> <when>best</when> <noise .../> <bins>5</bins>
          <water_velocity> <x>east</x> <y>north</y> <z>up</z> </water_velocity> columns of the world's table
          <boundaries> <near>20</near> <far>60</far> </boundaries>              m; else 0.2 and 0.8 of the maximum
        </water_mass_mode>
      </tracking>
      <resolution>0.01</resolution>                                             m at 1 m, between rays
      <minimum_range>0.1</minimum_range> <maximum_range>100</maximum_range>     m along a beam
      <reference_frame>0 0 0 0 0 -1.570796</reference_frame>                    its axes are those of the velocity
    </gz:dvl>

A mode that is not given is off, one without `<when>` is always on. The table of the world is a current like any other
(`current_gazebo`). A water layer is all or nothing, as there: none where the bottom is nearer than its far boundary;
its bins weigh as a pulse as long as the layer hears them. Noise acts in both modes. Bodies are met by their
`<collision>`, in Gazebo by their `<visual>`, and sound takes its time; `<navsense:propagation>` and
`<navsense:own_hull>` beside are as in `<dvl>`. Source: gz-sensors, `DopplerVelocityLog.cc`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from navsense.errors import SdfError
from navsense.noise.channel import NEUTRAL, Noise
from navsense.pose import conjugate
from navsense.sdf import values
from navsense.sdf.context import Context, Place
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.fields import flag_of, located, number_of, word_of
from navsense.sdf.fill.noise import noise_of
from navsense.sdf.places import LEAF
from navsense.sdf.read import Element
from navsense.sdf.values import refusal
from navsense.sensors.doppler import Beams, Dialect, Layer, Names, Track, cosines
from navsense.sensors.doppler import gazebo as laid
from navsense.sensors.dvl import UNTURNED, Dvl, Mode, Transducer
from navsense.typing import Quaternion

FINEST = 10
"""Rings of rays in a beam, at most: 331 rays."""

NEAR, FAR = 0.2, 0.8
"""Boundaries of the water layer where a file does not say, as shares of the maximum range."""

BINS = 5

WIDE = math.radians(90.0)
"""Aperture (rad) of a beam where a file does not say."""

MODES = (Mode.NEVER, Mode.ALWAYS, Mode.BEST)

_LOOKS = "looks only; no sensor of navsense sees it"

DVL = Place(
    read=frozenset(
        """type arrangement tracking resolution minimum_range maximum_range reference_frame navsense:own_hull
        navsense:propagation""".split()
    ),
    unsupported={"visualize": _LOOKS},
)
ARRANGEMENT = Place(read=frozenset(("beam",)), several=frozenset(("beam",)), attributes=frozenset(("degrees",)))
BEAM = Place(read=frozenset(("aperture", "rotation", "tilt")), attributes=frozenset(("id",)))
TRACKING = Place(read=frozenset(("bottom_mode", "water_mass_mode")))
BOTTOM_MODE = Place(read=frozenset(("when", "noise")), unsupported={"visualize": _LOOKS})
WATER_MASS_MODE = Place(
    read=BOTTOM_MODE.read | {"water_velocity", "boundaries", "bins"}, unsupported=BOTTOM_MODE.unsupported
)
WATER_VELOCITY = Place(read=frozenset("xyz"))
BOUNDARIES = Place(read=frozenset(("near", "far")))
FRAME = Place(attributes=frozenset(("rotation_format", "degrees")))


@dataclass(frozen=True)
class _Limits:
    """Least and most range (m) of a beam, and the angle (rad) between rays."""

    least: float
    most: float
    resolution: float


def gazebo(context: Context, block: Element, mount: Mount) -> Dvl:
    """Return the sheet of a `<gz:dvl>`. Raise `SdfError` for what no instrument can have."""
    context.check(block, DVL)
    limits = _Limits(
        number_of(context, block, "minimum_range", 0.1, least=0.0),
        number_of(context, block, "maximum_range", 100.0, above=0.0),
        number_of(context, block, "resolution", 0.01, above=0.0),
    )
    kind = Transducer(word_of(context, block, "type", Transducer.PISTON, tuple(Transducer)))
    beams, names = _beams(context, _needed(block, "arrangement"), limits.resolution)
    tracking = _needed(block, "tracking")
    context.check(tracking, TRACKING)
    bottom, water = tracking.first("bottom_mode"), tracking.first("water_mass_mode")
    over, through = _mode(context, bottom, BOTTOM_MODE), _mode(context, water, WATER_MASS_MODE)
    if over is Mode.NEVER and through is Mode.NEVER:
        allowed = "must have a <bottom_mode> or a <water_mass_mode> that is not never"
        raise SdfError("<tracking>", "nothing", where=tracking.where, allowed=allowed)
    layer = None if water is None or through is Mode.NEVER else _layer(context, water, beams, limits)
    with located(block.first("maximum_range") or block):
        return Dvl(
            beams=beams,
            minimum_range=limits.least,
            maximum_range=limits.most,
            bottom=Track(_noise(context, bottom, over, mount)),
            water=Track(_noise(context, water, through, mount)),
            bottom_mode=over,
            water_mode=through,
            layer=layer,
            transducer=kind,
            propagation=flag_of(context, block, "navsense:propagation", default=True),
            own_hull=flag_of(context, block, "navsense:own_hull", default=False),
            reference=_reference(context, block.first("reference_frame")),
            classic=mount.classic,
            dialect=Dialect.GZ,
            names=names,
        )


def _needed(parent: Element, tag: str) -> Element:
    """Return a child that must be there. Raise `SdfError` where it is not."""
    child = parent.first(tag)
    if child is None:
        raise SdfError(f"<{parent.tag}><{tag}>", "missing", where=parent.where, allowed="must be given")
    return child


def _beams(context: Context, element: Element, resolution: float) -> tuple[Beams, Names]:
    """Return the beams and their numbers; `resolution` is the angle (rad) between rays."""
    context.check(element, ARRANGEMENT)
    unit = math.radians(1.0) if values.attribute_flag(element, "degrees") else 1.0
    each = list(element.all("beam"))
    for beam in each:
        context.check(beam, BEAM)
        if beam.first("aperture") is None:
            reason = "gives no <aperture>: it is 90 degrees, as Gazebo documents it"
            context.note("warning", "<arrangement><beam>", reason, beam.where)
    angles = {tag: [_angle(context, beam, tag, unit) for beam in each] for tag in ("rotation", "tilt")}
    apertures = [number_of(context, beam, "aperture", WIDE / unit, least=0.0) * unit for beam in each]
    finest = 0.5 * max(apertures, default=0.0) / FINEST
    if _rings(FINEST * finest, resolution) == (FINEST, 1.0):
        reason = f"is finer than rays are cast: {FINEST} rings of them in a beam, {finest:.3g} rad apart"
        context.note("warning", "<gz:dvl><resolution>", reason, element.where)
    cones = [_rings(0.5 * aperture, resolution) for aperture in apertures]
    widths = [share * width for (_, share), width in zip(cones, apertures, strict=True)]
    with located(element):
        beams = laid(angles["rotation"], angles["tilt"], widths, rings=[rings for rings, _ in cones])
    return beams, Names(beam_ids=beam_ids(each))


def _rings(half: float, resolution: float) -> tuple[int, float]:
    """Return how many rings of rays are inside a cone of half an aperture (rad), and the share that the last has of it.

    They are `resolution` (rad) apart, as the points of Gazebo's image are, and at most `FINEST`.
    """
    rings = max(math.ceil(half / resolution) - 1, 0)
    if rings > FINEST:
        return FINEST, 1.0
    return rings, rings * resolution / half if rings else 0.0


def beam_ids(beams: list[Element]) -> tuple[int, ...]:
    """Return the numbers of beams: that of the attribute, else one more than the one before, 0 for the first."""
    found: list[int] = []
    for beam in beams:
        given = values.attribute_whole(beam, "id")
        number = given if given is not None else (found[-1] + 1 if found else 0)
        if number in found or not 0 <= number < 1 << 31:
            raise refusal(beam, number, "must be unique among the beams, from 0 to 2147483647", attribute="id")
        found.append(number)
    return tuple(found)


def _angle(context: Context, beam: Element, tag: str, unit: float) -> float:
    """Return an angle (rad) of a beam, from -pi to pi."""
    return math.remainder(number_of(context, beam, tag, 0.0) * unit, 2.0 * math.pi)


def _mode(context: Context, element: Element | None, place: Place) -> Mode:
    """Return when a mode gives the velocity; never where it is not given."""
    if element is None:
        return Mode.NEVER
    context.check(element, place)
    return Mode(word_of(context, element, "when", Mode.ALWAYS, MODES))


def _noise(context: Context, element: Element | None, mode: Mode, mount: Mount) -> Noise:
    """Return the noise of a mode."""
    found = NEUTRAL if element is None else noise_of(context, element, classic=mount.classic)
    return NEUTRAL if mode is Mode.NEVER else found


def _layer(context: Context, water: Element, beams: Beams, limits: _Limits) -> Layer:
    """Return the layer of water that is tracked. Raise `SdfError`."""
    _check_names(context, _needed(water, "water_velocity"))
    near, far = NEAR * limits.most, FAR * limits.most
    at = water
    boundaries = water.first("boundaries")
    if boundaries is not None:
        context.check(boundaries, BOUNDARIES)
        near = number_of(context, boundaries, "near", near, least=0.0)
        far = number_of(context, boundaries, "far", far, above=0.0)
        at = boundaries.first("far") or boundaries
    if far > limits.most:
        remedy = "Gazebo does not load such a sensor"
        raise refusal(at, far, f"must be at most the maximum range, {limits.most:g} m", parent=water.tag, remedy=remedy)
    bins = number_of(context, water, "bins", BINS, least=1.0)
    with located(at):
        reach = limits.most * min(cosines(beams).tolist())
        if far > reach:
            reason = f"{far:g} m is beyond what the beams reach along the instrument's axis: {reach:.6g} m is taken"
            context.note("warning", "<water_mass_mode><boundaries>", reason, at.where)
        end = min(far, reach)
        return Layer(near, end, minimum_size=max(end - near, 0.0), samples=_whole(water, bins), share=1.0)


def _whole(water: Element, bins: float) -> int:
    """Return the number of bins. Raise `SdfError` for what is none."""
    child = water.first("bins")
    if bins != int(bins) and child is not None:
        raise refusal(child, child.text, "must be a whole number", parent=water.tag)
    return int(bins)


def _check_names(context: Context, element: Element) -> None:
    """Refuse a current of which no component is named: it is read with the world (`current_gazebo`)."""
    context.check(element, WATER_VELOCITY)
    for child in element.children:
        context.check(child, LEAF)
    if not any(child.text for child in element.all(*"xyz")):
        allowed = "must name a column of the world's table in <x>, <y> or <z>"
        raise refusal(element, "empty", allowed, parent="water_mass_mode")


def _reference(context: Context, element: Element | None) -> Quaternion:
    """Return the rotation from the sensor's frame to the one in which velocities are told."""
    if element is None:
        return UNTURNED
    context.check(element, FRAME)
    return conjugate(values.pose(element, parent="gz:dvl").rotation)
