"""Factors on a pose, all else known: MagPoseFactor in the plane and in space, the sensor anywhere on the body.

    e = R_nb^-1 (scale direction) + R_bs bias - R_bs measured      body frame b

direction: in the navigation frame n; bias and measured: in the sensor's own frame s, which `body_P_sensor` puts on the
body (its rotation R_bs; a field is the same all over the body, so its position does not count); scale, bias and
measured in one unit. In the plane scale and direction are those of the field's horizontal part. R_nb moves by
R_nb Exp(xi). The position has no part in e, its columns are zero: a Pose3 is rotation then translation, a Pose2 x, y,
angle. GTSAM's page writes e as measured less predicted, in the sensor's frame; its code has predicted less measured,
in the body frame, as here. The noise model is the sensor's, in the sensor's frame, and is turned with it. GTSAM
reads it in the body frame, where it is another unless it is isotropic; `to_gtsam` hands it over turned.
Source: GTSAM's `navigation/MagPoseFactor.h`, held against GTSAM 4.3.0 in the tests.
"""
# ruff: noqa: N802, N803 - GTSAM's names

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from navsense.factors.arguments import Numbers, direction, number, vector, warn_of_units
from navsense.factors.base import Factor
from navsense.factors.printed import vector_text
from navsense.factors.rotations import cross_matrix, unrotated
from navsense.factors.variables import plane_pose, pose, pose2, pose3
from navsense.typing import FloatArray


class _Mounted:
    """What a factor on a pose is made of, as it was given and in the body frame."""

    def __init__(
        self, name: str, n: int, measured: object, scale: object, towards: object, bias: object, turn: Numbers
    ) -> None:
        self.measured = vector("measured", measured, n)
        self.scale = number("scale", scale)
        self.direction = direction("direction", towards, n)
        self.bias = vector("bias", bias, n)
        warn_of_units(name, self.scale, self.measured, self.bias)
        self.field = tuple(self.scale * part for part in self.direction)
        self.rows = [turn[i * n : (i + 1) * n] for i in range(n)] if turn else None
        self.measured_b = self._turned(self.measured)
        self.bias_b = self._turned(self.bias)

    def _turned(self, v: Numbers) -> Numbers:
        if self.rows is None:
            return v
        return tuple(sum(a * b for a, b in zip(row, v, strict=True)) for row in self.rows)

    def native(self, make: Any, keys: Sequence[int], model: Any, mounting: Sequence[Any]) -> Any:
        """Return GTSAM's own factor of these, as they were given."""
        return make(keys[0], self.measured, self.scale, self.direction, self.bias, model, *mounting)

    def data(self) -> Numbers:
        """Return all numbers but those of the mounting."""
        return (*self.measured, self.scale, *self.direction, *self.bias)

    def lines(self) -> str:
        """Return what GTSAM prints of it."""
        return (
            vector_text("local field (nM): ", self.field)
            + vector_text("measured field (bM): ", self.measured_b)
            + vector_text("magnetometer bias: ", self.bias_b)
        )


@final
class MagPoseFactorPose2(Factor):
    """A pose in the plane (Pose2)."""

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
        """Keep the measurement and what is known.

        measured: reading (2,), sensor frame. scale: strength of the field's horizontal part, in the reading's unit.
        direction: of that part in the navigation frame, a vector (2,) of any length. bias: (2,), sensor frame.
        noiseModel: in the sensor's frame, see `noise_of`. body_P_sensor: pose of the sensor in the body, a Pose2,
        x y angle or a matrix (3, 3); None where they are one.
        Raises FactorError for shapes and numbers that are not possible.
        """
        self._mounting = () if body_P_sensor is None else plane_pose("body_P_sensor", body_P_sensor)
        turn = () if body_P_sensor is None else _plane_rows(self._mounting)
        self._known = _Mounted("MagPoseFactorPose2", 2, measured, scale, direction, bias, turn)
        super().__init__((pose_key,), 2, noiseModel, self._known.rows)

    def evaluateError(self, nPb: object, H: FloatArray | None = None) -> FloatArray:
        """Return e (2,) at a Pose2, x y angle or a matrix (3, 3); fill H (2, 3) where it is given."""
        return self._evaluate((nPb,), (H,))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        px, py = _plane_unrotated(values[0], self._known.field)
        bx, by = self._known.bias_b
        mx, my = self._known.measured_b
        return px + bx - mx, py + by - my

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        px, py = _plane_unrotated(values[0], self._known.field)
        return (((0.0, 0.0, py), (0.0, 0.0, -px)),)

    def _data(self) -> Numbers:
        return (*self._known.data(), *self._mounting)

    def _lines(self) -> str:
        return self._known.lines()

    def _native(self, library: Any, model: Any) -> Any:
        make = vars(library).get("MagPoseFactorPose2")
        if make is None:
            return None
        mounting: list[Any] = []
        if self._mounting:
            c, s, x, y = self._mounting
            mounting = [library.Pose2(library.Rot2.fromCosSin(c, s), [x, y])]
        return self._known.native(make, self._keys, model, mounting)


@final
class MagPoseFactorPose3(Factor):
    """A pose (Pose3)."""

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
        """Keep the measurement and what is known.

        measured: reading (3,), sensor frame. scale: strength of the field in the reading's unit. direction: of the
        field in the navigation frame, a vector (3,) of any length or a gtsam.Unit3. bias: (3,), sensor frame.
        noiseModel: in the sensor's frame, see `noise_of`. body_P_sensor: pose of the sensor in the body, a Pose3, a
        matrix (4, 4), x y z w x y z or a navsense.Pose; None where they are one.
        Raises FactorError for shapes and numbers that are not possible.
        """
        self._mounting = () if body_P_sensor is None else pose("body_P_sensor", body_P_sensor)
        self._known = _Mounted("MagPoseFactorPose3", 3, measured, scale, direction, bias, self._mounting[:9])
        super().__init__((pose_key,), 3, noiseModel, self._known.rows)

    def evaluateError(self, nPb: object, H: FloatArray | None = None) -> FloatArray:
        """Return e (3,) at a Pose3 or what `body_P_sensor` may be; fill H (3, 6) where it is given."""
        return self._evaluate((nPb,), (H,))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        px, py, pz = unrotated(values[0], self._known.field)
        bx, by, bz = self._known.bias_b
        mx, my, mz = self._known.measured_b
        return px + bx - mx, py + by - my, pz + bz - mz

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        rows = cross_matrix(unrotated(values[0], self._known.field))
        return (tuple((*row, 0.0, 0.0, 0.0) for row in rows),)

    def _data(self) -> Numbers:
        return (*self._known.data(), *self._mounting)

    def _lines(self) -> str:
        return self._known.lines()

    def _native(self, library: Any, model: Any) -> Any:
        make = vars(library).get("MagPoseFactorPose3")
        if make is None:
            return None
        mounting: list[Any] = []
        if self._mounting:
            turn = library.Rot3([self._mounting[0:3], self._mounting[3:6], self._mounting[6:9]])
            mounting = [library.Pose3(turn, list(self._mounting[9:]))]
        return self._known.native(make, self._keys, model, mounting)


def _plane_rows(mounting: Numbers) -> Numbers:
    c, s = mounting[:2]
    return c, -s, s, c


def _plane_unrotated(pose: Numbers, v: Numbers) -> Numbers:
    """Return R^-1 v of a pose's cosine and sine."""
    (c, s), (x, y) = pose[:2], v
    return c * x + s * y, -s * x + c * y
