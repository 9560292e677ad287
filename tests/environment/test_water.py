"""Sea water equals UNESCO's tables, another program and TEOS-10; a water column equals a slow integration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from navsense.core import pose
from navsense.core.errors import FieldError
from navsense.core.kernels import INTERPRETED
from navsense.core.typing import AnyArray
from navsense.environment import seawater, water
from navsense.environment.base import Environment
from navsense.environment.seawater import (
    MAX_DEPTH,
    SOUND_SPEED_FORMULAS,
    ConstantDensity,
    DepthConversion,
    Saunders,
    Unesco,
)
from navsense.environment.water import Water

Oracle = Callable[[str], dict[str, AnyArray]]

CAST = {
    "depths": (0.0, 50.0, 200.0, 1000.0, 4000.0),
    "temperatures": (295.15, 294.15, 285.15, 278.15, 275.15),
    "salinities": (36.0, 36.2, 35.1, 34.6, 34.8),
}
"""The layers of `teos10_column.csv`."""

FRESH = Water(density=998.2, salinities=(0.0,))
LAYERED = Water(
    surface=2.0,
    depths=(0.5, 20.0, 20.0, 333.3),
    temperatures=(295.0, 294.0, 283.0, 277.0),
    salinities=(0.0, 8.0, 30.0, 35.0),
)


# formulas


@pytest.mark.requirement("PRS-1")
def test_densities_equal_the_unesco_table(read_oracle: Oracle) -> None:
    table = read_oracle("unesco/density.csv")
    states = zip(table["salinity"], table["t68_degC"], table["pressure_dbar"] / 10.0, strict=True)
    got = [seawater.density(*state) for state in states]
    assert got == pytest.approx(table["density_kg_m3"], abs=6e-6, rel=0.0)  # the shortest has five decimals


@pytest.mark.requirement("PRS-1")
def test_speeds_of_sound_equal_published_tables(read_oracle: Oracle) -> None:
    table = read_oracle("unesco/sound_speed.csv")
    states = zip(table["t68_degC"], table["salinity"], table["pressure_dbar"] / 10.0, strict=True)
    got = np.array([seawater.chen_millero(*state) for state in states])
    assert got[:-1] == pytest.approx(table["sound_speed_m_s"][:-1], abs=1e-8, rel=0.0)
    assert f"{got[-1]:.3f}" == "1731.995"


@pytest.mark.requirement("PRS-1")
def test_other_formulas_give_their_check_values() -> None:
    assert f"{seawater.mackenzie(25.0, 35.0, 1000.0):.3f}" == "1550.744"
    assert f"{seawater.mackenzie(40.0, 40.0, 10000.0):.3f}" == "1718.774"
    assert f"{seawater.del_grosso(40.0, 40.0, 10000.0 * 0.101972):.3f}" == "1732.366"
    # Formula of RDI's DVL manual: 1449.2 + 46 - 5.5 + 0.29, and 1449.2 + 23 - 1.375 + 0.03625 + 1.6.
    assert seawater.medwin(10.0, 35.0, 0.0) == pytest.approx(1489.99, rel=1e-15, abs=0.0)
    assert seawater.medwin(5.0, 35.0, 100.0) == pytest.approx(1472.46125, rel=1e-15, abs=0.0)


@pytest.mark.requirement("PRS-1")
def test_values_equal_another_program_at_many_states(read_oracle: Oracle) -> None:
    """Temperatures are on the scale of 1990, so the conversion between scales is tested too."""
    table = read_oracle("unesco/seawater.csv")
    kelvin, bar = table["t90_degC"] + 273.15, table["pressure_dbar"] / 10.0
    warmth = [seawater.to_celsius(t) for t in kelvin]
    states = list(zip(table["salinity"], warmth, bar, strict=True))
    assert [seawater.density(*state) for state in states] == pytest.approx(table["density_kg_m3"], rel=1e-12, abs=0.0)
    speeds = [seawater.chen_millero(t, s, p) for s, t, p in states]
    assert speeds == pytest.approx(table["sound_speed_m_s"], rel=1e-12, abs=0.0)


@pytest.mark.requirement("PRS-1")
def test_density_agrees_with_teos_10(read_oracle: Oracle) -> None:
    """In the open sea, EOS-80 is within 0.02 kg/m^3 of TEOS-10, and all four sound speeds within 0.8 m/s."""
    table = read_oracle("unesco/teos10.csv")
    for s, t, dbar, rho, c in zip(*table.values(), strict=True):
        warmth = seawater.to_celsius(t + 273.15)
        assert abs(seawater.density(s, warmth, dbar / 10.0) - rho) < 0.02
        depth = float(Unesco(math.radians(30.0)).depth(np.array([dbar * 1e4]))[0])
        for number, (name, domain) in enumerate(SOUND_SPEED_FORMULAS.items()):
            if depth > domain.depth:
                continue
            got = seawater.sound_speed(number, t + 273.15, s, depth, dbar * 1e4)
            assert abs(got - c) < 0.8, (name, t, s, dbar, got, c)


@pytest.mark.requirement("PRS-1")
def test_depths_equal_the_unesco_table(read_oracle: Oracle) -> None:
    table = read_oracle("unesco/depth.csv")
    states = zip(table["latitude_deg"], table["pressure_dbar"], strict=True)
    got = [float(Unesco(math.radians(lat)).depth(np.array([p * 1e4]))[0]) for lat, p in states]
    assert got == pytest.approx(table["depth_m"], abs=0.006, rel=0.0)  # printed with two decimals
    (check,) = Unesco(math.radians(30.0)).depth(np.array([1e8]))
    assert f"{check:.3f}" == "9712.653"


@pytest.mark.requirement("PRS-1")
def test_depth_equals_saunders_check_values() -> None:
    there = Saunders(math.radians(30.0))
    assert there.depth(np.array([7.5e7]))[0] == pytest.approx(7321.45, abs=0.01, rel=0.0)
    assert there.pressure(np.array([7321.45]))[0] == pytest.approx(7500.0065e4, abs=1.0, rel=0.0)


@pytest.mark.requirement("PRS-1")
@pytest.mark.parametrize(
    "rule", [Unesco(0.0), Unesco(-1.2), Saunders(0.7), ConstantDensity(1025.0), ConstantDensity(997.0, 9.81)], ids=repr
)
def test_depth_of_pressure_is_the_inverse(rule: DepthConversion) -> None:
    depth = np.concatenate(([0.0, 1e-9, 1e-3], np.linspace(0.1, MAX_DEPTH, 777)))
    back = rule.depth(rule.pressure(depth))
    assert back == pytest.approx(depth, rel=1e-12, abs=1e-15)
    assert rule.depth(np.array([-1000.0]))[0] < 0.0  # pressure below that of the surface: above it
    for wrong in (-1e-9, MAX_DEPTH + 1.0, math.nan):
        with pytest.raises(FieldError, match=r"depth of row 1 \(m\): .*must be from 0 to 11000"):
            rule.pressure(np.array([0.0, wrong]))


@pytest.mark.parametrize(
    ("compute_density", "problem"),
    [
        (lambda: Unesco(1.6), "latitude of the formula (rad): 1.6; must be a number from -1.57"),
        (lambda: Saunders(math.nan), "latitude of the formula (rad): nan"),
        (lambda: ConstantDensity(0.0), "density of the formula (kg/m^3): 0.0; must be a number from 0.001"),
        (lambda: ConstantDensity(math.inf), "density of the formula (kg/m^3): inf"),
        (lambda: ConstantDensity(1000.0, -9.8), "gravity of the formula (m/s^2): -9.8; must be a number from 0.001"),
    ],
)
def test_invalid_formula_is_an_error(compute_density: Callable[[], object], problem: str) -> None:
    with pytest.raises(FieldError) as caught:
        compute_density()
    assert problem in str(caught.value)


# a column


@pytest.mark.requirement("PRS-1")
@pytest.mark.parametrize("latitude", [0.0, 30.0, 90.0])
def test_standard_ocean_equals_the_unesco_formula(latitude: float) -> None:
    """At 0 degC and salinity 35, the formula of UNESCO 44 is a fit to this integral, accurate to 0.1 m."""
    here = math.radians(latitude)
    depth = np.linspace(0.0, 9700.0, 98)
    pressure = Water(latitude=here, temperatures=(273.15,)).pressure_at(depth)
    assert Unesco(here).depth(pressure) == pytest.approx(depth, abs=0.1, rel=0.0)


@pytest.mark.requirement("PRS-1")
def test_open_ocean_pressure_equals_teos_10(read_oracle: Oracle) -> None:
    """The tolerance 2.1e-5 is 0.02 kg/m^3 of the density and 1e-6 of the gravity, of TEOS-10 with WGS-84."""
    table = read_oracle("unesco/teos10_column.csv")
    here = Water(latitude=math.radians(20.0), **CAST)
    assert here.pressure_at(table["depth_m"]) == pytest.approx(table["pressure_Pa"], rel=2.1e-5, abs=0.0)


@pytest.mark.requirement("PRS-1")
@pytest.mark.parametrize("here", [LAYERED, Water(latitude=1.1, **CAST)], ids=["layered", "cast"])
def test_pressure_equals_a_slow_integration(here: Water) -> None:
    """The reference integrates the hydrostatic equation interval by interval, so that no jump is inside a step."""

    def slope(d: float, p: list[float], t: AnyArray, s: AnyArray, ends: AnyArray) -> float:
        warmth = (float(np.interp(d, ends, t)) - 273.15) * 1.00024
        rho = seawater.density(float(np.interp(d, ends, s)), warmth, p[0] / 1e5)
        sine = math.sin(here.latitude) ** 2
        return float(rho * (9.780318 * (1.0 + 5.2788e-3 * sine + 2.36e-5 * sine**2) + 2.184e-6 * p[0] / 1e4))

    depths = (0.0, *here.depths, 6000.0)
    warm = (here.temperatures[0], *here.temperatures, here.temperatures[-1])
    salt = (here.salinities[0], *here.salinities, here.salinities[-1])
    start = 0.0
    for i in range(len(depths) - 1):
        ends = np.array(depths[i : i + 2])
        if ends[0] == ends[1]:
            continue
        asked = np.linspace(ends[0], ends[1], 7)
        given_ = (np.array(warm[i : i + 2]), np.array(salt[i : i + 2]), ends)
        found = solve_ivp(slope, ends, [start], t_eval=asked, args=given_, rtol=1e-12, atol=1e-3)
        assert here.pressure_at(asked) == pytest.approx(found.y[0], abs=0.01, rel=0.0)  # 1e-6 dbar
        start = float(found.y[0, -1])


@given(st.floats(0.0, MAX_DEPTH - 1.0), st.sampled_from([LAYERED, FRESH, Water(**CAST), Water()]))
def test_pressure_gradient_is_the_weight_of_the_water(depth: float, here: Water) -> None:
    if any(abs(depth - jump) < 1.0 for jump in here.depths):
        return
    above, below = here.pressure_at(np.array([max(depth - 0.5, 0.0), max(depth - 0.5, 0.0) + 1.0]))
    middle = np.array([max(depth - 0.5, 0.0) + 0.5])
    (weight,) = here.pressure_gradient_at(middle)
    assert below - above == pytest.approx(weight, rel=1e-7, abs=0.0)
    assert weight / here.density_at(middle)[0] == pytest.approx(9.81, rel=0.01, abs=0.0)


def test_profile_is_interpolated_and_constant_outside() -> None:
    depth = np.array([0.0, 0.5, 10.25, 19.999999, 20.0, 333.3, 9000.0])
    assert LAYERED.temperature_at(depth) == pytest.approx([295.0, 295.0, 294.5, 294.0, 283.0, 277.0, 277.0], abs=1e-6)
    assert LAYERED.salinity_at(depth) == pytest.approx([0.0, 0.0, 4.0, 8.0, 30.0, 35.0, 35.0], abs=1e-5)
    below, above = LAYERED.density_at(np.array([20.0, 19.999999]))
    assert below - above > 15.0


def test_profile_that_ends_in_fresh_water_has_a_pressure() -> None:
    """At the end of an interval, rounding would give a salinity of -1e-14, which has no square root."""
    depth = np.linspace(0.0, 1000.0, 11)
    mixed = Water(depths=(0.0, 146.1), temperatures=(283.15, 283.15), salinities=(39.2, 0.0)).pressure_at(depth)
    fresh, salt = (Water(salinities=(salinity,)).pressure_at(depth) for salinity in (0.0, 39.2))
    assert (mixed[1:] > fresh[1:]).all()
    assert (mixed[1:] < salt[1:]).all()


@pytest.mark.requirement("PRS-1")
def test_constant_density() -> None:
    depth = np.array([0.0, 1.0, 5.0])
    gravity = 9.780318 * (1.0 + 5.2788e-3 * 0.5 + 2.36e-5 * 0.25)  # at 45 degrees
    assert FRESH.pressure_at(depth) == pytest.approx(998.2 * gravity * depth, rel=1e-14, abs=0.0)
    assert FRESH.density_at(depth).tolist() == [998.2] * 3
    assert FRESH.sound_speed_at(np.zeros(1))[0] == pytest.approx(
        seawater.chen_millero(10.0 * 1.00024, 0.0, 0.0), rel=1e-12, abs=0.0
    )


# sound


@pytest.mark.requirement("PRS-1")
@pytest.mark.parametrize("name", SOUND_SPEED_FORMULAS)
def test_named_formula_is_used(name: str) -> None:
    here = Water(temperatures=(283.15,), salinities=(34.0,), sound_speed=name)
    (got,) = here.sound_speed_at(np.array([800.0]))
    (p,) = here.pressure_at(np.array([800.0]))
    t = 10.0 * 1.00024
    expected = {
        "mackenzie": seawater.mackenzie(t, 34.0, 800.0),
        "medwin": seawater.medwin(t, 34.0, 800.0),
        "chen-millero": seawater.chen_millero(t, 34.0, p / 1e5),
        "del-grosso": seawater.del_grosso(t, 34.0, p / 98066.5),
    }
    assert got == pytest.approx(expected[name], rel=1e-15, abs=0.0)
    assert Water(sound_speed=1480).sound_speed_at(np.array([5.0, 9000.0])).tolist() == [1480.0, 1480.0]


@pytest.mark.requirement("PRS-1")
@pytest.mark.parametrize(
    ("name", "last"), [("mackenzie", 8000.0), ("medwin", 1000.0), ("chen-millero", 1e8), ("del-grosso", 98066500.0)]
)
def test_depth_below_the_validity_of_a_formula_is_an_error(name: str, last: float) -> None:
    here = Water(latitude=0.5, temperatures=(275.65,), sound_speed=name)
    end = last
    if last > MAX_DEPTH:
        low, high = 9000.0, MAX_DEPTH
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if here.pressure_at(np.array([middle]))[0] <= last else (low, middle)
        end = low
    here.sound_speed_at(np.array([end]))
    with pytest.raises(FieldError, match=rf"depth of row 1 \(m\): .*where the formula {name} is valid"):
        here.sound_speed_at(np.array([0.0, end + 1e-3]))


@pytest.mark.parametrize(
    ("given_", "problem"),
    [
        ({"sound_speed": "mackenzie", "temperatures": (274.0,)}, "temperature of the water (degC): 0.85"),
        ({"sound_speed": "mackenzie", "salinities": (20.0,)}, "must be from 25 to 40 for the formula mackenzie"),
        ({"temperatures": (272.5,)}, "must be from 0 to 40 for the formula chen-millero; choose another formula"),
        ({"sound_speed": "del-grosso", "temperatures": (305.0,)}, "must be from 0 to 30 for the formula del-grosso"),
    ],
)
def test_profile_outside_the_validity_of_a_formula_is_an_error(given_: dict[str, Any], problem: str) -> None:
    here = Water(**given_)
    assert here.pressure_at(np.array([10.0]))[0] > 9e4  # all but the sound speed
    with pytest.raises(FieldError) as caught:
        here.sound_speed_at(np.zeros(1))
    assert problem in str(caught.value)


# invalid water


@pytest.mark.parametrize(
    ("given_", "problem"),
    [
        ({"surface": math.nan}, "surface of the water (m): nan; must be a number from -1e+06 to 1e+06"),
        ({"latitude": 90.0}, "latitude of the water (rad): 90.0"),
        ({"density": -1.0}, "density of the water (kg/m^3): -1.0; must be a number from 0.001"),
        ({"depths": ()}, "numbers of depths, temperatures and salinities: (0, 1, 1); must be the same"),
        ({"depths": (), "temperatures": (), "salinities": ()}, "(0, 0, 0); must be the same, and not 0"),
        ({"depths": (-1.0,)}, "profile depth (m): -1.0; must be from 0 to 11000"),
        ({"temperatures": (10.0,)}, "temperature (K): 10.0; must be from 271.15 to 313.14"),
        ({"temperatures": (math.nan,)}, "temperature (K): nan"),
        ({"salinities": (42.5,)}, "salinity (PSS-78): 42.5; must be from 0 to 42"),
        ({"sound_speed": "wilson"}, "formula for the speed of sound: wilson; must be one of mackenzie, chen-millero"),
        ({"sound_speed": 0.0}, "speed of sound in the water (m/s): 0.0; must be a number from 100 to 10000"),
        ({"sound_speed": math.nan}, "speed of sound in the water (m/s): nan"),
    ],
)
def test_invalid_water_is_an_error(given_: dict[str, Any], problem: str) -> None:
    with pytest.raises(FieldError) as caught:
        Water(**given_)
    assert problem in str(caught.value)


def test_depths_must_increase() -> None:
    def record_water(*depths: float) -> Water:
        return Water(depths=depths, temperatures=(280.0,) * len(depths), salinities=(35.0,) * len(depths))

    assert record_water(0.0, 5.0, 5.0).density_at(np.array([5.0]))[0] > 1000.0
    with pytest.raises(FieldError, match=r"profile depth of row 2 \(m\): 4.0; must not be above 5.0 m"):
        record_water(0.0, 5.0, 4.0)
    with pytest.raises(FieldError, match=r"profile depth of row 2 \(m\): 5.0; must not be given more than twice"):
        record_water(5.0, 5.0, 5.0)


# files


def test_profile_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cast.csv"
    path.write_text("\ufeffdepth, temperature ,salinity\r\n0,290,33\r\n\r\n10.5,288,33.5\r\n", encoding="utf-8")
    depths, temperatures, salinities = Water.read_profile(path)
    assert (depths, temperatures, salinities) == ((0.0, 10.5), (290.0, 288.0), (33.0, 33.5))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "cast.csv: profile of the water: is empty; must be a CSV file of depth,temperature,salinity"),
        ("depth,salinity,temperature\n", "cast.csv:1: header of the profile of the water: depth,salinity,temperature"),
        ("depth,temperature,salinity\n\n", "cast.csv: rows of the profile of the water: none; must have at least one"),
        ("depth,temperature,salinity\n1,290\n", "cast.csv:2: number of columns: 2; must be 3"),
        ("depth,temperature,salinity\n1,warm,35\n", "cast.csv:2: temperature: warm; must be a finite"),
        ("depth,temperature,salinity\n1,nan,35\n", "cast.csv:2: temperature: nan"),
        ("depth,temperature,salinity\n1,12,35\n", "cast.csv:2: temperature (K): 12.0; must be from 271"),
        ("depth,temperature,salinity\n5,290,35\n4,290,35\n", "cast.csv:3: profile depth (m): 4.0; must not be"),
    ],
)
def test_invalid_profile_file_error_has_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "cast.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FieldError) as caught:
        Water.read_profile(path)
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(problem)


def test_missing_profile_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="does not exist"):
        Water.read_profile(tmp_path / "none.csv")


# law


def test_rotation_keeps_the_water() -> None:
    assert Environment().water is None
    assert Environment(water=LAYERED).rotate(pose.from_rpy(0.0, 0.0, 1.0)).water == LAYERED


QUANTITIES = ("pressure_at", "density_at", "pressure_gradient_at", "sound_speed_at", "temperature_at", "salinity_at")


@pytest.mark.parametrize("name", QUANTITIES)
def test_values_do_not_depend_on_block_size(name: str) -> None:
    depth = np.random.default_rng(1).uniform(0.0, 9000.0, 60)
    for here in (Water(**CAST), FRESH, LAYERED):
        quantity = getattr(here, name)
        parts = [quantity(part) for part in (depth[:1], depth[1:20], depth[20:])]
        assert np.array_equal(np.concatenate(parts), quantity(depth))
    with pytest.raises(FieldError, match=r"depth of row 0 \(m\): -0.1"):
        quantity(np.array([-0.1]))


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    depth = np.random.default_rng(2).uniform(0.0, 9000.0, 60)
    pressure, out = LAYERED.pressure_at(depth), np.empty(60)
    interpret(water._write_pressures)(LAYERED._nodes, depth, out)
    assert np.array_equal(pressure, out)
    warm, salt = LAYERED.temperature_at(depth), LAYERED.salinity_at(depth)
    interpret(water._write_densities)(warm, salt, pressure, out)
    assert np.array_equal(LAYERED.density_at(depth), out)
    fresh = replace(LAYERED, density=1000.0)
    for number, sea in product(range(len(SOUND_SPEED_FORMULAS)), (LAYERED, fresh)):
        compiled, profile = np.empty(60), (number, *sea._kernel_arguments[1:-2], math.inf, math.inf)
        assert water._write_sound_speeds(*profile, depth, compiled)
        assert interpret(water._write_sound_speeds)(*profile, depth, out)
        assert np.array_equal(compiled, out)
    for rule, kernel, argument in (
        (Unesco(0.3), seawater._write_unesco_depths, seawater.surface_gravity(0.3)),
        (Saunders(0.3), seawater._write_saunders_depths, Saunders(0.3)._linear),
    ):
        interpret(kernel)(argument, pressure, out)
        assert np.array_equal(rule.depth(pressure), out)
    interpret(seawater._write_unesco_pressures)(seawater.surface_gravity(0.3), depth, out)
    assert np.array_equal(Unesco(0.3).pressure(depth), out)
    interpret(seawater._write_saunders_pressures)(Saunders(0.3)._linear, depth, out)
    assert np.array_equal(Saunders(0.3).pressure(depth), out)
