"""Magnetometer factors with the API of GTSAM's MagFactor family: single factors, large batches, and graph factors.

>>> factor = ns.factors.MagFactor1(0, (30.0, -5.0, 35.0), 50.0, (0.6, 0.0, 0.8), (0, 0, 0))  # GTSAM's arguments
>>> factor.evaluateError((1.0, 0.0, 0.0, 0.0)).round(6) + 0.0  # (3,), predicted - measured
array([0., 5., 5.])

`graph.push_back(factor.to_gtsam())` adds a factor to a graph of GTSAM.
"""

from navsense.factors import blocks
from navsense.factors.arguments import FactorWarning
from navsense.factors.base import Factor
from navsense.factors.geomagnetic import LocalField, declination_inclination, direction, local_field
from navsense.factors.mag_factors import (
    MagFactor,
    MagFactor1,
    MagFactor2,
    MagFactor3,
    MagPoseFactorPose2,
    MagPoseFactorPose3,
)
from navsense.factors.magnitude import MagnitudeFactor, MagnitudePrior, MagnitudeSoftIronFactor
from navsense.factors.reduced import ReducedMagFactor2, ReducedMagFactor3
from navsense.factors.soft_iron import MagSoftIronFactor, MagSoftIronFactor3

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


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
