"""`<joint>`: the joints between the links of a top-level model.

The position of a joint in the file is 0. Its axis has the coordinates of the frame in `expressed_in`, by default those
of the joint. `<mimic>` is that of SDF 1.11.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from navsense.core.names import suggest_name
from navsense.core.pose import conjugate, rotate
from navsense.core.typing import Vector
from navsense.sdf.context import Context
from navsense.sdf.frame_graph import find_fixed_link
from navsense.sdf.frames import FrameNode, FramePoses, Scope, find_frame, list_frame_names
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.values import invalid_value, parse_vector
from navsense.sdf.xml_reader import Element
from navsense.world import Joint, Mimic

DEFAULT_AXIS = (0.0, 0.0, 1.0)


def parse_joints(context: Context, scopes: tuple[Scope, ...], poses: FramePoses) -> tuple[Joint, ...]:
    """Return the joints between two links of a top-level model and its nested models."""
    return tuple(_parse_joints(context, scopes, poses))


def _parse_joints(context: Context, scopes: tuple[Scope, ...], poses: FramePoses) -> Iterator[Joint]:
    models = {scope.frame: scope for scope in scopes}
    for scope in scopes:
        for node in scope.list_frames("joint"):
            if node.joint_parent is None or node.attached_to is None:
                continue
            parent, child = (_find_link(end, models) for end in (node.joint_parent, node.attached_to))
            if parent is None or child is None:  # a joint to the world or to a frame with problems
                continue
            with context.collect_errors():
                pose = poses.find_pose(node)
                axis = _parse_axis(node, scope, poses)
                kind = node.element.get_attribute("type") or ""
                lower, upper = (-math.inf, math.inf) if kind == "continuous" else _parse_limits(node)
                mimic = _parse_mimic(context, node, scope)
                yield Joint(node.name, parent.name, child.name, kind, pose, axis, None, lower, upper, mimic)


def _parse_mimic(context: Context, node: FrameNode, scope: Scope) -> Mimic | None:
    """Return how the first axis follows another joint; None without a joint of the model that it could follow."""
    axes = node.element.find_all("axis", "axis2")
    mimics = {axis.tag: mimic for axis in axes if (mimic := axis.find("mimic")) is not None}
    if "axis2" in mimics:
        context.add_note("unsupported", "<axis2><mimic>", "the second axis does not move", mimics["axis2"].where)
    if "axis" not in mimics:
        return None
    mimic = mimics["axis"]
    numbers = [
        parse_child_number(context, mimic, tag, default)
        for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
    ]
    name = mimic.get_attribute("joint") or ""
    leader = find_frame(scope, name)
    reason = ""
    if mimic.get_attribute("axis") not in (None, "axis"):
        reason = "follows a second axis, which does not move"
    elif leader is None or leader.kind != "joint":
        joints = [frame for frame in list_frame_names(scope) if (find_frame(scope, frame) or node).kind == "joint"]
        reason = f"must name a joint of the model; {suggest_name(name, joints) or 'correct the name'}"
    elif leader is node:
        reason = "is the joint itself; name the joint that it follows"
    if leader is None or reason:
        context.add_note("warning", f'<mimic joint="{name}">', f"{reason}: the joint does not follow", mimic.where)
        return None
    return Mimic(leader.name, *numbers)


NO_LIMIT = 1e16
"""A limit of SDF that is none, and its default; rad or m."""


def _parse_limits(node: FrameNode) -> tuple[float, float]:
    """Return the limits of the first axis (rad or m). Raises `SdfError` for a text that is no number."""
    axis = node.element.find("axis")
    limit = None if axis is None else axis.find("limit")
    lower, upper = (_parse_limit(None if limit is None else limit.find(tag)) for tag in ("lower", "upper"))
    return (
        lower if lower is not None and lower > -NO_LIMIT else -math.inf,
        upper if upper is not None and upper < NO_LIMIT else math.inf,
    )


def _parse_limit(element: Element | None) -> float | None:
    """Return a limit, which may be infinite; None without one."""
    if element is None or not element.text:
        return None
    try:
        value = float(element.text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise invalid_value(element, element.text, "must be a number or inf", parent="limit")
    return value


def _find_link(node: FrameNode, models: dict[FrameNode, Scope]) -> FrameNode | None:
    """Return the link that an end of a joint is fixed to; None if there is none."""
    if node.kind == "world":
        return None
    link = find_fixed_link(node, models)
    return link if link is not None and link.kind == "link" else None


def _parse_axis(node: FrameNode, scope: Scope, poses: FramePoses) -> Vector:
    """Return the unit vector of the first axis in the frame of the joint."""
    axis = node.element.find("axis")
    xyz = None if axis is None else axis.find("xyz")
    if xyz is None or not xyz.text:
        return DEFAULT_AXIS
    x, y, z = parse_vector(xyz, parent="axis")
    largest = max(abs(x), abs(y), abs(z))
    if largest == 0.0:  # reported with the frames
        return DEFAULT_AXIS
    x, y, z = x / largest, y / largest, z / largest
    length = (x * x + y * y + z * z) ** 0.5
    vector = (x / length, y / length, z / length)
    name = xyz.get_attribute("expressed_in")
    frame = find_frame(scope, name) if name else None
    if frame is None or frame is node:
        return vector
    return rotate(conjugate(poses.find_pose(node).rotation), rotate(poses.find_pose(frame).rotation, vector))
