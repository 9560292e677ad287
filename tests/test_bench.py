"""The benchmark measures what it says; how fast is not tested."""

from __future__ import annotations

import math

import numpy as np
import pytest

import navsense as ns
from navsense.analysis import bench
from navsense.clock import Clock
from navsense.noise.channel import Noise
from navsense.sensors import SENSORS, Imu
from navsense.world import Link, Model, MountedSensor, World

pytestmark = pytest.mark.compiled


@pytest.mark.requirement("NOI-7")
def test_the_table_has_every_noise_and_every_sensor_beside_its_draws() -> None:
    rows = {row.name: row for row in bench.table()}
    for name in bench.NOISES:
        row = rows[f"noise: {name}"]
        assert 0.0 < row.nanoseconds < 1e6
        assert (row.draws > 0.0) == (name != "none")
    for kind in SENSORS:
        assert 0.0 < rows[f"{kind.type}, standard noise and clock"].ratio < 1.5
    assert {f"clock: {name}" for name in bench.CLOCKS} <= rows.keys()


@pytest.mark.requirement("NOI-7")
def test_the_noises_of_the_table_use_every_parameter() -> None:
    neutral = Noise()
    for field in ("stddev", "bias_stddev", "dynamic_bias_stddev", "precision", "minimum"):
        assert any(getattr(noise, field) != getattr(neutral, field) for noise in bench.NOISES.values()), field


@pytest.mark.requirement("CLK-7")
def test_an_imu_at_1000_khz_with_gaussian_clock_noise() -> None:
    """The document's performance case: every sample there, stamps as configured (how fast: `make bench`)."""
    clock = Clock("robot::link::clock", Noise(mean=1e-6, stddev=2e-7))
    imu = bench.standard(Imu)
    sensor = MountedSensor("robot::link::imu", imu, "robot", "robot::link", 1e6, clock=clock.name)
    world = World("fast", (Model("robot", (Link("robot::link"),), "robot::link"),), (sensor,), (clock,))
    reading = ns.simulate(world, 0.2, seed=1)["robot::link::imu"]
    assert np.array_equal(reading.time, np.arange(200_000) / 1e6)
    off = reading.clock_error
    assert abs(off.mean() - 1e-6) < 4.892 * 2e-7 / math.sqrt(off.size)
    assert abs(off.std() / 2e-7 - 1.0) < 4.892 / math.sqrt(2.0 * off.size)
