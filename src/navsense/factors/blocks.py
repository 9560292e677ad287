"""Residuals and Jacobians of many measurements in one call: the factors' own arithmetic in compiled loops.

    e_i = R_bn,i (s d_n) + b - m_i              and its derivatives, as in `model`, a row of the arrays a measurement

What belongs to one measurement has a leading axis of n rows; what all of them share has none. Either way round: a
million attitudes and one field, or one field and one bias, the unknowns of a million measurements. Rotations are R_nb,
body to navigation frame, as quaternions w x y z (n, 4), matrices (n, 3, 3) or GTSAM's Rot3, yaws rad (n,) or Rot2,
directions vectors of any length or Unit3. Units are the caller's; a `FactorWarning` says where two are likely.

The loops make no temporaries and no row depends on another, so that a record may be cut anywhere. An earlier result
handed back as `out` is filled anew and nothing is allocated: fresh memory takes longer than the arithmetic.
Every function raises `FactorError` for a wrong shape, for numbers that are not finite and for what is no rotation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from navsense.factors._rows import Block, Rows, identities, matrix, room
from navsense.factors.arguments import warn_of_units
from navsense.factors.model import tangent_basis
from navsense.kernels import kernel
from navsense.typing import FloatArray

__all__ = [
    "Block",
    "mag_factor",
    "mag_factor1",
    "mag_factor2",
    "mag_factor3",
    "mag_pose_factor_pose2",
    "mag_pose_factor_pose3",
]

FIRST = 32
"""Rows that are asked for their units: a mistake of units is in all of them."""


@kernel
def _unit(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return a vector at length 1 as the single factors do, however short or long it is; NaN where it is none."""
    largest = max(abs(x), abs(y), abs(z))
    if not 0.0 < largest < math.inf:
        return math.nan, math.nan, math.nan
    x, y, z = x / largest, y / largest, z / largest
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length


@kernel
def _yaw(
    theta: FloatArray,
    measured: FloatArray,
    scale: FloatArray,
    direction: FloatArray,
    bias: FloatArray,
    mount: FloatArray,
    e: FloatArray,
    h: FloatArray,
) -> int:
    """Write residuals (n, 2 or 3) and Jacobians, the yaw the last column; return the first row that is no number."""
    rows, last = e.shape[1], h.shape[2] - 1
    own = int(theta.shape[0] > 1), int(measured.shape[0] > 1), int(bias.shape[0] > 1)
    scales, directions = int(scale.shape[0] > 1), int(direction.shape[0] > 1)
    x, y, z = 0.0, 0.0, 0.0
    ms, mc = math.sin(mount[0]), math.cos(mount[0])
    for i in range(e.shape[0]):
        if i == 0 or scales + directions > 0:
            j, s = i * directions, scale[i * scales, 0]
            x, y, z = _unit(direction[j, 0], direction[j, 1], direction[j, 2] if rows == 3 else 0.0)
            x, y, z = s * x, s * y, s * z
        j, k = i * own[1], i * own[2]
        sine, cosine = math.sin(theta[i * own[0], 0]), math.cos(theta[i * own[0], 0])
        qx, qy = cosine * x + sine * y, cosine * y - sine * x
        dx, dy, dz = bias[k, 0] - measured[j, 0], bias[k, 1] - measured[j, 1], 0.0
        e[i, 0], e[i, 1] = qx + (mc * dx - ms * dy), qy + (ms * dx + mc * dy)
        if rows == 3:
            dz = z + (bias[k, 2] - measured[j, 2])
            e[i, 2] = dz
        if not abs(e[i, 0]) + abs(e[i, 1]) + abs(dz) < math.inf:
            return i
        if h.shape[0] > 0:
            h[i] = 0.0
            h[i, 0, last], h[i, 1, last] = qy, -qx
    return -1


@kernel
def _attitude(
    rotation: FloatArray,
    measured: FloatArray,
    scale: FloatArray,
    direction: FloatArray,
    bias: FloatArray,
    mount: FloatArray,
    e: FloatArray,
    h: FloatArray,
) -> int:
    """Write residuals (n, 3) and Jacobians (n, 3, 3 or 6); return the first row that is no number."""
    rotations, measurements, biases = int(rotation.shape[0] > 1), int(measured.shape[0] > 1), int(bias.shape[0] > 1)
    scales, directions = int(scale.shape[0] > 1), int(direction.shape[0] > 1)
    mounted, pose = mount.shape[0] > 0, h.shape[2] == 6
    x, y, z = 0.0, 0.0, 0.0
    for i in range(e.shape[0]):
        if i == 0 or scales + directions > 0:
            j, s = i * directions, scale[i * scales, 0]
            x, y, z = _unit(direction[j, 0], direction[j, 1], direction[j, 2])
            x, y, z = s * x, s * y, s * z
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(rotation, i * rotations)
        j, k = i * measurements, i * biases
        qx, qy, qz = r00 * x + r10 * y + r20 * z, r01 * x + r11 * y + r21 * z, r02 * x + r12 * y + r22 * z
        dx, dy, dz = bias[k, 0] - measured[j, 0], bias[k, 1] - measured[j, 1], bias[k, 2] - measured[j, 2]
        if mounted:
            r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(mount, 0)
            dx, dy, dz = r00 * dx + r01 * dy + r02 * dz, r10 * dx + r11 * dy + r12 * dz, r20 * dx + r21 * dy + r22 * dz
        e[i, 0], e[i, 1], e[i, 2] = qx + dx, qy + dy, qz + dz
        if not abs(e[i, 0]) + abs(e[i, 1]) + abs(e[i, 2]) < math.inf:
            return i
        if h.shape[0] > 0:
            h[i, 0, 0], h[i, 0, 1], h[i, 0, 2] = 0.0, -qz, qy
            h[i, 1, 0], h[i, 1, 1], h[i, 1, 2] = qz, 0.0, -qx
            h[i, 2, 0], h[i, 2, 1], h[i, 2, 2] = -qy, qx, 0.0
            if pose:
                h[i, 0, 3], h[i, 0, 4], h[i, 0, 5] = 0.0, 0.0, 0.0
                h[i, 1, 3], h[i, 1, 4], h[i, 1, 5] = 0.0, 0.0, 0.0
                h[i, 2, 3], h[i, 2, 4], h[i, 2, 5] = 0.0, 0.0, 0.0
    return -1


@kernel
def _field(
    field: FloatArray, bias: FloatArray, measured: FloatArray, rotation: FloatArray, e: FloatArray, h: FloatArray
) -> int:
    """Write residuals (n, 3) and Jacobians (n, 3, 3) by the field; return the first row that is no number."""
    fields, biases = int(field.shape[0] > 1), int(bias.shape[0] > 1)
    rotations, measurements = int(rotation.shape[0] > 1), int(measured.shape[0] > 1)
    for i in range(e.shape[0]):
        j, k, m = i * fields, i * biases, i * measurements
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(rotation, i * rotations)
        x, y, z = field[j, 0], field[j, 1], field[j, 2]
        e[i, 0] = r00 * x + r10 * y + r20 * z + (bias[k, 0] - measured[m, 0])
        e[i, 1] = r01 * x + r11 * y + r21 * z + (bias[k, 1] - measured[m, 1])
        e[i, 2] = r02 * x + r12 * y + r22 * z + (bias[k, 2] - measured[m, 2])
        if not abs(e[i, 0]) + abs(e[i, 1]) + abs(e[i, 2]) < math.inf:
            return i
        if h.shape[0] > 0:
            h[i, 0, 0], h[i, 0, 1], h[i, 0, 2] = r00, r10, r20
            h[i, 1, 0], h[i, 1, 1], h[i, 1, 2] = r01, r11, r21
            h[i, 2, 0], h[i, 2, 1], h[i, 2, 2] = r02, r12, r22
    return -1


@kernel
def _direction(
    scale: FloatArray,
    direction: FloatArray,
    bias: FloatArray,
    measured: FloatArray,
    rotation: FloatArray,
    e: FloatArray,
    by_scale: FloatArray,
    by_direction: FloatArray,
) -> int:
    """Write residuals (n, 3) and Jacobians (n, 3, 1), (n, 3, 2); return the first row that is no number."""
    scales, directions, biases = int(scale.shape[0] > 1), int(direction.shape[0] > 1), int(bias.shape[0] > 1)
    rotations, measurements = int(rotation.shape[0] > 1), int(measured.shape[0] > 1)
    x, y, z = 0.0, 0.0, 0.0
    ux, uy, uz, vx, vy, vz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(e.shape[0]):
        if i == 0 or directions > 0:
            j = i * directions
            x, y, z = _unit(direction[j, 0], direction[j, 1], direction[j, 2])
            ux, uy, uz, vx, vy, vz = tangent_basis(x, y, z)
        s, k, m = scale[i * scales, 0], i * biases, i * measurements
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(rotation, i * rotations)
        dx, dy, dz = r00 * x + r10 * y + r20 * z, r01 * x + r11 * y + r21 * z, r02 * x + r12 * y + r22 * z
        e[i, 0] = s * dx + (bias[k, 0] - measured[m, 0])
        e[i, 1] = s * dy + (bias[k, 1] - measured[m, 1])
        e[i, 2] = s * dz + (bias[k, 2] - measured[m, 2])
        if not abs(e[i, 0]) + abs(e[i, 1]) + abs(e[i, 2]) < math.inf:
            return i
        if by_scale.shape[0] > 0:
            by_scale[i, 0, 0], by_scale[i, 1, 0], by_scale[i, 2, 0] = dx, dy, dz
            by_direction[i, 0, 0] = s * (r00 * ux + r10 * uy + r20 * uz)
            by_direction[i, 1, 0] = s * (r01 * ux + r11 * uy + r21 * uz)
            by_direction[i, 2, 0] = s * (r02 * ux + r12 * uy + r22 * uz)
            by_direction[i, 0, 1] = s * (r00 * vx + r10 * vy + r20 * vz)
            by_direction[i, 1, 1] = s * (r01 * vx + r11 * vy + r21 * vz)
            by_direction[i, 2, 1] = s * (r02 * vx + r12 * vy + r22 * vz)
    return -1


def _by_yaw(
    name: str, width: int, columns: int, given: tuple[Any, ...], mount: Any, jacobians: bool, out: Block | None
) -> Block:
    """Return the block of a factor whose unknown turns about z alone."""
    rows = Rows()
    theta, measured, scale, direction, bias = given
    arrays = (
        rows.angle("theta", theta),
        rows.take("measured", measured, width),
        rows.take("scale", scale, 1),
        rows.direction("direction", direction, width),
        rows.take("bias", bias, width),
    )
    mounts = Rows()
    turned = mounts.of_all("rotation_bs", mounts.angle("rotation_bs", mount))[0]
    rows.given["rotation_bs"] = turned[None]
    block = room(out, rows.count, width, (columns,), jacobians=jacobians)
    rows.refuse(_yaw(*arrays, turned, block.residual, _slot(block, 0, columns)))
    _warn_of_units(name, rows)
    return block


def _by_attitude(
    name: str, columns: int, given: tuple[Any, ...], mount: Any, jacobians: bool, out: Block | None
) -> Block:
    """Return the block of a factor whose unknown is an attitude."""
    rows = Rows()
    rotation, measured, scale, direction, bias = given
    arrays = (
        rows.rotation("rotation_nb", rotation),
        rows.take("measured", measured, 3),
        rows.take("scale", scale, 1),
        rows.direction("direction", direction, 3),
        rows.take("bias", bias, 3),
    )
    mounts = Rows()
    mounted = np.empty((0, 4))
    if mount is not None:
        mounted = mounts.of_all("rotation_bs", mounts.rotation("rotation_bs", mount))
    block = room(out, rows.count, 3, (columns,), jacobians=jacobians)
    rows.refuse(_attitude(*arrays, mounted, block.residual, _slot(block, 0, columns)))
    _warn_of_units(name, rows)
    return block


def _warn_of_units(name: str, rows: Rows) -> None:
    """Warn as the single factors do, of the measurement of middle length among the first ones."""
    measured, scale, bias = (rows.given[what][:FIRST] for what in ("measured", "scale", "bias"))
    if min(len(measured), len(scale), len(bias)) == 0:
        return
    reading = np.sort(np.sqrt(((measured - bias) ** 2).sum(axis=1)))
    field = np.sort(np.abs(scale[:, 0]))
    warn_of_units(name, float(field[field.size // 2]), (float(reading[reading.size // 2]),), (0.0,))


def _slot(block: Block, index: int, columns: int) -> FloatArray:
    """Return a Jacobian to be written, empty where none is asked for."""
    return block.jacobians[index] if block.jacobians else np.empty((0, block.residual.shape[1], columns))


def mag_factor(
    theta: Any,
    measured: ArrayLike,
    scale: ArrayLike,
    direction: Any,
    bias: ArrayLike,
    *,
    jacobians: bool = True,
    out: Block | None = None,
) -> Block:
    """Return residuals (n, 3) of `MagFactor` and their Jacobian (n, 3, 1) by the yaw `theta` (n,) rad.

    `measured`, `direction`, `bias` are (n, 3), `scale` is (n,), each without the leading axis where it is shared.
    """
    return _by_yaw("mag_factor", 3, 1, (theta, measured, scale, direction, bias), 0.0, jacobians, out)


def mag_factor1(
    rotation_nb: Any,
    measured: ArrayLike,
    scale: ArrayLike,
    direction: Any,
    bias: ArrayLike,
    *,
    jacobians: bool = True,
    out: Block | None = None,
) -> Block:
    """Return residuals (n, 3) of `MagFactor1` and their Jacobian (n, 3, 3) by `rotation_nb` (n, 4) or (n, 3, 3).

    `measured`, `direction`, `bias` are (n, 3), `scale` is (n,), each without the leading axis where it is shared.
    """
    return _by_attitude("mag_factor1", 3, (rotation_nb, measured, scale, direction, bias), None, jacobians, out)


def mag_factor2(
    field_n: ArrayLike,
    bias: ArrayLike,
    measured: ArrayLike,
    rotation_nb: Any,
    *,
    jacobians: bool = True,
    out: Block | None = None,
) -> Block:
    """Return residuals (n, 3) of `MagFactor2` and their Jacobians (n, 3, 3) by `field_n` and `bias`, both (n, 3)."""
    rows = Rows()
    arrays = (
        rows.take("field_n", field_n, 3),
        rows.take("bias", bias, 3),
        rows.take("measured", measured, 3),
        rows.rotation("rotation_nb", rotation_nb),
    )
    block = room(out, rows.count, 3, (3,), jacobians=jacobians)
    rows.refuse(_field(*arrays, block.residual, _slot(block, 0, 3)))
    return Block(block.residual, (*block.jacobians, identities(rows.count))) if jacobians else block


def mag_factor3(
    scale: ArrayLike,
    direction: Any,
    bias: ArrayLike,
    measured: ArrayLike,
    rotation_nb: Any,
    *,
    jacobians: bool = True,
    out: Block | None = None,
) -> Block:
    """Return residuals (n, 3) of `MagFactor3` and their Jacobians (n, 3, 1), (n, 3, 2), (n, 3, 3).

    By `scale` (n,), by `direction` (n, 3) in GTSAM's tangent basis, by `bias` (n, 3).
    """
    rows = Rows()
    arrays = (
        rows.take("scale", scale, 1),
        rows.direction("direction", direction, 3),
        rows.take("bias", bias, 3),
        rows.take("measured", measured, 3),
        rows.rotation("rotation_nb", rotation_nb),
    )
    block = room(out, rows.count, 3, (1, 2), jacobians=jacobians)
    rows.refuse(_direction(*arrays, block.residual, _slot(block, 0, 1), _slot(block, 1, 2)))
    return Block(block.residual, (*block.jacobians, identities(rows.count))) if jacobians else block


def mag_pose_factor_pose2(
    theta: Any,
    measured: ArrayLike,
    scale: ArrayLike,
    direction: Any,
    bias: ArrayLike,
    rotation_bs: Any = 0.0,
    *,
    jacobians: bool = True,
    out: Block | None = None,
) -> Block:
    """Return residuals (n, 2), body frame, of `MagPoseFactorPose2`, their Jacobian (n, 2, 3) by x, y and `theta` (rad).

    `measured`, `direction`, `bias` are (n, 2), `scale` is (n,), each without the leading axis where it is shared;
    `rotation_bs` (rad) takes the sensor's axes to the body's. The position plays no part.
    """
    given = (theta, measured, scale, direction, bias)
    return _by_yaw("mag_pose_factor_pose2", 2, 3, given, rotation_bs, jacobians, out)


def mag_pose_factor_pose3(
    rotation_nb: Any,
    measured: ArrayLike,
    scale: ArrayLike,
    direction: Any,
    bias: ArrayLike,
    rotation_bs: Any = None,
    *,
    jacobians: bool = True,
    out: Block | None = None,
) -> Block:
    """Return residuals (n, 3), body frame, of `MagPoseFactorPose3`, their Jacobian (n, 3, 6), rotation before position.

    As `mag_factor1`; `rotation_bs` (4,) or (3, 3) takes the sensor's axes to the body's. The position plays no part.
    """
    given = (rotation_nb, measured, scale, direction, bias)
    return _by_attitude("mag_pose_factor_pose3", 6, given, rotation_bs, jacobians, out)
