"""Currents on grids of space and time: SciPy's interpolation, Gazebo's file, geodetic coordinates, invalid tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymap3d
import pytest
from scipy.interpolate import RegularGridInterpolator

from navsense.core.errors import FieldError
from navsense.core.geodesy import Origin
from navsense.core.typing import FloatArray, Vectors
from navsense.environment.current import GriddedCurrent
from navsense.environment.current.gridded import (
    CENTRE,
    GEODETIC,
    HALF_WIDTH,
    JACOBIAN,
    LINEARISATION_SIZE,
    ROTATION,
    update_linearisation,
)

pytestmark = pytest.mark.requirement("CUR-2")

HERE = Origin(0.65, -2.1, 12.0, 0.8)
DRAW = np.random.default_rng(8)
Points = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def make_rising_axis(low: float, high: float, count: int) -> FloatArray:
    steps = np.cumsum(DRAW.uniform(0.2, 1.0, count))
    return low + (high - low) * (steps - steps[0]) / (steps[-1] - steps[0])


def make_values(points: Points) -> FloatArray:
    return DRAW.uniform(-1.0, 1.0, (*(axis.size for axis in points), 3))


def interpolate_with_scipy(points: Points, velocity: FloatArray, asked: FloatArray) -> FloatArray:
    got: FloatArray = RegularGridInterpolator(points, velocity)(asked)
    return got


def test_interpolation_equals_scipy() -> None:
    points = (
        make_rising_axis(0, 90, 4),
        make_rising_axis(-40, 70, 6),
        make_rising_axis(-30, 30, 5),
        make_rising_axis(-80, 0, 7),
    )
    velocity = make_values(points)
    asked = np.stack([DRAW.uniform(axis[0], axis[-1], 2000) for axis in points], axis=1)
    got = GriddedCurrent(points, velocity, "world").at(asked[:, 1:], asked[:, 0])
    assert got == pytest.approx(interpolate_with_scipy(points, velocity, asked), abs=1e-13)
    corners = np.stack([axis[DRAW.integers(0, axis.size, 200)] for axis in points], axis=1)
    got = GriddedCurrent(points, velocity, "world").at(corners[:, 1:], corners[:, 0])
    assert got == pytest.approx(interpolate_with_scipy(points, velocity, corners), abs=1e-13)


def rotate_enu_to_world(vectors: FloatArray, latitude: FloatArray, longitude: FloatArray) -> Vectors:
    """Return east, north, up vectors at positions (rad) in world axes, by pymap3d."""
    x, y, z = pymap3d.enu2uvw(*vectors.T, latitude, longitude, deg=False)
    e, n, u = pymap3d.uvw2enu(x, y, z, HERE.latitude, HERE.longitude, deg=False)
    s, c = math.sin(HERE.heading), math.cos(HERE.heading)
    return np.stack((c * e + s * n, c * n - s * e, u), axis=1)


def convert_to_geodetic(position: Vectors) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return latitude, longitude (rad), altitude (m) of world positions by pymap3d."""
    s, c = math.sin(HERE.heading), math.cos(HERE.heading)
    east, north = c * position[:, 0] - s * position[:, 1], s * position[:, 0] + c * position[:, 1]
    here = HERE.latitude, HERE.longitude, HERE.elevation
    got = pymap3d.enu2geodetic(east, north, position[:, 2], *here, deg=False)
    return tuple(np.asarray(one) for one in got)  # type: ignore[return-value]


POSITION = DRAW.uniform((-9e3, -9e3, -90.0), (9e3, 9e3, 0.0), (1500, 3))
TIME = DRAW.uniform(0.0, 50.0, 1500)


def test_geodetic_grid_agrees_with_pymap3d() -> None:
    latitude, longitude, altitude = convert_to_geodetic(POSITION)
    points = (
        make_rising_axis(0.0, 50.0, 3),
        make_rising_axis(HERE.latitude - 0.003, HERE.latitude + 0.003, 8),
        make_rising_axis(HERE.longitude - 0.004, HERE.longitude + 0.004, 9),
        make_rising_axis(-120.0, 40.0, 6),
    )
    velocity = make_values(points)
    expected = interpolate_with_scipy(points, velocity, np.stack((TIME, latitude, longitude, altitude), axis=1))
    got = GriddedCurrent(points, velocity, "geodetic", HERE).at(POSITION, TIME)
    assert got == pytest.approx(rotate_enu_to_world(expected, latitude, longitude), abs=3e-5)
    turn = points[0], points[1], points[2] + 2.0 * math.pi, points[3]
    assert GriddedCurrent(turn, velocity, "geodetic", HERE).at(POSITION, TIME) == pytest.approx(got, abs=1e-9)


def test_ecef_grid() -> None:
    latitude, longitude, altitude = convert_to_geodetic(POSITION)
    ecef = np.stack(pymap3d.geodetic2ecef(latitude, longitude, altitude, deg=False), axis=1)
    axes = [make_rising_axis(ecef[:, k].min() - 1.0, ecef[:, k].max() + 1.0, 5 + k) for k in range(3)]
    points = (make_rising_axis(0.0, 50.0, 3), axes[0], axes[1], axes[2])
    velocity = make_values(points)
    expected = interpolate_with_scipy(points, velocity, np.column_stack((TIME, ecef)))
    got = GriddedCurrent(points, velocity, "ecef", HERE).at(POSITION, TIME)
    assert got == pytest.approx(rotate_enu_to_world(expected, latitude, longitude), abs=3e-5)


@pytest.mark.parametrize("latitude", [0.0, 0.65, -1.2, 1.4, math.pi / 2 - 1e-4, -math.pi / 2])
def test_linearised_coordinates_agree_with_the_ellipsoid(latitude: float) -> None:
    """Positions agree to 0.03 mm (1 + tan phi), directions to 3e-6 rad (1 + tan phi)."""
    origin = Origin(latitude, 1.0, 50.0, 0.4)
    here = np.full(LINEARISATION_SIZE, math.nan)
    position = DRAW.uniform((-3e3, -3e3, -300.0), (3e3, 3e3, 100.0), (400, 3))
    expected = origin.to_geodetic(position)
    for place, (phi, lam, height) in zip(position.tolist(), expected.tolist(), strict=True):
        x, y, z = place
        update_linearisation(origin.ecef_transform, x, y, z, here)
        way = np.array(place) - here[CENTRE : CENTRE + 3]
        assert np.abs(way).max() <= here[HALF_WIDTH] <= 8.0
        got, east = (
            here[GEODETIC : GEODETIC + 3] + here[JACOBIAN : JACOBIAN + 9].reshape(3, 3) @ way,
            here[ROTATION : ROTATION + 3],
        )
        near = 3e-5 * max(1.0, math.tan(abs(phi))) if abs(phi) < math.pi / 2 - 2e-3 else 1e-8
        around = math.remainder(float(got[1]) - lam, 2.0 * math.pi) * math.cos(phi)
        assert abs(float(got[0]) - phi) * 6.4e6 < near
        assert abs(around) * 6.4e6 < near
        assert abs(float(got[2]) - height) < 3e-5
        places = np.array([[phi, lam, height]])
        assert origin.to_enu_at(places, east[None])[0] == pytest.approx([1, 0, 0], abs=max(0.1 * near, 1e-12))


def test_gazebo_grid_has_its_documented_values(example_data: Path) -> None:
    """The current is -1 m/s east and 0.5 m/s north everywhere, 0 to 100 m deep, within 0.01 degrees."""
    grid = load_gazebo_grid(example_data, "degrees")
    origin = grid.origin
    assert origin is not None
    assert [axis.size for axis in grid.points] == [9, 2, 2, 2]
    position = np.array([[0.0, 0.0, -50.0], [1000.0, -1000.0, -0.5], [0.0, 0.0, 3.0], [0.0, 0.0, -300.0]])
    got = grid.at(position, np.array([0.0, 35.0, 80.0, 5.0]))
    assert got[:, :2] == pytest.approx(np.tile([-1.0, 0.5], (4, 1)), abs=1e-6)
    with pytest.raises(FieldError, match=r"latitude of row 0 \(rad\): 0.00031.*must be from -0.00017.*=\"hold\""):
        grid.at(np.array([[0.0, 2000.0, -5.0]]), np.zeros(1))
    with pytest.raises(FieldError, match=r"time of row 1 \(s\): 80.5; must be from 0 to 80.*outside_time=\"hold\""):
        grid.at(position[:2], np.array([1.0, 80.5]))


def test_degrees_read_as_radians_are_another_grid(example_data: Path) -> None:
    """0.01 rad is 64 km: the declared unit decides."""
    grid = load_gazebo_grid(example_data, "radians")
    assert grid.at(np.array([[0.0, 2000.0, -5.0]]), np.zeros(1))[0, :2] == pytest.approx([-1.0, 0.5], abs=1e-3)


def load_gazebo_grid(example_data: Path, units: Any, **rest: Any) -> GriddedCurrent:
    return GriddedCurrent.from_file(
        example_data / "gz-sim" / "underwater_currents.csv",
        space="geodetic",
        position=("latitude_degree", "longitude_degree", "altitude_meter"),
        velocity=(
            "eastward_sea_water_velocity_meter_per_sec",
            "northward_sea_water_velocity_meter_per_sec",
            None,
        ),
        time="elapsed_time_second",
        units=units,
        origin=Origin(0.0, 0.0),
        **rest,
    )


def test_time_can_be_ignored_or_start_later(example_data: Path) -> None:
    grid = load_gazebo_grid(example_data, "degrees", ignore_time=True)
    assert grid.at(np.zeros((1, 3)), np.array([1e6]))[0, 0] == pytest.approx(-1.0, rel=1e-12, abs=0.0)
    grid = load_gazebo_grid(example_data, "degrees", start=30.0)
    assert (grid.points[0][0], grid.points[0][-1]) == (-30.0, 50.0)


def test_outside_rules_are_independent() -> None:
    points = (np.array([0.0, 1.0]), np.array([0.0, 2.0]), np.array([0.0, 2.0]), np.array([-5.0, 0.0]))
    velocity = make_values(points)
    inside, outside = np.array([[1.0, 1.0, -1.0]]), np.array([[3.0, 1.0, -1.0]])
    grid = GriddedCurrent(points, velocity, "world")
    above, top = (grid.at(np.array([[1.0, 1.0, z]]), np.zeros(1)) for z in (4.0, 0.0))
    assert np.array_equal(above, top)
    for position, time in ((inside, 2.0), (inside, -0.1), (outside, 0.0), (outside * (0, -1, 1), 0.0)):
        with pytest.raises(FieldError, match="the span of the grid"):
            grid.at(position, np.array([time]))
    held = GriddedCurrent(points, velocity, "world", outside="hold", outside_time="hold")
    assert held.at(outside, np.array([9.0])).tolist() == grid.at(np.array([[2.0, 1.0, -1.0]]), np.ones(1)).tolist()
    strict = GriddedCurrent(points, velocity, "world", outside_vertical="error")
    with pytest.raises(FieldError, match=r'z of row 0 \(m\): 4.*outside_vertical="hold"'):
        strict.at(np.array([[1.0, 1.0, 4.0]]), np.zeros(1))


def test_rounding_at_the_edge_is_inside() -> None:
    points = (np.zeros(1), np.array([0.0, 2.0]), np.array([0.0, 2.0]), np.array([-5.0, 0.0]))
    grid = GriddedCurrent(points, make_values(points), "world", outside_vertical="error")
    got = grid.at(np.array([[2.0 + 1e-9, -1e-9, 1e-9], [2.0, 0.0, 0.0]]), np.zeros(2))
    assert got[0].tolist() == got[1].tolist()


def test_field_is_constant_along_an_axis_of_one_point() -> None:
    one = np.array([0.0])
    points = (one, np.array([0.0, 10.0]), one, one)
    velocity = np.zeros((1, 2, 1, 1, 3))
    velocity[0, 1, 0, 0, 0] = 1.0
    grid = GriddedCurrent(points, velocity, "world", outside="hold", outside_time="hold")
    assert grid.at(np.array([[5.0, 40.0, -3.0]]), np.array([7.0]))[0].tolist() == [0.5, 0.0, 0.0]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axis_of_one_point_with_rule_error(axis: int) -> None:
    points = [np.array([0.0, 1.0]) for _ in range(4)]
    points[axis] = np.zeros(1)
    velocity = np.zeros((*(one.size for one in points), 3))
    grid = GriddedCurrent((points[0], points[1], points[2], points[3]), velocity, "world")
    asked = np.zeros((2, 4))
    asked[1, axis] = 0.25
    with pytest.raises(FieldError, match=r"of row 1 .*must be from 0 to 0, the span of the grid"):
        grid.at(asked[:, 1:], asked[:, 0])


HEAD = "t,x,y,z,u,v\n"
ROWS = "".join(f"{t},{x},{y},{z},0.1,0.2\n" for t in (0, 5) for x in (0, 1) for y in (0, 1) for z in (-9, 0))


def read(path: Path, **rest: Any) -> GriddedCurrent:
    arguments = {"space": "world", "position": ("x", "y", "z"), "velocity": ("u", "v", None), "time": "t", **rest}
    return GriddedCurrent.from_file(path, **arguments)


def test_rows_can_be_in_any_order(tmp_path: Path) -> None:
    points = [(t, x, y, z) for t in (0, 5) for x in (0, 1, 3) for y in (0, 2) for z in (-9, 0)]
    rows = [f"{t},{x},{y},{z},{0.1 * t + 0.01 * x},{0.1 * y + 0.01 * z}\n" for t, x, y, z in points]
    path = tmp_path / "grid.csv"
    path.write_text(HEAD + "".join(rows))
    tidy = read(path)
    path.write_text("\ufeff" + HEAD + "".join(rows[::-1]))
    assert np.array_equal(read(path).velocity, tidy.velocity)
    assert tidy.at(np.array([[2.0, 1.0, -4.5]]), np.array([2.5]))[0] == pytest.approx([0.27, 0.055, 0.0], abs=1e-15)


def test_table_starts_at_the_start_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_text(HEAD + "".join(f"{t},0,0,0,{0.01 * t},0\n" for t in (100, 110, 130)))
    grid, origin = read(path, start=110.0, outside="hold"), np.zeros((3, 3))
    assert grid.at(origin, np.array([-10.0, 0.0, 10.0]))[:, 0] == pytest.approx([1.0, 1.1, 1.2], abs=1e-14)
    with pytest.raises(FieldError, match=r"^time of row 0 \(s\): 20.1; must be from -10 to 20"):
        grid.at(origin[:1], np.array([20.1]))


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 0, "is empty"),
        (HEAD, 0, "rows of the grid of currents: none"),
        ("t,x,y,z,u,w\n" + ROWS, 1, "column: v; must occur once in the header, which has t, x, y, z, u, w"),
        ("t,x,y,z,u,v,u\n" + ROWS, 1, "column: u"),
        (HEAD + ROWS + "0,0,0\n", 18, "number of columns: 3; must be 6: t, x, y, z, u, v"),
        (HEAD + ROWS + "0,0,0,-9,0.1,0.2\n", 18, "also given in line 2; must be given once"),
        (HEAD + ROWS[: ROWS.rindex("5,1")], 0, "15 for 2 x 2 x 2 x 2 points; must hold each combination"),
        (HEAD + ROWS[ROWS.index("\n") + 1 :], 0, "the first at t 0, x 0, y 0, z -9"),
        (HEAD + ROWS.replace("0,1,1,0,0.1,0.2", "0,1,1,0,,0.2"), 9, "u: empty; must be a finite number"),
        (HEAD + ROWS.replace("0,1,1,0,0.1,0.2", "0,1,1,0,nan,0.2"), 9, "u: nan"),
        (HEAD + ROWS.replace("0,1,1,0,0.1,0.2", "0,1,1,0,0.1,1_0"), 9, "v: 1_0"),
        (
            HEAD + ROWS.replace("0,1,1,0,0.1,0.2", "0,1,1,0,40,0.2"),
            9,
            "u: 40.0; must be of absolute value up to 15 m/s",
        ),
    ],
)
def test_table_error_has_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = tmp_path / "grid.csv"
    path.write_text(text)
    with pytest.raises(FieldError) as found:
        read(path)
    assert problem in str(found.value)
    assert str(found.value).startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_latitude_beyond_the_poles_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_text(HEAD + re.sub(r"^(.),1,", r"\1,36,", ROWS, flags=re.MULTILINE))
    with pytest.raises(FieldError, match=r"latitude \(rad\) of a grid: 36.0.*for a file in degrees"):
        read(path, space="geodetic", origin=HERE)
    assert read(path, space="geodetic", origin=HERE, units="degrees").points[1][-1] == math.radians(36.0)
    with pytest.raises(FieldError, match="units of a grid of currents: grad"):
        read(path, space="geodetic", origin=HERE, units="grad")


AXIS = np.array([0.0, 1.0])
SOUND = (AXIS, AXIS, AXIS, AXIS)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: GriddedCurrent(SOUND, np.zeros((2, 2, 2, 3)), "world"), "shape of a grid of currents"),
        (lambda: GriddedCurrent(SOUND, np.full((2, 2, 2, 2, 3), math.nan), "world"), "velocity of a grid (m/s): nan"),
        (lambda: GriddedCurrent((AXIS[::-1], *SOUND[1:]), np.zeros((2, 2, 2, 2, 3)), "world"), "does not increase"),
        (lambda: GriddedCurrent((np.empty(0), *SOUND[1:]), np.zeros((0, 2, 2, 2, 3)), "world"), "one at least"),
        (lambda: GriddedCurrent(SOUND, np.zeros((2, 2, 2, 2, 3)), "geodetic"), "origin of the world: none"),
        (lambda: GriddedCurrent(SOUND, np.zeros((2, 2, 2, 2, 3)), "polar"), "must be one of world, geodetic, ecef"),  # type: ignore[arg-type]
        (lambda: GriddedCurrent(SOUND, np.zeros((2, 2, 2, 2, 3)), "world", outside="zero"), "outside of a grid: zero"),  # type: ignore[arg-type]
    ],
)
def test_invalid_grid_is_an_error(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(FieldError) as found:
        make()
    assert problem in str(found.value)
