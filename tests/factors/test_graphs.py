"""The factors in GTSAM graphs: Levenberg-Marquardt, Gauss-Newton and iSAM2 equal solutions without GTSAM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import pytest

from navsense.core.errors import FactorError
from navsense.core.typing import FloatArray
from navsense.factors import (
    Factor,
    MagFactor,
    MagFactor1,
    MagFactor2,
    MagFactor3,
    MagPoseFactorPose2,
    MagPoseFactorPose3,
)
from navsense.factors.arguments import Numbers
from navsense.factors.variables import double, vector_variable

gtsam = pytest.importorskip("gtsam")
nm = gtsam.noiseModel

STRENGTH, SIGMA, N = 48343.4, 50.0, 60
NORTH, GRAVITY = np.array([0.4558, -0.0394, 0.8892]), np.array([0.1, 0.9, -0.4])
BIAS = np.array([310.0, -250.0, 120.0])


def optimise_by_levenberg_marquardt(graph: Any, start: Any) -> Any:
    parameters = gtsam.LevenbergMarquardtParams()
    parameters.setRelativeErrorTol(0.0)
    parameters.setAbsoluteErrorTol(1e-14)
    return gtsam.LevenbergMarquardtOptimizer(graph, start, parameters).optimize()


def optimise_by_gauss_newton(graph: Any, start: Any) -> Any:
    parameters = gtsam.GaussNewtonParams()
    parameters.setRelativeErrorTol(0.0)
    parameters.setAbsoluteErrorTol(1e-14)
    return gtsam.GaussNewtonOptimizer(graph, start, parameters).optimize()


def optimise_by_isam2(graph: Any, start: Any) -> Any:
    """Return the estimate of iSAM2: enough factors at first, the others one by one, then a relinearisation."""
    parameters = gtsam.ISAM2Params()
    parameters.setRelinearizeThreshold(0.0)
    parameters.relinearizeSkip = 1
    solver = gtsam.ISAM2(parameters)
    first = min(graph.size(), 4)
    for group in [range(first), *([i] for i in range(first, graph.size()))]:
        part = gtsam.NonlinearFactorGraph()
        for i in group:
            part.push_back(graph.at(i))
        solver.update(part, gtsam.Values() if group != range(first) else start)
    for _ in range(12):
        solver.update()
    return solver.calculateBestEstimate()


SOLVERS: dict[str, Callable[[Any, Any], Any]] = {
    "levenberg-marquardt": optimise_by_levenberg_marquardt,
    "gauss-newton": optimise_by_gauss_newton,
    "isam2": optimise_by_isam2,
}
solvers = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS.keys())


def make_measurements() -> tuple[list[Any], FloatArray]:
    """Return attitudes and noisy readings of the field with the bias."""
    random = np.random.default_rng(17)
    attitudes = [gtsam.Rot3.Expmap(random.normal(size=3) * 1.5) for _ in range(N)]
    field = STRENGTH * NORTH / np.linalg.norm(NORTH)
    return attitudes, np.array([r.unrotate(field) + BIAS + SIGMA * random.normal(size=3) for r in attitudes])


def make_graph(factors: Sequence[Factor], *priors: Any) -> Any:
    graph = gtsam.NonlinearFactorGraph()
    for prior in priors:
        graph.push_back(prior)
    for factor in factors:
        graph.push_back(factor.to_gtsam())
    return graph


def make_values(*values: Any) -> Any:
    made = gtsam.Values()
    for key, value in enumerate(values, 1):
        made.insert(key, value)
    return made


def solve_weighted(attitudes: Sequence[Any], measured: FloatArray, weights: FloatArray) -> FloatArray:
    """Return field and bias (6,) of weighted least squares, a linear problem."""
    design = np.array([np.hstack([r.inverse().matrix(), np.eye(3)]) for r in attitudes])
    root = np.sqrt(weights)[:, None, None]
    rows, right = (root * design).reshape(-1, 6), (root[:, :, 0] * measured).ravel()
    solution: FloatArray = np.linalg.lstsq(rows, right, rcond=None)[0]
    return solution


def solve_huber(attitudes: Sequence[Any], measured: FloatArray, k: float) -> FloatArray:
    """Return field and bias with Huber's loss on whitened residuals, by iterated weights until convergence."""
    x = solve_weighted(attitudes, measured, np.ones(len(measured)))
    for _ in range(500):
        residual = np.array([r.unrotate(x[:3]) + x[3:] for r in attitudes]) - measured
        length = np.linalg.norm(residual, axis=1) / SIGMA
        x, before = solve_weighted(attitudes, measured, np.minimum(1.0, k / length)), x
        if abs(x - before).max() < 1e-10:
            return x
    raise AssertionError("weights do not settle")


def make_outliers() -> tuple[list[Any], FloatArray]:
    attitudes, measured = make_measurements()
    measured[::7] += [4000.0, -2500.0, 1500.0]
    return attitudes, measured


@pytest.mark.requirement("FAC-4:MagFactor2")
@solvers
def test_graph_estimates_field_and_bias(solve: Callable[[Any, Any], Any]) -> None:
    attitudes, measured = make_measurements()
    factors = [MagFactor2(1, 2, m, r, SIGMA) for r, m in zip(attitudes, measured, strict=True)]
    graph = make_graph(factors)
    assert isinstance(graph.at(0), gtsam.CustomFactor)
    found = solve(graph, make_values(np.array([1.0, 2.0, 3.0]), np.zeros(3)))
    expected = solve_weighted(attitudes, measured, np.ones(N))
    assert found.atPoint3(1) == pytest.approx(expected[:3], abs=1e-9 * STRENGTH)
    assert found.atPoint3(2) == pytest.approx(expected[3:], abs=1e-9 * STRENGTH)
    design = np.array([np.hstack([r.inverse().matrix(), np.eye(3)]) for r in attitudes]).reshape(-1, 6)
    covariance = np.linalg.inv(design.T @ design) * SIGMA**2
    marginals = gtsam.Marginals(graph, found)
    assert marginals.marginalCovariance(2) == pytest.approx(covariance[3:, 3:], abs=1e-9 * SIGMA**2)


@pytest.mark.requirement("FAC-4:MagFactor3")
@solvers
def test_graph_estimates_scale_direction_and_bias(solve: Callable[[Any, Any], Any]) -> None:
    attitudes, measured = make_measurements()
    factors = [
        MagFactor3(1, 2, 3, m, r, nm.Isotropic.Sigma(3, SIGMA)) for r, m in zip(attitudes, measured, strict=True)
    ]
    start = make_values(0.8 * STRENGTH, gtsam.Unit3(np.array([0.7, -0.3, 0.6])), np.zeros(3))
    found = solve(make_graph(factors), start)
    expected = solve_weighted(attitudes, measured, np.ones(N))
    assert found.atDouble(1) == pytest.approx(np.linalg.norm(expected[:3]), rel=1e-9, abs=0.0)
    assert found.atDouble(1) * found.atUnit3(2).point3() == pytest.approx(expected[:3], abs=1e-9 * STRENGTH)
    assert found.atPoint3(3) == pytest.approx(expected[3:], abs=1e-9 * STRENGTH)


@pytest.mark.requirement("FAC-4:robust")
@solvers
def test_robust_calibration(solve: Callable[[Any, Any], Any]) -> None:
    """Every seventh reading is off by 97 sigmas: least squares are biased; Huber's loss has its weighted optimum."""
    attitudes, measured = make_outliers()
    model = nm.Robust.Create(nm.mEstimator.Huber(1.345), nm.Isotropic.Sigma(3, SIGMA))
    two = [MagFactor2(1, 2, m, r, model) for r, m in zip(attitudes, measured, strict=True)]
    three = [MagFactor3(1, 2, 3, m, r, model) for r, m in zip(attitudes, measured, strict=True)]
    expected = solve_huber(attitudes, measured, 1.345)
    field = STRENGTH * NORTH / np.linalg.norm(NORTH)
    drawn = solve_weighted(attitudes, measured, np.ones(N))
    assert np.linalg.norm(drawn[3:] - BIAS) > 4.0 * np.linalg.norm(expected[3:] - BIAS)
    found = solve(make_graph(two), make_values(field, BIAS))
    tolerance = 1e-6 * STRENGTH  # one weight update per step: linear convergence
    assert found.atPoint3(1) == pytest.approx(expected[:3], abs=tolerance)
    assert found.atPoint3(2) == pytest.approx(expected[3:], abs=tolerance)
    found = solve(make_graph(three), make_values(STRENGTH, gtsam.Unit3(field), BIAS))
    assert found.atDouble(1) * found.atUnit3(2).point3() == pytest.approx(expected[:3], abs=tolerance)
    assert found.atPoint3(3) == pytest.approx(expected[3:], abs=tolerance)


TRUTH = gtsam.Rot3.RzRyRx(0.3, -1.1, 2.0)
ROBUST = nm.Robust.Create(nm.mEstimator.Huber(1.345), nm.Isotropic.Sigma(3, SIGMA))


def compute_reading(attitude: Any, direction: FloatArray, at: FloatArray = BIAS) -> FloatArray:
    reading: FloatArray = attitude.unrotate(STRENGTH * direction / np.linalg.norm(direction)) + at
    return reading


@pytest.mark.requirement("FAC-4:MagFactor1", "FAC-4:MagPoseFactorPose3")
@solvers
@pytest.mark.parametrize("model", [SIGMA, ROBUST], ids=["gaussian", "robust"])
@pytest.mark.parametrize("custom", [False, True], ids=["native", "custom"])
def test_graph_estimates_attitudes_and_poses(
    solve: Callable[[Any, Any], Any], model: Any, custom: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two known directions determine an attitude: GTSAM's factors and ours recover it from exact readings."""
    if custom:
        monkeypatch.delattr(gtsam, "MagFactor1")
        monkeypatch.delattr(gtsam, "MagPoseFactorPose3")
    factors: list[Factor] = [
        MagFactor1(1, compute_reading(TRUTH, d), STRENGTH, d, BIAS, model) for d in (NORTH, GRAVITY)
    ]
    graph = make_graph(factors)
    assert isinstance(graph.at(0), gtsam.CustomFactor) is custom
    found = solve(graph, make_values(TRUTH.retract(np.array([0.2, -0.3, 0.1]))))
    assert found.atRot3(1).matrix() == pytest.approx(TRUTH.matrix(), abs=1e-9)

    mounting = gtsam.Pose3(gtsam.Rot3.RzRyRx(1.5, 0.9, -1.15), np.array([-0.1, 0.2, 0.3]))
    on_sensor = TRUTH.compose(mounting.rotation())
    factors = [
        MagPoseFactorPose3(1, compute_reading(on_sensor, d), STRENGTH, d, BIAS, model, mounting)
        for d in (NORTH, GRAVITY)
    ]
    position = np.array([5.0, -6.0, 7.0])
    prior = gtsam.PriorFactorPoint3(2, position, nm.Isotropic.Sigma(3, 1.0))
    tie = gtsam.PriorFactorPose3(1, gtsam.Pose3(TRUTH, position), nm.Diagonal.Sigmas(np.array([1e6] * 3 + [1.0] * 3)))
    start = make_values(gtsam.Pose3(TRUTH.retract(np.array([0.2, -0.3, 0.1])), position), position)
    found = solve(make_graph(factors, prior, tie), start)
    assert found.atPose3(1).rotation().matrix() == pytest.approx(TRUTH.matrix(), abs=1e-9)
    assert found.atPose3(1).translation() == pytest.approx(position, abs=1e-9)


@pytest.mark.requirement("FAC-4:MagFactor", "FAC-4:MagPoseFactorPose2")
@solvers
@pytest.mark.parametrize("custom", [False, True], ids=["native", "custom"])
def test_graph_estimates_headings_and_plane_poses(
    solve: Callable[[Any, Any], Any], custom: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if custom:
        monkeypatch.delattr(gtsam, "MagFactor")
        monkeypatch.delattr(gtsam, "MagPoseFactorPose2")
    angle = 2.5
    reading = compute_reading(gtsam.Rot3.Yaw(angle), NORTH)
    graph = make_graph([MagFactor(1, reading, STRENGTH, NORTH, BIAS, ROBUST)])
    assert isinstance(graph.at(0), gtsam.CustomFactor) is custom
    assert solve(graph, make_values(gtsam.Rot2(angle - 0.4))).atRot2(1).theta() == pytest.approx(angle, abs=1e-9)

    mounting = gtsam.Pose2(1.0, -2.0, -0.3)
    level = STRENGTH * np.linalg.norm(NORTH[:2]) / np.linalg.norm(NORTH)
    on_sensor = compute_reading(gtsam.Rot3.Yaw(angle - 0.3), NORTH)[:2]
    factor = MagPoseFactorPose2(1, on_sensor, level, NORTH[:2], BIAS[:2], [30.0, 70.0], mounting)
    tie = gtsam.PriorFactorPose2(1, gtsam.Pose2(3.0, 4.0, 0.0), nm.Diagonal.Sigmas(np.array([1.0, 1.0, 1e6])))
    found = solve(make_graph([factor], tie), make_values(gtsam.Pose2(3.0, 4.0, angle - 0.4))).atPose2(1)
    assert found.theta() == pytest.approx(angle, abs=1e-9)
    assert [found.x(), found.y()] == pytest.approx([3.0, 4.0], abs=1e-9)


@pytest.mark.requirement("FAC-4:mounting")
def test_noise_of_a_mounted_sensor_determines_the_optimum() -> None:
    """The noise is ten times as large along one sensor axis. The oracle works in the sensor frame."""
    mounting = gtsam.Pose3(gtsam.Rot3.RzRyRx(1.5, 0.9, -1.15), np.array([-0.1, 0.2, 0.3]))
    on_sensor, sigmas = TRUTH.compose(mounting.rotation()), [SIGMA, 10.0 * SIGMA, SIGMA]
    readings = [compute_reading(on_sensor, d) + 3000.0 * np.array([1.0, -1.0, 1.0]) for d in (NORTH, GRAVITY)]
    there = gtsam.NonlinearFactorGraph()
    for reading, d in zip(readings, (NORTH, GRAVITY), strict=True):
        there.push_back(
            gtsam.MagFactor1(1, reading, STRENGTH, gtsam.Unit3(d), BIAS, nm.Diagonal.Sigmas(np.array(sigmas)))
        )
    expected = (
        optimise_by_levenberg_marquardt(there, make_values(on_sensor)).atRot3(1).compose(mounting.rotation().inverse())
    )
    tie = gtsam.PriorFactorPose3(1, gtsam.Pose3(), nm.Diagonal.Sigmas(np.array([1e9] * 3 + [1.0] * 3)))
    start = make_values(gtsam.Pose3(TRUTH, np.zeros(3)))
    found = []
    for place in (mounting, mounting.matrix()):
        factors = [
            MagPoseFactorPose3(1, reading, STRENGTH, d, BIAS, sigmas, place)
            for reading, d in zip(readings, (NORTH, GRAVITY), strict=True)
        ]
        found.append(optimise_by_levenberg_marquardt(make_graph(factors, tie), start).atPose3(1).rotation())
    for attitude in found:
        assert attitude.matrix() == pytest.approx(expected.matrix(), abs=1e-8)
    careless = gtsam.NonlinearFactorGraph()
    careless.push_back(tie)
    for reading, d in zip(readings, (NORTH, GRAVITY), strict=True):
        model = nm.Diagonal.Sigmas(np.array(sigmas))
        careless.push_back(gtsam.MagPoseFactorPose3(1, reading, STRENGTH, d, BIAS, model, mounting))
    body = optimise_by_levenberg_marquardt(careless, start).atPose3(1).rotation()
    assert np.linalg.norm(body.localCoordinates(expected)) > 0.01


@pytest.mark.requirement("FAC-4:native")
@pytest.mark.parametrize("model", [None, SIGMA, [1.0, 2.0, 3.0], ROBUST], ids=["none", "one", "three", "robust"])
def test_custom_factor_equals_the_native_factor(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the wheel lacks a factor, its CustomFactor has the same error and the same linear factor."""
    factor = MagFactor1(1, compute_reading(TRUTH, NORTH), STRENGTH, NORTH, BIAS, model)
    native = factor.to_gtsam()
    assert isinstance(native, gtsam.MagFactor1)
    monkeypatch.delattr(gtsam, "MagFactor1")
    custom = factor.to_gtsam()
    assert isinstance(custom, gtsam.CustomFactor)
    values = make_values(TRUTH.retract(np.array([0.01, -0.02, 0.03])))
    assert custom.error(values) == pytest.approx(native.error(values), rel=1e-12, abs=0.0)
    assert custom.linearize(values).equals(native.linearize(values), 1e-7)
    assert list(custom.keys()) == [1]


@final
class FaultyFactor(Factor):
    """A user factor with a mistake."""

    variables = (double("scale"), vector_variable("bias", 3))

    def __init__(self, blocks: Any, residual: Any = (1.0, 1.0, 1.0)) -> None:
        """Store blocks and residual."""
        self.blocks, self.residual = blocks, residual
        super().__init__((1, 2), 3, SIGMA)

    def _residual(self, *values: Numbers) -> Any:
        return self.residual

    def _jacobians(self, *values: Numbers) -> Any:
        return self.blocks

    def _data(self) -> Numbers:
        return ()


GOOD = (np.ones((3, 1)), np.eye(3))


@pytest.mark.requirement("FAC-4:checked")
@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (FaultyFactor((GOOD[0],)), r"Jacobians of FaultyFactor: .*must be finite, of shapes \[\(3, 1\), \(3, 3\)\]"),
        (FaultyFactor(GOOD[::-1]), "Jacobians of FaultyFactor"),
        (FaultyFactor((*GOOD, GOOD[0])), "Jacobians of FaultyFactor"),
        (FaultyFactor((np.ones(3), np.eye(3))), "Jacobians of FaultyFactor"),
        (FaultyFactor((np.ones((2, 1)), np.eye(3))), "Jacobians of FaultyFactor"),
        (FaultyFactor((np.ones((3, 1)), np.full((3, 3), np.nan))), "Jacobians of FaultyFactor"),
        (FaultyFactor(GOOD, (0.0, 0.0)), "residual of FaultyFactor: .*must be 3 finite numbers"),
        (FaultyFactor(GOOD, (0.0, 0.0, np.inf)), "residual of FaultyFactor"),
    ],
)
def test_factor_error_does_not_end_the_process(factor: Factor, words: str) -> None:
    """GTSAM alone ends the process by a signal, or continues with a block of the wrong width."""
    values = make_values(1.0, np.zeros(3))
    with pytest.raises(FactorError, match=words):
        factor.to_gtsam().linearize(values)
    with pytest.raises(FactorError, match=words):
        optimise_by_levenberg_marquardt(make_graph([factor]), values)


@pytest.mark.requirement("FAC-4:checked")
def test_missing_values_of_a_graph_are_named() -> None:
    factor = MagFactor3(1, 2, 3, compute_reading(TRUTH, NORTH), TRUTH, SIGMA)
    wrong = make_values(STRENGTH, NORTH, BIAS)  # a vector instead of a direction
    with pytest.raises(FactorError, match=r"value of 2 \(direction\): is of another kind; must be a Unit3"):
        make_graph([factor]).error(wrong)


@pytest.mark.requirement("FAC-4:MagFactor3")
def test_factors_stay_alive_in_the_graph() -> None:
    attitudes, measured = make_measurements()
    graph = make_graph([MagFactor3(1, 2, 3, m, r, SIGMA) for r, m in zip(attitudes, measured, strict=True)])
    import gc

    gc.collect()
    values = make_values(STRENGTH, gtsam.Unit3(NORTH), BIAS)
    field = STRENGTH * gtsam.Unit3(NORTH).point3()
    residual = np.array([r.unrotate(field) + BIAS for r in attitudes]) - measured
    assert graph.error(values) == pytest.approx(0.5 * (residual**2).sum() / SIGMA**2, rel=1e-12, abs=0.0)
