"""Equivalent degrees of freedom of an Allan variance that was estimated from one record.

An estimate is the mean of M squares of stationary Gaussian differences z_i of the phase. With s(k) = <z_i z_(i+k)>::

    V = 1/M sum_i z_i^2,   var V = 2/M sum_(|k|<M) (1 - |k|/M) s(k)^2,   dof = 2 <V>^2 / var V

and dof * V / <V> is approximately chi-squared. For differences of order d and span m, s follows from the generalised
autocovariance g of the phase (the autocovariance up to a polynomial, which cancels in differences)::

    s(k) = sum_(j=-d..d) (-1)^j C(2d, d+j) g(k + j m)

The covariance of two estimates with the spans m and n has the same form. Sums over lags are exact near the kinks of s.
Between them they use a Gaussian rule for integers: a million lags cost some hundred values.

For power-law noise of exponent a (spectrum of the frequency ~ f^a), g is that of Greenhall and Riley, "Uncertainty of
stability variances based on finite differences", PTTI 2003, equations 7 to 11, as in NIST SP 1065, section 5.3. They
take all phases as means over a sample. Here the phases of frequency noises (a <= 0) are points, as sums of readings
are, and a mean over the span is one of m points where that has a closed form (even a). This is exact for white
frequency noise, where theirs is up to 17 percent off at spans of some samples; at long spans both agree.
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

REACH = 8
"""Longest spans after the last kink at which sums over lags end: power laws have decayed there."""

POINTS = 5
"""Points of the Gaussian rules: exact for polynomials up to degree 9 over an interval of integers."""

SMALL = 64
"""Integers up to which an interval has an exact rule; a longer sum is an integral, to a part in 10^5."""

LEGENDRE = np.polynomial.legendre.leggauss(POINTS)

POINTWISE = {0: ((1, -1.0),), -2: ((3, -5.0 / 3.0), (1, 2.0 / 3.0))}
"""Exponent -> (power, factor) of the lower powers by which a sum over points differs from the integral."""


@lru_cache(maxsize=SMALL)
def _gram_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Return places and weights (5,) of the sum over the integers 0 to count - 1 (Gauss-Gram quadrature)."""
    k = np.arange(1.0, POINTS)
    side = 0.5 * k * np.sqrt((count * count - k * k) / (4.0 * k * k - 1.0))
    places, vectors = np.linalg.eigh(np.diag(side, 1) + np.diag(side, -1))
    return places + 0.5 * (count - 1), count * vectors[0] ** 2


def sum_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Return places and weights of the sum of a smooth function over the integers 0 to count - 1."""
    if count <= POINTS:
        return np.arange(float(count)), np.ones(count)
    if count <= SMALL:
        return _gram_rule(count)
    places, weights = LEGENDRE
    return 0.5 * (count - 1 + count * places), 0.5 * count * weights


@lru_cache(maxsize=64)
def _doubling_rule(doublings: int) -> tuple[FloatArray, FloatArray]:
    """Return places and weights of the sum over 0 to 2^doublings - 1, by intervals of 1, 1, 2, 4, ... integers."""
    places, weights, start = [], [], 0
    for size in (1, *(1 << power for power in range(doublings))):
        offsets, shares = sum_rule(size)
        places.append(start + offsets)
        weights.append(shares)
        start += size
    return np.concatenate(places), np.concatenate(weights)


def interval_rule(first: int, last: int) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return places and weights of the sum over the integers first to last, fine at both ends."""
    count = last - first + 1
    if count < 2 * POINTS:
        return [first + np.arange(float(count))], [np.ones(count)]
    doublings = (count // 2).bit_length() - 1
    near, shares = _doubling_rule(doublings)
    middle, rest = sum_rule(count - (2 << doublings))
    return [first + near, first + (1 << doublings) + middle, last - near], [shares, rest, shares]


def lag_rule(kinks: Iterable[int], low: int, high: int) -> tuple[FloatArray, FloatArray]:
    """Return places and weights (p,) of the sum over low to high of a function that is smooth between kinks."""
    marks = sorted({low, high, *(kink for kink in kinks if low < kink < high)})
    places, weights = [np.array(marks, dtype=np.float64)], [np.ones(len(marks))]
    for one, other in pairwise(marks):
        inner, shares = interval_rule(one + 1, other - 1)
        places += inner
        weights += shares
    return np.concatenate(places), np.concatenate(weights)


def difference_covariance(covariance: Covariance, places: FloatArray, one: int, other: int, order: int) -> FloatArray:
    """Return <z_i w_(i+k)> (p,) at the lags k: z the differences of `order` over the span `one`, w over `other`."""
    taps = [(-1) ** a * math.comb(order, a) for a in range(order + 1)]
    shifts: dict[int, int] = {}
    for a, left in enumerate(taps):
        for b, right in enumerate(taps):
            shift = b * other - a * one
            shifts[shift] = shifts.get(shift, 0) + left * right
    moved = places + np.array(list(shifts), dtype=np.float64)[:, None]
    return np.asarray(np.array(list(shifts.values()), dtype=np.float64) @ covariance(moved))


def estimate_covariance(
    covariance: Covariance, one: int, other: int, count: int, order: int = 2, means: tuple[float, float] = (0.0, 0.0)
) -> float:
    """Return the covariance of two mean squares of all differences with the spans `one` and `other` (samples).

    count is the number of phase values, `means` are the means of the two differences (from a frequency ramp).
    """
    mine, theirs = count - order * one, count - order * other
    kinks = {a * one - b * other for a in range(order + 1) for b in range(order + 1)}
    reach = max(abs(kink) for kink in kinks) + REACH * max(one, other)
    corners = {0, theirs - mine}
    places, weights = lag_rule(kinks | corners, max(1 - mine, -reach), min(theirs - 1, reach))
    pairs = np.minimum(mine, theirs - places) - np.maximum(0.0, -places)
    along = difference_covariance(covariance, places, one, other, order)
    total = weights * pairs * (2.0 * along * along + 4.0 * means[0] * means[1] * along)
    return float(np.sum(total)) / (float(mine) * float(theirs))


def estimate_covariances(
    covariance: Covariance, factors: Sequence[int], count: int, order: int = 2, means: FloatArray | None = None
) -> FloatArray:
    """Return the covariance (k, k) of the mean squares of overlapping differences with the spans `factors` (k,)."""
    average = np.zeros(len(factors)) if means is None else means
    out = np.empty((len(factors), len(factors)))
    for i, one in enumerate(factors):
        for j, other in enumerate(factors[: i + 1]):
            pair = (float(average[i]), float(average[j]))
            out[i, j] = out[j, i] = estimate_covariance(covariance, int(one), int(other), count, order, pair)
    return out


def _summed_phase_covariance(lag: FloatArray, exponent: int, points: float = math.inf) -> FloatArray:
    """Return the generalised autocovariance of the summed phase at lags in spans (Greenhall and Riley, equation 7).

    points is the number of points of a span; infinite for the integral of the phase.
    """
    size = np.abs(lag)
    degree = 3 - exponent
    if exponent % 2 == 0:
        lower = ((size**power, share / points ** (degree - power)) for power, share in POINTWISE.get(exponent, ()))
        return np.asarray((-1.0) ** (exponent // 2) * (size**degree + sum(part * share for part, share in lower)))
    logarithm = np.log(np.where(size > 0.0, size, 1.0))
    return np.asarray((-1.0) ** ((1 - exponent) // 2) * size**degree * logarithm)


def _phase_covariance(lag: FloatArray, exponent: int, factor: int, is_modified: bool) -> FloatArray:
    """Return the same of the phase: of points, or of means over one or `factor` samples (equation 8)."""
    if not is_modified and exponent <= 0:
        return _summed_phase_covariance(lag, exponent + 2)
    filtered, points = (1, float(factor)) if is_modified else (factor, math.inf)
    summed = partial(_summed_phase_covariance, exponent=exponent, points=points)
    return np.asarray(filtered**2 * (2.0 * summed(lag) - summed(lag - 1.0 / filtered) - summed(lag + 1.0 / filtered)))


@lru_cache(maxsize=65536)
def power_law_dof(
    exponent: int, factor: int, count: int, order: int = 2, *, stride: int = 1, is_modified: bool = False
) -> float:
    """Return the degrees of freedom of an estimate over `count` phase values in power-law noise.

    exponent from 2 (white phase) over 0 (white frequency) to 2 - 2 order; factor the span m in samples; order 2 for
    Allan, 3 for Hadamard; stride 1 if the differences overlap, else `factor`.
    """
    length = order * factor + (factor if is_modified else 1)
    terms = 1 + (count - length) // stride
    per_span = factor // stride
    kinks = [j * per_span for j in range(-order - 1, order + 2)]
    reach = min(terms - 1, kinks[-1] + REACH * per_span)
    places, weights = lag_rule(kinks, 0, reach)

    def square_covariance(lag: FloatArray) -> FloatArray:
        out = np.zeros_like(lag)
        for j in range(-order, order + 1):
            tap = (-1) ** j * math.comb(2 * order, order + j)
            out += tap * _phase_covariance(lag / per_span + j, exponent, factor, is_modified)
        return out

    values = square_covariance(places)
    share = np.where(places > 0.0, 2.0, 1.0) * weights * (1.0 - places / terms)
    first = float(square_covariance(np.zeros(1))[0])
    return terms * first * first / float(np.sum(share * values * values))


TOTAL = {0: (1.50, 0.0), -1: (1.17, 0.22), -2: (0.93, 0.36)}
"""Exponent -> b and c of the degrees of freedom of a total variance, b T / tau - c: NIST SP 1065, table 7."""


def total_dof(exponent: int, factor: int, count: int) -> float:
    """Return the degrees of freedom of a total variance over `count` phase values.

    The published values are for spans up to half of the record, and are used for longer spans, too. Phase noise
    (exponents 1 and 2) has the degrees of freedom of the overlapping variance.
    """
    if exponent > 0:
        return power_law_dof(exponent, min(factor, (count - 1) // 2), count)
    b, c = TOTAL[exponent]
    return b * (count - 1) / min(factor, (count - 1) / 2.0) - c
