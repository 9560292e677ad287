"""Clocks: the cost of a stamp and of a node compared to their random draws.

    make bench            or            python benchmarks/bench_clock.py

The sensor reads stamps. Each sensor on the clock computes the nodes, 1000 per simulated second.

A read of a live clock at one time is compared to a read of an array with this time, and the first read at the end of
each step to the step of one IMU. On an idle machine a read takes 3 to 4 us, 10 us for a monotonic clock; at the end of
each step 4 to 11 us, 25 us for a monotonic clock.

The last line is the performance case of the clock's design document: an IMU at 1000 kHz whose clock has Gaussian noise.
It prints the simulated time divided by the processor time of all threads; above 1 is faster than real time on one core.
Measured: ratio 7.3 on one core of a shared Intel Xeon (model 167, 2.6 GHz), 22 November 2026.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

import navsense as ns
from navsense.analysis.bench import make_standard_sensor, measure_call
from navsense.clock import Clock, Discipline, SensorClock, get_oscillator
from navsense.clock._nodes import NODE_RATE
from navsense.clock.oscillator import list_processes
from navsense.core.random_streams import BLOCK_SAMPLES, Draws, RandomProcess
from navsense.noise.specification import Noise
from navsense.sensors import Imu
from navsense.world import Link, Model, MountedSensor, World

DRIFT = Noise(dynamic_bias_stddev=1e-6, dynamic_bias_correlation_time=100.0)
JITTER = Noise(stddev=1e-6)
SLOW, FAST = 10.0, 1e6
"""Rates (Hz). Nodes take nearly all of the time at the first and nearly none at the second."""

IMU_RATE = 1e6
"""Rate (Hz) of the performance case, 1000 kHz."""

IMU_CLOCK = Clock("robot::link::clock", Noise(mean=1e-6, stddev=2e-7))


def measure(clock: Clock, rate: float, block: int = BLOCK_SAMPLES, rounds: int = 200) -> float:
    """Return the seconds in which a sensor at `rate` (Hz) stamps a block, the best of several."""
    stamps, best = SensorClock(clock, "bench", 1, 0, prefetch=64 if block == 1 else 0), float("inf")
    for k in range(rounds):
        instants = np.arange(k * block, (k + 1) * block) / rate
        began = time.perf_counter()
        stamps.compute_errors(instants)
        best = min(best, time.perf_counter() - began)
    return best


def measure_draws(named: tuple[RandomProcess, ...]) -> float:
    """Return the seconds of one row of draws of these processes."""
    source = Draws(named, 1, (0, "bench"))
    return measure_call(lambda: source.take(BLOCK_SAMPLES)) / BLOCK_SAMPLES if source.rows else 0.0


def format_row(what: str, ours: float, limit: float) -> str:
    """Return one row of the table: nanoseconds, and the share of the draws."""
    return f"{what:44s} {ours * 1e9:8.1f} ns   draws alone {limit * 1e9:6.1f} ns   {limit / ours if ours else 0.0:5.2f}"


def measure_stamps() -> Iterator[str]:
    """Yield the cost of a stamp at 1 MHz, in blocks and alone."""
    one = measure_draws((RandomProcess("clock", "jitter"),))
    for name, clock in {
        "gaussian": Clock("bench", JITTER),
        "gaussian, quantised": Clock("bench", replace(JITTER, precision=1e-6)),
        "gaussian, monotonic": Clock("bench", JITTER, monotonic=True),
        "gaussian, drift": Clock("bench", replace(DRIFT, stddev=1e-6)),
        "gaussian, TCXO": Clock("bench", JITTER, get_oscillator("TCXO")),
    }.items():
        yield format_row(f"stamp at 1 MHz, {name}, in blocks", measure(clock, FAST) / BLOCK_SAMPLES, one)
        yield format_row(f"stamp at 1 kHz, {name}, one at a time", measure(clock, 1e3, 1, 2000), one)


def measure_nodes() -> Iterator[str]:
    """Yield the cost of a node: a sensor at 10 Hz computes a hundred of them per sample."""
    discipline = Discipline(interval=1.0, stddev=1e-6)
    walks = replace(get_oscillator("TCXO"), ageing_random_walk=1e-30)
    for name, clock in {
        "drift": Clock("bench", DRIFT),
        "CSAC (white FM)": Clock("bench", oscillator=get_oscillator("CSAC")),
        "TCXO (white, flicker, random-walk FM)": Clock("bench", oscillator=get_oscillator("TCXO")),
        "TCXO with a walking ageing": Clock("bench", oscillator=walks),
        "TCXO, disciplined each second": Clock("bench", oscillator=get_oscillator("TCXO"), discipline=discipline),
    }.items():
        named = list_processes(clock.oscillator) if clock.oscillator else (RandomProcess("clock", "drift"),)
        a_node = measure(clock, SLOW, rounds=20) / (BLOCK_SAMPLES / SLOW * NODE_RATE)
        yield format_row(f"node, {name}", a_node, measure_draws(named))


def measure_reads() -> Iterator[str]:
    """Yield the cost of a clock reading at one time of a live run, and in an array of one time."""
    for name, clock in {
        "gaussian": Clock(IMU_CLOCK.name, JITTER),
        "gaussian, TCXO": Clock(IMU_CLOCK.name, JITTER, get_oscillator("TCXO")),
        "gaussian, TCXO, monotonic": Clock(IMU_CLOCK.name, JITTER, get_oscillator("TCXO"), monotonic=True),
    }.items():
        sim = ns.live(make_imu_world(clock, 100.0), seed=1)
        read = sim.clock(clock.name).time
        steps = reads = 0.0
        for _ in range(1234):
            began = time.perf_counter()
            now = sim.step().time
            stepped = time.perf_counter()
            read(now)
            steps, reads = steps + stepped - began, reads + time.perf_counter() - stepped
        what = f"read at each step, {name}"
        yield f"{what:44s} {reads / 1234e-6:8.2f} us   a step       {steps / 1234e-6:6.1f} us   {reads / steps:5.2f}"
        for place, instant in (("now", sim.time), ("0.4567 s ago", sim.time - 0.4567)):
            alone = measure_call(partial(read, instant))
            array = measure_call(partial(read, np.array([instant])))
            what = f"read {place}, {name}"
            yield f"{what:44s} {alone * 1e6:8.2f} us   array of one {array * 1e6:6.1f} us   {alone / array:5.2f}"


def make_imu_world(clock: Clock = IMU_CLOCK, rate: float = IMU_RATE) -> World:
    """Return a world of one IMU on a clock."""
    sensor = MountedSensor(
        "robot::link::imu", make_standard_sensor(Imu), "robot", "robot::link", rate, clock=clock.name
    )
    return World("fast", (Model("robot", (Link("robot::link"),), "robot::link"),), (sensor,), (clock,))


def simulate_fast_imu(seconds: float) -> ns.Run:
    """Return a run of an IMU at 1000 kHz: standard noise on every axis, stamps by a clock with Gaussian noise."""
    return ns.simulate(make_imu_world(), seconds, seed=1)


def measure_real_time_ratio(seconds: float = 2.0, rounds: int = 3) -> Iterator[str]:
    """Yield the simulated time and the processor time of the performance case, the best of several rounds."""
    simulate_fast_imu(0.01)  # compiles
    spent = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        simulate_fast_imu(seconds)
        spent = min(spent, time.process_time() - began)
    what = "IMU at 1000 kHz, Gaussian clock noise"
    yield f"{what:44s} {seconds:.1f} s simulated in {spent:.2f} s of processor time   ratio {seconds / spent:.2f}"


def main() -> None:
    """Print the table."""
    for rows in (measure_stamps(), measure_nodes(), measure_reads(), measure_real_time_ratio()):
        for row in rows:
            print(row, flush=True)


if __name__ == "__main__":
    assert DRIFT.has_dynamic_bias
    main()
