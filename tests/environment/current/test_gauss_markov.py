"""Random currents: variance and correlation, reflection, and the UUV Simulator's process step by step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from navsense.core.errors import FieldError
from navsense.core.kernels import INTERPRETED
from navsense.core.random_streams import make_generator
from navsense.core.typing import FloatArray
from navsense.environment.current import (
    GaussMarkovCurrent,
    GaussMarkovProcess,
    StratifiedCurrent,
    StratifiedGaussMarkovCurrent,
    UuvGaussMarkovProcess,
    realise,
)

pytestmark = pytest.mark.requirement("CUR-1")

RUNS = 30 if INTERPRETED else 1500
ALARM = 1e-6
"""False-alarm rate of each statistical test."""


def compute_speeds(speed: Any, time: FloatArray, run: int = 0, **rest: Any) -> FloatArray:
    field = realise(GaussMarkovCurrent(speed, **rest), 11, run)
    return field.at(np.zeros((time.size, 3)), time)[:, 0]


def simulate_runs(speed: GaussMarkovProcess, times: tuple[float, ...], runs: int) -> FloatArray:
    time = np.array(times)
    return np.array([compute_speeds(speed, time, run) for run in range(runs)])


def is_within(square: float, count: int, expected: float) -> bool:
    """True if a mean square of `count` normals agrees with the expected variance, at the false-alarm rate."""
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], count) / count
    return low <= square / expected <= high


@pytest.mark.requirement("CUR-2")
def test_process_is_stationary_and_has_its_correlation_time() -> None:
    runs, tau = RUNS, 4.0
    got = simulate_runs(GaussMarkovProcess.from_stddev(0.7, 0.2, tau), (0.0, 1.0, 40.0), runs) - 0.7
    for column in got.T:
        assert is_within(float(np.mean(column**2)), runs, 0.04)
    mean_off = abs(got[:, 2].mean()) / (0.2 / math.sqrt(runs))
    assert mean_off < stats.norm.isf(ALARM / 2)
    step = got[:, 1] - math.exp(-1.0 / tau) * got[:, 0]
    assert is_within(float(np.mean(step**2)), runs, 0.04 * -math.expm1(-2.0 / tau))


def test_nodes_are_the_exact_process_at_any_rate() -> None:
    """In one long record, the innovation over any lag is white and has the exact variance."""
    tau, sigma = 0.5, 0.05
    time = np.arange(6_000 if INTERPRETED else 60_000) / 1024.0
    record = compute_speeds(GaussMarkovProcess(0.3, correlation_time=tau, density=sigma), time) - 0.3
    for lag in (2, 10, 64):
        phi = math.exp(-lag / 1024.0 / tau)
        innovation = record[lag::lag] - phi * record[:-lag:lag]
        assert is_within(float(np.mean(innovation**2)), innovation.size, sigma**2 * tau / 2 * (1 - phi**2))
        chain = float(np.mean(innovation[1:] * innovation[:-1]) / np.mean(innovation**2))
        assert abs(chain) * math.sqrt(innovation.size) < stats.norm.isf(ALARM / 2) * 1.05


def test_random_walk_grows_with_the_root_of_time() -> None:
    got = simulate_runs(GaussMarkovProcess(0.1, density=0.03), (0.0, 9.0), RUNS) - 0.1
    assert (got[:, 0] == 0.0).all()
    assert is_within(float(np.mean(got[:, 1] ** 2)), RUNS, 0.03**2 * 9.0)


def test_reflected_random_walk_becomes_uniform() -> None:
    """The initial value of reflected Brownian motion decays as exp(-pi^2 sigma^2 t / (2 w^2)): 2e-13 in 6 s."""
    got = simulate_runs(GaussMarkovProcess(0.2, 0.1, 0.5, density=0.4), (6.0,), RUNS)[:, 0]
    assert ((got >= 0.1) & (got <= 0.5)).all()
    assert stats.kstest(got, "uniform", (0.1, 0.4)).pvalue > ALARM


def test_reflection_folds_the_unlimited_process() -> None:
    time = np.arange(4000) / 8.0
    free = compute_speeds(GaussMarkovProcess(0.2, density=0.3), time)
    for low, high in ((0.1, 0.5), (-math.inf, 0.25), (0.15, math.inf)):
        got = compute_speeds(GaussMarkovProcess(0.2, low, high, density=0.3), time)
        assert ((got >= low) & (got <= high)).all()
        folded = [reflect(x, low, high) for x in free.tolist()]
        assert got == pytest.approx(folded, abs=1e-12)


def reflect(x: float, low: float, high: float) -> float:
    while not low <= x <= high:
        x = 2.0 * low - x if x < low else 2.0 * high - x
    return x


def test_velocity_is_linear_between_nodes() -> None:
    rate = GaussMarkovProcess.from_stddev(0.3, 0.1, 4.0).node_rate
    assert rate == 64.0
    ends = compute_speeds(GaussMarkovProcess.from_stddev(0.3, 0.1, 4.0), np.array([5.0, 5.0 + 1.0 / rate]))
    inside = compute_speeds(GaussMarkovProcess.from_stddev(0.3, 0.1, 4.0), 5.0 + np.array([0.25, 0.5]) / rate)
    assert inside == pytest.approx(ends[0] + np.array([0.25, 0.5]) * (ends[1] - ends[0]), abs=1e-15)


@pytest.mark.parametrize(("tau", "rate"), [(math.inf, 8.0), (32.0, 8.0), (31.0, 16.0), (1.0, 256.0), (0.1, 1024.0)])
def test_node_rate_follows_from_the_correlation_time(tau: float, rate: float) -> None:
    assert GaussMarkovProcess(correlation_time=tau, density=0.1).node_rate == rate


def test_angles_are_from_east_and_upwards() -> None:
    still = {"horizontal_angle": GaussMarkovProcess(0.5), "vertical_angle": GaussMarkovProcess(-0.2)}
    field = realise(GaussMarkovCurrent(GaussMarkovProcess(2.0), heading=0.1, **still), 1)
    horizontal = 2.0 * math.cos(0.2)
    expected = [horizontal * math.cos(0.4), horizontal * math.sin(0.4), -2.0 * math.sin(0.2)]
    assert field.at(np.zeros((1, 3)), np.zeros(1))[0] == pytest.approx(expected, rel=1e-15, abs=0.0)


def test_direction_without_limits_makes_full_turns() -> None:
    """A walk of 1 rad/sqrt(s) exceeds a full turn in 200 s. Limits would reflect it at pi."""
    fast = GaussMarkovProcess(0.0, -math.pi, math.pi, density=1.0)
    field = realise(GaussMarkovCurrent(GaussMarkovProcess(1.0), fast), 3)
    got = field.at(np.zeros((1601, 3)), np.arange(1601) / 8.0)
    turns = np.unwrap(np.arctan2(got[:, 1], got[:, 0]))
    assert np.ptp(turns) > 2.0 * math.pi
    assert np.abs(np.diff(turns)).max() < 2.5


def simulate_classic_process(process: UuvGaussMarkovProcess, uniforms: FloatArray) -> list[float]:
    """Return the UUV Simulator's update, step by step, as in its source."""
    value, out = process.mean, [process.mean]
    for uniform in uniforms.tolist():
        value = (1 - process.step * process.mu) * value + process.noise_amplitude * (uniform - 0.5)
        value = min(max(value, process.minimum), process.maximum)
        out.append(value)
    return out


def test_classic_process_equals_the_uuv_simulator_at_each_step() -> None:
    process = UuvGaussMarkovProcess(0.4, 0.0, 0.42, 0.5, 0.05, 0.01)
    steps = 9000
    uniforms = make_generator(11, (0, "current", "current", "speed", "classic")).random(steps)
    expected = np.array(simulate_classic_process(process, uniforms))
    still = UuvGaussMarkovProcess(step=0.01)
    time = np.arange(steps + 1) * 0.01
    got = compute_speeds(process, time, horizontal_angle=still, vertical_angle=still)
    assert got == pytest.approx(expected, abs=1e-13)
    held = compute_speeds(process, time[:-1] + 0.0097, horizontal_angle=still, vertical_angle=still)
    assert np.array_equal(held, got[:-1])
    assert (expected == 0.0).any()
    assert (expected == 0.42).any()


@pytest.mark.parametrize(("step", "deviation"), [(0.01, 2.04), (0.1, 0.646)])
def test_classic_variance_depends_on_the_step(step: float, deviation: float) -> None:
    """A / sqrt(12 (1 - (1 - mu dt)^2)) with mu = 0.01 and A = 0.1 is 2.04 at 10 ms and 0.646 at 100 ms."""
    process = UuvGaussMarkovProcess(0.0, -10.0, 10.0, 0.01, 0.1, step)
    decay = 1.0 - process.mu * step
    assert process.noise_amplitude / math.sqrt(12.0 * (1.0 - decay**2)) == pytest.approx(deviation, rel=2e-3, abs=0.0)
    physical = process.to_physical()
    assert physical.correlation_time == 100.0
    assert physical.density * math.sqrt(physical.correlation_time / 2.0) == pytest.approx(deviation, rel=2e-3, abs=0.0)


def test_classic_process_decays_to_zero_and_physical_to_its_mean() -> None:
    process = UuvGaussMarkovProcess(0.8, 0.0, 1.0, 0.2, 0.0, 0.01)
    still = UuvGaussMarkovProcess(step=0.01)
    late = compute_speeds(process, np.array([60.0]), horizontal_angle=still, vertical_angle=still)
    assert late[0] == pytest.approx(0.8 * (1.0 - 0.002) ** 6000, rel=1e-9, abs=0.0)
    assert compute_speeds(process.to_physical(), np.array([60.0]))[0] == 0.8


LAYERS = StratifiedCurrent((0.0, 10.0, 20.0), ((0.3, 0.4, 0.0), (0.0, -0.2, 0.0), (0.0, 0.0, 0.0)), heading=0.3)


@pytest.mark.requirement("CUR-2")
def test_random_layers_without_noise_equal_the_table() -> None:
    depth = np.linspace(-3.0, 25.0, 57)
    position = np.stack((0 * depth, 0 * depth, -depth), axis=1)
    for process in (GaussMarkovProcess(0.0, 0.0, 5.0), UuvGaussMarkovProcess(0.0, 0.0, 5.0)):
        angle = type(process)(0.0, -math.pi, math.pi)
        got = realise(StratifiedGaussMarkovCurrent(LAYERS, process, angle), 1).at(position, np.full(57, 3.0))
        assert got == pytest.approx(LAYERS.at(position, np.zeros(57)), abs=1e-15)


@pytest.mark.requirement("CUR-2")
def test_each_layer_varies_about_its_mean() -> None:
    field = StratifiedGaussMarkovCurrent(
        LAYERS, GaussMarkovProcess.from_stddev(0.0, 0.02, 4.0), GaussMarkovProcess.from_stddev(0.0, 0.05, 4.0)
    )
    position = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -10.0]])
    runs = RUNS
    got = np.array([realise(field, 2, run).at(position, np.full(2, 30.0)) for run in range(runs)])
    for layer, (speed, compass) in enumerate(((0.5, math.atan2(0.3, 0.4)), (0.2, math.pi))):
        sizes = np.hypot(got[:, layer, 0], got[:, layer, 1]) - speed
        east_to_north = np.arctan2(got[:, layer, 1], got[:, layer, 0]) + 0.3
        off = np.mod(math.pi / 2 - east_to_north - compass + math.pi, 2 * math.pi) - math.pi
        assert is_within(float(np.mean(sizes**2)), runs, 0.02**2)
        assert is_within(float(np.mean(off**2)), runs, 0.05**2)
    chain = np.corrcoef(np.hypot(got[:, 0, 0], got[:, 0, 1]), np.hypot(got[:, 1, 0], got[:, 1, 1]))[0, 1]
    assert abs(chain) * math.sqrt(runs) < stats.norm.isf(ALARM / 2) * 1.05


@pytest.mark.compiled
def test_queries_a_day_ahead_and_back_agree() -> None:
    field, place = realise(GaussMarkovCurrent(GaussMarkovProcess.from_stddev(0.5, 0.1, 600.0)), 4), np.zeros((1, 3))
    early = field.at(place, np.array([12.34]))
    late = field.at(place, np.array([86400.0]))
    assert np.array_equal(field.at(place, np.array([12.34])), early)
    assert np.array_equal(
        realise(GaussMarkovCurrent(GaussMarkovProcess.from_stddev(0.5, 0.1, 600.0)), 4).at(place, np.array([86400.0])),
        late,
    )


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: GaussMarkovProcess(1.0, 0.0, 0.5), "mean of the process: 1.0; must be from 0.0 to 0.5"),
        (lambda: GaussMarkovProcess(0.0, 1.0, 1.0), "minimum of the process: 1.0; must be below the maximum"),
        (
            lambda: GaussMarkovProcess(0.0, 0.0, 1e-20),
            "maximum less minimum of a process: 1e-20; must be a number from 1e-09 to inf",
        ),
        (lambda: GaussMarkovProcess(math.nan), "mean of a process: nan"),
        (lambda: GaussMarkovProcess(correlation_time=0.0), "correlation time"),
        (lambda: GaussMarkovProcess(density=-0.1), "density"),
        (lambda: GaussMarkovProcess.from_stddev(0.3, -0.1, 60.0), "stddev of a process: -0.1; must be a number from 0"),
        (lambda: UuvGaussMarkovProcess(0.0, -1.0, 1.0, 1.5), "mu of a current's process"),
        (lambda: UuvGaussMarkovProcess(noise_amplitude=-1.0), "noiseAmp of a current's process"),
        (lambda: UuvGaussMarkovProcess(step=0.0), "step of a current's process"),
        (lambda: GaussMarkovCurrent(GaussMarkovProcess(80.0)), "mean speed of a current"),
        (lambda: GaussMarkovCurrent(GaussMarkovProcess(), UuvGaussMarkovProcess()), "must be of one kind"),
        (
            lambda: GaussMarkovCurrent(
                UuvGaussMarkovProcess(), UuvGaussMarkovProcess(step=0.1), UuvGaussMarkovProcess()
            ),
            "must be the same",
        ),
        (lambda: GaussMarkovCurrent(GaussMarkovProcess(), name=""), "name of a current"),
        (
            lambda: StratifiedGaussMarkovCurrent(LAYERS, GaussMarkovProcess(0.0, 0.0, 0.4), GaussMarkovProcess()),
            "mean of the process: 0.5",
        ),
        (
            lambda: StratifiedGaussMarkovCurrent(
                StratifiedCurrent((0.0,), ((0.0, 0.0, 0.1),)), GaussMarkovProcess(), GaussMarkovProcess()
            ),
            "vertical velocity of a random layer",
        ),
    ],
)
def test_invalid_current_is_an_error(make: Any, text: str) -> None:
    with pytest.raises(FieldError) as found:
        make()
    assert text in str(found.value)
