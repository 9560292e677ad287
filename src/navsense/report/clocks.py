"""What the clocks are off by: stamps against true time, and their Allan deviation beside the declared one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.analysis import allan, theory
from navsense.clock import Clock
from navsense.report import faults
from navsense.report.axes import Axis, Scale, linear, logarithmic, over_time, quantity
from navsense.report.draw import Figure, Plot
from navsense.report.recorded import Recorded
from navsense.report.sensors import PER_DECADE, SHORTEST, of_how_much, stretch
from navsense.series import Reading
from navsense.typing import FloatArray

GLOBAL = "global time"
"""What a sensor without a clock stamps by."""


@dataclass(frozen=True, eq=False)
class Shown:
    """One clock with the sensors on it, the fastest first; its sheet where that is known; spans (s) of its faults."""

    name: str
    readings: Sequence[Reading]
    sheet: Clock | None
    struck: Sequence[tuple[float, float]] = ()

    @property
    def fastest(self) -> Reading:
        """Return the readings that show the clock most often."""
        return self.readings[0]

    @property
    def worst(self) -> float:
        """Return the largest error (s) of any stamp."""
        return max((float(np.abs(r.clock_error).max()) for r in self.readings if r.clock_error.size), default=0.0)


def clocks_of(found: Recorded) -> list[Shown]:
    """Return the clocks of a recording that are off at some time; where no sheet says which, each sensor is its own."""
    groups: dict[str, list[Reading]] = {}
    for name, reading in found.readings.items():
        sensor = found.sensors.get(name)
        if sensor is None:
            clock = name
        else:
            clock = sensor.clock or GLOBAL
        groups.setdefault(clock, []).append(reading)
    shown = []
    acted = faults.others(found)
    for clock, readings in groups.items():
        readings.sort(key=lambda reading: -reading.time.size)
        struck = [span for (name, _), spans in acted.items() if name == clock for span in spans]
        one = Shown(clock, readings, found.clocks.get(clock), struck)
        if one.worst > 0.0 or one.sheet is not None:
            shown.append(one)
    return shown


def figures_of(shown: Shown, span: tuple[float, float]) -> Iterator[Figure]:
    """Yield stamps against true time, and the Allan deviation."""
    reading = shown.fastest
    up = linear("stamp less true time", "s", [r.clock_error for r in shown.readings], zero=True)
    caption = f"The stamps of {', '.join(r.name for r in shown.readings)}; at most {quantity(shown.worst, 's')} off."
    figure = Figure(f"Clock {shown.name}", over_time(*span), [Plot(up, 210.0)], caption)
    figure.across(figure.plots[0], 0.0, "zero")
    for place, other in reversed(list(enumerate(shown.readings[:4]))):
        figure.band(figure.plots[0], other.time, other.clock_error, f"c{place}")
    figure.keys = [(f"c{place}", r.name.rpartition("::")[2]) for place, r in enumerate(shown.readings[:4])]
    yield figure
    deviation = _allan(shown, reading)
    if deviation is not None:
        yield deviation


def terms_of(clock: Clock) -> tuple[theory.Term, ...]:
    """Return the terms of the frequency's Allan variance of a free clock; its jitter is white noise of the phase."""
    noise, sheet = clock.noise, clock.oscillator
    jitter = math.sqrt(noise.stddev**2 + noise.precision**2 / 12.0)
    terms: list[theory.Term] = [theory.Quantisation(jitter)] if jitter > 0.0 else []
    if noise.has_dynamic_bias:
        tau = noise.dynamic_bias_correlation_time
        terms.append(theory.PhaseGaussMarkov(noise.dynamic_bias_stddev * math.sqrt(0.5 * tau), tau))
    if sheet is not None:
        power = (sheet.white_frequency, sheet.flicker_frequency, sheet.random_walk_frequency)
        terms += theory.oscillator(*power, math.sqrt(sheet.ageing**2 + sheet.ageing_stddev**2))
    return tuple(terms)


def _allan(shown: Shown, reading: Reading) -> Figure | None:
    """Return the Allan deviation of a clock's frequency, where it has no fault; None where the stamps are too few."""
    step = float(np.median(np.diff(reading.time))) if reading.time.size >= SHORTEST else 0.0
    if not step > 0.0:
        return None
    rate, known = 1.0 / step, np.isfinite(reading.clock_error)
    for first, last in shown.struck:
        known &= (reading.time < first) | (reading.time > last)
    error = reading.clock_error[stretch(known, reading.time, rate)]
    if error.size < SHORTEST or not np.any(error):
        return None
    factors = allan.spaced((error.size - 1) // 3, PER_DECADE)
    found = allan.overlapping(error, rate, factors, phase=True, exponent=0)
    if not np.any(found.deviation > 0.0):
        return None
    expected: FloatArray | None = None
    if shown.sheet is not None and shown.sheet.discipline is None and terms_of(shown.sheet):
        expected = np.sqrt(theory.allan_of(terms_of(shown.sheet), factors, rate))
    along = logarithmic("", "", [found.tau])
    along = Axis(along.low, along.high, "averaging time (s)", Scale(1.0, "s"), log=True)
    kept = [found.deviation] + ([expected] if expected is not None else [])
    why = "Dashed: what its sheet gives." if expected is not None else _why(shown)
    caption = f"Allan deviation of the fractional frequency, from the stamps of {reading.name}. {why}"
    caption += of_how_much(error.size, reading.time, rate)
    figure = Figure(
        f"Stability of {shown.name}", along, [Plot(logarithmic("Allan deviation", "", kept), 210.0)], caption
    )
    figure.keys = [("c0", "measured")]
    if expected is not None:
        figure.line(figure.plots[0], found.tau, expected, "declared")
        figure.keys.append(("declared", "declared"))
    figure.line(figure.plots[0], found.tau, found.deviation, "c0")
    return figure


def _why(shown: Shown) -> str:
    """Return why there is no declared curve."""
    if shown.sheet is None:
        return "Its sheet is not recorded: name the world with --world."
    return "It is corrected by a time server, whose work no closed form gives."
