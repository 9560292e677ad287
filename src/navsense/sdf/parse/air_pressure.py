"""`<air_pressure>`: the noise of the pressure, and the reference altitude.

Gazebo's sensor ignores `<reference_altitude>`. Here it acts as the SDF specification defines it.
"""

from __future__ import annotations

from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.parse.type_element import read_type_element
from navsense.sdf.xml_reader import Element
from navsense.sensors.air_pressure import AirPressure

AIR_PRESSURE = ElementBinding(AirPressure)


def parse(context: Context, type_element: Element | None, sensor_context: SensorContext) -> AirPressure:
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
