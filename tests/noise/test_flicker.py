"""Flicker noise is flat over its band, exact for any step, and stationary from the first sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from navsense.core.errors import SensorError
from navsense.core.kernels import INTERPRETED
from navsense.core.random_streams import make_generator
from navsense.core.typing import FloatArray
from navsense.noise.terms import (
    MAX_RATIO,
    add_flicker,
    make_flicker_components,
    place_time_constants,
    write_coefficients,
)

FLOOR = math.sqrt(2.0 * math.log(2.0) / math.pi)
"""Allan deviation of flicker noise with B = 1: 0.6642824703 (IEEE Std 952-1997, annex C)."""


def compute_allan_variance(span: float, tau: float, deviation: float) -> float:
    """Return that of a Gauss-Markov process (IEEE Std 952-1997, annex C), by its series to avoid cancellation."""
    a = span / tau
    part = (
        a * a / 3.0 * (1.0 - 0.75 * a) if a < 1e-3 else 1.0 - (3.0 - 4.0 * math.exp(-a) + math.exp(-2.0 * a)) / 2.0 / a
    )
    return 2.0 * deviation**2 / a * part


def compute_floor(span: float, band: tuple[float, float]) -> float:
    tau, deviation = make_flicker_components(1.0, *band)
    return math.sqrt(sum(compute_allan_variance(span, t, s) for t, s in zip(tau, deviation, strict=True)))


def test_reference_formula_has_the_published_gauss_markov_peak() -> None:
    """Annex C gives the Gauss-Markov peak 0.437 q sqrt(T) at 1.89 T, with the deviation q sqrt(T / 2)."""
    spans = np.linspace(1.5, 2.5, 2001) * 100.0
    values = [math.sqrt(compute_allan_variance(span, 100.0, math.sqrt(50.0))) for span in spans]
    assert spans[int(np.argmax(values))] / 100.0 == pytest.approx(1.89, abs=0.005)
    assert max(values) / 10.0 == pytest.approx(0.437, abs=0.0005)


@pytest.mark.requirement("NOI-6", "CLK-8")
@pytest.mark.parametrize("shortest", [1e-4, 0.1, 30.0])
@pytest.mark.parametrize("ratio", [4.0, 5.7, 10.0, 100.0, 3.3e3, 1e5, 1e6, 1e9])
def test_allan_deviation_is_flat_over_the_band(shortest: float, ratio: float) -> None:
    spans = shortest * np.exp(np.linspace(0.0, math.log(ratio), 200))
    values = np.array([compute_floor(span, (shortest, shortest * ratio)) for span in spans])
    assert np.abs(values / FLOOR - 1.0).max() < 0.02


def test_flicker_needs_at_most_one_process_per_decade() -> None:
    tau = place_time_constants(0.1, 1e5)
    assert tau.size == 8
    assert np.allclose(np.diff(np.log(tau)), math.log(tau[1] / tau[0]), rtol=1e-12, atol=0.0)
    assert tau[1] / tau[0] <= MAX_RATIO


@pytest.mark.parametrize("band", [(0.0, 1.0), (1.0, 3.9), (-1.0, 1.0), (1.0, math.inf), (math.nan, 1.0)])
def test_empty_band_is_an_error(band: tuple[float, float]) -> None:
    with pytest.raises(SensorError, match="band of flicker noise"):
        place_time_constants(*band)


@pytest.mark.parametrize("dt", [1e-6, 1e-3, 0.7, 1e3])
def test_steps_of_any_length_keep_the_variance(dt: float) -> None:
    tau, deviation = make_flicker_components(0.3, 0.1, 1e4)
    phi, q = np.empty(tau.size), np.empty(tau.size)
    write_coefficients(dt, tau, deviation, phi, q)
    assert np.allclose(phi**2 * deviation**2 + q**2, deviation**2, rtol=1e-12, atol=0.0)
    once, twice, halved = np.empty(tau.size), np.empty(tau.size), np.empty(tau.size)
    write_coefficients(dt / 2.0, tau, deviation, once, halved)
    twice = once * once
    assert np.allclose(twice, phi, rtol=1e-12, atol=0.0)
    assert np.allclose(once**2 * halved**2 + halved**2, q**2, rtol=1e-9, atol=0.0)


def test_flicker_is_the_sum_of_its_processes_for_any_block_size() -> None:
    tau, deviation = make_flicker_components(1.0, 0.1, 1e3)
    phi, q = np.empty(tau.size), np.empty(tau.size)
    write_coefficients(0.02, tau, deviation, phi, q)
    draws = make_generator(1, ("flicker",)).standard_normal((tau.size, 500))
    complete, state = np.zeros(500), deviation.copy()
    add_flicker(phi, q, draws, state, complete)
    slow, values = [], deviation.tolist()
    for i in range(500):
        values = [p * v + s * w for p, v, s, w in zip(phi, values, q, draws[:, i], strict=True)]
        slow.append(math.fsum(values))
    assert np.allclose(complete, slow, rtol=0.0, atol=1e-12)
    parts, again = np.zeros(500), deviation.copy()
    for first, stop in ((0, 1), (1, 77), (77, 500)):
        add_flicker(phi, q, np.ascontiguousarray(draws[:, first:stop]), again, parts[first:stop])
    assert parts.tobytes() == complete.tobytes()
    assert again.tobytes() == state.tobytes()


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6", "CLK-8")
def test_samples_have_the_bias_instability_floor() -> None:
    """Differences of adjacent averages over many runs are normal, so their sum of squares is chi-squared.

    The declared variance is that of averages of samples. The false-alarm rate is 1e-6 over all spans.
    """
    dt, runs, band, spans = 0.05, 3000, (0.5, 50.0), (10, 40, 200)
    tau, deviation = make_flicker_components(1.0, *band)
    phi, q = np.empty(tau.size), np.empty(tau.size)
    write_coefficients(dt, tau, deviation, phi, q)
    normals, longest = make_generator(8, ("floor",)), 2 * max(spans)
    found = np.zeros((runs, len(spans)))
    for run in range(runs):
        out, state = np.zeros(longest), deviation * normals.standard_normal(tau.size)
        add_flicker(phi, q, normals.standard_normal((tau.size, longest)), state, out)
        found[run] = [out[m : 2 * m].mean() - out[:m].mean() for m in spans]
    low, high = chi2.ppf([0.5e-6 / len(spans), 1.0 - 0.5e-6 / len(spans)], runs) / runs
    for column, m in enumerate(spans):
        declared = compute_difference_variance(m, dt, tau, deviation)
        assert low < (found[:, column] ** 2).mean() / declared < high, f"{m * dt} s"
        if m >= 40:
            assert math.sqrt(declared / 2.0) == pytest.approx(FLOOR, rel=0.03, abs=0.0), (
                "averages of samples, near those of time"
            )


def compute_difference_variance(m: int, dt: float, tau: FloatArray, deviation: FloatArray) -> float:
    """Return the variance of the difference of two adjacent averages of m samples each."""
    weights = np.concatenate((np.full(m, -1.0 / m), np.full(m, 1.0 / m)))
    lag = np.abs(np.subtract.outer(np.arange(2 * m), np.arange(2 * m))) * dt
    covariance = sum(s**2 * np.exp(-lag / t) for t, s in zip(tau, deviation, strict=True))
    return float(weights @ covariance @ weights)


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    tau, deviation = make_flicker_components(1.0, 0.1, 1e5)
    draws = make_generator(3, ("flicker",)).standard_normal((tau.size, 2000))
    results = []
    for make, go_on in ((write_coefficients, add_flicker), (interpret(write_coefficients), interpret(add_flicker))):
        phi, q, state, out = np.empty(tau.size), np.empty(tau.size), deviation.copy(), np.zeros(2000)
        make(1e-3, tau, deviation, phi, q)
        go_on(phi, q, draws, state, out)
        results.append((phi, q, state, out))
    for compiled, plain in zip(*results, strict=True):
        assert compiled.tobytes() == plain.tobytes()
