"""The section of an ADCP: percent good, echo and correlation by cell as images, and a table of the errors by cell.

    sigma_a^2 = 1/n sum_i [R_i (P diag(s_k^2) P^T / pings + Q) R_i^T]_aa             declared, of one ensemble, axis a

P is the least-squares solution of the beams (the pseudoinverse of their directions). s_k is the deviation of a ping in
one beam and cell: the declared one times sqrt((rho^-2 - 1) / (rho_0^-2 - 1)), with the measured correlation rho and the
correlation rho_0 of a strong echo. Q = bottom.stddev^2 P P^T / bottom_pings if the instrument removes the vehicle's
motion, else 0. R_i rotates from the instrument's axes to those of the profile in the i-th of n ensembles. The equation
holds if all pings are good and bin mapping does not average.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

import numpy as np

from navsense.core.series import Reading
from navsense.core.typing import FloatArray
from navsense.figures import Scale
from navsense.report.axes import choose_scale
from navsense.report.doppler import EMPTY, ColourScale, cell_positions, profile_array, waterfall
from navsense.report.draw import SvgFigure
from navsense.report.labels import axis_labels
from navsense.report.residuals import pair_variance
from navsense.report.sensors import DASH
from navsense.sensors.adcp import Adcp
from navsense.world import MountedSensor

HEIGHT = 56.0
"""Height of the image of one beam (units)."""

QUALITY = (
    ("percent_good", "Percent good", ColourScale("good pings", Scale(100.0, "%"), (0.0, 1.0))),
    ("echo", "Echo", ColourScale("echo above the noise", Scale(1.0, "dB"), height=HEIGHT)),
    ("correlation", "Correlation", ColourScale("correlation", Scale(1.0, ""), (0.0, 1.0), height=HEIGHT)),
)
"""Arrays with the quality of cells, titles of their figures, and colours."""

QUALITY_COLUMNS = ("with a value", "percent good", "echo (dB)", "correlation")
ERROR_COLUMNS = ("mean", "standard deviation", "of differences", "declared")
"""Columns of the table."""


def quality_figures(reading: Reading, sensor: MountedSensor | None, span: tuple[float, float]) -> Iterator[SvgFigure]:
    """Yield images of the quality of the cells, without arrays that are missing or constant."""
    rows = np.asarray(reading.emitted)
    for name, title, colours in QUALITY:
        array = reading.arrays.get(name, EMPTY)
        known = array[rows][np.isfinite(array[rows])] if array.ndim > 1 else EMPTY
        if not known.size or (name != "percent_good" and not np.ptp(known)):
            continue
        values = array[rows].reshape(int(np.count_nonzero(rows)), array.shape[1], -1)
        labels = axis_labels(reading.type, f"beam_{name}", values.shape[2], sensor)
        distance, y_title = cell_positions(reading, sensor, array.shape[1])
        yield waterfall(title, reading.time[rows], values, distance, y_title, span, labels, colours)


def make_table(reading: Reading, sensor: MountedSensor | None) -> str:
    """Return the errors of each cell as an HTML table; empty without a profile or its ideal values."""
    name = profile_array(reading)
    ideal = reading.ideal.get(name) if name else None
    if name is None or ideal is None or ideal.shape != reading.arrays[name].shape:
        return ""
    rows = np.asarray(reading.emitted & reading.valid)
    error = reading.arrays[name][rows] - ideal[rows]
    distance, title = cell_positions(reading, sensor, error.shape[1])
    labels = axis_labels(reading.type, name, error.shape[2], sensor)
    declared = declared_stddevs(reading, sensor, name)
    if declared is None:
        declared = np.full(error.shape[1:], math.nan)
    sizes = np.abs(np.concatenate([error[np.isfinite(error)], np.zeros(1)]))
    scale = choose_scale("m/s", float(np.median(sizes)))
    body = ""
    for cell in range(error.shape[1]):
        texts = [f"{distance[cell]:.4g}", *_quality_cells(reading, name, cell)]
        texts += _error_cells(error[:, cell], declared[cell], scale)
        body += f'<tr><th scope="row">{cell + 1}</th>{"".join(f"<td>{text}</td>" for text in texts)}</tr>'
    columns = ("cell", title, *QUALITY_COLUMNS)
    head = "".join(f'<th scope="col" rowspan="2">{escape(text)}</th>' for text in columns)
    head += "".join(
        f'<th scope="colgroup" colspan="{len(labels)}">{text} ({scale.unit})</th>' for text in ERROR_COLUMNS
    )
    axes = "".join(f'<th scope="col">{escape(label)}</th>' for label in labels) * len(ERROR_COLUMNS)
    return (
        f"<h3>Cells</h3><p>Errors of {escape(name.replace('_', ' '))} in each cell, reading minus ideal: mean, "
        "standard deviation, and the standard deviation from the differences of consecutive ensembles, in which slowly "
        'varying errors cancel. Declared: that of one ensemble if all its pings are good.</p><div class="scroll">'
        '<table class="cells"><thead>'
        f"<tr>{head}</tr><tr>{axes}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _quality_cells(reading: Reading, name: str, cell: int) -> list[str]:
    """Return the fraction of ensembles with a value, good pings, echo and correlation of a cell."""
    rows = np.asarray(reading.emitted)
    fraction = float(np.isfinite(reading.arrays[name][rows, cell]).all(axis=-1).mean()) if rows.any() else 0.0
    good, echo, correlation = (_mean_in_cell(reading, array, cell) for array, _, _ in QUALITY)
    return [_format_percent(fraction), _format_percent(good), _format_number(echo), _format_number(correlation)]


def _error_cells(error: FloatArray, declared: FloatArray, scale: Scale) -> list[str]:
    """Return statistics of errors (n, a) in a cell: those of `ERROR_COLUMNS`; `declared` (a,) is the last one."""
    known = [values[np.isfinite(values)] for values in error.T]
    means = [float(values.mean()) if values.size else math.nan for values in known]
    stddevs = [float(values.std()) if values.size > 1 else math.nan for values in known]
    difference_stddevs = [math.sqrt(pair_variance(values)[0]) for values in error.T]
    values = (*means, *stddevs, *difference_stddevs, *declared.tolist())
    return [f"{v * scale.factor:.2f}".replace("-", "\u2212") if math.isfinite(v) else DASH for v in values]


def declared_stddevs(reading: Reading, sensor: MountedSensor | None, name: str) -> FloatArray | None:
    """Return the declared deviations (m, a) m/s of one ensemble in m cells and a axes; None without a spec."""
    directions = reading.arrays.get("beam_direction", EMPTY)
    if sensor is None or not isinstance(sensor.spec, Adcp) or directions.ndim != 3 or not directions.shape[0]:
        return None
    spec, rows = sensor.spec, np.asarray(reading.emitted & reading.valid)
    variances = _ping_stddevs(reading, spec) ** 2 / spec.pings
    if name == "beam_velocity":
        return np.asarray(np.sqrt(variances))
    solution = np.linalg.pinv(np.asarray(directions[0], dtype=np.float64))
    covariances = np.einsum("ak,mk,bk->mab", solution, variances, solution)
    if spec.motion_compensated:
        covariances = covariances + spec.bottom.stddev**2 / spec.bottom_pings * (solution @ solution.T)
    rotations = profile_rotations(reading.arrays.get("orientation", EMPTY)[rows], spec.coordinates.value)
    sums = np.einsum("iab,mbc,iac->ma", rotations, covariances, rotations)
    return np.asarray(np.sqrt(sums / max(rotations.shape[0], 1)))


def _ping_stddevs(reading: Reading, spec: Adcp) -> FloatArray:
    """Return the deviations (m, k) m/s of a ping in each cell and beam; NaN without a correlation."""
    stddevs = np.full((int(spec.cells.count), len(spec.beams.beams)), float(spec.ping_stddev))
    correlation = reading.arrays.get("correlation", EMPTY)[np.asarray(reading.emitted)]
    if spec.backscatter is None or correlation.shape[1:] != stddevs.shape:
        return stddevs
    strong = spec.backscatter.correlation**-2 - 1.0
    known = np.isfinite(correlation)
    ratios = np.where(known, (np.where(known, correlation, 1.0) ** -2.0 - 1.0) / strong, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    return np.asarray(stddevs * np.sqrt(np.where(count > 0, ratios / np.maximum(count, 1), math.nan)))


def profile_rotations(orientation: FloatArray, coordinates: str) -> FloatArray:
    """Return rotations (n, 3, 3) from the instrument's axes to those of a profile.

    orientation: (n, 4) w x y z of the instrument in the world
    coordinates: `instrument`, `earth` or `ship`, the levelled axes with the heading of x
    """
    if coordinates == "instrument" or orientation.ndim != 2:
        return np.eye(3)[None]
    w, x, y, z = orientation[np.isfinite(orientation).all(axis=1)].T
    earth = np.array(
        (
            (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
            (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
            (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
        )
    ).transpose(2, 0, 1)
    if coordinates == "earth":
        return np.asarray(earth)
    heading = np.arctan2(earth[:, 1, 0], earth[:, 0, 0])
    cos, sin, zero = np.cos(heading), np.sin(heading), np.zeros(heading.size)
    level = np.array(((cos, sin, zero), (-sin, cos, zero), (zero, zero, zero + 1.0))).transpose(2, 0, 1)
    return np.asarray(level @ earth)


def _mean_in_cell(reading: Reading, name: str, cell: int) -> float:
    """Return the mean of an array in a cell over all beams; NaN without a value."""
    array = reading.arrays.get(name, EMPTY)
    values = array[np.asarray(reading.emitted), cell] if array.ndim > 1 else EMPTY
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else math.nan


def _format_percent(share: float) -> str:
    return f"{100.0 * share:.3g} %" if math.isfinite(share) else DASH


def _format_number(value: float) -> str:
    return f"{value:.3g}".replace("-", "\u2212") if math.isfinite(value) else DASH
