"""The allowed children and attributes of URDF elements; see `schema` for SDF.

Source: the elements of URDF as ROS documents them; the settings of `<gazebo>` are those of libsdformat.
"""

from __future__ import annotations

from collections.abc import Mapping

from navsense.sdf.context import ElementSchema, make_schema, split_tags

_VISUAL_ONLY = "has only a visual effect"
_NO_DYNAMICS = "forces and contacts are not simulated; a model follows its motion"
_NO_ACTUATORS = "actuators and their controllers are not simulated"
_NO_JOINT_MOTION = "joints keep position 0, or follow a log of positions"
_OTHER_PROGRAM = "belongs to another program"

ACTUATOR_PARTS = ("transmission", "ros2_control")
"""Elements of a robot, or of its `<gazebo>`, that can drive joints."""

ROBOT = make_schema(
    "origin",
    repeatable="link joint gazebo",
    unsupported={
        "material": _VISUAL_ONLY,
        **dict.fromkeys(ACTUATOR_PARTS, _NO_ACTUATORS),
        "mujoco": _OTHER_PROGRAM,
        "sensor": 'is not read; write <gazebo reference="LINK"><sensor>, as in Gazebo',
    },
    forbidden={"plugin": "belongs to a <gazebo>", "include": "belongs to a <gazebo>"},
    attributes="name",
    ignored_attributes={"version": "all versions of URDF are read in the same way"},
    strict=False,
)

LINK = make_schema(
    repeatable="collision",
    unsupported={
        "inertial": _NO_DYNAMICS,
        "contact": _NO_DYNAMICS,
        "self_collision_checking": _NO_DYNAMICS,
        "visual": _VISUAL_ONLY,
    },
    forbidden={
        "sensor": 'belongs to <gazebo reference="LINK">',
        "origin": "belongs to the parent joint of the link",
        "pose": "belongs to the parent joint of the link, as <origin>",
    },
    attributes="name",
    ignored_attributes={"type": _OTHER_PROGRAM},
    strict=False,
)

COLLISION = make_schema(
    "origin geometry",
    unsupported={"verbose": "it does not define a shape", "contact_coefficients": _NO_DYNAMICS},
    attributes="name",
    ignored_attributes={"group": "all surfaces are hit"},
    strict=False,
)

SHAPES: Mapping[str, Mapping[str, str]] = {
    "box": {"size": "size"},
    "sphere": {"radius": "radius"},
    "cylinder": {"radius": "radius", "length": "length"},
    "capsule": {"radius": "radius", "length": "length"},
    "mesh": {"filename": "uri", "scale": "scale"},
}
"""Shape -> its attributes in URDF, and their elements in SDF."""

GEOMETRY = ElementSchema(children=frozenset(SHAPES), strict=False)

JOINT = make_schema(
    "origin parent child axis limit mimic",
    unsupported=dict.fromkeys(("dynamics", "calibration", "safety_controller"), _NO_JOINT_MOTION),
    attributes="name type",
    strict=False,
)

ORIGIN = make_schema(attributes="xyz rpy", strict=False)
AXIS = make_schema(attributes="xyz", strict=False)
LIMIT = make_schema(attributes="lower upper effort velocity", strict=False)
MIMIC = make_schema(attributes="joint multiplier offset", strict=False)
END = make_schema(attributes="link", strict=False)

JOINT_TYPES = {
    "continuous": "continuous",
    "fixed": "fixed",
    "floating": None,
    "planar": None,
    "prismatic": "prismatic",
    "revolute": "revolute",
}
"""Joint type of URDF -> type of SDF; None if SDF does not have it."""

GAZEBO = make_schema(attributes="reference", strict=False)

_NEVER_LUMPED = "is always the case: joints are kept and links are not merged"

IGNORED_SETTINGS = {
    **dict.fromkeys(("material", "visual", "laserRetro"), _VISUAL_ONLY),
    **dict.fromkeys(
        """
        collision mu mu1 mu2 fdir1 kp kd maxVel minDepth maxContacts selfCollide turnGravityOff dampingFactor gravity
        canonicalBody springReference springStiffness stopCfm stopErp fudgeFactor provideFeedback cfmDamping
        implicitSpringDamper
        """.split(),
        _NO_DYNAMICS,
    ),
    **dict.fromkeys(("preserveFixedJoint", "disableFixedJointLumping"), _NEVER_LUMPED),
}
"""Settings of Gazebo in a `<gazebo>` element, with the reason why they have no effect."""

LINK_PARTS = split_tags("sensor clock navsense:clock")
"""Children of a `<gazebo>` element that are added to a link."""
