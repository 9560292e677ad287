"""Faults that a recording tells of: which acted on which sensor, and when."""

from __future__ import annotations

import math

import numpy as np

from navsense.report.axes import over_time
from navsense.report.draw import Figure, Plot
from navsense.report.recorded import Recorded
from navsense.series import Reading
from navsense.typing import BoolArray, FloatArray

STRIP = 26.0
"""Units that the strip of a fault is high."""


def faults_of(reading: Reading) -> dict[str, BoolArray]:
    """Return on which rows (n,) each kind of fault acts, by its name; kinds that never act are left out."""
    return {kind: rows for kind, rows in reading.fault.items() if rows.any()}


def spans_of(time: FloatArray, rows: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return where the spans (k,) s begin and end in which something acts, each row until the next."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], rows, [False])).astype(np.int8)))
    step = float(np.median(np.diff(time))) if time.size > 1 else 1.0
    ends = np.append(time, time[-1] + step)
    return np.asarray(time[edges[::2]]), np.asarray(ends[edges[1::2]])


def others(found: Recorded) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return the spans (s) of faults that no reading tells of, by whose they are and kind: of clocks and the world.

    Of sensors in recordings of messages they are dropouts, of which there are no messages.
    """
    out: dict[tuple[str, str], list[tuple[float, float]]] = {}
    told = {name: faults_of(reading) for name, reading in found.readings.items() if reading.fault}
    for one in found.planned:
        name, kind = str(one["of"]), str(one["kind"])
        if name in told and (kind != "dropout" or kind in told[name]):
            continue
        first, last = max(float(one["start"]), found.span[0]), min(float(one.get("end", math.inf)), found.span[1])
        if last >= first:
            out.setdefault((name, kind), []).append((first, last))
    return out


def figure_of(found: Recorded) -> Figure | None:
    """Return when faults acted, a strip for each of whom and each kind; None where none did."""
    readings, span = found.readings, found.span
    plots, acted = [], []
    for name, reading in readings.items():
        for kind, rows in faults_of(reading).items():
            plots.append(Plot(None, STRIP, f"{name.rpartition('::')[2]}: {kind.replace('_', ' ')}"))
            acted.append(spans_of(reading.time, rows))
    for (name, kind), spans in others(found).items():
        plots.append(Plot(None, STRIP, f"{name.rpartition('::')[2]}: {kind.replace('_', ' ')}"))
        acted.append((np.array([first for first, _ in spans]), np.array([last for _, last in spans])))
    if not plots:
        return None
    caption = (
        "Red: when each fault acted on the sensor, as the recording tells it. None of it is an instrument's own noise."
    )
    figure = Figure("Faults", over_time(*span), plots, caption)
    for plot, (starts, ends) in zip(plots, acted, strict=True):
        figure.bars(plot, starts, ends, "bad")
    return figure
