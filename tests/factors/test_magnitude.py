"""Factors on the field strength equal GTSAM's VectorNormFactor3, SciPy's least squares and MATLAB's ellipsoid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

from navsense.core.errors import FactorError
from navsense.core.typing import AnyArray
from navsense.factors import FactorWarning, MagFactor2, MagnitudeFactor, MagnitudePrior, MagnitudeSoftIronFactor

gtsam = pytest.importorskip("gtsam")
numerical = pytest.importorskip("gtsam.utils.numerical_derivative")

pytestmark = pytest.mark.requirement("FAC-1:magnitude")

STRENGTH = 50.0
BIAS = np.array([12.0, -7.0, 30.0])
SIGMA = 0.05
PLACES = [[22.6, -1.9, 44.2], [0.0, 0.0, 1.0], [1e-3, 0.0, 0.0], [0.0, 0.0, 0.0], [-3.0, 4.0, 0.0], [1e150, 1e150, 0.0]]
"""Vectors of several lengths, including zero."""


def make_measurements(count: int, seed: int = 1) -> AnyArray:
    """Return measurements (n, 3) uT of a biased sensor at unknown attitudes."""
    random = np.random.default_rng(seed)
    directions = random.normal(size=(count, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return STRENGTH * directions + BIAS + SIGMA * random.normal(size=(count, 3))


def make_graph(*factors: Any) -> Any:
    full = gtsam.NonlinearFactorGraph()
    for factor in factors:
        full.add(factor.to_gtsam() if hasattr(factor, "to_gtsam") else factor)
    return full


def make_values(*estimates: Any) -> Any:
    found = gtsam.Values()
    for key, value in enumerate(estimates, 1):
        found.insert(key, value)
    return found


def optimise(full: Any, start: Any, steps: int = 5) -> Any:
    found = gtsam.LevenbergMarquardtOptimizer(full, start).optimize()
    for _ in range(steps):
        found = found.retract(full.linearize(found).optimize())
    return found


def evaluate_norm_factor(at: AnyArray, strength: float) -> tuple[AnyArray, AnyArray]:
    """Return residual and Jacobian of GTSAM's factor on the norm of a vector."""
    factor = gtsam.VectorNormFactor3(1, strength, gtsam.noiseModel.Unit.Create(1))
    return factor.evaluateError(at), factor.linearize(make_values(at)).jacobian()[0]


@pytest.mark.requirement("FAC-2:magnitude")
@pytest.mark.parametrize("place", PLACES)
def test_magnitude_prior_equals_gtsam(place: AnyArray) -> None:
    at, h = np.array(place), np.zeros((1, 3))
    prior = MagnitudePrior(1, STRENGTH, SIGMA)
    residual, jacobian = evaluate_norm_factor(at, STRENGTH)
    assert prior.evaluateError(at, h) == pytest.approx(residual, rel=1e-15, abs=1e-14)
    assert h == pytest.approx(jacobian, abs=1e-15)
    native = prior.to_gtsam()
    assert isinstance(native, gtsam.VectorNormFactor3)
    assert native.equals(gtsam.VectorNormFactor3(1, STRENGTH, gtsam.noiseModel.Isotropic.Sigma(1, SIGMA)), 1e-12)
    assert native.error(make_values(at)) == pytest.approx(prior.error(make_values(at)), rel=1e-14, abs=0.0)


def test_prior_without_noise_can_be_printed_and_has_unit_weight() -> None:
    """GTSAM's factor without a noise model ends the process when it is printed."""
    prior = MagnitudePrior(1, STRENGTH)
    assert "norm = 50" in repr(prior.to_gtsam())
    assert prior.to_gtsam().error(make_values(BIAS)) == pytest.approx(prior.error({1: BIAS}), rel=1e-14, abs=0.0)


@pytest.mark.requirement("FAC-4:magnitude")
def test_prior_fixes_the_field_magnitude_of_mag_factor2() -> None:
    """With one attitude and a known bias, the prior determines the strength; SciPy finds the same field."""
    rotation, m = gtsam.Rot3.RzRyRx(0.3, -1.0, 2.0), np.array([30.0, 5.0, 44.0])
    known = gtsam.PriorFactorPoint3(2, BIAS, gtsam.noiseModel.Isotropic.Sigma(3, 1.0))
    full = make_graph(MagFactor2(1, 2, m, rotation, 2.0), MagnitudePrior(1, STRENGTH, 0.1), known)
    found = optimise(full, make_values(np.array([20.0, 0.0, 40.0]), BIAS), 30)

    def rows(x: AnyArray) -> AnyArray:
        return np.concatenate(
            (
                (rotation.unrotate(x[:3]) + x[3:] - m) / 2.0,
                [(np.linalg.norm(x[:3]) - STRENGTH) / 0.1],
                x[3:] - BIAS,
            )
        )

    best = least_squares(rows, np.concatenate((found.atPoint3(1), BIAS)), xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert np.concatenate((found.atPoint3(1), found.atPoint3(2))) == pytest.approx(best.x, abs=1e-6)


@pytest.mark.requirement("FAC-2:magnitude")
@pytest.mark.parametrize("place", PLACES[:-1])
def test_bias_derivative_is_the_negative_of_gtsams_norm_derivative(place: AnyArray) -> None:
    """|m - b| is the norm of a vector that decreases as b increases."""
    less, h = np.array(place), np.zeros((1, 3))
    factor = MagnitudeFactor(1, BIAS + less, STRENGTH)
    residual, jacobian = evaluate_norm_factor((BIAS + less) - BIAS, STRENGTH)
    assert factor.evaluateError(BIAS, h) == pytest.approx(residual, rel=1e-15, abs=1e-14)
    assert h == pytest.approx(-jacobian, abs=1e-15)


@pytest.mark.requirement("FAC-2:magnitude")
def test_factor_without_soft_iron_equals_the_plain_factor() -> None:
    for m in make_measurements(5):
        h, plain = [np.zeros((1, 6)), np.zeros((1, 3))], np.zeros((1, 3))
        iron = MagnitudeSoftIronFactor(1, 2, m, STRENGTH).evaluateError([1.0, 0, 0, 1.0, 0, 1.0], BIAS, *h)
        assert iron == pytest.approx(MagnitudeFactor(2, m, STRENGTH).evaluateError(BIAS, plain), abs=1e-13)
        assert h[1] == pytest.approx(plain, abs=1e-15)


@pytest.mark.requirement("FAC-2:magnitude")
def test_soft_iron_jacobians_equal_gtsam_numerical_derivatives() -> None:
    random = np.random.default_rng(3)
    for m in make_measurements(20) / STRENGTH:
        iron = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0]) + 0.2 * random.normal(size=6)
        factor = MagnitudeSoftIronFactor(1, 2, m, 1.0)
        h = [np.zeros((1, 6)), np.zeros((1, 3))]
        residual = factor.evaluateError(iron, BIAS / STRENGTH, *h)
        matrix = np.empty((3, 3))
        matrix[np.triu_indices(3)] = matrix.T[np.triu_indices(3)] = iron
        field = np.linalg.solve(matrix, m - BIAS / STRENGTH)
        assert residual == pytest.approx(evaluate_norm_factor(field, 1.0)[0], abs=1e-13)

        def error(s: AnyArray, b: AnyArray, m: AnyArray = m) -> AnyArray:
            return evaluate_norm_factor(
                np.linalg.solve([[s[0], s[1], s[2]], [s[1], s[3], s[4]], [s[2], s[4], s[5]]], m - b), 1.0
            )[0]

        for k, name in enumerate(("numericalDerivative21", "numericalDerivative22")):
            expected = getattr(numerical, name)(error, iron, BIAS / STRENGTH)
            # differences of step 1e-5: the third derivative is about 100 for small S
            assert np.abs(expected - h[k]).max() < 1e-7


@pytest.mark.requirement("FAC-4:magnitude")
def test_sphere_fit_equals_scipy() -> None:
    measured = make_measurements(100)
    full = make_graph(*(MagnitudeFactor(1, m, STRENGTH, SIGMA) for m in measured))
    found = optimise(full, make_values(np.zeros(3))).atPoint3(1)
    best = least_squares(
        lambda b: np.linalg.norm(measured - b, axis=1) - STRENGTH, np.zeros(3), xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    assert found == pytest.approx(best.x, abs=1e-7)
    # more than three standard deviations of a bias from 100 measurements: sigma sqrt(3 / 100) each
    assert np.abs(found - BIAS).max() < 6.0 * SIGMA * np.sqrt(3.0 / 100.0)


@pytest.mark.requirement("FAC-4:magnitude")
def test_sphere_fit_with_huber_loss_equals_scipy() -> None:
    measured = make_measurements(100)
    measured[::9] *= 1.4
    limit = 1.345
    huber = gtsam.noiseModel.Robust.Create(
        gtsam.noiseModel.mEstimator.Huber.Create(limit), gtsam.noiseModel.Isotropic.Sigma(1, SIGMA)
    )
    full = make_graph(*(MagnitudeFactor(1, m, STRENGTH, huber) for m in measured))
    found = optimise(full, make_values(np.zeros(3)), 100)

    def rows(b: AnyArray) -> AnyArray:
        return (np.linalg.norm(measured - b, axis=1) - STRENGTH) / SIGMA

    best = least_squares(rows, BIAS, loss="huber", f_scale=limit, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert full.error(found) == pytest.approx(best.cost, rel=1e-9, abs=0.0)
    assert found.atPoint3(1) == pytest.approx(best.x, abs=1e-5)


@pytest.mark.requirement("FAC-4:magnitude")
def test_isam_result_equals_the_batch_optimum() -> None:
    measured = make_measurements(60)
    factors = [MagnitudeFactor(1, m, STRENGTH, SIGMA) for m in measured]
    parameters = gtsam.ISAM2Params()
    parameters.setRelinearizeThreshold(0.0)
    parameters.relinearizeSkip = 1
    isam = gtsam.ISAM2(parameters)
    isam.update(make_graph(*factors[:20]), make_values(np.zeros(3)))
    for first in range(20, 60, 10):
        isam.update(make_graph(*factors[first : first + 10]), gtsam.Values())
    for _ in range(5):
        isam.update()
    expected = optimise(make_graph(*factors), make_values(np.zeros(3))).atPoint3(1)
    assert isam.calculateBestEstimate().atPoint3(1) == pytest.approx(expected, abs=1e-9)


@pytest.mark.requirement("FAC-4:magnitude")
def test_ellipsoid_equals_matlab_example() -> None:
    """Centre (-50, 20, 100), semi-axes 30, 20, 50 on a 21 x 21 grid; `magcal` prints the strength 31.0723."""
    longitude, latitude = np.meshgrid(np.linspace(-np.pi, np.pi, 21), np.linspace(-np.pi / 2, np.pi / 2, 21))
    level = np.cos(latitude)
    sphere = np.stack((level * np.cos(longitude), level * np.sin(longitude), np.sin(latitude)), axis=-1).reshape(-1, 3)
    centre, axes = np.array([-50.0, 20.0, 100.0]), np.array([30.0, 20.0, 50.0])
    full = make_graph(*(MagnitudeSoftIronFactor(1, 2, m, 31.0723, 1.0) for m in centre + axes * sphere))
    found = optimise(full, make_values(np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0]), np.array([-40.0, 10.0, 90.0])))
    xx, xy, xz, yy, yz, zz = found.atVector(1)
    assert found.atPoint3(2) == pytest.approx(centre, abs=1e-9)
    assert [xy, xz, yz] == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)
    assert 31.0723 * np.array([xx, yy, zz]) == pytest.approx(axes, abs=1e-9)
    # the strength at which the determinant is 1, to four digits
    assert xx * yy * zz == pytest.approx(1.0, abs=3 * 5e-5 / 31.0)


def test_errors_name_the_problem() -> None:
    for strength in (0.0, -50.0):
        with pytest.raises(FactorError, match=r"strength.*> 0"):
            MagnitudePrior(1, strength)
    with pytest.raises(FactorError, match=r"measured.*finite"):
        MagnitudeFactor(1, [1.0, np.inf, 0.0], STRENGTH)
    with pytest.raises(FactorError, match=r"dimension|sigma|model"):
        MagnitudeFactor(1, BIAS, STRENGTH, [1.0, 2.0, 3.0])
    with pytest.raises(FactorError, match=r"softIron.*inverse.*1 0 0 1 0 1"):
        MagnitudeSoftIronFactor(1, 2, BIAS, STRENGTH).evaluateError(np.zeros(6), BIAS)
    cases: list[tuple[Any, tuple[int, ...], float]] = [
        (MagnitudeFactor, (1,), 50e-6),
        (MagnitudeSoftIronFactor, (1, 2), 50e3),
    ]
    for factor, keys, strength in cases:
        with pytest.warns(FactorWarning, match="one unit") as warned:
            factor(*keys, BIAS, strength)
        assert [each.filename for each in warned] == [__file__]


def test_equality_compares_the_data() -> None:
    for make in (
        lambda s: MagnitudePrior(1, s, 0.1),
        lambda s: MagnitudeFactor(1, BIAS, s, 0.1),
        lambda s: MagnitudeSoftIronFactor(1, 2, BIAS, s, 0.1),
    ):
        assert make(50.0).equals(make(50.0))
        assert not make(50.0).equals(make(51.0))
