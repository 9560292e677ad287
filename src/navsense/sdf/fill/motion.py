"""`<navsense:motion>` in a model: waypoints, or a log of poses, or a recording.

    <navsense:motion loop="false">
      <navsense:waypoint time="0">x y z roll pitch yaw</navsense:waypoint> ...
    </navsense:motion>
    <navsense:motion file="log.csv" bandwidth="5"/>

Poses are those of the model's canonical link in the world; a file is looked for beside the SDF file.
"""

from __future__ import annotations

from pathlib import Path

from navsense.errors import MotionError
from navsense.inputs import decimal
from navsense.motion.base import Motion
from navsense.pose import Pose
from navsense.sdf.context import Context
from navsense.sdf.fill.fields import refused_at
from navsense.sdf.frames import Scope
from navsense.sdf.places import MOTION, WAYPOINT
from navsense.sdf.read import Element
from navsense.sdf.values import attribute_flag, attribute_number, pose, refusal

TAG = "navsense:motion"


def motion_of(context: Context, scope: Scope, *, static: bool) -> Motion | None:
    """Return the motion of a top-level model; None where it stands still."""
    element = scope.element.first(TAG)
    if element is None:
        return None
    context.check(element, MOTION)
    if static:
        context.problem(refusal(element, scope.node.name, "a static model cannot move", remedy="remove <static>"))
    with context.collecting():
        try:
            return _from_file(element) if "file" in element.attributes else _from_waypoints(context, element)
        except MotionError as error:
            raise refused_at(element, error) from error
    return None


def refuse_nested(context: Context, scope: Scope) -> None:
    """Keep a problem where a nested model has a motion of its own."""
    element = scope.element.first(TAG)
    if element is not None:
        allowed = "a nested model moves with the model around it"
        context.problem(refusal(element, scope.node.name, allowed, remedy="move it to the top-level model"))


def _from_file(element: Element) -> Motion:
    from navsense.sinks.poses import motion_in  # brings SciPy, which a world without motion does not need

    for name in ("loop", "degrees"):
        if name in element.attributes:
            raise refusal(element, element.attributes[name], "goes with waypoints, not with a file", attribute=name)
    if element.children:
        raise refusal(element.children[0], None, "must not stand beside a file", parent=element.tag)
    file = element.attribute("file")
    if file is None:
        raise refusal(element, "empty", "must name a log of poses", attribute="file")
    bandwidth = attribute_number(element, "bandwidth", above=0.0)
    try:
        return motion_in(Path(element.path).parent / file, bandwidth=bandwidth)
    except (OSError, ValueError) as error:
        raise refusal(element, file, f"cannot be read: {error}", attribute="file") from error


def _from_waypoints(context: Context, element: Element) -> Motion:
    from navsense.motion import trajectory  # brings SciPy

    if "bandwidth" in element.attributes:
        raise refusal(element, element.attributes["bandwidth"], "goes with a file", attribute="bandwidth")
    loop, degrees = attribute_flag(element, "loop"), attribute_flag(element, "degrees")
    found = context.found
    times: list[float] = []
    poses: list[Pose] = []
    for point in element.all("navsense:waypoint"):
        context.check(point, WAYPOINT)
        with context.collecting():
            times.append(_time(point, times))
            poses.append(_pose(point, degrees=degrees))
    if context.found > found:
        raise refusal(element, None, "is no motion for the reasons given for its waypoints")
    if len(times) < 2:
        raise refusal(element, f"{len(times)} waypoints", "must hold at least 2 waypoints, or file=...")
    return trajectory.waypoints(times, poses, loop=loop)


def _time(point: Element, before: list[float]) -> float:
    text = point.attributes.get("time")
    time = None if text is None else decimal(text)
    if time is None:
        allowed = "must be a finite number of seconds"
        raise refusal(point, "missing" if text is None else text, allowed, attribute="time")
    if not before and time != 0.0:
        raise refusal(point, text, "must be 0 at the first waypoint", attribute="time")
    if before and time <= before[-1]:
        raise refusal(point, text, f"must be after that of the waypoint before, {before[-1]!r}", attribute="time")
    return time


def _pose(point: Element, *, degrees: bool) -> Pose:
    if not point.text:
        raise refusal(point, "empty", "must be 6 finite numbers: x y z roll pitch yaw")
    return pose(point, degrees=degrees)
