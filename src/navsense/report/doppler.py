"""Figures of Doppler instruments: validity of beams, and velocities by cell or depth as waterfalls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from navsense.core.series import Current, Reading
from navsense.core.typing import AnyArray, FloatArray
from navsense.figures import Scale
from navsense.report.axes import MAX_AXIS_VALUE, MIN_SPAN, Axis, axis_title, choose_scale, finite_range, time_axis
from navsense.report.downsample import find_time_spans
from navsense.report.draw import ColourBar, Plot, SvgFigure
from navsense.report.faults import STRIP
from navsense.report.labels import EARTH, axis_labels
from navsense.report.png import MAGNITUDE_COLOURS, SIGNED_COLOURS, colour_pixels, png_uri
from navsense.sensors.adcp import Adcp
from navsense.world import MountedSensor

IMAGE_COLUMNS, PIXELS_PER_ROW = 420, 4
"""Columns of a waterfall at most, and pixels per row."""

VELOCITY_MODES = ((1.0, "good", "bottom"), (2.0, "water", "water"), (0.0, "bad", ""))
"""Values of `velocity_mode` with the class of their colour and their name."""

TITLE_HEIGHT = 90.0
"""Minimum image height (units) for the full title of the y axis; below, only the unit is shown."""

EMPTY = np.zeros(0)
"""Array that a reading does not have."""


@dataclass(frozen=True)
class ColourScale:
    """Title and unit of the colours of a waterfall, the limits (SI) of its colours, and its height (units).

    Without `limits` they enclose all but 0.5 % of the values, symmetrically about 0 if `signed`.
    """

    title: str
    scale: Scale
    limits: tuple[float, float] | None = None
    signed: bool = False
    height: float = 110.0


VELOCITY = ColourScale("velocity", Scale(1.0, "m/s"), signed=True)
"""Colours of velocities. The prefix of the unit fits their size."""


def beam_figure(reading: Reading, span: tuple[float, float]) -> SvgFigure | None:
    """Return when each beam is valid and what the velocity is relative to; None if the readings do not contain it."""
    velocity, flags = reading.arrays.get("beam_velocity"), reading.arrays.get("beam_valid")
    if flags is None and velocity is None:
        return None
    rows = np.asarray(reading.emitted)
    time = reading.time[rows]
    valid = np.isfinite(np.asarray(velocity)[rows]) if flags is None else np.asarray(flags)[rows] > 0.5
    count = valid.shape[1]
    plots = [Plot(None, STRIP, f"beam {beam + 1}: {_format_valid_share(valid[:, beam])}") for beam in range(count)]
    caption = "Green: valid. Red: no echo, out of range, or lost. Blue: velocity through the water."
    figure = SvgFigure("Validity of beams", time_axis(*span), plots, caption)
    for beam in range(count):
        _draw_strip(figure, plots[beam], time, valid[:, beam], "good")
        _draw_strip(figure, plots[beam], time, ~valid[:, beam], "bad")
    figure.legend = [("good", "valid"), ("bad", "not valid")]
    if "velocity_mode" in reading.arrays:
        mode = np.asarray(reading.arrays["velocity_mode"])[rows]
        plots.append(Plot(None, STRIP, f"velocity: {_format_mode_shares(mode)}"))
        for value, css_class, _ in VELOCITY_MODES:
            _draw_strip(figure, plots[-1], time, mode == value, css_class)
        figure.legend.append(("water", "through the water"))
    return figure


def _format_valid_share(valid: AnyArray) -> str:
    return f"{100.0 * float(np.mean(valid)):.4g} % valid" if valid.size else "no data"


def _format_mode_shares(mode: AnyArray) -> str:
    if not mode.size:
        return "no data"
    shares = {name: 100.0 * float(np.mean(mode == value)) for value, _, name in VELOCITY_MODES if name}
    return ", ".join(f"{name} {share:.4g} %" for name, share in shares.items() if share) or "none"


def _draw_strip(figure: SvgFigure, plot: Plot, time: FloatArray, mask: AnyArray, css_class: str) -> None:
    if mask.any():
        figure.spans(plot, *find_time_spans(time, mask), css_class)


def cell_positions(reading: Reading, sensor: MountedSensor | None, count: int) -> tuple[FloatArray, str]:
    """Return the distances (m) of an ADCP's cells, or their numbers if unknown, and the title of an axis of them."""
    distance = reading.arrays.get("cell_distance", EMPTY)
    if distance.size and distance.shape == (reading.time.size, count) and np.isfinite(distance[0]).all():
        return np.asarray(distance[0], dtype=np.float64), "distance (m)"
    if sensor is not None and isinstance(sensor.spec, Adcp):
        declared = np.asarray(sensor.spec.cell_distance, dtype=np.float64)
        if declared.shape == (count,):
            return declared, "distance (m)"
    return np.arange(1.0, count + 1.0), "cell"


def profile_figures(reading: Reading, sensor: MountedSensor | None, span: tuple[float, float]) -> Iterator[SvgFigure]:
    """Yield the profiles of an ADCP and their errors as waterfalls."""
    name = profile_array(reading)
    if name is None:
        return
    velocity, rows = reading.arrays[name], np.asarray(reading.emitted)
    distance, title = cell_positions(reading, sensor, velocity.shape[1])
    labels = axis_labels(reading.type, name, velocity.shape[2], sensor)
    axes = (distance, title, span, labels)
    yield waterfall("Current profile", reading.time[rows], velocity[rows], *axes)
    ideal = reading.ideal.get(name)
    if ideal is not None and ideal.shape == velocity.shape:
        colours = replace(VELOCITY, title="reading minus ideal")
        yield waterfall("Profile minus ideal", reading.time[rows], velocity[rows] - ideal[rows], *axes, colours)


def profile_array(reading: Reading) -> str | None:
    """Return the name of the array with an ADCP's profile: `velocity`, or `beam_velocity` if that is all NaN."""
    names = [name for name in ("velocity", "beam_velocity") if reading.arrays.get(name, EMPTY).ndim == 3]
    known = [name for name in names if np.isfinite(reading.arrays[name]).any()]
    return next(iter(known or names), None)


def current_figure(current: Current, span: tuple[float, float]) -> SvgFigure | None:
    """Return the true current by depth as a waterfall; None if it is recorded at one place only."""
    layers = current.layers
    if layers is None or len(layers.depths) < 2:
        return None
    depths = np.array(layers.depths)
    return waterfall("True current by depth", current.time, layers.velocity, depths, "depth (m)", span, EARTH)


def waterfall(
    title: str,
    time: FloatArray,
    values: FloatArray,
    positions: FloatArray,
    y_title: str,
    span: tuple[float, float],
    labels: Sequence[str],
    colours: ColourScale = VELOCITY,
) -> SvgFigure:
    """Return values (n, k, a) at times (n,) s and positions (k,) m as `a` images with labels, the nearest on top."""
    order = np.argsort(positions)
    half = 0.5 * float(np.median(np.diff(positions[order]))) if positions.size > 1 else 0.5
    if colours.height <= TITLE_HEIGHT:
        y_title = y_title.partition("(")[2].rstrip(")") or y_title
    y_axis = Axis(float(positions.max()) + half, float(positions.min()) - half, y_title, Scale(1.0, "m"))
    low, high = colours.limits or _colour_limits(values, signed=colours.signed)
    anchors = SIGNED_COLOURS if colours.signed else MAGNITUDE_COLOURS
    share = 100.0 * float(np.mean(np.isfinite(values))) if values.size else 0.0
    caption = f"{share:.3g} % of the cells have a value, the others are grey. The nearest are on top."
    plots = [Plot(y_axis, colours.height, label) for label in labels]
    figure = SvgFigure(title, time_axis(*span), plots, caption)
    for axis, plot in enumerate(plots):
        columns = _column_means(time, values[:, order, axis], span)
        pixels = colour_pixels((columns.T - low) / (high - low), anchors)
        figure.image(plot, png_uri(np.repeat(pixels, PIXELS_PER_ROW, axis=0)), "pixels")
    scale = choose_scale("m/s", max(abs(low), abs(high))) if colours.signed else colours.scale
    axis_of_colours = Axis(low * scale.factor, high * scale.factor, axis_title(colours.title, scale.unit), scale)
    figure.colour_bar = ColourBar(png_uri(colour_pixels(np.linspace(0.0, 1.0, 128)[None, :], anchors)), axis_of_colours)
    return figure


def _colour_limits(values: FloatArray, *, signed: bool) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if signed:
        limit = min(float(np.percentile(np.abs(known), 99.5)), MAX_AXIS_VALUE) if known.size else 0.0
        limit = limit if limit > 1.0 / MAX_AXIS_VALUE else 1.0
        return -limit, limit
    low, high = finite_range([np.percentile(known, (0.5, 99.5))] if known.size else [])
    return (low, high) if high - low > MIN_SPAN * max(abs(low), abs(high)) else (low - 0.5, low + 0.5)


def _column_means(time: FloatArray, values: FloatArray, span: tuple[float, float]) -> FloatArray:
    """Return the means (c, k) of values (n, k) in the columns of an image over a span (s); NaN without a value."""
    interval = float(np.median(np.diff(time))) if time.size > 1 else 1.0
    duration = max(span[1] - span[0], 1e-9)
    count = max(1, min(IMAGE_COLUMNS, math.ceil(duration / interval)))
    column = np.clip(((time - span[0]) / duration * count).astype(np.int64), 0, count - 1)
    sums, counts = np.zeros((count, values.shape[1])), np.zeros((count, values.shape[1]))
    finite = np.isfinite(values)
    np.add.at(sums, column, np.where(finite, values, 0.0))
    np.add.at(counts, column, finite)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(counts > 0.0, sums / counts, math.nan))
