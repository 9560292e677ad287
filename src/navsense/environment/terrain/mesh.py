"""Meshes of triangles, met by rays in double precision through a tree of boxes of our own.

No outside library: Embree works in single precision, which is centimetres some hundred kilometres from the origin, and
lets some rays through that are aimed at vertices exactly; here a ray sees the same to the last bit whatever the rays
beside it. Triangles without area are left out, and counted. A mesh is a skin, met from outside and from within.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from navsense.environment.terrain import _bvh
from navsense.environment.terrain.base import MAX_DISTANCE
from navsense.environment.terrain.mesh_files import read_mesh
from navsense.errors import FieldError, Where
from navsense.kernels import kernel
from navsense.typing import BoolArray, FloatArray, IntArray, Vector, Vectors

_MARGIN = 2.0**-40
"""Part of the farthest corner's coordinates by which boxes are widened."""


@kernel
def _mark_valid(triangles: FloatArray, valid: BoolArray) -> int:
    """Mark the triangles (m, 9) that have an area; return the first with a corner that is no place, or -1."""
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
    """Return the boxes (m, 6), lowest x y z and highest x y z, of triangles (m, 9), widened against rounding."""
    corners = triangles.reshape(-1, 3, 3)
    margin = _MARGIN * float(np.abs(triangles).max())
    return np.concatenate((corners.min(axis=1) - margin, corners.max(axis=1) + margin), axis=1)


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles (m, 3, 3) m, a corner a row; their order of corners does not matter. `degenerate` had no area.

    Raises `FieldError` for an array of another shape, corners that are not finite or farther than `FARTHEST` from the
    origin along an axis, and where no triangle has an area.
    """

    triangles: FloatArray
    where: Where | None = field(default=None, repr=False)
    degenerate: int = field(init=False)
    _nodes: FloatArray = field(init=False, repr=False)
    _links: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the values."""
        given = np.asarray(self.triangles, dtype=np.float64)
        if given.ndim != 3 or given.shape[1:] != (3, 3):
            raise FieldError("mesh's shape", given.shape, where=self.where, allowed="must be (triangles, 3, 3)")
        rows = np.ascontiguousarray(given.reshape(-1, 9))
        kept = np.empty(len(rows), dtype=np.bool_)
        bad = _mark_valid(rows, kept)
        if bad >= 0:
            allowed = f"must be finite and within {MAX_DISTANCE:g} m of the origin along each axis"
            raise FieldError(
                f"corners of triangle {bad + 1} (m)", rows[bad].tolist(), where=self.where, allowed=allowed
            )
        if not kept.any():
            raise FieldError("mesh", f"{len(rows)} triangles", where=self.where, allowed="must have one with an area")
        solid = rows[kept]
        boxes, count = _make_boxes(solid), len(solid)
        order, links = np.arange(count), np.zeros((2 * count, 3), dtype=np.int64)
        nodes, bins = np.empty((2 * count, 6)), np.empty((2 * _bvh.BIN_COUNT, 7))
        used = _bvh.build_tree(boxes, order, nodes, links, bins)
        solid = solid[order]
        solid.setflags(write=False)
        values = (solid.reshape(-1, 3, 3), len(rows) - count, nodes[:used].copy(), links[:used].copy())
        for name, value in zip(("triangles", "degenerate", "_nodes", "_links"), values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], scale: Vector = (1.0, 1.0, 1.0), submesh: str = "", *, center: bool = False
    ) -> Self:
        """Read SDF's `<mesh>`: an STL or an OBJ file, each axis times `scale`.

        `submesh` is the object or group of an OBJ file that is taken alone; `center` moves the middle of its box to the
        origin. Raises `FieldError` for a file that cannot be read or is broken, and for a scale of zero.
        """
        where = Where(os.fspath(path))
        if not all(0.0 < abs(one) < math.inf for one in scale):
            raise FieldError("mesh's scale", scale, where=where, allowed="must be finite and not 0")
        triangles = read_mesh(path, submesh)
        if center:
            corners = triangles.reshape(-1, 3)
            triangles = triangles - 0.5 * (corners.min(axis=0) + corners.max(axis=0))
        return cls(triangles * np.array(scale, dtype=np.float64), where)

    def trace(
        self, origin_s: Vectors, direction_s: Vectors, reach: FloatArray, distance: FloatArray, normal_s: Vectors
    ) -> None:
        """Write where each ray first meets the mesh, as `Shape` says."""
        rows, stack, found = (
            self.triangles.reshape(-1, 9),
            np.empty(_bvh.STACK_SIZE, np.int64),
            np.empty(len(reach), np.int64),
        )
        _bvh.trace_rays(self._nodes, self._links, rows, stack, origin_s, direction_s, reach, distance, found)
        _bvh.write_normals(rows, found, direction_s, normal_s)
