"""The stamps of received messages of ROS: that of the header, the time of /clock, or the time of receipt.

- A message with a header has its stamp. The stamp 0 is the start of a simulation, that of a node that starts before its
  clock, or that of a publisher that sets none. The next messages decide.
- Stamps that follow within `START_GAP` make the first message the start of a simulation. Later stamps drop it.
- A publisher sets no stamps if they stay 0 for `DECISION_TIME`, while the time of /clock is not 0.
- Messages without stamps get the last time of /clock. Of the messages of one time of /clock, the first one is used.
- Without a publisher of /clock, they get the time of receipt.

Source: the ROS wiki, "Clock".
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Generic, Literal, Protocol, TypeVar

from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)

CLOCK = "/clock"

UNIX_STAMP = 10**18
"""ns, the year 2001. Stamps from it on are Unix time, earlier ones are times of a simulation."""

START_GAP = 10**9
"""Largest time (ns) from the start of a simulation to its second message. A node on simulated time sends the stamp 0
until it receives /clock, which can then be at any time."""

DECISION_TIME = 1.0
"""Time (s) until a publisher of /clock is connected, and until stamps of 0 show that a publisher sets none."""

Source = Literal["", "message", "clock", "receipt"]
"""The source of the times of a topic, "" before it is known."""

EFFECTS = {"clock": f"they get the time of {CLOCK}", "receipt": "they get the time of receipt"}
"""Source -> its effect on messages without stamps."""

Item = TypeVar("Item")


class Clock(Protocol):
    """The topic /clock. time: the last one (ns), None before the first."""

    time: int | None

    def has_publisher(self, *, connected: bool) -> bool:
        """Return True if another program publishes /clock. connected: it is connected too."""
        ...


class MessageStamps(Generic[Item]):
    """Gives the messages of a topic their stamps, and queues them.

    clock: None if no message needed it so far.
    """

    def __init__(
        self,
        name: str,
        warnings: WarningLog,
        *,
        put: Callable[[int, Item], None],
        fail: Callable[[str], None],
        open_clock: Callable[[], Clock],
        needs_clock: bool,
    ) -> None:
        """Log messages begin with `name`. `put` queues an item with its stamp (ns); `fail` ends the topic.

        `open_clock` subscribes to /clock. `needs_clock`: the messages have no header.
        """
        self._name, self._warnings, self._put, self._fail, self._open_clock = name, warnings, put, fail, open_clock
        self.clock = open_clock() if needs_clock else None
        self._pending: Item | None = None
        self._source: Source = ""
        self._first_look = self._first_zero = math.nan
        self._last: int | None = None

    def put_with_header(self, stamp: int, received: int, item: Item, sender: object) -> None:
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
            LOG.info("%s: the messages have no stamp; %s", self._name, EFFECTS[self._source])
        self._put_without_stamp(received, item)

    def read_time(self) -> int | None:
        """Return the time now (ns): of /clock, None before its first message, or of the system."""
        self._source = self._source or self._find_source()
        if self._source == "receipt":
            self._warn_of_late_clock()
            return time.time_ns()
        return self.clock.time if self.clock is not None else None

    def _put_with_stamp(self, stamp: int, item: Item, sender: object) -> None:
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
            self.clock = self._open_clock()
        source, now = self._find_source(), time.monotonic()
        if math.isnan(self._first_zero) or not source or self.clock.time == 0:
            self._first_zero = now
        if now - self._first_zero < DECISION_TIME:
            return False
        self._source, self._pending = source, None
        self._warnings.add("stamps", "", f"the messages have the stamp 0; {EFFECTS[source]}")
        return True

    def _find_source(self) -> Source:
        """Return the source of the times of messages without stamps, "" while /clock can decide it. Never waits."""
        clock, now = self.clock, time.monotonic()
        if clock is None or clock.time is not None:
            return "clock"
        if math.isnan(self._first_look):
            self._first_look = now
        is_late = now - self._first_look >= DECISION_TIME
        if not clock.has_publisher(connected=is_late):
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
