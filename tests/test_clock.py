"""Clock errors are functions of run, clock and time, equal for every sensor on the clock."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from navsense.clock import Clock, ClockRealisation, Discipline, SensorClock, compute_error
from navsense.core.errors import ClockError
from navsense.core.random_streams import make_generator
from navsense.core.typing import FloatArray
from navsense.noise.specification import Noise
from navsense.runner.run import simulate
from navsense.sensors import Imu, Magnetometer
from navsense.testing import example_world
from navsense.world import World

Z = 4.892
"""Two-sided normal quantile of a false-alarm rate of 1e-6."""

DRIFTING = Clock(
    "robot::base::clock", Noise(bias_stddev=1e-3, dynamic_bias_stddev=1e-4, dynamic_bias_correlation_time=5.0)
)

POLLS = Discipline(interval=0.25, step_threshold=1e-3, stddev=3e-4)


def make_world(clock: Clock | None, **rates: float) -> World:
    world = example_world(*((name, Imu()) for name in rates))
    sensors = tuple(
        replace(sensor, rate=rate, clock=clock.name if clock else None)
        for sensor, rate in zip(world.sensors, rates.values(), strict=True)
    )
    return replace(world, sensors=sensors, clocks=(clock,) if clock else ())


@pytest.mark.requirement("CLK-4")
def test_without_a_clock_stamps_are_true_time_exactly() -> None:
    reading = simulate(make_world(None, imu=300.0), 3.0, seed=1, epoch=5)["robot::arm::imu"]
    assert not reading.clock_error.any()
    assert np.array_equal(reading.stamp, reading.true_stamp)
    assert reading.stamp[1] == 5_003_333_333


@pytest.mark.requirement("CLK-6", "CLK-2", "CLK-5")
def test_gaussian_clock_noise_perturbs_imu_stamps_as_configured() -> None:
    clock = Clock("robot::base::clock", Noise(mean=2e-3, stddev=5e-4))
    reading = simulate(make_world(clock, imu=1000.0), 20.0, seed=1)["robot::arm::imu"]
    count = reading.time.size
    assert np.array_equal(reading.time, np.arange(count) / 1000.0), "still triggered along true time"
    off = (reading.stamp - reading.true_stamp) / 1e9
    assert abs(off.mean() - 2e-3) < Z * 5e-4 / math.sqrt(count)
    assert abs(off.var() / 25e-8 - 1.0) < Z * math.sqrt(2.0 / count)
    assert np.allclose(off, reading.clock_error, atol=1e-9, rtol=0.0)


@pytest.mark.requirement("CLK-6")
@pytest.mark.parametrize("ahead", [0, 64])
def test_gaussian_stamps_equal_the_formula_bitwise(ahead: int) -> None:
    """The formula is turn-on + (mean + stddev w), with NumPy's normals, in blocks of any size."""
    clock = Clock("robot::base::clock", Noise(mean=2e-3, stddev=5e-4, bias_stddev=1e-2))
    time, stamps = np.arange(6000) / 1e5, SensorClock(clock, "imu", 4, 1, prefetch=ahead)
    found = np.concatenate([stamps.compute_errors(part) for part in np.split(time, [1, 2, 65, 66, 5000])])
    turn_on = 1e-2 * make_generator(4, (1, "clock", clock.name, "clock", "turn_on")).standard_normal()
    w = make_generator(4, (1, "stamp", "imu", "clock", "jitter")).standard_normal(6000)
    assert found.tobytes() == (turn_on + (2e-3 + 5e-4 * w)).tobytes()


@pytest.mark.requirement("CLK-10")
def test_sensors_of_different_rates_share_the_error_of_their_clock() -> None:
    run = simulate(make_world(DRIFTING, a=1000.0, b=70.0, c=3.0), 4.0, seed=9)
    instants = np.linspace(0.0, 4.0, 40001)
    curve = compute_error(DRIFTING, instants, seed=9)
    for name in "abc":
        reading = run[f"robot::arm::{name}"]
        assert np.allclose(np.interp(reading.time, instants, curve), reading.clock_error, rtol=0.0, atol=1e-15)
    assert np.ptp(curve) > 1e-5, "the curve is no constant"


@pytest.mark.requirement("CLK-10")
def test_clock_error_at_common_instants_is_bitwise_equal() -> None:
    run = simulate(make_world(DRIFTING, a=1000.0, b=100.0), 4.0, seed=9)
    a, b = run["robot::arm::a"], run["robot::arm::b"]
    assert a.clock_error[::10].tobytes() == b.clock_error.tobytes()


@pytest.mark.requirement("CLK-10")
def test_drift_is_a_gauss_markov_process_at_the_nodes() -> None:
    """The reference is the formula, node by node, with NumPy's generator."""
    noise = DRIFTING.noise
    draws = {name: make_generator(4, (2, "clock", DRIFTING.name, "clock", name)) for name in ("turn_on", "drift")}
    tau, sigma = noise.dynamic_bias_correlation_time, noise.dynamic_bias_stddev
    node = sigma * math.sqrt(tau / 2.0) * draws["drift"].standard_normal()
    turn_on = noise.bias_stddev * draws["turn_on"].standard_normal()
    nodes = [node]
    for v in draws["drift"].standard_normal(5000):
        node = math.exp(-1e-3 / tau) * node + sigma * math.sqrt(tau / 2.0 * -math.expm1(-2e-3 / tau)) * v
        nodes.append(node)
    ours = compute_error(DRIFTING, np.arange(5000) / 1000.0, seed=4, run=2)
    assert np.allclose(ours, turn_on + np.array(nodes[:5000]), rtol=1e-9, atol=0.0)
    between = compute_error(DRIFTING, np.array([0.00125]), seed=4, run=2)[0]
    assert between == pytest.approx(turn_on + 0.75 * nodes[1] + 0.25 * nodes[2], rel=1e-12, abs=0.0)


@pytest.mark.requirement("CLK-10")
def test_clock_error_does_not_depend_on_block_size() -> None:
    instants = np.cumsum(np.abs(make_generator(1, ("gaps",)).standard_normal(3000)) * 0.01)
    complete = ClockRealisation(DRIFTING, 3, 0).varying_error(instants)
    pieces = ClockRealisation(DRIFTING, 3, 0)
    parts = [pieces.varying_error(part) for part in np.split(instants, [1, 2, 3, 700, 701, 2500])]
    assert np.concatenate(parts).tobytes() == complete.tobytes()


@pytest.mark.requirement("CLK-2", "CLK-10")
@pytest.mark.parametrize("discipline", [None, POLLS], ids=["free", "disciplined"])
def test_copies_of_a_clock_realisation_return_the_same_error(discipline: Discipline | None) -> None:
    clock = replace(DRIFTING, discipline=discipline)
    first = ClockRealisation(clock, 3, 0)
    second, third = first.copy(), first.copy()
    instants = [np.arange(0.0, 9.0, step) for step in (0.0007, 0.011, 1.0)]
    expected = [ClockRealisation(clock, 3, 0).varying_error(each).tobytes() for each in instants]
    found = [list[FloatArray](), list[FloatArray](), list[FloatArray]()]
    for end in (0.5, 0.6, 7.0, 9.0):  # copies read the same interval in turn, some by single instants
        for each, curve, parts in zip(instants, (first, second, third), found, strict=True):
            done = sum(part.size for part in parts)
            ahead = each[done : np.searchsorted(each, end)]
            spans = np.split(ahead, range(1, ahead.size)) if curve is third else [ahead]
            parts.extend(curve.varying_error(span) for span in spans)
    assert [np.concatenate(parts).tobytes() for parts in found] == expected


def test_blocks_read_by_all_copies_are_freed() -> None:
    first = ClockRealisation(DRIFTING, 3, 0)
    second = first.copy()
    tracemalloc.start()
    for start in range(0, 100, 10):  # 100,000 nodes, 0.8 MB
        for curve in (first, second):
            curve.varying_error(np.arange(start, start + 10, 0.1))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 0.4e6


def test_earlier_instants_are_an_error() -> None:
    curve = ClockRealisation(DRIFTING, 3, 0)
    curve.varying_error(np.array([1.0]))
    with pytest.raises(ClockError, match="must not go back"):
        curve.varying_error(np.array([0.5]))


@pytest.mark.requirement("CLK-2")
def test_clock_precision_quantises_stamps() -> None:
    clock = Clock("c", Noise(bias_mean=0.4e-3, stddev=1e-4, precision=1e-3))
    time = np.arange(1000) / 400.0
    shown = (time + SensorClock(clock, "imu", 1, 0).compute_errors(time)) / 1e-3
    assert np.allclose(shown, np.rint(shown), atol=1e-9, rtol=0.0)
    assert np.ptp(shown - time / 1e-3) > 0.5


@pytest.mark.requirement("CLK-5")
def test_every_sensor_type_is_stamped_by_its_clock() -> None:
    world = example_world(("imu", Imu.example_spec()), ("mag", Magnetometer.example_spec()))
    run = simulate(world, 2.0, seed=2)
    for reading in run.values():
        assert not np.array_equal(reading.stamp, reading.true_stamp)
        stamps = np.rint((reading.time + reading.clock_error) * 1e9).astype(np.int64)
        assert np.array_equal(reading.stamp, stamps)


@pytest.mark.parametrize(
    ("instants", "message"),
    [
        ([-0.0005], "instant .s.: -0.0005; must be from 0"),
        ([math.nan], "instant .s.: nan"),
        ([math.inf], "instant .s.: inf"),
        ([5.0, 1.0], "must not go back"),
        ([[1.0]], "must be .n,."),
    ],
)
def test_invalid_instants_raise_error(instants: list[float], message: str) -> None:
    with pytest.raises(ClockError, match=message):
        compute_error(DRIFTING, np.array(instants), seed=1)


def test_drift_with_correlation_time_below_node_spacing_is_an_error() -> None:
    with pytest.raises(ClockError, match=r"dynamic_bias_correlation_time of clock c: 0.01; must be at least 0.1 s"):
        Clock("c", Noise(dynamic_bias_stddev=1e-6, dynamic_bias_correlation_time=0.01))


@pytest.mark.compiled
@pytest.mark.requirement("CLK-10")
@pytest.mark.parametrize("place", [0.0, 0.0005])
def test_drift_has_declared_variance_at_and_between_nodes(place: float) -> None:
    """At the shortest correlation time, linear interpolation reduces the variance half-way by 0.5 percent."""
    tau, sigma, runs = 0.1, 1e-4, 4000
    clock = Clock("c", Noise(dynamic_bias_stddev=sigma, dynamic_bias_correlation_time=tau))
    values = np.array([compute_error(clock, np.array([0.2 + place]), seed=run)[0] for run in range(runs)])
    declared = sigma**2 * tau / 2.0 * (1.0 if place == 0.0 else (1.0 + math.exp(-1e-3 / tau)) / 2.0)
    assert abs(np.mean(values**2) / declared - 1.0) < 4.892 * math.sqrt(2.0 / runs)


def test_stamp_beyond_64_bits_is_an_error() -> None:
    clock = Clock("robot::base::clock", Noise(bias_mean=1e11))
    reading = simulate(make_world(clock, imu=10.0), 1.0)["robot::arm::imu"]
    with pytest.raises(ClockError, match="time of a stamp"):
        _ = reading.stamp


def test_runs_have_different_clock_errors_and_are_repeatable() -> None:
    time = np.arange(100) / 10.0
    curves = [compute_error(DRIFTING, time, seed=1, run=run) for run in (0, 1, 0)]
    assert np.array_equal(curves[0], curves[2])
    assert not np.allclose(curves[0], curves[1], atol=1e-6, rtol=0.0)
