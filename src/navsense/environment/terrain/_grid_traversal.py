"""Watertight traversal of a height grid by rays, in grid coordinates.

    x = x_0 + s_x u,  y = y_0 + s_y v;   node (i, j) stands at u = i, v = j;   f(t) = z(t) - h(u(t), v(t))

Each cell is two triangles with a common diagonal from (i, j) to (i + 1, j + 1), so f is linear between the points where
the ray crosses a side or a diagonal. The traversal stores the side of the surface on which the ray starts. The ray hits
the surface where the sign of f changes between two such points; a sign change cannot be missed at an edge. Blocks of
cells store their lowest and highest height. A block is skipped if the ray stays above or below it. Otherwise the ray is
clipped to the height range of the block, and the traversal continues in the smallest blocks that are as wide as the
clipped ray is long.

The traversal can be stopped above the level of cells and continued. This allows prefetching the heights of many rays.
"""

from __future__ import annotations

import math

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, IntArray

LOWER, UPPER, NO_CELL = 0, 1, -1
"""The triangle south-east of a cell's diagonal, the one north-west of it, and no cell."""

_RELATIVE_CLEARANCE = 1e-9
"""Margin above the highest and below the lowest height, relative to the heights."""


@kernel
def write_height_bounds(heights: FloatArray, levels: IntArray, extent: FloatArray) -> int:
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
def triangle_slope(sw: float, se: float, nw: float, ne: float, triangle: int) -> tuple[float, float]:
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
    """Return the range of the hit in [t0, t1], the triangle and the side of a ray at (a, b, z) in the cell at t = 0."""
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
    east, north = triangle_slope(sw, se, nw, ne, triangle)
    rate = dz - east * da - north * db
    if rate == 0.0:
        return t0, triangle, side
    return min(max(t0 - f0 / rate, t0), t1), triangle, side


@kernel
def clearance(lowest: float, highest: float, z: float) -> float:
    """Return the margin (m) above and below the heights of the map for a ray from z."""
    return _RELATIVE_CLEARANCE * (abs(lowest) + abs(highest) + abs(z))


@kernel
def _clip_to_heights(
    z: float, dz: float, pace: float, lowest: float, highest: float, room: float, t0: float, t1: float, side: float
) -> tuple[float, float, float]:
    """Return the part of [t0, t1] in which a ray, dz = 1 / pace, is within `room` of the height range, and its side."""
    if side >= 0.0 and z + t0 * dz > highest:
        first, second, side = highest + room, lowest - room, 1.0
    elif side <= 0.0 and z + t0 * dz < lowest:
        first, second, side = lowest - room, highest + room, -1.0
    else:
        return t0, t1, side
    return max(t0, min((first - z) * pace, t1)), min((second - z) * pace, t1), side


@kernel
def _clamp_cell(coordinate: float, block: int, shift: int, last: int) -> int:
    """Return the cell of a coordinate, clamped to a block of 2^shift cells and to the grid."""
    return min(max(math.floor(coordinate), block << shift), ((block + 1) << shift) - 1, last)


@kernel
def prefetch(heights: FloatArray, cells: IntArray) -> float:
    """Read the heights in the cells of active rays and return their sum. The reads overlap, unlike in `traverse`."""
    total = 0.0
    for n in range(cells.shape[0]):
        if cells[n, 2] != NO_CELL:
            total += heights[cells[n, 1], cells[n, 0]] + heights[cells[n, 1] + 1, cells[n, 0]]
    return total


@kernel
def traverse(
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
        room = clearance(extent[root, 0], extent[root, 1], z)
        ahead_i, ahead_j = 1 if du > 0.0 else 0, 1 if dv > 0.0 else 0
        pace_u, pace_v = 1.0 / du if du != 0.0 else math.inf, 1.0 / dv if dv != 0.0 else math.inf
        pace_z = 1.0 / dz if dz != 0.0 else math.inf
        while level >= floor:
            shift = levels[level, 0]
            p, q = i >> shift, j >> shift
            edge_u, edge_v = (p + ahead_i) << shift, (q + ahead_j) << shift
            t_u = (edge_u - u) * pace_u if du != 0.0 else math.inf
            t_v = (edge_v - v) * pace_v if dv != 0.0 else math.inf
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
                t, t1, side = _clip_to_heights(z, dz, pace_z, lowest, highest, room, t, t1, side)
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
            was_i, was_j, t = i, j, t1
            if t_u <= t_v:
                i, j = edge_u - 1 + ahead_i, _clamp_cell(v + t * dv, q, shift, last_j)
            else:
                i, j = _clamp_cell(u + t * du, p, shift, last_i), edge_v - 1 + ahead_j
            if i < 0 or j < 0 or i > last_i or j > last_j:
                break
            while level < top and ((i ^ was_i) | (j ^ was_j)) >> levels[level + 1, 0] != 0:
                level += 1
        else:
            rays[n, 6], distance[n] = t, side
            cells[n, 0], cells[n, 1], cells[n, 2] = i, j, level
