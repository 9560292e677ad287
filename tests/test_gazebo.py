"""Expected values of Gazebo's integration tests, with our worlds and with Gazebo's (tests/oracles/gazebo/README.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense.core.pose import Pose, from_rpy
from navsense.core.ticks import Ticks
from navsense.core.typing import Times
from navsense.environment.base import Environment, UniformField
from navsense.motion.base import MotionBlock
from navsense.motion.stationary import Stationary
from navsense.noise.specification import Noise
from navsense.sensors import AirPressure, Altimeter, Imu
from navsense.world import World

NAMED = {
    "DEFAULT": (0.0, 0.0, 0.0, 1.0),
    "ENU": (0.0, 0.0, 1.0, 0.0),
    "NED": (-0.707, 0.707, 0.0, 0.0),
    "NWU": (0.0, 0.0, 0.707, 0.707),
    "CUSTOM": (0.0, 0.707, 0.707, 0.0),
}
"""Orientation x y z w of each sensor in imu_named_frame.sdf of gz-sim, to 1e-2."""


@pytest.mark.requirement("MAG-1", "MAG-3", "MAG-4")
def test_magnetometer_world_has_gazebo_values(example_data: Path) -> None:
    world = ns.load(example_data / "gz-sim" / "magnetometer.sdf")
    field = ns.simulate(world, 2.0)["magnetometer_model::link::magnetometer_sensor"]["field"]
    expected = Rotation.from_euler("z", 3.14 + 1.570796327).inv().apply([0.94, 0.76, -0.12])
    assert field.shape == (20, 3)
    assert np.allclose(field, expected, atol=1e-12, rtol=0.0)


@pytest.mark.requirement("IMU-1")
def test_imu_world_at_rest_has_gazebo_values(example_data: Path) -> None:
    reading = ns.simulate(ns.load(example_data / "gz-sim" / "imu.sdf"), 2.0)["imu_model::link::imu_sensor"]
    assert np.allclose(reading["linear_acceleration"], [0.0, 0.0, 5.0], atol=1e-12, rtol=0.0)
    assert not reading["angular_velocity"].any()


@pytest.mark.requirement("IMU-1")
@pytest.mark.parametrize("name", NAMED)
def test_imu_world_with_named_reference_frames(example_data: Path, name: str) -> None:
    run = ns.simulate(ns.load(example_data / "gz-sim" / "imu_named_frame.sdf"), 1.0)
    ours = run[f"imu_model::link::imu_sensor_{name}"]["orientation"][0]
    theirs = Rotation.from_quat(NAMED[name])
    assert (theirs.inv() * Rotation.from_quat(ours, scalar_first=True)).magnitude() < 1e-2


@pytest.mark.requirement("IMU-1")
@pytest.mark.parametrize(
    ("gravity", "pitch", "expected", "tolerance"),
    [(-4.0, 0.0, (0.0, 0.0, 4.0), 0.0), (-3.0, 3.14, (0.0, 0.0, -3.0), 1e-2)],
)
def test_imu_matches_gazebo_unit_tests(
    gravity: float, pitch: float, expected: tuple[float, ...], tolerance: float
) -> None:
    motion = Stationary(ns.Pose(rotation=from_rpy(0.0, pitch, 0.0)))
    surroundings = Environment(gravity=UniformField((0.0, 0.0, gravity)))
    force = Imu().ideal(motion, surroundings, Ticks(np.zeros(1, dtype=np.int64), 1.0))["linear_acceleration"][0]
    assert np.allclose(force, expected, rtol=0.0, atol=tolerance)


@pytest.mark.requirement("NOI-1", "NOI-3", "NOI-4")
def test_real_world_with_every_noise_type_runs_in_both_fidelities(example_data: Path) -> None:
    world = ns.load(example_data / "gz-sim" / "non_rendering_sensors.sdf")
    for fidelity in ("physical", "classic"):
        reading = ns.simulate(world, 20.0, seed=1, fidelity=fidelity)["model::link::imu_sensor"]
        off = reading["angular_velocity"] - reading.ideal["angular_velocity"] - reading.bias["angular_velocity"]
        count = off.shape[0]
        for axis, (mean, stddev) in enumerate(((3.0, 3.1), (4.0, 4.1), (5.0, 5.1))):
            assert abs(off[:, axis].mean() - mean) < 4.892 * stddev / math.sqrt(count)
            assert abs(off[:, axis].std() / stddev - 1.0) < 4.892 / math.sqrt(2.0 * count)
        assert reading.bias["angular_velocity"].std() > 1.0


ALTIMETER = "altimeter_model::link::altimeter_sensor"


@dataclass(frozen=True)
class FallingMotion:
    """A link that falls from `height` (m) to rest at `ground`, as in the physics of those worlds."""

    pose: Pose
    ground: float
    gravity: float = 9.8
    end: float = math.inf

    def at(self, time: Times) -> MotionBlock:
        height = self.pose.position[2]
        landed = time > math.sqrt(2.0 * (height - self.ground) / self.gravity)
        block = Stationary(self.pose).at(time)
        position, velocity = block.position_w.copy(), np.zeros((time.size, 3))
        position[:, 2] = np.where(landed, self.ground, height - 0.5 * self.gravity * time**2)
        velocity[:, 2] = np.where(landed, 0.0, -self.gravity * time)
        return replace(block, position_w=position, velocity_w=velocity)


def make_fall(world: World, name: str, ground: float) -> dict[str, FallingMotion]:
    """Return the fall of a model from its pose in the file."""
    model = world.model(name)
    return {name: FallingMotion(model.pose @ model.link(model.canonical_link).pose, ground)}


@pytest.mark.requirement("ALT-1", "ALT-2", "ALT-6")
def test_altimeter_world_has_gazebo_values(example_data: Path) -> None:
    """It falls from 3.05 m to rest at 0.05 m: more than 3.0 - 1e-2 m lower, and at rest."""
    world = ns.load(example_data / "gz-sim" / "altimeter.sdf", fidelity="classic")
    sim = ns.live(world, motion=make_fall(world, "altimeter_model", 0.05))
    found = []
    for step in sim:
        found += [step.readings[ALTIMETER]] if ALTIMETER in step.readings else []
        if step.time >= 0.1:
            break
    assert sum(reading.time.size for reading in found) == 4  # floor(30 T + 1)
    run = ns.simulate(world, 2.0, motion=make_fall(world, "altimeter_model", 0.05))[ALTIMETER]
    assert np.allclose(run["vertical_reference"], 3.05, rtol=0.0, atol=1e-12)
    assert run["vertical_position"][0] == run["vertical_velocity"][0] == 0.0
    fall = run.time < math.sqrt(2.0 * 3.0 / 9.8)
    assert (run["vertical_position"][fall][1:] < 0.0).all()
    assert np.allclose(run["vertical_velocity"][fall], -9.8 * run.time[fall], rtol=1e-14, atol=0.0)
    assert abs(run["vertical_position"][-1] + 3.0) < 1e-2
    assert abs(run["vertical_velocity"][-1]) < 1e-3
    physical = ns.simulate(world, 0.1, fidelity="physical")[ALTIMETER]
    assert np.allclose(physical["vertical_position"], 3.05, rtol=0.0, atol=1e-12)


@pytest.mark.requirement("ALT-1", "ALT-2")
def test_altimeter_world_with_pose_has_gazebo_values(example_data: Path) -> None:
    world = ns.load(example_data / "gz-sim" / "altimeter_with_pose.sdf", fidelity="classic")
    reading = ns.simulate(world, 1.0)[ALTIMETER]
    assert np.allclose(reading["vertical_reference"], 3.35, rtol=0.0, atol=1e-12)
    assert not reading["vertical_position"].any()


@pytest.mark.requirement("ALT-1", "ALT-2")
def test_altimeter_matches_gazebo_classic() -> None:
    """At z = 10: reference 10, height 0, velocity 0. After ten steps of 1 ms its velocity is exactly g dt 10."""
    motion = FallingMotion(Pose((0.0, 0.0, 10.0)), 0.0)
    ticks = Ticks(np.arange(11, dtype=np.int64), 1000.0)
    found = Altimeter(classic=True).ideal(motion, Environment(), ticks)
    assert [found[name][0] for name in ("vertical_reference", "vertical_position", "vertical_velocity")] == [10, 0, 0]
    assert found["vertical_velocity"][10] == pytest.approx(-9.8 * 0.001 * 10, rel=4e-16, abs=0.0)


@pytest.mark.requirement("PRS-1")
@pytest.mark.parametrize(("z", "expected"), [(100.0, 100129.46), (80.390198, 100362.99)])
def test_reset_world_has_gazebo_air_pressures(example_data: Path, z: float, expected: float) -> None:
    """The values are equal as single-precision numbers with two decimals."""
    world = ns.load(example_data / "gz-sim" / "reset_sensors.sdf")
    (sensor,) = (one for one in world.sensors if one.spec.type == "air_pressure")
    run = ns.simulate(world, 0.1, motion={"box": Stationary(Pose((0.0, 0.0, z)))})
    assert np.allclose(run[sensor.name]["pressure"], expected, rtol=0.0, atol=5e-3)


@pytest.mark.requirement("PRS-1")
def test_air_pressure_world_uses_the_elevation_of_its_file(example_data: Path) -> None:
    """With reference_altitude 123 and a link at 3.05 m, the pressure is that of the standard atmosphere at 126.05 m.

    Gazebo reports 101325 Pa: it ignores the altitude of the file and the height of the static model.
    """
    world = ns.load(example_data / "gz-sim" / "air_pressure.sdf")
    found = ns.simulate(world, 0.1)["air_pressure_model::link::air_pressure_sensor"]["pressure"]
    geopotential = 6356766.0 * 126.05 / (6356766.0 + 126.05)
    standard = 101325.0 * (1.0 - 0.0065 * geopotential / 288.15) ** (9.80665 * 28.9644 / (8314.32 * 0.0065))
    assert np.allclose(found, standard, rtol=1e-13, atol=0.0)


@pytest.mark.requirement("NAV-1")
def test_navsat_world_has_gazebo_values(example_data: Path) -> None:
    """At -22.9, -43.2, a falling vehicle has a negative altitude and up velocity, and a constant position."""
    world = ns.load(example_data / "gz-sim" / "navsat.sdf")
    name = "navsat_model::link::navsat_sensor"
    (sensor,) = world.sensors
    assert (sensor.name, sensor.frame, sensor.rate) == (name, name, 30.0)
    run = ns.simulate(world, 1.0, motion=make_fall(world, "navsat_model", -100.0))[name]
    assert np.allclose(np.degrees(run["latitude"]), -22.9, rtol=0.0, atol=1e-12)
    assert np.allclose(np.degrees(run["longitude"]), -43.2, rtol=0.0, atol=1e-12)
    assert np.allclose(run["velocity"][:, :2], 0.0, rtol=0.0, atol=1e-13)
    assert (run["velocity"][1:, 2] < 0.0).all()
    assert np.allclose(run["altitude"], -4.9 * run.time**2, rtol=0.0, atol=2e-9)
    assert abs(run["altitude"][0]) < 2e-9


@pytest.mark.requirement("ALT-3", "PRS-1")
def test_heights_and_pressures_of_a_real_world_have_declared_noise(example_data: Path) -> None:
    world = ns.load(example_data / "gz-sim" / "non_rendering_sensors.sdf")
    sheets = {sensor.name: sensor.spec for sensor in world.sensors}
    assert sheets["model::link::altimeter_sensor"] == Altimeter(
        Noise(mean=0.1, stddev=0.2), Noise(mean=2.3, stddev=4.5)
    )
    assert sheets["model::link::air_pressure_sensor"] == AirPressure(Noise(mean=3.4, stddev=5.6), 123.4)
    run = ns.simulate(world, 5.0, seed=2)
    for sensor, array, mean, stddev in (
        ("altimeter_sensor", "vertical_position", 0.1, 0.2),
        ("altimeter_sensor", "vertical_velocity", 2.3, 4.5),
        ("air_pressure_sensor", "pressure", 3.4, 5.6),
    ):
        reading = run[f"model::link::{sensor}"]
        off = reading[array] - reading.ideal[array]
        assert abs(off.mean() - mean) < 4.892 * stddev / math.sqrt(off.size)
        assert abs(off.std() / stddev - 1.0) < 4.892 / math.sqrt(2.0 * off.size)
