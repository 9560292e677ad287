"""Messages that some formats cannot store, empty names, and errors of existing files."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from mcap.writer import Writer
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Reader as Reader1

import navsense as ns
from navsense import recordings, report
from navsense.cli import cli
from navsense.core.errors import RecordingError, SimulationError
from navsense.recordings.base import make_recovered_path
from navsense.recordings.convert import convert
from navsense.recordings.mcap.recovery import recover_mcap
from navsense.recordings.summary import read_summary

BOOL = ("std_msgs/msg/Bool", b"bool data\n", b"\0\1\0\0\1")
EMPTY = ("std_msgs/msg/Empty", b"")
SECOND = 1_000_000_000

pytestmark = pytest.mark.requirement("REC-1:convert")


def write_mcap(path: Path, *topics: tuple[str, str, bytes, bytes], times: tuple[int, ...] = (5 * SECOND,)) -> Path:
    """Write messages to an MCAP file by the package mcap: topic, type, definition and bytes, at times (ns)."""
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start("ros2", "elsewhere")
        for topic, kind, text, data in topics:
            channel = writer.register_channel(topic, "cdr", writer.register_schema(kind, "ros2msg", text))
            for time in times:
                writer.add_message(channel, time, data, time)
        writer.finish()  # type: ignore[no-untyped-call]
    return path


LATE = {
    "b.bag": (2**32 * SECOND, "4294967296 in a bag of ROS 1"),
    "b.db3": (2**63, "9223372036.854775808 in a bag of ROS 2"),
    "b": (2**63, "9223372036.854775808 in a bag of ROS 2"),
}


@pytest.mark.parametrize("name", LATE)
def test_times_beyond_the_range_of_a_bag(tmp_path: Path, name: str) -> None:
    last, below = LATE[name]
    source = write_mcap(tmp_path / "a.mcap", ("/b", *BOOL), times=(5 * SECOND, last - 1))
    convert(source, tmp_path / name)
    with AnyReader([tmp_path / name.removesuffix(".db3")]) as reader:
        assert [time for _, time, _ in reader.messages()] == [5 * SECOND, last - 1]
    for time in (last, 2**64 - 1):
        source = write_mcap(tmp_path / "c.mcap", ("/b", *BOOL), times=(5 * SECOND, time))
        with pytest.raises(RecordingError) as found:
            convert(source, tmp_path / f"late_{name}")
        assert str(found.value).startswith(f"{tmp_path / f'late_{name}'}: time of a message on topic /b, in seconds: ")
        assert str(found.value).endswith(f"; must be below {below}")
        assert not list(tmp_path.glob("*late*"))
    assert convert(source, tmp_path / "d.mcap").count == 2, "an MCAP file has 64 bits without a sign"


def test_topic_without_a_name(tmp_path: Path) -> None:
    """ROS 1 bags do not support it; every other format does."""
    source = write_mcap(tmp_path / "a.mcap", ("", *BOOL), ("/b", *BOOL))
    why = "no bag of ROS 1 can be read that has a topic without a name"
    result = convert(source, tmp_path / "b.bag")
    assert (result.count, result.losses) == (1, [f"topic (without a name): {why}"])
    assert [entry.name for entry in read_summary(result.path).entries] == ["/b"]
    for name in ("c.db3", "c.mcap", "d"):
        result = convert(source, tmp_path / name)
        assert (result.count, result.losses) == (2, [])
        assert [entry.name for entry in read_summary(result.path).entries] == ["", "/b"]
    with pytest.raises(RecordingError, match=f"nothing in it can be converted: {why}"):
        convert(write_mcap(tmp_path / "e.mcap", ("", *BOOL)), tmp_path / "e.bag")


@pytest.mark.parametrize("data", [b"\0\1\0\0", b"\0\1\0\0\0", b"\0\1\0\0\0\0\0\0"], ids=["none", "one", "padded"])
def test_message_without_fields(tmp_path: Path, data: bytes) -> None:
    """ROS 2 writes a byte for it in CDR, other encodings nothing. In ROS 1 it is empty."""
    source = write_mcap(tmp_path / "a.mcap", ("/e", *EMPTY, data), ("/b", *BOOL))
    assert convert(source, tmp_path / "a.bag").count == 2
    with Reader1(tmp_path / "a.bag") as reader:
        found = {line.topic: (line.digest, bytes(said)) for line, _, said in reader.messages()}
    # The MD5 sum of an empty text, as genmsg's for a message without fields.
    assert found["/e"] == ("d41d8cd98f00b204e9800998ecf8427e", b"")
    convert(tmp_path / "a.bag", tmp_path / "b.mcap")
    with AnyReader([convert(tmp_path / "a.bag", tmp_path / "c").path]) as again:
        assert {line.topic: bytes(said) for line, _, said in again.messages()} == {
            "/e": b"\0\1\0\0\0",
            "/b": b"\0\1\0\0\1",
        }


@pytest.mark.parametrize(
    "ask",
    [
        lambda _: read_summary(""),
        lambda _: ns.open(""),
        lambda _: report.write("", "page.html"),
        lambda folder: convert("", folder / "b.mcap"),
        lambda folder: convert(write_mcap(folder / "a.mcap", ("/b", *BOOL)), ""),
        lambda folder: recover_mcap("", folder / "b.mcap"),
        lambda _: make_recovered_path(""),
    ],
    ids=["info", "load", "report", "convert", "convert to", "recover", "recovered"],
)
def test_empty_path_is_not_the_current_folder(tmp_path: Path, ask: Callable[[Path], object]) -> None:
    with pytest.raises(RecordingError, match=r"^the name of a recording is empty; name a file or a folder$"):
        ask(tmp_path)


def test_recovery_to_an_empty_path_is_an_error(tmp_path: Path) -> None:
    complete = write_mcap(tmp_path / "a.mcap", ("/b", *BOOL))
    with pytest.raises(SimulationError, match=r'^--output: ""; must not be empty; name a file or a value$'):
        CliRunner().invoke(cli, ["recover", str(complete), "-o", ""], catch_exceptions=False)
    assert [path.name for path in tmp_path.iterdir()] == [complete.name]


def find_error_with_file_limit(limit: int, work: Callable[[], object]) -> RecordingError:
    """Return the error of a function with a limit (bytes) on the file size."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
        with pytest.raises(RecordingError, match="too large") as found:
            work()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    return found.value


@pytest.mark.parametrize("name", ["b.mcap", "b", "b.gz.mcap", "b.npz", "b.csv"])
@pytest.mark.parametrize("limit", [10, 60_000])
def test_full_disk_error_names_the_written_part(builders: ModuleType, tmp_path: Path, name: str, limit: int) -> None:
    """The incomplete output is removed for any name of the folder."""
    tmp_path = tmp_path / "a; b"
    tmp_path.mkdir()
    with recordings.open_writer(
        tmp_path / "a.npz", recordings.RecordedRun(builders.make_world(), duration=20.0)
    ) as writer:
        for second in range(20):
            writer.write(builders.make_time_slice(second))
    kept = {path.name for path in tmp_path.iterdir()}
    for source in ("a.npz", "a.mcap"):
        if not (tmp_path / source).exists():
            convert(tmp_path / "a.npz", tmp_path / source)
            kept.add(source)
        error = find_error_with_file_limit(limit, lambda: convert(tmp_path / source, tmp_path / name))  # noqa: B023 - called at once
        assert error.where is not None
        assert error.where.path == str(tmp_path / name)
        assert str(error).endswith("; raise the limit on file sizes or record a shorter time")
        assert {path.name for path in tmp_path.iterdir()} == kept


def test_empty_file_is_not_recovered(builders: ModuleType, tmp_path: Path) -> None:
    error = find_error_with_file_limit(
        10,
        lambda: recordings.open_writer(
            tmp_path / "run.mcap", recordings.RecordedRun(builders.make_world(), duration=1.0)
        ),
    )
    assert not error.rescue
    with pytest.raises(RecordingError):
        recover_mcap(tmp_path / "run.mcap", tmp_path / "out.mcap")
