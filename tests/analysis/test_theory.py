"""Closed forms equal sums over covariances, integrals over spectra, published tables, and each other."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from navsense.analysis import theory
from navsense.core.typing import FloatArray
from navsense.noise.terms import stationary_stddev

RATE = 5.0
FACTORS = [1, 2, 3, 7, 60]


def make_weights(factor: int, order: int) -> FloatArray:
    """Return the weights of adjacent values in an Allan or Hadamard difference."""
    signs = (-1.0, 1.0) if order == 2 else (1.0, -2.0, 1.0)
    return np.concatenate([np.full(factor, sign / factor) for sign in signs])


def compute_from_covariance(covariance: Callable[[FloatArray], FloatArray], factor: int, order: int) -> float:
    """Return the variance of the difference from the covariance of the values at integer lags (samples)."""
    taps = make_weights(factor, order)
    lags = np.abs(np.subtract.outer(np.arange(taps.size), np.arange(taps.size))).astype(np.float64)
    return float(taps @ covariance(lags) @ taps) / math.factorial(order)


def compute_variance(term: theory.NoiseTerm, factor: int, order: int) -> float:
    form = term.allan if order == 2 else term.hadamard
    return float(form(factor, RATE))


@pytest.mark.requirement("NOI-3", "NOI-6")
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("tau", [0.01, 0.19, 0.21, 3.0, 100.0])
def test_variance_of_sampled_drift_equals_the_sum_over_its_covariance(tau: float, factor: int, order: int) -> None:
    """r(k) = s^2 phi^k. The correlation times are on both sides of a sample interval, where the formula switches."""
    drift = theory.GaussMarkov(0.7, tau, sampled=True)
    assert math.sqrt(drift.variance) == pytest.approx(stationary_stddev(0.7, tau), rel=1e-15, abs=0.0)
    expected = compute_from_covariance(lambda k: drift.variance * np.exp(-k / (RATE * tau)), factor, order)
    # The sum loses digits to cancellation, the formula does not.
    assert compute_variance(drift, factor, order) == pytest.approx(expected, rel=1e-11, abs=0.0)


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("factor", FACTORS)
def test_variance_of_sampled_random_walk_equals_the_sum_over_its_steps(factor: int, order: int) -> None:
    """The walk starts at zero: r(i, j) = K^2 min(i, j) / rate."""
    walk = theory.RandomWalk(0.3, sampled=True)
    taps = make_weights(factor, order)
    place = np.arange(1.0, taps.size + 1.0)
    expected = float(taps @ (0.3**2 / RATE * np.minimum.outer(place, place)) @ taps) / math.factorial(order)
    assert compute_variance(walk, factor, order) == pytest.approx(expected, rel=1e-10, abs=0.0)


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("factor", FACTORS)
def test_variance_of_sampled_flicker_equals_the_integral_over_its_spectrum(factor: int, order: int) -> None:
    """The reference is half the integral of B^2 / (2 sin(pi f)) |transfer|^2, by Gauss-Legendre on 400 intervals."""
    edges, (nodes, shares) = np.linspace(0.0, 0.5, 401), np.polynomial.legendre.leggauss(12)
    f = (edges[:-1, None] + edges[1:, None] + (edges[1:] - edges[:-1])[:, None] * nodes) / 2.0
    w = (edges[1:] - edges[:-1])[:, None] / 2.0 * shares
    power = 2.0**order * np.sin(np.pi * f * factor) ** (2 * order) / (factor * np.sin(np.pi * f)) ** 2
    transfer = power * 2.0 ** (order - 2)
    expected = 2.0 * float(np.sum(w * 0.4**2 / (2.0 * np.sin(np.pi * f)) * transfer)) / math.factorial(order)
    assert compute_variance(theory.Flicker(0.4, sampled=True), factor, order) == pytest.approx(
        expected, rel=1e-9, abs=0.0
    )


@pytest.mark.requirement("NOI-6")
def test_variance_of_sampled_flicker_equals_the_kasdin_filter() -> None:
    """Squared first differences of the filter h = 1, 1/2, 3/8, 5/16 ... sum to twice the variance at m = 1.

    The remainder after n terms is below 1 / (16 n^2).
    """
    k = np.arange(1, 200_000)
    steps = np.diff(np.concatenate(([0.0, 1.0], np.cumprod((k - 0.5) / k))))
    assert compute_variance(theory.Flicker(1.0, sampled=True), 1, 2) == pytest.approx(
        0.5 * float(np.sum(steps**2)), rel=1e-9, abs=0.0
    )
    assert compute_variance(theory.Flicker(1.0, sampled=True), 1, 2) == pytest.approx(2.0 / math.pi, rel=1e-14, abs=0.0)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize(
    "term",
    [
        theory.White(0.3),
        theory.Quantisation(0.2),
        theory.RandomWalk(0.4),
        theory.RandomWalk(0.4, sampled=True),
        theory.GaussMarkov(0.5, 3.0),
        theory.GaussMarkov(0.5, 3.0, sampled=True),
        theory.GaussMarkov(0.5, 1e6, sampled=True),
        theory.GaussMarkov(0.5, 0.02, sampled=True),
        theory.Flicker(0.6),
        theory.Flicker(0.6, sampled=True),
        theory.PhaseGaussMarkov(0.7, 4.0),
        theory.Ramp(0.0),
    ],
)
def test_variances_equal_differences_of_the_phase_covariance(term: theory.NoiseTerm, order: int) -> None:
    """<z^2> = sum_j (-1)^j C(2d, d+j) g(j m) gives all closed forms from one function each."""
    for factor in (1, 5, 300):
        lags = np.arange(-order, order + 1)
        taps = np.array([(-1.0) ** j * math.comb(2 * order, order + j) for j in lags])
        square = float(taps @ term.covariance(lags * factor, RATE))
        expected = square / (math.factorial(order) * (factor / RATE) ** 2)
        assert compute_variance(term, factor, order) == pytest.approx(expected, rel=1e-9, abs=0.0)


@pytest.mark.requirement("CLK-8")
def test_ageing_random_walk_has_the_hadamard_variance_of_its_steps() -> None:
    """The references are third differences of the covariance, and of the phase as an integral over its noise."""
    walk = theory.AgeingWalk(0.3)
    for factor in (1, 5, 300):
        lags = np.arange(-3, 4)
        taps = np.array([(-1.0) ** j * math.comb(6, 3 + j) for j in lags])
        square = float(taps @ walk.covariance(lags * factor, RATE))
        assert compute_variance(walk, factor, 3) == pytest.approx(
            square / (6.0 * (factor / RATE) ** 2), rel=1e-9, abs=0.0
        )
    # White noise at s has the weight (t - s)^2 / 2 in the phase at t: third differences, squared and summed.
    s = (np.arange(60_000) + 0.5) / 20_000.0
    weight = sum(c * np.maximum(t - s, 0.0) ** 2 / 2.0 for t, c in zip((3, 2, 1), (1.0, -3.0, 3.0), strict=True))
    square = 0.09 * float(np.sum(weight**2)) / 20_000.0
    assert compute_variance(walk, 5, 3) == pytest.approx(square / 6.0, rel=1e-7, abs=0.0)
    assert float(walk.allan(3, RATE)) == math.inf
    assert float(theory.AgeingWalk(0.0).allan(3, RATE)) == 0.0


@pytest.mark.requirement("NOI-3")
def test_drift_equals_the_published_table() -> None:
    """The reference is IEEE 952 for q = 1, T = 100 s, with its peak 0.437 q sqrt(T) at 1.89 T."""
    drift = theory.GaussMarkov(1.0, 100.0)
    tau = np.array([1.0, 10.0, 50.0, 100.0, 300.0, 1000.0])
    table = [0.575191, 1.759146, 3.413010, 4.099893, 4.214176, 2.915492]
    assert np.sqrt(drift.allan(tau, 1.0)) == pytest.approx(table, abs=1e-6)
    spans = np.linspace(150.0, 230.0, 8001)
    curve = np.sqrt(drift.allan(spans, 1.0))
    assert spans[np.argmax(curve)] / 100.0 == pytest.approx(1.89262, abs=1e-4)
    assert curve.max() / 10.0 == pytest.approx(0.436542, abs=1e-6)
    # Samples 1 s apart have s^2 (1 - 1/e^0.01) at 1 s, where a mean has 0.575 of it.
    points = float(theory.GaussMarkov(1.0, 100.0, sampled=True).allan(1, 1.0))
    assert points == pytest.approx(50.0 * (1.0 - math.exp(-0.01)), rel=1e-12, abs=0.0)


@pytest.mark.requirement("NOI-6")
def test_sum_of_three_terms_equals_published_values() -> None:
    """N = 1e-3, B = 1e-4, K = 1e-5. The floor of B is 0.664 in IEEE 952."""
    terms = (theory.White(1e-3), theory.Flicker(1e-4), theory.RandomWalk(1e-5))
    found = np.sqrt(theory.allan_variance(terms, [1, 10, 100, 1000], 1.0))
    assert found == pytest.approx([1.0022206e-3, 3.2364494e-4, 1.3321428e-4, 1.9684015e-4], rel=1e-7, abs=0.0)
    assert math.sqrt(theory.Flicker(1.0).allan(1, 1.0)) == pytest.approx(0.6642824703, abs=1e-10)
    assert math.sqrt(theory.Ramp(3.0).allan(20, 10.0)) == pytest.approx(3.0 * 2.0 / math.sqrt(2.0), rel=1e-12, abs=0.0)
    assert math.sqrt(theory.Quantisation(3.0).allan(20, 10.0)) == pytest.approx(
        3.0 * math.sqrt(3.0) / 2.0, rel=1e-12, abs=0.0
    )


@pytest.mark.requirement("CLK-8")
@pytest.mark.parametrize(
    ("h0", "h1", "h2", "table"),
    [
        (2e-19, 7e-21, 2e-20, "4.912e-10 1.156e-09 3.629e-09 1.147e-08"),
        (2e-21, 1e-22, 2e-20, "3.643e-10 1.147e-09 3.628e-09 1.147e-08"),
        (2e-25, 7e-25, 6e-25, "2.240e-12 6.361e-12 1.989e-11 6.284e-11"),
        (8e-20, 2e-21, 4e-23, "2.075e-10 9.698e-11 1.717e-10 5.158e-10"),
        (2e-22, 4.5e-26, 1e-30, "1.000e-11 3.172e-12 1.031e-12 4.111e-13"),
        (2e-20, 7e-24, 4e-29, "1.000e-10 3.178e-11 1.048e-11 4.468e-12"),
    ],
)
def test_oscillators_have_published_allan_deviations(h0: float, h1: float, h2: float, table: str) -> None:
    """Allan deviations of Brown and Hwang's oscillators (h_0, h_-1, h_-2) at 1, 10, 100 and 1000 s."""
    found = np.sqrt(theory.allan_variance(theory.oscillator_terms(h0, h1, h2), [1, 10, 100, 1000], 1.0))
    assert [f"{deviation:.3e}" for deviation in found] == table.split()


@pytest.mark.requirement("CLK-8")
def test_oscillator_variance_equals_its_power_law() -> None:
    """IEEE 1139 gives the Allan variance and the Hadamard variance of white and random-walk frequency."""
    tau = np.array([0.5, 3.0, 200.0])
    terms = theory.oscillator_terms(2e-19, 7e-21, 2e-20, ageing=3e-12)
    expected = 2e-19 / (2.0 * tau) + 2.0 * math.log(2.0) * 7e-21 + 2.0 * math.pi**2 / 3.0 * 2e-20 * tau
    assert theory.allan_variance(terms, tau, 1.0) == pytest.approx(
        expected + (3e-12 * tau) ** 2 / 2.0, rel=1e-12, abs=0.0
    )
    hadamard = 2e-19 / (2.0 * tau) + 0.5 * math.log(256.0 / 27.0) * 7e-21 + math.pi**2 / 3.0 * 2e-20 * tau
    assert theory.hadamard_variance(terms, tau, 1.0) == pytest.approx(hadamard, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("order", [2, 3])
def test_flicker_variance_equals_the_integral_over_its_spectrum(order: int) -> None:
    """The integral of B^2 / (2 pi f) over the transfer function, in logarithmic steps of f, is accurate to 1e-5."""
    u = np.exp(np.linspace(math.log(1e-5), math.log(1e3), 2_000_001))
    shape = np.sin(np.pi * u) ** (2 * order) / (np.pi * u) ** 2 * 2.0 ** (2 * order - 2)
    integrand = shape / math.pi
    expected = float(np.sum(0.5 * (integrand[1:] + integrand[:-1]) * np.diff(np.log(u)))) / math.factorial(order)
    assert compute_variance(theory.Flicker(1.0), 10, order) == pytest.approx(expected, rel=1e-5, abs=0.0)


@pytest.mark.parametrize("sampled", [False, True])
def test_drift_in_the_limits_of_its_correlation_time(sampled: bool) -> None:
    """A long correlation time gives a random walk, a short one white noise, without a jump where formulas switch."""
    factors = np.array([1.0, 4.0, 90.0])
    long = theory.GaussMarkov(0.3, 1e12, sampled)
    walk = theory.RandomWalk(0.3, sampled)
    assert long.allan(factors, RATE) == pytest.approx(walk.allan(factors, RATE), rel=1e-9, abs=0.0)
    assert long.hadamard(factors, RATE) == pytest.approx(walk.hadamard(factors, RATE), rel=1e-9, abs=0.0)
    short = theory.GaussMarkov(0.3, 1e-9, sampled)
    level = short.variance if sampled else (0.3e-9) ** 2 * RATE
    assert short.allan(factors, RATE) == pytest.approx(level / factors, rel=1e-7, abs=0.0)
    for tau in (1.0 / RATE, 2.0 * 4.0 / RATE):
        below, above = (theory.GaussMarkov(0.3, tau * side, sampled) for side in (1.0 - 1e-12, 1.0 + 1e-12))
        assert below.allan(4, RATE) == pytest.approx(above.allan(4, RATE), rel=1e-10, abs=0.0)
        assert below.hadamard(4, RATE) == pytest.approx(above.hadamard(4, RATE), rel=1e-10, abs=0.0)


@pytest.mark.requirement("CLK-8")
def test_phase_drift_variances_equal_differences_of_its_covariance() -> None:
    drift = theory.PhaseGaussMarkov(2e-3, 7.0)
    for factor in (1, 10, 400):
        rho = np.exp(-np.arange(4) * factor / (RATE * 7.0))
        unit = (2e-3 * RATE / factor) ** 2
        allan = unit * (6.0 - 8.0 * rho[1] + 2.0 * rho[2]) / 2.0
        hadamard = unit * (20.0 - 30.0 * rho[1] + 12.0 * rho[2] - 2.0 * rho[3]) / 6.0
        assert float(drift.allan(factor, RATE)) == pytest.approx(allan, rel=1e-9, abs=0.0)
        assert float(drift.hadamard(factor, RATE)) == pytest.approx(hadamard, rel=1e-9, abs=0.0)
