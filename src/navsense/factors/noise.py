"""The noise of a factor, in the frame of the residual's instrument.

    whitened = R e,    R' R = covariance^-1,    error = |R e|^2 / 2        or a robust model's loss of |R e|

Numbers make a `Gaussian` (a sigma, n sigmas, or a covariance n x n, in the factor's unit); GTSAM's models, robust ones
among them, are kept as they are; None leaves the residual unweighted. An instrument that is turned against the frame of
the residual (`body_P_sensor`) has its noise turned with it: R becomes R rotation', which GTSAM leaves to its user.
GTSAM makes a hard constraint of a sigma below 1e-8 and forgets correlations below 1e-9, so that a model in tesla is not
what was asked for. A `Gaussian` does neither, and refuses what is not positive.
Source: GTSAM's `linear/NoiseModel.cpp`, held against GTSAM 4.3.0 in the tests.
"""
# ruff: noqa: SLF001 - one model is compared with another of its kind

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np

from navsense.errors import FactorError
from navsense.factors.arguments import array
from navsense.factors.library import gtsam_for, is_noise
from navsense.factors.printed import matrix_text, vector_text
from navsense.typing import FloatArray

_PREFIX = "  noise model: "


class Noise(Protocol):
    """What a factor asks of its noise; `given` is the model as the user gave it."""

    @property
    def given(self) -> Any:
        """Return the model as it was given."""

    def whitened(self, residual: FloatArray) -> FloatArray:
        """Return the residual in units of its noise."""

    def loss(self, residual: FloatArray) -> float:
        """Return the negative logarithm of the residual's likelihood, less a constant."""

    def turned(self, rotation: FloatArray) -> Noise:
        """Return the noise in another frame, rotation from the old one to the new."""

    def same(self, other: Noise, tolerance: float) -> bool:
        """Tell whether two are equal within a tolerance on sigmas or on R."""

    def text(self) -> str:
        """Return what GTSAM prints of it in a factor."""

    def to_gtsam(self) -> Any:
        """Return GTSAM's model of it."""


@final
class Absent:
    """No noise model: the residual counts as it is."""

    given = None

    def whitened(self, residual: FloatArray) -> FloatArray:
        """Return the residual."""
        return residual

    def loss(self, residual: FloatArray) -> float:
        """Return half the square of the residual."""
        return 0.5 * float(residual @ residual)

    def turned(self, rotation: FloatArray) -> Noise:
        """Return itself."""
        return self

    def same(self, other: Noise, tolerance: float) -> bool:
        """Tell whether the other is none either."""
        return other.given is None

    def text(self) -> str:
        """Return nothing, as GTSAM prints."""
        return ""

    def to_gtsam(self) -> Any:
        """Return None, which GTSAM takes."""
        return None


@final
class Gaussian:
    """Gaussian noise of n rows by its square root information R (n, n), upper triangular, R' R = covariance^-1."""

    def __init__(self, root: FloatArray) -> None:
        """Keep R, whose diagonal is positive."""
        self._root = root
        diagonal = np.diag(root)
        self._sigmas = 1.0 / diagonal if not (root - np.diag(diagonal)).any() else None

    @property
    def given(self) -> Gaussian:
        """Return itself."""
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
        product: FloatArray = inverse @ inverse.T
        return product

    def whitened(self, residual: FloatArray) -> FloatArray:
        """Return R e."""
        product: FloatArray = self._root @ residual
        return product

    def loss(self, residual: FloatArray) -> float:
        """Return half the square of R e."""
        whitened = self._root @ residual
        return 0.5 * float(whitened @ whitened)

    def isotropic(self) -> bool:
        """Tell whether all directions are alike."""
        return self._sigmas is not None and bool((self._sigmas == self._sigmas[0]).all())

    def turned(self, rotation: FloatArray) -> Noise:
        """Return the noise in another frame; R rotation', made triangular again, which leaves all lengths."""
        return self if self.isotropic() else Gaussian(upper(self._root @ rotation.T))

    def same(self, other: Noise, tolerance: float) -> bool:
        """Tell whether two are equal within a tolerance on sigmas, or on R where rows are correlated."""
        if not isinstance(other, Gaussian):
            return other.given is not None and other.same(self, tolerance)
        if self.dim() != other.dim():
            return False
        if self._sigmas is not None and other._sigmas is not None:
            return bool((abs(self._sigmas - other._sigmas) <= tolerance).all())
        return bool((abs(self._root - other._root) <= tolerance).all())

    def text(self) -> str:
        """Return GTSAM's text: unit, isotropic, diagonal or whole."""
        if self._sigmas is None:
            return matrix_text(f"{_PREFIX}Gaussian ", self._root.tolist())
        if not self.isotropic():
            return vector_text(f"{_PREFIX}diagonal sigmas ", self._sigmas.tolist())
        if self._is_unit():
            return f"{_PREFIX}unit ({self.dim()}) \n"
        return f"isotropic dim={self.dim()} sigma={self._sigmas[0]:g}\n"

    def to_gtsam(self) -> Any:
        """Return GTSAM's model of the same kind, without the thresholds that it would put on small numbers."""
        models = gtsam_for("a noise model of GTSAM").noiseModel
        if self._sigmas is None:
            return models.Gaussian.SqrtInformation(self._root, False)
        if not self.isotropic():
            return models.Diagonal.Sigmas(self._sigmas, False)
        if self._is_unit():
            return models.Unit.Create(self.dim())
        return models.Isotropic.Sigma(self.dim(), float(self._sigmas[0]))

    def __repr__(self) -> str:
        """Return GTSAM's text of the model alone."""
        return self.text().removeprefix(_PREFIX).rstrip()

    def _is_unit(self) -> bool:
        return self._sigmas is not None and bool(abs(self._sigmas[0] - 1.0) < 1e-9)


@final
class Foreign:
    """A noise model of GTSAM's, robust or not."""

    def __init__(self, model: Any) -> None:
        """Keep the model."""
        self._model = model

    @property
    def given(self) -> Any:
        """Return GTSAM's model."""
        return self._model

    def whitened(self, residual: FloatArray) -> FloatArray:
        """Return R e; of a robust model scaled by the root of its weight, as in GTSAM."""
        whitened: FloatArray = self._model.whiten(residual)
        return whitened

    def loss(self, residual: FloatArray) -> float:
        """Return the model's loss of the squared length of R e."""
        return float(self._model.loss(self._model.squaredMahalanobisDistance(residual)))

    def turned(self, rotation: FloatArray) -> Noise:
        """Return the noise in another frame; a robust loss goes by the length of R e, which no rotation alters."""
        models = gtsam_for("a noise model of GTSAM").noiseModel
        robust = isinstance(self._model, models.Robust)
        inner = self._model.noise() if robust else self._model
        if isinstance(inner, models.Isotropic):
            return self
        root = models.Gaussian.SqrtInformation(upper(inner.R() @ rotation.T), False)
        return Foreign(models.Robust.Create(self._model.robust(), root) if robust else root)

    def same(self, other: Noise, tolerance: float) -> bool:
        """Tell whether two are equal within a tolerance on sigmas; estimators by kind and constants."""
        robust = gtsam_for("a noise model of GTSAM").noiseModel.Robust
        mine, theirs = self._model, other.to_gtsam()
        if theirs is None or isinstance(mine, robust) != isinstance(theirs, robust):
            return False
        if isinstance(mine, robust):
            if mine.robust().serialize() != theirs.robust().serialize():
                return False
            if type(mine.robust()) is not type(theirs.robust()):
                return False
            mine, theirs = mine.noise(), theirs.noise()
        return bool(mine.equals(theirs, tolerance))

    def text(self) -> str:
        """Return what GTSAM prints."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self._model.print(_PREFIX)
        return printed.getvalue()

    def to_gtsam(self) -> Any:
        """Return GTSAM's model."""
        return self._model


def upper(root: FloatArray) -> FloatArray:
    """Return the upper triangular matrix of positive diagonal that has the same R' R."""
    triangle: FloatArray = np.triu(np.linalg.qr(root).R)
    return triangle * np.where(np.diag(triangle) < 0.0, -1.0, 1.0)[:, None]


def noise_of(model: object, rows: int) -> Noise:
    """Return the noise of a residual of so many rows.

    model: a sigma, `rows` sigmas, a covariance (rows, rows), any noise model of GTSAM's but a constraint, or None.
    """
    if model is None:
        return Absent()
    if isinstance(model, Gaussian):
        _dimension(model.dim(), rows)
        return model
    if is_noise(model):
        return _foreign(model, rows)
    allowed = f"must be one sigma, {rows} sigmas, a covariance ({rows}, {rows}), a noise model of GTSAM or None"
    given = array("model", model, [(), (rows,), (rows, rows)], allowed)
    if given.ndim == 2:
        return _from_covariance(given)
    sigmas = np.broadcast_to(given, (rows,))
    _positive(sigmas)
    return Gaussian(np.diag(1.0 / sigmas))


def _from_covariance(covariance: FloatArray) -> Gaussian:
    sigmas = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    _positive(sigmas)
    if not (covariance - np.diag(np.diag(covariance))).any():
        return Gaussian(np.diag(1.0 / sigmas))
    correlation = covariance / np.outer(sigmas, sigmas)
    if not (abs(correlation - correlation.T) <= 1e-9).all():
        raise FactorError("covariance of the noise", covariance.tolist(), allowed="must be symmetric")
    try:  # correlation = U U' with U upper triangular, the Cholesky factor from the other corner
        backwards = np.linalg.cholesky(correlation[::-1, ::-1])[::-1, ::-1]
    except np.linalg.LinAlgError as cause:
        raise FactorError(
            "covariance of the noise", covariance.tolist(), allowed="must be positive definite"
        ) from cause
    return Gaussian(np.triu(np.linalg.inv(backwards)) / sigmas)


def _foreign(model: Any, rows: int) -> Noise:
    _dimension(model.dim(), rows)
    models = gtsam_for("a noise model of GTSAM").noiseModel
    inner = model.noise() if isinstance(model, models.Robust) else model
    if inner.isConstrained():
        remedy = "a magnetometer has noise; GTSAM makes a constraint of a sigma below 1e-8: give sigmas as numbers"
        raise FactorError("noise model", str(model), allowed="must not be a constraint", remedy=remedy)
    _positive(inner.sigmas())
    return Foreign(model)


def _dimension(dim: int, rows: int) -> None:
    if dim != rows:
        raise FactorError("dimension of the noise model", dim, allowed=f"must be {rows}, the rows of the residual")


def _positive(sigmas: Sequence[float] | FloatArray) -> None:
    sigmas = np.asarray(sigmas)
    with np.errstate(divide="ignore", over="ignore"):
        if (np.isfinite(sigmas) & (sigmas > 0.0) & np.isfinite(1.0 / sigmas)).all():
            return
    raise FactorError("sigma of the noise", sigmas.tolist(), allowed="must be finite and > 0")
