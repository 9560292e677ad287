"""Picture of magnetometer readings before and after a calibration.

It has three projections with a circle of the field strength, the length of each reading, and a histogram of residuals::

    with attitude      r = m - scale soft_iron (rotation_ws^-1 direction) - bias       three numbers per reading
    without            r = (|c| - scale) / |soft_iron^-T c / |c||                      one number per reading

c = soft_iron^-1 (m - bias). The second residual is, to first order, the distance of m from the fitted ellipsoid; its
noise is that of one axis. Readings without a calibration are drawn unchanged, with the reason. Requires matplotlib, the
extra `picture`.
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
from navsense.core.errors import CalibrationError
from navsense.core.rotation import rotate_python
from navsense.core.typing import FloatArray, Quaternions, Vectors
from navsense.figures import LIGHT, check_figure_path, make_figure, save_figure, use_style

MAX_POINTS = 3000
"""Largest number of points, evenly spaced in the record."""

DISPLAY_UNITS = {
    "T": (1e6, "µT", 1e9, "nT"),
    "mT": (1e3, "µT", 1e6, "nT"),
    "uT": (1.0, "µT", 1e3, "nT"),
    "nT": (1e-3, "µT", 1.0, "nT"),
}
"""Unit -> factor and name of the unit of fields in the picture, and of the unit of residuals."""

BINS = 61
HISTOGRAM_STDDEVS = 5.0
"""Half width of the histogram in standard deviations. The outermost bins include larger residuals."""

NORMAL_MEDIAN = 0.6744897501960817
"""Median of the absolute value of a standard normal variable."""

TITLE_CHARACTERS = 100
"""Characters in a line of the title, left of the legend."""

WIDTH = 12.0
"""Width of the picture in inches."""

TICKS = 6
"""Largest number of tick intervals of an axis."""

BEFORE, AFTER, MODEL, DECLARED = LIGHT.c1, LIGHT.c0, LIGHT.ink, LIGHT.c3
"""Colours of readings before and after the calibration, of the fitted model, and of the declared noise."""


def draw(
    path: str | os.PathLike[str],
    field: Vectors,
    calibration: Calibration,
    *,
    rotation_ws: Quaternions | None = None,
    noise: float = 0.0,
) -> None:
    """Write a picture (`.png`, `.svg`, `.pdf`) of readings before and after a calibration.

    field: (n, 3), sensor frame, in the unit of the calibration.
    rotation_ws: (n, 4) w x y z, sensor to world, for residuals with attitude.
    noise: declared standard deviation of a reading, 0 if there is none.

    >>> calibration = ns.calibration.known_attitude(field, rotation_ws)
    >>> ns.calibration.draw("before-after.png", field, calibration, rotation_ws=rotation_ws)

    Raises `CalibrationError` for invalid arrays, if the picture cannot be written, and without matplotlib.
    """
    rows = validate_field(field)
    if not rows.shape[0]:
        raise CalibrationError("field", "no readings", allowed="must be at least one")
    turns = None if rotation_ws is None else validate_rotation(rotation_ws, rows.shape[0])
    if not 0.0 <= noise < math.inf:
        raise CalibrationError("noise", noise, allowed="must be from 0 up, and finite")
    target = check_figure_path(path, CalibrationError)
    if calibration.unit is None:  # the strength can have another unit, but the picture has only one
        calibration = replace(calibration, strength=None)
    residuals = compute_residuals(rows, calibration, turns)
    with use_style(CalibrationError):
        save_figure(_draw_figure(rows, residuals, calibration, noise), target, CalibrationError)


def _draw_figure(rows: Vectors, residuals: FloatArray, calibration: Calibration, noise: float) -> Any:
    """Return the figure of readings (n, 3) before and after, with the histogram of their residuals."""
    figure, calibrated = make_figure(WIDTH, 8.0, CalibrationError), calibration.apply(rows)
    grid = figure.add_gridspec(2, 6, height_ratios=(1.0, 0.85))
    for place, (first, second) in enumerate(((0, 1), (0, 2), (1, 2))):
        axes = figure.add_subplot(grid[0, 2 * place : 2 * place + 2])
        _draw_projection(axes, rows, calibrated, calibration, first, second)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=4, fontsize=9, markerscale=1.5)
    _draw_lengths(figure.add_subplot(grid[1, :4]), rows, calibrated, calibration)
    _draw_histogram(figure.add_subplot(grid[1, 4:]), residuals, calibration, noise)
    figure.suptitle(_make_title(calibration), x=0.01, ha="left", fontsize=11)
    return figure


def draw_readings(path: str | os.PathLike[str], field: Vectors, reason: str, *, unit: str | None = "T") -> None:
    """Write a picture of readings (n, 3) without a calibration, and the reason. The errors are those of `draw`."""
    rows = validate_field(field)
    target = check_figure_path(path, CalibrationError)
    factor, name, _, _ = _select_display_units(unit)
    plotted = factor * rows[_select_rows(rows.shape[0])]
    why = textwrap.fill(f"{rows.shape[0]} readings, not calibrated: {reason}", 150).replace("$", r"\$")
    with use_style(CalibrationError):
        save_figure(_draw_raw_figure(plotted, name, why), target, CalibrationError)


def _draw_raw_figure(plotted: Vectors, name: str, title: str) -> Any:
    """Return the figure of readings (n, 3) without a calibration, in a unit."""
    figure = make_figure(WIDTH, 4.8, CalibrationError)
    for axes, (first, second) in zip(figure.subplots(1, 3), ((0, 1), (0, 2), (1, 2)), strict=True):
        axes.plot(plotted[:, first], plotted[:, second], ".", color=BEFORE, markersize=2.5, alpha=0.6, rasterized=True)
        axes.plot(0.0, 0.0, "+", color=MODEL, markersize=11)
        _label_projection(axes, first, second, name)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


def _make_title(calibration: Calibration) -> str:
    """Return method, number of readings, and verdict with the start of each reason, wrapped left of the legend."""
    reasons = "; ".join(reason.partition(":")[0] for reason in calibration.verdict.reasons)
    verdict = "ok" if calibration.verdict.ok else f"poor: {reasons}"
    text = f"{calibration.method}, {calibration.count} readings, verdict {verdict}"
    return textwrap.fill(text, TITLE_CHARACTERS).replace("$", r"\$")


def compute_residuals(field: Vectors, calibration: Calibration, rotation_ws: Quaternions | None = None) -> FloatArray:
    """Return the residuals of readings (n, 3): (n, 3) with attitude and direction, (n,) without."""
    if calibration.direction is not None and rotation_ws is not None:
        w, x, y, z = rotation_ws.T
        field_s = np.stack(rotate_python(w, -x, -y, -z, *(calibration.scale * calibration.direction)), axis=-1)
        return np.asarray(field - field_s @ calibration.soft_iron.T - calibration.bias)
    inverse = np.linalg.inv(calibration.soft_iron)
    calibrated = (field - calibration.bias) @ inverse.T
    length = np.sqrt((calibrated**2).sum(axis=1))
    slope = (calibrated / length[:, None]) @ inverse
    return np.asarray((length - calibration.scale) / np.sqrt((slope**2).sum(axis=1)))


def _select_display_units(unit: str | None) -> tuple[float, str, float, str]:
    """Return factor and name of the unit of fields in the picture, and of the unit of residuals."""
    name = unit or "as read"
    return DISPLAY_UNITS.get(name, (1.0, name, 1.0, name))


def _select_rows(count: int) -> FloatArray:
    """Return the rows in the picture."""
    return np.unique(np.linspace(0, count - 1, min(count, MAX_POINTS)).astype(np.int64))


def _draw_projection(
    axes: Any, field: Vectors, calibrated: Vectors, calibration: Calibration, first: int, second: int
) -> None:
    """Draw two axes of the readings before and after, and a circle with the radius of the field."""
    factor, unit, _, _ = _select_display_units(calibration.unit)
    rows = _select_rows(field.shape[0])
    for points, colour, label in ((field, BEFORE, "before"), (calibrated, AFTER, "after")):
        x, y = factor * points[rows, first], factor * points[rows, second]
        axes.plot(x, y, ".", color=colour, markersize=2.5, alpha=0.6, label=label, rasterized=True)
    turn = np.linspace(0.0, 2.0 * math.pi, 361)
    radius = factor * (calibration.scale * calibration.gain)
    label = f"field: {radius:.5g} {unit}" if calibration.unit else f"field: {radius:.5g}"
    axes.plot(radius * np.cos(turn), radius * np.sin(turn), color=MODEL, linewidth=1.0, label=label)
    axes.plot(*(factor * calibration.bias[[first, second]]), "+", color=BEFORE, markersize=11, label="bias")
    axes.plot(0.0, 0.0, "+", color=MODEL, markersize=11, label="zero")
    _label_projection(axes, first, second, unit)


def _label_projection(axes: Any, first: int, second: int, unit: str) -> None:
    """Add labels and an equal scale of both axes."""
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(f"{'xyz'[first]} ({unit})")
    axes.set_ylabel(f"{'xyz'[second]} ({unit})")
    axes.locator_params(nbins=TICKS)
    axes.grid(alpha=0.25)


def _format_spread(values: FloatArray, unit: str) -> str:
    """Return mean and standard deviation, with two significant digits of the latter."""
    mean, stddev = float(values.mean()), float(values.std())
    decimals = max(0, 1 - math.floor(math.log10(stddev))) if stddev > 0.0 else 6
    return f"{mean:.{decimals}f} ± {stddev:.{decimals}f} {unit}"


def _draw_lengths(axes: Any, field: Vectors, calibrated: Vectors, calibration: Calibration) -> None:
    """Draw the length of each reading before and after."""
    factor, unit, _, _ = _select_display_units(calibration.unit)
    rows = _select_rows(field.shape[0])
    for points, colour, label in ((field, BEFORE, "before"), (calibrated, AFTER, "after")):
        length = factor * np.sqrt((points[rows] ** 2).sum(axis=1))
        text = f"{label}: {_format_spread(length, unit)}"
        axes.plot(rows, length, ".", color=colour, markersize=2.5, alpha=0.6, label=text, rasterized=True)
    field_label = f"field: {factor * (calibration.scale * calibration.gain):.5g} {unit}"
    axes.axhline(factor * (calibration.scale * calibration.gain), color=MODEL, linewidth=1.0, label=field_label)
    axes.set_xlim(0, max(1, field.shape[0] - 1))
    axes.set_xlabel("reading")
    axes.set_ylabel(f"length of the reading ({unit})")
    axes.grid(alpha=0.25)
    axes.margins(y=0.25)
    axes.legend(loc="upper right", fontsize=8, markerscale=3, framealpha=0.85)


def _draw_histogram(axes: Any, residuals: FloatArray, calibration: Calibration, noise: float) -> None:
    """Draw a histogram of the residuals with the densities of the fitted and the declared noise."""
    _, _, factor, unit = _select_display_units(calibration.unit)
    fitted = factor * calibration.residual_stddev
    densities: Sequence[tuple[float, str, str, str]] = ((fitted, MODEL, "-", "found"),)
    if noise > 0.0:
        densities = (*densities, (factor * noise, DECLARED, "--", "declared"))
    spread = factor * float(np.median(np.abs(residuals))) / NORMAL_MEDIAN  # robust against outliers
    side = HISTOGRAM_STDDEVS * (max(spread, factor * noise) or fitted) or 1.0
    values = np.clip(factor * residuals.ravel(), -side, side)
    beyond = int(np.count_nonzero(np.abs(factor * residuals) > side))
    axes.hist(values, bins=BINS, range=(-side, side), density=True, color=AFTER, alpha=0.55, label="residuals")
    x = np.linspace(-side, side, 401)
    for stddev, colour, line, label in densities:
        if stddev > 0.0:
            y = np.exp(-0.5 * (x / stddev) ** 2) / (stddev * math.sqrt(2.0 * math.pi))
            axes.plot(x, y, line, color=colour, linewidth=1.2, label=f"{label}: {stddev:.3g} {unit}")
    axes.set_xlim(-side, side)
    axes.set_yticks([])
    axes.set_ylabel("density")
    axes.margins(y=0.25)
    outside = f"; {beyond} of {residuals.size} farther out" if beyond else ""
    axes.set_xlabel(f"residual {'per axis' if residuals.ndim == 2 else 'along the field'} ({unit}){outside}")
    axes.legend(loc="upper right", fontsize=8, framealpha=0.85)
