"""Quaternions in scalars: unit Hamilton quaternions w x y z, scalars in and a tuple out.

``rotation_ab`` rotates coordinates of frame b to coordinates of frame a. Formulas that single poses use too are plain
functions with the suffix `_python`. Each has a kernel without it: `rotate` is the kernel of `rotate_python`.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Quaternions, Vectors


def rotate_python(
    w: float, x: float, y: float, z: float, vx: float, vy: float, vz: float
) -> tuple[float, float, float]:
    """Return v_a = rotation_ab v_b for one vector (any unit)."""
    tx = 2.0 * (y * vz - z * vy)
    ty = 2.0 * (z * vx - x * vz)
    tz = 2.0 * (x * vy - y * vx)
    return (
        vx + w * tx + (y * tz - z * ty),
        vy + w * ty + (z * tx - x * tz),
        vz + w * tz + (x * ty - y * tx),
    )


rotate = kernel(rotate_python)


@kernel
def rotate_rows_inverse(rotation: Quaternions, vectors: Vectors, out: Vectors) -> None:
    """Write rotation^-1 v (n, 3) for unit quaternions (n, 4) and vectors v (n, 3)."""
    for i in range(out.shape[0]):
        w, x, y, z = rotation[i, 0], -rotation[i, 1], -rotation[i, 2], -rotation[i, 3]
        out[i, 0], out[i, 1], out[i, 2] = rotate(w, x, y, z, vectors[i, 0], vectors[i, 1], vectors[i, 2])


def multiply_python(
    qw: float, qx: float, qy: float, qz: float, pw: float, px: float, py: float, pz: float
) -> tuple[float, float, float, float]:
    """Return the Hamilton product q p."""
    return (
        qw * pw - qx * px - qy * py - qz * pz,
        qw * px + qx * pw + qy * pz - qz * py,
        qw * py - qx * pz + qy * pw + qz * px,
        qw * pz + qx * py - qy * px + qz * pw,
    )


multiply = kernel(multiply_python)


def multiply_arrays(q: FloatArray, p: FloatArray) -> Quaternions:
    """Return the Hamilton products q p (n, 4) of quaternions (n, 4), one of which may be (4,)."""
    return np.stack(multiply_python(*np.moveaxis(q, -1, 0), *np.moveaxis(p, -1, 0)), axis=-1)


def to_rotation_vector_python(w: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the shortest rotation vector (rad) of a quaternion."""
    sine = math.sqrt(x * x + y * y + z * z)
    scale = 2.0
    if sine > 0.0:
        scale = 2.0 * math.atan2(sine, abs(w)) / sine
    if w < 0.0:
        scale = -scale
    return scale * x, scale * y, scale * z


to_rotation_vector = kernel(to_rotation_vector_python)


@kernel
def cross(ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> tuple[float, float, float]:
    """Return the vector product a x b."""
    return (ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)


def to_matrix_python(
    w: float, x: float, y: float, z: float
) -> tuple[float, float, float, float, float, float, float, float, float]:
    """Return the rotation matrix, row by row, of a quaternion of any length except 0."""
    s = 2.0 / (w * w + x * x + y * y + z * z)
    sx, sy, sz = s * x, s * y, s * z
    return (
        1.0 - (y * sy + z * sz),
        x * sy - w * sz,
        x * sz + w * sy,
        x * sy + w * sz,
        1.0 - (x * sx + z * sz),
        y * sz - w * sx,
        x * sz - w * sy,
        y * sz + w * sx,
        1.0 - (x * sx + y * sy),
    )


to_matrix = kernel(to_matrix_python)
