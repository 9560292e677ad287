"""Outputs of a run: recordings, by the suffix of their path, and streams, by the scheme of their URL.

`Outputs` drives all outputs of one run. `simulate(...).save`, `record` and `live` use it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path
from typing import Self

from navsense import recordings, streams
from navsense.core.errors import RecordingError, SimulationError
from navsense.core.interrupts import interruptible
from navsense.core.readings import TimeSlice
from navsense.recordings.base import to_path
from navsense.recordings.format import find_suffix
from navsense.recordings.info import RecordedRun, RecordingWriter
from navsense.runner.slice_joiner import SliceJoiner
from navsense.streams import Publisher
from navsense.streams.stream import Pace, SupportsRunChanges
from navsense.world import World

LOG = logging.getLogger(__name__)

OutputTarget = str | os.PathLike[str]
"""The path of a recording, or the URL of a stream as a text."""

INCOMPLETE = "%s; the output is not complete"
"""Warning for the error of an output that failed at its end."""


def check_outputs(outputs: Sequence[OutputTarget], world: World) -> None:
    """Raise `SimulationError` if two outputs are the same, or one is in another; `RecordingError` for an invalid one.

    Opens no file and no connection.
    """
    _check_outputs_differ(outputs)
    for output in outputs:
        check_output(output, world)


def _check_outputs_differ(outputs: Sequence[OutputTarget]) -> None:
    """Raise `SimulationError` if two outputs are the same, or one is inside another."""
    for first, second in permutations(outputs, 2):
        problem = ""
        if streams.is_url(first) or streams.is_url(second):
            problem = "are the same URL" if first == second else ""
        else:
            storage = [recordings.get_storage_path(to_path(output)) for output in (first, second)]
            first_path, second_path = (Path(os.path.realpath(path)) for path in storage)
            if first_path == second_path:
                problem = f"are both written to the {'file' if find_suffix(storage[0]) else 'folder'} {storage[0]}"
            elif first_path in second_path.parents:
                problem = f"{storage[1]} is in the folder {storage[0]} of the other output"
        if problem:
            allowed = f"{problem}; must be different files, folders and URLs, none in another"
            raise SimulationError(f"outputs: {first}, {second}", allowed=allowed, remedy="change one of the names")


def check_output(output: OutputTarget, world: World | None = None) -> None:
    """Raise `RecordingError` if this path or URL cannot be an output of a world. Opens no file and no connection."""
    if isinstance(output, str) and streams.is_url(output):
        streams.check_url(output, world)
    else:
        recordings.find_output_format(to_path(output), world)


def open_output(output: OutputTarget, recorded_run: RecordedRun) -> RecordingWriter:
    """Open a recording for writing, or the publisher of a stream. Raises `RecordingError`."""
    if isinstance(output, str) and streams.is_url(output):
        with interruptible():
            return streams.open_publisher(output, recorded_run)
    return recordings.open_writer(output, recorded_run)


def list_paths(outputs: Sequence[OutputTarget]) -> list[Path]:
    """Return the paths of the recordings among outputs."""
    return [to_path(output) for output in outputs if not streams.is_url(output)]


class Outputs:
    """The open outputs of a run. As a context they are closed at the end, also after an error.

    An output that fails is closed and logged, and the others go on. `close` raises the error of the last one.

    A recording whose time slices are joined loses at most `LONGEST_JOINED_SLICE` if the process is killed.
    """

    def __init__(
        self,
        targets: Sequence[OutputTarget],
        recorded_run: RecordedRun,
        *,
        waits: bool = True,
        joins_slices: bool = False,
        needs_output: bool = True,
        controls: SupportsRunChanges | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Open the outputs, wait for the subscribers of the streams, and give them the controls of the run.

        waits: false for a run that follows a live system, which does not wait.
        joins_slices: recordings get several time slices as one, for a run with short time slices.
        needs_output: `write` raises the error of the last output if all have failed. False: the run goes on without.
        controls: of the run. None: the run has no services.
        pace: of the run. None: it has no pace that a stream can change.

        Raises `RecordingError`.
        """
        self._needs_output = needs_output
        self._error: RecordingError | None = None
        self._writers: list[RecordingWriter] = []
        with ExitStack() as stack:
            stack.callback(self.salvage)
            for target in targets:
                writer = open_output(target, recorded_run)
                is_joined = joins_slices and not isinstance(writer, Publisher)
                self._writers.append(SliceJoiner(writer) if is_joined else writer)
            publishers = [writer for writer in self._writers if isinstance(writer, Publisher)]
            for publisher in publishers if waits else ():  # a subscriber can choose among all outputs
                with interruptible():
                    publisher.wait_for_subscriber()
            for publisher in publishers:
                publisher.attach_pace(pace)
                if controls is not None:
                    publisher.attach_controls(controls)
            stack.pop_all()

    def write(self, time_slice: TimeSlice) -> None:
        """Write a time slice to all outputs. Raises the `RecordingError` of the last one if the run needs an output."""
        for writer in tuple(self._writers):
            try:
                writer.write(time_slice)
            except RecordingError as error:
                self._remove(writer, error)
                if self._needs_output and not self._writers:
                    raise
                others = "with the other outputs" if self._writers else "without outputs"
                LOG.warning("%s; the run continues %s", error, others)

    def _remove(self, writer: RecordingWriter, error: RecordingError) -> None:
        """Close an output that failed."""
        self._error = error
        self._writers.remove(writer)
        writer.__exit__(RecordingError, error, None)

    def close(self) -> None:
        """Complete all outputs. Raises the `RecordingError` of the last one that failed."""
        unreported: RecordingError | None = None
        try:
            for writer in tuple(self._writers):
                try:
                    writer.close()
                except RecordingError as error:
                    self._remove(writer, error)
                    if unreported is not None:
                        LOG.warning(INCOMPLETE, unreported)
                    unreported = error
                else:
                    self._writers.remove(writer)
        finally:
            self.salvage()  # the rest, after an interrupt
        last, self._error = self._error, None
        if last is not None:
            raise last

    def salvage(self) -> None:
        """Close all outputs after an exception. They keep what was written. An error is logged, never raised."""
        writers, self._writers = self._writers, []
        for writer in writers:
            try:
                writer.salvage()
            except Exception as error:  # noqa: BLE001 - the caller gets the error that ended the run
                LOG.warning(INCOMPLETE, error)

    def __enter__(self) -> Self:
        """Return the outputs."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        """Close the outputs. After an error they keep what was written; an interrupt completes them."""
        if kind is None:
            self.close()
        elif kind is KeyboardInterrupt:
            try:
                self.close()
            except RecordingError as failure:
                LOG.warning(INCOMPLETE, failure)
        else:
            self.salvage()
