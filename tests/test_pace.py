"""A run that is held to a speed: when slabs are handed on, and that nothing else depends on it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import navsense as ns
from navsense.cli import cli
from navsense.core.errors import SimulationError
from navsense.sensors import Imu
from navsense.simulation import real_time
from navsense.simulation.real_time import RealTimeLimiter
from navsense.testing import example_world


class Wall:
    """A wall clock that stands still but for those who sleep, and for the work that is said to be done."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def test_slabs_are_handed_on_when_they_are_due() -> None:
    wall = Wall()
    held = RealTimeLimiter(2.0, wall.now, wall.sleep)
    assert held.window == 2.0 * real_time.WALL_STEP
    wall.time += 7.0  # the first slab takes long, as compiling does; the pace begins with it
    handed = []
    for end, work in ((0.1, 0.0), (0.2, 0.01), (0.3, 0.2), (0.4, 0.0), (0.5, 0.0), (1.5, 0.0)):
        wall.time += work
        held.wait(end)
        handed.append(wall.time - 107.0)
    # Due every 50 ms; the third is made 110 ms late, and what follows catches up as fast as it can.
    assert handed == pytest.approx([0.0, 0.05, 0.25, 0.25, 0.25, 0.7], abs=1e-12)
    assert wall.slept == pytest.approx([0.04, 0.45], abs=1e-12)
    assert held.behind == pytest.approx(0.15, abs=1e-12)


@pytest.mark.parametrize("speed", [0.0, -1.0, 5e-324, 1e-310, math.nan, math.inf, True, "1"])
def test_a_speed_that_is_none_is_refused(speed: object, tmp_path: Path) -> None:
    world = example_world(("imu", Imu()))
    with pytest.raises(SimulationError, match="speed"):
        ns.record(world, tmp_path / "a.npz", 1.0, speed=speed)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_what_is_recorded_does_not_depend_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    limiter = "navsense.runner.run.RealTimeLimiter"
    monkeypatch.setattr(limiter, lambda speed: RealTimeLimiter(speed, sleep=slept.append))
    world = example_world(("imu", Imu()))
    whole = ns.record(world, tmp_path / "whole.npz", 1.0, seed=3)
    held = ns.record(world, tmp_path / "held.npz", 1.0, seed=3, speed=2.0)
    assert held.samples == whole.samples
    assert len(slept) >= 8, "1 s is ten slabs of 0.1 s, of which all but the first wait"
    one, other = (ns.open(tmp_path / f"{name}.npz")["robot::arm::imu"] for name in ("whole", "held"))
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(other.arrays[name], array)
    np.testing.assert_array_equal(other.stamp, one.stamp)


def test_the_command_says_how_far_it_fell_behind(tmp_path: Path) -> None:
    world = tmp_path / "a.sdf"
    world.write_text(
        '<sdf version="1.9"><model name="m"><link name="l"><sensor name="i" type="imu"><update_rate>100</update_rate>'
        "</sensor></link></model></sdf>"
    )
    result = CliRunner().invoke(cli, ["run", str(world), "--duration", "600", "--speed", "1e9"])
    assert result.exit_code == 0, result.output
    assert "600 s simulated" in result.output
    refused = CliRunner().invoke(cli, ["run", str(world), "--duration", "1", "--speed", "0"])
    assert refused.exit_code != 0
    assert "must be a finite number >= 1e-06, 1 for real time" in str(refused.exception or refused.output)
