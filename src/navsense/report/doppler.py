"""What a Doppler instrument sees: which beams are valid when, and water's velocity by cell or depth as a waterfall."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from navsense.report.axes import Axis, Scale, over_time, quantity
from navsense.report.draw import Figure, Plot
from navsense.report.raster import SIGNED, colours, uri
from navsense.sensors.adcp import Adcp
from navsense.series import Current, Reading
from navsense.typing import AnyArray, FloatArray
from navsense.world import MountedSensor

COLUMNS, ROWS = 420, 4
"""Columns of a waterfall at most, and pixels that a row of it has."""

STRIP = 26.0
"""Units that the strip of a beam is high."""

MODES = ((1.0, "good"), (2.0, "water"), (0.0, "bad"))
"""Values of `velocity_mode`, over the bottom, through the water and none, and the classes of their colours."""


def beams_of(reading: Reading, span: tuple[float, float]) -> Figure | None:
    """Return when each beam is valid, and what the velocity is told over; None where the readings do not say it."""
    heard, good = reading.arrays.get("beam_velocity"), reading.arrays.get("beam_valid")
    if good is None and heard is None:
        return None
    rows = np.asarray(reading.emitted)
    time = reading.time[rows]
    valid = np.isfinite(np.asarray(heard)[rows]) if good is None else np.asarray(good)[rows] > 0.5
    count = valid.shape[1]
    plots = [Plot(None, STRIP, f"beam {beam + 1}: {_share(valid[:, beam])}") for beam in range(count)]
    mode = reading.arrays.get("velocity_mode")
    if mode is not None:
        plots.append(Plot(None, STRIP, f"velocity: {_share(np.asarray(mode)[rows] > 0.5)}"))
    caption = (
        "Green: valid. Red: no echo, out of range, or lost. Blue: velocity through the water instead of the bottom."
    )
    figure = Figure("Validity of beams", over_time(*span), plots, caption)
    for beam in range(count):
        _strip(figure, plots[beam], time, valid[:, beam], "good")
        _strip(figure, plots[beam], time, ~valid[:, beam], "bad")
    if mode is not None:
        for value, kind in MODES:
            _strip(figure, plots[-1], time, np.asarray(mode)[rows] == value, kind)
    figure.keys = [("good", "valid"), ("bad", "not valid")] + (
        [("water", "through the water")] if mode is not None else []
    )
    return figure


def _share(valid: AnyArray) -> str:
    """Return a share in words."""
    return f"{100.0 * float(np.mean(valid)):.4g} % valid" if valid.size else "never told"


def _strip(figure: Figure, plot: Plot, time: FloatArray, on: AnyArray, kind: str) -> None:
    """Draw the spans in which something is so, each row until the next."""
    if not on.any():
        return
    edges = np.flatnonzero(np.diff(np.concatenate(([False], on, [False])).astype(np.int8)))
    step = float(np.median(np.diff(time))) if time.size > 1 else 1.0
    ends = np.append(time, time[-1] + step)
    figure.bars(plot, time[edges[::2]], ends[edges[1::2]], kind)


def cells_of(sensor: MountedSensor | None, count: int) -> tuple[FloatArray, str]:
    """Return the distances (m) of an ADCP's cells, or their numbers where its sheet is not known; and what they are."""
    if sensor is not None and isinstance(sensor.spec, Adcp):
        found = np.asarray(sensor.spec.cell_distance, dtype=np.float64)
        if found.shape == (count,):
            return found, "distance (m)"
    return np.arange(1.0, count + 1.0), "cell"


def profile_of(reading: Reading, sensor: MountedSensor | None, span: tuple[float, float]) -> Iterator[Figure]:
    """Yield the profiles of an ADCP as waterfalls, and what they are off by."""
    velocity = reading.arrays.get("velocity")
    if velocity is None or velocity.ndim != 3:
        return
    rows = np.asarray(reading.emitted)
    where, title = cells_of(sensor, velocity.shape[1])
    yield waterfall("Current profile", reading.time[rows], velocity[rows], where, title, span)
    true = reading.truth.get("velocity")
    if true is not None and true.shape == velocity.shape:
        rest = velocity[rows] - true[rows]
        yield waterfall("Profile less truth", reading.time[rows], rest, where, title, span)


def current_of(current: Current, span: tuple[float, float]) -> Figure | None:
    """Return the water's true velocity by depth as a waterfall; None where it is recorded at one place only."""
    layers = current.layers
    if layers is None or len(layers.depths) < 2:
        return None
    depths = np.array(layers.depths)
    return waterfall("True current by depth", current.time, layers.velocity, depths, "depth (m)", span, "east north up")


def waterfall(
    title: str,
    time: FloatArray,
    velocity: FloatArray,
    where: FloatArray,
    upwards: str,
    span: tuple[float, float],
    axes: str = "x y z",
) -> Figure:
    """Return velocities (n, k, 3) m/s at instants (n,) s and places `where` (k,) m as pictures, one an axis."""
    along, order = over_time(*span), np.argsort(where)
    known = np.abs(velocity[np.isfinite(velocity)])
    most = float(np.percentile(known, 99.5)) if known.size else 1.0
    most = most if most > 0.0 else 1.0
    half = 0.5 * float(np.median(np.diff(where[order]))) if where.size > 1 else 0.5
    up = Axis(float(where.max()) + half, float(where.min()) - half, upwards, Scale(1.0, "m"))
    share = 100.0 * float(np.mean(np.isfinite(velocity))) if velocity.size else 0.0
    caption = (
        f"Blue to red: {quantity(-most, 'm/s')} to {quantity(most, 'm/s')}, white none; {share:.3g} % of the cells "
        f"have a number, the others are clear. The nearest are on top."
    )
    figure = Figure(title, along, [Plot(up, 110.0, name) for name in axes.split()], caption)
    for axis, plot in enumerate(figure.plots):
        columns = _columns(time, velocity[:, order, axis], span)
        pixels = colours(0.5 + 0.5 * columns.T / most, SIGNED)
        figure.picture(plot, uri(np.repeat(pixels, ROWS, axis=0)), "pixels")
    return figure


def _columns(time: FloatArray, values: FloatArray, span: tuple[float, float]) -> FloatArray:
    """Return the means (c, k) of values (n, k) in the columns of a picture over a span (s), NaN where there is none."""
    step = float(np.median(np.diff(time))) if time.size > 1 else 1.0
    whole = max(span[1] - span[0], 1e-9)
    count = max(1, min(COLUMNS, math.ceil(whole / step)))
    column = np.clip(((time - span[0]) / whole * count).astype(np.int64), 0, count - 1)
    sums, counts = np.zeros((count, values.shape[1])), np.zeros((count, values.shape[1]))
    finite = np.isfinite(values)
    np.add.at(sums, column, np.where(finite, values, 0.0))
    np.add.at(counts, column, finite)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(counts > 0.0, sums / counts, math.nan))
