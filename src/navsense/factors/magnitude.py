"""Factors on the length of the field. They need the field strength at the place, but no attitude.

    e = |m - b| - s                    MagnitudeFactor            bias b unknown
    e = |S^-1 (m - b)| - s             MagnitudeSoftIronFactor    soft iron S and bias b unknown
    e = |n_M| - s                      MagnitudePrior             on a field n_M that is an unknown of MagFactor2

S is symmetric, six numbers xx xy xz yy yz zz: a length does not depend on a rotation in S. With v = S^-1 (m - b),
u = v / |v| and w = S^-1 u, the derivatives are de/db = -w' and de/dS = -w v', symmetric entries added. They are zero at
v = 0, as in GTSAM's `VectorNormFactor`, which equals the prior. If the strength is unknown, use any strength: S then
holds the scale. Noise of sigma per axis lengthens a field by sigma^2 / s on average, for example 0.05 nT for 50 nT in
50 uT. `calibration.ellipsoid` corrects that, these factors do not.

Source: Gebre-Egziabher, Elkaim, Powell, Parkinson, A non-linear, two-step estimation algorithm for calibrating
solid-state strapdown magnetometers.
"""
# ruff: noqa: N802, N803 - names of GTSAM

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from navsense.core.errors import FactorError
from navsense.core.typing import FloatArray
from navsense.factors.arguments import Numbers, validate_positive, validate_vector, warn_if_units_differ
from navsense.factors.base import Factor
from navsense.factors.variables import vector_variable

_ORIGIN = (0.0, 0.0, 0.0)


@final
class MagnitudeFactor(Factor):
    """The bias from one measurement, attitude unknown: the readings less the bias lie on a sphere.

    >>> factor = ns.factors.MagnitudeFactor(0, (31.0, 0.0, 40.0), 50.0)
    >>> factor.evaluateError((1.0, 0.0, 0.0))  # the bias
    array([0.])
    """

    variables = (vector_variable("bias", 3),)

    def __init__(self, key: int, measured: object, strength: object, model: object = None) -> None:
        """Store the measurement and the field strength.

        key: of the bias (3,).
        measured: reading (3,), sensor frame.
        strength: of the field, in the unit of the reading.
        model: noise with one row, see `make_noise`.

        Raises `FactorError` for a wrong shape or an invalid number.
        """
        self._measured = validate_vector("measured", measured, 3)
        self._strength = validate_positive("strength", strength)
        warn_if_units_differ("MagnitudeFactor", self._strength, self._measured, _ORIGIN)
        super().__init__((key,), 1, model)

    def evaluateError(self, bias: object, H: FloatArray | None = None) -> FloatArray:
        """Return e (1,) at a bias (3,). If H (1, 3) is given, fill it."""
        return self._evaluate((bias,), (H,))

    def _subtract_bias(self, bias: Numbers) -> Numbers:
        return tuple(m - b for m, b in zip(self._measured, bias, strict=True))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        return (math.hypot(*self._subtract_bias(values[0])) - self._strength,)

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Numbers]]:
        return ((tuple(-part for part in _unit(self._subtract_bias(values[0]))),),)

    def _data(self) -> Numbers:
        return (*self._measured, self._strength)


@final
class MagnitudeSoftIronFactor(Factor):
    """Soft iron and bias from one measurement, attitude unknown: the readings lie on an ellipsoid.

    >>> factor = ns.factors.MagnitudeSoftIronFactor(0, 1, (31.0, 0.0, 40.0), 50.0)
    >>> factor.evaluateError((1.0, 0.0, 0.0, 1.0, 0.0, 1.0), (1.0, 0.0, 0.0))  # xx xy xz yy yz zz, and the bias
    array([0.])
    """

    variables = (vector_variable("softIron", 6), vector_variable("bias", 3))

    def __init__(self, key1: int, key2: int, measured: object, strength: object, model: object = None) -> None:
        """Store the measurement and the field strength. key1 is of the soft iron (6,), key2 of the bias (3,)."""
        self._measured = validate_vector("measured", measured, 3)
        self._strength = validate_positive("strength", strength)
        warn_if_units_differ("MagnitudeSoftIronFactor", self._strength, self._measured, _ORIGIN)
        super().__init__((key1, key2), 1, model)

    def evaluateError(
        self, softIron: object, bias: object, H1: FloatArray | None = None, H2: FloatArray | None = None
    ) -> FloatArray:
        """Return e (1,) at soft iron xx xy xz yy yz zz and a bias (3,). Fill H1 (1, 6) and H2 (1, 3) if given."""
        return self._evaluate((softIron, bias), (H1, H2))

    def _field(self, iron: Numbers, bias: Numbers) -> tuple[FloatArray, FloatArray]:
        """Return S^-1 and the field S^-1 (m - b) in the sensor frame."""
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
        product = np.outer(w, v)
        symmetric = product + product.T - np.diag(np.diag(product))
        return -symmetric[np.triu_indices(3)][None], -w[None]

    def _data(self) -> Numbers:
        return (*self._measured, self._strength)


@final
class MagnitudePrior(Factor):
    """The known strength of an unknown field, from a map or a field model, as a prior for `MagFactor2`.

    >>> prior = ns.factors.MagnitudePrior(0, 50.0)
    >>> prior.evaluateError((30.0, 0.0, 40.0))  # the field
    array([0.])
    """

    variables = (vector_variable("nM", 3),)

    def __init__(self, key: int, strength: object, model: object = None) -> None:
        """Store the strength. key: of the field n_M (3,). model: noise with one row, see `make_noise`."""
        self._strength = validate_positive("strength", strength)
        super().__init__((key,), 1, model)

    def evaluateError(self, nM: object, H: FloatArray | None = None) -> FloatArray:
        """Return e (1,) at a field (3,). If H (1, 3) is given, fill it."""
        return self._evaluate((nM,), (H,))

    def _residual(self, *values: Numbers) -> Sequence[float]:
        return (math.hypot(*values[0]) - self._strength,)

    def _jacobians(self, *values: Numbers) -> Sequence[Sequence[Numbers]]:
        return ((_unit(values[0]),),)

    def _data(self) -> Numbers:
        return (self._strength,)

    def _make_native(self, library: Any, model: Any) -> Any:
        make = vars(library).get("VectorNormFactor3")
        # without a noise model, GTSAM ends the process when it prints the factor
        return make and make(self._keys[0], self._strength, model or library.noiseModel.Unit.Create(1))


def _unit(v: Numbers) -> Numbers:
    """Return v / |v|, zeros for a vector of length zero."""
    length = math.hypot(*v)
    return tuple(part / length for part in v) if length > 0.0 else _ORIGIN
