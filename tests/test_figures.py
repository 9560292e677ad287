"""The style of charts: colours that colour-blind readers distinguish, in one place, and reproducible pictures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from navsense import figures
from navsense.core.errors import NavsenseError
from navsense.core.typing import FloatArray

ROOT = Path(__file__).resolve().parents[1]

VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
"""Linear RGB of a person without red or green cones, from that of a person with all of them.

Source: Machado, Oliveira, Fernandes, A Physiologically-based Model for Simulation of Color Vision Deficiency, IEEE
Transactions on Visualization and Computer Graphics 15 (6), 2009, table 1 of the supplement, severity 1.
"""

TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
"""Linear sRGB to CIE XYZ. Source: IEC 61966-2-1."""

MIN_DISTANCE = 15.0
"""Minimum distance of two colours in CIELAB: more than six times 2.3, which is just noticeable side by side."""

MIN_CONTRAST = {"text": 4.5, "line": 3.0}
"""Minimum contrast to the background for text and for graphics (WCAG 2.2)."""


def to_linear(colour: str) -> FloatArray:
    """Return the linear RGB (3,) of a colour such as `#0072b2`."""
    encoded = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def to_lab(linear: FloatArray) -> FloatArray:
    """Return the CIELAB coordinates (3,) of a linear RGB colour, with the white of sRGB."""
    ratio = (TO_XYZ @ np.clip(linear, 0.0, 1.0)) / TO_XYZ.sum(axis=1)
    x, y, z = np.where(ratio > (6.0 / 29.0) ** 3, np.cbrt(ratio), ratio * (29.0 / 6.0) ** 2 / 3.0 + 4.0 / 29.0)
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


def compute_contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2.2)."""
    low, high = sorted(float(TO_XYZ[1] @ to_linear(colour)) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def compute_min_distance(colours: list[str], vision: FloatArray) -> float:
    """Return the minimum distance in CIELAB of any two colours, as a person with this vision sees them."""
    seen = [to_lab(vision @ to_linear(colour)) for colour in colours]
    return min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))


PALETTES = {"light": figures.LIGHT, "dark": figures.DARK}

TOGETHER = {
    "lines": ("c0", "c1", "c2", "c3", "ink", "card"),
    "validity": ("good", "bad", "water", "card"),
    "section": ("c1", "water", "earth", "card"),
}
"""Colours of a palette that occur in one plot."""


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("names", TOGETHER.values(), ids=TOGETHER.keys())
@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES.keys())
def test_colours_of_a_plot_differ_for_everybody(palette: figures.Palette, names: tuple[str, ...], vision: str) -> None:
    colours = [getattr(palette, name) for name in names]
    assert compute_min_distance(colours, VISION[vision]) >= MIN_DISTANCE


def test_simulated_vision_keeps_grey_and_merges_red_with_green() -> None:
    """The model of the test: grey stays grey, and a red and a green of one lightness become alike."""
    for matrix in VISION.values():
        assert matrix.sum(axis=1) == pytest.approx([1.0, 1.0, 1.0], abs=2e-6, rel=0.0)
    alike = ["#b0723c", "#7f8a3a"]
    assert compute_min_distance(alike, VISION["normal"]) > 2.0 * compute_min_distance(alike, VISION["deuteranopia"])


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES.keys())
def test_text_and_lines_have_contrast(palette: figures.Palette) -> None:
    for background in (palette.page, palette.card):
        for colour in (palette.ink, palette.dim, palette.alert, palette.c0):
            assert compute_contrast(colour, background) >= MIN_CONTRAST["text"]
    for colour in palette.lines:
        assert compute_contrast(colour, palette.card) >= MIN_CONTRAST["line"]


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("ramp", ["TIME_COLOURS", "MAGNITUDE_COLOURS", "UNDERWATER_COLOURS"])
def test_ramps_become_lighter_for_everybody(ramp: str, vision: str) -> None:
    lightness = [to_lab(VISION[vision] @ to_linear(colour))[0] for colour in getattr(figures, ramp)]
    assert min(np.diff(lightness)) > 4.0


def test_colours_of_the_report_and_of_pictures_are_in_one_module() -> None:
    """Black and white are allowed elsewhere: the marks of a map are the same on light and dark pages."""
    files = [
        *(ROOT / "src" / "navsense").rglob("*.py"),
        *(ROOT / "src" / "navsense").rglob("*.css"),
        *(ROOT / "tools").glob("*.py"),
        *(ROOT / "examples").glob("*.py"),
    ]
    found = {
        path.relative_to(ROOT).as_posix(): colours
        for path in files
        if path.name != "figures.py"
        and (colours := set(re.findall(r"#[0-9a-fA-F]{6}\b|tab:[a-z]+", path.read_text(encoding="utf-8"))))
    }
    assert found == {}
    css = (ROOT / "src" / "navsense" / "report" / "report.css").read_text(encoding="utf-8")
    used = set(re.findall(r"var\(--([a-z0-9]+)\)", css))
    assert used == set(vars(figures.LIGHT)) == set(vars(figures.DARK))


def test_matplotlib_has_the_style_inside_the_context_only(tmp_path: Path) -> None:
    mpl = pytest.importorskip("matplotlib")
    before = dict(mpl.rcParams)
    written = []
    for name in ("a.svg", "b.svg"):
        with figures.use_style():
            figure = figures.make_figure(4.0, 3.0, NavsenseError)
            axes = figure.add_subplot()
            (line,) = axes.plot([0.0, 1.0], [0.0, 1.0])
            assert line.get_color() == figures.LIGHT.c0
            assert mpl.rcParams["axes.titlesize"] > mpl.rcParams["axes.labelsize"] > mpl.rcParams["xtick.labelsize"]
            figures.save_figure(figure, tmp_path / name, NavsenseError)
        written.append((tmp_path / name).read_bytes())
    assert dict(mpl.rcParams) == before
    assert written[0] == written[1], "a picture has no date and no random names"


@pytest.mark.parametrize(("backend", "expected"), [("nonsense", "None"), ("svg", "svg")])
def test_a_backend_of_another_environment_does_not_matter(backend: str, expected: str) -> None:
    """Jupyter sets the variable for its kernel; the commands that a notebook starts inherit it."""
    pytest.importorskip("matplotlib")
    code = """
import os
from navsense.figures import make_figure
make_figure(1.0, 1.0)
import matplotlib
print(os.environ["MPLBACKEND"], matplotlib.rcParams._get_backend_or_none())
"""
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {**os.environ, "MPLBACKEND": backend}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (ended.stdout.split(), ended.stderr) == ([backend, expected], "")
