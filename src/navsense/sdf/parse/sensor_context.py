"""Context of the parsers of a sensor, and pose of an element in its link, for sensors and surfaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from navsense.core.errors import Where
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.core.typing import Quaternion
from navsense.environment.water import Water
from navsense.sdf.context import Context
from navsense.sdf.frame_graph import apply_pose
from navsense.sdf.frames import FrameNode, Scope
from navsense.sdf.parse.model import ParsedModel
from navsense.sdf.xml_reader import Element


@dataclass(frozen=True)
class SensorContext:
    """The name and the mounting of a sensor, and properties of its world.

    name: full name of the sensor.
    where: location of the element in the file.
    declared_type: type of the sensor in the file, which may be another name of its type.
    classic: True for classic fidelity.
    heading: rad, of the world's axes.
    origin: geographic origin of the world; None if the file does not define it.
    water: the water of the world; None if the file does not define it.
    rotation_ws: (w x y z) sensor to world coordinates in the initial pose of the model.
    is_moving: True if the motion of the model may change that rotation.
    measure_field: returns the magnitude (T) of the world's magnetic field at its origin. It may compile kernels.
    find_rotation: returns the rotation (w x y z) of another link to world coordinates in the initial pose, by its name
        in the sensor's model or its full name; None if it is unknown.
    find_pose: returns the pose of that link in the sensor's frame.
    """

    classic: bool
    heading: float
    rotation_ws: Quaternion
    is_moving: bool
    origin: Origin | None = None
    water: Water | None = None
    name: str = ""
    where: Where | None = None
    measure_field: Callable[[], float] = lambda: 0.0
    declared_type: str = ""
    find_rotation: Callable[[str], Quaternion | None] = lambda _: None
    find_pose: Callable[[str], Pose | None] = lambda _: None


def find_pose_in_link(
    context: Context, parsed_model: ParsedModel, scope: Scope, link: FrameNode, element: Element
) -> Pose:
    """Return the pose of an element in its link; its `<pose>` may refer to any frame. Raises `SdfError`."""
    child = element.find("pose")
    if child is None:
        return Pose()
    node = FrameNode("sensor", "", element, relative_to=link)
    apply_pose(context, link.scope or scope, node, child)
    if node.relative_to is link:
        return node.pose
    return parsed_model.poses.find_pose(link).inverse() @ parsed_model.poses.find_pose(node)
