"""Pictures of a calibration: the plotted values, and that files are written."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from navsense.calibration import Calibration, draw, ellipsoid, known_attitude
from navsense.calibration.picture import BINS, MAX_POINTS, compute_residuals, draw_readings
from navsense.calibration.verdict import Verdict
from navsense.core.errors import CalibrationError
from navsense.core.typing import FloatArray

pytestmark = pytest.mark.requirement("FAC-7")


@pytest.fixture(scope="module")
def readings_and_attitudes(bags: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[FloatArray, FloatArray]:
    """Return readings (n, 3) T and attitudes (n, 4)."""
    arguments = bags.BagContent(tmp_path_factory.mktemp("none"), count=4000, rate=50.0)
    return bags.make_readings(arguments), bags.to_wxyz(
        bags.compute_attitudes(bags.make_times(arguments)) * bags.MOUNTING
    )


def make_calibration(soft_iron: FloatArray, direction: FloatArray | None) -> Calibration:
    """Return a calibration with round numbers, in nT."""
    names, verdict = ("scale",), Verdict(0.0, 1.0)
    bias = np.array([100.0, -50.0, 20.0])
    return Calibration("hand", 50e3, direction, bias, soft_iron, np.eye(1), names, 1, 0.0, 4, "nT", None, verdict)


def test_residuals_are_readings_minus_model() -> None:
    # A quarter turn about z: the world's x is along -y of the sensor.
    quarter = np.array([[math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]])
    found = make_calibration(np.diag([1.25, 0.8, 1.0]), np.array([1.0, 0.0, 0.0]))
    reading = np.array([[100.0, -50.0 - 0.8 * 50e3, 20.0]])
    left = np.array([[3.0, -2.0, 1.0]])
    assert np.allclose(compute_residuals(reading + left, found, quarter), left, rtol=0.0, atol=1e-9)


def test_residuals_without_attitude_are_distances_from_the_ellipsoid() -> None:
    found = make_calibration(np.diag([1.25, 0.8, 1.0]), None)
    centre = np.array([100.0, -50.0, 20.0])
    ends = centre + np.diag([1.25 * 50e3, 0.8 * 50e3, 50e3]) + np.diag([7.0, 5.0, -3.0])
    assert np.allclose(compute_residuals(ends, found), [7.0, 5.0, -3.0], rtol=0.0, atol=1e-6)
    # Off the axes: 11 nT above a foot point along the normal S^-2 (x - centre).
    foot = np.array([1.25, 0.8, 1.0]) * 50e3 * np.array([0.6, 0.48, 0.64])
    normal = foot / np.array([1.25, 0.8, 1.0]) ** 2
    above = centre + foot + 11.0 * normal / np.linalg.norm(normal)
    assert np.allclose(
        compute_residuals(above[None], found), 11.0, rtol=1e-3, atol=0.0
    )  # to first order: 11 nT over 50 uT, times curvature


def test_residuals_have_the_estimated_deviation(readings_and_attitudes: tuple[FloatArray, FloatArray]) -> None:
    field, rotation = readings_and_attitudes
    turned, free = known_attitude(field, rotation), ellipsoid(field)
    left = compute_residuals(field, turned, rotation)
    assert left.shape == field.shape
    assert math.isclose(float(left.std()), turned.residual_stddev, rel_tol=0.01)
    alone = compute_residuals(field, free)
    assert alone.shape == field.shape[:1]
    # Deviations of 4000 numbers scatter by 1.1 percent. Both use the same numbers, except for nine parameters.
    assert math.isclose(float(alone.std()), free.residual_stddev, rel_tol=0.02)


@pytest.mark.parametrize(("attitude", "suffix"), [(True, ".png"), (False, ".PNG"), (False, ".svg"), (True, ".pdf")])
def test_pictures_are_written(
    readings_and_attitudes: tuple[FloatArray, FloatArray], attitude: bool, suffix: str, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    field, rotation = readings_and_attitudes
    target = tmp_path / f"before-after{suffix}"
    if attitude:
        draw(target, field, known_attitude(field, rotation, strength=48e-6), rotation_ws=rotation, noise=2e-7)
    else:
        draw(target, field * 1e9, ellipsoid(field * 1e9, unit="nT"))
    head = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix.lower()]
    assert target.read_bytes().startswith(head)
    assert target.stat().st_size < 3_000_000


def test_figure_shows_the_expected_elements(
    readings_and_attitudes: tuple[FloatArray, FloatArray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The elements are points, circle, length and bins."""
    figure = pytest.importorskip("matplotlib.figure")
    figures = []
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, *_, **__: figures.append(self))
    field, rotation = readings_and_attitudes
    found = known_attitude(field, rotation, strength=48e-6)
    draw(tmp_path / "x.png", field, found, rotation_ws=rotation, noise=2e-7)
    flat, _, side, lengths, histogram = figures[0].axes
    before, after, circle, bias, _ = flat.lines
    rows = np.unique(np.linspace(0, 3999, MAX_POINTS).astype(int))
    assert np.allclose(before.get_xydata(), 1e6 * field[rows][:, :2], rtol=1e-12, atol=0.0)
    assert np.allclose(after.get_xydata(), 1e6 * found.apply(field[rows])[:, :2], rtol=1e-12, atol=0.0)
    assert np.allclose(np.linalg.norm(circle.get_xydata(), axis=1), 48.0, rtol=1e-12, atol=0.0)
    assert np.allclose(bias.get_xydata(), 1e6 * found.bias[:2], rtol=1e-12, atol=0.0)
    assert np.allclose(side.lines[0].get_xydata(), 1e6 * field[rows][:, 1:], rtol=1e-12, atol=0.0)
    assert np.allclose(
        lengths.lines[1].get_ydata(), 1e6 * np.linalg.norm(found.apply(field[rows]), axis=1), rtol=1e-12, atol=0.0
    )
    assert lengths.lines[2].get_ydata() == pytest.approx([48.0, 48.0], rel=1e-12, abs=0.0)
    heights = np.array([patch.get_height() for patch in histogram.patches])
    assert heights.size == BINS
    assert math.isclose(heights.sum() * histogram.patches[0].get_width(), 1.0)
    labels = [line.get_label() for line in histogram.lines]
    assert labels[1] == "declared: 200 nT"
    assert labels[0].startswith("found: ")
    assert histogram.get_xlabel() == "residual per axis (nT)"


def capture_figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of the figures that are saved."""
    figure = pytest.importorskip("matplotlib.figure")
    figures: list[Any] = []
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, *_, **__: figures.append(self))
    return figures


def test_nanotesla_are_drawn_as_microtesla(
    readings_and_attitudes: tuple[FloatArray, FloatArray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures, field = capture_figures(monkeypatch), readings_and_attitudes[0]
    for factor, unit in ((1.0, "T"), (1e9, "nT")):
        draw(tmp_path / "x.png", factor * field, ellipsoid(factor * field, unit=unit))
    first, second = figures
    for ours, reference in zip(first.axes, second.axes, strict=True):
        assert ours.get_xlabel() == reference.get_xlabel()
    assert np.allclose(first.axes[0].lines[0].get_xydata(), second.axes[0].lines[0].get_xydata(), rtol=1e-12, atol=0.0)
    (text, _, _), raw = (line.get_label() for line in second.axes[3].lines), 1e6 * np.linalg.norm(field, axis=1)
    rows = np.unique(np.linspace(0, 3999, MAX_POINTS).astype(int))
    assert text == f"before: {raw[rows].mean():.0f} ± {raw[rows].std():.0f} µT"


def test_outliers_do_not_flatten_the_histogram(
    readings_and_attitudes: tuple[FloatArray, FloatArray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures, (field, rotation) = capture_figures(monkeypatch), readings_and_attitudes
    found, spoilt = known_attitude(field, rotation), field.copy()
    spoilt[::50] += 20e-6
    draw(tmp_path / "x.png", spoilt, found, rotation_ws=rotation)
    *_, histogram = figures[0].axes
    low, high = histogram.get_xlim()
    assert high == -low == pytest.approx(1e3, rel=0.1, abs=0.0), "5 times 200 nT"
    assert histogram.get_xlabel() == "residual per axis (nT); 240 of 12000 farther out"
    assert np.count_nonzero([patch.get_height() for patch in histogram.patches]) > 40


def test_title_contains_every_reason(
    readings_and_attitudes: tuple[FloatArray, FloatArray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures, field = capture_figures(monkeypatch), readings_and_attitudes[0]
    verdict = Verdict(0.02, 0.99, reasons=("one of these: do it", "residuals are correlated over 64 samples, x: look"))
    draw(tmp_path / "x.png", field, replace(ellipsoid(field), verdict=verdict))
    title = " ".join(figures[0]._suptitle.get_text().split())
    assert title.endswith("verdict poor: one of these; residuals are correlated over 64 samples, x")


def test_counts_are_drawn_as_counts(
    readings_and_attitudes: tuple[FloatArray, FloatArray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures, counts = capture_figures(monkeypatch), 1e8 * readings_and_attitudes[0]
    found = replace(ellipsoid(counts, unit=None), strength=48.0)
    draw(tmp_path / "x.png", counts, found)
    circle = figures[0].axes[0].lines[2]
    assert np.allclose(np.linalg.norm(circle.get_xydata(), axis=1), found.scale, rtol=1e-12, atol=0.0)


def test_rejected_readings_are_drawn_with_the_reason(
    readings_and_attitudes: tuple[FloatArray, FloatArray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field, _ = readings_and_attitudes
    draw_readings(tmp_path / "x.svg", field, "tilt it by $30 or more", unit="T")
    assert (tmp_path / "x.svg").read_bytes().startswith(b"<?xml")
    figures = capture_figures(monkeypatch)
    draw_readings(tmp_path / "x.png", 1e9 * field[:9], "tilt it", unit="nT")
    flat, _, side = figures[0].axes
    assert np.allclose(flat.lines[0].get_xydata(), 1e6 * field[:9, :2], rtol=1e-12, atol=0.0)
    assert np.allclose(side.lines[0].get_xydata(), 1e6 * field[:9, 1:], rtol=1e-12, atol=0.0)
    assert figures[0]._suptitle.get_text() == "9 readings, not calibrated: tilt it"
    with pytest.raises(CalibrationError, match=r"picture: .*must end in"):
        draw_readings(tmp_path / "x.gif", field, "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, q: (m[0], q, 0.0), r"field: shape \(3,\); must be \(n, 3\)"),
        (lambda m, q: (m[:0], q[:0], 0.0), "field: no readings; must be at least one"),
        (lambda m, q: (np.where(np.arange(m.shape[0])[:, None] == 7, np.nan, m), q, 0.0), "field of row 7"),
        (lambda m, q: (m.astype(str), q, 0.0), "field: of type"),
        (lambda m, q: (m, q[:-1], 0.0), r"rotation_ws: shape \(3999, 4\); must be \(4000, 4\)"),
        (lambda m, q: (m, 2.0 * q, 0.0), "rotation_ws of row 0: .*unit length"),
        (lambda m, q: (m, q, math.nan), "noise: nan; must be from 0 up"),
        (lambda m, q: (m, q, -1e-7), "noise: -1e-07; must be from 0 up"),
    ],
)
def test_figure_error_names_the_problem(
    readings_and_attitudes: tuple[FloatArray, FloatArray], change: Any, message: str, tmp_path: Path
) -> None:
    field, rotation = readings_and_attitudes
    found = known_attitude(field, rotation)
    rows, turns, noise = change(field, rotation)
    with pytest.raises(CalibrationError, match=message):
        draw(tmp_path / "x.png", rows, found, rotation_ws=turns, noise=noise)
    assert not (tmp_path / "x.png").exists()


def test_unwritable_pictures_are_errors(
    readings_and_attitudes: tuple[FloatArray, FloatArray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field, _ = readings_and_attitudes
    found = ellipsoid(field)
    with pytest.raises(CalibrationError, match=r"picture: .*\.gif; must end in \.png, \.svg, \.pdf"):
        draw(tmp_path / "x.gif", field, found)
    pytest.importorskip("matplotlib")
    with pytest.raises(CalibrationError, match=r"x\.png: picture: No such file or directory; choose a folder"):
        draw(tmp_path / "no" / "x.png", field, found)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(CalibrationError, match=r"a picture needs matplotlib; pip install 'navsense\[picture\]'"):
        draw(tmp_path / "x.png", field, found)
