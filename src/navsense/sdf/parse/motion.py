"""`<navsense:motion>` in a model: waypoints, or a motion log, or a recording.

    <navsense:motion loop="false">
      <navsense:waypoint time="0">x y z roll pitch yaw</navsense:waypoint> ...
    </navsense:motion>
    <navsense:motion file="log.csv" bandwidth="5"/>

Poses are those of the model's canonical link in the world. Paths are relative to the folder of the SDF file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from navsense.core.pose import Pose
from navsense.core.text import parse_decimal
from navsense.motion.base import LogContext, Motion
from navsense.motion.velocity_commands import NO_LIMITS, Drive, VelocityCommands
from navsense.sdf.context import Context
from navsense.sdf.frames import Scope
from navsense.sdf.schema import MOTION, WAYPOINT
from navsense.sdf.values import (
    invalid_value,
    map_spec_errors,
    parse_attribute_flag,
    parse_attribute_number,
    parse_pose,
)
from navsense.sdf.xml_reader import Element

MOTION_TAG = "navsense:motion"


def parse_motion(
    context: Context, scope: Scope, log_context: LogContext, drive: Drive | None, *, static: bool
) -> Motion | None:
    """Return the motion of a top-level model; None if it is stationary, and after a problem.

    `log_context` is what a log needs of the world. `drive` has limits for velocity commands.
    """
    element = context.find_child(scope.element, MOTION_TAG, MOTION)
    if element is None:
        return None
    if static:
        allowed, remedy = "a static model cannot move", "remove <static>"
        context.add_problem(invalid_value(element, scope.frame.name, allowed, remedy=remedy))
    with context.collect_errors(), map_spec_errors(element):
        return (
            _read_motion(element, log_context, drive)
            if "file" in element.attributes
            else _parse_waypoints(context, element)
        )
    return None


def check_nested_motion(context: Context, scope: Scope) -> None:
    """Add a problem if a nested model has a motion."""
    element = scope.element.find(MOTION_TAG)
    if element is not None:
        allowed = "a nested model moves with its parent model"
        context.add_problem(invalid_value(element, scope.frame.name, allowed, remedy="move it to the top-level model"))


LIMIT_ATTRIBUTES = {"max_acceleration": "max_deceleration", "max_angular_acceleration": "max_angular_deceleration"}
"""Attributes for velocity commands (m/s^2, rad/s^2), and the limit that each of them replaces too."""


def _read_motion(element: Element, log_context: LogContext, drive: Drive | None) -> Motion:
    # This imports SciPy, which a world without motion does not need.
    from navsense.recordings.recorded_motion import load_motion

    for name in ("loop", "degrees"):
        if name in element.attributes:
            raise invalid_value(element, element.attributes[name], "is allowed with waypoints only", attribute=name)
    if element.children:
        raise invalid_value(element.children[0], None, "must not be combined with a file", parent=element.tag)
    file = element.get_attribute("file")
    if file is None:
        raise invalid_value(element, "empty", "must be the path of a motion log", attribute="file")
    bandwidth = parse_attribute_number(element, "bandwidth", above=0.0)
    attributes = {name: parse_attribute_number(element, name, above=0.0) for name in LIMIT_ATTRIBUTES}
    limits = {name: value for name, value in attributes.items() if value is not None}
    try:
        motion = load_motion(Path(element.path).parent / file, log_context, bandwidth=bandwidth)
    except (OSError, ValueError) as error:
        raise invalid_value(element, file, f"cannot be read: {error}", attribute="file") from error
    if not limits:
        return motion
    if not isinstance(motion, VelocityCommands):
        name = next(iter(limits))
        allowed = "is allowed with velocity commands only"
        raise invalid_value(element, element.attributes[name], allowed, attribute=name)
    base = drive.limits if drive else NO_LIMITS
    for name, value in limits.items():
        # Limits of the body replace those of the rims.
        base = replace(base, **{name: value, LIMIT_ATTRIBUTES[name]: None, "track": 0.0})  # type: ignore[arg-type]
    return replace(motion, limits=base)


def _parse_waypoints(context: Context, element: Element) -> Motion | None:
    """Return the motion; None if a waypoint is a problem."""
    from navsense.motion import trajectory  # imports SciPy

    if "bandwidth" in element.attributes:
        bandwidth = element.attributes["bandwidth"]
        raise invalid_value(element, bandwidth, "is allowed with a file only", attribute="bandwidth")
    loop, degrees = parse_attribute_flag(element, "loop"), parse_attribute_flag(element, "degrees")
    problems_before = context.problem_count
    times: list[float] = []
    poses: list[Pose] = []
    for point in element.find_all("navsense:waypoint"):
        context.check(point, WAYPOINT)
        with context.collect_errors():
            times.append(_parse_time(point, times))
            if not point.text:
                raise invalid_value(point, "empty", "must be 6 finite numbers: x y z roll pitch yaw")
            poses.append(parse_pose(point, degrees=degrees))
    if context.problem_count > problems_before:
        return None
    if len(times) < 2:
        raise invalid_value(element, f"{len(times)} waypoints", "requires at least 2 waypoints, or file=...")
    return trajectory.waypoints(times, poses, loop=loop)


def _parse_time(point: Element, times: list[float]) -> float:
    """Return the time (s) of a waypoint after those at `times`. Raises `SdfError`."""
    text = point.attributes.get("time")
    time = None if text is None else parse_decimal(text)
    if time is None:
        allowed = "must be a finite number of seconds"
        raise invalid_value(point, "missing" if text is None else text, allowed, attribute="time")
    if not times and time != 0.0:
        raise invalid_value(point, text, "must be 0 at the first waypoint", attribute="time")
    if times and time <= times[-1]:
        raise invalid_value(point, text, f"must be after that of the waypoint before, {times[-1]!r}", attribute="time")
    return time
