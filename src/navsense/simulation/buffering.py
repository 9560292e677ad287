"""Groups of time slices between the simulation and the writers.

Simulating several time slices and then writing them is faster: each stage keeps its code in the processor cache.
Content and order do not change. A run that is killed loses at most `MAX_BUFFERED_SECONDS` of work that was not written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from navsense.core.readings import TimeSlice

MAX_BUFFERED_SAMPLES = 60_000
"""Largest number of waiting samples of all sensors, in addition to one time slice."""

MAX_BUFFERED_SECONDS = 0.25
"""Wall time (s) after which waiting time slices are yielded."""


def buffer_slices(time_slices: Iterable[TimeSlice], now: Callable[[], float] = time.monotonic) -> Iterator[TimeSlice]:
    """Yield time slices in groups: some are computed before the first is yielded.

    The waiting time slices are yielded before an error of the source is raised.
    """
    waiting: list[TimeSlice] = []
    count, since, source = 0, 0.0, iter(time_slices)
    while True:
        try:
            time_slice = next(source, None)
        except BaseException:
            yield from waiting
            raise
        if time_slice is None:
            break
        since = since if waiting else now()
        waiting.append(time_slice)
        count += sum(reading.time.size for reading in time_slice.readings.values())
        if count >= MAX_BUFFERED_SAMPLES or now() - since >= MAX_BUFFERED_SECONDS:
            yield from waiting
            waiting, count = [], 0
    yield from waiting
