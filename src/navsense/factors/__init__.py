"""Magnetometer factors: GTSAM's MagFactor family for Python, one at a time, a million at once, or inside a graph."""

from navsense.factors import blocks
from navsense.factors.arguments import FactorWarning
from navsense.factors.base import Factor
from navsense.factors.geomagnetic import LocalField, declination_inclination, direction, local_field
from navsense.factors.iron import MagSoftIronFactor, MagSoftIronFactor3
from navsense.factors.magnitude import MagnitudeFactor, MagnitudePrior, MagnitudeSoftIronFactor
from navsense.factors.poses import MagPoseFactorPose2, MagPoseFactorPose3
from navsense.factors.reduced import ReducedMagFactor2, ReducedMagFactor3
from navsense.factors.rotations import MagFactor, MagFactor1
from navsense.factors.unknowns import MagFactor2, MagFactor3

__all__ = [
    "Factor",
    "FactorWarning",
    "LocalField",
    "MagFactor",
    "MagFactor1",
    "MagFactor2",
    "MagFactor3",
    "MagPoseFactorPose2",
    "MagPoseFactorPose3",
    "MagSoftIronFactor",
    "MagSoftIronFactor3",
    "MagnitudeFactor",
    "MagnitudePrior",
    "MagnitudeSoftIronFactor",
    "ReducedMagFactor2",
    "ReducedMagFactor3",
    "blocks",
    "declination_inclination",
    "direction",
    "local_field",
]
