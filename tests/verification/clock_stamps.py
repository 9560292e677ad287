"""What the figures of a clock are measured by: the errors of the stamps that a sensor on it makes.

A `Line` says what of a clock acts, when a sensor makes stamps, and how they are looked at. `clocks` runs the lines of
`clock_oscillator`, `clock_discipline` and its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from navsense.analysis import allan, allan_dof, theory
from navsense.clock import Clock, Discipline, Oscillator
from navsense.core.typing import FloatArray, IntArray, Times
from navsense.faults.injection import Faults
from tests.verification.declared import FEWEST_RUNS, FEWEST_SAMPLES, scale_count
from tests.verification.estimates import DIGITS, Estimate
from tests.verification.faults_latency import WITNESS as CARRIER
from tests.verification.faults_latency import blocks

NODES = 1000.0
"""A second: what moves in a clock is summed from node to node."""

LONG = 10_000.0
"""Duration (s) of the records of noise."""

RUNS = 1000
"""Runs in each of which something is drawn once."""


@dataclass(frozen=True, eq=False)
class Stamped:
    """What a line has: the whole sheet `clock`, and the `error` (runs, n) s of stamps made at `rate` (Hz).

    `time` (n,) s.
    """

    clock: Clock
    rate: float
    time: Times
    error: FloatArray

    @property
    def oscillator(self) -> Oscillator:
        """Return the clock's oscillator."""
        return self.clock.oscillator or Oscillator()

    @property
    def discipline(self) -> Discipline:
        """Return the clock's discipline."""
        return self.clock.discipline or Discipline()

    @property
    def rounding(self) -> float:
        """Return what an error may be off by (s), being a sum of doubles over the nodes."""
        return DIGITS * float(np.abs(self.error).max()) * math.sqrt(max(1.0, NODES * float(self.time[-1])))

    def variance_over(
        self, factor: int, terms: tuple[theory.NoiseTerm, ...], order: int = 2
    ) -> tuple[float, float, float]:
        """Return the Allan (order 2) or Hadamard (3) variance over a span of `factor` samples: declared and measured.

        And its degrees of freedom. `terms` are what the clock's frequency is made of.
        """
        estimate, form = (allan.oadev, theory.allan_variance) if order == 2 else (allan.ohdev, theory.hadamard_variance)
        curves = [estimate(row, self.rate, [factor], phase=True, exponent=0) for row in self.error]
        measured = float(np.mean([curve.variance[0] for curve in curves]))
        declared = float(form(terms, factor, self.rate))
        square = declared * math.factorial(order) * (factor / self.rate) ** 2

        def covariance(lag: FloatArray) -> FloatArray:
            return theory.phase_covariance(terms, lag, self.rate)

        shared = allan_dof.estimate_covariance(covariance, factor, factor, self.time.size, order)
        return declared, measured, len(curves) * 2.0 * square**2 / shared


Instants = Callable[[Clock, float, float], IntArray]
"""Clock, rate (Hz), effort -> ticks (n,) at which stamps are made."""


@dataclass(frozen=True)
class Line:
    """One line: the part of a clock that it is of, what acts, when stamps are made, how they are looked at, runs.

    `alone` leaves what acts of a clock, None where that is nothing.
    """

    name: str
    part: str
    alone: Callable[[Clock], Clock | None]
    instants: Instants
    measure: Callable[[Stamped], Iterator[Estimate]]
    runs: int = 1

    def estimates(self, clock: Clock, rate: float, seed: int, effort: float) -> Iterator[Estimate]:
        """Yield what a sensor at `rate` (Hz) gives; draws are the line's and the rate's own."""
        acting = self.alone(clock)
        if acting is None:
            return
        acting = replace(acting, name=f"{clock.name} {self.name} {rate!r}")
        sensor = replace(CARRIER, name=acting.name, rate=rate, faults=Faults(), latency=None)
        index = self.instants(clock, rate, effort)
        rows = [
            [block.clock_error for _, block in blocks(sensor, acting, index, seed=seed, run=run)]
            for run in range(scale_count(self.runs, effort, FEWEST_RUNS))
        ]
        yield from self.measure(Stamped(clock, rate, index / rate, np.stack([np.concatenate(row) for row in rows])))


def evenly_spaced(seconds: float) -> Instants:
    """Stamp every sample for so many seconds."""
    return lambda _clock, rate, effort: np.arange(scale_count(round(seconds * rate), effort, FEWEST_SAMPLES))


def at(*instants: float) -> Instants:
    """Stamp the samples at some instants (s) only."""
    return lambda _clock, rate, _effort: np.array([round(instant * rate) for instant in instants])


def drawn(names: Sequence[str], declared: Sequence[float], samples: Sequence[FloatArray]) -> Iterator[Estimate]:
    """Yield the deviations about 0 of what is drawn once in each run, samples (runs,) each; nothing of 0."""
    for name, deviation, values in zip(names, declared, samples, strict=True):
        if deviation > 0.0:
            measured = math.sqrt(float(np.mean(values**2)))
            yield Estimate(name, deviation, measured, deviation / math.sqrt(2.0 * values.size))
