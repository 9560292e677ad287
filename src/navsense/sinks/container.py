"""An MCAP file being written: chunks with their indexes, then the summary. Knows nothing of what the messages are."""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import zstandard

from navsense import outputs
from navsense.errors import SinkError, Where
from navsense.sinks import records
from navsense.sinks.base import Ending, check_target, is_recovered, os_error, pour
from navsense.typing import WordArray

LEVEL = -1
"""Level of zstd: on sensor data 1.4 times as fast as level 1, for files that are 3 % larger."""

PAIR = 16
"""Bytes of a log time and an offset in a MessageIndex record."""

Buffer: TypeAlias = bytes | memoryview


@dataclass(frozen=True, eq=False)
class Entries:
    """The messages of one channel in one chunk, in order: log times (ns) and offsets in the uncompressed chunk."""

    channel: int
    log_time: WordArray
    offset: WordArray


def entries_of(places: Mapping[int, tuple[Sequence[int], Sequence[int]]]) -> list[Entries]:
    """Return messages of one chunk by channel, in order; `places` are their log times (ns) and offsets as they came."""
    return [
        ordered(channel, np.array(logs, dtype=np.uint64), np.array(offsets, dtype=np.uint64))
        for channel, (logs, offsets) in places.items()
    ]


def ordered(channel: int, log_time: WordArray, offset: WordArray) -> Entries:
    """Return messages of one channel in order, which a fault of what they are about, or others, may have mixed up."""
    if not (log_time[1:] < log_time[:-1]).any():
        return Entries(channel, log_time, offset)
    order = np.argsort(log_time, kind="stable")
    return Entries(channel, log_time[order], offset[order])


class Container:
    """Writes one MCAP file. After a failure it is cut back to its last whole chunk, so that it can be recovered."""

    def __init__(self, path: Path, profile: str = "ros2", final: Path | None = None) -> None:
        """Open `path` for writing and write its head. Raise `SinkError` where that cannot be.

        `final` is the name that the caller will give the file when it is whole: then `path` must be new, errors speak
        of `final`, and what is left after one is nobody's.
        """
        check_target(path)
        self.path = path
        self._final = final
        self.schemas: dict[int, bytes] = {}
        self.channels: dict[int, bytes] = {}
        self.counts: dict[int, int] = {}
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)
        self._chunk_indexes: list[bytes] = []
        self._metadata_indexes: list[bytes] = []
        self._attachment_indexes: list[bytes] = []
        self._start: int | None = None
        self._end = 0
        self._size = 0
        self._failed = False
        keep = None if is_recovered(path) else records.is_truncated
        try:
            # Unbuffered: what was written is with the system at once, and survives the death of this process.
            self._file = outputs.open_in_place(path, keep) if final is None else path.open("xb", buffering=0)
        except OSError as error:
            raise os_error(final or path, error) from error
        try:
            head = records.record(records.HEADER, records.text(profile), records.text("navsense"))
            self._append(records.MAGIC, head)
        except BaseException:
            if final is None:
                self.release()
            else:
                self.discard()
            raise

    @property
    def size(self) -> int:
        """Return the bytes written."""
        return self._size

    def _append(self, *parts: Buffer) -> None:
        """Write all parts, or none of them."""
        with self._whole():
            size = self._put(self._size, parts)
        self._size += size

    def _put(self, at: int, parts: Iterable[Buffer]) -> int:
        """Write parts from an offset on; return how many bytes they are."""
        self._file.seek(at)
        size = 0
        for part in parts:
            size += len(part)
            pour(self._file, part)
        return size

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """See to it that all is written that is written inside, or nothing of it."""
        if self._failed:
            raise SinkError("the recording has already failed", where=Where(str(self._final or self.path)))
        try:
            yield
        except SinkError:
            # What was to be written could not be made; the file is as good as before.
            self._cut()
            raise
        except BaseException as error:
            self._failed = True
            self._cut()
            if isinstance(error, OSError):
                raise self._failure(error) from error
            raise

    def _failure(self, error: OSError) -> SinkError:
        """Return the error of a write that failed, with what can still be done."""
        if self._final is not None:
            return os_error(self._final, error)
        failure = os_error(self.path, error)
        if not self._chunk_indexes:
            return failure
        failure.rescue = f"what was written stays readable by: navsense recover {self.path}"
        return failure

    def _cut(self) -> None:
        """Take the file back to the last whole chunk."""
        with contextlib.suppress(OSError):
            self._file.truncate(self._size)
            self._file.seek(0, os.SEEK_END)

    def add_metadata(self, record: bytes, name: str) -> None:
        """Write one whole Metadata record."""
        at = self._size
        self._append(record)
        self._metadata_indexes.append(
            records.record(records.METADATA_INDEX, struct.pack("<QQ", at, len(record)), records.text(name))
        )

    def add_attachment(self, body: bytes) -> None:
        """Write one Attachment record from its body as another file had it."""
        reader = records.Reader(body)
        times = bytes(reader.take(16))
        name, media = reader.text(), reader.text()
        size = reader.number(8)
        at = self._size
        self._append(records.record(records.ATTACHMENT, body))
        self._attachment_indexes.append(
            records.record(
                records.ATTACHMENT_INDEX,
                struct.pack("<QQ", at, self._size - at),
                times,
                struct.pack("<Q", size),
                records.text(name),
                records.text(media),
            )
        )

    def write_chunks(self, chunks: Iterable[tuple[Buffer, Sequence[Entries]]]) -> None:
        """Write chunks, each whole records and the index of its messages; all are with the system on return."""
        for data, entries in chunks:
            self.write_packed([self._compressor.compress(data)], "zstd", len(data), zlib.crc32(data), entries)

    def write_packed(
        self, packed: Iterable[Buffer], compression: str, size: int, crc: int, entries: Sequence[Entries]
    ) -> None:
        """Write one chunk that is already compressed: `size` bytes and their `crc` when unpacked.

        Its parts are written as they come; where one fails to come, nothing of the chunk is left.
        """
        filled = [part for part in entries if part.log_time.size]
        start = min((int(part.log_time[0]) for part in filled), default=0)
        end = max((int(part.log_time[-1]) for part in filled), default=0)
        name, at = records.text(compression), self._size
        before = records.CHUNK_HEAD.size + len(name) + 8
        indexes, starts = _message_indexes(filled)
        with self._whole():
            # How long the data are is known behind them; until then zeros stand for the head, where a walk ends.
            length = self._put(at + records.PREFIX.size + before, packed)
            chunk_size = records.PREFIX.size + before + length
            self._put(at + chunk_size, [indexes])
            times = records.CHUNK_HEAD.pack(start, end, size, crc)
            prefix = records.PREFIX.pack(records.CHUNK, before + length)
            # At once: half a head would be a chunk of another size.
            self._put(at, [prefix + times + name + struct.pack("<Q", length)])
            self._file.seek(0, os.SEEK_END)
        self._size = at + chunk_size + len(indexes)
        places = [struct.pack("<HQ", part.channel, at + chunk_size + start) for part, start in starts]
        for part in filled:
            self.counts[part.channel] = self.counts.get(part.channel, 0) + part.log_time.size
        if filled:
            self._start = start if self._start is None else min(start, self._start)
            self._end = max(end, self._end)
        self._chunk_indexes.append(
            records.record(
                records.CHUNK_INDEX,
                struct.pack("<QQQQ", start, end, at, chunk_size),
                records.block(b"".join(places)),
                struct.pack("<Q", len(indexes)),
                name,
                struct.pack("<QQ", length, size),
            )
        )

    def finish(self) -> None:
        """Write the summary and close the file."""
        try:
            # Zero: no checksum of the whole, for each chunk has its own.
            self._append(records.record(records.DATA_END, struct.pack("<I", 0)))
            self._append(self._summary(), records.MAGIC)
        finally:
            self.release()

    def release(self) -> None:
        """Close the file as it stands; never raises."""
        self._failed = True
        with contextlib.suppress(OSError):
            self._file.close()

    def discard(self) -> None:
        """Close the file and take it away; never raises."""
        self.release()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def _summary(self) -> bytes:
        """Return all from the summary's first byte to the footer's last."""
        groups: Iterable[tuple[int, Iterable[bytes]]] = (
            (records.SCHEMA, self.schemas.values()),
            (records.CHANNEL, self.channels.values()),
            (records.STATISTICS, (self._statistics(),)),
            (records.CHUNK_INDEX, self._chunk_indexes),
            (records.ATTACHMENT_INDEX, self._attachment_indexes),
            (records.METADATA_INDEX, self._metadata_indexes),
        )
        summary, offsets = bytearray(), bytearray()
        for kind, members in groups:
            start = len(summary)
            for member in members:
                summary += member
            if len(summary) > start:
                place = struct.pack("<BQQ", kind, self._size + start, len(summary) - start)
                offsets += records.record(records.SUMMARY_OFFSET, place)
        footer = records.PREFIX.pack(records.FOOTER, records.FOOTER_BODY.size)
        footer += struct.pack("<QQ", self._size, self._size + len(summary))
        whole = bytes(summary + offsets) + footer
        return whole + struct.pack("<I", zlib.crc32(whole))

    def _statistics(self) -> bytes:
        """Return the Statistics record."""
        counts = b"".join(struct.pack("<HQ", number, count) for number, count in self.counts.items())
        return records.record(
            records.STATISTICS,
            struct.pack("<QH", sum(self.counts.values()), len(self.schemas)),
            struct.pack("<II", len(self.channels), len(self._attachment_indexes)),
            struct.pack("<II", len(self._metadata_indexes), len(self._chunk_indexes)),
            struct.pack("<QQ", self._start or 0, self._end),
            records.block(counts),
        )


def _message_indexes(parts: Sequence[Entries]) -> tuple[memoryview, list[tuple[Entries, int]]]:
    """Return the MessageIndex records of one chunk, one a channel, and where among them each begins."""
    head = records.MESSAGE_INDEX_HEAD
    out = np.empty(sum(head.size + PAIR * part.log_time.size for part in parts), dtype=np.uint8)
    starts, at = [], 0
    for part in parts:
        size = PAIR * part.log_time.size
        starts.append((part, at))
        head.pack_into(out.data, at, records.MESSAGE_INDEX, head.size - records.PREFIX.size + size, part.channel, size)
        table = np.ndarray((part.log_time.size, 2), "<u8", out, at + head.size)
        table[:, 0], table[:, 1] = part.log_time, part.offset
        at += head.size + size
    return out.data, starts


class ContainerSink(Ending):
    """What sinks of one MCAP file have in common: how they end."""

    _container: Container

    def close(self) -> None:
        """Write the summary; the file is then whole."""
        self._container.finish()

    def keep(self) -> None:
        """Write the summary if it can be written."""
        self.abort()

    def abort(self) -> None:
        """Write the summary if it can be written; what is there is readable, or can be recovered."""
        try:
            self._container.finish()
        except SinkError:
            self._container.release()
