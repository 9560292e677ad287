"""The example of a user-defined sensor (examples/barometric_altimeter.py) equals closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import FieldError, SdfError, SensorError
from navsense.core.pose import Pose
from navsense.core.readings import join_readings
from navsense.core.ticks import Ticks
from navsense.core.typing import FloatArray
from navsense.environment.base import Environment
from navsense.motion.derived import AttachedMotion
from navsense.motion.stationary import Stationary
from navsense.testing import example_motion

NAME = "aircraft::cockpit::altimeter"
pytestmark = pytest.mark.requirement("ALT-7")

EXPONENT = 8314.32 * 0.0065 / (9.80665 * 28.9644)
"""R L / (g0 M) of the US Standard Atmosphere 1976."""


@pytest.fixture(scope="module")
def example(load_example: Callable[[str], ModuleType]) -> Any:
    return load_example("barometric_altimeter")


@pytest.fixture(scope="module")
def spec(example: Any) -> Any:
    return example.BarometricAltimeter()


def compute_ideal(spec: Any, z: float) -> Any:
    """Return the ideal values at a height (m)."""
    ticks = Ticks(np.zeros(1, dtype=np.int64), 1.0)
    return spec.ideal(Stationary(Pose((0.0, 0.0, z))), Environment(), ticks)


def measure_pressure(spec: Any, pressure: FloatArray, rate: float, dynamic: float = 0.0) -> FloatArray:
    """Return the measured pressures (n,) Pa for static pressures (n,) Pa and a dynamic pressure (Pa)."""
    ticks = Ticks(np.arange(pressure.size, dtype=np.int64), rate)
    ideal = {"pressure": pressure, "dynamic_pressure": np.full(pressure.size, dynamic)}
    _, measured = spec.measure(spec.init(np.empty(0)), ticks, ideal, np.empty((0, pressure.size)))
    return np.asarray(measured.arrays["pressure"])


@pytest.mark.parametrize("height", [-300.0, 0.0, 120.0, 3000.0, 10_900.0])
def test_standard_atmosphere_gives_the_height(spec: Any, height: float) -> None:
    assert compute_ideal(spec, height)["altitude"][0] == pytest.approx(height, abs=1e-8)


@pytest.mark.parametrize(("pressure", "offset", "setting"), [(100300.0, 10.0, 101325.0), (103000.0, -25.0, 103000.0)])
def test_sea_level_conditions_and_altimeter_setting(spec: Any, pressure: float, offset: float, setting: float) -> None:
    """The formula is p = p0 (T / T0)^(1/k) of the day, and the standard height of p above the setting."""
    day = replace(spec, sea_level_pressure=pressure, temperature_offset=offset, setting=setting)
    for z in (0.0, 500.0, 4000.0):
        height = 6356766.0 * z / (6356766.0 + z)
        static = pressure * (1.0 - 0.0065 * height / (288.15 + offset)) ** (1.0 / EXPONENT)
        shown = 288.15 / 0.0065 * (1.0 - (static / setting) ** EXPONENT)
        found = compute_ideal(day, z)
        assert found["pressure"][0] == pytest.approx(static, rel=1e-13, abs=0.0)
        assert found["altitude"][0] == pytest.approx(6356766.0 * shown / (6356766.0 - shown), abs=1e-7)


@pytest.mark.parametrize("rate", [1.0, 7.0, 100.0, 10_000.0])
def test_lag_of_a_steady_climb_is_exact_at_any_rate(spec: Any, rate: float) -> None:
    """lag dy/dt = u - y with u = u0 + s t and y(0) = u0 has the solution y = u - s lag (1 - exp(-t / lag))."""
    lag, slope = 0.8, -60.0
    time = np.arange(int(3.0 * rate)) / rate
    steady = 90_000.0 + slope * time
    own = measure_pressure(replace(spec, lag=lag), steady, rate)
    expected = steady - slope * lag * -np.expm1(-time / lag)
    assert np.allclose(own, expected, rtol=0.0, atol=1e-9)


def test_lag_of_a_sine_has_first_order_gain_and_phase(spec: Any) -> None:
    lag, rate, frequency = 0.5, 1000.0, 1.0
    angle = 2.0 * math.pi * frequency
    time = np.arange(8000) / rate
    own = measure_pressure(replace(spec, lag=lag), 90_000.0 + 100.0 * np.sin(angle * time), rate)[4000:] - 90_000.0
    response = 2.0 * np.mean(own * np.exp(-1j * angle * time[4000:])) * 1j / 100.0
    # The transient after 4 s is exp(-8); linear interpolation reduces a sine by (w dt)^2 / 12 = 3e-6.
    assert abs(response - 1.0 / (1.0 + 1j * angle * lag)) < 5e-4


def test_reading_without_lag_follows_height_and_dynamic_pressure(spec: Any) -> None:
    pressure = 90_000.0 + np.arange(10.0) ** 2
    assert np.array_equal(measure_pressure(spec, pressure, 5.0, dynamic=700.0), pressure)
    felt = measure_pressure(replace(spec, position_error=-0.02), pressure, 5.0, dynamic=700.0)
    assert np.allclose(felt, pressure - 14.0, rtol=0.0, atol=1e-10)


def test_dynamic_pressure_uses_the_speed_of_the_port(spec: Any) -> None:
    """Differences of the port's positions, off the link origin, give the speed. Sea-level density is 1.225 kg/m^3."""
    motion = AttachedMotion(example_motion(), Pose((0.7, -0.4, 0.3)))
    ticks, h = Ticks(np.arange(1, 200, dtype=np.int64), 100.0), 1e-4
    places = [motion.at(ticks.time + shift).position_w for shift in (-h, h)]
    speed = np.linalg.norm(places[1] - places[0], axis=1) / (2.0 * h)
    found = spec.ideal(motion, Environment(), ticks)["dynamic_pressure"]
    assert np.allclose(found, 0.5 * 1.225 * speed**2, rtol=5e-4, atol=0.0)  # at 3 m the density is lower by 3e-4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<lag>-1</lag>", r"climb.sdf:\d+: <barometric_altimeter><lag>: -1; must be >= 0"),
        ("<qnh>101325</qnh>", r"climb.sdf:\d+: <barometric_altimeter><qnh>; is not allowed here"),
    ],
)
def test_errors_in_a_file_have_their_line(example: Any, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "climb.sdf"
    path.write_text(example.WORLD.replace("<lag>1.5</lag>", text))
    with pytest.raises(SdfError, match=message):
        ns.load(path, sensors=[example.BarometricAltimeter])


def test_invalid_air_and_lag_are_errors(spec: Any) -> None:
    with pytest.raises(SensorError, match="lag of a barometric altimeter"):
        replace(spec, lag=-0.1)
    with pytest.raises(FieldError, match="pressure of the atmosphere"):
        replace(spec, setting=0.0)
    with pytest.raises(FieldError, match="temperature of the atmosphere"):
        replace(spec, temperature_offset=-300.0)


def test_live_run_equals_batch_bitwise(example: Any, tmp_path: Path) -> None:
    path = tmp_path / "climb.sdf"
    path.write_text(example.WORLD)
    world = ns.load(path, sensors=[example.BarometricAltimeter])
    batch = ns.simulate(world, 30.0, seed=4)[NAME]
    parts = []
    for step in ns.live(replace(world, max_step_size=0.1), seed=4):
        if step.time > 30.0:
            break
        parts += [step.readings[NAME]] if NAME in step.readings else []
    live = join_readings(parts).select_rows(0, batch.time.size)
    assert live["altitude"].tobytes() == batch["altitude"].tobytes()
    assert batch["altitude"].shape == (600,)
