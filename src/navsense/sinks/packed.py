"""Messages as LZ4 that is written as they are made: nothing is searched for, and nothing is copied.

All messages of a channel are one size, and differ only in the numbers that their encoder writes. So a block of n rows
of w bytes is one block of LZ4: the first row, then of each row its numbers as literals, and all that lies between them
as matches at the distance w, then the last row (LZ4 Block Format Description, 2022; LZ4 Frame Format 1.6.2). What the
matches say is the same for every row: a row of LZ4 has its numbers at known places, as a message has, and an encoder
writes them there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from navsense.messages.cdr import Place, row_type
from navsense.sinks.checksum import xxh32
from navsense.typing import AnyArray, ByteArray, IntArray

FRAME = b"\x04\x22\x4d\x18\x70\x70\x72"
"""Magic; version 1, blocks independent, each with its checksum; blocks of at most 4 MiB; checksum of these two."""

FRAME_END = b"\0\0\0\0"

LARGEST = 1 << 22
"""Bytes of one block before packing."""

STORED = 1 << 31
"""Flag in a block's size: it is not packed."""

FARTHEST = 65535
"""Largest distance of a match."""

SHORTEST = 8
"""Bytes between two numbers from which on they are a match; fewer are literals."""

FEWEST = 3
"""Rows of a packed block: those between the first and the last."""

LOT = 32
"""Rows that are copied at once, where there are many such lots."""

MANY = 16

WORD = struct.Struct("<I")
"""A block's size before it, and its checksum behind it."""

AROUND = 2 * WORD.size

Fill = Callable[[AnyArray], None]


def length_of(value: int) -> bytes:
    """Return what is behind a token that says 15 or more."""
    return b"" if value < 15 else b"\xff" * ((value - 15) // 255) + bytes([(value - 15) % 255])


def token(literals: int, match: int) -> bytes:
    """Return what stands before literals, behind which is a match of so many bytes, or none (0)."""
    return bytes([min(literals, 15) << 4 | min(max(match - 4, 0), 15)]) + length_of(literals)


def most(width: int, count: int) -> int:
    """Return the bytes that so many rows take at most."""
    return count * width + 3 * (width + width // 255) + (AROUND + 64) * (1 + count * width // LARGEST)


def spans_of(places: Mapping[str, Place]) -> list[tuple[int, int]]:
    """Return where numbers lie in a row, [first, stop), those that are close to one another as one."""
    spans: list[tuple[int, int]] = []
    for place in sorted(places.values(), key=lambda place: place.offset):
        stop = place.offset + np.dtype(place.code).itemsize * max(place.count, 1)
        if spans and place.offset - spans[-1][1] < SHORTEST:
            spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
        else:
            spans.append((place.offset, stop))
    return spans


@dataclass(frozen=True, eq=False)
class Plan:
    """How rows are packed: `template` (w,) and `dtype` of a row, `packed` (l,) and `packed_dtype` of a row of LZ4.

    `opening` is the first row and what of the second is literal with it, `ending` the last, both with what stands
    before them. Of the bytes that hold numbers (b,) `places` says where they are in a row of LZ4, `first` where in the
    opening, and `last` where in the ending.
    """

    template: ByteArray
    dtype: np.dtype[np.void]
    packed: ByteArray
    packed_dtype: np.dtype[np.void]
    opening: ByteArray
    ending: ByteArray
    places: IntArray
    first: IntArray
    last: IntArray

    @property
    def is_packed(self) -> bool:
        """Tell whether LZ4 can say it so, and shorter."""
        return self.template.size <= FARTHEST and self.packed.size <= self.template.size

    def put(self, out: ByteArray, at: int, count: int, fill: Fill) -> int:
        """Write rows that hold the template, and what `fill` writes into them, from `at` on; return where they end."""
        if self.is_packed and count >= FEWEST and count * self.template.size <= LARGEST:
            return self._put_packed(out, at, count, fill)
        rows = np.empty((count, self.template.size), dtype=np.uint8)
        rows[:] = self.template
        fill(np.ndarray((count,), self.dtype, rows))
        return put_stored(out, at, rows.reshape(-1))

    def _put_packed(self, out: ByteArray, at: int, count: int, fill: Fill) -> int:
        """Write one packed block. Its rows are made where they stay; the first and the last are then written out."""
        size, begin = self.packed.size, at + 4
        # The opening's literals end with the second row's first numbers: that row's own token is not wanted.
        own = begin + self.opening.size - int(self.places[0]) - size
        rows = out[own : own + count * size].reshape(count, size)
        repeat(rows, self.packed)
        fill(np.ndarray((count,), self.packed_dtype, out, own))
        numbers = rows[:: count - 1].take(self.places, axis=1)
        out[begin : begin + self.opening.size] = self.opening
        out[begin + self.first] = numbers[0]
        begin = own + (count - 1) * size
        end = begin + self.ending.size
        out[begin:end] = self.ending
        out[begin + self.last] = numbers[1]
        return closed(out, at, end)


def repeat(rows: ByteArray, row: ByteArray) -> None:
    """Fill rows (n, w) with one row (w,): first a lot of them, then many of that lot at once, which is quicker."""
    lots = len(rows) // LOT
    if lots < MANY:
        rows[:] = row
        return
    rows[:LOT] = row
    rows[LOT : lots * LOT].reshape(lots - 1, -1)[:] = rows[:LOT].reshape(-1)
    rows[lots * LOT :] = row


def plan(template: bytes, places: Mapping[str, Place], names: set[str]) -> Plan:
    """Return how rows like `template` are packed, in which the places `names` are written."""
    written = {name: place for name, place in places.items() if name in names}
    spans, row, starts = spans_of(written), b"", list[int]()
    follows = [*(a for a, _ in spans[1:]), len(template) + spans[0][0]]
    for (first, stop), following in zip(spans, follows, strict=True):
        match = following - stop
        row += token(stop - first, match)
        starts.append(len(row))
        row += template[first:stop] + len(template).to_bytes(4, "little")[:2] + length_of(match - 4)
    moved = {
        name: Place(place.code, place.count, place.offset + start - first)
        for name, place in written.items()
        for (first, stop), start in zip(spans, starts, strict=True)
        if first <= place.offset < stop
    }
    first = spans[0][0]
    head = token(len(template) + spans[0][1], follows[0] - spans[0][1])
    tail = token(len(template) - first, 0)
    numbers = np.concatenate([np.arange(*span) for span in spans])
    moved_numbers = [np.arange(start, start + b - a) for (a, b), start in zip(spans, starts, strict=True)]
    return Plan(
        np.frombuffer(template, dtype=np.uint8),
        row_type(places, len(template)),
        np.frombuffer(row, dtype=np.uint8),
        row_type(moved, len(row)),
        opening=np.frombuffer(head + template + template[:first], dtype=np.uint8),
        ending=np.frombuffer(tail + template[first:], dtype=np.uint8),
        places=np.concatenate(moved_numbers),
        first=numbers + len(head),
        last=numbers + len(tail) - first,
    )


def closed(out: ByteArray, at: int, end: int, flag: int = 0) -> int:
    """Write the size and the checksum of a block whose bytes lie behind its size; return where it ends."""
    WORD.pack_into(out.data, at, end - at - 4 | flag)
    WORD.pack_into(out.data, end, xxh32(out[at + 4 : end]))
    return end + 4


def put_stored(out: ByteArray, at: int, data: ByteArray) -> int:
    """Write bytes as they are, in blocks of the largest size; return where they end."""
    for first in range(0, data.size, LARGEST):
        piece = data[first : first + LARGEST]
        out[at + 4 : at + 4 + piece.size] = piece
        at = closed(out, at, at + 4 + piece.size, STORED)
    return at


class Noted:
    """Rows that note which of their numbers are written."""

    def __init__(self, rows: AnyArray) -> None:
        """Take the rows."""
        self._rows = rows
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> AnyArray:
        """Return the numbers at a place, which may be written into."""
        self.names.add(name)
        return self._rows[name]

    def __setitem__(self, name: str, value: object) -> None:
        """Write numbers at a place."""
        self.names.add(name)
        self._rows[name] = value
