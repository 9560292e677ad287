"""The current plug-ins of the UUV Simulator and of DAVE in a world.

    <plugin filename="libuuv_underwater_current_ros_plugin.so" name="...">     also libuuv_underwater_current_plugin.so
      <namespace>hydrodynamics</namespace>
      <constant_current>
        <topic>current_velocity</topic>
        <velocity> <mean>0</mean> <min>-1</min> <max>1</max> <mu>0</mu> <noiseAmp>0</noiseAmp> </velocity>     m/s
        <horizontal_angle> ... <vertical_angle> ...                                                            rad
      </constant_current>
    </plugin>

`libdave_ocean_current_plugin.so` has in addition `<transient_current><databasefilePath>`, layers that vary randomly
about the speeds and directions of a table, and `<tidal_oscillation>`, a tide table or constituents. All currents are
added. Under classic the processes are those of the plug-in, at the steps of the world's physics; otherwise they are the
corresponding Gauss-Markov processes.

Differences from the plug-ins, for any fidelity:

- North and east of layers are north and east in the world. DAVE exchanges them.
- The ebb flows against the flood. In DAVE it flows with it.
- Above and below the table, the nearest row applies.
- The tide is added to the layers, with a warning. In vehicles with `<tide_oscillation>`, DAVE uses the tide instead of
  the layers, multiplied by the north column of the table.

Constituents are those of the current, with their lag at Greenwich.
Source: UUV Simulator, `UnderwaterCurrentPlugin` and `UnderwaterCurrentROSPlugin`; DAVE, `ocean_current_world_plugin`,
`ocean_current_model_plugin`, `tidal_oscillation`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

from navsense.core.errors import FieldError, SdfError
from navsense.core.typing import Vector
from navsense.environment.base import UniformField, VectorField
from navsense.environment.current import (
    GaussMarkovCurrent,
    HarmonicFlow,
    StratifiedCurrent,
    StratifiedGaussMarkovCurrent,
    TidalConstituent,
    TidalCurrent,
    TideTable,
    UuvGaussMarkovProcess,
)
from navsense.sdf.context import Context
from navsense.sdf.names import normalize_topic
from navsense.sdf.parse.children import error_at, parse_child_number
from navsense.sdf.parse.current import CurrentContext, ParsedCurrents
from navsense.sdf.schema import (
    CONSTANT_CURRENT,
    CURRENT_PLUGINS,
    CURRENT_PROCESS,
    DAVE_CONSTITUENT,
    HARMONIC_CONSTITUENTS,
    MEAN_DIRECTION,
    START_TIME,
    TIDAL_OSCILLATION,
    TRANSIENT_CURRENT,
)
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element
from navsense.world import CurrentTopic, LayersTopic

PROCESS_TAGS = ("velocity", "horizontal_angle", "vertical_angle")


def parse_plugin_currents(
    context: Context, world: Element, site: CurrentContext, step: float, *, classic: bool
) -> ParsedCurrents:
    """Return the currents of a world's plug-ins, and the topic of the first of them."""
    fields: list[VectorField] = []
    topic: CurrentTopic | None = None
    layers: LayersTopic | None = None
    for element in world.find_all("plugin"):
        place = CURRENT_PLUGINS.get(element.attributes.get("filename", ""))
        if place is None:
            continue
        context.check(element, place)
        with context.collect_errors():
            reader = _CurrentPlugin(context, element, site, step, classic)
            topic = topic or CurrentTopic(reader.parse_topic("constant_current", "topic", "current_velocity"))
            fields += reader.parse_fields()
            layers = layers or reader.layers
    return ParsedCurrents(fields, topic and replace(topic, layers=layers))


class _CurrentPlugin:
    """A plug-in during parsing."""

    def __init__(self, context: Context, element: Element, site: CurrentContext, step: float, classic: bool) -> None:
        """Start without values."""
        self.context, self.element, self.site, self.step, self.classic = context, element, site, step, classic
        self.layers: LayersTopic | None = None

    def parse_topic(self, block: str, tag: str, default: str) -> str:
        """Return the topic of a block in the namespace of the plug-in."""
        inside, space = self.element.find(block), self.element.find("namespace")
        child = inside.find(tag) if inside is not None else None
        name = child.text.strip("/") if child is not None and child.text else default
        whole = f"/{space.text.strip('/')}/{name}" if space is not None and space.text else f"/{name}"
        topic = normalize_topic(whole)
        if not topic:
            raise invalid_value(child or self.element, whole, "must be a topic", parent=block)
        return topic

    def parse_fields(self) -> list[VectorField]:
        """Return the currents of the plug-in."""
        constant = self.element.find("constant_current")
        if constant is None:
            raise SdfError("<plugin><constant_current>", "missing", where=self.element.where, allowed="must be given")
        self.context.check(constant, CONSTANT_CURRENT)
        processes = tuple(self._parse_process(constant, tag) for tag in PROCESS_TAGS)
        found = [self._make_constant(constant, processes)]
        layers, tide = self.element.find("transient_current"), self.element.find("tidal_oscillation")
        if layers is not None:
            found.append(self._parse_layers(layers, processes))
        if tide is not None:
            found.append(self._parse_tide(tide))
        return found

    def _parse_process(self, constant: Element, tag: str) -> UuvGaussMarkovProcess:
        element = constant.find(tag)
        if element is None:
            return UuvGaussMarkovProcess(step=self.step)
        self.context.check(element, CURRENT_PROCESS)
        defaults = {"mean": 0.0, "min": -1.0, "max": 1.0, "mu": 0.0, "noiseAmp": 0.0}
        figures = [parse_child_number(self.context, element, name, default) for name, default in defaults.items()]
        try:
            return UuvGaussMarkovProcess(figures[0], figures[1], figures[2], figures[3], figures[4], self.step)
        except FieldError as error:
            raise error_at(element, error) from error

    def _is_constant(self, *processes: UuvGaussMarkovProcess) -> bool:
        """Return True if the processes stay at their means."""
        return all(one.noise_amplitude == 0.0 and (one.mu == 0.0 or not self.classic) for one in processes)

    def _make_constant(self, element: Element, processes: tuple[UuvGaussMarkovProcess, ...]) -> VectorField:
        speed, horizontal, vertical = processes
        name = self.site.register_name(self.element, self.parse_topic("constant_current", "topic", "current_velocity"))
        try:
            made = (speed, horizontal, vertical) if self.classic else [one.to_physical() for one in processes]
            field = GaussMarkovCurrent(made[0], made[1], made[2], name)
        except FieldError as error:
            raise error_at(element, error) from error
        return (
            UniformField(_make_velocity(speed.mean, horizontal.mean, vertical.mean))
            if self._is_constant(*processes)
            else field
        )

    def _parse_layers(self, element: Element, processes: tuple[UuvGaussMarkovProcess, ...]) -> VectorField:
        self.context.check(element, TRANSIENT_CURRENT)
        topic = self.parse_topic("transient_current", "topic_stratified", "stratified_current_velocity")
        reason = f"{topic}_database, which repeats the files' tables, is not published"
        self.context.add_note("unsupported", "<transient_current><topic_stratified>", reason, element.where)
        try:
            path = self._find_file(element)
            table = StratifiedCurrent.from_file(path, surface=self.site.surface, heading=self.site.heading)
            self.layers = LayersTopic(topic, table.depths, self.site.surface)
            if self._is_constant(*processes[:2]):
                return table
            floor = max(processes[0].minimum, 0.0)
            speed = UuvGaussMarkovProcess(floor, floor, *_layer_parameters(processes[0]))
            made = (speed, processes[1]) if self.classic else (speed.to_physical(), processes[1].to_physical())
            wandering = StratifiedGaussMarkovCurrent(table, made[0], made[1], topic)
            wandering.realise(0, 0)  # raises for layers outside the limits
        except FieldError as error:
            raise error_at(element, error) from error
        return wandering

    def _find_file(self, element: Element) -> str:
        child = element.find("databasefilePath")
        if child is None:
            what = f"<{element.tag}><databasefilePath>"
            raise SdfError(what, "missing", where=element.where, allowed="must be given")
        return str(self.site.search.find_asset(child, element.tag))

    def _parse_tide(self, element: Element) -> VectorField:
        self.context.check(element, TIDAL_OSCILLATION)
        start = self._parse_start(element)
        directions = element.find("mean_direction")
        if directions is None:
            what = "<tidal_oscillation><mean_direction>"
            raise SdfError(what, "missing", where=element.where, allowed="must be given")
        self.context.check(directions, MEAN_DIRECTION)
        flood, ebb = (math.radians(self._require_number(directions, tag)) for tag in ("flood", "ebb"))
        harmonic = element.find("harmonic_constituents")
        if (harmonic is None) == (element.find("databasefilePath") is None):
            allowed = "requires <databasefilePath> or <harmonic_constituents>, not both"
            raise invalid_value(element, "none" if harmonic is None else "both", allowed)
        flow: HarmonicFlow | TideTable
        try:
            if harmonic is None:
                flow = TideTable.from_file(self._find_file(element), start)
            else:
                flow = self._parse_constituents(harmonic, start)
            tide = TidalCurrent(flow, flood, ebb, self.site.heading)
        except FieldError as error:
            raise error_at(element, error) from error
        reason = "the tide is added at every depth; DAVE scales it by the north column of its layers, for some vehicles"
        self.context.add_note("warning", "<plugin><tidal_oscillation>", reason, element.where)
        return tide

    def _parse_constituents(self, element: Element, start: datetime) -> HarmonicFlow:
        self.context.check(element, HARMONIC_CONSTITUENTS)
        made = []
        for one in element.children:
            if one.tag in HARMONIC_CONSTITUENTS.children:
                self.context.check(one, DAVE_CONSTITUENT)
                amplitude, phase, speed = (self._require_number(one, tag) for tag in ("amp", "phase", "speed"))
                made.append(TidalConstituent.from_degrees(one.tag, amplitude, phase, speed))
        return HarmonicFlow(tuple(made), start)

    def _parse_start(self, element: Element) -> datetime:
        child = element.find("world_start_time_GMT")
        if child is None:
            what = "<tidal_oscillation><world_start_time_GMT>"
            raise SdfError(what, "missing", where=element.where, allowed="must be given")
        self.context.check(child, START_TIME)
        tags = ("year", "month", "day", "hour", "minute")
        figures = [
            self._require_number(child, tag) if tag in tags[:3] else parse_child_number(self.context, child, tag, 0.0)
            for tag in tags
        ]
        try:
            if any(figure != int(figure) for figure in figures):
                raise ValueError("a part of it is not a whole number")  # noqa: TRY301
            year, month, day, hour, minute = (int(figure) for figure in figures)
            return datetime(year, month, day, hour, minute, tzinfo=UTC)
        except (ValueError, OverflowError) as error:
            shown = " ".join(f"{figure:g}" for figure in figures)
            allowed = f"must be year, month, day, hour and minute of a date: {error}"
            raise invalid_value(child, shown, allowed, parent=element.tag) from error

    def _require_number(self, element: Element, tag: str) -> float:
        """Return the number of a required child."""
        if element.find(tag) is None:
            raise SdfError(f"<{element.tag}><{tag}>", "missing", where=element.where, allowed="must be given")
        return parse_child_number(self.context, element, tag, 0.0)


def _layer_parameters(process: UuvGaussMarkovProcess) -> tuple[float, float, float, float]:
    """Return the parameters that all layers share: maximum, mu, noise amplitude, step."""
    return process.maximum, process.mu, process.noise_amplitude, process.step


def _make_velocity(speed: float, horizontal: float, vertical: float) -> Vector:
    """Return a velocity (m/s) along the world's axes from speed (m/s) and angles (rad)."""
    level = speed * math.cos(vertical)
    return (level * math.cos(horizontal), level * math.sin(horizontal), speed * math.sin(vertical))
