"""`<clock name="...">` in a link, `<clock>NAME</clock>` and `<navsense:latency>` in a sensor.

A name is resolved in the model of the sensor, then in its parent models. There `clock`, `link::clock` and
`inner::link::clock` are names. The full name `model::link::clock` is a name everywhere.

    <clock name="mcu">
      <noise type="gaussian"> ... </noise>               s
      <navsense:oscillator grade="TCXO">                 its children replace the values of the grade
        <frequency>2e-6</frequency>                      fields of `Oscillator`, in SI units
        <ageing per="year">1e-6</ageing>                 per second without the attribute; day, month (of 30 days), year
        <temperature signal="cabin"/>                    or a number of kelvin
      </navsense:oscillator>
      <navsense:discipline> <interval>1</interval> </navsense:discipline>       fields of `Discipline`
    </clock>

    <sensor> <clock>mcu</clock>
      <navsense:latency> <fixed>0.002</fixed> <mean>0.004</mean> <stddev>0.002</stddev> </navsense:latency>      s

With a `<step_threshold>` of inf the discipline never steps the clock. The default of `<until>` is inf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from navsense.clock import (
    GRADES,
    Clock,
    Discipline,
    Latency,
    Oscillator,
    TemperatureSignal,
    per_day,
    per_month,
    per_year,
)
from navsense.core.errors import ClockError, SdfError
from navsense.core.names import suggest_name
from navsense.sdf.binder import ChildParser, ElementBinding
from navsense.sdf.context import LEAF, Context, make_schema
from navsense.sdf.frames import FrameNode, Scope
from navsense.sdf.names import join_names, parse_name
from navsense.sdf.parse.children import parse_child_flag
from navsense.sdf.parse.faults import parse_clock_steps
from navsense.sdf.parse.noise import parse_child_noise
from navsense.sdf.schema import CLOCK
from navsense.sdf.values import invalid_choice, invalid_value, parse_number
from navsense.sdf.xml_reader import Element

Spec = TypeVar("Spec")

TRUE_TIME = "none"
"""The name of true time in a file."""

CLOCK_TAGS = ("clock", "navsense:clock")

NO_SIGNALS: Mapping[str, TemperatureSignal] = MappingProxyType({})
"""Signals of a world without signals."""

DISCIPLINE_TAG, LATENCY_TAG = "navsense:discipline", "navsense:latency"

OSCILLATOR = ElementBinding(Oscillator, check_limits=False, other_attributes=("grade",))
DISCIPLINE = ElementBinding(Discipline, check_limits=False)
LATENCY = ElementBinding(Latency)

RATE_CONVERSIONS: Mapping[str, Callable[[float], float]] = {
    "second": float,
    "day": per_day,
    "month": per_month,
    "year": per_year,
}
"""Attribute `per` of an ageing -> conversion to an ageing per second."""

_AGEING = make_schema(attributes="per")
_TEMPERATURE = make_schema(attributes="signal")


@dataclass
class ClockRegistry:
    """The clocks of a file: by full name, and by model and plain name."""

    by_name: dict[str, Clock] = field(default_factory=dict)
    by_model: dict[str, dict[str, list[Clock]]] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Clock, ...]:
        """The clocks in the order of the file."""
        return tuple(self.by_name.values())

    def parse_clocks(
        self,
        context: Context,
        link: FrameNode,
        scope: Scope,
        *,
        classic: bool,
        signals: Mapping[str, TemperatureSignal] = NO_SIGNALS,
    ) -> None:
        """Parse the clocks of a link of the model `scope`; `signals` are those of the world."""
        for element in link.element.find_all(*CLOCK_TAGS):
            context.check(element, CLOCK)
            with context.collect_errors():
                full = self._parse_name(element, link)
                clock = _parse_clock(context, element, full, signals, classic=classic)
                self._add_clock(context, element, clock, scope)

    def _parse_name(self, element: Element, link: FrameNode) -> str:
        """Return the full name of a clock. Raises `SdfError` if another clock has it."""
        name = parse_name(element)
        if name == TRUE_TIME:
            allowed, remedy = "is reserved for true time", "choose another name"
            raise invalid_value(element, name, allowed, attribute="name", remedy=remedy)
        full = join_names(element, link.name, name)
        first = self.by_name.get(full)
        if first is not None:
            allowed = "must be unique among the clocks of its link"
            remedy = f"first on line {first.where.line if first.where else 0}; rename one"
            raise invalid_value(element, name, allowed, attribute="name", remedy=remedy)
        return full

    def _add_clock(self, context: Context, element: Element, clock: Clock, scope: Scope) -> None:
        self.by_name[clock.name] = clock
        name = clock.name.rpartition("::")[2]
        same = self.by_model.setdefault(scope.frame.name, {}).setdefault(name, [])
        if same:
            reason = f"has the name of {same[0].name}: sensors must write {_remove_model_name(clock.name, scope)}"
            context.add_note("warning", f"<clock>: {clock.name}", reason, element.where)
        same.append(clock)

    def find_clock_name(self, context: Context, sensor: Element, full_name: str, scope: Scope) -> str | None:
        """Return the full name of the clock of a sensor; None for true time."""
        elements = list(sensor.find_all(*CLOCK_TAGS))
        if not elements:
            return None
        if len(elements) > 1:
            context.add_problem(invalid_value(elements[1], elements[1].text, "a sensor has one clock", parent="sensor"))
        element = elements[0]
        context.check(element, LEAF)
        if element.text == TRUE_TIME:
            return None
        with context.collect_errors():
            return self._resolve(element, full_name, scope).name
        return None

    def _resolve(self, element: Element, sensor: str, scope: Scope) -> Clock:
        """Return the clock of a sensor by its name in the model, in the parent models or everywhere."""
        name = element.text
        model: Scope | None = scope
        while model is not None and not model.is_world:
            clocks = self.by_model.get(model.frame.name, {}).get(name, [])
            if len(clocks) == 1:
                return clocks[0]
            if clocks:
                known = " or ".join(_remove_model_name(clock.name, model) for clock in clocks[:4])
                raise _make_clock_error(element, sensor, "is the name of several clocks", f"write {known}")
            full_name = f"{model.frame.name}::{name}"
            if "::" in name and full_name in self.by_name:
                return self.by_name[full_name]
            model = model.parent
        if name in self.by_name:
            return self.by_name[name]
        declared = list(self.by_model.get(scope.frame.name, {}))
        remedy = 'its model has no clock: declare <clock name="..."> in a link'
        if declared:
            remedy = f"{suggest_name(name, declared)} its model has {', '.join(declared[:5])}".strip()
        raise _make_clock_error(element, sensor, "must be a clock of its model, or absent", remedy)


def _parse_clock(
    context: Context, element: Element, full: str, signals: Mapping[str, TemperatureSignal], *, classic: bool
) -> Clock:
    """Return the clock of an element. Raises `SdfError`."""
    noise = parse_child_noise(context, element, classic=classic)
    oscillator = parse_oscillator(context, element, signals)
    if element.find("noise") is None and oscillator is None:
        context.add_note("warning", f"<clock>: {full}", "has no <noise>: it equals true time", element.where)
    monotonic = parse_child_flag(context, element, "navsense:monotonic", default=False)
    discipline, steps = _read_child(context, element, DISCIPLINE_TAG, DISCIPLINE), parse_clock_steps(context, element)
    try:
        return Clock(full, noise, oscillator, discipline, monotonic, element.where, steps)
    except ClockError as error:
        what = f"<clock><noise><{error.field}>"
        raise SdfError(what, error.value, where=element.where, allowed=error.allowed, remedy=error.remedy) from error


def _remove_model_name(full: str, scope: Scope) -> str:
    return full.removeprefix(f"{scope.frame.name}::")


def _make_clock_error(element: Element, sensor: str, allowed: str, remedy: str) -> SdfError:
    what = f"<clock> of sensor {sensor!r}"
    return SdfError(what, element.text or "empty", where=element.where, allowed=allowed, remedy=remedy)


def parse_oscillator(context: Context, clock: Element, signals: Mapping[str, TemperatureSignal]) -> Oscillator | None:
    """Return the oscillator of a clock, without its invalid values; None if the clock has no oscillator."""
    element = context.find_child(clock, "navsense:oscillator", OSCILLATOR.schema)
    if element is None:
        return None
    oscillator = Oscillator()
    with context.collect_errors():
        oscillator = _parse_grade(element)
        parsers: dict[str, ChildParser] = {
            "ageing": _parse_ageing,
            "ageing_stddev": _parse_ageing,
            "temperature": partial(_parse_temperature, signals=signals),
        }
        values = OSCILLATOR.read_fields(context, element, parsers)
        try:
            return replace(oscillator, **values)
        except ClockError as error:
            raise OSCILLATOR.locate_error(element, error) from error
    return oscillator


def parse_latency(context: Context, sensor: Element) -> Latency | None:
    """Return the latency of a sensor; None if it has none."""
    return _read_child(context, sensor, LATENCY_TAG, LATENCY)


def _read_child(context: Context, parent: Element, tag: str, binding: ElementBinding[Spec]) -> Spec | None:
    """Return the specification of a child; None if it is absent or, with a problem, invalid."""
    element = parent.find(tag)
    if element is not None:
        with context.collect_errors():
            return binding.read(context, element)
    return None


def _parse_grade(element: Element) -> Oscillator:
    name = element.get_attribute("grade")
    if "grade" not in element.attributes:
        return Oscillator()
    if name is None or name not in GRADES:
        raise invalid_choice(element, name or "", GRADES, attribute="grade")
    return GRADES[name].oscillator


def _parse_ageing(context: Context, child: Element) -> float:
    """Return an ageing (1/s). Raises `SdfError`."""
    context.check(child, _AGEING)
    value = parse_number(child, parent="navsense:oscillator")
    per = child.attributes.get("per", "second").strip()
    if per not in RATE_CONVERSIONS:
        raise invalid_choice(child, per, RATE_CONVERSIONS, parent="navsense:oscillator", attribute="per")
    return RATE_CONVERSIONS[per](value)


def _parse_temperature(
    context: Context, child: Element, signals: Mapping[str, TemperatureSignal]
) -> float | TemperatureSignal:
    """Return a temperature, as a number (K) or as a signal of the world. Raises `SdfError`."""
    context.check(child, _TEMPERATURE)
    if "signal" not in child.attributes:
        return parse_number(child, parent="navsense:oscillator")
    name = child.get_attribute("signal") or "empty"
    if child.text:
        raise invalid_value(child, child.text, "must not be combined with a signal", parent="navsense:oscillator")
    if name not in signals:
        allowed = f"must name a signal of the world: {', '.join(signals) or 'it has none'}"
        raise invalid_value(child, name, allowed, parent="navsense:oscillator", attribute="signal")
    return signals[name]
