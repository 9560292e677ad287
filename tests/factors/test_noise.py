"""Noise models: GTSAM's texts, whitening and losses, numbers instead of models, and mounted sensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navsense.core.errors import FactorError
from navsense.core.typing import FloatArray
from navsense.factors import MagFactor1, MagPoseFactorPose2, MagPoseFactorPose3
from navsense.factors.noise import Gaussian, make_noise

gtsam = pytest.importorskip("gtsam")
nm = gtsam.noiseModel
estimators = nm.mEstimator

COVARIANCE = np.array([[4.0, 1.5, -0.7], [1.5, 9.0, 2.0], [-0.7, 2.0, 16.0]])
SIGMAS = np.array([2.0, 3.0, 5.0])
FULL = nm.Gaussian.Covariance(COVARIANCE)
MODELS: dict[str, Any] = {
    "none": None,
    "unit": nm.Unit.Create(3),
    "isotropic": nm.Isotropic.Sigma(3, 50.0),
    "diagonal": nm.Diagonal.Sigmas(SIGMAS),
    "full": FULL,
    "huber": nm.Robust.Create(estimators.Huber(1.345), nm.Isotropic.Sigma(3, 50.0)),
    "cauchy": nm.Robust.Create(estimators.Cauchy(0.8), nm.Diagonal.Sigmas(SIGMAS)),
    "tukey": nm.Robust.Create(estimators.Tukey(46.0), FULL),
    "geman": nm.Robust.Create(estimators.GemanMcClure(1.0), nm.Unit.Create(3)),
    "welsch": nm.Robust.Create(estimators.Welsch(29.0), FULL),
    "dcs": nm.Robust.Create(estimators.DCS(1.0), FULL),
}
FIELD, BIAS, MEASURED = np.array([22.0, -2.0, 44.0]), np.array([1.0, -2.0, 3.0]), np.array([20.0, 6.0, 40.0])
ARGUMENTS = (1, MEASURED, float(np.linalg.norm(FIELD)), gtsam.Unit3(FIELD), BIAS)
ATTITUDE = gtsam.Rot3.RzRyRx(0.3, -0.2, 0.5)


def list_values(value: Any) -> Any:
    values = gtsam.Values()
    values.insert(1, value)
    return values


@pytest.mark.requirement("FAC-2:noise")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_models_equal_gtsam(model: Any) -> None:
    ours, reference = MagFactor1(*ARGUMENTS, model), gtsam.MagFactor1(*ARGUMENTS, model)
    values = list_values(ATTITUDE)
    assert repr(ours) == repr(reference)
    assert ours.error(values) == pytest.approx(reference.error(values), rel=1e-13, abs=0.0)
    assert ours.whitenedError(values) == pytest.approx(reference.whitenedError(values), rel=1e-12, abs=0.0)
    assert ours.noiseModel() is model
    assert ours.linearize(values).equals(reference.linearize(values), 1e-12)
    assert ours.dim() == 3
    assert ours.equals(MagFactor1(*ARGUMENTS, model))


@pytest.mark.requirement("FAC-2:noise")
@pytest.mark.parametrize(
    ("numbers", "model"),
    [
        (50.0, nm.Isotropic.Sigma(3, 50.0)),
        (1.0, nm.Isotropic.Sigma(3, 1.0)),
        (50, nm.Isotropic.Sigma(3, 50.0)),
        (np.float32(0.5), nm.Isotropic.Sigma(3, 0.5)),
        ([2.0, 2.0, 2.0], nm.Diagonal.Sigmas(np.full(3, 2.0))),
        ([1.0, 1.0, 1.0], nm.Diagonal.Sigmas(np.full(3, 1.0))),
        (SIGMAS, nm.Diagonal.Sigmas(SIGMAS)),
        (np.diag(SIGMAS), nm.Gaussian.Covariance(np.diag(SIGMAS))),
        (4.0 * np.eye(3), nm.Gaussian.Covariance(4.0 * np.eye(3))),
        (COVARIANCE, FULL),
    ],
)
def test_numbers_equal_gtsam_models(numbers: Any, model: Any) -> None:
    ours, reference = MagFactor1(*ARGUMENTS, numbers), gtsam.MagFactor1(*ARGUMENTS, model)
    values = list_values(ATTITUDE)
    assert repr(ours) == repr(reference)
    assert ours.error({1: ATTITUDE}) == pytest.approx(reference.error(values), rel=1e-13, abs=0.0)
    assert ours.whitenedError(values) == pytest.approx(reference.whitenedError(values), rel=1e-12, abs=0.0)
    assert ours.linearize(values).equals(reference.linearize(values), 1e-12)
    converted_model = ours.to_gtsam().noiseModel()
    assert type(converted_model) is type(model)
    assert converted_model.equals(model, 1e-12)
    assert ours.noiseModel().dim() == 3
    assert ours.noiseModel().covariance() == pytest.approx(model.covariance(), rel=1e-13, abs=0.0)
    assert ours.noiseModel().sigmas() == pytest.approx(model.sigmas(), rel=1e-13, abs=0.0)
    assert repr(ours.noiseModel()).split() == repr(model).split()
    other = MagFactor1(*ARGUMENTS, model)
    assert ours.equals(other)
    assert other.equals(ours)
    again = ours.cloneWithNewNoiseModel(ours.noiseModel())
    assert again.equals(ours)


@pytest.mark.requirement("FAC-2:noise")
@given(st.lists(st.floats(1e-200, 1e200), min_size=3, max_size=3))
def test_noise_models_of_any_sigmas_print_as_in_gtsam(sigmas: list[float]) -> None:
    """GTSAM prints a sigma with six digits in a new process, and with nine after it has printed a vector."""
    smart = min(sigmas) >= 1e-8
    alike = make_noise(sigmas[0], 3).describe()
    digits = [alike, f"isotropic dim=3 sigma={sigmas[0]:.9g}\n"]
    assert print_with_gtsam(nm.Isotropic.Sigma(3, sigmas[0])) in digits
    reference = print_with_gtsam(nm.Diagonal.Sigmas(np.array(sigmas), smart))
    ours = make_noise(sigmas, 3).describe()
    assert ours == reference or (sigmas == [sigmas[0]] * 3 and ours == alike and (reference in digits or not smart))


def print_with_gtsam(model: Any) -> str:
    return repr(gtsam.MagFactor1(1, BIAS, 1.0, gtsam.Unit3(FIELD), BIAS, model)).partition("}\n")[2]


@pytest.mark.requirement("FAC-2:noise")
def test_large_sigmas_keep_correlations() -> None:
    """GTSAM also drops correlations if R is below 1e-9, so for sigmas above 1e9."""
    root = np.linalg.inv(np.linalg.cholesky(1e24 * COVARIANCE)).T
    assert isinstance(nm.Gaussian.SqrtInformation(np.triu(root)), nm.Diagonal)  # GTSAM's behaviour
    assert not isinstance(MagFactor1(*ARGUMENTS, 1e24 * COVARIANCE).to_gtsam().noiseModel(), nm.Diagonal)


@pytest.mark.requirement("FAC-2:noise")
def test_small_sigmas_keep_correlations_and_are_not_constraints() -> None:
    """In tesla, sigmas are below 1e-8: GTSAM would make a constraint or drop the correlations."""
    tesla = 1e-9
    assert nm.Diagonal.Sigmas(tesla * SIGMAS).isConstrained()  # GTSAM's behaviour
    assert isinstance(nm.Gaussian.Covariance(tesla**2 * COVARIANCE), nm.Diagonal)
    arguments = (1, tesla * MEASURED, tesla * ARGUMENTS[2], ARGUMENTS[3], tesla * BIAS)
    values = list_values(ATTITUDE)
    for numbers in (5.0, SIGMAS, COVARIANCE):
        small = tesla**2 if np.ndim(numbers) == 2 else tesla
        ours = MagFactor1(*arguments, small * np.asarray(numbers))
        plain = MagFactor1(*ARGUMENTS, numbers)
        assert ours.whitenedError(values) == pytest.approx(plain.whitenedError(values), rel=1e-9, abs=0.0)
        assert ours.to_gtsam().error(values) == pytest.approx(plain.to_gtsam().error(values), rel=1e-9, abs=0.0)
        assert not ours.to_gtsam().noiseModel().isConstrained()
    with pytest.raises(FactorError, match=r"must not be a constraint; .* give sigmas as numbers"):
        MagFactor1(*arguments, nm.Diagonal.Sigmas(tesla * SIGMAS))


MOUNTING = gtsam.Pose3(gtsam.Rot3.RzRyRx(1.5, 0.9, -1.15), np.array([-0.1, 0.2, 0.3]))


def compute_whitened_norm(residual: FloatArray, model: Any) -> float:
    """Return the whitened norm of a residual in the sensor frame, by definition."""
    inner = model.noise() if isinstance(model, nm.Robust) else model
    return float(np.sqrt(residual @ np.linalg.solve(inner.covariance(), residual)))


@pytest.mark.requirement("FAC-2:mounting")
@pytest.mark.parametrize("name", [name for name in MODELS if name != "none"])
def test_noise_of_a_mounted_sensor_is_in_the_sensor_frame(name: str) -> None:
    model = MODELS[name]
    arguments = (1, MEASURED, ARGUMENTS[2], FIELD, BIAS)
    factor = MagPoseFactorPose3(*arguments, model, MOUNTING)
    pose = gtsam.Pose3(ATTITUDE, np.zeros(3))
    values = list_values(pose)
    in_sensor = MOUNTING.rotation().unrotate(factor.evaluateError(pose))
    # A GTSAM factor on the attitude of the sensor needs no mounting.
    on_sensor = gtsam.MagFactor1(1, MEASURED, ARGUMENTS[2], ARGUMENTS[3], BIAS, model)
    attitude = list_values(ATTITUDE.compose(MOUNTING.rotation()))
    assert in_sensor == pytest.approx(on_sensor.unwhitenedError(attitude), abs=1e-12)
    assert factor.error(values) == pytest.approx(on_sensor.error(attitude), rel=1e-12, abs=0.0)
    native = factor.to_gtsam()
    assert isinstance(native, gtsam.MagPoseFactorPose3)
    assert native.error(values) == pytest.approx(on_sensor.error(attitude), rel=1e-12, abs=0.0)
    assert factor.whitenedError(values) == pytest.approx(native.whitenedError(values), rel=1e-11, abs=0.0)
    assert native.unwhitenedError(values) == pytest.approx(factor.unwhitenedError(values), abs=1e-12)
    assert factor.noiseModel() is model
    assert repr(factor).partition("local")[0] == repr(on_sensor)
    if not isinstance(model, nm.Robust):
        assert factor.error(values) == pytest.approx(
            compute_whitened_norm(in_sensor, model) ** 2 / 2.0, rel=1e-12, abs=0.0
        )
    careless = gtsam.MagPoseFactorPose3(*arguments, model, MOUNTING).error(values)
    alike = name in ("unit", "isotropic", "huber", "geman")
    assert (careless == pytest.approx(factor.error(values), rel=1e-9, abs=0.0)) is alike
    handed = native.noiseModel().noise() if isinstance(model, nm.Robust) else native.noiseModel()
    assert isinstance(handed, nm.Isotropic) is alike


@pytest.mark.requirement("FAC-2:mounting")
@pytest.mark.parametrize("numbers", [5.0, SIGMAS, COVARIANCE], ids=["sigma", "sigmas", "covariance"])
def test_sigmas_of_a_mounted_sensor_are_rotated(numbers: Any) -> None:
    arguments = (1, MEASURED, ARGUMENTS[2], FIELD, BIAS)
    ours = MagPoseFactorPose3(*arguments, numbers, MOUNTING)
    covariance = np.eye(3) * numbers**2 if np.ndim(numbers) == 0 else np.diag(SIGMAS**2)
    model = nm.Gaussian.Covariance(numbers if np.ndim(numbers) == 2 else covariance)
    reference = MagPoseFactorPose3(*arguments, model, MOUNTING)
    values = list_values(gtsam.Pose3(ATTITUDE, np.zeros(3)))
    assert ours.whitenedError(values) == pytest.approx(reference.whitenedError(values), rel=1e-11, abs=0.0)
    assert ours.linearize(values).equals(reference.linearize(values), 1e-11)
    assert ours.equals(reference)


@pytest.mark.requirement("FAC-2:mounting")
def test_noise_of_a_sensor_mounted_in_the_plane_is_rotated() -> None:
    mounting, pose = gtsam.Pose2(1.0, -2.0, -0.3), gtsam.Pose2(0.0, 0.0, 0.8)
    covariance = np.array([[4.0, 1.5], [1.5, 9.0]])
    factor = MagPoseFactorPose2(1, MEASURED[:2], 22.0, FIELD[:2], BIAS[:2], covariance, mounting)
    residual = mounting.rotation().unrotate(factor.evaluateError(pose))
    values = list_values(pose)
    expected = residual @ np.linalg.solve(covariance, residual) / 2.0
    assert factor.error(values) == pytest.approx(expected, rel=1e-12, abs=0.0)
    assert factor.to_gtsam().error(values) == pytest.approx(expected, rel=1e-12, abs=0.0)
    careless = gtsam.MagPoseFactorPose2(
        1, MEASURED[:2], 22.0, FIELD[:2], BIAS[:2], nm.Gaussian.Covariance(covariance), mounting
    )
    assert careless.error(values) != pytest.approx(expected, rel=1e-3, abs=0.0)


@pytest.mark.requirement("FAC-2:noise")
def test_different_noise_models_are_unequal() -> None:
    factors = [MagFactor1(*ARGUMENTS, model) for model in MODELS.values()]
    factors += [MagFactor1(*ARGUMENTS, nm.Robust.Create(estimators.Huber(1.3), nm.Isotropic.Sigma(3, 50.0)))]
    factors += [MagFactor1(*ARGUMENTS, nm.Robust.Create(estimators.Huber(1.345), nm.Isotropic.Sigma(3, 51.0)))]
    factors += [MagFactor1(*ARGUMENTS, nm.Robust.Create(estimators.Huber(1.0), FULL))]  # the parameter of "dcs"
    factors += [MagFactor1(*ARGUMENTS, numbers) for numbers in (3.0, [3.0, 4.0, 5.0], COVARIANCE + 0.1 * np.eye(3))]
    for i, first in enumerate(factors):
        for j, second in enumerate(factors):
            assert first.equals(second) is (i == j), (first, second)
    assert MagFactor1(*ARGUMENTS, 3.0).equals(MagFactor1(*ARGUMENTS, 3.0001), 1e-3)
    assert make_noise(2.0, 2).equals(make_noise(2.0, 3), 1e-9) is False


@pytest.mark.requirement("FAC-2:noise")
def test_gaussian_model_accepts_an_information_matrix() -> None:
    noise = make_noise(COVARIANCE, 3)
    assert isinstance(noise, Gaussian)
    assert noise.covariance() == pytest.approx(COVARIANCE, rel=1e-14, abs=0.0)
    turn = ATTITUDE.matrix()
    turned = noise.rotate(turn)
    assert isinstance(turned, Gaussian)
    assert turned.covariance() == pytest.approx(turn @ COVARIANCE @ turn.T, rel=1e-13, abs=0.0)
    assert repr(noise) == repr(FULL).strip()
    quarter = make_noise(SIGMAS, 3).rotate(gtsam.Rot3.Rz(np.pi / 2.0).matrix().round())
    assert quarter.model.sigmas() == pytest.approx([3.0, 2.0, 5.0], rel=1e-15, abs=0.0)
    assert "diagonal sigmas [3; 2; 5]" in quarter.describe()


@pytest.mark.requirement("FAC-2:noise")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: 0.0, "sigma of the noise: .*must be finite and > 0"),
        (lambda: -1.0, "sigma of the noise"),
        (lambda: float("nan"), "model.*must be finite"),
        (lambda: float("inf"), "model.*must be finite"),
        (lambda: 1e-320, "sigma of the noise"),
        (lambda: [1.0, 0.0, 1.0], "sigma of the noise"),
        (lambda: [1.0, 1.0], r"shape of model: \(2,\); must be one sigma, 3 sigmas, a covariance \(3, 3\)"),
        (lambda: np.eye(2), "shape of model"),
        (lambda: "0.5", "model: 0.5"),
        (lambda: True, "model: True"),
        (lambda: [[1.0], [2.0, 3.0]], "model"),
        (lambda: -np.eye(3), "sigma of the noise"),
        (lambda: np.array([[1.0, 0.9, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "must be symmetric"),
        (lambda: np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "must be positive definite"),
        (lambda: np.ones((3, 3)), "must be positive definite"),
        (lambda: nm.Isotropic.Sigma(2, 1.0), "dimension of the noise model: 2; must be 3"),
        (lambda: make_noise(1.0, 2), "dimension of the noise model: 2; must be 3"),
        (lambda: nm.Robust.Create(estimators.Huber(1.0), nm.Isotropic.Sigma(2, 1.0)), "dimension of the noise"),
        (lambda: nm.Isotropic.Sigma(3, 0.0), "sigma of the noise"),
        (lambda: nm.Isotropic.Sigma(3, float("nan")), "sigma of the noise"),
        (lambda: nm.Diagonal.Sigmas(np.array([0.0, 1.0, 1.0])), "must not be a constraint"),
        (lambda: nm.Constrained.All(3), "must not be a constraint"),
        (lambda: nm.Robust.Create(estimators.Huber(1.0), nm.Constrained.All(3)), "must not be a constraint"),
        (lambda: nm.Robust.Create(estimators.Huber(1.0), nm.Isotropic.Sigma(3, 0.0)), "sigma of the noise"),
    ],
)
def test_invalid_noise_is_an_error(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(FactorError, match=words):
        MagFactor1(*ARGUMENTS, make())
