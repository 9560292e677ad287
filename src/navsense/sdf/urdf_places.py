"""What may stand where in URDF: as `places` has it for SDF.

Source: the elements of URDF as ROS documents them; the settings of `<gazebo>` are those that libsdformat knows by name.
"""

from __future__ import annotations

from navsense.sdf.context import Place

_LOOKS = "looks only; no sensor of navsense sees it"
_DYNAMICS = "forces and contacts are not simulated; a model moves by its motion"
_ACTUATORS = "actuators and their controllers are not simulated"
_MOTION = "joints do not move yet: they are held at position 0"
_OTHER = "belongs to another program"

ROBOT = Place(
    read=frozenset(("link", "joint", "gazebo", "origin")),
    several=frozenset(("link", "joint", "gazebo")),
    unsupported={
        "material": _LOOKS,
        "transmission": _ACTUATORS,
        "ros2_control": _ACTUATORS,
        "mujoco": _OTHER,
        "sensor": 'sensors are read as Gazebo has them: <gazebo reference="LINK"><sensor>',
    },
    refused={"plugin": "stands in a <gazebo>", "include": "stands in a <gazebo>"},
    attributes=frozenset(("name",)),
    ignored={"version": "every version of URDF is read alike"},
)

LINK = Place(
    read=frozenset(("collision",)),
    several=frozenset(("collision",)),
    unsupported={
        "inertial": _DYNAMICS,
        "contact": _DYNAMICS,
        "self_collision_checking": _DYNAMICS,
        "visual": _LOOKS,
    },
    refused={
        "sensor": 'stands in <gazebo reference="LINK">',
        "origin": "belongs to the joint above the link",
        "pose": "belongs to the joint above the link, as <origin>",
    },
    attributes=frozenset(("name",)),
    ignored={"type": _OTHER},
)

JOINT = Place(
    read=frozenset(("origin", "parent", "child", "axis")),
    unsupported=dict.fromkeys(("limit", "dynamics", "mimic", "calibration", "safety_controller"), _MOTION),
    attributes=frozenset(("name", "type")),
)

ORIGIN = Place(attributes=frozenset(("xyz", "rpy")))
AXIS = Place(attributes=frozenset(("xyz",)))
END = Place(attributes=frozenset(("link",)))

TYPES = {
    "continuous": "continuous",
    "fixed": "fixed",
    "floating": None,
    "planar": None,
    "prismatic": "prismatic",
    "revolute": "revolute",
}
"""Type of joint in URDF: what SDF calls it, None for those that it does not have."""

GAZEBO = Place(attributes=frozenset(("reference",)))

_LUMPED = "is always so: no joint is taken out, and no two links are made one"

SETTINGS = {
    **dict.fromkeys(("material", "visual", "laserRetro"), _LOOKS),
    **dict.fromkeys(
        """
        collision mu mu1 mu2 fdir1 kp kd maxVel minDepth maxContacts selfCollide turnGravityOff dampingFactor gravity
        canonicalBody springReference springStiffness stopCfm stopErp fudgeFactor provideFeedback cfmDamping
        implicitSpringDamper
        """.split(),
        _DYNAMICS,
    ),
    **dict.fromkeys(("preserveFixedJoint", "disableFixedJointLumping"), _LUMPED),
}
"""Settings of Gazebo in a `<gazebo>` element, with the reason why they have no effect."""

LINK_PARTS = frozenset(("sensor", "clock", "navsense:clock"))
"""What a `<gazebo>` element may bring into a link that is read."""
