"""The example of navsense inside the server of Gazebo, with a stand-in for the Python module of gz-sim.

The stand-in has the functions of `python/src/gz/sim/Link.cc`, `Model.cc` and `UpdateInfo.cc` of gz-sim and no others.
The example was not run inside gz-sim.
"""

from __future__ import annotations

import json
import math
import runpy
import sys
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "gz_sim_system.py"
STEP = 0.001

WORLD = """<sdf version="1.9"><world name="w"><physics type="ode"><max_step_size>0.001</max_step_size></physics>
  <gravity>0 0 -9.8</gravity>
  <model name="robot"><link name="base"><sensor name="imu" type="imu"><pose>0.3 0 0 0 0 0</pose>
    <update_rate>200</update_rate></sensor></link></model></world></sdf>"""


class Vector3d:
    """`gz.math.Vector3d`."""

    def __init__(self, *values: float) -> None:
        self._values = values

    def x(self) -> float:
        return self._values[0]

    def y(self) -> float:
        return self._values[1]

    def z(self) -> float:
        return self._values[2]


class Quaterniond(Vector3d):
    """`gz.math.Quaterniond`: x y z w."""

    def w(self) -> float:
        return self._values[3]


class Pose3d:
    """`gz.math.Pose3d`."""

    def __init__(self, position: Vector3d, rotation: Quaterniond) -> None:
        self._parts = position, rotation

    def pos(self) -> Vector3d:
        return self._parts[0]

    def rot(self) -> Quaterniond:
        return self._parts[1]  # type: ignore[return-value]


class World:
    """The entity component manager: a link that spins up about z with 5 rad/s^2 from 2 rad/s, `steps` after t = 0."""

    def __init__(self) -> None:
        self.steps = 0
        self.checks: set[str] = set()

    @property
    def time(self) -> float:
        return self.steps * STEP

    def get(self, check: str, *values: float) -> Vector3d | None:
        """Return a vector; None before the first step and unless it was enabled."""
        return Vector3d(*values) if check in self.checks and self.steps else None


class Link:
    """`gz.sim.Link`."""

    def __init__(self, entity: int) -> None:
        assert entity == 9

    def enable_velocity_checks(self, ecm: World, enable: bool = True) -> None:
        assert enable
        ecm.checks.add("velocity")

    def enable_acceleration_checks(self, ecm: World, enable: bool = True) -> None:
        assert enable
        ecm.checks.add("acceleration")

    def world_pose(self, ecm: World) -> Pose3d:
        half = 0.5 * (2.0 * ecm.time + 2.5 * ecm.time**2)
        return Pose3d(Vector3d(1.0, 0.0, 2.0), Quaterniond(0.0, 0.0, math.sin(half), math.cos(half)))

    def world_linear_velocity(self, ecm: World) -> Vector3d | None:
        return ecm.get("velocity", 0.0, 0.0, 0.0)

    def world_angular_velocity(self, ecm: World) -> Vector3d | None:
        return ecm.get("velocity", 0.0, 0.0, 2.0 + 5.0 * ecm.time)

    def world_linear_acceleration(self, ecm: World) -> Vector3d | None:
        return ecm.get("acceleration", 0.0, 0.0, 0.0)

    def world_angular_acceleration(self, ecm: World) -> Vector3d | None:
        return ecm.get("acceleration", 0.0, 0.0, 5.0)


class Model:
    """`gz.sim.Model`."""

    def __init__(self, entity: int) -> None:
        assert entity == 8

    def name(self, _ecm: World) -> str:
        return "robot"

    def canonical_link(self, _ecm: World) -> int:
        return 9


class UpdateInfo:
    """`gz.sim.UpdateInfo`."""

    def __init__(self, iterations: int, *, paused: bool = False, step: float = STEP) -> None:
        self.dt = timedelta(seconds=step)
        self.sim_time = iterations * self.dt
        self.iterations, self.paused = iterations, paused


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType("gz.sim9")
    module.__dict__.update(Link=Link, Model=Model)
    monkeypatch.setitem(sys.modules, "gz", ModuleType("gz"))
    monkeypatch.setitem(sys.modules, "gz.sim9", module)
    (tmp_path / "robot.sdf").write_text(WORLD, encoding="utf-8")
    monkeypatch.setenv("NAVSENSE_WORLD", str(tmp_path / "robot.sdf"))
    monkeypatch.setenv("NAVSENSE_OUTPUT", str(tmp_path / "readings.jsonl"))
    return runpy.run_path(str(EXAMPLE))["get_system"]()


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "readings.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.requirement("LIV-7")
def test_imu_measures_the_motion_of_the_link(system: Any, tmp_path: Path) -> None:
    """At 0.3 m from the axis: 1.5 m/s^2 tangential, 0.3 omega^2 inwards. A paused server takes no step."""
    ecm = World()
    system.configure(8, None, ecm, None)
    for k in range(101):
        system.pre_update(UpdateInfo(k + 1), ecm)
        system.pre_update(UpdateInfo(k + 1, paused=True), ecm)
        ecm.steps += 1
    system.shutdown()
    lines = read_lines(tmp_path)
    assert [line["sensor"] for line in lines] == ["robot::base::imu"] * 21
    np.testing.assert_allclose([line["time"] for line in lines], 0.005 * np.arange(21), rtol=0, atol=1e-12)
    for line in lines[1:]:
        rate = 2.0 + 5.0 * line["time"]
        np.testing.assert_allclose(line["angular_velocity"], (0.0, 0.0, rate), rtol=0, atol=1e-12)
        np.testing.assert_allclose(line["linear_acceleration"], (-0.3 * rate**2, 1.5, 9.8), rtol=0, atol=1e-12)


def test_reset_starts_at_zero_and_another_step_is_an_error(system: Any, tmp_path: Path) -> None:
    ecm = World()
    system.configure(8, None, ecm, None)
    for _ in range(2):
        system.pre_update(UpdateInfo(1), ecm)
        system.reset(UpdateInfo(0), ecm)
    with pytest.raises(ValueError, match=r"the step of Gazebo is 0\.002 s"):
        system.pre_update(UpdateInfo(1, step=0.002), ecm)
    system.shutdown()
    assert [line["time"] for line in read_lines(tmp_path)] == [0.0, 0.0]


def test_module_of_gz_sim_is_named_outside_the_server(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gz.sim9")
    with pytest.raises(ModuleNotFoundError, match="run it in the server of gz-sim"):
        system.configure(8, None, World(), None)
