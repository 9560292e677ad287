"""Means over sample intervals whose increments give the motion exactly, for any rotation within an interval.

Over (t_0, t_1] of length T, in the sensor's frame at t_0, with omega_e the earth's rate (0 without `earth_rotation`)
and C(s) the rotation of rotation vector omega_e s, from the world at t_0 + s to the world at t_0:

    angular velocity = rotation vector of (rotation_0^-1 C(T) rotation_1) / T
    specific force   = rotation_0^-1 (C(T) v_1 - v_0 + omega_e x integral of C v - integral of C g) / T

The rotation vector is the shortest: a rotation by pi or more in one interval is read as one in the opposite sense. The
increments are those of the trajectory, so their sums give it back. The integral of C v uses Simpson's rule, with v in
the middle from the cubic through both ends; it acts with the earth's rate only. The integral of gravity is exact for
uniform gravity. Otherwise it uses Simpson's rule, with the position in the middle from the same cubic.
Source: Savage 1998, J. Guidance, Control, and Dynamics 21(1), for increments in a rotating frame.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.readings import make_read_only
from navsense.core.rotation import cross, multiply, rotate, to_rotation_vector
from navsense.core.ticks import Ticks
from navsense.core.typing import FloatArray, IntArray, Quaternions, Vectors
from navsense.environment.base import UniformField, VectorField
from navsense.motion.base import Motion, MotionBlock
from navsense.motion.derived import is_known_ahead


@kernel
def to_quaternion(x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """Return the quaternion of a rotation vector (rad)."""
    angle = math.sqrt(x * x + y * y + z * z)
    scale = 0.5
    if angle > 0.0:
        scale = math.sin(0.5 * angle) / angle
    return math.cos(0.5 * angle), scale * x, scale * y, scale * z


@kernel
def simpson(first: float, middle: float, last: float) -> float:
    """Return the mean of three values by Simpson's rule; equal values give exactly that value."""
    return middle + ((first - middle) + (last - middle)) / 6.0


@kernel
def _interpolate_middle(interval: float, p0: Vectors, v0: Vectors, p1: Vectors, v1: Vectors, out: Vectors) -> None:
    """Write the position (n, 3) m in the middle of each interval, by the cubic through both ends."""
    for i in range(out.shape[0]):
        for axis in range(3):
            bend = 0.125 * interval * (v0[i, axis] - v1[i, axis])
            out[i, axis] = 0.5 * (p0[i, axis] + p1[i, axis]) + bend


@kernel
def _compute_means(
    interval: float,
    earth: FloatArray,
    index: IntArray,
    places: tuple[Vectors, Vectors],
    rotations: tuple[Quaternions, Quaternions],
    velocities: tuple[Vectors, Vectors],
    gravity: tuple[Vectors, Vectors, Vectors],
    channels: FloatArray,
) -> None:
    """Write the means over the interval (s) before each tick to channels (6, n), except for tick 0.

    Positions m, rotations and velocities m/s at the two ends; gravity m/s^2 at ends and middle; earth (3,) rad/s.
    """
    (p0, p1), (q0, q1), (v0, v1) = places, rotations, velocities
    ex, ey, ez = earth[0], earth[1], earth[2]
    half = 0.5 * interval
    hw, hx, hy, hz = to_quaternion(half * ex, half * ey, half * ez)
    cw, cx, cy, cz = to_quaternion(interval * ex, interval * ey, interval * ez)
    for i in range(index.shape[0]):
        if index[i] == 0:
            continue
        w, x, y, z = q0[i, 0], -q0[i, 1], -q0[i, 2], -q0[i, 3]
        aw, ax, ay, az = multiply(cw, cx, cy, cz, q1[i, 0], q1[i, 1], q1[i, 2], q1[i, 3])
        aw, ax, ay, az = multiply(w, x, y, z, aw, ax, ay, az)
        ax, ay, az = to_rotation_vector(aw, ax, ay, az)
        channels[0, i], channels[1, i], channels[2, i] = ax / interval, ay / interval, az / interval

        mx = 1.5 * (p1[i, 0] - p0[i, 0]) / interval - 0.25 * (v0[i, 0] + v1[i, 0])
        my = 1.5 * (p1[i, 1] - p0[i, 1]) / interval - 0.25 * (v0[i, 1] + v1[i, 1])
        mz = 1.5 * (p1[i, 2] - p0[i, 2]) / interval - 0.25 * (v0[i, 2] + v1[i, 2])
        mx, my, mz = rotate(hw, hx, hy, hz, mx, my, mz)
        lx, ly, lz = rotate(cw, cx, cy, cz, v1[i, 0], v1[i, 1], v1[i, 2])
        mx, my, mz = simpson(v0[i, 0], mx, lx), simpson(v0[i, 1], my, ly), simpson(v0[i, 2], mz, lz)
        kx, ky, kz = cross(ex, ey, ez, mx, my, mz)

        gx, gy, gz = rotate(hw, hx, hy, hz, gravity[1][i, 0], gravity[1][i, 1], gravity[1][i, 2])
        nx, ny, nz = rotate(cw, cx, cy, cz, gravity[2][i, 0], gravity[2][i, 1], gravity[2][i, 2])
        gx = simpson(gravity[0][i, 0], gx, nx)
        gy = simpson(gravity[0][i, 1], gy, ny)
        gz = simpson(gravity[0][i, 2], gz, nz)

        fx = (lx - v0[i, 0]) / interval + kx - gx
        fy = (ly - v0[i, 1]) / interval + ky - gy
        fz = (lz - v0[i, 2]) / interval + kz - gz
        channels[3, i], channels[4, i], channels[5, i] = rotate(w, x, y, z, fx, fy, fz)


def evaluate_interval_starts(
    motion: Motion, ticks: Ticks, motion_block: MotionBlock
) -> tuple[FloatArray, Vectors, Quaternions, Vectors]:
    """Return the starts (n,) s of the intervals of ticks, and position, attitude and velocity there.

    The interval of tick 0 has length 0. A motion without memory is evaluated at single instants, which `CachedMotion`
    stores.
    """
    index = np.maximum(ticks.index - ticks.nominal_step, 0)
    time = index / ticks.rate
    if not is_known_ahead(motion) and len(ticks) > 1:
        motion.at(ticks.time[-1:])
    if np.array_equal(index[1:], ticks.index[:-1]):
        start = motion.at(time[:1])
        pairs = ((getattr(start, name), getattr(motion_block, name)[:-1]) for name in _END_ARRAYS)
        place, rotation, velocity = (np.concatenate(pair) for pair in pairs)
    else:
        block = motion.at(time)
        place, rotation, velocity = (getattr(block, name) for name in _END_ARRAYS)
    return time, place, rotation, velocity


_END_ARRAYS = ("position_w", "rotation_wb", "velocity_w")


def average_intervals(
    motion: Motion, field: VectorField, earth: FloatArray, ticks: Ticks, motion_block: MotionBlock, channels: FloatArray
) -> None:
    """Write the means over the interval before each tick to channels (6, n): rad/s, then m/s^2; tick 0 is unchanged.

    `motion_block`: motion of the sensor at the ticks. `field`: gravity, earth (3,) rad/s.
    """
    interval = ticks.nominal_step / ticks.rate
    time, place, rotation, velocity = evaluate_interval_starts(motion, ticks, motion_block)
    # The arrays are read-only, as those of the motion are, so that the kernel is compiled once.
    place, rotation, velocity = (make_read_only(array) for array in (place, rotation, velocity))
    gravity = make_read_only(field.at(motion_block.position_w, ticks.time))
    fields = (gravity, gravity, gravity)
    if not isinstance(field, UniformField):
        middle = np.empty(place.shape)
        _interpolate_middle(interval, place, velocity, motion_block.position_w, motion_block.velocity_w, middle)
        halfway = make_read_only(field.at(middle, 0.5 * (time + ticks.time)))
        fields = (make_read_only(field.at(place, time)), halfway, gravity)
    places, rotations = (place, motion_block.position_w), (rotation, motion_block.rotation_wb)
    _compute_means(
        interval, earth, ticks.index, places, rotations, (velocity, motion_block.velocity_w), fields, channels
    )
