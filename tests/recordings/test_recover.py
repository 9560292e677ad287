"""Recovery of truncated recordings after a kill, a full disk, or other damage."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer

from navsense import recordings
from navsense.cli.application import cli
from navsense.core.errors import NavsenseError, RecordingError
from navsense.recordings.base import make_recovered_path
from navsense.recordings.info import format_metadata_item, format_seconds
from navsense.recordings.leftovers import recover
from navsense.recordings.mcap import records
from navsense.recordings.mcap import writer as mcap_writer
from navsense.recordings.mcap.recovery import recover_mcap
from navsense.recordings.summary import read_summary


def read_contents(path: Path) -> list[tuple[str, str, int, int, int, bytes]]:
    """Return all messages in the order of the file's index, as the mcap package reads them."""
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        return [
            (channel.topic, schema.name if schema else "", m.sequence, m.log_time, m.publish_time, m.data)
            for schema, channel, m in reader.iter_messages(log_time_order=False)
        ]


@pytest.fixture(scope="module")
def small(builders: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(builders.record_slices(tmp_path_factory.mktemp("small") / "run.mcap", 3))


def list_chunk_ends(path: Path) -> list[int]:
    """Return the offset after each chunk."""
    with path.open("rb") as file:
        found = records.read_records(file, len(records.MAGIC), path.stat().st_size)
        return [raw.offset + records.RECORD_HEADER.size + len(raw.body) for raw in found if raw.opcode == records.CHUNK]


@pytest.mark.requirement("REC-1:mcap")
def test_recovered_message_index_is_sorted(small: Path, tmp_path: Path) -> None:
    mixed, out = tmp_path / "mixed.mcap", tmp_path / "out.mcap"
    logs = [5, 3, 9, 3, 0]
    with mixed.open("wb") as file:
        writer = Writer(file, compression=CompressionType.NONE, use_chunking=False)
        writer.start(profile="ros2", library="test")
        channel = writer.register_channel(
            "/a", "cdr", writer.register_schema("std_msgs/msg/Bool", "ros2msg", b"bool data")
        )
        for number, log in enumerate(logs):
            writer.add_message(channel, log, b"\0\1\0\0" + bytes([number % 2]), log, number)
        writer.finish()  # type: ignore[no-untyped-call]  # mcap has no types for it
    recover_mcap(mixed, out)
    with out.open("rb") as file:
        raws = list(records.read_records(file, len(records.MAGIC), out.stat().st_size))
    tables = [
        np.frombuffer(raw.body[6:], dtype="<u8").reshape(-1, 2) for raw in raws if raw.opcode == records.MESSAGE_INDEX
    ]
    assert [table[:, 0].tolist() for table in tables] == [sorted(logs)]
    assert tables[0][:, 1].argsort().argsort().tolist() == [4, 1, 3, 0, 2]


@pytest.mark.requirement("REC-1:mcap")
def test_complete_recording_is_recovered_completely(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mcap"
    summary = recover_mcap(small, out)
    assert summary.complete
    assert summary.loss_text == "the recording is complete; nothing has to be recovered"
    assert read_contents(out) == read_contents(small)
    assert summary.messages == len(read_contents(small)) == sum(summary.topics.values())
    old, new = read_summary(small), read_summary(out)
    assert (old.entries, old.start, old.end, old.metadata) == (new.entries, new.start, new.end, new.metadata)


@pytest.mark.requirement("REC-1:mcap")
def test_truncated_recording_keeps_all_complete_chunks(small: Path, tmp_path: Path) -> None:
    raw, ends = small.read_bytes(), list_chunk_ends(small)
    complete = read_contents(small)
    by_chunk = {0: 0}
    for count, end in enumerate(ends, 1):
        by_chunk[count] = sum(1 for m in complete if m[0] == "/imu" and m[3] < (count - 1) * 10**9)
        assert end
    cut, out = tmp_path / "cut.mcap", tmp_path / "out.mcap"
    rng = random.Random(20)
    places = {*range(120), *(rng.randrange(len(raw)) for _ in range(150))}
    places |= {end + shift for end in ends for shift in (-1, 0, 1)} | set(range(len(raw) - 40, len(raw)))
    for place in sorted(places):
        cut.write_bytes(raw[:place])
        count = sum(end <= place for end in ends)
        try:
            summary = recover_mcap(cut, out)
        except NavsenseError:
            assert count == 0
            continue
        got = read_contents(out)
        assert summary.chunks == count
        if summary.is_truncated:
            assert summary.loss_text == f"lost: the incomplete {'last chunk' if count else 'end'}"
        assert got == complete[: len(got)]
        assert sum(1 for m in got if m[0] == "/imu") == by_chunk[count]
        assert summary.messages == len(got)
        with pytest.raises(RecordingError, match="navsense recover"):
            read_summary(cut)


def test_corrupt_bytes_raise_only_recording_errors(small: Path, tmp_path: Path) -> None:
    raw = small.read_bytes()
    rng = random.Random(3)
    bad, out = tmp_path / "bad.mcap", tmp_path / "out.mcap"
    errors: list[str] = []
    for _ in range(200):
        broken = bytearray(raw)
        for _ in range(rng.randrange(1, 4)):
            start = rng.choice((0, 0, len(raw) - 2500))  # the summary is short and has most of the structure
            broken[rng.randrange(start, rng.choice((start + 100, len(raw))))] = rng.randrange(256)
        bad.write_bytes(broken)
        for look in (lambda: recover_mcap(bad, out), lambda: read_summary(bad)):
            try:
                look()
            except NavsenseError as error:
                errors.append(str(error))
    assert len(errors) > 20
    assert all(str(bad) in text for text in errors)


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
import builders
from navsense import recordings
writer = recordings.open_writer(Path({path!r}), recordings.RecordedRun(builders.make_world(), duration=1e6))
for second in range(10**6):
    writer.write(builders.make_time_slice(second))
    print(second, flush=True)
"""


@pytest.mark.requirement("REC-1:mcap")
def test_killed_writer_keeps_all_complete_chunks(builders: ModuleType, tmp_path: Path) -> None:
    path, out = tmp_path / "run.mcap", tmp_path / "out.mcap"
    program = CHILD.format(here=str(Path(__file__).parent), path=str(path))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) >= 5:
                break
        time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        seconds = 1 + max(int(line) for line in [line, *child.stdout])
    summary = recover_mcap(path, out)
    assert not summary.complete
    imu = [m for m in read_contents(out) if m[0] == "/imu"]
    assert len(imu) in (100 * seconds, 100 * (seconds + 1))
    assert [m[2] for m in imu] == list(range(len(imu)))
    assert summary.topics["/imu"] == len(imu)


@pytest.mark.requirement("REC-1:mcap")
def test_full_disk_is_an_error_and_keeps_complete_chunks(builders: ModuleType, tmp_path: Path) -> None:
    path, out = tmp_path / "run.mcap", tmp_path / "out.mcap"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    writer = recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=1e4))
    written = 0
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))
        with pytest.raises(RecordingError, match=r"too large.*navsense recover"):  # noqa: PT012 - which write fails is open
            while True:
                writer.write(builders.make_time_slice(written))
                written += 1
        with pytest.raises(RecordingError):
            writer.write(builders.make_time_slice(written))
        writer.abort()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert written > 2
    assert recover_mcap(path, out).topics["/imu"] == 100 * written
    with pytest.raises(RecordingError, match="navsense recover"):
        read_summary(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_error_has_a_remedy(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    path.symlink_to("/dev/full")
    with pytest.raises(RecordingError, match=r"no space.*free some space"):
        recordings.open_writer(path, recordings.RecordedRun(builders.make_world()))


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("compression", list(CompressionType))
def test_recordings_of_other_programs_are_recovered(tmp_path: Path, chunked: bool, compression: Any) -> None:
    path, cut, out = tmp_path / "other.mcap", tmp_path / "cut.mcap", tmp_path / "out.mcap"
    with path.open("wb") as file:
        writer = Writer(file, chunk_size=2000, compression=compression, use_chunking=chunked)
        writer.start("", "other")
        schema = writer.register_schema("T", "jsonschema", b"{}")
        topics = [writer.register_channel(name, "json", schema) for name in ("/a", "/b")]
        for i in range(500):
            writer.add_message(topics[i % 2], i, b'{"n": %d}' % i, i, i)
            if i == 250:
                writer.add_attachment(i, i, "note", "text/plain", b"hello")
                writer.add_metadata("word", {"key": "value"})
        writer.finish()  # type: ignore[no-untyped-call]
    assert recover_mcap(path, out).complete
    assert read_contents(out) == read_contents(path)
    with out.open("rb") as file:
        reader = make_reader(file)
        assert [attachment.data for attachment in reader.iter_attachments()] == [b"hello"]
        assert [record.metadata for record in reader.iter_metadata()] == [{"key": "value"}]
    assert [(entry.name, entry.count) for entry in read_summary(path).entries] == [("/a", 250), ("/b", 250)]
    cut.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    summary = recover_mcap(cut, out)
    assert not summary.complete
    assert read_contents(out) == read_contents(path)[: summary.messages]
    assert summary.messages > 100


def test_invalid_recording_is_an_error(small: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.mcap"
    text.write_text("hello")
    for path, words in ((text, "not an MCAP"), (tmp_path / "none.mcap", "check the name"), (tmp_path, "directory")):
        with pytest.raises(RecordingError, match=words):
            recover(path, tmp_path / "out.mcap")
    with pytest.raises(RecordingError, match="input of the same command"):
        recover(small, small)
    with pytest.raises(RecordingError, match="create it"):
        recover(small, tmp_path / "none" / "out.mcap")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.mcap"]
    assert make_recovered_path("a/run.mcap") == Path("a/run-recovered.mcap")
    assert make_recovered_path("a/run.part") == Path("a/run.part-recovered.mcap")


def test_recovery_changes_only_its_output(small: Path, tmp_path: Path) -> None:
    out, part, other = tmp_path / "out.mcap", tmp_path / "out.mcap.part", tmp_path / "out.part"
    part.write_bytes(small.read_bytes())
    other.write_text("somebody's")
    assert recover_mcap(part, out).complete
    assert read_contents(out) == read_contents(small)
    assert part.read_bytes() == small.read_bytes()
    assert other.read_text() == "somebody's"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.mcap", "out.mcap.part", "out.part"]
    plain = tmp_path / "plain"
    plain.touch()
    assert out.stat().st_mode == plain.stat().st_mode


def test_recovery_on_a_full_disk_leaves_no_file(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mcap"
    out.write_text("the old one")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (0, 20_000):
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
            with pytest.raises(RecordingError, match=r"/out\.mcap: cannot be written.*too large") as error:
                recover_mcap(small, out)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert "navsense recover" not in str(error.value)
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.mcap", "the old one")]


@pytest.mark.parametrize("name", ["out.npz", "out.txt", "out"])
def test_recovery_writes_mcap_only(small: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match=r"must end in \.mcap; name it out\.mcap"):
        recover(small, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_recovery_of_an_archive_is_an_error(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=1.0)) as writer:
        writer.write(builders.make_time_slice(0))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RecordingError, match=r"; copy it again: .* file cannot be recovered"):
        recover(path, make_recovered_path(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def test_pipe_is_rejected_as_recording(small: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.mcap"
    os.mkfifo(pipe)
    with pytest.raises(RecordingError, match="is a device, a pipe"):
        recover(pipe, tmp_path / "out.mcap")
    with pytest.raises(RecordingError, match="is a pipe"):
        recover(small, pipe)


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        (1_700_000_001_995_000_000, "1700000001.995"),
        (1_700_000_001_000_000_001, "1700000001.000000001"),
        (20_000_000_000, "20"),
        (0, "0"),
        (-1_500_000_000, "-1.5"),
    ],
)
def test_times_are_printed_exactly(stamp: int, text: str) -> None:
    assert format_seconds(stamp) == text


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("duration_asked", "3000.0", "requested 3000 s"),
        ("duration_asked", "0.25", "requested 0.25 s"),
        ("runs", "[7]", "run 7"),
        ("runs", "[3, 4, 5]", "runs 3 to 5"),
        ("runs", "[3, 5]", "2 runs"),
        ("runs", "what", "runs what"),
        ("runs", "5", "runs 5"),
        ("seed", "7", "seed 7"),
    ],
)
def test_headline_is_readable_text(key: str, value: str, text: str) -> None:
    assert format_metadata_item(key, value) == text


def test_info_of_a_recording(builders: ModuleType, small: Path) -> None:
    found = read_summary(small)
    counts = {entry.name: (entry.type, entry.count) for entry in found.entries}
    assert counts["/imu"] == ("sensor_msgs/msg/Imu", 300)
    assert counts["/tf"] == ("tf2_msgs/msg/TFMessage", 150)
    assert (found.start, found.end) == (0, 2_990_000_000)
    assert found.metadata["world"] == "sea"
    assert found.metadata["seed"] == "7"
    assert (found.metadata["runs"], found.metadata["duration_asked"]) == ("[0]", "3.0")
    assert "from 0 s to 2.99 s" in found.headline
    assert "run 0, " in found.headline
    assert "requested 3 s" in found.headline
    assert found.size == small.stat().st_size
    assert "mcap" in found.headline
    assert str(len(read_contents(small))) in found.headline
    with pytest.raises(RecordingError, match=r"\.mcap, \.npz"):
        read_summary(small.with_suffix(".rosbag"))
    with pytest.raises(RecordingError, match="check the name"):
        read_summary(small.with_name("none.mcap"))


def test_empty_recording_is_complete(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    recordings.open_writer(path, recordings.RecordedRun(builders.make_world())).close()
    assert [entry.count for entry in read_summary(path).entries] == [0, 0, 1]
    assert mcap_writer.CHUNK_BYTES <= 12_000_000, "a kill may cost the chunk that is being made"


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize(
    ("name", "path"),
    [
        *[
            (f"run{suffix}", "")
            for suffix in (".mcap", ".gz.mcap", ".gazebo.mcap", ".bag", ".db3", ".npz", ".parquet", ".csv")
        ],
        ("run.db3", "run"),
        ("run.db3", "run/run.db3"),
        ("run.csv", "run"),
    ],
)
def test_complete_recording_of_any_format_needs_no_recovery(
    builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    info = recordings.RecordedRun(builders.make_world(), epoch=100, duration=1.0)
    with recordings.open_writer(name, info) as writer:
        writer.write(builders.make_time_slice(0, 100))
    result = CliRunner().invoke(cli, ["recover", path or name], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.output.endswith("the recording is complete; nothing has to be recovered\n")
    assert result.output.startswith(f"{path or name}: the recording")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("suffix", [".mcap", ".bag"])
def test_recording_without_its_last_bytes_is_not_complete(builders: ModuleType, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    info = recordings.RecordedRun(builders.make_world(), epoch=100, duration=1.0)
    with recordings.open_writer(path, info) as writer:
        writer.write(builders.make_time_slice(0, 100))
    expected = read_summary(path).entries
    path.write_bytes(path.read_bytes()[:-20])
    result = recover(path)
    assert not result.is_intact
    assert read_summary(result.path).entries == expected
