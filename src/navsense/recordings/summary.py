"""What a recording holds, without reading its messages where the file says it itself."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from navsense import inputs
from navsense.devices.encoders import FORMATS
from navsense.devices.logs import summarise_log
from navsense.errors import RecordingError, Where
from navsense.recordings import csv_tables, euroc, parquet_reader
from navsense.recordings.base import WORLD_KEY, open_for_reading, os_error, to_path
from navsense.recordings.dataset_reader import open_archive, open_recording, read_metadata, read_times
from navsense.recordings.device_writers import device_suffix
from navsense.recordings.message_reader import open_messages
from navsense.recordings.rosbag.reader import ros2_bag_folder
from navsense.recordings.rosbag.writer import BAG_METADATA_FILE
from navsense.recordings.world_json import notes_about
from navsense.series import to_nanoseconds
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
        noun = "rows" if self.format in ("npz", "parquet", "csv", EUROC) else "messages"
        noun = "records" if self.format in {form.name for form in FORMATS.values()} else noun
        span = ""
        if self.start is not None and self.end is not None:
            span = f" from {format_seconds(self.start)} s to {format_seconds(self.end)} s"
        made = "".join(f", {format_metadata_item(key, value)}" for key, value in self.metadata.items())
        return f"{self.path}: {self.format}, {self.size} bytes, {count} {noun}{span}{made}"


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
    """Return how many faults on purpose a recording lists; what is no list stays as it is."""
    try:
        faults = inputs.parse_json(value)
    except ValueError:
        faults = None
    if not isinstance(faults, list):
        return f"faults {value}"
    return f"{len(faults)} fault{'s' * (len(faults) != 1)} on purpose"


def read_summary(path: str | os.PathLike[str]) -> RecordingSummary:
    """Return what a recording of any format holds; raise `RecordingError` if it is none or was cut off.

    A bag of ROS 2 may be named by its folder, by the file in it, or as it was when it was recorded, from anywhere; a
    folder of CSV or EuRoC by itself, or as it was recorded.
    """
    path = to_path(path)
    readers = {
        ".mcap": _read_messages,
        ".npz": _read_npz,
        ".parquet": _read_parquet,
        ".bag": _read_messages,
        ".db3": _read_messages,
    }
    readers |= {".csv": _read_tables, ".euroc": _read_tables, **dict.fromkeys(FORMATS, _read_device_log)}
    suffix = device_suffix(path) or path.suffix.lower()
    reader = (
        _read_messages
        if (path / BAG_METADATA_FILE).is_file()
        else readers.get(suffix, _read_tables if path.is_dir() else None)
    )
    if reader is None:
        raise RecordingError(
            "no recording has this suffix",
            path.suffix or path.name,
            allowed="known are " + ", ".join(readers),
            where=Where(str(path)),
        )
    try:
        return reader(path)
    except OSError as error:
        raise os_error(path, error, "read") from error


ROS1_BAG, ROS2_BAG = "ROS 1 bag", "ROS 2 bag"
EUROC = "EuRoC"


def _read_messages(path: Path) -> RecordingSummary:
    """Return the summary of a recording of messages, from its index if it has one."""
    suffix = path.suffix.lower()
    form = suffix[1:] if suffix == ".mcap" else ROS1_BAG if suffix == ".bag" else ROS2_BAG
    path = ros2_bag_folder(path)
    form = ROS2_BAG if path.is_dir() else form
    with open_messages(path) as reader:
        counts = reader.count_messages()
        size = sum(part.stat().st_size for part in (path.iterdir() if path.is_dir() else (path,)))
        entries = tuple(SummaryEntry(*key, count) for key, count in sorted(counts.by_topic.items()))
        metadata = dict(reader.metadata)
        layout = metadata.pop(WORLD_KEY, None)
        keys = tuple(metadata) if form == "mcap" else METADATA_KEYS
        named = {key: metadata[key] for key in keys if key in metadata}
        return RecordingSummary(str(path), form, size, counts.first, counts.last, entries, named, notes_about(layout))


def _read_device_log(path: Path) -> RecordingSummary:
    """Return what a device's log holds; all of it is read."""
    with open_for_reading(path) as file:
        data = file.read()
    try:
        log = summarise_log(device_suffix(path), data)
    except RecordingError as error:
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
