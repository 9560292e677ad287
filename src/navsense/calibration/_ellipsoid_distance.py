"""The signed distance of readings to an ellipsoid, with all that a fit needs of it, in one pass.

    m = b + A v, |v| = 1       A = Q diag(a) Q', symmetric; y = Q' (m - b), everything below in the ellipsoid's axes
    v_i = a_i y_i / (t + a_i^2), t the largest root of |v(t)| = 1          the foot point is a v
    g = v / a,  n = g / |g|,  d = t |g|                                    positive outside
    k = (sum 1/a_i^2 - sum n_i^2/a_i^2) / (2 |g|)                          mean curvature at the foot
    J = dd/d(b, A) = -(n, n v')                                            nine numbers, those of a symmetric A

Noise e ~ N(0, s) in each axis gives d the mean s k: beside a curved surface there is more room outside. A fit of d
alone is therefore wrong by a radius s / r; sum (d - s k) J = 0 is right. Of rows r = (J, d, k), eleven numbers, r r' is
added up, and the same of their sums over blocks of 8^k, from which `verdict` tells whether residuals are white. Beside
them `noisy`, the sum of J_t J_t' over two tangents t (noise along the surface moves the foot, so that s `noisy` of the
information is not the motion's) and `scores`, the sum of (d - s k)^2 J J', what the score really varies by.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from navsense.calibration.verdict import BLOCK_FACTOR
from navsense.kernels import kernel
from navsense.typing import FloatArray, Vectors

PARAMETERS: Final = 9
"""Numbers of an ellipsoid: three of the centre, six of the symmetric matrix (xx xy xz yy yz zz)."""

ROW_SIZE: Final = PARAMETERS + 2
"""Numbers of a row: the derivatives, the distance, the mean curvature."""

PADDED_SIZE: Final = 16
"""Columns that a row has in memory, the last ones 0: whole registers."""


@kernel
def multiplier(ax: float, ay: float, az: float, x: float, y: float, z: float) -> float:
    """Return t, the largest root of |v(t)| = 1, for a point in the ellipsoid's axes."""
    px, py, pz = ax * ax, ay * ay, az * az
    low = max(ax * abs(x) - px, ay * abs(y) - py, az * abs(z) - pz)  # one part of v is 1 there: the root is not below
    size = max(px, py, pz)
    t = max(0.0, low)
    for _ in range(100):
        ix, iy, iz = 1.0 / (t + px), 1.0 / (t + py), 1.0 / (t + pz)
        vx, vy, vz = ax * x * ix, ay * y * iy, az * z * iz
        square = vx * vx + vy * vy + vz * vz
        slope = vx * vx * ix + vy * vy * iy + vz * vz * iz
        if not slope > 0.0:  # the centre: nowhere is |v| 1, the foot is the shortest axis' end
            return low
        step = (math.sqrt(square) - 1.0) * square / slope  # Newton's for 1 / |v| - 1, which is nearly straight
        moved = max(t + step, low)
        step = moved - t
        t = moved
        if abs(step) <= 1e-9 * size:  # the error after a step is of the order of its square
            break
    return t


@kernel
def _row(axes: FloatArray, x: float, y: float, z: float, rows: FloatArray, k: int, foot: FloatArray) -> None:
    """Write rows[k] (11,), and n, v and |g| (7,) of a point in the ellipsoid's axes; axes (9,) are a, 1/a and 1/a^2."""
    ax, ay, az = axes[0], axes[1], axes[2]
    qx, qy, qz = axes[6], axes[7], axes[8]
    t = multiplier(ax, ay, az, x, y, z)
    if t > -ax * ax:
        vx, vy, vz = ax * x / (t + ax * ax), ay * y / (t + ay * ay), az * z / (t + az * az)
    else:  # the centre, the axes being in rising order
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
    """Write changes[k] (9,), of the derivatives while the foot moves along a tangent."""
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
    """Write first[k] and second[k] (9,), the changes of the derivatives along two tangents at one foot."""
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
    """Add the sum of u u' over four rows u (4, 16) to total (n, 16), whole registers at a time."""
    u0, u1, u2, u3 = four[0], four[1], four[2], four[3]
    for i in range(total.shape[0]):
        a, b, c, d = u0[i], u1[i], u2[i], u3[i]
        for j in range(PADDED_SIZE):
            total[i, j] += (a * u0[j] + b * u1[j]) + (c * u2[j] + d * u3[j])


@kernel
def _add_remaining(four: FloatArray, used: int, total: FloatArray, upper: FloatArray) -> None:
    """Add the last `used` rows of a four to total (n, 16), and that to the upper half of another (n, n)."""
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
    """Return a, 1/a and 1/a^2 (9,) of axes (3,)."""
    out = np.empty(9)
    for k in range(3):
        out[k], out[3 + k], out[6 + k] = axes[k], 1.0 / axes[k], 1.0 / (axes[k] * axes[k])
    return out


@kernel
def _add_blocks(index: int, parts: FloatArray, blocks: FloatArray) -> None:
    """Close the blocks of 8, 64, ... rows that are full when `index` rows were added to the shortest."""
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
def add_total(field: Vectors, centre: FloatArray, turn: FloatArray, axes: FloatArray, total: FloatArray) -> None:
    """Add to the upper half of `total` (11, 11) the rows of field; `turn` (3, 3) is Q, `axes` (3,) are a, rising."""
    nine = axes_with_inverses(axes)
    four, foot, whole = np.zeros((4, PADDED_SIZE)), np.empty(7), np.zeros((11, PADDED_SIZE))
    for i in range(field.shape[0]):
        x, y, z = field[i, 0] - centre[0], field[i, 1] - centre[1], field[i, 2] - centre[2]
        _row(
            nine,
            turn[0, 0] * x + turn[1, 0] * y + turn[2, 0] * z,
            turn[0, 1] * x + turn[1, 1] * y + turn[2, 1] * z,
            turn[0, 2] * x + turn[1, 2] * y + turn[2, 2] * z,
            four,
            i % 4,
            foot,
        )
        if i % 4 == 3:
            _add_products(four, whole)
    _add_remaining(four, field.shape[0] % 4, whole, total)


@kernel
def foot_points(field: Vectors, centre: FloatArray, turn: FloatArray, axes: FloatArray, out: FloatArray) -> None:
    """Write d, k and v (n, 5) of field (n, 3), v in the ellipsoid's axes."""
    nine, foot, row = axes_with_inverses(axes), np.empty(7), np.empty((1, PADDED_SIZE))
    for i in range(field.shape[0]):
        x, y, z = field[i, 0] - centre[0], field[i, 1] - centre[1], field[i, 2] - centre[2]
        _row(
            nine,
            turn[0, 0] * x + turn[1, 0] * y + turn[2, 0] * z,
            turn[0, 1] * x + turn[1, 1] * y + turn[2, 1] * z,
            turn[0, 2] * x + turn[1, 2] * y + turn[2, 2] * z,
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
    turn: FloatArray,
    axes: FloatArray,
    count: int,
    parts: FloatArray,
    variance: float,
    blocks: FloatArray,
    noisy: FloatArray,
    scores: FloatArray,
) -> None:
    """Add to the upper halves of `blocks` (levels, 11, 11), `noisy` and `scores` (9, 9); `variance` is s.

    blocks[k] is the sum over blocks of 8^k readings of v v', v the sum of a block's rows; `count` readings were before
    these, parts (levels, 11) are the sums of the blocks that they began.
    """
    nine, foot, four, shortest = axes_with_inverses(axes), np.empty(7), np.zeros((4, PADDED_SIZE)), parts[1]
    first, second, score = np.zeros((4, PADDED_SIZE)), np.zeros((4, PADDED_SIZE)), np.zeros((4, PADDED_SIZE))
    whole, noise, scored = np.zeros((11, PADDED_SIZE)), np.zeros((9, PADDED_SIZE)), np.zeros((9, PADDED_SIZE))
    for i in range(field.shape[0]):
        x, y, z = field[i, 0] - centre[0], field[i, 1] - centre[1], field[i, 2] - centre[2]
        slot = i % 4
        _row(
            nine,
            turn[0, 0] * x + turn[1, 0] * y + turn[2, 0] * z,
            turn[0, 1] * x + turn[1, 1] * y + turn[2, 1] * z,
            turn[0, 2] * x + turn[1, 2] * y + turn[2, 2] * z,
            four,
            slot,
            foot,
        )
        _tangents(nine, foot, first, second, slot)
        left = four[slot, 9] - variance * four[slot, 10]
        for j in range(9):
            score[slot, j] = left * four[slot, j]
        for j in range(11):
            shortest[j] += four[slot, j]
        if (count + i + 1) % BLOCK_FACTOR == 0:
            _add_blocks(count + i + 1, parts, blocks)
        if slot == 3:
            _add_products(four, whole)
            _add_products(first, noise)
            _add_products(second, noise)
            _add_products(score, scored)
    used = field.shape[0] % 4
    _add_remaining(four, used, whole, blocks[0])
    _add_remaining(second, used, noise, np.zeros((9, 9)))
    _add_remaining(first, used, noise, noisy)
    _add_remaining(score, used, scored, scores)
