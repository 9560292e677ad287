"""Runs that follow live systems: the states of a subscriber become the motion of a model.

The run has no pace of its own. It computes each time slice when the states up to its end have arrived.

    t = (stamp - epoch 10^9) / 10^9        stamp (ns) of a state; epoch: the whole second before the first state

A run begins with the first state of each model. Its end is a state: the first one at or after the duration.
"""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from navsense.core.errors import MotionError, RecordingError, SimulationError, Where, convert_error
from navsense.core.interrupts import check_interrupt, interruptible
from navsense.core.readings import TimeSlice
from navsense.core.text import format_count
from navsense.core.typing import FloatArray
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.motion.base import LogSource
from navsense.motion.driven import state_row
from navsense.motion.pose_derivatives import PoseDerivatives
from navsense.motion.received_motion import ReceivedMotion
from navsense.motion.velocity_check import VelocityCheck
from navsense.sensors.base import get_max_age
from navsense.sensors.imu import Imu
from navsense.simulation.run_controls import ControlledRun, RunControls
from navsense.simulation.session import MAX_EPOCH, Session
from navsense.streams.device_port import parse_wait
from navsense.streams.stream import StreamUrl, open_subscriber, parse_motion_url
from navsense.streams.subscriber import DrivenFrame, StampedState, Subscriber
from navsense.world import World, make_log_context

LOG = logging.getLogger(__name__)

DEFAULT_WAIT = 30.0
"""Time (s) to wait for the first states, unless the URL has the option `wait`."""

SILENCE_TIMEOUT = 10.0
"""Wall time (s) without a state after which a warning is logged."""

POLL = 0.1
"""Longest wall time (s) of one wait for states, so that an interrupt has an effect."""

MAX_BACKWARD_JUMP = NANOSECONDS_PER_SECOND
"""ns: a stamp that is earlier by more than this means that the clock of the live system jumped back."""

LARGEST_GAP = 60 * NANOSECONDS_PER_SECOND
"""ns: a stamp that is later by more than this is one of another clock."""

END_OF_STAMPS = (MAX_EPOCH + 1) * NANOSECONDS_PER_SECOND
"""End (ns) of the stamps that a recording can have."""

MAX_LEAD = 5.0
"""Largest time (s) by which one motion is received ahead of the others. Its further states stay in the queue."""

FIRST_STATES = 8
"""Number of states that show whether a live system sends velocities, and the rate of its poses."""

SHORTEST_SLICE = 0.0025
"""Wall time (s) from the start of one time slice to that of the next. It limits the processor time of many samples."""

LONGEST_SLICE = 0.005
"""Time (s) of states without a sample after which a time slice is computed. Messages with a latency wait for it."""

SHORTEST_PAUSE = 0.001
"""Wall time (s) from one receipt of states to the next if a sample is due. It limits the processor time of states."""


@dataclass(eq=False)
class ModelFollower:
    """The states of one model from a live system.

    subscriber: receives the states.
    model: the name of the model.
    may_upsample: an IMU may be faster than poses without velocities.
    """

    subscriber: Subscriber
    model: str
    may_upsample: bool = False
    _motion: ReceivedMotion | None = None
    _epoch_ns: int = 0
    _first_states: list[StampedState] = field(default_factory=list)
    _derivatives: PoseDerivatives | None = None
    _velocity_check: VelocityCheck = field(default_factory=VelocityCheck)
    _last_stamp: int = -1
    _error: MotionError | None = None
    _has_invalid_state: bool = False
    _has_unordered_state: bool = False
    _last_arrival: float = 0.0
    _is_silent: bool = False

    def receive(self, timeout: float) -> list[StampedState]:
        """Return new states with increasing stamps; none after `timeout` (s).

        Raises `MotionError` if the states have ended, or the clock of the live system has jumped.
        """
        check_interrupt()
        if self._error is not None:
            raise self._error
        try:
            received = self.subscriber.receive(timeout)
        except MotionError as error:
            self._error = error
            raise
        self._last_arrival = self._last_arrival or time.monotonic()
        states: list[StampedState] = []
        for state in received:
            if not 0 <= state.stamp < END_OF_STAMPS:
                self._error = self._make_stamp_error(state.stamp)
                break
            if self._last_stamp >= 0 and state.stamp > self._last_stamp + LARGEST_GAP:
                self._error = self._make_jump_error("forward", state.stamp, "use one clock in all programs")
                break
            if state.stamp > self._last_stamp:
                self._last_stamp = state.stamp
                states.append(state)
            elif state.stamp < self._last_stamp - MAX_BACKWARD_JUMP:
                remedy = "start the run again after a restart of the live system"
                self._error = self._make_jump_error("back", state.stamp, remedy)
                break
            elif not self._has_unordered_state:
                self._has_unordered_state = True
                LOG.warning("%s: %s: a state with an earlier or equal stamp is ignored", *self._peer)
        if states:
            self._last_arrival, self._is_silent = time.monotonic(), False
        elif not self._is_silent and time.monotonic() - self._last_arrival > SILENCE_TIMEOUT:
            self._is_silent = True
            LOG.warning("%s: %s: no state for %.0f s; the run waits", *self._peer, SILENCE_TIMEOUT)
        return states

    def _make_jump_error(self, direction: str, stamp: int, remedy: str) -> MotionError:
        """Return the error for a stamp (ns) far from the last one."""
        problem = f"the clock jumped {direction} from {self._last_stamp / 1e9:.9g} to {stamp / 1e9:.9g} s"
        return MotionError(f"{self.subscriber.topic}: {problem}", where=Where(self.subscriber.url), remedy=remedy)

    def _make_stamp_error(self, stamp: int) -> MotionError:
        """Return the error for a stamp (ns) that no recording can have."""
        return MotionError(
            f"{self.subscriber.topic}: stamp of a state (s)",
            f"{stamp / 1e9:.9g}",
            allowed=f"must be from 0 to {MAX_EPOCH}",
            where=Where(self.subscriber.url),
            remedy="use simulated or Unix time in the live system",
        )

    @property
    def error(self) -> MotionError | None:
        """Why no states follow; None while they can."""
        return self._error

    @property
    def _peer(self) -> tuple[str, str]:
        """URL and topic, for messages."""
        return self.subscriber.url, self.subscriber.topic

    def wait_for_states(self, wait: float, start: float) -> None:
        """Wait for valid states. Raises `MotionError` without them `wait` (s) after `start` (s, monotonic)."""
        deadline = start + wait
        while len(self._first_states) < FIRST_STATES:
            self._first_states += [stamped for stamped in self.receive(POLL) if self._make_row(stamped) is not None]
            if len(self._first_states) < FIRST_STATES and time.monotonic() > deadline:
                problem = f"{self.subscriber.topic}: {format_count(len(self._first_states), 'state')} in {wait:g} s"
                raise MotionError(
                    problem,
                    allowed=f"needs {FIRST_STATES} to begin",
                    where=Where(self.subscriber.url),
                    remedy="start the live system first, or give the option wait=SECONDS",
                )
        states = [stamped.state for stamped in self._first_states]
        if all(state.velocity is None for state in states) or all(state.angular_velocity is None for state in states):
            self._derivatives = PoseDerivatives()

    @property
    def first_stamp(self) -> int:
        """The stamp (ns) of the first state."""
        return self._first_states[0].stamp

    def check_rates(self, world: World) -> None:
        """Raise `MotionError` for an IMU that needs more than the poses of the live system have."""
        if self._derivatives is None:
            return
        spacing = statistics.median(np.diff([state.stamp for state in self._first_states]).tolist()) / 1e9
        LOG.warning(
            "%s: %s: poses without velocities, %.3g Hz: a polynomial gives the derivatives; the latency is %.3g s",
            *self._peer,
            1.0 / spacing,
            2.0 * spacing,
        )
        for sensor in world.sensors:
            needs_more = isinstance(sensor.spec, Imu) and sensor.rate > 1.01 / spacing
            if sensor.model == self.model and needs_more and not self.may_upsample:
                raise MotionError(
                    f"{self.subscriber.topic}: poses at {1.0 / spacing:.3g} Hz for {sensor.name}",
                    f"{sensor.rate:g} Hz",
                    allowed="an IMU must not be faster than poses without velocities",
                    where=Where(self.subscriber.url),
                    remedy="use a source with velocities, a lower rate of the IMU, or the option upsample=1",
                )

    def begin(self, epoch: int) -> None:
        """Start the motion; times count from the second `epoch`."""
        self._epoch_ns = epoch * NANOSECONDS_PER_SECOND
        states, self._first_states = self._first_states, []
        self.extend(states)

    @property
    def motion(self) -> ReceivedMotion:
        """The motion so far. Raises `MotionError` before its second state."""
        if self._motion is None or not self._motion.has_step:
            raise MotionError(self.subscriber.topic, allowed="needs two states", where=Where(self.subscriber.url))
        return self._motion

    def _make_row(self, stamped: StampedState) -> FloatArray | None:
        """Return a state as a row (19,); None for an invalid one, with a warning for the first."""
        try:
            return state_row(stamped.state, self.model)
        except MotionError as error:
            if not self._has_invalid_state:
                self._has_invalid_state = True
                LOG.warning("%s: %s: an invalid state is ignored: %s", *self._peer, error)
            return None

    def extend(self, states: Sequence[StampedState]) -> None:
        """Append states to the motion."""
        for stamped in states:
            t, row = (stamped.stamp - self._epoch_ns) / 1e9, self._make_row(stamped)
            if row is None:
                continue
            if not self._velocity_check.is_done and (problem := self._velocity_check.add(t, row)):
                LOG.warning("%s: %s: %s; check their axes, unit and delay", *self._peer, problem)
            for item in [(t, row)] if self._derivatives is None else self._derivatives.append(t, row):
                if self._motion is None:
                    self._motion = ReceivedMotion(*item, LogSource(self.subscriber.url, self.subscriber.topic))
                else:
                    self._motion.append(*item)


def open_followers(world: World, urls: Mapping[str, str], stack: ExitStack) -> list[ModelFollower]:
    """Connect to the live systems of the models and wait for their first states. `stack` disconnects.

    urls: by model name.

    Raises `MotionError` and `SimulationError`.
    """
    options, start = check_motion_urls(urls), time.monotonic()
    followers = []
    for name, text in urls.items():
        model = world.model(name)
        context = make_log_context(world.environment, name, model.link(model.canonical_link).pose, model.drive)
        frame = DrivenFrame(model.canonical_link, context, model.pose, model.drive)
        with interruptible():
            subscriber = stack.enter_context(open_subscriber(text, frame))
        followers.append(ModelFollower(subscriber, name, options[name].may_upsample))
    for follower in followers:
        follower.wait_for_states(options[follower.model].wait, start)
        follower.check_rates(world)
    return followers


class RunOptions(NamedTuple):
    """The options of a motion URL that the run reads.

    wait: longest time (s) until the first states.
    may_upsample: an IMU may be faster than poses without velocities.
    """

    wait: float
    may_upsample: bool


def check_motion_urls(urls: Mapping[str, str]) -> dict[str, RunOptions]:
    """Return the options of motion URLs by model name. Raises `MotionError` for an invalid URL. Opens no connection."""
    options = {}
    for name, text in urls.items():
        _, url = parse_motion_url(text)
        options[name] = RunOptions(_parse_wait(url), _parse_upsample(url.options, text))
    return options


def _parse_wait(url: StreamUrl) -> float:
    """Return the option `wait` of a motion URL (s). Raises `MotionError`."""
    try:
        return parse_wait(url, DEFAULT_WAIT)
    except RecordingError as error:
        raise convert_error(error, MotionError) from error


def _parse_upsample(options: Mapping[str, str], url: str) -> bool:
    """Return the option `upsample` of a motion URL. Raises `MotionError`."""
    text = options.get("upsample", "0")
    if text not in ("0", "1"):
        raise MotionError("option upsample", text, allowed="must be 0 or 1", where=Where(url))
    return text == "1"


def begin_motions(followers: Sequence[ModelFollower]) -> int:
    """Start the motions at the first states; return the epoch, the whole second before all of them."""
    stamps = [follower.first_stamp for follower in followers]
    if max(stamps) - min(stamps) > LARGEST_GAP:
        first, last = (followers[stamps.index(stamp)] for stamp in (min(stamps), max(stamps)))
        raise MotionError(
            f"first states of {first.model} and {last.model} (s)",
            f"{min(stamps) / 1e9:.9g} and {max(stamps) / 1e9:.9g}",
            allowed="must be of one clock",
            where=Where(last.subscriber.url),
            remedy="use simulated time, or Unix time, for all of them",
        )
    epoch = min(stamps) // NANOSECONDS_PER_SECOND
    for follower in followers:
        follower.begin(epoch)
    return epoch


def compute_memory(world: World) -> float:
    """Return the longest time (s) before a sample for which a sensor needs the motion."""
    # An averaging sensor needs the motion since its sample before.
    return max((get_max_age(sensor.spec) + 2.0 / sensor.rate for sensor in world.sensors), default=0.0)


class LiveMotions:
    """The followers of a run that is stepped by the caller.

    has_ended: true if a live system has ended.
    """

    def __init__(self, followers: Sequence[ModelFollower], connections: ExitStack, memory: float) -> None:
        """Store the followers, the stack that disconnects them, and the memory (s) of `compute_memory`."""
        self._followers, self._connections, self._memory = followers, connections, memory
        self._end = 0.0
        self.has_ended = False

    def advance(self, end: float) -> None:
        """Wait until all motions are known up to `end` (s). Raises `MotionError` if one ends before."""
        for follower in self._followers:
            follower.motion.forget(self._end - self._memory)
            while follower.motion.last_time < end:
                try:
                    follower.extend(follower.receive(POLL))
                except MotionError:
                    self.has_ended = True
                    raise
        self._end = end

    def close(self) -> None:
        """Disconnect. A second call does nothing."""
        self._connections.close()


def find_end(motions: Sequence[ReceivedMotion], stop: float) -> float:
    """Return the time (s) up to which all motions are known, at most that of the first state at or after `stop`."""
    last = min(motion.last_time for motion in motions)
    return min(float(motion.list_times(stop, math.inf)[0]) for motion in motions) if last >= stop else last


def compute_received_slices(
    session: Session, followers: Sequence[ModelFollower], duration: float | None, controls: RunControls
) -> Iterator[TimeSlice]:
    """Yield the time slices of the first run as their states arrive, until `duration` (s) after the start.

    Without a duration the run ends when a live system ends. Raises `MotionError` if one ends before the duration.
    """
    run = ControlledRun(session, controls)
    memory = compute_memory(session.world)
    motions = [follower.motion for follower in followers]
    length = session.compute_slice_length()
    # Motions of files beside those of live systems: the run ends with the first one.
    limit = min([motion.end for motion in session.link_motions.values()], default=math.inf)
    stop = math.inf if duration is None else session.start + duration
    if limit < stop < math.inf:
        allowed = f"must be at most {limit - session.start:.9g} s, where another motion ends"
        raise SimulationError("duration", duration, allowed=allowed, remedy="give a shorter duration")
    start, next_sample, next_turn = 0.0, 0.0, 0.0
    while start < min(stop, limit):
        delay = next_turn - time.monotonic()
        if delay > 0.0:
            time.sleep(delay)
        now = time.monotonic()
        slowest = min(motion.last_time for motion in motions)
        for follower in followers:
            if follower.error is None and follower.motion.last_time - slowest < MAX_LEAD:
                with suppress(MotionError):  # in `follower.error`
                    follower.extend(follower.receive(POLL))
        last = find_end(motions, stop)
        ended = next((one.error for one in followers if one.error is not None and one.motion.last_time <= last), None)
        is_due = last >= min(next_sample, start + LONGEST_SLICE, stop, limit) or ended is not None
        if is_due and last >= max(start, session.start):
            end = min(math.nextafter(last, math.inf), limit)  # with the samples at the instant of the state
            while start < end:
                slice_end = end if end - start <= 1.5 * length else start + length
                yield from run.compute_slices(start, slice_end)
                start = slice_end
            for motion in motions:
                motion.forget(start - memory)
            next_sample = session.find_next_sample(start)
            next_turn = now + SHORTEST_SLICE
        # If the live system runs in real time, the first state at or after the next sample arrives in this time.
        expected = next_sample - last + max(motion.last_step for motion in motions)
        next_turn = max(next_turn, now + min(max(expected, SHORTEST_PAUSE), LONGEST_SLICE))
        if ended is not None and start < min(stop, limit):
            if duration is not None:
                raise ended
            LOG.warning("%s; the run ends", ended)
            return
