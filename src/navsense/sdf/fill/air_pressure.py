"""`<sensor type="air_pressure">`: the noise of the pressure, and how far above its place in the world it stands.

Gazebo's own sensor does not read `<reference_altitude>` from the file; it acts here, as the specification says.
"""

from __future__ import annotations

from navsense.sdf.context import Context, Place
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.fields import number_of
from navsense.sdf.fill.noise import channel_of
from navsense.sdf.read import Element
from navsense.sensors.air_pressure import AirPressure

AIR_PRESSURE = Place(read=frozenset(("reference_altitude", "pressure")))


def fill(context: Context, block: Element | None, mount: Mount) -> AirPressure:
    """Return the data sheet that an `<air_pressure>` block describes; without a block one without errors."""
    if block is None:
        return AirPressure()
    context.check(block, AIR_PRESSURE)
    altitude = number_of(context, block, "reference_altitude", 0.0)
    element = block.first("reference_altitude")
    if element is not None and altitude and mount.origin is not None and mount.origin.elevation:
        reason = f"comes on top of the world's <elevation> of {mount.origin.elevation:g} m"
        context.note("warning", f"<reference_altitude>: {element.text}", reason, element.where)
    return AirPressure(channel_of(context, block.first("pressure"), classic=mount.classic), altitude)
