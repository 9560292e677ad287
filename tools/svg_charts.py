"""Charts as SVG: panels with axes, lines, points and shades, the same bytes wherever they are drawn.

Coordinates are rounded to a tenth of a pixel. Numbers that are NaN leave a gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from navsense.core.typing import FloatArray

Numbers = Sequence[float] | FloatArray

MARGIN = (64.0, 58.0, 18.0, 46.0)
"""Pixels left, above, right and below a panel's frame."""

FRAME, GRID, TEXT = "#888888", "#e4e4e4", "#222222"

FONT = 'font-family="Helvetica, Arial, sans-serif"'

ABOUT = 6
"""Ticks of an axis, or a few more or fewer."""


@dataclass(frozen=True)
class Line:
    """Numbers of a colour, joined by a line, or as points where `dots` is their radius (px)."""

    label: str
    x: Numbers
    y: Numbers
    colour: str
    width: float = 1.6
    dash: str = ""
    dots: float = 0.0


@dataclass(frozen=True)
class Panel:
    """Axes from and to limits, what is drawn there, and shades from and to an x, of a colour, with words in it."""

    title: str
    across: str
    up: str
    x: tuple[float, float]
    y: tuple[float, float]
    lines: Sequence[Line]
    shades: Sequence[tuple[float, float, str, str]] = ()


def short(number: float) -> str:
    """Return a coordinate, a tenth of a pixel at the finest."""
    return f"{number:.1f}".removesuffix(".0")


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers between limits."""
    rough = (high - low) / ABOUT
    scale = 10.0 ** math.floor(math.log10(rough))
    step = min((m * scale for m in (1.0, 2.0, 5.0, 10.0)), key=lambda one: abs(math.log(one / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


@dataclass(frozen=True)
class Frame:
    """Where a panel stands on the sheet: its left and upper edge, width and height (px)."""

    panel: Panel
    left: float
    top: float
    width: float
    height: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point of the panel is on the sheet."""
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
        return " ".join(f'{name}="{short(edge)}"' for name, edge in edges)

    def _shades(self) -> Iterator[str]:
        """Yield the shades behind all else."""
        for first, last, colour, words in self.panel.shades:
            (a, _), (b, _) = self.at(first, 0.0), self.at(last, 0.0)
            size = f'x="{short(a)}" y="{short(self.top)}" width="{short(b - a)}" height="{short(self.height)}"'
            yield f'<rect {size} fill="{colour}"/>'
            yield text(0.5 * (a + b), self.top + self.height - 8.0, words, anchor="middle", size=11)

    def _axes(self) -> Iterator[str]:
        """Yield the grid with its numbers, and the titles."""
        bottom, right = self.top + self.height, self.left + self.width
        for number in ticks(*self.panel.x):
            x, _ = self.at(number, self.panel.y[0])
            yield f'<path d="M{short(x)} {short(self.top)}V{short(bottom)}" stroke="{GRID}"/>'
            yield text(x, bottom + 16.0, f"{number:g}", anchor="middle")
        for number in ticks(*self.panel.y):
            _, y = self.at(self.panel.x[0], number)
            yield f'<path d="M{short(self.left)} {short(y)}H{short(right)}" stroke="{GRID}"/>'
            yield text(self.left - 6.0, y + 4.0, f"{number:g}", anchor="end")
        yield text(self.left, self.top - 30.0, self.panel.title, size=14, weight="bold")
        yield text(self.left + 0.5 * self.width, bottom + 36.0, self.panel.across, anchor="middle")
        x, y = self.left - 46.0, self.top + 0.5 * self.height
        turn = f' transform="rotate(-90 {short(x)} {short(y)})"'
        yield text(x, y, self.panel.up, anchor="middle", more=turn)

    def _runs(self, line: Line) -> Iterator[str]:
        """Yield a line, in parts where it has gaps."""
        parts: list[str] = []
        joined = False
        for x, y in zip(line.x, line.y, strict=True):
            if math.isnan(x) or math.isnan(y):
                joined = False
                continue
            a, b = self.at(x, y)
            parts.append(f"{'L' if joined else 'M'}{short(a)} {short(b)}")
            joined = True
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        yield f'<path d="{"".join(parts)}" stroke="{line.colour}" stroke-width="{line.width:g}"{dash}/>'

    def _dots(self, line: Line) -> Iterator[str]:
        """Yield points as one path of lines without length, whose ends are round."""
        placed = [self.at(x, y) for x, y in zip(line.x, line.y, strict=True) if not math.isnan(x + y)]
        path = "".join(f"M{short(a)} {short(b)}h0" for a, b in placed)
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
            path = f"M{short(x)} {short(y - 4.0)}h18" if not line.dots else f"M{short(x + 9.0)} {short(y - 4.0)}h0"
            ends = ' stroke-linecap="round"' if line.dots else ""
            yield f'<path d="{path}" stroke="{line.colour}" stroke-width="{wide:g}"{dash}{ends}/>'
            yield text(x + 23.0, y, line.label)
            x += 40.0 + 6.3 * len(line.label)


def text(
    x: float, y: float, words: str, *, anchor: str = "start", size: int = 12, weight: str = "", more: str = ""
) -> str:
    """Return words at a place (px)."""
    heavy = f' font-weight="{weight}"' if weight else ""
    shown = words.replace("&", "&amp;").replace("<", "&lt;")
    place = f'x="{short(x)}" y="{short(y)}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text {place}{heavy} fill="{TEXT}" stroke="none"{more}>{shown}</text>'


def chart(panels: Sequence[Panel], columns: int, width: float, height: float) -> str:
    """Return a sheet of panels, each of this size (px), in so many columns."""
    left, above, right, below = MARGIN
    rows = math.ceil(len(panels) / columns)
    size = f'width="{short(columns * width)}" height="{short(rows * height)}"'
    view = f'viewBox="0 0 {short(columns * width)} {short(rows * height)}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} {FONT}>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for k, panel in enumerate(panels):
        row, column = divmod(k, columns)
        place = (column * width + left, row * height + above, width - left - right, height - above - below)
        out += Frame(panel, *place).draw(f"p{k}")
    return "\n".join([*out, "</svg>"]) + "\n"


def steps(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return a line that keeps each number till the next, as steps."""
    across, up = [x[0]], [y[0]]
    for (_, later), (before, after) in zip(pairwise(x), pairwise(y), strict=True):
        across += [later, later]
        up += [before, after]
    return across, up
