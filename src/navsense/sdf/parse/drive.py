"""Drive plug-ins of a model: how it follows velocity commands.

The plug-ins are those of Gazebo, Gazebo Classic and gazebo_ros_pkgs. A wheeled robot turns about the middle of its
driven wheels, the mean position of the joints in the plug-in. If one axle steers, only the joints of the other count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from navsense.core.names import find_similar_names, suggest_name
from navsense.core.pose import Pose
from navsense.core.text import parse_decimal
from navsense.core.typing import Vector
from navsense.motion.velocity_commands import NO_LIMITS, CommandLimits, Drive
from navsense.sdf.context import Context
from navsense.sdf.frames import FrameKind, FramePoses, Scope, find_frame
from navsense.sdf.plugin_files import ACKERMANN_STEERING, TRACKED_VEHICLE, DrivePlugin, find_drive_plugin
from navsense.sdf.ros_names import (
    ROS2_SCHEMA,
    ROS2_TAG,
    add_ros2_namespace,
    check_namespace,
    find_declared_namespace,
    resolve_ros2_topic,
    warn_about_remappings,
)
from navsense.sdf.xml_reader import Element

JOINT_TAGS = re.compile(r"(front_|rear_|back_)?(left|right)(_?(front|rear))?_?joint", re.IGNORECASE)
STEERING_TAGS = ("left_steering_joint", "right_steering_joint")
TOPIC_TAGS = ("topic", "commandTopic", "command_topic")

MIN_SIMILARITY = 0.88
"""Minimum similarity (of 1) of an unknown element with one that is read for a warning."""

BOUND_TAGS = tuple(f"{bound}_{kind}" for bound in ("min", "max") for kind in ("velocity", "acceleration"))
LIMIT_TAGS = tuple(tag.replace("_", f"_{part}") for tag in BOUND_TAGS for part in ("", "linear_", "angular_"))
TRACKED_VELOCITY_TAGS = ("linear_velocity", "angular_velocity")
"""Elements of TrackedVehicle that hold the limits."""

RIM_TAGS = ("max_wheel_acceleration", "wheelAcceleration")
TRACK_TAGS = ("wheel_separation", "wheelSeparation")
READ_TAGS = (
    *(*TOPIC_TAGS, *LIMIT_TAGS, *RIM_TAGS, *TRACK_TAGS, *STEERING_TAGS),
    *("left_joint", "right_joint", "wheel_base", "steering_limit"),
)
"""Elements that are read, and some names that match `JOINT_TAGS`."""

SYSTEM_TAGS = {
    ACKERMANN_STEERING: (*READ_TAGS, "sub_topic", "steering_only"),
    TRACKED_VEHICLE: (*TOPIC_TAGS, *TRACKED_VELOCITY_TAGS, "body_link"),
}
"""System of Gazebo -> elements that are read, if they are not `READ_TAGS`.

Source: gz-sim, `AckermannSteering.cc` (commit 007ef7ae) and `TrackedVehicle.cc` (commit 00b43a02).
"""

WHEEL_BASE, STEERING_LIMIT = 1.0, 0.5
"""Defaults of gz-sim's AckermannSteering: m, rad."""


def parse_drive(context: Context, scope: Scope, poses: FramePoses) -> Drive | None:
    """Return the first drive among the plug-ins of a top-level model; None if it has none."""
    for element in scope.element.find_all("plugin"):
        plugin = find_drive_plugin(element.get_attribute("filename") or "", element.get_attribute("name") or "")
        if plugin is None:
            continue
        # With this element, AckermannSteering takes angles of the wheels instead of velocities.
        is_angle = plugin.system == ACKERMANN_STEERING and element.get_text("steering_only").lower() in ("true", "1")
        if not is_angle:
            return _read_drive(context, scope, poses, element, plugin)
    return None


def _read_drive(context: Context, scope: Scope, poses: FramePoses, element: Element, plugin: DrivePlugin) -> Drive:
    """Return the drive of an element of a plug-in."""
    is_gazebo = bool(plugin.system)
    _warn_about_elements(context, element, SYSTEM_TAGS.get(plugin.system, READ_TAGS))
    context.find_child(element, ROS2_TAG, replace(ROS2_SCHEMA, strict=False))
    if not is_gazebo:
        check_namespace(context, element)
    model_topic = f"/model/{scope.frame.name}"
    topic = f"{model_topic}/cmd_vel" if is_gazebo else "cmd_vel"
    if plugin.system == ACKERMANN_STEERING and element.get_text("sub_topic"):
        topic = f"{model_topic}/{element.get_text('sub_topic')}"
    if element.find(ROS2_TAG) is None:  # plug-ins of ROS 2 remap cmd_vel and read no element for the topic
        topic = next((child.text for child in element.find_all(*TOPIC_TAGS) if child.text), topic)
    if context.namespace and not is_gazebo and not find_declared_namespace(element):
        element = add_ros2_namespace(element, context.namespace)
    if element.find(ROS2_TAG) is not None or find_declared_namespace(element):
        warn_about_remappings(context, element, topic)
        topic = resolve_ros2_topic(element, topic)
    return Drive(
        name=f"plug-in {element.get_attribute('filename') or element.get_attribute('name') or ''}",
        kind=plugin.kind,
        topic=topic,
        pose=Pose(_find_center(context, scope, poses, element, plugin)),
        limits=NO_LIMITS if plugin.kind == "free" else _read_limits(context, element, plugin),
    )


def _warn_about_elements(context: Context, parent: Element, tags: tuple[str, ...]) -> None:
    """Add a warning for each element that may be a misspelt one of `tags`."""
    for child in parent.children:
        if child.tag in tags:
            if child.tag in TRACKED_VELOCITY_TAGS:
                _warn_about_elements(context, child, BOUND_TAGS)
            continue
        if JOINT_TAGS.fullmatch(child.tag):
            continue
        similar = find_similar_names(child.tag, tags, similarity=MIN_SIMILARITY)
        if similar:
            reason = f"is not read; did you mean {similar[0]}?"
            context.add_note("warning", f"<{parent.tag}><{child.tag}>", reason, child.where)


def _find_center(context: Context, scope: Scope, poses: FramePoses, element: Element, plugin: DrivePlugin) -> Vector:
    """Return the position (m) in the model that the commands refer to; of a tracked vehicle, that of its body link."""
    canonical = poses.find_pose(scope.canonical).position if scope.canonical is not None else (0.0, 0.0, 0.0)
    if plugin.kind == "free":
        return canonical
    if plugin.system == TRACKED_VEHICLE:
        x, y, _ = next(_find_positions(context, scope, poses, element.find_all("body_link"), "link"), canonical)
        return (x, y, 0.0)
    joints = (child for child in element.children if JOINT_TAGS.fullmatch(child.tag))
    wheels = list(_find_positions(context, scope, poses, joints, "joint"))
    steering = list(_find_positions(context, scope, poses, element.find_all(*STEERING_TAGS), "joint"))
    if wheels and steering:
        # Commands of a vehicle that steers refer to the axle that does not steer.
        front = _compute_mean([position[0] for position in steering])
        distance = max(abs(x - front) for x, _, _ in wheels)
        wheels = [position for position in wheels if abs(position[0] - front) >= 0.5 * distance]
    if not wheels:
        return (0.0, 0.0, 0.0)
    return (_compute_mean([x for x, _, _ in wheels]), _compute_mean([y for _, y, _ in wheels]), 0.0)


def _compute_mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _find_positions(
    context: Context, scope: Scope, poses: FramePoses, elements: Iterable[Element], kind: FrameKind
) -> Iterator[Vector]:
    """Yield the positions (m) in the model of the joints or links that elements name. Another name gives a warning."""
    prefix = f"{scope.frame.name}::"
    for element in elements:
        node = find_frame(scope, element.text.strip().removeprefix(prefix))
        if node is not None and node.kind == kind:
            yield poses.find_pose(node).position
            continue
        suggestion = suggest_name(element.text, (node.name.removeprefix(prefix) for node in scope.list_frames(kind)))
        reason = f"{element.text!r} is not a {kind} of the model: ignored"
        reason += f"; {suggestion}" if suggestion else ""
        context.add_note("warning", f"<plugin><{element.tag}>", reason, element.where)


def _read_limits(context: Context, element: Element, plugin: DrivePlugin) -> CommandLimits:
    """Return the limits of velocity and acceleration of a plug-in. A value that is no limit gives a warning."""
    limits: dict[str, float] = {}
    for part in ("linear_", "angular_"):
        parent = element.find(f"{part}velocity") if plugin.system == TRACKED_VEHICLE else element
        if parent is not None:
            _read_bounds(context, parent, part, limits, is_gazebo=bool(plugin.system))
    if plugin.kind == "differential":
        rim, track = (_read_number(context, element, tags, 0.0, AT_LEAST_ZERO) for tags in (RIM_TAGS, TRACK_TAGS))
        if rim > 0.0 and track > 0.0:
            limits["max_acceleration"], limits["track"] = rim, track
    # Other plug-ins of vehicles that steer have no wheel base in the file.
    if element.find(*STEERING_TAGS) is not None and (plugin.system or element.find("wheel_base") is not None):
        base = _read_number(context, element, ("wheel_base",), WHEEL_BASE, ABOVE_ZERO)
        angle = _read_number(context, element, ("steering_limit",), STEERING_LIMIT, STEERING_RANGE)
        radius = base / math.sin(angle)
        if math.isfinite(radius):
            limits["min_turning_radius"] = radius
        else:
            reason = f"{base:g} m / sin({angle:g} rad) is not a turning radius: ignored"
            context.add_note("warning", "<plugin><wheel_base>", reason, element.where)
    return CommandLimits(**limits)


Rule = tuple[str, Callable[[float], bool]]
"""What a number must be, and the function that is true for such a number."""

ANY: Rule = ("", lambda _: True)
ABOVE_ZERO: Rule = ("must be above 0", lambda value: value > 0.0)
BELOW_ZERO: Rule = ("must be below 0", lambda value: value < 0.0)
AT_LEAST_ZERO: Rule = ("must be >= 0", lambda value: value >= 0.0)
STEERING_RANGE: Rule = ("must be above 0 and at most pi / 2 (rad)", lambda value: 0.0 < value <= 0.5 * math.pi)


def _read_bounds(context: Context, parent: Element, part: str, limits: dict[str, float], *, is_gazebo: bool) -> None:
    """Add the limits of a velocity and of its rate of change to `limits`; `part` is "linear_" or "angular_"."""
    word = part.replace("linear_", "")

    def read(bound: str, kind: str, default: float, rule: Rule) -> float:
        return _read_number(context, parent, (f"{bound}_{part}{kind}", f"{bound}_{kind}"), default, rule)

    low, high = read("min", "velocity", -math.inf, ANY), read("max", "velocity", math.inf, ANY)
    if low <= high:
        limits[f"min_{word}velocity"], limits[f"max_{word}velocity"] = low, high
    else:
        what, reason = f"min_{part}velocity", f"{low:g} is above the maximum, {high:g}: both are ignored"
        context.add_note("warning", f"<{parent.tag}><{what}>", reason, parent.where)
    down, up = read("min", "acceleration", -math.inf, BELOW_ZERO), read("max", "acceleration", math.inf, ABOVE_ZERO)
    if up < math.inf:
        limits[f"max_{word}acceleration"] = up
    if -down < math.inf:
        limits[f"max_{word}deceleration"] = -down
    elif up < math.inf and is_gazebo:
        # `SpeedLimiter` of gz-math limits the two directions apart: the rate down is free without its own limit.
        limits[f"max_{word}deceleration"] = math.inf


def _read_number(context: Context, parent: Element, tags: tuple[str, ...], default: float, rule: Rule) -> float:
    """Return the number of the first of the tags that an element has. Another value gives a warning."""
    child = next((child for child in map(parent.find, tags) if child is not None), None)
    if child is None:
        return default
    value = parse_decimal(child.text)
    if value is not None and rule[1](value):
        return value
    reason = f"{child.text!r} is not a number: ignored" if value is None else f"{child.text}; {rule[0]}: ignored"
    context.add_note("warning", f"<{parent.tag}><{child.tag}>", reason, child.where)
    return default
