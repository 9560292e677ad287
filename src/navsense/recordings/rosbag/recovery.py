"""Messages of truncated bags: a `.bag` chunk by chunk without its index, a `.db3` up to its last commit."""

from __future__ import annotations

import bz2
import io
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from navsense.core import inputs
from navsense.core.errors import DamagedError, RecordingError, Where
from navsense.core.inputs import expansion_problem
from navsense.recordings.base import open_for_reading
from navsense.recordings.channels import (
    CDR,
    DEFAULT_WORLD_NAME,
    LATCHED_DURABILITIES,
    ROS1,
    Channel,
    MessageBatch,
    MessageReader,
    RawMessage,
    batch_messages,
)
from navsense.recordings.format import RecoveryResult
from navsense.recordings.info import WORLD_JSON_KEY
from navsense.recordings.mcap import records
from navsense.recordings.message_copy import copy_messages
from navsense.recordings.rosbag.metadata import METADATA_TOPIC, parse_ros1_metadata
from navsense.recordings.rosbag.reader import BAG, map_bag_errors
from navsense.recordings.rosbag.writer import PENDING_METADATA_FILE, map_sqlite_errors
from navsense.recordings.world_json import list_notes

BAG_MAGIC = b"#ROSBAG V2.0\n"
"""First bytes of a ROS 1 bag."""

MESSAGE, BAG_HEADER, CHUNK, CHUNK_INFO, CONNECTION = 2, 3, 5, 6, 7
"""Opcodes of the records of a ROS 1 bag."""

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class BagRecord:
    """One record of a ROS 1 bag: its header fields and its data."""

    header: Mapping[str, bytes]
    data: bytes

    @property
    def kind(self) -> int:
        """Opcode of the record; 0 without one."""
        return int.from_bytes(self.header.get("op", b""), "little")

    @property
    def connection(self) -> int:
        """Number of the connection."""
        return int.from_bytes(self.header.get("conn", b""), "little")

    @property
    def time(self) -> int:
        """Time (ns)."""
        seconds, rest = struct.unpack("<II", self.header["time"])
        return int(seconds) * 10**9 + int(rest)


def parse_header(data: bytes) -> dict[str, bytes]:
    """Return the fields of a header. Raises `DamagedError`."""
    reader, fields = records.FieldReader(data), dict[str, bytes]()
    while reader.offset < len(data):
        name, equals, value = bytes(reader.read(reader.read_int(4))).partition(b"=")
        if not equals:
            raise DamagedError("a field of a header has no value")
        fields[name.decode(errors="replace")] = value
    return fields


def _read_block(file: BinaryIO, left: int) -> bytes | None:
    """Read a length and that many bytes. Return None if the file, with `left` more bytes, ends before."""
    head = file.read(_LENGTH.size)
    length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else left
    return file.read(length) if length + _LENGTH.size <= left else None


def read_records(file: BinaryIO, end: int) -> Iterator[BagRecord]:
    """Yield the records from the current position up to `end`, and stop at the first incomplete one."""
    while True:
        header = _read_block(file, end - file.tell())
        data = None if header is None else _read_block(file, end - file.tell())
        if header is None or data is None:
            return
        yield BagRecord(parse_header(header), data)


def unpack_chunk(chunk: BagRecord) -> bytes:
    """Decompress the records of a chunk, at most the declared size. Raises `DamagedError`."""
    size = int.from_bytes(chunk.header.get("size", b""), "little")
    compression = chunk.header.get("compression", b"").decode(errors="replace")
    if compression != "bz2":
        return records.decompress(
            records.Chunk(0, 0, size, 0, "" if compression == "none" else compression, chunk.data)
        )
    problem = expansion_problem(size, len(chunk.data), inputs.UNCHECKED_CHUNK_SIZE)
    if problem:
        raise DamagedError(f"a chunk {problem}")
    try:
        data = bz2.BZ2Decompressor().decompress(chunk.data, max_length=size + 1)
    except (OSError, EOFError) as error:
        raise DamagedError(f"a chunk cannot be decompressed: {error}") from error
    if len(data) != size:
        raise DamagedError("a chunk does not have its declared size")
    return data


@dataclass(eq=False)
class TruncatedBagReader:
    """The complete chunks of a ROS 1 bag. The index is not used."""

    path: Path
    file: BinaryIO
    channels: list[Channel] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    chunk_count: int = 0
    damaged_count: int = 0
    has_index: bool = False
    has_damaged_definition: bool = False

    def __post_init__(self) -> None:
        """Find the topics. Raises `RecordingError` for another file than a ROS 1 bag."""
        self.where = Where(str(self.path))
        self._connections: dict[int, Channel] = {}
        numbers: set[int] = set()
        self._end = self.file.seek(0, io.SEEK_END)
        self.file.seek(0)
        if self.file.read(len(BAG_MAGIC)) != BAG_MAGIC:
            raise RecordingError("is not a ROS 1 bag", where=self.where)
        for record in self._read_all_records():
            if record.kind == MESSAGE and not self.metadata and self._is_metadata(record):
                self.metadata = parse_ros1_metadata(record.data) or {"world": DEFAULT_WORLD_NAME}
            numbers |= {record.connection} if record.kind == MESSAGE else set()
        unknown = sorted(numbers - self._connections.keys())
        self.lost = [f"connection {number}: its record is damaged" for number in unknown]
        self._connections = {
            number: channel for number, channel in self._connections.items() if channel.topic != METADATA_TOPIC
        }
        self.channels = list(dict.fromkeys(self._connections.values()))
        self.is_navsense = bool(self.metadata)

    @property
    def is_intact(self) -> bool:
        """True if no chunk, connection or definition is damaged, and the index names all chunks."""
        has_problem = any(channel.definition_problem for channel in self.channels)
        is_damaged = bool(self.damaged_count or self.lost or self.has_damaged_definition or has_problem)
        return self.has_index and not is_damaged

    def _is_metadata(self, message: BagRecord) -> bool:
        """Return True if a message contains the metadata of the recording."""
        channel = self._connections.get(message.connection)
        return channel is not None and channel.topic == METADATA_TOPIC

    def _read_all_records(self) -> Iterator[BagRecord]:
        """Yield the connections and messages of all complete chunks.

        The index after the chunks has the connections again: one that is damaged in a chunk is read from there.
        """
        self.chunk_count = self.damaged_count = index_offset = declared_count = indexed_count = 0
        self.file.seek(len(BAG_MAGIC))
        for chunk in read_records(self.file, self._end):
            self._add_connection(chunk)
            if chunk.kind == BAG_HEADER:
                index_offset, declared_count = (
                    int.from_bytes(chunk.header.get(name, b""), "little") for name in ("index_pos", "chunk_count")
                )
            indexed_count += chunk.kind == CHUNK_INFO
            if chunk.kind != CHUNK:
                continue
            try:
                data = unpack_chunk(chunk)
                inner = list(read_records(io.BytesIO(data), len(data)))
                for record in inner:
                    self._add_connection(record)
            except (DamagedError, struct.error, KeyError):
                self.damaged_count += 1
                continue
            self.chunk_count += 1
            yield from inner
        self.has_index = index_offset > 0 and declared_count == indexed_count == self.chunk_count + self.damaged_count

    def _add_connection(self, record: BagRecord) -> None:
        """Add a connection, unless it is damaged, or known with a valid definition."""
        known = self._connections.get(record.connection)
        if record.kind != CONNECTION or (known is not None and not known.definition_problem):
            return
        self.has_damaged_definition |= known is not None
        try:
            fields = parse_header(record.data)
            topic, message_type = (fields[key].decode(errors="replace") for key in ("topic", "type"))
            definition = fields["message_definition"]
        except (DamagedError, KeyError):
            self.has_damaged_definition = True
            return
        topic = record.header.get("topic", topic.encode()).decode(errors="replace")
        package, _, name = message_type.partition("/")
        latched = fields.get("latching") == b"1"
        channel = Channel(topic, f"{package}/msg/{name}", ROS1, definition, "ros1msg", latched)
        self._connections[record.connection] = channel

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in the order of the file."""
        channels = dict(self._connections)
        for record in self._read_all_records():
            if record.kind == MESSAGE and record.connection in channels:
                yield RawMessage(channels[record.connection], record.time, record.time, record.data)

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics, in batches of bounded size."""
        return batch_messages(self.read_messages(), topics)


@dataclass(eq=False)
class TruncatedDatabaseReader:
    """The messages of a `.db3` up to its last commit."""

    path: Path
    channels: list[Channel] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the topics. SQLite rolls back an incomplete transaction."""
        import sqlite3

        self.where = Where(str(self.path))
        metadata = self.path.parent.parent / PENDING_METADATA_FILE
        self.metadata = (
            inputs.parse_json(inputs.read_bytes(str(metadata), BAG, inputs.MAX_METADATA))
            if inputs.path_exists(metadata)
            else {}
        )
        self.is_navsense = bool(self.metadata)
        with map_sqlite_errors():
            self._database = sqlite3.connect(self.path)
            definitions = {
                kind: (encoding, text.encode())
                for kind, encoding, text in self._database.execute(
                    "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
                )
            }
            rows = self._database.execute(
                "SELECT id, name, type, serialization_format, offered_qos_profiles FROM topics ORDER BY id"
            )
            self._topics = {number: _make_channel(definitions, *row) for number, *row in rows}
        self.channels = list(dict.fromkeys(self._topics.values()))

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in order of arrival."""
        with map_sqlite_errors():
            rows = self._database.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp, id")
            for number, time, data in rows:
                yield RawMessage(self._topics[number], time, time, data)

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics, in batches of bounded size."""
        return batch_messages(self.read_messages(), topics)

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def _make_channel(
    definitions: Mapping[str, tuple[str, bytes]], topic: str, message_type: str, encoding: str, profiles: str
) -> Channel:
    """Return the topic of a row."""
    schema_encoding, definition = definitions.get(message_type, ("", b""))
    latched = any(value in profiles for value in LATCHED_DURABILITIES)
    return Channel(topic, message_type, encoding or CDR, definition, schema_encoding, latched, profiles)


def recover_bag(path: Path, out: Path, *, keep_intact: bool = True) -> RecoveryResult:
    """Recover the complete chunks of a ROS 1 bag. An intact bag is copied only with `keep_intact`."""
    with open_for_reading(path) as file, map_bag_errors(path):
        source = TruncatedBagReader(path, file)
        if not keep_intact and source.is_intact:
            count, notes = sum(1 for _ in source.read_messages()), _list_notes(source, ())
            return RecoveryResult(
                "", count, source.chunk_count, complete=True, notes=notes, is_truncated=False, is_intact=True
            )
        count, lost = copy_messages(source, out)
    lost += source.lost
    damaged_count = source.damaged_count + len(lost)
    is_complete = source.has_index and not damaged_count
    notes = _list_notes(source, lost)
    return RecoveryResult(
        str(out),
        count,
        source.chunk_count,
        damaged_count,
        is_complete,
        notes=notes,
        is_truncated=not source.has_index,
        is_intact=is_complete,
    )


def recover_database(path: Path, out: Path) -> RecoveryResult:
    """Recover the committed messages of the database of a ROS 2 bag."""
    source = TruncatedDatabaseReader(path)
    try:
        count, lost = copy_messages(source, out)
    finally:
        source.close()
    return RecoveryResult(str(out), count, damaged_chunks=len(lost), notes=_list_notes(source, lost))


def _list_notes(source: MessageReader, lost: Sequence[str]) -> tuple[str, ...]:
    """Return the notes about lost topics, and about the world."""
    return (*(f"not recovered: {line}" for line in lost), *list_notes(source.metadata.get(WORLD_JSON_KEY)))
