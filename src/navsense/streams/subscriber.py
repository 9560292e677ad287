"""The contract of a subscriber: a live system that sends the states of a frame while a run follows them.

    --motion SCHEME://HOST:PORT/PATH?topic=TOPIC&type=TYPE&link=LINK&frame=FRAME

A subscriber receives messages in a thread of its own and puts states into a queue. The run takes them out.
"""

from __future__ import annotations

from dataclasses import dataclass

from navsense.core.errors import MotionError
from navsense.core.pose import Pose
from navsense.motion.base import NO_CONTEXT, LogContext
from navsense.motion.driven import State
from navsense.motion.velocity_commands import Drive
from navsense.streams.sample_queue import SampleQueue

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


class Subscriber(SampleQueue[StampedState]):
    """Receives the states of one frame from a live system.

    The thread of the transport calls `put` for each state and `fail` at the end of the connection. The run calls
    `receive` and `close`. A transport derives a class that overrides `disconnect`.

    >>> subscriber = ns.streams.Subscriber("ros1://", "topic /odom")
    >>> subscriber.put(1_500_000_000, ns.State(ns.Pose((0.0, 0.0, 2.0))))
    >>> [stamped.stamp for stamped in subscriber.receive(0.1)]
    [1500000000]

    url: of the live system.
    topic: the source of the states, for messages: "topic /odom".
    """

    error_type = MotionError
    sample_name = "state"

    def put(self, stamp: int, state: State) -> None:
        """Append a state, unless the states have ended. A full queue drops its oldest state, and logs it."""
        self.append(StampedState(stamp, state), MAX_QUEUED_STATES)
