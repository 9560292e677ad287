"""A first ellipsoid from sums of powers: one pass over the readings, right on average whatever their noise.

    q(u) = u' Q u + l' u + c = 0,   u = (m - shift) / unit,   b = -Q^-1 l / 2,   A^-2 = Q / (b' Q b - c)

m = b + A v, |v| = 1. Least squares of q alone is wrong however many readings there are: the noise does not average out
of fourth powers. With e ~ N(0, s) in each axis the mean of h_k(u) is the power without noise, u_true^k, where h is
Hermite's: u, u^2 - s, u^3 - 3 s u, u^4 - 6 s u^2 + 3 s^2. So Psi(s), the 10 x 10 mean of products of the ten monomials
put right in that way, has the true (Q, l, c) in its null space at the true s, which is the first s at which it becomes
singular. Source: Markovsky, Kukush, Van Huffel, Consistent least squares fitting of ellipsoids, Numerische Mathematik
98 (2004) 177-194; Kukush, Markovsky, Van Huffel, Computational Statistics & Data Analysis 47 (2004) 123-147.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from navsense.kernels import kernel
from navsense.typing import FloatArray, IntArray, Vectors

DEGREE: Final = 4

EXPONENTS: Final = tuple(
    (a, b, c) for a in range(DEGREE + 1) for b in range(DEGREE + 1 - a) for c in range(DEGREE + 1 - a - b)
)
"""Powers of x, y and z in each of the 35 sums."""

INDEX: Final[dict[tuple[int, ...], int]] = {powers: place for place, powers in enumerate(EXPONENTS)}

QUADRIC: Final = (
    (2, 0, 0),
    (1, 1, 0),
    (1, 0, 1),
    (0, 2, 0),
    (0, 1, 1),
    (0, 0, 2),
    (1, 0, 0),
    (0, 1, 0),
    (0, 0, 1),
    (0, 0, 0),
)
"""The monomials of q: six of Q, three of l, and c."""

SPHERE: FloatArray = np.zeros((10, 5))
"""Columns are the monomials of a sphere: x^2 + y^2 + z^2, x, y, z, 1."""
SPHERE[[0, 3, 5], 0] = 1.0
SPHERE[6:, 1:] = np.eye(4)

HERMITE: Final = {0: (1,), 1: (1,), 2: (1, -1), 3: (1, -3), 4: (1, -6, 3)}
"""h_k: the factors of u^k, s u^(k-2), s^2 u^(k-4)."""

ROUNDS: Final = 100

MAX_AXIS_RATIO: Final = 1e3
"""Longest over shortest axis beyond which a first ellipsoid is none."""


@kernel
def add_powers(field: Vectors, shift: FloatArray, unit: float, sums: FloatArray) -> None:
    """Add the powers of (field - shift) / unit to the 35 sums, in the order of `EXPONENTS`."""
    for i in range(field.shape[0]):
        x = (field[i, 0] - shift[0]) / unit
        y = (field[i, 1] - shift[1]) / unit
        z = (field[i, 2] - shift[2]) / unit
        place = 0
        px = 1.0
        for a in range(5):
            py = px
            for b in range(5 - a):
                power = py
                for _ in range(5 - a - b):
                    sums[place] += power
                    power = power * z
                    place += 1
                py = py * y
            px = px * x


@cache
def _binomials() -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Return for every term of (u - c)^p: which sum it is for, of which it is a share, its factor, the power of -c."""
    terms = [
        (
            place,
            INDEX[lower],
            math.prod(math.comb(power, low) for power, low in zip(powers, lower, strict=True)),
            [power - low for power, low in zip(powers, lower, strict=True)],
        )
        for place, powers in enumerate(EXPONENTS)
        for lower in product(*(range(power + 1) for power in powers))
    ]
    to, of, factor, left = zip(*terms, strict=True)
    return np.array(to), np.array(of), np.array(factor, dtype=np.float64), np.array(left)


def shift_powers(sums: FloatArray, shift: FloatArray, unit: float) -> FloatArray:
    """Return the 35 sums of (u - shift) / unit from those of u."""
    to, of, factor, left = _binomials()
    share = factor * np.prod((-shift) ** left, axis=1) * sums[of]
    return np.bincount(to, share, len(EXPONENTS)) / unit ** np.array([sum(powers) for powers in EXPONENTS])


@cache
def _noise_polynomial_tensor() -> FloatArray:
    """Return (3, 10, 10, 35): what P0, P1 and P2 are of the 35 means."""
    parts = np.zeros((3, 10, 10, len(EXPONENTS)))
    for (row, first), (column, second) in product(enumerate(QUADRIC), enumerate(QUADRIC)):
        powers = [one + other for one, other in zip(first, second, strict=True)]
        for taken in product(*(range(len(HERMITE[power])) for power in powers)):
            share = math.prod(HERMITE[power][low] for power, low in zip(powers, taken, strict=True))
            left = tuple(power - 2 * low for power, low in zip(powers, taken, strict=True))
            parts[sum(taken), row, column, INDEX[left]] += share
    return parts


def noise_polynomial(means: FloatArray) -> FloatArray:
    """Return P0, P1 and P2 (3, 10, 10) of Psi(s) = P0 + s P1 + s^2 P2, of the 35 means."""
    return np.asarray(_noise_polynomial_tensor() @ means)


class InitialEllipsoid(NamedTuple):
    """An ellipsoid to start from: centre (3,) and symmetric matrix (3, 3) of its axes."""

    centre: FloatArray
    matrix: FloatArray


class ReadingSpread(NamedTuple):
    """Mean (3,) of readings; variances (3,) along axes, rising, and the axes, the columns of a matrix (3, 3)."""

    mean: FloatArray
    variances: FloatArray
    axes: FloatArray


def compute_spread(sums: FloatArray) -> ReadingSpread:
    """Return where the readings lie, from their sums."""
    means = sums / sums[INDEX[0, 0, 0]]
    mean = np.array([means[INDEX[1, 0, 0]], means[INDEX[0, 1, 0]], means[INDEX[0, 0, 1]]])
    second = np.empty((3, 3))
    for row, column in product(range(3), range(3)):
        powers = [0, 0, 0]
        powers[row] += 1
        powers[column] += 1
        second[row, column] = means[INDEX[powers[0], powers[1], powers[2]]] - mean[row] * mean[column]
    variances, axes = np.linalg.eigh(second)
    return ReadingSpread(mean, np.maximum(variances, 0.0), axes)


def find_null_vector(parts: FloatArray, limit: float) -> FloatArray:
    """Return the null vector of P0 + s P1 + s^2 P2 at the first s >= 0 at which it is singular; s at most `limit`."""
    zero, one, two = parts

    def least(s: float) -> tuple[float, FloatArray]:
        values, vectors = np.linalg.eigh(zero + s * one + s * s * two)
        return float(values[0]), np.asarray(vectors[:, 0])

    low, high, s = 0.0, limit, 0.0
    value, vector = least(s)
    for _ in range(ROUNDS):
        if value > 0.0:
            low = s
        else:
            high = s
        slope = float(vector @ (one + 2.0 * s * two) @ vector)
        guess = s - value / slope if slope < 0.0 else math.inf
        guess = guess if low < guess < high else 0.5 * (low + high)
        if abs(guess - s) <= 1e-15 * limit:
            break
        s = guess
        value, vector = least(s)
    return vector


def _quadric_to_ellipsoid(vector: FloatArray) -> InitialEllipsoid | None:
    """Return the ellipsoid of the ten numbers of q, None where it is another surface."""
    xx, xy, xz, yy, yz, zz = vector[:6]
    quadratic = np.array([[xx, xy / 2, xz / 2], [xy / 2, yy, yz / 2], [xz / 2, yz / 2, zz]])
    quadratic, linear, rest = (
        (quadratic, vector[6:9], vector[9]) if np.trace(quadratic) > 0 else (-quadratic, -vector[6:9], -vector[9])
    )
    values, axes = np.linalg.eigh(quadratic)
    if values[0] <= values[2] / MAX_AXIS_RATIO**2:
        return None
    centre = -0.5 * axes @ ((axes.T @ linear) / values)
    size = float(centre @ quadratic @ centre - rest)
    if size <= 0.0 or not np.all(np.isfinite(centre)):
        return None
    return InitialEllipsoid(centre, (axes * np.sqrt(size / values)) @ axes.T)


def initial_ellipsoid(sums: FloatArray, *, soft_iron: bool) -> InitialEllipsoid:
    """Return the ellipsoid, or without soft iron the sphere, that the sums speak for.

    Where they speak for another surface, a sphere; where there is none either, the one about their mean.
    """
    spread = compute_spread(sums)
    unit = math.sqrt(float(spread.variances.sum()))
    parts = noise_polynomial(shift_powers(sums, spread.mean, unit) / sums[INDEX[0, 0, 0]])
    limit = float(spread.variances[0]) / unit**2
    found = _quadric_to_ellipsoid(find_null_vector(parts, limit)) if soft_iron else None
    if found is None:
        found = _quadric_to_ellipsoid(SPHERE @ find_null_vector(SPHERE.T @ parts @ SPHERE, limit))
    if found is None or np.trace(found.matrix) > MAX_AXIS_RATIO:
        found = InitialEllipsoid(np.zeros(3), np.eye(3))
    return InitialEllipsoid(spread.mean + unit * found.centre, unit * found.matrix)
