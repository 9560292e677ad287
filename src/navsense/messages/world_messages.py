"""Messages other than readings, ideal values and biases: clock, transforms, truth, water current and active faults.

    /clock      rosgraph_msgs/msg/Clock                   true time
    /tf         tf2_msgs/msg/TFMessage                    poses of frames
    truth       nav_msgs/msg/Odometry                     pose and velocity of a link
                geometry_msgs/msg/AccelStamped            its acceleration
                geometry_msgs/msg/TwistStamped            velocity along the axes of the world } of a link that follows
                geometry_msgs/msg/AccelStamped            acceleration along these axes        } a live system
    current     geometry_msgs/msg/TwistStamped            velocity of the water, as the UUV Simulator publishes it
                dave_gazebo_ros_plugins/msg/StratifiedCurrentVelocity    the same at several depths, as DAVE does
    fault       std_msgs/msg/UInt8                        sum of `core.readings.FAULT_BITS`, or 0
    changes     std_msgs/msg/String                       JSON of a change of the run (`recordings.run_changes`)

Stamps are true time. Velocities of the water are in the frame `world`; DAVE's are along north and east. Twist and
acceleration of a link are in its own frame b: ``velocity_b = rotation_wb^-1 velocity_w``. A link that follows a live
system also has both in the frame `world`, because the rotation to b rounds the values that were received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from navsense.core.names import WORLD_FRAME
from navsense.core.readings import FAULT_BITS
from navsense.core.rotation import rotate_rows_inverse
from navsense.core.typing import AnyArray, BoolArray, IntArray, Quaternions, Vectors
from navsense.messages.base import TRUE_TIME
from navsense.messages.cdr import (
    MessageEncoder,
    MessageRows,
    build_layout,
    read_quaternions,
    write_quaternions,
    write_stamps,
    write_vectors,
)

CLOCK_TYPE = "rosgraph_msgs/msg/Clock"
TRANSFORM_TYPE = "tf2_msgs/msg/TFMessage"
ODOMETRY_TYPE = "nav_msgs/msg/Odometry"
ACCEL_TYPE = "geometry_msgs/msg/AccelStamped"
TWIST_TYPE = "geometry_msgs/msg/TwistStamped"
CURRENT_TYPE = TWIST_TYPE
CURRENT_LAYERS_TYPE = "dave_gazebo_ros_plugins/msg/StratifiedCurrentVelocity"
FAULT_TYPE = "std_msgs/msg/UInt8"
STRING_TYPE = "std_msgs/msg/String"

FAULT = "fault"
"""Name of the array in a fault message, and of its topic: `<topic>/fault`."""


def _fill_clock(rows: MessageRows, stamp: IntArray, _arrays: Mapping[str, AnyArray]) -> None:
    write_stamps(rows, stamp, TRUE_TIME, "clock")


def make_clock_encoder() -> MessageEncoder:
    """Return the encoder of `/clock`. It needs no arrays."""
    return MessageEncoder(CLOCK_TYPE, build_layout(CLOCK_TYPE), _fill_clock)


def make_string_encoder(text: str) -> MessageEncoder:
    """Return the encoder of a constant text. It needs no arrays."""
    return MessageEncoder(STRING_TYPE, build_layout(STRING_TYPE, {"data": text}), lambda *_: None)


def make_transforms_encoder(frames: Sequence[tuple[str, str]]) -> MessageEncoder:
    """Return the encoder of k transforms in one message; `frames` are (parent, child).

    Arrays: `position` (n, k, 3) m and `orientation` (n, k, 4) w x y z of the child in its parent.
    """
    strings = {}
    for i, (parent, child) in enumerate(frames):
        strings[f"transforms.{i}.header.frame_id"] = parent
        strings[f"transforms.{i}.child_frame_id"] = child

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        for i in range(len(frames)):
            path = f"transforms.{i}"
            write_stamps(rows, stamp, TRUE_TIME, path + ".header.stamp")
            write_vectors(rows, path + ".transform.translation", arrays["position"][:, i])
            write_quaternions(rows, path + ".transform.rotation", arrays["orientation"][:, i])

    return MessageEncoder(TRANSFORM_TYPE, build_layout(TRANSFORM_TYPE, strings, {"transforms": len(frames)}), fill)


def rotate_inverse(orientation: Quaternions, vectors: Vectors) -> Vectors:
    """Return vectors (n, 3) rotated by the inverse of `orientation` (n, 4) w x y z: world to link for link to world."""
    out: Vectors = np.empty(vectors.shape)
    rotate_rows_inverse(orientation, vectors, out)
    return out


def conjugate_quaternions(orientation: Quaternions) -> Quaternions:
    """Return the inverses of unit quaternions (n, 4)."""
    out: Quaternions = orientation * np.array([1.0, -1.0, -1.0, -1.0])
    return out


def _fill_odometry(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    write_stamps(rows, stamp, TRUE_TIME)
    write_vectors(rows, "pose.pose.position", arrays["position"])
    write_quaternions(rows, "pose.pose.orientation", arrays["orientation"])
    write_vectors(rows, "twist.twist.linear", rotate_inverse(arrays["orientation"], arrays["velocity"]))
    write_vectors(rows, "twist.twist.angular", arrays["angular_velocity"])


def make_odometry_encoder(link: str) -> MessageEncoder:
    """Return the encoder of odometry: pose of `link` in the world, twist (m/s, rad/s) in the frame of the link.

    The arrays are those of a `Truth`. Covariances are zero.
    """
    strings = {"header.frame_id": WORLD_FRAME, "child_frame_id": link}
    return MessageEncoder(ODOMETRY_TYPE, build_layout(ODOMETRY_TYPE, strings), _fill_odometry)


def extract_truth(rows: MessageRows) -> dict[str, AnyArray]:
    """Return the arrays of a `Truth` in odometry messages: the inverse of `make_odometry_encoder`."""
    orientation = read_quaternions(rows, "pose.pose.orientation")
    return {
        "position": rows["pose.pose.position"],
        "orientation": orientation,
        "velocity": rotate_inverse(conjugate_quaternions(orientation), rows["twist.twist.linear"]),
        "angular_velocity": rows["twist.twist.angular"],
    }


def _fill_accel(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    write_stamps(rows, stamp, TRUE_TIME)
    write_vectors(rows, "accel.linear", rotate_inverse(arrays["orientation"], arrays["acceleration"]))
    write_vectors(rows, "accel.angular", arrays["angular_acceleration"])


def make_accel_encoder(link: str) -> MessageEncoder:
    """Return the encoder of the acceleration (m/s^2, rad/s^2) of `link` in its own frame, without gravity."""
    return MessageEncoder(ACCEL_TYPE, build_layout(ACCEL_TYPE, {"header.frame_id": link}), _fill_accel)


def _fill_world_twist(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    write_stamps(rows, stamp, TRUE_TIME)
    inverse = conjugate_quaternions(arrays["orientation"])
    write_vectors(rows, "twist.linear", arrays["velocity"])
    write_vectors(rows, "twist.angular", rotate_inverse(inverse, arrays["angular_velocity"]))


def make_world_twist_encoder() -> MessageEncoder:
    """Return the encoder of the velocity (m/s, rad/s) of a link along the axes of the world; arrays of a `Truth`."""
    return MessageEncoder(TWIST_TYPE, build_layout(TWIST_TYPE, {"header.frame_id": WORLD_FRAME}), _fill_world_twist)


def _fill_world_accel(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    write_stamps(rows, stamp, TRUE_TIME)
    inverse = conjugate_quaternions(arrays["orientation"])
    write_vectors(rows, "accel.linear", arrays["acceleration"])
    write_vectors(rows, "accel.angular", rotate_inverse(inverse, arrays["angular_acceleration"]))


def make_world_accel_encoder() -> MessageEncoder:
    """Return the encoder of the acceleration (m/s^2, rad/s^2) of a link along the axes of the world."""
    return MessageEncoder(ACCEL_TYPE, build_layout(ACCEL_TYPE, {"header.frame_id": WORLD_FRAME}), _fill_world_accel)


def _fill_current(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    write_stamps(rows, stamp, TRUE_TIME)
    rows["twist.linear"] = arrays["velocity"]


def make_current_encoder() -> MessageEncoder:
    """Return the encoder of the current at one position. Array: `velocity` (n, 3) m/s, world frame."""
    return MessageEncoder(CURRENT_TYPE, build_layout(CURRENT_TYPE, {"header.frame_id": WORLD_FRAME}), _fill_current)


def extract_current(rows: MessageRows) -> AnyArray:
    """Return the velocities (n, 3) m/s in messages: the inverse of `make_current_encoder`."""
    velocity: AnyArray = rows["twist.linear"]
    return velocity


def make_current_layers_encoder(depths: tuple[float, ...]) -> MessageEncoder:
    """Return the encoder of the current at `depths` (m). Array: `velocity` (n, layer, 3) m/s, world frame."""
    lengths = {"depths": len(depths), "velocities": len(depths)}

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, TRUE_TIME)
        rows["depths"] = depths
        for layer in range(len(depths)):
            rows[f"velocities.{layer}"] = arrays["velocity"][:, layer]

    layout = build_layout(CURRENT_LAYERS_TYPE, {"header.frame_id": WORLD_FRAME}, lengths)
    return MessageEncoder(CURRENT_LAYERS_TYPE, layout, fill)


def extract_current_layers(rows: MessageRows, count: int) -> AnyArray:
    """Return the velocities (n, layer, 3) m/s at `count` depths: the inverse of `make_current_layers_encoder`."""
    return np.stack([rows[f"velocities.{layer}"] for layer in range(count)], axis=1)


def pack_fault_bits(fault: Mapping[str, BoolArray]) -> AnyArray:
    """Return the bits (n,) of the active faults: the sum of `FAULT_BITS`."""
    bits = np.zeros(next(iter(fault.values())).shape, dtype=np.uint8)
    for kind, rows in fault.items():
        bits |= np.uint8(FAULT_BITS[kind]) * rows
    return bits


def unpack_fault_bits(bits: AnyArray) -> dict[str, BoolArray]:
    """Return the rows (n,) with each kind of fault from their bits (n,)."""
    return {kind: np.asarray((bits & np.uint8(bit)) != 0) for kind, bit in FAULT_BITS.items()}


def _fill_fault(rows: MessageRows, _stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    rows["data"] = arrays[FAULT]


def make_fault_encoder() -> MessageEncoder:
    """Return the encoder of the active faults of a sensor. Array: `FAULT` (n,)."""
    return MessageEncoder(FAULT_TYPE, build_layout(FAULT_TYPE), _fill_fault)
