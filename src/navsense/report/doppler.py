"""Figures and table of Doppler instruments: validity of beams, currents, and profiles of an ADCP with their quality.

The table of an ADCP has the declared standard deviation sigma_a of one ensemble along axis a in each cell::

    sigma_a^2 = 1/n sum_i [R_i (P diag(s_k^2) P^T / pings + Q) R_i^T]_aa

P is the least-squares solution of the beams (the pseudoinverse of their directions). s_k is the deviation of a ping in
one beam and cell: the declared one times sqrt((rho^-2 - 1) / (rho_0^-2 - 1)), with the measured correlation rho and the
correlation rho_0 of a strong echo. Q = bottom.stddev^2 P P^T / bottom_pings if the instrument removes the vehicle's
motion, else 0. R_i rotates from the instrument's axes to those of the profile in the i-th of n ensembles. The equation
holds if all pings are good and bin mapping does not average.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from navsense.core.readings import Reading
from navsense.core.rotation import to_matrix_python
from navsense.core.typing import AnyArray, FloatArray
from navsense.figures import MAGNITUDE_COLOURS, SIGNED_COLOURS, Scale, find_time_spans
from navsense.report.axes import (
    DASH,
    MAX_AXIS_VALUE,
    MIN_SPAN,
    Axis,
    choose_scale,
    find_finite_range,
    format_axis_title,
    make_time_axis,
)
from navsense.report.images import compute_pixels, encode_png_uri
from navsense.report.labels import EARTH, INSTRUMENT, list_axis_labels
from navsense.report.report_data import ReportData
from navsense.report.residuals import compute_pair_variance
from navsense.report.svg_figure import STRIP_HEIGHT, ColourBar, Plot, SvgFigure
from navsense.sensors.adcp import Adcp
from navsense.world import MountedSensor

IMAGE_COLUMNS, PIXELS_PER_ROW = 420, 4
"""Columns of a waterfall at most, and pixels per row."""

VELOCITY_MODES = ((1.0, "good", "bottom"), (2.0, "water", "water"), (0.0, "bad", ""))
"""Values of `velocity_mode` with the class of their colour and their name."""

TITLE_HEIGHT = 90.0
"""Minimum image height (units) for the full title of the y axis; below, only the unit is shown."""

EMPTY = np.zeros(0)
"""Array that a reading does not have."""


@dataclass(frozen=True)
class ColourScale:
    """Title and unit of the colours of a waterfall, the limits (SI) of its colours, and its height (units).

    Without `limits`, the colours span all values but the outer 0.5 % at each end. If `signed`, they span 99.5 % of the
    values, symmetrically about 0.
    """

    title: str
    scale: Scale
    limits: tuple[float, float] | None = None
    signed: bool = False
    height: float = 92.0


BEAM_IMAGE_HEIGHT = 56.0
"""Height of the image of one beam (units)."""

QUALITY = (
    ("percent_good", "Percent good", ColourScale("good pings", Scale(100.0, "%"), (0.0, 1.0))),
    ("echo", "Echo", ColourScale("echo above the noise", Scale(1.0, "dB"), height=BEAM_IMAGE_HEIGHT)),
    ("correlation", "Correlation", ColourScale("correlation", Scale(1.0, ""), (0.0, 1.0), height=BEAM_IMAGE_HEIGHT)),
)
"""Arrays with the quality of cells, titles of their figures, and colours."""

QUALITY_COLUMNS = ("with a value", "percent good", "echo (dB)", "correlation")
"""Columns of the table with the quality of a cell."""

ERROR_COLUMNS = ("mean", "standard deviation", "of differences", "declared")
"""Columns of the table for each axis."""

VELOCITY = ColourScale("velocity", Scale(1.0, "m/s"), signed=True)
"""Colours of velocities. The prefix of the unit fits their size."""


def make_beam_figures(reading: Reading, name: str, span: tuple[float, float]) -> Iterator[SvgFigure]:
    """Yield a figure of the validity of each beam and of the reference of the velocity, if the recording has them."""
    velocity, flags = reading.arrays.get("beam_velocity"), reading.arrays.get("beam_valid")
    if flags is None and velocity is None:
        return
    rows = np.asarray(reading.emitted)
    time = reading.time[rows]
    valid = np.isfinite(np.asarray(velocity)[rows]) if flags is None else np.asarray(flags)[rows] > 0.5
    x_axis, plots = make_time_axis(*span), list[Plot]()
    for number, is_valid in enumerate(valid.T, 1):
        share = f"{100.0 * float(np.mean(is_valid)):.4g} % valid" if time.size else "no data"
        plots.append(Plot(x_axis, None, STRIP_HEIGHT, f"beam {number}: {share}"))
        plots[-1].draw_spans(*find_time_spans(time, is_valid), "good")
        plots[-1].draw_spans(*find_time_spans(time, ~is_valid), "bad")
    figure = SvgFigure(f"Beams of {name}", plots, "Not valid: no echo, out of range, or lost.")
    figure.legend = [("good", "valid"), ("bad", "not valid")]
    if "velocity_mode" in reading.arrays:
        mode = np.asarray(reading.arrays["velocity_mode"])[rows]
        plots.append(Plot(x_axis, None, STRIP_HEIGHT, f"velocity: {_format_mode_shares(mode)}"))
        for value, css_class, _ in VELOCITY_MODES:
            plots[-1].draw_spans(*find_time_spans(time, mode == value), css_class)
        figure.legend.append(("water", "through the water"))
    yield figure


def _format_mode_shares(mode: AnyArray) -> str:
    if not mode.size:
        return "no data"
    shares = {name: 100.0 * float(np.mean(mode == value)) for value, _, name in VELOCITY_MODES if name}
    return ", ".join(f"{name} {share:.4g} %" for name, share in shares.items() if share) or "none"


def get_cell_positions(reading: Reading, sensor: MountedSensor | None, count: int) -> tuple[FloatArray, str]:
    """Return the distances (m) of an ADCP's cells, or their numbers if unknown, and the title of an axis of them."""
    distance = reading.arrays.get("cell_distance", EMPTY)
    if distance.size and distance.shape == (reading.time.size, count) and np.isfinite(distance[0]).all():
        return np.asarray(distance[0], dtype=np.float64), "distance (m)"
    if sensor is not None and isinstance(sensor.spec, Adcp):
        declared = np.asarray(sensor.spec.cell_distance, dtype=np.float64)
        if declared.shape == (count,):
            return declared, "distance (m)"
    return np.arange(1.0, count + 1.0), "cell"


def make_profile_figures(
    reading: Reading, sensor: MountedSensor | None, span: tuple[float, float]
) -> Iterator[SvgFigure]:
    """Yield the profiles of an ADCP and their errors as waterfalls."""
    name = find_profile_array(reading)
    if name is None:
        return
    velocity, rows = reading.arrays[name], np.asarray(reading.emitted)
    distance, title = get_cell_positions(reading, sensor, velocity.shape[1])
    labels = list_axis_labels(reading.type, name, velocity.shape[2], sensor)
    yield make_waterfall("Current profile", reading.time[rows], velocity[rows], distance, title, span, labels)
    ideal = reading.ideal.get(name)
    if ideal is not None and ideal.shape == velocity.shape:
        error, colours = velocity[rows] - ideal[rows], replace(VELOCITY, title="reading minus ideal")
        yield make_waterfall("Profile minus ideal", reading.time[rows], error, distance, title, span, labels, colours)


def find_profile_array(reading: Reading) -> str | None:
    """Return the name of the array with an ADCP's profile: `velocity`, or `beam_velocity` if that is all NaN."""
    names = [name for name in ("velocity", "beam_velocity") if reading.arrays.get(name, EMPTY).ndim == 3]
    measured_names = [name for name in names if np.isfinite(reading.arrays[name]).any()]
    return next(iter(measured_names or names), None)


def make_current_figures(data: ReportData) -> Iterator[SvgFigure]:
    """Yield the true current by depth as a waterfall, nothing if it is recorded at one place only."""
    if data.current is None or data.current.layers is None or len(data.current.layers.depths) < 2:
        return
    layers, title = data.current.layers, "True current by depth"
    depths = np.array(layers.depths)
    labels, note = INSTRUMENT, "The shallowest are on top. The axes are those of the world."
    if data.heading == 0.0:
        labels, note = EARTH, "The shallowest are on top."
    time, velocity = data.current.time, layers.velocity
    yield make_waterfall(title, time, velocity, depths, "depth (m)", data.span, labels, note=note)


def make_waterfall(
    title: str,
    time: FloatArray,
    values: FloatArray,
    positions: FloatArray,
    y_title: str,
    span: tuple[float, float],
    labels: Sequence[str],
    colours: ColourScale = VELOCITY,
    *,
    note: str = "The nearest are on top.",
) -> SvgFigure:
    """Return values (n, k, a) at times (n,) s as `a` images with labels; the lowest position (k,) m is on top."""
    order = np.argsort(positions)
    half_cell = 0.5 * float(np.median(np.diff(positions[order]))) if positions.size > 1 else 0.5
    if colours.height <= TITLE_HEIGHT:
        y_title = y_title.partition("(")[2].rstrip(")") or y_title
    y_axis = Axis(float(positions.max()) + half_cell, float(positions.min()) - half_cell, y_title, Scale(1.0, "m"))
    low, high = colours.limits or _choose_colour_limits(values, signed=colours.signed)
    anchors = SIGNED_COLOURS if colours.signed else MAGNITUDE_COLOURS
    share = 100.0 * float(np.mean(np.isfinite(values))) if values.size else 0.0
    caption = f"{share:.3g} % of the cells have a value. {note}"
    x_axis = make_time_axis(*span)
    figure = SvgFigure(title, [Plot(x_axis, y_axis, colours.height, label) for label in labels], caption)
    for axis, plot in enumerate(figure.plots):
        columns = _compute_column_means(time, values[:, order, axis], span)
        pixels = compute_pixels((columns.T - low) / (high - low), anchors)
        if np.isfinite(columns).any():
            plot.draw_image(encode_png_uri(np.repeat(pixels, PIXELS_PER_ROW, axis=0)), "pixels")
            plot.background = "empty"
    scale = choose_scale("m/s", max(abs(low), abs(high))) if colours.signed else colours.scale
    axis_of_colours = Axis(low * scale.factor, high * scale.factor, format_axis_title(colours.title, scale.unit), scale)
    figure.legend = [("empty", "no value")] if share < 100.0 else []
    figure.colour_bar = ColourBar(
        encode_png_uri(compute_pixels(np.linspace(0.0, 1.0, 128)[None, :], anchors)), axis_of_colours
    )
    return figure


def _choose_colour_limits(values: FloatArray, *, signed: bool) -> tuple[float, float]:
    finite_values = values[np.isfinite(values)]
    if signed:
        limit = min(float(np.percentile(np.abs(finite_values), 99.5)), MAX_AXIS_VALUE) if finite_values.size else 0.0
        limit = limit if limit > 1.0 / MAX_AXIS_VALUE else 1.0
        return -limit, limit
    low, high = find_finite_range([np.percentile(finite_values, (0.5, 99.5))] if finite_values.size else [])
    return (low, high) if high - low > MIN_SPAN * max(abs(low), abs(high)) else (low - 0.5, low + 0.5)


def _compute_column_means(time: FloatArray, values: FloatArray, span: tuple[float, float]) -> FloatArray:
    """Return the means (c, k) of values (n, k) in the columns of an image over a span (s); NaN without a value."""
    interval = float(np.median(np.diff(time))) if time.size > 1 else 1.0
    duration = max(span[1] - span[0], 1e-9)
    count = max(1, min(IMAGE_COLUMNS, math.ceil(duration / interval)))
    column = np.clip(((time - span[0]) / duration * count).astype(np.int64), 0, count - 1)
    sums, counts = np.zeros((count, values.shape[1])), np.zeros((count, values.shape[1]))
    finite = np.isfinite(values)
    np.add.at(sums, column, np.where(finite, values, 0.0))
    np.add.at(counts, column, finite)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(counts > 0.0, sums / counts, math.nan))


def make_quality_figures(
    reading: Reading, sensor: MountedSensor | None, span: tuple[float, float]
) -> Iterator[SvgFigure]:
    """Yield images of the quality of the cells, without arrays that are missing or constant."""
    rows = np.asarray(reading.emitted)
    for name, title, colours in QUALITY:
        array = reading.arrays.get(name, EMPTY)
        finite_values = array[rows][np.isfinite(array[rows])] if array.ndim > 1 else EMPTY
        if not finite_values.size or (name != "percent_good" and not np.ptp(finite_values)):
            continue
        values = array[rows].reshape(int(np.count_nonzero(rows)), array.shape[1], -1)
        labels = list_axis_labels(reading.type, name, values.shape[2], sensor, per_beam=True)
        distance, y_title = get_cell_positions(reading, sensor, array.shape[1])
        yield make_waterfall(title, reading.time[rows], values, distance, y_title, span, labels, colours)


def format_cell_table(reading: Reading, sensor: MountedSensor | None) -> str:
    """Return the errors of each cell as an HTML table; empty without a profile or its ideal values."""
    name = find_profile_array(reading)
    ideal = reading.ideal.get(name) if name else None
    if name is None or ideal is None or ideal.shape != reading.arrays[name].shape:
        return ""
    rows = np.asarray(reading.emitted & reading.valid)
    error = reading.arrays[name][rows] - ideal[rows]
    distance, title = get_cell_positions(reading, sensor, error.shape[1])
    labels = list_axis_labels(reading.type, name, error.shape[2], sensor)
    declared = compute_declared_stddevs(reading, sensor, name)
    if declared is None:
        declared = np.full(error.shape[1:], math.nan)
    sizes = np.abs(np.concatenate([error[np.isfinite(error)], np.zeros(1)]))
    scale = choose_scale("m/s", float(np.median(sizes)))
    body = ""
    for cell in range(error.shape[1]):
        texts = [f"{distance[cell]:.4g}", *_format_quality_cells(reading, name, cell)]
        texts += _format_error_cells(error[:, cell], declared[cell], scale)
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


def _format_quality_cells(reading: Reading, name: str, cell: int) -> list[str]:
    """Return the fraction of ensembles with a value, good pings, echo and correlation of a cell."""
    rows = np.asarray(reading.emitted)
    fraction = float(np.isfinite(reading.arrays[name][rows, cell]).all(axis=-1).mean()) if rows.any() else 0.0
    good, echo, correlation = (_compute_cell_mean(reading, array, cell) for array, _, _ in QUALITY)
    return [_format_percent(fraction), _format_percent(good), _format_number(echo), _format_number(correlation)]


def _format_error_cells(error: FloatArray, declared: FloatArray, scale: Scale) -> list[str]:
    """Return statistics of errors (n, a) in a cell: those of `ERROR_COLUMNS`; `declared` (a,) is the last one."""
    finite_values = [values[np.isfinite(values)] for values in error.T]
    means = [float(values.mean()) if values.size else math.nan for values in finite_values]
    stddevs = [float(values.std()) if values.size > 1 else math.nan for values in finite_values]
    difference_stddevs = [math.sqrt(compute_pair_variance(values)[0]) for values in error.T]
    values = (*means, *stddevs, *difference_stddevs, *declared.tolist())
    return [f"{v * scale.factor:.2f}".replace("-", "\u2212") if math.isfinite(v) else DASH for v in values]


def compute_declared_stddevs(reading: Reading, sensor: MountedSensor | None, name: str) -> FloatArray | None:
    """Return the declared deviations (m, a) m/s of one ensemble in m cells and a axes; None without a spec."""
    directions = reading.arrays.get("beam_direction", EMPTY)
    if sensor is None or not isinstance(sensor.spec, Adcp) or directions.ndim != 3 or not directions.shape[0]:
        return None
    spec, rows = sensor.spec, np.asarray(reading.emitted & reading.valid)
    variances = _compute_ping_stddevs(reading, spec) ** 2 / spec.pings
    if name == "beam_velocity":
        return np.asarray(np.sqrt(variances))
    solution = np.linalg.pinv(np.asarray(directions[0], dtype=np.float64))
    covariances = np.einsum("ak,mk,bk->mab", solution, variances, solution)
    if spec.motion_compensated:
        covariances = covariances + spec.bottom.stddev**2 / spec.bottom_pings * (solution @ solution.T)
    rotations = compute_profile_rotations(reading.arrays.get("orientation", EMPTY)[rows], spec.coordinates.value)
    sums = np.einsum("iab,mbc,iac->ma", rotations, covariances, rotations)
    return np.asarray(np.sqrt(sums / max(rotations.shape[0], 1)))


def _compute_ping_stddevs(reading: Reading, spec: Adcp) -> FloatArray:
    """Return the deviations (m, k) m/s of a ping in each cell and beam; NaN without a correlation."""
    stddevs = np.full((int(spec.cells.count), len(spec.beams.beams)), float(spec.ping_stddev))
    correlation = reading.arrays.get("correlation", EMPTY)[np.asarray(reading.emitted)]
    if spec.backscatter is None or correlation.shape[1:] != stddevs.shape:
        return stddevs
    strong = spec.backscatter.correlation**-2 - 1.0
    has_value = np.isfinite(correlation)
    ratios = np.where(has_value, (np.where(has_value, correlation, 1.0) ** -2.0 - 1.0) / strong, 0.0).sum(axis=0)
    count = has_value.sum(axis=0)
    return np.asarray(stddevs * np.sqrt(np.where(count > 0, ratios / np.maximum(count, 1), math.nan)))


def compute_profile_rotations(orientation: FloatArray, coordinates: str) -> FloatArray:
    """Return rotations (n, 3, 3) from the instrument's axes to those of a profile.

    orientation: (n, 4) w x y z, from the instrument to east, north, up
    coordinates: `instrument`, `earth` or `ship`, the levelled axes with the heading of x
    """
    if coordinates == "instrument" or orientation.ndim != 2:
        return np.eye(3)[None]
    w, x, y, z = orientation[np.isfinite(orientation).all(axis=1)].T
    earth = np.stack(to_matrix_python(w, x, y, z), axis=-1).reshape(-1, 3, 3)
    if coordinates == "earth":
        return earth
    heading = np.arctan2(earth[:, 1, 0], earth[:, 0, 0])
    cos, sin, zero = np.cos(heading), np.sin(heading), np.zeros(heading.size)
    level = np.array(((cos, sin, zero), (-sin, cos, zero), (zero, zero, zero + 1.0))).transpose(2, 0, 1)
    return np.asarray(level @ earth)


def _compute_cell_mean(reading: Reading, name: str, cell: int) -> float:
    """Return the mean of an array in a cell over all beams; NaN without a value."""
    array = reading.arrays.get(name, EMPTY)
    values = array[np.asarray(reading.emitted), cell] if array.ndim > 1 else EMPTY
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else math.nan


def _format_percent(share: float) -> str:
    return f"{100.0 * share:.3g} %" if math.isfinite(share) else DASH


def _format_number(value: float) -> str:
    return f"{value:.3g}".replace("-", "\u2212") if math.isfinite(value) else DASH
