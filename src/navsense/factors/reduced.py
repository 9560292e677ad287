"""Factors that hold any number of measurements of a field and a bias in six rows.

    sum_i |m_i - R_nb,i^-1 n_M - b|^2_W / 2 = |A x - y|^2 / 2 + constant            x = (n_M, b),  A (6, 6),  y (6,)

The equation is exact at every field and bias if all measurements have the same Gaussian noise. A robust loss weights
each measurement by its own residual: it needs one factor per measurement. A and y include the noise. `constant` is the
error at the optimum. The error of a graph with one factor per measurement is the error of a graph with a reduced
factor, plus `constant`. The constant changes no optimum, marginal or increment.

A factor is immutable: `with_measurements` returns a factor with more measurements. To use it with iSAM2, add one factor
per batch, or replace the last factor by the new one. Both give the same sum.

**Normal equations.** With J_i = [R_i' 1], R_i = R_nb of measurement i, and W the inverse covariance of one measurement:

    E(x) = 1/2 sum_i (J_i x - m_i)' W (J_i x - m_i) = 1/2 x' L x - g' x + c
    L = | sum R W R'   (sum R) W |    g = | sum R W m |    c = 1/2 sum m' W m
        | W (sum R)'   N W       |        | W sum m   |

22 sums hold L, g and c. Measurements are added in blocks of 64. The block sums are added with compensation of rounding
errors (Neumaier 1974). The sums of a million measurements are therefore as exact as those of a few, and they do not
depend on how the record is split into updates, to the last bit.

With the eigenvalues L = V D V', the rows are A = D^1/2 V' and y = D^-1/2 V' g: E = 1/2 |A x - y|^2 + constant. Each
direction without information, D = 0, is a row of zeros. constant = c - 1/2 |y|^2.
"""
# ruff: noqa: N802, N803 - names of GTSAM

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.errors import FactorError
from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Vectors
from navsense.factors.arguments import Numbers
from navsense.factors.base import Factor
from navsense.factors.batch_arguments import BatchArguments, row_to_matrix
from navsense.factors.geometry import tangent_basis_python
from navsense.factors.gtsam_support import is_gtsam_noise, require_gtsam
from navsense.factors.mag_factors import FieldBiasFactor, ScaleDirectionBiasFactor
from navsense.factors.noise import FactorNoise, make_noise

Symmetric: TypeAlias = tuple[float, float, float, float, float, float]

ROWS = 6
SUMS = 22
BLOCK = 64
"""Measurements that are added without compensation before their sum is added with it."""

ROUNDING = 64.0 * np.finfo(np.float64).eps
"""Relative rounding error of the sums. Eigenvalues below this share of the largest one count as zero."""

MAX_ROUNDING_ERROR = 1e-6
"""Largest relative error of the optimum due to rounding of the sums. Above it, the optimum is undefined."""


@kernel
def _multiply_symmetric(w: Symmetric, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return W v of a symmetric matrix, six numbers xx xy xz yy yz zz, and a vector."""
    return w[0] * x + w[1] * y + w[2] * z, w[1] * x + w[3] * y + w[4] * z, w[2] * x + w[4] * y + w[5] * z


@kernel
def _add_measurements(
    sums: FloatArray, count: int, rotation: FloatArray, measured: Vectors, weight: FloatArray, row: FloatArray
) -> int:
    """Add measurements to sums (3, 22): totals, rounding errors, open block. Return the first invalid row, or -1.

    The sums already hold `count` measurements. `row` (22,) is a work array.
    """
    w = (weight[0, 0], weight[0, 1], weight[0, 2], weight[1, 1], weight[1, 2], weight[2, 2])
    step = int(rotation.shape[0] > 1)
    for i in range(measured.shape[0]):
        r = row_to_matrix(rotation, i * step)
        x, y, z = measured[i, 0], measured[i, 1], measured[i, 2]
        wx, wy, wz = _multiply_symmetric(w, x, y, z)
        a00, a01, a02 = _multiply_symmetric(w, r[0], r[1], r[2])
        a10, a11, a12 = _multiply_symmetric(w, r[3], r[4], r[5])
        a20, a21, a22 = _multiply_symmetric(w, r[6], r[7], r[8])
        row[0] = a00 * r[0] + a01 * r[1] + a02 * r[2]
        row[1] = a00 * r[3] + a01 * r[4] + a02 * r[5]
        row[2] = a00 * r[6] + a01 * r[7] + a02 * r[8]
        row[3] = a10 * r[3] + a11 * r[4] + a12 * r[5]
        row[4] = a10 * r[6] + a11 * r[7] + a12 * r[8]
        row[5] = a20 * r[6] + a21 * r[7] + a22 * r[8]
        for j in range(9):
            row[6 + j] = r[j]
        row[15] = r[0] * wx + r[1] * wy + r[2] * wz
        row[16] = r[3] * wx + r[4] * wy + r[5] * wz
        row[17] = r[6] * wx + r[7] * wy + r[8] * wz
        row[18], row[19], row[20] = x, y, z
        row[21] = x * wx + y * wy + z * wz
        if not row[21] < np.inf:
            return i
        for j in range(SUMS):
            sums[2, j] += row[j]
        if (count + i + 1) % BLOCK == 0:
            _close_block(sums)
    return -1


@kernel
def _close_block(sums: FloatArray) -> None:
    """Add the open block to the totals, and its rounding error to the rounding errors."""
    for j in range(SUMS):
        total, part = sums[0, j], sums[2, j]
        after = total + part
        if abs(total) >= abs(part):
            sums[1, j] += (total - after) + part
        else:
            sums[1, j] += (part - after) + total
        sums[0, j], sums[2, j] = after, 0.0


class NormalEquations:
    """Normal equations of measurements with the inverse covariance `weight` (3, 3), and their six rows."""

    def __init__(self, weight: FloatArray) -> None:
        """Start without measurements."""
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        self.count = 0
        self._sums = np.zeros((3, SUMS))

    def with_measurements(self, measured: ArrayLike, nRb: Any) -> NormalEquations:
        """Return a copy with further readings (n, 3) at attitudes, see `BatchArguments.add_rotations`."""
        arguments = BatchArguments()
        readings, rotation = arguments.add_vectors("measured", measured, 3), arguments.add_rotations("nRb", nRb)
        if arguments.count == 0 or len(readings) < arguments.count:
            allowed = f"must be {max(arguments.count, 1)}, those of nRb"
            raise FactorError("rows of measured", len(readings), allowed=allowed)
        other = NormalEquations(self.weight)
        other.count, other._sums = self.count + len(readings), self._sums.copy()
        row = _add_measurements(other._sums, self.count, rotation, readings, self.weight, np.empty(SUMS))
        arguments.raise_for_row(row)
        return other

    def quadratic(self) -> tuple[FloatArray, FloatArray, float]:
        """Return L (6, 6), g (6,) and c."""
        sums = self._sums.copy()
        _close_block(sums)
        s, w = sums[0] + sums[1], self.weight
        information, g = np.empty((6, 6)), np.empty(6)
        information[:3, :3] = s[[0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(3, 3)
        information[:3, 3:] = s[6:15].reshape(3, 3) @ w
        information[3:, :3] = information[:3, 3:].T
        information[3:, 3:] = self.count * w
        g[:3], g[3:] = s[15:18], w @ s[18:21]
        return information, g, 0.5 * float(s[21])

    def rows(self) -> tuple[FloatArray, FloatArray, float]:
        """Return A (6, 6), y (6,) and the constant."""
        information, g, c = self.quadratic()
        values, vectors = np.linalg.eigh(information)
        is_observed = values > ROUNDING * max(float(values[-1]), 0.0)
        root = np.sqrt(np.where(is_observed, values, 0.0))
        y = np.where(is_observed, vectors.T @ g, 0.0) / np.where(is_observed, root, 1.0)
        return root[:, None] * vectors.T, y, max(c - 0.5 * float(y @ y), 0.0)


class _ReducedFactor(Factor):
    """Normal equations and six rows of both factors."""

    def __init__(self, keys: Sequence[object], measured: ArrayLike, nRb: Any, model: object) -> None:
        self._measurement_noise = make_noise(model, 3)
        self._set_equations(
            NormalEquations(_inverse_covariance(self._measurement_noise)).with_measurements(measured, nRb)
        )
        super().__init__(keys, ROWS, 1.0)

    @property
    def count(self) -> int:
        """The number of measurements."""
        return self._equations.count

    @property
    def constant(self) -> float:
        """The error at the best field and bias, which `error` does not include."""
        return self._constant

    def with_measurements(self, measured: ArrayLike, nRb: Any) -> Self:
        """Return a factor on the same keys with further measurements (n, 3) at attitudes (n, 4) or (n, 3, 3)."""
        other = copy.copy(self)
        other._set_equations(self._equations.with_measurements(measured, nRb))  # noqa: SLF001 - its own copy
        return other

    def cloneWithNewNoiseModel(self, model: object) -> Self:
        """Raise `FactorError`: the sums include the noise."""
        remedy = "make the factor of the measurements again, with that model"
        raise FactorError("noise model of a reduced factor", "cannot be exchanged", remedy=remedy)

    def _set_equations(self, equations: NormalEquations) -> None:
        self._equations = equations
        self._matrix, self._right, self._constant = equations.rows()

    def _solve(self) -> FloatArray:
        """Return the field and bias (6,) at the minimum.

        The condition number of the sums is the square of that of A; their relative rounding error is `ROUNDING`.
        """
        singular_values = np.linalg.svd(self._matrix, compute_uv=False)
        if not singular_values[-1] ** 2 * MAX_ROUNDING_ERROR > ROUNDING * singular_values[0] ** 2:
            raise FactorError(
                f"attitudes of {self.count} measurements",
                "do not separate the field from the bias",
                allowed="must turn about two axes or more, by more than a ten-thousandth of a radian",
                remedy="turn the sensor about another axis, or give the field or the bias a prior",
            )
        return np.asarray(np.linalg.solve(self._matrix, self._right), np.float64)

    def _evaluate_rows(self, field: Sequence[float] | FloatArray, bias: Numbers) -> FloatArray:
        return np.asarray(self._matrix @ np.array([*field, *bias]) - self._right)

    def _data(self) -> Numbers:
        information, g, c = self._equations.quadratic()
        means = np.concatenate((information.ravel(), g, [c])) / self.count
        return (float(self.count), *means.tolist())

    def _format_data(self) -> str:
        return f"measurements: {self.count}, each of\n{self._measurement_noise.describe()}"


@final
class ReducedMagFactor2(_ReducedFactor, FieldBiasFactor):
    """N measurements of `MagFactor2` in one factor: field n_M and bias unknown, attitudes known.

    >>> factor = ns.factors.ReducedMagFactor2(0, 1, field, rotation_ws, 15e-9)  # (n, 3) T, (n, 4) w x y z
    >>> field_n, bias = factor.optimum()
    >>> field_n.shape, bias.shape
    ((3,), (3,))
    """

    def __init__(self, key1: int, key2: int, measured: ArrayLike, nRb: Any, model: object = None) -> None:
        """Sum the measurements.

        key1, key2: of the field (3,) in the navigation frame and of the bias (3,).
        measured: readings (n, 3), sensor frame.
        nRb: attitudes, quaternions w x y z (n, 4), matrices (n, 3, 3), a list of gtsam.Rot3, or one for all.
        model: Gaussian noise of one measurement, see `make_noise`.

        Raises `FactorError` for a wrong shape, an invalid number, no measurement and a robust model.
        """
        super().__init__((key1, key2), measured, nRb, model)

    def optimum(self) -> tuple[FloatArray, FloatArray]:
        """Return the field (3,) and the bias (3,) at the minimum. Raises `FactorError` if it is not unique."""
        solution = self._solve()
        return solution[:3], solution[3:]

    def _residual(self, *values: Numbers) -> FloatArray:
        field, bias = values
        return self._evaluate_rows(field, bias)

    def _jacobians(self, *values: Numbers) -> Sequence[FloatArray]:
        return self._matrix[:, :3], self._matrix[:, 3:]


@final
class ReducedMagFactor3(_ReducedFactor, ScaleDirectionBiasFactor):
    """N measurements of `MagFactor3` in one factor: scale, direction and bias unknown, attitudes known.

    >>> factor = ns.factors.ReducedMagFactor3(0, 1, 2, 1e6 * field, rotation_ws)  # µT
    >>> len(factor.keys())
    3
    """

    def __init__(self, key1: int, key2: int, key3: int, measured: ArrayLike, nRb: Any, model: object = None) -> None:
        """Sum the measurements. The keys are of scale, direction and bias; see `ReducedMagFactor2` for the rest."""
        super().__init__((key1, key2, key3), measured, nRb, model)

    def optimum(self) -> tuple[float, FloatArray, FloatArray]:
        """Return scale, direction (3,) and bias (3,) at the minimum. Raises `FactorError` if it is not unique."""
        solution = self._solve()
        scale = math.sqrt(float(solution[:3] @ solution[:3]))
        if scale == 0.0:
            raise FactorError("field of the least error", [0.0, 0.0, 0.0], allowed="must not be zero: no direction")
        return scale, solution[:3] / scale, solution[3:]

    def _residual(self, *values: Numbers) -> FloatArray:
        (scale,), direction, bias = values
        return self._evaluate_rows([scale * part for part in direction], bias)

    def _jacobians(self, *values: Numbers) -> Sequence[FloatArray]:
        (scale,), direction, _ = values
        x, y, z = direction
        basis = np.array(tangent_basis_python(x, y, z)).reshape(2, 3).T
        by_field = self._matrix[:, :3]
        return by_field @ np.array(direction)[:, None], scale * (by_field @ basis), self._matrix[:, 3:]


def _inverse_covariance(noise: FactorNoise) -> FloatArray:
    """Return the inverse covariance W (3, 3) of the noise of one measurement."""
    model = noise.model
    if is_gtsam_noise(model) and isinstance(model, require_gtsam("a noise model of GTSAM").noiseModel.Robust):
        remedy = "give the Gaussian noise alone, or one MagFactor2 or MagFactor3 to each measurement"
        raise FactorError("noise model", "is robust", allowed="must be Gaussian, the same for all", remedy=remedy)
    root = np.column_stack([noise.whiten(column) for column in np.eye(3)])
    return np.asarray(root.T @ root)
