"""Calibration with known attitude: other optimisers, published values, and conditions that must be errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense.calibration import Calibration, KnownAttitudeCalibrator, _attitude_fit
from navsense.calibration._attitude_fit import (
    PRIOR_READINGS,
    GramSums,
    SecondMoments,
    find_initial_fit,
    make_tangent_plane,
)
from navsense.calibration.known_attitude import MotionExcitation, assess_excitation
from navsense.core.errors import CalibrationError
from navsense.core.typing import FloatArray, Quaternions, Vectors

DOWN = np.array([0.42, 0.03, -0.907])
DOWN /= np.linalg.norm(DOWN)
IRON = np.array([[1.1, 0.05, -0.03], [0.04, 0.95, 0.02], [-0.06, 0.07, 0.9]])
IRON /= np.cbrt(np.linalg.det(IRON))
NO_IRON = np.eye(3)


class Magnetometer(NamedTuple):
    """Scale and bias (T), soft iron, and the deviation (T) of each axis."""

    scale: float = 5e-5
    bias: tuple[float, float, float] = (1.2e-5, -2e-5, 4e-6)
    iron: FloatArray = IRON
    stddev: tuple[float, float, float] = (2e-7, 3e-7, 5e-7)

    def read(self, turns: Rotation, seed: int = 1) -> Vectors:
        body_field = turns.inv().apply(DOWN)
        noise = np.random.default_rng(seed).normal(size=body_field.shape)
        return np.asarray(self.scale * body_field @ self.iron.T + self.bias + noise * self.stddev)


def to_quaternions(turns: Rotation) -> Quaternions:
    return np.asarray(turns.as_quat(scalar_first=True))


def calibrate(device: Magnetometer, turns: Rotation, measured: Rotation | None = None, **options: Any) -> Calibration:
    return ns.calibration.known_attitude(device.read(turns), to_quaternions(measured or turns), **options)


def read_error(
    device: Magnetometer, turns: Rotation, measured: Rotation | None = None, **options: Any
) -> CalibrationError:
    with pytest.raises(CalibrationError) as raised:
        calibrate(device, turns, measured, **options)
    return raised.value


def make_random_attitudes(count: int, seed: int = 0) -> Rotation:
    return Rotation.random(count, rng=np.random.default_rng(seed))


def make_level_drive(count: int = 3000, tilt: float = 0.0, mounting: Rotation | None = None) -> Rotation:
    """Return five minutes of rotations about the vertical, with pitch and roll up to `tilt` (deg)."""
    t = np.arange(count) / 10.0
    sway = math.radians(tilt) * np.stack((np.sin(0.31 * t), np.sin(0.17 * t + 1.0)), axis=-1)
    turns = Rotation.from_euler("z", (0.5 * t)[:, None]) * Rotation.from_euler("yx", sway)
    return turns if mounting is None else turns * mounting


def add_attitude_errors(turns: Rotation, degrees: float, seed: int = 2) -> Rotation:
    """Return attitudes with errors of this deviation (deg) about each axis."""
    errors = np.random.default_rng(seed).normal(size=(len(turns), 3))
    return turns * Rotation.from_rotvec(math.radians(degrees) * errors)


class ScipyCalibration:
    """The same estimate by SciPy's least squares, with all residuals, twelve parameters and two angles."""

    def __init__(self, field: Vectors, turns: Rotation) -> None:
        self.field, self.matrices = field / 5e-5, turns.as_matrix()

    def compute_residuals(self, p: FloatArray) -> Vectors:
        direction = np.array([math.cos(p[13]) * math.cos(p[12]), math.cos(p[13]) * math.sin(p[12]), math.sin(p[13])])
        body_field = np.array([matrix.T @ direction for matrix in self.matrices])
        return np.asarray(body_field @ p[:9].reshape(3, 3).T + p[9:12] - self.field)

    def compute_noise(self, p: FloatArray) -> FloatArray:
        rows = self.compute_residuals(p)
        return np.asarray(rows.T @ rows / (len(rows) - 14 / 3))

    def solve(self) -> tuple[FloatArray, FloatArray]:
        """Return the parameters and their covariance."""
        p = np.array([*np.eye(3).ravel(), 0.0, 0.0, 0.0, math.atan2(DOWN[1], DOWN[0]), math.asin(DOWN[2])])
        factor = np.eye(3)
        for _ in range(4):
            fit = least_squares(
                lambda x, f=factor: (self.compute_residuals(x) @ f).ravel(), p, "3-point", xtol=1e-14, ftol=1e-14
            )
            p, noise, count = fit.x, self.compute_noise(fit.x), len(self.field)
            shrunk = (count * noise + PRIOR_READINGS * np.eye(3) * np.trace(noise) / 3.0) / (count + PRIOR_READINGS)
            factor = np.linalg.cholesky(np.linalg.inv(shrunk))
        inverse = np.linalg.inv(fit.jac.T @ fit.jac)
        rows = fit.jac.reshape(-1, 3, 14)
        middle = np.einsum("nap,ab,nbq->pq", rows, factor.T @ noise @ factor, rows)
        return p, inverse @ middle @ inverse


def list_parameters(p: FloatArray) -> FloatArray:
    """Return scale, direction, bias (in 5e-5 T) and soft iron from the SciPy parameters."""
    matrix = p[:9].reshape(3, 3)
    scale = np.cbrt(np.linalg.det(matrix))
    direction = (math.cos(p[13]) * math.cos(p[12]), math.cos(p[13]) * math.sin(p[12]), math.sin(p[13]))
    return np.array([scale, *direction, *p[9:12], *(matrix / scale).ravel()])


@pytest.mark.compiled
@pytest.mark.requirement("FAC-6", "FAC-7")
def test_fit_equals_scipys_least_squares() -> None:
    device, turns = Magnetometer(), make_random_attitudes(600)
    found = calibrate(device, turns)
    plain = ScipyCalibration(device.read(turns), turns)
    p, covariance = plain.solve()
    vectors = 600 - 14 / 3
    covariance = covariance * (vectors / (vectors - 4.0))  # the noise is estimated from the residuals
    slopes = np.array([(list_parameters(p + d) - list_parameters(p - d)) / 2e-6 for d in 1e-6 * np.eye(14)]).T
    reference = slopes @ covariance @ slopes.T
    unit = np.array([5e-5, 1.0, 1.0, 1.0, 5e-5, 5e-5, 5e-5, *np.ones(9)])
    assert found.direction is not None
    ours = np.array([found.scale, *found.direction, *found.bias, *found.soft_iron.ravel()]) / unit
    stddev = np.sqrt(np.diag(reference))
    assert (np.abs(ours - list_parameters(p)) < 1e-4 * stddev).all()
    assert np.allclose(found.covariance / np.outer(unit, unit) / np.outer(stddev, stddev),
                       reference / np.outer(stddev, stddev), rtol=0.0, atol=2e-5)  # fmt: skip
    assert found.degrees_of_freedom == 14
    assert np.linalg.matrix_rank(found.covariance / np.outer(unit, unit), tol=1e-6 * stddev.min() ** 2) == 14
    rms = 5e-5 * math.sqrt(np.trace(plain.compute_noise(p)) / 3.0)
    assert math.isclose(found.residual_stddev, rms, rel_tol=1e-9)


@pytest.mark.requirement("FAC-6", "FAC-7")
def test_fit_equals_a_gtsam_graph() -> None:
    """The graph has one factor per reading with MagFactor3's unknowns; its noise is the covariance of the residuals."""
    gtsam = pytest.importorskip("gtsam")
    device, turns = Magnetometer(iron=NO_IRON), make_random_attitudes(250)
    readings = device.read(turns)

    def factor(reading: FloatArray, turn: Any, noise: Any) -> Any:
        def error(this: Any, values: Any, slopes: Any) -> FloatArray:
            scale, sphere, bias = values.atDouble(0), values.atUnit3(1), values.atPoint3(2)
            back = turn.inverse().matrix()
            body_field = back @ sphere.point3()
            if slopes is not None:
                slopes[0], slopes[1], slopes[2] = body_field[:, None], scale * back @ sphere.basis(), np.eye(3)
            return np.asarray(scale * body_field + bias - reading)

        return gtsam.CustomFactor(noise, [0, 1, 2], error)

    values = gtsam.Values()
    values.insert(0, 1.0)
    values.insert(1, gtsam.Unit3(np.array([0.0, 0.3, -0.7])))
    values.insert(2, np.zeros(3))
    weight, rotations = 1e-4 * np.eye(3), [gtsam.Rot3(matrix) for matrix in turns.as_matrix()]
    for _ in range(4):
        noise = gtsam.noiseModel.Gaussian.Covariance(weight)
        graph = gtsam.NonlinearFactorGraph()
        for reading, turn in zip(readings / 5e-5, rotations, strict=True):
            graph.add(factor(reading, turn, noise))
        parameters = gtsam.LevenbergMarquardtParams()
        parameters.setRelativeErrorTol(1e-15)
        parameters.setAbsoluteErrorTol(1e-15)
        values = gtsam.LevenbergMarquardtOptimizer(graph, values, parameters).optimize()
        rows = np.array([graph.at(i).unwhitenedError(values) for i in range(graph.size())])
        weight = rows.T @ rows / (len(rows) - 2.0)
        weight = (len(rows) * weight + PRIOR_READINGS * np.eye(3) * np.trace(weight) / 3.0) / (
            len(rows) + PRIOR_READINGS
        )
    found = calibrate(device, turns, soft_iron=False)
    stddev = found.stddev
    assert found.direction is not None
    assert abs(found.scale - 5e-5 * values.atDouble(0)) < 1e-4 * stddev["scale"]
    for axis, name in enumerate("xyz"):
        assert abs(found.bias[axis] - 5e-5 * values.atPoint3(2)[axis]) < 1e-4 * stddev[f"bias.{name}"]
        assert abs(found.direction[axis] - values.atUnit3(1).point3()[axis]) < 1e-4 * stddev[f"direction.{name}"]
    assert np.array_equal(found.soft_iron, np.eye(3))
    assert found.names == ("scale", "direction.x", "direction.y", "direction.z", "bias.x", "bias.y", "bias.z")


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_parameters_of_the_magyc_simulation_are_recovered() -> None:
    """Field, iron and noise (mG) of MAGYC's simulation: arXiv 2412.09690; 6000 readings at 10 Hz, 10 mG."""
    iron = np.array([[1.10, 0.10, 0.04], [0.10, 0.88, 0.02], [0.04, 0.02, 1.22]])
    field_w, hard = np.array([227.0, 52.0, 412.0]), np.array([20.0, 120.0, 90.0])
    size, strength = np.cbrt(np.linalg.det(iron)), float(np.linalg.norm(field_w))
    rng, turns = np.random.default_rng(3), make_level_drive(6000, tilt=60.0)
    readings = turns.inv().apply(field_w) @ iron.T + hard + rng.normal(scale=10.0, size=(6000, 3))
    found = ns.calibration.known_attitude(readings, to_quaternions(turns), unit="mG")
    assert found.verdict.ok
    assert found.direction is not None
    # 16 parameters within 5.4 deviations each: a false-alarm rate of 1e-6.
    for value, true, name in [
        (found.scale, size * strength, "scale"),
        *((found.direction[k], field_w[k] / strength, f"direction.{'xyz'[k]}") for k in range(3)),
        *((found.bias[k], hard[k], f"bias.{'xyz'[k]}") for k in range(3)),
        *((found.soft_iron[j, k], iron[j, k] / size, f"soft_iron.{'xyz'[j]}{'xyz'[k]}") for j in range(3)
          for k in range(3)),
    ]:  # fmt: skip
        assert abs(value - true) < 5.4 * found.stddev[name], name
    assert max(found.stddev[f"bias.{axis}"] for axis in "xyz") < 0.3  # mG; at least 10 mG / sqrt(6000) = 0.13
    assert np.linalg.norm(found.bias - hard) < 1.5
    truth = ns.calibration.known_attitude(readings, to_quaternions(turns), unit="mG", strength=strength)
    lengths = np.linalg.norm(truth.apply(readings), axis=1)
    assert abs(lengths.mean() / strength - 1.0) < 0.002


@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("direction", [DOWN, -DOWN, np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])])
def test_fit_without_noise_is_exact(soft: bool, known: bool, direction: FloatArray) -> None:
    turns = make_random_attitudes(300)
    iron = IRON if soft else NO_IRON
    readings = 5e-5 * turns.inv().apply(direction) @ iron.T + (3e-4, -2e-4, 1e-4)
    found = ns.calibration.known_attitude(
        readings, to_quaternions(turns), soft_iron=soft, direction=2.0 * direction if known else None
    )
    assert math.isclose(found.scale, 5e-5, rel_tol=1e-9)
    assert np.allclose(found.bias, (3e-4, -2e-4, 1e-4), rtol=0.0, atol=5e-14)
    assert np.allclose(found.soft_iron, iron, rtol=0.0, atol=1e-9)
    assert np.allclose(found.direction, direction, rtol=0.0, atol=1e-9)
    assert math.isclose(float(np.linalg.det(found.soft_iron)), 1.0, rel_tol=1e-12)
    assert found.verdict.ok


def test_mounting_rotation_is_part_of_the_soft_iron() -> None:
    """The sensor axes are front-right-down, the attitude is front-left-up: half a turn about x."""
    half = np.diag([1.0, -1.0, -1.0])
    found = calibrate(Magnetometer(iron=half), make_random_attitudes(500))
    assert np.allclose(found.soft_iron, half, atol=0.01, rtol=0.0)
    assert np.allclose(found.direction, DOWN, atol=0.01, rtol=0.0)
    assert "turns the field by 180 deg" in found.verdict.reasons[0]
    slight = Rotation.from_euler("xyz", [5.0, -8.0, 12.0], degrees=True).as_matrix()
    assert calibrate(Magnetometer(iron=slight @ IRON), make_random_attitudes(500)).verdict.ok


def test_sums_equal_numpy_and_the_interpreter(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    turns = make_random_attitudes(1500)
    field, attitude = Magnetometer().read(turns), 1.003 * to_quaternions(turns)  # not normalised
    statistics, plain = GramSums(), GramSums()
    statistics.update(field, attitude)
    u = np.hstack((turns.as_matrix().reshape(-1, 9), np.ones((1500, 1)), field - field[0]))
    for level, (length, count) in enumerate([(1, 1500), (8, 184), (64, 16), (512, 0)]):
        assert statistics.blocks(level) == count
        blocks = u[: count * length].reshape(count, length, 13).sum(axis=1)
        reference = blocks.T @ blocks
        bound = 1e-13 * np.sqrt(np.outer(np.diag(reference), np.diag(reference))) + 1e-300
        assert (np.abs(statistics.products(level) - reference) <= bound).all()
    interpret(_attitude_fit._add_readings)(field, attitude, field[0], 0, plain._products, plain._rows)
    assert plain._products.tobytes() == statistics._products.tobytes()
    assert plain._rows.tobytes() == statistics._rows.tobytes()


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_result_does_not_depend_on_block_size() -> None:
    turns = make_random_attitudes(5000)
    field, attitude = Magnetometer().read(turns), to_quaternions(turns)
    full = ns.calibration.known_attitude(field, attitude)
    for cuts in ([1, 2, 3], [63, 64, 65, 4095, 4097], [0, 0, 2500, 5000], list(range(0, 5000, 7))):
        stream = KnownAttitudeCalibrator()
        for rows, turned in zip(np.split(field, cuts), np.split(attitude, cuts), strict=True):
            stream.update(rows, turned)
        assert stream.count == 5000
        found = stream.solve()
        assert found.covariance.tobytes() == full.covariance.tobytes()
        assert str(found) == str(full)


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_calibration_fails_until_the_motion_is_sufficient() -> None:
    flat, tilted = make_level_drive(600), make_level_drive(600, tilt=40.0)
    stream = KnownAttitudeCalibrator()
    stream.update(Magnetometer().read(flat), to_quaternions(flat))
    with pytest.raises(CalibrationError, match="motion"):
        stream.solve()
    with pytest.raises(CalibrationError, match="row 1"):
        stream.update([[1.0, 2.0, 3.0], [math.nan, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]] * 2)
    assert stream.count == 600
    stream.update(Magnetometer().read(tilted, 2), to_quaternions(tilted))
    first = stream.solve()
    assert first.verdict.ok
    stream.update(Magnetometer().read(tilted, 3), to_quaternions(tilted))
    assert stream.solve().stddev["bias.z"] < first.stddev["bias.z"]


MOUNTINGS = [Rotation.identity(), Rotation.from_euler("xyz", [0.3, -0.2, 0.5]), Rotation.from_euler("x", 1.5707963)]


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("error", [0.0, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0])
@pytest.mark.parametrize("mounting", MOUNTINGS, ids=["level", "tilted", "on end"])
@pytest.mark.parametrize("soft", [True, False])
def test_planar_motion_is_never_accepted(error: float, mounting: Rotation, soft: bool) -> None:
    """At any attitude error, the result is an error that names the axis and the missing rotation."""
    turns = make_level_drive(mounting=mounting)
    text = str(
        read_error(
            Magnetometer(iron=IRON if soft else NO_IRON), turns, add_attitude_errors(turns, error), soft_iron=soft
        )
    )
    axis = mounting.inv().apply([0.0, 0.0, 1.0])
    axis = axis if axis[np.argmax(np.abs(axis))] > 0.0 else -axis
    assert text.startswith("motion: rotates about (")
    stated = [float(value) for value in text.partition("(")[2].partition(")")[0].split(",")]
    assert np.allclose(stated, axis, atol=0.02, rtol=0.0)
    assert "30 deg or more" in text
    if error == 0.0:
        exact = read_error(Magnetometer(), turns, attitude_stddev=0.0)
        assert "motion" in exact.what


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("tilt", [10.0, 20.0, 30.0, 60.0])
@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize("stddev", [1e-9, 1e-7, 5e-7])
def test_sufficient_motion_is_always_accepted(tilt: float, soft: bool, stddev: float) -> None:
    """The tilt is at least 10 degrees, the noise at most 1 % of the field, the attitude error at most 0.5 degrees."""
    for seed, mounting in enumerate(MOUNTINGS):
        turns = make_level_drive(tilt=tilt, mounting=mounting)
        device = Magnetometer(iron=IRON if soft else NO_IRON, stddev=(stddev,) * 3)
        for error in (0.0, 0.5):
            arguments = to_quaternions(add_attitude_errors(turns, error, seed))
            found = ns.calibration.known_attitude(device.read(turns, seed), arguments, soft_iron=soft)
            assert found.verdict.max_relative_stddev < 0.02
            assert found.verdict.ok, found.verdict


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("tilt", [2.5, 3.0, 5.0])
def test_poor_motion_is_reported_with_its_reason(tilt: float) -> None:
    found = calibrate(Magnetometer(), make_level_drive(tilt=tilt))
    assert not found.verdict.ok
    assert "attitude errors of 0.5 deg change the result by" in found.verdict.reasons[-1]
    assert "turn the sensor by 30 deg or more about x and y too" in str(found)
    assert calibrate(Magnetometer(), make_level_drive(tilt=5.0), attitude_stddev=1e-4).verdict.ok


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_insufficient_motion_error_names_the_missing_rotation() -> None:
    still = Rotation.from_rotvec(1e-3 * np.random.default_rng(1).normal(size=(2000, 3)))
    error = read_error(Magnetometer(), still)
    assert error.what.startswith("motion: rotates by only 0.08")
    assert error.what.endswith(" deg (rms)")
    assert "two axes" in error.remedy
    pitching = Rotation.from_euler("y", np.linspace(0.0, 60.0, 3000)[:, None])
    error = read_error(Magnetometer(), pitching)
    assert "rotates about (0.00, 1.00, 0.00) in the sensor, and by only 0 deg (rms) about other axes" in error.what
    assert "about x and z too" in error.remedy
    error = read_error(Magnetometer(iron=NO_IRON), make_level_drive(), soft_iron=False)
    assert error.allowed == "cannot determine direction.z, bias.z"


def test_rounding_is_not_counted_as_rotation() -> None:
    """A norm one ulp below 1, as in another version of NumPy, is an angle of 8.5e-7 deg."""
    mean = np.diag((0.5, 1.0 - 2.0**-53, 0.5))
    assert str(MotionExcitation(0.0, np.zeros((3, 1)), mean)).endswith(
        " in the sensor, and by only 0 deg (rms) about other axes"
    )


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_planar_motion_determines_scale_and_bias() -> None:
    """With a known direction, scale and bias are four parameters, which a rotation about the vertical determines."""
    found = calibrate(Magnetometer(iron=NO_IRON), make_level_drive(), soft_iron=False, direction=DOWN)
    assert found.degrees_of_freedom == 4
    assert found.verdict.ok
    assert abs(found.bias[2] - 4e-6) < 5.0 * found.stddev["bias.z"]


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_regularisation_covers_attitude_errors() -> None:
    """With a known direction, attitude errors reduce the scale by the declared share."""
    device, count = Magnetometer(iron=NO_IRON, stddev=(1e-9,) * 3), 200000
    swaying = Rotation.from_euler("xyz", 0.05 * np.sin(np.outer(np.arange(count), (0.011, 0.007, 0.005))))
    statistics = GramSums()
    statistics.update(device.read(swaying), to_quaternions(add_attitude_errors(swaying, 0.5)))
    sums = SecondMoments.from_products(statistics.products(0), statistics.count)
    plain = find_initial_fit(sums, DOWN, soft_iron=False)  # least squares with equal weights
    part = assess_excitation(sums, plain).attitude_error_gain * math.radians(0.5) ** 2
    assert 0.03 < part < 0.1
    # Errors of 0.009 of the field per axis in a motion of 0.05 rms: 5 times 0.009 / 0.05 / sqrt(count) of the scale.
    assert math.isclose(1.0 - plain.scale * sums.size / 5e-5, part, abs_tol=5.0 * 0.009 / 0.05 / math.sqrt(count))


@pytest.mark.requirement("FAC-7")
def test_too_few_readings_are_an_error() -> None:
    turns = make_random_attitudes(40)
    field, attitude = Magnetometer().read(turns), to_quaternions(turns)
    for count in (0, 1, 2, 14):
        with pytest.raises(CalibrationError, match=f"field: {count} reading") as raised:
            ns.calibration.known_attitude(field[:count], attitude[:count])
        assert "at least 15 for 14 parameters" in str(raised.value)
    assert ns.calibration.known_attitude(field[:15], attitude[:15]).degrees_of_freedom == 14


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.compiled
@pytest.mark.requirement("FAC-6", "FAC-7")
@pytest.mark.parametrize("count", [15, 30, 100])
def test_covariance_of_few_readings_matches_their_errors(count: int) -> None:
    """The mean normalised square is 14 although the noise is estimated from the same few residuals.

    Its distribution has a longer tail than chi-squared, so the bound uses the deviation of the mean: 4.9 of them are
    exceeded with probability 1e-6.
    """
    squares = []
    for seed in range(300):
        device, turns = Magnetometer(), make_random_attitudes(count, seed)
        found = ns.calibration.known_attitude(device.read(turns, seed), to_quaternions(turns), attitude_stddev=0.0)
        true = {"scale": device.scale}
        for i, axis in enumerate("xyz"):
            true[f"bias.{axis}"], true[f"direction.{axis}"] = device.bias[i], float(DOWN[i])
            true |= {f"soft_iron.{axis}{other}": float(IRON[i, j]) for j, other in enumerate("xyz")}
        numbers = {"scale": found.scale}
        for i, axis in enumerate("xyz"):
            assert found.direction is not None
            numbers[f"bias.{axis}"], numbers[f"direction.{axis}"] = float(found.bias[i]), float(found.direction[i])
            numbers |= {f"soft_iron.{axis}{other}": float(found.soft_iron[i, j]) for j, other in enumerate("xyz")}
        unit = np.array([5e-5 if name.startswith(("scale", "bias")) else 1.0 for name in found.names])
        error = np.array([numbers[name] - true[name] for name in found.names]) / unit
        values, axes = np.linalg.eigh(found.covariance / np.outer(unit, unit))
        squares.append(float(((axes[:, -14:].T @ error) ** 2 / values[-14:]).sum()))
    spread = np.std(squares) / math.sqrt(len(squares))
    assert abs(np.mean(squares) - 14.0) < 4.9 * spread, (np.mean(squares), spread)


def test_constant_or_saturated_readings_are_an_error() -> None:
    turns = make_random_attitudes(4000)
    attitude = to_quaternions(turns)
    with pytest.raises(CalibrationError, match="all readings are equal"):
        ns.calibration.known_attitude(np.tile([1e-5, 2e-5, 3e-5], (4000, 1)), attitude)
    clipped = np.minimum(Magnetometer().read(turns), 4e-5)
    with pytest.raises(CalibrationError, match=r"field along x: [0-9]+ readings are equal to 4e-05"):
        ns.calibration.known_attitude(clipped, attitude)


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize(("factor", "unit"), [(1e9, "nT"), (1e4, "G"), (1e6, "uT"), (1e3, "mT"), (1e7, "mG")])
def test_wrong_unit_is_named_and_correct_unit_is_accepted(factor: float, unit: str) -> None:
    turns = make_random_attitudes(500)
    field = factor * Magnetometer().read(turns)
    with pytest.raises(CalibrationError, match=f'unit="{unit}"'):
        ns.calibration.known_attitude(field, to_quaternions(turns))
    found = ns.calibration.known_attitude(field, to_quaternions(turns), unit=unit, strength=factor * 4.8e-5)
    assert math.isclose(found.scale, factor * 5e-5, rel_tol=0.01)
    assert found.unit == unit
    assert math.isclose(float(np.linalg.norm(found.apply(field), axis=1).mean()), factor * 4.8e-5, rel_tol=0.01)
    for unchecked in (1e30, 1e-30):
        assert ns.calibration.known_attitude(unchecked * field, to_quaternions(turns), unit=None).verdict.ok


def test_readings_whose_squares_overflow_are_an_error() -> None:
    turns = make_random_attitudes(500)
    for size in (1e200, 1e-200):
        with pytest.raises(CalibrationError, match="cannot be squared"):
            ns.calibration.known_attitude(size * Magnetometer().read(turns), to_quaternions(turns), unit=None)


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_attitude_in_another_convention_is_detected() -> None:
    turns = make_level_drive(tilt=60.0)
    field = Magnetometer().read(turns)
    for arguments, meaning in [
        (turns.as_quat(), "x y z w, from sensor to world"),
        (to_quaternions(turns.inv()), "w x y z, but from world to sensor"),
    ]:
        with pytest.raises(CalibrationError, match="rotation_ws: fits the readings as") as raised:
            ns.calibration.known_attitude(field, arguments)
        assert meaning in str(raised.value)
    both = ns.calibration.known_attitude(field, turns.inv().as_quat())
    assert "turns the field by" in both.verdict.reasons[0]
    assert "w x y z" in both.verdict.reasons[0]


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_attitudes_of_another_recording_are_detected() -> None:
    error = read_error(Magnetometer(), make_random_attitudes(3000, 1), make_random_attitudes(3000, 2))
    assert "the attitude explains" in str(error)
    assert "same times" in error.remedy


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_delayed_attitude_is_detected() -> None:
    """Delays of 0.1 s and 1 s at 0.5 rad/s make the residuals correlated."""
    turns = make_level_drive(3010, tilt=40.0)
    field, attitude = Magnetometer().read(turns), to_quaternions(turns)
    found = ns.calibration.known_attitude(field[1:], attitude[:-1])
    assert not found.verdict.ok
    assert "a delay between the sensors" in str(found.verdict)
    with pytest.raises(CalibrationError, match=r"residuals: known to .* a delay between the sensors"):
        ns.calibration.known_attitude(field[10:], attitude[:-10])


def test_left_handed_axes_and_inverted_field_are_errors() -> None:
    mirrored = Magnetometer(iron=IRON @ np.diag([1.0, 1.0, -1.0]))
    assert "left-handed" in str(read_error(mirrored, make_random_attitudes(500), direction=DOWN))
    upside = read_error(Magnetometer(iron=NO_IRON), make_random_attitudes(500), direction=-DOWN, soft_iron=False)
    assert "opposite to the direction given" in str(upside)


def test_axis_with_low_sensitivity_is_named() -> None:
    error = read_error(Magnetometer(iron=np.diag([1.0, 1.0, 0.1])), make_random_attitudes(500))
    assert error.what == "soft_iron"
    assert "times as much as another; must be at most 5" in str(error)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"unit": "tesla"}, "unit"),
        ({"strength": -1.0}, "strength"),
        ({"direction": [0.0, 0.0, 0.0]}, "direction"),
        ({"direction": [1.0, 0.0]}, "direction"),
        ({"direction": [1.0, math.nan, 0.0]}, "direction"),
        ({"attitude_stddev": -0.1}, "attitude_stddev"),
        ({"attitude_stddev": math.nan}, "attitude_stddev"),
        ({"attitude_stddev": "x"}, "attitude_stddev"),
        ({"attitude_stddev": None}, "attitude_stddev"),
        ({"attitude_stddev": 5.0}, "attitude_stddev: 5; .* radians"),
        ({"noise_stddev": 0.0}, "noise_stddev"),
        ({"noise_stddev": [1.0]}, "noise_stddev"),
        ({"soft_iron": "no"}, "soft_iron"),
        ({"unit": []}, "unit"),
    ],
)
def test_invalid_options_are_errors(options: dict[str, Any], what: str) -> None:
    with pytest.raises(CalibrationError, match=what):
        KnownAttitudeCalibrator(**options)


def make_handheld_motion(count: int = 3000, seed: int = 0) -> Rotation:
    """Return a handheld sensor with figures of eight in all directions."""
    t, phase = np.linspace(0.0, 8.0 * math.pi, count), np.random.default_rng(seed).uniform(0.0, 6.0, 3)
    angles = (1.1 * np.sin(t / 3.0 + phase[2]) + t / 4.0, 0.9 * np.sin(2.0 * t + phase[1]), 1.2 * np.sin(t + phase[0]))
    return Rotation.from_euler("ZYX", np.stack(angles, axis=-1))


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("value", [0.0, 1e-5])
def test_dropouts_are_named(seed: int, value: float) -> None:
    """One reading in a hundred is zero or another plausible number."""
    turns = make_handheld_motion(seed=seed)
    field = Magnetometer().read(turns, seed)
    lost = np.random.default_rng(seed).random(3000) < 0.01
    field[lost] = value
    text = str(ns.calibration.known_attitude(field, to_quaternions(turns)).verdict)
    assert f"of them at exactly ({value:g}, {value:g}, {value:g})" in text
    if not value:
        assert f"{lost.sum()} readings are exactly (0, 0, 0), row {np.flatnonzero(lost)[0]} first" in text
    left = ns.calibration.known_attitude(field[~lost], to_quaternions(turns[~lost]))
    assert left.verdict.ok
    field[np.random.default_rng(seed).random(3000) < 0.1] = value
    with pytest.raises(CalibrationError, match="a tenth of the readings makes"):
        ns.calibration.known_attitude(field, to_quaternions(turns))


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("seed", range(4))
def test_outliers_and_excess_noise_are_named(seed: int) -> None:
    turns, rng = make_handheld_motion(seed=seed), np.random.default_rng(seed)
    field = Magnetometer(stddev=(1e-7,) * 3).read(turns, seed)
    assert ns.calibration.known_attitude(field, to_quaternions(turns), noise_stddev=1e-7).verdict.ok
    some = rng.random(3000) < 0.01
    field[some] += 3e-5 * rng.normal(size=(some.sum(), 3))
    verdict = ns.calibration.known_attitude(field, to_quaternions(turns), noise_stddev=1e-7).verdict
    assert "lie far from the fit" in verdict.reasons[0]
    assert "T are declared" in verdict.reasons[1]


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("limit", [2e-5, 4e-5, 5e-5])
def test_saturation_without_a_single_limit_is_detected(limit: float) -> None:
    """Noise after the limit blurs it, or readings are rotated after it: the residuals depend on position."""
    turns, rng = make_random_attitudes(3000), np.random.default_rng(1)
    clipped = np.clip(Magnetometer(stddev=(1e-7,) * 3).read(turns), -1.0, [limit, 1.0, 1.0])
    turn = Rotation.from_euler("xyz", (0.1, 0.05, 0.2)).as_matrix()
    for field in (clipped + 2e-8 * rng.normal(size=(3000, 3)), clipped @ turn.T):
        found = ns.calibration.known_attitude(field, to_quaternions(turns))
        assert "depend on its direction in the sensor" in str(found.verdict)


def make_resting_attitudes(count: int) -> Rotation:
    return Rotation.concatenate(
        [Rotation.from_euler("xyz", np.tile([0.1, 0.2, 0.3], (count - 750, 1))), make_handheld_motion(750)]
    )


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("step", [0.0, 1.5e-7, 1e-6])
@pytest.mark.parametrize("degrees", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("motion", ["any", "hand", "sway", "rest", "six"])
def test_plausible_readings_have_no_reason(step: float, degrees: float, motion: str) -> None:
    """Quantisation, unequal noise, attitude errors and long rests are neither outliers nor saturation."""
    six = Rotation.from_euler(
        "xyz", [[0, 0, 0], [180, 0, 0], [90, 0, 0], [-90, 0, 0], [0, 90, 0], [0, -90, 0]], degrees=True
    )
    turns = {
        "any": make_random_attitudes(3000),
        "hand": make_handheld_motion(),
        "sway": make_level_drive(tilt=25.0),
        "rest": make_resting_attitudes(3000),
        "six": six[np.repeat(np.arange(6), 500)],
    }[motion]
    soft = motion != "six"  # six positions do not determine it
    for stddev in ((2e-7,) * 3, (1e-7, 1e-7, 1e-6), (5e-7, 5e-7, 1e-7)):
        field = Magnetometer(iron=IRON if soft else NO_IRON, stddev=stddev).read(turns)
        field = np.round(field / step) * step if step else field
        found = ns.calibration.known_attitude(
            field, to_quaternions(add_attitude_errors(turns, degrees)), soft_iron=soft
        )
        for accused in ("far off", "a tenth of", "depend on its direction"):
            assert accused not in str(found.verdict), found.verdict


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_undeclared_attitude_errors_are_a_reason() -> None:
    """Attitude errors of 0.5 degrees on a level drive cost some percent. Without errors there is no reason."""
    turns = make_level_drive(tilt=4.0)
    for stddev in ((2e-7,) * 3, (1e-7, 1e-7, 4e-7), (4e-7, 1e-7, 1e-7)):
        device = Magnetometer(iron=NO_IRON, stddev=stddev)
        assert calibrate(device, turns, soft_iron=False, attitude_stddev=0.0).verdict.ok
        wrong = calibrate(device, turns, add_attitude_errors(turns, 0.5), soft_iron=False, attitude_stddev=0.0)
        assert "attitude errors of 0." in wrong.verdict.reasons[-1]


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("stddev", [0.0, math.radians(0.5)])
def test_planar_motion_without_noise_is_not_reported_as_wrong_attitude(stddev: float) -> None:
    error = read_error(Magnetometer(stddev=(0.0,) * 3), make_level_drive(), attitude_stddev=stddev)
    assert error.what.startswith("motion: rotates about (0.00, 0.00, 1.00)")


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_large_residuals_under_sufficient_motion_do_not_request_motion() -> None:
    loud = read_error(Magnetometer(stddev=(2.5e-5,) * 3), make_random_attitudes(3000))
    assert "% of the field per axis" in str(loud)
    assert "turn the sensor" not in str(loud)
    turns = make_random_attitudes(3000)
    field = Magnetometer().read(turns)
    for axes in ([0, 1, 1], [0, 0, 2]):
        with pytest.raises(CalibrationError, match="check that all three axes work"):
            ns.calibration.known_attitude(field[:, axes], to_quaternions(turns))


def test_too_large_attitude_deviation_is_reported() -> None:
    error = read_error(Magnetometer(), make_random_attitudes(500), attitude_stddev=0.4)
    assert "or check attitude_stddev, 0.4 rad are 22.9 deg" in error.remedy
    assert "attitude_stddev" not in read_error(Magnetometer(), make_level_drive()).remedy


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_exchanged_axes_differ_from_a_mounting() -> None:
    turns = make_random_attitudes(1000)
    field, attitude = Magnetometer().read(turns), to_quaternions(turns)
    for matrix, meaning in [
        (np.diag([1.0, 1.0, -1.0]), "the sign of z is wrong"),
        (np.diag([-1.0, 1.0, 1.0]), "the sign of x is wrong"),
        (np.eye(3)[[1, 0, 2]], "x and y are exchanged"),
        (np.eye(3)[[0, 2, 1]], "y and z are exchanged"),
    ]:
        text = str(ns.calibration.known_attitude(field @ matrix.T, attitude).verdict)
        assert f"or {meaning}, if direction" in text
        with pytest.raises(CalibrationError, match=f"left-handed: {meaning}"):
            ns.calibration.known_attitude(field @ matrix.T, attitude, direction=DOWN)
    quarter = ns.calibration.known_attitude(field @ np.eye(3)[[1, 2, 0]].T, attitude)
    assert "turns the field by 119 deg" in quarter.verdict.reasons[0]
    assert "wrong" not in quarter.verdict.reasons[0]


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("soft", [True, False])
def test_direction_that_contradicts_the_readings_is_an_error(soft: bool) -> None:
    device, turns = Magnetometer(iron=IRON if soft else NO_IRON), make_random_attitudes(1000)
    assert calibrate(device, turns, direction=DOWN, soft_iron=soft).verdict.ok
    text = str(read_error(device, turns, direction=-DOWN, soft_iron=soft))
    assert "opposite to the direction given" in text
    assert "positive in north-east-down" in text
    other = read_error(device, turns, direction=DOWN[[1, 0, 2]] * (1.0, 1.0, -1.0), soft_iron=soft)
    assert other.what == "direction"
    assert "different world frames, east-north-up and north-east-down" in other.remedy
    for degrees in (10.0, 90.0):
        wrong = Rotation.from_rotvec(math.radians(degrees) * make_tangent_plane(DOWN)[:, 0]).apply(DOWN)
        error = read_error(device, turns, direction=wrong, soft_iron=soft)
        shown = float(str(error.value).partition(" differs by ")[2].split()[0])
        assert abs(shown - degrees) < 0.5
        assert "declination" in error.remedy
    tiny = calibrate(device, turns, direction=1e-300 * DOWN, soft_iron=soft)
    assert np.allclose(tiny.direction, DOWN, rtol=1e-12, atol=0.0)


@pytest.mark.requirement("FAC-7")
def test_known_strength_is_compared_without_a_unit() -> None:
    turns = make_random_attitudes(500)
    field = 1e9 * Magnetometer().read(turns)
    with pytest.raises(CalibrationError, match=r"within a factor of 3 of the known strength, 4\.8e-05"):
        ns.calibration.known_attitude(field, to_quaternions(turns), unit=None, strength=4.8e-5)


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_sentinel_value_is_named_with_its_row() -> None:
    turns = make_random_attitudes(500)
    for value in (-32768.0, 1e30, 1e100):
        field = Magnetometer().read(turns)
        field[7] = value
        with pytest.raises(CalibrationError, match="field of row 7 along x") as raised:
            ns.calibration.known_attitude(field, to_quaternions(turns))
        assert "leave out this reading" in raised.value.remedy


def make_degenerate_input(rng: np.random.Generator) -> tuple[Vectors, Quaternions]:
    """Return some hundred rows of readings and attitudes, each of one of several degenerate kinds."""
    count = int(rng.integers(15, 200))
    some, line = rng.normal(size=(count, 3)), rng.normal(size=(count, 1)) * rng.normal(size=3)
    few = np.repeat(rng.normal(size=(2, 3)), count, axis=0)[:count]
    field = [some, line, np.round(some), few + 1e-9 * some, np.cumsum(some, axis=0), 1e12 + some, some**9][
        int(rng.integers(7))
    ]
    fixed = np.tile(rng.normal(size=4), (count, 1))
    turns = [rng.normal(size=(count, 4)), fixed, fixed + 1e-7 * rng.normal(size=(count, 4))][int(rng.integers(3))]
    turns = np.where(rng.random((count, 1)) < 0.3, turns[0], turns)
    return 10.0 ** rng.uniform(-12, 9) * field, turns / np.linalg.norm(turns, axis=1)[:, None]


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_degenerate_input_gives_an_error_or_finite_numbers(soft: bool, known: bool) -> None:
    rng, arguments = np.random.default_rng(9), 0
    for _ in range(30):
        field, turns = make_degenerate_input(rng)
        try:
            found = ns.calibration.known_attitude(
                field, turns, unit=None, soft_iron=soft, direction=DOWN if known else None
            )
        except CalibrationError as error:
            assert error.remedy  # noqa: PT017
            continue
        arguments += 1
        assert np.isfinite(found.covariance).all()
        assert not found.verdict.ok
    assert arguments < 4


def test_tangent_plane_is_orthonormal() -> None:
    for direction in make_random_attitudes(50).apply([0.0, 0.0, 1.0]):
        sides = make_tangent_plane(direction)
        assert np.allclose(sides.T @ sides, np.eye(2), atol=1e-15, rtol=0.0)
        assert np.allclose(sides.T @ direction, 0.0, atol=1e-15, rtol=0.0)
