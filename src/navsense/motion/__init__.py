"""Motions: the truth of one frame as a function of time."""

from navsense.motion.base import Motion, MotionBlock
from navsense.motion.mounted import Mounted, mounted
from navsense.motion.replay import Replay, from_arrays, load
from navsense.motion.still import Still
from navsense.motion.trajectory import Trajectory, waypoints

__all__ = [
    "Motion",
    "MotionBlock",
    "Mounted",
    "Replay",
    "Still",
    "Trajectory",
    "from_arrays",
    "load",
    "mounted",
    "waypoints",
]
