"""The stamps of received messages: that of the header, the time of /clock, or the time of receipt.

- A type with a header has its stamp. A stamp of 0 is the start of a simulation, a node that starts before its clock, or
  a publisher that sets none. The second message tells, unless a node publishes /clock: then 0 is a time.
- A type without a header gets the last time of /clock, if a node publishes it. Of the messages of one time of /clock,
  the first one counts. Without /clock it gets the time of receipt.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from navsense.streams.ros1.master import MasterError
from navsense.streams.ros1.md5 import CLOCK_MD5
from navsense.streams.ros1.subscriber_node import SubscriberNode
from navsense.streams.ros1.subscription import Connection, PeerError
from navsense.streams.ros_messages import CLOCK_TYPE, Reader, decode_clock
from navsense.streams.ros_motion import PublisherChoice
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)

CLOCK = "/clock"

UNIX_STAMP = 10**18
"""ns, the year 2001. Stamps from it on are Unix time, earlier ones are times of a simulation."""

Item = TypeVar("Item")


class ClockTopic:
    """The time of the topic /clock.

    time: the last one (ns), None before the first.
    """

    def __init__(self, node: SubscriberNode, fail: Callable[[str], None]) -> None:
        """Subscribe before the start of the node."""
        self.time: int | None = None
        self._fail = fail
        self._choice = PublisherChoice(node.subscribe(CLOCK, CLOCK_TYPE, self).warnings)

    def check_type(self, connection: Connection, md5: str) -> None:
        """Raise `PeerError` for another type."""
        if (connection.type, md5) != (CLOCK_TYPE, CLOCK_MD5):
            raise PeerError(f"publishes {CLOCK} as {connection.type} with md5sum {md5}, not {CLOCK_TYPE}")

    def handle(self, connection: Connection, message: bytes) -> None:
        """Store the time of a message."""
        try:
            if self._choice.accepts(connection):
                self.time = decode_clock(Reader(message))
        except ValueError as error:
            raise PeerError(f"sent {error}") from error

    def fail(self, problem: str) -> None:
        """End the subscription of the topic that needs the clock."""
        self._fail(f"{CLOCK}: {problem}")


class Stamps(Generic[Item]):
    """Gives the messages of a topic their stamps, and queues them.

    clock: None if the messages have a header.
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
        """Log messages name the topic. `put` queues an item with its stamp (ns); `fail` ends the topic."""
        self.clock = ClockTopic(node, fail) if needs_clock else None
        self._node, self._warnings, self._topic, self._put, self._fail = node, warnings, topic, put, fail
        self._has_clock: bool | None = None
        self._pending: tuple[int, Item] | None = None
        self._source = ""
        self._last: int | None = None

    def put_with_header(self, stamp: int, received: int, item: Item, sender: Connection) -> None:
        """Queue an item of a message with a header. `received`: the time of receipt, ns."""
        if not self._source:
            is_unknown = stamp == 0 and not self.find_clock()
            if is_unknown and self._pending is None:
                self._pending = (received, item)
                return
            self._source = "receipt" if is_unknown else "message"
            if is_unknown:
                text = "the messages have the stamp 0; they get the time of receipt"
                self._warnings.add("stamps", "", text)
            if self._pending is not None and (is_unknown or stamp < UNIX_STAMP):
                self._put(self._pending[0] if is_unknown else 0, self._pending[1])
            self._pending = None
        if self._source == "receipt":
            self._put(received, item)
            return
        last = self._last
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

    def put_without_header(self, received: int, item: Item) -> None:
        """Queue an item of a message without a header, with the time of /clock, or of its receipt (ns)."""
        if self._has_clock is None:
            source = f"the time of {CLOCK}" if self.find_clock() else "the time of receipt"
            LOG.info("%s: %s: the messages have no stamp; they get %s", self._node.url, self._topic, source)
        if not self._has_clock or self.clock is None:
            self._put(received, item)
            return
        stamp = self.clock.time
        if stamp is None:
            self._warnings.add("clock", "", f"messages before the first one of {CLOCK} are dropped")
        elif stamp != self._last:
            self._last = stamp
            self._put(stamp, item)

    def read_time(self) -> int | None:
        """Return the time now (ns): of /clock, None before its first message, or of the system."""
        return self.clock.time if self.clock is not None and self.find_clock() else time.time_ns()

    def find_clock(self) -> bool:
        """Return True if a node publishes /clock. Asks the master at the first call."""
        if self._has_clock is None:
            self._has_clock = False
            with contextlib.suppress(MasterError):
                self._has_clock = bool(self._node.master.list_topics()[0].get(CLOCK))
        return self._has_clock
