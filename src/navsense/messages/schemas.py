"""The ROS 2 message definitions that navsense writes, as data: field types and names, in wire order.

`text` joins a type and all that it needs into the one text that recordings carry (`ros2msg`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEFINITIONS: Mapping[str, str] = {
    "builtin_interfaces/msg/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/msg/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "geometry_msgs/msg/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/msg/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/msg/PointStamped": "std_msgs/Header header\ngeometry_msgs/Point point",
    "geometry_msgs/msg/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/msg/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/msg/PoseWithCovariance": "geometry_msgs/Pose pose\nfloat64[36] covariance",
    "geometry_msgs/msg/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular",
    "geometry_msgs/msg/TwistWithCovariance": "geometry_msgs/Twist twist\nfloat64[36] covariance",
    "geometry_msgs/msg/Accel": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular",
    "geometry_msgs/msg/AccelStamped": "std_msgs/Header header\ngeometry_msgs/Accel accel",
    "geometry_msgs/msg/Transform": "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation",
    "geometry_msgs/msg/TransformStamped": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform"
    ),
    "tf2_msgs/msg/TFMessage": "geometry_msgs/TransformStamped[] transforms",
    "rosgraph_msgs/msg/Clock": "builtin_interfaces/Time clock",
    "nav_msgs/msg/Odometry": (
        "std_msgs/Header header\nstring child_frame_id\n"
        "geometry_msgs/PoseWithCovariance pose\ngeometry_msgs/TwistWithCovariance twist"
    ),
    "sensor_msgs/msg/Imu": (
        "std_msgs/Header header\n"
        "geometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n"
        "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
        "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance"
    ),
    "sensor_msgs/msg/MagneticField": (
        "std_msgs/Header header\ngeometry_msgs/Vector3 magnetic_field\nfloat64[9] magnetic_field_covariance"
    ),
    "ros_gz_interfaces/msg/Altimeter": (
        "std_msgs/Header header\nfloat64 vertical_position\nfloat64 vertical_velocity\nfloat64 vertical_reference"
    ),
    "sensor_msgs/msg/FluidPressure": "std_msgs/Header header\nfloat64 fluid_pressure\nfloat64 variance",
    "sensor_msgs/msg/Range": (
        "std_msgs/Header header\nuint8 radiation_type\n"
        "float32 field_of_view\nfloat32 min_range\nfloat32 max_range\nfloat32 range"
    ),
    "sensor_msgs/msg/NavSatStatus": "int8 status\nuint16 service",
    "sensor_msgs/msg/NavSatFix": (
        "std_msgs/Header header\nsensor_msgs/NavSatStatus status\n"
        "float64 latitude\nfloat64 longitude\nfloat64 altitude\n"
        "float64[9] position_covariance\nuint8 position_covariance_type"
    ),
    "geometry_msgs/msg/Vector3Stamped": "std_msgs/Header header\ngeometry_msgs/Vector3 vector",
    "geometry_msgs/msg/TwistStamped": "std_msgs/Header header\ngeometry_msgs/Twist twist",
}
"""Full type name -> one `type name` a line."""

SEPARATOR = "=" * 80
"""The line that `ros2msg` texts have between two definitions."""


@dataclass(frozen=True)
class Field:
    """One field of a message: `type` is a primitive or a full type name.

    `length` is None for one value, a number for a fixed array, -1 for an array whose length travels with it.
    """

    name: str
    type: str
    length: int | None = None


def fields(definition: str) -> tuple[Field, ...]:
    """Return the fields of one definition text, in order; type names become full (`pkg/msg/Type`)."""
    found = []
    for line in definition.splitlines():
        kind, name = line.split()
        length: int | None = None
        if kind.endswith("]"):
            kind, _, count = kind[:-1].partition("[")
            length = int(count) if count else -1
        package, slash, short = kind.partition("/")
        found.append(Field(name, f"{package}/msg/{short}" if slash else kind, length))
    return tuple(found)


def text(name: str, definitions: Mapping[str, str] = DEFINITIONS) -> str:
    """Return the `ros2msg` schema of a full type name: its own definition, then each one that it needs, once."""
    needed: list[str] = []

    def collect(kind: str) -> None:
        for field in fields(definitions[kind]):
            if "/" in field.type and field.type not in needed:
                needed.append(field.type)
                collect(field.type)

    collect(name)
    parts = [f"{SEPARATOR}\nMSG: {kind.replace('/msg/', '/')}\n{definitions[kind]}" for kind in needed]
    return "\n".join([definitions[name], *parts]) + "\n"
