"""Tables of numbers in CSV files. Errors name the file and the line."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind, read_lines
from navsense.core.text import parse_decimal
from navsense.core.typing import FloatArray

TableRow = tuple[int, list[str]]
"""Line number and stripped cells."""


def read_rows(name: str, kind: FileKind) -> list[TableRow]:
    """Return the non-blank rows of a CSV file without quotes and byte-order mark. Raises `FieldError`."""
    reader = csv.reader(read_lines(name, kind))
    rows: list[TableRow] = []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                rows.append((reader.line_num, stripped))
    except csv.Error as cause:
        raise FieldError(kind.what, str(cause), where=Where(name, reader.line_num), allowed=kind.allowed) from cause
    if not rows:
        raise FieldError(kind.what, "is empty", where=Where(name), allowed=kind.allowed)
    line, header = rows[0]
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        allowed, remedy = "must be separated by commas", "write the table with comma separators and decimal points"
        raise FieldError("columns of the table", header[0], allowed=allowed, where=Where(name, line), remedy=remedy)
    return rows


def read_table(name: str, kind: FileKind, headers: Collection[str]) -> tuple[str, list[int], FloatArray]:
    """Return the header, the line numbers and the numbers (rows, columns) of a table with one of the `headers`.

    Raises `FieldError` for another header, a table without rows, and a cell that is not a number.
    """
    (line, cells), *rows = read_rows(name, kind)
    header = ",".join(cells)
    if header not in headers:
        allowed = f"must be {' or '.join(headers)}"
        raise FieldError(f"header of the {kind.what}", header, allowed=allowed, where=Where(name, line))
    check_not_empty(name, kind, rows, cells)
    return header, [number for number, _ in rows], parse_numbers(name, rows, cells, range(len(cells)))


def check_not_empty(name: str, kind: FileKind, rows: Sequence[TableRow], header: Sequence[str]) -> None:
    """Raise `FieldError` for a table without rows."""
    if not rows:
        allowed = f"must have at least one row of {','.join(header)}"
        raise FieldError(f"rows of the {kind.what}", "none", allowed=allowed, where=Where(name))


def check_cell_count(cells: Sequence[str], header: Sequence[str], where: Where) -> None:
    """Raise `FieldError` for a row that is not as long as the header."""
    if len(cells) != len(header):
        allowed = f"must be {len(header)}: {', '.join(header)}"
        raise FieldError("number of columns", len(cells), allowed=allowed, where=where)


def parse_number(what: str, text: str, where: Where) -> float:
    """Return the number in a cell. Raises `FieldError` if the cell is empty or not a number."""
    number = parse_decimal(text)
    if number is None:
        remedy = "" if text else "fill in all cells"
        raise FieldError(what, text or "empty", allowed="must be a finite number", where=where, remedy=remedy)
    return number


def parse_numbers(name: str, rows: Sequence[TableRow], header: Sequence[str], columns: Sequence[int]) -> FloatArray:
    """Return columns (rows, columns) of rows as long as the header. Raises `FieldError` with the line."""
    out = np.empty((len(rows), len(columns)))
    for row, (line, cells) in enumerate(rows):
        check_cell_count(cells, header, Where(name, line))
        for k, column in enumerate(columns):
            text = cells[column]
            try:  # faster than `parse_number` for valid numbers
                out[row, k] = float(text)
            except ValueError:
                out[row, k] = math.nan
            if not (math.isfinite(out[row, k]) and text.isascii() and "_" not in text):
                out[row, k] = parse_number(header[column], text, Where(name, line))
    return out


@contextmanager
def add_lines_to_errors(name: str, lines: Sequence[int] = ()) -> Iterator[None]:
    """Add the file to the `FieldError` of an object that is made from a table. A line replaces the row of the error."""
    try:
        yield
    except FieldError as error:
        if error.where is None:
            error.where = Where(name)
            if lines and error.row is not None:
                error.where, error.what = Where(name, lines[error.row]), error.quantity
        raise
