"""Type elements with the noise of channels and few other values: altimeter, air pressure, NavSat.

`<sensor type="altimeter">`: the noise of height and vertical velocity, and navsense's own reference.

    <navsense:reference>12.5</navsense:reference>                       a height in the world, m
    <navsense:reference>initial</navsense:reference>                    the sensor's height at the start
    <navsense:reference period="60">initial</navsense:reference>        the same, updated every 60 s

`<sensor type="air_pressure">`: the noise of the pressure, and the reference altitude. Gazebo's sensor ignores
`<reference_altitude>`. Here it acts as the SDF specification defines it.

`<sensor type="navsat">`, in older files `gps`: the noise of position (m) and velocity (m/s).
"""

from __future__ import annotations

from navsense.core.errors import SdfError
from navsense.core.text import parse_decimal
from navsense.noise.specification import Noise
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, ElementSchema, make_schema
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.parse.type_element import make_channel_parsers, read_type_element
from navsense.sdf.values import invalid_value, parse_attribute_number
from navsense.sdf.xml_reader import Element
from navsense.sensors.air_pressure import AirPressure
from navsense.sensors.altimeter import Altimeter, ZeroReference
from navsense.sensors.navsat import NO_ORIGIN, NavSat

ALTIMETER = ElementBinding(Altimeter)
REFERENCE = make_schema(attributes="period")
INITIAL = "initial"
AIR_PRESSURE = ElementBinding(AirPressure)
SENSING = {tag: ElementBinding(NavSat, parent=tag) for tag in ("position_sensing", "velocity_sensing")}
NAVSAT = ElementSchema(children=frozenset(SENSING))


def parse_altimeter(context: Context, type_element: Element | None, sensor_context: SensorContext) -> Altimeter:
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


def parse_air_pressure(context: Context, type_element: Element | None, sensor_context: SensorContext) -> AirPressure:
    """Return the specification of an `<air_pressure>`; without it one without errors."""
    spec = read_type_element(context, type_element, AIR_PRESSURE, sensor_context)
    element = type_element.find("reference_altitude") if type_element else None
    if (
        element is not None
        and spec.reference_altitude
        and sensor_context.origin is not None
        and sensor_context.origin.elevation
    ):
        reason = f"is added to the world's <elevation> of {sensor_context.origin.elevation:g} m"
        context.add_note("warning", f"<reference_altitude>: {element.text}", reason, element.where)
    return spec


def parse_navsat(context: Context, type_element: Element | None, sensor_context: SensorContext) -> NavSat:
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
