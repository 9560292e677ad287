"""The definitions of the ROS messages that navsense writes: constants, field types and names, in wire order.

`DEFINITIONS` holds the definitions of ROS 2 Jazzy and later. `HUMBLE_CHANGES` holds the types that differ in Humble,
`ROS1_CHANGES` those that differ in ROS 1.
`ROS1_DEFINITIONS` holds all types as in ROS 1, where a stamp is a `time` and a header has a sequence number.
`format_schema` joins a type and its dependencies into the text in a recording: the `ros2msg` schema, or the definition
of a connection in a ROS 1 bag. Constants are included because the MD5 sum of a ROS 1 type depends on them.
Sources: common_interfaces and ros_gz (ROS 2); uuv_simulator, ds_msgs of Woods Hole, marine_msgs of APL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

_MARKER_SHAPES = (
    "ARROW", "CUBE", "SPHERE", "CYLINDER", "LINE_STRIP", "LINE_LIST", "CUBE_LIST", "SPHERE_LIST", "POINTS",
    "TEXT_VIEW_FACING", "MESH_RESOURCE", "TRIANGLE_LIST",
)  # fmt: skip


def _format_marker(kind: str, shapes: Sequence[str], *, is_ros1: bool = False) -> str:
    """Return the definition of a marker, with constants of a type; ROS 1 has no textures and no mesh in a message."""
    constants = [*(f"{name}={i}" for i, name in enumerate(shapes)), "ADD=0", "MODIFY=0", "DELETE=2", "DELETEALL=3"]
    texture = (
        "string texture_resource\nsensor_msgs/CompressedImage texture\n"
        "visualization_msgs/UVCoordinate[] uv_coordinates\n"
    )
    return "".join(f"{kind} {constant}\n" for constant in constants) + (
        "std_msgs/Header header\nstring ns\nint32 id\nint32 type\nint32 action\n"
        "geometry_msgs/Pose pose\ngeometry_msgs/Vector3 scale\nstd_msgs/ColorRGBA color\n"
        "builtin_interfaces/Duration lifetime\nbool frame_locked\n"
        f"geometry_msgs/Point[] points\nstd_msgs/ColorRGBA[] colors\n{'' if is_ros1 else texture}"
        f"string text\nstring mesh_resource\n{'' if is_ros1 else 'visualization_msgs/MeshFile mesh_file' + chr(10)}"
        "bool mesh_use_embedded_materials"
    )


DEFINITIONS: Mapping[str, str] = {
    "builtin_interfaces/msg/Time": "int32 sec\nuint32 nanosec",
    "builtin_interfaces/msg/Duration": "int32 sec\nuint32 nanosec",
    "std_msgs/msg/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "geometry_msgs/msg/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/msg/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/msg/PointStamped": "std_msgs/Header header\ngeometry_msgs/Point point",
    "geometry_msgs/msg/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/msg/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/msg/PoseWithCovariance": "geometry_msgs/Pose pose\nfloat64[36] covariance",
    "geometry_msgs/msg/PoseWithCovarianceStamped": "std_msgs/Header header\ngeometry_msgs/PoseWithCovariance pose",
    "geometry_msgs/msg/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular",
    "geometry_msgs/msg/TwistWithCovariance": "geometry_msgs/Twist twist\nfloat64[36] covariance",
    "geometry_msgs/msg/TwistWithCovarianceStamped": "std_msgs/Header header\ngeometry_msgs/TwistWithCovariance twist",
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
        "uint8 ULTRASOUND=0\nuint8 INFRARED=1\n"
        "std_msgs/Header header\nuint8 radiation_type\n"
        "float32 field_of_view\nfloat32 min_range\nfloat32 max_range\nfloat32 range\nfloat32 variance"
    ),
    "sensor_msgs/msg/RegionOfInterest": (
        "uint32 x_offset\nuint32 y_offset\nuint32 height\nuint32 width\nbool do_rectify"
    ),
    "sensor_msgs/msg/CameraInfo": (
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring distortion_model\nfloat64[] d\n"
        "float64[9] k\nfloat64[9] r\nfloat64[12] p\n"
        "uint32 binning_x\nuint32 binning_y\nsensor_msgs/RegionOfInterest roi"
    ),
    "sensor_msgs/msg/NavSatStatus": (
        "int8 STATUS_UNKNOWN=-2\n"
        "int8 STATUS_NO_FIX=-1\nint8 STATUS_FIX=0\nint8 STATUS_SBAS_FIX=1\nint8 STATUS_GBAS_FIX=2\n"
        "uint16 SERVICE_UNKNOWN=0\n"
        "uint16 SERVICE_GPS=1\nuint16 SERVICE_GLONASS=2\nuint16 SERVICE_COMPASS=4\nuint16 SERVICE_GALILEO=8\n"
        "int8 status\nuint16 service"
    ),
    "sensor_msgs/msg/NavSatFix": (
        "uint8 COVARIANCE_TYPE_UNKNOWN=0\nuint8 COVARIANCE_TYPE_APPROXIMATED=1\n"
        "uint8 COVARIANCE_TYPE_DIAGONAL_KNOWN=2\nuint8 COVARIANCE_TYPE_KNOWN=3\n"
        "std_msgs/Header header\nsensor_msgs/NavSatStatus status\n"
        "float64 latitude\nfloat64 longitude\nfloat64 altitude\n"
        "float64[9] position_covariance\nuint8 position_covariance_type"
    ),
    "geometry_msgs/msg/Vector3Stamped": "std_msgs/Header header\ngeometry_msgs/Vector3 vector",
    "geometry_msgs/msg/TwistStamped": "std_msgs/Header header\ngeometry_msgs/Twist twist",
    "std_msgs/msg/Bool": "bool data",
    "std_msgs/msg/String": "string data",
    "std_msgs/msg/UInt8": "uint8 data",
    "geometry_msgs/msg/PoseStamped": "std_msgs/Header header\ngeometry_msgs/Pose pose",
    "geometry_msgs/msg/Point32": "float32 x\nfloat32 y\nfloat32 z",
    "sensor_msgs/msg/ChannelFloat32": "string name\nfloat32[] values",
    "sensor_msgs/msg/PointCloud": (
        "std_msgs/Header header\ngeometry_msgs/Point32[] points\nsensor_msgs/ChannelFloat32[] channels"
    ),
    "dave_gazebo_ros_plugins/msg/StratifiedCurrentVelocity": (
        "std_msgs/Header header\nfloat32[] depths\ngeometry_msgs/Vector3[] velocities"
    ),
    "uuv_sensor_ros_plugins_msgs/msg/DVLBeam": (
        "float64 range\nfloat64 range_covariance\nfloat64 velocity\nfloat64 velocity_covariance\n"
        "geometry_msgs/PoseStamped pose"
    ),
    "uuv_sensor_ros_plugins_msgs/msg/DVL": (
        "std_msgs/Header header\ngeometry_msgs/Vector3 velocity\nfloat64[9] velocity_covariance\nfloat64 altitude\n"
        "uuv_sensor_ros_plugins_msgs/DVLBeam[] beams"
    ),
    "ds_core_msgs/msg/DsHeader": "builtin_interfaces/Time io_time\nuint8[16] source_uuid",
    "ds_sensor_msgs/msg/Dvl": (
        "uint8 DVL_MODE_BOTTOM=1\nuint8 DVL_MODE_WATER=2\n"
        "uint8 DVL_COORD_BEAM=0\nuint8 DVL_COORD_INSTRUMENT=1\nuint8 DVL_COORD_SHIP=2\nuint8 DVL_COORD_EARTH=3\n"
        "uint8 DVL_TYPE_PISTON=0\nuint8 DVL_TYPE_PHASED_ARRAY=1\n"
        "std_msgs/Header header\nds_core_msgs/DsHeader ds_header\nfloat64 dvl_time\n"
        "geometry_msgs/Vector3 velocity\nfloat64[9] velocity_covar\n"
        "float64 altitude\nfloat64 course_gnd\nfloat64 speed_gnd\nuint8 num_good_beams\nfloat32 speed_sound\n"
        "geometry_msgs/Vector3[4] beam_unit_vec\nfloat64[4] range\nfloat32[4] range_covar\nfloat32[4] beam_quality\n"
        "float32[4] raw_velocity\nfloat32[4] raw_velocity_covar\n"
        "uint8 velocity_mode\nuint8 coordinate_mode\nuint8 dvl_type"
    ),
    "ds_sensor_msgs/msg/Range3D": (
        "uint8 RANGE_INDETERMINANT=0\nuint8 RANGE_LOW=1\nuint8 RANGE_HIGH=2\nuint8 RANGE_VALID=3\n"
        "geometry_msgs/PointStamped range\nfloat32 range_quality\nuint8 range_validity"
    ),
    "ds_sensor_msgs/msg/Ranges3D": (
        "uint8 SOUNDSPEED_CORRECTION_NORMAL=0\nuint8 SOUNDSPEED_CORRECTION_PHASEDARRAYDVL=1\n"
        "std_msgs/Header header\nds_core_msgs/DsHeader ds_header\n"
        "ds_sensor_msgs/Range3D[] ranges\nuint8 soundspeed_correction_type"
    ),
    "ds_sensor_msgs/msg/WaterCurrentProfile": "geometry_msgs/Vector3[] velocity_bin_beam",
    "ds_sensor_msgs/msg/Adcp": (
        "std_msgs/Header header\nds_core_msgs/DsHeader ds_header\n"
        "uint8 ADCP_COORD_BEAM=0\nuint8 ADCP_COORD_INSTRUMENT=1\nuint8 ADCP_COORD_SHIP=2\nuint8 ADCP_COORD_EARTH=3\n"
        "uint8 ADCP_TYPE_PISTON=0\nuint8 ADCP_TYPE_PHASED_ARRAY=1\n"
        "uint8 coordinate_mode\nuint8 adcp_type\nuint8 cells\nuint16 cell_depth\nfloat32 bin0_distance\n"
        "geometry_msgs/Vector3[4] beam_unit_vec\nds_sensor_msgs/WaterCurrentProfile[] vel_bin_beams"
    ),
    "marine_acoustic_msgs/msg/Dvl": (
        "uint8 DVL_MODE_BOTTOM=1\nuint8 DVL_MODE_WATER=2\nuint8 DVL_TYPE_PISTON=0\nuint8 DVL_TYPE_PHASED_ARRAY=1\n"
        "std_msgs/Header header\nuint8 velocity_mode\nuint8 dvl_type\n"
        "geometry_msgs/Vector3 velocity\nfloat64[9] velocity_covar\n"
        "float64 altitude\nfloat64 course_gnd\nfloat64 speed_gnd\nuint8 num_good_beams\nfloat32 sound_speed\n"
        "bool beam_ranges_valid\nbool beam_velocities_valid\n"
        "geometry_msgs/Vector3[4] beam_unit_vec\nfloat64[4] range\nfloat32[4] range_covar\nfloat32[4] beam_quality\n"
        "float32[4] beam_velocity\nfloat32[4] beam_velocity_covar"
    ),
    "std_msgs/msg/ColorRGBA": "float32 r\nfloat32 g\nfloat32 b\nfloat32 a",
    "sensor_msgs/msg/CompressedImage": "std_msgs/Header header\nstring format\nuint8[] data",
    "visualization_msgs/msg/UVCoordinate": "float32 u\nfloat32 v",
    "visualization_msgs/msg/MeshFile": "string filename\nuint8[] data",
    "visualization_msgs/msg/Marker": _format_marker("int32", (*_MARKER_SHAPES, "ARROW_STRIP")),
    "visualization_msgs/msg/MarkerArray": "visualization_msgs/Marker[] markers",
}
"""Full type name -> definition in ROS 2 Jazzy and later, one `type name` or `type NAME=value` per line."""

RANGE_TYPE, NAVSAT_STATUS_TYPE = "sensor_msgs/msg/Range", "sensor_msgs/msg/NavSatStatus"
MARKER_TYPE = "visualization_msgs/msg/Marker"

HUMBLE_CHANGES: Mapping[str, str] = {
    RANGE_TYPE: DEFINITIONS[RANGE_TYPE].removesuffix("\nfloat32 variance"),
    NAVSAT_STATUS_TYPE: DEFINITIONS[NAVSAT_STATUS_TYPE]
    .replace("int8 STATUS_UNKNOWN=-2\n", "")
    .replace("uint16 SERVICE_UNKNOWN=0\n", ""),
    MARKER_TYPE: _format_marker("int32", _MARKER_SHAPES),
}
"""Type that changed after Humble -> its definition in ROS 2 Humble. New fields are at the end of a type."""

DISTRIBUTIONS: Mapping[str, Mapping[str, str]] = {"jazzy": DEFINITIONS, "humble": {**DEFINITIONS, **HUMBLE_CHANGES}}
"""Distribution of ROS 2 -> its definitions. "jazzy" includes later distributions."""

DEFAULT_DISTRIBUTION, HUMBLE = DISTRIBUTIONS
"""The default distribution of definitions, and the alternative."""

ROS1_CHANGES: Mapping[str, str] = {**HUMBLE_CHANGES, MARKER_TYPE: _format_marker("uint8", _MARKER_SHAPES, is_ros1=True)}
"""Type that changed after ROS 1 -> its definition there, with the names of ROS 2 for times."""

ROS2_TYPES = {
    "sensor_msgs/msg/CompressedImage",
    "visualization_msgs/msg/MeshFile",
    "visualization_msgs/msg/UVCoordinate",
}
"""Types of fields that ROS 1 lacks."""

TIME_TYPES = {"builtin_interfaces/Time": "time", "builtin_interfaces/Duration": "duration"}
"""Type of stamps and durations -> the primitive of ROS 1."""

HEADER_TYPE = "std_msgs/msg/Header"
"""The type with a sequence number in ROS 1."""

ROS1_FIELD_NAMES: Mapping[str, Mapping[str, str]] = {
    "sensor_msgs/msg/CameraInfo": {"d": "D", "k": "K", "r": "R", "p": "P"},
}
"""Type -> name of a field in ROS 2 -> its name in ROS 1, where they differ."""


def to_ros1_definitions(definitions: Mapping[str, str]) -> dict[str, str]:
    """Return ROS 2 definitions as they are in ROS 1, by the same names."""
    ros1 = {}
    for kind, text in definitions.items():
        if kind in ROS2_TYPES or kind.replace("/msg/", "/") in TIME_TYPES:
            continue
        is_known = any(text == known[kind] for known in DISTRIBUTIONS.values() if kind in known)
        ros1[kind] = ROS1_CHANGES[kind] if is_known and kind in ROS1_CHANGES else text
        for ros2_type, primitive in TIME_TYPES.items():
            ros1[kind] = ros1[kind].replace(ros2_type, primitive)
    if HEADER_TYPE in ros1:
        ros1[HEADER_TYPE] = f"uint32 seq\n{ros1[HEADER_TYPE]}"
    for kind, names in ROS1_FIELD_NAMES.items():
        if kind in ros1:
            fields = (line.rpartition(" ") for line in ros1[kind].splitlines())
            ros1[kind] = "\n".join(f"{field_type} {names.get(name, name)}" for field_type, _, name in fields)
    return ros1


def list_ros2_only_fields(definitions: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the type and name of each field that definitions have and those of ROS 1 lack."""
    ros1 = to_ros1_definitions(definitions)
    names = {kind: {entry.name for entry in parse_fields(ros1[kind])} for kind in ros1.keys() & ROS1_CHANGES.keys()}
    return frozenset(
        (kind, entry.name)
        for kind, ros1_names in names.items()
        for entry in parse_fields(definitions[kind])
        if entry.name not in ros1_names
    )


ROS1_DEFINITIONS: Mapping[str, str] = to_ros1_definitions(DISTRIBUTIONS[HUMBLE])
"""Full type name -> definition in ROS 1."""

SEPARATOR = "=" * 80
"""Line between two definitions in `ros2msg`."""


@dataclass(frozen=True)
class MessageField:
    """One field of a message: `type` is a primitive or a full type name.

    `length` is None for one value, a number for a fixed array, -1 for an array with its length in the message.
    """

    name: str
    type: str
    length: int | None = None


@lru_cache(maxsize=256)
def parse_fields(definition: str) -> tuple[MessageField, ...]:
    """Return the fields of a definition in order, without constants, with full types (`pkg/msg/Type`)."""
    parts = []
    for line in definition.splitlines():
        if "=" in line:
            continue
        kind, name = line.split()
        length: int | None = None
        if kind.endswith("]"):
            kind, _, count = kind[:-1].partition("[")
            length = int(count) if count else -1
        package, slash, short = kind.partition("/")
        parts.append(MessageField(name, f"{package}/msg/{short}" if slash else kind, length))
    return tuple(parts)


def format_schema(
    type_name: str, definitions: Mapping[str, str] = DEFINITIONS, texts: Mapping[str, str] | None = None
) -> str:
    """Return the definition of a full type name, then each dependency once.

    `texts` replaces the text of some definitions, for example by a text with comments.
    """
    texts = {**definitions, **(texts or {})}
    dependencies: list[str] = []

    def collect(kind: str) -> None:
        for field in parse_fields(definitions[kind]):
            if "/" in field.type and field.type not in dependencies:
                dependencies.append(field.type)
                collect(field.type)

    collect(type_name)
    parts = [f"{SEPARATOR}\nMSG: {kind.replace('/msg/', '/')}\n{texts[kind]}" for kind in dependencies]
    return "\n".join([texts[type_name], *parts]) + "\n"
