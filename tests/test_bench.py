"""The benchmark measures what it says; how fast is not tested."""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import navsense as ns
from navsense.analysis import bench
from navsense.clock import Clock
from navsense.noise.channel import Noise
from navsense.sensors import SENSORS, Imu
from navsense.world import Link, Model, MountedSensor, World

pytestmark = pytest.mark.compiled

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
in_repository = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks/ is in the repository only")


@pytest.mark.requirement("NOI-7")
def test_the_table_has_every_noise_and_every_sensor_beside_its_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "best_time", partial(bench.best_time, seconds=0.03))
    monkeypatch.setattr(bench, "LENGTH", 100_000)
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
    acting = {field.name for field in fields(neutral)} - {"classic", "reference_temperature", "scale_factor_stddev"}
    for field in acting - {"mean", "bias_mean", "maximum", "scale_temperature_coefficient"} | {"minimum"}:
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


def bench_gazebo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_gazebo", BENCHMARKS / "bench_gazebo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@in_repository
@pytest.mark.requirement("NOI-7")
def test_gazebo_is_measured_with_the_noise_that_ours_is_measured_with(tmp_path: Path) -> None:
    """The one file that both read gives our sheets standard noise on every channel."""
    bench_gazebo().write_model(tmp_path / "model.sdf")
    specs = [sensor.spec for sensor in ns.load(tmp_path / "model.sdf").sensors]
    assert [spec.type for spec in specs] == ["imu", "magnetometer", "altimeter"]
    noises = [noise for spec in specs for axes in spec.noise().values() for noise in axes]
    assert noises == [bench.STANDARD] * (6 + 3 + 2)


@in_repository
@pytest.mark.requirement("NOI-7")
def test_without_gazebos_library_one_line_says_what_to_install(tmp_path: Path) -> None:
    none = {"PKG_CONFIG_PATH": str(tmp_path), "PKG_CONFIG_LIBDIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, str(BENCHMARKS / "bench_gazebo.py")],
        capture_output=True,
        text=True,
        env={**os.environ, **none},
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stdout.splitlines()
    assert line.startswith("not compared with gz-sensors: no ")
    assert "apt-get install" in line
