"""LZ4 compression of messages while they are encoded: without a search for matches and without a copy.

All messages of a channel have one size and differ only in the numbers that their encoder writes. So n rows of w bytes
become one LZ4 block. Its literals are the first row, the last row and the numbers of the others. The bytes between the
numbers are matches at the distance w:

    sequence 1        token | row 0 | row 1 before its first numbers
    row 1                     numbers | match | token | numbers | match | ...
    rows 2 to n - 2   token | numbers | match | token | numbers | match | ...
    last literals     token | row n - 1 from its first numbers on

The matches are the same in every row. So the numbers of a compressed row are at known offsets, as in a message, and the
encoder writes them there. Each block has an XXH32 checksum.

Sources: LZ4 Block Format Description (2022); LZ4 Frame Format 1.6.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from navsense.core.typing import AnyArray, ByteArray, IntArray
from navsense.messages.cdr import FieldOffset, make_row_dtype
from navsense.recordings.mcap.xxh32 import xxh32

FRAME_HEADER = b"\x04\x22\x4d\x18\x70\x70\x72"
"""Magic; version 1 with independent blocks and block checksums; blocks up to 4 MiB; checksum of these two bytes."""

FRAME_END = b"\0\0\0\0"

MAX_BLOCK_SIZE = 1 << 22
"""Uncompressed bytes of one block."""

UNCOMPRESSED_FLAG = 1 << 31
"""Flag in the size of an uncompressed block."""

MAX_MATCH_DISTANCE = 65535
"""Largest distance of a match in bytes."""

MIN_MATCH_LENGTH = 8
"""Smallest number of bytes between two numbers that becomes a match. Fewer bytes become literals."""

MIN_ROWS = 3
"""Smallest number of rows of a compressed block."""

COPY_ROWS = 32
"""Rows that are copied at once."""

MIN_COPIES = 16
"""Smallest number of copies of `COPY_ROWS` rows. Fewer rows are filled one by one."""

UINT32 = struct.Struct("<I")
"""Size before a block, checksum after it."""

BLOCK_OVERHEAD = 2 * UINT32.size

RowFiller = Callable[[AnyArray], None]


def encode_length(value: int) -> bytes:
    """Return the length bytes after a token whose field is 15."""
    return b"" if value < 15 else b"\xff" * ((value - 15) // 255) + bytes([(value - 15) % 255])


def encode_token(literals: int, match_length: int) -> bytes:
    """Return the token before literals and a match of `match_length` bytes, 0 without a match."""
    return bytes([min(literals, 15) << 4 | min(max(match_length - 4, 0), 15)]) + encode_length(literals)


def compute_max_compressed_size(width: int, count: int) -> int:
    """Return the largest compressed size of `count` rows of `width` bytes."""
    return count * width + 3 * (width + width // 255) + (BLOCK_OVERHEAD + 64) * (1 + count * width // MAX_BLOCK_SIZE)


def find_number_spans(fields: Mapping[str, FieldOffset]) -> list[tuple[int, int]]:
    """Return the spans [first, stop) of the numbers in a row; spans that are close to each other are joined."""
    spans: list[tuple[int, int]] = []
    for field in sorted(fields.values(), key=lambda field: field.offset):
        stop = field.offset + np.dtype(field.dtype).itemsize * max(field.count, 1)
        if spans and field.offset - spans[-1][1] < MIN_MATCH_LENGTH:
            spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
        else:
            spans.append((field.offset, stop))
    return spans


@dataclass(frozen=True, eq=False)
class RowCompressor:
    """Compressor of rows.

    template, dtype: the bytes (w,) and the type of a row.
    lz4_row, lz4_dtype: the bytes (l,) and the type of a compressed row.
    sequence_start_bytes: start of the first sequence: its token, the first row, and the bytes of the second row up to
        its first numbers. The numbers follow in the same literals.
    last_literals: their token, and the last row from its first numbers on.
    number_offsets: offsets (b,) of the b bytes of numbers in a compressed row.
    first_row_offsets: their offsets (b,) in `sequence_start_bytes`.
    last_row_offsets: their offsets (b,) in `last_literals`.
    """

    template: ByteArray
    dtype: np.dtype[np.void]
    lz4_row: ByteArray
    lz4_dtype: np.dtype[np.void]
    sequence_start_bytes: ByteArray
    last_literals: ByteArray
    number_offsets: IntArray
    first_row_offsets: IntArray
    last_row_offsets: IntArray

    @property
    def can_compress(self) -> bool:
        """True if such rows fit into LZ4 matches and do not become longer. `_compress_block` relies on both."""
        return self.template.size <= MAX_MATCH_DISTANCE and self.lz4_row.size <= self.template.size

    def compress_into(self, out: ByteArray, offset: int, count: int, fill_numbers: RowFiller) -> int:
        """Write rows of the template with the numbers that `fill_numbers` writes, at `offset`; return their end."""
        if self.can_compress and count >= MIN_ROWS and count * self.template.size <= MAX_BLOCK_SIZE:
            return self._compress_block(out, offset, count, fill_numbers)
        rows = np.empty((count, self.template.size), dtype=np.uint8)
        rows[:] = self.template
        fill_numbers(np.ndarray((count,), self.dtype, rows))
        return write_uncompressed(out, offset, rows.reshape(-1))

    def _compress_block(self, out: ByteArray, offset: int, count: int, fill_numbers: RowFiller) -> int:
        """Write one compressed block. Rows are encoded in place; the first and the last row are written in full."""
        size, sequence_start = self.lz4_row.size, offset + 4
        # The literals of the first sequence end with the first numbers of row 1, so row 1 needs no token.
        rows_start = sequence_start + self.sequence_start_bytes.size - int(self.number_offsets[0]) - size
        rows = out[rows_start : rows_start + count * size].reshape(count, size)
        # Rows 0 and n - 1 are filled like the others, and their numbers are saved. Then `sequence_start_bytes` and
        # `last_literals` overwrite the two rows, and the numbers are written into these. The compressed row 0 begins
        # after `sequence_start`, because it is not longer than the template (`can_compress`).
        repeat_row(rows, self.lz4_row)
        fill_numbers(np.ndarray((count,), self.lz4_dtype, out, rows_start))
        numbers = rows[:: count - 1].take(self.number_offsets, axis=1)
        out[sequence_start : sequence_start + self.sequence_start_bytes.size] = self.sequence_start_bytes
        out[sequence_start + self.first_row_offsets] = numbers[0]
        literals_start = rows_start + (count - 1) * size
        end = literals_start + self.last_literals.size
        out[literals_start:end] = self.last_literals
        out[literals_start + self.last_row_offsets] = numbers[1]
        return write_size_and_checksum(out, offset, end)


def repeat_row(rows: ByteArray, row: ByteArray) -> None:
    """Fill rows (n, w) with one row (w,): first `COPY_ROWS` rows, then copies of these, which is faster."""
    copies = len(rows) // COPY_ROWS
    if copies < MIN_COPIES:
        rows[:] = row
        return
    rows[:COPY_ROWS] = row
    rows[COPY_ROWS : copies * COPY_ROWS].reshape(copies - 1, -1)[:] = rows[:COPY_ROWS].reshape(-1)
    rows[copies * COPY_ROWS :] = row


def build_compressor(template: bytes, fields: Mapping[str, FieldOffset], names: set[str]) -> RowCompressor:
    """Return the compressor of rows like `template` in which the fields `names` are written."""
    written = {name: field for name, field in fields.items() if name in names}
    spans, row, literal_starts = find_number_spans(written), b"", list[int]()
    next_starts = [*(first for first, _ in spans[1:]), len(template) + spans[0][0]]
    for (first, stop), next_start in zip(spans, next_starts, strict=True):
        match_length = next_start - stop
        row += encode_token(stop - first, match_length)
        literal_starts.append(len(row))
        row += template[first:stop] + len(template).to_bytes(4, "little")[:2] + encode_length(match_length - 4)
    shifted = {
        name: FieldOffset(field.dtype, field.count, field.offset + start - first)
        for name, field in written.items()
        for (first, stop), start in zip(spans, literal_starts, strict=True)
        if first <= field.offset < stop
    }
    first = spans[0][0]
    first_token = encode_token(len(template) + spans[0][1], next_starts[0] - spans[0][1])
    last_token = encode_token(len(template) - first, 0)
    template_offsets = np.concatenate([np.arange(*span) for span in spans])
    number_offsets = [
        np.arange(start, start + stop - first) for (first, stop), start in zip(spans, literal_starts, strict=True)
    ]
    return RowCompressor(
        np.frombuffer(template, dtype=np.uint8),
        make_row_dtype(fields, len(template)),
        np.frombuffer(row, dtype=np.uint8),
        make_row_dtype(shifted, len(row)),
        sequence_start_bytes=np.frombuffer(first_token + template + template[:first], dtype=np.uint8),
        last_literals=np.frombuffer(last_token + template[first:], dtype=np.uint8),
        number_offsets=np.concatenate(number_offsets),
        first_row_offsets=template_offsets + len(first_token),
        last_row_offsets=template_offsets + len(last_token) - first,
    )


def write_size_and_checksum(out: ByteArray, start: int, end: int, flag: int = 0) -> int:
    """Write the size and the checksum of a block around its bytes; return its end."""
    UINT32.pack_into(out.data, start, end - start - 4 | flag)
    UINT32.pack_into(out.data, end, xxh32(out[start + 4 : end]))
    return end + 4


def write_uncompressed(out: ByteArray, offset: int, data: ByteArray) -> int:
    """Write bytes as uncompressed blocks of the largest size; return their end."""
    for first in range(0, data.size, MAX_BLOCK_SIZE):
        part = data[first : first + MAX_BLOCK_SIZE]
        out[offset + 4 : offset + 4 + part.size] = part
        offset = write_size_and_checksum(out, offset, offset + 4 + part.size, UNCOMPRESSED_FLAG)
    return offset


class AccessTracker:
    """Rows that store the names of the fields that are written."""

    def __init__(self, rows: AnyArray) -> None:
        """Store the rows."""
        self._rows = rows
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> AnyArray:
        """Return the numbers of a field, which the caller may write."""
        self.names.add(name)
        return self._rows[name]

    def __setitem__(self, name: str, value: object) -> None:
        """Write the numbers of a field."""
        self.names.add(name)
        self._rows[name] = value
