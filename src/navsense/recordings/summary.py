"""Summary of a recording. Message counts come from the index if the file has one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from navsense.core.readings import Current, Reading, Truth, to_nanoseconds
from navsense.core.typing import IntArray
from navsense.recordings.base import make_os_error, require_format, to_path
from navsense.recordings.channels import ROS1
from navsense.recordings.dataset import Dataset
from navsense.recordings.format import get_storage_path
from navsense.recordings.info import DURATION_KEY, ROS_KEY, WORLD_JSON_KEY, RecordingSummary, SummaryEntry
from navsense.recordings.message_recordings import open_messages
from navsense.recordings.rosbag.reader import find_ros2_bag_folder
from navsense.recordings.world_json import list_notes


def read_summary(path: str | os.PathLike[str]) -> RecordingSummary:
    """Return the content of a recording of any format. Raises `RecordingError` for another or a truncated file.

    Accepted paths of a ROS 2 bag: the folder, the file in it, or the name given when recording. Accepted paths of a CSV
    or EuRoC folder: the folder, or the name given when recording.
    """
    path = to_path(path)
    recording_format = require_format(path)
    try:
        if recording_format.summarize is None:
            summary = summarize_dataset(path, recording_format.name, recording_format.read(path))
        else:
            summary = recording_format.summarize(path)
        return replace(summary, unit=recording_format.unit)
    except OSError as error:
        raise make_os_error(path, error, "read") from error


def summarize_dataset(
    path: Path, name: str, recording: Dataset, metadata: Mapping[str, Any] | None = None
) -> RecordingSummary:
    """Return the content of a recording in memory; `metadata` replaces its own, {} if another program wrote it."""
    storage = path if path.exists() else get_storage_path(path)
    rows_of_entry: dict[tuple[str, str], Reading | Truth | Current] = {
        (name, reading.type): reading for name, reading in recording.items()
    }
    rows_of_entry |= {(f"truth/{name}", "truth"): truth for name, truth in recording.truth.items()}
    rows_of_entry |= {("current", "current"): recording.current} if recording.current else {}
    entries = tuple(SummaryEntry(*key, int(rows.time.size)) for key, rows in rows_of_entry.items())
    spans = [np.empty(0), *(rows.time[[0, -1]] for rows in rows_of_entry.values() if rows.time.size)]
    times = to_nanoseconds(recording.metadata["epoch"], np.concatenate(spans))
    summary = make_summary(storage, name, times, entries, recording.metadata if metadata is None else metadata)
    if not storage.is_dir():
        return summary
    return replace(summary, size=sum(file.stat().st_size for file in storage.rglob("*") if file.is_file()))


def summarize_messages(path: Path) -> RecordingSummary:
    """Return the summary of a recording of messages, from its index if it has one."""
    name, path = require_format(path).name, find_ros2_bag_folder(path)
    with open_messages(path) as reader:
        counts = reader.count_messages()
        size = sum(part.stat().st_size for part in (path.iterdir() if path.is_dir() else (path,)))
        entries = tuple(SummaryEntry(*key, count) for key, count in sorted(counts.by_topic.items()))
        metadata = dict(reader.metadata)
        world = metadata.pop(WORLD_JSON_KEY, None)
        if ROS_KEY in metadata and {channel.encoding for channel in reader.channels} == {ROS1}:
            metadata[ROS_KEY] = NOETIC
        metadata = {key: metadata[key] for key in (*METADATA_KEYS, *metadata) if key in metadata}
        return RecordingSummary(str(path), name, size, counts.first, counts.last, entries, metadata, list_notes(world))


NOETIC = "noetic"
"""ROS distribution of a ROS 1 bag. Its metadata have the one of ROS 2 with the same definitions, humble."""

METADATA_KEYS = ("world", "seed", "epoch", "runs", "version", "ros", DURATION_KEY, "faults", "motions")
"""Metadata that `info` prints first, in this order; of an archive or a table it prints no other."""


def make_summary(
    path: Path, format_name: str, times: IntArray, entries: tuple[SummaryEntry, ...], meta: Mapping[str, Any]
) -> RecordingSummary:
    """Return the summary of an archive or a table."""
    texts = {key: _format_metadata_value(meta[key]) for key in METADATA_KEYS if meta.get(key) is not None}
    first, last = (int(times.min()), int(times.max())) if times.size else (None, None)
    return RecordingSummary(
        str(path), format_name, path.stat().st_size, first, last, entries, texts, list_notes(meta.get(WORLD_JSON_KEY))
    )


def _format_metadata_value(value: object) -> str:
    """Return a value of the metadata as text, lists as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
