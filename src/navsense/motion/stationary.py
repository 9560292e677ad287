"""A frame that does not move.

``p(t) = p,  rotation_wb(t) = rotation_wb,  v = omega = a = alpha = 0``
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from navsense.core.pose import IDENTITY, Pose
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Times
from navsense.motion.base import LogSource, MotionBlock, check_instants, pose_row


@lru_cache(maxsize=32)
def _stationary_block(pose: bytes, count: int) -> MotionBlock:
    """Return a cached block with `count` rows of a pose x y z w x y z."""
    row = np.frombuffer(pose)
    position, rotation = np.tile(row[:3], (count, 1)), np.tile(row[3:], (count, 1))
    return MotionBlock(position, rotation, *[np.zeros((count, 3))] * 4)


@dataclass(frozen=True)
class Stationary:
    """A constant pose (m, unit quaternion) in the world.

    `source` is that of the motion of a recording, whose world holds this motion in its place. `is_recorded` is true for
    such a motion: a run with it is an error.

    >>> still = ns.motion.Stationary(ns.Pose((0.0, 0.0, 2.0)))
    >>> resting = ns.simulate(world, 0.1, motion={"quadrotor": still})
    >>> resting["imu"].ideal["linear_acceleration"][-1]
    array([0.     , 0.     , 9.80665])
    """

    pose: Pose = IDENTITY
    source: LogSource | None = None
    is_recorded: bool = False
    _row: FloatArray = field(init=False, repr=False, compare=False)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Convert the pose to an array."""
        object.__setattr__(self, "_row", pose_row(self.pose))

    @property
    def end(self) -> float:
        """Infinity: the motion never ends."""
        return math.inf

    def at(self, time: Times) -> MotionBlock:
        """Return the pose and zeros at `time` (n,) s. Raises `MotionError` for a negative or infinite time."""
        count = check_instants(time, math.inf).shape[0]
        return _stationary_block(self._row.tobytes(), count)
