"""A consistent first ellipsoid from power sums, in one pass over the readings, for any noise level.

    q(u) = u' Q u + l' u + c = 0,   u = (m - shift) / unit,   b = -Q^-1 l / 2,   A^-2 = Q / (b' Q b - c)

m = b + A v, |v| = 1. Plain least squares of q has a bias for any number of readings, because noise does not average out
of fourth powers. For e ~ N(0, s) in each axis, the mean of the Hermite polynomial h_k(u) is the power u_true^k without
noise: u, u^2 - s, u^3 - 3 s u, u^4 - 6 s u^2 + 3 s^2. Psi(s) is the 10 x 10 mean of products of the ten monomials with
this correction. At the true s, (Q, l, c) is its null vector. The true s is the smallest one for which Psi is singular.

Source: Markovsky, Kukush, Van Huffel, Consistent least squares fitting of ellipsoids, Numerische Mathematik 98 (2004)
177-194; Kukush, Markovsky, Van Huffel, Computational Statistics & Data Analysis 47 (2004) 123-147.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, IntArray, Vectors

DEGREE: Final = 4

EXPONENTS: Final = tuple(
    (a, b, c) for a in range(DEGREE + 1) for b in range(DEGREE + 1 - a) for c in range(DEGREE + 1 - a - b)
)
"""Exponents of x, y and z in each of the 35 sums."""

INDEX: Final[dict[tuple[int, ...], int]] = {powers: index for index, powers in enumerate(EXPONENTS)}

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
"""Exponents of the monomials of q: six of Q, three of l, and c."""

SPHERE: FloatArray = np.zeros((10, 5))
"""Columns: the monomials of a sphere, x^2 + y^2 + z^2, x, y, z, 1."""
SPHERE[[0, 3, 5], 0] = 1.0
SPHERE[6:, 1:] = np.eye(4)

HERMITE: Final = {0: (1,), 1: (1,), 2: (1, -1), 3: (1, -3), 4: (1, -6, 3)}
"""h_k: factors of u^k, s u^(k-2), s^2 u^(k-4)."""

MAX_ROUNDS: Final = 100

MAX_AXIS_RATIO: Final = 1e3
"""Largest ratio between the axes of a first ellipsoid."""


@kernel
def add_powers(field: Vectors, sums: FloatArray) -> None:
    """Add the powers of field (n, 3) to the 35 sums, in the order of `EXPONENTS`."""
    for i in range(field.shape[0]):
        x, y, z = field[i, 0], field[i, 1], field[i, 2]
        index, px = 0, 1.0
        for a in range(5):
            py = px
            for b in range(5 - a):
                power = py
                for _ in range(5 - a - b):
                    sums[index] += power
                    power = power * z
                    index += 1
                py = py * y
            px = px * x


@cache
def _expand_binomials() -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Return for each term of (u - c)^p: index of the result, index of the power of u, factor, exponents of -c."""
    terms = [
        (
            target,
            INDEX[lower],
            math.prod(math.comb(power, low) for power, low in zip(powers, lower, strict=True)),
            [power - low for power, low in zip(powers, lower, strict=True)],
        )
        for target, powers in enumerate(EXPONENTS)
        for lower in product(*(range(power + 1) for power in powers))
    ]
    target, source, factor, exponents = zip(*terms, strict=True)
    return np.array(target), np.array(source), np.array(factor, dtype=np.float64), np.array(exponents)


def shift_powers(sums: FloatArray, shift: FloatArray, unit: float) -> FloatArray:
    """Return the 35 sums of (u - shift) / unit from those of u."""
    target, source, factor, exponents = _expand_binomials()
    terms = factor * np.prod((-shift) ** exponents, axis=1) * sums[source]
    return np.bincount(target, terms, len(EXPONENTS)) / unit ** np.array([sum(powers) for powers in EXPONENTS])


@cache
def _make_noise_polynomial_tensor() -> FloatArray:
    """Return the tensor (3, 10, 10, 35) from the 35 means to P0, P1 and P2."""
    parts = np.zeros((3, 10, 10, len(EXPONENTS)))
    for (row, first), (column, second) in product(enumerate(QUADRIC), enumerate(QUADRIC)):
        powers = [one + other for one, other in zip(first, second, strict=True)]
        for terms in product(*(range(len(HERMITE[power])) for power in powers)):
            factor = math.prod(HERMITE[power][term] for power, term in zip(powers, terms, strict=True))
            exponents = tuple(power - 2 * term for power, term in zip(powers, terms, strict=True))
            parts[sum(terms), row, column, INDEX[exponents]] += factor
    return parts


def compute_noise_polynomial(means: FloatArray) -> FloatArray:
    """Return P0, P1 and P2 (3, 10, 10) of Psi(s) = P0 + s P1 + s^2 P2 from the 35 means."""
    return np.asarray(_make_noise_polynomial_tensor() @ means)


class InitialEllipsoid(NamedTuple):
    """Start of a fit: centre (3,) and symmetric matrix A (3, 3)."""

    centre: FloatArray
    matrix: FloatArray


class ReadingSpread(NamedTuple):
    """Mean (3,) of readings; variances (3,) along their principal axes, rising; the axes, columns of (3, 3)."""

    mean: FloatArray
    variances: FloatArray
    axes: FloatArray


def compute_spread(sums: FloatArray) -> ReadingSpread:
    """Return mean and principal axes of the readings from their sums."""
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
    """Return the null vector of P0 + s P1 + s^2 P2 at the first s from 0 to `limit` for which it is singular."""
    zero, one, two = parts

    def smallest_eigenpair(s: float) -> tuple[float, FloatArray]:
        values, vectors = np.linalg.eigh(zero + s * one + s * s * two)
        return float(values[0]), np.asarray(vectors[:, 0])

    low, high, s = 0.0, limit, 0.0
    value, vector = smallest_eigenpair(s)
    for _ in range(MAX_ROUNDS):
        if value > 0.0:
            low = s
        else:
            high = s
        slope = float(vector @ (one + 2.0 * s * two) @ vector)
        following = s - value / slope if slope < 0.0 else math.inf
        following = following if low < following < high else 0.5 * (low + high)
        if abs(following - s) <= 1e-15 * limit:
            break
        s = following
        value, vector = smallest_eigenpair(s)
    return vector


def _quadric_to_ellipsoid(vector: FloatArray) -> InitialEllipsoid | None:
    """Return the ellipsoid of the ten numbers of q, None if they define another surface."""
    xx, xy, xz, yy, yz, zz = vector[:6]
    quadratic = np.array([[xx, xy / 2, xz / 2], [xy / 2, yy, yz / 2], [xz / 2, yz / 2, zz]])
    quadratic, linear, constant = (
        (quadratic, vector[6:9], vector[9]) if np.trace(quadratic) > 0 else (-quadratic, -vector[6:9], -vector[9])
    )
    values, axes = np.linalg.eigh(quadratic)
    if values[0] <= values[2] / MAX_AXIS_RATIO**2:
        return None
    centre = -0.5 * axes @ ((axes.T @ linear) / values)
    size = float(centre @ quadratic @ centre - constant)
    if size <= 0.0 or not np.all(np.isfinite(centre)):
        return None
    return InitialEllipsoid(centre, (axes * np.sqrt(size / values)) @ axes.T)


def estimate_initial_ellipsoid(sums: FloatArray, *, soft_iron: bool) -> InitialEllipsoid:
    """Return the ellipsoid of the sums, or without soft iron the sphere.

    If the sums define another surface, return a sphere; if they define none, a sphere about their mean.
    """
    spread = compute_spread(sums)
    unit = math.sqrt(float(spread.variances.sum()))
    parts = compute_noise_polynomial(shift_powers(sums, spread.mean, unit) / sums[INDEX[0, 0, 0]])
    limit = float(spread.variances[0]) / unit**2
    scaled = _quadric_to_ellipsoid(find_null_vector(parts, limit)) if soft_iron else None
    if scaled is None:
        scaled = _quadric_to_ellipsoid(SPHERE @ find_null_vector(SPHERE.T @ parts @ SPHERE, limit))
    if scaled is None or np.trace(scaled.matrix) > MAX_AXIS_RATIO:
        scaled = InitialEllipsoid(np.zeros(3), np.eye(3))
    return InitialEllipsoid(spread.mean + unit * scaled.centre, unit * scaled.matrix)
