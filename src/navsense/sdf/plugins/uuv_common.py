"""What sensors of the UUV Simulator have in common, `ROSBasePlugin` and `ROSBaseModelPlugin`.

    <link_name>, <robot_namespace>, <sensor_topic>, <update_rate>       Hz; default 30
    <noise_amplitude>1</noise_amplitude>                        factor of all deviations and densities of the plug-in
    <enable_local_ned_frame>true</enable_local_ned_frame>       true, the default: axes rotated by pi about x
    <is_on>true</is_on>

In the code of the plug-ins the default of `<noise_amplitude>` is 0, so that an IMU of the published macros has no
noise in spite of its figures. navsense uses the figures without the element. Under classic it follows the code. An
amplitude in the file applies with any fidelity.
"""

from __future__ import annotations

from navsense.core.pose import Pose
from navsense.core.typing import Quaternion
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_flag, parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.xml_reader import Element

NED: Quaternion = (0.0, 1.0, 0.0, 0.0)
"""Rotation by pi about x: forward, left, up to forward, right, down."""

NED_SUFFIX = "_ned"

FIXED_MESSAGES = "the message types do not depend on the world file"
"""Reason why `<enable_gazebo_messages>` is not supported."""

COMMON_TAGS = "robotNamespace noise_amplitude enable_local_ned_frame"
"""Elements that the parsers of this module read, and `<robotNamespace>`."""


def parse_ned_pose(context: Context, element: Element) -> tuple[Pose, str]:
    """Return the pose of the sensor in its link, and the suffix of its frame after the name of the link."""
    if parse_child_flag(context, element, "enable_local_ned_frame", default=True):
        return Pose(rotation=NED), NED_SUFFIX
    return Pose(), ""


def parse_amplitude(context: Context, element: Element, sensor_context: SensorContext) -> float:
    """Return the factor of the deviations and densities, with a warning if the plug-in has no noise."""
    child = element.find("noise_amplitude")
    if child is None:
        reason = "is absent: its default in the plug-in is 0, no noise; "
        reason += "so it is under classic" if sensor_context.classic else "the figures of the plug-in are used"
        context.add_note("warning", f"<plugin><noise_amplitude>: {sensor_context.name}", reason, element.where)
        return 0.0 if sensor_context.classic else 1.0
    amplitude = parse_child_number(context, element, "noise_amplitude", 1.0, minimum=0.0)
    if amplitude == 0.0:
        reason = "multiplies the noise of the plug-in: the sensor has no noise"
        context.add_note("warning", f"<plugin><noise_amplitude>: {child.text}", reason, child.where)
    return amplitude
