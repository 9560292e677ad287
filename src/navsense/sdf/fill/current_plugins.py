"""The current plug-ins of the UUV Simulator and of DAVE, in a world, as the currents that they are.

    <plugin filename="libuuv_underwater_current_ros_plugin.so" name="...">     also libuuv_underwater_current_plugin.so
      <namespace>hydrodynamics</namespace>
      <constant_current>
        <topic>current_velocity</topic>
        <velocity> <mean>0</mean> <min>-1</min> <max>1</max> <mu>0</mu> <noiseAmp>0</noiseAmp> </velocity>     m/s
        <horizontal_angle> ... <vertical_angle> ...                                                            rad
      </constant_current>
    </plugin>

`libdave_ocean_current_plugin.so` has besides `<transient_current><databasefilePath>`, layers that wander about their
table's speeds and directions as the constant current does, and `<tidal_oscillation>`, a tide table or constituents. All
of it is added up. Under classic the processes are the plug-in's, on the steps of the world's physics; else the
Gauss-Markov process that each stands for.

Mended, whatever the fidelity: layers north and east are so in the world (DAVE exchanges them), the ebb runs against the
flood (DAVE's runs with it), below and above the table the nearest row holds. DAVE takes the tide instead of the layers
in vehicles with `<tide_oscillation>`, times the table's north column: here it is added to the layers as it is, and a
warning says so. Constituents are those of the current, with their lag at Greenwich.
Source: UUV Simulator, `UnderwaterCurrentPlugin` and `UnderwaterCurrentROSPlugin`; DAVE, `ocean_current_world_plugin`,
`ocean_current_model_plugin`, `tidal_oscillation`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

from navsense.environment.base import Uniform, VectorField
from navsense.environment.current import (
    ClassicWander,
    Constituent,
    GaussMarkov,
    Harmonics,
    Stratified,
    StratifiedGaussMarkov,
    TidalCurrent,
    TideTable,
)
from navsense.errors import FieldError, SdfError
from navsense.sdf.context import Context
from navsense.sdf.fill.current import Flow, Sea
from navsense.sdf.fill.fields import number_of, refused_at
from navsense.sdf.names import valid_topic
from navsense.sdf.places import (
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
from navsense.sdf.read import Element
from navsense.sdf.values import refusal
from navsense.typing import Vector
from navsense.world import CurrentTopic, LayersTopic

PROCESSES = ("velocity", "horizontal_angle", "vertical_angle")


def currents_of_plugins(context: Context, world: Element, sea: Sea, step: float, *, classic: bool) -> Flow:
    """Return the currents of a world's plug-ins, and where the first of them publishes."""
    fields: list[VectorField] = []
    topic: CurrentTopic | None = None
    layers: LayersTopic | None = None
    for element in world.all("plugin"):
        place = CURRENT_PLUGINS.get(element.attributes.get("filename", ""))
        if place is None:
            continue
        context.check(element, place)
        with context.collecting():
            reader = _Plugin(context, element, sea, step, classic)
            topic = topic or CurrentTopic(reader.topic("constant_current", "topic", "current_velocity"))
            fields += reader.fields()
            layers = layers or reader.layers
    return Flow(fields, topic and replace(topic, layers=layers))


class _Plugin:
    """One plug-in while it is read."""

    def __init__(self, context: Context, element: Element, sea: Sea, step: float, classic: bool) -> None:
        """Read nothing yet."""
        self.context, self.element, self.sea, self.step, self.classic = context, element, sea, step, classic
        self.layers: LayersTopic | None = None

    def topic(self, block: str, tag: str, default: str) -> str:
        """Return the topic that a block names, in the plug-in's namespace."""
        inside, space = self.element.first(block), self.element.first("namespace")
        child = inside.first(tag) if inside is not None else None
        name = child.text.strip("/") if child is not None and child.text else default
        whole = f"/{space.text.strip('/')}/{name}" if space is not None and space.text else f"/{name}"
        topic = valid_topic(whole)
        if not topic:
            raise refusal(child or self.element, whole, "must be a topic", parent=block)
        return topic

    def fields(self) -> list[VectorField]:
        """Return the currents of the plug-in."""
        constant = self.element.first("constant_current")
        if constant is None:
            raise SdfError("<plugin><constant_current>", "missing", where=self.element.where, allowed="must be given")
        self.context.check(constant, CONSTANT_CURRENT)
        processes = tuple(self._process(constant, tag) for tag in PROCESSES)
        found = [self._constant(constant, processes)]
        layers, tide = self.element.first("transient_current"), self.element.first("tidal_oscillation")
        if layers is not None:
            found.append(self._layers(layers, processes))
        if tide is not None:
            found.append(self._tide(tide))
        return found

    def _process(self, constant: Element, tag: str) -> ClassicWander:
        element = constant.first(tag)
        if element is None:
            return ClassicWander(step=self.step)
        self.context.check(element, CURRENT_PROCESS)
        defaults = {"mean": 0.0, "min": -1.0, "max": 1.0, "mu": 0.0, "noiseAmp": 0.0}
        figures = [number_of(self.context, element, name, default) for name, default in defaults.items()]
        try:
            return ClassicWander(figures[0], figures[1], figures[2], figures[3], figures[4], self.step)
        except FieldError as error:
            raise refused_at(element, error) from error

    def _still(self, *processes: ClassicWander) -> bool:
        """Return whether processes stay at their means."""
        return all(one.noise_amplitude == 0.0 and (one.mu == 0.0 or not self.classic) for one in processes)

    def _constant(self, element: Element, processes: tuple[ClassicWander, ...]) -> VectorField:
        speed, horizontal, vertical = processes
        name = self.sea.name(self.element, self.topic("constant_current", "topic", "current_velocity"))
        try:
            made = (speed, horizontal, vertical) if self.classic else [one.physical() for one in processes]
            field = GaussMarkov(made[0], made[1], made[2], name)
        except FieldError as error:
            raise refused_at(element, error) from error
        return Uniform(_vector(speed.mean, horizontal.mean, vertical.mean)) if self._still(*processes) else field

    def _layers(self, element: Element, processes: tuple[ClassicWander, ...]) -> VectorField:
        self.context.check(element, TRANSIENT_CURRENT)
        topic = self.topic("transient_current", "topic_stratified", "stratified_current_velocity")
        reason = f"{topic}_database, which repeats the files' tables, is not published"
        self.context.note("unsupported", "<transient_current><topic_stratified>", reason, element.where)
        try:
            path = self._file(element)
            table = Stratified.from_file(path, surface=self.sea.surface, heading=self.sea.heading)
            self.layers = LayersTopic(topic, table.depths, self.sea.surface)
            if self._still(*processes[:2]):
                return table
            floor = max(processes[0].minimum, 0.0)
            speed = ClassicWander(floor, floor, *_rest(processes[0]))
            made = (speed, processes[1]) if self.classic else (speed.physical(), processes[1].physical())
            wandering = StratifiedGaussMarkov(table, made[0], made[1], topic)
            wandering.opened(0, 0)  # refuses layers outside the limits
        except FieldError as error:
            raise refused_at(element, error) from error
        return wandering

    def _file(self, element: Element) -> str:
        child = element.first("databasefilePath")
        if child is None:
            what = f"<{element.tag}><databasefilePath>"
            raise SdfError(what, "missing", where=element.where, allowed="must be given")
        return str(self.sea.search.asset(child, element.tag))

    def _tide(self, element: Element) -> VectorField:
        self.context.check(element, TIDAL_OSCILLATION)
        start = self._start(element)
        directions = element.first("mean_direction")
        if directions is None:
            what = "<tidal_oscillation><mean_direction>"
            raise SdfError(what, "missing", where=element.where, allowed="must be given")
        self.context.check(directions, MEAN_DIRECTION)
        flood, ebb = (math.radians(self._needed(directions, tag)) for tag in ("flood", "ebb"))
        harmonic = element.first("harmonic_constituents")
        if (harmonic is None) == (element.first("databasefilePath") is None):
            allowed = "must hold <databasefilePath> or <harmonic_constituents>, one of the two"
            raise refusal(element, "none" if harmonic is None else "both", allowed)
        flow: Harmonics | TideTable
        try:
            if harmonic is None:
                flow = TideTable.from_file(self._file(element), start)
            else:
                flow = self._constituents(harmonic, start)
            tide = TidalCurrent(flow, flood, ebb, self.sea.heading)
        except FieldError as error:
            raise refused_at(element, error) from error
        reason = "the tide is added at every depth; DAVE scales it by the north column of its layers, for some vehicles"
        self.context.note("warning", "<plugin><tidal_oscillation>", reason, element.where)
        return tide

    def _constituents(self, element: Element, start: datetime) -> Harmonics:
        self.context.check(element, HARMONIC_CONSTITUENTS)
        made = []
        for one in element.children:
            if one.tag in HARMONIC_CONSTITUENTS.read:
                self.context.check(one, DAVE_CONSTITUENT)
                amplitude, phase, speed = (self._needed(one, tag) for tag in ("amp", "phase", "speed"))
                made.append(Constituent.degrees(one.tag, amplitude, phase, speed))
        return Harmonics(tuple(made), start)

    def _start(self, element: Element) -> datetime:
        child = element.first("world_start_time_GMT")
        if child is None:
            what = "<tidal_oscillation><world_start_time_GMT>"
            raise SdfError(what, "missing", where=element.where, allowed="must be given")
        self.context.check(child, START_TIME)
        tags = ("year", "month", "day", "hour", "minute")
        figures = [
            self._needed(child, tag) if tag in tags[:3] else number_of(self.context, child, tag, 0.0) for tag in tags
        ]
        try:
            if any(figure != int(figure) for figure in figures):
                raise ValueError("a part of it is no whole number")  # noqa: TRY301
            year, month, day, hour, minute = (int(figure) for figure in figures)
            return datetime(year, month, day, hour, minute, tzinfo=UTC)
        except (ValueError, OverflowError) as error:
            shown = " ".join(f"{figure:g}" for figure in figures)
            allowed = f"must be year, month, day, hour and minute of a date: {error}"
            raise refusal(child, shown, allowed, parent=element.tag) from error

    def _needed(self, element: Element, tag: str) -> float:
        """Return the number of a child that must be there."""
        if element.first(tag) is None:
            raise SdfError(f"<{element.tag}><{tag}>", "missing", where=element.where, allowed="must be given")
        return number_of(self.context, element, tag, 0.0)


def _rest(process: ClassicWander) -> tuple[float, float, float, float]:
    """Return what is the same of a layer's speed: maximum, mu, noise amplitude, step."""
    return process.maximum, process.mu, process.noise_amplitude, process.step


def _vector(speed: float, horizontal: float, vertical: float) -> Vector:
    """Return a velocity (m/s) by its speed and angles (rad), along the world's axes."""
    level = speed * math.cos(vertical)
    return (level * math.cos(horizontal), level * math.sin(horizontal), speed * math.sin(vertical))
