"""Gazebo's own integration figures, on Gazebo's own worlds (provenance: tests/oracles/gazebo/README.md)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense.environment.base import Environment, Uniform
from navsense.motion.still import Still
from navsense.pose import from_rpy
from navsense.sensors import Imu
from navsense.ticks import Ticks

NAMED = {
    "DEFAULT": (0.0, 0.0, 0.0, 1.0),
    "ENU": (0.0, 0.0, 1.0, 0.0),
    "NED": (-0.707, 0.707, 0.0, 0.0),
    "NWU": (0.0, 0.0, 0.707, 0.707),
    "CUSTOM": (0.0, 0.707, 0.707, 0.0),
}
"""gz-sim, imu_named_frame.sdf: orientation x y z w of each sensor, to 1e-2."""


@pytest.mark.requirement("MAG-1", "MAG-3", "MAG-4")
def test_the_magnetometer_world(shared_data: Path) -> None:
    world = ns.load(shared_data / "gz-sim" / "magnetometer.sdf")
    field = ns.simulate(world, 2.0)["magnetometer_model::link::magnetometer_sensor"]["field"]
    expected = Rotation.from_euler("z", 3.14 + 1.570796327).inv().apply([0.94, 0.76, -0.12])
    assert field.shape == (20, 3)
    assert np.allclose(field, expected, atol=1e-12)


@pytest.mark.requirement("IMU-1")
def test_the_imu_world_at_rest(shared_data: Path) -> None:
    reading = ns.simulate(ns.load(shared_data / "gz-sim" / "imu.sdf"), 2.0)["imu_model::link::imu_sensor"]
    assert np.allclose(reading["linear_acceleration"], [0.0, 0.0, 5.0], atol=1e-12)
    assert not reading["angular_velocity"].any()


@pytest.mark.requirement("IMU-1")
@pytest.mark.parametrize("name", NAMED)
def test_named_frames(shared_data: Path, name: str) -> None:
    run = ns.simulate(ns.load(shared_data / "gz-sim" / "imu_named_frame.sdf"), 1.0)
    ours = run[f"imu_model::link::imu_sensor_{name}"]["orientation"][0]
    theirs = Rotation.from_quat(NAMED[name])
    assert (theirs.inv() * Rotation.from_quat(ours, scalar_first=True)).magnitude() < 1e-2


@pytest.mark.requirement("IMU-1")
@pytest.mark.parametrize(
    ("gravity", "pitch", "expected", "tolerance"),
    [(-4.0, 0.0, (0.0, 0.0, 4.0), 0.0), (-3.0, 3.14, (0.0, 0.0, -3.0), 1e-2)],
)
def test_the_unit_cases_of_the_imu(gravity: float, pitch: float, expected: tuple[float, ...], tolerance: float) -> None:
    motion = Still(ns.Pose(rotation=from_rpy(0.0, pitch, 0.0)))
    surroundings = Environment(gravity=Uniform((0.0, 0.0, gravity)))
    force = Imu().ideal(motion, surroundings, Ticks(np.zeros(1, dtype=np.int64), 1.0))["linear_acceleration"][0]
    assert np.allclose(force, expected, rtol=0.0, atol=tolerance)


@pytest.mark.requirement("NOI-1", "NOI-3", "NOI-4")
def test_a_real_world_with_every_kind_of_noise_runs_under_both_fidelities(shared_data: Path) -> None:
    world = ns.load(shared_data / "gz-sim" / "non_rendering_sensors.sdf")
    for fidelity in ("physical", "classic"):
        reading = ns.simulate(world, 20.0, seed=1, fidelity=fidelity)["model::link::imu_sensor"]
        off = reading["angular_velocity"] - reading.truth["angular_velocity"] - reading.errors["angular_velocity"]
        count = off.shape[0]
        for axis, (mean, stddev) in enumerate(((3.0, 3.1), (4.0, 4.1), (5.0, 5.1))):
            assert abs(off[:, axis].mean() - mean) < 4.892 * stddev / math.sqrt(count)
            assert abs(off[:, axis].std() / stddev - 1.0) < 4.892 / math.sqrt(2.0 * count)
        assert reading.errors["angular_velocity"].std() > 1.0
