"""Magnetometers and attitudes in ROS bags of anybody: `.mcap`, `.bag`, `.db3`, or the folder of a ROS 2 bag.

    rotation_ws(t) = rotation_wb(t) rotation_bs

`rotation_wb` comes from an attitude's topic, between its messages at the readings' stamps; `rotation_bs`, from the
sensor's frame to the frame that the attitude is of, from `/tf_static`. Quaternions are x y z w in messages (REP 103:
coordinates of the child frame to those of the header's), fields in tesla (`sensor_msgs/msg/MagneticField`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from navsense import inputs
from navsense.calibration import _attitude
from navsense.errors import CalibrationError, NavsenseError, Where
from navsense.inputs import resolve_folder
from navsense.outputs import recovery_remedy
from navsense.recordings.base import os_error
from navsense.rosbags_limits import limit_rosbags
from navsense.typing import FloatArray, IntArray, Quaternions, Times, Vectors

_BAG = inputs.FileKind("bag", CalibrationError, "must be a bag of ROS")

SECOND = 1_000_000_000
"""Nanoseconds in a second."""

SUFFIXES = (".mcap", ".bag", ".db3")
"""Of bags; a ROS 2 bag is also a folder that holds `metadata.yaml`."""

MAGNETIC = "sensor_msgs/msg/MagneticField"
IMU = "sensor_msgs/msg/Imu"
FIELDS: dict[str, Callable[[Any], Any]] = {
    MAGNETIC: lambda message: message.magnetic_field,
    "geometry_msgs/msg/Vector3Stamped": lambda message: message.vector,
}
"""Messages that hold a field, and where."""


def _unnamed(_message: Any) -> str:
    """Return the frame of a message that names none."""
    return ""


ATTITUDES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], str]]] = {
    IMU: (lambda m: m.orientation, lambda m: m.header.frame_id),
    "nav_msgs/msg/Odometry": (lambda m: m.pose.pose.orientation, lambda m: m.child_frame_id),
    "geometry_msgs/msg/PoseStamped": (lambda m: m.pose.orientation, _unnamed),
    "geometry_msgs/msg/PoseWithCovarianceStamped": (lambda m: m.pose.pose.orientation, _unnamed),
    "geometry_msgs/msg/QuaternionStamped": (lambda m: m.quaternion, _unnamed),
    "geometry_msgs/msg/TransformStamped": (lambda m: m.transform.rotation, lambda m: m.child_frame_id),
}
"""Messages that hold an attitude: where, and the name of the frame that it is of, empty where they do not say."""

TRANSFORMS = "tf2_msgs/msg/TFMessage"
OLD_TRANSFORMS = "tf/msg/tfMessage"
TRUTH = "/truth/"
"""What the topics of a link's truth begin with in recordings of navsense."""


@dataclass(frozen=True)
class Topic:
    """One topic of a bag: name and message type."""

    name: str
    type: str


@dataclass(frozen=True, eq=False)
class Series:
    """What a topic's messages hold: stamps (n,) in integer ns, values (n, 3 or 4), frame, the first covariance."""

    stamp: IntArray
    values: FloatArray
    frame: str
    covariance: FloatArray


@dataclass(eq=False)
class Edge:
    """A frame in its parent: stamps (ns) and rotations x y z w of the child's coordinates to the parent's."""

    parent: str
    fixed: bool
    stamp: list[int] = field(default_factory=list)
    rotation: list[tuple[float, ...]] = field(default_factory=list)

    def quaternions(self, where: Where) -> Quaternions:
        """Return the rotations (n, 4), w x y z, of unit length, NaN for zeros."""
        return unit(np.array(self.rotation)[:, [3, 0, 1, 2]], f"transform to {self.parent}", where)


class Bag:
    """One open bag. Whatever is wrong with it is a `CalibrationError` with its name."""

    def __init__(self, path: Path, reader: Any, *, old: bool) -> None:
        """Take rosbags' open reader; `old` for one of ROS 1."""
        self.where = Where(str(path))
        self._reader, self._old = reader, old

    @property
    def topics(self) -> list[Topic]:
        """Return the topics in order of name."""
        found = {(connection.topic, connection.msgtype) for connection in self._reader.connections}
        return [Topic(name, kind) for name, kind in sorted(found)]

    def messages(self, topic: Topic) -> Iterator[tuple[int, Any]]:
        """Yield receive time (ns) and message of a topic."""
        wanted = [c for c in self._reader.connections if (c.topic, c.msgtype) == (topic.name, topic.type)]
        decode = decoder(wanted, old=self._old)
        for _, time, data in self._reader.messages(connections=wanted):
            yield time, decode(data, topic.type)


def decoder(connections: Sequence[Any], *, old: bool) -> Callable[[bytes, str], Any]:
    """Return what makes a message of bytes: by the definition in the bag, else by the latest of ROS."""
    from rosbags.interfaces import MessageDefinitionFormat
    from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

    define = next((c for c in connections if c.msgdef.format != MessageDefinitionFormat.NONE), None)
    if define is None:
        store = get_typestore(Stores.ROS1_NOETIC if old else Stores.LATEST)
    else:
        store = get_typestore(Stores.EMPTY)
        is_text = define.msgdef.format == MessageDefinitionFormat.MSG
        text = define.msgdef.data
        if is_text:
            store.register(get_types_from_msg(text, define.msgtype))
        else:
            line = "=" * 80 + "\n"
            parts = text.split(line)[1:] if text.startswith(line) else [text]
            for part in parts:
                store.register(get_types_from_idl(part.partition("\n")[2] if part.startswith("IDL: ") else part))
    return store.deserialize_ros1 if old else store.deserialize_cdr


def is_bag(path: Path) -> bool:
    """Return whether a path is read as a bag."""
    return path.suffix.lower() in SUFFIXES or path.is_dir()


@contextmanager
def opened(path: Path) -> Iterator[Bag]:
    """Yield a bag. Raises `CalibrationError` for what is none, is damaged, or cannot be read."""
    from rosbags.rosbag1 import Reader as OldReader
    from rosbags.rosbag2 import Reader

    where, path = Where(str(path)), resolve_folder(path)
    if path.is_dir() and not (path / "metadata.yaml").is_file():
        remedy = "name the folder that holds metadata.yaml, or a file"
        raise CalibrationError("is a folder, and no ROS 2 bag", where=where, remedy=remedy)
    inputs.check_bag(path, _BAG)
    old = path.suffix.lower() == ".bag" and not path.is_dir()
    try:
        with limit_rosbags(), OldReader(path) if old else Reader(path) as reader:
            yield Bag(path, reader, old=old)
    except NavsenseError:
        raise
    except OSError as error:
        if error.strerror:
            raise os_error(path, error, "read") from error
        raise CalibrationError("is no bag that can be read", str(error), where=where) from error
    except Exception as error:
        remedy = recovery_remedy(path)
        raise CalibrationError("is no bag that can be read", str(error), where=where, remedy=remedy) from error


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


def series_of(bag: Bag, topic: Topic, value: Callable[[Any], Any], axes: str, frame: Callable[[Any], str]) -> Series:
    """Return what the messages of a topic hold; an unstamped one counts at its receive time."""
    stamps: list[int] = []
    values: list[list[float]] = []
    name, covariance = "", np.zeros(9)
    for time, message in bag.messages(topic):
        if not stamps:
            name = frame(message).lstrip("/")
            covariance = first_covariance(message)
        stamp = message.header.stamp
        shown = int(stamp.sec) * SECOND + int(stamp.nanosec)
        vector = value(message)
        stamps.append(shown or time)
        values.append([getattr(vector, axis) for axis in axes])
    if not stamps:
        raise CalibrationError("topic without messages", topic.name, where=bag.where)
    return Series(np.array(stamps, dtype=np.int64), np.array(values, dtype=np.float64), name, covariance)


def first_covariance(message: Any) -> FloatArray:
    """Return the nine numbers of a field's or an orientation's covariance, zeros where there is none."""
    kind = message.__msgtype__
    if kind == MAGNETIC:
        return np.asarray(message.magnetic_field_covariance, dtype=np.float64)
    if kind == IMU:
        return np.asarray(message.orientation_covariance, dtype=np.float64)
    return np.zeros(9)


def pick(bag: Bag, name: str | None, kinds: Sequence[str], what: str, option: str, more: Sequence[str] = ()) -> Topic:
    """Return the topic of that name, whole or its end, or the only one of these types.

    Raises `CalibrationError` otherwise, with what there is, and `more` that may be named.
    """
    found = [topic for topic in bag.topics if topic.type in kinds]
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
    others = {topic.name.strip("/"): topic.type for topic in bag.topics}
    kind = others.get(name.strip("/"))
    is_other = f"is {kind}; " if kind else ""
    names = [topic.name for topic in found] + list(more)
    allowed = f"{is_other}must be one of {', '.join(names) or f'none: no {what} here'}"
    raise CalibrationError(option, name, where=bag.where, allowed=allowed)


def kinds_of(bag: Bag) -> str:
    """Return the types of a bag's messages in a line."""
    return ", ".join(sorted({topic.type for topic in bag.topics})) or "nothing"


def edges_of(bag: Bag) -> dict[str, Edge]:
    """Return every frame that transforms speak of, by its name."""
    edges: dict[str, Edge] = {}
    for topic in bag.topics:
        if topic.type not in (TRANSFORMS, OLD_TRANSFORMS):
            continue
        fixed = topic.name.endswith("tf_static")
        for _, message in bag.messages(topic):
            for one in message.transforms:
                child, parent = one.child_frame_id.lstrip("/"), one.header.frame_id.lstrip("/")
                edge = edges.get(child)
                if edge is None or edge.parent != parent:
                    edge = edges[child] = Edge(parent, fixed)
                turn, stamp = one.transform.rotation, one.header.stamp
                if fixed:
                    edge.stamp.clear()
                    edge.rotation.clear()
                edge.stamp.append(int(stamp.sec) * SECOND + int(stamp.nanosec))
                edge.rotation.append((turn.x, turn.y, turn.z, turn.w))
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
    return (stamp - since) / SECOND


def declared(series: Series) -> float:
    """Return the deviation that a field's covariance declares, its mean over the axes, 0 where it says nothing."""
    variances = series.covariance.reshape(3, 3).diagonal()
    return math.sqrt(float(variances.mean())) if np.isfinite(variances).all() and (variances > 0.0).all() else 0.0


def field_of(bag: Bag, name: str | None) -> tuple[Topic, Series, Vectors]:
    """Return the magnetometer's topic, its messages, and their field (n, 3)."""
    topic = pick(bag, name, tuple(FIELDS), "magnetometer", "--topic")
    series = series_of(bag, topic, FIELDS[topic.type], "xyz", lambda message: message.header.frame_id)
    return topic, series, series.values


def attitude_of(bag: Bag, name: str, field: Series, mounting: FloatArray | None) -> _attitude.AttitudeSeries:
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
    topic = pick(bag, name, tuple(ATTITUDES), "attitude", "--attitude", moving)
    value, frame = ATTITUDES[topic.type]
    series = series_of(bag, topic, value, "wxyz", frame)
    if series.covariance[0] == -1.0:
        remedy = "name another --attitude, or none"
        raise CalibrationError(
            "its covariance says that it has no orientation", topic.name, where=bag.where, remedy=remedy
        )
    check_stamps(series.stamp, topic.name, bag.where)
    mount, said, notes = mounted(edges, series.frame, field.frame, mounting, bag.where)
    known, since = unit(series.values, f"topic {topic.name}", bag.where), int(field.stamp[0])
    turns, why = _attitude.interpolate(seconds(series.stamp, since), known, seconds(field.stamp, since))
    said = f"{topic.name} ({topic.type}), {said}"
    turns = _attitude.multiply(turns, mount)
    return _attitude.AttitudeSeries(turns, why, said, (*notes, *left_out(known, topic.name)))


def mounted(
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
        note = f"mounting guessed: {' and '.join(silent)} messages do not name their frame; {_attitude.ASSUMED_ALIGNED}"
        return aligned, "mounting guessed, see below", (note,)
    found = fixed_rotation(edges, body, sensor, where)
    if found is None:
        raise CalibrationError(
            f"no fixed transform from {sensor!r}, the magnetometer's frame, to {body!r}, the attitude's",
            where=where,
            remedy="give it with --mounting ROLL PITCH YAW in degrees, 0 0 0 where they are aligned",
        )
    return found, f"{sensor} in {body} by /tf_static", ()


def truth_topic(bag: Bag, edges: dict[str, Edge], sensor: str) -> str:
    """Return the topic of the true pose of the link that carries the sensor, in a recording of navsense."""
    named = [t for t in bag.topics if t.name.startswith(TRUTH) and t.type == "nav_msgs/msg/Odometry"]
    for topic in named:
        _, first = next(bag.messages(topic))
        if fixed_rotation(edges, first.child_frame_id, sensor, bag.where) is not None:
            return topic.name
    remedy = "name a topic: --attitude /odom"
    raise CalibrationError("no truth of the magnetometer's link in this bag", where=bag.where, remedy=remedy)
