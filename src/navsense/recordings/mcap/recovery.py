"""Recovery of truncated MCAP files: all complete chunks, in a new file."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from navsense.core import atomic, inputs
from navsense.core.atomic import HiddenFolder
from navsense.core.errors import DamagedError, RecordingError
from navsense.recordings.base import make_os_error, open_for_reading, to_path
from navsense.recordings.format import RecoveryResult
from navsense.recordings.info import WORLD_JSON_KEY
from navsense.recordings.mcap import records
from navsense.recordings.mcap.reader import McapReader, read_profile, scan_records
from navsense.recordings.mcap.writer import McapFileWriter, MessageIndex, build_message_index
from navsense.recordings.world_json import list_notes

UNCHUNKED_BYTES = 2_000_000
"""Size of the new chunks with the messages that are outside chunks."""


class _McapRecovery:
    """Copies records from the truncated file to the new one."""

    def __init__(self, path: Path, file: BinaryIO, out: McapFileWriter) -> None:
        """Take the truncated file and the file to write."""
        self._path, self._file, self.out = path, file, out
        self.topics: dict[int, str] = {}
        self.world = ""
        self.chunks = 0
        self.metadata_count = 0
        self.damaged = 0
        self.has_end = False
        self._unchunked = bytearray()

    @property
    def is_complete(self) -> bool:
        """True if the end was found, and no damage."""
        return self.has_end and not self.damaged

    def copy_records(self, start: int, end: int) -> None:
        """Copy all complete records between two offsets, and compare them with the summary after them."""
        statistics = b""
        for raw in records.read_records(self._file, start, end):
            try:
                if raw.opcode == records.DATA_END:
                    self._flush()
                    self.has_end = True
                    records.check_data_section(self._file, raw)
                elif not self.has_end or raw.opcode in (records.CHUNK, records.METADATA, records.ATTACHMENT):
                    # A summary has none of these: the DataEnd record is another record with a flipped bit.
                    self._copy_record(raw)
                elif raw.opcode == records.STATISTICS:
                    statistics = raw.body
                elif raw.opcode == records.FOOTER:
                    self._check_summary(raw, statistics)
            except (DamagedError, struct.error):
                self.damaged += 1
                if self.damaged == 1:
                    self._restore_definitions()
        self._flush()

    def _restore_definitions(self) -> None:
        """Write the schemas and channels in the summary, because those in a damaged chunk are lost."""
        try:
            definitions = McapReader(self._path, self._file).summary_definitions
        except (RecordingError, DamagedError, struct.error):
            return
        data = b"".join(records.encode_record(opcode, body) for (opcode, _), body in sorted(definitions.items()))
        self.out.write_chunks([(data, self._index_records(data))] if data else [])

    def _check_summary(self, footer: records.RawRecord, statistics: bytes) -> None:
        """Compare a summary with what was found. A damaged one does not matter: the new file gets another one.

        Raises `DamagedError` if messages or metadata were not found, and no damage is known yet.
        """
        try:
            has_crc = records.has_summary_crc(self._file, footer)
        except DamagedError:
            return
        if not has_crc or not statistics or self.damaged:
            return
        fields = struct.unpack_from(records.FIELDS_BEFORE_CHANNEL_MAP[records.STATISTICS], statistics)
        if (sum(self.out.message_counts.values()), self.metadata_count) != (fields[0], fields[4]):
            raise DamagedError("a record was not found")

    def _copy_record(self, raw: records.RawRecord) -> None:
        """Copy one record of the data section."""
        if raw.opcode == records.CHUNK:
            self._flush()
            chunk = records.parse_chunk(raw.body)
            entries = self._index_records(records.decompress(chunk))
            self.out.write_compressed_chunk([chunk.data], chunk.compression, chunk.size, chunk.crc, entries)
            self.chunks += 1
        elif raw.opcode in (records.SCHEMA, records.CHANNEL, records.MESSAGE):
            self._unchunked += records.encode_record(raw.opcode, raw.body)
            if len(self._unchunked) >= UNCHUNKED_BYTES:
                self._flush()
        elif raw.opcode == records.METADATA:
            name, values = records.parse_metadata(raw.body)
            if name == records.WORLD_METADATA:
                self.world = values.get(WORLD_JSON_KEY, "")
            self._flush()
            self.out.add_metadata(name, values)
            self.metadata_count += 1
        elif raw.opcode == records.ATTACHMENT:
            self._flush()
            self.out.add_attachment(raw.body)

    def _flush(self) -> None:
        """Write the messages that were outside chunks. If one of them is damaged, all of them are dropped."""
        if not self._unchunked:
            return
        data = bytes(self._unchunked)
        self._unchunked.clear()
        try:
            entries = self._index_records(data)
        except (DamagedError, struct.error):
            self.damaged += 1
            return
        self.out.write_chunks([(data, entries)])
        self.chunks += 1

    def _index_records(self, data: bytes) -> list[MessageIndex]:
        """Return the message indexes of a chunk. Its schemas and channels are added if all of it is valid."""
        scanned = scan_records(data)
        if not scanned.is_complete:
            raise DamagedError("a chunk ends inside a record")
        messages = scanned.scan_messages()
        schemas: dict[int, bytes] = {}
        channels: dict[int, tuple[str, bytes]] = {}
        defined_at = dict.fromkeys(self.topics, -1)
        for index in np.flatnonzero(scanned.opcodes != records.MESSAGE).tolist():
            opcode, body = int(scanned.opcodes[index]), scanned.get_body(index)
            reader = records.FieldReader(body)
            if opcode == records.SCHEMA:
                schemas[reader.read_int(2)] = records.encode_record(opcode, body)
            elif opcode == records.CHANNEL:
                channel_id, schema_id = reader.read_int(2), reader.read_int(2)
                if schema_id and schema_id not in self.out.schemas and schema_id not in schemas:
                    raise DamagedError("a channel with an unknown schema")
                channels[channel_id] = (reader.read_string(), records.encode_record(opcode, body))
                defined_at.setdefault(channel_id, index)
        channel_ids, first = np.unique(messages.channel_id, return_index=True)
        for channel_id, index in zip(channel_ids.tolist(), messages.record_indices[first].tolist(), strict=True):
            if defined_at.get(channel_id, index) >= index:
                raise DamagedError("a message of an unknown channel")
        self.out.schemas.update(schemas)
        for channel_id, (topic, record) in channels.items():
            self.topics[channel_id] = topic
            self.out.channels[channel_id] = record
            self.out.message_counts.setdefault(channel_id, 0)
        offsets = (messages.starts - records.MESSAGE_HEADER.size).astype(np.uint64)
        indexes = []
        for channel_id in channel_ids[np.argsort(first)].tolist():
            rows = messages.channel_id == channel_id
            indexes.append(build_message_index(channel_id, messages.log_time[rows], offsets[rows]))
        return indexes


def recover_mcap(
    path: str | os.PathLike[str], out: str | os.PathLike[str], *, keep_intact: bool = True
) -> RecoveryResult:
    """Write all complete chunks of the MCAP file `path` to `out`, which appears when it is complete.

    keep_intact: whether `out` appears for a file that is intact.

    Raises `RecordingError` if `path` is not an MCAP file, cannot be read or has a live writer, and if `out` cannot be
    written.
    """
    path, out = to_path(path), to_path(out)
    try:
        with inputs.collect_inputs(), open_for_reading(path) as file:
            if atomic.is_being_written(path):
                raise atomic.make_unfinished_error(path)
            end = file.seek(0, os.SEEK_END)
            name, start = read_profile(file, path, end)
            recovery, is_intact = _recover_byte_range(path, file, (start, end), name, out, keep_intact=keep_intact)
    except OSError as error:
        raise make_os_error(path, error, "read") from error
    counts: dict[str, int] = {}
    for channel_id, topic in recovery.topics.items():
        counts[topic] = counts.get(topic, 0) + recovery.out.message_counts[channel_id]
    return RecoveryResult(
        str(out) if keep_intact or not is_intact else "",
        sum(counts.values()),
        recovery.chunks,
        recovery.damaged,
        recovery.is_complete,
        counts,
        is_truncated=not recovery.has_end,
        is_intact=is_intact,
        notes=list_notes(recovery.world),
    )


def _is_intact(path: Path, file: BinaryIO) -> bool:
    """Return True if the summary of a file is correct, and its index is that of the chunks."""
    try:
        McapReader(path, file).list_segments()
    except (RecordingError, DamagedError, struct.error):
        return False
    return True


def _recover_byte_range(
    path: Path, file: BinaryIO, byte_range: tuple[int, int], name: str, out: Path, *, keep_intact: bool
) -> tuple[_McapRecovery, bool]:
    """Copy a range of bytes of the old file to `out`, and return whether the old file is intact.

    No file is left after an error, and for an intact file without `keep_intact`: only the copy of all chunks shows that
    none is damaged.
    """
    try:
        work = HiddenFolder(out)
    except OSError as error:
        raise make_os_error(out, error) from error
    writer: McapFileWriter | None = None
    try:
        writer = McapFileWriter(work.folder / out.name, name, final_path=out)
        recovery = _McapRecovery(path, file, writer)
        recovery.copy_records(*byte_range)
        is_intact = recovery.is_complete and _is_intact(path, file)
        if is_intact and not keep_intact:
            return recovery, is_intact
        writer.finish()
        try:
            work.commit(writer.path)
        except OSError as error:
            raise make_os_error(out, error) from error
    finally:
        if writer is not None:
            writer.release()
        work.release()
    return recovery, is_intact
