"""Benchmark: time per sample of each noise model and sensor, compared with the time of its random draws.

For noise with densities the table also has the noise terms that `analysis.fit` finds in the Allan deviation of its
samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np

from navsense.analysis import allan, fit
from navsense.clock import Clock, SensorClock
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.core.random_streams import BLOCK_SAMPLES, Draws, RandomProcess
from navsense.core.ticks import Ticks
from navsense.environment.base import Environment
from navsense.motion.stationary import Stationary
from navsense.noise.channel import Noise
from navsense.noise.channels import NoiseChannels
from navsense.sensors import SENSORS
from navsense.sensors.base import Sensor

RATE = 1000.0

STANDARD = Noise(
    stddev=3e-3,
    bias_mean=1e-3,
    bias_stddev=8e-3,
    dynamic_bias_stddev=4e-5,
    dynamic_bias_correlation_time=1000.0,
    precision=1e-4,
)
"""Standard noise: white, drift, turn-on and quantisation together."""

NOISES = {
    "none": Noise(),
    "gaussian": Noise(stddev=3e-3),
    "gaussian, turn-on bias": Noise(stddev=3e-3, bias_stddev=8e-3),
    "gaussian, dynamic bias": Noise(stddev=3e-3, dynamic_bias_stddev=4e-5, dynamic_bias_correlation_time=1000.0),
    "gaussian_quantized": Noise(stddev=3e-3, precision=1e-4),
    "gaussian, saturated": Noise(stddev=3e-3, minimum=-4e-3, maximum=4e-3),
    "all of them": STANDARD,
    "white, by density": Noise(noise_density=1e-4),
    "flicker": Noise(noise_density=1e-4, bias_instability=1e-4),
    "random walk": Noise(noise_density=1e-4, random_walk=1e-4),
    "scale and temperature": Noise(stddev=3e-3, scale_factor=1e-3, temperature_coefficient=1e-5),
    "outliers": Noise(stddev=3e-3, outlier_probability=0.1, outlier_stddev=0.1),
}
"""The noise models of SDF, one by one and together, then those of data sheets."""

CLOCKS = {
    "gaussian": Noise(stddev=1e-6),
    "gaussian, dynamic bias": Noise(stddev=1e-6, dynamic_bias_stddev=1e-6, dynamic_bias_correlation_time=100.0),
}


DENSITIES = ("noise_density", "bias_instability", "random_walk")
"""Parameters of a noise with a slope of their own in the Allan deviation."""

FITTED = frozenset(DENSITIES[1:])

LENGTH = 1_000_000
"""Samples for the Allan deviation."""


@dataclass(frozen=True)
class BenchmarkRow:
    """One row of the table: nanoseconds per sample and of its draws; densities, declared and fitted."""

    name: str
    nanoseconds: float
    draws: float
    densities: str = ""

    @property
    def ratio(self) -> float:
        """Time of the draws over the total time; at most 1."""
        return self.draws / self.nanoseconds


def best_time(work: Callable[[], object], *, seconds: float = 0.15, rounds: int = 5) -> float:
    """Return the time (s) of one call of `work`: the best of some rounds, after one call that compiles."""
    work()
    start = time.perf_counter()
    work()
    calls = max(1, int(seconds / rounds / max(time.perf_counter() - start, 1e-9)))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def draws_time(processes: tuple[RandomProcess, ...]) -> float:
    """Return the time (ns) per sample of the draws of `processes`."""
    if not any(process.per_tick for process in processes):
        return 0.0
    source = Draws(processes, 1, (0, "bench"))
    return best_time(lambda: source.take(BLOCK_SAMPLES)) / BLOCK_SAMPLES * 1e9


class BlockCounter:
    """Consecutive blocks of ticks."""

    def __init__(self) -> None:
        """Start at tick 0."""
        self.first = 0

    def block(self) -> Ticks:
        """Return the next block."""
        first, self.first = self.first, self.first + BLOCK_SAMPLES
        return Ticks(np.arange(first, first + BLOCK_SAMPLES, dtype=np.int64), RATE)


def noise_row(name: str, noise: Noise) -> BenchmarkRow:
    """Return the cost of one channel's noise, including its draws."""
    channel, counter = NoiseChannels(("bench",), (noise,)), BlockCounter()
    source = Draws(channel.processes, 1, (0, "bench"))
    state, ideal, temperature = (
        [channel.init(source.initial)],
        np.zeros((BLOCK_SAMPLES, 1)),
        np.full(BLOCK_SAMPLES, 300.0),
    )

    def work() -> None:
        ticks = counter.block()
        state[0], _, _ = channel.apply(state[0], ticks, source.take(BLOCK_SAMPLES), ideal, temperature=temperature)

    return BenchmarkRow(
        name, best_time(work) / BLOCK_SAMPLES * 1e9, draws_time(channel.processes), format_fitted_densities(noise)
    )


def format_fitted_densities(noise: Noise) -> str:
    """Return the densities of a noise, declared and fitted to `LENGTH` samples; empty without densities."""
    declared = {name: getattr(noise, name) for name in DENSITIES if getattr(noise, name)}
    if not declared:
        return ""
    channel = NoiseChannels(("bench",), (noise,))
    source = Draws(channel.processes, 1, (0, "bench"))
    state, parts, counter = channel.init(source.initial), [], BlockCounter()
    for _ in range(LENGTH // BLOCK_SAMPLES):
        state, values, _ = channel.apply(
            state, counter.block(), source.take(BLOCK_SAMPLES), np.zeros((BLOCK_SAMPLES, 1))
        )
        parts.append(values[:, 0])
    fitted = fit.fit(allan.oadev(np.concatenate(parts), RATE), ("noise_density", *FITTED & declared.keys()))
    return ", ".join(f"{name} {value:.3g}, fitted {fitted[name].value:.3g}" for name, value in declared.items())


def clock_row(name: str, noise: Noise) -> BenchmarkRow:
    """Return the cost of a stamp."""
    stamps, counter = SensorClock(Clock("bench", noise), "bench", 1, 0), BlockCounter()
    return BenchmarkRow(
        name,
        best_time(lambda: stamps.compute_errors(counter.block().time)) / BLOCK_SAMPLES * 1e9,
        draws_time((RandomProcess("clock", "jitter"),)),
    )


def standard(kind: type[Sensor]) -> Sensor:
    """Return a sensor with standard noise on every channel and no other error."""
    return with_noise(kind(), STANDARD)


def with_noise(spec: Sensor, noise: Noise) -> Sensor:
    """Return a spec in which all noise is replaced."""
    if not is_dataclass(spec) or isinstance(spec, type):
        return spec
    changed = {field.name: noise for field in fields(spec) if isinstance(getattr(spec, field.name), Noise)}
    return replace(spec, **changed)


def sensor_row(spec: Sensor, *, measured_only: bool = False) -> BenchmarkRow:
    """Return the cost of a stationary sensor in blocks: ideal values, noise and a Gaussian clock.

    With `measured_only` the ideal values are computed once, outside the timing.
    """
    motion, environment, counter = Stationary(Pose()), Environment(origin=Origin(0.8, 0.3)), BlockCounter()
    source = Draws(spec.processes(), 1, (0, "bench"))
    stamps = SensorClock(Clock("bench", CLOCKS["gaussian"]), "bench", 1, 0)
    state = [spec.init(source.initial)]
    first_ideal = spec.ideal(motion, environment, BlockCounter().block())

    def work() -> None:
        ticks = counter.block()
        ideal = first_ideal if measured_only else spec.ideal(motion, environment, ticks)
        state[0], _ = spec.measure(state[0], ticks, ideal, source.take(BLOCK_SAMPLES))
        stamps.compute_errors(ticks.time)

    processes = (*spec.processes(), RandomProcess("clock", "jitter"))
    return BenchmarkRow(
        f"{spec.type}, standard noise and clock", best_time(work) / BLOCK_SAMPLES * 1e9, draws_time(processes)
    )


def table() -> Iterator[BenchmarkRow]:
    """Yield the rows of `navsense bench`."""
    for name, noise in NOISES.items():
        yield noise_row(f"noise: {name}", noise)
    for name, noise in CLOCKS.items():
        yield clock_row(f"clock: {name}", noise)
    for kind in SENSORS:
        yield sensor_row(standard(kind))
