"""Attitudes of a magnetometer, interpolated at the times of its readings.

    q(t) = q_0 sin((1 - u) a) / sin(a) + q_1 sin(u a) / sin(a),     u = (t - t_0) / (t_1 - t_0)

a is half the rotation angle from q_0 to q_1, with the sign of q_1 that makes it the shorter rotation. This is constant
angular velocity between two samples (Shoemake 1985). `rotation_ws` takes sensor coordinates to world coordinates; its
order is w x y z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, IntArray, Quaternions, Times

MAX_GAP = 10.0
"""Longest gap between two samples for interpolation, in median sample intervals."""

ASSUMED_ALIGNED = "the sensor is assumed to be aligned with it; if it is not, give --mounting ROLL PITCH YAW"
"""End of the note on an unknown mounting."""

IDENTITY: FloatArray = np.array([1.0, 0.0, 0.0, 0.0])
IDENTITY.setflags(write=False)

MAX_ROTATION = 0.5
"""Largest rotation between two samples for interpolation (rad)."""

AVAILABLE, NO_SAMPLE_NEAR, FAST_ROTATION = 0, 1, 2
"""Status of an attitude at a time: available, no sample near enough, or too much rotation between samples."""

_SMALL = 1e-9


@dataclass(frozen=True, eq=False)
class AttitudeSeries:
    """Attitudes (n, 4) of readings, NaN if missing; status (n,); source and notes as text."""

    rotation: Quaternions
    status: IntArray
    source: str
    notes: tuple[str, ...] = ()


@kernel
def _slerp(
    sample_time: Times, samples: Quaternions, time: Times, gap: float, turn: float, out: Quaternions, status: IntArray
) -> None:
    """Write the attitudes at `time`, NaN if not available, and their status. gap, turn: limits between two samples."""
    count = sample_time.shape[0]
    for i in range(time.shape[0]):
        low, high = 0, count - 1
        while high - low > 1:
            middle = (low + high) // 2
            if sample_time[middle] <= time[i]:
                low = middle
            else:
                high = middle
        exact = time[i] == sample_time[low] or time[i] == sample_time[high]
        if time[i] == sample_time[high]:
            low = high
        is_inside = sample_time[0] <= time[i] <= sample_time[count - 1]
        if not is_inside or (not exact and sample_time[high] - sample_time[low] > gap):
            for axis in range(4):
                out[i, axis] = math.nan
            status[i] = NO_SAMPLE_NEAR
            continue
        inner = 0.0
        for axis in range(4):
            inner += samples[low, axis] * samples[high, axis]
        sign = -1.0 if inner < 0.0 else 1.0
        difference, total = 0.0, 0.0
        for axis in range(4):
            difference += (sign * samples[high, axis] - samples[low, axis]) ** 2
            total += (sign * samples[high, axis] + samples[low, axis]) ** 2
        angle = 2.0 * math.atan2(math.sqrt(difference), math.sqrt(total))
        fraction = 0.0 if exact else (time[i] - sample_time[low]) / (sample_time[high] - sample_time[low])
        first, second = 1.0 - fraction, fraction
        if angle > _SMALL:
            first, second = math.sin(first * angle) / math.sin(angle), math.sin(second * angle) / math.sin(angle)
        if 2.0 * angle > turn and not exact:
            first = math.nan
            status[i] = FAST_ROTATION
        length = 0.0
        for axis in range(4):
            out[i, axis] = first * samples[low, axis] + second * sign * samples[high, axis]
            length += out[i, axis] ** 2
        length = math.sqrt(length)
        for axis in range(4):
            out[i, axis] = out[i, axis] / length


def invert(q: FloatArray) -> FloatArray:
    """Return the inverses of unit quaternions (..., 4)."""
    return np.asarray(q * np.array([1.0, -1.0, -1.0, -1.0]))


def interpolate(sample_time: Times, orientation: Quaternions, time: Times) -> tuple[Quaternions, IntArray]:
    """Return attitudes (n, 4) at `time` (n,) in s, NaN if not available, and their status (n,).

    sample_time: (m,) in s, any order.
    orientation: (m, 4). NaN samples are ignored; of several samples at one time, the last one counts. An attitude is
        `NO_SAMPLE_NEAR` before the first sample, after the last one, and in a gap of more than `MAX_GAP` median
        intervals. It is `FAST_ROTATION` between samples that differ by more than `MAX_ROTATION`.
    """
    out, status = np.full((time.size, 4), math.nan), np.full(time.size, NO_SAMPLE_NEAR)
    finite = np.isfinite(orientation).all(axis=1)
    sample_time, orientation = sample_time[finite], orientation[finite]
    if sample_time.size:
        status[:] = AVAILABLE
        order = np.argsort(sample_time, kind="stable")
        last = np.append(np.diff(sample_time[order]) > 0.0, True)
        distinct_time = np.ascontiguousarray(sample_time[order][last], dtype=np.float64)
        samples = np.ascontiguousarray(orientation[order][last], dtype=np.float64)
        gap = MAX_GAP * float(np.median(np.diff(distinct_time))) if distinct_time.size > 1 else 0.0
        time = np.ascontiguousarray(time, dtype=np.float64)
        _slerp(distinct_time, samples, time, gap, MAX_ROTATION, out, status)
    return out, status
