"""Records of MCAP files (MCAP specification, version 0): encoding, parsing, and reading files that may be truncated.

A file consists of the magic, records (opcode, 1 byte; length, 8 bytes; body), and the magic again, in little-endian.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import zstandard

from navsense.core.errors import DamagedError
from navsense.core.inputs import UNCHECKED_CHUNK_SIZE, expansion_problem

MAGIC = b"\x89MCAP0\r\n"

HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)

ATTACHMENT, ATTACHMENT_INDEX, STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = range(9, 16)

RUN_METADATA = "navsense"
"""Name of the metadata record of the run."""

WORLD_METADATA = "navsense.world"
"""Name of the metadata record with the world's JSON, see `world_json`."""

RECORD_HEADER = struct.Struct("<BQ")
"""Opcode (1 byte) and length (8 bytes) of every record."""

MESSAGE_HEADER = struct.Struct("<BQHIQQ")
"""Opcode, length, channel id, sequence, log time (ns), publish time (ns), before the data of a message."""

MESSAGE_FIELDS = np.dtype(
    [("opcode", "u1"), ("length", "<u8"), ("channel_id", "<u2"), ("sequence", "<u4")]
    + [("log_time", "<u8"), ("publish_time", "<u8")]
)
"""The fields of `MESSAGE_HEADER`."""

MESSAGE_INDEX_HEADER = struct.Struct("<BQHI")
"""Opcode, length, channel id, bytes of the table, before the table of a MessageIndex record."""

FOOTER_FIELDS = struct.Struct("<QQI")
"""Start of the summary, start of its offsets, CRC."""

DATA_END_FIELDS = struct.Struct("<I")
"""CRC of the data section."""

CHUNK_INDEX_FIELDS = struct.Struct("<QQQQ")
"""First and last log time (ns), offset and length of the chunk, at the start of a ChunkIndex record."""

CHUNK_HEADER = struct.Struct("<QQQI")
"""First and last log time (ns), uncompressed size and CRC."""

CRC_BLOCK_BYTES = 1 << 20
"""Bytes of a file that are read at once for a CRC."""

METADATA_CRC = struct.Struct("<4sI")
"""Fields that navsense adds after the map of a Metadata record: `METADATA_CRC_TAG` and the CRC of the bytes before."""

METADATA_CRC_TAG = b"CRC="

FIELDS_BEFORE_CHANNEL_MAP = {CHUNK_INDEX: "<QQQQ", STATISTICS: "<QHIIIIQQ"}
"""Opcode of a record with a map by channel id -> format of the fields before the map."""

CHANNEL_PAIR = struct.Struct("<HQ")
"""An entry of such a map: channel id, and offset or number of messages."""

MAX_CHUNK_SIZE = 1 << 30
"""Largest uncompressed size (bytes) of a chunk; a larger one counts as damage."""


def is_truncated(file: BinaryIO) -> bool:
    """Return True for an MCAP file without the closing magic, False for a complete one and for other files."""
    file.seek(0)
    begins = file.read(len(MAGIC)) == MAGIC
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - len(MAGIC), 0))
    return begins and (file.read() != MAGIC or size <= len(MAGIC))


def encode_record(opcode: int, *parts: bytes) -> bytes:
    """Return one record of the joined parts."""
    body = b"".join(parts)
    return RECORD_HEADER.pack(opcode, len(body)) + body


def encode_string(value: str) -> bytes:
    """Return a string with its length."""
    return encode_bytes(value.encode())


def encode_bytes(raw: bytes) -> bytes:
    """Return bytes with their length in 32 bits."""
    return struct.pack("<I", len(raw)) + raw


def encode_map(values: Mapping[str, str]) -> bytes:
    """Return a map of strings with its length."""
    return encode_bytes(b"".join(encode_string(key) + encode_string(value) for key, value in values.items()))


def encode_schema(schema_id: int, name: str, definition: bytes, encoding: str = "ros2msg") -> bytes:
    """Return a Schema record of a definition."""
    return encode_record(
        SCHEMA, struct.pack("<H", schema_id), encode_string(name), encode_string(encoding), encode_bytes(definition)
    )


def encode_channel(
    channel_id: int, schema_id: int, topic: str, metadata: Mapping[str, str], encoding: str = "cdr"
) -> bytes:
    """Return a Channel record for messages in CDR or another encoding."""
    return encode_record(
        CHANNEL,
        struct.pack("<HH", channel_id, schema_id),
        encode_string(topic),
        encode_string(encoding),
        encode_map(metadata),
    )


def encode_metadata(name: str, values: Mapping[str, str]) -> bytes:
    """Return a Metadata record with a CRC."""
    body = encode_string(name) + encode_map(values)
    return encode_record(METADATA, body, METADATA_CRC.pack(METADATA_CRC_TAG, zlib.crc32(body)))


def parse_metadata(body: bytes) -> tuple[str, dict[str, str]]:
    """Return the name and the values of a Metadata record. Raises `DamagedError` if it has a CRC that is wrong."""
    reader = FieldReader(body)
    name, values = reader.read_string(), reader.read_map()
    expected = METADATA_CRC.pack(METADATA_CRC_TAG, zlib.crc32(body[: reader.offset]))
    if body[reader.offset :].startswith(METADATA_CRC_TAG) and body[reader.offset :] != expected:
        raise DamagedError("a metadata record has a wrong CRC")
    return name, values


def encode_message_header(channel_id: int, sequence: int, log_time: int, publish_time: int, size: int) -> bytes:
    """Return the header of a Message record with `size` bytes of data; times in ns."""
    length = MESSAGE_HEADER.size - RECORD_HEADER.size + size
    return MESSAGE_HEADER.pack(MESSAGE, length, channel_id, sequence & 0xFFFFFFFF, log_time, publish_time)


class FieldReader:
    """Reads the fields of a record in order. Raises `DamagedError` if the record ends too early."""

    def __init__(self, body: bytes | memoryview) -> None:
        """Start at the first byte."""
        self.body = memoryview(body)
        self.offset = 0

    def read(self, size: int) -> memoryview:
        """Return the next `size` bytes."""
        if size > len(self.body) - self.offset:
            raise DamagedError("a record ends too early")
        self.offset += size
        return self.body[self.offset - size : self.offset]

    def read_int(self, size: int) -> int:
        """Return the next unsigned integer of `size` bytes."""
        return int.from_bytes(self.read(size), "little")

    def read_string(self) -> str:
        """Return the next string."""
        try:
            return str(self.read(self.read_int(4)), "utf-8")
        except UnicodeDecodeError as error:
            raise DamagedError("a text is not UTF-8") from error

    def read_map(self) -> dict[str, str]:
        """Return the next map of strings."""
        inner = FieldReader(self.read(self.read_int(4)))
        out = {}
        while inner.offset < len(inner.body):
            key = inner.read_string()
            out[key] = inner.read_string()
        return out


@dataclass(frozen=True)
class RawRecord:
    """One record of a file: opcode, offset, body."""

    opcode: int
    offset: int
    body: bytes


def list_channels(raw: RawRecord) -> set[int]:
    """Return the channel ids with messages in a ChunkIndex or Statistics record."""
    if raw.opcode not in FIELDS_BEFORE_CHANNEL_MAP:
        return set()
    reader = FieldReader(raw.body)
    reader.read(struct.calcsize(FIELDS_BEFORE_CHANNEL_MAP[raw.opcode]))
    pairs = reader.read(reader.read_int(4))
    return {int.from_bytes(pairs[start : start + 2], "little") for start in range(0, len(pairs), CHANNEL_PAIR.size)}


def read_records(file: BinaryIO, start: int, end: int) -> Iterator[RawRecord]:
    """Yield the records between two offsets up to the first incomplete one."""
    offset = start
    while offset + RECORD_HEADER.size <= end:
        file.seek(offset)
        opcode, length = RECORD_HEADER.unpack(file.read(RECORD_HEADER.size))
        if opcode == 0 or length > end - offset - RECORD_HEADER.size:
            return
        body = file.read(length)
        if len(body) < length:
            return
        yield RawRecord(opcode, offset, body)
        offset += RECORD_HEADER.size + length


def compute_crc(file: BinaryIO, start: int, end: int) -> int:
    """Return the CRC of the bytes between two offsets."""
    file.seek(start)
    crc = 0
    for offset in range(start, end, CRC_BLOCK_BYTES):
        crc = zlib.crc32(file.read(min(CRC_BLOCK_BYTES, end - offset)), crc)
    return crc


def has_summary_crc(file: BinaryIO, footer: RawRecord) -> bool:
    """Return True if the file has a summary with a CRC. Raises `DamagedError` if the CRC is wrong.

    The CRC covers the summary and the footer up to the CRC.
    """
    start, _, crc = FOOTER_FIELDS.unpack_from(footer.body)
    crc_offset = footer.offset + RECORD_HEADER.size + FOOTER_FIELDS.size - DATA_END_FIELDS.size
    if start and crc and compute_crc(file, start, crc_offset) != crc:
        raise DamagedError("its summary has a wrong CRC")
    return bool(start and crc)


def check_data_section(file: BinaryIO, data_end: RawRecord) -> None:
    """Raise `DamagedError` if the CRC in the DataEnd record is wrong. It covers the file from its start; 0 is none."""
    (crc,) = DATA_END_FIELDS.unpack_from(data_end.body)
    if crc and compute_crc(file, 0, data_end.offset) != crc:
        raise DamagedError("its data section has a wrong CRC")


@dataclass(frozen=True)
class Chunk:
    """One chunk of a file: first and last log time in ns, uncompressed size in bytes, `data` compressed."""

    first: int
    last: int
    size: int
    crc: int
    compression: str
    data: bytes | memoryview


def parse_chunk(body: bytes) -> Chunk:
    """Return the chunk of a Chunk record's body."""
    reader = FieldReader(body)
    first, last, size, crc = CHUNK_HEADER.unpack(reader.read(CHUNK_HEADER.size))
    compression = reader.read_string()
    return Chunk(first, last, size, crc, compression, reader.read(reader.read_int(8)))


def decompress(chunk: Chunk) -> bytes:
    """Return the uncompressed records of a chunk. Raises `DamagedError` for a wrong size or checksum."""
    if chunk.size > MAX_CHUNK_SIZE:
        raise DamagedError(f"a chunk has the uncompressed size {chunk.size} bytes")
    problem = expansion_problem(chunk.size, len(chunk.data), UNCHECKED_CHUNK_SIZE)
    if problem:
        raise DamagedError(f"a chunk {problem}")
    try:
        data = _decompress(chunk)
    except (zstandard.ZstdError, RuntimeError, MemoryError, EOFError) as error:
        raise DamagedError(f"a chunk cannot be decompressed: {error}") from error
    if len(data) != chunk.size or (chunk.crc and zlib.crc32(data) != chunk.crc):
        raise DamagedError("a chunk has a wrong size or CRC")
    return data


def _decompress(chunk: Chunk) -> bytes:
    """Return the bytes of a chunk, at most one more than its declared size."""
    if chunk.compression == "":
        return bytes(chunk.data)
    if chunk.compression == "zstd":
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(chunk.data), read_across_frames=True) as stream:
            return bytes(stream.read(chunk.size + 1))
    if chunk.compression == "lz4":
        import lz4.frame

        decoder = lz4.frame.LZ4FrameDecompressor()
        data = bytes(decoder.decompress(chunk.data, max_length=chunk.size + 1))
        if decoder.eof and not decoder.unused_data:
            return data
        with lz4.frame.LZ4FrameFile(io.BytesIO(chunk.data)) as stream:
            return bytes(stream.read(chunk.size + 1))
    raise DamagedError(f"a chunk is compressed as {chunk.compression!r}, which is not supported")
