"""The rows of a campaign as Arrow tables, and the Parquet file of a chunk.

Columns are `run`, the parameters of the sweep by path, those of the row of `reduce`, `recording`, and `failure`. A run
that failed has a text in `failure` and null in the columns of `reduce`. An array is a list in its row, an array of
several axes a list of lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from navsense.core import atomic
from navsense.core.errors import NavsenseError, RecordingError, SimulationError, Where

if TYPE_CHECKING:
    import pyarrow as pa

RUN, RECORDING, FAILURE = "run", "recording", "failure"
"""Columns of each campaign."""

CHUNKS, RECORDINGS = "chunks", "recordings"
"""Folders in the folder of a campaign."""

DESCRIPTION = "campaign.json"
"""File in the folder of a campaign that describes it."""


@dataclass(frozen=True)
class Row:
    """One run: number, columns of `reduce`, path of its recording, and the text of its error if it failed."""

    run: int
    values: Mapping[str, Any]
    recording: str = ""
    failure: str = ""


def check_values(values: object) -> dict[str, Any]:
    """Return the result of `reduce` with NumPy arrays and Python scalars. Raises `SimulationError` for other values."""
    if not isinstance(values, Mapping):
        raise SimulationError("result of reduce", values, allowed="must be a mapping from columns to values")
    checked = {}
    for name, value in values.items():
        if not isinstance(name, str) or not name or name in (RUN, RECORDING, FAILURE):
            allowed = f"must be a text other than {RUN}, {RECORDING}, {FAILURE}"
            raise SimulationError("column of reduce", name, allowed=allowed)
        array = np.asarray(value)
        if array.dtype.kind not in "biufU":
            allowed = "must be a number, a text, a truth value, or an array of them"
            raise SimulationError(f"column {name} of reduce", value, allowed=allowed)
        checked[name] = array if array.ndim else array.item()
    return checked


def _make_column(values: Sequence[Any]) -> pa.Array:
    """Return a column of scalars or of arrays; None is null."""
    import pyarrow as pa

    if any(isinstance(value, np.ndarray) for value in values):
        return _make_list_column(values)
    try:
        return pa.array(values)
    except pa.ArrowException as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise SimulationError("column of reduce", kinds, allowed="must have the same type in each run") from error


def _make_list_column(values: Sequence[Any]) -> pa.Array:
    """Return a column of arrays as nested lists, without an object of Python for each number."""
    import pyarrow as pa

    arrays = [np.asarray(value) for value in values if value is not None]
    depth = arrays[0].ndim
    if any(array.ndim != depth for array in arrays):
        raise SimulationError("column of reduce", "arrays", allowed="must have the same number of axes in each run")
    column = pa.array(np.concatenate([array.ravel() for array in arrays]))
    for axis in reversed(range(1, depth)):
        lengths = [array.shape[axis] for array in arrays for _ in range(int(np.prod(array.shape[:axis])))]
        column = pa.ListArray.from_arrays(_make_offsets(lengths), column)
    rows = [0 if value is None else np.asarray(value).shape[0] for value in values]
    offsets = _make_offsets(rows)
    mask = pa.array([value is None for value in values])
    return pa.ListArray.from_arrays(offsets, column, mask=mask)


def _make_offsets(lengths: Sequence[int]) -> pa.Array:
    """Return the start of each list, and the end of the last one."""
    import pyarrow as pa

    return pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32))


def make_table(rows: Sequence[Row], parameters: Mapping[str, Any], *, has_recording: bool) -> pa.Table:
    """Return the rows of a chunk as an Arrow table."""
    import pyarrow as pa

    names = dict.fromkeys(name for row in rows for name in row.values)
    columns: dict[str, Any] = {RUN: pa.array([row.run for row in rows], pa.int64())}
    for path, value in parameters.items():
        columns[path] = _make_column([np.array(value) if isinstance(value, tuple | list) else value] * len(rows))
    for name in names:
        columns[name] = _make_column([row.values.get(name) for row in rows])
    if has_recording:
        columns[RECORDING] = pa.array([row.recording or None for row in rows], pa.string())
    columns[FAILURE] = pa.array([row.failure or None for row in rows], pa.string())
    return pa.table(columns)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a Parquet file, and rename it into place. Raises `RecordingError`."""
    import pyarrow.parquet

    try:
        with atomic.replace_file(path) as temporary:
            pyarrow.parquet.write_table(table, temporary, compression="zstd")
    except OSError as error:
        raise RecordingError("campaign", error.strerror or str(error), where=Where(str(path))) from error


def read_table(path: Path) -> pa.Table | None:
    """Return the table of a Parquet file; None if it does not exist or is damaged."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException):
        return None


def describe_error(error: Exception) -> str:
    """Return the text of the error of a run on one line."""
    text = str(error) if isinstance(error, NavsenseError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split()) or type(error).__name__
