"""The World Magnetic Model equals NOAA's values and other programs, and its lattice equals the model."""

from __future__ import annotations

import hashlib
import math
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navsense.core import pose
from navsense.core.errors import FieldError
from navsense.core.geodesy import Origin
from navsense.core.kernels import INTERPRETED
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray
from navsense.environment import magnetic
from navsense.environment.base import Environment
from navsense.environment.magnetic import (
    MODELS,
    MagneticLattice,
    WorldMagneticModel,
    compute_coefficients,
    compute_elements,
    field_ned,
)
from navsense.motion.stationary import Stationary
from navsense.sensors import Magnetometer

DATE = 2027.3
ROUNDED_AXIS = 2e-6
"""Tolerance in nT: NOAA's programs round the axis of the ellipsoid to 0.1 mm; 45 um of height are 1.3e-6 nT."""

SITES = [
    (50.0, 10.0, 0.0, 0.0),
    (-22.9, -43.2, 700.0, 130.0),
    (0.0, -50.0, 0.0, -90.0),
    (-25.0, -50.0, 20e3, 10.0),
    (89.999, 0.0, 0.0, 40.0),
    (90.0, 0.0, 0.0, 0.0),
    (-90.0, 20.0, 3000.0, 200.0),
    (82.0, -115.0, -5000.0, 0.0),
    (-64.0, 137.0, 0.0, 5.0),
    (10.0, 179.99, 0.0, -30.0),
]
"""Latitude, longitude (deg), elevation (m), heading (deg), with both kinds of poles and the 180th meridian."""


def make_origin(latitude: float, longitude: float, elevation: float = 0.0, heading: float = 0.0) -> Origin:
    return Origin(math.radians(latitude), math.radians(longitude), elevation, math.radians(heading))


def evaluate_at(places: AnyArray, date: float, model: str = "WMM2025") -> AnyArray:
    latitude, longitude, altitude = np.ascontiguousarray(places.T)
    return field_ned(latitude, longitude, altitude, date, model)


def evaluate_model(field: WorldMagneticModel, position: AnyArray) -> AnyArray:
    """Return the model (n, 3) T in east, north, up axes of each position, without the lattice."""
    places = field.origin.to_geodetic(position)
    ned = evaluate_at(places, field.date, field.model)
    return np.column_stack((ned[:, 1], ned[:, 0], -ned[:, 2]))


def make_positions(seed: int, count: int, size: float) -> AnyArray:
    """Return positions (count, 3) m within `size` of the origin, with a smaller vertical range."""
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (count, 3)) * (size, size, 0.3 * size)


@pytest.mark.parametrize("model", MODELS)
def test_coefficients_equal_the_noaa_file(model: str) -> None:
    file = magnetic._DATA / f"{model}.COF"
    listed = (file.parent / "README.md").read_text(encoding="utf-8")
    assert f"| `{file.name}` |" in listed
    assert hashlib.sha256(file.read_bytes()).hexdigest() in listed
    epoch, main, change = magnetic._read_coefficients(model)
    assert epoch == float(model[3:])
    orders, degrees = np.triu_indices(13)
    assert np.array_equal(main[0, degrees, orders] != 0.0, degrees > 0)
    assert np.array_equal(main[1] != 0.0, (main[1] != 0.0) & (main[0] != 0.0))
    assert np.abs(change).max() < 60.0


@pytest.mark.requirement("MAG-7")
@pytest.mark.parametrize(("model", "rounding"), [("WMM2020", 0.0501), ("WMM2025", 1e-3)])
def test_field_equals_published_values(
    read_oracle: Callable[[str], dict[str, AnyArray]], model: str, rounding: float
) -> None:
    table = read_oracle("noaa/values.csv")
    rows = table["model"] == model
    table = {name: values[rows] for name, values in table.items() if name != "model"}
    latitude, longitude = np.radians(table["latitude_deg"]), np.radians(table["longitude_deg"])
    for i, date in enumerate(table["date"]):
        row = slice(i, i + 1)
        field = field_ned(latitude[row], longitude[row], 1e3 * table["altitude_km"][row], float(date), model)
        expected = [table[name][i] for name in ("x_nT", "y_nT", "z_nT")]
        assert 1e9 * field[0] == pytest.approx(expected, abs=rounding, rel=0.0)
        parts = compute_elements(field)
        assert 1e9 * parts.total[0] == pytest.approx(table["total_nT"][i], abs=rounding, rel=0.0)
        assert math.degrees(parts.declination[0]) == pytest.approx(table["declination_deg"][i], abs=0.00501, rel=0.0)
        assert math.degrees(parts.inclination[0]) == pytest.approx(table["inclination_deg"][i], abs=0.00501, rel=0.0)


@pytest.mark.requirement("MAG-7")
def test_field_equals_another_program_at_many_positions(read_oracle: Callable[[str], dict[str, AnyArray]]) -> None:
    table = read_oracle("noaa/pygeomag.csv")
    for i, model in enumerate(table["model"]):
        latitude, longitude = np.radians(table["latitude_deg"][[i]]), np.radians(table["longitude_deg"][[i]])
        altitude = 1e3 * table["altitude_km"][[i]]
        field = field_ned(latitude, longitude, altitude, float(table["year"][i]), str(model))
        expected = [table[name][i] for name in ("x_nT", "y_nT", "z_nT")]
        assert 1e9 * field[0] == pytest.approx(expected, abs=ROUNDED_AXIS, rel=0.0)


def test_field_equals_the_program_of_noaa() -> None:
    field = field_ned(np.radians([65.0]), np.radians([85.0]), np.zeros(1), 2026.5)
    expected = [8739.604074620373, 2229.254013719841, 60367.1560360288649]
    assert 1e9 * field[0] == pytest.approx(expected, abs=ROUNDED_AXIS, rel=0.0)


def test_blackout_zones_are_reported() -> None:
    found = compute_elements(1e-9 * np.array([[1999.0, 0, 5e4], [0, -2000.0, 5e4], [5999.0, 0, 5e4], [0, 6000.0, 5e4]]))
    assert found.blackout.tolist() == [True, False, False, False]
    assert found.caution.tolist() == [False, True, True, False]
    assert found.declination.tolist() == [0.0, -math.pi / 2, 0.0, math.pi / 2]


@pytest.mark.parametrize("latitude", [90.0, -90.0])
def test_longitude_at_a_pole_rotates_the_axes_only(latitude: float) -> None:
    longitude = np.radians([0.0, 30.0, 123.0, -179.0])
    ned = field_ned(np.full(4, math.radians(latitude)), longitude, np.zeros(4), DATE)
    sign = math.copysign(1.0, latitude)
    along = np.column_stack(
        (
            -sign * np.cos(longitude) * ned[:, 0] - np.sin(longitude) * ned[:, 1],
            -sign * np.sin(longitude) * ned[:, 0] + np.cos(longitude) * ned[:, 1],
            ned[:, 2],
        )
    )
    assert np.abs(along - along[0]).max() < 1e-18
    near = field_ned(np.full(4, math.radians(latitude) * (1.0 - 1e-10)), longitude, np.zeros(4), DATE)
    assert np.abs(near - ned).max() < 1e-14


@pytest.mark.requirement("MAG-7")
@pytest.mark.parametrize("site", SITES)
def test_lattice_is_within_a_tenth_of_a_nanotesla_of_the_model(site: tuple[float, float, float, float]) -> None:
    field = WorldMagneticModel(make_origin(*site), DATE)
    for position in (make_positions(1, 300, 2e3), make_positions(2, 100, 1e5)):
        places = field.origin.to_geodetic(position)
        got = field.origin.to_enu_at(places, field.at(position, np.zeros(len(position))))
        worst = np.abs(got - evaluate_model(field, position)).max()
        assert worst < 0.1e-9
        assert worst < 0.01e-9  # the documented accuracy


@pytest.mark.requirement("MAG-7")
def test_heading_rotates_the_field_at_the_origin() -> None:
    x, y, z = field_ned(np.radians([48.0]), np.radians([11.0]), np.array([520.0]), DATE)[0]
    for heading in (0.0, 90.0, -35.0):
        h = math.radians(heading)
        expected = [math.cos(h) * y + math.sin(h) * x, -math.sin(h) * y + math.cos(h) * x, -z]
        field = WorldMagneticModel(make_origin(48.0, 11.0, 520.0, heading), DATE)
        assert field.at(np.zeros((1, 3)), np.zeros(1))[0] == pytest.approx(expected, rel=1e-12, abs=0.0)


@pytest.mark.requirement("MAG-7")
def test_magnetometer_measures_the_model_field() -> None:
    field = WorldMagneticModel(make_origin(48.0, 11.0), DATE)
    place = pose.Pose((1200.0, -300.0, 50.0))
    ticks = Ticks(np.arange(3, dtype=np.int64), 10.0)
    got = Magnetometer().ideal(Stationary(place), Environment(magnetic_field=field, origin=field.origin), ticks)[
        "field"
    ]
    expected = field.at(np.array([place.position]), np.zeros(1))
    assert np.array_equal(got, np.repeat(expected, 3, axis=0))


@pytest.mark.parametrize("cut", [1, 7, 100])
def test_field_does_not_depend_on_block_size_or_order(cut: int) -> None:
    """The positions are in more cells than the table holds, so cells overwrite each other."""
    position = make_positions(3, 120, 3e4)
    here = make_origin(47.0, 8.0, 400.0)
    model = MagneticLattice("WMM2025", DATE, here)

    def read(lattice: MagneticLattice, rows: AnyArray) -> AnyArray:
        out = np.empty(rows.shape)
        assert lattice.write_field(rows, 0.7, out) == -1
        return out

    complete = read(model, position)
    assert np.array_equal(read(model, position), complete)
    fresh = MagneticLattice("WMM2025", DATE, here)
    assert np.array_equal(np.concatenate((read(fresh, position[:cut]), read(fresh, position[cut:]))), complete)
    order = np.random.default_rng(4).permutation(len(position))
    other = MagneticLattice("WMM2025", DATE, here)
    assert np.array_equal(read(other, position[order]), complete[order])


@pytest.mark.compiled
def test_threads_return_the_same_values() -> None:
    field = WorldMagneticModel(make_origin(47.0, 8.0), DATE)
    tracks = [make_positions(seed, 20, 3e4) for seed in range(8)]
    alone = [field.at(track, np.zeros(len(track))) for track in tracks]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda track: field.at(track, np.zeros(len(track))), tracks * 4))
    assert all(np.array_equal(field, alone[i % 8]) for i, field in enumerate(together))


def test_lattice_is_continuous_across_cells() -> None:
    field = WorldMagneticModel(make_origin(47.0, 8.0), DATE)
    edge = np.array([1000.0, 2000.0, -3000.0, 0.0])
    sides = [np.column_stack((edge + step, 0.4 * edge, edge + step)) for step in (-1e-6, 0.0, 1e-6)]
    below, on, above = (field.at(side, np.zeros(4)) for side in sides)
    assert np.abs(below - on).max() < 1e-16
    assert np.abs(above - on).max() < 1e-16


@given(st.floats(-math.pi, math.pi))
def test_field_rotates_with_the_world(yaw: float) -> None:
    turn = pose.from_rpy(0.0, 0.0, yaw)
    field = WorldMagneticModel(make_origin(60.0, 20.0, 10.0, 33.0), DATE)
    points = [(120.0, -800.0, 3.0), (2500.0, 1999.0, -700.0)]
    moved = np.array([pose.rotate(turn, point) for point in points])
    expected = [pose.rotate(turn, tuple(row)) for row in field.at(np.array(points), np.zeros(2)).tolist()]
    assert field.rotate(turn).at(moved, np.zeros(2)) == pytest.approx(np.array(expected), rel=1e-12, abs=1e-17)


def test_rotation_about_a_horizontal_axis_is_an_error() -> None:
    with pytest.raises(FieldError, match="must be about the vertical"):
        WorldMagneticModel(make_origin(60.0, 20.0), DATE).rotate(pose.from_rpy(0.1, 0.0, 0.0))


@pytest.mark.parametrize(
    ("model", "date", "problem"),
    [
        ("WMM2025", 2024.5, "date of WMM2025 (decimal year): 2024.5; must be from 2025.0 to 2030.0; use WMM2020"),
        ("WMM2020", 2026.0, "use WMM2025"),
        ("WMM2025", 2030.01, "give a date within the model's years"),
        ("WMM2025", math.nan, "must be from 2025.0 to 2030.0"),
        ("WMM2015", 2016.0, "must be one of WMM2020, WMM2025"),
    ],
)
def test_invalid_date_or_model_is_an_error(model: str, date: float, problem: str) -> None:
    with pytest.raises(FieldError) as caught:
        WorldMagneticModel(make_origin(0.0, 0.0), date, model)
    assert problem in str(caught.value)


@pytest.mark.parametrize("date", [2020.0, 2025.0])
def test_first_and_last_day_of_a_model_are_valid(date: float) -> None:
    assert WorldMagneticModel(make_origin(0.0, 0.0), date, "WMM2020").date == date


@pytest.mark.parametrize("position", [(5.1e6, 0.0, 0.0), (0.0, math.nan, 0.0), (0.0, 0.0, -math.inf)])
def test_position_too_far_from_the_origin_is_an_error(position: tuple[float, float, float]) -> None:
    field = WorldMagneticModel(make_origin(0.0, 0.0), DATE)
    with pytest.raises(FieldError, match=r"position of row 1 \(m\): .*within 5000 km"):
        field.at(np.array([(0.0, 0.0, 0.0), position]), np.zeros(2))


@pytest.mark.parametrize("place", [(1.6, 0.0, 0.0), (0.0, math.inf, 0.0), (0.0, 0.0, math.nan)])
def test_invalid_position_is_an_error(place: tuple[float, float, float]) -> None:
    with pytest.raises(FieldError, match="place of row 0"):
        evaluate_at(np.array([place]), DATE)


def test_field_can_be_pickled() -> None:
    field = WorldMagneticModel(make_origin(47.0, 8.0), DATE)
    position = make_positions(5, 10, 3e3)
    here = field.at(position, np.zeros(10))
    assert np.array_equal(pickle.loads(pickle.dumps(field)).at(position, np.zeros(10)), here)  # noqa: S301


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    position, here = make_positions(6, 12, 5e3), make_origin(-33.0, 151.0, 20.0)
    complete, plain = np.empty(position.shape), np.empty(position.shape)
    assert MagneticLattice("WMM2025", DATE, here).write_field(position, 0.4, complete) == -1
    other = MagneticLattice("WMM2025", DATE, here)
    sine, cosine = math.sin(0.4), math.cos(0.4)
    along = interpret(magnetic._write_field)
    along(other._table, other._frame, other._cells, other._corners, sine, cosine, position, plain)
    assert np.array_equal(complete, plain)
    places = here.to_geodetic(position)
    complete = evaluate_at(places, DATE)
    interpret(magnetic._write_field_ned)(compute_coefficients("WMM2025", DATE), *np.ascontiguousarray(places.T), plain)
    assert np.array_equal(complete, plain)
    spherical = compute_elements(complete)
    out = np.empty((4, len(complete))).T
    interpret(magnetic._write_elements)(complete, out)
    assert np.array_equal(out[:, 3], spherical.inclination)
