"""Maximum-likelihood fit of scale, soft iron, direction and bias to readings with known attitude.

    m = A R_ws^-1 f + b + noise      A = scale soft_iron,  |f| = 1,  normal noise with one covariance for all readings
      = Theta z                      Theta[a, 3 k + j] = A[a, j] f[k],  Theta[a, 9] = b[a],  z = (R_ws row by row, 1)

The sum of squared residuals is [-Theta 1] U_0 [-Theta 1]', where U_0 are the Gram sums (`_gram_sums`). The cost of a
fit is therefore independent of the number of readings. For a given f, the model is linear in A and b. If f is unknown,
the best of 128 directions over a half sphere starts the Gauss-Newton iteration. (A and f change sign together.)

A step changes b by scale beta, A by the factor exp(l) (1 + X) with a traceless X, and f by B tau in its tangent plane.
beta, l, tau and X are fractions of the field and angles in rad. Residuals are weighted with the inverse of their own
covariance S. The covariance of the parameters is that of weighted least squares, (H^-1 J'W S W J H^-1), which holds
for any weights. S is estimated from m residual vectors. The mean of the inverse of a Wishart matrix of three axes is
larger than the inverse of the mean by m / (m - 4). The covariance is multiplied by this factor, so that squared errors
relative to it are right for few readings too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from navsense.core.typing import FloatArray, Vectors
from navsense.factors.geometry import tangent_basis_python

DIRECTIONS: Final = 128
"""Start directions over a half sphere: one within 11 degrees of any direction."""

RIDGE: Final = 1e-12
"""Added to the information matrix, so that a singular one has a start too."""

MIN_SCALE: Final = 1e-9
"""Smallest scale of a fit, relative to the standard deviation of the readings."""

MAX_STEPS: Final = 30
"""Largest number of Gauss-Newton steps."""

MAX_HALVINGS: Final = 8
"""Largest number of halvings of a step that increases the loss."""

CONVERGED: Final = 1e-10
"""Squared length of the last step, in standard deviations of the result."""

ROUNDING: Final = 1e-15
"""Rounding error of a residual variance, relative to the mean square of the readings."""

PRIOR_READINGS: Final = 20.0
"""Weight of the prior assumption of equal noise on all axes, in readings."""

WEIGHT_ROUNDS: Final = 4
"""Number of updates of the weights from the residuals."""


def _traceless_basis() -> FloatArray:
    """Return an orthonormal basis (8, 3, 3) of the traceless matrices."""
    basis = np.zeros((8, 3, 3))
    for row, (i, j) in enumerate(((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))):
        basis[row, i, j] = 1.0
    basis[6] = np.diag((1.0, -1.0, 0.0)) / np.sqrt(2.0)
    basis[7] = np.diag((1.0, 1.0, -2.0)) / np.sqrt(6.0)
    return basis


TRACELESS: Final = _traceless_basis()


@dataclass(frozen=True)
class SecondMoments:
    """U_0 per reading: gram (10, 10) of z, cross (10, 3) of z and m, square (3, 3) of m. `size` is the unit of m."""

    gram: FloatArray
    cross: FloatArray
    square: FloatArray
    count: int
    size: float

    @classmethod
    def from_products(cls, products: FloatArray, count: int) -> SecondMoments:
        """Return the moments from U_0 (13, 13) of `count` readings. `size` is their rms deviation, NaN on overflow."""
        square = products[10:, 10:] / count
        mean = products[9, 10:] / count
        with np.errstate(all="ignore"):
            size = float(np.sqrt(np.trace(square - np.outer(mean, mean)) / 3.0))
            return cls(products[:10, :10] / count, products[:10, 10:] / count / size, square / size**2, count, size)

    @property
    def variance(self) -> float:
        """The mean squared deviation of m from its mean, summed over three axes."""
        mean = self.cross[9]
        return float(np.trace(self.square) - mean @ mean)


@dataclass(frozen=True)
class AttitudeFit:
    """Parameters A (3, 3), f (3,), b (3,) in units of `SecondMoments.size`, and which of them are unknown."""

    iron: FloatArray
    direction: FloatArray
    bias: FloatArray
    seeks_direction: bool
    seeks_iron: bool

    @property
    def scale(self) -> float:
        """The cube root of |det A|, at least `MIN_SCALE`."""
        return max(float(np.cbrt(abs(np.linalg.det(self.iron)))), MIN_SCALE)

    @property
    def size(self) -> int:
        """The number of unknown parameters."""
        return 4 + 2 * self.seeks_direction + 8 * self.seeks_iron

    @property
    def theta(self) -> FloatArray:
        """Theta (3, 10)."""
        return _theta(self.iron, self.direction, self.bias)

    @property
    def contrast(self) -> FloatArray:
        """[-Theta 1] (3, 13): times u, it gives the residuals."""
        return np.hstack((-self.theta, np.eye(3)))

    def with_positive_determinant(self) -> AttitudeFit:
        """Return (-A, -f) if f is unknown and det A < 0: the product is the same."""
        if not self.seeks_direction or np.linalg.det(self.iron) >= 0.0:
            return self
        return replace(self, iron=-self.iron, direction=-self.direction)

    def slopes(self) -> FloatArray:
        """Return the derivatives (n, 3, 10) of Theta by beta, l, tau and X."""
        out = np.zeros((self.size, 3, 10))
        out[:3, :, 9] = self.scale * np.eye(3)
        products = np.empty((self.size - 3, 3, 3, 3))  # changes of A times f, and A times changes of f, at [n, a, k, j]
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
    """Return the tangent basis (3, 2) of a direction, that of the factors."""
    basis = tangent_basis_python(*direction.tolist())
    return np.array((basis[:3], basis[3:])).T


def residual_covariance(sums: SecondMoments, fit: AttitudeFit) -> FloatArray:
    """Return the mean of r r' (3, 3) of the residuals, in units of size squared."""
    theta = fit.theta
    mixed = theta @ sums.cross
    return np.asarray(sums.square - mixed - mixed.T + theta @ sums.gram @ theta.T)


def fisher_information(slopes: FloatArray, gram: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the information matrix (n, n). slopes: (n, 3, 10). gram: (10, 10). weight: (3, 3)."""
    count = slopes.shape[0]
    weighted = weight @ slopes @ gram
    return np.asarray(weighted.reshape(count, -1) @ slopes.reshape(count, -1).T)


def _inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a symmetric matrix (n, n). Eigenvalues below the rounding error count as rounding error."""
    values, axes = np.linalg.eigh(matrix)
    return np.asarray((axes / np.maximum(values, np.finfo(np.float64).eps * values[-1])) @ axes.T)


def _linear_fits(sums: SecondMoments, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (A | b) (n, 3, 4) for each direction (n, 3), and the explained mean square (n,) of the readings."""
    selection = np.zeros((directions.shape[0], 4, 10))
    selection[:, :3, :9] = (directions[:, None, :, None] * np.eye(3)[None, :, None, :]).reshape(-1, 3, 9)
    selection[:, 3, 9] = 1.0
    gram = selection @ sums.gram @ selection.transpose(0, 2, 1)
    cross = selection @ sums.cross
    solutions = np.linalg.solve(gram + RIDGE * np.eye(4), cross)
    return np.asarray(solutions.transpose(0, 2, 1)), np.asarray(np.sum(solutions * cross, axis=(1, 2)))


def initial_fit(sums: SecondMoments, direction: FloatArray | None, *, soft_iron: bool) -> AttitudeFit:
    """Return the start of the iteration. `direction` (3,) is None if it is unknown."""
    if soft_iron:
        directions = half_sphere(DIRECTIONS) if direction is None else direction[None, :]
        solutions, explained = _linear_fits(sums, directions)
        best = int(np.argmax(explained))
        return AttitudeFit(
            solutions[best, :, :3], directions[best], solutions[best, :, 3], direction is None, soft_iron
        )
    axes = np.eye(3) if direction is None else direction[None, :]
    slopes = np.array(
        [_theta(np.eye(3), f, np.zeros(3)) for f in axes] + [_theta(np.zeros((3, 3)), axes[0], b) for b in np.eye(3)]
    )
    gradient = np.tensordot(slopes, sums.cross, ((1, 2), (1, 0)))
    information = fisher_information(slopes, sums.gram, np.eye(3)) + RIDGE * np.eye(len(slopes))
    parameters = np.asarray(np.linalg.solve(information, gradient))
    bias, product = parameters[-3:], parameters[:-3]
    if direction is not None:
        return AttitudeFit(product[0] * np.eye(3), direction, bias, seeks_direction=False, seeks_iron=False)
    length = max(float(np.linalg.norm(product)), np.finfo(np.float64).tiny)
    return AttitudeFit(length * np.eye(3), product / length, bias, seeks_direction=True, seeks_iron=False)


def _minimize(sums: SecondMoments, fit: AttitudeFit, weight: FloatArray) -> AttitudeFit:
    """Return the parameters at the minimum of the weighted squared residuals, by Gauss-Newton steps."""
    loss = float(np.sum(weight * residual_covariance(sums, fit)))
    for _ in range(MAX_STEPS):
        slopes = fit.slopes()
        residual = (sums.cross - sums.gram @ fit.theta.T) @ weight
        gradient = np.tensordot(slopes, residual, ((1, 2), (1, 0)))
        step = _inverse(fisher_information(slopes, sums.gram, weight)) @ gradient
        squared_length = sums.count * float(step @ gradient)  # in standard deviations
        step *= min(1.0, 0.5 / max(float(np.linalg.norm(step)), 0.5))  # where the linear model is valid
        for _ in range(MAX_HALVINGS):
            trial = fit.apply_step(step)
            trial_loss = float(np.sum(weight * residual_covariance(sums, trial)))
            if trial_loss <= loss or squared_length < CONVERGED:
                break
            step *= 0.5
        if trial_loss > loss and squared_length >= CONVERGED:  # no decrease above the rounding error
            break
        fit, loss = trial, trial_loss
        if squared_length < CONVERGED:
            break
    return fit


def noise_covariance(sums: SecondMoments, fit: AttitudeFit) -> FloatArray:
    """Return the unbiased covariance (3, 3) of the residuals, at least the rounding error."""
    degrees_of_freedom = sums.count - fit.size / 3.0
    values, axes = np.linalg.eigh(residual_covariance(sums, fit) * (sums.count / degrees_of_freedom))
    floor = ROUNDING * float(np.trace(sums.square))
    return np.asarray((axes * np.maximum(values, floor)) @ axes.T)


def _weight(sums: SecondMoments, noise: FloatArray) -> FloatArray:
    """Return the inverse (3, 3) of the covariance of the residuals, with the prior of equal noise on all axes."""
    equal = np.eye(3) * np.trace(noise) / 3.0
    return np.asarray(np.linalg.inv((sums.count * noise + PRIOR_READINGS * equal) / (sums.count + PRIOR_READINGS)))


def refine_fit(sums: SecondMoments, fit: AttitudeFit) -> tuple[AttitudeFit, FloatArray, FloatArray]:
    """Return the most likely parameters, their covariance (n, n), and the noise covariance (3, 3), in units of size."""
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


def half_sphere(count: int) -> Vectors:
    """Return unit vectors (n, 3) evenly distributed over a half sphere: a spiral with the golden angle."""
    number = np.arange(count)
    z = 1.0 - (number + 0.5) / count
    angle = number * (math.pi * (3.0 - math.sqrt(5.0)))
    radius = np.sqrt(1.0 - z * z)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), z])
