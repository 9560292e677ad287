"""The unknowns of a factor: their GTSAM classes, the arrays that replace these, and the numbers used inside.

| unknown | tangent space | GTSAM class | or arrays | numbers |
|---|---|---|---|---|
| `rot2` | angle | Rot2 | angle (rad), matrix (2, 2) | cos, sin |
| `rot3` | rotation vector | Rot3 | matrix (3, 3), quaternion w x y z | the matrix, row by row |
| `pose2` | x, y, angle | Pose2 | x y angle, matrix (3, 3) | cos, sin, x, y |
| `pose3` | rotation vector, translation | Pose3 | matrix (4, 4), x y z w x y z, `Pose` | the matrix, x, y, z |
| `unit3` | tangent plane of GTSAM's basis | Unit3 | vector (3,), made of length 1 | x, y, z |
| `vector_variable` | itself | Point2, Point3, Vector | vector (n,) | n numbers |
| `double` | itself | double | number | the number |

Rotations are updated on the right, R Exp(xi). A matrix or quaternion that is not a rotation is an error. A GTSAM
Rot3 is not checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np

from navsense.core.errors import FactorError
from navsense.core.pose import Pose
from navsense.core.rotation import to_matrix_python
from navsense.core.typing import AnyArray
from navsense.factors.arguments import (
    Numbers,
    validate_array,
    validate_direction,
    validate_finite,
    validate_number,
    validate_vector,
)
from navsense.factors.gtsam_support import format_key, is_gtsam

UNIT_TOLERANCE = 1e-6
"""Tolerance on the squared length of a quaternion, and on the products of the rows of a rotation matrix."""


@final
@dataclass(frozen=True)
class Variable:
    """One unknown: name in the factor, name of the GTSAM class, dimension of the tangent space, reader of values."""

    name: str
    kind: str
    dim: int
    read: Callable[[str, object], Numbers]

    def find(self, values: Any, key: int) -> Numbers:
        """Return the numbers of the value at a key. `values` is a mapping from keys or a gtsam.Values."""
        if is_gtsam(values, "Values"):
            try:
                return self.read(self.name, getattr(values, f"at{self.kind}")(key))
            except RuntimeError as cause:
                problem = "is of another kind" if values.exists(key) else "is not there"
                raise self._value_error(key, problem) from cause
        if not isinstance(values, Mapping):
            raise FactorError("values", values, allowed="must be a mapping from keys to values, or gtsam.Values")
        if key not in values:
            raise self._value_error(key, "is not there")
        return self.read(self.name, values[key])

    def _value_error(self, key: int, problem: str) -> FactorError:
        return FactorError(f"value of {format_key(key)} ({self.name})", problem, allowed=f"must be a {self.kind}")


def double(name: str) -> Variable:
    """Return an unknown number."""
    return Variable(name, "Double", 1, lambda what, value: (validate_number(what, value),))


def vector_variable(name: str, n: int) -> Variable:
    """Return an unknown vector of n numbers."""
    kind = f"Point{n}" if n in (2, 3) else "Vector"
    return Variable(name, kind, n, lambda what, value: validate_vector(what, value, n))


def unit3(name: str) -> Variable:
    """Return an unknown direction."""
    return Variable(name, "Unit3", 2, validate_direction)


def rot2(name: str) -> Variable:
    """Return an unknown rotation in the plane."""
    return Variable(name, "Rot2", 1, read_plane_rotation)


def rot3(name: str) -> Variable:
    """Return an unknown rotation."""
    return Variable(name, "Rot3", 3, read_rotation)


def pose2(name: str) -> Variable:
    """Return an unknown pose in the plane."""
    return Variable(name, "Pose2", 3, read_plane_pose)


def pose3(name: str) -> Variable:
    """Return an unknown pose."""
    return Variable(name, "Pose3", 6, read_pose)


def _check_rotation(what: str, numbers: Numbers) -> Numbers:
    """Return the nine numbers of a rotation matrix. Raises `FactorError` if it is not a rotation."""
    a, b, c, d, e, f, g, h, i = numbers
    error = max(
        abs(a * a + b * b + c * c - 1.0),
        abs(d * d + e * e + f * f - 1.0),
        abs(g * g + h * h + i * i - 1.0),
        abs(a * d + b * e + c * f),
        abs(a * g + b * h + c * i),
        abs(d * g + e * h + f * i),
    )
    if error > UNIT_TOLERANCE:
        raise FactorError(what, numbers, allowed="must be a rotation: rows of length 1, at right angles")
    if a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) < 0.0:
        raise FactorError(what, numbers, allowed="must be a rotation, not a reflection")
    return numbers


def _check_plane_rotation(what: str, numbers: Numbers) -> tuple[float, float]:
    """Return cosine and sine of a rotation matrix (2, 2). Raises `FactorError` if it is not a rotation."""
    a, b, c, d = numbers
    if max(abs(a * a + c * c - 1.0), abs(a - d), abs(b + c)) > UNIT_TOLERANCE:
        raise FactorError(what, numbers, allowed="must be a rotation: cos -sin, sin cos")
    return a, c


def _from_quaternion(what: str, numbers: Numbers) -> Numbers:
    square = sum(part * part for part in numbers)
    if not abs(square - 1.0) <= UNIT_TOLERANCE:
        raise FactorError(what, numbers, allowed="must be a quaternion w x y z of length 1")
    w, x, y, z = numbers
    return to_matrix_python(w, x, y, z)


def _check_last_row(what: str, matrix: AnyArray) -> None:
    n = len(matrix) - 1
    if matrix[n].tolist() != [0.0] * n + [1.0]:
        raise FactorError(f"last row of {what}", matrix[n].tolist(), allowed="must be zeros and a one")


def read_plane_rotation(what: str, value: object) -> Numbers:
    """Return cosine and sine of a Rot2, an angle (rad) or a matrix (2, 2)."""
    if is_gtsam(value, "Rot2"):
        (cosine, _), (sine, _) = cast("Any", value).matrix().tolist()
        return validate_finite(what, (cosine, sine))
    given = validate_array(what, value, [(), (2, 2)], "must be a Rot2, an angle (rad) or a matrix (2, 2)")
    if given.ndim == 0:
        return math.cos(float(given)), math.sin(float(given))
    return _check_plane_rotation(what, tuple(given.ravel().tolist()))


def read_rotation(what: str, value: object) -> Numbers:
    """Return the nine numbers of a Rot3, a matrix (3, 3) or a unit quaternion w x y z."""
    if is_gtsam(value, "Rot3"):
        a, b, c = cast("Any", value).matrix().tolist()
        return validate_finite(what, (*a, *b, *c))
    given = validate_array(what, value, [(3, 3), (4,)], "must be a Rot3, a matrix (3, 3) or a quaternion w x y z")
    if given.ndim == 1:
        return _from_quaternion(what, tuple(given.tolist()))
    return _check_rotation(what, tuple(given.ravel().tolist()))


def read_plane_pose(what: str, value: object) -> Numbers:
    """Return cosine, sine, x and y of a Pose2, of x, y and angle (rad), or of a matrix (3, 3)."""
    if is_gtsam(value, "Pose2"):
        (cosine, _, x), (sine, _, y), _ = cast("Any", value).matrix().tolist()
        return validate_finite(what, (cosine, sine, x, y))
    given = validate_array(what, value, [(3,), (3, 3)], "must be a Pose2, x y angle or a matrix (3, 3)")
    if given.ndim == 1:
        x, y, angle = given.tolist()
        return math.cos(angle), math.sin(angle), x, y
    _check_last_row(what, given)
    return (*_check_plane_rotation(what, tuple(given[:2, :2].ravel().tolist())), *given[:2, 2].tolist())


def read_pose(what: str, value: object) -> Numbers:
    """Return rotation (9) and position (3) of a Pose3, a matrix (4, 4), x y z w x y z, or a navsense.Pose."""
    if is_gtsam(value, "Pose3"):
        a, b, c, _ = cast("Any", value).matrix().tolist()
        return validate_finite(what, (*a[:3], *b[:3], *c[:3], a[3], b[3], c[3]))
    if isinstance(value, Pose):
        value = np.array([*value.position, *value.rotation])
    given = validate_array(
        what, value, [(4, 4), (7,)], "must be a Pose3, a matrix (4, 4), x y z w x y z or a navsense.Pose"
    )
    if given.ndim == 1:
        return (*_from_quaternion(what, tuple(given[3:].tolist())), *given[:3].tolist())
    _check_last_row(what, given)
    return (*_check_rotation(what, tuple(given[:3, :3].ravel().tolist())), *given[:3, 3].tolist())
