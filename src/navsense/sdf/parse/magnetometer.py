"""`<sensor type="magnetometer">`: the noise of three axes, and navsense's own iron and wires.

<navsense:hard_iron>3e-6 -2e-6 4e-6</navsense:hard_iron>                  T, in the sensor's frame
<navsense:soft_iron>1.1 0 0  0 1 0  0 0 0.9</navsense:soft_iron>          a matrix, row by row
<navsense:motor_current>2e-7 0 -1e-7</navsense:motor_current>             T/A of the signal "motor_current"
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse._mount import Mount
from navsense.sdf.parse.children import parse_child_numbers
from navsense.sdf.parse.noise import parse_channel_noise
from navsense.sdf.xml_reader import PREFIX, Element
from navsense.sensors.magnetometer import Magnetometer
from navsense.validation import MAX_MAGNITUDE

IRON_FIELDS = ("hard_iron", "soft_iron", "motor_current")
MAGNETOMETER = ElementSchema(children=frozenset("xyz") | frozenset(f"{PREFIX}{name}" for name in IRON_FIELDS))


def parse(context: Context, block: Element | None, mount: Mount) -> Magnetometer:
    """Return the data sheet that a `<magnetometer>` block describes; without a block one without errors."""
    if block is None:
        return Magnetometer()
    context.check(block, MAGNETOMETER)
    x, y, z = (parse_channel_noise(context, block.find(axis), classic=mount.classic) for axis in "xyz")
    sheet = Magnetometer(x, y, z)
    iron: dict[str, Any] = {
        name: parse_child_numbers(context, block, f"{PREFIX}{name}", getattr(sheet, name), below=MAX_MAGNITUDE)
        for name in IRON_FIELDS
    }
    return replace(sheet, **iron)
