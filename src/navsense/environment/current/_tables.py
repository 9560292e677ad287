"""Tables of currents in CSV files. Errors name the file and the line."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind, parse_decimal, read_lines
from navsense.core.typing import FloatArray

TableRow = tuple[int, list[str]]
"""Line number and stripped cells."""

COMMA_REMEDY = "write the table with comma separators and decimal points"


def read_rows(name: str, kind: FileKind) -> list[TableRow]:
    """Return the non-blank rows of a CSV file without quotes and byte-order mark. Raises `FieldError`."""
    reader = csv.reader(read_lines(name, kind))
    found: list[TableRow] = []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                found.append((reader.line_num, stripped))
    except csv.Error as cause:
        raise FieldError(kind.what, str(cause), where=Where(name, reader.line_num), allowed=kind.allowed) from cause
    if not found:
        raise FieldError(kind.what, "is empty", where=Where(name), allowed=kind.allowed)
    line, header = found[0]
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise FieldError(
            "columns of the table",
            header[0],
            allowed="must be separated by commas",
            where=Where(name, line),
            remedy=COMMA_REMEDY,
        )
    return found


def find_columns(header: Sequence[str], names: Sequence[str], where: Where) -> list[int]:
    """Return the indices of the named columns. Raises `FieldError` unless each occurs once in the header."""
    for name in names:
        if header.count(name) != 1:
            raise FieldError(
                "column",
                name,
                allowed=f"must occur once in the header, which has {', '.join(header)}",
                where=where,
                remedy="use the column names of the file",
            )
    return [header.index(name) for name in names]


def parse_value(what: str, text: str, where: Where) -> float:
    """Return the number in a cell. Raises `FieldError` if the cell is empty or not a number."""
    parsed = parse_decimal(text)
    if parsed is None:
        raise FieldError(
            what, text or "empty", allowed="must be a finite number", where=where, remedy="fill in all cells"
        )
    return parsed


def parse_numbers(name: str, table: Sequence[TableRow], header: Sequence[str], columns: Sequence[int]) -> FloatArray:
    """Return columns (rows, columns) of rows as long as the header. Raises `FieldError` with the line."""
    out = np.empty((len(table), len(columns)))
    for row, (line, cells) in enumerate(table):
        if len(cells) != len(header):
            allowed = f"must be {len(header)}, as in the header"
            raise FieldError("number of columns", len(cells), allowed=allowed, where=Where(name, line))
        for k, column in enumerate(columns):
            out[row, k] = _parse_fast(cells[column], header[column], name, line)
    return out


def _parse_fast(text: str, what: str, name: str, line: int) -> float:
    """Return a number like `parse_value`, but faster for valid numbers."""
    try:
        parsed = float(text)
    except ValueError:
        parsed = math.nan
    return parsed if math.isfinite(parsed) and "_" not in text else parse_value(what, text, Where(name, line))
