"""Kernels run with any state of their cache. In any environment, navsense runs or reports an error."""

from __future__ import annotations

import errno
import importlib.util
import logging
import os
import pickle
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import config

import navsense
from navsense import cli
from navsense.core import kernel_cache
from navsense.core.errors import RecordingError, Where
from navsense.core.kernels import Kernel
from navsense.report import write
from navsense.streams.tcp_server import TcpServer

QUADROTOR = Path(__file__).resolve().parent.parent / "examples" / "quadrotor.sdf"
TINY = '"""A module."""\n\n\ndef twice(x):\n    """Return two of it."""\n    return 2.0 * x\n'

Made = Callable[[], Any]


@pytest.fixture
def make_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Return a function that creates the dispatcher of a kernel as a new process does, with its cache in `tmp_path`."""
    place = tmp_path / "tiny.py"
    place.write_text(TINY, encoding="utf-8")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # bytecode would create `__pycache__`, a cache folder
    specification = importlib.util.spec_from_file_location("tiny", place)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "tiny", module)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))

    def make() -> Any:
        monkeypatch.setattr(kernel_cache, "_WARNINGS", [])
        return Kernel(vars(module)["twice"]).compile()

    return make


def take_warnings(log: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings since the last call."""
    found = [record.getMessage() for record in log.records if record.levelno >= logging.WARNING]
    log.clear()
    return found


def flip_bit(content: bytes) -> bytes:
    """Return the content with one bit in the middle changed."""
    middle = len(content) // 2
    return content[:middle] + bytes((content[middle] ^ 1,)) + content[middle + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "garbage": lambda content: bytes(range(256)) * 2,
    "one bit": flip_bit,
    "zeros": lambda content: bytes(len(content)),
    "another version": lambda content: pickle.dumps("0.1") + b"unknown",
}


@pytest.mark.compiled
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_cache_file_logs_one_warning_and_is_replaced(
    make_cache: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, suffix: str
) -> None:
    assert make_cache()(1.5) == 3.0
    (file,) = (tmp_path / "cache").rglob(f"*.{suffix}")
    file.write_bytes(DAMAGE[kind](file.read_bytes()))
    assert not take_warnings(caplog)
    kernel = make_cache()
    assert (kernel(1.5), kernel(np.float32(1.5))) == (3.0, 3.0)
    (text,) = take_warnings(caplog)
    assert str(file) in text
    assert "is damaged" in text
    assert "is replaced" in text
    again = make_cache()
    assert again(1.5) == 3.0
    assert sum(again.stats.cache_hits.values()) == 1
    assert not take_warnings(caplog)


@pytest.mark.compiled
def test_missing_data_file_is_written_again(make_cache: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_cache()(1.5)
    (file,) = (tmp_path / "cache").rglob("*.nbc")
    file.unlink()
    assert make_cache()(1.5) == 3.0
    assert file.is_file()
    assert not take_warnings(caplog)


@pytest.mark.compiled
def test_machine_code_for_other_argument_types_is_not_run(make_cache: Made, tmp_path: Path) -> None:
    """Two processes that compile at the same time can leave the index of one and the data of the other."""
    make_cache()(1.5)
    (file,) = (tmp_path / "cache").rglob("*.nbc")
    of_double = file.read_bytes()
    for path in (tmp_path / "cache").rglob("*.nb?"):
        path.unlink()
    make_cache()(2)
    file.write_bytes(of_double)
    assert make_cache()(2) == 4.0


@pytest.mark.compiled
@pytest.mark.parametrize("folder", ["/dev/null/cache", "a file"])
def test_without_a_writable_folder_kernels_are_compiled_in_memory(
    make_cache: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, folder: str
) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "__pycache__").touch()
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / folder))
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "/dev/null")
    kernel = make_cache()
    assert (kernel(1.5), kernel(2)) == (3.0, 4.0)
    (text,) = take_warnings(caplog)
    assert text.startswith("the cache of compiled kernels cannot be used: no cache folder is writable; ")
    assert "set NUMBA_CACHE_DIR" in text


@pytest.mark.compiled
def test_full_disk_logs_one_warning(
    make_cache: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kernel, limits = make_cache(), resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        assert (kernel(1.5), kernel(2)) == (3.0, 4.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (text,) = take_warnings(caplog)
    assert os.strerror(errno.EFBIG) in text
    assert not list((tmp_path / "cache").rglob("*.nb*"))


def run_command(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in another environment."""
    command = [sys.executable, "-m", "navsense", *map(str, arguments)]
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0", "PYTHONPATH": path, **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=110)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NUMBA_NUM_THREADS", "0"),
        ("NUMBA_NUM_THREADS", "many"),
        ("NUMBA_OPT", "x"),
        ("NUMBA_DISABLE_JIT", "x"),
        ("NUMBA_CPU_NAME", "unknown"),
        ("NUMBA_CPU_FEATURES", "unknown"),
    ],
)
def test_invalid_numba_variable_is_one_error_with_its_name(name: str, value: str, tmp_path: Path) -> None:
    """An existing recording is unchanged."""
    older = tmp_path / "older.mcap"
    older.write_bytes(b"an older recording")
    done = run_command("run", QUADROTOR, "--duration", "0.01", "-o", older, **{name: value})
    assert older.read_bytes() == b"an older recording"
    assert [path.name for path in tmp_path.iterdir()] == ["older.mcap"]
    assert done.returncode == 2
    (error,) = [line for line in done.stderr.splitlines() if not line.startswith("simulated")]
    assert error.startswith(f"error: {name}: {value}; ")
    assert error.endswith("; correct the variable or unset it")


@pytest.mark.compiled
def test_processor_name_known_to_llvm_is_allowed() -> None:
    script = "from navsense.core.kernels import load_numba; load_numba()"
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=110)


@pytest.fixture
def without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each start of a thread fail, as at the process limit."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


def test_run_in_memory_needs_no_second_thread(request: pytest.FixtureRequest) -> None:
    world = navsense.load(QUADROTOR)
    with_two = navsense.simulate(world, 0.5, seed=3)
    request.getfixturevalue("without_threads")
    with_one = navsense.simulate(world, 0.5, seed=3)
    for sensor in world.sensors:
        single, double = with_one[sensor.name], with_two[sensor.name]
        for name, values in double.arrays.items():
            assert single.arrays[name].tobytes() == values.tobytes()


@pytest.mark.parametrize(("suffix", "code"), [("mcap", 0), ("csv", 2), ("parquet", 2)])
def test_recording_without_threads_is_written_or_an_error(
    without_threads: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    suffix: str,
    code: int,
) -> None:
    path = tmp_path / f"out.{suffix}"
    monkeypatch.setattr(sys, "argv", ["navsense", "run", str(QUADROTOR), "--duration", "0.01", "-o", str(path)])
    ended = 0
    try:
        cli.main()
    except SystemExit as end:
        ended = int(end.code or 0)
    assert ended == code
    if code:
        (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
        assert error == (
            f"error: {path}: cannot be written: the system cannot start another thread;"
            " end other programs or raise the limit on processes (ulimit -u)"
        )
        assert not list(tmp_path.iterdir())


def test_port_without_threads_is_an_error(without_threads: None) -> None:
    with pytest.raises(RecordingError, match="cannot start another thread"):
        TcpServer("127.0.0.1", 0, Where("pd0+tcp://127.0.0.1:0"))


@pytest.mark.compiled
def test_report_with_a_non_utf8_name_is_written(tmp_path: Path) -> None:
    """An ASCII locale decodes all non-ASCII names this way."""
    path, page = tmp_path / os.fsdecode(b"\xff.mcap"), tmp_path / "page.html"
    navsense.record(navsense.load(QUADROTOR), path, 0.1)
    write(path, page)
    assert r"\udcff.mcap" in page.read_text(encoding="utf-8")
