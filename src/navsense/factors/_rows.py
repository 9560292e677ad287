"""What a user hands to many measurements at once: rows of their own or one for all, checked, and where results go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from navsense.errors import FactorError
from navsense.factors.library import is_gtsam
from navsense.factors.variables import UNIT
from navsense.kernels import kernel
from navsense.rotation import to_matrix as rotation_matrix
from navsense.typing import FloatArray

Matrix: TypeAlias = tuple[float, float, float, float, float, float, float, float, float]


class Block(NamedTuple):
    """Residuals (n, rows) and one Jacobian (n, rows, columns) for each unknown, in the order of the factor's keys.

    A Jacobian that is the identity for every measurement is a read-only view of one.
    """

    residual: FloatArray
    jacobians: tuple[FloatArray, ...]


@kernel
def matrix(rotation: FloatArray, i: int) -> Matrix:
    """Return row i of rotations, quaternions (n, 4) or matrices (n, 9), as a matrix row by row."""
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
    return rotation_matrix(rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3])


@kernel
def _no_rotation(rotation: FloatArray, limit: float) -> int:
    """Return the first row that is no rotation, -1 where all are."""
    for i in range(rotation.shape[0]):
        if rotation.shape[1] == 4:
            w, x, y, z = rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3]
            if not abs(w * w + x * x + y * y + z * z - 1.0) <= limit:
                return i
            continue
        a, b, c, d, e, f, g, h, k = matrix(rotation, i)
        right = abs(a * d + b * e + c * f) <= limit and abs(a * g + b * h + c * k) <= limit
        right = right and abs(d * g + e * h + f * k) <= limit and abs(a * a + b * b + c * c - 1.0) <= limit
        right = right and abs(d * d + e * e + f * f - 1.0) <= limit and abs(g * g + h * h + k * k - 1.0) <= limit
        if not (right and a * (e * k - f * h) - b * (d * k - f * g) + c * (d * h - e * g) > 0.0):
            return i
    return -1


class Rows:
    """The arguments of one call: those with a leading axis have the same number of rows, `count`."""

    def __init__(self) -> None:
        """Start without any."""
        self.given: dict[str, FloatArray] = {}
        self._own = ""

    @property
    def count(self) -> int:
        """Return the number of measurements: 1 where nothing has a leading axis."""
        return len(self.given[self._own]) if self._own else 1

    def take(self, name: str, value: ArrayLike, width: int) -> FloatArray:
        """Return values (n, width) of an argument (n, width) or (width,); for width 1, of (n,) or a number."""
        shape = (width,) if width > 1 else ()
        return self._keep(name, numbers(name, value), shape, width, f"({width},)" if width > 1 else "a number")

    def angle(self, name: str, value: Any) -> FloatArray:
        """Return angles (n, 1) rad of (n,) rad, of Rot2s, or of one."""
        return self.take(name, _plain(value, "Rot2", "theta"), 1)

    def direction(self, name: str, value: Any, width: int) -> FloatArray:
        """Return vectors (n, width) as `take` does, of Unit3s too where they are three numbers wide."""
        return self.take(name, _plain(value, "Unit3", "point3") if width == 3 else value, width)

    def rotation(self, name: str, value: Any) -> FloatArray:
        """Return rotations (n, 4) or (n, 9) of quaternions w x y z (n, 4), matrices (n, 3, 3), Rot3s, or of one."""
        array = numbers(name, _plain(value, "Rot3", "matrix"))
        shape = (3, 3) if array.shape[-2:] == (3, 3) else (4,)
        rows = self._keep(name, array, shape, 9 if shape == (3, 3) else 4, "(4,) or (3, 3)")
        bad = _no_rotation(rows, UNIT)
        if bad >= 0:
            raise FactorError(
                f"{name} of row {bad}" if array.ndim > len(shape) else name,
                rows[bad].tolist(),
                allowed="must be a rotation: a unit quaternion w x y z, or an orthogonal matrix of determinant 1",
            )
        return rows

    def of_all(self, name: str, rows: FloatArray) -> FloatArray:
        """Return the one row of an argument that all measurements share. Raises `FactorError` where it has its own."""
        if self._own == name:
            raise FactorError(f"rows of {name}", len(rows), allowed="must be one for all, without a leading axis")
        return rows

    def _keep(self, name: str, array: FloatArray, shape: tuple[int, ...], width: int, one: str) -> FloatArray:
        """Check an argument's shape against the shape of one value, and its rows against those before it."""
        own = array.ndim == len(shape) + 1
        if array.shape[own:] != shape:
            raise FactorError(
                f"shape of {name}", array.shape, allowed=f"must be {one}, or n of them along a first axis"
            )
        rows = np.ascontiguousarray(array).reshape(len(array) if own else 1, width)
        if own and self._own and len(rows) != self.count:
            raise FactorError(
                f"rows of {name}", len(rows), allowed=f"must be {self.count}, as those of {self._own}, or one for all"
            )
        self._own = self._own or (name if own else "")
        self.given[name] = rows
        return rows

    def refuse(self, row: int) -> None:
        """Raise `FactorError` for the argument that made the residual of a row no number; none did where it is -1."""
        if row < 0:
            return
        for name, rows in self.given.items():
            value = rows[row if len(rows) > 1 else 0]
            where = f"{name} of row {row}" if len(rows) > 1 else name
            if not np.isfinite(value).all():
                raise FactorError(where, value.tolist(), allowed="must be finite")
            if name == "direction" and not value.any():
                raise FactorError(where, value.tolist(), allowed="must not be zero: it is a direction")
        raise FactorError(f"residual of row {row}", "overflows", allowed="must be finite")


def _plain(value: Any, kind: str, numbers: str) -> Any:
    """Return the numbers of one or of many objects of GTSAM's class `kind`, by their method; all else as it is."""
    if is_gtsam(value, kind):
        return getattr(value, numbers)()
    many = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1)
    if many and len(value) > 0 and is_gtsam(value[0], kind):
        return [_plain(each, kind, numbers) for each in value]
    return value


def numbers(name: str, value: Any) -> FloatArray:
    """Return an argument as an array of floats. Raises `FactorError` for texts, truths and rows of unequal length."""
    try:
        array = np.asarray(value)
    except ValueError as cause:
        raise FactorError(name, value, allowed="must be an array of numbers") from cause
    if array.dtype.kind not in "fiu":
        raise FactorError(name, value, allowed="must be an array of numbers")
    return array.astype(np.float64, copy=False)


IDENTITY: FloatArray = np.eye(3)
IDENTITY.setflags(write=False)


def room(out: Block | None, count: int, rows: int, columns: tuple[int, ...], *, jacobians: bool) -> Block:
    """Return where the results go: `out` if it fits, else new arrays; `columns` of what is no identity."""
    shapes = [(count, rows), *((count, rows, width) for width in columns if jacobians)]
    if out is None:
        arrays = [np.empty(shape) for shape in shapes]
        return Block(arrays[0], tuple(arrays[1:]))
    arrays = [out.residual, *out.jacobians[: len(shapes) - 1]]
    for array, shape in zip(arrays, shapes, strict=False):
        if (
            array.shape != shape
            or array.dtype != np.float64
            or not array.flags.c_contiguous
            or not array.flags.writeable
        ):
            raise FactorError(
                "out", f"{array.dtype} {array.shape}", allowed=f"must be writeable contiguous float64 {shape}"
            )
    if len(arrays) < len(shapes):
        raise FactorError("out", f"{len(arrays) - 1} Jacobians", allowed=f"must hold {len(shapes) - 1} of them")
    return Block(arrays[0], tuple(arrays[1:]))


def identities(count: int) -> FloatArray:
    """Return (n, 3, 3) identities, a read-only view of one."""
    return np.broadcast_to(IDENTITY, (count, 3, 3))
