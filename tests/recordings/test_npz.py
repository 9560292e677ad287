"""NumPy archives are read by NumPy alone, and back into the same objects."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import random
import signal
import threading
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense import recordings
from navsense.core.errors import RecordingError
from navsense.core.readings import ARRAY_GROUPS, TRUTH_ARRAYS, Reading, TimeSlice
from navsense.recordings import npz
from navsense.recordings.leftovers import recover
from navsense.recordings.summary import read_summary
from navsense.sensors.base import Sensor
from navsense.sensors.imu import Imu
from navsense.sensors.magnetometer import Magnetometer
from navsense.world import World


def write(builders: ModuleType, path: Path, runs: tuple[int, ...] = (), seconds: int = 3) -> list[TimeSlice]:
    slices = [builders.make_time_slice(second, 100, runs=runs) for second in range(seconds)]
    numbers = range(10, 10 + int(np.prod(runs)))
    with recordings.open_writer(
        path, recordings.RecordedRun(builders.make_world(), 100, 7, float(seconds), numbers)
    ) as writer:
        for time_slice in slices:
            writer.write(time_slice)
    return slices


@pytest.mark.requirement("REC-1:npz", "TRU-1")
@pytest.mark.parametrize("runs", [(), (1,), (4,)])
def test_numpy_reads_every_array_bit_for_bit(builders: ModuleType, tmp_path: Path, runs: tuple[int, ...]) -> None:
    path = tmp_path / "run.npz"
    slices = write(builders, path, runs)
    axis = len(runs)
    expected: dict[str, np.ndarray] = {}
    for name in (builders.IMU, builders.MAG):
        parts = [time_slice.readings[name] for time_slice in slices]
        expected[f"{name}/time"] = np.concatenate([part.time for part in parts])
        for key in ("clock_error", "valid", "emitted"):
            expected[f"{name}/{key}"] = np.concatenate([getattr(part, key) for part in parts], axis=axis)
        for key in parts[0].arrays:
            expected[f"{name}/{key}"] = np.concatenate([part.arrays[key] for part in parts], axis=axis)
        for key in parts[0].ideal:
            expected[f"{name}/ideal/{key}"] = np.concatenate([part.ideal[key] for part in parts])
        for key in parts[0].bias:
            expected[f"{name}/bias/{key}"] = np.concatenate([part.bias[key] for part in parts], axis=axis)
    for name in builders.LINKS:
        for key in ("time", *TRUTH_ARRAYS):
            expected[f"truth/{name}/{key}"] = np.concatenate(
                [getattr(time_slice.truth[name], key) for time_slice in slices]
            )
    with np.load(path, allow_pickle=False) as archive:
        assert set(archive) == {*expected, "meta"}
        for key, array in expected.items():
            got = archive[key]
            assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes()), key
        meta = json.loads(str(archive["meta"]))
    assert (meta["world"], meta["seed"], meta["epoch"]) == ("sea", 7, 100)
    assert meta["runs"] == list(range(10, 10 + int(np.prod(runs))))
    assert meta["sensors"][builders.MAG]["unit"] == {"field": "T"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.requirement("REC-1:npz", "CLK-5")
@pytest.mark.parametrize("runs", [(), (3,)])
def test_load_returns_the_same_readings_and_truth(builders: ModuleType, tmp_path: Path, runs: tuple[int, ...]) -> None:
    path = tmp_path / "run.npz"
    slices = write(builders, path, runs, seconds=1)
    loaded = ns.open(path)
    assert list(loaded) == list(slices[0].readings)
    assert len(loaded) == 2
    for name, reading in slices[0].readings.items():
        assert_same(loaded[name], reading)
        assert loaded[name].stamp.tobytes() == reading.stamp.tobytes()
        assert loaded[name].true_stamp.tobytes() == reading.true_stamp.tobytes()
    for name, truth in slices[0].truth.items():
        assert loaded.truth[name].name == name
        assert loaded.truth[name].stamp.tolist() == truth.stamp.tolist()
        for key in ("time", *TRUTH_ARRAYS):
            assert getattr(loaded.truth[name], key).tobytes() == getattr(truth, key).tobytes()


def assert_same(got: Reading, expected: Reading) -> None:
    heads = [(r.name, r.type, r.frame, dict(r.unit), r.epoch) for r in (got, expected)]
    assert heads[0] == heads[1]
    for key in ("time", "clock_error", "valid", "emitted"):
        assert getattr(got, key).tobytes() == getattr(expected, key).tobytes()
    for series in ARRAY_GROUPS:
        old, new = getattr(expected, series), getattr(got, series)
        assert list(old) == list(new)
        for key in old:
            assert (new[key].shape, new[key].dtype) == (old[key].shape, old[key].dtype)
            assert new[key].tobytes() == old[key].tobytes()


def test_same_run_writes_the_same_bytes(builders: ModuleType, tmp_path: Path) -> None:
    write(builders, tmp_path / "a.npz")
    write(builders, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.requirement("REC-1:npz")
def test_error_in_another_output_keeps_earlier_slices(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
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
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def test_write_error_of_another_output_keeps_this_recording(builders: ModuleType, tmp_path: Path) -> None:
    recording = recordings.RecordedRun(builders.make_world(), duration=3.0)
    time_slice = builders.make_time_slice(1)
    time_slice.readings[builders.IMU].clock_error[3] = 1e10  # too large for a ROS message
    with (  # noqa: PT012 - one writer fails inside another
        pytest.raises(RecordingError, match="--epoch"),
        recordings.open_writer(tmp_path / "run.npz", recording) as npz_sink,
        recordings.open_writer(tmp_path / "run.mcap", recording) as mcap_sink,
    ):
        for part in (builders.make_time_slice(0), time_slice):
            mcap_sink.write(part)
            npz_sink.write(part)
    assert ns.open(tmp_path / "run.npz")[builders.IMU].time.size == 100
    assert {entry.name for entry in tmp_path.iterdir()} == {"run.npz", "run.mcap"}


def test_error_on_close_does_not_hide_the_first_error(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The second error is logged with the command that recovers the recording."""

    def fail_with_full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "run.npz"
    recording = recordings.RecordedRun(builders.make_world())
    with pytest.raises(RuntimeError, match="elsewhere"), recordings.open_writer(path, recording) as writer:  # noqa: PT012 - it is raised around the writer
        writer.write(builders.make_time_slice(0))
        monkeypatch.setattr(npz.DiskArray, "write", fail_with_full_disk)
        raise RuntimeError("elsewhere")
    assert "no space left on device; free some space" in caplog.text
    assert f"recover the written part with: navsense recover {path}" in caplog.text
    monkeypatch.undo()
    recover(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run-recovered.npz"]
    imu = builders.make_time_slice(0).readings[builders.IMU]
    np.testing.assert_array_equal(ns.open(tmp_path / "run-recovered.npz")[builders.IMU].stamp, imu.stamp)


def test_interrupt_within_a_slice_leaves_complete_slices(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "run.npz"
    append, calls = npz.DiskArray.append, []

    def interrupted(column: npz.DiskArray, array: np.ndarray) -> None:
        calls.append(column)
        if len(calls) == 50:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        append(column, array)

    writer = recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=9.0))
    writer.write(builders.make_time_slice(0))
    monkeypatch.setattr(npz.DiskArray, "append", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # one that runs in the background ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with pytest.raises(KeyboardInterrupt), writer:  # noqa: PT012 - which write is interrupted is open
        for second in range(1, 9):
            writer.write(builders.make_time_slice(second))
    found = ns.open(path)
    seconds, rest = divmod(found[builders.IMU].time.size, 100)
    assert (rest, found[builders.MAG].time.size, found.truth["rov::base"].time.size) == (0, 10 * seconds, 50 * seconds)
    assert 2 <= seconds < 9
    assert_same(found[builders.MAG].select_rows(10, 20), builders.make_time_slice(1).readings[builders.MAG])
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def rename_sensor(builders: ModuleType, name: str, new: str, spec: Sensor | None = None) -> World:
    """Return the world with one sensor renamed or of another type."""
    world = builders.make_world()
    sensors = [
        dataclasses.replace(sensor, name=new, spec=spec or sensor.spec) if sensor.name == name else sensor
        for sensor in world.sensors
    ]
    return dataclasses.replace(world, sensors=tuple(sensors))


@pytest.mark.parametrize("new", ["rov::base::imu/ideal", "rov::base::imu/bias", "truth/rov::base"])
def test_names_with_equal_keys_are_an_error_at_once(builders: ModuleType, tmp_path: Path, new: str) -> None:
    spec = Imu() if "imu" in new else Magnetometer()
    world = rename_sensor(builders, builders.MAG, new, spec)
    with pytest.raises(RecordingError, match=rf"{new}.*rename the sensor.*\.mcap"):
        recordings.open_writer(tmp_path / "run.npz", recordings.RecordedRun(world))
    assert not list(tmp_path.iterdir())
    recordings.open_writer(tmp_path / "run.mcap", recordings.RecordedRun(world)).close()
    recordings.open_writer(tmp_path / "run.npz", recordings.RecordedRun(world, has_simulated_series=False)).close()


def test_name_with_a_slash_is_allowed_without_conflict(builders: ModuleType, tmp_path: Path) -> None:
    world, name = rename_sensor(builders, builders.MAG, builders.IMU + "/ideal"), builders.IMU + "/ideal"
    time_slice = builders.make_time_slice(0)
    time_slice.readings[name] = dataclasses.replace(time_slice.readings.pop(builders.MAG), name=name)
    with recordings.open_writer(tmp_path / "run.npz", recordings.RecordedRun(world)) as writer:
        writer.write(time_slice)
    assert_same(ns.open(tmp_path / "run.npz")[name], time_slice.readings[name])


def test_conflicting_keys_are_an_error(builders: ModuleType, tmp_path: Path) -> None:
    time_slice = builders.make_time_slice(0)
    time_slice.readings[builders.MAG].arrays["ideal/field"] = np.zeros((10, 3))
    writer = recordings.open_writer(tmp_path / "run.npz", recordings.RecordedRun(builders.make_world()))
    with pytest.raises(RecordingError, match="ideal/field"):
        writer.write(time_slice)
    with pytest.raises(RecordingError, match="already failed"):
        writer.write(builders.make_time_slice(1))


def test_invalid_recording_is_an_error(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    write(builders, path)
    raw = path.read_bytes()
    bad = tmp_path / "bad.npz"
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    for place in range(0, len(raw), max(1, len(raw) // 60)):
        bad.write_bytes(raw[:place])
        for look in (ns.open, read_summary):
            with pytest.raises(RecordingError, match=r"bad\.npz.*copy it again: .* file cannot be recovered"):
                look(bad)
    for name in ("other.npz", "none.npz"):
        for look in (ns.open, read_summary):
            with pytest.raises(RecordingError, match=name):
                look(tmp_path / name)


def test_empty_mcap_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run.mcap").write_bytes(b"\x89MCAP0\r\n")
    with pytest.raises(RecordingError, match=r"run\.mcap: the file ends inside its header; it contains no messages"):
        ns.open(tmp_path / "run.mcap")


def rewrite_archive(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Write an archive with changed arrays. Bytes instead of an array are stored unchanged."""
    with np.load(path) as archive:
        arrays: dict[str, Any] = dict(archive)
    change(arrays)
    out = path.with_name("changed.npz")
    with zipfile.ZipFile(out, "w") as archive:
        for key, value in arrays.items():
            raw = io.BytesIO()
            if not isinstance(value, bytes):
                np.lib.format.write_array(raw, value)
            archive.writestr(key + ".npy", value if isinstance(value, bytes) else raw.getvalue())
    return out


def make_npy_header(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


TIME = "rov::base::mag/time"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (TIME, make_npy_header("(1000000000000000,)")),
        (TIME, make_npy_header("(10000000000000000000000000000000,)")),
        (TIME, make_npy_header("(-3,)")),
        (TIME, make_npy_header("(3")),
        (TIME, b""),
        (TIME, b"no array"),
        (TIME, np.zeros((30, 1))),
        (TIME, np.full(30, np.nan)),
        (TIME, np.zeros(30, dtype="U3")),
        ("meta", np.array("[" * 100_000)),
        ("meta", np.array("{")),
        ("meta", np.array('{"program": "navsense"}')),
        ("meta", np.array('{"program": "navsense", "epoch": 1e3, "sensors": {}, "links": []}')),
        ("meta", np.array('{"program": "navsense", "epoch": 1, "sensors": [1], "links": []}')),
        ("meta", np.array('{"program": "other"}')),
    ],
)
def test_damaged_arrays_are_an_error(builders: ModuleType, tmp_path: Path, key: str, value: Any) -> None:
    write(builders, tmp_path / "run.npz")
    bad = rewrite_archive(tmp_path / "run.npz", lambda arrays: arrays.update({key: value}))
    found = []
    for look in (ns.open, read_summary):
        try:
            look(bad)
        except RecordingError as error:
            found.append(str(error))
    # `load` accepts any numbers as times.
    assert len(found) == 2 or (isinstance(value, np.ndarray) and np.isnan(value).all())
    assert all("changed.npz: is not a recording of navsense" in text and "pickle" not in text for text in found)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clock_error", np.zeros(29)),
        ("clock_error", np.zeros(())),
        ("clock_error", np.zeros(30, dtype=np.int64)),
        ("valid", np.ones((30, 2), dtype=np.bool_)),
        ("valid", np.ones(30)),
        ("emitted", np.ones(31, dtype=np.bool_)),
        ("field", np.zeros((29, 3))),
        ("ideal/field", np.zeros((31, 3))),
        ("bias/field", np.zeros((2, 30, 3))),
    ],
)
def test_inconsistent_arrays_are_an_error(builders: ModuleType, tmp_path: Path, key: str, value: np.ndarray) -> None:
    write(builders, tmp_path / "run.npz")
    bad = rewrite_archive(tmp_path / "run.npz", lambda arrays: arrays.update({f"{builders.MAG}/{key}": value}))
    with pytest.raises(RecordingError, match=rf"damaged: array {builders.MAG}/{key}"):
        ns.open(bad)
    bad = rewrite_archive(
        tmp_path / "run.npz", lambda arrays: arrays.update({"truth/rov::base/orientation": np.ones((150, 3))})
    )
    with pytest.raises(RecordingError, match="damaged: array truth/rov::base/orientation"):
        ns.open(bad)


def test_corrupt_bytes_raise_only_recording_errors(builders: ModuleType, tmp_path: Path) -> None:
    path, bad = tmp_path / "run.npz", tmp_path / "bad.npz"
    write(builders, path, seconds=1)
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        heads = [member.header_offset for member in archive.infolist()]
    rng, errors = random.Random(5), []
    for _ in range(600):
        broken = bytearray(raw)
        for _ in range(rng.randrange(1, 4)):
            start = rng.choice((*heads, len(raw) - 4000))  # headers and the index have most of the structure
            broken[rng.randrange(start, min(len(raw), start + rng.choice((60, 250, 4000))))] = rng.randrange(256)
        bad.write_bytes(broken)
        for look in (ns.open, read_summary):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    look(bad)
            except RecordingError as error:
                errors.append(str(error))
    assert len(errors) > 300
    assert all("bad.npz" in text and "pickle" not in text for text in errors)


@pytest.mark.parametrize("suffix", [".mcap", ".npz"])
def test_pipes_are_an_error_before_opening(builders: ModuleType, tmp_path: Path, suffix: str) -> None:
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    with pytest.raises(RecordingError, match="is a pipe"):
        recordings.open_writer(pipe, recordings.RecordedRun(builders.make_world()))
    with pytest.raises(RecordingError, match="is a device, a pipe"):
        read_summary(pipe)
    if suffix == ".npz":
        with pytest.raises(RecordingError, match="is a device, a pipe"):
            ns.open(pipe)


def test_recording_without_a_duration_has_no_duration_metadata(builders: ModuleType, tmp_path: Path) -> None:
    for suffix in (".mcap", ".npz"):
        path = tmp_path / f"run{suffix}"
        recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=float("inf"))).close()
        assert "duration_asked" not in read_summary(path).metadata
        assert read_summary(path).start is read_summary(path).end is (None if suffix == ".npz" else 0)


def test_changed_array_shape_or_duplicate_name_is_an_error(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    writer = recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=3.0))
    writer.write(builders.make_time_slice(0))
    time_slice = builders.make_time_slice(1)
    time_slice.readings[builders.MAG].arrays["field"] = np.zeros((10, 2))
    with pytest.raises(RecordingError, match=r"shape.*; recover the written part with: navsense recover "):
        writer.write(time_slice)
    recover(path)
    writer = recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=3.0))
    time_slice = builders.make_time_slice(0)
    time_slice.readings[builders.MAG].arrays["time"] = np.zeros((10, 2))
    with pytest.raises(RecordingError, match="taken"):
        writer.write(time_slice)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run-recovered.npz"]


def test_info_of_an_archive(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    write(builders, path)
    found = read_summary(path)
    assert {entry.name: (entry.type, entry.count) for entry in found.entries} == {
        builders.IMU: ("imu", 300),
        builders.MAG: ("magnetometer", 30),
        "truth/rov::base": ("truth", 150),
        "truth/rov::arm::tip": ("truth", 150),
    }
    assert (found.start, found.end) == (100_000_000_000, 102_990_000_000)
    assert found.metadata["world"] == "sea"
    assert "from 100 s to 102.99 s" in found.headline
    assert "run 10, " in found.headline
    assert found.headline.endswith("requested 3 s")


@pytest.mark.requirement("REC-1:npz", "REC-1:mcap")
@pytest.mark.parametrize("suffix", [".mcap", ".npz"])
def test_memory_does_not_grow_with_the_recording(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(npz, "BLOCK_BYTES", 10_000)

    def measure_peak(seconds: int) -> int:
        tracemalloc.start()
        with recordings.open_writer(
            tmp_path / f"run{suffix}", recordings.RecordedRun(builders.make_world(), duration=float(seconds))
        ) as writer:
            for second in range(seconds):
                writer.write(builders.make_time_slice(second))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    measure_peak(2)
    # A time slice is about 400 kB. Only its index entry stays in memory.
    assert measure_peak(120) - measure_peak(20) < 200_000
