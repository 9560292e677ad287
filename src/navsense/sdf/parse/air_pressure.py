"""`<sensor type="air_pressure">`: the noise of the pressure, and the reference altitude.

Gazebo's sensor ignores `<reference_altitude>`. Here it acts as the SDF specification defines it.
"""

from __future__ import annotations

from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.parse.mount import Mount
from navsense.sdf.parse.noise import read_sensor_values
from navsense.sdf.xml_reader import Element
from navsense.sensors.air_pressure import AirPressure

AIR_PRESSURE = ElementBinding(AirPressure)


def parse(context: Context, block: Element | None, mount: Mount) -> AirPressure:
    """Return the specification of an `<air_pressure>` block; without a block one without errors."""
    if block is None:
        return AirPressure()
    context.check(block, AIR_PRESSURE.schema)
    values = read_sensor_values(context, block, AIR_PRESSURE, classic=mount.classic)
    element = block.find("reference_altitude")
    if element is not None and values.get("reference_altitude") and mount.origin is not None and mount.origin.elevation:
        reason = f"is added to the world's <elevation> of {mount.origin.elevation:g} m"
        context.add_note("warning", f"<reference_altitude>: {element.text}", reason, element.where)
    return AirPressure(**values)
