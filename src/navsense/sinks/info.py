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
from navsense.devices.logs import look
from navsense.devices.outputs import FORMATS
from navsense.errors import SinkError, Where
from navsense.series import nanoseconds
from navsense.sinks import euroc, parquet_read, records, sources, tables
from navsense.sinks.about import is_about, said_in
from navsense.sinks.base import LAYOUT, opened, os_error, storage_path, to_path
from navsense.sinks.device import suffix_of
from navsense.sinks.load import archive_of, load, meta_of, time_of
from navsense.sinks.mcap import OUR_WORLD
from navsense.sinks.recover import profile
from navsense.sinks.rosbag import METADATA
from navsense.sinks.sources import BAG, damaged
from navsense.sinks.world_json import notes_about
from navsense.typing import IntArray
from navsense.unpacking import bounded_rosbags


@dataclass(frozen=True)
class Entry:
    """One topic or array: name, message type (or element type and shape), number of messages (or rows)."""

    name: str
    type: str
    count: int


@dataclass(frozen=True)
class Info:
    """What a recording holds. `start` and `end` are true time in integer nanoseconds, None where there is no message.

    `meta` is what the recording says of its run: texts, `runs` a JSON list, `duration_asked` in s. `notes` are about
    what this version of navsense cannot read of its world.
    """

    path: str
    format: str
    size: int
    start: int | None
    end: int | None
    entries: tuple[Entry, ...]
    meta: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """Return the whole in one line."""
        count = sum(entry.count for entry in self.entries)
        noun = "rows" if self.format in ("npz", "parquet", "csv", EUROC) else "messages"
        noun = "records" if self.format in {form.name for form in FORMATS.values()} else noun
        span = ""
        if self.start is not None and self.end is not None:
            span = f" from {seconds(self.start)} s to {seconds(self.end)} s"
        made = "".join(f", {words(key, value)}" for key, value in self.meta.items())
        return f"{self.path}: {self.format}, {self.size} bytes, {count} {noun}{span}{made}"


def seconds(stamp: int) -> str:
    """Return integer nanoseconds as exact seconds, without zeros at the end."""
    whole, part = divmod(abs(stamp), 1_000_000_000)
    text = f"{whole}.{part:09d}".rstrip("0").rstrip(".")
    return f"-{text}" if stamp < 0 else text


def words(key: str, value: str) -> str:
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
        return fault_words(value)
    return f"{key} {value}"


def fault_words(value: str) -> str:
    """Return how many faults on purpose a recording lists; what is no list stays as it is."""
    try:
        faults = inputs.parse_json(value)
    except ValueError:
        faults = None
    if not isinstance(faults, list):
        return f"faults {value}"
    return f"{len(faults)} fault{'s' * (len(faults) != 1)} on purpose"


def info(path: str | os.PathLike[str]) -> Info:
    """Return what a recording of any format holds; raise `SinkError` if it is none or was cut off.

    A bag of ROS 2 may be named by its folder, by the file in it, or as it was when it was recorded, from anywhere; a
    folder of CSV or EuRoC by itself, or as it was recorded.
    """
    path = to_path(path)
    readers = {".mcap": _mcap, ".npz": _npz, ".parquet": _parquet, ".bag": _ros1, ".db3": _ros2}
    readers |= {".csv": _tables, ".euroc": _tables, **dict.fromkeys(FORMATS, _device)}
    suffix = suffix_of(path) or path.suffix.lower()
    reader = _ros2 if (path / METADATA).is_file() else readers.get(suffix, _tables if path.is_dir() else None)
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
class _Contents:
    """What is gathered of an MCAP file."""

    schemas: dict[int, str] = field(default_factory=dict)
    channels: dict[int, tuple[str, int]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    first: int | None = None
    last: int = 0
    meta: dict[str, str] = field(default_factory=dict)
    layout: str = ""

    def define(self, kind: int, body: bytes | memoryview) -> None:
        """Note a schema or a channel."""
        reader = records.Reader(body)
        number = reader.number(2)
        if kind == records.SCHEMA:
            self.schemas[number] = reader.text()
        elif kind == records.CHANNEL:
            schema = reader.number(2)
            self.channels[number] = (reader.text(), schema)

    def message(self, body: bytes | memoryview) -> None:
        """Count a message."""
        channel, _, time = struct.unpack_from("<HIQ", body)
        self.counts[channel] = self.counts.get(channel, 0) + 1
        self.first = time if self.first is None else min(time, self.first)
        self.last = max(time, self.last)

    def entries(self) -> tuple[Entry, ...]:
        """Return the topics by name."""
        found: dict[tuple[str, str], int] = {}
        for number, (topic, schema) in self.channels.items():
            key = (topic, self.schemas.get(schema, ""))
            found[key] = found.get(key, 0) + self.counts.get(number, 0)
        return tuple(Entry(name, kind, count) for (name, kind), count in sorted(found.items()))


def _mcap(path: Path) -> Info:
    """Return what an MCAP file holds, from its summary, else by reading all of it."""
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
        _, start = profile(file, path, size)
        contents = _Contents()
        tail = records.PREFIX.size + records.FOOTER_BODY.size + len(records.MAGIC)
        file.seek(max(start, size - tail))
        ending = file.read(tail)
        if len(ending) < tail or not ending.endswith(records.MAGIC) or ending[0] != records.FOOTER:
            raise sources.cut_off(path)
        try:
            summary = records.FOOTER_BODY.unpack_from(ending, records.PREFIX.size)[0]
            if summary:
                _summary(file, summary, size - tail, contents)
            else:
                _scan(file, start, size - tail, contents)
        except (records.DamagedError, struct.error, ValueError, OverflowError, MemoryError) as error:
            raise SinkError(
                f"the recording is damaged: {error}",
                where=Where(str(path)),
                remedy=outputs.recovery_remedy(path),
            ) from error
    last = None if contents.first is None else contents.last
    return Info(
        str(path), "mcap", size, contents.first, last, contents.entries(), contents.meta, notes_about(contents.layout)
    )


def _summary(file: BinaryIO, start: int, end: int, contents: _Contents) -> None:
    """Read the summary of a file, and the metadata records that it points to."""
    places = []
    for raw in records.walk(file, start, end):
        contents.define(raw.kind, raw.body)
        if raw.kind == records.STATISTICS:
            reader = records.Reader(raw.body)
            total = reader.number(8)
            reader.take(2 + 4 + 4 + 4 + 4)
            first, contents.last = reader.number(8), reader.number(8)
            contents.first = first if total else None
            table = records.Reader(reader.take(reader.number(4)))
            while table.at < len(table.body):
                channel = table.number(2)
                contents.counts[channel] = table.number(8)
        elif raw.kind == records.METADATA_INDEX:
            places.append(struct.unpack_from("<QQ", raw.body))
    for offset, length in places:
        if offset + length > end:
            raise records.DamagedError("its index points outside the file")
        for raw in records.walk(file, offset, offset + length):
            _metadata(raw, contents)


def _metadata(raw: records.Raw, contents: _Contents) -> None:
    """Note our own metadata records."""
    if raw.kind == records.METADATA:
        reader = records.Reader(raw.body)
        name = reader.text()
        if name == "navsense":
            contents.meta.update(reader.mapping())
        elif name == OUR_WORLD:
            contents.layout = reader.mapping().get(LAYOUT, "")


def _scan(file: BinaryIO, start: int, end: int, contents: _Contents) -> None:
    """Read all records of a file without a summary."""
    for raw in records.walk(file, start, end):
        _metadata(raw, contents)
        parts = [(raw.kind, raw.offset, memoryview(raw.body))]
        if raw.kind == records.CHUNK:
            parts = list(records.inner(records.unpack(records.parse_chunk(raw.body))))
        for kind, _, body in parts:
            if kind == records.MESSAGE:
                contents.message(body)
            else:
                contents.define(kind, body)


OLD_BAG = "ROS 1 bag"
EUROC = "EuRoC"


def _ros1(path: Path) -> Info:
    """Return what a bag of ROS 1 holds, from its index."""
    from rosbags.rosbag1 import Reader

    opened(path).close()
    remedy = outputs.recovery_remedy(path)
    with damaged(path, remedy), bounded_rosbags(), Reader(path) as reader:
        return _of_bag(path, OLD_BAG, path.stat().st_size, reader, said_in(reader))


def _ros2(path: Path) -> Info:
    """Return what a bag of ROS 2 holds, from its metadata."""
    from rosbags.rosbag2 import Reader

    if not path.exists():
        path = storage_path(path) if (storage_path(path) / METADATA).is_file() else path
    elif path.suffix == ".db3" and path.stem == path.absolute().parent.name and (path.parent / METADATA).is_file():
        path = path.parent
    if not path.is_dir():
        opened(path).close()
    inputs.check_bag(path, BAG)
    with damaged(path), bounded_rosbags(), Reader(path) as reader:
        size = sum(part.stat().st_size for part in path.iterdir()) if path.is_dir() else path.stat().st_size
        said = reader.storage.metadata.custom or _inside(path)
        return _of_bag(path, "ROS 2 bag", size, reader, said)


def _inside(path: Path) -> Mapping[str, str]:
    """Return what the files of a bag's folder say of themselves."""
    with sources.opened(path) as source:
        return source.about


def _of_bag(path: Path, form: str, size: int, reader: Any, said: Mapping[str, Any]) -> Info:
    """Return what an open reader of rosbags tells, and what the bag says of itself."""
    counts: dict[tuple[str, str], int] = {}
    for connection in reader.connections:
        if form == OLD_BAG and is_about(connection):
            continue
        key = (connection.topic, connection.msgtype)
        counts[key] = counts.get(key, 0) + connection.msgcount
    entries = tuple(Entry(topic, kind, count) for (topic, kind), count in sorted(counts.items()))
    first, last = (reader.start_time, reader.end_time - 1) if reader.message_count else (None, None)
    meta = {key: str(said[key]) for key in META if key in said}
    return Info(str(path), form, size, first, last, entries, meta, notes_about(said.get(LAYOUT)))


def _device(path: Path) -> Info:
    """Return what a device's log holds; all of it is read."""
    with opened(path) as file:
        data = file.read()
    try:
        log = look(suffix_of(path), data)
    except SinkError as error:
        error.where = Where(str(path))
        raise
    meta = {"coordinates": ", ".join(log.coordinates)} if log.coordinates else {}
    meta |= {"skipped": log.skipped} if log.skipped else {}
    entries = tuple(Entry(*entry) for entry in log.entries)
    first, last = (int(log.stamps.min()), int(log.stamps.max())) if log.stamps.size else (None, None)
    return Info(str(path), FORMATS[suffix_of(path)].name, len(data), first, last, entries, meta)


META = ("world", "seed", "epoch", "runs", "version", "ros", "duration_asked", "faults")
"""What `info` says of the metadata of an archive, a table or a bag, in order."""


def _npz(path: Path) -> Info:
    """Return what a NumPy archive holds; only the arrays' heads and the times are read."""
    with archive_of(path) as archive:
        meta = meta_of(archive)
        entries, spans = [], [np.empty(0)]
        named = [(name, name, str(head["type"])) for name, head in meta["sensors"].items()]
        named += [(f"truth/{name}",) * 2 + ("truth",) for name in meta["links"]]
        named += [("current",) * 3] if meta.get("current") else []
        for key, name, kind in named:
            time = time_of(archive, key)
            entries.append(Entry(name, kind, int(time.size)))
            spans += [time[:1], time[-1:]]
        times = nanoseconds(meta["epoch"], np.concatenate(spans))
    return _of(path, "npz", times, tuple(entries), meta)


def _parquet(path: Path) -> Info:
    """Return what a Parquet table holds; only what its rows are of, and their times, is read."""
    with parquet_read.table_of(path) as table:
        meta = parquet_read.meta_of(table)
        counts, span = parquet_read.counted(table)
        times = nanoseconds(meta["epoch"], span)
        entries = [Entry(n, str(head["type"]), counts.get(("reading", n), 0)) for n, head in meta["sensors"].items()]
        entries += [Entry(f"truth/{name}", "truth", counts.get(("truth", name), 0)) for name in meta["links"]]
        flow = meta.get("current")
        entries += [Entry("current", "current", counts.get(("current", flow["topic"]), 0))] if flow else []
    return _of(path, "parquet", times, tuple(entries), meta)


def _tables(path: Path) -> Info:
    """Return what a folder of CSV tables holds, ours or EuRoC's; all of it is read."""
    folder = path if path.is_dir() else path.with_suffix("")
    loaded = load(path)
    entries = [Entry(name, reading.type, int(reading.time.size)) for name, reading in loaded.items()]
    entries += [Entry(f"truth/{name}", "truth", int(part.time.size)) for name, part in loaded.truth.items()]
    entries += [Entry("current", "current", int(loaded.current.time.size))] if loaded.current else []
    times = [one.time for one in loaded.values()] + [one.time for one in loaded.truth.values()]
    times += [loaded.current.time] if loaded.current else []
    spans = [np.empty(0), *(time[[0, -1]] for time in times if time.size)]
    form, times_ns = EUROC if euroc.root_of(folder) else "csv", nanoseconds(loaded.meta["epoch"], np.concatenate(spans))
    said = loaded.meta if (folder / tables.ABOUT).is_file() else {}
    found = _of(folder, form, times_ns, tuple(entries), said)
    return replace(found, size=sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()))


def _of(path: Path, form: str, times: IntArray, entries: tuple[Entry, ...], meta: Mapping[str, Any]) -> Info:
    """Return what is known of an archive or a table."""
    said = {key: _said(meta[key]) for key in META if meta.get(key) is not None}
    first, last = (int(times.min()), int(times.max())) if times.size else (None, None)
    return Info(str(path), form, path.stat().st_size, first, last, entries, said, notes_about(meta.get(LAYOUT)))


def _said(value: object) -> str:
    """Return a value of the metadata as text, lists as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
