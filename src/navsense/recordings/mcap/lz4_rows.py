"""LZ4 compression of messages while they are encoded: without a search for matches and without a copy.

All messages of a channel have one size and differ only in the numbers that their encoder writes. So n rows of w bytes
are one LZ4 block: the first row, then for each row its numbers as literals and the bytes between them as matches at the
distance w, then the last row (LZ4 Block Format Description, 2022; LZ4 Frame Format 1.6.2). The matches are the same in
every row. So a row of LZ4 has its numbers at known offsets, as a message has, and an encoder writes them there. Each
block has an XXH32 checksum (xxHash fast digest algorithm, version 0.1.1, seed 0).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.core.kernels import INTERPRETED, kernel
from navsense.core.typing import AnyArray, ByteArray, IntArray
from navsense.messages.cdr import FieldOffset, make_row_dtype

MASK = 0xFFFFFFFF

PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
"""The five primes of the algorithm."""

LANES = 4
"""Words that are processed together, each with an accumulator of its own."""


@kernel
def multiply(value: int, prime: int) -> int:
    """Return the low 32 bits of a product."""
    return (value * (prime & 0xFFFF) + (((value * (prime >> 16)) & 0xFFFF) << 16)) & MASK


@kernel
def rotate_left(value: int, bits: int) -> int:
    """Return 32 bits rotated to the left."""
    return ((value << bits) | (value >> (32 - bits))) & MASK


@kernel
def digest(words: AnyArray | Sequence[int], rest: AnyArray | Sequence[int]) -> int:
    """Return the checksum of words of four bytes and of the remaining bytes, fewer than four."""
    count, at, state = len(words), 0, PRIME_5
    if count >= LANES:
        one, two, three, four = (PRIME_1 + PRIME_2) & MASK, PRIME_2, 0, -PRIME_1 & MASK
        while at + LANES <= count:
            one = multiply(rotate_left((one + multiply(int(words[at]) & MASK, PRIME_2)) & MASK, 13), PRIME_1)
            two = multiply(rotate_left((two + multiply(int(words[at + 1]) & MASK, PRIME_2)) & MASK, 13), PRIME_1)
            three = multiply(rotate_left((three + multiply(int(words[at + 2]) & MASK, PRIME_2)) & MASK, 13), PRIME_1)
            four = multiply(rotate_left((four + multiply(int(words[at + 3]) & MASK, PRIME_2)) & MASK, 13), PRIME_1)
            at += LANES
        state = (rotate_left(one, 1) + rotate_left(two, 7) + rotate_left(three, 12) + rotate_left(four, 18)) & MASK
    state = (state + 4 * count + len(rest)) & MASK
    while at < count:
        state = multiply(rotate_left((state + multiply(int(words[at]) & MASK, PRIME_3)) & MASK, 17), PRIME_4)
        at += 1
    for i in range(len(rest)):
        state = multiply(rotate_left((state + multiply(int(rest[i]) & 255, PRIME_5)) & MASK, 11), PRIME_1)
    state = multiply(state ^ (state >> 15), PRIME_2)
    state = multiply(state ^ (state >> 13), PRIME_3)
    return state ^ (state >> 16)


def xxh32(data: ByteArray) -> int:
    """Return the checksum of bytes (n,)."""
    size = data.size - data.size % 4
    words, rest = data[:size].view("<i4"), data[size:].view(np.int8)
    # Without compilation, lists are faster than arrays.
    return digest(words.tolist(), rest.tolist()) if INTERPRETED else digest(words, rest)


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
"""Bytes between two numbers from which on they become a match; fewer become literals."""

MIN_ROWS = 3
"""Smallest number of rows of a compressed block."""

COPY_ROWS = 32
"""Rows that are copied at once."""

MIN_COPIES = 16
"""Smallest number of such copies; fewer rows are filled one by one."""

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


def max_compressed_size(width: int, count: int) -> int:
    """Return the largest compressed size of `count` rows of `width` bytes."""
    return count * width + 3 * (width + width // 255) + (BLOCK_OVERHEAD + 64) * (1 + count * width // MAX_BLOCK_SIZE)


def find_number_spans(fields: Mapping[str, FieldOffset]) -> list[tuple[int, int]]:
    """Return the spans [first, stop) of the numbers in a row; spans that are close to each other are joined."""
    spans: list[tuple[int, int]] = []
    for place in sorted(fields.values(), key=lambda place: place.offset):
        stop = place.offset + np.dtype(place.dtype).itemsize * max(place.count, 1)
        if spans and place.offset - spans[-1][1] < MIN_MATCH_LENGTH:
            spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
        else:
            spans.append((place.offset, stop))
    return spans


@dataclass(frozen=True, eq=False)
class RowCompressor:
    """Compressor of rows.

    template (w,), dtype: a row. lz4_row (l,), lz4_dtype: a row of LZ4. opening: the first row and the first literals of
    the second, with their token. ending: the last row, with its token. number_offsets, opening_offsets, ending_offsets
    (b,): the offsets of the bytes of numbers in a row of LZ4, in the opening and in the ending.
    """

    template: ByteArray
    dtype: np.dtype[np.void]
    lz4_row: ByteArray
    lz4_dtype: np.dtype[np.void]
    opening: ByteArray
    ending: ByteArray
    number_offsets: IntArray
    opening_offsets: IntArray
    ending_offsets: IntArray

    @property
    def can_compress(self) -> bool:
        """True if such rows fit into LZ4 matches and become shorter."""
        return self.template.size <= MAX_MATCH_DISTANCE and self.lz4_row.size <= self.template.size

    def compress_into(self, out: ByteArray, offset: int, count: int, fill: RowFiller) -> int:
        """Write rows of the template with the numbers that `fill` writes, at `offset`; return their end."""
        if self.can_compress and count >= MIN_ROWS and count * self.template.size <= MAX_BLOCK_SIZE:
            return self._compress_block(out, offset, count, fill)
        rows = np.empty((count, self.template.size), dtype=np.uint8)
        rows[:] = self.template
        fill(np.ndarray((count,), self.dtype, rows))
        return write_uncompressed(out, offset, rows.reshape(-1))

    def _compress_block(self, out: ByteArray, offset: int, count: int, fill: RowFiller) -> int:
        """Write one compressed block. Rows are encoded in place; the first and the last row are written in full."""
        size, begin = self.lz4_row.size, offset + 4
        # The literals of the opening end with the first numbers of the second row, so that row needs no token.
        own = begin + self.opening.size - int(self.number_offsets[0]) - size
        rows = out[own : own + count * size].reshape(count, size)
        fill_rows(rows, self.lz4_row)
        fill(np.ndarray((count,), self.lz4_dtype, out, own))
        numbers = rows[:: count - 1].take(self.number_offsets, axis=1)
        out[begin : begin + self.opening.size] = self.opening
        out[begin + self.opening_offsets] = numbers[0]
        begin = own + (count - 1) * size
        end = begin + self.ending.size
        out[begin:end] = self.ending
        out[begin + self.ending_offsets] = numbers[1]
        return close_block(out, offset, end)


def fill_rows(rows: ByteArray, row: ByteArray) -> None:
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
    written = {name: place for name, place in fields.items() if name in names}
    spans, row, starts = find_number_spans(written), b"", list[int]()
    follows = [*(a for a, _ in spans[1:]), len(template) + spans[0][0]]
    for (first, stop), following in zip(spans, follows, strict=True):
        match = following - stop
        row += encode_token(stop - first, match)
        starts.append(len(row))
        row += template[first:stop] + len(template).to_bytes(4, "little")[:2] + encode_length(match - 4)
    moved = {
        name: FieldOffset(place.dtype, place.count, place.offset + start - first)
        for name, place in written.items()
        for (first, stop), start in zip(spans, starts, strict=True)
        if first <= place.offset < stop
    }
    first = spans[0][0]
    head = encode_token(len(template) + spans[0][1], follows[0] - spans[0][1])
    tail = encode_token(len(template) - first, 0)
    numbers = np.concatenate([np.arange(*span) for span in spans])
    moved_numbers = [np.arange(start, start + b - a) for (a, b), start in zip(spans, starts, strict=True)]
    return RowCompressor(
        np.frombuffer(template, dtype=np.uint8),
        make_row_dtype(fields, len(template)),
        np.frombuffer(row, dtype=np.uint8),
        make_row_dtype(moved, len(row)),
        opening=np.frombuffer(head + template + template[:first], dtype=np.uint8),
        ending=np.frombuffer(tail + template[first:], dtype=np.uint8),
        number_offsets=np.concatenate(moved_numbers),
        opening_offsets=numbers + len(head),
        ending_offsets=numbers + len(tail) - first,
    )


def close_block(out: ByteArray, start: int, end: int, flag: int = 0) -> int:
    """Write the size and the checksum of a block around its bytes; return its end."""
    UINT32.pack_into(out.data, start, end - start - 4 | flag)
    UINT32.pack_into(out.data, end, xxh32(out[start + 4 : end]))
    return end + 4


def write_uncompressed(out: ByteArray, offset: int, data: ByteArray) -> int:
    """Write bytes as uncompressed blocks of the largest size; return their end."""
    for first in range(0, data.size, MAX_BLOCK_SIZE):
        part = data[first : first + MAX_BLOCK_SIZE]
        out[offset + 4 : offset + 4 + part.size] = part
        offset = close_block(out, offset, offset + 4 + part.size, UNCOMPRESSED_FLAG)
    return offset


class AccessRecorder:
    """Rows that record which of their fields are written."""

    def __init__(self, rows: AnyArray) -> None:
        """Take the rows."""
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
