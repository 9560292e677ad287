"""The environment of a `<world>`: place on earth, gravity, magnetic field and dipoles, air, water, named signals.

    <navsense:gravity model="WGS84"/>                               normal gravity at the world's place
    <navsense:magnetic_field model="WMM2025" date="2027.0"/>        decimal year; at the world's place
    <navsense:dipole radius="0.3">
      <pose relative_to="wreck">0 0 0 0 0 0</pose>  <moment>0 0 1500</moment>     m; A m^2, along the axes of the pose
    </navsense:dipole>
    <navsense:signal name="motor_current">3.5</navsense:signal>     a constant;
    <navsense:signal name="temperature" file="sea.csv"/>            a file of time,value in the folder of the SDF file;
    <navsense:signal name="load"> <point time="0">1</point> <point time="5">2</point> </navsense:signal>     or points

These elements override `<gravity>` and `<magnetic_field>`, which are for other programs. `<navsense:water>`: see
`water`.
"""

from __future__ import annotations

import math
from pathlib import Path

from navsense.core.errors import FieldError, SdfError
from navsense.core.geodesy import Origin
from navsense.core.pose import rotate
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.base import (
    DEFAULT_GRAVITY,
    DEFAULT_MAGNETIC_FIELD,
    Environment,
    FieldSum,
    UniformField,
    VectorField,
)
from navsense.environment.gravity import NormalGravity
from navsense.environment.magnetic import Dipole, WorldMagneticModel
from navsense.environment.signal import Signal
from navsense.sdf import values
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.frame_graph import apply_pose
from navsense.sdf.frames import FrameNode, FramePoses, Scope
from navsense.sdf.names import parse_name
from navsense.sdf.parse.children import error_at, parse_child_choice, parse_child_number, parse_child_vector
from navsense.sdf.parse.faults import parse_anomalies
from navsense.sdf.parse.water import parse_water
from navsense.sdf.schema import (
    DIPOLE,
    GRAVITY_MODEL,
    MAGNETIC_MODEL,
    SIGNAL,
    SIGNAL_POINT,
    SPHERICAL_COORDINATES,
)
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element

ORIGIN_LIMITS = {"latitude_deg": 90.0, "longitude_deg": 360.0, "elevation": 1e6, "heading_deg": 3600.0}
"""Largest degrees and metres of a world's place on earth."""

ATMOSPHERE = ElementBinding(Atmosphere, other_attributes=("type",))

ADIABATIC = "adiabatic"
WGS84 = "WGS84"

LOCATION_FIELDS = {
    "gravity": (DEFAULT_GRAVITY, '<navsense:gravity model="WGS84"/>'),
    "magnetic_field": (DEFAULT_MAGNETIC_FIELD, '<navsense:magnetic_field model="WMM2025" date="YEAR"/>'),
}
"""Element of a field -> SDF's default, and the element that computes the field at the world's coordinates."""

_NEEDS_LOCATION = "needs the place on earth"
_LOCATION_REMEDY = "give the world <spherical_coordinates> with latitude_deg, longitude_deg and elevation"


def parse_environment(context: Context, scope: Scope) -> Environment:
    """Return the environment of a world, with SDF's defaults for absent elements."""
    world = scope.element
    origin = _parse_origin(context, world.find("spherical_coordinates"))
    _warn_about_defaults(context, world)
    magnetic = _parse_magnetic_field(context, world, origin)
    local_fields: tuple[VectorField, ...] = (*_parse_dipoles(context, scope), *parse_anomalies(context, world))
    return Environment(
        gravity=_parse_gravity(context, world, origin),
        magnetic_field=FieldSum((magnetic, *local_fields)) if local_fields else magnetic,
        origin=origin,
        atmosphere=_parse_atmosphere(context, world.find("atmosphere")),
        water=parse_water(context, world, origin),
        signals=_parse_signals(context, world),
    )


def _parse_origin(context: Context, element: Element | None) -> Origin | None:
    """Return the place of the world on earth; None if the file does not define it."""
    if element is None:
        return None
    context.check(element, SPHERICAL_COORDINATES)
    parse_child_choice(context, element, "world_frame_orientation", "ENU", ("ENU",))
    parse_child_choice(context, element, "surface_model", "EARTH_WGS84", ("EARTH_WGS84",))
    absent = [tag for tag in ("latitude_deg", "longitude_deg") if element.find(tag) is None]
    if absent:
        reason = f"has no {' and no '.join(absent)}: SDF's default is 0"
        context.add_note("warning", "<spherical_coordinates>", reason, element.where)
    place = {tag: parse_child_number(context, element, tag, 0.0) for tag in ORIGIN_LIMITS}
    for tag, limit in ORIGIN_LIMITS.items():
        if abs(place[tag]) > limit:
            child = element.find(tag) or element
            context.add_problem(
                invalid_value(child, child.text, f"must be from {-limit:g} to {limit:g}", parent=element.tag)
            )
            place[tag] = 0.0  # the world has a place, so its sensors do not report a second problem
    latitude, longitude, heading = (math.radians(place[f"{name}_deg"]) for name in ("latitude", "longitude", "heading"))
    return Origin(latitude, longitude, place["elevation"], heading)


def _warn_about_defaults(context: Context, world: Element) -> None:
    """Warn about each field with SDF's default value in a world with a latitude and longitude."""
    place = world.find("spherical_coordinates")
    if place is None or place.find("latitude_deg") is None or place.find("longitude_deg") is None:
        return
    for tag, (default, element) in LOCATION_FIELDS.items():
        if world.find(tag, f"navsense:{tag}") is None:
            value = " ".join(f"{part:g}" for part in default)
            reason = f"is absent: SDF's default {value} is not the field at this place; add {element}, or <{tag}>"
            context.add_note("warning", f"<world><{tag}>", reason, place.where)


def _parse_gravity(context: Context, world: Element, origin: Origin | None) -> VectorField:
    uniform = UniformField(parse_child_vector(context, world, "gravity", DEFAULT_GRAVITY))
    element = world.find("navsense:gravity")
    if element is None:
        return uniform
    context.check(element, GRAVITY_MODEL)
    _note_unused(context, world, "gravity", element)
    with context.collect_errors():
        model = values.require_attribute_text(element, "model")
        if model != WGS84:
            raise invalid_value(element, model, f"must be {WGS84}", attribute="model")
        return NormalGravity(_require_origin(element, origin))
    return uniform


def _parse_magnetic_field(context: Context, world: Element, origin: Origin | None) -> VectorField:
    uniform = UniformField(parse_child_vector(context, world, "magnetic_field", DEFAULT_MAGNETIC_FIELD))
    element = world.find("navsense:magnetic_field")
    if element is None:
        return uniform
    context.check(element, MAGNETIC_MODEL)
    _note_unused(context, world, "magnetic_field", element)
    with context.collect_errors():
        model = values.require_attribute_text(element, "model")
        values.require_attribute_text(element, "date")
        date = values.parse_attribute_number(element, "date") or 0.0
        try:
            return WorldMagneticModel(_require_origin(element, origin), date, model)
        except FieldError as error:
            raise error_at(element, error) from error
    return uniform


def _parse_dipoles(context: Context, scope: Scope) -> list[Dipole]:
    found: list[Dipole] = []
    poses = FramePoses(scope.frame)
    for element in scope.element.find_all("navsense:dipole"):
        context.check(element, DIPOLE)
        with context.collect_errors():
            node = FrameNode("frame", "", element, relative_to=scope.frame)
            pose = element.find("pose")
            if pose is not None:
                apply_pose(context, scope, node, pose)
            moment = element.find("moment")
            if moment is None:
                what, allowed = "<navsense:dipole><moment>", "must be given (A m^2)"
                raise SdfError(what, "missing", where=element.where, allowed=allowed)
            radius = values.parse_attribute_number(element, "radius", above=0.0)
            size = {} if radius is None else {"radius": radius}
            place = poses.find_pose(node)
            try:
                moment_w = rotate(place.rotation, values.parse_vector(moment, parent=element.tag))
                found.append(Dipole(place.position, moment_w, **size))
            except FieldError as error:
                raise error_at(element, error) from error
    return found


def _parse_atmosphere(context: Context, element: Element | None) -> Atmosphere:
    if element is None:
        return Atmosphere()
    context.check(element, ATMOSPHERE.schema)
    given = ATMOSPHERE.read_values(context, element)
    with context.collect_errors():
        kind = values.require_attribute_text(element, "type")
        if kind != ADIABATIC:
            raise invalid_value(element, kind, f"must be {ADIABATIC}", attribute="type")
        try:
            return Atmosphere(**given)
        except FieldError as error:
            raise error_at(element, error) from error
    return Atmosphere()


def _parse_signals(context: Context, world: Element) -> dict[str, Signal]:
    """Return the named signals of a world."""
    found: dict[str, Signal] = {}
    named: dict[str, Element] = {}
    for element in world.find_all("navsense:signal"):
        context.check(element, SIGNAL)
        with context.collect_errors():
            name = parse_name(element)
            first = named.setdefault(name, element)
            if first is not element:
                allowed = "must be unique among the signals of a world"
                remedy = f"first on line {first.line}; rename one"
                raise invalid_value(element, name, allowed, attribute="name", remedy=remedy)
            try:
                found[name] = _parse_signal(context, element)
            except FieldError as error:
                raise error_at(element, error) from error
    return found


def _parse_signal(context: Context, element: Element) -> Signal:
    file = element.get_attribute("file")
    if file is None and "file" in element.attributes:
        raise invalid_value(element, "empty", "must name a file of time,value", attribute="file")
    points = list(element.find_all("point"))
    if [bool(element.text), bool(points), file is not None].count(True) != 1:
        allowed = "must have exactly one of: a number, points, file=..."
        raise invalid_value(element, element.get_attribute("name"), allowed)
    if file is not None:
        return Signal.from_file(Path(element.path).parent / file)
    if not points:
        return Signal.constant(values.parse_number(element))
    times: list[float] = []
    for point in points:
        context.check(point, SIGNAL_POINT)
        values.require_attribute_text(point, "time")
        times.append(values.parse_attribute_number(point, "time") or 0.0)
    return Signal(tuple(times), tuple(values.parse_number(point, parent=element.tag) for point in points))


def _require_origin(element: Element, origin: Origin | None) -> Origin:
    if origin is None:
        raise invalid_value(
            element, element.get_attribute("model"), _NEEDS_LOCATION, attribute="model", remedy=_LOCATION_REMEDY
        )
    return origin


def _note_unused(context: Context, world: Element, tag: str, element: Element) -> None:
    """Add a note about a uniform field that an element of navsense overrides."""
    other = world.find(tag)
    if other is not None:
        context.add_note(
            "unsupported", f"<world><{tag}>", f"<{element.tag}> on line {element.line} overrides it", other.where
        )
