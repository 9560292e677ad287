"""The parts of the calibration without attitude: distances, curvature, derivatives, and sums freed from noise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from navsense.calibration import _ellipsoid_distance, _power_sums
from navsense.calibration._ellipsoid_distance import PARAMETERS, ROW_SIZE
from navsense.calibration._ellipsoid_fit import PAIRS, estimate_variance, theta_from_matrix, theta_to_matrix
from navsense.core.typing import FloatArray

pytestmark = [pytest.mark.requirement("FAC-6")]

AXES = np.array([0.7, 1.1, 1.6])


def compute_powers(axes: FloatArray) -> FloatArray:
    """Return a, 1/a and 1/a^2."""
    return np.concatenate([axes, 1.0 / axes, 1.0 / axes**2])


def row_of(axes: FloatArray, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the row (11,) and the foot (7,) of one point, in the ellipsoid's axes."""
    rows, foot = np.empty((1, ROW_SIZE)), np.empty(7)
    _ellipsoid_distance._row(compute_powers(axes), float(point[0]), float(point[1]), float(point[2]), rows, 0, foot)
    return rows[0], foot


def nearest(axes: FloatArray, point: FloatArray) -> float:
    """Return the distance to an ellipsoid by a search over it: a fine grid, then finer ones about the best."""
    around, up, step = 0.0, 0.0, np.pi
    for _ in range(14):
        a, u = np.meshgrid(around + np.linspace(-step, step, 61), up + np.linspace(-step, step, 61))
        surface = np.stack([np.cos(u) * np.cos(a), np.cos(u) * np.sin(a), np.sin(u)], axis=-1) * axes
        away = np.linalg.norm(surface - point, axis=-1)
        best = np.unravel_index(int(away.argmin()), away.shape)
        around, up, step = float(a[best]), float(u[best]), step / 8.0
    return float(away.min())


@pytest.mark.parametrize("size", [0.3, 0.9, 1.0, 1.05, 4.0])
def test_distance_is_to_the_nearest_point(size: float) -> None:
    random = np.random.default_rng(1)
    v = random.normal(size=(6, 3))
    for point in size * AXES * v / np.linalg.norm(v, axis=1)[:, None]:
        row, foot = row_of(AXES, point)
        assert abs(row[9]) == pytest.approx(nearest(AXES, point), abs=1e-9)
        assert (row[9] > 0.0) == (size > 1.0) or abs(row[9]) < 1e-14
        assert AXES * foot[3:6] + row[9] * foot[:3] == pytest.approx(point, abs=1e-12)


@pytest.mark.parametrize(
    ("point", "distance"),
    [
        ((0.0, 0.0, 0.0), -0.7),  # the centre: along the shortest axis
        ((2.0, 0.0, 0.0), 1.3),
        ((0.0, 0.0, -3.0), 1.4),
        ((0.0, 1.1, 0.0), 0.0),
        ((1e-300, 0.0, 2.0), 0.4),
        ((1e6, 0.0, 0.0), 1e6 - 0.7),
    ],
)
def test_distance_of_points_on_the_axes(point: tuple[float, float, float], distance: float) -> None:
    row, _ = row_of(AXES, np.array(point))
    assert np.isfinite(row).all()
    assert row[9] == pytest.approx(distance, rel=1e-12, abs=1e-15)


def test_centre_of_a_sphere_has_a_nearest_point() -> None:
    row, _ = row_of(np.ones(3), np.zeros(3))
    assert np.isfinite(row).all()
    assert row[9] == -1.0


def test_curvature_at_the_ends_of_the_axes() -> None:
    """At the end of axis z the principal curvatures are c / a^2 and c / b^2 (Gauss); of a sphere everywhere 1 / r."""
    a, b, c = AXES
    assert row_of(AXES, np.array([0.0, 0.0, 1.7]))[0][10] == pytest.approx(
        0.5 * (c / a**2 + c / b**2), rel=1e-12, abs=0.0
    )
    assert row_of(AXES, np.array([0.8, 0.0, 0.0]))[0][10] == pytest.approx(
        0.5 * (a / b**2 + a / c**2), rel=1e-12, abs=0.0
    )
    assert row_of(np.full(3, 4.0), np.array([3.0, 2.0, 1.0]))[0][10] == pytest.approx(0.25, rel=1e-12, abs=0.0)


def test_noise_shifts_the_mean_distance_by_the_mean_curvature() -> None:
    """The mean of d over a normal of deviation h about a point of the surface, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    on, h = AXES * np.array([0.48, 0.6, 0.64]), 1e-3
    mean = sum(
        weights[i] * weights[j] * weights[k] * row_of(AXES, on + h * nodes[[i, j, k]])[0][9]
        for i, j, k in product(range(5), repeat=3)
    )
    assert mean / h**2 == pytest.approx(row_of(AXES, on)[0][10], rel=1e-4, abs=0.0)


def test_derivatives_equal_differences_of_the_distance() -> None:
    random = np.random.default_rng(2)
    for point in random.normal(size=(10, 3)) * AXES:
        row, _ = row_of(AXES, point)
        if 1.0 + row[9] * row[10] < 0.3:  # near the middle, where the foot jumps
            continue
        for number in range(PARAMETERS):
            ends = []
            for step in (-1e-5, 1e-5):
                theta = theta_from_matrix(np.zeros(3), np.diag(AXES))
                theta[number] += step
                axes, turn = np.linalg.eigh(theta_to_matrix(theta))
                ends.append(row_of(axes, turn.T @ (point - theta[:3]))[0][9])
            assert (ends[1] - ends[0]) / 2e-5 == pytest.approx(row[number], abs=1e-7)


def test_tangential_noise_changes_the_derivatives() -> None:
    """The sum over two tangents of J_t J_t', J_t by differences along the surface."""
    point = AXES * np.array([0.48, 0.6, 0.64])
    _, foot = row_of(AXES, point)
    across = np.linalg.svd(foot[None, :3])[2][1:]
    wanted = np.zeros((PARAMETERS, PARAMETERS))
    for tangent in across:
        ends = [row_of(AXES, point + step * tangent)[0][:PARAMETERS] for step in (-1e-6, 1e-6)]
        change = (ends[1] - ends[0]) / 2e-6
        wanted += np.outer(change, change)
    first, second = np.empty((1, PARAMETERS)), np.empty((1, PARAMETERS))
    _ellipsoid_distance._tangents(compute_powers(AXES), foot, first, second, 0)
    assert first.T @ first + second.T @ second == pytest.approx(wanted, abs=1e-7)


def test_nearest_points_of_many_readings() -> None:
    random = np.random.default_rng(3)
    turn, centre = np.linalg.qr(random.normal(size=(3, 3)))[0], np.array([0.3, -0.1, 0.2])
    field, out = random.normal(size=(20, 3)), np.empty((20, 5))
    _ellipsoid_distance.foot_points(field, centre, turn, AXES, out)
    for point, found in zip(field, out, strict=True):
        row, foot = row_of(AXES, turn.T @ (point - centre))
        assert found == pytest.approx([row[9], row[10], *foot[3:6]], abs=1e-12)


def test_sums_of_rows_equal_numpy() -> None:
    """Against NumPy on rows taken one by one, over two calls that cut blocks of 8 and 64."""
    random = np.random.default_rng(3)
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    centre, variance = np.array([0.3, -0.1, 0.2]), 1e-3
    field = (AXES * random.normal(size=(150, 3))) @ turn.T + centre
    rows = np.array([row_of(AXES, turn.T @ (point - centre))[0] for point in field])
    blocks, noisy, scores = (
        np.zeros((4, ROW_SIZE, ROW_SIZE)),
        np.zeros((PARAMETERS, PARAMETERS)),
        np.zeros((PARAMETERS, PARAMETERS)),
    )
    parts, total = np.zeros((4, ROW_SIZE)), np.zeros((ROW_SIZE, ROW_SIZE))
    for first, last in ((0, 77), (77, 150)):
        part = np.ascontiguousarray(field[first:last])
        _ellipsoid_distance.add_all(part, centre, turn, AXES, first, parts, variance, blocks, noisy, scores)
        _ellipsoid_distance.add_total(part, centre, turn, AXES, total)
    for level, length in enumerate((1, 8, 64)):
        full = len(rows) // length
        sums = rows[: full * length].reshape(full, length, ROW_SIZE).sum(axis=1)
        assert blocks[level] == pytest.approx(np.triu(sums.T @ sums), rel=1e-9, abs=1e-9)
    assert not blocks[3].any()
    assert total == pytest.approx(blocks[0], rel=1e-13, abs=1e-13)
    left = rows[:, 9] - variance * rows[:, 10]
    wanted = (rows[:, :PARAMETERS] * left[:, None]).T @ (rows[:, :PARAMETERS] * left[:, None])
    assert scores == pytest.approx(np.triu(wanted), rel=1e-9, abs=1e-9)
    changes = np.zeros((2, len(field), PARAMETERS))
    for k, point in enumerate(field):
        _ellipsoid_distance._tangents(
            compute_powers(AXES), row_of(AXES, turn.T @ (point - centre))[1], changes[0], changes[1], k
        )
    wanted = changes[0].T @ changes[0] + changes[1].T @ changes[1]
    assert noisy == pytest.approx(np.triu(wanted), rel=1e-9, abs=1e-9)


@pytest.mark.compiled
def test_compiled_and_interpreted_sums_are_the_same(interpreted: Callable[[Any], Callable[..., Any]]) -> None:
    random = np.random.default_rng(4)
    field, turn = random.normal(size=(203, 3)), np.linalg.qr(random.normal(size=(3, 3)))[0]
    found: list[list[FloatArray]] = []
    for add_all, add_total, foot_points, add in (
        (
            _ellipsoid_distance.add_all,
            _ellipsoid_distance.add_total,
            _ellipsoid_distance.foot_points,
            _power_sums.add_powers,
        ),
        (
            interpreted(_ellipsoid_distance.add_all),
            interpreted(_ellipsoid_distance.add_total),
            interpreted(_ellipsoid_distance.foot_points),
            interpreted(_power_sums.add_powers),
        ),
    ):
        parts, blocks = np.zeros((4, ROW_SIZE)), np.zeros((4, ROW_SIZE, ROW_SIZE))
        noisy, scores, total = (
            np.zeros((PARAMETERS, PARAMETERS)),
            np.zeros((PARAMETERS, PARAMETERS)),
            np.zeros((ROW_SIZE, ROW_SIZE)),
        )
        sums, each = np.zeros(35), np.zeros((203, 5))
        foot_points(field, np.zeros(3), turn, AXES, each)
        add_all(field, np.zeros(3), turn, AXES, 5, parts, 1e-3, blocks, noisy, scores)
        add_total(field, np.zeros(3), turn, AXES, total)
        add(field, np.ones(3), 2.0, sums)
        found.append([parts, blocks, noisy, scores, total, sums, each])
    assert all(np.array_equal(compiled, plain) for compiled, plain in zip(*found, strict=True))


def test_variance_solves_its_equation() -> None:
    total = np.zeros((ROW_SIZE, ROW_SIZE))
    total[9, 9], total[9, 10], total[10, 10] = 2.0, 3.0, 50.0
    s = estimate_variance(total, 100)
    assert total[9, 9] - 2.0 * s * total[9, 10] + s * s * total[10, 10] == pytest.approx(100.0 * s, rel=1e-12, abs=0.0)
    total[10, 10] = 1e9  # no root: curvature that no noise explains
    assert estimate_variance(total, 100) == pytest.approx(0.02, rel=1e-12, abs=0.0)


def test_theta_and_its_matrix() -> None:
    theta = np.arange(9.0)
    assert np.array_equal(theta_from_matrix(theta[:3], theta_to_matrix(theta)), theta)
    assert all(theta_to_matrix(theta)[row, column] == theta[3 + k] for k, (row, column) in enumerate(PAIRS))


# Sums of powers.


def powers_of(field: FloatArray) -> FloatArray:
    """Return the 35 sums by NumPy."""
    return np.array([np.prod(field ** np.array(powers), axis=1).sum() for powers in _power_sums.EXPONENTS])


def test_sums_equal_sums_of_powers() -> None:
    field = np.random.default_rng(1).normal(size=(100, 3)) + (3.0, 4.0, 5.0)
    sums = np.zeros(35)
    _power_sums.add_powers(field, np.array([3.0, 4.0, 5.0]), 2.0, sums)
    assert sums == pytest.approx(powers_of((field - (3.0, 4.0, 5.0)) / 2.0), rel=1e-10, abs=1e-10)
    wanted = powers_of(((field - (3.0, 4.0, 5.0)) / 2.0 - (0.1, 0.2, 0.3)) / 1.5)
    assert _power_sums.shift_powers(sums, np.array([0.1, 0.2, 0.3]), 1.5) == pytest.approx(wanted, rel=1e-10, abs=1e-10)


def test_noise_is_removed_from_the_products_exactly() -> None:
    """The mean over normal noise, exact by quadrature, put right by s: the products at the point itself."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    weights = weights / weights.sum()
    point, stddev = np.array([0.4, -0.7, 1.1]), 0.6
    means = np.zeros(35)
    for i, j, k in product(range(4), repeat=3):
        means += weights[i] * weights[j] * weights[k] * powers_of((point + stddev * nodes[[i, j, k]])[None, :])
    zero, first, second = _power_sums.noise_polynomial(means)
    monomials = np.array([np.prod(point ** np.array(powers)) for powers in _power_sums.QUADRIC])
    found = zero + stddev**2 * first + stddev**4 * second
    assert found == pytest.approx(np.outer(monomials, monomials), abs=1e-12)


@pytest.mark.compiled
def test_initial_ellipsoid_is_unbiased_unlike_plain_least_squares() -> None:
    """A million readings with a tenth of noise. The mean radius: ours within its own scatter over 12 records."""
    random, ours, plain = np.random.default_rng(1), [], []
    matrix = np.diag([0.9, 1.0, 1.1])
    for _ in range(12):
        v = random.normal(size=(200_000, 3))
        v /= np.linalg.norm(v, axis=1)[:, None]
        sums = np.zeros(35)
        _power_sums.add_powers(v @ matrix + 0.1 * random.normal(size=v.shape), np.zeros(3), 1.0, sums)
        ours.append(np.diag(_power_sums.initial_ellipsoid(sums, soft_iron=True).matrix))
        _, vectors = np.linalg.eigh(_power_sums.noise_polynomial(sums / sums[0])[0])
        found = _power_sums._quadric_to_ellipsoid(vectors[:, 0])
        assert found is not None
        plain.append(np.diag(found.matrix))
    off = np.abs(np.mean(ours, axis=0) - np.diag(matrix)) / (np.std(ours, axis=0, ddof=1) / np.sqrt(12.0))
    assert off.max() < 9.5  # Student's t of 11 degrees of freedom, 1e-6 for each of three
    assert np.abs(np.mean(plain, axis=0) - np.diag(matrix)).max() > 30.0 * np.std(ours, axis=0).max() / np.sqrt(12.0)


def test_sums_of_other_surfaces_start_from_a_sphere() -> None:
    """Readings on a hyperboloid, in a plane, and on a line."""
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
            _power_sums.add_powers(field, np.zeros(3), 1.0, sums)
            start = _power_sums.initial_ellipsoid(sums, soft_iron=soft_iron)
            assert np.isfinite(start.centre).all(), name
            assert np.linalg.eigvalsh(start.matrix)[0] > 0.0, name


def test_nearest_point_oracle_matches_an_independent_result() -> None:
    """The search itself, on a case with a known answer: the end of an ellipse, by one angle."""
    point = np.array([1.0, 0.0, 1.2])
    flat = minimize_scalar(lambda a: np.hypot(0.7 * np.cos(a) - 1.0, 1.6 * np.sin(a) - 1.2), bounds=(0.0, 1.57))
    assert nearest(AXES, point) == pytest.approx(flat.fun, abs=1e-7)
