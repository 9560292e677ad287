"""The factors in GTSAM's graphs: Levenberg-Marquardt, Gauss-Newton and iSAM2, against solutions found without it."""

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


def levenberg_marquardt(graph: Any, start: Any) -> Any:
    parameters = gtsam.LevenbergMarquardtParams()
    parameters.setRelativeErrorTol(0.0)
    parameters.setAbsoluteErrorTol(1e-14)
    return gtsam.LevenbergMarquardtOptimizer(graph, start, parameters).optimize()


def gauss_newton(graph: Any, start: Any) -> Any:
    parameters = gtsam.GaussNewtonParams()
    parameters.setRelativeErrorTol(0.0)
    parameters.setAbsoluteErrorTol(1e-14)
    return gtsam.GaussNewtonOptimizer(graph, start, parameters).optimize()


def isam2(graph: Any, start: Any) -> Any:
    """Return the estimate of iSAM2: as many factors as fix the unknowns, the others one by one, then all anew."""
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
    "levenberg-marquardt": levenberg_marquardt,
    "gauss-newton": gauss_newton,
    "isam2": isam2,
}
solvers = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS.keys())


def measurements() -> tuple[list[Any], FloatArray]:
    """Return attitudes and noisy readings of the field with the bias."""
    random = np.random.default_rng(17)
    attitudes = [gtsam.Rot3.Expmap(random.normal(size=3) * 1.5) for _ in range(N)]
    field = STRENGTH * NORTH / np.linalg.norm(NORTH)
    return attitudes, np.array([r.unrotate(field) + BIAS + SIGMA * random.normal(size=3) for r in attitudes])


def graph_of(factors: Sequence[Factor], *priors: Any) -> Any:
    graph = gtsam.NonlinearFactorGraph()
    for prior in priors:
        graph.push_back(prior)
    for factor in factors:
        graph.push_back(factor.to_gtsam())
    return graph


def values_of(*values: Any) -> Any:
    made = gtsam.Values()
    for key, value in enumerate(values, 1):
        made.insert(key, value)
    return made


def weighted(attitudes: Sequence[Any], measured: FloatArray, weights: FloatArray) -> FloatArray:
    """Return field and bias (6,) of least squares with a weight for each measurement: a linear problem."""
    design = np.array([np.hstack([r.inverse().matrix(), np.eye(3)]) for r in attitudes])
    root = np.sqrt(weights)[:, None, None]
    rows, right = (root * design).reshape(-1, 6), (root[:, :, 0] * measured).ravel()
    solution: FloatArray = np.linalg.lstsq(rows, right, rcond=None)[0]
    return solution


def huber(attitudes: Sequence[Any], measured: FloatArray, k: float) -> FloatArray:
    """Return field and bias of Huber's loss of the whitened residual's length, by weights anew until they stay."""
    x = weighted(attitudes, measured, np.ones(len(measured)))
    for _ in range(500):
        residual = np.array([r.unrotate(x[:3]) + x[3:] for r in attitudes]) - measured
        length = np.linalg.norm(residual, axis=1) / SIGMA
        x, before = weighted(attitudes, measured, np.minimum(1.0, k / length)), x
        if abs(x - before).max() < 1e-10:
            return x
    raise AssertionError("weights do not settle")


def make_outliers() -> tuple[list[Any], FloatArray]:
    attitudes, measured = measurements()
    measured[::7] += [4000.0, -2500.0, 1500.0]
    return attitudes, measured


@pytest.mark.requirement("FAC-4:MagFactor2")
@solvers
def test_graph_estimates_field_and_bias(solve: Callable[[Any, Any], Any]) -> None:
    attitudes, measured = measurements()
    factors = [MagFactor2(1, 2, m, r, SIGMA) for r, m in zip(attitudes, measured, strict=True)]
    graph = graph_of(factors)
    assert isinstance(graph.at(0), gtsam.CustomFactor)
    found = solve(graph, values_of(np.array([1.0, 2.0, 3.0]), np.zeros(3)))
    expected = weighted(attitudes, measured, np.ones(N))
    assert found.atPoint3(1) == pytest.approx(expected[:3], abs=1e-9 * STRENGTH)
    assert found.atPoint3(2) == pytest.approx(expected[3:], abs=1e-9 * STRENGTH)
    design = np.array([np.hstack([r.inverse().matrix(), np.eye(3)]) for r in attitudes]).reshape(-1, 6)
    covariance = np.linalg.inv(design.T @ design) * SIGMA**2
    marginals = gtsam.Marginals(graph, found)
    assert marginals.marginalCovariance(2) == pytest.approx(covariance[3:, 3:], abs=1e-9 * SIGMA**2)


@pytest.mark.requirement("FAC-4:MagFactor3")
@solvers
def test_graph_estimates_scale_direction_and_bias(solve: Callable[[Any, Any], Any]) -> None:
    attitudes, measured = measurements()
    factors = [
        MagFactor3(1, 2, 3, m, r, nm.Isotropic.Sigma(3, SIGMA)) for r, m in zip(attitudes, measured, strict=True)
    ]
    start = values_of(0.8 * STRENGTH, gtsam.Unit3(np.array([0.7, -0.3, 0.6])), np.zeros(3))
    found = solve(graph_of(factors), start)
    expected = weighted(attitudes, measured, np.ones(N))
    assert found.atDouble(1) == pytest.approx(np.linalg.norm(expected[:3]), rel=1e-9, abs=0.0)
    assert found.atDouble(1) * found.atUnit3(2).point3() == pytest.approx(expected[:3], abs=1e-9 * STRENGTH)
    assert found.atPoint3(3) == pytest.approx(expected[3:], abs=1e-9 * STRENGTH)


@pytest.mark.requirement("FAC-4:robust")
@solvers
def test_robust_calibration(solve: Callable[[Any, Any], Any]) -> None:
    """Every seventh reading is 97 sigmas off. It biases least squares; Huber's loss is at its weighted optimum."""
    attitudes, measured = make_outliers()
    model = nm.Robust.Create(nm.mEstimator.Huber(1.345), nm.Isotropic.Sigma(3, SIGMA))
    two = [MagFactor2(1, 2, m, r, model) for r, m in zip(attitudes, measured, strict=True)]
    three = [MagFactor3(1, 2, 3, m, r, model) for r, m in zip(attitudes, measured, strict=True)]
    expected = huber(attitudes, measured, 1.345)
    field = STRENGTH * NORTH / np.linalg.norm(NORTH)
    drawn = weighted(attitudes, measured, np.ones(N))
    assert np.linalg.norm(drawn[3:] - BIAS) > 4.0 * np.linalg.norm(expected[3:] - BIAS)
    found = solve(graph_of(two), values_of(field, BIAS))
    tolerance = 1e-6 * STRENGTH  # weights are renewed once a step, which is linear convergence
    assert found.atPoint3(1) == pytest.approx(expected[:3], abs=tolerance)
    assert found.atPoint3(2) == pytest.approx(expected[3:], abs=tolerance)
    found = solve(graph_of(three), values_of(STRENGTH, gtsam.Unit3(field), BIAS))
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
    """Two known directions fix an attitude; exact readings give it back, in GTSAM's own factors and in ours."""
    if custom:
        monkeypatch.delattr(gtsam, "MagFactor1")
        monkeypatch.delattr(gtsam, "MagPoseFactorPose3")
    factors: list[Factor] = [
        MagFactor1(1, compute_reading(TRUTH, d), STRENGTH, d, BIAS, model) for d in (NORTH, GRAVITY)
    ]
    graph = graph_of(factors)
    assert isinstance(graph.at(0), gtsam.CustomFactor) is custom
    found = solve(graph, values_of(TRUTH.retract(np.array([0.2, -0.3, 0.1]))))
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
    start = values_of(gtsam.Pose3(TRUTH.retract(np.array([0.2, -0.3, 0.1])), position), position)
    found = solve(graph_of(factors, prior, tie), start)
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
    graph = graph_of([MagFactor(1, reading, STRENGTH, NORTH, BIAS, ROBUST)])
    assert isinstance(graph.at(0), gtsam.CustomFactor) is custom
    assert solve(graph, values_of(gtsam.Rot2(angle - 0.4))).atRot2(1).theta() == pytest.approx(angle, abs=1e-9)

    mounting = gtsam.Pose2(1.0, -2.0, -0.3)
    level = STRENGTH * np.linalg.norm(NORTH[:2]) / np.linalg.norm(NORTH)
    on_sensor = compute_reading(gtsam.Rot3.Yaw(angle - 0.3), NORTH)[:2]
    factor = MagPoseFactorPose2(1, on_sensor, level, NORTH[:2], BIAS[:2], [30.0, 70.0], mounting)
    tie = gtsam.PriorFactorPose2(1, gtsam.Pose2(3.0, 4.0, 0.0), nm.Diagonal.Sigmas(np.array([1.0, 1.0, 1e6])))
    found = solve(graph_of([factor], tie), values_of(gtsam.Pose2(3.0, 4.0, angle - 0.4))).atPose2(1)
    assert found.theta() == pytest.approx(angle, abs=1e-9)
    assert [found.x(), found.y()] == pytest.approx([3.0, 4.0], abs=1e-9)


@pytest.mark.requirement("FAC-4:mounting")
def test_noise_of_a_mounted_sensor_determines_the_optimum() -> None:
    """Two inexact readings, noise ten times as large along one axis of the sensor; the oracle is on the sensor."""
    mounting = gtsam.Pose3(gtsam.Rot3.RzRyRx(1.5, 0.9, -1.15), np.array([-0.1, 0.2, 0.3]))
    on_sensor, sigmas = TRUTH.compose(mounting.rotation()), [SIGMA, 10.0 * SIGMA, SIGMA]
    readings = [compute_reading(on_sensor, d) + 3000.0 * np.array([1.0, -1.0, 1.0]) for d in (NORTH, GRAVITY)]
    there = gtsam.NonlinearFactorGraph()
    for reading, d in zip(readings, (NORTH, GRAVITY), strict=True):
        there.push_back(
            gtsam.MagFactor1(1, reading, STRENGTH, gtsam.Unit3(d), BIAS, nm.Diagonal.Sigmas(np.array(sigmas)))
        )
    expected = levenberg_marquardt(there, values_of(on_sensor)).atRot3(1).compose(mounting.rotation().inverse())
    tie = gtsam.PriorFactorPose3(1, gtsam.Pose3(), nm.Diagonal.Sigmas(np.array([1e9] * 3 + [1.0] * 3)))
    start = values_of(gtsam.Pose3(TRUTH, np.zeros(3)))
    found = []
    for place in (mounting, mounting.matrix()):
        factors = [
            MagPoseFactorPose3(1, reading, STRENGTH, d, BIAS, sigmas, place)
            for reading, d in zip(readings, (NORTH, GRAVITY), strict=True)
        ]
        found.append(levenberg_marquardt(graph_of(factors, tie), start).atPose3(1).rotation())
    for attitude in found:
        assert attitude.matrix() == pytest.approx(expected.matrix(), abs=1e-8)
    careless = gtsam.NonlinearFactorGraph()
    careless.push_back(tie)
    for reading, d in zip(readings, (NORTH, GRAVITY), strict=True):
        model = nm.Diagonal.Sigmas(np.array(sigmas))
        careless.push_back(gtsam.MagPoseFactorPose3(1, reading, STRENGTH, d, BIAS, model, mounting))
    body = levenberg_marquardt(careless, start).atPose3(1).rotation()
    assert np.linalg.norm(body.localCoordinates(expected)) > 0.01


@pytest.mark.requirement("FAC-4:native")
@pytest.mark.parametrize("model", [None, SIGMA, [1.0, 2.0, 3.0], ROBUST], ids=["none", "one", "three", "robust"])
def test_custom_factor_equals_the_native_factor(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the wheel lacks a factor, its CustomFactor has the same error and the same linear factor."""
    factor = MagFactor1(1, compute_reading(TRUTH, NORTH), STRENGTH, NORTH, BIAS, model)
    native = factor.to_gtsam()
    assert isinstance(native, gtsam.MagFactor1)
    monkeypatch.delattr(gtsam, "MagFactor1")
    custom = factor.to_gtsam()
    assert isinstance(custom, gtsam.CustomFactor)
    values = values_of(TRUTH.retract(np.array([0.01, -0.02, 0.03])))
    assert custom.error(values) == pytest.approx(native.error(values), rel=1e-12, abs=0.0)
    assert custom.linearize(values).equals(native.linearize(values), 1e-7)
    assert list(custom.keys()) == [1]


@final
class Careless(Factor):
    """A factor with a mistake in it, as a user may write one."""

    variables = (double("scale"), vector_variable("bias", 3))

    def __init__(self, blocks: Any, residual: Any = (1.0, 1.0, 1.0)) -> None:
        """Keep what is handed out."""
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
        (Careless((GOOD[0],)), r"Jacobians of Careless: .*must be finite, of shapes \[\(3, 1\), \(3, 3\)\]"),
        (Careless(GOOD[::-1]), "Jacobians of Careless"),
        (Careless((*GOOD, GOOD[0])), "Jacobians of Careless"),
        (Careless((np.ones(3), np.eye(3))), "Jacobians of Careless"),
        (Careless((np.ones((2, 1)), np.eye(3))), "Jacobians of Careless"),
        (Careless((np.ones((3, 1)), np.full((3, 3), np.nan))), "Jacobians of Careless"),
        (Careless(GOOD, (0.0, 0.0)), "residual of Careless: .*must be 3 finite numbers"),
        (Careless(GOOD, (0.0, 0.0, np.inf)), "residual of Careless"),
    ],
)
def test_factor_error_does_not_end_the_process(factor: Factor, words: str) -> None:
    """GTSAM ends it by a signal, or goes on with a block of the wrong width."""
    values = values_of(1.0, np.zeros(3))
    with pytest.raises(FactorError, match=words):
        factor.to_gtsam().linearize(values)
    with pytest.raises(FactorError, match=words):
        levenberg_marquardt(graph_of([factor]), values)


@pytest.mark.requirement("FAC-4:checked")
def test_missing_values_of_a_graph_are_named() -> None:
    factor = MagFactor3(1, 2, 3, compute_reading(TRUTH, NORTH), TRUTH, SIGMA)
    wrong = values_of(STRENGTH, NORTH, BIAS)  # a vector where a direction belongs
    with pytest.raises(FactorError, match=r"value of 2 \(direction\): is of another kind; must be a Unit3"):
        graph_of([factor]).error(wrong)


@pytest.mark.requirement("FAC-4:MagFactor3")
def test_factors_stay_alive_in_the_graph() -> None:
    attitudes, measured = measurements()
    graph = graph_of([MagFactor3(1, 2, 3, m, r, SIGMA) for r, m in zip(attitudes, measured, strict=True)])
    import gc

    gc.collect()
    values = values_of(STRENGTH, gtsam.Unit3(NORTH), BIAS)
    field = STRENGTH * gtsam.Unit3(NORTH).point3()
    residual = np.array([r.unrotate(field) + BIAS for r in attitudes]) - measured
    assert graph.error(values) == pytest.approx(0.5 * (residual**2).sum() / SIGMA**2, rel=1e-12, abs=0.0)
