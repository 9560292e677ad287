"""Layers by depth, profiles and the boundary layer: NumPy's interpolation, DAVE's file, invalid tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate

from navsense.core.errors import FieldError
from navsense.core.typing import Vectors
from navsense.environment.base import UniformField
from navsense.environment.current import (
    BoundaryLayer,
    DepthScaledCurrent,
    GaussMarkovProcess,
    StratifiedCurrent,
    StratifiedGaussMarkovCurrent,
    UuvGaussMarkovProcess,
    realise,
)

pytestmark = pytest.mark.requirement("CUR-2")


def make_positions(depths: Any, surface: float = 0.0) -> Vectors:
    down = np.atleast_1d(np.asarray(depths, dtype=np.float64))
    return np.stack((0.0 * down, 0.0 * down, surface - down), axis=1)


def evaluate_at(field: Any, depths: Any, surface: float = 0.0) -> Vectors:
    position = make_positions(depths, surface)
    out: Vectors = field.at(position, np.zeros(position.shape[0]))
    return out


@pytest.mark.parametrize("surface", [0.0, 3.5])
def test_interpolation_equals_numpy(surface: float) -> None:
    draw = np.random.default_rng(4)
    depths, velocities = np.cumsum(draw.uniform(0.5, 9.0, 30)), draw.uniform(-1.0, 1.0, (30, 3))
    table = StratifiedCurrent(tuple(depths.tolist()), tuple(map(tuple, velocities.tolist())), surface)
    asked = draw.uniform(-20.0, 200.0, 500)
    expected = np.stack([np.interp(asked, depths, column) for column in velocities.T], axis=1)
    assert evaluate_at(table, asked, surface) == pytest.approx(expected, abs=1e-12)


def test_velocity_at_a_row_is_exact() -> None:
    table = StratifiedCurrent((0.0, 10.0, 25.0), ((0.1, 0.2, 0.0), (0.3, 0.4, 0.05), (-0.5, 0.6, 0.0)))
    assert evaluate_at(table, [0.0, 10.0, 25.0]).tolist() == [[0.1, 0.2, 0.0], [0.3, 0.4, 0.05], [-0.5, 0.6, 0.0]]


def test_heading_rotates_east_and_north() -> None:
    """If the x axis points north, an eastward current is along -y."""
    table = StratifiedCurrent((0.0,), ((0.5, 0.0, 0.1),), heading=math.pi / 2.0)
    assert evaluate_at(table, 4.0)[0] == pytest.approx([0.0, -0.5, 0.1], abs=1e-16)


def test_outside_rules_hold_or_raise_an_error() -> None:
    rows = ((5.0, 10.0), ((0.1, 0.0, 0.0), (0.3, 0.0, 0.0)))
    assert evaluate_at(StratifiedCurrent(*rows), [-1.0, 4.9, 99.0])[:, 0].tolist() == [0.1, 0.1, 0.3]
    with pytest.raises(FieldError, match=r'depth of row 1 \(m\): 4.9; must be from 5 to 10.*; use outside="hold"'):
        evaluate_at(StratifiedCurrent(*rows, outside="error"), [7.0, 4.9])
    wandering = StratifiedGaussMarkovCurrent(
        StratifiedCurrent(*rows, outside="error"), GaussMarkovProcess(), GaussMarkovProcess()
    )
    with pytest.raises(FieldError, match=r"depth of row 1 \(m\): 4.9; must be from 5 to 10"):
        evaluate_at(realise(wandering, 1), [7.0, 4.9])
    with pytest.raises(FieldError, match="outside of layers: zero; must be one of hold, error"):
        StratifiedCurrent(*rows, outside="zero")  # type: ignore[arg-type]


DAVE = [
    (0.05, 0.0), (0.03, 0.01), (0.02, 0.01), (0.01, 0.01), (0.01, 0.0), (0.02, 0.0), (0.02, 0.0), (0.02, 0.01),
    (0.02, 0.01), (0.02, 0.01), (0.02, 0.01), (0.0, 0.01),
]  # fmt: skip
"""East and north velocities of the original file from 0 to 110 m, copied manually."""


def test_dave_file_is_read_with_east_first(example_data: Path) -> None:
    """DAVE publishes north as x and east as y. Here x is east."""
    table = StratifiedCurrent.from_file(example_data / "dave" / "transientOceanCurrentDatabase.csv")
    assert table.depths == tuple(10.0 * k for k in range(12))
    assert [vector[:2] for vector in table.velocities] == DAVE
    assert evaluate_at(table, 15.0)[0] == pytest.approx([0.025, 0.01, 0.0], abs=1e-15)


def test_dave_layers_have_the_limits_of_their_plugin(example_data: Path) -> None:
    table = StratifiedCurrent.from_file(example_data / "dave" / "transientOceanCurrentDatabase.csv")
    compute_speed = UuvGaussMarkovProcess(0.0, 0.0, 5.0, 0.0, 0.0)
    field = StratifiedGaussMarkovCurrent(table, compute_speed, UuvGaussMarkovProcess(0.0, -math.pi, math.pi))
    assert evaluate_at(realise(field, 1), np.arange(0.0, 115.0, 2.5)) == pytest.approx(
        evaluate_at(table, np.arange(0.0, 115.0, 2.5)), rel=1e-12, abs=0.0
    )


def write_table(folder: Path, text: str) -> Path:
    path = folder / "layers.csv"
    path.write_bytes(text.encode())
    return path


HEAD = "north [m/s],east [m/s],depth [m]\n"


@pytest.mark.parametrize(
    ("text", "depths", "velocities"),
    [
        (HEAD + "0.1,0.2,0\n0.3,-0.4,5\n", (0.0, 5.0), ((0.2, 0.1, 0.0), (-0.4, 0.3, 0.0))),
        ("Depth, East, North, Down\r\n1,.5,0,-.1\r\n", (1.0,), ((0.5, 0.0, 0.1),)),
        ("a note\n# depth,up\n\n3,0.25,\n", (3.0,), ((0.0, 0.0, 0.25),)),
    ],
)
def test_columns_are_found_by_name(tmp_path: Path, text: str, depths: Any, velocities: Any) -> None:
    table = StratifiedCurrent.from_file(write_table(tmp_path, text))
    assert (table.depths, table.velocities) == (depths, velocities)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 0, "is empty"),
        ("0.1,0.2,0\n", 1, "must name the columns: depth"),
        (HEAD, 0, "rows of the table of currents by depth: none"),
        ("north,speed,depth\n0,0,0\n", 1, "column of the table: speed"),
        ("north,east\n0,0\n", 1, "must be depth and a velocity"),
        ("north [cm/s],east [m/s],depth [m]\n1,1,1\n", 1, "unit of north: cm/s; must be in m/s; convert it"),
        ("north (kn),east,depth\n1,1,1\n", 1, "unit of north: kn; must be in m/s; convert it"),
        ("north_knots,east,depth\n1,1,1\n", 1, "unit of north: knots; must be in m/s; convert it"),
        ("north,east,depth ft\n1,1,1\n", 1, "unit of depth: ft; must be in m; convert it"),
        ("up,down,depth\n1,1,1\n", 1, "columns of the table: up, down; must be one of the two"),
        ("north [m/s],east [m/s],depth [ft]\n1,1,1\n", 1, "unit of depth: ft; must be in m"),
        (HEAD + "0.1,0.2,0\n0.1,0.2,20\n0.1,0.2,10\n", 4, "sort the rows by depth"),
        (HEAD + "0.1,0.2,0\n0.1,0.2,0\n", 3, "must be below 0.0 m"),
        (HEAD + "0.1,0.2,-5\n", 2, "must be from 0 to 12000 m, positive downwards"),
        (HEAD + "0.1,,0\n", 2, "east of a layer: empty; must be a finite number; fill in all cells"),
        (HEAD + "0.1,nan,0\n", 2, "east of a layer: nan"),
        (HEAD + "0.1,30,0\n", 2, "30.0; must be a finite number of absolute value up to 15 m/s; check the unit"),
        (HEAD + "0.1,0\n", 2, "number of columns: 2; must be 3: north, east, depth"),
        (HEAD + "0.1,0,3,4\n", 2, "number of columns: 4"),
        ('"' + "x" * 200_000, 1, "field larger than field limit"),
    ],
)
def test_table_error_has_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = write_table(tmp_path, text)
    with pytest.raises(FieldError) as found:
        StratifiedCurrent.from_file(path)
    assert problem in str(found.value)
    assert str(found.value).startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_missing_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="does not exist"):
        StratifiedCurrent.from_file(tmp_path / "none.csv")


def test_factors_scale_a_current() -> None:
    field = DepthScaledCurrent(UniformField((0.4, -0.2, 0.0)), (0.0, 10.0), (1.0, 0.5))
    got = evaluate_at(field, [-2.0, 0.0, 5.0, 10.0, 30.0])
    assert got == pytest.approx(np.outer([1.0, 1.0, 0.75, 0.5, 0.5], [0.4, -0.2, 0.0]), rel=1e-15, abs=0.0)


def test_power_law_and_its_mean_equal_closed_forms() -> None:
    """The mean over the layer is 7/8 of the free-stream current for a power of 1/7, and 10/11 for 1/10."""
    for exponent, mean in ((1.0 / 7.0, 7.0 / 8.0), (0.1, 10.0 / 11.0)):
        field = BoundaryLayer(UniformField((1.0, 0.0, 0.0)), -50.0, 20.0, exponent)

        def compute_speed(height: float, field: BoundaryLayer = field) -> float:
            return float(evaluate_at(field, 50.0 - height)[0, 0])

        total, _ = integrate.quad(compute_speed, 0.0, 20.0, epsabs=1e-9, limit=400)
        assert total / 20.0 == pytest.approx(mean, abs=1e-7)
        assert compute_speed(20.0) == compute_speed(35.0) == 1.0
        assert compute_speed(0.0) == compute_speed(-5.0) == 0.0
        assert compute_speed(2.0) == pytest.approx(0.1**exponent, rel=1e-14, abs=0.0)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: StratifiedCurrent((), ()), "layers: none"),
        (lambda: StratifiedCurrent((0.0, 1.0), ((0.0, 0.0, 0.0),)), "numbers of depths and values: 2 and 1"),
        (lambda: StratifiedCurrent((0.0,), ((math.nan, 0.0, 0.0),)), "layer velocity of row 0 (m/s): nan"),
        (lambda: StratifiedCurrent((0.0,), ((0.0, 0.0, 0.0),), surface=math.inf), "water's surface"),
        (
            lambda: DepthScaledCurrent(UniformField((0.0, 0.0, 0.0)), (0.0,), (1.0, 2.0)),
            "numbers of depths and values: 1 and 2",
        ),
        (lambda: DepthScaledCurrent(UniformField((0.0, 0.0, 0.0)), (0.0,), (math.nan,)), "factor of a layer"),
        (lambda: BoundaryLayer(UniformField((0.0, 0.0, 0.0)), 0.0, 0.0), "thickness of a boundary layer"),
        (lambda: BoundaryLayer(UniformField((0.0, 0.0, 0.0)), math.nan, 1.0), "height of the bed"),
        (lambda: BoundaryLayer(UniformField((0.0, 0.0, 0.0)), 0.0, 1.0, 0.0), "exponent of a boundary layer"),
        (
            lambda: StratifiedGaussMarkovCurrent(
                StratifiedCurrent(tuple(range(1001)), ((0.0, 0.0, 0.0),) * 1001),
                GaussMarkovProcess(),
                GaussMarkovProcess(),
            ),
            "number of random layers: 1001; must be at most 1000",
        ),
    ],
)
def test_invalid_values_are_errors(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(FieldError) as found:
        make()
    assert problem in str(found.value)


@pytest.mark.requirement("CUR-2")
@pytest.mark.parametrize("mark", [";", "\t"])
def test_table_without_commas_is_an_error(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "layers.csv"
    path.write_text(mark.join(("depth", "east", "north")) + "\n" + mark.join(("0", "0,1", "0,5")) + "\n")
    with pytest.raises(FieldError, match=r"layers\.csv:1: columns of the table: depth.*must be separated by commas"):
        StratifiedCurrent.from_file(path)
