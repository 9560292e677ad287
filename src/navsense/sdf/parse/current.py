"""`<navsense:current>` of a world: the velocity of the water. All currents in it, and those of plug-ins, are added.

<navsense:current topic="/hydrodynamics/current_velocity" rate="20" position="0 0 -10" start="2021-03-04T15:00Z">
  <uniform>0.1 0.2 0</uniform>                                              m/s towards east, north and up
  <gauss_markov name="wander">                                              random, the same everywhere
    <speed mean="0.3" stddev="0.1" correlation_time="600" minimum="0"/>     m/s, s; or density, per root second
    <horizontal_angle degrees="true" mean="40" stddev="10" correlation_time="3600"/>   from east to north
    <vertical_angle/>
  </gauss_markov>
  <stratified> <layer depth="0">0.5 0 0</layer> <layer depth="20">0.1 0 0</layer> </stratified>
  <stratified file="layers.csv" outside="error" name="layers"> <speed .../> <direction .../> </stratified>
  <tidal flood_direction_deg="255" ebb_direction_deg="69" file="ACT1951.csv"/>         from north, the flow direction
  <tidal flood_direction_deg="255" mean="0"> <constituent name="M2" amplitude="0.5" phase_deg="7"/> </tidal>
  <tidal_ellipses mean="0.02 0 0">                     m/s towards east, north and up
    <ellipse name="M2" major="0.3" minor="-0.05" direction_deg="40" phase_deg="100"/>     m/s; clockwise: minor below 0
  </tidal_ellipses>
  <grid file="grid.csv" space="geodetic" units="degrees" x="lat" y="lon" z="alt" east="u" north="v" time="t"/>
  <replay file="adcp.csv" outside="hold"/>
  <boundary_layer bed="-50" thickness="10"> ... </boundary_layer>           m; its currents, reduced towards the bed
  <profile> <factor depth="0">1</factor> <factor depth="50">0.2</factor> ... </profile>    times a factor by depth
</navsense:current>

Depths are below the surface of `<navsense:water>`, else below height 0. Files are searched as included files are. The
current at `position` is recorded on `topic`, `rate` times a second, 0 for not at all; `start` is the instant of t = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from navsense.core.errors import FieldError, SimulationError
from navsense.core.geodesy import Origin
from navsense.core.inputs import parse_decimal
from navsense.core.pose import from_rpy, rotate
from navsense.core.typing import Vector
from navsense.environment.base import Environment, FieldSum, UniformField, VectorField
from navsense.environment.current import (
    BoundaryLayer,
    DepthScaledCurrent,
    GaussMarkovCurrent,
    GaussMarkovProcess,
    GriddedCurrent,
    HarmonicFlow,
    StratifiedCurrent,
    StratifiedGaussMarkovCurrent,
    TidalConstituent,
    TidalCurrent,
    TidalEllipse,
    TidalEllipses,
    TideTable,
)
from navsense.sdf import values
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.names import normalize_topic
from navsense.sdf.parse.children import error_at
from navsense.sdf.schema import (
    CONSTITUENT,
    CURRENT_LAYER,
    ELLIPSE,
    GAUSS_MARKOV,
    GRID,
    LEAF,
    REPLAY,
    STRATIFIED,
    TIDAL,
    TIDAL_ELLIPSES,
)
from navsense.sdf.search_path import SearchPath
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element
from navsense.world import CurrentTopic

GAUSS_MARKOV_PROCESS = ElementBinding(GaussMarkovProcess, attributes=True, other_attributes=("stddev",))
GAUSS_MARKOV_ANGLE = ElementBinding(GaussMarkovProcess, attributes=True, other_attributes=("stddev", "degrees"))


@dataclass
class CurrentContext:
    """The context of a current; `named` are the random currents so far, by name."""

    origin: Origin | None
    heading: float
    surface: float
    search: SearchPath
    start: datetime | None = None
    elements_by_name: dict[str, Element] = field(default_factory=dict)

    @classmethod
    def from_environment(cls, environment: Environment, search: SearchPath) -> CurrentContext:
        """Return the context of all currents of a world."""
        surface = environment.water.surface if environment.water else 0.0
        return cls(environment.origin, environment.heading, surface, search)

    def register_name(self, element: Element, name: str) -> str:
        """Return the name of a random current. Raises `SdfError` if another one has it."""
        first = self.elements_by_name.setdefault(name, element)
        if first is not element:
            allowed = "must be unique: two random currents with one name would be equal"
            remedy = f"first on line {first.line}; choose different names"
            raise invalid_value(element, name, allowed, attribute="name", remedy=remedy)
        return name

    def enu_to_world(self, east: float, north: float, up: float) -> Vector:
        """Return a vector along the world's axes."""
        return rotate(from_rpy(0.0, 0.0, -self.heading), (east, north, up))


class ParsedCurrents(NamedTuple):
    """The currents of a world and their recording; `topic` is None without one in the file."""

    fields: list[VectorField]
    topic: CurrentTopic | None


def parse_current(context: Context, world: Element, site: CurrentContext) -> ParsedCurrents:
    """Return the currents of a world's own element; none without the element."""
    element = world.find("navsense:current")
    if element is None:
        return ParsedCurrents([], None)
    context.check(element, CURRENT)
    topic: CurrentTopic | None = None
    with context.collect_errors():
        site.start = _parse_start(element)
        topic = _parse_topic(element)
    return ParsedCurrents(_parse_fields(context, element, site), topic)


def _parse_topic(element: Element) -> CurrentTopic:
    given: dict[str, Any] = {}
    text = element.get_attribute("topic")
    if "topic" in element.attributes:
        given["topic"] = normalize_topic(text or "")
        if not given["topic"]:
            raise invalid_value(element, text or "empty", "must be a topic", attribute="topic")
    rate = values.parse_attribute_number(element, "rate")
    if rate is not None:
        given["rate"] = rate
    place = _parse_attribute_numbers(element, "position", 3)
    if place is not None:
        given["position"] = place
    try:
        return CurrentTopic(**given)
    except SimulationError as error:
        raise error_at(element, error) from error


def _parse_start(element: Element) -> datetime | None:
    text = element.get_attribute("start")
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        allowed = "must be a date and time, as 2021-03-04T15:00Z"
        raise invalid_value(element, text, allowed, attribute="start") from error


def _parse_attribute_numbers(element: Element, name: str, count: int) -> tuple[float, ...] | None:
    """Return the numbers of an attribute; None if it is absent."""
    text = element.get_attribute(name)
    if text is None:
        return None
    parts = [parse_decimal(part) for part in text.split(maxsplit=count)]
    found = tuple(part for part in parts if part is not None)
    if len(found) != count or len(parts) != count:
        raise invalid_value(element, text, f"must be {count} finite numbers", attribute=name)
    return found


def _parse_fields(context: Context, element: Element, site: CurrentContext) -> list[VectorField]:
    """Return the currents of an element, in the order of the file."""
    found: list[VectorField] = []
    inside = [child for child in element.children if child.tag in CURRENT_PARSERS]
    for child in inside:
        with context.collect_errors():
            try:
                found.append(CURRENT_PARSERS[child.tag](context, child, site))
            except FieldError as error:
                raise error_at(child, error) from error
    if not inside:
        allowed = f"requires at least one current: {', '.join(CURRENT_PARSERS)}"
        context.add_problem(invalid_value(element, "empty", allowed))
    return found


def _parse_sum(context: Context, element: Element, site: CurrentContext) -> VectorField:
    """Return the sum of the currents of an element; 0 if all are invalid."""
    found = _parse_fields(context, element, site)
    return found[0] if len(found) == 1 else FieldSum(tuple(found))


def _parse_uniform(context: Context, element: Element, site: CurrentContext) -> VectorField:
    context.check(element, LEAF)
    east, north, up = values.parse_vector(element)
    StratifiedCurrent((0.0,), ((east, north, up),))  # raises for a speed that no sea has
    return UniformField(site.enu_to_world(east, north, up))


def _parse_process(context: Context, element: Element, tag: str) -> GaussMarkovProcess:
    """Return the process of a child; without the child a constant 0."""
    child = element.find(tag)
    if child is None:
        return GaussMarkovProcess()
    binding = GAUSS_MARKOV_PROCESS if tag == "speed" else GAUSS_MARKOV_ANGLE
    context.check(child, binding.schema)
    unit = math.radians(1.0) if values.parse_attribute_flag(child, "degrees") else 1.0
    sheet = binding.read_values(context, child)
    time, stddev = sheet.pop("correlation_time", None), values.parse_attribute_number(child, "stddev")
    sheet = {name: unit * number for name, number in sheet.items()}
    try:
        if stddev is None:
            return GaussMarkovProcess(**sheet) if time is None else GaussMarkovProcess(**sheet, correlation_time=time)
        if "density" in sheet:
            raise invalid_value(child, "beside a density", "must not be combined with density", attribute="stddev")
        if time is None:
            raise invalid_value(child, "missing", "must be given (s) with stddev", attribute="correlation_time")
        return GaussMarkovProcess.from_stddev(sheet.pop("mean", 0.0), unit * stddev, time, **sheet)
    except FieldError as error:
        raise error_at(child, error) from error


def _parse_gauss_markov(context: Context, element: Element, site: CurrentContext) -> VectorField:
    context.check(element, GAUSS_MARKOV)
    if element.find("speed") is None:
        raise invalid_value(element, "without <speed>", "must hold it")
    speed, horizontal, vertical = (
        _parse_process(context, element, tag) for tag in ("speed", "horizontal_angle", "vertical_angle")
    )
    name = site.register_name(element, element.get_attribute("name") or "current")
    return GaussMarkovCurrent(speed, horizontal, vertical, name, site.heading)


def _parse_stratified(context: Context, element: Element, site: CurrentContext) -> VectorField:
    context.check(element, STRATIFIED)
    rows = list(element.find_all("layer"))
    given: dict[str, Any] = {"surface": site.surface, "heading": site.heading, **_select_attributes(element, "outside")}
    if ("file" in element.attributes) == bool(rows):
        raise invalid_value(element, "both" if rows else "empty", "requires layers or file=..., not both")
    if rows:
        depths, velocities = zip(*(_parse_depth_row(context, row, values.parse_vector) for row in rows), strict=True)
        table = StratifiedCurrent(depths, velocities, **given)
    else:
        table = StratifiedCurrent.from_file(site.search.find_data_file(element, "file"), **given)
    parts = [tag for tag in ("speed", "direction") if element.find(tag) is not None]
    if not parts:
        return table
    if len(parts) == 1:
        raise invalid_value(element, f"<{parts[0]}> alone", "requires both <speed> and <direction>, or neither")
    name = site.register_name(element, element.get_attribute("name") or "layers")
    speed, direction = (_parse_process(context, element, tag) for tag in parts)
    wandering = StratifiedGaussMarkovCurrent(table, speed, direction, name)
    wandering.realise(0, 0)  # raises for means outside the limits
    return wandering


def _parse_depth_row(context: Context, element: Element, read: Callable[[Element], Any]) -> tuple[float, Any]:
    """Return the depth (m) of a row, and its text."""
    context.check(element, CURRENT_LAYER)
    return values.require_attribute_number(element, "depth"), read(element)


def _require_start(element: Element, site: CurrentContext) -> datetime:
    """Return the instant of the start of the run, which a tide requires."""
    if site.start is None:
        remedy = 'give <navsense:current start="2021-03-04T15:00Z">, the instant of the start of the run'
        raise invalid_value(element, "without a date", "needs one", remedy=remedy)
    return site.start


def _parse_tidal(context: Context, element: Element, site: CurrentContext) -> VectorField:
    context.check(element, TIDAL)
    start = _require_start(element, site)
    constituents = list(element.find_all("constituent"))
    if ("file" in element.attributes) == bool(constituents):
        allowed = "requires constituents or a tide table, not both"
        raise invalid_value(element, "both" if constituents else "empty", allowed)
    flood = values.require_attribute_number(element, "flood_direction_deg")
    ebb = values.parse_attribute_number(element, "ebb_direction_deg")
    mean = values.parse_attribute_number(element, "mean")
    flow: HarmonicFlow | TideTable
    if constituents:
        flow = HarmonicFlow(tuple(_parse_constituent(context, one) for one in constituents), start, mean or 0.0)
    elif mean is not None:
        raise invalid_value(element, f"{mean:g}", "must not be combined with a tide table", attribute="mean")
    else:
        flow = TideTable.from_file(site.search.find_data_file(element, "file"), start)
    return TidalCurrent(flow, math.radians(flood), None if ebb is None else math.radians(ebb), site.heading)


def _parse_constituent(context: Context, element: Element) -> TidalConstituent:
    context.check(element, CONSTITUENT)
    try:
        return _make_constituent(element, "amplitude")
    except FieldError as error:
        raise error_at(element, error) from error


def _make_constituent(element: Element, amplitude_attribute: str) -> TidalConstituent:
    """Return the constituent of an element with the amplitude in the attribute `size`. Raises `FieldError`."""
    name, rate = (
        values.require_attribute_text(element, "name"),
        values.parse_attribute_number(element, "speed_deg_per_hour"),
    )
    greenwich = values.parse_attribute_flag(element, "greenwich", default=True)
    amplitude, phase = (
        values.require_attribute_number(element, amplitude_attribute),
        values.require_attribute_number(element, "phase_deg"),
    )
    return TidalConstituent.from_degrees(name, amplitude, phase, rate, greenwich=greenwich)


def _parse_tidal_ellipses(context: Context, element: Element, site: CurrentContext) -> VectorField:
    context.check(element, TIDAL_ELLIPSES)
    start, mean = _require_start(element, site), _parse_attribute_numbers(element, "mean", 3) or (0.0, 0.0, 0.0)
    ellipses = tuple(_parse_ellipse(context, one) for one in element.find_all("ellipse"))
    return TidalEllipses(ellipses, start, (mean[0], mean[1], mean[2]), site.heading)


def _parse_ellipse(context: Context, element: Element) -> TidalEllipse:
    context.check(element, ELLIPSE)
    minor = values.require_attribute_number(element, "minor")
    direction = math.radians(values.require_attribute_number(element, "direction_deg"))
    try:
        return TidalEllipse(_make_constituent(element, "major"), minor, direction)
    except FieldError as error:
        raise error_at(element, error) from error


def _parse_grid(context: Context, element: Element, site: CurrentContext) -> VectorField:
    context.check(element, GRID)
    x, y, z = (values.require_attribute_text(element, name) for name in "xyz")
    up = (element.get_attribute("east"), element.get_attribute("north"), element.get_attribute("up"))
    start = values.parse_attribute_number(element, "start")
    options: dict[str, Any] = _select_attributes(element, "units", "outside", "outside_vertical", "outside_time")
    return GriddedCurrent.from_file(
        site.search.find_data_file(element, "file"),
        space=values.require_attribute_text(element, "space"),  # type: ignore[arg-type]  # checked by the grid
        position=(x, y, z),
        velocity=up,
        time=element.get_attribute("time"),
        ignore_time=values.parse_attribute_flag(element, "ignore_time"),
        start=start or 0.0,
        origin=site.origin,
        **options,
    )


def _parse_replay(context: Context, element: Element, site: CurrentContext) -> VectorField:
    from navsense.recordings.currents import read_current  # heavy, and only needed here

    context.check(element, REPLAY)
    options: dict[str, Any] = _select_attributes(element, "topic", "frame", "outside")
    start = values.parse_attribute_number(element, "start")
    return read_current(site.search.find_data_file(element, "file"), heading=site.heading, start=start, **options)


def _parse_boundary_layer(context: Context, element: Element, site: CurrentContext) -> VectorField:
    context.check(element, BOUNDARY_LAYER)
    exponent = values.parse_attribute_number(element, "exponent")
    power = {} if exponent is None else {"exponent": exponent}
    bed, thickness = (
        values.require_attribute_number(element, "bed"),
        values.require_attribute_number(element, "thickness"),
    )
    return BoundaryLayer(_parse_sum(context, element, site), bed, thickness, **power)


def _parse_profile(context: Context, element: Element, site: CurrentContext) -> VectorField:
    context.check(element, PROFILE)
    rows = [_parse_depth_row(context, row, values.parse_number) for row in element.find_all("factor")]
    options: dict[str, Any] = _select_attributes(element, "outside")
    depths, factors = tuple(depth for depth, _ in rows), tuple(factor for _, factor in rows)
    return DepthScaledCurrent(_parse_sum(context, element, site), depths, factors, site.surface, **options)


CURRENT_PARSERS: Mapping[str, Callable[[Context, Element, CurrentContext], VectorField]] = {
    "uniform": _parse_uniform,
    "gauss_markov": _parse_gauss_markov,
    "stratified": _parse_stratified,
    "tidal": _parse_tidal,
    "tidal_ellipses": _parse_tidal_ellipses,
    "grid": _parse_grid,
    "replay": _parse_replay,
    "boundary_layer": _parse_boundary_layer,
    "profile": _parse_profile,
}
"""Element -> parser of its current."""

_CURRENT_TAGS = frozenset(CURRENT_PARSERS)

CURRENT = ElementSchema(
    children=_CURRENT_TAGS, repeatable=_CURRENT_TAGS, attributes=frozenset(("topic", "rate", "position", "start"))
)

BOUNDARY_LAYER = ElementSchema(
    children=_CURRENT_TAGS, repeatable=_CURRENT_TAGS, attributes=frozenset(("bed", "thickness", "exponent"))
)

PROFILE = ElementSchema(
    children=_CURRENT_TAGS | {"factor"}, repeatable=_CURRENT_TAGS | {"factor"}, attributes=frozenset(("outside",))
)


def _select_attributes(element: Element, *names: str) -> dict[str, str]:
    """Return the attributes that are present."""
    return {name: text for name in names if (text := element.get_attribute(name)) is not None}
