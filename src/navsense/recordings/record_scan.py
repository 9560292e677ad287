"""The records in a piece of an MCAP file, all at once: where each begins, and messages of one size as rows of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from navsense.kernels import INTERPRETED, kernel
from navsense.recordings.mcap.records import MESSAGE, MESSAGE_HEAD, PREFIX, DamagedError
from navsense.typing import AnyArray, ByteArray, IntArray, WordArray

HEAD_DTYPE = np.dtype(
    {
        "names": ["channel", "log", "time"],
        "formats": ["<u2", "<u8", "<u8"],
        "offsets": [9, 15, 23],
        "itemsize": MESSAGE_HEAD.size,
    }
)
"""What stands before a message's data, without what is the same for all."""

INITIAL_CAPACITY = 1 << 16
"""Records of a piece that are looked through once; of larger ones they are counted first."""

MIN_RUN_LENGTH = 16
"""Records of one size that follow one another are read at a stride where so many do on average."""

SizeGroup = tuple[IntArray, ByteArray]
"""Messages of one size: which of some they are (k,), and their bytes (k, size)."""


@kernel
def scan_offsets(data: ByteArray | bytes, out: IntArray) -> tuple[int, int]:
    """Return how many whole records follow one another, and where the last ends; `out` takes where each begins."""
    count, at, size = 0, 0, len(data)
    while at + 9 <= size:
        length = int(data[at + 1]) | int(data[at + 2]) << 8 | int(data[at + 3]) << 16 | int(data[at + 4]) << 24
        # The opcode 0 is invalid, and so is a length of more than four bytes.
        if data[at] == 0 or data[at + 5] | data[at + 6] | data[at + 7] | data[at + 8] or length > size - at - 9:
            break
        if count < len(out):
            out[count] = at
        count += 1
        at += 9 + length
    return count, at


@dataclass(frozen=True, eq=False)
class RecordIndex:
    """The whole records of a piece: its bytes, and where each record begins and the last ends (n + 1,)."""

    data: ByteArray
    offsets: IntArray

    @property
    def is_complete(self) -> bool:
        """Tell whether the piece ends where a record does."""
        return bool(self.offsets[-1] == self.data.size)

    @cached_property
    def kinds(self) -> ByteArray:
        """Return the kinds of the records (n,)."""
        return self.data[self.offsets[:-1]]

    def body(self, place: int) -> bytes:
        """Return the body of one record."""
        return self.data[self.offsets[place] + PREFIX.size : self.offsets[place + 1]].tobytes()

    def messages(self) -> ScannedMessages:
        """Return the records that are messages. Raises `DamagedError` where one has not even its head."""
        own = np.flatnonzero(self.kinds == MESSAGE)
        chosen = as_slice(own)
        starts, stops = self.offsets[:-1][chosen], self.offsets[1:][chosen]
        if (stops - starts < MESSAGE_HEAD.size).any():
            raise DamagedError("a message ends too early")
        return ScannedMessages(self.data, own, starts + MESSAGE_HEAD.size, stops, *read_heads(self.data, starts, stops))


@dataclass(frozen=True, eq=False)
class ScannedMessages:
    """The messages of a piece: which records they are, where their data begins and stops in it, and their heads (n,).

    `log` and `time` (ns) are when each arrived and the instant that it is about.
    """

    data: ByteArray
    record_places: IntArray
    starts: IntArray
    stops: IntArray
    channel: AnyArray
    log_time: WordArray
    publish_time: WordArray

    def group_by_size(self, selection: IntArray | slice) -> list[SizeGroup]:
        """Return the data of some of the messages, by size."""
        starts, sizes = self.starts[selection], self.stops[selection] - self.starts[selection]
        if (sizes == sizes[:1]).all():
            return [(np.arange(sizes.size), gather_rows(self.data, starts, int(sizes[0])))] if sizes.size else []
        found = []
        for size in np.unique(sizes).tolist():
            places = np.flatnonzero(sizes == size)
            found.append((places, gather_rows(self.data, starts[places], size)))
        return found


def scan_records(data: bytes) -> RecordIndex:
    """Return the records of a piece, as far as they are whole."""
    view = np.frombuffer(data, dtype=np.uint8)
    # The interpreter goes through bytes faster than through arrays.
    walk = data if INTERPRETED else view
    edges = np.empty(INITIAL_CAPACITY + 1, dtype=np.int64)
    count, end = scan_offsets(walk, edges[:-1])
    if count > INITIAL_CAPACITY:
        edges = np.empty(count + 1, dtype=np.int64)
        scan_offsets(walk, edges[:-1])
    edges[count] = end
    return RecordIndex(view, edges[: count + 1])


def as_slice(places: IntArray) -> IntArray | slice:
    """Return ascending places (n,) as a slice where they follow one another, which costs nothing to take."""
    if places.size and int(places[-1]) - int(places[0]) == places.size - 1:
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def group_places(kinds: IntArray, count: int) -> list[tuple[int, IntArray | slice]]:
    """Return for each of `count` kinds (n,) that there is the places of its own: a slice where they lie together."""
    cuts = np.flatnonzero(kinds[1:] != kinds[:-1]) + 1
    edges = [0, *cuts.tolist(), kinds.size]
    firsts = kinds[edges[:-1]].tolist() if kinds.size else []
    if len(set(firsts)) == len(firsts):
        return [(one, slice(a, b)) for one, a, b in zip(firsts, edges[:-1], edges[1:], strict=False)]
    # Numbers of 16 bits are sorted in time that goes with their count.
    order = np.argsort(kinds.astype(np.uint16) if count <= 1 << 16 else kinds, kind="stable")
    ends = np.searchsorted(kinds, np.arange(count + 1), sorter=order).tolist()
    return [(one, order[a:b]) for one, (a, b) in enumerate(pairwise(ends)) if b > a]


def read_heads(data: ByteArray, starts: IntArray, stops: IntArray) -> tuple[AnyArray, WordArray, WordArray]:
    """Return channel, log time and instant (n,) of messages that begin and end there."""
    names, count = ("channel", "log", "time"), starts.size
    found = [np.empty(count, dtype=HEAD_DTYPE[name]) for name in names]
    if not count:
        return found[0], found[1], found[2]
    sizes = stops - starts
    cuts = np.flatnonzero((sizes[1:] != sizes[:-1]) | (starts[1:] != stops[:-1])) + 1
    if cuts.size * MIN_RUN_LENGTH > count:
        whole = view_every_byte(data, HEAD_DTYPE)
        return tuple(np.asarray(whole[name][starts]) for name in names)  # type: ignore[return-value]
    edges = [0, *cuts.tolist(), count]
    for first, stop in pairwise(edges):
        rows = np.ndarray((stop - first,), HEAD_DTYPE, data, int(starts[first]), (int(sizes[first]),))
        for name, out in zip(names, found, strict=True):
            out[first:stop] = rows[name]
    return found[0], found[1], found[2]


def view_every_byte(data: ByteArray, kind: np.dtype[np.void]) -> AnyArray:
    """Return what every place of some bytes would be as the first byte of a value; nothing is copied."""
    return np.ndarray((data.size - kind.itemsize + 1,), kind, data, strides=(1,))


def gather_rows(data: ByteArray, starts: IntArray, size: int) -> ByteArray:
    """Return the `size` bytes from each start (n,) on, (n, size): in place where they are evenly far apart."""
    if not size:
        return np.zeros((starts.size, 0), dtype=np.uint8)
    step = int(starts[1] - starts[0]) if starts.size > 1 else size
    if step > 0 and (starts[1:] - starts[:-1] == step).all():
        return np.ndarray((starts.size, size), np.uint8, data, int(starts[0]), (step, 1))
    rows: AnyArray = view_every_byte(data, np.dtype((np.void, size)))[starts]
    return rows.view(np.uint8).reshape(starts.size, size)


def group_by_size(messages: Iterable[bytes]) -> list[SizeGroup]:
    """Return messages by size."""
    every_one = list(messages)
    sizes = np.array([len(one) for one in every_one], dtype=np.int64)
    found = []
    for size in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == size)
        data = b"".join([every_one[i] for i in places.tolist()])
        found.append((places, np.frombuffer(data, dtype=np.uint8).reshape(places.size, size)))
    return found


def join_size_groups(parts: list[tuple[int, list[SizeGroup]]]) -> list[SizeGroup]:
    """Return messages of several parts, of which each begins at a place among all, by size."""
    if len(parts) == 1:
        return parts[0][1]
    groups: dict[int, list[SizeGroup]] = {}
    for first, part in parts:
        for places, rows in part:
            groups.setdefault(rows.shape[1], []).append((places + first, rows))
    return [
        (np.concatenate([places for places, _ in group]), np.concatenate([rows for _, rows in group]))
        for _, group in sorted(groups.items())
    ]
