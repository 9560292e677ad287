"""Paths of recordings, errors of files, and `AtomicWriter`: a writer in a separate thread.

Its base class `RecordingWriter` is in `info`, which `format` imports before this module.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from io import FileIO
from pathlib import Path
from typing import BinaryIO, ParamSpec

from navsense.core import atomic, inputs
from navsense.core.errors import NavsenseError, RecordingError, Where
from navsense.core.readings import Current, Reading, RunChange, TimeSlice, Truth
from navsense.messages.base import MAX_STAMP_SECONDS, TRUE_TIME
from navsense.recordings.format import (
    Capability,
    Format,
    find_format_by_suffix,
    find_format_of_recording,
    find_suffix,
    format_runs_remedy,
    get_storage_path,
    list_formats,
    list_suffixes,
)
from navsense.recordings.info import RecordedRun, RecordingWriter
from navsense.world import World


def make_closed_error(path: Path | str) -> RecordingError:
    """Return the error of writing to a recording that is closed."""
    return RecordingError("the recording is closed, or has already failed", where=Where(str(path)))


@contextlib.contextmanager
def add_path_to_errors(path: Path) -> Iterator[None]:
    """Add the path of a recording to errors without a path."""
    try:
        yield
    except NavsenseError as error:
        error.where = error.where or Where(str(path))
        raise


def write_all(file: FileIO, data: bytes | memoryview) -> None:
    """Write bytes to an unbuffered file, which may accept a part of them at a time."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def make_os_error(path: Path, error: OSError, operation: str = "write") -> RecordingError:
    """Return a `RecordingError` with a remedy for an error of the operating system."""
    permission = "choose a folder with write permission" if operation == "write" else "ask for the right to read it"
    remedies = {
        errno.ENOSPC: "free some space or choose another disk",
        errno.EDQUOT: "free some of the quota or choose another disk",
        errno.EFBIG: "raise the limit on file sizes or record a shorter time",
        errno.EACCES: permission,
        errno.EPERM: permission,
        errno.EROFS: "choose a disk that is not read-only",
        errno.ENOENT: "create the directory first" if operation == "write" else "check the name",
        errno.ENOTDIR: "a component of the path is a file: choose another path",
        errno.EISDIR: "name a file, not a directory",
        errno.EEXIST: "a file has this name: choose another name",
        errno.ENAMETOOLONG: "choose a shorter name",
        errno.ELOOP: "choose another name: this is a link to itself",
    }
    is_missing = operation == "read" and error.errno == errno.ENOENT
    if is_missing:
        hidden_folder = atomic.make_hidden_path(get_storage_path(path)) if path.name else path
        if atomic.is_hidden_folder(hidden_folder) and atomic.is_being_written(hidden_folder):
            return atomic.make_unfinished_error(path)
    what = f"cannot be {'written' if operation == 'write' else 'read'}: {(error.strerror or str(error)).lower()}"
    remedy = remedies.get(error.errno or 0, "")
    if is_missing:
        remedy = find_hidden_recording_remedy(path) or remedy
    return RecordingError(what, where=Where(str(path)), remedy=remedy)


def make_no_thread_error(where: Where) -> RecordingError:
    """Return the error of a recording if the system cannot start its thread."""
    what = "cannot be written: the system cannot start another thread"
    return RecordingError(what, where=where, remedy="end other programs or raise the limit on processes (ulimit -u)")


def format_rescue(path: Path) -> str:
    """Return the command that recovers what was written of a recording before an error.

    >>> from navsense.recordings.base import format_rescue
    >>> format_rescue(Path("run.npz"))
    'recover the written part with: navsense recover run.npz'
    """
    return f"recover the written part with: navsense recover {path}"


RECOVERABLE_SUFFIX = ".mcap"
"""Suffix of the format from which recovery returns all complete chunks. It is recommended for long runs."""


def find_hidden_recording_remedy(path: Path) -> str:
    """Return the remedy for a missing recording whose truncated content is in a hidden folder; "" without one."""
    hidden_folder = atomic.make_hidden_path(get_storage_path(path)) if path.name else path
    has_content = atomic.is_hidden_folder(hidden_folder)
    return f"recover the truncated recording with: navsense recover {path}" if has_content else ""


def find_damaged_file_remedy(path: Path) -> str:
    """Return the remedy for a recording that is truncated or damaged; "" if its format has none."""
    if atomic.is_being_written(path):
        return "it is still being written by another process; wait until it ends"
    if path.is_dir():
        return f"list its truncated recordings with: navsense recover {path}"
    recording_format = find_format_by_suffix(path)
    is_recoverable = recording_format is not None and recording_format.recovery.recovers_files
    return f"recover it with: navsense recover {path}" if is_recoverable else ""


def find_unrecoverable_remedy(path: Path, first_bytes: bytes = b"") -> str:
    """Return the remedy for a file, truncated or not, of a format that cannot be recovered; "" for other files.

    `first_bytes` are those of a file whose suffix may be wrong.
    """
    formats = [entry for entry in list_formats() if entry.recovery.magic and not entry.recovery.recovers_files]
    magics = tuple(entry.recovery.magic for entry in formats)
    if find_format_by_suffix(path) not in formats and not first_bytes.startswith(magics):
        return ""
    suffixes = " or ".join(list_suffixes(formats))
    return f"copy it again: a damaged or truncated {suffixes} file cannot be recovered"


URL_PATTERN = re.compile(r"[\w.-]+\+\w+:.*|[\w.-]{2,}:/.*|[\w.-]{2,}:[^/:]*:\d+", re.DOTALL)
"""A text with the form of a URL, also with missing slashes."""


def is_url(text: object) -> bool:
    """Return True if a text has the form of a URL. A path object is never a URL.

    >>> ns.streams.is_url("pd0+tcp://127.0.0.1:16000"), ns.streams.is_url("run.mcap")
    (True, False)
    """
    return isinstance(text, str) and URL_PATTERN.fullmatch(text) is not None


def to_path(path: object) -> Path:
    """Return a path. Raises `RecordingError` for another type, a URL, a null character, an empty or a too long path."""
    if not isinstance(path, str | os.PathLike):
        allowed = "must be a file name or a path"
        raise RecordingError("path of a recording", repr(path), allowed=allowed, remedy='write "run.mcap"')
    if is_url(path):
        remedy = "to publish to a URL: navsense run WORLD -o URL"
        raise RecordingError("path of a recording", path, allowed="must be a file or folder, not a URL", remedy=remedy)
    if not os.fspath(path):
        raise RecordingError("the name of a recording is empty", remedy="name a file or a folder")
    if "\0" in os.fsdecode(path):
        raise RecordingError("path of a recording", repr(path), allowed="must not contain a null character")
    try:
        Path(os.fsdecode(path)).stat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            where = Where(os.fsdecode(path))
            raise RecordingError("the name is too long", where=where, remedy="choose a shorter name") from error
    return Path(os.fsdecode(path))


def make_recovered_path(path: str | os.PathLike[str]) -> Path:
    """Return the default path of a recovered recording: the old path with -recovered added to the name."""
    old = to_path(path)
    recording_format = find_format_by_suffix(old)
    suffix = find_suffix(old) if recording_format and Capability.RECOVERY in recording_format.capabilities else ""
    stem = old.name[: len(old.name) - len(suffix)]
    return old.with_name(f"{stem}-recovered{suffix or RECOVERABLE_SUFFIX}")


def is_recovered(path: Path) -> bool:
    """Return True if the recovered recording of a truncated file exists and is not older."""
    saved = get_storage_path(make_recovered_path(path))
    return path.is_file() and saved.exists() and saved.stat().st_mtime >= path.stat().st_mtime


def make_folder_error(path: Path) -> RecordingError:
    """Return the error of a folder that is not a recording."""
    files = " or ".join(file for recording_format in list_formats() for file in recording_format.folder_files)
    remedy = f"name a file in it, or a folder that holds {files}"
    return RecordingError("is a directory, and no recording", where=Where(str(path)), remedy=remedy)


def require_format(path: Path) -> Format:
    """Return the format of an existing recording. Raises `RecordingError` if it is unknown."""
    recording_format = find_format_of_recording(path)
    if recording_format:
        return recording_format
    if path.is_dir():
        raise make_folder_error(path)
    if not path.exists() and (not path.suffix or find_hidden_recording_remedy(path)):
        raise make_os_error(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), "read")
    is_world = path.suffix.lower() in (".sdf", ".world", ".urdf", ".xacro")
    remedy = f"to read a world: navsense describe {path}" if is_world else ""
    if _begins_with(path, PD0_MAGIC):
        remedy = f"it has the content of PD0: copy it to {path.with_suffix('.pd0').name}"
    raise RecordingError(
        "no recording has this suffix",
        path.suffix or path.name,
        allowed="known are " + ", ".join(list_suffixes()),
        where=Where(str(path)),
        remedy=remedy,
    )


PD0_MAGIC = b"\x7f\x7f"
"""First bytes of a PD0 ensemble. Teledyne's programs give the files numbers as suffixes, such as .000."""


def _begins_with(path: Path, magic: bytes) -> bool:
    """Return True for a regular file with these first bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def check_output_file(path: Path) -> None:
    """Raise `RecordingError` for a directory, a pipe, an input of the command, and a directory that does not exist."""
    atomic.check_not_input(path)
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # raises for a link to itself
        if path.is_dir():
            raise RecordingError("is a directory", where=Where(str(path)), remedy="name a file in it")
        if path.is_fifo() or path.is_socket():
            raise RecordingError(
                "is a pipe; must be a file", where=Where(str(path)), remedy="choose the name of a file"
            )
        if not path.parent.is_dir():
            raise RecordingError(
                "the directory does not exist", str(path.parent), where=Where(str(path)), remedy="create it first"
            )
    except (OSError, ValueError) as error:
        raise RecordingError(f"no possible file name: {error}", where=Where(str(path))) from error


def check_recording_path(recording_format: Format, path: Path, world: World | None = None) -> None:
    """Raise `RecordingError` if a recording cannot have this path, or its format cannot hold the sensors of a world."""
    if find_suffix(path):
        check_output_file(path)
    atomic.check_not_input(get_storage_path(path))
    recording_format.check_path(path, world)


def open_for_reading(path: Path) -> BinaryIO:
    """Return a file opened for reading. Raises `RecordingError` if that fails or the file is special (`inputs`)."""
    inputs.add_input(path)
    try:
        if inputs.is_special(path.stat()):
            # Checked before opening: opening a pipe without a writer would block.
            raise RecordingError(inputs.SPECIAL, where=Where(str(path)), remedy="copy its content to a file")
        return path.open("rb")
    except OSError as error:
        raise make_os_error(path, error, "read") from error
    except ValueError as error:
        raise RecordingError(f"no possible file name: {error}", where=Where(str(path))) from error


def check_recorded_run(path: Path | str, recorded_run: RecordedRun, file: str = "an MCAP file") -> None:
    """Raise `RecordingError` for several runs, and for stamps outside the limits; `file` is a noun for the file."""
    where = Where(str(path))
    if len(recorded_run.runs) != 1:
        remedy = format_runs_remedy()
        raise RecordingError(
            "runs", len(recorded_run.runs), allowed=f"{file} holds one run", where=where, remedy=remedy
        )
    # A live run has no duration; its stamps are checked when they are written.
    last = recorded_run.epoch + (recorded_run.requested_duration or 0.0)
    if recorded_run.epoch < 0 or last > MAX_STAMP_SECONDS:
        subject, seconds = ("start", recorded_run.epoch) if recorded_run.epoch < 0 else ("end", last)
        raise RecordingError(
            f"{TRUE_TIME} at the {subject}, in seconds",
            seconds,
            allowed=f"must be from 0 to {MAX_STAMP_SECONDS}",
            where=where,
            remedy="choose another --epoch",
        )


Arguments = ParamSpec("Arguments")


class PendingRecording(ABC):
    """A recording that is written under another name. `AtomicWriter` calls all methods from one thread.

    After an error in `append` or `complete`, `keep` closes the recording and keeps the time slices before.

    is_open: true until the recording is complete or closed.
    has_content: true after the first time slice.
    rescue: after an error, what was kept and how to get it; "" for nothing.
    """

    is_open, has_content, rescue = True, False, ""
    path: Path

    @abstractmethod
    def append(self, time_slice: TimeSlice) -> None:
        """Append a time slice."""

    @abstractmethod
    def complete(self) -> None:
        """Complete the recording and give it its name."""

    @abstractmethod
    def release(self) -> None:
        """Close all files, and remove those that are not complete. Never raises."""

    def keep_content(self) -> str:
        """Close all files after an error and keep those that can be read or recovered. Never raises.

        Returns the text for `rescue`. By default nothing is kept: returns "", and `release` removes the files.
        """
        return ""

    def write(self, time_slice: TimeSlice) -> None:
        """Append a time slice. An error closes the recording."""
        try:
            self.append(time_slice)
        except BaseException:
            self.keep()
            raise
        self.has_content = True

    def finish(self, *, keep_empty: bool = True) -> None:
        """Complete the recording and give it its name; with `keep_empty` false, remove one without time slices."""
        if not self.is_open:
            if keep_empty:
                raise make_closed_error(self.path)
            return
        try:
            if keep_empty or self.has_content:
                self.complete()
        except BaseException:
            self.keep()
            raise
        self.discard()

    def keep(self) -> None:
        """Close the recording after an error, and keep the time slices before it. Never raises."""
        self.is_open = False
        self.rescue = self.keep_content() if self.has_content else ""
        if not self.rescue:
            self.release()

    def discard(self) -> None:
        """Close the recording, and remove it if it is not complete. Never raises."""
        self.is_open = False
        self.release()


class PendingArrays(PendingRecording):
    """A recording of arrays. Each reading, truth and current of a time slice is appended by its own method."""

    _recorded_run: RecordedRun

    def append(self, time_slice: TimeSlice) -> None:
        """Append the readings of a time slice, and its truth and current if the recording has truth."""
        for name, reading in time_slice.readings.items():
            self.append_reading(name, reading)
        if self._recorded_run.has_simulated_series:
            for name, truth in time_slice.truth.items():
                self.append_truth(name, truth)
            if time_slice.current is not None:
                self.append_current(time_slice.current)
        self.append_changes(time_slice.changes)
        self.save_metadata()

    @abstractmethod
    def append_reading(self, name: str, reading: Reading) -> None:
        """Append the rows of a reading."""

    @abstractmethod
    def append_truth(self, name: str, truth: Truth) -> None:
        """Append the rows of the truth of a link."""

    @abstractmethod
    def append_changes(self, changes: Sequence[RunChange]) -> None:
        """Append changes of the run to the metadata."""

    @abstractmethod
    def append_current(self, current: Current) -> None:
        """Append the rows of the current."""

    @abstractmethod
    def save_metadata(self) -> None:
        """Save new metadata, so that the arrays can be read after a crash."""


class AtomicWriter(RecordingWriter):
    """Writes time slices to a `PendingRecording` in another thread, which an interrupt cannot stop during a write."""

    def __init__(self, path: Path, make_recording: Callable[[], PendingRecording]) -> None:
        """Create the recording in the thread. Raises `RecordingError` if the thread or the file cannot be created."""
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="navsense-recording")
        self._closed = False
        recordings: list[PendingRecording] = []

        def discard() -> None:
            for recording in recordings:
                recording.discard()

        # Start the thread now: an interrupt during the first real call could start a second thread.
        try:
            self._thread.submit(int).result()
        except RuntimeError as error:
            raise make_no_thread_error(Where(str(path))) from error
        try:
            self._run(lambda: recordings.append(make_recording()))
        except BaseException:
            # The thread continues after an interrupt: discard the recording that it creates.
            self._thread.submit(discard)
            self._thread.shutdown(wait=False)
            raise
        self._recording = recordings[0]

    def _run(self, call: Callable[Arguments, None], *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            # The context contains the input files of the command, which the call must not overwrite.
            context = copy_context()
            self._thread.submit(lambda: context.run(call, *args, **kwargs)).result()
        except OSError as error:
            plain = OSError(error.errno, os.strerror(error.errno)) if error.errno else error
            raise make_os_error(self._path, plain) from error

    def write(self, time_slice: TimeSlice) -> None:
        """Write a time slice. If it is interrupted, it is complete."""
        if self._closed or not self._recording.is_open:
            raise make_closed_error(self._path)
        with add_path_to_errors(self._path), self._add_rescue():
            self._run(self._recording.write, time_slice)

    @contextlib.contextmanager
    def _add_rescue(self) -> Iterator[None]:
        """Add to an error how to get the time slices that were kept."""
        try:
            yield
        except RecordingError as error:
            error.rescue = error.rescue or self._recording.rescue
            raise

    def _finish(self, call: Callable[Arguments, None], *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        if not self._closed:
            self._closed = True
            try:
                with self._add_rescue():
                    self._run(call, *args, **kwargs)
            finally:
                self._thread.shutdown(wait=False)

    def close(self) -> None:
        """Complete the file and give it its name. Raises `RecordingError` if this fails, or an earlier write failed."""
        self._finish(self._recording.finish)

    def salvage(self) -> None:
        """Complete the file with the time slices before an error; without them, remove it."""
        self._finish(self._recording.finish, keep_empty=False)

    def abort(self) -> None:
        """Remove the unfinished file. Never raises."""
        with contextlib.suppress(Exception):
            self._finish(self._recording.discard)
