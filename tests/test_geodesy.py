"""The ellipsoid and the world frame equal pymap3d, published constants and inverse transformations."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navsense.core import geodesy, pose
from navsense.core.errors import FieldError
from navsense.core.geodesy import (
    EARTH_RATE,
    SEMI_MINOR,
    Origin,
    compute_earth_rate_w,
    ecef_to_geodetic,
    geodetic_to_ecef,
)
from navsense.core.kernels import INTERPRETED
from navsense.core.typing import AnyArray

HALF = math.pi / 2.0
latitudes = st.one_of(st.floats(-HALF, HALF), st.sampled_from([HALF, -HALF, 0.0, HALF - 1e-12, 1e-300, -1e-9]))
longitudes = st.floats(-math.pi, math.pi)
altitudes = st.floats(-11e3, 1e5)
HERE = Origin(math.radians(47.3), math.radians(8.5), 430.0, math.radians(35.0))


def make_points(*rows: tuple[float, float, float]) -> AnyArray:
    return np.array(rows)


@pytest.mark.requirement("NAV-1")
def test_ellipsoid_constants_equal_published_values() -> None:
    assert pytest.approx(6356752.3142, abs=5e-5) == SEMI_MINOR
    assert pytest.approx(6.69437999014e-3, abs=5e-15) == geodesy.ECCENTRICITY_2
    assert pytest.approx(6.73949674228e-3, abs=5.5e-15) == geodesy.ECCENTRICITY_2 / (1.0 - geodesy.ECCENTRICITY_2)
    assert EARTH_RATE == 7.292115e-5


@pytest.mark.requirement("NAV-1")
@given(latitudes, longitudes, altitudes)
def test_ecef_positions_equal_pymap3d(latitude: float, longitude: float, altitude: float) -> None:
    import pymap3d

    theirs = pymap3d.geodetic2ecef(latitude, longitude, altitude, deg=False)
    assert geodetic_to_ecef(latitude, longitude, altitude) == pytest.approx(
        [float(part) for part in theirs], abs=5e-9, rel=0.0
    )


def iterate_geodetic(p: float, z: float) -> tuple[float, float]:
    """Return latitude (as sine and cosine terms) and altitude by fixed-point iteration with fifty digits."""
    with localcontext() as context:
        context.prec = 50
        a, f = Decimal(6378137), 1 / Decimal("298.257223563")
        e2 = f * (2 - f)
        pd, zd = Decimal(p), Decimal(z)
        s, c = zd, pd * (1 - e2)
        for _ in range(60):
            length = (s * s + c * c).sqrt()
            s, c = s / length, c / length
            n = a / (1 - e2 * s * s).sqrt()
            s, c = zd + e2 * n * s, pd
        length = (s * s + c * c).sqrt()
        s, c = s / length, c / length
        altitude = pd * c + zd * s - a * (1 - e2 * s * s).sqrt()
        return math.atan2(float(s), float(c)), float(altitude)


@pytest.mark.requirement("NAV-1")
@given(latitudes, longitudes, st.floats(-5e6, 1e7))
def test_inverse_transformation_is_accurate_to_nanometres(latitude: float, longitude: float, altitude: float) -> None:
    """The tolerance is 4 ulp of the distance from the centre, 4 nm at the ground, and 1e-15 rad."""
    x, _, z = geodetic_to_ecef(latitude, 0.0, altitude)
    got = ecef_to_geodetic(x, 0.0, z)
    expected = iterate_geodetic(x, z)
    assert got[0] == pytest.approx(expected[0], abs=1e-15, rel=0.0)
    assert got[2] == pytest.approx(expected[1], abs=4.0 * math.ulp(math.sqrt(x * x + z * z)), rel=0.0)
    x, y, z = geodetic_to_ecef(latitude, longitude, altitude)
    if math.cos(latitude) > 1e-6:
        off = math.remainder(ecef_to_geodetic(x, y, z)[1] - longitude, 2.0 * math.pi)
        assert abs(off) <= 1e-15


@pytest.mark.requirement("NAV-1")
@pytest.mark.parametrize("longitude", [math.pi, -math.pi, 3.5, -6.0])
def test_longitudes_wrap(longitude: float) -> None:
    got = ecef_to_geodetic(*geodetic_to_ecef(0.3, longitude, 10.0))[1]
    assert abs(got) <= math.pi
    assert math.remainder(got - longitude, 2.0 * math.pi) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_poles_are_valid_positions(sign: float) -> None:
    assert ecef_to_geodetic(0.0, 0.0, sign * (SEMI_MINOR + 100.0)) == pytest.approx((sign * HALF, 0.0, 100.0), abs=2e-9)
    here = Origin(sign * HALF, 0.7, 50.0)
    assert here.to_geodetic(make_points((0.0, 0.0, 5.0)))[0, [0, 2]] == pytest.approx([sign * HALF, 55.0], abs=2e-9)


@pytest.mark.requirement("NAV-1")
@given(latitudes, longitudes, st.floats(-500.0, 9000.0), st.tuples(*[st.floats(-5e4, 5e4)] * 3))
def test_east_north_up_displacements_equal_pymap3d(
    latitude: float, longitude: float, elevation: float, step: tuple[float, float, float]
) -> None:
    """pymap3d's transformation to the world is exact. Its latitudes are accurate to about 100 nm."""
    import pymap3d

    here = Origin(latitude, longitude, elevation)
    got = [float(part) for part in here.to_geodetic(make_points(step))[0]]
    theirs = pymap3d.geodetic2enu(*got, latitude, longitude, elevation, deg=False)
    assert [float(part) for part in theirs] == pytest.approx(step, abs=2e-8, rel=0.0)
    assert here.to_world(here.to_geodetic(make_points(step)))[0] == pytest.approx(np.array(step), abs=2e-8, rel=0.0)


@pytest.mark.requirement("NAV-1")
def test_heading_rotates_the_world() -> None:
    """With a heading of a quarter turn from east to north, x is north and y west."""
    here = Origin(0.6, 0.1, 0.0, HALF)
    assert here.to_enu(make_points((1.0, 0.0, 0.0), (0.0, 1.0, 2.0))) == pytest.approx(
        make_points((0.0, 1.0, 0.0), (-1.0, 0.0, 2.0)), abs=1e-15
    )
    north, west = here.to_geodetic(make_points((1000.0, 0.0, 0.0), (0.0, 1000.0, 0.0)))
    assert north[0] > 0.6
    assert north[1] == pytest.approx(0.1, abs=1e-15)
    assert west[1] < 0.1
    assert np.abs(here.to_world(make_points(tuple(west)))[0] - (0.0, 1000.0, 0.0)).max() < 1e-8


@given(st.tuples(*[st.floats(-5e4, 5e4)] * 3), st.tuples(*[st.floats(-30.0, 30.0)] * 3))
def test_rotated_vectors_equal_pymap3d(step: tuple[float, float, float], vector: tuple[float, float, float]) -> None:
    import pymap3d

    places = HERE.to_geodetic(make_points(step))
    got = HERE.to_enu_at(places, make_points(vector))[0]
    enu = HERE.to_enu(make_points(vector))[0]
    earth = pymap3d.enu2uvw(*enu, math.degrees(HERE.latitude), math.degrees(HERE.longitude))
    lat, lon = math.degrees(places[0, 0]), math.degrees(places[0, 1])
    theirs = [float(part) for part in pymap3d.uvw2enu(*earth, lat, lon)]
    assert got == pytest.approx(theirs, abs=1e-12, rel=0.0)


def test_vector_at_the_origin_is_equal_in_world_and_local_frame() -> None:
    vector = make_points((3.0, -4.0, 5.0))
    place = make_points((HERE.latitude, HERE.longitude, HERE.elevation))
    assert HERE.to_enu_at(place, vector) == pytest.approx(HERE.to_enu(vector), abs=1e-14)


@given(st.floats(-math.pi, math.pi))
def test_rotating_the_world_keeps_the_position(yaw: float) -> None:
    turn = pose.from_rpy(0.0, 0.0, yaw)
    point = (1200.0, -500.0, 30.0)
    turned = HERE.rotate(turn)
    assert turned.to_geodetic(make_points(pose.rotate(turn, point))) == pytest.approx(
        HERE.to_geodetic(make_points(point)), abs=1e-8, rel=1e-15
    )
    before = HERE.to_enu(make_points(point))
    assert turned.to_enu(make_points(pose.rotate(turn, point))) == pytest.approx(before, abs=1e-11)


def test_world_rotates_about_the_vertical_only() -> None:
    with pytest.raises(FieldError, match="must be about the vertical"):
        HERE.rotate(pose.from_rpy(1e-3, 0.0, 1.0))


def test_earth_rotates_about_its_axis() -> None:
    """The rate along east, north, up is omega (0, cos latitude, sin latitude), rotated by the heading."""
    s, c = EARTH_RATE * math.sin(HERE.latitude), EARTH_RATE * math.cos(HERE.latitude)
    expected = (c * math.sin(HERE.heading), c * math.cos(HERE.heading), s)
    assert compute_earth_rate_w(HERE) == pytest.approx(expected, rel=1e-14, abs=0.0)
    assert compute_earth_rate_w(Origin(HALF, 1.0)) == pytest.approx((0.0, 0.0, EARTH_RATE), abs=1e-20)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latitude": 1.6}, "latitude of the origin: 1.6; must be from -1.57"),
        ({"latitude": math.nan}, "latitude of the origin"),
        ({"longitude": 360.0}, "longitude of the origin: 360.0; must be from -6.28"),
        ({"elevation": math.inf}, "elevation of the origin"),
        ({"heading": math.inf}, "heading of the origin: inf; must be a finite number"),
    ],
)
def test_invalid_position_is_an_error(changes: dict[str, float], message: str) -> None:
    with pytest.raises(FieldError) as caught:
        Origin(**{"latitude": 0.1, "longitude": 0.2, **changes})
    assert message in str(caught.value)


@pytest.mark.parametrize("position", [(0.0, 0.0, -6.0e6), (math.nan, 0.0, 0.0), (0.0, math.inf, 0.0)])
def test_centre_of_the_earth_is_an_error(position: tuple[float, float, float]) -> None:
    with pytest.raises(FieldError, match=r"position of row 1 \(m\).*at least 1000 km from the earth's centre"):
        HERE.to_geodetic(make_points((0.0, 0.0, 0.0), position))


def test_conversions_do_not_depend_on_block_size() -> None:
    position = np.random.default_rng(1).uniform(-1e5, 1e5, (50, 3))
    complete = HERE.to_geodetic(position)
    for change in (HERE.to_geodetic, HERE.to_world, HERE.to_enu, lambda rows: HERE.to_enu_at(rows, rows)):
        rows = complete if change == HERE.to_world else position
        parts = np.concatenate([change(part) for part in (rows[:1], rows[1:20], rows[20:])])
        assert np.array_equal(parts, change(rows))


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    position = np.random.default_rng(2).uniform(-1e5, 1e5, (30, 3))
    places, back, vectors = np.empty((3, 30, 3))
    assert interpret(geodesy._write_geodetic)(HERE.ecef_transform, position, places) == -1
    assert np.array_equal(HERE.to_geodetic(position), places)
    interpret(geodesy._write_positions)(HERE.ecef_transform, places, back)
    assert np.array_equal(HERE.to_world(places), back)
    interpret(geodesy._write_enu_at)(HERE.ecef_transform, places, position, vectors)
    assert np.array_equal(HERE.to_enu_at(places, position), vectors)
