"""What may stand where in URDF: as `places` has it for SDF.

Source: the elements of URDF as ROS documents them; the settings of `<gazebo>` are those that libsdformat knows by name.
"""

from __future__ import annotations

from navsense.sdf.context import ElementSchema

_VISUAL_ONLY = "looks only; no sensor of navsense sees it"
_NO_DYNAMICS = "forces and contacts are not simulated; a model moves by its motion"
_NO_ACTUATORS = "actuators and their controllers are not simulated"
_NO_JOINT_MOTION = "joints do not move yet: they are held at position 0"
_OTHER_PROGRAM = "belongs to another program"

ROBOT = ElementSchema(
    children=frozenset(("link", "joint", "gazebo", "origin")),
    repeatable=frozenset(("link", "joint", "gazebo")),
    unsupported={
        "material": _VISUAL_ONLY,
        "transmission": _NO_ACTUATORS,
        "ros2_control": _NO_ACTUATORS,
        "mujoco": _OTHER_PROGRAM,
        "sensor": 'sensors are read as Gazebo has them: <gazebo reference="LINK"><sensor>',
    },
    forbidden={"plugin": "stands in a <gazebo>", "include": "stands in a <gazebo>"},
    attributes=frozenset(("name",)),
    ignored_attributes={"version": "every version of URDF is read alike"},
)

LINK = ElementSchema(
    children=frozenset(("collision",)),
    repeatable=frozenset(("collision",)),
    unsupported={
        "inertial": _NO_DYNAMICS,
        "contact": _NO_DYNAMICS,
        "self_collision_checking": _NO_DYNAMICS,
        "visual": _VISUAL_ONLY,
    },
    forbidden={
        "sensor": 'stands in <gazebo reference="LINK">',
        "origin": "belongs to the joint above the link",
        "pose": "belongs to the joint above the link, as <origin>",
    },
    attributes=frozenset(("name",)),
    ignored_attributes={"type": _OTHER_PROGRAM},
)

JOINT = ElementSchema(
    children=frozenset(("origin", "parent", "child", "axis")),
    unsupported=dict.fromkeys(("limit", "dynamics", "mimic", "calibration", "safety_controller"), _NO_JOINT_MOTION),
    attributes=frozenset(("name", "type")),
)

ORIGIN = ElementSchema(attributes=frozenset(("xyz", "rpy")))
AXIS = ElementSchema(attributes=frozenset(("xyz",)))
END = ElementSchema(attributes=frozenset(("link",)))

JOINT_TYPES = {
    "continuous": "continuous",
    "fixed": "fixed",
    "floating": None,
    "planar": None,
    "prismatic": "prismatic",
    "revolute": "revolute",
}
"""Type of joint in URDF: what SDF calls it, None for those that it does not have."""

GAZEBO = ElementSchema(attributes=frozenset(("reference",)))

_NEVER_LUMPED = "is always so: no joint is taken out, and no two links are made one"

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

LINK_PARTS = frozenset(("sensor", "clock", "navsense:clock"))
"""What a `<gazebo>` element may bring into a link that is read."""
