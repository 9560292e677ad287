"""The benchmark measures the declared quantities; its speed is not tested."""

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
from navsense.noise.specification import Noise
from navsense.sensors import SENSORS

pytestmark = pytest.mark.compiled

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
in_repository = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks/ is in the repository only")


@pytest.mark.requirement("NOI-7")
def test_table_has_every_noise_and_every_sensor_with_its_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "measure_call", partial(bench.measure_call, seconds=0.03))
    monkeypatch.setattr(bench, "LENGTH", 100_000)
    rows = {row.name: row for row in bench.measure_all()}
    for name in bench.NOISES:
        row = rows[f"noise: {name}"]
        assert 0.0 < row.nanoseconds < 1e6
        assert (row.draws > 0.0) == (name != "none")
    for kind in SENSORS:
        assert 0.0 < rows[f"{kind.type}, standard noise and clock"].ratio < 1.5
    assert {f"clock: {name}" for name in bench.CLOCKS} <= rows.keys()


@pytest.mark.requirement("NOI-7")
def test_noises_of_the_table_use_every_parameter() -> None:
    neutral = Noise()
    acting = {field.name for field in fields(neutral)} - {"classic", "reference_temperature", "scale_factor_stddev"}
    for field in acting - {"mean", "bias_mean", "maximum", "scale_temperature_coefficient"} | {"minimum"}:
        assert any(getattr(noise, field) != getattr(neutral, field) for noise in bench.NOISES.values()), field


def load_benchmark(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@in_repository
@pytest.mark.requirement("CLK-7")
def test_imu_at_1000_khz_with_gaussian_clock_noise() -> None:
    """`benchmarks/bench_clock.py` times this run: no sample is missing, stamps and noise are as configured.

    The test makes 16 comparisons with normal estimates. A limit of 5.5 deviations keeps the false-alarm rate below
    1e-6.
    """
    timed = load_benchmark("bench_clock")
    run = timed.simulate_fast_imu(0.2)
    (reading,) = run.values()
    assert np.array_equal(reading.time, np.arange(200_000) / 1e6)
    assert reading.emitted.all()
    noise, count = timed.IMU_CLOCK.noise, reading.time.size
    assert (noise.stddev, noise.mean) == (2e-7, 1e-6)
    off = reading.clock_error
    shown = (reading.stamp - 1000 * np.arange(200_000)) * 1e-9  # stamps are whole nanoseconds
    assert np.allclose(shown, off, rtol=0.0, atol=0.5e-9 + np.spacing(0.2))
    assert abs(off.mean() - noise.mean) < 5.5 * noise.stddev / math.sqrt(count)
    assert abs(off.std() / noise.stddev - 1.0) < 5.5 / math.sqrt(2.0 * count)
    follows = np.mean((off[1:] - noise.mean) * (off[:-1] - noise.mean)) / noise.stddev**2
    assert abs(follows) < 5.5 / math.sqrt(count), "white: a stamp does not depend on the one before"
    # Differences cancel the turn-on bias and the drift. They have twice the variance and, because of a correlation of
    # -1/2, 1.5 times the variance of an estimate from independent samples. Rounding to 1e-4 adds 1e-8 / 12.
    expected = math.hypot(bench.STANDARD.stddev, bench.STANDARD.precision / math.sqrt(12.0))
    for name in ("angular_velocity", "linear_acceleration"):
        error = np.diff(reading[name] - reading.ideal[name], axis=0)
        assert np.allclose(
            error.std(axis=0) / math.sqrt(2.0), expected, rtol=5.5 * math.sqrt(1.5 / 2.0 / count), atol=0.0
        )


@in_repository
@pytest.mark.requirement("CLK-7")
def test_benchmark_prints_ratio_of_simulated_to_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = load_benchmark("bench_clock")
    spent = iter((10.0, 10.5, 20.0, 20.25))
    monkeypatch.setattr(timed.time, "process_time", lambda: next(spent))
    monkeypatch.setattr(timed, "simulate_fast_imu", lambda seconds: None)
    (line,) = timed.measure_real_time_ratio(seconds=1.0, rounds=2)
    assert line.startswith("IMU at 1000 kHz, Gaussian clock noise ")
    assert line.endswith(" 1.0 s simulated in 0.25 s of processor time   ratio 4.00")


@in_repository
@pytest.mark.requirement("NOI-7")
def test_gazebo_benchmark_has_the_same_noise(tmp_path: Path) -> None:
    """The world file of the benchmark has standard noise on every channel."""
    load_benchmark("bench_gazebo").write_model(tmp_path / "model.sdf")
    specs = [sensor.spec for sensor in ns.load(tmp_path / "model.sdf").sensors]
    assert [spec.type for spec in specs] == ["imu", "magnetometer", "altimeter"]
    noises = [noise for spec in specs for axes in spec.noise().values() for noise in axes]
    assert noises == [bench.STANDARD] * (6 + 3 + 2)


@in_repository
@pytest.mark.requirement("NOI-7")
def test_missing_gazebo_error_names_the_package(tmp_path: Path) -> None:
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
