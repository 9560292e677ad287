"""CSV files from any source: the columns of the field and the attitude are found by the names in the header.

Most headers, such as `time,mag_x [uT],mag_y [uT],mag_z [uT],qw,qx,qy,qz`, need no options. Otherwise the caller names
the columns. The delimiter is a comma, a semicolon or a tab; the decimal separator is a point. Lines that begin with #
or % are comments. If there is no header line, the last comment above the numbers is the header. The columns of a
quaternion are identified by w x y z, in any order. A quaternion of four zeros counts as missing.
"""

from __future__ import annotations

import codecs
import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from navsense.core import inputs
from navsense.core.errors import CalibrationError, Where
from navsense.core.text import parse_decimal
from navsense.core.typing import FloatArray
from navsense.core.units import MAGNETIC_FIELD_UNITS

SUFFIXES = (".csv", ".tsv", ".txt")

UNIT_NAMES = {name.lower(): name for name in MAGNETIC_FIELD_UNITS} | {
    "µt": "uT",
    "μt": "uT",
    "tesla": "T",
    "microtesla": "uT",
    "nanotesla": "nT",
    "gauss": "G",
    "milligauss": "mG",
}
"""Units in headers, in lower case -> units of navsense."""

FIELD_WORDS = frozenset(
    """m b h mag magn magnet magnetic magnetometer magneticfield magfield field compass raw rawmag magraw
    fieldmagneticfield magneticfieldmagneticfield""".split()
)
"""Column names of a field without x, y, z, punctuation and the number of the sensor."""

ATTITUDE_WORDS = frozenset(
    """q quat quaternion orientation rotation rotationws attitude att poseorientation poseposeorientation""".split()
)
"""Column names of an attitude without w, x, y, z and punctuation."""

EXAMPLES = {"xyz": "mx,my,mz", "wxyz": "qw,qx,qy,qz"}
"""Axes -> names of columns in the errors."""

COMMENT_MARKS = ("#", "%")
DELIMITERS = ",;\t"
DECIMAL_REMEDY = "write 1234.5: with a decimal point, without thousands separators"

_FILE = inputs.FileKind("table", CalibrationError, "must be CSV in UTF-8 with a header")
_BRACKET = re.compile(r"[\[(]\s*([^\])]*?)\s*[\])]")
_QUOTED = re.compile(r'"[^"]*"')
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class CsvColumn:
    """One column: name in the header, name without the axis, axis, unit."""

    name: str
    word: str
    axis: str
    unit: str | None


@dataclass(frozen=True)
class CsvHeader:
    """The header: line number, columns, number of lines above the rows, delimiter."""

    line: int
    columns: tuple[CsvColumn, ...]
    lines_above: int
    delimiter: str


def parse_column(name: str) -> CsvColumn:
    """Parse one name in a header."""
    plain = name.strip()
    bracket = _BRACKET.search(plain)
    unit = UNIT_NAMES.get(bracket.group(1).lower()) if bracket else None
    bare = _BRACKET.sub("", plain).strip().lower()
    head, sign, tail = bare.rpartition("_")
    if sign and tail in UNIT_NAMES:
        bare, unit = head, UNIT_NAMES[tail]
    letters = re.sub(r"[^a-z0-9]", "", bare)
    return CsvColumn(plain, letters[:-1], letters[-1:], unit)


def read_csv(path: Path, names: str | None, attitude: str) -> tuple[FloatArray, str | None, list[str]]:
    """Read the field and the attitude from a CSV file. Raises `CalibrationError` with file and line.

    names: of the three columns of the field, or None to find them.
    attitude: "none", "truth" to find its columns, or the names of four columns.

    The result is field and attitude, (n, 3) or (n, 7), the attitude in the order w x y z; the unit in the header; the
    names of the columns.
    """
    where = Where(str(path))
    lines = read_lines(path)
    head = parse_header(lines, where)
    columns, place = head.columns, Where(str(path), head.line)
    if names:
        wanted = find_named_columns(columns, names, "xyz", place, "--sensor")
    else:
        wanted = find_known_columns(columns, FIELD_WORDS, "xyz", place)
    if attitude == "truth":
        wanted = wanted + find_known_columns(columns, ATTITUDE_WORDS, "wxyz", place)
    elif attitude != "none":
        wanted = wanted + find_named_columns(columns, attitude, "wxyz", place, "--attitude")
    unit = find_unit([columns[i] for i in wanted[:3]], place)
    return parse_values(lines, head, wanted, where), unit, [columns[i].name for i in wanted]


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file in UTF-8, UTF-16 with a byte order mark, or Latin-1."""
    data = inputs.read_bytes(str(path), _FILE)
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = "\0" if is_wide else data.decode("latin-1")
    if _CONTROL.search(text):
        remedy = "save it as text, CSV in UTF-8"
        raise CalibrationError("table", "is not text", where=Where(str(path)), allowed=_FILE.allowed, remedy=remedy)
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def split_cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of one line without quotes."""
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]


def parse_header(lines: Sequence[str], where: Where) -> CsvHeader:
    """Return the header: the first line that is not a comment, or the comment above it if that line has numbers."""
    number = next(
        (i for i, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith(COMMENT_MARKS)), 0
    )
    comments = [i for i, line in enumerate(lines[: number - 1 if number else None], 1) if line.strip()]
    if not number and not comments:
        raise CalibrationError("table", "is empty", where=where, allowed=_FILE.allowed)
    line = number or comments[-1]
    delimiter = max(DELIMITERS, key=_QUOTED.sub("", lines[line - 1]).count)
    cells = split_cells(lines[line - 1], delimiter)
    if number and all(parse_decimal(cell) is not None for cell in cells):
        above = split_cells(lines[comments[-1] - 1].lstrip(" \t#%"), delimiter) if comments else []
        if len(above) != len(cells):
            raise CalibrationError(
                "first line",
                lines[line - 1].strip(),
                where=Where(where.path, line),
                allowed="must be a header",
                remedy="write one, as mag_x,mag_y,mag_z",
            )
        return CsvHeader(comments[-1], tuple(map(parse_column, above)), number - 1, delimiter)
    if not number:
        cells = split_cells(lines[line - 1].lstrip(" \t#%"), delimiter)
    return CsvHeader(line, tuple(map(parse_column, cells)), line, delimiter)


def find_unit(columns: Sequence[CsvColumn], where: Where) -> str | None:
    """Return the unit of the columns of a field, if any. Raises `CalibrationError` if they have different units."""
    units = {column.unit for column in columns} - {None}
    if len(units) > 1:
        names = ", ".join(column.name for column in columns)
        remedy = "convert the columns to one unit, or correct the header"
        raise CalibrationError("units of the field's columns", names, where=where, allowed="must be one", remedy=remedy)
    return units.pop() if units else None


def _find_axes(columns: Sequence[CsvColumn], word: str, axes: str) -> list[list[int]]:
    """Return the positions of the columns with this word, a list for each axis."""
    return [[i for i, column in enumerate(columns) if (column.word, column.axis) == (word, axis)] for axis in axes]


def find_named_columns(columns: Sequence[CsvColumn], names: str, axes: str, where: Where, option: str) -> list[int]:
    """Return the positions of columns with these names, separated by commas, or with this name before the axis."""
    wanted, have = [name.strip() for name in names.split(",")], [column.name for column in columns]
    if len(wanted) == 1 and (word := re.sub(r"[^a-z0-9]", "", names.lower())):
        places = _find_axes(columns, word, axes)
        if all(len(place) == 1 for place in places):
            return [place[0] for place in places]
    if len(set(wanted)) != len(axes) or len(wanted) != len(axes):
        allowed = f"must be {len(axes)} columns, as {EXAMPLES[axes]}; there are {', '.join(have)}"
        raise CalibrationError(option, names, where=where, allowed=allowed)
    for name in wanted:
        if name not in have:
            allowed = f"must be one of {', '.join(have)}"
            raise CalibrationError(f"column of {option}", name, where=where, allowed=allowed)
        if have.count(name) > 1:
            allowed, remedy = f"is {have.count(name)} times in the header", "give each column a different name"
            raise CalibrationError(f"column of {option}", name, where=where, allowed=allowed, remedy=remedy)
    return [have.index(name) for name in wanted]


def find_known_columns(columns: Sequence[CsvColumn], words: frozenset[str], axes: str, where: Where) -> list[int]:
    """Return the positions of columns whose name is one of `words` and an axis, or else an axis alone."""
    groups = {word: _find_axes(columns, word, axes) for word in dict.fromkeys(column.word for column in columns)}
    groups = {
        word: places
        for word, places in groups.items()
        if (word.rstrip("0123456789") in words or not word) and all(places)
    }
    is_repeated = any(len(place) > 1 for places in groups.values() for place in places)
    if len(groups) > 1:
        groups.pop("", None)
    found = [[place[0] for place in places] for places in groups.values()]
    if len(found) == 1 and not is_repeated:
        return found[0]
    what, option = ("attitude", "--attitude") if len(axes) == 4 else ("field", "--sensor")
    have = ", ".join(column.name for column in columns)
    if found:
        each = [f"{option} {','.join(columns[i].name for i in places)}" for places in found]
        remedy = f"name one: {' or '.join(each)}"
        if len(found) == 1:
            remedy = f"give each column a different name, then {remedy}"
        raise CalibrationError(f"several {what}s in the header: {have}", where=where, remedy=remedy)
    remedy = f"name its columns: {option} {EXAMPLES[axes]} (your names)"
    if len(columns) == 1:
        remedy = "put commas, semicolons or tabs between the columns, and a header above them"
    raise CalibrationError(f"no {what} in the header: {have}", where=where, remedy=remedy)


def parse_values(lines: Sequence[str], head: CsvHeader, wanted: Sequence[int], where: Where) -> FloatArray:
    """Return the columns `wanted` (n, columns) of the rows below the header. Empty cells and `nan` become NaN.

    Raises `CalibrationError` with the line of a row that is longer or shorter than the header, or of an invalid cell.
    """
    count, names = len(head.columns), [head.columns[i].name for i in wanted]
    body = [line for line in lines[head.lines_above :] if line]
    if body and all(line.count(head.delimiter) == count - 1 and '"' not in line for line in body):
        with suppress(ValueError):
            return np.loadtxt(body, delimiter=head.delimiter, comments=None, usecols=wanted, ndmin=2)
    out = array("d")
    for number, cells in iterate_rows(lines, head, where):
        if len(cells) != count and (len(cells) < count or any(cell.strip() for cell in cells[count:])):
            raise _make_column_count_error(lines, Where(where.path, number), len(cells), count)
        for i, name in zip(wanted, names, strict=True):
            try:
                value = float(cells[i])
            except ValueError:
                value = math.inf
            plain = -math.inf < value < math.inf and "_" not in cells[i]
            out.append(value if plain else _parse_missing(cells[i].strip(), name, Where(where.path, number)))
    if not out:
        raise CalibrationError("table without rows", where=where)
    return np.frombuffer(out).reshape(-1, len(wanted))


def iterate_rows(lines: Sequence[str], head: CsvHeader, where: Where) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each row below the header, without blank lines and comments."""
    reader = csv.reader(lines[head.lines_above :], delimiter=head.delimiter, skipinitialspace=True)
    number = 0
    try:
        for cells in reader:
            first, number = number + 1, reader.line_num
            if cells and (len(cells) > 1 or cells[0].strip()) and not cells[0].startswith(COMMENT_MARKS):
                yield head.lines_above + first, cells
    except csv.Error as cause:
        place = Where(where.path, head.lines_above + number + 1)
        raise CalibrationError("table", str(cause), where=place, allowed=_FILE.allowed) from cause


def _make_column_count_error(lines: Sequence[str], place: Where, cells: int, count: int) -> CalibrationError:
    """Return the error of a row with more or fewer cells than the header."""
    remedy = "name every column in the header, and use a decimal point" if cells > count else ""
    if cells < count and not any(line.strip() for line in lines[place.line :]):
        remedy = "the file ends within this line: leave it out"
    allowed = f"must be {count}, as in the header"
    return CalibrationError("number of columns", cells, where=place, allowed=allowed, remedy=remedy)


def _parse_missing(cell: str, name: str, where: Where) -> float:
    """Return NaN for an empty cell and for printed NaN and infinity. Raises `CalibrationError` otherwise."""
    if cell.lower().lstrip("+-") in ("", "nan", "inf", "infinity"):
        return math.nan
    allowed, remedy = "must be a number, or empty if missing", DECIMAL_REMEDY if "," in cell else ""
    raise CalibrationError(name, cell, where=where, allowed=allowed, remedy=remedy)
