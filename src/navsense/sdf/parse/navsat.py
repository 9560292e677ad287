"""`<sensor type="navsat">`, in older files `gps`: the noise of position (m) and velocity (m/s)."""

from __future__ import annotations

from navsense.errors import SdfError
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse._mount import Mount
from navsense.sdf.parse.noise import parse_channel_noise
from navsense.sdf.xml_reader import Element
from navsense.sensors.navsat import NO_ORIGIN, NavSat

SENSING_TAGS, AXIS_TAGS = ("position_sensing", "velocity_sensing"), ("horizontal", "vertical")
"""In the order of the sheet: both axes of each part."""

NAVSAT = ElementSchema(children=frozenset(SENSING_TAGS))
SENSING = ElementSchema(children=frozenset(AXIS_TAGS))


def parse(context: Context, block: Element | None, mount: Mount) -> NavSat:
    """Return the data sheet that a `<navsat>` block describes; without a block one without errors.

    Keeps a problem where the world has no `<spherical_coordinates>`.
    """
    if mount.origin is None:
        remedy = "give the world <spherical_coordinates> with latitude_deg, longitude_deg and elevation"
        what = '<sensor type="navsat">'
        context.add_problem(SdfError(what, mount.name, where=mount.where, allowed=NO_ORIGIN, remedy=remedy))
    if block is None:
        return NavSat()
    context.check(block, NAVSAT)
    noises = []
    for tag in SENSING_TAGS:
        part = block.find(tag)
        if part is not None:
            context.check(part, SENSING)
        for axis in AXIS_TAGS:
            element = part.find(axis) if part is not None else None
            noises.append(parse_channel_noise(context, element, classic=mount.classic))
    return NavSat(*noises)
