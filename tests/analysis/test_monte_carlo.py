"""Statistics of Monte Carlo runs against SciPy, closed forms, and the coverage of their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

import allantools
import numpy as np
import pytest
from scipy import stats

import navsense as ns
from navsense.analysis import allan, monte_carlo
from navsense.analysis.monte_carlo import Estimate
from navsense.core.typing import FloatArray

pytestmark = pytest.mark.requirement("CAM-1")

TRIALS, RUNS = 20_000, 20

FALSE_ALARM = 1e-6
"""Probability that a correct interval fails the test of its coverage."""


def test_bounds_of_the_nees_equal_the_chi_square_table() -> None:
    """50 runs of 2 components have the bounds of 100 degrees of freedom, divided by 50."""
    low, high = monte_carlo.compute_nees_bounds(2, 50)
    assert (round(low, 1), round(high, 1)) == (1.5, 2.6)
    # Table of chi-square: 100 degrees of freedom, 2.5 % and 97.5 %: 74.2219 and 129.5612.
    assert low * 50 == pytest.approx(74.2219, abs=1e-4)
    assert high * 50 == pytest.approx(129.5612, abs=1e-4)


def test_interval_of_a_rate_equals_scipy() -> None:
    rate = monte_carlo.estimate_rate([True] * 3 + [False] * 7)
    assert (round(float(rate.low), 3), round(float(rate.high), 3)) == (0.067, 0.652)
    scipy = stats.binomtest(3, 10).proportion_ci(0.95, "exact")
    assert (float(rate.low), float(rate.high)) == pytest.approx((scipy.low, scipy.high), rel=1e-12, abs=0.0)


def test_interval_of_a_mean_equals_scipy() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, size=(RUNS, 4))
    estimate = monte_carlo.estimate_mean(values, 0.9)
    for column in range(4):
        interval = stats.ttest_1samp(values[:, column], 0.0).confidence_interval(0.9)
        assert (estimate.low[column], estimate.high[column]) == pytest.approx(
            (interval.low, interval.high), rel=1e-12, abs=0.0
        )


def test_interval_of_a_quantile_equals_scipy() -> None:
    values = np.random.default_rng(2).normal(size=101)
    estimate = monte_carlo.estimate_quantile(values, 0.5)
    interval = stats.quantile_test(values, q=0.0, p=0.5).confidence_interval(0.95)
    assert (float(estimate.low), float(estimate.high)) == (interval.low, interval.high)


Statistic = Callable[[FloatArray], Estimate]

STATISTICS: dict[str, tuple[Statistic, float, float]] = {
    "mean": (monte_carlo.estimate_mean, 0.0, 0.95),
    "stddev": (monte_carlo.estimate_stddev, 1.0, 0.95),
    "rms": (monte_carlo.estimate_rms, 1.0, 0.95),
}
"""Statistic, its true value for a unit normal distribution, and the exact coverage of its interval."""


@pytest.mark.parametrize("name", STATISTICS)
def test_intervals_cover_the_true_value(name: str) -> None:
    """The number of covering intervals is binomial: its limits have a false-alarm rate of 1e-6 for each statistic."""
    statistic, true, coverage = STATISTICS[name]
    estimate = statistic(np.random.default_rng(3).normal(size=(RUNS, TRIALS)))
    count = np.count_nonzero((estimate.low < true) & (true < estimate.high))
    low, high = stats.binom.ppf((0.5 * FALSE_ALARM, 1.0 - 0.5 * FALSE_ALARM), TRIALS, coverage)
    assert low <= count <= high


def test_intervals_of_any_distribution_cover_at_least_as_often_as_stated() -> None:
    """Intervals with binomial ranks are conservative: the count may not be below its binomial limit."""
    values = np.random.default_rng(4).exponential(size=(RUNS, TRIALS))
    quantile = monte_carlo.estimate_quantile(values, 0.8)
    true = -math.log(0.2)
    limit = stats.binom.ppf(FALSE_ALARM, TRIALS, 0.95)
    assert np.count_nonzero((quantile.low <= true) & (true <= quantile.high)) >= limit
    rate = monte_carlo.estimate_rate(values < true)
    assert np.count_nonzero((rate.low <= 0.8) & (rate.high >= 0.8)) >= limit


def test_covariance_equals_its_closed_form() -> None:
    """The limits of many runs: the interval of a covariance has the half width z sqrt((S_ii S_jj + S_ij^2) / n)."""
    factor = np.array([[1.0, 0.0], [0.5, 2.0]])
    errors = np.random.default_rng(5).normal(size=(200_000, 2)) @ factor.T
    estimate = monte_carlo.estimate_covariance(errors)
    true = factor @ factor.T
    half = 0.5 * (estimate.high - estimate.low)
    square = np.outer(np.diag(true), np.diag(true)) + true**2
    expected = stats.norm.ppf(0.975) * np.sqrt(square / 199_999)
    # Three different elements: `limit` bounds the error of each with the false-alarm rate.
    limit = stats.norm.ppf(1.0 - 0.5 * FALSE_ALARM / 3) * np.sqrt(square / 199_999)
    assert np.all(np.abs(estimate.value - true) < limit)
    # Inside these bounds, the product of two variances plus the square differs by less than `change`.
    variances, bounds = np.diag(true), np.diag(limit)
    change = np.outer(variances + bounds, variances + bounds) + (np.abs(true) + limit) ** 2 - square
    assert np.all(np.abs(half / expected - 1.0) < 1.0 - np.sqrt(1.0 - change / square))


def test_nees_of_a_consistent_estimate() -> None:
    """E' P^-1 e of errors with the covariance P is chi-square: its mean over many runs is inside its bounds."""
    factor = np.array([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [0.1, 0.2, 3.0]])
    errors = np.random.default_rng(6).normal(size=(1000, 5, 3)) @ factor.T
    nees = monte_carlo.compute_nees(errors, np.broadcast_to(factor @ factor.T, (1000, 5, 3, 3)))
    assert nees.shape == (1000, 5)
    low, high = monte_carlo.compute_nees_bounds(3, 5000, 1.0 - FALSE_ALARM)
    assert low < nees.mean() < high
    assert nees[7, 2] == pytest.approx(
        errors[7, 2] @ np.linalg.inv(factor @ factor.T) @ errors[7, 2], rel=1e-12, abs=0.0
    )


def test_nees_of_unknown_values_is_nan() -> None:
    """A filter that diverged in one run does not hide the others. Rounding of a covariance is no asymmetry."""
    covariances = np.tile(np.array([[2.0, 1.0], [1.0 + 1e-12, 2.0]]), (4, 1, 1))
    covariances[1, 0, 0] = np.inf
    errors = np.array([[1.0, 0.0], [1.0, 0.0], [np.nan, 0.0], [0.0, 1.0]])
    nees = monte_carlo.compute_nees(errors, covariances)
    assert np.isfinite(nees).tolist() == [True, False, False, True]
    assert nees[0] == pytest.approx(2.0 / 3.0, rel=1e-11, abs=0.0)


def test_bounds_do_not_depend_on_the_type_of_integers() -> None:
    assert monte_carlo.compute_nees_bounds(np.int8(3), np.int8(100)) == monte_carlo.compute_nees_bounds(3, 100)  # type: ignore[arg-type]


def count_limits(trials: int, coverage: float) -> tuple[float, float]:
    """Return the binomial limits of a count for the false-alarm rate."""
    low, high = stats.binom.ppf((0.5 * FALSE_ALARM, 1.0 - 0.5 * FALSE_ALARM), trials, coverage)
    return float(low), float(high)


def compute_allan_variance(values: FloatArray, factor: int) -> FloatArray:
    """Return the overlapping Allan variance of records (..., n) of rate 1 Hz: <(mean_2 - mean_1)^2> / 2."""
    means = np.lib.stride_tricks.sliding_window_view(values, factor, axis=-1).mean(axis=-1)
    return np.asarray(0.5 * ((means[..., factor:] - means[..., :-factor]) ** 2).mean(axis=-1))


@pytest.mark.parametrize("factor", [1, 4, 16])
def test_merged_allan_deviation_covers_white_noise(factor: int) -> None:
    """White noise has N^2 / tau. The degrees of freedom of a run are those of allantools."""
    trials, runs, count = 5000, 8, 48
    values = np.random.default_rng(7).normal(size=(runs, trials, count))
    dof = allantools.edf_greenhall(0, 2, factor, count + 1, overlapping=True, modified=False)
    estimate = monte_carlo.estimate_allan_deviation(np.sqrt(compute_allan_variance(values, factor)), dof)
    true = 1.0 / math.sqrt(factor)
    low, high = count_limits(trials, 0.95)
    assert low <= np.count_nonzero((estimate.low < true) & (true < estimate.high)) <= high


def test_merged_allan_deviation_covers_a_random_walk() -> None:
    """A random walk has K^2 tau / 3 (1 + 1 / (2 m^2)) in samples; one difference in each run is exactly chi-square."""
    factor, trials, runs = 20, 5000, 10
    walk = np.cumsum(np.random.default_rng(8).normal(size=(runs, trials, 2 * factor)), axis=-1)
    estimate = monte_carlo.estimate_allan_deviation(np.sqrt(compute_allan_variance(walk, factor)), 1.0)
    true = math.sqrt(factor / 3.0 * (1.0 + 0.5 / factor**2))
    low, high = count_limits(trials, 0.95)
    assert low <= np.count_nonzero((estimate.low < true) & (true < estimate.high)) <= high


def test_merged_allan_deviation_equals_allantools() -> None:
    """The merged variance is the mean of those of allantools, its degrees of freedom the sum of those of the runs."""
    runs, count, factors = 6, 400, np.array([1, 3, 10, 50])
    values = np.random.default_rng(9).normal(size=(runs, count))
    curve = allan.oadev(values[:, :, None], 1.0, factors, exponent=0)
    estimate = monte_carlo.estimate_allan_deviation(curve.deviation[..., 0], curve.dof[..., 0])
    theirs = [allantools.oadev(row, rate=1.0, data_type="freq", taus=factors)[1] for row in values]
    assert estimate.value == pytest.approx(np.sqrt(np.mean(np.square(theirs), axis=0)), rel=1e-9, abs=0.0)
    for index, factor in enumerate(factors):
        dof = curve.dof[:, index, 0].sum()
        low, high = allantools.confidence_interval(estimate.value[index], edf=dof, ci=0.95)
        assert (estimate.low[index], estimate.high[index]) == pytest.approx((low, high), rel=1e-9, abs=0.0)
        # The approximation of SP 1065 and the exact degrees of freedom of Greenhall differ by up to a sixth.
        exact = runs * allantools.edf_greenhall(0, 2, int(factor), count + 1, overlapping=True, modified=False)
        assert 5.0 / 6.0 < dof / exact < 6.0 / 5.0


def test_degrees_of_freedom_from_the_spread_of_the_runs() -> None:
    """The variances of chi-square runs with k degrees of freedom give n k, within the deviation of their spread."""
    runs, dof = 20_000, 5
    variances = stats.chi2.rvs(dof, size=runs, random_state=10) / dof
    estimate = monte_carlo.estimate_allan_deviation(np.sqrt(variances))
    # Delta method for s^2 / V^2 with mean 1: n times its relative variance is mu_4 / s^4 - 1 + 4 s^2 - 4 mu_3 / s^2.
    spread, skew = 2.0 / dof, 8.0 / dof**2
    kurtosis = 3.0 + 12.0 / dof
    deviation = math.sqrt((kurtosis - 1.0 + 4.0 * spread - 4.0 * skew / spread) / runs)
    assert deviation == pytest.approx(math.sqrt((2.0 + 4.0 / dof) / runs), rel=1e-12, abs=0.0)
    half = 0.5 * (estimate.high - estimate.low) / estimate.value
    limit = stats.norm.ppf(1.0 - 0.5 * FALSE_ALARM) * deviation
    # The width decreases with the degrees of freedom: it is between those of the limits.
    widths = [
        0.5 * np.ptp(np.sqrt(k / stats.chi2.ppf((0.025, 0.975), k)))
        for k in (runs * dof * (1.0 + limit), runs * dof * (1.0 - limit))
    ]
    assert widths[0] < half < widths[1]


def test_runs_without_noise_have_no_interval() -> None:
    estimate = monte_carlo.estimate_allan_deviation(np.full((3, 2), [0.0, 2.0]))
    assert estimate.low.tolist() == estimate.value.tolist() == estimate.high.tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: monte_carlo.estimate_allan_deviation([1.0]), "number of runs: 1; must be at least 2"),
        (lambda: monte_carlo.estimate_allan_deviation([1.0, -1.0]), "Allan deviation: -1.0; must be >= 0"),
        (lambda: monte_carlo.estimate_allan_deviation([1.0], 0.0), "dof: 0.0; must be above 0"),
        (lambda: monte_carlo.estimate_allan_deviation([1.0], [1.0, 2.0]), "shape of dof: (2,)"),
        (lambda: monte_carlo.estimate_mean([1.0]), "number of runs: 1; must be at least 2"),
        (lambda: monte_carlo.estimate_mean(1.0), "number of runs: no axis"),
        (lambda: monte_carlo.estimate_mean([1.0, 2.0], 1.0), "confidence: 1.0; must be between 0 and 1"),
        (lambda: monte_carlo.estimate_quantile([1.0, 2.0], 1.0), "probability: 1.0"),
        (lambda: monte_carlo.estimate_covariance([1.0, 2.0]), "must have two axes"),
        (lambda: monte_carlo.compute_nees([1.0, 2.0], np.eye(3)), "shape of the covariance"),
        (lambda: monte_carlo.compute_nees([1.0, 2.0], np.zeros((2, 2))), "covariance: singular or indefinite"),
        (lambda: monte_carlo.compute_nees([1.0, 2.0], np.diag([1.0, -1.0])), "covariance: singular or indefinite"),
        (lambda: monte_carlo.compute_nees([1.0, 2.0], [[2.0, 1.0], [0.0, 2.0]]), "covariance: not symmetric"),
        (lambda: monte_carlo.estimate_rate([2, 3]), "flag: 2.0; must be true or false"),
        (lambda: monte_carlo.estimate_rate([0.5, 1.0]), "flag: 0.5; must be true or false"),
        (lambda: monte_carlo.estimate_rate([1.0, np.nan]), "values that are not finite: 1; must be 0"),
        (lambda: monte_carlo.estimate_mean([1.0, np.inf, np.nan]), "values that are not finite: 2; must be 0"),
        (lambda: monte_carlo.estimate_mean(np.ma.masked_less([1.0, 2.0, 3.0], 2.0)), "masked values: 1; must be 0"),
        (lambda: monte_carlo.compute_nees_bounds(0, 5), "dof: 0; must be an integer from 1 to 1000000000"),
        (lambda: monte_carlo.compute_nees_bounds(10**30, 5), "must be an integer from 1 to 1000000000"),
    ],
)
def test_wrong_arguments(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ns.NavsenseError) as error:
        call()
    assert text in str(error.value)
