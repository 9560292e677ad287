"""Figures and table of one sensor: readings, residuals, histograms and Allan deviations against the declared noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import chain

import numpy as np

from navsense.core.readings import Reading
from navsense.core.typing import FloatArray
from navsense.figures import Scale, find_time_spans
from navsense.report import residuals
from navsense.report.allan_figure import (
    MIN_ALLAN_ROWS,
    find_regular_stretch,
    format_coverage,
    list_noise_terms,
    make_allan_figure,
    measure_allan,
)
from navsense.report.axes import (
    DASH,
    MAX_AXIS_VALUE,
    Axis,
    format_axis_title,
    format_quantity,
    make_linear_axis,
    make_time_axis,
)
from navsense.report.residuals import NoiseTest, ResidualChannel
from navsense.report.svg_figure import LINE_COLOURS, SvgFigure, stack_plots
from navsense.world import MountedSensor

BINS = 61
"""Bars of a histogram."""

MIN_HALF_WIDTH = 4.5
"""Smallest half-width of a histogram, in standard deviations."""

MAX_PLOTS = 8
"""Plots of one figure at most."""

TIME_ARRAYS = frozenset(("time_of_validity", "water_time_of_validity"))
"""Arrays of times, without residuals."""

CELL_ARRAYS = frozenset(("error_velocity", "percent_good", "cell_distance"))
"""Arrays of an ADCP with one value per cell: `doppler` shows them."""

MAX_ZERO_DISTANCE = 1.5
"""Distance of a residual to zero, divided by its range, up to which its axis includes zero."""


@dataclass(frozen=True, eq=False)
class ArraySection:
    """One array of a sensor with its channels, and the test of the noise of each one, or the reason without a test.

    water_spans: starts and ends (k,) s of the spans in which a velocity is through the water.
    note: text about these spans for the captions of figures over time.
    """

    name: str
    channels: Sequence[ResidualChannel]
    tests: Sequence[NoiseTest | str]
    water_spans: tuple[FloatArray, FloatArray] = (np.zeros(0), np.zeros(0))
    note: str = ""

    @property
    def title(self) -> str:
        """Name of the array as text."""
        return self.name.replace("_", " ")

    @property
    def has_declared_noise(self) -> bool:
        """True if a channel has declared noise."""
        return any(channel.declared_stddev for channel in self.channels)


def make_array_sections(reading: Reading, sensor: MountedSensor | None) -> list[ArraySection]:
    """Return the arrays of a sensor that have ideal values, those with declared noise first."""
    sections = []
    for name in reading.arrays:
        if name in TIME_ARRAYS or (reading.type == "adcp" and name in CELL_ARRAYS):
            continue
        channels = residuals.make_channels(reading, name, sensor)
        if not any(np.isfinite(channel.residual).any() for channel in channels) or _are_constant_flags(channels):
            continue
        tests = [residuals.check_noise(channel, sensor) for channel in channels]
        water_spans, note = _find_water_spans(reading, name)
        sections.append(ArraySection(name, channels, tests, water_spans, note))
    return sorted(sections, key=lambda section: not section.has_declared_noise)


def _are_constant_flags(channels: Sequence[ResidualChannel]) -> bool:
    """Return True if the channels are flags or pixels that never change and equal their ideal values."""
    return all(
        c.unit in ("1", "px") and not c.declared_stddev and not c.residual.any() and not np.ptp(c.reading)
        for c in channels
    )


def _find_water_spans(reading: Reading, name: str) -> tuple[tuple[FloatArray, FloatArray], str]:
    """Return the spans (s) in which an array is relative to the water, and a note on how they are compared."""
    emitted = np.asarray(reading.emitted)
    rows = residuals.is_through_water(reading)[emitted]
    if name != "velocity" or not rows.any():
        return (np.zeros(0), np.zeros(0)), ""
    share = f" Through the water: {100.0 * float(np.mean(rows)):.3g} % of the samples"
    if "water_velocity" in reading.ideal:
        note = f"{share}, compared with the ideal velocity through the water."
    else:
        note = f"{share}, left out: the ideal velocity through the water is not recorded."
    return find_time_spans(reading.time[emitted], rows), note


def make_array_figures(section: ArraySection, reading: Reading, span: tuple[float, float]) -> Iterator[SvgFigure]:
    """Yield the figures of one array over a span (s)."""
    x_axis = make_time_axis(*span)
    note = ""
    if len(section.channels) > MAX_PLOTS:
        note = f" The figure shows {MAX_PLOTS} of {len(section.channels)} channels; the table has all."
        section = replace(section, channels=section.channels[:MAX_PLOTS])
    figures = [_make_reading_figure(section, x_axis), _make_residual_figure(section, x_axis)]
    if any(np.nan_to_num(channel.white_residual).any() for channel in section.channels):
        figures.append(_make_histogram_figure(section))
    normalised = residuals.normalise_residuals(reading, section.name, [channel.label for channel in section.channels])
    if normalised:
        figures.append(_make_normalised_figure(normalised))
    for figure in chain(figures, _make_allan_figures(section)):
        figure.caption += note
        yield figure


def _get_line_class(number: int) -> str:
    """Return the CSS class of the line of a channel."""
    return f"c{number % LINE_COLOURS}"


def _list_line_classes(section: ArraySection) -> str:
    """Return the CSS classes of the lines of all channels, with spaces."""
    return " ".join(dict.fromkeys(_get_line_class(number) for number in range(len(section.channels))))


def _make_reading_figure(section: ArraySection, x_axis: Axis) -> SvgFigure:
    """Return the readings with the ideal readings over them."""
    y_axes = [
        make_linear_axis(c.reading_label or section.title, c.unit, (c.reading, c.ideal)) for c in section.channels
    ]
    caption = f"Readings of {section.title}, and the readings of an ideal instrument."
    figure = _stack_channel_plots("Reading and ideal", section, x_axis, y_axes, caption)
    for number, (plot, channel) in enumerate(zip(figure.plots, section.channels, strict=True)):
        plot.draw_band(channel.time, channel.reading, _get_line_class(number))
        plot.draw_series(channel.time, channel.ideal, "dark")
    figure.legend = [(_list_line_classes(section), "reading"), ("dark", "ideal"), *figure.legend]
    return figure


def _stack_channel_plots(
    title: str, section: ArraySection, x_axis: Axis, y_axes: Sequence[Axis], caption: str
) -> SvgFigure:
    """Return a figure with one plot per channel, and with the spans in which a velocity is through the water."""
    figure = stack_plots(title, x_axis, y_axes, caption + section.note)
    figure.legend = [("span", "through the water")] if section.water_spans[0].size else []
    for plot in figure.plots:
        plot.draw_spans(*section.water_spans, "span")
    return figure


def _make_residual_figure(section: ArraySection, x_axis: Axis) -> SvgFigure:
    """Return the residuals with the recorded bias and three declared deviations around it."""
    channels = section.channels
    bounds = []
    for channel in channels:
        offset = channel.residual - channel.bias
        median = float(np.nanmedian(offset)) if np.isfinite(offset).any() else 0.0
        centre, half_width = channel.bias + median, 3.0 * channel.declared_stddev
        bounds.append((centre - half_width, centre + half_width))
    y_axes = [
        make_linear_axis(c.label or "residual", c.unit, (c.residual, *bound), zero=_is_near_zero(c))
        for c, bound in zip(channels, bounds, strict=True)
    ]
    has_bias = any(np.any(channel.bias != 0.0) for channel in channels)
    caption = f"Reading of {section.title} minus the ideal reading."
    if section.name == "orientation":
        caption = "Rotation from the ideal to the measured orientation, as a rotation vector in the ideal sensor axes."
    if has_bias:
        caption += " The thin line is the bias: turn-on bias and drift."
    if section.has_declared_noise:
        middle = "the bias plus the median of the rest" if has_bias else "the median"
        caption += f" Dashed: three declared standard deviations about {middle}."
    figure = _stack_channel_plots("Residual", section, x_axis, y_axes, caption)
    for number, (plot, channel, bound) in enumerate(zip(figure.plots, channels, bounds, strict=True)):
        plot.draw_band(channel.time, channel.residual, _get_line_class(number))
        plot.draw_horizontal_line(0.0, "zero")
        if has_bias:
            plot.draw_series(channel.time, channel.bias, "dark")
        if channel.declared_stddev:
            for curve in bound:
                plot.draw_series(channel.time, curve, "declared")
    legend = [(_list_line_classes(section), "residual"), *([("dark", "bias")] if has_bias else [])]
    legend += [("declared", "declared ±3 σ")] if section.has_declared_noise else []
    figure.legend = [*legend, ("zero", "zero"), *figure.legend]
    return figure


def _is_near_zero(channel: ResidualChannel) -> bool:
    """Return True if the axis of a residual includes zero. A distant zero would flatten the curve."""
    finite_residual = channel.residual[np.isfinite(channel.residual)]
    if not finite_residual.size:
        return True
    low, high = float(finite_residual.min()), float(finite_residual.max())
    return max(low, -high, 0.0) <= MAX_ZERO_DISTANCE * (high - low)


def _compute_normal_density(x: FloatArray, stddev: float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * (x / stddev) ** 2) / (stddev * math.sqrt(2.0 * math.pi)))


def compute_histogram_density(values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the density (k,) of values between edges (k + 1,); values outside count in the first or last bar."""
    finite = values[np.isfinite(values)]
    counts, _ = np.histogram(np.clip(finite, edges[0], edges[-1]), edges)
    return np.asarray(counts / (max(finite.size, 1) * np.diff(edges)))


def _make_histogram_figure(section: ArraySection) -> SvgFigure:
    """Return the histograms of the white residuals with the declared normal densities."""
    channels = section.channels
    half_width = 0.0
    for channel in channels:
        has_residual = np.isfinite(channel.white_residual).any()
        stddev = float(np.nanstd(channel.white_residual)) if has_residual else 0.0
        half_width = max(half_width, MIN_HALF_WIDTH * channel.declared_stddev, MIN_HALF_WIDTH * stddev)
    half_width = min(half_width, MAX_AXIS_VALUE) if half_width > 1.0 / MAX_AXIS_VALUE else 1.0
    edges = np.linspace(-half_width, half_width, BINS + 1)
    x_axis = make_linear_axis("white residual", channels[0].unit, (edges,))
    bars = [compute_histogram_density(channel.white_residual, edges) for channel in channels]
    densities = [_compute_normal_density(edges, c.declared_stddev) for c in channels if c.declared_stddev]
    y_axis = _make_density_axis(bars + densities, x_axis.scale)
    errors = "bias, constant, scale and cross-axis errors" if all(channel.is_fitted for channel in channels) else "bias"
    caption = f"Distribution of the residuals of {section.title} without {errors}."
    caption += " Dashed: the declared noise." if densities else " No declared standard deviation is known."
    figure = stack_plots("Histogram", x_axis, [y_axis], caption)
    outline, x = np.repeat(edges, 2)[1:-1], np.linspace(edges[0], edges[-1], 241)
    for number, channel in enumerate(channels):
        figure.plots[0].draw_line(outline, np.repeat(bars[number], 2), _get_line_class(number))
        if channel.declared_stddev:
            figure.plots[0].draw_line(x, _compute_normal_density(x, channel.declared_stddev), "declared")
    figure.legend = [(_get_line_class(number), channel.label or "measured") for number, channel in enumerate(channels)]
    figure.legend += [("declared", "declared")] if densities else []
    return figure


def _make_density_axis(series: Sequence[FloatArray], scale: Scale) -> Axis:
    """Return an axis of densities, per unit of the x axis."""
    top = max(float(array.max()) for array in series) or 1.0
    unit = f"({scale.unit})" if "/" in scale.unit else scale.unit
    inverse = Scale(1.0 / scale.factor, f"1/{unit}" if unit not in ("", "1") else "")
    return Axis(0.0, 1.08 * top * inverse.factor, format_axis_title("density", inverse.unit), inverse)


def _make_normalised_figure(normalised: Mapping[str, FloatArray]) -> SvgFigure:
    """Return the histogram of residuals divided by their reported standard deviations."""
    sizes = [float(np.nanpercentile(np.abs(v), 99.5)) for v in normalised.values() if np.isfinite(v).any()]
    half_width = min(max([MIN_HALF_WIDTH, *sizes]), 30.0)
    edges = np.linspace(-half_width, half_width, BINS + 1)
    bars = [compute_histogram_density(values, edges) for values in normalised.values()]
    x = np.linspace(-half_width, half_width, 241)
    x_axis = Axis(-half_width, half_width, "residual / reported standard deviation", Scale(1.0, ""))
    y_axis = _make_density_axis([*bars, _compute_normal_density(x, 1.0)], x_axis.scale)
    caption = "Residual divided by the standard deviation in the message. Dashed: the standard normal distribution."
    figure = stack_plots("Residual divided by its reported standard deviation", x_axis, [y_axis], caption)
    for number, density in enumerate(bars):
        figure.plots[0].draw_line(np.repeat(edges, 2)[1:-1], np.repeat(density, 2), _get_line_class(number))
    figure.plots[0].draw_line(x, _compute_normal_density(x, 1.0), "declared")
    figure.legend = [(_get_line_class(number), label) for number, label in enumerate(normalised)]
    figure.legend.append(("declared", "standard deviation 1"))
    return figure


def _make_allan_figures(section: ArraySection) -> Iterator[SvgFigure]:
    """Yield measured and declared Allan deviations of the residuals; nothing with too few rows.

    Each uses the longest stretch of evenly spaced rows without faults and missing values.
    """
    curves, shortest = {}, len(section.channels[0].time)
    for number, channel in enumerate(section.channels):
        if not channel.declared_stddev:
            continue
        # The white residual is NaN where a fault acts.
        rows = find_regular_stretch(np.isfinite(channel.white_residual), channel.time, channel.rate)
        values = channel.residual[rows]
        if values.size >= MIN_ALLAN_ROWS:
            terms = list_noise_terms(channel.noise, channel.rate)
            legend = (_get_line_class(number), channel.label or "measured")
            curves[legend] = measure_allan(values, channel.rate, terms)
            shortest = min(shortest, values.size)
    if curves:
        first = section.channels[0]
        caption = f"Allan deviation of the residuals of {section.title}. Dashed: the declared noise."
        caption += format_coverage(shortest, first.time, first.rate)
        yield make_allan_figure("Allan deviation", first.unit, curves, caption)


def format_array_table(sections: Sequence[ArraySection]) -> str:
    """Return the statistics of all channels of a sensor as an HTML table."""
    columns = (
        "",
        "samples",
        "missing",
        "mean residual",
        "standard deviation",
        "deviation from differences",
        "declared",
        "noise test",
    )
    head = "".join(f'<th scope="col">{text}</th>' for text in columns)
    rows = "".join(
        _format_table_row(section.title, channel, test)
        for section in sections
        for channel, test in zip(section.channels, section.tests, strict=True)
    )
    note = (
        "Deviation from differences: from pairs of consecutive samples of the white residual. Biases cancel in it. The "
        "noise test compares its square with the declared variance."
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="scroll">{table}</div><p>{note}</p>'


def _format_table_row(title: str, channel: ResidualChannel, test: NoiseTest | str) -> str:
    finite_residual = channel.residual[np.isfinite(channel.residual)]
    white, count = math.sqrt(residuals.compute_pair_variance(channel.white_residual)[0]), channel.residual.size
    if isinstance(test, str):
        verdict = "not tested" if channel.declared_stddev else DASH
    else:
        verdict = f"{'passed' if test.passes else 'FAILED'}: variance {test.ratio:.3f} times declared"
    cells = (
        f"{count}",
        f"{100.0 * (count - finite_residual.size) / max(count, 1):.3g} %" if finite_residual.size < count else DASH,
        format_quantity(float(finite_residual.mean()), channel.unit) if finite_residual.size else DASH,
        format_quantity(float(finite_residual.std()), channel.unit) if finite_residual.size else DASH,
        format_quantity(white, channel.unit) if math.isfinite(white) else DASH,
        format_quantity(channel.declared_stddev, channel.unit) if channel.declared_stddev else DASH,
        verdict,
    )
    css_class = ' class="bad"' if isinstance(test, NoiseTest) and not test.passes else ""
    label = escape(f"{title} {channel.label}".strip())
    return f'<tr{css_class}><th scope="row">{label}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
