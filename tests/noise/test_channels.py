"""The noise of a channel equals its declaration and a slow reference of the formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import allantools
import numpy as np
import pytest

from navsense.core.kernels import INTERPRETED
from navsense.core.random_streams import Draws, make_generator
from navsense.core.ticks import Ticks
from navsense.core.typing import FloatArray
from navsense.noise import channels, kernels
from navsense.noise.channels import NoiseChannels
from navsense.noise.specification import Noise, make_example_noise
from navsense.testing import apply_noise

Z = 4.892
"""Two-sided normal quantile of a false-alarm rate of 1e-6."""

FULL = Noise(
    mean=0.1,
    stddev=0.3,
    bias_mean=1.0,
    bias_stddev=0.5,
    dynamic_bias_stddev=0.2,
    dynamic_bias_correlation_time=3.0,
    precision=0.01,
    minimum=-1.5,
    maximum=2.5,
)


def simulate(noise: Noise, count: int, rate: float, run: int = 0) -> FloatArray:
    return apply_noise(noise, rate, run, np.zeros(count))[0]


def simulate_slowly(noise: Noise, rate: float, run: int, values: FloatArray) -> FloatArray:
    """Return the model of `Noise`, sample by sample, with NumPy's generators."""
    streams = {name: make_generator(11, (run, "law", "law", name)) for name in ("turn_on", "drift", "white")}
    constant = noise.bias_mean + noise.bias_stddev * streams["turn_on"].standard_normal()
    tau, sigma = noise.dynamic_bias_correlation_time, noise.dynamic_bias_stddev
    drift = sigma * math.sqrt(tau / 2.0) * streams["drift"].standard_normal()
    out = []
    for k, x in enumerate(values):
        dt = 0.0 if k == 0 else 1.0 / rate
        q = sigma * math.sqrt(tau / 2.0 * (1.0 - math.exp(-2.0 * dt / tau)))
        drift = math.exp(-dt / tau) * drift + q * streams["drift"].standard_normal()
        y = x + constant + drift + noise.mean + noise.stddev * streams["white"].standard_normal()
        y = min(max(y, noise.minimum), noise.maximum)
        out.append(math.copysign(noise.precision * math.floor(abs(y / noise.precision) + 0.5), y))
    return np.array(out)


@pytest.mark.requirement("NOI-1", "NOI-5")
@pytest.mark.parametrize("run", [0, 1, 2])
def test_noise_kernel_equals_the_formula(run: int) -> None:
    wave = np.array([2.0 * math.sin(0.1 * k) for k in range(500)])
    ours, _ = apply_noise(FULL, 50.0, run, wave)
    assert np.allclose(ours, simulate_slowly(FULL, 50.0, run, wave), rtol=0.0, atol=1e-9)
    assert {ours.min(), ours.max()} == {-1.5, 2.5}, "saturation acts before rounding"


@pytest.mark.requirement("NOI-1")
def test_noise_type_none_changes_nothing() -> None:
    values = np.array([make_generator(1, ("any",)).uniform(-1e6, 1e6) for _ in range(100)])
    assert np.array_equal(apply_noise(Noise(), values=values)[0], values)


@pytest.mark.requirement("NOI-1")
def test_gaussian_noise_has_declared_mean_and_deviation() -> None:
    """Gazebo's test case is x = 42, mean 10, deviation 5. The bounds have a false-alarm rate of 1e-6."""
    count = 20_000
    values = apply_noise(Noise(mean=10.0, stddev=5.0), values=np.full(count, 42.0))[0]
    assert abs(values.mean() - 52.0) < Z * 5.0 / math.sqrt(count)
    assert abs(values.var() - 25.0) < Z * 25.0 * math.sqrt(2.0 / count)


@pytest.mark.requirement("NOI-4")
def test_turn_on_bias_is_constant_and_drawn_once_per_run() -> None:
    noise = Noise(bias_mean=10.0, bias_stddev=2.0)
    runs = 2000
    rows = np.array([simulate(noise, 5, 10.0, run) for run in range(runs)])
    assert np.array_equal(rows, np.repeat(rows[:, :1], 5, axis=1))
    assert (rows > 0.0).all(), "physical noise keeps the sign: ten minus five deviations is positive"
    assert abs(rows[:, 0].mean() - 10.0) < Z * 2.0 / math.sqrt(runs)
    assert abs(rows[:, 0].var() - 4.0) < Z * 4.0 * math.sqrt(2.0 / runs)


@pytest.mark.requirement("NOI-4")
def test_classic_turn_on_bias_is_negative_half_the_time() -> None:
    """Gazebo gave, over 2000 loads with bias 10 and deviation 2: 971 negative, |b| mean 9.95, deviation 1.98."""
    noise = Noise(bias_mean=10.0, bias_stddev=2.0, classic=True)
    runs = 2000
    first = np.array([simulate(noise, 1, 10.0, run)[0] for run in range(runs)])
    assert abs((first < 0.0).sum() - 1000) < Z * math.sqrt(runs) / 2.0
    assert abs(np.abs(first).mean() - 10.0) < Z * 2.0 / math.sqrt(runs)


@pytest.mark.requirement("NOI-4")
def test_classic_turn_on_bias_without_deviation_has_random_sign() -> None:
    values = {simulate(Noise(bias_mean=3.0, classic=True), 1, 10.0, run)[0] for run in range(40)}
    assert values == {-3.0, 3.0}
    assert {simulate(Noise(bias_mean=3.0), 1, 10.0, run)[0] for run in range(40)} == {3.0}


@pytest.mark.requirement("NOI-4")
def test_classic_drift_starts_at_the_turn_on_bias_and_decays() -> None:
    noise = Noise(bias_mean=5.0, dynamic_bias_stddev=1e-9, dynamic_bias_correlation_time=2.0, classic=True)
    values = np.abs(simulate(noise, 41, 10.0))
    assert np.allclose(values, [5.0 * math.exp(-0.1 * k / 2.0) for k in range(41)], atol=1e-7, rtol=0.0)
    physical = simulate(Noise(bias_mean=5.0, dynamic_bias_stddev=1e-9, dynamic_bias_correlation_time=2.0), 41, 10.0)
    assert np.allclose(physical, 5.0, atol=1e-7, rtol=0.0)


def compute_variance_bound(count: int) -> float:
    return Z * math.sqrt(2.0 / count)


@pytest.mark.compiled
@pytest.mark.requirement("NOI-3")
@pytest.mark.parametrize("rate", [1.0, 1000.0])
@pytest.mark.parametrize("row", [0, 1, 25])
def test_drift_is_stationary_from_the_first_sample(rate: float, row: int) -> None:
    noise = Noise(dynamic_bias_stddev=0.3, dynamic_bias_correlation_time=8.0)
    runs = 3000
    values = np.array([simulate(noise, row + 1, rate, run)[row] for run in range(runs)])
    declared = 0.3**2 * 8.0 / 2.0
    assert abs(values.var() / declared - 1.0) < compute_variance_bound(runs)


@pytest.mark.compiled
@pytest.mark.requirement("NOI-3")
def test_drift_autocorrelation_does_not_depend_on_the_rate() -> None:
    """With tau = 2 s, the correlation after 2 s is 1/e, in 2 steps or in 200."""
    noise = Noise(dynamic_bias_stddev=0.3, dynamic_bias_correlation_time=2.0)
    runs = 3000
    for rate in (1.0, 100.0):
        lag = int(2 * rate)
        pairs = np.array([simulate(noise, lag + 1, rate, run)[[0, lag]] for run in range(runs)])
        r = float(np.corrcoef(pairs.T)[0, 1])
        expected = math.exp(-1.0)
        assert abs(math.atanh(r) - math.atanh(expected)) < Z / math.sqrt(runs - 3)


def compute_gauss_markov_deviation(q: float, tau: float, span: float) -> float:
    """Return the Allan deviation of a Gauss-Markov process over `span` (IEEE 952-1997, annex C)."""
    e = 3.0 - 4.0 * math.exp(-span / tau) + math.exp(-2.0 * span / tau)
    return math.sqrt((q * tau) ** 2 / span * (1.0 - tau / (2.0 * span) * e))


@pytest.mark.compiled
@pytest.mark.requirement("NOI-3")
@pytest.mark.parametrize("rate", [20.0, 400.0])
def test_allantools_estimates_the_declared_densities(rate: float) -> None:
    """allantools gives N = stddev / sqrt(rate) at short spans and the Gauss-Markov drift at long ones.

    The overlapping Allan variance of each span is averaged over runs. The bound is Student's t times the
    measured spread of that average.
    """
    density, sigma, tau = 2e-3, 4e-3, 5.0
    noise = Noise(stddev=density * math.sqrt(rate), dynamic_bias_stddev=sigma, dynamic_bias_correlation_time=tau)
    spans = [0.5, 2.0, 10.0, 30.0]
    runs = 30
    variances = []
    for run in range(runs):
        values = simulate(noise, int(600.0 * rate), rate, run)
        _, deviation, _, _ = allantools.oadev(values, rate=rate, data_type="freq", taus=spans)
        variances.append(deviation**2)
    mean = np.mean(variances, axis=0)
    spread = np.std(variances, axis=0, ddof=1) / math.sqrt(runs)
    for i, span in enumerate(spans):
        declared = density**2 / span + compute_gauss_markov_deviation(sigma, tau, span) ** 2
        # 6.95: Student's t with 29 degrees of freedom, a false-alarm rate of 1e-6 over the eight comparisons.
        assert abs(mean[i] - declared) < 6.95 * spread[i], f"span {span} s"


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("scale", [0.0, 0.02])
@pytest.mark.parametrize("stretch", [0.0, 1e-3])
@pytest.mark.parametrize("heat", [0.0, -5e-3])
def test_temperature_changes_bias_and_scale_factor(scale: float, stretch: float, heat: float) -> None:
    """The formula (1 + scale + stretch (T - T0)) ideal + heat (T - T0) holds above and below T0."""
    noise = Noise(
        scale_factor=scale,
        scale_temperature_coefficient=stretch,
        temperature_coefficient=heat,
        reference_temperature=290.0,
    )
    channel = NoiseChannels(("c",), (noise,))
    warm, ideal = np.array([270.0, 290.0, 295.0, 320.0]), np.array([1.0, -2.0, 3.0, -4.0])
    source = Draws(channel.processes, 1, (0, "law"))
    ticks = Ticks(np.arange(4), 10.0)
    state = channel.init(source.initial)
    _, values, _ = channel.apply(state, ticks, source.take(4), ideal[:, None], temperature=warm)
    expected = (1.0 + scale + stretch * (warm - 290.0)) * ideal + heat * (warm - 290.0)
    assert np.allclose(values[:, 0], expected, rtol=0.0, atol=1e-15 * np.abs(expected).max() * 4.0)


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_kernels_agree_to_the_last_bit(
    interpret: Callable[[Any], Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = replace(make_example_noise(0.3, minimum=-1.5, maximum=2.5), scale_factor=0.1)
    unrounded = replace(full, precision=0.0, scale_temperature_coefficient=0.0)
    groups = [(FULL,) * 4, (FULL, replace(FULL, stddev=0.0), FULL), (FULL,) * 6, (full, unrounded), (Noise(),)]
    count = 2000
    for noises in groups:
        group = NoiseChannels(tuple(f"c{i}" for i in range(len(noises))), noises)
        source = Draws(group.processes, 1, (0, "law"))
        ticks = Ticks(np.cumsum(1 + (np.arange(count) % 50 == 3)), 100.0)
        ideal = np.tile(np.linspace(-2.0, 2.0, count)[:, None], (1, len(noises)))
        state, draws, warm = group.init(source.initial), source.take(count).copy(), np.linspace(280.0, 320.0, count)
        results = []
        for kernel in (kernels.apply_noise, interpret(kernels.apply_noise)):
            monkeypatch.setattr(channels, "apply_noise", kernel)
            end, out, error = group.apply(state, ticks, draws, ideal, temperature=warm)
            results.append((out, error, end.bias_state))
        for compiled, plain in zip(*results, strict=True):
            assert compiled.tobytes() == plain.tobytes()
