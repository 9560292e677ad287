"""Magnetometer readings and attitudes in ROS bags of any origin: `.mcap`, `.bag`, `.db3`, or the folder of a ROS 2 bag.

    rotation_ws(t) = rotation_wb(t) rotation_bs

`rotation_wb` is the attitude of a topic, interpolated at the stamps of the readings. `rotation_bs` takes coordinates of
the sensor to those of the frame of the attitude; it comes from `/tf_static`. Quaternions in messages are x y z w and
take coordinates of the child frame to those of the parent (REP 103). The unit of `sensor_msgs/msg/MagneticField` is
tesla.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from navsense.calibration import _attitude
from navsense.calibration._attitude import IDENTITY, AttitudeSeries
from navsense.core.errors import CalibrationError, RecordingError
from navsense.core.names import suggest_name
from navsense.core.rotation import multiply_arrays
from navsense.core.typing import FloatArray, IntArray, Quaternions
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.messages.cdr import read_quaternions, read_stamps
from navsense.recordings.channels import MessageReader
from navsense.recordings.message_recordings import open_messages, read_stored_topics
from navsense.recordings.quantities import (
    ATTITUDE_TYPES,
    ODOMETRY,
    QUANTITIES,
    TopicValues,
    decode_topic,
    list_members,
    read_values,
)
from navsense.recordings.topic_names import TRUTH_PREFIX

MAGNETIC = "sensor_msgs/msg/MagneticField"
IMU = "sensor_msgs/msg/Imu"
TRANSFORM_TYPES = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")


class Topic(NamedTuple):
    """One topic of a bag: name and message type."""

    name: str
    type: str


@dataclass(eq=False)
class TransformSeries:
    """The transforms of a frame to its parent: stamps (ns) and rotations w x y z, child to parent."""

    parent: str
    is_static: bool
    stamp: list[int] = field(default_factory=list)
    rotation: list[FloatArray] = field(default_factory=list)

    def unit_quaternions(self) -> Quaternions:
        """Return the rotations (n, 4), w x y z, of unit length, NaN for zeros."""
        return normalize(np.array(self.rotation), f"transform to {self.parent}")


def list_topics(bag: MessageReader, types: Sequence[str] = ()) -> list[Topic]:
    """Return the topics, of these types or all, in order of name."""
    topics = sorted({Topic(channel.topic, channel.type) for channel in bag.channels})
    return [topic for topic in topics if not types or topic.type in types]


@contextmanager
def open_bag(path: Path) -> Iterator[MessageReader]:
    """Yield a reader of a bag. Raises `CalibrationError` for a file that is not a bag, is damaged or cannot be read."""
    try:
        with open_messages(path) as reader:
            yield reader
    except RecordingError as error:
        raise CalibrationError(
            error.what, error.value, allowed=error.allowed, where=error.where, remedy=error.remedy
        ) from error


def normalize(quaternions: Quaternions, what: str) -> Quaternions:
    """Return quaternions (n, 4) of unit length, NaN for NaN and for zeros, which a filter sends before it has started.

    Raises `CalibrationError` for another length, and if all quaternions are NaN or zero.
    """
    length = np.sqrt((quaternions**2).sum(axis=1))
    missing = np.isnan(length) | ~quaternions.any(axis=1)
    invalid = missing if missing.all() else ~missing & ~((length > 0.5) & (length < 2.0))
    if invalid.any():
        row = int(np.argmax(invalid))
        raise CalibrationError(
            f"orientation of row {row} of the {what}",
            quaternions[row].tolist(),
            allowed="must be a quaternion of unit length",
            remedy="name another --attitude, or none",
        )
    return np.asarray(quaternions / np.where(missing, math.nan, length)[:, None])


def describe_missing(rotation: Quaternions, what: str) -> tuple[str, ...]:
    """Return a note if some attitudes (n, 4) are NaN."""
    count = np.count_nonzero(~np.isfinite(rotation).all(axis=1))
    return (f"{count} of {len(rotation)} attitudes of {what} are zero or NaN and are left out",) if count else ()


def read_topic(bag: MessageReader, topic: Topic, path: str | None, axes: str) -> TopicValues:
    """Return the values of a topic. A message without a stamp, or with stamp 0, gets its log time."""
    values = read_values(bag, topic.name, topic.type, list_members(path or "", axes))
    stamp = np.where(values.stamp == 0, values.log_time, values.stamp)
    return replace(values, stamp=stamp, frame=values.frame.lstrip("/"))


def select_topic(
    bag: MessageReader, name: str | None, types: Sequence[str], what: str, option: str, others: Sequence[str] = ()
) -> Topic:
    """Return the topic of these types with this name or ending, or the only one.

    In a recording of navsense with its world, `name` can also be that of the sensor. Raises `CalibrationError` if there
    is none or if several match. The error lists the topics and `others`, without ideal values and biases in a recording
    of navsense.
    """
    topics = list_topics(bag, types)
    candidates = [topic for topic in topics if not topic.name.endswith(("/ideal", "/bias"))] or topics
    if name is None:
        candidates = [topic for topic in candidates if topic.type == types[0]] or candidates
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            listed = ", ".join(topic.name for topic in candidates)
            remedy = f"name one with {option}, as {option} {candidates[0].name}"
            raise CalibrationError(f"several {what}s: {listed}", remedy=remedy)
        present = ", ".join(sorted({topic.type for topic in list_topics(bag)})) or "nothing"
        allowed = f"must hold {' or '.join(types)}; it holds {present}"
        raise CalibrationError(f"no {what} in this bag", allowed=allowed)
    sensors = read_stored_topics(bag).list_sensor_topics()
    exact = [topic for topic in topics if topic.name.strip("/") == name.strip("/")]
    exact = exact or [topic for topic in topics if topic.name == sensors.get(name)]
    by_sensor = {topic for sensor, topic in sensors.items() if sensor.endswith(f"::{name}")}
    ending = [topic for topic in topics if topic.name.endswith(f"/{name}") or topic.name in by_sensor]
    if exact or len(ending) == 1:
        return (exact or ending)[0]
    if ending:
        allowed = f"is ambiguous: must be one of {', '.join(topic.name for topic in ending)}"
        raise CalibrationError(option, name, allowed=allowed, remedy="write the full name")
    other_type = {topic.name.strip("/"): topic.type for topic in list_topics(bag)}.get(name.strip("/"))
    names = ", ".join([*(topic.name for topic in candidates), *others])
    allowed = f"must be one of {names}" if names else f"this bag has no {what}"
    if other_type:
        allowed = f"is {other_type}; {allowed}"
    known = [topic.name for topic in candidates]
    remedy = suggest_name(name, [sensor for sensor, topic in sensors.items() if topic in known])
    remedy = remedy or suggest_name(name, [*known, *others], separator="/")
    raise CalibrationError(option, name, allowed=allowed, remedy=remedy)


def read_transforms(bag: MessageReader) -> dict[str, TransformSeries]:
    """Return the transforms of each frame to its parent, by the name of the frame."""
    transforms: dict[str, TransformSeries] = {}
    for topic in list_topics(bag, TRANSFORM_TYPES):
        is_static = topic.name.endswith("tf_static")
        rows: list[tuple[int, int, str, str, int, FloatArray]] = []
        for part in decode_topic(bag, topic.name, topic.type):
            for i in range(part.shape.lengths.get("transforms", 0)):
                path = f"transforms.{i}"
                child, parent = (
                    part.shape.strings[f"{path}.{name}"].lstrip("/") for name in ("child_frame_id", "header.frame_id")
                )
                stamps = read_stamps(part.rows, f"{path}.header.stamp").tolist()
                rotations = read_quaternions(part.rows, f"{path}.transform.rotation")
                rows += [
                    (number, i, child, parent, stamp, rotation)
                    for number, stamp, rotation in zip(part.number.tolist(), stamps, rotations, strict=True)
                ]
        for _, _, child, parent, stamp, rotation in sorted(rows, key=lambda row: row[:2]):
            series = transforms.get(child)
            if series is None or series.parent != parent:
                series = transforms[child] = TransformSeries(parent, is_static)
            if is_static:  # the last one counts
                series.stamp.clear()
                series.rotation.clear()
            series.stamp.append(stamp)
            series.rotation.append(rotation)
    return transforms


def list_ancestors(transforms: dict[str, TransformSeries], frame: str, *, static_only: bool = False) -> list[str]:
    """Return a frame, its parent, and so on up to the root, or up to the first dynamic transform."""
    path = [frame]
    while (series := transforms.get(path[-1])) and series.parent not in path and (series.is_static or not static_only):
        path.append(series.parent)
    return path


def find_static_rotation(transforms: dict[str, TransformSeries], body: str, sensor: str) -> FloatArray | None:
    """Return rotation_bs (4,) from static transforms, None if they do not connect the two frames."""
    paths = [list_ancestors(transforms, frame, static_only=True) for frame in (body, sensor)]
    if paths[0][-1] != paths[1][-1]:
        return None
    rotations = []
    for path in paths:
        rotation = IDENTITY
        for frame in path[:-1]:
            rotation = multiply_arrays(transforms[frame].unit_quaternions()[-1], rotation)
        rotations.append(rotation)
    return multiply_arrays(_attitude.invert(rotations[0]), rotations[1])


def read_transform_attitude(
    transforms: dict[str, TransformSeries], sensor: str, world: str, stamp: IntArray
) -> AttitudeSeries:
    """Return rotation_ws of a frame at stamps (n,) ns by transforms up to `world`, up to the root if that is empty."""
    path = list_ancestors(transforms, sensor)
    if world and world not in path:
        allowed = f"must be one of {', '.join(path[1:])}" if path[1:] else "it has no parent"
        raise CalibrationError(f"parent frame of {sensor!r}", world, allowed=allowed)
    path = path[: path.index(world) + 1] if world else path
    if all(transforms[frame].is_static for frame in path[:-1]):
        allowed = f"the frame of the readings is {sensor!r}; the bag has {', '.join(sorted(transforms)) or 'no frames'}"
        raise CalibrationError("no dynamic transform of the magnetometer", allowed=allowed)
    rotation_ws, status = np.tile(IDENTITY, (stamp.size, 1)), np.full(stamp.size, _attitude.AVAILABLE)
    notes: tuple[str, ...] = ()
    for frame in path[:-1]:
        series = transforms[frame]
        rotation = series.unit_quaternions()
        if series.is_static:
            rotation = rotation[-1]
        else:
            series_stamp = np.array(series.stamp, dtype=np.int64)
            check_stamps(series_stamp, f"transforms of {frame!r}")
            notes += describe_missing(rotation, f"{frame!r}")
            rotation, frame_status = _interpolate(series_stamp, rotation, stamp)
            status = np.maximum(status, frame_status)
        rotation_ws = multiply_arrays(rotation, rotation_ws)
    return AttitudeSeries(rotation_ws, status, f"/tf, {sensor} in {path[-1]}", notes)


def _interpolate(series_stamp: IntArray, rotation: Quaternions, stamp: IntArray) -> tuple[Quaternions, IntArray]:
    """Return the rotations and their status at stamps (n,) ns, from rotations (m, 4) at other stamps."""
    first = int(stamp[0])
    return _attitude.interpolate(
        (series_stamp - first) / NANOSECONDS_PER_SECOND, rotation, (stamp - first) / NANOSECONDS_PER_SECOND
    )


def check_stamps(stamp: IntArray, what: str) -> None:
    """Raise `CalibrationError` if several messages all have the same stamp (ns)."""
    if stamp.size > 1 and stamp.min() == stamp.max():
        problem = f"all {stamp.size} messages have the same one"
        remedy = "correct the stamps of the driver and record again, or calibrate with --attitude none"
        raise CalibrationError(f"stamps of {what}", problem, remedy=remedy)


def read_declared_stddev(series: TopicValues) -> float:
    """Return the standard deviation that the covariance of a field declares, the rms of the axes; 0 if unknown."""
    variances = series.covariance.reshape(3, 3).diagonal()
    return math.sqrt(float(variances.mean())) if np.isfinite(variances).all() and (variances > 0.0).all() else 0.0


def read_attitude(bag: MessageReader, name: str, field: TopicValues, mounting: FloatArray | None) -> AttitudeSeries:
    """Return rotation_ws at the stamps of a field.

    name: a topic; "truth" in a recording of navsense; "/tf" or "/tf:FRAME" for transforms up to the root or to a frame.
    mounting: rotation_bs (4,) that replaces the one of the bag, or None.
    """
    check_stamps(field.stamp, "the magnetometer")
    transforms = read_transforms(bag)
    topic_name, _, world = name.partition(":")
    if topic_name.strip("/") == "tf":
        attitude = read_transform_attitude(transforms, field.frame, world, field.stamp)
        return (
            attitude if mounting is None else replace(attitude, rotation=multiply_arrays(attitude.rotation, mounting))
        )
    if name == "truth":
        name = find_truth_topic(bag, transforms, field.frame)
    has_dynamic = any(not series.is_static for series in transforms.values())
    topic = select_topic(bag, name, ATTITUDE_TYPES, "attitude", "--attitude", ("/tf",) if has_dynamic else ())
    series = read_topic(bag, topic, QUANTITIES[topic.type].orientation, "wxyz")
    if series.covariance[0] == -1.0:
        allowed, remedy = "its orientation_covariance[0] is -1", "name another --attitude, or none"
        raise CalibrationError("topic without orientation", topic.name, allowed=allowed, remedy=remedy)
    check_stamps(series.stamp, topic.name)
    rotation_bs, origin, notes = find_mounting(transforms, series.frame, field.frame, mounting)
    rotation_wb = normalize(series.values, f"topic {topic.name}")
    notes += describe_missing(rotation_wb, topic.name)
    rotation, status = _interpolate(series.stamp, rotation_wb, field.stamp)
    source = f"{topic.name} ({topic.type}), {origin}"
    return AttitudeSeries(multiply_arrays(rotation, rotation_bs), status, source, notes)


def find_mounting(
    transforms: dict[str, TransformSeries], body: str, sensor: str, mounting: FloatArray | None
) -> tuple[FloatArray, str, tuple[str, ...]]:
    """Return rotation_bs (4,), its origin, and a note if it is an assumption. Raises `CalibrationError` if unknown."""
    if mounting is not None:
        return mounting, "mounting as given", ()
    if body == sensor and sensor:
        return IDENTITY, f"of the frame of the sensor, {sensor!r}", ()
    if not body or not sensor:
        unnamed = [what for what, frame in (("the attitude's", body), ("the magnetometer's", sensor)) if not frame]
        note = f"{' and '.join(unnamed)} messages do not name their frame"
        return IDENTITY, "mounting assumed, see below", (f"mounting assumed: {note}; {_attitude.ASSUMED_ALIGNED}",)
    rotation_bs = find_static_rotation(transforms, body, sensor)
    if rotation_bs is None:
        raise CalibrationError(
            f"no static transform from {sensor!r}, the magnetometer's frame, to {body!r}, the attitude's",
            remedy="give it with --mounting ROLL PITCH YAW in degrees, 0 0 0 if they are aligned",
        )
    return rotation_bs, f"{sensor} in {body} by /tf_static", ()


def find_truth_topic(bag: MessageReader, transforms: dict[str, TransformSeries], sensor: str) -> str:
    """Return the topic of the true pose of the link that carries the sensor, in a recording of navsense."""
    for topic in list_topics(bag, (ODOMETRY,)):
        if not topic.name.startswith(TRUTH_PREFIX):
            continue
        first = next(decode_topic(bag, topic.name, topic.type), None)
        frame = first.shape.strings["child_frame_id"] if first is not None else ""
        if find_static_rotation(transforms, frame, sensor) is not None:
            return topic.name
    remedy = "name a topic: --attitude /odom"
    raise CalibrationError("no truth of the magnetometer's link in this bag", remedy=remedy)
