"""The reduced factors equal GTSAM graphs with a factor for every measurement."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from navsense.core.errors import FactorError
from navsense.core.typing import AnyArray
from navsense.factors import MagFactor2, MagFactor3, ReducedMagFactor2, ReducedMagFactor3

gtsam = pytest.importorskip("gtsam")
numerical = pytest.importorskip("gtsam.utils.numerical_derivative")

pytestmark = pytest.mark.requirement("FAC-6:reduced")

FIELD = np.array([22653.29982, -1956.83010, 44202.47862])
BIAS = np.array([310.0, -720.0, 150.0])
"""Field of GTSAM's tests and bias, nT."""

SAME = 1e-9
"""Noise, nT."""

COVARIANCE = 2500.0 * np.array([[1.0, 0.3, -0.2], [0.3, 2.0, 0.4], [-0.2, 0.4, 0.7]])
MODELS: dict[str, tuple[object, AnyArray]] = {
    "one sigma": (50.0, 2500.0 * np.eye(3)),
    "three sigmas": (np.array([40.0, 50.0, 90.0]), np.diag([1600.0, 2500.0, 8100.0])),
    "covariance": (COVARIANCE, COVARIANCE),
    "gtsam's": (gtsam.noiseModel.Gaussian.Covariance(COVARIANCE), COVARIANCE),
    "none": (None, np.eye(3)),
}


def make_measurements(count: int, seed: int = 1) -> tuple[AnyArray, AnyArray]:
    """Return measurements (n, 3) nT at random attitudes (n, 4), with noise of 50 nT."""
    random = np.random.default_rng(seed)
    quaternion = random.normal(size=(count, 4))
    quaternion /= np.linalg.norm(quaternion, axis=1)[:, None]
    turned = [gtsam.Rot3(*q).unrotate(FIELD) for q in quaternion]
    return np.array(turned) + BIAS + 50.0 * random.normal(size=(count, 3)), quaternion


def make_factor2(measured: AnyArray, q: AnyArray, model: Any) -> Any:
    """Return a CustomFactor of one measurement that uses GTSAM's arithmetic only."""
    rotation = gtsam.Rot3(*q)
    jacobians = [rotation.matrix().T, np.eye(3)]

    def evaluate(_: Any, values: Any, blocks: Any) -> AnyArray:
        if blocks is not None:
            blocks[0], blocks[1] = jacobians
        return rotation.unrotate(values.atPoint3(1)) + values.atPoint3(2) - measured

    return gtsam.CustomFactor(model, [1, 2], evaluate)


def make_factor3(measured: AnyArray, q: AnyArray, model: Any) -> Any:
    """Return such a factor with scale, direction and bias."""
    rotation = gtsam.Rot3(*q)

    def evaluate(_: Any, values: Any, blocks: Any) -> AnyArray:
        scale, direction = values.atDouble(1), values.atUnit3(2)
        body_field = rotation.unrotate(direction.point3())
        if blocks is not None:
            blocks[0], blocks[2] = body_field[:, None], np.eye(3)
            blocks[1] = scale * rotation.matrix().T @ direction.basis()
        return scale * body_field + values.atPoint3(3) - measured

    return gtsam.CustomFactor(model, [1, 2, 3], evaluate)


def make_graph(*factors: Any) -> Any:
    """Return a graph of GTSAM factors."""
    complete = gtsam.NonlinearFactorGraph()
    for factor in factors:
        complete.add(factor)
    return complete


def make_values2(field: AnyArray = FIELD, bias: AnyArray = BIAS) -> Any:
    values = gtsam.Values()
    values.insert(1, field)
    values.insert(2, bias)
    return values


def make_values3(scale: float = 4e4, direction: AnyArray = FIELD, bias: AnyArray = BIAS) -> Any:
    values = gtsam.Values()
    values.insert(1, scale)
    values.insert(2, gtsam.Unit3(direction))
    values.insert(3, bias)
    return values


def optimise_by_levenberg_marquardt(complete: Any, start: Any) -> Any:
    """Return the optimum of Levenberg-Marquardt without a convergence tolerance."""
    parameters = gtsam.LevenbergMarquardtParams()
    parameters.setRelativeErrorTol(0.0)
    parameters.setAbsoluteErrorTol(0.0)
    parameters.setMaxIterations(15)
    parameters.setLinearSolverType("MULTIFRONTAL_QR")
    return gtsam.LevenbergMarquardtOptimizer(complete, start, parameters).optimize()


def optimise(complete: Any, start: Any) -> Any:
    """Return the optimum of a graph. The last steps are linear: the sum of squares does not resolve 1e-7 nT."""
    values = optimise_by_levenberg_marquardt(complete, start)
    for _ in range(3):
        values = values.retract(complete.linearize(values).optimize())
    return values


def list_field_and_bias(values: Any) -> AnyArray:
    """Return field and bias (6,) from the values of either factor."""
    if values.size() == 2:
        return np.concatenate((values.atPoint3(1), values.atPoint3(2)))
    return np.concatenate((values.atDouble(1) * values.atUnit3(2).point3(), values.atPoint3(3)))


@pytest.mark.requirement("FAC-4", "FAC-1:MagFactor2", "FAC-1:MagFactor3")
@pytest.mark.parametrize("name", MODELS)
def test_optimum_equals_that_of_separate_factors(name: str) -> None:
    measured, quaternion = make_measurements(300)
    model, covariance = MODELS[name]
    noise = gtsam.noiseModel.Gaussian.Covariance(covariance)
    second = ReducedMagFactor2(1, 2, measured, quaternion, model)
    third = ReducedMagFactor3(1, 2, 3, measured, quaternion, model)
    full2 = make_graph(*(make_factor2(m, q, noise) for m, q in zip(measured, quaternion, strict=True)))
    full3 = make_graph(*(make_factor3(m, q, noise) for m, q in zip(measured, quaternion, strict=True)))
    expected = list_field_and_bias(optimise(full2, make_values2()))
    far = (FIELD[[2, 0, 1]], np.zeros(3))
    for got in (
        list_field_and_bias(optimise_by_levenberg_marquardt(make_graph(second.to_gtsam()), make_values2(*far))),
        list_field_and_bias(optimise(full3, make_values3())),
        list_field_and_bias(optimise_by_levenberg_marquardt(make_graph(third.to_gtsam()), make_values3(3e4, *far))),
        np.concatenate(second.optimum()),
    ):
        assert np.abs(got - expected).max() < SAME
    scale, direction, bias = third.optimum()
    assert np.abs(np.concatenate((scale * direction, bias)) - expected).max() < SAME


@pytest.mark.requirement("FAC-2:reduced")
@pytest.mark.parametrize("name", MODELS)
def test_error_equals_that_of_separate_factors_at_any_value(name: str) -> None:
    measured, quaternion = make_measurements(80)
    model, covariance = MODELS[name]
    noise = gtsam.noiseModel.Gaussian.Covariance(covariance)
    second = ReducedMagFactor2(1, 2, measured, quaternion, model)
    third = ReducedMagFactor3(1, 2, 3, measured, quaternion, model)
    full2 = make_graph(*(make_factor2(m, q, noise) for m, q in zip(measured, quaternion, strict=True)))
    full3 = make_graph(*(make_factor3(m, q, noise) for m, q in zip(measured, quaternion, strict=True)))
    random = np.random.default_rng(3)
    for spread in (0.0, 10.0, 1e3, 1e5):
        field, bias = FIELD + spread * random.normal(size=3), BIAS + spread * random.normal(size=3)
        at = make_values2(field, bias)
        # the sums contain squares of 5e4 and more, with a relative rounding of 1e-13
        size = 1e-13 * 0.5 * np.einsum("ni,ij,nj->", measured, np.linalg.inv(covariance), measured)
        assert second.error(at) + second.constant == pytest.approx(full2.error(at), rel=1e-12, abs=size)
        assert second.error({1: field, 2: bias}) == second.error(at)
        assert second.to_gtsam().error(at) == pytest.approx(second.error(at), rel=1e-14, abs=0.0)
        at = make_values3(float(np.linalg.norm(field)), field, bias)
        assert third.error(at) + third.constant == pytest.approx(full3.error(at), rel=1e-12, abs=size)


@pytest.mark.requirement("FAC-4")
def test_covariance_equals_that_of_separate_factors() -> None:
    measured, quaternion = make_measurements(200)
    noise = gtsam.noiseModel.Gaussian.Covariance(COVARIANCE)
    full = make_graph(*(make_factor3(m, q, noise) for m, q in zip(measured, quaternion, strict=True)))
    reduced = make_graph(ReducedMagFactor3(1, 2, 3, measured, quaternion, COVARIANCE).to_gtsam())
    at = optimise(full, make_values3())
    for key in (1, 2, 3):
        expected = gtsam.Marginals(full, at).marginalCovariance(key)
        got = gtsam.Marginals(reduced, at).marginalCovariance(key)
        assert np.abs(got / expected - 1.0).max() < 1e-9


def test_factor_has_six_rows_for_any_number_of_measurements() -> None:
    for count in (1, 2, 50):
        factor = ReducedMagFactor2(1, 2, *make_measurements(count), 50.0)
        assert factor.count == count
        assert factor.dim() == factor.to_gtsam().dim() == 6
        assert factor.linearize(make_values2()).rows() == 6


@pytest.mark.requirement("FAC-2:reduced")
def test_derivatives_equal_gtsam_numerical_derivatives() -> None:
    measured, quaternion = make_measurements(20)
    for direction in (FIELD, [1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]):
        third = ReducedMagFactor3(1, 2, 3, measured / 5e4, quaternion)
        at = (1.3, gtsam.Unit3(np.array(direction)), BIAS / 5e4)
        h = [np.zeros((6, 1)), np.zeros((6, 2)), np.zeros((6, 3))]
        third.evaluateError(*at, *h)

        def error(scale: Any, direction: Any, bias: AnyArray, factor: ReducedMagFactor3 = third) -> AnyArray:
            return factor.evaluateError(float(np.squeeze(scale)), direction, bias)

        for k, name in enumerate(("numericalDerivative31", "numericalDerivative32", "numericalDerivative33")):
            assert np.abs(getattr(numerical, name)(error, *at) - h[k]).max() < 1e-8
    second = ReducedMagFactor2(1, 2, measured / 5e4, quaternion)
    h = [np.zeros((6, 3)), np.zeros((6, 3))]
    second.evaluateError(FIELD / 5e4, BIAS / 5e4, *h)
    for k, name in enumerate(("numericalDerivative21", "numericalDerivative22")):
        assert np.abs(getattr(numerical, name)(second.evaluateError, FIELD / 5e4, BIAS / 5e4) - h[k]).max() < 1e-8


@pytest.mark.requirement("FAC-4")
@pytest.mark.parametrize("exchanged", [False, True])
def test_batches_can_be_added_to_isam(exchanged: bool) -> None:
    """Each batch is a new factor, or replaces a factor that contains the earlier batches."""
    measured, quaternion = make_measurements(120)
    complete = ReducedMagFactor3(1, 2, 3, measured, quaternion, 50.0)
    parameters = gtsam.ISAM2Params()
    parameters.setRelinearizeThreshold(0.0)
    parameters.relinearizeSkip = 1
    isam = gtsam.ISAM2(parameters)
    start, factor, place = make_values3(), None, None
    for first in range(0, 120, 40):
        batch = slice(first, first + 40)
        if factor is None or not exchanged:
            factor = ReducedMagFactor3(1, 2, 3, measured[batch], quaternion[batch], 50.0)
        else:
            factor = factor.with_measurements(measured[batch], quaternion[batch])
        gone: list[int] = [] if place is None or not exchanged else [place]
        result = isam.update(make_graph(factor.to_gtsam()), start, gone)
        place = result.getNewFactorsIndices()[0]
        start = gtsam.Values()
    for _ in range(5):
        isam.update()
    scale, direction, bias = complete.optimum()
    got = list_field_and_bias(isam.calculateBestEstimate())
    assert np.abs(got - np.concatenate((scale * direction, bias))).max() < SAME
    assert isam.getFactorsUnsafe().nrFactors() == (1 if exchanged else 3)


@pytest.mark.requirement("FAC-4")
@pytest.mark.parametrize("rounds", [1, 2])
def test_reduced_factor_works_with_a_robust_prior(rounds: int) -> None:
    """One factor, or its two halves, with a robust model on another factor of the same unknowns."""
    measured, quaternion = make_measurements(60)
    huber = gtsam.noiseModel.Robust.Create(
        gtsam.noiseModel.mEstimator.Huber.Create(1.345), gtsam.noiseModel.Isotropic.Sigma(3, 20.0)
    )
    prior = gtsam.PriorFactorPoint3(2, np.array([500.0, 0.0, 0.0]), huber)
    noise = gtsam.noiseModel.Isotropic.Sigma(3, 50.0)
    full = make_graph(prior, *(make_factor2(m, q, noise) for m, q in zip(measured, quaternion, strict=True)))
    halves = np.array_split(np.arange(60), rounds)
    reduced = make_graph(prior, *(ReducedMagFactor2(1, 2, measured[i], quaternion[i], 50.0).to_gtsam() for i in halves))
    assert (
        np.abs(
            list_field_and_bias(optimise(reduced, make_values2())) - list_field_and_bias(optimise(full, make_values2()))
        ).max()
        < SAME
    )


def test_updates_do_not_depend_on_block_size() -> None:
    measured, quaternion = make_measurements(400)
    complete = ReducedMagFactor2(1, 2, measured, quaternion, COVARIANCE)
    for cuts in ([1], [63, 64, 65], [128], [399], [10, 10, 200]):
        ends = [*cuts, 400]
        factor = ReducedMagFactor2(1, 2, measured[: ends[0]], quaternion[: ends[0]], COVARIANCE)
        for first, last in itertools.pairwise(ends):
            factor = factor.with_measurements(measured[first:last], quaternion[first:last]) if last > first else factor
        assert factor._data() == complete._data()
        assert factor.equals(complete, 0.0)
        assert factor.count == 400


def test_update_returns_a_new_factor() -> None:
    measured, quaternion = make_measurements(100)
    factor = ReducedMagFactor2(1, 2, measured[:50], quaternion[:50], 50.0)
    in_graph, before = factor.to_gtsam(), factor.error(make_values2())
    more = factor.with_measurements(measured[50:], quaternion[50:])
    assert factor.error(make_values2()) == before == pytest.approx(in_graph.error(make_values2()), rel=1e-14, abs=0.0)
    assert (factor.count, more.count) == (50, 100)
    assert not more.equals(factor)
    assert pickle.loads(pickle.dumps(more)).equals(more, 0.0)  # noqa: S301 - our own


def test_unobservable_terms_are_omitted() -> None:
    """Rotations about one axis do not separate field and bias along it. With a prior, the graphs agree."""
    random = np.random.default_rng(5)
    angles = random.uniform(-3.0, 3.0, 50)
    quaternion = np.column_stack((np.cos(angles / 2), np.zeros((50, 2)), np.sin(angles / 2)))
    measured = np.array([gtsam.Rot3(*q).unrotate(FIELD) for q in quaternion]) + BIAS
    factor = ReducedMagFactor2(1, 2, measured, quaternion, 50.0)
    with pytest.raises(FactorError, match=r"do not separate the field from the bias.*turn the sensor"):
        factor.optimum()
    prior = gtsam.PriorFactorPoint3(2, np.zeros(3), gtsam.noiseModel.Isotropic.Sigma(3, 100.0))
    noise = gtsam.noiseModel.Isotropic.Sigma(3, 50.0)
    full = make_graph(prior, *(make_factor2(m, q, noise) for m, q in zip(measured, quaternion, strict=True)))
    got, expected = optimise(make_graph(prior, factor.to_gtsam()), make_values2()), optimise(full, make_values2())
    assert np.abs(list_field_and_bias(got) - list_field_and_bias(expected)).max() < SAME
    with pytest.raises(FactorError, match="attitudes of 1 measurements"):
        ReducedMagFactor3(1, 2, 3, measured[0], quaternion[0], 50.0).optimum()


@pytest.mark.parametrize("sway", [1e-3, 1e-5, 1e-6])
def test_rotation_below_rounding_has_no_optimum(sway: float) -> None:
    """Field and bias are accurate to a millionth of the field, or an error is raised."""
    random = np.random.default_rng(6)
    angles = np.column_stack((random.uniform(-3.0, 3.0, 200), random.uniform(-sway, sway, 200)))
    turned = Rotation.from_euler("ZX", angles)
    quaternion = turned.as_quat()[:, [3, 0, 1, 2]]
    factor = ReducedMagFactor2(1, 2, turned.inv().apply(FIELD) + BIAS, quaternion, 50.0)
    if sway < 1e-4:
        with pytest.raises(FactorError, match="do not separate the field from the bias"):
            factor.optimum()
    else:
        field, bias = factor.optimum()
        off = np.abs(np.concatenate((field - FIELD, bias - BIAS))).max()
        assert off < 1e-6 * np.linalg.norm(FIELD)


def test_fit_without_noise_is_exact() -> None:
    measured, quaternion = make_measurements(90)
    exact = np.array([gtsam.Rot3(*q).unrotate(FIELD) for q in quaternion]) + BIAS
    factor = ReducedMagFactor2(1, 2, exact, quaternion, 50.0)
    field, bias = factor.optimum()
    assert np.abs(field - FIELD).max() < SAME
    assert np.abs(bias - BIAS).max() < SAME
    # |y|^2 / 2 is 4e7, with a relative rounding of 1e-14
    assert 0.0 <= factor.constant < 4e-7
    assert ReducedMagFactor2(1, 2, measured, quaternion, 50.0).constant > 1.0


@pytest.mark.compiled
def test_hundred_thousand_measurements_keep_precision() -> None:
    """The reference is least squares on all rows without sums (LAPACK, by singular values)."""
    random = np.random.default_rng(7)
    quaternion = random.normal(size=(100_000, 4))
    quaternion /= np.linalg.norm(quaternion, axis=1)[:, None]
    from scipy.spatial.transform import Rotation

    matrices = Rotation.from_quat(quaternion[:, [1, 2, 3, 0]]).as_matrix()
    measured = np.einsum("nji,j->ni", matrices, FIELD) + BIAS + 50.0 * random.normal(size=(100_000, 3))
    left = np.concatenate((matrices.transpose(0, 2, 1), np.tile(np.eye(3), (100_000, 1, 1))), axis=2).reshape(-1, 6)
    expected, residual, *_ = np.linalg.lstsq(left, measured.ravel(), rcond=None)
    factor = ReducedMagFactor3(1, 2, 3, measured, quaternion, 50.0)
    scale, direction, bias = factor.optimum()
    assert np.abs(np.concatenate((scale * direction, bias)) - expected).max() < SAME
    assert factor.constant == pytest.approx(0.5 * residual[0] / 2500.0, rel=1e-9, abs=0.0)
    parts = np.array_split(np.arange(100_000), 7)
    pieces = ReducedMagFactor3(1, 2, 3, measured[parts[0]], quaternion[parts[0]], 50.0)
    for part in parts[1:]:
        pieces = pieces.with_measurements(measured[part], quaternion[part])
    assert pieces.equals(factor, 0.0)


@pytest.mark.requirement("FAC-1:MagFactor2", "FAC-1:MagFactor3")
def test_reduced_factor_equals_the_sum_of_single_factors() -> None:
    measured, quaternion = make_measurements(30)
    at = make_values2(FIELD * 1.01, BIAS * 0.5)
    singles = sum(MagFactor2(1, 2, m, q, COVARIANCE).error(at) for m, q in zip(measured, quaternion, strict=True))
    factor = ReducedMagFactor2(1, 2, measured, quaternion, COVARIANCE)
    assert factor.error(at) + factor.constant == pytest.approx(singles, rel=1e-11, abs=0.0)
    at = make_values3()
    singles = sum(MagFactor3(1, 2, 3, m, q, 50.0).error(at) for m, q in zip(measured, quaternion, strict=True))
    third = ReducedMagFactor3(1, 2, 3, measured, quaternion, 50.0)
    assert third.error(at) + third.constant == pytest.approx(singles, rel=1e-11, abs=0.0)


@pytest.mark.parametrize(
    ("measured", "attitudes", "words"),
    [
        (np.empty((0, 3)), np.empty((0, 4)), "rows of measured: 0; must be 1"),
        (np.ones((2, 3)), np.tile([1.0, 0, 0, 0], (3, 1)), "rows of nRb: 3; must be 2"),
        (np.ones(3), np.tile([1.0, 0, 0, 0], (3, 1)), "rows of measured: 1; must be 3"),
        (np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]]), [1.0, 0, 0, 0], "measured of row 1.*finite"),
        (np.full((2, 3), 1e200), [1.0, 0, 0, 0], "row 0.*overflows"),
        (np.ones((2, 3)), [1.0, 0.1, 0, 0], "nRb.*rotation"),
        (np.ones((2, 4)), [1.0, 0, 0, 0], "shape of measured"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # from scalars of the interpreter
def test_errors_name_the_problem(measured: AnyArray, attitudes: AnyArray, words: str) -> None:
    with pytest.raises(FactorError, match=words):
        ReducedMagFactor2(1, 2, measured, attitudes, 50.0)
    factor = ReducedMagFactor2(1, 2, *make_measurements(5), 50.0)
    with pytest.raises(FactorError, match=words):
        factor.with_measurements(measured, attitudes)
    assert factor.equals(ReducedMagFactor2(1, 2, *make_measurements(5), 50.0), 0.0)


def test_robust_and_unequal_noise_models_are_errors() -> None:
    huber = gtsam.noiseModel.Robust.Create(
        gtsam.noiseModel.mEstimator.Huber.Create(1.345), gtsam.noiseModel.Isotropic.Sigma(3, 50.0)
    )
    with pytest.raises(FactorError, match=r"robust.*MagFactor2 or MagFactor3 to each"):
        ReducedMagFactor2(1, 2, *make_measurements(5), huber)
    with pytest.raises(FactorError, match="cannot be exchanged"):
        ReducedMagFactor2(1, 2, *make_measurements(5), 50.0).cloneWithNewNoiseModel(3.0)
    with pytest.raises(FactorError, match="zero: no direction"):
        ReducedMagFactor3(1, 2, 3, np.zeros((20, 3)), make_measurements(20)[1], 50.0).optimum()


def test_repr_shows_the_content() -> None:
    factor = ReducedMagFactor2(1, 2, *make_measurements(5), 50.0)
    expected = (
        "Factor\n  keys = { 1 2 }\n  noise model: unit (6) \nmeasurements: 5, each of\nisotropic dim=3 sigma=50\n"
    )
    assert repr(factor) == expected
