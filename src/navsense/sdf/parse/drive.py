"""Drive plug-ins of a model: how it follows velocity commands.

The plug-ins are those of Gazebo, Gazebo Classic and gazebo_ros_pkgs. A wheeled robot turns about the middle of its
driven wheels: the mean position of the joints in the plug-in; of the axle that does not steer if another one steers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from navsense.core.names import find_similar_names, suggest_name
from navsense.core.pose import Pose
from navsense.core.text import parse_decimal
from navsense.core.typing import Vector
from navsense.motion.velocity_commands import NO_LIMITS, CommandLimits, Drive, DriveKind
from navsense.sdf.context import Context
from navsense.sdf.frames import FramePoses, Scope, find_frame
from navsense.sdf.plugin_files import find_drive_kind
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

IS_GAZEBO = re.compile(r"gz-sim|ignition-gazebo|gz::sim|ignition::gazebo", re.IGNORECASE)
"""Plug-ins whose default topic is in the namespace of the model."""

JOINT_TAGS = re.compile(r"(front_|rear_|back_)?(left|right)(_?(front|rear))?_?joint", re.IGNORECASE)
STEERING_TAGS = ("left_steering_joint", "right_steering_joint")
TOPIC_TAGS = ("topic", "commandTopic", "command_topic")

MIN_SIMILARITY = 0.88
"""Minimum similarity (of 1) of an unknown element with one that is read for a warning."""

LIMIT_TAGS = tuple(
    f"{bound}_{part}{kind}"
    for bound in ("min", "max")
    for part in ("", "linear_", "angular_")
    for kind in ("velocity", "acceleration")
)
RIM_TAGS = ("max_wheel_acceleration", "wheelAcceleration")
TRACK_TAGS = ("wheel_separation", "wheelSeparation")
READ_TAGS = (
    *(*TOPIC_TAGS, *LIMIT_TAGS, *RIM_TAGS, *TRACK_TAGS, *STEERING_TAGS),
    *("left_joint", "right_joint", "wheel_base", "steering_limit"),
)
"""Elements that are read, and some names that match `JOINT_TAGS`."""

WHEEL_BASE, STEERING_LIMIT = 1.0, 0.5
"""Defaults of gz-sim's AckermannSteering: m, rad."""


def parse_drive(context: Context, scope: Scope, poses: FramePoses) -> Drive | None:
    """Return the first drive among the plug-ins of a top-level model; None if it has none."""
    for plugin in scope.element.find_all("plugin"):
        file, name = plugin.get_attribute("filename") or "", plugin.get_attribute("name") or ""
        kind = find_drive_kind(file, name)
        if kind is not None:
            return _read_drive(context, scope, poses, plugin, kind)
    return None


def _read_drive(context: Context, scope: Scope, poses: FramePoses, plugin: Element, kind: DriveKind) -> Drive:
    """Return the drive of a plug-in."""
    file, name = plugin.get_attribute("filename") or "", plugin.get_attribute("name") or ""
    is_gazebo = bool(IS_GAZEBO.search(f"{file} {name}"))
    _warn_about_elements(context, plugin)
    context.find_child(plugin, ROS2_TAG, replace(ROS2_SCHEMA, strict=False))
    if not is_gazebo:
        check_namespace(context, plugin)
    topic = f"/model/{scope.frame.name}/cmd_vel" if is_gazebo else "cmd_vel"
    if plugin.find(ROS2_TAG) is None:  # plug-ins of ROS 2 remap cmd_vel and read no element for the topic
        topic = _find_text(plugin, TOPIC_TAGS) or topic
    if context.namespace and not is_gazebo and not find_declared_namespace(plugin):
        plugin = add_ros2_namespace(plugin, context.namespace)
    if plugin.find(ROS2_TAG) is not None or find_declared_namespace(plugin):
        warn_about_remappings(context, plugin, topic)
        topic = resolve_ros2_topic(plugin, topic)
    return Drive(
        name=f"plug-in {file or name}",
        kind=kind,
        topic=topic,
        pose=Pose(_find_center(context, scope, poses, plugin, kind)),
        limits=NO_LIMITS if kind == "free" else _read_limits(context, plugin, is_gazebo=is_gazebo),
    )


def _warn_about_elements(context: Context, plugin: Element) -> None:
    """Add a warning for each element that may be a misspelt one."""
    for child in plugin.children:
        if child.tag in READ_TAGS or JOINT_TAGS.fullmatch(child.tag):
            continue
        similar = find_similar_names(child.tag, READ_TAGS, similarity=MIN_SIMILARITY)
        if similar:
            reason = f"is not read; did you mean {similar[0]}?"
            context.add_note("warning", f"<plugin><{child.tag}>", reason, child.where)


def _find_text(plugin: Element, tags: tuple[str, ...]) -> str:
    """Return the text of the first child with one of the tags and a text; "" without one."""
    return next((child.text for child in plugin.find_all(*tags) if child.text), "")


def _find_center(context: Context, scope: Scope, poses: FramePoses, plugin: Element, kind: DriveKind) -> Vector:
    """Return the position (m) in the model that the commands refer to."""
    if kind == "free":
        return poses.find_pose(scope.canonical).position if scope.canonical is not None else (0.0, 0.0, 0.0)
    joints = (child for child in plugin.children if JOINT_TAGS.fullmatch(child.tag))
    wheels = list(_find_positions(context, scope, poses, joints))
    steering = list(_find_positions(context, scope, poses, plugin.find_all(*STEERING_TAGS)))
    if wheels and steering:
        # Commands of a vehicle that steers refer to the axle that does not steer.
        steered = _compute_mean([position[0] for position in steering])
        distance = max(abs(x - steered) for x, _, _ in wheels)
        wheels = [position for position in wheels if abs(position[0] - steered) >= 0.5 * distance]
    if not wheels:
        return (0.0, 0.0, 0.0)
    return (_compute_mean([x for x, _, _ in wheels]), _compute_mean([y for _, y, _ in wheels]), 0.0)


def _compute_mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _find_positions(context: Context, scope: Scope, poses: FramePoses, elements: Iterable[Element]) -> Iterator[Vector]:
    """Yield the positions (m) in the model of the joints that elements name. Another name gives a warning."""
    prefix = f"{scope.frame.name}::"
    for element in elements:
        node = find_frame(scope, element.text.strip().removeprefix(prefix))
        if node is not None and node.kind == "joint":
            yield poses.find_pose(node).position
            continue
        suggestion = suggest_name(element.text, (node.name.removeprefix(prefix) for node in scope.list_frames("joint")))
        reason = f"{element.text!r} is not a joint of the model: ignored"
        reason += f"; {suggestion}" if suggestion else ""
        context.add_note("warning", f"<plugin><{element.tag}>", reason, element.where)


def _read_limits(context: Context, plugin: Element, *, is_gazebo: bool) -> CommandLimits:
    """Return the limits of velocity and acceleration of a plug-in. A text that is no number gives a warning."""
    linear, angular = (_read_bounds(context, plugin, part) for part in ("linear_", "angular_"))
    limits: dict[str, float] = {}
    for part, (low, high, down, up) in (("", linear), ("angular_", angular)):
        if low <= high:
            limits[f"min_{part}velocity"], limits[f"max_{part}velocity"] = low, high
        if up > 0.0:
            limits[f"max_{part}acceleration"] = up
        if 0.0 < -down < math.inf:
            limits[f"max_{part}deceleration"] = -down
        elif 0.0 < up < math.inf and is_gazebo:
            # `SpeedLimiter` of gz-math limits the two directions apart: the rate down is free without its own limit.
            limits[f"max_{part}deceleration"] = math.inf
    rim, track = (_read_number(context, plugin, tags, 0.0) for tags in (RIM_TAGS, TRACK_TAGS))
    if rim > 0.0 and track > 0.0:
        limits["max_acceleration"], limits["track"] = rim, track
    # Other plug-ins of vehicles that steer have no wheel base in the file.
    if plugin.find(*STEERING_TAGS) is not None and (is_gazebo or plugin.find("wheel_base") is not None):
        base = _read_number(context, plugin, ("wheel_base",), WHEEL_BASE)
        angle = _read_number(context, plugin, ("steering_limit",), STEERING_LIMIT)
        if base > 0.0 and 0.0 < angle <= 0.5 * math.pi:
            limits["min_turning_radius"] = base / math.sin(angle)
    return CommandLimits(**limits)


def _read_bounds(context: Context, plugin: Element, part: str) -> tuple[float, float, float, float]:
    """Return the lower and upper limit of a velocity, and those of its rate of change."""
    low, high, down, up = (
        _read_number(context, plugin, (f"{bound}_{part}{kind}", f"{bound}_{kind}"), limit)
        for kind in ("velocity", "acceleration")
        for bound, limit in (("min", -math.inf), ("max", math.inf))
    )
    return low, high, down, up


def _read_number(context: Context, plugin: Element, tags: tuple[str, ...], default: float) -> float:
    """Return the number of the first of the tags that the plug-in has."""
    for tag in tags:
        child = plugin.find(tag)
        if child is None:
            continue
        value = parse_decimal(child.text)
        if value is not None:
            return value
        reason = f"{child.text!r} is not a number: ignored"
        context.add_note("warning", f"<plugin><{tag}>", reason, child.where)
    return default
