"""A bounding volume hierarchy of triangles with watertight ray intersection in double precision.

The tree is split by the surface area heuristic with 16 bins along the longest axis of the box centres (Wald, "On fast
construction of SAH-based bounding volume hierarchies", IEEE RT 2007). Below a depth of 48 it is split in the middle of
the list, which bounds the depth.

A triangle is sheared so that the ray is along z. With x, y, z of its corners A, B, C::

    U = C_x B_y - C_y B_x,  V = A_x C_y - A_y C_x,  W = B_x A_y - B_y A_x;   hit if U, V, W have one sign or are 0
    t = (U A_z + V B_z + W C_z) / (U + V + W)

Two triangles with a common edge compute the same number for it with opposite signs, so a ray hits one of them (Woop,
Benthin, Wald, "Watertight ray/triangle intersection", JCGT 2013). Boxes have a margin for rounding.
"""

from __future__ import annotations

import math

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, IntArray, Vectors

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
def build_tree(boxes: FloatArray, order: IntArray, nodes: FloatArray, links: IntArray, bins: FloatArray) -> int:
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
    x0: float, y0: float, z0: float, x1: float, y1: float, z1: float, ix: float, iy: float, iz: float, reach: float
) -> bool:
    """Return true if a ray may hit a box before `reach`; corners relative to the origin of the ray, ix = 1 / d_x."""
    x0, x1, y0, y1, z0, z1 = x0 * ix, x1 * ix, y0 * iy, y1 * iy, z0 * iz, z1 * iz
    enter = max(min(x0, x1), min(y0, y1), min(z0, z1), 0.0)
    leave = min(max(x0, x1), max(y0, y1), max(z0, z1), reach)
    return enter <= leave * _BOX_MARGIN


@kernel
def _safe_reciprocal(d: float) -> float:
    """Return 1 / d, a large number of the same sign for d near zero."""
    return 1.0 / d if abs(d) > 1.0 / _MAX_RECIPROCAL else math.copysign(_MAX_RECIPROCAL, d)


@kernel
def _intersect_triangle(
    ax: float,
    ay: float,
    a: float,
    bx: float,
    by: float,
    b: float,
    cx: float,
    cy: float,
    c: float,
    sx: float,
    sy: float,
    sz: float,
) -> float:
    """Return the range of a triangle with corners relative to the origin of the ray; infinite or negative for a miss.

    The direction of the ray is (sx, sy, 1) / sz in the axes of the corners.
    """
    ax, ay, bx, by, cx, cy = ax - sx * a, ay - sy * a, bx - sx * b, by - sy * b, cx - sx * c, cy - sy * c
    u, v, w = cx * by - cy * bx, ax * cy - ay * cx, bx * ay - by * ax
    if (u < 0.0 or v < 0.0 or w < 0.0) and (u > 0.0 or v > 0.0 or w > 0.0):
        return math.inf
    determinant = u + v + w
    if determinant == 0.0:
        return math.inf
    return sz * (u * a + v * b + w * c) / determinant


@kernel
def trace_rays(
    nodes: FloatArray,
    links: IntArray,
    triangles: FloatArray,
    stack: IntArray,
    origin: Vectors,
    direction: Vectors,
    reach: FloatArray,
    distance: FloatArray,
    found: IntArray,
) -> None:
    """Write the ranges (n,) of the first hits, infinite for a miss, and the triangles (n,), -1 for a miss."""
    for n in range(origin.shape[0]):
        x, y, z, best = origin[n, 0], origin[n, 1], origin[n, 2], reach[n]
        ix, iy, iz = (
            _safe_reciprocal(direction[n, 0]),
            _safe_reciprocal(direction[n, 1]),
            _safe_reciprocal(direction[n, 2]),
        )
        kz = 1 if abs(direction[n, 1]) > abs(direction[n, 0]) else 0
        kz = 2 if abs(direction[n, 2]) > abs(direction[n, kz]) else kz
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
                t = _intersect_triangle(
                    triangles[k, kx] - ox,
                    triangles[k, ky] - oy,
                    triangles[k, kz] - oz,
                    triangles[k, 3 + kx] - ox,
                    triangles[k, 3 + ky] - oy,
                    triangles[k, 3 + kz] - oz,
                    triangles[k, 6 + kx] - ox,
                    triangles[k, 6 + ky] - oy,
                    triangles[k, 6 + kz] - oz,
                    sx,
                    sy,
                    sz,
                )
                if 0.0 <= t <= best and (t < best or hit < 0) and t < math.inf:
                    best, hit = t, k
        distance[n], found[n] = best if hit >= 0 else math.inf, hit


@kernel
def write_normals(triangles: FloatArray, found: IntArray, direction: Vectors, normal: Vectors) -> None:
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
