"""The allowed children and attributes of elements that are not bound to a dataclass.

A child is read, listed as unsupported, or refused. The schema of an element that is bound to a dataclass is
`ElementBinding.schema`, for example `parse.noise.NOISE.schema`. A test checks that the schemas of both kinds list all
elements of the machine-readable SDF specification.
"""

from __future__ import annotations

from dataclasses import replace

from navsense.core.field_metadata import get_file_fields
from navsense.sdf.context import PLUGIN_NOT_RUN, ElementSchema, make_schema, split_tags
from navsense.sdf.xml_reader import PREFIX
from navsense.sensors import SENSORS

VISUAL_ONLY = "has only a visual effect"
_NO_DYNAMICS = "forces and contacts are not simulated; a model follows its motion"
_NO_PHYSICS = "navsense has no physics engine; only max_step_size is read"
_CUSTOM_SURFACE_ONLY = "has an effect with a custom surface only; navsense uses the earth's ellipsoid"
_OLD_FRAMES = "frames were never read here; since SDF 1.7 they belong to the model"
_NO_STATE = "stored states are not supported; the poses of the models are used"
_NO_SOUND = "sound is not simulated"
_NO_JOINTS = "joints keep position 0, or follow a log of positions"
_NO_NAMESPACES = "namespaces of topics are not supported; give <topic>"

MERGED_MODEL_TAG = "merged model"
"""Tag of the scope of a merged model. No file can contain this tag."""

SKIPPED_INCLUDE_TAG = "skipped include"
"""Tag of an include whose file is missing, with the children of the include. No file can contain this tag."""

ACTUATOR_TAG = "actuator of URDF"
"""Tag of an element for a part of a URDF file that drives a joint. No file can contain this tag."""

PARAMS_TAG = "experimental:params"
"""Element of an include with changes to the included model."""

_CLOCK_TAGS = split_tags("clock navsense:clock")

SDF = make_schema(
    repeatable="world model include",
    unsupported={"actor": VISUAL_ONLY, "light": VISUAL_ONLY},
    attributes="version",
    strict=False,
)

_PLUGIN_ATTRIBUTES = split_tags("name filename")

_UUV_CURRENT = ElementSchema(
    children=split_tags("namespace constant_current"), attributes=_PLUGIN_ATTRIBUTES, strict=False
)
_DAVE_CURRENT = ElementSchema(
    children=split_tags("namespace constant_current transient_current tidal_oscillation"),
    attributes=_PLUGIN_ATTRIBUTES,
    strict=False,
)

CURRENT_PLUGINS = {
    "libuuv_underwater_current_ros_plugin.so": _UUV_CURRENT,
    "libuuv_underwater_current_plugin.so": _UUV_CURRENT,
    "libdave_ocean_current_plugin.so": _DAVE_CURRENT,
}
"""File of a plug-in of a world that is read -> its schema."""

PRELOAD_FILES = split_tags(
    """
    gz-sim-environment-preload-system libgz-sim-environment-preload-system.so
    ignition-gazebo-environment-preload-system libignition-gazebo-environment-preload-system.so
    """
)
"""Files of Gazebo's plug-in of a world that reads a table."""

PRELOAD = ElementSchema(children=split_tags("data dimensions"), attributes=_PLUGIN_ATTRIBUTES, strict=False)
DIMENSIONS = make_schema("ignore_time time space", strict=False)
SPACE = make_schema("x y z", attributes="reference units", strict=False)

WORLD = ElementSchema(
    children=split_tags(
        """
        gravity magnetic_field spherical_coordinates atmosphere navsense:current navsense:faults navsense:fidelity
        navsense:gravity navsense:magnetic_field navsense:water
        """
    ),
    repeatable=split_tags("physics model frame joint include navsense:dipole navsense:signal")
    | {MERGED_MODEL_TAG, SKIPPED_INCLUDE_TAG},
    unsupported={
        **dict.fromkeys(("gui", "scene", "light", "actor", "road"), VISUAL_ONLY),
        "audio": _NO_SOUND,
        "wind": "wind is not simulated",
        "plugin": PLUGIN_NOT_RUN,
        "state": _NO_STATE,
        "population": "populations are not supported; write each model",
    },
    plugins=PRELOAD_FILES.union(CURRENT_PLUGINS),
    attributes=split_tags("name"),
    strict=False,
)

INCLUDE = make_schema(
    f"uri name pose static placement_frame {PARAMS_TAG}",
    repeatable="plugin",
    unsupported={"model_state": _NO_STATE, "namespace": _NO_NAMESPACES},
    attributes="merge",
    strict=False,
)

SKIPPED_INCLUDE = replace(
    INCLUDE,
    children=INCLUDE.children - {PARAMS_TAG},
    unsupported={**INCLUDE.unsupported, PARAMS_TAG: "changes a skipped include"},
)

PHYSICS = make_schema(
    "max_step_size",
    unsupported=dict.fromkeys(
        ("real_time_factor", "real_time_update_rate", "max_contacts", "dart", "simbody", "bullet", "ode"), _NO_PHYSICS
    ),
    forbidden={
        "magnetic_field": "SDF 1.6 moved it to <world>; move it there",
        "gravity": "SDF 1.6 moved it to <world>; move it there",
    },
    attributes="default",
    ignored_attributes={"name": _NO_PHYSICS, "type": _NO_PHYSICS},
    strict=False,
)

SPHERICAL_COORDINATES = make_schema(
    "surface_model latitude_deg longitude_deg elevation heading_deg world_frame_orientation navsense:geoid",
    unsupported=dict.fromkeys(("surface_axis_equatorial", "surface_axis_polar"), _CUSTOM_SURFACE_ONLY),
    strict=False,
)

GEOID = make_schema(attributes="file interpolation")
GRAVITY_MODEL = make_schema(attributes="model")
MAGNETIC_MODEL = make_schema(attributes="model date")
DIPOLE = make_schema("pose moment", attributes="radius")
SIGNAL = make_schema(repeatable="point", attributes="name file")
SIGNAL_POINT = make_schema(attributes="time")

UUV_DVL_FILE = "libuuv_gazebo_ros_dvl_plugin.so"
"""File of a plug-in of a model that is a DVL."""

DSROS_DVL_FILE = "libdsros_ros_dvl.so"
"""File of the plug-in of a `<sensor type="dsros_dvl">`."""

SUBSEA_PRESSURE_FILE = "libuuv_gazebo_ros_subsea_pressure_plugin.so"
"""File of a plug-in of a model that is a pressure sensor."""

RANGE_PLUGIN_FILE = "libgazebo_ros_range.so"
"""File of the plug-in of a `<ray>` that is read."""

RANGE_PLUGIN_SCHEMA = ElementSchema(
    children=split_tags("robotNamespace topicName frameName gaussianNoise updateRate radiation fov alwaysOn"),
    unsupported={"visualize": "the plug-in ignores it; set it in the sensor"},
    attributes=_PLUGIN_ATTRIBUTES,
)

CAMERA_PLUGIN_FILES = tuple(
    f"libgazebo_ros_{name}.so"
    for name in ("camera", "depth_camera", "multicamera", "openni_kinect", "triggered_camera")
)
"""Files of the plug-ins of a camera that are read."""

_IMAGE_OF_PLUGIN = "only the camera info is published"

CAMERA_PLUGIN_SCHEMA = ElementSchema(
    children=split_tags(
        """
        robotNamespace cameraName cameraInfoTopicName frameName updateRate alwaysOn always_on focalLength Cx Cy
        hackBaseline
        distortionK1 distortionK2 distortionK3 distortionT1 distortionT2 autoDistortion
        ros camera_name frame_name focal_length cx cy hack_baseline
        """
    ),
    unsupported=dict.fromkeys(
        split_tags(
            """
            imageTopicName CxPrime borderCrop border_crop imageSensorName triggerTopicName triggered
            depthImageTopicName depthImageInfoTopicName depthImageCameraInfoTopicName pointCloudTopicName
            pointCloudCutoff pointCloudCutoffMax rangeMax min_depth max_depth maxDepth minDepth update_rate
            attenuationR attenuationG attenuationB backgroundR backgroundG backgroundB
            """
        ),
        _IMAGE_OF_PLUGIN,
    ),
    attributes=_PLUGIN_ATTRIBUTES,
    strict=False,  # files have many elements that no version of these plug-ins reads
)

_FIXED_MESSAGES = "the message types do not depend on the world file"
_NO_REFERENCE_FRAME = "the pressure does not depend on a frame"

SUBSEA_PRESSURE_PLUGIN = ElementSchema(
    children=split_tags(
        """
        robot_namespace robotNamespace link_name sensor_topic update_rate saturation noise_sigma noise_amplitude
        noise_stddev standard_pressure kPa_per_meter is_on
        """
    ),
    repeatable=split_tags("navsense:switch"),
    unsupported={
        "estimate_depth_on": "the depth is always published",
        "enable_gazebo_messages": _FIXED_MESSAGES,
        "enable_local_ned_frame": "frames have the names of links",
        **dict.fromkeys(("reference_link_name", "static_reference_frame"), _NO_REFERENCE_FRAME),
    },
    attributes=_PLUGIN_ATTRIBUTES,
)

_GROUND_VELOCITY = "the velocity is that over the ground, in the axes of the link"

UUV_DVL_PLUGIN = ElementSchema(
    children=split_tags(
        """
        robot_namespace robotNamespace link_name sensor_topic update_rate noise_sigma noise_amplitude
        enable_local_ned_frame is_on static_reference_frame
        navsense:fidelity navsense:bottom_track navsense:strength navsense:long_term
        beam_link_name_0 beam_link_name_1 beam_link_name_2 beam_link_name_3
        beam_topic_0 beam_topic_1 beam_topic_2 beam_topic_3
        """
    ),
    repeatable=split_tags("navsense:switch"),
    unsupported={
        "enable_gazebo_messages": _FIXED_MESSAGES,
        "reference_link_name": _GROUND_VELOCITY,
    },
    attributes=_PLUGIN_ATTRIBUTES,
)

_NO_CURRENT_TOPIC = "currents come from the world, also by depth, not from a topic"

DSROS_DVL_PLUGIN = ElementSchema(
    children=split_tags(
        """
        robotNamespace topicName rangesTopicName frameName pointcloudFrame updateRateHZ
        gaussianNoiseBeamVel gaussianNoiseBeamWtrVel gaussianNoiseBeamRange minRange maxRange maxRangeDiff beamAngleDeg
        beamWidthDeg beamAzimuthDeg1 beamAzimuthDeg2 beamAzimuthDeg3 beamAzimuthDeg4 pos_z_down enableWaterTrack
        ocean_current_topic waterTrackBins currentProfileCoordMode navsense:layer navsense:cloud_points
        navsense:bottom_track navsense:water_track navsense:strength navsense:long_term
        """
    ),
    unsupported={"stratified_ocean_current_topic": _NO_CURRENT_TOPIC, "collide_bitmask": "all bodies are hit"},
    attributes=_PLUGIN_ATTRIBUTES,
)

MODEL = ElementSchema(
    children=split_tags("static pose navsense:motion"),
    # `SensorParser` adds the notes about plug-ins, because it knows those that are sensors.
    repeatable=split_tags("frame link joint model include plugin")
    | {MERGED_MODEL_TAG, SKIPPED_INCLUDE_TAG, ACTUATOR_TAG},
    unsupported={
        **dict.fromkeys(("self_collide", "allow_auto_disable", "enable_wind", "gripper"), _NO_DYNAMICS),
        "model_state": _NO_STATE,
        "scale": "models are not scaled, as in Gazebo",
    },
    attributes=split_tags("name canonical_link placement_frame"),
    ignored_attributes={"namespace": _NO_NAMESPACES},
    strict=False,
)

LINK = ElementSchema(
    children=split_tags("pose"),
    repeatable=split_tags("sensor collision") | _CLOCK_TAGS,
    unsupported={
        **dict.fromkeys(
            split_tags("gravity enable_wind self_collide kinematic must_be_base_link velocity_decay inertial"),
            _NO_DYNAMICS,
        ),
        **dict.fromkeys(("visual", "projector", "light", "particle_emitter"), VISUAL_ONLY),
        **dict.fromkeys(("audio_sink", "audio_source"), _NO_SOUND),
        "battery": "batteries are not simulated",
        "frame": _OLD_FRAMES,
        "plugin": PLUGIN_NOT_RUN,
        "static": "is not an element of a link; set it in the model",
    },
    attributes=split_tags("name"),
    strict=False,
)

COLLISION = make_schema(
    "pose geometry",
    unsupported={
        "laser_retro": "the intensity of returns is not simulated",
        **dict.fromkeys(("max_contacts", "density", "auto_inertia_params", "surface", "mass"), _NO_DYNAMICS),
        "frame": _OLD_FRAMES,
    },
    attributes="name",
    strict=False,
)

_NO_SHAPE = "rays do not hit it: this shape is not simulated"

GEOMETRY = make_schema(
    "empty box capsule cylinder ellipsoid heightmap mesh plane sphere",
    unsupported=dict.fromkeys(("cone", "image", "polyline"), _NO_SHAPE),
    strict=False,
)

MESH = make_schema(
    "uri submesh scale",
    unsupported={"convex_decomposition": "rays hit the mesh itself"},
    attributes="optimization",
    strict=False,
)
SUBMESH = make_schema("name center", strict=False)
HEIGHTMAP = make_schema(
    "uri size pos sampling",
    unsupported={"texture": VISUAL_ONLY, "blend": VISUAL_ONLY, "use_terrain_paging": VISUAL_ONLY},
    strict=False,
)

JOINT = make_schema(
    "parent child pose axis axis2",
    unsupported={
        **dict.fromkeys(
            split_tags("gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch physics"), _NO_JOINTS
        ),
        "frame": _OLD_FRAMES,
        "sensor": "sensors in joints measure forces, which are not simulated; move other sensors to a link",
        "plugin": PLUGIN_NOT_RUN,
    },
    attributes="name type",
    strict=False,
)

JOINT_AXIS = make_schema(
    "xyz limit mimic",
    unsupported=dict.fromkeys(("dynamics", "initial_position"), _NO_JOINTS),
    forbidden={"use_parent_model_frame": 'SDF 1.7 replaced it by <xyz expressed_in="__model__">; write that'},
    strict=False,
)

JOINT_MIMIC = make_schema("multiplier offset reference", attributes="joint axis")

JOINT_LIMIT = make_schema(
    "lower upper",
    unsupported=dict.fromkeys(split_tags("effort velocity stiffness dissipation"), _NO_JOINTS),
    strict=False,
)

XYZ = make_schema(attributes="expressed_in", strict=False)

JOINT_TYPES = split_tags("continuous revolute gearbox revolute2 prismatic ball screw universal fixed")

FRAME = make_schema("pose", attributes="name attached_to", strict=False)

POSE = make_schema(
    attributes="relative_to rotation_format degrees",
    forbidden={"frame": "SDF 1.7 replaced this attribute by relative_to; write that"},
    strict=None,
)

WIDE_ANGLE_TYPES = ("wide_angle_camera", "wideanglecamera")
"""Types of cameras whose lens is no pinhole."""

MULTICAMERA_TYPE = "multicamera"
"""Type of a sensor of Gazebo Classic with several cameras."""

CAMERA_TYPES = (
    *("boundingbox", "boundingbox_camera", "depth_camera", MULTICAMERA_TYPE, "rgbd", "rgbd_camera"),
    *("segmentation", "segmentation_camera", "thermal", "thermal_camera", *WIDE_ANGLE_TYPES),
)
"""Types of cameras whose type element is `<camera>`, in addition to `camera` itself."""

TYPE_ALIASES = {
    "gps": "navsat",
    **dict.fromkeys(("ray", "lidar", "gpu_ray", "gpu_lidar", "sonar"), "range"),
    **dict.fromkeys(CAMERA_TYPES, "camera"),
}
"""Other names of a sensor type -> navsense's name."""

GAZEBO_TYPE_ELEMENTS = {"gz:dvl": "dvl"}
"""Gazebo's type elements of sensor types that SDF does not have -> navsense's type."""

DEFAULT_TOPIC_ENDINGS = {
    **dict.fromkeys(("ray", "lidar", "gpu_ray", "gpu_lidar"), "scan"),
    "sonar": "sonar",
    "gz:dvl": "dvl/velocity",
}
"""Sensor type or type element -> end of its default topic in gz-sim and Gazebo Classic, where it is not the type."""

SENSOR_TYPES = split_tags(
    """
    air_flow air_pressure air_speed altimeter boundingbox boundingbox_camera camera contact custom depth
    depth_camera dsros_dvl dvl force_torque gps gpu_lidar gpu_ray imu lidar logical_camera magnetometer multicamera
    navsat range ray rfid rfidtag rgbd rgbd_camera segmentation segmentation_camera sonar thermal thermal_camera
    transceiver wide_angle_camera wideanglecamera wireless_receiver wireless_transmitter
    """
)
"""Sensor types of SDF and of plug-ins."""

DSROS_DVL_TYPE = "dsros_dvl"
"""Sensor type of a DVL that is described by its plug-in."""

UNSIMULATED_TYPES = SENSOR_TYPES - {kind.type for kind in SENSORS} - TYPE_ALIASES.keys() - {DSROS_DVL_TYPE}
"""Sensor types that navsense lists but does not simulate."""

NOT_SIMULATED = "not simulated"


def list_aliases(sensor_type: str) -> tuple[str, ...]:
    """Return the other names of a sensor type, which its type element may have."""
    aliases = (*TYPE_ALIASES.items(), *GAZEBO_TYPE_ELEMENTS.items())
    return tuple(old for old, new in aliases if new == sensor_type and old not in CAMERA_TYPES)


TYPE_ELEMENTS = split_tags(
    """
    air_pressure air_speed altimeter camera contact force_torque gps imu lidar logical_camera magnetometer navsat ray
    rfid rfidtag sonar transceiver
    """
)
"""Type elements of the sensors of SDF."""

_OTHER_TYPE = "belongs to another type of sensor"

FRAME_ID_TAGS = ("frame_id", "gz_frame_id", "ignition_frame_id")
"""Elements of the frame of a sensor's messages."""


def make_sensor_schema(sensor_type: str) -> ElementSchema:
    """Return the schema of a sensor of a type."""
    aliases = list_aliases(sensor_type)
    file_fields = [entry for kind in SENSORS if kind.type == sensor_type for entry in get_file_fields(kind).values()]
    own_tags = [field.name for field in file_fields if field.name.startswith(PREFIX)]
    return ElementSchema(
        children=split_tags("pose update_rate topic always_on visualize")
        | split_tags("navsense:fidelity navsense:latency navsense:faults navsense:part")
        | _CLOCK_TAGS.union((sensor_type, *aliases, *FRAME_ID_TAGS)),
        repeatable=split_tags("navsense:switch"),
        unsupported={
            "enable_metrics": "metrics of the simulator are not published",
            "plugin": PLUGIN_NOT_RUN,
            "frame": _OLD_FRAMES,
            **dict.fromkeys(TYPE_ELEMENTS - {sensor_type, *aliases}, _OTHER_TYPE),
        },
        forbidden=dict.fromkeys(own_tags, f"belongs in <{sensor_type}>"),
        attributes=split_tags("name type gz:type ignition:type"),
    )


_NAMED_BY_PLUGIN = "the plug-in defines it"

_DSROS_SENSOR = make_sensor_schema(DSROS_DVL_TYPE)

DSROS_DVL_SENSOR = replace(
    _DSROS_SENSOR,
    children=_DSROS_SENSOR.children - {DSROS_DVL_TYPE, "topic", *FRAME_ID_TAGS} | {"ocean_current_topic"},
    unsupported={
        **_DSROS_SENSOR.unsupported,
        **dict.fromkeys(("topic", *FRAME_ID_TAGS), _NAMED_BY_PLUGIN),
        "stratified_ocean_current_topic": _NO_CURRENT_TOPIC,
    },
    plugins=frozenset((DSROS_DVL_FILE,)),
)

_BEAM_EXTENSIONS = split_tags("navsense:own_hull navsense:sound")
RAY = ElementSchema(
    children=split_tags("scan range noise") | _BEAM_EXTENSIONS, unsupported={"visibility_mask": "all bodies are hit"}
)
SCAN = make_schema("horizontal vertical")
SAMPLES = make_schema("samples resolution min_angle max_angle")
RAY_RANGE = make_schema("min max resolution")
SONAR = ElementSchema(children=split_tags("geometry min max radius noise") | _BEAM_EXTENSIONS)
BEAM = make_schema("axis", attributes="width_deg rings")

_NO_IMAGE = "a camera publishes its intrinsics, not its image"

CAMERA = make_schema(
    "camera_info_topic distortion horizontal_fov image lens optical_frame_id",
    unsupported={
        **dict.fromkeys(
            ("box_type", "clip", "depth_camera", "noise", "save", "segmentation_type", "visibility_mask"), _NO_IMAGE
        ),
        "pose": "the pose of the sensor is used, as in Gazebo",
        **dict.fromkeys(("trigger_topic", "triggered"), "a camera is triggered at its rate, not by messages"),
    },
    attributes="name",
)
CAMERA_IMAGE = make_schema("width height", unsupported=dict.fromkeys(("format", "anti_aliasing"), _NO_IMAGE))
CAMERA_LENS = make_schema(
    "intrinsics projection",
    unsupported=dict.fromkeys(
        ("cutoff_angle", "custom_function", "env_texture_size", "scale_to_hfov", "type"), _NO_IMAGE
    ),
)

CLOCK = make_schema(
    "noise navsense:oscillator navsense:discipline navsense:monotonic navsense:faults", attributes="name"
)

PART = make_schema(attributes="temperature")

SWITCH = make_schema(attributes="time")

CHANNEL = make_schema("noise")
"""Schema of an element that is one channel of a sensor, for example `<x>` in `<magnetometer>`."""

MOTION = make_schema(
    repeatable="navsense:waypoint", attributes="loop degrees file bandwidth max_acceleration max_angular_acceleration"
)

WAYPOINT = make_schema(attributes="time degrees rotation_format")
