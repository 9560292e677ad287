"""Recordings of messages of any program: MCAP files, ROS 1 bags and ROS 2 bags."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from navsense.core import atomic, inputs
from navsense.core.errors import NavsenseError, RecordingError, Where
from navsense.recordings.base import open_for_reading, os_error
from navsense.recordings.channels import CompleteReader, MessageReader
from navsense.recordings.format import format_of_recording
from navsense.recordings.header import WORLD_KEY
from navsense.recordings.mcap import records
from navsense.recordings.mcap.reader import McapReader
from navsense.recordings.rosbag.reader import open_bag


def is_message_recording(path: Path) -> bool:
    """Return True if a path is read as a recording of messages."""
    found = format_of_recording(path)
    return found is not None and found.holds_messages


@contextmanager
def open_messages(path: Path) -> Iterator[CompleteReader]:
    """Yield a reader of a recording of messages.

    Raises `RecordingError` for another file, a truncated or damaged recording, and a file that cannot be read.
    """
    where = Where(str(path))
    try:
        if path.suffix.lower() == ".mcap" and not path.is_dir():
            with open_for_reading(path) as file:
                yield McapReader(path, file)
            return
        with open_bag(path) as reader:
            yield reader
    except NavsenseError:
        raise
    except (records.DamagedError, struct.error) as error:
        remedy = atomic.recovery_remedy(path)
        raise RecordingError(f"the recording is damaged: {error}", where=where, remedy=remedy) from error
    except OSError as error:
        if error.strerror:
            raise os_error(path, error, "read") from error
        raise RecordingError(f"is no bag that can be read: {error}", where=where) from error


def parse_stored_world(reader: MessageReader) -> Mapping[str, Any] | None:
    """Return the JSON of the world in a recording of navsense, None without one."""
    text = reader.metadata.get(WORLD_KEY)
    if not text:
        return None
    try:
        found = inputs.parse_json(text)
    except ValueError as error:
        raise RecordingError(
            f"the recording is damaged: its world cannot be read: {error}", where=reader.where
        ) from error
    return found if isinstance(found, dict) else None
