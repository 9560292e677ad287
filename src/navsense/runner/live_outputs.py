"""Outputs of a live run: streams get each step at once, recordings get several steps together."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from navsense import recordings
from navsense.core.errors import RecordingError
from navsense.core.interrupts import interruptible
from navsense.core.readings import TimeSlice
from navsense.recordings.info import RecordingWriter
from navsense.runner.joined_slices import JoinedSliceWriter
from navsense.runner.outputs import OutputTarget, check_output, check_outputs_differ, open_output
from navsense.simulation.session import Session
from navsense.streams import Publisher

LOG = logging.getLogger(__name__)


class LiveOutputs:
    """The outputs of a live run. One that fails is closed and logged, and the others go on.

    A process that is killed loses at most the steps of `LONGEST_JOINED_SLICE` of its recordings.
    """

    def __init__(self, outputs: Sequence[OutputTarget], session: Session, *, ros: str, wait: bool) -> None:
        """Open the outputs. With `wait`, wait for the first subscriber of each stream. Raises `RecordingError`."""
        check_outputs_differ(outputs)
        for output in outputs:
            check_output(output, session.world)
        recorded_run = recordings.make_recorded_run(session, ros=ros)
        self._error: RecordingError | None = None
        with ExitStack() as stack:
            writers = [stack.enter_context(open_output(output, recorded_run)) for output in outputs]
            for writer in writers:  # subscribers can choose among all outputs
                if wait and isinstance(writer, Publisher):
                    with interruptible():
                        writer.wait_for_subscriber()
            stack.pop_all()
        self._writers: list[RecordingWriter] = [
            writer if isinstance(writer, Publisher) else JoinedSliceWriter(writer) for writer in writers
        ]

    @property
    def publishers(self) -> list[Publisher]:
        """The streams that have not failed."""
        return [writer for writer in self._writers if isinstance(writer, Publisher)]

    def write(self, time_slice: TimeSlice) -> None:
        """Write the time slice of a step."""
        for writer in tuple(self._writers):
            try:
                writer.write(time_slice)
            except RecordingError as error:
                others = "with the other outputs" if self._writers[1:] else "without outputs"
                self._fail(writer, error, f"the run continues {others}")

    def _fail(self, writer: RecordingWriter, error: RecordingError, consequence: str) -> None:
        """Close an output that failed."""
        LOG.warning("%s; %s", error, consequence)
        self._error = error
        self._writers.remove(writer)
        writer.__exit__(RecordingError, error, None)

    def close(self) -> None:
        """Complete all outputs. Raises the `RecordingError` of the last one that failed."""
        for writer in tuple(self._writers):
            try:
                writer.close()
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
                writer.salvage()
