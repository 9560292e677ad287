"""The rows of a finished campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from navsense.campaigns.campaign import Campaign
from navsense.campaigns.rows import FAILURE, RECORDING, RUN
from navsense.core.errors import SimulationError
from navsense.core.names import suggest_name
from navsense.core.summaries import Summary, format_summary, format_summary_html
from navsense.core.text import format_count
from navsense.core.typing import AnyArray

if TYPE_CHECKING:
    import pyarrow as pa

COMMAND = "command"
"""Column with the command of the shell that repeats a run."""


@dataclass(frozen=True)
class FailedRun:
    """A run that failed: number, values of the sweep, text of the error, and the command that repeats it."""

    run: int
    parameters: Mapping[str, Any]
    error: str
    command: str


@dataclass(frozen=True, eq=False)
class CampaignResult:
    """The rows of a campaign, in the order of the points of the sweep and of the run numbers.

    campaign: what was computed.
    folder: the folder of its chunks and recordings.
    table: an Arrow table with a row for each run: `run`, the parameters of the sweep by path, the columns of `reduce`,
        `recording`, `failure`, and `command`, which repeats the run.

    >>> result.table.column_names[:2], result.table.num_rows
    (['run', 'largest_rate'], 4)
    """

    campaign: Campaign
    folder: Path
    table: pa.Table

    __repr__, _repr_html_ = format_summary, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        failed = f", {format_count(len(self.failures), 'failed run')}" * bool(self.failures)
        title = f"{self.campaign.world.name}: {format_count(self.table.num_rows, 'run')}{failed}, in {self.folder}"
        rows = [(field.name, str(field.type)) for field in self.table.schema]
        return Summary("Campaign", title, ("column", "type"), rows)

    @cached_property
    def failures(self) -> Sequence[FailedRun]:
        """The runs that failed."""
        failed = _select_rows(self.table, FAILURE, is_valid=True).to_pylist()
        paths = self.campaign.paths
        return [FailedRun(row[RUN], {path: row[path] for path in paths}, row[FAILURE], row[COMMAND]) for row in failed]

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns of `reduce`."""
        known = {RUN, RECORDING, FAILURE, COMMAND, *self.campaign.paths}
        return [name for name in self.table.column_names if name not in known]

    def get_succeeded(self) -> pa.Table:
        """Return the table without failed runs."""
        return _select_rows(self.table, FAILURE, is_valid=False)

    def get_array(self, name: str, parameters: Mapping[str, Any] | None = None) -> AnyArray:
        """Return a column as an array (runs, ...), without failed runs.

        name: a column of `reduce`, or a parameter of the sweep.
        parameters: values of the sweep by path; only the runs with these values are returned.

        Raises `SimulationError` for an unknown column, and for arrays whose shape differs between runs.

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
            table = table.filter(_compare(table[path], value))
        return _to_array(table[name], name)

    def get_scalars(self, name: str) -> AnyArray | None:
        """Return a column of numbers (runs,), without failed runs; None for a column of texts or arrays."""
        return self.get_array(name).astype(np.float64) if _is_numeric(self.table.schema.field(name).type) else None


def _select_rows(table: pa.Table, column: str, *, is_valid: bool) -> pa.Table:
    """Return the rows that have a value in a column, or those that have none."""
    import pyarrow.compute

    return table.filter(pyarrow.compute.is_valid(table[column]) if is_valid else pyarrow.compute.is_null(table[column]))


def _compare(column: pa.ChunkedArray, value: Any) -> pa.ChunkedArray:
    """Return true for the rows with a value in a column; a list is compared with its elements."""
    import pyarrow as pa
    import pyarrow.compute

    if pa.types.is_list(column.type):
        return pa.array([row == list(value) for row in column.to_pylist()])
    return pyarrow.compute.equal(column, value)


def _is_numeric(kind: pa.DataType) -> bool:
    """Return True for the type of a column of numbers or truth values."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _to_array(column: pa.ChunkedArray, name: str) -> AnyArray:
    """Return a column of scalars or of nested lists as one array."""
    import pyarrow as pa

    shape = [len(column)]
    values = column.combine_chunks()
    while pa.types.is_list(values.type):
        lengths = np.unique(np.diff(values.offsets.to_numpy())) if len(values) else np.zeros(1, dtype=np.int64)
        if lengths.size != 1:
            allowed = "must have the same shape in each run"
            raise SimulationError(f"column {name}", "arrays", allowed=allowed, remedy="use result.table")
        shape.append(int(lengths[0]))
        values = values.flatten()
    array: AnyArray = values.to_numpy(zero_copy_only=False)
    return array.reshape(shape)
