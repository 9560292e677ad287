"""The stamps of received states of ROS: that of the header, the time of /clock, or the time of receipt.

- A message with a header has its stamp. The next messages decide what the stamp 0 is: the start of a simulation, a node
  that starts before its clock, or a publisher that sets no stamps.
- Stamps that follow within `START_GAP` make the first message the start of a simulation. Later stamps drop it.
- A publisher sets no stamps if they stay 0 for `DECISION_TIME`, while the time of /clock is not 0.
- Messages without stamps get the last time of /clock. Of the messages of one time of /clock, the first one is used.
- Without a publisher of /clock, they get the time of receipt. With the parameter /use_sim_time, they wait for one.

Source: the ROS wiki, "Clock".
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Literal, Protocol

from navsense.motion.driven import State
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)

CLOCK = "/clock"

UNIX_STAMP = 10**18
"""ns, the year 2001. Stamps from it on are Unix time, earlier ones are times of a simulation."""

START_GAP = 10**9
"""Largest time (ns) from the start of a simulation to its second message. A node of ROS on simulated time
sends the stamp 0 until it receives /clock, which can then be at any time."""

DECISION_TIME = 1.0
"""Time (s) until a publisher of /clock is connected, and until stamps of 0 show that a publisher sets none."""

Source = Literal["", "message", "clock", "receipt"]
"""The source of the times of a topic, "" before it is known."""

EFFECTS = {"clock": f"they get the time of {CLOCK}", "receipt": "they get the time of receipt"}
"""Source -> its effect on messages without stamps."""


class TopicClock(Protocol):
    """The topic /clock. time: the last one (ns), None before the first."""

    time: int | None

    def has_publisher(self, *, connected: bool) -> bool:
        """Return True if another program publishes /clock. connected: it is connected too."""
        ...


class MessageStamps:
    """Gives the messages of a topic their stamps, and queues their states.

    clock: None if no message needed it so far.
    """

    def __init__(
        self,
        name: str,
        warnings: WarningLog,
        *,
        put: Callable[[int, State], None],
        fail: Callable[[str], None],
        open_clock: Callable[[], TopicClock],
        needs_clock: bool,
        is_simulated: bool = False,
    ) -> None:
        """Log messages begin with `name`.

        put: queues a state with its stamp (ns).
        fail: ends the topic.
        open_clock: subscribes to /clock.
        needs_clock: the messages have no header.
        is_simulated: the nodes use the time of /clock, so messages without stamps wait for it.
        """
        self._name, self._warnings, self._put, self._fail = name, warnings, put, fail
        self._open_clock, self._is_simulated = open_clock, is_simulated
        self.clock = open_clock() if needs_clock else None
        self._pending: State | None = None
        self._source: Source = ""
        self._offset = time.time_ns() - time.monotonic_ns()
        self._first_look = self._first_zero = math.nan
        self._last: int | None = None

    def put_with_header(self, stamp: int, received: int, state: State, sender: object) -> None:
        """Queue the state of a message with a header. `received`: the time of receipt, ns."""
        if stamp or self._source == "message":
            self._put_with_stamp(stamp, state, sender)
        elif self._source or self._detect_missing_stamps():
            self._put_without_stamp(received, state)
        else:
            self._pending = state

    def put_without_header(self, received: int, state: State) -> None:
        """Queue the state of a message without a header, with the time of /clock, or of its receipt (ns)."""
        if not self._source:
            self._source = self._find_source()
            if not self._source:
                return
            LOG.info("%s: the messages have no stamp; %s", self._name, EFFECTS[self._source])
        self._put_without_stamp(received, state)

    def read_system_time(self) -> int:
        """Return the time of the system (ns), from a clock that nobody sets: it never goes back."""
        return self._offset + time.monotonic_ns()

    def read_time(self) -> int | None:
        """Return the time now (ns): of /clock, None before its first message, or of the system."""
        self._source = self._source or self._find_source()
        if self._source == "receipt":
            self._warn_of_late_clock()
            return self.read_system_time()
        return self.clock.time if self.clock is not None else None

    def _put_with_stamp(self, stamp: int, state: State, sender: object) -> None:
        if self._source not in ("", "message"):
            self._fail(
                f"the messages have stamps from {stamp * 1e-9:.9f} s on, but had the stamp 0 before; "
                "start the clock of the publisher before the run"
            )
            return
        if self._pending is not None and stamp <= START_GAP:
            self._put(0, self._pending)
        self._source, self._pending, last = "message", None, self._last
        if stamp == 0 and last is not None and last >= UNIX_STAMP:
            text = f"{sender} sent a message with the stamp 0 after Unix time, which is dropped"
            self._warnings.add("zero", sender, text)
        elif last is not None and (last >= UNIX_STAMP) != (stamp >= UNIX_STAMP):
            self._fail(
                f"the stamps change between a simulation and Unix time at {stamp * 1e-9:.9f} s; "
                "use one clock: use_sim_time in all nodes, or in none"
            )
        else:
            self._last = stamp
            self._put(stamp, state)

    def _put_without_stamp(self, received: int, state: State) -> None:
        if self._source == "receipt":
            self._warn_of_late_clock()
            self._put(received, state)
        elif self.clock is not None and self.clock.time is not None and self.clock.time != self._last:
            self._last = self.clock.time
            self._put(self._last, state)

    def _detect_missing_stamps(self) -> bool:
        """Return True if the publisher sets no stamps, and select the source of its times. Called at each stamp 0."""
        if self.clock is None:
            self.clock = self._open_clock()
        source, now = self._find_source(), time.monotonic()
        can_be_time = not source or self.clock.time == 0
        if can_be_time or math.isnan(self._first_zero):
            self._first_zero = now
        if can_be_time or now - self._first_zero < DECISION_TIME:
            return False
        self._source, self._pending = source, None
        self._warnings.add("stamps", "", f"the messages have the stamp 0; {EFFECTS[source]}")
        return True

    def _find_source(self) -> Source:
        """Return the source of the times of messages without stamps, "" as long as /clock can begin. Never waits."""
        clock, now = self.clock, time.monotonic()
        if clock is None or clock.time is not None:
            return "clock"
        if math.isnan(self._first_look):
            self._first_look = now
        is_late = now - self._first_look >= DECISION_TIME
        if not self._is_simulated and not clock.has_publisher(connected=is_late):
            return "receipt"
        if is_late:
            text = f"waiting for the first message of {CLOCK}; messages before it are dropped"
            self._warnings.add("clock", "", text)
        return ""

    def _warn_of_late_clock(self) -> None:
        """Warn of a publisher of /clock that started after the first message."""
        if self.clock is not None and self.clock.time is not None:
            text = f"{CLOCK} has a publisher now, but the messages keep the time of receipt; start the run again"
            self._warnings.add("late clock", "", text)
