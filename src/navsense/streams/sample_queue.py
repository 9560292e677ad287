"""The queue between a live system that sends samples and the run that reads them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import ClassVar, Generic, Self, TypeVar

from navsense.core.errors import FieldError, MotionError, Where
from navsense.core.text import format_count

LOG = logging.getLogger(__name__)

Sample = TypeVar("Sample")


class SampleQueue(Generic[Sample]):
    """Samples of one topic of a live system, from the thread of its transport to a run.

    The transport puts samples into the queue and calls `fail` at the end of the connection. The run calls `receive` and
    `close`. A transport overrides `disconnect`.

    url: of the live system.
    topic: the source of the samples, for messages: "topic /odom".
    dropped: number of samples that a full queue has dropped.
    """

    error_type: ClassVar[type[FieldError | MotionError]]
    """Type of the error that ends the samples."""

    sample_name: ClassVar[str] = "sample"
    """Name of a sample in messages."""

    def __init__(self, url: str, topic: str) -> None:
        """Start with an empty queue."""
        self.url, self.topic = url, topic
        self.dropped = 0
        self._queue: deque[Sample] = deque()
        self._condition = threading.Condition()
        self._error: FieldError | MotionError | None = None
        self._is_closed = False

    def append(self, sample: Sample, limit: int) -> None:
        """Append a sample, unless the samples have ended. A full queue drops its oldest sample, and logs it once."""
        with self._condition:
            if not self._is_open:
                return
            if len(self._queue) >= limit:
                self._queue.popleft()
                self.dropped += 1
                if self.dropped == 1:
                    LOG.warning("%s: %s: the run is too slow and loses %ss", self.url, self.topic, self.sample_name)
            self._queue.append(sample)
            self._condition.notify()

    def keep_newest(self, sample: Sample) -> None:
        """Store a sample in place of all samples in the queue, unless the samples have ended."""
        with self._condition:
            if self._is_open:
                self._queue.clear()
                self._queue.append(sample)
                self._condition.notify()

    @property
    def _is_open(self) -> bool:
        return not self._is_closed and self._error is None

    def fail(self, problem: str, *, allowed: str = "", remedy: str = "") -> None:
        """End the samples, for example because the live system closed the connection. Later calls do nothing."""
        with self._condition:
            if self._error is None:
                where = Where(self.url)
                self._error = self.error_type(f"{self.topic}: {problem}", allowed=allowed, where=where, remedy=remedy)
            self._condition.notify()

    def receive(self, timeout: float) -> list[Sample]:
        """Return the samples since the last call, in order. Without a sample for `timeout` (s), return an empty list.

        Raises `error_type` after the last sample if the samples have ended.
        """
        with self._condition:
            if not self._queue and self._is_open:
                self._condition.wait(timeout)
            samples = list(self._queue)
            self._queue.clear()
            if not samples and self._error is not None:
                raise self._error
        return samples

    def close(self) -> None:
        """Disconnect. Samples that arrive later are not queued. A second call does nothing."""
        with self._condition:
            if self._is_closed:
                return
            self._is_closed = True
            self._condition.notify()
        self.disconnect()
        if self.dropped:
            LOG.warning("%s: %s: %s lost", self.url, self.topic, format_count(self.dropped, self.sample_name))

    def disconnect(self) -> None:
        """Close the connection and end the threads of the transport."""

    def __enter__(self) -> Self:
        """Return the queue."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the queue."""
        self.close()
