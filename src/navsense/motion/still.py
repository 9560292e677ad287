"""A frame that does not move.

The model: ``p(t) = p,  rotation_wb(t) = rotation_wb,  v = omega = a = alpha = 0``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from navsense.compiled import kernel
from navsense.motion._checks import instants, pose_row
from navsense.motion.base import MotionBlock
from navsense.pose import IDENTITY, Pose
from navsense.typing import FloatArray, Quaternions, Times, Vectors


@kernel
def _stand(row: FloatArray, position: Vectors, rotation: Quaternions) -> None:
    """Write the pose x y z w x y z (7,) into every row."""
    for i in range(position.shape[0]):
        for axis in range(3):
            position[i, axis] = row[axis]
        for part in range(4):
            rotation[i, part] = row[3 + part]


@dataclass(frozen=True)
class Still:
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

        Raises `MotionError` for an instant below 0 or not finite.
        """
        count = instants(time, math.inf).shape[0]
        position = np.empty((count, 3))
        rotation = np.empty((count, 4))
        _stand(self._row, position, rotation)
        return MotionBlock(
            position_w=position,
            rotation_wb=rotation,
            velocity_w=np.zeros((count, 3)),
            angular_velocity_b=np.zeros((count, 3)),
            acceleration_w=np.zeros((count, 3)),
            angular_acceleration_b=np.zeros((count, 3)),
        )
