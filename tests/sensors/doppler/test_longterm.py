"""Long-term velocity equals a complete Schmidt-Kalman filter, and its covariance matches a thousand runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from navsense.core.errors import SensorError
from navsense.core.kernels import INTERPRETED
from navsense.core.typing import FloatArray
from navsense.sensors.doppler import LongTermFilter, make_janus_beams
from navsense.sensors.doppler.long_term_filter import STATE_SIZE, filter_pings, make_state, process_ping

FALSE_ALARM = 1e-6
SHEET = LongTermFilter(0.05, 0.004)


def make_pings(rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return uneven times, velocities and full covariances of pings."""
    time = np.cumsum(rng.uniform(0.05, 0.6, count))
    root = rng.normal(size=(count, 3, 3)) * 0.02
    return time, rng.normal(size=(count, 3)), root @ np.swapaxes(root, 1, 2) + 1e-6 * np.eye(3)


def run_schmidt_filter(
    spec: LongTermFilter, time: FloatArray, velocity: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return estimates and covariances of a six-state Schmidt-Kalman filter with three considered states.

    The gains of the offset are 0. The covariance is in Joseph's form, valid for any gain. The first ping is the first
    estimate, with the error minus offset and noise.
    """
    eye, none = np.eye(3), np.zeros((3, 3))
    offset = spec.assumed_offset**2 * eye
    state = np.concatenate([velocity[0], np.zeros(3)])
    spread = np.block([[covariance[0] + offset, -offset], [-offset, offset]])
    sees, walk = np.hstack([eye, eye]), np.block([[eye, none], [none, none]])
    states, spreads = [state[:3]], [spread[:3, :3]]
    for k in range(1, len(time)):
        spread = spread + spec.acceleration_density**2 * (time[k] - time[k - 1]) * walk
        innovation = sees @ spread @ sees.T + covariance[k]
        gain = spread @ sees.T @ np.linalg.inv(innovation)
        gain[3:] = 0.0
        state = state + gain @ (velocity[k] - sees @ state)
        left = np.eye(6) - gain @ sees
        spread = left @ spread @ left.T + gain @ covariance[k] @ gain.T
        states.append(state[:3])
        spreads.append(spread[:3, :3])
    return np.array(states), np.array(spreads)


@pytest.mark.requirement("GAP-3")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spec", [SHEET, LongTermFilter(2.0), LongTermFilter(1e-3, 0.1)])
def test_long_term_filter_equals_the_schmidt_kalman_filter(seed: int, spec: LongTermFilter) -> None:
    time, velocity, covariance = make_pings(np.random.default_rng(seed), 60)
    out = np.full((60, 3), math.nan)
    spread = filter_pings(spec, make_state(), time, np.ones(60), velocity, covariance, out)
    expected, wide = run_schmidt_filter(spec, time, velocity, covariance)
    assert out == pytest.approx(expected, rel=1e-8, abs=1e-10)
    assert spread == pytest.approx(wide, rel=1e-7, abs=1e-12)


def simulate_normalised_squares(
    rng: np.random.Generator, runs: int, count: int, motion: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return squared errors by the covariance (runs, count), and mean covariances (count, 3, 3).

    The default motion is the random walk of the filter. Pings have four beams, and every seventh fails.
    """
    rate, beam = 5.0, 0.03
    time = np.arange(1, count + 1) / rate
    axes = make_janus_beams(math.radians(30.0), [0.8, 2.4, 4.0, 5.5]).axes
    inverse = np.linalg.pinv(axes)
    covariance = np.tile(beam**2 * inverse @ inverse.T, (count, 1, 1))
    mode = np.where(np.arange(count) % 7 == 3, 0.0, 1.0)
    squares, total = np.empty((runs, count)), np.zeros((count, 3, 3))
    for run in range(runs):
        true = motion
        if true is None:
            true = rng.normal(size=3) + np.cumsum(
                rng.normal(size=(count, 3)) * SHEET.acceleration_density / math.sqrt(rate), axis=0
            )
        offset = rng.normal(size=3) * SHEET.assumed_offset
        measured = true + offset + rng.normal(size=(count, 4)) * beam @ inverse.T
        measured[mode == 0.0] = math.nan
        out = np.full((count, 3), math.nan)
        spread = filter_pings(SHEET, make_state(), time, mode, measured, covariance, out)
        error = out - true
        squares[run] = np.sum(error * np.linalg.solve(spread, error[:, :, None])[:, :, 0], axis=1)
        total += spread
    return squares, total / runs


@pytest.mark.compiled
@pytest.mark.requirement("GAP-3")
def test_covariance_matches_the_errors() -> None:
    """Over 1000 runs of the declared motion, the sum is chi-squared with 3000 degrees of freedom at each ping.

    False alarms 1e-6 over all forty pings. The filter is more accurate than single pings at the end.
    """
    runs, count = 1000, 40
    squares, spread = simulate_normalised_squares(np.random.default_rng(17), runs, count, None)
    low, high = chi2.ppf([FALSE_ALARM / count / 2.0, 1.0 - FALSE_ALARM / count / 2.0], 3 * runs)
    total = squares.sum(axis=0)
    assert np.all((low < total) & (total < high))
    assert spread[-1, 0, 0] < 0.6 * spread[0, 0, 0]
    assert spread[-1, 0, 0] > SHEET.assumed_offset**2


@pytest.mark.requirement("GAP-3")
def test_undeclared_motion_increases_the_errors() -> None:
    """The vehicle accelerates more than the density allows, so the covariance is far too small."""
    time = np.arange(1, 41) / 5.0
    steady = np.column_stack([0.5 * time, np.zeros(40), np.zeros(40)])
    squares, _ = simulate_normalised_squares(np.random.default_rng(18), 50, 40, steady)
    assert squares[:, -1].mean() > 10.0 * 3.0


@pytest.mark.requirement("GAP-3")
def test_stationary_filter_converges_to_the_riccati_variance() -> None:
    """The stationary variance is that of the scalar Riccati equation plus that of the long-term error."""
    rate, sigma, density, count = 10.0, 0.02, 0.003, 4000
    time, still = np.arange(1, count + 1) / rate, np.zeros((count, 3))
    covariance = np.tile(sigma**2 * np.eye(3), (count, 1, 1))
    out = np.empty((count, 3))
    spread = filter_pings(LongTermFilter(density, 0.001), make_state(), time, np.ones(count), still, covariance, out)
    walked = density**2 / rate
    settled = 0.5 * (math.sqrt(walked**2 + 4.0 * walked * sigma**2) - walked)  # p = (p + w) r / (p + w + r)
    assert spread[-1] == pytest.approx((settled + 1e-6) * np.eye(3), rel=1e-10, abs=1e-20)
    assert np.array_equal(out, np.zeros((count, 3)))


@pytest.mark.requirement("GAP-3")
def test_failed_pings_keep_the_velocity_of_each_track() -> None:
    time = np.arange(1.0, 8.0)
    mode = np.array([0.0, 1.0, 0.0, 2.0, math.nan, 0.0, 1.0])
    velocity = np.arange(21.0).reshape(7, 3)
    covariance = np.tile(1e-4 * np.eye(3), (7, 1, 1))
    out = np.full((7, 3), math.nan)
    spread = filter_pings(LongTermFilter(0.1), make_state(), time, mode, velocity, covariance, out)
    assert np.isnan(out[[0, 4]]).all()
    assert np.isnan(spread[[0, 4]]).all()
    assert np.array_equal(out[2], out[1])
    assert np.array_equal(out[1], velocity[1])
    assert np.array_equal(out[3], velocity[3])  # the first water ping
    assert np.array_equal(out[5], velocity[3])
    assert spread[2, 0, 0] == pytest.approx(1e-4 + 0.01, rel=1e-14, abs=0.0)
    assert spread[5, 0, 0] == pytest.approx(1e-4 + 0.02, rel=1e-14, abs=0.0)
    gain = (1e-4 + 0.05) / (2e-4 + 0.05)  # five seconds after the previous bottom ping
    assert out[6] == pytest.approx(velocity[1] + gain * (velocity[6] - velocity[1]), rel=1e-13, abs=0.0)


@pytest.mark.requirement("GAP-3")
@pytest.mark.parametrize("cut", [1, 7, 30, 59])
def test_filter_does_not_depend_on_block_size(cut: int) -> None:
    time, velocity, covariance = make_pings(np.random.default_rng(4), 60)
    mode = np.where(np.arange(60) % 5 == 0, 2.0, np.where(np.arange(60) % 4 == 0, 0.0, 1.0))
    complete, parts, first_state, second_state = (
        np.full((60, 3), math.nan),
        np.full((60, 3), math.nan),
        make_state(),
        make_state(),
    )
    spread = filter_pings(SHEET, first_state, time, mode, velocity, covariance, complete)
    pieces = [
        filter_pings(SHEET, second_state, time[p], mode[p], velocity[p], covariance[p], parts[p])
        for p in (slice(None, cut), slice(cut, None))
    ]
    assert np.array_equal(complete, parts, equal_nan=True)
    assert np.array_equal(spread, np.concatenate(pieces), equal_nan=True)
    assert np.array_equal(first_state, second_state, equal_nan=True)


def test_ping_without_errors_is_used_unchanged() -> None:
    own = np.full(STATE_SIZE, math.nan)
    for k in range(3):
        measured = np.array([1.0, -2.0, 0.5]) * (k + 1)
        process_ping(own, float(k), measured, np.zeros((3, 3)), 0.1)
        assert own[1:4] == pytest.approx(measured, rel=1e-14, abs=0.0)
        assert np.array_equal(own[4:], np.zeros(9))


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_invalid_filter_is_an_error(value: float) -> None:
    with pytest.raises(SensorError, match="acceleration_density of the long-term filter"):
        LongTermFilter(value)
    if value != 0.0:
        with pytest.raises(SensorError, match="assumed_offset of the long-term filter"):
            LongTermFilter(0.1, value)


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    time, velocity, covariance = make_pings(np.random.default_rng(6), 50)
    one, two = np.full(STATE_SIZE, math.nan), np.full(STATE_SIZE, math.nan)
    for k in range(50):
        process_ping(one, time[k], velocity[k], covariance[k], 0.3)
        interpret(process_ping)(two, time[k], velocity[k], covariance[k], 0.3)
        assert np.array_equal(one, two)
