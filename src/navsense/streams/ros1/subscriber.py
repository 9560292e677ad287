"""The motion of a ROS 1 topic: odometry, poses, transforms, states of Gazebo, or velocity commands.

    ros1://HOST:PORT?topic=TOPIC&type=TYPE&model=MODEL&link=LINK&frame=FRAME&twist=AXES&host=ADDRESS&node=NAME

HOST:PORT is the address of the ROS master; default: 127.0.0.1:11311. Poses and frames are those that
`recordings.recorded_motion` reads from the same topic. `states.MOTION_TYPES` lists the message types.

- The twist of an odometry is in the axes of its child frame, as nav_msgs/Odometry defines. Gazebo's p3d plug-in
  publishes it in those of the world: `twist=world` reads it so. `twist=none` ignores it.
- The twists of gazebo_msgs are in the axes of the world. That of a model is the one of its canonical link.
- A state has the stamp of its message. `stamps.py` has the rules for types without one.
- Of several publishers, one is followed.

Sources: nav_msgs/Odometry; gazebo 11, `Model::WorldLinearVel`; gazebo_ros_pkgs, gazebo_ros_api_plugin.cpp and
gazebo_ros_p3d.cpp.
"""

from __future__ import annotations

import logging
import math
import re
import threading
from dataclasses import dataclass
from functools import partial

from navsense.core.errors import MotionError, NavsenseError, Where
from navsense.core.pose import Pose, ensure_unit, is_near_unit, rotate
from navsense.core.text import list_names
from navsense.core.typing import Vector
from navsense.motion.driven import Frame, State, state_row
from navsense.streams.command_states import STEP, CommandStates
from navsense.streams.ros1.master import MasterError
from navsense.streams.ros1.stamps import Stamps
from navsense.streams.ros1.states import (
    MOTION_TYPES,
    Sample,
    decode_command,
    decode_entity,
    decode_samples,
    normalize_type,
)
from navsense.streams.ros1.subscriber_node import PublisherChoice, SubscriberNode
from navsense.streams.ros1.subscription import Connection, PeerError, Subscription
from navsense.streams.stream import StreamUrl
from navsense.streams.subscriber import DrivenFrame, Subscriber

LOG = logging.getLogger(__name__)

TWIST_AXES = ("body", "world", "none")
"""Values of the option `twist`."""

LONGEST_PAUSE = 0.01
"""Longest time (s) from one read of the topic to the next if the run does not wait for states."""

TOPIC_NAME = re.compile(r"(/\w+)+", re.ASCII)
"""Full names of topics."""


@dataclass
class TwistCheck:
    """Compares the displacements between poses with the velocities, in both axes.

    moved: sum of the squares of the displacements (m^2).
    body, world: sums of the squares (m^2) of their differences from the integral of the velocity. The axes of the
        velocity are those of the child frame or of the world.
    speed: sum of the squares of the velocities (m^2/s^2).
    """

    moved: float = 0.0
    body: float = 0.0
    world: float = 0.0
    speed: float = 0.0
    count: int = 0
    last: tuple[Sample, Vector] | None = None
    is_done: bool = False

    def find_problem(self, sample: Sample, rotated: Vector) -> str:
        """Return a problem of the velocities so far, "" without one. `rotated`: the velocity as one in body axes."""
        last, self.last = self.last, (sample, rotated)
        if last is None or sample.linear is None or last[0].linear is None:
            return ""
        step = (sample.stamp - last[0].stamp) * 1e-9
        if not 0.0 < step < 1.0:
            return ""
        for axis in range(3):
            moved = sample.position[axis] - last[0].position[axis]
            self.moved += moved * moved
            self.body += (moved - 0.5 * step * (rotated[axis] + last[1][axis])) ** 2
            self.world += (moved - 0.5 * step * (sample.linear[axis] + last[0].linear[axis])) ** 2
            self.speed += sample.linear[axis] ** 2
        self.count += 1
        if self.count < 20 or self.moved < 1e-4:
            return ""
        if self.speed == 0.0:
            return "the velocities are zero, but the poses move; if the publisher sets none, add &twist=none"
        if self.body > 0.1 * self.moved and self.world < 0.01 * self.moved:
            return (
                "the velocities do not fit the poses in the axes of the child frame, but in those of the world; "
                "if the publisher is Gazebo's p3d plug-in, add &twist=world"
            )
        return ""


class Ros1Subscriber(Subscriber):
    """Receives the states of a frame from a ROS 1 topic."""

    def __init__(self, url: StreamUrl, frame: DrivenFrame) -> None:
        """Register at the master. Raises `MotionError`, and `RecordingError` for an invalid host or node."""
        super().__init__(url.text, "")
        self._frame, self._where = frame, Where(url.text)
        options = url.options
        self._options = {name: options.get(name, "") for name in ("model", "link", "frame")}
        self._moving_frame, self._parent = options.get("frame", "").lstrip("/"), ""
        self._twist = options.get("twist", "body")
        if self._twist not in TWIST_AXES:
            allowed = f"must be one of {', '.join(TWIST_AXES)}"
            raise MotionError("option twist", self._twist, allowed=allowed, where=self._where)
        self._type = normalize_type(options.get("type", ""))
        if self._type and self._type not in MOTION_TYPES:
            allowed = f"must be one of {', '.join(MOTION_TYPES)}"
            raise MotionError("option type", self._type, allowed=allowed, where=self._where)
        self._lock = threading.Lock()
        self._is_first = True
        self._commands: CommandStates | None = None
        self._twist_check = TwistCheck()
        self._node = SubscriberNode(url, self.fail)
        try:
            self._subscription = self._subscribe(options.get("topic", ""))
            self._subscription.pause = partial(self.wait_for_request, LONGEST_PAUSE)
            self._choice = PublisherChoice(self._subscription.warnings)
            self._node.start()
            with self._lock:
                self._start_commands()
        except MasterError as error:
            self._node.close()
            raise MotionError(
                "ROS master", self._node.address, where=self._where, allowed=str(error), remedy=error.remedy
            ) from error
        except BaseException:
            self._node.close()
            raise

    def disconnect(self) -> None:
        """Disconnect and unregister."""
        self._node.close()
        if self._commands is not None:
            self._commands.close()

    def _subscribe(self, name: str) -> Subscription:
        """Subscribe to the topic of the states, and to /clock if it is needed. Raises `MotionError`, `MasterError`."""
        publishers, types = self._node.master.list_topics()
        types = {topic: normalize_type(kind) for topic, kind in types.items()}
        topic = self._find_topic(name, types) if name else self._select_topic(publishers, types)
        self.topic = f"topic {topic}"
        known = types.get(topic, "*")
        if known != "*":
            self._check_known_type(known)
        kind = self._type or known
        if kind != "*":
            self._check_options(kind)
            self._type = kind
        subscription = self._node.subscribe(topic, kind, self)
        self._stamps = Stamps[State](
            self._node,
            subscription.warnings,
            self.topic,
            put=self.put,
            fail=self.fail,
            needs_clock=kind == "*" or not MOTION_TYPES[kind].has_stamp or MOTION_TYPES[kind].kind == "commands",
        )
        if not publishers.get(topic):
            candidates = self._list_candidates(publishers, types)
            listed = f"; topics with poses: {list_names(candidates)}" if candidates else ""
            LOG.warning("%s: %s: waiting for a publisher%s", self.url, self.topic, listed)
        return subscription

    def _find_topic(self, name: str, types: dict[str, str]) -> str:
        """Return the full name of a topic, which can be given by any unambiguous ending. Raises `MotionError`."""
        topic = "/" + name.lstrip("/")
        if not TOPIC_NAME.fullmatch(topic):
            allowed = "must be a name of ROS: letters, digits, _ and /"
            raise MotionError("option topic", name, allowed=allowed, where=self._where)
        endings = [other for other in types if other.endswith(topic)]
        return endings[0] if len(endings) == 1 and not name.startswith("/") else topic

    def _check_known_type(self, known: str) -> None:
        """Raise `MotionError` if the type of the topic is another one than in the URL, or cannot be a motion."""
        if self._type not in ("", known):
            remedy = f"write type={known}, or omit it"
            allowed = f"{self.topic} is {known}"
            raise MotionError("option type", self._type, allowed=allowed, where=self._where, remedy=remedy)
        if known not in MOTION_TYPES:
            allowed = f"must be one of {', '.join(MOTION_TYPES)}"
            raise MotionError(f"type of {self.topic}", known, allowed=allowed, where=self._where)

    def _find_commands(self, topics: list[str]) -> list[str]:
        """Return the topics of velocity commands with the name in the world: exact, or as the longer or shorter ending.

        The topic may be in a namespace, and the name in the world too.
        """
        name = self._frame.context.command_topic.strip("/")
        if not name:
            return []
        exact = [topic for topic in topics if topic.strip("/") == name]
        longer, shorter = (
            [topic for topic in topics if topic.endswith(f"/{ending}")] for ending in (name, name.rpartition("/")[2])
        )
        return exact or longer or shorter

    def _list_candidates(self, publishers: dict[str, list[str]], types: dict[str, str]) -> list[str]:
        """Return the topics that a motion could be, each with its type. Those with poses come first."""
        topics = [
            topic
            for topic, kind in types.items()
            if kind in MOTION_TYPES and self._type in ("", kind) and publishers.get(topic)
            if not topic.endswith("tf_static")
        ]
        poses = [topic for topic in topics if MOTION_TYPES[types[topic]].kind not in ("transforms", "commands")]
        commands = [topic for topic in topics if MOTION_TYPES[types[topic]].kind == "commands"]
        return [f"{topic} ({types[topic]})" for topic in sorted(poses or self._find_commands(commands) or topics)]

    def _select_topic(self, publishers: dict[str, list[str]], types: dict[str, str]) -> str:
        """Return the only topic that a motion could be; topics with poses have priority. Raises `MotionError`."""
        candidates = self._list_candidates(publishers, types)
        if len(candidates) == 1:
            return candidates[0].partition(" ")[0]
        kind = f" of the type {self._type}" if self._type else ""
        if candidates:
            what, allowed = f"{len(candidates)} topics{kind}", f"must be one of {list_names(candidates)}"
            remedy = f"add ?topic={candidates[0].partition(' ')[0]}"
        else:
            what = f"no topic{kind} that a motion could be"
            allowed = f"needs a publisher of {', '.join(MOTION_TYPES)}"
            remedy = "start the publisher, or name its topic: ?topic=TOPIC"
        raise MotionError(what, allowed=allowed, where=self._where, remedy=remedy)

    def _check_options(self, kind: str) -> None:
        """Raise `MotionError` for an option that a message type has no use for."""
        motion_kind = MOTION_TYPES[kind].kind
        usable = {"models": ("model",), "links": ("model", "link"), "odometry": ("frame",), "transforms": ("frame",)}
        for name, value in self._options.items():
            if value and name not in usable.get(motion_kind, ()):
                allowed = f"{kind} has no name of a {'frame that moves' if name == 'frame' else name}"
                raise MotionError(f"option {name}", value, allowed=allowed, where=self._where, remedy="omit it")
        if self._twist != "body" and motion_kind != "odometry":
            allowed = f"selects the axes of an odometry, and {self.topic} is {kind}"
            raise MotionError("option twist", self._twist, allowed=allowed, where=self._where, remedy="omit it")

    def check_type(self, connection: Connection, md5: str) -> None:
        """Raise `PeerError` if messages of this type and with this sum cannot be read."""
        kind = connection.type
        expected = MOTION_TYPES.get(kind)
        if expected is None:
            raise PeerError(f"publishes {kind}; must be one of {', '.join(MOTION_TYPES)}")
        if md5 != expected.md5:
            raise PeerError(f"publishes another version of {kind}: md5sum {md5}, not {expected.md5}")
        with self._lock:
            if self._type not in ("", kind):
                raise PeerError(f"publishes {kind}, not {self._type}")
            try:
                self._check_options(kind)
            except MotionError as error:
                raise PeerError(f"publishes {kind}: {error.what}: {error.value}; {error.allowed}") from error
            self._type = kind
            self._start_commands()

    def _start_commands(self) -> None:
        """Start to send states, if the topic has velocity commands. The caller holds the lock, or is the only one."""
        is_command = bool(self._type) and MOTION_TYPES[self._type].kind == "commands"
        if is_command and self._commands is None:
            read_time = self._stamps.read_time
            try:
                self._commands = CommandStates(self._frame, get_time=read_time, put=self.put, fail=self.fail)
            except RuntimeError:
                remedy = "end other programs or raise the limit on processes (ulimit -u)"
                self.fail("the system cannot start another thread", remedy=remedy)
                return
            drive = f" of {self._frame.drive.name}" if self._frame.drive else ""
            LOG.info("%s: %s: velocity commands%s, a state every %.3g s", self.url, self.topic, drive, STEP * 1e-9)

    def _handle_command(self, connection: Connection, commands: CommandStates, message: bytes) -> None:
        """Follow a velocity command. Commands of several publishers are followed: the last one counts."""
        try:
            twist = decode_command(connection.type, message)
        except ValueError as error:
            self._warn("message", connection, f"sent {error}")
            return
        with self._lock:
            self._choice.accepts(connection, "the last command counts")
            try:
                ignored = commands.link.set_command(twist.linear, twist.angular)
            except MotionError as error:
                self._warn("numbers", connection, f"sent an invalid command, which is dropped: {error}")
                return
            if ignored:
                self._warn("ignored", "", f"the motion ignores {ignored}")

    def handle(self, connection: Connection, message: bytes) -> None:
        """Queue the state in a message. Invalid messages are dropped, with one warning for each cause and node."""
        received = self._stamps.read_system_time()
        if self._commands is not None:
            self._handle_command(connection, self._commands, message)
            return
        try:
            sample = self._find_sample(connection, message)
        except ValueError as error:
            self._warn("message", connection, f"sent {error}")
            return
        if sample is None:
            return
        with self._lock:
            if not self._choice.accepts(connection):
                return
            try:
                state = self._make_state(sample)
            except (NavsenseError, ValueError) as error:
                self._warn("numbers", connection, f"sent an invalid state, which is dropped: {error}")
                return
            if not is_near_unit(sample.rotation):
                length = math.hypot(*sample.rotation)
                self._warn("length", connection, f"sent a quaternion of length {length:.3g}, which is normalized")
            if self._is_first:
                self._is_first = False
                self._log_first(connection, sample, state)
            if not MOTION_TYPES[self._type].has_stamp:
                self._stamps.put_without_header(received, state)
                return
            self._stamps.put_with_header(sample.stamp, received, state, connection)
            if state.frame == "body" and state.velocity is not None and not self._twist_check.is_done:
                rotated = rotate(state.pose.rotation, state.velocity)
                if problem := self._twist_check.find_problem(sample, rotated):
                    self._twist_check.is_done = True
                    self._warn("twist", "", problem)

    def _warn(self, cause: str, connection: Connection | str, problem: str) -> None:
        self._subscription.warnings.add(cause, connection, f"{connection} {problem}".strip())

    def _find_sample(self, connection: Connection, message: bytes) -> Sample | None:
        """Return the values of the frame in a message, None if it has none of them. Raises `ValueError`."""
        kind = MOTION_TYPES[connection.type].kind
        if kind in ("models", "links"):
            name = self._get_entity_name(kind)
            sample, names = decode_entity(message, name)
            if sample is None:
                noun = kind.removesuffix("s")
                listed = list_names(names) or "none"
                remedy = f"add &{noun}=NAME" if not self._options[noun] else "waiting for it"
                self._warn("entity", connection, f"has no {noun} {name}; it has {listed}; {remedy}")
            return sample
        samples = decode_samples(connection.type, message)
        if kind == "transforms":
            return self._select_transform(samples)
        sample = samples[0]
        if kind == "odometry" and self._options["frame"] and sample.frame != self._moving_frame:
            self.fail(f"frame: {self._options['frame']}; is {sample.frame}")
            return None
        return sample

    def _get_entity_name(self, kind: str) -> str:
        """Return the name of the model or link of the frame in states of Gazebo."""
        model = self._options["model"] or self._frame.context.model or self._frame.link.partition("::")[0]
        if kind == "models":
            return model
        link = self._options["link"] or self._frame.link
        if self._options["link"] and "::" in link:
            return link
        return f"{model}::{link.rpartition('::')[2]}" if self._options["model"] or "::" not in link else link

    def _select_transform(self, samples: list[Sample]) -> Sample | None:
        """Return the last transform of the frame that moves. Fail if it is not unique, or if its parent changes."""
        selected = [sample for sample in samples if self._options["frame"] in ("", sample.frame, "/" + sample.frame)]
        for sample in selected:
            if not self._parent:
                self._moving_frame, self._parent = sample.frame, sample.parent
            if sample.frame != self._moving_frame:
                frames = dict.fromkeys((self._moving_frame, *(one.frame for one in samples)))
                allowed = f"must be one of {list_names(list(frames))}"
                self.fail("several frames move", allowed=allowed, remedy="add &frame=FRAME")
                return None
            if sample.parent != self._parent:
                problem = f"the parent of frame {sample.frame} changes from {self._parent} to {sample.parent}"
                self.fail(problem, remedy="name another topic")
                return None
        return selected[-1] if selected else None

    def _make_state(self, sample: Sample) -> State:
        """Return the state with the values of a message. Raises `NavsenseError` or `ValueError` for invalid ones."""
        pose = Pose(sample.position, ensure_unit(sample.rotation))
        kind = MOTION_TYPES[self._type].kind
        if kind == "models" and self._frame.context.root != Pose():
            pose = pose @ self._frame.context.root
        if sample.linear is None or (kind == "odometry" and self._twist == "none"):
            state = State(pose)
        else:
            axes: Frame = "body" if kind == "odometry" and self._twist == "body" else "world"
            state = State(pose, sample.linear, angular_velocity=sample.angular, frame=axes)
        state_row(state, self.topic)
        return state

    def _log_first(self, connection: Connection, sample: Sample, state: State) -> None:
        """Log what the states are."""
        frame = f" of {sample.frame}" if sample.frame else ""
        parent = f" in {sample.parent}" if sample.parent else ""
        axes = f"{sample.frame or 'the child frame'}" if state.frame == "body" else "the world"
        twist = f"; velocities in the axes of {axes}" if state.velocity is not None else "; no velocities"
        LOG.info("%s: %s: %s of %s, poses%s%s%s", self.url, self.topic, self._type, connection, frame, parent, twist)
