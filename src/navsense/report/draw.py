"""Figures as SVG: plots one above the other that share the axis along, drawn by classes that the page's style colours.

A figure is 420 units wide whatever the window: it is shown at about that size in one column or in four, so that its
letters are always of the size of the text. All text is escaped; nothing in it is a script.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from navsense.report.axes import Axis
from navsense.report.decimate import COLUMNS, envelope, extremes, opened
from navsense.typing import FloatArray

WIDTH, LEFT, RIGHT, TOP, BOTTOM, GAP = 420.0, 61.0, 10.0, 8.0, 38.0, 11.0
"""Units: of a figure, around its plots, and between them."""

INSIDE = WIDTH - LEFT - RIGHT
"""Units along."""

ALONG, UP = 6, 5
"""Ticks of the axes at most."""

BAR, UNDER_BAR = 10.0, 36.0
"""Units that the bar of colours is high, and what stands under it."""


@dataclass(frozen=True)
class Bar:
    """What the colours of a figure's pictures mean: a picture (data URI) of them in a row, and the axis along it."""

    data: str
    axis: Axis


@dataclass(eq=False)
class Plot:
    """One plot of a figure: its axis upwards (None for a strip), its height (units), and what is drawn in it.

    `back` is the class of what lies behind it.
    """

    up: Axis | None
    height: float = 150.0
    tag: str = ""
    drawn: list[str] = field(default_factory=list)
    back: str = ""

    def part(self, values: FloatArray) -> FloatArray:
        """Return what parts of the axis upwards lie below values (n,); of a strip they are the values themselves."""
        return values if self.up is None else self.up.part(values)


@dataclass(eq=False)
class Figure:
    """Plots over one axis; `title` stands above, `caption` below: what it shows in words, for those who see it or not.

    `keys` are (class, text) of what the colours of lines mean, `bar` what those of pictures do.
    """

    title: str
    along: Axis
    plots: list[Plot]
    caption: str = ""
    keys: list[tuple[str, str]] = field(default_factory=list)
    bar: Bar | None = None

    def line(self, plot: Plot, x: FloatArray, y: FloatArray, kind: str) -> None:
        """Draw a series y (n,) over rising places x (n,); NaN breaks the line."""
        places, values = envelope(x, y)
        plot.drawn.append(f'<path class="{kind}" d="{self._path(plot, places, values)}"/>')

    def trace(self, plot: Plot, x: FloatArray, y: FloatArray, kind: str, colour: str = "") -> None:
        """Draw a line through points (n,) in whatever order they lie; NaN breaks it."""
        style = f' style="stroke:{colour}"' if colour else ""
        plot.drawn.append(f'<path class="{kind}"{style} d="{self._path(plot, x, y)}"/>')

    def mark(self, plot: Plot, x: float, y: float, kind: str) -> None:
        """Draw a start, a ring, or an end, a square, at a point."""
        right = float(self.along.part(np.array([x]))[0]) * INSIDE
        down = (1.0 - float(plot.part(np.array([y]))[0])) * plot.height
        plot.drawn.append(
            f'<circle class="{kind}" cx="{right:.1f}" cy="{down:.1f}" r="5"/>'
            if kind == "start"
            else f'<rect class="{kind}" x="{right - 4.5:.1f}" y="{down - 4.5:.1f}" width="9" height="9"/>'
        )

    def series(self, plot: Plot, x: FloatArray, y: FloatArray, kind: str) -> None:
        """Draw a series over time as a line that is broken at gaps."""
        self.line(plot, *opened(x, y), kind)

    def band(self, plot: Plot, x: FloatArray, y: FloatArray, kind: str) -> None:
        """Draw a series over time as the area between its extremes where it is dense, else as a line."""
        if x.size <= 2 * COLUMNS or not x[-1] > x[0]:
            self.series(plot, x, y, kind)
            return
        places, low, high = extremes(*opened(x, y))
        self.area(plot, places, low, high, f"{kind} band")

    def area(self, plot: Plot, x: FloatArray, low: FloatArray, high: FloatArray, kind: str) -> None:
        """Draw the area between two series over places x (n,), piece by piece where they are finite."""
        known = np.isfinite(low) & np.isfinite(high)
        edges = np.flatnonzero(np.diff(np.concatenate(([False], known, [False])).astype(np.int8)))
        parts = []
        for first, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            rows = slice(first, stop)
            there = self._points(plot, x[rows], low[rows])
            back = self._points(plot, x[rows][::-1], high[rows][::-1])
            parts.append("M" + "L".join(there + back) + "Z")
        plot.drawn.append(f'<path class="{kind}" d="{"".join(parts)}"/>')

    def _points(self, plot: Plot, x: FloatArray, y: FloatArray) -> list[str]:
        """Return points as SVG has them, kept within reach of the plot."""
        right = np.clip(self.along.part(x), -0.5, 1.5) * INSIDE
        down = (1.0 - np.clip(plot.part(y), -1.0, 2.0)) * plot.height
        return [f"{a:.1f},{b:.1f}" for a, b in zip(right.tolist(), down.tolist(), strict=True)]

    def _path(self, plot: Plot, x: FloatArray, y: FloatArray) -> str:
        """Return a path through points (n,), broken at those that are not finite; a lone one is a dot."""
        known = np.isfinite(x) & np.isfinite(y)
        edges = np.flatnonzero(np.diff(np.concatenate(([False], known, [False])).astype(np.int8)))
        parts = []
        for first, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            points = self._points(plot, x[first:stop], y[first:stop])
            parts.append("M" + "L".join(points) + ("h0" if len(points) == 1 else ""))
        return "".join(parts)

    def across(self, plot: Plot, value: float, kind: str) -> None:
        """Draw a level line at an SI value."""
        down = (1.0 - float(plot.part(np.array([value]))[0])) * plot.height
        if 0.0 <= down <= plot.height:
            plot.drawn.append(f'<path class="{kind}" d="M0,{down:.1f}H{INSIDE:.1f}"/>')

    def bars(self, plot: Plot, starts: FloatArray, ends: FloatArray, kind: str) -> None:
        """Draw spans (k,) of the axis along over the whole height."""
        left, right = self.along.part(starts) * INSIDE, self.along.part(ends) * INSIDE
        parts = [
            f"M{a:.1f},0h{max(b - a, 0.6):.1f}v{plot.height:.1f}h{-max(b - a, 0.6):.1f}z"
            for a, b in zip(left.tolist(), right.tolist(), strict=True)
        ]
        plot.drawn.append(f'<path class="{kind}" d="{"".join(parts)}"/>')

    def picture(self, plot: Plot, data: str, kind: str = "") -> None:
        """Draw a picture (data URI) over a whole plot; where it is clear it is seen that nothing is there."""
        plot.back = "empty"
        plot.drawn.append(
            f'<image class="{kind}" width="{INSIDE:.1f}" height="{plot.height:.1f}" preserveAspectRatio="none" '
            f'href="{data}"/>'
        )

    def html(self, kind: str = "") -> str:
        """Return the figure as HTML; `kind` are classes of where it stands."""
        height = TOP + BOTTOM + sum(plot.height for plot in self.plots) + GAP * (len(self.plots) - 1)
        parts, y = [], TOP
        for number, plot in enumerate(self.plots):
            parts.append(self._plot(plot, y, last=number == len(self.plots) - 1))
            y += plot.height + GAP
        if self.bar is not None:
            parts.append(_bar(self.bar, height))
            height += BAR + UNDER_BAR
        said = escape(f"{self.title}. {self.caption}".strip(), quote=True)
        drawing = f'<svg viewBox="0 0 {WIDTH:g} {height:.1f}" role="img" aria-label="{said}">{"".join(parts)}</svg>'
        keys = "".join(f'<span><i class="{kind}"></i>{escape(text)}</span>' for kind, text in self.keys)
        legend = f'<div class="keys">{keys}</div>' if keys else ""
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f'<figure class="{kind}"><h4>{escape(self.title)}</h4>{legend}{drawing}{caption}</figure>'

    def _plot(self, plot: Plot, y: float, *, last: bool) -> str:
        """Return one plot with its axes at a height of the figure."""
        lines, words = [], []
        for at, text in plot.up.ticks(UP if plot.height > 90.0 else 3) if plot.up else ():
            down = (1.0 - at) * plot.height
            lines.append(f"M0,{down:.1f}H{INSIDE:.1f}")
            words.append(f'<text x="-5" y="{down + 4.0:.1f}" text-anchor="end">{text}</text>')
        for at, text in self.along.ticks(ALONG):
            lines.append(f"M{at * INSIDE:.1f},0V{plot.height:.1f}")
            if last:
                words.append(
                    f'<text x="{at * INSIDE:.1f}" y="{plot.height + 15.0:.1f}" text-anchor="middle">{text}</text>'
                )
        if last:
            words.append(
                f'<text x="{0.5 * INSIDE:.1f}" y="{plot.height + 31.0:.1f}" text-anchor="middle" class="title">'
                f"{escape(self.along.title)}</text>"
            )
        if plot.up:
            words.append(
                f'<text transform="translate(-49,{0.5 * plot.height:.1f})rotate(-90)" text-anchor="middle" '
                f'class="title">'
                f"{escape(plot.up.title)}</text>"
            )
        if plot.tag:
            words.append(f'<text x="6" y="14" class="tag">{escape(plot.tag)}</text>')
        behind = f'<rect class="{plot.back}" width="{INSIDE:.1f}" height="{plot.height:.1f}"/>' if plot.back else ""
        frame = f'<rect class="frame" width="{INSIDE:.1f}" height="{plot.height:.1f}"/>'
        inner = f'<svg width="{INSIDE:.1f}" height="{plot.height:.1f}" overflow="hidden">{"".join(plot.drawn)}</svg>'
        grid = f'<path class="grid" d="{"".join(lines)}"/>'
        return f'<g transform="translate({LEFT:g},{y:.1f})">{behind}{grid}{inner}{frame}{"".join(words)}</g>'


def _bar(bar: Bar, y: float) -> str:
    """Return the bar of colours with its ticks, at a height of the figure."""
    words = [
        f'<text x="{min(at * INSIDE, INSIDE - 4.0):.1f}" y="{BAR + 14.0:.1f}" text-anchor="middle">{text}</text>'
        for at, text in bar.axis.ticks(ALONG)
    ]
    words.append(
        f'<text x="{0.5 * INSIDE:.1f}" y="{BAR + 29.0:.1f}" text-anchor="middle" class="title">'
        f"{escape(bar.axis.title)}</text>"
    )
    size = f'width="{INSIDE:.1f}" height="{BAR:.1f}"'
    picture = f'<image {size} preserveAspectRatio="none" href="{bar.data}"/><rect class="frame" {size}/>'
    return f'<g class="bar" transform="translate({LEFT:g},{y:.1f})">{picture}{"".join(words)}</g>'


def stacked(title: str, along: Axis, ups: Sequence[Axis], caption: str, total: float = 210.0) -> Figure:
    """Return a figure of as many plots as there are axes upwards, `total` units high together at least."""
    height = max(64.0, math.floor(total / len(ups)))
    return Figure(title, along, [Plot(up, height) for up in ups], caption)
