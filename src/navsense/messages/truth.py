"""Ground truth of a link as `nav_msgs/msg/Odometry` and `geometry_msgs/msg/AccelStamped`.

World frame w, link frame b:: ``velocity_b = rotation_wb^-1 velocity_w``, and the same for the acceleration.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from navsense.compiled import kernel
from navsense.messages.base import GLOBAL_TIME
from navsense.messages.cdr import Message, layout, quaternions_in, set_quaternion, set_stamp, set_vector
from navsense.typing import AnyArray, IntArray, Quaternions, Vectors

ODOMETRY = "nav_msgs/msg/Odometry"
ACCEL = "geometry_msgs/msg/AccelStamped"
WORLD = "world"
"""The name of the world frame."""


def to_link(orientation: Quaternions, vector_w: Vectors) -> Vectors:
    """Return vectors (n, 3) of the world frame in the link's own; `orientation` (n, 4) w x y z, link to world."""
    out: Vectors = np.empty(vector_w.shape)
    _turn(orientation, vector_w, out)
    return out


@kernel
def _turn(orientation: Quaternions, vector_w: Vectors, out: Vectors) -> None:
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


def _odometry(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    set_stamp(rows, stamp, GLOBAL_TIME)
    set_vector(rows, "pose.pose.position", arrays["position"])
    set_quaternion(rows, "pose.pose.orientation", arrays["orientation"])
    set_vector(rows, "twist.twist.linear", to_link(arrays["orientation"], arrays["velocity"]))
    set_vector(rows, "twist.twist.angular", arrays["angular_velocity"])


def odometry(link: str) -> Message:
    """Return how truth becomes odometry: pose of `link` in the world, twist (m/s, rad/s) in the link's own frame.

    Its arrays are those of a `Truth`. Covariances are zero.
    """
    return Message(ODOMETRY, layout(ODOMETRY, {"header.frame_id": WORLD, "child_frame_id": link}), _odometry)


def _accel(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    set_stamp(rows, stamp, GLOBAL_TIME)
    set_vector(rows, "accel.linear", to_link(arrays["orientation"], arrays["acceleration"]))
    set_vector(rows, "accel.angular", arrays["angular_acceleration"])


def accel(link: str) -> Message:
    """Return how truth becomes acceleration (m/s^2, rad/s^2) of `link` in its own frame; gravity not included."""
    return Message(ACCEL, layout(ACCEL, {"header.frame_id": link}), _accel)


def arrays(rows: AnyArray) -> dict[str, AnyArray]:
    """Return what messages of odometry say of a link, by the names of a `Truth`. The inverse of `odometry`."""
    orientation = quaternions_in(rows, "pose.pose.orientation")
    return {
        "position": rows["pose.pose.position"],
        "orientation": orientation,
        "velocity": to_link(conjugates(orientation), rows["twist.twist.linear"]),
        "angular_velocity": rows["twist.twist.angular"],
    }


def conjugates(orientation: Quaternions) -> Quaternions:
    """Return the inverses of unit quaternions (n, 4)."""
    out: Quaternions = orientation * np.array([1.0, -1.0, -1.0, -1.0])
    return out
