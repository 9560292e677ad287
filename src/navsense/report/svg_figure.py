"""SVG figures: plots one above the other with a common x axis. The file `report.css` colours their classes.

A figure takes the width of its card, and its plots the height that the row of cards leaves, but nothing of its text
scales: a drawing is stretched to its plot, and all text is outside the drawing. A place is a share of the plot, and the
size of text, lines and markers is in pixels::

    <svg>                                                         a plot: as wide as the card allows
      <svg viewBox="0 0 1000 1000" preserveAspectRatio="none">    its drawing; lines keep their width
      <text x="40%" y="100%" dy="15">                             a label below it

All text is escaped; nothing in a figure is a script.

A long series is downsampled to the minimum and maximum in each pixel column, so that no spike is lost::

    column of row i = floor(columns (x_i - low) / (high - low)),     points of a column: (middle, min), (middle, max)

The order of the two points alternates between columns, which keeps the line short. A column with only NaN breaks the
line. A series with fewer rows than twice the columns stays as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

from navsense.core.typing import FloatArray
from navsense.figures import FONTS, LIGHT, find_intervals, insert_gaps
from navsense.report.axes import Axis

UNITS = 1000.0
"""Width and height of the drawing of a plot. A third of a pixel in a usual card is one unit."""

PLOT_GAP = 12.0
"""Gap between two plots (pixels)."""

X_TICKS, Y_TICKS = 6, 5
"""Ticks of the axes at most."""

STRIP_HEIGHT = 14.0
"""Height of a plot that shows only spans of time (pixels)."""

MAX_ASPECT_HEIGHT = 440.0
"""Height of a plot with a fixed aspect ratio at most (pixels)."""

AREA_CLASSES = frozenset(("good", "bad", "water", "span", "earth", "empty"))
"""Classes of areas; all others are lines or markers."""

MARKER_CLASSES = frozenset(("start", "end"))
"""Classes of markers."""

LETTER_WIDTH = 7.0
"""Mean width of a letter of the legend of a file (pixels)."""

REFERENCE_CLASSES = frozenset(("zero", "declared", "surface", "span", "casing"))
"""Classes of what is drawn besides data: a plot with nothing else is empty."""

COLUMNS = 520
"""Columns of a plot at most: more than its pixels on a usual screen."""

LINE_COLOURS = len(LIGHT.lines)
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
    height: pixels at least
    label: text above
    aspect_ratio: width over height; 0 if the height does not depend on the width
    elements: SVG elements of the drawing
    markers: SVG elements over the drawing
    background: class of a rectangle behind it
    has_data: true if the drawing has more than reference lines
    """

    x_axis: Axis
    y_axis: Axis | None
    height: float = 150.0
    label: str = ""
    aspect_ratio: float = 0.0
    elements: list[str] = field(default_factory=list)
    markers: list[str] = field(default_factory=list)
    background: str = ""
    has_data: bool = False

    def compute_y_positions(self, values: FloatArray) -> FloatArray:
        """Return the positions of SI values (n,) on the y axis; on a strip the values are positions."""
        return values if self.y_axis is None else self.y_axis.compute_positions(values)

    def draw_line(self, x: FloatArray, y: FloatArray, css_class: str) -> None:
        """Draw a line y (n,) over increasing x (n,), downsampled; NaN breaks it, gaps in x do not."""
        self.draw_path(*downsample(x, y), css_class)

    def draw_path(self, x: FloatArray, y: FloatArray, css_class: str, colour: str = "") -> None:
        """Draw a line through points (n,) in any order; NaN breaks it."""
        style = f' style="stroke:{colour}"' if colour else ""
        self._add_path(css_class, self._format_path(x, y), style)

    def _add_path(self, css_class: str, path: str, style: str = "") -> None:
        """Add a path to the drawing, nothing if it is empty."""
        if path:
            self.elements.append(f'<path class="{css_class}"{style} d="{path}"/>')
            self.has_data |= css_class not in REFERENCE_CLASSES

    def draw_marker(self, x: float, y: float, css_class: str) -> None:
        """Draw a ring for the class `start`, else a square."""
        right = 100.0 * float(self.x_axis.compute_positions(np.array([x]))[0])
        down = 100.0 * (1.0 - float(self.compute_y_positions(np.array([y]))[0]))
        self.markers.append(
            f'<circle class="{css_class}" cx="{right:.2f}%" cy="{down:.2f}%" r="5"/>'
            if css_class == "start"
            else f'<rect class="{css_class}" x="{right:.2f}%" y="{down:.2f}%" width="9" height="9"/>'
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
        self._add_path(css_class, path)

    def _format_points(self, x: FloatArray, y: FloatArray) -> list[str]:
        """Return points as SVG text, clipped to the surroundings of the plot."""
        right = np.rint(np.clip(self.x_axis.compute_positions(x), -0.5, 1.5) * UNITS).astype(np.int64)
        down = np.rint((1.0 - np.clip(self.compute_y_positions(y), -1.0, 2.0)) * UNITS).astype(np.int64)
        return [f"{a},{b}" for a, b in zip(right.tolist(), down.tolist(), strict=True)]

    def _format_path(self, x: FloatArray, y: FloatArray) -> str:
        """Return a line through points as SVG text; a point between two NaN is a dot."""
        path = ""
        for rows in find_intervals(np.isfinite(x) & np.isfinite(y)):
            points = self._format_points(x[rows], y[rows])
            path += "M" + "L".join(points) + ("h0" if len(points) == 1 else "")
        return path

    def draw_horizontal_line(self, value: float, css_class: str) -> None:
        """Draw a horizontal line at an SI value."""
        down = (1.0 - float(self.compute_y_positions(np.array([value]))[0])) * UNITS
        if 0.0 <= down <= UNITS:
            self._add_path(css_class, f"M0,{down:.0f}H{UNITS:.0f}")

    def draw_spans(self, starts: FloatArray, ends: FloatArray, css_class: str) -> None:
        """Draw spans (k,) of the x axis over the full height; nothing without spans."""
        left = np.rint(self.x_axis.compute_positions(starts) * UNITS).astype(np.int64)
        right = np.rint(self.x_axis.compute_positions(ends) * UNITS).astype(np.int64)
        width = np.maximum(right - left, 1)
        spans = zip(left.tolist(), width.tolist(), strict=True)
        self._add_path(css_class, "".join(f"M{a},0h{b}v{UNITS:.0f}h{-b}z" for a, b in spans))

    def draw_image(
        self, data: str, css_class: str = "", x: tuple[float, float] = (0.0, 1.0), y: tuple[float, float] = (0.0, 1.0)
    ) -> None:
        """Draw an image (data URI) between positions on the axes."""
        place = f'x="{UNITS * x[0]:.1f}" y="{UNITS * (1.0 - y[1]):.1f}"'
        size = f'width="{UNITS * (x[1] - x[0]):.1f}" height="{UNITS * (y[1] - y[0]):.1f}"'
        self.elements.append(f'<image class="{css_class}" {place} {size} preserveAspectRatio="none" href="{data}"/>')
        self.has_data = True


@dataclass(eq=False)
class SvgFigure:
    """Plots with a common x axis, a title above and a caption below that describes them in words.

    `legend` lists classes (several of them with spaces) and text of what is drawn, `colour_bar` has those of images.
    """

    title: str
    plots: list[Plot]
    caption: str = ""
    legend: list[tuple[str, str]] = field(default_factory=list)
    colour_bar: ColourBar | None = None

    @property
    def has_data(self) -> bool:
        """True if a plot has more than reference lines."""
        return any(plot.has_data for plot in self.plots)

    def format_html(self, css_class: str = "") -> str:
        """Return the figure as HTML with the classes of its place in the grid. Plots without data are left out."""
        plots = [plot for plot in self.plots if plot.has_data]
        parts = [_format_plot(plot, is_last=plot is plots[-1]) for plot in plots]
        if self.colour_bar is not None:
            parts.append(_format_colour_bar(self.colour_bar))
        label = escape(f"{self.title}. {self.caption}".strip(), quote=True)
        css_classes = "plots labelled" if any(plot.label for plot in plots) else "plots"
        drawing = f'<div class="{css_classes}" role="img" aria-label="{label}">{"".join(parts)}</div>'
        keys = "".join(f"<span>{_format_samples(key)}{escape(text)}</span>" for key, text in self.legend)
        legend = f'<div class="keys">{keys}</div>' if keys else ""
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f'<figure class="{css_class}"><h4>{escape(self.title)}</h4>{legend}{drawing}{caption}</figure>'


def _format_samples(css_classes: str) -> str:
    """Return a sample of each class for a legend."""
    return "".join(f'<i class="{css_class}"></i>' for css_class in css_classes.split())


def _format_plot(plot: Plot, *, is_last: bool, place: str = "") -> str:
    """Return one plot with its axes; the last one of a figure has the labels of the x axis.

    place: attributes of its place in a file; without it, CSS places it in a page
    """
    lines, texts = [], []
    for position, text in plot.y_axis.make_ticks(Y_TICKS if plot.height > 90.0 else 3) if plot.y_axis else ():
        lines.append(f"M0,{(1.0 - position) * UNITS:.0f}H{UNITS:.0f}")
        texts.append(f'<text class="y" x="-6" y="{100.0 * (1.0 - position):.2f}%" dy=".35em">{text}</text>')
    for position, text in plot.x_axis.make_ticks(X_TICKS):
        lines.append(f"M{position * UNITS:.0f},0V{UNITS:.0f}")
        if is_last:
            texts.append(f'<text x="{100.0 * position:.2f}%" y="100%" dy="15">{text}</text>')
    if is_last:
        texts.append(f'<text class="title" x="50%" y="100%" dy="32">{escape(plot.x_axis.title)}</text>')
    if plot.y_axis:
        title = f'<text class="title" transform="rotate(-90)">{escape(plot.y_axis.title)}</text>'
        texts.append(f'<svg x="-52" y="50%">{title}</svg>')
    if plot.label:
        texts.append(f'<text class="tag" y="-6">{escape(plot.label)}</text>')
    full = 'width="100%" height="100%"'
    background = f'<rect class="{plot.background}" {full}/>' if plot.background else ""
    grid = f'<path class="grid" d="{"".join(lines)}"/>'
    stretched = f'viewBox="0 0 {UNITS:.0f} {UNITS:.0f}" preserveAspectRatio="none"'
    content = f'<svg class="drawing" {full} {stretched}>{grid}{"".join(plot.elements)}</svg>'
    frame = f'<rect class="frame" {full}/>'
    css_class = "strip" if plot.y_axis is None else "map" if plot.aspect_ratio else "plot"
    size = f"height:{plot.height:.0f}px"
    if plot.aspect_ratio:
        size = f"aspect-ratio:{plot.aspect_ratio:.3f};max-width:{MAX_ASPECT_HEIGHT * plot.aspect_ratio:.0f}px"
    inside = f"{background}{content}{frame}{''.join(plot.markers)}{''.join(texts)}"
    style = place or f'style="{size}"'
    return f'<svg class="{css_class}" {style}>{inside}</svg>'


def _format_colour_bar(bar: ColourBar, place: str = "") -> str:
    """Return the colour bar with its ticks."""
    texts = [
        f'<text x="{100.0 * position:.2f}%" y="100%" dy="14">{text}</text>'
        for position, text in bar.axis.make_ticks(X_TICKS)
    ]
    texts.append(f'<text class="title" x="50%" y="100%" dy="29">{escape(bar.axis.title)}</text>')
    full = 'width="100%" height="100%"'
    image = f'<image {full} preserveAspectRatio="none" href="{bar.data}"/><rect class="frame" {full}/>'
    return f'<svg class="bar" {place}>{image}{"".join(texts)}</svg>'


def read_style_sheet() -> str:
    """Return the style sheet of the report. Figures in files need what is between its comments SVG and end."""
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def format_svg_file(figures: Sequence[SvgFigure], width: float = 520.0, height: float = 440.0) -> str:
    """Return figures side by side as one SVG file in light colours, each of this size (pixels), without captions.

    Path("flight.svg").write_text(format_svg_file([make_map_figure(data, track_map)]), encoding="utf-8")
    """
    cells = [
        f'<svg x="{number * width:g}" width="{width:g}" height="{height:g}">{_format_cell(figure, width, height)}</svg>'
        for number, figure in enumerate(figures)
    ]
    _, _, css = read_style_sheet().partition("/* SVG */")
    css = re.sub(r"var\(--([a-z0-9]+)\)", lambda match: getattr(LIGHT, match[1]), css.partition("/* end */")[0])
    size = f'width="{width * len(cells):g}" height="{height:g}"'
    view = f'viewBox="0 0 {width * len(cells):g} {height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} font-family="{", ".join(FONTS)}"><style>'
        f"svg{{overflow:visible}}svg.drawing{{overflow:hidden}}{css}</style>"
        f'<rect {size} fill="{LIGHT.card}"/>{"".join(cells)}</svg>\n'
    )


def _format_cell(figure: SvgFigure, width: float, height: float) -> str:
    """Return a figure with its title and legend in a cell of a file (pixels)."""
    left, right, top, bottom, bar_height = 66.0, 20.0, 62.0, 46.0, 10.0
    plots = [plot for plot in figure.plots if plot.has_data]
    label_height = 18.0 if any(plot.label for plot in plots) else 0.0
    gap = PLOT_GAP + label_height
    below = bottom if figure.colour_bar is None else bottom + bar_height + 34.0
    free = (height - top - label_height - below - gap * (len(plots) - 1)) / max(len(plots), 1)
    parts, y = [f'<text class="heading" x="12" y="24">{escape(figure.title)}</text>', _format_svg_legend(figure)], top
    for plot in plots:
        plot_width, plot_height = width - left - right, free
        if plot.aspect_ratio:
            plot_width = min(plot_width, plot.aspect_ratio * free)
            plot_height = plot_width / plot.aspect_ratio
        x = left + 0.5 * (width - left - right - plot_width)
        place = f'x="{x:.1f}" y="{y + label_height:.1f}" width="{plot_width:.1f}" height="{plot_height:.1f}"'
        parts.append(_format_plot(plot, is_last=plot is plots[-1], place=place))
        y += plot_height + gap
    if figure.colour_bar is not None:
        place = f'x="{left:g}" y="{y - gap + 44.0:.1f}" width="{width - left - right:g}" height="{bar_height:g}"'
        parts.append(_format_colour_bar(figure.colour_bar, place))
    return "".join(parts)


def _format_svg_legend(figure: SvgFigure) -> str:
    """Return the legend of a figure in a file: a line, an area or a marker for each class, and its text."""
    parts, x = [], 12.0
    for css_classes, text in figure.legend:
        for css_class in css_classes.split():
            middle = f'transform="translate({x:.1f},40)"'
            if css_class == "start":
                parts.append(f'<circle class="start" cx="6" r="5" {middle}/>')
            elif css_class == "end":
                parts.append(f'<svg x="{x + 6.0:.1f}" y="40"><rect class="end" width="9" height="9"/></svg>')
            else:
                shape = "M0,-5H13V5H0Z" if css_class in AREA_CLASSES else "M1,0H17"
                parts.append(f'<path class="{css_class}" d="{shape}" {middle}/>')
            x += 16.0 if css_class in MARKER_CLASSES else 20.0
        parts.append(f'<text class="key" x="{x + 3.0:.1f}" y="44">{escape(text)}</text>')
        x += 20.0 + LETTER_WIDTH * len(text)
    return "".join(parts)


def stack_plots(title: str, x_axis: Axis, y_axes: Sequence[Axis], caption: str, total: float = 216.0) -> SvgFigure:
    """Return a figure with one plot per y axis, at least `total` pixels high together."""
    height = max(64.0, math.floor((total - PLOT_GAP * (len(y_axes) - 1)) / len(y_axes)))
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


def find_column_extremes(
    x: FloatArray, y: FloatArray, columns: int = COLUMNS
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return middle, minimum and maximum (k,) of each column with rows; NaN if the column has only NaN."""
    share = (x - x[0]) / (x[-1] - x[0])
    column = np.minimum((columns * share).astype(np.int64), columns - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    middle = x[0] + (column[starts] + 0.5) * ((x[-1] - x[0]) / columns)
    low, high = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)
    return middle, np.asarray(low), np.asarray(high)
