"""`<clock name="...">` in a link, and `<clock>NAME</clock>` in a sensor.

A name is looked up in the sensor's own model, then in the models around it; there `clock`, `link::clock` and
`inner::link::clock` are names, and everywhere the full `model::link::clock`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from navsense.clock import Clock, Temperature
from navsense.errors import ClockError, SdfError
from navsense.sdf.context import Context
from navsense.sdf.fill.faults import steps_of
from navsense.sdf.fill.fields import flag_of
from navsense.sdf.fill.noise import noise_of
from navsense.sdf.fill.oscillator import discipline_of, oscillator_of
from navsense.sdf.frames import Node, Scope
from navsense.sdf.names import checked_name, full_name
from navsense.sdf.places import CLOCK, LEAF
from navsense.sdf.read import Element
from navsense.sdf.values import refusal

GLOBAL = "none"
"""The name of perfect, global time."""

TAGS = ("clock", "navsense:clock")

NONE: Mapping[str, Temperature] = MappingProxyType({})
"""The signals of a world that has none."""


@dataclass
class Clocks:
    """The clocks of a file: by full name, and by model and plain name."""

    by_name: dict[str, Clock] = field(default_factory=dict)
    by_model: dict[str, dict[str, list[Clock]]] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Clock, ...]:
        """Return the clocks in the order of the file."""
        return tuple(self.by_name.values())

    def declare(
        self, context: Context, link: Node, scope: Scope, *, classic: bool, signals: Mapping[str, Temperature] = NONE
    ) -> None:
        """Read the clocks of a link of the model `scope`; `signals` are the world's named inputs."""
        for element in link.element.all(*TAGS):
            context.check(element, CLOCK)
            with context.collecting():
                full = self._named(element, link)
                clock = _read(context, element, full, signals, classic=classic)
                self._add(context, element, clock, scope)

    def _named(self, element: Element, link: Node) -> str:
        """Return a clock's full name, which no clock before it has."""
        name = checked_name(element)
        if name == GLOBAL:
            raise refusal(element, name, "is reserved for global time", attribute="name", remedy="choose another name")
        full = full_name(element, link.name, name)
        before = self.by_name.get(full)
        if before is not None:
            allowed = "must be unique among the clocks of its link"
            remedy = f"first on line {before.where.line if before.where else 0}; rename one"
            raise refusal(element, name, allowed, attribute="name", remedy=remedy)
        return full

    def _add(self, context: Context, element: Element, clock: Clock, scope: Scope) -> None:
        self.by_name[clock.name] = clock
        name = clock.name.rpartition("::")[2]
        same = self.by_model.setdefault(scope.node.name, {}).setdefault(name, [])
        if same:
            reason = f"has the name of {same[0].name}: sensors must write {_in_model(clock.name, scope)}"
            context.note("warning", f"<clock>: {clock.name}", reason, element.where)
        same.append(clock)

    def named_by(self, context: Context, sensor: Element, full_name: str, scope: Scope) -> str | None:
        """Return the full name of the clock that a sensor names; None for global time."""
        elements = list(sensor.all(*TAGS))
        if not elements:
            return None
        if len(elements) > 1:
            context.problem(refusal(elements[1], elements[1].text, "a sensor has one clock", parent="sensor"))
        element = elements[0]
        context.check(element, LEAF)
        if element.text == GLOBAL:
            return None
        with context.collecting():
            return self._resolved(element, full_name, scope).name
        return None

    def _resolved(self, element: Element, sensor: str, scope: Scope) -> Clock:
        name = element.text
        at: Scope | None = scope
        while at is not None and not at.is_world:
            same = self.by_model.get(at.node.name, {}).get(name, [])
            if len(same) == 1:
                return same[0]
            if same:
                shown = " or ".join(_in_model(clock.name, at) for clock in same[:4])
                raise _refusal(element, sensor, "is the name of several clocks", f"write {shown}")
            clock = self.by_name.get(f"{at.node.name}::{name}") if "::" in name else None
            if clock is not None:
                return clock
            at = at.parent
        clock = self.by_name.get(name)
        if clock is None:
            raise _refusal(element, sensor, "must name a clock of its model, or none", self._hint(scope))
        return clock

    def _hint(self, scope: Scope) -> str:
        names = list(self.by_model.get(scope.node.name, {}))[:5]
        if names:
            return f"its model has {', '.join(names)}"
        return 'its model has no clock: declare <clock name="..."> in a link'


def _read(context: Context, element: Element, full: str, signals: Mapping[str, Temperature], *, classic: bool) -> Clock:
    """Return the clock that an element describes."""
    noise, oscillator = noise_of(context, element, classic=classic), oscillator_of(context, element, signals)
    if element.first("noise") is None and oscillator is None:
        context.note("warning", f"<clock>: {full}", "has no <noise>: it shows global time", element.where)
    monotonic = flag_of(context, element, "navsense:monotonic", default=False)
    steps = steps_of(context, element)
    try:
        return Clock(full, noise, oscillator, discipline_of(context, element), monotonic, element.where, steps)
    except ClockError as error:
        what = f"<clock><noise><{error.what.partition(' ')[0]}>"
        raise SdfError(what, error.value, where=element.where, allowed=error.allowed, remedy=error.remedy) from error


def _in_model(full: str, scope: Scope) -> str:
    return full.removeprefix(f"{scope.node.name}::")


def _refusal(element: Element, sensor: str, allowed: str, remedy: str) -> SdfError:
    what = f"<clock> of sensor {sensor!r}"
    return SdfError(what, element.text or "empty", where=element.where, allowed=allowed, remedy=remedy)
