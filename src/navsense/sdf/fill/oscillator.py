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

from navsense.clock import GRADES, Discipline, Oscillator, Temperature, per_day, per_month, per_year
from navsense.errors import ClockError, SdfError
from navsense.sdf.context import Context, Place
from navsense.sdf.fill.fields import number_of
from navsense.sdf.places import DISCIPLINE, LEAF, OSCILLATOR
from navsense.sdf.read import Element
from navsense.sdf.values import number, refusal

NEVER = "inf"
ENDLESS = frozenset(("step_threshold", "until"))
"""Fields of `Discipline` that may be infinite."""

PER: Mapping[str, Callable[[float], float]] = {
    "second": float,
    "day": per_day,
    "month": per_month,
    "year": per_year,
}
"""Attribute `per` of an ageing -> what turns it into one a second."""

_PARENT = "navsense:oscillator"
_AGEING = Place(attributes=frozenset(("per",)))
_FIGURES = {"ageing": _AGEING, "ageing_stddev": _AGEING, "temperature": Place(attributes=frozenset(("signal",)))}


def oscillator_of(context: Context, clock: Element, signals: Mapping[str, Temperature]) -> Oscillator | None:
    """Return the oscillator of a clock, as far as it can be read; None where it has none."""
    element = clock.first("navsense:oscillator")
    if element is None:
        return None
    context.check(element, OSCILLATOR)
    sheet = Oscillator()
    with context.collecting():
        sheet = _grade(element)
        given: dict[str, Any] = {}
        for field in fields(Oscillator):
            child = element.first(field.name)
            if child is not None:
                with context.collecting():
                    given[field.name] = _figure(context, child, signals)
        try:
            return replace(sheet, **given)
        except ClockError as error:
            raise at(element, error) from error
    return sheet


def discipline_of(context: Context, clock: Element) -> Discipline | None:
    """Return the discipline of a clock; None where nothing corrects it."""
    element = clock.first("navsense:discipline")
    if element is None:
        return None
    context.check(element, DISCIPLINE)
    names = [field.name for field in fields(Discipline) if element.first(field.name) is not None]
    before = context.found
    given = {name: _correction(context, element, name) for name in names}
    with context.collecting():
        try:
            return Discipline(**given) if context.found == before else None
        except ClockError as error:
            raise at(element, error) from error
    return None


def _correction(context: Context, element: Element, name: str) -> float:
    """Return the value of a field of `Discipline`."""
    child = element.first(name)
    if child is not None and child.text == NEVER and name in ENDLESS:
        context.check(child, LEAF)
        return math.inf
    return number_of(context, element, name, 0.0)


def at(element: Element, error: ClockError) -> SdfError:
    """Return a clock's error as one of the SDF file, at the line of the figure that it names."""
    child = element.first(error.what)
    if child is None:
        what = f"<{element.tag}> {error.what}"
        return SdfError(what, error.value, where=element.where, allowed=error.allowed, remedy=error.remedy)
    return refusal(child, error.value, error.allowed, parent=element.tag, remedy=error.remedy)


def _grade(element: Element) -> Oscillator:
    name = element.attribute("grade")
    if "grade" not in element.attributes:
        return Oscillator()
    if name is None or name not in GRADES:
        raise refusal(element, name or "empty", f"must be one of {', '.join(GRADES)}", attribute="grade")
    return GRADES[name].oscillator


def _figure(context: Context, child: Element, signals: Mapping[str, Temperature]) -> float | Temperature:
    """Return the value of a field of `Oscillator`."""
    context.check(child, _FIGURES.get(child.tag, LEAF))
    if "signal" in child.attributes and child.tag == "temperature":
        return _signal(child, signals)
    value = number(child, parent=_PARENT)
    per = child.attributes.get("per", "second").strip()
    if per not in PER:
        raise refusal(child, per, f"must be one of {', '.join(PER)}", parent=_PARENT, attribute="per")
    return PER[per](value)


def _signal(child: Element, signals: Mapping[str, Temperature]) -> Temperature:
    name = child.attribute("signal") or "empty"
    if child.text:
        raise refusal(child, child.text, "must not stand beside a signal", parent=_PARENT)
    if name not in signals:
        allowed = f"must name a signal of the world: {', '.join(signals) or 'it has none'}"
        raise refusal(child, name, allowed, parent=_PARENT, attribute="signal")
    return signals[name]
