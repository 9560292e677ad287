"""Clocks: the cost of a stamp beside its draw alone, and of a node beside its draws alone, measured in one run.

    make bench            or            python benchmarks/bench_clock.py

A stamp is read by the sensor; the nodes, 1000 a simulated second, are walked once for each sensor on the clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from navsense.analysis.bench import best_time
from navsense.clock import Clock, Discipline, Stamps, grade
from navsense.clock._nodes import NODES_PER_SECOND
from navsense.clock._phase import processes
from navsense.noise.channel import Noise
from navsense.streams import BLOCK, Draws, Process

DRIFT = Noise(dynamic_bias_stddev=1e-6, dynamic_bias_correlation_time=100.0)
JITTER = Noise(stddev=1e-6)
SLOW, FAST = 10.0, 1e6
"""Hertz: at the one nearly all of the time goes into nodes, at the other nearly none."""


def spent(clock: Clock, rate: float, block: int = BLOCK, rounds: int = 200) -> float:
    """Return the seconds in which a sensor at `rate` (Hz) stamps a block: the best of some in a row."""
    stamps, best = Stamps(clock, "bench", 1, 0, ahead=64 if block == 1 else 0), float("inf")
    for k in range(rounds):
        instants = np.arange(k * block, (k + 1) * block) / rate
        began = time.perf_counter()
        stamps.errors(instants)
        best = min(best, time.perf_counter() - began)
    return best


def draws_alone(named: tuple[Process, ...]) -> float:
    """Return the seconds that one row of draws of these processes takes."""
    source = Draws(named, 1, (0, "bench"))
    return best_time(lambda: source.take(BLOCK)) / BLOCK if source.rows else 0.0


def line(what: str, ours: float, limit: float) -> str:
    """Return one row of the table: seconds as nanoseconds, and the share that the draws alone take."""
    return f"{what:44s} {ours * 1e9:8.1f} ns   draws alone {limit * 1e9:6.1f} ns   {limit / ours if ours else 0.0:5.2f}"


def stamps() -> Iterator[str]:
    """Yield what a stamp costs at 1 MHz, in blocks and alone."""
    one = draws_alone((Process("clock", "jitter"),))
    for name, clock in {
        "gaussian": Clock("bench", JITTER),
        "gaussian, quantised": Clock("bench", replace(JITTER, precision=1e-6)),
        "gaussian, monotonic": Clock("bench", JITTER, monotonic=True),
        "gaussian, drift": Clock("bench", replace(DRIFT, stddev=1e-6)),
        "gaussian, TCXO": Clock("bench", JITTER, grade("TCXO")),
    }.items():
        yield line(f"stamp at 1 MHz, {name}, in blocks", spent(clock, FAST) / BLOCK, one)
        yield line(f"stamp at 1 kHz, {name}, one at a time", spent(clock, 1e3, 1, 2000), one)


def nodes() -> Iterator[str]:
    """Yield what a node costs: a sensor at 10 Hz walks a hundred of them for each of its samples."""
    discipline = Discipline(interval=1.0, stddev=1e-6)
    walks = replace(grade("TCXO"), ageing_random_walk=1e-30)
    for name, clock in {
        "drift": Clock("bench", DRIFT),
        "CSAC (white FM)": Clock("bench", oscillator=grade("CSAC")),
        "TCXO (white, flicker, random-walk FM)": Clock("bench", oscillator=grade("TCXO")),
        "TCXO with a walking ageing": Clock("bench", oscillator=walks),
        "TCXO, disciplined each second": Clock("bench", oscillator=grade("TCXO"), discipline=discipline),
    }.items():
        named = processes(clock.oscillator) if clock.oscillator else (Process("clock", "drift"),)
        a_node = spent(clock, SLOW, rounds=20) / (BLOCK / SLOW * NODES_PER_SECOND)
        yield line(f"node, {name}", a_node, draws_alone(named))


def main() -> None:
    """Print the table."""
    for rows in (stamps(), nodes()):
        for row in rows:
            print(row, flush=True)


if __name__ == "__main__":
    assert DRIFT.drifts
    main()
