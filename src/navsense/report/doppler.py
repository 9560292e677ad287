"""What a Doppler instrument sees: which beams are valid when, and water's velocity by cell or depth as a waterfall."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from navsense.report.axes import FARTHEST, NARROWEST, Axis, Scale, bounds, over_time, scale_of, titled
from navsense.report.draw import Bar, Figure, Plot
from navsense.report.frames import EARTH, labels_of
from navsense.report.raster import SIGNED, SPEED, colours, uri
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


LONG = 90.0
"""Units from which on a picture is high enough for the whole title of its axis, else it has the unit alone."""

TRACKS = ((1.0, "bottom"), (2.0, "water"))
"""Values of `velocity_mode`, and what the velocity is told over."""


@dataclass(frozen=True)
class Shades:
    """What the colours of a waterfall mean: their title, unit and scale, and from what to what (SI) they go.

    Without `ends` they go from least to greatest, `signed` ones as far to either side of 0, as all but 0.5 % do.
    """

    title: str
    scale: Scale
    ends: tuple[float, float] | None = None
    signed: bool = False
    height: float = 110.0


VELOCITY = Shades("velocity", Scale(1.0, "m/s"), signed=True)
"""Those of velocities, whose unit has a prefix that suits them."""

NONE = np.zeros(0)
"""What stands for an array that is not there."""


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
        plots.append(Plot(None, STRIP, f"velocity: {_tracks(np.asarray(mode)[rows])}"))
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


def _tracks(mode: AnyArray) -> str:
    """Return in words over what the velocity is told, and how often."""
    if not mode.size:
        return "never told"
    shares = {name: 100.0 * float(np.mean(mode == value)) for value, name in TRACKS}
    return ", ".join(f"{name} {share:.4g} %" for name, share in shares.items() if share) or "none"


def _strip(figure: Figure, plot: Plot, time: FloatArray, on: AnyArray, kind: str) -> None:
    """Draw the spans in which something is so, each row until the next."""
    if not on.any():
        return
    edges = np.flatnonzero(np.diff(np.concatenate(([False], on, [False])).astype(np.int8)))
    step = float(np.median(np.diff(time))) if time.size > 1 else 1.0
    ends = np.append(time, time[-1] + step)
    figure.bars(plot, time[edges[::2]], ends[edges[1::2]], kind)


def cells_of(reading: Reading, sensor: MountedSensor | None, count: int) -> tuple[FloatArray, str]:
    """Return the distances (m) of an ADCP's cells, or their numbers where nothing tells them; and what they are."""
    told = reading.arrays.get("cell_distance")
    if told is not None and told.size and told.shape == (reading.time.size, count) and np.isfinite(told[0]).all():
        return np.asarray(told[0], dtype=np.float64), "distance (m)"
    if sensor is not None and isinstance(sensor.spec, Adcp):
        found = np.asarray(sensor.spec.cell_distance, dtype=np.float64)
        if found.shape == (count,):
            return found, "distance (m)"
    return np.arange(1.0, count + 1.0), "cell"


def profile_of(reading: Reading, sensor: MountedSensor | None, span: tuple[float, float]) -> Iterator[Figure]:
    """Yield the profiles of an ADCP as waterfalls, and what they are off by; along its beams where it has no other."""
    name = profiled(reading)
    if name is None:
        return
    velocity, rows = reading.arrays[name], np.asarray(reading.emitted)
    where, title = cells_of(reading, sensor, velocity.shape[1])
    names = labels_of(reading.type, name, velocity.shape[2], sensor)
    of_cells = (where, title, span, names)
    yield waterfall("Current profile", reading.time[rows], velocity[rows], *of_cells)
    true = reading.ideal.get(name)
    if true is not None and true.shape == velocity.shape:
        off = replace(VELOCITY, title="reading less truth")
        yield waterfall("Profile less truth", reading.time[rows], velocity[rows] - true[rows], *of_cells, off)


def profiled(reading: Reading) -> str | None:
    """Return the array with an ADCP's profile: `velocity`, along the beams where it has no number; None for none."""
    names = [name for name in ("velocity", "beam_velocity") if reading.arrays.get(name, NONE).ndim == 3]
    known = [name for name in names if np.isfinite(reading.arrays[name]).any()]
    return next(iter(known or names), None)


def current_of(current: Current, span: tuple[float, float]) -> Figure | None:
    """Return the water's true velocity by depth as a waterfall; None where it is recorded at one place only."""
    layers = current.layers
    if layers is None or len(layers.depths) < 2:
        return None
    depths = np.array(layers.depths)
    return waterfall("True current by depth", current.time, layers.velocity, depths, "depth (m)", span, EARTH)


def waterfall(
    title: str,
    time: FloatArray,
    values: FloatArray,
    where: FloatArray,
    upwards: str,
    span: tuple[float, float],
    names: Sequence[str],
    shades: Shades | None = None,
) -> Figure:
    """Return values (n, k, a) at instants (n,) s and places `where` (k,) m as `a` pictures, what they are called above.

    They are velocities (m/s) where no shades are given.
    """
    shades = shades or VELOCITY
    along, order = over_time(*span), np.argsort(where)
    half = 0.5 * float(np.median(np.diff(where[order]))) if where.size > 1 else 0.5
    short = upwards if shades.height > LONG else upwards.partition("(")[2].rstrip(")") or upwards
    up = Axis(float(where.max()) + half, float(where.min()) - half, short, Scale(1.0, "m"))
    low, high = shades.ends or _ends(values, signed=shades.signed)
    anchors = SIGNED if shades.signed else SPEED
    share = 100.0 * float(np.mean(np.isfinite(values))) if values.size else 0.0
    caption = f"{share:.3g} % of the cells have a number, the others are grey. The nearest are on top."
    figure = Figure(title, along, [Plot(up, shades.height, name) for name in names], caption)
    for axis, plot in enumerate(figure.plots):
        columns = _columns(time, values[:, order, axis], span)
        pixels = colours((columns.T - low) / (high - low), anchors)
        figure.picture(plot, uri(np.repeat(pixels, ROWS, axis=0)), "pixels")
    scale = scale_of("m/s", max(abs(low), abs(high))) if shades.signed else shades.scale
    bar = Axis(low * scale.factor, high * scale.factor, titled(shades.title, scale.unit), scale)
    figure.bar = Bar(uri(colours(np.linspace(0.0, 1.0, 128)[None, :], anchors)), bar)
    return figure


def _ends(values: FloatArray, *, signed: bool) -> tuple[float, float]:
    """Return from what to what colours go."""
    known = values[np.isfinite(values)]
    if signed:
        most = min(float(np.percentile(np.abs(known), 99.5)), FARTHEST) if known.size else 0.0
        most = most if most > 1.0 / FARTHEST else 1.0
        return -most, most
    low, high = bounds([np.percentile(known, (0.5, 99.5))] if known.size else [])
    return (low, high) if high - low > NARROWEST * max(abs(low), abs(high)) else (low - 0.5, low + 0.5)


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
