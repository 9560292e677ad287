"""Messages of bags that were cut off: a `.bag` chunk by chunk without its index, a `.db3` up to its last commit."""

from __future__ import annotations

import bz2
import io
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from navsense import inputs
from navsense.errors import SinkError, Where
from navsense.inputs import FREE_CHUNK, unpacks_too_far
from navsense.sinks import records
from navsense.sinks.about import TOPIC, text_in
from navsense.sinks.rosbag import ABOUT, database
from navsense.sinks.sources import BAG, CDR, LATCHED_VALUES, NAMELESS, OLD, Item, Line, Lot, lots_of

MAGIC = b"#ROSBAG V2.0\n"
"""What a bag of ROS 1 begins with."""

MESSAGE, CHUNK, CONNECTION = 2, 5, 7
"""Kinds of records of a bag of ROS 1."""

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Record:
    """One record of a bag of ROS 1: the fields of its header, and its data."""

    header: Mapping[str, bytes]
    data: bytes

    @property
    def kind(self) -> int:
        """Return the kind of the record, 0 where it has none."""
        return int.from_bytes(self.header.get("op", b""), "little")

    @property
    def connection(self) -> int:
        """Return the number of the connection."""
        return int.from_bytes(self.header.get("conn", b""), "little")

    @property
    def time(self) -> int:
        """Return the time (ns)."""
        seconds, rest = struct.unpack("<II", self.header["time"])
        return int(seconds) * 10**9 + int(rest)


def fields_of(data: bytes) -> dict[str, bytes]:
    """Return the fields of a header. Raises `DamagedError`."""
    reader, found = records.Reader(data), dict[str, bytes]()
    while reader.at < len(data):
        name, equals, value = bytes(reader.take(reader.number(4))).partition(b"=")
        if not equals:
            raise records.DamagedError("a field of a header has no value")
        found[name.decode(errors="replace")] = value
    return found


def _part(file: BinaryIO, left: int) -> bytes | None:
    """Return the next bytes behind their length; None where the file, of which `left` bytes are left, ends before."""
    head = file.read(_LENGTH.size)
    length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else left
    return file.read(length) if length + _LENGTH.size <= left else None


def records_in(file: BinaryIO, end: int) -> Iterator[Record]:
    """Yield the complete records from the current position up to `end`, and stop at the first that is not."""
    while True:
        header = _part(file, end - file.tell())
        data = None if header is None else _part(file, end - file.tell())
        if header is None or data is None:
            return
        yield Record(fields_of(header), data)


def unpacked(chunk: Record) -> bytes:
    """Return the records of a chunk, at most as many bytes as it declares. Raises `DamagedError`."""
    size = int.from_bytes(chunk.header.get("size", b""), "little")
    form = chunk.header.get("compression", b"").decode(errors="replace")
    if form != "bz2":
        return records.unpack(records.Chunk(0, 0, size, 0, "" if form == "none" else form, chunk.data))
    too_far = unpacks_too_far(size, len(chunk.data), FREE_CHUNK)
    if too_far:
        raise records.DamagedError(f"a chunk {too_far}")
    try:
        data = bz2.BZ2Decompressor().decompress(chunk.data, max_length=size + 1)
    except (OSError, EOFError) as error:
        raise records.DamagedError(f"a chunk does not unpack: {error}") from error
    if len(data) != size:
        raise records.DamagedError("a chunk does not have its size")
    return data


@dataclass(eq=False)
class BagChunks:
    """The complete chunks of a bag of ROS 1. Its index is not read."""

    path: Path
    file: BinaryIO
    lines: list[Line] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    chunks: int = 0
    damaged: int = 0

    def __post_init__(self) -> None:
        """Find the topics. Raises `SinkError` for a file that is no bag of ROS 1."""
        self.where = Where(str(self.path))
        self._connections: dict[int, Line] = {}
        self._end = self.file.seek(0, io.SEEK_END)
        self.file.seek(0)
        if self.file.read(len(MAGIC)) != MAGIC:
            raise SinkError("is not a bag of ROS 1", where=self.where)
        for record in self._records():
            if record.kind == MESSAGE and not self.about and self._is_about(record):
                self.about = text_in(record.data) or {"world": NAMELESS}
        self._connections = {number: line for number, line in self._connections.items() if line.topic != TOPIC}
        self.lines = list(dict.fromkeys(self._connections.values()))
        self.own = bool(self.about)

    def _is_about(self, message: Record) -> bool:
        """Return whether a message is the one in which a recording describes itself."""
        line = self._connections.get(message.connection)
        return line is not None and line.topic == TOPIC

    def _records(self) -> Iterator[Record]:
        """Yield the connections and messages of all chunks that are complete."""
        self.chunks = self.damaged = 0
        self.file.seek(len(MAGIC))
        for outer in records_in(self.file, self._end):
            if outer.kind != CHUNK:
                continue
            try:
                data = unpacked(outer)
                found = list(records_in(io.BytesIO(data), len(data)))
                for one in found:
                    self._define(one)
            except (records.DamagedError, struct.error, KeyError):
                self.damaged += 1
                continue
            self.chunks += 1
            yield from found

    def _define(self, record: Record) -> None:
        """Add a connection."""
        if record.kind != CONNECTION:
            return
        values = fields_of(record.data)
        topic, kind = (values[key].decode(errors="replace") for key in ("topic", "type"))
        topic = record.header.get("topic", topic.encode()).decode(errors="replace")
        package, _, short = kind.partition("/")
        latched = values.get("latching") == b"1"
        line = Line(topic, f"{package}/msg/{short}", OLD, values["message_definition"], "ros1msg", latched)
        self._connections[record.connection] = line

    def items(self) -> Iterator[Item]:
        """Yield the messages in the order of the file."""
        known = dict(self._connections)
        for record in self._records():
            if record.kind == MESSAGE and record.connection in known:
                yield Item(known[record.connection], record.time, record.time, record.data)

    def lots(self, topics: Collection[str]) -> Iterator[list[Lot]]:
        """Yield the messages of some topics, in batches of bounded size."""
        return lots_of(self.items(), topics)


@dataclass(eq=False)
class Database:
    """The messages of a `.db3` up to its last commit."""

    path: Path
    lines: list[Line] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the topics. SQLite takes back what was not committed."""
        import sqlite3

        self.where = Where(str(self.path))
        beside = self.path.parent.parent / ABOUT
        self.about = (
            inputs.json_of(inputs.content(str(beside), BAG, inputs.LARGEST_METADATA)) if inputs.there(beside) else {}
        )
        self.own = bool(self.about)
        with database():
            self._database = sqlite3.connect(self.path)
            forms = {
                kind: (form, text.encode())
                for kind, form, text in self._database.execute(
                    "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
                )
            }
            rows = self._database.execute(
                "SELECT id, name, type, serialization_format, offered_qos_profiles FROM topics ORDER BY id"
            )
            self._topics = {number: _line(forms, *row) for number, *row in rows}
        self.lines = list(dict.fromkeys(self._topics.values()))

    def items(self) -> Iterator[Item]:
        """Yield the messages in order of arrival."""
        with database():
            rows = self._database.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp, id")
            for number, time, data in rows:
                yield Item(self._topics[number], time, time, data)

    def lots(self, topics: Collection[str]) -> Iterator[list[Lot]]:
        """Yield the messages of some topics, in batches of bounded size."""
        return lots_of(self.items(), topics)

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def _line(forms: Mapping[str, tuple[str, bytes]], name: str, kind: str, encoding: str, quality: str) -> Line:
    """Return the topic of a row."""
    form, text = forms.get(kind, ("", b""))
    latched = any(value in quality for value in LATCHED_VALUES)
    return Line(name, kind, encoding or CDR, text, form, latched, quality)
