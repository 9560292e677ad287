"""Stationary and mounted frames: constant truth and exact lever arms."""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from navsense.core.errors import MotionError
from navsense.core.pose import IDENTITY, Pose, from_rpy, normalize
from navsense.motion import AttachedMotion, Motion, MotionBlock, Stationary, Trajectory, attach, waypoints
from navsense.motion.derived import _transform_block

Array = NDArray[np.float64]

numbers = st.floats(-50.0, 50.0, allow_subnormal=False)
vectors = st.tuples(numbers, numbers, numbers)
rotations = st.tuples(numbers, numbers, numbers, numbers).filter(lambda q: max(map(abs, q)) > 0.1).map(normalize)
poses = st.builds(Pose, vectors, rotations)


def make_motion() -> Trajectory:
    """Return a motion with translation and rotation about all axes."""
    turns = [(0.0, 0.0, 0.0), (0.4, -0.2, 0.9), (-0.3, 0.5, 1.8), (0.2, 0.1, 2.9), (0.7, -0.6, 3.5)]
    places = [(0.0, 0.0, 0.0), (1.0, 2.0, -0.5), (3.0, 1.0, 0.5), (4.0, -1.0, 1.0), (2.0, 0.0, 0.0)]
    return waypoints([0.0, 1.0, 2.3, 3.1, 4.5], [Pose(p, from_rpy(*r)) for p, r in zip(places, turns, strict=True)])


def assert_equal(found: MotionBlock, expected: MotionBlock) -> None:
    """Assert that two blocks agree to the last bit."""
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(vars(found)[name], value, err_msg=name)


class SpinningHub:
    """The hub of a rod that rotates about z by a t + b t^2 / 2, with truth in closed form."""

    end = math.inf

    def __init__(self, rate: float, growth: float) -> None:
        self.rate, self.growth = rate, growth

    def at(self, time: Array) -> MotionBlock:
        zero = np.zeros_like(time)
        half = (self.rate * time + self.growth * time**2 / 2.0) / 2.0
        return MotionBlock(
            position_w=np.zeros((time.size, 3)),
            rotation_wb=np.column_stack((np.cos(half), zero, zero, np.sin(half))),
            velocity_w=np.zeros((time.size, 3)),
            angular_velocity_b=np.column_stack((zero, zero, self.rate + self.growth * time)),
            acceleration_w=np.zeros((time.size, 3)),
            angular_acceleration_b=np.column_stack((zero, zero, zero + self.growth)),
        )


def test_stationary_is_its_pose_and_zeros() -> None:
    pose = Pose((1.0, -2.0, 3.0), from_rpy(0.1, 0.2, 0.3))
    block = Stationary(pose).at(np.array([0.0, 7.0, 1e9]))
    np.testing.assert_array_equal(block.position_w, [pose.position] * 3)
    np.testing.assert_array_equal(block.rotation_wb, [pose.rotation] * 3)
    for name in ("velocity_w", "angular_velocity_b", "acceleration_w", "angular_acceleration_b"):
        np.testing.assert_array_equal(vars(block)[name], np.zeros((3, 3)))
    assert Stationary(pose).end == math.inf
    assert Stationary(pose) == Stationary(pose)
    assert Stationary() == Stationary(IDENTITY)


def test_truth_is_read_only() -> None:
    for motion in (Stationary(), attach(make_motion(), Pose((1.0, 0.0, 0.0))), make_motion()):
        for array in motion.at(np.array([1.0])).arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 99.0


@pytest.mark.parametrize("motion", [Stationary(), attach(make_motion(), Pose((1.0, 0.0, 0.0))), make_motion()])
def test_no_instants_give_an_empty_block(motion: Motion) -> None:
    block = motion.at(np.empty(0))
    assert block.position_w.shape == (0, 3)
    assert block.rotation_wb.shape == (0, 4)


@pytest.mark.parametrize("bad", [-1.0, -5e-324, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("motion", [Stationary(), make_motion(), AttachedMotion(make_motion(), Pose((1.0, 0.0, 0.0)))])
def test_invalid_time_error_has_its_row(motion: Motion, bad: float) -> None:
    with pytest.raises(MotionError, match=r"instant 1 \(s\)") as caught:
        motion.at(np.array([0.5, bad]))
    assert repr(caught.value.value) == repr(bad)


@pytest.mark.parametrize("time", [np.zeros((2, 2)), np.float64(1.0)])
def test_times_must_have_one_axis(time: Array) -> None:
    with pytest.raises(MotionError, match=r"must be \(n,\)"):
        Stationary().at(time)


@pytest.mark.requirement("IMU-2")
@given(rate=st.floats(-20.0, 20.0), growth=st.floats(-5.0, 5.0), length=st.floats(0.01, 10.0))
def test_rotating_rod_has_centripetal_and_tangential_acceleration(rate: float, growth: float, length: float) -> None:
    time = np.linspace(0.0, 3.0, 31)
    block = AttachedMotion(SpinningHub(rate, growth), Pose((length, 0.0, 0.0))).at(time)
    angle, omega = rate * time + growth * time**2 / 2.0, rate + growth * time
    zero = np.zeros_like(time)
    radial = np.column_stack((np.cos(angle), np.sin(angle), zero))
    tangential = np.column_stack((-np.sin(angle), np.cos(angle), zero))
    speed, size = length * omega[:, None], length * (np.abs(omega).max() + 1.0) ** 2
    np.testing.assert_allclose(block.position_w, length * radial, atol=1e-14 * length, rtol=0.0)
    np.testing.assert_allclose(block.velocity_w, speed * tangential, atol=1e-14 * size, rtol=0.0)
    expected = -length * (omega**2)[:, None] * radial + length * growth * tangential
    np.testing.assert_allclose(block.acceleration_w, expected, atol=1e-13 * size, rtol=0.0)


@pytest.mark.requirement("IMU-2")
@given(pose=poses)
def test_lever_arm_equals_the_formula_in_rotation_matrices(pose: Pose) -> None:
    base = make_motion()
    time = np.linspace(0.0, base.end, 23)
    body, block = base.at(time), AttachedMotion(base, pose).at(time)
    turn, r = Rotation.from_quat(body.rotation_wb, scalar_first=True), np.array(pose.position)
    mount = Rotation.from_quat(pose.rotation, scalar_first=True)
    omega, alpha = body.angular_velocity_b.copy(), body.angular_acceleration_b.copy()
    size = 100.0 * (1.0 + float(np.abs(omega).max()) ** 2 + float(np.abs(alpha).max()))
    swing = np.cross(omega, np.cross(omega, r)) + np.cross(alpha, r)
    expected = replace(
        body,
        position_w=body.position_w + turn.apply(r),
        velocity_w=body.velocity_w + turn.apply(np.cross(omega, r)),
        acceleration_w=body.acceleration_w + turn.apply(swing),
        angular_velocity_b=mount.inv().apply(omega),
        angular_acceleration_b=mount.inv().apply(alpha),
    )
    for name in set(vars(expected)) - {"rotation_wb"}:
        np.testing.assert_allclose(vars(block)[name], vars(expected)[name], atol=1e-14 * size, err_msg=name, rtol=0.0)
    found = Rotation.from_quat(block.rotation_wb, scalar_first=True)
    assert float((found.inv() * turn * mount).magnitude().max()) < 1e-14 * 10
    np.testing.assert_allclose(np.linalg.norm(block.rotation_wb, axis=1), 1.0, atol=2e-15, rtol=0.0)


@pytest.mark.requirement("IMU-2", "TRU-1")
def test_truth_of_a_mounted_frame_equals_derivatives_of_its_pose() -> None:
    motion = AttachedMotion(make_motion(), Pose((2.0, -1.0, 0.5), from_rpy(0.3, -0.8, 2.0)))
    # Away from the knots: the third derivative jumps at a knot, and the formula below loses its order.
    time = np.linspace(0.05, 0.95, 40)
    h = 1e-3
    before, after = motion.at(time - h), motion.at(time + h)
    far_before, far_after = motion.at(time - 2 * h), motion.at(time + 2 * h)
    block = motion.at(time)
    pairs = [("position_w", "velocity_w"), ("velocity_w", "acceleration_w")]
    for complete, rate in [*pairs, ("angular_velocity_b", "angular_acceleration_b")]:
        near = vars(after)[complete] - vars(before)[complete]
        far = vars(far_after)[complete] - vars(far_before)[complete]
        # Fourth order: h^4 / 30 times the fifth derivative (below 1e3), and rounding of about 1e-15 / h.
        np.testing.assert_allclose(
            (8.0 * near - far) / (12.0 * h), vars(block)[rate], atol=2e-10, err_msg=rate, rtol=0.0
        )


@given(inner=poses, outer=poses)
def test_mounting_twice_equals_mounting_the_composed_pose(inner: Pose, outer: Pose) -> None:
    base = make_motion()
    time = np.linspace(0.0, base.end, 7)
    twice, once = (
        AttachedMotion(AttachedMotion(base, outer), inner).at(time),
        AttachedMotion(base, outer @ inner).at(time),
    )
    for name in set(vars(once)) - {"rotation_wb"}:
        np.testing.assert_allclose(vars(twice)[name], vars(once)[name], atol=1e-10, err_msg=name, rtol=0.0)
    signs = np.sign((twice.rotation_wb * once.rotation_wb).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(twice.rotation_wb * signs, once.rotation_wb, atol=1e-14, rtol=0.0)


@given(base=poses, pose=poses)
def test_mount_on_a_stationary_frame_is_stationary(base: Pose, pose: Pose) -> None:
    motion = attach(Stationary(base), pose)
    assert motion == Stationary(base @ pose)
    time = np.array([0.0, 1.0])
    found, expected = motion.at(time), AttachedMotion(Stationary(base), pose).at(time)
    np.testing.assert_allclose(found.position_w, expected.position_w, atol=1e-13, rtol=0.0)
    np.testing.assert_allclose(found.rotation_wb, expected.rotation_wb, atol=1e-15, rtol=0.0)


def test_identity_mount_equals_the_base() -> None:
    base = make_motion()
    assert attach(base, IDENTITY) is base
    time = np.linspace(0.0, base.end, 5)
    assert_equal(AttachedMotion(base, IDENTITY).at(time), base.at(time))
    assert isinstance(attach(base, Pose((1.0, 0.0, 0.0))), AttachedMotion)


def test_mount_ends_with_its_base() -> None:
    base = make_motion()
    motion = AttachedMotion(base, Pose((1.0, 0.0, 0.0)))
    assert motion.end == base.end
    motion.at(np.array([base.end]))
    with pytest.raises(MotionError, match="the end of the motion"):
        motion.at(np.array([np.nextafter(base.end, 9.0)]))


@given(cuts=st.lists(st.integers(0, 60), max_size=5), pose=poses)
def test_values_do_not_depend_on_block_size(cuts: list[int], pose: Pose) -> None:
    motion = AttachedMotion(make_motion(), pose)
    time = np.linspace(0.0, motion.end, 60)
    parts = [motion.at(part) for part in np.split(time, sorted(cuts))]
    joined = MotionBlock(*(np.concatenate(columns) for columns in zip(*map(astuple, parts), strict=True)))
    assert_equal(joined, motion.at(time))


@given(
    pose=arrays(np.float64, 7, elements=numbers),
    body=arrays(np.float64, (3, 19), elements=numbers),
)
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Any, pose: Array, body: Array) -> None:
    columns = (3, 4, 3, 3, 3, 3)
    inputs = [np.ascontiguousarray(part) for part in np.split(body, np.cumsum(columns)[:-1], axis=1)]
    compiled = [np.empty((3, width)) for width in columns]
    plain = [np.empty((3, width)) for width in columns]
    _transform_block(pose, *inputs, *compiled)
    interpret(_transform_block)(pose, *inputs, *plain)
    for found, expected in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(found, expected)
