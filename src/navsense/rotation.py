"""Quaternion kernels: unit Hamilton quaternions w x y z, scalar in and tuple out, for use inside compiled loops.

``rotation_ab`` takes coordinates of frame b to coordinates of frame a.
"""

from __future__ import annotations

from navsense.compiled import kernel


@kernel
def rotate(w: float, x: float, y: float, z: float, vx: float, vy: float, vz: float) -> tuple[float, float, float]:
    """Return v_a = rotation_ab v_b for one vector (any unit)."""
    tx = 2.0 * (y * vz - z * vy)
    ty = 2.0 * (z * vx - x * vz)
    tz = 2.0 * (x * vy - y * vx)
    return (
        vx + w * tx + (y * tz - z * ty),
        vy + w * ty + (z * tx - x * tz),
        vz + w * tz + (x * ty - y * tx),
    )


@kernel
def multiply(
    qw: float, qx: float, qy: float, qz: float, pw: float, px: float, py: float, pz: float
) -> tuple[float, float, float, float]:
    """Return the Hamilton product q p."""
    return (
        qw * pw - qx * px - qy * py - qz * pz,
        qw * px + qx * pw + qy * pz - qz * py,
        qw * py - qx * pz + qy * pw + qz * px,
        qw * pz + qx * py - qy * px + qz * pw,
    )


@kernel
def cross(ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> tuple[float, float, float]:
    """Return the vector product a x b."""
    return (ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)
