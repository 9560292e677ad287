"""Triangle meshes for ray casting in double precision, from STL and Wavefront OBJ files or arrays.

Embree is not used: its single precision is centimetres at 100 km from the origin, and some of its rays pass through
vertices. Here the result of a ray does not depend on other rays. Degenerate triangles are ignored and counted. Rays hit
a mesh from both sides.

**Bounding volume hierarchy.** The tree is split by the surface area heuristic (SAH) with 16 bins along
the longest axis of the box centres. Below a depth of 48 it is split in the middle of the list, which bounds the depth.
Source: Wald, "On fast construction of SAH-based bounding volume hierarchies", IEEE RT 2007.

**Intersection.** A triangle is sheared so that the ray is along z. With x, y, z of its corners A, B, C::

    U = C_x B_y - C_y B_x,  V = A_x C_y - A_y C_x,  W = B_x A_y - B_y A_x;   hit if U, V, W have one sign or are 0
    t = (U A_z + V B_z + W C_z) / (U + V + W)

Two triangles with a common edge compute the same number for it with opposite signs, so a ray hits one of them. Boxes
have a margin for rounding. Source: Woop, Benthin, Wald, "Watertight ray/triangle intersection", JCGT 2013.

**Files.** A polygon of an OBJ file becomes a fan of triangles from its first corner. Lines, points, normals, textures
and materials are ignored. The numbers of a file are metres, and its axes are unchanged, as in Gazebo.
"""

from __future__ import annotations

import math
import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind, read_bytes
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import BoolArray, FloatArray, IntArray, Vector, Vectors
from navsense.environment.terrain.base import MAX_DISTANCE, Rays

LEAF_SIZE, MAX_SAH_DEPTH = 4, 48
"""Largest number of triangles in a leaf; depth from which a list is split in the middle."""

STACK_SIZE = 128
"""Entries of the traversal stack: one per level, at most `MAX_SAH_DEPTH` plus the logarithm of the count."""

BIN_COUNT = 16
_BOX_MARGIN = 1.0 + 2.0**-49
_MAX_RECIPROCAL = 1e200


@kernel
def _write_bounds(
    boxes: FloatArray, order: IntArray, first: int, end: int, box: FloatArray
) -> tuple[int, float, float]:
    """Write the box (lowest x y z, highest x y z) of a list; return the longest axis of the centres and its ends."""
    low, high = [math.inf, math.inf, math.inf], [-math.inf, -math.inf, -math.inf]
    for axis in range(3):
        box[axis], box[3 + axis] = math.inf, -math.inf
    for k in range(first, end):
        n = order[k]
        for axis in range(3):
            lowest, highest = boxes[n, axis], boxes[n, 3 + axis]
            box[axis], box[3 + axis] = min(box[axis], lowest), max(box[3 + axis], highest)
            middle = 0.5 * lowest + 0.5 * highest
            low[axis], high[axis] = min(low[axis], middle), max(high[axis], middle)
    axis = 0
    for other in range(1, 3):
        if high[other] - low[other] > high[axis] - low[axis]:
            axis = other
    return axis, low[axis], high[axis]


@kernel
def _half_area(box: FloatArray) -> float:
    """Return half the surface area of a box, 0 for an empty box."""
    x, y, z = box[3] - box[0], box[4] - box[1], box[5] - box[2]
    return float(x * y + y * z + z * x) if x >= 0.0 else 0.0


@kernel
def _find_split_bin(
    boxes: FloatArray, order: IntArray, first: int, end: int, axis: int, low: float, scale: float, bins: FloatArray
) -> int:
    """Return the bin before which to split; `bins` (2 BIN_COUNT, 7) has boxes and counts, and scratch for the costs."""
    for b in range(BIN_COUNT):
        for side in range(3):
            bins[b, side], bins[b, 3 + side] = math.inf, -math.inf
        bins[b, 6] = 0.0
    for k in range(first, end):
        n = order[k]
        b = min(int((0.5 * boxes[n, axis] + 0.5 * boxes[n, 3 + axis] - low) * scale), BIN_COUNT - 1)
        for side in range(3):
            bins[b, side] = min(bins[b, side], boxes[n, side])
            bins[b, 3 + side] = max(bins[b, 3 + side], boxes[n, 3 + side])
        bins[b, 6] += 1.0
    merged = bins[2 * BIN_COUNT - 1]
    for sense in range(2):  # from the left, then from the right; the cost of a split after bin b is at BIN_COUNT + b
        for side in range(3):
            merged[side], merged[3 + side] = math.inf, -math.inf
        count = 0.0
        for step in range(BIN_COUNT - 1):
            b = step if sense == 0 else BIN_COUNT - 1 - step
            for side in range(3):
                merged[side] = min(merged[side], bins[b, side])
                merged[3 + side] = max(merged[3 + side], bins[b, 3 + side])
            count += bins[b, 6]
            cost = _half_area(merged) * count
            if sense == 0:
                bins[BIN_COUNT + b, 6] = cost
            else:
                bins[BIN_COUNT + b - 1, 6] += cost
    best = 0
    for b in range(1, BIN_COUNT - 1):
        if bins[BIN_COUNT + b, 6] < bins[BIN_COUNT + best, 6]:
            best = b
    return best + 1


@kernel
def _partition(
    boxes: FloatArray, order: IntArray, first: int, end: int, axis: int, low: float, high: float, bins: FloatArray
) -> int:
    """Partition a list into two non-empty parts; return the start of the second."""
    if not high > low:
        return (first + end) // 2
    scale = BIN_COUNT / (high - low)
    if not scale < math.inf:
        return (first + end) // 2
    split = _find_split_bin(boxes, order, first, end, axis, low, scale, bins)
    left, right = first, end - 1
    while left <= right:
        n = order[left]
        if min(int((0.5 * boxes[n, axis] + 0.5 * boxes[n, 3 + axis] - low) * scale), BIN_COUNT - 1) < split:
            left += 1
        else:
            order[left], order[right] = order[right], n
            right -= 1
    return left if first < left < end else (first + end) // 2


@kernel
def _build_tree(boxes: FloatArray, order: IntArray, nodes: FloatArray, links: IntArray, bins: FloatArray) -> int:
    """Write the tree of boxes (n, 6); return the number of nodes.

    `order` (n,) is permuted. Node k has the box nodes[k] and links[k] = (first, count, axis). A leaf contains `count`
    entries of `order` from `first` on. An inner node (count 0) has its children at k + 1 and `first`, split along
    `axis`.
    """
    stack = [(0, order.shape[0], -1, 0)]
    count = 0
    while len(stack) > 0:
        first, end, parent, depth = stack.pop()
        node = count
        count += 1
        if parent >= 0:
            links[parent, 0] = node
        axis, low, high = _write_bounds(boxes, order, first, end, nodes[node])
        if end - first <= LEAF_SIZE:
            links[node, 0], links[node, 1], links[node, 2] = first, end - first, axis
            continue
        if depth < MAX_SAH_DEPTH:
            middle = _partition(boxes, order, first, end, axis, low, high, bins)
        else:
            middle = (first + end) // 2
        links[node, 1], links[node, 2] = 0, axis
        stack.append((middle, end, node, depth + 1))
        stack.append((first, middle, -1, depth + 1))
    return count


@kernel
def _intersects_box(
    x0: float, y0: float, z0: float, x1: float, y1: float, z1: float, ix: float, iy: float, iz: float, max_range: float
) -> bool:
    """Return true if a ray may hit a box. The corners are relative to the origin of the ray, ix = 1 / d_x."""
    x0, x1, y0, y1, z0, z1 = x0 * ix, x1 * ix, y0 * iy, y1 * iy, z0 * iz, z1 * iz
    enter = max(min(x0, x1), min(y0, y1), min(z0, z1), 0.0)
    leave = min(max(x0, x1), max(y0, y1), max(z0, z1), max_range)
    return enter <= leave * _BOX_MARGIN


@kernel
def _safe_reciprocal(d: float) -> float:
    """Return 1 / d, a large number of the same sign for d near zero."""
    return 1.0 / d if abs(d) > 1.0 / _MAX_RECIPROCAL else math.copysign(_MAX_RECIPROCAL, d)


@kernel
def _intersect_triangle(
    p: FloatArray, kx: int, ky: int, kz: int, ox: float, oy: float, oz: float, sx: float, sy: float, sz: float
) -> float:
    """Return the range of the triangle p (9,), infinite or negative for a miss.

    kx, ky, kz: axes, the last one along the ray. The ray starts at (ox, oy, oz) in the direction (sx, sy, 1) / sz.
    """
    a, b, c = p[kz] - oz, p[3 + kz] - oz, p[6 + kz] - oz
    ax, ay = p[kx] - ox - sx * a, p[ky] - oy - sy * a
    bx, by = p[3 + kx] - ox - sx * b, p[3 + ky] - oy - sy * b
    cx, cy = p[6 + kx] - ox - sx * c, p[6 + ky] - oy - sy * c
    u, v, w = cx * by - cy * bx, ax * cy - ay * cx, bx * ay - by * ax
    if (u < 0.0 or v < 0.0 or w < 0.0) and (u > 0.0 or v > 0.0 or w > 0.0):
        return math.inf
    determinant = u + v + w
    if determinant == 0.0:
        return math.inf
    return float(sz * (u * a + v * b + w * c) / determinant)


@kernel
def _trace_rays(
    nodes: FloatArray,
    links: IntArray,
    triangles: FloatArray,
    stack: IntArray,
    origin: Vectors,
    direction: Vectors,
    max_range: FloatArray,
    distance: FloatArray,
    found: IntArray,
) -> None:
    """Write the ranges (n,) of the first hits, infinite for a miss, and the triangles (n,), -1 for a miss."""
    for n in range(origin.shape[0]):
        x, y, z, best = origin[n, 0], origin[n, 1], origin[n, 2], max_range[n]
        dx, dy, dz = direction[n, 0], direction[n, 1], direction[n, 2]
        ix, iy, iz = _safe_reciprocal(dx), _safe_reciprocal(dy), _safe_reciprocal(dz)
        kz = 1 if abs(dy) > abs(dx) else 0
        kz = 2 if abs(dz) > abs(direction[n, kz]) else kz
        kx, ky = (kz + 1) % 3, (kz + 2) % 3
        sx, sy, sz = direction[n, kx] / direction[n, kz], direction[n, ky] / direction[n, kz], 1.0 / direction[n, kz]
        ox, oy, oz = origin[n, kx], origin[n, ky], origin[n, kz]
        stack[0], depth, hit = 0, 1, -1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            x0, y0, z0 = nodes[node, 0] - x, nodes[node, 1] - y, nodes[node, 2] - z
            x1, y1, z1 = nodes[node, 3] - x, nodes[node, 4] - y, nodes[node, 5] - z
            if not _intersects_box(x0, y0, z0, x1, y1, z1, ix, iy, iz, best):
                continue
            first, count = links[node, 0], links[node, 1]
            if count == 0:  # the nearer child is on top of the stack
                is_positive = direction[n, links[node, 2]] >= 0.0
                stack[depth] = first if is_positive else node + 1
                stack[depth + 1] = node + 1 if is_positive else first
                depth += 2
            for k in range(first, first + count):
                t = _intersect_triangle(triangles[k], kx, ky, kz, ox, oy, oz, sx, sy, sz)
                if 0.0 <= t <= best and (t < best or hit < 0) and t < math.inf:
                    best, hit = t, k
        distance[n], found[n] = best if hit >= 0 else math.inf, hit


@kernel
def _write_normals(triangles: FloatArray, found: IntArray, direction: Vectors, normal: Vectors) -> None:
    """Write the normals (n, 3) of the triangles (n,) that rays hit."""
    for n in range(found.shape[0]):
        k = found[n]
        if k < 0:
            continue
        x0, y0, z0 = triangles[k, 0], triangles[k, 1], triangles[k, 2]
        ax, ay, az = triangles[k, 3] - x0, triangles[k, 4] - y0, triangles[k, 5] - z0
        bx, by, bz = triangles[k, 6] - x0, triangles[k, 7] - y0, triangles[k, 8] - z0
        x, y, z = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        scale = 1.0 / math.sqrt(x * x + y * y + z * z)
        if x * direction[n, 0] + y * direction[n, 1] + z * direction[n, 2] > 0.0:
            scale = -scale
        normal[n, 0], normal[n, 1], normal[n, 2] = x * scale, y * scale, z * scale


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
            allowed = "must be a facet with an outer loop of three vertices"
            raise FieldError("STL file", given, where=where, allowed=allowed)
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
            facets = np.frombuffer(data, dtype=_FACET_DTYPE, count=count, offset=_HEADER_SIZE)
            return facets["corners"].astype(np.float64)
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
        allowed = "must be the name of an object or a group with faces"
        raise FieldError("submesh", submesh, where=Where(name), allowed=allowed)
    return np.array(points, dtype=np.float64).reshape(-1, 3)[np.array(faces, dtype=np.int64).reshape(-1, 3)]


def _read_triangles(path: str | os.PathLike[str], submesh: str = "") -> FloatArray:
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


_MARGIN = 2.0**-40
"""Margin of the boxes, relative to the largest coordinate of the mesh."""


@kernel
def _mark_valid(triangles: FloatArray, valid: BoolArray) -> int:
    """Mark the triangles (m, 9) that have an area; return the first with an invalid corner, or -1."""
    for k in range(triangles.shape[0]):
        p = triangles[k]
        for i in range(9):
            if not abs(p[i]) <= MAX_DISTANCE:
                return k
        ax, ay, az = p[3] - p[0], p[4] - p[1], p[5] - p[2]
        bx, by, bz = p[6] - p[0], p[7] - p[1], p[8] - p[2]
        x, y, z = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        valid[k] = x * x + y * y + z * z > 0.0
    return -1


def _make_boxes(triangles: FloatArray) -> FloatArray:
    """Return the boxes (m, 6), lowest x y z and highest x y z, of triangles (m, 9), with a margin for rounding."""
    corners = triangles.reshape(-1, 3, 3)
    margin = _MARGIN * float(np.abs(triangles).max())
    return np.concatenate((corners.min(axis=1) - margin, corners.max(axis=1) + margin), axis=1)


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh.

    triangles: (m, 3, 3) m, one row per corner, in any winding order.
    where: file of the mesh, for errors.
    degenerate: number of ignored triangles without area.

    Raises `FieldError` for an array of another shape, corners that are not finite or beyond `MAX_DISTANCE`, and a mesh
    without a valid triangle.

    >>> triangle = np.array([[[-5.0, -5.0, -10.0], [5.0, -5.0, -10.0], [0.0, 5.0, -10.0]]])
    >>> scene = ns.environment.Scene((ns.environment.Body("bed", ns.environment.Mesh(triangle)),))
    >>> scene.cast(np.zeros((1, 3)), np.array([[0.0, 0.0, -1.0]]), 0.0).range
    array([10.])
    """

    triangles: FloatArray
    where: Where | None = field(default=None, repr=False)
    degenerate: int = field(init=False)
    _nodes: FloatArray = field(init=False, repr=False)
    _links: IntArray = field(init=False, repr=False)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        triangles = np.asarray(self.triangles, dtype=np.float64)
        if triangles.ndim != 3 or triangles.shape[1:] != (3, 3):
            raise FieldError("mesh's shape", triangles.shape, where=self.where, allowed="must be (triangles, 3, 3)")
        rows = np.ascontiguousarray(triangles.reshape(-1, 9))
        valid = np.empty(len(rows), dtype=np.bool_)
        bad = _mark_valid(rows, valid)
        if bad >= 0:
            allowed = f"must be finite and within {MAX_DISTANCE:g} m of the origin along each axis"
            what, value = f"corners of triangle {bad + 1} (m)", rows[bad].tolist()
            raise FieldError(what, value, where=self.where, allowed=allowed)
        if not valid.any():
            raise FieldError("mesh", f"{len(rows)} triangles", where=self.where, allowed="must have one with an area")
        rows_kept = rows[valid]
        boxes, count = _make_boxes(rows_kept), len(rows_kept)
        order, links = np.arange(count), np.zeros((2 * count, 3), dtype=np.int64)
        nodes, bins = np.empty((2 * count, 6)), np.empty((2 * BIN_COUNT, 7))
        used = _build_tree(boxes, order, nodes, links, bins)
        rows_kept = rows_kept[order]
        rows_kept.setflags(write=False)
        values = (rows_kept.reshape(-1, 3, 3), len(rows) - count, nodes[:used].copy(), links[:used].copy())
        for name, value in zip(("triangles", "degenerate", "_nodes", "_links"), values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], scale: Vector = (1.0, 1.0, 1.0), submesh: str = "", *, center: bool = False
    ) -> Self:
        """Read the file of SDF's `<mesh>`: STL or OBJ.

        scale: factor of each axis.
        submesh: read only this object or group of an OBJ file.
        center: move the centre of the bounding box to the origin.

        Raises `FieldError` for an unreadable or invalid file, and for a scale of zero.
        """
        where = Where(os.fspath(path))
        if not all(0.0 < abs(factor) < math.inf for factor in scale):
            raise FieldError("mesh's scale", scale, where=where, allowed="must be finite and not 0")
        triangles = _read_triangles(path, submesh)
        if center:
            corners = triangles.reshape(-1, 3)
            triangles = triangles - 0.5 * (corners.min(axis=0) + corners.max(axis=0))
        return cls(triangles * np.array(scale, dtype=np.float64), where)

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray, see `Shape`."""
        origin, direction, max_range, distance, normal = rays
        triangles = self.triangles.reshape(-1, 9)
        stack, found = np.empty(STACK_SIZE, np.int64), np.empty(len(max_range), np.int64)
        _trace_rays(self._nodes, self._links, triangles, stack, origin, direction, max_range, distance, found)
        _write_normals(triangles, found, direction, normal)
