"""Text: decimal numbers in files; counts, sizes and lists of names in the output of commands and in errors."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

MAX_DIGITS = 400
"""Largest number of characters of a number in a file."""

MAX_LISTED_NAMES = 8
"""Largest number of names in a message."""

_DECIMAL_PATTERN = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def parse_decimal(text: str) -> float | None:
    """Return a finite decimal number; None for another text."""
    text = text.strip()
    if len(text) > MAX_DIGITS or not _DECIMAL_PATTERN.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun, for example `1 model` or `2 models`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def list_names(names: Sequence[str]) -> str:
    """Return the first names, and the number of further ones.

    >>> list_names([f"/topic{k}" for k in range(10)])
    '/topic0, /topic1, /topic2, /topic3, /topic4, /topic5, /topic6, /topic7 and 2 more'
    """
    more = len(names) - MAX_LISTED_NAMES
    return ", ".join(names[:MAX_LISTED_NAMES]) + (f" and {more} more" if more > 0 else "")


def format_duration(seconds: float, decimals: int = 0) -> str:
    """Return a duration, or a time since the start of a run, in units that fit its size.

    Below two minutes it has six digits, for example `8.125 s`. Longer ones are whole seconds, or have a number of
    decimals: `26 min`, `5 min 41 s`, `1 h 40 min`. From two hours on, whole seconds are left out.
    """
    if not 120.0 <= abs(seconds) < 1e9:
        return f"{seconds:.6g} s"
    sign, size = "-" if seconds < 0.0 else "", abs(round(seconds, decimals))
    minutes, rest = divmod(size, 60.0)
    hours, minutes = divmod(int(minutes), 60)
    rest_text = f"{rest:.{decimals}f}"
    rest_text = rest_text.rstrip("0").rstrip(".") if "." in rest_text else rest_text
    if hours >= 2 and not decimals:
        minutes, rest_text = minutes + (rest >= 30.0), "0"
        hours, minutes = hours + minutes // 60, minutes % 60
    parts = ((f"{hours}", "h"), (f"{minutes}", "min"), (rest_text, "s"))
    return sign + " ".join(f"{number} {unit}" for number, unit in parts if number != "0")


def format_size(size: int) -> str:
    """Return a size in bytes with a decimal prefix, for example `1 byte`, `1.3 kB` or `20.4 MB`."""
    if size < 1000:
        return format_count(size, "byte")
    factor, unit = (1e3, "kB") if size < 999_950 else (1e6, "MB") if size < 999_950_000 else (1e9, "GB")
    return f"{size / factor:.1f} {unit}"
