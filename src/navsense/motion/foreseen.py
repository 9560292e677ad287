"""Which motions are known before their time."""

from __future__ import annotations

from navsense.motion.base import Motion
from navsense.motion.mounted import Mounted
from navsense.motion.replay import Replay
from navsense.motion.still import Still
from navsense.motion.trajectory import Trajectory


def is_foreseen(motion: Motion) -> bool:
    """Return whether any instant of the motion can be asked for at any time; never assumed of a caller's own."""
    if isinstance(motion, Mounted):
        return is_foreseen(motion.base)
    return isinstance(motion, Still | Trajectory | Replay)
