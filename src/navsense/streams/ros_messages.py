"""The messages of ROS that hold a motion: their types, and what decodes them.

    header: time stamp, string frame_id     pose: 3 + 4 float64, x y z and x y z w     twist: 3 + 3 float64

The definitions of ROS 1 and ROS 2 have the same fields. Their serialisations differ:

                ROS 1                           ROS 2: CDR
    header      uint32 seq before its fields
    time        uint32 sec, uint32 nsec         int32 sec, uint32 nanosec
    string      length, bytes                   length, bytes, a zero, which the length includes
    numbers     without padding                 at multiples of their size
    message                                     after an encapsulation header of 4 bytes

Sources: the ROS wiki, "msg"; the definitions of nav_msgs, geometry_msgs and tf2_msgs of ROS Noetic and ROS 2 Jazzy, and
of gazebo_msgs; OMG DDSI-RTPS 2.3, section 10.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from navsense.core.typing import Quaternion, Vector
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.messages.cdr import ENCAPSULATION

_COUNT, _TIME, _ROS2_TIME = struct.Struct("<I"), struct.Struct("<II"), struct.Struct("<iI")
_POSE, _TWIST, _VECTOR = struct.Struct("<7d"), struct.Struct("<6d"), struct.Struct("<3d")

COVARIANCE_BYTES = 36 * 8


class Sample(NamedTuple):
    """The values of a message.

    stamp: ns, 0 for a type without one.
    frame: the frame that moves, without a leading slash; "" in types without its name.
    parent: its parent frame, as `frame`.
    rotation: w x y z as in the message, at any length.
    linear, angular: velocities; None in types without them.
    """

    stamp: int
    frame: str
    parent: str
    position: Vector
    rotation: Quaternion
    linear: Vector | None = None
    angular: Vector | None = None


class Twist(NamedTuple):
    """A velocity command: m/s and rad/s."""

    linear: Vector
    angular: Vector


class Reader:
    """Reads the fields of a message of ROS 1 in order. Every method raises `ValueError` if the message ends before."""

    def __init__(self, data: bytes) -> None:
        """Start at the first byte."""
        self.data, self.offset = data, 0

    def read(self, layout: struct.Struct) -> tuple[float, ...]:
        """Return numbers."""
        self.skip(layout.size)
        values: tuple[float, ...] = layout.unpack_from(self.data, self.offset - layout.size)
        return values

    def skip(self, size: int) -> None:
        """Skip bytes."""
        self.offset += size
        if self.offset > len(self.data):
            raise ValueError(f"a message of {len(self.data)} bytes that ends within its fields")

    def read_count(self) -> int:
        """Return the length of a string or an array."""
        self.skip(4)
        count: int = _COUNT.unpack_from(self.data, self.offset - 4)[0]
        return count

    def read_string(self) -> str:
        """Return a string."""
        size = self.read_count()
        self.skip(size)
        return self.data[self.offset - size : self.offset].decode(errors="replace")

    def read_frame(self) -> str:
        """Return the name of a frame without a leading slash."""
        return self.read_string().lstrip("/")

    def read_time(self) -> int:
        """Return a time (ns)."""
        self.skip(8)
        seconds, nanoseconds = _TIME.unpack_from(self.data, self.offset - 8)
        if nanoseconds >= NANOSECONDS_PER_SECOND:
            raise ValueError(f"a time with {nanoseconds} ns after the second")
        stamp: int = seconds * NANOSECONDS_PER_SECOND + nanoseconds
        return stamp

    def read_header(self) -> tuple[int, str]:
        """Return the stamp (ns) and the frame of a header."""
        self.skip(4)
        return self.read_time(), self.read_frame()

    def read_vector(self) -> Vector:
        """Return a vector."""
        x, y, z = self.read(_VECTOR)
        return x, y, z

    def read_pose(self) -> tuple[Vector, Quaternion]:
        """Return the position and the quaternion w x y z of a pose or a transform."""
        px, py, pz, x, y, z, w = self.read(_POSE)
        return (px, py, pz), (w, x, y, z)

    def read_twist(self) -> tuple[Vector, Vector]:
        """Return the linear and the angular velocity of a twist."""
        vx, vy, vz, wx, wy, wz = self.read(_TWIST)
        return (vx, vy, vz), (wx, wy, wz)

    def finish(self) -> None:
        """Raise `ValueError` if bytes are left."""
        if self.offset != len(self.data):
            raise ValueError(f"a message of {len(self.data)} bytes; its fields have {self.offset}")


class CdrReader(Reader):
    """Reads the fields of a message of ROS 2 in order: little-endian CDR, as all middlewares of ROS 2 send it."""

    def __init__(self, data: bytes) -> None:
        """Start after the encapsulation header. Raises `ValueError` for another encapsulation."""
        super().__init__(data)
        self.skip(len(ENCAPSULATION))
        if data[:2] != ENCAPSULATION[:2]:
            raise ValueError(f"a message with the encapsulation {data[:2].hex()}, not little-endian CDR")

    def align(self, size: int) -> None:
        """Skip the padding before a number of `size` bytes. Offsets count from the end of the encapsulation."""
        self.offset += (len(ENCAPSULATION) - self.offset) % size

    def read(self, layout: struct.Struct) -> tuple[float, ...]:
        """Return float64 numbers."""
        self.align(8)
        return super().read(layout)

    def read_count(self) -> int:
        """Return the length of a string or an array."""
        self.align(4)
        return super().read_count()

    def read_string(self) -> str:
        """Return a string."""
        return super().read_string().removesuffix("\0")

    def read_time(self) -> int:
        """Return a time (ns)."""
        self.align(4)
        self.skip(8)
        seconds, nanoseconds = _ROS2_TIME.unpack_from(self.data, self.offset - 8)
        if nanoseconds >= NANOSECONDS_PER_SECOND:
            raise ValueError(f"a time with {nanoseconds} ns after the second")
        if seconds < 0:
            raise ValueError(f"a time of {seconds} s, before 1970")
        stamp: int = seconds * NANOSECONDS_PER_SECOND + nanoseconds
        return stamp

    def read_header(self) -> tuple[int, str]:
        """Return the stamp (ns) and the frame of a header."""
        return self.read_time(), self.read_frame()

    def finish(self) -> None:
        """Raise `ValueError` if more than the padding of the last word is left."""
        if not self.offset <= len(self.data) <= self.offset + 3:
            raise ValueError(f"a message of {len(self.data)} bytes; its fields have {self.offset}")


def decode_odometry(reader: Reader) -> Sample:
    """Return the values of a nav_msgs/Odometry."""
    stamp, parent = reader.read_header()
    frame = reader.read_frame()
    position, rotation = reader.read_pose()
    reader.skip(COVARIANCE_BYTES)
    linear, angular = reader.read_twist()
    reader.skip(COVARIANCE_BYTES)
    return Sample(stamp, frame, parent, position, rotation, linear, angular)


def decode_pose(reader: Reader) -> Sample:
    """Return the values of a geometry_msgs/Pose."""
    return Sample(0, "", "", *reader.read_pose())


def decode_pose_stamped(reader: Reader) -> Sample:
    """Return the values of a geometry_msgs/PoseStamped."""
    stamp, parent = reader.read_header()
    return Sample(stamp, "", parent, *reader.read_pose())


def decode_pose_with_covariance(reader: Reader) -> Sample:
    """Return the values of a geometry_msgs/PoseWithCovarianceStamped."""
    sample = decode_pose_stamped(reader)
    reader.skip(COVARIANCE_BYTES)
    return sample


def decode_transform(reader: Reader) -> Sample:
    """Return the values of a geometry_msgs/TransformStamped."""
    stamp, parent = reader.read_header()
    frame = reader.read_frame()
    return Sample(stamp, frame, parent, *reader.read_pose())


def decode_transforms(reader: Reader) -> list[Sample]:
    """Return the values of a tf2_msgs/TFMessage."""
    return [decode_transform(reader) for _ in range(_check_count(reader, 76))]


def decode_entity(reader: Reader, name: str) -> tuple[Sample | None, list[str]]:
    """Return the values of a model or a link in a gazebo_msgs/ModelStates or LinkStates, and all names.

    The values are None if no entity has the name. Of several, the first one counts, as in recordings. Raises
    `ValueError`.
    """
    names = [reader.read_string() for _ in range(_check_count(reader, 4))]
    starts = []
    for layout in (_POSE, _TWIST):
        count = _check_count(reader, layout.size)
        if count != len(names):
            raise ValueError(f"a message with {len(names)} names and {count} poses or twists")
        starts.append(reader.offset)
        reader.skip(count * layout.size)
    reader.finish()
    if name not in names:
        return None, names
    index = names.index(name)
    reader.offset = starts[0] + index * _POSE.size
    pose = reader.read_pose()
    reader.offset = starts[1] + index * _TWIST.size
    return Sample(0, name, "", *pose, *reader.read_twist()), names


def _check_count(reader: Reader, size: int) -> int:
    """Return the length of an array whose elements have at least `size` bytes. Raises `ValueError` if too long."""
    count = reader.read_count()
    if count * size > len(reader.data) - reader.offset:
        raise ValueError(f"a message of {len(reader.data)} bytes with an array of {count} elements")
    return count


def decode_clock(reader: Reader) -> int:
    """Return the time (ns) of a rosgraph_msgs/Clock. Raises `ValueError`."""
    stamp = reader.read_time()
    reader.finish()
    return stamp


MotionKind = Literal["pose", "odometry", "transforms", "models", "links", "commands"]
"""What a message type holds: a pose; a pose with velocities; transforms by frame; states by model or link; a velocity
command."""


@dataclass(frozen=True)
class MotionType:
    """A message type that a motion can be. has_stamp: its messages have a stamp."""

    kind: MotionKind
    has_stamp: bool = True


MOTION_TYPES: Mapping[str, MotionType] = {
    "nav_msgs/Odometry": MotionType("odometry"),
    "geometry_msgs/PoseStamped": MotionType("pose"),
    "geometry_msgs/PoseWithCovarianceStamped": MotionType("pose"),
    "geometry_msgs/Pose": MotionType("pose", has_stamp=False),
    "geometry_msgs/TransformStamped": MotionType("transforms"),
    "tf2_msgs/TFMessage": MotionType("transforms"),
    "tf/tfMessage": MotionType("transforms"),
    "gazebo_msgs/ModelStates": MotionType("models", has_stamp=False),
    "gazebo_msgs/LinkStates": MotionType("links", has_stamp=False),
    "geometry_msgs/Twist": MotionType("commands", has_stamp=False),
    "geometry_msgs/TwistStamped": MotionType("commands"),
}
"""Message type, by its name in ROS 1 -> what it holds."""

CLOCK_TYPE = "rosgraph_msgs/Clock"

POSE_DECODERS = {
    "nav_msgs/Odometry": decode_odometry,
    "geometry_msgs/PoseStamped": decode_pose_stamped,
    "geometry_msgs/PoseWithCovarianceStamped": decode_pose_with_covariance,
    "geometry_msgs/Pose": decode_pose,
}
"""Message type with one pose and no name of a model -> what decodes it."""


def normalize_type(kind: str) -> str:
    """Return the name of a message type in ROS 1: `nav_msgs/Odometry` for `nav_msgs/msg/Odometry`."""
    return kind.replace("/msg/", "/")


def format_ros2_type(kind: str) -> str:
    """Return the name of a message type in ROS 2: `nav_msgs/msg/Odometry` for `nav_msgs/Odometry`."""
    return normalize_type(kind).replace("/", "/msg/")


def decode_samples(kind: str, reader: Reader) -> list[Sample]:
    """Return the values of a message with a pose or with transforms. Raises `ValueError`."""
    if kind in POSE_DECODERS:
        samples = [POSE_DECODERS[kind](reader)]
    elif kind == "geometry_msgs/TransformStamped":
        samples = [decode_transform(reader)]
    else:
        samples = decode_transforms(reader)
    reader.finish()
    return samples


def decode_command(kind: str, reader: Reader) -> Twist:
    """Return the values of a velocity command. Raises `ValueError`."""
    if MOTION_TYPES[kind].has_stamp:
        reader.read_header()
    twist = Twist(*reader.read_twist())
    reader.finish()
    return twist
