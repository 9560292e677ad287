"""Motion from recordings: the true poses of a link, or the poses of a topic.

    FILE    FILE:LINK    FILE:TOPIC

A CSV or TUM file is a motion log. Other recordings give the truth of the only link that moves, or of the named link.
Recordings of messages also give the poses of a topic of `nav_msgs/Odometry`, `geometry_msgs/PoseStamped` or
`TransformStamped`, by name or if they have no truth. Poses are in the world frame of the topic.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from navsense import recordings
from navsense.core.errors import MotionError, RecordingError, Where
from navsense.core.names import resolve_name
from navsense.core.typing import FloatArray, IntArray
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.motion.replay import Replay, from_arrays
from navsense.motion.replay import load as load_log
from navsense.recordings import message_recordings, static_transforms
from navsense.recordings.channels import Channel, MessageReader
from navsense.recordings.columns import is_readable
from navsense.recordings.dataset import Dataset
from navsense.recordings.format import find_format_of_recording, get_storage_path, list_suffixes
from navsense.recordings.quantities import POSE_TYPES, QUANTITIES, list_members, read_values
from navsense.recordings.topic_names import TRUTH_PREFIX, format_topic_name


class Poses(NamedTuple):
    """Poses of a motion: times (n,) ns since the first pose, positions (n, 3) m and orientations (n, 4) w x y z."""

    time: IntArray
    position: FloatArray
    orientation: FloatArray


def load_motion(path: str | os.PathLike[str], *, bandwidth: float | None = None) -> Replay:
    """Return the motion of a log or a recording; `bandwidth` (Hz) as in `motion.replay.from_arrays`.

    Raises `MotionError` if the file cannot be read, or if several series of poses match.
    """
    text = os.fspath(path)
    if not text:
        raise MotionError("motion log", "has an empty name", remedy="name a file or a recording")
    suffixes = "|".join(re.escape(suffix) for suffix in (*list_suffixes(), "/"))
    match = None if Path(text).exists() else re.fullmatch(f"(.+?(?:{suffixes})):(.+)", text, re.IGNORECASE | re.DOTALL)
    file, name = (Path(match.group(1)), match.group(2)) if match else (Path(text), "")
    recording_format = find_format_of_recording(file)
    is_table = file.suffix.lower() == ".csv" and (file.is_file() or not get_storage_path(file).is_dir())
    if is_table or not (recording_format or file.is_dir()):
        return load_log(text, bandwidth=bandwidth)
    try:
        poses = (
            _read_messages(file, name)
            if message_recordings.is_message_recording(file)
            else _read_truth(recordings.open(file), file, name)
        )
        time = poses.time / NANOSECONDS_PER_SECOND
        return from_arrays(time, poses.position, poses.orientation, bandwidth=bandwidth)
    except RecordingError as error:
        place, remedy = error.where or Where(str(file)), error.remedy
        raise MotionError(error.what, error.value, allowed=error.allowed, where=place, remedy=remedy) from error
    except MotionError as error:
        error.where = error.where or Where(str(file))
        raise


def _select_name(names: Sequence[str], name: str, file: Path) -> str:
    """Return the name of a link or topic by any unambiguous ending, or the only one. Raises `MotionError` otherwise."""
    if len(names) == 1 and not name:
        return names[0]
    if names and name:
        separator = "/" if names[0].startswith("/") else "::"
        return resolve_name(name, names, "poses", where=Where(str(file)), error=MotionError, separator=separator)
    allowed_names = ", ".join(names) or "none"
    remedy = f"write {file}:{names[0]}" if names else ""
    what = "poses" if name else f"{len(names) or 'no'} poses that a motion could be"
    raise MotionError(
        what, name or None, allowed=f"must be one of {allowed_names}", where=Where(str(file)), remedy=remedy
    )


def _read_truth(recording: Dataset, file: Path, name: str) -> Poses:
    """Return the true poses of a link, by the name of the link or of its model."""
    moving = {
        model.canonical_link: model.name
        for model in recording.world.models
        if static_transforms.has_motion(model) and model.canonical_link in recording.truth
    }
    names = list(recording.truth) if name else list(moving)
    link = next((link for link, model in moving.items() if model == name), name)
    truth = recording.truth[_select_name(names, link, file)]
    time = np.rint((truth.time - truth.time[:1]) * NANOSECONDS_PER_SECOND).astype(np.int64)
    return Poses(time, truth.position, truth.orientation)


def _read_messages(file: Path, name: str) -> Poses:
    """Return the poses of a topic; a message without a stamp has its log time."""
    with message_recordings.open_messages(file) as reader:
        channel = _select_channel(reader, file, name)
        if not is_readable(channel):
            what = f"topic {channel.topic}: {channel.type} is defined otherwise than by ROS"
            raise MotionError(what, where=Where(str(file)))
        paths = QUANTITIES[channel.type]
        members = [*list_members(paths.position or "", "xyz"), *list_members(paths.orientation or "", "wxyz")]
        topic_values = read_values(reader, channel.topic, channel.type, members)
    time = np.where(topic_values.stamp == 0, topic_values.log_time, topic_values.stamp)
    return Poses(time - time[0], topic_values.values[:, :3], topic_values.values[:, 3:])


def _select_channel(reader: MessageReader, file: Path, name: str) -> Channel:
    """Return the topic with a name, or of the link with a name; without a name, the only one."""
    channels = {channel.topic: channel for channel in reader.channels if channel.is_ros and channel.type in POSE_TYPES}
    if name:
        stored = message_recordings.read_stored_topics(reader).list_truth_topics()
        links = {link: topic for link, topic in stored.items() if topic in channels}
        candidates = (name, TRUTH_PREFIX + format_topic_name(name), links.get(name, ""))
        endings = [topic for link, topic in links.items() if link.endswith(f"::{name}")]
        fallback = endings[0] if len(endings) == 1 else name
        topic = next((candidate for candidate in candidates if candidate in channels), fallback)
        return channels[_select_name(list(channels), topic, file)]
    moving = [
        topic
        for topic, channel in channels.items()
        if topic.startswith(TRUTH_PREFIX) and reader.is_navsense and not channel.latched
    ]
    return channels[_select_name(moving or list(channels), "", file)]
