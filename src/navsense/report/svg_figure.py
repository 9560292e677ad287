"""SVG figures: plots one above the other with a common x axis. The file `report.css` colours their classes.

A figure is 420 units wide. The page shows it at up to twice that many pixels, so its letters stay legible. All text is
escaped; nothing in a figure is a script.

A long series is downsampled to the least and greatest value in each pixel column, so that no spike is lost::

    column of row i = floor(columns (x_i - low) / (high - low)),     points of a column: (middle, min), (middle, max)

The order of the two points alternates between columns, which keeps the line short. A column with only NaN breaks the
line. A series with fewer rows than twice the columns stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from navsense.core.typing import BoolArray, FloatArray
from navsense.report.axes import Axis

WIDTH, LEFT, RIGHT, TOP, BOTTOM, PLOT_GAP = 420.0, 61.0, 10.0, 8.0, 38.0, 11.0
"""Width of a figure, margins around its plots, and the gap between them (units)."""

PLOT_WIDTH = WIDTH - LEFT - RIGHT

X_TICKS, Y_TICKS = 6, 5
"""Ticks of the axes at most."""

BAR, BAR_TEXT = 10.0, 36.0
"""Height of the colour bar and of the text below it (units)."""

STRIP_HEIGHT = 26.0
"""Height of a plot that shows only spans of time (units)."""

COLUMNS = 520
"""Columns of a plot at most: more than its pixels on a usual screen."""

MIN_GAP_STEPS = 5.0
"""Median steps of a series above which a gap breaks the line."""

LINE_COLOURS = 4
"""Number of line classes `c0`, `c1`, ..."""


@dataclass(frozen=True)
class ColourBar:
    """The meaning of colours: an image (data URI) of them in a row, and the axis along it."""

    data: str
    axis: Axis


@dataclass(eq=False)
class Plot:
    """One plot of a figure.

    x_axis: the common axis of all plots of the figure
    y_axis: None for a strip, which shows only spans of the x axis
    height: units
    label: text inside
    elements: SVG elements
    background: class of a rectangle behind it
    """

    x_axis: Axis
    y_axis: Axis | None
    height: float = 150.0
    label: str = ""
    elements: list[str] = field(default_factory=list)
    background: str = ""

    def compute_y_positions(self, values: FloatArray) -> FloatArray:
        """Return the positions of SI values (n,) on the y axis; on a strip the values are positions."""
        return values if self.y_axis is None else self.y_axis.compute_positions(values)

    def draw_line(self, x: FloatArray, y: FloatArray, css_class: str) -> None:
        """Draw a line y (n,) over increasing x (n,), downsampled; NaN breaks it, gaps in x do not."""
        self.draw_path(*downsample(x, y), css_class)

    def draw_path(self, x: FloatArray, y: FloatArray, css_class: str, colour: str = "") -> None:
        """Draw a line through points (n,) in any order; NaN breaks it."""
        style = f' style="stroke:{colour}"' if colour else ""
        self.elements.append(f'<path class="{css_class}"{style} d="{self._format_path(x, y)}"/>')

    def draw_marker(self, x: float, y: float, css_class: str) -> None:
        """Draw a ring for the class `start`, else a square."""
        right = float(self.x_axis.compute_positions(np.array([x]))[0]) * PLOT_WIDTH
        down = (1.0 - float(self.compute_y_positions(np.array([y]))[0])) * self.height
        self.elements.append(
            f'<circle class="{css_class}" cx="{right:.1f}" cy="{down:.1f}" r="5"/>'
            if css_class == "start"
            else f'<rect class="{css_class}" x="{right - 4.5:.1f}" y="{down - 4.5:.1f}" width="9" height="9"/>'
        )

    def draw_series(self, x: FloatArray, y: FloatArray, css_class: str) -> None:
        """Draw a line over time as `draw_line`; gaps in time break it too."""
        self.draw_line(*insert_gaps(x, y), css_class)

    def draw_band(self, x: FloatArray, y: FloatArray, css_class: str) -> None:
        """Draw a series over time as the area between its extremes if it is dense, else as a line."""
        if x.size <= 2 * COLUMNS or not x[-1] > x[0]:
            self.draw_series(x, y, css_class)
        else:
            self.draw_area(*find_column_extremes(*insert_gaps(x, y)), f"{css_class} band")

    def draw_area(self, x: FloatArray, low: FloatArray, high: FloatArray, css_class: str) -> None:
        """Draw the area between two series (n,) over x (n,) where both are finite."""
        path = ""
        for rows in find_intervals(np.isfinite(low) & np.isfinite(high)):
            lower = self._format_points(x[rows], low[rows])
            upper = self._format_points(x[rows][::-1], high[rows][::-1])
            path += "M" + "L".join(lower + upper) + "Z"
        self.elements.append(f'<path class="{css_class}" d="{path}"/>')

    def _format_points(self, x: FloatArray, y: FloatArray) -> list[str]:
        """Return points as SVG text, clipped to the surroundings of the plot."""
        right = np.clip(self.x_axis.compute_positions(x), -0.5, 1.5) * PLOT_WIDTH
        down = (1.0 - np.clip(self.compute_y_positions(y), -1.0, 2.0)) * self.height
        return [f"{a:.1f},{b:.1f}" for a, b in zip(right.tolist(), down.tolist(), strict=True)]

    def _format_path(self, x: FloatArray, y: FloatArray) -> str:
        """Return a line through points as SVG text; a point between two NaN is a dot."""
        path = ""
        for rows in find_intervals(np.isfinite(x) & np.isfinite(y)):
            points = self._format_points(x[rows], y[rows])
            path += "M" + "L".join(points) + ("h0" if len(points) == 1 else "")
        return path

    def draw_horizontal_line(self, value: float, css_class: str) -> None:
        """Draw a horizontal line at an SI value."""
        down = (1.0 - float(self.compute_y_positions(np.array([value]))[0])) * self.height
        if 0.0 <= down <= self.height:
            self.elements.append(f'<path class="{css_class}" d="M0,{down:.1f}H{PLOT_WIDTH:.1f}"/>')

    def draw_spans(self, starts: FloatArray, ends: FloatArray, css_class: str) -> None:
        """Draw spans (k,) of the x axis over the full height; nothing without spans."""
        if not starts.size:
            return
        left = self.x_axis.compute_positions(starts) * PLOT_WIDTH
        right = self.x_axis.compute_positions(ends) * PLOT_WIDTH
        path = "".join(
            f"M{a:.1f},0h{max(b - a, 0.6):.1f}v{self.height:.1f}h{-max(b - a, 0.6):.1f}z"
            for a, b in zip(left.tolist(), right.tolist(), strict=True)
        )
        self.elements.append(f'<path class="{css_class}" d="{path}"/>')

    def draw_image(self, data: str, css_class: str = "") -> None:
        """Draw an image (data URI) over a plot; the background shows through its transparent pixels."""
        self.background = "empty"
        self.elements.append(
            f'<image class="{css_class}" width="{PLOT_WIDTH:.1f}" height="{self.height:.1f}" '
            f'preserveAspectRatio="none" href="{data}"/>'
        )


@dataclass(eq=False)
class SvgFigure:
    """Plots with a common x axis, a title above and a caption below that describes them in words.

    `legend` lists class and text of the line colours, `colour_bar` has those of images.
    """

    title: str
    plots: list[Plot]
    caption: str = ""
    legend: list[tuple[str, str]] = field(default_factory=list)
    colour_bar: ColourBar | None = None

    def format_html(self, css_class: str = "") -> str:
        """Return the figure as HTML with the classes of its place in the grid."""
        height = TOP + BOTTOM + sum(plot.height for plot in self.plots) + PLOT_GAP * (len(self.plots) - 1)
        parts, y = [], TOP
        for number, plot in enumerate(self.plots):
            parts.append(_format_plot(plot, y, is_last=number == len(self.plots) - 1))
            y += plot.height + PLOT_GAP
        if self.colour_bar is not None:
            parts.append(_format_colour_bar(self.colour_bar, height))
            height += BAR + BAR_TEXT
        label = escape(f"{self.title}. {self.caption}".strip(), quote=True)
        drawing = f'<svg viewBox="0 0 {WIDTH:g} {height:.1f}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
        keys = "".join(f'<span><i class="{key}"></i>{escape(text)}</span>' for key, text in self.legend)
        legend = f'<div class="keys">{keys}</div>' if keys else ""
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f'<figure class="{css_class}"><h4>{escape(self.title)}</h4>{legend}{drawing}{caption}</figure>'


def _format_plot(plot: Plot, y: float, *, is_last: bool) -> str:
    """Return one plot with its axes at a height of the figure."""
    lines, texts = [], []
    for position, text in plot.y_axis.make_ticks(Y_TICKS if plot.height > 90.0 else 3) if plot.y_axis else ():
        down = (1.0 - position) * plot.height
        lines.append(f"M0,{down:.1f}H{PLOT_WIDTH:.1f}")
        texts.append(f'<text x="-5" y="{down + 4.0:.1f}" text-anchor="end">{text}</text>')
    for position, text in plot.x_axis.make_ticks(X_TICKS):
        right = position * PLOT_WIDTH
        lines.append(f"M{right:.1f},0V{plot.height:.1f}")
        if is_last:
            texts.append(f'<text x="{right:.1f}" y="{plot.height + 15.0:.1f}" text-anchor="middle">{text}</text>')
    if is_last:
        texts.append(_format_title(plot.x_axis.title, plot.height + 31.0))
    if plot.y_axis:
        texts.append(
            f'<text transform="translate(-49,{0.5 * plot.height:.1f})rotate(-90)" text-anchor="middle" '
            f'class="title">{escape(plot.y_axis.title)}</text>'
        )
    if plot.label:
        texts.append(f'<text x="6" y="14" class="tag">{escape(plot.label)}</text>')
    size = f'width="{PLOT_WIDTH:.1f}" height="{plot.height:.1f}"'
    background = f'<rect class="{plot.background}" {size}/>' if plot.background else ""
    frame = f'<rect class="frame" {size}/>'
    content = f'<svg {size} overflow="hidden">{"".join(plot.elements)}</svg>'
    grid = f'<path class="grid" d="{"".join(lines)}"/>'
    return f'<g transform="translate({LEFT:g},{y:.1f})">{background}{grid}{content}{frame}{"".join(texts)}</g>'


def _format_title(title: str, y: float) -> str:
    return f'<text x="{0.5 * PLOT_WIDTH:.1f}" y="{y:.1f}" text-anchor="middle" class="title">{escape(title)}</text>'


def _format_colour_bar(bar: ColourBar, y: float) -> str:
    """Return the colour bar with its ticks at a height of the figure."""
    texts = [
        f'<text x="{min(position * PLOT_WIDTH, PLOT_WIDTH - 4.0):.1f}" y="{BAR + 14.0:.1f}" '
        f'text-anchor="middle">{text}</text>'
        for position, text in bar.axis.make_ticks(X_TICKS)
    ]
    texts.append(_format_title(bar.axis.title, BAR + 29.0))
    size = f'width="{PLOT_WIDTH:.1f}" height="{BAR:.1f}"'
    image = f'<image {size} preserveAspectRatio="none" href="{bar.data}"/><rect class="frame" {size}/>'
    return f'<g class="bar" transform="translate({LEFT:g},{y:.1f})">{image}{"".join(texts)}</g>'


def stack_plots(title: str, x_axis: Axis, y_axes: Sequence[Axis], caption: str, total: float = 210.0) -> SvgFigure:
    """Return a figure with one plot per y axis, at least `total` units high together."""
    height = max(64.0, math.floor(total / len(y_axes)))
    return SvgFigure(title, [Plot(x_axis, axis, height) for axis in y_axes], caption)


def downsample(x: FloatArray, y: FloatArray, columns: int = COLUMNS) -> tuple[FloatArray, FloatArray]:
    """Return the points x and y (m,) of a line through the series y (n,) at increasing x (n,); NaN breaks the line."""
    if x.size <= 2 * columns or not x[-1] > x[0]:
        return x, y
    middle, low, high = find_column_extremes(x, y, columns)
    values = np.empty(2 * middle.size)
    even = np.arange(middle.size) % 2 == 0
    values[0::2], values[1::2] = np.where(even, low, high), np.where(even, high, low)
    return np.repeat(middle, 2), values


def insert_gaps(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a series with a NaN in each gap of the increasing x (n,): a step above `MIN_GAP_STEPS` median steps."""
    if x.size < 3:
        return x, y
    steps = np.diff(x)
    if not steps.max() > MIN_GAP_STEPS * steps.min():
        return x, y
    rows = np.flatnonzero(steps > MIN_GAP_STEPS * np.median(steps)) + 1
    return np.insert(x, rows, 0.5 * (x[rows - 1] + x[rows])), np.insert(y, rows, np.nan)


def find_column_extremes(
    x: FloatArray, y: FloatArray, columns: int = COLUMNS
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return middle, least and greatest value (k,) of each column with rows; NaN if the column has only NaN."""
    share = (x - x[0]) / (x[-1] - x[0])
    column = np.minimum((columns * share).astype(np.int64), columns - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    middle = x[0] + (column[starts] + 0.5) * ((x[-1] - x[0]) / columns)
    low, high = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)
    return middle, np.asarray(low), np.asarray(high)


def find_intervals(mask: BoolArray) -> list[slice]:
    """Return the intervals of consecutive rows in which a mask (n,) is true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8))).tolist()
    return [slice(first, stop) for first, stop in zip(edges[::2], edges[1::2], strict=True)]


def find_time_spans(time: FloatArray, mask: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return starts and ends (k,) s of the spans in which a mask (n,) is true; each row lasts until the next one."""
    rows = find_intervals(mask)
    step = float(np.median(np.diff(time))) if time.size > 1 else 1.0
    ends = np.append(time, time[-1:] + step)
    return time[[row.start for row in rows]], ends[[row.stop for row in rows]]
