"""The dead reckoning of the survey: each error of the instruments acts as its covariance says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import navsense as ns
from navsense.examples import dead_reckoning

pytestmark = [pytest.mark.requirement("CAM-1"), pytest.mark.compiled]

RUNS = 24

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


@pytest.mark.usefixtures("exact_start")
def test_track_without_errors_is_the_truth(survey: ns.world.World) -> None:
    run = ns.simulate(ns.with_parameters(survey, NO_ERRORS), 300.0, runs=1).select_run(0)
    track = dead_reckoning.estimate_track(run)
    assert np.abs(track.error).max() < 0.01


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
