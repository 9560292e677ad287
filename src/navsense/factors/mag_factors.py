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

from collections.abc import Sequence
from operator import add, sub
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.typing import FloatArray
from navsense.factors.arguments import Numbers, direction, number, vector, warn_if_units_differ
from navsense.factors.base import Factor
from navsense.factors.geometry import cross_matrix, rotate_inverse, tangent
from navsense.factors.gtsam_support import vector_text
from navsense.factors.variables import (
    double,
    plane_pose,
    pose,
    pose2,
    pose3,
    rot2,
    rot3,
    rotation,
    unit3,
    vector_unknown,
)

_IDENTITY = np.eye(3)


class _KnownField:
    """Known field, bias and measurement of n numbers. `rotation_bs` has n x n numbers, none if the frames are equal."""

    def __init__(
        self,
        name: str,
        n: int,
        measured: object,
        scale: object,
        field_direction: object,
        bias: object,
        rotation_bs: Numbers = (),
    ) -> None:
        self.measured = vector("measured", measured, n)
        self.scale = number("scale", scale)
        self.direction = direction("direction", field_direction, n)
        self.bias = vector("bias", bias, n)
        warn_if_units_differ(name, self.scale, self.measured, self.bias)
        self.field = tuple(self.scale * part for part in self.direction)
        self.rotation_rows = [rotation_bs[i * n : (i + 1) * n] for i in range(n)] if rotation_bs else None
        self.measured_b = self._rotate(self.measured)
        self.bias_b = self._rotate(self.bias)

    def _rotate(self, v: Numbers) -> Numbers:
        if self.rotation_rows is None:
            return v
        return tuple(sum(a * b for a, b in zip(row, v, strict=True)) for row in self.rotation_rows)

    def residual(self, predicted_b: Numbers) -> tuple[float, ...]:
        """Return predicted field + bias - measured, body frame."""
        return tuple(map(sub, map(add, predicted_b, self.bias_b), self.measured_b))

    def numbers(self) -> Numbers:
        """Return all numbers but those of the rotation."""
        return (*self.measured, self.scale, *self.direction, *self.bias)


@final
class MagFactor(Factor):
    """Heading of a level body: a rotation (Rot2) about the z axis of the navigation frame.

    A positive angle turns from x to y: to the right if z points down (NED), to the left if z points up (ENU). The third
    number of the residual does not depend on the heading.

        factor = ns.factors.MagFactor(0, (30.0, -5.0, 35.0), scale=50.0, direction=(0.6, 0.0, 0.8), bias=(0, 0, 0))
        error = factor.evaluateError(0.1)    # heading 0.1 rad
    """

    variables = (rot2("nRb"),)

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
        self._known = _KnownField("MagFactor", 3, measured, scale, direction, bias)
        super().__init__((key,), 3, model)

    def evaluateError(self, nRb: Any, H: FloatArray | None = None) -> FloatArray:
        """Return e (3,) at a Rot2, an angle (rad) or a matrix (2, 2). If H (3, 1) is given, fill it."""
        return self._evaluate((nRb,), (H,))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        x, y, z = self._known.field
        return self._known.residual((*_rotate_plane_inverse(values[0], (x, y)), z))

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        px, py = _rotate_plane_inverse(values[0], self._known.field[:2])
        return (((py,), (-px,), (0.0,)),)

    def _data(self) -> Numbers:
        return self._known.numbers()

    def _native(self, library: Any, model: Any) -> Any:
        return _native_mag_factor("MagFactor", library, self._keys, self._known, model)


@final
class MagFactor1(Factor):
    """Attitude of a body (Rot3).

    factor = ns.factors.MagFactor1(0, (30.0, -5.0, 35.0), scale=50.0, direction=(0.6, 0.0, 0.8), bias=(0, 0, 0))
    error = factor.evaluateError((1.0, 0.0, 0.0, 0.0))    # quaternion w x y z
    """

    variables = (rot3("nRb"),)

    def __init__(
        self, key: int, measured: object, scale: object, direction: object, bias: object, model: object = None
    ) -> None:
        """Store the measurement and the known values. The arguments are those of `MagFactor`."""
        self._known = _KnownField("MagFactor1", 3, measured, scale, direction, bias)
        super().__init__((key,), 3, model)

    def evaluateError(self, nRb: Any, H: FloatArray | None = None) -> FloatArray:
        """Return e (3,) at a Rot3, a matrix (3, 3) or a quaternion w x y z. If H (3, 3) is given, fill it."""
        return self._evaluate((nRb,), (H,))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        return self._known.residual(rotate_inverse(values[0], self._known.field))

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        return (cross_matrix(rotate_inverse(values[0], self._known.field)),)

    def _data(self) -> Numbers:
        return self._known.numbers()

    def _native(self, library: Any, model: Any) -> Any:
        return _native_mag_factor("MagFactor1", library, self._keys, self._known, model)


@final
class MagFactor2(Factor):
    """The field in navigation coordinates, nM, and the bias. The residual is linear in both."""

    variables = (vector_unknown("nM", 3), vector_unknown("bias", 3))

    def __init__(self, key1: int, key2: int, measured: object, nRb: object, model: object = None) -> None:
        """Store the measurement and the attitude.

        key1, key2: of the field nM and of the bias.
        measured: reading (3,), body frame.
        nRb: attitude of the body, a Rot3, a matrix (3, 3) or a quaternion w x y z.
        model: noise, see `make_noise`.

        Raises `FactorError` for a wrong shape or an invalid number.
        """
        self._measured = vector("measured", measured, 3)
        self._rotation = rotation("nRb", nRb)
        super().__init__((key1, key2), 3, model)

    def evaluateError(
        self, nM: object, bias: object, H1: FloatArray | None = None, H2: FloatArray | None = None
    ) -> FloatArray:
        """Return e (3,) at a field (3,) and a bias (3,). Fill H1 and H2 (3, 3) if given."""
        return self._evaluate((nM, bias), (H1, H2))

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
class MagFactor3(Factor):
    """The scale (a number) and direction (Unit3) of the field, and the bias."""

    variables = (double("scale"), unit3("direction"), vector_unknown("bias", 3))

    def __init__(self, key1: int, key2: int, key3: int, measured: object, nRb: object, model: object = None) -> None:
        """Store the measurement and the attitude.

        key1, key2, key3: of scale, direction and bias. The other arguments are those of `MagFactor2`.
        """
        self._measured = vector("measured", measured, 3)
        self._rotation = rotation("nRb", nRb)
        super().__init__((key1, key2, key3), 3, model)

    def evaluateError(
        self,
        scale: object,
        direction: object,
        bias: object,
        H1: FloatArray | None = None,
        H2: FloatArray | None = None,
        H3: FloatArray | None = None,
    ) -> FloatArray:
        """Return e (3,) at a number, a Unit3 or vector, and a bias. Fill H1 (3, 1), H2 (3, 2), H3 (3, 3) if given."""
        return self._evaluate((scale, direction, bias), (H1, H2, H3))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        (scale,), direction, (bx, by, bz) = values
        px, py, pz = rotate_inverse(self._rotation, direction)
        mx, my, mz = self._measured
        return scale * px + bx - mx, scale * py + by - my, scale * pz + bz - mz

    def _jacobians(self, *values: Numbers) -> Sequence[ArrayLike]:
        (scale,), (x, y, z), _ = values
        basis = tangent(x, y, z)
        first, second = rotate_inverse(self._rotation, basis[:3]), rotate_inverse(self._rotation, basis[3:])
        by_scale = tuple((part,) for part in rotate_inverse(self._rotation, (x, y, z)))
        return by_scale, tuple((scale * a, scale * b) for a, b in zip(first, second, strict=True)), _IDENTITY

    def _data(self) -> Numbers:
        return (*self._measured, *self._rotation)


@final
class MagPoseFactorPose2(Factor):
    """Pose in the plane (Pose2)."""

    variables = (pose2("nPb"),)

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

        measured: reading (2,), sensor frame.
        scale: strength of the horizontal component of the field, in the unit of the reading.
        direction: of that component in the navigation frame, a vector (2,) of any length.
        bias: (2,), sensor frame.
        noiseModel: in the sensor frame, see `make_noise`.
        body_P_sensor: pose of the sensor in the body, a Pose2, x y angle or a matrix (3, 3); None if both frames are
            the same.

        Raises `FactorError` for a wrong shape or an invalid number.
        """
        self._mounting = () if body_P_sensor is None else plane_pose("body_P_sensor", body_P_sensor)
        c, s = self._mounting[:2] or (1.0, 0.0)
        rotation_bs = (c, -s, s, c) if self._mounting else ()
        self._known = _KnownField("MagPoseFactorPose2", 2, measured, scale, direction, bias, rotation_bs)
        super().__init__((pose_key,), 2, noiseModel, self._known.rotation_rows)

    def evaluateError(self, nPb: object, H: FloatArray | None = None) -> FloatArray:
        """Return e (2,) at a Pose2, x y angle or a matrix (3, 3). If H (2, 3) is given, fill it."""
        return self._evaluate((nPb,), (H,))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        return self._known.residual(_rotate_plane_inverse(values[0], self._known.field))

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        px, py = _rotate_plane_inverse(values[0], self._known.field)
        return (((0.0, 0.0, py), (0.0, 0.0, -px)),)

    def _data(self) -> Numbers:
        return (*self._known.numbers(), *self._mounting)

    def _lines(self) -> str:
        return _known_field_text(self._known)

    def _native(self, library: Any, model: Any) -> Any:
        mounting: list[Any] = []
        if self._mounting:
            c, s, x, y = self._mounting
            mounting = [library.Pose2(library.Rot2.fromCosSin(c, s), [x, y])]
        return _native_pose_factor("MagPoseFactorPose2", library, self._keys, self._known, model, mounting)


@final
class MagPoseFactorPose3(Factor):
    """Pose in space (Pose3).

    mounting = (0.1, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)    # x y z w x y z: half a turn about the body's x axis
    factor = ns.factors.MagPoseFactorPose3(
        0, (30.0, 5.0, -35.0), 50.0, direction=(0.6, 0.0, 0.8), bias=(0, 0, 0), body_P_sensor=mounting
    )
    error = factor.evaluateError((0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0))
    """

    variables = (pose3("nPb"),)

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

        measured: reading (3,), sensor frame.
        scale: strength of the field in the unit of the reading.
        direction: of the field in the navigation frame, a vector (3,) of any length or a gtsam.Unit3.
        bias: (3,), sensor frame.
        noiseModel: in the sensor frame, see `make_noise`.
        body_P_sensor: pose of the sensor in the body, a Pose3, a matrix (4, 4), x y z w x y z or a navsense.Pose; None
            if both frames are the same.

        Raises `FactorError` for a wrong shape or an invalid number.
        """
        self._mounting = () if body_P_sensor is None else pose("body_P_sensor", body_P_sensor)
        self._known = _KnownField("MagPoseFactorPose3", 3, measured, scale, direction, bias, self._mounting[:9])
        super().__init__((pose_key,), 3, noiseModel, self._known.rotation_rows)

    def evaluateError(self, nPb: object, H: FloatArray | None = None) -> FloatArray:
        """Return e (3,) at a pose in any form that `body_P_sensor` may have. If H (3, 6) is given, fill it."""
        return self._evaluate((nPb,), (H,))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        return self._known.residual(rotate_inverse(values[0], self._known.field))

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        rows = cross_matrix(rotate_inverse(values[0], self._known.field))
        return (tuple((*row, 0.0, 0.0, 0.0) for row in rows),)

    def _data(self) -> Numbers:
        return (*self._known.numbers(), *self._mounting)

    def _lines(self) -> str:
        return _known_field_text(self._known)

    def _native(self, library: Any, model: Any) -> Any:
        mounting: list[Any] = []
        if self._mounting:
            turn = library.Rot3([self._mounting[0:3], self._mounting[3:6], self._mounting[6:9]])
            mounting = [library.Pose3(turn, list(self._mounting[9:]))]
        return _native_pose_factor("MagPoseFactorPose3", library, self._keys, self._known, model, mounting)


def _rotate_plane_inverse(rotation: Numbers, v: Numbers) -> Numbers:
    """Return R^-1 v in the plane. The first two numbers of `rotation` are cosine and sine."""
    (c, s), (x, y) = rotation[:2], v
    return c * x + s * y, -s * x + c * y


def _native_mag_factor(name: str, library: Any, keys: Sequence[int], known: _KnownField, model: Any) -> Any:
    """Return GTSAM's factor on a rotation, None if this GTSAM has none."""
    make = vars(library).get(name)
    return make and make(keys[0], known.measured, known.scale, library.Unit3(list(known.direction)), known.bias, model)


def _native_pose_factor(
    name: str, library: Any, keys: Sequence[int], known: _KnownField, model: Any, mounting: Sequence[Any]
) -> Any:
    """Return GTSAM's factor on a pose, None if this GTSAM has none."""
    make = vars(library).get(name)
    return make and make(keys[0], known.measured, known.scale, known.direction, known.bias, model, *mounting)


def _known_field_text(known: _KnownField) -> str:
    """Return what GTSAM prints of a factor on a pose."""
    return (
        vector_text("local field (nM): ", known.field)
        + vector_text("measured field (bM): ", known.measured_b)
        + vector_text("magnetometer bias: ", known.bias_b)
    )
