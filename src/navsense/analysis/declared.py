"""Declared against measured: every figure of a data sheet, read back from what the sensor simulates with it.

    from navsense.analysis.declared import table
    rows = table(Magnetometer.witness(), rates=(5.0, 100.0), seed=1)

For each line of `estimates.TERMS` the sensor's sheet is left with the line's fields alone, the sensor stands still and
reads through its own `ideal` and `measure`, and the figures are estimated from reading less ideal. The deviation of a
row is (measured - declared) / standard error; beyond `LIMIT` of it the row is wrong. Every rate, line and run has draws
of its own. Everything is physical, whatever the sheet's fidelity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np

from navsense.analysis.estimates import TERMS, Estimate, Term, Trial
from navsense.environment.base import Environment
from navsense.environment.signal import Signal
from navsense.errors import AnalysisError
from navsense.geodesy import Origin
from navsense.motion.still import Still
from navsense.noise.channel import NEUTRAL, Noise
from navsense.sensors.base import Output, Sensor
from navsense.streams import BLOCK, Draws, checked_seed
from navsense.ticks import Ticks, checked_rate
from navsense.typing import AnyArray, FloatArray

LIMIT = 5.0
"""Standard errors beyond which a row is wrong: by chance one row in 1.7 million."""

ORIGIN = Origin(0.8, 0.2, 100.0)
"""Where the sensor stands: latitude and longitude rad, elevation m."""

WARMING = (270.0, 330.0)
"""Kelvin: the temperature rises from the one to the other while a term is measured."""

DIGITS = 16.0 * float(np.finfo(np.float64).eps)
"""What a value may be off by, of the largest that it was made from."""

EARTH = 6.4e6
"""Metres to the centre of the earth: what a place is made from."""

FEWEST_SAMPLES, FEWEST_RUNS = 1000, 100
"""However little effort is made."""

PLACES = {"latitude": ("north", 1), "longitude": ("east", 0)}
"""Outputs that are angles with a noise in metres: the ideal values in metres, and the axis east, north of these."""


@dataclass(frozen=True)
class Row:
    """One estimate of one channel of one sensor, at one rate (Hz)."""

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
    """One axis of one output: its noise, and where its ideal value stands."""

    name: str
    unit: str
    noise: Noise
    output: str
    axis: int

    @property
    def key(self) -> str:
        """Return the name of the ideal values that noise, limits and rounding act on."""
        return PLACES[self.output][0] if self.output in PLACES else self.output

    def of(self, arrays: Mapping[str, AnyArray]) -> AnyArray:
        """Return this channel's values (n,) of some arrays by output."""
        array = arrays[self.output]
        return array[:, self.axis] if array.ndim > 1 else array

    def error(self, arrays: Mapping[str, AnyArray], ideal: Mapping[str, AnyArray]) -> AnyArray:
        """Return reading less ideal (n,), in the noise's unit."""
        if self.output not in PLACES:
            return np.asarray(self.of(arrays) - self.of(ideal))
        place = Origin(float(ideal["latitude"][0]), float(ideal["longitude"][0]))
        rows = np.stack((arrays["latitude"], arrays["longitude"], ideal["altitude"]), axis=-1)
        return np.asarray(place.position(rows)[:, PLACES[self.output][1]])

    def rounding(self, arrays: Mapping[str, AnyArray], error: AnyArray) -> float:
        """Return what a value may be off by: digits of a double and, of a place, the earth's curvature."""
        if self.output not in PLACES:
            return DIGITS * float(np.abs(self.of(arrays)).max())
        return DIGITS * EARTH + 2.0 * float(np.abs(error).max()) ** 2 / EARTH


def channels(spec: Sensor) -> Iterator[Channel]:
    """Yield the channels of a sensor, in the order of its outputs."""
    noises = spec.noise()
    for output in spec.outputs:
        for axis, noise in enumerate(noises.get(output.name, ())):
            unit = "m" if output.name in PLACES else output.unit
            yield Channel(f"{output.name}{_suffix(output, axis)}", unit, noise, output.name, axis)


def _suffix(output: Output, axis: int) -> str:
    if output.axes <= 1:
        return ""
    return f".{'xyz'[axis]}" if output.axes == 3 else f".{axis}"


def isolated(spec: Sensor, names: Sequence[str]) -> Sensor:
    """Return the sheet with these fields of its noises alone, all else neutral, physical."""

    def left(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(left(part) for part in value)
        return replace(NEUTRAL, **{name: getattr(value, name) for name in names})

    base = spec.neutral()
    if not is_dataclass(base) or isinstance(base, type):
        raise AnalysisError("sensor", type(base).__name__, allowed="must be a dataclass whose fields are its sheet")
    return replace(
        base, **{part.name: left(getattr(spec, part.name)) for part in fields(base) if _noisy(spec, part.name)}
    )


def _noisy(spec: Sensor, name: str) -> bool:
    """Tell whether a field of a sheet is a noise, or several."""
    value = getattr(spec, name)
    return isinstance(value, Noise) or (isinstance(value, tuple) and any(isinstance(part, Noise) for part in value))


@dataclass(frozen=True)
class _Stand:
    """One term of a sensor that stands still, at one rate (Hz): samples and serial numbers, and what acts alone."""

    spec: Sensor
    sheet: Sensor
    term: Term
    rate: float
    seed: int
    count: int
    runs: int

    def trials(self) -> Iterator[tuple[Channel, Trial]]:
        """Yield what the term has to measure each channel by, in which it acts."""
        acting = [channel for channel in channels(self.spec) if self.term.acts(channel.noise)]
        stimuli = self._stimuli(acting)
        errors = {channel.name: np.empty((self.runs, self.count)) for channel in acting}
        digits = dict.fromkeys(errors, 0.0)
        for run in range(self.runs if acting else 0):
            for first, ideal, arrays in self._readings(run, stimuli):
                for channel in acting:
                    part = channel.error(arrays, ideal)
                    errors[channel.name][run, first : first + part.size] = part
                    digits[channel.name] = max(digits[channel.name], channel.rounding(arrays, part))
        warmth = self._warming().at(np.arange(self.count) / self.rate)
        for channel in acting:
            given = stimuli.get(channel.name, np.zeros(self.count))
            rounding = digits[channel.name] + DIGITS * float(np.abs(given).max())
            error = errors.pop(channel.name)
            yield channel, Trial(self.spec, channel.axis, channel.noise, self.rate, error, given, warmth, rounding)

    def _stimuli(self, acting: Sequence[Channel]) -> dict[str, FloatArray]:
        """Return the ideal values (n,) that channels are given, by name."""
        given = self.term.stimulus
        return {channel.name: given(channel.noise, channel.axis, self.count) for channel in acting} if given else {}

    def _warming(self) -> Signal:
        return Signal((0.0, max(self.count - 1, 1) / self.rate), WARMING)

    def _readings(
        self, run: int, stimuli: Mapping[str, FloatArray]
    ) -> Iterator[tuple[int, Mapping[str, AnyArray], Mapping[str, AnyArray]]]:
        """Yield (first tick, ideal values, readings), block after block."""
        key = (run, "declared", self.spec.type, self.term.name, repr(self.rate))
        draws = Draws(self.sheet.processes(), self.seed, key)
        state, motion = self.sheet.init(draws.initial), Still()
        surroundings = Environment(origin=ORIGIN, signals={"temperature": self._warming()})
        for first in range(0, self.count, BLOCK):
            ticks = Ticks(np.arange(first, min(first + BLOCK, self.count), dtype=np.int64), self.rate)
            ideal = self._stimulated(self.sheet.ideal(motion, surroundings, ticks), first, stimuli)
            state, measured = self.sheet.measure(state, ticks, ideal, draws.take(len(ticks)))
            yield first, ideal, measured.arrays

    def _stimulated(
        self, ideal: Mapping[str, AnyArray], first: int, stimuli: Mapping[str, FloatArray]
    ) -> Mapping[str, AnyArray]:
        """Return the ideal values with those of the stimulated channels in place of the still sensor's."""
        if not stimuli:
            return ideal
        given = {name: np.array(array, copy=True) for name, array in ideal.items()}
        for channel in channels(self.spec):
            if channel.name in stimuli:
                array = given[channel.key]
                part = stimuli[channel.name][first : first + array.shape[0]]
                (array[:, channel.axis] if array.ndim > 1 else array)[...] = part
        return given


def table(
    spec: Sensor, rates: Sequence[float], seed: int, *, effort: float = 1.0, terms: Sequence[Term] = TERMS
) -> list[Row]:
    """Return the rows of every channel, every term that acts in it and every rate (Hz).

    effort scales the number of samples and of serial numbers. Raises `SimulationError` for a rate or a seed that is
    none.
    """
    rows = []
    for rate in rates:
        for term in terms:
            sheet = term.prepared(spec) if term.prepared else isolated(spec, (*term.fields, *term.beside))
            if sheet is None:
                continue
            count = max(min(term.count, FEWEST_SAMPLES), int(effort * term.count))
            runs = max(min(term.runs, FEWEST_RUNS), int(effort * term.runs))
            stand = _Stand(spec, sheet, term, checked_rate(rate), checked_seed(seed), count, runs)
            for channel, trial in stand.trials():
                rows += [Row(spec.type, channel.name, channel.unit, rate, found) for found in term.measure(trial)]
    return rows
