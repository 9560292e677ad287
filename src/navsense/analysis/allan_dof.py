"""Equivalent degrees of freedom of an Allan variance that was estimated from one record.

An estimate is the mean of M squares of stationary Gaussian differences z_i of the phase. With s(k) = <z_i z_(i+k)>::

    V = 1/M sum_i z_i^2,   var V = 2/M sum_(|k|<M) (1 - |k|/M) s(k)^2,   dof = 2 <V>^2 / var V

and dof * V / <V> is approximately chi-squared. For differences of order d with the averaging factor m, s follows from
the generalised autocovariance g of the phase (the autocovariance up to a polynomial, which cancels in differences)::

    s(k) = sum_(j=-d..d) (-1)^j C(2d, d+j) g(k + j m)

The covariance of two estimates with the factors m and n has the same form. Sums over lags are exact near the kinks of
s. Between them they use a Gaussian rule for integers: a million lags cost some hundred values.

For power-law noise of exponent a (spectrum of the frequency ~ f^a), g is that of Greenhall and Riley, "Uncertainty of
stability variances based on finite differences", PTTI 2003, equations 7 to 11, as in NIST SP 1065, section 5.3. They
take all phases as means over a sample. Here the phases of frequency noises (a <= 0) are points, as sums of readings
are, and a mean over the averaging time is one of m points where that has a closed form (even a). This is exact for
white frequency noise, where theirs is up to 17 percent off for factors of some samples; for large factors both agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np

from navsense.core.typing import FloatArray

Covariance = Callable[[FloatArray], FloatArray]
"""Generalised autocovariance of the phase: lags (any shape) in samples -> values."""

LAGS_AFTER_KINK = 8
"""Averaging times after the last kink at which sums over lags end: power laws have decayed there."""

NODES = 5
"""Nodes of the Gaussian rules: exact for polynomials up to degree 9 over an interval of integers."""

MAX_EXACT_COUNT = 64
"""Integers up to which an interval has an exact rule; a longer sum is an integral, to a part in 10^5."""

LEGENDRE_RULE = np.polynomial.legendre.leggauss(NODES)

POINT_CORRECTIONS = {0: ((1, -1.0),), -2: ((3, -5.0 / 3.0), (1, 2.0 / 3.0))}
"""Exponent -> (power, factor) of the lower powers by which a sum over points differs from the integral."""


@lru_cache(maxsize=MAX_EXACT_COUNT)
def _make_gauss_gram_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights (5,) of the sum over the integers 0 to count - 1 (Gauss-Gram quadrature)."""
    k = np.arange(1.0, NODES)
    side = 0.5 * k * np.sqrt((count * count - k * k) / (4.0 * k * k - 1.0))
    nodes, vectors = np.linalg.eigh(np.diag(side, 1) + np.diag(side, -1))
    return nodes + 0.5 * (count - 1), count * vectors[0] ** 2


def make_sum_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the sum of a smooth function over the integers 0 to count - 1."""
    if count <= NODES:
        return np.arange(float(count)), np.ones(count)
    if count <= MAX_EXACT_COUNT:
        return _make_gauss_gram_rule(count)
    nodes, weights = LEGENDRE_RULE
    return 0.5 * (count - 1 + count * nodes), 0.5 * count * weights


@lru_cache(maxsize=64)
def _make_doubling_rule(doublings: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the sum over 0 to 2^doublings - 1, by intervals of 1, 1, 2, 4, ... integers."""
    nodes, weights, start = [], [], 0
    for size in (1, *(1 << power for power in range(doublings))):
        inner_nodes, inner_weights = make_sum_rule(size)
        nodes.append(start + inner_nodes)
        weights.append(inner_weights)
        start += size
    return np.concatenate(nodes), np.concatenate(weights)


def make_interval_rule(first: int, last: int) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return nodes and weights of the sum over the integers first to last, dense at both ends."""
    count = last - first + 1
    if count < 2 * NODES:
        return [first + np.arange(float(count))], [np.ones(count)]
    doublings = (count // 2).bit_length() - 1
    end_nodes, end_weights = _make_doubling_rule(doublings)
    middle_nodes, middle_weights = make_sum_rule(count - (2 << doublings))
    nodes = [first + end_nodes, first + (1 << doublings) + middle_nodes, last - end_nodes]
    return nodes, [end_weights, middle_weights, end_weights]


def make_lag_rule(kinks: Iterable[int], low: int, high: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights (p,) of the sum over low to high of a function that is smooth between kinks."""
    edges = sorted({low, high, *(kink for kink in kinks if low < kink < high)})
    nodes, weights = [np.array(edges, dtype=np.float64)], [np.ones(len(edges))]
    for start, end in pairwise(edges):
        inner_nodes, inner_weights = make_interval_rule(start + 1, end - 1)
        nodes += inner_nodes
        weights += inner_weights
    return np.concatenate(nodes), np.concatenate(weights)


def compute_difference_covariance(
    covariance: Covariance, lags: FloatArray, factor_1: int, factor_2: int, order: int
) -> FloatArray:
    """Return <z_i w_(i+k)> (p,) at the lags k: z, w are differences of `order` with `factor_1` and `factor_2`."""
    coefficients = [(-1) ** a * math.comb(order, a) for a in range(order + 1)]
    shifts: dict[int, int] = {}
    for a, coefficient_1 in enumerate(coefficients):
        for b, coefficient_2 in enumerate(coefficients):
            shift = b * factor_2 - a * factor_1
            shifts[shift] = shifts.get(shift, 0) + coefficient_1 * coefficient_2
    shifted_lags = lags + np.array(list(shifts), dtype=np.float64)[:, None]
    return np.asarray(np.array(list(shifts.values()), dtype=np.float64) @ covariance(shifted_lags))


def estimate_covariance(
    covariance: Covariance,
    factor_1: int,
    factor_2: int,
    phase_count: int,
    order: int = 2,
    means: tuple[float, float] = (0.0, 0.0),
) -> float:
    """Return the covariance of the mean squares of all differences with `factor_1` and `factor_2`.

    `means` are the means of the two differences (from a frequency ramp).
    """
    count_1, count_2 = phase_count - order * factor_1, phase_count - order * factor_2
    kinks = {a * factor_1 - b * factor_2 for a in range(order + 1) for b in range(order + 1)}
    max_lag = max(abs(kink) for kink in kinks) + LAGS_AFTER_KINK * max(factor_1, factor_2)
    lags, weights = make_lag_rule(kinks | {0, count_2 - count_1}, max(1 - count_1, -max_lag), min(count_2 - 1, max_lag))
    pair_counts = np.minimum(count_1, count_2 - lags) - np.maximum(0.0, -lags)
    covariances = compute_difference_covariance(covariance, lags, factor_1, factor_2, order)
    mean_product = 4.0 * means[0] * means[1]
    total = weights * pair_counts * (2.0 * covariances * covariances + mean_product * covariances)
    return float(np.sum(total)) / (float(count_1) * float(count_2))


def estimate_covariances(
    covariance: Covariance, factors: Sequence[int], phase_count: int, order: int = 2, means: FloatArray | None = None
) -> FloatArray:
    """Return the covariance (k, k) of the mean squares of overlapping differences with the factors (k,)."""
    if means is None:
        means = np.zeros(len(factors))
    matrix = np.empty((len(factors), len(factors)))
    for i, factor_1 in enumerate(factors):
        for j, factor_2 in enumerate(factors[: i + 1]):
            pair = (float(means[i]), float(means[j]))
            value = estimate_covariance(covariance, int(factor_1), int(factor_2), phase_count, order, pair)
            matrix[i, j] = matrix[j, i] = value
    return matrix


def _compute_summed_phase_covariance(lag: FloatArray, exponent: int, points: float = math.inf) -> FloatArray:
    """Return the generalised autocovariance of the summed phase (Greenhall and Riley, equation 7).

    lag: in averaging times
    points: points of an averaging time; infinite for the integral of the phase
    """
    size = np.abs(lag)
    degree = 3 - exponent
    if exponent % 2 == 0:
        corrections = POINT_CORRECTIONS.get(exponent, ())
        lower = ((size**power, factor / points ** (degree - power)) for power, factor in corrections)
        return np.asarray((-1.0) ** (exponent // 2) * (size**degree + sum(part * factor for part, factor in lower)))
    logarithm = np.log(np.where(size > 0.0, size, 1.0))
    return np.asarray((-1.0) ** ((1 - exponent) // 2) * size**degree * logarithm)


def _compute_phase_covariance(lag: FloatArray, exponent: int, factor: int, is_modified: bool) -> FloatArray:
    """Return the generalised autocovariance of the phase at lags in averaging times (equation 8).

    The phases are points, or means over one sample or, if `is_modified`, over `factor` samples.
    """
    if not is_modified and exponent <= 0:
        return _compute_summed_phase_covariance(lag, exponent + 2)
    filtered, points = (1, float(factor)) if is_modified else (factor, math.inf)
    summed = partial(_compute_summed_phase_covariance, exponent=exponent, points=points)
    return np.asarray(filtered**2 * (2.0 * summed(lag) - summed(lag - 1.0 / filtered) - summed(lag + 1.0 / filtered)))


@lru_cache(maxsize=65536)
def compute_power_law_dof(
    exponent: int, factor: int, phase_count: int, order: int = 2, *, stride: int = 1, is_modified: bool = False
) -> float:
    """Return the degrees of freedom of an estimate from phase values in power-law noise.

    exponent: from 2 (white phase) over 0 (white frequency) to 2 - 2 order
    factor: averaging factor m in samples
    order: 2 for Allan, 3 for Hadamard
    stride: 1 if the differences overlap, else `factor`
    """
    length = order * factor + (factor if is_modified else 1)
    count = 1 + (phase_count - length) // stride
    lags_per_tau = factor // stride
    kinks = [j * lags_per_tau for j in range(-order - 1, order + 2)]
    lags, weights = make_lag_rule(kinks, 0, min(count - 1, kinks[-1] + LAGS_AFTER_KINK * lags_per_tau))

    def compute_covariance(lag: FloatArray) -> FloatArray:
        """Return s(k)."""
        total = np.zeros_like(lag)
        for j in range(-order, order + 1):
            coefficient = (-1) ** j * math.comb(2 * order, order + j)
            total += coefficient * _compute_phase_covariance(lag / lags_per_tau + j, exponent, factor, is_modified)
        return total

    covariances = compute_covariance(lags)
    weights = np.where(lags > 0.0, 2.0, 1.0) * weights * (1.0 - lags / count)
    variance = float(compute_covariance(np.zeros(1))[0])
    return count * variance * variance / float(np.sum(weights * covariances * covariances))


TOTAL_COEFFICIENTS = {0: (1.50, 0.0), -1: (1.17, 0.22), -2: (0.93, 0.36)}
"""Exponent -> b and c of the degrees of freedom of a total variance, b T / tau - c: NIST SP 1065, table 7."""


def compute_total_dof(exponent: int, factor: int, phase_count: int) -> float:
    """Return the degrees of freedom of a total variance from phase values.

    The published values are for averaging times up to half of the record. They are used for longer ones, too. Phase
    noise (exponents 1 and 2) has the degrees of freedom of the overlapping variance.
    """
    if exponent > 0:
        return compute_power_law_dof(exponent, min(factor, (phase_count - 1) // 2), phase_count)
    b, c = TOTAL_COEFFICIENTS[exponent]
    return b * (phase_count - 1) / min(factor, (phase_count - 1) / 2.0) - c
