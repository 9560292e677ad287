"""Parquet recordings read back, a row group at a time: what they hold, and the objects that they were made from."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from navsense.errors import SinkError
from navsense.inputs import expansion_problem
from navsense.recordings import metadata
from navsense.recordings.base import open_for_reading
from navsense.recordings.mcap_recovery import NOT_RECOVERABLE
from navsense.recordings.parquet import (
    CURRENT_COMPONENTS,
    NUMBER_COLUMNS,
    TRUTH_COMPONENTS,
    ArrayComponent,
    import_pyarrow,
    layer_components,
    select_component,
    sensor_components,
)
from navsense.recordings.records import DamagedError
from navsense.series import ARRAY_GROUPS, TRUTH_ARRAYS, Current, Reading, Truth
from navsense.typing import AnyArray, FloatArray, IntArray

MAGIC = b"PAR1"
"""What a Parquet file begins and ends with."""

SeriesName: TypeAlias = tuple[str, str]
"""What a row is of: its series and name."""


@contextmanager
def open_table(path: Path) -> Iterator[Any]:
    """Yield a Parquet file; whatever a damaged one makes pyarrow raise becomes a `SinkError`."""
    pa = import_pyarrow(path)
    with open_for_reading(path) as file:
        try:
            _check_complete(file, path)
            with pa.parquet.ParquetFile(file, page_checksum_verification=True) as table:
                size = 8 * table.metadata.num_rows * table.metadata.num_columns
                metadata.check_expansion(path, expansion_problem(size, path.stat().st_size))
                yield table
        except SinkError:
            raise
        except Exception as error:
            raise metadata.damaged_error(path, error) from error


def _check_complete(file: BinaryIO, path: Path) -> None:
    """Raise where a file does not begin and end as a Parquet file does."""
    begins = file.read(len(MAGIC)) == MAGIC
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - len(MAGIC)))
    if not begins or file.read() != MAGIC or size < 3 * len(MAGIC):
        raise metadata.not_recording_error(path, "it is no Parquet file, or was cut off or damaged", NOT_RECOVERABLE)
    file.seek(0)


def read_metadata(table: Any) -> dict[str, Any]:
    """Return what a table says of itself."""
    text = (table.metadata.metadata or {}).get(b"navsense")
    if text is None:
        raise DamagedError("its metadata is of another program")
    return metadata.parse_metadata(text)


def iter_spans(group: Any) -> Iterator[tuple[SeriesName, slice]]:
    """Yield the rows of a row group that follow one another and are of one sensor or link, and which it is."""
    if not group.num_rows:
        return
    (series, series_words), (names, words) = (_encode_texts(group.column(column)) for column in ("series", "name"))
    cuts = np.flatnonzero((np.diff(series) != 0) | (np.diff(names) != 0)) + 1
    for first, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), group.num_rows], strict=True):
        yield (series_words[series[first]], words[names[first]]), slice(first, stop)


def _encode_texts(column: Any) -> tuple[IntArray, list[str]]:
    """Return a column of texts as codes and what they mean; another program may have written it as plain texts."""
    if column.null_count:
        raise DamagedError("damaged: a row is of no sensor or link")
    texts = column.combine_chunks().dictionary_encode()
    return texts.indices.to_numpy().astype(np.int64), texts.dictionary.to_pylist()


def count_rows(table: Any) -> tuple[dict[SeriesName, int], FloatArray]:
    """Return the rows of each sensor and link, and the earliest and latest time (s), empty where there is no row."""
    counts: dict[SeriesName, int] = {}
    times = np.empty(0)
    for i in range(table.num_row_groups):
        group = table.read_row_group(i, columns=["series", "name", "time"])
        for row, rows in iter_spans(group):
            counts[row] = counts.get(row, 0) + rows.stop - rows.start
        times = np.concatenate((times, group.column("time").to_numpy()))
        times = np.array((times.min(), times.max())) if times.size else times
    return counts, times


class SeriesRows:
    """The rows of one sensor or link, gathered column by column."""

    def __init__(self, empty: Any, row: SeriesName, columns: Iterable[str]) -> None:
        """Start as `empty`, the table without rows. Raise `DamagedError` where a column is not of its type."""
        self._row = row
        self._types: dict[str, np.dtype[Any]] = {}
        self._parts: dict[str, list[AnyArray]] = {}
        for name in (*NUMBER_COLUMNS, *columns):
            dtype = empty.column(name).to_numpy().dtype
            if dtype.kind not in "fiub" or dtype != NUMBER_COLUMNS.get(name, dtype):
                raise DamagedError(f"damaged: column {name} is {dtype}")
            self._types[name], self._parts[name] = dtype, []

    def add(self, group: Any, rows: slice) -> None:
        """Add rows of one row group."""
        for name, parts in self._parts.items():
            column = group.column(name)[rows]
            if column.null_count:
                raise DamagedError(f"damaged: column {name} is empty in rows of {' of '.join(self._row)}")
            # Copied: a view would keep the whole column, and most of that is null.
            parts.append(np.array(column.to_numpy()))

    def pop(self, name: str, order: IntArray | slice) -> AnyArray:
        """Return one column, once, in this order."""
        parts = self._parts.pop(name)
        return (np.concatenate(parts) if parts else np.empty(0, self._types[name]))[order]


def run_order(run: IntArray, runs: Sequence[int]) -> IntArray | slice:
    """Return the order that puts rows run after run, in each run as in the file.

    Raise `DamagedError` where a row is of no run, or the runs have not the same number of rows.
    """
    numbers: IntArray = np.array(runs, dtype=np.int64)
    if numbers.size == 1 and (run == numbers[0]).all():
        return slice(None)
    sorter = np.argsort(numbers)
    place = sorter[np.searchsorted(numbers, run, sorter=sorter).clip(max=numbers.size - 1)]
    if not np.array_equal(numbers[place], run) or np.ptp(np.bincount(place, minlength=numbers.size)):
        raise DamagedError("damaged: the rows are not those of its runs")
    return np.argsort(place, kind="stable")


def _make_reading(rows: SeriesRows, name: str, header: Mapping[str, Any], runs: Sequence[int]) -> Reading:
    """Return what was found of one sensor."""
    lead = tuple(header["runs"])
    if math.prod(lead) != len(runs):
        raise DamagedError(f"damaged: {name} has {math.prod(lead)} runs, its recording {len(runs)}")
    order = run_order(rows.pop("run", slice(None)), runs)
    times = rows.pop("time", order).reshape(len(runs), -1)
    if not np.array_equal(times, np.broadcast_to(times[0], times.shape), equal_nan=True):
        raise DamagedError(f"damaged: the times of {name} are not the same in each run")
    count, varied = times.shape[1], bool(header["ideal_in_runs"])
    arrays: dict[str, dict[str, AnyArray]] = {group: {} for group in ARRAY_GROUPS}
    for column, group, key, place in sensor_components(header):
        shape = (count,) if group == "ideal" and not varied else (*lead, count)
        values = rows.pop(column, order)[: math.prod(shape)].reshape(shape)
        if key not in arrays[group]:
            arrays[group][key] = np.empty((*shape, *header[group][key]), dtype=values.dtype)
        select_component(arrays[group][key], place)[...] = values
    own = {key: rows.pop(key, order).reshape(*lead, count) for key in ("clock_error", "arrival", "valid", "emitted")}
    return Reading(
        name=name,
        type=header["type"],
        frame=header["frame"],
        unit=header["unit"],
        time=times[0],
        clock_error=own["clock_error"],
        valid=own["valid"],
        emitted=own["emitted"],
        epoch=header["epoch"],
        arrivals=own["arrival"] if header["latency"] else None,
        arrays=arrays["arrays"],
        ideal=arrays["ideal"],
        bias=arrays["bias"],
        turn_on_bias=arrays["turn_on_bias"],
        fault=arrays["fault"],
        ideal_in_runs=varied,
    )


def _make_truth(rows: SeriesRows, name: str, epoch: int) -> Truth:
    """Return what was found of one link."""
    everything = slice(None)
    time = rows.pop("time", everything)
    arrays = {key: np.empty((time.size, 4 if key == "orientation" else 3)) for key in TRUTH_ARRAYS}
    for part in TRUTH_COMPONENTS:
        select_component(arrays[part.name], part.indices)[...] = rows.pop(part.column, everything)
    return Truth(name=name, time=time, epoch=epoch, **arrays)


def _make_current(rows: SeriesRows, header: Mapping[str, Any], runs: Sequence[int]) -> Current:
    """Return what was found of the water's velocity."""
    order = run_order(rows.pop("run", slice(None)), runs)
    times = rows.pop("time", order).reshape(len(runs), -1)
    velocity = np.empty((*header["runs"], times.shape[1], 3))
    for part in CURRENT_COMPONENTS:
        select_component(velocity, part.indices)[...] = rows.pop(part.column, order).reshape(velocity.shape[:-1])
    layers = metadata.make_layers(header)
    if layers is not None:
        layers = replace(layers, velocity=np.empty((*velocity.shape[:-1], len(layers.depths), 3)))
        for part in layer_components(header):
            select_component(layers.velocity, part.indices)[...] = rows.pop(part.column, order).reshape(
                velocity.shape[:-1]
            )
    return Current(header["topic"], tuple(header["position"]), times[0], velocity, header["epoch"], layers)


def read(path: Path) -> tuple[dict[str, Reading], dict[str, Truth], dict[str, Any], Current | None]:
    """Return the readings, the truth, the text and the current of a recording, bit for bit.

    Raise `SinkError` where it is none.
    """
    with open_table(path) as table:
        about = read_metadata(table)
        parts: dict[SeriesName, Iterable[ArrayComponent]]
        parts = {("reading", name): sensor_components(head) for name, head in about["sensors"].items()}
        parts |= {("truth", name): TRUTH_COMPONENTS for name in about["links"]}
        flow = about.get("current")
        if flow:
            parts["current", flow["topic"]] = (*CURRENT_COMPONENTS, *layer_components(flow))
        empty = table.schema_arrow.empty_table()
        found = {row: SeriesRows(empty, row, (part.column for part in components)) for row, components in parts.items()}
        for i in range(table.num_row_groups):
            group = table.read_row_group(i)
            for row, rows in iter_spans(group):
                found[row].add(group, rows)
        sensors, runs, epoch = about["sensors"], about["runs"], about["epoch"]
        readings = {name: _make_reading(found["reading", name], name, head, runs) for name, head in sensors.items()}
        truth = {name: _make_truth(found["truth", name], name, epoch) for name in about["links"]}
        return readings, truth, about, _make_current(found["current", flow["topic"]], flow, runs) if flow else None
