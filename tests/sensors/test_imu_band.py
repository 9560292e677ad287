"""Band limit and vibration of an IMU equal SciPy's integrator, closed responses and sampling theory."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.signal import lsim

from navsense.core.errors import SensorError
from navsense.core.pose import Pose
from navsense.core.ticks import Ticks
from navsense.core.typing import FloatArray
from navsense.environment.base import Environment
from navsense.motion.stationary import Stationary
from navsense.noise.specification import Noise
from navsense.sensors import Imu, Vibration
from navsense.sensors._low_pass import compute_coefficients, compute_stiffness, filter_rows

NOTHING = np.empty(0)


def filter_channel(bandwidth: float, index: FloatArray, rate: float, values: FloatArray) -> FloatArray:
    """Return one channel (n,) after the band limit."""
    state, rows = np.full((1, 3), np.nan), np.array([values], dtype=np.float64)
    filter_rows(compute_stiffness(bandwidth), np.array(index, dtype=np.int64), rate, 0, state, rows)
    return rows[0]


def read_forces(spec: Imu, ticks: Ticks, force: FloatArray, rate: FloatArray | None = None) -> dict[str, FloatArray]:
    """Return the readings of a spec without noise for these forces and rates (n, 3)."""
    spec = replace(spec, orientation=False)
    ideal = {"linear_acceleration": force, "angular_velocity": np.zeros(force.shape) if rate is None else rate}
    _, measured = spec.measure(spec.init(NOTHING), ticks, ideal, np.empty((0, len(ticks))))
    return dict(measured.arrays)


@pytest.mark.requirement("IMU-4")
@pytest.mark.parametrize("bandwidth", [0.02, 3.0, 47.0, 100.0, 900.0])
def test_output_equals_butterworth_filter_of_linear_interpolation(bandwidth: float) -> None:
    """`scipy.signal.lsim` integrates the transfer function exactly for this input, from rest at its first value."""
    rate, omega = 200.0, 2.0 * math.pi * bandwidth
    values = np.random.default_rng(5).normal(0.0, 1.0, 500)
    system = ([omega**2], [1.0, math.sqrt(2.0) * omega, omega**2])
    _, expected, _ = lsim(system, values - values[0], np.arange(500) / rate, interp=True)
    ours = filter_channel(bandwidth, np.arange(500), rate, values)
    assert np.allclose(ours - values[0], expected, rtol=0.0, atol=1e-13)


@pytest.mark.requirement("IMU-4")
def test_additional_samples_on_a_line_change_nothing() -> None:
    """A piecewise linear input with samples added between its corners gives the same output at the corners."""
    draw = np.random.default_rng(6)
    corners = np.arange(0, 4000, 100)
    heights = draw.normal(0.0, 1.0, corners.size)
    finer = np.unique(np.concatenate((corners, draw.integers(0, 3900, 300))))
    coarse = filter_channel(12.0, corners, 1e4, heights)
    fine = filter_channel(12.0, finer, 1e4, np.interp(finer, corners, heights))
    assert np.allclose(fine[np.isin(finer, corners)], coarse, rtol=0.0, atol=1e-13)


@pytest.mark.requirement("IMU-4")
@pytest.mark.parametrize(
    "frequency", [10.0, *(pytest.param(other, marks=pytest.mark.compiled) for other in (1.0, 20.0, 60.0, 200.0))]
)
def test_sine_has_the_gain_and_phase_of_the_filter(frequency: float) -> None:
    """At 100 kHz, linear interpolation of a sine has an error of (omega h)^2 / 8. The transient ends before 0.3 s."""
    bandwidth, rate, count = 20.0, 1e5, 60000
    time, omega = np.arange(count) / rate, 2.0 * math.pi * frequency
    found = read_forces(
        Imu(bandwidth=bandwidth),
        Ticks(np.arange(count), rate),
        np.stack([np.sin(omega * time), np.zeros(count), np.cos(omega * time)], axis=1),
    )["linear_acceleration"]
    answer = 1.0 / (1.0 - (frequency / bandwidth) ** 2 + 1j * math.sqrt(2.0) * frequency / bandwidth)
    expected = np.abs(answer) * np.exp(1j * (omega * time + np.angle(answer)))
    late = time > 0.3
    bound = (omega / rate) ** 2 / 8.0 + 2.0 * math.exp(-compute_stiffness(bandwidth) * 0.3)
    assert bound < 3e-5
    assert np.abs(found[late, 0] - expected[late].imag).max() < bound
    assert np.abs(found[late, 2] - expected[late].real).max() < bound
    assert not found[:, 1].any()


@pytest.mark.requirement("IMU-4")
def test_step_response_overshoots_by_four_percent() -> None:
    """The overshoot of a Butterworth filter of second order is exp(-pi), at t = pi / a."""
    rate, bandwidth = 1e5, 5.0
    values = np.concatenate(([0.0], np.ones(60000)))
    out = filter_channel(bandwidth, np.arange(values.size), rate, values)
    assert out.max() == pytest.approx(1.0 + math.exp(-math.pi), abs=1e-8)
    assert (np.argmax(out) - 0.5) / rate == pytest.approx(math.pi / compute_stiffness(bandwidth), abs=2.0 / rate)


@pytest.mark.requirement("IMU-4")
def test_constant_input_is_unchanged() -> None:
    for bandwidth in (1e-6, 0.3, 20.0, 5e6):
        assert set(filter_channel(bandwidth, np.arange(1000), 333.0, np.full(1000, 9.81)).tolist()) == {9.81}


@pytest.mark.requirement("IMU-4")
def test_filter_far_above_the_rate_changes_nothing() -> None:
    values = np.random.default_rng(7).normal(0.0, 1.0, 100)
    lag = 1.0 / (compute_stiffness(1e9) / 1000.0)
    assert np.allclose(filter_channel(1e9, np.arange(100), 1000.0, values), values, rtol=0.0, atol=6.0 * lag)
    force = np.stack([values, values, values], axis=1)
    through = read_forces(Imu(), Ticks(np.arange(100), 1000.0), force)["linear_acceleration"]
    assert np.array_equal(through, force)


def compute_exact_coefficients(tau: float) -> list[float]:
    """Return the five coefficients of a step from power series with 60 digits."""
    getcontext().prec = 60
    t, real, imaginary = Decimal(tau), Decimal(1), Decimal(0)
    reals, imaginaries = Decimal(1), Decimal(0)
    for k in range(1, 200):
        real, imaginary = -t * (real + imaginary) / k, t * (real - imaginary) / k
        reals, imaginaries = reals + real, imaginaries + imaginary
    gain = 1 - reals - imaginaries
    exact = (gain, imaginaries, reals - imaginaries, 1 + (reals - 1) / t, gain / t)
    return [float(number) for number in exact]


@pytest.mark.requirement("IMU-4")
@pytest.mark.parametrize("tau", [1e-9, 1e-4, 0.1, 0.4999999, 0.5, 0.5000001, 1.0, 3.0, 20.0])
def test_coefficients_are_exact_on_both_sides_of_the_series_switch(tau: float) -> None:
    """The series is used below 0.5, the closed forms above. Both are accurate to the last digits."""
    assert np.allclose(compute_coefficients(tau), compute_exact_coefficients(tau), rtol=5e-15, atol=1e-16)


@pytest.mark.requirement("IMU-4")
def test_filter_restarts_after_invalid_values() -> None:
    values = np.array([1.0, 2.0, math.nan, 5.0, 5.0])
    out = filter_channel(3.0, np.arange(5), 100.0, values)
    assert out[0] == 1.0
    assert 1.0 < out[1] < 2.0
    assert math.isnan(out[2])
    assert out[3:].tolist() == [5.0, 5.0]


@pytest.mark.requirement("IMU-4", "NOI-3")
def test_white_noise_is_added_after_the_filter() -> None:
    """Noise has its declared deviation and adjacent samples are independent. False alarms: 1e-6 each."""
    noise, count = Noise(stddev=0.02), 20000
    spec = Imu(linear_acceleration_x=noise, bandwidth=1.0)
    time, still = np.arange(count) / 1000.0, np.zeros((count, 3))
    values = spec.apply(time, still, still, seed=3)["linear_acceleration"][:, 0]
    assert abs(values.std() / 0.02 - 1.0) < 4.892 / math.sqrt(2.0 * count)
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 4.892 / math.sqrt(count)


LINE = Vibration(133.0, (1.0, 2.0, 3.0), (0.1, 0.2, 0.3), phase=0.4)


@pytest.mark.requirement("IMU-4")
def test_vibration_above_the_nyquist_frequency_is_aliased() -> None:
    """133 Hz sampled at 100 Hz is 33 Hz: the largest line of the spectrum, with identical values."""
    ticks, nothing = Ticks(np.arange(1000), 100.0), np.zeros((1000, 3))
    found = read_forces(Imu(vibration=(LINE,)), ticks, nothing)
    alias = np.sin(2.0 * math.pi * 33.0 * np.arange(1000) / 100.0 + 0.4)
    assert np.allclose(found["linear_acceleration"], alias[:, None] * [1.0, 2.0, 3.0], rtol=0.0, atol=1e-11)
    assert np.allclose(found["angular_velocity"], alias[:, None] * [0.1, 0.2, 0.3], rtol=0.0, atol=1e-11)
    spectrum = np.abs(np.fft.rfft(found["linear_acceleration"][:, 0])) / 500.0
    assert np.fft.rfftfreq(1000, 0.01)[np.argmax(spectrum)] == 33.0
    assert spectrum.max() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.requirement("IMU-4")
def test_averaged_reading_has_the_mean_of_a_vibration() -> None:
    ticks, spec = Ticks(np.arange(40), 100.0), Imu(vibration=(LINE,), averaged=True)
    ideal = spec.ideal(Stationary(Pose()), Environment(), ticks)
    _, measured = spec.measure(spec.init(NOTHING), ticks, ideal, np.empty((0, 40)))
    added = measured.arrays["linear_acceleration"] - [0.0, 0.0, 9.8]

    def line(t: float) -> float:
        return 3.0 * math.sin(2.0 * math.pi * 133.0 * t + 0.4)

    for k in (1, 2, 39):
        mean, _ = quad(line, (k - 1) / 100.0, k / 100.0, epsabs=1e-14)
        assert added[k, 2] == pytest.approx(mean * 100.0, abs=1e-11)
    assert added[0, 2] == pytest.approx(line(0.0), abs=1e-12)


@pytest.mark.requirement("IMU-4")
@pytest.mark.parametrize("frequency", [10.0, 47.0, 133.0, 950.0])
def test_band_limit_filters_a_vibration_before_sampling(frequency: float) -> None:
    """Gain and phase are those at the true frequency, not at the alias."""
    spec = Imu(vibration=(replace(LINE, frequency=frequency),), bandwidth=47.0)
    ticks = Ticks(np.arange(200), 100.0)
    found = read_forces(spec, ticks, np.zeros((200, 3)))["linear_acceleration"][:, 0]
    answer = 1.0 / (1.0 - (frequency / 47.0) ** 2 + 1j * math.sqrt(2.0) * frequency / 47.0)
    expected = np.imag(answer * np.exp(1j * (2.0 * math.pi * frequency * ticks.time + 0.4)))
    assert np.allclose(found, expected, rtol=0.0, atol=1e-11)


@pytest.mark.requirement("IMU-4")
def test_vibrations_add_and_keep_their_phase_for_days() -> None:
    other = Vibration(17.25, (0.5, 0.0, 0.0))
    ticks = Ticks(np.arange(10**8, 10**8 + 50, dtype=np.int64), 400.0)
    both = read_forces(Imu(vibration=(LINE, other)), ticks, np.zeros((50, 3)))["linear_acceleration"][:, 0]
    cycles = [(133 * int(k) % 400) / 400.0 for k in ticks.index], [(69 * int(k) % 1600) / 1600.0 for k in ticks.index]
    expected = np.sin(2.0 * math.pi * np.array(cycles[0]) + 0.4) + 0.5 * np.sin(2.0 * math.pi * np.array(cycles[1]))
    assert np.allclose(both, expected, rtol=0.0, atol=1e-6)


@pytest.mark.requirement("IMU-4", "DOO-1")
def test_vibration_in_apply_starts_with_the_first_row() -> None:
    time = 5.0 + np.array([0.0, 0.001, 0.0035, 0.02])
    still = np.zeros((4, 3))
    reading = Imu(vibration=(LINE,)).apply(time, still, still, seed=1)
    expected = np.sin(2.0 * math.pi * 133.0 * (time - 5.0) + 0.4)
    assert np.allclose(reading["linear_acceleration"][:, 0], expected, rtol=0.0, atol=1e-9)
    assert not reading.ideal["linear_acceleration"].any()


@pytest.mark.requirement("IMU-4")
def test_invalid_bandwidth_and_vibration_are_errors() -> None:
    for bandwidth in (-1.0, math.nan, math.inf):
        with pytest.raises(SensorError, match="bandwidth"):
            Imu(bandwidth=bandwidth)
    for frequency in (0.0, -3.0, math.nan):
        with pytest.raises(SensorError, match="frequency of a vibration"):
            Vibration(frequency)
    with pytest.raises(SensorError, match=r"linear_acceleration of a vibration: .* must be 3 finite numbers"):
        Vibration(1.0, (1.0, 2.0))  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(SensorError, match="phase"):
        Vibration(1.0, phase=math.inf)
    for vibration in ((3.0,), 5, None, "no"):
        with pytest.raises(SensorError, match="must be a tuple of Vibration"):
            Imu(vibration=vibration)  # type: ignore[arg-type]  # wrong on purpose
    for number in ("5", None, [1.0], 10**400):
        with pytest.raises(SensorError, match="must be a finite number of absolute value below"):
            Vibration(number)  # type: ignore[arg-type]  # wrong on purpose
        with pytest.raises(SensorError, match="must be a finite number of absolute value below"):
            Imu(bandwidth=number)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(SensorError, match="reference"):
        Imu(reference=5)  # type: ignore[arg-type]  # wrong on purpose
