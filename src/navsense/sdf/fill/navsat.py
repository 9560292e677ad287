"""`<sensor type="navsat">`, in older files `gps`: the noise of position (m) and velocity (m/s)."""

from __future__ import annotations

from navsense.errors import SdfError
from navsense.sdf.context import Context, Place
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.noise import channel_of
from navsense.sdf.read import Element
from navsense.sensors.navsat import NO_ORIGIN, NavSat

PARTS, AXES = ("position_sensing", "velocity_sensing"), ("horizontal", "vertical")
"""In the order of the sheet: both axes of each part."""

NAVSAT = Place(read=frozenset(PARTS))
SENSING = Place(read=frozenset(AXES))


def fill(context: Context, block: Element | None, mount: Mount) -> NavSat:
    """Return the data sheet that a `<navsat>` block describes; without a block one without errors.

    Keeps a problem where the world has no `<spherical_coordinates>`.
    """
    if mount.origin is None:
        remedy = "give the world <spherical_coordinates> with latitude_deg, longitude_deg and elevation"
        what = '<sensor type="navsat">'
        context.problem(SdfError(what, mount.name, where=mount.where, allowed=NO_ORIGIN, remedy=remedy))
    if block is None:
        return NavSat()
    context.check(block, NAVSAT)
    noises = []
    for tag in PARTS:
        part = block.first(tag)
        if part is not None:
            context.check(part, SENSING)
        for axis in AXES:
            element = part.first(axis) if part is not None else None
            noises.append(channel_of(context, element, classic=mount.classic))
    return NavSat(*noises)
