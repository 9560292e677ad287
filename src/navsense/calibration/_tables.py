"""Readings in CSV files of anybody: which columns hold the field and the attitude is read from the header.

A header such as `time,mag_x [uT],mag_y [uT],mag_z [uT],qw,qx,qy,qz` says it in most people's words; columns are named
where it does not. Commas, semicolons or tabs stand between them. A quaternion's columns are known by w x y z, in any
order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from navsense import inputs
from navsense.errors import CalibrationError, Where
from navsense.inputs import decimal
from navsense.typing import FloatArray

SUFFIXES = (".csv", ".tsv", ".txt")

UNITS = {name.lower(): name for name in ("T", "mT", "uT", "nT", "G", "mG")} | {
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
"""What stands before x, y, z in the names of a field's columns, without signs between."""

ATTITUDE_WORDS = frozenset(
    """q quat quaternion orientation rotation rotationws attitude att poseorientation poseposeorientation""".split()
)
"""What stands before w, x, y, z in the names of an attitude's columns."""

_FILE = inputs.Kind("table", CalibrationError, "must be CSV in UTF-8 with a header")
_BRACKET = re.compile(r"[\[(]\s*([^\])]*?)\s*[\])]")


@dataclass(frozen=True, eq=False)
class Table:
    """A field (n, 3), the attitude (n, 4) w x y z that was asked for, the header's unit, the columns' names."""

    field: FloatArray
    attitude: FloatArray | None
    unit: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """One column: its name in the header, the word before its axis, the axis, the unit it names."""

    name: str
    word: str
    axis: str
    unit: str | None


def column_of(name: str) -> Column:
    """Return what a name in a header says."""
    plain = name.strip().strip('"')
    bracket = _BRACKET.search(plain)
    unit = UNITS.get(bracket.group(1).lower()) if bracket else None
    bare = _BRACKET.sub("", plain).strip().lower()
    head, sign, tail = bare.rpartition("_")
    if sign and tail in UNITS:
        bare, unit = head, UNITS[tail]
    letters = re.sub(r"[^a-z0-9]", "", bare)
    return Column(plain, letters[:-1], letters[-1:], unit)


def read(path: Path, names: str | None, attitude: str) -> Table:
    """Return what a table holds; `names` of three columns of the field, `attitude` none, truth or four columns' names.

    Raises `CalibrationError` with file and line.
    """
    where = Where(str(path))
    lines = inputs.lines(str(path), _FILE)
    number, header = next(((i, line) for i, line in enumerate(lines, 1) if line.strip()), (1, ""))
    sign = max(",;\t", key=header.count)
    columns = [column_of(name) for name in header.lstrip("#").split(sign)]
    if all(decimal(column.name) is not None for column in columns):
        remedy = "write one, as mag_x,mag_y,mag_z"
        raise CalibrationError(
            "first line", header.strip(), where=Where(str(path), number), allowed="must be a header", remedy=remedy
        )
    place = Where(str(path), number)
    field = named(columns, names, 3, place, "--sensor") if names else known(columns, FIELD_WORDS, "xyz", place)
    turns: list[int] = []
    if attitude == "truth":
        turns = known(columns, ATTITUDE_WORDS, "wxyz", place)
    elif attitude != "none":
        turns = named(columns, attitude, 4, place, "--attitude")
    values = numbers(lines, number, sign, columns, [*field, *turns], where)
    unit = columns[field[0]].unit
    used = tuple(columns[i].name for i in (*field, *turns))
    return Table(values[:, :3], values[:, 3:] if turns else None, unit, used)


def named(columns: Sequence[Column], names: str, count: int, where: Where, option: str) -> list[int]:
    """Return where the columns of these names, separated by commas, stand."""
    wanted = [name.strip() for name in names.split(",")]
    if len(wanted) != count:
        allowed = f"must be {count} columns, as {'mx,my,mz' if count == 3 else 'qw,qx,qy,qz'}"
        raise CalibrationError(option, names, where=where, allowed=allowed)
    have = [column.name for column in columns]
    for name in wanted:
        if name not in have:
            raise CalibrationError(
                f"column of {option}", name, where=where, allowed=f"must be one of {', '.join(have)}"
            )
    return [have.index(name) for name in wanted]


def known(columns: Sequence[Column], words: frozenset[str], axes: str, where: Where) -> list[int]:
    """Return where the columns stand whose names are a known word and an axis; axes alone where there is none."""
    found: dict[str, list[int]] = {}
    for word in dict.fromkeys(column.word for column in columns):
        places = [[i for i, c in enumerate(columns) if (c.word, c.axis) == (word, axis)] for axis in axes]
        if (word in words or not word) and all(len(place) == 1 for place in places):
            found[word] = [place[0] for place in places]
    if len(found) > 1:
        found.pop("", None)
    if len(found) == 1:
        return next(iter(found.values()))
    what, option, example = ("field", "--sensor", "mx,my,mz")
    if len(axes) == 4:
        what, option, example = ("attitude", "--attitude", "qw,qx,qy,qz")
    have = ", ".join(column.name for column in columns)
    if found:
        example = ",".join(columns[i].name for i in next(iter(found.values())))
        raise CalibrationError(
            f"several {what}s in the header", have, where=where, remedy=f"name one: {option} {example}"
        )
    raise CalibrationError(
        f"no {what} in the header", have, where=where, remedy=f"name its columns: {option} {example} (your names)"
    )


def numbers(
    lines: Sequence[str], header: int, sign: str, columns: Sequence[Column], wanted: Sequence[int], where: Where
) -> FloatArray:
    """Return the columns `wanted` (n, columns) of the rows below the header; an empty cell and `nan` are NaN."""
    body = [line for line in lines[header:] if line.strip()]
    if not body:
        raise CalibrationError("table without rows", where=where)
    try:
        return np.loadtxt(body, delimiter=sign, comments=None, usecols=wanted, ndmin=2)
    except ValueError:
        return one_by_one(lines, header, sign, columns, wanted, where)


def one_by_one(
    lines: Sequence[str], header: int, sign: str, columns: Sequence[Column], wanted: Sequence[int], where: Where
) -> FloatArray:
    """Return what `numbers` does, a cell at a time. Raises `CalibrationError` with the line of a cell that is none."""
    rows = []
    for number, line in enumerate(lines[header:], header + 1):
        if not line.strip():
            continue
        cells, row = [cell.strip().strip('"') for cell in line.split(sign)], []
        for i in wanted:
            if i >= len(cells):
                allowed = f"must be {len(columns)}, as in the header"
                raise CalibrationError(
                    "number of columns", len(cells), where=Where(where.path, number), allowed=allowed
                )
            value = decimal(cells[i]) if cells[i].lower() not in ("", "nan") else float("nan")
            if value is None:
                place = Where(where.path, number)
                raise CalibrationError(
                    columns[i].name, cells[i], where=place, allowed="must be a number, or empty for none"
                )
            row.append(value)
        rows.append(row)
    return np.array(rows)
