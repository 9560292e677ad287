"""Parts of the noise model, one formula each, at the limits of their branches."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navsense.noise.terms import (
    compute_turn_on_bias,
    decay_factor,
    gauss_markov_stddev,
    gauss_markov_step,
    quantise,
    randomise_sign,
    saturate,
    stationary_stddev,
    white_noise,
)


@pytest.mark.requirement("NOI-5")
@pytest.mark.parametrize(
    ("value", "precision", "rounded"),
    [
        (0.32, 0.3, 0.3),  # these ten are from Gazebo's test of quantised noise
        (0.31, 0.3, 0.3),
        (0.30, 0.3, 0.3),
        (0.29, 0.3, 0.3),
        (0.28, 0.3, 0.3),
        (-12.92, 0.3, -12.9),
        (-12.91, 0.3, -12.9),
        (-12.90, 0.3, -12.9),
        (-12.89, 0.3, -12.9),
        (-12.88, 0.3, -12.9),
        (0.5, 1.0, 1.0),
        (-0.5, 1.0, -1.0),
        (2.5, 1.0, 3.0),
        (-2.5, 1.0, -3.0),
        (0.49999999999999994, 1.0, 0.0),
        (1.2e-7, 1e-7, 1e-7),
        (3.9e-7, 2e-7, 4e-7),
        (1e-300, 1e-301, 1e-300),
    ],
)
def test_quantisation_rounds_halves_away_from_zero(value: float, precision: float, rounded: float) -> None:
    assert quantise(value, precision) == pytest.approx(rounded, rel=1e-12, abs=0.0)


@pytest.mark.requirement("NOI-5")
@given(st.integers(-(10**12), 10**12), st.integers(0, 30))
def test_quantisation_to_powers_of_two_is_exact(numerator: int, exponent: int) -> None:
    value, precision = numerator / 2**35, 2.0**-exponent
    steps = (Decimal(abs(value)) / Decimal(precision)).to_integral_value(ROUND_HALF_UP)
    assert quantise(value, precision) == math.copysign(float(steps * Decimal(precision)), value)


def test_quantisation_below_double_resolution() -> None:
    for value in (1.0, -1e300, math.inf, -math.inf):
        assert quantise(value, 1e-300) == value
    assert math.isnan(quantise(math.nan, 0.1))


def test_saturation_at_its_limits() -> None:
    assert [saturate(x, -1.0, 2.0) for x in (-1.5, -1.0, 0.0, 2.0, 2.5, math.inf)] == [-1.0, -1.0, 0.0, 2.0, 2.0, 2.0]
    assert math.isnan(saturate(math.nan, -1.0, 2.0))


def test_white_noise_and_turn_on_bias() -> None:
    assert white_noise(0.5, 2.0, -1.25) == -2.0
    assert compute_turn_on_bias(0.5, 2.0, 0.75) == 2.0
    assert [randomise_sign(3.0, u) for u in (0.0, 0.49999, 0.5, 0.99)] == [-3.0, -3.0, 3.0, 3.0]


@pytest.mark.requirement("NOI-3")
@given(st.floats(1e-6, 1e4), st.floats(1e-3, 1e5), st.floats(1e-6, 1e3))
def test_two_drift_steps_equal_one_step_of_twice_the_length(dt: float, tau: float, sigma: float) -> None:
    """By Chapman-Kolmogorov, an exact process has the variance of two steps in one step of twice the length."""
    phi, q = decay_factor(dt, tau), gauss_markov_stddev(dt, sigma, tau)
    assert decay_factor(2.0 * dt, tau) == pytest.approx(phi * phi, rel=1e-12, abs=1e-300)
    assert gauss_markov_stddev(2.0 * dt, sigma, tau) ** 2 == pytest.approx(
        q * q * (1.0 + phi * phi), rel=1e-12, abs=0.0
    )
    exact = Decimal(-2) * Decimal(dt) / Decimal(tau)
    declared = Decimal(stationary_stddev(sigma, tau)) ** 2 * (1 - exact.exp())
    assert q * q == pytest.approx(float(declared), rel=1e-12, abs=0.0)


@pytest.mark.requirement("NOI-3")
def test_driving_noise_is_exact_for_steps_far_below_the_correlation_time() -> None:
    """The series q^2 = sigma^2 (dt - dt^2 / tau + ...) is accurate to 1e-18 here."""
    dt, tau, sigma = 1e-6, 3600.0, 2.0
    assert gauss_markov_stddev(dt, sigma, tau) == pytest.approx(
        sigma * math.sqrt(dt - dt * dt / tau), rel=1e-15, abs=0.0
    )


@pytest.mark.requirement("NOI-3")
def test_drift_has_published_values() -> None:
    """For RotorS' ADIS16448, 3.878509449e-5 and tau 1000 s give 8.67261e-4 stationary, 3.878490e-6 at 100 Hz."""
    assert stationary_stddev(3.878509449e-5, 1000.0) == pytest.approx(8.67261e-4, rel=1e-5, abs=0.0)
    assert gauss_markov_stddev(0.01, 3.878509449e-5, 1000.0) == pytest.approx(3.878490e-6, rel=1e-6, abs=0.0)
    assert gauss_markov_stddev(0.01, 6e-3, 300.0) == pytest.approx(5.99990e-4, rel=1e-6, abs=0.0)
    assert gauss_markov_step(2.0, 0.5, 3.0, -1.0) == -2.0
