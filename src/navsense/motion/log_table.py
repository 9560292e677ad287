"""Tables of motion logs: CSV with a header, found by the names of its columns, and TUM.

A header names the columns in any order. Each name is compared with the names and aliases in `QUANTITIES`. Case,
punctuation, unit and the path of a message do not count: `/odom/pose/position/x` is `positionx`. A unit is in brackets
or behind an underscore: `timestamp [ns]`, `heading_rad`. Values are converted to SI. A time in another unit than the
second is an integer of up to 19 digits in most logs. The first one is subtracted from it before it becomes a float.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, DecimalException
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from navsense.core import inputs
from navsense.core.errors import MotionError, Where
from navsense.core.readings import LONGEST_TIME
from navsense.core.text import parse_decimal
from navsense.core.typing import FloatArray
from navsense.core.units import DEGREE
from navsense.motion._spline import split_rows
from navsense.motion.base import LogContext, Motion, find_first_true

TIME_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), -3),
    **dict.fromkeys(("us", "usec", "µs", "μs", "microsecond", "microseconds"), -6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), -9),
}
"""Unit of time -> exponent of ten of its size in seconds."""

_METRE = dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0)
_ANGLE = dict.fromkeys(("rad", "radian", "radians"), 1.0) | dict.fromkeys(("deg", "degree", "degrees", "°"), DEGREE)

UNITS: Mapping[str, Mapping[str, float]] = {
    "s": dict.fromkeys(TIME_UNITS, 1.0),
    "m": _METRE,
    "rad": _ANGLE,
    "1": {"": 1.0, "1": 1.0},
    "m/s": dict.fromkeys(("m/s", "m s^-1", "mps"), 1.0),
    "rad/s": dict.fromkeys(("rad/s", "rad s^-1", "rad"), 1.0)
    | dict.fromkeys(("deg/s", "deg s^-1", "dps", "deg"), DEGREE),
    "rad or m": _ANGLE | _METRE,
}
"""SI unit of a quantity -> units that a header can name, with their sizes."""

NANOSECOND_STAMP, LARGEST_TIME = 1e17, 1e11
"""A time without a unit is in ns from the first of these values (the year 1973 as Unix time) on. It must be below the
second one otherwise: 1e11 s is the year 5138, and milliseconds and microseconds cannot be distinguished."""


class Quantity(NamedTuple):
    """A quantity in a log: SI unit, other names without punctuation, and the largest absolute value (SI)."""

    unit: str
    aliases: tuple[str, ...] = ()
    limit: float = math.inf


_FULL_TURN, _QUARTER_TURN = 2.0 * math.pi, 0.5 * math.pi

QUANTITIES: Mapping[str, Quantity] = {
    "time": Quantity("s", ("timestamp", "stamp", "t")),
    **{
        axis: Quantity("m", tuple(f"{word}{axis}" for word in ("p", "pos", "position", "translation", "prsr")))
        for axis in "xyz"
    },
    **{
        f"q{axis}": Quantity(
            "1", tuple(f"{word}{axis}" for word in ("quat", "quaternion", "orientation", "rotation", "qrs"))
        )
        for axis in "wxyz"
    },
    **{f"v{axis}": Quantity("m/s", (f"linear{axis}",)) for axis in "xyz"},
    **{f"w{axis}": Quantity("rad/s", (f"angular{axis}",)) for axis in "xyz"},
    "roll": Quantity("rad", limit=_FULL_TURN),
    "pitch": Quantity("rad", limit=_QUARTER_TURN),
    "yaw": Quantity("rad", limit=_FULL_TURN),
    "latitude": Quantity("rad", ("lat",), _QUARTER_TURN),
    "longitude": Quantity("rad", ("lon", "lng", "long"), _FULL_TURN),
    "depth": Quantity("m"),
    "altitude": Quantity("m", ("alt",)),
    "heading": Quantity("rad", ("hdg",), _FULL_TURN),
}
"""Name of a column -> quantity."""

LIMIT_TOLERANCE = 1e-6
"""Radians: an angle with few digits may exceed its limit by this much."""

COMMENT_MARKS = ("#", "%")
DELIMITERS = ",;\t"

_FILE_KIND = inputs.FileKind("log", MotionError, "must be a CSV or TUM file in UTF-8")
_BRACKET = re.compile(r"[\[(]\s*([^\])]*?)\s*[\])]\s*$")
_ALIASES = {alias: name for name, quantity in QUANTITIES.items() for alias in (name, *quantity.aliases)}


@dataclass(frozen=True)
class LogColumn:
    """A column of a file.

    index: its number, from 0.
    name: the name in the header.
    quantity: "" for an unknown one.
    unit: in lower case; None if the header has none.
    is_alias: false if the name in the header is that of the quantity.
    """

    index: int
    name: str
    quantity: str
    unit: str | None = None
    is_alias: bool = False


@dataclass(frozen=True)
class LogKind:
    """A kind of log: its columns, and the function that returns the motion.

    columns: the names of the quantities, `time` first.
    build: returns the motion of a log of this kind; `bandwidth` in Hz, None for no smoothing.
    angle: size (rad) of an angle whose header has no unit.
    substitutes: quantity -> quantity that is read in its place if the header lacks it.
    """

    columns: tuple[str, ...]
    build: Callable[[LogFile, LogContext, float | None], Motion]
    angle: float = 1.0
    substitutes: Mapping[str, str] = field(default_factory=dict)

    def find_columns(self, header: Sequence[LogColumn]) -> list[LogColumn | None]:
        """Return the column of each quantity in a header, None for a missing one."""
        first_columns: dict[str, LogColumn] = {}
        # The name of a quantity has priority over its aliases.
        for column in sorted(header, key=lambda column: column.is_alias):
            first_columns.setdefault(column.quantity, column)
        return [first_columns.get(name) or first_columns.get(self.substitutes.get(name, name)) for name in self.columns]


@dataclass(frozen=True, eq=False)
class LogFile:
    """A log whose columns are found.

    kind: the kind of log.
    columns: the columns of the file in the order of `kind.columns`.
    column_count: the number of columns of the file.
    delimiter: None for blanks (TUM).
    header, start: the lines of the header (0 without one) and of the first row.
    row_count: the number of rows.
    notes: for the user.
    quantities: quantity of each name in `kind.columns`.
    """

    path: str
    kind: LogKind
    columns: tuple[LogColumn, ...]
    column_count: int
    delimiter: str | None
    header: int
    start: int
    row_count: int
    notes: tuple[str, ...] = ()
    quantities: Mapping[str, Quantity] = field(default_factory=lambda: QUANTITIES)

    @property
    def where(self) -> Where:
        """The header, or the file if it has none."""
        return Where(self.path, self.header)

    def list_rows(self) -> Iterator[tuple[int, str]]:
        """Yield the line number and text of each row. Raises `MotionError` for a CSV row of another length."""
        for number, line in list_lines(self.path, is_csv=self.delimiter is not None):
            if number >= self.start:
                if self.delimiter is not None and line.count(self.delimiter) != self.column_count - 1:
                    count = len(split_cells(line, self.delimiter))
                    if count != self.column_count:
                        raise self._make_count_error(number, count)
                yield number, line

    def find_line(self, row: int) -> Where:
        """Return the place of a row."""
        return Where(self.path, next(islice(self.list_rows(), row, None))[0])

    def read_values(self) -> FloatArray:
        """Return the rows (n, columns) in SI, `time` (s) first. Raises `MotionError` with the line of an invalid value.

        NumPy parses the rows in blocks. If it fails, the rows are parsed one by one to find the first invalid line.
        """
        values = np.empty((self.row_count, len(self.columns)))
        lines = (line for _, line in self.list_rows())
        indices = [column.index for column in self.columns]
        exponent, first_time = self._find_time_exponent(), Decimal(0)
        for part in split_rows(self.row_count):
            text: Iterator[str] | list[str] = islice(lines, part.stop - part.start)
            if exponent:
                text = list(text)
            try:
                if self.delimiter is None:  # every column, so that a row of another length is an error
                    block = np.loadtxt(text, comments=None, ndmin=2)[:, indices]
                else:
                    block = np.loadtxt(
                        text, delimiter=self.delimiter, comments=None, ndmin=2, usecols=indices, quotechar='"'
                    )
                if exponent:
                    times = [Decimal(split_cells(line, self.delimiter)[indices[0]]) for line in text]
                    first_time = first_time if part.start else times[0]
                    block[:, 0] = [float((time - first_time).scaleb(exponent)) for time in times]
            except (ValueError, IndexError, DecimalException) as error:
                self._raise_first_error()
                allowed = f"must hold rows of {self.format_columns()}"
                raise MotionError("log", str(error), where=Where(self.path), allowed=allowed) from error
            values[part] = block
        for index, (column, name) in enumerate(zip(self.columns, self.kind.columns, strict=True)):
            self._convert_column(values[:, index], column, name)
        self._check_span(values[:, 0])
        return values

    def format_columns(self) -> str:
        """Return the names of the columns."""
        return "t x y z qx qy qz qw" if self.delimiter is None else ",".join(self.kind.columns)

    def _find_time_exponent(self) -> int:
        """Return the exponent of ten of the unit of time. Raises `MotionError` for a unit that is not clear."""
        column = self.columns[0]
        if column.unit is not None or self.delimiter is None:
            return TIME_UNITS[column.unit or "s"]
        number, line = next(self.list_rows())
        first = parse_decimal(split_cells(line, self.delimiter)[column.index])
        if first is None or abs(first) < LARGEST_TIME:
            return 0
        if first >= NANOSECOND_STAMP:
            return -9
        allowed = f"must be in seconds, below {LARGEST_TIME:g}, or have a unit in the header"
        remedy = f"write {column.name}_ms, {column.name}_us or {column.name}_ns in the header"
        raise MotionError(column.name, f"{first:.17g}", where=Where(self.path, number), allowed=allowed, remedy=remedy)

    def _convert_column(self, values: FloatArray, column: LogColumn, name: str) -> None:
        """Convert a column to SI in place. Raises `MotionError` for a value that is not finite or beyond its limit."""
        quantity = self.quantities[name]
        size = UNITS[quantity.unit][column.unit] if column.unit and name != "time" else 1.0
        if quantity.unit == "rad" and column.unit is None:
            size = self.kind.angle
        row = find_first_true(~np.isfinite(values))
        if row >= 0:
            what, value = f"{column.name} of row {row}", float(values[row])
            raise MotionError(what, value, allowed="must be finite", where=self.find_line(row))
        if math.isfinite(quantity.limit):
            row = find_first_true(np.abs(values) * size > quantity.limit + LIMIT_TOLERANCE)
            if row >= 0:
                limit = f"{quantity.limit / size:.6g}"
                what = f"{column.name} of row {row} ({'rad' if size == 1.0 else 'deg'})"
                value, remedy = float(values[row]), "wrap the angle, or correct the row"
                if size == 1.0:
                    remedy = f"if it is in degrees, write {name}_deg in the header"
                allowed = f"must be from -{limit} to {limit}"
                raise MotionError(what, value, where=self.find_line(row), allowed=allowed, remedy=remedy)
        if size != 1.0:
            values *= size

    def _check_span(self, time: FloatArray) -> None:
        """Raise `MotionError` for the first time (s) that is too late for a stamp."""
        row = find_first_true(time - time[0] >= LONGEST_TIME)
        if row >= 0:
            column = self.columns[0]
            allowed = f"must be less than {LONGEST_TIME:g} s after the first row"
            remedy = "correct the row" if column.unit or self.delimiter is None else "write its unit, as time_ns"
            what, value = f"{column.name} of row {row} (s)", float(time[row])
            raise MotionError(what, value, where=self.find_line(row), allowed=allowed, remedy=remedy)

    def _make_count_error(self, line: int, count: int) -> MotionError:
        is_complete = self.column_count == len(self.columns)
        allowed = f"must be {self.column_count}{f': {self.format_columns()}' if is_complete else ', as in the header'}"
        return MotionError("number of columns", count, allowed=allowed, where=Where(self.path, line))

    def _raise_first_error(self) -> None:
        """Raise `MotionError` for the first row of another length or with a cell that is not a number."""
        for number, line in self.list_rows():
            cells = split_cells(line, self.delimiter)
            if len(cells) != self.column_count:
                raise self._make_count_error(number, len(cells))
            for column in sorted(self.columns, key=lambda column: column.index):
                if parse_decimal(cells[column.index]) is None:
                    value, allowed, remedy = cells[column.index].strip(), "must be a finite number", ""
                    if "," in value:
                        remedy = "write decimals with a point"
                    elif column.quantity == "time" and any(mark in value for mark in ":-"):
                        remedy = "write times in seconds, or with their unit in the header, as time_ns"
                    where = Where(self.path, number)
                    raise MotionError(column.name, value, allowed=allowed, where=where, remedy=remedy)


def split_cells(line: str, delimiter: str | None) -> list[str]:
    """Return the cells of a row: between delimiters, or between blanks if it is None."""
    if delimiter is None:
        return line.split()
    return line.split(delimiter) if '"' not in line else next(csv.reader([line], delimiter=delimiter))


def list_lines(path: str, *, is_csv: bool) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of each line that is not blank and, in TUM, not a comment."""
    for number, line in enumerate(inputs.read_lines(path, _FILE_KIND), 1):
        if line and not line.isspace() and (is_csv or not line.lstrip().startswith("#")):
            yield number, line


def parse_column(index: int, name: str) -> LogColumn:
    """Return the column with a name in a header."""
    bare, unit = split_unit(name)
    quantity = _find_quantity(bare)
    if not quantity and unit is None:
        head, _, tail = bare.lower().rpartition("_")
        quantity = _find_quantity(head)
        if quantity and tail in UNITS[QUANTITIES[quantity].unit]:
            bare, unit = head, tail
        else:
            quantity = ""
    return LogColumn(index, name.strip(), quantity, unit, is_alias=bare.lower() != quantity)


def split_unit(name: str) -> tuple[str, str | None]:
    """Return a name in a header without the unit in brackets, and the unit in lower case; None without one."""
    bare = name.strip()
    bracket = _BRACKET.search(bare)
    return (bare[: bracket.start()].rstrip(), bracket.group(1).lower()) if bracket else (bare, None)


def _find_quantity(name: str) -> str:
    """Return the quantity of a name without unit, "" if it is unknown."""
    parts = [re.sub(r"[^a-z0-9]", "", part) for part in re.split(r"[./]", name.lower())]
    last = "".join(parts[-2:]) if len(parts[-1]) == 1 else parts[-1]
    return _ALIASES.get(last, "")


class Header(NamedTuple):
    """The header of a CSV log: its line, its text, its cells, the delimiter, and the rows after it."""

    line: int
    text: str
    cells: list[str]
    delimiter: str
    rows: Iterator[tuple[int, str]]


def read_header(path: str) -> Header:
    """Return the header of a CSV log. Comments may precede it, and the last of them may be the header."""
    lines = list_lines(path, is_csv=True)
    comments: list[tuple[int, str]] = []
    number, text = 1, ""
    for number, text in lines:
        if not text.lstrip().startswith(COMMENT_MARKS):
            break
        comments.append((number, text))
    else:
        number, text = comments.pop() if comments else (1, "")
    delimiter = max(DELIMITERS, key=text.count)
    rows: Iterator[tuple[int, str]] = lines
    if comments and all(parse_decimal(cell) is not None for cell in split_cells(text, delimiter)):
        rows = chain([(number, text)], lines)
        number, text = comments[-1]
    cells = split_cells(text.lstrip().lstrip("".join(COMMENT_MARKS)), delimiter)
    return Header(number, text.strip(), cells, delimiter, rows)


def open_csv(path: str, kinds: Sequence[LogKind]) -> LogFile:
    """Return a CSV log with the first of `kinds` whose columns its header has. Raises `MotionError` without one."""
    number, text, cells, delimiter, rows = read_header(path)
    header = [parse_column(index, name) for index, name in enumerate(cells)]
    where = Where(path, number)
    kind = _select_kind(header, kinds, text or None, where)
    columns = tuple(column for column in kind.find_columns(header) if column is not None)
    for column, name in zip(columns, kind.columns, strict=True):
        check_column(column, QUANTITIES[name], header, where)
    unread = [column.name for column in header if column not in columns]
    notes = (f"{Path(path).name}: columns that are not read: {', '.join(unread)}",) if unread else ()
    start, count = count_rows(path, kind, rows)
    return LogFile(path, kind, columns, len(cells), delimiter, number, start, count, notes)


def count_rows(path: str, kind: LogKind, rows: Iterator[tuple[int, str]]) -> tuple[int, int]:
    """Return the line of the first row and the number of rows. Raises `MotionError` if there is none."""
    start, _ = next(rows, (0, ""))
    if not start:
        allowed = f"must hold rows of {','.join(kind.columns)}"
        raise MotionError("log without rows", where=Where(path), allowed=allowed)
    return start, 1 + sum(1 for _ in rows)


def _select_kind(header: Sequence[LogColumn], kinds: Sequence[LogKind], text: str | None, where: Where) -> LogKind:
    """Return the kind of a header. Raises `MotionError` for an unknown one, and for a position in two frames."""
    matches = [kind for kind in kinds if None not in kind.find_columns(header)]
    if matches:
        if (
            len({"latitude" in kind.columns for kind in matches if "x" in kind.columns or "latitude" in kind.columns})
            > 1
        ):
            remedy = "rename the columns that are not to be read"
            allowed = "must have one position, x,y,z or latitude,longitude"
            raise MotionError("header of the log", text, where=where, allowed=allowed, remedy=remedy)
        return matches[0]
    counts = [sum(column is not None for column in kind.find_columns(header)) for kind in kinds]
    nearest = [kind for kind, count in zip(kinds, counts, strict=True) if count == max(counts)]
    missing = [_list_missing(kind, header) for kind in nearest]
    is_only_one = max(counts) > 2 and len(nearest) == 1
    if is_only_one or len(missing[0]) < len(nearest[0].columns) / 2:
        what = f"header of the log without {' or '.join(', '.join(names) for names in missing)}"
        allowed = f"must have {' or '.join(','.join(kind.columns) for kind in nearest)} in any order"
        raise MotionError(what, text, where=where, allowed=allowed, remedy=_make_remedy(header, missing[0]))
    allowed = f"must have the columns {' or '.join(','.join(kind.columns) for kind in kinds)}"
    raise MotionError(
        "header of the log", text, where=where, allowed=allowed, remedy="a TUM log is a .tum or .txt file"
    )


def _list_missing(kind: LogKind, header: Sequence[LogColumn]) -> list[str]:
    """Return the columns of a kind that a header does not have."""
    return [name for name, column in zip(kind.columns, kind.find_columns(header), strict=True) if column is None]


def _make_remedy(header: Sequence[LogColumn], missing: Sequence[str]) -> str:
    """Return the remedy for a header that lacks these columns."""
    for column in (column for column in header if not column.quantity):
        stem, _, unit = column.name.rpartition("_")
        quantity = _find_quantity(stem)
        if quantity in missing:
            units = ", ".join(UNITS[QUANTITIES[quantity].unit])
            return f"{column.name} has the unit {unit}; convert it to one of {units}"
    quantities = {column.quantity for column in header}
    if "latitude" in quantities and "qw" in quantities:
        return "latitude and longitude need heading, pitch and roll: a quaternion is not read with them"
    if "latitude" in quantities and {"depth", "altitude"} & set(missing):
        return "add or rename the columns; an altitude is above the ellipsoid, not above mean sea level"
    return "add or rename the columns"


def check_column(column: LogColumn, quantity: Quantity, header: Sequence[LogColumn], where: Where) -> None:
    """Raise `MotionError` for several columns of one quantity, and for a unit that the quantity does not have."""
    same = [entry.name for entry in header if (entry.quantity, entry.is_alias) == (column.quantity, column.is_alias)]
    if len(same) > 1:
        allowed = f"must have one column of {column.quantity}"
        remedy = f"name it {column.quantity}, or rename the others"
        raise MotionError("columns of the log", ", ".join(same), where=where, allowed=allowed, remedy=remedy)
    units = UNITS[quantity.unit]
    if column.unit is not None and column.unit not in units:
        allowed = f"must be one of {', '.join(units)}"
        raise MotionError(f"unit of {column.name}", column.unit, where=where, allowed=allowed)
