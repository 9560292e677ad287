"""Input files that are too large or not regular files are rejected without waiting and without memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from navsense.calibration.load import read as read_samples
from navsense.calibration.result import Calibration
from navsense.core import inputs
from navsense.core.errors import (
    CalibrationError,
    FieldError,
    MotionError,
    NavsenseError,
    SdfError,
    SensorError,
    SimulationError,
)
from navsense.environment.signal import Signal
from navsense.fault_file import with_faults
from navsense.motion import load as load_log
from navsense.recordings.convert import convert
from navsense.recordings.currents import read_current
from navsense.recordings.leftovers import recover
from navsense.recordings.summary import read_summary
from navsense.sdf import load
from navsense.sensors import catalogue
from navsense.world import World

DOORS: list[tuple[Callable[[Any], object], type[NavsenseError], str]] = [
    (Signal.from_file, FieldError, "signal"),
    (load_log, MotionError, "log"),
    (load, SdfError, "file"),
    (lambda path: with_faults(World("w", ()), path), SimulationError, "file of faults"),
    (catalogue.read_part, SensorError, "part"),
    (Calibration.load, CalibrationError, "calibration"),
]
"""Functions that read a file: the function, its error class, and the file's name in errors."""

BAGS: list[Callable[[Any], object]] = [
    read_samples,
    read_current,
    read_summary,
    lambda path: convert(path, "out.npz"),
]
"""Functions that open a bag by random access."""


@pytest.mark.parametrize(("door", "kind", "problem"), DOORS)
def test_pipe_and_device_are_rejected(
    door: Callable[[Any], object], kind: type[NavsenseError], problem: str, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), Path("/proc/version")):
        with pytest.raises(kind) as caught:
            door(path)
        assert str(caught.value).startswith(f"{path}: {problem}: is a device, a pipe or a system file; must be ")


@pytest.mark.parametrize(("door", "kind", "problem"), DOORS)
def test_file_that_is_too_large_is_not_read(
    door: Callable[[Any], object],
    kind: type[NavsenseError],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = tmp_path / "large.csv"
    large.touch()
    os.truncate(large, inputs.MAX_FILE_SIZE + 1)
    monkeypatch.setattr(os, "open", None)
    with pytest.raises(kind, match=rf"large.csv: {problem}: too large; must be at most \d+ MiB"):
        door(large)


@pytest.mark.parametrize("tag", ["signal name='a'", "motion"])
def test_error_in_a_world_names_the_element(tag: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    inside = f"<navsense:{tag} file='pipe.csv'/>"
    body = inside if "signal" in tag else f"<model name='m'><link name='l'/>{inside}</model>"
    world = tmp_path / "w.sdf"
    world.write_text(f"<sdf version='1.12'>\n<world name='w'>\n{body}</world></sdf>", encoding="utf-8")
    with pytest.raises(SdfError, match=r"w.sdf:3: <navsense:(signal|motion)> .*pipe.csv: (signal|log): is a device"):
        load(world)


def test_any_line_end_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert list(inputs.read_lines(str(path), inputs.FileKind("file", FieldError, "text"))) == ["a", "b", "c"]


def test_toml_can_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\n")
    kind = inputs.FileKind("table", FieldError, "text")
    assert inputs.read_toml(str(path), kind) == {"a": 1}
    path.write_bytes(b"\xef\xbb\xbfa = 1\nb = \n")
    with pytest.raises(FieldError, match=r"^.*a\.toml:2: "):
        inputs.read_toml(str(path), kind)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_split_across_read_blocks(tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts end inside lines, line ends and characters."""
    path = tmp_path / "a.csv"
    lines = ["\N{GREEK SMALL LETTER MU}" * (k % 7) for k in range(50)] + ["last"]
    path.write_bytes(end.join(lines).encode("utf-8-sig"))
    for size in (1, 2, 3, 5, 64):
        monkeypatch.setattr(inputs, "READ_SIZE", size)
        assert list(inputs.read_lines(str(path), inputs.FileKind("file", FieldError, "text"))) == lines


@pytest.mark.parametrize("door", BAGS)
@pytest.mark.parametrize("suffix", [".bag", ".db3", ".mcap"])
def test_pipe_is_rejected_as_bag(door: Callable[[Any], object], suffix: str, tmp_path: Path) -> None:
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    with pytest.raises(NavsenseError, match=inputs.SPECIAL):
        door(pipe)


@pytest.mark.parametrize("door", [*BAGS, recover])
@pytest.mark.parametrize("suffix", ["", ".bag", ".db3", ".mcap"])
def test_proc_file_is_rejected_as_recording(door: Callable[[Any], object], suffix: str, tmp_path: Path) -> None:
    """/proc files appear as empty regular files, and reading /proc/kmsg waits for the next kernel message."""
    file = tmp_path / f"link{suffix}"
    file.symlink_to("/proc/version")
    assert not inputs.is_special(Path(__file__).stat())
    with pytest.raises(NavsenseError, match=f"{inputs.SPECIAL}|suffix"):
        door(file)


@pytest.mark.parametrize("door", [read_samples, read_current, read_summary])
@pytest.mark.parametrize("suffix", [".bag", ".db3", ".mcap"])
def test_symlink_to_itself_is_rejected_as_bag(door: Callable[[Any], object], suffix: str, tmp_path: Path) -> None:
    link = tmp_path / f"link{suffix}"
    link.symlink_to(link.name)
    with pytest.raises(NavsenseError, match=r"(?i)too many levels|does not exist"):
        door(link)


METADATA = """rosbag2_bagfile_information:
  version: 5
  storage_identifier: {storage}
  relative_file_paths: ["{name}"]
  duration: {{nanoseconds: 0}}
  starting_time: {{nanoseconds_since_epoch: 0}}
  message_count: 0
  topics_with_message_count: []
  compression_format: ""
  compression_mode: ""
"""


@pytest.mark.parametrize("door", BAGS)
@pytest.mark.parametrize(
    ("name", "storage"), [("a.db3", "sqlite3"), ("a.mcap", "mcap"), ("a", "mcap"), ("metadata.yaml", "mcap")]
)
def test_pipe_in_a_bag_folder_is_rejected(
    door: Callable[[Any], object], name: str, storage: str, tmp_path: Path
) -> None:
    """rosbags opens each file that metadata.yaml lists."""
    (tmp_path / "metadata.yaml").write_text(METADATA.format(name=name, storage=storage), encoding="utf-8")
    if name == "metadata.yaml":
        os.truncate(tmp_path / name, inputs.MAX_METADATA + 1)
    else:
        os.mkfifo(tmp_path / name)
    with pytest.raises(NavsenseError, match=r"is a device, a pipe or a system file|too large; must be at most 16 MiB"):
        door(tmp_path)


@pytest.mark.parametrize("door", BAGS)
def test_database_name_is_not_interpreted_as_uri(door: Callable[[Any], object], tmp_path: Path) -> None:
    """SQLite interprets the name as a URI: %70ipe would be the file pipe in the same folder."""
    os.mkfifo(tmp_path / "pipe.db3")
    folder = tmp_path / "bag"
    folder.mkdir()
    (folder / "..%2Fpipe.db3").touch()
    (folder / "metadata.yaml").write_text(METADATA.format(name="..%2Fpipe.db3", storage="sqlite3"), encoding="utf-8")
    with pytest.raises(NavsenseError, match=r"%; the path of a \.db3 bag must not have % \? #; rename it"):
        door(folder)


DEEP = 100_000


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("\na = " + "[" * DEEP + "]" * DEEP, 2, "101 deep; arrays and tables may be nested 100 deep"),
        ("a = " + "{a=" * DEEP + "1" + "}" * DEEP, 1, "101 deep; arrays and tables may be nested 100 deep"),
        ("a = '#'\n[" + ".".join("a" * DEEP) + "]", 2, "101 deep; arrays and tables may be nested 100 deep"),
        ("a" + ".a" * DEEP + " = 1", 1, "101 deep; arrays and tables may be nested 100 deep"),
        ('b = """\n[\n"""\na = ' + "9" * 5000, 4, "999...; must have at most 400 digits"),
        ("a = 1\nb = = 2", 2, "Invalid value; must be TOML"),
        ("a = 1\nd = 2000-13-01", 2, "must be TOML"),
        ("a = 'b", 0, "must be TOML"),
        ("#" * (inputs.MAX_TOML + 1), 0, "too large; must be at most 1 MiB"),
    ],
)
def test_invalid_toml_is_an_error(text: str, line: int, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FieldError) as caught:
        inputs.read_toml(str(path), inputs.FileKind("table", FieldError, "text"))
    assert str(caught.value).startswith(f"{path}:{line}: table: " if line else f"{path}: table: ")
    assert problem in str(caught.value)


def test_brackets_in_strings_do_not_count_as_nesting(tmp_path: Path) -> None:
    """Brackets, dots and digits in strings and comments do not count; neither do many tables one after another."""
    path = tmp_path / "a.toml"
    many = "[" * 300
    text = f"a = \"{many}\" # {many}\nb = '{many}'\nc = \"\"\"\n{many}\n\"\"\"\nd = '''{'9' * 500}'''\n"
    path.write_text(text + "".join(f"[[t]]\nx = [1.0, {{a = 2.5}}]\n[u.v{i}]\n" for i in range(300)), encoding="utf-8")
    found = inputs.read_toml(str(path), inputs.FileKind("table", FieldError, "text"))
    assert (found["a"], found["b"], found["c"], found["d"]) == (many, many, f"{many}\n", "9" * 500)
    assert len(found["t"]) == 300


@pytest.mark.parametrize("text", ["[" * DEEP + "]" * DEEP, '{"a":' * 200 + "1" + "}" * 200, "9" * 5000, "[1", "\0"])
def test_invalid_json_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"deep|digits|Expecting"):
        inputs.parse_json(text)
    assert inputs.parse_json("[" * 100 + "]" * 100)


def test_error_message_prints_any_value() -> None:
    """Python prints no integer of more than 4300 digits, and no list that is nested too deep."""
    deep: list[Any] = []
    for _ in range(DEEP):
        deep = [deep]
    assert str(FieldError("a", 10**5000)) == "a: a value of type int that cannot be printed"
    assert str(FieldError("a", deep)) == "a: a value of type list that cannot be printed"


def test_file_replaced_by_a_pipe_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program may replace a file after the check and before the open."""
    monkeypatch.setattr(inputs, "check_regular_file", lambda *_: None)
    os.mkfifo(tmp_path / "pipe")
    kind = inputs.FileKind("file", FieldError, "text")
    assert inputs.read_bytes(str(tmp_path / "pipe"), kind) == b""
