"""What sensors of the UUV Simulator have in common, `ROSBasePlugin` and `ROSBaseModelPlugin`.

    <link_name>, <robot_namespace>, <sensor_topic>, <update_rate>       Hz; default 30
    <noise_amplitude>1</noise_amplitude>                        factor of all deviations and densities of the plug-in
    <enable_local_ned_frame>true</enable_local_ned_frame>       true, the default: axes rotated by pi about x
    <is_on>true</is_on>

In the code of the plug-ins the default of `<noise_amplitude>` is 0, so an IMU of the published macros has no noise.
Without the element, navsense uses the figures of the plug-in. Under classic it follows the code. An amplitude in the
file applies with any fidelity.
"""

from __future__ import annotations

from navsense.core.text import parse_decimal
from navsense.sdf.context import Context
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import UUV_TAGS
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor

FIXED_MESSAGES = "the message types do not depend on the world file"
"""Reason why `<enable_gazebo_messages>` is not supported."""

AMPLITUDE = "noise_amplitude"

MODEL_TAGS = UUV_TAGS._replace(ned="enable_local_ned_frame")


def refine_by_fidelity(
    context: Context, plugin: Element, spec: Sensor, sensor_context: SensorContext, noiseless: Sensor
) -> Sensor:
    """Return a specification, or `noiseless` under classic without an amplitude.

    Adds a warning if the plug-in has no noise.
    """
    child = plugin.find(AMPLITUDE)
    if child is None:
        reason = "is absent: its default in the plug-in is 0, no noise; "
        reason += "so it is under classic" if sensor_context.classic else "the figures of the plug-in are used"
        context.add_note("warning", f"<plugin><{AMPLITUDE}>: {sensor_context.name}", reason, plugin.where)
        return noiseless if sensor_context.classic else spec
    if parse_decimal(child.text) == 0.0:
        reason = "multiplies the noise of the plug-in: the sensor has no noise"
        context.add_note("warning", f"<plugin><{AMPLITUDE}>: {child.text}", reason, child.where)
    return spec
