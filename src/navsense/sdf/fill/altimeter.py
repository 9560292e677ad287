"""`<sensor type="altimeter">`: the noise of height and vertical velocity, and navsense's own reference.

<navsense:reference>12.5</navsense:reference>                       a height in the world, m
<navsense:reference>initial</navsense:reference>                    the sensor's height at the start
<navsense:reference period="60">initial</navsense:reference>        the same, taken anew every 60 s
"""

from __future__ import annotations

from navsense.inputs import decimal
from navsense.sdf import values
from navsense.sdf.context import Context, Place
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.noise import channel_of
from navsense.sdf.read import Element
from navsense.sdf.values import refusal
from navsense.sensors.altimeter import Altimeter, Zeroed

CHANNELS = ("vertical_position", "vertical_velocity")
"""In the order of the sheet."""

ALTIMETER = Place(read=frozenset((*CHANNELS, "navsense:reference")))
REFERENCE = Place(attributes=frozenset(("period",)))
INITIAL = "initial"


def fill(context: Context, block: Element | None, mount: Mount) -> Altimeter:
    """Return the data sheet that an `<altimeter>` block describes; without a block one without errors."""
    if block is None:
        return Altimeter(classic=mount.classic)
    context.check(block, ALTIMETER)
    position, velocity = (channel_of(context, block.first(tag), classic=mount.classic) for tag in CHANNELS)
    reference: float | Zeroed = 0.0
    child = block.first("navsense:reference")
    if child is not None:
        context.check(child, REFERENCE)
        with context.collecting():
            reference = _reference(child)
        if mount.classic:
            reason = "does not act under classic, where the reference is the sensor's height at the start"
            context.note("warning", f"<navsense:reference>: {child.text}", reason, child.where)
    return Altimeter(position, velocity, reference=reference, classic=mount.classic)


def _reference(element: Element) -> float | Zeroed:
    """Return the reference; raise `SdfError` for what is none."""
    period = values.attribute_number(element, "period", above=0.0)
    if element.text == INITIAL:
        return Zeroed() if period is None else Zeroed(period)
    height = decimal(element.text)
    if height is None:
        raise refusal(element, element.text or "empty", f"must be a height in metres, or {INITIAL}", parent="altimeter")
    if period is not None:
        allowed = "must be absent: a height that is given is not taken anew"
        raise refusal(element, f"{period:g}", allowed, attribute="period", remedy=f"write {INITIAL} for the height")
    return height
