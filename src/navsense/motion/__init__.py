"""Motions: the true motion of one frame as a function of time."""

from navsense.motion.base import Motion, MotionBlock
from navsense.motion.derived import AttachedMotion, attach
from navsense.motion.logs import load
from navsense.motion.replay import Replay, from_arrays
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import Trajectory, waypoints

__all__ = [
    "AttachedMotion",
    "Motion",
    "MotionBlock",
    "Replay",
    "Stationary",
    "Trajectory",
    "attach",
    "from_arrays",
    "load",
    "waypoints",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
