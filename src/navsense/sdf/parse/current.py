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
current at `position` is recorded on `topic` at `rate` Hz; a rate of 0 records nothing. `start` is the date of t = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from navsense.core.geodesy import Origin
from navsense.core.pose import from_rpy, rotate
from navsense.environment.base import FieldSum, UniformField, VectorField
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
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import LEAF, Context, ElementSchema, make_schema, split_tags
from navsense.sdf.names import normalize_topic
from navsense.sdf.search_path import SearchPath
from navsense.sdf.values import (
    invalid_value,
    map_spec_errors,
    parse_attribute_flag,
    parse_attribute_number,
    parse_number,
    parse_numbers,
    parse_vector,
    require_attribute_number,
    require_attribute_text,
    require_child,
)
from navsense.sdf.xml_reader import Element
from navsense.world import CurrentTopic

GAUSS_MARKOV_PROCESS = ElementBinding(GaussMarkovProcess, attributes=True, other_attributes=("stddev",))
GAUSS_MARKOV_ANGLE = ElementBinding(GaussMarkovProcess, attributes=True, other_attributes=("stddev", "degrees"))


@dataclass
class CurrentContext:
    """The context of a current; `elements_by_name` are the random currents so far."""

    origin: Origin | None
    heading: float
    surface: float
    search: SearchPath
    start: datetime | None = None
    elements_by_name: dict[str, Element] = field(default_factory=dict)

    def register_name(self, element: Element, name: str) -> str:
        """Return the name of a random current. Raises `SdfError` if another one has it."""
        first = self.elements_by_name.setdefault(name, element)
        if first is not element:
            allowed = "must be unique: two random currents with one name would be equal"
            remedy = f"first on line {first.line}; choose different names"
            raise invalid_value(element, name, allowed, attribute="name", remedy=remedy)
        return name


class ParsedCurrents(NamedTuple):
    """The currents of a world and their recording; `topic` is None without one in the file."""

    fields: list[VectorField]
    topic: CurrentTopic | None


def parse_current(context: Context, world: Element, site: CurrentContext) -> ParsedCurrents:
    """Return the currents of a world's own element; none without the element."""
    element = context.find_child(world, "navsense:current", CURRENT)
    if element is None:
        return ParsedCurrents([], None)
    topic: CurrentTopic | None = None
    with context.collect_errors(), map_spec_errors(element):
        site.start = _parse_start(element)
        topic = _parse_topic(element)
    return ParsedCurrents(_parse_fields(context, element, site), topic)


def _parse_topic(element: Element) -> CurrentTopic:
    """Return where the current is recorded. Raises `SimulationError`."""
    options: dict[str, Any] = {}
    if "topic" in element.attributes:
        text = element.attributes["topic"].strip()
        options["topic"] = normalize_topic(text)
        if not options["topic"]:
            raise invalid_value(element, text or "empty", "must be a topic", attribute="topic")
    rate = parse_attribute_number(element, "rate")
    if rate is not None:
        options["rate"] = rate
    if element.get_attribute("position"):
        options["position"] = parse_numbers(element, 3, attribute="position")
    return CurrentTopic(**options)


def _parse_start(element: Element) -> datetime | None:
    """Return the instant of the start of the run; None without one. Raises `SdfError`."""
    text = element.get_attribute("start")
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        allowed = "must be a date and time, as 2021-03-04T15:00Z"
        raise invalid_value(element, text, allowed, attribute="start") from error


def _parse_fields(context: Context, element: Element, site: CurrentContext) -> list[VectorField]:
    """Return the currents of an element, in the order of the file."""
    currents: list[VectorField] = []
    children = [child for child in element.children if child.tag in CURRENT_PARSERS]
    for child in children:
        schema, parse = CURRENT_PARSERS[child.tag]
        context.check(child, schema)
        with context.collect_errors(), map_spec_errors(child):
            currents.append(parse(context, child, site))
    if not children:
        allowed = f"requires at least one current: {', '.join(CURRENT_PARSERS)}"
        context.add_problem(invalid_value(element, "empty", allowed))
    return currents


def _parse_sum(context: Context, element: Element, site: CurrentContext) -> VectorField:
    """Return the sum of the currents of an element; 0 if all are invalid."""
    currents = _parse_fields(context, element, site)
    return currents[0] if len(currents) == 1 else FieldSum(tuple(currents))


def _parse_uniform(_context: Context, element: Element, site: CurrentContext) -> VectorField:
    east, north, up = parse_vector(element)
    StratifiedCurrent((0.0,), ((east, north, up),))  # raises for an unrealistic speed
    return UniformField(rotate(from_rpy(0.0, 0.0, -site.heading), (east, north, up)))


def _parse_process(context: Context, element: Element, tag: str) -> GaussMarkovProcess:
    """Return the process of a child; a process that is always 0 without the child."""
    child = element.find(tag)
    if child is None:
        return GaussMarkovProcess()
    binding = GAUSS_MARKOV_PROCESS if tag == "speed" else GAUSS_MARKOV_ANGLE
    context.check(child, binding.schema)
    unit = math.radians(1.0) if parse_attribute_flag(child, "degrees") else 1.0
    values = binding.read_fields(context, child)
    times = {"correlation_time": values.pop("correlation_time")} if "correlation_time" in values else {}
    stddev = parse_attribute_number(child, "stddev")
    values = {name: unit * number for name, number in values.items()}
    with map_spec_errors(child):
        if stddev is None:
            return GaussMarkovProcess(**values, **times)
        if "density" in values:
            allowed = "must not be combined with density"
            raise invalid_value(child, f"{stddev:g}", allowed, attribute="stddev")
        if not times:
            raise invalid_value(child, "missing", "must be given (s) with stddev", attribute="correlation_time")
        return GaussMarkovProcess.from_stddev(values.pop("mean", 0.0), unit * stddev, **times, **values)


def _parse_gauss_markov(context: Context, element: Element, site: CurrentContext) -> VectorField:
    require_child(element, "speed")
    tags = ("speed", "horizontal_angle", "vertical_angle")
    speed, horizontal, vertical = (_parse_process(context, element, tag) for tag in tags)
    name = site.register_name(element, element.get_attribute("name") or "current")
    return GaussMarkovCurrent(speed, horizontal, vertical, name, site.heading)


def _parse_stratified(context: Context, element: Element, site: CurrentContext) -> VectorField:
    rows = list(element.find_all("layer"))
    options: dict[str, Any] = {"surface": site.surface, "heading": site.heading, **_get_attributes(element, "outside")}
    if ("file" in element.attributes) == bool(rows):
        raise invalid_value(element, "both" if rows else "empty", "requires layers or file=..., not both")
    if rows:
        table = StratifiedCurrent(_parse_depths(context, rows), tuple(parse_vector(row) for row in rows), **options)
    else:
        table = StratifiedCurrent.from_file(site.search.find_data_file(element, "file"), **options)
    tags = [tag for tag in ("speed", "direction") if element.find(tag) is not None]
    if not tags:
        return table
    if len(tags) == 1:
        raise invalid_value(element, f"<{tags[0]}> alone", "requires both <speed> and <direction>, or neither")
    name = site.register_name(element, element.get_attribute("name") or "layers")
    speed, direction = (_parse_process(context, element, tag) for tag in tags)
    current = StratifiedGaussMarkovCurrent(table, speed, direction, name)
    current.realise(0, 0)  # raises for means outside the limits
    return current


def _parse_depths(context: Context, rows: Sequence[Element]) -> tuple[float, ...]:
    """Return the depths (m) of rows."""
    for row in rows:
        context.check(row, DEPTH_ROW)
    return tuple(require_attribute_number(row, "depth") for row in rows)


def _require_start(element: Element, site: CurrentContext) -> datetime:
    """Return the instant of the start of the run, which a tide requires."""
    if site.start is None:
        remedy = 'give <navsense:current start="2021-03-04T15:00Z">, the instant of the start of the run'
        raise invalid_value(element, "without a date", "needs one", remedy=remedy)
    return site.start


def _parse_tidal(context: Context, element: Element, site: CurrentContext) -> VectorField:
    start, children = _require_start(element, site), list(element.find_all("constituent"))
    if ("file" in element.attributes) == bool(children):
        allowed = "requires constituents or a tide table, not both"
        raise invalid_value(element, "both" if children else "empty", allowed)
    flood = require_attribute_number(element, "flood_direction_deg")
    ebb, mean = parse_attribute_number(element, "ebb_direction_deg"), parse_attribute_number(element, "mean")
    flow: HarmonicFlow | TideTable
    if children:
        constituents = []
        for child in children:
            context.check(child, CONSTITUENT)
            with map_spec_errors(child):
                constituents.append(_make_constituent(child, "amplitude"))
        flow = HarmonicFlow(tuple(constituents), start, mean or 0.0)
    elif mean is not None:
        raise invalid_value(element, f"{mean:g}", "must not be combined with a tide table", attribute="mean")
    else:
        flow = TideTable.from_file(site.search.find_data_file(element, "file"), start)
    return TidalCurrent(flow, math.radians(flood), None if ebb is None else math.radians(ebb), site.heading)


def _make_constituent(element: Element, amplitude_attribute: str) -> TidalConstituent:
    """Return the constituent of an element with the amplitude in an attribute. Raises `FieldError`."""
    name, speed = require_attribute_text(element, "name"), parse_attribute_number(element, "speed_deg_per_hour")
    greenwich = parse_attribute_flag(element, "greenwich", default=True)
    amplitude = require_attribute_number(element, amplitude_attribute)
    phase = require_attribute_number(element, "phase_deg")
    return TidalConstituent.from_degrees(name, amplitude, phase, speed, greenwich=greenwich)


def _parse_tidal_ellipses(context: Context, element: Element, site: CurrentContext) -> VectorField:
    start, mean = _require_start(element, site), (0.0, 0.0, 0.0)
    if element.get_attribute("mean"):
        x, y, z = parse_numbers(element, 3, attribute="mean")
        mean = (x, y, z)
    ellipses = []
    for child in element.find_all("ellipse"):
        context.check(child, ELLIPSE)
        minor = require_attribute_number(child, "minor")
        direction = math.radians(require_attribute_number(child, "direction_deg"))
        with map_spec_errors(child):
            ellipses.append(TidalEllipse(_make_constituent(child, "major"), minor, direction))
    return TidalEllipses(tuple(ellipses), start, mean, site.heading)


def _parse_grid(_context: Context, element: Element, site: CurrentContext) -> VectorField:
    x, y, z = (require_attribute_text(element, name) for name in "xyz")
    options: dict[str, Any] = _get_attributes(element, "units", *_GRID_OUTSIDE.split())
    return GriddedCurrent.from_file(
        site.search.find_data_file(element, "file"),
        space=require_attribute_text(element, "space"),  # type: ignore[arg-type]  # checked by the grid
        position=(x, y, z),
        velocity=(element.get_attribute("east"), element.get_attribute("north"), element.get_attribute("up")),
        time=element.get_attribute("time"),
        ignore_time=parse_attribute_flag(element, "ignore_time"),
        start=parse_attribute_number(element, "start") or 0.0,
        origin=site.origin,
        **options,
    )


def _parse_replay(_context: Context, element: Element, site: CurrentContext) -> VectorField:
    from navsense.recordings.currents import read_current  # heavy, and only needed here

    options: dict[str, Any] = _get_attributes(element, "topic", "frame", "outside")
    file, start = site.search.find_data_file(element, "file"), parse_attribute_number(element, "start")
    return read_current(file, heading=site.heading, start=start, **options)


def _parse_boundary_layer(context: Context, element: Element, site: CurrentContext) -> VectorField:
    exponent = parse_attribute_number(element, "exponent")
    options = {} if exponent is None else {"exponent": exponent}
    bed, thickness = require_attribute_number(element, "bed"), require_attribute_number(element, "thickness")
    return BoundaryLayer(_parse_sum(context, element, site), bed, thickness, **options)


def _parse_profile(context: Context, element: Element, site: CurrentContext) -> VectorField:
    rows = list(element.find_all("factor"))
    depths, factors = _parse_depths(context, rows), tuple(parse_number(row) for row in rows)
    options: dict[str, Any] = _get_attributes(element, "outside")
    return DepthScaledCurrent(_parse_sum(context, element, site), depths, factors, site.surface, **options)


def _get_attributes(element: Element, *names: str) -> dict[str, str]:
    """Return the attributes that are present."""
    return {name: text for name in names if (text := element.get_attribute(name)) is not None}


CurrentParser = Callable[[Context, Element, CurrentContext], VectorField]

_CURRENT_TAGS = split_tags("uniform gauss_markov stratified tidal tidal_ellipses grid replay boundary_layer profile")
_GRID_OUTSIDE = "outside outside_vertical outside_time"
_TIDE_ATTRIBUTES = split_tags("name phase_deg speed_deg_per_hour greenwich")

CURRENT = ElementSchema(repeatable=_CURRENT_TAGS, attributes=split_tags("topic rate position start"))
DEPTH_ROW = make_schema(attributes="depth")
CONSTITUENT = ElementSchema(attributes=_TIDE_ATTRIBUTES | {"amplitude"})
ELLIPSE = ElementSchema(attributes=_TIDE_ATTRIBUTES | {"major", "minor", "direction_deg"})

CURRENT_PARSERS: Mapping[str, tuple[ElementSchema, CurrentParser]] = {
    "uniform": (LEAF, _parse_uniform),
    "gauss_markov": (make_schema("speed horizontal_angle vertical_angle", attributes="name"), _parse_gauss_markov),
    "stratified": (
        make_schema("speed direction", repeatable="layer", attributes="file outside name"),
        _parse_stratified,
    ),
    "tidal": (
        make_schema(repeatable="constituent", attributes="file mean flood_direction_deg ebb_direction_deg"),
        _parse_tidal,
    ),
    "tidal_ellipses": (make_schema(repeatable="ellipse", attributes="mean"), _parse_tidal_ellipses),
    "grid": (
        make_schema(attributes=f"file space units x y z east north up time ignore_time start {_GRID_OUTSIDE}"),
        _parse_grid,
    ),
    "replay": (make_schema(attributes="file topic frame start outside"), _parse_replay),
    "boundary_layer": (
        ElementSchema(repeatable=_CURRENT_TAGS, attributes=split_tags("bed thickness exponent")),
        _parse_boundary_layer,
    ),
    "profile": (ElementSchema(repeatable=_CURRENT_TAGS | {"factor"}, attributes=split_tags("outside")), _parse_profile),
}
"""Element -> its schema and the parser of its current."""
