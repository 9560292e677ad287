"""Factors on soft iron, a matrix that multiplies the field in the sensor's axes, with the attitude known.

    e = S R_nb^-1 f_n + b - m                   MagSoftIronFactor     S and b unknown, the field f_n known
    e = s S R_nb^-1 d_n + b - m                 MagSoftIronFactor3    s, d_n, b and S unknown

S is a vector of nine numbers, row by row; the identity is no soft iron. It may be asymmetric: the rotation in it is how
the sensor sits in the body. The first is linear, de/dS_ij = (R_nb^-1 f_n)_j in row i. In the second scale and soft iron
share one degree of freedom, s S: a prior on either (`gtsam.PriorFactorDouble`, `gtsam.PriorFactorVector`) settles it.
With S known and the attitude unknown no factor of its own is needed: S^-1 (m - b), of covariance S^-1 C S^-T, is
what `MagFactor1` measures. S and b are those of a calibration and, as matrix and hard iron, of the simulated sensor.
"""
# ruff: noqa: N803 - GTSAM's names

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np

from navsense.factors.arguments import Numbers, vector, warn_of_units
from navsense.factors.base import Factor
from navsense.factors.model import tangent
from navsense.factors.rotations import unrotated
from navsense.factors.variables import double, points, rotation, unit3
from navsense.typing import FloatArray


@final
class MagSoftIronFactor(Factor):
    """Soft iron and bias from one measurement of a known field at a known attitude."""

    variables = (points("softIron", 9), points("bias", 3))

    def __init__(
        self, key1: int, key2: int, measured: object, field: object, nRb: object, model: object = None
    ) -> None:
        """Keep the measurement and what is known.

        key1, key2: of the soft iron (9,) and the bias (3,). measured: reading (3,), sensor frame. field: (3,), of the
        navigation frame, in the reading's unit. nRb: attitude, a Rot3, a matrix (3, 3) or a quaternion w x y z.
        model: noise, see `noise_of`. Raises FactorError for shapes and numbers that are not possible.
        """
        self._measured = vector("measured", measured, 3)
        self._field = unrotated(rotation("nRb", nRb), vector("field", field, 3))
        warn_of_units("MagSoftIronFactor", math.hypot(*self._field), self._measured, (0.0, 0.0, 0.0))
        super().__init__((key1, key2), 3, model)

    def evaluateError(  # noqa: N802
        self, softIron: object, bias: object, H1: FloatArray | None = None, H2: FloatArray | None = None
    ) -> FloatArray:
        """Return e (3,) at a soft iron (9,) and a bias (3,); fill H1 (3, 9) and H2 (3, 3) where they are given."""
        return self._evaluate((softIron, bias), (H1, H2))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        iron, bias = values
        return [p + b - m for p, b, m in zip(seen(iron, self._field), bias, self._measured, strict=True)]

    def _jacobians(self, *values: Numbers) -> Sequence[FloatArray]:
        return by_iron(self._field), np.eye(3)

    def _data(self) -> Numbers:
        return (*self._measured, *self._field)


@final
class MagSoftIronFactor3(Factor):
    """Scale, direction, bias and soft iron from one measurement at a known attitude: `MagFactor3` with soft iron."""

    variables = (double("scale"), unit3("direction"), points("bias", 3), points("softIron", 9))

    def __init__(
        self, key1: int, key2: int, key3: int, key4: int, measured: object, nRb: object, model: object = None
    ) -> None:
        """Keep the measurement and the attitude; keys of scale, direction, bias and soft iron (9,).

        measured, nRb and model: as in `MagSoftIronFactor`. Raises FactorError alike.
        """
        self._measured = vector("measured", measured, 3)
        self._rotation = rotation("nRb", nRb)
        super().__init__((key1, key2, key3, key4), 3, model)

    def evaluateError(  # noqa: N802
        self,
        scale: object,
        direction: object,
        bias: object,
        softIron: object,
        H1: FloatArray | None = None,
        H2: FloatArray | None = None,
        H3: FloatArray | None = None,
        H4: FloatArray | None = None,
    ) -> FloatArray:
        """Return e (3,); fill H1 (3, 1), H2 (3, 2) in GTSAM's tangent basis, H3 (3, 3), H4 (3, 9) where given."""
        return self._evaluate((scale, direction, bias, softIron), (H1, H2, H3, H4))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        (scale,), direction, bias, iron = values
        field = seen(iron, unrotated(self._rotation, direction))
        return [scale * p + b - m for p, b, m in zip(field, bias, self._measured, strict=True)]

    def _jacobians(self, *values: Numbers) -> Sequence[FloatArray]:
        (scale,), direction, _, iron = values
        x, y, z = direction
        basis = tangent(x, y, z)
        here = unrotated(self._rotation, direction)
        axes = [seen(iron, unrotated(self._rotation, axis)) for axis in (basis[:3], basis[3:])]
        return np.array(seen(iron, here))[:, None], scale * np.array(axes).T, np.eye(3), scale * by_iron(here)

    def _data(self) -> Numbers:
        return (*self._measured, *self._rotation)


def seen(iron: Numbers, field: Numbers) -> Numbers:
    """Return S h of a soft iron, nine numbers row by row, and a field in the sensor's axes."""
    x, y, z = field
    return (
        iron[0] * x + iron[1] * y + iron[2] * z,
        iron[3] * x + iron[4] * y + iron[5] * z,
        iron[6] * x + iron[7] * y + iron[8] * z,
    )


def by_iron(field: Numbers) -> FloatArray:
    """Return the derivative (3, 9) of S h by the nine numbers of S."""
    return np.kron(np.eye(3), np.array(field))
