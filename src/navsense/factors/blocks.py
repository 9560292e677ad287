"""Residuals and Jacobians of many measurements in one call, in compiled loops.

    e_i = R_bn,i (s d_n) + b - m_i              and its derivatives as in `geometry`, one row per measurement

An argument with a leading axis has one row per measurement. An argument without it is shared by all. Both ways work: a
million attitudes with one field, or one field and one bias as the unknowns of a million measurements. Rotations are
R_nb, body to navigation frame: quaternions w x y z (n, 4), matrices (n, 3, 3) or GTSAM's Rot3. Yaws are numbers (n,)
in rad or Rot2. Directions are vectors of any length or Unit3. Any unit is allowed; a `FactorWarning` says if two units
are likely.

>>> block = ns.factors.blocks.mag_factor1(rotation_ws, field, 50e-6, (0.6, 0.0, 0.8), (0.0, 0.0, 0.0))
>>> block.residual.shape, block.jacobians[0].shape
((599, 3), (599, 3, 3))

The loops allocate no temporary arrays and rows are independent: you can split a record anywhere. Pass an earlier result
as `out` to reuse its arrays, because allocation takes longer than the arithmetic.
Every function raises `FactorError` for a wrong shape, for numbers that are not finite and for invalid rotations.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray
from navsense.factors.arguments import warn_if_units_differ
from navsense.factors.batch_arguments import BatchArguments, Block, allocate_block, repeat_identity, row_to_matrix
from navsense.factors.geometry import tangent_basis

__all__ = [
    "Block",
    "mag_factor",
    "mag_factor1",
    "mag_factor2",
    "mag_factor3",
    "mag_pose_factor_pose2",
    "mag_pose_factor_pose3",
]

UNIT_CHECK_ROWS = 32
"""Rows that are checked for their unit: all rows of an array have the same one."""


class KnownField(NamedTuple):
    """Rows of the arguments that most factors share: measured (n, 2 or 3), scale (n, 1), direction and bias."""

    measured: FloatArray
    scale: FloatArray
    direction: FloatArray
    bias: FloatArray


@kernel
def _unit(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return a vector divided by its length, as the single factors do; NaN for a zero or infinite vector."""
    largest = max(abs(x), abs(y), abs(z))
    if not 0.0 < largest < math.inf:
        return math.nan, math.nan, math.nan
    x, y, z = x / largest, y / largest, z / largest
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length


@kernel
def _yaw_residuals(theta: FloatArray, known: KnownField, mount: FloatArray, e: FloatArray, h: FloatArray) -> int:
    """Write residuals (n, 2 or 3) and Jacobians (yaw last). Return the first row that is not finite, or -1."""
    measured, scale, direction, bias = known
    rows, last = e.shape[1], h.shape[2] - 1
    angles, measurements, biases = int(theta.shape[0] > 1), int(measured.shape[0] > 1), int(bias.shape[0] > 1)
    scales, directions = int(scale.shape[0] > 1), int(direction.shape[0] > 1)
    x, y, z = 0.0, 0.0, 0.0
    ms, mc = math.sin(mount[0]), math.cos(mount[0])
    for i in range(e.shape[0]):
        if i == 0 or scales + directions > 0:
            j, s = i * directions, scale[i * scales, 0]
            x, y, z = _unit(direction[j, 0], direction[j, 1], direction[j, 2] if rows == 3 else 0.0)
            x, y, z = s * x, s * y, s * z
        j, k = i * measurements, i * biases
        sine, cosine = math.sin(theta[i * angles, 0]), math.cos(theta[i * angles, 0])
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
def _attitude_residuals(
    rotation: FloatArray, known: KnownField, mount: FloatArray, e: FloatArray, h: FloatArray
) -> int:
    """Write residuals (n, 3) and Jacobians (n, 3, 3 or 6). Return the first row that is not finite, or -1."""
    measured, scale, direction, bias = known
    rotations, measurements, biases = int(rotation.shape[0] > 1), int(measured.shape[0] > 1), int(bias.shape[0] > 1)
    scales, directions = int(scale.shape[0] > 1), int(direction.shape[0] > 1)
    mounted, pose = mount.shape[0] > 0, h.shape[2] == 6
    x, y, z = 0.0, 0.0, 0.0
    for i in range(e.shape[0]):
        if i == 0 or scales + directions > 0:
            j, s = i * directions, scale[i * scales, 0]
            x, y, z = _unit(direction[j, 0], direction[j, 1], direction[j, 2])
            x, y, z = s * x, s * y, s * z
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = row_to_matrix(rotation, i * rotations)
        j, k = i * measurements, i * biases
        qx, qy, qz = r00 * x + r10 * y + r20 * z, r01 * x + r11 * y + r21 * z, r02 * x + r12 * y + r22 * z
        dx, dy, dz = bias[k, 0] - measured[j, 0], bias[k, 1] - measured[j, 1], bias[k, 2] - measured[j, 2]
        if mounted:
            r00, r01, r02, r10, r11, r12, r20, r21, r22 = row_to_matrix(mount, 0)
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
def _field_residuals(
    field: FloatArray, bias: FloatArray, measured: FloatArray, rotation: FloatArray, e: FloatArray, h: FloatArray
) -> int:
    """Write residuals (n, 3) and Jacobians (n, 3, 3) by the field. Return the first row that is not finite, or -1."""
    fields, biases = int(field.shape[0] > 1), int(bias.shape[0] > 1)
    rotations, measurements = int(rotation.shape[0] > 1), int(measured.shape[0] > 1)
    for i in range(e.shape[0]):
        j, k, m = i * fields, i * biases, i * measurements
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = row_to_matrix(rotation, i * rotations)
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
def _direction_residuals(
    known: KnownField, rotation: FloatArray, e: FloatArray, by_scale: FloatArray, by_direction: FloatArray
) -> int:
    """Write residuals (n, 3) and Jacobians (n, 3, 1), (n, 3, 2). Return the first row that is not finite, or -1."""
    measured, scale, direction, bias = known
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
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = row_to_matrix(rotation, i * rotations)
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


def _yaw_block(
    name: str, width: int, columns: int, given: tuple[Any, ...], mount: Any, jacobians: bool, out: Block | None
) -> Block:
    """Return the block of a factor on a rotation about z."""
    arguments, mount_argument = BatchArguments(), BatchArguments()
    theta, known = arguments.add_angles("theta", given[0]), _add_known_field(arguments, width, *given[1:])
    rotation_bs = mount_argument.add_angles("rotation_bs", mount)[0]
    mount_argument.check_shared("rotation_bs")
    arguments.rows["rotation_bs"] = rotation_bs[None]
    block = allocate_block(out, arguments.count, width, (columns,), jacobians=jacobians)
    arguments.raise_for_row(_yaw_residuals(theta, known, rotation_bs, block.residual, _jacobian(block, 0, columns)))
    _warn_if_units_differ(name, known)
    return block


def _attitude_block(
    name: str, columns: int, given: tuple[Any, ...], mount: Any, jacobians: bool, out: Block | None
) -> Block:
    """Return the block of a factor on an attitude."""
    arguments, mount_argument = BatchArguments(), BatchArguments()
    rotation, known = arguments.add_rotations("rotation_nb", given[0]), _add_known_field(arguments, 3, *given[1:])
    rotation_bs = np.empty((0, 4))
    if mount is not None:
        rotation_bs = mount_argument.add_rotations("rotation_bs", mount)
        mount_argument.check_shared("rotation_bs")
    block = allocate_block(out, arguments.count, 3, (columns,), jacobians=jacobians)
    jacobian = _jacobian(block, 0, columns)
    arguments.raise_for_row(_attitude_residuals(rotation, known, rotation_bs, block.residual, jacobian))
    _warn_if_units_differ(name, known)
    return block


def _add_known_field(
    arguments: BatchArguments, width: int, measured: Any, scale: Any, direction: Any, bias: Any
) -> KnownField:
    """Return the rows of measurement, scale, direction and bias."""
    return KnownField(
        arguments.add_vectors("measured", measured, width),
        arguments.add_vectors("scale", scale, 1),
        arguments.add_directions("direction", direction, width),
        arguments.add_vectors("bias", bias, width),
    )


def _warn_if_units_differ(name: str, known: KnownField) -> None:
    """Check the units of the median field and the median reading of the first rows."""
    measured, scale, bias = (rows[:UNIT_CHECK_ROWS] for rows in (known.measured, known.scale, known.bias))
    if min(len(measured), len(scale), len(bias)) == 0:
        return
    reading = np.sort(np.sqrt(((measured - bias) ** 2).sum(axis=1)))
    field = np.sort(np.abs(scale[:, 0]))
    warn_if_units_differ(name, float(field[field.size // 2]), (float(reading[reading.size // 2]),), (0.0,))


def _jacobian(block: Block, index: int, columns: int) -> FloatArray:
    """Return the array of a Jacobian, an empty one if the caller wants no Jacobians."""
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
    """Return residuals (n, 3) of `MagFactor` and their Jacobian (n, 3, 1) by the yaw.

    theta: yaw (n,), rad.
    measured: readings (n, 3), body frame.
    scale: strength of the field (n,).
    direction: of the field (n, 3), navigation frame.
    bias: (n, 3), body frame. A shared argument has no leading axis.

    >>> ns.factors.blocks.mag_factor(np.zeros(599), field, 5e-5, (0.6, 0.0, 0.8), (0, 0, 0)).residual.shape
    (599, 3)
    """
    return _yaw_block("mag_factor", 3, 1, (theta, measured, scale, direction, bias), 0.0, jacobians, out)


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
    """Return residuals (n, 3) of `MagFactor1` and their Jacobian (n, 3, 3) by the attitude.

    rotation_nb: (n, 4) w x y z or (n, 3, 3), body to navigation frame. The other arguments are those of `mag_factor`.

    >>> ns.factors.blocks.mag_factor1(rotation_ws, field, 5e-5, (0.6, 0.0, 0.8), (0, 0, 0)).residual.shape
    (599, 3)
    """
    return _attitude_block("mag_factor1", 3, (rotation_nb, measured, scale, direction, bias), None, jacobians, out)


def mag_factor2(
    field_n: ArrayLike,
    bias: ArrayLike,
    measured: ArrayLike,
    rotation_nb: Any,
    *,
    jacobians: bool = True,
    out: Block | None = None,
) -> Block:
    """Return residuals (n, 3) of `MagFactor2` and their Jacobians (n, 3, 3) by field and bias.

    field_n: (n, 3), navigation frame.
    bias, measured: (n, 3), body frame.
    rotation_nb: (n, 4) w x y z or (n, 3, 3).

    >>> ns.factors.blocks.mag_factor2((2e-5, 0, -4e-5), (0, 0, 0), field, rotation_ws).residual.shape
    (599, 3)
    """
    arguments = BatchArguments()
    arrays = (
        arguments.add_vectors("field_n", field_n, 3),
        arguments.add_vectors("bias", bias, 3),
        arguments.add_vectors("measured", measured, 3),
        arguments.add_rotations("rotation_nb", rotation_nb),
    )
    block = allocate_block(out, arguments.count, 3, (3,), jacobians=jacobians)
    arguments.raise_for_row(_field_residuals(*arrays, block.residual, _jacobian(block, 0, 3)))
    return Block(block.residual, (*block.jacobians, repeat_identity(arguments.count))) if jacobians else block


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
    """Return residuals (n, 3) of `MagFactor3` and their Jacobians by scale, direction and bias.

    The Jacobians are (n, 3, 1), (n, 3, 2) in GTSAM's tangent basis, and (n, 3, 3). The arguments are those of
    `mag_factor` and `mag_factor2`.

    >>> block = ns.factors.blocks.mag_factor3(5e-5, (0.6, 0.0, 0.8), (0, 0, 0), field, rotation_ws)
    >>> [jacobian.shape for jacobian in block.jacobians]
    [(599, 3, 1), (599, 3, 2), (599, 3, 3)]
    """
    arguments = BatchArguments()
    scales, directions = arguments.add_vectors("scale", scale, 1), arguments.add_directions("direction", direction, 3)
    biases, readings = arguments.add_vectors("bias", bias, 3), arguments.add_vectors("measured", measured, 3)
    known, rotation = (
        KnownField(readings, scales, directions, biases),
        arguments.add_rotations("rotation_nb", rotation_nb),
    )
    block = allocate_block(out, arguments.count, 3, (1, 2), jacobians=jacobians)
    by_scale, by_direction = _jacobian(block, 0, 1), _jacobian(block, 1, 2)
    arguments.raise_for_row(_direction_residuals(known, rotation, block.residual, by_scale, by_direction))
    return Block(block.residual, (*block.jacobians, repeat_identity(arguments.count))) if jacobians else block


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
    """Return residuals (n, 2), body frame, of `MagPoseFactorPose2` and their Jacobian (n, 2, 3) by x, y and yaw.

    theta: yaw (n,), rad.
    measured, bias: (n, 2), sensor frame.
    scale: (n,).
    direction: (n, 2), navigation frame.
    rotation_bs: angle from sensor to body coordinates, rad, one for all. The position has no effect.

    >>> block = ns.factors.blocks.mag_pose_factor_pose2(np.zeros(599), field[:, :2], 5e-5, (0.6, 0.8), (0, 0))
    >>> block.residual.shape, block.jacobians[0].shape
    ((599, 2), (599, 2, 3))
    """
    given = (theta, measured, scale, direction, bias)
    return _yaw_block("mag_pose_factor_pose2", 2, 3, given, rotation_bs, jacobians, out)


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
    """Return residuals (n, 3), body frame, of `MagPoseFactorPose3` and their Jacobian (n, 3, 6), rotation first.

    rotation_bs: (4,) w x y z or (3, 3), sensor to body coordinates, one for all. The position has no effect. The other
        arguments are those of `mag_factor1`, with measured and bias in the sensor frame.

    >>> block = ns.factors.blocks.mag_pose_factor_pose3(rotation_ws, field, 5e-5, (0.6, 0.0, 0.8), (0, 0, 0))
    >>> block.residual.shape, block.jacobians[0].shape
    ((599, 3), (599, 3, 6))
    """
    given = (rotation_nb, measured, scale, direction, bias)
    return _attitude_block("mag_pose_factor_pose3", 6, given, rotation_bs, jacobians, out)
