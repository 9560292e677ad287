"""Velocities of a topic of a ROS bag."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from navsense import inputs
from navsense.atomic import recovery_remedy
from navsense.errors import FieldError, NavsenseError, Where
from navsense.recordings.rosbag.limits import limit_rosbags
from navsense.typing import FloatArray, Vectors

_FILE_KIND = inputs.FileKind("recording", FieldError, "must be a ROS bag that can be read")

_VELOCITY_GETTERS: dict[str, Callable[[Any], Any]] = {
    "geometry_msgs/msg/Vector3": lambda message: message,
    "geometry_msgs/msg/Vector3Stamped": lambda message: message.vector,
    "geometry_msgs/msg/Twist": lambda message: message.linear,
    "geometry_msgs/msg/TwistStamped": lambda message: message.twist.linear,
    "geometry_msgs/msg/TwistWithCovarianceStamped": lambda message: message.twist.twist.linear,
}
"""Message types that hold a velocity, and where."""


def read_velocities(name: str, topic: str | None, start: float | None) -> tuple[FloatArray, Vectors]:
    """Return instants (n,) s from `start` (s), else from the first, and velocities (n, 3) m/s of a topic.

    Without `topic` the bag must have one topic that holds a velocity. Raises `FieldError` for what cannot be read.
    """
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    where = Where(name)
    inputs.check_bag(Path(name), _FILE_KIND)
    try:
        with limit_rosbags(), AnyReader([Path(name)], default_typestore=get_typestore(Stores.LATEST)) as reader:
            return _collect_velocities(reader, topic, start, where)
    except NavsenseError:
        raise
    except Exception as cause:
        what, remedy = str(cause) or type(cause).__name__, recovery_remedy(Path(name))
        raise FieldError("recording", what, allowed=_FILE_KIND.allowed, where=where, remedy=remedy) from cause


def _collect_velocities(
    reader: Any, topic: str | None, start: float | None, where: Where
) -> tuple[FloatArray, Vectors]:
    types = {one.topic: one.msgtype for one in reader.connections}
    fitting = sorted(name for name, kind in types.items() if kind in _VELOCITY_GETTERS)
    if topic is None and len(fitting) == 1:
        topic = fitting[0]
    if topic not in fitting:
        shown = f"{topic} of type {types[topic]}" if topic in types else topic or "none"
        allowed = f"must be a topic of Twist or Vector3, which are {', '.join(fitting) or 'none'}"
        raise FieldError("topic of the current", shown, allowed=allowed, where=where, remedy="name one as topic")
    times, vectors = [], []
    pick, stamped = _VELOCITY_GETTERS[types[topic]], "Stamped" in types[topic]
    for connection, received, data in reader.messages([one for one in reader.connections if one.topic == topic]):
        message = reader.deserialize(data, connection.msgtype)
        stamp = message.header.stamp if stamped else None
        times.append(received if stamp is None else stamp.sec * 1_000_000_000 + stamp.nanosec)
        vector = pick(message)
        vectors.append((vector.x, vector.y, vector.z))
    if not times:
        raise FieldError("topic of the current", topic, allowed="must have one message at least", where=where)
    begin = times[0] if start is None else round(start * 1e9)
    return np.array([(time - begin) * 1e-9 for time in times]), np.array(vectors)
