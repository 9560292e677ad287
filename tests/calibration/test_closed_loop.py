"""A simulated magnetometer is calibrated, and the errors match the reported covariance.

The normalised squared error e' C^-1 e, with e the errors of all parameters and C their covariance, is chi-squared with
the number of free parameters as degrees of freedom. Its sum over the seeds is within the two-sided quantiles of
chi-squared with dof x seeds, at a false-alarm rate of 1e-6.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import binom, chi2

import navsense as ns
from navsense.calibration import Calibration
from navsense.core.pose import Pose, from_rpy
from navsense.core.typing import FloatArray, Quaternions, Vectors
from navsense.environment.base import Environment, UniformField
from navsense.motion.trajectory import waypoints
from navsense.noise.specification import Noise
from navsense.sensors import Magnetometer
from navsense.world import Link, Model, MountedSensor, World

pytestmark = pytest.mark.compiled

FALSE_ALARM = 1e-6
SEEDS = 400
"""At 1e-6, 14 (9) x 400 squares detect a covariance error of 17 (21) percent with probability 0.999."""
RATE = 50.0
DURATION = 40.0
FIELD_W = (2.1e-5, 1.3e-6, -4.4e-5)
HARD_IRON = (1.2e-5, -3e-6, 2.5e-5)
ASYMMETRIC = (1.1, 0.05, -0.03, 0.04, 0.95, 0.02, -0.06, 0.07, 0.9)
SYMMETRIC = (1.1, 0.05, -0.03, 0.05, 0.95, 0.02, -0.03, 0.02, 0.9)
MOUNTING = from_rpy(0.4, -0.3, 1.1)
NAME = "robot::base::mag"


class TrueParameters(NamedTuple):
    """The declared values, as parameters of a calibration."""

    scale: float
    direction: FloatArray
    bias: FloatArray
    soft_iron: FloatArray


def make_true_parameters(iron: tuple[float, ...]) -> TrueParameters:
    matrix, field = np.array(iron).reshape(3, 3), np.array(FIELD_W)
    size, strength = float(np.cbrt(np.linalg.det(matrix))), float(np.linalg.norm(field))
    return TrueParameters(size * strength, field / strength, np.array(HARD_IRON), matrix / size)


def make_tumbling_waypoints() -> tuple[list[float], list[Pose]]:
    """Return 42 s of handheld motion: rotations about the vertical with pitch and roll to both sides."""
    times = np.arange(0.0, DURATION + 2.0, 0.5)
    angles = np.stack((0.9 * np.sin(1.3 * times), 0.7 * np.sin(0.8 * times + 1.0), 0.6 * times), axis=-1)
    return times.tolist(), [Pose((0.0, 0.0, 1.0), from_rpy(*row)) for row in angles.tolist()]


def make_world(spec: Magnetometer) -> World:
    sensor = MountedSensor(NAME, spec, "robot", "robot::base", RATE, Pose((0.1, 0.0, 0.0), MOUNTING), frame="mag")
    model = Model("robot", (Link("robot::base"),), "robot::base", motion=waypoints(*make_tumbling_waypoints()))
    return World("loop", (model,), (sensor,), (), Environment(magnetic_field=UniformField(FIELD_W)))


def make_spec(iron: tuple[float, ...], noises: tuple[Noise, ...]) -> Magnetometer:
    x, y, z = noises
    return Magnetometer(x, y, z, hard_iron=HARD_IRON, soft_iron=iron)


WHITE = Noise(stddev=4e-7)
UNEVEN = (Noise(stddev=3e-7), Noise(stddev=4e-7), Noise(stddev=9e-7))


@cache
def simulate_readings(
    iron: tuple[float, ...], noises: tuple[Noise, ...], seeds: int = SEEDS
) -> tuple[Vectors, Quaternions]:
    """Return readings (seeds, n, 3) T and the sensor's attitudes (n, 4)."""
    run = ns.simulate(make_world(make_spec(iron, noises)), DURATION, seed=11, runs=seeds, truth_rate=RATE)
    attitude = Rotation.from_quat(run.truth["robot::base"].orientation, scalar_first=True)
    mounting = Rotation.from_quat(MOUNTING, scalar_first=True)
    field = run[NAME]["field"]
    return field, np.ascontiguousarray((attitude * mounting).as_quat(scalar_first=True)[: field.shape[-2]])


def compute_errors(found: Calibration, truth: TrueParameters) -> FloatArray:
    """Return the errors of the parameters of a calibration, in the order of their names."""
    differences = {"scale": found.scale - truth.scale}
    for axis, name in enumerate("xyz"):
        differences[f"bias.{name}"] = found.bias[axis] - truth.bias[axis]
        if found.direction is not None:
            differences[f"direction.{name}"] = found.direction[axis] - truth.direction[axis]
        for column, other in enumerate("xyz"):
            differences[f"soft_iron.{name}{other}"] = found.soft_iron[axis, column] - truth.soft_iron[axis, column]
    return np.array([differences[name] for name in found.names])


def compute_normalised_square(found: Calibration, truth: TrueParameters) -> float:
    """Return the normalised squared error over the free combinations."""
    unit = np.array([truth.scale if name.startswith(("scale", "bias")) else 1.0 for name in found.names])
    values, axes = np.linalg.eigh(found.covariance / np.outer(unit, unit))
    free = slice(-found.degrees_of_freedom, None)
    assert abs(values[: -found.degrees_of_freedom]).max(initial=0.0) < 1e-9 * values[-1]
    return float(((axes[:, free].T @ (compute_errors(found, truth) / unit)) ** 2 / values[free]).sum())


def check_chi_squared(squares: list[float], dof: int) -> None:
    """Assert that the squares are chi-squared: their sum, and their number beyond the 99th percentile."""
    count = len(squares)
    low, high = chi2.ppf([FALSE_ALARM / 4.0, 1.0 - FALSE_ALARM / 4.0], dof * count)
    assert low < sum(squares) < high, (sum(squares) / count, dof)
    beyond = sum(square > chi2.ppf(0.99, dof) for square in squares)
    assert beyond <= binom.ppf(1.0 - FALSE_ALARM / 4.0, count, 0.01), beyond
    assert beyond >= binom.ppf(FALSE_ALARM / 4.0, count, 0.01), beyond


@pytest.mark.requirement("FAC-7", "FAC-6")
@pytest.mark.parametrize(("noises", "seeds"), [(UNEVEN, SEEDS), ((WHITE,) * 3, 200)], ids=["uneven", "even"])
def test_known_attitude_calibration_is_within_its_covariance(noises: tuple[Noise, ...], seeds: int) -> None:
    field, attitude = simulate_readings(ASYMMETRIC, noises, seeds)
    found = [ns.calibration.known_attitude(rows, attitude) for rows in field]
    assert all(calibration.degrees_of_freedom == 14 for calibration in found)
    check_chi_squared(
        [compute_normalised_square(calibration, make_true_parameters(ASYMMETRIC)) for calibration in found], 14
    )
    # White residuals are rejected at a rate of 1e-6, so more than once in 400 with probability 8e-8.
    assert sum(not calibration.verdict.whiteness.white for calibration in found) <= 1
    assert sum(not calibration.verdict.ok for calibration in found) <= 1


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize(("iron", "known", "dof"), [(False, False, 6), (True, True, 12), (False, True, 4)])
def test_reduced_calibrations_are_within_their_covariance(iron: bool, known: bool, dof: int) -> None:
    matrix = ASYMMETRIC if iron else (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    field, attitude = simulate_readings(matrix, UNEVEN, 200)
    truth = make_true_parameters(matrix)
    direction = truth.direction if known else None
    found = [ns.calibration.known_attitude(rows, attitude, soft_iron=iron, direction=direction) for rows in field]
    assert all(calibration.degrees_of_freedom == dof for calibration in found)
    check_chi_squared([compute_normalised_square(calibration, truth) for calibration in found], dof)


@pytest.mark.requirement("FAC-7")
def test_calibrated_field_equals_the_true_field_within_its_covariance() -> None:
    """Readings at new attitudes, without noise, are mapped back to the earth's field."""
    field, attitude = simulate_readings(ASYMMETRIC, (WHITE,) * 3, 200)
    truth, turns = make_true_parameters(ASYMMETRIC), Rotation.random(50, rng=np.random.default_rng(5))
    strength = float(np.linalg.norm(FIELD_W))
    field_s = turns.inv().apply(truth.direction)
    fresh = truth.scale * field_s @ truth.soft_iron.T + truth.bias
    for rows in field[:50]:
        found = ns.calibration.known_attitude(rows, attitude, strength=strength)
        off = found.apply(fresh) / strength - field_s
        # The error of a vector is one combination per axis: 50 x 50 x 3 are within 6.6 deviations at 1e-6 in total.
        assert np.linalg.norm(off, axis=1).max() < 6.6 * np.sqrt(3.0) * found.verdict.max_relative_stddev


@pytest.mark.requirement("FAC-7")
def test_drift_is_detected_and_covered_by_the_covariance() -> None:
    """A drift with 1 s correlation time and the size of the noise is never called white, and C covers it."""
    drifting = Noise(stddev=4e-7, dynamic_bias_stddev=4e-7 * np.sqrt(2.0), dynamic_bias_correlation_time=1.0)
    field, attitude = simulate_readings(ASYMMETRIC, (drifting,) * 3, 100)
    found = [ns.calibration.known_attitude(rows, attitude) for rows in field]
    assert not any(calibration.verdict.whiteness.white or calibration.verdict.ok for calibration in found)
    assert all(any("are correlated" in reason for reason in calibration.verdict.reasons) for calibration in found)
    squares = [compute_normalised_square(calibration, make_true_parameters(ASYMMETRIC)) for calibration in found]
    assert np.mean(squares) < 14.0
    plain = [value * one.verdict.whiteness.inflation for value, one in zip(squares, found, strict=True)]
    assert np.mean(plain) > 5.0 * 14.0  # with the uninflated covariance


@pytest.mark.requirement("FAC-7", "FAC-6")
def test_ellipsoid_calibration_is_within_its_covariance() -> None:
    field, _ = simulate_readings(SYMMETRIC, (WHITE,) * 3)
    found = [ns.calibration.ellipsoid(rows) for rows in field]
    assert all(calibration.degrees_of_freedom == 9 for calibration in found)
    assert all(calibration.direction is None for calibration in found)
    check_chi_squared(
        [compute_normalised_square(calibration, make_true_parameters(SYMMETRIC)) for calibration in found], 9
    )
