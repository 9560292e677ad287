"""`<sensor type="magnetometer">`."""

from __future__ import annotations

from navsense.sdf.context import Context
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.noise import axes_of
from navsense.sdf.read import Element
from navsense.sensors.magnetometer import Magnetometer


def fill(context: Context, block: Element | None, mount: Mount) -> Magnetometer:
    """Return the data sheet that a `<magnetometer>` block describes; without a block one without errors."""
    x, y, z = axes_of(context, block, classic=mount.classic)
    return Magnetometer(x, y, z)
