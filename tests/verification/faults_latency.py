"""What comes upon a mounted sensor, read back from its blocks: faults and latency.

    from tests.verification.faults_latency import table
    rows = table(WITNESS, rates=(5.0, 100.0), seed=1)

The sensor reads the time, without an error of its own: what is shown says since when it is stuck. A fault is a
telegraph process that begins r times a second while off and lasts d on average; seen at the rate f it is a chain that
goes on with the chance a = p (1 - e) and off with b = (1 - p) (1 - e), where p = r d / (1 + r d) and
e = exp(-(r + 1/d) / f). Of n steps, n (1 - p) start while it is off and n p while it is on, so that the shares in which
it changes, which are independent of each other, have the errors sqrt(a (1 - a) / (n (1 - p))) and
sqrt(b (1 - b) / (n p)), and give the figures back with theirs::

    r = a s,  1/d = b s,     s = -f ln(1 - a - b) / (a + b)

The mean of n samples that are k apart correlated by e^k has the variance p (1 - p) / n (1 + e - 2 e (1 - e^n) /
(n (1 - e))) / (1 - e). A latency is lognormal: the error of its deviation goes by the fourth moment. It is read where
samples are far apart and none waits for the one before.
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
from tests.verification.declared import FEWEST_RUNS, FEWEST_SAMPLES, Row, scale_count
from tests.verification.estimates import DIGITS, Estimate

SHOWN = "pressure"
"""What the sensor reads: the time of the sample."""

WITNESS = MountedSensor(
    "rig::plate::sensor",
    AirPressure(),
    "rig",
    "rig::plate",
    1.0,
    latency=Latency(fixed=0.002, mean=0.0005, stddev=0.0002),
    faults=Faults(dropout_rate=0.5, dropout_duration=0.4, stuck_rate=0.3, stuck_duration=0.7),
)
"""A mounted sensor in whose faults and latency every figure acts."""

FAULTY, FAULTY_RUNS = 10.0, 1000
"""Duration (s) and number of the runs with faults."""

ON_ITS_WAY = 500_000
"""Samples whose latency is random."""

LEAST_KEPT = 0.05
"""Of a fault from one sample to the next: where it is less, one cannot tell how often it came and went in between."""

APART = 6.0
"""Deviations of a latency's logarithm within which no sample waits for another."""


def blocks(
    sensor: MountedSensor, clock: Clock | None, index: IntArray, *, seed: int, run: int
) -> Iterator[tuple[Ticks, SensorBlock]]:
    """Yield what the sensor gives at the ticks `index` (n,), block after block, as it does in a world."""
    station = SensorRun(sensor, clock, seed, run)
    for first in range(0, index.size, BLOCK_SAMPLES):
        ticks = Ticks(index[first : first + BLOCK_SAMPLES], sensor.rate)
        yield ticks, station.measure(ticks, {SHOWN: ticks.time})


@dataclass(frozen=True)
class Telegraph:
    """A fault that begins so often a second while off and lasts so many seconds, as seen at `rate` (Hz)."""

    begins: float
    lasts: float
    rate: float

    @property
    def share(self) -> float:
        """Return p, the share of the time that it is on."""
        return self.begins * self.lasts / (1.0 + self.begins * self.lasts)

    @property
    def kept(self) -> float:
        """Return e, how much of it stays from one sample to the next."""
        return math.exp(-(self.begins + 1.0 / self.lasts) / self.rate)

    def variance(self, count: int, correlation: float) -> float:
        """Return the variance of the mean of so many samples of p (1 - p) that are correlated by `kept`."""
        stretch = (
            1.0 + correlation - 2.0 * correlation * (1.0 - correlation**count) / (count * (1.0 - correlation))
        ) / (1.0 - correlation)
        return self.share * (1.0 - self.share) * stretch / count

    def estimates(self, kind: str, on: BoolArray) -> Iterator[Estimate]:
        """Yield its share of the time, at the start and throughout, and its figures, from where it is on (runs, n)."""
        (runs, count), p = on.shape, self.share
        names = (f"{kind} share of the time", f"{kind} share at the start")
        variances = (self.variance(count, self.kept), p * (1.0 - p))
        for name, state, variance in zip(names, (on, on[:, 0]), variances, strict=True):
            yield Estimate(name, p, float(np.mean(state)), math.sqrt(variance / runs), unit="1")
        if self.kept < LEAST_KEPT:
            return
        before, after = on[:, :-1], on[:, 1:]
        gone = -math.expm1(-(self.begins + 1.0 / self.lasts) / self.rate)
        a, b = p * gone, (1.0 - p) * gone
        spread = np.array([a * (1.0 - a) / (1.0 - p), b * (1.0 - b) / p]) / before.size
        begins, ends = _invert(float(np.mean(after[~before])), float(np.mean(~after[before])), self.rate)
        error = np.sqrt(_slopes(a, b, self.rate) ** 2 @ spread)
        yield Estimate(f"{kind}_rate", self.begins, begins, float(error[0]), unit="1 / s")
        off = (1.0 / self.lasts - ends) / float(error[1])
        yield Estimate(f"{kind}_duration", self.lasts, 1.0 / ends, self.lasts**2 * float(error[1]), off=off, unit="s")


def _invert(a: float, b: float, rate: float) -> tuple[float, float]:
    """Return how often it begins and ends (1/s) from the chances of both from one sample to the next."""
    pace = -rate * math.log1p(-a - b) / (a + b)
    return a * pace, b * pace


def _slopes(a: float, b: float, rate: float) -> FloatArray:
    """Return the derivatives (2, 2) of `_invert` by a and b."""
    both, pace = a + b, -rate * math.log1p(-a - b) / (a + b)
    bend = (rate / (1.0 - both) - pace) / both
    return np.array([[pace + a * bend, a * bend], [b * bend, pace + b * bend]])


def simulate_flags(sensor: MountedSensor, seed: int, count: int, runs: int) -> tuple[BoolArray, BoolArray]:
    """Return (runs, n) where the sensor publishes nothing, and where it repeats an earlier sample."""
    silent, stale = (np.empty((runs, count), dtype=np.bool_) for _ in range(2))
    for run in range(runs):
        for ticks, block in blocks(sensor, None, np.arange(count), seed=seed, run=run):
            arrays, here = block.measured.arrays[SHOWN], ticks.index
            silent[run, here], stale[run, here] = np.isnan(arrays), arrays < ticks.time
    return silent, stale


def faults(sensor: MountedSensor, seed: int, effort: float) -> Iterator[Estimate]:
    """Yield what each kind of fault does alone, and how much of what is shown is stuck where both act.

    The first sample that a sensor shows is shown whether it is stuck or not, and tells nothing.
    """
    count = scale_count(round(FAULTY * sensor.rate), effort, FEWEST_SAMPLES)
    runs, specified = scale_count(FAULTY_RUNS, effort, FEWEST_RUNS), sensor.faults
    found = {kind: Telegraph(*specified.get_rate_and_duration(kind), sensor.rate) for kind in specified.random_kinds}
    for kind, telegraph in found.items():
        figures = (f"{kind}_rate", f"{kind}_duration")
        alone = Faults(**{name: getattr(specified, name) for name in figures})
        mine = replace(sensor, name=f"{sensor.name} {kind}", faults=alone)
        on = simulate_flags(mine, seed, count, runs)[RANDOM_KINDS.index(kind)]
        yield from telegraph.estimates(kind, on[:, kind == "stuck" :])
    if len(found) == len(RANDOM_KINDS):
        silent, stale = simulate_flags(replace(sensor, name=f"{sensor.name} both"), seed, count, runs)
        dropout, stuck = (found[kind] for kind in RANDOM_KINDS)
        odds = dropout.share / (1.0 - dropout.share)
        variance = stuck.variance(count, stuck.kept) + odds * stuck.variance(count, stuck.kept * dropout.kept)
        telling = ~silent[:, 1:] & np.logical_or.accumulate(~silent[:, :-1], axis=1)
        stale_share = float(np.mean(stale[:, 1:][telling]))
        yield Estimate("stuck share of what is shown", stuck.share, stale_share, math.sqrt(variance / runs), unit="1")


def latencies(sensor: MountedSensor, seed: int, latency: Latency, count: int) -> FloatArray:
    """Return the latencies (n,) s of the samples of a sensor with the given one."""
    mine = replace(sensor, name=f"{sensor.name} {latency}", faults=Faults(), latency=latency)
    arrivals = blocks(mine, None, np.arange(count), seed=seed, run=0)
    return np.concatenate(
        [block.delayed_arrival - ticks.time for ticks, block in arrivals if block.delayed_arrival is not None]
    )


def latency(sensor: MountedSensor, seed: int, effort: float) -> Iterator[Estimate]:
    """Yield the fixed part of the latency, then mean and deviation of the random one.

    Nothing is said of that where a sample might wait for the one before: where the spacing is not `APART` deviations of
    the logarithm above the mean.
    """
    sheet, count = sensor.latency or Latency(), scale_count(ON_ITS_WAY, effort, FEWEST_SAMPLES)
    if sheet.fixed > 0.0:
        found = latencies(sensor, seed, Latency(fixed=sheet.fixed), FEWEST_SAMPLES)
        rounding = DIGITS * FEWEST_SAMPLES / sensor.rate
        yield Estimate("fixed", sheet.fixed, float(found[-1]), rounding, unit="s")
    square = math.log1p((sheet.stddev / sheet.mean) ** 2) if sheet.mean > 0.0 else 0.0
    if sheet.mean == 0.0 or math.log(1.0 / (sensor.rate * sheet.mean)) < APART * math.sqrt(square):
        return
    found = latencies(sensor, seed, Latency(mean=sheet.mean, stddev=sheet.stddev), count)
    rounding = DIGITS * count / sensor.rate
    error = sheet.stddev / math.sqrt(count) + rounding
    yield Estimate("mean", sheet.mean, float(np.mean(found)), error, unit="s")
    if sheet.stddev > 0.0:
        measured = math.sqrt(float(np.mean((found - sheet.mean) ** 2)))
        w = math.exp(square)
        fourth = w**4 + 2.0 * w**3 + 3.0 * w**2 - 3.0
        error = 0.5 * sheet.stddev * math.sqrt((fourth - 1.0) / count) + rounding
        yield Estimate("stddev", sheet.stddev, measured, error, unit="s")


PARTS: tuple[tuple[str, Callable[[MountedSensor, int, float], Iterator[Estimate]]], ...] = (
    ("faults", faults),
    ("latency", latency),
)
"""Channels of a mounted sensor, and what is measured of each."""


def table(sensor: MountedSensor, rates: Sequence[float], seed: int, *, effort: float = 1.0) -> list[Row]:
    """Return the rows of a mounted sensor's faults and latency at every rate (Hz); its own rate does not matter.

    effort scales the number of samples and of serial numbers. Raises `SimulationError` for a rate or a seed that is
    none.
    """
    rows = []
    for rate in map(check_rate, rates):
        mine = replace(sensor, name=f"{sensor.name} {rate!r}", spec=AirPressure(), rate=rate)
        for channel, estimates in PARTS:
            found = estimates(mine, check_seed(seed), effort)
            rows += [Row("a mounted sensor", channel, estimate.unit_in("s"), rate, estimate) for estimate in found]
    return rows
