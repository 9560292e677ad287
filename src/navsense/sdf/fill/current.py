"""`<navsense:current>` of a world: how its water moves. What stands in it is added up, with the plug-ins of others.

<navsense:current topic="/hydrodynamics/current_velocity" rate="20" position="0 0 -10" start="2021-03-04T15:00Z">
  <uniform>0.1 0.2 0</uniform>                                              m/s towards east, north and up
  <gauss_markov name="wander">                                              wanders, the same everywhere
    <speed mean="0.3" stddev="0.1" correlation_time="600" minimum="0"/>     m/s, s; or density, per root second
    <horizontal_angle degrees="true" mean="40" stddev="10" correlation_time="3600"/>   from east to north
    <vertical_angle/>
  </gauss_markov>
  <stratified> <layer depth="0">0.5 0 0</layer> <layer depth="20">0.1 0 0</layer> </stratified>
  <stratified file="layers.csv" outside="error" name="layers"> <speed .../> <direction .../> </stratified>
  <tidal flood_direction_deg="255" ebb_direction_deg="69" file="ACT1951.csv"/>         from north to east, where it goes
  <tidal flood_direction_deg="255" mean="0"> <constituent name="M2" amplitude="0.5" phase_deg="7"/> </tidal>
  <tidal_ellipses mean="0.02 0 0">                     m/s towards east, north and up
    <ellipse name="M2" major="0.3" minor="-0.05" direction_deg="40" phase_deg="100"/>     m/s; clockwise: minor below 0
  </tidal_ellipses>
  <grid file="grid.csv" space="geodetic" units="degrees" x="lat" y="lon" z="alt" east="u" north="v" time="t"/>
  <replay file="adcp.csv" outside="hold"/>
  <boundary_layer bed="-50" thickness="10"> ... </boundary_layer>           m; what stands in it, slower towards the bed
  <profile> <factor depth="0">1</factor> <factor depth="50">0.2</factor> ... </profile>      times a factor by depth
</navsense:current>

Depths count from the surface of `<navsense:water>`, else from height 0. Files are looked for as included ones are. The
current at `position` is recorded on `topic`, `rate` times a second, 0 for not at all; `start` is the instant of t = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from navsense.environment.base import Environment, Sum, Uniform, VectorField
from navsense.environment.current import (
    BoundaryLayer,
    Constituent,
    Ellipse,
    GaussMarkov,
    Gridded,
    Harmonics,
    Profile,
    Replay,
    Stratified,
    StratifiedGaussMarkov,
    TidalCurrent,
    TidalEllipses,
    TideTable,
    Wander,
)
from navsense.errors import FieldError, SimulationError
from navsense.geodesy import Origin
from navsense.inputs import decimal
from navsense.pose import from_rpy, rotate
from navsense.sdf import values
from navsense.sdf.context import Context
from navsense.sdf.fill.fields import refused_at
from navsense.sdf.names import valid_topic
from navsense.sdf.places import (
    BOUNDARY_LAYER,
    CONSTITUENT,
    CURRENT,
    CURRENT_LAYER,
    ELLIPSE,
    GAUSS_MARKOV,
    GRID,
    LEAF,
    PROFILE,
    REPLAY,
    STRATIFIED,
    TIDAL,
    TIDAL_ELLIPSES,
    WANDER,
    WANDERING_ANGLE,
)
from navsense.sdf.read import Element
from navsense.sdf.search import Search
from navsense.sdf.values import refusal
from navsense.typing import Vector
from navsense.world import CurrentTopic


@dataclass
class Sea:
    """What a current is given beside its element; `named` holds the random currents met, by name."""

    origin: Origin | None
    heading: float
    surface: float
    search: Search
    start: datetime | None = None
    named: dict[str, Element] = field(default_factory=dict)

    @classmethod
    def of(cls, surroundings: Environment, search: Search) -> Sea:
        """Return what all currents of a world are given."""
        surface = surroundings.water.surface if surroundings.water else 0.0
        return cls(surroundings.origin, surroundings.heading, surface, search)

    def name(self, element: Element, name: str) -> str:
        """Return the name of a random current. Raise `SdfError` where another one has it."""
        first = self.named.setdefault(name, element)
        if first is not element:
            allowed = "must be the name of one random current: two would be the same"
            remedy = f"first on line {first.line}; give each a name of its own"
            raise refusal(element, name, allowed, attribute="name", remedy=remedy)
        return name

    def towards(self, east: float, north: float, up: float) -> Vector:
        """Return a vector along the world's axes."""
        return rotate(from_rpy(0.0, 0.0, -self.heading), (east, north, up))


class Flow(NamedTuple):
    """A world's currents, and where they are recorded; `topic` None where the element does not say."""

    fields: list[VectorField]
    topic: CurrentTopic | None


def current_of(context: Context, world: Element, sea: Sea) -> Flow:
    """Return the currents that a world's own element describes; none where it has none."""
    element = world.first("navsense:current")
    if element is None:
        return Flow([], None)
    context.check(element, CURRENT)
    topic: CurrentTopic | None = None
    with context.collecting():
        sea.start = _start(element)
        topic = _topic(element)
    return Flow(_fields(context, element, sea), topic)


def _topic(element: Element) -> CurrentTopic:
    given: dict[str, Any] = {}
    text = element.attribute("topic")
    if "topic" in element.attributes:
        given["topic"] = valid_topic(text or "")
        if not given["topic"]:
            raise refusal(element, text or "empty", "must be a topic", attribute="topic")
    rate = values.attribute_number(element, "rate")
    if rate is not None:
        given["rate"] = rate
    place = _numbers(element, "position", 3)
    if place is not None:
        given["position"] = place
    try:
        return CurrentTopic(**given)
    except SimulationError as error:
        raise refused_at(element, error) from error


def _start(element: Element) -> datetime | None:
    text = element.attribute("start")
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        allowed = "must be a date and time, as 2021-03-04T15:00Z"
        raise refusal(element, text, allowed, attribute="start") from error


def _numbers(element: Element, name: str, count: int) -> tuple[float, ...] | None:
    """Return the numbers of an attribute, None where it is absent."""
    text = element.attribute(name)
    if text is None:
        return None
    parts = [decimal(part) for part in text.split(maxsplit=count)]
    found = tuple(part for part in parts if part is not None)
    if len(found) != count or len(parts) != count:
        raise refusal(element, text, f"must be {count} finite numbers", attribute=name)
    return found


def _fields(context: Context, element: Element, sea: Sea) -> list[VectorField]:
    """Return the currents in an element, in the order of the file."""
    found: list[VectorField] = []
    inside = [child for child in element.children if child.tag in KINDS]
    for child in inside:
        with context.collecting():
            try:
                found.append(KINDS[child.tag](context, child, sea))
            except FieldError as error:
                raise refused_at(child, error) from error
    if not inside:
        allowed = f"must hold one current at least: {', '.join(KINDS)}"
        context.problem(refusal(element, "empty", allowed))
    return found


def _together(context: Context, element: Element, sea: Sea) -> VectorField:
    """Return the sum of the currents in an element, 0 where none of them can be read."""
    found = _fields(context, element, sea)
    return found[0] if len(found) == 1 else Sum(tuple(found))


def _uniform(context: Context, element: Element, sea: Sea) -> VectorField:
    context.check(element, LEAF)
    east, north, up = values.vector(element)
    Stratified((0.0,), ((east, north, up),))  # refuses what no sea has
    return Uniform(sea.towards(east, north, up))


def _wander(context: Context, element: Element, tag: str) -> Wander:
    """Return the process of a child, which stands still at 0 where it is absent."""
    child = element.first(tag)
    if child is None:
        return Wander()
    context.check(child, WANDER if tag == "speed" else WANDERING_ANGLE)
    unit = math.radians(1.0) if values.attribute_flag(child, "degrees") else 1.0
    given = {name: values.attribute_number(child, name) for name in ("mean", "minimum", "maximum", "density", "stddev")}
    sheet = {name: unit * number for name, number in given.items() if number is not None}
    time = values.attribute_number(child, "correlation_time")
    stddev = sheet.pop("stddev", None)
    try:
        if stddev is None:
            return Wander(**sheet) if time is None else Wander(**sheet, correlation_time=time)
        if "density" in sheet:
            raise refusal(child, "beside a density", "must be absent where density is given", attribute="stddev")
        if time is None:
            raise refusal(child, "missing", "must be given (s) where stddev is", attribute="correlation_time")
        return Wander.spread(sheet.pop("mean", 0.0), stddev, time, **sheet)
    except FieldError as error:
        raise refused_at(child, error) from error


def _gauss_markov(context: Context, element: Element, sea: Sea) -> VectorField:
    context.check(element, GAUSS_MARKOV)
    if element.first("speed") is None:
        raise refusal(element, "without <speed>", "must hold it")
    speed, horizontal, vertical = (
        _wander(context, element, tag) for tag in ("speed", "horizontal_angle", "vertical_angle")
    )
    name = sea.name(element, element.attribute("name") or "current")
    return GaussMarkov(speed, horizontal, vertical, name, sea.heading)


def _stratified(context: Context, element: Element, sea: Sea) -> VectorField:
    context.check(element, STRATIFIED)
    rows = list(element.all("layer"))
    given: dict[str, Any] = {"surface": sea.surface, "heading": sea.heading, **_words(element, "outside")}
    if ("file" in element.attributes) == bool(rows):
        raise refusal(element, "both" if rows else "empty", "must hold layers, or name a file of them: one of the two")
    if rows:
        depths, velocities = zip(*(_layer(context, row, values.vector) for row in rows), strict=True)
        table = Stratified(depths, velocities, **given)
    else:
        table = Stratified.from_file(sea.search.named(element, "file"), **given)
    parts = [tag for tag in ("speed", "direction") if element.first(tag) is not None]
    if not parts:
        return table
    if len(parts) == 1:
        raise refusal(element, f"<{parts[0]}> alone", "must hold both <speed> and <direction>, or neither")
    name = sea.name(element, element.attribute("name") or "layers")
    speed, direction = (_wander(context, element, tag) for tag in parts)
    wandering = StratifiedGaussMarkov(table, speed, direction, name)
    wandering.opened(0, 0)  # refuses means outside the limits
    return wandering


def _layer(context: Context, element: Element, read: Callable[[Element], Any]) -> tuple[float, Any]:
    """Return the depth (m) of a row, and what it says."""
    context.check(element, CURRENT_LAYER)
    return values.given_number(element, "depth"), read(element)


def _date(element: Element, sea: Sea) -> datetime:
    """Return the instant of the run's start, which a tide must be given."""
    if sea.start is None:
        remedy = 'give <navsense:current start="2021-03-04T15:00Z">, the instant of the start of the run'
        raise refusal(element, "without a date", "needs one", remedy=remedy)
    return sea.start


def _tidal(context: Context, element: Element, sea: Sea) -> VectorField:
    context.check(element, TIDAL)
    start = _date(element, sea)
    constituents = list(element.all("constituent"))
    if ("file" in element.attributes) == bool(constituents):
        allowed = "must hold constituents, or name a tide table: one of the two"
        raise refusal(element, "both" if constituents else "empty", allowed)
    flood = values.given_number(element, "flood_direction_deg")
    ebb = values.attribute_number(element, "ebb_direction_deg")
    mean = values.attribute_number(element, "mean")
    flow: Harmonics | TideTable
    if constituents:
        flow = Harmonics(tuple(_constituent(context, one) for one in constituents), start, mean or 0.0)
    elif mean is not None:
        raise refusal(element, f"{mean:g}", "must be absent beside a tide table", attribute="mean")
    else:
        flow = TideTable.from_file(sea.search.named(element, "file"), start)
    return TidalCurrent(flow, math.radians(flood), None if ebb is None else math.radians(ebb), sea.heading)


def _constituent(context: Context, element: Element) -> Constituent:
    context.check(element, CONSTITUENT)
    try:
        return _wave(element, "amplitude")
    except FieldError as error:
        raise refused_at(element, error) from error


def _wave(element: Element, size: str) -> Constituent:
    """Return the constituent of an element whose attribute `size` is its amplitude. Raise FieldError."""
    name, rate = values.given_word(element, "name"), values.attribute_number(element, "speed_deg_per_hour")
    greenwich = values.attribute_flag(element, "greenwich", default=True)
    amplitude, phase = values.given_number(element, size), values.given_number(element, "phase_deg")
    return Constituent.degrees(name, amplitude, phase, rate, greenwich=greenwich)


def _tidal_ellipses(context: Context, element: Element, sea: Sea) -> VectorField:
    context.check(element, TIDAL_ELLIPSES)
    start, mean = _date(element, sea), _numbers(element, "mean", 3) or (0.0, 0.0, 0.0)
    ellipses = tuple(_ellipse(context, one) for one in element.all("ellipse"))
    return TidalEllipses(ellipses, start, (mean[0], mean[1], mean[2]), sea.heading)


def _ellipse(context: Context, element: Element) -> Ellipse:
    context.check(element, ELLIPSE)
    minor = values.given_number(element, "minor")
    direction = math.radians(values.given_number(element, "direction_deg"))
    try:
        return Ellipse(_wave(element, "major"), minor, direction)
    except FieldError as error:
        raise refused_at(element, error) from error


def _grid(context: Context, element: Element, sea: Sea) -> VectorField:
    context.check(element, GRID)
    x, y, z = (values.given_word(element, name) for name in "xyz")
    up = (element.attribute("east"), element.attribute("north"), element.attribute("up"))
    start = values.attribute_number(element, "start")
    options: dict[str, Any] = _words(element, "units", "outside", "outside_vertical", "outside_time")
    return Gridded.from_file(
        sea.search.named(element, "file"),
        space=values.given_word(element, "space"),  # type: ignore[arg-type]  # refused by the grid where it is none
        position=(x, y, z),
        velocity=up,
        time=element.attribute("time"),
        ignore_time=values.attribute_flag(element, "ignore_time"),
        start=start or 0.0,
        origin=sea.origin,
        **options,
    )


def _replay(context: Context, element: Element, sea: Sea) -> VectorField:
    context.check(element, REPLAY)
    options: dict[str, Any] = _words(element, "topic", "frame", "outside")
    start = values.attribute_number(element, "start")
    return Replay.from_file(sea.search.named(element, "file"), heading=sea.heading, start=start, **options)


def _boundary_layer(context: Context, element: Element, sea: Sea) -> VectorField:
    context.check(element, BOUNDARY_LAYER)
    exponent = values.attribute_number(element, "exponent")
    power = {} if exponent is None else {"exponent": exponent}
    bed, thickness = values.given_number(element, "bed"), values.given_number(element, "thickness")
    return BoundaryLayer(_together(context, element, sea), bed, thickness, **power)


def _profile(context: Context, element: Element, sea: Sea) -> VectorField:
    context.check(element, PROFILE)
    rows = [_layer(context, row, values.number) for row in element.all("factor")]
    options: dict[str, Any] = _words(element, "outside")
    depths, factors = tuple(depth for depth, _ in rows), tuple(factor for _, factor in rows)
    return Profile(_together(context, element, sea), depths, factors, sea.surface, **options)


KINDS: Mapping[str, Callable[[Context, Element, Sea], VectorField]] = {
    "uniform": _uniform,
    "gauss_markov": _gauss_markov,
    "stratified": _stratified,
    "tidal": _tidal,
    "tidal_ellipses": _tidal_ellipses,
    "grid": _grid,
    "replay": _replay,
    "boundary_layer": _boundary_layer,
    "profile": _profile,
}
"""Element -> what makes a current of it."""


def _words(element: Element, *names: str) -> dict[str, str]:
    """Return the attributes that are given."""
    return {name: text for name in names if (text := element.attribute(name)) is not None}
