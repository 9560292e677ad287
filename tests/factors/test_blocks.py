"""Many measurements in one call equal GTSAM's factors and derivatives, one measurement at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import FactorError
from navsense.core.kernels import INTERPRETED
from navsense.core.typing import AnyArray
from navsense.factors import MagFactor1, MagFactor3, blocks
from navsense.factors.arguments import FactorWarning

pytestmark = pytest.mark.requirement("FAC-6:blocks")

N = 60
FIELD = 48343.4
"""Field of GTSAM's example, nT."""

ROUNDING = 1e-10
"""Tolerance in nT: about 10 roundings of numbers of 5e4, each at most 7e-12."""

POLES = np.array(
    [
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [0.0, 0.0, 1.0],
        [0.0, 0.0, -1.0],
        [1.0, 1.0, 1.0],
        [1.0, -1.0, 2.0],
        [2.0, 1.0, 1.0],
        [1.0, 1e-9, -1e-9],
        [0.0, 1.0, 1.0],
    ]
)
"""Directions on the axes, where two components are equally small, and near them."""


def make_inputs(seed: int, count: int = N) -> dict[str, AnyArray]:
    """Return random attitudes, measurements and known quantities, one row each."""
    random = np.random.default_rng(seed)
    quaternion = random.normal(size=(count, 4))
    return {
        "quaternion": quaternion / np.linalg.norm(quaternion, axis=1)[:, None],
        "theta": random.uniform(-4.0, 4.0, count),
        "measured": FIELD * random.normal(size=(count, 3)),
        "scale": FIELD * random.uniform(0.5, 2.0, count),
        "direction": random.normal(size=(count, 3)),
        "bias": 300.0 * random.normal(size=(count, 3)),
    }


def share_inputs(inputs: dict[str, AnyArray], shared: str) -> dict[str, AnyArray]:
    """Return the inputs with the named ones reduced to one value for all rows."""
    return {name: value[0] if name in shared.split() else value for name, value in inputs.items()}


def take_row(inputs: dict[str, AnyArray], shared: str, name: str, i: int) -> AnyArray:
    return inputs[name] if name in shared.split() else inputs[name][i]


def check_row(block: blocks.Block, i: int, residual: AnyArray, jacobians: list[AnyArray]) -> None:
    """Assert that a row of a block equals the values of another program."""
    assert block.residual[i] == pytest.approx(residual, abs=ROUNDING, rel=0.0)
    assert len(block.jacobians) == len(jacobians)
    for ours, reference in zip(block.jacobians, jacobians, strict=True):
        assert ours[i].shape == reference.shape
        assert np.abs(ours[i] - reference).max() <= ROUNDING


SHARED = ["", "measured scale direction bias", "theta quaternion", "scale direction bias", "theta quaternion bias"]


@pytest.mark.requirement("FAC-2")
@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("columns", [1, 3, 6])
def test_heading_and_attitude_blocks_equal_gtsam(columns: int, shared: str) -> None:
    gtsam = pytest.importorskip("gtsam")
    inputs = share_inputs(make_inputs(columns), shared)
    known = inputs["measured"], inputs["scale"], inputs["direction"], inputs["bias"]
    mount = gtsam.Rot3.RzRyRx(1.5, 0.9, -1.15)
    if columns == 1:
        block = blocks.mag_factor(inputs["theta"], *known)
    elif columns == 3:
        block = blocks.mag_factor1(inputs["quaternion"], *known)
    else:
        block = blocks.mag_pose_factor_pose3(inputs["quaternion"], *known, rotation_bs=mount)
    assert block.residual.shape == (N, 3)
    for i in range(N):
        m, s, d, b = (take_row(inputs, shared, name, i) for name in ("measured", "scale", "direction", "bias"))
        h = np.zeros((3, columns), order="F")
        if columns == 6:
            pose = gtsam.Pose3(gtsam.Rot3(*take_row(inputs, shared, "quaternion", i)), np.array([3.0, -2.0, 5.0]))
            e = gtsam.MagPoseFactorPose3(1, m, s, d, b, None, gtsam.Pose3(mount, np.ones(3))).evaluateError(pose, h)
        elif columns == 3:
            rotation = gtsam.Rot3(*take_row(inputs, shared, "quaternion", i))
            e = gtsam.MagFactor1(1, m, s, gtsam.Unit3(d), b, None).evaluateError(rotation, h)
        else:
            rotation = gtsam.Rot2(float(take_row(inputs, shared, "theta", i)))
            e = gtsam.MagFactor(1, m, s, gtsam.Unit3(d), b, None).evaluateError(rotation, h)
        check_row(block, i, e, [h])


@pytest.mark.requirement("FAC-2")
@pytest.mark.parametrize("shared", SHARED)
def test_plane_pose_blocks_equal_gtsam(shared: str) -> None:
    gtsam = pytest.importorskip("gtsam")
    inputs = make_inputs(7)
    inputs = share_inputs(
        {name: value[:, :2] if value.shape == (N, 3) else value for name, value in inputs.items()}, shared
    )
    known = inputs["measured"], inputs["scale"], inputs["direction"], inputs["bias"]
    block = blocks.mag_pose_factor_pose2(inputs["theta"], *known, rotation_bs=-0.3)
    for i in range(N):
        m, s, d, b = (take_row(inputs, shared, name, i) for name in ("measured", "scale", "direction", "bias"))
        h = np.zeros((2, 3), order="F")
        factor = gtsam.MagPoseFactorPose2(1, m, s, d, b, None, gtsam.Pose2(1.0, -2.0, -0.3))
        pose = gtsam.Pose2(-3.0, 12.0, float(take_row(inputs, shared, "theta", i)))
        check_row(block, i, factor.evaluateError(pose, h), [h])


@pytest.mark.requirement("FAC-2")
@pytest.mark.parametrize(
    "shared", ["", "scale direction bias", "measured quaternion", "scale direction bias quaternion"]
)
def test_unknown_field_blocks_equal_gtsam_rotations_and_bases(shared: str) -> None:
    """GTSAM's wheel lacks both factors. The reference uses its rotation and tangent basis at each row."""
    gtsam = pytest.importorskip("gtsam")
    inputs = make_inputs(9)
    inputs["direction"][: len(POLES)] = POLES
    inputs = share_inputs(inputs, shared)
    names = ("bias", "measured", "quaternion")
    unit = inputs["direction"] / np.linalg.norm(inputs["direction"], axis=-1, keepdims=True)
    field = np.asarray(inputs["scale"])[..., None] * unit
    third = blocks.mag_factor3(inputs["scale"], inputs["direction"], *(inputs[name] for name in names))
    second = blocks.mag_factor2(field, *(inputs[name] for name in names))
    for i in range(N):
        s, d, b, m, q = (take_row(inputs, shared, name, i) for name in ("scale", "direction", *names))
        rotation, direction = gtsam.Rot3(*q), gtsam.Unit3(d)
        e = rotation.unrotate(s * direction.point3()) + b - m
        turned = rotation.matrix().T
        check_row(second, i, e, [turned, np.eye(3)])
        basis = direction.basis()
        check_row(third, i, e, [(turned @ direction.point3())[:, None], s * turned @ basis, np.eye(3)])


@pytest.mark.requirement("FAC-2")
def test_mag_factor3_jacobians_equal_gtsam_numerical_derivatives() -> None:
    gtsam = pytest.importorskip("gtsam")
    numerical = pytest.importorskip("gtsam.utils.numerical_derivative")
    inputs = share_inputs(make_inputs(11, len(POLES)), "bias")
    block = blocks.mag_factor3(1.3, POLES, inputs["bias"] / FIELD, inputs["measured"] / FIELD, inputs["quaternion"])
    for i, pole in enumerate(POLES):
        rotation, measured = gtsam.Rot3(*inputs["quaternion"][i]), inputs["measured"][i] / FIELD

        def error(scale: float, direction: Any, bias: AnyArray, r: Any = rotation, m: AnyArray = measured) -> AnyArray:
            return r.unrotate(scale * direction.point3()) + bias - m

        at = (1.3, gtsam.Unit3(pole), inputs["bias"] / FIELD)
        for k, derivative in enumerate(("numericalDerivative31", "numericalDerivative32", "numericalDerivative33")):
            # central differences of step 1e-5: 1e-16 / 1e-5 of rounding, 1e-10 of the third derivative
            assert np.abs(getattr(numerical, derivative)(error, *at) - block.jacobians[k][i]).max() < 1e-9


def test_block_row_equals_the_single_factor() -> None:
    inputs = make_inputs(13, 3)
    names = ("scale", "direction", "bias", "measured", "quaternion")
    block = blocks.mag_factor3(*(inputs[name] for name in names))
    for i in range(3):
        s, d, b, m, q = (inputs[name][i] for name in names)
        h = [np.zeros((3, 1)), np.zeros((3, 2)), np.zeros((3, 3))]
        e = MagFactor3(1, 2, 3, m, q).evaluateError(float(s), d, b, *h)
        check_row(block, i, e, h)


def test_matrices_rotations_and_quaternions_give_equal_results() -> None:
    gtsam = pytest.importorskip("gtsam")
    inputs = share_inputs(make_inputs(15, 5), "scale direction bias")
    rotations = [gtsam.Rot3(*q) for q in inputs["quaternion"]]
    known = inputs["measured"], inputs["scale"], inputs["direction"], inputs["bias"]
    block = blocks.mag_factor1(inputs["quaternion"], *known)
    for same in (rotations, np.array([r.matrix() for r in rotations])):
        assert np.abs(blocks.mag_factor1(same, *known).residual - block.residual).max() <= ROUNDING
    single = blocks.mag_factor1(rotations[0], *known)
    assert np.abs(single.residual[0] - block.residual[0]).max() <= ROUNDING


CALLS: dict[str, Callable[[dict[str, AnyArray], slice, blocks.Block | None], blocks.Block]] = {
    "mag_factor": lambda g, at, out: blocks.mag_factor(
        g["theta"][at], g["measured"][at], FIELD, g["direction"][0], g["bias"][0], out=out
    ),
    "mag_factor1": lambda g, at, out: blocks.mag_factor1(
        g["quaternion"][at], g["measured"][at], FIELD, g["direction"][at], g["bias"][0], out=out
    ),
    "mag_factor2": lambda g, at, out: blocks.mag_factor2(
        g["bias"][0], g["bias"][1], g["measured"][at], g["quaternion"][at], out=out
    ),
    "mag_factor3": lambda g, at, out: blocks.mag_factor3(
        FIELD, g["direction"][0], g["bias"][1], g["measured"][at], g["quaternion"][at], out=out
    ),
    "mag_pose_factor_pose2": lambda g, at, out: blocks.mag_pose_factor_pose2(
        g["theta"][at], g["measured"][at, :2], FIELD, g["direction"][0, :2], g["bias"][0, :2], 0.3, out=out
    ),
    "mag_pose_factor_pose3": lambda g, at, out: blocks.mag_pose_factor_pose3(
        g["quaternion"][at], g["measured"][at], FIELD, g["direction"][0], g["bias"][0], g["quaternion"][0], out=out
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_do_not_depend_on_block_size(name: str) -> None:
    arguments = make_inputs(17)
    complete = CALLS[name](arguments, slice(None), None)
    for cut in (0, 1, 23, N):
        parts = [CALLS[name](arguments, part, None) for part in (slice(0, cut), slice(cut, None))]
        assert np.array_equal(complete.residual, np.concatenate([part.residual for part in parts]))
        for k, jacobian in enumerate(complete.jacobians):
            assert np.array_equal(jacobian, np.concatenate([part.jacobians[k] for part in parts]))


@pytest.mark.parametrize("name", CALLS)
def test_output_block_is_reused(name: str) -> None:
    inputs, other = make_inputs(19), make_inputs(21)
    first = CALLS[name](inputs, slice(None), None)
    residual = first.residual
    again = CALLS[name](other, slice(None), first)
    assert again.residual is residual
    fresh = CALLS[name](other, slice(None), None)
    assert np.array_equal(again.residual, fresh.residual)
    for ours, reference in zip(again.jacobians, fresh.jacobians, strict=True):
        assert np.array_equal(ours, reference)


def test_residuals_without_jacobians() -> None:
    inputs = make_inputs(23)
    block = blocks.mag_factor2(inputs["bias"][0], inputs["bias"][1], inputs["measured"], inputs["quaternion"])
    alone = blocks.mag_factor2(
        inputs["bias"][0], inputs["bias"][1], inputs["measured"], inputs["quaternion"], jacobians=False
    )
    assert alone.jacobians == ()
    assert np.array_equal(alone.residual, block.residual)


@pytest.mark.compiled
@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    given = make_inputs(25)
    measured, bias, direction = given["measured"], given["bias"][:1].copy(), given["direction"]
    quaternion, theta = given["quaternion"], given["theta"][:, None].copy()
    known, none = blocks.KnownField(measured, np.full((1, 1), FIELD), direction, bias), np.empty((0, 4))
    for kernel, arguments, shapes in (
        (blocks._yaw_residuals, (theta, known, np.array([0.3])), [(3, 1)]),
        (blocks._attitude_residuals, (quaternion, known, none), [(3, 3)]),
        (blocks._attitude_residuals, (quaternion, known, quaternion), [(3, 6)]),
        (blocks._field_residuals, (direction, bias, measured, quaternion), [(3, 3)]),
        (blocks._direction_residuals, (known, quaternion), [(3, 1), (3, 2)]),
    ):
        results = []
        for run in (kernel, interpret(kernel)):
            out = [np.empty((N, 3)), *(np.empty((N, *shape)) for shape in shapes)]
            assert run(*arguments, *out) == -1
            results.append(out)
        for ours, reference in zip(*results, strict=True):
            assert np.array_equal(ours, reference)


@pytest.mark.compiled
def test_million_rows_in_one_call() -> None:
    random = np.random.default_rng(27)
    angle = random.uniform(-np.pi, np.pi, 1_000_000)
    measured = FIELD * random.normal(size=(angle.size, 3))
    quaternion = np.column_stack((np.cos(angle / 2), np.zeros_like(angle), np.zeros_like(angle), np.sin(angle / 2)))
    block = blocks.mag_factor1(quaternion, measured, FIELD, [0.6, 0.0, 0.8], [10.0, -5.0, 2.0])
    x, z = 0.6 * FIELD, 0.8 * FIELD
    field = np.column_stack((x * np.cos(angle), -x * np.sin(angle), np.full_like(angle, z)))
    assert np.abs(block.residual - (field + (10.0, -5.0, 2.0) - measured)).max() < ROUNDING
    h = block.jacobians[0]
    for i, j, k, sign in ((0, 1, 2, -1), (0, 2, 1, 1), (1, 2, 0, -1)):
        assert np.abs(h[:, i, j] - sign * field[:, k]).max() < ROUNDING
        assert np.array_equal(h[:, i, j], -h[:, j, i])
    assert not h[:, (0, 1, 2), (0, 1, 2)].any()


def call(**changed: object) -> blocks.Block:
    arguments: dict[str, Any] = {
        "rotation_nb": np.tile([1.0, 0.0, 0.0, 0.0], (4, 1)),
        "measured": np.ones((4, 3)),
        "scale": 2.0,
        "direction": [0.0, 0.0, 1.0],
        "bias": [0.0, 0.0, 0.0],
    }
    return blocks.mag_factor1(**{**arguments, **changed})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"measured": np.ones((4, 2))}, "shape of measured"),
        ({"measured": np.ones((5, 3))}, r"rows of measured.*must be 4, as those of rotation_nb"),
        ({"measured": "north"}, "measured.*array of numbers"),
        ({"measured": [[1.0, 2.0, 3.0], [1.0]]}, "measured.*array of numbers"),
        ({"bias": [True, False, True]}, "bias.*array of numbers"),
        ({"scale": 1j}, "scale.*array of numbers"),
        ({"measured": np.where(np.arange(12).reshape(4, 3) == 7, np.nan, 1.0)}, "measured of row 2.*finite"),
        ({"bias": [0.0, np.inf, 0.0]}, "bias.*finite"),
        ({"scale": np.array([1.0, 2.0, np.nan, 1.0])}, "scale of row 2.*finite"),
        ({"scale": [[1.0]]}, "shape of scale"),
        ({"direction": [0.0, 0.0, 0.0]}, "direction.*zero"),
        ({"direction": [[0.0, 0.0, 1.0]] * 3 + [[0.0, 0.0, 0.0]]}, "direction of row 3.*zero"),
        ({"rotation_nb": np.tile([1.0, 1.0, 0.0, 0.0], (4, 1))}, "rotation_nb of row 0.*rotation"),
        ({"rotation_nb": np.tile([np.nan, 0.0, 0.0, 0.0], (4, 1))}, "rotation_nb of row 0.*rotation"),
        ({"rotation_nb": np.diag([1.0, 1.0, -1.0])}, "rotation_nb.*rotation"),
        ({"rotation_nb": np.diag([1.0, 1.0, np.nan])}, "rotation_nb.*rotation"),
        ({"rotation_nb": np.ones((4, 5))}, "shape of rotation_nb"),
        ({"measured": np.full((4, 3), -1e308), "bias": [1e308, 0.0, 0.0]}, "residual of row 0.*overflows"),
        ({"out": blocks.Block(np.empty((3, 3)), (np.empty((4, 3, 3)),))}, r"out.*\(4, 3\)"),
        ({"out": blocks.Block(np.empty((4, 3), np.float32), (np.empty((4, 3, 3)),))}, "out.*float32"),
        ({"out": blocks.Block(np.empty((4, 3)), ())}, "out: 0 Jacobians"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # from scalars of the interpreter
def test_errors_name_the_problem(changed: dict[str, object], words: str) -> None:
    with pytest.raises(FactorError, match=words):
        call(**changed)


def test_direction_of_any_length_is_normalised() -> None:
    rotation, measured = [0.6, 0.0, 0.8, 0.0], [1.0, 2.0, 3.0]
    for length in (1e-200, 5e-324, 1.0, 1e300):
        toward = [length, -length, 0.0]
        single = MagFactor1(1, measured, 4.0, toward, [0.5, 0.0, 0.0], 1.0)
        h = np.empty((3, 3))
        residual = single.evaluateError(rotation, h)
        block = blocks.mag_factor1(rotation, measured, 4.0, toward, [0.5, 0.0, 0.0])
        assert np.abs(block.residual[0] - residual).max() < 1e-14
        assert np.abs(block.jacobians[0][0] - h).max() < 1e-14
        three = blocks.mag_factor3(4.0, [toward], [0.5, 0.0, 0.0], measured, rotation)
        assert np.abs(three.residual[0] - residual).max() < 1e-14
    flat = blocks.mag_pose_factor_pose2(0.0, [1.0, 2.0], 4.0, [0.0, 1e-200], [0.0, 0.0])
    assert flat.residual.tolist() == [[-1.0, 2.0]]


def test_gtsam_objects_are_accepted_as_by_single_factors() -> None:
    gtsam = pytest.importorskip("gtsam")
    random = np.random.default_rng(5)
    turns = [gtsam.Rot3.Expmap(random.normal(size=3)) for _ in range(4)]
    toward = [gtsam.Unit3(random.normal(size=3)) for _ in range(4)]
    measured, bias = random.normal(size=(4, 3)), random.normal(size=3)
    objects = np.empty(4, dtype=object)
    objects[:] = turns
    for many, where in ((turns, toward), (tuple(turns), tuple(toward)), (objects, toward[0]), (turns[0], toward[0])):
        block = blocks.mag_factor1(many, measured, 2.0, where, bias)
        by_field = blocks.mag_factor3(2.0, where, bias, measured, many)
        for i in range(4):
            turn = many if many is turns[0] else many[i]
            here = where if where is toward[0] else where[i]
            h = np.empty((3, 3))
            residual = MagFactor1(1, measured[i], 2.0, here, bias, 1.0).evaluateError(turn, h)
            assert np.abs(block.residual[i] - residual).max() < 1e-14
            assert np.abs(block.jacobians[0][i] - h).max() < 1e-14
            assert np.abs(by_field.residual[i] - residual).max() < 1e-14
    yaws = [gtsam.Rot2(angle) for angle in (0.3, -2.0)]
    for yaw, angles in ((yaws, [0.3, -2.0]), (yaws[0], 0.3)):
        known = (measured[:2], 2.0, toward[0], bias)
        block = blocks.mag_factor(yaw, *known)
        assert np.abs(block.residual - blocks.mag_factor(angles, *known).residual).max() < 1e-14
    flat = (measured[:2, :2], 2.0, [1.0, 0.0], bias[:2])
    turned = blocks.mag_pose_factor_pose2(yaws, *flat, gtsam.Rot2(0.7))
    assert np.abs(turned.residual - blocks.mag_pose_factor_pose2([0.3, -2.0], *flat, 0.7).residual).max() < 1e-14
    with pytest.raises(FactorError, match=r"direction: .*must be an array of numbers"):
        blocks.mag_factor1(turns, measured, 2.0, turns, bias)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("mag_factor", (0.1, [[2e4, 1e4, 4e4]] * 40, 5e-5, [1.0, 0.0, 2.0], [0.0, 0.0, 0.0])),
        ("mag_factor1", (np.eye(3), [2e4, 1e4, 4e4], 5e-5, [1.0, 0.0, 2.0], np.full((9, 3), 1e-9))),
        ("mag_pose_factor_pose2", ([0.1, 0.2], [2e4, 1e4], [5e-5, 5e-5], [1.0, 0.0], [0.0, 0.0])),
        ("mag_pose_factor_pose3", (np.eye(3), [2e4, 1e4, 4e4], 5e-5, [1.0, 0.0, 2.0], [0.0, 0.0, 0.0])),
    ],
)
def test_mixed_units_warn(name: str, inputs: tuple[Any, ...]) -> None:
    function = getattr(blocks, name)
    with pytest.warns(FactorWarning, match=f"{name}: .*scale looks like T, the measurement like nT; give") as caught:
        function(*inputs)
    assert [warning.filename for warning in caught] == [__file__]
    angle, measured, scale, *rest = inputs
    function(angle, np.asarray(measured) * 1e-9, scale, *rest)  # a warning is an error in these tests


def test_single_outlier_rows_do_not_warn_about_units() -> None:
    measured = np.full((50, 3), 3e4)
    measured[0], measured[7] = 0.0, 1e12
    blocks.mag_factor1(np.eye(3), measured, 5e4, [0.0, 0.0, 1.0], np.zeros(3))
    blocks.mag_factor1(np.eye(3), np.empty((0, 3)), 5e4, [0.0, 0.0, 1.0], np.zeros(3))


def test_one_mount_applies_to_all_rows() -> None:
    with pytest.raises(FactorError, match="rows of rotation_bs"):
        blocks.mag_pose_factor_pose3(np.eye(3), np.ones(3), 1.0, np.ones(3), np.ones(3), np.eye(3)[None])
    with pytest.raises(FactorError, match="rows of rotation_bs"):
        blocks.mag_pose_factor_pose2(0.0, np.ones(2), 1.0, np.ones(2), np.ones(2), [0.1, 0.2])
    with pytest.raises(FactorError, match=r"rotation_bs.*finite"):
        blocks.mag_pose_factor_pose2(0.0, np.ones(2), 1.0, np.ones(2), np.ones(2), np.nan)


def test_empty_and_single_row_blocks() -> None:
    assert call(measured=np.empty((0, 3)), rotation_nb=np.empty((0, 4))).residual.shape == (0, 3)
    single = call(rotation_nb=[1.0, 0.0, 0.0, 0.0], measured=[1.0, 1.0, 1.0])
    assert single.residual.tolist() == [[-1.0, -1.0, 1.0]]
