"""Discipline of a clock: control loop, steps and holdover; and monotonic stamps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from scipy.stats import chi2

from navsense.clock import Clock, Discipline, Oscillator, SensorClock, compute_error, discipline, stamps
from navsense.core.errors import ClockError
from navsense.core.kernels import INTERPRETED
from navsense.core.random_streams import make_generator
from navsense.core.readings import to_nanoseconds
from navsense.core.typing import FloatArray
from navsense.noise.specification import Noise

LOOP = Discipline(interval=0.05, step_threshold=math.inf, slew_rate=1.0, proportional=0.6, integral=0.15)


def make_clock(discipline: Discipline, noise: Noise | None = None, **oscillator: float) -> Clock:
    return Clock("robot::base::clock", noise or Noise(), Oscillator(**oscillator), discipline)


def run_loop_by_nodes(discipline: Discipline, free: FloatArray, draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the error before and after each node of a clock that without discipline has the error `free` (n,) s."""
    before, after, at, rate, correction, polls = free.copy(), free.copy(), 0.0, 0.0, 0.0, 0
    for k in range(1, free.size):
        at += rate * 1e-3
        before[k] = after[k] = free[k] + at
        if k % round(discipline.interval * 1000):
            continue
        if k >= discipline.until * 1000:
            rate, after[k] = correction, before[k]
            continue
        measured, polls = before[k] + discipline.mean + discipline.stddev * draws[polls], polls + 1
        if abs(measured) > discipline.step_threshold:
            at, rate = at - measured, correction
        else:
            learnt = correction - discipline.integral * measured / discipline.interval
            rate = learnt - discipline.proportional * measured / discipline.interval
            if abs(rate) <= discipline.slew_rate:
                correction = learnt
            rate = max(-discipline.slew_rate, min(discipline.slew_rate, rate))
        after[k] = free[k] + at
    return before, after


@pytest.mark.requirement("CLK-8")
@pytest.mark.parametrize(
    "discipline",
    [
        replace(LOOP, mean=1e-5, stddev=2e-5),
        replace(LOOP, step_threshold=1e-4, stddev=1e-4),
        replace(LOOP, slew_rate=3e-4, integral=0.3),
        Discipline(interval=0.25, step_threshold=1e-3, stddev=3e-4),
        replace(LOOP, stddev=1e-4, until=1.0),
    ],
)
def test_loop_equals_its_documentation(discipline: Discipline) -> None:
    """The reference is a loop over the nodes, with NumPy's generator for the measured offsets."""
    clock = make_clock(discipline, Noise(bias_mean=3e-3), offset=-1e-3, frequency=2e-4, ageing=1e-6)
    t = np.arange(2001) / 1000.0
    free = 3e-3 - 1e-3 + 2e-4 * t + 1e-6 * t * t / 2.0
    draws = make_generator(6, (2, "clock", clock.name, "discipline", "measured")).standard_normal(100)
    before, after = run_loop_by_nodes(discipline, free, draws)
    ours = compute_error(clock, t[:-1], seed=6, run=2)
    assert np.allclose(ours, after[:-1], rtol=0.0, atol=1e-15)
    just_before = compute_error(clock, t[1:] - 1e-9, seed=6, run=2)
    assert np.allclose(just_before, before[1:], rtol=0.0, atol=2e-6 * np.abs(before - after).max() + 1e-10)
    assert np.abs(after - free).max() > 5e-4, "it does something"


@pytest.mark.requirement("CLK-8")
def test_constant_frequency_is_corrected_completely() -> None:
    t = np.array([59.999, 119.9999])
    off = compute_error(make_clock(Discipline(interval=1.0), offset=1e-3, frequency=4e-5), t, seed=1)
    assert np.abs(off).max() < 1e-9
    assert abs(compute_error(make_clock(Discipline(interval=1.0, integral=0.0), frequency=4e-5), t, seed=1)[0]) > 1e-5


@pytest.mark.requirement("CLK-8")
def test_large_offset_is_stepped_and_small_offset_is_slewed() -> None:
    """With ntpd's limits, an offset above 128 ms is stepped at once, a smaller one slewed at 500 ppm at most."""
    discipline = Discipline(interval=2.0)
    t = np.array([1.999, 2.0 - 1e-9, 2.0, 3.0])
    stepped = compute_error(make_clock(discipline, offset=0.129), t, seed=1)
    assert np.allclose(stepped, [0.129, 0.129, 0.0, 0.0], rtol=0.0, atol=1e-9)
    path = compute_error(make_clock(discipline, offset=0.127), np.arange(400_000) / 1000.0, seed=1)
    rate = np.diff(path) * 1000.0
    assert np.allclose(path[:2001], 0.127, rtol=1e-12, atol=0.0)
    assert np.abs(rate).max() == pytest.approx(500e-6, rel=1e-9, abs=0.0)
    assert np.allclose(path[2000:200_000:20_000], 0.127 - 500e-6 * np.arange(0.0, 198.0, 20.0), atol=1e-12, rtol=0.0)
    assert abs(path[-1]) < 1e-6


@pytest.mark.requirement("CLK-8")
def test_clock_without_reference_keeps_the_last_frequency() -> None:
    """With an ageing D, a settled loop measures m = D T^2 / beta and corrects alpha m / T in addition to f.

    It keeps the error constant from poll to poll, so y + f = alpha m / T - D T / 2 at the last poll. When its slew
    ends, y + f is D T larger. Then the error grows by (alpha / beta + 1/2) D T and by the ageing.
    Each poll leaves sqrt(1 - alpha) of a transient.
    """
    discipline, ageing = Discipline(interval=1.0, until=100.0), 1e-9
    t = np.array([100.0, 101.0, 200.0, 300.0])
    off = compute_error(make_clock(discipline, frequency=4e-5, ageing=ageing), t, seed=1)
    late, lag = t - 100.0, (discipline.proportional / discipline.integral + 0.5) * ageing
    assert np.allclose(off, ageing / discipline.integral + lag * late + ageing * late**2 / 2.0, rtol=1e-6, atol=0.0)


@pytest.mark.requirement("CLK-8")
@pytest.mark.parametrize(("interval", "until"), [(0.001, 1.001), (0.143, 1.001), (0.25, 1.0), (0.25, 1.1), (0.25, 0.2)])
def test_last_slew_completes_after_the_reference_ends(interval: float, until: float) -> None:
    """Each slew ends at the next poll. The product 1.001 * 1000 is below 1001."""
    share = 0.002
    discipline = replace(LOOP, interval=interval, proportional=share, integral=0.0, until=until)
    polls = math.ceil(round(until * 1000) / round(interval * 1000)) - 1
    t = np.arange(1, 1500) * 1e-3
    left = compute_error(make_clock(discipline, offset=1e-3), t, seed=1)
    last = interval * (polls + 1)
    assert np.allclose(left[t > last - 5e-4], 1e-3 * (1.0 - share) ** polls, rtol=1e-9, atol=0.0)
    if polls and interval > 0.001:
        middle = compute_error(make_clock(discipline, offset=1e-3), np.array([last - interval / 2.0]), seed=1)[0]
        halfway = 1e-3 * (1.0 - share) ** (polls - 1) * (1.0 - share / 2.0)
        assert middle == pytest.approx(halfway, rel=1e-9, abs=0.0), "until is no end of the slew"


@pytest.mark.compiled
@pytest.mark.requirement("CLK-8")
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.1), (0.6, 0.15), (1.0, 0.0), (0.3, 0.02), (1.2, 0.4)])
def test_residual_has_the_declared_variance(alpha: float, beta: float) -> None:
    """The formula equals the solution of the Lyapunov equation, and the clock equals the formula over many runs."""
    sigma, interval, h0 = 3e-5, 0.05, 4e-8
    stated = (2 * alpha**2 + 2 * beta + alpha * beta) * sigma**2 + 2 * h0 / 2 * interval
    stated /= alpha * (4 - 2 * alpha - beta)
    loop, reads = np.array([[1 - alpha - beta, -beta], [1.0, 1.0]]), np.array([[-alpha - beta], [1.0]])
    if beta == 0.0:
        loop, reads = loop[:1, :1], reads[:1]
    drive = sigma**2 * reads @ reads.T
    drive[0, 0] += h0 / 2 * interval
    assert stated == pytest.approx(solve_discrete_lyapunov(loop, drive)[0, 0], rel=1e-9, abs=0.0)
    discipline = replace(LOOP, proportional=alpha, integral=beta, stddev=sigma)
    count, polls = 1500, 150
    late = [interval * polls - 1e-9]
    found = np.array(
        [
            compute_error(make_clock(discipline, white_frequency=h0), np.array(late), seed=3, run=run)[0]
            for run in range(count)
        ]
    )
    low, high = chi2.ppf([1e-7, 1.0 - 1e-7], count) / count
    assert low < (found**2).mean() / stated < high


@pytest.mark.requirement("CLK-8")
def test_disciplined_clock_has_a_bounded_error() -> None:
    t = np.arange(1, 120) / 1.0
    noise = Noise(bias_stddev=1e-2, dynamic_bias_stddev=1e-5, dynamic_bias_correlation_time=30.0)
    discipline = Discipline(interval=1.0, step_threshold=1e-3, stddev=1e-6)
    free = Clock("c", noise, Oscillator(frequency=2e-5, white_frequency=2e-19, random_walk_frequency=2e-20))
    off = compute_error(replace(free, discipline=discipline), t + 0.5, seed=8)
    assert np.abs(compute_error(free, t, seed=8)).max() > 2e-3
    assert np.abs(off[20:]).max() < 1e-4


def test_errors_do_not_depend_on_block_size() -> None:
    noise = Noise(stddev=1e-5, dynamic_bias_stddev=1e-4, dynamic_bias_correlation_time=1.0)
    discipline = Discipline(interval=0.03, step_threshold=2e-4, stddev=1e-4)
    clock = replace(make_clock(discipline, noise, white_frequency=1e-10, frequency=1e-3), monotonic=True)
    time = np.cumsum(np.abs(make_generator(1, ("gaps",)).standard_normal(2500)) * 3e-3)
    complete = SensorClock(clock, "imu", 3, 0).compute_errors(time)
    for cuts in ([1], [2, 900, 901], list(range(1, 50))):
        pieces = SensorClock(clock, "imu", 3, 0)
        assert (
            np.concatenate([pieces.compute_errors(part) for part in np.split(time, cuts)]).tobytes()
            == complete.tobytes()
        )
    live = SensorClock(clock, "imu", 3, 0, prefetch=64)
    assert (
        np.array([live.compute_errors(time[i : i + 1])[0] for i in range(1000)]).tobytes() == complete[:1000].tobytes()
    )


@pytest.mark.parametrize("field", [field.name for field in fields(Discipline)])
def test_every_parameter_has_an_effect(field: str) -> None:
    discipline = Discipline(interval=0.05, step_threshold=4e-3, slew_rate=1e-2, mean=1e-4, stddev=1e-4, until=0.4)
    other = replace(discipline, **{field: 2.0 * getattr(discipline, field)})
    t = np.arange(40) / 41.0
    curves = [
        compute_error(make_clock(one, offset=5e-3, white_frequency=6e-5), t, seed=2) for one in (discipline, other)
    ]
    assert not np.array_equal(*curves)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"interval": 0.0}, "interval: 0.0; must be a whole number of milliseconds"),
        ({"interval": 0.0005}, "interval: 0.0005; must be a whole number"),
        ({"interval": 1.0005}, "interval: 1.0005; must be a whole number"),
        ({"interval": 1e17}, r"interval: 1e\+17; must be at most 6e\+09 s"),
        ({"interval": 10**400}, "interval: 1000.*; must be of absolute value below 1e.100"),
        ({"stddev": -1.0}, "stddev: -1.0; must be >= 0"),
        ({"slew_rate": math.inf}, "slew_rate: inf; must be a finite number"),
        ({"step_threshold": math.nan}, "step_threshold: nan; must be a finite number"),
        ({"proportional": 2.0}, "proportional: 2.0; must be between 0 and 2"),
        ({"proportional": 0.0}, "proportional: 0.0; must be between 0 and 2"),
        ({"proportional": 1.5, "integral": 1.0}, "integral: 1.0; must be below 4 - 2 proportional = 1"),
    ],
)
def test_invalid_discipline_is_an_error(sizes: dict[str, float], message: str) -> None:
    with pytest.raises(ClockError, match=message):
        Discipline(**sizes)


def make_monotonic_reference(raw: list[int]) -> list[int]:
    shown: list[int] = []
    for each in raw:
        shown.append(max(each, shown[-1] + 1) if shown else each)
    return shown


@pytest.mark.requirement("CLK-8")
def test_monotonic_stamps_change_decreasing_stamps_only() -> None:
    clock = Clock("c", Noise(mean=0.1, stddev=2e-3, precision=1e-3))
    time = np.arange(4000) / 1000.0
    raw = to_nanoseconds(0, time + SensorClock(clock, "imu", 1, 0).compute_errors(time))
    shown = to_nanoseconds(0, time + SensorClock(replace(clock, monotonic=True), "imu", 1, 0).compute_errors(time))
    assert np.diff(raw).min() < 0
    assert shown.tolist() == make_monotonic_reference(raw.tolist())
    assert np.diff(shown).min() == 1


@pytest.mark.requirement("CLK-8")
def test_monotonic_stamps_increase_across_a_backward_step() -> None:
    clock = make_clock(Discipline(interval=1.0), offset=0.2)
    time = np.arange(1500) / 1000.0
    plain, shown = (
        to_nanoseconds(0, time + SensorClock(each, "imu", 1, 0).compute_errors(time))
        for each in (clock, replace(clock, monotonic=True))
    )
    assert np.diff(plain).min() < -0.19e9
    assert np.array_equal(shown[:1000], plain[:1000])
    assert np.all(np.diff(shown[999:1200]) == 1), "a nanosecond a sample until the time is made up for"
    assert np.array_equal(shown[1210:], plain[1210:])


@pytest.mark.requirement("CLK-8")
@pytest.mark.parametrize("epoch", [0, 1_700_000_000])
@pytest.mark.parametrize("bias", [-0.05, -3e6, -1.7e9, 3e6])
def test_stamps_of_a_stopped_clock_increase_on_both_sides_of_zero(bias: float, epoch: int) -> None:
    clock = Clock("c", Noise(bias_mean=bias, precision=0.1), Oscillator(frequency=-1.0), monotonic=True)
    time = np.arange(500) / 100.0
    off = SensorClock(clock, "imu", 1, 0).compute_errors(time)
    assert np.diff(to_nanoseconds(epoch, time + off)).min() > 0
    live = SensorClock(clock, "imu", 1, 0)
    assert np.concatenate([live.compute_errors(time[i : i + 1]) for i in range(500)]).tobytes() == off.tobytes()


def test_monotonic_stamps_increase_beyond_the_resolution_of_a_double() -> None:
    time = 1e9 + np.arange(5) * 1e-6
    clock = Clock("c", Noise(precision=1.0), monotonic=True)
    shown = to_nanoseconds(0, time + SensorClock(clock, "imu", 1, 0).compute_errors(time))
    assert np.diff(shown).min() > 0
    assert np.diff(shown).max() < 300, "by the least that there is, 119 ns"


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_kernels_agree_to_the_last_bit(
    interpret: Callable[[Any], Callable[..., Any]],
) -> None:
    free = np.cumsum(make_generator(1, ("free",)).standard_normal(3000)) * 1e-5
    draws, line = make_generator(2, ("polls",)).standard_normal(100), np.array([1e-3, 1e-5, 1e-9])
    sheet = np.array([1e-6, 1e-5, 3e-4, 2e-3, 0.6, 0.15])
    time = np.arange(3000) / 1000.0
    results = []
    for of in (lambda kernel: kernel, interpret):
        state, before, after = np.zeros(4), np.empty(3000), np.empty(3000)
        of(discipline.steer)(free, 1, line, 30, 2500, sheet, draws, state, before, after)
        risen, limited, rounded, shaken = free.copy(), free.copy(), free.copy(), free.copy()
        last = of(stamps._make_increasing)(time, -math.inf, risen)
        of(stamps._saturate)(-1e-4, 1e-4, limited)
        of(stamps._quantise)(time, 1e-5, rounded)
        of(stamps.add_jitter)(0.1, 1e-3, 1e-5, free, shaken)
        results.append((state, before, after, risen, limited, rounded, shaken, np.array([last])))
    for compiled, plain in zip(*results, strict=True):
        assert compiled.tobytes() == plain.tobytes()
