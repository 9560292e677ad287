"""Factors on a rotation, all else known: MagFactor of a heading, MagFactor1 of an attitude.

    e = R_nb^-1 (scale direction) + bias - measured

direction: a unit vector of the navigation frame n; bias and measured: body frame b; scale, bias and measured in one
unit. R_nb takes body to navigation coordinates and moves by R_nb Exp(xi), so that de/dxi is the cross matrix of
R_nb^-1 (scale direction), the bias not in it. The formula on GTSAM's page has the sign of measured less predicted; its
code, and the numbers that the page prints, have predicted less measured, as here.
Source: GTSAM's `navigation/MagFactor.h`, held against GTSAM 4.3.0 in the tests.
"""
# ruff: noqa: N802, N803 - GTSAM's names

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from navsense.factors.arguments import Numbers, direction, number, vector, warn_of_units
from navsense.factors.base import Factor
from navsense.factors.variables import rot2, rot3
from navsense.typing import FloatArray


class _Known:
    """Field, bias and measurement that a factor is made of."""

    def __init__(self, name: str, measured: object, scale: object, towards: object, bias: object) -> None:
        self.measured = vector("measured", measured, 3)
        self.scale = number("scale", scale)
        self.direction = direction("direction", towards)
        self.bias = vector("bias", bias, 3)
        x, y, z = self.direction
        self.field = (self.scale * x, self.scale * y, self.scale * z)
        warn_of_units(name, self.scale, self.measured, self.bias)

    def native(self, make: Any, library: Any, keys: Sequence[int], model: Any) -> Any:
        """Return GTSAM's own factor of these."""
        return make(keys[0], self.measured, self.scale, library.Unit3(list(self.direction)), self.bias, model)

    def data(self) -> Numbers:
        """Return all numbers."""
        return (*self.measured, self.scale, *self.direction, *self.bias)


@final
class MagFactor(Factor):
    """The heading of a level body: a rotation (Rot2) about the navigation frame's z axis.

    Positive angles turn from x to y: to the right where z is down (NED), to the left where it is up (ENU). The third
    number of the residual does not depend on it.
    """

    variables = (rot2("nRb"),)

    def __init__(
        self, key: int, measured: object, scale: object, direction: object, bias: object, model: object = None
    ) -> None:
        """Keep the measurement and what is known.

        measured: reading (3,), body frame. scale: strength of the field in the reading's unit. direction: of the field
        in the navigation frame, gtsam.Unit3 or a vector (3,). bias: (3,), body frame. model: noise, see `noise_of`.
        Raises FactorError for shapes and numbers that are not possible.
        """
        self._known = _Known("MagFactor", measured, scale, direction, bias)
        super().__init__((key,), 3, model)

    def evaluateError(self, nRb: Any, H: FloatArray | None = None) -> FloatArray:
        """Return e (3,) at a Rot2, an angle (rad) or a matrix (2, 2); fill H (3, 1) where it is given."""
        return self._evaluate((nRb,), (H,))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        ((c, s),) = values
        x, y, z = self._known.field
        bx, by, bz = self._known.bias
        mx, my, mz = self._known.measured
        return c * x + s * y + bx - mx, -s * x + c * y + by - my, z + bz - mz

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        ((c, s),) = values
        x, y, _ = self._known.field
        return ((((-s * x + c * y,), (-(c * x + s * y),), (0.0,))),)

    def _data(self) -> Numbers:
        return self._known.data()

    def _native(self, library: Any, model: Any) -> Any:
        make = vars(library).get("MagFactor")
        return make and self._known.native(make, library, self._keys, model)


@final
class MagFactor1(Factor):
    """The attitude of a body (Rot3)."""

    variables = (rot3("nRb"),)

    def __init__(
        self, key: int, measured: object, scale: object, direction: object, bias: object, model: object = None
    ) -> None:
        """Keep the measurement and what is known; the arguments are those of `MagFactor`."""
        self._known = _Known("MagFactor1", measured, scale, direction, bias)
        super().__init__((key,), 3, model)

    def evaluateError(self, nRb: Any, H: FloatArray | None = None) -> FloatArray:
        """Return e (3,) at a Rot3, a matrix (3, 3) or a quaternion w x y z; fill H (3, 3) where it is given."""
        return self._evaluate((nRb,), (H,))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        px, py, pz = unrotated(values[0], self._known.field)
        bx, by, bz = self._known.bias
        mx, my, mz = self._known.measured
        return px + bx - mx, py + by - my, pz + bz - mz

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Sequence[float]]]:
        return (cross_matrix(unrotated(values[0], self._known.field)),)

    def _data(self) -> Numbers:
        return self._known.data()

    def _native(self, library: Any, model: Any) -> Any:
        make = vars(library).get("MagFactor1")
        return make and self._known.native(make, library, self._keys, model)


def unrotated(rotation: Numbers, v: Numbers) -> Numbers:
    """Return R^-1 v of a rotation, nine numbers row by row (or more that follow them)."""
    x, y, z = v
    return (
        rotation[0] * x + rotation[3] * y + rotation[6] * z,
        rotation[1] * x + rotation[4] * y + rotation[7] * z,
        rotation[2] * x + rotation[5] * y + rotation[8] * z,
    )


def cross_matrix(v: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the matrix M of M w = v x w."""
    x, y, z = v
    return (0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)
