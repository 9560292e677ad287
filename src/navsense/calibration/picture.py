"""Before and after: readings of a magnetometer and what a calibration makes of them, on one sheet.

Three projections with the circle of the field's strength, the length of every reading, and the residuals in histogram::

    with attitude      r = m - scale soft_iron (rotation_ws^-1 direction) - bias       three numbers a reading
    without            r = (|c| - scale) / |soft_iron^-T c / |c||                      one number a reading

c = soft_iron^-1 (m - bias). The second is, to first order, the distance of m from the fitted ellipsoid, so that it has
the noise of one axis. Readings that no calibration was made of are drawn as they are, with the reason. Needs
matplotlib, the extra `picture`.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from navsense.calibration.checks import validate_field, validate_rotation
from navsense.calibration.result import Calibration
from navsense.errors import CalibrationError
from navsense.figures import check_figure_path, make_figure, save_figure
from navsense.kernels import kernel
from navsense.rotation import rotate
from navsense.typing import FloatArray, Quaternions, Vectors

MAX_POINTS = 3000
"""Readings that are drawn, evenly chosen; more would be one blot."""

DISPLAY_UNITS = {
    "T": (1e6, "µT", 1e9, "nT"),
    "mT": (1e3, "µT", 1e6, "nT"),
    "uT": (1.0, "µT", 1e3, "nT"),
    "nT": (1e-3, "µT", 1.0, "nT"),
}
"""Units that are drawn as others: factor and name for fields, factor and name for residuals."""

BINS = 61
HISTOGRAM_STDDEVS = 5.0
"""Deviations on each side of the histogram; what is farther out is counted in its outermost bins."""

NORMAL_MEDIAN = 0.6744897501960817
"""Median of the absolute value of a normal variable of deviation 1."""

TITLE_CHARACTERS = 100
"""Characters of a line of the title that have room beside the legend."""

WIDTH = 12.0
"""Inches of a sheet."""

TICKS = 6
"""Intervals of an axis at most, so that its numbers have room."""

BEFORE, AFTER, MODEL, DECLARED = "#d1733a", "#2b6cb0", "#1a1a1a", "#b83280"


def draw(
    path: str | os.PathLike[str],
    field: Vectors,
    calibration: Calibration,
    *,
    rotation_ws: Quaternions | None = None,
    noise: float = 0.0,
) -> None:
    """Write a picture (`.png`, `.svg`, `.pdf`) of readings (n, 3), in its unit, before and after a calibration.

    rotation_ws (n, 4) w x y z where the calibration has a direction; `noise` is the deviation of one sample that was
    declared, 0 for none. Raises `CalibrationError` for other arrays and numbers that are not finite, where the picture
    cannot be written, or matplotlib is not there.
    """
    rows = validate_field(field)
    if not rows.shape[0]:
        raise CalibrationError("field", "no readings", allowed="must be one at least")
    turns = None if rotation_ws is None else validate_rotation(rotation_ws, rows.shape[0])
    if not 0.0 <= noise < math.inf:
        raise CalibrationError("noise", noise, allowed="must be from 0 up, and finite")
    target, figure = check_figure_path(path, CalibrationError), make_figure(WIDTH, 8.0, CalibrationError)
    if calibration.unit is None:  # the strength may be in one all the same, and the picture has but one
        calibration = replace(calibration, strength=None)
    pure = calibration.apply(rows)
    grid = figure.add_gridspec(2, 6, height_ratios=(1.0, 0.85))
    for place, (first, second) in enumerate(((0, 1), (0, 2), (1, 2))):
        axes = figure.add_subplot(grid[0, 2 * place : 2 * place + 2])
        _draw_projection(axes, rows, pure, calibration, first, second)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=4, fontsize=9, markerscale=1.5)
    _draw_lengths(figure.add_subplot(grid[1, :4]), rows, pure, calibration)
    _draw_histogram(figure.add_subplot(grid[1, 4:]), compute_residuals(rows, calibration, turns), calibration, noise)
    figure.suptitle(_title(calibration), x=0.01, ha="left", fontsize=11)
    save_figure(figure, target, CalibrationError)


def draw_readings(path: str | os.PathLike[str], field: Vectors, reason: str, *, unit: str | None = "T") -> None:
    """Write a picture of readings (n, 3) that no calibration was made of, and why.

    Raises `CalibrationError` as `draw` does.
    """
    rows = validate_field(field)
    target, figure = check_figure_path(path, CalibrationError), make_figure(WIDTH, 4.8, CalibrationError)
    factor, name, _, _ = _display_units(unit)
    some = factor * rows[_plotted_rows(rows.shape[0])]
    for axes, (first, second) in zip(figure.subplots(1, 3), ((0, 1), (0, 2), (1, 2)), strict=True):
        axes.plot(some[:, first], some[:, second], ".", color=BEFORE, markersize=2.5, alpha=0.6, rasterized=True)
        axes.plot(0.0, 0.0, "+", color=MODEL, markersize=11)
        _label_projection(axes, first, second, name)
    why = textwrap.fill(f"{rows.shape[0]} readings, not calibrated: {reason}", 150).replace("$", r"\$")
    figure.suptitle(why, x=0.01, ha="left", fontsize=10)
    save_figure(figure, target, CalibrationError)


def _title(calibration: Calibration) -> str:
    """Return method, count, and the verdict with the heads of all its reasons, in lines beside the legend."""
    reasons = "; ".join(reason.partition(":")[0] for reason in calibration.verdict.reasons)
    verdict = "ok" if calibration.verdict.ok else f"poor: {reasons}"
    text = f"{calibration.method}, {calibration.count} readings, verdict {verdict}"
    return textwrap.fill(text, TITLE_CHARACTERS).replace("$", r"\$")


def compute_residuals(field: Vectors, calibration: Calibration, rotation_ws: Quaternions | None = None) -> FloatArray:
    """Return what a calibration leaves of readings (n, 3): (n, 3) with attitude and direction, (n,) without."""
    if calibration.direction is not None and rotation_ws is not None:
        seen = np.empty((field.shape[0], 3))
        field_w = calibration.scale * calibration.direction
        _rotate_to_sensor(np.ascontiguousarray(rotation_ws, dtype=np.float64), np.ascontiguousarray(field_w), seen)
        return np.asarray(field - seen @ calibration.soft_iron.T - calibration.bias)
    inverse = np.linalg.inv(calibration.soft_iron)
    pure = (field - calibration.bias) @ inverse.T
    length = np.sqrt((pure**2).sum(axis=1))
    slope = (pure / length[:, None]) @ inverse
    return np.asarray((length - calibration.scale) / np.sqrt((slope**2).sum(axis=1)))


@kernel
def _rotate_to_sensor(rotation_ws: Quaternions, field_w: FloatArray, out: Vectors) -> None:
    """Write rotation_ws^-1 field_w (n, 3)."""
    for i in range(out.shape[0]):
        w, x, y, z = rotation_ws[i, 0], -rotation_ws[i, 1], -rotation_ws[i, 2], -rotation_ws[i, 3]
        out[i, 0], out[i, 1], out[i, 2] = rotate(w, x, y, z, field_w[0], field_w[1], field_w[2])


def _display_units(unit: str | None) -> tuple[float, str, float, str]:
    """Return factor and name of the unit that fields are drawn in, and of that of residuals."""
    name = unit or "as read"
    return DISPLAY_UNITS.get(name, (1.0, name, 1.0, name))


def _calibrated_length(calibration: Calibration) -> float:
    """Return how long calibrated readings are in the earth's field alone."""
    return calibration.scale * calibration.gain


def _plotted_rows(count: int) -> FloatArray:
    """Return the rows that are drawn."""
    return np.unique(np.linspace(0, count - 1, min(count, MAX_POINTS)).astype(np.int64))


def _draw_projection(
    axes: Any, field: Vectors, pure: Vectors, calibration: Calibration, first: int, second: int
) -> None:
    """Draw two axes of the readings, before and after, and the circle that they should lie in."""
    factor, unit, _, _ = _display_units(calibration.unit)
    rows = _plotted_rows(field.shape[0])
    for points, colour, label in ((field, BEFORE, "before"), (pure, AFTER, "after")):
        x, y = factor * points[rows, first], factor * points[rows, second]
        axes.plot(x, y, ".", color=colour, markersize=2.5, alpha=0.6, label=label, rasterized=True)
    turn = np.linspace(0.0, 2.0 * math.pi, 361)
    radius = factor * _calibrated_length(calibration)
    label = f"{radius:.5g} {unit}" if calibration.unit else f"{radius:.5g}"
    axes.plot(radius * np.cos(turn), radius * np.sin(turn), color=MODEL, linewidth=1.0, label=label)
    axes.plot(*(factor * calibration.bias[[first, second]]), "+", color=BEFORE, markersize=11, label="bias")
    axes.plot(0.0, 0.0, "+", color=MODEL, markersize=11)
    _label_projection(axes, first, second, unit)


def _label_projection(axes: Any, first: int, second: int, unit: str) -> None:
    """Give a projection its labels and one scale for both axes."""
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(f"{'xyz'[first]} ({unit})")
    axes.set_ylabel(f"{'xyz'[second]} ({unit})")
    axes.locator_params(nbins=TICKS)
    axes.grid(alpha=0.25)


def _format_spread(values: FloatArray, unit: str) -> str:
    """Return mean and deviation of values, with as many decimals as two figures of the deviation need."""
    mean, deviation = float(values.mean()), float(values.std())
    decimals = max(0, 1 - math.floor(math.log10(deviation))) if deviation > 0.0 else 6
    return f"{mean:.{decimals}f} ± {deviation:.{decimals}f} {unit}"


def _draw_lengths(axes: Any, field: Vectors, pure: Vectors, calibration: Calibration) -> None:
    """Draw the length of each reading, before and after."""
    factor, unit, _, _ = _display_units(calibration.unit)
    rows = _plotted_rows(field.shape[0])
    for points, colour, label in ((field, BEFORE, "before"), (pure, AFTER, "after")):
        length = factor * np.sqrt((points[rows] ** 2).sum(axis=1))
        said = f"{label}: {_format_spread(length, unit)}"
        axes.plot(rows, length, ".", color=colour, markersize=2.5, alpha=0.6, label=said, rasterized=True)
    axes.axhline(factor * _calibrated_length(calibration), color=MODEL, linewidth=1.0)
    axes.set_xlim(0, max(1, field.shape[0] - 1))
    axes.set_xlabel("reading")
    axes.set_ylabel(f"length of the reading ({unit})")
    axes.grid(alpha=0.25)
    axes.margins(y=0.25)
    axes.legend(loc="upper right", fontsize=8, markerscale=3, framealpha=0.85)


def _draw_histogram(axes: Any, left: FloatArray, calibration: Calibration, noise: float) -> None:
    """Draw what is left beside the noise that was declared and the one that was found."""
    _, _, factor, unit = _display_units(calibration.unit)
    found = factor * calibration.residual_stddev
    bells: Sequence[tuple[float, str, str, str]] = ((found, MODEL, "-", "found"),)
    if noise > 0.0:
        bells = (*bells, (factor * noise, DECLARED, "--", "declared"))
    spread = factor * float(np.median(np.abs(left))) / NORMAL_MEDIAN  # what outliers do not widen
    side = HISTOGRAM_STDDEVS * (max(spread, factor * noise) or found) or 1.0
    values = np.clip(factor * left.ravel(), -side, side)
    beyond = int(np.count_nonzero(np.abs(factor * left) > side))
    axes.hist(values, bins=BINS, range=(-side, side), density=True, color=AFTER, alpha=0.55)
    x = np.linspace(-side, side, 401)
    for deviation, colour, line, label in bells:
        if deviation > 0.0:
            y = np.exp(-0.5 * (x / deviation) ** 2) / (deviation * math.sqrt(2.0 * math.pi))
            axes.plot(x, y, line, color=colour, linewidth=1.2, label=f"{label}: {deviation:.3g} {unit}")
    axes.set_xlim(-side, side)
    axes.set_yticks([])
    axes.margins(y=0.25)
    outside = f"; {beyond} of {left.size} farther out" if beyond else ""
    axes.set_xlabel(f"residual {'an axis' if left.ndim == 2 else 'along the field'} ({unit}){outside}")
    axes.legend(loc="upper right", fontsize=8, framealpha=0.85)
