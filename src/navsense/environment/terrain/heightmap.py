"""Heightmaps for ray casting in double precision, such as a sea bed.

    x = corner_x + i spacing_x,   y = corner_y + j spacing_y,   z = heights[j, i]

Row 0 is the southernmost row. A cell is two triangles with a common diagonal from south-west to north-east, as in
Gazebo's physics (Open Dynamics Engine, `heightfield.cpp`). The map has no thickness and no walls: rays also hit it from
below, and rays outside its edge miss it.

Files are converted as in SDF's `<heightmap>` (SDF 1.12, `heightmap_shape.sdf`) and Gazebo (gz-common,
`ImageHeightmap.cc`; Gazebo classic, `HeightmapShape.cc`):

    z = pos_z + size_z value / largest value of the image,   0 <= value

The first row of an image is at the largest y, its first column at the smallest x. The outermost pixels are on the edge
of `size`, whose centre is `pos`. `sampling` n inserts n - 1 bilinearly interpolated points between pixels. A text grid
has heights in metres, which `size` scales to size_z from the lowest to the highest.

**Traversal**, in grid coordinates:

    x = x_0 + s_x u,  y = y_0 + s_y v;   node (i, j) stands at u = i, v = j;   f(t) = z(t) - h(u(t), v(t))

f is linear between the points where the ray crosses a side or a diagonal of a cell. The traversal stores the side of
the surface on which the ray starts. The ray hits the surface where the sign of f changes between two such points; a
sign change cannot be missed at an edge. Blocks of cells store their lowest and highest height. A block is skipped if
the ray stays above or below it. Otherwise the ray is clipped to the height range of the block. The traversal
continues in the smallest blocks that are as wide as the clipped ray is long. It can be stopped above the level of cells
and continued, which allows prefetching the heights of many rays.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, IntArray, Vector, Vectors
from navsense.environment.terrain.base import MAX_DISTANCE, MIN_SIZE, Rays
from navsense.environment.terrain.grids import GRID_SUFFIXES, read_grid
from navsense.environment.terrain.png_reader import read_png

LOWER, UPPER, NO_CELL = 0, 1, -1
"""The triangle south-east of a cell's diagonal, the one north-west of it, and no cell."""

_RELATIVE_CLEARANCE = 1e-9
"""Margin above the highest and below the lowest height, relative to the heights."""


@kernel
def _write_height_bounds(heights: FloatArray, levels: IntArray, extent: FloatArray) -> int:
    """Write the lowest and highest height (m, 2) of each block; return the first height that is not finite, or -1.

    A level is (shift, offset, columns, rows): blocks with a side of 2^shift cells, from `offset` on in `extent`.
    """
    rows, columns = heights.shape
    shift, wide, tall = levels[1, 0], levels[1, 2], levels[1, 3]
    extent[:, 0], extent[:, 1] = math.inf, -math.inf
    for j in range(rows):
        for p in range(wide):
            lowest, highest = math.inf, -math.inf
            for i in range(p << shift, min(((p + 1) << shift) + 1, columns)):
                h = heights[j, i]
                if not abs(h) < math.inf:
                    return int(j * columns + i)
                lowest, highest = min(lowest, h), max(highest, h)
            # A node on the line between two blocks belongs to both.
            for q in range(max((j - 1) >> shift, 0), min((j >> shift) + 1, tall)):
                k = q * wide + p
                extent[k, 0], extent[k, 1] = min(extent[k, 0], lowest), max(extent[k, 1], highest)
    for level in range(2, levels.shape[0]):
        step, below = levels[level, 0] - levels[level - 1, 0], level - 1
        for q in range(levels[below, 3]):
            for p in range(levels[below, 2]):
                k = levels[below, 1] + q * levels[below, 2] + p
                lowest, highest = extent[k, 0], extent[k, 1]
                k = levels[level, 1] + (q >> step) * levels[level, 2] + (p >> step)
                extent[k, 0], extent[k, 1] = min(extent[k, 0], lowest), max(extent[k, 1], highest)
    return -1


@kernel
def _triangle_slope(sw: float, se: float, nw: float, ne: float, triangle: int) -> tuple[float, float]:
    """Return the slope of a triangle of a cell: the rise per cell towards east and towards north."""
    if triangle == LOWER:
        return se - sw, ne - se
    return ne - nw, nw - sw


@kernel
def _interpolate_height(sw: float, se: float, nw: float, ne: float, a: float, b: float) -> float:
    """Return the height at (a, b) in a cell; a and b are clamped to the cell."""
    a, b = min(max(a, 0.0), 1.0), min(max(b, 0.0), 1.0)
    if a >= b:
        return sw + a * (se - sw) + b * (ne - se)
    return sw + b * (nw - sw) + a * (ne - nw)


@kernel
def _intersect_cell(
    sw: float,
    se: float,
    nw: float,
    ne: float,
    a: float,
    b: float,
    z: float,
    da: float,
    db: float,
    dz: float,
    t0: float,
    t1: float,
    side: float,
) -> tuple[float, int, float]:
    """Return the range of the hit in [t0, t1], triangle and side. The ray is at (a, b, z) in the cell at t = 0."""
    a0, b0, a1, b1 = a + t0 * da, b + t0 * db, a + t1 * da, b + t1 * db
    first, last = a0 - b0, a1 - b1
    triangle = UPPER if first < 0.0 or (first == 0.0 and last < 0.0) else LOWER
    f0 = z + t0 * dz - _interpolate_height(sw, se, nw, ne, a0, b0)
    f1 = z + t1 * dz - _interpolate_height(sw, se, nw, ne, a1, b1)
    if side == 0.0:
        side = math.copysign(1.0, f0)
        if f0 == 0.0:
            return t0, triangle, side
    if side * f0 < 0.0:  # due to rounding: the hit is at the edge where the ray entered the cell
        return t0, triangle, side
    if first * last < 0.0:
        t = t0 + (t1 - t0) * (first / (first - last))
        middle = min(max(0.5 * (a + t * da + b + t * db), 0.0), 1.0)
        f = z + t * dz - (sw + middle * (ne - sw))
        if side * f <= 0.0:
            t1, f1 = t, f
        else:
            t0, f0, triangle = t, f, 1 - triangle
    if side * f1 > 0.0:
        return math.inf, NO_CELL, side
    east, north = _triangle_slope(sw, se, nw, ne, triangle)
    rate = dz - east * da - north * db
    if rate == 0.0:
        return t0, triangle, side
    return min(max(t0 - f0 / rate, t0), t1), triangle, side


@kernel
def _clearance(lowest: float, highest: float, z: float) -> float:
    """Return the margin (m) above and below the heights of the map for a ray from z."""
    return _RELATIVE_CLEARANCE * (abs(lowest) + abs(highest) + abs(z))


@kernel
def _clip_to_heights(
    z: float, dz: float, inv_dz: float, lowest: float, highest: float, margin: float, t0: float, t1: float, side: float
) -> tuple[float, float, float]:
    """Return the part of [t0, t1] in which a ray is within `margin` of the height range, and its side."""
    if side >= 0.0 and z + t0 * dz > highest:
        first, second, side = highest + margin, lowest - margin, 1.0
    elif side <= 0.0 and z + t0 * dz < lowest:
        first, second, side = lowest - margin, highest + margin, -1.0
    else:
        return t0, t1, side
    return max(t0, min((first - z) * inv_dz, t1)), min((second - z) * inv_dz, t1), side


@kernel
def _clamp_cell(coordinate: float, block: int, shift: int, last: int) -> int:
    """Return the cell of a coordinate, clamped to a block of 2^shift cells and to the grid."""
    return min(max(math.floor(coordinate), block << shift), ((block + 1) << shift) - 1, last)


@kernel
def _prefetch(heights: FloatArray, cells: IntArray) -> float:
    """Read the heights in the cells of active rays and return their sum. The reads overlap, unlike in `_traverse`."""
    total = 0.0
    for n in range(cells.shape[0]):
        if cells[n, 2] != NO_CELL:
            total += heights[cells[n, 1], cells[n, 0]] + heights[cells[n, 1] + 1, cells[n, 0]]
    return total


@kernel
def _traverse(
    heights: FloatArray,
    levels: IntArray,
    extent: FloatArray,
    floor: int,
    rays: FloatArray,
    distance: FloatArray,
    cells: IntArray,
) -> None:
    """Trace rays until they would descend below the level `floor`; with 0, until the end.

    rays (n, 8): u, v, z at t = 0, du, dv, dz, and the interval of t, in which the ray must be over the grid.
    distance (n,): for active rays the side (1, -1, or 0 if unknown); at the end the range, infinite for a miss.
    cells (n, 4): for active rays i, j, the level and the highest useful level; at the end i, j and the triangle,
        `NO_CELL` for a miss. Rays with the level `NO_CELL` are ignored.
    """
    last_i, last_j, root = heights.shape[1] - 2, heights.shape[0] - 2, extent.shape[0] - 1
    for n in range(rays.shape[0]):
        u, v, z, du, dv, dz = rays[n, 0], rays[n, 1], rays[n, 2], rays[n, 3], rays[n, 4], rays[n, 5]
        t, end, side = rays[n, 6], rays[n, 7], distance[n]
        i, j, level, top = cells[n, 0], cells[n, 1], cells[n, 2], cells[n, 3]
        distance[n], cells[n, 2] = math.inf, NO_CELL
        if level == NO_CELL:
            continue
        margin = _clearance(extent[root, 0], extent[root, 1], z)
        step_i, step_j = 1 if du > 0.0 else 0, 1 if dv > 0.0 else 0
        inv_du, inv_dv = 1.0 / du if du != 0.0 else math.inf, 1.0 / dv if dv != 0.0 else math.inf
        inv_dz = 1.0 / dz if dz != 0.0 else math.inf
        while level >= floor:
            shift = levels[level, 0]
            p, q = i >> shift, j >> shift
            edge_u, edge_v = (p + step_i) << shift, (q + step_j) << shift
            t_u = (edge_u - u) * inv_du if du != 0.0 else math.inf
            t_v = (edge_v - v) * inv_dv if dv != 0.0 else math.inf
            t1 = max(min(t_u, t_v, end), t)
            z0, z1 = z + t * dz, z + t1 * dz
            if level > 0:
                k = levels[level, 1] + q * levels[level, 2] + p
                lowest, highest = extent[k, 0], extent[k, 1]
            else:
                sw, se, nw, ne = heights[j, i], heights[j, i + 1], heights[j + 1, i], heights[j + 1, i + 1]
                lowest, highest = min(sw, se, nw, ne), max(sw, se, nw, ne)
            if side >= 0.0 and min(z0, z1) > highest:
                side = 1.0
            elif side <= 0.0 and max(z0, z1) < lowest:
                side = -1.0
            elif level > 0:
                t, t1, side = _clip_to_heights(z, dz, inv_dz, lowest, highest, margin, t, t1, side)
                i, j = _clamp_cell(u + t * du, p, shift, last_i), _clamp_cell(v + t * dv, q, shift, last_j)
                length, level = (t1 - t) * max(abs(du), abs(dv)), level - 1
                while level > 0 and 1 << levels[level - 1, 0] >= length:
                    level -= 1
                continue
            else:
                found, triangle, side = _intersect_cell(sw, se, nw, ne, u - i, v - j, z, du, dv, dz, t, t1, side)
                if triangle != NO_CELL:
                    distance[n], cells[n, 0], cells[n, 1], cells[n, 2] = found, i, j, triangle
                    break
            if t1 >= end:
                break
            previous_i, previous_j, t = i, j, t1
            if t_u <= t_v:
                i, j = edge_u - 1 + step_i, _clamp_cell(v + t * dv, q, shift, last_j)
            else:
                i, j = _clamp_cell(u + t * du, p, shift, last_i), edge_v - 1 + step_j
            if i < 0 or j < 0 or i > last_i or j > last_j:
                break
            while level < top and ((i ^ previous_i) | (j ^ previous_j)) >> levels[level + 1, 0] != 0:
                level += 1
        else:
            rays[n, 6], distance[n] = t, side
            cells[n, 0], cells[n, 1], cells[n, 2] = i, j, level


LEVEL_SHIFT = 3
"""Blocks of a level are 2^3 = 8 times as wide as those of the level below, the fastest of 2, 3 and 4."""

RAYS_PER_BLOCK = 2048
"""Rays that are traced together, so that their part of the map fits in the second-level cache."""

PREFETCH_THRESHOLD = 64
"""Number of rays above which the heights are prefetched."""

MAX_NODES = 10_000 * 10_000
"""Largest number of heights in a map (0.8 GB)."""

_MIN_RATE = 1e-280
"""Smaller changes of a ray along an axis are treated as zero, so that the reciprocal is finite."""


def _make_levels(rows: int, columns: int) -> IntArray:
    """Return the levels (shift, offset, columns, rows) of blocks; level 0 is the cells themselves."""
    table, shift, offset = [(0, 0, columns - 1, rows - 1)], LEVEL_SHIFT, 0
    while True:
        wide, tall = ((columns - 2) >> shift) + 1, ((rows - 2) >> shift) + 1
        table.append((shift, offset, wide, tall))
        offset, shift = offset + wide * tall, shift + LEVEL_SHIFT
        if wide == 1 and tall == 1:
            return np.array(table, dtype=np.int64)


@kernel
def _clip_interval(start: float, rate: float, low: float, high: float, t0: float, t1: float) -> tuple[float, float]:
    """Return the part of [t0, t1] in which start + rate t is within [low, high]; t0 > t1 if it is empty."""
    if rate == 0.0:
        return (t0, t1) if low <= start <= high else (math.inf, -math.inf)
    first, last = (low - start) / rate, (high - start) / rate
    return max(t0, min(first, last)), min(t1, max(first, last))


@kernel
def _zero_small_rate(change: float) -> float:
    return change if abs(change) > _MIN_RATE else 0.0


@kernel
def _write_rays(
    frame: FloatArray,
    levels: IntArray,
    origin: Vectors,
    direction: Vectors,
    max_range: FloatArray,
    rays: FloatArray,
    side: FloatArray,
    cells: IntArray,
) -> None:
    """Write rays in the form of `_traverse`; `frame` (6,) is corner x y, spacing x y, lowest and highest height."""
    wide, tall, last = levels[0, 2], levels[0, 3], levels.shape[0] - 1
    for n in range(origin.shape[0]):
        u, v, z = (origin[n, 0] - frame[0]) / frame[2], (origin[n, 1] - frame[1]) / frame[3], origin[n, 2]
        du, dv = _zero_small_rate(direction[n, 0] / frame[2]), _zero_small_rate(direction[n, 1] / frame[3])
        dz = _zero_small_rate(direction[n, 2])
        margin = _clearance(frame[4], frame[5], z)
        t0, t1 = _clip_interval(z, dz, frame[4] - margin, frame[5] + margin, 0.0, max_range[n])
        t0, t1 = _clip_interval(u, du, 0.0, float(wide), t0, t1)
        t0, t1 = _clip_interval(v, dv, 0.0, float(tall), t0, t1)
        rays[n, 0], rays[n, 1], rays[n, 2], rays[n, 6] = u, v, z, t0
        rays[n, 3], rays[n, 4], rays[n, 5], rays[n, 7] = du, dv, dz, t1
        side[n], cells[n, 2] = 0.0, NO_CELL
        if not t0 <= t1:
            continue
        cells[n, 0] = min(max(math.floor(u + t0 * du), 0), wide - 1)
        cells[n, 1] = min(max(math.floor(v + t0 * dv), 0), tall - 1)
        level, length = 0, (t1 - t0) * max(abs(du), abs(dv))
        while level < last and 1 << levels[level, 0] < length:
            level += 1  # blocks wider than the length of the ray are not useful
        cells[n, 2], cells[n, 3] = level, level


@kernel
def _write_normals(
    heights: FloatArray, frame: FloatArray, cells: IntArray, direction: Vectors, normal: Vectors
) -> None:
    """Write the normals (n, 3) of the triangles that rays hit; `cells` (n, 4) is the output of `_traverse`."""
    for n in range(cells.shape[0]):
        i, j, triangle = cells[n, 0], cells[n, 1], cells[n, 2]
        if triangle == NO_CELL:
            continue
        sw, se, nw, ne = heights[j, i], heights[j, i + 1], heights[j + 1, i], heights[j + 1, i + 1]
        east, north = _triangle_slope(sw, se, nw, ne, triangle)
        x, y = -east / frame[2], -north / frame[3]
        scale = 1.0 / math.sqrt(x * x + y * y + 1.0)
        if direction[n, 0] * x + direction[n, 1] * y + direction[n, 2] > 0.0:
            scale = -scale
        normal[n, 0], normal[n, 1], normal[n, 2] = x * scale, y * scale, scale


@kernel
def _trace_block(
    heights: FloatArray,
    levels: IntArray,
    extent: FloatArray,
    frame: FloatArray,
    origin: Vectors,
    direction: Vectors,
    max_range: FloatArray,
    distance: FloatArray,
    normal: Vectors,
) -> None:
    """Write the first hit of each ray of one block. This is one kernel, because calls dominate for few rays."""
    count = origin.shape[0]
    rays, cells = np.empty((count, 8)), np.empty((count, 4), np.int64)
    _write_rays(frame, levels, origin, direction, max_range, rays, distance, cells)
    if count > PREFETCH_THRESHOLD:
        _traverse(heights, levels, extent, 1, rays, distance, cells)
        _prefetch(heights, cells)
    _traverse(heights, levels, extent, 0, rays, distance, cells)
    _write_normals(heights, frame, cells, direction, normal)


@kernel
def _resample(heights: FloatArray, count: int, out: FloatArray) -> None:
    """Write bilinearly interpolated heights, `count` per spacing of `heights`."""
    last_j, last_i = heights.shape[0] - 1, heights.shape[1] - 1
    for m in range(out.shape[0]):
        j, b = m // count, (m % count) / count
        above = min(j + 1, last_j)
        for n in range(out.shape[1]):
            i, a = n // count, (n % count) / count
            right = min(i + 1, last_i)
            south = heights[j, i] + a * (heights[j, right] - heights[j, i])
            north = heights[above, i] + a * (heights[above, right] - heights[above, i])
            out[m, n] = south + b * (north - south)


@dataclass(frozen=True, eq=False)
class Heightmap:
    """A heightmap.

    heights: (rows, columns) m, the southernmost row first. The array is made read-only, without a copy.
    spacing: distance between heights along x and y (m).
    corner: x and y of the south-west corner (m).
    where: file of the map, for errors.

    Raises `FieldError` for less than 2 x 2 heights, too many heights, heights that are not finite, and an invalid
    spacing.

    >>> heights = np.array([[-20.0, -20.0], [-10.0, -10.0]])  # the bed rises to the north
    >>> bed = ns.environment.Heightmap(heights, spacing=(100.0, 100.0), corner=(-50.0, -50.0))
    >>> scene = ns.environment.Scene((ns.environment.Body("bed", bed),))
    >>> scene.cast(np.zeros((1, 3)), np.array([[0.0, 0.0, -1.0]]), 0.0).range
    array([15.])
    """

    heights: FloatArray
    spacing: tuple[float, float] = (1.0, 1.0)
    corner: tuple[float, float] = (0.0, 0.0)
    where: Where | None = field(default=None, repr=False)
    _levels: IntArray = field(init=False, repr=False)
    _extent: FloatArray = field(init=False, repr=False)
    _frame: FloatArray = field(init=False, repr=False)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        heights = np.ascontiguousarray(self.heights, dtype=np.float64)
        shape, where = heights.shape, self.where
        if len(shape) != 2 or min(shape) < 2 or heights.size > MAX_NODES:
            allowed = f"must be a grid of at least 2 x 2 heights, and of at most {MAX_NODES}"
            raise FieldError("heightmap's shape", shape, where=where, allowed=allowed)
        frame = np.array((*self.corner, *self.spacing), dtype=np.float64)
        if not ((np.abs(frame) <= MAX_DISTANCE).all() and min(self.spacing) >= MIN_SIZE):
            given = (self.spacing, self.corner)
            allowed = f"must be from {MIN_SIZE:g} to {MAX_DISTANCE:g}, and of absolute value up to {MAX_DISTANCE:g}"
            raise FieldError("heightmap's spacing and corner (m)", given, where=where, allowed=allowed)
        levels = _make_levels(*shape)
        extent = np.empty((int(levels[-1, 1]) + 1, 2))
        bad = _write_height_bounds(heights, levels, extent)
        if bad >= 0:
            row, column = divmod(bad, shape[1])
            what = f"height in row {row} from the south, column {column} from the west (m)"
            raise FieldError(what, float(heights[row, column]), where=where, allowed="must be finite")
        if not (np.abs(extent[-1]) <= MAX_DISTANCE).all():
            given, allowed = tuple(extent[-1].tolist()), f"must be of absolute value up to {MAX_DISTANCE:g}"
            raise FieldError("lowest and highest height (m)", given, where=where, allowed=allowed)
        frame = np.append(frame, extent[-1])
        heights.setflags(write=False)
        fields = {"heights": heights, "_levels": levels, "_extent": extent, "_frame": frame}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        size: Vector | None = None,
        pos: Vector = (0.0, 0.0, 0.0),
        sampling: int = 1,
    ) -> Self:
        """Read the file of SDF's `<heightmap>`: a PNG or a text grid, in the frame of its collision.

        size: SDF's size (m). Default: 1 x 1 x 1 for an image, the size of the grid for a text grid with a header.
        pos: SDF's position (m); sampling: SDF's sampling.

        Raises `FieldError` for an unreadable file, an image that is not square and an invalid size. A text grid without
        a header requires a size.
        """
        name = os.fspath(path)
        where = Where(name)
        if sampling < 1 or sampling != int(sampling):
            raise FieldError("heightmap's sampling", sampling, where=where, allowed="must be a whole number from 1 on")
        if size is not None and not all(0.0 < one < math.inf for one in size[:2]):
            allowed = "must be above 0 along x and y, and finite"
            raise FieldError("heightmap's size (m)", size, where=where, allowed=allowed)
        if size is not None and not 0.0 <= size[2] < math.inf:
            what, allowed = "heightmap's size along z (m)", "must be at least 0"
            remedy = "invert the image: Gazebo mirrors an image of negative height at 1 m"
            raise FieldError(what, size[2], where=where, allowed=allowed, remedy=remedy)
        if Path(name).suffix.lower() in GRID_SUFFIXES:
            heights, spacing = _read_text_grid(name, size)
        else:
            heights, spacing = _read_image(name, size or (1.0, 1.0, 1.0))
        rows, columns = heights.shape
        if sampling > 1:
            shape = ((rows - 1) * sampling + 1, (columns - 1) * sampling + 1)
            if shape[0] * shape[1] > MAX_NODES:
                allowed = f"must leave at most {MAX_NODES} points in all"
                raise FieldError("heightmap's sampling", sampling, where=where, allowed=allowed)
            coarse, heights = heights, np.empty(shape)
            _resample(coarse, int(sampling), heights)
        heights += pos[2]
        corner = (pos[0] - 0.5 * (columns - 1) * spacing[0], pos[1] - 0.5 * (rows - 1) * spacing[1])
        return cls(heights, (spacing[0] / sampling, spacing[1] / sampling), corner, where)

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray, see `Shape`."""
        grid = (self.heights, self._levels, self._extent, self._frame)
        if rays.max_range.size <= RAYS_PER_BLOCK:
            _trace_block(*grid, *rays)
            return
        for start in range(0, rays.max_range.size, RAYS_PER_BLOCK):
            _trace_block(*grid, *(array[start : start + RAYS_PER_BLOCK] for array in rays))


def _read_image(name: str, size: Vector) -> tuple[FloatArray, tuple[float, float]]:
    """Return heights (m), the southernmost row first, and spacing (m) of an image scaled to `size` (m)."""
    values = read_png(name)
    rows, columns = values.shape
    if rows != columns or rows < 2:
        allowed = "must be square, as in SDF, and at least 2 x 2"
        remedy = "resample it, or build Heightmap(heights, spacing, corner) in Python"
        what = "heightmap image (columns, rows)"
        raise FieldError(what, (columns, rows), where=Where(name), allowed=allowed, remedy=remedy)
    heights = values[::-1].astype(np.float64)
    largest = float(values.max())
    heights *= size[2] / largest if largest > 0.0 else 0.0
    return heights, (size[0] / (columns - 1), size[1] / (rows - 1))


def _read_text_grid(name: str, size: Vector | None) -> tuple[FloatArray, tuple[float, float]]:
    """Return heights (m) and spacing (m) of a text grid, scaled to `size` (m) if it is given."""
    heights, spacing = read_grid(name)
    rows, columns = heights.shape
    if size is None and spacing is None:
        allowed = "must be given for a grid without a header"
        remedy = "give <size>, or a header of ncols, nrows, xllcorner, yllcorner and cellsize"
        raise FieldError("heightmap's size (m)", "none", where=Where(name), allowed=allowed, remedy=remedy)
    if size is None:
        return heights, (spacing or 1.0, spacing or 1.0)
    span = float(heights.max() - heights.min())
    if span > 0.0:
        heights *= size[2] / span
    return heights, (size[0] / max(columns - 1, 1), size[1] / max(rows - 1, 1))
