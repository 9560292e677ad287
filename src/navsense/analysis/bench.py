"""Benchmark: time per sample of each noise model, clock and sensor, and of its random draws alone.

For noise with densities the table also has the densities that `analysis.fit` finds in the Allan deviation of its
samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import count

import numpy as np

from navsense.analysis import allan, fit
from navsense.clock import Clock, SensorClock
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.core.random_streams import BLOCK_SAMPLES, Draws, RandomProcess
from navsense.core.ticks import Ticks
from navsense.environment.base import Environment
from navsense.motion.stationary import Stationary
from navsense.noise.channels import NoiseChannels
from navsense.noise.specification import Noise
from navsense.sensors import SENSORS
from navsense.sensors.base import Sensor

RATE = 1000.0
"""Rate of all sensors and channels (Hz)."""

STANDARD = Noise(
    stddev=3e-3,
    bias_mean=1e-3,
    bias_stddev=8e-3,
    dynamic_bias_stddev=4e-5,
    dynamic_bias_correlation_time=1000.0,
    precision=1e-4,
)
"""Standard noise: white noise, dynamic bias, turn-on bias and quantisation together."""

NOISES = {
    "none": Noise(),
    "gaussian": Noise(stddev=3e-3),
    "gaussian, turn-on bias": Noise(stddev=3e-3, bias_stddev=8e-3),
    "gaussian, dynamic bias": Noise(stddev=3e-3, dynamic_bias_stddev=4e-5, dynamic_bias_correlation_time=1000.0),
    "gaussian_quantized": Noise(stddev=3e-3, precision=1e-4),
    "gaussian, saturated": Noise(stddev=3e-3, minimum=-4e-3, maximum=4e-3),
    "all terms of SDF": STANDARD,
    "white, by density": Noise(noise_density=1e-4),
    "flicker": Noise(noise_density=1e-4, bias_instability=1e-4),
    "random walk": Noise(noise_density=1e-4, random_walk=1e-4),
    "scale and temperature": Noise(stddev=3e-3, scale_factor=1e-3, temperature_coefficient=1e-5),
    "outliers": Noise(stddev=3e-3, outlier_probability=0.1, outlier_stddev=0.1),
}
"""The noise models of SDF, one by one and together, then those of datasheets."""

CLOCKS = {
    "gaussian": Noise(stddev=1e-6),
    "gaussian, dynamic bias": Noise(stddev=1e-6, dynamic_bias_stddev=1e-6, dynamic_bias_correlation_time=100.0),
}
"""The noises of clocks."""

DENSITIES = ("noise_density", "bias_instability", "random_walk")
"""Parameters of a noise that are slopes of the Allan deviation."""

LENGTH = 1_000_000
"""Samples for the Allan deviation."""


@dataclass(frozen=True)
class BenchmarkRow:
    """One row of the table: times per sample in total and of the draws alone (ns); densities, declared and fitted."""

    name: str
    nanoseconds: float
    draws: float
    densities: str = ""

    @property
    def ratio(self) -> float:
        """Time of the draws over the total time; at most 1."""
        return self.draws / self.nanoseconds


def measure_call(call: Callable[[], object], *, seconds: float = 0.15, rounds: int = 5) -> float:
    """Return the time (s) of one call: the best of some rounds, after one call that compiles."""
    call()
    start = time.perf_counter()
    call()
    calls = max(1, int(seconds / rounds / max(time.perf_counter() - start, 1e-9)))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def _measure_row(
    name: str, call: Callable[[], object], processes: tuple[RandomProcess, ...], densities: str = ""
) -> BenchmarkRow:
    """Return the row of a call that computes one block, in which these random processes take their draws."""
    draws = 0.0
    if any(process.per_tick for process in processes):
        source = Draws(processes, 1, (0, "bench"))
        draws = measure_call(lambda: source.take(BLOCK_SAMPLES)) / BLOCK_SAMPLES * 1e9
    return BenchmarkRow(name, measure_call(call) / BLOCK_SAMPLES * 1e9, draws, densities)


def iter_blocks() -> Iterator[Ticks]:
    """Yield consecutive blocks of ticks."""
    for first in count(0, BLOCK_SAMPLES):
        yield Ticks(np.arange(first, first + BLOCK_SAMPLES, dtype=np.int64), RATE)


def measure_noise(name: str, noise: Noise) -> BenchmarkRow:
    """Return the cost of one channel's noise, including its draws."""
    channel, blocks = NoiseChannels(("bench",), (noise,)), iter_blocks()
    source = Draws(channel.processes, 1, (0, "bench"))
    state = channel.init(source.initial)
    ideal, temperature = np.zeros((BLOCK_SAMPLES, 1)), np.full(BLOCK_SAMPLES, 300.0)

    def compute_block() -> None:
        nonlocal state
        draws = source.take(BLOCK_SAMPLES)
        state, _, _ = channel.apply(state, next(blocks), draws, ideal, temperature=temperature)

    return _measure_row(name, compute_block, channel.processes, format_fitted_densities(noise))


def format_fitted_densities(noise: Noise) -> str:
    """Return the densities of a noise, declared and fitted to `LENGTH` samples; empty without densities."""
    declared = {name: getattr(noise, name) for name in DENSITIES if getattr(noise, name)}
    if not declared:
        return ""
    channel, blocks = NoiseChannels(("bench",), (noise,)), iter_blocks()
    source = Draws(channel.processes, 1, (0, "bench"))
    state, parts, ideal = channel.init(source.initial), [], np.zeros((BLOCK_SAMPLES, 1))
    for _ in range(LENGTH // BLOCK_SAMPLES):
        state, values, _ = channel.apply(state, next(blocks), source.take(BLOCK_SAMPLES), ideal)
        parts.append(values[:, 0])
    names = ("noise_density", *(name for name in DENSITIES[1:] if name in declared))
    fitted = fit.fit(allan.oadev(np.concatenate(parts), RATE), names)
    return ", ".join(f"{name} {value:.3g}, fitted {fitted[name].value:.3g}" for name, value in declared.items())


def measure_clock(name: str, noise: Noise) -> BenchmarkRow:
    """Return the cost of a stamp."""
    stamps, blocks = SensorClock(Clock("bench", noise), "bench", 1, 0), iter_blocks()
    return _measure_row(name, lambda: stamps.compute_errors(next(blocks).time), (RandomProcess("clock", "jitter"),))


def make_standard_sensor(kind: type[Sensor]) -> Sensor:
    """Return a sensor with standard noise on every channel and no other error."""
    return replace_noise(kind(), STANDARD)


def replace_noise(spec: Sensor, noise: Noise) -> Sensor:
    """Return a spec in which all noise is replaced."""
    if not is_dataclass(spec) or isinstance(spec, type):
        return spec
    changed = {field.name: noise for field in fields(spec) if isinstance(getattr(spec, field.name), Noise)}
    return replace(spec, **changed)


def measure_sensor(spec: Sensor, *, measured_only: bool = False) -> BenchmarkRow:
    """Return the cost of a stationary sensor in blocks: ideal values, noise and a Gaussian clock.

    With `measured_only` the ideal values are computed once, outside the timing.
    """
    motion, environment, blocks = Stationary(Pose()), Environment(origin=Origin(0.8, 0.3)), iter_blocks()
    source = Draws(spec.processes(), 1, (0, "bench"))
    stamps = SensorClock(Clock("bench", CLOCKS["gaussian"]), "bench", 1, 0)
    state = spec.init(source.initial)
    first_ideal = spec.ideal(motion, environment, next(iter_blocks()))

    def compute_block() -> None:
        nonlocal state
        ticks = next(blocks)
        ideal = first_ideal if measured_only else spec.ideal(motion, environment, ticks)
        state, _ = spec.measure(state, ticks, ideal, source.take(BLOCK_SAMPLES))
        stamps.compute_errors(ticks.time)

    processes = (*spec.processes(), RandomProcess("clock", "jitter"))
    return _measure_row(f"{spec.type}, standard noise and clock", compute_block, processes)


def measure_all() -> Iterator[BenchmarkRow]:
    """Yield the rows of `navsense bench`."""
    for name, noise in NOISES.items():
        yield measure_noise(f"noise: {name}", noise)
    for name, noise in CLOCKS.items():
        yield measure_clock(f"clock: {name}", noise)
    for kind in SENSORS:
        yield measure_sensor(make_standard_sensor(kind))
