"""Triangle meshes for ray casting in double precision with a bounding volume hierarchy.

Embree is not used: its single precision is centimetres at 100 km from the origin, and some of its rays pass through
vertices. Here the result of a ray does not depend on other rays. Degenerate triangles are ignored and counted. Rays hit
a mesh from both sides.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.kernels import kernel
from navsense.core.typing import BoolArray, FloatArray, IntArray, Vector
from navsense.environment.terrain import _bvh
from navsense.environment.terrain.base import MAX_DISTANCE, Rays
from navsense.environment.terrain.mesh_files import read_mesh

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
    """

    triangles: FloatArray
    where: Where | None = field(default=None, repr=False)
    degenerate: int = field(init=False)
    _nodes: FloatArray = field(init=False, repr=False)
    _links: IntArray = field(init=False, repr=False)

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
            raise FieldError(
                f"corners of triangle {bad + 1} (m)", rows[bad].tolist(), where=self.where, allowed=allowed
            )
        if not valid.any():
            raise FieldError("mesh", f"{len(rows)} triangles", where=self.where, allowed="must have one with an area")
        rows_kept = rows[valid]
        boxes, count = _make_boxes(rows_kept), len(rows_kept)
        order, links = np.arange(count), np.zeros((2 * count, 3), dtype=np.int64)
        nodes, bins = np.empty((2 * count, 6)), np.empty((2 * _bvh.BIN_COUNT, 7))
        used = _bvh.build_tree(boxes, order, nodes, links, bins)
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
        triangles = read_mesh(path, submesh)
        if center:
            corners = triangles.reshape(-1, 3)
            triangles = triangles - 0.5 * (corners.min(axis=0) + corners.max(axis=0))
        return cls(triangles * np.array(scale, dtype=np.float64), where)

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray, see `Shape`."""
        triangles, stack = self.triangles.reshape(-1, 9), np.empty(_bvh.STACK_SIZE, np.int64)
        found = np.empty(len(rays.reach), np.int64)
        _bvh.trace_rays(self._nodes, self._links, triangles, stack, *rays[:4], found)
        _bvh.write_normals(triangles, found, rays.direction, rays.normal)
