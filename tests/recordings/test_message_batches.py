"""Batched reading of MCAP messages equals single reading, the package mcap, and files of other programs."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import lz4.frame
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer

import navsense as ns
from navsense.core.errors import DamagedError, RecordingError
from navsense.environment.base import UniformField
from navsense.faults.schedule import ScheduledFault
from navsense.messages.schemas import format_schema
from navsense.recordings import channels
from navsense.recordings.channels import MessageBatch, RawMessage, batch_messages
from navsense.recordings.columns import TopicBuffer
from navsense.recordings.dataset import collect
from navsense.recordings.mcap import reader as mcap_reader
from navsense.recordings.mcap import records
from navsense.recordings.mcap.reader import McapReader
from navsense.recordings.message_recordings import open_messages
from navsense.recordings.reading_assembler import ReadingAssembler
from navsense.sensors import Adcp, AirPressure, Altimeter, Depth, Dvl, Imu, Magnetometer, NavSat, Range
from navsense.testing import example_world, is_identical

KINDS = (Adcp, AirPressure, Altimeter, Depth, Dvl, Imu, Magnetometer, NavSat, Range)
VECTOR = "geometry_msgs/msg/Vector3Stamped"

Said = dict[str, list[tuple[int, int, bytes]]]
"""Log time, publish time and bytes of each message, by topic."""


@dataclass(eq=False)
class SingleMessageSource:
    """A source that yields messages singly, in file order."""

    source: McapReader

    def __post_init__(self) -> None:
        self.where, self.channels = self.source.where, self.source.channels
        self.metadata, self.is_navsense = self.source.metadata, self.source.is_navsense

    def read_messages(self) -> Iterator[RawMessage]:
        return self.source.read_messages()

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        return batch_messages(self.source.read_messages(), topics)


def read_items(items: Iterable[RawMessage]) -> Said:
    """Return the content of messages that are read singly."""
    found: Said = {}
    for item in items:
        found.setdefault(item.channel.topic, []).append((item.log_time, item.publish_time, item.data))
    return found


def flatten_batches(batches: Iterable[list[MessageBatch]]) -> Said:
    """Return the messages in batches, by topic."""
    found: Said = {}
    for batch in (batch for lots in batches for batch in lots):
        data = [b""] * batch.log_time.size
        for places, rows in batch.size_groups:
            for place, row in zip(places.tolist(), rows, strict=True):
                data[place] = row.tobytes()
        found.setdefault(batch.channel.topic, []).extend(
            zip(batch.log_time.tolist(), batch.publish_time.tolist(), data, strict=True)
        )
    return found


def read_with_mcap(path: Path) -> Said:
    """Return what the package mcap reads, in file order."""
    found: Said = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages(log_time_order=False):
            found.setdefault(channel.topic, []).append((message.log_time, message.publish_time, message.data))
    return found


def read_both(path: Path) -> tuple[Said, Said]:
    """Return the content of a file, read singly and in batches."""
    with open_messages(path) as source:
        topics = {line.topic for line in source.channels}
        return read_items(source.read_messages()), flatten_batches(source.read_batches(topics))


def make_world() -> ns.World:
    """Return a robot with one of each sensor, one of them faulty, in a current."""
    world = example_world(*((kind.type, kind.example_spec()) for kind in KINDS))
    stuck = ScheduledFault("stuck", 0.2, 0.3)
    sensors = tuple(
        dataclasses.replace(sensor, faults=dataclasses.replace(sensor.faults, scheduled=(stuck,)))
        if sensor.spec.type == "imu"
        else sensor
        for sensor in world.sensors
    )
    environment = dataclasses.replace(world.environment, current=UniformField((0.1, -0.2, 0.05)))
    return dataclasses.replace(world, sensors=sensors, environment=environment)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of every kind of sensor."""
    path = tmp_path_factory.mktemp("lots") / "all.mcap"
    ns.record(make_world(), path, 2.0, seed=5, epoch=1000)
    return path


@pytest.mark.requirement("REC-1:mcap")
def test_every_message_is_read_in_order(recording: Path) -> None:
    singly, at_once = read_both(recording)
    assert at_once == singly
    assert {topic: sorted(said) for topic, said in singly.items()} == {
        topic: sorted(said) for topic, said in read_with_mcap(recording).items()
    }
    with open_messages(recording) as source:
        assert isinstance(source, McapReader)
        assert source.count_messages(from_data=True).total == sum(map(len, singly.values()))
        few = {"/clock", "/tf"}
        assert flatten_batches(source.read_batches(few)).keys() == few


@pytest.mark.requirement("REC-1:mcap", "TRU-1")
@pytest.mark.parametrize("size", [1, 20_000, 10**9])
def test_readings_are_bitwise_equal(recording: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    with open_messages(recording) as source:
        assert isinstance(source, McapReader)
        assembler = ReadingAssembler(SingleMessageSource(source))
        expected = collect(assembler.iter_slices())
        assert expected[0].keys() == {f"robot::arm::{kind.type}" for kind in KINDS}
        for name in ("BATCH_BYTES", "SMALL_BATCH_BYTES"):
            monkeypatch.setattr(channels, name, size)
        for name in ("MIN_BATCH_BYTES", "SEGMENT_BYTES", "MIN_STRIDE_RECORDS"):
            monkeypatch.setattr(mcap_reader, name, size)
        reader = ReadingAssembler(source)
        found = collect(reader.iter_slices())
        assert reader.topic_notes == assembler.topic_notes
    assert found[0].keys() == expected[0].keys()
    assert found[1].keys() == expected[1].keys()
    for name, reading in expected[0].items():
        assert is_identical(vars(found[0][name]), vars(reading)), name
    for name, truth in expected[1].items():
        assert is_identical(vars(found[1][name]), vars(truth)), name
    assert expected[2] is not None
    assert found[2] is not None
    assert is_identical(vars(found[2]), vars(expected[2]))


def write_messages(path: Path, seed: int, *, in_chunks: bool, kind: CompressionType) -> None:
    """Write messages of several lengths and random times on three topics, one of them with two channels."""
    rng = np.random.default_rng(seed)
    with path.open("wb") as file:
        writer = Writer(file, chunk_size=700, use_chunking=in_chunks, compression=kind)
        writer.start("ros2", "elsewhere")
        schema = writer.register_schema("some/msg/Thing", "ros2msg", b"uint8[] data")
        channels = [writer.register_channel(topic, "cdr", schema) for topic in ("/a", "/b")]
        for number in range(200):
            if number == 90:
                channels += [
                    writer.register_channel("/a", "cdr", schema, {"of": "another"}),
                    writer.register_channel("/c", "cdr", schema),
                ]
            data = rng.bytes(int(rng.choice([0, 1, 7, 31, 31, 31, 900])))
            log = int(rng.integers(0, 50))
            writer.add_message(channels[rng.integers(len(channels))], log, data, log // 2, number)
        writer.finish()  # type: ignore[no-untyped-call]


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("in_chunks", [True, False])
@pytest.mark.parametrize("kind", CompressionType)
def test_files_of_other_programs_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_chunks: bool, kind: CompressionType
) -> None:
    path = tmp_path / "theirs.mcap"
    for seed, enough in enumerate((1, 1500, 10**9)):
        monkeypatch.setattr(mcap_reader, "MIN_BATCH_BYTES", enough)
        monkeypatch.setattr(mcap_reader, "SEGMENT_BYTES", enough)
        write_messages(path, seed, in_chunks=in_chunks, kind=kind)
        singly, at_once = read_both(path)
        assert at_once == singly
        theirs = read_with_mcap(path)
        assert singly == {topic: sorted(said, key=itemgetter(0)) for topic, said in theirs.items()}


def parse_records(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield opcode, offset and body of each record, one by one. Raises `DamagedError` for an incomplete one."""
    offset, head = 0, records.RECORD_HEADER
    while offset < len(data):
        if offset + head.size > len(data):
            raise DamagedError("ends inside a record")
        opcode, length = head.unpack_from(data, offset)
        start = offset + head.size
        if opcode == 0 or length > len(data) - start:
            raise DamagedError("ends inside a record, or has the invalid opcode 0")
        yield opcode, offset, data[start : start + length]
        offset = start + length


@pytest.mark.requirement("REC-1:mcap")
@given(st.data())
def test_records_are_located_by_offset(data: st.DataObject) -> None:
    bodies = data.draw(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=40)), max_size=20))
    complete = b"".join(records.encode_record(kind, body) for kind, body in bodies)
    rest = data.draw(st.binary(max_size=30))
    piece = complete + rest
    expected = []
    try:
        for opcode, offset, body in parse_records(piece):
            expected.append((opcode, offset, body))
        is_whole = True
    except DamagedError:
        is_whole = False
    found = mcap_reader.scan_records(piece)
    assert [
        (int(k), int(s), found.get_body(i)) for i, (k, s) in enumerate(zip(found.opcodes, found.offsets, strict=False))
    ] == expected
    assert found.is_complete == is_whole


@pytest.mark.requirement("REC-1:mcap")
def test_block_with_more_records_than_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcap_reader, "INITIAL_CAPACITY", 3)
    piece = b"".join(records.encode_record(7, bytes(number)) for number in range(9))
    expected = [at for _, at, _ in parse_records(piece)]
    assert mcap_reader.scan_records(piece).offsets[:-1].tolist() == expected


def encode_message(channel: int, log: int, data: bytes, time: int = 0) -> bytes:
    """Return a Message record."""
    return records.encode_record(records.MESSAGE, struct.pack("<HIQQ", channel, 0, log, time), data)


def encode_chunk(*parts: bytes) -> bytes:
    """Return a Chunk record that is not compressed."""
    data = b"".join(parts)
    head = records.CHUNK_HEADER.pack(0, 0, len(data), 0)
    return records.encode_record(records.CHUNK, head, records.encode_string(""), struct.pack("<Q", len(data)), data)


def write_records(path: Path, *parts: bytes, topic: str = "/v", kind: str = VECTOR) -> Path:
    """Write a file of records with one channel, 1."""
    known = records.encode_schema(1, kind, format_schema(kind).encode()) + records.encode_channel(1, 1, topic, {})
    head = records.encode_record(records.HEADER, records.encode_string("ros2"), records.encode_string("test"))
    end = records.encode_record(records.DATA_END, bytes(4))
    footer = records.encode_record(records.FOOTER, records.FOOTER_FIELDS.pack(0, 0, 0))
    path.write_bytes(b"".join((records.MAGIC, head, known, *parts, end, footer, records.MAGIC)))
    return path


LONG = records.RECORD_HEADER.pack(records.MESSAGE, 1 << 40) + bytes(40)
DAMAGED = {
    "a chunk ends inside a record": (encode_chunk(encode_message(1, 1, b"x"), b"\x05\x01"),),
    "a chunk ends inside a record ": (encode_chunk(encode_message(1, 1, b"x"), LONG),),
    "a message of an unknown channel": (encode_chunk(encode_message(1, 1, b"x"), encode_message(2, 1, b"x")),),
    "a message ends too early": (encode_chunk(records.encode_record(records.MESSAGE, bytes(21))),),
    "a message of an unknown channel ": (encode_message(3, 1, b"x"),),
}


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("problem", DAMAGED)
def test_damage_gives_the_same_error_in_every_reader(tmp_path: Path, problem: str) -> None:
    path = write_records(tmp_path / "a.mcap", *DAMAGED[problem])
    with pytest.raises(RecordingError, match=problem.strip()) as singly, open_messages(path) as source:
        list(source.read_messages())
    with pytest.raises(RecordingError) as at_once, open_messages(path) as source:
        list(source.read_batches({"/v"}))
    assert str(at_once.value) == str(singly.value)


@pytest.mark.requirement("REC-1:mcap")
def test_last_channel_record_wins(tmp_path: Path) -> None:
    other = records.encode_channel(1, 1, "/w", {})
    parts = (
        encode_chunk(encode_message(1, 2, b"a"), encode_message(1, 1, b"b"), other, encode_message(1, 0, b"c")),
        encode_message(1, 9, b"d"),
    )
    singly, at_once = read_both(write_records(tmp_path / "a.mcap", *parts))
    assert singly == {"/w": [(0, 0, b"c"), (9, 0, b"d")], "/v": [(1, 0, b"b"), (2, 0, b"a")]}
    with open_messages(tmp_path / "a.mcap") as source:
        assert flatten_batches(source.read_batches({"/v", "/w"})) == singly
    assert at_once.keys() <= singly.keys()


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("times", [(1 << 63, 0), (0, 1 << 63)])
def test_impossible_times_are_an_error(tmp_path: Path, times: tuple[int, int]) -> None:
    path = write_records(tmp_path / "a.mcap", encode_chunk(encode_message(1, times[0], b"x", times[1])))
    with open_messages(path) as source:
        assert [(item.log_time, item.publish_time) for item in source.read_messages()] == [times]
    with pytest.raises(RecordingError, match="292 years"), open_messages(path) as source:
        list(source.read_batches({"/v"}))


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("size", [1, 10**9])
def test_arrays_that_change_shape_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(mcap_reader, "MIN_BATCH_BYTES", size)
    kind = "navsense_msgs/msg/Thing"
    schema = records.encode_schema(1, kind, b"float64[] data")
    rows = [b"\0\1\0\0" + struct.pack("<I4x", n) + bytes(8 * n) for n in (3, 2)]
    path = write_records(
        tmp_path / "a.mcap",
        schema,
        records.encode_channel(1, 1, "/v", {}),
        *(encode_chunk(encode_message(1, 0, r)) for r in rows),
    )

    def read_all(source: Any) -> None:
        line = dataclasses.replace(source.channels[0], type=kind, definition=b"float64[] data")
        column = TopicBuffer(line, lambda found: {"data": found["data"]})
        for batch in (batch for lots in source.read_batches({"/v"}) for batch in lots):
            column.append(batch)

    with pytest.raises(RecordingError, match="data changes its shape"), open_messages(path) as source:
        read_all(source)


@pytest.mark.requirement("REC-1:mcap")
def test_lz4_with_several_frames_and_truncated() -> None:
    data = bytes(range(256)) * 100
    packed = lz4.frame.compress(data[:9000]) + lz4.frame.compress(data[9000:])

    def decompress_slowly(raw: bytes, size: int) -> bytes:
        return records.decompress(records.Chunk(0, 0, size, 0, "lz4", raw))

    assert decompress_slowly(packed, len(data)) == data
    assert decompress_slowly(lz4.frame.compress(data), len(data)) == data
    for raw, size in ((packed[:-5], len(data)), (packed, 9000), (lz4.frame.compress(data), 9000), (packed[:9], 9)):
        with pytest.raises(DamagedError):
            decompress_slowly(raw, size)
