"""The surroundings of a `<world>`: place on earth, gravity, magnetic field and dipoles, air, water, named signals.

    <navsense:gravity model="WGS84"/>                               of the earth's ellipsoid, where the world stands
    <navsense:magnetic_field model="WMM2025" date="2027.0"/>        decimal year; wherever the world stands
    <navsense:dipole radius="0.3">
      <pose relative_to="wreck">0 0 0 0 0 0</pose>  <moment>0 0 1500</moment>     m; A m^2, along the axes of the pose
    </navsense:dipole>
    <navsense:signal name="motor_current">3.5</navsense:signal>     a constant;
    <navsense:signal name="temperature" file="sea.csv"/>            a file of time,value beside the SDF file; or points:
    <navsense:signal name="load"> <point time="0">1</point> <point time="5">2</point> </navsense:signal>

Ours count before `<gravity>` and `<magnetic_field>`, which other programs then read. `<navsense:water>`: see `water`.
"""

from __future__ import annotations

import math
from pathlib import Path

from navsense.environment.atmosphere import Atmosphere
from navsense.environment.base import (
    DEFAULT_GRAVITY,
    DEFAULT_MAGNETIC_FIELD,
    Environment,
    Sum,
    Uniform,
    VectorField,
)
from navsense.environment.dipole import Dipole
from navsense.environment.gravity import NormalGravity
from navsense.environment.magnetic import WorldMagneticModel
from navsense.environment.signal import Signal
from navsense.errors import FieldError, SdfError
from navsense.geodesy import Origin
from navsense.pose import rotate
from navsense.sdf import values
from navsense.sdf.context import Context
from navsense.sdf.fill.faults import anomalies_of
from navsense.sdf.fill.fields import number_of, refused_at, vector_of, word_of
from navsense.sdf.fill.water import water_of
from navsense.sdf.frames import Node, Poses, Scope
from navsense.sdf.graph import place_pose
from navsense.sdf.names import checked_name
from navsense.sdf.places import (
    ATMOSPHERE,
    DIPOLE,
    GRAVITY_MODEL,
    MAGNETIC_MODEL,
    POINT,
    SIGNAL,
    SPHERICAL_COORDINATES,
)
from navsense.sdf.read import Element
from navsense.sdf.values import refusal

LARGEST = {"latitude_deg": 90.0, "longitude_deg": 360.0, "elevation": 1e6, "heading_deg": 3600.0}
"""Degrees and metres of a world's place on earth."""

ADIABATIC = "adiabatic"
WGS84 = "WGS84"

LOCAL_FIELDS = {
    "gravity": (DEFAULT_GRAVITY, '<navsense:gravity model="WGS84"/>'),
    "magnetic_field": (DEFAULT_MAGNETIC_FIELD, '<navsense:magnetic_field model="WMM2025" date="YEAR"/>'),
}
"""Element of a field -> SDF's default, and the element that computes the field at the world's coordinates."""

_NO_PLACE = "needs the place on earth"
_GIVE_PLACE = "give the world <spherical_coordinates> with latitude_deg, longitude_deg and elevation"


def environment(context: Context, scope: Scope) -> Environment:
    """Return the surroundings that a world gives; SDF's defaults where it gives none."""
    world = scope.element
    origin = _origin(context, world.first("spherical_coordinates"))
    _note_defaults(context, world)
    magnetic = _magnetic_field(context, world, origin)
    beside: tuple[VectorField, ...] = (*_dipoles(context, scope), *anomalies_of(context, world))
    return Environment(
        gravity=_gravity(context, world, origin),
        magnetic_field=Sum((magnetic, *beside)) if beside else magnetic,
        origin=origin,
        atmosphere=_atmosphere(context, world.first("atmosphere")),
        water=water_of(context, world, origin),
        signals=_signals(context, world),
    )


def _origin(context: Context, element: Element | None) -> Origin | None:
    """Return where the world stands on earth, None where the file does not say."""
    if element is None:
        return None
    context.check(element, SPHERICAL_COORDINATES)
    word_of(context, element, "world_frame_orientation", "ENU", ("ENU",))
    word_of(context, element, "surface_model", "EARTH_WGS84", ("EARTH_WGS84",))
    absent = [tag for tag in ("latitude_deg", "longitude_deg") if element.first(tag) is None]
    if absent:
        reason = f"gives no {' and no '.join(absent)}: 0 is taken, as SDF has it"
        context.note("warning", "<spherical_coordinates>", reason, element.where)
    place = {tag: number_of(context, element, tag, 0.0) for tag in LARGEST}
    for tag, limit in LARGEST.items():
        if abs(place[tag]) > limit:
            child = element.first(tag) or element
            context.problem(refusal(child, child.text, f"must be from {-limit:g} to {limit:g}", parent=element.tag))
            place[tag] = 0.0  # the world has a place, so that its sensors report no second problem
    latitude, longitude, heading = (math.radians(place[f"{name}_deg"]) for name in ("latitude", "longitude", "heading"))
    return Origin(latitude, longitude, place["elevation"], heading)


def _note_defaults(context: Context, world: Element) -> None:
    """Warn about each field with SDF's default value in a world with a latitude and longitude."""
    place = world.first("spherical_coordinates")
    if place is None or place.first("latitude_deg") is None or place.first("longitude_deg") is None:
        return
    for tag, (default, element) in LOCAL_FIELDS.items():
        if world.first(tag, f"navsense:{tag}") is None:
            value = " ".join(f"{part:g}" for part in default)
            reason = f"is not given: SDF's default {value} does not belong to this place; add {element}, or <{tag}>"
            context.note("warning", f"<world><{tag}>", reason, place.where)


def _gravity(context: Context, world: Element, origin: Origin | None) -> VectorField:
    uniform = Uniform(vector_of(context, world, "gravity", DEFAULT_GRAVITY))
    element = world.first("navsense:gravity")
    if element is None:
        return uniform
    context.check(element, GRAVITY_MODEL)
    _note_unused(context, world, "gravity", element)
    with context.collecting():
        model = values.given_word(element, "model")
        if model != WGS84:
            raise refusal(element, model, f"must be {WGS84}", attribute="model")
        return NormalGravity(_stands(element, origin))
    return uniform


def _magnetic_field(context: Context, world: Element, origin: Origin | None) -> VectorField:
    uniform = Uniform(vector_of(context, world, "magnetic_field", DEFAULT_MAGNETIC_FIELD))
    element = world.first("navsense:magnetic_field")
    if element is None:
        return uniform
    context.check(element, MAGNETIC_MODEL)
    _note_unused(context, world, "magnetic_field", element)
    with context.collecting():
        model = values.given_word(element, "model")
        values.given_word(element, "date")
        date = values.attribute_number(element, "date") or 0.0
        try:
            return WorldMagneticModel(_stands(element, origin), date, model)
        except FieldError as error:
            raise refused_at(element, error) from error
    return uniform


def _dipoles(context: Context, scope: Scope) -> list[Dipole]:
    found: list[Dipole] = []
    poses = Poses(scope.node)
    for element in scope.element.all("navsense:dipole"):
        context.check(element, DIPOLE)
        with context.collecting():
            node = Node("frame", "", element, base=scope.node)
            pose = element.first("pose")
            if pose is not None:
                place_pose(context, scope, node, pose)
            moment = element.first("moment")
            if moment is None:
                what, allowed = "<navsense:dipole><moment>", "must be given (A m^2)"
                raise SdfError(what, "missing", where=element.where, allowed=allowed)
            radius = values.attribute_number(element, "radius", above=0.0)
            size = {} if radius is None else {"radius": radius}
            place = poses.of(node)
            try:
                moment_w = rotate(place.rotation, values.vector(moment, parent=element.tag))
                found.append(Dipole(place.position, moment_w, **size))
            except FieldError as error:
                raise refused_at(element, error) from error
    return found


def _atmosphere(context: Context, element: Element | None) -> Atmosphere:
    if element is None:
        return Atmosphere()
    context.check(element, ATMOSPHERE)
    given = {
        name: number_of(context, element, name, getattr(Atmosphere, name))
        for name in ("temperature", "pressure", "temperature_gradient")
    }
    with context.collecting():
        kind = values.given_word(element, "type")
        if kind != ADIABATIC:
            raise refusal(element, kind, f"must be {ADIABATIC}", attribute="type")
        try:
            return Atmosphere(**given)
        except FieldError as error:
            raise refused_at(element, error) from error
    return Atmosphere()


def _signals(context: Context, world: Element) -> dict[str, Signal]:
    """Return the named signals of a world."""
    found: dict[str, Signal] = {}
    named: dict[str, Element] = {}
    for element in world.all("navsense:signal"):
        context.check(element, SIGNAL)
        with context.collecting():
            name = checked_name(element)
            first = named.setdefault(name, element)
            if first is not element:
                allowed = "must be unique among the signals of a world"
                remedy = f"first on line {first.line}; rename one"
                raise refusal(element, name, allowed, attribute="name", remedy=remedy)
            try:
                found[name] = _signal(context, element)
            except FieldError as error:
                raise refused_at(element, error) from error
    return found


def _signal(context: Context, element: Element) -> Signal:
    file = element.attribute("file")
    if file is None and "file" in element.attributes:
        raise refusal(element, "empty", "must name a file of time,value", attribute="file")
    points = list(element.all("point"))
    if [bool(element.text), bool(points), file is not None].count(True) != 1:
        allowed = "must hold one of these: a number, points, or file=..."
        raise refusal(element, element.attribute("name"), allowed)
    if file is not None:
        return Signal.from_file(Path(element.path).parent / file)
    if not points:
        return Signal.constant(values.number(element))
    times: list[float] = []
    for point in points:
        context.check(point, POINT)
        values.given_word(point, "time")
        times.append(values.attribute_number(point, "time") or 0.0)
    return Signal(tuple(times), tuple(values.number(point, parent=element.tag) for point in points))


def _stands(element: Element, origin: Origin | None) -> Origin:
    if origin is None:
        raise refusal(element, element.attribute("model"), _NO_PLACE, attribute="model", remedy=_GIVE_PLACE)
    return origin


def _note_unused(context: Context, world: Element, tag: str, element: Element) -> None:
    """Note the uniform field that stands beside one of ours."""
    other = world.first(tag)
    if other is not None:
        context.note("unsupported", f"<world><{tag}>", f"<{element.tag}> on line {element.line} counts", other.where)
