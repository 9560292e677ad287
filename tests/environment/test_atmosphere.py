"""The standard atmosphere equals its table, other programs and Gazebo, also with other sea-level conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navsense.core.errors import FieldError
from navsense.core.kernels import INTERPRETED
from navsense.core.typing import AnyArray
from navsense.environment import atmosphere
from navsense.environment.atmosphere import EARTH_RADIUS, LAYER_BASES, MAX_ALTITUDE, MIN_ALTITUDE, Atmosphere

STANDARD = Atmosphere()
HOT = Atmosphere(temperature=303.15, pressure=99000.0, temperature_gradient=-0.0098)


def to_geometric_altitude(height: AnyArray) -> AnyArray:
    """Return the geometric altitude (m) of a geopotential height (m)."""
    return EARTH_RADIUS * height / (EARTH_RADIUS - height)


@pytest.mark.requirement("PRS-1", "ALT-7")
def test_pressures_at_layer_bases_equal_published_values() -> None:
    published = ["101325", "22632.1", "5474.89", "868.019", "110.906", "66.9389", "3.95642"]
    got = STANDARD.pressure_at(to_geometric_altitude(np.array(LAYER_BASES)))
    assert [f"{pressure:.6g}" for pressure in got] == published
    expected = [288.15, 216.65, 216.65, 228.65, 270.65, 270.65, 214.65]
    assert STANDARD.temperature_at(to_geometric_altitude(np.array(LAYER_BASES))) == pytest.approx(
        expected, rel=1e-14, abs=0.0
    )


@pytest.mark.requirement("PRS-1")
def test_values_equal_another_program_at_many_altitudes(read_oracle: Callable[[str], dict[str, AnyArray]]) -> None:
    table = read_oracle("standard-atmosphere/fluids.csv")
    altitude = table["altitude_m"]
    assert STANDARD.temperature_at(altitude) == pytest.approx(table["temperature_K"], rel=1e-13, abs=0.0)
    assert STANDARD.pressure_at(altitude) == pytest.approx(table["pressure_Pa"], rel=1e-13, abs=0.0)
    assert STANDARD.density_at(altitude) == pytest.approx(table["density_kg_m3"], rel=1e-13, abs=0.0)
    assert STANDARD.sound_speed_at(altitude) == pytest.approx(table["sound_speed_m_s"], rel=1e-13, abs=0.0)


@pytest.mark.requirement("PRS-1")
def test_values_equal_gazebo_output() -> None:
    printed = {
        -500.0: 107478.00229517762,
        0.0: 101325.0,
        100.0: 100129.45729247191,
        1000.0: 89876.285187271234,
        5000.0: 54048.286145761413,
        11000.0: 22699.960739233353,
    }
    assert STANDARD.pressure_at(np.array(list(printed))) == pytest.approx(list(printed.values()), rel=1e-13, abs=0.0)


@pytest.mark.requirement("ALT-7")
def test_altitude_of_pressure_equals_the_published_formula() -> None:
    """In the first layer, the geopotential height is 44330.769 m (1 - (p / 101325 Pa)^0.190263)."""
    published = {95000.0: 540.3375, 90000.0: 988.5008, 85000.0: 1457.3005, 70000.0: 3012.1826, 50000.0: 5574.4375}
    expected = to_geometric_altitude(np.array(list(published.values())))
    assert STANDARD.altitude_at_pressure(np.array(list(published))) == pytest.approx(expected, abs=1e-4, rel=0.0)


@pytest.mark.requirement("ALT-7")
@pytest.mark.parametrize("air", [STANDARD, HOT, Atmosphere(temperature_gradient=0.0)], ids=["standard", "hot", "even"])
def test_altitude_of_pressure_is_the_inverse(air: Atmosphere) -> None:
    feet = to_geometric_altitude(np.array(LAYER_BASES))
    altitude = np.concatenate((np.linspace(MIN_ALTITUDE, MAX_ALTITUDE, 401), feet, feet - 1e-3, feet + 1e-3))
    assert air.altitude_at_pressure(air.pressure_at(altitude)) == pytest.approx(
        altitude, abs=1e-9 * MAX_ALTITUDE, rel=0.0
    )


@given(
    st.floats(250.0, 320.0),
    st.floats(87000.0, 108500.0),
    st.one_of(st.floats(-0.0098, 0.003), st.sampled_from([0.0, -1e-17, 1e-19])),
)
def test_any_atmosphere_is_hydrostatic_and_continuous(temperature: float, pressure: float, gradient: float) -> None:
    """Differences over 2 m, accurate to 1e-7, equal -rho g dH, and layers join continuously."""
    air = Atmosphere(temperature, pressure, gradient)
    height = np.array([-400.0, 10.0, 5000.0, 10999.0, 15000.0, 25000.0, 40000.0, 49000.0, 60000.0, 75000.0])
    below, above = (air.pressure_at(to_geometric_altitude(height + step)) for step in (-1.0, 1.0))
    weight = air.density_at(to_geometric_altitude(height)) * 9.80665
    assert (below - above) / 2.0 == pytest.approx(weight, rel=3e-7, abs=0.0)
    feet = np.array(LAYER_BASES[1:])
    for quantity in (air.pressure_at, air.temperature_at):
        assert quantity(to_geometric_altitude(feet - 1e-6)) == pytest.approx(
            quantity(to_geometric_altitude(feet + 1e-6)), rel=1e-9, abs=0.0
        )
    assert air.temperature_at(np.zeros(1))[0] == temperature
    assert air.pressure_at(np.zeros(1))[0] == pressure
    rise = to_geometric_altitude(np.array([1000.0]))
    assert air.temperature_at(rise)[0] - temperature == pytest.approx(1000.0 * gradient, abs=1e-9)


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"temperature": 75.0}, "temperature of the atmosphere at 11 km (K): 3.5"),
        ({"temperature": 100.0}, "temperature of the atmosphere at 80 km (K): 8.5"),
        ({"temperature": -3.0}, "must be a number from 10 to 10000"),
        ({"temperature_gradient": -0.03}, "give another temperature at sea level or temperature_gradient"),
        ({"temperature_gradient": 2.0}, "temperature of the atmosphere at -20 km"),
        ({"temperature_gradient": math.nan}, "temperature_gradient of the atmosphere: nan; must be a finite number"),
        ({"pressure": 0.0}, "pressure of the atmosphere (Pa): 0.0; must be a number from 1 to 1e+09"),
        ({"pressure": math.inf}, "must be a finite number"),
    ],
)
def test_invalid_air_is_an_error(state: dict[str, float], problem: str) -> None:
    with pytest.raises(FieldError) as caught:
        Atmosphere(**state)
    assert problem in str(caught.value)


@pytest.mark.parametrize("altitude", [80001.0, -20001.0, math.nan, math.inf])
def test_altitude_outside_the_atmosphere_is_an_error(altitude: float) -> None:
    for quantity in (STANDARD.pressure_at, STANDARD.temperature_at, STANDARD.density_at, STANDARD.sound_speed_at):
        with pytest.raises(FieldError, match=r"altitude of row 1 \(m above mean sea level\): .*from -20000 to 80000"):
            quantity(np.array([0.0, altitude]))


@pytest.mark.parametrize("pressure", [0.0, -1.0, 1e7, math.nan])
def test_pressure_outside_the_atmosphere_is_an_error(pressure: float) -> None:
    with pytest.raises(FieldError, match=r"pressure of row 1 \(Pa\)"):
        STANDARD.altitude_at_pressure(np.array([101325.0, pressure]))


def test_values_do_not_depend_on_block_size() -> None:
    altitude = np.random.default_rng(1).uniform(MIN_ALTITUDE, MAX_ALTITUDE, 60)
    for quantity in (
        HOT.pressure_at,
        HOT.density_at,
        HOT.sound_speed_at,
        lambda h: HOT.altitude_at_pressure(HOT.pressure_at(h)),
    ):
        parts = [quantity(part) for part in (altitude[:1], altitude[1:20], altitude[20:])]
        assert np.array_equal(np.concatenate(parts), quantity(altitude))


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    altitude = np.random.default_rng(2).uniform(MIN_ALTITUDE, MAX_ALTITUDE, 60)
    temperature, pressure, back = np.empty((3, 60))
    assert interpret(atmosphere._write_states)(HOT._layers, altitude, temperature, pressure) == -1
    assert np.array_equal(HOT.temperature_at(altitude), temperature)
    assert np.array_equal(HOT.pressure_at(altitude), pressure)
    assert interpret(atmosphere._write_altitudes)(HOT._layers, pressure, *HOT._pressure_limits, back) == -1
    assert np.array_equal(HOT.altitude_at_pressure(pressure), back)
