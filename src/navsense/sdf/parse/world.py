"""`<world>`: step, fidelity, place on earth, gravity, magnetic field and dipoles, air, named signals.

    <spherical_coordinates> ... <navsense:geoid file="egm96-5.pgm"/> </spherical_coordinates>      mean sea level
    <navsense:gravity model="WGS84"/>                               normal gravity at the world's place
    <navsense:magnetic_field model="WMM2025" date="2027.0"/>        decimal year; at the world's place
    <navsense:dipole radius="0.3">
      <pose relative_to="wreck">0 0 0 0 0 0</pose>  <moment>0 0 1500</moment>     m; A m^2, along the axes of the pose
    </navsense:dipole>
    <navsense:signal name="motor_current">3.5</navsense:signal>     a constant;
    <navsense:signal name="temperature" file="sea.csv"/>            a file of time,value in the folder of the SDF file;
    <navsense:signal name="load"> <point time="0">1</point> <point time="5">2</point> </navsense:signal>     or points

The fields override `<gravity>` and `<magnetic_field>`, which are for other programs.

`<navsense:water>` of a world: its surface, temperature and salinity by depth, density and speed of sound.

    <navsense:water/>                                               surface at height 0, 10 degC, salinity 35
    <navsense:water surface="12.5" latitude_deg="36.8">             m; default: latitude of the world, else 45
      <temperature>283.15</temperature> <salinity>35</salinity>     K, PSS-78, at every depth; or points:
      <point depth="0" temperature="290" salinity="33.5"/> ...
      <density>1000</density>                                       kg/m^3, constant; default: EOS-80
      <sound_speed>mackenzie</sound_speed>                          a formula, or m/s; default: chen-millero
    </navsense:water>
    <navsense:water file="cast.csv"/>                               depth,temperature,salinity

The fields of `Water` declare the names, units and places of these values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from navsense.core.errors import NavsenseError
from navsense.core.geodesy import Origin
from navsense.core.pose import rotate
from navsense.core.text import parse_decimal
from navsense.core.ticks import MAX_RATE, MIN_RATE
from navsense.core.typing import Vector
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.base import (
    DEFAULT_GRAVITY,
    DEFAULT_MAGNETIC_FIELD,
    Environment,
    FieldSum,
    UniformField,
    VectorField,
)
from navsense.environment.geoid import INTERPOLATIONS, Geoid, find_grid
from navsense.environment.gravity import NormalGravity
from navsense.environment.magnetic import Dipole, WorldMagneticModel
from navsense.environment.signal import Signal
from navsense.environment.water import PROFILE_COLUMNS, Water
from navsense.sdf import schema
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import LEAF, Context, ElementSchema
from navsense.sdf.frame_graph import apply_pose
from navsense.sdf.frames import FrameNode, FramePoses, Scope
from navsense.sdf.names import check_unique, parse_name
from navsense.sdf.parse.children import parse_child_choice, parse_child_number, parse_child_vector
from navsense.sdf.parse.faults import parse_anomalies
from navsense.sdf.values import (
    invalid_value,
    map_spec_errors,
    parse_attribute_flag,
    parse_attribute_number,
    parse_number,
    parse_vector,
    require_attribute_number,
    require_attribute_text,
    require_child,
)
from navsense.sdf.xml_reader import Element
from navsense.sensors import SENSORS
from navsense.sensors.air_pressure import AirPressure
from navsense.sensors.depth import Depth
from navsense.simulation.fidelity import FIDELITIES
from navsense.world import MountedSensor

MIN_STEP, MAX_STEP = 1.0 / MAX_RATE, 1.0 / MIN_RATE
"""Seconds: the shortest and the longest period of a sensor."""

DEFAULT_STEP = 0.001
"""Seconds: the default of SDF's `<max_step_size>` (SDF 1.12, `physics.sdf`)."""

ORIGIN_LIMITS = {"latitude_deg": 90.0, "longitude_deg": 360.0, "elevation": 1e6, "heading_deg": 3600.0}
"""Largest degrees and metres of a world's place on earth."""

ATMOSPHERE = ElementBinding(Atmosphere, other_attributes=("type",), strict=False)

ADIABATIC = "adiabatic"

_WITHOUT_AIR = frozenset(SENSORS) - {AirPressure, Depth}
"""Sensor types that do not use the atmosphere."""

WGS84 = "WGS84"

LOCATION_FIELDS = {
    "gravity": (DEFAULT_GRAVITY, '<navsense:gravity model="WGS84"/>'),
    "magnetic_field": (DEFAULT_MAGNETIC_FIELD, '<navsense:magnetic_field model="WMM2025" date="YEAR"/>'),
}
"""Element of a field -> SDF's default, and the element that computes the field at the world's coordinates."""

_LOCATION_REMEDY = "give the world <spherical_coordinates> with latitude_deg, longitude_deg and elevation"


def parse_max_step_size(context: Context, world: Element) -> float:
    """Return the step (s) of the world's physics: that of the default profile, else of the first."""
    physics = list(world.find_all("physics"))
    if not physics:
        return DEFAULT_STEP
    chosen: Element | None = None
    for element in physics:
        context.check(element, schema.PHYSICS)
        with context.collect_errors():
            if parse_attribute_flag(element, "default") and chosen is None:
                chosen = element
    chosen = chosen or physics[0]
    for element in physics:
        if element is not chosen:
            reason = f"is one of several; the one on line {chosen.line} is used"
            context.add_note("unsupported", "<world><physics>", reason, element.where)
    step = parse_child_number(context, chosen, "max_step_size", DEFAULT_STEP, above=0.0)
    if MIN_STEP <= step <= MAX_STEP:
        return step
    child, allowed = chosen.find("max_step_size") or chosen, f"must be from {MIN_STEP:g} to {MAX_STEP:g} s"
    context.add_problem(invalid_value(child, f"{step:g}", allowed, parent="physics"))
    return DEFAULT_STEP


def parse_classic(context: Context, element: Element, *, default: bool) -> bool:
    """Return True if a world or sensor has classic fidelity. The fidelity of the caller has priority."""
    text = parse_child_choice(context, element, "navsense:fidelity", FIDELITIES[default], FIDELITIES)
    return (context.fidelity or text) == "classic"


def parse_environment(
    context: Context, scope: Scope, default_origin: Origin | None = None, default_field: Vector | None = None
) -> tuple[Environment, list[NavsenseError]]:
    """Return the environment of a world, with defaults for absent elements, and the problems of its atmosphere.

    `default_origin` and `default_field` (T) are those of its plug-ins; None for those of SDF.
    The problems are problems of the file only if a sensor measures the pressure of the air (`report_atmosphere`).
    """
    world = scope.element
    origin = _parse_origin(context, world) or default_origin
    _warn_about_defaults(context, world, tags=() if default_field is None else ("magnetic_field",))
    magnetic = _parse_magnetic_field(context, world, origin, default_field or DEFAULT_MAGNETIC_FIELD)
    local_fields: tuple[VectorField, ...] = (*_parse_dipoles(context, scope), *parse_anomalies(context, world))
    atmosphere, problems = _parse_atmosphere(context, world)
    environment = Environment(
        gravity=_parse_gravity(context, world, origin),
        magnetic_field=FieldSum((magnetic, *local_fields)) if local_fields else magnetic,
        origin=origin,
        atmosphere=atmosphere,
        water=_parse_water(context, world, origin),
        signals=_parse_signals(context, world),
        geoid=_parse_geoid(context, world),
    )
    return environment, problems


def report_atmosphere(context: Context, problems: Sequence[NavsenseError], sensors: Iterable[MountedSensor]) -> None:
    """Add the problems of an atmosphere to the context: as warnings if no sensor of the world uses it.

    Every sensor type of a user is taken as one that uses it.
    """
    if all(type(sensor.spec) in _WITHOUT_AIR for sensor in sensors):
        context.add_warnings(problems, "no sensor measures the pressure of the air")
    else:
        for problem in problems:
            context.add_problem(problem)


def _parse_origin(context: Context, world: Element) -> Origin | None:
    """Return the place of the world on earth; None if the file does not define it."""
    element = context.find_child(world, "spherical_coordinates", schema.SPHERICAL_COORDINATES)
    if element is None:
        return None
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
            allowed = f"must be from {-limit:g} to {limit:g}"
            context.add_problem(invalid_value(child, child.text, allowed, parent=element.tag))
            place[tag] = 0.0  # the world has a place, so its sensors do not report a second problem
    latitude, longitude, heading = (math.radians(place[f"{name}_deg"]) for name in ("latitude", "longitude", "heading"))
    return Origin(latitude, longitude, place["elevation"], heading)


def _parse_geoid(context: Context, world: Element) -> Geoid | None:
    """Return the geoid of a world; None without the element. The file is beside the SDF file, or GeographicLib's."""
    place = world.find("spherical_coordinates")
    element = None if place is None else context.find_child(place, "navsense:geoid", schema.GEOID)
    if element is None:
        return None
    with context.collect_errors(), map_spec_errors(element):
        file = require_attribute_text(element, "file")
        interpolation = element.attributes.get("interpolation", INTERPOLATIONS[0]).strip()
        return Geoid.from_file(find_grid(file, Path(element.path).parent), interpolation)
    return None


def _warn_about_defaults(context: Context, world: Element, tags: tuple[str, ...]) -> None:
    """Warn about each field with SDF's default value in a world with latitude and longitude, except those of `tags`."""
    place = world.find("spherical_coordinates")
    if place is None or place.find("latitude_deg") is None or place.find("longitude_deg") is None:
        return
    for tag, (default, element) in LOCATION_FIELDS.items():
        if tag not in tags and world.find(tag, f"navsense:{tag}") is None:
            value = " ".join(f"{part:g}" for part in default)
            reason = f"is absent: SDF's default {value} is not the field at this place; add {element}, or <{tag}>"
            context.add_note("warning", f"<world><{tag}>", reason, place.where)


def _parse_gravity(context: Context, world: Element, origin: Origin | None) -> VectorField:
    uniform = UniformField(parse_child_vector(context, world, "gravity", DEFAULT_GRAVITY))
    element = context.find_child(world, "navsense:gravity", schema.GRAVITY_MODEL)
    if element is None:
        return uniform
    _note_unused(context, world, "gravity", element)
    with context.collect_errors():
        model = require_attribute_text(element, "model")
        if model != WGS84:
            raise invalid_value(element, model, f"must be {WGS84}", attribute="model")
        return NormalGravity(_require_origin(element, origin))
    return uniform


def _parse_magnetic_field(context: Context, world: Element, origin: Origin | None, default: Vector) -> VectorField:
    uniform = UniformField(parse_child_vector(context, world, "magnetic_field", default))
    element = context.find_child(world, "navsense:magnetic_field", schema.MAGNETIC_MODEL)
    if element is None:
        return uniform
    _note_unused(context, world, "magnetic_field", element)
    with context.collect_errors(), map_spec_errors(element):
        model, date = require_attribute_text(element, "model"), require_attribute_number(element, "date")
        return WorldMagneticModel(_require_origin(element, origin), date, model)
    return uniform


def _parse_dipoles(context: Context, scope: Scope) -> list[Dipole]:
    dipoles: list[Dipole] = []
    poses = FramePoses(scope.frame)
    for element in scope.element.find_all("navsense:dipole"):
        context.check(element, schema.DIPOLE)
        with context.collect_errors(), map_spec_errors(element):
            node = FrameNode("frame", "", element, relative_to=scope.frame)
            pose = element.find("pose")
            if pose is not None:
                apply_pose(context, scope, node, pose)
            moment = parse_vector(require_child(element, "moment", "must be given (A m^2)"), parent=element.tag)
            radius = parse_attribute_number(element, "radius", above=0.0)
            options = {} if radius is None else {"radius": radius}
            place = poses.find_pose(node)
            dipoles.append(Dipole(place.position, rotate(place.rotation, moment), **options))
    return dipoles


def _parse_atmosphere(context: Context, world: Element) -> tuple[Atmosphere, list[NavsenseError]]:
    """Return the atmosphere of a world and its problems."""
    element = world.find("atmosphere")
    if element is None:
        return Atmosphere(), []
    atmosphere = Atmosphere()
    with context.defer_problems() as problems:
        air_type = require_attribute_text(element, "type")
        if air_type != ADIABATIC:
            raise invalid_value(element, air_type, f"must be {ADIABATIC}", attribute="type")
        atmosphere = ATMOSPHERE.read(context, element)
    return atmosphere, problems


def _parse_signals(context: Context, world: Element) -> dict[str, Signal]:
    """Return the named signals of a world."""
    signals: dict[str, Signal] = {}
    elements: dict[str, Element] = {}
    for element in world.find_all("navsense:signal"):
        context.check(element, schema.SIGNAL)
        with context.collect_errors(), map_spec_errors(element):
            name = parse_name(element)
            check_unique(element, name, elements, "the signals of a world")
            signals[name] = _parse_signal(context, element)
    return signals


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
        return Signal.constant(parse_number(element))
    for point in points:
        context.check(point, schema.SIGNAL_POINT)
    times = tuple(require_attribute_number(point, "time") for point in points)
    return Signal(times, tuple(parse_number(point, parent=element.tag) for point in points))


def _require_origin(element: Element, origin: Origin | None) -> Origin:
    if origin is None:
        model, remedy = element.get_attribute("model"), _LOCATION_REMEDY
        raise invalid_value(element, model, "needs the place on earth", attribute="model", remedy=remedy)
    return origin


def _note_unused(context: Context, world: Element, tag: str, element: Element) -> None:
    """Add a note about a uniform field that an element of navsense overrides."""
    field = world.find(tag)
    if field is not None:
        reason = f"<{element.tag}> on line {element.line} overrides it"
        context.add_note("unsupported", f"<world><{tag}>", reason, field.where)


def _parse_water(context: Context, world: Element, origin: Origin | None) -> Water | None:
    """Return the water of a world; None without the element."""
    element = context.find_child(world, "navsense:water", WATER.schema)
    if element is None:
        return None
    with context.collect_errors(), map_spec_errors(element):
        problems_before = context.problem_count
        fields = WATER.read_fields(context, element)
        if origin is not None:
            fields.setdefault("latitude", origin.latitude)
        return WATER.make_spec(context, element, problems_before, **{**fields, **_parse_profile(context, element)})
    return Water()  # the world has water, so its sensors do not report a second problem


def _parse_constant(context: Context, element: Element) -> tuple[float]:
    """Return a temperature (K) or salinity that is the same at every depth."""
    context.check(element, LEAF)
    return (parse_number(element, parent="navsense:water"),)


def _parse_sound_speed(context: Context, element: Element) -> float | str:
    """Return the speed of sound: the name of a formula, or a number (m/s)."""
    context.check(element, LEAF)
    number = parse_decimal(element.text)
    return element.text if number is None else number


def _parse_profile(context: Context, element: Element) -> dict[str, Any]:
    """Return the points of a profile, from a file or from elements. Raises `FieldError` for a file without points."""
    points, file = list(element.find_all("point")), element.get_attribute("file")
    if file is None and "file" in element.attributes:
        allowed = f"must name a file of {','.join(PROFILE_COLUMNS)}"
        raise invalid_value(element, "empty", allowed, attribute="file")
    if not points and file is None:
        return {}
    if points and file is not None:
        raise invalid_value(points[0], "with a file", "must not be combined with file=...", parent=element.tag)
    constant = element.find(*PROFILE_COLUMNS[1:])
    if constant is not None:
        raise invalid_value(constant, constant.text, "must not be combined with a profile", parent=element.tag)
    if file is not None:
        columns = Water.read_profile(Path(element.path).parent / file)
    else:
        columns = tuple(zip(*(_parse_point(context, point) for point in points), strict=True))
    return dict(zip(("depths", "temperatures", "salinities"), columns, strict=True))


def _parse_point(context: Context, element: Element) -> tuple[float, float, float]:
    """Return depth (m), temperature (K) and salinity of a `<point>`."""
    context.check(element, WATER_POINT)
    depth, temperature, salinity = (require_attribute_number(element, name) for name in PROFILE_COLUMNS)
    return depth, temperature, salinity


WATER = ElementBinding(
    Water,
    parsers={"temperatures": _parse_constant, "salinities": _parse_constant, "sound_speed": _parse_sound_speed},
    other_children=("point",),
    other_attributes=("file",),
    repeatable=("point",),
)

WATER_POINT = ElementSchema(attributes=frozenset(PROFILE_COLUMNS))
