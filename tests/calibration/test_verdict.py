"""Verdicts: white and correlated residuals, outliers, and position-dependent residuals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.signal import lfilter
from scipy.stats import chi2, norm

from navsense.calibration.checks import Subsample
from navsense.calibration.verdict import (
    BLOCK_FACTOR,
    BLOCK_LEVELS,
    FALSE_ALARM,
    MAX_SMALL_SHARE,
    UNEQUAL_AXES_FACTOR,
    Verdict,
    Whiteness,
    assess_whiteness,
    list_correlation_reasons,
    list_direction_dependence_reasons,
    list_distribution_reasons,
    list_excess_noise_reasons,
    list_stddev_reasons,
    list_zero_reading_reasons,
)
from navsense.core.typing import FloatArray, Vectors


def judge_residuals(residuals: FloatArray) -> Whiteness:
    """Return the verdict on residuals (n,) or (n, axes), from their block sums."""
    rows = residuals.reshape(len(residuals), -1)
    mean, counts, ratios = float(np.mean(np.sum(rows**2, axis=1))), [], []
    for length in BLOCK_FACTOR ** np.arange(1, BLOCK_LEVELS):
        count = len(rows) // int(length)
        if count:
            sums = rows[: count * length].reshape(count, length, -1).sum(axis=1)
            counts.append(count)
            ratios.append(float(np.mean(np.sum(sums**2, axis=1))) / mean / float(length))
    return assess_whiteness(ratios, counts, rows.shape[1])


def make_correlated_residuals(count: int, rho: float, seed: int) -> FloatArray:
    """Return residuals (count,) of a first-order autoregressive process with unit variance."""
    draws = np.random.default_rng(seed).normal(size=count)
    draws[0] /= np.sqrt(1.0 - rho * rho)
    return np.asarray(lfilter([np.sqrt(1.0 - rho * rho)], [1.0, -rho], draws))


def compute_block_ratio(rho: float, length: int) -> float:
    """Return V of such residuals: 1 + 2 sum (1 - j / length) rho^j."""
    return 1.0 + 2.0 * sum((1.0 - j / length) * rho**j for j in range(1, length))


@pytest.mark.requirement("FAC-7")
def test_white_residuals_are_accepted() -> None:
    """With 2000 records at a false-alarm rate of 1e-6, two or more alarms have a probability of 2e-6."""
    rng = np.random.default_rng(1)
    alarms = sum(not judge_residuals(rng.normal(size=(1000, 3))).white for _ in range(2000))
    assert alarms <= 1


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("rho", [0.3, 0.6])
def test_correlated_residuals_are_reported(rho: float) -> None:
    """The inflation is the largest V of the blocks, within 5 deviations of the variance of the block sums."""
    found = judge_residuals(make_correlated_residuals(200000, rho, 2))
    assert not found.white
    limit = (1.0 + rho) / (1.0 - rho)
    deviation = np.sqrt(2.0 / (200000 / found.span)) * norm.isf(5e-7)
    assert compute_block_ratio(rho, 8) * (1.0 - 0.05) < found.inflation < limit * (1.0 + deviation)
    assert list_correlation_reasons(found)
    assert f"about {found.span} samples" in list_correlation_reasons(found)[0]


def test_random_walk_is_extrapolated() -> None:
    """The correlation time is that of the record: the variance of the longest blocks is extrapolated."""
    assert assess_whiteness([5.0, 30.0], [512, 64], 1) == Whiteness(white=False, inflation=30.0 * 6.0, span=64)
    assert assess_whiteness([5.0, 4.0], [512, 64], 1) == Whiteness(white=False, inflation=5.0, span=8)
    assert assess_whiteness([5.0, 30.0, 900.0], [512, 64, 8], 1).span == 64  # eight blocks are too few
    assert not judge_residuals(np.cumsum(np.random.default_rng(5).normal(size=4096))).white


def test_slight_correlation_inflates_the_covariance_only() -> None:
    found = judge_residuals(make_correlated_residuals(1_000_000, 0.02, 7))
    assert not found.white
    assert 1.0 < found.inflation < 1.1
    assert list_correlation_reasons(found) == ()


def test_short_and_empty_records_have_no_reason() -> None:
    assert judge_residuals(make_correlated_residuals(90, 0.9, 1)) == Whiteness()
    assert assess_whiteness([], [], 3) == Whiteness()


def test_verdict_text_names_its_reasons() -> None:
    good = Verdict(0.001, 0.999)
    assert good.ok
    assert str(good) == "ok: known to 0.1 % of the field, R² 0.9990"
    reasons = list_stddev_reasons(0.03, "tilt it") + list_correlation_reasons(
        Whiteness(white=False, inflation=4.0, span=64)
    )
    poor = Verdict(0.03, 0.8, Whiteness(white=False, inflation=4.0, span=64), reasons)
    assert not poor.ok
    assert str(poor).splitlines()[0] == "poor: known to 3 % of the field, R² 0.8000"
    assert "tilt it" in str(poor)
    assert "multiplied by 4" in str(poor)
    assert list_stddev_reasons(0.01, "") == ()


def describe_shape(residuals: Vectors, readings: Vectors | None = None, stddev: float = np.inf) -> tuple[str, ...]:
    """Return the reasons about the distribution of residuals (n, axes), by default of distinct readings."""
    kept = Subsample(3)
    kept.update(np.random.default_rng(9).normal(size=(len(residuals), 3)) if readings is None else readings)
    squares = np.sum(residuals**2, axis=1) / np.mean(residuals**2)
    return list_distribution_reasons(squares, residuals.shape[1], kept, stddev)


def make_residuals(kind: str, count: int, rng: np.random.Generator) -> Vectors:
    """Return residuals of one kind: normal, one noisy axis, attitude errors, distances."""
    draws = rng.normal(size=(count, 3))
    if kind == "loud axis":
        return draws * (0.1, 0.1, 1.0)
    direction = rng.normal(size=(count, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    if kind == "attitude":
        return np.cross(direction, draws)
    if kind == "heading":
        return np.cross(direction, [0.0, 0.0, 1.0]) / np.hypot(*direction.T[:2])[:, None] * draws[:, :1]
    return draws[:, :1] * direction[:, :1] if kind == "distances" else draws


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("kind", ["normal", "loud axis", "attitude", "heading", "distances"])
@pytest.mark.parametrize("count", [20, 300, 4096])
def test_usual_noise_distributions_have_no_reason(kind: str, count: int) -> None:
    """With 200 records at a false-alarm rate of 1e-6, an alarm has a probability of 2e-4, two of 2e-8."""
    rng = np.random.default_rng(3)
    assert sum(bool(describe_shape(make_residuals(kind, count, rng))) for _ in range(200)) <= 1


def test_shape_bounds_hold_for_the_worst_noise() -> None:
    """The median is small if one of three directions dominates, and if one axis is seen along a rotating normal."""
    heading = chi2.cdf(0.25 * chi2.median(3) / UNEQUAL_AXES_FACTOR, 1)
    distances = quad(lambda n: chi2.cdf(0.25 * chi2.median(1) / (UNEQUAL_AXES_FACTOR * n * n), 1), 0.0, 1.0)[0]
    assert 0.3 < heading < distances < MAX_SMALL_SHARE
    # A distant reading in one direction: 3 chi-squared(1) exceeds 3 z^2 once in 2 / FALSE_ALARM records of n.
    z = norm.isf(FALSE_ALARM / (4.0 * 1000))
    assert np.isclose(
        1000 * chi2.sf(UNEQUAL_AXES_FACTOR * z * z / UNEQUAL_AXES_FACTOR, 1), 0.5 * FALSE_ALARM, rtol=1e-12, atol=0.0
    )


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize(("share", "size"), [(0.001, 100.0), (0.01, 10.0), (0.05, 8.0)])
def test_outliers_are_named(share: float, size: float) -> None:
    rng = np.random.default_rng(4)
    residuals = rng.normal(size=(4000, 3))
    some = rng.choice(4000, int(4000 * share), replace=False)
    residuals[some] *= size
    (reason,) = describe_shape(residuals)
    row = int(reason.partition("row ")[2].split()[0])
    assert row in some
    assert "far from the fit" in reason


@pytest.mark.requirement("FAC-7")
def test_equal_outliers_are_shown() -> None:
    readings = np.random.default_rng(5).normal(size=(2000, 3))
    residuals = np.random.default_rng(6).normal(size=(2000, 3))
    residuals[::100] += 20.0
    readings[::100] = -0.5
    (reason,) = describe_shape(residuals, readings)
    assert "20 of 2000 tested readings lie far from the fit" in reason
    assert "row 0 (-0.5, -0.5, -0.5) first, 20 of them at exactly (-0.5, -0.5, -0.5)" in reason


@pytest.mark.requirement("FAC-7")
def test_readings_that_dominate_the_variance_are_named() -> None:
    residuals = np.random.default_rng(7).normal(size=(3000, 3))
    residuals[:500] *= 15.0  # near the vehicle's iron
    (reason,) = describe_shape(residuals)
    assert reason.startswith("a tenth of the readings makes ")


def test_coarse_quantisation_is_not_reported_as_outliers() -> None:
    """A sensor at rest between two quantisation steps: nearly all readings at one step, some at the next."""
    readings = np.zeros((2000, 3))
    readings[::2, 1], readings[7, 0] = 0.5, 0.5
    residuals = np.zeros((2000, 3))
    residuals[7, 0] = 0.5
    stddev = float(np.sqrt(np.mean(residuals**2)))
    assert describe_shape(residuals, readings)
    assert describe_shape(residuals, readings, stddev) == ()
    assert list_distribution_reasons(np.zeros(0), 3, Subsample(3)) == ()


def make_sphere(count: int, seed: int) -> Vectors:
    rows = np.random.default_rng(seed).normal(size=(count, 3))
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("count", [20, 100, 500])
@pytest.mark.parametrize("loud", [0.0, 3.0])
def test_position_independent_residuals_have_no_reason(count: int, loud: float) -> None:
    """With 200 records at 1e-6, equal axes or one with four times the noise, two alarms have less than 2e-8."""
    rng, alarms = np.random.default_rng(8), 0
    for seed in range(200):
        field = make_sphere(count, seed)
        residuals = 0.1 * np.sum(field * rng.normal(size=(count, 3)) * (1.0, 1.0, 1.0 + loud), axis=1)
        alarms += bool(list_direction_dependence_reasons(residuals, field, 1.0))
    assert alarms <= 1


@pytest.mark.requirement("FAC-7")
def test_position_dependent_residuals_are_a_reason() -> None:
    field = make_sphere(2000, 1)
    left = np.minimum(field[:, 0], 0.8)
    left = left - field @ np.linalg.lstsq(field, left, rcond=None)[0]
    noisy = left + 0.02 * np.random.default_rng(2).normal(size=2000)
    (reason,) = list_direction_dependence_reasons(noisy, field, 1.0)
    assert "depend on its direction in the sensor" in reason
    size = float(reason.split("of ")[1].split(" %")[0]) / 100.0
    assert abs(size / np.sqrt(np.mean(left**2)) - 1.0) < 0.1
    assert list_direction_dependence_reasons(0.1 * noisy, field, 1.0) == ()  # harmless
    assert list_direction_dependence_reasons(noisy, field, 1000.0) == ()  # correlated residuals have the same effect


def test_warnings_of_dropouts_and_excess_noise() -> None:
    assert list_zero_reading_reasons((0, 0)) == ()
    assert list_zero_reading_reasons((1, 5))[0].startswith("a reading is exactly (0, 0, 0), row 5 first: leave out")
    assert "30 readings are exactly" in list_zero_reading_reasons((30, 7))[0]
    assert list_excess_noise_reasons(3.0, None, "uT") == ()
    assert list_excess_noise_reasons(1.9, 1.0, "uT") == ()
    assert "residuals of 3 µT per axis, where 1 µT are declared" in list_excess_noise_reasons(3.0, 1.0, "uT")[0]
