"""Statistics of the rows of a campaign at each point of its sweep, for the console and for the report.

Intervals are those of `monte_carlo`; medians and bands are sample quantiles of NumPy. The statistics omit values that
are not finite, and notes list the columns without statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from navsense.analysis import monte_carlo
from navsense.campaigns.report_columns import ReportColumns
from navsense.campaigns.result import CampaignResult
from navsense.campaigns.rows import COMMAND, RUN
from navsense.core.errors import SimulationError
from navsense.core.names import suggest_name
from navsense.core.text import format_count
from navsense.core.typing import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa

MAX_COMPONENTS = 12
"""Largest number of components of a column that have statistics over time."""

LARGEST = 1e100
"""Larger values count as not finite: the square of a larger one would overflow."""

CONSTANT = 1e-12
"""Largest spread of a constant column, relative to its values: those of many runs differ by rounding only."""

BAND = 0.05, 0.95
"""Quantiles at the ends of the bands of runs."""

COMPONENT_NAMES = ("x", "y", "z")
"""Names of the components of a column with two or three of them; the key `axes` has other names."""

ColumnKind = Literal["number", "flag", "array", "text", "empty"]
"""What a column has: numbers, truth values, arrays, texts, or no value in any run."""


@dataclass(frozen=True, eq=False)
class CampaignPoint:
    """A point of the sweep of a campaign, with the rows of its runs."""

    result: CampaignResult
    index: int

    @property
    def values(self) -> Mapping[str, Any]:
        """The values of the sweep by path."""
        return self.result.campaign.points[self.index]

    @cached_property
    def successful_runs(self) -> CampaignResult:
        """The rows without those of failed runs."""
        runs = len(self.result.campaign.runs)
        rows = replace(self.result, table=self.result.table.slice(self.index * runs, runs))
        return replace(rows, table=rows.get_succeeded())


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Statistics of a column of numbers or of truth values.

    values: the finite values (runs,); truth values are 0 or 1.
    omitted: the number of values that are not finite.
    is_flag: True for truth values, whose mean is a rate.
    """

    values: FloatArray
    omitted: int
    is_flag: bool

    @property
    def mean(self) -> float:
        """The mean of at least one value."""
        return float(self.values.mean())

    @property
    def stddev(self) -> float:
        """The standard deviation of at least two values."""
        return float(self.values.std(ddof=1))

    @property
    def is_constant(self) -> bool:
        """True for several values that are equal up to rounding."""
        return _is_constant(self.values)

    def compute_quantiles(self) -> FloatArray:
        """Return the quantiles of 5, 50 and 95 % of at least one value."""
        return np.asarray(np.quantile(self.values, (BAND[0], 0.5, BAND[1])))

    def estimate_mean(self) -> monte_carlo.Estimate:
        """Return the mean or the rate of at least one value with its interval. A single number has no interval."""
        if self.is_flag:
            return monte_carlo.estimate_rate(self.values)
        if self.values.size < 2:
            return monte_carlo.Estimate(self.values[0], np.full((), np.nan), np.full((), np.nan))
        return monte_carlo.estimate_mean(self.values)

    def estimate_stddev(self) -> monte_carlo.Estimate:
        """Return the standard deviation of at least two values with its interval."""
        return monte_carlo.estimate_stddev(self.values)


@dataclass(frozen=True, eq=False)
class ArrayTimes:
    """The times (rows,) of arrays: s, or the number of the row if `has_times` is False."""

    values: FloatArray
    has_times: bool


@dataclass(frozen=True, eq=False)
class ErrorComponent:
    """Statistics of one component of an error over time.

    quantiles: (3, rows), those of 5, 50 and 95 %.
    rms: (rows,).
    deviations: standard deviations (rows,) of the estimate, the RMS over the runs; None without them.
    final_rms: RMS of the last row with its interval; None without finite values.
    """

    label: str
    quantiles: FloatArray
    rms: FloatArray
    deviations: FloatArray | None
    final_rms: monte_carlo.Estimate | None


@dataclass(frozen=True, eq=False)
class ErrorStatistics:
    """Statistics of an error over time.

    runs: the number of runs.
    invalid: the number of runs with values that are not finite.
    """

    times: ArrayTimes
    components: Sequence[ErrorComponent]
    runs: int
    invalid: int


@dataclass(frozen=True)
class ConsistencyStatistics:
    """The mean of single values of NEES or NIS, and its bounds of 95 % for a consistent filter.

    dof: degrees of freedom of one value, which is the expected mean.
    runs: the number of finite values.
    """

    dof: int
    runs: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ConsistencyHistory:
    """The mean (rows,) of NEES or NIS over time, and its bounds (rows,) of 95 % for a consistent filter.

    dof: degrees of freedom of one value, which is the expected mean.
    runs, invalid: as in `ErrorStatistics`.
    """

    dof: int
    times: ArrayTimes
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    runs: int
    invalid: int

    @property
    def share_inside(self) -> float:
        """The share of the times with finite values at which the mean is inside the bounds."""
        inside = np.count_nonzero((self.mean > self.low) & (self.mean < self.high))
        return float(inside / np.count_nonzero(np.isfinite(self.low)))

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds, if they are equal at all times: each time has the same number of finite values."""
        known = np.isfinite(self.low)
        low, high = self.low[known], self.high[known]
        return (float(low[0]), float(high[0])) if (low == low[0]).all() else None


@dataclass(frozen=True, eq=False)
class AllanComponent:
    """Allan deviations of one component of a column.

    merged: (tau,), that of all runs with its interval.
    band: (2, tau), the quantiles of 5 and 95 % of the runs.
    runs: the number of runs with finite values.
    """

    label: str
    merged: monte_carlo.Estimate
    band: FloatArray
    runs: int


@dataclass(frozen=True, eq=False)
class AllanStatistics:
    """Allan deviations of a column at averaging times `tau` (s)."""

    tau: FloatArray
    components: Sequence[AllanComponent]


@dataclass(frozen=True)
class RankedRun:
    """A run, the size of the last value of its error, and the command that repeats the run."""

    run: int
    size: float
    command: str


class CampaignStatistics:
    """The columns of a campaign by kind, their statistics at a point of the sweep, and notes on missing statistics."""

    def __init__(self, result: CampaignResult, columns: ReportColumns | None = None) -> None:
        """Select the columns. Raises `SimulationError` for a column that does not exist.

        columns: those with errors, NEES, NIS and Allan deviations. None: errors are `error` and `..._error`.
        """
        self.result, self.columns = result, columns or ReportColumns()
        self.has_rows = result.get_succeeded().num_rows > 0
        for name in self.columns.list_columns() if self.has_rows else ():
            _check_column(result, self.columns, name)
        self.kinds = {name: _get_kind(result.table, name) for name in result.columns}
        errors = self.columns.errors
        if errors is None:
            errors = tuple(name for name in self.kinds if name == "error" or name.endswith("_error"))
        self.errors = tuple(name for name in errors if name in self.kinds)
        given = {**self.columns.nees, **self.columns.nis}
        self.consistency = {name: dof for name, dof in given.items() if name in self.kinds}
        self.allan = {name: dof for name, dof in self.columns.allan.items() if name in self.kinds}
        self.points = [CampaignPoint(result, index) for index in range(len(result.campaign.points))]
        self.notes: dict[str, None] = {}
        self._note_columns()

    def _note_columns(self) -> None:
        """Note the columns that have no statistics."""
        if not self.has_rows:
            self.note("No run succeeded, so there are no statistics.")
        elif not self.kinds:
            self.note("The campaign has no column of reduce, so there are no statistics.")
        elif not self.list_names("number", "flag", "array"):
            self.note("No column has numbers, so there are no statistics.")
        for name, kind in self.kinds.items() if self.has_rows else ():
            if kind == "empty":
                self.note(f"{name}: no run has a value.")
            elif kind == "text" and name in (*self.errors, *self.consistency, *self.allan):
                self.note(f"{name}: has texts; must have numbers.")

    def note(self, text: str) -> None:
        """Add a note once."""
        self.notes.setdefault(text)

    def list_names(self, *kinds: ColumnKind) -> list[str]:
        """Return the names of the columns of some kinds."""
        return [name for name, kind in self.kinds.items() if kind in kinds]

    def get_values(self, name: str, point: CampaignPoint) -> FloatArray | None:
        """Return the values (runs, ...) of a column at a point, without runs that have none; None if there are none."""
        if (self.kinds.get(name) or _get_kind(self.result.table, name)) in ("text", "empty"):
            return None
        rows = point.successful_runs
        known = _select_known(rows.table, name)
        if known.num_rows < rows.table.num_rows:
            self.note(f"{name}: {format_count(rows.table.num_rows - known.num_rows, 'run')} without a value.")
        if not known.num_rows:
            return None
        try:
            values = np.asarray(replace(rows, table=known).get_array(name), dtype=np.float64)
        except SimulationError:
            self.note(f"{name}: the shape of the arrays differs between runs; use results.parquet.")
            return None
        if not values.size:
            self.note(f"{name}: the arrays are empty.")
            return None
        return np.where(np.abs(values) > LARGEST, np.inf, values)

    def compute_column(self, name: str, point: CampaignPoint) -> ColumnStatistics:
        """Return the statistics of a column of numbers or of truth values at a point."""
        values = self.get_values(name, point)
        known = np.empty(0) if values is None else values
        finite = known[np.isfinite(known)]
        return ColumnStatistics(finite, known.size - finite.size, self.kinds[name] == "flag")

    def is_constant(self, name: str) -> bool:
        """Return True for a column of numbers that are equal in all runs at all points."""
        values = (self.get_values(name, point) for point in self.points)
        return _is_constant(np.concatenate([array for array in values if array is not None]))

    def find_swept_numbers(self) -> tuple[str, FloatArray] | None:
        """Return path and values (points,) of a sweep of one number; None for another sweep."""
        paths = self.result.campaign.paths
        if len(paths) != 1:
            return None
        values = [point.values[paths[0]] for point in self.points]
        if len(values) < 2 or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            return None
        return paths[0], np.array(values, dtype=np.float64)

    def estimate_means(self, name: str, order: Sequence[int]) -> monte_carlo.Estimate | None:
        """Return means or rates (points,) of a column with intervals, at points in an order; NaN without values.

        Returns None if less than two points have values, and for numbers that are equal in all runs.
        """
        means = []
        for index in order:
            column = self.compute_column(name, self.points[index])
            means.append(column.estimate_mean() if column.values.size else _UNKNOWN)
        joined = monte_carlo.Estimate(
            np.array([float(mean.value) for mean in means]),
            np.array([float(mean.low) for mean in means]),
            np.array([float(mean.high) for mean in means]),
        )
        is_known = np.count_nonzero(np.isfinite(joined.value)) >= 2
        return joined if is_known and (self.kinds[name] == "flag" or not self.is_constant(name)) else None

    def list_components(self, name: str, values: FloatArray) -> list[tuple[str, FloatArray]]:
        """Return label and values (runs, rows) of each component of an array (runs, rows, ...)."""
        components = values.reshape(*values.shape[:2], -1)
        count = components.shape[2]
        labels = list(self.columns.axes.get(name, ()))
        if len(labels) != count:
            if labels:
                self.note(f"{name}: axes has {format_count(len(labels), 'name')} for {count} components.")
            if count == 1:
                labels = [name]
            else:
                labels = list(COMPONENT_NAMES[:count] if count <= len(COMPONENT_NAMES) else map(str, range(count)))
        if count > MAX_COMPONENTS:
            self.note(f"{name}: figures show the first {MAX_COMPONENTS} of {count} components.")
        return [(label, components[:, :, index]) for index, label in enumerate(labels[:MAX_COMPONENTS])]

    def get_times(self, point: CampaignPoint, count: int) -> ArrayTimes | None:
        """Return the times of arrays with `count` rows; without times, the number of the row.

        If the times of the runs differ, returns their mean; None if they differ by more than half a step.
        """
        name = self.columns.time
        time = self.get_values(name, point) if name in self.kinds else None
        if time is not None and time.ndim == 2 and time.shape[1] == count and np.isfinite(time).all():
            mean, spread = time.mean(axis=0), float(np.ptp(time, axis=0).max())
            step = float(np.diff(mean).min(initial=np.inf))
            if spread > 0.5 * step > 0.0:
                self.note(f"{name}: differs by up to {spread:.3g} s between runs, so there is no figure over time.")
                return None
            if spread > CONSTANT * np.abs(mean).max():
                self.note(f"{name}: differs by up to {spread:.3g} s between runs; figures show the mean.")
            if step > 0.0:
                return ArrayTimes(mean, has_times=True)
        if count > 1:
            self.note(f"No times of {count} rows in the column {name or 'time'}: figures show the number of the row.")
        return ArrayTimes(np.arange(count, dtype=np.float64), has_times=False)

    def compute_errors(self, name: str, point: CampaignPoint) -> ErrorStatistics | None:
        """Return the statistics of an error over time at a point; None without arrays or without common times."""
        values = self.get_values(name, point)
        if values is None or values.ndim < 2:
            return None
        times = self.get_times(point, values.shape[1])
        if times is None:
            return None
        parts = self.list_components(name, values)
        deviations = self._compute_deviations(name, point, values)
        components = []
        for index, (label, part) in enumerate(parts):
            finite = np.where(np.isfinite(part), part, np.nan)
            final = part[np.isfinite(part[:, -1]), -1]
            components.append(
                ErrorComponent(
                    label,
                    _compute_quantiles(finite, (BAND[0], 0.5, BAND[1])),
                    np.sqrt(_compute_means(finite**2)),
                    deviations[index] if deviations else None,
                    monte_carlo.estimate_rms(final) if final.size else None,
                )
            )
        return ErrorStatistics(times, components, values.shape[0], _count_invalid(values))

    def _compute_deviations(self, name: str, point: CampaignPoint, errors: FloatArray) -> list[FloatArray]:
        """Return the standard deviations (rows,) of the components of an error: the RMS over the runs; or none."""
        column = self.columns.deviations.get(name)
        values = None if column is None else self.get_values(column, point)
        if values is None or values.shape != errors.shape:
            if column is not None:
                self.note(f"{column}: needs the shape of {name}.")
            return []
        return [np.sqrt(_compute_means(part**2)) for _, part in self.list_components(name, values)]

    def compute_consistency(self, name: str, point: CampaignPoint) -> ConsistencyStatistics | None:
        """Return the mean of a column with one NEES or NIS for each run; None for arrays or without finite values."""
        values = self.get_values(name, point)
        finite = np.empty(0) if values is None or values.ndim > 1 else values[np.isfinite(values)]
        if not finite.size:
            return None
        dof = self.consistency[name]
        low, high = monte_carlo.compute_nees_bounds(dof, finite.size)
        return ConsistencyStatistics(dof, finite.size, float(finite.mean()), low, high)

    def compute_consistency_history(self, name: str, point: CampaignPoint) -> ConsistencyHistory | None:
        """Return the mean NEES or NIS over time at a point; None without such arrays or without common times."""
        values = self.get_values(name, point)
        if values is None or values.ndim < 2:
            return None
        if values.ndim > 2:
            self.note(f"{name}: has {values.ndim - 1} axes in each run; must have one value, or one for each time.")
            return None
        times = self.get_times(point, values.shape[1])
        if times is None:
            return None
        known, dof = np.isfinite(values), self.consistency[name]
        if not known.any():
            self.note(f"{name}: no value is finite.")
            return None
        counts = known.sum(axis=0)
        bounds = {int(n): monte_carlo.compute_nees_bounds(dof, int(n)) for n in np.unique(counts) if n}
        low, high = np.array([bounds.get(int(n), (np.nan, np.nan)) for n in counts]).T
        mean = _compute_means(np.where(known, values, np.nan))
        return ConsistencyHistory(dof, times, mean, low, high, values.shape[0], _count_invalid(values))

    def compute_allan(self, name: str, point: CampaignPoint) -> AllanStatistics | None:
        """Return the Allan deviations of a column at a point; None without common averaging times, or too few runs."""
        values, times = self.get_values(name, point), self.get_values(self.columns.tau, point)
        if values is None or times is None:
            return None
        is_usable = values.ndim > 1 and times.ndim == 2 and times.shape[1] == values.shape[1]
        if not (is_usable and (times == times[0]).all() and np.isfinite(times).all() and (times > 0.0).all()):
            self.note(f"{name}: needs the same averaging times in each run, in the column {self.columns.tau}.")
            return None
        dof_name = self.allan[name]
        dof = self.get_values(dof_name, point) if dof_name else None
        if dof_name and (dof is None or dof.shape != values.shape):
            self.note(f"{dof_name}: needs the shape of {name}; the interval is from the spread of the runs.")
            dof = None
        components = []
        for index, (label, deviations) in enumerate(self.list_components(name, values)):
            good = np.isfinite(deviations).all(axis=1) & (deviations >= 0.0).all(axis=1)
            freedom = None if dof is None else dof.reshape(*dof.shape[:2], -1)[..., index]
            if freedom is not None:
                good &= np.isfinite(freedom).all(axis=1) & (freedom > 0.0).all(axis=1)
            count = int(np.count_nonzero(good))
            if count < (2 if freedom is None else 1):
                self.note(f"{name}: too few runs with Allan deviations for an interval.")
                return None
            merged = monte_carlo.estimate_allan_deviation(deviations[good], None if freedom is None else freedom[good])
            band = np.asarray(np.quantile(deviations[good], BAND, axis=0))
            components.append(AllanComponent(label, merged, band, count))
        return AllanStatistics(times[0], components)

    def find_worst_runs(self, name: str, point: CampaignPoint, count: int) -> list[RankedRun]:
        """Return the runs with the largest last value of an error at a point. Values that are not finite come first."""
        if self.kinds[name] not in ("number", "array"):
            return []
        is_array = self.kinds[name] == "array"
        values, table = self.get_values(name, point), _select_known(point.successful_runs.table, name)
        # Arrays whose shape differs between runs have a last value too.
        each = table[name].to_pylist() if values is None else values
        final = [np.ravel(np.asarray(row, dtype=np.float64)[-1:] if is_array else row) for row in each]
        sizes = [float(np.linalg.norm(value)) if value.size else math.nan for value in final]
        runs = map(RankedRun, table[RUN].to_pylist(), sizes, table[COMMAND].to_pylist())
        return sorted(runs, key=lambda run: (math.isfinite(run.size), -run.size))[:count]


_UNKNOWN = monte_carlo.Estimate(*(np.full((), np.nan),) * 3)
"""The estimate of no value."""


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


def _get_kind(table: pa.Table, name: str) -> ColumnKind:
    """Return what a column has."""
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
    """Return True for several values (runs,) that are finite, and equal up to rounding."""
    return values.size > 1 and bool(np.isfinite(values).all() and np.ptp(values) <= CONSTANT * np.abs(values).max())


def _count_invalid(values: FloatArray) -> int:
    """Return the number of runs with values that are not finite."""
    return int(np.count_nonzero(~np.isfinite(values).reshape(values.shape[0], -1).all(axis=1)))
