"""Reads triangles from mesh files: binary and text STL, and Wavefront OBJ.

A polygon of an OBJ file becomes a fan of triangles from its first corner. Lines, points, normals, textures and
materials are ignored. The numbers of a file are metres, and its axes are unchanged, as in Gazebo.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind, read_bytes
from navsense.core.typing import FloatArray

MAX_MESH_BYTES = 1024 * 1024 * 1024
"""Largest size of a mesh file: about four million triangles in text, twenty million in binary."""

_FILE_KIND = FileKind("mesh", FieldError, "must be an STL or an OBJ file")
_REMEDY = "convert it to STL or OBJ (in Blender, or by assimp export IN OUT.obj)"

_HEADER_SIZE, _FACET_SIZE = 84, 50
_FACET_DTYPE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_NUMBER = rb"\s+([-+.\deEinfatyINFATY]+)"
_FACET_TEXT = re.compile(
    rb"\s*facet(?:\s+normal"
    + _NUMBER * 3
    + rb")?\s+outer\s+loop"
    + (rb"\s+vertex" + _NUMBER * 3) * 3
    + rb"\s+endloop\s+endfacet",
    re.IGNORECASE,
)
_SOLID_LINE = re.compile(rb"\s*(?:(?:end)?solid\b[^\r\n]*)?\s*", re.IGNORECASE)
_INDEX = re.compile(rb"-?\d{1,12}(?=/|$)")
_GROUP_KEYS = (b"o", b"g")


def _line_number(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _parse_stl_text(data: bytes, name: str) -> FloatArray:
    """Return the triangles of a text STL file."""
    place, numbers = 0, array("d")
    while place < len(data):
        found = _FACET_TEXT.match(data, place)
        if found is None:
            between = _SOLID_LINE.match(data, place)
            if between is not None and between.end() > place:
                place = between.end()
                continue
            after = place + len(data[place : place + 400]) - len(data[place : place + 400].lstrip())
            given = data[after : after + 40].decode("latin-1")
            where = Where(name, _line_number(data, after))
            raise FieldError(
                "STL file", given, where=where, allowed="must be a facet with an outer loop of three vertices"
            )
        try:
            numbers.extend(map(float, found.groups()[3:]))
        except ValueError as cause:
            where = Where(name, _line_number(data, found.start(4)))
            raise FieldError("STL file's vertex", str(cause), where=where, allowed="must be three numbers") from cause
        place = found.end()
    return np.array(numbers, dtype=np.float64).reshape(-1, 3, 3)


def _parse_stl(data: bytes, name: str) -> FloatArray:
    """Return the triangles of an STL file."""
    if len(data) >= _HEADER_SIZE:
        count = int.from_bytes(data[80:_HEADER_SIZE], "little")
        size = _HEADER_SIZE + _FACET_SIZE * count
        if len(data) == size or not data[:80].lstrip().lower().startswith(b"solid"):
            if len(data) < size or len(data) >= size + _FACET_SIZE:
                allowed = f"must be {size} bytes for the {count} triangles that it announces"
                raise FieldError("STL file", f"{len(data)} bytes", where=Where(name), allowed=allowed)
            return np.frombuffer(data, dtype=_FACET_DTYPE, count=count, offset=_HEADER_SIZE)["corners"].astype(
                np.float64
            )
    if not data.lstrip().lower().startswith(b"solid"):
        raise FieldError("STL file", f"begins with {data[:16]!r}", where=Where(name), allowed=_FILE_KIND.allowed)
    return _parse_stl_text(data, name)


def _parse_corner(word: bytes, count: int) -> int | None:
    """Return the index of the vertex of a corner such as 7, 7/1, 7//3 or -1; None for an invalid corner."""
    found = _INDEX.match(word)
    index = int(found[0]) if found else 0
    place = index - 1 if index > 0 else count + index
    return place if index and 0 <= place < count else None


def _split_obj_lines(data: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yield line number and words of each non-blank line. A backslash at the end continues the line."""
    kept: list[bytes] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        words = line.partition(b"#")[0].split()
        if words and words[-1] == b"\\":
            kept += words[:-1]
        elif kept or words:
            yield number, kept + words
            kept = []


def _parse_obj(data: bytes, name: str, submesh: str) -> FloatArray:
    """Return the triangles of an OBJ file, or of its objects and groups named `submesh`."""
    points: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    parts: dict[bytes, bytes] = {}
    wanted, wrong = submesh.encode(), "must be v x y z"
    for number, words in _split_obj_lines(data):
        key = words[0]
        if key == b"v":
            try:
                x, y, z = (float(word.replace(b"_", b"x")) for word in words[1:4])
            except ValueError as cause:
                given = b" ".join(words).decode("latin-1")
                raise FieldError("OBJ file's vertex", given, where=Where(name, number), allowed=wrong) from cause
            points.append([x, y, z])
        elif key in _GROUP_KEYS:
            parts[key] = b" ".join(words[1:])
        elif key == b"f" and (not submesh or wanted in parts.values()):
            corners = [_parse_corner(word, len(points)) for word in words[1:]]
            if len(corners) < 3 or None in corners:
                given = b" ".join(words).decode("latin-1")
                allowed = f"must name at least three of the {len(points)} vertices before it"
                raise FieldError("OBJ file's face", given, where=Where(name, number), allowed=allowed)
            first, *others = [corner for corner in corners if corner is not None]
            faces += [(first, one, two) for one, two in pairwise(others)]
    if submesh and not faces:
        raise FieldError(
            "submesh", submesh, where=Where(name), allowed="must be the name of an object or a group with faces"
        )
    return np.array(points, dtype=np.float64).reshape(-1, 3)[np.array(faces, dtype=np.int64).reshape(-1, 3)]


def read_mesh(path: str | os.PathLike[str], submesh: str = "") -> FloatArray:
    """Return the triangles (m, 3, 3) m of a mesh file, one row per corner, in the file's coordinates and order.

    `submesh` is the name of an object or a group of an OBJ file. Raises `FieldError` for an unreadable or invalid file,
    another format, an unknown submesh, and a file without triangles.
    """
    name = os.fspath(path)
    suffix = Path(name).suffix.lower()
    data = read_bytes(name, _FILE_KIND, MAX_MESH_BYTES)
    if suffix not in (".stl", ".obj"):
        raise FieldError("mesh", suffix or "no suffix", where=Where(name), allowed=_FILE_KIND.allowed, remedy=_REMEDY)
    if suffix == ".stl" and submesh:
        allowed = "must not be given: an STL file has no parts with names"
        raise FieldError("submesh", submesh, where=Where(name), allowed=allowed)
    triangles = _parse_stl(data, name) if suffix == ".stl" else _parse_obj(data, name, submesh)
    if not len(triangles):
        raise FieldError("mesh", "no triangles", where=Where(name), allowed="must have at least one")
    return triangles
