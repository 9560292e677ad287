"""The factors have the values of GTSAM's tests and pages: tests/oracles/gtsam/README.md."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from navsense.core.pose import Pose, from_rpy
from navsense.core.typing import FloatArray
from navsense.factors import MagFactor, MagFactor1, MagFactor2, MagFactor3, MagPoseFactorPose2, MagPoseFactorPose3
from navsense.factors.geometry import tangent_basis_python

FIGURES: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent.parent / "oracles" / "gtsam" / "figures.toml").read_text(encoding="utf-8")
)
A, B, PAGE = FIGURES["a"], FIGURES["b"], FIGURES["pose_page"]
NM, K, BIAS, YAW, SIGMA = (FIGURES[name] for name in ("nM", "k", "bias", "yaw", "sigma"))
Q = from_rpy(0.0, 0.0, YAW)
MOUNTING = Pose(tuple(B["mounting_3_position"]), from_rpy(*B["mounting_3_rpy"]))
BODY = Pose(tuple(B["position"]), Q)


def make_cross_matrix(q: list[float]) -> FloatArray:
    return np.array([[0.0, -q[2], q[1]], [q[2], 0.0, -q[0]], [-q[1], q[0], 0.0]])


def list_known_values(factor: Any) -> Any:
    return factor(1, A["measured"], A["scale"], A["direction"], BIAS, SIGMA)


@pytest.mark.requirement("FAC-1:MagFactor", "FAC-2")
def test_heading_factor_has_published_values() -> None:
    block = np.full((3, 1), np.nan)
    assert list_known_values(MagFactor).evaluateError(YAW, block) == pytest.approx(np.zeros(3), abs=1e-12)
    assert pytest.approx(np.array(A["jacobians"]["MagFactor"]), abs=6e-13) == block
    field = MagFactor(1, [0.0, 0.0, 0.0], 1.0, NM, [0.0, 0.0, 0.0])
    length = math.hypot(*NM)
    assert field.evaluateError(YAW) * length == pytest.approx(A["unrotated"], abs=1e-11)


@pytest.mark.requirement("FAC-1:MagFactor1", "FAC-2")
def test_attitude_factor_has_published_values() -> None:
    block = np.full((3, 3), np.nan)
    assert list_known_values(MagFactor1).evaluateError(Q, block) == pytest.approx(np.zeros(3), abs=1e-12 * A["scale"])
    assert pytest.approx(np.array(A["jacobians"]["MagFactor1"]), abs=6e-7) == block


@pytest.mark.requirement("FAC-1:MagFactor2", "FAC-2")
def test_field_and_bias_factor_has_published_values() -> None:
    first, second = np.full((3, 3), np.nan), np.full((3, 3), np.nan)
    factor = MagFactor2(1, 2, A["measured"], Q, SIGMA)
    error = factor.evaluateError(K * np.array(NM), np.array(BIAS), first, second)
    assert error == pytest.approx(np.zeros(3), abs=1e-12 * A["scale"])
    assert first == pytest.approx(np.array(A["jacobians"]["rotation"]), abs=6e-10)
    assert (second == np.eye(3)).all()


@pytest.mark.requirement("FAC-1:MagFactor3", "FAC-2")
def test_scale_direction_and_bias_factor_has_published_values() -> None:
    blocks = [np.full((3, n), np.nan) for n in (1, 2, 3)]
    factor = MagFactor3(1, 2, 3, A["measured"], Q, SIGMA)
    error = factor.evaluateError(A["scale"], A["direction"], BIAS, *blocks)
    assert error == pytest.approx(np.zeros(3), abs=1e-12 * A["scale"])
    assert blocks[0] == pytest.approx(np.array(A["jacobians"]["by_scale"]), abs=6e-12)
    assert blocks[1] == pytest.approx(np.array(A["jacobians"]["by_direction"]), abs=6e-11)
    assert (blocks[2] == np.eye(3)).all()


@pytest.mark.requirement("FAC-1:MagPoseFactorPose2", "FAC-2")
@pytest.mark.parametrize("mounting", [None, B["mounting_2"]], ids=["at the body", "mounted"])
def test_plane_pose_factor_has_published_values(mounting: list[float] | None) -> None:
    measured = B["measured_2"] if mounting is None else B["measured_2_mounted"]
    factor = MagPoseFactorPose2(1, measured, K, NM[:2], BIAS[:2], SIGMA, mounting)
    block = np.full((2, 3), np.nan)
    assert factor.evaluateError([*B["position"][:2], YAW], block) == pytest.approx(np.zeros(2), abs=1e-11)
    assert pytest.approx(np.array(B["jacobian_2"]), abs=6e-12) == block
    assert "local field (nM): " in repr(factor)


@pytest.mark.requirement("FAC-1:MagPoseFactorPose3", "FAC-2")
@pytest.mark.parametrize("mounting", [None, MOUNTING], ids=["at the body", "mounted"])
def test_pose_factor_has_published_values(mounting: Pose | None) -> None:
    measured = B["measured_3"] if mounting is None else B["measured_3_mounted"]
    factor = MagPoseFactorPose3(1, measured, K, NM, BIAS, SIGMA, mounting)
    block = np.full((3, 6), np.nan)
    assert factor.evaluateError(BODY, block) == pytest.approx(np.zeros(3), abs=1e-11)
    assert block[:, :3] == pytest.approx(make_cross_matrix(B["predicted_3"]), abs=1e-10)
    assert (block[:, 3:] == 0.0).all()


@pytest.mark.requirement("FAC-1:MagPoseFactorPose3", "FAC-3")
def test_pose_factor_example_prints_the_published_text(capsys: pytest.CaptureFixture[str]) -> None:
    """The example's lines with a plain rotation print the published text to nine digits."""
    angle, turn = math.radians(PAGE["true_pitch_deg"]), math.radians(PAGE["mounting_yaw_deg"])
    x, y, z = PAGE["scale"] * np.array(PAGE["direction"]) / np.linalg.norm(PAGE["direction"])
    bx, by, bz = x * math.cos(angle) - z * math.sin(angle), y, x * math.sin(angle) + z * math.cos(angle)
    sensor = [bx * math.cos(turn) + by * math.sin(turn), -bx * math.sin(turn) + by * math.cos(turn), bz]
    mounting = Pose(tuple(PAGE["mounting_position"]), from_rpy(0.0, 0.0, turn))
    key = (ord("x") << 56) + 0
    factor = MagPoseFactorPose3(
        key, np.add(sensor, PAGE["bias"]), PAGE["scale"], PAGE["direction"], PAGE["bias"], PAGE["sigma"], mounting
    )
    factor.print("")
    assert capsys.readouterr().out == PAGE["text"]
    position = tuple(PAGE["position"])
    at_truth = factor.evaluateError(Pose(position, from_rpy(0.0, angle, 0.0)))
    assert at_truth == pytest.approx(np.zeros(3), abs=1e-10)
    away = factor.evaluateError(Pose(position, from_rpy(0.0, math.radians(PAGE["pitch_deg"]), 0.0)))
    assert away == pytest.approx(PAGE["error"], abs=5.1e-9)


@pytest.mark.requirement("FAC-2")
@pytest.mark.parametrize("row", FIGURES["basis"], ids=lambda row: str(row["at"]))
def test_tangent_basis_equals_gtsam(row: dict[str, list[float]]) -> None:
    basis = tangent_basis_python(*row["at"])
    assert basis[:3] == pytest.approx(row["first"], abs=1e-15)
    assert basis[3:] == pytest.approx(row["second"], abs=1e-15)


@pytest.mark.requirement("FAC-2", "FAC-5")
def test_signs_match_a_manual_calculation() -> None:
    """A body rotated by 30 degrees from x to y measures a field along x at -30 degrees."""
    c, s = math.cos(math.pi / 6.0), 0.5
    for factor in (MagFactor, MagFactor1):
        zero = factor(1, [0.0, 0.0, 0.0], 2.0, [1.0, 0.0, 0.0], [0.0, 0.0, 0.0])
        value = math.pi / 6.0 if factor is MagFactor else from_rpy(0.0, 0.0, math.pi / 6.0)
        assert zero.evaluateError(value) == pytest.approx([2.0 * c, -2.0 * s, 0.0], abs=1e-15)
        other = factor(1, [1.0, 2.0, 3.0], 2.0, [1.0, 0.0, 0.0], [10.0, 20.0, 30.0])
        assert other.evaluateError(value) == pytest.approx([2.0 * c + 9.0, -2.0 * s + 18.0, 27.0], abs=1e-14)
