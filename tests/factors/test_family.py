"""Properties of all factors: GTSAM's names, texts, equality, copies, values in mappings, and errors."""

from __future__ import annotations

import copy
import linecache
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import FactorError
from navsense.factors import (
    Factor,
    FactorWarning,
    MagFactor,
    MagFactor1,
    MagFactor2,
    MagFactor3,
    MagPoseFactorPose2,
    MagPoseFactorPose3,
)

gtsam = pytest.importorskip("gtsam")

R = gtsam.symbol("r", 0)
MEASURED, FIELD, BIAS = np.array([20.0, 6.0, 40.0]), np.array([22.0, -2.0, 44.0]), np.array([1.0, -2.0, 3.0])
SCALE, Q, ROT = 49.0, [1.0, 0.0, 0.0, 0.0], gtsam.Rot3.RzRyRx(0.3, -0.2, 0.5)
MOUNTING_2, MOUNTING_3 = gtsam.Pose2(1.0, -2.0, -0.3), gtsam.Pose3(ROT, np.array([1.0, 2.0, 3.0]))
ROBUST = gtsam.noiseModel.Robust.Create(
    gtsam.noiseModel.mEstimator.Huber(1.3), gtsam.noiseModel.Isotropic.Sigma(3, 0.5)
)
FAMILY: dict[str, tuple[Any, list[Any]]] = {
    "MagFactor": (MagFactor(R, MEASURED, SCALE, FIELD, BIAS, 0.5), [0.3]),
    "MagFactor1": (MagFactor1(R, MEASURED, SCALE, FIELD, BIAS, ROBUST), [ROT]),
    "MagFactor2": (MagFactor2(R, 7, MEASURED, ROT, [1.0, 2.0, 3.0]), [FIELD, BIAS]),
    "MagFactor3": (MagFactor3(R, 7, 8, MEASURED, ROT, ROBUST), [SCALE, gtsam.Unit3(FIELD), BIAS]),
    "MagPoseFactorPose2": (
        MagPoseFactorPose2(R, MEASURED[:2], 22.0, FIELD[:2], BIAS[:2], [0.5, 0.7], MOUNTING_2),
        [gtsam.Pose2(3.0, 4.0, 0.5)],
    ),
    "MagPoseFactorPose3": (
        MagPoseFactorPose3(R, MEASURED, SCALE, FIELD, BIAS, [0.5, 0.6, 0.7], MOUNTING_3),
        [gtsam.Pose3(ROT, np.array([5.0, 6.0, 7.0]))],
    ),
}
each = pytest.mark.parametrize(("factor", "inputs"), FAMILY.values(), ids=FAMILY.keys())


def pickle_and_unpickle(factor: Factor) -> Factor:
    copied: Factor = pickle.loads(pickle.dumps(factor))  # noqa: S301 - it is our own
    return copied


def make_values(factor: Factor, inputs: list[Any]) -> tuple[dict[int, Any], Any]:
    """Return the values as a mapping and as GTSAM values."""
    mapping, values = dict(zip(factor.keys(), inputs, strict=True)), gtsam.Values()
    for key, value in mapping.items():
        values.insert(key, gtsam.Rot2(value) if factor is FAMILY["MagFactor"][0] else value)
    return mapping, values


@pytest.mark.requirement("FAC-1")
def test_every_gtsam_magnetometer_factor_exists() -> None:
    """The family has all factors of GTSAM's package and the two that it lacks."""
    reference = {name for name in vars(gtsam) if name.startswith("Mag")}
    assert reference | {"MagFactor2", "MagFactor3"} == set(FAMILY)
    assert all(type(factor).__name__ == name for name, (factor, _) in FAMILY.items())


@pytest.mark.requirement("FAC-1")
@pytest.mark.parametrize("name", [name for name in FAMILY if name in vars(gtsam)])
def test_methods_and_arguments_have_gtsam_names(name: str) -> None:
    """The names of methods and arguments are GTSAM's."""
    reference = vars(gtsam)[name]
    methods = {method for method in dir(reference) if not method.startswith("_")}
    assert methods <= set(dir(FAMILY[name][0]))
    n = 2 if name.endswith("2") else 3
    known = {"measured": MEASURED[:n], "scale": SCALE, "bias": BIAS[:n]}
    if name.startswith("MagPose"):
        mounting = MOUNTING_2 if n == 2 else MOUNTING_3
        known |= {"pose_key": R, "direction": FIELD[:n], "body_P_sensor": mounting}
        known |= {"noiseModel": gtsam.noiseModel.Unit.Create(n)}
        value = {"nPb": gtsam.Pose2() if n == 2 else gtsam.Pose3()}
    else:
        known |= {"key": R, "direction": gtsam.Unit3(FIELD), "model": gtsam.noiseModel.Unit.Create(3)}
        value = {"nRb": gtsam.Rot2() if name == "MagFactor" else gtsam.Rot3()}
    ours = type(FAMILY[name][0])(**known)
    assert ours.evaluateError(**value, H=None) == pytest.approx(reference(**known).evaluateError(**value), abs=1e-12)
    assert repr(ours) == repr(reference(**known))


@pytest.mark.requirement("FAC-1")
@each
def test_errors_are_evaluated_at_gtsam_values(factor: Any, inputs: list[Any]) -> None:
    mapping, values = make_values(factor, inputs)
    sizes = [variable.dim for variable in factor.variables]
    blocks = [np.full((factor.dim(), size), np.nan) for size in sizes]
    residual = factor.evaluateError(*inputs, *blocks)
    assert (residual == factor.evaluateError(*inputs)).all()
    for at in (mapping, values):
        filled: Any = [None] * factor.size()
        assert factor.unwhitenedError(at, filled) == pytest.approx(residual, abs=1e-13)
        reference = gtsam.JacobianVector([np.zeros((0, 0))] * factor.size())
        factor.unwhitenedError(at, reference)
        for i, block in enumerate(blocks):
            assert filled[i] == pytest.approx(block, abs=1e-13)
            assert reference[i] == pytest.approx(block, abs=1e-13)
        assert factor.error(at) == pytest.approx(factor.to_gtsam().error(values), rel=1e-13, abs=0.0)
        assert factor.whitenedError(at) == pytest.approx(factor.to_gtsam().whitenedError(values), abs=1e-11)
    for i, size in enumerate(sizes):  # one block alone
        only: list[Any] = [None] * len(sizes)
        only[i] = np.zeros((factor.dim(), size))
        factor.evaluateError(*inputs, *only)
        assert (only[i] == blocks[i]).all()
    assert factor.active(values)
    assert not factor.empty()
    assert factor.size() == len(factor.keys()) == len(sizes)
    assert factor.keys() is not factor.keys()
    assert factor.linearize(values).equals(factor.to_gtsam().linearize(values), 1e-9)


@pytest.mark.requirement("FAC-1")
@each
def test_factors_print_as_in_gtsam(factor: Factor, inputs: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    keys = " ".join(gtsam.DefaultKeyFormatter(key) for key in list(factor.keys()))
    factor.print()
    text = capsys.readouterr().out
    assert text == repr(factor) == str(factor)
    assert text.startswith(f"Factor\n  keys = {{ {keys} }}\n")
    factor.print("lab ", lambda key: f"<{key}>")
    change_value = "lab   keys = { " + " ".join(f"<{key}>" for key in list(factor.keys())) + " }\n"
    assert capsys.readouterr().out == change_value + text.partition("}\n")[2]
    factor.printKeys()
    factor.printKeys("of", gtsam.DefaultKeyFormatter)
    assert capsys.readouterr().out == f"Factor  {keys}\nof  {keys}\n"


@pytest.mark.requirement("FAC-1")
@pytest.mark.parametrize("key", [0, 1, R, gtsam.symbol("~", 10**8 - 1), (1 << 56) + 3, 2**56, 2**56 - 1])
def test_keys_are_printed_as_gtsam_does(key: int) -> None:
    created = gtsam.MagFactor1(key, MEASURED, SCALE, gtsam.Unit3(FIELD), BIAS, None)
    assert repr(MagFactor1(key, MEASURED, SCALE, FIELD, BIAS)) == repr(created)


@pytest.mark.requirement("FAC-1")
def test_keys_that_gtsam_cannot_print_are_printed() -> None:
    """GTSAM truncates an index after eight digits and fails on a non-ASCII letter."""
    assert "{ r123456789 }" in repr(MagFactor1(gtsam.symbol("r", 123456789), MEASURED, SCALE, FIELD, BIAS))
    assert MagFactor1(2**64 - 1, MEASURED, SCALE, FIELD, BIAS).keys() == [2**64 - 1]
    assert "keys = { \ufffd" in repr(MagFactor1(2**64 - 1, MEASURED, SCALE, FIELD, BIAS))


@pytest.mark.requirement("FAC-1")
@pytest.mark.parametrize(
    "change",
    [
        {"measured": [20.0, 6.0, 41.0]},
        {"scale": 50.0},
        {"direction": [22.0, -2.0, 45.0]},
        {"bias": [1.0, -2.0, 4.0]},
        {"noiseModel": 0.6},
        {"pose_key": 2},
        {"body_P_sensor": MOUNTING_3.inverse()},
        {"body_P_sensor": gtsam.Pose3(ROT, np.zeros(3))},
        {"body_P_sensor": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_equality_compares_every_field(change: dict[str, Any]) -> None:
    first = {"pose_key": 1, "measured": MEASURED, "scale": SCALE, "direction": FIELD, "bias": BIAS}
    first |= {"noiseModel": 0.5, "body_P_sensor": MOUNTING_3}
    factor, same, change_value = (MagPoseFactorPose3(**fields) for fields in (first, first, first | change))
    assert factor.equals(same)
    assert not factor.equals(change_value)
    assert not change_value.equals(factor)
    assert factor.equals(change_value, 10.0) is (
        not {"pose_key", "body_P_sensor"} & set(change) or change.get("body_P_sensor") is not None
    )


@pytest.mark.requirement("FAC-1")
def test_equality_compares_data_where_gtsam_compares_keys() -> None:
    arguments = (R, MEASURED, SCALE, gtsam.Unit3(FIELD), BIAS, gtsam.noiseModel.Unit.Create(3))
    other = (R, MEASURED + 1.0, *arguments[2:])
    assert gtsam.MagFactor1(*arguments).equals(gtsam.MagFactor1(*other), 1e-9)
    assert not MagFactor1(*arguments).equals(MagFactor1(*other), 1e-9)
    assert MagFactor1(*arguments).equals(MagFactor1(*other), 1.0)
    assert not MagFactor1(*arguments).equals(MagFactor(*arguments))
    assert not MagFactor1(*arguments).equals(gtsam.MagFactor1(*arguments))
    two = MagFactor2(1, 2, MEASURED, Q)
    assert not two.equals(MagFactor2(1, 2, MEASURED, ROT))
    assert not two.equals(MagFactor2(2, 1, MEASURED, Q))
    assert two.equals(MagFactor2(1, 2, MEASURED, np.eye(3)))


@pytest.mark.requirement("FAC-1")
@each
def test_factors_can_be_copied(factor: Factor, inputs: list[Any]) -> None:
    _, values = make_values(factor, inputs)
    for other in (factor.clone(), copy.copy(factor), copy.deepcopy(factor), pickle_and_unpickle(factor)):
        assert other is not factor
        assert other.equals(factor, 0.0)
        assert repr(other) == repr(factor)
        assert (other.whitenedError(values) == factor.whitenedError(values)).all()
    quiet = factor.cloneWithNewNoiseModel(None)
    assert quiet.error(values) == pytest.approx(
        0.5 * float((quiet.unwhitenedError(values) ** 2).sum()), rel=1e-12, abs=0.0
    )
    assert quiet.noiseModel() is None
    assert factor.noiseModel() is not None
    keys = [90 + i for i in range(factor.size())]
    moved = factor.rekey(keys)
    assert moved.keys() == keys
    assert moved.rekey(factor.keys()).equals(factor, 0.0)
    with pytest.raises(FactorError, match="keys"):
        factor.rekey([1, 2, 3, 4])


@pytest.mark.requirement("FAC-1")
def test_replaced_noise_model_is_rotated_to_the_sensor_frame() -> None:
    factor, values = FAMILY["MagPoseFactorPose3"]
    sigmas = [1.0, 2.0, 3.0]
    fresh = MagPoseFactorPose3(R, MEASURED, SCALE, FIELD, BIAS, sigmas, MOUNTING_3)
    assert factor.cloneWithNewNoiseModel(sigmas).error({R: values[0]}) == fresh.error({R: values[0]})


ONE = (R, MEASURED, SCALE, FIELD, BIAS)
NAN = float("nan")


def change_value(position: int, value: Any, factor: Callable[..., Any] = MagFactor1) -> Callable[[], Any]:
    return lambda: factor(*ONE[:position], value, *ONE[position + 1 :])


@pytest.mark.requirement("FAC-1:refusals")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (change_value(0, -1), "^key: -1; must be an integer from 0"),
        (change_value(0, 2**64), "^key: "),
        (change_value(0, 1.0), "^key: 1.0"),
        (change_value(0, "r0"), r"^key: r0.*gtsam.symbol"),
        (change_value(0, True), "^key: True"),
        (change_value(1, MEASURED[:2]), r"^shape of measured: \(2,\); must be 3 numbers"),
        (change_value(1, MEASURED[:, None]), r"^shape of measured: \(3, 1\)"),
        (change_value(1, [1.0, NAN, 2.0]), "^measured: .*must be finite"),
        (change_value(1, [np.inf, -np.inf, 2.0]), "^measured: .*must be finite"),
        (change_value(1, "123"), "^measured: 123"),
        (change_value(1, ["1", "2", "3"]), "^measured: "),
        (change_value(1, None), "^measured"),
        (change_value(1, [1.0 + 2.0j, 1.0, 1.0]), "^measured: "),
        (change_value(1, [[1.0], [2.0, 3.0]]), "^measured: "),
        (change_value(1, [True, False, True]), "^measured: "),
        (change_value(2, NAN), "^scale: nan; must be finite"),
        (change_value(2, [1.0, 2.0]), r"^shape of scale: \(2,\); must be one number"),
        (change_value(2, "5"), "^scale: 5"),
        (change_value(3, [0.0, 0.0, 0.0]), "^direction: .*must not be zero"),
        (change_value(3, [0.0, NAN, 0.0]), "^direction: .*must be finite"),
        (change_value(3, [1.0, 0.0]), "^shape of direction"),
        (change_value(3, gtsam.Unit3(np.zeros(3))), "^direction: .*must have a length"),
        (change_value(3, gtsam.Unit3(np.full(3, NAN))), "^direction: .*must have a length"),
        (change_value(4, [0.0, 0.0]), "^shape of bias"),
        (change_value(4, [0.0, 0.0, NAN]), "^bias: .*must be finite"),
        (change_value(4, NAN, MagFactor), "^bias|^shape of bias"),
        (lambda: MagFactor2(1, 1, MEASURED, Q), r"^keys: \[1, 1\]; must differ"),
        (lambda: MagFactor3(1, 2, 1, MEASURED, Q), "^keys: .*must differ"),
        (lambda: MagFactor3(1, -2, 1, MEASURED, Q), "^key2: -2"),
        (lambda: MagFactor2(1, 2, MEASURED, [1.0, 1.0, 0.0, 0.0]), "^nRb: .*quaternion w x y z of length 1"),
        (lambda: MagFactor2(1, 2, MEASURED, 2.0 * np.eye(3)), "^nRb: .*must be a rotation"),
        (lambda: MagFactor2(1, 2, MEASURED, np.diag([1.0, 1.0, -1.0])), "^nRb: .*not a reflection"),
        (lambda: MagFactor2(1, 2, MEASURED, np.full((3, 3), NAN)), "^nRb: .*must be finite"),
        (lambda: MagFactor2(1, 2, MEASURED, gtsam.Rot3(np.full((3, 3), NAN))), "^nRb"),
        (lambda: MagFactor2(1, 2, MEASURED, gtsam.Rot2(0.3)), "^nRb: "),
        (lambda: MagFactor2(1, 2, MEASURED, [0.1, 0.2, 0.3]), r"^shape of nRb: \(3,\); must be a Rot3"),
        (lambda: MagPoseFactorPose3(*ONE, 1.0, MOUNTING_2), "^body_P_sensor: .*must be a Pose3"),
        (lambda: MagPoseFactorPose3(*ONE, 1.0, np.diag([1.0, 1.0, 1.0, 2.0])), "^last row of body_P_sensor"),
        (lambda: MagPoseFactorPose3(*ONE, 1.0, np.diag([1.0, 1.0, 2.0, 1.0])), "^body_P_sensor: .*rotation"),
        (lambda: MagPoseFactorPose2(*ONE), r"^shape of measured: \(3,\); must be 2 numbers"),
        (lambda: MagPoseFactorPose2(R, [1, 2], 1.0, gtsam.Unit3(FIELD), [0, 0]), "^direction"),
        (lambda: MagPoseFactorPose2(R, [1, 2], 1.0, [1, 0], [0, 0], 1.0, np.diag([1.0, -1.0, 1.0])), "^body_P_sensor"),
    ],
)
def test_invalid_factor_arguments_are_errors(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(FactorError, match=words) as error:
        make()
    assert isinstance(error.value, ValueError)


ATTITUDE, SPACE = FAMILY["MagFactor1"][0], FAMILY["MagPoseFactorPose3"][0]
THREE, LEVEL, PLANE = FAMILY["MagFactor3"][0], FAMILY["MagFactor"][0], FAMILY["MagPoseFactorPose2"][0]


@pytest.mark.requirement("FAC-1:refusals")
@pytest.mark.parametrize(
    ("factor", "inputs", "words"),
    [
        (ATTITUDE, [Q, np.zeros((3, 2))], r"^H: \(3, 2\) of float64; must be an array \(3, 3\) of float64"),
        (ATTITUDE, [Q, np.zeros((3, 3), np.float32)], r"^H: \(3, 3\) of float32"),
        (ATTITUDE, [Q, np.zeros(9)], r"^H: \(9,\) of float64"),
        (ATTITUDE, [Q, np.zeros((0, 0))], r"^H: \(0, 0\)"),
        (ATTITUDE, [Q, [[0.0] * 3] * 3], "^H: .*must be an array"),
        (ATTITUDE, [Q, np.broadcast_to(0.0, (3, 3))], "is read-only"),
        (
            THREE,
            [1.0, FIELD, BIAS, None, np.zeros((3, 3))],
            r"^H2: \(3, 3\) of float64; must be an array \(3, 2\)",
        ),
        (THREE, [1.0, FIELD, BIAS, np.zeros((3, 2))], "^H1: "),
        (THREE, [[1.0], FIELD, BIAS], "^shape of scale"),
        (THREE, [1.0, np.zeros(3), BIAS], "^direction: .*must not be zero"),
        (THREE, [1.0, FIELD, NAN * BIAS], "^bias: .*must be finite"),
        (ATTITUDE, [0.3], r"^shape of nRb: \(\); must be a Rot3"),
        (ATTITUDE, [gtsam.Pose3()], "^nRb"),
        (ATTITUDE, [gtsam.Rot3(np.full((3, 3), NAN))], "^nRb: .*must be finite"),
        (THREE, [1.7e308, FIELD, [-1.7e308, 0.0, 1.7e308]], "^residual of MagFactor3: .*finite"),
        (ATTITUDE, [np.eye(3) + 1e-5], "^nRb: .*must be a rotation"),
        (LEVEL, [NAN], "^nRb"),
        (LEVEL, [[[1.0, 0.0], [0.0, -1.0]]], "^nRb: .*must be a rotation"),
        (LEVEL, [[[1.0, 0.1], [0.0, 1.0]]], "^nRb: .*must be a rotation"),
        (LEVEL, [gtsam.Rot3()], "^nRb"),
        (PLANE, [0.3], "^shape of nPb"),
        (PLANE, [gtsam.Pose3()], "^nPb"),
        (SPACE, [gtsam.Pose2()], "^nPb"),
        (SPACE, [[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]], "^nPb: .*quaternion"),
    ],
)
def test_invalid_factor_queries_are_errors(factor: Any, inputs: list[Any], words: str) -> None:
    with pytest.raises(FactorError, match=words):
        factor.evaluateError(*inputs)


@pytest.mark.requirement("FAC-1:refusals")
def test_near_rotation_matrices_are_checked() -> None:
    """Long or non-orthogonal rows and reflections are errors. A rotation rounded to float32 is accepted."""
    factor: Any = ATTITUDE
    good = ROT.matrix()
    for i in range(3):
        long, skewed, mirrored = good.copy(), good.copy(), good.copy()
        long[i] *= 1.0 + 1e-6
        skewed[i] += 2e-6 * skewed[i - 1]
        mirrored[:, i] *= -1.0
        for matrix in (long, skewed, mirrored, mirrored[[1, 2, 0]]):
            with pytest.raises(FactorError, match=r"^nRb: "):
                factor.evaluateError(matrix)
    rounded = factor.evaluateError(good.astype(np.float32))
    assert rounded == pytest.approx(factor.evaluateError(ROT), abs=1e-6 * SCALE)


@pytest.mark.requirement("FAC-1:refusals")
def test_invalid_array_leaves_the_others_unchanged() -> None:
    factor: Any = THREE
    first = np.full((3, 1), 5.0)
    with pytest.raises(FactorError, match="H3"):
        factor.evaluateError(1.0, FIELD, BIAS, first, None, np.zeros((3, 1)))
    assert (first == 5.0).all()


@pytest.mark.requirement("FAC-1:refusals")
def test_missing_or_mistyped_values_are_an_error() -> None:
    wrong = gtsam.Values()
    with pytest.raises(FactorError, match=r"value of r0 \(nRb\): is not there; must be a Rot3"):
        ATTITUDE.error(wrong)
    with pytest.raises(FactorError, match=r"value of r0 \(nRb\): is not there"):
        ATTITUDE.error({})
    wrong.insert(R, gtsam.Rot2(0.3))
    for call in (ATTITUDE.error, ATTITUDE.linearize, ATTITUDE.unwhitenedError):
        with pytest.raises(FactorError, match=r"value of r0 \(nRb\): is of another kind; must be a Rot3"):
            call(wrong)
    with pytest.raises(FactorError, match=r"values: .*must be a mapping"):
        ATTITUDE.error([ROT])
    with pytest.raises(FactorError, match=r"length of H: 0; must be 1"):
        ATTITUDE.unwhitenedError({R: ROT}, [])
    with pytest.raises(FactorError, match=r"must be gtsam.Values"):
        ATTITUDE.linearize({R: ROT})


@pytest.mark.requirement("FAC-1:values")
def test_vector_and_point3_biases_are_accepted() -> None:
    """`insert` stores an array as a vector, `insertPoint3` as a point. Both are accepted as a bias."""
    factor, (field, bias) = FAMILY["MagFactor2"]
    values = gtsam.Values()
    values.insert(R, field)
    values.insertPoint3(7, bias)
    assert factor.error(values) == factor.error({R: field, 7: bias})
    values = gtsam.Values()
    values.insert(R, field[:2])
    values.insertPoint3(7, bias)
    with pytest.raises(FactorError, match=r"value of r0 \(nM\): is of another kind; must be a Point3"):
        factor.error(values)


UNITS = [(1e-9, "nT", "T"), (1e-5, "nT", "G"), (1e-3, "nT", "uT"), (1e-6, "nT", "mT")]


@pytest.mark.requirement("FAC-1:units")
@pytest.mark.parametrize("factor", [MagFactor, MagFactor1, MagPoseFactorPose3])
@pytest.mark.parametrize(("times", "field", "reading"), UNITS)
def test_contradictory_units_warn(factor: Any, times: float, field: str, reading: str) -> None:
    measured = 1000.0 * MEASURED
    with pytest.warns(
        FactorWarning, match=f"the scale looks like {field}, the measurement like {reading}; give"
    ) as caught:
        factor(R, times * measured, 48343.4, FIELD, times * BIAS)
    (warning,) = caught
    assert warning.filename == __file__
    assert "factor(R, times * measured" in linecache.getline(__file__, warning.lineno)
    with pytest.warns(FactorWarning, match=f"the scale looks like {reading}, the measurement like {field}"):
        factor(R, measured, 48343.4 * times, FIELD, BIAS)


@pytest.mark.requirement("FAC-1:units")
def test_unusual_field_strengths_do_not_warn() -> None:
    """A ratio up to 300 does not warn, nor does a single strength."""
    MagFactor1(R, [0.0, 0.0, 299.0], 1.0, FIELD, [0.0, 0.0, 0.0])
    MagFactor1(R, [0.0, 0.0, 1.0], -299.0, FIELD, [0.0, 0.0, 0.0])
    MagFactor1(R, BIAS, 48343.4, FIELD, BIAS)
    MagFactor1(R, MEASURED, 0.0, FIELD, BIAS)
    with pytest.warns(FactorWarning, match="long; give scale"):  # too large for any unit
        MagFactor1(R, [0.0, 0.0, 301e8], 1e8, FIELD, [0.0, 0.0, 0.0])


WITHOUT = """
    import sys
    import numpy as np
    import navsense.factors as f
    assert "gtsam" not in sys.modules, "imported before it is asked for"
    assert "numba" not in sys.modules, "a single factor needs no compiler"
    sys.modules["gtsam"] = None  # from here on it cannot be imported
    from navsense.core.errors import FactorError
    known = ([20.0, 6.0, 40.0], 49.0, [22.0, -2.0, 44.0], [1.0, -2.0, 3.0])
    flat = ([20.0, 6.0], 22.0, [22.0, -2.0], [1.0, -2.0])
    r0, q = ord("r") << 56, [1.0, 0.0, 0.0, 0.0]
    family = [
        (f.MagFactor(r0, *known, 2.0), [0.3], [1]),
        (f.MagFactor1(r0, *known, [1.0, 2.0, 3.0]), [q], [3]),
        (f.MagFactor2(r0, 1, known[0], np.eye(3), np.diag([1.0, 4.0, 9.0]) + 0.1), [known[2], known[3]], [3, 3]),
        (f.MagFactor3(r0, 1, 2, known[0], q), [49.0, known[2], known[3]], [1, 2, 3]),
        (f.MagPoseFactorPose2(r0, *flat, [1.0, 2.0], [1.0, 2.0, 0.3]), [[3.0, 4.0, 0.5]], [3]),
        (f.MagPoseFactorPose3(r0, *known, [1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.6, 0.8, 0.0, 0.0]), [np.eye(4)], [6]),
    ]
    for factor, given, sizes in family:
        blocks = [np.zeros((factor.dim(), size)) for size in sizes]
        residual = factor.evaluateError(*given, *blocks)
        values = dict(zip(factor.keys(), given))
        found = [None] * len(sizes)
        assert (factor.unwhitenedError(values, found) == residual).all()
        assert all((a == b).all() for a, b in zip(blocks, found))
        assert factor.error(values) > 0.0
        factor.print()
        assert factor.equals(factor.clone())
        for call in (factor.to_gtsam, lambda: factor.linearize(values)):
            try:
                call()
            except FactorError as error:
                assert "pip install 'navsense[gtsam]'" in str(error), error
            else:
                raise AssertionError(call)
"""


@pytest.mark.requirement("FAC-1:without gtsam")
def test_arrays_need_no_gtsam() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(WITHOUT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Factor\n  keys = { r0") == 6
    assert "isotropic dim=3 sigma=2\n" in done.stdout
