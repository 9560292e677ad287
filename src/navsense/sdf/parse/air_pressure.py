"""`<sensor type="air_pressure">`: the noise of the pressure, and how far above its place in the world it stands.

Gazebo's own sensor does not read `<reference_altitude>` from the file; it acts here, as the specification says.
"""

from __future__ import annotations

from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse._mount import Mount
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.noise import parse_channel_noise
from navsense.sdf.xml_reader import Element
from navsense.sensors.air_pressure import AirPressure

AIR_PRESSURE = ElementSchema(children=frozenset(("reference_altitude", "pressure")))


def parse(context: Context, block: Element | None, mount: Mount) -> AirPressure:
    """Return the data sheet that an `<air_pressure>` block describes; without a block one without errors."""
    if block is None:
        return AirPressure()
    context.check(block, AIR_PRESSURE)
    altitude = parse_child_number(context, block, "reference_altitude", 0.0)
    element = block.find("reference_altitude")
    if element is not None and altitude and mount.origin is not None and mount.origin.elevation:
        reason = f"comes on top of the world's <elevation> of {mount.origin.elevation:g} m"
        context.add_note("warning", f"<reference_altitude>: {element.text}", reason, element.where)
    return AirPressure(parse_channel_noise(context, block.find("pressure"), classic=mount.classic), altitude)
