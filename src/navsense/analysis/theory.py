"""Allan and Hadamard variance of declared noise in closed form.

The averaging time is tau = m / rate with the averaging factor m. The variances of independent terms add. In the
frequency (an angular rate, an acceleration, a field), with y = tau / T and the functions of a Gauss-Markov process

    h(y) = 2 y - 3 + 4 e^-y - e^-2y,     p(y) = (6 y - 10 + 15 e^-y - 6 e^-2y + e^-3y) / 3

the variances of an instrument that integrates over each sample interval are:

    term                    Allan variance                  Hadamard variance
    Quantisation(Q)         3 Q^2 / tau^2                   10/3 Q^2 / tau^2        white noise of the phase
    White(N)                N^2 / tau                       N^2 / tau
    Flicker(B)              (2 ln 2 / pi) B^2               ln(256/27) / (2 pi) B^2
    RandomWalk(K)           K^2 tau / 3                     K^2 tau / 6
    Ramp(R)                 R^2 tau^2 / 2                   0
    GaussMarkov(q, T)       s^2 h(y) / y^2                  s^2 p(y) / y^2          s^2 = q^2 T / 2
    PhaseGaussMarkov(s, T)  s^2 (2 y - h) / tau^2           s^2 (2 y - p) / tau^2   an error of the phase
    AgeingWalk(q)           infinite                        11 q^2 tau^3 / 120      random walk of the ageing

A simulated sensor does not average: it samples the process. `sampled=True` is the exact variance for m such samples.
With e = 1 / (rate T), phi = e^-e and the dynamic bias b_k = phi b_(k-1) + noise:

    RandomWalk              K^2 (2 m^2 + 1) / (6 m rate)    K^2 (m^2 + 1) / (6 m rate)
    GaussMarkov             s^2 / m^2 (2 m c + h(m e) d)    s^2 / m^2 (2 m c + p(m e) d)
                            d = phi / (1 - phi)^2,  c = (sinh e - e) d
    Flicker                 B^2 (4 v_m - v_2m) / (2 m^2)    B^2 (15 v_m - 6 v_2m + v_3m) / (6 m^2)
                            v_n = (n^2/2 + n (n - 1) - 1/2 - 2 (n^2 - 1/4) O_(n-1)) / pi
                            O_n = sum_(j=1..n) 1 / (2 j - 1)

The usual equation of GaussMarkov is m (1 + phi) / (1 - phi) - phi (3 - 4 phi^m + phi^2m) / (1 - phi)^2. The form above
loses no digits if a step is a billionth of T. The sampled flicker is white noise of deviation B, filtered to the
spectrum B^2 / (2 sin(pi f / rate)) per sample (Kasdin 1995).

Spectra are two-sided: White has N^2, Flicker B^2 / (2 pi f), RandomWalk K^2 / (2 pi f)^2. B is the "bias instability"
of IEEE 952: the flat part of the Allan deviation is 0.664 B. Sources: IEEE 952-1997, annex C; IEEE 1139 and NIST SP
1065 for oscillators. The sampled terms and the Hadamard column are derived here; tests compare them with sums over
covariances.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.typing import FloatArray
from navsense.noise.channels import FLICKER_BAND
from navsense.noise.terms import make_flicker_components


class NoiseTerm(Protocol):
    """A noise term; `factor` is m (any shape), `rate` in Hz."""

    def allan(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Allan variance, the unit squared."""
        ...

    def hadamard(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Hadamard variance, the unit squared."""
        ...

    def covariance(self, lag: ArrayLike, rate: float) -> FloatArray:
        """Return the generalised autocovariance of the phase at lags in samples, (unit s)^2, up to a quadratic."""
        ...


def allan_variance(terms: Iterable[NoiseTerm], factor: ArrayLike, rate: float) -> FloatArray:
    """Return the Allan variance of the sum of independent terms.

    >>> theory = ns.analysis.theory
    >>> terms = (theory.White(0.01), theory.RandomWalk(0.001))
    >>> np.sqrt(theory.allan_variance(terms, [100, 10000], rate=100.0)).round(6)  # at 1 s and 100 s
    array([0.010017, 0.005859])
    """
    return np.asarray(np.sum([term.allan(factor, rate) for term in terms], axis=0, dtype=np.float64))


def hadamard_variance(terms: Iterable[NoiseTerm], factor: ArrayLike, rate: float) -> FloatArray:
    """Return the Hadamard variance of the sum of independent terms.

    >>> theory = ns.analysis.theory
    >>> terms = (theory.White(0.01), theory.Ramp(0.001))
    >>> np.sqrt(theory.hadamard_variance(terms, [100], rate=100.0))  # the ramp has no effect
    array([0.01])
    """
    return np.asarray(np.sum([term.hadamard(factor, rate) for term in terms], axis=0, dtype=np.float64))


def phase_covariance(terms: Iterable[NoiseTerm], lag: ArrayLike, rate: float) -> FloatArray:
    """Return the generalised autocovariance of the phase of the sum of independent terms, (unit s)^2.

    >>> theory = ns.analysis.theory
    >>> theory.phase_covariance((theory.Quantisation(0.5),), [0, 1], rate=100.0)
    array([0.25, 0.  ])
    """
    return np.asarray(np.sum([term.covariance(lag, rate) for term in terms], axis=0, dtype=np.float64))


SERIES_BELOW = 0.5
"""Argument below which functions that start with a third power use their series."""

ALLAN_POWERS = ((4.0, 1.0), (-1.0, 2.0))
HADAMARD_POWERS = ((5.0, 1.0), (-2.0, 2.0), (1.0 / 3.0, 3.0))
"""(factor, decay rate) of the exponentials in h and p."""


def _compute_exponential_remainder(y: FloatArray, powers: Iterable[tuple[float, float]]) -> FloatArray:
    """Return 2 y - const + sum factor e^(-decay y), which starts with y^3, without cancellation."""
    powers = tuple(powers)
    small, large = np.minimum(y, SERIES_BELOW), np.maximum(y, SERIES_BELOW)
    series = np.zeros_like(y)
    for k in range(24, 2, -1):
        share = sum(factor * (-decay) ** k for factor, decay in powers) / math.factorial(k)
        series = series * small + share
    direct = 2.0 * large - sum(factor for factor, _ in powers)
    for factor, decay in powers:
        direct = direct + factor * np.exp(-decay * large)
    return np.where(y < SERIES_BELOW, series * small**3, direct)


def _compute_sinh_remainder(e: float) -> float:
    """Return sinh(e) - e for 0 < e <= 1 without cancellation."""
    total = 0.0
    for k in range(21, 1, -2):
        total = total * e * e + 1.0 / math.factorial(k)
    return total * e**3


def _to_floats(values: ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True)
class White:
    """White noise of density N, unit per root hertz: samples have the deviation N sqrt(rate).

    >>> float(np.sqrt(ns.analysis.theory.White(0.01).allan(100, rate=100.0)))  # at 1 s
    0.01
    """

    density: float

    def allan(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Allan variance, the unit squared."""
        return np.asarray(self.density**2 * rate / _to_floats(factor))

    def hadamard(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Hadamard variance, the unit squared: the same."""
        return self.allan(factor, rate)

    def covariance(self, lag: ArrayLike, rate: float) -> FloatArray:
        """Return the generalised autocovariance of the phase, (unit s)^2."""
        return np.asarray(-0.5 * self.density**2 / rate * np.abs(_to_floats(lag)))


@dataclass(frozen=True)
class Quantisation:
    """White noise of the phase, deviation Q (unit s): an angle counted in steps D has Q = D / sqrt(12).

    >>> float(np.sqrt(ns.analysis.theory.Quantisation(0.01).allan(100, rate=100.0)))  # at 1 s
    0.017320508075688773
    """

    deviation: float

    def allan(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Allan variance, the unit squared."""
        return np.asarray(3.0 * (self.deviation * rate / _to_floats(factor)) ** 2)

    def hadamard(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Hadamard variance, the unit squared."""
        return np.asarray(10.0 / 3.0 * (self.deviation * rate / _to_floats(factor)) ** 2)

    def covariance(self, lag: ArrayLike, rate: float) -> FloatArray:
        """Return the autocovariance of the phase, (unit s)^2."""
        return np.where(_to_floats(lag) == 0.0, self.deviation**2, 0.0)


@dataclass(frozen=True)
class RandomWalk:
    """Random walk of the frequency, K in unit per root second.

    >>> float(np.sqrt(ns.analysis.theory.RandomWalk(0.01).allan(300, rate=100.0)).round(6))  # at 3 s
    0.01
    """

    density: float
    sampled: bool = False

    def allan(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Allan variance, the unit squared."""
        m = _to_floats(factor)
        extra = 0.5 / m if self.sampled else 0.0
        return np.asarray(self.density**2 / (3.0 * rate) * (m + extra))

    def hadamard(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Hadamard variance, the unit squared."""
        m = _to_floats(factor)
        extra = 1.0 / m if self.sampled else 0.0
        return np.asarray(self.density**2 / (6.0 * rate) * (m + extra))

    def covariance(self, lag: ArrayLike, rate: float) -> FloatArray:
        """Return the generalised autocovariance of the phase, (unit s)^2."""
        k = np.abs(_to_floats(lag))
        linear = k if self.sampled else 0.0
        return np.asarray(self.density**2 / (12.0 * rate**3) * (k**3 - linear))


@dataclass(frozen=True)
class Ramp:
    """Linear trend of the frequency, R in unit per second: not random, but with an Allan variance.

    >>> float(np.sqrt(ns.analysis.theory.Ramp(0.01).allan(100, rate=100.0)).round(6))  # at 1 s
    0.007071
    """

    slope: float

    def allan(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Allan variance, the unit squared."""
        return np.asarray(0.5 * (self.slope * _to_floats(factor) / rate) ** 2)

    def hadamard(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Hadamard variance, which is 0."""
        return np.zeros_like(_to_floats(factor))

    def covariance(self, lag: ArrayLike, rate: float) -> FloatArray:
        """Return the autocovariance of the phase, which is 0."""
        return np.zeros_like(_to_floats(lag))


@dataclass(frozen=True)
class AgeingWalk:
    """Random walk of the ageing, q in unit per second and root second: an integrated random walk of the frequency.

    >>> ns.analysis.theory.AgeingWalk(1e-6).allan(100, rate=100.0)
    array(inf)
    """

    density: float

    def allan(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Allan variance, which is infinite."""
        return np.full_like(_to_floats(factor), math.inf if self.density > 0.0 else 0.0)

    def hadamard(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Hadamard variance, the unit squared."""
        return np.asarray(11.0 / 120.0 * self.density**2 * (_to_floats(factor) / rate) ** 3)

    def covariance(self, lag: ArrayLike, rate: float) -> FloatArray:
        """Return the generalised autocovariance of the phase, (unit s)^2, for differences of third order."""
        return np.asarray(-(self.density**2) / 240.0 * (np.abs(_to_floats(lag)) / rate) ** 5)


@dataclass(frozen=True)
class GaussMarkov:
    """Dynamic bias (Gauss-Markov): driving density q (unit per root second), correlation time T (s); stationary.

    >>> round(ns.analysis.theory.GaussMarkov(density=0.01, correlation_time=200.0).variance, 6)
    0.01
    """

    density: float
    correlation_time: float
    sampled: bool = False

    @property
    def variance(self) -> float:
        """Stationary variance, the unit squared."""
        return 0.5 * self.density**2 * self.correlation_time

    def _compute_variance(self, factor: ArrayLike, rate: float, powers: Iterable[tuple[float, float]]) -> FloatArray:
        m, e = _to_floats(factor), 1.0 / (rate * self.correlation_time)
        remainder = _compute_exponential_remainder(m * e, powers)
        if not self.sampled:
            return np.asarray(self.variance * remainder / (m * e) ** 2)
        linear, shape = self._compute_sampled_coefficients(e)
        return np.asarray(self.variance / m**2 * (2.0 * m * linear + remainder * shape))

    def _compute_sampled_coefficients(self, e: float) -> tuple[float, float]:
        """Return c and d of the sampled process for a step of e correlation times."""
        shape = math.exp(-e) / math.expm1(-e) ** 2
        if e <= 1.0:
            return _compute_sinh_remainder(e) * shape, shape
        return 0.5 * (1.0 - math.exp(-2.0 * e)) / math.expm1(-e) ** 2 - e * shape, shape

    def allan(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Allan variance, the unit squared."""
        return self._compute_variance(factor, rate, ALLAN_POWERS)

    def hadamard(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Hadamard variance, the unit squared."""
        return self._compute_variance(factor, rate, HADAMARD_POWERS)

    def covariance(self, lag: ArrayLike, rate: float) -> FloatArray:
        """Return the generalised autocovariance of the phase, (unit s)^2."""
        k, e = np.abs(_to_floats(lag)), 1.0 / (rate * self.correlation_time)
        y = k * e
        small, large = np.minimum(y, SERIES_BELOW), np.maximum(y, SERIES_BELOW)
        series = np.zeros_like(y)
        for n in range(14, 2, -1):
            series = series * small + (-1.0) ** n / math.factorial(n)
        remainder = np.where(y < SERIES_BELOW, series * small**3, np.expm1(-large) + large - 0.5 * large**2)
        linear, shape = self._compute_sampled_coefficients(e) if self.sampled else (0.0, 1.0 / e**2)
        return np.asarray(-self.variance / rate**2 * (k * linear + remainder * shape))


@dataclass(frozen=True)
class Flicker:
    """Flicker of the frequency, B in its unit: bias instability.

    >>> float(np.sqrt(ns.analysis.theory.Flicker(0.01).allan(1000000, rate=100.0)).round(5))  # 0.664 B
    0.00664
    """

    instability: float
    sampled: bool = False

    def allan(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Allan variance, the unit squared."""
        m = _to_floats(factor)
        if not self.sampled:
            return np.full_like(m, 2.0 * math.log(2.0) / math.pi * self.instability**2)
        sums = 4.0 * _compute_flicker_sum_variance(m) - _compute_flicker_sum_variance(2.0 * m)
        return np.asarray(self.instability**2 * sums / (2.0 * m**2))

    def hadamard(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Hadamard variance, the unit squared."""
        m = _to_floats(factor)
        if not self.sampled:
            return np.full_like(m, math.log(256.0 / 27.0) / (2.0 * math.pi) * self.instability**2)
        sums = (
            15.0 * _compute_flicker_sum_variance(m)
            - 6.0 * _compute_flicker_sum_variance(2.0 * m)
            + _compute_flicker_sum_variance(3.0 * m)
        )
        return np.asarray(self.instability**2 * sums / (6.0 * m**2))

    def covariance(self, lag: ArrayLike, rate: float) -> FloatArray:
        """Return the generalised autocovariance of the phase, (unit s)^2."""
        k = np.abs(_to_floats(lag))
        scale = 0.5 * (self.instability / rate) ** 2
        if self.sampled:
            return np.asarray(-scale * _compute_flicker_sum_variance(k))
        return np.asarray(scale / math.pi * k**2 * np.log(np.where(k > 0.0, k, 1.0)))


def _compute_flicker_sum_variance(count: FloatArray) -> FloatArray:
    """Return v_n, the variance of the sum of n flicker samples of unit instability, up to n^2."""
    from scipy.special import digamma

    odd = 0.5 * (digamma(np.where(count == 0.5, 1.0, count - 0.5)) + np.euler_gamma) + math.log(2.0)
    return np.asarray((0.5 * count**2 + count * (count - 1.0) - 0.5 - 2.0 * (count**2 - 0.25) * odd) / math.pi)


@dataclass(frozen=True)
class PhaseGaussMarkov:
    """Gauss-Markov error of the phase, such as a clock's dynamic bias: stationary deviation (unit s), T (s).

    >>> float(ns.analysis.theory.PhaseGaussMarkov(deviation=1e-6, correlation_time=60.0).covariance(0, rate=1.0))
    -0.0
    """

    deviation: float
    correlation_time: float

    def _compute_variance(self, factor: ArrayLike, rate: float, powers: Iterable[tuple[float, float]]) -> FloatArray:
        tau = _to_floats(factor) / rate
        y = tau / self.correlation_time
        return np.asarray(self.deviation**2 * (2.0 * y - _compute_exponential_remainder(y, powers)) / tau**2)

    def allan(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Allan variance, the unit squared."""
        return self._compute_variance(factor, rate, ALLAN_POWERS)

    def hadamard(self, factor: ArrayLike, rate: float) -> FloatArray:
        """Return the Hadamard variance, the unit squared."""
        return self._compute_variance(factor, rate, HADAMARD_POWERS)

    def covariance(self, lag: ArrayLike, rate: float) -> FloatArray:
        """Return the autocovariance of the phase minus its value at 0, (unit s)^2."""
        return np.asarray(self.deviation**2 * np.expm1(-np.abs(_to_floats(lag)) / (rate * self.correlation_time)))


def oscillator_terms(
    white: float = 0.0, flicker: float = 0.0, random_walk: float = 0.0, ageing: float = 0.0
) -> tuple[NoiseTerm, ...]:
    """Return the terms of an oscillator's fractional frequency from its one-sided power law and its ageing.

    white h_0 (s), flicker h_-1 (1), random_walk h_-2 (1/s) of S_y(f) = sum h_a f^a, ageing D (1/s)::

        AVAR = h_0 / (2 tau) + 2 ln 2 h_-1 + (2 pi^2 / 3) h_-2 tau + D^2 tau^2 / 2

    Source: IEEE 1139; NIST SP 1065.

    >>> theory = ns.analysis.theory
    >>> terms = theory.oscillator_terms(white=2e-19, random_walk=2e-20)
    >>> f"{float(np.sqrt(theory.allan_variance(terms, 1, rate=1.0))):.2g}"  # at 1 s
    '4.8e-10'
    """
    return (
        White(math.sqrt(0.5 * white)),
        Flicker(math.sqrt(math.pi * flicker)),
        RandomWalk(math.pi * math.sqrt(2.0 * random_walk)),
        Ramp(ageing),
    )


def flicker_terms(
    instability: float, band: tuple[float, float] = FLICKER_BAND, *, sampled: bool = True
) -> tuple[GaussMarkov, ...]:
    """Return the Gauss-Markov processes whose sum the simulator uses for flicker; the sum is flat over `band` (s).

    >>> len(ns.analysis.theory.flicker_terms(0.01))
    7
    """
    times, deviations = make_flicker_components(instability, *band)
    return tuple(
        GaussMarkov(float(deviation) * math.sqrt(2.0 / float(tau)), float(tau), sampled)
        for tau, deviation in zip(times, deviations, strict=True)
    )
