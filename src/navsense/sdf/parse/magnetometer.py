"""`<sensor type="magnetometer">`: the noise of three axes, and elements of navsense for iron and currents.

<navsense:hard_iron>3e-6 -2e-6 4e-6</navsense:hard_iron>                  T, in the sensor's frame
<navsense:soft_iron>1.1 0 0  0 1 0  0 0 0.9</navsense:soft_iron>          a matrix, row by row
<navsense:motor_current>2e-7 0 -1e-7</navsense:motor_current>             T/A of the signal "motor_current"
"""

from __future__ import annotations

from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.parse.mount import Mount
from navsense.sdf.parse.noise import read_sensor_values
from navsense.sdf.xml_reader import Element
from navsense.sensors.magnetometer import Magnetometer

MAGNETOMETER = ElementBinding(Magnetometer)


def parse(context: Context, block: Element | None, mount: Mount) -> Magnetometer:
    """Return the specification of a `<magnetometer>` block; without a block one without errors."""
    if block is None:
        return Magnetometer()
    context.check(block, MAGNETOMETER.schema)
    return Magnetometer(**read_sensor_values(context, block, MAGNETOMETER, classic=mount.classic))
