"""Solution of one ping: velocity and its covariance, error velocity, altitude, course over ground.

The symbols are those of `sensors.doppler`. Beam k measures b_k' = u_k . v + sigma_k w_k:

    v = G^-1 sum g_k b_k' u_k,   G = sum g_k u_k u_k^T,   g_k = 1 / sigma_k^2, equal weights if any sigma_k is 0
    cov v = sum sigma_k^2 h_k h_k^T,   h_k = g_k G^-1 u_k                                 G^-1 if g_k = 1 / sigma_k^2

over the good beams. There must be three or more, not in one plane. For four beams at a Janus angle of 30 degrees the
covariance is sigma^2 diag(2, 2, 1/3).

The error velocity measures how much the K good beams disagree. rho_k are the residuals of the solution with equal
weights. C is its covariance for beams of standard deviation 1.

    e = sign(rho_1) sqrt(sum rho_k^2 / (K - 3)) sqrt((tr C - a . C a) / 2)

It has the variance of a velocity component perpendicular to the instrument axis. Four beams have one residual. For
opposite beams 1, 2 and opposite beams 3, 4, e is Teledyne RDI's (b_1 + b_2 - b_3 - b_4) / (2 sqrt 2 sin theta). More
beams have K - 3 residuals: e is their root mean square. Three beams have no residual. Here a is the mean axis of the
good beams.

The altitude is the height of the sensor above the least-squares plane z = z0 + slope_x x + slope_y y. The plane goes
through the bottom points, where the beams meet the bottom. The altitude includes the attitude and the slope, but not
the terrain between the beams.

    course = atan2(v_east, v_north) in [0, 2 pi),   speed = |(v_east, v_north)|,   v_enu = attitude v

Source: Teledyne RD Instruments, ADCP Coordinate Transformation, P/N 951-6079-00, 5.3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.rotation import rotate
from navsense.core.typing import BoolArray, FloatArray, Vectors
from navsense.sensors.doppler.beams import MIN_BEAMS, MIN_DETERMINANT

_MIN_SCATTER = 1e-12
"""Smallest determinant of the horizontal scatter matrix of the bottom points, at trace 1; else they are on a line."""

_MIN_FRACTION = 1e-6
"""A residual below this fraction of the root sum of squares is rounding; its sign is not used."""

_MIN_AXES_SUM_SQUARED = 1e-6
"""Squared length of the sum of axes below which the good beams have no mean axis."""


class TrackSolutions(NamedTuple):
    """Work arrays of a kernel: the solutions of one ping. The first axis is bottom track, water track.

    good, velocity, covariance: (2, k), (2, 3) m/s, (2, 3, 3).
    """

    good: BoolArray
    velocity: FloatArray
    covariance: FloatArray


def allocate_solutions(beams: int) -> TrackSolutions:
    """Return work arrays for an instrument with this number of beams."""
    return TrackSolutions(np.empty((2, beams), np.bool_), np.empty((2, 3)), np.empty((2, 3, 3)))


@kernel
def _find_min_stddev(stddev: FloatArray, good: BoolArray) -> float:
    """Return the smallest standard deviation of the good beams."""
    min_stddev = math.inf
    for k in range(stddev.shape[0]):
        if good[k] and stddev[k] < min_stddev:
            min_stddev = stddev[k]
    return min_stddev


@kernel
def _compute_weight(min_stddev: float, stddev: float) -> float:
    """Return a beam's weight: 1 for the smallest standard deviation."""
    ratio = min_stddev / stddev
    return ratio * ratio


@kernel
def _compute_gram(
    axes: Vectors, stddev: FloatArray, good: BoolArray, min_stddev: float
) -> tuple[float, float, float, float, float, float]:
    """Return the upper triangle of G of the good beams; g_k = (min_stddev / stddev)^2, or 1 if `min_stddev` is 0."""
    xx, xy, xz, yy, yz, zz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(axes.shape[0]):
        if good[k]:
            w = _compute_weight(min_stddev, stddev[k]) if min_stddev > 0.0 else 1.0
            x, y, z = axes[k, 0], axes[k, 1], axes[k, 2]
            xx += w * x * x
            xy += w * x * y
            xz += w * x * z
            yy += w * y * y
            yz += w * y * z
            zz += w * z * z
    return xx, xy, xz, yy, yz, zz


@kernel
def _compute_determinant(xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> float:
    """Return the determinant of a symmetric matrix."""
    return xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)


@kernel
def invert_symmetric(
    xx: float, xy: float, xz: float, yy: float, yz: float, zz: float
) -> tuple[float, float, float, float, float, float]:
    """Return the upper triangle of the inverse of a symmetric matrix."""
    d = _compute_determinant(xx, xy, xz, yy, yz, zz)
    return (
        (yy * zz - yz * yz) / d,
        (xz * yz - xy * zz) / d,
        (xy * yz - xz * yy) / d,
        (xx * zz - xz * xz) / d,
        (xy * xz - xx * yz) / d,
        (xx * yy - xy * xy) / d,
    )


@kernel
def _count_good(axes: Vectors, good: BoolArray) -> int:
    """Return the number of good beams; 0 if they do not span space."""
    count = 0
    for k in range(good.shape[0]):
        if good[k]:
            count += 1
    # A minimum of 0 means equal weights: the standard deviations, here an axis, are not read.
    xx, xy, xz, yy, yz, zz = _compute_gram(axes, axes[0], good, 0.0)
    mean = count / 3.0
    if count < MIN_BEAMS or not _compute_determinant(xx, xy, xz, yy, yz, zz) > MIN_DETERMINANT * mean * mean * mean:
        count = 0
    return count


@kernel
def _fit(
    axes: Vectors, velocity: FloatArray, stddev: FloatArray, good: BoolArray, min_stddev: float
) -> tuple[float, float, float, float, float, float, float, float, float]:
    """Return the velocity and the upper triangle of G^-1, with the weights of `_compute_gram`."""
    bx, by, bz = 0.0, 0.0, 0.0
    for k in range(axes.shape[0]):
        if good[k]:
            weighted = (_compute_weight(min_stddev, stddev[k]) if min_stddev > 0.0 else 1.0) * velocity[k]
            bx += weighted * axes[k, 0]
            by += weighted * axes[k, 1]
            bz += weighted * axes[k, 2]
    gxx, gxy, gxz, gyy, gyz, gzz = _compute_gram(axes, stddev, good, min_stddev)
    xx, xy, xz, yy, yz, zz = invert_symmetric(gxx, gxy, gxz, gyy, gyz, gzz)
    return (
        xx * bx + xy * by + xz * bz,
        xy * bx + yy * by + yz * bz,
        xz * bx + yz * by + zz * bz,
        xx,
        xy,
        xz,
        yy,
        yz,
        zz,
    )


@kernel
def solve_velocity(
    axes: Vectors,
    velocity: FloatArray,
    stddev: FloatArray,
    good: BoolArray,
    out: FloatArray,
    covariance: FloatArray,
) -> int:
    """Write the velocity (3,) m/s and its covariance (3, 3) from one ping's good beams (k,); return their number.

    `stddev` (k,) m/s is finite. If fewer than three are good, or they do not span space, all is NaN and the number
    is 0.
    """
    count = _count_good(axes, good)
    if count == 0:
        out[:] = math.nan
        covariance[:] = math.nan
        return 0
    min_stddev = _find_min_stddev(stddev, good)
    out[0], out[1], out[2], xx, xy, xz, yy, yz, zz = _fit(axes, velocity, stddev, good, min_stddev)
    covariance[:] = 0.0
    for k in range(axes.shape[0]):
        if good[k]:
            w = (_compute_weight(min_stddev, stddev[k]) if min_stddev > 0.0 else 1.0) * stddev[k]
            x, y, z = axes[k, 0], axes[k, 1], axes[k, 2]
            gx, gy, gz = w * (xx * x + xy * y + xz * z), w * (xy * x + yy * y + yz * z), w * (xz * x + yz * y + zz * z)
            covariance[0, 0] += gx * gx
            covariance[0, 1] += gx * gy
            covariance[0, 2] += gx * gz
            covariance[1, 1] += gy * gy
            covariance[1, 2] += gy * gz
            covariance[2, 2] += gz * gz
    covariance[1, 0], covariance[2, 0], covariance[2, 1] = covariance[0, 1], covariance[0, 2], covariance[1, 2]
    return count


@kernel
def compute_error_velocity(axes: Vectors, velocity: FloatArray, good: BoolArray) -> float:
    """Return the error velocity (m/s) of one ping's good beams (k,); NaN for fewer than four or no solution."""
    count = _count_good(axes, good)
    if count < 4:
        return math.nan
    # A minimum of 0 means equal weights: the standard deviations, here the velocities, are not read.
    vx, vy, vz, xx, xy, xz, yy, yz, zz = _fit(axes, velocity, velocity, good, 0.0)
    ax, ay, az, squares = 0.0, 0.0, 0.0, 0.0
    for k in range(axes.shape[0]):
        if good[k]:
            x, y, z = axes[k, 0], axes[k, 1], axes[k, 2]
            ax, ay, az = ax + x, ay + y, az + z
            r = velocity[k] - (x * vx + y * vy + z * vz)
            squares += r * r
    sign, size = 0.0, math.sqrt(squares)
    for k in range(axes.shape[0]):
        if good[k] and sign == 0.0:
            r = velocity[k] - (axes[k, 0] * vx + axes[k, 1] * vy + axes[k, 2] * vz)
            if abs(r) > _MIN_FRACTION * size:
                sign = math.copysign(1.0, r)
    axis_sum_squared = ax * ax + ay * ay + az * az
    variance = (xx + yy + zz) / 3.0
    if axis_sum_squared > _MIN_AXES_SUM_SQUARED:
        axial_variance = (
            ax * (xx * ax + xy * ay + xz * az) + ay * (xy * ax + yy * ay + yz * az) + az * (xz * ax + yz * ay + zz * az)
        )
        variance = 0.5 * (xx + yy + zz - axial_variance / axis_sum_squared)
    return sign * size * math.sqrt(variance / (count - 3))


@kernel
def _find_bottom_point(
    axes: Vectors, positions: Vectors, beam_range: FloatArray, k: int, w: float, x: float, y: float, z: float
) -> tuple[float, float, float]:
    """Return the bottom point (m) of beam k relative to the sensor, along the axes of the world."""
    px = positions[k, 0] + beam_range[k] * axes[k, 0]
    py = positions[k, 1] + beam_range[k] * axes[k, 1]
    pz = positions[k, 2] + beam_range[k] * axes[k, 2]
    return rotate(w, x, y, z, px, py, pz)


@kernel
def compute_altitude(
    axes: Vectors,
    positions: Vectors,
    beam_range: FloatArray,
    good: BoolArray,
    w: float,
    x: float,
    y: float,
    z: float,
) -> float:
    """Return the altitude (m) above the plane through the bottom points from ranges `beam_range` (k,) m.

    w x y z is the attitude. The altitude is negative below the plane, and NaN for fewer than three good beams and over
    a vertical plane.
    """
    count, mx, my, mz = 0, 0.0, 0.0, 0.0
    for k in range(axes.shape[0]):
        if good[k]:
            px, py, pz = _find_bottom_point(axes, positions, beam_range, k, w, x, y, z)
            count, mx, my, mz = count + 1, mx + px, my + py, mz + pz
    if count < MIN_BEAMS:
        return math.nan
    mx, my, mz = mx / count, my / count, mz / count
    xx, xy, yy, xz, yz = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(axes.shape[0]):
        if good[k]:
            px, py, pz = _find_bottom_point(axes, positions, beam_range, k, w, x, y, z)
            px, py, pz = px - mx, py - my, pz - mz
            xx += px * px
            xy += px * py
            yy += py * py
            xz += px * pz
            yz += py * pz
    scatter = xx * yy - xy * xy
    if not scatter > _MIN_SCATTER * (xx + yy) * (xx + yy):
        return math.nan
    slope_x, slope_y = (xz * yy - yz * xy) / scatter, (yz * xx - xz * xy) / scatter
    return slope_x * mx + slope_y * my - mz


@kernel
def compute_course_and_speed(
    vx: float, vy: float, vz: float, w: float, x: float, y: float, z: float
) -> tuple[float, float]:
    """Return course (rad, from north clockwise, in [0, 2 pi)) and speed (m/s) over ground of a velocity in s.

    w x y z is the attitude, from the sensor's frame to east, north, up. The course is 0 without speed.
    """
    east, north, _ = rotate(w, x, y, z, vx, vy, vz)
    speed = math.sqrt(east * east + north * north)
    course = 0.0
    if speed != speed:
        course = math.nan
    elif speed > 0.0:
        course = math.atan2(east, north)
        if course < 0.0:
            course += 2.0 * math.pi
        if course >= 2.0 * math.pi:
            course = 0.0
    return course, speed
