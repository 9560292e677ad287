"""The pieces of an MCAP file in the order of their messages' arrival: chunks, and runs of messages outside of them.

A file may have its messages in any order. Pieces that follow one another in time are read one by one; where they
overlap, what arrived before the next one begins is handed on, and the rest is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO, NamedTuple

import numpy as np

from navsense.errors import RecordingError, Where
from navsense.recordings.mcap import reader, records
from navsense.typing import IntArray

MAX_HELD_BYTES = 1 << 29
"""Pieces that overlap are held up to as many bytes."""

SEGMENT_BYTES = 4_000_000
"""A run of messages outside of chunks is cut when there are as many bytes of it."""

HEAD_SIZE = records.PREFIX.size + max(records.CHUNK_HEAD.size, records.MESSAGE_HEAD.size)
"""Bytes of a record that tell what it is and when."""


@dataclass(frozen=True)
class Segment:
    """Where a piece of a file lies, and when (ns) its first and last message arrived; a run has one where it has any.

    Of a chunk these are the times that it says.
    """

    start: int
    stop: int
    first: int
    last: int
    is_chunk: bool


class SegmentMessages(NamedTuple):
    """Messages of a piece, the line of each by its place, and which of them are meant, in the order of the file."""

    messages: record_scan.ScannedMessages
    channels: IntArray
    selection: IntArray | slice = slice(None)

    def split(self, time: int | None) -> tuple[SegmentMessages | None, SegmentMessages | None]:
        """Return the messages that arrived before a time (ns), all for None, and the others; None for none."""
        log = self.messages.log_time[self.selection]
        early = None if time is None else log < np.uint64(time)
        if early is None or early.all():
            return (self if log.size else None), None
        if not early.any():
            return None, self
        places = np.arange(self.messages.log_time.size)[self.selection]
        return self._replace(selection=places[early]), self._replace(selection=places[~early])


def list_segments(file: BinaryIO, span: tuple[int, int]) -> list[Segment]:
    """Return the pieces between two offsets, in the order of the file; of chunks only the heads are read."""
    found: list[Segment] = []
    run: list[int] = []
    begun = size = 0
    offset, end = span
    while offset + records.PREFIX.size <= end:
        file.seek(offset)
        head = file.read(min(HEAD_SIZE, end - offset))
        kind, length = records.PREFIX.unpack_from(head)
        after = offset + records.PREFIX.size + length
        if kind == 0 or after > end:
            break
        is_loose = kind in (records.MESSAGE, records.SCHEMA, records.CHANNEL)
        if is_loose:
            begun = begun if size else offset
            size += after - offset
            if kind == records.MESSAGE and after - offset >= records.MESSAGE_HEAD.size:
                run.append(records.MESSAGE_HEAD.unpack_from(head)[4])
        if size and (size >= SEGMENT_BYTES or kind in (records.CHUNK, records.DATA_END)):
            stop = after if is_loose else offset
            found.append(Segment(begun, stop, min(run, default=0), max(run, default=0), is_chunk=False))
            run, size = [], 0
        if kind == records.CHUNK:
            if length < records.CHUNK_HEAD.size:
                raise records.DamagedError("a record ends too early")
            first, last = records.CHUNK_HEAD.unpack_from(head, records.PREFIX.size)[:2]
            found.append(Segment(offset, after, first, last, is_chunk=True))
        if kind == records.DATA_END:
            break
        offset = after
    if size:
        found.append(Segment(begun, offset, min(run, default=0), max(run, default=0), is_chunk=False))
    return found


def read_segment(file: BinaryIO, segment: Segment) -> bytes:
    """Return the records of messages of a piece, and their definitions."""
    own = records.read_records(file, segment.start, segment.stop)
    if segment.is_chunk:
        return records.decompress(records.parse_chunk(next(own).body))
    kinds = (records.MESSAGE, records.SCHEMA, records.CHANNEL)
    return b"".join(records.encode_record(raw.kind, raw.body) for raw in own if raw.kind in kinds)


def read_windows(
    segments: Sequence[Segment], load: Callable[[Segment], tuple[record_scan.ScannedMessages, IntArray]], where: Where
) -> Iterator[list[SegmentMessages]]:
    """Yield messages window by window in order of arrival, those of each in parts, which are in no order of time.

    Raises `RecordingError` for too much disorder.
    """
    if all(after.first >= before.last for before, after in pairwise(segments)):
        for piece in segments:
            yield [SegmentMessages(*load(piece))]
        return
    planned = sorted(segments, key=lambda piece: piece.first)
    held: list[tuple[int, SegmentMessages]] = []
    for piece, after in zip(planned, [*planned[1:], None], strict=True):
        held.append((piece.start, SegmentMessages(*load(piece))))
        held.sort(key=lambda one: one[0])
        if sum(part.messages.data.size for _, part in held) > MAX_HELD_BYTES:
            what = f"its messages are in no order of time over more than {MAX_HELD_BYTES >> 20} MiB"
            raise RecordingError(what, where=where, remedy="put them in order with: mcap sort")
        ready, rest = [], []
        for start, part in held:
            early, late = part.split(None if after is None else after.first)
            ready += [early] if early is not None else []
            rest += [(start, late)] if late is not None else []
        held = rest
        if ready:
            yield ready
