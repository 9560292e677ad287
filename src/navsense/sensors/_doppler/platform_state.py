"""How a Doppler instrument is carried: its attitude and velocity, and a motion that was asked for already."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from navsense import pose
from navsense.motion.base import MotionBlock
from navsense.sensors._doppler import ping
from navsense.typing import FloatArray, Quaternions, Times, Vectors


class FixedMotionBlock(NamedTuple):
    """A motion at the only instants that are asked for: its block there."""

    block: MotionBlock
    end: float = math.inf

    def at(self, time: Times) -> MotionBlock:
        """Return the block, whose instants (n,) s `time` must be."""
        return self.block


@lru_cache(maxsize=8)
def _make_enu_rotation(heading: float) -> FloatArray:
    """Return the rotation (4,) from the world's axes to east, north, up; x is at an angle (rad) from east."""
    return np.array(pose.from_rpy(0.0, 0.0, heading))


def compute_platform_state(truth: MotionBlock, heading: float) -> tuple[Quaternions, Vectors]:
    """Return attitudes (n, 4) of the sensor in east, north, up, and velocities (n, 3) m/s of the world in its frame.

    `heading` (rad) is that of the world's x axis from east, counter-clockwise.
    """
    count = truth.position_w.shape[0]
    attitude, own = np.empty((count, 4)), np.empty((count, 3))
    ping.compute_platform_state(truth.velocity_w, truth.rotation_wb, _make_enu_rotation(heading), attitude, own)
    return attitude, own
