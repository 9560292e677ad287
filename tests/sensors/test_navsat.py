"""NavSat equals pymap3d, finite differences and Gazebo's values; its noise is in metres everywhere on earth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pymap3d.rcurve
import pytest
from hypothesis import given
from hypothesis import strategies as st

import navsense as ns
from navsense.core.errors import SensorError
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.core.ticks import Ticks
from navsense.core.typing import FloatArray
from navsense.environment.base import Environment
from navsense.motion.base import MotionBlock
from navsense.motion.stationary import Stationary
from navsense.noise.specification import Noise
from navsense.sensors import NavSat
from navsense.testing import example_motion, example_world

NAME = "robot::arm::gps"
ONE = Ticks(np.zeros(1, dtype=np.int64), 1.0)
PLACE = ("latitude", "longitude", "altitude")

RIO = Origin(math.radians(-22.9), math.radians(-43.2))
"""Origin of gz-sim's `navsat.sdf`."""


def to_degrees(origin: Origin) -> tuple[float, float, float]:
    return math.degrees(origin.latitude), math.degrees(origin.longitude), origin.elevation


def rotate_to_enu(vectors: FloatArray, heading: float) -> FloatArray:
    """Return world vectors in east, north, up axes; `heading` is the angle of x from east to north."""
    c, s = math.cos(heading), math.sin(heading)
    return vectors @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def compute_errors_in_metres(reading: ns.Reading) -> FloatArray:
    """Return the errors (n, 3) of the positions in m east, north and up, by pymap3d."""
    read, true = ([array[name] for name in PLACE] for array in (reading, reading.ideal))
    return np.stack(pymap3d.geodetic2enu(*read, *true, deg=False), axis=-1)


def apply_at(spec: NavSat, latitude: float, count: int, longitude: float = 3.0, seed: int = 1) -> ns.Reading:
    rows = (np.full(count, math.radians(latitude)), np.full(count, longitude), np.full(count, 500.0))
    return spec.apply(np.arange(count) / 10.0, *rows, np.zeros((count, 3)), seed=seed)


@pytest.mark.requirement("NAV-1")
@pytest.mark.parametrize("heading", [0.0, math.radians(30.0), -2.5])
@pytest.mark.parametrize("latitude", [-22.9, 0.0, 47.4, 89.9999, -90.0])
def test_position_and_velocity_of_a_moving_antenna(latitude: float, heading: float) -> None:
    origin = Origin(math.radians(latitude), math.radians(179.9999), 400.0, heading)
    ticks = Ticks(np.arange(200, dtype=np.int64), 50.0)
    ours = NavSat().ideal(example_motion(), Environment(origin=origin), ticks)
    truth = example_motion().at(ticks.time)
    lat, lon, alt = pymap3d.enu2geodetic(*rotate_to_enu(truth.position_w, heading).T, *to_degrees(origin))
    assert np.allclose(ours["latitude"], np.radians(lat), rtol=0.0, atol=1e-14)
    apart = np.remainder(ours["longitude"] - np.radians(lon) + math.pi, 2.0 * math.pi) - math.pi
    # Near a pole, the longitude error is that of ECEF doubles (2e-9 m) divided by the distance to the axis.
    assert (np.abs(apart) * 6.4e6 * np.maximum(np.cos(np.radians(lat)), 1e-13) < 2e-8).all()
    assert np.allclose(ours["altitude"], alt, rtol=0.0, atol=5e-9)
    ecef = pymap3d.enu2uvw(*rotate_to_enu(truth.velocity_w, heading).T, *to_degrees(origin)[:2])
    there = np.stack(pymap3d.ecef2enuv(*ecef, np.degrees(ours["latitude"]), np.degrees(ours["longitude"])), axis=-1)
    assert np.allclose(ours["velocity"], there, rtol=0.0, atol=1e-12)


@pytest.mark.requirement("NAV-1")
@pytest.mark.parametrize(("heading", "velocity"), [(0.0, (1.0, 2.0, 3.0)), (math.pi / 2.0, (-2.0, 1.0, 3.0))])
def test_gazebo_unit_test_with_and_without_heading(heading: float, velocity: tuple[float, ...]) -> None:
    """gz-sensors' test is at 40 N 0 E 120 m with velocity (1, 2, 3). With a heading of 90 degrees, x is north."""
    origin = Origin(math.radians(40.0), 0.0, 120.0, heading)
    still = Stationary(Pose())

    class FlyingMotion:
        end = math.inf

        def at(self, time: FloatArray) -> MotionBlock:
            return replace(still.at(time), velocity_w=np.tile([1.0, 2.0, 3.0], (time.size, 1)))

    found = NavSat().ideal(FlyingMotion(), Environment(origin=origin), ONE)
    assert math.degrees(found["latitude"][0]) == pytest.approx(40.0, abs=1e-13)
    assert found["longitude"][0] == pytest.approx(0.0, abs=1e-15)
    assert found["altitude"][0] == pytest.approx(120.0, abs=2e-9)
    assert np.allclose(found["velocity"][0], velocity, rtol=0.0, atol=1e-14)


@pytest.mark.requirement("NAV-1")
def test_velocity_is_the_derivative_of_the_position() -> None:
    """pymap3d's radii of curvature at the antenna, off the link origin, convert radians to metres."""
    world = example_world(("gps", NavSat()))
    run = ns.simulate(replace(world, sensors=(replace(world.sensors[0], rate=2000.0),)), 1.0)[NAME]
    lat, alt = run["latitude"], run["altitude"]
    along = (pymap3d.rcurve.meridian(lat, deg=False) + alt)[1:-1]
    across = ((pymap3d.rcurve.transverse(lat, deg=False) + alt) * np.cos(lat))[1:-1]
    slopes = {name: (run[name][2:] - run[name][:-2]) * 1000.0 for name in PLACE}
    slope = np.stack((slopes["longitude"] * across, slopes["latitude"] * along, slopes["altitude"]), axis=-1)
    # Second-order differences of doubles of some rad: rounding 1e-16 * 6.4e6 m * 1000 Hz, truncation below it.
    assert np.abs(slope - run["velocity"][1:-1]).max() < 2e-5
    assert np.abs(run["velocity"]).max() > 1.0


@pytest.mark.requirement("NAV-1", "NOI-2")
@pytest.mark.parametrize("latitude", [0.0, -47.0, 89.0, 89.99999, 90.0])
def test_noise_is_in_metres_and_independent_per_axis(latitude: float) -> None:
    """Gazebo adds metres to degrees. Here the noise is in metres at any latitude, including the pole."""
    count = 10_000
    spec = NavSat(Noise(stddev=1.5), Noise(stddev=4.0), Noise(stddev=0.1), Noise(stddev=0.3))
    reading = apply_at(spec, latitude, count)
    off = np.concatenate((compute_errors_in_metres(reading), reading["velocity"] - reading.ideal["velocity"]), axis=1)
    for axis, stddev in enumerate((1.5, 1.5, 4.0, 0.1, 0.1, 0.3)):
        assert abs(off[:, axis].std() / stddev - 1.0) < 5.2 / math.sqrt(2.0 * count), axis
        assert abs(off[:, axis].mean()) < 5.2 * stddev / math.sqrt(count), axis
    apart = np.corrcoef(off.T) - np.eye(6)
    assert np.abs(apart).max() < 5.4 / math.sqrt(count)


@pytest.mark.requirement("NAV-1")
@given(
    st.floats(-math.pi / 2.0, math.pi / 2.0),
    st.floats(-math.pi, math.pi),
    st.floats(-400.0, 9000.0),
    st.floats(-50.0, 50.0),
    st.floats(-50.0, 50.0),
)
def test_constant_error_displaces_by_its_metres(lat: float, lon: float, alt: float, first: float, up: float) -> None:
    spec = NavSat(Noise(mean=first), Noise(mean=up))
    reading = spec.apply([0.0], [lat], [lon], [alt], np.zeros((1, 3)), seed=1)
    # The altitude is constant, so the position is (50^2 + 50^2) / 2a = 4e-4 m below the tangent plane.
    assert np.allclose(compute_errors_in_metres(reading)[0], [first, first, up], rtol=0.0, atol=5e-4)
    assert abs(reading["latitude"][0]) <= math.pi / 2.0
    assert abs(reading["longitude"][0]) <= math.pi


@pytest.mark.requirement("NAV-1")
def test_noise_across_the_pole_and_the_date_line() -> None:
    spec = NavSat(Noise(mean=100.0))
    over = apply_at(spec, math.degrees(math.pi / 2.0 - 20.0 / 6.4e6), 1)
    assert over["latitude"][0] < math.pi / 2.0 - 100.0 / 6.4e6
    assert abs(over["longitude"][0] - 3.0) > 1.0
    across = apply_at(spec, 10.0, 1, math.pi - 1e-6)
    assert across["longitude"][0] < -3.0


@pytest.mark.requirement("NAV-1")
def test_quantisation_and_limits_are_in_metres_from_the_world_origin() -> None:
    """The first row is the origin. The others are 0.3 m east and 0.1 m north of it."""
    spec = NavSat(Noise(stddev=2.0, precision=0.5, minimum=-3.0, maximum=3.0), Noise(precision=10.0))
    origin = [math.radians(47.0), 3.0, 500.0]
    lat, lon, _ = (np.full(2000, part) for part in pymap3d.enu2geodetic(0.3, 0.1, 0.0, *origin, deg=False))
    lat[0], lon[0], alt = origin[0], origin[1], np.full(2000, 500.0)
    reading = spec.apply(np.arange(2000) / 10.0, lat, lon, alt, np.zeros((2000, 3)), seed=1)
    place = [reading["latitude"], reading["longitude"], alt]
    east, north, _ = pymap3d.geodetic2enu(*place, *origin, deg=False)
    for axis in (east, north):
        assert np.abs(axis / 0.5 - np.rint(axis / 0.5)).max() < 1e-5
        assert set(np.rint(axis / 0.5).astype(int)) == set(range(-6, 7))
    assert (reading["altitude"] == 500.0).all()
    assert spec.apply([0.0], [0.1], [0.2], [117.0], np.zeros((1, 3)), seed=1)["altitude"][0] == 120.0


@pytest.mark.requirement("NAV-1", "TRU-1")
def test_biases_are_in_metres() -> None:
    horizontal = Noise(bias_stddev=5.0, dynamic_bias_stddev=0.2, dynamic_bias_correlation_time=30.0)
    spec = NavSat(horizontal, Noise(bias_mean=-7.0), Noise(bias_mean=0.5), Noise(bias_mean=-0.25))
    run = ns.simulate(example_world(("gps", spec)), 2.0, seed=9, runs=2)[NAME]
    for row in range(2):
        read, true = ([part[name] for name in PLACE] for part in (run, run.ideal))
        off = pymap3d.geodetic2enu(*(array[row] for array in read), *true, deg=False)
        hidden = [run.bias[name][row] for name in ("longitude", "latitude", "altitude")]
        assert np.allclose(off, hidden, rtol=0.0, atol=1e-4)
        assert np.ptp(hidden[0]) > 0.0
    assert run.bias["latitude"].shape == run.turn_on_bias["latitude"].shape == (2, 400)
    assert np.array_equal(run.bias["velocity"], np.broadcast_to([0.5, 0.5, -0.25], (2, 400, 3)))
    assert (run.turn_on_bias["altitude"] == -7.0).all()
    assert run.unit == {"latitude": "rad", "longitude": "rad", "altitude": "m", "velocity": "m/s"}


@pytest.mark.requirement("NAV-1")
def test_world_without_coordinates_is_an_error_with_sensor_name() -> None:
    with pytest.raises(SensorError, match=r"no place on earth.*<spherical_coordinates>"):
        NavSat().ideal(Stationary(Pose()), Environment(), ONE)


@pytest.mark.requirement("NAV-1", "DOO-1")
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((40.0, 0.0, 0.0), r"latitude of row 1 \(rad\): 40.0; must be from -1.5708 to 1.5708"),
        ((0.0, 180.0, 0.0), r"longitude of row 1 \(rad\): 180.0; must be from -6.28319 to 6.28319"),
        ((0.0, math.nan, 0.0), "longitude of row 1"),
        ((0.0, 0.0, math.nan), r"altitude of row 1 \(m\): nan; must be from -1e\+06 to 1e\+06"),
        ((0.0, 0.0, 2e6), r"altitude of row 1 \(m\): 2000000.0; must be from"),
    ],
)
def test_positions_in_degrees_are_an_error(row: tuple[float, float, float], message: str) -> None:
    lat, lon, alt = (np.array([0.0, part]) for part in row)
    with pytest.raises(SensorError, match=message):
        NavSat().apply([0.0, 1.0], lat, lon, alt, np.zeros((2, 3)), seed=1)


def test_first_row_at_an_impossible_altitude_is_an_error() -> None:
    rows = np.zeros(2)
    with pytest.raises(SensorError, match=r"altitude of row 0 \(m\): 2000000.0"):
        NavSat().apply([0.0, 1.0], rows, rows, np.array([2e6, 0.0]), np.zeros((2, 3)), seed=1)


@pytest.mark.requirement("NAV-1", "DOO-1")
def test_apply_without_errors_keeps_positions_unchanged() -> None:
    rng = np.random.default_rng(3)
    lat, lon, alt = (rng.uniform(-limit, limit, 50) for limit in (math.pi / 2, math.pi, 1000.0))
    velocity = rng.standard_normal((50, 3))
    reading = NavSat().apply(np.arange(50.0), lat, lon, alt, velocity, seed=1)
    for name, own in zip(PLACE, (lat, lon, alt), strict=True):
        assert reading[name].tobytes() == own.tobytes()
    assert np.array_equal(reading["velocity"], velocity)


def test_errors_leave_the_measured_arrays_writable() -> None:
    zeros = np.zeros(3)
    ideal = {"latitude": zeros + 0.8, "longitude": zeros + 0.1, "altitude": zeros}
    measured = {"latitude": zeros + 0.8, "longitude": zeros + 0.1}
    errors = NavSat().compute_errors(measured, ideal)
    assert all(array.flags.writeable for array in measured.values())
    assert np.array_equal(errors["latitude"], zeros)
