"""Oscillators: Allan deviation, growth of errors without a reference, and deterministic terms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import allantools
import numpy as np
import pytest
from scipy.stats import chi2

from navsense.clock import (
    GRADES,
    Clock,
    ClockRealisation,
    Discipline,
    Oscillator,
    SensorClock,
    compute_error,
    get_oscillator,
    per_day,
    per_month,
    per_year,
)
from navsense.clock import _nodes as nodes
from navsense.clock import oscillator as phase
from navsense.core.errors import ClockError
from navsense.core.kernels import INTERPRETED
from navsense.core.random_streams import make_generator
from navsense.core.typing import FloatArray
from navsense.environment.signal import Signal
from navsense.noise.specification import Noise
from navsense.runner.live import live
from navsense.runner.run import simulate
from navsense.sensors import Imu
from navsense.testing import example_world

DAY = 86400.0
FULL = Oscillator(
    offset=0.25,
    frequency=2e-6,
    frequency_stddev=1e-6,
    white_frequency=2e-19,
    flicker_frequency=7e-21,
    random_walk_frequency=2e-20,
    ageing=1e-12,
    ageing_stddev=1e-13,
    ageing_random_walk=1e-24,
    temperature_linear=1e-8,
    temperature_quadratic=-3e-8,
    turnover_temperature=290.0,
    temperature=Signal((0.0, 1.0, 1.0, 2.0), (290.0, 300.0, 310.0, 280.0)),
)


def make_clock(**sizes: Any) -> Clock:
    return Clock("robot::base::clock", oscillator=Oscillator(**sizes))


def compute_mean_square_bounds(dof: float, comparisons: int = 1) -> tuple[float, float]:
    """Return the bounds of a mean square with expectation 1, for a false-alarm rate of 1e-6 over all comparisons."""
    low, high = chi2.ppf([0.5e-6 / comparisons, 1.0 - 0.5e-6 / comparisons], dof) / dof
    return float(low), float(high)


def compute_run_errors(oscillator: Clock, time: list[float], count: int) -> FloatArray:
    return np.array([compute_error(oscillator, np.array(time), seed=5, run=run) for run in range(count)])


@pytest.mark.requirement("CLK-8")
def test_offset_frequency_and_ageing_are_a_parabola() -> None:
    time = np.array([0.0, 1e-9, 0.00025, 1.0, 1.0004, 12345.678, 3e7])
    ours = compute_error(make_clock(offset=0.5, frequency=-3e-6, ageing=2e-14), time, seed=1)
    declared = np.array([0.5 - 3e-6 * t + 2e-14 * t * t / 2.0 for t in time])
    assert np.allclose(ours, declared, rtol=1e-15, atol=0.0)


@pytest.mark.requirement("CLK-8")
def test_ageing_converts_from_datasheet_units() -> None:
    """9e-10 a month is 1.296 us after a day; 1 ppm a year is 118.3 us."""
    assert compute_error(make_clock(ageing=per_month(9e-10)), np.array([DAY]), seed=1)[0] == pytest.approx(
        1.296e-6, rel=1e-12, abs=0.0
    )
    assert compute_error(make_clock(ageing=per_year(1e-6)), np.array([DAY]), seed=1)[0] == pytest.approx(
        118.3e-6, rel=1e-3, abs=0.0
    )
    assert compute_error(make_clock(ageing=per_day(1e-9)), np.array([DAY]), seed=1)[0] == pytest.approx(
        43.2e-6, rel=1e-12, abs=0.0
    )


@pytest.mark.requirement("CLK-8")
def test_cold_tuning_fork_has_the_published_error() -> None:
    """A coefficient of -0.034 ppm/K^2 about 25 C makes 21.25 ppm at 0 C, 1.836 s a day."""
    cold = make_clock(temperature_quadratic=-0.034e-6, temperature=273.15)
    assert compute_error(cold, np.array([DAY]), seed=1)[0] == pytest.approx(-1.836, rel=1e-12, abs=0.0)
    assert compute_error(make_clock(temperature_quadratic=-0.034e-6), np.array([DAY]), seed=1)[0] == 0.0


@pytest.mark.requirement("CLK-8")
def test_changing_temperature_is_integrated() -> None:
    """A ramp of r K/s from the turnover temperature gives a r t^2 / 2 + b r^2 t^3 / 3, to second order in dt."""
    a, b, r = 2e-7, -4e-8, 0.5
    ramp = Signal((0.0, 100.0), (300.0, 350.0))
    warming = make_clock(temperature_linear=a, temperature_quadratic=b, turnover_temperature=300.0, temperature=ramp)
    time = np.array([0.5, 1.0, 3.25, 7.0])
    exact = a * r * time**2 / 2.0 + b * r * r * time**3 / 3.0
    ours = compute_error(warming, time, seed=1)
    assert np.allclose(ours, exact, rtol=0.0, atol=abs(b) * r * r * 1e-6 * time.max() / 6.0 * 1.001)
    steady = replace(ramp, values=(320.0, 320.0))
    oscillator = Oscillator(
        temperature_linear=a, temperature_quadratic=b, turnover_temperature=300.0, temperature=320.0
    )
    constant, varying = (Clock("c", oscillator=o) for o in (oscillator, replace(oscillator, temperature=steady)))
    assert np.allclose(
        compute_error(varying, time, seed=1), compute_error(constant, time, seed=1), rtol=1e-12, atol=0.0
    )


@pytest.mark.parametrize(
    "densities", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 1.0, 1.0), (0.3, 2.0, 0.7)]
)
def test_step_has_the_covariance_of_the_three_state_clock(densities: tuple[float, float, float]) -> None:
    """Zucca and Tavella 2005, eq. 12 and 19, at dt = 2 s; the literal matrix is for q = (1, 1, 1)."""
    dt, (q1, q2, q3) = 2.0, densities
    rows = np.array([0, 1, 3])
    factor = np.empty((3, 6))
    for column in range(6):
        draws = np.zeros((6, 1))
        draws[column] = 1.0
        state = np.zeros(3)
        phase.integrate(dt, np.zeros(2), draws, rows, np.sqrt(np.array(densities) * dt), state, np.zeros(1))
        factor[:, column] = state
    x = [q1 * dt + q2 * dt**3 / 3 + q3 * dt**5 / 20, q2 * dt**2 / 2 + q3 * dt**4 / 8, q3 * dt**3 / 6]
    y = [x[1], q2 * dt + q3 * dt**3 / 3, q3 * dt**2 / 2]
    declared = np.array([x, y, [x[2], y[2], q3 * dt]])
    assert np.allclose(factor @ factor.T, declared, rtol=1e-14, atol=1e-14)
    if densities == (1.0, 1.0, 1.0):
        printed = [[6.2666667, 4.0, 1.3333333], [4.0, 4.6666667, 2.0], [1.3333333, 2.0, 2.0]]
        assert np.allclose(declared, printed, atol=5e-8, rtol=0.0)


def test_step_without_noise_propagates_the_state() -> None:
    state, out = np.array([3.0, 0.5, 0.25]), np.zeros(2)
    none = np.full(3, -1)
    phase.integrate(2.0, np.array([1.0, 3.0, 3.0]), np.zeros((0, 2)), none, np.zeros(3), state, out)
    assert np.allclose(out, [3.0 + 1.0 + 0.5 + 4.0, 8.5 + 2.0 + 0.5 + 6.0], rtol=1e-12, atol=0.0)
    assert np.allclose(state, [17.0, 1.5, 0.25], rtol=1e-12, atol=0.0)


@pytest.mark.compiled
@pytest.mark.requirement("CLK-8")
@pytest.mark.parametrize(
    "sizes",
    [
        {"white_frequency": 2e-19},
        {"random_walk_frequency": 2e-20},
        {"ageing_random_walk": 1e-19},
        {"white_frequency": 2e-19, "random_walk_frequency": 2e-20, "ageing_random_walk": 1e-20},
    ],
)
def test_variance_without_a_reference_grows_as_the_model_states(sizes: dict[str, float]) -> None:
    q1 = sizes.get("white_frequency", 0.0) / 2.0
    q2 = 2.0 * math.pi**2 * sizes.get("random_walk_frequency", 0.0)
    q3 = sizes.get("ageing_random_walk", 0.0)
    time, count = [0.004, 0.3, 3.0], 1000
    found = (compute_run_errors(make_clock(**sizes), time, count) ** 2).mean(axis=0)
    low, high = compute_mean_square_bounds(count, comparisons=3 * 4)
    for t, square in zip(time, found, strict=True):
        assert low < square / (q1 * t + q2 * t**3 / 3.0 + q3 * t**5 / 20.0) < high, f"{t} s"


@pytest.mark.compiled
@pytest.mark.requirement("CLK-8")
@pytest.mark.parametrize(
    "sizes",
    [
        {"white_frequency": 2e-19},
        {"flicker_frequency": 7e-21},
        {"random_walk_frequency": 2e-20},
        {"white_frequency": 2e-19, "flicker_frequency": 7e-20, "random_walk_frequency": 2e-20},
    ],
)
def test_allan_deviation_equals_the_configured_one(sizes: dict[str, float]) -> None:
    """With one difference of adjacent average frequencies per run, the sum of squares over runs is chi-squared.

    The flicker floor has a tolerance of 2 percent.
    """
    spans, count = (0.1, 0.4, 1.0, 2.5), 1000
    oscillator = Oscillator(**sizes)
    time = sorted({0.0, *spans, *(2.0 * span for span in spans)})
    curves = compute_run_errors(Clock("c", oscillator=oscillator), time, count)
    low, high = compute_mean_square_bounds(count, comparisons=4 * len(spans))
    slack = 1.02**2 if "flicker_frequency" in sizes else 1.0
    for span in spans:
        x0, x1, x2 = (curves[:, time.index(at)] for at in (0.0, span, 2.0 * span))
        variance = ((x2 - 2.0 * x1 + x0) ** 2).mean() / (2.0 * span**2)
        assert low / slack < variance / oscillator.allan_deviation(span) ** 2 < high * slack, f"{span} s"


@pytest.mark.compiled
@pytest.mark.requirement("CLK-8")
@pytest.mark.parametrize(
    ("alpha", "sizes"),
    [(0, {"white_frequency": 2e-19}), (-1, {"flicker_frequency": 7e-21}), (-2, {"random_walk_frequency": 2e-20})],
)
def test_allantools_estimates_the_configured_allan_deviation(alpha: int, sizes: dict[str, float]) -> None:
    """AllanTools' overlapping estimate of an hour, within its chi-squared bounds (Greenhall's degrees of freedom)."""
    rate, spans = 10.0, [1.0, 4.0, 16.0, 64.0]
    time = np.arange(int(3600 * rate)) / rate
    oscillator = Oscillator(**sizes)
    curve = compute_error(Clock("c", oscillator=oscillator), time, seed=11)
    found, deviations, _, _ = allantools.oadev(curve, rate=rate, data_type="phase", taus=spans)
    assert np.allclose(found, spans, rtol=1e-12, atol=0.0)
    slack = 1.02 if alpha == -1 else 1.0
    for span, deviation in zip(spans, deviations, strict=True):
        m = round(span * rate)
        dof = allantools.edf_greenhall(alpha, 2, m, time.size, overlapping=True, modified=False)
        low, high = (math.sqrt(bound) for bound in compute_mean_square_bounds(dof, comparisons=3 * len(spans)))
        assert low / slack < deviation / oscillator.allan_deviation(span) < high * slack, f"{span} s"


@pytest.mark.compiled
@pytest.mark.requirement("CLK-8")
def test_ageing_random_walk_has_a_hadamard_but_no_allan_variance() -> None:
    """HVAR = q_1 / T + q_2 T / 6 + 11 q_3 T^3 / 120 at any start; the Allan variance grows with the start.

    A second difference at t is T^2 d(t), with variance q_3 t T^4, plus later increments. Integrated, the
    squares of (2 T - s)^2 / 2 - max(T - s, 0)^2 over 0 < s < 2 T give 23 T^5 / 30.
    """
    count, span, q3, h0, h_2 = 1000, 1.0, 1e-19, 2e-21, 1e-22
    oscillator = make_clock(white_frequency=h0, random_walk_frequency=h_2, ageing_random_walk=q3)
    q1, q2 = h0 / 2.0, 2.0 * math.pi**2 * h_2
    low, high = compute_mean_square_bounds(count, comparisons=4)
    for start in (0.0, 5.0):
        x0, x1, x2, x3 = compute_run_errors(oscillator, [start + i * span for i in range(4)], count).T
        hadamard = ((x3 - 3.0 * x2 + 3.0 * x1 - x0) ** 2).mean() / (6.0 * span**2)
        allan = ((x2 - 2.0 * x1 + x0) ** 2).mean() / (2.0 * span**2)
        walk = q3 * (start * span**4 + 23.0 * span**5 / 30.0) / (2.0 * span**2)
        assert low < hadamard / (q1 / span + q2 * span / 6.0 + 11.0 * q3 * span**3 / 120.0) < high, f"at {start} s"
        assert low < allan / (q1 / span + q2 * span / 3.0 + walk) < high, f"at {start} s"


@pytest.mark.requirement("CLK-8")
def test_runs_have_different_frequency_and_ageing() -> None:
    count, t = 400, 1000.0
    found = compute_run_errors(
        make_clock(frequency=5e-6, frequency_stddev=1e-6, ageing=1e-9, ageing_stddev=2e-9), [t, 2.0 * t], count
    )
    ageing = (found[:, 1] - 2.0 * found[:, 0]) / t**2
    frequency = (4.0 * found[:, 0] - found[:, 1]) / (2.0 * t)
    low, high = compute_mean_square_bounds(count, comparisons=2)
    assert low < (((frequency - 5e-6) / 1e-6) ** 2).mean() < high
    assert low < (((ageing - 1e-9) / 2e-9) ** 2).mean() < high


def test_processes_are_independent() -> None:
    """Each process has a separate stream: errors of two processes add."""
    time = np.arange(3000) / 700.0
    both = compute_error(make_clock(white_frequency=2e-19, flicker_frequency=7e-21), time, seed=3)
    one, other = (
        compute_error(make_clock(**sizes), time, seed=3)
        for sizes in ({"white_frequency": 2e-19}, {"flicker_frequency": 7e-21})
    )
    assert np.allclose(both, one + other, rtol=0.0, atol=1e-22)
    assert np.ptp(one) > 0.0
    assert np.ptp(other) > 0.0


@pytest.mark.requirement("CLK-10")
def test_sensors_of_different_rates_have_bitwise_equal_errors() -> None:
    oscillator = Clock("c", Noise(mean=1e-3, bias_stddev=1e-2), oscillator=FULL)
    fast = SensorClock(oscillator, "a", 4, 1).compute_errors(np.arange(2000) / 800.0)
    slow = SensorClock(oscillator, "b", 4, 1).compute_errors(np.arange(25) / 10.0)
    assert fast[::80].tobytes() == slow.tobytes()
    alone = [SensorClock(oscillator, "b", 4, 1).compute_errors(np.array([t]))[0] for t in np.arange(25) / 10.0]
    assert np.array(alone).tobytes() == slow.tobytes()


def test_errors_do_not_depend_on_block_size() -> None:
    oscillator = Clock(
        "c", Noise(stddev=1e-4, dynamic_bias_stddev=1e-4, dynamic_bias_correlation_time=2.0), oscillator=FULL
    )
    time = np.cumsum(np.abs(make_generator(1, ("gaps",)).standard_normal(3000)) * 2e-3)
    complete = SensorClock(oscillator, "imu", 3, 0).compute_errors(time)
    for cuts in ([1], [2999], [1, 2, 3, 700, 701, 2500], list(range(1, 60))):
        pieces = SensorClock(oscillator, "imu", 3, 0)
        assert (
            np.concatenate([pieces.compute_errors(part) for part in np.split(time, cuts)]).tobytes()
            == complete.tobytes()
        )
    live = SensorClock(oscillator, "imu", 3, 0, prefetch=64)
    assert (
        np.array([live.compute_errors(time[i : i + 1])[0] for i in range(1500)]).tobytes() == complete[:1500].tobytes()
    )


def test_decreasing_times_are_an_error() -> None:
    with pytest.raises(ClockError, match="must not go back"):
        ClockRealisation(make_clock(white_frequency=1e-19), 1, 0).varying_error(np.array([0.5, 9.0, 0.1]))


@pytest.mark.parametrize("field", [field.name for field in fields(Oscillator)])
def test_every_parameter_has_an_effect(field: str) -> None:
    time = np.arange(20) / 7.0
    other = replace(FULL, **{field: Signal.constant(280.0) if field == "temperature" else 1.5 * getattr(FULL, field)})
    one = compute_error(Clock("c", oscillator=FULL), time, seed=2)
    assert not np.array_equal(one, compute_error(Clock("c", oscillator=other), time, seed=2))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"white_frequency": -1e-20}, "white_frequency: -1e-20; must be >= 0"),
        ({"frequency": math.nan}, "frequency: nan; must be a finite number"),
        ({"offset": math.inf}, "offset: inf; must be a finite number"),
        ({"ageing": 1e200}, "ageing: 1e.200; must be of absolute value below 1e.100"),
        ({"temperature": -3.0}, "temperature: -3.0; must be >= 0"),
        ({"frequency": "2 ppm"}, "frequency: 2 ppm; must be a finite number"),
    ],
)
def test_invalid_oscillator_is_an_error(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(ClockError, match=message):
        Oscillator(**sizes)


def test_sensor_noise_terms_of_a_clock_are_an_error() -> None:
    with pytest.raises(ClockError, match=r"bias_instability of clock c: 1e-09; is a field of sensor channels.*"):
        Clock("c", Noise(bias_instability=1e-9))


@pytest.mark.requirement("CLK-8")
@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("TCXO", "4.912e-10 1.156e-09 3.629e-09 1.147e-08"),
        ("precision TCXO", "3.374e-11 1.545e-11 1.219e-11 1.182e-11"),
        ("OCXO", "2.240e-12 6.361e-12 1.989e-11 6.284e-11"),
        ("rubidium", "1.000e-11 3.172e-12 1.031e-12 4.111e-13"),
    ],
)
def test_grades_have_the_allan_deviation_of_their_coefficients(name: str, printed: str) -> None:
    """The expected values are IEEE 1139's sum at 1, 10, 100 and 1000 s for Brown and Hwang's coefficients."""
    ours = [f"{get_oscillator(name).allan_deviation(span):.3e}" for span in (1.0, 10.0, 100.0, 1000.0)]
    assert ours == printed.split()


@pytest.mark.requirement("CLK-8")
def test_atomic_grade_is_within_its_datasheet() -> None:
    for span, limit in ((1.0, 3e-10), (10.0, 1e-10), (100.0, 3e-11), (1000.0, 1e-11)):
        assert 0.9 * limit < get_oscillator("CSAC").allan_deviation(span) <= limit * (1.0 + 1e-5)


def test_better_grades_have_smaller_errors() -> None:
    """Doubtful source values are excluded: they made the precision TCXO equal to the TCXO from 1 s on."""
    for span in (1.0, 10.0, 100.0, 1000.0):
        both = [get_oscillator(name).allan_deviation(span) for name in ("precision TCXO", "TCXO")]
        assert both[0] < 0.1 * both[1]
    doubt = GRADES["precision TCXO"]
    assert doubt.oscillator.random_walk_frequency == 0.0
    assert "2e-20" in doubt.missing
    assert "3e-24" in doubt.missing


def test_every_grade_has_a_source() -> None:
    for name, each in GRADES.items():
        assert get_oscillator(name) is each.oscillator
        assert each.sources
        assert all(len(source) > 20 for source in each.sources)
    with pytest.raises(ClockError, match=r"grade of oscillator: XO; must be one of RTC crystal, TCXO"):
        get_oscillator("XO")


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_kernels_agree_to_the_last_bit(
    interpret: Callable[[Any], Callable[..., Any]],
) -> None:
    draws, rows = make_generator(6, ("draws",)).standard_normal((6, 1500)), np.array([0, 1, 3])
    frequency, temperature = make_generator(7, ("f",)).standard_normal(1501), 290.0 + draws[0]
    time = np.arange(900) / 640.0
    results = []
    for of in (lambda kernel: kernel, interpret):
        state, x, warm = np.array([0.1, 1e-6, 1e-9]), np.zeros(1500), np.zeros(1500)
        of(phase.integrate)(1e-3, frequency, draws, rows, np.array([1e-11, 1e-12, 1e-13]), state, x)
        of(phase.add_temperature_shift)(1e-8, -3e-8, 298.15, temperature, warm)
        drift, out = np.zeros(1500), np.zeros(900)
        last = of(nodes.write_gauss_markov)(0.1, 0.99, 0.01, draws[0], drift)
        reached = of(nodes.interpolate)(time, 0, 0, x, drift, out)
        of(nodes.add_parabola)(time, 0.1, 1e-6, 1e-9, out)
        results.append((state, x, warm, drift, out, np.array([last, reached])))
    for compiled, plain in zip(*results, strict=True):
        assert compiled.tobytes() == plain.tobytes()


@pytest.mark.requirement("CLK-10", "CLK-8")
def test_sensors_and_live_clock_share_the_clock_error() -> None:
    """Errors at common times are bitwise equal at two rates, in batch and live runs, and equal `compute_error`."""
    oscillator = Clock(
        "robot::base::clock", Noise(bias_stddev=1e-3), FULL, Discipline(interval=0.02, step_threshold=5e-4)
    )
    world = example_world(("a", Imu()), ("b", Imu()))
    sensors = tuple(replace(each, rate=rate) for each, rate in zip(world.sensors, (400.0, 25.0), strict=True))
    world = replace(world, sensors=sensors, clocks=(oscillator,))
    run = simulate(world, 1.0, seed=4, runs=(0, 3))
    a, b = run["robot::arm::a"], run["robot::arm::b"]
    assert np.ascontiguousarray(a.clock_error[:, ::16]).tobytes() == np.ascontiguousarray(b.clock_error).tobytes()
    for row, number in enumerate((0, 3)):
        assert np.array_equal(compute_error(oscillator, b.time, seed=4, run=number), b.clock_error[row])
    stepped = []
    with live(world, seed=4) as steps:
        for step in steps:
            if step.time >= 1.0:
                break
            stepped += [r.clock_error for name, r in step.readings.items() if name == "robot::arm::b"]
        assert np.concatenate(stepped).tobytes() == b.clock_error[0].tobytes()
