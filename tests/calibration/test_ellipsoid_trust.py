"""Reasons against a calibration without attitude: neglected soft iron, invalid readings, saturation."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import chi2

from navsense.calibration import _ellipsoid_fit, ellipsoid
from navsense.calibration._ellipsoid_fit import EllipsoidFitter, theta_to_matrix
from navsense.calibration._power_sums import compute_spread
from navsense.calibration.ellipsoid import SYMMETRIC_TRACELESS, estimate_neglected_soft_iron, find_missing_motion
from navsense.core.errors import CalibrationError
from navsense.core.typing import FloatArray, Vectors

pytestmark = [pytest.mark.requirement("FAC-6")]

FALSE_ALARM = 1e-6
BIAS = np.array([12.0, -25.0, 8.0])
IRON = np.array([[1.05, 0.03, -0.02], [0.03, 0.97, 0.04], [-0.02, 0.04, 1.0]])
IRON /= np.cbrt(np.linalg.det(IRON))
FIELD = np.array([0.0, 0.4, -0.9]) / np.hypot(0.4, 0.9)
SCALE = 48.0
"""uT, as the noise of 0.1."""


def rotate_field(roll: FloatArray, pitch: FloatArray, yaw: FloatArray) -> Vectors:
    """Return the field directions (n, 3) in a sensor with these attitudes (rad): yaw, then pitch, then roll."""
    v = np.tile(FIELD, (len(yaw), 1))
    for (i, j), angle in (((0, 1), yaw), ((2, 0), pitch), ((1, 2), roll)):
        c, s = np.cos(angle), np.sin(angle)
        v[:, i], v[:, j] = c * v[:, i] + s * v[:, j], c * v[:, j] - s * v[:, i]
    return v


def make_car_motion(random: np.random.Generator, count: int = 3000) -> Vectors:
    """Return directions with full yaw, roll within 2 and pitch within 3 degrees."""
    t, phase = np.linspace(0.0, 16.0 * np.pi, count), random.uniform(0.0, 6.0, 3)
    roll, pitch = np.radians(2.0) * np.sin(2.7 * t + phase[0]), np.radians(3.0) * np.sin(1.9 * t + phase[1])
    return rotate_field(roll, pitch, t + phase[2])


def make_dive_motion(random: np.random.Generator, count: int = 3000) -> Vectors:
    """Return directions with full yaw, roll and pitch within 25 degrees."""
    t, phase = np.linspace(0.0, 16.0 * np.pi, count), random.uniform(0.0, 6.0, 3)
    roll, pitch = np.radians(25.0) * np.sin(2.7 * t + phase[0]), np.radians(25.0) * np.sin(1.9 * t + phase[1])
    return rotate_field(roll, pitch, t + phase[2])


def make_figure_eight_motion(random: np.random.Generator, count: int = 3000) -> Vectors:
    t, phase = np.linspace(0.0, 8.0 * np.pi, count), random.uniform(0.0, 6.0, 4)
    roll, pitch = np.radians(70.0) * np.sin(t + phase[0]), np.radians(50.0) * np.sin(2.0 * t + phase[1])
    return rotate_field(roll, pitch, np.radians(60.0) * np.sin(t / 3.0 + phase[2]) + t / 4.0)


def make_six_face_motion(random: np.random.Generator, count: int = 3000) -> Vectors:
    """Return directions of a rotation about the vertical on each of six faces."""
    yaw = np.linspace(0.0, 2.0 * np.pi, count // 6) + random.uniform(0.0, 6.0)
    faces = [(0.0, 0.0), (np.pi, 0.0), (np.pi / 2, 0.0), (-np.pi / 2, 0.0), (0.0, np.pi / 2), (0.0, -np.pi / 2)]
    return np.concatenate(
        [rotate_field(np.full(len(yaw), roll), np.full(len(yaw), pitch), yaw) for roll, pitch in faces]
    )


def make_random_directions(random: np.random.Generator, count: int = 3000) -> Vectors:
    v = random.normal(size=(count, 3))
    return v / np.linalg.norm(v, axis=1)[:, None]


Motion = Callable[..., Vectors]


def make_readings(v: Vectors, random: np.random.Generator, iron: FloatArray = IRON, stddev: float = 0.1) -> Vectors:
    return SCALE * v @ iron.T + BIAS + stddev * random.normal(size=v.shape)


def make_stretched_iron(axis: int, ratio: float) -> FloatArray:
    """Return soft iron of determinant 1 with one stretched axis."""
    iron = np.ones(3)
    iron[axis] = ratio
    return np.diag(iron / np.cbrt(ratio))


# Plausible records.


@pytest.mark.compiled
@pytest.mark.parametrize(
    "motion", [make_dive_motion, make_figure_eight_motion, make_six_face_motion, make_random_directions]
)
@pytest.mark.parametrize("soft_iron", [True, False])
def test_plausible_records_have_no_reason(motion: Motion, soft_iron: bool) -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        field = make_readings(motion(random, 12_000), random, IRON if soft_iron else np.eye(3))
        found = ellipsoid(field, unit="uT", soft_iron=soft_iron)
        assert found.verdict.ok, (seed, found.verdict.reasons)


@pytest.mark.compiled
@pytest.mark.parametrize("lsb", [0.01, 0.1, 1.0])
def test_quantised_record_has_no_reason(lsb: float) -> None:
    random = np.random.default_rng(1)
    assert ellipsoid(
        np.round(make_readings(make_figure_eight_motion(random), random) / lsb) * lsb, unit="uT"
    ).verdict.ok


def test_larger_noise_of_one_axis_has_no_reason() -> None:
    random = np.random.default_rng(1)
    field = make_readings(make_figure_eight_motion(random), random, stddev=0.0) + random.normal(size=(3000, 3)) * (
        0.1,
        0.1,
        0.5,
    )
    assert ellipsoid(field, unit="uT").verdict.ok


# Soft iron that a sphere neglects.


@pytest.mark.parametrize("ratio", [1.0, 1.005, 1.01, 1.02, 1.05, 1.1])
def test_level_motion_does_not_determine_a_sphere(ratio: float) -> None:
    """Soft iron along z does not show in the residuals of a level rotation, but biases the result by 1.7 times."""
    random = np.random.default_rng(1)
    found = ellipsoid(
        make_readings(make_car_motion(random), random, make_stretched_iron(2, ratio)), unit="uT", soft_iron=False
    )
    assert not found.verdict.ok
    assert any("soft iron of 2 %, which this motion does not exclude" in reason for reason in found.verdict.reasons)
    assert any("tilt the sensor by 30 degrees" in reason for reason in found.verdict.reasons)


@pytest.mark.compiled
@pytest.mark.parametrize("ratio", [1.01, 1.02, 1.05])
@pytest.mark.parametrize("motion", [make_dive_motion, make_figure_eight_motion])
def test_soft_iron_that_biases_a_sphere_is_a_reason(motion: Motion, ratio: float) -> None:
    """For any soft iron, a sphere with an error of at least a hundredth of the field is never accepted."""
    for seed in range(5):
        random = np.random.default_rng(seed)
        found = ellipsoid(
            make_readings(motion(random), random, make_stretched_iron(2, ratio)), unit="uT", soft_iron=False
        )
        off = np.hypot(found.scale / SCALE - 1.0, np.linalg.norm(found.bias - BIAS) / SCALE)
        assert not (off > 0.012 and found.verdict.ok)


def test_soft_iron_does_not_bias_a_complete_sphere() -> None:
    """With all directions, soft iron of half a percent does not bias the sphere, and the verdict is ok."""
    random = np.random.default_rng(1)
    found = ellipsoid(
        make_readings(make_random_directions(random), random, make_stretched_iron(2, 1.005)), unit="uT", soft_iron=False
    )
    assert found.verdict.ok
    assert abs(found.bias - BIAS).max() < 0.002 * SCALE


@pytest.mark.compiled
@pytest.mark.parametrize("motion", [make_car_motion, make_dive_motion])
def test_error_of_neglected_soft_iron_matches_its_covariance(motion: Motion, monkeypatch: pytest.MonkeyPatch) -> None:
    """The soft iron is drawn from the assumed distribution: the error minus its estimate has the stated covariance.

    At half a percent, second-order effects are negligible.
    """
    monkeypatch.setattr(import_module("navsense.calibration.ellipsoid"), "TYPICAL_SOFT_IRON", 0.005)
    random, squares = np.random.default_rng(1), []
    v = motion(random)
    for _ in range(200):
        strain = theta_to_matrix(SYMMETRIC_TRACELESS @ (0.005 * random.normal(size=5)))
        stream = EllipsoidFitter(soft_iron=False)
        stream.add(make_readings(v, random, np.eye(3) + strain, stddev=0.125))
        fit = stream.fit()
        found = estimate_neglected_soft_iron(fit)
        off = (fit.theta[:3] * stream.unit + stream.shift - BIAS) / SCALE
        error = np.append(off, fit.theta[3] * stream.unit / SCALE - 1.0) - found.shift
        spread = found.hidden_covariance + fit.covariance[:4, :4] / fit.strength**2
        squares.append(float(error @ np.linalg.solve(spread, error)))
    low, high = chi2.ppf([FALSE_ALARM / 2.0, 1.0 - FALSE_ALARM / 2.0], 4 * 200)
    assert low < sum(squares) < high


@pytest.mark.compiled
def test_sphere_is_at_least_as_accurate_as_the_ellipsoid() -> None:
    for motion in (make_car_motion, make_dive_motion, make_figure_eight_motion):
        random = np.random.default_rng(3)
        field = make_readings(motion(random), random, np.eye(3))
        fits = []
        for soft_iron in (False, True):
            stream = EllipsoidFitter(soft_iron=soft_iron)
            stream.add(field)
            fits.append(stream.fit())
        assert estimate_neglected_soft_iron(fits[0]).hidden_error < fits[1].max_relative_stddev


@pytest.mark.compiled
def test_undetermined_sphere_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    monkeypatch.setattr(import_module("navsense.calibration.ellipsoid"), "TYPICAL_SOFT_IRON", 0.2)
    with pytest.raises(CalibrationError, match="cannot be determined; tilt the sensor"):
        ellipsoid(make_readings(make_car_motion(random), random, np.eye(3)), unit="uT", soft_iron=False)


# Invalid and saturated readings.


@pytest.mark.compiled
def test_dropouts_are_named() -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        field = make_readings(make_figure_eight_motion(random), random)
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
        field = make_readings(make_figure_eight_motion(random), random)
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
def test_saturation_without_a_single_limit_is_a_reason(after: str, limit: float) -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        field = np.minimum(make_readings(make_random_directions(random), random), (limit, np.inf, np.inf))
        if after == "mounting":
            field = field @ np.linalg.qr(random.normal(size=(3, 3)))[0]
        else:
            field = field + 0.02 * random.normal(size=field.shape)
        found = ellipsoid(field, unit="uT")
        assert "at the sensor's limit" in "; ".join(found.verdict.reasons)


# Search.


def test_step_is_a_straight_line_of_the_quadric() -> None:
    """The ten coefficients follow a line up to a factor, and the path starts in the direction of the step."""

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
    """A belt of 3 degrees does not separate the centre from the axes along it, but the search converges."""
    random = np.random.default_rng(1)
    stream = EllipsoidFitter(soft_iron=True)
    stream.add(make_readings(make_car_motion(random, 8192), random))
    fit = stream.fit()
    assert fit.converged
    assert fit.max_relative_stddev > 0.1


@pytest.mark.compiled
def test_planar_motion_is_rejected_from_a_subsample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subsample shows that the motion is planar: the number of processed rows is a small multiple."""
    random = np.random.default_rng(1)
    rows, add = [], _ellipsoid_fit.add_total

    def count_rows(field: Vectors, *rest: FloatArray) -> None:
        rows.append(len(field))
        add(field, *rest)

    monkeypatch.setattr(_ellipsoid_fit, "add_total", count_rows)
    yaw = np.linspace(0.0, 1000.0, 300_000)
    with pytest.raises(CalibrationError, match="turned about that axis only"):
        ellipsoid(make_readings(rotate_field(0.0 * yaw, 0.0 * yaw, yaw), random), unit="uT")
    assert sum(rows) < 10 * 300_000


@pytest.mark.compiled
def test_warning_is_the_same_for_few_rows() -> None:
    """A subsample names the same missing directions as all readings."""
    random = np.random.default_rng(1)
    stream = EllipsoidFitter(soft_iron=True)
    yaw = np.linspace(0.0, 1000.0, 70_000)
    stream.add(make_readings(rotate_field(0.0 * yaw, 0.0 * yaw, yaw), random))
    gap = find_missing_motion(stream.fit(), compute_spread(stream.powers), 0.1)
    assert "turned about that axis only" in gap.motion
