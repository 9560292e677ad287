"""What a recording holds, without reading its messages where the file says it itself."""

from __future__ import annotations

import math
import os
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from navsense.errors import SinkError, Where
from navsense.sinks import records
from navsense.sinks.base import os_error
from navsense.sinks.load import meta_of
from navsense.sinks.recover import profile


@dataclass(frozen=True)
class Entry:
    """One topic or array: name, message type (or element type and shape), number of messages (or rows)."""

    name: str
    type: str
    count: int


@dataclass(frozen=True)
class Info:
    """What a recording holds. `start` and `end` are s since the epoch of its stamps, NaN where there is no message."""

    path: str
    format: str
    size: int
    start: float
    end: float
    entries: tuple[Entry, ...]
    meta: Mapping[str, str] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """Return the whole in one line."""
        count = sum(entry.count for entry in self.entries)
        noun = "messages" if self.format == "mcap" else "rows"
        span = "" if math.isnan(self.start) else f" from {self.start:.9f} s to {self.end:.9f} s"
        made = "".join(f", {key} {value}" for key, value in self.meta.items())
        return f"{self.path}: {self.format}, {self.size} bytes, {count} {noun}{span}{made}"


def info(path: str | os.PathLike[str]) -> Info:
    """Return what a `.mcap` or `.npz` recording holds. Raise `SinkError` where it is none, or was cut off."""
    path = Path(path)
    readers = {".mcap": _mcap, ".npz": _npz}
    reader = readers.get(path.suffix.lower())
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
    with path.open("rb") as file:
        size = file.seek(0, 2)
        _, start = profile(file, path, size)
        contents = _Contents()
        tail = records.PREFIX.size + records.FOOTER_BODY.size + len(records.MAGIC)
        file.seek(max(start, size - tail))
        ending = file.read(tail)
        if len(ending) < tail or not ending.endswith(records.MAGIC) or ending[0] != records.FOOTER:
            raise SinkError(
                "the recording was cut off",
                where=Where(str(path)),
                remedy=f"save what it holds with: navsense recover {path}",
            )
        try:
            summary = records.FOOTER_BODY.unpack_from(ending, records.PREFIX.size)[0]
            if summary:
                _summary(file, summary, size - tail, contents)
            else:
                _scan(file, start, size - tail, contents)
        except (records.DamagedError, struct.error, ValueError) as error:
            raise SinkError(
                f"the recording is damaged: {error}",
                where=Where(str(path)),
                remedy=f"save what it holds with: navsense recover {path}",
            ) from error
    empty = contents.first is None
    first = math.nan if contents.first is None else contents.first / 1e9
    return Info(
        str(path), "mcap", size, first, math.nan if empty else contents.last / 1e9, contents.entries(), contents.meta
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
        for raw in records.walk(file, offset, offset + length):
            _metadata(raw, contents)


def _metadata(raw: records.Raw, contents: _Contents) -> None:
    """Note our own metadata record."""
    if raw.kind == records.METADATA:
        reader = records.Reader(raw.body)
        if reader.text() == "navsense":
            contents.meta.update(reader.mapping())


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


def _npz(path: Path) -> Info:
    """Return what a NumPy archive holds; only the arrays' heads and the times are read."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            meta = meta_of(archive)
            entries, spans = [], []
            for name, head in meta["sensors"].items():
                time = archive[f"{name}/time"]
                entries.append(Entry(name, head["type"], int(time.size)))
                spans += [time[:1], time[-1:]]
            for name in meta["links"]:
                time = archive[f"truth/{name}/time"]
                entries.append(Entry(f"truth/{name}", "truth", int(time.size)))
                spans += [time[:1], time[-1:]]
            times = np.concatenate(spans) if spans else np.empty(0)
            epoch = float(meta["epoch"])
            keys = ("world", "seed", "epoch", "duration", "version", "runs")
            return Info(
                str(path),
                "npz",
                path.stat().st_size,
                epoch + float(times.min()) if times.size else math.nan,
                epoch + float(times.max()) if times.size else math.nan,
                tuple(entries),
                {key: str(meta[key]) for key in keys if meta.get(key) is not None},
            )
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise SinkError(f"is no recording of navsense: {error}", where=Where(str(path))) from error
