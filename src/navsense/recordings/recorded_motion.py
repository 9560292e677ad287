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
from functools import partial
from pathlib import Path

import numpy as np

from navsense import recordings
from navsense.core.errors import MotionError, RecordingError, Where
from navsense.core.typing import AnyArray
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.messages.cdr import read_quaternions
from navsense.motion.replay import Replay, from_arrays
from navsense.motion.replay import load as load_log
from navsense.recordings import message_reader, static_transforms
from navsense.recordings.channels import Channel, MessageReader
from navsense.recordings.columns import Arrays, ColumnBatch, TopicBuffer, join_columns
from navsense.recordings.dataset import Dataset
from navsense.recordings.format import format_of_recording, list_suffixes, storage_path
from navsense.recordings.quantities import POSE_TYPES, QUANTITIES, MessageQuantities


def _extract_pose(rows: AnyArray, paths: MessageQuantities) -> Arrays:
    position, orientation = paths.position or "", paths.orientation or ""
    return {"position": rows[position], "orientation": read_quaternions(rows, orientation)}


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
    recording_format = format_of_recording(file)
    is_table = file.suffix.lower() == ".csv" and (file.is_file() or not storage_path(file).is_dir())
    if is_table or not (recording_format or file.is_dir()):
        return load_log(text, bandwidth=bandwidth)
    try:
        rows = (
            _read_messages(file, name)
            if message_reader.is_message_recording(file)
            else _read_truth(recordings.open(file), file, name)
        )
        time, turn = rows.stamp / NANOSECONDS_PER_SECOND, rows.arrays["orientation"]
        return from_arrays(time, rows.arrays["position"], turn, bandwidth=bandwidth)
    except RecordingError as error:
        place, remedy = error.where or Where(str(file)), error.remedy
        raise MotionError(error.what, error.value, allowed=error.allowed, where=place, remedy=remedy) from error
    except MotionError as error:
        error.where = error.where or Where(str(file))
        raise


def _select_name(names: Sequence[str], name: str, file: Path) -> str:
    """Return the name, or the only one of the names. Raises `MotionError` otherwise."""
    if name in names:
        return name
    if len(names) == 1 and not name:
        return names[0]
    shown = ", ".join(names) or "none"
    remedy = f"write {file}:{names[0]}" if names else ""
    what = "poses" if name else f"{len(names) or 'no'} poses that a motion could be"
    raise MotionError(what, name or None, allowed=f"must be one of {shown}", where=Where(str(file)), remedy=remedy)


def _read_truth(loaded: Dataset, file: Path, name: str) -> ColumnBatch:
    """Return the true poses of a link, by the name of the link or of its model."""
    world = loaded.make_info().world
    moving = {
        m.canonical_link: m.name
        for m in world.models
        if static_transforms.is_moving(m) and m.canonical_link in loaded.truth
    }
    names = list(moving) if not name else list(loaded.truth)
    link = next((link for link, model in moving.items() if model == name), name)
    part = loaded.truth[_select_name(names, link, file)]
    stamp = np.rint((part.time - part.time[:1]) * NANOSECONDS_PER_SECOND).astype(np.int64)
    return ColumnBatch(stamp, stamp, stamp, {"position": part.position, "orientation": part.orientation})


def _read_messages(file: Path, name: str) -> ColumnBatch:
    with message_reader.open_messages(file) as reader:
        channel = _select_channel(reader, file, name)
        buffer = TopicBuffer(channel, partial(_extract_pose, paths=QUANTITIES[channel.type]))
        if not buffer.is_known:
            what = f"topic {channel.topic}: {channel.type} is defined otherwise than by ROS"
            raise MotionError(what, where=Where(str(file)))
        for batches in reader.read_batches((channel.topic,)):
            for batch in batches:
                buffer.append(batch)
    if not buffer.count:
        raise MotionError("topic without messages", channel.topic, where=Where(str(file)))
    poses = join_columns(buffer.batches)
    poses.stamp = np.where(poses.stamp == 0, poses.log_time, poses.stamp)
    poses.stamp = poses.stamp - poses.stamp[0]
    return poses


def _select_channel(reader: MessageReader, file: Path, name: str) -> Channel:
    """Return the named topic, the truth of the only model, or the only topic of poses."""
    fitting = {one.topic: one for one in reader.channels if one.is_ros and one.type in POSE_TYPES}
    if name:
        topic = name if name in fitting else f"/truth/{name.replace('::', '/')}"
        return fitting[_select_name(list(fitting), topic if topic in fitting else name, file)]
    moving = [t for t, one in fitting.items() if t.startswith("/truth/") and reader.is_navsense and not one.latched]
    return fitting[_select_name(moving or list(fitting), "", file)]
