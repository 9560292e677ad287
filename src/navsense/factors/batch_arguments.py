"""Validation of the arguments of many measurements at once, and allocation of the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.errors import FactorError
from navsense.core.kernels import kernel
from navsense.core.rotation import to_matrix
from navsense.core.typing import FloatArray
from navsense.factors.arguments import to_floats
from navsense.factors.gtsam_support import is_gtsam
from navsense.factors.variables import UNIT_TOLERANCE

Matrix: TypeAlias = tuple[float, float, float, float, float, float, float, float, float]


class Block(NamedTuple):
    """Residuals (n, rows) and one Jacobian (n, rows, columns) per unknown, in the order of the keys of the factor.

    A Jacobian that is the identity for all measurements is a read-only view of one matrix.

    >>> block = ns.factors.blocks.mag_factor2((2e-5, 0.0, -4e-5), (0.0, 0.0, 0.0), field, rotation_ws)
    >>> block.residual.shape, len(block.jacobians)
    ((599, 3), 2)
    """

    residual: FloatArray
    jacobians: tuple[FloatArray, ...]


@kernel
def row_to_matrix(rotation: FloatArray, i: int) -> Matrix:
    """Return rotation i as a matrix, row by row. The rotations are quaternions (n, 4) or matrices (n, 9)."""
    if rotation.shape[1] == 9:
        return (
            rotation[i, 0],
            rotation[i, 1],
            rotation[i, 2],
            rotation[i, 3],
            rotation[i, 4],
            rotation[i, 5],
            rotation[i, 6],
            rotation[i, 7],
            rotation[i, 8],
        )
    return to_matrix(rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3])


@kernel
def _first_non_rotation(rotation: FloatArray, limit: float) -> int:
    """Return the first row that is not a rotation, -1 if all are."""
    for i in range(rotation.shape[0]):
        if rotation.shape[1] == 4:
            w, x, y, z = rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3]
            if not abs(w * w + x * x + y * y + z * z - 1.0) <= limit:
                return i
            continue
        a, b, c, d, e, f, g, h, k = row_to_matrix(rotation, i)
        orthonormal = abs(a * d + b * e + c * f) <= limit and abs(a * g + b * h + c * k) <= limit
        orthonormal = orthonormal and abs(d * g + e * h + f * k) <= limit and abs(a * a + b * b + c * c - 1.0) <= limit
        orthonormal = orthonormal and abs(d * d + e * e + f * f - 1.0) <= limit
        orthonormal = orthonormal and abs(g * g + h * h + k * k - 1.0) <= limit
        if not (orthonormal and a * (e * k - f * h) - b * (d * k - f * g) + c * (d * h - e * g) > 0.0):
            return i
    return -1


class BatchArguments:
    """The arguments of one call. Arguments with a leading axis must have the same number of rows, `count`."""

    def __init__(self) -> None:
        """Start without arguments."""
        self.rows: dict[str, FloatArray] = {}
        self._first_batch = ""

    @property
    def count(self) -> int:
        """The number of measurements: 1 if no argument has a leading axis."""
        return len(self.rows[self._first_batch]) if self._first_batch else 1

    def add_vectors(self, name: str, value: ArrayLike, width: int) -> FloatArray:
        """Return rows (n, width) of an argument (n, width) or (width,). For width 1, of (n,) or a number."""
        shape = (width,) if width > 1 else ()
        return self._add(name, to_floats(name, value), shape, width, f"({width},)" if width > 1 else "a number")

    def add_angles(self, name: str, value: Any) -> FloatArray:
        """Return angles (n, 1) in rad of numbers (n,) in rad, of Rot2 objects, or of one."""
        return self.add_vectors(name, _extract_numbers(value, "Rot2", "theta"), 1)

    def add_directions(self, name: str, value: Any, width: int) -> FloatArray:
        """Return rows as `add_vectors` does. If the width is 3, Unit3 objects are allowed too."""
        return self.add_vectors(name, _extract_numbers(value, "Unit3", "point3") if width == 3 else value, width)

    def add_rotations(self, name: str, value: Any) -> FloatArray:
        """Return rows (n, 4) or (n, 9) of quaternions w x y z (n, 4), matrices (n, 3, 3), Rot3 objects, or of one."""
        array = to_floats(name, _extract_numbers(value, "Rot3", "matrix"))
        shape = (3, 3) if array.shape[-2:] == (3, 3) else (4,)
        rows = self._add(name, array, shape, 9 if shape == (3, 3) else 4, "(4,) or (3, 3)")
        row = _first_non_rotation(rows, UNIT_TOLERANCE)
        if row >= 0:
            raise FactorError(
                f"{name} of row {row}" if array.ndim > len(shape) else name,
                rows[row].tolist(),
                allowed="must be a rotation: a unit quaternion w x y z, or an orthogonal matrix of determinant 1",
            )
        return rows

    def check_shared(self, name: str) -> None:
        """Raise `FactorError` if the argument has a leading axis: all measurements must share one value."""
        if self._first_batch == name:
            allowed = "must be one for all, without a leading axis"
            raise FactorError(f"rows of {name}", len(self.rows[name]), allowed=allowed)

    def _add(self, name: str, array: FloatArray, shape: tuple[int, ...], width: int, one: str) -> FloatArray:
        """Check the shape of an argument, and the number of its rows against the arguments before it."""
        is_batch = array.ndim == len(shape) + 1
        if array.shape[is_batch:] != shape:
            raise FactorError(
                f"shape of {name}", array.shape, allowed=f"must be {one}, or n of them along a first axis"
            )
        rows = np.ascontiguousarray(array).reshape(len(array) if is_batch else 1, width)
        if is_batch and self._first_batch and len(rows) != self.count:
            allowed = f"must be {self.count}, as those of {self._first_batch}, or one for all"
            raise FactorError(f"rows of {name}", len(rows), allowed=allowed)
        self._first_batch = self._first_batch or (name if is_batch else "")
        self.rows[name] = rows
        return rows

    def raise_for_row(self, row: int) -> None:
        """Raise `FactorError` for the argument that made the residual of a row invalid. -1 means no such row."""
        if row < 0:
            return
        for name, rows in self.rows.items():
            value = rows[row if len(rows) > 1 else 0]
            what = f"{name} of row {row}" if len(rows) > 1 else name
            if not np.isfinite(value).all():
                raise FactorError(what, value.tolist(), allowed="must be finite")
            if name == "direction" and not value.any():
                raise FactorError(what, value.tolist(), allowed="must not be zero: it is a direction")
        raise FactorError(f"residual of row {row}", "overflows", allowed="must be finite")


def _extract_numbers(value: Any, kind: str, method: str) -> Any:
    """Return the numbers of one or many objects of the GTSAM class `kind`, by a method; other values unchanged."""
    if is_gtsam(value, kind):
        return getattr(value, method)()
    many = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1)
    if many and len(value) > 0 and is_gtsam(value[0], kind):
        return [_extract_numbers(each, kind, method) for each in value]
    return value


_IDENTITY: FloatArray = np.eye(3)
_IDENTITY.setflags(write=False)


def repeat_identity(count: int) -> FloatArray:
    """Return identity matrices (n, 3, 3), a read-only view of one."""
    return np.broadcast_to(_IDENTITY, (count, 3, 3))


def allocate_block(out: Block | None, count: int, rows: int, columns: tuple[int, ...], *, jacobians: bool) -> Block:
    """Return arrays for the results: those of `out` if they fit, else new ones.

    `columns` are the columns of the Jacobians that are not identities. Raises `FactorError` if `out` does not fit.
    """
    shapes = [(count, rows), *((count, rows, width) for width in columns if jacobians)]
    if out is None:
        arrays = [np.empty(shape) for shape in shapes]
        return Block(arrays[0], tuple(arrays[1:]))
    arrays = [out.residual, *out.jacobians[: len(shapes) - 1]]
    for array, shape in zip(arrays, shapes, strict=False):
        usable = array.dtype == np.float64 and array.flags.c_contiguous and array.flags.writeable
        if array.shape != shape or not usable:
            allowed = f"must be writeable contiguous float64 {shape}"
            raise FactorError("out", f"{array.dtype} {array.shape}", allowed=allowed)
    if len(arrays) < len(shapes):
        raise FactorError("out", f"{len(arrays) - 1} Jacobians", allowed=f"must hold {len(shapes) - 1} of them")
    return Block(arrays[0], tuple(arrays[1:]))
