"""Parquet tables are read by pyarrow and by DuckDB, and back into the same objects."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import gc
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense import recordings
from navsense.clock import Latency
from navsense.core.errors import DamagedError, NavsenseError, RecordingError
from navsense.core.readings import ARRAY_GROUPS, TRUTH_ARRAYS, Reading, TimeSlice
from navsense.faults.injection import Faults
from navsense.noise.specification import Noise
from navsense.recordings import parquet
from navsense.recordings.mcap.recovery import recover_mcap
from navsense.recordings.parquet import run_order
from navsense.recordings.summary import read_summary
from navsense.runner.run import Run
from navsense.sensors import Altimeter, Imu, Magnetometer, NavSat
from navsense.testing import example_world
from navsense.world import World

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FIXED = ("series", "name", "type", "run", "time", "stamp", "clock_error", "arrival", "valid", "emitted")
AXES: dict[tuple[int, ...], list[tuple[str, Any]]] = {
    (): [("", ())],
    (3,): [(".x", 0), (".y", 1), (".z", 2)],
    (4,): [(".w", 0), (".x", 1), (".y", 2), (".z", 3)],
}


def write(builders: ModuleType, path: Path, runs: tuple[int, ...] = (), seconds: int = 3) -> list[TimeSlice]:
    slices = [builders.make_time_slice(second, 100, runs=runs) for second in range(seconds)]
    numbers = range(10, 10 + int(np.prod(runs)))
    with recordings.open_writer(
        path, recordings.RecordedRun(builders.make_world(), 100, 7, float(seconds), numbers)
    ) as writer:
        for time_slice in slices:
            writer.write(time_slice)
    return slices


def list_components(prefix: str, arrays: Mapping[str, Any], lead: int) -> Iterator[tuple[str, Any]]:
    """Yield column and numbers (*runs, time) of each component of arrays with `lead` axes before those of a row."""
    for name, array in arrays.items():
        for axis, place in AXES[array.shape[lead:]]:
            yield f"{prefix}{name}{axis}", array[..., place] if place != () else array


def make_expected_rows(readings: list[Reading], number: int, run: int) -> dict[str, Any]:
    """Return the expected rows of one sensor in the run `number`, the one at `run`; other columns are null."""
    lead = readings[0].clock_error.ndim
    pick: Callable[[Any], Any] = (lambda array: array[run]) if lead == 2 else (lambda array: array)
    found: dict[str, list[Any]] = {}
    for reading in readings:
        count = reading.time.size
        part: dict[str, Any] = {
            "series": ["reading"] * count,
            "name": [reading.name] * count,
            "type": [reading.type] * count,
        }
        part |= {"run": np.full(count, number), "time": reading.time, "stamp": pick(reading.stamp)}
        part |= {key: pick(getattr(reading, key)) for key in ("clock_error", "arrival", "valid", "emitted")}
        part |= {column: pick(values) for column, values in list_components("", reading.arrays, lead)}
        part |= dict(list_components("ideal.", reading.ideal, 1))
        for group in ("bias", "turn_on_bias", "fault"):
            part |= {
                column: pick(values) for column, values in list_components(f"{group}.", getattr(reading, group), lead)
            }
        for column, values in part.items():
            found.setdefault(column, []).append(values)
    return {column: np.concatenate(parts) for column, parts in found.items()}


def make_expected_truth(name: str, truths: list[Any], number: int) -> dict[str, Any]:
    """Return the expected rows of a link's truth."""
    count = sum(truth.time.size for truth in truths)
    complete = {key: np.concatenate([getattr(truth, key) for truth in truths]) for key in ("time", *TRUTH_ARRAYS)}
    time = complete.pop("time")
    rows: dict[str, Any] = {"series": ["truth"] * count, "name": [name] * count, "type": ["link"] * count}
    rows |= {"run": np.full(count, number), "time": time, "arrival": time, "clock_error": np.zeros(count)}
    rows |= {"stamp": np.concatenate([truth.stamp for truth in truths])}
    rows |= {"valid": np.ones(count, dtype=np.bool_), "emitted": np.ones(count, dtype=np.bool_)}
    return rows | dict(list_components("", complete, 1))


def assert_rows(table: Any, expected: Mapping[str, Any]) -> None:
    """Assert that rows of a table equal the expected ones bitwise, and are null in all other columns."""
    for name in table.column_names:
        column = table.column(name)
        if name not in expected:
            assert column.null_count == table.num_rows, name
            continue
        assert column.null_count == 0, name
        if isinstance(expected[name][0], str):
            assert column.to_pylist() == list(expected[name])
            continue
        got, wanted = column.to_numpy(), np.ascontiguousarray(expected[name])
        assert (got.dtype, got.tobytes()) == (wanted.dtype, wanted.tobytes()), name
    assert set(expected) <= set(table.column_names)


def select_rows(table: Any, series: str, name: str, run: int | None = None) -> Any:
    """Return the rows of one sensor or link with pyarrow."""
    import pyarrow.compute as pc

    mask = pc.and_(pc.equal(table["series"], series), pc.equal(table["name"], name))
    return table.filter(mask if run is None else pc.and_(mask, pc.equal(table["run"], run)))


@pytest.mark.requirement("REC-1:parquet", "TRU-1", "CLK-5")
@pytest.mark.parametrize("runs", [(), (1,), (4,)])
def test_pyarrow_reads_every_row_bit_for_bit(builders: ModuleType, tmp_path: Path, runs: tuple[int, ...]) -> None:
    path, total = tmp_path / "run.parquet", int(np.prod(runs))
    slices = write(builders, path, runs)
    table = pq.read_table(path)
    assert tuple(table.column_names[: len(FIXED)]) == FIXED
    for name in (builders.IMU, builders.MAG):
        for run in range(total):
            expected = make_expected_rows([time_slice.readings[name] for time_slice in slices], 10 + run, run)
            assert_rows(select_rows(table, "reading", name, 10 + run), expected)
    for name in builders.LINKS:
        assert_rows(
            select_rows(table, "truth", name),
            make_expected_truth(name, [time_slice.truth[name] for time_slice in slices], 10),
        )
    assert table.num_rows == total * 330 + 300
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.parquet"]


@pytest.mark.requirement("REC-1:parquet")
def test_schema_uses_standard_types(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    write(builders, path)
    file = pq.ParquetFile(path)
    schema, text = file.schema_arrow, pa.dictionary(pa.int32(), pa.string())
    types = [text, text, text, pa.int64(), pa.float64(), pa.int64(), pa.float64(), pa.float64(), pa.bool_(), pa.bool_()]
    assert [schema.field(name).type for name in FIXED] == types
    assert not any(schema.field(name).nullable for name in FIXED)
    others = schema.names[len(FIXED) :]
    assert all(schema.field(name).type == pa.float64() for name in others)
    ranks = [{"ideal": 1, "bias": 2}.get(name.split(".")[0], 0) for name in others]
    assert ranks == sorted(ranks)
    assert {"field.x", "ideal.field.z", "bias.angular_velocity.y", "orientation.w", "position.x"} <= set(others)
    group = file.metadata.row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {"ZSTD"}


@pytest.mark.requirement("REC-1:parquet")
def test_metadata_equals_that_of_an_archive(builders: ModuleType, tmp_path: Path) -> None:
    for suffix in ("parquet", "npz"):
        write(builders, tmp_path / f"run.{suffix}", (2,))
    meta = json.loads(pq.read_metadata(tmp_path / "run.parquet").metadata[b"navsense"])
    with np.load(tmp_path / "run.npz") as archive:
        assert meta == json.loads(str(archive["meta"]))
    assert (meta["world"], meta["seed"], meta["epoch"], meta["runs"]) == ("sea", 7, 100, [10, 11])
    assert meta["sensors"][builders.MAG]["unit"] == {"field": "T"}
    assert meta["sensors"][builders.MAG]["frame"] == "mag_frame"
    assert meta["sensors"][builders.IMU]["quaternions"] == ["orientation"]


def assert_same(got: Reading, expected: Reading) -> None:
    heads = [(r.name, r.type, r.frame, dict(r.unit), r.epoch, r.arrival_after_latency is None) for r in (got, expected)]
    assert heads[0] == heads[1]
    for key in ("time", "clock_error", "valid", "emitted", "arrival", "stamp", "true_stamp"):
        old, new = getattr(expected, key), getattr(got, key)
        assert (new.shape, new.dtype, new.tobytes()) == (old.shape, old.dtype, old.tobytes()), key
    for series in ARRAY_GROUPS:
        old, new = getattr(expected, series), getattr(got, series)
        assert list(old) == list(new)
        for key in old:
            assert (new[key].shape, new[key].dtype) == (old[key].shape, old[key].dtype)
            assert new[key].tobytes() == old[key].tobytes(), (series, key)


@pytest.mark.requirement("REC-1:parquet", "BAT-1")
@pytest.mark.parametrize("runs", [(), (3,), (2, 3)])
@pytest.mark.parametrize("rows", [100, 10**9])
def test_load_returns_the_same_readings_and_truth(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: tuple[int, ...], rows: int
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", rows)
    path = tmp_path / "run.parquet"
    (time_slice,) = write(builders, path, runs, seconds=1)
    loaded = ns.open(path)
    assert list(loaded) == list(time_slice.readings)
    for name, reading in time_slice.readings.items():
        assert_same(loaded[name], reading)
    assert list(loaded.truth) == list(time_slice.truth)
    for name, truth in time_slice.truth.items():
        assert (loaded.truth[name].name, loaded.truth[name].epoch) == (name, 100)
        for key in ("time", "stamp", *TRUTH_ARRAYS):
            assert getattr(loaded.truth[name], key).tobytes() == getattr(truth, key).tobytes()


def make_faulty_world() -> World:
    """Return vector and scalar sensors with dropouts, stuck values and latency."""
    world = example_world(
        ("imu", Imu.example_spec()),
        ("mag", Magnetometer(Noise(1.0))),
        ("alt", Altimeter.example_spec()),
        ("gps", NavSat.example_spec()),
    )
    imu, mag, alt, gps = world.sensors
    imu = dataclasses.replace(imu, latency=Latency(0.003, 0.002, 0.004), faults=Faults(0.0, 0.0, 2.0, 0.1))
    mag = dataclasses.replace(mag, rate=70.0, faults=Faults(3.0, 0.1))
    gps = dataclasses.replace(gps, rate=5.0, latency=Latency(0.05), faults=Faults(1.0, 0.3, 1.0, 0.3))
    return dataclasses.replace(world, sensors=(imu, mag, alt, gps))


@pytest.fixture(scope="module", params=[None, 3])
def rough(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    run = ns.simulate(make_faulty_world(), 4.0, seed=11, runs=request.param, epoch=1000)
    path = tmp_path_factory.mktemp("rough") / "run.parquet"
    run.save(path)
    return run, path


@pytest.mark.requirement("REC-1:parquet", "TRU-1", "BAT-1", "CLK-5")
def test_latency_and_dropouts_round_trip(rough: tuple[Run, Path]) -> None:
    run, path = rough
    mag = run["robot::arm::mag"]
    assert not mag.emitted.all()
    assert np.isnan(mag["field"]).any()
    assert np.ptp(run["robot::arm::imu"].arrival - run["robot::arm::imu"].time) > 0.0
    table, loaded = pq.read_table(path), ns.open(path)
    for name, reading in run.items():
        for i, number in enumerate(run.session.runs):
            assert_rows(select_rows(table, "reading", name, number), make_expected_rows([reading], number, i))
        assert_same(loaded[name], reading)
    for name, truth in run.truth.items():
        assert_rows(select_rows(table, "truth", name), make_expected_truth(name, [truth], 0))


@pytest.mark.requirement("REC-1:parquet")
def test_duckdb_reads_the_same_numbers(rough: tuple[Run, Path]) -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    run, path = rough
    total = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE series = 'reading'").fetchall()[0][0]  # noqa: S608 - a file
    assert total == sum(reading.clock_error.size for reading in run.values())
    for name, reading in run.items():
        for i, number in enumerate(run.session.runs):
            query = f"SELECT * FROM '{path}' WHERE name = '{name}' AND run = {number} ORDER BY time"  # noqa: S608 - the same
            got = duckdb.sql(query).fetchnumpy()
            for column, values in make_expected_rows([reading], number, i).items():
                if column in ("series", "name", "type"):
                    assert set(got[column]) == {values[0]}
                else:
                    assert np.ma.getdata(got[column]).tobytes() == np.ascontiguousarray(values).tobytes(), column
    ((nulls, numbers),) = duckdb.sql(
        f"""SELECT count(*) FILTER ("field.x" IS NULL), count(*) FILTER (isnan("field.x")) FROM '{path}'"""  # noqa: S608 - the same
    ).fetchall()
    field = run["robot::arm::mag"]["field"][..., 0]
    assert (nulls, numbers) == (pq.read_metadata(path).num_rows - field.size, np.isnan(field).sum())


@pytest.mark.requirement("REC-1:parquet")
def test_saved_and_streamed_runs_are_equal(tmp_path: Path) -> None:
    run = ns.simulate(make_faulty_world(), 3.0, seed=4)
    for name in ("a", "b"):
        run.save(tmp_path / f"{name}.parquet")
    ns.record(make_faulty_world(), [tmp_path / "streamed.parquet", tmp_path / "streamed.mcap"], 3.0, seed=4)
    first = (tmp_path / "a.parquet").read_bytes()
    assert first == (tmp_path / "b.parquet").read_bytes() == (tmp_path / "streamed.parquet").read_bytes()


def test_truth_can_be_excluded(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    with recordings.open_writer(
        path, recordings.RecordedRun(builders.make_world(), duration=1.0, has_simulated_series=False)
    ) as writer:
        writer.write(builders.make_time_slice(0))
    table, loaded = pq.read_table(path), ns.open(path)
    assert set(table["series"].to_pylist()) == {"reading"}
    assert not [name for name in table.column_names if name.startswith(("ideal.", "bias."))]
    assert not loaded.truth
    assert not loaded[builders.IMU].ideal
    assert not loaded[builders.IMU].bias
    assert (
        loaded[builders.IMU]["orientation"].tobytes()
        == builders.make_time_slice(0).readings[builders.IMU]["orientation"].tobytes()
    )


def test_arrays_of_other_shapes_have_numbered_columns(builders: ModuleType, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(3), tmp_path / "run.parquet"
    arrays: dict[str, Any] = {
        "beam_range": rng.random((10, 4)),
        "velocity_covariance": rng.random((10, 3, 3)),
        "temperature": rng.random((10, 1)),
        "depth": rng.random(10).astype(np.float32),
        "num_good_beams": rng.integers(0, 5, 10),
        "mode": rng.integers(0, 200, (10, 2)).astype(np.uint8),
        "beam_valid": rng.random((10, 4)) < 0.5,
    }
    time_slice = builders.make_time_slice(0)
    time_slice.readings[builders.MAG] = dataclasses.replace(time_slice.readings[builders.MAG], arrays=arrays)
    with recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=1.0)) as writer:
        writer.write(time_slice)
    rows = select_rows(pq.read_table(path), "reading", builders.MAG)
    places: tuple[tuple[str, str, Any], ...] = (
        ("beam_range", "beam_range.3", 3),
        ("velocity_covariance", "velocity_covariance.1.2", (1, 2)),
        ("temperature", "temperature.0", 0),
        ("depth", "depth", ()),
        ("num_good_beams", "num_good_beams", ()),
        ("mode", "mode.1", 1),
        ("beam_valid", "beam_valid.0", 0),
    )
    for name, column, place in places:
        index = (slice(None), *(place if isinstance(place, tuple) else (place,)))
        got, expected = rows[column].to_numpy(), np.ascontiguousarray(arrays[name][index])
        assert (got.dtype, got.tobytes()) == (expected.dtype, expected.tobytes())
    assert_same(ns.open(path)[builders.MAG], time_slice.readings[builders.MAG])


def list_group_sizes(path: Path) -> list[int]:
    metadata = pq.read_metadata(path)
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


@pytest.mark.requirement("REC-1:parquet")
def test_small_slices_are_merged_and_large_ones_split(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 500)
    path = tmp_path / "run.parquet"
    recording = recordings.RecordedRun(builders.make_world(), duration=12.0)
    complete = builders.make_time_slice(0)
    with recordings.open_writer(path, recording) as writer:
        for i in range(100):
            parts = {name: reading.select_rows(i, i + 1) for name, reading in complete.readings.items()}
            writer.write(TimeSlice(i / 100.0, (i + 1) / 100.0, parts, {}))
    assert list_group_sizes(path) == [110]
    assert_same(ns.open(path)[builders.IMU], complete.readings[builders.IMU])
    with recordings.open_writer(path, recording) as writer:
        for second in range(12):
            writer.write(builders.make_time_slice(second))
    sizes = list_group_sizes(path)
    assert sum(sizes) == 12 * 210
    assert all(500 <= size < 1000 for size in sizes[:-1])
    for runs, name in (((40,), builders.IMU), ((), builders.IMU), ((7,), builders.MAG)):
        count = 30 if runs else 3000
        reading = builders.make_reading(name, 0, count, runs=runs)
        numbers = range(int(np.prod(runs)))
        with recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), runs=numbers)) as writer:
            writer.write(TimeSlice(0.0, 1e3, {name: reading}))
        assert max(list_group_sizes(path)) < 1000
        assert_same(ns.open(path)[name], reading)


@pytest.mark.requirement("REC-1:parquet")
def test_memory_does_not_grow_with_the_recording(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 2000)
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()

    def measure_peak(seconds: int) -> int:
        gc.collect()
        tracemalloc.start()
        with recordings.open_writer(
            tmp_path / "run.parquet", recordings.RecordedRun(builders.make_world(), duration=float(seconds))
        ) as writer:
            for second in range(seconds):
                writer.write(builders.make_time_slice(second))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    pa.set_memory_pool(pool)
    try:
        measure_peak(2)
        small = measure_peak(40)
        arrow = pool.max_memory()
        large = measure_peak(160)
    finally:
        pa.set_memory_pool(before)
    # 120 time slices more are about 25 000 rows of 60 columns, 12 MB. Only entries of the footer stay in memory.
    assert large - small < 300_000
    assert pool.max_memory() - arrow < 1_500_000


@pytest.mark.requirement("REC-1:parquet")
def test_error_in_another_output_keeps_earlier_slices(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    path.write_text("the old one")
    recording = recordings.RecordedRun(builders.make_world(), duration=3.0)
    with pytest.raises(RuntimeError, match="elsewhere"), recordings.open_writer(path, recording):
        raise RuntimeError("elsewhere")
    assert path.read_text() == "the old one"  # nothing was written
    with pytest.raises(RuntimeError, match="elsewhere"), recordings.open_writer(path, recording) as writer:  # noqa: PT012 - it is raised around the writer
        writer.write(builders.make_time_slice(0))
        writer.write(builders.make_time_slice(1))
        raise RuntimeError("elsewhere")
    assert_same(ns.open(path)[builders.MAG].select_rows(0, 10), builders.make_time_slice(0).readings[builders.MAG])
    assert ns.open(path)[builders.IMU].time.size == 200
    assert ns.open(path).metadata["duration_asked"] == 3.0
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.parquet"]


def raise_bad_descriptor(*_: object) -> None:
    """Behave as `posix_fallocate` of the GNU C library on a file system that cannot reserve space, such as NFS 3."""
    raise OSError(errno.EBADF, os.strerror(errno.EBADF))


@pytest.mark.parametrize("allocate", [None, raise_bad_descriptor])
def test_system_that_cannot_reserve_space_records(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allocate: Callable[..., None] | None
) -> None:
    """None: the function does not exist, as on macOS."""
    if allocate is None:
        monkeypatch.delattr(os, "posix_fallocate")
    else:
        monkeypatch.setattr(os, "posix_fallocate", allocate)
    path = tmp_path / "run.parquet"
    with recordings.open_writer(path, recordings.RecordedRun(builders.make_world())) as writer:
        writer.write(builders.make_time_slice(0))
    assert ns.open(path)[builders.IMU].time.size == builders.make_time_slice(0).readings[builders.IMU].time.size


def test_error_on_close_does_not_hide_the_first_error(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_with_full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "run.parquet"
    with (  # noqa: PT012 - it is raised around the writer
        pytest.raises(RuntimeError, match="elsewhere"),
        recordings.open_writer(path, recordings.RecordedRun(builders.make_world())) as writer,
    ):
        writer.write(builders.make_time_slice(0))
        monkeypatch.setattr(parquet.PendingParquet, "_flush", fail_with_full_disk)
        raise RuntimeError("elsewhere")
    assert not list(tmp_path.iterdir())
    gc.collect()


@pytest.mark.requirement("REC-1:parquet")
@pytest.mark.parametrize("rows", [50, 10**6])
def test_interrupt_within_a_slice_leaves_complete_slices(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, rows: int
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", rows)
    take, calls = parquet.PendingParquet._append_reading, []

    def write_and_interrupt(table: parquet.PendingParquet, name: str, reading: Reading) -> None:
        calls.append(name)
        if len(calls) == 6:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        take(table, name, reading)

    monkeypatch.setattr(parquet.PendingParquet, "_append_reading", write_and_interrupt)
    path = tmp_path / "run.parquet"
    writer, slices = recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=9.0)), []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with pytest.raises(KeyboardInterrupt), writer:  # noqa: PT012 - which write is interrupted is open
        for second in range(9):
            slices.append(builders.make_time_slice(second))
            writer.write(slices[-1])
    found = ns.open(path)
    seconds, rest = divmod(found[builders.IMU].time.size, 100)
    assert (rest, found[builders.MAG].time.size, found.truth["rov::base"].time.size) == (0, 10 * seconds, 50 * seconds)
    assert seconds in (2, 3)
    assert_same(found[builders.MAG].select_rows(10, 20), slices[1].readings[builders.MAG])
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.parquet"]


def test_write_error_after_an_interrupt_is_raised_on_close(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the caller would assume a complete file."""

    def fail_with_full_disk(*_: object) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet.PendingParquet, "_flush", fail_with_full_disk)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 10)
    writer = recordings.open_writer(tmp_path / "run.parquet", recordings.RecordedRun(builders.make_world()))
    with contextlib.suppress(KeyboardInterrupt, RecordingError):
        writer.write(builders.make_time_slice(0))
    with pytest.raises(RecordingError, match="already failed"):
        writer.close()
    assert not list(tmp_path.iterdir())


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
import builders
from navsense import recordings
from navsense.recordings import parquet
parquet.GROUP_ROWS = 400
writer = recordings.open_writer(Path({path!r}), recordings.RecordedRun(builders.make_world(), duration=1e6))
for second in range(10**6):
    writer.write(builders.make_time_slice(second))
    print(second, flush=True)
"""


@pytest.mark.requirement("REC-1:parquet")
def test_killed_writer_leaves_no_file_with_the_name(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    path.write_text("the old one")
    program = CHILD.format(here=str(Path(__file__).parent), path=str(path))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) >= 5:
                break
        child.send_signal(signal.SIGKILL)
    assert path.read_text() == "the old one"
    (left,) = [entry for entry in tmp_path.iterdir() if entry != path]
    assert left.name == ".run.parquet.part"
    assert (left / "run.parquet").stat().st_size > 1000
    (left / "run.parquet").rename(tmp_path / "left.parquet")
    for look in (ns.open, read_summary):
        with pytest.raises(RecordingError, match=r"left\.parquet.*copy it again: .* file cannot be recovered"):
            look(tmp_path / "left.parquet")


@pytest.mark.requirement("REC-1:parquet")
def test_full_disk_is_an_error(builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.parquet"
    monkeypatch.setattr(parquet, "GROUP_ROWS", 10**6)
    write(builders, path, seconds=30)
    complete = path.stat().st_size
    path.unlink()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for rows, limit in ((400, 2000), (10**6, 2000), (10**6, 0), (10**6, complete - 50)):
        monkeypatch.setattr(parquet, "GROUP_ROWS", rows)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
            with (  # noqa: PT012 - which write fails is open
                pytest.raises(
                    RecordingError, match=r"/run\.parquet: cannot be written: file too large; raise the limit"
                ),
                recordings.open_writer(
                    path, recordings.RecordedRun(builders.make_world(), 100, 7, 30.0, (10,))
                ) as writer,
            ):
                for second in range(30):
                    writer.write(builders.make_time_slice(second, 100))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert not list(tmp_path.iterdir())
        with pytest.raises(RecordingError, match="already failed"):
            writer.write(builders.make_time_slice(0))
        writer.abort()
        writer.close()
    gc.collect()


@pytest.mark.requirement("REC-1:parquet")
def test_full_disk_keeps_the_row_groups_before(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The space of the footer is reserved. The reserved space of a complete file is given back."""
    monkeypatch.setattr(parquet, "GROUP_ROWS", 400)
    write(builders, tmp_path / "all.parquet", seconds=30)
    path, known = tmp_path / "run.parquet", ns.open(tmp_path / "all.parquet")
    size = (tmp_path / "all.parquet").stat().st_size
    assert (tmp_path / "all.parquet").read_bytes()[-4:] == b"PAR1"
    limits, counts = resource.getrlimit(resource.RLIMIT_FSIZE), []
    for limit in (size // 3, size // 2, size - 50):
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
            with pytest.raises(RecordingError, match=r"too large; .*; the file has the first \d+ rows$"):
                write(builders, path, seconds=30)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.stat().st_size <= limit
        assert [file.name for file in sorted(tmp_path.iterdir())] == ["all.parquet", "run.parquet"]
        found = ns.open(path)
        counts.append(sum(reading.time.size for reading in found.values()))
        for name, reading in found.items():
            np.testing.assert_array_equal(reading.stamp, known[name].stamp[: reading.time.size])
    assert 0 < counts[0] < counts[1] < counts[2]
    assert counts[2] > 0.7 * sum(reading.time.size for reading in known.values())


def test_unwritable_paths_are_errors(builders: ModuleType, tmp_path: Path) -> None:
    recording = recordings.RecordedRun(builders.make_world())
    (tmp_path / "dir.parquet").mkdir()
    os.mkfifo(tmp_path / "pipe.parquet")
    for name, why in (
        ("dir.parquet", r"is a directory.*name a file"),
        ("none/run.parquet", r"does not exist.*create it"),
        ("x" * 300 + ".parquet", "name"),
        ("x" * 250 + ".parquet", "choose a shorter name|too long"),
        ("pipe.parquet", "is a pipe"),
    ):
        with pytest.raises(RecordingError, match=why):
            recordings.open_writer(tmp_path / name, recording)
    with pytest.raises(RecordingError, match="is a device, a pipe"):
        ns.open(tmp_path / "pipe.parquet")
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(RecordingError, match="permission"):
            recordings.open_writer(tmp_path / "locked" / "run.parquet", recording)


def test_recording_has_default_file_permissions(builders: ModuleType, tmp_path: Path) -> None:
    write(builders, tmp_path / "run.parquet", seconds=1)
    (tmp_path / "plain").touch()
    assert (tmp_path / "run.parquet").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_unfinished_recording_can_be_discarded(builders: ModuleType, tmp_path: Path) -> None:
    writer = recordings.open_writer(tmp_path / "run.parquet", recordings.RecordedRun(builders.make_world()))
    writer.write(builders.make_time_slice(0))
    writer.abort()
    writer.abort()
    with pytest.raises(RecordingError, match="closed"):
        writer.write(builders.make_time_slice(1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["time", "stamp", "name", "run", "truth", "ideal", "bias", "ideal.field", "field.x"])
def test_arrays_with_changed_columns_are_an_error(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "run.parquet"
    time_slice = builders.make_time_slice(0)
    time_slice.readings[builders.MAG].arrays[name] = np.zeros(10)
    writer = recordings.open_writer(path, recordings.RecordedRun(builders.make_world()))
    with pytest.raises(
        RecordingError, match=rf"run\.parquet: sensor '{builders.MAG}' has an array.*: {name};.*rename the array"
    ):
        writer.write(time_slice)
    assert not list(tmp_path.iterdir())
    outputs = (dataclasses.replace(Magnetometer().outputs[0], name=name),)
    time_slice = builders.make_time_slice(0)
    time_slice.readings[builders.MAG].bias[name] = np.zeros(10)
    with pytest.raises(RecordingError, match=rf"sensor '{builders.MAG}' has an array.*: {name};"):
        recordings.open_writer(path, recordings.RecordedRun(builders.make_world())).write(time_slice)
    monkeypatch.setattr(Magnetometer, "outputs", outputs)
    with pytest.raises(RecordingError, match=rf"sensor '{builders.MAG}' has an array.*: {name};"):
        recordings.open_writer(path, recordings.RecordedRun(builders.make_world()))
    assert not list(tmp_path.iterdir())


def replace_reading(time_slice: TimeSlice, name: str, **change: Any) -> TimeSlice:
    return dataclasses.replace(
        time_slice, readings={**time_slice.readings, name: dataclasses.replace(time_slice.readings[name], **change)}
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda r: {"arrays": {"field": np.zeros((10, 2))}}, "changed its arrays"),
        (lambda r: {"arrays": {"field": np.zeros((10, 3), dtype=np.float32)}}, "changed its arrays, their types"),
        (lambda r: {"arrays": {"other": np.zeros((10, 3))}}, "changed its arrays"),
        (lambda r: {"arrays": {"field": np.zeros((9, 3))}}, r"field of .* does not fit its times: \(9, 3\)"),
        (lambda r: {"ideal": {"field": np.zeros((11, 3))}}, "field of .* does not fit its times"),
        (lambda r: {"valid": np.ones(4, dtype=np.bool_)}, "valid of .* does not fit its times"),
        (lambda r: {"clock_error": np.zeros((1, 10))}, "does not fit its times"),
    ],
)
def test_changed_sensor_is_an_error(
    builders: ModuleType, tmp_path: Path, change: Callable[[Reading], dict[str, Any]], why: str
) -> None:
    writer = recordings.open_writer(tmp_path / "run.parquet", recordings.RecordedRun(builders.make_world()))
    writer.write(builders.make_time_slice(0))
    time_slice = builders.make_time_slice(1)
    with pytest.raises(RecordingError, match=why):
        writer.write(replace_reading(time_slice, builders.MAG, **change(time_slice.readings[builders.MAG])))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.zeros((10, 3), dtype=np.int64), "rov::base::mag' has int64, sensor 'rov::base::imu' has float64"),
        (np.full((10, 3), "text"), "of a type that no column has"),
        (np.zeros((10, 3), dtype=np.complex128), "of a type that no column has"),
        (np.zeros((10, 3), dtype=">f8"), "has >f8, sensor 'rov::base::imu' has float64"),
    ],
)
def test_unsupported_column_types_are_an_error(
    builders: ModuleType, tmp_path: Path, array: np.ndarray, why: str
) -> None:
    name = "angular_velocity" if array.dtype.kind in "if" else "other"
    time_slice = replace_reading(builders.make_time_slice(0), builders.MAG, arrays={name: array})
    writer = recordings.open_writer(tmp_path / "run.parquet", recordings.RecordedRun(builders.make_world()))
    with pytest.raises(RecordingError, match=why):
        writer.write(time_slice)
    assert not list(tmp_path.iterdir())


def test_array_added_after_the_schema_is_an_error(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 50)
    first = dataclasses.replace(
        builders.make_time_slice(0), readings={builders.IMU: builders.make_time_slice(0).readings[builders.IMU]}
    )
    writer = recordings.open_writer(tmp_path / "run.parquet", recordings.RecordedRun(builders.make_world()))
    writer.write(first)
    with pytest.raises(RecordingError, match=rf"{builders.MAG}' has an array that was not there at first: field\.x"):
        writer.write(builders.make_time_slice(1))
    monkeypatch.setattr(parquet, "GROUP_ROWS", 5000)
    with recordings.open_writer(tmp_path / "run.parquet", recordings.RecordedRun(builders.make_world())) as writer:
        writer.write(first)
        writer.write(builders.make_time_slice(1))
    assert ns.open(tmp_path / "run.parquet")[builders.MAG].time.size == 10


def test_runs_outside_the_recording_are_an_error(builders: ModuleType, tmp_path: Path) -> None:
    writer = recordings.open_writer(
        tmp_path / "run.parquet", recordings.RecordedRun(builders.make_world(), runs=range(3))
    )
    with pytest.raises(RecordingError, match=r"runs of the readings of .*\(2,\); must have the recording's 3"):
        writer.write(builders.make_time_slice(0, runs=(2,)))


def test_stamp_beyond_64_bits_is_an_error(builders: ModuleType, tmp_path: Path) -> None:
    time_slice = builders.make_time_slice(0)
    time_slice.readings[builders.IMU].clock_error[3] = 1e10
    writer = recordings.open_writer(tmp_path / "run.parquet", recordings.RecordedRun(builders.make_world()))
    with pytest.raises(NavsenseError, match="time of a stamp"):
        writer.write(time_slice)
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("REC-1:parquet")
def test_missing_pyarrow_error_names_the_package(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.parquet"
    write(builders, path, seconds=1)
    before = path.read_bytes()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    works: list[Callable[[], object]] = [
        lambda: recordings.find_output_format(path),
        lambda: recordings.open_writer(path, recordings.RecordedRun(builders.make_world())),
        lambda: ns.open(path),
        lambda: read_summary(path),
        lambda: ns.record(example_world(), [tmp_path / "other.mcap", path], 1.0),
    ]
    for work in works:
        remedy = r"pip install 'navsense\[parquet\]'"
        with pytest.raises(RecordingError, match=rf"run\.parquet: a Parquet file needs pyarrow.*{remedy}"):
            work()
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("run.parquet", before)]


def test_other_features_work_without_pyarrow() -> None:
    modules = "navsense, navsense.recordings, navsense.recordings.summary"
    program = f"import sys, {modules}; sys.exit('pyarrow' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 0


@pytest.mark.requirement("REC-1:parquet")
def test_info_of_a_table(builders: ModuleType, tmp_path: Path) -> None:
    for suffix in ("parquet", "npz"):
        write(builders, tmp_path / f"run.{suffix}")
    found, archive = read_summary(tmp_path / "run.parquet"), read_summary(tmp_path / "run.npz")
    assert {entry.name: (entry.type, entry.count) for entry in found.entries} == {
        builders.IMU: ("imu", 300),
        builders.MAG: ("magnetometer", 30),
        "truth/rov::base": ("truth", 150),
        "truth/rov::arm::tip": ("truth", 150),
    }
    assert (found.start, found.end) == (100_000_000_000, 102_990_000_000)
    assert (found.entries, found.metadata) == (archive.entries, archive.metadata)
    counts = [summary.headline.partition(" kB, ")[2] for summary in (found, archive)]
    assert counts[0] == counts[1] != ""
    assert found.size == (tmp_path / "run.parquet").stat().st_size


def test_empty_recording_is_complete(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=float("inf"))).close()
    assert tuple(pq.read_table(path).column_names) == FIXED
    found = read_summary(path)
    assert (found.entries, found.start, found.end) == ((), None, None)
    assert "duration_asked" not in found.metadata
    assert not ns.open(path)
    nothing = {builders.MAG: builders.make_time_slice(0).readings[builders.MAG].select_rows(0, 0)}
    with recordings.open_writer(path, recordings.RecordedRun(builders.make_world())) as writer:
        writer.write(TimeSlice(0.0, 1.0, nothing, {}))
    assert_same(ns.open(path)[builders.MAG], nothing[builders.MAG])
    assert [entry.count for entry in read_summary(path).entries] == [0]


def test_invalid_recording_is_an_error(builders: ModuleType, tmp_path: Path) -> None:
    path, bad = tmp_path / "run.parquet", tmp_path / "bad.parquet"
    write(builders, path)
    raw = path.read_bytes()
    for place in range(0, len(raw), max(1, len(raw) // 60)):
        bad.write_bytes(raw[:place])
        for look in (ns.open, read_summary):
            with pytest.raises(RecordingError, match=r"bad\.parquet.*copy it again: .* file cannot be recovered"):
                look(bad)
    pq.write_table(pa.table({"x": [1.0]}), bad)
    for look in (ns.open, read_summary):
        with pytest.raises(
            RecordingError, match=r"bad\.parquet: is not a recording of navsense: its metadata is of another"
        ):
            look(bad)
        with pytest.raises(RecordingError, match="check the name"):
            look(tmp_path / "none.parquet")
    with pytest.raises(
        RecordingError, match=r"is not an MCAP file; copy it again: .*\.parquet file cannot be recovered"
    ):
        recover_mcap(path, tmp_path / "out.mcap")


def replace_values(table: Any, name: str, values: Any) -> Any:
    return table.set_column(table.column_names.index(name), name, values)


def insert_null(table: Any, name: str) -> Any:
    values = table.column(name).to_pylist()
    values[0] = None
    return replace_values(table, name, pa.array(values, type=table.column(name).type))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda table: table.drop_columns(["field.x"]), "field.x"),
        (lambda table: table.drop_columns(["time"]), "time"),
        (lambda table: replace_values(table, "time", table["time"].cast("string")), "column time is object"),
        (lambda table: replace_values(table, "valid", table["valid"].cast("int8")), "column valid is int8"),
        (
            lambda table: insert_null(table, "angular_velocity.x"),
            "column angular_velocity.x is empty in rows of reading of",
        ),
        (lambda table: insert_null(table, "name"), "a row is of no sensor or link"),
        (lambda table: table.slice(1), "the rows are not those of its runs"),
        (
            lambda table: replace_values(table, "run", pa.array(np.full(len(table), 5))),
            "the rows are not those of its runs",
        ),
        (
            lambda table: replace_values(table, "time", pa.array(np.arange(float(len(table))))),
            "times of .* are not the same",
        ),
        (lambda table: replace_values(table, "name", pa.array(["who"] * len(table))), "something is missing"),
    ],
)
def test_inconsistent_rows_are_an_error(
    builders: ModuleType, tmp_path: Path, change: Callable[[Any], Any], why: str
) -> None:
    path = tmp_path / "run.parquet"
    write(builders, path, (2,), seconds=1)
    table, text = pq.read_table(path), pq.read_metadata(path).metadata[b"navsense"]
    bad = tmp_path / "bad.parquet"
    pq.write_table(change(table).replace_schema_metadata({"navsense": text}), bad)
    with pytest.raises(RecordingError, match=rf"bad\.parquet: is not a recording of navsense: .*{why}"):
        ns.open(bad)


@pytest.mark.requirement("REC-1:parquet")
def test_rows_reordered_by_another_program_are_loaded(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    (time_slice,) = write(builders, path, (3,), seconds=1)
    table, text = pq.read_table(path), pq.read_metadata(path).metadata[b"navsense"]
    for name in ("series", "name", "type"):
        table = replace_values(table, name, table[name].cast("string"))
    table = table.sort_by([("time", "ascending"), ("run", "descending")]).replace_schema_metadata({"navsense": text})
    pq.write_table(table, path, row_group_size=37)
    for name, reading in time_slice.readings.items():
        assert_same(ns.open(path)[name], reading)
    assert read_summary(path).entries[0].count == 300


@pytest.mark.parametrize(
    "text",
    ["{", "[" * 100_000, '{"program": "navsense"}', '{"program": "other"}', '{"program": "navsense", "epoch": 1.5}'],
)
def test_damaged_text_is_an_error(builders: ModuleType, tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.parquet"
    write(builders, path, seconds=1)
    pq.write_table(pq.read_table(path).replace_schema_metadata({"navsense": text}), path)
    for look in (ns.open, read_summary):
        with pytest.raises(RecordingError, match=r"run\.parquet: is not a recording of navsense"):
            look(path)


def test_corrupt_bytes_raise_only_recording_errors(builders: ModuleType, tmp_path: Path) -> None:
    path, bad = tmp_path / "run.parquet", tmp_path / "bad.parquet"
    (time_slice,) = write(builders, path, seconds=1)
    raw = path.read_bytes()
    footer = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    rng, errors = random.Random(5), 0
    for _ in range(300):
        broken = bytearray(raw)
        start, stop = rng.choice(((4, footer), (footer, len(raw) - 4)))
        place = rng.randrange(start, stop)
        broken[place] ^= rng.randrange(1, 256)
        bad.write_bytes(broken)
        try:
            found = ns.open(bad)
        except RecordingError as error:
            errors += "bad.parquet" in str(error)
        else:
            if start < footer:
                assert (
                    found[builders.IMU]["angular_velocity"].tobytes()
                    == time_slice.readings[builders.IMU]["angular_velocity"].tobytes()
                )
        with contextlib.suppress(RecordingError):
            read_summary(bad)
    assert errors > 150


@pytest.mark.parametrize(
    ("run", "runs", "order"),
    [
        ([7, 7], [7], [0, 1]),
        ([], [7], []),
        ([2, 1, 2, 1], [1, 2], [1, 3, 0, 2]),
        ([2, 1, 2, 1], [2, 1], [0, 2, 1, 3]),
        ([2, 1, 2], [2, 1], None),
        ([2, 1, 3], [2, 1], None),
        ([0, 1], [2, 1], None),
        ([2, 2], [2, 1], None),
    ],
)
def test_rows_are_ordered_by_run(run: list[int], runs: list[int], order: list[int] | None) -> None:
    numbers = np.array(run, dtype=np.int64)
    if order is None:
        with pytest.raises(DamagedError):
            run_order(numbers, runs)
    else:
        assert np.arange(numbers.size)[run_order(numbers, runs)].tolist() == order


@pytest.mark.requirement("REC-1:parquet")
def test_command_line_writes_and_describes_tables(tmp_path: Path) -> None:
    world = Path(__file__).resolve().parents[2] / "examples" / "quadrotor.sdf"
    path = tmp_path / "run.parquet"
    command = [sys.executable, "-m", "navsense"]
    ran = subprocess.run(
        [*command, "run", str(world), "--duration", "1", "-o", str(path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    looked = subprocess.run([*command, "info", str(path)], capture_output=True, text=True, check=False)
    assert looked.returncode == 0, looked.stderr
    assert "quadrotor::base_link::imu" in looked.stdout
    assert "parquet" in looked.stdout
    assert ns.open(path)["quadrotor::base_link::imu"].time.size == 1000
