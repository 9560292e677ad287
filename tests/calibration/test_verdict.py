"""Verdicts: white residuals and others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import norm

from navsense.calibration.verdict import LEVELS, STEP, Verdict, Whiteness, correlation, weakness, whiteness
from navsense.typing import FloatArray


def judged(residuals: FloatArray) -> Whiteness:
    """Return the verdict on residuals (n,) or (n, axes), from the sums over their blocks."""
    rows = residuals.reshape(len(residuals), -1)
    mean, counts, ratios = float(np.mean(np.sum(rows**2, axis=1))), [], []
    for length in STEP ** np.arange(1, LEVELS):
        count = len(rows) // int(length)
        if count:
            sums = rows[: count * length].reshape(count, length, -1).sum(axis=1)
            counts.append(count)
            ratios.append(float(np.mean(np.sum(sums**2, axis=1))) / mean / float(length))
    return whiteness(ratios, counts, rows.shape[1])


def correlated(count: int, rho: float, seed: int) -> FloatArray:
    """Return residuals (count,) of unit variance, each rho times the one before it, and a new part."""
    draws = np.random.default_rng(seed).normal(size=count)
    draws[0] /= np.sqrt(1.0 - rho * rho)
    return np.asarray(lfilter([np.sqrt(1.0 - rho * rho)], [1.0, -rho], draws))


def block_ratio(rho: float, length: int) -> float:
    """Return V of such residuals: 1 + 2 sum (1 - j / length) rho^j."""
    return 1.0 + 2.0 * sum((1.0 - j / length) * rho**j for j in range(1, length))


@pytest.mark.requirement("FAC-7")
def test_white_residuals_are_white() -> None:
    """2000 records of 1e-6 false alarm each: two or more alarms have a probability of 2e-6."""
    rng = np.random.default_rng(1)
    alarms = sum(not judged(rng.normal(size=(1000, 3))).white for _ in range(2000))
    assert alarms <= 1


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("rho", [0.3, 0.6])
def test_correlated_residuals_are_told_with_their_size(rho: float) -> None:
    """The inflation is the largest V of the blocks, within 5 deviations of the block sums' variance."""
    found = judged(correlated(200000, rho, 2))
    assert not found.white
    limit = (1.0 + rho) / (1.0 - rho)
    deviation = np.sqrt(2.0 / (200000 / found.span)) * norm.isf(5e-7)
    assert block_ratio(rho, 8) * (1.0 - 0.05) < found.inflation < limit * (1.0 + deviation)
    assert correlation(found)
    assert f"some {found.span} samples" in correlation(found)[0]


def test_a_walk_is_not_taken_to_be_over() -> None:
    """Residuals that wander as long as the record: the variance of the longest blocks is taken to grow on."""
    assert whiteness([5.0, 30.0], [512, 64], 1) == Whiteness(white=False, inflation=30.0 * 6.0, span=64)
    assert whiteness([5.0, 4.0], [512, 64], 1) == Whiteness(white=False, inflation=5.0, span=8)
    assert whiteness([5.0, 30.0, 900.0], [512, 64, 8], 1).span == 64  # eight blocks are too few to look at
    assert not judged(np.cumsum(np.random.default_rng(5).normal(size=4096))).white


def test_slight_correlation_is_inflated_but_no_reason() -> None:
    found = judged(correlated(1_000_000, 0.02, 7))
    assert not found.white
    assert 1.0 < found.inflation < 1.1
    assert correlation(found) == ()


def test_short_records_and_none_at_all_are_not_accused() -> None:
    assert judged(correlated(90, 0.9, 1)) == Whiteness()
    assert whiteness([], [], 3) == Whiteness()


def test_the_words_of_a_verdict() -> None:
    good = Verdict(0.001, 0.999)
    assert good.ok
    assert str(good) == "ok: known to 0.1 % of the field, 99.9 % explained"
    reasons = weakness(0.03, "tilt it") + correlation(Whiteness(white=False, inflation=4.0, span=64))
    poor = Verdict(0.03, 0.8, Whiteness(white=False, inflation=4.0, span=64), reasons)
    assert not poor.ok
    assert str(poor).splitlines()[0] == "poor: known to 3 % of the field, 80 % explained"
    assert "tilt it" in str(poor)
    assert "multiplied by 4" in str(poor)
    assert weakness(0.01, "") == ()
