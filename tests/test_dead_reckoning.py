"""The dead reckoning of the survey says how far off it may be, and is off by that.

Of an honest estimate e' P^-1 e is chi-squared. Runs are vehicles drawn one by one, so that the ends of their ways are
independent and the sum over them is chi-squared too, of as many times the degrees of freedom: the test takes no other
instant, since errors along a way hang together. Bounds leave one honest estimate in a million outside.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom, chi2

import navsense as ns

pytestmark = pytest.mark.compiled

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

DURATION = 290.0
"""s: a leg, the turn, and a part of the leg back."""

ONCE = 1e-6
"""How often an honest estimate fails."""


@pytest.fixture
def reckoning(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example, which looks at what it knows every 70 nodes and at the end: the same estimate there, sooner."""
    pytest.importorskip("gtsam")
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("dead_reckoning")
    monkeypatch.setattr(module, "NODES", 70)
    return module


def ends(reckoning: Any, world: Any, runs: int, forgotten: tuple[str, slice] | None = None) -> dict[int, list[float]]:
    """Return e' P^-1 e at the ends of the first vehicles of seed 0, by degrees of freedom: place and whole pose.

    What is `forgotten` of that which lasts, a variable and a part of it, the estimate takes for nought.
    """
    run, found = ns.simulate(world, DURATION, seed=0, runs=runs), []
    for number in range(runs):
        estimator = reckoning.Estimator(world, run, number, 0)
        if forgotten is not None:
            estimator._lasting[forgotten[0]][forgotten[1]] = 0.0
        found.append(estimator.track())
    return {2: [float(track.normalised[-1]) for track in found], 6: [float(track.whole[-1]) for track in found]}


def worse(reckoning: Any, world: Any) -> Any:
    """Return the world with ten times the scale factors, thirty times the DVL's offset, a compass four times slower."""
    made = []
    for sensor in world.sensors:
        spec = sensor.spec
        if sensor.name == reckoning.IMU:
            names = [f"{triad}_{axis}" for triad in ("angular_velocity", "linear_acceleration") for axis in "xyz"]
            axes = [noise for triad in ("angular_velocity", "linear_acceleration") for noise in spec.noise()[triad]]
            scaled = [replace(axis, scale_factor_stddev=10.0 * axis.scale_factor_stddev) for axis in axes]
            spec = replace(spec, **dict(zip(names, scaled, strict=True)))
        if sensor.name == reckoning.DVL:
            spec = replace(spec, bottom=replace(spec.bottom, long_term_offset=30.0 * spec.bottom.long_term_offset))
        rate = sensor.rate / 4.0 if sensor.name == reckoning.COMPASS else sensor.rate
        made.append(replace(sensor, spec=spec, rate=rate))
    return replace(world, sensors=tuple(made))


@pytest.mark.requirement("DOO-1")
def test_the_dead_reckoning_is_off_by_what_it_says(reckoning: Any) -> None:
    runs = 6
    found = ends(reckoning, reckoning.vehicles(ns.load(reckoning.SURVEY)), runs)
    for freedom, squares in found.items():
        low, high = reckoning.bounds(freedom * runs)
        assert low < sum(squares) < high, squares
        outside = sum(square > chi2.ppf(0.95, freedom) for square in squares)
        assert outside <= binom.ppf(1.0 - ONCE, runs, 0.05), squares


@pytest.mark.requirement("DOO-1")
def test_what_lasts_has_to_be_known_of(reckoning: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of worse instruments it says so; without a variable for what makes them worse it is far too sure of itself."""
    monkeypatch.setattr(reckoning, "PINGS", 16)
    monkeypatch.setattr(reckoning, "NODES", 35)
    runs, world = 2, worse(reckoning, reckoning.vehicles(ns.load(reckoning.SURVEY)))
    for freedom, squares in ends(reckoning, world, runs).items():
        low, high = reckoning.bounds(freedom * runs)
        assert low < sum(squares) < high, squares
    for forgotten in (("s", slice(3, 6)), ("c", slice(4, 7))):
        squares = ends(reckoning, world, runs, forgotten)[2]
        assert sum(squares) > reckoning.bounds(2 * runs)[1], forgotten
    felt = reckoning.Estimator._felt
    monkeypatch.setattr(reckoning.Estimator, "_felt", lambda self, time, rate: felt(self, time, 0.0 * rate))
    squares = ends(reckoning, world, runs)[6]
    assert sum(squares) > reckoning.bounds(6 * runs)[1], "the compass at its own instants"
