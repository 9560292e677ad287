"""Air pressures equal values that Gazebo's library printed, and the hydrostatic law."""

from __future__ import annotations

import math

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import FieldError, SensorError
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.core.ticks import Ticks
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.base import Environment
from navsense.motion.stationary import Stationary
from navsense.noise.specification import Noise
from navsense.sensors import AirPressure
from navsense.testing import example_world

ONE = Ticks(np.zeros(1, dtype=np.int64), 1.0)

GAZEBO = {
    -500.0: 107478.00229517762,
    0.0: 101325.0,
    100.0: 100129.45729247191,
    1000.0: 89876.285187271234,
    5000.0: 54048.286145761413,
    11000.0: 22699.960739233353,
}
"""Altitude (m) -> Pa, as printed by gz-sensors."""


def read_pressure(z: float, altitude: float = 0.0, surroundings: Environment | None = None) -> float:
    sheet = AirPressure(reference_altitude=altitude)
    return float(sheet.ideal(Stationary(Pose((5.0, 6.0, z))), surroundings or Environment(), ONE)["pressure"][0])


@pytest.mark.requirement("PRS-1")
@pytest.mark.parametrize("altitude", GAZEBO)
def test_pressures_equal_the_gazebo_library(altitude: float) -> None:
    assert read_pressure(altitude) == pytest.approx(GAZEBO[altitude], rel=1e-13, abs=0.0)
    assert read_pressure(altitude - 70.0, 70.0) == pytest.approx(GAZEBO[altitude], rel=1e-13, abs=0.0)


@pytest.mark.requirement("PRS-1")
def test_gazebo_unit_test() -> None:
    """gz-sensors' test has a reference altitude of 1, then the sensor at z = 2."""
    assert read_pressure(2.0, 1.0) == pytest.approx(101288.9657925308, rel=1e-14, abs=0.0)


@pytest.mark.requirement("PRS-1")
def test_world_elevation_changes_the_pressure() -> None:
    surroundings = Environment(origin=Origin(0.8, 0.1, 400.0))
    assert read_pressure(100.0, 0.0, surroundings) == read_pressure(500.0)
    assert read_pressure(100.0, 30.0, surroundings) == read_pressure(530.0)


@pytest.mark.requirement("PRS-1")
def test_world_atmosphere_changes_the_pressure() -> None:
    surroundings = Environment(atmosphere=Atmosphere(300.0, 99000.0, -0.005))
    assert read_pressure(0.0, 0.0, surroundings) == 99000.0
    height = 6356766.0 * 250.0 / (6356766.0 + 250.0)
    expected = 99000.0 * (1.0 - 0.005 * height / 300.0) ** (9.80665 * 28.9644 / 8314.32 / 0.005)
    assert read_pressure(250.0, 0.0, surroundings) == pytest.approx(expected, rel=1e-13, abs=0.0)


@pytest.mark.requirement("PRS-1")
def test_pressure_gradient_is_the_weight_of_the_air() -> None:
    """dp/dz = -rho g along a moving sensor's path, with the standard's g at this height."""
    world = example_world(("baro", AirPressure()))
    run = ns.simulate(world, 2.0)["robot::arm::baro"]["pressure"]
    z = ns.simulate(example_world(("alt", ns.sensors.Altimeter())), 2.0)["robot::arm::alt"]["vertical_position"]
    altitude = z + 120.0
    density = world.environment.atmosphere.density_at(altitude)
    gravity = 9.80665 * (6356766.0 / (6356766.0 + altitude)) ** 2
    steps = np.diff(z)
    middle = 0.5 * (density * gravity)[1:] + 0.5 * (density * gravity)[:-1]
    assert np.allclose(np.diff(run), -middle * steps, rtol=1e-6, atol=1e-9)


@pytest.mark.requirement("PRS-1")
def test_apply_adds_errors_to_given_pressures() -> None:
    count = 20_000
    noise = Noise(stddev=4.0, bias_mean=50.0, precision=1.0)
    own = np.full(count, 90_000.0)
    reading = AirPressure(noise).apply(np.arange(count) / 50.0, own, seed=2)
    assert reading["pressure"].shape == reading.bias["pressure"].shape == (count,)
    assert np.array_equal(reading["pressure"], np.rint(reading["pressure"]))
    off = reading["pressure"] - own
    spread = math.sqrt(4.0**2 + 1.0 / 12.0)
    assert abs(off.mean() - 50.0) < 4.9 * spread / math.sqrt(count)
    assert abs(off.std() / spread - 1.0) < 4.9 / math.sqrt(2.0 * count)
    assert (reading.turn_on_bias["pressure"] == 50.0).all()


@pytest.mark.requirement("PRS-1")
def test_altitude_without_air_is_an_error() -> None:
    with pytest.raises(SensorError, match=r"reference_altitude \(m\): inf; must be a finite number"):
        AirPressure(reference_altitude=math.inf)
    with pytest.raises(SensorError, match=r"reference_altitude \(m\): 'x'; must be a finite number"):
        AirPressure(reference_altitude="x")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(FieldError, match="must be from -20000 to 80000"):
        read_pressure(90_000.0)
