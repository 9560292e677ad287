"""Estimates of the parameters of a clock from the stamp errors of a sensor on it.

A `ClockTerm` isolates parameters of a clock, selects the ticks that are stamped, and estimates the parameters. `clocks`
runs the terms of `clock_oscillator`, `clock_discipline` and its own.
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
from tests.verification.declared import MINIMUM_RUNS, MINIMUM_SAMPLES, scale_count
from tests.verification.estimates import ROUNDING, Estimate
from tests.verification.faults_latency import EXAMPLE as MOUNTED_SENSOR
from tests.verification.faults_latency import simulate_blocks

NODES = 1000.0
"""Nodes per second. A clock integrates its noise from node to node."""

LONG_RUN = 10_000.0
"""Duration (s) of the records of noise."""

RUNS = 1000
"""Number of runs for parameters that are drawn once per run."""


@dataclass(frozen=True, eq=False)
class StampTrial:
    """The complete `clock`, and the `error` (runs, n) s of stamps at `rate` (Hz) and `time` (n,) s."""

    clock: Clock
    rate: float
    time: Times
    error: FloatArray

    @property
    def oscillator(self) -> Oscillator:
        """The oscillator of the clock."""
        return self.clock.oscillator or Oscillator()

    @property
    def discipline(self) -> Discipline:
        """The discipline of the clock."""
        return self.clock.discipline or Discipline()

    @property
    def rounding(self) -> float:
        """Rounding error of a stamp error (s), a sum of doubles over the nodes."""
        return ROUNDING * float(np.abs(self.error).max()) * math.sqrt(max(1.0, NODES * float(self.time[-1])))

    def compute_variances(
        self, factor: int, terms: tuple[theory.NoiseTerm, ...], order: int = 2
    ) -> tuple[float, float, float]:
        """Return the declared and the measured Allan (order 2) or Hadamard (3) variance and its degrees of freedom.

        factor: span in samples. terms: the noise terms of the clock's frequency.
        """
        estimate, form = (allan.oadev, theory.allan_variance) if order == 2 else (allan.ohdev, theory.hadamard_variance)
        curves = [estimate(row, self.rate, [factor], phase=True, exponent=0) for row in self.error]
        measured = float(np.mean([curve.variance[0] for curve in curves]))
        declared = float(form(terms, factor, self.rate))
        square = declared * math.factorial(order) * (factor / self.rate) ** 2

        def covariance(lag: FloatArray) -> FloatArray:
            return theory.phase_covariance(terms, lag, self.rate)

        covariance_of_estimates = allan_dof.estimate_covariance(covariance, factor, factor, self.time.size, order)
        return declared, measured, len(curves) * 2.0 * square**2 / covariance_of_estimates


SelectTicks = Callable[[Clock, float, float], IntArray]
"""Clock, rate (Hz), effort -> ticks (n,) that are stamped."""


@dataclass(frozen=True)
class ClockTerm:
    """Parameters of one part of a clock and their estimator.

    `isolate` returns the clock with these parameters alone, or None if they are inactive.
    """

    name: str
    part: str
    isolate: Callable[[Clock], Clock | None]
    select_ticks: SelectTicks
    measure: Callable[[StampTrial], Iterator[Estimate]]
    runs: int = 1

    def estimate(self, clock: Clock, rate: float, seed: int, effort: float) -> Iterator[Estimate]:
        """Yield the estimates of a sensor at `rate` (Hz). Draws are separate for each term and rate."""
        isolated = self.isolate(clock)
        if isolated is None:
            return
        isolated = replace(isolated, name=f"{clock.name} {self.name} {rate!r}")
        sensor = replace(MOUNTED_SENSOR, name=isolated.name, rate=rate, faults=Faults(), latency=None)
        index = self.select_ticks(clock, rate, effort)
        rows = [
            [block.clock_error for _, block in simulate_blocks(sensor, isolated, index, seed=seed, run=run)]
            for run in range(scale_count(self.runs, effort, MINIMUM_RUNS))
        ]
        yield from self.measure(StampTrial(clock, rate, index / rate, np.stack([np.concatenate(row) for row in rows])))


def stamp_every_sample(seconds: float) -> SelectTicks:
    """Stamp every sample for this duration."""
    return lambda _clock, rate, effort: np.arange(scale_count(round(seconds * rate), effort, MINIMUM_SAMPLES))


def stamp_at(*times: float) -> SelectTicks:
    """Stamp the samples at these times (s) only."""
    return lambda _clock, rate, _effort: np.array([round(instant * rate) for instant in times])


def estimate_stddevs(
    names: Sequence[str], declared: Sequence[float], samples: Sequence[FloatArray]
) -> Iterator[Estimate]:
    """Yield the deviations about 0 of values drawn once per run, samples (runs,) each. Deviations of 0 are skipped."""
    for name, deviation, values in zip(names, declared, samples, strict=True):
        if deviation > 0.0:
            measured = math.sqrt(float(np.mean(values**2)))
            yield Estimate(name, deviation, measured, deviation / math.sqrt(2.0 * values.size))
