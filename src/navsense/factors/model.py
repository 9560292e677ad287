"""The arithmetic that every magnetometer factor shares, in scalars.

    b_m = R_bn (s d_n) + b        R_bn = R_nb^-1, the factors' variable R_nb takes body to navigation coordinates
    e   = predicted - measured    GTSAM's sign; its page writes the other one, its printed numbers have this one

Navigation frame n (NED or ENU, as the direction is given), body frame b; s, b and m in one unit, whichever. A rotation
moves by R_nb Exp(xi), xi in the body frame, so that with q = R_bn (s d_n) the derivative of q is the cross matrix of q.
A direction moves in the tangent plane spanned by GTSAM's basis: with e_k the coordinate axis on which the direction has
its smallest part (of equal ones the first), b_1 = d x e_k / |d x e_k| and b_2 = d x b_1.
With R_nb as the quaternion w x y z, q = rotation.turned(w, -x, -y, -z, ...), `rotate` within kernels.
Source: GTSAM's `navigation/MagFactor.h` and `geometry/Unit3.cpp`, held against GTSAM 4.3.0 in the tests.
"""

from __future__ import annotations

import math

from navsense.kernels import kernel


def tangent(x: float, y: float, z: float) -> tuple[float, float, float, float, float, float]:
    """Return b_1 and b_2, six numbers, of a unit vector's tangent plane."""
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


tangent_basis = kernel(tangent)
