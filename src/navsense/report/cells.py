"""A current profiler cell by cell: its share of good pings, echo and correlation as pictures, its errors as a table.

    sigma_a^2 = 1/n sum_i [R_i (P diag(s_k^2) P^T / pings + Q) R_i^T]_aa             declared, of one ensemble, axis a

P is the least-squares solution of the beams (the pseudoinverse of their directions), s_k the deviation of a ping in a
beam and cell: that of the sheet, times sqrt((rho^-2 - 1) / (rho_0^-2 - 1)) at the correlation rho that is told, rho_0
being that of a strong echo. Q = bottom.stddev^2 P P^T / bottom_pings where the vehicle's motion is taken out, else 0.
R_i takes the instrument's axes to those of the profile in the i-th of n ensembles. All pings are taken to be good, and
bin mapping to average nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

import numpy as np

from navsense.report.axes import Scale, scale_of
from navsense.report.doppler import NONE, Shades, cells_of, profiled, waterfall
from navsense.report.draw import Figure
from navsense.report.frames import labels_of
from navsense.report.residuals import deviation_of_pairs
from navsense.sensors.adcp import Adcp
from navsense.series import Reading
from navsense.typing import FloatArray
from navsense.world import MountedSensor

LOW = 56.0
"""Units that the picture of one beam is high."""

QUALITY = (
    ("percent_good", "Percent good", Shades("good pings", Scale(100.0, "%"), (0.0, 1.0))),
    ("echo", "Echo", Shades("echo above the noise", Scale(1.0, "dB"), height=LOW)),
    ("correlation", "Correlation", Shades("correlation", Scale(1.0, ""), (0.0, 1.0), height=LOW)),
)
"""Arrays that say how well cells are heard, the titles of their figures, and their colours."""

HEARD = ("with a number", "percent good", "echo (dB)", "correlation")
ERRORS = ("mean", "deviation", "of neighbours", "declared")
"""Columns of the table."""

DASH = "\u2013"
"""What stands where nothing is known."""


def quality_of(reading: Reading, sensor: MountedSensor | None, span: tuple[float, float]) -> Iterator[Figure]:
    """Yield how well the cells are heard; what has no number, or one number alone, is left out."""
    rows = np.asarray(reading.emitted)
    for name, title, shades in QUALITY:
        heard = reading.arrays.get(name, NONE)
        known = heard[rows][np.isfinite(heard[rows])] if heard.ndim > 1 else NONE
        if not known.size or (name != "percent_good" and not np.ptp(known)):
            continue
        values = heard[rows].reshape(int(np.count_nonzero(rows)), heard.shape[1], -1)
        names = labels_of(reading.type, f"beam_{name}", values.shape[2], sensor)
        where, upwards = cells_of(reading, sensor, heard.shape[1])
        yield waterfall(title, reading.time[rows], values, where, upwards, span, names, shades)


def table_of(reading: Reading, sensor: MountedSensor | None) -> str:
    """Return the errors of each cell as an HTML table; nothing where there is no profile, or no truth of it."""
    name = profiled(reading)
    true = reading.ideal.get(name) if name else None
    if name is None or true is None or true.shape != reading.arrays[name].shape:
        return ""
    rows = np.asarray(reading.emitted & reading.valid)
    rest = reading.arrays[name][rows] - true[rows]
    where, title = cells_of(reading, sensor, rest.shape[1])
    labels = labels_of(reading.type, name, rest.shape[2], sensor)
    declared = declared_of(reading, sensor, name)
    if declared is None:
        declared = np.full(rest.shape[1:], math.nan)
    sizes = np.abs(np.concatenate([rest[np.isfinite(rest)], np.zeros(1)]))
    scale = scale_of("m/s", float(np.median(sizes)))
    parts = []
    for cell in range(rest.shape[1]):
        row = [f"{where[cell]:.4g}", *_heard(reading, name, cell), *_errors(rest[:, cell], declared[cell], scale)]
        parts.append(f'<tr><th scope="row">{cell + 1}</th>{"".join(f"<td>{text}</td>" for text in row)}</tr>')
    one = "".join(f'<th scope="col" rowspan="2">{escape(text)}</th>' for text in ("cell", title, *HEARD))
    wide = "".join(f'<th scope="colgroup" colspan="{len(labels)}">{text} ({scale.unit})</th>' for text in ERRORS)
    axes = "".join(f'<th scope="col">{escape(label)}</th>' for label in labels) * len(ERRORS)
    what = escape(name.replace("_", " "))
    return (
        f"<h3>Cells</h3><p>Errors of {what}, reading less truth, in each cell: their mean, their deviation, and "
        "that of neighbouring ensembles, which what lasts or changes slowly leaves alone. Declared: of one ensemble "
        'by the sheet, were all its pings good.</p><div class="scroll"><table class="cells"><thead>'
        f"<tr>{one}{wide}</tr><tr>{axes}</tr></thead><tbody>{''.join(parts)}</tbody></table></div>"
    )


def _heard(reading: Reading, name: str, cell: int) -> list[str]:
    """Return how well a cell is heard: share of ensembles with a number, good pings, echo, correlation."""
    rows = np.asarray(reading.emitted)
    filled = float(np.isfinite(reading.arrays[name][rows, cell]).all(axis=-1).mean()) if rows.any() else 0.0
    good, echo, correlation = (_mean(reading, one, cell) for one, _, _ in QUALITY)
    return [_percent(filled), _percent(good), _number(echo), _number(correlation)]


def _errors(rest: FloatArray, declared: FloatArray, scale: Scale) -> list[str]:
    """Return means and deviations of residuals (n, a) of a cell, those of neighbours, and the declared ones (a,)."""
    known = [values[np.isfinite(values)] for values in rest.T]
    means = [float(values.mean()) if values.size else math.nan for values in known]
    sizes = [float(values.std()) if values.size > 1 else math.nan for values in known]
    pairs = [math.sqrt(deviation_of_pairs(values)[0]) for values in rest.T]
    every = (*means, *sizes, *pairs, *declared.tolist())
    return [f"{v * scale.factor:.2f}".replace("-", "\u2212") if math.isfinite(v) else DASH for v in every]


def declared_of(reading: Reading, sensor: MountedSensor | None, name: str) -> FloatArray | None:
    """Return the deviations (m, a) m/s of one ensemble in m cells and all axes; None where no sheet tells them."""
    told = reading.arrays.get("beam_direction", NONE)
    if sensor is None or not isinstance(sensor.spec, Adcp) or told.ndim != 3 or not told.shape[0]:
        return None
    spec, rows = sensor.spec, np.asarray(reading.emitted & reading.valid)
    sizes = _ping_deviations(reading, spec) ** 2 / spec.pings
    if name == "beam_velocity":
        return np.asarray(np.sqrt(sizes))
    solve = np.linalg.pinv(np.asarray(told[0], dtype=np.float64))
    squares = np.einsum("ak,mk,bk->mab", solve, sizes, solve)
    if spec.motion_compensated:
        squares = squares + spec.bottom.stddev**2 / spec.bottom_pings * (solve @ solve.T)
    turns = turns_of(reading.arrays.get("orientation", NONE)[rows], spec.coordinates.value)
    return np.asarray(np.sqrt(np.einsum("iab,mbc,iac->ma", turns, squares, turns) / max(turns.shape[0], 1)))


def _ping_deviations(reading: Reading, spec: Adcp) -> FloatArray:
    """Return the deviations (m, k) m/s of a ping in each cell and beam; NaN where its correlation has no number."""
    sizes = np.full((int(spec.cells.count), len(spec.beams.beams)), float(spec.ping_stddev))
    told = reading.arrays.get("correlation", NONE)[np.asarray(reading.emitted)]
    if spec.backscatter is None or told.shape[1:] != sizes.shape:
        return sizes
    strong = spec.backscatter.correlation**-2 - 1.0
    known = np.isfinite(told)
    more = np.where(known, (np.where(known, told, 1.0) ** -2.0 - 1.0) / strong, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    return np.asarray(sizes * np.sqrt(np.where(count > 0, more / np.maximum(count, 1), math.nan)))


def turns_of(orientation: FloatArray, coordinates: str) -> FloatArray:
    """Return rotations (n, 3, 3) from the instrument's axes, `orientation` (n, 4) w x y z, to those of a profile."""
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
    ahead = np.arctan2(earth[:, 1, 0], earth[:, 0, 0])
    cos, sin, zero = np.cos(ahead), np.sin(ahead), np.zeros(ahead.size)
    level = np.array(((cos, sin, zero), (-sin, cos, zero), (zero, zero, zero + 1.0))).transpose(2, 0, 1)
    return np.asarray(level @ earth)


def _mean(reading: Reading, name: str, cell: int) -> float:
    """Return the mean of an array in a cell, over all beams; NaN where nothing is known."""
    told = reading.arrays.get(name, NONE)
    values = told[np.asarray(reading.emitted), cell] if told.ndim > 1 else NONE
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else math.nan


def _percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100.0 * share:.3g} %" if math.isfinite(share) else DASH


def _number(value: float) -> str:
    """Return a number in short."""
    return f"{value:.3g}".replace("-", "\u2212") if math.isfinite(value) else DASH
