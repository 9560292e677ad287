"""Parts of the calibration without attitude: distances, curvature, derivatives, and sums corrected for noise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from navsense.calibration import _ellipsoid_fit, _power_sums
from navsense.calibration._ellipsoid_fit import (
    PAIRS,
    PARAMETERS,
    ROW_SIZE,
    PrincipalAxes,
    RowSums,
    estimate_variance,
    theta_from_matrix,
    theta_to_matrix,
)
from navsense.core.typing import FloatArray

pytestmark = [pytest.mark.requirement("FAC-6")]

AXES = np.array([0.7, 1.1, 1.6])


def make_axis_terms(axes: FloatArray) -> FloatArray:
    """Return a, 1/a and 1/a^2."""
    return np.concatenate([axes, 1.0 / axes, 1.0 / axes**2])


def compute_row(axes: FloatArray, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the row (11,) and the foot point (7,) of one point, in the axes of the ellipsoid."""
    rows, foot = np.empty((1, ROW_SIZE)), np.empty(7)
    _ellipsoid_fit._write_row(make_axis_terms(axes), float(point[0]), float(point[1]), float(point[2]), rows, 0, foot)
    return rows[0], foot


def find_distance(axes: FloatArray, point: FloatArray) -> float:
    """Return the distance to an ellipsoid by search on a coarse grid, then on finer grids around the minimum."""
    around, up, step = 0.0, 0.0, np.pi
    for _ in range(14):
        a, u = np.meshgrid(around + np.linspace(-step, step, 61), up + np.linspace(-step, step, 61))
        surface = np.stack([np.cos(u) * np.cos(a), np.cos(u) * np.sin(a), np.sin(u)], axis=-1) * axes
        away = np.linalg.norm(surface - point, axis=-1)
        best = np.unravel_index(int(away.argmin()), away.shape)
        around, up, step = float(a[best]), float(u[best]), step / 8.0
    return float(away.min())


@pytest.mark.parametrize("size", [0.3, 0.9, 1.0, 1.05, 4.0])
def test_distance_is_that_of_the_nearest_point(size: float) -> None:
    random = np.random.default_rng(1)
    v = random.normal(size=(6, 3))
    for point in size * AXES * v / np.linalg.norm(v, axis=1)[:, None]:
        row, foot = compute_row(AXES, point)
        assert abs(row[9]) == pytest.approx(find_distance(AXES, point), abs=1e-9)
        assert (row[9] > 0.0) == (size > 1.0) or abs(row[9]) < 1e-14
        assert AXES * foot[3:6] + row[9] * foot[:3] == pytest.approx(point, abs=1e-12)


@pytest.mark.parametrize(
    ("point", "distance"),
    [
        ((0.0, 0.0, 0.0), -0.7),  # the centre: the foot point is on the shortest axis
        ((2.0, 0.0, 0.0), 1.3),
        ((0.0, 0.0, -3.0), 1.4),
        ((0.0, 1.1, 0.0), 0.0),
        ((1e-300, 0.0, 2.0), 0.4),
        ((1e6, 0.0, 0.0), 1e6 - 0.7),
    ],
)
def test_distances_on_the_axes_are_exact(point: tuple[float, float, float], distance: float) -> None:
    row, _ = compute_row(AXES, np.array(point))
    assert np.isfinite(row).all()
    assert row[9] == pytest.approx(distance, rel=1e-12, abs=1e-15)


def test_centre_of_a_sphere_has_a_foot_point() -> None:
    row, _ = compute_row(np.ones(3), np.zeros(3))
    assert np.isfinite(row).all()
    assert row[9] == -1.0


def test_curvature_at_the_end_of_an_axis_is_exact() -> None:
    """At the end of axis z the principal curvatures are c / a^2 and c / b^2 (Gauss); on a sphere they are 1 / r."""
    a, b, c = AXES
    assert compute_row(AXES, np.array([0.0, 0.0, 1.7]))[0][10] == pytest.approx(
        0.5 * (c / a**2 + c / b**2), rel=1e-12, abs=0.0
    )
    assert compute_row(AXES, np.array([0.8, 0.0, 0.0]))[0][10] == pytest.approx(
        0.5 * (a / b**2 + a / c**2), rel=1e-12, abs=0.0
    )
    assert compute_row(np.full(3, 4.0), np.array([3.0, 2.0, 1.0]))[0][10] == pytest.approx(0.25, rel=1e-12, abs=0.0)


def test_noise_biases_the_distance_by_the_mean_curvature() -> None:
    """Gauss-Hermite quadrature gives the mean of d over normal noise of deviation h about a surface point."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    on, h = AXES * np.array([0.48, 0.6, 0.64]), 1e-3
    mean = sum(
        weights[i] * weights[j] * weights[k] * compute_row(AXES, on + h * nodes[[i, j, k]])[0][9]
        for i, j, k in product(range(5), repeat=3)
    )
    assert mean / h**2 == pytest.approx(compute_row(AXES, on)[0][10], rel=1e-4, abs=0.0)


def test_derivatives_equal_differences_of_the_distance() -> None:
    random = np.random.default_rng(2)
    for point in random.normal(size=(10, 3)) * AXES:
        row, _ = compute_row(AXES, point)
        if 1.0 + row[9] * row[10] < 0.3:  # near the centre, where the foot point jumps
            continue
        for number in range(PARAMETERS):
            ends = []
            for step in (-1e-5, 1e-5):
                theta = theta_from_matrix(np.zeros(3), np.diag(AXES))
                theta[number] += step
                axes, turn = np.linalg.eigh(theta_to_matrix(theta))
                ends.append(compute_row(axes, turn.T @ (point - theta[:3]))[0][9])
            assert (ends[1] - ends[0]) / 2e-5 == pytest.approx(row[number], abs=1e-7)


def test_tangential_noise_changes_the_derivatives() -> None:
    """The reference is the sum over two tangents of J_t J_t', with J_t by differences along the surface."""
    point = AXES * np.array([0.48, 0.6, 0.64])
    _, foot = compute_row(AXES, point)
    across = np.linalg.svd(foot[None, :3])[2][1:]
    expected = np.zeros((PARAMETERS, PARAMETERS))
    for tangent in across:
        ends = [compute_row(AXES, point + step * tangent)[0][:PARAMETERS] for step in (-1e-6, 1e-6)]
        change = (ends[1] - ends[0]) / 2e-6
        expected += np.outer(change, change)
    first, second = np.empty((1, PARAMETERS)), np.empty((1, PARAMETERS))
    _ellipsoid_fit._write_tangents(make_axis_terms(AXES), foot, first, second, 0)
    assert first.T @ first + second.T @ second == pytest.approx(expected, abs=1e-7)


def test_foot_points_of_many_readings() -> None:
    random = np.random.default_rng(3)
    turn, centre = np.linalg.qr(random.normal(size=(3, 3)))[0], np.array([0.3, -0.1, 0.2])
    field, out = random.normal(size=(20, 3)), np.empty((20, 5))
    _ellipsoid_fit.write_foot_points(field, PrincipalAxes(centre, turn, AXES), out)
    for point, found in zip(field, out, strict=True):
        row, foot = compute_row(AXES, turn.T @ (point - centre))
        assert found == pytest.approx([row[9], row[10], *foot[3:6]], abs=1e-12)


def test_sums_equal_numpy() -> None:
    """The reference is NumPy, row by row. The sums take two calls with blocks of 8 and 64."""
    random = np.random.default_rng(3)
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    centre, variance = np.array([0.3, -0.1, 0.2]), 1e-3
    field = (AXES * random.normal(size=(150, 3))) @ turn.T + centre
    rows = np.array([compute_row(AXES, turn.T @ (point - centre))[0] for point in field])
    surface = PrincipalAxes(centre, turn, AXES)
    blocks, noise_gram, score_gram = upper = RowSums(
        np.zeros((4, ROW_SIZE, ROW_SIZE)), np.zeros((PARAMETERS, PARAMETERS)), np.zeros((PARAMETERS, PARAMETERS))
    )
    parts, total = np.zeros((4, ROW_SIZE)), np.zeros((ROW_SIZE, ROW_SIZE))
    for first, last in ((0, 77), (77, 150)):
        batch = np.ascontiguousarray(field[first:last])
        _ellipsoid_fit.add_all(batch, surface, variance, first, parts, upper)
        _ellipsoid_fit.add_total(batch, surface, total)
    for level, length in enumerate((1, 8, 64)):
        full = len(rows) // length
        sums = rows[: full * length].reshape(full, length, ROW_SIZE).sum(axis=1)
        assert blocks[level] == pytest.approx(np.triu(sums.T @ sums), rel=1e-9, abs=1e-9)
    assert not blocks[3].any()
    assert total == pytest.approx(blocks[0], rel=1e-13, abs=1e-13)
    left = rows[:, 9] - variance * rows[:, 10]
    expected = (rows[:, :PARAMETERS] * left[:, None]).T @ (rows[:, :PARAMETERS] * left[:, None])
    assert score_gram == pytest.approx(np.triu(expected), rel=1e-9, abs=1e-9)
    changes = np.zeros((2, len(field), PARAMETERS))
    for k, point in enumerate(field):
        _ellipsoid_fit._write_tangents(
            make_axis_terms(AXES), compute_row(AXES, turn.T @ (point - centre))[1], changes[0], changes[1], k
        )
    expected = changes[0].T @ changes[0] + changes[1].T @ changes[1]
    assert noise_gram == pytest.approx(np.triu(expected), rel=1e-9, abs=1e-9)


@pytest.mark.compiled
def test_compiled_and_interpreted_sums_are_the_same(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    random = np.random.default_rng(4)
    field, turn = random.normal(size=(203, 3)), np.linalg.qr(random.normal(size=(3, 3)))[0]
    found: list[list[FloatArray]] = []
    for add_all, add_total, write_foot_points, add in (
        (
            _ellipsoid_fit.add_all,
            _ellipsoid_fit.add_total,
            _ellipsoid_fit.write_foot_points,
            _power_sums.add_powers,
        ),
        (
            interpret(_ellipsoid_fit.add_all),
            interpret(_ellipsoid_fit.add_total),
            interpret(_ellipsoid_fit.write_foot_points),
            interpret(_power_sums.add_powers),
        ),
    ):
        parts, blocks = np.zeros((4, ROW_SIZE)), np.zeros((4, ROW_SIZE, ROW_SIZE))
        noise_gram, score_gram, total = (
            np.zeros((PARAMETERS, PARAMETERS)),
            np.zeros((PARAMETERS, PARAMETERS)),
            np.zeros((ROW_SIZE, ROW_SIZE)),
        )
        sums, each = np.zeros(35), np.zeros((203, 5))
        surface = PrincipalAxes(np.zeros(3), turn, AXES)
        write_foot_points(field, surface, each)
        add_all(field, surface, 1e-3, 5, parts, RowSums(blocks, noise_gram, score_gram))
        add_total(field, surface, total)
        add(field, sums)
        found.append([parts, blocks, noise_gram, score_gram, total, sums, each])
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))


def test_variance_solves_its_equation() -> None:
    total = np.zeros((ROW_SIZE, ROW_SIZE))
    total[9, 9], total[9, 10], total[10, 10] = 2.0, 3.0, 50.0
    s = estimate_variance(total, 100)
    assert total[9, 9] - 2.0 * s * total[9, 10] + s * s * total[10, 10] == pytest.approx(100.0 * s, rel=1e-12, abs=0.0)
    total[10, 10] = 1e9  # no root: no noise explains the curvature
    assert estimate_variance(total, 100) == pytest.approx(0.02, rel=1e-12, abs=0.0)


def test_theta_round_trips_through_its_matrix() -> None:
    theta = np.arange(9.0)
    assert np.array_equal(theta_from_matrix(theta[:3], theta_to_matrix(theta)), theta)
    assert all(theta_to_matrix(theta)[row, column] == theta[3 + k] for k, (row, column) in enumerate(PAIRS))


# Sums of powers.


def compute_power_sums(field: FloatArray) -> FloatArray:
    """Return the 35 sums by NumPy."""
    return np.array([np.prod(field ** np.array(powers), axis=1).sum() for powers in _power_sums.EXPONENTS])


def test_power_sums_equal_numpy() -> None:
    field = np.random.default_rng(1).normal(size=(100, 3)) + (3.0, 4.0, 5.0)
    sums = np.zeros(35)
    _power_sums.add_powers((field - [3.0, 4.0, 5.0]) / 2.0, sums)
    assert sums == pytest.approx(compute_power_sums((field - (3.0, 4.0, 5.0)) / 2.0), rel=1e-10, abs=1e-10)
    expected = compute_power_sums(((field - (3.0, 4.0, 5.0)) / 2.0 - (0.1, 0.2, 0.3)) / 1.5)
    assert _power_sums.shift_powers(sums, np.array([0.1, 0.2, 0.3]), 1.5) == pytest.approx(
        expected, rel=1e-10, abs=1e-10
    )


def test_noise_correction_of_products_is_exact() -> None:
    """The mean over normal noise, exact by quadrature, minus the correction equals the products at the point."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    weights = weights / weights.sum()
    point, stddev = np.array([0.4, -0.7, 1.1]), 0.6
    means = np.zeros(35)
    for i, j, k in product(range(4), repeat=3):
        means += weights[i] * weights[j] * weights[k] * compute_power_sums((point + stddev * nodes[[i, j, k]])[None, :])
    zero, one, two = _power_sums.compute_noise_polynomial(means)
    monomials = np.array([np.prod(point ** np.array(powers)) for powers in _power_sums.QUADRIC])
    found = zero + stddev**2 * one + stddev**4 * two
    assert found == pytest.approx(np.outer(monomials, monomials), abs=1e-12)


@pytest.mark.compiled
def test_initial_ellipsoid_is_unbiased_unlike_least_squares() -> None:
    """With 10 percent noise and a million readings, the mean radius is within its scatter over 12 records."""
    random, ours, plain = np.random.default_rng(1), [], []
    matrix = np.diag([0.9, 1.0, 1.1])
    for _ in range(12):
        v = random.normal(size=(200_000, 3))
        v /= np.linalg.norm(v, axis=1)[:, None]
        sums = np.zeros(35)
        _power_sums.add_powers(v @ matrix + 0.1 * random.normal(size=v.shape), sums)
        ours.append(np.diag(_power_sums.estimate_initial_ellipsoid(sums, soft_iron=True).matrix))
        _, vectors = np.linalg.eigh(_power_sums.compute_noise_polynomial(sums / sums[0])[0])
        found = _power_sums._quadric_to_ellipsoid(vectors[:, 0])
        assert found is not None
        plain.append(np.diag(found.matrix))
    off = np.abs(np.mean(ours, axis=0) - np.diag(matrix)) / (np.std(ours, axis=0, ddof=1) / np.sqrt(12.0))
    assert off.max() < 9.5  # Student's t with 11 degrees of freedom, 1e-6 for each of three
    assert np.abs(np.mean(plain, axis=0) - np.diag(matrix)).max() > 30.0 * np.std(ours, axis=0).max() / np.sqrt(12.0)


def test_sums_of_another_surface_start_from_a_sphere() -> None:
    """The readings are on a hyperboloid, in a plane, and on a line."""
    random = np.random.default_rng(1)
    angle, up = random.uniform(0.0, 6.3, 500), random.uniform(-1.0, 1.0, 500)
    shapes = {
        "hyperboloid": np.column_stack([np.cosh(up) * np.cos(angle), np.cosh(up) * np.sin(angle), np.sinh(up)]),
        "plane": np.column_stack([up, angle, 0.0 * up]),
        "line": np.outer(up, [1.0, 2.0, 3.0]),
    }
    for name, field in shapes.items():
        for soft_iron in (True, False):
            sums = np.zeros(35)
            _power_sums.add_powers(field, sums)
            start = _power_sums.estimate_initial_ellipsoid(sums, soft_iron=soft_iron)
            assert np.isfinite(start.centre).all(), name
            assert np.linalg.eigvalsh(start.matrix)[0] > 0.0, name


def test_reference_search_finds_a_known_distance() -> None:
    """The search equals a one-dimensional solution at the end of an ellipse."""
    point = np.array([1.0, 0.0, 1.2])
    flat = minimize_scalar(lambda a: np.hypot(0.7 * np.cos(a) - 1.0, 1.6 * np.sin(a) - 1.2), bounds=(0.0, 1.57))
    assert find_distance(AXES, point) == pytest.approx(flat.fun, abs=1e-7)
