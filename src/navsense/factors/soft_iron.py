"""Factors on soft iron: a matrix that multiplies the field in the sensor frame. The attitude is known.

    e = S R_nb^-1 f_n + b - m                   MagSoftIronFactor     S and b unknown, the field f_n known
    e = s S R_nb^-1 d_n + b - m                 MagSoftIronFactor3    s, d_n, b and S unknown

S is a vector of nine numbers, row by row; the identity means no soft iron. S may be asymmetric: its rotation is the
mounting of the sensor in the body. The first factor is linear, with de/dS_ij = (R_nb^-1 f_n)_j in row i. In the second
one, scale and soft iron share one degree of freedom, s S. A prior on one of them removes it
(`gtsam.PriorFactorDouble`, `gtsam.PriorFactorVector`). If S is known and the attitude is not, use `MagFactor1` with the
measurement S^-1 (m - b) of covariance S^-1 C S^-T. S and b are the soft iron and bias of a calibration, and the matrix
and hard iron of a simulated magnetometer.
"""
# ruff: noqa: N803 - names of GTSAM

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np

from navsense.core.typing import FloatArray
from navsense.factors.arguments import Numbers, validate_vector, warn_if_units_differ
from navsense.factors.base import Factor
from navsense.factors.geometry import rotate_inverse, tangent_basis_python
from navsense.factors.variables import double, read_rotation, unit3, vector_variable


@final
class MagSoftIronFactor(Factor):
    """Soft iron and bias from one measurement of a known field at a known attitude.

    >>> factor = ns.factors.MagSoftIronFactor(0, 1, (30.0, -5.0, 40.0), (30.0, 0.0, 40.0), (1.0, 0.0, 0.0, 0.0))
    >>> factor.evaluateError(np.eye(3).ravel(), (0.0, 0.0, 0.0))  # soft iron row by row, bias
    array([0., 5., 0.])
    """

    variables = (vector_variable("softIron", 9), vector_variable("bias", 3))

    def __init__(
        self, key1: int, key2: int, measured: object, field: object, nRb: object, model: object = None
    ) -> None:
        """Store the measurement and the known values.

        key1, key2: of the soft iron (9,) and the bias (3,).
        measured: reading (3,), sensor frame.
        field: (3,), in the navigation frame and the unit of the reading.
        nRb: attitude, a Rot3, a matrix (3, 3) or a quaternion w x y z.
        model: noise, see `make_noise`.

        Raises `FactorError` for a wrong shape or an invalid number.
        """
        self._measured = validate_vector("measured", measured, 3)
        self._field = rotate_inverse(read_rotation("nRb", nRb), validate_vector("field", field, 3))
        warn_if_units_differ("MagSoftIronFactor", math.hypot(*self._field), self._measured, (0.0, 0.0, 0.0))
        super().__init__((key1, key2), 3, model)

    def evaluateError(  # noqa: N802
        self, softIron: object, bias: object, H1: FloatArray | None = None, H2: FloatArray | None = None
    ) -> FloatArray:
        """Return e (3,) at a soft iron (9,) and a bias (3,). Fill H1 (3, 9) and H2 (3, 3) if given."""
        return self._evaluate((softIron, bias), (H1, H2))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        iron, bias = values
        return [p + b - m for p, b, m in zip(apply_soft_iron(iron, self._field), bias, self._measured, strict=True)]

    def _jacobians(self, *values: Numbers) -> Sequence[FloatArray]:
        return soft_iron_jacobian(self._field), np.eye(3)

    def _data(self) -> Numbers:
        return (*self._measured, *self._field)


@final
class MagSoftIronFactor3(Factor):
    """Scale, direction, bias and soft iron from one measurement at a known attitude: `MagFactor3` with soft iron.

    >>> factor = ns.factors.MagSoftIronFactor3(0, 1, 2, 3, (30.0, -5.0, 40.0), (1.0, 0.0, 0.0, 0.0))
    >>> factor.evaluateError(50.0, (0.6, 0.0, 0.8), (0.0, 0.0, 0.0), np.eye(3).ravel()).round(6) + 0.0
    array([0., 5., 0.])
    """

    variables = (double("scale"), unit3("direction"), vector_variable("bias", 3), vector_variable("softIron", 9))

    def __init__(
        self, key1: int, key2: int, key3: int, key4: int, measured: object, nRb: object, model: object = None
    ) -> None:
        """Store the measurement and the attitude.

        key1 to key4: of scale, direction, bias (3,) and soft iron (9,). The other arguments and the errors are those
        of `MagSoftIronFactor`.
        """
        self._measured = validate_vector("measured", measured, 3)
        self._rotation = read_rotation("nRb", nRb)
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
        """Return e (3,). Fill H1 (3, 1), H2 (3, 2) in GTSAM's tangent basis, H3 (3, 3) and H4 (3, 9) if given."""
        return self._evaluate((scale, direction, bias, softIron), (H1, H2, H3, H4))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        (scale,), direction, bias, iron = values
        field = apply_soft_iron(iron, rotate_inverse(self._rotation, direction))
        return [scale * p + b - m for p, b, m in zip(field, bias, self._measured, strict=True)]

    def _jacobians(self, *values: Numbers) -> Sequence[FloatArray]:
        (scale,), direction, _, iron = values
        x, y, z = direction
        basis = tangent_basis_python(x, y, z)
        direction_s = rotate_inverse(self._rotation, direction)
        axes = [apply_soft_iron(iron, rotate_inverse(self._rotation, axis)) for axis in (basis[:3], basis[3:])]
        return (
            np.array(apply_soft_iron(iron, direction_s))[:, None],
            scale * np.array(axes).T,
            np.eye(3),
            scale * soft_iron_jacobian(direction_s),
        )

    def _data(self) -> Numbers:
        return (*self._measured, *self._rotation)


def apply_soft_iron(iron: Numbers, field: Numbers) -> Numbers:
    """Return S h for a soft iron S, nine numbers row by row, and a field h in the sensor frame."""
    x, y, z = field
    return (
        iron[0] * x + iron[1] * y + iron[2] * z,
        iron[3] * x + iron[4] * y + iron[5] * z,
        iron[6] * x + iron[7] * y + iron[8] * z,
    )


def soft_iron_jacobian(field: Numbers) -> FloatArray:
    """Return the derivative (3, 9) of S h by the nine numbers of S: one row of h' per axis."""
    return np.kron(np.eye(3), np.array(field))
