"""Degrees of freedom equal allantools, sums over all lags, and the scatter of estimates."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import allantools.ci
import numpy as np
import pytest

from navsense.analysis import allan, allan_dof, theory
from navsense.core.typing import FloatArray

TERMS = {
    "white": (theory.White(0.7),),
    "walk": (theory.RandomWalk(0.2, sampled=True),),
    "flicker": (theory.Flicker(0.4, sampled=True),),
    "drift": (theory.GaussMarkov(0.3, 8.0, sampled=True),),
    "short drift": (theory.GaussMarkov(0.3, 0.2, sampled=True),),
    "phase": (theory.Quantisation(0.3),),
    "all": (theory.White(0.7), theory.RandomWalk(0.2, True), theory.GaussMarkov(0.3, 8.0, True), theory.Flicker(0.4)),
}


def compute_cusps(k: FloatArray) -> FloatArray:
    return np.asarray(np.abs(k) ** 1.5 + np.abs(k - 500.0))


def compute_decay(k: FloatArray) -> FloatArray:
    return np.exp(-np.abs(k - 3.0) / 40.0)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 3), (-7, 12), (-40, 1000), (0, 100_000)])
def test_sum_rule_has_few_nodes(low: int, high: int) -> None:
    kinks = [0, 3, 500]
    places, weights = allan_dof.make_lag_rule(kinks, low, high)
    every = np.arange(low, high + 1.0)
    for smooth in (compute_cusps, compute_decay):
        assert float(np.sum(weights * smooth(places))) == pytest.approx(float(np.sum(smooth(every))), rel=1e-5, abs=0.0)
    assert float(np.sum(weights)) == pytest.approx(high - low + 1.0, rel=1e-12, abs=0.0)
    assert places.size < 400


@pytest.mark.requirement("NOI-6", "CLK-8")
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize(("overlaps", "modified"), [(True, False), (False, False), (True, True)])
def test_degrees_of_freedom_equal_allantools(order: int, overlaps: bool, modified: bool) -> None:
    """allantools truncates the sums of Greenhall and Riley at 100 terms and uses rounded tables beyond: 2 percent.

    Its table has no exponent -4. At short spans it uses means for the phase, so only phase noise is compared.
    """
    held = 0
    for exponent in range(2, 1 - 2 * order, -1):
        for factor in (1, 2, 5, 20, 60, 200):
            short = exponent <= 0 and factor * (order + 1) <= 100
            for count in (1000, 100_000):
                if count <= (order + 2) * factor or short or (exponent == -4 and overlaps):
                    continue
                expected = allantools.ci.edf_greenhall(exponent, order, factor, count, overlaps, modified)
                stride = 1 if overlaps else factor
                dof = allan_dof.compute_power_law_dof(
                    exponent, factor, count, order, stride=stride, is_modified=modified
                )
                assert dof == pytest.approx(expected, rel=0.02, abs=0.0)
                held += 1
    assert held > 30


@pytest.mark.requirement("NOI-6", "CLK-8")
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize(("overlaps", "modified"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize(("exponent", "term"), [(0, theory.White(1.0)), (-2, theory.RandomWalk(1.0))])
def test_degrees_of_freedom_equal_the_sum_over_all_pairs(
    exponent: int, term: theory.NoiseTerm, overlaps: bool, modified: bool, order: int
) -> None:
    """The reference writes out the differences of white and random-walk frequency at short spans; tolerance 0.1 %."""
    count = 120
    for factor in (1, 2, 3, 8):
        taps = np.zeros(order * factor + 1)
        for place in range(order + 1):
            taps[place * factor] = (-1) ** place * math.comb(order, place)
        if modified:
            taps = np.convolve(taps, np.ones(factor))
        starts = np.arange(0, count - taps.size + 1, 1 if overlaps else factor)
        places = np.arange(taps.size)
        apart = np.subtract.outer(starts, starts)
        lags = np.unique(apart)
        between = np.subtract.outer(places, places)
        along = np.array([float(taps @ term.covariance(lag + between, 1.0) @ taps) for lag in lags])
        square = along[np.searchsorted(lags, apart)] ** 2
        expected = starts.size**2 * along[lags == 0][0] ** 2 / float(np.sum(square))
        stride = 1 if overlaps else factor
        found = allan_dof.compute_power_law_dof(exponent, factor, count, order, stride=stride, is_modified=modified)
        assert found == pytest.approx(expected, rel=1e-3, abs=0.0)


@pytest.mark.parametrize("exponent", [0, -1, -2])
def test_total_dof_equals_table_7(exponent: int) -> None:
    for factor in (1, 10, 100, 400):
        assert allan_dof.compute_total_dof(exponent, factor, 1001) == pytest.approx(
            allantools.ci.edf_totdev(1000, factor, exponent), rel=1e-12, abs=0.0
        )
    assert allan_dof.compute_total_dof(exponent, 900, 1001) == allan_dof.compute_total_dof(exponent, 500, 1001) > 1.0


def test_total_dof_of_phase_noise_equals_overlapping_dof() -> None:
    assert allan_dof.compute_total_dof(2, 10, 1001) == allan_dof.compute_power_law_dof(2, 10, 1001)
    assert allan_dof.compute_total_dof(1, 900, 1001) > 0.0


def sum_over_all_pairs(
    covariance: Callable[[FloatArray], FloatArray], first: int, second: int, count: int, order: int
) -> float:
    """Return the covariance of two mean squares by definition: a sum over all pairs of differences."""
    first_count, second_count = count - order * first, count - order * second
    taps = [(-1) ** a * math.comb(order, a) for a in range(order + 1)]
    lag, pairs = np.unique(np.subtract.outer(np.arange(second_count), np.arange(first_count)), return_counts=True)
    along = sum(
        p * q * covariance(lag + float(b * second - a * first)) for a, p in enumerate(taps) for b, q in enumerate(taps)
    )
    return float(np.sum(pairs * 2.0 * np.asarray(along) ** 2)) / (first_count * second_count)


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("order", [2, 3])
def test_covariances_equal_sums_over_all_pairs(name: str, order: int) -> None:
    covariance = partial(theory.phase_covariance, TERMS[name], rate=2.0)
    count, factors = 400, [1, 3, 30, 100]
    found = allan_dof.estimate_covariances(covariance, factors, count, order)
    sizes = np.sqrt(np.diag(found))
    for i, first in enumerate(factors):
        for j, second in enumerate(factors):
            exact = sum_over_all_pairs(covariance, first, second, count, order)
            # Lags beyond eight spans are neglected: they matter to a longer drift.
            assert abs(found[i, j] - exact) < 0.02 * sizes[i] * sizes[j]


def test_ramp_adds_to_the_covariance() -> None:
    """With z = mu + noise, the covariance of mean squares grows by 4 mu mu' cov(z, z')."""
    covariance = partial(theory.phase_covariance, TERMS["white"], rate=2.0)
    count, factors, slope = 300, [2, 9], 0.3
    means = slope * (np.array(factors) / 2.0) ** 2
    found = allan_dof.estimate_covariances(covariance, factors, count, means=means)
    for i, one in enumerate(factors):
        for j, other in enumerate(factors):
            lag = np.subtract.outer(np.arange(count - 2 * other), np.arange(count - 2 * one)).astype(np.float64)
            along = allan_dof.compute_difference_covariance(covariance, lag.ravel(), one, other, 2)
            exact = float(np.mean(2.0 * along**2 + 4.0 * means[i] * means[j] * along))
            assert found[i, j] == pytest.approx(exact, rel=1e-6, abs=0.0)


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
def test_scatter_of_estimates_equals_their_covariance() -> None:
    """Variances and covariances of 3000 records of white noise and drift are within 6 standard errors.

    Sample (co)variances of n normal estimates have the error sqrt((c_ii c_jj + c_ij^2) / n). The estimates are near
    chi-squared with nu degrees of freedom, so the error of a variance is larger by sqrt(1 + 6 / nu). Rate 1e-6.
    """
    records, count, rate, tau = 3000, 512, 4.0, 6.0
    random = np.random.default_rng(21)
    phi = math.exp(-1.0 / (rate * tau))
    terms = (theory.White(0.5), theory.GaussMarkov(0.6, tau, sampled=True))
    drift = np.empty((count, records))
    drift[0] = math.sqrt(0.5 * 0.6**2 * tau) * random.standard_normal(records)
    for i in range(1, count):
        drift[i] = phi * drift[i - 1] + math.sqrt(0.5 * 0.6**2 * tau * (1 - phi**2)) * random.standard_normal(records)
    values = drift + 0.5 * math.sqrt(rate) * random.standard_normal((count, records))
    factors = [1, 4, 16, 64]
    curve = allan.oadev(values, rate, factors, exponent=0)
    unit = 2.0 * curve.tau**2
    expected = allan_dof.estimate_covariances(partial(theory.phase_covariance, terms, rate=rate), factors, count + 1)
    expected /= np.outer(unit, unit)
    mean = theory.allan_variance(terms, curve.factor, rate)
    found = np.cov(curve.variance)
    free = 2.0 * mean**2 / np.diag(expected)
    for i in range(4):
        assert abs(curve.variance[i].mean() - mean[i]) < 5.2 * math.sqrt(expected[i, i] / records)
        for j in range(4):
            error = math.sqrt((expected[i, i] * expected[j, j] + expected[i, j] ** 2) / records)
            error *= math.sqrt(1.0 + 6.0 / min(free[i], free[j]))
            assert abs(found[i, j] - expected[i, j]) < 5.5 * error
