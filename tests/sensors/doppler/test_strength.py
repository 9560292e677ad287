"""Echo strength: the sonar equation, pulse-pair phase noise by Monte Carlo, and lock probability."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from navsense.core.errors import SensorError
from navsense.core.kernels import INTERPRETED
from navsense.sensors.doppler import EchoStrength
from navsense.sensors.doppler.beam_errors import (
    MIN_STRENGTH,
    compute_lock_probability,
    compute_noise_factor,
    compute_strength,
)


@pytest.mark.requirement("GAP-2")
def test_echo_follows_the_sonar_equation() -> None:
    """Twice the range costs 9.03 dB; 0.15 dB/m over 10 m costs 3 dB; an incidence of 60 degrees costs 6.02 dB."""
    assert compute_strength(40.0, 0.0, 1.0, 1.0) == 40.0
    assert compute_strength(40.0, 0.0, 10.0, 1.0) == pytest.approx(10.0, rel=1e-14, abs=0.0)
    assert compute_strength(40.0, 0.0, 16.0, 1.0) - compute_strength(40.0, 0.0, 8.0, 1.0) == pytest.approx(
        -9.0309, abs=5e-5
    )
    assert compute_strength(40.0, 0.15, 10.0, 1.0) == pytest.approx(7.0, rel=1e-14, abs=0.0)
    assert compute_strength(40.0, 0.0, 1.0, math.cos(math.pi / 3.0)) == pytest.approx(40.0 - 6.0206, abs=5e-5)
    assert compute_strength(40.0, 0.0, 1.0, -0.5) == compute_strength(40.0, 0.0, 1.0, 0.5)
    power = 10.0 ** (compute_strength(0.0, 0.07, 30.0, 0.8) / 10.0)
    assert power == pytest.approx(0.8**2 * 30.0**-3 * 10.0 ** (-2.0 * 0.07 * 30.0 / 10.0), rel=1e-13, abs=0.0)


def test_echo_at_zero_range_and_grazing_incidence() -> None:
    assert compute_strength(40.0, 0.1, 0.0, 1.0) == math.inf
    assert compute_strength(40.0, 0.1, 5.0, 0.0) == -math.inf
    assert math.isnan(compute_strength(40.0, 0.1, math.nan, 1.0))
    assert compute_noise_factor(math.inf, 0.9) == 1.0
    assert (
        compute_noise_factor(-math.inf, 0.9)
        == compute_noise_factor(MIN_STRENGTH, 0.9)
        == pytest.approx(1e10 / math.sqrt(0.19), rel=1e-9, abs=0.0)
    )
    assert compute_lock_probability(math.inf, 6.0, 1.0) == 1.0
    assert compute_lock_probability(-math.inf, 6.0, 1.0) == 0.0


@pytest.mark.requirement("GAP-2")
@pytest.mark.parametrize(("correlation", "decibels"), [(0.9, 10.0), (0.9, 3.0), (0.7, 10.0), (0.98, 0.0)])
def test_phase_deviation_equals_pulse_pair_simulation(correlation: float, decibels: float) -> None:
    """Monte Carlo gives the phase deviation of means of M products, with and without noise.

    A deviation of 3000 samples has the error 1 / sqrt(6000); a false-alarm rate of 1e-6 is 4.9 of them. The formula is
    of first order in 1 / M; at M = 200 it neglects terms of (rho^-2 - 1) / M, below 0.02.
    """
    rng, count, pairs = np.random.default_rng(21), 3000, 200

    def simulate_phase_deviation(noise: float) -> float:
        """Return the deviation of the phase (rad) for noise of this power."""
        total = np.zeros(count, dtype=np.complex128)
        for _ in range(pairs):
            normal = rng.normal(size=(8, count)) / math.sqrt(2.0)
            one = normal[0] + 1j * normal[1]
            two = correlation * one + math.sqrt(1.0 - correlation**2) * (normal[2] + 1j * normal[3])
            one = one + math.sqrt(noise) * (normal[4] + 1j * normal[5])
            two = two + math.sqrt(noise) * (normal[6] + 1j * normal[7])
            total += two * np.conj(one)
        return float(np.std(np.angle(total)))

    noise = 10.0 ** (-decibels / 10.0)
    expected = math.sqrt((correlation**-2 - 1.0) / (2.0 * pairs))
    clear, noisy = simulate_phase_deviation(0.0), simulate_phase_deviation(noise)
    assert clear == pytest.approx(expected, rel=4.9 / math.sqrt(2.0 * count), abs=0.0)
    assert noisy / clear == pytest.approx(
        compute_noise_factor(decibels, correlation), rel=4.9 / math.sqrt(count), abs=0.0
    )


@pytest.mark.requirement("GAP-2", "GAP-9")
def test_weaker_echo_has_more_noise_and_less_lock() -> None:
    strengths = [compute_strength(60.0, 0.1, r, 0.9) for r in np.geomspace(0.5, 200.0, 60)]
    factors = [compute_noise_factor(s, 0.9) for s in strengths]
    locked = [compute_lock_probability(s, 6.0, 1.5) for s in strengths]
    assert factors == sorted(factors)
    assert locked == sorted(locked, reverse=True)
    assert factors[0] == pytest.approx(1.0, abs=1e-3)
    assert locked[0] > 1.0 - 1e-9
    assert locked[-1] < 1e-6


@pytest.mark.requirement("GAP-9")
@pytest.mark.parametrize("lock_width", [0.01, 1.0, 7.0])
def test_lock_probability_is_logistic(lock_width: float) -> None:
    for decibels in (-1e4, -40.0, 0.0, 5.9, 6.0, 6.3, 20.0, 1e4):
        expected = float(expit((decibels - 6.0) / lock_width))
        assert compute_lock_probability(decibels, 6.0, lock_width) == pytest.approx(expected, rel=1e-13, abs=1e-300)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"level": math.nan}, "level of the echo's strength"),
        ({"level": math.inf}, "level of the echo's strength"),
        ({"absorption": -0.1}, "absorption of the echo's strength"),
        ({"correlation": 0.0}, "correlation of the echo's strength"),
        ({"correlation": 1.0}, "correlation of the echo's strength"),
        ({"lock_width": 0.0}, "lock_width of the echo's strength"),
        ({"threshold": math.nan}, "threshold of the echo's strength"),
    ],
)
def test_invalid_signal_is_an_error(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(SensorError, match=problem):
        EchoStrength(**{"level": 40.0, **arguments})


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    rng = np.random.default_rng(3)
    cases: list[tuple[Any, tuple[float, ...]]] = []
    for _ in range(2000):
        cases.append((compute_strength, (40.0, 0.1, float(rng.uniform(0.1, 200.0)), float(rng.uniform(-1.0, 1.0)))))
        cases.append((compute_noise_factor, (float(rng.uniform(-120.0, 60.0)), float(rng.uniform(0.1, 0.99)))))
        cases.append((compute_lock_probability, (float(rng.uniform(-60.0, 60.0)), 6.0, float(rng.uniform(0.1, 5.0)))))
    plain = {kernel: interpret(kernel) for kernel in (compute_strength, compute_noise_factor, compute_lock_probability)}
    assert [kernel(*arguments) for kernel, arguments in cases] == [
        plain[kernel](*arguments) for kernel, arguments in cases
    ]
