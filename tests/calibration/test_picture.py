"""Pictures before and after: what they are drawn from, and that they are written."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from navsense.calibration import Calibration, draw, ellipsoid, known_attitude
from navsense.calibration.picture import BINS, MOST_POINTS, residuals
from navsense.calibration.verdict import Verdict
from navsense.errors import CalibrationError
from navsense.typing import FloatArray

pytestmark = pytest.mark.requirement("FAC-7")


@pytest.fixture(scope="module")
def scene(bags: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[FloatArray, FloatArray]:
    """Return readings (n, 3) T and attitudes (n, 4)."""
    given = bags.Scene(tmp_path_factory.mktemp("none"), count=4000, rate=50.0)
    return bags.readings(given), bags.wxyz(bags.body(bags.times(given)) * bags.MOUNTED)


def by_hand(soft_iron: FloatArray, direction: FloatArray | None) -> Calibration:
    """Return a calibration with round numbers, in nT."""
    names, verdict = ("scale",), Verdict(0.0, 1.0)
    bias = np.array([100.0, -50.0, 20.0])
    return Calibration("hand", 50e3, direction, bias, soft_iron, np.eye(1), names, 1, 0.0, 4, "nT", None, verdict)


def test_residuals_are_the_readings_less_the_model() -> None:
    # A quarter turn about z: the world's x is seen along -y of the sensor.
    quarter = np.array([[math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]])
    found = by_hand(np.diag([1.25, 0.8, 1.0]), np.array([1.0, 0.0, 0.0]))
    reading = np.array([[100.0, -50.0 - 0.8 * 50e3, 20.0]])
    left = np.array([[3.0, -2.0, 1.0]])
    assert np.allclose(residuals(reading + left, found, quarter), left, rtol=0.0, atol=1e-9)


def test_residuals_without_attitude_are_distances_from_the_ellipsoid() -> None:
    found = by_hand(np.diag([1.25, 0.8, 1.0]), None)
    centre = np.array([100.0, -50.0, 20.0])
    ends = centre + np.diag([1.25 * 50e3, 0.8 * 50e3, 50e3]) + np.diag([7.0, 5.0, -3.0])
    assert np.allclose(residuals(ends, found), [7.0, 5.0, -3.0], rtol=0.0, atol=1e-6)
    # Off its axes: the foot of a normal, 11 nT above the surface, whose normal is S^-2 (x - centre).
    foot = np.array([1.25, 0.8, 1.0]) * 50e3 * np.array([0.6, 0.48, 0.64])
    normal = foot / np.array([1.25, 0.8, 1.0]) ** 2
    above = centre + foot + 11.0 * normal / np.linalg.norm(normal)
    assert np.allclose(residuals(above[None], found), 11.0, rtol=1e-3)  # first order: 11 nT over 50 uT, times curvature


def test_residuals_have_the_deviation_that_was_found(scene: tuple[FloatArray, FloatArray]) -> None:
    field, rotation = scene
    turned, free = known_attitude(field, rotation), ellipsoid(field)
    left = residuals(field, turned, rotation)
    assert left.shape == field.shape
    assert math.isclose(float(left.std()), turned.residual_stddev, rel_tol=0.01)
    alone = residuals(field, free)
    assert alone.shape == field.shape[:1]
    # Deviations of 4000 numbers scatter by 1.1 percent; the same numbers are behind both, but for nine parameters.
    assert math.isclose(float(alone.std()), free.residual_stddev, rel_tol=0.02)


@pytest.mark.parametrize(("attitude", "suffix"), [(True, ".png"), (False, ".PNG"), (False, ".svg"), (True, ".pdf")])
def test_pictures_are_written(
    scene: tuple[FloatArray, FloatArray], attitude: bool, suffix: str, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    field, rotation = scene
    target = tmp_path / f"before-after{suffix}"
    if attitude:
        draw(target, field, known_attitude(field, rotation, strength=48e-6), rotation_ws=rotation, noise=2e-7)
    else:
        draw(target, field * 1e9, ellipsoid(field * 1e9, unit="nT"))
    head = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix.lower()]
    assert target.read_bytes().startswith(head)
    assert target.stat().st_size < 3_000_000


def test_what_is_drawn(scene: tuple[FloatArray, FloatArray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers behind the lines: points, circle, length, bins."""
    figure = pytest.importorskip("matplotlib.figure")
    kept = []
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, *_, **__: kept.append(self))
    field, rotation = scene
    found = known_attitude(field, rotation, strength=48e-6)
    draw(tmp_path / "x.png", field, found, rotation_ws=rotation, noise=2e-7)
    flat, _, side, lengths, histogram = kept[0].axes
    before, after, circle, bias, _ = flat.lines
    rows = np.unique(np.linspace(0, 3999, MOST_POINTS).astype(int))
    assert np.allclose(before.get_xydata(), 1e6 * field[rows][:, :2])
    assert np.allclose(after.get_xydata(), 1e6 * found.apply(field[rows])[:, :2])
    assert np.allclose(np.linalg.norm(circle.get_xydata(), axis=1), 48.0)
    assert np.allclose(bias.get_xydata(), 1e6 * found.bias[:2])
    assert np.allclose(side.lines[0].get_xydata(), 1e6 * field[rows][:, 1:])
    assert np.allclose(lengths.lines[1].get_ydata(), 1e6 * np.linalg.norm(found.apply(field[rows]), axis=1))
    assert lengths.lines[2].get_ydata() == pytest.approx([48.0, 48.0])
    heights = np.array([patch.get_height() for patch in histogram.patches])
    assert heights.size == BINS
    assert math.isclose(heights.sum() * histogram.patches[0].get_width(), 1.0)
    labels = [line.get_label() for line in histogram.lines]
    assert labels[1] == "declared: 200 nT"
    assert labels[0].startswith("found: ")
    assert histogram.get_xlabel() == "residual an axis (nT)"


def test_pictures_that_cannot_be_written(
    scene: tuple[FloatArray, FloatArray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field, _ = scene
    found = ellipsoid(field)
    with pytest.raises(CalibrationError, match=r"picture: .*\.gif; must end in \.png, \.svg, \.pdf"):
        draw(tmp_path / "x.gif", field, found)
    pytest.importorskip("matplotlib")
    with pytest.raises(CalibrationError, match=r"x\.png picture: No such file"):
        draw(tmp_path / "no" / "x.png", field, found)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(CalibrationError, match="a picture needs matplotlib; pip install matplotlib"):
        draw(tmp_path / "x.png", field, found)
