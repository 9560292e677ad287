"""Reads motion logs. Errors name the file and the line.

NumPy parses the rows in blocks. If it fails, the rows are parsed one by one to find the first invalid line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from navsense.core import inputs
from navsense.core.errors import MotionError, Where
from navsense.core.inputs import parse_decimal
from navsense.core.typing import FloatArray

HEADER = ("time", "x", "y", "z", "qw", "qx", "qy", "qz")
TUM_COLUMNS = ("t", "x", "y", "z", "qx", "qy", "qz", "qw")
TUM_ORDER = (0, 1, 2, 3, 7, 4, 5, 6)
"""Columns of a TUM row in the order of `HEADER`."""

BLOCK = 20_000
"""Rows per call of NumPy, because text needs more memory than numbers."""

_FILE = inputs.FileKind("log", MotionError, "must be a CSV or TUM file in UTF-8")


@dataclass(frozen=True, eq=False)
class MotionLog:
    """The rows of a log.

    values: (n, 8) in the order of `HEADER` (s, m, quaternion).
    find_line: function that returns the file and line of a row.
    """

    values: FloatArray
    find_line: Callable[[int], Where]


def read_log(path: str | os.PathLike[str]) -> MotionLog:
    """Read a CSV or TUM log. The suffix .csv, .tum or .txt decides; otherwise a comma in the first row means CSV.

    Raises `MotionError` with file and line for a file that cannot be opened, is not text or has no rows, and for a row
    that is not eight numbers.
    """
    name = os.fspath(path)
    comma, start, count = _scan_header(name)

    def find_line(row: int) -> Where:
        numbers = (number for number, _ in _list_rows(inputs.read_lines(name, _FILE), comma) if number >= start)
        return Where(name, next(number for index, number in enumerate(numbers) if index == row))

    values = np.empty((count, len(HEADER)))
    body = (line for number, line in _list_rows(inputs.read_lines(name, _FILE), comma) if number >= start)
    for first in range(0, count, BLOCK):
        rows = min(BLOCK, count - first)
        try:
            block = np.loadtxt(islice(body, rows), delimiter="," if comma else None, comments=None, ndmin=2)
            values[first : first + rows] = block if comma else block[:, TUM_ORDER]
        except (ValueError, IndexError) as error:
            _raise_first_error(name, start, comma)
            allowed = f"must hold rows of {_describe_columns(comma)}"
            raise MotionError("log", str(error), where=Where(name), allowed=allowed) from error
        if block.shape[1] != len(HEADER):
            _raise_first_error(name, start, comma)
    return MotionLog(values, find_line)


def _scan_header(name: str) -> tuple[bool, int, int]:
    """Return whether a log is CSV, the line of its first row, and the number of rows."""
    comma = _is_csv(name)
    rows = _list_rows(inputs.read_lines(name, _FILE), comma)
    if comma:
        _check_header(name, next(rows, None))
    first = next(rows, None)
    if first is None:
        raise MotionError(
            "log without rows", where=Where(name), allowed=f"must hold rows of {_describe_columns(comma)}"
        )
    return comma, first[0], 1 + sum(1 for _ in rows)


def _is_csv(name: str) -> bool:
    """Return true if the log is CSV by its suffix, or by its first row if the suffix is unknown."""
    suffix = Path(name).suffix.lower()
    if suffix in {".csv", ".tum", ".txt"}:
        return suffix == ".csv"
    return "," in next((line for _, line in _list_rows(inputs.read_lines(name, _FILE), comma=False)), "")


def _is_row(line: str, comma: bool) -> bool:
    """Return true if the line is not blank and, in TUM, not a comment."""
    return bool(line) and not line.isspace() and (comma or not line.lstrip().startswith("#"))


def _list_rows(lines: Iterable[str], comma: bool) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each row, including the header."""
    return ((number, line) for number, line in enumerate(lines, 1) if _is_row(line, comma))


def _describe_columns(comma: bool) -> str:
    return ",".join(HEADER) if comma else " ".join(TUM_COLUMNS)


def _check_header(name: str, header: tuple[int, str] | None) -> None:
    """Raise `MotionError` if the first row of a CSV log is not the header."""
    number, line = header or (1, "")
    if tuple(part.strip() for part in line.split(",")) != HEADER:
        raise MotionError(
            "header of the log",
            line.strip(),
            allowed=f"must be {','.join(HEADER)}",
            where=Where(name, number),
            remedy="a TUM log is a .tum or .txt file",
        )


def _raise_first_error(name: str, start: int, comma: bool) -> None:
    """Raise `MotionError` for the first row from line `start` on that is not eight numbers."""
    for number, line in _list_rows(inputs.read_lines(name, _FILE), comma):
        if number < start:
            continue
        parts = line.split(",") if comma else line.split()
        if len(parts) != len(HEADER):
            raise MotionError(
                "number of columns",
                len(parts),
                allowed=f"must be {len(HEADER)}: {_describe_columns(comma)}",
                where=Where(name, number),
            )
        for part, column in zip(parts, HEADER if comma else TUM_COLUMNS, strict=True):
            if parse_decimal(part) is None:
                raise MotionError(column, part.strip(), allowed="must be a finite number", where=Where(name, number))
