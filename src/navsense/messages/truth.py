"""Ground truth of a link as `nav_msgs/msg/Odometry` and `geometry_msgs/msg/AccelStamped`.

World frame w, link frame b:: ``velocity_b = rotation_wb^-1 velocity_w``, and the same for the acceleration.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from navsense.kernels import kernel
from navsense.messages.base import GLOBAL_TIME
from navsense.messages.cdr import (
    MessageLayout,
    build_layout,
    read_quaternions,
    write_quaternions,
    write_stamps,
    write_vectors,
)
from navsense.typing import AnyArray, IntArray, Quaternions, Vectors

ODOMETRY_TYPE = "nav_msgs/msg/Odometry"
ACCEL_TYPE = "geometry_msgs/msg/AccelStamped"
WORLD_FRAME = "world"
"""The name of the world frame."""


def rotate_to_link(orientation: Quaternions, vector_w: Vectors) -> Vectors:
    """Return vectors (n, 3) of the world frame in the link's own; `orientation` (n, 4) w x y z, link to world."""
    out: Vectors = np.empty(vector_w.shape)
    _rotate_to_link(orientation, vector_w, out)
    return out


@kernel
def _rotate_to_link(orientation: Quaternions, vector_w: Vectors, out: Vectors) -> None:
    """Write vectors (n, 3) of the world frame as the link has them."""
    for i in range(vector_w.shape[0]):
        w, x, y, z = orientation[i, 0], orientation[i, 1], orientation[i, 2], orientation[i, 3]
        vx, vy, vz = vector_w[i, 0], vector_w[i, 1], vector_w[i, 2]
        # The conjugate turns back, hence the signs.
        tx = 2.0 * (z * vy - y * vz)
        ty = 2.0 * (x * vz - z * vx)
        tz = 2.0 * (y * vx - x * vy)
        out[i, 0] = vx + w * tx + (z * ty - y * tz)
        out[i, 1] = vy + w * ty + (x * tz - z * tx)
        out[i, 2] = vz + w * tz + (y * tx - x * ty)


def _fill_odometry(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    write_stamps(rows, stamp, GLOBAL_TIME)
    write_vectors(rows, "pose.pose.position", arrays["position"])
    write_quaternions(rows, "pose.pose.orientation", arrays["orientation"])
    write_vectors(rows, "twist.twist.linear", rotate_to_link(arrays["orientation"], arrays["velocity"]))
    write_vectors(rows, "twist.twist.angular", arrays["angular_velocity"])


def make_odometry_layout(link: str) -> MessageLayout:
    """Return how truth becomes odometry: pose of `link` in the world, twist (m/s, rad/s) in the link's own frame.

    Its arrays are those of a `Truth`. Covariances are zero.
    """
    return MessageLayout(
        ODOMETRY_TYPE,
        build_layout(ODOMETRY_TYPE, {"header.frame_id": WORLD_FRAME, "child_frame_id": link}),
        _fill_odometry,
    )


def _fill_accel(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    write_stamps(rows, stamp, GLOBAL_TIME)
    write_vectors(rows, "accel.linear", rotate_to_link(arrays["orientation"], arrays["acceleration"]))
    write_vectors(rows, "accel.angular", arrays["angular_acceleration"])


def make_accel_layout(link: str) -> MessageLayout:
    """Return how truth becomes acceleration (m/s^2, rad/s^2) of `link` in its own frame; gravity not included."""
    return MessageLayout(ACCEL_TYPE, build_layout(ACCEL_TYPE, {"header.frame_id": link}), _fill_accel)


def extract_truth(rows: AnyArray) -> dict[str, AnyArray]:
    """Return the arrays of a `Truth` in odometry messages: the inverse of `make_odometry_layout`."""
    orientation = read_quaternions(rows, "pose.pose.orientation")
    return {
        "position": rows["pose.pose.position"],
        "orientation": orientation,
        "velocity": rotate_to_link(conjugate_quaternions(orientation), rows["twist.twist.linear"]),
        "angular_velocity": rows["twist.twist.angular"],
    }


def conjugate_quaternions(orientation: Quaternions) -> Quaternions:
    """Return the inverses of unit quaternions (n, 4)."""
    out: Quaternions = orientation * np.array([1.0, -1.0, -1.0, -1.0])
    return out
