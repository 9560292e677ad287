"""Where something stands in its link: a sensor, a surface."""

from __future__ import annotations

from navsense.pose import Pose
from navsense.sdf.context import Context
from navsense.sdf.fill.model import Filled
from navsense.sdf.frames import Node, Scope
from navsense.sdf.graph import place_pose
from navsense.sdf.read import Element


def pose_in_link(context: Context, filled: Filled, scope: Scope, link: Node, element: Element) -> Pose:
    """Return the pose of an element in its link, whatever frame its `<pose>` refers to. Raises `SdfError`."""
    child = element.first("pose")
    if child is None:
        return Pose()
    node = Node("sensor", "", element, base=link)
    place_pose(context, link.scope or scope, node, child)
    if node.base is link:
        return node.pose
    return filled.poses.of(link).inverse() @ filled.poses.of(node)
