"""Splines of position and attitude, and the kernel that evaluates them.

A row of values is seven numbers: position (m, world) and quaternion w x y z, of unit length at the knots only.
On segment i, with x = t - knots[i], column j is ``sum over k of coefficients[i, k, j] x^(degree - k)``.
A cubic spline stores two numbers per column and knot. `expand` computes the four coefficients of a segment from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from navsense.core.errors import MotionError, Where
from navsense.core.intervals import find_interval
from navsense.core.kernels import kernel
from navsense.core.rotation import multiply
from navsense.core.typing import FloatArray, Quaternions, Times, Vectors

BLOCK = 20_000
"""Rows that are processed at once."""

POLYNOMIALS, FIRST_DERIVATIVES, SECOND_DERIVATIVES = 0, 1, 2
"""Form of a spline array: coefficients, values and first derivatives, or values and second derivatives at the knots."""


@dataclass(frozen=True, eq=False)
class Spline:
    """A spline: `rows` is an array in one of the three forms, (n, 2, 7) for a cubic spline of n knots."""

    rows: FloatArray
    form: int


@kernel
def expand(knots: Times, rows: FloatArray, form: int, segment: int, coefficients: FloatArray) -> None:
    """Write the coefficients (degree + 1, 7) of one segment with the order of operations of SciPy's cubic splines."""
    if form == POLYNOMIALS:
        for power in range(coefficients.shape[0]):
            for column in range(7):
                coefficients[power, column] = rows[segment, power, column]
        return
    h = knots[segment + 1] - knots[segment]
    if form == FIRST_DERIVATIVES:
        for column in range(7):
            value, start, end = rows[segment, 0, column], rows[segment, 1, column], rows[segment + 1, 1, column]
            slope = (rows[segment + 1, 0, column] - value) / h
            curvature = (start + end - 2.0 * slope) / h
            coefficients[0, column] = curvature / h
            coefficients[1, column] = (slope - start) / h - curvature
            coefficients[2, column] = start
            coefficients[3, column] = value
        return
    for column in range(7):
        value, start, end = rows[segment, 0, column], rows[segment, 1, column], rows[segment + 1, 1, column]
        slope = (rows[segment + 1, 0, column] - value) / h
        coefficients[0, column] = (end - start) / h / 6.0
        coefficients[1, column] = start / 2.0
        coefficients[2, column] = slope - h * (2.0 * start + end) / 6.0
        coefficients[3, column] = value


@kernel
def count_powers(rows: FloatArray, form: int) -> int:
    """Return the number of coefficients of one column and segment."""
    return rows.shape[1] if form == POLYNOMIALS else 4


@kernel
def expand_all(knots: Times, rows: FloatArray, form: int, coefficients: FloatArray) -> None:
    """Write the coefficients (m, degree + 1, 7) of all segments."""
    for segment in range(coefficients.shape[0]):
        expand(knots, rows, form, segment, coefficients[segment])


@kernel
def horner(coefficients: FloatArray, column: int, x: float) -> tuple[float, float, float]:
    """Return the value and the first and second derivative of one column, x (s) after the start of a segment."""
    value, first, second = coefficients[0, column], 0.0, 0.0
    for power in range(1, coefficients.shape[0]):
        second = second * x + first
        first = first * x + value
        value = value * x + coefficients[power, column]
    return value, first, 2.0 * second


@kernel
def evaluate(
    knots: Times,
    rows: FloatArray,
    form: int,
    period: float,
    time: Times,
    position: Vectors,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    acceleration: Vectors,
    alpha: Vectors,
) -> None:
    """Write the motion at each time (s), modulo `period` (s).

    With the spline s of the quaternion: q = s/|s|, omega = 2 Im(s* s')/|s|^2 and
    alpha = 2 Im(s* s'')/|s|^2 - 2 omega (s . s')/|s|^2, both in the body frame.
    """
    coefficients = np.empty((count_powers(rows, form), 7))
    segment, expanded = 0, -1
    for i in range(time.shape[0]):
        instant = time[i]
        if instant >= period:
            instant = instant % period
        segment = find_interval(knots, instant, segment)
        if segment != expanded:
            expand(knots, rows, form, segment, coefficients)
            expanded = segment
        x = instant - knots[segment]
        for axis in range(3):
            value, first, second = horner(coefficients, axis, x)
            position[i, axis], velocity[i, axis], acceleration[i, axis] = value, first, second

        w, dw, ddw = horner(coefficients, 3, x)
        a, da, dda = horner(coefficients, 4, x)
        b, db, ddb = horner(coefficients, 5, x)
        c, dc, ddc = horner(coefficients, 6, x)
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
def first_not_finite(knots: Times, rows: FloatArray, form: int) -> int:
    """Return the first segment with a coefficient that is not finite, or -1."""
    coefficients = np.empty((count_powers(rows, form), 7))
    for segment in range(knots.shape[0] - 1):
        expand(knots, rows, form, segment, coefficients)
        for power in range(coefficients.shape[0]):
            for column in range(7):
                if not math.isfinite(coefficients[power, column]):
                    return segment
    return -1


@kernel
def find_short_quaternion(knots: Times, rows: FloatArray, form: int, allowed: float) -> int:
    """Return the first segment in which |s| is below `allowed` times its maximum at one of nine points, or -1.

    Near |s| = 0 the angular velocity is unbounded.
    """
    coefficients = np.empty((count_powers(rows, form), 7))
    for segment in range(knots.shape[0] - 1):
        expand(knots, rows, form, segment, coefficients)
        step = (knots[segment + 1] - knots[segment]) / 8.0
        smallest, largest = math.inf, 0.0
        for point in range(9):
            square = 0.0
            for column in range(3, 7):
                value, _, _ = horner(coefficients, column, point * step)
                square += value * value
            smallest = min(smallest, square)
            largest = max(largest, square)
        # This form also detects NaN.
        if not (smallest > 0.0 and smallest >= allowed * allowed * largest):
            return segment
    return -1


def make_continuous(
    rotation: Quaternions, noun: str, remedy: str, find_line: Callable[[int], Where | None] = lambda _: None
) -> None:
    """Make the signs of quaternions (n, 4) continuous. Raises `MotionError` for a turn of more than 120 degrees.

    The angular velocity of a spline of the components is uneven over a larger turn. Beyond 180 degrees the spline turns
    in the opposite direction. `noun` is the word for a row in an error, `find_line` returns its place in the file.
    """
    cosine = np.empty(rotation.shape[0] - 1)
    for rows in split_rows(cosine.shape[0]):
        part = rotation[rows.start : rows.stop + 1]
        cosine[rows] = (part[1:] * part[:-1]).sum(axis=1)
    large = np.flatnonzero(np.abs(cosine) < 0.5 - 1e-9)
    signs = np.where(cosine < 0.0, -1.0, 1.0)
    np.cumprod(signs, out=signs)
    rotation[1:] *= signs[:, None]
    if large.size:
        row = int(large[0]) + 1
        what, where = f"turn from {noun} {row - 1} to {row} (degrees)", find_line(row)
        angle = 2.0 * math.acos(min(abs(float(np.dot(rotation[row], rotation[row - 1]))), 1.0))
        raise MotionError(what, round(math.degrees(angle), 6), allowed="must be <= 120", where=where, remedy=remedy)


def split_rows(count: int) -> Iterator[slice]:
    """Yield slices of at most `BLOCK` rows that cover `count` rows."""
    for first in range(0, count, BLOCK):
        yield slice(first, min(first + BLOCK, count))


def interpolate(time: Times, rows: FloatArray, ends: str) -> Spline:
    """Return the cubic C2 spline through the values `rows[:, 0]` of `rows` (n, 2, 7) at `time` (n,) s.

    The slopes are written to `rows[:, 1]`. They equal those of SciPy's `CubicSpline` bit for bit. `ends` is its
    boundary condition: "clamped" (at rest), "periodic" or "not-a-knot".

    Raises `MotionError` if the numbers overflow.
    """
    dx = np.diff(time)
    solve = _solve_parabola if ends == "not-a-knot" and time.shape[0] == 3 else _solve_derivatives
    try:
        # After an overflow, SciPy raises an error or returns numbers that are not finite.
        with np.errstate(all="ignore"):
            for column in range(rows.shape[2]):
                values, slopes = rows[:, 0, column], rows[:, 1, column]
                if ends == "periodic":
                    from scipy.interpolate import CubicSpline  # heavy, and only needed here

                    slopes[:-1] = CubicSpline(time, values, bc_type=ends).c[2]
                    slopes[-1] = slopes[0]
                else:
                    slopes[:] = solve(time, dx, values, clamped=ends == "clamped")
                if not np.isfinite(slopes).all():
                    raise ValueError("slopes that are not finite")  # noqa: TRY301
    except (ValueError, np.linalg.LinAlgError) as error:
        remedy = "move the times apart or the positions nearer"
        raise MotionError("no finite spline goes through the positions", remedy=remedy) from error
    return Spline(rows, FIRST_DERIVATIVES)


def _solve_derivatives(time: Times, dx: FloatArray, values: FloatArray, *, clamped: bool) -> FloatArray:
    """Return the slopes (n,) of the cubic C2 spline through `values` (n,), clamped or not-a-knot with n = 2 or n > 3.

    ``dx[i] s[i-1] + 2 (dx[i-1] + dx[i]) s[i] + dx[i-1] s[i+1] = 3 (dx[i] slope[i-1] + dx[i-1] slope[i])``
    """
    from scipy.linalg.lapack import dgtsv  # heavy, and only needed here

    count = time.shape[0]
    slope = np.diff(values)
    slope /= dx
    lower, diagonal, upper, right = np.zeros(count - 1), np.ones(count), np.zeros(count - 1), np.zeros(count)
    np.add(dx[:-1], dx[1:], out=diagonal[1:-1])
    diagonal[1:-1] *= 2.0
    lower[:-1], upper[1:] = dx[1:], dx[:-1]
    if not clamped and count == 2:
        right[:] = slope[0]
    elif not clamped:
        diagonal[0], diagonal[-1] = dx[1], dx[-2]
        upper[0], lower[-1] = time[2] - time[0], time[-1] - time[-3]
        d = upper[0]
        right[0] = ((dx[0] + 2 * d) * dx[1] * slope[0] + dx[0] ** 2 * slope[1]) / d
        d = lower[-1]
        right[-1] = (dx[-1] ** 2 * slope[-2] + (2 * d + dx[-1]) * dx[-2] * slope[-1]) / d
    np.multiply(dx[1:], slope[:-1], out=right[1:-1])
    slope[1:] *= dx[:-1]
    right[1:-1] += slope[1:]
    right[1:-1] *= 3.0
    flags = dict.fromkeys(("overwrite_dl", "overwrite_d", "overwrite_du", "overwrite_b"), 1)
    *_, solution, info = dgtsv(lower, diagonal, upper, right, **flags)
    if info:
        raise np.linalg.LinAlgError("singular matrix")
    return np.asarray(solution).reshape(-1)


def _solve_parabola(_time: Times, dx: FloatArray, values: FloatArray, **_ends: bool) -> FloatArray:
    """Return the slopes (3,) of the parabola through three values, the not-a-knot spline of three knots."""
    from scipy.linalg import solve  # heavy, and only needed here

    slope = np.diff(values) / dx
    matrix = np.array([[1.0, 1.0, 0.0], [dx[1], 2.0 * (dx[0] + dx[1]), dx[0]], [0.0, 1.0, 1.0]])
    right = np.array([2.0 * slope[0], 3.0 * (dx[0] * slope[1] + dx[1] * slope[0]), 2.0 * slope[1]])
    return np.asarray(solve(matrix, right[:, None], check_finite=False))[:, 0]


def smooth(time: Times, rows: FloatArray, bandwidth: float) -> Spline:
    """Return the smoothing spline g of the values `rows[:, 0]` of `rows` (n, 2, 7) at `time` (n,) s, n >= 3.

    g and g'' at the knots are written to `rows`.

    g minimises ``sum of w_i |values_i - g(t_i)|^2 + lambda * integral of |g''|^2`` with the local spacing w (s) and
    ``lambda = (2 pi bandwidth)^-4``. The gain for a well sampled sinusoid of frequency f (Hz) is
    ``1 / (1 + (f / bandwidth)^4)``, independent of the rate of the log: one half at `bandwidth`.

    The second derivatives at the knots solve a system with five diagonals (Reinsch, Smoothing by spline functions,
    Numer. Math. 10, 1967): ``(R + lambda Q^T W^-1 Q) g'' = Q^T values``, ``g = values - lambda W^-1 Q g''``.

    Raises `MotionError` if rounding errors leave no solution because the spacing is too uneven.
    """
    from scipy.linalg import cho_solve_banded, cholesky_banded  # heavy, and only needed here

    h = np.diff(time)
    penalty = _compute_penalty(h, bandwidth)
    try:
        factor = cholesky_banded(_make_band_matrix(h, penalty), overwrite_ab=True, lower=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        what, spacings = "rows too uneven to smooth: shortest and longest spacing (s)", (float(h.min()), float(h.max()))
        raise MotionError(what, spacings, remedy="remove rows with nearly the time of the row before") from error
    rows[0, 1], rows[-1, 1] = 0.0, 0.0
    for column in range(rows.shape[2]):
        g, curvature = rows[:, 0, column], rows[:, 1, column]
        slope = np.diff(g)
        slope /= h
        curvature[1:-1] = cho_solve_banded((factor, True), np.diff(slope), overwrite_b=True, check_finite=False)
        jerk = np.diff(curvature)
        jerk /= h
        g[0] -= penalty[0] * jerk[0]
        g[-1] += penalty[-1] * jerk[-1]
        change = np.diff(jerk)
        change *= penalty[1:-1]
        g[1:-1] -= change
    return Spline(rows, SECOND_DERIVATIVES)


def _compute_penalty(h: FloatArray, bandwidth: float) -> FloatArray:
    """Return lambda / w (n,) for spacings `h` (n - 1,) s, with w the local spacing (s)."""
    smoothing = (2.0 * math.pi * bandwidth) ** -4
    penalty = np.empty(h.shape[0] + 1)
    penalty[0], penalty[-1] = 2.0 * smoothing / h[0], 2.0 * smoothing / h[-1]
    penalty[1:-1] = 2.0 * smoothing / (h[:-1] + h[1:])
    return penalty


def _make_band_matrix(h: FloatArray, penalty: FloatArray) -> FloatArray:
    """Return the lower diagonals of ``R + lambda Q^T W^-1 Q`` in the order of LAPACK."""
    inverse = 1.0 / h
    left, right = inverse[:-1], inverse[1:]
    middle = -(left + right)
    inner = h.shape[0] - 1
    band = np.zeros((min(3, inner), inner), order="F")
    band[0] = (h[:-1] + h[1:]) / 3.0 + penalty[:-2] * left**2 + penalty[1:-1] * middle**2 + penalty[2:] * right**2
    if inner > 1:
        band[1, :-1] = h[1:-1] / 6.0 + penalty[1:-2] * middle[:-1] * left[1:] + penalty[2:-1] * right[:-1] * middle[1:]
    if inner > 2:
        band[2, :-2] = penalty[2:-2] * right[:-2] * left[2:]
    return band
