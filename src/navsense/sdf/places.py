"""What may stand where: the children and attributes that are read, listed as unsupported, or refused.

Held against the machine-readable specification by a test: no element of it is passed over in silence.
"""

from __future__ import annotations

from dataclasses import fields

from navsense.clock import Discipline, Latency, Oscillator
from navsense.noise.channel import SHEET
from navsense.noise.faults import Faults
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

_CLOCKS = frozenset(("clock", "navsense:clock"))

SDF = Place(
    read=frozenset(("world", "model")),
    several=frozenset(("world", "model")),
    unsupported={"actor": _LOOKS, "light": _LOOKS},
    attributes=frozenset(("version",)),
)

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
            "atmosphere",
            "navsense:dipole",
            "navsense:fidelity",
            "navsense:gravity",
            "navsense:magnetic_field",
            "navsense:signal",
        )
    ),
    several=frozenset(("physics", "model", "frame", "joint", "include", MERGED, "navsense:dipole", "navsense:signal")),
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
    attributes=frozenset(("name",)),
)

INCLUDE = Place(
    read=frozenset(("uri", "name", "pose", "static", "placement_frame", "plugin")),
    several=frozenset(("plugin",)),
    unsupported={"model_state": _STATE, "namespace": _NAMESPACE},
    refused={"experimental:params": _PARAMS},
    attributes=frozenset(("merge",)),
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

MODEL = Place(
    read=frozenset(("static", "pose", "frame", "link", "joint", "model", "include", MERGED, "navsense:motion")),
    several=frozenset(("frame", "link", "joint", "model", "include", MERGED)),
    unsupported={
        "self_collide": _DYNAMICS,
        "allow_auto_disable": _DYNAMICS,
        "enable_wind": _DYNAMICS,
        "gripper": _DYNAMICS,
        "model_state": _STATE,
        "plugin": PLUGIN,
        "scale": "a model is not scaled; nor does Gazebo scale it",
    },
    attributes=frozenset(("name", "canonical_link", "placement_frame")),
    ignored={"namespace": _NAMESPACE},
)

LINK = Place(
    read=frozenset(("pose", "sensor")) | _CLOCKS,
    several=frozenset(("sensor",)) | _CLOCKS,
    unsupported={
        "gravity": _DYNAMICS,
        "enable_wind": _DYNAMICS,
        "self_collide": _DYNAMICS,
        "kinematic": _DYNAMICS,
        "must_be_base_link": _DYNAMICS,
        "velocity_decay": _DYNAMICS,
        "inertial": _DYNAMICS,
        "collision": _DYNAMICS,
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

LEGACY = {"gps": "navsat"}
"""Types of sensor by older names: the name that SDF has for them now."""

TYPES = frozenset(
    """
    air_flow air_pressure air_speed altimeter boundingbox boundingbox_camera camera contact custom depth depth_camera
    dsros_dvl dvl force_torque gps gpu_lidar gpu_ray imu lidar logical_camera magnetometer multicamera navsat ray rfid
    rfidtag rgbd rgbd_camera segmentation segmentation_camera sonar thermal thermal_camera transceiver
    wide_angle_camera wideanglecamera wireless_receiver wireless_transmitter
    """.split()
)
"""Types of sensor that exist in SDF or in plug-ins."""

OTHER_SENSORS = TYPES - {kind.type for kind in SENSORS} - LEGACY.keys()
"""Types of sensor that navsense lists but does not simulate."""

NOT_SIMULATED = _LATER


def older(kind: str) -> tuple[str, ...]:
    """Return the older names of a type of sensor."""
    return tuple(old for old, new in LEGACY.items() if new == kind)


SENSOR_BLOCKS = frozenset(
    """air_pressure air_speed altimeter camera contact force_torque gps imu lidar logical_camera magnetometer navsat ray
    rfid rfidtag sonar transceiver""".split()
)
"""Elements of a sensor that belong to one type of it."""

_OTHER_BLOCK = "belongs to another type of sensor"


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


CLOCK = Place(
    read=frozenset(("noise", "navsense:oscillator", "navsense:discipline", "navsense:monotonic")),
    attributes=frozenset(("name",)),
)

OSCILLATOR = Place(read=frozenset(field.name for field in fields(Oscillator)), attributes=frozenset(("grade",)))
DISCIPLINE = Place(read=frozenset(field.name for field in fields(Discipline)))
LATENCY = Place(read=frozenset(field.name for field in fields(Latency)))

PART = Place(attributes=frozenset(("temperature",)))
FAULTS = Place(read=frozenset(field.name for field in fields(Faults)))

_AXES = frozenset(("x", "y", "z"))
AXES = Place(read=_AXES)
AXIS = Place(read=frozenset(("noise",)))
LEAF = Place()

NOISE = Place(
    read=frozenset(
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
    ),
    attributes=frozenset(("type",)),
)

NAVSENSE_NOISE = Place(read=SHEET)

MOTION = Place(
    read=frozenset(("navsense:waypoint",)),
    several=frozenset(("navsense:waypoint",)),
    attributes=frozenset(("loop", "degrees", "file", "bandwidth")),
)

WAYPOINT = Place(attributes=frozenset(("time", "degrees", "rotation_format")))
