"""The page of a campaign: errors over time, NEES with bounds, Allan deviations, tables by sweep value, worst runs.

`navsense.analysis.campaign_statistics` computes the statistics. This module formats them as figures and tables.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from itertools import chain
from pathlib import Path

import numpy as np

from navsense.analysis import monte_carlo, theory
from navsense.analysis.campaign_statistics import (
    AllanStatistics,
    ArrayTimes,
    CampaignPoint,
    CampaignStatistics,
    ColumnStatistics,
    ConsistencyHistory,
    ErrorStatistics,
)
from navsense.campaigns.report_columns import ReportColumns, find_declared_noise
from navsense.campaigns.result import CampaignResult
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

MAX_POINT_FIGURES = 12
"""Largest number of points of a sweep with figures; the tables have more points."""

MAX_TABLE_POINTS = 500
"""Largest number of points of a sweep in the tables."""

MAX_LISTED = 100
"""Largest number of failed runs, and of points without figures, that are listed."""

WORST_RUNS, WORST_RUNS_OF_POINT = 10, 3
"""Number of runs in the list of the worst: of a campaign without a sweep, and of each point of a sweep."""

SIGMAS = 2.0
"""Multiple of the standard deviations of an estimate in the figures of its errors."""

PERCENT = 100.0
"""Factor of a rate in percent."""

REPEAT, FAILURE = "command that repeats the run", "failure"
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
    statistics = CampaignStatistics(result, columns)
    _note_omissions(statistics)
    sections = [
        ("errors", "Errors over time", _format_figures(statistics, _make_error_figures)),
        ("consistency", "Consistency", _format_consistency(statistics)),
        ("allan", "Allan deviation", _format_figures(statistics, _make_allan_figures)),
        ("sweep", "Over the sweep", format_grid(_make_sweep_figures(statistics))),
        ("columns", "Columns", _format_columns(statistics)),
        ("rates", "Rates", _format_rates(statistics)),
        ("worst", "Worst runs", _format_worst(statistics)),
    ]
    sections = [
        ("summary", "Summary", _format_summary(result)),
        ("notes", "Notes", _format_notes(statistics)),
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


def _note_omissions(statistics: CampaignStatistics) -> None:
    """Note the columns and the points that the page does not show."""
    columns = statistics.columns
    shown = (*statistics.errors, *statistics.consistency, *statistics.allan, columns.time, columns.tau)
    shown += (*columns.allan.values(), *columns.deviations.values())
    arrays = [name for name in statistics.list_names("array") if name not in shown]
    if arrays:
        statistics.note(f"Arrays without a figure, in results.parquet: {', '.join(arrays)}.")
    count = len(statistics.points) - MAX_TABLE_POINTS
    if count > 0:
        statistics.note(f"The tables have {MAX_TABLE_POINTS} points. The other {count} are in results.parquet.")


def _format_title(name: str, point: CampaignPoint) -> str:
    """Return the title of a figure: the column and the values of the sweep."""
    return ", ".join([name, *(f"{path} = {format_value(value)}" for path, value in point.values.items())])


def _format_cells(point: CampaignPoint) -> list[str]:
    """Return the values of the sweep as cells of a table."""
    return [format_value(value) for value in point.values.values()]


def _get_unit(statistics: CampaignStatistics, name: str) -> str:
    """Return the unit of a column, "" if it is not known."""
    return statistics.columns.units.get(name, "")


def _format_label(statistics: CampaignStatistics, name: str, title: str = "") -> str:
    """Return the name of a column, or another title for it, with its unit."""
    return format_axis_title(title or name, _get_unit(statistics, name))


def _list_paths(statistics: CampaignStatistics) -> list[str]:
    """Return the paths of the sweep with their units."""
    return [_format_label(statistics, path) for path in statistics.result.campaign.paths]


def _make_time_axis(times: ArrayTimes) -> Axis:
    """Return the axis of times, or of the numbers of the rows."""
    first, last = float(times.values[0]), float(times.values[-1])
    return make_time_axis(first, last) if times.has_times else Axis(0.0, max(last, 1.0), "row", Scale(1.0, ""))


def _make_error_figures(statistics: CampaignStatistics, point: CampaignPoint) -> Iterator[SvgFigure]:
    """Yield a figure for each error over time: its band, its median, its RMS, and its standard deviation."""
    for name in statistics.errors:
        errors = statistics.compute_errors(name, point)
        if errors is not None:
            yield _make_error_figure(_format_title(name, point), errors, _get_unit(statistics, name))


def _make_error_figure(title: str, errors: ErrorStatistics, unit: str) -> SvgFigure:
    """Return the figure of an error in a unit over time."""
    parts, time = errors.components, errors.times.values
    limits = [
        None if part.deviations is None else [sign * SIGMAS * part.deviations for sign in (-1.0, 1.0)] for part in parts
    ]
    series = [[part.quantiles, part.rms, *(limit or ())] for part, limit in zip(parts, limits, strict=True)]
    # All components have the same scale, so that a reader can compare them.
    scale = choose_scale(unit, max(map(abs, find_finite_range(list(chain.from_iterable(series))))))
    axes = []
    for part, values in zip(parts, series, strict=True):
        axis = make_linear_axis("", "", [array * scale.factor for array in values], zero=True)
        axes.append(replace(axis, title=format_axis_title(part.label, scale.unit), scale=scale))
    count = format_count(errors.runs, "run")
    caption = f"{count}; the band is from the 5 % to the 95 % quantile.{_format_invalid(errors.invalid)}"
    roots = [
        f"{part.label} {_format_estimate(part.final_rms, scale.factor)}" for part in parts if part.final_rms is not None
    ]
    if roots:
        suffix = f" {scale.unit}" if scale.unit not in ("", "1") else ""
        caption += f" RMS at the end, and its interval of 95 % for normal errors: {', '.join(roots)}{suffix}."
    height = max(FIGURE_HEIGHT, COMPONENT_HEIGHT * len(axes))
    figure = stack_plots(title, _make_time_axis(errors.times), axes, caption, height)
    for plot, part, limit in zip(figure.plots, parts, limits, strict=True):
        low, median, high = part.quantiles
        plot.draw_area(time, low, high, "span")
        plot.has_data = True
        plot.draw_horizontal_line(0.0, "zero")
        plot.draw_line(time, median, "c0")
        plot.draw_line(time, part.rms, "c1")
        for line in limit or ():
            plot.draw_line(time, line, "declared")
    figure.legend = [("span", "5 to 95 % of the runs"), ("c0", "median"), ("c1", "RMS")]
    if any(limits):
        figure.legend.append(("declared", f"±{SIGMAS:g} standard deviations of the estimate"))
    return figure


def _make_consistency_figures(statistics: CampaignStatistics, point: CampaignPoint) -> Iterator[SvgFigure]:
    """Yield a figure for each NEES or NIS over time: the mean over the runs, and its bounds."""
    for name in statistics.consistency:
        history = statistics.compute_consistency_history(name, point)
        if history is not None:
            yield _make_consistency_figure(name, point, history)


def _make_consistency_figure(name: str, point: CampaignPoint, history: ConsistencyHistory) -> SvgFigure:
    """Return the figure of a mean NEES or NIS over time."""
    dof, bounds = history.dof, history.bounds
    text = "of the finite values" if bounds is None else f"{bounds[0]:.3g} to {bounds[1]:.3g}"
    caption = (
        f"Mean of {format_count(history.runs, 'run')}: {100.0 * history.share_inside:.0f} % of the instants are inside "
        f"the bounds {text}. A consistent filter has the mean {dof}, and 95 % inside on average over many campaigns: "
        f"the instants of a run are not independent.{_format_invalid(history.invalid)}"
    )
    series = [history.mean, history.low, history.high]
    axis = (
        make_linear_axis(f"mean of {name}", "", series, zero=True)
        if np.nanmax(series) < 10.0 * dof
        else make_log_axis(f"mean of {name}", "", series)
    )
    x_axis, time = _make_time_axis(history.times), history.times.values
    figure = stack_plots(_format_title(name, point), x_axis, [axis], caption, FIGURE_HEIGHT)
    figure.plots[0].draw_horizontal_line(float(dof), "zero")
    figure.plots[0].draw_line(time, history.mean, "c0")
    for bound in (history.low, history.high):
        figure.plots[0].draw_line(time, bound, "declared")
    figure.legend = [("c0", "mean over the runs"), ("declared", "bounds of 95 %"), ("zero", "expected")]
    return figure


def _make_allan_figures(statistics: CampaignStatistics, point: CampaignPoint) -> Iterator[SvgFigure]:
    """Yield a figure for each Allan deviation: that of all runs with its interval, and the band of the runs."""
    for name in statistics.allan:
        allan = statistics.compute_allan(name, point)
        if allan is not None:
            declared = _compute_declared(statistics, name, point, allan)
            yield _make_allan_figure(_format_title(name, point), allan, declared, _get_unit(statistics, name))


def _compute_declared(
    statistics: CampaignStatistics, name: str, point: CampaignPoint, allan: AllanStatistics
) -> list[FloatArray]:
    """Return the declared Allan deviation of each component of a column; none if the world does not declare it."""
    path, count = statistics.columns.declared.get(name), len(allan.components)
    if path is None:
        return []
    sensor, array, components = find_declared_noise(statistics.result.campaign.make_point_world(point.values), path)
    noises = list_declared_noises(sensor, array, _get_unit(statistics, name))[components]
    factors = np.rint(allan.tau * sensor.rate)
    if len(noises) != count or not np.allclose(allan.tau * sensor.rate, factors, rtol=1e-6, atol=0.0):
        statistics.note(f"{name}: no declared noise of {count} components at multiples of 1/{sensor.rate:g} s.")
        return []
    terms = [list_noise_terms(noise, sensor.rate) for noise in noises]
    factors = factors.astype(np.int64)
    return [np.sqrt(theory.allan_variance(each, factors, sensor.rate)) if each else 0.0 * allan.tau for each in terms]


def _make_allan_figure(title: str, allan: AllanStatistics, declared: Sequence[FloatArray], unit: str) -> SvgFigure:
    """Return the figure of an Allan deviation."""
    tau, parts = allan.tau, allan.components
    time = make_log_axis("", "", [tau])
    x_axis = Axis(time.low, time.high, "averaging time (s)", Scale(1.0, "s"), log=True)
    axes = [
        make_log_axis(part.label, unit, [part.merged.low, part.merged.high, *part.band, *declared]) for part in parts
    ]
    caption = (
        f"{format_count(min(part.runs for part in parts), 'run')}; the band is from the 5 % to the 95 % quantile. "
        "The variance of all runs is the mean of their variances, and the interval is that of each time alone."
    )
    figure = stack_plots(title, x_axis, axes, caption, max(FIGURE_HEIGHT, COMPONENT_HEIGHT * len(axes)))
    for plot, part in zip(figure.plots, parts, strict=True):
        plot.draw_area(tau, part.band[0], part.band[1], "span")
        for bound in (part.merged.low, part.merged.high):
            plot.draw_line(tau, bound, "dark")
        plot.draw_line(tau, part.merged.value, "c0")
    for plot, deviation in zip(figure.plots, declared, strict=False):
        plot.draw_line(tau, deviation, "declared")
    figure.legend = [
        ("span", "5 to 95 % of the runs"),
        ("c0", "all runs"),
        ("dark", "its interval of 95 %"),
        *([("declared", "declared noise")] if declared else []),
    ]
    return figure


def _make_sweep_figures(statistics: CampaignStatistics) -> Iterator[SvgFigure]:
    """Yield a figure for each column over the values of a single parameter: mean or rate with its interval."""
    swept = statistics.find_swept_numbers()
    if swept is None:
        return
    path, given = swept
    order = np.argsort(given, kind="stable")
    x = given[order]
    is_log = x[0] > 0.0 and x[-1] > 10.0 * x[0]
    x_axis = (make_log_axis if is_log else make_linear_axis)(path, _get_unit(statistics, path), [x])
    for name in (*statistics.list_names("number"), *statistics.list_names("flag")):
        means = statistics.estimate_means(name, order.tolist())
        if means is None:
            continue
        is_rate = statistics.kinds[name] == "flag"
        label, unit = (f"rate of {name}", "%") if is_rate else (f"mean of {name}", _get_unit(statistics, name))
        factor = PERCENT if is_rate else 1.0
        value, low, high = factor * means.value, factor * means.low, factor * means.high
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


def _format_invalid(count: int) -> str:
    """Return the sentence on a number of runs with values that are not finite; "" for none."""
    return f" Values of {format_count(count, 'run')} that are not finite are left out." if count else ""


def _format_figures(
    statistics: CampaignStatistics,
    make_figures: Callable[[CampaignStatistics, CampaignPoint], Iterable[SvgFigure]],
) -> str:
    """Return the figures of the first points, and the list of the points without figures."""
    points = statistics.points
    figures = format_grid(figure for point in points[:MAX_POINT_FIGURES] for figure in make_figures(statistics, point))
    others = points[MAX_POINT_FIGURES:]
    if not figures or not others:
        return figures
    items = "".join(f"<li>{escape(_format_title('', point)[2:])}</li>" for point in others[:MAX_LISTED])
    more = f"<li>{len(others) - MAX_LISTED} more</li>" if len(others) > MAX_LISTED else ""
    text = f"Figures show the first {MAX_POINT_FIGURES} of {len(points)} points. Points without figures: {len(others)}"
    return f"{figures}<details><summary>{text}</summary><ul>{items}{more}</ul></details>"


def _format_summary(result: CampaignResult) -> str:
    """Return tiles with the numbers of runs, points and failed runs."""
    plan = result.campaign
    facts = [("Runs", f"{len(plan.runs)}", "at each point" if plan.paths else "")]
    facts += [("Points", f"{len(plan.points)}", ", ".join(plan.paths))] if plan.paths else []
    facts += [("Duration", f"{plan.duration:g} s", "of each run")]
    facts += [("Failed runs", f"{len(result.failed_runs)}", f"of {plan.row_count}" if result.failed_runs else "")]
    parts = (
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(detail)}</small></dd></div>"
        for name, value, detail in facts
    )
    return f'<dl class="facts">{"".join(parts)}</dl>'


def _format_notes(statistics: CampaignStatistics) -> str:
    """Return the list of what the page cannot show."""
    items = "".join(f'<li class="note">{escape(text)}</li>' for text in statistics.notes)
    return f'<ul class="warnings">{items}</ul>' if items else ""


def _format_failures(result: CampaignResult) -> str:
    """Return the failed runs with their failures and commands."""
    rows = [
        (
            str(run.run),
            *(format_value(value) for value in run.parameters.values()),
            run.failure,
            run.command,
        )
        for run in result.failed_runs[:MAX_LISTED]
    ]
    if not rows:
        return ""
    table = _format_table(("run", *result.campaign.paths, FAILURE, REPEAT), rows)
    more = len(result.failed_runs) - MAX_LISTED
    return f"{table}<p>{more} more are in the column failure of results.parquet.</p>" if more > 0 else table


def _format_consistency(statistics: CampaignStatistics) -> str:
    """Return the figures of NEES and NIS over time, and the table of those with one value for each run."""
    rows = []
    for name in statistics.consistency:
        for point in statistics.points[:MAX_TABLE_POINTS]:
            values = statistics.compute_consistency(name, point)
            if values is not None:
                verdict = (
                    "below: the covariance is too large"
                    if values.mean < values.low
                    else "above: the covariance is too small"
                    if values.mean > values.high
                    else "inside"
                )
                cells = (
                    f"{values.runs}",
                    f"{values.dof}",
                    f"{values.mean:.4g}",
                    f"{values.low:.4g} to {values.high:.4g}",
                )
                rows.append((name, *_format_cells(point), *cells, verdict))
    header = ("column", *_list_paths(statistics), "runs", "expected", "mean", "bounds of 95 %", "mean is")
    table = _format_table(header, rows) if rows else ""
    return _format_figures(statistics, _make_consistency_figures) + table


def _format_columns(statistics: CampaignStatistics) -> str:
    """Return mean, standard deviation and quantiles of each column of numbers at each point."""
    rows = []
    for name in statistics.list_names("number"):
        for point in statistics.points[:MAX_TABLE_POINTS]:
            column = statistics.compute_column(name, point)
            if column.omitted:
                statistics.note(f"{name}: {format_count(column.omitted, 'value')} that are not finite.")
            rows.append((_format_label(statistics, name), *_format_cells(point), *_format_numbers(column)))
    header = ("column", *_list_paths(statistics), "runs", "mean", "standard deviation", "5 %", "median", "95 %")
    return _format_table(header, rows) + "<p>In brackets: the interval of 95 %.</p>" if rows else ""


def _format_numbers(column: ColumnStatistics) -> tuple[str, ...]:
    """Return number of values, mean, standard deviation and quantiles as cells of a table."""
    count = column.values.size
    if count == 0:
        return ("0", *(DASH,) * 5)
    if column.is_constant:
        return (f"{count}", f"{float(column.values[0]):.4g}", "constant", *(DASH,) * 3)
    estimates = (
        (f"{column.mean:.4g}", DASH)
        if count == 1
        else (_format_estimate(column.estimate_mean()), _format_estimate(column.estimate_stddev()))
    )
    return (f"{count}", *estimates, *(f"{quantile:.4g}" for quantile in column.compute_quantiles()))


def _format_rates(statistics: CampaignStatistics) -> str:
    """Return the share of runs with a true value, for each column of truth values at each point."""
    rows = []
    for name in statistics.list_names("flag"):
        for point in statistics.points[:MAX_TABLE_POINTS]:
            column = statistics.compute_column(name, point)
            if column.values.size:
                counts = f"{int(column.values.sum())} of {column.values.size}"
                rows.append((name, *_format_cells(point), counts, _format_estimate(column.estimate_mean(), PERCENT)))
    header = ("column", *_list_paths(statistics), "runs with true", "rate (%)")
    text = "<p>In brackets: the interval of 95 % (Clopper and Pearson).</p>"
    return _format_table(header, rows) + text if rows else ""


def _format_estimate(estimate: monte_carlo.Estimate, factor: float = 1.0) -> str:
    """Return a statistic, times a factor, with its confidence interval."""
    value, low, high = (factor * float(part) for part in (estimate.value, estimate.low, estimate.high))
    return f"{value:.4g} ({low:.4g} to {high:.4g})"


def _format_worst(statistics: CampaignStatistics) -> str:
    """Return the runs with the largest size of the first error at its end at each point, and the command of each."""
    if not statistics.errors:
        return ""
    name, paths = statistics.errors[0], _list_paths(statistics)
    rows = []
    for point in statistics.points[:MAX_TABLE_POINTS]:
        for run in statistics.find_worst_runs(name, point, WORST_RUNS_OF_POINT if paths else WORST_RUNS):
            size = f"{run.size:.4g}" if math.isfinite(run.size) else "not finite"
            rows.append((str(run.run), *_format_cells(point), size, run.command))
    title = f"size of the final {name}" if statistics.kinds[name] == "array" else f"size of {name}"
    return _format_table(("run", *paths, _format_label(statistics, name, title), REPEAT), rows) if rows else ""


def _format_command(command: str) -> str:
    """Return a command whose options are not broken after a hyphen."""
    return re.sub(r"(?<= )--[\w-]+", r"<span>\g<0></span>", escape(command))


def _format_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of HTML whose first column is the header of its row."""
    classes = [{REPEAT: ' class="command"', FAILURE: ' class="text"'}.get(text, "") for text in columns]
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
