"""What a calibration without attitude must not be trusted with: soft iron left out, readings that are none, limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chi2

from navsense.calibration import _ellipsoid_diagnosis, _ellipsoid_distance, _ellipsoid_fit, ellipsoid
from navsense.calibration._ellipsoid_fit import EllipsoidFitter, theta_to_matrix
from navsense.calibration._power_sums import compute_spread
from navsense.core.errors import CalibrationError
from navsense.core.typing import FloatArray, Vectors

pytestmark = [pytest.mark.requirement("FAC-6")]

FALSE_ALARM = 1e-6
BIAS = np.array([12.0, -25.0, 8.0])
IRON = np.array([[1.05, 0.03, -0.02], [0.03, 0.97, 0.04], [-0.02, 0.04, 1.0]])
IRON /= np.cbrt(np.linalg.det(IRON))
FIELD = np.array([0.0, 0.4, -0.9]) / np.hypot(0.4, 0.9)
SCALE = 48.0
"""Microtesla, as the noise of 0.1."""


def rotate_field(roll: FloatArray, pitch: FloatArray, yaw: FloatArray) -> Vectors:
    """Return the field's directions (n, 3) in a sensor of these attitudes (rad), turned about z, then y, then x."""
    v = np.tile(FIELD, (len(yaw), 1))
    for (i, j), angle in (((0, 1), yaw), ((2, 0), pitch), ((1, 2), roll)):
        c, s = np.cos(angle), np.sin(angle)
        v[:, i], v[:, j] = c * v[:, i] + s * v[:, j], c * v[:, j] - s * v[:, i]
    return v


def draw_car_attitudes(random: np.random.Generator, count: int = 3000) -> Vectors:
    """Yaw all round, roll within 2 and pitch within 3 degrees."""
    t, phase = np.linspace(0.0, 16.0 * np.pi, count), random.uniform(0.0, 6.0, 3)
    roll, pitch = np.radians(2.0) * np.sin(2.7 * t + phase[0]), np.radians(3.0) * np.sin(1.9 * t + phase[1])
    return rotate_field(roll, pitch, t + phase[2])


def dive(random: np.random.Generator, count: int = 3000) -> Vectors:
    """Yaw all round, roll and pitch within 25 degrees."""
    t, phase = np.linspace(0.0, 16.0 * np.pi, count), random.uniform(0.0, 6.0, 3)
    roll, pitch = np.radians(25.0) * np.sin(2.7 * t + phase[0]), np.radians(25.0) * np.sin(1.9 * t + phase[1])
    return rotate_field(roll, pitch, t + phase[2])


def figure_eight(random: np.random.Generator, count: int = 3000) -> Vectors:
    t, phase = np.linspace(0.0, 8.0 * np.pi, count), random.uniform(0.0, 6.0, 4)
    roll, pitch = np.radians(70.0) * np.sin(t + phase[0]), np.radians(50.0) * np.sin(2.0 * t + phase[1])
    return rotate_field(roll, pitch, np.radians(60.0) * np.sin(t / 3.0 + phase[2]) + t / 4.0)


def six_faces(random: np.random.Generator, count: int = 3000) -> Vectors:
    """A turn about the vertical on each of six faces."""
    yaw = np.linspace(0.0, 2.0 * np.pi, count // 6) + random.uniform(0.0, 6.0)
    faces = [(0.0, 0.0), (np.pi, 0.0), (np.pi / 2, 0.0), (-np.pi / 2, 0.0), (0.0, np.pi / 2), (0.0, -np.pi / 2)]
    return np.concatenate(
        [rotate_field(np.full(len(yaw), roll), np.full(len(yaw), pitch), yaw) for roll, pitch in faces]
    )


def draw_directions(random: np.random.Generator, count: int = 3000) -> Vectors:
    v = random.normal(size=(count, 3))
    return v / np.linalg.norm(v, axis=1)[:, None]


Motion = Callable[..., Vectors]


def readings(v: Vectors, random: np.random.Generator, iron: FloatArray = IRON, stddev: float = 0.1) -> Vectors:
    return SCALE * v @ iron.T + BIAS + stddev * random.normal(size=v.shape)


def make_stretched_iron(axis: int, ratio: float) -> FloatArray:
    """Return soft iron of determinant 1 that makes one axis longer than the others."""
    iron = np.ones(3)
    iron[axis] = ratio
    return np.diag(iron / np.cbrt(ratio))


# What is sensible is given, and nothing said against it.


@pytest.mark.compiled
@pytest.mark.parametrize("motion", [dive, figure_eight, six_faces, draw_directions])
@pytest.mark.parametrize("soft_iron", [True, False])
def test_good_records_have_no_reason(motion: Motion, soft_iron: bool) -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        field = readings(motion(random, 12_000), random, IRON if soft_iron else np.eye(3))
        found = ellipsoid(field, unit="uT", soft_iron=soft_iron)
        assert found.verdict.ok, (seed, found.verdict.reasons)


@pytest.mark.compiled
@pytest.mark.parametrize("lsb", [0.01, 0.1, 1.0])
def test_quantised_record_has_no_reason(lsb: float) -> None:
    random = np.random.default_rng(1)
    assert ellipsoid(np.round(readings(figure_eight(random), random) / lsb) * lsb, unit="uT").verdict.ok


def test_unequal_axis_noise_has_no_reason() -> None:
    random = np.random.default_rng(1)
    field = readings(figure_eight(random), random, stddev=0.0) + random.normal(size=(3000, 3)) * (0.1, 0.1, 0.5)
    assert ellipsoid(field, unit="uT").verdict.ok


# Soft iron that a sphere leaves out.


@pytest.mark.parametrize("ratio", [1.0, 1.005, 1.01, 1.02, 1.05, 1.1])
def test_level_car_does_not_determine_a_sphere(ratio: float) -> None:
    """Iron along z does not show in the residuals of a level turn, and moves bias and scale by 1.7 times itself."""
    random = np.random.default_rng(1)
    found = ellipsoid(
        readings(draw_car_attitudes(random), random, make_stretched_iron(2, ratio)), unit="uT", soft_iron=False
    )
    assert not found.verdict.ok
    assert any("soft iron of 2 %, which that does not exclude" in reason for reason in found.verdict.reasons)
    assert any("tilt the sensor by 30 degrees" in reason for reason in found.verdict.reasons)


@pytest.mark.compiled
@pytest.mark.parametrize("ratio", [1.01, 1.02, 1.05])
@pytest.mark.parametrize("motion", [dive, figure_eight])
def test_soft_iron_that_biases_a_sphere_is_a_reason(motion: Motion, ratio: float) -> None:
    """For soft iron of any size, a sphere with an error of 1 % of the field or more is never ok."""
    for seed in range(5):
        random = np.random.default_rng(seed)
        found = ellipsoid(readings(motion(random), random, make_stretched_iron(2, ratio)), unit="uT", soft_iron=False)
        off = np.hypot(found.scale / SCALE - 1.0, np.linalg.norm(found.bias - BIAS) / SCALE)
        assert not (off > 0.012 and found.verdict.ok)


def test_soft_iron_with_full_coverage_does_not_bias_a_sphere() -> None:
    """0.5 % of soft iron with readings in all directions: the sphere is correct, and the verdict is ok."""
    random = np.random.default_rng(1)
    found = ellipsoid(
        readings(draw_directions(random), random, make_stretched_iron(2, 1.005)), unit="uT", soft_iron=False
    )
    assert found.verdict.ok
    assert abs(found.bias - BIAS).max() < 0.002 * SCALE


@pytest.mark.compiled
@pytest.mark.parametrize("motion", [draw_car_attitudes, dive])
def test_error_from_neglected_iron_matches_its_covariance(motion: Motion, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iron drawn as it is taken to be: the error less the likely one has the covariance that is stated for it.

    Of half a percent, so that the square of what it does is nothing beside its scatter.
    """
    monkeypatch.setattr(_ellipsoid_diagnosis, "TYPICAL_SOFT_IRON", 0.005)
    random, squares = np.random.default_rng(1), []
    v = motion(random)
    for _ in range(200):
        strain = theta_to_matrix(_ellipsoid_diagnosis.TRACELESS @ (0.005 * random.normal(size=5)))
        stream = EllipsoidFitter(soft_iron=False)
        stream.add(readings(v, random, np.eye(3) + strain, stddev=0.125))
        fit = stream.fit()
        found = _ellipsoid_diagnosis.estimate_neglected_soft_iron(fit)
        off = (fit.theta[:3] * stream.unit + stream.shift - BIAS) / SCALE
        error = np.append(off, fit.theta[3] * stream.unit / SCALE - 1.0) - found.shift
        spread = found.hidden_covariance + fit.covariance[:4, :4] / fit.strength**2
        squares.append(float(error @ np.linalg.solve(spread, error)))
    low, high = chi2.ppf([FALSE_ALARM / 2.0, 1.0 - FALSE_ALARM / 2.0], 4 * 200)
    assert low < sum(squares) < high


@pytest.mark.compiled
def test_sphere_is_not_worse_than_the_ellipsoid() -> None:
    for motion in (draw_car_attitudes, dive, figure_eight):
        random = np.random.default_rng(3)
        field = readings(motion(random), random, np.eye(3))
        fits = []
        for soft_iron in (False, True):
            stream = EllipsoidFitter(soft_iron=soft_iron)
            stream.add(field)
            fits.append(stream.fit())
        assert _ellipsoid_diagnosis.estimate_neglected_soft_iron(fits[0]).hidden_error < fits[1].max_relative_stddev[0]


@pytest.mark.compiled
def test_sphere_with_unbounded_iron_error_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    monkeypatch.setattr(_ellipsoid_diagnosis, "TYPICAL_SOFT_IRON", 0.2)
    with pytest.raises(CalibrationError, match="cannot be determined; tilt the sensor"):
        ellipsoid(readings(draw_car_attitudes(random), random, np.eye(3)), unit="uT", soft_iron=False)


# Readings that are none, and the sensor's limit.


@pytest.mark.compiled
def test_dropouts_are_named() -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        field = readings(figure_eight(random), random)
        field[random.random(3000) < 0.01] = 0.0
        try:
            text = "; ".join(ellipsoid(field, unit="uT").verdict.reasons)
        except CalibrationError as error:
            text = str(error)
        assert "exactly (0, 0, 0)" in text


@pytest.mark.compiled
@pytest.mark.parametrize(("share", "size"), [(0.01, 30.0), (0.01, 3.0), (0.05, 10.0), (0.001, 300.0)])
def test_outliers_are_a_reason(share: float, size: float) -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        field = readings(figure_eight(random), random)
        bad = random.random(3000) < share
        field[bad] += size * random.normal(size=(int(bad.sum()), 3))
        try:
            text = "; ".join(ellipsoid(field, unit="uT").verdict.reasons)
        except CalibrationError as error:
            text = str(error)
        assert "leave out" in text


@pytest.mark.compiled
@pytest.mark.parametrize("limit", [20.0, 35.0, 50.0])
@pytest.mark.parametrize("after", ["mounting", "dither"])
def test_saturation_without_a_single_value_is_a_reason(after: str, limit: float) -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        field = np.minimum(readings(draw_directions(random), random), (limit, np.inf, np.inf))
        if after == "mounting":
            field = field @ np.linalg.qr(random.normal(size=(3, 3)))[0]
        else:
            field = field + 0.02 * random.normal(size=field.shape)
        found = ellipsoid(field, unit="uT")
        assert "at the sensor's limit" in "; ".join(found.verdict.reasons)


# The search.


def test_quadric_coefficients_are_linear_along_a_step() -> None:
    """Its ten numbers go along a line but for a factor, and the path starts along the step."""

    def quadric(theta: FloatArray) -> FloatArray:
        inverse = np.linalg.inv(theta_to_matrix(theta))
        complete = inverse @ inverse
        moved = complete @ theta[:3]
        found = np.concatenate([complete[np.triu_indices(3)], -2.0 * moved, [theta[:3] @ moved - 1.0]])
        return np.asarray(found / np.trace(complete))

    random = np.random.default_rng(1)
    theta = np.array([0.3, -0.2, 0.4, 1.0, 0.1, -0.05, 1.2, 0.02, 0.9])
    step = 0.1 * random.normal(size=9)
    points = [quadric(theta)] + [
        quadric(_ellipsoid_fit._move_along_quadric(theta, share * step)) for share in (0.25, 0.5, 1.0)
    ]
    ways = np.diff(points, axis=0)
    assert ways[1] == pytest.approx(ways[0], abs=1e-12)
    assert ways[2] == pytest.approx(2.0 * ways[1], abs=1e-12)
    small = 0.01 * step
    assert _ellipsoid_fit._move_along_quadric(theta, small) - theta == pytest.approx(
        small, abs=0.02 * np.abs(small).max()
    )
    assert np.array_equal(_ellipsoid_fit._move_along_quadric(theta, 1e-4 * step), theta + 1e-4 * step)
    flat = np.zeros(9)
    flat[3:] = -2.0 * theta[3:]  # no quadric there is an ellipsoid
    assert np.isfinite(_ellipsoid_fit._move_along_quadric(theta, flat)).all()


@pytest.mark.compiled
def test_search_converges_for_a_belt_of_readings() -> None:
    """3 degrees of it, where the centre and the axes along it go together: found, though it is not known."""
    random = np.random.default_rng(1)
    stream = EllipsoidFitter(soft_iron=True)
    stream.add(readings(draw_car_attitudes(random, 8192), random))
    fit = stream.fit()
    assert fit.converged
    assert fit.max_relative_stddev[0] > 0.1


@pytest.mark.compiled
def test_many_planar_readings_are_rejected_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subsample shows that all readings would not suffice: the number of processed rows is a few times its size."""
    random = np.random.default_rng(1)
    rows, add = [], _ellipsoid_distance.add_total

    def counted(field: Vectors, *rest: FloatArray) -> None:
        rows.append(len(field))
        add(field, *rest)

    monkeypatch.setattr(_ellipsoid_distance, "add_total", counted)
    yaw = np.linspace(0.0, 1000.0, 300_000)
    with pytest.raises(CalibrationError, match="turned about that axis only"):
        ellipsoid(readings(rotate_field(0.0 * yaw, 0.0 * yaw, yaw), random), unit="uT")
    assert sum(rows) < 10 * 300_000


@pytest.mark.compiled
def test_warning_from_a_subsample_equals_that_of_all_rows() -> None:
    """The gap that is named from a part of the readings is that of all."""
    random = np.random.default_rng(1)
    stream = EllipsoidFitter(soft_iron=True)
    yaw = np.linspace(0.0, 1000.0, 70_000)
    stream.add(readings(rotate_field(0.0 * yaw, 0.0 * yaw, yaw), random))
    gap = _ellipsoid_diagnosis.find_missing_motion(stream.fit(), compute_spread(stream.powers), 0.1)
    assert "turned about that axis only" in gap.motion
