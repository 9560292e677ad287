"""Checks that every motion makes of what it is given: instants, poses and stored arrays."""

from __future__ import annotations

import math

import numpy as np

from navsense.errors import MotionError
from navsense.kernels import kernel
from navsense.pose import Pose
from navsense.typing import AnyArray, FloatArray, Times


@kernel
def _first_outside(time: Times, end: float) -> int:
    """Return the index of the first instant that is not finite or not in [0, end]; -1 where there is none."""
    for row in range(time.shape[0]):
        instant = time[row]
        if not (0.0 <= instant <= end and instant < math.inf):
            return row
    return -1


def check_instants(time: Times, end: float) -> Times:
    """Return `time` (n,) s as contiguous, read-only float64: one compiled form of what is handed it.

    Raise MotionError where one is not in [0, end] or not finite.
    """
    array: AnyArray = np.ascontiguousarray(time, dtype=np.float64).view()
    array.setflags(write=False)
    if np.ndim(time) != 1:
        raise MotionError("the shape of the instants", np.shape(time), allowed="must be (n,)")
    row = _first_outside(array, end)
    if row >= 0:
        allowed = f"must be from 0 to {end!r} s, the end of the motion" if end < math.inf else "must be >= 0 and finite"
        raise MotionError(
            f"instant {row} (s)",
            float(array[row]),
            allowed=allowed,
            remedy="shorten the run or give a longer motion" if array[row] > end else "",
        )
    return array


def pose_row(pose: Pose) -> FloatArray:
    """Return x y z (m) and unit w x y z of `pose` as one read-only array (7,)."""
    row = np.array((*pose.position, *pose.rotation))
    row.setflags(write=False)
    return row


def copy_read_only(array: FloatArray) -> FloatArray:
    """Return the array as contiguous float64 that cannot be written: itself where it is that already, else a copy."""
    kept = np.asarray(array)
    if kept.dtype == np.float64 and kept.flags.c_contiguous and not kept.flags.writeable:
        return kept
    kept = np.array(kept, dtype=np.float64, order="C")
    kept.setflags(write=False)
    return kept
