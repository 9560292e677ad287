"""Readings of a live clock at any instant: mean, jitter, precision, discipline, and monotonic order."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.clock import Clock, Discipline, Oscillator, get_oscillator
from navsense.clock.base import ClockStep
from navsense.clock.readings import REALISATION_MEMORY
from navsense.core.errors import ClockError, SimulationError
from navsense.core.kernels import INTERPRETED
from navsense.core.random_streams import draw_normals, make_initial_state
from navsense.core.typing import FloatArray
from navsense.environment.signal import Signal
from navsense.noise.specification import Noise
from navsense.sensors import Imu, Magnetometer
from navsense.simulation.live_run import LiveRun
from navsense.testing import example_world
from navsense.world import World

IMU, MAG, CLOCK = "robot::arm::imu", "robot::arm::mag", "robot::base::clock"
DRIFTING = Noise(
    mean=0.5, stddev=1e-3, bias_stddev=0.1, dynamic_bias_stddev=1e-3, dynamic_bias_correlation_time=5.0, precision=1e-6
)
STEPPED = Discipline(interval=0.5, step_threshold=1e-3)
FALSE_ALARM_5 = 4.8917
"""Standard deviations that a normal exceeds with probability 1e-6."""


def world(noise: Noise = DRIFTING, *, monotonic: bool = False, discipline: Discipline | None = STEPPED) -> World:
    base = example_world(("imu", Imu.example_spec()), ("mag", Magnetometer.example_spec()))
    clock = Clock(CLOCK, noise, Oscillator(frequency=1e-3, white_frequency=1e-8), discipline, monotonic=monotonic)
    rates = {IMU: 37.0, MAG: 3.0}
    sensors = tuple(replace(sensor, rate=rates[sensor.name]) for sensor in base.sensors)
    return replace(base, clocks=(clock,), sensors=sensors, max_step_size=0.01)


def step_until(world: World, end: float, seed: int = 4) -> LiveRun:
    """Return a live run that has stepped to t = `end` (s)."""
    sim = ns.live(world, seed=seed)
    while sim.step().time < end:
        pass
    return sim


def mixed(end: float, count: int = 300) -> FloatArray:
    """Return instants (n,) s from 0 to `end`, in no order, whole ticks and milliseconds among them."""
    drawn = np.random.default_rng(8).uniform(0.0, end, count)
    return np.concatenate((drawn, np.arange(0.0, end, 0.25), np.arange(0, int(37 * end)) / 37.0, drawn[:5]))


@pytest.mark.requirement("CLK-5")
@pytest.mark.parametrize("monotonic", [False, True])
def test_sensor_clock_at_sample_times_equals_the_stamps_bitwise(monotonic: bool) -> None:
    batch = ns.simulate(world(monotonic=monotonic), 3.0, seed=4)
    sim = step_until(world(monotonic=monotonic), 3.0)
    for name in (IMU, MAG):
        clock, reading = sim.sensor(name).clock, batch[name]
        assert clock.error(reading.time).tobytes() == reading.clock_error.tobytes()
        backwards = [clock.error(float(t)) for t in reading.time[::-1]]
        assert backwards == reading.clock_error[::-1].tolist()


@pytest.mark.requirement("CLK-5")
@pytest.mark.parametrize("monotonic", [False, True])
def test_reading_does_not_depend_on_other_queries(monotonic: bool) -> None:
    sim, instants = step_until(world(monotonic=monotonic), 3.0), mixed(3.0)
    early = step_until(world(monotonic=monotonic), 0.5)
    for late_clock, early_clock in (
        (sim.clock(CLOCK), early.clock(CLOCK)),
        (sim.sensor(MAG).clock, early.sensor(MAG).clock),
    ):
        together = late_clock.error(instants)
        assert [late_clock.error(float(t)) for t in instants] == together.tolist()
        soon = instants < 0.5
        assert early_clock.error(instants[soon]).tolist() == together[soon].tolist()


LIMITED = Noise(mean=0.5, stddev=1e-2, minimum=0.49, maximum=0.505)
WARMED = replace(get_oscillator("TCXO"), temperature_linear=1e-6, temperature=Signal((0.0, 2.0), (280.0, 300.0)))
FAULTS = (ClockStep(0.3, 0.7, 0.2), ClockStep(1.5, size=-0.1))
CLOCKS = {
    "drift, discipline, precision": Clock(CLOCK, DRIFTING, get_oscillator("OCXO"), STEPPED),
    "no jitter": Clock(CLOCK, replace(DRIFTING, stddev=0.0), get_oscillator("CSAC")),
    "limits": Clock(CLOCK, LIMITED),
    "one limit, steps": Clock(CLOCK, replace(LIMITED, minimum=-math.inf), steps=FAULTS),
    "steps, no oscillator": Clock(CLOCK, steps=FAULTS),
    "temperature": Clock(CLOCK, Noise(stddev=1e-6, precision=1e-3), WARMED),
    "classic": Clock(CLOCK, replace(DRIFTING, classic=True)),
    "nothing": Clock(CLOCK),
}


@pytest.mark.requirement("CLK-5")
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_scalar_and_array_instants_give_equal_bits(clock: Clock, monotonic: bool) -> None:
    sim = step_until(replace(world(), clocks=(replace(clock, monotonic=monotonic),)), 3.0)
    instants = np.concatenate((mixed(3.0, 60), [0.0, -0.0, 5e-324, 1e-9, math.nextafter(3.0, 0.0), 3.0]))
    for reader in (sim.clock(CLOCK), sim.sensor(IMU).clock):
        errors = np.array([reader.error(float(time)) for time in instants])
        assert errors.tobytes() == reader.error(instants).tobytes()
        times = np.array([reader.time(float(time)) for time in instants])
        assert times.tobytes() == reader.time(instants).tobytes()


def count_event(events: list[str], _frame: FrameType, event: str, _argument: object) -> None:
    """Append an event of the interpreter, see `sys.setprofile`."""
    events.append(event)


@pytest.mark.skipif(INTERPRETED, reason="counts the calls outside the kernels")
@pytest.mark.parametrize("monotonic", [False, True])
def test_reading_one_instant_makes_few_python_calls(monotonic: bool) -> None:
    """The cost of a read is that of its Python calls: at most 50, where an array of one instant takes twice as many."""
    sim = step_until(world(monotonic=monotonic), 3.0)
    for clock, instant in ((sim.clock(CLOCK), sim.time), (sim.sensor(IMU).clock, 1.2345), (sim.sensor(IMU).clock, 1.0)):
        clock.time(instant)  # computes the curve and the stamps up to here, and compiles
        calls: list[str] = []
        sys.setprofile(partial(count_event, calls))
        try:
            clock.time(instant)
        finally:
            sys.setprofile(None)
        assert calls.count("call") + calls.count("c_call") <= 50


@pytest.mark.requirement("CLK-5")
def test_clock_query_does_not_change_readings() -> None:
    quiet, querying = ns.live(world(), seed=4), ns.live(world(), seed=4)
    for _ in range(150):
        undisturbed, queried = quiet.step(), querying.step()
        for clock in (querying.clock(CLOCK), querying.sensor(IMU).clock, querying.sensor(MAG).clock):
            clock.time(querying.time)
            clock.error(np.array([0.7, 0.1, 1.0]) * querying.time)
        assert undisturbed.readings.keys() == queried.readings.keys()
        for name, reading in undisturbed.readings.items():
            assert reading.clock_error.tobytes() == queried.readings[name].clock_error.tobytes()
            assert all(reading[array].tobytes() == queried.readings[name][array].tobytes() for array in reading)


@pytest.mark.requirement("CLK-5")
def test_clock_readings_have_the_declared_mean_and_jitter() -> None:
    """5000 instants: the mean of normals is off by 1 / sqrt(n), their deviation by 1 / sqrt(2 n), 1e-6 each."""
    sim, n = step_until(world(Noise(mean=0.5, stddev=1e-3), discipline=None), 3.0), 5000
    instants = np.random.default_rng(3).uniform(0.0, 3.0, n)
    answers = {}
    for name, clock in (("clock", sim.clock(CLOCK)), ("imu", sim.sensor(IMU).clock), ("mag", sim.sensor(MAG).clock)):
        reference = ns.live(world(Noise(), discipline=None), seed=4)
        while reference.step().time < 3.0:
            pass
        jitter = clock.error(instants) - reference.clock(CLOCK).error(instants)
        assert jitter.mean() == pytest.approx(0.5, abs=FALSE_ALARM_5 * 1e-3 / math.sqrt(n))
        assert jitter.std() == pytest.approx(1e-3, abs=FALSE_ALARM_5 * 1e-3 / math.sqrt(2 * n))
        answers[name] = jitter - 0.5
    for first, second in (("clock", "imu"), ("imu", "mag"), ("mag", "clock")):
        product = np.mean(answers[first] * answers[second]) / 1e-6
        assert abs(product) < FALSE_ALARM_5 / math.sqrt(n)  # each reader has its own jitter


@pytest.mark.requirement("CLK-5")
def test_clock_with_only_a_mean_has_that_error() -> None:
    """Without an oscillator, drift and jitter, every reader of the clock has the mean error at any instant."""
    plain = world(Noise(mean=0.5), discipline=None)
    sim = step_until(replace(plain, clocks=(replace(plain.clocks[0], oscillator=None),)), 1.0)
    assert sim.clock(CLOCK).error(0.77) == 0.5
    assert sim.clock(CLOCK).time(0.75) == 1.25
    assert sim.sensor(IMU).clock.error(np.array([1.0, 0.0])).tolist() == [0.5, 0.5]


@pytest.mark.requirement("CLK-5")
def test_monotonic_clock_never_decreases_between_stamps() -> None:
    """The discipline steps it back by half a second at t = 0.5 s; the jitter is larger than the time between instants.

    A clock that is not monotonic does go back at the same instants.
    """
    instants = np.sort(mixed(3.0, 2000))
    for monotonic in (True, False):
        sim = step_until(world(monotonic=monotonic), 3.0)
        for clock in (sim.clock(CLOCK), sim.sensor(IMU).clock, sim.sensor(MAG).clock):
            stamps = np.rint(clock.time(instants) * 1e9)
            assert (np.diff(stamps) >= 0.0).all() == monotonic


@pytest.mark.requirement("CLK-5")
def test_clock_without_jitter_has_the_same_reading_for_every_reader() -> None:
    sim, instants = step_until(world(replace(DRIFTING, stddev=0.0)), 3.0), mixed(3.0)
    error = sim.clock(CLOCK).error(instants)
    assert error.tolist() == sim.sensor(IMU).clock.error(instants).tolist()
    batch = ns.simulate(world(replace(DRIFTING, stddev=0.0)), 3.0, seed=4)[MAG]
    assert sim.clock(CLOCK).error(batch.time).tolist() == batch.clock_error.tolist()


def test_sensor_on_global_time_shows_the_true_time() -> None:
    base = world()
    sim = step_until(replace(base, sensors=tuple(replace(sensor, clock=None) for sensor in base.sensors)), 1.0)
    assert sim.sensor(IMU).clock.time(0.3) == 0.3
    assert sim.sensor(IMU).clock.error(np.array([0.3, 0.1])).tolist() == [0.0, 0.0]


@pytest.mark.requirement("CLK-5")
def test_instant_in_the_future_is_an_error() -> None:
    sim = step_until(world(), 1.0)
    sim.clock(CLOCK).error(sim.time)
    with pytest.raises(SimulationError, match=r"1\.01; must be at most 1\.0 s, the end of the last step"):
        sim.clock(CLOCK).error(np.array([0.5, 1.01]))
    for wrong in (-0.1, math.nan):
        with pytest.raises(ClockError, match="must be from 0"):
            sim.sensor(IMU).clock.time(wrong)


def test_counter_based_normal_matches_seeded_sfc64() -> None:
    """NumPy's generator from the state that the specification's twelve rounds give, computed with Python's integers."""
    key, words, mask = make_initial_state(7, ("a",)), np.array([0.3, 0.3, -5.0, 1e9]).view(np.uint64), 2**64 - 1
    expected = []
    for one in words.tolist():
        a, b, c, w = (int(part) for part in key)
        a ^= one
        for _ in range(12):
            word = (a + b + w) & mask
            w, a = (w + 1) & mask, b ^ (b >> 11)
            b, c = (c + (c << 3)) & mask, ((((c << 24) & mask) | (c >> 40)) + word) & mask
        bits = np.random.SFC64()
        bits.state = {
            "bit_generator": "SFC64",
            "state": {"state": np.array([a, b, c, w], dtype=np.uint64)},
            "has_uint32": 0,
            "uinteger": 0,
        }
        expected.append(np.random.Generator(bits).standard_normal())
    assert draw_normals(key, words).tolist() == expected


@pytest.mark.requirement("CLK-5")
def test_clock_accepts_numbers_lists_and_arrays() -> None:
    clock = step_until(world(), 0.5).sensor("imu").clock
    instants = [0.1, 0.0, 0.25]
    errors = clock.error(np.array(instants))
    assert errors.shape == (3,)
    for rows in (instants, tuple(instants)):
        assert clock.error(rows).tolist() == errors.tolist()
        assert clock.time(rows).tolist() == (np.array(instants) + errors).tolist()
    for instant in (0.1, np.float64(0.1), np.array(0.1)):
        assert type(clock.error(instant)) is type(clock.time(instant)) is float
        assert clock.error(instant) == errors[0]
        assert clock.time(instant) == 0.1 + errors[0]
    assert clock.error(0) == errors[1]
    assert clock.error([]).shape == clock.time([]).shape == (0,)


@pytest.mark.parametrize(
    "wrong", ["a", None, True, [True], ["0.1"], [[0.1, 0.2]], [[0.1], [0.1, 0.2]], np.zeros((2, 2)), 1j]
)
def test_invalid_instant_types_raise_error(wrong: Any) -> None:
    clock = step_until(world(), 0.5).sensor("imu").clock
    for read in (clock.error, clock.time):
        with pytest.raises(ClockError, match=r"^instants \(s\): .*; must be a number, or numbers \(n,\)$"):
            read(wrong)


@pytest.mark.requirement("CLK-5")
@pytest.mark.parametrize("monotonic", [False, True])
def test_reading_before_the_stored_blocks_is_unchanged(monotonic: bool) -> None:
    sim = step_until(world(monotonic=monotonic), REALISATION_MEMORY + 3.0)
    clock = sim.sensor("imu").clock
    early = np.linspace(0.0, 2.0, 9)
    first = clock.error(early)
    clock.error(sim.time)  # the reader now forgets what is more than REALISATION_MEMORY back
    assert clock.error(early).tolist() == first.tolist()
    assert clock.error(sim.time) == clock.error([0.5, sim.time])[1]
