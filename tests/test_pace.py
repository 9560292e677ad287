"""The real-time pace of a run: when time slices are yielded, and that results do not change."""

from __future__ import annotations

import math
import re
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


class FakeClock:
    """A clock that advances only by `sleep` and by assignment to `time`."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def test_time_slices_are_yielded_when_due() -> None:
    clock = FakeClock()
    limiter = RealTimeLimiter(2.0, clock.now, clock.sleep)
    assert limiter.time_slice_length == 2.0 * real_time.WALL_STEP
    clock.time += 7.0  # The first time slice takes long, as with compilation. The pace starts when it is computed.
    passed_on = []
    for end, work in ((0.1, 0.0), (0.2, 0.01), (0.3, 0.2), (0.4, 0.0), (0.5, 0.0), (1.5, 0.0)):
        clock.time += work
        limiter.wait(end)
        passed_on.append(clock.time - 107.0)
    # One is due every 50 ms. The third is 150 ms late, and the next ones follow without a wait.
    assert passed_on == pytest.approx([0.0, 0.05, 0.25, 0.25, 0.25, 0.7], abs=1e-12)
    assert clock.slept == pytest.approx([0.04, 0.1, 0.1, 0.1, 0.1, 0.05], abs=1e-12)
    assert limiter.max_delay == pytest.approx(0.15, abs=1e-12)


def test_speed_and_pause_change_when_time_slices_are_due() -> None:
    """At speed 1 for 1 s of wall time, paused for 2 s, then at speed 4."""
    clock = FakeClock()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if limiter.is_paused and clock.time > 102.99:
            limiter.is_paused = False

    limiter = RealTimeLimiter(1.0, clock.now, sleep)
    passed_on = []
    for end in np.arange(1, 31) * 0.1:
        limiter.wait(float(end))
        passed_on.append(clock.time - 100.0)
        if math.isclose(end, 1.1):
            limiter.is_paused, limiter.speed = True, 4.0
            assert (limiter.is_paused, limiter.speed) == (True, 4.0)
    first = np.arange(11) * 0.1
    second = 1.0 + 2.0 + np.arange(1, 20) * 0.1 / 4.0
    assert passed_on == pytest.approx([*first, *second], abs=1e-9)


@pytest.mark.parametrize("speed", [0.0, -1.0, 5e-324, 1e-310, math.nan, math.inf, True, "1"])
def test_invalid_speed_is_an_error(speed: object, tmp_path: Path) -> None:
    world = example_world(("imu", Imu()))
    with pytest.raises(SimulationError, match="speed"):
        ns.record(world, tmp_path / "a.npz", 1.0, speed=speed)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_speed_does_not_change_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    limiter = "navsense.runner.run.RealTimeLimiter"
    monkeypatch.setattr(limiter, lambda speed: RealTimeLimiter(speed, clock.now, clock.sleep))
    world = example_world(("imu", Imu()))
    unlimited = ns.record(world, tmp_path / "unlimited.npz", 1.0, seed=3)
    limited = ns.record(world, tmp_path / "limited.npz", 1.0, seed=3, speed=2.0)
    assert limited.samples == unlimited.samples
    # One second is ten time slices of 0.1 s. The first sets the pace, and the others wait 0.05 s each.
    assert clock.slept == pytest.approx([0.05] * 9, abs=1e-9)
    expected, actual = (ns.open(tmp_path / f"{name}.npz")["robot::arm::imu"] for name in ("unlimited", "limited"))
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(actual.arrays[name], array)
    np.testing.assert_array_equal(actual.stamp, expected.stamp)


def test_command_warns_that_the_run_is_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("navsense.cli.run.MAX_DELAY", 0.0)
    world = tmp_path / "a.sdf"
    world.write_text(
        '<sdf version="1.9"><model name="m"><link name="l"><sensor name="i" type="imu"><update_rate>100</update_rate>'
        "</sensor></link></model></sdf>"
    )
    result = CliRunner().invoke(cli, ["run", str(world), "--duration", "600", "--speed", "1e9"])
    assert result.exit_code == 0, result.output
    assert "600 s simulated" in result.output
    assert re.search(r"warning: the run fell up to \S+ s behind --speed", result.output)
    refused = CliRunner().invoke(cli, ["run", str(world), "--duration", "1", "--speed", "0"])
    assert refused.exit_code != 0
    assert "must be a finite number >= 1e-06, 1 for real time" in str(refused.exception or refused.output)
