"""Figures of clocks: stamps against true time, and measured and declared Allan deviations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.analysis import allan, theory
from navsense.clock import Clock
from navsense.core.series import Reading
from navsense.core.typing import FloatArray
from navsense.messages.base import GLOBAL_TIME
from navsense.report import sensor_section
from navsense.report.axes import format_quantity, linear_axis, log_axis, time_axis
from navsense.report.faults import scheduled_spans
from navsense.report.report_data import ReportData
from navsense.report.svg_figure import LINE_COLOURS, Plot, SvgFigure


@dataclass(frozen=True, eq=False)
class ClockSection:
    """One clock with the readings stamped by it, the fastest first; its spec, if known; spans (s) of its faults."""

    name: str
    readings: Sequence[Reading]
    spec: Clock | None
    fault_spans: Sequence[tuple[float, float]] = ()

    @property
    def max_error(self) -> float:
        """Largest error (s) of a stamp."""
        return max((float(np.abs(r.clock_error).max()) for r in self.readings if r.clock_error.size), default=0.0)


def make_sections(data: ReportData) -> list[ClockSection]:
    """Return the clocks with an error or a spec. A sensor without a spec counts as a clock of its own."""
    groups: dict[str, list[Reading]] = {}
    for name, reading in data.readings.items():
        sensor = data.sensors.get(name)
        groups.setdefault(name if sensor is None else sensor.clock or GLOBAL_TIME, []).append(reading)
    sections = []
    faults = scheduled_spans(data)
    for clock, readings in groups.items():
        readings.sort(key=lambda reading: -reading.time.size)
        spans = [span for (name, _), pairs in faults.items() if name == clock for span in pairs]
        section = ClockSection(clock, readings, data.clocks.get(clock), spans)
        if section.max_error > 0.0 or section.spec is not None:
            sections.append(section)
    return sections


def make_figures(section: ClockSection, span: tuple[float, float]) -> Iterator[SvgFigure]:
    """Yield the figures of one clock over a span (s): stamps against true time, and the Allan deviation."""
    y_axis = linear_axis("stamp minus true time", "s", [r.clock_error for r in section.readings], zero=True)
    names = ", ".join(reading.name for reading in section.readings)
    caption = f"Stamps of {names}. Largest error: {format_quantity(section.max_error, 's')}."
    figure = SvgFigure(f"Clock {section.name}", time_axis(*span), [Plot(y_axis, 210.0)], caption)
    figure.draw_horizontal_line(figure.plots[0], 0.0, "zero")
    lines = list(enumerate(section.readings[:LINE_COLOURS]))
    for number, reading in reversed(lines):
        figure.draw_band(figure.plots[0], reading.time, reading.clock_error, f"c{number}")
    figure.legend = [(f"c{number}", reading.name.rpartition("::")[2]) for number, reading in lines]
    yield figure
    allan_figure = _make_allan_figure(section)
    if allan_figure is not None:
        yield allan_figure


def clock_terms(clock: Clock) -> tuple[theory.NoiseTerm, ...]:
    """Return the terms of the Allan variance of a free-running clock's frequency; its jitter is white phase noise."""
    noise, oscillator = clock.noise, clock.oscillator
    jitter = math.sqrt(noise.stddev**2 + noise.precision**2 / 12.0)
    terms: list[theory.NoiseTerm] = [theory.Quantisation(jitter)] if jitter > 0.0 else []
    if noise.has_dynamic_bias:
        tau = noise.dynamic_bias_correlation_time
        terms.append(theory.PhaseGaussMarkov(noise.dynamic_bias_stddev * math.sqrt(0.5 * tau), tau))
    if oscillator is not None:
        power_law = (oscillator.white_frequency, oscillator.flicker_frequency, oscillator.random_walk_frequency)
        terms += theory.oscillator_terms(*power_law, math.sqrt(oscillator.ageing**2 + oscillator.ageing_stddev**2))
    return tuple(terms)


def _make_allan_figure(section: ClockSection) -> SvgFigure | None:
    """Return the Allan deviation of a clock's frequency outside its faults, or None with too few stamps."""
    reading = section.readings[0]
    interval = float(np.median(np.diff(reading.time))) if reading.time.size >= sensor_section.MIN_ALLAN_ROWS else 0.0
    if not interval > 0.0:
        return None
    rate, known = 1.0 / interval, np.isfinite(reading.clock_error)
    for first, last in section.fault_spans:
        known &= (reading.time < first) | (reading.time > last)
    error = reading.clock_error[sensor_section.longest_even_rows(known, reading.time, rate)]
    if error.size < sensor_section.MIN_ALLAN_ROWS or not np.any(error):
        return None
    factors = allan.log_spaced_factors((error.size - 1) // 3, sensor_section.SPANS_PER_DECADE)
    curve = allan.oadev(error, rate, factors, phase=True, exponent=0)
    if not np.any(curve.deviation > 0.0):
        return None
    declared: FloatArray | None = None
    terms = clock_terms(section.spec) if section.spec is not None else ()
    if section.spec is None:
        note = "The clock's spec is not recorded: name the world with --world."
    elif section.spec.discipline is not None:
        note = "The clock is disciplined; no closed form of its Allan deviation is known."
    elif not terms:
        note = "The clock has no declared noise."
    else:
        note = "Dashed: the declared noise."
        declared = np.sqrt(theory.allan_variance(terms, factors, rate))
    y_axis = log_axis("Allan deviation", "", [curve.deviation] if declared is None else [curve.deviation, declared])
    caption = f"Allan deviation of the fractional frequency, from the stamps of {reading.name}. {note}"
    caption += sensor_section.format_coverage(error.size, reading.time, rate)
    x_axis = sensor_section.averaging_time_axis(curve.tau)
    figure = SvgFigure(f"Stability of {section.name}", x_axis, [Plot(y_axis, 210.0)], caption)
    figure.legend = [("c0", "measured")]
    if declared is not None:
        figure.draw_line(figure.plots[0], curve.tau, declared, "declared")
        figure.legend.append(("declared", "declared"))
    figure.draw_line(figure.plots[0], curve.tau, curve.deviation, "c0")
    return figure
