"""Logs of joint positions: CSV, or a recorded topic of `sensor_msgs/JointState`.

    FILE    FILE:TOPIC    FILE?topic=TOPIC

CSV has the header `time,JOINT,...`: s, and rad or m for each joint, by any unambiguous ending of its name. A column can
have its unit in the header, as `elbow_deg`. A topic is required if a recording has several topics of joints. Its times
are the stamps; the log times if no message has one. The last of several messages of one time counts.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from navsense.core.errors import MotionError, RecordingError, Where
from navsense.core.names import resolve_name
from navsense.core.typing import AnyArray, FloatArray
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.motion.joints import JointTrack, read_joint_csv
from navsense.recordings import message_recordings
from navsense.recordings.channels import MessageReader
from navsense.recordings.columns import read_stamp_field
from navsense.recordings.format import find_format_of_recording
from navsense.recordings.quantities import decode_topic
from navsense.recordings.recorded_motion import MotionQuery, sort_stamps, split_path

JOINT_STATE = "sensor_msgs/msg/JointState"


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
        return read_joint_csv(str(file) if not topic else text)
    except RecordingError as error:
        place = error.where or Where(str(file))
        raise MotionError(error.what, error.value, allowed=error.allowed, where=place, remedy=error.remedy) from error
    except MotionError as error:
        error.where = error.where or Where(str(file))
        raise


def _read_messages(reader: MessageReader, topic: str, file: Path) -> dict[str, JointTrack]:
    """Return the tracks of the joints in the messages of a topic."""
    channels = {channel.topic: channel for channel in reader.channels if channel.type == JOINT_STATE and channel.is_ros}
    where = Where(str(file))
    if topic:
        topic = resolve_name(topic, channels, "joint states", where=where, error=MotionError, separator="/")
    elif len(channels) != 1:
        what = f"{len(channels) or 'no'} topics of {JOINT_STATE}"
        remedy = f"write {file}:{next(iter(channels))}" if channels else ""
        raise MotionError(
            what, allowed=f"must be one of {', '.join(channels)}" * bool(channels), where=where, remedy=remedy
        )
    else:
        topic = next(iter(channels))
    times: dict[str, list[AnyArray]] = {}
    log_times: dict[str, list[AnyArray]] = {}
    values: dict[str, list[FloatArray]] = {}
    for part in decode_topic(reader, topic, JOINT_STATE):
        stamp = read_stamp_field(part.rows)
        for index in range(min(part.shape.lengths.get("name", 0), part.shape.lengths.get("position", 0))):
            joint = part.shape.strings[f"name.{index}"]
            times.setdefault(joint, []).append(np.broadcast_to(stamp, part.log_time.shape))
            log_times.setdefault(joint, []).append(part.log_time)
            values.setdefault(joint, []).append(np.asarray(part.rows["position"][:, index], dtype=np.float64))
    if not times:
        raise MotionError(f"topic {topic} without positions of joints", where=where)
    has_stamps = any(part.any() for parts in times.values() for part in parts)
    sources = times if has_stamps else log_times
    joined = {joint: np.concatenate(parts).astype(np.int64) for joint, parts in sources.items()}
    start = max(int(stamps.min()) for stamps in joined.values())
    tracks = {}
    for joint, stamps in joined.items():
        order, is_last = sort_stamps(stamps)
        time = (stamps[order][is_last] - start) / NANOSECONDS_PER_SECOND
        try:
            tracks[joint] = JointTrack(time, np.concatenate(values[joint])[order][is_last], where=where)
        except MotionError as error:
            what = error.what.replace("a joint", f"joint {joint} in {topic}")
            raise MotionError(what, error.value, allowed=error.allowed, where=where, remedy=error.remedy) from error
    return tracks
