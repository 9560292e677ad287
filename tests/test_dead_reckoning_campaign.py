"""The dead reckoning of the survey: each error of the instruments acts as its covariance says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense.core.typing import FloatArray
from navsense.examples import dead_reckoning

pytestmark = [pytest.mark.requirement("CAM-1"), pytest.mark.compiled]

RUNS = 12

FALSE_ALARM = 1e-6
"""Probability that a correct model fails one of the comparisons."""

GYRO = "imu.angular_velocity_*."

NO_ERRORS: Mapping[str, Any] = {
    "dvl.misalignment": [0.0, 0.0, 0.0],
    "dvl.misalignment_stddev": 0.0,
    "dvl.bottom.noise.stddev": 0.0,
    "dvl.bottom.per_speed": 0.0,
    "dvl.bottom.long_term_scale": 0.0,
    "dvl.bottom.long_term_offset": 0.0,
    f"{GYRO}bias_stddev": 0.0,
    f"{GYRO}bias_instability": 0.0,
    f"{GYRO}noise_density": 0.0,
    f"{GYRO}scale_factor_stddev": 0.0,
}
"""Values without random errors of the gyroscope and the DVL."""


@pytest.fixture(scope="module")
def survey() -> ns.world.World:
    """Return the world of the survey with the IMU and the DVL only."""
    from dataclasses import replace

    world = ns.load(Path(__file__).parent.parent / "examples" / "auv_survey.sdf")
    return replace(world, sensors=tuple(world.sensor(name) for name in ("imu", "dvl")))


@pytest.fixture
def exact_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start without errors."""
    monkeypatch.setattr(dead_reckoning, "START_POSITION", 1e-6)
    monkeypatch.setattr(dead_reckoning, "START_ROTATION", (0.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def exact_run(survey: ns.world.World) -> ns.Run:
    """Return a run of 300 s without errors of the instruments."""
    return ns.simulate(ns.with_parameters(survey, NO_ERRORS), 300.0, runs=1).select_run(0)


@pytest.mark.usefixtures("exact_start")
def test_track_without_errors_is_the_truth(exact_run: ns.Run) -> None:
    track = dead_reckoning.estimate_track(exact_run)
    assert np.abs(track.error).max() < 0.01


def test_row_ends_at_the_last_ping(exact_run: ns.Run) -> None:
    """The final error is that of the last ping. It contains the error of the start, which is drawn by run."""
    row, dvl = dead_reckoning.reduce(exact_run), exact_run["dvl"]
    assert row["time"][-1] == dvl["time_of_validity"][dvl.valid & dvl.emitted][-1]
    assert row["time"].size == row["error"].shape[0] == row["nees"].size == 30
    assert row["final_error"] == math.hypot(*row["error"][-1])
    assert row["final_error"] > 0.1  # m, that of the start of this run: the standard deviation is 0.5 m in each axis


def test_distance_is_the_length_of_the_horizontal_track(exact_run: ns.Run) -> None:
    """Lines between pings are a little shorter than the arc."""
    truth, dvl = exact_run.truth[exact_run.session.world.sensor("dvl").link], exact_run["dvl"]
    time = dvl["time_of_validity"][dvl.valid & dvl.emitted]
    during = (truth.time >= time[0]) & (truth.time <= time[-1])
    steps = np.diff(truth.position[during, :2], axis=0)
    length = float(np.linalg.norm(steps, axis=1).sum())
    speed = np.linalg.norm(steps, axis=1).max() * 100.0
    # In the time T the velocity differs by up to a T / 2 from its mean: the chord is shorter by up to a T^2 / 2.
    acceleration = np.linalg.norm(np.diff(steps, axis=0), axis=1).max() * 100.0**2
    shortening = 0.5 * acceleration * float((np.diff(time) ** 2).sum())
    # Up to two rows of 0.01 s are missing at the ends.
    difference = dead_reckoning.reduce(exact_run)["distance"] - length
    assert shortening < 0.05 * length
    assert -shortening - 0.02 * speed <= difference <= 0.02 * speed


ROWS, STEP = 1201, 0.125
TIME = STEP * np.arange(ROWS)

START = Rotation.from_euler("zyx", (0.7, 0.1, -0.2))

EFFECTS = {"start_rotation": 3, "gyro_bias": 3, "gyro_scale": 3, "misalignment": 3, "offset": 3, "dvl_scale": 1}
"""Names of the constant errors, and their numbers of axes."""


def make_track() -> tuple[FloatArray, FloatArray]:
    """Return velocities (m/s) and rotation vectors (rad) between pings of a vehicle that turns about all axes."""
    phase = 0.1 * TIME
    velocity_b = np.stack([1.5 + 0.3 * np.sin(phase), 0.2 * np.cos(phase), 0.1 * np.sin(2.0 * phase)], axis=1)
    steps = 0.01 * np.stack([0.4 * np.sin(phase), 0.3 * np.cos(phase), 1.0 + 0.5 * np.sin(0.5 * phase)], axis=1)
    steps[0] = 0.0
    return velocity_b, steps


def integrate(errors: Mapping[str, FloatArray]) -> FloatArray:
    """Return the positions (n, 3) that the estimator computes from instruments with constant errors."""
    velocity_b, steps = make_track()
    zero = np.zeros(3)
    start = Rotation.from_rotvec(errors.get("start_rotation", zero)) * START
    steps = steps * (1.0 + errors.get("gyro_scale", zero))
    steps[1:] += errors.get("gyro_bias", zero) * STEP
    velocity_b = velocity_b * (1.0 + errors.get("dvl_scale", zero)[0])
    velocity_b = velocity_b + np.cross(errors.get("misalignment", zero), velocity_b) + errors.get("offset", zero)
    matrices = dead_reckoning.integrate_rotation(TIME, start, steps, zero)
    velocity_w = np.einsum("nij,nj->ni", matrices, velocity_b)
    middle = 0.5 * (velocity_w[1:] + velocity_w[:-1]) * STEP
    return np.concatenate([np.zeros((1, 3)), np.cumsum(middle, axis=0)])


@pytest.mark.parametrize("name", EFFECTS)
def test_effect_of_a_unit_error_is_the_derivative_of_the_estimate(name: str) -> None:
    """A central difference of the estimator, for each axis of the error.

    The angle by an error of the gyroscope is an integral of rotations. Over a step f the trapezoidal rule has the
    relative error |f|^2 / 12. The velocity times the time bounds its effect on the position. The difference of h has
    the relative error a^2 / 6 for the angle a that h causes, and the rounding of positions of 200 m over h.
    """
    velocity_b, steps = make_track()
    matrices = dead_reckoning.integrate_rotation(TIME, START, steps, np.zeros(3))
    effects = dead_reckoning.compute_effects(TIME, matrices, velocity_b, steps)
    assert {key: each.shape for key, each in effects.items()} == {k: (n, ROWS, 3) for k, n in EFFECTS.items()}
    largest_step = np.linalg.norm(steps, axis=1).max()
    for axis, effect in enumerate(effects[name]):
        angle = {"gyro_bias": TIME[-1], "gyro_scale": np.abs(steps[:, axis]).sum()}.get(name, 0.0)
        h = 1e-4 / max(angle, 1.0)
        error = h * np.eye(3)[axis]
        difference = (integrate({name: error}) - integrate({name: -error})) / (2.0 * h)
        reach = np.linalg.norm(velocity_b, axis=1).max() * TIME[-1]
        tolerance = (largest_step**2 / 12.0 * angle + 1e-8 / 6.0 * max(angle, 1.0)) * reach
        tolerance += ROWS * np.finfo(float).eps * 200.0 / h
        assert np.abs(difference - effect).max() < tolerance
        assert np.abs(effect).max() > 100.0 * tolerance


def test_effect_of_the_start_position_is_constant(exact_run: ns.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of the start position moves the track as a whole. Its covariance is added to each row."""
    tracks = []
    for deviation in (1.0, 2.0):
        monkeypatch.setattr(dead_reckoning, "START_POSITION", deviation)
        tracks.append(dead_reckoning.estimate_track(exact_run))
    shift = tracks[1].error - tracks[0].error
    rounding = 10.0 * np.finfo(float).eps
    assert np.abs(shift - shift[0]).max() < rounding * np.abs(tracks[1].position).max()
    assert np.abs(shift[0]).min() > 0.0
    added = tracks[1].covariance - tracks[0].covariance - 3.0 * np.eye(2)
    assert np.abs(added).max() < 100.0 * rounding * np.abs(tracks[1].covariance).max()


def test_white_noise_of_a_velocity_has_its_closed_form(survey: ns.world.World) -> None:
    """Four beams at the angle J from the vertical have var(v_x) = s^2 / (2 sin^2 J), and n pings n T^2 times that."""
    spec = survey.sensor("dvl").spec
    assert isinstance(spec, ns.sensors.Dvl)
    velocity_b, matrices = np.tile([2.0, 0.0, 0.0], (ROWS, 1)), np.tile(np.eye(3), (ROWS, 1, 1))
    covariance = dead_reckoning.compute_white_noise_covariance(TIME, matrices, velocity_b, spec)
    deviation = spec.bottom.noise.stddev + 2.0 * spec.bottom.per_speed
    expected = np.arange(ROWS) * (deviation * STEP) ** 2 / (2.0 * math.sin(math.radians(25.0)) ** 2)
    rounding = ROWS * np.finfo(float).eps * expected[-1]
    assert np.abs(covariance - expected[:, None, None] * np.eye(2)).max() < rounding


def test_random_walk_of_the_heading_has_its_closed_form() -> None:
    """Straight ahead at v, the error to the side has the variance q^2 v^2 t^3 / 3.

    The trapezoidal rule of the integral of (v t)^2 adds q^2 v^2 t T^2 / 6.
    """
    density, speed = 1e-3, 2.0
    path = np.outer(speed * TIME, [1.0, 0.0, 0.0])
    covariance = dead_reckoning.compute_random_walk_covariance(TIME, path, density)
    expected = (density * speed) ** 2 * (TIME**3 / 3.0 + TIME * STEP**2 / 6.0)
    # Terms three times as large cancel.
    rounding = 10.0 * ROWS * np.finfo(float).eps * expected[-1]
    assert np.abs(covariance[:, 1, 1] - expected).max() < rounding
    assert np.abs(covariance[:, 0]).max() < rounding


@pytest.mark.usefixtures("exact_start")
@pytest.mark.parametrize(
    "errors",
    [
        {"dvl.misalignment_stddev": 0.01},
        {"dvl.bottom.noise.stddev": 0.05},
        {"dvl.bottom.long_term_scale": 0.01},
        {"dvl.bottom.long_term_offset": 0.01},
        {f"{GYRO}bias_stddev": 1e-4},
        {f"{GYRO}noise_density": 1e-3},
        {f"{GYRO}scale_factor_stddev": 0.01},
    ],
    ids=lambda errors: next(iter(errors)),
)
def test_each_error_has_its_covariance(survey: ns.world.World, errors: Mapping[str, float]) -> None:
    """The sum of squares over the runs of an error along each axis is chi-square, at the end of the run."""
    runs = ns.simulate(ns.with_parameters(survey, {**NO_ERRORS, **errors}), 300.0, seed=1, runs=RUNS)
    tracks = [dead_reckoning.estimate_track(runs.select_run(number)) for number in range(RUNS)]
    low, high = stats.chi2.ppf((0.25 * FALSE_ALARM, 1.0 - 0.25 * FALSE_ALARM), RUNS)
    for axis in (0, 1):
        ratios = [track.error[-1, axis] ** 2 / track.covariance[-1, axis, axis] for track in tracks]
        assert low < sum(ratios) < high


def test_mean_nees_is_inside_its_bounds(survey: ns.world.World) -> None:
    world = ns.with_parameters(survey, {"dvl.misalignment": [0.0, 0.0, 0.0], "dvl.misalignment_stddev": 0.003})
    runs = ns.simulate(world, 300.0, seed=2, runs=RUNS)
    rows = [dead_reckoning.reduce(runs.select_run(number)) for number in range(RUNS)]
    low, high = ns.analysis.monte_carlo.compute_nees_bounds(2, RUNS, 1.0 - FALSE_ALARM)
    assert low < np.mean([row["nees"][-1] for row in rows]) < high


def test_a_world_without_a_dvl_is_an_error() -> None:
    run = ns.simulate(ns.load(Path(__file__).parent.parent / "examples" / "quadrotor.sdf"), 1.0, runs=1).select_run(0)
    with pytest.raises(ns.NavsenseError, match="number of DVLs: 0; dead reckoning needs exactly one"):
        dead_reckoning.estimate_track(run)
