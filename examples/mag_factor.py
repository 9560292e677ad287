"""The example of GTSAM's page on its MagFactor family, with this package's factor: it prints that page's numbers.

Only the class is another one; the names and the order of its arguments are GTSAM's. The rotation, the direction and the
noise model are GTSAM's (`pip install 'navsense[gtsam]'`); the factor itself takes arrays and a sigma just as well, as
its last lines show. The page writes the error as measured - predicted; the numbers that it prints, here as there, are
predicted - measured.

python examples/mag_factor.py
"""

from __future__ import annotations

import importlib.util
import math

import numpy as np

import navsense as ns
from navsense.core.typing import FloatArray
from navsense.factors import direction

KEY = 8214565720323784704
"""gtsam.symbol("r", 0), as a number."""


def with_gtsam() -> None:
    """Make the page's factor and print its error at the truth and 5 degrees beside it."""
    import gtsam

    # Field strength, declination and inclination of a place and date from NOAA: 4.94 degrees west, 62.78 downwards.
    field_strength = 48343.4  # nT
    n_direction = gtsam.Unit3(direction(math.radians(-4.94), math.radians(62.78), frame="NED"))
    mag_bias_body = np.array([10.0, -5.0, 2.0])  # nT

    truth_nRb = gtsam.Rot3.Yaw(math.radians(30.0))  # noqa: N806 - GTSAM's names
    b_measured = truth_nRb.inverse().rotate(field_strength * n_direction.point3()) + mag_bias_body

    noise_model = gtsam.noiseModel.Isotropic.Sigma(3, 50.0)  # nT
    rot_key = gtsam.symbol("r", 0)
    mag_factor = ns.factors.MagFactor1(rot_key, b_measured, field_strength, n_direction, mag_bias_body, noise_model)

    print("Created MagFactor1:")
    mag_factor.print()
    error_at_truth = mag_factor.evaluateError(truth_nRb)
    print("\nError at ground truth rotation (should be zero):", error_at_truth)
    error_at_test = mag_factor.evaluateError(gtsam.Rot3.Yaw(math.radians(25.0)))
    print("Error at test rotation:", error_at_test)
    assert np.abs(error_at_truth).max() < 1e-9
    assert np.allclose(error_at_test, [1034.79105955, 1628.05638524, 0.0], rtol=0.0, atol=1e-8)
    theirs = gtsam.MagFactor1(rot_key, b_measured, field_strength, n_direction, mag_bias_body, noise_model)
    assert np.allclose(theirs.evaluateError(gtsam.Rot3.Yaw(math.radians(25.0))), error_at_test, rtol=0.0, atol=1e-9)


def without_gtsam() -> None:
    """Make the same factor of arrays, and ask for its Jacobian too."""
    n_direction = direction(math.radians(-4.94), math.radians(62.78), frame="NED")
    truth, test = (yaw(math.radians(degrees)) for degrees in (30.0, 25.0))
    measured = truth.T @ (48343.4 * n_direction) + np.array([10.0, -5.0, 2.0])
    mag_factor = ns.factors.MagFactor1(KEY, measured, 48343.4, n_direction, [10.0, -5.0, 2.0], 50.0)
    jacobian = np.zeros((3, 3))
    error = mag_factor.evaluateError(test, jacobian)
    print("Without gtsam:", error)
    step = 1e-6
    moved = mag_factor.evaluateError(test @ yaw(step)) - mag_factor.evaluateError(test @ yaw(-step))
    assert np.allclose(jacobian[:, 2], moved / (2.0 * step), rtol=0.0, atol=1e-3)
    assert np.allclose(error, [1034.79105955, 1628.05638524, 0.0], rtol=0.0, atol=1e-8)


def yaw(angle: float) -> FloatArray:
    """Return the rotation (3, 3) about z by an angle (rad)."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def main() -> None:
    """Run it with GTSAM, where it is installed, and without."""
    if importlib.util.find_spec("gtsam"):
        with_gtsam()
    else:
        print("gtsam is not installed (pip install 'navsense[gtsam]'): only the part without it runs")
    without_gtsam()


if __name__ == "__main__":
    main()
