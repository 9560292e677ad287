"""Splines of position and attitude: their coefficients, and the kernel that gives the truth from them.

A row of values is seven numbers: position (m, world) and quaternion w x y z (unit in the data, of any length between).
On segment i, with x = t - knots[i], column j is ``sum over k of coefficients[i, k, j] x^(degree - k)``.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.compiled import kernel
from navsense.errors import MotionError
from navsense.rotation import multiply
from navsense.typing import FloatArray, Quaternions, Times, Vectors


@kernel
def segment_of(knots: Times, instant: float, guess: int) -> int:
    """Return the one segment i with knots[i] <= instant < knots[i + 1] (the last one also holds its end).

    `guess` saves the search where instants come in order; the answer does not depend on it.
    """
    low, high = 0, knots.shape[0] - 2
    if knots[guess] > instant:
        high = guess - 1
    elif guess == high or instant < knots[guess + 1]:
        return guess
    else:
        low = guess + 1
        if low == high or instant < knots[low + 1]:
            return low
    while low < high:
        middle = (low + high + 1) // 2
        if knots[middle] <= instant:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def horner(coefficients: FloatArray, segment: int, column: int, x: float) -> tuple[float, float, float]:
    """Return one column's value and its first and second derivative at x (s) into a segment."""
    value, first, second = coefficients[segment, 0, column], 0.0, 0.0
    for power in range(1, coefficients.shape[1]):
        second = second * x + first
        first = first * x + value
        value = value * x + coefficients[segment, power, column]
    return value, first, 2.0 * second


@kernel
def evaluate(
    knots: Times,
    coefficients: FloatArray,
    period: float,
    time: Times,
    position: Vectors,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    acceleration: Vectors,
    alpha: Vectors,
) -> None:
    """Write the truth at each instant (s), taken modulo `period` (s) where that is not infinite.

    With s the quaternion's spline: q = s/|s|, omega = 2 Im(s* s')/|s|^2 and
    alpha = 2 Im(s* s'')/|s|^2 - 2 omega (s . s')/|s|^2, both in the body frame.
    """
    segment = 0
    for i in range(time.shape[0]):
        instant = time[i]
        if instant >= period:
            instant = instant % period
        segment = segment_of(knots, instant, segment)
        x = instant - knots[segment]
        for axis in range(3):
            value, first, second = horner(coefficients, segment, axis, x)
            position[i, axis], velocity[i, axis], acceleration[i, axis] = value, first, second

        w, dw, ddw = horner(coefficients, segment, 3, x)
        a, da, dda = horner(coefficients, segment, 4, x)
        b, db, ddb = horner(coefficients, segment, 5, x)
        c, dc, ddc = horner(coefficients, segment, 6, x)
        square = w * w + a * a + b * b + c * c
        length = math.sqrt(square)
        rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3] = w / length, a / length, b / length, c / length

        scale = 2.0 / square
        _, ux, uy, uz = multiply(w, -a, -b, -c, dw, da, db, dc)
        ox, oy, oz = scale * ux, scale * uy, scale * uz
        omega[i, 0], omega[i, 1], omega[i, 2] = ox, oy, oz
        growth = scale * (w * dw + a * da + b * db + c * dc)
        _, ux, uy, uz = multiply(w, -a, -b, -c, ddw, dda, ddb, ddc)
        alpha[i, 0] = scale * ux - growth * ox
        alpha[i, 1] = scale * uy - growth * oy
        alpha[i, 2] = scale * uz - growth * oz


@kernel
def thinnest(knots: Times, coefficients: FloatArray, allowed: float) -> int:
    """Return the first segment in which |s| falls below `allowed` times its largest there, at nine points; else -1.

    Near |s| = 0 the attitude turns at a rate without bound.
    """
    for segment in range(coefficients.shape[0]):
        step = (knots[segment + 1] - knots[segment]) / 8.0
        least, most = math.inf, 0.0
        for point in range(9):
            square = 0.0
            for column in range(3, 7):
                value, _, _ = horner(coefficients, segment, column, point * step)
                square += value * value
            least = min(least, square)
            most = max(most, square)
        # Written so that a NaN counts as too thin.
        if not (least > 0.0 and least >= allowed * allowed * most):
            return segment
    return -1


def in_one_hemisphere(rotation: Quaternions) -> tuple[Quaternions, int]:
    """Return the quaternions (n, 4) with signs that make them continuous, and the first row too far from its former.

    Too far is more than 120 degrees: a spline through the components is uneven over such a turn, and beyond
    180 degrees it goes the other way round. The row is 0 where there is none.
    """
    cosine = (rotation[1:] * rotation[:-1]).sum(axis=1)
    signs = np.ones(rotation.shape[0])
    signs[1:] = np.cumprod(np.where(cosine < 0.0, -1.0, 1.0))
    far = np.flatnonzero(np.abs(cosine) < 0.5 - 1e-9)
    return rotation * signs[:, None], int(far[0]) + 1 if far.size else 0


def interpolating(time: Times, values: FloatArray, ends: str) -> FloatArray:
    """Return the coefficients (n - 1, 4, 7) of the cubic C2 spline through `values` (n, 7) at `time` (n,) s.

    `ends` is SciPy's boundary condition: "clamped" (at rest), "periodic" or "not-a-knot".

    Raises `MotionError` where the numbers overflow.
    """
    from scipy.interpolate import CubicSpline  # heavy, and only needed here

    coefficients = np.empty((time.shape[0] - 1, 4, values.shape[1]))
    try:
        # An overflow either stops SciPy or shows as coefficients that are not finite, which the trajectory refuses.
        with np.errstate(all="ignore"):
            for column in range(values.shape[1]):  # SciPy needs several times the memory of its result
                spline = CubicSpline(time, np.ascontiguousarray(values[:, column]), bc_type=ends)
                coefficients[:, :, column] = spline.c.T
    except (ValueError, np.linalg.LinAlgError) as error:
        raise MotionError(
            "no finite spline goes through the positions", remedy="move the times apart or the positions nearer"
        ) from error
    return coefficients


def smoothing(time: Times, values: FloatArray, bandwidth: float) -> FloatArray:
    """Return the coefficients (n - 1, 4, 7) of the smoothing spline g of `values` (n, 7) at `time` (n,) s, n >= 3.

    g minimises ``sum of w_i |values_i - g(t_i)|^2 + lambda * integral of |g''|^2`` with w the local spacing (s) and
    ``lambda = (2 pi bandwidth)^-4``, so that a sinusoid of frequency f (Hz), sampled often, keeps the share
    ``1 / (1 + (f / bandwidth)^4)`` of its amplitude: half at `bandwidth`, whatever the log's rate.

    Solved for the second derivatives at the knots (Reinsch, Smoothing by spline functions, Numer. Math. 10, 1967):
    ``(R + lambda Q^T W^-1 Q) g'' = Q^T values``, ``g = values - lambda W^-1 Q g''``, five diagonals.

    Raises `MotionError` where the spacings are so uneven that rounding leaves no solution.
    """
    from scipy.linalg import solveh_banded  # heavy, and only needed here

    penalty = (2.0 * math.pi * bandwidth) ** -4
    h = np.diff(time)
    left, right = 1.0 / h[:-1], 1.0 / h[1:]
    middle = -(left + right)
    share = np.empty_like(time)  # lambda / w
    share[0], share[-1] = 2.0 * penalty / h[0], 2.0 * penalty / h[-1]
    share[1:-1] = 2.0 * penalty / (h[:-1] + h[1:])

    inner = time.shape[0] - 2
    band = np.zeros((min(3, inner), inner))
    band[0] = (h[:-1] + h[1:]) / 3.0 + share[:-2] * left**2 + share[1:-1] * middle**2 + share[2:] * right**2
    if inner > 1:
        band[1, :-1] = h[1:-1] / 6.0 + share[1:-2] * middle[:-1] * left[1:] + share[2:-1] * right[:-1] * middle[1:]
    if inner > 2:
        band[2, :-2] = share[2:-2] * right[:-2] * left[2:]
    slope = np.diff(values, axis=0) / h[:, None]
    bend = np.zeros_like(values)
    try:
        bend[1:-1] = solveh_banded(band, np.diff(slope, axis=0), lower=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        shortest, longest = float(h.min()), float(h.max())
        raise MotionError(
            "rows too uneven to smooth: shortest and longest spacing (s)",
            (shortest, longest),
            remedy="leave out rows that nearly repeat the time before",
        ) from error

    g = values.copy()
    jerk = np.diff(bend, axis=0) / h[:, None]
    g[1:-1] -= share[1:-1, None] * np.diff(jerk, axis=0)
    g[0] -= share[0] * jerk[0]
    g[-1] += share[-1] * jerk[-1]
    coefficients = np.empty((h.shape[0], 4, values.shape[1]))
    coefficients[:, 0] = jerk / 6.0
    coefficients[:, 1] = bend[:-1] / 2.0
    coefficients[:, 2] = np.diff(g, axis=0) / h[:, None] - h[:, None] * (2.0 * bend[:-1] + bend[1:]) / 6.0
    coefficients[:, 3] = g[:-1]
    return coefficients
