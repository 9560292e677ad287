"""A frame fixed to a moving one: the exact lever arm.

Frame s stands still in the body frame b, at `r` (m, in b) and turned by `rotation_bs`; R = rotation_wb:

    p_s = p_b + R r
    v_s = v_b + R (omega x r)
    a_s = a_b + R (alpha x r + omega x (omega x r))
    rotation_ws = rotation_wb rotation_bs
    omega_s = rotation_bs^-1 omega,   alpha_s = rotation_bs^-1 alpha

omega and alpha are the body's angular velocity and acceleration in b, omega_s and alpha_s the same in s.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from navsense.kernels import kernel
from navsense.motion._checks import pose_row
from navsense.motion.base import Motion, MotionBlock, empty_arrays
from navsense.motion.stationary import Stationary
from navsense.pose import IDENTITY, Pose
from navsense.rotation import cross, multiply, rotate
from navsense.typing import FloatArray, Quaternions, Times, Vectors


@kernel
def _transform_block(
    pose: FloatArray,
    position: Vectors,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    acceleration: Vectors,
    alpha: Vectors,
    out_position: Vectors,
    out_rotation: Quaternions,
    out_velocity: Vectors,
    out_omega: Vectors,
    out_acceleration: Vectors,
    out_alpha: Vectors,
) -> None:
    """Write the truth of the mounted frame, one row an instant; `pose` (7,) is r (m) and rotation_bs (w x y z)."""
    rx, ry, rz = pose[0], pose[1], pose[2]
    sw, sx, sy, sz = pose[3], pose[4], pose[5], pose[6]
    for i in range(position.shape[0]):
        qw, qx, qy, qz = rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3]
        ox, oy, oz = omega[i, 0], omega[i, 1], omega[i, 2]
        ax, ay, az = alpha[i, 0], alpha[i, 1], alpha[i, 2]

        x, y, z = rotate(qw, qx, qy, qz, rx, ry, rz)
        out_position[i, 0] = position[i, 0] + x
        out_position[i, 1] = position[i, 1] + y
        out_position[i, 2] = position[i, 2] + z

        ux, uy, uz = cross(ox, oy, oz, rx, ry, rz)
        x, y, z = rotate(qw, qx, qy, qz, ux, uy, uz)
        out_velocity[i, 0] = velocity[i, 0] + x
        out_velocity[i, 1] = velocity[i, 1] + y
        out_velocity[i, 2] = velocity[i, 2] + z

        cx, cy, cz = cross(ox, oy, oz, ux, uy, uz)
        tx, ty, tz = cross(ax, ay, az, rx, ry, rz)
        x, y, z = rotate(qw, qx, qy, qz, tx + cx, ty + cy, tz + cz)
        out_acceleration[i, 0] = acceleration[i, 0] + x
        out_acceleration[i, 1] = acceleration[i, 1] + y
        out_acceleration[i, 2] = acceleration[i, 2] + z

        w, x, y, z = multiply(qw, qx, qy, qz, sw, sx, sy, sz)
        out_rotation[i, 0], out_rotation[i, 1], out_rotation[i, 2], out_rotation[i, 3] = w, x, y, z
        x, y, z = rotate(sw, -sx, -sy, -sz, ox, oy, oz)
        out_omega[i, 0], out_omega[i, 1], out_omega[i, 2] = x, y, z
        x, y, z = rotate(sw, -sx, -sy, -sz, ax, ay, az)
        out_alpha[i, 0], out_alpha[i, 1], out_alpha[i, 2] = x, y, z


@dataclass(frozen=True)
class AttachedMotion:
    """The frame s that stands still at `pose` (m, unit quaternion: x_b = rotation_bs x_s + r) in the frame b of `base`.

    The identity gives the block of `base` as it is. Raises `MotionError` where the pose is not finite or its quaternion
    not of unit length.
    """

    base: Motion
    pose: Pose
    _row: FloatArray = field(init=False, repr=False, compare=False)
    _is_base: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the pose and keep it as one array."""
        object.__setattr__(self, "_row", pose_row(self.pose))
        object.__setattr__(self, "_is_base", self.pose == IDENTITY)

    @property
    def end(self) -> float:
        """Last instant (s) of the base."""
        return self.base.end

    def at(self, time: Times) -> MotionBlock:
        """Return the truth of frame s at the instants `time` (n,) s, in the base's world frame.

        Raises `MotionError` for an instant below 0 or past `end`.
        """
        body = self.base.at(time)
        if self._is_base:
            return body
        arrays = empty_arrays(body.position_w.shape[0])
        _transform_block(self._row, *body.arrays, *arrays)
        return MotionBlock(*arrays)


def attach(base: Motion, pose: Pose) -> Motion:
    """Return the motion of the frame that stands still at `pose` (m, unit quaternion) in the frame of `base`.

    The cheap form of `Mounted`: a still base gives a still frame, its two poses composed once, and the identity gives
    `base` itself. Raises `MotionError` where the pose is not finite or its quaternion not of unit length.
    """
    pose_row(pose)
    if isinstance(base, Stationary):
        return Stationary(base.pose @ pose)
    return base if pose == IDENTITY else AttachedMotion(base, pose)
