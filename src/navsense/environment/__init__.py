"""The fields around the robot: functions of position and time."""

from navsense.environment import current
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.base import Environment, FieldSum, UniformField, VectorField
from navsense.environment.geoid import Geoid
from navsense.environment.gravity import NormalGravity
from navsense.environment.magnetic import Anomaly, Dipole, WorldMagneticModel
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.environment.signal import Signal
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.mesh import Mesh
from navsense.environment.terrain.primitives import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water

__all__ = [
    "Anomaly",
    "Atmosphere",
    "Body",
    "Box",
    "Capsule",
    "ConstantDensity",
    "Cylinder",
    "Dipole",
    "Ellipsoid",
    "Environment",
    "FieldSum",
    "Geoid",
    "Heightmap",
    "Mesh",
    "NormalGravity",
    "Plane",
    "Saunders",
    "Scene",
    "Signal",
    "Sphere",
    "Unesco",
    "UniformField",
    "VectorField",
    "Water",
    "WorldMagneticModel",
    "current",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
