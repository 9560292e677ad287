"""What may stand where: the children and attributes that are read, listed as unsupported, or refused.

Held against the machine-readable specification by a test: no element of it is passed over in silence.
"""

from __future__ import annotations

from dataclasses import fields, replace

from navsense.clock import Discipline, Latency, Oscillator
from navsense.noise.channel import SHEET
from navsense.noise.faults import BY_CHANCE
from navsense.noise.planned import Planned
from navsense.sdf.context import PLUGIN, Place
from navsense.sensors import SENSORS

_LOOKS = "looks only; no sensor of navsense sees it"
_DYNAMICS = "forces and contacts are not simulated; a model moves by its motion"
_LATER = "not simulated yet"
_PHYSICS = "there is no physics engine yet; only max_step_size is read"
_ALWAYS = "every sensor is always on and recorded"
_SURFACE = "acts with a custom surface only; worlds stand on the earth's ellipsoid"
_PARAMS = "changes what is included, which is not supported; write the changed model into a file of its own"
_OLD_FRAMES = "nothing ever read frames here; since SDF 1.7 they stand in the model"
_STATE = "a stored state is not restored; the poses of the models count"
_NO_SOUND = "sound is not simulated"
_JOINTS = "joints do not move yet: the links of a model are held as posed"
_NAMESPACE = "namespaces of topics are not supported; give <topic>"

MERGED = "merged model"
"""What stands for a model that is merged into the one around it: a tag that no file can hold."""

LEFT_OUT = "include left out"
"""What stands for an include whose file is not found, in a world that is read without it: with the include's parts."""

ACTUATOR = "actuator of URDF"
"""Tag of an element for a part of a URDF file that drives a joint. No file can contain this tag."""

_CLOCKS = frozenset(("clock", "navsense:clock"))

SDF = Place(
    read=frozenset(("world", "model")),
    several=frozenset(("world", "model")),
    unsupported={"actor": _LOOKS, "light": _LOOKS},
    attributes=frozenset(("version",)),
)

_WHERE_FROM = frozenset(("name", "filename"))

_UUV_CURRENT = Place(read=frozenset(("namespace", "constant_current")), attributes=_WHERE_FROM)
_DAVE_CURRENT = Place(
    read=frozenset(("namespace", "constant_current", "transient_current", "tidal_oscillation")), attributes=_WHERE_FROM
)

CURRENT_PLUGINS = {
    "libuuv_underwater_current_ros_plugin.so": _UUV_CURRENT,
    "libuuv_underwater_current_plugin.so": _UUV_CURRENT,
    "libdave_ocean_current_plugin.so": _DAVE_CURRENT,
}
"""File of a plug-in of a world that is read -> what may stand in it."""

PRELOADS = frozenset(
    (
        "gz-sim-environment-preload-system",
        "libgz-sim-environment-preload-system.so",
        "ignition-gazebo-environment-preload-system",
        "libignition-gazebo-environment-preload-system.so",
    )
)
"""Files of Gazebo's plug-in of a world that reads a table."""

PRELOAD = Place(read=frozenset(("data", "dimensions")), attributes=_WHERE_FROM)
DIMENSIONS = Place(read=frozenset(("ignore_time", "time", "space")))
SPACE = Place(read=frozenset(("x", "y", "z")), attributes=frozenset(("reference", "units")))

CONSTANT_CURRENT = Place(read=frozenset(("topic", "velocity", "horizontal_angle", "vertical_angle")))
CURRENT_PROCESS = Place(read=frozenset(("mean", "min", "max", "mu", "noiseAmp")))
TRANSIENT_CURRENT = Place(read=frozenset(("topic_stratified", "databasefilePath")))
TIDAL_OSCILLATION = Place(
    read=frozenset(("databasefilePath", "harmonic_constituents", "mean_direction", "world_start_time_GMT"))
)
HARMONIC_CONSTITUENTS = Place(read=frozenset(("M2", "S2", "N2")))
DAVE_CONSTITUENT = Place(read=frozenset(("amp", "phase", "speed")))
MEAN_DIRECTION = Place(read=frozenset(("ebb", "flood")))
START_TIME = Place(read=frozenset(("day", "month", "year", "hour", "minute")))

_CURRENTS = frozenset("uniform gauss_markov stratified tidal tidal_ellipses grid replay boundary_layer profile".split())

CURRENT = Place(read=_CURRENTS, several=_CURRENTS, attributes=frozenset(("topic", "rate", "position", "start")))
_PROCESS = frozenset(("mean", "minimum", "maximum", "correlation_time", "stddev", "density"))
WANDER = Place(attributes=_PROCESS)
WANDERING_ANGLE = Place(attributes=_PROCESS | {"degrees"})
GAUSS_MARKOV = Place(read=frozenset(("speed", "horizontal_angle", "vertical_angle")), attributes=frozenset(("name",)))
STRATIFIED = Place(
    read=frozenset(("layer", "speed", "direction")),
    several=frozenset(("layer",)),
    attributes=frozenset(("file", "outside", "name")),
)
CURRENT_LAYER = Place(attributes=frozenset(("depth",)))
TIDAL = Place(
    read=frozenset(("constituent",)),
    several=frozenset(("constituent",)),
    attributes=frozenset(("file", "mean", "flood_direction_deg", "ebb_direction_deg")),
)
TIDAL_ELLIPSES = Place(read=frozenset(("ellipse",)), several=frozenset(("ellipse",)), attributes=frozenset(("mean",)))
ELLIPSE = Place(attributes=frozenset("name major minor direction_deg phase_deg speed_deg_per_hour greenwich".split()))
CONSTITUENT = Place(attributes=frozenset(("name", "amplitude", "phase_deg", "speed_deg_per_hour", "greenwich")))
GRID = Place(
    attributes=frozenset(
        """file space units x y z east north up time ignore_time start outside outside_vertical outside_time""".split()
    )
)
REPLAY = Place(attributes=frozenset(("file", "topic", "frame", "start", "outside")))
BOUNDARY_LAYER = Place(read=_CURRENTS, several=_CURRENTS, attributes=frozenset(("bed", "thickness", "exponent")))
PROFILE = Place(read=_CURRENTS | {"factor"}, several=_CURRENTS | {"factor"}, attributes=frozenset(("outside",)))

WORLD = Place(
    read=frozenset(
        (
            "gravity",
            "magnetic_field",
            "spherical_coordinates",
            "physics",
            "model",
            "frame",
            "joint",
            "include",
            MERGED,
            LEFT_OUT,
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
    several=frozenset(
        ("physics", "model", "frame", "joint", "include", MERGED, LEFT_OUT, "navsense:dipole", "navsense:signal")
    ),
    unsupported={
        "audio": _NO_SOUND,
        "wind": "wind is not simulated yet",
        "gui": _LOOKS,
        "scene": _LOOKS,
        "light": _LOOKS,
        "actor": _LOOKS,
        "road": _LOOKS,
        "plugin": PLUGIN,
        "state": _STATE,
        "population": "populations are not expanded; write the models out",
    },
    plugins=PRELOADS.union(CURRENT_PLUGINS),
    attributes=frozenset(("name",)),
)

INCLUDE = Place(
    read=frozenset(("uri", "name", "pose", "static", "placement_frame", "plugin")),
    several=frozenset(("plugin",)),
    unsupported={"model_state": _STATE, "namespace": _NAMESPACE},
    refused={"experimental:params": _PARAMS},
    attributes=frozenset(("merge",)),
)

INCLUDE_LEFT_OUT = replace(
    INCLUDE, unsupported={**INCLUDE.unsupported, "experimental:params": "changes what is left out"}, refused={}
)

PHYSICS = Place(
    read=frozenset(("max_step_size",)),
    unsupported=dict.fromkeys(
        ("real_time_factor", "real_time_update_rate", "max_contacts", "dart", "simbody", "bullet", "ode"), _PHYSICS
    ),
    refused={
        "magnetic_field": "stands in <world> since SDF 1.6; move it there",
        "gravity": "stands in <world> since SDF 1.6; move it there",
    },
    attributes=frozenset(("default",)),
    ignored={"name": _PHYSICS, "type": _PHYSICS},
)

SPHERICAL_COORDINATES = Place(
    read=frozenset(
        ("surface_model", "latitude_deg", "longitude_deg", "elevation", "heading_deg", "world_frame_orientation")
    ),
    unsupported=dict.fromkeys(("surface_axis_equatorial", "surface_axis_polar"), _SURFACE),
)

ATMOSPHERE = Place(read=frozenset(("temperature", "pressure", "temperature_gradient")), attributes=frozenset(("type",)))

GRAVITY_MODEL = Place(attributes=frozenset(("model",)))

MAGNETIC_MODEL = Place(attributes=frozenset(("model", "date")))

DIPOLE = Place(read=frozenset(("pose", "moment")), attributes=frozenset(("radius",)))

SIGNAL = Place(read=frozenset(("point",)), several=frozenset(("point",)), attributes=frozenset(("name", "file")))

POINT = Place(attributes=frozenset(("time",)))

UUV_DVL = "libuuv_gazebo_ros_dvl_plugin.so"
"""File of a plug-in of a model that is read, as the DVL that it is."""

DSROS_DVL = "libdsros_ros_dvl.so"
"""File of the plug-in that a `<sensor type="dsros_dvl">` is described by."""

SUBSEA_PRESSURE = "libuuv_gazebo_ros_subsea_pressure_plugin.so"
"""File of another plug-in of a model that is read, as the pressure sensor that it is."""

RANGE_PLUGIN = "libgazebo_ros_range.so"
"""File of the plug-in of a `<ray>` that is read."""

RANGE_PLUGIN_PLACE = Place(
    read=frozenset("robotNamespace topicName frameName gaussianNoise updateRate radiation fov".split()),
    unsupported={"alwaysOn": _ALWAYS, "visualize": _LOOKS},
    attributes=frozenset(("name", "filename")),
)

SUBSEA_PRESSURE_PLUGIN = Place(
    read=frozenset(
        """robot_namespace link_name sensor_topic update_rate saturation noise_sigma noise_amplitude noise_stddev
        standard_pressure kPa_per_meter""".split()
    ),
    unsupported={
        "estimate_depth_on": "the depth is always given",
        "enable_gazebo_messages": "which messages are written does not depend on the world's file",
        "enable_local_ned_frame": "frames are those of the links",
        "is_on": _ALWAYS,
        "reference_link_name": "the pressure does not depend on a frame",
        "static_reference_frame": "the pressure does not depend on a frame",
    },
    attributes=frozenset(("name", "filename")),
)

_BEAMS_OF_FOUR = [f"{name}_{i}" for name in ("beam_link_name", "beam_topic") for i in range(4)]

UUV_DVL_PLUGIN = Place(
    read=frozenset(
        """robot_namespace link_name sensor_topic update_rate noise_sigma noise_amplitude enable_local_ned_frame
        is_on navsense:fidelity""".split()
    ).union(_BEAMS_OF_FOUR),
    unsupported={
        "enable_gazebo_messages": "which messages are written does not depend on the world's file",
        "static_reference_frame": "the velocity is over the ground, told in the axes of the link",
        "reference_link_name": "the velocity is over the ground, told in the axes of the link",
    },
    attributes=_WHERE_FROM,
)

_LAYERS = "currents come from the world, by depth too, and not by a topic"

DSROS_DVL_PLUGIN = Place(
    read=frozenset(
        """robotNamespace topicName rangesTopicName frameName pointcloudFrame updateRateHZ gaussianNoiseBeamVel
        gaussianNoiseBeamWtrVel gaussianNoiseBeamRange minRange maxRange maxRangeDiff beamAngleDeg beamWidthDeg
        beamAzimuthDeg1 beamAzimuthDeg2 beamAzimuthDeg3 beamAzimuthDeg4 pos_z_down enableWaterTrack
        ocean_current_topic waterTrackBins currentProfileCoordMode navsense:layer navsense:cloud_points""".split()
    ),
    unsupported={
        "stratified_ocean_current_topic": _LAYERS,
        "collide_bitmask": "every body is met",
    },
    attributes=_WHERE_FROM,
)

WATER = Place(
    read=frozenset(("point", "temperature", "salinity", "density", "sound_speed")),
    several=frozenset(("point",)),
    attributes=frozenset(("surface", "latitude_deg", "file")),
)

LAYER = Place(attributes=frozenset(("depth", "temperature", "salinity")))

MODEL = Place(
    read=frozenset(
        ("static", "pose", "frame", "link", "joint", "model", "include", MERGED, LEFT_OUT, ACTUATOR, "navsense:motion")
    ),
    several=frozenset(("frame", "link", "joint", "model", "include", MERGED, LEFT_OUT, ACTUATOR)),
    unsupported={
        "self_collide": _DYNAMICS,
        "allow_auto_disable": _DYNAMICS,
        "enable_wind": _DYNAMICS,
        "gripper": _DYNAMICS,
        "model_state": _STATE,
        "plugin": PLUGIN,
        "scale": "a model is not scaled; nor does Gazebo scale it",
    },
    plugins=frozenset((SUBSEA_PRESSURE, UUV_DVL)),
    attributes=frozenset(("name", "canonical_link", "placement_frame")),
    ignored={"namespace": _NAMESPACE},
)

LINK = Place(
    read=frozenset(("pose", "sensor", "collision")) | _CLOCKS,
    several=frozenset(("sensor", "collision")) | _CLOCKS,
    unsupported={
        "gravity": _DYNAMICS,
        "enable_wind": _DYNAMICS,
        "self_collide": _DYNAMICS,
        "kinematic": _DYNAMICS,
        "must_be_base_link": _DYNAMICS,
        "velocity_decay": _DYNAMICS,
        "inertial": _DYNAMICS,
        "visual": _LOOKS,
        "projector": _LOOKS,
        "light": _LOOKS,
        "particle_emitter": _LOOKS,
        "audio_sink": _NO_SOUND,
        "audio_source": _NO_SOUND,
        "battery": "batteries are not simulated",
        "frame": _OLD_FRAMES,
        "plugin": PLUGIN,
        "static": "is no element of a link in SDF; set it in the model",
    },
    attributes=frozenset(("name",)),
)

COLLISION = Place(
    read=frozenset(("pose", "geometry")),
    unsupported={
        "laser_retro": "how strong a return is does not count",
        "max_contacts": _DYNAMICS,
        "density": _DYNAMICS,
        "auto_inertia_params": _DYNAMICS,
        "surface": _DYNAMICS,
        "mass": _DYNAMICS,
        "frame": _OLD_FRAMES,
    },
    attributes=frozenset(("name",)),
)

_NO_SHAPE = "no ray meets it: this shape is not simulated yet"

GEOMETRY = Place(
    read=frozenset(("empty", "box", "capsule", "cylinder", "ellipsoid", "heightmap", "mesh", "plane", "sphere")),
    unsupported=dict.fromkeys(("cone", "image", "polyline"), _NO_SHAPE),
)

BOX = Place(read=frozenset(("size",)))
ROUND = Place(read=frozenset(("radius", "length")))
SPHERE = Place(read=frozenset(("radius",)))
ELLIPSOID = Place(read=frozenset(("radii",)))
PLANE = Place(read=frozenset(("normal",)), unsupported={"size": "is for pictures alone: a plane has no end"})
MESH = Place(
    read=frozenset(("uri", "submesh", "scale")),
    unsupported={"convex_decomposition": "rays meet the mesh itself"},
    attributes=frozenset(("optimization",)),
)
SUBMESH = Place(read=frozenset(("name", "center")))
HEIGHTMAP = Place(
    read=frozenset(("uri", "size", "pos", "sampling")),
    unsupported={"texture": _LOOKS, "blend": _LOOKS, "use_terrain_paging": _LOOKS},
)

JOINT = Place(
    read=frozenset(("parent", "child", "pose", "axis", "axis2")),
    unsupported={
        "gearbox_ratio": _JOINTS,
        "gearbox_reference_body": _JOINTS,
        "thread_pitch": _JOINTS,
        "screw_thread_pitch": _JOINTS,
        "physics": _JOINTS,
        "frame": _OLD_FRAMES,
        "sensor": "sensors in joints measure forces, which are not simulated; move other sensors into a link",
        "plugin": PLUGIN,
    },
    attributes=frozenset(("name", "type")),
)

JOINT_AXIS = Place(
    read=frozenset(("xyz",)),
    unsupported=dict.fromkeys(("dynamics", "initial_position", "limit", "mimic"), _JOINTS),
    refused={"use_parent_model_frame": 'is written <xyz expressed_in="__model__"> since SDF 1.7'},
)

XYZ = Place(attributes=frozenset(("expressed_in",)))

JOINT_TYPES = frozenset(
    ("continuous", "revolute", "gearbox", "revolute2", "prismatic", "ball", "screw", "universal", "fixed")
)

FRAME = Place(read=frozenset(("pose",)), attributes=frozenset(("name", "attached_to")))

POSE = Place(
    attributes=frozenset(("relative_to", "rotation_format", "degrees")),
    refused={"frame": "the attribute frame of SDF 1.5 and 1.6 is not supported; use relative_to of SDF 1.7"},
)

LEGACY = {"gps": "navsat", **dict.fromkeys(("ray", "lidar", "gpu_ray", "gpu_lidar", "sonar"), "range")}
"""Types of sensor by other names: the name that navsense has for them."""

FOREIGN = {"gz:dvl": "dvl"}
"""Blocks that Gazebo has for types of sensor that SDF has not: the type that navsense has for them."""

TOPICS = {
    **dict.fromkeys(("ray", "lidar", "gpu_ray", "gpu_lidar"), "scan"),
    "sonar": "sonar",
    "gz:dvl": "dvl/velocity",
}
"""Types and blocks of sensors whose default topic ends otherwise than in navsense's name for them (gz-sim, classic)."""

TYPES = frozenset(
    """
    adcp air_flow air_pressure air_speed altimeter boundingbox boundingbox_camera camera contact custom depth
    depth_camera dsros_dvl dvl force_torque gps gpu_lidar gpu_ray imu lidar logical_camera magnetometer multicamera
    navsat range ray rfid rfidtag rgbd rgbd_camera segmentation segmentation_camera sonar thermal thermal_camera
    transceiver wide_angle_camera wideanglecamera wireless_receiver wireless_transmitter
    """.split()
)
"""Types of sensor that exist in SDF or in plug-ins."""

WOODS_HOLE = "dsros_dvl"
"""Type of sensor that is a DVL as its plug-in describes it."""

OTHER_SENSORS = TYPES - {kind.type for kind in SENSORS} - LEGACY.keys() - {WOODS_HOLE}
"""Types of sensor that navsense lists but does not simulate."""

NOT_SIMULATED = _LATER


def older(kind: str) -> tuple[str, ...]:
    """Return the other names of a type of sensor, by which its block may stand there."""
    return tuple(old for old, new in (*LEGACY.items(), *FOREIGN.items()) if new == kind)


SENSOR_BLOCKS = frozenset(
    """air_pressure air_speed altimeter camera contact force_torque gps imu lidar logical_camera magnetometer navsat ray
    rfid rfidtag sonar transceiver""".split()
)
"""Elements of a sensor that belong to one type of it."""

_OTHER_BLOCK = "belongs to another type of sensor"


_FRAMES = ("frame_id", "gz_frame_id", "ignition_frame_id")


def sensor_place(kind: str) -> Place:
    """Return what may stand in a sensor of a type."""
    return Place(
        read=frozenset(
            "pose update_rate topic frame_id gz_frame_id ignition_frame_id navsense:fidelity navsense:latency".split()
        )
        | {"navsense:faults", "navsense:part", kind}
        | frozenset(older(kind))
        | _CLOCKS,
        unsupported={
            "always_on": _ALWAYS,
            "visualize": _LOOKS,
            "enable_metrics": "metrics of the simulator are not published",
            "plugin": PLUGIN,
            "frame": _OLD_FRAMES,
            **dict.fromkeys(SENSOR_BLOCKS - {kind, *older(kind)}, _OTHER_BLOCK),
        },
        attributes=frozenset(("name", "type", "gz:type", "ignition:type")),
    )


_NAMED = "is named by the plug-in"

_SENSOR = sensor_place(WOODS_HOLE)

DSROS_DVL_SENSOR = replace(
    _SENSOR,
    read=_SENSOR.read - {WOODS_HOLE, "topic", *_FRAMES} | {"ocean_current_topic"},
    unsupported={
        **_SENSOR.unsupported,
        **dict.fromkeys(("topic", *_FRAMES), _NAMED),
        "stratified_ocean_current_topic": _LAYERS,
    },
    plugins=frozenset((DSROS_DVL,)),
)

NOISE_FIELDS = frozenset(
    (
        "mean",
        "stddev",
        "bias_mean",
        "bias_stddev",
        "dynamic_bias_stddev",
        "dynamic_bias_correlation_time",
        "precision",
        "navsense:minimum",
        "navsense:maximum",
        "navsense:noise",
    )
)

NOISE = Place(read=NOISE_FIELDS, attributes=frozenset(("type",)))

_BEAM = frozenset(("navsense:own_hull", "navsense:sound"))
RAY = Place(
    read=frozenset(("scan", "range", "noise")) | _BEAM,
    unsupported={"visibility_mask": "every body is seen"},
)
SCAN = Place(read=frozenset(("horizontal", "vertical")))
SAMPLES = Place(read=frozenset(("samples", "resolution", "min_angle", "max_angle")))
RAY_RANGE = Place(read=frozenset(("min", "max", "resolution")))
RAY_NOISE = Place(read=NOISE_FIELDS | {"type"})
SONAR = Place(read=frozenset(("geometry", "min", "max", "radius", "noise")) | _BEAM)
RANGE = Place(read=frozenset(("min", "max", "resolution", "noise", "beam", "own_hull", "sound")))
BEAM = Place(read=frozenset(("axis",)), attributes=frozenset(("width_deg", "rings")))
SOUND = Place(attributes=frozenset(("speed",)))

CLOCK = Place(
    read=frozenset(("noise", "navsense:oscillator", "navsense:discipline", "navsense:monotonic", "navsense:faults")),
    attributes=frozenset(("name",)),
)

OSCILLATOR = Place(read=frozenset(field.name for field in fields(Oscillator)), attributes=frozenset(("grade",)))
DISCIPLINE = Place(read=frozenset(field.name for field in fields(Discipline)))
LATENCY = Place(read=frozenset(field.name for field in fields(Latency)))

PART = Place(attributes=frozenset(("temperature",)))
FAULTS = Place(read=frozenset((*BY_CHANCE, "fault")), several=frozenset(("fault",)))
FAULTS_PLANNED = Place(read=frozenset(("fault",)), several=frozenset(("fault",)))
FAULT = Place(attributes=frozenset(field.name for field in fields(Planned)) - {"value", "where"})

_AXES = frozenset(("x", "y", "z"))
AXES = Place(read=_AXES)
AXIS = Place(read=frozenset(("noise",)))
LEAF = Place()

NAVSENSE_NOISE = Place(read=SHEET)

MOTION = Place(
    read=frozenset(("navsense:waypoint",)),
    several=frozenset(("navsense:waypoint",)),
    attributes=frozenset(("loop", "degrees", "file", "bandwidth")),
)

WAYPOINT = Place(attributes=frozenset(("time", "degrees", "rotation_format")))
