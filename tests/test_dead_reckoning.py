"""The dead reckoning of the survey says how far off it may be, and is off by that.

Of an honest estimate e' P^-1 e is chi-squared. Runs are vehicles drawn one by one, so that the ends of their ways are
independent and the sum over them is chi-squared too, of as many times the degrees of freedom: the test takes no other
instant, since errors along a way hang together. Bounds leave one honest estimate in a million outside.

Few vehicles leave wide bounds: the mean of six poses may be from 1.4 to 15.6 where 6 is honest. Single causes show
sooner. An error that all vehicles have alike adds its own e' P^-1 e to the mean, and is seen without chance where the
instruments are right. What one source of variance v does is seen where it is alone, beside what the estimate expects of
it: weights that are right are the best ones, so P changes with v by what v brings in, d P / d ln v. Then e' P^-1 e is a
sum of chi-squared of one degree of freedom each, weighted by the eigenvalues of P^-1 d P / d ln v.
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
"""s: a leg, the turn, and a part of the leg back."""

ONCE = 1e-6
"""How often an honest estimate fails."""

ALIKE = math.sqrt(2.0 * 6.0 / 1000.0)
"""Deviation of the mean of e' P^-1 e over a thousand poses: less than this nobody finds in a thousand vehicles."""


TRIADS = tuple(f"{triad}_{axis}" for triad in ("angular_velocity", "linear_acceleration") for axis in "xyz")
"""Fields of an IMU."""


@pytest.fixture
def reckoning(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example, with a node every two seconds, which looks at what it knows every 35 nodes and at the end."""
    pytest.importorskip("gtsam")
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("dead_reckoning")
    monkeypatch.setattr(module, "PINGS", 16)
    monkeypatch.setattr(module, "NODES", 35)
    return module


def ends(
    reckoning: Any, world: Any, run: Any, runs: int, forget: Callable[[Any], None] | None = None
) -> dict[int, list[float]]:
    """Return e' P^-1 e at the ends of the vehicles of a run, by degrees of freedom: place and whole pose.

    What `forget` takes from an estimator it does not know of.
    """
    found = []
    for number in range(runs):
        estimator = reckoning.Estimator(world, run, number, 0)
        if forget is not None:
            forget(estimator)
        found.append(estimator.track())
    return {2: [float(track.normalised[-1]) for track in found], 6: [float(track.whole[-1]) for track in found]}


def make_neutral(letter: str, part: slice) -> Callable[[Any], None]:
    """Return what takes a part of that which lasts for nought."""

    def forget(estimator: Any) -> None:
        estimator._lasting[letter][part] = 0.0

    return forget


def make_worse(reckoning: Any, world: Any) -> Any:
    """Return the world with ten times the scale factors, thirty times the DVL's offset, a compass four times slower."""
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


def make_flickering(reckoning: Any, world: Any, force: list[Noise]) -> Any:
    """Return the world with another noise of the accelerometers, one for each axis."""
    noises = dict(zip(TRIADS[3:], force, strict=True))
    sensors = (replace(s, spec=replace(s.spec, **noises)) if s.name == reckoning.IMU else s for s in world.sensors)
    return replace(world, sensors=tuple(sensors))


def between(weights: FloatArray, runs: int) -> tuple[float, float]:
    """Return between what a sum of weighted chi-squared over runs lies but for at most once in a million times.

    Chernoff's bound: P(Q > q) is at most exp(-s q) E exp(s Q) for any s, E exp(s Q) = prod (1 - 2 s w)^(-runs / 2).
    """
    rare, steps = math.log(2.0 / ONCE), np.linspace(0.001, 0.999, 999)[:, None] / (2.0 * weights.max())
    above = (rare - 0.5 * runs * np.log1p(-2.0 * steps * weights).sum(axis=1)) / steps[:, 0]
    steps = 100.0 * steps
    below = (0.5 * runs * np.log1p(2.0 * steps * weights).sum(axis=1) - rare) / steps[:, 0]
    return float(below.max()), float(above.min())


class Expected:
    """Draws that are all as expected, nought."""

    def normal(self, size: int) -> Any:
        """Return so many."""
        return np.zeros(size)


@pytest.mark.requirement("DOO-1")
def test_dead_reckoning_error_is_within_its_estimate(reckoning: Any) -> None:
    runs, world = 6, reckoning.vehicles(ns.load(reckoning.SURVEY))
    run = ns.simulate(world, DURATION, seed=0, runs=runs)
    for freedom, squares in ends(reckoning, world, run, runs).items():
        low, high = reckoning.bounds(freedom * runs)
        assert low < sum(squares) < high, squares
        outside = sum(square > chi2.ppf(0.95, freedom) for square in squares)
        assert outside <= binom.ppf(1.0 - ONCE, runs, 0.05), squares


@pytest.mark.requirement("DOO-1")
def test_common_mode_error_of_vehicles_is_small(reckoning: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is drawn: no false alarms. Gravity of the world's middle would be found in a thousand vehicles."""
    world, begin = reckoning.vehicles(ns.load(reckoning.SURVEY)), reckoning.Estimator._begin
    run = ns.simulate(remove_errors(reckoning, world), DURATION, runs=1)
    monkeypatch.setattr(reckoning.Estimator, "_begin", lambda self, _draws: begin(self, Expected()))
    found = ends(reckoning, world, run, 1)
    assert found[6][0] < ALIKE
    parameters = reckoning.parameters
    monkeypatch.setattr(
        reckoning, "parameters", lambda environment, sheet, place: parameters(environment, sheet, 0.0 * place)
    )
    assert ends(reckoning, world, run, 1)[6][0] > ALIKE


@pytest.mark.requirement("DOO-1")
def test_flicker_has_the_expected_deviation(reckoning: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reckoning, "NODES", 70)  # they start right, and need fewer estimates on the way
    runs, world, begin = 10, reckoning.vehicles(ns.load(reckoning.SURVEY)), reckoning.Estimator._begin
    force = next(s.spec for s in world.sensors if s.name == reckoning.IMU).noise()["linear_acceleration"]
    alone = [Noise(bias_instability=axis.bias_instability) for axis in force]
    run = ns.simulate(make_flickering(reckoning, remove_errors(reckoning, world), alone), DURATION, seed=0, runs=runs)
    monkeypatch.setattr(reckoning.Estimator, "_begin", lambda self, _draws: begin(self, Expected()))
    squares, covariances = ends(reckoning, world, run, runs)[6], []
    for variance in (0.9, 1.1):
        scaled = [replace(axis, bias_instability=math.sqrt(variance) * axis.bias_instability) for axis in force]
        estimator = reckoning.Estimator(make_flickering(reckoning, world, scaled), run, 0, 0)
        estimator.track()
        last = reckoning.gtsam.symbol("x", estimator._nodes.size - 1)
        covariances.append(estimator._isam.marginalCovariance(last))
    less, more = covariances
    low, high = between(np.linalg.eigvals(np.linalg.solve(0.5 * (less + more), (more - less) / 0.2)).real, runs)
    assert low < sum(squares) < high, squares


@pytest.mark.requirement("DOO-1")
def test_constant_errors_need_a_prior(reckoning: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of worse instruments it says so; without a variable for what makes them worse it is far too sure of itself."""
    runs, world = 2, make_worse(reckoning, reckoning.vehicles(ns.load(reckoning.SURVEY)))
    run = ns.simulate(world, DURATION, seed=0, runs=runs)
    for freedom, squares in ends(reckoning, world, run, runs).items():
        low, high = reckoning.bounds(freedom * runs)
        assert low < sum(squares) < high, squares
    for forget in make_neutral("s", slice(3, 6)), make_neutral("c", slice(4, 7)):
        squares = ends(reckoning, world, run, runs, forget)[2]
        assert sum(squares) > reckoning.bounds(2 * runs)[1], squares
    felt = reckoning.Estimator._felt
    monkeypatch.setattr(reckoning.Estimator, "_felt", lambda self, time, rate: felt(self, time, 0.0 * rate))
    squares = ends(reckoning, world, run, runs)[6]
    assert sum(squares) > reckoning.bounds(6 * runs)[1], "the compass at its own instants"
