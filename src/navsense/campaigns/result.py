"""The rows of a finished campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from navsense.campaigns.campaign import Campaign
from navsense.campaigns.rows import COMMAND, FAILURE, RECORDING, RUN
from navsense.core.errors import SimulationError
from navsense.core.names import suggest_name
from navsense.core.summaries import Summary, format_summary, format_summary_html
from navsense.core.text import format_count
from navsense.core.typing import AnyArray
from navsense.runner.run import Run

if TYPE_CHECKING:
    import pyarrow as pa

MAX_LISTED_VALUES = 10
"""Largest number of values of the sweep that an error lists."""


@dataclass(frozen=True)
class FailedRun:
    """A run that failed.

    run: its number.
    parameters: values of the sweep by path.
    failure: the text of its error.
    command: repeats the run.
    """

    run: int
    parameters: Mapping[str, Any]
    failure: str
    command: str


@dataclass(frozen=True, eq=False)
class CampaignResult:
    """The rows of a campaign, in the order of the points of the sweep and of the run numbers.

    campaign: what was computed.
    folder: the folder of the results.
    table: an Arrow table with a row for each run: `run`, the parameters of the sweep by path, the columns of `reduce`,
        `recording`, `failure`, and `command`, which repeats the run.
    reused: the number of runs that were complete before, so this call did not compute them.

    >>> result.table.column_names[:2], result.table.num_rows
    (['run', 'largest_rate'], 4)
    """

    campaign: Campaign
    folder: Path
    table: pa.Table
    reused: int = 0

    __repr__, _repr_html_ = format_summary, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        failed = f", {format_count(len(self.failed_runs), 'failed run')}" * bool(self.failed_runs)
        title = f"{self.campaign.world.name}: {format_count(self.table.num_rows, 'run')}{failed}, in {self.folder}"
        rows = [(field.name, str(field.type)) for field in self.table.schema]
        return Summary("Campaign", title, ("column", "type"), rows)

    @cached_property
    def failed_runs(self) -> Sequence[FailedRun]:
        """The runs that failed."""
        failed = _select_rows(self.table, FAILURE, is_valid=True).to_pylist()
        paths = self.campaign.paths
        return [FailedRun(row[RUN], {path: row[path] for path in paths}, row[FAILURE], row[COMMAND]) for row in failed]

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns of `reduce`."""
        known = {RUN, RECORDING, FAILURE, COMMAND, *self.campaign.paths}
        return [name for name in self.table.column_names if name not in known]

    def simulate_run(self, row: int) -> Run:
        """Simulate the run of a row of `table` again, as `reduce` gets it.

        row: index of the row, from 0.

        Raises `SimulationError` if there is no such row, and the errors of the run.

        >>> abs(result.simulate_run(2)["imu"]["angular_velocity"]).max() == result.get_array("largest_rate")[2]
        np.True_
        """
        if not 0 <= row < self.campaign.row_count:
            raise SimulationError("row", row, allowed=f"must be from 0 to {self.campaign.row_count - 1}")
        point, index = divmod(row, len(self.campaign.runs))
        number = sorted(self.campaign.runs)[index]
        return self.campaign.simulate(self.campaign.points[point], (number,)).select_run(number)

    def get_succeeded(self) -> pa.Table:
        """Return the table without failed runs."""
        return _select_rows(self.table, FAILURE, is_valid=False)

    def get_array(self, name: str, parameters: Mapping[str, Any] | None = None) -> AnyArray:
        """Return a column as an array (runs, ...), without failed runs.

        name: a column of `reduce`, or a parameter of the sweep.
        parameters: values of the sweep by path; only the runs with these values are returned.

        Raises `SimulationError` for an unknown column, for a value that no run has, and for arrays whose shape differs
        between runs.

        >>> result.get_array("largest_rate").shape
        (4,)
        """
        known = (*self.columns, *self.campaign.paths)
        for column in (name, *(parameters or ())):
            if column not in (*known, RUN):
                allowed = f"must be one of {', '.join(known)}"
                raise SimulationError("column", column, allowed=allowed, remedy=suggest_name(column, known))
        table = self.get_succeeded()
        for path, value in (parameters or {}).items():
            if True not in _compare(self.table[path], value).to_pylist():
                raise SimulationError(f"parameters, {path}", value, allowed=_list_values(self.table[path].to_pylist()))
            table = table.filter(_compare(table[path], value))
        return _to_array(table[name], name)


def _select_rows(table: pa.Table, column: str, *, is_valid: bool) -> pa.Table:
    """Return the rows that have a value in a column, or those that have none."""
    import pyarrow.compute

    return table.filter(pyarrow.compute.is_valid(table[column]) if is_valid else pyarrow.compute.is_null(table[column]))


def _list_values(values: Sequence[Any]) -> str:
    """Return what an error says about the values of a column."""
    known = list(dict.fromkeys(tuple(value) if isinstance(value, list) else value for value in values))
    more = f" and {len(known) - MAX_LISTED_VALUES} more" if len(known) > MAX_LISTED_VALUES else ""
    return f"no run has this value; must be one of {', '.join(map(repr, known[:MAX_LISTED_VALUES]))}{more}"


def _compare(column: pa.ChunkedArray, value: Any) -> pa.ChunkedArray:
    """Return true for the rows with a value in a column; a list is compared with its elements."""
    import pyarrow as pa
    import pyarrow.compute

    if pa.types.is_list(column.type):
        return pa.array([np.array_equal(row, value) for row in column.to_pylist()], pa.bool_())
    try:
        return pyarrow.compute.equal(column, value)
    except (pa.ArrowException, TypeError, ValueError):  # a value of another type
        return pa.array([False] * len(column), pa.bool_())


def _to_array(column: pa.ChunkedArray, name: str) -> AnyArray:
    """Return a column of scalars or of nested lists as one array."""
    import pyarrow as pa

    if column.null_count and pa.types.is_list(column.type):
        allowed = "must have an array in each run"
        raise SimulationError(
            f"column {name}", f"{column.null_count} missing", allowed=allowed, remedy="use result.table"
        )
    arrays = []
    for piece in column.chunks:
        values, shape = piece, [len(piece)]
        while pa.types.is_list(values.type):
            lengths = np.unique(values.value_lengths().to_numpy(zero_copy_only=False))
            if lengths.size > 1:
                raise _make_shape_error(name)
            shape.append(int(lengths[0]) if lengths.size else 0)
            values = values.flatten()
        if len(piece):
            arrays.append(values.to_numpy(zero_copy_only=False).reshape(shape))
    if not arrays:
        return _make_empty_array(column.type)
    if any(array.shape[1:] != arrays[0].shape[1:] for array in arrays):
        raise _make_shape_error(name)
    return np.concatenate(arrays)


def _make_shape_error(name: str) -> SimulationError:
    """Return the error for arrays of several shapes."""
    allowed = "must have the same shape in each run"
    return SimulationError(f"column {name}", "arrays", allowed=allowed, remedy="use result.table")


def _make_empty_array(kind: pa.DataType) -> AnyArray:
    """Return the array of a column without rows."""
    import pyarrow as pa

    shape = [0]
    while pa.types.is_list(kind):
        kind, shape = kind.value_type, [*shape, 0]
    return np.zeros(shape, kind.to_pandas_dtype())
