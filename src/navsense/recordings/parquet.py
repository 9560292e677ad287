"""Recordings as one Parquet table with a row per sample, which pandas, polars and DuckDB read.

    series name type run time stamp clock_error arrival valid emitted
    ARRAY.AXIS ...   ideal.ARRAY.AXIS ...   bias.ARRAY.AXIS ...   turn_on_bias.ARRAY.AXIS ...   fault.KIND ...

`series` is "reading" of the sensor `name`, "truth" of the link `name`, or "current" on the topic `name`.
Truth is equal in all runs and stored once, under the first run. A column is null in rows of series without its
array. The metadata has the key `navsense`, as in an archive of NumPy. Memory stays within one row group and one time
slice. The file is hidden until it is complete. After an error elsewhere it holds the time slices before it.

A Parquet file cannot be read without its footer. The space for a row group and for the footer is therefore reserved
before the row group is written. If the disk is full, the file is completed with the row groups before.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np

from navsense.core.atomic import HiddenFolder
from navsense.core.errors import DamagedError, RecordingError, Where
from navsense.core.inputs import expansion_problem
from navsense.core.readings import ARRAY_GROUPS, Current, Reading, TimeSlice, Truth, make_all_true, to_nanoseconds
from navsense.core.text import format_count
from navsense.core.typing import AnyArray, FloatArray, IntArray
from navsense.recordings import metadata
from navsense.recordings.array_columns import (
    TRUTH_COMPONENTS,
    ArrayComponent,
    EntryMetadata,
    join_components,
    list_current_components,
    list_entries,
    list_sensor_components,
    make_current,
    make_reading,
    make_truth,
    select_component,
)
from navsense.recordings.base import AtomicWriter, PendingRecording, find_unrecoverable_remedy, open_for_reading
from navsense.recordings.dataset import Dataset, LinkSelection, select_links
from navsense.recordings.format import LOSSLESS, Capability, Format, Recovery
from navsense.recordings.info import RecordedRun, RecordingSummary, SummaryEntry
from navsense.recordings.summary import make_summary

GROUP_ROWS = 100_000
"""Least number of rows of a row group except the last. A row group has fewer than twice as many."""

TEXT_COLUMNS = ("series", "name", "type")
"""Columns of texts, encoded by a dictionary."""

NUMBER_COLUMNS: Mapping[str, type[np.generic]] = {
    "run": np.int64,
    "time": np.float64,
    "stamp": np.int64,
    "clock_error": np.float64,
    "arrival": np.float64,
    "valid": np.bool_,
    "emitted": np.bool_,
}
"""Columns of numbers that every row has, and their types."""

RESERVED_NAMES = frozenset((*TEXT_COLUMNS, *NUMBER_COLUMNS, *ARRAY_GROUPS[1:], "truth"))
"""Names that an output of a sensor cannot have in a table."""

FOOTER_BYTES = 256
"""More than the bytes of the footer for a column of a row group: offsets, sizes, encodings and statistics."""

NO_RESERVATION = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF)
"""Errors where space cannot be reserved. The GNU C library raises EBADF there for a file that is opened to append."""

GROUP_ORDER = {group: position for position, group in enumerate(ARRAY_GROUPS)}
"""Position of the columns of a group: measured values and truth first, then ideal values, biases and faults."""


class RowLabels(NamedTuple):
    """The columns of texts of the rows of one sensor or link."""

    series: str
    name: str
    type: str


class ColumnType(NamedTuple):
    """The element type of a column, and the sensor or link that defined it."""

    dtype: np.dtype[Any]
    owner: str


def import_pyarrow(path: Path) -> Any:
    """Return pyarrow with `pyarrow.parquet` loaded. Raises `RecordingError` if it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise RecordingError(
            "a Parquet file needs pyarrow, which cannot be imported",
            str(error),
            where=Where(str(path)),
            remedy="pip install 'navsense[parquet]'",
        ) from error
    return pa


def slice_columns(columns: Mapping[str, AnyArray], runs: slice, times: slice) -> dict[str, AnyArray]:
    """Return a block of columns (runs, time) as views. A column that is constant along an axis has length 1 there."""
    return {
        name: array[runs if array.shape[0] > 1 else slice(1), times if array.shape[1] > 1 else slice(1)]
        for name, array in columns.items()
    }


def check_array_names(path: Path, owner: str, names: Iterable[str]) -> None:
    """Raise `RecordingError` if an array has a name that cannot be the name of a column."""
    for name in names:
        if name in RESERVED_NAMES or "." in name:
            why = "a dot divides the names of columns" if "." in name else "is the name of another column"
            raise RecordingError(
                f"{owner} has an array of a name that no table can have",
                name,
                allowed=why,
                where=Where(str(path)),
                remedy="rename the array, or write .mcap",
            )


def check_lengths(path: Path, reading: Reading) -> None:
    """Raise `RecordingError` if an array of a reading does not fit its times."""
    shape = (*reading.clock_error.shape[:-1], reading.time.size)
    common_arrays = {"clock_error": reading.clock_error, "valid": reading.valid, "emitted": reading.emitted}
    ideal_shape = (*reading.ideal_run_shape, reading.time.size)
    groups = [(getattr(reading, group), ideal_shape if group == "ideal" else shape) for group in ARRAY_GROUPS]
    for arrays, expected in (({**common_arrays, "arrival": reading.arrival}, shape), *groups):
        for name, array in arrays.items():
            if array.shape[: len(expected)] != expected:
                raise RecordingError(
                    f"array {name} of {reading.name!r} does not fit its times",
                    array.shape,
                    allowed=f"must begin with {expected}",
                    where=Where(str(path)),
                )


def list_column_encodings(columns: Mapping[str, ColumnType]) -> dict[str, str]:
    """Return the encodings of the columns of numbers: byte stream split for floats, differences for integers."""
    types = {name: np.dtype(kind) for name, kind in NUMBER_COLUMNS.items()}
    types |= {name: column.dtype for name, column in columns.items()}
    split = {name: "BYTE_STREAM_SPLIT" for name, dtype in types.items() if dtype.kind == "f" and dtype.itemsize > 2}
    return split | {name: "DELTA_BINARY_PACKED" for name, dtype in types.items() if dtype.kind in "iu"}


class RowBuffer:
    """Rows of one sensor or link that are not written yet, with an array per column."""

    def __init__(self) -> None:
        """Start without rows."""
        self.count = 0
        self.arrays: dict[str, AnyArray] = {}
        self._capacity = 0

    def add(self, columns: Mapping[str, AnyArray], shape: tuple[int, int]) -> None:
        """Copy rows of `shape` (runs, time), run after run. Each column can be broadcast to `shape`."""
        first, self.count = self.count, self.count + shape[0] * shape[1]
        if self.count > self._capacity:
            self._capacity = max(self.count, 2 * self._capacity)
            self.arrays = {name: self._extend(name, values.dtype, first) for name, values in columns.items()}
        for name, values in columns.items():
            self.arrays[name][first : self.count].reshape(shape)[...] = values

    def _extend(self, name: str, dtype: np.dtype[Any], used: int) -> AnyArray:
        grown = np.empty(self._capacity, dtype=NUMBER_COLUMNS.get(name, dtype))
        if used:
            grown[:used] = self.arrays[name][:used]
        return grown


class PendingParquet(PendingRecording):
    """A Parquet file that is written by one thread."""

    def __init__(self, path: Path, recorded_run: RecordedRun) -> None:
        """Create the hidden file next to `path`. Raises `RecordingError` for an array that cannot have a column."""
        for sensor in recorded_run.world.sensors:
            check_array_names(path, f"sensor {sensor.name!r}", [output.name for output in sensor.spec.outputs])
        self._pa = import_pyarrow(path)
        self.path, self._recorded_run = path, recorded_run
        self._runs: IntArray = np.array([int(run) for run in recorded_run.runs], dtype=np.int64)
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
        self._row_count = self._group_count = 0
        self._columns: dict[str, ColumnType] = {}
        self._buffers: dict[RowLabels, RowBuffer] = {}
        self._metadata = EntryMetadata(path, recorded_run)
        self._types: dict[str, dict[tuple[str, str], np.dtype[Any]]] = {}
        self._components: dict[str, tuple[ArrayComponent, ...]] = {}

    def append(self, time_slice: TimeSlice) -> None:
        """Append a time slice."""
        truths, current = (
            (time_slice.truth, time_slice.current) if self._recorded_run.has_simulated_series else ({}, None)
        )
        self._metadata.changes += time_slice.changes
        # Register all columns first: the first row group fixes them.
        for name, reading in time_slice.readings.items():
            self._register_sensor(name, reading)
        for name, truth in truths.items():
            self._register_truth(name, truth)
        if current is not None:
            self._register_current(current)
        for name, reading in time_slice.readings.items():
            self._append_reading(name, reading)
        for name, truth in truths.items():
            self._append_truth(name, truth)
        if current is not None:
            self._append_current(current)

    def _register_sensor(self, name: str, reading: Reading) -> None:
        check_lengths(self.path, reading)
        sensor_metadata = self._metadata.add_reading(name, reading)
        types = {
            (group, key): getattr(reading, group)[key].dtype for group in ARRAY_GROUPS for key in sensor_metadata[group]
        }
        if self._types.setdefault(name, types) != types:
            raise self._metadata.make_changed_error(name)
        if name in self._components:
            return
        self._check_runs(f"runs of the readings of {name!r}", sensor_metadata["runs"])
        owner = f"sensor {name!r}"
        check_array_names(self.path, owner, (key for group, key in types if group != "fault"))
        self._components[name] = list_sensor_components(sensor_metadata)
        for part in self._components[name]:
            self._register_column(part.column, types[part.group, part.name], owner)

    def _register_truth(self, name: str, truth: Truth) -> None:
        self._metadata.add_truth(name)
        for part in TRUTH_COMPONENTS:
            self._register_column(part.column, getattr(truth, part.name).dtype, f"the truth of link {name!r}")

    def _register_current(self, current: Current) -> None:
        current_metadata = self._metadata.add_current(current)
        self._check_runs("runs of the current", current_metadata["runs"])
        for part in list_current_components(current_metadata):
            self._register_column(part.column, current.velocity.dtype, "the current")

    def _check_runs(self, what: str, runs: Sequence[int]) -> None:
        if math.prod(runs) != self._runs.size:
            allowed = f"must have the recording's {self._runs.size}"
            raise RecordingError(what, tuple(runs), allowed=allowed, where=Where(str(self.path)))

    def _register_column(self, column: str, dtype: np.dtype[Any], owner: str) -> None:
        known, where = self._columns.get(column), Where(str(self.path))
        if known is not None and known.dtype == dtype:
            return
        if known is not None:
            raise RecordingError(
                f"{owner} has {dtype}, {known.owner} has {known.dtype} in one column",
                column,
                where=where,
                remedy="give both arrays one type, or other names, or write .npz",
            )
        if self._schema is not None:
            raise RecordingError(f"{owner} has an array that was not there at first", column, where=where)
        if dtype.kind not in "fiub" or not dtype.isnative or dtype.itemsize > 8:
            raise RecordingError(f"{owner} has an array of a type that no column has: {dtype}", column, where=where)
        self._columns[column] = ColumnType(dtype, owner)

    def _append_reading(self, name: str, reading: Reading) -> None:
        count, runs = reading.time.size, self._runs.size
        stamp, arrival = reading.stamp, reading.arrival
        columns: dict[str, AnyArray] = {
            "run": self._runs[:, None],
            "time": reading.time[None],
            "stamp": stamp.reshape(runs, count),
            "clock_error": reading.clock_error.reshape(runs, count),
            "arrival": arrival.reshape(runs, count),
            "valid": reading.valid.reshape(runs, count),
            "emitted": reading.emitted.reshape(runs, count),
        }
        for part in self._components[name]:
            component = select_component(getattr(reading, part.group)[part.name], part.indices)
            once = part.group == "ideal" and not reading.ideal_in_runs
            columns[part.column] = component.reshape(1 if once else runs, count)
        self._append_rows(RowLabels("reading", name, reading.type), columns, (runs, count))

    def _append_truth(self, name: str, truth: Truth) -> None:
        columns = {part.column: select_component(getattr(truth, part.name), part.indices) for part in TRUTH_COMPONENTS}
        self._append_true_rows(RowLabels("truth", name, "link"), self._runs[:1], truth, columns)

    def _append_current(self, current: Current) -> None:
        arrays = {"velocity": current.velocity}
        if current.layers is not None:
            arrays["layers"] = current.layers.velocity
        columns = {
            part.column: select_component(arrays[part.name], part.indices)
            for part in list_current_components(metadata.make_current_metadata(current))
        }
        self._append_true_rows(RowLabels("current", current.topic, "current"), self._runs, current, columns)

    def _append_true_rows(
        self, labels: RowLabels, runs: IntArray, series: Truth | Current, columns: Mapping[str, AnyArray]
    ) -> None:
        """Append rows of some runs without a clock error, a latency and missing samples."""
        shape = (runs.size, series.time.size)
        flags, time = make_all_true(shape), series.time[None]
        common: dict[str, AnyArray] = {
            "run": runs[:, None],
            "time": time,
            "stamp": series.stamp[None],
            "clock_error": np.zeros((1, 1)),
            "arrival": time,
            "valid": flags,
            "emitted": flags,
        }
        self._append_rows(labels, common | {name: array.reshape(shape) for name, array in columns.items()}, shape)

    def _append_rows(self, key: RowLabels, columns: Mapping[str, AnyArray], shape: tuple[int, int]) -> None:
        """Append rows (runs, time) of one series, and write each row group that is full."""
        runs, count = shape
        rows = self._buffers.setdefault(key, RowBuffer())
        step = max(1, GROUP_ROWS // max(1, count))
        for i in range(0, runs, step):
            for first in range(0, count, GROUP_ROWS):
                part = slice_columns(columns, slice(i, i + step), slice(first, first + GROUP_ROWS))
                rows.add(part, (min(step, runs - i), min(GROUP_ROWS, count - first)))
                if sum(buffer.count for buffer in self._buffers.values()) >= GROUP_ROWS:
                    self._flush()

    def _flush(self) -> None:
        """Write the rows in the buffers as one row group, one sensor or link after the other."""
        pa, schema = self._pa, self._get_schema()
        buffers = {key: rows for key, rows in self._buffers.items() if rows.count}
        if not buffers:
            return
        counts = [rows.count for rows in buffers.values()]
        null_columns = {kind: pa.nulls(max(counts), kind) for kind in set(schema.types)}
        arrays = []
        for field in schema:
            if field.name in TEXT_COLUMNS:
                texts = [getattr(key, field.name) for key in buffers]
                words = list(dict.fromkeys(texts))
                codes = np.array([words.index(text) for text in texts], dtype=np.int32)
                arrays.append(pa.DictionaryArray.from_arrays(np.repeat(codes, counts), words))
                continue
            parts = [
                pa.array(rows.arrays[field.name][: rows.count])
                if field.name in rows.arrays
                else null_columns[field.type][: rows.count]
                for rows in buffers.values()
            ]
            arrays.append(pa.chunked_array(parts, type=field.type))
        table = pa.Table.from_arrays(arrays, schema=schema)
        self._reserve(table)
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._row_count, self._group_count = self._row_count + table.num_rows, self._group_count + 1
        for rows in buffers.values():
            rows.count = 0

    def _reserve(self, table: Any) -> None:
        """Reserve space on the disk for a row group and the footer. Raises `OSError` if the disk is full."""
        columns = table.num_columns
        footer = FOOTER_BYTES * columns * (self._group_count + 2) + len(self._metadata.format())
        size: int = self._file.tell()
        # Encoding and compression add less than a twentieth, and headers of pages.
        limit = int(1.05 * table.nbytes) + FOOTER_BYTES * columns
        try:
            self._allocate(size + limit + footer)
        except OSError:
            sink = self._pa.MockOutputStream()  # counts the bytes of the encoded row group
            with self._open_writer(sink) as writer:
                writer.write_table(table, row_group_size=table.num_rows)
            self._allocate(size + sink.size() + footer)

    def _allocate(self, size: int) -> None:
        """Reserve space for a file of `size` bytes, on systems and file systems that can."""
        with self._part.open("ab") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except AttributeError:  # macOS has no such function
                return
            except OSError as error:
                if error.errno not in NO_RESERVATION:
                    raise

    def _open_writer(self, sink: Any) -> Any:
        """Return a writer of the table to a file of Arrow."""
        return self._pa.parquet.ParquetWriter(
            sink,
            self._schema,
            compression="zstd",
            use_dictionary=list(TEXT_COLUMNS),
            column_encoding=list_column_encodings(self._columns),
            write_page_checksum=True,
        )

    def _get_schema(self) -> Any:
        """Return the schema. The first call opens the writer, and no column can be added afterwards."""
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
            self._writer = self._open_writer(self._file)
        return self._schema

    def complete(self) -> None:
        """Write the remaining rows and the footer, and give the file its name."""
        self._flush()
        self._write_footer()

    def _write_footer(self) -> None:
        """Write the footer, and give the file its name."""
        self._writer.add_key_value_metadata({"navsense": self._metadata.format()})
        self._writer.close()
        size = self._file.tell()
        self._file.close()
        os.truncate(self._part, size)  # without the rest of the reserved space
        self._work.commit(self._part)

    def keep_content(self) -> str:
        """Complete the file with the row groups that were written. Never raises."""
        self._buffers.clear()
        if not self._group_count:
            return ""
        try:
            self._write_footer()
        except Exception:  # noqa: BLE001 - a write failed although its space was reserved
            return ""
        self._work.release()
        return f"the file has the first {format_count(self._row_count, 'row')}"

    def release(self) -> None:
        """Close the file, and remove it if it is not complete. Never raises."""
        self._buffers.clear()
        with contextlib.suppress(Exception):
            if self._writer is not None:
                self._writer.close()
        with contextlib.suppress(Exception):
            self._file.close()
        self._work.release()


MAGIC = b"PAR1"
"""First and last bytes of a Parquet file."""

SeriesKey: TypeAlias = tuple[str, str]
"""Series and name of a row."""


@contextmanager
def open_table(path: Path) -> Iterator[Any]:
    """Yield a Parquet file. Any error of a damaged file becomes a `RecordingError`."""
    pa = import_pyarrow(path)
    with open_for_reading(path) as file:
        try:
            _check_complete(file, path)
            with pa.parquet.ParquetFile(file, page_checksum_verification=True) as table:
                size = 8 * table.metadata.num_rows * table.metadata.num_columns
                metadata.check_expansion(path, expansion_problem(size, path.stat().st_size))
                yield table
        except RecordingError:
            raise
        except Exception as error:
            raise metadata.make_damaged_error(path, error) from error


def _check_complete(file: BinaryIO, path: Path) -> None:
    begins = file.read(len(MAGIC)) == MAGIC
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - len(MAGIC)))
    if not begins or file.read() != MAGIC or size < 3 * len(MAGIC):
        raise RecordingError(
            "is not a Parquet file, or is damaged",
            allowed="must be a .parquet recording",
            where=Where(str(path)),
            remedy=find_unrecoverable_remedy(path),
        )
    file.seek(0)


def read_metadata(table: Any) -> dict[str, Any]:
    """Return the metadata of a table."""
    text = (table.metadata.metadata or {}).get(b"navsense")
    if text is None:
        raise DamagedError("its metadata is of another program")
    return metadata.parse_metadata(text)


def iter_spans(group: Any) -> Iterator[tuple[SeriesKey, slice]]:
    """Yield each span of rows in a row group that belong to one sensor or link."""
    if not group.num_rows:
        return
    (series, series_words), (names, words) = (_encode_texts(group.column(column)) for column in ("series", "name"))
    cuts = np.flatnonzero((np.diff(series) != 0) | (np.diff(names) != 0)) + 1
    for first, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), group.num_rows], strict=True):
        yield (series_words[series[first]], words[names[first]]), slice(first, stop)


def _encode_texts(column: Any) -> tuple[IntArray, list[str]]:
    """Return the codes and the words of a column of texts, which another program may have written without codes."""
    if column.null_count:
        raise DamagedError("damaged: a row is of no sensor or link")
    texts = column.combine_chunks().dictionary_encode()
    return texts.indices.to_numpy().astype(np.int64), texts.dictionary.to_pylist()


def count_rows(table: Any) -> tuple[dict[SeriesKey, int], FloatArray]:
    """Return the number of rows of each sensor and link, and the earliest and latest time (s), empty without rows."""
    counts: dict[SeriesKey, int] = {}
    times = np.empty(0)
    for i in range(table.num_row_groups):
        group = table.read_row_group(i, columns=["series", "name", "time"])
        for row, rows in iter_spans(group):
            counts[row] = counts.get(row, 0) + rows.stop - rows.start
        times = np.concatenate((times, group.column("time").to_numpy()))
        times = np.array((times.min(), times.max())) if times.size else times
    return counts, times


class SeriesRows:
    """The rows of one sensor or link, by columns."""

    def __init__(self, empty: Any, row: SeriesKey, columns: Iterable[str]) -> None:
        """Start from `empty`, a table without rows. Raises `DamagedError` for a column of another type."""
        self._row = row
        self._types: dict[str, np.dtype[Any]] = {}
        self._parts: dict[str, list[AnyArray]] = {}
        for name in (*NUMBER_COLUMNS, *columns):
            dtype = empty.column(name).to_numpy().dtype
            if dtype.kind not in "fiub" or dtype != NUMBER_COLUMNS.get(name, dtype):
                raise DamagedError(f"damaged: column {name} is {dtype}")
            self._types[name], self._parts[name] = dtype, []

    def add(self, group: Any, rows: slice) -> None:
        """Append rows of one row group."""
        for name, parts in self._parts.items():
            column = group.column(name)[rows]
            if column.null_count:
                raise DamagedError(f"damaged: column {name} is empty in rows of {' of '.join(self._row)}")
            # Copy the rows: a view would keep the entire column in memory.
            parts.append(np.array(column.to_numpy()))

    def pop(self, name: str, order: IntArray | slice) -> AnyArray:
        """Remove and return a column in this order."""
        parts = self._parts.pop(name)
        return (np.concatenate(parts) if parts else np.empty(0, self._types[name]))[order]


def run_order(run: IntArray, runs: Sequence[int]) -> IntArray | slice:
    """Return the order that sorts rows by run and keeps their order in each run.

    Raises `DamagedError` for a row of an unknown run, and if the runs have different numbers of rows.
    """
    numbers: IntArray = np.array(runs, dtype=np.int64)
    if numbers.size == 1 and (run == numbers[0]).all():
        return slice(None)
    sorter = np.argsort(numbers)
    place = sorter[np.searchsorted(numbers, run, sorter=sorter).clip(max=numbers.size - 1)]
    if not np.array_equal(numbers[place], run) or np.ptp(np.bincount(place, minlength=numbers.size)):
        raise DamagedError("damaged: the rows are not those of its runs")
    return np.argsort(place, kind="stable")


def _make_reading(rows: SeriesRows, name: str, sensor_metadata: Mapping[str, Any], runs: Sequence[int]) -> Reading:
    lead = tuple(sensor_metadata["runs"])
    if math.prod(lead) != len(runs):
        raise DamagedError(f"damaged: {name} has {math.prod(lead)} runs, its recording {len(runs)}")
    order = run_order(rows.pop("run", slice(None)), runs)
    times = rows.pop("time", order).reshape(len(runs), -1)
    if not np.array_equal(times, np.broadcast_to(times[0], times.shape), equal_nan=True):
        raise DamagedError(f"damaged: the times of {name} are not the same in each run")
    count = times.shape[1]

    def read_column(part: ArrayComponent) -> AnyArray:
        shape = (count,) if part.group == "ideal" and not sensor_metadata["ideal_in_runs"] else (*lead, count)
        return rows.pop(part.column, order)[: math.prod(shape)].reshape(shape)

    groups = join_components(list_sensor_components(sensor_metadata), read_column)
    common_arrays = {
        key: rows.pop(key, order).reshape(*lead, count) for key in ("clock_error", "arrival", "valid", "emitted")
    }
    return make_reading(name, sensor_metadata, times[0], common_arrays, groups)


def _make_truth(rows: SeriesRows, name: str, epoch: int) -> Truth:
    time = rows.pop("time", slice(None))
    groups = join_components(TRUTH_COMPONENTS, lambda part: rows.pop(part.column, slice(None)))
    return make_truth(name, time, groups["truth"], epoch)


def _make_current(rows: SeriesRows, current_metadata: Mapping[str, Any], runs: Sequence[int]) -> Current:
    order = run_order(rows.pop("run", slice(None)), runs)
    times = rows.pop("time", order).reshape(len(runs), -1)
    shape = (*current_metadata["runs"], times.shape[1])
    groups = join_components(
        list_current_components(current_metadata), lambda part: rows.pop(part.column, order).reshape(shape)
    )
    return make_current(current_metadata, times[0], groups["truth"])


def read(path: Path, select: LinkSelection | None = None) -> Dataset:
    """Return the recording in a Parquet file, bit for bit; with `select` the truth of these links alone.

    Raises `RecordingError`.
    """
    with open_table(path) as table:
        meta, parts = read_metadata(table), dict[SeriesKey, Sequence[ArrayComponent]]()
        links = None if select is None else select_links(meta, select)
        if links is not None:
            parts = {("truth", name): TRUTH_COMPONENTS for name in links}
            series = _read_series(table, parts, skips_others=True)
            return Dataset({}, {name: _make_truth(series["truth", name], name, meta["epoch"]) for name in links}, meta)
        sensors, runs, epoch, flow = meta["sensors"], meta["runs"], meta["epoch"], meta.get("current")
        parts = {
            ("reading", name): list_sensor_components(sensor_metadata) for name, sensor_metadata in sensors.items()
        }
        parts |= {("truth", name): TRUTH_COMPONENTS for name in meta["links"]}
        if flow:
            parts["current", flow["topic"]] = list_current_components(flow)
        series = _read_series(table, parts)
        readings = {name: _make_reading(series["reading", name], name, data, runs) for name, data in sensors.items()}
        truth = {name: _make_truth(series["truth", name], name, epoch) for name in meta["links"]}
        current = _make_current(series["current", flow["topic"]], flow, runs) if flow else None
        return Dataset(readings, truth, meta, current)


def _read_series(
    table: Any, parts: Mapping[SeriesKey, Sequence[ArrayComponent]], *, skips_others: bool = False
) -> dict[SeriesKey, SeriesRows]:
    """Return the rows of sensors and links; with `skips_others`, a row of another one is not an error."""
    empty = table.schema_arrow.empty_table()
    series = {row: SeriesRows(empty, row, (part.column for part in components)) for row, components in parts.items()}
    components = (part.column for components in parts.values() for part in components)
    columns = list(dict.fromkeys((*TEXT_COLUMNS, *NUMBER_COLUMNS, *components)))
    for i in range(table.num_row_groups):
        group = table.read_row_group(i, columns=columns)
        for row, rows in iter_spans(group):
            if row in series or not skips_others:
                series[row].add(group, rows)
    return series


def summarize(path: Path) -> RecordingSummary:
    """Return what a Parquet table holds. Only the names and the times of its rows are read."""
    with open_table(path) as table:
        meta = read_metadata(table)
        counts, span = count_rows(table)
        times = to_nanoseconds(meta["epoch"], span)
        entries = list(list_entries(meta))
    summary_entries = tuple(
        SummaryEntry(entry.label, entry.type, counts.get((entry.kind, entry.name), 0)) for entry in entries
    )
    return make_summary(path, FORMAT.name, times, summary_entries, meta)


FORMAT = Format(
    name="parquet",
    suffixes=(".parquet",),
    capabilities=LOSSLESS | {Capability.RUNS},
    read=read,
    read_truth=read,
    open_writer=lambda path, recorded_run: AtomicWriter(path, lambda: PendingParquet(path, recorded_run)),
    summarize=summarize,
    check_path=lambda path, _: import_pyarrow(path),
    recovery=Recovery(("*.parquet",), magic=MAGIC, obstacle="a .parquet cannot be read without its footer"),
)
