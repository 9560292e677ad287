"""The rows of a campaign as Arrow tables, and the Parquet file of a chunk.

Columns are `run`, the parameters of the sweep by path, those of the row of `reduce`, `recording`, and `failure`. A run
that failed has a text in `failure` and null in the columns of `reduce`. An array is a list in its row, an array of
several axes a list of lists.

A column has one kind of value: numbers, truth values or texts, or arrays of them with the same number of axes. The
first run decides. A run with another kind has failed. Integers become floating-point numbers if another run has these.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from navsense.core import atomic
from navsense.core.errors import NavsenseError, RecordingError, SimulationError, Where
from navsense.core.typing import AnyArray

if TYPE_CHECKING:
    import pyarrow as pa

RUN, RECORDING, FAILURE, COMMAND = "run", "recording", "failure", "command"
"""Columns of each campaign. `command` repeats the run."""

CHUNKS, RECORDINGS = "chunks", "recordings"
"""Folders in the folder of the results: of the chunks, and of the recordings."""

DESCRIPTION = "campaign.json"
"""File in the folder of the results that describes the campaign."""

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Row:
    """One run: number, columns of `reduce`, path of its recording, and the text of its failure; "" if it succeeded."""

    run: int
    values: Mapping[str, Any]
    recording: str = ""
    failure: str = ""


def check_values(values: object, paths: Collection[str] = ()) -> dict[str, Any]:
    """Return the result of `reduce` with NumPy arrays and Python scalars. Raises `SimulationError` for other values.

    paths: those of the sweep, which are columns too.
    """
    if not isinstance(values, Mapping):
        raise SimulationError("result of reduce", values, allowed="must be a mapping from columns to values")
    checked = {}
    for name, value in values.items():
        if not isinstance(name, str) or not name or name in (RUN, RECORDING, FAILURE, COMMAND, *paths):
            others = f"{RUN}, {RECORDING}, {FAILURE}, {COMMAND}{' and the paths of the sweep' if paths else ''}"
            raise SimulationError("column of reduce", name, allowed=f"must be a text other than {others}")
        if np.ma.isMaskedArray(value) and np.ma.is_masked(value):
            allowed = "must not have masked values"
            raise SimulationError(f"column {name} of reduce", "array", allowed=allowed, remedy="use filled(np.nan)")
        array = _make_array(value)
        if array.dtype.kind not in "biufU" or not _is_encodable(name, array):
            allowed = "must be a number, a text, a truth value, or an array of them"
            raise SimulationError(f"column {name} of reduce", value, allowed=allowed)
        if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
            array = array.astype(np.float64)
        if array.dtype == np.uint64:
            if array.size and array.max() > np.iinfo(np.int64).max:
                raise SimulationError(f"column {name} of reduce", value, allowed="must be integers below 2**63")
            array = array.astype(np.int64)
        checked[name] = array if array.ndim else array.item()
    return checked


def _make_array(value: Any) -> AnyArray:
    """Return a value as an array; an array of objects for lists of several lengths, or of texts and numbers."""
    try:
        array: AnyArray = np.asarray(value)
    except ValueError:
        return np.array(None)
    if array.dtype.kind == "U" and not isinstance(value, str | np.ndarray):
        objects = np.asarray(value, dtype=object)
        if not all(isinstance(item, str) for item in objects.ravel()):
            return objects
    return array


def _is_encodable(name: str, array: AnyArray) -> bool:
    """Return True if texts can be written: those with half of a surrogate pair cannot."""
    texts = [name, *(array.ravel().tolist() if array.dtype.kind == "U" else [])]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def _get_value_kind(value: Any) -> str:
    """Return the kind of a value of `check_values`, as texts of errors name it."""
    array = np.asarray(value)
    return _format_kind({"b": "truth value", "U": "text"}.get(array.dtype.kind, "number"), array.ndim)


def _get_type_kind(kind: pa.DataType) -> str:
    """Return the kind of the values of a column; "" if it has none."""
    import pyarrow as pa

    leaf, axes = _split_type(kind)
    if pa.types.is_null(leaf):
        return ""
    return _format_kind("truth value" if leaf == pa.bool_() else "text" if leaf == pa.string() else "number", axes)


def _format_kind(noun: str, axes: int) -> str:
    """Return the text of a kind of value."""
    return f"array of {noun}s with {axes} {'axis' if axes == 1 else 'axes'}" if axes else noun


def _split_type(kind: pa.DataType) -> tuple[pa.DataType, int]:
    """Return the type of the elements of nested lists, and the number of their axes."""
    import pyarrow as pa

    axes = 0
    while pa.types.is_list(kind):
        kind, axes = kind.value_type, axes + 1
    return kind, axes


def _describe_conflict(name: str, kind: str, first: str) -> str:
    """Return the failure of a run that has another kind of value than the first run."""
    return f"column {name} of reduce: {kind}; must be {first} as in the first run"


def fail_other_kinds(rows: Sequence[Row]) -> list[Row]:
    """Return the rows. Those with another kind of value in a column than the first row are failed runs."""
    kinds: dict[str, str] = {}
    checked = []
    for row in rows:
        found = {name: _get_value_kind(value) for name, value in row.values.items()}
        wrong = next((name for name, kind in found.items() if kinds.get(name, kind) != kind), None)
        if wrong is None:
            kinds |= found
            checked.append(row)
        else:
            checked.append(Row(row.run, {}, failure=_describe_conflict(wrong, found[wrong], kinds[wrong])))
    return checked


def join_tables(tables: Sequence[pa.Table], paths: Collection[str]) -> pa.Table:
    """Return the rows of chunks as one table. Rows with another kind of value in a column are failed runs.

    paths: those of the sweep. A parameter with several kinds of values becomes a column of texts.

    The table keeps the pieces of the chunks: together, their arrays can have more elements than one Arrow list can.
    """
    import pyarrow as pa

    kinds: dict[str, str] = {}
    mixed, checked = set(), []
    for table in tables:
        for name in table.column_names:
            kind = _get_type_kind(table.schema.field(name).type)
            if kind and kinds.setdefault(name, kind) != kind:
                if name in paths:
                    mixed.add(name)
                else:
                    table = _fail_rows(table, name, _describe_conflict(name, kind, kinds[name]), paths)  # noqa: PLW2901
        checked.append(table)
    names = dict.fromkeys(chain.from_iterable(table.column_names for table in checked))
    types = {
        name: pa.string()
        if name in mixed
        else _find_common_type([table.schema.field(name).type for table in checked if name in table.column_names])
        for name in names
    }
    return pa.concat_tables(
        pa.table({name: _convert_column(table, name, kind, name in mixed) for name, kind in types.items()})
        for table in checked
    )


def _convert_column(table: pa.Table, name: str, kind: pa.DataType, is_mixed: bool) -> pa.ChunkedArray:
    """Return a column in another type; nulls if the table does not have it."""
    import pyarrow as pa

    if name not in table.column_names or _get_type_kind(table.schema.field(name).type) == "":
        return pa.nulls(len(table), kind)
    return pa.array(map(str, table[name].to_pylist()), kind) if is_mixed else table[name].cast(kind, safe=False)


def _fail_rows(table: pa.Table, wrong: str, failure: str, paths: Collection[str]) -> pa.Table:
    """Return a table in which the rows that have a value in a column are failed runs."""
    import pyarrow as pa

    failed = table[wrong].is_valid().to_pylist()
    kept = pa.array([None if is_failed else row for row, is_failed in enumerate(failed)], pa.int64())
    for index, name in enumerate(table.column_names):
        if name in (RUN, COMMAND, *paths):
            continue
        column = table[name].take(kept)
        if name == FAILURE:
            texts = zip(table[name].to_pylist(), failed, strict=True)
            column = pa.array([failure if is_failed else text for text, is_failed in texts], pa.string())
        elif column.null_count == len(column):
            column = pa.nulls(len(column))
        table = table.set_column(index, name, column)
    return table


def _find_common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type to which the values of columns of one kind can be converted."""
    import pyarrow as pa

    parts = [(leaf, axes) for leaf, axes in map(_split_type, types) if not pa.types.is_null(leaf)]
    if len(set(parts)) <= 1:
        return next((kind for kind in types if not pa.types.is_null(_split_type(kind)[0])), types[0])
    kind = pa.from_numpy_dtype(np.result_type(*(leaf.to_pandas_dtype() for leaf, _ in parts)))
    for _ in range(parts[0][1]):
        kind = pa.list_(kind)
    return kind


def _make_column(values: Sequence[Any]) -> pa.Array:
    """Return a column of scalars or of arrays of one kind; None is null."""
    import pyarrow as pa

    if any(isinstance(value, np.ndarray) for value in values):
        return _make_list_column(values)
    if any(isinstance(value, float) for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array(values)


def _make_list_column(values: Sequence[Any]) -> pa.Array:
    """Return a column of arrays as nested lists, without an object of Python for each number."""
    import pyarrow as pa

    arrays = [np.asarray(value) for value in values if value is not None]
    depth = arrays[0].ndim
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
    """Return the rows of a chunk, as `fail_other_kinds` returns them, as an Arrow table."""
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


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table | None:
    """Return the table of a Parquet file; None if it does not exist or is damaged.

    columns: those that are read, as far as the file has them; None: all.
    """
    import pyarrow as pa
    import pyarrow.parquet

    try:
        if not path.is_file():
            return None
        known = pyarrow.parquet.read_schema(path).names
        names = known if columns is None else [name for name in columns if name in known]
        return pyarrow.parquet.read_table(path, columns=names, partitioning=None)
    except (OSError, pa.ArrowException):
        return None


def describe_error(error: BaseException) -> str:
    """Return the text of the error of a run on one line."""
    try:
        text = str(error) if isinstance(error, NavsenseError) else f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  # the method of a class of the user
        text = type(error).__name__
    text = text.encode("utf-8", "backslashreplace").decode()  # a file cannot have half of a surrogate pair
    return " ".join(text.split()) or type(error).__name__


def find_place(error: BaseException) -> str:
    """Return "FILE:LINE: " of the innermost frame of an error in code of the user.

    The first frame is the caller of `reduce`. Without code of the user, the place is that of `reduce`.
    """
    frames = list(traceback.walk_tb(error.__traceback__))[1:]
    folders = (str(_PACKAGE), "<frozen", *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
    own = [place for place in frames if not place[0].f_code.co_filename.startswith(folders)]
    if not frames:
        return ""
    frame, line = own[-1] if own else frames[0]
    file = Path(frame.f_code.co_filename).name
    if file.startswith("<"):  # a function that was sent by value
        module = str(frame.f_globals.get("__name__", "__main__")).rpartition(".")[2]
        file = "script" if module == "__main__" else f"{module}.py"
    return f"{file}:{line}: "
