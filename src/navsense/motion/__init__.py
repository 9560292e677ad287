"""Motions: the true motion of one frame as a function of time."""

from navsense.motion.base import LogSource, Motion, MotionBlock
from navsense.motion.derived import AttachedMotion, attach
from navsense.motion.driven import state_row
from navsense.motion.joints import JointMotion, JointTrack, joint_positions
from navsense.motion.logs import load
from navsense.motion.received_motion import ReceivedMotion
from navsense.motion.replay import Replay, from_arrays
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import Trajectory, waypoints
from navsense.motion.velocity_commands import (
    CommandFollower,
    CommandLimits,
    Drive,
    VelocityCommands,
    velocity_commands,
)

__all__ = [
    "AttachedMotion",
    "CommandFollower",
    "CommandLimits",
    "Drive",
    "JointMotion",
    "JointTrack",
    "LogSource",
    "Motion",
    "MotionBlock",
    "ReceivedMotion",
    "Replay",
    "Stationary",
    "Trajectory",
    "VelocityCommands",
    "attach",
    "from_arrays",
    "joint_positions",
    "load",
    "state_row",
    "velocity_commands",
    "waypoints",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
