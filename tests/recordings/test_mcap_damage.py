"""Single flipped bits in MCAP files are reported, or change nothing that is read."""

from __future__ import annotations

import random
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner
from mcap.reader import make_reader
from mcap.records import DataEnd, Footer
from mcap.stream_reader import StreamReader
from mcap.writer import CompressionType, Writer

import navsense as ns
from navsense import recordings
from navsense.cli.application import cli
from navsense.core.errors import DamagedError, RecordingError, describe_damage
from navsense.core.readings import ARRAY_GROUPS
from navsense.recordings.convert import convert
from navsense.recordings.mcap import records
from navsense.recordings.mcap.recovery import recover_mcap
from navsense.recordings.message_recordings import open_messages
from navsense.recordings.summary import read_summary
from navsense.recordings.world_json import list_notes, world_from_json, world_to_json

SEEDS = range(4)
"""Each seed flips one bit in every record."""

MAGIC_SIZE = len(records.MAGIC)


@pytest.fixture(scope="module")
def recording(builders: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(builders.record_slices(tmp_path_factory.mktemp("damage") / "run.mcap", 2))


def list_records(path: Path) -> list[records.RawRecord]:
    with path.open("rb") as file:
        return list(records.read_records(file, MAGIC_SIZE, path.stat().st_size - MAGIC_SIZE))


def flip_bit(path: Path, target: Path, offset: int, bit: int) -> Path:
    """Write a copy of a file with one flipped bit."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    target.write_bytes(data)
    return target


def read_content(path: Path) -> Any:
    """Return everything that is read from a recording; an error of navsense as None."""
    try:
        summary, data = read_summary(path), ns.open(path)
    except RecordingError:
        return None
    rows: dict[Any, Any] = {}
    for name, reading in data.items():
        rows[name] = reading.time.tobytes(), reading.clock_error.tobytes(), reading.emitted.tobytes()
        for group in ARRAY_GROUPS:
            rows[name, group] = {key: array.tobytes() for key, array in getattr(reading, group).items()}
    for link, truth in data.truth.items():
        rows[link] = truth.time.tobytes(), truth.position.tobytes(), truth.acceleration.tobytes()
    content = summary.entries, summary.start, summary.end, dict(summary.metadata), summary.notes
    return content, rows, data.metadata


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("seed", SEEDS)
def test_flipped_bit_in_any_record_is_reported_or_changes_nothing(recording: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    expected = read_content(recording)
    reported: set[int] = set()
    for record in list_records(recording):
        size = records.RECORD_HEADER.size + len(record.body)
        bad = flip_bit(recording, tmp_path / "run.mcap", record.offset + rng.randrange(size), rng.randrange(8))
        content = read_content(bad)
        if content is None:
            reported.add(record.opcode)
        else:
            assert content == expected, (record.opcode, record.offset)
    summary = {records.SCHEMA, records.CHANNEL, records.STATISTICS, records.CHUNK_INDEX, records.METADATA_INDEX}
    assert reported >= {*summary, records.METADATA, records.CHUNK, records.FOOTER}


def find_offset(path: Path, record: records.RawRecord, text: bytes) -> int:
    """Return the offset of a text in a record."""
    return record.offset + records.RECORD_HEADER.size + record.body.index(text)


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("command", ["info", "convert", "report"])
def test_damaged_summary_is_an_error_of_every_command(recording: Path, tmp_path: Path, command: str) -> None:
    channel = [record for record in list_records(recording) if record.opcode == records.CHANNEL][-1]
    bad = flip_bit(recording, tmp_path / "bad.mcap", find_offset(recording, channel, b"/"), 0)
    arguments = {"convert": [str(tmp_path / "out.npz")], "report": ["-o", str(tmp_path / "out.html")]}
    with pytest.raises(RecordingError) as error:
        CliRunner().invoke(cli, [command, str(bad), *arguments.get(command, [])], catch_exceptions=False)
    damage = "the recording is damaged: its summary has a wrong CRC"
    assert str(error.value) == f"{bad}: {damage}; recover it with: navsense recover {bad}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.mcap"]


@pytest.mark.requirement("REC-1:mcap")
def test_recovery_of_a_damaged_summary_is_complete(recording: Path, tmp_path: Path) -> None:
    channel = [record for record in list_records(recording) if record.opcode == records.CHANNEL][-1]
    bad = flip_bit(recording, tmp_path / "bad.mcap", find_offset(recording, channel, b"/"), 0)
    result = recover_mcap(bad, tmp_path / "out.mcap")
    assert (result.complete, result.damaged_chunks) == (True, 0)
    assert read_content(tmp_path / "out.mcap") == read_content(recording)


@pytest.mark.requirement("REC-1:mcap")
def test_recovery_drops_damaged_metadata_and_keeps_the_messages(recording: Path, tmp_path: Path) -> None:
    run = next(record for record in list_records(recording) if record.opcode == records.METADATA)
    bad = flip_bit(recording, tmp_path / "bad.mcap", find_offset(recording, run, b"sea"), 0)
    with pytest.raises(RecordingError, match=r"a metadata record has a wrong CRC; recover it with: navsense recover"):
        read_summary(bad)
    result = recover_mcap(bad, tmp_path / "out.mcap")
    assert result.headline.endswith("; lost: 1 damaged record")
    assert not result.complete
    assert result.messages == sum(entry.count for entry in read_summary(recording).entries)
    assert "world" not in read_summary(tmp_path / "out.mcap").metadata


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("opcode", [records.CHUNK, records.METADATA, records.MESSAGE_INDEX])
def test_recovery_reports_a_record_whose_kind_is_damaged(recording: Path, tmp_path: Path, opcode: int) -> None:
    """Another opcode hides a record; a MessageIndex becomes a DataEnd."""
    found = [record for record in list_records(recording) if record.opcode == opcode]
    record = found[-1] if opcode == records.CHUNK else found[0]
    bad = flip_bit(recording, tmp_path / "bad.mcap", record.offset, 3)
    result = recover_mcap(bad, tmp_path / "out.mcap")
    assert (result.complete, result.is_truncated, result.damaged_chunks) == (False, False, 1)
    if opcode == records.MESSAGE_INDEX:
        assert result.messages == sum(entry.count for entry in read_summary(recording).entries)


@pytest.mark.requirement("REC-1:mcap")
def test_recovery_reads_the_definitions_of_a_damaged_chunk_from_the_summary(recording: Path, tmp_path: Path) -> None:
    """All schemas and channels are in the first chunk."""
    chunk = next(record for record in list_records(recording) if record.opcode == records.CHUNK)
    bad = flip_bit(recording, tmp_path / "bad.mcap", chunk.offset + len(chunk.body) // 2, 0)
    result = recover_mcap(bad, tmp_path / "out.mcap")
    assert result.loss_text == "lost: 1 damaged record"
    expected = {entry.name: entry.count for entry in read_summary(recording).entries}
    found = {entry.name: entry.count for entry in read_summary(tmp_path / "out.mcap").entries}
    assert found == {**expected, "/tf_static": 0}
    assert ns.open(tmp_path / "out.mcap")["imu"].time.size == 200


@pytest.mark.requirement("REC-1:mcap")
def test_mcap_package_accepts_the_checksums(recording: Path, tmp_path: Path) -> None:
    copies = [recording, tmp_path / "converted.mcap", tmp_path / "recovered.mcap", tmp_path / "cut.mcap"]
    convert(recording, tmp_path / "folder.db3")
    convert(tmp_path / "folder.db3", copies[1])
    recover_mcap(recording, copies[2])
    (tmp_path / "half.mcap").write_bytes(recording.read_bytes()[: recording.stat().st_size // 2])
    recover_mcap(tmp_path / "half.mcap", copies[3])
    with recordings.open_writer(tmp_path / "run.gz.mcap", ns.open(recording).make_recorded_run()) as writer:
        for time_slice in ns.open(recording).iter_slices():
            writer.write(time_slice)
    for path in (*copies, tmp_path / "run.gz.mcap"):
        with path.open("rb") as file:
            found = list(StreamReader(file, validate_crcs=True).records)
        with path.open("rb") as file:
            reader = make_reader(file, validate_crcs=True)
            assert list(reader.iter_messages())
            assert [entry.name for entry in reader.iter_metadata()] == [records.RUN_METADATA, records.WORLD_METADATA]
        (footer,) = (record for record in found if isinstance(record, Footer))
        data = path.read_bytes()
        assert footer.summary_crc == zlib.crc32(data[footer.summary_start : -MAGIC_SIZE - 4]) != 0
        assert [record.data_section_crc for record in found if isinstance(record, DataEnd)] == [0]


def write_other(path: Path, **options: Any) -> Path:
    """Write a recording as another program: messages outside chunks, and metadata."""
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.NONE, use_chunking=False, **options)
        writer.start("ros2", "other")
        schema = writer.register_schema("std_msgs/msg/Bool", "ros2msg", b"bool data")
        for topic in ("/first", "/second"):
            channel = writer.register_channel(topic, "cdr", schema)
            for stamp in range(3):
                writer.add_message(channel, stamp, b"\0\1\0\0\1", stamp, stamp)
        writer.add_metadata("other", {"key": "value"})
        writer.finish()  # type: ignore[no-untyped-call]  # mcap has no types for it
    return path


def read_topics(path: Path) -> dict[str, int]:
    """Return the number of messages of each topic, which all are read."""
    counts: dict[str, int] = {}
    with open_messages(path) as reader:
        for message in reader.read_messages():
            counts[message.channel.topic] = counts.get(message.channel.topic, 0) + 1
    return counts


def test_file_without_checksums_is_read(tmp_path: Path) -> None:
    path = write_other(tmp_path / "other.mcap", enable_crcs=False)
    assert read_topics(path) == {"/first": 3, "/second": 3}
    channel = [record for record in list_records(path) if record.opcode == records.CHANNEL][-1]
    flip_bit(path, path, find_offset(path, channel, b"second"), 0)
    assert read_topics(path) == {"/first": 3, "/second": 3}


def test_channel_outside_chunks_is_compared_with_the_summary(tmp_path: Path) -> None:
    path = write_other(tmp_path / "other.mcap")
    assert read_topics(path) == {"/first": 3, "/second": 3}
    channel = [record for record in list_records(path) if record.opcode == records.CHANNEL][1]
    flip_bit(path, path, find_offset(path, channel, b"second"), 0)
    with pytest.raises(RecordingError, match="a schema or a channel is not that of its summary"):
        read_topics(path)


@pytest.mark.parametrize("has_summary", [True, False])
def test_data_section_checksum_is_verified_by_recovery_and_without_a_summary(tmp_path: Path, has_summary: bool) -> None:
    options = dict.fromkeys(("repeat_channels", "repeat_schemas", "use_statistics"), has_summary)
    path = write_other(tmp_path / "other.mcap", enable_data_crcs=True, **options)
    assert read_topics(path) == {"/first": 3, "/second": 3}
    assert recover_mcap(path, tmp_path / "out.mcap").complete
    metadata = next(record for record in list_records(path) if record.opcode == records.METADATA)
    flip_bit(path, path, find_offset(path, metadata, b"value"), 0)
    assert recover_mcap(path, tmp_path / "out.mcap").loss_text == "lost: 1 damaged record"
    if has_summary:
        assert read_topics(path) == {"/first": 3, "/second": 3}
    else:
        with pytest.raises(RecordingError, match="its data section has a wrong CRC"):
            read_topics(path)


@pytest.mark.requirement("FIL-1")
def test_damage_is_named_once(builders: ModuleType) -> None:
    """Errors of a damaged world, whose causes are also errors of damage, contain the word once."""
    stored = world_to_json(builders.make_world())
    for damage, text in (
        ({"anomalies": "none"}, "anomalies has a wrong type"),
        ({"models": 1}, "'int' object is not iterable"),
    ):
        world = {**stored, **damage}
        with pytest.raises(DamagedError) as caught:
            world_from_json(world)
        assert str(caught.value).count("damaged: ") == 1
        assert list_notes(world) == (f"its world cannot be read: {text}",)
        assert describe_damage(caught.value) in (text, f"its world cannot be read: {text}")
