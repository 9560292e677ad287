"""The page of a campaign: errors over time, NEES with bounds, Allan deviations, tables by sweep value, worst runs.

Intervals are those of `navsense.analysis.monte_carlo`; medians and bands are sample quantiles of NumPy. Values that are
not finite are omitted, and the page says of how many runs. Notes list what the page does not show.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from navsense.analysis import monte_carlo, theory
from navsense.campaigns.report_columns import ReportColumns, find_declared_noise
from navsense.campaigns.result import CampaignResult
from navsense.campaigns.rows import COMMAND, RUN
from navsense.core.errors import SimulationError
from navsense.core.names import suggest_name
from navsense.core.text import format_count
from navsense.core.typing import FloatArray
from navsense.figures import Scale
from navsense.parameters import format_value
from navsense.recordings.info import get_version
from navsense.report.allan_figure import list_noise_terms
from navsense.report.axes import (
    DASH,
    Axis,
    choose_scale,
    find_finite_range,
    format_axis_title,
    make_linear_axis,
    make_log_axis,
    make_time_axis,
)
from navsense.report.page import check_report_path, format_grid, format_page, save_page
from navsense.report.residuals import list_declared_noises
from navsense.report.svg_figure import SvgFigure, stack_plots

if TYPE_CHECKING:
    import pyarrow as pa

MAX_POINT_FIGURES = 12
"""Largest number of points of a sweep with figures; the tables have more points."""

MAX_TABLE_POINTS = 500
"""Largest number of points of a sweep in the tables."""

MAX_COMPONENTS = 12
"""Largest number of components of a column in a figure."""

MAX_LISTED = 100
"""Largest number of failed runs, and of points without figures, that are listed."""

WORST_RUNS, WORST_RUNS_OF_POINT = 10, 3
"""Number of runs in the list of the worst: of a campaign without a sweep, and of each point of a sweep."""

SIGMAS = 2.0
"""Multiple of the standard deviations of an estimate in the figures of its errors."""

LARGEST = 1e100
"""Larger values count as not finite: the square of a larger one would overflow."""

CONSTANT = 1e-12
"""Largest spread of a constant column, relative to its values: those of many runs differ by rounding only."""

BAND = 0.05, 0.95
"""Quantiles at the ends of the bands of runs."""

AXES = ("x", "y", "z")
"""Names of the components of a column with two or three of them; the key `axes` has other names."""

REPEAT, ERROR = "command that repeats the run", "error of the run"
"""Headers of columns with long texts."""

FIGURE_HEIGHT, COMPONENT_HEIGHT = 260.0, 120.0
"""Height of the plots of a figure, and of the plot of a component (pixels), at least."""


def write_campaign(
    result: CampaignResult, output: str | os.PathLike[str], columns: ReportColumns | None = None
) -> Path:
    """Write the page of a campaign, and return its path.

    output: the page, ending in `.html` or `.htm`.
    columns: what is shown over time. None: columns named `time`, `error`, or ending in `_error`.

    Raises `RecordingError` if the page cannot be written, and `SimulationError` for a column that does not exist.

    >>> ns.report.write_campaign(result, "campaign.html").name
    'campaign.html'
    """
    page_path = check_report_path(output)
    shown = _Shown(result, columns or ReportColumns())
    sections = [
        ("errors", "Errors over time", _format_figures(shown, shown.make_error_figures)),
        ("consistency", "Consistency", _format_consistency(shown)),
        ("allan", "Allan deviation", _format_figures(shown, shown.make_allan_figures)),
        ("sweep", "Over the sweep", format_grid(shown.make_sweep_figures())),
        ("columns", "Columns", _format_columns(shown)),
        ("rates", "Rates", _format_rates(shown)),
        ("worst", "Worst runs", _format_worst(shown)),
    ]
    sections = [
        ("summary", "Summary", _format_summary(result)),
        ("notes", "Notes", _format_notes(shown)),
        ("failures", "Failed runs", _format_failures(result)),
        *sections,
    ]
    plan = result.campaign
    count = format_count(plan.row_count, "run")
    points = f" ({format_count(len(plan.points), 'point')} of {len(plan.runs)})" if plan.paths else ""
    headline = f"{count}{points} of {plan.duration:g} s; seed {plan.seed}; navsense {get_version()}"
    text = format_page(
        f"{plan.world.name}: campaign", headline, [(key, title, title, body) for key, title, body in sections if body]
    )
    return save_page(text, page_path)


def check_campaign_page(output: str, folder: str) -> None:
    """Raise `RecordingError` if no page can be written after the runs.

    folder: of the results, where the page can be although the folder does not exist yet.
    """
    is_inside = Path(folder).absolute() in Path(output).absolute().parents
    check_report_path(Path(output).name if is_inside and not Path(folder).exists() else output)


@dataclass(frozen=True)
class _Point:
    """A point of the sweep: values by path, and the rows of its runs that succeeded."""

    values: Mapping[str, Any]
    rows: CampaignResult

    def format_title(self, name: str) -> str:
        """Return the title of a figure: the column and the values of the sweep."""
        return ", ".join([name, *(f"{path} = {format_value(value)}" for path, value in self.values.items())])

    def format_cells(self) -> list[str]:
        """Return the values as cells of a table."""
        return [format_value(value) for value in self.values.values()]


class _Shown:
    """The columns of a campaign by what the page shows of them, and notes on those that it cannot show."""

    def __init__(self, result: CampaignResult, columns: ReportColumns) -> None:
        """Choose the columns. Raises `SimulationError` for one that does not exist."""
        self.result, self.columns = result, columns
        names, runs = list(result.columns), len(result.campaign.runs)
        has_rows = result.get_succeeded().num_rows > 0
        for name in columns.list_columns() if has_rows else ():
            _check_column(result, columns, name)
        errors = columns.errors
        if errors is None:
            errors = tuple(name for name in names if name == "error" or name.endswith("_error"))
        self.errors = tuple(name for name in errors if name in names)
        self.consistency = {name: dof for name, dof in {**columns.nees, **columns.nis}.items() if name in names}
        self.allan = {name: dof for name, dof in columns.allan.items() if name in names}
        self.notes: dict[str, None] = {}
        self.points = []
        for index, values in enumerate(result.campaign.points):
            rows = replace(result, table=result.table.slice(index * runs, runs))
            self.points.append(_Point(dict(values), replace(rows, table=rows.get_succeeded())))
        self.numbers = [name for name in names if _get_kind(result.table, name) == "number"]
        self.flags = [name for name in names if _get_kind(result.table, name) == "flag"]
        self._note_columns(names, has_rows=has_rows)

    def _note_columns(self, names: Sequence[str], *, has_rows: bool) -> None:
        """Note what no section can show."""
        if not has_rows:
            self.note("No run succeeded, so there are no statistics.")
        elif not names:
            self.note("The campaign has no column of reduce, so there are no statistics.")
        elif not any(_get_kind(self.result.table, name) in ("number", "flag", "array") for name in names):
            self.note("No column has numbers, so there are no statistics.")
        for name in names if has_rows else ():
            kind = _get_kind(self.result.table, name)
            if kind == "empty":
                self.note(f"{name}: no run has a value.")
            elif kind == "text" and name in (*self.errors, *self.consistency, *self.allan):
                self.note(f"{name}: has texts; must have numbers.")
        shown = (*self.errors, *self.consistency, *self.allan, self.columns.time, self.columns.tau)
        shown += (*self.columns.allan.values(), *self.columns.deviations.values())
        arrays = [n for n in names if n not in shown and has_rows and _get_kind(self.result.table, n) == "array"]
        if arrays:
            self.note(f"Arrays without a figure, in results.parquet: {', '.join(arrays)}.")
        count = len(self.points) - MAX_TABLE_POINTS
        if count > 0:
            self.note(f"The tables have {MAX_TABLE_POINTS} points. The other {count} are in results.parquet.")

    def note(self, text: str) -> None:
        """Add a note once."""
        self.notes.setdefault(text)

    def get_values(self, name: str, point: _Point) -> FloatArray | None:
        """Return the values (runs, ...) of a column at a point, without runs that have none; None if there are none."""
        if _get_kind(self.result.table, name) in ("text", "empty"):
            return None
        known, count = _select_known(point.rows.table, name), point.rows.table.num_rows
        if known.num_rows < count:
            self.note(f"{name}: {format_count(count - known.num_rows, 'run')} without a value.")
        if not known.num_rows:
            return None
        try:
            values = np.asarray(replace(point.rows, table=known).get_array(name), dtype=np.float64)
        except SimulationError:
            self.note(f"{name}: the shape of the arrays differs between runs; use results.parquet.")
            return None
        if not values.size:
            self.note(f"{name}: the arrays are empty.")
            return None
        return np.where(np.abs(values) > LARGEST, np.inf, values)

    def get_unit(self, name: str) -> str:
        """Return the unit of a column, "" if it is not known."""
        return self.columns.units.get(name, "")

    def label(self, name: str, title: str = "") -> str:
        """Return the name of a column, or another title for it, with its unit."""
        return format_axis_title(title or name, self.get_unit(name))

    def list_paths(self) -> list[str]:
        """Return the paths of the sweep with their units."""
        return [self.label(path) for path in self.result.campaign.paths]

    def list_components(self, name: str, values: FloatArray) -> list[tuple[str, FloatArray]]:
        """Return label and values (runs, rows) of each component of an array (runs, rows, ...)."""
        components = values.reshape(*values.shape[:2], -1)
        count = components.shape[2]
        labels = list(self.columns.axes.get(name, ()))
        if len(labels) != count:
            if labels:
                self.note(f"{name}: axes has {format_count(len(labels), 'name')} for {count} components.")
            labels = [name] if count == 1 else [*AXES[:count]] if count <= len(AXES) else list(map(str, range(count)))
        if count > MAX_COMPONENTS:
            self.note(f"{name}: figures show the first {MAX_COMPONENTS} of {count} components.")
        return [(label, components[:, :, index]) for index, label in enumerate(labels[:MAX_COMPONENTS])]

    def make_time(self, point: _Point, count: int) -> tuple[FloatArray, Axis] | None:
        """Return the times (s) of arrays with `count` rows and their axis; without times, the number of the row.

        If the times of the runs differ, returns their mean; None if they differ by more than half a step.
        """
        name = self.columns.time
        time = self.get_values(name, point) if name in self.result.columns else None
        if time is not None and time.ndim == 2 and time.shape[1] == count and np.isfinite(time).all():
            mean, spread = time.mean(axis=0), float(np.ptp(time, axis=0).max())
            step = float(np.diff(mean).min(initial=np.inf))
            if spread > 0.5 * step > 0.0:
                self.note(f"{name}: differs by up to {spread:.3g} s between runs, so there is no figure over time.")
                return None
            if spread > CONSTANT * np.abs(mean).max():
                self.note(f"{name}: differs by up to {spread:.3g} s between runs; figures show the mean.")
            if step > 0.0:
                return mean, make_time_axis(float(mean[0]), float(mean[-1]))
        if count > 1:
            self.note(f"No times of {count} rows in the column {name or 'time'}: figures show the number of the row.")
        rows = np.arange(count, dtype=np.float64)
        return rows, Axis(0.0, float(max(count - 1, 1)), "row", Scale(1.0, ""))

    def make_error_figures(self, point: _Point) -> Iterator[SvgFigure]:
        """Yield a figure for each error over time: its band, its median, its RMS, and its standard deviation."""
        for name in self.errors:
            values = self.get_values(name, point)
            if values is None or values.ndim < 2:
                continue
            times = self.make_time(point, values.shape[1])
            if times is None:
                continue
            time, x_axis = times
            components = self.list_components(name, values)
            finite = [np.where(np.isfinite(part), part, np.nan) for _, part in components]
            bands = [_compute_quantiles(part, (BAND[0], 0.5, BAND[1])) for part in finite]
            rms = [np.sqrt(_compute_means(part**2)) for part in finite]
            limits = [SIGMAS * deviation for deviation in self.list_deviations(name, point, values)]
            # All components have the same scale, so that a reader can compare them.
            scale = choose_scale(self.get_unit(name), max(map(abs, find_finite_range([*bands, *rms, *limits]))))
            axes = []
            for index, (label, _) in enumerate(components):
                series = [bands[index], rms[index], *(sign * limit for limit in limits[index:][:1] for sign in (-1, 1))]
                axis = make_linear_axis("", "", [part * scale.factor for part in series], zero=True)
                axes.append(replace(axis, title=format_axis_title(label, scale.unit), scale=scale))
            count = format_count(values.shape[0], "run")
            caption = f"{count}; the band is from the 5 % to the 95 % quantile.{_count_invalid(values)}"
            ends = [(label, part[np.isfinite(part[:, -1]), -1] * scale.factor) for label, part in components]
            roots = [f"{label} {_format_estimate(monte_carlo.estimate_rms(end))}" for label, end in ends if end.size]
            if roots:
                unit = f" {scale.unit}" if scale.unit not in ("", "1") else ""
                caption += f" RMS at the end, and its interval of 95 % for normal errors: {', '.join(roots)}{unit}."
            height = max(FIGURE_HEIGHT, COMPONENT_HEIGHT * len(axes))
            figure = stack_plots(point.format_title(name), x_axis, axes, caption, height)
            for plot, band, root in zip(figure.plots, bands, rms, strict=True):
                plot.draw_area(time, band[0], band[2], "span")
                plot.has_data = True
                plot.draw_horizontal_line(0.0, "zero")
                plot.draw_line(time, band[1], "c0")
                plot.draw_line(time, root, "c1")
            for plot, limit in zip(figure.plots, limits, strict=False):
                for sign in (-1.0, 1.0):
                    plot.draw_line(time, sign * limit, "declared")
            figure.legend = [("span", "5 to 95 % of the runs"), ("c0", "median"), ("c1", "RMS")]
            figure.legend += [("declared", f"±{SIGMAS:g} standard deviations of the estimate")] if limits else []
            yield figure

    def list_deviations(self, name: str, point: _Point, errors: FloatArray) -> list[FloatArray]:
        """Return the standard deviations (rows,) of the components of an error: the RMS over the runs; or none."""
        column = self.columns.deviations.get(name)
        values = None if column is None else self.get_values(column, point)
        if values is None or values.shape != errors.shape:
            if column is not None:
                self.note(f"{column}: needs the shape of {name}.")
            return []
        return [np.sqrt(_compute_means(part**2)) for _, part in self.list_components(name, values)]

    def make_consistency_figures(self, point: _Point) -> Iterator[SvgFigure]:
        """Yield a figure for each NEES or NIS over time: the mean over the runs, and its bounds."""
        for name, dof in self.consistency.items():
            values = self.get_values(name, point)
            if values is None or values.ndim < 2:
                continue
            if values.ndim > 2:
                self.note(f"{name}: has {values.ndim - 1} axes in each run; must have one value, or one for each time.")
                continue
            times = self.make_time(point, values.shape[1])
            if times is None:
                continue
            time, x_axis = times
            finite = np.where(np.isfinite(values), values, np.nan)
            mean, counts = _compute_means(finite), np.isfinite(values).sum(axis=0)
            limits = {int(n): monte_carlo.compute_nees_bounds(dof, int(n)) for n in np.unique(counts) if n}
            low, high = np.array([limits.get(int(n), (np.nan, np.nan)) for n in counts]).T
            known = counts > 0
            if not known.any():
                self.note(f"{name}: no value is finite.")
                continue
            inside = np.count_nonzero((mean > low) & (mean < high)) / np.count_nonzero(known)
            bounds = f"{low[known][0]:.3g} to {high[known][0]:.3g}" if len(limits) == 1 else "of the finite values"
            count = format_count(values.shape[0], "run")
            caption = (
                f"Mean of {count}: {100.0 * inside:.0f} % of the instants are inside the bounds {bounds}. "
                f"A consistent filter has the mean {dof}, and 95 % inside on average over many campaigns: the instants "
                f"of a run are not independent.{_count_invalid(values)}"
            )
            series = [mean, low, high]
            is_near = np.nanmax(series) < 10.0 * dof
            axis = (
                make_linear_axis(f"mean of {name}", "", series, zero=True)
                if is_near
                else make_log_axis(f"mean of {name}", "", series)
            )
            figure = stack_plots(point.format_title(name), x_axis, [axis], caption, FIGURE_HEIGHT)
            figure.plots[0].draw_horizontal_line(float(dof), "zero")
            figure.plots[0].draw_line(time, mean, "c0")
            for bound in (low, high):
                figure.plots[0].draw_line(time, bound, "declared")
            figure.legend = [("c0", "mean over the runs"), ("declared", "bounds of 95 %"), ("zero", "expected")]
            yield figure

    def make_allan_figures(self, point: _Point) -> Iterator[SvgFigure]:
        """Yield a figure for each Allan deviation: that of all runs with its interval, and the band of the runs."""
        for name, dof_name in self.allan.items():
            values, times = self.get_values(name, point), self.get_values(self.columns.tau, point)
            if values is None or times is None:
                continue
            is_usable = values.ndim > 1 and times.ndim == 2 and times.shape[1] == values.shape[1]
            if not (is_usable and (times == times[0]).all() and np.isfinite(times).all() and (times > 0.0).all()):
                self.note(f"{name}: needs the same averaging times in each run, in the column {self.columns.tau}.")
                continue
            dof = self.get_values(dof_name, point) if dof_name else None
            if dof_name and (dof is None or dof.shape != values.shape):
                self.note(f"{dof_name}: needs the shape of {name}; the interval is from the spread of the runs.")
            components = self.list_components(name, values)
            curves = []
            for index, (label, deviations) in enumerate(components):
                good = np.isfinite(deviations).all(axis=1) & (deviations >= 0.0).all(axis=1)
                freedom = None
                if dof is not None and dof.shape == values.shape:
                    freedom = dof.reshape(*dof.shape[:2], -1)[..., index]
                if freedom is not None:
                    good &= np.isfinite(freedom).all(axis=1) & (freedom > 0.0).all(axis=1)
                if np.count_nonzero(good) < (2 if freedom is None else 1):
                    self.note(f"{name}: too few runs with Allan deviations for an interval.")
                    break
                merged = monte_carlo.estimate_allan_deviation(
                    deviations[good], None if freedom is None else freedom[good]
                )
                curves.append((label, merged, np.quantile(deviations[good], BAND, axis=0), np.count_nonzero(good)))
            if len(curves) == len(components):
                yield self._make_allan_figure(point, name, times[0], curves)

    def compute_declared(self, point: _Point, name: str, tau: FloatArray, count: int) -> list[FloatArray]:
        """Return the declared Allan deviation of each of `count` components; none if the world does not declare it."""
        if name not in self.columns.declared:
            return []
        world = self.result.campaign.make_point_world(point.values)
        sensor, array, components = find_declared_noise(world, self.columns.declared[name])
        noises = list_declared_noises(sensor, array, self.get_unit(name))[components]
        factors = np.rint(tau * sensor.rate)
        if len(noises) != count or not np.allclose(tau * sensor.rate, factors, rtol=1e-6, atol=0.0):
            self.note(f"{name}: no declared noise of {count} components at multiples of 1/{sensor.rate:g} s.")
            return []
        terms = [list_noise_terms(noise, sensor.rate) for noise in noises]
        factors = factors.astype(np.int64)
        return [np.sqrt(theory.allan_variance(each, factors, sensor.rate)) if each else 0.0 * tau for each in terms]

    def _make_allan_figure(self, point: _Point, name: str, tau: FloatArray, curves: Sequence[Any]) -> SvgFigure:
        """Return the figure of an Allan deviation."""
        declared = self.compute_declared(point, name, tau, len(curves))
        time = make_log_axis("", "", [tau])
        x_axis = Axis(time.low, time.high, "averaging time (s)", Scale(1.0, "s"), log=True)
        axes = [
            make_log_axis(label, self.get_unit(name), [merged.low, merged.high, *band, *declared])
            for label, merged, band, _ in curves
        ]
        count = min(count for *_, count in curves)
        caption = (
            f"{format_count(count, 'run')}; the band is from the 5 % to the 95 % quantile. "
            "The variance of all runs is the mean of their variances, and the interval is that of each time alone."
        )
        height = max(FIGURE_HEIGHT, COMPONENT_HEIGHT * len(axes))
        figure = stack_plots(point.format_title(name), x_axis, axes, caption, height)
        for plot, (_, merged, band, _) in zip(figure.plots, curves, strict=True):
            plot.draw_area(tau, band[0], band[1], "span")
            for bound in (merged.low, merged.high):
                plot.draw_line(tau, bound, "dark")
            plot.draw_line(tau, merged.value, "c0")
        for plot, deviation in zip(figure.plots, declared, strict=False):
            plot.draw_line(tau, deviation, "declared")
        figure.legend = [
            ("span", "5 to 95 % of the runs"),
            ("c0", "all runs"),
            ("dark", "its interval of 95 %"),
            *([("declared", "declared noise")] if declared else []),
        ]
        return figure

    def make_sweep_figures(self) -> Iterator[SvgFigure]:
        """Yield a figure for each column over the values of a single parameter: mean or rate with its interval."""
        paths = self.result.campaign.paths
        if len(paths) != 1:
            return
        path = paths[0]
        given = [point.values[path] for point in self.points]
        if len(given) < 2 or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in given):
            return
        order = np.argsort(np.array(given, dtype=np.float64), kind="stable")
        x = np.array(given, dtype=np.float64)[order]
        is_log = x[0] > 0.0 and x[-1] > 10.0 * x[0]
        make_axis = make_log_axis if is_log else make_linear_axis
        x_axis = make_axis(path, self.get_unit(path), [x])
        for name in (*self.numbers, *self.flags):
            estimates = [self._estimate(name, self.points[index]) for index in order]
            value, low, high = (
                np.array([np.nan if e is None else float(part(e)) for e in estimates]) for part in _PARTS
            )
            if np.count_nonzero(np.isfinite(value)) < 2 or (name in self.numbers and self._is_constant(name)):
                continue
            is_rate = name in self.flags
            label, unit = (f"rate of {name}", "%") if is_rate else (f"mean of {name}", self.get_unit(name))
            if is_rate:
                value, low, high = 100.0 * value, 100.0 * low, 100.0 * high
            axis = make_linear_axis(label, unit, [value, low, high])
            caption = (
                "The interval is that of each point alone. All points have the same run numbers, so the difference of "
                "two points can be more certain: see the mean of the differences by run."
            )
            figure = stack_plots(f"{name} over {path}", x_axis, [axis], caption, FIGURE_HEIGHT)
            figure.plots[0].draw_line(x, value, "c0")
            bars = np.stack([low, high, np.full(x.size, np.nan)], axis=1).ravel()
            figure.plots[0].draw_path(np.repeat(x, 3), bars, "dark")
            figure.legend = [("c0", "rate" if is_rate else "mean"), ("dark", "interval of 95 %")]
            yield figure

    def _is_constant(self, name: str) -> bool:
        """Return whether a column of numbers is equal at all points."""
        values = (self.get_values(name, point) for point in self.points)
        return _is_constant(np.concatenate([array for array in values if array is not None]))

    def _estimate(self, name: str, point: _Point) -> monte_carlo.Estimate | None:
        """Return mean or rate of a column at a point; None without values. One value has no interval."""
        values = self.get_values(name, point)
        finite = np.empty(0) if values is None else values[np.isfinite(values)]
        if not finite.size:
            return None
        if name in self.flags:
            return monte_carlo.estimate_rate(finite)
        if finite.size < 2:
            return monte_carlo.Estimate(finite[0], np.full((), np.nan), np.full((), np.nan))
        return monte_carlo.estimate_mean(finite)


_PARTS: tuple[Callable[[monte_carlo.Estimate], FloatArray], ...] = (
    lambda estimate: estimate.value,
    lambda estimate: estimate.low,
    lambda estimate: estimate.high,
)
"""Value and interval of an estimate."""


def _check_column(result: CampaignResult, columns: ReportColumns, name: str) -> None:
    """Raise `SimulationError` for a column that does not exist."""
    known = [*result.columns, *(result.campaign.paths if name in columns.units else ())]
    if name in known:
        return
    where, remedy = columns.places.get(name), suggest_name(name, known)
    if where is not None:
        kept = f"correct [report] and repeat the command; the rows are in {result.folder}/results.parquet"
        remedy = f"{remedy}; {kept}" if remedy else kept
    raise SimulationError("column", name, allowed=f"must be one of {', '.join(known)}", remedy=remedy, where=where)


def _get_kind(table: pa.Table, name: str) -> str:
    """Return what a column has: number, flag (truth values), array, text, or empty (no value in any run)."""
    import pyarrow as pa

    kind = inner = table.schema.field(name).type
    while pa.types.is_list(inner):
        inner = inner.value_type
    if pa.types.is_null(inner) or table[name].null_count == len(table):
        return "empty"
    if not (pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_boolean(inner)):
        return "text"
    return "array" if pa.types.is_list(kind) else "flag" if pa.types.is_boolean(kind) else "number"


def _select_known(table: pa.Table, name: str) -> pa.Table:
    """Return the rows that have a value in a column."""
    import pyarrow.compute

    return table.filter(pyarrow.compute.is_valid(table[name]))


def _compute_means(values: FloatArray) -> FloatArray:
    """Return the means over the runs (rows,) of values (runs, rows) without NaN; NaN where there are none."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))


def _compute_quantiles(values: FloatArray, probabilities: Sequence[float]) -> FloatArray:
    """Return quantiles (probability, row) over the runs of values (runs, rows) without NaN."""
    known = np.isfinite(values)
    if known.all():
        return np.asarray(np.quantile(values, probabilities, axis=0))
    quantiles = np.full((len(probabilities), values.shape[1]), np.nan)
    for row in np.flatnonzero(known.any(axis=0)):
        quantiles[:, row] = np.quantile(values[known[:, row], row], probabilities)
    return quantiles


def _is_constant(values: FloatArray) -> bool:
    """Return whether several values (runs,) are finite, and equal up to rounding."""
    return values.size > 1 and bool(np.isfinite(values).all() and np.ptp(values) <= CONSTANT * np.abs(values).max())


def _count_invalid(values: FloatArray) -> str:
    """Return the sentence on runs with values that are not finite; "" for none."""
    count = int(np.count_nonzero(~np.isfinite(values).reshape(values.shape[0], -1).all(axis=1)))
    return f" Values of {format_count(count, 'run')} that are not finite are left out." if count else ""


def _format_figures(shown: _Shown, make_figures: Callable[[_Point], Iterable[SvgFigure]]) -> str:
    """Return the figures of the first points, and the list of the points without figures."""
    points = shown.points
    figures = format_grid(figure for point in points[:MAX_POINT_FIGURES] for figure in make_figures(point))
    others = points[MAX_POINT_FIGURES:]
    if not figures or not others:
        return figures
    items = "".join(f"<li>{escape(point.format_title('')[2:])}</li>" for point in others[:MAX_LISTED])
    more = f"<li>{len(others) - MAX_LISTED} more</li>" if len(others) > MAX_LISTED else ""
    text = f"Figures show the first {MAX_POINT_FIGURES} of {len(points)} points. Points without figures: {len(others)}"
    return f"{figures}<details><summary>{text}</summary><ul>{items}{more}</ul></details>"


def _format_summary(result: CampaignResult) -> str:
    """Return tiles with the numbers of runs, points and failed runs."""
    plan = result.campaign
    facts = [("Runs", f"{len(plan.runs)}", "at each point" if plan.paths else "")]
    facts += [("Points", f"{len(plan.points)}", ", ".join(plan.paths))] if plan.paths else []
    facts += [("Duration", f"{plan.duration:g} s", "of each run")]
    facts += [("Failed runs", f"{len(result.failures)}", f"of {plan.row_count}" if result.failures else "")]
    parts = (
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(detail)}</small></dd></div>"
        for name, value, detail in facts
    )
    return f'<dl class="facts">{"".join(parts)}</dl>'


def _format_notes(shown: _Shown) -> str:
    """Return the list of what the page cannot show."""
    items = "".join(f'<li class="note">{escape(text)}</li>' for text in shown.notes)
    return f'<ul class="warnings">{items}</ul>' if items else ""


def _format_failures(result: CampaignResult) -> str:
    """Return the failed runs with their errors and commands."""
    rows = [
        (
            str(failure.run),
            *(format_value(value) for value in failure.parameters.values()),
            failure.error,
            failure.command,
        )
        for failure in result.failures[:MAX_LISTED]
    ]
    if not rows:
        return ""
    table = _format_table(("run", *result.campaign.paths, ERROR, REPEAT), rows)
    more = len(result.failures) - MAX_LISTED
    return f"{table}<p>{more} more are in the column failure of results.parquet.</p>" if more > 0 else table


def _format_consistency(shown: _Shown) -> str:
    """Return the figures of NEES and NIS over time, and the table of those with one value for each run."""
    rows = []
    for name, dof in shown.consistency.items():
        for point in shown.points[:MAX_TABLE_POINTS]:
            values = shown.get_values(name, point)
            finite = np.empty(0) if values is None or values.ndim > 1 else values[np.isfinite(values)]
            if finite.size:
                mean = float(finite.mean())
                low, high = monte_carlo.compute_nees_bounds(dof, finite.size)
                verdict = (
                    "below: the covariance is too large"
                    if mean < low
                    else "above: the covariance is too small"
                    if mean > high
                    else "inside"
                )
                bounds = f"{low:.4g} to {high:.4g}"
                rows.append((name, *point.format_cells(), f"{finite.size}", f"{dof}", f"{mean:.4g}", bounds, verdict))
    header = ("column", *shown.list_paths(), "runs", "expected", "mean", "bounds of 95 %", "mean is")
    return _format_figures(shown, shown.make_consistency_figures) + (_format_table(header, rows) if rows else "")


def _format_columns(shown: _Shown) -> str:
    """Return mean, standard deviation and quantiles of each column of numbers at each point."""
    rows = []
    for name in shown.numbers:
        for point in shown.points[:MAX_TABLE_POINTS]:
            values = shown.get_values(name, point)
            finite = np.empty(0) if values is None else values[np.isfinite(values)]
            omitted = 0 if values is None else values.size - finite.size
            if omitted:
                shown.note(f"{name}: {format_count(omitted, 'value')} that are not finite.")
            if not finite.size:
                rows.append((shown.label(name), *point.format_cells(), "0", *(DASH,) * 5))
                continue
            if _is_constant(finite):
                constant = (f"{finite.size}", f"{float(finite[0]):.4g}", "constant", *(DASH,) * 3)
                rows.append((shown.label(name), *point.format_cells(), *constant))
                continue
            estimates = [f"{float(finite[0]):.4g}", DASH]
            if finite.size > 1:
                estimates = [
                    _format_estimate(estimate(finite))
                    for estimate in (monte_carlo.estimate_mean, monte_carlo.estimate_stddev)
                ]
            quantiles = np.quantile(finite, (BAND[0], 0.5, BAND[1]))
            cells = (f"{finite.size}", *estimates, *(f"{float(value):.4g}" for value in quantiles))
            rows.append((shown.label(name), *point.format_cells(), *cells))
    header = ("column", *shown.list_paths(), "runs", "mean", "standard deviation", "5 %", "median", "95 %")
    return _format_table(header, rows) + "<p>In brackets: the interval of 95 %.</p>" if rows else ""


def _format_rates(shown: _Shown) -> str:
    """Return the share of runs with a true value, for each column of truth values at each point."""
    rows = []
    for name in shown.flags:
        for point in shown.points[:MAX_TABLE_POINTS]:
            values = shown.get_values(name, point)
            if values is not None:
                rate = monte_carlo.estimate_rate(values)
                share, low, high = (100.0 * float(part(rate)) for part in _PARTS)
                counts = f"{int(values.sum())} of {values.size}"
                rows.append((name, *point.format_cells(), counts, f"{share:.4g} ({low:.4g} to {high:.4g})"))
    header = ("column", *shown.list_paths(), "runs with true", "rate (%)")
    text = "<p>In brackets: the interval of 95 % (Clopper and Pearson).</p>"
    return _format_table(header, rows) + text if rows else ""


def _format_estimate(estimate: monte_carlo.Estimate) -> str:
    """Return a statistic with its confidence interval."""
    return f"{float(estimate.value):.4g} ({float(estimate.low):.4g} to {float(estimate.high):.4g})"


def _format_worst(shown: _Shown) -> str:
    """Return the runs with the largest size of the first error at its end at each point, and the command of each."""
    if not shown.errors:
        return ""
    name = shown.errors[0]
    kind = _get_kind(shown.result.table, name)
    is_array, rows = kind == "array", []
    count = WORST_RUNS_OF_POINT if shown.list_paths() else WORST_RUNS
    for point in shown.points[:MAX_TABLE_POINTS] if kind in ("number", "array") else ():
        values, table = shown.get_values(name, point), _select_known(point.rows.table, name)
        # Arrays whose shape differs between runs have ends too.
        each = table[name].to_pylist() if values is None else values
        final = [np.ravel(np.asarray(row, dtype=np.float64)[-1:] if is_array else row) for row in each]
        sizes = [float(np.linalg.norm(size)) if size.size else math.nan for size in final]
        runs = list(zip(table[RUN].to_pylist(), table[COMMAND].to_pylist(), strict=True))
        for index in sorted(range(len(sizes)), key=lambda k: (math.isfinite(sizes[k]), -sizes[k]))[:count]:
            size = f"{sizes[index]:.4g}" if math.isfinite(sizes[index]) else "not finite"
            rows.append((str(runs[index][0]), *point.format_cells(), size, runs[index][1]))
    size_title = shown.label(name, f"size of the final {name}" if is_array else f"size of {name}")
    return _format_table(("run", *shown.list_paths(), size_title, REPEAT), rows) if rows else ""


def _format_command(command: str) -> str:
    """Return a command whose options are not broken after a hyphen."""
    return re.sub(r"(?<= )--[\w-]+", r"<span>\g<0></span>", escape(command))


def _format_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of HTML whose first column is the header of its row."""
    classes = [{REPEAT: ' class="command"', ERROR: ' class="text"'}.get(text, "") for text in columns]
    head = "".join(f'<th scope="col"{name}>{escape(text)}</th>' for name, text in zip(classes, columns, strict=True))
    body = ""
    for first, *others in rows:
        cells = "".join(
            f"<td{name}>{_format_command(cell) if 'command' in name else escape(cell)}</td>"
            for name, cell in zip(classes[1:], others, strict=True)
        )
        body += f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>'
    return (
        f'<div class="scroll"><table class="summary"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )
