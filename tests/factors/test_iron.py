"""Soft-iron factors equal GTSAM's arithmetic and derivatives, SciPy's least squares and the simulated sensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

from navsense.core.errors import FactorError
from navsense.core.typing import AnyArray
from navsense.factors import FactorWarning, MagFactor3, MagSoftIronFactor, MagSoftIronFactor3
from navsense.sensors import Magnetometer

gtsam = pytest.importorskip("gtsam")
numerical = pytest.importorskip("gtsam.utils.numerical_derivative")

pytestmark = pytest.mark.requirement("FAC-1:soft iron")

FIELD = np.array([22.65329982, -1.95683010, 44.20247862])
IRON = np.array([[1.1, 0.1, 0.04], [0.08, 0.88, 0.02], [-0.03, 0.05, 1.05]])
BIAS = np.array([2.0, 12.0, -9.0])
"""Field of GTSAM's tests, asymmetric soft iron and bias, uT."""

SIGMA = 0.05


def make_measurements(count: int, seed: int = 1, noise: float = SIGMA) -> tuple[AnyArray, list[Any]]:
    """Return measurements (n, 3) uT and attitudes, by GTSAM's rotations."""
    random = np.random.default_rng(seed)
    rotations = [gtsam.Rot3.Expmap(v) for v in random.uniform(-2.0, 2.0, (count, 3))]
    body_field = np.array([IRON @ r.unrotate(FIELD) for r in rotations])
    return body_field + BIAS + noise * random.normal(size=(count, 3)), rotations


def make_graph(*factors: Any) -> Any:
    full = gtsam.NonlinearFactorGraph()
    for factor in factors:
        full.add(factor.to_gtsam() if hasattr(factor, "to_gtsam") else factor)
    return full


def make_values(*values_: Any) -> Any:
    found = gtsam.Values()
    for key, value in enumerate(values_, 1):
        found.insert(key, value)
    return found


def optimise(full: Any, start: Any) -> Any:
    """Return the optimum by Levenberg-Marquardt, refined by linear steps."""
    found = gtsam.LevenbergMarquardtOptimizer(full, start).optimize()
    for _ in range(3):
        found = found.retract(full.linearize(found).optimize())
    return found


@pytest.mark.requirement("FAC-2:soft iron")
def test_residuals_and_derivatives_equal_gtsam() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        rotation, m = gtsam.Rot3.Expmap(random.normal(size=3)), 40.0 * random.normal(size=3)
        iron, bias = np.eye(3) + 0.3 * random.normal(size=(3, 3)), random.normal(size=3)
        factor = MagSoftIronFactor(1, 2, m, FIELD, rotation)
        h = [np.zeros((3, 9)), np.zeros((3, 3))]
        got = factor.evaluateError(iron.ravel(), bias, *h)
        assert got == pytest.approx(iron @ rotation.unrotate(FIELD) + bias - m, abs=1e-12)

        def error(s: AnyArray, b: AnyArray, r: Any = rotation, m: AnyArray = m) -> AnyArray:
            return np.reshape(s, (3, 3)) @ r.unrotate(FIELD) + b - m

        for k, name in enumerate(("numericalDerivative21", "numericalDerivative22")):
            # linear: rounding only, 7e-15 / 2e-5 twice
            assert np.abs(getattr(numerical, name)(error, iron.ravel(), bias) - h[k]).max() < 5e-9


@pytest.mark.requirement("FAC-2:soft iron")
@pytest.mark.parametrize("direction", [FIELD, [1.0, 1.0, 1.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [2.0, 1.0, 1.0]])
def test_factor_of_four_unknowns_equals_gtsam(direction: AnyArray) -> None:
    rotation, m = gtsam.Rot3.RzRyRx(0.3, -1.0, 2.0), np.array([0.4, -0.7, 0.2])
    factor = MagSoftIronFactor3(1, 2, 3, 4, m, rotation)
    at = (1.3, gtsam.Unit3(np.array(direction)), BIAS / 50.0, IRON.ravel())
    h = [np.zeros((3, 1)), np.zeros((3, 2)), np.zeros((3, 3)), np.zeros((3, 9))]
    got = factor.evaluateError(*at, *h)

    def error(scale: Any, towards: Any, bias: AnyArray, iron: AnyArray) -> AnyArray:
        return np.squeeze(scale) * np.reshape(iron, (3, 3)) @ rotation.unrotate(towards.point3()) + bias - m

    assert got == pytest.approx(error(*at), abs=1e-14)
    for k in range(4):
        expected = getattr(numerical, f"numericalDerivative4{k + 1}")(error, *at)
        assert np.abs(expected - h[k]).max() < 1e-9


def test_factor_without_soft_iron_equals_mag_factor3() -> None:
    rotation, m = gtsam.Rot3.RzRyRx(0.3, -1.0, 2.0), np.array([0.4, -0.7, 0.2])
    at = (1.3, FIELD, BIAS)
    ours = MagSoftIronFactor3(1, 2, 3, 4, m, rotation).evaluateError(*at, np.eye(3).ravel())
    assert ours == pytest.approx(MagFactor3(1, 2, 3, m, rotation).evaluateError(*at), abs=1e-14)


@pytest.mark.requirement("FAC-4:soft iron")
def test_known_fields_give_the_least_squares_solution() -> None:
    measured, rotations = make_measurements(60)
    full = make_graph(*(MagSoftIronFactor(1, 2, m, FIELD, r, SIGMA) for m, r in zip(measured, rotations, strict=True)))
    found = optimise(full, make_values(np.eye(3).ravel(), np.zeros(3)))
    body_field = np.array([[*r.unrotate(FIELD), 1.0] for r in rotations])
    expected, *_ = np.linalg.lstsq(body_field, measured, rcond=None)
    assert np.abs(found.atVector(1).reshape(3, 3) - expected[:3].T).max() < 1e-12
    assert np.abs(found.atPoint3(2) - expected[3]).max() < 1e-10


@pytest.mark.requirement("FAC-4:soft iron")
def test_isam_result_equals_the_batch_optimum() -> None:
    measured, rotations = make_measurements(45)
    factors = [MagSoftIronFactor(1, 2, m, FIELD, r, SIGMA) for m, r in zip(measured, rotations, strict=True)]
    prior = gtsam.PriorFactorVector(1, np.eye(3).ravel(), gtsam.noiseModel.Isotropic.Sigma(9, 1.0))
    start = make_values(np.eye(3).ravel(), np.zeros(3))
    expected = optimise(make_graph(prior, *factors), start)
    isam = gtsam.ISAM2()
    isam.update(make_graph(prior, *factors[:10]), start)
    for first in range(10, 45, 5):
        isam.update(make_graph(*factors[first : first + 5]), gtsam.Values())
    found = isam.calculateBestEstimate()
    assert np.abs(found.atVector(1) - expected.atVector(1)).max() < 1e-10
    assert np.abs(found.atPoint3(2) - expected.atPoint3(2)).max() < 1e-9


@pytest.mark.requirement("FAC-4:soft iron")
def test_robust_model_reduces_the_effect_of_outliers() -> None:
    """SciPy finds the same minimum: Huber's loss of the norm of each three rows."""
    measured, rotations = make_measurements(60)
    measured[::10] += 20.0
    limit = 1.345
    huber = gtsam.noiseModel.Robust.Create(
        gtsam.noiseModel.mEstimator.Huber.Create(limit), gtsam.noiseModel.Isotropic.Sigma(3, SIGMA)
    )
    full = make_graph(*(MagSoftIronFactor(1, 2, m, FIELD, r, huber) for m, r in zip(measured, rotations, strict=True)))
    found = make_values(np.eye(3).ravel(), np.zeros(3))
    for _ in range(300):  # reweighted least squares: each step is a linear graph
        found = found.retract(full.linearize(found).optimize())
    body_field = np.array([r.unrotate(FIELD) for r in rotations])

    def rows(x: AnyArray) -> AnyArray:
        """Return values whose half squares are Huber's loss of each norm."""
        lengths = np.linalg.norm(body_field @ x[:9].reshape(3, 3).T + x[9:] - measured, axis=1) / SIGMA
        return np.where(lengths <= limit, lengths, np.sqrt(np.maximum(2.0 * limit * lengths - limit**2, 0.0)))

    start = np.concatenate((found.atVector(1), found.atPoint3(2))) + 1e-3
    best = least_squares(rows, start, xtol=1e-15, ftol=1e-15, gtol=1e-15, method="lm")
    here = np.concatenate((found.atVector(1), found.atPoint3(2)))
    assert 0.5 * np.sum(rows(here) ** 2) <= best.cost * (1.0 + 1e-9)
    assert full.error(found) == pytest.approx(0.5 * np.sum(rows(here) ** 2), rel=1e-9, abs=0.0)
    # without the loss, 6 outliers of 20 uT in 60 move the bias by 2 uT
    assert np.abs(found.atPoint3(2) - BIAS).max() < 0.2


@pytest.mark.requirement("FAC-4:soft iron")
def test_scale_and_soft_iron_together_need_a_prior_on_one() -> None:
    measured, rotations = make_measurements(80)
    factors = [MagSoftIronFactor3(1, 2, 3, 4, m, r, SIGMA) for m, r in zip(measured, rotations, strict=True)]
    prior = gtsam.PriorFactorDouble(1, 50.0, gtsam.noiseModel.Isotropic.Sigma(1, 1e-3))
    start = make_values(50.0, gtsam.Unit3(FIELD), np.zeros(3), np.eye(3).ravel())
    found = optimise(make_graph(prior, *factors), start)
    matrices = np.array([r.matrix() for r in rotations])

    def rows(x: AnyArray) -> AnyArray:
        field = np.einsum("nji,j->ni", matrices, 50.0 * x[:3] / np.linalg.norm(x[:3]))
        length = 1e3 * (np.linalg.norm(x[:3]) - 1.0)  # a direction as a vector of length 1
        return np.append((field @ x[6:].reshape(3, 3).T + x[3:6] - measured).ravel() / SIGMA, length)

    best = least_squares(rows, np.concatenate((FIELD / 50.0, np.zeros(3), np.eye(3).ravel())), xtol=1e-15, ftol=1e-15)
    assert found.atDouble(1) == pytest.approx(50.0, abs=1e-9)
    assert np.abs(found.atUnit3(2).point3() - best.x[:3] / np.linalg.norm(best.x[:3])).max() < 1e-7
    assert np.abs(found.atPoint3(3) - best.x[3:6]).max() < 1e-6
    assert np.abs(found.atVector(4) - best.x[6:]).max() < 1e-7
    with pytest.raises(RuntimeError, match="Indeterminate"):
        optimise(make_graph(*factors), start)


def test_simulated_sensor_has_the_same_model() -> None:
    random = np.random.default_rng(9)
    sensor = Magnetometer(hard_iron=tuple(1e-6 * BIAS), soft_iron=tuple(IRON.ravel()))
    rotations = [gtsam.Rot3.Expmap(v) for v in random.uniform(-2.0, 2.0, (20, 3))]
    ideal = 1e-6 * np.array([r.unrotate(FIELD) for r in rotations])
    reading = sensor.apply(np.arange(20) / 100.0, ideal, seed=1)["field"]
    for m, rotation in zip(reading, rotations, strict=True):
        factor = MagSoftIronFactor(1, 2, 1e6 * m, FIELD, rotation)
        assert np.abs(factor.evaluateError(IRON.ravel(), BIAS)).max() < 1e-12


def test_errors_name_the_problem() -> None:
    with pytest.raises(FactorError, match=r"field.*finite"):
        MagSoftIronFactor(1, 2, BIAS, [1.0, np.nan, 0.0], np.eye(3))
    with pytest.raises(FactorError, match="nRb"):
        MagSoftIronFactor3(1, 2, 3, 4, BIAS, 2.0 * np.eye(3))
    with pytest.raises(FactorError, match="softIron"):
        MagSoftIronFactor(1, 2, BIAS, FIELD, np.eye(3)).evaluateError(np.eye(3), BIAS)
    with pytest.raises(FactorError, match="keys"):
        MagSoftIronFactor3(1, 2, 3, 3, BIAS, np.eye(3))
    with pytest.warns(FactorWarning, match="one unit") as warned:
        MagSoftIronFactor(1, 2, 1e-6 * BIAS, FIELD, np.eye(3))
    assert [each.filename for each in warned] == [__file__]


def test_equality_compares_the_data() -> None:
    one = MagSoftIronFactor(1, 2, BIAS, FIELD, np.eye(3), 0.1)
    assert one.equals(MagSoftIronFactor(1, 2, BIAS, FIELD, np.eye(3), 0.1))
    assert not one.equals(MagSoftIronFactor(1, 2, BIAS, FIELD + 1.0, np.eye(3), 0.1))
    four = MagSoftIronFactor3(1, 2, 3, 4, BIAS, np.eye(3), 0.1)
    assert four.equals(four.clone())
    assert not four.equals(MagSoftIronFactor3(1, 2, 3, 4, BIAS, np.diag([1.0, -1.0, -1.0]), 0.1))
