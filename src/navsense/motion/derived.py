"""Motions derived from another motion: a frame attached to a body (exact lever arm), and a cache.

Frame s is fixed in the body frame b at position r (m, in b) with rotation rotation_bs. With R = rotation_wb:

    p_s = p_b + R r
    v_s = v_b + R (omega x r)
    a_s = a_b + R (alpha x r + omega x (omega x r))
    rotation_ws = rotation_wb rotation_bs
    omega_s = rotation_bs^-1 omega,   alpha_s = rotation_bs^-1 alpha

omega and alpha are the angular velocity and angular acceleration in b, omega_s and alpha_s the same in s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from navsense.core.kernels import kernel
from navsense.core.pose import IDENTITY, Pose
from navsense.core.rotation import cross, multiply, rotate
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternions, Times, Vectors
from navsense.motion.base import HasSource, LogSource, Motion, MotionBlock, empty_arrays, pose_row
from navsense.motion.joints import JointMotion
from navsense.motion.received_motion import ReceivedMotion
from navsense.motion.replay import Replay
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import Trajectory
from navsense.motion.velocity_commands import VelocityCommands


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
    """Write the motion of frame s; `pose` (7,) is r (m) and rotation_bs (w x y z)."""
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
    """The motion of the frame s that is fixed at `pose` (x_b = rotation_bs x_s + r, m) in the frame b of `base`.

    For the identity, `at` returns the block of `base`.

    >>> line = ns.motion.waypoints([0.0, 10.0], [ns.Pose(), ns.Pose((10.0, 0.0, 0.0))])
    >>> ns.motion.AttachedMotion(line, ns.Pose((0.2, 0.0, 0.0))).at(np.array([10.0])).position_w
    array([[10.2,  0. ,  0. ]])
    """

    base: Motion
    pose: Pose
    _row: FloatArray = field(init=False, repr=False, compare=False)
    _is_base: bool = field(init=False, repr=False, compare=False)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Convert the pose to an array."""
        object.__setattr__(self, "_row", pose_row(self.pose))
        object.__setattr__(self, "_is_base", self.pose == IDENTITY)

    @property
    def end(self) -> float:
        """Last time (s) of the base."""
        return self.base.end

    def at(self, time: Times) -> MotionBlock:
        """Return the motion of frame s at `time` (n,) s, in the base's world frame.

        Raises `MotionError` for a time below 0 or after `end`.
        """
        body = self.base.at(time)
        if self._is_base:
            return body
        arrays = empty_arrays(body.position_w.shape[0])
        _transform_block(self._row, *body.arrays, *arrays)
        return MotionBlock(*arrays)


def attach(base: Motion, pose: Pose) -> Motion:
    """Return the motion of the frame that is fixed at `pose` (m, unit quaternion) in the frame of `base`.

    Use this instead of `AttachedMotion`: it returns a `Stationary` for a stationary base, and `base` for the identity.

    >>> line = ns.motion.waypoints([0.0, 10.0], [ns.Pose(), ns.Pose((10.0, 0.0, 0.0))])
    >>> sensor = ns.motion.attach(line, ns.Pose((0.2, 0.0, 0.0)))  # 0.2 m ahead of the body
    >>> sensor.at(np.array([0.0, 10.0])).position_w
    array([[ 0.2,  0. ,  0. ],
           [10.2,  0. ,  0. ]])
    """
    if isinstance(base, Stationary):
        return Stationary(base.pose @ pose)
    return base if pose == IDENTITY else AttachedMotion(base, pose)


CACHE_SIZE = 4
"""Number of times in the cache of a `CachedMotion`."""


class CachedMotion:
    """The motion `base` with a cache of the last queries of one time.

    A driven motion keeps only its last steps. A sensor that needs an earlier time, such as that of its reference,
    queries it in each block and receives it from the cache.
    """

    def __init__(self, base: Motion) -> None:
        """Start with an empty cache."""
        self.base = base
        self._blocks: dict[float, MotionBlock] = {}

    @property
    def end(self) -> float:
        """Last time (s) of the base."""
        return self.base.end

    def at(self, time: Times) -> MotionBlock:
        """Return the motion at `time` (n,) s from the base or from the cache. Raises `MotionError` as the base does."""
        if time.shape[0] != 1:
            return self.base.at(time)
        t = time.item()
        block = self._blocks.pop(t, None) or self.base.at(time)
        self._blocks[t] = block
        if len(self._blocks) > CACHE_SIZE:
            del self._blocks[next(iter(self._blocks))]
        return block


def get_base(motion: Motion) -> Motion:
    """Return the motion that a frame is attached to; the motion itself if it is not attached."""
    return motion.base if isinstance(motion, AttachedMotion) else motion


def get_source(motion: Motion | None) -> LogSource | None:
    """Return the source of a motion; None if it is not from a file or a live system."""
    base = None if motion is None else get_base(motion)
    return base.source if isinstance(base, HasSource) else None


def is_known_ahead(motion: Motion) -> bool:
    """Return true if the motion can be queried at any time in advance; false for a motion of the caller."""
    if isinstance(motion, AttachedMotion | JointMotion):
        return is_known_ahead(motion.base)
    if isinstance(motion, ReceivedMotion):
        return motion.end < math.inf
    return isinstance(motion, Stationary | Trajectory | Replay | VelocityCommands)
