"""`<navsat>`, in older files `<gps>`: the noise of position (m) and velocity (m/s)."""

from __future__ import annotations

from navsense.core.errors import SdfError
from navsense.noise.specification import Noise
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.parse.type_element import make_channel_parsers
from navsense.sdf.xml_reader import Element
from navsense.sensors.navsat import NO_ORIGIN, NavSat

SENSING = {tag: ElementBinding(NavSat, container=tag) for tag in ("position_sensing", "velocity_sensing")}
NAVSAT = ElementSchema(children=frozenset(SENSING))


def parse(context: Context, type_element: Element | None, sensor_context: SensorContext) -> NavSat:
    """Return the specification of a `<navsat>`; without it one without errors.

    Adds a problem if the world has no `<spherical_coordinates>`.
    """
    if sensor_context.origin is None:
        remedy = "give the world <spherical_coordinates> with latitude_deg, longitude_deg and elevation"
        what = '<sensor type="navsat">'
        context.add_problem(
            SdfError(what, sensor_context.name, where=sensor_context.where, allowed=NO_ORIGIN, remedy=remedy)
        )
    if type_element is None:
        return NavSat()
    context.check(type_element, NAVSAT)
    channels: dict[str, Noise] = {}
    for tag, binding in SENSING.items():
        sensing = context.find_child(type_element, tag, binding.schema)
        if sensing is not None:
            channels |= binding.read_fields(
                context, sensing, make_channel_parsers(binding, classic=sensor_context.classic)
            )
    return NavSat(**channels)
