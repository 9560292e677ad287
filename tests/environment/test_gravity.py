"""Normal gravity equals published values and is a field without curl and with known divergence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navsense.core import pose
from navsense.core.errors import FieldError
from navsense.core.geodesy import EARTH_RATE, Origin
from navsense.core.kernels import INTERPRETED
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, Vector
from navsense.environment import gravity
from navsense.environment.base import Environment
from navsense.environment.gravity import NormalGravity
from navsense.motion.stationary import Stationary
from navsense.sensors import Imu


def make_origin(latitude: float, elevation: float = 0.0, heading: float = 0.0) -> Origin:
    return Origin(math.radians(latitude), math.radians(17.0), elevation, math.radians(heading))


def evaluate(field: NormalGravity, *points: Vector) -> AnyArray:
    return field.at(np.array(points), np.zeros(len(points)))


@pytest.mark.parametrize(("latitude", "published"), [(0.0, 9.7803253359), (90.0, 9.8321849378), (-90.0, 9.8321849378)])
def test_gravity_equals_published_values(latitude: float, published: float) -> None:
    got = evaluate(NormalGravity(make_origin(latitude)), (0.0, 0.0, 0.0))[0]
    assert got == pytest.approx([0.0, 0.0, -published], abs=1.1e-10, rel=0.0)


def test_gravity_equals_another_program_on_the_ellipsoid(read_oracle: Callable[[str], dict[str, AnyArray]]) -> None:
    table = read_oracle("wgs84/ellipsoid.csv")
    for latitude, expected in zip(table["latitude_deg"], table["gravity_m_s2"], strict=True):
        got = evaluate(NormalGravity(make_origin(float(latitude))), (0.0, 0.0, 0.0))[0]
        assert got == pytest.approx([0.0, 0.0, -expected], abs=1e-11, rel=0.0)


def test_gravity_equals_another_program_above_the_ellipsoid(read_oracle: Callable[[str], dict[str, AnyArray]]) -> None:
    """The tolerance of 1e-8 m/s^2 is twice the error of the gradient of the other program's potential."""
    for latitude, height, north, up in zip(*read_oracle("wgs84/above.csv").values(), strict=True):
        got = evaluate(NormalGravity(make_origin(float(latitude), float(height))), (0.0, 0.0, 0.0))[0]
        assert got == pytest.approx([0.0, north, up], abs=1e-8, rel=0.0)


@pytest.mark.parametrize("heading", [0.0, 50.0])
@pytest.mark.parametrize("latitude", [-75.0, 3.0, 45.0, 89.99])
def test_gravity_away_from_the_origin_is_along_the_local_vertical(latitude: float, heading: float) -> None:
    """30 km from the origin, gravity is normal to the ellipsoid and tilted towards the origin by 30 km / radius."""
    here = make_origin(latitude, 0.0, heading)
    places = here.to_geodetic(np.array([(30e3, 0.0, 0.0), (-12e3, 25e3, 0.0)]))
    places[:, 2] = 0.0
    position = here.to_world(places)
    field = NormalGravity(here).at(position, np.zeros(2))
    along = here.to_enu_at(places, field)
    assert np.abs(along[:, :2]).max() < 1e-11
    lean = np.sqrt((field[:, :2] ** 2).sum(axis=1)) / -field[:, 2]
    assert lean == pytest.approx(np.sqrt((position[:, :2] ** 2).sum(axis=1)) / 6.378e6, rel=0.02, abs=0.0)
    assert (field[:, :2] * position[:, :2]).sum(axis=1).max() < 0.0


@pytest.mark.parametrize("height", [-5000.0, 0.0, 20e3])
def test_gravity_is_the_gradient_of_a_potential_of_a_rotating_earth(height: float) -> None:
    """Curl is 0 and divergence 2 omega^2, by differences over 2 km, accurate to 1e-12 1/s^2."""
    field, step = NormalGravity(make_origin(37.0, height, 25.0)), 1000.0
    rows = [tuple(sign * step if axis == i else 0.0 for i in range(3)) for axis in range(3) for sign in (1, -1)]
    values = evaluate(field, *rows)
    slope = np.array([(values[2 * axis] - values[2 * axis + 1]) / (2.0 * step) for axis in range(3)])
    assert np.abs(slope - slope.T).max() < 1e-12
    assert np.trace(slope) == pytest.approx(2.0 * EARTH_RATE**2, abs=2e-12, rel=0.0)


def test_accelerometer_at_rest_measures_gravity() -> None:
    field = NormalGravity(make_origin(30.0))
    ticks = Ticks(np.arange(2, dtype=np.int64), 10.0)
    force = Imu().ideal(Stationary(pose.Pose()), Environment(gravity=field, origin=field.origin), ticks)
    assert force["linear_acceleration"][0] == pytest.approx([0.0, 0.0, 9.793247269219364], abs=1e-11)


@given(st.floats(-math.pi, math.pi))
def test_gravity_rotates_with_the_world(yaw: float) -> None:
    turn = pose.from_rpy(0.0, 0.0, yaw)
    field = NormalGravity(make_origin(60.0, 10.0, 33.0))
    points = ((120.0, -800.0, 3.0), (2500.0, 1999.0, -700.0))
    moved = (pose.rotate(turn, point) for point in points)
    expected = [pose.rotate(turn, tuple(row)) for row in evaluate(field, *points).tolist()]
    assert evaluate(field.rotate(turn), *moved) == pytest.approx(np.array(expected), rel=1e-12, abs=1e-11)


def test_rotation_about_a_horizontal_axis_is_an_error() -> None:
    with pytest.raises(FieldError, match="must be about the vertical"):
        NormalGravity(make_origin(60.0)).rotate(pose.from_rpy(0.0, 0.2, 0.0))


@pytest.mark.parametrize("position", [(0.0, 0.0, -6e6), (math.nan, 0.0, 0.0), (0.0, math.inf, 0.0), (0.0, 2e10, 0.0)])
def test_position_outside_the_range_is_an_error(position: Vector) -> None:
    with pytest.raises(FieldError, match=r"position of row 1 \(m\)"):
        evaluate(NormalGravity(make_origin(10.0)), (0.0, 0.0, 0.0), position)


def test_values_do_not_depend_on_block_size() -> None:
    points, field = np.random.default_rng(1).uniform(-4e4, 4e4, (50, 3)), NormalGravity(make_origin(-10.0))
    complete = field.at(points, np.zeros(50))
    parts = [field.at(part, np.zeros(len(part))) for part in (points[:1], points[1:20], points[20:])]
    assert np.array_equal(np.concatenate(parts), complete)


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    points, field = np.random.default_rng(2).uniform(-4e4, 4e4, (20, 3)), NormalGravity(make_origin(-10.0, 5.0, 3.0))
    plain = np.empty(points.shape)
    assert interpret(gravity._write_gravity)(field.origin.ecef_transform, points, plain) == -1
    assert np.array_equal(field.at(points, np.zeros(20)), plain)
