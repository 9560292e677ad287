"""RDI's axes equal RDI's values and SciPy's rotations. Source: tests/oracles/rdi/README.md."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from navsense.core.errors import RecordingError
from navsense.core.typing import FloatArray
from navsense.devices import rdi_frames

RDI = Path(__file__).resolve().parents[1] / "oracles" / "rdi" / "janus.csv"


def make_axes(azimuths: FloatArray, *, up: bool, angle: float = 0.5) -> FloatArray:
    """Return beams at azimuths (degrees), clockwise from forward, in starboard, forward, mast axes."""
    a, s = np.radians(azimuths), math.sin(angle)
    return np.stack((s * np.sin(a), s * np.cos(a), np.full(a.shape, math.cos(angle) * (1.0 if up else -1.0))), axis=1)


@pytest.mark.requirement("REC-1:devices")
def test_transformation_equals_rdi_values() -> None:
    with RDI.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            a, b, d = (float(row[name]) for name in "abd")
            b1, b2, b3, b4 = beams = np.random.default_rng(1).normal(size=4)
            expected = (a * (b1 - b2), a * (b4 - b3), b * beams.sum(), d * (b1 + b2 - b3 - b4))
            assert rdi_frames.solve_rdi_velocity(beams, math.radians(float(row["angle_deg"]))) == pytest.approx(
                expected, abs=3e-8
            )


def test_three_beam_solution_assumes_zero_error_velocity() -> None:
    complete = np.array((0.3, -0.2, 0.5, -0.4))  # b1 + b2 = b3 + b4
    for missing in range(4):
        beams = complete.copy()
        beams[missing] = math.nan
        found = rdi_frames.solve_rdi_velocity(beams, 0.4)
        assert found[:3] == pytest.approx(rdi_frames.solve_rdi_velocity(complete, 0.4)[:3], rel=1e-12, abs=0.0)
        assert math.isnan(found[3])
    assert np.isnan(rdi_frames.solve_rdi_velocity(np.array((math.nan, math.nan, 1.0, 1.0)), 0.4)).all()


@pytest.mark.parametrize("up", [False, True])
def test_rotations_round_trip_to_angles(up: bool) -> None:
    rng = np.random.default_rng(2)
    heading, pitch, roll = rng.uniform(0.0, 6.28, 200), *rng.uniform(-1.2, 1.2, (2, 200))
    found = rdi_frames.make_rotation(heading, pitch, roll, looks_up=up)
    tilt = np.arctan(np.tan(pitch) * np.cos(roll))
    turns = np.stack((-heading, tilt, roll + (math.pi if up else 0.0)), axis=1)
    assert np.abs(found - Rotation.from_euler("ZXY", turns).as_matrix()).max() < 1e-14
    back = rdi_frames.compute_angles(found, looks_up=up)
    assert (
        max(float(np.abs(one - other).max()) for one, other in zip(back, (heading, pitch, roll), strict=True)) < 1e-12
    )


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("first", [0.0, 10.0, 44.0, 45.0, 80.0, -45.0, -30.0])
def test_beam_order_and_mounting_are_found(first: float, up: bool) -> None:
    azimuths = first + np.array((180.0, 0.0, 270.0, 90.0))
    looks = make_axes(azimuths, up=up)
    found = rdi_frames.find_rdi_beams(looks, "s")
    third = azimuths[found.order[2]]
    assert (third + 45.0 - 1e-9) % 360.0 <= 90.0 + 1e-9
    assert math.degrees(found.azimuth) == pytest.approx((third + 180.0) % 360.0 - 180.0, abs=1e-9)
    assert found.looks_up == up
    assert found.angle == pytest.approx(0.5, rel=1e-12, abs=0.0)
    velocity = np.random.default_rng(3).normal(size=3)
    own = rdi_frames.solve_rdi_velocity(looks[found.order] @ velocity, found.angle)
    assert own[3] == pytest.approx(0.0, abs=1e-12)
    assert found.rotation @ own[:3] == pytest.approx(-velocity, rel=1e-12, abs=0.0)
    assert np.linalg.det(found.rotation) == pytest.approx(1.0, rel=1e-12, abs=0.0)
    # Beam 2 is to starboard of beam 3 if they point down, to port if they point up.
    side = (azimuths[found.order[1]] - third) % 360.0
    assert side == pytest.approx(270.0 if up else 90.0, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(
    "looks",
    [
        make_axes(np.array((0.0, 90.0, 180.0)), up=False),
        make_axes(np.array((0.0, 80.0, 180.0, 270.0)), up=False),
        make_axes(np.array((0.0, 90.0, 180.0, 270.0)), up=False) @ Rotation.from_rotvec((0.0, 1.2, 0.0)).as_matrix(),
        np.concatenate(
            (make_axes(np.array((0.0, 90.0, 180.0)), up=False), make_axes(np.array((270.0,)), up=False, angle=0.4))
        ),
    ],
    ids=["three", "askew", "sideways", "two angles"],
)
def test_non_rdi_beam_geometry_is_an_error(looks: FloatArray) -> None:
    with pytest.raises(RecordingError, match="beams of sensor 'a::b'; this format requires four beams"):
        rdi_frames.find_rdi_beams(looks, "a::b")
