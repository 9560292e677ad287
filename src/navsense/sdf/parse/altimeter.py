"""`<sensor type="altimeter">`: the noise of height and vertical velocity, and navsense's own reference.

<navsense:reference>12.5</navsense:reference>                       a height in the world, m
<navsense:reference>initial</navsense:reference>                    the sensor's height at the start
<navsense:reference period="60">initial</navsense:reference>        the same, updated every 60 s
"""

from __future__ import annotations

from navsense.core.inputs import parse_decimal
from navsense.sdf import values
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse.mount import Mount
from navsense.sdf.parse.noise import read_sensor_values
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element
from navsense.sensors.altimeter import Altimeter, ZeroReference

ALTIMETER = ElementBinding(Altimeter)
REFERENCE = ElementSchema(attributes=frozenset(("period",)))
INITIAL = "initial"


def parse(context: Context, block: Element | None, mount: Mount) -> Altimeter:
    """Return the specification of an `<altimeter>` block; without a block one without errors."""
    if block is None:
        return Altimeter(classic=mount.classic)
    context.check(block, ALTIMETER.schema)
    parsers = {"reference": _parse_reference}
    values = read_sensor_values(context, block, ALTIMETER, classic=mount.classic, parsers=parsers)
    child = block.find("navsense:reference")
    if child is not None and mount.classic:
        reason = "has no effect under classic, where the reference is the sensor's height at the start"
        context.add_note("warning", f"<navsense:reference>: {child.text}", reason, child.where)
    return Altimeter(**values, classic=mount.classic)


def _parse_reference(context: Context, element: Element) -> float | ZeroReference:
    """Return the reference; 0 if it is invalid."""
    context.check(element, REFERENCE)
    with context.collect_errors():
        return _parse_height(element)
    return 0.0


def _parse_height(element: Element) -> float | ZeroReference:
    """Return the height (m) of the reference, or `INITIAL`. Raises `SdfError`."""
    period = values.parse_attribute_number(element, "period", above=0.0)
    if element.text == INITIAL:
        return ZeroReference() if period is None else ZeroReference(period)
    height = parse_decimal(element.text)
    if height is None:
        raise invalid_value(
            element, element.text or "empty", f"must be a height in metres, or {INITIAL}", parent="altimeter"
        )
    if period is not None:
        allowed = "must be absent for a constant height"
        raise invalid_value(
            element, f"{period:g}", allowed, attribute="period", remedy=f"write {INITIAL} for the height"
        )
    return height
