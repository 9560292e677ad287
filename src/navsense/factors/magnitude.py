"""Factors on the length of the field alone: the attitude is not needed, the strength at the place is.

    e = |m - b| - s                    MagnitudeFactor            bias b unknown
    e = |S^-1 (m - b)| - s             MagnitudeSoftIronFactor    soft iron S and bias b unknown
    e = |n_M| - s                      MagnitudePrior             of a field n_M that MagFactor2 has unknown

S is symmetric, six numbers xx xy xz yy yz zz: a rotation within it would not show in a length. With v = S^-1 (m - b),
u = v / |v| and w = S^-1 u the derivatives are de/db = -w' and de/dS = -w v', symmetric parts added; they are zero where
v is, as in GTSAM's `VectorNormFactor`, which the prior is equal to. Where the strength is unknown too, give any: S
takes the scale. The noise of one axis, sigma, lengthens a field by sigma^2 / s on average, 0.05 nT for 50 nT in 50 uT;
`calibration.ellipsoid` undoes that, these factors do not.
Source of calibrating by the length alone: Gebre-Egziabher, Elkaim, Powell, Parkinson, A non-linear, two-step estimation
algorithm for calibrating solid-state strapdown magnetometers.
"""
# ruff: noqa: N802, N803 - GTSAM's names

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from navsense.errors import FactorError
from navsense.factors.arguments import Numbers, number, vector, warn_of_units
from navsense.factors.base import Factor
from navsense.factors.variables import points
from navsense.typing import FloatArray

_ORIGIN = (0.0, 0.0, 0.0)


@final
class MagnitudeFactor(Factor):
    """The bias from one measurement, attitude unknown: the readings less the bias lie on a sphere."""

    variables = (points("bias", 3),)

    def __init__(self, key: int, measured: object, strength: object, model: object = None) -> None:
        """Keep the measurement and the field's strength.

        key: of the bias (3,). measured: reading (3,), sensor frame. strength: of the field, in the reading's unit.
        model: noise of one row, see `noise_of`. Raises FactorError for shapes and numbers that are not possible.
        """
        self._measured = vector("measured", measured, 3)
        self._strength = _positive(strength)
        warn_of_units("MagnitudeFactor", self._strength, self._measured, _ORIGIN)
        super().__init__((key,), 1, model)

    def evaluateError(self, bias: object, H: FloatArray | None = None) -> FloatArray:
        """Return e (1,) at a bias (3,); fill H (1, 3) where it is given."""
        return self._evaluate((bias,), (H,))

    def _less(self, bias: Numbers) -> Numbers:
        return tuple(m - b for m, b in zip(self._measured, bias, strict=True))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        return (math.hypot(*self._less(values[0])) - self._strength,)

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Numbers]]:
        return ((tuple(-part for part in _unit(self._less(values[0]))),),)

    def _data(self) -> Numbers:
        return (*self._measured, self._strength)


@final
class MagnitudeSoftIronFactor(Factor):
    """Soft iron and bias from one measurement, attitude unknown: the readings lie on an ellipsoid."""

    variables = (points("softIron", 6), points("bias", 3))

    def __init__(self, key1: int, key2: int, measured: object, strength: object, model: object = None) -> None:
        """Keep the measurement and the field's strength; keys of soft iron (6,) and bias, else as `MagnitudeFactor`."""
        self._measured = vector("measured", measured, 3)
        self._strength = _positive(strength)
        warn_of_units("MagnitudeSoftIronFactor", self._strength, self._measured, _ORIGIN)
        super().__init__((key1, key2), 1, model)

    def evaluateError(
        self, softIron: object, bias: object, H1: FloatArray | None = None, H2: FloatArray | None = None
    ) -> FloatArray:
        """Return e (1,) at soft iron xx xy xz yy yz zz and a bias (3,); fill H1 (1, 6) and H2 (1, 3) where given."""
        return self._evaluate((softIron, bias), (H1, H2))

    def _field(self, iron: Numbers, bias: Numbers) -> tuple[FloatArray, FloatArray]:
        """Return the inverse of the soft iron and the field in the sensor's axes."""
        xx, xy, xz, yy, yz, zz = iron
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        try:
            inverse: FloatArray = np.linalg.inv(matrix)
        except np.linalg.LinAlgError as cause:
            raise FactorError(
                "softIron", iron, allowed="must have an inverse", remedy="start at 1 0 0 1 0 1"
            ) from cause
        field: FloatArray = inverse @ (np.array(self._measured) - np.array(bias))
        return inverse, field

    def _residual(self, *values: Numbers) -> Sequence[float]:
        _, field = self._field(*values)
        return (math.hypot(*field.tolist()) - self._strength,)

    def _jacobians(self, *values: Numbers) -> Sequence[FloatArray]:
        inverse, v = self._field(*values)
        w = inverse @ np.array(_unit(tuple(v.tolist())))
        both = np.outer(w, v)
        both = both + both.T - np.diag(np.diag(both))
        return -both[np.triu_indices(3)][None], -w[None]

    def _data(self) -> Numbers:
        return (*self._measured, self._strength)


@final
class MagnitudePrior(Factor):
    """The strength of an unknown field, from a map or a model of it: what `MagFactor2` alone does not know."""

    variables = (points("nM", 3),)

    def __init__(self, key: int, strength: object, model: object = None) -> None:
        """Keep the strength; key of the field n_M (3,), `model` the noise of one row, see `noise_of`."""
        self._strength = _positive(strength)
        super().__init__((key,), 1, model)

    def evaluateError(self, nM: object, H: FloatArray | None = None) -> FloatArray:
        """Return e (1,) at a field (3,); fill H (1, 3) where it is given."""
        return self._evaluate((nM,), (H,))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        return (math.hypot(*values[0]) - self._strength,)

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Numbers]]:
        return ((_unit(values[0]),),)

    def _data(self) -> Numbers:
        return (self._strength,)

    def _native(self, library: Any, model: Any) -> Any:
        make = vars(library).get("VectorNormFactor3")
        # without a noise model GTSAM's ends the process when it is printed
        return make and make(self._keys[0], self._strength, model or library.noiseModel.Unit.Create(1))


def _positive(strength: object) -> float:
    value = number("strength", strength)
    if value <= 0.0:
        raise FactorError("strength", value, allowed="must be > 0")
    return value


def _unit(v: Numbers) -> Numbers:
    """Return v at length 1, zeros where it has none."""
    length = math.hypot(*v)
    return tuple(part / length for part in v) if length > 0.0 else _ORIGIN
