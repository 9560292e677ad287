"""One factor for any number of measurements of a field and a bias: the sums of `_statistics` in six rows.

    sum_i |m_i - R_nb,i^-1 n_M - b|^2_W / 2 = |A x - y|^2 / 2 + constant            x = (n_M, b),  A (6, 6),  y (6,)

Exact for every field and bias, at the optimum and away from it, as long as all measurements share one Gaussian noise:
a robust loss weighs each by its own residual, so it needs the single factors. The noise is in the six rows already.
`constant` is what no field and bias undoes; GTSAM's error of a graph with the single factors is that of a graph with
this one and `constant`. It moves no optimum, marginal or increment.

A factor does not change: `updated` returns one that holds more measurements. A running robot adds a factor of each new
batch to iSAM2, or takes its last one out and puts the updated one in; both are the same sum.
"""
# ruff: noqa: N802, N803 - GTSAM's names

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from navsense.errors import FactorError
from navsense.factors._rows import Rows
from navsense.factors._statistics import Statistics
from navsense.factors.arguments import Numbers
from navsense.factors.base import Factor
from navsense.factors.library import gtsam_for, is_noise
from navsense.factors.model import tangent
from navsense.factors.noise import Noise, noise_of
from navsense.factors.variables import double, points, unit3
from navsense.typing import FloatArray

ROWS = 6

ROUNDED = 1e-6
"""Share of the field and bias that rounding in the sums may move the least error by: beyond it there is no optimum."""


class _Reduced(Factor):
    """What both factors share: the measurements' sums and the six rows."""

    def __init__(self, keys: Sequence[object], measured: ArrayLike, nRb: Any, model: object) -> None:
        noise = noise_of(model, 3)
        self._measurement_noise = noise
        self._hold(_summed(Statistics(_weight(noise)), measured, nRb))
        super().__init__(keys, ROWS, 1.0)

    @property
    def count(self) -> int:
        """Return the number of measurements."""
        return self._statistics.count

    @property
    def constant(self) -> float:
        """Return the error that the best field and bias leave, which `error` does not hold."""
        return self._constant

    def updated(self, measured: ArrayLike, nRb: Any) -> Self:
        """Return a factor on the same keys with further measurements (n, 3) at attitudes (n, 4) or (n, 3, 3)."""
        other = copy.copy(self)
        other._hold(_summed(self._statistics.copy(), measured, nRb))  # noqa: SLF001 - a copy of its own
        return other

    def cloneWithNewNoiseModel(self, model: object) -> Self:
        """Raise FactorError: the noise is in the sums."""
        remedy = "make the factor of the measurements again, with that model"
        raise FactorError("noise model of a reduced factor", "cannot be exchanged", remedy=remedy)

    def _hold(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self._matrix, self._right, self._constant = statistics.rows()

    def _solution(self) -> FloatArray:
        """Return the field and bias (6,) of the least error.

        Sums have the square of the readings' condition number, and are rounded to some 64 units in the last place.
        """
        parts = np.linalg.svd(self._matrix, compute_uv=False)
        if not parts[-1] ** 2 * ROUNDED > 64.0 * np.finfo(np.float64).eps * parts[0] ** 2:
            raise FactorError(
                f"attitudes of {self.count} measurements",
                "do not tell the field from the bias",
                allowed="must turn about two axes or more, by more than a ten-thousandth of a radian",
                remedy="turn the sensor about another axis, or give the field or the bias a prior",
            )
        solution: FloatArray = np.asarray(np.linalg.solve(self._matrix, self._right), np.float64)
        return solution

    def _at(self, field: Sequence[float] | FloatArray, bias: Numbers) -> FloatArray:
        difference: FloatArray = self._matrix @ np.array([*field, *bias]) - self._right
        return difference

    def _data(self) -> Numbers:
        information, right, constant = self._statistics.quadratic()
        parts = np.concatenate((information.ravel(), right, [constant])) / self.count
        return (float(self.count), *parts.tolist())

    def _lines(self) -> str:
        return f"measurements: {self.count}, each of\n{self._measurement_noise.text()}"


@final
class ReducedMagFactor2(_Reduced):
    """N measurements of `MagFactor2` in one factor: field n_M and bias unknown, attitudes known."""

    variables = (points("nM", 3), points("bias", 3))

    def __init__(self, key1: int, key2: int, measured: ArrayLike, nRb: Any, model: object = None) -> None:
        """Sum the measurements.

        key1, key2: of the field (3,) in the navigation frame and of the bias (3,). measured: readings (n, 3), sensor
        frame. nRb: attitudes, quaternions w x y z (n, 4), matrices (n, 3, 3), a list of gtsam.Rot3, or one for all.
        model: noise of one measurement, Gaussian, see `noise_of`. Raises FactorError for shapes and numbers that are
        not possible, for no measurement and for a robust model.
        """
        super().__init__((key1, key2), measured, nRb, model)

    def evaluateError(
        self, nM: object, bias: object, H1: FloatArray | None = None, H2: FloatArray | None = None
    ) -> FloatArray:
        """Return the six rows at a field and a bias; fill H1 (6, 3) and H2 (6, 3) where they are given."""
        return self._evaluate((nM, bias), (H1, H2))

    def optimum(self) -> tuple[FloatArray, FloatArray]:
        """Return the field (3,) and the bias (3,) of the least error. Raises FactorError where many have it."""
        solution = self._solution()
        return solution[:3], solution[3:]

    def _residual(self, *values: Numbers) -> FloatArray:
        field, bias = values
        return self._at(field, bias)

    def _jacobians(self, *values: Numbers) -> Sequence[FloatArray]:
        return self._matrix[:, :3], self._matrix[:, 3:]


@final
class ReducedMagFactor3(_Reduced):
    """N measurements of `MagFactor3` in one factor: scale, direction and bias unknown, attitudes known."""

    variables = (double("scale"), unit3("direction"), points("bias", 3))

    def __init__(self, key1: int, key2: int, key3: int, measured: ArrayLike, nRb: Any, model: object = None) -> None:
        """Sum the measurements; keys of scale, direction and bias, all else as in `ReducedMagFactor2`."""
        super().__init__((key1, key2, key3), measured, nRb, model)

    def evaluateError(
        self,
        scale: object,
        direction: object,
        bias: object,
        H1: FloatArray | None = None,
        H2: FloatArray | None = None,
        H3: FloatArray | None = None,
    ) -> FloatArray:
        """Return the six rows; fill H1 (6, 1), H2 (6, 2) in GTSAM's tangent basis and H3 (6, 3) where given."""
        return self._evaluate((scale, direction, bias), (H1, H2, H3))

    def optimum(self) -> tuple[float, FloatArray, FloatArray]:
        """Return scale, direction (3,) and bias (3,) of the least error. Raises FactorError where many have it."""
        solution = self._solution()
        scale = math.sqrt(float(solution[:3] @ solution[:3]))
        if scale == 0.0:
            raise FactorError("field of the least error", [0.0, 0.0, 0.0], allowed="must not be zero: no direction")
        return scale, solution[:3] / scale, solution[3:]

    def _residual(self, *values: Numbers) -> FloatArray:
        (scale,), direction, bias = values
        return self._at([scale * part for part in direction], bias)

    def _jacobians(self, *values: Numbers) -> Sequence[FloatArray]:
        (scale,), direction, _ = values
        x, y, z = direction
        basis = np.array(tangent(x, y, z)).reshape(2, 3).T
        by_field = self._matrix[:, :3]
        return by_field @ np.array(direction)[:, None], scale * (by_field @ basis), self._matrix[:, 3:]


def _weight(noise: Noise) -> FloatArray:
    """Return the inverse covariance (3, 3) of one measurement's noise."""
    given = noise.given
    if is_noise(given) and isinstance(given, gtsam_for("a noise model of GTSAM").noiseModel.Robust):
        remedy = "give the Gaussian noise alone, or one MagFactor2 or MagFactor3 to each measurement"
        raise FactorError("noise model", "is robust", allowed="must be Gaussian, the same for all", remedy=remedy)
    root = np.column_stack([noise.whitened(column) for column in np.eye(3)])
    weight: FloatArray = root.T @ root
    return weight


def _summed(statistics: Statistics, measured: ArrayLike, nRb: Any) -> Statistics:
    """Add measurements to sums and return them."""
    rows = Rows()
    readings, rotation = rows.take("measured", measured, 3), rows.rotation("nRb", nRb)
    if rows.count == 0 or len(readings) < rows.count:
        raise FactorError("rows of measured", len(readings), allowed=f"must be {max(rows.count, 1)}, those of nRb")
    rows.refuse(statistics.add(readings, rotation))
    return statistics
