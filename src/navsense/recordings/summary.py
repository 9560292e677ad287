"""What a recording holds, without reading its messages where the file says it itself."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from navsense import atomic, inputs
from navsense.errors import RecordingError, Where
from navsense.recordings import message_reader
from navsense.recordings.base import find_format, open_for_reading, os_error, to_path
from navsense.recordings.dataset import Dataset
from navsense.recordings.format import storage_path
from navsense.recordings.header import WORLD_KEY, RecordingSummary, SummaryEntry
from navsense.recordings.mcap import records
from navsense.recordings.mcap.reader import read_profile
from navsense.recordings.mcap.records import WORLD_METADATA
from navsense.recordings.rosbag.limits import limit_rosbags
from navsense.recordings.rosbag.metadata import is_metadata, read_ros1_metadata
from navsense.recordings.rosbag.reader import BAG, map_bag_errors
from navsense.recordings.rosbag.writer import BAG_METADATA_FILE
from navsense.recordings.world_json import notes_about
from navsense.series import Current, Reading, Truth, to_nanoseconds
from navsense.typing import IntArray


def read_summary(path: str | os.PathLike[str]) -> RecordingSummary:
    """Return what a recording of any format holds; raise `RecordingError` if it is none or was cut off.

    A bag of ROS 2 may be named by its folder, by the file in it, or as it was when it was recorded, from anywhere; a
    folder of CSV or EuRoC by itself, or as it was recorded.
    """
    path = to_path(path)
    found = find_format(path)
    try:
        if found.summarize is None:
            return replace(summarize_dataset(path, found.name, found.read(path)), unit=found.unit)
        return replace(found.summarize(path), unit=found.unit)
    except OSError as error:
        raise os_error(path, error, "read") from error


def summarize_dataset(
    path: Path, name: str, recording: Dataset, metadata: Mapping[str, Any] | None = None
) -> RecordingSummary:
    """Return what a recording in memory holds; `metadata` replaces its own, {} if another program wrote it."""
    place = path if path.exists() else storage_path(path)
    series: dict[tuple[str, str], Reading | Truth | Current] = {
        (name, reading.type): reading for name, reading in recording.items()
    }
    series |= {(f"truth/{name}", "truth"): truth for name, truth in recording.truth.items()}
    series |= {("current", "current"): recording.current} if recording.current else {}
    entries = tuple(SummaryEntry(*key, int(one.time.size)) for key, one in series.items())
    spans = [np.empty(0), *(one.time[[0, -1]] for one in series.values() if one.time.size)]
    times = to_nanoseconds(recording.metadata["epoch"], np.concatenate(spans))
    found = make_summary(place, name, times, entries, recording.metadata if metadata is None else metadata)
    if not place.is_dir():
        return found
    return replace(found, size=sum(file.stat().st_size for file in place.rglob("*") if file.is_file()))


@dataclass
class _McapContents:
    """What is gathered of an MCAP file."""

    schemas: dict[int, str] = field(default_factory=dict)
    channels: dict[int, tuple[str, int]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    first: int | None = None
    last: int = 0
    metadata: dict[str, str] = field(default_factory=dict)
    layout: str = ""

    def add_definition(self, kind: int, body: bytes | memoryview) -> None:
        """Note a schema or a channel."""
        reader = records.FieldReader(body)
        number = reader.read_int(2)
        if kind == records.SCHEMA:
            self.schemas[number] = reader.read_string()
        elif kind == records.CHANNEL:
            schema = reader.read_int(2)
            self.channels[number] = (reader.read_string(), schema)

    def count_message(self, body: bytes | memoryview) -> None:
        """Count a message."""
        channel, _, time = struct.unpack_from("<HIQ", body)
        self.counts[channel] = self.counts.get(channel, 0) + 1
        self.first = time if self.first is None else min(time, self.first)
        self.last = max(time, self.last)

    def list_entries(self) -> tuple[SummaryEntry, ...]:
        """Return the topics by name."""
        found: dict[tuple[str, str], int] = {}
        for number, (topic, schema) in self.channels.items():
            key = (topic, self.schemas.get(schema, ""))
            found[key] = found.get(key, 0) + self.counts.get(number, 0)
        return tuple(SummaryEntry(name, kind, count) for (name, kind), count in sorted(found.items()))


def summarize_mcap(path: Path) -> RecordingSummary:
    """Return what an MCAP file holds, from its summary, else by reading all of it."""
    with open_for_reading(path) as file:
        size = file.seek(0, os.SEEK_END)
        _, start = read_profile(file, path, size)
        contents = _McapContents()
        tail = records.PREFIX.size + records.FOOTER_BODY.size + len(records.MAGIC)
        file.seek(max(start, size - tail))
        ending = file.read(tail)
        if len(ending) < tail or not ending.endswith(records.MAGIC) or ending[0] != records.FOOTER:
            raise message_reader.truncated_error(path)
        try:
            summary = records.FOOTER_BODY.unpack_from(ending, records.PREFIX.size)[0]
            if summary:
                _read_mcap_summary(file, summary, size - tail, contents)
            else:
                _scan_records(file, start, size - tail, contents)
        except (records.DamagedError, struct.error, ValueError, OverflowError, MemoryError) as error:
            raise RecordingError(
                f"the recording is damaged: {error}",
                where=Where(str(path)),
                remedy=atomic.recovery_remedy(path),
            ) from error
    last = None if contents.first is None else contents.last
    return RecordingSummary(
        str(path),
        "mcap",
        size,
        contents.first,
        last,
        contents.list_entries(),
        contents.metadata,
        notes_about(contents.layout),
    )


def _read_mcap_summary(file: BinaryIO, start: int, end: int, contents: _McapContents) -> None:
    """Read the summary of a file, and the metadata records that it points to."""
    places = []
    for raw in records.read_records(file, start, end):
        contents.add_definition(raw.kind, raw.body)
        if raw.kind == records.STATISTICS:
            reader = records.FieldReader(raw.body)
            total = reader.read_int(8)
            reader.read(2 + 4 + 4 + 4 + 4)
            first, contents.last = reader.read_int(8), reader.read_int(8)
            contents.first = first if total else None
            table = records.FieldReader(reader.read(reader.read_int(4)))
            while table.offset < len(table.body):
                channel = table.read_int(2)
                contents.counts[channel] = table.read_int(8)
        elif raw.kind == records.METADATA_INDEX:
            places.append(struct.unpack_from("<QQ", raw.body))
    for offset, length in places:
        if offset + length > end:
            raise records.DamagedError("its index points outside the file")
        for raw in records.read_records(file, offset, offset + length):
            _add_metadata(raw, contents)


def _add_metadata(raw: records.RawRecord, contents: _McapContents) -> None:
    """Note our own metadata records."""
    if raw.kind == records.METADATA:
        reader = records.FieldReader(raw.body)
        name = reader.read_string()
        if name == "navsense":
            contents.metadata.update(reader.read_map())
        elif name == WORLD_METADATA:
            contents.layout = reader.read_map().get(WORLD_KEY, "")


def _scan_records(file: BinaryIO, start: int, end: int, contents: _McapContents) -> None:
    """Read all records of a file without a summary."""
    for raw in records.read_records(file, start, end):
        _add_metadata(raw, contents)
        parts = [(raw.kind, raw.offset, memoryview(raw.body))]
        if raw.kind == records.CHUNK:
            parts = list(records.parse_records(records.decompress(records.parse_chunk(raw.body))))
        for kind, _, body in parts:
            if kind == records.MESSAGE:
                contents.count_message(body)
            else:
                contents.add_definition(kind, body)


ROS1_BAG = "ROS 1 bag"


def summarize_ros1_bag(path: Path) -> RecordingSummary:
    """Return what a bag of ROS 1 holds, from its index."""
    from rosbags.rosbag1 import Reader

    open_for_reading(path).close()
    remedy = atomic.recovery_remedy(path)
    with map_bag_errors(path, remedy), limit_rosbags(), Reader(path) as reader:
        return _summarize_bag(path, ROS1_BAG, path.stat().st_size, reader, read_ros1_metadata(reader))


def summarize_ros2_bag(path: Path) -> RecordingSummary:
    """Return what a bag of ROS 2 holds, from its metadata."""
    from rosbags.rosbag2 import Reader

    if not path.exists():
        path = storage_path(path) if (storage_path(path) / BAG_METADATA_FILE).is_file() else path
    elif (
        path.suffix == ".db3"
        and path.stem == path.absolute().parent.name
        and (path.parent / BAG_METADATA_FILE).is_file()
    ):
        path = path.parent
    if not path.is_dir():
        open_for_reading(path).close()
    inputs.check_bag(path, BAG)
    with map_bag_errors(path), limit_rosbags(), Reader(path) as reader:
        size = sum(part.stat().st_size for part in path.iterdir()) if path.is_dir() else path.stat().st_size
        said = reader.storage.metadata.custom or _read_file_metadata(path)
        return _summarize_bag(path, "ROS 2 bag", size, reader, said)


def _read_file_metadata(path: Path) -> Mapping[str, str]:
    """Return what the files of a bag's folder say of themselves."""
    with message_reader.open_messages(path) as source:
        return source.metadata


def _summarize_bag(path: Path, form: str, size: int, reader: Any, metadata: Mapping[str, Any]) -> RecordingSummary:
    """Return what an open reader of rosbags tells, and what the bag says of itself."""
    counts: dict[tuple[str, str], int] = {}
    for connection in reader.connections:
        if form == ROS1_BAG and is_metadata(connection):
            continue
        key = (connection.topic, connection.msgtype)
        counts[key] = counts.get(key, 0) + connection.msgcount
    entries = tuple(SummaryEntry(topic, kind, count) for (topic, kind), count in sorted(counts.items()))
    first, last = (reader.start_time, reader.end_time - 1) if reader.message_count else (None, None)
    meta = {key: str(metadata[key]) for key in METADATA_KEYS if key in metadata}
    return RecordingSummary(str(path), form, size, first, last, entries, meta, notes_about(metadata.get(WORLD_KEY)))


METADATA_KEYS = ("world", "seed", "epoch", "runs", "version", "ros", "duration_asked", "faults")
"""What `info` says of the metadata of an archive, a table or a bag, in order."""


def make_summary(
    path: Path, form: str, times: IntArray, entries: tuple[SummaryEntry, ...], meta: Mapping[str, Any]
) -> RecordingSummary:
    """Return what is known of an archive or a table."""
    said = {key: _format_value(meta[key]) for key in METADATA_KEYS if meta.get(key) is not None}
    first, last = (int(times.min()), int(times.max())) if times.size else (None, None)
    return RecordingSummary(
        str(path), form, path.stat().st_size, first, last, entries, said, notes_about(meta.get(WORLD_KEY))
    )


def _format_value(value: object) -> str:
    """Return a value of the metadata as text, lists as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
