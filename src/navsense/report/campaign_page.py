"""The page of a campaign: statistics of its columns, errors over time, NEES with bounds, and the worst runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from navsense.analysis import monte_carlo
from navsense.campaigns.experiment_file import ReportColumns
from navsense.campaigns.result import COMMAND, CampaignResult
from navsense.campaigns.rows import RUN
from navsense.core.text import format_count
from navsense.core.typing import FloatArray
from navsense.parameters import format_value
from navsense.recordings.info import get_version
from navsense.report.axes import Axis, make_linear_axis, make_log_axis, make_time_axis
from navsense.report.page import check_report_path, format_grid, format_page, save_page
from navsense.report.svg_figure import SvgFigure, stack_plots

MAX_POINT_FIGURES = 12
"""Largest number of points of a sweep with figures; the tables have all points."""

WORST_RUNS = 10
"""Number of runs in the list of the worst."""

BAND = 0.05, 0.95
"""Quantiles at the ends of the bands of errors."""

AXES = ("east", "north", "up")
"""Names of the components of an error with two or three axes."""


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
        ("summary", "Summary", _format_summary(result)),
        ("failures", "Failed runs", _format_failures(result)),
        ("errors", "Errors over time", _format_figures(shown, shown.make_error_figures)),
        ("consistency", "Consistency", _format_figures(shown, shown.make_consistency_figures)),
        ("columns", "Columns", _format_columns(shown)),
        ("worst", "Worst runs", _format_worst(shown)),
    ]
    plan = result.campaign
    headline = (
        f"{format_count(plan.row_count, 'run')} of {plan.duration:g} s; seed {plan.seed}; navsense {get_version()}"
    )
    text = format_page(
        f"{plan.world.name}: campaign", headline, [(key, title, title, body) for key, title, body in sections if body]
    )
    return save_page(text, page_path)


class _Shown:
    """The columns of a campaign by what the page shows of them."""

    def __init__(self, result: CampaignResult, columns: ReportColumns) -> None:
        """Choose the columns. Raises `SimulationError` for one that does not exist."""
        self.result = result
        names = list(result.columns)
        errors = columns.errors
        if errors is None:
            errors = tuple(name for name in names if name == "error" or name.endswith("_error"))
        for name in (*errors, *columns.nees, *columns.nis):
            result.get_array(name)
        self.errors = errors
        self.consistency = {**columns.nees, **columns.nis}
        self.time = columns.time if columns.time in names else ""
        self.points = [dict(point) for point in result.campaign.points]

    def get_time(self, point: Mapping[str, Any], count: int) -> FloatArray:
        """Return the time (s) of the rows of arrays with `count` rows; their index without a column of times."""
        if not self.time:
            return np.arange(count, dtype=np.float64)
        time = np.asarray(self.result.get_array(self.time, point), dtype=np.float64)
        return time.mean(axis=0) if time.ndim == 2 and time.shape[1] == count else np.arange(count, dtype=np.float64)

    def make_error_figures(self, point: Mapping[str, Any]) -> Iterator[SvgFigure]:
        """Yield a figure for each error over time: its band, its median and its RMS."""
        for name in self.errors:
            values = np.asarray(self.result.get_array(name, point), dtype=np.float64)
            if values.ndim < 2 or not values.size:
                continue
            components = values if values.ndim == 3 else values[:, :, None]
            time = self.get_time(point, components.shape[1])
            labels = AXES if 1 < components.shape[2] <= len(AXES) else [name] * components.shape[2]
            series = [components[:, :, axis] for axis in range(components.shape[2])]
            bands = [np.quantile(part, BAND, axis=0) for part in series]
            rms = [monte_carlo.estimate_rms(part).value for part in series]
            axes = [
                make_linear_axis(label, "", [*band, root])
                for label, band, root in zip(labels, bands, rms, strict=False)
            ]
            caption = f"{name}: {format_count(components.shape[0], 'run')}; the band holds 90 % of them."
            figure = stack_plots(_format_title(name, point), self._make_axis(time), axes, caption, 260.0)
            for plot, part, band, root in zip(figure.plots, series, bands, rms, strict=True):
                plot.draw_area(time, band[0], band[1], "span")
                plot.has_data = True
                plot.draw_line(time, np.median(part, axis=0), "c0")
                plot.draw_line(time, root, "c1")
                plot.draw_horizontal_line(0.0, "zero")
            figure.legend = [("span", "5 to 95 %"), ("c0", "median"), ("c1", "RMS")]
            yield figure

    def make_consistency_figures(self, point: Mapping[str, Any]) -> Iterator[SvgFigure]:
        """Yield a figure for each NEES or NIS: the mean over the runs, and the bounds of a consistent filter."""
        for name, dof in self.consistency.items():
            values = np.asarray(self.result.get_array(name, point), dtype=np.float64)
            if values.ndim != 2 or not values.size:
                continue
            time, mean = self.get_time(point, values.shape[1]), values.mean(axis=0)
            low, high = monte_carlo.compute_nees_bounds(dof, values.shape[0])
            axis = make_log_axis(f"mean {name}", "", [mean, np.array([low, high])])
            inside = np.count_nonzero((mean > low) & (mean < high)) / mean.size
            caption = (
                f"{name}, mean of {format_count(values.shape[0], 'run')}: {100.0 * inside:.0f} % of the instants are "
                f"inside the bounds {low:.3g} to {high:.3g} of 95 %; a consistent filter has the mean {dof}."
            )
            figure = stack_plots(_format_title(name, point), self._make_axis(time), [axis], caption, 260.0)
            figure.plots[0].draw_line(time, mean, "c0")
            figure.plots[0].draw_horizontal_line(float(dof), "zero")
            for bound in (low, high):
                figure.plots[0].draw_horizontal_line(bound, "declared")
            figure.legend = [("c0", "mean"), ("declared", "bounds"), ("zero", "expected")]
            yield figure

    def _make_axis(self, time: FloatArray) -> Axis:
        return make_time_axis(float(time[0]), float(time[-1]))

    def list_scalars(self, point: Mapping[str, Any]) -> dict[str, FloatArray]:
        """Return the columns of numbers at a point, by name."""
        scalars = {}
        for name in self.result.columns:
            if self.result.get_scalars(name) is not None:
                scalars[name] = np.asarray(self.result.get_array(name, point), dtype=np.float64)
        return scalars


def _format_title(name: str, point: Mapping[str, Any]) -> str:
    """Return the title of a figure: the column and the values of the sweep."""
    return ", ".join([name, *(f"{path} = {format_value(value)}" for path, value in point.items())])


def _format_figures(shown: _Shown, make_figures: Any) -> str:
    """Return the figures of the first points."""
    figures: Iterable[SvgFigure] = (
        figure for point in shown.points[:MAX_POINT_FIGURES] for figure in make_figures(point)
    )
    return format_grid(figures)


def _format_summary(result: CampaignResult) -> str:
    """Return tiles with the numbers of runs, points and failed runs."""
    plan = result.campaign
    facts = [("Runs", f"{len(plan.runs)}", "at each point" if plan.paths else "")]
    facts += [("Points", f"{len(plan.points)}", ", ".join(plan.paths))] if plan.paths else []
    facts += [("Duration", f"{plan.duration:g} s", "of each run"), ("Failed runs", f"{len(result.failures)}", "")]
    parts = (
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(detail)}</small></dd></div>"
        for name, value, detail in facts
    )
    return f'<dl class="facts">{"".join(parts)}</dl>'


def _format_failures(result: CampaignResult) -> str:
    """Return the failed runs with their errors and commands."""
    rows = [
        (
            str(failure.run),
            *(format_value(value) for value in failure.parameters.values()),
            failure.error,
            failure.command,
        )
        for failure in result.failures
    ]
    return _format_table(("run", *result.campaign.paths, "error", "command"), rows) if rows else ""


def _format_columns(shown: _Shown) -> str:
    """Return mean, standard deviation and quantiles of each column of numbers at each point."""
    rows = []
    for point in shown.points:
        for name, values in shown.list_scalars(point).items():
            finite = values[np.isfinite(values)]
            if finite.size < 2:
                continue
            mean, stddev = monte_carlo.estimate_mean(finite), monte_carlo.estimate_stddev(finite)
            quantiles = [monte_carlo.estimate_quantile(finite, probability).value for probability in (0.05, 0.5, 0.95)]
            rows.append(
                (
                    *(format_value(value) for value in point.values()),
                    name,
                    f"{finite.size}",
                    *(_format_estimate(estimate) for estimate in (mean, stddev)),
                    *(f"{float(value):.4g}" for value in quantiles),
                )
            )
    header = (*shown.result.campaign.paths, "column", "runs", "mean", "standard deviation", "5 %", "median", "95 %")
    return _format_table(header, rows) + "<p>In brackets: the confidence interval of 95 %.</p>" if rows else ""


def _format_estimate(estimate: monte_carlo.Estimate) -> str:
    """Return a statistic with its confidence interval."""
    return f"{float(estimate.value):.4g} ({float(estimate.low):.4g} to {float(estimate.high):.4g})"


def _format_worst(shown: _Shown) -> str:
    """Return the runs with the largest size of the first error at its end, and the command of each."""
    result = shown.result
    if not shown.errors or not result.table.num_rows:
        return ""
    name = shown.errors[0]
    values = np.asarray(result.get_array(name), dtype=np.float64)
    final = values[:, -1] if values.ndim >= 2 else values
    sizes = np.linalg.norm(final.reshape(final.shape[0], -1), axis=1)
    order = np.argsort(-sizes, kind="stable")[:WORST_RUNS]
    table = result.get_succeeded().take(order).to_pylist()
    rows = [
        (str(row[RUN]), *(format_value(row[path]) for path in result.campaign.paths), f"{size:.4g}", row[COMMAND])
        for row, size in zip(table, sizes[order], strict=True)
    ]
    when = "final " if values.ndim >= 2 else ""
    return _format_table(("run", *result.campaign.paths, f"{when}{name}", "command that repeats the run"), rows)


def _format_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of HTML whose first column is the header of its row."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="scroll"><table class="summary"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )
