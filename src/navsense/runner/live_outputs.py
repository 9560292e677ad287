"""Outputs of a live run: streams get each step at once, recordings get several steps together."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from navsense import recordings
from navsense.core.errors import RecordingError
from navsense.core.readings import TimeSlice
from navsense.recordings.dataset import collect
from navsense.recordings.info import RecordingWriter
from navsense.runner.outputs import OutputTarget, check_output, check_outputs_differ, open_output
from navsense.simulation.buffering import MAX_BUFFERED_SAMPLES, MAX_BUFFERED_SECONDS
from navsense.simulation.session import Session
from navsense.streams import Publisher

LOG = logging.getLogger(__name__)


class _BufferedWriter:
    """Writes consecutive time slices together: one of a step costs as much as one of many samples."""

    def __init__(self, writer: RecordingWriter, names: Sequence[str], now: Callable[[], float]) -> None:
        """Start with an empty buffer. `names` is the order of the sensors, `now` returns a time (s)."""
        self.writer, self._names, self._now = writer, names, now
        self._waiting: list[TimeSlice] = []
        self._count, self._since = 0, 0.0

    def write(self, time_slice: TimeSlice) -> None:
        """Write a time slice, or keep it until the buffer is full or old."""
        self._since = self._since if self._waiting else self._now()
        self._waiting.append(time_slice)
        self._count += sum(reading.time.size for reading in time_slice.readings.values())
        if self._count >= MAX_BUFFERED_SAMPLES or self._now() - self._since >= MAX_BUFFERED_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if not self._waiting:
            return
        waiting, self._waiting, self._count = self._waiting, [], 0
        found, truth, current = collect(waiting)
        readings = {name: found[name] for name in self._names if name in found}
        changes = tuple(change for time_slice in waiting for change in time_slice.changes)
        self.writer.write(TimeSlice(waiting[0].start, waiting[-1].end, readings, truth, current, changes))


class LiveOutputs:
    """The outputs of a live run. One that fails is closed and logged, and the others go on.

    A process that is killed loses at most the steps of `MAX_BUFFERED_SECONDS` of its recordings.
    """

    def __init__(
        self,
        outputs: Sequence[OutputTarget],
        session: Session,
        *,
        ros: str,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the outputs and wait for the first subscriber of each stream. Raises `RecordingError`."""
        check_outputs_differ(outputs)
        for output in outputs:
            check_output(output, session.world)
        recorded_run = recordings.make_recorded_run(session, ros=ros)
        names = [sensor.name for sensor in session.world.sensors]
        self._error: RecordingError | None = None
        with ExitStack() as stack:
            writers = [stack.enter_context(open_output(output, recorded_run)) for output in outputs]
            for writer in writers:  # subscribers can choose among all outputs
                if isinstance(writer, Publisher):
                    writer.wait_for_subscriber()
            stack.pop_all()
        self._writers: list[_BufferedWriter | Publisher] = [
            writer if isinstance(writer, Publisher) else _BufferedWriter(writer, names, now) for writer in writers
        ]

    def write(self, time_slice: TimeSlice) -> None:
        """Write the time slice of a step."""
        for writer in tuple(self._writers):
            try:
                writer.write(time_slice)
            except RecordingError as error:
                others = "with the other outputs" if self._writers[1:] else "without outputs"
                self._fail(writer, error, f"the run continues {others}")

    def _fail(self, writer: _BufferedWriter | Publisher, error: RecordingError, consequence: str) -> None:
        """Close an output that failed."""
        LOG.warning("%s; %s", error, consequence)
        self._error = error
        self._writers.remove(writer)
        _get_writer(writer).__exit__(RecordingError, error, None)

    def close(self) -> None:
        """Complete all outputs. Raises the `RecordingError` of the last one that failed."""
        for writer in tuple(self._writers):
            try:
                if isinstance(writer, _BufferedWriter):
                    writer.flush()
                _get_writer(writer).close()
            except RecordingError as error:
                self._fail(writer, error, "the output is not complete")
        self._writers = []
        if self._error is not None:
            raise self._error

    def salvage(self) -> None:
        """Close all outputs after an exception; they keep what was published. Never raises."""
        writers, self._writers, self._error = self._writers, [], None
        for writer in writers:
            with suppress(Exception):
                if isinstance(writer, _BufferedWriter):
                    writer.flush()
            with suppress(Exception):
                _get_writer(writer).salvage()


def _get_writer(writer: _BufferedWriter | Publisher) -> RecordingWriter:
    return writer if isinstance(writer, Publisher) else writer.writer
