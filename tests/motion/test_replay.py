"""Replay of arrays: interpolation, smoothing, and the effect of position noise on the acceleration."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, make_smoothing_spline

from navsense.core.errors import MotionError
from navsense.description import format_log_noise
from navsense.motion import from_arrays
from navsense.motion._spline import smooth
from navsense.motion.replay import acceleration_noise, position_noise

Array = NDArray[np.float64]


def make_level_quaternions(count: int) -> Array:
    """Return constant quaternions (count, 4)."""
    return np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))


def make_uneven_times(seed: int, count: int, spacing: float) -> Array:
    """Return times from 0, `spacing` s apart with a variation of half the spacing."""
    gaps = np.random.default_rng(seed).uniform(0.5, 1.5, count - 1) * spacing
    return np.concatenate(([0.0], np.cumsum(gaps)))


@pytest.mark.requirement("TRU-1")
@pytest.mark.parametrize("count", [2, 3, 4, 50])
def test_motion_without_bandwidth_equals_scipys_interpolating_spline(count: int) -> None:
    rng = np.random.default_rng(count)
    time, position = make_uneven_times(1, count, 0.1), rng.normal(0.0, 1.0, (count, 3))
    rotation = make_level_quaternions(count) * 3.0 + rng.normal(0.0, 0.3, (count, 4))
    replay = from_arrays(time + 1000.0, position, rotation)
    time = (time + 1000.0) - 1000.0
    oracle = CubicSpline(time, position)
    instants = np.linspace(0.0, replay.end, 301)
    block = replay.at(instants)
    np.testing.assert_allclose(block.position_w, oracle(instants), atol=1e-11, rtol=0.0)
    np.testing.assert_allclose(block.velocity_w, oracle(instants, 1), atol=1e-9, rtol=0.0)
    np.testing.assert_allclose(block.acceleration_w, oracle(instants, 2), atol=1e-7, rtol=0.0)
    unit = rotation / np.linalg.norm(rotation, axis=1, keepdims=True)
    np.testing.assert_allclose(replay.at(time).rotation_wb, unit, atol=1e-13, rtol=0.0)
    assert replay.bandwidth is None
    assert replay.end == time[-1]
    assert math.isnan(replay.position_noise) == math.isnan(replay.acceleration_noise) == (count < 5)


@pytest.mark.parametrize(("count", "spacing", "bandwidth"), [(5, 0.1, 1.0), (6, 0.1, 1.0), (200, 0.01, 2.0)])
def test_motion_with_bandwidth_equals_scipys_smoothing_spline(count: int, spacing: float, bandwidth: float) -> None:
    time = make_uneven_times(2, count, spacing)
    position = np.random.default_rng(3).normal(0.0, 1.0, (count, 3))
    gaps = np.diff(time)
    weights = np.concatenate((gaps[:1], gaps[1:] + gaps[:-1], gaps[-1:])) / 2.0
    replay = from_arrays(time, position, make_level_quaternions(count), bandwidth=bandwidth)
    instants = np.linspace(0.0, replay.end, 301)
    block = replay.at(instants)
    for axis in range(3):
        lam = (2.0 * math.pi * bandwidth) ** -4
        oracle = make_smoothing_spline(time, position[:, axis], w=weights, lam=lam)
        np.testing.assert_allclose(block.position_w[:, axis], oracle(instants), atol=1e-9, rtol=0.0)
        np.testing.assert_allclose(block.velocity_w[:, axis], oracle(instants, 1), atol=1e-8, rtol=0.0)
        np.testing.assert_allclose(block.acceleration_w[:, axis], oracle(instants, 2), atol=1e-6, rtol=0.0)


def compute_exact_smoothing(time: Array, values: Array, bandwidth: float) -> Array:
    """Return the smoothing spline at its knots, by Gauss elimination of its normal equations with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        t, y = ([Decimal(float(v)) for v in array] for array in (time, values))
        count, lam = len(t), Decimal((2.0 * math.pi * bandwidth) ** -4)
        h = [b - a for a, b in pairwise(t)]
        share = [2 * lam / gap for gap in (h[0], *(a + b for a, b in pairwise(h)), h[-1])]
        rows = [(1 / h[j], -1 / h[j] - 1 / h[j + 1], 1 / h[j + 1]) for j in range(count - 2)]
        bend = [[Decimal(0)] * 4 for _ in rows]  # the main diagonal, two off-diagonals, the right side
        for j, row in enumerate(rows):
            for k in range(j, min(j + 3, count - 2)):
                pairs = range(k, j + 3)
                bend[j][k - j] = sum((share[i] * row[i - j] * rows[k][i - k] for i in pairs), Decimal(0))
            bend[j][0] += (h[j] + h[j + 1]) / 3
            bend[j][1] += h[j + 1] / 6
            bend[j][3] = sum((row[i] * y[j + i] for i in range(3)), Decimal(0))
        for j in range(len(rows)):
            for k in range(j + 1, min(j + 3, len(rows))):
                factor = bend[j][k - j] / bend[j][0]
                for m in range(k, min(j + 3, len(rows))):
                    bend[k][m - k] -= factor * bend[j][m - j]
                bend[k][3] -= factor * bend[j][3]
        solved = [Decimal(0)] * (len(rows) + 2)
        for j in reversed(range(len(rows))):
            solved[j] = (bend[j][3] - bend[j][1] * solved[j + 1] - bend[j][2] * solved[j + 2]) / bend[j][0]
        for j, row in enumerate(rows):
            for i in range(3):
                y[j + i] -= share[j + i] * row[i] * solved[j]
        return np.array([float(v) for v in y])


@pytest.mark.parametrize(("rate", "bandwidth", "tolerance"), [(100.0, 2.0, 1e-12), (1000.0, 0.5, 1e-5)])
def test_smoothing_is_exact_at_bandwidths_far_below_the_log_rate(
    rate: float, bandwidth: float, tolerance: float
) -> None:
    """Rounding grows with (rate / bandwidth)^4: in the second case SciPy's spline is off by more than 1e-6."""
    time = make_uneven_times(4, 1500, 1.0 / rate)
    values = 5.0 * np.sin(time) + np.random.default_rng(5).normal(0.0, 0.01, time.size)
    rows = np.repeat(np.repeat(values[:, None, None], 2, axis=1), 7, axis=2)
    found = smooth(time, rows, bandwidth).rows[:, 0, 0]
    np.testing.assert_allclose(found, compute_exact_smoothing(time, values, bandwidth), atol=tolerance, rtol=0.0)


@pytest.mark.parametrize("rate", [50.0, pytest.param(400.0, marks=pytest.mark.compiled)])
@pytest.mark.parametrize("ratio", [0.25, 1.0, 3.0])
def test_bandwidth_is_the_frequency_of_half_amplitude_at_any_rate(rate: float, ratio: float) -> None:
    bandwidth, reach = 1.6, 0.01
    frequency = ratio * bandwidth
    time = np.arange(int(40.0 * rate)) / rate
    wave = np.sin(2.0 * math.pi * frequency * time)
    position = np.column_stack((wave, 2.0 * wave, 0.0 * wave))
    half = reach * wave / 2.0
    rotation = np.column_stack((np.cos(half), 0.0 * half, 0.0 * half, np.sin(half)))
    replay = from_arrays(time, position, rotation, bandwidth=bandwidth)
    middle = time[(time > 10.0) & (time < 30.0)]
    block = replay.at(middle)
    base = np.column_stack((np.sin(2.0 * math.pi * frequency * middle), np.cos(2.0 * math.pi * frequency * middle)))
    gain = 1.0 / (1.0 + ratio**4)

    def amplitude(values: Array) -> Array:
        return np.linalg.lstsq(base, values, rcond=None)[0]

    # theta = 2 pi f / rate is at most 0.6: the row grid changes the exponent's term by theta^4 / 720, in the last case
    # most, and so the gain by less than 2e-4 of itself; the angle's own curvature is reach^2 / 24.
    np.testing.assert_allclose(amplitude(block.position_w[:, 0]), [gain, 0.0], atol=3e-4 * gain, rtol=0.0)
    np.testing.assert_allclose(amplitude(block.position_w[:, 1]), [2.0 * gain, 0.0], atol=6e-4 * gain, rtol=0.0)
    angle = 2.0 * np.arctan2(block.rotation_wb[:, 3], block.rotation_wb[:, 0])
    np.testing.assert_allclose(amplitude(angle) / reach, [gain, 0.0], atol=3e-4 * gain, rtol=0.0)
    # At its knots a spline bends by 6 (1 - cos theta) / (2 + cos theta) / h^2, a little more than the wave's omega^2.
    cosine = math.cos(2.0 * math.pi * frequency / rate)
    swing = 6.0 * (1.0 - cosine) / (2.0 + cosine) * rate**2 * gain
    np.testing.assert_allclose(amplitude(block.acceleration_w[:, 0]), [-swing, 0.0], atol=3e-4 * swing, rtol=0.0)


@pytest.mark.compiled
@pytest.mark.parametrize("ratio", [None, 0.01, 0.1, 0.4])
def test_acceleration_noise_of_white_rows(ratio: float | None) -> None:
    """Monte Carlo; false alarm below 1e-6: five standard deviations of the mean square, from the spectrum F itself."""
    count, spacing, sigma = 20_000, 0.02, 0.003
    bandwidth = None if ratio is None else ratio / spacing
    position = np.random.default_rng(6).normal(0.0, sigma, (count, 3))
    replay = from_arrays(np.arange(count) * spacing, position, make_level_quaternions(count), bandwidth=bandwidth)
    instants = np.linspace(0.02 * replay.end, 0.98 * replay.end, 20 * count)
    found = float(np.sqrt(np.mean(replay.at(instants).acceleration_w ** 2)))
    expected = acceleration_noise(sigma, spacing, bandwidth)

    cosine = np.cos((np.arange(20_000) + 0.5) * math.pi / 20_000)
    energy = 12.0 * (1.0 - cosine) ** 2 / (2.0 + cosine)
    kappa = 0.0 if ratio is None else (2.0 * math.pi * ratio) ** -4
    spectrum = energy / (1.0 + kappa * energy) ** 2
    spread = math.sqrt(2.0 * np.mean(spectrum**2) / np.mean(spectrum) ** 2 / (0.96 * 3 * count))
    assert found == pytest.approx(expected, rel=5.0 * spread / 2.0, abs=0.0)
    assert expected == pytest.approx(sigma / spacing**2 * math.sqrt(np.mean(spectrum)), rel=1e-6, abs=0.0)
    assert replay.acceleration_noise == pytest.approx(expected * replay.position_noise / sigma, rel=1e-12, abs=0.0)


def test_acceleration_noise_in_both_limits() -> None:
    assert acceleration_noise(2.0, 0.1, None) == pytest.approx(
        200.0 * math.sqrt(12.0 * (3.0 * math.sqrt(3.0) - 4.0)), rel=1e-12, abs=0.0
    )
    assert acceleration_noise(1.0, 1.0, None) == pytest.approx(3.78864, abs=5e-6)
    for bandwidth in (1e-3, 0.1):
        omega = 2.0 * math.pi * bandwidth
        expected = 0.01 * omega**2 * math.sqrt(math.sqrt(2.0) / 16.0 * 0.02 * omega)
        assert acceleration_noise(0.01, 0.02, bandwidth) == pytest.approx(expected, rel=1e-6, abs=0.0)
    assert math.sqrt(2.0) / 16.0 == pytest.approx(0.0883883, abs=5e-8)


@pytest.mark.parametrize("gaps", [lambda n: np.arange(n) * 0.01, lambda n: make_uneven_times(7, n, 0.01)])
def test_position_noise_equals_that_of_the_rows(gaps: Callable[[int], Array]) -> None:
    """Fourth differences of white noise correlate as 70 -56 28 -8 1: the mean square spreads by 2 * 2.63 / (3 n)."""
    count, sigma = 10_000, 0.004
    time = gaps(count)
    smooth = np.column_stack((np.sin(time), time**3, 5.0 - time))
    position = smooth + np.random.default_rng(8).normal(0.0, sigma, (count, 3))
    spread = 0.5 * math.sqrt(2.0 * 2.63 / (3 * count))
    # Uneven weights correlate a little more: a tenth on top of five standard deviations.
    assert position_noise(time, position) == pytest.approx(sigma, rel=5.5 * spread, abs=0.0)


@given(seed=st.integers(0, 10**6))
def test_cubic_polynomial_has_no_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    time = make_uneven_times(seed, 40, 0.1)
    position = np.stack([np.polynomial.Polynomial(rng.uniform(-1.0, 1.0, 4))(time) for _ in range(3)], axis=1)
    assert position_noise(time, position) < 1e-13


def test_noise_of_a_short_log_is_nan() -> None:
    short = from_arrays(np.arange(4.0), np.zeros((4, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (4, 1)))
    assert math.isnan(short.position_noise)
    assert format_log_noise(short) == " (log not smoothed; too few rows to estimate its noise)"


def test_rows_are_not_stored() -> None:
    time, position, rotation = np.arange(5) * 1.0, np.zeros((5, 3)), make_level_quaternions(5)
    replay = from_arrays(time, position, rotation)
    position[:], time[:], rotation[:] = 7.0, -1.0, 0.0
    assert replay.at(np.array([2.5])).position_w[0, 0] == 0.0


def test_lists_and_either_quaternion_sign_are_accepted() -> None:
    position = [[0, 0, 0], [1, 0, 0], [4, 0, 0]]
    plain: Any = from_arrays([5, 6, 7], position, [[1, 0, 0, 0]] * 3)
    turned: Any = from_arrays([5, 6, 7], position, [[1, 0, 0, 0], [-2, 0, 0, 0], [0.5, 0, 0, 0]])
    time = np.array([0.5, 1.5])
    np.testing.assert_array_equal(plain.at(time).rotation_wb, turned.at(time).rotation_wb)
    np.testing.assert_allclose(plain.at(time).acceleration_w[:, 0], 2.0, rtol=1e-12, atol=0.0)


def make_rows(count: int = 6) -> list[Any]:
    """Return time, position and rotation of a valid motion."""
    return [np.arange(count) * 0.1, np.zeros((count, 3)), make_level_quaternions(count)]


def make_invalid_rows(which: int, row: int, value: object) -> list[Any]:
    """Return valid rows except for one."""
    arrays = make_rows()
    arrays[which][row] = value
    return arrays


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (make_rows(1), r"number of rows: 1; must be >= 2"),
        (make_rows(0), r"number of rows: 0"),
        ([np.zeros((2, 2)), np.zeros((4, 3)), make_level_quaternions(4)], r"shapes of time, position and rotation"),
        (
            [np.arange(3.0), np.zeros((3, 2)), make_level_quaternions(3)],
            r"\(3, 2\).*must be \(n,\), \(n, 3\) and \(n, 4\)",
        ),
        ([np.arange(3.0), np.zeros((3, 3)), np.zeros((3, 3))], r"shapes of time"),
        ([["a", "b"], np.zeros((2, 3)), make_level_quaternions(2)], r"must be arrays of numbers"),
        ([None, np.zeros((2, 3)), make_level_quaternions(2)], r"shapes of time"),
        (make_invalid_rows(0, 2, math.nan), r"time of row 2: nan; must be finite"),
        (make_invalid_rows(1, 3, (0.0, math.inf, 0.0)), r"y of row 3: inf; must be finite"),
        (make_invalid_rows(2, 4, (1.0, 0.0, 0.0, -math.inf)), r"qz of row 4: -inf"),
        (make_invalid_rows(0, 2, 0.1), r"time of row 2 \(s\): 0.1; must be after the row before, 0.1; sort the rows"),
        (make_invalid_rows(0, 5, 0.0), r"time of row 5 \(s\): 0.0"),
        (make_invalid_rows(2, 1, (0.0, 0.0, 0.0, 0.0)), r"quaternion of row 1: 0 0 0 0; must not be zero"),
        (
            make_invalid_rows(2, 1, (0.0, 0.0, 0.0, 1.0)),
            r"turn from row 0 to 1 \(degrees\): 180.0; must be <= 120; log at",
        ),
        (
            make_invalid_rows(1, 1, (1e300, -1e308, 1e308)),
            r"no finite spline|coefficients of segment \d, from .* must be finite",
        ),
    ],
)
@pytest.mark.parametrize("bandwidth", [None, 1.0])
def test_invalid_rows_are_errors(arrays: list[Any], message: str, bandwidth: float | None) -> None:
    with pytest.raises(MotionError, match=message) as caught:
        from_arrays(*arrays, bandwidth=bandwidth)
    assert caught.value.where is None


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan, math.inf, 5.0, 1e-4])
def test_invalid_bandwidth_is_an_error(bandwidth: float) -> None:
    with pytest.raises(MotionError, match=r"bandwidth \(Hz\).*must be >= 0.00159155 and below 5, half the log's rate"):
        from_arrays(*make_rows(), bandwidth=bandwidth)


def test_smoothing_four_rows_is_an_error() -> None:
    with pytest.raises(MotionError, match="number of rows: 4; must be >= 5 to smooth; omit bandwidth"):
        from_arrays(*make_rows(4), bandwidth=1.0)


def test_too_uneven_rows_are_an_error() -> None:
    time = np.sort(np.concatenate((np.arange(50) * 0.01, np.arange(50) * 0.01 + 1e-9)))
    position = np.random.default_rng(9).normal(0.0, 1.0, (100, 3))
    time = np.concatenate((time, 1.0 + np.arange(300) * 0.01))
    position = np.concatenate((position, np.zeros((300, 3))))
    with pytest.raises(MotionError, match=r"too uneven to smooth: .*remove rows with nearly the time"):
        from_arrays(time, position, make_level_quaternions(400), bandwidth=1.0)


def test_time_past_the_end_of_the_log_is_an_error() -> None:
    replay = from_arrays(*make_rows())
    replay.at(np.array([0.0, replay.end]))
    with pytest.raises(MotionError, match=r"must be from 0 to 0\.5 s, the end of the motion; shorten the run"):
        replay.at(np.array([0.6]))
