"""Rotation and tangent-plane formulas that all magnetometer factors share, in scalars.

    b_m = R_bn (s d_n) + b        R_bn = R_nb^-1; the unknown R_nb takes body coordinates to navigation coordinates
    e   = predicted - measured    the sign of GTSAM's code and of its printed numbers; its page writes the other sign

The navigation frame n is NED or ENU, as the direction is given. s, b and m have one unit, any unit. A rotation is
updated as R_nb Exp(xi) with xi in the body frame. With q = R_bn (s d_n), dq/dxi is the cross-product matrix of q.
A direction d is updated in the tangent plane of GTSAM's basis. Let e_k be the coordinate axis along which d has its
smallest component (the first one if several are equal). Then b_1 = d x e_k / |d x e_k| and b_2 = d x b_1.

Source: GTSAM's `navigation/MagFactor.h` and `geometry/Unit3.cpp`. The tests compare with GTSAM 4.3.0.
"""

from __future__ import annotations

import math

from navsense.core.kernels import kernel
from navsense.factors.arguments import Numbers


def tangent_basis_python(x: float, y: float, z: float) -> tuple[float, float, float, float, float, float]:
    """Return the tangent basis b_1 and b_2 of a unit vector, six numbers."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if ax <= ay and ax <= az:
        px, py, pz = 0.0, z, -y
    elif ay <= az:
        px, py, pz = -z, 0.0, x
    else:
        px, py, pz = y, -x, 0.0
    length = math.sqrt(px * px + py * py + pz * pz)
    px, py, pz = px / length, py / length, pz / length
    return px, py, pz, y * pz - z * py, z * px - x * pz, x * py - y * px


tangent_basis = kernel(tangent_basis_python)


def rotate_inverse(rotation: Numbers, v: Numbers) -> Numbers:
    """Return R^-1 v. The first nine numbers of `rotation` are R, row by row."""
    x, y, z = v
    return (
        rotation[0] * x + rotation[3] * y + rotation[6] * z,
        rotation[1] * x + rotation[4] * y + rotation[7] * z,
        rotation[2] * x + rotation[5] * y + rotation[8] * z,
    )


def cross_matrix(v: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the matrix M with M w = v x w."""
    x, y, z = v
    return (0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)
