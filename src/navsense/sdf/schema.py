"""The allowed children and attributes of each element: read, listed as unsupported, or refused.

A test compares them with the machine-readable SDF specification: each of its elements is listed here.
"""

from __future__ import annotations

from dataclasses import replace

from navsense.sdf.context import PLUGIN_NOT_RUN, ElementSchema
from navsense.sensors import SENSORS

_VISUAL_ONLY = "has only a visual effect"
_NO_DYNAMICS = "forces and contacts are not simulated; a model follows its motion"
_NOT_YET = "not simulated yet"
_NO_PHYSICS = "there is no physics engine yet; only max_step_size is read"
_ALWAYS_ON = "all sensors are always on and recorded"
_CUSTOM_SURFACE_ONLY = "has an effect with a custom surface only; navsense uses the earth's ellipsoid"
_NO_PARAMS = "changes to included models are not supported; write the changed model to a file"
_OLD_FRAMES = "frames were never read here; since SDF 1.7 they belong to the model"
_NO_STATE = "stored states are not supported; the poses of the models are used"
_NO_SOUND = "sound is not simulated"
_NO_JOINTS = "joints do not move yet: the links of a model keep their poses"
_NO_NAMESPACES = "namespaces of topics are not supported; give <topic>"

MERGED_MODEL_TAG = "merged model"
"""Tag of the scope of a merged model. No file can contain this tag."""

SKIPPED_INCLUDE_TAG = "skipped include"
"""Tag of an include whose file is missing, with the children of the include. No file can contain this tag."""

ACTUATOR_TAG = "actuator of URDF"
"""Tag of an element for a part of a URDF file that drives a joint. No file can contain this tag."""

_CLOCK_TAGS = frozenset(("clock", "navsense:clock"))

SDF = ElementSchema(
    children=frozenset(("world", "model")),
    repeatable=frozenset(("world", "model")),
    unsupported={"actor": _VISUAL_ONLY, "light": _VISUAL_ONLY},
    attributes=frozenset(("version",)),
)

_PLUGIN_ATTRIBUTES = frozenset(("name", "filename"))

_UUV_CURRENT = ElementSchema(children=frozenset(("namespace", "constant_current")), attributes=_PLUGIN_ATTRIBUTES)
_DAVE_CURRENT = ElementSchema(
    children=frozenset(("namespace", "constant_current", "transient_current", "tidal_oscillation")),
    attributes=_PLUGIN_ATTRIBUTES,
)

CURRENT_PLUGINS = {
    "libuuv_underwater_current_ros_plugin.so": _UUV_CURRENT,
    "libuuv_underwater_current_plugin.so": _UUV_CURRENT,
    "libdave_ocean_current_plugin.so": _DAVE_CURRENT,
}
"""File of a plug-in of a world that is read -> its schema."""

PRELOAD_FILES = frozenset(
    (
        "gz-sim-environment-preload-system",
        "libgz-sim-environment-preload-system.so",
        "ignition-gazebo-environment-preload-system",
        "libignition-gazebo-environment-preload-system.so",
    )
)
"""Files of Gazebo's plug-in of a world that reads a table."""

PRELOAD = ElementSchema(children=frozenset(("data", "dimensions")), attributes=_PLUGIN_ATTRIBUTES)
DIMENSIONS = ElementSchema(children=frozenset(("ignore_time", "time", "space")))
SPACE = ElementSchema(children=frozenset(("x", "y", "z")), attributes=frozenset(("reference", "units")))

CONSTANT_CURRENT = ElementSchema(children=frozenset(("topic", "velocity", "horizontal_angle", "vertical_angle")))
CURRENT_PROCESS = ElementSchema(children=frozenset(("mean", "min", "max", "mu", "noiseAmp")))
TRANSIENT_CURRENT = ElementSchema(children=frozenset(("topic_stratified", "databasefilePath")))
TIDAL_OSCILLATION = ElementSchema(
    children=frozenset(("databasefilePath", "harmonic_constituents", "mean_direction", "world_start_time_GMT"))
)
HARMONIC_CONSTITUENTS = ElementSchema(children=frozenset(("M2", "S2", "N2")))
DAVE_CONSTITUENT = ElementSchema(children=frozenset(("amp", "phase", "speed")))
MEAN_DIRECTION = ElementSchema(children=frozenset(("ebb", "flood")))
START_TIME = ElementSchema(children=frozenset(("day", "month", "year", "hour", "minute")))

GAUSS_MARKOV = ElementSchema(
    children=frozenset(("speed", "horizontal_angle", "vertical_angle")), attributes=frozenset(("name",))
)
STRATIFIED = ElementSchema(
    children=frozenset(("layer", "speed", "direction")),
    repeatable=frozenset(("layer",)),
    attributes=frozenset(("file", "outside", "name")),
)
CURRENT_LAYER = ElementSchema(attributes=frozenset(("depth",)))
TIDAL = ElementSchema(
    children=frozenset(("constituent",)),
    repeatable=frozenset(("constituent",)),
    attributes=frozenset(("file", "mean", "flood_direction_deg", "ebb_direction_deg")),
)
TIDAL_ELLIPSES = ElementSchema(
    children=frozenset(("ellipse",)), repeatable=frozenset(("ellipse",)), attributes=frozenset(("mean",))
)
ELLIPSE = ElementSchema(
    attributes=frozenset("name major minor direction_deg phase_deg speed_deg_per_hour greenwich".split())
)
CONSTITUENT = ElementSchema(attributes=frozenset(("name", "amplitude", "phase_deg", "speed_deg_per_hour", "greenwich")))
GRID = ElementSchema(
    attributes=frozenset(
        """file space units x y z east north up time ignore_time start outside outside_vertical outside_time""".split()
    )
)
REPLAY = ElementSchema(attributes=frozenset(("file", "topic", "frame", "start", "outside")))

WORLD = ElementSchema(
    children=frozenset(
        (
            "gravity",
            "magnetic_field",
            "spherical_coordinates",
            "physics",
            "model",
            "frame",
            "joint",
            "include",
            MERGED_MODEL_TAG,
            SKIPPED_INCLUDE_TAG,
            "atmosphere",
            "navsense:current",
            "navsense:dipole",
            "navsense:faults",
            "navsense:fidelity",
            "navsense:gravity",
            "navsense:magnetic_field",
            "navsense:signal",
            "navsense:water",
        )
    ),
    repeatable=frozenset(
        (
            "physics",
            "model",
            "frame",
            "joint",
            "include",
            MERGED_MODEL_TAG,
            SKIPPED_INCLUDE_TAG,
            "navsense:dipole",
            "navsense:signal",
        )
    ),
    unsupported={
        "audio": _NO_SOUND,
        "wind": "wind is not simulated yet",
        "gui": _VISUAL_ONLY,
        "scene": _VISUAL_ONLY,
        "light": _VISUAL_ONLY,
        "actor": _VISUAL_ONLY,
        "road": _VISUAL_ONLY,
        "plugin": PLUGIN_NOT_RUN,
        "state": _NO_STATE,
        "population": "populations are not supported; write each model",
    },
    plugins=PRELOAD_FILES.union(CURRENT_PLUGINS),
    attributes=frozenset(("name",)),
)

INCLUDE = ElementSchema(
    children=frozenset(("uri", "name", "pose", "static", "placement_frame", "plugin")),
    repeatable=frozenset(("plugin",)),
    unsupported={"model_state": _NO_STATE, "namespace": _NO_NAMESPACES},
    forbidden={"experimental:params": _NO_PARAMS},
    attributes=frozenset(("merge",)),
)

SKIPPED_INCLUDE = replace(
    INCLUDE, unsupported={**INCLUDE.unsupported, "experimental:params": "changes a skipped include"}, forbidden={}
)

PHYSICS = ElementSchema(
    children=frozenset(("max_step_size",)),
    unsupported=dict.fromkeys(
        ("real_time_factor", "real_time_update_rate", "max_contacts", "dart", "simbody", "bullet", "ode"), _NO_PHYSICS
    ),
    forbidden={
        "magnetic_field": "moved to <world> in SDF 1.6; move it there",
        "gravity": "moved to <world> in SDF 1.6; move it there",
    },
    attributes=frozenset(("default",)),
    ignored_attributes={"name": _NO_PHYSICS, "type": _NO_PHYSICS},
)

SPHERICAL_COORDINATES = ElementSchema(
    children=frozenset(
        ("surface_model", "latitude_deg", "longitude_deg", "elevation", "heading_deg", "world_frame_orientation")
    ),
    unsupported=dict.fromkeys(("surface_axis_equatorial", "surface_axis_polar"), _CUSTOM_SURFACE_ONLY),
)

GRAVITY_MODEL = ElementSchema(attributes=frozenset(("model",)))

MAGNETIC_MODEL = ElementSchema(attributes=frozenset(("model", "date")))

DIPOLE = ElementSchema(children=frozenset(("pose", "moment")), attributes=frozenset(("radius",)))

SIGNAL = ElementSchema(
    children=frozenset(("point",)), repeatable=frozenset(("point",)), attributes=frozenset(("name", "file"))
)

SIGNAL_POINT = ElementSchema(attributes=frozenset(("time",)))

UUV_DVL_FILE = "libuuv_gazebo_ros_dvl_plugin.so"
"""File of a plug-in of a model that is a DVL."""

DSROS_DVL_FILE = "libdsros_ros_dvl.so"
"""File of the plug-in of a `<sensor type="dsros_dvl">`."""

SUBSEA_PRESSURE_FILE = "libuuv_gazebo_ros_subsea_pressure_plugin.so"
"""File of a plug-in of a model that is a pressure sensor."""

RANGE_PLUGIN_FILE = "libgazebo_ros_range.so"
"""File of the plug-in of a `<ray>` that is read."""

RANGE_PLUGIN_SCHEMA = ElementSchema(
    children=frozenset("robotNamespace topicName frameName gaussianNoise updateRate radiation fov".split()),
    unsupported={"alwaysOn": _ALWAYS_ON, "visualize": _VISUAL_ONLY},
    attributes=frozenset(("name", "filename")),
)

SUBSEA_PRESSURE_PLUGIN = ElementSchema(
    children=frozenset(
        """robot_namespace link_name sensor_topic update_rate saturation noise_sigma noise_amplitude noise_stddev
        standard_pressure kPa_per_meter""".split()
    ),
    unsupported={
        "estimate_depth_on": "the depth is always published",
        "enable_gazebo_messages": "the message types do not depend on the world file",
        "enable_local_ned_frame": "frames have the names of links",
        "is_on": _ALWAYS_ON,
        "reference_link_name": "the pressure does not depend on a frame",
        "static_reference_frame": "the pressure does not depend on a frame",
    },
    attributes=frozenset(("name", "filename")),
)

_UUV_BEAM_TAGS = [f"{name}_{i}" for name in ("beam_link_name", "beam_topic") for i in range(4)]

UUV_DVL_PLUGIN = ElementSchema(
    children=frozenset(
        """robot_namespace link_name sensor_topic update_rate noise_sigma noise_amplitude enable_local_ned_frame
        is_on navsense:fidelity""".split()
    ).union(_UUV_BEAM_TAGS),
    unsupported={
        "enable_gazebo_messages": "the message types do not depend on the world file",
        "static_reference_frame": "the velocity is that over the ground, in the axes of the link",
        "reference_link_name": "the velocity is that over the ground, in the axes of the link",
    },
    attributes=_PLUGIN_ATTRIBUTES,
)

_NO_CURRENT_TOPIC = "currents come from the world, also by depth, not from a topic"

DSROS_DVL_PLUGIN = ElementSchema(
    children=frozenset(
        """robotNamespace topicName rangesTopicName frameName pointcloudFrame updateRateHZ gaussianNoiseBeamVel
        gaussianNoiseBeamWtrVel gaussianNoiseBeamRange minRange maxRange maxRangeDiff beamAngleDeg beamWidthDeg
        beamAzimuthDeg1 beamAzimuthDeg2 beamAzimuthDeg3 beamAzimuthDeg4 pos_z_down enableWaterTrack
        ocean_current_topic waterTrackBins currentProfileCoordMode navsense:layer navsense:cloud_points""".split()
    ),
    unsupported={
        "stratified_ocean_current_topic": _NO_CURRENT_TOPIC,
        "collide_bitmask": "all bodies are hit",
    },
    attributes=_PLUGIN_ATTRIBUTES,
)

MODEL = ElementSchema(
    children=frozenset(
        (
            "static",
            "pose",
            "frame",
            "link",
            "joint",
            "model",
            "include",
            MERGED_MODEL_TAG,
            SKIPPED_INCLUDE_TAG,
            ACTUATOR_TAG,
            "navsense:motion",
        )
    ),
    repeatable=frozenset(
        ("frame", "link", "joint", "model", "include", MERGED_MODEL_TAG, SKIPPED_INCLUDE_TAG, ACTUATOR_TAG)
    ),
    unsupported={
        "self_collide": _NO_DYNAMICS,
        "allow_auto_disable": _NO_DYNAMICS,
        "enable_wind": _NO_DYNAMICS,
        "gripper": _NO_DYNAMICS,
        "model_state": _NO_STATE,
        "plugin": PLUGIN_NOT_RUN,
        "scale": "models are not scaled, as in Gazebo",
    },
    plugins=frozenset((SUBSEA_PRESSURE_FILE, UUV_DVL_FILE)),
    attributes=frozenset(("name", "canonical_link", "placement_frame")),
    ignored_attributes={"namespace": _NO_NAMESPACES},
)

LINK = ElementSchema(
    children=frozenset(("pose", "sensor", "collision")) | _CLOCK_TAGS,
    repeatable=frozenset(("sensor", "collision")) | _CLOCK_TAGS,
    unsupported={
        "gravity": _NO_DYNAMICS,
        "enable_wind": _NO_DYNAMICS,
        "self_collide": _NO_DYNAMICS,
        "kinematic": _NO_DYNAMICS,
        "must_be_base_link": _NO_DYNAMICS,
        "velocity_decay": _NO_DYNAMICS,
        "inertial": _NO_DYNAMICS,
        "visual": _VISUAL_ONLY,
        "projector": _VISUAL_ONLY,
        "light": _VISUAL_ONLY,
        "particle_emitter": _VISUAL_ONLY,
        "audio_sink": _NO_SOUND,
        "audio_source": _NO_SOUND,
        "battery": "batteries are not simulated",
        "frame": _OLD_FRAMES,
        "plugin": PLUGIN_NOT_RUN,
        "static": "is not an element of a link; set it in the model",
    },
    attributes=frozenset(("name",)),
)

COLLISION = ElementSchema(
    children=frozenset(("pose", "geometry")),
    unsupported={
        "laser_retro": "the intensity of returns is not simulated",
        "max_contacts": _NO_DYNAMICS,
        "density": _NO_DYNAMICS,
        "auto_inertia_params": _NO_DYNAMICS,
        "surface": _NO_DYNAMICS,
        "mass": _NO_DYNAMICS,
        "frame": _OLD_FRAMES,
    },
    attributes=frozenset(("name",)),
)

_NO_SHAPE = "rays do not hit it: this shape is not simulated yet"

GEOMETRY = ElementSchema(
    children=frozenset(("empty", "box", "capsule", "cylinder", "ellipsoid", "heightmap", "mesh", "plane", "sphere")),
    unsupported=dict.fromkeys(("cone", "image", "polyline"), _NO_SHAPE),
)

BOX = ElementSchema(children=frozenset(("size",)))
ROUND = ElementSchema(children=frozenset(("radius", "length")))
SPHERE = ElementSchema(children=frozenset(("radius",)))
ELLIPSOID = ElementSchema(children=frozenset(("radii",)))
PLANE = ElementSchema(
    children=frozenset(("normal",)), unsupported={"size": "is for rendering only: a plane is infinite"}
)
MESH = ElementSchema(
    children=frozenset(("uri", "submesh", "scale")),
    unsupported={"convex_decomposition": "rays hit the mesh itself"},
    attributes=frozenset(("optimization",)),
)
SUBMESH = ElementSchema(children=frozenset(("name", "center")))
HEIGHTMAP = ElementSchema(
    children=frozenset(("uri", "size", "pos", "sampling")),
    unsupported={"texture": _VISUAL_ONLY, "blend": _VISUAL_ONLY, "use_terrain_paging": _VISUAL_ONLY},
)

JOINT = ElementSchema(
    children=frozenset(("parent", "child", "pose", "axis", "axis2")),
    unsupported={
        "gearbox_ratio": _NO_JOINTS,
        "gearbox_reference_body": _NO_JOINTS,
        "thread_pitch": _NO_JOINTS,
        "screw_thread_pitch": _NO_JOINTS,
        "physics": _NO_JOINTS,
        "frame": _OLD_FRAMES,
        "sensor": "sensors in joints measure forces, which are not simulated; move other sensors to a link",
        "plugin": PLUGIN_NOT_RUN,
    },
    attributes=frozenset(("name", "type")),
)

JOINT_AXIS = ElementSchema(
    children=frozenset(("xyz",)),
    unsupported=dict.fromkeys(("dynamics", "initial_position", "limit", "mimic"), _NO_JOINTS),
    forbidden={"use_parent_model_frame": 'was replaced by <xyz expressed_in="__model__"> in SDF 1.7'},
)

XYZ = ElementSchema(attributes=frozenset(("expressed_in",)))

JOINT_TYPES = frozenset(
    ("continuous", "revolute", "gearbox", "revolute2", "prismatic", "ball", "screw", "universal", "fixed")
)

FRAME = ElementSchema(children=frozenset(("pose",)), attributes=frozenset(("name", "attached_to")))

POSE = ElementSchema(
    attributes=frozenset(("relative_to", "rotation_format", "degrees")),
    forbidden={"frame": "the attribute frame of SDF 1.5 and 1.6 is not supported; use relative_to of SDF 1.7"},
)

TYPE_ALIASES = {"gps": "navsat", **dict.fromkeys(("ray", "lidar", "gpu_ray", "gpu_lidar", "sonar"), "range")}
"""Other names of a sensor type -> navsense's name."""

GAZEBO_BLOCKS = {"gz:dvl": "dvl"}
"""Gazebo's blocks for sensor types that are not in SDF -> navsense's type."""

DEFAULT_TOPIC_ENDINGS = {
    **dict.fromkeys(("ray", "lidar", "gpu_ray", "gpu_lidar"), "scan"),
    "sonar": "sonar",
    "gz:dvl": "dvl/velocity",
}
"""Sensor types and blocks whose default topic does not end in navsense's name of the type (gz-sim, Gazebo Classic)."""

SENSOR_TYPES = frozenset(
    """
    adcp air_flow air_pressure air_speed altimeter boundingbox boundingbox_camera camera contact custom depth
    depth_camera dsros_dvl dvl force_torque gps gpu_lidar gpu_ray imu lidar logical_camera magnetometer multicamera
    navsat range ray rfid rfidtag rgbd rgbd_camera segmentation segmentation_camera sonar thermal thermal_camera
    transceiver wide_angle_camera wideanglecamera wireless_receiver wireless_transmitter
    """.split()
)
"""Sensor types of SDF and of plug-ins."""

DSROS_DVL_TYPE = "dsros_dvl"
"""Sensor type of a DVL that is described by its plug-in."""

UNSIMULATED_TYPES = SENSOR_TYPES - {kind.type for kind in SENSORS} - TYPE_ALIASES.keys() - {DSROS_DVL_TYPE}
"""Sensor types that navsense lists but does not simulate."""

NOT_SIMULATED = _NOT_YET


def list_aliases(sensor_type: str) -> tuple[str, ...]:
    """Return the other names of a sensor type, which its block may have."""
    return tuple(old for old, new in (*TYPE_ALIASES.items(), *GAZEBO_BLOCKS.items()) if new == sensor_type)


SENSOR_BLOCKS = frozenset(
    """air_pressure air_speed altimeter camera contact force_torque gps imu lidar logical_camera magnetometer navsat ray
    rfid rfidtag sonar transceiver""".split()
)
"""Elements that belong to one sensor type."""

_OTHER_BLOCK = "belongs to another type of sensor"


FRAME_ID_TAGS = ("frame_id", "gz_frame_id", "ignition_frame_id")
"""Elements of the frame of a sensor's messages."""


def make_sensor_schema(sensor_type: str) -> ElementSchema:
    """Return the schema of a sensor of a type."""
    return ElementSchema(
        children=frozenset(
            "pose update_rate topic frame_id gz_frame_id ignition_frame_id navsense:fidelity navsense:latency".split()
        )
        | {"navsense:faults", "navsense:part", sensor_type}
        | frozenset(list_aliases(sensor_type))
        | _CLOCK_TAGS,
        unsupported={
            "always_on": _ALWAYS_ON,
            "visualize": _VISUAL_ONLY,
            "enable_metrics": "metrics of the simulator are not published",
            "plugin": PLUGIN_NOT_RUN,
            "frame": _OLD_FRAMES,
            **dict.fromkeys(SENSOR_BLOCKS - {sensor_type, *list_aliases(sensor_type)}, _OTHER_BLOCK),
        },
        attributes=frozenset(("name", "type", "gz:type", "ignition:type")),
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

_BEAM_EXTENSIONS = frozenset(("navsense:own_hull", "navsense:sound"))
RAY = ElementSchema(
    children=frozenset(("scan", "range", "noise")) | _BEAM_EXTENSIONS,
    unsupported={"visibility_mask": "all bodies are hit"},
)
SCAN = ElementSchema(children=frozenset(("horizontal", "vertical")))
SAMPLES = ElementSchema(children=frozenset(("samples", "resolution", "min_angle", "max_angle")))
RAY_RANGE = ElementSchema(children=frozenset(("min", "max", "resolution")))
SONAR = ElementSchema(children=frozenset(("geometry", "min", "max", "radius", "noise")) | _BEAM_EXTENSIONS)
BEAM = ElementSchema(children=frozenset(("axis",)), attributes=frozenset(("width_deg", "rings")))

CLOCK = ElementSchema(
    children=frozenset(
        ("noise", "navsense:oscillator", "navsense:discipline", "navsense:monotonic", "navsense:faults")
    ),
    attributes=frozenset(("name",)),
)

PART = ElementSchema(attributes=frozenset(("temperature",)))

_AXIS_TAGS = frozenset(("x", "y", "z"))
AXES = ElementSchema(children=_AXIS_TAGS)
AXIS = ElementSchema(children=frozenset(("noise",)))
LEAF = ElementSchema()

MOTION = ElementSchema(
    children=frozenset(("navsense:waypoint",)),
    repeatable=frozenset(("navsense:waypoint",)),
    attributes=frozenset(("loop", "degrees", "file", "bandwidth")),
)

WAYPOINT = ElementSchema(attributes=frozenset(("time", "degrees", "rotation_format")))
