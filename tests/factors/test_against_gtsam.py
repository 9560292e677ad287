"""Values and derivatives equal GTSAM's at random attitudes and where the tangent basis changes.

GTSAM's Python package lacks MagFactor2 and MagFactor3. Their oracle combines its Rot3 and Unit3 with differences along
its retractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from navsense.core.typing import FloatArray
from navsense.factors import MagFactor, MagFactor1, MagFactor2, MagFactor3, MagPoseFactorPose2, MagPoseFactorPose3

gtsam = pytest.importorskip("gtsam")

COUNT = 100
STRENGTH = 48343.4
RELATIVE = 1e-14
"""Relative to the field strength: ninety roundings. The requirement is 1e-9."""


def make_attitudes() -> list[Any]:
    """Return random rotations and rotations by right angles, in which products vanish."""
    random = np.random.default_rng(3)
    right = [
        gtsam.Rot3.RzRyRx(a, b, c) for a in (0.0, math.pi / 2) for b in (0.0, -math.pi / 2) for c in (0.0, math.pi)
    ]
    return right + [gtsam.Rot3.Expmap(random.normal(size=3) * 2.0) for _ in range(COUNT)]


def make_numbers(seed: int, n: int = 3) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a measurement, a direction and a bias."""
    random = np.random.default_rng(seed)
    return STRENGTH * random.normal(size=n), random.normal(size=n), 1000.0 * random.normal(size=n)


def assert_agree(ours: Any, reference: Any, value: Any, shape: tuple[int, int]) -> None:
    jacobian, other = np.full(shape, np.nan), np.zeros(shape)
    at = {1: value}
    assert ours.evaluateError(value, jacobian) == pytest.approx(
        reference.evaluateError(value, other), abs=RELATIVE * STRENGTH
    )
    assert jacobian == pytest.approx(other, rel=0.0, abs=RELATIVE * STRENGTH)
    values = gtsam.Values()
    values.insert(1, value)
    assert ours.error(values) == pytest.approx(reference.error(values), rel=1e-12, abs=0.0)
    assert ours.error(at) == ours.error(values)
    assert ours.whitenedError(at) == pytest.approx(reference.whitenedError(values), abs=RELATIVE * STRENGTH)


@pytest.mark.requirement("FAC-2:MagFactor1")
def test_attitude_factors_equal_gtsam() -> None:
    for i, attitude in enumerate(make_attitudes()):
        measured, towards, bias = make_numbers(i)
        arguments = (
            1,
            measured,
            STRENGTH,
            gtsam.Unit3(towards),
            bias,
            gtsam.noiseModel.Diagonal.Sigmas(np.array([3.0, 5.0, 9.0])),
        )
        assert_agree(MagFactor1(*arguments), gtsam.MagFactor1(*arguments), attitude, (3, 3))


@pytest.mark.requirement("FAC-2:MagFactor")
def test_heading_factors_equal_gtsam() -> None:
    for i, angle in enumerate(
        [0.0, math.pi, math.pi / 2, -math.pi / 2, *np.random.default_rng(4).uniform(-7.0, 7.0, COUNT)]
    ):
        measured, towards, bias = make_numbers(i)
        arguments = (1, measured, STRENGTH, gtsam.Unit3(towards), bias, gtsam.noiseModel.Unit.Create(3))
        assert_agree(MagFactor(*arguments), gtsam.MagFactor(*arguments), gtsam.Rot2(angle), (3, 1))
        assert MagFactor(*arguments).evaluateError(angle) == pytest.approx(
            gtsam.MagFactor(*arguments).evaluateError(gtsam.Rot2(angle)), abs=RELATIVE * STRENGTH
        )


@pytest.mark.requirement("FAC-2:MagPoseFactorPose3")
@pytest.mark.parametrize("mounted", [False, True])
def test_pose_factors_equal_gtsam(mounted: bool) -> None:
    for i, attitude in enumerate(make_attitudes()):
        measured, towards, bias = make_numbers(i)
        mounting = [gtsam.Pose3(make_attitudes()[-1 - i], np.array([1.0, 2.0, -3.0]))] if mounted else []
        arguments = (1, measured, STRENGTH, towards, bias, gtsam.noiseModel.Isotropic.Sigma(3, 0.25), *mounting)
        ours, reference = MagPoseFactorPose3(*arguments), gtsam.MagPoseFactorPose3(*arguments)
        assert_agree(ours, reference, gtsam.Pose3(attitude, 10.0 * np.array(bias)), (3, 6))
        assert repr(ours) == repr(reference)


@pytest.mark.requirement("FAC-2:MagPoseFactorPose2")
@pytest.mark.parametrize("mounted", [False, True])
def test_plane_pose_factors_equal_gtsam(mounted: bool) -> None:
    random = np.random.default_rng(6)
    for i in range(COUNT):
        measured, towards, bias = make_numbers(i, 2)
        mounting = [gtsam.Pose2(1.0, -2.0, random.uniform(-7.0, 7.0))] if mounted else []
        arguments = (1, measured, STRENGTH, towards, bias, gtsam.noiseModel.Isotropic.Sigma(2, 0.25), *mounting)
        ours, reference = MagPoseFactorPose2(*arguments), gtsam.MagPoseFactorPose2(*arguments)
        assert_agree(ours, reference, gtsam.Pose2(3.0, 4.0, random.uniform(-7.0, 7.0)), (2, 3))
        assert repr(ours) == repr(reference)


@pytest.mark.requirement("FAC-2:MagFactor2")
def test_field_and_bias_factors_equal_gtsam() -> None:
    for i, attitude in enumerate(make_attitudes()):
        measured, field, bias = make_numbers(i)
        field *= STRENGTH
        blocks = [np.full((3, 3), np.nan) for _ in range(2)]
        error = MagFactor2(1, 2, measured, attitude).evaluateError(field, bias, *blocks)
        assert error == pytest.approx(attitude.unrotate(field) + bias - measured, abs=RELATIVE * STRENGTH)
        assert blocks[0] == pytest.approx(attitude.inverse().matrix(), abs=1e-15)
        assert (blocks[1] == np.eye(3)).all()


ULP = math.ulp(1.0)
TIES = [
    [1.0, 0.0, 0.0],
    [0.0, -1.0, 0.0],
    [0.0, 0.0, 1.0],
    [1.0, 1.0, 1.0],
    [1.0, 1.0, -2.0],
    [-1.0, 2.0, 1.0],
    [2.0, -1.0, 1.0],
    [1.0 - ULP, 1.0, 1.0 + ULP],
    [1.0 + ULP, 1.0, 1.0 - ULP],
    [1.0, 1.0 + 4.0 * ULP, 5.0],
    [1.0, 1.0 - 4.0 * ULP, 5.0],
    [5.0, 1.0, 1.0 - 4.0 * ULP],
    [1e-9, 1.0, -1e-9],
    [-0.0, 0.0, -1.0],
    [1e-160, 2e-160, 1.0],
]
"""Poles, and directions with two equal or nearly equal components."""


def differentiate(function: Callable[[FloatArray], FloatArray], n: int, step: float = 2e-3) -> FloatArray:
    """Return the derivative at zero from five points. The error is (step / 2)^4 / 7.5 of the fifth derivative."""
    h = step / 2.0
    columns = [
        (8.0 * (function(h * v) - function(-h * v)) - (function(2.0 * h * v) - function(-2.0 * h * v))) / (12.0 * h)
        for v in np.eye(n)
    ]
    return np.array(columns).T


NUMERICAL = 1e-11
"""Relative to the field strength: 0.001^4 / 7.5 = 1.3e-13 plus rounding, 1e-16 / 0.001."""


@pytest.mark.requirement("FAC-2:MagFactor3", "FAC-2:poles")
@pytest.mark.parametrize("towards", [*TIES, *np.random.default_rng(8).normal(size=(COUNT, 3)).tolist()], ids=str)
def test_scale_direction_and_bias_factors_equal_gtsam(towards: Sequence[float]) -> None:
    measured, _, bias = make_numbers(9)
    attitude, direction = gtsam.Rot3.RzRyRx(0.3, -1.1, 2.0), gtsam.Unit3(np.array(towards))
    factor = MagFactor3(1, 2, 3, measured, attitude)
    blocks = [np.full((3, n), np.nan) for n in (1, 2, 3)]
    error = factor.evaluateError(STRENGTH, direction, bias, *blocks)
    predicted = STRENGTH * attitude.unrotate(direction.point3()) + bias
    assert error == pytest.approx(predicted - measured, abs=RELATIVE * STRENGTH)
    assert blocks[0][:, 0] == pytest.approx(attitude.unrotate(direction.point3()), abs=RELATIVE)
    analytic = STRENGTH * attitude.inverse().matrix() @ direction.basis()
    assert blocks[1] == pytest.approx(analytic, abs=RELATIVE * STRENGTH)
    assert (blocks[2] == np.eye(3)).all()
    numerical = differentiate(lambda v: STRENGTH * attitude.unrotate(direction.retract(v).point3()), 2)
    assert blocks[1] == pytest.approx(numerical, abs=NUMERICAL * STRENGTH)


@pytest.mark.requirement("FAC-2:poles")
def test_tangent_basis_and_derivative_switch_as_in_gtsam() -> None:
    """Directions on both sides of a switch, one ulp apart, have different derivatives, each equal to GTSAM's."""
    below, above = (
        gtsam.Unit3(np.array([1.0, 1.0 + 4.0 * ULP, 5.0])),
        gtsam.Unit3(np.array([1.0 + 4.0 * ULP, 1.0, 5.0])),
    )
    factor = MagFactor3(1, 2, 3, [0.0, 0.0, 0.0], np.eye(3))
    found = []
    for direction in (below, above):
        block = np.zeros((3, 2))
        factor.evaluateError(1.0, direction, [0.0, 0.0, 0.0], None, block)
        assert pytest.approx(direction.basis(), abs=1e-15) == block
        found.append(block)
    assert abs(found[0] - found[1]).max() > 0.5


def make_residual_function(factor: Any, value: Any) -> Callable[[FloatArray], FloatArray]:
    """Return the residual as a function on the tangent space at a value."""
    return lambda v: factor.evaluateError(value.retract(v))


@pytest.mark.requirement("FAC-2:derivatives")
@pytest.mark.parametrize(
    "attitude",
    [gtsam.Rot3(), gtsam.Rot3.RzRyRx(0.3, math.pi / 2, 2.0), gtsam.Rot3.Rz(math.pi), gtsam.Rot3.RzRyRx(0.3, -1.1, 2.0)],
    ids=["none", "gimbal", "half turn", "some"],
)
def test_derivatives_equal_differences_along_gtsams_retractions(attitude: Any) -> None:
    measured, towards, bias = make_numbers(10)
    known = (measured, STRENGTH, towards, bias)
    pose, heading, plane = (
        gtsam.Pose3(attitude, np.array([5.0, -6.0, 7.0])),
        gtsam.Rot2(2.0),
        gtsam.Pose2(3.0, 4.0, -2.5),
    )
    flat = (measured[:2], STRENGTH, towards[:2], bias[:2])
    mounting_3, mounting_2 = gtsam.Pose3(gtsam.Rot3.RzRyRx(1.5, 0.9, -1.15), np.zeros(3)), gtsam.Pose2(1.0, -2.0, -0.3)
    cases: list[tuple[Any, Any, int]] = [
        (MagFactor(1, *known), heading, 1),
        (MagFactor1(1, *known), attitude, 3),
        (MagPoseFactorPose3(1, *known, None, mounting_3), pose, 6),
        (MagPoseFactorPose2(1, *flat, None, mounting_2), plane, 3),
    ]
    for factor, value, n in cases:
        block = np.full((factor.dim(), n), np.nan)
        factor.evaluateError(value, block)
        numerical = differentiate(make_residual_function(factor, value), n)
        assert pytest.approx(numerical, abs=NUMERICAL * STRENGTH) == block


@pytest.mark.requirement("FAC-2:arrays")
def test_arrays_equal_gtsam_objects() -> None:
    from navsense.core.pose import Pose

    attitude = gtsam.Rot3.RzRyRx(0.3, -1.1, 2.0)
    q = attitude.toQuaternion()
    wxyz = [q.w(), q.x(), q.y(), q.z()]
    measured, towards, bias = make_numbers(11)
    factor: Any
    reference = MagFactor1(1, measured, STRENGTH, gtsam.Unit3(towards), bias)
    for rotation in (attitude.matrix(), wxyz, np.array(wxyz), np.negative(wxyz), np.asfortranarray(attitude.matrix())):
        for factor in (reference, MagFactor1(1, list(measured), STRENGTH, 7.0 * towards, tuple(bias))):
            assert factor.evaluateError(rotation) == pytest.approx(
                reference.evaluateError(attitude), abs=RELATIVE * STRENGTH
            )
    pose = gtsam.Pose3(attitude, np.array([5.0, -6.0, 7.0]))
    ours = Pose((5.0, -6.0, 7.0), tuple(wxyz))
    factors = [
        MagPoseFactorPose3(1, measured, STRENGTH, towards, bias, None, p)
        for p in (pose, pose.matrix(), [5.0, -6.0, 7.0, *wxyz], ours)
    ]
    for factor in factors:
        for value in (pose, pose.matrix(), [5.0, -6.0, 7.0, *wxyz], ours):
            assert factor.evaluateError(value) == pytest.approx(factors[0].evaluateError(pose), abs=RELATIVE * STRENGTH)
        assert factor.equals(factors[0])
    flat = gtsam.Pose2(3.0, 4.0, -2.5)
    plane = [
        MagPoseFactorPose2(1, measured[:2], STRENGTH, towards[:2], bias[:2], None, p)
        for p in (flat, flat.matrix(), [3.0, 4.0, -2.5])
    ]
    for factor in plane:
        for value in (flat, flat.matrix(), [3.0, 4.0, -2.5]):
            assert factor.evaluateError(value) == pytest.approx(plane[0].evaluateError(flat), abs=RELATIVE * STRENGTH)
        assert factor.equals(plane[0])
    level = MagFactor(1, measured, STRENGTH, towards, bias)
    for heading in (gtsam.Rot2(0.7), 0.7, np.array(0.7), gtsam.Rot2(0.7).matrix()):
        assert level.evaluateError(heading) == pytest.approx(level.evaluateError(0.7), abs=RELATIVE * STRENGTH)
    three = [MagFactor3(1, 2, 3, measured, r) for r in (attitude, attitude.matrix(), wxyz)]
    for factor in three:
        for direction in (gtsam.Unit3(towards), towards, 1e-200 * towards, list(towards)):
            assert factor.evaluateError(STRENGTH, direction, bias) == pytest.approx(
                three[0].evaluateError(STRENGTH, gtsam.Unit3(towards), bias), abs=RELATIVE * STRENGTH
            )
        assert factor.equals(three[0])


@pytest.mark.requirement("FAC-2:MagFactor2", "FAC-2:MagFactor3")
def test_two_parametrisations_give_the_same_errors() -> None:
    measured, towards, bias = make_numbers(12)
    attitude = gtsam.Rot3.RzRyRx(0.3, -1.1, 2.0)
    direction = gtsam.Unit3(towards)
    two = MagFactor2(1, 2, measured, attitude).evaluateError(STRENGTH * direction.point3(), bias)
    assert MagFactor3(1, 2, 3, measured, attitude).evaluateError(STRENGTH, direction, bias) == pytest.approx(
        two, abs=RELATIVE * STRENGTH
    )


@pytest.mark.requirement("FAC-2")
def test_jacobians_are_written_to_any_memory_layout() -> None:
    measured, towards, bias = make_numbers(13)
    factor = MagFactor1(1, measured, STRENGTH, towards, bias)
    plain, fortran, strided = np.zeros((3, 3)), np.zeros((3, 3), order="F"), np.zeros((6, 9))[::2, ::3]
    for block in (plain, fortran, strided):
        factor.evaluateError([1.0, 0.0, 0.0, 0.0], block)
    assert (plain == fortran).all()
    assert (plain == strided).all()
    assert plain.any()
