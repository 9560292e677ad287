"""`<sensor type="imu">`: the noise of six axes, what its orientation refers to, and navsense's own elements.

<navsense:averaged>true</navsense:averaged>                                          means over sample intervals
<navsense:bandwidth>47</navsense:bandwidth>                                          Hz
<navsense:vibration>                                                                 any number of lines
<frequency>130</frequency> <phase>0</phase>                                          Hz, rad
<linear_acceleration>1 2 3</linear_acceleration>                                     m/s^2, amplitudes by axis
<angular_velocity>0.1 0 0</angular_velocity>                                         rad/s
</navsense:vibration>
<navsense:angular_velocity_misalignment>0.01 0 0 0 0 0</...>                         rad: xy xz yx yz zx zy
<navsense:linear_acceleration_misalignment>0 0 0 0 0 0.01</...>
<navsense:g_sensitivity>1e-4 0 0  0 1e-4 0  0 0 1e-4</navsense:g_sensitivity>        rad/s per m/s^2, row by row
<navsense:earth_rotation>true</navsense:earth_rotation>                              with <spherical_coordinates>

The references of the orientation:

    q_ref = yaw(-heading) T           ENU: T = 1;  NED: T = rpy(pi, 0, pi/2);  NWU: T = rpy(0, 0, pi/2)
    q_ref = custom_rpy                CUSTOM in parent_frame "world"
    q_ref = q_initial custom_rpy      CUSTOM otherwise: the orientation at the start of the sensor itself, or the link
                                      that parent_frame names

q_ref takes coordinates of the reference frame to world coordinates. The world's x axis points `heading` from east
towards north, so east in the world is yaw(-heading) of it; Gazebo's IMU turns the other way than its own NavSat does.
Source: SDF 1.12 `imu.sdf`; gz-sensors' `ImuSensor`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from navsense.errors import SdfError, SensorError
from navsense.noise.channel import LARGEST
from navsense.pose import from_rpy, multiply, normalised
from navsense.sdf import values
from navsense.sdf.context import Context, Place
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.fields import flag_of, number_of, numbers_of, refused_at, vector_of
from navsense.sdf.fill.noise import axes_of
from navsense.sdf.places import LEAF
from navsense.sdf.read import PREFIX, Element
from navsense.sdf.values import refusal
from navsense.sensors import Imu, Vibration
from navsense.sensors.imu import INSENSITIVE, NO_EARTH, SMALL, STRAIGHT
from navsense.typing import Quaternion

AVERAGED, BANDWIDTH, EARTH_ROTATION = f"{PREFIX}averaged", f"{PREFIX}bandwidth", f"{PREFIX}earth_rotation"
VIBRATION = f"{PREFIX}vibration"
LEAKS = {
    "angular_velocity_misalignment": (STRAIGHT, SMALL),
    "linear_acceleration_misalignment": (STRAIGHT, SMALL),
    "g_sensitivity": (INSENSITIVE, LARGEST),
}
"""Fields that are numbers from axis to axis: their neutral ones, and what each number has to be smaller than."""

IMU = Place(
    read=frozenset(("orientation_reference_frame", "enable_orientation", "angular_velocity", "linear_acceleration"))
    | {AVERAGED, BANDWIDTH, VIBRATION, EARTH_ROTATION}
    | {f"{PREFIX}{name}" for name in LEAKS},
    several=frozenset((VIBRATION,)),
    unsupported={"topic": "stands in <sensor> since SDF 1.7; move it there"},
    refused={"noise": "stands in each axis since SDF 1.6: <angular_velocity><x><noise> and so on"},
)

ORIENTATION_REFERENCE_FRAME = Place(
    read=frozenset(("localization", "custom_rpy")),
    unsupported={"grav_dir_x": "acts with GRAV_UP and GRAV_DOWN only, which are not supported"},
)

LINE = Place(read=frozenset(("frequency", "phase", "linear_acceleration", "angular_velocity")))

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
    sheet = Imu(*gyro, *accelerometer, orientation=orientation, reference=reference)
    leaks: dict[str, Any] = {
        name: numbers_of(context, block, f"{PREFIX}{name}", neutral, below=below)
        for name, (neutral, below) in LEAKS.items()
    }
    return replace(
        sheet,
        **leaks,
        averaged=flag_of(context, block, AVERAGED, default=False),
        bandwidth=_bandwidth(context, block),
        vibration=tuple(line for child in block.all(VIBRATION) if (line := _vibration(context, child)) is not None),
        earth_rotation=_earth_rotation(context, block, mount),
    )


def _bandwidth(context: Context, block: Element) -> float:
    """Return the bandwidth (Hz), 0 for none."""
    (bandwidth,) = numbers_of(context, block, BANDWIDTH, (0.0,), below=LARGEST)
    child = block.first(BANDWIDTH)
    if bandwidth < 0.0 and child is not None:
        context.problem(refusal(child, child.text, "must be >= 0, 0 for none", parent=block.tag))
        return 0.0
    return bandwidth


def _vibration(context: Context, element: Element) -> Vibration | None:
    """Return one line of vibration; None, with a problem in `context`, where it is none."""
    context.check(element, LINE)
    before = context.found
    if element.first("frequency") is None:
        context.problem(refusal(element, "missing", "must hold a <frequency> in Hz"))
    frequency = number_of(context, element, "frequency", 0.0, above=0.0)
    phase = number_of(context, element, "phase", 0.0)
    still = (0.0, 0.0, 0.0)
    force, rate = (vector_of(context, element, tag, still) for tag in ("linear_acceleration", "angular_velocity"))
    if context.found > before:
        return None
    with context.collecting():
        try:
            return Vibration(frequency, force, rate, phase)
        except SensorError as error:
            raise refused_at(element, error) from error
    return None


def _earth_rotation(context: Context, block: Element, mount: Mount) -> bool:
    """Return whether the earth turns; keep a problem where the world stands nowhere on it."""
    turns = flag_of(context, block, EARTH_ROTATION, default=False)
    child = block.first(EARTH_ROTATION)
    if not turns or child is None or mount.origin is not None:
        return turns
    remedy = "give the world <spherical_coordinates> with latitude_deg, longitude_deg and elevation"
    what = f"<{block.tag}><{child.tag}>"
    context.problem(SdfError(what, child.text, where=child.where, allowed=NO_EARTH, remedy=remedy))
    return False


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
    rotation = mount.rotation_ws if parent is None else mount.rotation_of(parent)
    if rotation is None:
        allowed = 'must be "world", a link of the model, or absent for the sensor\'s own orientation at the start'
        raise refusal(element, parent, allowed, attribute="parent_frame")
    if parent is None and (roll, pitch, turn) == (0.0, 0.0, 0.0):
        return None
    if mount.moved:
        allowed = "needs an orientation at the start, which a navsense:motion may change"
        raise refusal(element, element.text, allowed, remedy='write parent_frame="world"')
    reason = "is relative to how the file poses the model; it stays so where a run is given another motion"
    context.note("warning", f"<custom_rpy>: {element.text}", reason, element.where)
    return normalised(multiply(rotation, custom))
