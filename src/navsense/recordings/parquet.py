"""Recordings as one Parquet table, a row a sample: pandas, polars, DuckDB and every other reader of Parquet open it.

    series name type run time stamp clock_error arrival valid emitted
    ARRAY.AXIS ...   ideal.ARRAY.AXIS ...   bias.ARRAY.AXIS ...   turn_on_bias.ARRAY.AXIS ...   fault.KIND ...

`series` is "reading", of the sensor `name`, or "truth", of the link `name`, which is the same in every run and stands
once, under the first, or "current", of the water on the topic `name`. A row is null where what it is of has no such
array. The metadata `navsense` is the text of `meta`. Slabs are gathered into row groups, so memory is bounded by one of
these and a slab. They go to a hidden file beside the target, which gets the target's name when it is whole, after an
error elsewhere with the slabs before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from navsense.errors import SinkError, Where
from navsense.outputs import HiddenFolder
from navsense.recordings import metadata
from navsense.recordings.atomic import AtomicWriter
from navsense.recordings.base import RecordingHeader, check_target, closed_error
from navsense.series import ARRAY_GROUPS, TRUTH_ARRAYS, Current, Reading, TimeSlice, Truth, all_true
from navsense.typing import AnyArray, IntArray

GROUP_ROWS = 100_000
"""Rows of a row group, at least: fewer than twice as many, unless it is the last."""

TEXT_COLUMNS = ("series", "name", "type")
"""The columns that are texts, from a dictionary."""

NUMBER_COLUMNS: Mapping[str, type[np.generic]] = {
    "run": np.int64,
    "time": np.float64,
    "stamp": np.int64,
    "clock_error": np.float64,
    "arrival": np.float64,
    "valid": np.bool_,
    "emitted": np.bool_,
}
"""The columns of numbers that every row has, and their types."""

RESERVED_NAMES = frozenset((*TEXT_COLUMNS, *NUMBER_COLUMNS, *ARRAY_GROUPS[1:], "truth"))
"""Names that a sensor's own array cannot have in a table."""

GROUP_ORDER = {group: place for place, group in enumerate(ARRAY_GROUPS)}
"""Columns of readings and links come first, then ideal values, biases and faults, each in order of arrival."""


class RowLabels(NamedTuple):
    """What the rows of one sensor or link have in common: the columns of texts."""

    series: str
    name: str
    type: str


class ArrayComponent(NamedTuple):
    """One component of an array of a sensor: its column, "arrays", "truth" or "errors", the array's name, its place."""

    column: str
    group: str
    name: str
    indices: tuple[int, ...]


class ColumnType(NamedTuple):
    """What is known of a column of an array: its element type, and who had it first."""

    dtype: np.dtype[Any]
    owner: str


def import_pyarrow(path: Path) -> Any:
    """Return pyarrow with `pyarrow.parquet` loaded. Raise `SinkError` where it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise SinkError(
            "a Parquet file needs pyarrow, which cannot be imported",
            str(error),
            where=Where(str(path)),
            remedy="pip install pyarrow",
        ) from error
    return pa


def component_columns(name: str, shape: Sequence[int], *, quaternion: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the column of each component of an array whose rows have this shape, and the component's place."""
    letters = "xyz" if tuple(shape) == (3,) else "wxyz" if quaternion and tuple(shape) == (4,) else ""
    for place in np.ndindex(*shape):
        axis = letters[place[0]] if letters else ".".join(map(str, place))
        yield f"{name}.{axis}" if place else name, place


def sensor_components(header: Mapping[str, Any]) -> Iterator[ArrayComponent]:
    """Yield each component that a sensor's head has."""
    for group in ARRAY_GROUPS:
        prefix = "" if group == "arrays" else f"{group}."
        for name, shape in header[group].items():
            quaternion = name in header["quaternions"]
            for column, place in component_columns(prefix + name, shape, quaternion=quaternion):
                yield ArrayComponent(column, group, name, place)


def select_component(array: AnyArray, place: tuple[int, ...]) -> AnyArray:
    """Return one component of each row, a view."""
    index: tuple[Any, ...] = (..., *place)
    component: AnyArray = array[index]
    return component


def slice_columns(columns: Mapping[str, AnyArray], runs: slice, times: slice) -> dict[str, AnyArray]:
    """Return a block of columns (runs, time), views; what is the same in all runs, or at all times, is there once."""
    return {
        name: array[runs if array.shape[0] > 1 else slice(1), times if array.shape[1] > 1 else slice(1)]
        for name, array in columns.items()
    }


TRUTH_COMPONENTS = tuple(
    ArrayComponent(column, "truth", name, place)
    for name in TRUTH_ARRAYS
    for column, place in component_columns(name, (4 if name == "orientation" else 3,), quaternion=name == "orientation")
)
"""The components of the truth of a link."""

CURRENT_COMPONENTS = tuple(
    ArrayComponent(column, "truth", "velocity", place)
    for column, place in component_columns("velocity", (3,), quaternion=False)
)
"""The components of the water's velocity at one place."""


def layer_components(header: Mapping[str, Any]) -> Iterator[ArrayComponent]:
    """Yield each component of the layers that a current's head has."""
    count = len(header["layers"]["depths"]) if "layers" in header else 0
    for column, place in component_columns("layers", (count, 3), quaternion=False) if count else ():
        yield ArrayComponent(column, "truth", "layers", place)


def check_array_names(path: Path, owner: str, names: Iterable[str]) -> None:
    """Raise `SinkError` where an array has a name from which no column of its own can be made."""
    for name in names:
        if name in RESERVED_NAMES or "." in name:
            why = "a dot divides the names of columns" if "." in name else "is the name of another column"
            raise SinkError(
                f"{owner} has an array of a name that no table can have",
                name,
                allowed=why,
                where=Where(str(path)),
                remedy="rename the array, or write .mcap",
            )


def check_lengths(path: Path, reading: Reading) -> None:
    """Raise `SinkError` where an array of a reading does not fit its times."""
    shape = (*reading.clock_error.shape[:-1], reading.time.size)
    own = {"clock_error": reading.clock_error, "valid": reading.valid, "emitted": reading.emitted}
    ideal_shape = (*reading.ideal_lead, reading.time.size)
    groups = [(getattr(reading, group), ideal_shape if group == "ideal" else shape) for group in ARRAY_GROUPS]
    for arrays, expected in (({**own, "arrival": reading.arrival}, shape), *groups):
        for name, array in arrays.items():
            if array.shape[: len(expected)] != expected:
                raise SinkError(
                    f"array {name} of {reading.name!r} does not fit its times",
                    array.shape,
                    allowed=f"must begin with {expected}",
                    where=Where(str(path)),
                )


def column_encodings(columns: Mapping[str, ColumnType]) -> dict[str, str]:
    """Return how the columns of numbers are stored: bytes of like weight together, integers as differences."""
    types = {name: np.dtype(kind) for name, kind in NUMBER_COLUMNS.items()}
    types |= {name: column.dtype for name, column in columns.items()}
    split = {name: "BYTE_STREAM_SPLIT" for name, dtype in types.items() if dtype.kind == "f" and dtype.itemsize > 2}
    return split | {name: "DELTA_BINARY_PACKED" for name, dtype in types.items() if dtype.kind in "iu"}


class RowBuffer:
    """Rows of one sensor or link that wait to be written: an array a column, filled from the front."""

    def __init__(self) -> None:
        """Start without rows."""
        self.count = 0
        self.arrays: dict[str, AnyArray] = {}
        self._capacity = 0

    def add(self, columns: Mapping[str, AnyArray], shape: tuple[int, int]) -> None:
        """Copy rows, those of runs (shape[0]) one after the other; each column fits `shape` when it is broadcast."""
        first, self.count = self.count, self.count + shape[0] * shape[1]
        if self.count > self._capacity:
            self._capacity = max(self.count, 2 * self._capacity)
            self.arrays = {name: self._grow(name, values.dtype, first) for name, values in columns.items()}
        for name, values in columns.items():
            self.arrays[name][first : self.count].reshape(shape)[...] = values

    def _grow(self, name: str, dtype: np.dtype[Any], used: int) -> AnyArray:
        """Return a column's array with more room."""
        grown = np.empty(self._capacity, dtype=NUMBER_COLUMNS.get(name, dtype))
        if used:
            grown[:used] = self.arrays[name][:used]
        return grown


class PendingParquet:
    """One Parquet file being written. Its methods are called from one thread, one after the other."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Make the hidden file beside `path`."""
        self._pa = import_pyarrow(path)
        self._path, self._recording = path, recording
        self._runs: IntArray = np.array([int(run) for run in recording.runs], dtype=np.int64)
        self._work = HiddenFolder(path)
        self._part = self._work.folder / path.name
        try:
            self._part.open("xb").close()
            self._file = self._pa.OSFile(str(self._part), "wb")
        except BaseException:
            self._work.release()
            raise
        self._writer: Any = None
        self._schema: Any = None
        self._columns: dict[str, ColumnType] = {}
        self._buffers: dict[RowLabels, RowBuffer] = {}
        self._sensors: dict[str, dict[str, Any]] = {}
        self._types: dict[str, dict[tuple[str, str], np.dtype[Any]]] = {}
        self._components: dict[str, tuple[ArrayComponent, ...]] = {}
        self._links: list[str] = []
        self._current: dict[str, Any] | None = None
        self.is_open = True

    def write(self, time_slice: TimeSlice) -> None:
        """Take all of a slab; after an error nothing is left."""
        try:
            # All columns first: the first row group that is written fixes them.
            for name, reading in time_slice.readings.items():
                self._register_sensor(name, reading)
            truths = time_slice.truth if self._recording.truth else {}
            for name, truth in truths.items():
                self._register_truth(name, truth)
            current = time_slice.current if self._recording.truth else None
            if current is not None:
                self._register_current(current)
            for name, reading in time_slice.readings.items():
                self._append_reading(name, reading)
            for name, truth in truths.items():
                self._append_truth(name, truth)
            if current is not None:
                self._append_current(current)
        except BaseException:
            self.discard()
            raise

    def _register_sensor(self, name: str, reading: Reading) -> None:
        """Note a sensor's columns. Raise `SinkError` where the table cannot hold them."""
        check_lengths(self._path, reading)
        head, where = metadata.sensor_header(self._recording, name, reading), Where(str(self._path))
        types = {(group, key): getattr(reading, group)[key].dtype for group in ARRAY_GROUPS for key in head[group]}
        if self._sensors.setdefault(name, head) != head or self._types.setdefault(name, types) != types:
            raise SinkError(f"sensor {name!r} changed its arrays, their types, their shapes or its runs", where=where)
        if name in self._components:
            return
        if int(np.prod(head["runs"])) != self._runs.size:
            allowed = f"must have the recording's {self._runs.size}"
            raise SinkError(f"runs of the readings of {name!r}", tuple(head["runs"]), allowed=allowed, where=where)
        owner = f"sensor {name!r}"
        check_array_names(self._path, owner, (key for group, key in types if group != "fault"))
        self._components[name] = tuple(sensor_components(head))
        for part in self._components[name]:
            self._register_column(part.column, types[part.group, part.name], owner)

    def _register_truth(self, name: str, truth: Truth) -> None:
        """Note the columns of a link's truth."""
        if name not in self._links:
            self._links.append(name)
        for part in TRUTH_COMPONENTS:
            self._register_column(part.column, getattr(truth, part.name).dtype, f"the truth of link {name!r}")

    def _register_current(self, current: Current) -> None:
        """Note the columns of the water's velocity."""
        head = metadata.current_header(current)
        if int(np.prod(head["runs"])) != self._runs.size:
            allowed = f"must have the recording's {self._runs.size}"
            raise SinkError("runs of the current", tuple(head["runs"]), allowed=allowed, where=Where(str(self._path)))
        self._current = head
        for part in (*CURRENT_COMPONENTS, *layer_components(head)):
            self._register_column(part.column, current.velocity.dtype, "the current")

    def _register_column(self, column: str, dtype: np.dtype[Any], owner: str) -> None:
        """Note one column. Raise `SinkError` where it is too late for it, or its type is another or none."""
        known, where = self._columns.get(column), Where(str(self._path))
        if known is not None and known.dtype == dtype:
            return
        if known is not None:
            raise SinkError(
                f"{owner} has {dtype}, {known.owner} has {known.dtype} in one column",
                column,
                where=where,
                remedy="give both arrays one type, or other names, or write .npz",
            )
        if self._schema is not None:
            raise SinkError(f"{owner} has an array that was not there at first", column, where=where)
        if dtype.kind not in "fiub" or not dtype.isnative or dtype.itemsize > 8:
            raise SinkError(f"{owner} has an array of a type that no column has: {dtype}", column, where=where)
        self._columns[column] = ColumnType(dtype, owner)

    def _append_reading(self, name: str, reading: Reading) -> None:
        """Take one sensor's rows, by runs and spans of time that do not overfill a row group."""
        count, runs = reading.time.size, self._runs.size
        stamp, arrival = reading.stamp, reading.arrival
        whole: dict[str, AnyArray] = {
            "run": self._runs[:, None],
            "time": reading.time[None],
            "stamp": stamp.reshape(runs, count),
            "clock_error": reading.clock_error.reshape(runs, count),
            "arrival": arrival.reshape(runs, count),
            "valid": reading.valid.reshape(runs, count),
            "emitted": reading.emitted.reshape(runs, count),
        }
        for column, group, key, place in self._components[name]:
            component = select_component(getattr(reading, group)[key], place)
            once = group == "ideal" and not reading.ideal_in_runs
            whole[column] = component.reshape(1 if once else runs, count)
        self._append_rows(RowLabels("reading", name, reading.type), whole, (runs, count))

    def _append_truth(self, name: str, truth: Truth) -> None:
        """Take the rows of a link's truth."""
        shape = (1, truth.time.size)
        everything, time = all_true(shape), truth.time[None]
        whole: dict[str, AnyArray] = {
            "run": self._runs[:1, None],
            "time": time,
            "stamp": truth.stamp[None],
            "clock_error": np.zeros((1, 1)),
            "arrival": time,
            "valid": everything,
            "emitted": everything,
        }
        for part in TRUTH_COMPONENTS:
            whole[part.column] = select_component(getattr(truth, part.name), part.indices)[None]
        self._append_rows(RowLabels("truth", name, "link"), whole, shape)

    def _append_current(self, current: Current) -> None:
        """Take the rows of the water's velocity."""
        shape = (self._runs.size, current.time.size)
        everything, time = all_true(shape), current.time[None]
        whole: dict[str, AnyArray] = {
            "run": self._runs[:, None],
            "time": time,
            "stamp": current.stamp[None],
            "clock_error": np.zeros((1, 1)),
            "arrival": time,
            "valid": everything,
            "emitted": everything,
        }
        for part in CURRENT_COMPONENTS:
            whole[part.column] = select_component(current.velocity, part.indices).reshape(shape)
        if current.layers is not None:
            for part in layer_components(metadata.current_header(current)):
                whole[part.column] = select_component(current.layers.velocity, part.indices).reshape(shape)
        self._append_rows(RowLabels("current", current.topic, "current"), whole, shape)

    def _append_rows(self, key: RowLabels, columns: Mapping[str, AnyArray], shape: tuple[int, int]) -> None:
        """Take rows (runs, time) of one series, writing row groups as they are full."""
        runs, count = shape
        rows = self._buffers.setdefault(key, RowBuffer())
        step = max(1, GROUP_ROWS // max(1, count))
        for i in range(0, runs, step):
            for first in range(0, count, GROUP_ROWS):
                part = slice_columns(columns, slice(i, i + step), slice(first, first + GROUP_ROWS))
                rows.add(part, (min(step, runs - i), min(GROUP_ROWS, count - first)))
                if sum(waiting.count for waiting in self._buffers.values()) >= GROUP_ROWS:
                    self._flush()

    def _flush(self) -> None:
        """Write what waits as one row group: one sensor or link after the other."""
        pa, schema = self._pa, self._open_writer()
        full = {key: rows for key, rows in self._buffers.items() if rows.count}
        if not full:
            return
        counts = [rows.count for rows in full.values()]
        nothing = {kind: pa.nulls(max(counts), kind) for kind in set(schema.types)}
        arrays = []
        for field in schema:
            if field.name in TEXT_COLUMNS:
                texts = [getattr(key, field.name) for key in full]
                words = list(dict.fromkeys(texts))
                codes = np.array([words.index(text) for text in texts], dtype=np.int32)
                arrays.append(pa.DictionaryArray.from_arrays(np.repeat(codes, counts), words))
                continue
            parts = [
                pa.array(rows.arrays[field.name][: rows.count])
                if field.name in rows.arrays
                else nothing[field.type][: rows.count]
                for rows in full.values()
            ]
            arrays.append(pa.chunked_array(parts, type=field.type))
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=sum(counts))
        for rows in full.values():
            rows.count = 0

    def _open_writer(self) -> Any:
        """Return the schema, fixed at the first call, which opens the writer."""
        if self._schema is None:
            pa = self._pa
            text = pa.dictionary(pa.int32(), pa.string())
            fields = [pa.field(name, text, nullable=False) for name in TEXT_COLUMNS]
            fields += [
                pa.field(name, pa.from_numpy_dtype(kind), nullable=False) for name, kind in NUMBER_COLUMNS.items()
            ]
            order = sorted(self._columns, key=lambda name: GROUP_ORDER.get(name.partition(".")[0], 0))
            fields += [pa.field(name, pa.from_numpy_dtype(self._columns[name].dtype)) for name in order]
            self._schema = pa.schema(fields)
            self._writer = pa.parquet.ParquetWriter(
                self._file,
                self._schema,
                compression="zstd",
                use_dictionary=list(TEXT_COLUMNS),
                column_encoding=column_encodings(self._columns),
                write_page_checksum=True,
            )
        return self._schema

    def finish(self, *, empty: bool = True) -> None:
        """Write the rest and the footer, and give the file its name; with `empty` false only where there are slabs."""
        if not self.is_open:
            raise closed_error(self._path)
        try:
            if empty or self._sensors or self._links:
                self._flush()
                text = metadata.format_metadata(self._recording, self._sensors, self._links, self._current)
                self._writer.add_key_value_metadata({"navsense": text})
                self._writer.close()
                self._file.close()
                self._work.commit(self._part)
        finally:
            self.discard()

    def discard(self) -> None:
        """Let go of the file; nothing stays of one that is not whole. Never raises."""
        self.is_open = False
        self._buffers.clear()
        with contextlib.suppress(Exception):
            if self._writer is not None:
                self._writer.close()
        with contextlib.suppress(Exception):
            self._file.close()
        self._work.release()


class ParquetWriter(AtomicWriter):
    """Writes slabs to one Parquet file."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Make the hidden file beside `path`. Raise `SinkError` where that cannot be, or a name is no column's."""
        check_target(path)
        for sensor in recording.world.sensors:
            check_array_names(path, f"sensor {sensor.name!r}", [output.name for output in sensor.spec.outputs])
        super().__init__(path, lambda: PendingParquet(path, recording))
