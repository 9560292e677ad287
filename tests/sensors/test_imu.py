"""The IMU equals closed forms and values of Gazebo's library."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from navsense.core.pose import Pose, from_rpy
from navsense.core.ticks import Ticks
from navsense.core.typing import Times, Vector
from navsense.environment.base import Environment, UniformField
from navsense.motion.base import MotionBlock
from navsense.motion.derived import attach
from navsense.motion.stationary import Stationary
from navsense.sensors import Imu
from navsense.testing import example_motion

RATE = 100.0
TICKS = Ticks(np.arange(300), RATE)
G5 = Environment(gravity=UniformField((0.0, 0.0, -5.0)))


class SpinningMotion:
    """Rotates about the world z axis at omega + alpha t from attitude `tilt`, with the origin at rest."""

    end = math.inf

    def __init__(self, omega: float, alpha: float) -> None:
        self.omega, self.alpha = omega, alpha

    def at(self, time: Times) -> MotionBlock:
        n = time.size
        angle = self.omega * time + self.alpha * time**2 / 2.0
        z = np.zeros((n, 3))
        rotation = np.stack([np.cos(angle / 2), 0 * time, 0 * time, np.sin(angle / 2)], axis=1)
        rate, turn = z.copy(), z.copy()
        rate[:, 2] = self.omega + self.alpha * time
        turn[:, 2] = self.alpha
        return MotionBlock(z.copy(), rotation, z.copy(), rate, z.copy(), turn)


@pytest.mark.requirement("IMU-1")
@pytest.mark.parametrize("rpy", [(0.0, 0.0, 0.0), (0.0, 3.14, 0.0), (math.pi / 2, 0.0, math.pi), (0.3, -0.4, 1.0)])
def test_imu_at_rest_measures_gravity_upwards(rpy: Vector) -> None:
    ideal = Imu().ideal(Stationary(Pose(rotation=from_rpy(*rpy))), G5, TICKS)
    expected = Rotation.from_euler("xyz", rpy).inv().apply([0.0, 0.0, 5.0])
    assert np.allclose(ideal["linear_acceleration"], expected, atol=1e-14, rtol=0.0)
    assert not ideal["angular_velocity"].any()
    assert np.allclose(ideal["orientation"], [1.0, 0.0, 0.0, 0.0], atol=1e-15, rtol=0.0)


@pytest.mark.requirement("IMU-1")
def test_imu_in_free_fall_measures_zero() -> None:
    class FallingMotion:
        end = math.inf

        def at(self, time: Times) -> MotionBlock:
            falling = np.tile([0.0, 0.0, -5.0], (time.size, 1))
            return replace(Stationary(Pose()).at(time), acceleration_w=falling)

    assert not Imu().ideal(FallingMotion(), G5, TICKS)["linear_acceleration"].any()


@pytest.mark.requirement("IMU-2")
@pytest.mark.parametrize("radius", [0.0, 0.25, 3.0])
def test_lever_arm_adds_centripetal_and_tangential_acceleration(radius: float) -> None:
    """On a turntable, the force is -omega^2 r along the arm, alpha r across it, and 5 upwards."""
    omega, alpha = 3.0, 0.7
    ideal = Imu().ideal(attach(SpinningMotion(omega, alpha), Pose((radius, 0.0, 0.0))), G5, TICKS)
    rate = omega + alpha * TICKS.time
    expected = np.stack([-(rate**2) * radius, np.full(300, alpha * radius), np.full(300, 5.0)], axis=1)
    assert np.allclose(ideal["linear_acceleration"], expected, atol=1e-10, rtol=0.0)
    assert np.allclose(ideal["angular_velocity"], np.stack([0 * rate, 0 * rate, rate], axis=1), rtol=1e-12, atol=0.0)


@pytest.mark.requirement("IMU-2")
def test_rotated_mounting_rotates_the_reading() -> None:
    arm = Pose((0.2, -0.1, 0.4), from_rpy(0.4, -1.0, 2.0))
    straight = Imu().ideal(attach(example_motion(), Pose(arm.position)), G5, TICKS)
    turned = Imu().ideal(attach(example_motion(), arm), G5, TICKS)
    back = Rotation.from_euler("xyz", (0.4, -1.0, 2.0)).inv()
    for name in ("angular_velocity", "linear_acceleration"):
        assert np.allclose(turned[name], back.apply(straight[name]), atol=1e-12, rtol=0.0)


@pytest.mark.requirement("IMU-1")
def test_integrated_readings_reproduce_the_motion() -> None:
    """SciPy integrates the ideal readings with gravity and frames."""
    rate, count = 2000.0, 4000
    ticks = Ticks(np.arange(count), rate)
    truth = example_motion().at(ticks.time)
    ideal = Imu(reference=(1.0, 0.0, 0.0, 0.0)).ideal(example_motion(), Environment(), ticks)
    omega, force = ideal["angular_velocity"], ideal["linear_acceleration"]
    attitude = Rotation.from_quat(truth.rotation_wb[0], scalar_first=True)
    velocity, position = truth.velocity_w[0].copy(), truth.position_w[0].copy()
    accelerations = []
    attitudes = []
    for k in range(count):
        attitudes.append(attitude.as_quat(scalar_first=True))
        accelerations.append(attitude.apply(force[k]) + [0.0, 0.0, -9.8])
        if k + 1 < count:
            attitude = attitude * Rotation.from_rotvec((omega[k] + omega[k + 1]) / (2.0 * rate))
    a = np.array(accelerations)
    for k in range(count - 1):
        position = position + velocity / rate + (2.0 * a[k] + a[k + 1]) / (6.0 * rate**2)
        velocity = velocity + (a[k] + a[k + 1]) / (2.0 * rate)
    assert np.allclose(velocity, truth.velocity_w[-1], atol=2e-4, rtol=0.0)
    assert np.allclose(position, truth.position_w[-1], atol=2e-4, rtol=0.0)
    alignment = np.abs(np.sum(np.array(attitudes) * ideal["orientation"], axis=1))
    assert alignment.min() > 1.0 - 1e-8


@pytest.mark.requirement("IMU-1")
def test_orientation_is_relative_to_its_reference() -> None:
    """As in gz-sensors, q = q_ref^-1 q_world: with a reference yaw of 1.57, a level sensor measures yaw -1.57."""
    ideal = Imu(reference=from_rpy(0.0, 0.0, 1.57)).ideal(Stationary(Pose()), G5, TICKS)
    assert np.allclose(ideal["orientation"], from_rpy(0.0, 0.0, -1.57), atol=1e-15, rtol=0.0)


@pytest.mark.requirement("IMU-1")
def test_sensor_without_reference_starts_level() -> None:
    ideal = Imu().ideal(example_motion(), G5, TICKS)["orientation"]
    assert np.allclose(ideal[0], [1.0, 0.0, 0.0, 0.0], atol=1e-15, rtol=0.0)
    world = example_motion().at(TICKS.time).rotation_wb
    first = Rotation.from_quat(world[0], scalar_first=True)
    expected = first.inv() * Rotation.from_quat(world, scalar_first=True)
    assert np.allclose(
        (expected.inv() * Rotation.from_quat(ideal, scalar_first=True)).magnitude(), 0.0, atol=1e-7, rtol=0.0
    )


@pytest.mark.requirement("IMU-1")
def test_every_axis_has_separate_noise() -> None:
    sheet = Imu.example_spec()
    assert len({process.channel for process in sheet.processes()}) == 6
    names = [(process.channel, process.name) for process in sheet.processes()]
    assert len(names) == len(set(names)) == 6 * 8


def test_no_orientation_array_without_orientation() -> None:
    sheet = Imu(orientation=False)
    assert "orientation" not in sheet.ideal(Stationary(Pose()), G5, TICKS)
    assert [output.name for output in sheet.outputs] == ["angular_velocity", "linear_acceleration"]
