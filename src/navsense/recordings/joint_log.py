"""Logs of joint positions: CSV, or a recorded topic of `sensor_msgs/JointState`.

    FILE    FILE:TOPIC    FILE?topic=TOPIC

CSV has the header `time,JOINT,...`: s, and rad or m for each joint, by any unambiguous ending of its name. A column can
have its unit in the header, as `elbow_deg`. A topic is required if a recording has several topics of joints. Its times
are the stamps; the log times if no message has one. The last of several messages of one time counts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from navsense.core.errors import MotionError, RecordingError, Where, convert_error
from navsense.core.names import resolve_name
from navsense.core.typing import FloatArray, IntArray
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.messages.schemas import DEFINITIONS
from navsense.motion.base import LogSource
from navsense.motion.joints import JointTrack, read_joint_csv
from navsense.recordings import message_recordings
from navsense.recordings.channels import MessageReader
from navsense.recordings.columns import format_definitions, read_stamp_field
from navsense.recordings.format import find_format_of_recording
from navsense.recordings.quantities import decode_topic
from navsense.recordings.recorded_motion import (
    LISTED_TOPICS,
    MotionQuery,
    make_definition_error,
    order_messages,
    split_path,
)

JOINT_STATE = "sensor_msgs/msg/JointState"

JOINT_STATE_DEFINITIONS: Mapping[str, str] = {
    JOINT_STATE: "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort",
    **{name: DEFINITIONS[name] for name in ("std_msgs/msg/Header", "builtin_interfaces/msg/Time")},
}
"""Message type -> its definition in all distributions of ROS, and those of its members."""


def load_joint_log(path: str | os.PathLike[str]) -> dict[str, JointTrack]:
    """Return the position of each joint in a log over time, by the name in the log.

    The log starts at t = 0 with its first row; with the first message that completes all joints.

    Raises `MotionError` with file and line for an unreadable file and for invalid rows.

    >>> rows = [[0.0, 0.0], [0.5, 0.1], [1.0, 0.4]]
    >>> np.savetxt("joints.csv", rows, delimiter=",", header="time,rotor_0_joint", comments="")
    >>> from navsense.recordings.joint_log import load_joint_log
    >>> load_joint_log("joints.csv")["rotor_0_joint"].end
    1.0
    """
    text = os.fspath(path)
    file, query, bandwidth = split_path(text)
    topic = query.topic
    if query != MotionQuery(topic) or bandwidth is not None:
        raise MotionError(f"query of {file}", text.partition("?")[2], allowed="must be topic=TOPIC for joints")
    try:
        if find_format_of_recording(file) is not None and message_recordings.is_message_recording(file):
            with message_recordings.open_messages(file) as reader:
                return _read_messages(reader, topic, file)
        _check_no_topic(file, topic)
        tracks = read_joint_csv(str(file) if not topic else text)
        return {joint: replace(track, source=LogSource(file.name)) for joint, track in tracks.items()}
    except RecordingError as error:
        raise convert_error(error, MotionError, Where(str(file))) from error
    except MotionError as error:
        error.where = error.where or Where(str(file))
        raise


def _check_no_topic(file: Path, topic: str) -> None:
    """Raise `MotionError` for a topic of a CSV log."""
    if topic and file.is_file():
        allowed = "selects a topic of a recording, but this file is a CSV log"
        raise MotionError(f"query of {file}", topic, allowed=allowed, remedy=f"write {file}")


def _read_messages(reader: MessageReader, topic: str, file: Path) -> dict[str, JointTrack]:
    """Return the tracks of the joints in the messages of a topic."""
    channels = {channel.topic: channel for channel in reader.channels if channel.type == JOINT_STATE and channel.is_ros}
    where = Where(str(file))
    if topic:
        topic = resolve_name(topic, channels, "joint states", where=where, error=MotionError, separator="/")
    elif len(channels) != 1:
        what = f"{len(channels) or 'no'} topics of {JOINT_STATE}"
        topics = ", ".join(f"{channel.topic} ({channel.type})" for channel in reader.channels[:LISTED_TOPICS])
        remedy = f"write {file}:{next(iter(channels))}" if channels else f"the recording has {topics or 'no topics'}"
        raise MotionError(
            what, allowed=f"must be one of {', '.join(channels)}" * bool(channels), where=where, remedy=remedy
        )
    else:
        topic = next(iter(channels))
    if format_definitions(JOINT_STATE, channels[topic].parse_type().definitions) != JOINT_STATE_DEFINITIONS:
        raise make_definition_error(channels[topic], file)
    stamps: dict[str, list[IntArray]] = {}
    log_times: dict[str, list[IntArray]] = {}
    values: dict[str, list[FloatArray]] = {}
    repeated: dict[str, int] = {}
    for part in decode_topic(reader, topic, JOINT_STATE):
        count = min(part.shape.lengths.get("name", 0), part.shape.lengths.get("position", 0))
        columns = {part.shape.strings[f"name.{index}"]: index for index in range(count)}
        names = [part.shape.strings[f"name.{index}"] for index in range(count)]
        for joint, index in columns.items():
            repeated[joint] = repeated.get(joint, 0) + (names.count(joint) - 1) * part.log_time.size
            stamps.setdefault(joint, []).append(np.broadcast_to(read_stamp_field(part.rows), part.log_time.shape))
            log_times.setdefault(joint, []).append(part.log_time.astype(np.int64))
            values.setdefault(joint, []).append(np.asarray(part.rows["position"][:, index], dtype=np.float64))
    if not stamps:
        raise MotionError(f"topic {topic} without positions of joints", where=where)
    has_stamps = any(part.any() for parts in stamps.values() for part in parts)
    orders = {}
    for joint, parts in (stamps if has_stamps else log_times).items():
        time, log_time = np.concatenate(parts), np.concatenate(log_times[joint])
        orders[joint] = order_messages(time, log_time, f"joint {joint} in {topic}")
    last_joint = max(orders, key=lambda joint: int(orders[joint].stamps[0]))
    start = orders[last_joint].stamps[0]
    log_start = orders[last_joint].make_start(os.path.realpath(file))
    source = LogSource(file.name, topic, start=log_start if has_stamps else replace(log_start, stamp=None))
    tracks = {}
    for joint, messages in orders.items():
        series = f"joint {joint} in {topic}"
        time = (messages.stamps - start) / NANOSECONDS_PER_SECOND
        if time[-1] < 0.0:
            what = f"positions of {series}"
            allowed = f"end {-time[-1]:g} s before those of joint {last_joint} begin; must overlap"
            raise MotionError(what, allowed=allowed, where=where, remedy="record both joints at the same time")
        notes = messages.notes
        if repeated[joint]:
            count = repeated[joint]
            notes = (*notes, f"{series}: of positions of one joint in a message, the last one counts: {count} not read")
        try:
            position = np.concatenate(values[joint])[messages.indices]
            tracks[joint] = JointTrack(time, position, where=where, source=source, notes=notes)
        except MotionError as error:
            what = error.what.replace("a joint", series)
            raise MotionError(what, error.value, allowed=error.allowed, where=where, remedy=error.remedy) from error
    return tracks
