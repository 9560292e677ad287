"""What a sensor's data sheet may depend on besides its own element: where it stands, and by which rules it errs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from navsense.core.errors import Where
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.core.typing import Quaternion
from navsense.environment.water import Water


def _no_link(_name: str) -> Quaternion | None:
    return None


def _no_pose(_name: str) -> Pose | None:
    return None


@dataclass(frozen=True)
class Mount:
    """One sensor's place: `classic` rules, the world's `heading` (rad) and `origin`, and how it stands at the start.

    `rotation_ws` (w x y z) takes sensor coordinates to world coordinates as the file poses the model; `moved` is true
    where the model's motion may put it elsewhere. `origin` is None where the file does not say where on earth the
    world stands, `water` where it does not say what water it has; `name` is the sensor's full name, `where` its own
    element. `find_rotation` gives the same rotation of a link of the top-level model, by its name in the sensor's model
    or its full name, None where there is none; `find_pose` its pose in the sensor's own frame.
    """

    classic: bool
    heading: float
    rotation_ws: Quaternion
    is_moving: bool
    origin: Origin | None = None
    water: Water | None = None
    name: str = ""
    where: Where | None = None
    find_rotation: Callable[[str], Quaternion | None] = _no_link
    find_pose: Callable[[str], Pose | None] = _no_pose
