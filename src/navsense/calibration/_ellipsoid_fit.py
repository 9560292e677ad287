"""Maximum-likelihood fit of an ellipsoid to readings, with its uncertainty due to noise and motion.

    theta = (b, A): b (3), A symmetric (xx xy xz yy yz zz)        m = b + A v + e,  |v| = 1,  e ~ N(0, s) in each axis
    sum (d_i - s k_i) J_i = 0,   s = sum (d_i - s k_i)^2 / (N - p)
    H = sum J J',   M = H - s K,   cov(theta) = M^-1 V M^-1,   V = s H  or  sum (d_i - s k_i)^2 J_i J_i'

**Distances.** d is the signed distance of a reading from the ellipsoid. A = Q diag(a) Q'; y = Q' (m - b); all below
along the axes of the ellipsoid:

    v_i = a_i y_i / (t + a_i^2), t the largest root of |v(t)| = 1          the foot point is a v
    g = v / a,  n = g / |g|,  d = t |g|                                    d > 0 outside
    k = (sum 1/a_i^2 - sum n_i^2/a_i^2) / (2 |g|)                          mean curvature at the foot point
    J = dd/d(b, A) = -(n, n v')                                            nine numbers, those of a symmetric A

Noise gives d the mean s k, because a curved surface has more space outside than inside. A fit of d alone therefore has
a bias of s / r for a radius r; s k_i corrects it. The sums over the readings, in one pass:

- r r' of rows r = (J, d, k), eleven numbers, and the same of their sums over blocks of 8^k readings (`verdict`).
- `noisy`: K = sum J_t J_t' of the derivatives J_t by two tangents t. Noise along the surface moves the foot point, so
  that the part s K of the information is not due to motion.
- `scores`: (d - s k)^2 J J', the empirical variance of the score.

**Uncertainty.** The directions v_i are unknown too, one per reading. At their optimum, the likelihood depends only on
the distances d_i. M is the information due to motion alone. If M is not clearly positive, the motion has no
information. The second form of V also holds if the noise of the axes is unequal. It is uncertain for few readings, so
that the two forms are averaged.

**Memory.** Up to `BLOCK` readings are stored. When they determine the ellipsoid to `FOLD_BELOW` of its size, they are
folded: the sums of their rows, linearised about the current ellipsoid, replace them. Later readings are folded too. The
error of this linearisation is of second order, sigma_theta^2 at the fold: at most 1e-6 of the field, compared with
sigma_theta / sqrt(N) of the result. Blocks are counted in readings, so that the result does not depend on how the
readings are split.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from navsense.calibration import _power_sums
from navsense.calibration._power_sums import MAX_AXIS_RATIO
from navsense.calibration.verdict import BLOCK_FACTOR, BLOCK_LEVELS, REFUSE_ABOVE, Whiteness, assess_whiteness
from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Vectors

PARAMETERS: Final = 9
"""Parameters of an ellipsoid: three of the centre, six of the symmetric matrix (xx xy xz yy yz zz)."""

ROW_SIZE: Final = PARAMETERS + 2
"""Length of a row: derivatives, distance, mean curvature."""

PADDED_SIZE: Final = 16
"""Columns of a row in memory, padded with zeros to full SIMD registers."""


@kernel
def multiplier(ax: float, ay: float, az: float, x: float, y: float, z: float) -> float:
    """Return t, the largest root of |v(t)| = 1, for a point along the axes of the ellipsoid."""
    px, py, pz = ax * ax, ay * ay, az * az
    low = max(ax * abs(x) - px, ay * abs(y) - py, az * abs(z) - pz)  # where one component of v is 1: a lower bound
    size = max(px, py, pz)
    t = max(0.0, low)
    for _ in range(100):
        ix, iy, iz = 1.0 / (t + px), 1.0 / (t + py), 1.0 / (t + pz)
        vx, vy, vz = ax * x * ix, ay * y * iy, az * z * iz
        square = vx * vx + vy * vy + vz * vz
        slope = vx * vx * ix + vy * vy * iy + vz * vz * iz
        if not slope > 0.0:  # the centre has no root; its foot point is the end of the shortest axis
            return low
        step = (math.sqrt(square) - 1.0) * square / slope  # Newton step for 1 / |v| - 1, which is nearly linear
        following = max(t + step, low)
        step = following - t
        t = following
        if abs(step) <= 1e-9 * size:  # the error is of the order of the squared step
            break
    return t


@kernel
def _row(axes: FloatArray, x: float, y: float, z: float, rows: FloatArray, k: int, foot: FloatArray) -> None:
    """Write rows[k] (11,), and n, v, |g| to `foot` (7,), for a point along the axes. axes (9,): a, 1/a and 1/a^2."""
    ax, ay, az = axes[0], axes[1], axes[2]
    qx, qy, qz = axes[6], axes[7], axes[8]
    t = multiplier(ax, ay, az, x, y, z)
    if t > -ax * ax:
        vx, vy, vz = ax * x / (t + ax * ax), ay * y / (t + ay * ay), az * z / (t + az * az)
    else:  # the centre; the axes are in rising order
        vx, vy, vz = 1.0, 0.0, 0.0
    length = 1.0 / math.sqrt(vx * vx + vy * vy + vz * vz)
    vx, vy, vz = vx * length, vy * length, vz * length
    gx, gy, gz = vx * axes[3], vy * axes[4], vz * axes[5]
    steep = math.sqrt(gx * gx + gy * gy + gz * gz)
    flat = 1.0 / steep
    nx, ny, nz = gx * flat, gy * flat, gz * flat
    rows[k, 0], rows[k, 1], rows[k, 2] = -nx, -ny, -nz
    rows[k, 3], rows[k, 4], rows[k, 5] = -nx * vx, -(nx * vy + ny * vx), -(nx * vz + nz * vx)
    rows[k, 6], rows[k, 7], rows[k, 8] = -ny * vy, -(ny * vz + nz * vy), -nz * vz
    rows[k, 9] = t * steep
    rows[k, 10] = 0.5 * flat * (qx + qy + qz - (nx * nx * qx + ny * ny * qy + nz * nz * qz))
    foot[0], foot[1], foot[2], foot[3], foot[4], foot[5], foot[6] = nx, ny, nz, vx, vy, vz, steep


@kernel
def _tangent_derivative(
    axes: FloatArray, foot: FloatArray, tx: float, ty: float, tz: float, changes: FloatArray, k: int
) -> None:
    """Write changes[k] (9,): the derivative of J along a tangent t at a foot point."""
    nx, ny, nz, vx, vy, vz = foot[0], foot[1], foot[2], foot[3], foot[4], foot[5]
    flat = 1.0 / foot[6]
    ux, uy, uz = tx * axes[3], ty * axes[4], tz * axes[5]
    hx, hy, hz = tx * axes[6] * flat, ty * axes[7] * flat, tz * axes[8] * flat
    along = hx * nx + hy * ny + hz * nz
    hx, hy, hz = hx - along * nx, hy - along * ny, hz - along * nz
    changes[k, 0], changes[k, 1], changes[k, 2] = -hx, -hy, -hz
    changes[k, 3] = -(hx * vx + nx * ux)
    changes[k, 4] = -(hx * vy + hy * vx + nx * uy + ny * ux)
    changes[k, 5] = -(hx * vz + hz * vx + nx * uz + nz * ux)
    changes[k, 6] = -(hy * vy + ny * uy)
    changes[k, 7] = -(hy * vz + hz * vy + ny * uz + nz * uy)
    changes[k, 8] = -(hz * vz + nz * uz)


@kernel
def _tangents(axes: FloatArray, foot: FloatArray, first: FloatArray, second: FloatArray, k: int) -> None:
    """Write first[k] and second[k] (9,): the derivatives of J along two tangents at a foot point."""
    nx, ny, nz = foot[0], foot[1], foot[2]
    if abs(nx) < 0.6:
        sx, sy, sz = 0.0, nz, -ny
    else:
        sx, sy, sz = -nz, 0.0, nx
    length = 1.0 / math.sqrt(sx * sx + sy * sy + sz * sz)
    sx, sy, sz = sx * length, sy * length, sz * length
    _tangent_derivative(axes, foot, sx, sy, sz, first, k)
    _tangent_derivative(axes, foot, ny * sz - nz * sy, nz * sx - nx * sz, nx * sy - ny * sx, second, k)


@kernel
def _add_products(four: FloatArray, total: FloatArray) -> None:
    """Add the sum of u u' over four rows u (4, 16) to `total` (n, 16)."""
    u0, u1, u2, u3 = four[0], four[1], four[2], four[3]
    for i in range(total.shape[0]):
        a, b, c, d = u0[i], u1[i], u2[i], u3[i]
        for j in range(PADDED_SIZE):
            total[i, j] += (a * u0[j] + b * u1[j]) + (c * u2[j] + d * u3[j])


@kernel
def _add_remaining(four: FloatArray, used: int, total: FloatArray, upper: FloatArray) -> None:
    """Add the last `used` of four rows to `total` (n, 16), and `total` to the upper triangle of `upper` (n, n)."""
    if used:
        for k in range(used, 4):
            for j in range(PADDED_SIZE):
                four[k, j] = 0.0
        _add_products(four, total)
    for j in range(upper.shape[0]):
        for k in range(j, upper.shape[0]):
            upper[j, k] += total[j, k]


@kernel
def axes_with_inverses(axes: FloatArray) -> FloatArray:
    """Return a, 1/a and 1/a^2 (9,) of axes a (3,)."""
    out = np.empty(9)
    for k in range(3):
        out[k], out[3 + k], out[6 + k] = axes[k], 1.0 / axes[k], 1.0 / (axes[k] * axes[k])
    return out


@kernel
def _add_blocks(index: int, parts: FloatArray, blocks: FloatArray) -> None:
    """Close the blocks of 8, 64, ... rows that are complete after `index` rows."""
    for level in range(1, blocks.shape[0]):
        if index % BLOCK_FACTOR:
            return
        index = index // BLOCK_FACTOR
        part, block = parts[level], blocks[level]
        for j in range(11):
            for k in range(j, 11):
                block[j, k] += part[j] * part[k]
        for j in range(11):
            if level + 1 < blocks.shape[0]:
                parts[level + 1, j] += part[j]
            part[j] = 0.0


@kernel
def add_total(field: Vectors, centre: FloatArray, rotation: FloatArray, axes: FloatArray, total: FloatArray) -> None:
    """Add r r' of field (n, 3) to the upper triangle of `total` (11, 11). rotation: Q (3, 3). axes: a (3,), rising."""
    inverses = axes_with_inverses(axes)
    four, foot, products = np.zeros((4, PADDED_SIZE)), np.empty(7), np.zeros((11, PADDED_SIZE))
    for i in range(field.shape[0]):
        x, y, z = field[i, 0] - centre[0], field[i, 1] - centre[1], field[i, 2] - centre[2]
        _row(
            inverses,
            rotation[0, 0] * x + rotation[1, 0] * y + rotation[2, 0] * z,
            rotation[0, 1] * x + rotation[1, 1] * y + rotation[2, 1] * z,
            rotation[0, 2] * x + rotation[1, 2] * y + rotation[2, 2] * z,
            four,
            i % 4,
            foot,
        )
        if i % 4 == 3:
            _add_products(four, products)
    _add_remaining(four, field.shape[0] % 4, products, total)


@kernel
def foot_points(field: Vectors, centre: FloatArray, rotation: FloatArray, axes: FloatArray, out: FloatArray) -> None:
    """Write d, k and v (n, 5) of field (n, 3), v along the axes of the ellipsoid."""
    inverses, foot, row = axes_with_inverses(axes), np.empty(7), np.empty((1, PADDED_SIZE))
    for i in range(field.shape[0]):
        x, y, z = field[i, 0] - centre[0], field[i, 1] - centre[1], field[i, 2] - centre[2]
        _row(
            inverses,
            rotation[0, 0] * x + rotation[1, 0] * y + rotation[2, 0] * z,
            rotation[0, 1] * x + rotation[1, 1] * y + rotation[2, 1] * z,
            rotation[0, 2] * x + rotation[1, 2] * y + rotation[2, 2] * z,
            row,
            0,
            foot,
        )
        out[i, 0], out[i, 1] = row[0, 9], row[0, 10]
        out[i, 2], out[i, 3], out[i, 4] = foot[3], foot[4], foot[5]


@kernel
def add_all(
    field: Vectors,
    centre: FloatArray,
    rotation: FloatArray,
    axes: FloatArray,
    count: int,
    parts: FloatArray,
    variance: float,
    blocks: FloatArray,
    noisy: FloatArray,
    scores: FloatArray,
) -> None:
    """Add field (n, 3) to the upper triangles of `blocks` (levels, 11, 11), `noisy` and `scores` (9, 9).

    blocks[k]: sum of v v' over blocks of 8^k readings, v the sum of the rows of a block. count: readings before these.
    parts (levels, 11): sums of incomplete blocks. variance: s.
    """
    inverses, foot, four, shortest = axes_with_inverses(axes), np.empty(7), np.zeros((4, PADDED_SIZE)), parts[1]
    first, second, score = np.zeros((4, PADDED_SIZE)), np.zeros((4, PADDED_SIZE)), np.zeros((4, PADDED_SIZE))
    row_sum, noise_sum, score_sum = np.zeros((11, PADDED_SIZE)), np.zeros((9, PADDED_SIZE)), np.zeros((9, PADDED_SIZE))
    for i in range(field.shape[0]):
        x, y, z = field[i, 0] - centre[0], field[i, 1] - centre[1], field[i, 2] - centre[2]
        slot = i % 4
        _row(
            inverses,
            rotation[0, 0] * x + rotation[1, 0] * y + rotation[2, 0] * z,
            rotation[0, 1] * x + rotation[1, 1] * y + rotation[2, 1] * z,
            rotation[0, 2] * x + rotation[1, 2] * y + rotation[2, 2] * z,
            four,
            slot,
            foot,
        )
        _tangents(inverses, foot, first, second, slot)
        residual = four[slot, 9] - variance * four[slot, 10]
        for j in range(9):
            score[slot, j] = residual * four[slot, j]
        for j in range(11):
            shortest[j] += four[slot, j]
        if (count + i + 1) % BLOCK_FACTOR == 0:
            _add_blocks(count + i + 1, parts, blocks)
        if slot == 3:
            _add_products(four, row_sum)
            _add_products(first, noise_sum)
            _add_products(second, noise_sum)
            _add_products(score, score_sum)
    used = field.shape[0] % 4
    _add_remaining(four, used, row_sum, blocks[0])
    _add_remaining(second, used, noise_sum, np.zeros((9, 9)))
    _add_remaining(first, used, noise_sum, noisy)
    _add_remaining(score, used, score_sum, scores)


BLOCK: Final = 1 << 16
"""Stored readings before the first attempt to fold them."""

FOLD_BELOW: Final = 1e-3
"""Relative standard deviation of theta below which readings are folded."""

EQUAL_NOISE_READINGS: Final = 1000.0
"""Weight of the prior assumption of equal noise on all axes, in readings."""

MAX_ROUNDS: Final = 40

TRIAL_READINGS: Final = 1 << 13
"""Evenly spaced readings for a first, fast fit."""

REFUSE_FACTOR: Final = 2.0
"""Relative standard deviation of a fast fit, scaled to all readings and in `REFUSE_ABOVE`, for which it is final."""

MAX_GROWTH: Final = 1e4
"""Growth of theta beyond which a search has diverged."""

LINEAR_STEP: Final = 1e-3
"""Relative step of theta below which the path is linear."""

CONVERGED_STEP: Final = 1e-4
"""Length of the last step in standard deviations. The remaining error is smaller by the relative noise."""

PAIRS: Final = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""Rows and columns of the six numbers of a symmetric matrix."""

ELLIPSOIDS: FloatArray = np.eye(PARAMETERS)
"""Columns: basis of theta for ellipsoids."""

SPHERES: FloatArray = np.zeros((PARAMETERS, 4))
"""Columns: basis of theta for spheres."""
SPHERES[:3, :3] = np.eye(3)
SPHERES[[3, 6, 8], 3] = 1.0


def theta_to_matrix(theta: FloatArray) -> FloatArray:
    """Return A (3, 3) of theta (9,)."""
    matrix = np.empty((3, 3))
    for number, (row, column) in enumerate(PAIRS):
        matrix[row, column] = matrix[column, row] = theta[3 + number]
    return matrix


def theta_from_matrix(centre: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return theta (9,) of a centre (3,) and a symmetric matrix (3, 3)."""
    return np.array([*centre, *(matrix[row, column] for row, column in PAIRS)])


def _principal_axes(theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return centre (3,), rotation Q (3, 3) and axes (3,) of an ellipsoid."""
    axes, rotation = np.linalg.eigh(theta_to_matrix(theta))
    return theta[:3].copy(), np.ascontiguousarray(rotation), axes


def _rotation_of_rows(rotation: FloatArray) -> FloatArray:
    """Return the matrix (11, 11) from rows along the axes of `rotation` to rows along the sensor's axes."""
    matrix, of_theta = np.eye(ROW_SIZE), np.zeros((PARAMETERS, PARAMETERS))
    of_theta[:3, :3] = rotation.T
    for number in range(6):
        unit = np.zeros(PARAMETERS)
        unit[3 + number] = 1.0
        of_theta[:, 3 + number] += theta_from_matrix(np.zeros(3), rotation.T @ theta_to_matrix(unit) @ rotation)
    matrix[:PARAMETERS, :PARAMETERS] = of_theta.T
    return matrix


def _symmetric(upper: FloatArray) -> FloatArray:
    """Return symmetric matrices (..., n, n) from their upper triangles."""
    return np.asarray(np.triu(upper) + np.swapaxes(np.triu(upper, 1), -1, -2))


class RowSums(NamedTuple):
    """Sums of `add_all`: `blocks` (levels, 11, 11), `noisy` and `scores` (9, 9)."""

    blocks: FloatArray
    noisy: FloatArray
    scores: FloatArray

    @property
    def total(self) -> FloatArray:
        """The sum of r r' (11, 11)."""
        return np.asarray(self.blocks[0])

    def transform(self, change: FloatArray) -> RowSums:
        """Return the sums for rows multiplied by `change` (11, 11)."""
        inner = change[:PARAMETERS, :PARAMETERS]
        return RowSums(change @ self.blocks @ change.T, inner @ self.noisy @ inner.T, inner @ self.scores @ inner.T)

    def extrapolate_total(self, theta: FloatArray) -> FloatArray:
        """Return `total` at theta for rows extrapolated to theta = 0."""
        change = _extrapolation(theta)
        return np.asarray(change @ self.total @ change.T)

    def add(self, other: RowSums) -> RowSums:
        """Return the sum of both."""
        return RowSums(self.blocks + other.blocks, self.noisy + other.noisy, self.scores + other.scores)


def _extrapolation(theta: FloatArray) -> FloatArray:
    """Return the matrix (11, 11) from rows extrapolated to theta = 0 to rows at theta."""
    change = np.eye(ROW_SIZE)
    change[PARAMETERS, :PARAMETERS] = theta
    return change


@dataclass(frozen=True, eq=False)
class EllipsoidFit:
    """A fitted ellipsoid in units of the fit.

    theta: (9,).
    variance: s of the noise.
    sums: at theta, of `count` readings.
    basis: (9, p), of theta.
    converged: False if the search did not converge.
    """

    theta: FloatArray
    variance: float
    sums: RowSums
    count: int
    basis: FloatArray
    converged: bool

    @property
    def strength(self) -> float:
        """The cube root of det A."""
        return float(np.cbrt(np.linalg.det(theta_to_matrix(self.theta))))

    @property
    def information(self) -> tuple[FloatArray, FloatArray]:
        """H and s K (p, p), in the basis."""
        noisy = self.variance * self.sums.noisy
        return self.basis.T @ self.sums.total[:PARAMETERS, :PARAMETERS] @ self.basis, self.basis.T @ noisy @ self.basis

    @property
    def covariance(self) -> FloatArray:
        """The covariance (9, 9) of theta, infinite if the motion has no information on a combination."""
        total, noise = self.information
        values, vectors = np.linalg.eigh(total - noise)
        if values[0] <= 1e-14 * values[-1]:
            return np.full((PARAMETERS, PARAMETERS), math.inf)
        inverse = (vectors / values) @ vectors.T
        scores = self.basis.T @ self.sums.scores @ self.basis * (self.count / (self.count - len(values)))
        weight = EQUAL_NOISE_READINGS
        middle = (self.count * scores + weight * self.variance * total) / (self.count + weight)
        return np.asarray(self.basis @ inverse @ middle @ inverse @ self.basis.T)

    @property
    def max_relative_stddev(self) -> float:
        """The largest relative standard deviation of a combination of theta."""
        covariance = self.covariance
        if not np.all(np.isfinite(covariance)):
            return math.inf
        return math.sqrt(max(float(np.linalg.eigh(covariance)[0][-1]), 0.0)) / self.strength

    @property
    def noise_share(self) -> float:
        """The largest share of noise along the surface in the information on any combination."""
        total, noise = self.information
        values, vectors = np.linalg.eigh(total)
        if values[0] <= 1e-15 * values[-1]:
            return 1.0
        whitening = vectors / np.sqrt(values)
        return float(np.linalg.eigvalsh(whitening.T @ noise @ whitening)[-1])

    def residuals_at(self, field: Vectors) -> tuple[FloatArray, Vectors]:
        """Return the residuals d - s k (n,) of readings (n, 3), and the directions v (n, 3) of the field."""
        centre, rotation, axes = _principal_axes(self.theta)
        out = np.empty((len(field), 5))
        foot_points(np.ascontiguousarray(field), centre, rotation, axes, out)
        return out[:, 0] - self.variance * out[:, 1], out[:, 2:] @ rotation.T

    @property
    def whiteness(self) -> Whiteness:
        """The whiteness of the residuals d - s k."""
        return self.residuals(np.zeros(PARAMETERS))[1]

    def residuals(self, step: FloatArray) -> tuple[float, Whiteness]:
        """Return mean square and whiteness of the residuals d - s k after a small step (9,) of theta."""
        residual = np.array([*step, 1.0, -self.variance])
        squares = self.sums.blocks @ residual @ residual
        if not squares[0] > 0.0:
            return 0.0, Whiteness()
        lengths = [BLOCK_FACTOR**level for level in range(1, BLOCK_LEVELS + 1) if self.count >= BLOCK_FACTOR**level]
        counts = [self.count // length for length in lengths]
        ratio = [
            float(square) / (count * length) * self.count / float(squares[0])
            for square, count, length in zip(squares[1:], counts, lengths, strict=False)
        ]
        return float(squares[0]) / self.count, assess_whiteness(ratio, counts, 1)


def estimate_variance(total: FloatArray, degrees_of_freedom: int) -> float:
    """Return s: the smaller root of sum (d - s k)^2 = s degrees_of_freedom; without k if there is no root."""
    square, mixed, curvature = float(total[9, 9]), float(total[9, 10]), float(total[10, 10])
    half = mixed + 0.5 * degrees_of_freedom
    radicand = half * half - curvature * square
    if radicand >= 0.0 and half > 0.0:
        return square / (half + math.sqrt(radicand))
    return square / degrees_of_freedom


def _gauss_newton_step(
    total: FloatArray, basis: FloatArray, degrees_of_freedom: int, damping: float
) -> tuple[FloatArray, float, float]:
    """Return a step (p,), its length in standard deviations, and the largest increase of sum d^2 that it can cause."""
    s = estimate_variance(total, degrees_of_freedom)
    slopes = basis.T @ total[:PARAMETERS, :]
    information, curvature = slopes[:, :PARAMETERS] @ basis, slopes[:, 10]
    values, vectors = np.linalg.eigh(information + np.diag(damping * np.diag(information)))
    determined = values > 1e-13 * values[-1]  # other combinations do not change
    inverse = (vectors[:, determined] / values[determined]) @ vectors[:, determined].T
    step = np.asarray(inverse @ (s * curvature - slopes[:, 9]))
    length = math.sqrt(max(float(step @ information @ step), 0.0) / s) if s > 0.0 else 0.0
    return step, length, 4.0 * s * s * float(curvature @ inverse @ curvature)


def _is_ellipsoid(theta: FloatArray, largest: float) -> bool:
    """Return True if theta is a plausible ellipsoid: no number above `largest`, and not flat."""
    if not float(np.abs(theta).max()) <= largest:  # also False for NaN
        return False
    axes = np.linalg.eigvalsh(theta_to_matrix(theta))
    return bool(axes[0] > axes[2] / MAX_AXIS_RATIO)


def _move_along_quadric(theta: FloatArray, step: FloatArray) -> FloatArray:
    """Return theta (9,) after a step (9,), on a path that is linear in the ten numbers of the quadric.

    x'Qx + l'x + c = 0 with Q = A^-2, l = -2 Q b, c = b'Qb - 1, for a constant trace of Q. Readings on a belt around an
    ellipsoid depend nearly linearly on these numbers, but not on centre and axes.
    """
    if float(np.abs(step).max()) < LINEAR_STEP * float(np.abs(theta).max()):
        return theta + step
    inverse, centre = np.linalg.inv(theta_to_matrix(theta)), theta[:3]
    quadratic = inverse @ inverse
    change = inverse @ theta_to_matrix(step) @ quadratic
    change = -(change + change.T)
    linear, constant = quadratic @ centre, float(centre @ quadratic @ centre) - 1.0  # -l / 2, c
    linear_change = change @ centre + quadratic @ step[:3]
    constant_change = float(centre @ change @ centre + 2.0 * centre @ quadratic @ step[:3])
    factor = float(np.trace(change) / np.trace(quadratic))
    quadratic, linear, constant = (
        quadratic + change - factor * quadratic,
        linear + linear_change - factor * linear,
        constant + constant_change - factor * constant,
    )
    values, axes = np.linalg.eigh(quadratic)
    if not values[0] > 0.0:
        return theta + step
    centre = axes @ ((axes.T @ linear) / values)
    size = float(centre @ linear) - constant
    return theta_from_matrix(centre, (axes * np.sqrt(size / values)) @ axes.T) if size > 0.0 else theta + step


def _search(
    total_at: Callable[[FloatArray], FloatArray], theta: FloatArray, basis: FloatArray, degrees_of_freedom: int
) -> tuple[FloatArray, FloatArray, bool]:
    """Return the root of the corrected score, `total` at the last but one step, and True if the search converged.

    The steps are Gauss-Newton steps with Levenberg-Marquardt damping.
    """
    total, damping, largest = total_at(theta), 0.0, MAX_GROWTH * float(np.abs(theta).max())
    for _ in range(MAX_ROUNDS):
        step, length, tolerance = _gauss_newton_step(total, basis, degrees_of_freedom, damping)
        trial = _move_along_quadric(theta, basis @ step)
        if length < CONVERGED_STEP or float(np.abs(step).max()) < 1e-14 * float(np.abs(theta).max()):
            return trial, total, True
        trial_total = total_at(trial) if _is_ellipsoid(trial, largest) else None
        if trial_total is not None and trial_total[9, 9] <= total[9, 9] * (1.0 + 1e-12) + tolerance:
            theta, total, damping = trial, trial_total, damping / 10.0 if damping > 1e-6 else 0.0
        else:
            damping = max(10.0 * damping, 1e-3)
    return theta, total, False


class EllipsoidFitter:
    """Stream of readings and their fit. The origin is the first reading; many readings are folded into sums."""

    def __init__(self, *, soft_iron: bool) -> None:
        """Start without readings."""
        self._soft_iron = soft_iron
        self._basis = ELLIPSOIDS if soft_iron else SPHERES
        self._theta: FloatArray = np.zeros(PARAMETERS)
        self.shift: FloatArray = np.zeros(3)
        self.unit = 1.0
        self.powers: FloatArray = np.zeros(len(_power_sums.EXPONENTS))
        self._kept: Vectors = np.empty((0, 3))
        self._held = 0
        self._folded: RowSums | None = None
        self._parts: FloatArray = np.zeros((BLOCK_LEVELS + 1, ROW_SIZE))
        self._next_fold = BLOCK

    @property
    def count(self) -> int:
        """The number of readings."""
        return int(self.powers[0])

    @property
    def size(self) -> int:
        """The number of parameters."""
        return int(self._basis.shape[1])

    def add(self, field: Vectors) -> None:
        """Add finite readings (n, 3)."""
        if len(field) and not self.count:
            self.shift = field[0].copy()
            self.unit = float(np.abs(field[0]).max()) or 1.0
        first = 0
        while first < len(field):
            last = min(len(field), first + self._next_fold - self._held)
            self._append(np.ascontiguousarray(field[first:last]))
            first = last
            if self._held == self._next_fold:
                self._fold()

    def _append(self, field: Vectors) -> None:
        """Store readings in units of the fit."""
        with np.errstate(over="ignore", invalid="ignore"):  # the caller of `fit` checks for overflow
            field = (field - self.shift) / self.unit
            _power_sums.add_powers(field, np.zeros(3), 1.0, self.powers)
        needed = self._held + len(field)
        if needed > len(self._kept):
            grown = np.empty((min(self._next_fold, max(needed, 2 * len(self._kept))), 3))
            grown[: self._held] = self._kept[: self._held]
            self._kept = grown
        self._kept[self._held : needed] = field
        self._held = needed

    def _fold(self) -> None:
        """Replace stored readings by sums if they determine the ellipsoid; else wait for as many again."""
        if self._folded is None:
            trial = self._fit_subsample(TRIAL_READINGS) if np.isfinite(self.powers).all() else None
            if (
                trial is None
                or not trial.converged
                or not trial.max_relative_stddev * math.sqrt(trial.count / self._held) < FOLD_BELOW
            ):
                self._next_fold = 2 * self._next_fold
                return
            fit = self.fit()
            self._theta, variance = fit.theta, fit.variance
        else:
            degrees_of_freedom = self.count - self._held - self.size
            self._theta, total, _ = _search(
                self._folded.extrapolate_total, self._theta, self._basis, degrees_of_freedom
            )
            variance = estimate_variance(total, degrees_of_freedom)
        sums = self._row_sums(self._theta, variance, self._parts).transform(_extrapolation(-self._theta))
        self._folded = sums if self._folded is None else self._folded.add(sums)
        self._held, self._next_fold = 0, BLOCK
        self._kept = self._kept[:BLOCK].copy()

    def _row_sums(self, theta: FloatArray, variance: float, parts: FloatArray) -> RowSums:
        """Return the sums over stored readings at theta. Updates `parts`, sums of incomplete blocks at theta = 0."""
        centre, rotation, axes = _principal_axes(theta)
        back = _rotation_of_rows(rotation)
        change = _extrapolation(-theta) @ back
        incomplete = np.ascontiguousarray(np.linalg.solve(change, parts.T).T)
        blocks = np.zeros((BLOCK_LEVELS + 1, ROW_SIZE, ROW_SIZE))
        sums = (blocks, np.zeros((PARAMETERS, PARAMETERS)), np.zeros((PARAMETERS, PARAMETERS)))
        add_all(self._kept[: self._held], centre, rotation, axes, self.count - self._held, incomplete, variance, *sums)
        parts[:] = incomplete @ change.T
        return RowSums(*(_symmetric(upper) for upper in sums)).transform(back)

    def _sum_rows(self, theta: FloatArray) -> FloatArray:
        """Return `total` of all readings at theta."""
        centre, rotation, axes = _principal_axes(theta)
        upper = np.zeros((ROW_SIZE, ROW_SIZE))
        add_total(self._kept[: self._held], centre, rotation, axes, upper)
        back = _rotation_of_rows(rotation)
        total = np.asarray(back @ _symmetric(upper) @ back.T)
        return total if self._folded is None else total + self._folded.extrapolate_total(theta)

    def _fit_subsample(self, count: int) -> EllipsoidFit:
        """Return the fit to `count` to 2 `count` evenly spaced stored readings."""
        fitter = EllipsoidFitter(soft_iron=self._soft_iron)
        fitter._kept = np.ascontiguousarray(self._kept[: self._held : self._held // count])
        fitter._held = len(fitter._kept)
        _power_sums.add_powers(fitter._kept, np.zeros(3), 1.0, fitter.powers)
        return fitter.fit()

    def fit(self) -> EllipsoidFit:
        """Return the maximum-likelihood ellipsoid. Needs at least one reading more than parameters.

        If more than `BLOCK` readings could not be folded because of missing motion, a fit to some of them comes first.
        It is the result if all readings would leave the ellipsoid undetermined too.
        """
        if self._held > BLOCK:
            trial = self._fit_subsample(TRIAL_READINGS)
            trial = trial if trial.converged else self._fit_subsample(BLOCK // 2)
            scaled_stddev = trial.max_relative_stddev * math.sqrt(trial.count / self._held)
            if not trial.converged or scaled_stddev > REFUSE_FACTOR * REFUSE_ABOVE:
                return trial
            start = trial.theta
        else:
            initial = _power_sums.initial_ellipsoid(self.powers, soft_iron=self._soft_iron)
            start = theta_from_matrix(initial.centre, initial.matrix)
        degrees_of_freedom = self.count - self.size
        theta, total, converged = _search(self._sum_rows, start, self._basis, degrees_of_freedom)
        sums = self._row_sums(theta, estimate_variance(total, degrees_of_freedom), self._parts.copy())
        if self._folded is not None:
            sums = sums.add(self._folded.transform(_extrapolation(theta)))
        return EllipsoidFit(
            theta, estimate_variance(sums.total, degrees_of_freedom), sums, self.count, self._basis, converged
        )
