"""Which motions are known before their time."""

from __future__ import annotations

from navsense.motion.attached import AttachedMotion
from navsense.motion.base import Motion
from navsense.motion.replay import Replay
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import Trajectory


def is_known_ahead(motion: Motion) -> bool:
    """Return whether any instant of the motion can be asked for at any time; never assumed of a caller's own."""
    if isinstance(motion, AttachedMotion):
        return is_known_ahead(motion.base)
    return isinstance(motion, Stationary | Trajectory | Replay)
