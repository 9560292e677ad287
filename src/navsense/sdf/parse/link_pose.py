"""Pose of an element in its link, for sensors and surfaces."""

from __future__ import annotations

from navsense.core.pose import Pose
from navsense.sdf.context import Context
from navsense.sdf.frame_graph import apply_pose
from navsense.sdf.frames import FrameNode, Scope
from navsense.sdf.parse.model import ParsedModel
from navsense.sdf.xml_reader import Element


def find_pose_in_link(context: Context, parsed: ParsedModel, scope: Scope, link: FrameNode, element: Element) -> Pose:
    """Return the pose of an element in its link; its `<pose>` may refer to any frame. Raises `SdfError`."""
    child = element.find("pose")
    if child is None:
        return Pose()
    node = FrameNode("sensor", "", element, relative_to=link)
    apply_pose(context, link.scope or scope, node, child)
    if node.relative_to is link:
        return node.pose
    return parsed.poses.find_pose(link).inverse() @ parsed.poses.find_pose(node)
