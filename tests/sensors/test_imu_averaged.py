"""Readings averaged over sample intervals: their increments reproduce the motion, with earth rotation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense.core.errors import SensorError
from navsense.core.geodesy import EARTH_RATE, Origin
from navsense.core.pose import Pose, from_rpy, normalize
from navsense.core.ticks import Ticks
from navsense.core.typing import FloatArray, Quaternion, Times, Vectors
from navsense.environment.base import Environment, UniformField, VectorField
from navsense.environment.gravity import NormalGravity
from navsense.motion.base import Motion, MotionBlock
from navsense.motion.derived import attach
from navsense.motion.driven import State
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import waypoints
from navsense.sensors import Imu
from navsense.testing import check_equivariance
from navsense.world import Link, Model, MountedSensor, World

RATE = 200.0
ZURICH = Origin(math.radians(47.4), math.radians(8.5), 400.0, heading=0.7)
ON_EARTH = Environment(gravity=NormalGravity(ZURICH), origin=ZURICH)
ARM = Pose((0.4, -0.3, 0.2), from_rpy(0.5, 0.1, -0.7))


def make_violent_motion() -> Motion:
    """Return an off-centre motion that repeats metres and up to 100 degrees within 0.15 s."""
    draw = np.random.default_rng(8)
    attitude, poses = Rotation.identity(), []
    for _ in range(12):
        w, x, y, z = attitude.as_quat(scalar_first=True).tolist()
        px, py, pz = draw.normal(0.0, 1.0, 3).tolist()
        poses.append(Pose((px, py, pz), normalize((w, x, y, z))))
        axis = draw.normal(0.0, 1.0, 3)
        attitude = attitude * Rotation.from_rotvec(axis / np.linalg.norm(axis) * draw.uniform(0.5, 1.7))
    return attach(waypoints([0.15 * k for k in range(12)], poses), ARM)


def make_rotation(quaternions: FloatArray) -> Rotation:
    return Rotation.from_quat(quaternions, scalar_first=True)


@pytest.mark.requirement("IMU-4", "IMU-2")
def test_sums_of_readings_reproduce_the_motion() -> None:
    """The readings give attitude and velocity after each of 330 intervals with up to 5 degrees of rotation."""
    ticks = Ticks(np.arange(331), RATE)
    truth = make_violent_motion().at(ticks.time)
    averaged = Imu(averaged=True).ideal(make_violent_motion(), Environment(), ticks)
    instant = Imu().ideal(make_violent_motion(), Environment(), ticks)
    assert np.abs(averaged["angular_velocity"]).max() > 13.0
    off = {}
    for name, ideal in (("averaged", averaged), ("instant", instant)):
        attitude, velocity = make_rotation(truth.rotation_wb[0]), truth.velocity_w[0].copy()
        off[name] = 0.0
        for k in range(1, len(ticks)):
            velocity = velocity + (attitude.apply(ideal["linear_acceleration"][k]) + [0.0, 0.0, -9.8]) / RATE
            attitude = attitude * Rotation.from_rotvec(ideal["angular_velocity"][k] / RATE)
            apart = (attitude.inv() * make_rotation(truth.rotation_wb[k])).magnitude()
            off[name] = max(off[name], apart, np.abs(velocity - truth.velocity_w[k]).max())
    assert off["averaged"] < 1e-9
    assert off["instant"] > 1e-2  # the same with instantaneous readings


@pytest.mark.requirement("IMU-4")
@pytest.mark.parametrize("earth", [False, True])
def test_reading_is_the_mean_in_the_initial_frame(earth: bool) -> None:
    """Adaptive quadrature integrates the instantaneous readings, rotated by the inertial attitude."""
    sheet, motion = Imu(earth_rotation=earth), make_violent_motion()
    spin = np.array(compute_earth_rate(ZURICH)) if earth else np.zeros(3)
    averaged = replace(sheet, averaged=True).ideal(motion, ON_EARTH, Ticks(np.arange(200), RATE))

    def compute_force(t: float, start: float) -> FloatArray:
        one = Ticks(np.array([1], dtype=np.int64), 1.0 / t)
        ideal, now = sheet.ideal(motion, ON_EARTH, one), make_rotation(motion.at(np.array([t])).rotation_wb[0])
        then = make_rotation(motion.at(np.array([start])).rotation_wb[0])
        inertial = Rotation.from_rotvec(spin * (t - start))
        return (then.inv() * inertial * now).apply(ideal["linear_acceleration"][0])

    for k in (7, 60, 121):  # these intervals contain no knot of the spline
        start, end = (k - 1) / RATE, k / RATE
        for axis in range(3):
            mean, error = quad(lambda t, a=axis, s=start: compute_force(t, s)[a], start, end, epsrel=1e-12)
            assert error * RATE < 1e-10
            assert abs(averaged["linear_acceleration"][k, axis] - mean * RATE) < 1e-9
        truth = motion.at(np.array([start, end])).rotation_wb
        turn = make_rotation(truth[0]).inv() * Rotation.from_rotvec(spin / RATE) * make_rotation(truth[1])
        assert np.allclose(averaged["angular_velocity"][k] / RATE, turn.as_rotvec(), rtol=0.0, atol=1e-14)


def compute_earth_rate(origin: Origin) -> tuple[float, float, float]:
    """Return the earth rate in world axes, from latitude and heading."""
    north, up = EARTH_RATE * math.cos(origin.latitude), EARTH_RATE * math.sin(origin.latitude)
    return (north * math.sin(origin.heading), north * math.cos(origin.heading), up)


class CubicGravity:
    """Gravity that varies with x and time as a sum of cubics: Simpson's rule is exact for it."""

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        out = np.zeros((time.size, 3))
        out[:, 2] = -9.8 + 0.3 * time - 0.2 * time**3
        out[:, 0] = 0.5 * position_w[:, 0]
        return out

    def rotate(self, rotation: Quaternion) -> VectorField:
        raise NotImplementedError


class SlidingMotion:
    """Moves along the world x axis as a cubic of time, without rotation."""

    end = math.inf

    def at(self, time: Times) -> MotionBlock:
        rows = Stationary(Pose()).at(time)
        position, velocity, acceleration = np.zeros((3, time.size, 3))
        position[:, 0] = 1.0 + 2.0 * time + time**2 - 0.5 * time**3
        velocity[:, 0] = 2.0 + 2.0 * time - 1.5 * time**2
        acceleration[:, 0] = 2.0 - 3.0 * time
        return replace(rows, position_w=position, velocity_w=velocity, acceleration_w=acceleration)


@pytest.mark.requirement("IMU-4")
def test_varying_gravity_is_integrated() -> None:
    """The reference for a long interval is the closed integral of cubics in time."""
    found = Imu(averaged=True).ideal(SlidingMotion(), Environment(gravity=CubicGravity()), Ticks(np.arange(4), 2.0))

    def place(t: float) -> float:
        return t + t**2 + t**3 / 3.0 - t**4 / 8.0

    for k in range(1, 4):
        a, b = (k - 1) / 2.0, k / 2.0
        pull = 2.0 * (0.5 * (place(b) - place(a)))
        down = 2.0 * (-9.8 * (b - a) + 0.15 * (b**2 - a**2) - 0.05 * (b**4 - a**4))
        gain = 2.0 * ((2.0 * b - 1.5 * b**2) - (2.0 * a - 1.5 * a**2))
        assert np.allclose(found["linear_acceleration"][k], [gain - pull, 0.0, -down], rtol=0.0, atol=1e-13)


class SpinningMotion:
    """Rotates about z at a constant rate (rad/s)."""

    end = math.inf

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def at(self, time: Times) -> MotionBlock:
        half = 0.5 * self.rate * time
        rotation = np.stack([np.cos(half), 0.0 * time, 0.0 * time, np.sin(half)], axis=1)
        omega = np.tile([0.0, 0.0, self.rate], (time.size, 1))
        return replace(Stationary(Pose()).at(time), rotation_wb=rotation, angular_velocity_b=omega)


@pytest.mark.requirement("IMU-4")
@pytest.mark.parametrize(
    ("turn", "read"), [(0.3, 0.3), (3.1, 3.1), (-3.1, -3.1), (3.5, 3.5 - 2.0 * math.pi), (1e-9, 1e-9)]
)
def test_rotation_per_interval_is_unique_up_to_half_a_turn(turn: float, read: float) -> None:
    found = Imu(averaged=True).ideal(SpinningMotion(turn * 10.0), Environment(), Ticks(np.arange(8), 10.0))
    assert np.allclose(found["angular_velocity"][1:, 2], read * 10.0, rtol=1e-9, atol=0.0)


@pytest.mark.requirement("IMU-4")
def test_imu_at_rest_measures_gravity_bitwise() -> None:
    found = Imu(averaged=True).ideal(Stationary(Pose()), Environment(), Ticks(np.arange(5), 1000.0))
    assert not found["angular_velocity"].any()
    assert found["linear_acceleration"].tolist() == [[0.0, 0.0, 9.8]] * 5


@pytest.mark.requirement("IMU-4")
def test_first_tick_is_not_published() -> None:
    ticks, sheet = Ticks(np.arange(3), RATE), Imu(averaged=True)
    ideal, instant = (each.ideal(make_violent_motion(), Environment(), ticks) for each in (sheet, Imu()))
    for name in ("angular_velocity", "linear_acceleration"):
        assert np.array_equal(ideal[name][0], instant[name][0])
        assert not np.array_equal(ideal[name][1], instant[name][1])
    _, measured = sheet.measure(sheet.init(np.empty(0)), ticks, ideal, np.empty((0, 3)))
    assert measured.emitted is not None
    assert measured.emitted.tolist() == [False, True, True]


@pytest.mark.requirement("IMU-4")
def test_rows_do_not_depend_on_other_rows() -> None:
    sheet = Imu(averaged=True, earth_rotation=True)
    complete = sheet.ideal(make_violent_motion(), ON_EARTH, Ticks(np.arange(100), RATE))
    for rows in ([0], [57], [3, 9, 10], [0, 2, 3, 99]):
        some = sheet.ideal(make_violent_motion(), ON_EARTH, Ticks(np.array(rows, dtype=np.int64), RATE))
        for name in ("angular_velocity", "linear_acceleration", "orientation"):
            assert some[name].tobytes() == complete[name][rows].tobytes()
    coarse = sheet.ideal(make_violent_motion(), ON_EARTH, Ticks(np.arange(20), RATE / 5.0))
    wide = sheet.ideal(make_violent_motion(), ON_EARTH, Ticks(np.arange(0, 100, 5), RATE, nominal_step=5))
    assert np.allclose(wide["linear_acceleration"], coarse["linear_acceleration"], rtol=0.0, atol=1e-12)


def make_driven_world(rate: float) -> World:
    sensor = MountedSensor("robot::base::imu", Imu(averaged=True), "robot", "robot::base", rate, pose=ARM, topic="/imu")
    model = Model("robot", (Link("robot::base"),), "robot::base")
    return World("w", (model,), (replace(sensor, frame=sensor.name),), (), max_step_size=0.01)


@pytest.mark.requirement("IMU-4", "LIV-1")
@pytest.mark.parametrize("rate", [10.0, 30.0, 100.0, 250.0])
def test_closed_loop_readings_reproduce_the_motion(rate: float) -> None:
    """The sensor stores the start of the interval, at any step size."""

    def state(t: float) -> State:
        angle, at = 0.8 * t, math.sin(2.0 * t)
        return State(Pose((at, 0.0, 0.0), from_rpy(0.0, 0.0, angle)), (2.0 * math.cos(2.0 * t), 0.0, 0.0))

    sim, found = ns.live(make_driven_world(rate), driven={"robot": state(0.0)}), []
    for n in range(101):
        step = sim.step({"robot": state(n / 100.0)})
        found += list(step.readings.values())
    rows = np.concatenate([reading["linear_acceleration"] for reading in found])
    turn = np.concatenate([reading["angular_velocity"] for reading in found])
    emitted = np.concatenate([reading.emitted for reading in found])
    assert emitted.tolist() == [False] + [True] * (len(rows) - 1)
    assert np.allclose(
        turn[1:], Rotation.from_quat(ARM.rotation, scalar_first=True).inv().apply([0.0, 0.0, 0.8]), rtol=1e-12, atol=0.0
    )
    attitude = Rotation.from_rotvec([0.0, 0.0, 0.8 / rate]) * Rotation.from_quat(ARM.rotation, scalar_first=True)

    def compute_velocity(t: float) -> FloatArray:
        now = Rotation.from_rotvec([0.0, 0.0, 0.8 * t])
        return np.array([2.0 * math.cos(2.0 * t), 0.0, 0.0]) + now.apply(np.cross([0.0, 0.0, 0.8], ARM.position))

    velocity, end = compute_velocity(1.0 / rate), (len(rows) - 1) / rate  # the angular velocity is unknown at t = 0
    for k in range(2, len(rows)):
        velocity = velocity + (attitude.apply(rows[k]) + [0.0, 0.0, -9.8]) / rate
        attitude = attitude * Rotation.from_rotvec(turn[k] / rate)
    # At the end of a step the motion equals the state of the caller. In the first step, without acceleration, the
    # velocity is linear, with an error of h^2 a' / 8; later errors are smaller.
    within = 0.01**2 * 8.0 / 8.0 if rate > 100.0 or rate == 30.0 else 0.0
    assert np.allclose(velocity, compute_velocity(end), rtol=0.0, atol=1e-9 + 2.0 * within)


@pytest.mark.requirement("IMU-4")
def test_unpublished_rows_are_not_written() -> None:
    run = ns.simulate(make_driven_world(50.0), 0.5)
    reading = run["robot::base::imu"]
    assert reading.emitted.tolist() == [False] + [True] * 24
    from navsense.messages.imu import encode_gz_messages

    assert len(encode_gz_messages(run.session.world.sensors[0], reading)) == 24


@pytest.mark.requirement("IMU-4")
@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("latitude", [-90.0, -33.0, 0.0, 47.0, 90.0])
def test_earth_rotation_at_rest_is_about_the_polar_axis(latitude: float, averaged: bool) -> None:
    """The rates along north and up are Omega cos and Omega sin of the latitude. Gravity is unchanged."""
    here = Origin(math.radians(latitude), 0.3)
    sheet = Imu(averaged=averaged, earth_rotation=True)
    found = sheet.ideal(Stationary(Pose()), Environment(origin=here), Ticks(np.arange(3), 100.0))
    expected = [0.0, EARTH_RATE * math.cos(here.latitude), EARTH_RATE * math.sin(here.latitude)]
    assert np.allclose(found["angular_velocity"], expected, rtol=0.0, atol=1e-19)
    assert np.allclose(found["linear_acceleration"][0], [0.0, 0.0, 9.8], rtol=0.0, atol=1e-14)
    east = 9.8 * expected[1] * 0.005 if averaged else 0.0  # the initial frame lags by half an interval
    assert np.allclose(found["linear_acceleration"][1:], [east, 0.0, 9.8], rtol=0.0, atol=1e-12)


@pytest.mark.requirement("IMU-4")
def test_eastward_motion_at_the_equator_reduces_specific_force() -> None:
    """The Eotvos effect is 2 Omega v upwards: 1.458423e-2 m/s^2 at v = 100 m/s."""

    class EastwardMotion:
        end = math.inf

        def at(self, time: Times) -> MotionBlock:
            east = np.tile([100.0, 0.0, 0.0], (time.size, 1))
            return replace(Stationary(Pose()).at(time), velocity_w=east, position_w=east * time[:, None])

    equator = Environment(origin=Origin(0.0, 0.0))
    found = Imu(earth_rotation=True).ideal(EastwardMotion(), equator, Ticks(np.arange(3), 100.0))
    assert np.allclose(found["linear_acceleration"], [0.0, 0.0, 9.8 - 1.458423e-2], rtol=0.0, atol=1e-12)


@pytest.mark.requirement("IMU-4")
def test_specific_force_equals_newton_in_inertial_space() -> None:
    """A curve in the world is transformed to inertial space and differentiated twice. Gravitation is gravity without
    its centrifugal part. The test contains no Coriolis term.
    """
    motion, time = SlidingMotion(), np.array([0.0, 0.4, 1.1])
    block, frame = motion.at(time), ZURICH.ecef_transform
    found = Imu(earth_rotation=True).ideal(motion, ON_EARTH, Ticks(np.array([0, 4, 11]), 10.0))
    gravity = ON_EARTH.gravity.at(block.position_w, time)
    axes = frame[:, :3]
    for i, t in enumerate(time):
        c, s = math.cos(EARTH_RATE * t), math.sin(EARTH_RATE * t)
        spin = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        first = EARTH_RATE * np.array([[-s, -c, 0.0], [c, -s, 0.0], [0.0, 0.0, 0.0]])
        second = -(EARTH_RATE**2) * np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 0.0]])
        place = axes @ block.position_w[i] + frame[:, 3]
        compute_velocity, bend = axes @ block.velocity_w[i], axes @ block.acceleration_w[i]
        among_stars = second @ place + 2.0 * first @ compute_velocity + spin @ bend
        attraction = spin @ (axes @ gravity[i] - EARTH_RATE**2 * place * [1.0, 1.0, 0.0])
        force = axes.T @ (spin.T @ (among_stars - attraction))
        assert np.allclose(found["linear_acceleration"][i], force, rtol=0.0, atol=1e-13)


@pytest.mark.requirement("IMU-4")
def test_earth_rotation_needs_coordinates() -> None:
    with pytest.raises(SensorError, match="earth_rotation: True; the world has no place on") as caught:
        Imu(earth_rotation=True).ideal(Stationary(Pose()), Environment(), Ticks(np.arange(3), 100.0))
    assert "Origin" in caught.value.remedy


@pytest.mark.requirement("IMU-4", "NOI-6")
def test_readings_without_earth_rotation_are_rotation_invariant() -> None:
    """With earth rotation, they are invariant to rotations about the vertical, which the laws test."""
    assert Imu.example_spec().rotation_invariance == "vertical"
    for averaged in (False, True):
        sheet = replace(Imu.example_spec(), earth_rotation=False, averaged=averaged)
        assert sheet.rotation_invariance == "all"
        check_equivariance(sheet)
    check_equivariance(replace(Imu.example_spec(), averaged=False))


@pytest.mark.requirement("IMU-4")
def test_uniform_gravity_and_field_sum_agree() -> None:
    from navsense.environment.base import FieldSum

    ticks = Ticks(np.arange(50), RATE)
    halves = FieldSum((UniformField((0.0, 1.0, -5.0)), UniformField((0.0, -1.0, -4.8))))
    one = Imu(averaged=True).ideal(make_violent_motion(), Environment(), ticks)["linear_acceleration"]
    two = Imu(averaged=True).ideal(make_violent_motion(), Environment(gravity=halves), ticks)["linear_acceleration"]
    assert np.allclose(one, two, rtol=0.0, atol=1e-12)
