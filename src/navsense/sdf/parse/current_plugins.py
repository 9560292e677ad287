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
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, ElementSchema, make_schema
from navsense.sdf.names import normalize_topic
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.current import CurrentContext, ParsedCurrents
from navsense.sdf.plugin_files import normalize_file, normalize_files
from navsense.sdf.schema import CURRENT_PLUGINS
from navsense.sdf.values import invalid_value, map_spec_errors, require_child
from navsense.sdf.xml_reader import Element
from navsense.world import CurrentTopic, LayersTopic

_SCHEMAS = normalize_files(CURRENT_PLUGINS)

PROCESS_TAGS = ("velocity", "horizontal_angle", "vertical_angle")
CONSTITUENT_TAGS = ("M2", "S2", "N2")
DATE_TAGS, TIME_TAGS = ("year", "month", "day"), ("hour", "minute")

PROCESS = ElementBinding(UuvGaussMarkovProcess, strict=None)
CONSTANT_CURRENT = ElementSchema(frozenset(("topic", *PROCESS_TAGS)), strict=None)
TRANSIENT_CURRENT = make_schema("topic_stratified databasefilePath", strict=None)
TIDAL_OSCILLATION = make_schema(
    "databasefilePath harmonic_constituents mean_direction world_start_time_GMT", strict=None
)
HARMONIC_CONSTITUENTS = ElementSchema(frozenset(CONSTITUENT_TAGS), strict=None)
CONSTITUENT = make_schema("amp phase speed", strict=None)
MEAN_DIRECTION = make_schema("ebb flood", strict=None)
START_TIME = ElementSchema(frozenset((*DATE_TAGS, *TIME_TAGS)), strict=None)


def parse_plugin_currents(
    context: Context, world: Element, site: CurrentContext, step: float, *, classic: bool
) -> ParsedCurrents:
    """Return the currents of a world's plug-ins, and the topic of the first of them."""
    fields: list[VectorField] = []
    topic: CurrentTopic | None = None
    layers: LayersTopic | None = None
    for element in world.find_all("plugin"):
        schema = _SCHEMAS.get(normalize_file(element.attributes.get("filename", "")))
        if schema is None:
            continue
        context.check(element, schema)
        with context.collect_errors():
            plugin = _CurrentPlugin(context, element, site, step, classic)
            topic = topic or CurrentTopic(plugin.parse_topic("constant_current", "topic", "current_velocity"))
            fields += plugin.parse_fields()
            layers = layers or plugin.layers
    return ParsedCurrents(fields, topic and replace(topic, layers=layers))


class _CurrentPlugin:
    """A plug-in during parsing."""

    def __init__(self, context: Context, element: Element, site: CurrentContext, step: float, classic: bool) -> None:
        """Start without values."""
        self.context, self.element, self.site, self.step, self.classic = context, element, site, step, classic
        self.layers: LayersTopic | None = None

    def parse_topic(self, parent: str, tag: str, default: str) -> str:
        """Return the topic in `<parent><tag>` of the plug-in, with the namespace of the plug-in."""
        parent_element, namespace = self.element.find(parent), self.element.get_text("namespace").strip("/")
        child = parent_element.find(tag) if parent_element is not None else None
        name = child.text.strip("/") if child is not None and child.text else default
        full_name = f"/{namespace}/{name}" if self.element.get_text("namespace") else f"/{name}"
        topic = normalize_topic(full_name)
        if not topic:
            raise invalid_value(child or self.element, full_name, "must be a topic", parent=parent)
        return topic

    def parse_fields(self) -> list[VectorField]:
        """Return the currents of the plug-in."""
        constant = self.context.require_child(self.element, "constant_current", CONSTANT_CURRENT)
        processes = [self._parse_process(constant, tag) for tag in PROCESS_TAGS]
        fields = [self._make_constant(constant, *processes)]
        layers = self.context.find_child(self.element, "transient_current", TRANSIENT_CURRENT)
        tide = self.context.find_child(self.element, "tidal_oscillation", TIDAL_OSCILLATION)
        if layers is not None:
            fields.append(self._parse_layers(layers, *processes[:2]))
        if tide is not None:
            fields.append(self._parse_tide(tide))
        return fields

    def _parse_process(self, constant: Element, tag: str) -> UuvGaussMarkovProcess:
        element = constant.find(tag)
        if element is None:
            return UuvGaussMarkovProcess(step=self.step)
        return PROCESS.read(self.context, element, step=self.step)

    def _is_constant(self, *processes: UuvGaussMarkovProcess) -> bool:
        """Return True if the processes stay at their means."""
        return all(process.noise_amplitude == 0.0 and (process.mu == 0.0 or not self.classic) for process in processes)

    def _make_constant(
        self,
        element: Element,
        speed: UuvGaussMarkovProcess,
        horizontal: UuvGaussMarkovProcess,
        vertical: UuvGaussMarkovProcess,
    ) -> VectorField:
        name = self.site.register_name(self.element, self.parse_topic("constant_current", "topic", "current_velocity"))
        with map_spec_errors(element):
            if self.classic:
                field = GaussMarkovCurrent(speed, horizontal, vertical, name)
            else:
                processes = (speed.to_physical(), horizontal.to_physical(), vertical.to_physical())
                field = GaussMarkovCurrent(*processes, name)
        if self._is_constant(speed, horizontal, vertical):
            return UniformField(_make_velocity(speed.mean, horizontal.mean, vertical.mean))
        return field

    def _parse_layers(
        self, element: Element, speed: UuvGaussMarkovProcess, direction: UuvGaussMarkovProcess
    ) -> VectorField:
        topic = self.parse_topic("transient_current", "topic_stratified", "stratified_current_velocity")
        reason = f"{topic}_database, which repeats the files' tables, is not published"
        self.context.add_note("unsupported", "<transient_current><topic_stratified>", reason, element.where)
        with map_spec_errors(element):
            path = self._find_file(element)
            table = StratifiedCurrent.from_file(path, surface=self.site.surface, heading=self.site.heading)
            self.layers = LayersTopic(topic, table.depths, self.site.surface)
            if self._is_constant(speed, direction):
                return table
            # All layers have the limits, mu and noise of the speed.
            floor = max(speed.minimum, 0.0)
            layer_speed = replace(speed, mean=floor, minimum=floor)
            if self.classic:
                current = StratifiedGaussMarkovCurrent(table, layer_speed, direction, topic)
            else:
                processes = (layer_speed.to_physical(), direction.to_physical())
                current = StratifiedGaussMarkovCurrent(table, *processes, topic)
            current.realise(0, 0)  # raises for layers outside the limits
        return current

    def _find_file(self, element: Element) -> str:
        return str(self.site.search.find_table(require_child(element, "databasefilePath"), element.tag))

    def _parse_tide(self, element: Element) -> VectorField:
        start = self._parse_start(element)
        directions = self.context.require_child(element, "mean_direction", MEAN_DIRECTION)
        flood, ebb = (math.radians(self._require_number(directions, tag)) for tag in ("flood", "ebb"))
        harmonic = element.find("harmonic_constituents")
        if (harmonic is None) == (element.find("databasefilePath") is None):
            allowed = "requires <databasefilePath> or <harmonic_constituents>, not both"
            raise invalid_value(element, "none" if harmonic is None else "both", allowed)
        flow: HarmonicFlow | TideTable
        with map_spec_errors(element):
            if harmonic is None:
                flow = TideTable.from_file(self._find_file(element), start)
            else:
                flow = self._parse_constituents(harmonic, start)
            tide = TidalCurrent(flow, flood, ebb, self.site.heading)
        reason = "the tide is added at every depth; DAVE scales it by the north column of its layers, for some vehicles"
        self.context.add_note("warning", "<plugin><tidal_oscillation>", reason, element.where)
        return tide

    def _parse_constituents(self, element: Element, start: datetime) -> HarmonicFlow:
        self.context.check(element, HARMONIC_CONSTITUENTS)
        constituents = []
        for child in element.find_all(*CONSTITUENT_TAGS):
            self.context.check(child, CONSTITUENT)
            amplitude, phase, speed = (self._require_number(child, tag) for tag in ("amp", "phase", "speed"))
            constituents.append(TidalConstituent.from_degrees(child.tag, amplitude, phase, speed))
        return HarmonicFlow(tuple(constituents), start)

    def _parse_start(self, element: Element) -> datetime:
        child = self.context.require_child(element, "world_start_time_GMT", START_TIME)
        numbers = [self._require_number(child, tag) for tag in DATE_TAGS]
        numbers += [parse_child_number(self.context, child, tag, 0.0) for tag in TIME_TAGS]
        try:
            if any(number != int(number) for number in numbers):
                raise ValueError("a part of it is not a whole number")  # noqa: TRY301
            year, month, day, hour, minute = (int(number) for number in numbers)
            return datetime(year, month, day, hour, minute, tzinfo=UTC)
        except (ValueError, OverflowError) as error:
            text = " ".join(f"{number:g}" for number in numbers)
            allowed = f"must be year, month, day, hour and minute of a date: {error}"
            raise invalid_value(child, text, allowed, parent=element.tag) from error

    def _require_number(self, element: Element, tag: str) -> float:
        """Return the number of a required child."""
        require_child(element, tag)
        return parse_child_number(self.context, element, tag, 0.0)


def _make_velocity(speed: float, horizontal: float, vertical: float) -> Vector:
    """Return a velocity (m/s) along the world's axes from speed (m/s) and angles (rad)."""
    level = speed * math.cos(vertical)
    return (level * math.cos(horizontal), level * math.sin(horizontal), speed * math.sin(vertical))
