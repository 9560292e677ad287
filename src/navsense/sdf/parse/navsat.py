"""`<sensor type="navsat">`, in older files `gps`: the noise of position (m) and velocity (m/s)."""

from __future__ import annotations

from navsense.core.errors import SdfError
from navsense.noise.channel import Noise
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse.mount import Mount
from navsense.sdf.parse.noise import read_sensor_values
from navsense.sdf.xml_reader import Element
from navsense.sensors.navsat import NO_ORIGIN, NavSat

SENSING = {tag: ElementBinding(NavSat, parent=tag) for tag in ("position_sensing", "velocity_sensing")}
NAVSAT = ElementSchema(children=frozenset(SENSING))


def parse(context: Context, block: Element | None, mount: Mount) -> NavSat:
    """Return the specification of a `<navsat>` block; without a block one without errors.

    Adds a problem if the world has no `<spherical_coordinates>`.
    """
    if mount.origin is None:
        remedy = "give the world <spherical_coordinates> with latitude_deg, longitude_deg and elevation"
        what = '<sensor type="navsat">'
        context.add_problem(SdfError(what, mount.name, where=mount.where, allowed=NO_ORIGIN, remedy=remedy))
    if block is None:
        return NavSat()
    context.check(block, NAVSAT)
    values: dict[str, Noise] = {}
    for tag, binding in SENSING.items():
        part = block.find(tag)
        if part is not None:
            context.check(part, binding.schema)
            values |= read_sensor_values(context, part, binding, classic=mount.classic)
    return NavSat(**values)
