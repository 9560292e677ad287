"""Spectra have the declared one-sided level and the declared scatter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from navsense.analysis import densities
from navsense.core.errors import AnalysisError
from navsense.core.typing import FloatArray


def compute_by_definition(values: FloatArray, rate: float, length: int, overlap: int, window: FloatArray) -> FloatArray:
    """Return Welch's mean of periodograms by definition, without its two end frequencies."""
    starts = range(0, values.size - length + 1, length - overlap)
    segments = np.array([values[i : i + length] for i in starts])
    segments = (segments - values.mean()) * window
    power = np.abs(np.fft.rfft(segments, axis=1)) ** 2
    return np.asarray(2.0 * power.mean(axis=0)[1 : (length + 1) // 2] / (rate * np.sum(window**2)))


@pytest.mark.parametrize(("length", "overlap"), [(64, 0.5), (63, 0.5), (64, 0.0), (50, 0.8)])
def test_density_is_the_mean_of_periodograms(length: int, overlap: float) -> None:
    from scipy.signal import get_window

    values = np.random.default_rng(1).standard_normal(1000) + 5.0
    found = densities.welch(values, 20.0, length, overlap=overlap)
    expected = compute_by_definition(values, 20.0, length, int(overlap * length), get_window("hann", length))
    assert found.density == pytest.approx(expected, rel=1e-10, abs=0.0)
    assert found.frequency == pytest.approx(np.arange(1, (length + 1) // 2) * 20.0 / length, rel=1e-12, abs=0.0)


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize(("window", "overlap"), [("boxcar", 0.0), ("hann", 0.5), ("hann", 0.75)])
def test_one_sided_density_of_white_noise_is_twice_its_density_squared(window: str, overlap: float) -> None:
    """N = 0.2 at 50 Hz gives 2 N^2 one-sided; each frequency scatters by sqrt(2 / dof). False alarms 1e-6."""
    density, rate = 0.2, 50.0
    values = density * math.sqrt(rate) * np.random.default_rng(2).standard_normal((200_000, 4))
    found = densities.welch(values, rate, 128, window=window, overlap=overlap)
    assert found.density.shape == (63, 4)
    relative = found.density / (2.0 * density**2) - 1.0
    error = math.sqrt(2.0 / found.dof)
    assert np.abs(relative).max() < 5.9 * error  # the largest of 252
    # A window correlates adjacent frequencies: the test counts half as many.
    assert abs(relative.mean()) < 4.892 * error / math.sqrt(126)
    assert abs(relative.var() / error**2 - 1.0) < 4.892 * math.sqrt(2.0 / 126)
    assert np.sqrt(0.5 * found.density).mean() == pytest.approx(density, rel=5.0 * error, abs=0.0)


def test_integral_of_the_density_is_the_variance() -> None:
    random = np.random.default_rng(3)
    values = np.convolve(random.standard_normal(50_000), np.ones(5), "valid")
    found = densities.welch(values, 10.0, values.size // 2, window="boxcar", overlap=0.0)
    # Parseval's theorem, without the two end frequencies: less than 1e-4 each.
    assert float(found.density.sum() * found.frequency[0]) == pytest.approx(float(values.var()), rel=2e-3, abs=0.0)


def test_default_length_is_a_power_of_two() -> None:
    assert densities.welch(np.zeros(1000) + np.arange(1000.0), 1.0).frequency[0] == 1.0 / 64
    assert densities.welch(np.arange(10.0), 1.0).frequency[0] == 1.0 / 8


@pytest.mark.parametrize(
    ("values", "keywords", "message"),
    [
        ([1.0, math.nan] * 8, {}, "must be .n,. finite numbers"),
        (2.0, {}, "must be .n,. finite numbers"),
        ([1.0] * 4, {}, "length: 8; must be from 8 to 4"),
        ([1.0] * 20, {"length": 21}, "length: 21; must be from 8 to 20"),
        ([1.0] * 20, {"overlap": 1.0}, "overlap: 1.0; must be from 0 to below 1"),
    ],
)
def test_series_without_spectrum_is_an_error(values: object, keywords: dict[str, float], message: str) -> None:
    with pytest.raises(AnalysisError, match=message):
        densities.welch(values, 1.0, **keywords)
