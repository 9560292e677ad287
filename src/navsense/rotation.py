"""Quaternions in scalars: unit Hamilton quaternions w x y z, scalars in and a tuple out.

``rotation_ab`` takes coordinates of frame b to coordinates of frame a. Each formula is a plain function (`turned`,
`product`) for single poses and a kernel of it (`rotate`, `multiply`) for use inside compiled loops.
"""

from __future__ import annotations

from navsense.compiled import kernel


def turned(w: float, x: float, y: float, z: float, vx: float, vy: float, vz: float) -> tuple[float, float, float]:
    """Return v_a = rotation_ab v_b for one vector (any unit)."""
    tx = 2.0 * (y * vz - z * vy)
    ty = 2.0 * (z * vx - x * vz)
    tz = 2.0 * (x * vy - y * vx)
    return (
        vx + w * tx + (y * tz - z * ty),
        vy + w * ty + (z * tx - x * tz),
        vz + w * tz + (x * ty - y * tx),
    )


rotate = kernel(turned)


def product(
    qw: float, qx: float, qy: float, qz: float, pw: float, px: float, py: float, pz: float
) -> tuple[float, float, float, float]:
    """Return the Hamilton product q p."""
    return (
        qw * pw - qx * px - qy * py - qz * pz,
        qw * px + qx * pw + qy * pz - qz * py,
        qw * py - qx * pz + qy * pw + qz * px,
        qw * pz + qx * py - qy * px + qz * pw,
    )


multiply = kernel(product)


@kernel
def cross(ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> tuple[float, float, float]:
    """Return the vector product a x b."""
    return (ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)
