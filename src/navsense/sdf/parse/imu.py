"""`<sensor type="imu">`: the noise of six axes, the reference of the orientation, and elements of navsense.

    <navsense:averaged>true</navsense:averaged>                               means over sample intervals
    <navsense:bandwidth>47</navsense:bandwidth>                               Hz
    <navsense:vibration>                                                      one element per line of the spectrum
      <frequency>130</frequency> <phase>0</phase>                             Hz, rad
      <linear_acceleration>1 2 3</linear_acceleration>                        m/s^2, amplitudes by axis
      <angular_velocity>0.1 0 0</angular_velocity>                            rad/s
    </navsense:vibration>
    <navsense:angular_velocity_misalignment>0.01 0 0 0 0 0</...>              rad: xy xz yx yz zx zy
    <navsense:linear_acceleration_misalignment>0 0 0 0 0 0.01</...>
    <navsense:g_sensitivity>1e-4 0 0  0 1e-4 0  0 0 1e-4</...>                rad/s per m/s^2, row by row
    <navsense:earth_rotation>true</navsense:earth_rotation>                   requires <spherical_coordinates>

The references of the orientation:

    q_ref = yaw(-heading) T           ENU: T = 1;  NED: T = rpy(pi, 0, pi/2);  NWU: T = rpy(0, 0, pi/2)
    q_ref = custom_rpy                CUSTOM in parent_frame "world"
    q_ref = q_initial custom_rpy      CUSTOM otherwise: the initial orientation of the sensor, or of the link that
                                      parent_frame names

q_ref rotates coordinates of the reference frame to world coordinates. The world's x axis points `heading` from east
towards north, so east in the world is yaw(-heading) of it. Gazebo's IMU rotates in the opposite sense to Gazebo's
NavSat.
Source: SDF 1.12 `imu.sdf`; gz-sensors' `ImuSensor`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from navsense.core.errors import SdfError
from navsense.core.pose import from_rpy, multiply, normalize
from navsense.core.typing import Quaternion
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, make_schema
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.parse.type_element import make_channel_parsers
from navsense.sdf.values import invalid_value, parse_vector
from navsense.sdf.xml_reader import Element
from navsense.sensors import Imu, Vibration
from navsense.sensors.imu import NO_ORIGIN

AXES = {tag: ElementBinding(Imu, container=tag) for tag in ("angular_velocity", "linear_acceleration")}
IMU = ElementBinding(
    Imu,
    other_children=AXES,
    repeatable=("navsense:vibration",),
    unsupported={"topic": "moved to <sensor> in SDF 1.7; move it there"},
    forbidden={"noise": "moved to each axis in SDF 1.6: <angular_velocity><x><noise>, ..."},
)

ORIENTATION_REFERENCE_FRAME = make_schema(
    "localization custom_rpy",
    unsupported={"grav_dir_x": "has an effect with GRAV_UP and GRAV_DOWN only, which are not supported"},
)

VIBRATION = ElementBinding(Vibration)

CUSTOM_RPY = make_schema(attributes="parent_frame")

ENU_ROTATIONS: dict[str, Quaternion] = {
    "ENU": (1.0, 0.0, 0.0, 0.0),
    "NED": from_rpy(math.pi, 0.0, math.pi / 2.0),
    "NWU": from_rpy(0.0, 0.0, math.pi / 2.0),
}
"""Rotation from the coordinates of a localization to ENU coordinates."""


def parse(context: Context, type_element: Element | None, sensor_context: SensorContext) -> Imu:
    """Return the specification of an `<imu>`; without it one without errors."""
    if type_element is None:
        return Imu()
    context.check(type_element, IMU.schema)
    fields: dict[str, Any] = {}
    for tag, binding in AXES.items():
        axes = context.find_child(type_element, tag, binding.schema)
        if axes is not None:
            fields |= binding.read_fields(context, axes, make_channel_parsers(binding, classic=sensor_context.classic))
    fields |= IMU.read_fields(
        context, type_element, {"reference": partial(_parse_reference, sensor_context=sensor_context)}
    )
    vibration: list[Vibration] = []
    for child in type_element.find_all("navsense:vibration"):
        with context.collect_errors():
            if child.find("frequency") is None:
                raise invalid_value(child, "missing", "requires a <frequency> in Hz")
            vibration.append(VIBRATION.read(context, child))
    _check_earth_rotation(context, type_element, sensor_context, fields)
    return Imu(**fields, vibration=tuple(vibration))


def _check_earth_rotation(
    context: Context, type_element: Element, sensor_context: SensorContext, fields: dict[str, Any]
) -> None:
    """Add a problem if the earth rotates in a world without a place on earth."""
    child = type_element.find("navsense:earth_rotation")
    if not fields.get("earth_rotation") or child is None or sensor_context.origin is not None:
        return
    remedy = "give the world <spherical_coordinates> with latitude_deg, longitude_deg and elevation"
    what = f"<{type_element.tag}><{child.tag}>"
    context.add_problem(SdfError(what, child.text, where=child.where, allowed=NO_ORIGIN, remedy=remedy))
    fields["earth_rotation"] = False


def _parse_reference(context: Context, element: Element, sensor_context: SensorContext) -> Quaternion | None:
    """Return q_ref; None for the initial orientation of the sensor. Raises `SdfError`."""
    context.check(element, ORIENTATION_REFERENCE_FRAME)
    child = context.find_child(element, "localization")
    localization = child.text if child is not None else "CUSTOM"
    yaw = from_rpy(0.0, 0.0, -sensor_context.heading)
    custom = element.find("custom_rpy")
    if localization == "CUSTOM":
        return None if custom is None else _parse_custom_rpy(context, custom, sensor_context)
    if localization in ENU_ROTATIONS:
        if custom is not None:
            reason = f"has an effect with the localization CUSTOM only, not with {localization}"
            context.add_note("warning", "<orientation_reference_frame><custom_rpy>", reason, custom.where)
        return normalize(multiply(yaw, ENU_ROTATIONS[localization]))
    allowed = f"must be one of CUSTOM, {', '.join(ENU_ROTATIONS)}"
    if localization in ("GRAV_UP", "GRAV_DOWN"):
        allowed = f"is not supported, as in Gazebo; {allowed}"
    raise invalid_value(child or element, localization, allowed, parent=element.tag)


def _parse_custom_rpy(context: Context, element: Element, sensor_context: SensorContext) -> Quaternion | None:
    context.check(element, CUSTOM_RPY)
    roll, pitch, yaw = parse_vector(element, parent="orientation_reference_frame")
    custom = from_rpy(roll, pitch, yaw)
    parent = element.get_attribute("parent_frame")
    if parent == "world":
        return custom
    rotation = sensor_context.rotation_ws if parent is None else sensor_context.find_rotation(parent)
    if rotation is None:
        allowed = 'must be "world", a link of the model, or absent for the initial orientation of the sensor'
        raise invalid_value(element, parent, allowed, attribute="parent_frame")
    if parent is None and (roll, pitch, yaw) == (0.0, 0.0, 0.0):
        return None
    if sensor_context.is_moving:
        allowed = "requires the initial orientation, which a navsense:motion may change"
        raise invalid_value(element, element.text, allowed, remedy='write parent_frame="world"')
    reason = "refers to the pose of the model in the file, also if a run has another motion"
    context.add_note("warning", f"<custom_rpy>: {element.text}", reason, element.where)
    return normalize(multiply(rotation, custom))
