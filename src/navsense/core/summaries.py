"""Short texts of objects for `repr`, and small tables for notebooks.

A specification is shown as its class with the fields that differ from their defaults. Other objects are shown as a
title with a table, see `Summary`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from html import escape
from itertools import groupby
from typing import Any, Protocol

import numpy as np

LINE_WIDTH = 100
"""Longest line of a `repr`, in characters."""

MAX_TEXT_ROWS = 8
"""Largest number of rows of a table in a `repr`."""

MAX_HTML_ROWS = 50
"""Largest number of rows of a table in a notebook."""

MAX_REPEATED = 20
"""Longest text of a value that is repeated for consecutive fields, in characters."""

MAX_ELEMENTS = 12
"""Largest number of elements of a sequence that are all shown."""


@dataclass(frozen=True)
class Summary:
    """A title and a table. `kind` is the class of the object."""

    kind: str
    title: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()

    def format_title(self) -> str:
        """Return `<KIND TITLE>`; a long title is truncated."""
        return f"<{_shorten(f'{self.kind} {self.title}', LINE_WIDTH - 2)}>"

    def format_text(self) -> str:
        """Return `<KIND TITLE>` and the first rows, one line each."""
        lines = [self.format_title()]
        shown = [tuple(map(str, row)) for row in self.rows[:MAX_TEXT_ROWS]]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        for row in shown:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(_shorten("  " + "  ".join(cells).rstrip()))
        if len(self.rows) > MAX_TEXT_ROWS:
            lines.append(f"  ... and {len(self.rows) - MAX_TEXT_ROWS} more")
        return "\n".join(lines)

    def format_html(self) -> str:
        """Return a table of HTML with the title as its caption."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.header)
        cells = (
            "".join(f'<td style="text-align: left">{escape(str(cell))}</td>' for cell in row)
            for row in self.rows[:MAX_HTML_ROWS]
        )
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        if len(self.rows) > MAX_HTML_ROWS:
            rest = f"... and {len(self.rows) - MAX_HTML_ROWS} more"
            body += f'<tr><td colspan="{max(len(self.header), 1)}">{rest}</td></tr>'
        caption = f"<caption>{escape(f'{self.kind} {self.title}'.strip())}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shorten(line: str, width: int = LINE_WIDTH) -> str:
    return line if len(line) <= width else f"{line[: width - 3]}..."


def list_changes(spec: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each field of a dataclass that differs from its default."""
    for field in fields(spec):
        value = getattr(spec, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if field.repr and not _is_same(value, default):
            yield field.name, value


def _is_same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    try:
        return type(value) is type(default) and bool(value == default)
    except ValueError:  # arrays
        return False


def format_value(value: Any) -> str:
    """Return a value as text. A long sequence or array is shown by its first elements, or its shape."""
    if isinstance(value, np.ndarray) and value.size > MAX_ELEMENTS:
        return f"<array {value.shape} of {value.dtype}>"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if type(value) not in (tuple, list):
        return repr(value)
    parts = [format_value(part) for part in (value if len(value) <= MAX_ELEMENTS else value[:3])]
    if len(value) > MAX_ELEMENTS:
        parts.append(f"... {len(value) - 3} more")
    opening, closing = "()" if isinstance(value, tuple) else "[]"
    return _join_parts(opening, parts, f",{closing}" if opening == "(" and len(parts) == 1 else closing)


def _join_parts(opening: str, parts: Sequence[str], closing: str) -> str:
    """Return parts on one line, or one below the other if a line is too short for them."""
    line = f"{opening}{', '.join(parts)}{closing}"
    if "\n" not in line and len(line) <= LINE_WIDTH:
        return line
    indented = "".join("    " + part.replace("\n", "\n    ") + ",\n" for part in parts)
    return f"{opening}\n{indented}{closing[-1]}"


def format_spec(self: Any) -> str:
    """Return the class of a specification with the fields that differ from their defaults.

    Consecutive fields with the same long value are joined, as in an assignment: `x=y=z=Noise(stddev=0.1)`. A text that
    does not fit in one line has one line for each field.
    """
    shown = [(name, format_value(value)) for name, value in list_changes(self)]
    groups = groupby(shown, key=lambda item: item[1] if len(item[1]) > MAX_REPEATED else item)
    parts = ["=".join([*(name for name, _ in group), group[0][1]]) for group in (list(group) for _, group in groups)]
    return _join_parts(f"{type(self).__name__}(", parts, ")")


def format_spec_html(self: Any) -> str:
    """Return the fields of a specification that differ from their defaults as a table of HTML."""
    rows = [(name, format_value(value)) for name, value in list_changes(self)]
    return Summary(type(self).__name__, "" if rows else "(defaults)", ("field", "value"), rows).format_html()


class HasSummary(Protocol):
    """An object with a short description."""

    def summarize(self) -> Summary:
        """Return title and table of the object."""


def format_summary(self: HasSummary) -> str:
    """Return the description of an object as text."""
    return self.summarize().format_text()


def format_title(self: HasSummary) -> str:
    """Return the title of the description of an object."""
    return self.summarize().format_title()


def format_summary_html(self: HasSummary) -> str:
    """Return the description of an object as a table of HTML."""
    return self.summarize().format_html()
