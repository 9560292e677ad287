"""Calibration without attitude: published values, other solvers, statistics, streams, and invalid input."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import chi2, norm

from navsense.calibration import Calibration, EllipsoidCalibrator, _ellipsoid_fit, ellipsoid
from navsense.calibration._ellipsoid_fit import ELLIPSOIDS, EllipsoidFitter, theta_from_matrix, theta_to_matrix
from navsense.calibration.verdict import REFUSE_ABOVE, WARN_ABOVE
from navsense.core.errors import CalibrationError
from navsense.core.typing import FloatArray, Vectors

pytestmark = [pytest.mark.requirement("FAC-6")]

FALSE_ALARM = 1e-6
IRON = np.array([[1.10, 0.10, 0.04], [0.10, 0.88, 0.02], [0.04, 0.02, 1.22]])
IRON /= np.cbrt(np.linalg.det(IRON))
BIAS = np.array([20.0, -30.0, 9.0])
SCALE = 48.0
"""uT"""


def mark_compiled(value: float) -> Any:
    """Return a parameter that the interpreted run skips."""
    return pytest.param(value, marks=pytest.mark.compiled)


def make_random_directions(count: int, random: np.random.Generator) -> Vectors:
    v = random.normal(size=(count, 3))
    return v / np.linalg.norm(v, axis=1)[:, None]


def make_rotation_about_one_axis(count: int, inclination: float, tilts: tuple[float, ...] = (0.0,)) -> Vectors:
    """Return field directions in a sensor that rotates ten times about z, after a tilt about x (degrees)."""
    angle = np.linspace(0.0, 20.0 * np.pi, count)
    flat, up = np.cos(inclination), np.sin(inclination)
    circle = np.column_stack([flat * np.cos(angle), flat * np.sin(angle), np.full(count, up)])
    turned = []
    for tilt in np.radians(tilts):
        c, s = np.cos(tilt), np.sin(tilt)
        turned.append(circle @ np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]]))
    return np.concatenate(turned)


def make_readings(v: Vectors, stddev: float, random: np.random.Generator, iron: FloatArray = IRON) -> Vectors:
    return SCALE * v @ iron.T + BIAS + stddev * random.normal(size=v.shape)


def list_parameters(found: Calibration) -> FloatArray:
    return np.array([found.scale, *found.bias, *found.soft_iron.ravel()])


TRUE = np.array([SCALE, *BIAS, *IRON.ravel()])


def compute_normalised_square(error: FloatArray, covariance: FloatArray, degrees_of_freedom: int) -> float:
    """Return the normalised squared error over the free combinations."""
    values, axes = np.linalg.eigh(covariance)
    return float(((axes[:, -degrees_of_freedom:].T @ error) ** 2 / values[-degrees_of_freedom:]).sum())


# Published values and other solvers.


def test_fit_equals_the_published_magcal_example() -> None:
    """MathWorks' example has 21 x 21 points without noise, strength 31.0723 and a correction of determinant 1."""
    around, up = np.meshgrid(np.linspace(-np.pi, np.pi, 21), np.linspace(-np.pi / 2, np.pi / 2, 21))
    unit = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=-1).reshape(-1, 3)
    field = unit * (30.0, 20.0, 50.0) + (-50.0, 20.0, 100.0)
    found = ellipsoid(field, unit=None)
    assert round(found.scale, 4) == 31.0723
    assert found.scale == pytest.approx(np.cbrt(30000.0), rel=1e-12, abs=0.0)
    assert found.bias == pytest.approx([-50.0, 20.0, 100.0], abs=1e-10)
    assert found.matrix == pytest.approx(np.diag([1.035744, 1.553616, 0.621447]), abs=1e-6)
    assert np.linalg.norm(found.apply(field), axis=1) == pytest.approx(np.full(441, found.scale), rel=1e-11, abs=0.0)
    assert found.verdict.ok


@pytest.mark.compiled
def test_parameters_of_the_magyc_simulation_are_recovered() -> None:
    """With MAGYC's published constants, 10 mG of noise and 6000 readings, errors match the covariance."""
    random = np.random.default_rng(6000)
    iron, hard = np.array([[1.10, 0.10, 0.04], [0.10, 0.88, 0.02], [0.04, 0.02, 1.22]]), np.array([20.0, 120.0, 90.0])
    strength = float(np.linalg.norm([227.0, 52.0, 412.0]))
    found = ellipsoid(
        strength * make_random_directions(6000, random) @ iron.T + hard + 10.0 * random.normal(size=(6000, 3)),
        unit="mG",
    )
    size = float(np.cbrt(np.linalg.det(iron)))
    true = np.array([size * strength, *hard, *(iron / size).ravel()])
    assert compute_normalised_square(list_parameters(found) - true, found.covariance, 9) < chi2.isf(FALSE_ALARM, 9)
    assert found.residual_stddev == pytest.approx(10.0, rel=-norm.isf(1.0 - FALSE_ALARM) / np.sqrt(2.0 * 6000), abs=0.0)
    assert max(found.stddev[f"bias.{axis}"] for axis in "xyz") < 0.5


def compute_distances_by_bisection(theta: FloatArray, field: Vectors) -> FloatArray:
    """Return signed distances by bisection of the equation of the foot point."""
    axes, turn = np.linalg.eigh(theta_to_matrix(theta))
    y = (field - theta[:3]) @ turn
    low, high = np.full(len(y), -(axes[0] ** 2) * (1.0 - 1e-12)), np.full(len(y), 10.0 * axes[2] ** 2 + axes[2] * 100.0)
    for _ in range(200):
        middle = 0.5 * (low + high)
        inside = (((axes * y) / (middle[:, None] + axes**2)) ** 2).sum(axis=1) > 1.0
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    foot = axes**2 * y / (middle[:, None] + axes**2)
    return np.asarray(np.copysign(np.linalg.norm(y - foot, axis=1), middle))


def test_fit_without_curvature_equals_scipys_distance_fit() -> None:
    """Without the curvature term, the fit is the orthogonal distance fit of SciPy."""
    random = np.random.default_rng(3)
    stream = EllipsoidFitter(soft_iron=True)
    stream.add(make_readings(make_random_directions(400, random), 0.5, random))
    field = stream._stored[:400]

    def without_curvature(theta: FloatArray) -> FloatArray:
        total = stream._compute_total(theta)
        total[:, 10] = total[10, :] = 0.0
        return total

    began = stream.fit().theta
    ours, total, settled = _ellipsoid_fit._search(without_curvature, began, ELLIPSOIDS, 391)
    reference = least_squares(compute_distances_by_bisection, began, args=(field,), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    assert settled
    spread = np.sqrt(np.diag(np.linalg.inv(total[:9, :9])) * total[9, 9] / 391)
    assert np.abs((ours - reference.x) / spread).max() < 1e-4
    assert total[9, 9] == pytest.approx(2.0 * reference.cost, rel=1e-9, abs=0.0)


def test_fit_equals_the_maximum_of_the_complete_likelihood() -> None:
    """SciPy maximises the complete likelihood: 9 parameters and two angles for each of 40 readings."""
    random = np.random.default_rng(8)
    field = make_readings(make_random_directions(40, random), 0.5, random) / SCALE
    stream = EllipsoidFitter(soft_iron=True)
    stream.add(field)
    theta = stream.fit().theta * stream.unit
    theta[:3] += stream.shift
    v = np.linalg.solve(theta_to_matrix(theta), (field - theta[:3]).T).T
    angles = np.column_stack([np.arctan2(v[:, 1], v[:, 0]), np.arcsin(v[:, 2] / np.linalg.norm(v, axis=1))])

    def residuals(unknown: FloatArray) -> FloatArray:
        around, up = unknown[9:].reshape(-1, 2).T
        unit = np.column_stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)])
        return np.asarray((unknown[:3] + unit @ theta_to_matrix(unknown[:9]) - field).ravel())

    complete = least_squares(residuals, np.concatenate([theta, angles.ravel()]), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    alone = least_squares(compute_distances_by_bisection, theta, args=(field,), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    assert complete.x[:9] == pytest.approx(alone.x, abs=1e-7)
    assert complete.cost == pytest.approx(alone.cost, rel=1e-9, abs=0.0)


# Statistics.


@cache
def simulate_errors(count: int, stddev: float, soft_iron: bool, seeds: int) -> tuple[FloatArray, FloatArray, int]:
    """Return errors (seeds, 13) over the scale, normalised squares, and the number of rejected whiteness tests."""
    errors, squares, coloured = [], [], 0
    iron, free, used = (IRON, 9, slice(None)) if soft_iron else (np.eye(3), 4, slice(4))
    true = np.array([SCALE, *BIAS, *iron.ravel()])
    for seed in range(seeds):
        random = np.random.default_rng([seed, count])
        found = ellipsoid(
            make_readings(make_random_directions(count, random), stddev, random, iron), unit="uT", soft_iron=soft_iron
        )
        error = list_parameters(found) - true
        squares.append(compute_normalised_square(error[used], found.covariance, free))
        errors.append(error[used] / np.sqrt(np.diag(found.covariance)))
        coloured += not found.verdict.whiteness.white
    return np.array(errors), np.array(squares), coloured


CASES = [(10_000, 0.5, True, 250), (10_000, 1.5, True, 200), (300, 1.0, True, 1000), (2000, 1.0, False, 500)]
"""Number of seeds: 9 x 1000 squares detect a covariance error of 13 percent with probability 0.999,
9 x 250 (4 x 500) squares one of 27 (29) percent."""


@pytest.mark.compiled
@pytest.mark.timeout(400)
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize(("count", "stddev", "soft_iron", "seeds"), CASES)
def test_errors_match_the_covariance(count: int, stddev: float, soft_iron: bool, seeds: int) -> None:
    """The sum of normalised squares is chi-squared. The variance is estimated with count - free degrees of
    freedom, which scales the expectation by dof / (dof - 2). The bounds include this factor."""
    _, squares, coloured = simulate_errors(count, stddev, soft_iron, seeds)
    free = 9 if soft_iron else 4
    low, high = chi2.ppf([FALSE_ALARM / 2.0, 1.0 - FALSE_ALARM / 2.0], free * seeds)
    degrees_of_freedom = count - free
    assert low < squares.sum() < high * degrees_of_freedom / (degrees_of_freedom - 2)
    assert coloured <= 1


@pytest.mark.compiled
@pytest.mark.timeout(400)
@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize(("count", "stddev", "soft_iron", "seeds"), CASES)
def test_parameters_are_unbiased(count: int, stddev: float, soft_iron: bool, seeds: int) -> None:
    errors, _, _ = simulate_errors(count, stddev, soft_iron, seeds)
    limit = norm.isf(FALSE_ALARM / 2.0 / errors.shape[1])
    assert np.abs(errors.mean(axis=0)).max() < limit / np.sqrt(seeds)


@pytest.mark.compiled
def test_fit_without_curvature_is_biased() -> None:
    """The distance fit alone overestimates the radius by s / r: 3 deviations at 10,000 readings of 3 percent noise."""
    random = np.random.default_rng(1)
    off = []
    for _ in range(20):
        stream = EllipsoidFitter(soft_iron=False)
        stream.add(make_readings(make_random_directions(10_000, random), 1.5, random, np.eye(3)))

        def without_curvature(theta: FloatArray, stream: EllipsoidFitter = stream) -> FloatArray:
            total = stream._compute_total(theta)
            total[:, 10] = total[10, :] = 0.0
            return total

        theta, _, _ = _ellipsoid_fit._search(without_curvature, stream.fit().theta, _ellipsoid_fit.SPHERES, 9996)
        off.append(theta[3] * stream.unit - SCALE)
    deviation = 1.5 / np.sqrt(10_000 * 20)
    assert np.mean(off) == pytest.approx(1.5**2 / SCALE, abs=norm.isf(FALSE_ALARM / 2.0) * deviation)
    assert np.mean(off) > 10.0 * deviation


@pytest.mark.compiled
def test_covariance_includes_unequal_noise_of_the_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One axis has four times the noise of the others. A covariance for equal noise is then too small.

    The fit assumes equal noise, which leaves a small bias: the squares are above 9, but by less
    than without the score_gram. Both use the same readings, so the comparison is not random.
    """
    random = np.random.default_rng(5)
    fields = [
        SCALE * make_random_directions(2000, random) @ IRON.T + BIAS + random.normal(size=(2000, 3)) * (0.2, 0.2, 0.8)
        for _ in range(100)
    ]

    def total() -> float:
        found = [ellipsoid(field, unit="uT") for field in fields]
        return sum(compute_normalised_square(list_parameters(one) - TRUE, one.covariance, 9) for one in found) / len(
            found
        )

    here = total()
    monkeypatch.setattr(_ellipsoid_fit, "EQUAL_NOISE_READINGS", 1e9)
    alike = total()
    assert 9.0 < here < 0.95 * alike


@pytest.mark.compiled
def test_correlated_noise_is_detected_and_inflates_the_covariance() -> None:
    """The disturbance has a correlation of 50 readings and the size of the noise, during a slow rotation."""
    random = np.random.default_rng(9)
    count = 40_000
    angle = np.linspace(0.0, 60.0, count)
    v = np.column_stack(
        [np.cos(angle) * np.cos(0.37 * angle), np.sin(angle) * np.cos(0.37 * angle), np.sin(0.37 * angle)]
    )
    slow = np.empty((count, 3))
    state = random.normal(size=3)
    for row, draw in enumerate(random.normal(size=(count, 3))):
        state = 0.98 * state + np.sqrt(1.0 - 0.98**2) * draw
        slow[row] = state
    calm = ellipsoid(make_readings(v, 0.5, random), unit="uT")
    stormy = ellipsoid(make_readings(v, 0.5, random) + 0.5 * slow, unit="uT")
    assert calm.verdict.whiteness.white
    assert calm.verdict.ok
    assert not stormy.verdict.whiteness.white
    assert stormy.verdict.whiteness.inflation > 10.0
    assert any("are correlated" in reason for reason in stormy.verdict.reasons)
    assert compute_normalised_square(list_parameters(stormy) - TRUE, stormy.covariance, 9) < chi2.isf(FALSE_ALARM, 9)


# Results.


@pytest.mark.compiled
def test_apply_returns_the_field_in_the_sensor_frame() -> None:
    random = np.random.default_rng(2)
    v = make_random_directions(3000, random)
    field = make_readings(v, 0.05, random)
    found = ellipsoid(field, 50.0, unit="uT")
    assert found.apply(field) == pytest.approx(50.0 * v, abs=0.5)
    assert found.direction is None
    assert found.method == "ellipsoid"
    assert found.degrees_of_freedom == 9
    assert np.linalg.det(found.soft_iron) == pytest.approx(1.0, rel=1e-12, abs=0.0)
    assert np.array_equal(found.soft_iron, found.soft_iron.T)
    assert "calibrated = M (reading - bias)" in str(found)


def test_fit_without_soft_iron_has_scale_and_bias_only() -> None:
    random = np.random.default_rng(4)
    found = ellipsoid(
        make_readings(make_random_directions(2000, random), 0.3, random, np.eye(3)), unit="uT", soft_iron=False
    )
    assert found.names == ("scale", "bias.x", "bias.y", "bias.z")
    assert found.covariance.shape == (4, 4)
    assert found.degrees_of_freedom == 4
    assert found.method == "sphere"
    assert np.array_equal(found.soft_iron, np.eye(3))
    assert found.verdict.ok
    assert "±" in str(found)


@pytest.mark.compiled
def test_neglected_soft_iron_is_a_reason() -> None:
    random = np.random.default_rng(4)
    found = ellipsoid(make_readings(make_random_directions(2000, random), 0.3, random), unit="uT", soft_iron=False)
    reason = next(reason for reason in found.verdict.reasons if "calibrate with soft iron" in reason)
    distortion = 100.0 * np.linalg.norm(IRON - np.eye(3) * np.trace(IRON) / 3.0)
    assert float(reason.split()[7]) == pytest.approx(distortion, rel=0.3, abs=0.0)


# Streams.


@pytest.mark.compiled
def test_result_does_not_depend_on_block_size() -> None:
    random = np.random.default_rng(7)
    field = make_readings(make_random_directions(150_001, random), 0.5, random)
    stream = EllipsoidCalibrator(unit="uT")
    for part in np.array_split(field, [0, 1, 3, 500, 70_000, 70_001, 140_000]):
        stream.update(part)
    complete, parts = ellipsoid(field, unit="uT"), stream.solve()
    assert stream.count == 150_001
    assert np.array_equal(list_parameters(complete), list_parameters(parts))
    assert np.array_equal(complete.covariance, parts.covariance)
    assert complete.verdict == parts.verdict


@pytest.mark.compiled
def test_accumulated_readings_equal_stored_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both give the same ellipsoid within 0.01 deviations and the same block statistics of the residuals."""
    random = np.random.default_rng(7)
    field = make_readings(make_random_directions(200_000, random), 0.5, random)
    folded = EllipsoidFitter(soft_iron=True)
    folded.add(field)
    monkeypatch.setattr(_ellipsoid_fit, "BLOCK", 1 << 20)
    kept = EllipsoidFitter(soft_iron=True)
    kept.add(field)
    assert folded._stored_count < 1 << 16
    assert kept._stored_count == 200_000
    one, other = folded.fit(), kept.fit()
    assert np.abs((one.theta - other.theta) / np.sqrt(np.diag(other.covariance))).max() < 0.01
    assert one.covariance == pytest.approx(other.covariance, rel=1e-2, abs=1e-3 * other.covariance.max())
    assert one.variance == pytest.approx(other.variance, rel=1e-6, abs=0.0)
    assert one.sums.blocks[:4] @ np.eye(11)[9] @ np.eye(11)[9] == pytest.approx(
        other.sums.blocks[:4] @ np.eye(11)[9] @ np.eye(11)[9], rel=1e-4, abs=0.0
    )


@pytest.mark.compiled
def test_memory_is_bounded_and_deviations_decrease() -> None:
    random = np.random.default_rng(7)
    stream, stddev = EllipsoidCalibrator(unit="uT"), []
    for _ in range(10):
        stream.update(make_readings(make_random_directions(30_000, random), 0.5, random))
        stddev.append(stream.solve().stddev["scale"])
    assert stream._fitter._stored.nbytes <= 24 * _ellipsoid_fit.BLOCK
    assert stddev[-1] / stddev[0] == pytest.approx(np.sqrt(0.1), rel=0.05, abs=0.0)
    assert stream.solve().stddev["scale"] == stddev[-1]


@pytest.mark.compiled
def test_uninformative_readings_are_accumulated() -> None:
    """A vehicle rests, rotates about one axis, then about all: the fit starts when the ellipsoid is determined."""
    random = np.random.default_rng(7)
    stream = EllipsoidFitter(soft_iron=True)
    stream.add(make_readings(make_rotation_about_one_axis(70_000, 0.5), 0.5, random))
    assert stream._stored_count == 70_000
    stream.add(make_readings(make_random_directions(80_000, random), 0.5, random))
    assert stream._stored_count == 150_000 - 131_072
    fit = stream.fit()
    theta = fit.theta * stream.unit
    theta[:3] += stream.shift
    error = theta - theta_from_matrix(BIAS, SCALE * IRON)
    assert compute_normalised_square(error, fit.covariance * stream.unit**2, 9) < chi2.isf(FALSE_ALARM, 9)


def test_rejected_reading_does_not_change_the_stream() -> None:
    random = np.random.default_rng(7)
    stream = EllipsoidCalibrator(unit="uT")
    stream.update(make_readings(make_random_directions(300, random), 0.5, random))
    before = list_parameters(stream.solve())
    with pytest.raises(CalibrationError, match="row 1"):
        stream.update([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]])
    assert stream.count == 300
    assert np.array_equal(list_parameters(stream.solve()), before)


# Errors.


@pytest.mark.parametrize("soft_iron", [True, False])
@pytest.mark.parametrize("inclination", [mark_compiled(0.0), 0.5, mark_compiled(1.1)])
@pytest.mark.parametrize("stddev", [0.0, mark_compiled(1e-9), mark_compiled(0.01), mark_compiled(0.5)])
def test_motion_about_one_axis_is_an_error(stddev: float, inclination: float, soft_iron: bool) -> None:
    """At any noise level, the thickness of a noisy plane is not interpreted as motion."""
    random = np.random.default_rng(1)
    iron = IRON if soft_iron else np.eye(3)
    field = make_readings(make_rotation_about_one_axis(500, inclination), stddev, random, iron)
    with pytest.raises(CalibrationError) as caught:
        ellipsoid(field, unit="uT", soft_iron=soft_iron)
    text = str(caught.value)
    if soft_iron or stddev > 1e-6:
        assert "turned about that axis only" in text
        assert "cannot be determined; tilt the sensor by 30 degrees or more" in text
        normal = np.linalg.inv(iron).T @ (0.0, 0.0, 1.0)
        named = [float(value) for value in text.partition("(")[2].partition(")")[0].split(",")]
        assert named == pytest.approx(normal / np.linalg.norm(normal), abs=0.03)
    else:
        assert "along z" in text  # only the last digit changed


@pytest.mark.compiled
@pytest.mark.parametrize(("count", "seeds"), [(2000, 50), (20_000, 12)])
def test_planar_motion_is_never_accepted(count: int, seeds: int) -> None:
    """Noise and inclination differ by seed. Many readings must not compensate for missing motion."""
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        v = make_rotation_about_one_axis(count, random.uniform(0.0, 1.0))
        with pytest.raises(CalibrationError):
            ellipsoid(make_readings(v, 10.0 ** random.uniform(-2.0, 0.0), random), unit="uT")


@pytest.mark.compiled
@pytest.mark.parametrize("inclination", [0.0, 0.5, 1.0])
def test_requested_motion_is_sufficient(inclination: float) -> None:
    random = np.random.default_rng(1)
    field = make_readings(make_rotation_about_one_axis(2000, inclination, (-30.0, 0.0, 30.0)), 0.25, random)
    found = ellipsoid(field, unit="uT")
    assert found.verdict.max_relative_stddev < REFUSE_ABOVE / 3.0
    assert compute_normalised_square(list_parameters(found) - TRUE, found.covariance, 9) < chi2.isf(FALSE_ALARM, 9)


@pytest.mark.compiled
def test_poor_motion_error_names_the_missing_rotation() -> None:
    random = np.random.default_rng(1)
    found = ellipsoid(
        make_readings(make_rotation_about_one_axis(2000, 0.0, (-10.0, 0.0, 10.0)), 0.5, random), unit="uT"
    )
    assert WARN_ABOVE < found.verdict.max_relative_stddev < REFUSE_ABOVE
    assert not found.verdict.ok
    assert "tilt the sensor" in found.verdict.reasons[0]
    away = [float(value) for value in found.verdict.reasons[0].rpartition("(")[2].partition(")")[0].split(",")]
    assert abs(away[2]) > 0.9


@pytest.mark.compiled
def test_error_for_part_of_the_sphere_names_the_missing_part() -> None:
    random = np.random.default_rng(1)
    v = make_random_directions(30_000, random)
    found = ellipsoid(make_readings(v[v[:, 0] > 0.5], 0.5, random), unit="uT")
    assert "part of the sphere" in found.verdict.reasons[0]
    assert abs(float(found.verdict.reasons[0].rpartition("(")[2].partition(",")[0])) > 0.9


@pytest.mark.compiled
def test_readings_that_fit_no_ellipsoid_are_an_error() -> None:
    random = np.random.default_rng(1)
    with pytest.raises(CalibrationError, match="from the best ellipsoid"):
        ellipsoid(20.0 * random.normal(size=(300, 3)), unit="uT")


def test_sensor_at_rest_is_an_error() -> None:
    random = np.random.default_rng(1)
    with pytest.raises(CalibrationError, match="turn the sensor"):
        ellipsoid(make_readings(np.tile([0.6, 0.0, 0.8], (300, 1)), 0.5, random), unit="uT")


@pytest.mark.compiled
def test_implausible_soft_iron_is_an_error() -> None:
    random = np.random.default_rng(1)
    across = np.linalg.qr(np.ones((3, 3)) + np.diag([1.0, 2.0, 3.0]))[0]
    field = make_readings(
        make_random_directions(3000, random), 0.1, random, across @ np.diag([1.0, 1.0, 0.1]) @ across.T
    )
    with pytest.raises(CalibrationError, match="soft_iron: stretches one way"):
        ellipsoid(field, unit="uT")


@pytest.mark.compiled
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("factor", [1e-9, 1e-3, 0.1, 10.0, 1e4, 1e9])
def test_axis_in_another_unit_is_named(axis: int, factor: float) -> None:
    random = np.random.default_rng(1)
    field = make_readings(make_random_directions(500, random), 0.5, random)
    field[:, axis] *= factor
    with pytest.raises(
        CalibrationError, match=re.escape(f"along {'xyz'[axis]}: looks like {factor:g} times")
    ) as caught:
        ellipsoid(field, unit="uT")
    assert f"multiply this one by {1.0 / factor:g}" in str(caught.value)


@pytest.mark.compiled
@pytest.mark.parametrize("tilt", [0.0, 1.0, 2.0])
def test_flat_motion_is_not_reported_as_another_unit(tilt: float) -> None:
    random = np.random.default_rng(1)
    field = make_readings(make_rotation_about_one_axis(1000, 0.3, (-tilt, 0.0, tilt)), 0.2, random)
    with pytest.raises(CalibrationError, match="tilt the sensor"):
        ellipsoid(field, unit="uT")


@pytest.mark.compiled
@pytest.mark.parametrize(("factor", "unit"), [(1e6, "uT"), (1e3, "mT"), (1e4, "G"), (1e7, "mG"), (1e9, "nT")])
def test_wrong_unit_is_named(factor: float, unit: str) -> None:
    random = np.random.default_rng(1)
    field = make_readings(make_random_directions(500, random), 0.5, random) * 1e-6
    with pytest.raises(CalibrationError, match=f'unit="{unit}"'):
        ellipsoid(field * factor)
    assert ellipsoid(field * factor, unit=unit).scale == pytest.approx(48e-6 * factor, rel=0.01, abs=0.0)
    with pytest.raises(CalibrationError, match='unit="T"'):
        ellipsoid(field, unit=unit)


def test_impossible_strength_is_an_error() -> None:
    random = np.random.default_rng(1)
    field = make_readings(make_random_directions(500, random), 0.5, random)
    with pytest.raises(CalibrationError, match="within a factor of 3"):
        ellipsoid(field, 15.0, unit="uT")
    with pytest.raises(CalibrationError, match="strength"):
        ellipsoid(field, 50e-6, unit="uT")
    with pytest.raises(CalibrationError, match="within a factor of 3"):
        ellipsoid(field, 48e-6, unit=None)


def test_saturated_readings_are_an_error() -> None:
    random = np.random.default_rng(1)
    field = np.clip(make_readings(make_random_directions(3000, random), 0.5, random), -60.0, 60.0)
    with pytest.raises(CalibrationError, match="saturated"):
        ellipsoid(field, unit="uT")


@pytest.mark.parametrize("row", [0, 7])
@pytest.mark.parametrize("value", [-32768.0, 1e30, 1e100, 1e160])
def test_sentinel_value_is_named(value: float, row: int) -> None:
    random = np.random.default_rng(1)
    field = make_readings(make_random_directions(3000, random), 0.1, random) * 1e-6
    field[row] = value
    with pytest.raises(CalibrationError, match=f"row {row} "):
        ellipsoid(field)


@pytest.mark.compiled
def test_stream_ignores_missing_values() -> None:
    """The stream has more readings than it stores. The error is raised when the calibration is computed."""
    random = np.random.default_rng(1)
    stream = EllipsoidCalibrator(unit="uT")
    for part in np.array_split(make_readings(make_random_directions(140_000, random), 0.5, random), 10):
        part[100] = 1e160
        stream.update(part)
    with pytest.raises(CalibrationError, match="leave out"):
        stream.solve()


def test_readings_whose_squares_overflow_are_an_error() -> None:
    random = np.random.default_rng(1)
    field = make_readings(make_random_directions(100, random), 0.5, random)
    field[0] = 1e-300
    with pytest.raises(CalibrationError, match="must be of similar size"):
        ellipsoid(field, unit=None)


def test_invalid_input_is_an_error() -> None:
    random = np.random.default_rng(1)
    field = make_readings(make_random_directions(50, random), 0.5, random)
    for rows, what in [
        (np.empty((0, 3)), "0 readings; must be at least 19"),
        (field[:2], "2 readings"),
        (field[:18], "18 readings"),
        (np.tile(field[:1], (100, 1)), "equal"),
        (np.zeros((100, 3)), "equal"),
        (field[:, :2], "shape"),
        (field[0], "shape"),
        (np.where(field == field[7, 1], np.nan, field), "row 7"),
        (np.where(field == field[7, 1], np.inf, field), "row 7"),
        (field.astype(str), "type"),
    ]:
        with pytest.raises(CalibrationError, match=what):
            ellipsoid(rows, unit="uT")
    assert ellipsoid(field[:19], unit="uT").count == 19
    with pytest.raises(CalibrationError, match="unit"):
        ellipsoid(field, unit="furlong")


@pytest.mark.compiled
@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e9])
@pytest.mark.parametrize("away", [0.0, 1e3])
def test_result_does_not_depend_on_scale_and_offset(scale: float, away: float) -> None:
    random = np.random.default_rng(1)
    field = make_readings(make_random_directions(500, random), 0.5, random)
    plain, moved = ellipsoid(field, unit="uT"), ellipsoid((field + away) * scale, unit=None)
    assert moved.scale / scale == pytest.approx(plain.scale, rel=1e-7, abs=0.0)
    assert moved.bias / scale - away == pytest.approx(plain.bias, abs=1e-5)
    assert moved.soft_iron == pytest.approx(plain.soft_iron, abs=1e-7)
    assert moved.verdict.max_relative_stddev == pytest.approx(plain.verdict.max_relative_stddev, rel=1e-5, abs=0.0)
