"""A frame that does not move.

The model: ``p(t) = p,  rotation_wb(t) = rotation_wb,  v = omega = a = alpha = 0``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from navsense.motion._checks import check_instants, pose_row
from navsense.motion.base import MotionBlock
from navsense.pose import IDENTITY, Pose
from navsense.typing import FloatArray, Times


@lru_cache(maxsize=32)
def _stationary_block(pose: bytes, count: int) -> MotionBlock:
    """Return `count` rows of a pose x y z w x y z, read-only: whoever asks again gets the same."""
    row = np.frombuffer(pose)
    position, rotation = np.tile(row[:3], (count, 1)), np.tile(row[3:], (count, 1))
    return MotionBlock(position, rotation, *[np.zeros((count, 3))] * 4)


@dataclass(frozen=True)
class Stationary:
    """One constant pose (m, unit quaternion) in the world, for ever.

    Raises `MotionError` where the pose is not finite or its quaternion not of unit length.
    """

    pose: Pose = IDENTITY
    _row: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the pose and keep it as one array."""
        object.__setattr__(self, "_row", pose_row(self.pose))

    @property
    def end(self) -> float:
        """Last instant (s): none, so infinity."""
        return math.inf

    def at(self, time: Times) -> MotionBlock:
        """Return the truth at the instants `time` (n,) s: the pose, and zeros.

        Read-only. Raises `MotionError` for an instant below 0 or not finite.
        """
        count = check_instants(time, math.inf).shape[0]
        return _stationary_block(self._row.tobytes(), count)
