"""The geoid: the height of mean sea level above the ellipsoid, from a grid in a file of GeographicLib.

    H = h - N                            altitude above mean sea level, height above the ellipsoid, undulation (m)
    N = offset + scale P(x, y)           x, y from 0 to 1: the place in its cell, towards east and towards south

The file is a PGM image with 16 bits per pixel, most significant byte first::

    P5
    # Description WGS84 EGM96, 5-minute grid
    # Offset -108
    # Scale 0.003
    4320 2161
    65535

The first row is at latitude 90 degrees, the last at -90 degrees. The first column is at longitude 0. Columns go to the
east. P is a polynomial of the pixels around the place:

- `bilinear`: through the four corners of the cell.
- `cubic`: the polynomial of third degree with the smallest weighted sum of squares at twelve pixels. The weights are 2
  at the corners of the cell, and 1 at the eight pixels around them that share a row or a column with two corners. In
  the cells at a pole, P has no terms x, x^2 and x^3 from the pole: N is the same for every longitude there.

With the grid egm96-5, the largest error is 3.2 mm for `cubic` and 140 mm for `bilinear`. A cubic has small steps
between cells, of that size. Beyond a pole, the grid continues on the opposite meridian. Only the pixels that a position
needs are read from the file.
Source: GeographicLib 2.1.2, manual of `GeoidEval` and documentation of the class `Geoid`.
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from navsense.core import inputs
from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.text import parse_decimal
from navsense.core.typing import FloatArray, IntArray

INTERPOLATIONS = ("cubic", "bilinear")

FOLDERS = ("/usr/share/GeographicLib/geoids", "/usr/local/share/GeographicLib/geoids")
"""Folders of the grids without an environment variable: of Debian's packages, of GeographicLib itself."""

MAX_PIXEL = 65535

MAX_HEADER = 65536
"""Largest size (bytes) of the header."""

_FILE_KIND = FileKind("geoid grid", FieldError, "must be a PGM file of GeographicLib, such as egm96-5.pgm")

_DATA_HINT = "get the file again, for example with geographiclib-get-geoids"

_SIDE = 8
_SLOTS = _SIDE * _SIDE
"""Number of cells in the memory of a grid."""

_TERMS = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3))
"""Exponents of x and y of each coefficient of P."""

_STENCIL = tuple((i, j) for j in range(-1, 3) for i in range(-1, 3) if 0 <= i <= 1 or 0 <= j <= 1)
"""Columns and rows of the twelve pixels, from the corner of the cell at x = y = 0."""

_CORNERS = ((0, 0), (1, 0), (0, 1), (1, 1))


def _weigh(column: int, row: int) -> int:
    """Return the weight of a pixel of the stencil."""
    return 2 if (column, row) in _CORNERS else 1


@cache
def compute_cubic_matrix(*, at_pole: bool) -> tuple[list[list[int]], int]:
    """Return `(A^T W A)^-1 A^T W`, which takes the pixels of the stencil to the coefficients of P, exactly.

    The matrix is the first item, with one row per term, divided by the second.

    at_pole: y = 0 is a pole, and the rows of x, x^2 and x^3 are zero.
    """
    used = [k for k, (a, b) in enumerate(_TERMS) if not (at_pole and a > 0 and b == 0)]
    basis = [[Fraction(x ** _TERMS[k][0] * y ** _TERMS[k][1]) for k in used] for x, y in _STENCIL]
    weights = [_weigh(*pixel) for pixel in _STENCIL]
    rows = []
    for a in range(len(used)):
        normal = [
            sum((w * f[a] * f[b] for w, f in zip(weights, basis, strict=True)), Fraction(0)) for b in range(len(used))
        ]
        rows.append(normal + [w * f[a] for w, f in zip(weights, basis, strict=True)])
    for k in range(len(used)):  # Gauss-Jordan; the matrix is positive definite, so no pivot is zero
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for other in range(len(used)):
            if other != k:
                factor = rows[other][k]
                rows[other] = [value - factor * own for value, own in zip(rows[other], rows[k], strict=True)]
    solved = {k: row[len(used) :] for k, row in zip(used, rows, strict=True)}
    divisor = math.lcm(*(value.denominator for row in solved.values() for value in row))
    matrix = [solved.get(k, [Fraction(0)] * len(_STENCIL)) for k in range(len(_TERMS))]
    return [[int(value * divisor) for value in row] for row in matrix], divisor


class _Raster(NamedTuple):
    """The numbers of a grid that its kernel uses: offset and scale in m."""

    columns: int
    rows: int
    columns_per_degree: float
    rows_per_degree: float
    offset: float
    scale: float


@kernel
def _write_undulations(
    raster: _Raster,
    cells: IntArray,
    coefficients: FloatArray,
    latitude: FloatArray,
    longitude: FloatArray,
    start: int,
    out: FloatArray,
) -> tuple[int, int, int]:
    """Write N (n,) from row `start` on; return the first row whose cell is not known, its column and row, or -1."""
    equator = (raster.rows - 1) // 2
    for n in range(start, out.shape[0]):
        east = math.degrees(longitude[n])
        east = (east - 360.0 * math.floor(east / 360.0)) * raster.columns_per_degree
        south = -math.degrees(latitude[n]) * raster.rows_per_degree
        i, j = math.floor(east), min(math.floor(south), equator - 1)
        x, y = east - i, south - j
        i, j = i % raster.columns, j + equator
        slot = (i % _SIDE) + _SIDE * (j % _SIDE)
        if cells[slot, 0] != i or cells[slot, 1] != j:
            return n, i, j
        if j == raster.rows - 2:
            y = 1.0 - y  # the polynomial starts at the pole
        t = coefficients[slot]
        low = t[0] + x * (t[1] + x * (t[3] + x * t[6]))
        high = t[2] + x * (t[4] + x * t[7]) + y * (t[5] + x * t[8] + y * t[9])
        out[n] = raster.offset + raster.scale * (low + y * high)
    return -1, 0, 0


class GeoidCells:
    """The cells of a grid that were used last: coefficients of P, read from the file when they are needed."""

    def __init__(self, geoid: Geoid) -> None:
        """Start without cells. Raises `FieldError` if the file is not the grid that `geoid` describes."""
        self._geoid = geoid
        self._path = str(find_grid(geoid.file))
        found = Geoid.from_file(self._path, geoid.interpolation)
        if replace(found, file=geoid.file) != geoid:
            what, allowed = "geoid grid", f"must be the grid {geoid.description!r} with the same header"
            raise FieldError(what, "is another grid", where=Where(self._path), allowed=allowed)
        per_degree = (geoid.columns / 360.0, (geoid.rows - 1) / 180.0)
        self._raster = _Raster(geoid.columns, geoid.rows, *per_degree, geoid.offset, geoid.scale)
        self._cells = np.full((_SLOTS, 2), -1, dtype=np.int64)
        self._coefficients = np.zeros((_SLOTS, len(_TERMS)))
        self._lock = Lock()

    def write_undulations(self, latitude: FloatArray, longitude: FloatArray, out: FloatArray) -> None:
        """Write N (n,) m at valid latitudes and longitudes (n,) rad. Raises `FieldError` for an unreadable file."""
        row = 0
        with self._lock:
            while True:
                row, column, line = _write_undulations(
                    self._raster, self._cells, self._coefficients, latitude, longitude, row, out
                )
                if row < 0:
                    return
                slot = (column % _SIDE) + _SIDE * (line % _SIDE)
                self._coefficients[slot] = self._compute_coefficients(column, line)
                self._cells[slot] = column, line

    def _compute_coefficients(self, column: int, row: int) -> list[float]:
        """Return the coefficients of P in a cell."""
        is_last, is_bilinear = row == self._geoid.rows - 2, self._geoid.interpolation == "bilinear"
        stencil = _CORNERS if is_bilinear else _STENCIL
        pixels = self._read_pixels([(column + i, row + (1 - j if is_last else j)) for i, j in stencil])
        if is_bilinear:
            a, b, c, d = pixels
            return [float(a), float(b - a), float(c - a), 0.0, float(a - b - c + d), 0.0, 0.0, 0.0, 0.0, 0.0]
        matrix, divisor = compute_cubic_matrix(at_pole=is_last or row == 0)
        return [sum(f * v for f, v in zip(line, pixels, strict=True)) / divisor for line in matrix]

    def _read_pixels(self, places: Sequence[tuple[int, int]]) -> list[int]:
        """Return the pixels at columns and rows, which may be beyond the date line or a pole."""
        geoid, last, ranges = self._geoid, self._geoid.rows - 1, []
        for column, row in places:
            line = last - abs(last - abs(row))  # a row beyond a pole is as far on this side of it
            place = (column if line == row else column + geoid.columns // 2) % geoid.columns
            ranges.append((geoid.data_start + 2 * (line * geoid.columns + place), 2))
        parts, _ = inputs.read_ranges(self._path, _FILE_KIND, ranges)
        if any(len(part) < 2 for part in parts):
            allowed, where = "must not be changed while it is used", Where(self._path)
            raise FieldError("geoid grid", "ends before its last row", where=where, allowed=allowed, remedy=_DATA_HINT)
        return [struct.unpack(">H", part)[0] for part in parts]


@dataclass(frozen=True)
class Geoid:
    r"""A geoid grid in a file of GeographicLib. `Geoid.from_file` reads the other fields from the file.

    file: path; a name without a folder may also be in a folder of `list_folders`.
    interpolation: `cubic` or `bilinear`.
    description: text in the file.
    columns, rows: size of the grid.
    offset, scale: m; a pixel v is the undulation offset + scale v.
    data_start: bytes before the first pixel.

    Raises `FieldError` for invalid numbers.

    >>> header = b"P5\n# Description flat\n# Offset -108\n# Scale 0.003\n4 3\n65535\n"
    >>> _ = Path("flat.pgm").write_bytes(header + 12 * (50_000).to_bytes(2, "big"))
    >>> geoid = ns.environment.Geoid.from_file("flat.pgm")
    >>> geoid.undulation_at(np.radians([47.4]), np.radians([8.5]))
    array([42.])
    """

    file: str
    interpolation: str
    description: str
    columns: int
    rows: int
    offset: float
    scale: float
    data_start: int

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        if self.interpolation not in INTERPOLATIONS:
            allowed = f"must be {' or '.join(INTERPOLATIONS)}"
            raise FieldError("interpolation of a geoid", self.interpolation, allowed=allowed)
        if not (math.isfinite(self.offset) and math.isfinite(self.scale)):
            numbers = f"{self.offset:g} and {self.scale:g}"
            raise FieldError("Offset and Scale of a geoid", numbers, allowed="must be finite")
        if not self.scale > 0.0:
            raise FieldError("Scale of a geoid", self.scale, allowed="must be positive")
        if self.columns < 2 or self.columns % 2 or self.rows < 3 or self.rows % 2 == 0:
            allowed = "must have an even number of columns and an odd number of rows, 2 by 3 at least"
            raise FieldError("size of a geoid grid", f"{self.columns} by {self.rows}", allowed=allowed)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: another process reads its own pixels."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], interpolation: str = "cubic") -> Geoid:
        """Read the header of a file in GeographicLib's PGM format, such as `egm96-5.pgm`.

        A name without a folder is searched for in the current folder, then in those of `list_folders`.

        Raises `FieldError` for a missing or unreadable file, a wrong header and a wrong size, with the line.
        """
        name = str(find_grid(path))
        (data,), size = inputs.read_ranges(name, _FILE_KIND, ((0, MAX_HEADER),))
        try:
            geoid = _Header(name).parse(data, interpolation)
        except FieldError as error:
            error.where = error.where or Where(name)
            raise
        expected = geoid.data_start + 2 * geoid.columns * geoid.rows
        if size != expected:
            allowed = f"must be {expected}: {geoid.columns} by {geoid.rows} pixels of 2 bytes after the header"
            raise FieldError(
                "size of the geoid grid", f"{size} bytes", where=Where(name), allowed=allowed, remedy=_DATA_HINT
            )
        return geoid

    @cached_property
    def _cells(self) -> GeoidCells:
        return GeoidCells(self)

    def undulation_at(self, latitude: FloatArray, longitude: FloatArray) -> FloatArray:
        """Return the height (n,) m of the geoid above the ellipsoid at latitudes and longitudes (n,) rad.

        Raises `FieldError` for a latitude beyond a pole, a number that is not finite and a file that has changed.
        """
        invalid = np.nonzero(~((np.abs(latitude) <= 0.5 * math.pi) & (np.abs(longitude) < math.inf)))[0]
        if invalid.size:
            row = int(invalid[0])
            value, allowed = (
                (float(latitude[row]), float(longitude[row])),
                "must be finite, the latitude from -pi/2 to pi/2",
            )
            raise FieldError("place (latitude, longitude in rad)", value, row=row, allowed=allowed)
        out = np.empty(latitude.shape[0])
        self._cells.write_undulations(latitude, longitude, out)
        return out


def list_folders() -> tuple[Path, ...]:
    """Return the folders in which GeographicLib finds its grids.

    The folder is `$GEOGRAPHICLIB_GEOID_PATH` if set, else `$GEOGRAPHICLIB_DATA/geoids` if set, else one of `FOLDERS`.
    """
    folder, data = (os.environ.get(f"GEOGRAPHICLIB_{name}") for name in ("GEOID_PATH", "DATA"))
    if folder:
        return (Path(folder),)
    return (Path(data) / "geoids",) if data else tuple(map(Path, FOLDERS))


def find_grid(path: str | os.PathLike[str], folder: str | os.PathLike[str] = "") -> Path:
    """Return the file of a grid: relative to `folder`; a name without a folder also in those of `list_folders`.

    Raises `FieldError` if there is no such file.
    """
    name = os.fspath(path)
    candidates = [Path(folder) / name]
    if Path(name).name == name:
        candidates += [other / name for other in list_folders()]
    found = next((candidate for candidate in candidates if name and inputs.path_exists(candidate)), None)
    if found is None and len(candidates) > 1 and name:
        places = ", ".join(str(candidate.parent) for candidate in candidates)
        remedy = "install the grid, for example with geographiclib-get-geoids, or give its path"
        where, allowed = Where(str(candidates[0])), f"must be in one of {places}"
        raise FieldError("geoid grid", "does not exist", where=where, allowed=allowed, remedy=remedy)
    return found or candidates[0]


class _Header:
    """Parses the header of a file."""

    def __init__(self, name: str) -> None:
        self._name, self._line = name, 0

    def parse(self, data: bytes, interpolation: str) -> Geoid:
        """Return the geoid of a file that starts with `data`. Raises `FieldError`."""
        lines = self._iter_lines(data)
        if next(lines, (b"", 0))[0] != b"P5":
            raise self._make_error(
                "format of the geoid grid", repr(data[:8]), "must start with a line P5, as a PGM file"
            )
        comments: dict[str, str] = {}
        size: list[int] = []
        for line, start in lines:
            if line.startswith(b"#"):
                words = line.decode("latin-1").split(None, 2)
                if len(words) == 3 and words[0] == "#":
                    comments[words[1]] = self._check_comment(words[1], words[2].strip())
            elif line.strip():
                numbers = line.split()
                if not size:
                    size = self._parse_counts("columns and rows of the geoid grid", numbers, 2)
                    continue
                (maximum,) = self._parse_counts("largest pixel of the geoid grid", numbers, 1)
                if maximum != MAX_PIXEL:
                    raise self._make_error("largest pixel of the geoid grid", maximum, f"must be {MAX_PIXEL}")
                return self._make_geoid(comments, size, start, interpolation)
        raise self._make_error(
            "header of the geoid grid", "has no end", "must have columns, rows and 65535 before the pixels"
        )

    def _iter_lines(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield the lines without their ends, and the first byte after each."""
        for match in re.finditer(rb"([^\n]*)\n", data):
            self._line += 1
            yield match[1].rstrip(b"\r"), match.end()

    def _check_comment(self, key: str, text: str) -> str:
        """Return the text of a comment. Raises `FieldError` for an invalid number."""
        if key in ("Offset", "Scale") and parse_decimal(text.split(maxsplit=1)[0]) is None:
            raise self._make_error(f"{key} of the geoid grid", text, "must be a finite number of metres")
        return text

    def _parse_counts(self, what: str, words: Sequence[bytes], count: int) -> list[int]:
        """Return the whole numbers of a line. Raises `FieldError`."""
        if len(words) != count or not all(re.fullmatch(rb"[0-9]{1,7}", word) for word in words):
            text = b" ".join(words)[:40].decode("latin-1")
            allowed = "must be two whole numbers" if count == 2 else f"must be {MAX_PIXEL}"
            raise self._make_error(what, text, allowed)
        return [int(word) for word in words]

    def _make_geoid(self, comments: dict[str, str], size: list[int], start: int, interpolation: str) -> Geoid:
        """Return the geoid. Raises `FieldError` for a comment that is absent and for invalid numbers."""
        numbers = []
        for key in ("Offset", "Scale"):
            if key not in comments:
                allowed = f"must have a line such as # {key} {'-108' if key == 'Offset' else '0.003'}"
                raise FieldError("header of the geoid grid", f"has no {key}", allowed=allowed, where=Where(self._name))
            numbers.append(float(comments[key].split(maxsplit=1)[0]))
        offset, scale = numbers
        return Geoid(
            file=self._name,
            interpolation=interpolation,
            description=comments.get("Description", ""),
            columns=size[0],
            rows=size[1],
            offset=offset,
            scale=scale,
            data_start=start,
        )

    def _make_error(self, what: str, value: object, allowed: str) -> FieldError:
        return FieldError(what, value, where=Where(self._name, self._line), allowed=allowed)
