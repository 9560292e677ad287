"""Every format stores what it declares, reports other content as lost, and leaves no damaged recording."""

from __future__ import annotations

import dataclasses
import gc
import os
import resource
import runpy
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense import cli, recordings
from navsense.calibration import load as calibration_load
from navsense.core import atomic
from navsense.core.errors import RecordingError, UnknownNameError
from navsense.core.readings import Reading, TimeSlice
from navsense.environment.base import UniformField
from navsense.fault_file import list_faults
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.recordings import Capability, Format, dataset, parquet
from navsense.recordings import format as format_module
from navsense.recordings.convert import ConversionResult, convert
from navsense.recordings.format import Recovery, RecoveryResult
from navsense.recordings.leftovers import list_leftovers, recover
from navsense.recordings.mcap.writer import McapWriter
from navsense.recordings.recorded_motion import load_motion
from navsense.recordings.summary import read_summary
from navsense.runner.run import Run
from navsense.sensors import Dvl, Imu, Magnetometer
from navsense.testing import example_world, is_identical

EPOCH, DURATION = 1000, 0.5
IMU, DVL = "robot::arm::imu", "robot::arm::dvl"
WRITTEN = [pytest.param(one, id=one.suffixes[0]) for one in recordings.FORMATS if one.open_writer]
CONTENT = tuple(one for one in Capability if one not in (Capability.RUNS, Capability.RECOVERY, Capability.MESSAGES))

CHILD = """
import sys
import navsense as ns
from navsense import recordings
from navsense.recordings import dataset
dataset.SLICE_ROWS = 4
recording = ns.open(sys.argv[1])
writer = recordings.open_writer(sys.argv[2], recording.make_recorded_run())
slices = list(recording.iter_slices())
for time_slice in slices[:-2]:
    writer.write(time_slice)
print("written", flush=True)
sys.stdin.readline()
"""

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400), pytest.mark.requirement("REC-1")]


@pytest.fixture(scope="module")
def world() -> ns.World:
    """Return a robot whose recording has everything that a format can hold."""
    specs: dict[str, Any] = {"imu": Imu, "imu2": Imu, "dvl": Dvl, "magnetometer": Magnetometer}
    world = example_world(*((name, kind.example_spec()) for name, kind in specs.items()))
    imu, second, dvl, magnetometer = world.sensors
    drop = (ScheduledFault("dropout", 0.2, 0.3),)
    sensors = (dataclasses.replace(imu, faults=Faults(scheduled=drop)), second, dvl, magnetometer)
    around = dataclasses.replace(world.environment, current=UniformField((0.1, -0.2, 0.05)))
    return dataclasses.replace(world, sensors=sensors, environment=around)


@pytest.fixture(scope="module")
def run(world: ns.World) -> Run:
    """Return a run in which one published sample of each sensor has an invalid number."""
    found = ns.simulate(world, DURATION, seed=5, epoch=EPOCH)
    readings = dict(found.readings)
    for name in (name for name in readings if name != DVL):
        arrays = {key: array.copy() for key, array in readings[name].arrays.items()}
        for array in arrays.values():
            array[4] = np.nan
        readings[name] = dataclasses.replace(readings[name], arrays=arrays)
    return dataclasses.replace(found, readings=readings)


@pytest.fixture(scope="module")
def runs(world: ns.World) -> Run:
    return ns.simulate(world, DURATION, seed=5, epoch=EPOCH, runs=2)


@pytest.fixture(scope="module")
def archive(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run in a format without losses."""
    path = tmp_path_factory.mktemp("archive") / "all.npz"
    run.save(path)
    return path


@pytest.fixture(scope="module")
def long_archive(world: ns.World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with more bytes of samples than of metadata in each format."""
    path = tmp_path_factory.mktemp("long") / "all.npz"
    ns.simulate(world, 4.0, seed=5, epoch=EPOCH).save(path)
    return path


def make_file_name(recording_format: Format, name: str = "run") -> str:
    """Return a file name. A device log names its sensor."""
    return f"{name}{'.dvl' if recording_format.unit == 'records' else ''}{recording_format.suffixes[0]}"


def has_reader(recording_format: Format) -> bool:
    """Return True if recordings in the format can be opened."""
    return recording_format.unit != "record" and not recording_format.unread_content


def match_rows(found: Reading, known: Reading) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of two readings with the same stamps."""
    _, own, other = np.intersect1d(found.stamp, known.stamp, return_indices=True)
    return own, other


def list_contents(found: dataset.Dataset, run: Run) -> set[Capability]:
    """Return the content of a recording of a run, for all its sensors."""
    contents: set[Capability] = set(CONTENT)
    for name, known in run.readings.items():
        reading = found.get(name)
        if reading is None:
            contents -= {one for one in CONTENT if one not in (Capability.TRUTH, Capability.CURRENT, Capability.FAULTS)}
            continue
        rows, other = match_rows(reading, known)
        assert rows.size == reading.time.size > 0
        groups = {
            Capability.IDEAL: (reading.ideal, known.ideal),
            Capability.BIAS: (reading.bias, known.bias),
            Capability.TURN_ON_BIAS: (reading.turn_on_bias, known.turn_on_bias),
        }
        for capability, (own, expected) in groups.items():
            for key in own:
                np.testing.assert_allclose(own[key][rows], expected[key][other], rtol=1e-6, atol=1e-7)
            if expected and not own:
                contents.discard(capability)
        if not np.array_equal(reading.emitted, known.emitted):
            contents.discard(Capability.UNPUBLISHED)
        if name != DVL and not any(np.isnan(array).any() for array in reading.arrays.values()):
            contents.discard(Capability.INVALID)
    moving = "robot::base"
    if moving not in found.truth or not np.allclose(
        found.truth[moving].position, run.truth[moving].position, rtol=1e-9, atol=1e-9
    ):
        contents.discard(Capability.TRUTH)
    if (
        found.current is None
        or run.current is None
        or not np.allclose(found.current.velocity, run.current.velocity, rtol=1e-9, atol=1e-9)
    ):
        contents.discard(Capability.CURRENT)
    if found.metadata.get("faults") != list_faults(run.session.world):
        contents.discard(Capability.FAULTS)
    return contents


def list_reported(builders: ConversionResult) -> set[Capability]:
    """Return the content that a conversion reports as lost."""
    phrases = {phrase for line in builders.losses for phrase in line.rpartition(": ")[2].split(", ")}
    reported: set[Capability] = {
        one for one in CONTENT if one in phrases or any(line.startswith(one) for line in builders.losses)
    }
    if any("had no output" in line or "dropped" in line for line in builders.losses):
        reported.add(Capability.UNPUBLISHED)
    if any("invalid" in line for line in builders.losses):
        reported.add(Capability.INVALID)
    return reported


@pytest.mark.parametrize("form", WRITTEN)
def test_declared_content_round_trips(form: Format, run: Run, tmp_path: Path) -> None:
    """Undeclared content is not restored, so a declaration cannot be forgotten."""
    path = tmp_path / make_file_name(form)
    run.save(path)
    found = read_summary(path)
    assert found.format == form.name
    assert found.unit == form.unit
    assert sum(entry.count for entry in found.entries) > 0
    if has_reader(form):
        assert list_contents(ns.open(path), run) == form.capabilities & set(CONTENT)
    else:
        with pytest.raises((RecordingError, UnknownNameError)):
            ns.open(path)["imu"]


@pytest.mark.parametrize("form", WRITTEN)
def test_undeclared_content_is_reported_as_lost(form: Format, archive: Path, tmp_path: Path) -> None:
    result = convert(archive, tmp_path / make_file_name(form))
    reported: set[Capability] = list_reported(result)
    assert not reported & form.capabilities
    lost = set(CONTENT) - form.capabilities
    if form.capabilities & {Capability.BIAS} == set():
        lost -= {Capability.TURN_ON_BIAS}  # a part of the bias
    left_out = {line.removesuffix(": all arrays") for line in result.losses if line.endswith(": all arrays")}
    if all(reading.emitted.all() for name, reading in ns.open(archive).items() if name not in left_out):
        lost -= {Capability.UNPUBLISHED}  # of sensors that are left out completely
    assert lost <= reported


@pytest.mark.parametrize("form", WRITTEN)
def test_without_truth_only_readings_are_recorded(form: Format, run: Run, tmp_path: Path) -> None:
    path = tmp_path / make_file_name(form)
    info = recordings.make_recorded_run(run.session, has_simulated_series=False)
    slices = list(run.slices())
    if form.unit == "record":  # device formats contain the attitude
        slices = [dataclasses.replace(one, truth=run.truth) for one in slices]
    write(path, info, slices)
    if not has_reader(form):
        assert not any("truth" in entry.name for entry in read_summary(path).entries)
        return
    found = ns.open(path)
    assert not found.truth
    assert found.current is None
    assert not any(reading.ideal or reading.bias or reading.turn_on_bias for reading in found.values())


def test_remedy_for_several_runs_names_registered_formats(
    runs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(format_module, "_FORMATS", dict(format_module._FORMATS))
    many = frozenset((Capability.RUNS,))
    recordings.register_format(
        dataclasses.replace(recordings.FORMATS[0], name="lines", suffixes=(".lines",), capabilities=many)
    )
    info = recordings.make_recorded_run(runs.session)
    for write_runs in (lambda: McapWriter(tmp_path / "a.mcap", info), lambda: runs.save(tmp_path / "a.mcap")):
        with pytest.raises(RecordingError, match=r"write many runs to \.npz or \.parquet or \.lines$"):
            write_runs()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", WRITTEN)
def test_several_runs_are_stored_or_raise_an_error(form: Format, runs: Run, tmp_path: Path) -> None:
    path = tmp_path / make_file_name(form)
    if Capability.RUNS in form.capabilities:
        runs.save(path)
        found = ns.open(path)
        assert found.runs == [0, 1]
        for name, reading in runs.readings.items():
            assert is_identical(dataclasses.asdict(found[name]), dataclasses.asdict(reading))
        return
    with pytest.raises(RecordingError, match=rf"{path}.*holds one run.*\.npz or \.parquet"):
        runs.save(path)
    runs.save(tmp_path / "all.npz")
    with pytest.raises(RecordingError, match=r"holds one run.*--run"):
        convert(tmp_path / "all.npz", path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["all.npz"]
    assert convert(tmp_path / "all.npz", path, run=1).count > 0


@pytest.mark.parametrize("form", [pytest.param(one, id=one.suffixes[0]) for one in recordings.FORMATS])
def test_capabilities_have_their_functions(form: Format) -> None:
    assert (form.recovery.recover is not None) == (Capability.RECOVERY in form.capabilities)
    assert (form.open_copy is not None) == (Capability.MESSAGES in form.capabilities)


def test_crashed_recording_of_a_registered_format_is_recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The declaration of the format is enough: no other module knows its suffix."""

    def save(file: Path, out: Path) -> RecoveryResult:
        out.write_bytes(file.read_bytes())
        return RecoveryResult(str(out), 1, unit="row")

    monkeypatch.setattr(format_module, "_FORMATS", dict(format_module._FORMATS))
    form = dataclasses.replace(
        recordings.FORMATS[0], name="lines", suffixes=(".lines",), recovery=Recovery(("*.lines",), save)
    )
    recordings.register_format(form)
    path = tmp_path / "run.lines"
    hidden = atomic.make_hidden_path(path)
    hidden.mkdir()
    (hidden / atomic.MARKER).write_text("recording\n")
    (hidden / "run.lines").write_text("1\n")
    (found,) = list_leftovers(tmp_path)
    assert found.format is form
    assert recover(path).headline.startswith(f"wrote {tmp_path / 'run-recovered.lines'}: 1 row")
    assert [file.name for file in tmp_path.iterdir()] == ["run-recovered.lines"]


def check_after_failure(form: Format, path: Path) -> None:
    """Assert that a recording that was not completed is absent, readable, or recoverable as declared."""
    place = recordings.get_storage_path(path)
    if Capability.RECOVERY in form.capabilities:
        if place.exists() and ".mcap" not in path.name:
            assert read_summary(path).entries
            return
        saved = recover(path)
        found = read_summary(saved.path)
        assert found.entries or form.name == "ROS 1 bag"  # its first chunk was not complete
    elif form.unit == "record":  # records are independent
        assert read_summary(path).format == form.name
    else:
        assert not place.exists()
        with pytest.raises(RecordingError, match=str(path)):
            ns.open(path)


@pytest.mark.parametrize("form", WRITTEN)
def test_killed_writer_leaves_no_damaged_recording(form: Format, archive: Path, tmp_path: Path) -> None:
    path = tmp_path / make_file_name(form)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", CHILD, str(archive), str(path)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert child.stdout is not None
    assert child.stdout.readline() == "written\n"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    check_after_failure(form, path)


def write(path: Path, info: recordings.RecordedRun, slices: list[TimeSlice]) -> None:
    with recordings.open_writer(path, info) as writer:
        for time_slice in slices:
            writer.write(time_slice)


def write_to_full_disk(path: Path, info: recordings.RecordedRun, slices: list[TimeSlice], size: int) -> RecordingError:
    """Return the error of a writer with a limit on the size of its files, which simulates a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        with pytest.raises(RecordingError) as caught:
            write(path, info, slices)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    return caught.value


def remove_files(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("form", WRITTEN)
def test_full_disk_is_an_error_with_a_remedy(
    form: Format, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever remains in a hidden folder has a command that recovers it."""
    path = tmp_path / make_file_name(form)
    monkeypatch.setattr(dataset, "SLICE_ROWS", 20)
    recording = ns.open(archive)
    info, slices = recording.make_recorded_run(), list(recording.iter_slices())
    write(path, info, slices)
    place = recordings.get_storage_path(path)
    size = max(file.stat().st_size for file in (place.rglob("*") if place.is_dir() else (place,)) if file.is_file())
    for limit in (0, 2000, size // 2, size - 100):
        remove_files(tmp_path)
        error = write_to_full_disk(path, info, slices, min(limit, size - 1))
        assert str(error).startswith(str(path))
        assert "cannot be written" in str(error)
        if form.name != "ROS 2 bag":  # SQLite does not report the cause
            assert "file too large; raise the limit" in str(error)
        is_hidden = any(entry.name.startswith(".") for entry in tmp_path.iterdir())
        assert not is_hidden or error.rescue == f"recover the written part with: navsense recover {path}"
        if ".mcap" not in path.name and form.unit != "record" and place.exists():
            assert read_summary(path).entries
    gc.collect()


@pytest.mark.parametrize("form", WRITTEN)
def test_full_disk_keeps_the_time_slices_before(
    form: Format, long_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kept rows begin with those of the run, and include most of what fitted on the disk."""
    path, complete = tmp_path / make_file_name(form), tmp_path / make_file_name(form, "complete")
    monkeypatch.setattr(dataset, "SLICE_ROWS", 100)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 300)
    recording = ns.open(long_archive)
    info, slices = recording.make_recorded_run(), list(recording.iter_slices())
    write(complete, info, slices)
    place = recordings.get_storage_path(complete)
    files = [file for file in (place.rglob("*") if place.is_dir() else (place,)) if file.is_file()]
    error = write_to_full_disk(path, info, slices, 2 * max(file.stat().st_size for file in files) // 3)
    if form.unit != "record":
        assert error.rescue
    place = path
    if f"navsense recover {path}" in error.rescue:
        place = Path(recover(path).path)
    counts, kept = ({entry.name: entry.count for entry in read_summary(one).entries} for one in (complete, place))
    assert kept.keys() <= counts.keys()
    assert all(kept[name] <= counts[name] for name in kept)
    assert sum(kept.values()) > sum(counts.values()) / 4
    if has_reader(form):
        reading, known = (next(iter(ns.open(one).values())) for one in (place, complete))
        np.testing.assert_array_equal(reading["angular_velocity"], known["angular_velocity"][: reading.time.size])


@pytest.mark.parametrize("content", [b"", b"text of another program\n" * 50, bytes(range(256)) * 20])
@pytest.mark.parametrize("form", WRITTEN)
def test_file_of_another_program_is_an_error(
    form: Format,
    content: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / make_file_name(form)
    path.write_bytes(content)
    with pytest.raises(RecordingError) as caught:
        ns.open(path)
    assert str(caught.value).startswith(str(path))
    if content or form.unit != "record":  # a log without a record is valid
        monkeypatch.setattr(sys, "argv", ["navsense", "info", str(path)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 2
        assert capsys.readouterr().err.startswith(f"error: {path}")
    with pytest.raises(RecordingError):
        convert(path, tmp_path / "made.npz")
    assert not (tmp_path / "made.npz").exists()


EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "json_lines.py"


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the entry points of installed packages; formats registered in a test are removed."""
    found: list[Any] = []
    monkeypatch.setattr(format_module, "_FORMATS", dict(format_module._FORMATS))
    monkeypatch.setattr(format_module, "entry_points", lambda group: found if group == "navsense.formats" else [])
    return found


def test_format_of_another_package_is_found_by_its_suffix(
    run: Run, tmp_path: Path, entries: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(RecordingError, match="no recording has this suffix"):
        run.save(path)
    form = runpy.run_path(str(EXAMPLE))["FORMAT"]
    entries.append(SimpleNamespace(name="jsonl", load=lambda: form, dist=None, value="json_lines:FORMAT"))
    run.save(path)
    found = ns.open(path)
    assert list_contents(found, run) == form.capabilities
    assert read_summary(path).headline.startswith(f"{path}: JSON Lines, ")
    assert list_reported(convert(path, tmp_path / "made.jsonl")) == set()
    result = convert(path, tmp_path / "made.mcap")
    assert Capability.UNPUBLISHED in list_reported(result)
    assert Capability.TRUTH in list_reported(convert(result.path, tmp_path / "made.jsonl")) or not found.truth
    monkeypatch.setattr(sys, "argv", ["navsense", "report", str(path), "-o", str(tmp_path / "page.html")])
    cli.main()
    assert (tmp_path / "page.html").stat().st_size > 10_000
    with pytest.raises(ns.NavsenseError, match="no poses that a motion could be"):
        load_motion(path)
    samples = calibration_load.read(path)
    assert samples.field.shape[1] == 3
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["made.jsonl", "made.mcap", "page.html", "run.jsonl"]


@pytest.mark.parametrize("value", ["text", ImportError("no module named lines")])
def test_package_without_its_format_is_an_error_that_names_it(
    run: Run, tmp_path: Path, entries: list[Any], value: object
) -> None:
    def load() -> object:
        if isinstance(value, Exception):
            raise value
        return value

    entries.append(SimpleNamespace(name="jsonl", load=load, dist=SimpleNamespace(name="lines"), value="x:y"))
    with pytest.raises(
        RecordingError, match=r"format 'jsonl' of package lines.*must be a Format; repair or remove lines"
    ):
        run.save(tmp_path / "run.jsonl")
    run.save(tmp_path / "run.npz")  # other suffixes do not import it
