"""Estimates of the fault and latency parameters of a mounted sensor from its blocks.

    from tests.verification.faults_latency import EXAMPLE, table
    rows = table(EXAMPLE, rates=(5.0, 100.0), seed=1)

The sensor measures the time without errors: a stuck value tells how old it is. A fault is a telegraph process that
begins r times a second while off and lasts d on average. At the sample rate f it is a Markov chain with p = r d / (1 +
r d) and e = exp(-(r + 1/d) / f). It switches on with the probability a = p (1 - e) and off with b = (1 - p) (1 - e). Of
n steps, n (1 - p) start while it is off and n p while it is on. The two switching shares are independent and have the
errors sqrt(a (1 - a) / (n (1 - p))) and sqrt(b (1 - b) / (n p)). They give the parameters::

    r = a s,  1/d = b s,     s = -f ln(1 - a - b) / (a + b)

The mean of n samples with the correlation e^k at distance k has the variance p (1 - p) / n (1 + e - 2 e (1 - e^n) /
(n (1 - e))) / (1 - e). A latency is lognormal, so the error of its deviation depends on the fourth moment. It is
estimated only at rates at which no sample waits for an earlier one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from navsense.clock import Clock, Latency
from navsense.core.random_streams import BLOCK_SAMPLES, check_seed
from navsense.core.ticks import Ticks, check_rate
from navsense.core.typing import BoolArray, FloatArray, IntArray
from navsense.faults.injection import RANDOM_KINDS, Faults
from navsense.sensors.air_pressure import AirPressure
from navsense.simulation.sensor_run import SensorBlock, SensorRun
from navsense.world import MountedSensor
from tests.verification.declared import MINIMUM_RUNS, MINIMUM_SAMPLES, Row, scale_count
from tests.verification.estimates import ROUNDING, Estimate

OUTPUT = "pressure"
"""Output of the sensor: the time of the sample."""

EXAMPLE = MountedSensor(
    "rig::plate::sensor",
    AirPressure(),
    "rig",
    "rig::plate",
    1.0,
    latency=Latency(fixed=0.002, mean=0.0005, stddev=0.0002),
    faults=Faults(dropout_rate=0.5, dropout_duration=0.4, stuck_rate=0.3, stuck_duration=0.7),
)
"""A mounted sensor in whose faults and latency every parameter acts."""

FAULT_RUN, FAULT_RUNS = 10.0, 1000
"""Duration (s) and number of the runs with faults."""

LATENCY_SAMPLES = 500_000
"""Number of samples with random latency."""

MINIMUM_CORRELATION = 0.05
"""Minimum correlation of a fault between samples. Below it, rate and duration are unobservable."""

LATENCY_MARGIN = 6.0
"""Deviations of the logarithm of a latency within which no sample waits for another."""


def simulate_blocks(
    sensor: MountedSensor, clock: Clock | None, index: IntArray, *, seed: int, run: int
) -> Iterator[tuple[Ticks, SensorBlock]]:
    """Yield the blocks of the sensor at the ticks `index` (n,), as in a simulation."""
    station = SensorRun(sensor, clock, seed, run)
    for first in range(0, index.size, BLOCK_SAMPLES):
        ticks = Ticks(index[first : first + BLOCK_SAMPLES], sensor.rate)
        yield ticks, station.measure(ticks, {OUTPUT: ticks.time})


@dataclass(frozen=True)
class Telegraph:
    """A fault that begins `onset_rate` times a second while off and lasts `duration` (s), sampled at `rate` (Hz)."""

    onset_rate: float
    duration: float
    rate: float

    @property
    def share(self) -> float:
        """p, the share of time that it is on."""
        return self.onset_rate * self.duration / (1.0 + self.onset_rate * self.duration)

    @property
    def correlation(self) -> float:
        """e, the correlation of consecutive samples."""
        return math.exp(-(self.onset_rate + 1.0 / self.duration) / self.rate)

    def variance(self, count: int, correlation: float) -> float:
        """Return the variance of the mean of `count` samples with this correlation."""
        stretch = (
            1.0 + correlation - 2.0 * correlation * (1.0 - correlation**count) / (count * (1.0 - correlation))
        ) / (1.0 - correlation)
        return self.share * (1.0 - self.share) * stretch / count

    def estimate(self, kind: str, on: BoolArray) -> Iterator[Estimate]:
        """Yield its share of time, at the start and throughout, and its parameters, from the states (runs, n)."""
        (runs, count), p = on.shape, self.share
        names = (f"{kind} share of the time", f"{kind} share at the start")
        variances = (self.variance(count, self.correlation), p * (1.0 - p))
        for name, state, variance in zip(names, (on, on[:, 0]), variances, strict=True):
            yield Estimate(name, p, float(np.mean(state)), math.sqrt(variance / runs), unit="1")
        if self.correlation < MINIMUM_CORRELATION:
            return
        before, after = on[:, :-1], on[:, 1:]
        change = -math.expm1(-(self.onset_rate + 1.0 / self.duration) / self.rate)
        a, b = p * change, (1.0 - p) * change
        spread = np.array([a * (1.0 - a) / (1.0 - p), b * (1.0 - b) / p]) / before.size
        begins, ends = _compute_onset_and_end_rates(
            float(np.mean(after[~before])), float(np.mean(~after[before])), self.rate
        )
        error = np.sqrt(_compute_rate_derivatives(a, b, self.rate) ** 2 @ spread)
        yield Estimate(f"{kind}_rate", self.onset_rate, begins, float(error[0]), unit="1 / s")
        z_score = (1.0 / self.duration - ends) / float(error[1])
        yield Estimate(
            f"{kind}_duration", self.duration, 1.0 / ends, self.duration**2 * float(error[1]), z_score=z_score, unit="s"
        )


def _compute_onset_and_end_rates(a: float, b: float, rate: float) -> tuple[float, float]:
    """Return how often a fault begins and ends (1/s) from the switching probabilities of one sample interval."""
    onset = -rate * math.log1p(-a - b) / (a + b)
    return a * onset, b * onset


def _compute_rate_derivatives(a: float, b: float, rate: float) -> FloatArray:
    """Return the derivatives (2, 2) of `_compute_onset_and_end_rates` by a and b."""
    both, onset = a + b, -rate * math.log1p(-a - b) / (a + b)
    bend = (rate / (1.0 - both) - onset) / both
    return np.array([[onset + a * bend, a * bend], [b * bend, onset + b * bend]])


def simulate_flags(sensor: MountedSensor, seed: int, count: int, runs: int) -> tuple[BoolArray, BoolArray]:
    """Return (runs, n) where the sensor publishes nothing, and where it repeats an earlier sample."""
    silent, stale = (np.empty((runs, count), dtype=np.bool_) for _ in range(2))
    for run in range(runs):
        for ticks, block in simulate_blocks(sensor, None, np.arange(count), seed=seed, run=run):
            arrays, here = block.measured.arrays[OUTPUT], ticks.index
            silent[run, here], stale[run, here] = np.isnan(arrays), arrays < ticks.time
    return silent, stale


def estimate_faults(sensor: MountedSensor, seed: int, effort: float) -> Iterator[Estimate]:
    """Yield the parameters of each kind of fault, and the stuck share of published samples with both kinds.

    The first published sample is excluded: it has the same value with and without a fault.
    """
    count = scale_count(round(FAULT_RUN * sensor.rate), effort, MINIMUM_SAMPLES)
    runs, specified = scale_count(FAULT_RUNS, effort, MINIMUM_RUNS), sensor.faults
    found = {kind: Telegraph(*specified.get_rate_and_duration(kind), sensor.rate) for kind in specified.random_kinds}
    for kind, telegraph in found.items():
        figures = (f"{kind}_rate", f"{kind}_duration")
        kept_faults = Faults(**{name: getattr(specified, name) for name in figures})
        isolated = replace(sensor, name=f"{sensor.name} {kind}", faults=kept_faults)
        on = simulate_flags(isolated, seed, count, runs)[RANDOM_KINDS.index(kind)]
        yield from telegraph.estimate(kind, on[:, kind == "stuck" :])
    if len(found) == len(RANDOM_KINDS):
        silent, stale = simulate_flags(replace(sensor, name=f"{sensor.name} both"), seed, count, runs)
        dropout, stuck = (found[kind] for kind in RANDOM_KINDS)
        odds = dropout.share / (1.0 - dropout.share)
        variance = stuck.variance(count, stuck.correlation) + odds * stuck.variance(
            count, stuck.correlation * dropout.correlation
        )
        known = ~silent[:, 1:] & np.logical_or.accumulate(~silent[:, :-1], axis=1)
        stale_share = float(np.mean(stale[:, 1:][known]))
        yield Estimate("stuck share of what is shown", stuck.share, stale_share, math.sqrt(variance / runs), unit="1")


def simulate_latencies(sensor: MountedSensor, seed: int, latency: Latency, count: int) -> FloatArray:
    """Return the latencies (n,) s of the samples of a sensor with this latency."""
    name = f"{sensor.name} {latency.fixed} {latency.mean} {latency.stddev}"
    isolated = replace(sensor, name=name, faults=Faults(), latency=latency)
    arrivals = simulate_blocks(isolated, None, np.arange(count), seed=seed, run=0)
    return np.concatenate(
        [
            block.arrival_after_latency - ticks.time
            for ticks, block in arrivals
            if block.arrival_after_latency is not None
        ]
    )


def estimate_latency(sensor: MountedSensor, seed: int, effort: float) -> Iterator[Estimate]:
    """Yield the fixed part of the latency, then mean and deviation of the random part.

    The random part is omitted if a sample could wait for an earlier one: if the sample interval is less than
    `LATENCY_MARGIN` deviations of the logarithm above the mean.
    """
    spec, count = sensor.latency or Latency(), scale_count(LATENCY_SAMPLES, effort, MINIMUM_SAMPLES)
    if spec.fixed > 0.0:
        found = simulate_latencies(sensor, seed, Latency(fixed=spec.fixed), MINIMUM_SAMPLES)
        rounding = ROUNDING * MINIMUM_SAMPLES / sensor.rate
        yield Estimate("fixed", spec.fixed, float(found[-1]), rounding, unit="s")
    square = math.log1p((spec.stddev / spec.mean) ** 2) if spec.mean > 0.0 else 0.0
    if spec.mean == 0.0 or math.log(1.0 / (sensor.rate * spec.mean)) < LATENCY_MARGIN * math.sqrt(square):
        return
    found = simulate_latencies(sensor, seed, Latency(mean=spec.mean, stddev=spec.stddev), count)
    rounding = ROUNDING * count / sensor.rate
    error = spec.stddev / math.sqrt(count) + rounding
    yield Estimate("mean", spec.mean, float(np.mean(found)), error, unit="s")
    if spec.stddev > 0.0:
        measured = math.sqrt(float(np.mean((found - spec.mean) ** 2)))
        w = math.exp(square)
        fourth = w**4 + 2.0 * w**3 + 3.0 * w**2 - 3.0
        error = 0.5 * spec.stddev * math.sqrt((fourth - 1.0) / count) + rounding
        yield Estimate("stddev", spec.stddev, measured, error, unit="s")


PARTS: tuple[tuple[str, Callable[[MountedSensor, int, float], Iterator[Estimate]]], ...] = (
    ("faults", estimate_faults),
    ("latency", estimate_latency),
)
"""Channels of a mounted sensor and their estimators."""


def table(sensor: MountedSensor, rates: Sequence[float], seed: int, *, effort: float = 1.0) -> list[Row]:
    """Return the rows of the faults and the latency of a mounted sensor at every rate (Hz). Its own rate is ignored.

    effort scales the number of samples and runs. Raises `SimulationError` for an invalid rate or seed.
    """
    rows = []
    for rate in map(check_rate, rates):
        isolated = replace(sensor, name=f"{sensor.name} {rate!r}", spec=AirPressure(), rate=rate)
        for channel, estimates in PARTS:
            found = estimates(isolated, check_seed(seed), effort)
            rows += [Row("a mounted sensor", channel, estimate.unit_in("s"), rate, estimate) for estimate in found]
    return rows
