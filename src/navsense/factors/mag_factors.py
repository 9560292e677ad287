"""GTSAM's MagFactor family: one magnetometer measurement constrains a rotation, a pose, or the field and the bias.

    MagFactor, MagFactor1   e = R_nb^-1 (scale direction) + bias - measured             unknown: R_nb
    MagFactor2              e = R_nb^-1 f + bias - measured                             unknown: field f, bias
    MagFactor3              e = R_nb^-1 (scale direction) + bias - measured             unknown: scale, direction, bias
    MagPoseFactorPose2, 3   e = R_nb^-1 (scale direction) + R_bs (bias - measured)      unknown: pose with rotation R_nb

f and direction are in the navigation frame n; bias and measured are in the body frame b, or for a pose factor in the
sensor frame s. f, scale, bias and measured have one unit. R_nb takes body coordinates to navigation coordinates and is
updated as R_nb Exp(xi), so that de/dxi is the cross-product matrix of R_nb^-1 (scale direction). A direction is updated
in GTSAM's tangent basis (`geometry`). The basis jumps where another axis becomes the one with the smallest component:
compare derivatives at one point only.

For a pose factor, `body_P_sensor` holds R_bs. Its position has no effect, because the field is the same all over the
body. The position of the pose has no effect either: its columns are zero. A Pose3 is rotation then translation, a Pose2
x, y, angle. In the plane, scale and direction are those of the horizontal component of the field. The noise model is in
the sensor frame and is rotated to the body frame. GTSAM reads the model in the body frame; `to_gtsam` gives it the
rotated model.

GTSAM's page defines e as measured - predicted. Its code and the numbers printed on the page have predicted - measured,
as here. GTSAM's Python package has no MagFactor2 and no MagFactor3: for them, `to_gtsam` returns a CustomFactor.

Source: GTSAM's `navigation/MagFactor.h`, `navigation/MagPoseFactor.h` and `geometry/Unit3.cpp`. The tests compare with
GTSAM 4.3.0.
"""
# ruff: noqa: N802, N803 - names of GTSAM

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from operator import add, mul, sub
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.typing import FloatArray
from navsense.factors.arguments import (
    Numbers,
    validate_direction,
    validate_number,
    validate_vector,
    warn_if_units_differ,
)
from navsense.factors.base import Factor
from navsense.factors.geometry import cross_matrix, rotate_inverse, tangent_basis_python
from navsense.factors.gtsam_support import format_named_vector
from navsense.factors.variables import (
    double,
    pose2,
    pose3,
    read_rotation,
    rot2,
    rot3,
    unit3,
    vector_variable,
)

_IDENTITY = np.eye(3)


class _KnownFieldFactor(Factor):
    """Factor on an attitude or a pose, with known field, bias and measurement of n numbers.

    e = predicted field + bias - measured        all in the body frame
    """

    def __init__(
        self,
        key: int,
        n: int,
        measured: object,
        scale: object,
        field_direction: object,
        bias: object,
        model: object,
        mounting: Numbers = (),
    ) -> None:
        """Store the measurement and the known values.

        mounting: numbers of `body_P_sensor`, empty if body and sensor have one frame.
        """
        self._measured = validate_vector("measured", measured, n)
        self._scale = validate_number("scale", scale)
        self._direction = validate_direction("direction", field_direction, n)
        self._bias = validate_vector("bias", bias, n)
        warn_if_units_differ(type(self).__name__, self._scale, self._measured, self._bias)
        self._field = tuple(self._scale * part for part in self._direction)
        self._mounting = mounting
        self._measured_b, self._bias_b, rows = self._measured, self._bias, None
        if mounting:
            rows = _mounting_rows(mounting)
            self._measured_b, self._bias_b = (
                tuple(sum(map(mul, row, v)) for row in rows) for v in (self._measured, self._bias)
            )
        super().__init__((key,), n, model, rows)

    @abstractmethod
    def _predict(self, value: Numbers) -> Numbers:
        """Return the field in the body frame at the numbers of the unknown."""

    def _residual(self, *values: Numbers) -> Sequence[float]:
        return tuple(map(sub, map(add, self._predict(*values), self._bias_b), self._measured_b))

    def _data(self) -> Numbers:
        return (*self._measured, self._scale, *self._direction, *self._bias, *self._mounting)

    def _make_native(self, library: Any, model: Any) -> Any:
        make = vars(library).get(type(self).__name__)
        if make is None:
            return None
        field_direction, *mounting = self._make_native_arguments(library)
        return make(self._keys[0], self._measured, self._scale, field_direction, self._bias, model, *mounting)

    def _make_native_arguments(self, library: Any) -> Sequence[Any]:
        """Return the direction and, if there is one, the mounting, as GTSAM's factor takes them."""
        return (library.Unit3(list(self._direction)),)


class _RotationFactor(_KnownFieldFactor):
    """Factor on a rotation of the body."""

    def __init__(
        self, key: int, measured: object, scale: object, direction: object, bias: object, model: object = None
    ) -> None:
        """Store the measurement and the known values.

        measured: reading (3,), body frame.
        scale: strength of the field in the unit of the reading.
        direction: of the field in the navigation frame, gtsam.Unit3 or a vector (3,).
        bias: (3,), body frame.
        model: noise, see `make_noise`.

        Raises `FactorError` for a wrong shape or an invalid number.
        """
        super().__init__(key, 3, measured, scale, direction, bias, model)

    def evaluateError(self, nRb: Any, H: FloatArray | None = None) -> FloatArray:
        """Return e (3,) at a rotation. If H is given, fill it: (3, 1) for a Rot2, (3, 3) for a Rot3.

        nRb: a Rot2, an angle (rad) or a matrix (2, 2); or a Rot3, a matrix (3, 3) or a quaternion w x y z.
        """
        return self._evaluate((nRb,), (H,))


class _PoseFactor(_KnownFieldFactor):
    """Factor on a pose of the body in space (n = 3) or in the plane (n = 2)."""

    def __init__(
        self,
        pose_key: int,
        measured: object,
        scale: object,
        direction: object,
        bias: object,
        noiseModel: object = None,
        body_P_sensor: object = None,
    ) -> None:
        """Store the measurement and the known values.

        measured: reading (n,), sensor frame.
        scale: strength of the field, in the plane of its horizontal component, in the unit of the reading.
        direction: of this field in the navigation frame, a vector (n,) of any length or, in space, a gtsam.Unit3.
        bias: (n,), sensor frame.
        noiseModel: in the sensor frame, see `make_noise`.
        body_P_sensor: pose of the sensor in the body, None if both frames are the same. In space a Pose3, a matrix
            (4, 4), x y z w x y z or a navsense.Pose; in the plane a Pose2, x y angle or a matrix (3, 3).

        Raises `FactorError` for a wrong shape or an invalid number.
        """
        (variable,) = self.variables
        mounting = () if body_P_sensor is None else variable.read("body_P_sensor", body_P_sensor)
        n = 2 if variable.kind == "Pose2" else 3
        super().__init__(pose_key, n, measured, scale, direction, bias, noiseModel, mounting)

    def evaluateError(self, nPb: object, H: FloatArray | None = None) -> FloatArray:
        """Return e (n,) at a pose in any form of `body_P_sensor`. If H is given, fill it: (3, 6) or (2, 3)."""
        return self._evaluate((nPb,), (H,))

    @abstractmethod
    def _make_native_mounting(self, library: Any) -> Any:
        """Return the pose of the sensor in the body as an object of GTSAM."""

    def _make_native_arguments(self, library: Any) -> Sequence[Any]:
        return (self._direction, self._make_native_mounting(library)) if self._mounting else (self._direction,)

    def _format_data(self) -> str:
        return (
            format_named_vector("local field (nM): ", self._field)
            + format_named_vector("measured field (bM): ", self._measured_b)
            + format_named_vector("magnetometer bias: ", self._bias_b)
        )


class FieldBiasFactor(Factor):
    """Factor on the field in navigation coordinates, nM, and the bias."""

    variables = (vector_variable("nM", 3), vector_variable("bias", 3))

    def evaluateError(
        self, nM: object, bias: object, H1: FloatArray | None = None, H2: FloatArray | None = None
    ) -> FloatArray:
        """Return e (dim,) at a field (3,) and a bias (3,). Fill H1 and H2 (dim, 3) if given."""
        return self._evaluate((nM, bias), (H1, H2))


class ScaleDirectionBiasFactor(Factor):
    """Factor on the scale (a number) and direction (Unit3) of the field, and the bias."""

    variables = (double("scale"), unit3("direction"), vector_variable("bias", 3))

    def evaluateError(
        self,
        scale: object,
        direction: object,
        bias: object,
        H1: FloatArray | None = None,
        H2: FloatArray | None = None,
        H3: FloatArray | None = None,
    ) -> FloatArray:
        """Return e (dim,) at a number, a Unit3 or vector, and a bias.

        Fill H1 (dim, 1), H2 (dim, 2) in GTSAM's tangent basis, and H3 (dim, 3) if given.
        """
        return self._evaluate((scale, direction, bias), (H1, H2, H3))


@final
class MagFactor(_RotationFactor):
    """Heading of a level body: a rotation (Rot2) about the z axis of the navigation frame.

    A positive angle turns from x to y: to the right if z points down (NED), to the left if z points up (ENU). The third
    number of the residual does not depend on the heading.

    >>> factor = ns.factors.MagFactor(0, (30.0, -5.0, 35.0), scale=50.0, direction=(0.6, 0.0, 0.8), bias=(0, 0, 0))
    >>> factor.evaluateError(0.1).round(2)  # heading 0.1 rad
    array([-0.15,  2.  ,  5.  ])
    """

    variables = (rot2("nRb"),)

    def _predict(self, value: Numbers) -> Numbers:
        x, y, z = self._field
        return (*_rotate_plane_inverse(value, (x, y)), z)

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        px, py, _ = self._predict(*values)
        return (((py,), (-px,), (0.0,)),)


@final
class MagFactor1(_RotationFactor):
    """Attitude of a body (Rot3).

    >>> factor = ns.factors.MagFactor1(0, (30.0, -5.0, 35.0), scale=50.0, direction=(0.6, 0.0, 0.8), bias=(0, 0, 0))
    >>> factor.evaluateError((1.0, 0.0, 0.0, 0.0)).round(6) + 0.0  # quaternion w x y z
    array([0., 5., 5.])
    """

    variables = (rot3("nRb"),)

    def _predict(self, value: Numbers) -> Numbers:
        return rotate_inverse(value, self._field)

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        return (cross_matrix(self._predict(*values)),)


@final
class MagFactor2(FieldBiasFactor):
    """The field in navigation coordinates, nM, and the bias. The residual is linear in both.

    >>> factor = ns.factors.MagFactor2(0, 1, (30.0, -5.0, 35.0), (1.0, 0.0, 0.0, 0.0))
    >>> factor.evaluateError((30.0, -5.0, 35.0), (1.0, 2.0, 3.0))  # field, bias
    array([1., 2., 3.])
    """

    def __init__(self, key1: int, key2: int, measured: object, nRb: object, model: object = None) -> None:
        """Store the measurement and the attitude.

        key1, key2: of the field nM and of the bias.
        measured: reading (3,), body frame.
        nRb: attitude of the body, a Rot3, a matrix (3, 3) or a quaternion w x y z.
        model: noise, see `make_noise`.

        Raises `FactorError` for a wrong shape or an invalid number.
        """
        self._measured = validate_vector("measured", measured, 3)
        self._rotation = read_rotation("nRb", nRb)
        super().__init__((key1, key2), 3, model)

    def _residual(self, *values: Numbers) -> Sequence[float]:
        field, (bx, by, bz) = values
        px, py, pz = rotate_inverse(self._rotation, field)
        mx, my, mz = self._measured
        return px + bx - mx, py + by - my, pz + bz - mz

    def _jacobians(self, *values: Numbers) -> Sequence[ArrayLike]:
        transposed = self._rotation[0::3], self._rotation[1::3], self._rotation[2::3]
        return transposed, _IDENTITY

    def _data(self) -> Numbers:
        return (*self._measured, *self._rotation)


@final
class MagFactor3(ScaleDirectionBiasFactor):
    """The scale (a number) and direction (Unit3) of the field, and the bias.

    >>> factor = ns.factors.MagFactor3(0, 1, 2, (30.0, -5.0, 40.0), (1.0, 0.0, 0.0, 0.0))
    >>> factor.evaluateError(50.0, (0.6, 0.0, 0.8), (0.0, 0.0, 0.0)).round(6) + 0.0  # scale, direction, bias
    array([0., 5., 0.])
    """

    def __init__(self, key1: int, key2: int, key3: int, measured: object, nRb: object, model: object = None) -> None:
        """Store the measurement and the attitude.

        key1, key2, key3: of scale, direction and bias. The other arguments are those of `MagFactor2`.
        """
        self._measured = validate_vector("measured", measured, 3)
        self._rotation = read_rotation("nRb", nRb)
        super().__init__((key1, key2, key3), 3, model)

    def _residual(self, *values: Numbers) -> Sequence[float]:
        (scale,), direction, (bx, by, bz) = values
        px, py, pz = rotate_inverse(self._rotation, direction)
        mx, my, mz = self._measured
        return scale * px + bx - mx, scale * py + by - my, scale * pz + bz - mz

    def _jacobians(self, *values: Numbers) -> Sequence[ArrayLike]:
        (scale,), (x, y, z), _ = values
        basis = tangent_basis_python(x, y, z)
        first, second = rotate_inverse(self._rotation, basis[:3]), rotate_inverse(self._rotation, basis[3:])
        by_scale = tuple((part,) for part in rotate_inverse(self._rotation, (x, y, z)))
        return by_scale, tuple((scale * a, scale * b) for a, b in zip(first, second, strict=True)), _IDENTITY

    def _data(self) -> Numbers:
        return (*self._measured, *self._rotation)


@final
class MagPoseFactorPose2(_PoseFactor):
    """Pose in the plane (Pose2).

    >>> factor = ns.factors.MagPoseFactorPose2(0, (30.0, -5.0), 50.0, direction=(0.6, 0.8), bias=(0, 0))
    >>> factor.evaluateError((10.0, 20.0, 0.0)).round(6) + 0.0  # x, y, heading
    array([ 0., 45.])
    """

    variables = (pose2("nPb"),)

    def _predict(self, value: Numbers) -> Numbers:
        return _rotate_plane_inverse(value, self._field)

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        px, py = self._predict(*values)
        return (((0.0, 0.0, py), (0.0, 0.0, -px)),)

    def _make_native_mounting(self, library: Any) -> Any:
        c, s, x, y = self._mounting
        return library.Pose2(library.Rot2.fromCosSin(c, s), [x, y])


@final
class MagPoseFactorPose3(_PoseFactor):
    """Pose in space (Pose3).

    >>> mounting = (0.1, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)  # x y z w x y z: half a turn about the body's x axis
    >>> factor = ns.factors.MagPoseFactorPose3(
    ...     0, (30.0, 5.0, -35.0), 50.0, direction=(0.6, 0.0, 0.8), bias=(0, 0, 0), body_P_sensor=mounting
    ... )
    >>> factor.evaluateError((0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)).round(6) + 0.0
    array([0., 5., 5.])
    """

    variables = (pose3("nPb"),)

    def _predict(self, value: Numbers) -> Numbers:
        return rotate_inverse(value, self._field)

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        return (tuple((*row, 0.0, 0.0, 0.0) for row in cross_matrix(self._predict(*values))),)

    def _make_native_mounting(self, library: Any) -> Any:
        return library.Pose3(library.Rot3(_mounting_rows(self._mounting)), list(self._mounting[9:]))


def _rotate_plane_inverse(rotation: Numbers, v: Numbers) -> Numbers:
    """Return R^-1 v in the plane. The first two numbers of `rotation` are cosine and sine."""
    (c, s), (x, y) = rotation[:2], v
    return c * x + s * y, -s * x + c * y


def _mounting_rows(mounting: Numbers) -> list[Numbers]:
    """Return the rows of R_bs from the numbers of a pose in space or in the plane."""
    if len(mounting) == 4:
        c, s = mounting[:2]
        return [(c, -s), (s, c)]
    return [mounting[0:3], mounting[3:6], mounting[6:9]]
