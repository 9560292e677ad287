"""What may stand where: the children and attributes that are read, listed as unsupported, or refused.

Held against the machine-readable specification by a test: no element of it is passed over in silence.
"""

from __future__ import annotations

from navsense.sdf.context import Place

_LOOKS = "looks only; no sensor of navsense sees it"
_DYNAMICS = "forces and contacts are not simulated; a model moves by its motion"
_LATER = "not simulated yet"
_PHYSICS = "there is no physics engine yet; only max_step_size is read"
_ALWAYS = "every sensor is always on and recorded"
_PLUGIN = "plug-ins of other programs are not run"
_PLACE = "the place on earth is not used yet; magnetic_field is taken as given"
_INCLUDE = "including files is not supported yet; paste the model into this file"
_PLACEMENT = "placement_frame is not supported yet; give the model's own pose instead"
_STATE = "a stored state is not restored; the poses of the models count"
_NO_SOUND = "sound is not simulated"
_JOINTS = "joints do not move yet: the links of a model are held as posed"
_NAMESPACE = "namespaces of topics are not supported; give <topic>"

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
            "navsense:fidelity",
        )
    ),
    several=frozenset(("physics", "model", "frame", "joint")),
    unsupported={
        "audio": _NO_SOUND,
        "wind": "wind is not simulated yet",
        "atmosphere": "the atmosphere is not simulated yet",
        "gui": _LOOKS,
        "scene": _LOOKS,
        "light": _LOOKS,
        "actor": _LOOKS,
        "road": _LOOKS,
        "plugin": _PLUGIN,
        "state": _STATE,
        "population": "populations are not expanded; write the models out",
    },
    refused={"include": _INCLUDE},
    attributes=frozenset(("name",)),
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
    read=frozenset(("heading_deg", "world_frame_orientation")),
    unsupported=dict.fromkeys(
        (
            "surface_model",
            "latitude_deg",
            "longitude_deg",
            "elevation",
            "surface_axis_equatorial",
            "surface_axis_polar",
        ),
        _PLACE,
    ),
)

MODEL = Place(
    read=frozenset(("static", "pose", "frame", "link", "joint", "model", "navsense:motion")),
    several=frozenset(("frame", "link", "joint", "model")),
    unsupported={
        "self_collide": _DYNAMICS,
        "allow_auto_disable": _DYNAMICS,
        "enable_wind": _DYNAMICS,
        "gripper": _DYNAMICS,
        "model_state": _STATE,
        "plugin": _PLUGIN,
    },
    refused={"include": _INCLUDE, "placement_frame": _PLACEMENT},
    attributes=frozenset(("name", "canonical_link")),
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
        "plugin": _PLUGIN,
        "static": "is no element of a link in SDF; set it in the model",
    },
    attributes=frozenset(("name",)),
)

JOINT = Place(
    read=frozenset(("parent", "child", "pose")),
    unsupported={
        "gearbox_ratio": _JOINTS,
        "gearbox_reference_body": _JOINTS,
        "thread_pitch": _JOINTS,
        "screw_thread_pitch": _JOINTS,
        "axis": _JOINTS,
        "axis2": _JOINTS,
        "physics": _JOINTS,
        "sensor": "sensors in joints measure forces, which are not simulated; move other sensors into a link",
        "plugin": _PLUGIN,
    },
    attributes=frozenset(("name", "type")),
)

JOINT_TYPES = frozenset(
    ("continuous", "revolute", "gearbox", "revolute2", "prismatic", "ball", "screw", "universal", "fixed")
)

FRAME = Place(read=frozenset(("pose",)), attributes=frozenset(("name", "attached_to")))

POSE = Place(
    attributes=frozenset(("relative_to", "rotation_format", "degrees")),
    refused={"frame": "the attribute frame of SDF 1.5 and 1.6 is not supported; use relative_to of SDF 1.7"},
)

OTHER_SENSORS = frozenset(
    """
    air_pressure air_speed altimeter boundingbox boundingbox_camera camera contact custom depth depth_camera
    dsros_dvl dvl force_torque gps gpu_lidar gpu_ray lidar logical_camera multicamera navsat ray rfid rfidtag
    rgbd rgbd_camera segmentation segmentation_camera sonar thermal thermal_camera transceiver
    wide_angle_camera wireless_receiver wireless_transmitter
    """.split()
)
"""Types of sensor that exist in SDF or in plug-ins and that navsense lists but does not simulate."""

NOT_SIMULATED = _LATER

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
            ("pose", "update_rate", "topic", "frame_id", "gz_frame_id", "ignition_frame_id", "navsense:fidelity", kind)
        )
        | _CLOCKS,
        unsupported={
            "always_on": _ALWAYS,
            "visualize": _LOOKS,
            "enable_metrics": "metrics of the simulator are not published",
            "plugin": _PLUGIN,
            **{block: _OTHER_BLOCK for block in SENSOR_BLOCKS if block != kind},
        },
        attributes=frozenset(("name", "type", "gz:type", "ignition:type")),
    )


CLOCK = Place(read=frozenset(("noise",)), attributes=frozenset(("name",)))

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
        )
    ),
    attributes=frozenset(("type",)),
)

MOTION = Place(
    read=frozenset(("navsense:waypoint",)),
    several=frozenset(("navsense:waypoint",)),
    attributes=frozenset(("loop", "degrees", "file", "bandwidth")),
)

WAYPOINT = Place(attributes=frozenset(("time", "degrees", "rotation_format")))
