"""Declared against measured: every figure of a data sheet, read back from what the sensor simulates with it.

    from tests.verification.declared import table
    rows = table(Magnetometer.example_spec(), rates=(5.0, 100.0), seed=1)

For each line of `TERMS` the sensor's sheet is left with the line's fields alone, the sensor stands still and
reads through its own `ideal` and `measure`, and the figures are estimated from reading minus ideal. The deviation of a
row is (measured - declared) / standard error; beyond `LIMIT` of it the row is wrong. Every rate, line and run has draws
of its own. Everything is physical, whatever the sheet's fidelity. What shows in motion only is read from a sensor that
moves (`estimates.MovedTerm`), what limits would hide from one without limits.
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
from navsense.sensors.doppler import DopplerTrack
from navsense.sensors.dvl import Dvl
from navsense.sensors.magnetometer import MOTOR_CURRENT
from navsense.sensors.range import Fan, Range
from tests.verification import estimates, imu_mag
from tests.verification.doppler_beams import remove_limits
from tests.verification.estimates import DIGITS, Estimate, Moved, MovedTerm, Term, Trial

LIMIT = 5.0
"""Standard errors beyond which a row is wrong: by chance one row in 1.7 million."""

ORIGIN = Origin(0.8, 0.2, 100.0)
"""Where the sensor stands: latitude and longitude rad, elevation m."""

WARMING = (270.0, 330.0)
"""Kelvin: the temperature rises from the one to the other while a term is measured."""

CURRENT = (-20.0, 80.0)
"""Ampere: the motors' current rises from the one to the other meanwhile."""

FEWEST_SAMPLES, FEWEST_RUNS = 1000, 100
"""However little effort is made."""

SHELL_RADIUS = 100.0
"""Metres from the world's origin to what a range sensor meets wherever it looks: far more than its errors come to."""

TERMS: tuple[Term | MovedTerm, ...] = (*estimates.TERMS, *imu_mag.TERMS)
"""All that is measured of a sensor."""

_SHELL = Scene((Body("shell", Sphere(SHELL_RADIUS)),))

SMALL = 1e-6
"""Of an output whose noise acts on other values: how far it is moved to see how much of these that is."""


@dataclass(frozen=True)
class Row:
    """One estimate of one channel of one sensor, at one rate (Hz), in its unit."""

    sensor: str
    channel: str
    unit: str
    rate: float
    estimate: Estimate

    @property
    def holds(self) -> bool:
        """Return true where the measured figure is within `LIMIT` standard errors."""
        return abs(self.estimate.deviation) <= LIMIT


@dataclass(frozen=True)
class Channel:
    """One axis of one output: its noise with its unit, and the name `key` of the ideal values that that acts on."""

    name: str
    unit: str
    noise: Noise
    output: str
    axis: int
    key: str

    def of(self, arrays: Mapping[str, AnyArray]) -> AnyArray:
        """Return this channel's values (n,) of some arrays by output."""
        array = arrays[self.output]
        return array[:, self.axis] if array.ndim > 1 else array

    def error(self, spec: Sensor, arrays: Mapping[str, AnyArray], ideal: Mapping[str, AnyArray]) -> AnyArray:
        """Return reading minus ideal (n,), in the noise's unit."""
        if self.key != self.output and isinstance(spec, HasIndirectNoise):
            return self.of(spec.compute_errors(arrays, ideal))
        return np.asarray(self.of(arrays) - self.of(ideal))

    def rounding(self, spec: Sensor, arrays: Mapping[str, AnyArray], ideal: Mapping[str, AnyArray]) -> float:
        """Return what an error may be off by, being one of doubles."""
        size = DIGITS * float(np.abs(self.of(arrays)).max())
        if self.key == self.output:
            return size
        here, there = ({name: array[:1] for name, array in source.items()} for source in (arrays, ideal))
        moved = {**here, self.output: here[self.output] + SMALL}
        away = self.error(spec, moved, there) - self.error(spec, here, there)
        return abs(float(away[0])) / SMALL * max(size, DIGITS)


def _without_limits(spec: Sensor) -> Sensor:
    """Return a spec with the same errors that has no limits; a range sensor with one ray along x."""
    if isinstance(spec, Range):
        return replace(spec, minimum_range=0.0, maximum_range=math.inf, beam=Fan())
    return remove_limits(spec) if isinstance(spec, Dvl) else spec


def channels(spec: Sensor) -> Iterator[Channel]:
    """Yield the channels of a sensor, in the order of its outputs."""
    noises, elsewhere = spec.noise(), spec.noise_quantities if isinstance(spec, HasIndirectNoise) else {}
    for output in spec.outputs:
        acted = elsewhere.get(output.name, output)
        for axis, noise in enumerate(noises.get(output.name, ())):
            name = f"{output.name}{_suffix(output, axis)}"
            yield Channel(name, acted.unit, noise, output.name, axis, acted.name)


def _suffix(output: Output, axis: int) -> str:
    if output.size == 1:
        return ""
    return f".{'xyz'[axis]}" if output.shape == (3,) else f".{axis}"


def isolate_fields(spec: Sensor, names: Sequence[str]) -> Sensor:
    """Return the sheet with these fields of its noises alone, all else neutral, physical."""

    def left(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(left(part) for part in value)
        if isinstance(value, DopplerTrack):
            return DopplerTrack(left(value.noise))
        return replace(NO_NOISE, **{name: getattr(value, name) for name in names})

    base = spec.without_errors()
    if not is_dataclass(base) or isinstance(base, type):
        raise AnalysisError("sensor", type(base).__name__, allowed="must be a dataclass whose fields are its sheet")
    return replace(
        base, **{part.name: left(getattr(spec, part.name)) for part in fields(base) if _noisy(spec, part.name)}
    )


def _noisy(spec: Sensor, name: str) -> bool:
    """True if a field of a spec is a noise, several noises, or contains one."""
    value = getattr(spec, name)
    return any(isinstance(part, Noise | DopplerTrack) for part in (value if isinstance(value, tuple) else (value,)))


def make_environment(count: int, rate: float) -> Environment:
    """Return where the sensor stands or moves for `count` samples at `rate` (Hz)."""
    ends = (0.0, max(count - 1, 1) / rate)
    signals = {TEMPERATURE: Signal(ends, WARMING), MOTOR_CURRENT: Signal(ends, CURRENT)}
    return Environment(origin=ORIGIN, water=Water(), scene=_SHELL, signals=signals)


@dataclass(frozen=True)
class _StillTerm:
    """One term of a sensor that stands still, at one rate (Hz): samples and instruments, and what acts alone."""

    spec: Sensor
    sheet: Sensor
    term: Term
    name: str
    rate: float
    seed: int
    count: int
    runs: int

    def trials(self) -> Iterator[tuple[Channel, Trial]]:
        """Yield what the term has to measure each channel by, in which it acts."""
        acting = [channel for channel in channels(self.spec) if self.term.acts(channel.noise)]
        stimuli = self._make_stimuli(acting)
        errors = {channel.name: np.empty((self.runs, self.count)) for channel in acting}
        digits = dict.fromkeys(errors, 0.0)
        for run in range(self.runs if acting else 0):
            for first, ideal, arrays in self._readings(run, stimuli):
                for channel in acting:
                    part = channel.error(self.sheet, arrays, ideal)
                    errors[channel.name][run, first : first + part.size] = part
                    digits[channel.name] = max(digits[channel.name], channel.rounding(self.sheet, arrays, ideal))
        time = np.arange(self.count) / self.rate
        warmth = make_environment(self.count, self.rate).signal(TEMPERATURE, time)
        for channel in acting:
            stimulus = stimuli.get(channel.name, np.zeros(self.count))
            rounding = digits[channel.name] + DIGITS * float(np.abs(stimulus).max())
            error = errors.pop(channel.name)
            place = (self.sheet, channel.output, channel.axis, channel.noise)
            yield channel, Trial(*place, self.rate, time, error, stimulus, warmth, rounding)

    def _make_stimuli(self, acting: Sequence[Channel]) -> dict[str, FloatArray]:
        """Return the ideal values (n,) that channels are given, by name."""
        stimulus = self.term.stimulus
        return (
            {channel.name: stimulus(channel.noise, channel.axis, self.count) for channel in acting} if stimulus else {}
        )

    def _readings(
        self, run: int, stimuli: Mapping[str, FloatArray]
    ) -> Iterator[tuple[int, Mapping[str, AnyArray], Mapping[str, AnyArray]]]:
        """Yield (first tick, ideal values, readings), block after block."""
        key = (run, "declared", self.spec.type, self.name, repr(self.rate))
        draws = Draws(self.sheet.processes(), self.seed, key)
        state, motion, environment = (
            self.sheet.init(draws.initial),
            Stationary(),
            make_environment(self.count, self.rate),
        )
        for first in range(0, self.count, BLOCK_SAMPLES):
            ticks = Ticks(np.arange(first, min(first + BLOCK_SAMPLES, self.count), dtype=np.int64), self.rate)
            ideal = self._replace_ideal(self.sheet.ideal(motion, environment, ticks), first, stimuli)
            state, measured = self.sheet.measure(state, ticks, ideal, draws.take(len(ticks)))
            yield first, ideal, measured.arrays

    def _replace_ideal(
        self, ideal: Mapping[str, AnyArray], first: int, stimuli: Mapping[str, FloatArray]
    ) -> Mapping[str, AnyArray]:
        """Return the ideal values with those of the stimulated channels in place of the still sensor's."""
        if not stimuli:
            return ideal
        replaced = {name: np.array(array, copy=True) for name, array in ideal.items()}
        for channel in channels(self.spec):
            if channel.name in stimuli:
                array = replaced[channel.key]
                part = stimuli[channel.name][first : first + array.shape[0]]
                (array[:, channel.axis] if array.ndim > 1 else array)[...] = part
        return replaced


def _measure_moving(spec: Sensor, term: MovedTerm, rate: float, seed: int) -> Iterator[Row]:
    """Yield the rows of a term that takes a sensor in motion."""
    for number, sheet in enumerate(term.prepared(spec)):
        draws = Draws(sheet.processes(), seed, (0, "declared", spec.type, f"{term.name} {number}", repr(rate)))
        ticks = Ticks(np.arange(term.count, dtype=np.int64), rate)
        environment, motion = make_environment(term.count, rate), term.motion()
        ideal = sheet.ideal(motion, environment, ticks)
        _, measured = sheet.measure(sheet.init(draws.initial), ticks, ideal, draws.take(term.count))
        moved = Moved(sheet, rate, ticks.time, environment, motion.at(ticks.time), ideal, measured.arrays)
        units = {output.name: output.unit for output in spec.outputs}
        for channel, found in term.measure(moved):
            yield Row(spec.type, channel, found.unit_in(units[channel.partition(".")[0]]), rate, found)


def _measure_still(spec: Sensor, term: Term, rate: float, seed: int, effort: float) -> Iterator[Row]:
    """Yield the rows of a term that takes a still sensor channel by channel."""
    count, runs = scale_count(term.count, effort, FEWEST_SAMPLES), scale_count(term.runs, effort, FEWEST_RUNS)
    sheets = term.prepared(spec) if term.prepared else (isolate_fields(spec, (*term.fields, *term.beside)),)
    for number, sheet in enumerate(sheets):
        name = f"{term.name} {number}" if number else term.name
        for channel, trial in _StillTerm(spec, sheet, term, name, rate, seed, count, runs).trials():
            for found in term.measure(trial):
                yield Row(spec.type, channel.name, found.unit_in(channel.unit), rate, found)


def scale_count(number: int, effort: float, fewest: int) -> int:
    """Return `effort` times a number of samples or runs, at least `fewest` where there are so many."""
    return max(min(number, fewest), int(effort * number))


def table(
    spec: Sensor,
    rates: Sequence[float],
    seed: int,
    *,
    effort: float = 1.0,
    terms: Sequence[Term | MovedTerm] = TERMS,
) -> list[Row]:
    """Return the rows of every channel, every term that acts in it and every rate (Hz).

    effort scales the number of samples and of instruments. Raises `SimulationError` for a rate or a seed that is
    none.
    """
    rows: list[Row] = []
    free = _without_limits(spec)
    for rate in map(check_rate, rates):
        for term in terms:
            if isinstance(term, Term):
                rows += _measure_still(free, term, rate, check_seed(seed), effort)
            else:
                rows += _measure_moving(free, term, rate, check_seed(seed))
    return rows
