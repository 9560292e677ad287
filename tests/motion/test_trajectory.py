"""Polynomial motion equals SciPy's splines and rotations and finite differences, and does not depend on blocks."""

from __future__ import annotations

import math
from dataclasses import astuple
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from navsense.core.errors import MotionError
from navsense.core.intervals import find_interval
from navsense.core.pose import Pose, from_rpy
from navsense.motion import MotionBlock, Trajectory, waypoints
from navsense.motion._spline import FIRST_DERIVATIVES, POLYNOMIALS, SECOND_DERIVATIVES, evaluate

Array = NDArray[np.float64]

FIELDS = ("position_w", "rotation_wb", "velocity_w", "angular_velocity_b", "acceleration_w", "angular_acceleration_b")


def make_random_waypoints(seed: int, count: int = 8) -> tuple[Array, list[Pose]]:
    """Return times and poses with rotations up to about 100 degrees between them."""
    rng = np.random.default_rng(seed)
    time = np.concatenate(([0.0], np.cumsum(rng.uniform(0.7, 1.5, count - 1))))
    poses, here = [], Pose()
    for _ in range(count):
        turn = Rotation.from_rotvec(rng.uniform(-1.0, 1.0, 3)).as_quat(scalar_first=True)
        here = Pose(tuple(rng.normal(0.0, 3.0, 3).tolist()), (here @ Pose(rotation=tuple(turn.tolist()))).rotation)
        poses.append(here)
    return time, poses


def make_polynomial(seed: int = 5, segments: int = 4, degree: int = 4) -> Trajectory:
    """Return a trajectory of unrelated polynomials. Its quaternions have norms near 3."""
    rng = np.random.default_rng(seed)
    coefficients = rng.normal(0.0, 0.3, (segments, degree + 1, 7))
    coefficients[:, -1, 3:] += 1.5
    return Trajectory(np.concatenate(([0.0], np.cumsum(rng.uniform(0.5, 1.0, segments)))), coefficients)


def assert_equal(found: MotionBlock, expected: MotionBlock) -> None:
    """Assert that two blocks agree to the last bit."""
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def join_blocks(parts: list[MotionBlock]) -> MotionBlock:
    """Return the blocks concatenated."""
    return MotionBlock(*(np.concatenate(columns) for columns in zip(*map(astuple, parts), strict=True)))


@pytest.mark.requirement("TRU-1")
@pytest.mark.parametrize(("loop", "ends"), [(False, "clamped"), (True, "periodic")])
def test_position_and_derivatives_equal_scipys_spline(loop: bool, ends: str) -> None:
    time, poses = make_random_waypoints(1)
    if loop:
        poses[-1] = poses[0]
    position = np.array([pose.position for pose in poses])
    oracle = CubicSpline(time, position, bc_type=ends)
    # A loop can rotate by half a turn between its ends, which is too far: set a level attitude.
    trajectory = waypoints(time, [Pose(pose.position) for pose in poses] if loop else poses, loop=loop)
    instants = np.linspace(0.0, time[-1], 501)
    block = trajectory.at(instants)
    np.testing.assert_allclose(block.position_w, oracle(instants), atol=1e-12, rtol=0.0)
    np.testing.assert_allclose(block.velocity_w, oracle(instants, 1), atol=1e-12, rtol=0.0)
    np.testing.assert_allclose(block.acceleration_w, oracle(instants, 2), atol=1e-11, rtol=0.0)


@pytest.mark.requirement("TRU-1")
def test_derivatives_of_any_degree_equal_numpy() -> None:
    trajectory = make_polynomial(degree=6)
    for segment in range(4):
        start, stop = trajectory.knots[segment : segment + 2]
        instants = np.linspace(start, stop, 20, endpoint=False)
        block = trajectory.at(instants)
        for axis in range(3):
            curve = np.polynomial.Polynomial(trajectory.coefficients[segment, ::-1, axis])
            x = instants - start
            np.testing.assert_allclose(block.position_w[:, axis], curve(x), atol=1e-13, rtol=0.0)
            np.testing.assert_allclose(block.velocity_w[:, axis], curve.deriv(1)(x), atol=1e-12, rtol=0.0)
            np.testing.assert_allclose(block.acceleration_w[:, axis], curve.deriv(2)(x), atol=1e-11, rtol=0.0)


@pytest.mark.requirement("TRU-1")
@pytest.mark.parametrize("trajectory", [waypoints(*make_random_waypoints(2)), make_polynomial()])
def test_angular_velocity_equals_differences_of_scipy_rotations(trajectory: Trajectory) -> None:
    """Rotation vectors of R(t - h)^-1 R(t + h) over h and 2 h are combined to fourth order."""
    h = 1e-3
    edges = trajectory.knots
    inside = np.concatenate([np.linspace(a + 3 * h, b - 3 * h, 40) for a, b in pairwise(edges)])

    def turn(step: float) -> Array:
        before = Rotation.from_quat(trajectory.at(inside - step).rotation_wb, scalar_first=True)
        after = Rotation.from_quat(trajectory.at(inside + step).rotation_wb, scalar_first=True)
        # The vector is in the frame at the middle, which is the body frame at t up to h^3.
        return (before.inv() * after).as_rotvec() / (2.0 * step)

    block = trajectory.at(inside)
    np.testing.assert_allclose((4.0 * turn(h) - turn(2 * h)) / 3.0, block.angular_velocity_b, atol=1e-8, rtol=0.0)
    near = trajectory.at(inside + h).angular_velocity_b - trajectory.at(inside - h).angular_velocity_b
    far = trajectory.at(inside + 2 * h).angular_velocity_b - trajectory.at(inside - 2 * h).angular_velocity_b
    np.testing.assert_allclose((8.0 * near - far) / (12.0 * h), block.angular_acceleration_b, atol=1e-7, rtol=0.0)


def test_quaternion_of_varying_length_rotates_as_its_direction() -> None:
    """s = (1 + t)(1, t, 0, 0) rotates about x by 2 atan t, for any length."""
    coefficients = np.zeros((1, 3, 7))
    coefficients[0, :, 3] = 0.0, 1.0, 1.0
    coefficients[0, :, 4] = 1.0, 1.0, 0.0
    time = np.linspace(0.0, 1.0, 11)
    block = Trajectory(np.array([0.0, 1.0]), coefficients).at(time)
    np.testing.assert_allclose(block.angular_velocity_b[:, 0], 2.0 / (1.0 + time**2), rtol=1e-14, atol=0.0)
    np.testing.assert_allclose(
        block.angular_acceleration_b[:, 0], -4.0 * time / (1.0 + time**2) ** 2, atol=1e-14, rtol=0.0
    )
    half = np.arctan(time)
    zero = np.zeros_like(time)
    np.testing.assert_allclose(
        block.rotation_wb, np.column_stack((np.cos(half), np.sin(half), zero, zero)), atol=1e-15, rtol=0.0
    )


@pytest.mark.requirement("TRU-1")
@pytest.mark.parametrize("seed", range(5))
def test_motion_passes_its_waypoints_smoothly(seed: int) -> None:
    time, poses = make_random_waypoints(seed)
    trajectory = waypoints(time, poses)
    at = trajectory.at(time)
    np.testing.assert_allclose(at.position_w, [pose.position for pose in poses], atol=1e-12, rtol=0.0)
    for row, pose in zip(at.rotation_wb, poses, strict=True):
        assert abs(float(np.dot(row, pose.rotation))) == pytest.approx(1.0, abs=1e-14)
    left, right = trajectory.at(np.nextafter(time[1:-1], 0.0)), trajectory.at(time[1:-1])
    for name in FIELDS:
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), atol=1e-11, err_msg=name, rtol=0.0)
    for row in (0, -1):
        np.testing.assert_allclose(at.velocity_w[row], 0.0, atol=1e-12, rtol=0.0)
        np.testing.assert_allclose(at.angular_velocity_b[row], 0.0, atol=1e-12, rtol=0.0)


def test_quaternion_signs_do_not_matter() -> None:
    time, poses = make_random_waypoints(3)
    turned = [
        Pose(pose.position, tuple(-q for q in pose.rotation)) if row % 3 == 1 else pose
        for row, pose in enumerate(poses)
    ]
    instants = np.linspace(0.0, time[-1], 50)
    assert_equal(waypoints(time, turned).at(instants), waypoints(time, poses).at(instants))


@pytest.mark.parametrize("rounds", [1, 2])
def test_loop_repeats_without_a_discontinuity(rounds: int) -> None:
    """One turn about the vertical per loop flips the sign of the quaternion; two turns restore it."""
    corners = 6 * rounds
    poses = []
    for corner in range(corners + 1):
        angle = 2.0 * math.pi * rounds * corner / corners
        poses.append(Pose((3.0 * math.cos(angle), math.sin(angle), 0.1), from_rpy(0.0, 0.2 * math.cos(angle), angle)))
    poses[-1] = poses[0]
    period = 0.7 * corners
    trajectory = waypoints(np.arange(corners + 1) * 0.7, poses, loop=True)
    assert trajectory.end == math.inf
    time = np.linspace(0.0, 2.0 * period, 500, endpoint=False)
    here, later = trajectory.at(time), trajectory.at(time + 2.0 * period)
    for name in FIELDS:
        np.testing.assert_allclose(getattr(later, name), getattr(here, name), atol=1e-12, err_msg=name, rtol=0.0)
    once = trajectory.at(time + period)
    for name in set(FIELDS) - {"rotation_wb"}:
        np.testing.assert_allclose(getattr(once, name), getattr(here, name), atol=1e-12, err_msg=name, rtol=0.0)
    turn = np.sign((once.rotation_wb * here.rotation_wb).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(once.rotation_wb * turn, here.rotation_wb, atol=1e-13, rtol=0.0)
    seams = np.array([1.0, 2.0, 3.0, 4.0]) * period
    left, right = trajectory.at(seams - 1e-12), trajectory.at(seams + 1e-12)
    for name in FIELDS:
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), atol=1e-9, err_msg=name, rtol=0.0)


def test_loop_time_is_exact_modulo_the_period() -> None:
    time = np.array([0.0, 1.0, 2.0, 4.0])
    poses = [Pose(), Pose((1.0, 2.0, 0.0)), Pose((0.0, 1.0, 5.0)), Pose()]
    trajectory = waypoints(time, poses, loop=True)
    instants = np.array([0.0, 0.5, 1.0, 3.75])
    for rounds in (1.0, 2.0, 2.0**40):
        assert_equal(trajectory.at(instants + 4.0 * rounds), trajectory.at(instants))


def test_loop_of_two_equal_waypoints_is_stationary() -> None:
    pose = Pose((1.0, 2.0, 3.0), from_rpy(0.1, 0.2, 0.3))
    block = waypoints([0.0, 1.0], [pose, pose], loop=True).at(np.array([0.3, 8.9]))
    np.testing.assert_allclose(block.position_w, [pose.position] * 2, rtol=1e-15, atol=0.0)
    np.testing.assert_array_equal(block.acceleration_w, np.zeros((2, 3)))


def test_arrays_are_read_only() -> None:
    coefficients = np.zeros((1, 2, 7))
    coefficients[0, 1, 3] = 1.0
    trajectory = Trajectory(np.array([0.0, 1.0]), coefficients)
    coefficients[:] = 9.0
    assert trajectory.at(np.array([0.5])).position_w[0, 0] == 0.0
    for array in (trajectory.knots, trajectory.coefficients):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@given(
    cuts=st.lists(st.integers(0, 80), max_size=6),
    order=st.permutations(range(80)),
    seed=st.integers(0, 50),
    loop=st.booleans(),
)
def test_values_do_not_depend_on_block_size_or_order(cuts: list[int], order: list[int], seed: int, loop: bool) -> None:
    given_time, poses = make_random_waypoints(seed)
    if loop:
        poses = [*poses[:4], *poses[2::-1]]
        given_time = given_time[:7]
    trajectory = waypoints(given_time, poses, loop=loop)
    time = np.random.default_rng(seed).uniform(0.0, 50.0 if loop else trajectory.end, 80)
    time[::16] = given_time[:5]
    complete = trajectory.at(time)
    assert_equal(join_blocks([trajectory.at(part) for part in np.split(time, sorted(cuts))]), complete)
    shuffled = trajectory.at(time[order])
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(complete, name)[order])
    assert_equal(join_blocks([trajectory.at(time[row : row + 1]) for row in range(0, 80, 9)]), trajectory.at(time[::9]))


@given(
    seed=st.integers(0, 10**6),
    period=st.sampled_from([math.inf, 0.7]),
    form=st.sampled_from([POLYNOMIALS, FIRST_DERIVATIVES, SECOND_DERIVATIVES]),
)
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Any, seed: int, period: float, form: int) -> None:
    rng = np.random.default_rng(seed)
    knots = np.concatenate(([0.0], np.cumsum(rng.uniform(0.1, 1.0, 6))))
    time = rng.uniform(0.0, knots[-1], 40)
    rows = rng.normal(size=(7, 4 if form == POLYNOMIALS else 2, 7))
    compiled, plain = ([np.empty((40, width)) for width in (3, 4, 3, 3, 3, 3)] for _ in range(2))
    evaluate(knots, rows, form, period, time, *compiled)
    interpret(evaluate)(knots, rows, form, period, time, *plain)
    for found, expected in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(found, expected)


@given(
    gaps=st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=12), share=st.floats(0.0, 1.0), guess=st.integers(0, 11)
)
def test_interval_does_not_depend_on_the_guess(gaps: list[float], share: float, guess: int) -> None:
    knots = np.concatenate(([0.0], np.cumsum(gaps)))
    for instant in (share * float(knots[-1]), *knots.tolist()):
        expected = min(int(np.searchsorted(knots, instant, side="right")) - 1, len(gaps) - 1)
        assert find_interval(knots, instant, min(guess, len(gaps) - 1)) == expected


@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e3))
def test_slower_loop_scales_the_rates(seed: int, scale: float) -> None:
    time, poses = make_random_waypoints(seed, 4)
    try:
        quick, slow = waypoints(time, poses), waypoints(time * scale, poses)
    except MotionError:
        assume(False)
    instants = np.linspace(0.0, time[-1], 21)
    here, there = quick.at(instants), slow.at(np.minimum(instants * scale, slow.end))
    np.testing.assert_allclose(there.position_w, here.position_w, atol=1e-10, rtol=0.0)
    np.testing.assert_allclose(there.angular_velocity_b * scale, here.angular_velocity_b, atol=1e-9, rtol=0.0)
    np.testing.assert_allclose(
        there.angular_acceleration_b * scale**2, here.angular_acceleration_b, atol=1e-8, rtol=0.0
    )


@pytest.mark.parametrize("angle", [119.9, 120.0])
def test_turn_of_120_degrees_takes_the_short_way(angle: float) -> None:
    turn = math.radians(angle)
    block = waypoints([0.0, 2.0], [Pose(), Pose(rotation=from_rpy(0.0, 0.0, -turn))]).at(np.array([1.0, 2.0]))
    found = Rotation.from_quat(block.rotation_wb, scalar_first=True).as_rotvec()
    np.testing.assert_allclose(found[:, 2], [-turn / 2.0, -turn], atol=1e-12, rtol=0.0)


@pytest.mark.parametrize("angle", [120.001, 180.0, 239.999])
def test_turn_beyond_120_degrees_is_an_error(angle: float) -> None:
    with pytest.raises(MotionError, match=rf"degrees\): {min(angle, 360.0 - angle)!r}\d*; must be <= 120"):
        waypoints([0.0, 2.0], [Pose(), Pose(rotation=from_rpy(math.radians(angle), 0.0, 0.0))])


POSES = [Pose(), Pose((1.0, 0.0, 0.0))]


@pytest.mark.parametrize(
    ("time", "poses", "loop", "message"),
    [
        ([0.0], [Pose()], False, r"number of waypoints: 1; must be >= 2; use Stationary"),
        ([], [], False, r"number of waypoints: 0"),
        ([0.0, 1.0, 2.0], POSES, False, r"shape of the times and number of poses: \(\(3,\), 2\)"),
        ([[0.0, 1.0]], POSES, False, r"must be one time per pose"),
        ([1.0, 2.0], POSES, False, r"time of waypoint 0 \(s\): 1.0; must be 0; subtract"),
        ([0.0, 0.0], POSES, False, r"time of waypoint 1 \(s\): 0.0; must be after 0.0 s, the time before; sort"),
        ([0.0, -1.0], POSES, False, r"time of waypoint 1 \(s\): -1.0"),
        ([0.0, math.nan], POSES, False, r"time of waypoint 1 \(s\): nan; must be finite"),
        ([0.0, math.inf], POSES, False, r"time of waypoint 1 \(s\): inf; must be finite"),
        (
            [0.0, 1.0],
            [Pose(), Pose(rotation=from_rpy(0.0, 0.0, 2.5))],
            False,
            r"turn from waypoint 0 to 1 \(degrees\): 143.239449; must be <= 120; add a waypoint between them",
        ),
        ([0.0, 1.0], POSES, True, r"first and last pose of the loop: 1.0; must be <= 1e-09; end with the first pose"),
        ([0.0, 1e-200], POSES, False, r"coefficients of segment 0, from 0.0 s; must be finite; move the times"),
    ],
)
def test_invalid_waypoints_are_errors(time: Any, poses: list[Pose], loop: bool, message: str) -> None:
    with pytest.raises(MotionError, match=message):
        waypoints(time, poses, loop=loop)


def test_attitude_spline_through_zero_is_an_error() -> None:
    turned = Pose(rotation=from_rpy(0.0, 0.0, 1.0))
    with pytest.raises(MotionError, match="comes near zero length; add a waypoint there, space the times"):
        waypoints([0.0, 1e-5, 1000.0, 1000.00001], [Pose(), turned, Pose(), turned])


@pytest.mark.parametrize(
    ("knots", "shape"), [((0.0, 1.0), (2, 4, 7)), ((0.0, 1.0), (1, 4, 6)), ((0.0,), (0, 4, 7)), ((0.0, 1.0), (4, 7))]
)
def test_coefficients_need_one_shape(knots: tuple[float, ...], shape: tuple[int, ...]) -> None:
    with pytest.raises(MotionError, match="shapes of knots and coefficients"):
        Trajectory(np.array(knots), np.ones(shape))


@pytest.mark.parametrize(
    ("knots", "message"), [((0.5, 1.0), "must be 0"), ((0.0, 0.0), "knot 1"), ((0.0, math.nan), "finite")]
)
def test_knots_must_increase_from_zero(knots: tuple[float, ...], message: str) -> None:
    with pytest.raises(MotionError, match=message):
        Trajectory(np.array(knots), np.ones((1, 4, 7)))


@pytest.mark.parametrize(("column", "value", "message"), [(0, math.nan, "must be finite"), (3, 0.0, "zero length")])
def test_coefficients_must_give_valid_poses(column: int, value: float, message: str) -> None:
    coefficients = np.zeros((1, 1, 7))
    coefficients[0, 0, 3] = 1.0
    coefficients[0, 0, column] = value
    with pytest.raises(MotionError, match=message):
        Trajectory(np.array([0.0, 1.0]), coefficients)


def test_motion_ends_at_its_last_waypoint() -> None:
    trajectory = waypoints([0.0, 1.5], POSES)
    assert trajectory.end == 1.5
    np.testing.assert_allclose(trajectory.at(np.array([1.5])).position_w, [[1.0, 0.0, 0.0]], atol=1e-15, rtol=0.0)
    with pytest.raises(MotionError, match=r"instant 0 \(s\): 1.5000000000000002; must be from 0 to 1.5 s") as caught:
        trajectory.at(np.array([np.nextafter(1.5, 2.0)]))
    assert "give a longer motion" in str(caught.value)


def test_repeated_waypoints_damp_the_oscillation_before_a_turn() -> None:
    """Each repetition damps it by 2 + sqrt(3), as with every cubic spline. The page on worlds recommends this."""
    path = [Pose((0.0, 0.0, 0.2))] * 6 + [Pose((5.0, 0.0, 0.2)), Pose((5.0, 10.0, 0.2))]
    trajectory = waypoints((0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0), path)
    swing = [np.abs(trajectory.at(np.linspace(k, k + 1, 201)).position_w[:, 0]).max() for k in range(1, 5)]
    ratios = np.array(swing[1:]) / np.array(swing[:-1])
    assert np.allclose(ratios, 2.0 + math.sqrt(3.0), rtol=0.03, atol=0.0)
