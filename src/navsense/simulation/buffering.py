"""Windows of a run handed on a few at a time, for whoever makes them and whoever writes them works quicker so.

Each finds its own code near the processor for some windows, not for one. What is handed on is the same, in the same
order; only a run that is killed may lose `PATIENCE` seconds of work with what it was about to hand on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from navsense.core.series import TimeSlice

MAX_BUFFERED_SAMPLES = 60_000
"""So many samples of all sensors wait at most, and one window."""

MAX_BUFFERED_SECONDS = 0.25
"""Wall time (s) after which a window is handed on once the next one is there."""


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
