"""Figures of clocks: stamps against true time, and measured and declared Allan deviations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.clock import Clock
from navsense.core.readings import Reading
from navsense.messages.base import get_clock_name
from navsense.report.allan_figure import (
    MIN_ALLAN_ROWS,
    find_regular_stretch,
    format_coverage,
    list_clock_terms,
    make_allan_figure,
    measure_allan,
)
from navsense.report.axes import format_quantity, make_linear_axis, make_time_axis
from navsense.report.faults import list_faults_without_flags
from navsense.report.report_data import ReportData
from navsense.report.svg_figure import SvgFigure, stack_plots

MAX_SENSORS = 6
"""Sensors of a clock whose stamps its figure shows at most."""


STAMP_RESOLUTION = 1e-9
"""Unit of a stamp (s). On true time, the rounding of a stamp is below it: that is no error of a clock."""


@dataclass(frozen=True, eq=False)
class ClockSection:
    """One clock with the readings stamped by it, those with most samples first; its spec; spans (s) of its faults."""

    name: str
    readings: Sequence[Reading]
    spec: Clock | None
    fault_spans: Sequence[tuple[float, float]] = ()

    @property
    def max_error(self) -> float:
        """Largest error (s) of a stamp."""
        return max((float(np.abs(r.clock_error).max()) for r in self.readings if r.clock_error.size), default=0.0)


def make_clock_sections(data: ReportData) -> list[ClockSection]:
    """Return the clocks with an error or a specification. The clock of an unknown sensor has the sensor's name."""
    groups: dict[str, list[Reading]] = {}
    for name, reading in data.readings.items():
        sensor = data.sensors.get(name)
        groups.setdefault(name if sensor is None else get_clock_name(sensor), []).append(reading)
    sections = []
    faults = list_faults_without_flags(data)
    for clock, readings in groups.items():
        readings.sort(key=lambda reading: -reading.time.size)
        spans = [span for (name, _), pairs in faults.items() if name == clock for span in pairs]
        section = ClockSection(clock, readings, data.clocks.get(clock), spans)
        if section.max_error > STAMP_RESOLUTION or section.spec is not None:
            sections.append(section)
    return sections


def make_clock_figures(section: ClockSection, data: ReportData) -> Iterator[SvgFigure]:
    """Yield the figures of one clock: stamps against true time, and the Allan deviation."""
    shown, hidden = section.readings[:MAX_SENSORS], len(section.readings) - MAX_SENSORS
    title = "stamp minus true time" if len(shown) == 1 else "error"
    y_axis = make_linear_axis(title, "s", [r.clock_error for r in section.readings], zero=True)
    names = ", ".join(reading.name for reading in shown) + (f" and {hidden} more, not drawn" if hidden > 0 else "")
    caption = f"Stamp minus true time of {names}. Largest error of all: {format_quantity(section.max_error, 's')}."
    # One plot per sensor: sensors of one clock have nearly the same error, and would cover each other.
    figure = stack_plots(f"Clock {section.name}", make_time_axis(*data.span), [y_axis] * len(shown), caption)
    for plot, reading in zip(figure.plots, shown, strict=True):
        plot.draw_horizontal_line(0.0, "zero")
        plot.draw_band(reading.time, reading.clock_error, "c0")
        plot.label = data.short_names[reading.name]
    figure.legend = [("c0", "error of the stamps"), ("zero", "true time")]
    yield figure
    yield from _make_stability_figures(section)


def _make_stability_figures(section: ClockSection) -> Iterator[SvgFigure]:
    """Yield the Allan deviation of a clock's frequency outside its faults; nothing with too few stamps."""
    reading = section.readings[0]
    interval = float(np.median(np.diff(reading.time))) if reading.time.size >= MIN_ALLAN_ROWS else 0.0
    if not interval > 0.0:
        return
    rate, rows = 1.0 / interval, np.isfinite(reading.clock_error)
    for first, last in section.fault_spans:
        rows &= (reading.time < first) | (reading.time > last)
    error = reading.clock_error[find_regular_stretch(rows, reading.time, rate)]
    if error.size < MIN_ALLAN_ROWS or not np.any(error):
        return
    is_disciplined = section.spec is not None and section.spec.discipline is not None
    terms = () if section.spec is None or is_disciplined else list_clock_terms(section.spec)
    curve, declared = measure_allan(error, rate, terms, phase=True)
    if not np.any(curve.deviation > 0.0):
        return
    if section.spec is None:
        note = "The clock's spec is not recorded: name the world with --world."
    elif is_disciplined:
        note = "The clock is disciplined; no closed form of its Allan deviation is known."
    else:
        note = "Dashed: the declared noise." if terms else "The clock has no declared noise."
    caption = f"Allan deviation of the fractional frequency, from the stamps of {reading.name}. {note}"
    caption += format_coverage(error.size, reading.time, rate)
    curves = {("c0", "measured"): (curve, declared)}
    yield make_allan_figure(f"Stability of {section.name}", "", curves, caption)
