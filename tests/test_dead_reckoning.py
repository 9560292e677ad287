"""The dead reckoning example reports a covariance P that is consistent with its errors e.

For a consistent estimate, e' P^-1 e is chi-squared. Runs are independent vehicles, so the sum over their final errors
is chi-squared too, with the sum of the degrees of freedom. Errors at other times are correlated and are not tested. The
bounds reject a consistent estimate once in a million.

Few vehicles give wide bounds: with six poses the mean may be from 1.4 to 15.6 around 6. Tests of single causes are
sharper. A common-mode error of all vehicles adds its own e' P^-1 e to the mean, and shows without randomness if the
instruments are ideal. A single source of variance v is compared with its share of P: with optimal weights, P changes
with v by d P / d ln v, the contribution of v. Then e' P^-1 e is a sum of chi-squared variables with one degree of
freedom each, weighted by the eigenvalues of P^-1 d P / d ln v.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binom, chi2

import navsense as ns
from navsense.noise.specification import Noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from navsense.core.typing import FloatArray

pytestmark = pytest.mark.compiled

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

DURATION = 290.0
"""Duration in s: a leg, the turn, and a part of the next leg."""

FALSE_ALARM_RATE = 1e-6
"""Rate at which a consistent estimate fails."""

COMMON_MODE_LIMIT = math.sqrt(2.0 * 6.0 / 1000.0)
"""Deviation of the mean of e' P^-1 e over 1000 poses: a smaller error is undetectable with 1000 vehicles."""


TRIADS = tuple(f"{triad}_{axis}" for triad in ("angular_velocity", "linear_acceleration") for axis in "xyz")
"""Fields of an IMU."""


@pytest.fixture
def reckoning(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the example with a node every two seconds and an estimate every 35 nodes and at the end."""
    pytest.importorskip("gtsam")
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("dead_reckoning")
    monkeypatch.setattr(module, "PINGS", 16)
    monkeypatch.setattr(module, "NODES", 35)
    return module


def compute_final_errors(
    reckoning: Any, world: Any, run: Any, runs: int, remove_prior: Callable[[Any], None] | None = None
) -> dict[int, list[float]]:
    """Return e' P^-1 e at the end of each run by degrees of freedom: 2 for position, 6 for pose.

    `remove_prior` changes an estimator before it runs.
    """
    found = []
    for number in range(runs):
        estimator = reckoning.Estimator(world, run, number, 0)
        if remove_prior is not None:
            remove_prior(estimator)
        found.append(estimator.track())
    return {2: [float(track.position_nees[-1]) for track in found], 6: [float(track.pose_nees[-1]) for track in found]}


def make_prior_remover(letter: str, part: slice) -> Callable[[Any], None]:
    """Return a function that sets a part of an estimator's constant errors to zero."""

    def remove_prior(estimator: Any) -> None:
        estimator._constant_stddevs[letter][part] = 0.0

    return remove_prior


def make_inaccurate_world(reckoning: Any, world: Any) -> Any:
    """Return the world with larger scale factors (10 times) and DVL offset (30 times), and a slower compass."""
    variants = []
    for sensor in world.sensors:
        spec = sensor.spec
        if sensor.name == reckoning.IMU:
            axes = [noise for triad in ("angular_velocity", "linear_acceleration") for noise in spec.noise()[triad]]
            scaled = [replace(axis, scale_factor_stddev=10.0 * axis.scale_factor_stddev) for axis in axes]
            spec = replace(spec, **dict(zip(TRIADS, scaled, strict=True)))
        if sensor.name == reckoning.DVL:
            spec = replace(spec, bottom=replace(spec.bottom, long_term_offset=30.0 * spec.bottom.long_term_offset))
        rate = sensor.rate / 4.0 if sensor.name == reckoning.COMPASS else sensor.rate
        variants.append(replace(sensor, spec=spec, rate=rate))
    return replace(world, sensors=tuple(variants))


def remove_errors(reckoning: Any, world: Any) -> Any:
    """Return the world with instruments and clocks without errors; the declared DVL errors remain."""
    variants = []
    for sensor in world.sensors:
        spec = sensor.spec
        if sensor.name == reckoning.DVL:
            track = replace(spec.bottom, reported_stddev=spec.bottom.noise.stddev, noise=Noise(), per_speed=0.0)
            track = replace(track, long_term_scale=0.0, long_term_offset=0.0)
            spec = replace(spec, bottom=track, misalignment_stddev=0.0)
        else:
            fields = {reckoning.IMU: TRIADS, reckoning.COMPASS: ("x", "y", "z"), reckoning.GAUGE: ("pressure",)}
            spec = replace(spec, **dict.fromkeys(fields[sensor.name], Noise()))
        variants.append(replace(sensor, spec=spec))
    clocks = tuple(replace(clock, noise=Noise(), oscillator=None) for clock in world.clocks)
    return replace(world, sensors=tuple(variants), clocks=clocks)


def replace_accelerometer_noise(reckoning: Any, world: Any, force: list[Noise]) -> Any:
    """Return the world with these accelerometer noises, one per axis."""
    noises = dict(zip(TRIADS[3:], force, strict=True))
    sensors = (replace(s, spec=replace(s.spec, **noises)) if s.name == reckoning.IMU else s for s in world.sensors)
    return replace(world, sensors=tuple(sensors))


def compute_chi_squared_bounds(weights: FloatArray, runs: int) -> tuple[float, float]:
    """Return bounds of a sum of weighted chi-squared variables over runs, with `FALSE_ALARM_RATE`.

    Chernoff's bound: P(Q > q) is at most exp(-s q) E exp(s Q) for any s, E exp(s Q) = prod (1 - 2 s w)^(-runs / 2).
    """
    rare, steps = math.log(2.0 / FALSE_ALARM_RATE), np.linspace(0.001, 0.999, 999)[:, None] / (2.0 * weights.max())
    above = (rare - 0.5 * runs * np.log1p(-2.0 * steps * weights).sum(axis=1)) / steps[:, 0]
    steps = 100.0 * steps
    below = (0.5 * runs * np.log1p(2.0 * steps * weights).sum(axis=1) - rare) / steps[:, 0]
    return float(below.max()), float(above.min())


class ZeroDraws:
    """Random draws that are all zero."""

    def normal(self, size: int) -> Any:
        """Return `size` zeros."""
        return np.zeros(size)


@pytest.mark.requirement("DOO-1")
def test_dead_reckoning_error_is_within_its_estimate(reckoning: Any) -> None:
    runs, world = 6, reckoning.make_random_vehicles(ns.load(reckoning.SURVEY))
    run = ns.simulate(world, DURATION, seed=0, runs=runs)
    for dof, squares in compute_final_errors(reckoning, world, run, runs).items():
        low, high = reckoning.bounds(dof * runs)
        assert low < sum(squares) < high, squares
        outside = sum(square > chi2.ppf(0.95, dof) for square in squares)
        assert outside <= binom.ppf(1.0 - FALSE_ALARM_RATE, runs, 0.05), squares


@pytest.mark.requirement("DOO-1")
def test_common_mode_error_of_vehicles_is_small(reckoning: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is random. Gravity at the world origin alone would be detected with 1000 vehicles."""
    world, begin = reckoning.make_random_vehicles(ns.load(reckoning.SURVEY)), reckoning.Estimator._begin
    run = ns.simulate(remove_errors(reckoning, world), DURATION, runs=1)
    monkeypatch.setattr(reckoning.Estimator, "_begin", lambda self, _draws: begin(self, ZeroDraws()))
    found = compute_final_errors(reckoning, world, run, 1)
    assert found[6][0] < COMMON_MODE_LIMIT
    parameters = reckoning.make_imu_parameters
    monkeypatch.setattr(
        reckoning,
        "make_imu_parameters",
        lambda environment, noises, place: parameters(environment, noises, 0.0 * place),
    )
    assert compute_final_errors(reckoning, world, run, 1)[6][0] > COMMON_MODE_LIMIT


@pytest.mark.requirement("DOO-1")
def test_flicker_has_the_expected_deviation(reckoning: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reckoning, "NODES", 70)  # the initial state is exact: fewer estimates are needed
    runs, world, begin = 10, reckoning.make_random_vehicles(ns.load(reckoning.SURVEY)), reckoning.Estimator._begin
    force = next(s.spec for s in world.sensors if s.name == reckoning.IMU).noise()["linear_acceleration"]
    flicker_only = [Noise(bias_instability=axis.bias_instability) for axis in force]
    run = ns.simulate(
        replace_accelerometer_noise(reckoning, remove_errors(reckoning, world), flicker_only),
        DURATION,
        seed=0,
        runs=runs,
    )
    monkeypatch.setattr(reckoning.Estimator, "_begin", lambda self, _draws: begin(self, ZeroDraws()))
    squares, covariances = compute_final_errors(reckoning, world, run, runs)[6], []
    for variance in (0.9, 1.1):
        scaled = [replace(axis, bias_instability=math.sqrt(variance) * axis.bias_instability) for axis in force]
        estimator = reckoning.Estimator(replace_accelerometer_noise(reckoning, world, scaled), run, 0, 0)
        estimator.track()
        last = reckoning.gtsam.symbol("x", estimator._nodes.size - 1)
        covariances.append(estimator._isam.marginalCovariance(last))
    less, more = covariances
    low, high = compute_chi_squared_bounds(
        np.linalg.eigvals(np.linalg.solve(0.5 * (less + more), (more - less) / 0.2)).real, runs
    )
    assert low < sum(squares) < high, squares


@pytest.mark.requirement("DOO-1")
def test_constant_errors_need_a_prior(reckoning: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate is consistent for inaccurate instruments, and overconfident without variables for their errors."""
    runs, world = 2, make_inaccurate_world(reckoning, reckoning.make_random_vehicles(ns.load(reckoning.SURVEY)))
    run = ns.simulate(world, DURATION, seed=0, runs=runs)
    for dof, squares in compute_final_errors(reckoning, world, run, runs).items():
        low, high = reckoning.bounds(dof * runs)
        assert low < sum(squares) < high, squares
    for remove_prior in make_prior_remover("s", slice(3, 6)), make_prior_remover("c", slice(4, 7)):
        squares = compute_final_errors(reckoning, world, run, runs, remove_prior)[2]
        assert sum(squares) > reckoning.bounds(2 * runs)[1], squares
    compute_compass_rates = reckoning.Estimator._interpolate_field
    monkeypatch.setattr(
        reckoning.Estimator,
        "_interpolate_field",
        lambda self, time, rate: compute_compass_rates(self, time, 0.0 * rate),
    )
    squares = compute_final_errors(reckoning, world, run, runs)[6]
    assert sum(squares) > reckoning.bounds(6 * runs)[1], "the compass at its own instants"
