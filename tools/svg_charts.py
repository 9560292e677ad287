"""Charts as SVG: panels with axes, lines, points and shades. The bytes are the same on every machine.

Coordinates are rounded to a tenth of a pixel. NaN values are gaps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from navsense.core.typing import FloatArray
from navsense.figures import FONTS, LIGHT

Numbers = Sequence[float] | FloatArray

MARGIN = (64.0, 58.0, 18.0, 46.0)
"""Margins (pixels) left, above, right and below the frame of a panel."""

FRAME, GRID, TEXT = LIGHT.frame, LIGHT.grid, LIGHT.ink

FONT = f'font-family="{", ".join(FONTS)}"'

ABOUT = 6
"""Approximate number of ticks of an axis."""


@dataclass(frozen=True)
class Line:
    """A line through values, or points with the radius `dots` (px)."""

    label: str
    x: Numbers
    y: Numbers
    colour: str
    width: float = 1.6
    dash: str = ""
    dots: float = 0.0


@dataclass(frozen=True)
class Panel:
    """Axes with limits, their content, and shades from and to an x with a colour and a label."""

    title: str
    across: str
    up: str
    x: tuple[float, float]
    y: tuple[float, float]
    lines: Sequence[Line]
    shades: Sequence[tuple[float, float, str, str]] = ()


def px(number: float) -> str:
    """Return a coordinate, rounded to a tenth of a pixel."""
    return f"{number:.1f}".removesuffix(".0")


def format_number(number: float) -> str:
    """Return the label of a tick, with a typographic minus."""
    return f"{number:g}".replace("-", "\u2212")


def compute_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between limits."""
    rough = (high - low) / ABOUT
    scale = 10.0 ** math.floor(math.log10(rough))
    step = min((m * scale for m in (1.0, 2.0, 5.0, 10.0)), key=lambda size: abs(math.log(size / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


@dataclass(frozen=True)
class Frame:
    """The frame of a panel on the chart: left and upper edge, width and height (px)."""

    panel: Panel
    left: float
    top: float
    width: float
    height: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the position of a point of the panel on the chart."""
        (x0, x1), (y0, y1) = self.panel.x, self.panel.y
        return self.left + self.width * (x - x0) / (x1 - x0), self.top + self.height * (y1 - y) / (y1 - y0)

    def draw(self, name: str) -> Iterator[str]:
        """Yield the elements of the panel."""
        yield f'<clipPath id="{name}"><rect {self._box()}/></clipPath>'
        yield from self._shades()
        yield from self._axes()
        yield f'<g clip-path="url(#{name})" fill="none">'
        for line in self.panel.lines:
            yield from self._dots(line) if line.dots else self._runs(line)
        yield "</g>"
        yield f'<rect {self._box()} fill="none" stroke="{FRAME}"/>'
        yield from self._legend()

    def _box(self) -> str:
        """Return the attributes of the frame."""
        edges = zip(("x", "y", "width", "height"), (self.left, self.top, self.width, self.height), strict=True)
        return " ".join(f'{name}="{px(edge)}"' for name, edge in edges)

    def _shades(self) -> Iterator[str]:
        """Yield the shades in the background."""
        for first, last, colour, words in self.panel.shades:
            (a, _), (b, _) = self.at(first, 0.0), self.at(last, 0.0)
            size = f'x="{px(a)}" y="{px(self.top)}" width="{px(b - a)}" height="{px(self.height)}"'
            yield f'<rect {size} fill="{colour}"/>'
            yield format_text(0.5 * (a + b), self.top + self.height - 8.0, words, anchor="middle", size=11)

    def _axes(self) -> Iterator[str]:
        """Yield the grid with its numbers, and the titles."""
        bottom, right = self.top + self.height, self.left + self.width
        for number in compute_ticks(*self.panel.x):
            x, _ = self.at(number, self.panel.y[0])
            yield f'<path d="M{px(x)} {px(self.top)}V{px(bottom)}" stroke="{GRID}"/>'
            yield format_text(x, bottom + 16.0, format_number(number), anchor="middle")
        for number in compute_ticks(*self.panel.y):
            _, y = self.at(self.panel.x[0], number)
            yield f'<path d="M{px(self.left)} {px(y)}H{px(right)}" stroke="{GRID}"/>'
            yield format_text(self.left - 6.0, y + 4.0, format_number(number), anchor="end")
        yield format_text(self.left, self.top - 30.0, self.panel.title, size=14, weight="bold")
        yield format_text(self.left + 0.5 * self.width, bottom + 36.0, self.panel.across, anchor="middle")
        x, y = self.left - 46.0, self.top + 0.5 * self.height
        turn = f' transform="rotate(-90 {px(x)} {px(y)})"'
        yield format_text(x, y, self.panel.up, anchor="middle", more=turn)

    def _runs(self, line: Line) -> Iterator[str]:
        """Yield a line in parts, split at gaps."""
        parts: list[str] = []
        joined = False
        for x, y in zip(line.x, line.y, strict=True):
            if math.isnan(x) or math.isnan(y):
                joined = False
                continue
            a, b = self.at(x, y)
            parts.append(f"{'L' if joined else 'M'}{px(a)} {px(b)}")
            joined = True
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        yield f'<path d="{"".join(parts)}" stroke="{line.colour}" stroke-width="{line.width:g}"{dash}/>'

    def _dots(self, line: Line) -> Iterator[str]:
        """Yield points as one path of lines without length, with round ends."""
        placed = [self.at(x, y) for x, y in zip(line.x, line.y, strict=True) if not math.isnan(x + y)]
        path = "".join(f"M{px(a)} {px(b)}h0" for a, b in placed)
        wide = f'stroke-width="{2.0 * line.dots:g}" stroke-linecap="round"'
        yield f'<path d="{path}" stroke="{line.colour}" {wide}/>'

    def _legend(self) -> Iterator[str]:
        """Yield a sample of each line with a label, in a row above the frame."""
        x, y = self.left, self.top - 10.0
        for line in self.panel.lines:
            if not line.label:
                continue
            dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
            wide = max(line.width, 2.0) if not line.dots else 2.0 * max(line.dots, 2.0)
            path = f"M{px(x)} {px(y - 4.0)}h18" if not line.dots else f"M{px(x + 9.0)} {px(y - 4.0)}h0"
            ends = ' stroke-linecap="round"' if line.dots else ""
            yield f'<path d="{path}" stroke="{line.colour}" stroke-width="{wide:g}"{dash}{ends}/>'
            yield format_text(x + 23.0, y, line.label)
            x += 40.0 + 6.3 * len(line.label)


def format_text(
    x: float, y: float, words: str, *, anchor: str = "start", size: int = 12, weight: str = "", more: str = ""
) -> str:
    """Return a text at a position (px)."""
    heavy = f' font-weight="{weight}"' if weight else ""
    shown = words.replace("&", "&amp;").replace("<", "&lt;")
    place = f'x="{px(x)}" y="{px(y)}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text {place}{heavy} fill="{TEXT}" stroke="none"{more}>{shown}</text>'


def draw_chart(panels: Sequence[Panel], columns: int, width: float, height: float) -> str:
    """Return a chart of panels of this size (px) in columns."""
    left, above, right, below = MARGIN
    rows = math.ceil(len(panels) / columns)
    size = f'width="{px(columns * width)}" height="{px(rows * height)}"'
    view = f'viewBox="0 0 {px(columns * width)} {px(rows * height)}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} {FONT}>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for k, panel in enumerate(panels):
        row, column = divmod(k, columns)
        place = (column * width + left, row * height + above, width - left - right, height - above - below)
        out += Frame(panel, *place).draw(f"p{k}")
    return "\n".join([*out, "</svg>"]) + "\n"


def make_steps(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return a step line that holds each value until the next."""
    across, up = [x[0]], [y[0]]
    for (_, later), (before, after) in zip(pairwise(x), pairwise(y), strict=True):
        across += [later, later]
        up += [before, after]
    return across, up
