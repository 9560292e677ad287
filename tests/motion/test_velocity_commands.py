"""Velocity commands follow the exponential map of SE(3), and with limits the differential equation of their ramps."""

from __future__ import annotations

import math
import re
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense.core.errors import MotionError
from navsense.core.pose import Pose, from_rpy
from navsense.motion import CommandFollower, CommandLimits, Drive, VelocityCommands, velocity_commands
from navsense.motion.base import MotionBlock
from navsense.motion.velocity_commands import DriveKind
from navsense.simulation.session import prepare
from navsense.world import Link, Model, MountedSensor, World

Array = NDArray[np.float64]

STOP = [0.0, 0.0, 0.0]
GRAVITY = 9.8
"""m/s^2, the default of SDF's world."""


def make_random_commands(seed: int, count: int = 12) -> tuple[Array, Array]:
    """Return times and twists."""
    rng = np.random.default_rng(seed)
    time = np.concatenate(([0.0], np.cumsum(rng.uniform(0.2, 2.0, count - 1))))
    return time, rng.normal(0.0, 1.5, (count, 6))


def make_matrix(twist: Array) -> Array:
    """Return the matrix (4, 4) of a twist."""
    x, y, z = twist[3:]
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
    matrix[:3, 3] = twist[:3]
    return matrix


def to_matrix(block: MotionBlock, row: int = 0) -> Array:
    """Return the pose of a row as a matrix (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_quat(block.rotation_wb[row], scalar_first=True).as_matrix()
    matrix[:3, 3] = block.position_w[row]
    return matrix


@pytest.mark.parametrize("seed", range(3))
def test_poses_equal_the_matrix_exponential(seed: int) -> None:
    time, twists = make_random_commands(seed)
    motion = velocity_commands(time, twists[:, :3], twists[:, 3:])
    instants = np.linspace(0.0, motion.end, 101)
    block = motion.at(instants)
    for k, instant in enumerate(instants):
        pose = np.eye(4)
        for row in range(time.size - 1):
            held = min(instant, time[row + 1]) - time[row]
            if held > 0.0:
                pose = pose @ expm(make_matrix(twists[row]) * held)
        np.testing.assert_allclose(to_matrix(block, k), pose, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("angle", [1e-9, 1e-4, 0.2999999, 0.3000001, 1.0, 30.0])
def test_a_turn_of_any_angle_is_an_arc(angle: float) -> None:
    """The chord of an arc of radius v / omega has the length 2 r sin(angle / 2) and half the angle as direction."""
    motion = velocity_commands([0.0, 2.0], [[0.7, 0.0, 0.0], STOP], [[0.0, 0.0, 0.5 * angle], STOP])
    x, y, z = motion.at(np.array([2.0])).position_w[0]
    radius = 1.4 / angle
    chord = 2.0 * radius * math.sin(0.5 * angle)
    expected = (chord * math.cos(0.5 * angle), chord * math.sin(0.5 * angle))
    np.testing.assert_allclose((x, y), expected, rtol=1e-12, atol=0.0)
    assert z == 0.0


def test_rates_within_a_row_are_exact() -> None:
    """v = R v_b, omega = omega_b, a = omega x v, alpha = 0; at a row the new values hold."""
    time, twists = make_random_commands(7)
    motion = velocity_commands(time, twists[:, :3], twists[:, 3:])
    for row in range(time.size):
        block = motion.at(time[row : row + 1])
        rotation = to_matrix(block)[:3, :3]
        velocity = rotation @ twists[row, :3]
        np.testing.assert_allclose(block.velocity_w[0], velocity, rtol=0.0, atol=1e-13)
        np.testing.assert_array_equal(block.angular_velocity_b[0], twists[row, 3:])
        expected = np.cross(rotation @ twists[row, 3:], velocity)
        np.testing.assert_allclose(block.acceleration_w[0], expected, rtol=0.0, atol=1e-12)
        np.testing.assert_array_equal(block.angular_acceleration_b[0], np.zeros(3))


LIMITS = [
    (CommandLimits(max_acceleration=2.0, max_angular_acceleration=3.0), None),
    (CommandLimits(max_acceleration=0.5, max_deceleration=2.0, max_angular_acceleration=1.0), Drive("d")),
    (CommandLimits(max_acceleration=1.0, track=0.4), Drive("d")),
    (CommandLimits(max_acceleration=1.0), Drive("d", "holonomic")),
    (CommandLimits(-0.5, 0.8, max_acceleration=1.5, max_deceleration=0.6, track=0.4), Drive("d", "holonomic")),
    (CommandLimits(max_acceleration=0.7, max_angular_acceleration=1.0, min_turning_radius=1.5), Drive("d")),
]


@pytest.mark.parametrize(("limits", "drive"), LIMITS)
def test_ramps_satisfy_the_differential_equation(limits: CommandLimits, drive: Drive | None) -> None:
    """SciPy integrates p' = R v, R' = R [omega]x from the body velocities, which jump at rows only."""
    time, twists = make_random_commands(1)
    motion = VelocityCommands(time, twists, None, limits, drive)

    def find_slope(instant: float, state: Array) -> Array:
        block = motion.at(np.array([min(instant, motion.end)]))
        body = to_matrix(block)[:3, :3].T @ block.velocity_w[0]
        return (state.reshape(4, 4) @ make_matrix(np.concatenate((body, block.angular_velocity_b[0])))).ravel()

    state = np.eye(4).ravel()
    for start, end in pairwise(time):
        inside = end - 1e-9 * (end - start)  # the velocity at the end is that of the next row
        state = solve_ivp(find_slope, (start, inside), state, rtol=1e-10, atol=1e-12).y[:, -1]
        if end > 4.0:
            break
    np.testing.assert_allclose(to_matrix(motion.at(np.array([inside]))), state.reshape(4, 4), rtol=0.0, atol=1e-7)


def compute_body_rates(block: MotionBlock) -> Array:
    """Return the rates of change (n, 6) of the velocity and the angular velocity in body axes."""
    rotation = Rotation.from_quat(block.rotation_wb, scalar_first=True).inv()
    velocity, acceleration = (rotation.apply(array.copy()) for array in (block.velocity_w, block.acceleration_w))
    linear = acceleration - np.cross(block.angular_velocity_b, velocity)
    return np.column_stack((linear, block.angular_acceleration_b))


@pytest.mark.parametrize(("limits", "drive"), LIMITS)
def test_derivatives_of_ramps_are_consistent(limits: CommandLimits, drive: Drive | None) -> None:
    """Central differences of position, velocity and angular velocity, where the rates of the ramps do not change."""
    time, twists = make_random_commands(2)
    motion = VelocityCommands(time, twists, None, limits, drive)
    h = 1e-4
    instants = np.linspace(h, motion.end - h, 2001)
    rates = [compute_body_rates(motion.at(np.clip(instants + shift, 0.0, motion.end))) for shift in (-h, 0.0, h)]
    is_smooth = (np.abs(rates[0] - rates[1]) + np.abs(rates[2] - rates[1])).max(axis=1) < 1e-9
    instants = instants[is_smooth]
    before, block, after = motion.at(instants - h), motion.at(instants), motion.at(instants + h)
    assert instants.size > 500
    speed = np.abs(block.acceleration_w).max() + 1.0
    for low, high, derivative in (
        (before.position_w, after.position_w, block.velocity_w),
        (before.velocity_w, after.velocity_w, block.acceleration_w),
        (before.angular_velocity_b, after.angular_velocity_b, block.angular_acceleration_b),
    ):
        np.testing.assert_allclose((high - low) / (2.0 * h), derivative, rtol=0.0, atol=1e-6 * speed)


def test_a_limited_drive_starts_from_rest_and_reaches_its_commands() -> None:
    """From rest to 0.6 m/s at 0.5 m/s^2: 1.2 s, 0.36 m; then 0.6 m/s; down at 1 m/s^2."""
    limits = CommandLimits(max_acceleration=0.5, max_deceleration=1.0)
    motion = VelocityCommands(
        np.array([0.0, 5.0, 8.0]), np.array([[0.6, *[0.0] * 5], *[[0.0] * 6] * 2]), None, limits, Drive("d")
    )
    block = motion.at(np.array([0.0, 0.6, 1.2, 5.0, 5.3, 5.6, 8.0]))
    ramp_up, ramp_down = 0.36, 0.18
    even = 0.6 * 3.8
    expected = [0.0, 0.09, ramp_up, ramp_up + even, ramp_up + even + 0.135, *[ramp_up + even + ramp_down] * 2]
    np.testing.assert_allclose(block.position_w[:, 0], expected, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(block.velocity_w[:, 0], [0.0, 0.3, 0.6, 0.6, 0.3, 0.0, 0.0], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(block.acceleration_w[:, 0], [0.5, 0.5, 0.0, -1.0, -1.0, 0.0, 0.0], rtol=0.0, atol=1e-12)
    assert motion.largest_jumps == motion.start_speeds == (0.0, 0.0)


def test_wheels_with_limited_acceleration_turn_and_drive() -> None:
    """Rims of both wheels go up at 1 m/s^2: to v + w b / 2 = 0.6 m/s after 0.6 s, and v - w b / 2 = 0.2 after 0.2 s."""
    limits = CommandLimits(max_acceleration=1.0, track=0.4)
    motion = VelocityCommands(np.array([0.0, 2.0]), np.array([[0.4, 0, 0, 0, 0, 1.0]] * 2), None, limits, Drive("d"))
    block = motion.at(np.array([0.1, 0.2, 0.4, 0.6, 1.0]))
    left = np.array([0.1, 0.2, 0.2, 0.2, 0.2])
    right = np.array([0.1, 0.2, 0.4, 0.6, 0.6])
    np.testing.assert_allclose(np.linalg.norm(block.velocity_w, axis=1), (left + right) / 2, atol=1e-12, rtol=0.0)
    np.testing.assert_allclose(block.angular_velocity_b[:, 2], (right - left) / 0.4, atol=1e-12, rtol=0.0)


def test_velocities_are_clipped() -> None:
    limits = CommandLimits(min_velocity=-0.2, max_velocity=0.5, min_angular_velocity=-1.0, max_angular_velocity=2.0)
    commands = np.array([[1.0, 0, 0, 0, 0, -3.0], [-1.0, 0, 0, 0, 0, 3.0]])
    np.testing.assert_array_equal(limits.clip(commands)[:, [0, 5]], [[0.5, -1.0], [-0.2, 2.0]])


@pytest.mark.parametrize("drive", [None, Drive("d", "free"), Drive("d"), Drive("d", "holonomic")])
def test_deceleration_and_track_have_an_effect_with_every_drive(drive: Drive | None) -> None:
    """Half a second after a stop from 1 m/s and 1 rad/s, of which one is commanded."""
    time, stop_time = np.array([0.0, 10.0, 20.0]), np.array([10.5])
    for column, limits, speed in (
        (0, CommandLimits(max_acceleration=1.0), 0.5),
        (0, CommandLimits(max_acceleration=1.0, max_deceleration=0.25), 0.875),
        (5, CommandLimits(max_angular_acceleration=1.0), 0.5),
        (5, CommandLimits(max_angular_acceleration=1.0, max_angular_deceleration=0.25), 0.875),
        (5, CommandLimits(max_acceleration=0.05, track=0.4), 0.875),  # 2 * 0.05 m/s^2 / 0.4 m is 0.25 rad/s^2
    ):
        commands = np.zeros((3, 6))
        commands[0, column] = 1.0
        block = VelocityCommands(time, commands, None, limits, drive).at(stop_time)
        found = np.linalg.norm(block.velocity_w[0] if column == 0 else block.angular_velocity_b[0])
        np.testing.assert_allclose(found, speed, rtol=0.0, atol=1e-13)


def test_without_a_planar_drive_the_vector_of_a_velocity_has_one_rate() -> None:
    """A stop from (0.6, 0.8) m/s is a ramp at 1 m/s^2 along the velocity: vy has no rate down."""
    limits = CommandLimits(max_acceleration=1.0, max_deceleration=0.25)
    commands = np.zeros((3, 6))
    commands[0, :2] = 0.6, 0.8
    block = VelocityCommands(np.array([0.0, 5.0, 9.0]), commands, None, limits).at(np.array([5.5]))
    np.testing.assert_allclose(block.velocity_w[0], [0.3, 0.4, 0.0], rtol=0.0, atol=1e-14)


def test_a_holonomic_drive_limits_each_axis_as_gazebo() -> None:
    """As in gz-sim's MecanumDrive in steps of 1 ms: a `SpeedLimiter` of gz-math for each of vx, vy and wz."""
    limits = CommandLimits(
        -0.5, 1.0, -0.8, 0.9, max_acceleration=0.7, max_deceleration=0.3,
        max_angular_acceleration=1.1, max_angular_deceleration=0.6,
    )  # fmt: skip
    time, twists = make_random_commands(8, 30)
    motion = VelocityCommands(time, twists, None, limits, Drive("d", "holonomic"))
    step = 1e-3
    instants = np.arange(0.0, motion.end, step)
    rows = np.searchsorted(time, instants + 0.5 * step, side="right") - 1
    block = motion.at(instants)
    rotation = Rotation.from_quat(block.rotation_wb, scalar_first=True)
    body = np.column_stack((rotation.inv().apply(block.velocity_w.copy())[:, :2], block.angular_velocity_b[:, 2]))
    low, high = np.array([-0.5, -0.5, -0.8]), np.array([1.0, 1.0, 0.9])
    down, up = np.array([-0.3, -0.3, -0.6]), np.array([0.7, 0.7, 1.1])
    velocity, expected = np.zeros(3), np.empty((instants.size, 3))
    for k, row in enumerate(rows):
        expected[k] = velocity
        target = np.clip(twists[row, [0, 1, 5]], low, high)
        velocity = velocity + np.clip(target - velocity, down * step, up * step)
    # A row that starts within a step delays its ramps by less than a step: at most the sum of both rates.
    np.testing.assert_allclose(body, expected, rtol=0.0, atol=30 * 1.7 * step)
    assert (np.abs(body - expected).mean(axis=0) < 2.0 * step).all()
    # The rotation to body axes has rounding errors.
    assert (body.max(axis=0) <= high + 1e-12).all()
    assert (body.min(axis=0) >= low - 1e-12).all()


@pytest.mark.parametrize("command", [1.0, 1e7, 1e149])
def test_a_ramp_keeps_its_velocity_at_a_row_for_each_size_of_the_command(command: float) -> None:
    """1 s up at 0.5 m/s^2 towards the command, and 1 s down."""
    limits = CommandLimits(max_acceleration=0.5)
    commands = np.zeros((3, 6))
    commands[:, 0] = command, -command, 0.0
    motion = VelocityCommands(np.array([0.0, 1.0, 2.0]), commands, None, limits, Drive("d"))
    block = motion.at(np.array([0.5, 1.0, 1.5, 2.0]))
    np.testing.assert_allclose(block.velocity_w[:, 0], [0.25, 0.5, 0.25, 0.0], rtol=0.0, atol=1e-14)
    assert motion.largest_jumps == (0.0, 0.0)


STEERING = [
    CommandLimits(min_turning_radius=2.0),
    CommandLimits(max_acceleration=0.5, min_turning_radius=2.0),
    CommandLimits(max_angular_acceleration=0.5, min_turning_radius=2.0),
    CommandLimits(max_acceleration=0.5, max_deceleration=3.0, max_angular_acceleration=0.8, min_turning_radius=0.7),
    CommandLimits(max_acceleration=1.0, track=0.4, min_turning_radius=2.0),
]


@pytest.mark.parametrize("limits", STEERING)
def test_the_turning_radius_holds_at_each_instant(limits: CommandLimits) -> None:
    """|wz| <= |vx| / r at the rows, just before them, and between them. Commands turn on the spot and reverse."""
    time, twists = make_random_commands(5, 40)
    twists[::4, 0] = 0.0
    motion = VelocityCommands(time, twists, None, limits, Drive("d"))
    shares = (*np.linspace(0.0, 1.0, 200, endpoint=False), 1.0 - 1e-9)
    inside = np.concatenate([time[:-1] + share * np.diff(time) for share in shares])
    block = motion.at(np.concatenate((inside, [motion.end])))
    speed = np.linalg.norm(block.velocity_w, axis=1)
    turn = np.abs(block.angular_velocity_b[:, 2])
    # Times up to 64 s are multiples of 7e-15 s, and radius * wz - vx changes by at most 10.5 m/s^2 (the track).
    assert motion.end < 64.0
    assert (turn * limits.min_turning_radius - speed).max() < 10.5 * 7.2e-15
    assert (turn > 0.05).mean() > 0.2


def test_a_vehicle_that_steers_starts_on_its_smallest_circle() -> None:
    """From rest to 1 m/s at 0.5 m/s^2, with 0.4 rad/s and r = 2 m: wz = v / r up to 0.8 m/s, then 0.4 rad/s."""
    limits = CommandLimits(max_acceleration=0.5, min_turning_radius=2.0)
    commands = np.array([[1.0, 0, 0, 0, 0, 0.4]] * 2)
    block = VelocityCommands(np.array([0.0, 4.0]), commands, None, limits, Drive("d")).at(
        np.array([0.0, 0.8, 1.8, 3.0])
    )
    speed, turn = [0.0, 0.4, 0.9, 1.0], [0.0, 0.2, 0.4, 0.4]
    heading = [0.0, 0.08, 0.32 + 0.4 * 0.2, 0.32 + 0.4 * 1.4]
    np.testing.assert_allclose(np.linalg.norm(block.velocity_w, axis=1), speed, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(block.angular_velocity_b[:, 2], turn, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(block.angular_acceleration_b[:, 2], [0.25, 0.25, 0.0, 0.0], rtol=0.0, atol=1e-14)
    yaw = 2.0 * np.arctan2(block.rotation_wb[:, 3], block.rotation_wb[:, 0])
    np.testing.assert_allclose(yaw, heading, rtol=0.0, atol=1e-14)
    # On the circle the position follows the heading: x = r sin(yaw), y = r (1 - cos(yaw)).
    np.testing.assert_allclose(
        block.position_w[1, :2], [2 * math.sin(0.08), 2 - 2 * math.cos(0.08)], rtol=0.0, atol=1e-14
    )


def test_the_turn_rate_follows_its_own_ramp_within_the_turning_radius() -> None:
    """As in gz-sim's AckermannSteering in steps of 0.1 ms: ramps of vx and wz, then |wz| <= |vx| / r in each step."""
    limits = CommandLimits(
        max_acceleration=0.7, max_deceleration=1.5, max_angular_acceleration=1.1, min_turning_radius=1.3
    )
    time, twists = make_random_commands(6, 8)
    motion = VelocityCommands(time, twists, None, limits, Drive("d"))
    step, vx, wz = 1e-4, 0.0, 0.0
    instants = np.arange(0.0, motion.end, step)
    rows = np.searchsorted(time, instants + 0.5 * step, side="right") - 1
    turn = np.empty(instants.size)
    for k, row in enumerate(rows):
        turn[k] = math.copysign(min(abs(wz), abs(vx) / 1.3), wz)
        vx += min(max(twists[row, 0] - vx, -1.5 * step), 0.7 * step)
        wz += min(max(twists[row, 5] - wz, -1.1 * step), 1.1 * step)
    found = motion.at(instants[::100]).angular_velocity_b[:, 2]
    # A step and a row that starts within it delay a ramp by up to 2 steps of 1.1 rad/s^2; 8 rows add up.
    np.testing.assert_allclose(found, turn[::100], rtol=0.0, atol=8 * 2 * 1.5 * step)


def test_order_and_blocks_change_no_bit() -> None:
    time, twists = make_random_commands(4)
    motion = VelocityCommands(time, twists, None, LIMITS[0][0])
    instants = np.random.default_rng(3).uniform(0.0, motion.end, 300)
    whole = motion.at(instants)
    for k in (0, 17, 299):
        for one, every in zip(motion.at(instants[k : k + 1]).arrays, whole.arrays, strict=True):
            np.testing.assert_array_equal(one[0], every[k])


@pytest.mark.parametrize(
    ("time", "velocity", "message"),
    [
        ([0.0], [STOP], "number of velocity commands: 1"),
        ([0.0, 0.0], [STOP] * 2, "time of row 1 (s): 0.0; must be after the row before, 0.0"),
        ([0.0, 1.0], [[math.nan, 0.0, 0.0], STOP], "vx of row 0: nan; must be finite"),
        ([0.0, 1.0], [STOP], "shapes of time, velocity and angular velocity"),
        ([0.0, math.inf], [STOP] * 2, "time of row 1: inf; must be finite"),
        ([0.0, 1.0], [[1e308, 0.0, 0.0], STOP], ""),
    ],
)
def test_invalid_commands_are_errors(time: list[float], velocity: list[list[float]], message: str) -> None:
    if not message:
        with pytest.raises(MotionError, match="must be finite"):
            velocity_commands([0.0, 1e10], velocity, [STOP] * 2)
        return
    with pytest.raises(MotionError) as error:
        velocity_commands(time, velocity, [STOP] * len(time))
    assert message in str(error.value)


@pytest.mark.parametrize("turn_rate", [1e6, 1e12, 1e150])
@pytest.mark.parametrize("kind", ["differential", "free"])
def test_a_ramp_of_too_many_steps_is_an_error_at_once(turn_rate: float, kind: DriveKind) -> None:
    """Ramps of 1e4 s and at least 1e10 steps each: the error gives the steps of the first one."""
    limits, drive = CommandLimits(max_angular_acceleration=turn_rate / 1e4), Drive("d", kind)
    commands = np.array([[0.0] * 5 + [turn_rate]])
    first = f"{2.0 * 1e4 * turn_rate:.3g}"  # steps of 0.5 rad at the turn rate of the end
    message = f"number of steps of the ramps: {re.escape(first)} or more; must be <= 5000000; raise"
    with pytest.raises(MotionError, match=message):
        VelocityCommands(np.array([0.0, 1e4, 2e4, 3e4]), np.outer([1, -1, 1, 1], commands[0]), None, limits, drive)


@pytest.mark.compiled
def test_a_step_of_a_ramp_takes_160_bytes() -> None:
    """The bytes of numbers at the peak; checks of a step take up to 20 more."""
    limits = CommandLimits(max_angular_acceleration=1.0)
    commands = np.array([[0.0] * 5 + [400.0]] * 2)
    time = np.array([0.0, 400.0])
    VelocityCommands(time, 0.01 * commands, None, limits, Drive("d"))  # loads the kernels
    tracemalloc.start()
    try:
        motion = VelocityCommands(time, commands, None, limits, Drive("d"))
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    steps = 400.0 * 400.0 / 0.5  # of 0.5 rad at the turn rate of the end
    assert motion.end == 400.0
    assert 159.0 * steps < held < 162.0 * steps
    assert peak < 180.0 * steps


@pytest.mark.parametrize("field", ["max_acceleration", "max_deceleration", "max_angular_acceleration"])
def test_a_limit_of_zero_is_an_error(field: str) -> None:
    with pytest.raises(MotionError, match=f"{field}: 0.0; must be above 0"):
        CommandLimits(**{field: 0.0})


def make_world(drive: Drive | None, pose: Pose = Pose(), *, averaged: bool = False) -> World:
    """Return the world of a robot whose canonical link is not at its origin, with an IMU."""
    links = (Link("robot::base", Pose((0.5, 0.1, 0.2))),)
    model = Model("robot", links, "robot::base", pose, drive=drive)
    imu = MountedSensor("robot::base::imu", ns.sensors.Imu(averaged=averaged), "robot", "robot::base", 10.0)
    return World("w", (model,), (imu,))


def test_a_differential_drive_turns_about_its_axle_on_flat_ground() -> None:
    """A turn on the spot by 90 degrees: the link goes round the axle, without the roll and pitch of the start."""
    pose = Pose((1.0, 2.0, 0.3), from_rpy(0.1, -0.2, 0.5))
    drive = Drive("d", pose=Pose((-0.5, 0.0, 0.0)))
    spin = [0.3, 0.2]
    commands = velocity_commands([0.0, 2.0], [STOP] * 2, [[*spin, math.pi / 4]] * 2)
    session = prepare(make_world(drive, pose), 2.0, seed=0, motions={"robot": commands})
    block = session.link_motions["robot::base"].at(np.array([0.0, 2.0]))
    axle = np.array((pose @ drive.pose).position)
    for row, yaw in enumerate((0.0, math.pi / 2)):
        start = to_matrix(block)[:3, :3]
        heading = Rotation.from_matrix(start).as_euler("ZYX")
        np.testing.assert_allclose(heading[1:], 0.0, atol=1e-15, rtol=0.0)
        turn = Rotation.from_euler("z", heading[0] + yaw)
        np.testing.assert_allclose(block.position_w[row], axle + turn.apply([1.0, 0.1, 0.2]), atol=1e-13, rtol=0.0)
    assert [note.reason for note in session.world.notes if note.kind == "warning"][:2] == [
        "ignores wx, wy of its velocity commands: d follows vx, wz",
        "starts upright, although its pose is tilted by 12.8 deg: d is planar; remove roll and pitch from <pose>",
    ]


@pytest.mark.parametrize("drive", [None, Drive("d", "free"), Drive("d")])
def test_a_model_that_keeps_its_attitude_has_no_warning_of_its_tilt(drive: Drive | None) -> None:
    rpy = (0.0, 0.0, 0.5) if drive is not None and drive.kind != "free" else (0.1, -0.2, 0.5)
    commands = velocity_commands([0.0, 2.0], [STOP] * 2, [STOP] * 2)
    world = prepare(
        make_world(drive, Pose((0.0, 0.0, 1.0), from_rpy(*rpy))), 2.0, seed=0, motions={"robot": commands}
    ).world
    assert not [note for note in world.notes if "upright" in note.reason]


def test_without_a_drive_the_canonical_link_follows_all_commands() -> None:
    pose = Pose((1.0, 2.0, 3.0), from_rpy(0.1, 0.2, 0.3))
    commands = velocity_commands([0.0, 2.0], [[0.0, 0.0, 0.5]] * 2, [STOP] * 2)
    motion = prepare(make_world(None, pose), 2.0, seed=0, motions={"robot": commands}).link_motions["robot::base"]
    start, up = pose @ Pose((0.5, 0.1, 0.2)), Rotation.from_quat(pose.rotation, scalar_first=True).apply([0, 0, 1])
    np.testing.assert_allclose(motion.at(np.array([2.0])).position_w[0], start.position + up, atol=1e-14, rtol=0.0)


def test_a_given_start_is_that_of_the_canonical_link() -> None:
    start = Pose((7.0, 8.0, 9.0), from_rpy(0.0, 0.0, 1.0))
    commands = velocity_commands([0.0, 2.0], [STOP] * 2, [STOP] * 2, start=start)
    for drive in (None, Drive("d", pose=Pose((-0.5, 0.0, 0.0)))):
        motion = prepare(make_world(drive), 2.0, seed=0, motions={"robot": commands}).link_motions["robot::base"]
        np.testing.assert_allclose(motion.at(np.array([1.0])).position_w[0], start.position, atol=1e-14, rtol=0.0)


def test_an_averaged_accelerometer_sees_a_jump_and_a_sampled_one_does_not() -> None:
    """0.4 m/s after 1.03 s: the mean over the sample interval of 0.1 s is 4 m/s^2."""
    commands = velocity_commands([0.0, 1.03, 2.0], [STOP, [0.4, 0.0, 0.0], STOP], [STOP] * 3)
    readings = {}
    for averaged in (False, True):
        run = ns.simulate(make_world(None, averaged=averaged), 1.5, motion=commands)
        readings[averaged] = run["imu"].ideal["linear_acceleration"][1:]
        warned = any("jumps by up to 0.4 m/s" in note.reason for note in run.session.world.notes)
        assert warned is not averaged
    expected = np.tile([0.0, 0.0, GRAVITY], (readings[False].shape[0], 1))
    np.testing.assert_allclose(readings[False], expected, atol=1e-12, rtol=0.0)
    jump = 10  # sample 11, at 1.1 s
    expected[jump, 0] = 4.0
    np.testing.assert_allclose(readings[True], expected, atol=1e-12, rtol=0.0)


def list_jumps(world: World, commands: VelocityCommands) -> list[str]:
    """Return the warnings about jumps, up to what the accelerometer does not see."""
    notes = prepare(world, 2.0, seed=0, motions={"robot": commands}).world.notes
    return [note.reason.partition(",")[0] for note in notes if note.kind == "warning"]


def test_jumps_of_the_turn_rate_and_at_the_start_give_a_warning() -> None:
    ahead, turn = [0.5, 0.0, 0.0], [0.0, 0.0, 1.25]
    spin = velocity_commands([0.0, 1.0, 2.0], [STOP] * 3, [STOP, turn, turn])
    start = velocity_commands([0.0, 2.0], [ahead] * 2, [turn] * 2)
    jump = "its velocity jumps by up to 1.25 rad/s"
    assert list_jumps(make_world(None), spin) == [jump]
    assert not list_jumps(make_world(None, averaged=True), spin)
    for averaged in (False, True):
        found = list_jumps(make_world(None, averaged=averaged), start)
        assert found == ["it starts with 0.5 m/s and 1.25 rad/s"]
    limits = CommandLimits(max_acceleration=1.0, max_angular_acceleration=1.0)
    for commands in (spin, start):
        assert not list_jumps(make_world(None), replace(commands, limits=limits))


def test_a_circle_has_the_centripetal_acceleration() -> None:
    """v = 0.5 m/s, omega = 0.25 rad/s: radius 2 m, the accelerometer 0.1 m ahead reads v omega to the left."""
    commands = velocity_commands([0.0, 8.0], [[0.5, 0.0, 0.0]] * 2, [[0.0, 0.0, 0.25]] * 2)
    world = make_world(Drive("d", pose=Pose((0.4, 0.1, 0.0))))
    reading = ns.simulate(world, 8.0, motion=commands)["imu"].ideal
    force = np.tile([-0.1 * 0.25**2, 0.5 * 0.25, GRAVITY], (80, 1))
    np.testing.assert_allclose(reading["linear_acceleration"], force, atol=1e-13, rtol=0.0)
    np.testing.assert_allclose(reading["angular_velocity"], np.tile([0.0, 0.0, 0.25], (80, 1)), atol=1e-13, rtol=0.0)


def test_a_recording_is_the_same_motion(tmp_path: object) -> None:
    commands = velocity_commands([0.0, 2.0, 4.0], [[0.5, 0.0, 0.0]] * 3, [[0.0, 0.0, 0.5], STOP, STOP])
    run = ns.simulate(make_world(Drive("d", "free", limits=CommandLimits(max_acceleration=1.0))), 4.0, motion=commands)
    path = f"{tmp_path}/a.mcap"
    run.save(path)
    stored = ns.open(path)
    np.testing.assert_array_equal(stored.truth["robot::base"].position, run.truth["robot::base"].position)
    assert stored.world.models[0].drive == run.session.world.models[0].drive


def test_a_model_keeps_the_commands_that_it_gets() -> None:
    """A copy of a model with another drive follows that drive."""
    commands = velocity_commands([0.0, 1.0], [[1.0, 2.0, 0.0]] * 2, [[0.0, 0.0, 0.0]] * 2)
    model = Model("m", (Link("m::base"),), "m::base", pose=Pose((5.0, 0.0, 0.0)), motion=commands)
    assert model.motion is commands
    planar = replace(model, drive=Drive("diff", "differential"))
    assert planar.motion is commands
    for robot, end in ((model, (6.0, 2.0, 0.0)), (planar, (6.0, 0.0, 0.0))):
        assert robot.root_motion is robot.root_motion is not None
        np.testing.assert_array_equal(robot.root_motion.at(np.ones(1)).position_w, [end])


@pytest.mark.requirement("LIV-7")
@pytest.mark.parametrize(("limits", "drive"), [*LIMITS, *((one, Drive("d")) for one in STEERING), (None, None)])
def test_commands_that_arrive_step_by_step_give_the_same_motion(
    limits: CommandLimits | None, drive: Drive | None
) -> None:
    """Steps of 20 ms cut the ramps. Each command begins at a step; the start is not upright."""
    steps = np.cumsum([0, *np.random.default_rng(6).integers(5, 90, 11)])
    twists = make_random_commands(6)[1]
    if drive is None and limits is not None:
        drive = Drive("d", "free")
    drive = replace(drive, limits=limits) if drive and limits else drive
    start = Pose((1.0, 2.0, 3.0), from_rpy(0.1, 0.2, 0.9))
    motion = VelocityCommands(steps * 0.02, twists).place(drive, start)
    follower = CommandFollower(drive, start)
    received = []
    for step in range(int(steps[-1])):
        follower.advance(0.02, twists[np.flatnonzero(steps <= step)[-1]].tolist())
        received.append(np.concatenate((follower.pose, follower.twist)))
    inside = np.setdiff1d(np.arange(1, steps[-1] + 1), steps)
    block = motion.at(inside * 0.02)
    rows = np.array(received)[inside - 1]
    rotation = Rotation.from_quat(block.rotation_wb, scalar_first=True)
    np.testing.assert_allclose(rows[:, :3], block.position_w, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(rows[:, 3:7], block.rotation_wb, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(rotation.apply(rows[:, 7:10]), block.velocity_w, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(rows[:, 10:], block.angular_velocity_b, rtol=0.0, atol=1e-11)
