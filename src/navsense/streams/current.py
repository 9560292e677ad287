"""The contract of a subscriber of a current: a live system that sends the velocity of the water during a run.

    SCHEME://HOST:PORT/PATH?topic=TOPIC&type=TYPE&frame=FRAME

`runner.current_feed` takes the velocities out of the queue and changes the current of the run.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from typing import Self

from navsense.core.errors import FieldError, Where
from navsense.core.text import format_count
from navsense.core.typing import Vector

LOG = logging.getLogger(__name__)

MAX_QUEUED_SAMPLES = 100_000
"""Largest number of samples in a queue."""


@dataclass(frozen=True, slots=True)
class CurrentSample:
    """A velocity (m/s) and its stamp: ns of the clock of the live system.

    >>> ns.streams.CurrentSample(1_500_000_000, (0.3, 0.0, 0.0)).velocity
    (0.3, 0.0, 0.0)
    """

    stamp: int
    velocity: Vector


class CurrentSubscriber:
    """Receives the velocity of the water from a live system.

    The thread of the transport calls `put` for each velocity and `fail` at the end of the connection. The run calls
    `receive` and `close`. A transport derives a class that overrides `disconnect`.

    >>> subscriber = ns.streams.CurrentSubscriber("ros1://", "topic /current")
    >>> subscriber.put(1_500_000_000, (0.3, 0.0, 0.0))
    >>> subscriber.receive(0.1)[0].velocity
    (0.3, 0.0, 0.0)

    url: of the live system.
    topic: what the velocities come from, for messages: "topic /hydrodynamics/current_velocity".
    frame: of the velocities: "world", "enu" or "ned".
    """

    def __init__(self, url: str, topic: str, frame: str = "world") -> None:
        """Start with an empty queue."""
        self.url, self.topic, self.frame = url, topic, frame
        self.dropped = 0
        self._queue: deque[CurrentSample] = deque(maxlen=MAX_QUEUED_SAMPLES)
        self._condition = threading.Condition()
        self._error: FieldError | None = None
        self._is_closed = False
        self._last = -1

    @property
    def source(self) -> str:
        """The live system and its topic, for recordings and reports."""
        return f"{self.url}, {self.topic}"

    def put(self, stamp: int, velocity: Vector) -> None:
        """Append a velocity to the queue. One that is earlier than the last is dropped, and logged once."""
        with self._condition:
            if self._is_closed or self._error is not None:
                return
            if stamp < self._last or len(self._queue) == MAX_QUEUED_SAMPLES:
                self.dropped += 1
                if self.dropped == 1:
                    reason = "has stamps that go back" if stamp < self._last else "is faster than the run reads it"
                    LOG.warning("%s: %s %s; samples are dropped", self.url, self.topic, reason)
                if stamp < self._last:
                    return
            self._last = stamp
            self._queue.append(CurrentSample(stamp, velocity))
            self._condition.notify()

    def fail(self, problem: str, *, allowed: str = "", remedy: str = "") -> None:
        """End the velocities, for example because the live system closed the connection. Only the first call counts."""
        with self._condition:
            if self._error is None:
                where = Where(self.url)
                self._error = FieldError(f"{self.topic}: {problem}", allowed=allowed, where=where, remedy=remedy)
            self._condition.notify()

    def receive(self, timeout: float) -> list[CurrentSample]:
        """Return the velocities since the last call, in order; none after `timeout` (s) without one.

        Raises `FieldError` after the last velocity if the velocities have ended.
        """
        with self._condition:
            if not self._queue and self._error is None and not self._is_closed:
                self._condition.wait(timeout)
            samples = list(self._queue)
            self._queue.clear()
            if not samples and self._error is not None:
                raise self._error
        return samples

    def close(self) -> None:
        """Disconnect. Velocities that arrive later are not queued. A second call does nothing."""
        with self._condition:
            if self._is_closed:
                return
            self._is_closed = True
            self._condition.notify()
        self.disconnect()
        if self.dropped:
            LOG.warning("%s: %s: %s dropped", self.url, self.topic, format_count(self.dropped, "sample"))

    def disconnect(self) -> None:
        """Close the connection and end the threads of the transport."""

    def __enter__(self) -> Self:
        """Return the subscriber."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the subscriber."""
        self.close()
