"""The records of an MCAP file as bytes: packing them, and walking through them where the file may end anywhere.

A file is a magic, records of one byte of kind, eight of length and a body, and the magic again; little-endian
throughout (the MCAP specification, version 0).
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import zstandard

from navsense.inputs import FREE_CHUNK, expansion_problem

MAGIC = b"\x89MCAP0\r\n"

HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)
ATTACHMENT, ATTACHMENT_INDEX, STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = range(9, 16)

PREFIX = struct.Struct("<BQ")
"""Kind and length of every record."""

MESSAGE_HEAD = struct.Struct("<BQHIQQ")
"""Kind, length, channel, sequence, log time (ns), publish time (ns), before a message's data."""

MESSAGE_INDEX_HEAD = struct.Struct("<BQHI")
"""Kind, length, channel, bytes of the table, before a MessageIndex record's table."""

FOOTER_BODY = struct.Struct("<QQI")
"""Start of the summary, start of its offsets, CRC."""

CHUNK_HEAD = struct.Struct("<QQQI")
"""First and last log time (ns), uncompressed size and CRC."""

LARGEST_CHUNK = 1 << 30
"""Bytes that a chunk may unpack to: larger ones are taken for damage."""


class DamagedError(Exception):
    """A record that does not hold what it says."""


def is_truncated(file: BinaryIO) -> bool:
    """Return True for an MCAP file without its end. False for a complete one and for other files."""
    file.seek(0)
    begins = file.read(len(MAGIC)) == MAGIC
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - len(MAGIC), 0))
    return begins and (file.read() != MAGIC or size <= len(MAGIC))


def record(kind: int, *parts: bytes) -> bytes:
    """Return one record of the joined parts."""
    body = b"".join(parts)
    return PREFIX.pack(kind, len(body)) + body


def text(value: str) -> bytes:
    """Return a string with its length."""
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw


def block(raw: bytes) -> bytes:
    """Return bytes with their length in 32 bits."""
    return struct.pack("<I", len(raw)) + raw


def mapping(values: Mapping[str, str]) -> bytes:
    """Return a map of strings with its length."""
    return block(b"".join(text(key) + text(value) for key, value in values.items()))


def schema(number: int, name: str, definition: bytes, encoding: str = "ros2msg") -> bytes:
    """Return a Schema record of a definition: a `ros2msg` text unless it is another encoding's."""
    return record(SCHEMA, struct.pack("<H", number), text(name), text(encoding), block(definition))


def channel(number: int, schema_number: int, topic: str, values: Mapping[str, str], encoding: str = "cdr") -> bytes:
    """Return a Channel record for messages in CDR or another encoding."""
    return record(CHANNEL, struct.pack("<HH", number, schema_number), text(topic), text(encoding), mapping(values))


class Reader:
    """Takes values from a body one after the other; raises `DamagedError` where it ends too early."""

    def __init__(self, body: bytes | memoryview) -> None:
        """Start at the first byte."""
        self.body = memoryview(body)
        self.at = 0

    def take(self, size: int) -> memoryview:
        """Return the next `size` bytes."""
        if size > len(self.body) - self.at:
            raise DamagedError("a record ends too early")
        self.at += size
        return self.body[self.at - size : self.at]

    def number(self, size: int) -> int:
        """Return the next unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def text(self) -> str:
        """Return the next string."""
        try:
            return str(self.take(self.number(4)), "utf-8")
        except UnicodeDecodeError as error:
            raise DamagedError("a text is not UTF-8") from error

    def mapping(self) -> dict[str, str]:
        """Return the next map of strings."""
        inner = Reader(self.take(self.number(4)))
        out = {}
        while inner.at < len(inner.body):
            key = inner.text()
            out[key] = inner.text()
        return out


@dataclass(frozen=True)
class Raw:
    """One record of a file: kind, where it starts, its body."""

    kind: int
    offset: int
    body: bytes


def channels_in(raw: Raw) -> set[int]:
    """Return the channels that an index or the statistics say have messages."""
    reader = Reader(raw.body)
    if raw.kind == CHUNK_INDEX:
        reader.take(32)
    elif raw.kind == STATISTICS:
        reader.take(42)
    else:
        return set()
    pairs = reader.take(reader.number(4))
    return {int.from_bytes(pairs[at : at + 2], "little") for at in range(0, len(pairs), 10)}


def walk(file: BinaryIO, start: int, end: int) -> Iterator[Raw]:
    """Yield the records that lie whole between two offsets; stop at the first that does not."""
    offset = start
    while offset + PREFIX.size <= end:
        file.seek(offset)
        kind, length = PREFIX.unpack(file.read(PREFIX.size))
        if kind == 0 or length > end - offset - PREFIX.size:
            return
        body = file.read(length)
        if len(body) < length:
            return
        yield Raw(kind, offset, body)
        offset += PREFIX.size + length


@dataclass(frozen=True)
class Chunk:
    """One chunk as it lies in a file: times in ns, sizes in bytes, `data` compressed."""

    start: int
    end: int
    size: int
    crc: int
    compression: str
    data: bytes | memoryview


def parse_chunk(body: bytes) -> Chunk:
    """Return the chunk of a Chunk record's body."""
    reader = Reader(body)
    start, end, size, crc = CHUNK_HEAD.unpack(reader.take(CHUNK_HEAD.size))
    compression = reader.text()
    return Chunk(start, end, size, crc, compression, reader.take(reader.number(8)))


def unpack(chunk: Chunk) -> bytes:
    """Return a chunk's records uncompressed. Raise `DamagedError` where they are not what they were."""
    if chunk.size > LARGEST_CHUNK:
        raise DamagedError(f"a chunk says that it unpacks to {chunk.size} bytes")
    problem = expansion_problem(chunk.size, len(chunk.data), FREE_CHUNK)
    if problem:
        raise DamagedError(f"a chunk {problem}")
    try:
        data = _decompressed(chunk)
    except (zstandard.ZstdError, RuntimeError, MemoryError, EOFError) as error:
        raise DamagedError(f"a chunk does not unpack: {error}") from error
    if len(data) != chunk.size or (chunk.crc and zlib.crc32(data) != chunk.crc):
        raise DamagedError("a chunk does not have its checksum")
    return data


def _decompressed(chunk: Chunk) -> bytes:
    """Return the bytes of a chunk, at most as many as it says and one more."""
    if chunk.compression == "":
        return bytes(chunk.data)
    if chunk.compression == "zstd":
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(chunk.data), read_across_frames=True) as stream:
            return bytes(stream.read(chunk.size + 1))
    if chunk.compression == "lz4":
        import lz4.frame

        decoder = lz4.frame.LZ4FrameDecompressor()
        whole = bytes(decoder.decompress(chunk.data, max_length=chunk.size + 1))
        if decoder.eof and not decoder.unused_data:
            return whole
        with lz4.frame.LZ4FrameFile(io.BytesIO(chunk.data)) as stream:
            return bytes(stream.read(chunk.size + 1))
    raise DamagedError(f"a chunk is compressed as {chunk.compression!r}, which is not known")


def inner(data: bytes | memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield kind, offset and body of each record in a chunk's bytes. Raise `DamagedError` at a broken one."""
    view = memoryview(data)
    offset = 0
    while offset < len(view):
        if offset + PREFIX.size > len(view):
            raise DamagedError("a chunk ends inside a record")
        kind, length = PREFIX.unpack_from(view, offset)
        if kind == 0:
            raise DamagedError("a chunk contains a record of the invalid opcode 0")
        start = offset + PREFIX.size
        if length > len(view) - start:
            raise DamagedError("a chunk ends inside a record")
        yield kind, offset, view[start : start + length]
        offset = start + length
