"""Laws of every kind of current: blocks, order, interpreter, rotated worlds, sums, randomness by run and name."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from navsense.core import pose, random_streams
from navsense.core.errors import FieldError, SimulationError
from navsense.core.geodesy import Origin
from navsense.core.typing import Times, Vectors
from navsense.environment.base import FieldSum, UniformField, VectorField
from navsense.environment.current import (
    BoundaryLayer,
    CurrentReplay,
    DepthScaledCurrent,
    GaussMarkovCurrent,
    GaussMarkovProcess,
    GriddedCurrent,
    HarmonicFlow,
    StratifiedCurrent,
    StratifiedGaussMarkovCurrent,
    TidalConstituent,
    TidalCurrent,
    TidalEllipse,
    TidalEllipses,
    TideTable,
    UuvGaussMarkovProcess,
    base,
    gauss_markov,
    gridded,
    realise,
    replay,
    stratified,
    tidal,
)
from navsense.environment.current.base import list_random_names

pytestmark = pytest.mark.requirement("CUR-2")

START = datetime(2021, 3, 4, 15, tzinfo=UTC)
HERE = Origin(0.7, -1.2, 5.0, 0.3)
TABLE = StratifiedCurrent((0.0, 10.0, 40.0), ((0.1, 0.2, 0.0), (0.3, -0.1, 0.0), (-0.2, 0.05, 0.0)), heading=0.4)
WANDER = GaussMarkovCurrent(
    GaussMarkovProcess.from_stddev(0.5, 0.3, 20.0, 0.0, 1.0),
    GaussMarkovProcess(0.2, density=0.05),
    GaussMarkovProcess.from_stddev(0.0, 0.1, 5.0),
    "w",
)
ONE = UuvGaussMarkovProcess(0.5, 0.0, 1.0, 0.1, 0.02, 0.01)
CLASSIC = GaussMarkovCurrent(ONE, ONE, ONE, name="c")
LAYERS = StratifiedGaussMarkovCurrent(
    TABLE,
    GaussMarkovProcess.from_stddev(0.0, 0.05, 30.0, 0.0, 2.0),
    GaussMarkovProcess.from_stddev(0.0, 0.2, 60.0, -math.pi, math.pi),
)
TIDE = TidalCurrent(
    TideTable(np.array([-3600.0, 40.0, 3600.0, 7000.0]), np.array([0.4, 0.0, -0.5, 0.2]), START), 1.0, 4.0
)
MOON = TidalConstituent("M2", 0.4, 1.0)


def make_grid(space: Any) -> GriddedCurrent:
    draw = np.random.default_rng(1)
    axes = [
        np.linspace(0.0, 200.0, 3),
        np.linspace(-60.0, 60.0, 5),
        np.linspace(-60.0, 60.0, 4),
        np.array([-50.0, 0.0]),
    ]
    if space == "geodetic":
        axes[1], axes[2] = HERE.latitude + axes[1] / 6.3e6, HERE.longitude + axes[2] / 4.8e6
    if space == "ecef":
        for k in range(3):
            axes[1 + k] = HERE.ecef_transform[k, 3] + np.linspace(-300.0, 300.0, 3 + k)
    points = (axes[0], axes[1], axes[2], axes[3])
    velocity = draw.uniform(-1.0, 1.0, (*(axis.size for axis in points), 3))
    return GriddedCurrent(points, velocity, space, HERE, outside="hold")


KINDS: dict[str, VectorField] = {
    "uniform": UniformField((0.3, 0.1, 0.0)),
    "Gauss-Markov": realise(WANDER, 5, 2),
    "classic": realise(CLASSIC, 5, 2),
    "stratified": TABLE,
    "stratified Gauss-Markov": realise(LAYERS, 5, 2),
    "tide table": TIDE,
    "constituents": TidalCurrent(HarmonicFlow((MOON, TidalConstituent("K1", 0.2, 3.0)), START, 0.05), 0.3),
    "ellipses": TidalEllipses((TidalEllipse(MOON, 0.1, 0.7),), START, (0.02, 0.01, 0.0)),
    "sheared ellipses": BoundaryLayer(TidalEllipses((TidalEllipse(MOON, -0.3, 2.0),), START), -90.0, 90.0, 0.1),
    "grid in the world": make_grid("world"),
    "grid by latitude": make_grid("geodetic"),
    "grid round the earth's centre": make_grid("ecef"),
    "boundary layer": BoundaryLayer(TIDE, -60.0, 40.0),
    "profile": DepthScaledCurrent(TIDE, (0.0, 30.0), (1.0, 0.2)),
    "replay": CurrentReplay(
        np.linspace(0.0, 200.0, 21), np.random.default_rng(2).uniform(-1.0, 1.0, (21, 3)), "ned", 0.2
    ),
    "sum": FieldSum((TABLE, TIDE, realise(WANDER, 5, 2))),
}
every = pytest.mark.parametrize("kind", KINDS)


def make_track(count: int = 400) -> tuple[Vectors, Times]:
    time: Times = np.arange(count, dtype=np.float64) * 0.5
    position: Vectors = np.stack((50.0 * np.cos(0.1 * time), 40.0 * np.sin(0.07 * time), -0.25 * time), axis=1)
    return position, time


@every
def test_values_do_not_depend_on_block_size(kind: str) -> None:
    field, (position, time) = KINDS[kind], make_track()
    complete = field.at(position, time)
    cuts = [0, 1, 2, 7, 130, 131, 399, 400]
    parts = [field.at(position[a:b], time[a:b]) for a, b in pairwise(cuts)]
    assert complete.shape == (400, 3)
    assert np.isfinite(complete).all()
    assert np.array_equal(np.concatenate(parts), complete)


@every
def test_values_do_not_depend_on_the_order_of_rows(kind: str) -> None:
    field, (position, time) = KINDS[kind], make_track()
    order = np.random.default_rng(3).permutation(400)
    assert np.array_equal(field.at(position[order], time[order]), field.at(position, time)[order])


@every
def test_empty_input_gives_empty_output(kind: str) -> None:
    assert KINDS[kind].at(np.empty((0, 3)), np.empty(0)).shape == (0, 3)


@every
def test_compiled_and_interpreted_agree_to_the_last_bit(
    kind: str, interpret: Callable[[Any], Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    position, time = make_track(60)
    field = KINDS[kind]
    compiled = field.at(position, time)
    modules: tuple[ModuleType, ...] = (base, gauss_markov, gridded, replay, stratified, tidal)
    kernels = [(m, name, one) for m in modules for name, one in vars(m).items() if hasattr(one, "py_func")]
    for module, name, kernel in kernels:
        plain = random_streams._fill_rows_interpreted if name == "fill_rows" else interpret(kernel)
        monkeypatch.setattr(module, name, plain)
    fresh = {"Gauss-Markov": WANDER, "classic": CLASSIC, "stratified Gauss-Markov": LAYERS}.get(kind)
    assert np.array_equal((realise(fresh, 5, 2) if fresh else field).at(position, time), compiled)


@every
@pytest.mark.parametrize("angle", [0.7, -2.9])
def test_rotated_world_has_the_rotated_current(kind: str, angle: float) -> None:
    field, (position, time) = KINDS[kind], make_track()
    rotation = (math.cos(angle / 2.0), 0.0, 0.0, math.sin(angle / 2.0))

    def turn(vectors: Vectors) -> Vectors:
        return np.array([pose.rotate(rotation, tuple(row)) for row in vectors.tolist()])

    got = field.rotate(rotation).at(turn(position), time)
    # A cube of patches at another position rotates the directions by up to 2e-6 rad.
    near = 1e-5 if "latitude" in kind or "centre" in kind else 1e-9
    assert got == pytest.approx(turn(field.at(position, time)), abs=near)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "uniform"])
def test_rotation_about_a_horizontal_axis_is_an_error(kind: str) -> None:
    with pytest.raises(FieldError, match="about the vertical"):
        KINDS[kind].rotate((math.cos(0.2), math.sin(0.2), 0.0, 0.0))


@pytest.mark.parametrize("kind", ["Gauss-Markov", "classic", "stratified Gauss-Markov", "tide table", "replay"])
@pytest.mark.parametrize("instant", [math.nan, -1e4, math.inf, 1e12])
def test_time_outside_the_record_is_an_error(kind: str, instant: float) -> None:
    with pytest.raises(FieldError, match=r"instant.* of row 1"):
        KINDS[kind].at(np.zeros((3, 3)), np.array([0.0, instant, 0.0]))


@pytest.mark.parametrize(
    "kind", ["stratified", "stratified Gauss-Markov", "profile", "boundary layer", "grid in the world", "sum"]
)
def test_invalid_position_is_an_error(kind: str) -> None:
    position = np.array([[0.0, 0.0, -5.0], [0.0, 0.0, math.nan]])
    with pytest.raises(FieldError, match="of row 1"):
        KINDS[kind].at(position, np.zeros(2))


def test_current_sum_adds_its_currents() -> None:
    position, time = make_track()
    parts = [one.at(position, time) for one in (TABLE, TIDE, KINDS["Gauss-Markov"])]
    assert KINDS["sum"].at(position, time) == pytest.approx(sum(parts), rel=1e-15, abs=0.0)


@pytest.mark.parametrize("one", [WANDER, CLASSIC, LAYERS])
def test_random_current_depends_on_seed_run_and_name(one: GaussMarkovCurrent | StratifiedGaussMarkovCurrent) -> None:
    position, time = make_track()
    first = realise(one, 5, 2).at(position, time)
    assert np.array_equal(realise(one, 5, 2).at(position, time), first)
    others = [realise(one, 6, 2), realise(one, 5, 3), realise(type(one)(**{**list_fields(one), "name": "other"}), 5, 2)]
    for other in others:
        assert (other.at(position, time) != first).any(axis=1).mean() > 0.8


def list_fields(one: GaussMarkovCurrent | StratifiedGaussMarkovCurrent) -> dict[str, Any]:
    return {name: getattr(one, name) for name in type(one).__dataclass_fields__}


@pytest.mark.parametrize("one", [WANDER, CLASSIC, LAYERS])
def test_alternating_queries_get_the_same_current(one: GaussMarkovCurrent | StratifiedGaussMarkovCurrent) -> None:
    shared, position = realise(one, 1), np.zeros((50, 3))
    slow, quick = np.arange(50) * 7.3, np.arange(50) * 0.011
    got = [shared.at(position, slow), shared.at(position, quick), shared.at(position, slow), shared.at(position, quick)]
    assert np.array_equal(got[0], got[2])
    assert np.array_equal(got[1], got[3])
    assert np.array_equal(got[1], realise(one, 1).at(position, quick))


def test_nested_random_currents_are_realised() -> None:
    position, time = make_track()
    complete = realise(
        FieldSum((TABLE, BoundaryLayer(DepthScaledCurrent(WANDER, (0.0, 9.0), (1.0, 0.5)), -60.0, 40.0))), 5, 2
    )
    inner = BoundaryLayer(DepthScaledCurrent(realise(WANDER, 5, 2), (0.0, 9.0), (1.0, 0.5)), -60.0, 40.0)
    assert np.array_equal(complete.at(position, time), FieldSum((TABLE, inner)).at(position, time))
    assert realise(TABLE, 1) is TABLE


@pytest.mark.parametrize("one", [WANDER, LAYERS, BoundaryLayer(WANDER, -9.0, 3.0)])
def test_random_current_without_a_run_has_no_velocity(one: VectorField) -> None:
    with pytest.raises(FieldError, match=r"in a run only; use navsense.environment.current.realise"):
        one.at(np.zeros((1, 3)), np.zeros(1))


@pytest.mark.parametrize(
    "layer", [lambda field: BoundaryLayer(field, -50.0, 10.0), lambda field: DepthScaledCurrent(field, (0.0,), (0.5,))]
)
def test_nested_fields_are_realised_once_each(layer: Callable[[VectorField], VectorField]) -> None:
    """If each level evaluated its names twice, forty levels would take 10^12 steps."""
    field: VectorField = GaussMarkovCurrent(GaussMarkovProcess(0.4))
    for _ in range(40):
        field = layer(field)
    assert list_random_names(field) == ("current",)
    assert realise(field, 1).at(np.array([[0.0, 0.0, 0.0]]), np.array([1.0]))[0, 0] > 0.0


def test_duplicate_name_is_an_error() -> None:
    with pytest.raises(FieldError, match="name of a current: w; must be unique"):
        realise(FieldSum((WANDER, DepthScaledCurrent(WANDER, (0.0,), (1.0,)))), 1)
    with pytest.raises(SimulationError, match="seed"):
        realise(TABLE, -1)
