"""Magnetometers and attitudes in ROS bags of anybody: `.mcap`, `.bag`, `.db3`, or the folder of a ROS 2 bag.

    rotation_ws(t) = rotation_wb(t) rotation_bs

`rotation_wb` comes from an attitude's topic, between its messages at the readings' stamps; `rotation_bs`, from the
sensor's frame to the frame that the attitude is of, from `/tf_static`. Quaternions are x y z w in messages (REP 103:
coordinates of the child frame to those of the header's), fields in tesla (`sensor_msgs/msg/MagneticField`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from navsense.calibration import _attitude
from navsense.core.errors import CalibrationError, RecordingError, Where
from navsense.core.typing import FloatArray, IntArray, Quaternions, Times, Vectors
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.messages.cdr import read_quaternions, read_stamps
from navsense.recordings.channels import MessageReader
from navsense.recordings.message_reader import open_messages
from navsense.recordings.quantities import (
    ATTITUDE_TYPES,
    FIELD_TYPES,
    ODOMETRY,
    QUANTITIES,
    TopicValues,
    decode_topic,
    read_values,
)

SUFFIXES = (".mcap", ".bag", ".db3")
"""Of bags; a ROS 2 bag is also a folder that holds `metadata.yaml`."""

MAGNETIC = "sensor_msgs/msg/MagneticField"
IMU = "sensor_msgs/msg/Imu"
TRANSFORM_TYPES = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")
TRUTH = "/truth/"
"""Prefix of the topics of a link's truth in recordings of navsense."""


@dataclass(frozen=True)
class Topic:
    """One topic of a bag: name and message type."""

    name: str
    type: str


@dataclass(eq=False)
class Edge:
    """A frame in its parent: stamps (ns) and rotations w x y z of the child's coordinates to the parent's."""

    parent: str
    fixed: bool
    stamp: list[int] = field(default_factory=list)
    rotation: list[FloatArray] = field(default_factory=list)

    def quaternions(self, where: Where) -> Quaternions:
        """Return the rotations (n, 4), w x y z, of unit length, NaN for zeros."""
        return unit(np.array(self.rotation), f"transform to {self.parent}", where)


def list_topics(bag: MessageReader) -> list[Topic]:
    """Return the topics in order of name."""
    return [Topic(*one) for one in sorted({(channel.topic, channel.type) for channel in bag.channels})]


def is_bag(path: Path) -> bool:
    """Return whether a path is read as a bag."""
    return path.suffix.lower() in SUFFIXES or path.is_dir()


@contextmanager
def open_bag(path: Path) -> Iterator[MessageReader]:
    """Yield a reader of a bag. Raises `CalibrationError` for a file that is not a bag, is damaged or cannot be read."""
    try:
        with open_messages(path) as reader:
            yield reader
    except RecordingError as error:
        where = error.where or Where(str(path))
        raise CalibrationError(
            error.what, error.value, allowed=error.allowed, where=where, remedy=error.remedy
        ) from error


def unit(quaternions: Quaternions, what: str, where: Where) -> Quaternions:
    """Return quaternions (n, 4) at unit length, NaN where one is NaN or, as before a filter has started, zeros.

    Raises `CalibrationError` where one is of another length, or all are none.
    """
    length = np.sqrt((quaternions**2).sum(axis=1))
    none = np.isnan(length) | ~quaternions.any(axis=1)
    bad = ~none & ~((length > 0.5) & (length < 2.0))
    if none.all():
        bad = none
    if bad.any():
        row = int(np.argmax(bad))
        raise CalibrationError(
            f"orientation of row {row} of the {what}",
            quaternions[row].tolist(),
            where=where,
            allowed="must be a quaternion of unit length",
            remedy="name another --attitude, or none",
        )
    return np.asarray(quaternions / np.where(none, math.nan, length)[:, None])


def left_out(rotation: Quaternions, what: str) -> tuple[str, ...]:
    """Return the note on attitudes (n, 4) of which some are NaN, none where all are attitudes."""
    count = rotation.shape[0] - int(np.isfinite(rotation).all(axis=1).sum())
    note = f"{count} of {rotation.shape[0]} attitudes of {what} are zero or no number and are left out"
    return (note,) if count else ()


def read_series(bag: MessageReader, topic: Topic, path: str, axes: str) -> TopicValues:
    """Return the values of a topic. A message without a stamp, or with stamp 0, gets its log time."""
    found = read_values(bag, topic.name, topic.type, path, axes)
    stamp = np.where(found.stamp == 0, found.log_time, found.stamp)
    return replace(found, stamp=stamp, frame=found.frame.lstrip("/"))


def pick(
    bag: MessageReader, name: str | None, kinds: Sequence[str], what: str, option: str, more: Sequence[str] = ()
) -> Topic:
    """Return the topic of that name, whole or its end, or the only one of these types.

    Raises `CalibrationError` otherwise, with what there is, and `more` that may be named.
    """
    found = [topic for topic in list_topics(bag) if topic.type in kinds]
    if name is None:
        found = [t for t in found if not t.name.endswith(("/ideal", "/bias"))] if len(found) > 1 else found
        plain = [topic for topic in found if topic.type == kinds[0]]
        found = plain or found
        if len(found) == 1:
            return found[0]
        listed = ", ".join(topic.name for topic in found)
        if found:
            remedy = f"name one with {option}, as {option} {found[0].name}"
            raise CalibrationError(f"several {what}s: {listed}", where=bag.where, remedy=remedy)
        allowed = f"must hold {' or '.join(kinds)}; it holds {kinds_of(bag)}"
        raise CalibrationError(f"no {what} in this bag", where=bag.where, allowed=allowed)
    whole = [topic for topic in found if topic.name.strip("/") == name.strip("/")]
    ending = [topic for topic in found if topic.name.endswith(f"/{name}")]
    if whole or len(ending) == 1:
        return (whole or ending)[0]
    others = {topic.name.strip("/"): topic.type for topic in list_topics(bag)}
    kind = others.get(name.strip("/"))
    is_other = f"is {kind}; " if kind else ""
    names = [topic.name for topic in found] + list(more)
    allowed = f"{is_other}must be one of {', '.join(names) or f'none: no {what} here'}"
    raise CalibrationError(option, name, where=bag.where, allowed=allowed)


def kinds_of(bag: MessageReader) -> str:
    """Return the types of a bag's messages in a line."""
    return ", ".join(sorted({topic.type for topic in list_topics(bag)})) or "nothing"


def edges_of(bag: MessageReader) -> dict[str, Edge]:
    """Return the edge to each frame of the transforms, by the name of the frame."""
    edges: dict[str, Edge] = {}
    for topic in list_topics(bag):
        if topic.type not in TRANSFORM_TYPES:
            continue
        fixed = topic.name.endswith("tf_static")
        found: list[tuple[int, int, str, str, int, FloatArray]] = []
        for part in decode_topic(bag, topic.name, topic.type):
            for i in range(part.shape.lengths.get("transforms", 0)):
                path = f"transforms.{i}"
                child, parent = (
                    part.shape.strings[f"{path}.{name}"].lstrip("/") for name in ("child_frame_id", "header.frame_id")
                )
                stamps = read_stamps(part.rows, f"{path}.header.stamp").tolist()
                rotations = read_quaternions(part.rows, f"{path}.transform.rotation")
                found += [
                    (number, i, child, parent, stamp, rotation)
                    for number, stamp, rotation in zip(part.number.tolist(), stamps, rotations, strict=True)
                ]
        for _, _, child, parent, stamp, rotation in sorted(found, key=lambda one: one[:2]):
            edge = edges.get(child)
            if edge is None or edge.parent != parent:
                edge = edges[child] = Edge(parent, fixed)
            if fixed:
                edge.stamp.clear()
                edge.rotation.clear()
            edge.stamp.append(stamp)
            edge.rotation.append(rotation)
    return edges


def upwards(edges: dict[str, Edge], frame: str, *, fixed: bool) -> list[str]:
    """Return the frames from this one to its root, along transforms that do not move where `fixed`."""
    path = [frame]
    while (edge := edges.get(path[-1])) and edge.parent not in path and (edge.fixed or not fixed):
        path.append(edge.parent)
    return path


def fixed_rotation(edges: dict[str, Edge], body: str, sensor: str, where: Where) -> FloatArray | None:
    """Return rotation_bs (4,) from frames that do not move against each other, None where they are not joined."""
    above = {frame: upwards(edges, frame, fixed=True) for frame in (body, sensor)}
    if above[body][-1] != above[sensor][-1]:
        return None
    turns = []
    for frame in (body, sensor):
        turn = np.array([1.0, 0.0, 0.0, 0.0])
        for child in above[frame][:-1]:
            turn = _attitude.multiply(edges[child].quaternions(where)[-1], turn)[0]
        turns.append(turn)
    return np.asarray(_attitude.multiply(_attitude.invert(turns[0]), turns[1])[0])


def by_transforms(
    edges: dict[str, Edge], sensor: str, world: str, stamp: IntArray, where: Where
) -> _attitude.AttitudeSeries:
    """Return rotation_ws of a frame by transforms up to `world`, or to the root."""
    path = upwards(edges, sensor, fixed=False)
    if world and world not in path:
        remedy = f"name one of {', '.join(path[1:]) or 'none'}"
        raise CalibrationError(f"frame above {sensor!r}", world, where=where, allowed="is none", remedy=remedy)
    path = path[: path.index(world) + 1] if world else path
    if len(path) < 2 or all(edges[frame].fixed for frame in path[:-1]):
        allowed = f"the frame of the readings is {sensor!r}; known are {', '.join(sorted(edges)) or 'none'}"
        raise CalibrationError("no transform moves the magnetometer", where=where, allowed=allowed)
    out, why = np.tile([1.0, 0.0, 0.0, 0.0], (stamp.size, 1)), np.full(stamp.size, _attitude.AVAILABLE)
    notes: tuple[str, ...] = ()
    for frame in path[:-1]:
        edge = edges[frame]
        turns = edge.quaternions(where)
        if edge.fixed:
            turns = turns[-1:]
        else:
            known = np.array(edge.stamp, dtype=np.int64)
            check_stamps(known, f"transforms of {frame!r}", where)
            notes += left_out(turns, f"{frame!r}")
            turns, here = _attitude.interpolate(seconds(known, stamp[0]), turns, seconds(stamp, stamp[0]))
            why = np.maximum(why, here)
        out = _attitude.multiply(turns, out)
    return _attitude.AttitudeSeries(out, why, f"/tf, {sensor} in {path[-1]}", notes)


def check_stamps(stamp: IntArray, what: str, where: Where) -> None:
    """Raise `CalibrationError` where several messages have all one stamp (ns)."""
    if stamp.size > 1 and stamp.min() == stamp.max():
        remedy = "mend the driver's stamps and record again, or calibrate with --attitude none"
        raise CalibrationError(
            f"stamps of {what}", f"{stamp.size} messages have one and the same", where=where, remedy=remedy
        )


def seconds(stamp: IntArray, since: int) -> Times:
    """Return stamps (n,) ns as seconds since one of them."""
    return (stamp - since) / NANOSECONDS_PER_SECOND


def declared_stddev(series: TopicValues) -> float:
    """Return the deviation that a field's covariance declares, its mean over the axes, 0 where it says nothing."""
    variances = series.covariance.reshape(3, 3).diagonal()
    return math.sqrt(float(variances.mean())) if np.isfinite(variances).all() and (variances > 0.0).all() else 0.0


def field_of(bag: MessageReader, name: str | None) -> tuple[Topic, TopicValues, Vectors]:
    """Return the magnetometer's topic, its messages, and their field (n, 3)."""
    topic = pick(bag, name, FIELD_TYPES, "magnetometer", "--topic")
    series = read_series(bag, topic, QUANTITIES[topic.type].field or "", "xyz")
    return topic, series, series.values


def attitude_of(
    bag: MessageReader, name: str, field: TopicValues, mounting: FloatArray | None
) -> _attitude.AttitudeSeries:
    """Return rotation_ws at the stamps of a field.

    `name` is a topic, `truth` for that of a recording of navsense, `/tf` or `/tf:FRAME` for transforms up to the root
    or to a frame. `mounting` (4,) is rotation_bs where the bag's transforms shall not say it.
    """
    check_stamps(field.stamp, "the magnetometer", bag.where)
    edges = edges_of(bag)
    topic_name, _, world = name.partition(":")
    if topic_name.strip("/") == "tf":
        found = by_transforms(edges, field.frame, world, field.stamp, bag.where)
        return found if mounting is None else replace(found, rotation=_attitude.multiply(found.rotation, mounting))
    if name == "truth":
        name = truth_topic(bag, edges, field.frame)
    moving = ("/tf",) if any(not edge.fixed for edge in edges.values()) else ()
    topic = pick(bag, name, ATTITUDE_TYPES, "attitude", "--attitude", moving)
    series = read_series(bag, topic, QUANTITIES[topic.type].orientation or "", "wxyz")
    if series.covariance[0] == -1.0:
        remedy = "name another --attitude, or none"
        raise CalibrationError(
            "its covariance says that it has no orientation", topic.name, where=bag.where, remedy=remedy
        )
    check_stamps(series.stamp, topic.name, bag.where)
    mount, origin, notes = find_mounting(edges, series.frame, field.frame, mounting, bag.where)
    known, since = unit(series.values, f"topic {topic.name}", bag.where), int(field.stamp[0])
    turns, why = _attitude.interpolate(seconds(series.stamp, since), known, seconds(field.stamp, since))
    origin = f"{topic.name} ({topic.type}), {origin}"
    turns = _attitude.multiply(turns, mount)
    return _attitude.AttitudeSeries(turns, why, origin, (*notes, *left_out(known, topic.name)))


def find_mounting(
    edges: dict[str, Edge], body: str, sensor: str, mounting: FloatArray | None, where: Where
) -> tuple[FloatArray, str, tuple[str, ...]]:
    """Return rotation_bs (4,), who says so, and the note that it is a guess. Raises `CalibrationError` without one."""
    if mounting is not None:
        return mounting, "mounting as given", ()
    aligned = np.array([1.0, 0.0, 0.0, 0.0])
    if body == sensor and sensor:
        return aligned, f"of the sensor's own frame {sensor!r}", ()
    if not body or not sensor:
        silent = [what for what, frame in (("the attitude's", body), ("the magnetometer's", sensor)) if not frame]
        note = f"mounting assumed: {' and '.join(silent)} messages do not name their frame; {_attitude.ASSUMED_ALIGNED}"
        return aligned, "mounting assumed, see below", (note,)
    found = fixed_rotation(edges, body, sensor, where)
    if found is None:
        raise CalibrationError(
            f"no fixed transform from {sensor!r}, the magnetometer's frame, to {body!r}, the attitude's",
            where=where,
            remedy="give it with --mounting ROLL PITCH YAW in degrees, 0 0 0 where they are aligned",
        )
    return found, f"{sensor} in {body} by /tf_static", ()


def truth_topic(bag: MessageReader, edges: dict[str, Edge], sensor: str) -> str:
    """Return the topic of the true pose of the link that carries the sensor, in a recording of navsense."""
    named = [t for t in list_topics(bag) if t.name.startswith(TRUTH) and t.type == ODOMETRY]
    for topic in named:
        first = next(decode_topic(bag, topic.name, topic.type), None)
        frame = first.shape.strings["child_frame_id"] if first is not None else ""
        if fixed_rotation(edges, frame, sensor, bag.where) is not None:
            return topic.name
    remedy = "name a topic: --attitude /odom"
    raise CalibrationError("no truth of the magnetometer's link in this bag", where=bag.where, remedy=remedy)
