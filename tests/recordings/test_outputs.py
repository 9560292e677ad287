"""One writer per file, no output over an input, and recovery of truncated recordings."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import navsense as ns
from navsense import cli, recordings
from navsense.core import atomic, inputs
from navsense.core.errors import NavsenseError, RecordingError
from navsense.recordings.base import add_path_to_errors, make_recovered_path
from navsense.recordings.convert import convert
from navsense.recordings.format import find_format_by_suffix, get_storage_path
from navsense.recordings.leftovers import find_leftover, list_leftovers, recover, remove_leftover
from navsense.recordings.summary import read_summary

NAMES = ("run.mcap", "run.gz.mcap", "run.bag", "run.db3", "run.npz", "run.parquet", "run.csv", "run.euroc")
HIDDEN = tuple(name for name in NAMES if "mcap" not in name)

CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
import builders
from navsense import recordings
from navsense.recordings import parquet
parquet.GROUP_ROWS = 400
info = recordings.RecordedRun(builders.make_world(), duration=1e6, epoch=100)
writer = recordings.open_writer(Path({path!r}), info)
for second in range(10**6):
    writer.write(builders.make_time_slice(second, 100))
    print(second, flush=True)
    if second == 30:
        sys.stdin.readline()
"""

COMPETITOR = """
import sys
from pathlib import Path
from navsense.core import atomic
from navsense.core import atomic
from navsense.core.errors import RecordingError
path, in_place = Path(sys.argv[1]), sys.argv[2] == "in place"
print("ready", flush=True)
while sys.stdin.readline():
    try:
        opened = atomic.open_in_place(path) if in_place else atomic.HiddenFolder(path)
    except RecordingError:
        opened = None
    print("refused" if opened is None else "opened", flush=True)
    sys.stdin.readline()
    if isinstance(opened, atomic.HiddenFolder):
        opened.release()
    elif opened is not None:
        opened.close()
        path.unlink()
    print("ready", flush=True)
"""

PROBE = """
import sys
from pathlib import Path
from navsense.core import atomic
print("ready", flush=True)
while True:
    atomic.is_being_written(Path(sys.argv[1]))
"""


def make_header(builders: ModuleType) -> recordings.RecordedRun:
    """Return the header of a recording."""
    return recordings.RecordedRun(builders.make_world(), duration=3.0, epoch=100)


def start_program(program: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a Python program that imports what this process imports. Its input and output are pipes."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def read_line(child: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints."""
    assert child.stdout is not None
    return child.stdout.readline().rstrip("\n")


def send_line(child: subprocess.Popen[str]) -> None:
    """Send an empty line to a process."""
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def start_recording(path: Path) -> subprocess.Popen[str]:
    """Start a process that records. Return when it has written some time slices and waits."""
    child = start_program(CHILD.format(here=str(Path(__file__).parent), path=str(path)))
    while read_line(child) != "30":
        assert child.poll() is None
    return child


def kill(child: subprocess.Popen[str]) -> None:
    """Kill a process, so that it cannot close its files."""
    child.send_signal(signal.SIGKILL)
    child.communicate()


def run_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str]:
    """Return the exit code and the output of a command."""
    monkeypatch.setattr(sys, "argv", ["navsense", *map(str, arguments)])
    try:
        cli.main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    return code, output.out + output.err


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("name", [*NAMES, "run.pd0"])
def test_second_writer_is_an_error(builders: ModuleType, tmp_path: Path, name: str) -> None:
    """In one process, from another thread too; the recording of the first one is complete."""
    path = tmp_path / name
    if name == "run.pd0":
        first = atomic.open_in_place(path)
        with pytest.raises(RecordingError, match=r"run\.pd0: is being written"):
            atomic.open_in_place(path)
        first.close()
        atomic.open_in_place(path).close()
        return
    for _ in range(2):  # a finished recording is replaced
        with recordings.open_writer(path, make_header(builders)) as writer:
            writer.write(builders.make_time_slice(0, 100))
            found: list[object] = []

            def other(found: list[object] = found) -> None:
                try:
                    recordings.open_writer(path, make_header(builders))
                except RecordingError as error:
                    found.append(error)

            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            assert "is being written by another process, or by another thread" in str(found)
            with pytest.raises(RecordingError, match="is being written"):
                recordings.open_writer(path, make_header(builders))
            writer.write(builders.make_time_slice(1, 100))
        assert read_summary(path).entries
        assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.requirement("REC-1")
def test_links_and_conversions_count_as_writers(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    with recordings.open_writer(tmp_path / "a.npz", make_header(builders)) as writer:
        writer.write(builders.make_time_slice(0, 100))
    with recordings.open_writer(path, make_header(builders)) as writer:
        writer.write(builders.make_time_slice(0, 100))
        (tmp_path / "link.mcap").symlink_to(path)
        (tmp_path / "hard.mcap").hardlink_to(path)
        for name in ("link.mcap", "hard.mcap", "../" + tmp_path.name + "/run.mcap"):
            with pytest.raises(RecordingError, match="is being written"):
                recordings.open_writer(tmp_path / name, make_header(builders))
        with pytest.raises(RecordingError, match="is being written"):
            convert(tmp_path / "a.npz", path)
    work = atomic.HiddenFolder(path)
    with pytest.raises(RecordingError, match="is being written"):
        recordings.open_writer(path, make_header(builders))
    work.release()
    assert read_summary(path).entries
    with (
        recordings.open_writer(tmp_path / "b.csv", make_header(builders)),
        pytest.raises(RecordingError, match="is being written"),
    ):
        recordings.open_writer(tmp_path / "b.euroc", make_header(builders))  # both are the folder b


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("name", NAMES)
def test_recording_is_recovered_after_a_crash(builders: ModuleType, tmp_path: Path, name: str) -> None:
    """A live writer is not disturbed. All time slices of a killed one are recovered, and its name is free again."""
    path = tmp_path / name
    child = start_recording(path)
    try:
        with pytest.raises(RecordingError, match="is being written"):
            recordings.open_writer(path, make_header(builders))
        (found,) = list_leftovers(tmp_path)
        assert found.is_being_written
        assert "is still being written by another process; wait until it ends" in str(found)
        for read in (read_summary, ns.open, recover):
            if read is not ns.open or name != "run.gz.mcap":
                with pytest.raises(
                    RecordingError, match="is still being written by another process; wait until it ends"
                ):
                    read(path)
        assert not make_recovered_path(path).exists()
    finally:
        kill(child)
    (found,) = list_leftovers(tmp_path)
    assert found.path == path
    assert found.size > 1000
    assert f"navsense recover {'--remove ' if name == 'run.parquet' else ''}{path}" in str(found)
    if name in HIDDEN:
        for look in (read_summary, ns.open):
            with pytest.raises(RecordingError, match=f"navsense recover {path}"):
                look(path)
    if name == "run.parquet":
        with pytest.raises(RecordingError, match=r"run\.parquet.*without its footer.*recover --remove"):
            recover(path)
    else:
        saved = recover(path)
        assert Path(saved.path) == make_recovered_path(path) == tmp_path / name.replace("run", "run-recovered")
        assert read_summary(saved.path).entries
        if name != "run.gz.mcap":
            check_rows(builders, Path(saved.path))
        assert (find_leftover(path) is None) == (name != "run.parquet")
    with recordings.open_writer(path, make_header(builders)) as writer:
        writer.write(builders.make_time_slice(0, 100))
    assert read_summary(path).entries
    assert list_leftovers(tmp_path) == []


def check_rows(builders: ModuleType, path: Path) -> None:
    """Check the recovered IMU rows: those of 31 time slices; for a bag, those of its complete chunks."""
    found = ns.open(path)
    reading = found[builders.IMU if builders.IMU in found else "mav0::body::imu0"]
    assert reading.time.size > 500 if path.suffix == ".bag" else reading.time.size == 3100
    for second in range(reading.time.size // 100):
        rate = builders.make_time_slice(second, 100).readings[builders.IMU]["angular_velocity"]
        assert np.array_equal(reading["angular_velocity"][100 * second : 100 * second + 100], rate)


@pytest.mark.requirement("REC-1")
def test_tables_end_with_their_last_complete_line(builders: ModuleType, tmp_path: Path) -> None:
    """A process can die in the middle of a line, and between two tables of one link."""
    with atomic.replace_file(tmp_path / "x") as part:
        part.touch()
    writer = recordings.open_writer(tmp_path / "run.csv", make_header(builders))
    writer.write(builders.make_time_slice(0, 100))
    hidden = tmp_path / ".run.part"
    copy = tmp_path / ".other.part"
    subprocess.run(["cp", "-r", hidden, copy], check=True)
    writer.abort()
    for file, left in (("rov.base.imu.csv", 41), ("truth.rov.base.rates.csv", 17)):
        lines = (copy / "made" / file).read_bytes().splitlines(keepends=True)
        (copy / "made" / file).write_bytes(b"".join(lines[: left + 1]) + lines[left + 1][:20])
    saved = recover(tmp_path / "other.csv", tmp_path / "saved.csv")
    found = ns.open(tmp_path / "saved.csv")
    assert saved.messages == 41 + 10 + 17 + 50
    assert found[builders.IMU].time.size == 41
    assert found.truth["rov::base"].time.size == 17
    assert not copy.exists()


@pytest.mark.requirement("REC-1")
def test_arrays_of_one_sensor_have_one_length(builders: ModuleType, tmp_path: Path) -> None:
    writer = recordings.open_writer(tmp_path / "run.npz", make_header(builders))
    writer.write(builders.make_time_slice(0, 100))
    copy = tmp_path / ".other.npz.part"
    subprocess.run(["cp", "-r", tmp_path / ".run.npz.part", copy], check=True)
    writer.abort()
    os.truncate(copy / "1.raw", 8 * 33 + 5)  # the clock errors of the first sensor
    recover(tmp_path / "other.npz")
    found = ns.open(tmp_path / "other-recovered.npz")
    assert found[builders.IMU].time.size == 33
    assert found[builders.MAG].time.size == 10


@pytest.mark.requirement("REC-1")
def test_recover_lists_restores_and_removes(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(monkeypatch, capsys, "recover", ".") == (0, ".: no truncated recording\n")
    kill(start_recording(tmp_path / "a.npz"))
    kill(start_recording(tmp_path / "b.parquet"))
    (tmp_path / "c.mcap").write_bytes(b"\x89MCAP0\r\n" + bytes(50))
    code, output = run_command(monkeypatch, capsys, "recover", ".")
    assert code == 0
    assert [line.split(":")[0] for line in output.splitlines()] == ["a.npz", "b.parquet", "c.mcap"]
    assert run_command(monkeypatch, capsys, "info", "a.npz")[1].endswith("navsense recover a.npz\n")
    assert run_command(monkeypatch, capsys, "report", "a.npz")[1].endswith("navsense recover a.npz\n")
    code, output = run_command(monkeypatch, capsys, "recover", "a.npz")
    assert (code, output.startswith("wrote a-recovered.npz: ")) == (0, True)
    assert run_command(monkeypatch, capsys, "recover", "a.npz")[0] == 2
    code, output = run_command(monkeypatch, capsys, "recover", "--remove", ".")
    assert (code, output.splitlines()[0]) == (0, "b.parquet: removed the truncated recording")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-recovered.npz", "c.mcap"]


@pytest.mark.requirement("REC-1")
def test_ros1_bag_without_index_is_recovered_by_chunks(builders: ModuleType, tmp_path: Path) -> None:
    with recordings.open_writer(tmp_path / "whole.bag", make_header(builders)) as writer:
        for second in range(30):
            writer.write(builders.make_time_slice(second, 100))
    data = bytearray((tmp_path / "whole.bag").read_bytes())
    (tmp_path / "cut.bag").write_bytes(data[: len(data) * 2 // 3])
    saved = recover(tmp_path / "cut.bag")
    assert Path(saved.path).name == "cut-recovered.bag"
    known, found = ns.open(tmp_path / "whole.bag"), ns.open(saved.path)
    count = found[builders.IMU].time.size
    assert 0 < count < 3000
    assert np.array_equal(found[builders.IMU].stamp, known[builders.IMU].stamp[:count])
    assert (tmp_path / "cut.bag").exists()


@pytest.mark.requirement("REC-1")
def test_hidden_folders_of_other_programs_are_not_changed(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    thesis = tmp_path / ".run.part" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("text")
    assert list_leftovers(tmp_path) == []
    assert find_leftover(tmp_path / "run.csv") is None
    for arguments in (("--remove", tmp_path), ("--remove", tmp_path / "run.csv"), ("--remove", thesis.parent)):
        assert run_command(monkeypatch, capsys, "recover", *arguments)[0] == 0
    with pytest.raises(RecordingError, match=r"created by another program.*; rename that folder"):
        recordings.open_writer(tmp_path / "run.csv", make_header(builders))
    with pytest.raises(RecordingError, match="has no truncated recording"), atomic.lock_leftover(tmp_path / "run"):
        pass
    assert thesis.read_text() == "text"
    thesis.unlink()
    recordings.open_writer(tmp_path / "run.csv", make_header(builders)).abort()  # an empty folder is used


def crash_between_renames(builders: ModuleType, path: Path) -> None:
    """Create the state after a crash between the two renames that replace a folder."""
    with recordings.open_writer(path, make_header(builders)) as writer:
        writer.write(builders.make_time_slice(0, 100))
    place = path.with_suffix("")
    (place / "former.txt").write_text("former")
    writer = recordings.open_writer(path.with_name(f"other{path.suffix}"), make_header(builders))
    writer.write(builders.make_time_slice(0, 100))
    shutil.copytree(path.with_name(".other.part"), atomic.make_hidden_path(place))
    writer.abort()
    place.rename(atomic.make_hidden_path(place) / ".old")


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("name", ["run.csv", "run.euroc", "run.db3"])
@pytest.mark.parametrize("action", ["recover", "remove", "record"])
def test_old_folder_survives_a_crash_between_two_renames(
    builders: ModuleType, tmp_path: Path, name: str, action: str
) -> None:
    path = tmp_path / name
    crash_between_renames(builders, path)
    if action == "recover":
        recover(path)
    elif action == "remove":
        left = find_leftover(path)
        assert left is not None
        assert remove_leftover(left)
    else:
        atomic.HiddenFolder(tmp_path / "run").release()
    assert (tmp_path / "run" / "former.txt").read_text() == "former"
    assert not atomic.make_hidden_path(tmp_path / "run").exists()


@pytest.mark.requirement("REC-1")
def test_hidden_folder_created_while_opening_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other writer starts after the first check of its lock, and before the file exists."""
    path, probe, works = tmp_path / "run.mcap", atomic.is_being_written, list[atomic.HiddenFolder]()

    def probe_then_start_writer(working_folder: Path) -> bool:
        found = probe(working_folder)
        if not works:
            works.append(atomic.HiddenFolder(path))
        return found

    monkeypatch.setattr(atomic, "is_being_written", probe_then_start_writer)
    with pytest.raises(RecordingError, match="is being written"):
        atomic.open_in_place(path)
    works[0].release()
    atomic.open_in_place(path).close()


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("ways", [("in place", "hidden"), ("hidden", "hidden"), ("in place", "in place")])
def test_at_most_one_of_two_simultaneous_writers_succeeds(tmp_path: Path, ways: tuple[str, str]) -> None:
    workers = [start_program(COMPETITOR, tmp_path / "run.mcap", way) for way in ways]
    successes = []
    try:
        assert [read_line(worker) for worker in workers] == ["ready", "ready"]
        for _ in range(100):
            for worker in workers:
                send_line(worker)
            successes.append([read_line(worker) for worker in workers].count("opened"))
            for worker in workers:
                send_line(worker)
            assert [read_line(worker) for worker in workers] == ["ready", "ready"]
    finally:
        for worker in workers:
            kill(worker)
    assert max(successes) == 1


@pytest.mark.requirement("REC-1")
def test_probe_does_not_disturb_a_writer(tmp_path: Path) -> None:
    """The probe holds a shared lock for some microseconds; a writer tries again for `LOCK_TIMEOUT`."""
    place = tmp_path / "run.npz"
    prober = start_program(PROBE, atomic.make_hidden_path(place))
    try:
        assert read_line(prober) == "ready"
        for _ in range(500):
            atomic.HiddenFolder(place).release()
        assert prober.poll() is None
    finally:
        kill(prober)


def test_two_probes_do_not_report_a_writer(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    assert not atomic.is_being_written(tmp_path)
    os.close(descriptor)


@pytest.mark.requirement("REC-1")
def test_locks_over_nfs(builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS refuses an exclusive lock on a file that is open for reading. A file that cannot be locked is written."""
    flock, count = fcntl.flock, []

    def nfs(descriptor: int, operation: int) -> None:
        read_only = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
        if operation & fcntl.LOCK_EX and stat.S_ISREG(os.fstat(descriptor).st_mode) and read_only:
            count.append(descriptor)
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", nfs)
    path = tmp_path / "run.npz"
    for _ in range(2):
        with recordings.open_writer(path, make_header(builders)) as writer:
            writer.write(builders.make_time_slice(0, 100))
            if path.exists():
                assert atomic.is_being_written(path)
    assert count == []
    for number, busy in ((errno.EBADF, False), (errno.ESTALE, False), (errno.EWOULDBLOCK, True), (errno.EACCES, True)):

        def fail(_descriptor: int, _operation: int, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", fail)
        assert atomic.is_being_written(path) == busy


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("name", ["run.bag", "run.db3", "run.npz", "run.csv", "run.euroc"])
def test_second_run_keeps_the_crashed_recording(
    builders: ModuleType, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The largest one is kept for each name: a third run that crashes at once does not replace it."""
    path = tmp_path / name
    kill(start_recording(path))
    for _ in range(2):
        writer = recordings.open_writer(path, make_header(builders))
        hidden = atomic.make_hidden_path(get_storage_path(path))
        shutil.copytree(hidden, tmp_path / "copy")
        writer.close()
        shutil.copytree(tmp_path / "copy", hidden)  # the short run crashed
        shutil.rmtree(tmp_path / "copy")
    kept = atomic.make_crashed_path(path)
    places = [get_storage_path(kept), get_storage_path(path)]
    assert f"recover it with: navsense recover {places[0]}\n" in caplog.text
    assert [left.target for left in list_leftovers(tmp_path)] == places
    left = find_leftover(path)
    assert left is not None
    remove_leftover(left)
    saved = recover(kept)
    check_rows(builders, Path(saved.path))
    assert list_leftovers(tmp_path) == []


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("is_link", [False, True])
def test_second_run_keeps_the_truncated_mcap(
    builders: ModuleType, tmp_path: Path, is_link: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The largest one is kept. A complete recording with that name is not replaced."""

    def record(slices: int) -> None:
        with recordings.open_writer(path, make_header(builders)) as writer:
            for time_slice in range(slices):
                writer.write(builders.make_time_slice(100 * time_slice, 100 * time_slice + 100))

    path = tmp_path / "run.mcap"
    if is_link:
        (tmp_path / "store").mkdir()
        path.symlink_to(tmp_path / "store" / "target.mcap")
    kept = atomic.make_crashed_path(atomic.resolve_link(path))
    record(1)
    record(2)
    assert not kept.exists()
    os.truncate(path, path.stat().st_size - 8)
    truncated = path.read_bytes()
    for _ in range(2):
        record(1)
        assert kept.read_bytes() == truncated
        assert f"recover it with: navsense recover {kept}\n" in caplog.text
        caplog.clear()
        assert read_summary(path).entries
        os.truncate(path, path.stat().st_size - 8)  # the short run crashed
    assert recover(kept, tmp_path / "saved.mcap").messages > 0
    kept.write_bytes((tmp_path / "saved.mcap").read_bytes())
    before = path.read_bytes()
    with pytest.raises(RecordingError, match="contains a truncated recording; recover it with: navsense recover"):
        record(1)
    assert (path.read_bytes(), kept.stat().st_size) == (before, (tmp_path / "saved.mcap").stat().st_size)
    kept.unlink()
    record(1)
    assert kept.read_bytes() == before


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("name", NAMES)
def test_outputs_follow_links(builders: ModuleType, tmp_path: Path, name: str) -> None:
    """Also before the target exists. After a crash, `recover` finds the recording by the name of the link."""
    store = tmp_path / "store"
    store.mkdir()
    path = tmp_path / name
    link = get_storage_path(path)
    target = store / get_storage_path(Path(f"target{name.removeprefix('run')}")).name
    link.symlink_to(target)
    if (found := find_format_by_suffix(path)) and found.is_folder:
        target.mkdir()  # a folder must exist
    for _ in range(2):
        with recordings.open_writer(path, make_header(builders)) as writer:
            writer.write(builders.make_time_slice(0, 100))
        assert link.is_symlink()
        assert target.exists()
        assert [entry.name for entry in tmp_path.iterdir() if entry != store] == [link.name]
        assert read_summary(path).entries
    if name in HIDDEN:
        writer = recordings.open_writer(path, make_header(builders))
        writer.write(builders.make_time_slice(0, 100))
        left = find_leftover(path)
        assert left is not None
        assert left.is_being_written
        writer.abort()


@pytest.mark.requirement("REC-1")
def test_recovered_content_is_listed(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("k.mcap", "d.db3", "c.csv"):
        kill(start_recording(tmp_path / name))
    assert "recover it with: navsense recover k.mcap" in run_command(monkeypatch, capsys, "recover", ".")[1]
    for name, disk in (("k.mcap", "k-recovered.mcap"), ("d.db3", "d-recovered"), ("c.csv", "c-recovered")):
        code, text = run_command(monkeypatch, capsys, "recover", name)
        assert (code, text.startswith(f"wrote {disk}: ")) == (0, True)
        assert Path(disk).exists()
    code, text = run_command(monkeypatch, capsys, "recover", ".")
    assert "k.mcap: " in text
    assert text.endswith("recovered already: k-recovered.mcap\n")
    os.utime("k-recovered.mcap", (0, 0))  # an earlier recording of this name was recovered
    assert "navsense recover k.mcap" in run_command(monkeypatch, capsys, "recover", ".")[1]


WORLD = """<sdf version="1.9"><world name="w"><include><uri>model://rov/model.sdf</uri></include></world></sdf>"""
MODEL = """<sdf version="1.9"><model name="rov"><link name="l">
<sensor name="imu" type="imu"><update_rate>50</update_rate></sensor></link></model></sdf>"""
LOG = "time,x,y,z,qw,qx,qy,qz\n" + "".join(f"{n},{n},0,0,1,0,0,0\n" for n in range(9))
FAULT = '[[fault]]\nof = "rov::l::imu"\nkind = "stuck"\nstart = 1.0\nend = 2.0\n'


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder of the process, with a world, its model, a log, faults and a recording."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "rov").mkdir(parents=True)
    (tmp_path / "models" / "rov" / "model.sdf").write_text(MODEL)
    (tmp_path / "w.sdf").write_text(WORLD)
    (tmp_path / "drive.csv").write_text(LOG)
    ns.record(ns.load("w.sdf", path="models"), ["drive.mcap", "bag.db3"], motion="drive.csv")
    return tmp_path


@pytest.mark.requirement("REC-1")
def test_no_command_writes_to_its_inputs(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ("run", "w.sdf", "--path", "models", "--motion", "drive.mcap", "-o")
    describe = ("describe", "w.sdf", "--path", "models", "--kalibr")
    Path("link.mcap").symlink_to("drive.mcap")
    Path("hard.mcap").hardlink_to("drive.mcap")
    Path("models/rov/model.mcap").symlink_to("model.sdf")
    Path("mesh.mcap").symlink_to("models/rov/model.sdf")
    Path("page.html").symlink_to("drive.mcap")
    Path("drawing.png").symlink_to("models/rov/model.sdf")
    Path("values.json").symlink_to("drive.mcap")
    before = {path: path.read_bytes() for path in working_folder.rglob("*") if path.is_file()}
    for arguments in (
        (*run, "drive.mcap"),
        (*run, "./models/../drive.mcap"),
        (*run, "link.mcap"),
        (*run, "hard.mcap"),
        (*run, "mesh.mcap"),
        (*run, "new.npz", "-o", "drive.mcap"),
        (*describe, "w.sdf"),
        (*describe, "models/rov/model.sdf"),
        ("describe", "w.sdf", "--path", "models", "--picture", "drawing.png"),
        ("convert", "drive.mcap", "hard.mcap"),
        ("convert", "bag", "bag.db3"),
        ("convert", "bag.db3", "bag/bag.mcap"),
        ("recover", "drive.mcap", "-o", "link.mcap"),
        ("report", "drive.mcap", "-o", "page.html"),
    ):
        code, output = run_command(monkeypatch, capsys, *arguments)
        assert code == 2, arguments
        assert "of the same command" in output or "that the same command reads" in output, output
        assert {path: path.read_bytes() for path in working_folder.rglob("*") if path.is_file()} == before
    assert run_command(monkeypatch, capsys, *run, "other.mcap")[0] == 0


SURFACES = """<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf"><world name="w">
<navsense:current><replay file="flow.csv"/></navsense:current>
<model name="bed"><static>true</static><link name="l">
<collision name="a"><geometry><heightmap><uri>bed.txt</uri><size>10 10 1</size></heightmap></geometry></collision>
<collision name="b"><geometry><mesh><uri>rock.obj</uri></mesh></geometry></collision></link></model>
<model name="rov"><pose>0 0 5 0 0 0</pose><link name="l"><sensor name="imu" type="imu"><update_rate>50</update_rate>
</sensor><sensor name="s" type="range"><update_rate>10</update_rate><pose degrees="true">0 0 0 0 90 0</pose>
<range><min>0.1</min><max>50</max></range></sensor></link></model></world></sdf>"""
FILES = {
    "surfaces.sdf": SURFACES,
    "flow.csv": "time,x,y,z\n0,0.1,0,0\n9,0.1,0,0\n",
    "bed.txt": "0 0 0\n0 1 0\n0 0 0\n",
    "rock.obj": "v -1 -1 0\nv 1 -1 0\nv 0 2 0\nf 1 2 3\n",
    "drive.csv": LOG.replace(",0,0,1,", ",0,5,1,"),
    "faults.toml": FAULT,
}
"""A world with surfaces and a current in files, a log of its motion, and faults."""


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("output", "suffix"),
    [
        (("run", "-o"), ".mcap"),
        (("run", "-o"), ".npz"),
        (("run", "-o"), ".bag"),
        (("run", "-o"), ".parquet"),
        (("describe", "--kalibr"), ""),
        (("describe", "--kalibr"), ".yaml"),
        (("describe", "--picture"), ".png"),
        (("describe", "--picture"), ".svg"),
    ],
)
def test_output_to_a_file_of_the_world_is_an_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    output: tuple[str, str],
    suffix: str,
) -> None:
    """Each output names each input, by a link if its suffix differs."""
    monkeypatch.chdir(tmp_path)
    for file, text in FILES.items():
        Path(file).write_text(text)
    target = Path(name)
    if suffix:
        target = Path(f"link{suffix}")
        target.symlink_to(name)
    inputs_of = ("surfaces.sdf", "--motion", "rov=drive.csv", "--faults", "faults.toml")
    code, said = run_command(monkeypatch, capsys, output[0], *inputs_of, output[1], target)
    assert code == 2, said
    assert "of the same command" in said or "that the same command reads" in said, said
    assert {file: Path(file).read_text() for file in FILES} == FILES


@pytest.mark.requirement("REC-1")
def test_no_python_function_writes_to_its_inputs(working_folder: Path) -> None:
    world = ns.load("w.sdf", path="models")
    assert {Path(name).name for name in world.sources} == {"w.sdf", "model.sdf"}
    Path("w.mcap").symlink_to("w.sdf")
    before = {path: path.read_bytes() for path in working_folder.rglob("*") if path.is_file()}
    run = ns.simulate(world, 1.0, motion="drive.mcap")
    for write in (
        lambda: ns.record(world, "drive.mcap", motion="drive.mcap"),
        lambda: ns.record(world, "w.mcap", motion="drive.mcap"),
        lambda: run.save("drive.mcap"),
        lambda: run.save("w.mcap"),
        lambda: convert("drive.mcap", "drive.mcap"),
        lambda: recover("drive.mcap", "drive.mcap"),
    ):
        with pytest.raises(NavsenseError, match="is an input of the same command"):
            write()
    assert {path: path.read_bytes() for path in working_folder.rglob("*") if path.is_file()} == before
    # Inputs of an earlier call are not inputs of this one.
    ns.open("drive.mcap")
    ns.record(world, "drive.mcap", 1.0, motion="drive.csv")


def test_input_contexts_nest() -> None:
    with inputs.collect_inputs(["/known"]) as outer:
        with inputs.collect_inputs(["/own"]) as inner:
            inputs.add_input("/read")
        assert inner == {"/own", "/read"}
        assert outer == {"/known", "/own", "/read"} == inputs.current_inputs()
    assert not inputs.current_inputs()


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("name", ["run.mcap", "run.bag", "run.db3", "run.pd0"])
def test_error_during_a_run_names_the_file(builders: ModuleType, tmp_path: Path, name: str) -> None:
    time_slice = builders.make_time_slice(1, 100)
    time_slice.readings[builders.IMU].clock_error[3] = 1e10
    if name == "run.pd0":
        with pytest.raises(RecordingError, match=r"^run\.pd0: stamp"), add_path_to_errors(Path(name)):
            raise RecordingError("stamp")
        return
    writer = recordings.open_writer(tmp_path / name, make_header(builders))
    writer.write(builders.make_time_slice(0, 100))
    with pytest.raises(RecordingError, match=rf"^{tmp_path / name}: stamp.*rov::base::clock"):
        writer.write(time_slice)
    writer.close()


@pytest.mark.parametrize("suffix", [".csv", ".euroc"])
@pytest.mark.parametrize("foreign", ["notes.txt", "mav0/cam0/data.csv", "navsense.json"])
def test_folder_is_replaced_only_if_all_files_belong_to_its_recording(
    tmp_path: Path, builders: ModuleType, suffix: str, foreign: str
) -> None:
    """A recording replaces an older recording. A folder with a file of another program is unchanged."""

    def record() -> None:
        with recordings.open_writer(tmp_path / f"dive{suffix}", make_header(builders)) as writer:
            for second in range(3):
                writer.write(builders.make_time_slice(second, 100))

    record()
    record()
    file = tmp_path / "dive" / foreign
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}", encoding="utf-8")
    before = {path: path.read_bytes() for path in (tmp_path / "dive").rglob("*") if path.is_file()}
    with pytest.raises(RecordingError, match=rf"dive{suffix}.*holds something else.*; choose another name"):
        record()
    assert {path: path.read_bytes() for path in (tmp_path / "dive").rglob("*") if path.is_file()} == before
