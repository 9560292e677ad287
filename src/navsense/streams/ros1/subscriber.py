"""The motion of a ROS 1 topic: odometry, poses, transforms, states of Gazebo, or velocity commands.

    ros1://HOST:PORT?topic=TOPIC&type=TYPE&model=MODEL&link=LINK&frame=FRAME&twist=AXES&host=ADDRESS&node=NAME

HOST:PORT is the address of the ROS master; default: 127.0.0.1:11311. `ros_motion` has the states of the
messages, and `ros_stamps` their stamps.

- A state has the stamp of its message. `ros_stamps` has the rules for types without one.
- Of several publishers, one is followed.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from functools import partial

from navsense.core.errors import MotionError, NavsenseError, Where
from navsense.core.pose import is_near_unit
from navsense.core.text import list_names
from navsense.streams.command_states import STEP, CommandStates
from navsense.streams.device_port import CONNECT_TIMEOUT, parse_wait
from navsense.streams.ros1.clock_topic import ClockTopic
from navsense.streams.ros1.master import MasterError
from navsense.streams.ros1.md5 import MOTION_MD5
from navsense.streams.ros1.subscriber_node import SubscriberNode
from navsense.streams.ros1.subscription import Connection, PeerError, Subscription
from navsense.streams.ros_messages import MOTION_TYPES, Reader, Sample, decode_command, normalize_type
from navsense.streams.ros_motion import MotionTopic, PublisherChoice
from navsense.streams.ros_stamps import MessageStamps
from navsense.streams.stream import StreamUrl
from navsense.streams.subscriber import DrivenFrame, Subscriber

LOG = logging.getLogger(__name__)

POLL_TIME = 0.2
"""Time (s) between two questions to the master for the topics."""

LONGEST_PAUSE = 0.01
"""Longest time (s) from one read of the topic to the next if the run does not wait for states."""


class Ros1Subscriber(Subscriber):
    """Receives the states of a frame from a ROS 1 topic."""

    def __init__(self, url: StreamUrl, frame: DrivenFrame) -> None:
        """Register at the master. Raises `MotionError`, and `RecordingError` for an invalid host or node."""
        super().__init__(url.text, "")
        self._frame, self._where = frame, Where(url.text)
        self._wait = parse_wait(url, CONNECT_TIMEOUT)
        self._motion = MotionTopic(url, frame, MOTION_TYPES, normalize_type)
        self._lock = threading.Lock()
        self._commands: CommandStates | None = None
        self._node = SubscriberNode(url, self.fail)
        try:
            self._subscription = self._subscribe(url.options.get("topic", ""))
            self._subscription.pause = partial(self.wait_for_request, LONGEST_PAUSE)
            self._choice = PublisherChoice(self._subscription.warnings)
            self._node.start()
            with self._lock:
                self._start_commands()
        except MasterError as error:
            self.disconnect()
            raise MotionError(
                "ROS master", self._node.address, where=self._where, allowed=str(error), remedy=error.remedy
            ) from error
        except BaseException:
            self.disconnect()
            raise

    def disconnect(self) -> None:
        """Disconnect and unregister."""
        self._node.close()
        if self._commands is not None:
            self._commands.close()

    def _list_topics(self, *, waits: bool) -> tuple[list[str], dict[str, str]]:
        """Return the topics that have publishers, and the type of each topic. Raises `MasterError`.

        waits: until a topic can be followed, at most for the time `wait` of the URL.
        """
        deadline = time.monotonic() + (self._wait if waits else 0.0)
        while True:
            publishers, types = self._node.master.list_topics()
            published = [topic for topic, nodes in publishers.items() if nodes]
            if self._motion.list_candidates(published, types) or time.monotonic() >= deadline:
                return published, types
            time.sleep(POLL_TIME)

    def _subscribe(self, name: str) -> Subscription:
        """Subscribe to the topic of the states, and to /clock if it is needed. Raises `MotionError`, `MasterError`."""
        motion, (published, types) = self._motion, self._list_topics(waits=not name)
        motion.choose(name, published, types)
        self.topic, topic, kind = motion.title, motion.name, motion.type or "*"
        subscription = self._node.subscribe(topic, kind, self)
        self._stamps = MessageStamps(
            f"{self.url}: {self.topic}",
            subscription.warnings,
            put=self.put,
            fail=self.fail,
            open_clock=lambda: ClockTopic(self._node, self.fail),
            is_simulated=self._node.master.has_simulated_time(),
            needs_clock=kind == "*" or not motion.content.has_stamp or motion.has_commands,
        )
        if topic not in published:
            candidates = motion.list_candidates(published, types)
            listed = f"; topics that can be followed: {list_names(candidates)}" if candidates else ""
            LOG.warning("%s: %s: waiting for a publisher%s", self.url, self.topic, listed)
        return subscription

    def check_type(self, connection: Connection, md5: str) -> None:
        """Raise `PeerError` if messages of this type and with this sum cannot be read."""
        kind = connection.type
        expected = MOTION_MD5.get(kind)
        if expected is None:
            raise PeerError(f"publishes {kind}; {self._motion.allowed_types}")
        if md5 != expected:
            raise PeerError(f"publishes another version of {kind}: md5sum {md5}, not {expected}")
        with self._lock:
            if self._motion.type not in ("", kind):
                raise PeerError(f"publishes {kind}, not {self._motion.type}")
            try:
                self._motion.check_options(kind)
            except MotionError as error:
                raise PeerError(f"publishes {kind}: {error.what}: {error.value}; {error.allowed}") from error
            self._motion.type = kind
            self._start_commands()

    def _start_commands(self) -> None:
        """Start to send states, if the topic has velocity commands. The caller holds the lock, or is the only one."""
        if self._motion.has_commands and self._commands is None:
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
        """Follow a velocity command. Commands of several publishers are followed: the last one acts."""
        try:
            twist = decode_command(connection.type, Reader(message))
        except ValueError as error:
            self._warn("message", connection, f"sent {error}")
            return
        with self._lock:
            self._choice.accepts(connection, "the last command acts")
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
            sample = self._motion.find_sample(
                connection.type, Reader(message), lambda cause, problem: self._warn(cause, connection, problem)
            )
        except ValueError as error:
            self._warn("message", connection, f"sent {error}")
            return
        except MotionError as error:
            self.fail(error.what, allowed=error.allowed, remedy=error.remedy)
            return
        if sample is not None:
            self._put_sample(connection, received, sample)

    def _put_sample(self, connection: Connection, received: int, sample: Sample) -> None:
        """Queue the state with the values of a message that arrived at a time (ns)."""
        with self._lock:
            if not self._choice.accepts(connection):
                return
            try:
                state = self._motion.make_state(sample)
            except (NavsenseError, ValueError) as error:
                self._warn("numbers", connection, f"sent an invalid state, which is dropped: {error}")
                return
            if not is_near_unit(sample.rotation):
                length = math.hypot(*sample.rotation)
                self._warn("length", connection, f"sent a quaternion of length {length:.3g}, which is normalized")
            self._motion.log_first(connection, sample, state)
            if not self._motion.content.has_stamp:
                self._stamps.put_without_header(received, state)
                return
            self._stamps.put_with_header(sample.stamp, received, state, connection)
            if problem := self._motion.check_velocity(sample, state):
                self._warn("twist", "", problem)

    def _warn(self, cause: str, connection: Connection | str, problem: str) -> None:
        self._subscription.warnings.add(cause, connection, f"{connection} {problem}".strip())
