"""`<altimeter>`: the noise of height and vertical velocity, and navsense's own reference.

    <navsense:reference>12.5</navsense:reference>                       a height in the world, m
    <navsense:reference>initial</navsense:reference>                    the sensor's height at the start
    <navsense:reference period="60">initial</navsense:reference>        the same, updated every 60 s

The noise of a channel is a field of the specification, as of any sensor (`type_element`).
"""

from __future__ import annotations

from navsense.core.text import parse_decimal
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, make_schema
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.parse.type_element import read_type_element
from navsense.sdf.values import invalid_value, parse_attribute_number
from navsense.sdf.xml_reader import Element
from navsense.sensors.altimeter import Altimeter, ZeroReference

ALTIMETER = ElementBinding(Altimeter)
REFERENCE = make_schema(attributes="period")
INITIAL = "initial"


def parse(context: Context, type_element: Element | None, sensor_context: SensorContext) -> Altimeter:
    """Return the specification of an `<altimeter>`; without it one without errors."""
    child = type_element.find("navsense:reference") if type_element else None
    if child is not None and sensor_context.classic:
        reason = "has no effect under classic, where the reference is the sensor's height at the start"
        context.add_note("warning", f"<navsense:reference>: {child.text}", reason, child.where)
    parsers = {"reference": _parse_reference}
    return read_type_element(context, type_element, ALTIMETER, sensor_context, parsers, classic=sensor_context.classic)


def _parse_reference(context: Context, element: Element) -> float | ZeroReference:
    """Return the height (m) of the reference, or the initial height. Raises `SdfError`."""
    context.check(element, REFERENCE)
    period = parse_attribute_number(element, "period", above=0.0)
    if element.text == INITIAL:
        return ZeroReference() if period is None else ZeroReference(period)
    height = parse_decimal(element.text)
    if height is None:
        allowed = f"must be a height in metres, or {INITIAL}"
        raise invalid_value(element, element.text or "empty", allowed, parent="altimeter")
    if period is not None:
        allowed, remedy = "must be absent for a constant height", f"write {INITIAL} for the height"
        raise invalid_value(element, f"{period:g}", allowed, attribute="period", remedy=remedy)
    return height
