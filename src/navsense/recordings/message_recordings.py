"""Recordings of messages of any program (MCAP files, ROS 1 and ROS 2 bags): how they are opened, and their world."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from navsense.core import inputs
from navsense.core.errors import DamagedError, NavsenseError, RecordingError, Where, describe_damage
from navsense.recordings.base import find_damaged_file_remedy, make_os_error, require_format
from navsense.recordings.channels import IndexedReader, MessageReader
from navsense.recordings.format import find_format_of_recording
from navsense.recordings.info import WORLD_JSON_KEY
from navsense.recordings.topic_names import TopicNames
from navsense.recordings.world_json import world_from_json


def is_message_recording(path: Path) -> bool:
    """Return True if a path is read as a recording of messages."""
    recording_format = find_format_of_recording(path)
    return recording_format is not None and recording_format.open_messages is not None


@contextmanager
def open_messages(path: Path) -> Iterator[IndexedReader]:
    """Yield a reader of a recording of messages.

    The reader is that of the format: `Format.open_messages`, for example `mcap.reader.open_mcap` (`message_formats`).
    Raises `RecordingError` for another file, a truncated or damaged recording, and a file that cannot be read.
    """
    where = Where(str(path))
    try:
        recording_format = require_format(path)
        if recording_format.open_messages is None:
            raise RecordingError(f"a recording in {recording_format.name} contains no messages", where=where)
        with recording_format.open_messages(path) as reader:
            yield reader
    except NavsenseError:
        raise
    except (DamagedError, struct.error) as error:
        remedy = find_damaged_file_remedy(path)
        raise RecordingError(
            f"the recording is damaged: {describe_damage(error)}", where=where, remedy=remedy
        ) from error
    except OSError as error:
        if error.strerror:
            raise make_os_error(path, error, "read") from error
        raise RecordingError(f"cannot be read: {error}", where=where) from error


def parse_stored_world(reader: MessageReader) -> Mapping[str, Any] | None:
    """Return the JSON of the world in a recording of navsense, None without one."""
    text = reader.metadata.get(WORLD_JSON_KEY)
    if not text:
        return None
    try:
        world = inputs.parse_json(text)
    except ValueError as error:
        raise RecordingError(
            f"the recording is damaged: its world cannot be read: {error}", where=reader.where
        ) from error
    return world if isinstance(world, dict) else None


def read_stored_topics(reader: MessageReader) -> TopicNames:
    """Return the topics that a recording of navsense stores with its world, none for other recordings.

    Raises `DamagedError` and `RecordingError` for a damaged world.
    """
    data = parse_stored_world(reader)
    recorded_world = None if data is None else world_from_json(data)
    return (recorded_world and recorded_world.topics) or TopicNames({})
