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

from navsense import atomic
from navsense.errors import RecordingError, Where
from navsense.recordings.base import WriterBase, check_target, is_recovered, os_error, write_all
from navsense.recordings.mcap import records
from navsense.typing import WordArray

ZSTD_LEVEL = -1
"""Level of zstd: on sensor data 1.4 times as fast as level 1, for files that are 3 % larger."""

INDEX_ENTRY_SIZE = 16
"""Bytes of a log time and an offset in a MessageIndex record."""

Buffer: TypeAlias = bytes | memoryview


@dataclass(frozen=True, eq=False)
class MessageIndex:
    """The messages of one channel in one chunk, in order: log times (ns) and offsets in the uncompressed chunk."""

    channel: int
    log_time: WordArray
    offset: WordArray


def build_message_indexes(messages: Mapping[int, tuple[Sequence[int], Sequence[int]]]) -> list[MessageIndex]:
    """Return messages of one chunk by channel, in order; `places` are their log times (ns) and offsets as they came."""
    return [
        build_message_index(channel, np.array(logs, dtype=np.uint64), np.array(offsets, dtype=np.uint64))
        for channel, (logs, offsets) in messages.items()
    ]


def build_message_index(channel: int, log_time: WordArray, offset: WordArray) -> MessageIndex:
    """Return messages of one channel in order, which a fault of what they are about, or others, may have mixed up."""
    if not (log_time[1:] < log_time[:-1]).any():
        return MessageIndex(channel, log_time, offset)
    order = np.argsort(log_time, kind="stable")
    return MessageIndex(channel, log_time[order], offset[order])


class McapFileWriter:
    """Writes one MCAP file. After a failure it is cut back to its last whole chunk, so that it can be recovered."""

    def __init__(self, path: Path, profile: str = "ros2", final_path: Path | None = None) -> None:
        """Open `path` for writing and write its head. Raise `RecordingError` where that cannot be.

        `final` is the name that the caller will give the file when it is whole: then `path` must be new, errors speak
        of `final`, and what is left after one is nobody's.
        """
        check_target(path)
        self.path = path
        self._final = final_path
        self.schemas: dict[int, bytes] = {}
        self.channels: dict[int, bytes] = {}
        self.message_counts: dict[int, int] = {}
        self._compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
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
            self._file = atomic.open_in_place(path, keep) if final_path is None else path.open("xb", buffering=0)
        except OSError as error:
            raise os_error(final_path or path, error) from error
        try:
            head = records.encode_record(records.HEADER, records.encode_text(profile), records.encode_text("navsense"))
            self._append(records.MAGIC, head)
        except BaseException:
            if final_path is None:
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
        with self._all_or_nothing():
            size = self._write_at(self._size, parts)
        self._size += size

    def _write_at(self, offset: int, parts: Iterable[Buffer]) -> int:
        """Write parts from an offset on; return how many bytes they are."""
        self._file.seek(offset)
        size = 0
        for part in parts:
            size += len(part)
            write_all(self._file, part)
        return size

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """See to it that all is written that is written inside, or nothing of it."""
        if self._failed:
            raise RecordingError("the recording has already failed", where=Where(str(self._final or self.path)))
        try:
            yield
        except RecordingError:
            # What was to be written could not be made; the file is as good as before.
            self._truncate()
            raise
        except BaseException as error:
            self._failed = True
            self._truncate()
            if isinstance(error, OSError):
                raise self._write_error(error) from error
            raise

    def _write_error(self, error: OSError) -> RecordingError:
        """Return the error of a write that failed, with what can still be done."""
        if self._final is not None:
            return os_error(self._final, error)
        failure = os_error(self.path, error)
        if not self._chunk_indexes:
            return failure
        failure.rescue = f"what was written stays readable by: navsense recover {self.path}"
        return failure

    def _truncate(self) -> None:
        """Take the file back to the last whole chunk."""
        with contextlib.suppress(OSError):
            self._file.truncate(self._size)
            self._file.seek(0, os.SEEK_END)

    def add_metadata(self, record: bytes, name: str) -> None:
        """Write one whole Metadata record."""
        at = self._size
        self._append(record)
        self._metadata_indexes.append(
            records.encode_record(
                records.METADATA_INDEX, struct.pack("<QQ", at, len(record)), records.encode_text(name)
            )
        )

    def add_attachment(self, body: bytes) -> None:
        """Write one Attachment record from its body as another file had it."""
        reader = records.FieldReader(body)
        times = bytes(reader.read(16))
        name, media = reader.read_string(), reader.read_string()
        size = reader.read_int(8)
        at = self._size
        self._append(records.encode_record(records.ATTACHMENT, body))
        self._attachment_indexes.append(
            records.encode_record(
                records.ATTACHMENT_INDEX,
                struct.pack("<QQ", at, self._size - at),
                times,
                struct.pack("<Q", size),
                records.encode_text(name),
                records.encode_text(media),
            )
        )

    def write_chunks(self, chunks: Iterable[tuple[Buffer, Sequence[MessageIndex]]]) -> None:
        """Write chunks, each whole records and the index of its messages; all are with the system on return."""
        for data, entries in chunks:
            self.write_compressed_chunk([self._compressor.compress(data)], "zstd", len(data), zlib.crc32(data), entries)

    def write_compressed_chunk(
        self, parts: Iterable[Buffer], compression: str, size: int, crc: int, message_indexes: Sequence[MessageIndex]
    ) -> None:
        """Write one chunk that is already compressed: `size` bytes and their `crc` when unpacked.

        Its parts are written as they come; where one fails to come, nothing of the chunk is left.
        """
        filled = [part for part in message_indexes if part.log_time.size]
        start = min((int(part.log_time[0]) for part in filled), default=0)
        end = max((int(part.log_time[-1]) for part in filled), default=0)
        name, at = records.encode_text(compression), self._size
        before = records.CHUNK_HEAD.size + len(name) + 8
        indexes, starts = _encode_message_indexes(filled)
        with self._all_or_nothing():
            # How long the data are is known behind them; until then zeros stand for the head, where a walk ends.
            length = self._write_at(at + records.PREFIX.size + before, parts)
            chunk_size = records.PREFIX.size + before + length
            self._write_at(at + chunk_size, [indexes])
            times = records.CHUNK_HEAD.pack(start, end, size, crc)
            prefix = records.PREFIX.pack(records.CHUNK, before + length)
            # At once: half a head would be a chunk of another size.
            self._write_at(at, [prefix + times + name + struct.pack("<Q", length)])
            self._file.seek(0, os.SEEK_END)
        self._size = at + chunk_size + len(indexes)
        places = [struct.pack("<HQ", part.channel, at + chunk_size + start) for part, start in starts]
        for part in filled:
            self.message_counts[part.channel] = self.message_counts.get(part.channel, 0) + part.log_time.size
        if filled:
            self._start = start if self._start is None else min(start, self._start)
            self._end = max(end, self._end)
        self._chunk_indexes.append(
            records.encode_record(
                records.CHUNK_INDEX,
                struct.pack("<QQQQ", start, end, at, chunk_size),
                records.encode_bytes(b"".join(places)),
                struct.pack("<Q", len(indexes)),
                name,
                struct.pack("<QQ", length, size),
            )
        )

    def finish(self) -> None:
        """Write the summary and close the file."""
        try:
            # Zero: no checksum of the whole, for each chunk has its own.
            self._append(records.encode_record(records.DATA_END, struct.pack("<I", 0)))
            self._append(self._encode_summary(), records.MAGIC)
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

    def _encode_summary(self) -> bytes:
        """Return all from the summary's first byte to the footer's last."""
        groups: Iterable[tuple[int, Iterable[bytes]]] = (
            (records.SCHEMA, self.schemas.values()),
            (records.CHANNEL, self.channels.values()),
            (records.STATISTICS, (self._encode_statistics(),)),
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
                offsets += records.encode_record(records.SUMMARY_OFFSET, place)
        footer = records.PREFIX.pack(records.FOOTER, records.FOOTER_BODY.size)
        footer += struct.pack("<QQ", self._size, self._size + len(summary))
        whole = bytes(summary + offsets) + footer
        return whole + struct.pack("<I", zlib.crc32(whole))

    def _encode_statistics(self) -> bytes:
        """Return the Statistics record."""
        counts = b"".join(struct.pack("<HQ", number, count) for number, count in self.message_counts.items())
        return records.encode_record(
            records.STATISTICS,
            struct.pack("<QH", sum(self.message_counts.values()), len(self.schemas)),
            struct.pack("<II", len(self.channels), len(self._attachment_indexes)),
            struct.pack("<II", len(self._metadata_indexes), len(self._chunk_indexes)),
            struct.pack("<QQ", self._start or 0, self._end),
            records.encode_bytes(counts),
        )


def _encode_message_indexes(parts: Sequence[MessageIndex]) -> tuple[memoryview, list[tuple[MessageIndex, int]]]:
    """Return the MessageIndex records of one chunk, one a channel, and where among them each begins."""
    head = records.MESSAGE_INDEX_HEAD
    out = np.empty(sum(head.size + INDEX_ENTRY_SIZE * part.log_time.size for part in parts), dtype=np.uint8)
    starts, at = [], 0
    for part in parts:
        size = INDEX_ENTRY_SIZE * part.log_time.size
        starts.append((part, at))
        head.pack_into(out.data, at, records.MESSAGE_INDEX, head.size - records.PREFIX.size + size, part.channel, size)
        table = np.ndarray((part.log_time.size, 2), "<u8", out, at + head.size)
        table[:, 0], table[:, 1] = part.log_time, part.offset
        at += head.size + size
    return out.data, starts


class McapWriterBase(WriterBase):
    """What writers of one MCAP file have in common: how they end."""

    _file: McapFileWriter

    def close(self) -> None:
        """Write the summary; the file is then whole."""
        self._file.finish()

    def salvage(self) -> None:
        """Write the summary if it can be written."""
        self.abort()

    def abort(self) -> None:
        """Write the summary if it can be written; what is there is readable, or can be recovered."""
        try:
            self._file.finish()
        except RecordingError:
            self._file.release()
