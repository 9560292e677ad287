"""The example of GTSAM's page on its MagFactor family, with navsense's factor: it prints the numbers of the page.

Only the class differs. Names and order of the arguments are GTSAM's, and rotation, direction and noise model are GTSAM
objects (`pip install 'navsense[gtsam]'`). The factor also accepts arrays and a sigma, as the last lines show. The page
defines the error as measured - predicted, but its numbers, as here, are predicted - measured.

python examples/mag_factor.py
"""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np
import outputs
from numpy.typing import NDArray

import navsense as ns
from navsense.factors import direction

KEY = 8214565720323784704
"""gtsam.symbol("r", 0), as a number."""


def run_with_gtsam() -> None:
    """Create the factor of the page and print its error at the truth and at an offset of 5 degrees."""
    import gtsam

    # Field strength, declination and inclination at a position and date from NOAA: 4.94 degrees west, 62.78 down.
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


def run_without_gtsam() -> None:
    """Create the same factor from arrays, and evaluate its Jacobian."""
    n_direction = direction(math.radians(-4.94), math.radians(62.78), frame="NED")
    truth, test = (make_yaw_rotation(math.radians(degrees)) for degrees in (30.0, 25.0))
    measured = truth.T @ (48343.4 * n_direction) + np.array([10.0, -5.0, 2.0])
    mag_factor = ns.factors.MagFactor1(KEY, measured, 48343.4, n_direction, [10.0, -5.0, 2.0], 50.0)
    jacobian = np.zeros((3, 3))
    error = mag_factor.evaluateError(test, jacobian)
    print("Without gtsam:", error)
    step = 1e-6
    moved = mag_factor.evaluateError(test @ make_yaw_rotation(step)) - mag_factor.evaluateError(
        test @ make_yaw_rotation(-step)
    )
    assert np.allclose(jacobian[:, 2], moved / (2.0 * step), rtol=0.0, atol=1e-3)
    assert np.allclose(error, [1034.79105955, 1628.05638524, 0.0], rtol=0.0, atol=1e-8)
    offsets = np.linspace(-20.0, 20.0, 81)
    errors = np.array([mag_factor.evaluateError(truth @ make_yaw_rotation(math.radians(yaw))) for yaw in offsets])

    def draw(axes: Any) -> None:
        for name, column in zip("xyz", errors.T, strict=True):
            axes.plot(offsets, column, label=name)
        outputs.label(axes, "Error of MagFactor1 by the yaw of the estimate", "yaw minus true yaw (°)", "error (nT)")

    columns = {f"error {name} (nT)": column for name, column in zip("xyz", errors.T, strict=True)}
    outputs.write("mag_factor", {"yaw offset (deg)": offsets, **columns}, draw)


def make_yaw_rotation(angle: float) -> NDArray[np.float64]:
    """Return the rotation (3, 3) about z by an angle (rad)."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def main() -> None:
    """Run it with GTSAM, if it is installed, and without."""
    if importlib.util.find_spec("gtsam"):
        run_with_gtsam()
    else:
        print("gtsam is not installed (pip install 'navsense[gtsam]'): only the part without it runs")
    run_without_gtsam()


if __name__ == "__main__":
    main()
