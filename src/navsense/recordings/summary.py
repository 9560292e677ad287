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

from navsense import inputs, outputs
from navsense.devices.encoders import FORMATS
from navsense.devices.logs import summarise_log
from navsense.errors import SinkError, Where
from navsense.recordings import csv_tables, euroc, message_reader, parquet_reader, records
from navsense.recordings.base import WORLD_KEY, open_for_reading, os_error, storage_path, to_path
from navsense.recordings.dataset_reader import open_archive, open_recording, read_metadata, read_times
from navsense.recordings.device_writers import device_suffix
from navsense.recordings.mcap import WORLD_METADATA
from navsense.recordings.mcap_recovery import read_profile
from navsense.recordings.message_reader import BAG, map_bag_errors
from navsense.recordings.ros1_metadata import is_metadata, read_ros1_metadata
from navsense.recordings.rosbag import BAG_METADATA_FILE
from navsense.recordings.world_json import notes_about
from navsense.rosbags_limits import limit_rosbags
from navsense.series import to_nanoseconds
from navsense.text import format_count
from navsense.typing import IntArray


@dataclass(frozen=True)
class SummaryEntry:
    """One topic or array: name, message type (or element type and shape), number of messages (or rows)."""

    name: str
    type: str
    count: int


@dataclass(frozen=True)
class RecordingSummary:
    """What a recording holds. `start` and `end` are true time in integer nanoseconds, None where there is no message.

    `meta` is what the recording says of its run: texts, `runs` a JSON list, `duration_asked` in s. `notes` are about
    what this version of navsense cannot read of its world.
    """

    path: str
    format: str
    size: int
    start: int | None
    end: int | None
    entries: tuple[SummaryEntry, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """Return the whole in one line."""
        count = sum(entry.count for entry in self.entries)
        noun = "row" if self.format in ("npz", "parquet", "csv", EUROC) else "message"
        noun = "record" if self.format in {form.name for form in FORMATS.values()} else noun
        span = ""
        if self.start is not None and self.end is not None:
            span = f" from {format_seconds(self.start)} s to {format_seconds(self.end)} s"
        made = "".join(f", {format_metadata_item(key, value)}" for key, value in self.metadata.items())
        return f"{self.path}: {self.format}, {format_count(self.size, 'byte')}, {format_count(count, noun)}{span}{made}"


def format_seconds(stamp: int) -> str:
    """Return integer nanoseconds as exact seconds, without zeros at the end."""
    whole, part = divmod(abs(stamp), 1_000_000_000)
    text = f"{whole}.{part:09d}".rstrip("0").rstrip(".")
    return f"-{text}" if stamp < 0 else text


def format_metadata_item(key: str, value: str) -> str:
    """Return one item of a recording's metadata as the headline has it; what is not understood stays as it is."""
    if key == "duration_asked":
        return f"asked for {value.removesuffix('.0')} s"
    if key == "runs":
        try:
            runs = [int(run) for run in inputs.parse_json(value)]
        except (ValueError, TypeError, OverflowError):
            return f"runs {value}"
        if len(runs) == 1:
            return f"run {runs[0]}"
        if len(runs) > 1 and runs == list(range(runs[0], runs[0] + len(runs))):
            return f"runs {runs[0]} to {runs[-1]}"
        return f"{len(runs)} runs"
    if key == "faults":
        return format_faults(value)
    return f"{key} {value}"


def format_faults(value: str) -> str:
    """Return the number of scheduled faults that a recording lists; an invalid list stays as it is."""
    try:
        faults = inputs.parse_json(value)
    except ValueError:
        faults = None
    if not isinstance(faults, list):
        return f"faults {value}"
    return format_count(len(faults), "scheduled fault")


def read_summary(path: str | os.PathLike[str]) -> RecordingSummary:
    """Return what a recording of any format holds; raise `SinkError` if it is none or was cut off.

    A bag of ROS 2 may be named by its folder, by the file in it, or as it was when it was recorded, from anywhere; a
    folder of CSV or EuRoC by itself, or as it was recorded.
    """
    path = to_path(path)
    readers = {
        ".mcap": _read_mcap,
        ".npz": _read_npz,
        ".parquet": _read_parquet,
        ".bag": _read_ros1_bag,
        ".db3": _read_ros2_bag,
    }
    readers |= {".csv": _read_tables, ".euroc": _read_tables, **dict.fromkeys(FORMATS, _read_device_log)}
    suffix = device_suffix(path) or path.suffix.lower()
    reader = (
        _read_ros2_bag
        if (path / BAG_METADATA_FILE).is_file()
        else readers.get(suffix, _read_tables if path.is_dir() else None)
    )
    if reader is None:
        raise SinkError(
            "no recording has this suffix",
            path.suffix or path.name,
            allowed="known are " + ", ".join(readers),
            where=Where(str(path)),
        )
    try:
        return reader(path)
    except OSError as error:
        raise os_error(path, error, "read") from error


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


def _read_mcap(path: Path) -> RecordingSummary:
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
            raise SinkError(
                f"the recording is damaged: {error}",
                where=Where(str(path)),
                remedy=outputs.recovery_remedy(path),
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
EUROC = "EuRoC"


def _read_ros1_bag(path: Path) -> RecordingSummary:
    """Return what a bag of ROS 1 holds, from its index."""
    from rosbags.rosbag1 import Reader

    open_for_reading(path).close()
    remedy = outputs.recovery_remedy(path)
    with map_bag_errors(path, remedy), limit_rosbags(), Reader(path) as reader:
        return _summarize_bag(path, ROS1_BAG, path.stat().st_size, reader, read_ros1_metadata(reader))


def _read_ros2_bag(path: Path) -> RecordingSummary:
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


def _read_device_log(path: Path) -> RecordingSummary:
    """Return what a device's log holds; all of it is read."""
    with open_for_reading(path) as file:
        data = file.read()
    try:
        log = summarise_log(device_suffix(path), data)
    except SinkError as error:
        error.where = Where(str(path))
        raise
    meta = {"coordinates": ", ".join(log.coordinates)} if log.coordinates else {}
    meta |= {"skipped": log.skipped} if log.skipped else {}
    entries = tuple(SummaryEntry(*entry) for entry in log.entries)
    first, last = (int(log.stamps.min()), int(log.stamps.max())) if log.stamps.size else (None, None)
    return RecordingSummary(str(path), FORMATS[device_suffix(path)].name, len(data), first, last, entries, meta)


METADATA_KEYS = ("world", "seed", "epoch", "runs", "version", "ros", "duration_asked", "faults")
"""What `info` says of the metadata of an archive, a table or a bag, in order."""


def _read_npz(path: Path) -> RecordingSummary:
    """Return what a NumPy archive holds; only the arrays' heads and the times are read."""
    with open_archive(path) as archive:
        meta = read_metadata(archive)
        entries, spans = [], [np.empty(0)]
        named = [(name, name, str(head["type"])) for name, head in meta["sensors"].items()]
        named += [(f"truth/{name}",) * 2 + ("truth",) for name in meta["links"]]
        named += [("current",) * 3] if meta.get("current") else []
        for key, name, kind in named:
            time = read_times(archive, key)
            entries.append(SummaryEntry(name, kind, int(time.size)))
            spans += [time[:1], time[-1:]]
        times = to_nanoseconds(meta["epoch"], np.concatenate(spans))
    return _make_summary(path, "npz", times, tuple(entries), meta)


def _read_parquet(path: Path) -> RecordingSummary:
    """Return what a Parquet table holds; only what its rows are of, and their times, is read."""
    with parquet_reader.open_table(path) as table:
        meta = parquet_reader.read_metadata(table)
        counts, span = parquet_reader.count_rows(table)
        times = to_nanoseconds(meta["epoch"], span)
        entries = [
            SummaryEntry(n, str(head["type"]), counts.get(("reading", n), 0)) for n, head in meta["sensors"].items()
        ]
        entries += [SummaryEntry(f"truth/{name}", "truth", counts.get(("truth", name), 0)) for name in meta["links"]]
        flow = meta.get("current")
        entries += [SummaryEntry("current", "current", counts.get(("current", flow["topic"]), 0))] if flow else []
    return _make_summary(path, "parquet", times, tuple(entries), meta)


def _read_tables(path: Path) -> RecordingSummary:
    """Return what a folder of CSV tables holds, ours or EuRoC's; all of it is read."""
    folder = path if path.is_dir() else path.with_suffix("")
    loaded = open_recording(path)
    entries = [SummaryEntry(name, reading.type, int(reading.time.size)) for name, reading in loaded.items()]
    entries += [SummaryEntry(f"truth/{name}", "truth", int(part.time.size)) for name, part in loaded.truth.items()]
    entries += [SummaryEntry("current", "current", int(loaded.current.time.size))] if loaded.current else []
    times = [one.time for one in loaded.values()] + [one.time for one in loaded.truth.values()]
    times += [loaded.current.time] if loaded.current else []
    spans = [np.empty(0), *(time[[0, -1]] for time in times if time.size)]
    form, times_ns = (
        EUROC if euroc.find_root(folder) else "csv",
        to_nanoseconds(loaded.metadata["epoch"], np.concatenate(spans)),
    )
    said = loaded.metadata if (folder / csv_tables.METADATA_FILE).is_file() else {}
    found = _make_summary(folder, form, times_ns, tuple(entries), said)
    return replace(found, size=sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()))


def _make_summary(
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
