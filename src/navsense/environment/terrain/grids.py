"""Reads height grids from text files: Esri ASCII grids, and rows of numbers without a header.

    x_i = xllcorner + (i + 1/2) cellsize,   y_j = yllcorner + (j + 1/2) cellsize,   j from the south

or `xllcenter` and `yllcenter` without the half. The first row of numbers is the northernmost. Lengths are metres, so a
grid in degrees must be projected first. Format: Esri, *ArcGIS documentation*, "Esri ASCII raster format".
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind, read_bytes
from navsense.core.text import parse_decimal
from navsense.core.typing import FloatArray
from navsense.environment.terrain.base import MAX_DISTANCE

GRID_SUFFIXES = (".asc", ".grd", ".txt", ".xyz", ".dat", ".csv")
"""Suffixes of text grids."""

MAX_GRID_BYTES = 2 * 1024 * 1024 * 1024
"""Largest size of a text grid. 8192 x 8192 heights of a dozen characters are 0.9 GB."""

_FILE_KIND = FileKind("grid of heights", FieldError, "must be an Esri ASCII grid, or rows of numbers, in plain text")
_KEYS = frozenset("ncols nrows xllcorner yllcorner xllcenter yllcenter cellsize nodata_value".split())
_MAX_HEADER_LINES = 16


def _parse_header(lines: list[bytes], name: str) -> tuple[dict[str, float], int]:
    """Return the numbers of the header by lower-case key, and the number of header lines."""
    found: dict[str, float] = {}
    for number, line in enumerate(lines, 1):
        words = line.decode("latin-1").split()
        if not words or parse_decimal(words[0]) is not None or words[0].lower() in ("nan", "inf", "-inf", "+inf"):
            return found, number - 1
        key, where = words[0].lower(), Where(name, number)
        value = parse_decimal(words[1]) if len(words) == 2 else None
        if key not in _KEYS or key in found:
            allowed = f"must be one of {', '.join(sorted(_KEYS))}, once, or a row of numbers"
            raise FieldError("grid's header", words[0], where=where, allowed=allowed)
        if value is None:
            raise FieldError(key, " ".join(words[1:]) or "nothing", where=where, allowed="must be one finite number")
        found[key] = value
    return found, len(lines)


def _parse_shape(header: Mapping[str, float], name: str) -> tuple[int, int]:
    """Return the numbers of rows and columns of the header."""
    for key in ("ncols", "nrows", "cellsize"):
        if key not in header:
            raise FieldError(f"grid's {key}", "missing", where=Where(name), allowed="must stand in a header")
        if header[key] <= 0.0 or (key != "cellsize" and header[key] != int(header[key])):
            allowed = "must be above 0" if key == "cellsize" else "must be a whole number above 0"
            raise FieldError(f"grid's {key}", header[key], where=Where(name), allowed=allowed)
    return int(header["nrows"]), int(header["ncols"])


def _parse_rows(text: bytes, name: str, first: int) -> list[FloatArray]:
    """Return the numbers of each non-blank line."""
    rows: list[FloatArray] = []
    for number, line in enumerate(text.split(b"\n"), first):
        words = line.replace(b",", b" ").split()
        if not words:
            continue
        try:
            rows.append(np.array(words, dtype=np.float64))
        except ValueError as cause:
            bad = next(word for word in words if _parse_number(word) is None)
            where = Where(name, number)
            raise FieldError("height", bad.decode("latin-1"), where=where, allowed="must be a number") from cause
    return rows


def _parse_number(word: bytes) -> float | None:
    """Return the number that NumPy parses, or None."""
    try:
        return float(np.array(word, dtype=np.bytes_).astype(np.float64))
    except ValueError:
        return None


def _check_no_gaps(heights: FloatArray, nodata: float | None, name: str) -> None:
    """Raise `FieldError` for heights that are not finite or have the no-data value of the header."""
    bad = ~(np.abs(heights) <= MAX_DISTANCE)
    if nodata is not None:
        bad |= heights == nodata
    if bad.any():
        row, column = divmod(int(bad.argmax()), heights.shape[1])
        huge = MAX_DISTANCE < abs(heights[row, column]) < math.inf and heights[row, column] != nodata
        sound = f"of absolute value up to {MAX_DISTANCE:g} m" if huge else "finite"
        allowed = f"must be {sound}; {int(bad.sum())} of {heights.size} are not"
        remedy = "fill the gaps (gdal_fillnodata.py), or cut the grid down to where it has data"
        what = f"height in row {row + 1}, column {column + 1}"
        value = "no data" if nodata is not None and heights[row, column] == nodata else float(heights[row, column])
        raise FieldError(what, value, where=Where(name), allowed=allowed, remedy=remedy)


def read_grid(path: str | os.PathLike[str]) -> tuple[FloatArray, float | None]:
    """Return heights (rows, columns) m, the southernmost row first, and the spacing (m), None without a header.

    Raises `FieldError` for an unreadable file, an invalid header and a word that is not a number. The number of heights
    must agree with the header. Without a header, all rows must have one length. Heights must be finite, without gaps.
    """
    name = os.fspath(path)
    data = (
        read_bytes(name, _FILE_KIND, MAX_GRID_BYTES)
        .replace(b"\r\n", b"\n")
        .replace(b"\r", b"\n")
        .removeprefix(b"\xef\xbb\xbf")
    )
    if b"\0" in data[:4096]:
        raise FieldError(_FILE_KIND.what, "is not text", where=Where(name), allowed=_FILE_KIND.allowed)
    lines = data.split(b"\n", _MAX_HEADER_LINES)[:_MAX_HEADER_LINES]
    header, skip = _parse_header(lines, name)
    rows = _parse_rows(b"\n".join(data.split(b"\n", skip)[skip:]), name, skip + 1)
    if header:
        shape = _parse_shape(header, name)
        numbers = np.concatenate(rows) if rows else np.empty(0)
        if numbers.size != shape[0] * shape[1]:
            allowed = f"must be nrows x ncols, {shape[0]} x {shape[1]}"
            raise FieldError("grid's heights", numbers.size, where=Where(name), allowed=allowed)
        heights = numbers.reshape(shape)
    else:
        lengths = {row.size for row in rows}
        if len(lengths) != 1:
            what = "lengths of the grid's rows"
            raise FieldError(what, sorted(lengths)[:8] or "no rows", where=Where(name), allowed="must be all the same")
        heights = np.stack(rows)
    _check_no_gaps(heights, header.get("nodata_value"), name)
    return heights[::-1].copy(), header.get("cellsize")
