"""Comparison of simulated with declared values: every parameter of a spec is estimated from readings.

    from tests.verification.declared import table
    rows = table(Magnetometer.example_spec(), rates=(5.0, 100.0), seed=1)

For each entry of `TERMS`, the spec keeps only the parameters of this entry. The sensor is stationary and calls its own
`ideal` and `measure`; the parameters are estimated from reading minus ideal value. The deviation of a row is
(estimate - declared) / standard error. A row fails if its deviation exceeds `LIMIT`.

Each rate, entry and run has separate draws. All specs have physical fidelity. Parameters that act in motion only are
estimated from a moving sensor (`estimates.MotionTerm`). Range limits are removed because they would hide errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from navsense.core.errors import AnalysisError
from navsense.core.geodesy import Origin
from navsense.core.random_streams import BLOCK_SAMPLES, Draws, check_seed
from navsense.core.ticks import Ticks, check_rate
from navsense.core.typing import AnyArray, FloatArray
from navsense.environment.base import Environment
from navsense.environment.signal import Signal
from navsense.environment.terrain.primitives import Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.motion.stationary import Stationary
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sensors.base import TEMPERATURE, HasIndirectNoise, Output, Sensor
from navsense.sensors.doppler import TrackErrors
from navsense.sensors.dvl import Dvl
from navsense.sensors.magnetometer import MOTOR_CURRENT
from navsense.sensors.range import Fan, Range
from tests.verification import estimates, imu_mag
from tests.verification.doppler_beams import remove_limits
from tests.verification.estimates import ROUNDING, Estimate, MotionTerm, MotionTrial, Term, Trial

LIMIT = 5.0
"""Standard errors at which a row fails. The false-alarm rate is 1 in 1.7 million rows."""

ORIGIN = Origin(0.8, 0.2, 100.0)
"""Position of the sensor: latitude and longitude in rad, elevation in m."""

TEMPERATURES = (270.0, 330.0)
"""Temperature (K) at the start and at the end of a record."""

CURRENTS = (-20.0, 80.0)
"""Motor current (A) at the start and at the end of a record."""

MINIMUM_SAMPLES, MINIMUM_RUNS = 1000, 100
"""Samples and runs at any effort."""

SHELL_RADIUS = 100.0
"""Distance (m) from the world origin to the surface in every direction: much larger than the range errors."""

TERMS: tuple[Term | MotionTerm, ...] = (*estimates.TERMS, *imu_mag.TERMS)
"""All estimators of a sensor."""

_SHELL = Scene((Body("shell", Sphere(SHELL_RADIUS)),))

SHIFT = 1e-6
"""Shift of an output from which the slope of its errors is computed, for noise that acts on other values."""


@dataclass(frozen=True)
class Row:
    """One estimate of one channel of one sensor at one rate (Hz), with its unit."""

    sensor: str
    channel: str
    unit: str
    rate: float
    estimate: Estimate

    @property
    def holds(self) -> bool:
        """True if the estimate is within `LIMIT` standard errors."""
        return abs(self.estimate.deviation) <= LIMIT


@dataclass(frozen=True)
class Channel:
    """One axis of one output: its noise, the unit of this noise, and the name `key` of the ideal values it acts on."""

    name: str
    unit: str
    noise: Noise
    output: str
    axis: int
    key: str

    def select(self, arrays: Mapping[str, AnyArray]) -> AnyArray:
        """Return the values (n,) of this channel from arrays by output."""
        array = arrays[self.output]
        return array[:, self.axis] if array.ndim > 1 else array

    def compute_error(self, spec: Sensor, arrays: Mapping[str, AnyArray], ideal: Mapping[str, AnyArray]) -> AnyArray:
        """Return reading minus ideal value (n,) in the unit of the noise."""
        if self.key != self.output and isinstance(spec, HasIndirectNoise):
            return self.select(spec.compute_errors(arrays, ideal))
        return np.asarray(self.select(arrays) - self.select(ideal))

    def compute_rounding(self, spec: Sensor, arrays: Mapping[str, AnyArray], ideal: Mapping[str, AnyArray]) -> float:
        """Return the error of one value from the rounding of doubles."""
        size = ROUNDING * float(np.abs(self.select(arrays)).max())
        if self.key == self.output:
            return size
        arrays_, there = ({name: array[:1] for name, array in source.items()} for source in (arrays, ideal))
        shifted = {**arrays_, self.output: arrays_[self.output] + SHIFT}
        away = self.compute_error(spec, shifted, there) - self.compute_error(spec, arrays_, there)
        return abs(float(away[0])) / SHIFT * max(size, ROUNDING)


def _remove_limits(spec: Sensor) -> Sensor:
    """Return the spec without range limits. A range sensor gets a single ray along x."""
    if isinstance(spec, Range):
        return replace(spec, minimum_range=0.0, maximum_range=math.inf, beam=Fan())
    return remove_limits(spec) if isinstance(spec, Dvl) else spec


def list_channels(spec: Sensor) -> Iterator[Channel]:
    """Yield the channels of a sensor in the order of its outputs."""
    noises, quantities = spec.noise(), spec.noise_quantities if isinstance(spec, HasIndirectNoise) else {}
    for output in spec.outputs:
        target = quantities.get(output.name, output)
        for axis, noise in enumerate(noises.get(output.name, ())):
            name = f"{output.name}{_make_axis_suffix(output, axis)}"
            yield Channel(name, target.unit, noise, output.name, axis, target.name)


def _make_axis_suffix(output: Output, axis: int) -> str:
    if output.size == 1:
        return ""
    return f".{'xyz'[axis]}" if output.shape == (3,) else f".{axis}"


def isolate_fields(spec: Sensor, names: Sequence[str]) -> Sensor:
    """Return the spec with only these fields of its noises, all others neutral, with physical fidelity."""

    def isolate(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(isolate(part) for part in value)
        if isinstance(value, TrackErrors):
            return TrackErrors(isolate(value.noise))
        return replace(NO_NOISE, **{name: getattr(value, name) for name in names})

    base = spec.without_errors()
    if not is_dataclass(base) or isinstance(base, type):
        raise AnalysisError(
            "sensor", type(base).__name__, allowed="must be a dataclass whose fields are its parameters"
        )
    return replace(
        base,
        **{part.name: isolate(getattr(spec, part.name)) for part in fields(base) if _contains_noise(spec, part.name)},
    )


def _contains_noise(spec: Sensor, name: str) -> bool:
    """True if a field of a spec is a noise, several noises, or contains one."""
    value = getattr(spec, name)
    return any(isinstance(part, Noise | TrackErrors) for part in (value if isinstance(value, tuple) else (value,)))


def make_environment(count: int, rate: float) -> Environment:
    """Return the environment of a record of `count` samples at `rate` (Hz)."""
    ends = (0.0, max(count - 1, 1) / rate)
    signals = {TEMPERATURE: Signal(ends, TEMPERATURES), MOTOR_CURRENT: Signal(ends, CURRENTS)}
    return Environment(origin=ORIGIN, water=Water(), scene=_SHELL, signals=signals)


@dataclass(frozen=True)
class _StationaryTerm:
    """One term of a stationary sensor at one rate (Hz). `isolated` is the spec with the errors of the term alone."""

    spec: Sensor
    isolated: Sensor
    term: Term
    name: str
    rate: float
    seed: int
    count: int
    runs: int

    def make_trials(self) -> Iterator[tuple[Channel, Trial]]:
        """Yield the channels in which the term acts, each with its trial."""
        active = [channel for channel in list_channels(self.spec) if self.term.acts(channel.noise)]
        stimuli = self._make_stimuli(active)
        errors = {channel.name: np.empty((self.runs, self.count)) for channel in active}
        digits = dict.fromkeys(errors, 0.0)
        for run in range(self.runs if active else 0):
            for first, ideal, arrays in self._simulate(run, stimuli):
                for channel in active:
                    part = channel.compute_error(self.isolated, arrays, ideal)
                    errors[channel.name][run, first : first + part.size] = part
                    digits[channel.name] = max(
                        digits[channel.name], channel.compute_rounding(self.isolated, arrays, ideal)
                    )
        time = np.arange(self.count) / self.rate
        temperature = make_environment(self.count, self.rate).signal(TEMPERATURE, time)
        for channel in active:
            stimulus = stimuli.get(channel.name, np.zeros(self.count))
            rounding = digits[channel.name] + ROUNDING * float(np.abs(stimulus).max())
            error = errors.pop(channel.name)
            place = (self.isolated, channel.output, channel.axis, channel.noise)
            yield channel, Trial(*place, self.rate, time, error, stimulus, temperature, rounding)

    def _make_stimuli(self, active: Sequence[Channel]) -> dict[str, FloatArray]:
        """Return the stimuli (n,) of the channels by name."""
        stimulus = self.term.stimulus
        return (
            {channel.name: stimulus(channel.noise, channel.axis, self.count) for channel in active} if stimulus else {}
        )

    def _simulate(
        self, run: int, stimuli: Mapping[str, FloatArray]
    ) -> Iterator[tuple[int, Mapping[str, AnyArray], Mapping[str, AnyArray]]]:
        """Yield (first tick, ideal values, readings) block by block."""
        key = (run, "declared", self.spec.type, self.name, repr(self.rate))
        draws = Draws(self.isolated.processes(), self.seed, key)
        state, motion, environment = (
            self.isolated.init(draws.initial),
            Stationary(),
            make_environment(self.count, self.rate),
        )
        for first in range(0, self.count, BLOCK_SAMPLES):
            ticks = Ticks(np.arange(first, min(first + BLOCK_SAMPLES, self.count), dtype=np.int64), self.rate)
            ideal = self._replace_ideal(self.isolated.ideal(motion, environment, ticks), first, stimuli)
            state, measured = self.isolated.measure(state, ticks, ideal, draws.take(len(ticks)))
            yield first, ideal, measured.arrays

    def _replace_ideal(
        self, ideal: Mapping[str, AnyArray], first: int, stimuli: Mapping[str, FloatArray]
    ) -> Mapping[str, AnyArray]:
        """Return the ideal values with the stimuli inserted."""
        if not stimuli:
            return ideal
        replaced = {name: np.array(array, copy=True) for name, array in ideal.items()}
        for channel in list_channels(self.spec):
            if channel.name in stimuli:
                array = replaced[channel.key]
                part = stimuli[channel.name][first : first + array.shape[0]]
                (array[:, channel.axis] if array.ndim > 1 else array)[...] = part
        return replaced


def _measure_moving(spec: Sensor, term: MotionTerm, rate: float, seed: int) -> Iterator[Row]:
    """Yield the rows of a term of a sensor in motion."""
    for number, isolated in enumerate(term.make_specs(spec)):
        draws = Draws(isolated.processes(), seed, (0, "declared", spec.type, f"{term.name} {number}", repr(rate)))
        ticks = Ticks(np.arange(term.count, dtype=np.int64), rate)
        environment, motion = make_environment(term.count, rate), term.motion()
        ideal = isolated.ideal(motion, environment, ticks)
        _, measured = isolated.measure(isolated.init(draws.initial), ticks, ideal, draws.take(term.count))
        trial = MotionTrial(isolated, rate, ticks.time, environment, motion.at(ticks.time), ideal, measured.arrays)
        units = {output.name: output.unit for output in spec.outputs}
        for channel, found in term.measure(trial):
            yield Row(spec.type, channel, found.unit_in(units[channel.partition(".")[0]]), rate, found)


def _measure_stationary(spec: Sensor, term: Term, rate: float, seed: int, effort: float) -> Iterator[Row]:
    """Yield the rows of a term of a stationary sensor, channel by channel."""
    count, runs = scale_count(term.count, effort, MINIMUM_SAMPLES), scale_count(term.runs, effort, MINIMUM_RUNS)
    specs = term.make_specs(spec) if term.make_specs else (isolate_fields(spec, (*term.fields, *term.context_fields)),)
    for number, isolated in enumerate(specs):
        name = f"{term.name} {number}" if number else term.name
        for channel, trial in _StationaryTerm(spec, isolated, term, name, rate, seed, count, runs).make_trials():
            for found in term.measure(trial):
                yield Row(spec.type, channel.name, found.unit_in(channel.unit), rate, found)


def scale_count(number: int, effort: float, minimum: int) -> int:
    """Return `effort` times a number of samples or runs, at least `minimum` but at most `number`."""
    return max(min(number, minimum), int(effort * number))


def table(
    spec: Sensor,
    rates: Sequence[float],
    seed: int,
    *,
    effort: float = 1.0,
    terms: Sequence[Term | MotionTerm] = TERMS,
) -> list[Row]:
    """Return the rows of every channel, every term that acts in it and every rate (Hz).

    effort scales the number of samples and runs. Raises `SimulationError` for an invalid rate or seed.
    """
    rows: list[Row] = []
    unlimited = _remove_limits(spec)
    for rate in map(check_rate, rates):
        for term in terms:
            if isinstance(term, Term):
                rows += _measure_stationary(unlimited, term, rate, check_seed(seed), effort)
            else:
                rows += _measure_moving(unlimited, term, rate, check_seed(seed))
    return rows
