"""Readings in CSV files of anybody: which columns hold the field and the attitude is read from the header.

A header such as `time,mag_x [uT],mag_y [uT],mag_z [uT],qw,qx,qy,qz` says it in most people's words; columns are named
where it does not. Commas, semicolons or tabs stand between them, decimals have a point. Lines that begin with # or %
are comments; the last of them is the header where none stands below. A quaternion's columns are known by w x y z, in
any order; one of four zeros is none.
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

from navsense import inputs
from navsense.errors import CalibrationError, Where
from navsense.factors.arguments import UNITS
from navsense.inputs import parse_decimal
from navsense.typing import FloatArray

SUFFIXES = (".csv", ".tsv", ".txt")

UNIT_NAMES = {name.lower(): name for name in UNITS} | {
    "µt": "uT",
    "μt": "uT",
    "tesla": "T",
    "microtesla": "uT",
    "nanotesla": "nT",
    "gauss": "G",
    "milligauss": "mG",
}
"""Units as headers have them, in lower case, and as they are called here."""

FIELD_WORDS = frozenset(
    """m b h mag magn magnet magnetic magnetometer magneticfield magfield field compass raw rawmag magraw
    fieldmagneticfield magneticfieldmagneticfield""".split()
)
"""What stands before x, y, z in the names of a field's columns, without signs and a sensor's number between."""

ATTITUDE_WORDS = frozenset(
    """q quat quaternion orientation rotation rotationws attitude att poseorientation poseposeorientation""".split()
)
"""What stands before w, x, y, z in the names of an attitude's columns."""

COMMENT_MARKS = ("#", "%")
DELIMITERS = ",;\t"
DECIMAL_REMEDY = "write 1234.5: a point before the decimals, nothing between thousands"

_FILE = inputs.FileKind("table", CalibrationError, "must be CSV in UTF-8 with a header")
_BRACKET = re.compile(r"[\[(]\s*([^\])]*?)\s*[\])]")
_QUOTED = re.compile(r'"[^"]*"')
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True, eq=False)
class CsvTable:
    """A field (n, 3), the attitude (n, 4) w x y z that was asked for, the header's unit, the columns' names."""

    field: FloatArray
    attitude: FloatArray | None
    unit: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True)
class CsvColumn:
    """One column: its name in the header, the word before its axis, the axis, the unit it names."""

    name: str
    word: str
    axis: str
    unit: str | None


@dataclass(frozen=True)
class CsvHeader:
    """The header: its line's number and columns, how many lines stand above the rows, and what is between columns."""

    line: int
    columns: tuple[CsvColumn, ...]
    above: int
    sign: str


def parse_column(name: str) -> CsvColumn:
    """Return what a name in a header says."""
    plain = name.strip()
    bracket = _BRACKET.search(plain)
    unit = UNIT_NAMES.get(bracket.group(1).lower()) if bracket else None
    bare = _BRACKET.sub("", plain).strip().lower()
    head, sign, tail = bare.rpartition("_")
    if sign and tail in UNIT_NAMES:
        bare, unit = head, UNIT_NAMES[tail]
    letters = re.sub(r"[^a-z0-9]", "", bare)
    return CsvColumn(plain, letters[:-1], letters[-1:], unit)


def read_csv(path: Path, names: str | None, attitude: str) -> CsvTable:
    """Return what a table holds; `names` of three columns of the field, `attitude` none, truth or four columns' names.

    Raises `CalibrationError` with file and line.
    """
    where = Where(str(path))
    lines = read_lines(path)
    head = parse_header(lines, where)
    columns, place = head.columns, Where(str(path), head.line)
    field = (
        find_named_columns(columns, names, 3, place, "--sensor")
        if names
        else find_known_columns(columns, FIELD_WORDS, "xyz", place)
    )
    turns: list[int] = []
    if attitude == "truth":
        turns = find_known_columns(columns, ATTITUDE_WORDS, "wxyz", place)
    elif attitude != "none":
        turns = find_named_columns(columns, attitude, 4, place, "--attitude")
    unit = common_unit([columns[i] for i in field], place)
    values = parse_values(lines, head, [*field, *turns], where)
    used = tuple(columns[i].name for i in (*field, *turns))
    return CsvTable(values[:, :3], values[:, 3:] if turns else None, unit, used)


def read_lines(path: Path) -> list[str]:
    """Return a file's lines, of UTF-8, of UTF-16 with its mark, or of Latin-1. Raises `CalibrationError` otherwise."""
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


def split_cells(line: str, sign: str) -> list[str]:
    """Return the cells of one line, quotes taken off."""
    return [cell.strip() for cell in next(csv.reader([line], delimiter=sign, skipinitialspace=True), [])]


def parse_header(lines: Sequence[str], where: Where) -> CsvHeader:
    """Return the header: the first line that is no comment, or the comment above it where that holds numbers."""
    number = next(
        (i for i, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith(COMMENT_MARKS)), 0
    )
    comments = [i for i, line in enumerate(lines[: number - 1 if number else None], 1) if line.strip()]
    if not number and not comments:
        raise CalibrationError("table", "is empty", where=where, allowed=_FILE.allowed)
    line = number or comments[-1]
    sign = _find_delimiter(lines[line - 1])
    found = split_cells(lines[line - 1], sign)
    if number and all(parse_decimal(cell) is not None for cell in found):
        above = split_cells(lines[comments[-1] - 1].lstrip(" \t#%"), sign) if comments else []
        if len(above) != len(found):
            raise CalibrationError(
                "first line",
                lines[line - 1].strip(),
                where=Where(where.path, line),
                allowed="must be a header",
                remedy="write one, as mag_x,mag_y,mag_z",
            )
        return CsvHeader(comments[-1], tuple(map(parse_column, above)), number - 1, sign)
    if not number:
        found = split_cells(lines[line - 1].lstrip(" \t#%"), sign)
    return CsvHeader(line, tuple(map(parse_column, found)), line, sign)


def _find_delimiter(line: str) -> str:
    """Return what stands between the cells of a line."""
    bare = _QUOTED.sub("", line)
    return max(DELIMITERS, key=bare.count)


def common_unit(columns: Sequence[CsvColumn], where: Where) -> str | None:
    """Return the unit that the columns of a field name. Raises `CalibrationError` where it is not one for all."""
    units = {column.unit for column in columns} - {None}
    if len(units) > 1:
        names = ", ".join(column.name for column in columns)
        remedy = "convert the columns to one unit, or mend the header"
        raise CalibrationError("units of the field's columns", names, where=where, allowed="must be one", remedy=remedy)
    return units.pop() if units else None


def find_named_columns(columns: Sequence[CsvColumn], names: str, count: int, where: Where, option: str) -> list[int]:
    """Return where the columns of these names, separated by commas, stand; one word is what theirs begin with."""
    wanted = [name.strip() for name in names.split(",")]
    axes = "xyz" if count == 3 else "wxyz"
    if len(wanted) == 1 and (word := re.sub(r"[^a-z0-9]", "", names.lower())):
        places = [[i for i, c in enumerate(columns) if (c.word, c.axis) == (word, axis)] for axis in axes]
        if all(len(place) == 1 for place in places):
            return [place[0] for place in places]
    if len(set(wanted)) != count or len(wanted) != count:
        allowed = f"must be {count} columns, as {'mx,my,mz' if count == 3 else 'qw,qx,qy,qz'}"
        allowed += f"; there are {', '.join(column.name for column in columns)}"
        raise CalibrationError(option, names, where=where, allowed=allowed)
    have = [column.name for column in columns]
    for name in wanted:
        if have.count(name) != 1:
            allowed = f"must be one of {', '.join(have)}"
            remedy = ""
            if name in have:
                allowed, remedy = f"stands {have.count(name)} times in the header", "give each column a name of its own"
            raise CalibrationError(f"column of {option}", name, where=where, allowed=allowed, remedy=remedy)
    return [have.index(name) for name in wanted]


def find_known_columns(columns: Sequence[CsvColumn], words: frozenset[str], axes: str, where: Where) -> list[int]:
    """Return where the columns stand whose names are a known word and an axis; axes alone where there is none."""
    found: dict[str, list[int]] = {}
    several: set[str] = set()
    for word in dict.fromkeys(column.word for column in columns):
        places = [[i for i, c in enumerate(columns) if (c.word, c.axis) == (word, axis)] for axis in axes]
        if (word.rstrip("0123456789") in words or not word) and all(places):
            found[word] = [place[0] for place in places]
            several |= {word} if any(len(place) > 1 for place in places) else set()
    if len(found) > 1:
        found.pop("", None)
    if len(found) == 1 and not several:
        return next(iter(found.values()))
    what, option, example = ("field", "--sensor", "mx,my,mz")
    if len(axes) == 4:
        what, option, example = ("attitude", "--attitude", "qw,qx,qy,qz")
    have = ", ".join(column.name for column in columns)
    if found:
        each = [f"{option} {','.join(columns[i].name for i in places)}" for places in found.values()]
        remedy = f"name one: {' or '.join(each)}"
        if len(found) == 1:
            remedy = f"give each column a name of its own, then {remedy}"
        raise CalibrationError(f"several {what}s in the header: {have}", where=where, remedy=remedy)
    remedy = f"name its columns: {option} {example} (your names)"
    if len(columns) == 1:
        remedy = "put commas, semicolons or tabs between the columns, and a header above them"
    raise CalibrationError(f"no {what} in the header: {have}", where=where, remedy=remedy)


def parse_values(lines: Sequence[str], head: CsvHeader, wanted: Sequence[int], where: Where) -> FloatArray:
    """Return the columns `wanted` (n, columns) of the rows below the header; an empty cell and `nan` are NaN.

    Raises `CalibrationError` with the line of a row of another length than the header, and of a cell that is no number.
    """
    count, names = len(head.columns), [head.columns[i].name for i in wanted]
    body = [line for line in lines[head.above :] if line]
    if body and all(line.count(head.sign) == count - 1 and '"' not in line for line in body):
        with suppress(ValueError):
            return np.loadtxt(body, delimiter=head.sign, comments=None, usecols=wanted, ndmin=2)
    out = array("d")
    for number, cells in iterate_rows(lines, head, where):
        if len(cells) != count and (len(cells) < count or any(cell.strip() for cell in cells[count:])):
            raise _column_count_error(lines, Where(where.path, number), len(cells), count)
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
    """Yield number and cells of each line below the header that is neither blank nor a comment."""
    reader = csv.reader(lines[head.above :], delimiter=head.sign, skipinitialspace=True)
    number = 0
    try:
        for cells in reader:
            first, number = number + 1, reader.line_num
            if cells and (len(cells) > 1 or cells[0].strip()) and not cells[0].startswith(COMMENT_MARKS):
                yield head.above + first, cells
    except csv.Error as cause:
        place = Where(where.path, head.above + number + 1)
        raise CalibrationError("table", str(cause), where=place, allowed=_FILE.allowed) from cause


def _column_count_error(lines: Sequence[str], place: Where, cells: int, count: int) -> CalibrationError:
    """Return the error of a row that is longer or shorter than the header."""
    remedy = "name every column in the header, and put decimals behind a point" if cells > count else ""
    if cells < count and not any(line.strip() for line in lines[place.line :]):
        remedy = "the file ends within this line: leave it out"
    allowed = f"must be {count}, as in the header"
    return CalibrationError("number of columns", cells, where=place, allowed=allowed, remedy=remedy)


def _parse_missing(cell: str, name: str, where: Where) -> float:
    """Return NaN for an empty cell and for what floats are printed as that are no number; raise otherwise."""
    if cell.lower().lstrip("+-") in ("", "nan", "inf", "infinity"):
        return math.nan
    allowed, remedy = "must be a number, or empty for none", DECIMAL_REMEDY if "," in cell else ""
    raise CalibrationError(name, cell, where=where, allowed=allowed, remedy=remedy)
