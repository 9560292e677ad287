"""Injected faults of a recording, with their time spans."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from navsense.core.readings import Reading
from navsense.core.typing import BoolArray
from navsense.figures import find_time_spans
from navsense.report.axes import make_time_axis
from navsense.report.report_data import ReportData
from navsense.report.svg_figure import STRIP_HEIGHT, Plot, SvgFigure


def find_fault_rows(reading: Reading) -> dict[str, BoolArray]:
    """Return the rows (n,) on which each kind of fault acts; kinds that never act are absent."""
    return {kind: rows for kind, rows in reading.fault.items() if rows.any()}


def list_faults_without_flags(data: ReportData) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return the spans (s) of scheduled faults that no reading has flags for, by name and kind.

    These are the faults of clocks and of the world, and of sensors without fault flags. In recordings of messages they
    are also the dropouts: a dropped sample has no message.
    """
    spans: dict[tuple[str, str], list[tuple[float, float]]] = {}
    flagged = {name: find_fault_rows(reading) for name, reading in data.readings.items() if reading.fault}
    for fault in data.scheduled_faults:
        name, kind = str(fault["of"]), str(fault["kind"])
        if name in flagged and (kind != "dropout" or kind in flagged[name]):
            continue
        first, last = max(float(fault["start"]), data.span[0]), min(float(fault.get("end", math.inf)), data.span[1])
        if last >= first:
            spans.setdefault((name, kind), []).append((first, last))
    return spans


def make_fault_figures(data: ReportData) -> Iterator[SvgFigure]:
    """Yield a figure with one strip per sensor and kind of fault, nothing without faults."""
    spans = [
        (name, kind, find_time_spans(reading.time, rows))
        for name, reading in data.readings.items()
        for kind, rows in find_fault_rows(reading).items()
    ]
    spans += [
        (name, kind, (np.array([first for first, _ in pairs]), np.array([last for _, last in pairs])))
        for (name, kind), pairs in list_faults_without_flags(data).items()
    ]
    if not spans:
        return
    x_axis, plots = make_time_axis(*data.span), []
    for name, kind, (starts, ends) in spans:
        plot = Plot(x_axis, None, STRIP_HEIGHT, f"{data.short_names[name]}: {kind.replace('_', ' ')}")
        plot.draw_spans(starts, ends, "bad")
        plots.append(plot)
    caption = "Faults are not part of an instrument's noise."
    yield SvgFigure("Faults", plots, caption, [("bad", "the fault acts")])
