"""`<navsense:oscillator>` and `<navsense:discipline>` in a clock: fields of `Oscillator` and `Discipline`, in SI units.

    <navsense:oscillator grade="TCXO">                 what stands inside replaces the grade's figure
      <frequency>2e-6</frequency>
      <ageing per="year">1e-6</ageing>                 per second without the attribute; day, month (of 30 days), year
      <temperature signal="cabin"/>                    or a number of kelvin
    </navsense:oscillator>
    <navsense:discipline><interval>1</interval></navsense:discipline>

A clock that must never be stepped has a step_threshold of inf; `until` may be inf too, which it is where it is absent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from navsense.clock import GRADES, Discipline, Oscillator, TemperatureSignal, per_day, per_month, per_year
from navsense.errors import ClockError, SdfError
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.schema import DISCIPLINE, LEAF, OSCILLATOR
from navsense.sdf.values import invalid_value, parse_number
from navsense.sdf.xml_reader import Element

INFINITE = "inf"
INFINITE_FIELDS = frozenset(("step_threshold", "until"))
"""Fields of `Discipline` that may be infinite."""

RATE_CONVERSIONS: Mapping[str, Callable[[float], float]] = {
    "second": float,
    "day": per_day,
    "month": per_month,
    "year": per_year,
}
"""Attribute `per` of an ageing -> what turns it into one a second."""

_PARENT = "navsense:oscillator"
_AGEING_SCHEMA = ElementSchema(attributes=frozenset(("per",)))
_FIELD_SCHEMAS = {
    "ageing": _AGEING_SCHEMA,
    "ageing_stddev": _AGEING_SCHEMA,
    "temperature": ElementSchema(attributes=frozenset(("signal",))),
}


def parse_oscillator(context: Context, clock: Element, signals: Mapping[str, TemperatureSignal]) -> Oscillator | None:
    """Return the oscillator of a clock, as far as it can be read; None where it has none."""
    element = clock.find("navsense:oscillator")
    if element is None:
        return None
    context.check(element, OSCILLATOR)
    sheet = Oscillator()
    with context.collect_errors():
        sheet = _parse_grade(element)
        given: dict[str, Any] = {}
        for field in fields(Oscillator):
            child = element.find(field.name)
            if child is not None:
                with context.collect_errors():
                    given[field.name] = _parse_oscillator_field(context, child, signals)
        try:
            return replace(sheet, **given)
        except ClockError as error:
            raise clock_error_at(element, error) from error
    return sheet


def parse_discipline(context: Context, clock: Element) -> Discipline | None:
    """Return the discipline of a clock; None where nothing corrects it."""
    element = clock.find("navsense:discipline")
    if element is None:
        return None
    context.check(element, DISCIPLINE)
    names = [field.name for field in fields(Discipline) if element.find(field.name) is not None]
    before = context.problem_count
    given = {name: _parse_discipline_field(context, element, name) for name in names}
    with context.collect_errors():
        try:
            return Discipline(**given) if context.problem_count == before else None
        except ClockError as error:
            raise clock_error_at(element, error) from error
    return None


def _parse_discipline_field(context: Context, element: Element, name: str) -> float:
    """Return the value of a field of `Discipline`."""
    child = element.find(name)
    if child is not None and child.text == INFINITE and name in INFINITE_FIELDS:
        context.check(child, LEAF)
        return math.inf
    return parse_child_number(context, element, name, 0.0)


def clock_error_at(element: Element, error: ClockError) -> SdfError:
    """Return a clock's error as one of the SDF file, at the line of the figure that it names."""
    child = element.find(error.what)
    if child is None:
        what = f"<{element.tag}> {error.what}"
        return SdfError(what, error.value, where=element.where, allowed=error.allowed, remedy=error.remedy)
    return invalid_value(child, error.value, error.allowed, parent=element.tag, remedy=error.remedy)


def _parse_grade(element: Element) -> Oscillator:
    name = element.get_attribute("grade")
    if "grade" not in element.attributes:
        return Oscillator()
    if name is None or name not in GRADES:
        raise invalid_value(element, name or "empty", f"must be one of {', '.join(GRADES)}", attribute="grade")
    return GRADES[name].oscillator


def _parse_oscillator_field(
    context: Context, child: Element, signals: Mapping[str, TemperatureSignal]
) -> float | TemperatureSignal:
    """Return the value of a field of `Oscillator`."""
    context.check(child, _FIELD_SCHEMAS.get(child.tag, LEAF))
    if "signal" in child.attributes and child.tag == "temperature":
        return _find_signal(child, signals)
    value = parse_number(child, parent=_PARENT)
    per = child.attributes.get("per", "second").strip()
    if per not in RATE_CONVERSIONS:
        raise invalid_value(
            child, per, f"must be one of {', '.join(RATE_CONVERSIONS)}", parent=_PARENT, attribute="per"
        )
    return RATE_CONVERSIONS[per](value)


def _find_signal(child: Element, signals: Mapping[str, TemperatureSignal]) -> TemperatureSignal:
    name = child.get_attribute("signal") or "empty"
    if child.text:
        raise invalid_value(child, child.text, "must not stand beside a signal", parent=_PARENT)
    if name not in signals:
        allowed = f"must name a signal of the world: {', '.join(signals) or 'it has none'}"
        raise invalid_value(child, name, allowed, parent=_PARENT, attribute="signal")
    return signals[name]
