"""Writers whose file appears when it is whole: the work is done in a thread, which no interrupt can cut in two."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import ParamSpec, Protocol

from navsense.errors import Where
from navsense.recordings.base import WriterBase, add_path_to_errors, closed_error, no_thread_error, os_error
from navsense.series import TimeSlice

Arguments = ParamSpec("Arguments")


class PendingFile(Protocol):
    """A file being written under another name; all of it is called from one thread. `open` until it is done for."""

    is_open: bool

    def write(self, time_slice: TimeSlice) -> None:
        """Take a slab."""
        ...

    def finish(self, *, empty: bool = True) -> None:
        """Write the rest, and give the file its name; with `empty` false only where there are slabs."""
        ...

    def discard(self) -> None:
        """Let go of the file; nothing stays of one that is not whole. Never raises."""
        ...


class AtomicWriter(WriterBase):
    """Writes slabs to one file by somebody's work."""

    def __init__(self, path: Path, make_file: Callable[[], PendingFile]) -> None:
        """Begin the work. Raise `RecordingError` where the system does not allow it."""
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="navsense-writer")
        self._closed = False
        files: list[PendingFile] = []

        def discard() -> None:
            for work in files:
                work.discard()

        # An interrupt while the first work starts the thread would let the next start another, which waits for nobody.
        try:
            self._thread.submit(int).result()
        except RuntimeError as error:
            raise no_thread_error(Where(str(path))) from error
        try:
            self._run(lambda: files.append(make_file()))
        except BaseException:
            # The thread goes on after an interrupt, and what it has begun is nobody's.
            self._thread.submit(discard)
            self._thread.shutdown(wait=False)
            raise
        self._file = files[0]

    def _run(self, work: Callable[Arguments, None], *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        """Do something in the thread and wait for it: an interrupt, which comes to this one, cannot cut it in two."""
        try:
            # The work runs in this context, because it must not write to the inputs of the command.
            context = copy_context()
            self._thread.submit(lambda: context.run(work, *args, **kwargs)).result()
        except OSError as error:
            said = OSError(error.errno, os.strerror(error.errno)) if error.errno else error
            raise os_error(self._path, said) from error

    def write(self, time_slice: TimeSlice) -> None:
        """Take a slab; one that is interrupted is taken whole."""
        if self._closed or not self._file.is_open:
            raise closed_error(self._path)
        with add_path_to_errors(self._path):
            self._run(self._file.write, time_slice)

    def _finish(self, work: Callable[Arguments, None], *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        """Do the last thing, once."""
        if not self._closed:
            self._closed = True
            try:
                self._run(work, *args, **kwargs)
            finally:
                self._thread.shutdown(wait=False)

    def close(self) -> None:
        """Write what is left, and give the file its name.

        Raise `RecordingError` where that cannot be, or failed before.
        """
        self._finish(self._file.finish)

    def salvage(self) -> None:
        """Keep the slabs that came before an error elsewhere, if there are any."""
        self._finish(self._file.finish, empty=False)

    def abort(self) -> None:
        """Throw the unfinished file away; never raises."""
        with contextlib.suppress(Exception):
            self._finish(self._file.discard)
