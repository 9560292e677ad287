"""`<sensor type="imu">`: the noise of six axes, and what its orientation refers to.

    q_ref = yaw(-heading) T           ENU: T = 1;  NED: T = rpy(pi, 0, pi/2);  NWU: T = rpy(0, 0, pi/2)
    q_ref = custom_rpy                CUSTOM in parent_frame "world"
    q_ref = q_initial custom_rpy      CUSTOM otherwise: the sensor's own orientation at the start

q_ref takes coordinates of the reference frame to world coordinates. The world's x axis points `heading` from east
towards north, so east in the world is yaw(-heading) of it; Gazebo's IMU turns the other way than its own NavSat does.
Source: SDF 1.12 `imu.sdf`; gz-sensors' `ImuSensor`.
"""

from __future__ import annotations

import math

from navsense.pose import from_rpy, multiply, normalised
from navsense.sdf import values
from navsense.sdf.context import Context, Place
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.fields import flag_of
from navsense.sdf.fill.noise import axes_of
from navsense.sdf.places import LEAF
from navsense.sdf.read import Element
from navsense.sdf.values import refusal
from navsense.sensors.imu import Imu
from navsense.typing import Quaternion

IMU = Place(
    read=frozenset(("orientation_reference_frame", "enable_orientation", "angular_velocity", "linear_acceleration")),
    unsupported={"topic": "stands in <sensor> since SDF 1.7; move it there"},
    refused={"noise": "stands in each axis since SDF 1.6: <angular_velocity><x><noise> and so on"},
)

ORIENTATION_REFERENCE_FRAME = Place(
    read=frozenset(("localization", "custom_rpy")),
    unsupported={"grav_dir_x": "acts with GRAV_UP and GRAV_DOWN only, which are not supported"},
)

CUSTOM_RPY = Place(attributes=frozenset(("parent_frame",)))

TO_ENU: dict[str, Quaternion] = {
    "ENU": (1.0, 0.0, 0.0, 0.0),
    "NED": from_rpy(math.pi, 0.0, math.pi / 2.0),
    "NWU": from_rpy(0.0, 0.0, math.pi / 2.0),
}
"""Rotation that takes coordinates of a localization to ENU coordinates."""


def fill(context: Context, block: Element | None, mount: Mount) -> Imu:
    """Return the data sheet that an `<imu>` block describes; without a block one without errors."""
    if block is None:
        return Imu()
    context.check(block, IMU)
    gyro = axes_of(context, block.first("angular_velocity"), classic=mount.classic)
    accelerometer = axes_of(context, block.first("linear_acceleration"), classic=mount.classic)
    orientation = flag_of(context, block, "enable_orientation", default=True)
    reference = None
    with context.collecting():
        reference = _reference(context, block.first("orientation_reference_frame"), mount)
    return Imu(*gyro, *accelerometer, orientation=orientation, reference=reference)


def _reference(context: Context, element: Element | None, mount: Mount) -> Quaternion | None:
    """Return q_ref; None for the sensor's own orientation at the start."""
    if element is None:
        return None
    context.check(element, ORIENTATION_REFERENCE_FRAME)
    child = element.first("localization")
    if child is not None:
        context.check(child, LEAF)
    localization = child.text if child is not None else "CUSTOM"
    yaw = from_rpy(0.0, 0.0, -mount.heading)
    custom = element.first("custom_rpy")
    if localization == "CUSTOM":
        return None if custom is None else _custom(context, custom, mount)
    if localization in TO_ENU:
        if custom is not None:
            reason = f"acts with the localization CUSTOM only, not with {localization}"
            context.note("warning", "<orientation_reference_frame><custom_rpy>", reason, custom.where)
        return normalised(multiply(yaw, TO_ENU[localization]))
    allowed = f"must be one of CUSTOM, {', '.join(TO_ENU)}"
    if localization in ("GRAV_UP", "GRAV_DOWN"):
        allowed = f"is not supported: neither is it in Gazebo; {allowed}"
    raise refusal(child or element, localization, allowed, parent=element.tag)


def _custom(context: Context, element: Element, mount: Mount) -> Quaternion | None:
    context.check(element, CUSTOM_RPY)
    roll, pitch, turn = values.vector(element, parent="orientation_reference_frame")
    custom = from_rpy(roll, pitch, turn)
    parent = element.attribute("parent_frame")
    if parent == "world":
        return custom
    if parent is not None:
        allowed = 'must be "world", or absent for the sensor\'s own orientation at the start'
        raise refusal(element, parent, allowed, attribute="parent_frame")
    if (roll, pitch, turn) == (0.0, 0.0, 0.0):
        return None
    if mount.moved:
        allowed = "needs the sensor's orientation at the start, which a navsense:motion may change"
        raise refusal(element, element.text, allowed, remedy='write parent_frame="world"')
    reason = "is relative to how the file poses the sensor; it stays so where a run is given another motion"
    context.note("warning", f"<custom_rpy>: {element.text}", reason, element.where)
    return normalised(multiply(mount.rotation_ws, custom))
