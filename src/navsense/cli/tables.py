"""Tables and lines of text that fit the width of the terminal, or 80 columns outside a terminal.

Long names lose their first parts: `…::base_link::imu`, `…/sensor/imu`. Other long text is wrapped. With `--verbose`
everything is complete, for programs that read the output.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

import click

DEFAULT_WIDTH = 80
"""Width outside a terminal."""

MIN_COLUMN_WIDTH = 10
"""A column is not narrowed further; lines are then longer than the width."""

GAP = "  "
"""Between two columns."""

SEPARATORS = ("::", "/")
"""Separators of the parts of a name."""

INDENT = "    "
"""Indentation of the second and later lines of a long line."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    kind: "number" is aligned to the right and keeps its width; "name" is shortened; "text" is wrapped.
    """

    title: str
    kind: Literal["number", "name", "text"] = "text"


def get_width(*, verbose: bool = False) -> int | None:
    """Return the width of the output; None if lines can have any length."""
    if verbose:
        return None
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if sys.stdout.isatty() else DEFAULT_WIDTH


def shorten_name(name: str, width: int) -> str:
    """Return a name of at most `width` characters: an ellipsis, and as many of the last parts as there is room for."""
    if len(name) <= width:
        return name
    first = len(name) - width + 1
    starts = (name.find(separator, first) for separator in SEPARATORS)
    return f"…{name[min((start for start in starts if start >= 0), default=first) :]}"


def format_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None = None) -> Iterator[str]:
    """Yield the lines of a table, the headings first; None for a table of any width."""
    lines = [[column.title for column in columns], *rows]
    widths = _fit_widths(columns, lines, width)
    cells = [
        [
            textwrap.wrap(text, size) if column.kind == "text" else [shorten_name(text, size)]
            for text, size, column in zip(line, widths, columns, strict=True)
        ]
        for line in lines
    ]
    widths = [max(len(text) for line in cells for text in line[index]) for index in range(len(columns))]
    for line in cells:
        for texts in zip_longest(*line, fillvalue=""):
            padded = (
                text.rjust(size) if column.kind == "number" else text.ljust(size)
                for text, size, column in zip(texts, widths, columns, strict=True)
            )
            yield GAP.join(padded).rstrip()


def _fit_widths(columns: Sequence[Column], lines: Sequence[Sequence[str]], width: int | None) -> list[int]:
    """Return the width of each column. The widest columns without numbers are narrowed until a line fits."""
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    excess = 0 if width is None else sum(widths) + len(GAP) * (len(widths) - 1) - width
    flexible = [index for index, column in enumerate(columns) if column.kind != "number"]
    for _ in range(excess):
        widest = max(flexible, key=lambda index: widths[index])
        if widths[widest] <= MIN_COLUMN_WIDTH:
            break
        widths[widest] -= 1
    return widths


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, verbose: bool = False) -> None:
    """Print a table with bold headings."""
    for number, line in enumerate(format_table(columns, rows, get_width(verbose=verbose))):
        click.echo(line if number else click.style(line, bold=True))


def shorten_words(text: str, width: int | None) -> str:
    """Return a text in which names that are longer than half a line are shortened."""
    return text if width is None else " ".join(shorten_name(word, width // 2) for word in text.split(" "))


def wrap_line(line: str, *, verbose: bool = False) -> str:
    """Return a line that continues below, further to the right, if it is longer than the width."""
    width = get_width(verbose=verbose)
    if width is None or len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    wrapped = textwrap.wrap(
        line,
        width,
        subsequent_indent=f"{indent}{INDENT}",
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return "\n".join(wrapped)
