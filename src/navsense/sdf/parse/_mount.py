"""The properties of a sensor outside its element that its specification may depend on."""

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
    """The place of a sensor.

    name: its full name.
    where: the place of its element in the file.
    classic: True for classic fidelity.
    heading: rad, of the world's axes.
    origin: the place of the world on earth; None if the file does not define it.
    water: the water of the world; None if the file does not define it.
    rotation_ws: (w x y z) sensor to world coordinates in the initial pose of the model.
    is_moving: True if the motion of the model may change that rotation.
    find_rotation: returns the rotation of another link by its name in the sensor's model or its full name; None if it
        is unknown.
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
    find_rotation: Callable[[str], Quaternion | None] = _no_link
    find_pose: Callable[[str], Pose | None] = _no_pose
