"""The stamps of received messages: that of the header, the time of /clock, or the time of receipt.

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
from typing import Generic, Literal, TypeVar

from navsense.streams.ros1.states import CLOCK_MD5, CLOCK_TYPE, decode_clock
from navsense.streams.ros1.subscriber_node import PublisherChoice, SubscriberNode
from navsense.streams.ros1.subscription import Connection, PeerError
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)

CLOCK = "/clock"

UNIX_STAMP = 10**18
"""ns, the year 2001. Stamps from it on are Unix time, earlier ones are times of a simulation."""

START_GAP = 10**9
"""Largest time (ns) from the start of a simulation to its second message. A node of rospy or roscpp on simulated time
sends the stamp 0 until it receives /clock, which can then be at any time."""

DECISION_TIME = 1.0
"""Time (s) until a publisher of /clock is connected, and until stamps of 0 show that a publisher sets none."""

Source = Literal["", "message", "clock", "receipt"]
"""The source of the times of a topic, "" before it is known."""

EFFECTS = {"clock": f"they get the time of {CLOCK}", "receipt": "they get the time of receipt"}
"""Source -> its effect on messages without stamps."""

Item = TypeVar("Item")


class ClockTopic:
    """The time of the topic /clock.

    time: the last one (ns), None before the first.
    """

    def __init__(self, node: SubscriberNode, fail: Callable[[str], None]) -> None:
        """Subscribe before the start of the node."""
        self.time: int | None = None
        self._fail = fail
        # A run that publishes /clock does not follow its own time.
        self._subscription = node.subscribe(CLOCK, CLOCK_TYPE, self, from_own_nodes=False)
        self._choice = PublisherChoice(self._subscription.warnings)

    def has_publisher(self, *, connected: bool) -> bool:
        """Return True if the master lists a node that publishes /clock. connected: it is connected too."""
        return any(one.is_listed and (one.is_open or not connected) for one in self._subscription.connections)

    def check_type(self, connection: Connection, md5: str) -> None:
        """Raise `PeerError` for another type."""
        if (connection.type, md5) != (CLOCK_TYPE, CLOCK_MD5):
            raise PeerError(f"publishes {CLOCK} as {connection.type} with md5sum {md5}, not {CLOCK_TYPE}")

    def handle(self, connection: Connection, message: bytes) -> None:
        """Store the time of a message."""
        try:
            if self._choice.accepts(connection):
                self.time = decode_clock(message)
        except ValueError as error:
            raise PeerError(f"sent {error}") from error

    def fail(self, problem: str) -> None:
        """End the subscription of the topic that needs the clock."""
        self._fail(f"{CLOCK}: {problem}")


class Stamps(Generic[Item]):
    """Gives the messages of a topic their stamps, and queues them.

    clock: None if no message needed it so far.
    """

    def __init__(
        self,
        node: SubscriberNode,
        warnings: WarningLog,
        topic: str,
        *,
        put: Callable[[int, Item], None],
        fail: Callable[[str], None],
        needs_clock: bool,
    ) -> None:
        """Ask the master for /use_sim_time. Raises `MasterError`.

        Log messages name the topic. `put` queues an item with its stamp (ns); `fail` ends the topic. `needs_clock`:
        the messages have no header.
        """
        self._node, self._warnings, self._topic, self._put, self._fail = node, warnings, topic, put, fail
        self._is_simulated = node.master.has_simulated_time()
        self.clock = ClockTopic(node, fail) if needs_clock else None
        self._pending: Item | None = None
        self._source: Source = ""
        self._offset = time.time_ns() - time.monotonic_ns()
        self._first_look = self._first_zero = math.nan
        self._last: int | None = None

    def put_with_header(self, stamp: int, received: int, item: Item, sender: Connection) -> None:
        """Queue an item of a message with a header. `received`: the time of receipt, ns."""
        if stamp or self._source == "message":
            self._put_with_stamp(stamp, item, sender)
        elif self._source or self._detect_missing_stamps():
            self._put_without_stamp(received, item)
        else:
            self._pending = item

    def put_without_header(self, received: int, item: Item) -> None:
        """Queue an item of a message without a header, with the time of /clock, or of its receipt (ns)."""
        if not self._source:
            self._source = self._find_source()
            if not self._source:
                return
            LOG.info("%s: %s: the messages have no stamp; %s", self._node.url, self._topic, EFFECTS[self._source])
        self._put_without_stamp(received, item)

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

    def _put_with_stamp(self, stamp: int, item: Item, sender: Connection) -> None:
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
            self._put(stamp, item)

    def _put_without_stamp(self, received: int, item: Item) -> None:
        if self._source == "receipt":
            self._warn_of_late_clock()
            self._put(received, item)
        elif self.clock is not None and self.clock.time is not None and self.clock.time != self._last:
            self._last = self.clock.time
            self._put(self._last, item)

    def _detect_missing_stamps(self) -> bool:
        """Return True if the publisher sets no stamps, and select the source of its times. Called at each stamp 0."""
        if self.clock is None:
            self.clock = ClockTopic(self._node, self._fail)
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
