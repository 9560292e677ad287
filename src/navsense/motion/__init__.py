"""Motions: the true motion of one frame as a function of time."""

from navsense.motion.base import Motion, MotionBlock
from navsense.motion.derived import AttachedMotion, attach
from navsense.motion.joints import JointMotion, JointTrack, joint_positions
from navsense.motion.logs import load
from navsense.motion.replay import Replay, from_arrays
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import Trajectory, waypoints
from navsense.motion.velocity_commands import CommandLimits, Drive, VelocityCommands, velocity_commands

__all__ = [
    "AttachedMotion",
    "CommandLimits",
    "Drive",
    "JointMotion",
    "JointTrack",
    "Motion",
    "MotionBlock",
    "Replay",
    "Stationary",
    "Trajectory",
    "VelocityCommands",
    "attach",
    "from_arrays",
    "joint_positions",
    "load",
    "velocity_commands",
    "waypoints",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
