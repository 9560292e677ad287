"""Signed distances of readings to an ellipsoid, and the sums over them that a fit needs, in one pass.

    m = b + A v, |v| = 1       A = Q diag(a) Q', symmetric; y = Q' (m - b); all below along the axes of the ellipsoid
    v_i = a_i y_i / (t + a_i^2), t the largest root of |v(t)| = 1          the foot point is a v
    g = v / a,  n = g / |g|,  d = t |g|                                    d > 0 outside
    k = (sum 1/a_i^2 - sum n_i^2/a_i^2) / (2 |g|)                          mean curvature at the foot point
    J = dd/d(b, A) = -(n, n v')                                            nine numbers, those of a symmetric A

Noise e ~ N(0, s) in each axis gives d the mean s k, because a curved surface has more space outside than inside. A fit
of d alone therefore has a bias of s / r for a radius r; the correct equation is sum (d - s k) J = 0. Sums:

- r r' of rows r = (J, d, k), eleven numbers, and the same of their sums over blocks of 8^k readings (`verdict`).
- `noisy`: J_t J_t' of the derivatives J_t by two tangents t. Noise along the surface moves the foot point, so that the
  part s `noisy` of the information is not due to motion.
- `scores`: (d - s k)^2 J J', the empirical variance of the score.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from navsense.calibration.verdict import BLOCK_FACTOR
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
