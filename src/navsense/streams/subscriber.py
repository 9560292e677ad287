"""The contract of a subscriber: a live system that sends the states of a frame while a run follows them.

    --motion SCHEME://HOST:PORT/PATH?topic=TOPIC&type=TYPE&link=LINK&frame=FRAME

A subscriber receives messages in a thread of its own and puts states into a queue. The run takes them out.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from typing import Self

from navsense.core.errors import MotionError, Where
from navsense.core.pose import Pose
from navsense.core.text import format_count
from navsense.motion.base import NO_CONTEXT, LogContext
from navsense.motion.driven import State
from navsense.motion.velocity_commands import Drive

LOG = logging.getLogger(__name__)

MAX_QUEUED_STATES = 100_000
"""Largest number of states in a queue. At 1 kHz this is 100 s of a run that does not keep up."""

MOTION_OPTIONS = ("topic", "type", "model", "link", "frame")
"""Options that a motion URL can have; a stream rejects those that it cannot use.

topic: the topic with the states. type: its message type. model, link: the model or link of the live system that moves
the frame; default: the names in the world. frame: the moving frame in transforms and odometry.
"""

RUN_OPTIONS = ("wait", "upsample")
"""Options of every motion URL, which the run reads.

wait: time (s) to wait for the first states. upsample: 1 lets an IMU be faster than poses without velocities.
"""


@dataclass(frozen=True)
class DrivenFrame:
    """The frame of the world that a subscriber moves: the canonical link of a model.

    >>> ns.streams.DrivenFrame("robot::base_link").link
    'robot::base_link'

    link: its full name, such as "robot::base_link".
    context: the name of the model, the pose of the link in the model, and the topic of its velocity commands.
    start: pose of the model in the world at the start, for velocity commands.
    drive: how the model follows velocity commands; None without one.
    """

    link: str = ""
    context: LogContext = NO_CONTEXT
    start: Pose = Pose()
    drive: Drive | None = None


@dataclass(frozen=True, slots=True)
class StampedState:
    """A state of a frame, and its stamp: ns of the clock of the live system.

    >>> ns.streams.StampedState(1_500_000_000, ns.State(ns.Pose((0.0, 0.0, 2.0)))).stamp
    1500000000
    """

    stamp: int
    state: State


class Subscriber:
    """Receives the states of one frame from a live system.

    The thread of the transport calls `put` for each state and `fail` at the end of the connection. The run calls
    `receive` and `close`. A transport derives a class that overrides `disconnect`.

    >>> subscriber = ns.streams.Subscriber("ros1://", "topic /odom")
    >>> subscriber.put(1_500_000_000, ns.State(ns.Pose((0.0, 0.0, 2.0))))
    >>> [stamped.stamp for stamped in subscriber.receive(0.1)]
    [1500000000]

    url: of the live system.
    topic: what the states come from, for messages: "topic /odom".
    """

    def __init__(self, url: str, topic: str) -> None:
        """Start with an empty queue."""
        self.url, self.topic = url, topic
        self.dropped = 0
        self._queue: deque[StampedState] = deque()
        self._condition = threading.Condition()
        self._request = threading.Event()
        self._error: MotionError | None = None
        self._is_closed = False

    def put(self, stamp: int, state: State) -> None:
        """Append a state, unless the states have ended. A full queue drops its oldest state, and logs it."""
        with self._condition:
            if self._is_closed or self._error is not None:
                return
            if len(self._queue) == MAX_QUEUED_STATES:
                self._queue.popleft()
                self.dropped += 1
                if self.dropped == 1:
                    LOG.warning("%s: %s: the run is too slow and loses states", self.url, self.topic)
            self._queue.append(StampedState(stamp, state))
            self._condition.notify()

    def fail(self, problem: str, *, allowed: str = "", remedy: str = "") -> None:
        """End the states, for example because the live system closed the connection. Only the first call counts."""
        with self._condition:
            if self._error is None:
                where = Where(self.url)
                self._error = MotionError(f"{self.topic}: {problem}", allowed=allowed, where=where, remedy=remedy)
            self._condition.notify()

    def receive(self, timeout: float) -> list[StampedState]:
        """Return the states since the last call, in order; none after `timeout` (s) without one.

        Raises `MotionError` after the last state if the states have ended.
        """
        with self._condition:
            if not self._queue and self._error is None and not self._is_closed:
                self._request.set()
                self._condition.wait(timeout)
            states = list(self._queue)
            self._queue.clear()
            if not states and self._error is not None:
                raise self._error
        return states

    def wait_for_request(self, longest: float) -> None:
        """Wait until the run waits for states, at most `longest` (s). The thread of the transport calls it.

        A thread that reads when the run waits wakes once for several messages, and delays none of them.
        """
        self._request.wait(longest)
        self._request.clear()

    def close(self) -> None:
        """Disconnect. States that arrive later are not queued. A second call does nothing."""
        with self._condition:
            if self._is_closed:
                return
            self._is_closed = True
            self._request.set()
            self._condition.notify()
        self.disconnect()
        if self.dropped:
            LOG.warning("%s: %s: %s lost", self.url, self.topic, format_count(self.dropped, "state"))

    def disconnect(self) -> None:
        """Close the connection and end the thread of the transport."""

    def __enter__(self) -> Self:
        """Return the subscriber."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the subscriber."""
        self.close()
