"""Attitudes on the way to a magnetometer: products of many quaternions, and attitudes at the instants of readings.

    q(t) = q_0 sin((1 - u) a) / sin(a) + q_1 sin(u a) / sin(a),     u = (t - t_0) / (t_1 - t_0)

a is half the turn from q_0 to q_1, q_1 of the sign that makes it the shorter one: constant angular velocity between two
samples (Shoemake 1985). `rotation_ws` takes sensor coordinates to world coordinates, w x y z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from navsense.kernels import kernel
from navsense.rotation import multiply
from navsense.typing import FloatArray, IntArray, Quaternions, Times

MAX_GAP = 10.0
"""Usual intervals of an attitude's samples; over a longer gap nobody knows how it turned."""

ASSUMED_ALIGNED = "the sensor is taken as aligned with it; where it is not, say how with --mounting ROLL PITCH YAW"
"""How the note on a mounting that nobody said ends."""

MAX_ROTATION = 0.5
"""Radians between two samples of an attitude; beyond, it was sampled too slowly to say what was between."""

AVAILABLE, NO_SAMPLE_NEAR, FAST_ROTATION = 0, 1, 2
"""Whether there is an attitude at an instant: one, none near it, one that turned too far meanwhile."""

_SMALL = 1e-9


@dataclass(frozen=True, eq=False)
class AttitudeSeries:
    """Attitudes (n, 4) at readings, NaN where there is none, `why` (n,) not, who says so, what was left out."""

    rotation: Quaternions
    status: IntArray
    source: str
    notes: tuple[str, ...] = ()


@kernel
def _multiply(a: Quaternions, b: Quaternions, out: Quaternions) -> None:
    """Write the Hamilton products a b (n, 4); either may have one row alone, for all."""
    for i in range(out.shape[0]):
        j = i if a.shape[0] > 1 else 0
        k = i if b.shape[0] > 1 else 0
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = multiply(
            *(a[j, 0], a[j, 1], a[j, 2], a[j, 3]), *(b[k, 0], b[k, 1], b[k, 2], b[k, 3])
        )


@kernel
def _slerp(
    known: Times, turns: Quaternions, at: Times, gap: float, turn: float, out: Quaternions, why: IntArray
) -> None:
    """Write the attitudes at the instants `at`, NaN where no two samples near enough to each other are around."""
    count = known.shape[0]
    for i in range(at.shape[0]):
        low, high = 0, count - 1
        while high - low > 1:
            middle = (low + high) // 2
            if known[middle] <= at[i]:
                low = middle
            else:
                high = middle
        exact = at[i] == known[low] or at[i] == known[high]
        if at[i] == known[high]:
            low = high
        if not (known[0] <= at[i] <= known[count - 1]) or (not exact and known[high] - known[low] > gap):
            for axis in range(4):
                out[i, axis] = math.nan
            why[i] = NO_SAMPLE_NEAR
            continue
        inner = 0.0
        for axis in range(4):
            inner += turns[low, axis] * turns[high, axis]
        sign = -1.0 if inner < 0.0 else 1.0
        apart, along = 0.0, 0.0
        for axis in range(4):
            apart += (sign * turns[high, axis] - turns[low, axis]) ** 2
            along += (sign * turns[high, axis] + turns[low, axis]) ** 2
        angle = 2.0 * math.atan2(math.sqrt(apart), math.sqrt(along))
        share = 0.0 if exact else (at[i] - known[low]) / (known[high] - known[low])
        first, second = 1.0 - share, share
        if angle > _SMALL:
            first, second = math.sin(first * angle) / math.sin(angle), math.sin(second * angle) / math.sin(angle)
        if 2.0 * angle > turn and not exact:
            first = math.nan
            why[i] = FAST_ROTATION
        length = 0.0
        for axis in range(4):
            out[i, axis] = first * turns[low, axis] + second * sign * turns[high, axis]
            length += out[i, axis] ** 2
        length = math.sqrt(length)
        for axis in range(4):
            out[i, axis] = out[i, axis] / length


def multiply_quaternions(a: FloatArray, b: FloatArray) -> Quaternions:
    """Return the Hamilton products a b, (n, 4) or (4,) each, w x y z."""
    left, right = (np.ascontiguousarray(np.atleast_2d(q), dtype=np.float64) for q in (a, b))
    out = np.empty((max(left.shape[0], right.shape[0]), 4))
    _multiply(left, right, out)
    return out


def invert_quaternions(q: FloatArray) -> FloatArray:
    """Return the inverses of unit quaternions (..., 4)."""
    return np.asarray(q * np.array([1.0, -1.0, -1.0, -1.0]))


def interpolate_attitudes(known: Times, orientation: Quaternions, time: Times) -> tuple[Quaternions, IntArray]:
    """Return attitudes (n, 4) at the instants `time` (n,) s from samples at `known` (m,) s, NaN where there is none.

    And (n,) `KNOWN`, `APART` or `TURNED`. The samples may stand in any order; those that are NaN are left out, of
    several at one instant the last counts. There is no attitude before the first sample, behind the last, in a gap of
    more than `LONGEST_GAP` usual intervals (`APART`), or between samples that are turned by more than `FARTHEST_TURN`
    against each other (`TURNED`).
    """
    out, status = np.full((time.size, 4), math.nan), np.full(time.size, NO_SAMPLE_NEAR)
    whole = np.isfinite(orientation).all(axis=1)
    known, orientation = known[whole], orientation[whole]
    if known.size:
        status[:] = AVAILABLE
        order = np.argsort(known, kind="stable")
        last = np.append(np.diff(known[order]) > 0.0, True)
        instants = np.ascontiguousarray(known[order][last], dtype=np.float64)
        turns = np.ascontiguousarray(orientation[order][last], dtype=np.float64)
        gap = MAX_GAP * float(np.median(np.diff(instants))) if instants.size > 1 else 0.0
        _slerp(instants, turns, np.ascontiguousarray(time, dtype=np.float64), gap, MAX_ROTATION, out, status)
    return out, status
