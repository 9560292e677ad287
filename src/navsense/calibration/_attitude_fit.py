"""Maximum-likelihood fit of scale, soft iron, direction and bias to readings with known attitude.

    m = A R_ws^-1 f + b + noise      A = scale soft_iron,  |f| = 1,  normal noise with one covariance for all readings
      = Theta z                      Theta[a, 3 k + j] = A[a, j] f[k],  Theta[a, 9] = b[a],  z = (R_ws row by row, 1)

**Sums.** The fit needs sums over the readings only: one pass, and a few hundred numbers.

    z (10,)    u = (z, m - m_0) (13,)    U_k = sum over blocks of 8^k samples of v v', v = sum u

R_ws takes sensor to world coordinates. m_0 is the first reading (any unit); it preserves the digits of readings with a
large bias. U_0 is the Gram matrix of z and m: it determines every fit that is linear in z, with its residuals. U_k
gives the variance of the block sums of the residuals (`verdict`). Blocks are counted over all samples: the sums are
bitwise equal for a record that is split anywhere.

**Fit.** The sum of squared residuals is [-Theta 1] U_0 [-Theta 1]'. The cost of a fit is therefore independent of the
number of readings. For a given f, the model is linear in A and b. If f is unknown, the best of 128 directions over a
half sphere starts the Gauss-Newton iteration. (A and f change sign together.)

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

from navsense.calibration.verdict import BLOCK_FACTOR, BLOCK_LEVELS
from navsense.core.kernels import kernel
from navsense.core.rotation import to_matrix
from navsense.core.typing import FloatArray, Quaternions, Vectors
from navsense.factors.geometry import tangent_basis_python

SIZE: Final = 13
"""Length of u: nine numbers of the rotation, the constant 1, three of the reading."""

PADDED_SIZE: Final = 16
"""Columns of a row of u in memory, padded with zeros to full SIMD registers."""

TILE: Final = BLOCK_FACTOR * BLOCK_FACTOR
"""Rows in one product."""


@kernel
def _add_products(u: FloatArray, out: FloatArray) -> None:
    """Add the sum of u u' over the rows of a tile (n, 16) to `out` (16, 16), at least on and below the diagonal."""
    for i in range(SIZE):
        for j in range(0, i + 1, 4):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(u.shape[0]):
                x = u[k, i]
                a += x * u[k, j]
                b += x * u[k, j + 1]
                c += x * u[k, j + 2]
                d += x * u[k, j + 3]
            out[i, j] += a
            out[i, j + 1] += b
            out[i, j + 2] += c
            out[i, j + 3] += d


@kernel
def _add_blocks(u: FloatArray, out: FloatArray) -> None:
    """Write the sums over blocks of `BLOCK_FACTOR` rows of a tile (n, 16) to `out` (n / BLOCK_FACTOR, 16)."""
    for block in range(out.shape[0]):
        for j in range(PADDED_SIZE):
            total = 0.0
            for k in range(block * BLOCK_FACTOR, (block + 1) * BLOCK_FACTOR):
                total += u[k, j]
            out[block, j] = total


@kernel
def _write_rotation(w: float, x: float, y: float, z: float, u: FloatArray) -> None:
    """Write the rotation matrix of a quaternion of any length to u (16,), row by row, and the constant 1."""
    u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8] = to_matrix(w, x, y, z)
    u[9] = 1.0


@kernel
def _add_readings(
    field: Vectors, rotation: Quaternions, first: FloatArray, count: int, products: FloatArray, rows: FloatArray
) -> None:
    """Add readings (n, 3) - `first` (3,) and attitudes (n, 4) w x y z to the sums of `count` readings.

    products (levels, 16, 16): U_k of full tiles.
    rows (levels, 64, 16): incomplete tiles of block sums.
    """
    for i in range(field.shape[0]):
        index = count + i
        row = rows[0, index % TILE]
        _write_rotation(rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3], row)
        for axis in range(3):
            row[10 + axis] = field[i, axis] - first[axis]
        k = 0
        while index % TILE == TILE - 1 and k < rows.shape[0]:
            _add_products(rows[k], products[k])
            index = index // TILE * BLOCK_FACTOR  # the first row of this tile, one level up
            k += 1
            if k < rows.shape[0]:
                start = index % TILE
                _add_blocks(rows[k - 1], rows[k, start : start + BLOCK_FACTOR])
                index += BLOCK_FACTOR - 1


@kernel
def attitude_rows(rotation_ws: Quaternions) -> FloatArray:
    """Return z (n, 10) of attitudes (n, 4)."""
    out = np.empty((rotation_ws.shape[0], 10))
    for i in range(rotation_ws.shape[0]):
        _write_rotation(rotation_ws[i, 0], rotation_ws[i, 1], rotation_ws[i, 2], rotation_ws[i, 3], out[i])
    return out


class GramSums:
    """U_k of all readings, in time order."""

    def __init__(self) -> None:
        """Start without readings."""
        self.count = 0
        self.first = np.zeros(3)
        self._products = np.zeros((BLOCK_LEVELS + 1, PADDED_SIZE, PADDED_SIZE))
        self._rows = np.zeros((BLOCK_LEVELS + 1, TILE, PADDED_SIZE))

    def update(self, field: Vectors, rotation_ws: Quaternions) -> None:
        """Add readings (n, 3) with their attitudes (n, 4)."""
        if not field.shape[0]:
            return
        if not self.count:
            self.first = field[0].copy()
        with np.errstate(all="ignore"):  # the caller of `products` checks for overflow
            _add_readings(field, rotation_ws, self.first, self.count, self._products, self._rows)
        self.count += field.shape[0]

    def blocks(self, level: int) -> int:
        """Return the number of blocks of 8^level samples in U_level: those of full tiles of the level below."""
        count = self.count
        for _ in range(level):
            count = count // TILE * BLOCK_FACTOR
        return count

    def products(self, level: int) -> FloatArray:
        """Return U_level (13, 13)."""
        lower = np.tril(self._products[level][:SIZE, :SIZE])
        full = lower + np.tril(lower, -1).T
        incomplete = self._rows[level, : self.blocks(level) % TILE, :SIZE]
        with np.errstate(all="ignore"):
            return np.asarray(full + incomplete.T @ incomplete)


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


TRACELESS: FloatArray = np.zeros((8, 3, 3))
"""Orthonormal basis of the traceless matrices."""
TRACELESS[range(6), (0, 0, 1, 1, 2, 2), (1, 2, 0, 2, 0, 1)] = 1.0
TRACELESS[6] = np.diag((1.0, -1.0, 0.0)) / np.sqrt(2.0)
TRACELESS[7] = np.diag((1.0, 1.0, -2.0)) / np.sqrt(6.0)


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

    matrix: FloatArray
    direction: FloatArray
    bias: FloatArray
    fits_direction: bool
    fits_soft_iron: bool

    @property
    def scale(self) -> float:
        """The cube root of |det A|, at least `MIN_SCALE`."""
        return max(float(np.cbrt(abs(np.linalg.det(self.matrix)))), MIN_SCALE)

    @property
    def size(self) -> int:
        """The number of unknown parameters."""
        return 4 + 2 * self.fits_direction + 8 * self.fits_soft_iron

    @property
    def theta(self) -> FloatArray:
        """Theta (3, 10)."""
        return _theta(self.matrix, self.direction, self.bias)

    def without_soft_iron(self) -> AttitudeFit:
        """Return the fit for scale 1, no soft iron and no bias."""
        return replace(self, matrix=np.eye(3), bias=np.zeros(3))

    def jacobian(self) -> FloatArray:
        """Return the derivatives (n, 3, 10) of Theta by beta, l, tau and X."""
        out = np.zeros((self.size, 3, 10))
        out[:3, :, 9] = self.scale * np.eye(3)
        products = np.empty((self.size - 3, 3, 3, 3))  # changes of A times f, and A times changes of f, at [n, a, k, j]
        products[0] = self.direction[None, :, None] * self.matrix[:, None, :]
        first = 1
        if self.fits_direction:
            products[1:3] = tangent_plane(self.direction).T[:, None, :, None] * self.matrix[None, :, None, :]
            first = 3
        if self.fits_soft_iron:
            products[first:] = self.direction[None, None, :, None] * (self.matrix @ TRACELESS)[:, :, None, :]
        out[3:, :, :9] = products.reshape(-1, 3, 9)
        return out

    def apply_step(self, step: FloatArray) -> AttitudeFit:
        """Return the parameters after a step (n,)."""
        matrix, direction, change = self.matrix * np.exp(step[3]), self.direction, step[4:]
        bias = self.bias + self.scale * step[:3]
        if self.fits_direction:
            direction, change = direction + tangent_plane(direction) @ change[:2], change[2:]
            direction = direction / np.linalg.norm(direction)
        if self.fits_soft_iron:
            matrix = matrix @ (np.eye(3) + np.tensordot(change, TRACELESS, 1))
        return replace(self, matrix=matrix, direction=direction, bias=bias)


def _theta(matrix: FloatArray, direction: FloatArray, bias: FloatArray) -> FloatArray:
    """Return Theta (3, 10) of A, f and b."""
    out = np.empty((3, 10))
    out[:, :9] = (direction[None, :, None] * matrix[:, None, :]).reshape(3, 9)
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


def fisher_information(jacobian: FloatArray, gram: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the information matrix (n, n). jacobian: (n, 3, 10). gram: (10, 10). weight: (3, 3)."""
    count = jacobian.shape[0]
    weighted = weight @ jacobian @ gram
    return np.asarray(weighted.reshape(count, -1) @ jacobian.reshape(count, -1).T)


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
        matrix, bias = solutions[best, :, :3], solutions[best, :, 3]
        return AttitudeFit(matrix, directions[best], bias, direction is None, soft_iron)
    axes = np.eye(3) if direction is None else direction[None, :]
    jacobian = np.array(
        [_theta(np.eye(3), f, np.zeros(3)) for f in axes] + [_theta(np.zeros((3, 3)), axes[0], b) for b in np.eye(3)]
    )
    gradient = np.tensordot(jacobian, sums.cross, ((1, 2), (1, 0)))
    information = fisher_information(jacobian, sums.gram, np.eye(3)) + RIDGE * np.eye(len(jacobian))
    parameters = np.asarray(np.linalg.solve(information, gradient))
    bias, product = parameters[-3:], parameters[:-3]
    if direction is not None:
        return AttitudeFit(product[0] * np.eye(3), direction, bias, fits_direction=False, fits_soft_iron=False)
    length = max(float(np.linalg.norm(product)), np.finfo(np.float64).tiny)
    return AttitudeFit(length * np.eye(3), product / length, bias, fits_direction=True, fits_soft_iron=False)


def _minimize(sums: SecondMoments, fit: AttitudeFit, weight: FloatArray) -> AttitudeFit:
    """Return the parameters at the minimum of the weighted squared residuals, by Gauss-Newton steps."""
    loss = float(np.sum(weight * residual_covariance(sums, fit)))
    for _ in range(MAX_STEPS):
        jacobian = fit.jacobian()
        residual = (sums.cross - sums.gram @ fit.theta.T) @ weight
        gradient = np.tensordot(jacobian, residual, ((1, 2), (1, 0)))
        step = _inverse(fisher_information(jacobian, sums.gram, weight)) @ gradient
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
    if fit.fits_direction and np.linalg.det(fit.matrix) < 0.0:  # (-A, -f) gives the same readings
        fit = replace(fit, matrix=-fit.matrix, direction=-fit.direction)
    noise = noise_covariance(sums, fit)
    weight = _weight(sums, noise)
    jacobian = fit.jacobian()
    inverse = _inverse(fisher_information(jacobian, sums.gram, weight))
    middle = fisher_information(jacobian, sums.gram, weight @ noise @ weight)
    vectors = sums.count - fit.size / 3.0
    inflation = vectors / (vectors - 4.0)
    return fit, np.asarray(inverse @ middle @ inverse * (inflation / sums.count)), noise


def half_sphere(count: int) -> Vectors:
    """Return unit vectors (n, 3) evenly distributed over a half sphere: a spiral with the golden angle."""
    number = np.arange(count)
    z = 1.0 - (number + 0.5) / count
    angle = number * (math.pi * (3.0 - math.sqrt(5.0)))
    radius = np.sqrt(1.0 - z * z)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), z])
