"""Factors on the field itself, the attitude known: they calibrate.

    MagFactor2    e = R_nb^-1 f + bias - measured                    unknown: field f, bias
    MagFactor3    e = R_nb^-1 (scale direction) + bias - measured    unknown: scale, direction, bias

f and direction in navigation coordinates n, bias and measured in the body frame b; f, scale, bias and measured in one
unit. R_nb takes body to navigation coordinates. Both say the same, f = scale direction. A direction moves in the
tangent plane of GTSAM's basis (see `model`), which jumps where another axis becomes the one least along it: derivatives
can be compared at one point only. The formula on GTSAM's page has the sign of measured less predicted; its code has
predicted less measured, as here. GTSAM's Python package has neither factor: `to_gtsam` gives a CustomFactor.
Source: GTSAM's `navigation/MagFactor.h` and `geometry/Unit3.cpp`; held against GTSAM 4.3.0 in the tests.
"""
# ruff: noqa: N802, N803 - GTSAM's names

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from navsense.factors.arguments import Numbers, vector
from navsense.factors.base import Factor
from navsense.factors.model import tangent
from navsense.factors.rotations import unrotated
from navsense.factors.variables import double, points, rotation, unit3
from navsense.typing import FloatArray

_IDENTITY = np.eye(3)


@final
class MagFactor2(Factor):
    """The field in navigation coordinates, nM, and the bias; linear in both."""

    variables = (points("nM", 3), points("bias", 3))

    def __init__(self, key1: int, key2: int, measured: object, nRb: object, model: object = None) -> None:
        """Keep the measurement and the attitude.

        key1, key2: of the field nM and of the bias. measured: reading (3,), body frame. nRb: attitude of the body, a
        Rot3, a matrix (3, 3) or a quaternion w x y z. model: noise, see `noise_of`.
        Raises FactorError for shapes and numbers that are not possible.
        """
        self._measured = vector("measured", measured, 3)
        self._rotation = rotation("nRb", nRb)
        super().__init__((key1, key2), 3, model)

    def evaluateError(
        self, nM: object, bias: object, H1: FloatArray | None = None, H2: FloatArray | None = None
    ) -> FloatArray:
        """Return e (3,) at a field and a bias, (3,) each; fill H1 and H2 (3, 3) where they are given."""
        return self._evaluate((nM, bias), (H1, H2))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        field, (bx, by, bz) = values
        px, py, pz = unrotated(self._rotation, field)
        mx, my, mz = self._measured
        return px + bx - mx, py + by - my, pz + bz - mz

    def _jacobians(self, *values: Numbers) -> Sequence[ArrayLike]:
        return _inverse(self._rotation), _IDENTITY

    def _data(self) -> Numbers:
        return (*self._measured, *self._rotation)


@final
class MagFactor3(Factor):
    """The field's scale (a number) and direction (Unit3), and the bias."""

    variables = (double("scale"), unit3("direction"), points("bias", 3))

    def __init__(self, key1: int, key2: int, key3: int, measured: object, nRb: object, model: object = None) -> None:
        """Keep the measurement and the attitude.

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
        """Return e (3,) at a number, a Unit3 or vector, and a bias (3,); fill H1 (3, 1), H2 (3, 2), H3 (3, 3)."""
        return self._evaluate((scale, direction, bias), (H1, H2, H3))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        (scale,), direction, (bx, by, bz) = values
        px, py, pz = unrotated(self._rotation, direction)
        mx, my, mz = self._measured
        return scale * px + bx - mx, scale * py + by - my, scale * pz + bz - mz

    def _jacobians(self, *values: Numbers) -> Sequence[ArrayLike]:
        (scale,), (x, y, z), _ = values
        basis = tangent(x, y, z)
        first, second = unrotated(self._rotation, basis[:3]), unrotated(self._rotation, basis[3:])
        by_scale = tuple((part,) for part in unrotated(self._rotation, (x, y, z)))
        return by_scale, tuple((scale * a, scale * b) for a, b in zip(first, second, strict=True)), _IDENTITY

    def _data(self) -> Numbers:
        return (*self._measured, *self._rotation)


def _inverse(rotation: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the rows of R^-1."""
    return rotation[0::3], rotation[1::3], rotation[2::3]
