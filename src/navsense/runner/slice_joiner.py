"""A writer that joins short time slices, for recordings of live runs and of runs that follow a live system.

Such a run has a time slice each few milliseconds. Each write of a recording has a cost of its own, so several time
slices are written as one. A process that is killed loses at most `LONGEST_JOINED_SLICE` more than otherwise.
"""

from __future__ import annotations

from navsense.core.readings import TimeSlice
from navsense.recordings.dataset import collect
from navsense.recordings.info import RecordingWriter

LONGEST_JOINED_SLICE = 0.25
"""Simulated time (s) after which time slices are written."""


class SliceJoiner(RecordingWriter):
    """Joins consecutive time slices and passes them to another writer."""

    def __init__(self, writer: RecordingWriter) -> None:
        """Start without a time slice."""
        self._writer = writer
        self._slices: list[TimeSlice] = []

    def write(self, time_slice: TimeSlice) -> None:
        """Keep a time slice, or write all of them. Raises `RecordingError` if they cannot be written."""
        self._slices.append(time_slice)
        if time_slice.end - self._slices[0].start >= LONGEST_JOINED_SLICE:
            self._flush()

    def _flush(self) -> None:
        """Write the time slices as one."""
        slices, self._slices = self._slices, []
        if slices:
            changes = tuple(change for time_slice in slices for change in time_slice.changes)
            self._writer.write(TimeSlice(slices[0].start, slices[-1].end, *collect(slices), changes))

    def close(self) -> None:
        """Write the rest and complete the recording. Raises `RecordingError` if this fails."""
        try:
            self._flush()
        except BaseException:
            self._writer.salvage()
            raise
        self._writer.close()

    def salvage(self) -> None:
        """Write the rest and keep what was recorded."""
        try:
            self._flush()
        finally:
            self._writer.salvage()

    def abort(self) -> None:
        """Give up the recording."""
        self._slices = []
        self._writer.abort()
