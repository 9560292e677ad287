"""Noise models of factors, in the frame of the sensor.

    whitened = R e,    R' R = covariance^-1,    error = |R e|^2 / 2        or the loss of a robust model at |R e|

A sigma, n sigmas or a covariance (n, n), in the unit of the factor, make a `Gaussian`. Noise models of GTSAM, also
robust ones, are used as they are. None leaves the residual unweighted. If the sensor is rotated against the frame of
the residual (`body_P_sensor`), the noise is rotated too: R becomes R rotation'. GTSAM leaves that to the user.

GTSAM turns a sigma below 1e-8 into a hard constraint and drops correlations below 1e-9, which makes models in tesla
wrong. A `Gaussian` does neither. It rejects sigmas that are not positive.

Source: GTSAM's `linear/NoiseModel.cpp`. The tests compare with GTSAM 4.3.0.
"""
# ruff: noqa: SLF001 - one model is compared with another of its kind

from __future__ import annotations

import contextlib
import io
from typing import Any, TypeAlias, final

import numpy as np

from navsense.core.errors import FactorError
from navsense.core.typing import FloatArray
from navsense.factors.arguments import validate_array
from navsense.factors.gtsam_support import format_named_matrix, format_named_vector, is_gtsam_noise, require_gtsam

_PREFIX = "  noise model: "


@final
class UnweightedNoise:
    """No noise model: the residual is not weighted."""

    model = None

    def whiten(self, residual: FloatArray) -> FloatArray:
        """Return the residual."""
        return residual

    def loss(self, residual: FloatArray) -> float:
        """Return half the squared length of the residual."""
        return 0.5 * float(residual @ residual)

    def rotate(self, rotation: FloatArray) -> UnweightedNoise:
        """Return this noise."""
        return self

    def equals(self, other: FactorNoise, tolerance: float) -> bool:
        """Return True if the other one has no model either."""
        return other.model is None

    def describe(self) -> str:
        """Return an empty text, as GTSAM prints."""
        return ""

    def to_gtsam(self) -> Any:
        """Return None, which GTSAM accepts."""
        return None


@final
class Gaussian:
    """Gaussian noise with n rows. R (n, n) is its square root information matrix: upper triangular, R' R = C^-1."""

    def __init__(self, root: FloatArray) -> None:
        """Store R. Its diagonal must be positive."""
        self._root = root
        diagonal = np.diag(root)
        self._sigmas = 1.0 / diagonal if not (root - np.diag(diagonal)).any() else None

    @property
    def model(self) -> Gaussian:
        """This noise."""
        return self

    def dim(self) -> int:
        """Return the number of rows."""
        return len(self._root)

    def sigmas(self) -> FloatArray:
        """Return the standard deviations of the rows (n,)."""
        return np.sqrt(np.diag(self.covariance())) if self._sigmas is None else self._sigmas.copy()

    def covariance(self) -> FloatArray:
        """Return the covariance (n, n)."""
        inverse = np.linalg.inv(self._root)
        return np.asarray(inverse @ inverse.T)

    def whiten(self, residual: FloatArray) -> FloatArray:
        """Return R e."""
        return np.asarray(self._root @ residual)

    def loss(self, residual: FloatArray) -> float:
        """Return half the squared length of R e."""
        whitened = self._root @ residual
        return 0.5 * float(whitened @ whitened)

    def isotropic(self) -> bool:
        """Return True if all rows have the same sigma and no correlation."""
        return self._sigmas is not None and bool((self._sigmas == self._sigmas[0]).all())

    def rotate(self, rotation: FloatArray) -> Gaussian:
        """Return the noise in another frame: R rotation', made triangular again without a change of lengths."""
        return self if self.isotropic() else Gaussian(triangularize(self._root @ rotation.T))

    def equals(self, other: FactorNoise, tolerance: float) -> bool:
        """Return True if sigmas, or R of correlated rows, are equal within a tolerance."""
        if not isinstance(other, Gaussian):
            return other.model is not None and other.equals(self, tolerance)
        if self.dim() != other.dim():
            return False
        if self._sigmas is not None and other._sigmas is not None:
            return bool((abs(self._sigmas - other._sigmas) <= tolerance).all())
        return bool((abs(self._root - other._root) <= tolerance).all())

    def describe(self) -> str:
        """Return the text of GTSAM for a unit, isotropic, diagonal or full model."""
        if self._sigmas is None:
            return format_named_matrix(f"{_PREFIX}Gaussian ", self._root.tolist())
        if not self.isotropic():
            return format_named_vector(f"{_PREFIX}diagonal sigmas ", self._sigmas.tolist())
        if self._is_unit():
            return f"{_PREFIX}unit ({self.dim()}) \n"
        return f"isotropic dim={self.dim()} sigma={self._sigmas[0]:g}\n"

    def to_gtsam(self) -> Any:
        """Return a GTSAM model of the same kind, made without the thresholds for small numbers."""
        models = require_gtsam("a noise model of GTSAM").noiseModel
        if self._sigmas is None:
            return models.Gaussian.SqrtInformation(self._root, False)
        if not self.isotropic():
            return models.Diagonal.Sigmas(self._sigmas, False)
        if self._is_unit():
            return models.Unit.Create(self.dim())
        return models.Isotropic.Sigma(self.dim(), float(self._sigmas[0]))

    def __repr__(self) -> str:
        """Return the text of GTSAM for the model alone."""
        return self.describe().removeprefix(_PREFIX).rstrip()

    def _is_unit(self) -> bool:
        return self._sigmas is not None and bool(abs(self._sigmas[0] - 1.0) < 1e-9)


@final
class GtsamNoise:
    """A noise model of GTSAM, robust or not."""

    def __init__(self, model: Any) -> None:
        """Store the model."""
        self.model = model

    def whiten(self, residual: FloatArray) -> FloatArray:
        """Return R e; for a robust model multiplied by the square root of its weight, as in GTSAM."""
        return np.asarray(self.model.whiten(residual))

    def loss(self, residual: FloatArray) -> float:
        """Return the loss of the model at the squared length of R e."""
        return float(self.model.loss(self.model.squaredMahalanobisDistance(residual)))

    def rotate(self, rotation: FloatArray) -> GtsamNoise:
        """Return the noise in another frame. A robust loss depends on the length of R e, which no rotation changes."""
        models = require_gtsam("a noise model of GTSAM").noiseModel
        robust = isinstance(self.model, models.Robust)
        inner = self.model.noise() if robust else self.model
        if isinstance(inner, models.Isotropic):
            return self
        root = models.Gaussian.SqrtInformation(triangularize(inner.R() @ rotation.T), False)
        return GtsamNoise(models.Robust.Create(self.model.robust(), root) if robust else root)

    def equals(self, other: FactorNoise, tolerance: float) -> bool:
        """Return True if sigmas are equal within a tolerance, and robust estimators have equal type and constants."""
        robust = require_gtsam("a noise model of GTSAM").noiseModel.Robust
        mine, theirs = self.model, other.to_gtsam()
        if theirs is None or isinstance(mine, robust) != isinstance(theirs, robust):
            return False
        if isinstance(mine, robust):
            own, others = mine.robust(), theirs.robust()
            if own.serialize() != others.serialize() or type(own) is not type(others):
                return False
            mine, theirs = mine.noise(), theirs.noise()
        return bool(mine.equals(theirs, tolerance))

    def describe(self) -> str:
        """Return the text that GTSAM prints."""
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.model.print(_PREFIX)
        return output.getvalue()

    def to_gtsam(self) -> Any:
        """Return the GTSAM model."""
        return self.model


FactorNoise: TypeAlias = UnweightedNoise | Gaussian | GtsamNoise
"""Noise of a residual. `model` is the noise model as the user gave it."""


def triangularize(root: FloatArray) -> FloatArray:
    """Return the upper triangular matrix with a positive diagonal that has the same R' R."""
    triangle: FloatArray = np.triu(np.linalg.qr(root).R)
    return triangle * np.where(np.diag(triangle) < 0.0, -1.0, 1.0)[:, None]


def make_noise(model: object, rows: int) -> FactorNoise:
    """Return the noise of a residual with `rows` rows.

    model: one sigma, `rows` sigmas, a covariance (rows, rows), a noise model of GTSAM other than a constraint, or None.
    """
    if model is None:
        return UnweightedNoise()
    if isinstance(model, Gaussian) or is_gtsam_noise(model):
        return _validate_noise_model(model, rows)
    allowed = f"must be one sigma, {rows} sigmas, a covariance ({rows}, {rows}), a noise model of GTSAM or None"
    values = validate_array("model", model, [(), (rows,), (rows, rows)], allowed)
    if values.ndim == 2:
        return _gaussian_from_covariance(values)
    return Gaussian(np.diag(1.0 / _validate_sigmas(np.broadcast_to(values, (rows,)))))


def _gaussian_from_covariance(covariance: FloatArray) -> Gaussian:
    sigmas = _validate_sigmas(np.sqrt(np.maximum(np.diag(covariance), 0.0)))
    if not (covariance - np.diag(np.diag(covariance))).any():
        return Gaussian(np.diag(1.0 / sigmas))
    correlation = covariance / np.outer(sigmas, sigmas)
    if not (abs(correlation - correlation.T) <= 1e-9).all():
        raise FactorError("covariance of the noise", covariance.tolist(), allowed="must be symmetric")
    try:  # correlation = U U' with U upper triangular: Cholesky from the last row upwards
        backwards = np.linalg.cholesky(correlation[::-1, ::-1])[::-1, ::-1]
    except np.linalg.LinAlgError as cause:
        raise FactorError(
            "covariance of the noise", covariance.tolist(), allowed="must be positive definite"
        ) from cause
    return Gaussian(np.triu(np.linalg.inv(backwards)) / sigmas)


def _validate_noise_model(model: Any, rows: int) -> FactorNoise:
    """Return the noise of a `Gaussian` or of a noise model of GTSAM. Raises `FactorError` for an unsuitable model."""
    if model.dim() != rows:
        allowed = f"must be {rows}, the rows of the residual"
        raise FactorError("dimension of the noise model", model.dim(), allowed=allowed)
    if isinstance(model, Gaussian):
        return model
    models = require_gtsam("a noise model of GTSAM").noiseModel
    inner = model.noise() if isinstance(model, models.Robust) else model
    if inner.isConstrained():
        remedy = "a magnetometer has noise; GTSAM makes a constraint of a sigma below 1e-8: give sigmas as numbers"
        raise FactorError("noise model", str(model), allowed="must not be a constraint", remedy=remedy)
    _validate_sigmas(np.asarray(inner.sigmas()))
    return GtsamNoise(model)


def _validate_sigmas(sigmas: FloatArray) -> FloatArray:
    """Return standard deviations. Raises `FactorError` unless they and their inverses are finite and positive."""
    with np.errstate(divide="ignore", over="ignore"):
        if (np.isfinite(sigmas) & (sigmas > 0.0) & np.isfinite(1.0 / sigmas)).all():
            return sigmas
    raise FactorError("sigma of the noise", sigmas.tolist(), allowed="must be finite and > 0")
