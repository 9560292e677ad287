"""The motion of a ROS 2 topic: odometry, poses, transforms, or velocity commands.

    ros2://ADDRESS?topic=TOPIC&type=TYPE&frame=FRAME&twist=AXES&domain=N&wait=SECONDS
    ros2+zenoh://HOST:PORT?topic=TOPIC&...

ADDRESS, HOST:PORT and `domain` are those of an output. `ros_motion` has the states of the messages, `ros_stamps` their
stamps. Of several publishers, one is followed.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from navsense.core.errors import MotionError, NavsenseError, Where
from navsense.core.pose import is_near_unit
from navsense.core.text import list_names
from navsense.recordings.base import make_no_thread_error
from navsense.streams.command_states import STEP, CommandStates
from navsense.streams.device_port import CONNECT_TIMEOUT, parse_wait
from navsense.streams.ros2.remote import RemotePublisher, RemoteTopics, RemoteTopicsOpener
from navsense.streams.ros2.url import parse_domain
from navsense.streams.ros_messages import (
    CLOCK_TYPE,
    CdrReader,
    Sample,
    decode_clock,
    decode_command,
    format_ros2_type,
    normalize_type,
)
from navsense.streams.ros_motion import MotionTopic, PublisherChoice
from navsense.streams.ros_stamps import CLOCK, DECISION_TIME, MessageStamps
from navsense.streams.stream import StreamUrl
from navsense.streams.subscriber import DrivenFrame, Subscriber
from navsense.streams.warning_log import WarningLog
from navsense.world import World

LOG = logging.getLogger(__name__)

MOTION_TYPES = (
    "nav_msgs/Odometry",
    "geometry_msgs/PoseStamped",
    "geometry_msgs/PoseWithCovarianceStamped",
    "geometry_msgs/Pose",
    "geometry_msgs/TransformStamped",
    "tf2_msgs/TFMessage",
    "geometry_msgs/Twist",
    "geometry_msgs/TwistStamped",
)
"""Message types of ROS 2 that a motion can be, by their names in ROS 1."""

LISTEN_TIME = 2.0
"""Time (s) in which the topics of other programs are found, if the URL names none."""

POLL_TIME = 0.02
"""Time (s) between two looks at the topics."""


class Ros2Clock:
    """The time of the topic /clock. time: the last one (ns), None before the first."""

    def __init__(self, topics: RemoteTopics, warnings: WarningLog) -> None:
        """Subscribe."""
        self.time: int | None = None
        self._topics, self._warnings, self._choice = topics, warnings, PublisherChoice(warnings)
        self._start = time.monotonic()
        topics.subscribe(CLOCK, [format_ros2_type(CLOCK_TYPE)], self._receive, warnings.add)

    def has_publisher(self, *, connected: bool) -> bool:
        """Return True if another program publishes /clock. Without `connected`, also while publishers are searched."""
        is_searching = not connected and time.monotonic() - self._start < DECISION_TIME
        return is_searching or any(one.topic == CLOCK for one in self._topics.list_publishers())

    def _receive(self, publisher: RemotePublisher, data: bytes) -> None:
        """Store the time of a message."""
        try:
            if self._choice.accepts(publisher):
                reader = CdrReader(data)
                self.time = decode_clock(reader)
                reader.finish()
        except ValueError as error:
            self._warnings.add("clock message", publisher, f"{publisher} sent {error} on {CLOCK}")


def find_topic(topics: RemoteTopics, wait: float, choose: Callable[[dict[str, str], bool], bool]) -> dict[str, str]:
    """Wait for a topic, and return the topics of other programs with their types.

    choose: returns True if the topic is among these topics. Its second argument is true if all topics have been found.
    """
    start = time.monotonic()
    while True:
        types = {one.topic: one.type for one in topics.list_publishers()}
        elapsed = time.monotonic() - start
        if choose(types, elapsed >= min(LISTEN_TIME, wait)) or elapsed >= wait:
            return types
        time.sleep(POLL_TIME)


def list_topics(types: dict[str, str]) -> str:
    """Return the topics with their types, for an error."""
    seen = list_names([f"{topic} ({kind})" for topic, kind in sorted(types.items())])
    return f"topics that were found: {seen}" if seen else "no topic was found"


class Ros2Subscriber(Subscriber):
    """Receives the states of a frame from a ROS 2 topic."""

    def __init__(self, url: StreamUrl, frame: DrivenFrame, open_topics: RemoteTopicsOpener) -> None:
        """Connect, and wait for a publisher of the topic. Raises `MotionError` and `RecordingError`."""
        wait, domain = parse_wait(url, CONNECT_TIMEOUT), parse_domain(url)
        super().__init__(url.text, f"domain {domain}")
        self._frame, self._where = frame, Where(url.text)
        self._motion = MotionTopic(url, frame, MOTION_TYPES, format_ros2_type)
        self._commands: CommandStates | None = None
        self._topics = open_topics(url, domain, self.fail)
        try:
            self._find_topic(url.options.get("topic", ""), wait)
            self._subscribe()
        except self._topics.errors as error:
            self.disconnect()
            raise MotionError(f"{type(error).__name__}: {error}", where=self._where) from error
        except BaseException:
            self.disconnect()
            raise

    def _find_topic(self, name: str, wait: float) -> None:
        """Wait for a publisher. Raises `MotionError` without one."""
        motion = self._motion

        def choose(types: dict[str, str], is_complete: bool) -> bool:
            if name:
                motion.choose(name, types, types)
                return motion.name in types
            if is_complete and motion.list_candidates(types, types):
                motion.choose("", types, types)
            return bool(motion.name)

        types = find_topic(self._topics, wait, choose)
        if motion.name not in types:
            what = motion.title if motion.name else "topics that can be followed"
            raise MotionError(
                f"{what}: no publisher in {self.topic} within {wait:g} s",
                allowed=list_topics(types),
                where=self._where,
                remedy="start the publisher first, or check the topic, the domain and the address",
            )
        self.topic = motion.title

    def _subscribe(self) -> None:
        """Subscribe to the topic, and to /clock if the messages have no stamps."""
        motion = self._motion
        self._warnings = WarningLog(LOG, f"{self.url}: {self.topic}")
        self._choice = PublisherChoice(self._warnings)
        self._stamps = MessageStamps(
            f"{self.url}: {self.topic}",
            self._warnings,
            put=self.put,
            fail=self.fail,
            open_clock=lambda: Ros2Clock(self._topics, self._warnings),
            needs_clock=not motion.content.has_stamp or motion.has_commands,
        )
        if motion.has_commands:
            read_time = self._stamps.read_time
            try:
                self._commands = CommandStates(self._frame, get_time=read_time, put=self.put, fail=self.fail)
            except RuntimeError as error:
                raise make_no_thread_error(self._where) from error
            drive = f" of {self._frame.drive.name}" if self._frame.drive else ""
            LOG.info("%s: %s: velocity commands%s, a state every %.3g s", self.url, self.topic, drive, STEP * 1e-9)
        self._topics.subscribe(motion.name, [motion.type], self._receive, self._warnings.add)
        publishers = [str(one) for one in self._topics.list_publishers() if one.topic == motion.name]
        LOG.info("%s: %s: subscribed to %s", self.url, self.topic, list_names(publishers))

    def disconnect(self) -> None:
        """Disconnect."""
        self._topics.close()
        if self._commands is not None:
            self._commands.close()

    def _receive(self, publisher: RemotePublisher, data: bytes) -> None:
        """Queue the state in a message. Invalid messages are dropped, with one warning for each cause and publisher."""
        received = self._stamps.read_system_time()
        try:
            reader = CdrReader(data)
            if self._commands is not None:
                self._follow(publisher, self._commands, reader)
                return
            sample = self._motion.find_sample(
                self._motion.type, reader, lambda cause, problem: self._warn(cause, publisher, problem)
            )
        except ValueError as error:
            self._warn("message", publisher, f"sent {error}")
            return
        except MotionError as error:
            self.fail(error.what, allowed=error.allowed, remedy=error.remedy)
            return
        if sample is not None:
            self._put_sample(publisher, received, sample)

    def _follow(self, publisher: RemotePublisher, commands: CommandStates, reader: CdrReader) -> None:
        """Follow a velocity command: the last one of all publishers. Raises `ValueError` for an invalid message."""
        twist = decode_command(normalize_type(self._motion.type), reader)
        self._choice.accepts(publisher, "the last command acts")
        try:
            ignored = commands.link.set_command(twist.linear, twist.angular)
        except MotionError as error:
            self._warn("numbers", publisher, f"sent an invalid command, which is dropped: {error}")
            return
        if ignored:
            self._warn("ignored", "", f"the motion ignores {ignored}")

    def _put_sample(self, publisher: RemotePublisher, received: int, sample: Sample) -> None:
        """Queue the state with the values of a message that arrived at a time (ns)."""
        if not self._choice.accepts(publisher):
            return
        try:
            state = self._motion.make_state(sample)
        except (NavsenseError, ValueError) as error:
            self._warn("numbers", publisher, f"sent an invalid state, which is dropped: {error}")
            return
        if not is_near_unit(sample.rotation):
            length = math.hypot(*sample.rotation)
            self._warn("length", publisher, f"sent a quaternion of length {length:.3g}, which is normalized")
        self._motion.log_first(publisher, sample, state)
        if not self._motion.content.has_stamp:
            self._stamps.put_without_header(received, state)
            return
        self._stamps.put_with_header(sample.stamp, received, state, publisher)
        if problem := self._motion.check_velocity(sample, state):
            self._warn("twist", "", problem)

    def _warn(self, cause: str, publisher: RemotePublisher | str, problem: str) -> None:
        self._warnings.add(cause, publisher, f"{publisher} {problem}".strip())


def open_motion(
    url: StreamUrl,
    frame: DrivenFrame,
    check: Callable[[StreamUrl, World | None], None],
    get_opener: Callable[[], RemoteTopicsOpener],
) -> Ros2Subscriber:
    """Return the subscriber of a topic. `get_opener` imports the transport.

    Raises `MotionError`, and `RecordingError` for an invalid URL.
    """
    check(url, None)
    return Ros2Subscriber(url, frame, get_opener())
