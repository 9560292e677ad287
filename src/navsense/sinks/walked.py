"""The records in a piece of an MCAP file, all at once: where each begins, and messages of one size as rows of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from navsense.compiled import INTERPRETED, kernel
from navsense.sinks.records import MESSAGE, MESSAGE_HEAD, PREFIX, DamagedError
from navsense.typing import AnyArray, ByteArray, IntArray, WordArray

HEAD = np.dtype(
    {
        "names": ["channel", "log", "time"],
        "formats": ["<u2", "<u8", "<u8"],
        "offsets": [9, 15, 23],
        "itemsize": MESSAGE_HEAD.size,
    }
)
"""What stands before a message's data, without what is the same for all."""

ROOM = 1 << 16
"""Records of a piece that are looked through once; of larger ones they are counted first."""

Sized = tuple[IntArray, ByteArray]
"""Messages of one size: which of some they are (k,), and their bytes (k, size)."""


@kernel
def edges_in(data: ByteArray | bytes, out: IntArray) -> tuple[int, int]:
    """Return how many whole records follow one another, and where the last ends; `out` takes where each begins."""
    count, at, size = 0, 0, len(data)
    while at + 9 <= size:
        length = 0
        for k in range(8):
            # A length of more than four bytes is too long, whichever of the upper ones it is.
            length += int(data[at + 1 + k]) << (8 * min(k, 4))
        if length > size - at - 9:
            break
        if count < len(out):
            out[count] = at
        count += 1
        at += 9 + length
    return count, at


@dataclass(frozen=True, eq=False)
class Walked:
    """The whole records of a piece: its bytes, where each record begins (n,), and where the last ends."""

    data: ByteArray
    starts: IntArray
    end: int

    @property
    def is_whole(self) -> bool:
        """Tell whether the piece ends where a record does."""
        return self.end == self.data.size

    @property
    def kinds(self) -> ByteArray:
        """Return the kinds of the records (n,)."""
        return self.data[self.starts]

    def body(self, place: int) -> bytes:
        """Return the body of one record."""
        stop = self.starts[place + 1] if place + 1 < self.starts.size else self.end
        return self.data[self.starts[place] + PREFIX.size : stop].tobytes()

    def messages(self) -> Messages:
        """Return the records that are messages. Raises `DamagedError` where one has not even its head."""
        own = np.flatnonzero(self.kinds == MESSAGE)
        starts, stops = self.starts[own], np.append(self.starts[1:], self.end)[own]
        if (stops - starts < MESSAGE_HEAD.size).any():
            raise DamagedError("a message ends too early")
        if not own.size:
            nothing = np.zeros(0, dtype=np.uint64)
            return Messages(self.data, own, starts, starts, nothing.astype(np.uint16), nothing, nothing)
        heads = every(self.data, HEAD)
        read = (np.asarray(heads[name][starts]) for name in ("channel", "log", "time"))
        return Messages(self.data, own, starts + MESSAGE_HEAD.size, stops, *read)


@dataclass(frozen=True, eq=False)
class Messages:
    """The messages of a piece: which records they are, where their data begins and stops in it, and their heads (n,).

    `log` and `time` (ns) are when each arrived and the instant that it is about.
    """

    data: ByteArray
    records: IntArray
    starts: IntArray
    stops: IntArray
    channel: AnyArray
    log: WordArray
    time: WordArray

    def sized(self, own: IntArray) -> list[Sized]:
        """Return the data of some of the messages, by size."""
        starts, sizes = self.starts[own], self.stops[own] - self.starts[own]
        if (sizes == sizes[:1]).all():
            return [(np.arange(own.size), rows_of(self.data, starts, int(sizes[0])))] if own.size else []
        found = []
        for size in np.unique(sizes).tolist():
            places = np.flatnonzero(sizes == size)
            found.append((places, rows_of(self.data, starts[places], size)))
        return found


def walked(data: bytes) -> Walked:
    """Return the records of a piece, as far as they are whole."""
    view = np.frombuffer(data, dtype=np.uint8)
    # The interpreter goes through bytes faster than through arrays.
    walk = data if INTERPRETED else view
    starts = np.empty(ROOM, dtype=np.int64)
    count, end = edges_in(walk, starts)
    if count > ROOM:
        starts = np.empty(count, dtype=np.int64)
        edges_in(walk, starts)
    return Walked(view, starts[:count], end)


def every(data: ByteArray, kind: np.dtype[np.void]) -> AnyArray:
    """Return what every place of some bytes would be as the first byte of a value; nothing is copied."""
    return np.ndarray((data.size - kind.itemsize + 1,), kind, data, strides=(1,))


def rows_of(data: ByteArray, starts: IntArray, size: int) -> ByteArray:
    """Return the `size` bytes from each start (n,) on, (n, size): in place where they are evenly far apart."""
    if not size:
        return np.zeros((starts.size, 0), dtype=np.uint8)
    step = int(starts[1] - starts[0]) if starts.size > 1 else size
    if step > 0 and (starts[1:] - starts[:-1] == step).all():
        return np.ndarray((starts.size, size), np.uint8, data, int(starts[0]), (step, 1))
    rows: AnyArray = every(data, np.dtype((np.void, size)))[starts]
    return rows.view(np.uint8).reshape(starts.size, size)


def by_size(messages: Iterable[bytes]) -> list[Sized]:
    """Return messages by size."""
    every_one = list(messages)
    sizes = np.array([len(one) for one in every_one], dtype=np.int64)
    found = []
    for size in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == size)
        data = b"".join([every_one[i] for i in places.tolist()])
        found.append((places, np.frombuffer(data, dtype=np.uint8).reshape(places.size, size)))
    return found


def joined(parts: list[tuple[int, list[Sized]]]) -> list[Sized]:
    """Return messages of several parts, of which each begins at a place among all, by size."""
    if len(parts) == 1:
        return parts[0][1]
    groups: dict[int, list[Sized]] = {}
    for first, part in parts:
        for places, rows in part:
            groups.setdefault(rows.shape[1], []).append((places + first, rows))
    return [
        (np.concatenate([places for places, _ in group]), np.concatenate([rows for _, rows in group]))
        for _, group in sorted(groups.items())
    ]
