"""Maximum likelihood of scale, soft iron, direction and bias from the statistics of readings with known attitude.

    m = A R_ws^-1 f + b + noise      A = scale soft_iron,  |f| = 1,  noise normal with one covariance for all readings
      = Theta z                      Theta[a, 3 k + j] = A[a, j] f[k],  Theta[a, 9] = b[a],  z = (R_ws row by row, 1)

so that the sum of all squared residuals is [-Theta 1] U_0 [-Theta 1]' (`_statistics`) whatever A, f and b: fitting
costs the same for a thousand readings and for a million. With f given, A and b are linear; where it is not, the best of
some hundred directions over the half sphere is where Gauss-Newton starts (A and f change sign together).

A step moves b by scale beta, A by the factor exp(l) (1 + X) with X without trace, f by B tau in its tangent plane:
beta, l, tau, X are fractions of the field and radians. Residuals are weighted with the inverse of their own covariance,
estimated from them; the covariance of the parameters is that of weighted least squares with the residuals' covariance
(H^-1 J'W S W J H^-1), right whatever the weights. S, of m residual vectors, is itself by chance: the inverse of a
Wishart matrix of three axes is m / (m - 4) times too large on average, by which the covariance is made larger, so that
an error squared over it is as large as it says for few readings too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from navsense.calibration._directions import half_sphere
from navsense.factors.geometry import tangent
from navsense.typing import FloatArray

DIRECTIONS: Final = 128
"""Directions over half a sphere: within 11 degrees of any."""

RIDGE: Final = 1e-12
"""Added to the information of what a motion may not tell, so that a start is found all the same."""

MIN_SCALE: Final = 1e-9
"""Scale of a fit that sees no field, in multiples of the readings' deviation."""

MAX_STEPS: Final = 30
"""Steps of Gauss-Newton at most."""

MAX_HALVINGS: Final = 8
"""Times that a step is halved which leads up."""

CONVERGED: Final = 1e-10
"""Square of the last step, in standard deviations of the result."""

ROUNDING: Final = 1e-15
"""Share of the readings' mean square that a residual variance may be off by rounding."""

PRIOR_READINGS: Final = 20.0
"""Readings whose weight the assumption has that all axes are alike: for few readings their covariance is not known."""

WEIGHT_ROUNDS: Final = 4
"""Times that the weights are taken anew from the residuals."""


def _traceless() -> FloatArray:
    """Return the eight matrices (8, 3, 3) without trace, of length one and orthogonal."""
    basis = np.zeros((8, 3, 3))
    for row, (i, j) in enumerate(((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))):
        basis[row, i, j] = 1.0
    basis[6] = np.diag((1.0, -1.0, 0.0)) / np.sqrt(2.0)
    basis[7] = np.diag((1.0, 1.0, -2.0)) / np.sqrt(6.0)
    return basis


TRACELESS: Final = _traceless()


@dataclass(frozen=True)
class SecondMoments:
    """U_0 per reading: gram (10, 10) of z, cross (10, 3) of z and m, square (3, 3) of m, m in multiples of `size`."""

    gram: FloatArray
    cross: FloatArray
    square: FloatArray
    count: int
    size: float

    @classmethod
    def from_products(cls, products: FloatArray, count: int) -> SecondMoments:
        """Return the sums of U_0 (13, 13) over `count` readings; `size` is their deviation, NaN where it has none."""
        square = products[10:, 10:] / count
        mean = products[9, 10:] / count
        with np.errstate(all="ignore"):
            size = float(np.sqrt(np.trace(square - np.outer(mean, mean)) / 3.0))
            return cls(products[:10, :10] / count, products[:10, 10:] / count / size, square / size**2, count, size)

    @property
    def variance(self) -> float:
        """Return the mean square of m about its mean, all three axes together."""
        mean = self.cross[9]
        return float(np.trace(self.square) - mean @ mean)


@dataclass(frozen=True)
class AttitudeFit:
    """Parameters in units of `Sums.size`: A (3, 3), f (3,), b (3,), and which of them are sought."""

    iron: FloatArray
    direction: FloatArray
    bias: FloatArray
    seeks_direction: bool
    seeks_iron: bool

    @property
    def scale(self) -> float:
        """Return the cube root of A's determinant, as large as it is, never 0."""
        return max(float(np.cbrt(abs(np.linalg.det(self.iron)))), MIN_SCALE)

    @property
    def size(self) -> int:
        """Return how many parameters are sought."""
        return 4 + 2 * self.seeks_direction + 8 * self.seeks_iron

    @property
    def theta(self) -> FloatArray:
        """Return Theta (3, 10)."""
        return _theta(self.iron, self.direction, self.bias)

    @property
    def contrast(self) -> FloatArray:
        """Return [-Theta 1] (3, 13), which makes residuals of u."""
        return np.hstack((-self.theta, np.eye(3)))

    def with_positive_determinant(self) -> AttitudeFit:
        """Return A of positive determinant with f turned round: the same product, so far as f is sought."""
        if not self.seeks_direction or np.linalg.det(self.iron) >= 0.0:
            return self
        return replace(self, iron=-self.iron, direction=-self.direction)

    def slopes(self) -> FloatArray:
        """Return the derivatives of Theta (n, 3, 10) by beta, l, tau and X."""
        out = np.zeros((self.size, 3, 10))
        out[:3, :, 9] = self.scale * np.eye(3)
        products = np.empty((self.size - 3, 3, 3, 3))  # of A's changes and f's, at [n, a, k, j]
        products[0] = self.direction[None, :, None] * self.iron[:, None, :]
        first = 1
        if self.seeks_direction:
            products[1:3] = tangent_plane(self.direction).T[:, None, :, None] * self.iron[None, :, None, :]
            first = 3
        if self.seeks_iron:
            products[first:] = self.direction[None, None, :, None] * (self.iron @ TRACELESS)[:, :, None, :]
        out[3:, :, :9] = products.reshape(-1, 3, 9)
        return out

    def apply_step(self, step: FloatArray) -> AttitudeFit:
        """Return the parameters after a step (n,)."""
        iron, direction, change = self.iron * np.exp(step[3]), self.direction, step[4:]
        bias = self.bias + self.scale * step[:3]
        if self.seeks_direction:
            direction, change = direction + tangent_plane(direction) @ change[:2], change[2:]
            direction = direction / np.linalg.norm(direction)
        if self.seeks_iron:
            iron = iron @ (np.eye(3) + np.tensordot(change, TRACELESS, 1))
        return replace(self, iron=iron, direction=direction, bias=bias)


def _theta(iron: FloatArray, direction: FloatArray, bias: FloatArray) -> FloatArray:
    """Return Theta (3, 10) of A, f and b."""
    out = np.empty((3, 10))
    out[:, :9] = (direction[None, :, None] * iron[:, None, :]).reshape(3, 9)
    out[:, 9] = bias
    return out


def tangent_plane(direction: FloatArray) -> FloatArray:
    """Return two orthogonal unit vectors (3, 2) across a direction, those of the factors."""
    sides = tangent(*direction.tolist())
    return np.array((sides[:3], sides[3:])).T


def residual_covariance(sums: SecondMoments, fit: AttitudeFit) -> FloatArray:
    """Return the mean of the residuals' products (3, 3), in units of size squared."""
    theta = fit.theta
    mixed = theta @ sums.cross
    return np.asarray(sums.square - mixed - mixed.T + theta @ sums.gram @ theta.T)


def fisher_information(slopes: FloatArray, gram: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the sum over axes of the slopes' products (n, n): slopes (n, 3, 10), gram (10, 10), weight (3, 3)."""
    count = slopes.shape[0]
    weighted = weight @ slopes @ gram
    return np.asarray(weighted.reshape(count, -1) @ slopes.reshape(count, -1).T)


def _inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a symmetric matrix (n, n), no less than one whose eigenvalues are rounding."""
    values, axes = np.linalg.eigh(matrix)
    return np.asarray((axes / np.maximum(values, np.finfo(np.float64).eps * values[-1])) @ axes.T)


def _linear(sums: SecondMoments, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (A | b) (n, 3, 4) for each direction (n, 3), and how much of the readings' square it explains (n,)."""
    pick = np.zeros((directions.shape[0], 4, 10))
    pick[:, :3, :9] = (directions[:, None, :, None] * np.eye(3)[None, :, None, :]).reshape(-1, 3, 9)
    pick[:, 3, 9] = 1.0
    gram = pick @ sums.gram @ pick.transpose(0, 2, 1)
    cross = pick @ sums.cross
    found = np.linalg.solve(gram + RIDGE * np.eye(4), cross)
    return np.asarray(found.transpose(0, 2, 1)), np.asarray(np.sum(found * cross, axis=(1, 2)))


def initial_fit(sums: SecondMoments, direction: FloatArray | None, *, soft_iron: bool) -> AttitudeFit:
    """Return the parameters to start from: the direction (3,) given or sought, with soft iron or without."""
    if soft_iron:
        tried = half_sphere(DIRECTIONS) if direction is None else direction[None, :]
        found, explained = _linear(sums, tried)
        best = int(np.argmax(explained))
        return AttitudeFit(found[best, :, :3], tried[best], found[best, :, 3], direction is None, soft_iron)
    free = np.eye(3) if direction is None else direction[None, :]
    slopes = np.array(
        [_theta(np.eye(3), f, np.zeros(3)) for f in free] + [_theta(np.zeros((3, 3)), free[0], b) for b in np.eye(3)]
    )
    towards = np.tensordot(slopes, sums.cross, ((1, 2), (1, 0)))
    ridged = fisher_information(slopes, sums.gram, np.eye(3)) + RIDGE * np.eye(len(slopes))
    parameters = np.asarray(np.linalg.solve(ridged, towards))
    bias, product = parameters[-3:], parameters[:-3]
    if direction is not None:
        return AttitudeFit(product[0] * np.eye(3), direction, bias, seeks_direction=False, seeks_iron=False)
    length = max(float(np.linalg.norm(product)), np.finfo(np.float64).tiny)
    return AttitudeFit(length * np.eye(3), product / length, bias, seeks_direction=True, seeks_iron=False)


def _minimize(sums: SecondMoments, fit: AttitudeFit, weight: FloatArray) -> AttitudeFit:
    """Return the parameters at the least weighted square of the residuals."""
    loss = float(np.sum(weight * residual_covariance(sums, fit)))
    for _ in range(MAX_STEPS):
        slopes = fit.slopes()
        left = (sums.cross - sums.gram @ fit.theta.T) @ weight
        towards = np.tensordot(slopes, left, ((1, 2), (1, 0)))
        step = _inverse(fisher_information(slopes, sums.gram, weight)) @ towards
        ahead = sums.count * float(step @ towards)  # a step's square in standard deviations
        step *= min(1.0, 0.5 / max(float(np.linalg.norm(step)), 0.5))  # within the linear model's reach
        for _ in range(MAX_HALVINGS):
            trial = fit.apply_step(step)
            found = float(np.sum(weight * residual_covariance(sums, trial)))
            if found <= loss or ahead < CONVERGED:
                break
            step *= 0.5
        if found > loss and ahead >= CONVERGED:  # no way down that is more than rounding
            break
        fit, loss = trial, found
        if ahead < CONVERGED:
            break
    return fit


def noise_covariance(sums: SecondMoments, fit: AttitudeFit) -> FloatArray:
    """Return the covariance (3, 3) of the residuals, the parameters' share added and rounding taken for noise."""
    free = sums.count - fit.size / 3.0
    values, axes = np.linalg.eigh(residual_covariance(sums, fit) * (sums.count / free))
    floor = ROUNDING * float(np.trace(sums.square))
    return np.asarray((axes * np.maximum(values, floor)) @ axes.T)


def _weight(sums: SecondMoments, noise: FloatArray) -> FloatArray:
    """Return the inverse (3, 3) of the residuals' covariance, drawn towards equal axes by `PRIOR` readings."""
    alike = np.eye(3) * np.trace(noise) / 3.0
    return np.asarray(np.linalg.inv((sums.count * noise + PRIOR_READINGS * alike) / (sums.count + PRIOR_READINGS)))


def refine_fit(sums: SecondMoments, fit: AttitudeFit) -> tuple[AttitudeFit, FloatArray, FloatArray]:
    """Return the most likely parameters, their covariance (n, n) and the residuals' (3, 3), in units of size."""
    for _ in range(WEIGHT_ROUNDS):
        fit = _minimize(sums, fit, _weight(sums, noise_covariance(sums, fit)))
    fit = fit.with_positive_determinant()
    noise = noise_covariance(sums, fit)
    weight = _weight(sums, noise)
    slopes = fit.slopes()
    inverse = _inverse(fisher_information(slopes, sums.gram, weight))
    middle = fisher_information(slopes, sums.gram, weight @ noise @ weight)
    vectors = sums.count - fit.size / 3.0
    chance = vectors / (vectors - 4.0)
    return fit, np.asarray(inverse @ middle @ inverse * (chance / sums.count)), noise
