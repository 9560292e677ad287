"""Depth sensor: pressure in the true water, and depth errors from wrong assumptions about the water."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import FieldError, SensorError
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.core.ticks import Ticks
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.base import Environment
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.environment.water import Water
from navsense.motion.stationary import Stationary
from navsense.noise.specification import Noise
from navsense.sensors import AirPressure, Depth
from navsense.testing import example_world

ONE = Ticks(np.zeros(1, dtype=np.int64), 1.0)
STANDARD_OCEAN = Water(latitude=math.radians(30.0), temperatures=(273.15,))
UUV = ConstantDensity(9806.38 / 9.80665)
"""9.80638 kPa per metre, as in the pressure sensors of the UUV Simulator and DAVE."""


def read_depth(z: float, spec: Depth, surroundings: Environment) -> tuple[float, float, float]:
    """Return the measured pressure and depth, and the true depth, of an ideal sensor at height z (m)."""
    ideal = spec.ideal(Stationary(Pose((5.0, 6.0, z))), surroundings, ONE)
    _, measured = spec.measure(spec.init(np.empty(0)), ONE, ideal, np.empty((0, 1)))
    assert measured.arrays["pressure"][0] == ideal["pressure"][0]
    return float(measured.arrays["pressure"][0]), float(measured.arrays["depth"][0]), float(ideal["depth"][0])


@pytest.mark.requirement("PRS-1", "ALT-8")
@pytest.mark.parametrize("z", [0.0, -0.5, -10.0, -300.0, -6000.0])
def test_default_pressure_equals_other_simulators(z: float) -> None:
    """Without declared water, the pressure is 101.325 kPa + 9.80638 kPa per metre, as in the other simulators."""
    pressure, depth, true = read_depth(z, Depth(assumed=UUV), Environment())
    assert pressure == pytest.approx(1000.0 * (101.325 + -z * 9.80638), rel=1e-14, abs=0.0)
    assert true == -z
    assert depth == pytest.approx(-z, rel=1e-12, abs=1e-12)


@pytest.mark.requirement("PRS-1", "ALT-8")
def test_sensor_reproduces_the_unesco_check_value() -> None:
    """In the standard ocean at UNESCO 44's latitude, 10000 dbar are 9712.653 m. The formula is a fit to 0.1 m."""
    spec = Depth(assumed=Unesco(math.radians(30.0)))
    pressure, depth, true = read_depth(-9712.653, spec, Environment())
    assert pressure == pytest.approx(101325.0 + 1e8, abs=5.1, rel=0.0)  # half a millimetre
    assert depth == pytest.approx(9712.653, rel=1e-12, abs=0.0)
    pressure, depth, true = read_depth(-9712.653, spec, Environment(water=STANDARD_OCEAN))
    assert true == 9712.653
    assert 1e-3 < abs(depth - true) < 0.1


@pytest.mark.requirement("PRS-1", "ALT-8")
def test_wrong_water_assumption_biases_the_depth() -> None:
    """The error is the ratio of the densities: 2.8 percent for a freshwater lake with an ocean formula."""
    lake = Environment(water=Water(density=999.7, salinities=(0.0,)))
    _, depth, true = read_depth(-100.0, Depth(), lake)
    assert depth / true == pytest.approx(
        999.7 / 1028.33, rel=2e-4, abs=0.0
    )  # mean density of the ocean to 100 m: 1028.106 + 0.23
    _, depth, true = read_depth(-100.0, Depth(assumed=ConstantDensity(1025.0, 9.80665)), lake)
    gravity = 9.780318 * (1.0 + 5.2788e-3 * 0.5 + 2.36e-5 * 0.25)
    assert depth / true == pytest.approx(999.7 * gravity / (1025.0 * 9.80665), rel=1e-12, abs=0.0)
    _, depth, true = read_depth(-100.0, Depth(assumed=None), lake)
    assert depth == true == 100.0


@pytest.mark.requirement("ALT-8")
def test_wrong_latitude_and_formula_bias_the_depth() -> None:
    deep = Environment(water=STANDARD_OCEAN)
    depths = {lat: read_depth(-5000.0, Depth(assumed=Unesco(math.radians(lat))), deep)[1] for lat in (0.0, 30.0, 90.0)}
    gravity = {0.0: 9.780318, 90.0: 9.780318 * (1.0 + 5.2788e-3 + 2.36e-5)}
    assert depths[0.0] - depths[90.0] == pytest.approx(5000.0 * (1.0 - gravity[0.0] / gravity[90.0]), rel=0.01, abs=0.0)
    saunders = read_depth(-5000.0, Depth(assumed=Saunders(math.radians(30.0))), deep)[1]
    assert 1e-3 < abs(saunders - depths[30.0]) < 0.5


@pytest.mark.requirement("PRS-1", "ALT-8")
def test_pressure_above_the_water_is_atmospheric() -> None:
    """It equals the air pressure sensor, with a depth <= 0. Below the surface, the water pressure is added."""
    surroundings = Environment(origin=Origin(0.8, 0.1, 400.0), water=Water(surface=12.0))
    barometer = AirPressure().ideal(Stationary(Pose((5.0, 6.0, 20.0))), surroundings, ONE)["pressure"][0]
    surface = AirPressure().ideal(Stationary(Pose((5.0, 6.0, 12.0))), surroundings, ONE)["pressure"][0]
    spec = Depth(surface_pressure=float(surface))
    pressure, depth, true = read_depth(20.0, spec, surroundings)
    assert pressure == barometer
    assert true == -8.0
    assert -0.02 < depth < 0.0  # eight metres of air weigh as much as a centimetre of water
    pressure, depth, true = read_depth(12.0, spec, surroundings)
    assert (pressure, depth, true) == (surface, 0.0, 0.0)
    pressure, depth, true = read_depth(2.0, spec, surroundings)
    assert true == 10.0
    assert depth == pytest.approx(10.0, rel=2e-3, abs=0.0)
    assert pressure - surface == Water(surface=12.0).pressure_at(np.array([10.0]))[0]
    _, depth, _ = read_depth(20.0, replace(spec, assumed=None), surroundings)
    assert depth == -8.0


@pytest.mark.requirement("PRS-1", "ALT-8")
def test_gauge_and_absolute_pressure_give_equal_depth() -> None:
    surroundings = Environment(water=Water(), atmosphere=Atmosphere(pressure=98000.0))
    absolute, gauge = Depth(), Depth(gauge=True)
    absolute_reading, gauge_reading = read_depth(-20.0, absolute, surroundings), read_depth(-20.0, gauge, surroundings)
    assert absolute_reading[0] - gauge_reading[0] == pytest.approx(101325.0, rel=1e-12, abs=0.0)
    assert absolute_reading[1] == pytest.approx(gauge_reading[1], rel=1e-12, abs=0.0)
    low = read_depth(-20.0, Depth(surface_pressure=98000.0), surroundings)[1]
    assert absolute_reading[1] - low == pytest.approx(
        (98000.0 - 101325.0) / (1028.1 * 9.806), rel=2e-3, abs=0.0
    )  # atmospheric pressure changes the depth


@pytest.mark.requirement("ALT-8")
@pytest.mark.parametrize("assumed", [None, Unesco(), ConstantDensity(1000.0)], ids=["known", "unesco", "constant"])
def test_pressure_noise_propagates_to_the_depth(assumed: Any) -> None:
    """The test compares the deviation and the correlation of both at a false-alarm rate of 1e-6 (4.9 deviations)."""
    count = 20_000
    spec = Depth(Noise(stddev=300.0, bias_mean=2000.0), assumed)
    world = example_world(("d", spec))
    world = replace(
        world,
        models=(replace(world.models[0], motion=Stationary(Pose((0.0, 0.0, -50.0)))),),
        environment=Environment(water=Water()),
    )
    reading = ns.simulate(world, count / 200.0, seed=4)["robot::arm::d"]
    weight = 1000.0 * 9.80665 if isinstance(assumed, ConstantDensity) else 1027.9 * 9.8065
    off = reading["pressure"] - reading.ideal["pressure"]
    assert abs(off.std() / 300.0 - 1.0) < 4.9 / math.sqrt(2.0 * count)
    assert abs(off.mean() - 2000.0) < 4.9 * 300.0 / math.sqrt(count)
    depth = reading["depth"] - reading["depth"].mean()
    assert depth == pytest.approx((off - off.mean()) / weight, rel=1e-3, abs=2e-5)
    assert (reading.turn_on_bias["pressure"] == 2000.0).all()
    assert set(reading.ideal) == {"pressure", "depth"}
    if assumed is None:
        assert reading["depth"].mean() - reading.ideal["depth"][0] == pytest.approx(
            off.mean() / weight, rel=1e-3, abs=0.0
        )


@pytest.mark.requirement("ALT-8", "DOO-1")
def test_apply_adds_errors_to_given_pressures() -> None:
    own = np.array([101325.0, 201325.0, 1101325.0])
    reading = Depth(Noise(bias_mean=100.0), Saunders(0.5)).apply(np.arange(3.0), own, seed=2)
    assert reading["pressure"].tolist() == (own + 100.0).tolist()
    assert reading.ideal["depth"] == pytest.approx(Saunders(0.5).depth(own - 101325.0), rel=1e-15, abs=0.0)
    assert reading["depth"] == pytest.approx(Saunders(0.5).depth(own - 101225.0), rel=1e-13, abs=0.0)
    gauge = Depth(assumed=Saunders(0.5), gauge=True).apply(np.arange(3.0), own - 101325.0, seed=2)
    assert gauge["depth"] == pytest.approx(reading.ideal["depth"], rel=1e-15, abs=0.0)
    with pytest.raises(SensorError, match=r"assumed; must be a formula"):
        Depth(assumed=None).apply(np.arange(3.0), own, seed=2)


@pytest.mark.requirement("ALT-8")
def test_invalid_values_are_errors() -> None:
    with pytest.raises(SensorError, match=r"surface_pressure \(Pa\): nan; must be a finite number"):
        Depth(surface_pressure=math.nan)
    with pytest.raises(SensorError, match=r"the world of a depth sensor; has no water.*<navsense:water/>"):
        read_depth(-1.0, Depth(assumed=None), Environment())
    with pytest.raises(FieldError, match=r"depth of row 0 \(m\): 12000"):
        read_depth(-12000.0, Depth(), Environment(water=Water()))
