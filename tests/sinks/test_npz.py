"""NumPy archives: read by NumPy alone, and back into the same objects."""

from __future__ import annotations

import json
import resource
import tracemalloc
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from navsense import sinks
from navsense.errors import SinkError
from navsense.series import TRUTH_ARRAYS, Reading, Slab
from navsense.sinks import npz
from navsense.sinks.info import info
from navsense.sinks.load import load


def write(made: ModuleType, path: Path, runs: tuple[int, ...] = (), seconds: int = 3) -> list[Slab]:
    slabs = [made.slab(second, 100, runs=runs) for second in range(seconds)]
    numbers = range(10, 10 + int(np.prod(runs)))
    with sinks.open(path, sinks.Recording(made.world(), 100, 7, float(seconds), numbers)) as sink:
        for slab in slabs:
            sink.write(slab)
    return slabs


@pytest.mark.requirement("REC-1:npz", "TRU-1")
@pytest.mark.parametrize("runs", [(), (1,), (4,)])
def test_numpy_reads_every_array_bit_for_bit(made: ModuleType, tmp_path: Path, runs: tuple[int, ...]) -> None:
    path = tmp_path / "run.npz"
    slabs = write(made, path, runs)
    axis = len(runs)
    expected: dict[str, np.ndarray] = {}
    for name in (made.IMU, made.MAG):
        parts = [slab.readings[name] for slab in slabs]
        expected[f"{name}/time"] = np.concatenate([part.time for part in parts])
        for key in ("clock_error", "valid", "emitted"):
            expected[f"{name}/{key}"] = np.concatenate([getattr(part, key) for part in parts], axis=axis)
        for key in parts[0].arrays:
            expected[f"{name}/{key}"] = np.concatenate([part.arrays[key] for part in parts], axis=axis)
        for key in parts[0].truth:
            expected[f"{name}/truth/{key}"] = np.concatenate([part.truth[key] for part in parts])
        for key in parts[0].errors:
            expected[f"{name}/errors/{key}"] = np.concatenate([part.errors[key] for part in parts], axis=axis)
    for name in made.LINKS:
        for key in ("time", *TRUTH_ARRAYS):
            expected[f"truth/{name}/{key}"] = np.concatenate([getattr(slab.truth[name], key) for slab in slabs])
    with np.load(path, allow_pickle=False) as archive:
        assert set(archive) == {*expected, "meta"}
        for key, array in expected.items():
            got = archive[key]
            assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes()), key
        meta = json.loads(str(archive["meta"]))
    assert (meta["world"], meta["seed"], meta["epoch"]) == ("sea", 7, 100)
    assert meta["runs"] == list(range(10, 10 + int(np.prod(runs))))
    assert meta["sensors"][made.MAG]["unit"] == {"field": "T"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.requirement("REC-1:npz", "CLK-5")
@pytest.mark.parametrize("runs", [(), (3,)])
def test_load_gives_the_same_readings_and_truth(made: ModuleType, tmp_path: Path, runs: tuple[int, ...]) -> None:
    path = tmp_path / "run.npz"
    slabs = write(made, path, runs, seconds=1)
    loaded = load(path)
    assert list(loaded) == list(slabs[0].readings)
    assert len(loaded) == 2
    for name, reading in slabs[0].readings.items():
        assert_same(loaded[name], reading)
        assert loaded[name].stamp.tobytes() == reading.stamp.tobytes()
        assert loaded[name].true_stamp.tobytes() == reading.true_stamp.tobytes()
    for name, truth in slabs[0].truth.items():
        assert loaded.truth[name].name == name
        assert loaded.truth[name].stamp.tolist() == truth.stamp.tolist()
        for key in ("time", *TRUTH_ARRAYS):
            assert getattr(loaded.truth[name], key).tobytes() == getattr(truth, key).tobytes()


def assert_same(got: Reading, expected: Reading) -> None:
    heads = [(r.name, r.type, r.frame, dict(r.unit), r.epoch) for r in (got, expected)]
    assert heads[0] == heads[1]
    for key in ("time", "clock_error", "valid", "emitted"):
        assert getattr(got, key).tobytes() == getattr(expected, key).tobytes()
    for series in ("arrays", "truth", "errors"):
        old, new = getattr(expected, series), getattr(got, series)
        assert list(old) == list(new)
        for key in old:
            assert (new[key].shape, new[key].dtype) == (old[key].shape, old[key].dtype)
            assert new[key].tobytes() == old[key].tobytes()


def test_a_turn_on_bias_without_a_time_axis_is_kept_once(made: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with sinks.open(path, sinks.Recording(made.world(), duration=3.0)) as sink:
        for second in range(3):
            slab = made.slab(second)
            slab.readings[made.MAG].errors["field_turn_on"] = np.array([1.0, 2.0, 3.0])
            sink.write(slab)
    assert load(path)[made.MAG].errors["field_turn_on"].tolist() == [1.0, 2.0, 3.0]


def test_same_run_same_bytes(made: ModuleType, tmp_path: Path) -> None:
    write(made, tmp_path / "a.npz")
    write(made, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.requirement("REC-1:npz")
def test_an_interrupted_recording_leaves_nothing_half_done(made: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    path.write_text("the old one")
    with suppress(RuntimeError), sinks.open(path, sinks.Recording(made.world(), duration=3.0)) as sink:
        sink.write(made.slab(0))
        raise RuntimeError
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("run.npz", "the old one")]


def test_a_full_disk_is_a_clear_error(made: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    sink = sinks.open(path, sinks.Recording(made.world(), duration=3.0))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
        with pytest.raises(SinkError, match=r"too large.*raise the limit"):
            sink.write(made.slab(0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


def test_what_is_no_recording_is_refused(made: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    write(made, path)
    raw = path.read_bytes()
    bad = tmp_path / "bad.npz"
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    for place in range(0, len(raw), max(1, len(raw) // 60)):
        bad.write_bytes(raw[:place])
        for look in (load, info):
            with pytest.raises(SinkError, match=r"bad\.npz"):
                look(bad)
    for name in ("other.npz", "none.npz"):
        for look in (load, info):
            with pytest.raises(SinkError, match=name):
                look(tmp_path / name)


def test_an_array_that_changes_its_shape_or_has_a_taken_name_is_refused(made: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    sink = sinks.open(path, sinks.Recording(made.world(), duration=3.0))
    sink.write(made.slab(0))
    slab = made.slab(1)
    slab.readings[made.MAG].arrays["field"] = np.zeros((10, 2))
    with pytest.raises(SinkError, match="shape"):
        sink.write(slab)
    sink = sinks.open(path, sinks.Recording(made.world(), duration=3.0))
    slab = made.slab(0)
    slab.readings[made.MAG].arrays["time"] = np.zeros((10, 2))
    with pytest.raises(SinkError, match="taken"):
        sink.write(slab)
    assert not list(tmp_path.iterdir())


def test_info_says_what_an_archive_holds(made: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    write(made, path)
    found = info(path)
    assert {entry.name: (entry.type, entry.count) for entry in found.entries} == {
        made.IMU: ("imu", 300),
        made.MAG: ("magnetometer", 30),
        "truth/rov::base": ("truth", 150),
        "truth/rov::arm::tip": ("truth", 150),
    }
    assert (found.start, found.end) == (100.0, 102.99)
    assert found.meta["world"] == "sea"
    assert "npz" in found.headline


@pytest.mark.requirement("REC-1:npz", "REC-1:mcap")
@pytest.mark.parametrize("suffix", [".mcap", ".npz"])
def test_memory_does_not_grow_with_the_recording(
    made: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(npz, "BLOCK_BYTES", 10_000)

    def peak(seconds: int) -> int:
        tracemalloc.start()
        with sinks.open(tmp_path / f"run{suffix}", sinks.Recording(made.world(), duration=float(seconds))) as sink:
            for second in range(seconds):
                sink.write(made.slab(second))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(2)
    # A slab is some 400 kB, of which no more stays than its place in an index.
    assert peak(120) - peak(20) < 200_000
