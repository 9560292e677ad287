"""Motion from recordings: the true poses of a link, or the messages of a topic.

    FILE    FILE:LINK    FILE:TOPIC    FILE?topic=TOPIC&frame=FRAME&type=TYPE    FILE?link=LINK

A recording of a run that followed a live system has the states of that system as the truth of the link. They give the
motion of that run to the last bit. t = 0 is that of the recorded run, not the first state.

A CSV or TUM file is a motion log (`motion.logs`). Other recordings give the truth of the only link that moves, or of
the named link. Recordings of messages also give a topic, by name or if they have no truth. `TOPIC_READERS` lists the
message types that a motion can be, and what reads them. Poses are those of the topic. The world has the axes of the
topic, which are east, north and up in ROS. The canonical link of the model has the axes of its child frame. Messages of
Gazebo with poses are read as those of ROS.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote

import numpy as np

from navsense.core.errors import MotionError, RecordingError, Where, convert_error
from navsense.core.inputs import path_exists
from navsense.core.names import resolve_name
from navsense.core.pose import Pose
from navsense.core.readings import TRUTH_ARRAYS
from navsense.core.rotation import multiply_arrays, rotate_python
from navsense.core.text import format_count, parse_decimal
from navsense.core.typing import FloatArray, IntArray
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.messages.cdr import read_stamps
from navsense.motion.base import NO_CONTEXT, LogContext, LogSource, LogStart, Motion
from navsense.motion.derived import get_source
from navsense.motion.logs import check_no_bandwidth, load_log
from navsense.motion.received_motion import ReceivedMotion
from navsense.motion.replay import Replay, from_arrays
from navsense.motion.velocity_commands import VelocityCommands, velocity_commands
from navsense.recordings import message_recordings, static_transforms
from navsense.recordings.base import require_format
from navsense.recordings.channels import Channel, MessageReader
from navsense.recordings.columns import is_readable
from navsense.recordings.dataset import Dataset, LinkSelection
from navsense.recordings.format import find_format_of_recording, get_storage_path, list_suffixes
from navsense.recordings.gazebo_poses import GAZEBO_POSE_TYPES, has_gazebo_poses, read_entity_poses
from navsense.recordings.quantities import POSE_TYPES, QUANTITIES, decode_topic, list_members, read_values
from navsense.recordings.topic_names import TRUTH_PREFIX, format_topic_name
from navsense.world import World


@dataclass(frozen=True)
class MotionQuery:
    """What to read from a recording; "" for the only one.

    topic: the name of a topic or of a link; without a query, either.
    link: the name of a link with true poses, or of its model.
    type: the message type of the topic.
    frame: the frame that moves, in transforms and odometry; the entity in poses of Gazebo.
    """

    topic: str = ""
    link: str = ""
    type: str = ""
    frame: str = ""


BANDWIDTH = "bandwidth"
"""Key of the bandwidth (Hz) in a query."""


class TopicReader(Protocol):
    """Reads the motion of a topic."""

    def __call__(
        self,
        reader: MessageReader,
        channel: Channel,
        query: MotionQuery,
        context: LogContext,
        bandwidth: float | None,
        /,
    ) -> Motion:
        """Return the motion of a topic. Raises `MotionError` and `RecordingError`."""
        ...


def load_motion(
    path: str | os.PathLike[str], context: LogContext = NO_CONTEXT, *, bandwidth: float | None = None
) -> Motion:
    """Return the motion of a log or a recording; `bandwidth` (Hz) as in `motion.replay.from_arrays`.

    Raises `MotionError` if the file cannot be read, or if several series of poses match.
    """
    text = os.fspath(path)
    if not text:
        raise MotionError("motion log", "has an empty name", remedy="name a file or a recording")
    file, query, query_bandwidth = split_path(text)
    if query_bandwidth is not None:
        if bandwidth is not None:
            remedy = "omit one of them"
            raise MotionError(f"bandwidth of {file}", query_bandwidth, allowed="is given twice", remedy=remedy)
        bandwidth = query_bandwidth
    recording_format = find_format_of_recording(file)
    is_table = file.suffix.lower() == ".csv" and (file.is_file() or not get_storage_path(file).is_dir())
    if is_table or not (recording_format or file.is_dir()):
        if query != MotionQuery():
            allowed = "selects a part of a recording, but this file is a motion log"
            raise MotionError(f"query of {file}", text, allowed=allowed, remedy=f"write {file}")
        return load_log(file, context, bandwidth=bandwidth)
    try:
        is_message_recording = message_recordings.is_message_recording(file)
        if not is_message_recording or _stores_states(file):
            received = _read_states(file, query, bandwidth, context.model)
            if received is not None:
                return received
        if is_message_recording:
            motion, series = _read_messages(file, query, context, bandwidth)
        else:
            motion, series = _read_truth(_open_truth(file, _list_links), file, query, bandwidth)
    except RecordingError as error:
        raise convert_error(error, MotionError, Where(str(file))) from error
    except MotionError as error:
        error.where = error.where or Where(str(file))
        raise
    if isinstance(motion, Replay | VelocityCommands):
        start = None
        if is_message_recording and motion.source is not None and motion.source.start is not None:
            start = replace(motion.source.start, path=os.path.realpath(file))
        return replace(motion, source=LogSource(file.name, series, bandwidth, start))
    return motion


def split_path(text: str) -> tuple[Path, MotionQuery, float | None]:
    """Return the file of a motion, what to read from it, and the bandwidth (Hz) in its query, None without one.

    Raises `MotionError` for an invalid query.
    """
    if path_exists(Path(text)):
        return Path(text), MotionQuery(), None
    file, mark, query = text.partition("?")
    if mark:
        known = [*(field.name for field in fields(MotionQuery)), BANDWIDTH]
        options: dict[str, str] = {}
        for part in query.split("&"):
            key, _, value = part.partition("=")
            key = "link" if key == "model" else key
            if key not in known or not value or key in options:
                allowed = f"must be {'&'.join(f'{name}={name.upper()}' for name in known)}, each at most once"
                raise MotionError(
                    f"query of {file}", query, allowed=allowed, remedy="quote the whole argument in a shell"
                )
            options[key] = unquote(value)
        bandwidth = parse_decimal(text) if (text := options.pop(BANDWIDTH, "")) else None
        if text and (bandwidth is None or bandwidth <= 0.0):
            raise MotionError(f"bandwidth of {file} (Hz)", text, allowed="must be a number above 0")
        return Path(file), MotionQuery(**options), bandwidth
    suffixes = "|".join(re.escape(suffix) for suffix in (*list_suffixes(), "/"))
    match = re.fullmatch(f"(.+?(?:{suffixes})):(.+)", text, re.IGNORECASE | re.DOTALL)
    folder, colon, name = text.partition(":")
    if match is None and colon and name and path_exists(Path(folder)) and Path(folder).is_dir():
        return Path(folder), MotionQuery(topic=name), None
    return (
        (Path(match.group(1)), MotionQuery(topic=match.group(2)), None) if match else (Path(text), MotionQuery(), None)
    )


def _select_name(names: Sequence[str], name: str, file: Path) -> str:
    """Return the name of a link or topic by any unambiguous ending, or the only one. Raises `MotionError` otherwise."""
    if len(names) == 1 and not name:
        return names[0]
    if names and name:
        separator = "/" if names[0].startswith("/") else "::"
        return resolve_name(name, names, "poses", where=Where(str(file)), error=MotionError, separator=separator)
    kinds = "topics" if names and names[0].startswith("/") else "links"
    what = f"{len(names)} {kinds} that a motion could be" if names else "no poses that a motion could be"
    allowed = f"must be one of {', '.join(names)}" if names else "needs the true poses of a link that moves"
    remedy = f"write {file}:{names[0]}" if names else "record the run with its ground truth"
    raise MotionError(what, allowed=allowed, where=Where(str(file)), remedy=remedy)


def _make_still_error(file: Path, links: Sequence[str]) -> MotionError:
    """Return the error for a recording in which no model moves. `links` are those that move by themselves."""
    what = "no model that moves"
    allowed = "needs the true poses of a link that moves"
    remedy = f"for the motion of a link, write {file}?link={links[0]}" if links else "omit the motion"
    return MotionError(what, allowed=allowed, where=Where(str(file)), remedy=remedy)


LISTED_TOPICS = 8
"""Largest number of topics in an error."""


def _make_topic_error(reader: MessageReader, file: Path, query: MotionQuery) -> MotionError:
    """Return the error for a recording without a topic that the query selects."""
    where = Where(str(file))
    content = require_format(file).unread_content
    if content and reader.is_navsense:
        what, allowed = f"holds {content}, which navsense writes", "needs the true poses of a link that moves"
        return MotionError(what, allowed=allowed, where=where, remedy="record to .mcap too, and name that file")
    types = ", ".join(sorted(kind for kind in TOPIC_READERS if not kind.startswith("ignition.")))
    name = query.topic or query.link
    topic_channel = next((channel for channel in reader.channels if name.strip("/") == channel.topic.strip("/")), None)
    if topic_channel is not None and topic_channel.type in TOPIC_READERS:
        allowed, remedy = f"{topic_channel.topic} has the type {topic_channel.type}", "omit type="
        return MotionError("type", query.type, allowed=allowed, where=where, remedy=remedy)
    if topic_channel is not None:
        return MotionError(
            f"type of {topic_channel.topic}", topic_channel.type, allowed=f"must be one of {types}", where=where
        )
    what = f"no topic of the type {query.type}" if query.type else "no poses that a motion could be"
    topics = [f"{channel.topic} ({channel.type})" for channel in reader.channels]
    more = f" and {len(topics) - LISTED_TOPICS} more" if len(topics) > LISTED_TOPICS else ""
    remedy = f"the recording has {', '.join(topics[:LISTED_TOPICS]) or 'no topics'}{more}"
    return MotionError(what, allowed=f"needs a topic of a type of {types}", where=where, remedy=remedy)


def _read_truth(recording: Dataset, file: Path, query: MotionQuery, bandwidth: float | None) -> tuple[Replay, str]:
    """Return the true motion of a link, by the name of the link or of its model, and the name of the link."""
    if query.type or query.frame:
        option = f"type={query.type}" if query.type else f"frame={query.frame}"
        allowed = "selects messages, and this recording has none"
        raise MotionError("query", option, allowed=allowed, where=Where(str(file)), remedy="name a link: ?link=LINK")
    name = query.link or query.topic
    moving = {
        model.canonical_link: model.name
        for model in recording.world.models
        if static_transforms.has_motion(model) and model.canonical_link in recording.truth
    }
    names = list(recording.truth) if name else list(moving)
    if not names and recording.truth:
        links = [link for model in recording.world.models for link in model.joint_paths if link in recording.truth]
        raise _make_still_error(file, links)
    link = next((link for link, model in moving.items() if model == name), name)
    selected = _select_name(names, link, file)
    truth = recording.truth[selected]
    time = np.rint((truth.time - truth.time[:1]) * NANOSECONDS_PER_SECOND).astype(np.int64)
    return _make_replay(
        order_messages(time, time, selected), np.hstack((truth.position, truth.orientation)), selected, bandwidth
    ), selected


def _stores_states(file: Path) -> bool:
    """Return True if a recording of messages is that of a run that followed a live system."""
    with message_recordings.open_messages(file) as reader:
        world = message_recordings.parse_stored_world(reader) if reader.is_navsense else None
    sources = [model.get("motion") for model in world["models"]] if world else []
    return any(isinstance(source, Mapping) and source.get("has_states") is True for source in sources)


def _list_links(world: World) -> list[str]:
    """Return the names of all links."""
    return [link.name for model in world.models for link in model.links]


def _open_truth(file: Path, select: LinkSelection) -> Dataset:
    """Return a recording with the truth of the selected links, without its readings if the format can omit them."""
    recording_format = require_format(file)
    return recording_format.read_truth(file, select) if recording_format.read_truth else recording_format.read(file)


def _select_state_links(world: World, query: MotionQuery) -> dict[str, LogSource]:
    """Return the source of each link that followed a live system and that the query selects."""
    name = query.link or query.topic
    links = {}
    for model in world.models:
        source, link = get_source(model.motion), model.canonical_link
        names = ("", link, model.name, TRUTH_PREFIX + format_topic_name(model.name))
        if source is not None and source.has_states and (name in names or link.endswith(f"::{name}")):
            links[link] = source
    return links


def _read_states(file: Path, query: MotionQuery, bandwidth: float | None, moved_model: str) -> ReceivedMotion | None:
    """Return the motion of a link that followed a live system; None if the recording, or the query, has no such link.

    moved_model: the model that gets the motion. Without a query its link is selected, if the recording has it.

    Raises `MotionError` for a bandwidth, and if the query does not say which of several links.
    """
    if query.type or query.frame:
        return None
    # Of an hour of a recording, the states of one link are a small part.
    recording = _open_truth(file, lambda world: _select_state_links(world, query))
    links = _select_state_links(recording.world, query)
    selected = [link for link in links if link in recording.truth]
    if not selected:
        return None
    if not (query.link or query.topic):
        models = {model.canonical_link: model.name for model in recording.world.models}
        selected = [link for link in selected if models[link] == moved_model] or selected
    if len(selected) > 1:
        allowed, remedy = f"must be one of {', '.join(links)}", f"write {file}?link={selected[0]}"
        raise MotionError("several links that followed a live system", allowed=allowed, remedy=remedy)
    if bandwidth is not None:
        allowed = "smooths poses, not the states of a live system"
        raise MotionError("bandwidth (Hz)", bandwidth, allowed=allowed, remedy="omit it")
    truth, source = recording.truth[selected[0]], links[selected[0]]
    if truth.time.size < 2:
        raise MotionError(f"states of {selected[0]}", int(truth.time.size), allowed="must be at least 2")
    rows = np.hstack([getattr(truth, array) for array in TRUTH_ARRAYS])
    motion = ReceivedMotion(float(truth.time[0]), rows[0], source, capacity=truth.time.size)
    for time, row in zip(truth.time[1:].tolist(), rows[1:], strict=True):
        motion.append(time, row)
    motion.finish()
    return motion


def _make_replay(messages: MessageOrder, poses: FloatArray, series: str, bandwidth: float | None) -> Replay:
    """Return the motion of poses: rows of x y z (m) and w x y z (n, 7) in the order of the file."""
    try:
        values = poses[messages.indices]
        replay = from_arrays(messages.time, values[:, :3], values[:, 3:], bandwidth=bandwidth)
    except MotionError as error:
        error.what = f"{series}: {error.what}"
        raise
    source = LogSource("", series, bandwidth, messages.make_start())
    return replace(replay, source=source, notes=(*replay.notes, *messages.notes))


UNIX_STAMP = 10**18
"""ns, the year 2001. Stamps from it on are Unix time, earlier ones are times of a simulation."""


class MessageOrder(NamedTuple):
    """The messages of a topic in the order of their times.

    stamps: times (n,) ns.
    indices: (n,) of the messages in the file.
    notes: about messages that are not read or not in order.
    has_stamps: the times are stamps, and not log times.
    log_time: of the first message, ns.
    """

    stamps: IntArray
    indices: IntArray
    notes: tuple[str, ...]
    has_stamps: bool
    log_time: int

    @property
    def time(self) -> FloatArray:
        """Times (n,) s from the first message."""
        return (self.stamps - self.stamps[:1]) / NANOSECONDS_PER_SECOND

    def make_start(self, file: str = "") -> LogStart:
        """Return the time of the first message, t = 0 of the log, in a file with an absolute path."""
        return LogStart(file, int(self.stamps[0]) if self.has_stamps else None, self.log_time)


def order_messages(stamp: IntArray, log_time: IntArray, series: str) -> MessageOrder:
    """Return the order of messages by their stamps (n,) ns; by the log times if no message has a stamp.

    Messages can arrive late, or twice: they are sorted, and the last of several of one time counts. A publisher that
    starts before its clock writes the stamp 0: it is not read if the others are Unix time. Notes report it.

    Raises `MotionError` if the times change between a simulation and Unix time.
    """
    time = stamp if stamp.any() else log_time.astype(np.int64)
    has_time = (time != 0) | (np.min(time, where=time != 0, initial=np.iinfo(np.int64).max) < UNIX_STAMP)
    if not has_time.any():
        has_time[:] = True
    kept = np.flatnonzero(has_time)
    late_count = int(np.count_nonzero(np.diff(time[kept]) < 0))
    order = kept[np.argsort(time[kept], kind="stable")]
    is_last = np.append(np.diff(time[order]) > 0, True)[: len(order)]
    notes = []
    if len(kept) < len(time):
        count = format_count(len(time) - len(kept), "message")
        notes.append(f"{series}: {count} not read: the stamp is 0, and the others are Unix time")
    if late_count:
        notes.append(f"{series}: {format_count(late_count, 'message')} sorted by time: earlier than the one before")
    if not is_last.all():
        repeated = int(np.count_nonzero(~is_last))
        notes.append(f"{series}: of messages of one time, the last one counts: {repeated} not read")
    indices = order[is_last]
    gaps = np.diff(time[indices])
    if gaps.size and gaps.max() >= UNIX_STAMP:
        row = int(np.argmax(gaps))
        first, second = (float(value) / NANOSECONDS_PER_SECOND for value in time[indices][row : row + 2])
        allowed = "must all be times of a simulation, or all Unix time"
        remedy = "record with one clock: use_sim_time in all nodes, or in none"
        raise MotionError(f"stamps of {series} (s)", f"{first:.17g} and {second:.17g}", allowed=allowed, remedy=remedy)
    first_time = int(log_time[indices[0]]) if indices.size else 0
    return MessageOrder(time[indices], indices, tuple(notes), bool(stamp.any()), first_time)


def make_definition_error(channel: Channel, file: Path) -> MotionError:
    """Return the error for a recording that defines the message type of a topic otherwise than ROS."""
    what = f"topic {channel.topic}: {channel.type} is defined otherwise than by ROS"
    return MotionError(what, where=Where(str(file)), remedy="record the topic with the definition of ROS")


def _read_messages(file: Path, query: MotionQuery, context: LogContext, bandwidth: float | None) -> tuple[Motion, str]:
    """Return the motion of a topic, and the name of the topic."""
    with message_recordings.open_messages(file) as reader:
        channel = _select_channel(reader, file, query, context.command_topic)
        if channel.is_ros and not is_readable(channel):
            raise make_definition_error(channel, file)
        return TOPIC_READERS[channel.type](reader, channel, query, context, bandwidth), channel.topic


def _read_poses(
    reader: MessageReader, channel: Channel, query: MotionQuery, _context: LogContext, bandwidth: float | None
) -> Replay:
    """Return the motion of a topic with one pose in each message. A topic without stamps has the log times."""
    paths = QUANTITIES[channel.type]
    members = [*list_members(paths.position or "", "xyz"), *list_members(paths.orientation or "", "wxyz")]
    topic_values = read_values(reader, channel.topic, channel.type, members)
    _check_frame(reader, channel, query, topic_values.frame.lstrip("/"))
    messages = order_messages(topic_values.stamp, topic_values.log_time, channel.topic)
    return _make_replay(messages, topic_values.values, channel.topic, bandwidth)


COMMAND_TYPES: Mapping[str, str] = {"geometry_msgs/msg/Twist": "", "geometry_msgs/msg/TwistStamped": "twist."}
"""Message type of velocity commands -> path of the twist."""


def _read_commands(
    reader: MessageReader, channel: Channel, query: MotionQuery, _context: LogContext, bandwidth: float | None
) -> VelocityCommands:
    """Return the motion of a topic of velocity commands, at its stamps; at its log times without them.

    The last of several messages of one time counts. The frame of the commands is that of the body, whatever its name; a
    note names a frame of the world.
    """
    check_no_bandwidth(bandwidth)
    path = COMMAND_TYPES[channel.type]
    members = [*list_members(f"{path}linear", "xyz"), *list_members(f"{path}angular", "xyz")]
    topic_values = read_values(reader, channel.topic, channel.type, members)
    frame = topic_values.frame.lstrip("/")
    _check_frame(reader, channel, query, frame)
    messages = order_messages(topic_values.stamp, topic_values.log_time, channel.topic)
    twists = topic_values.values[messages.indices]
    try:
        motion = velocity_commands(messages.time, twists[:, :3], twists[:, 3:])
    except MotionError as error:
        error.what = f"{channel.topic}: {error.what}"
        raise
    source = LogSource("", channel.topic, start=messages.make_start())
    motion = replace(motion, source=source, notes=(*motion.notes, *messages.notes))
    if frame not in WORLD_FRAMES:
        return motion
    note = f"{channel.topic}: the velocities have the frame {frame}; they are read as those in the frame of the body"
    return replace(motion, notes=(*motion.notes, note))


WORLD_FRAMES = ("map", "odom", "world", "earth", "world_ned")
"""Names of frames that are not those of a body."""


def _check_frame(reader: MessageReader, channel: Channel, query: MotionQuery, frame: str) -> None:
    """Raise `MotionError` for a query of another frame than that of the messages ("" if they have none)."""
    if query.frame not in ("", frame):
        allowed = f"is {frame}" if frame else f"{channel.type} has no name of its frame"
        raise MotionError(f"frame of {channel.topic}", query.frame, allowed=allowed, where=reader.where)


def _read_transforms(
    reader: MessageReader, channel: Channel, query: MotionQuery, _context: LogContext, bandwidth: float | None
) -> Replay:
    """Return the motion of a frame in its parent frame, from a topic of transforms.

    Raises `MotionError` if the query names no frame and several move, and if the parent of the frame changes.
    """
    frames: dict[tuple[str, str], list[tuple[IntArray, IntArray, IntArray, FloatArray]]] = {}
    for part in decode_topic(reader, channel.topic, channel.type):
        is_list = channel.type in TRANSFORM_LISTS
        paths = [f"transforms.{i}." for i in range(part.shape.lengths.get("transforms", 0))] if is_list else [""]
        for path in paths:
            names = [part.shape.strings[path + name].lstrip("/") for name in ("child_frame_id", "header.frame_id")]
            members = [
                *list_members(f"{path}transform.translation", "xyz"),
                *list_members(f"{path}transform.rotation", "wxyz"),
            ]
            poses = np.stack([part.rows[member] for member in members], axis=1)
            stamp = read_stamps(part.rows, f"{path}header.stamp")
            stamp = np.broadcast_to(stamp, part.log_time.shape)
            rows = (part.number, stamp, part.log_time.astype(np.int64), poses)
            frames.setdefault((names[0], names[1]), []).append(rows)
    if not frames:
        what, remedy = f"{channel.topic} without transforms", "name another topic, or a link"
        raise MotionError(what, allowed="must have transforms of a frame", where=reader.where, remedy=remedy)
    selected = [names for names in frames if query.frame in ("", names[0])]
    listed = ", ".join(f"{child} (in {parent})" for child, parent in frames)
    if len(selected) != 1:
        what = "parents of the frame" if query.frame and selected else "frame that moves"
        value = ", ".join(parent for _, parent in selected) if query.frame and selected else query.frame or None
        allowed = f"must be one of {listed}"
        raise MotionError(what, value, allowed=allowed, where=reader.where, remedy="write ?topic=TOPIC&frame=FRAME")
    parts = frames[selected[0]]
    order = np.argsort(np.concatenate([number for number, *_ in parts]), kind="stable")
    stamps, log_times = (np.concatenate([part[index] for part in parts])[order] for index in (1, 2))
    poses = np.concatenate([part[3] for part in parts])[order]
    series = f"{channel.topic}, frame {selected[0][0]}"
    return _make_replay(order_messages(stamps, log_times, series), poses, series, bandwidth)


def _read_gazebo_poses(
    reader: MessageReader, channel: Channel, query: MotionQuery, context: LogContext, bandwidth: float | None
) -> Replay:
    """Return the motion of an entity in Gazebo's poses: of `frame`, of the model, or of the only entity.

    Gazebo's pose of a model is that of its frame, so the canonical link gets its pose in the model.

    Raises `MotionError` if no entity has the name, or if several do.
    """
    name = query.frame or context.model
    entities = read_entity_poses(reader, channel, name)
    if not query.frame and len(entities) == 1:
        (name,) = entities
        entities = read_entity_poses(reader, channel, "")
    names = [full_name for full_name, entity in entities.items() if entity.pose]
    if name not in names and len(names) != 1:
        shown = names or list(entities)
        more = f" and {len(shown) - LISTED_TOPICS} more" if len(shown) > LISTED_TOPICS else ""
        what, allowed = f"entity of {channel.topic}", f"must be one of {', '.join(shown[:LISTED_TOPICS])}{more}"
        remedy = "write ?topic=TOPIC&frame=ENTITY"
        raise MotionError(what, name or None, allowed=allowed, where=reader.where, remedy=remedy)
    name = name if name in names else names[0]
    entity = entities[name]
    stamps, log_times, poses = entity.to_arrays()
    if name == context.model and context.root != Pose():
        root = np.array(context.root.position)
        x, y, z = rotate_python(*poses[:, 3:].T, *root)
        poses[:, :3] += np.column_stack((x, y, z))
        poses[:, 3:] = multiply_arrays(poses[:, 3:], np.array(context.root.rotation))
    series = f"{channel.topic}, {name or 'pose'}"
    replay = _make_replay(order_messages(stamps, log_times, series), poses, series, bandwidth)
    if not entity.repeated:
        return replay
    note = f"{channel.topic}: of poses of one name in a message, the first one counts: {entity.repeated} not read"
    return replace(replay, notes=(*replay.notes, note))


TRANSFORM_LISTS = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")
"""Message types with a list of transforms."""

TRANSFORM = "geometry_msgs/msg/TransformStamped"

TOPIC_READERS: Mapping[str, TopicReader] = {
    **dict.fromkeys(POSE_TYPES, _read_poses),
    **dict.fromkeys((TRANSFORM, *TRANSFORM_LISTS), _read_transforms),
    **dict.fromkeys(COMMAND_TYPES, _read_commands),
    **dict.fromkeys(GAZEBO_POSE_TYPES, _read_gazebo_poses),
}
"""Message type of a topic that can be a motion -> what reads it."""


def _select_channel(reader: MessageReader, file: Path, query: MotionQuery, command_topic: str) -> Channel:
    """Return the topic with a name, or of the link with a name; without a name, the only one.

    Topics of poses have priority over others. Without one, the topic `command_topic` of the model has priority over
    transforms and other commands.
    """
    usable_channels = [
        channel
        for channel in reader.channels
        if has_gazebo_poses(channel) or (channel.is_ros and channel.type in TOPIC_READERS)
        if query.type in ("", channel.type) and not channel.topic.endswith(("tf_static", "/pose_static"))
    ]
    name = query.topic or query.link
    is_named = any(name.strip("/") == channel.topic.strip("/") for channel in reader.channels)
    if not usable_channels or (
        is_named and not any(name.strip("/") == channel.topic.strip("/") for channel in usable_channels)
    ):
        raise _make_topic_error(reader, file, query)
    types = (*POSE_TYPES, *GAZEBO_POSE_TYPES)
    # Topics of poses come first.
    channels = {
        channel.topic: channel for channel in sorted(usable_channels, key=lambda channel: channel.type not in types)
    }
    if name:
        stored = message_recordings.read_stored_topics(reader).list_truth_topics()
        links = {link: topic for link, topic in stored.items() if topic in channels}
        candidates = (name, TRUTH_PREFIX + format_topic_name(name), links.get(name, ""))
        endings = [topic for link, topic in links.items() if link.endswith(f"::{name}")]
        fallback = endings[0] if len(endings) == 1 else name
        topic = next((candidate for candidate in candidates if candidate in channels), fallback)
        return channels[_select_name(list(channels), topic, file)]
    names = [topic for topic, channel in channels.items() if not channel.latched]
    # One topic of poses is enough: other types count without one only.
    poses = [topic for topic in names if channels[topic].type in types]
    if reader.is_navsense:
        moving = [topic for topic in names if topic.startswith(TRUTH_PREFIX)]
        # The truth of a link that a joint moves is not that of its model.
        truth = message_recordings.read_stored_topics(reader).list_truth_topics()
        world = message_recordings.parse_stored_world(reader) if truth else None
        roots = {model["canonical_link"] for model in world["models"]} if world else set()
        models = [topic for link, topic in truth.items() if link in roots and topic in moving]
        if roots and not models and moving:
            raise _make_still_error(file, [link for link, topic in truth.items() if topic in moving])
        pose_topics = [topic for topic in names if channels[topic].type not in COMMAND_TYPES]
        return channels[_select_name(models or moving or poses or pose_topics, "", file)]
    commands = [topic for topic in names if channels[topic].type in COMMAND_TYPES]
    command_name = command_topic.strip("/")
    exact = [topic for topic in commands if topic.strip("/") == command_name]
    # The recorded topic may be in a namespace, and that of the plug-in too. The longer ending has priority.
    longer, shorter = (
        [topic for topic in commands if topic.endswith(f"/{ending}")]
        for ending in (command_name, command_name.rpartition("/")[2])
    )
    selected = (exact or longer or shorter or commands) if command_name else []
    return channels[_select_name(poses or selected or names, "", file)]
