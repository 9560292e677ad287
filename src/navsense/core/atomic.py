"""Output files: each has one writer at a time, and no command writes to its own inputs.

`open_in_place` opens a file under its own name. `HiddenFolder` and `replace_file` write to a hidden folder next to the
target and rename the result when it is complete. The writer holds an advisory lock of the operating system on the file
or on the hidden folder. The system releases the lock when the process ends, so a crash blocks no later run. A crash
leaves the hidden folder; `navsense recover` lists it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import logging
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from navsense.core import inputs
from navsense.core.errors import RecordingError, Where

LOG = logging.getLogger(__name__)

HIDDEN_SUFFIX = ".part"
"""Suffix of a hidden folder."""

MAX_NAME_BYTES = 240
"""Longest name (bytes) that the name of a hidden folder contains; file systems allow 255."""

BACKUP_NAME = ".old"
"""Name in the hidden folder of the old folder while a new one replaces it."""

MARKER = ".navsense-output"
"""File in every hidden folder of navsense. Other programs also use hidden folders that end in .part."""

_RECORDING = "recording\n"
"""Content of the marker if `navsense recover` can read the truncated recording; otherwise the marker is empty."""

_LOCK_ERRORS = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
"""Error numbers of a lock that another open file holds. Other errors mean that the file system has no locks."""

LOCK_TIMEOUT = 0.05
"""Seconds that a writer waits for a lock: `is_being_written` holds a shared lock for a moment."""


def resolve_link(path: Path) -> Path:
    """Return the target of a symbolic link, and any other path unchanged."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def make_hidden_path(target: Path) -> Path:
    """Return the hidden folder for writing a file or folder. It is next to the target of a symbolic link."""
    target = resolve_link(target)
    name = target.name
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        name = f"{name[:40]}.{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
    return target.with_name(f".{name}{HIDDEN_SUFFIX}")


def check_not_input(target: Path) -> None:
    """Raise `RecordingError` if writing `target` would change an input of the same command.

    Files are compared by identity, so links and relative names count. `target` must not contain an input, and must not
    be in a folder that is an input.
    """
    real = Path(os.path.realpath(target))
    where, remedy = Where(str(target)), "name another output"
    for name in inputs.current_inputs():
        source = Path(os.path.realpath(name))
        if real == source or _is_same_file(target, name):
            raise RecordingError("is an input of the same command", where=where, remedy=remedy)
        if real in source.parents:
            raise RecordingError("contains an input of the same command", name, where=where, remedy=remedy)
        if source in real.parents and source.is_dir():
            raise RecordingError("is in a folder that the same command reads", name, where=where, remedy=remedy)


def _is_same_file(one: Path, other: str) -> bool:
    """Return True if two names refer to the same file."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


class Lock:
    """An exclusive advisory lock on a file or folder, until it is released or the process ends."""

    def __init__(self, descriptor: int) -> None:
        """Keep the open file."""
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Release the lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        """Release the lock of a writer that was not closed."""
        self.release()


def _try_lock(descriptor: int, operation: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file. True if this succeeds, and on file systems without locks."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _LOCK_ERRORS
    return True


def _wait_for_lock(descriptor: int) -> bool:
    """Lock an open file for writing within `LOCK_TIMEOUT`. True if this succeeds."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


def _open_for_lock(path: Path) -> int:
    """Open an existing file for locking. An exclusive lock over NFS requires a file that is open for writing."""
    try:
        return os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def _is_open_file(descriptor: int, path: Path) -> bool:
    """Return True if `path` refers to the open file. Another process may have replaced the file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def is_being_written(path: Path) -> bool:
    """Return True if a live process, including this one, holds the lock on a file or folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def make_busy_output_error(target: Path) -> RecordingError:
    """Return the error of a file that already has a writer."""
    what = "is being written by another process, or by another thread of this one"
    return RecordingError(what, where=Where(str(target)), remedy="name another output, or wait until it is complete")


def make_unfinished_error(target: Path) -> RecordingError:
    """Return the error of reading a recording that still has a writer."""
    what = "is still being written by another process"
    return RecordingError(what, where=Where(str(target)), remedy="wait until it ends")


def open_in_place(path: Path, must_keep: Callable[[BinaryIO], bool] | None = None) -> FileIO:
    """Open a file for writing under its own name, lock it and truncate it. It has no buffer, so a crash loses nothing.

    must_keep: returns True for an old file that is kept, at `make_crashed_path`; None: no file is kept.

    Raises `RecordingError` if the file is an input or has another writer, and `OSError` if it cannot be opened.
    """
    check_not_input(path)
    if is_being_written(make_hidden_path(path)):
        raise make_busy_output_error(path)
    while True:
        # Truncate only after locking: the file may be the recording of another process.
        file = FileIO(path, "wb", opener=lambda name, flags: os.open(name, flags & ~os.O_TRUNC, 0o666))
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        # A `HiddenFolder` locks its folder before the file, so look for its lock after locking the file.
        if not _wait_for_lock(file.fileno()) or is_being_written(make_hidden_path(path)):
            file.close()
            raise make_busy_output_error(path)
        try:
            is_kept = must_keep is not None and _is_open_file(file.fileno(), path) and _keep_file(path, must_keep)
        except BaseException:
            file.close()
            raise
        if not is_kept and _is_open_file(file.fileno(), path):
            file.truncate(0)
            return file
        file.close()


def save_text(path: Path, text: str) -> None:
    """Write a text file atomically: a crash leaves the old text or the new one."""
    new_file = path.with_name(f"{path.name}.new")
    new_file.write_text(text, encoding="utf-8")
    new_file.replace(path)


def is_hidden_folder(folder: Path) -> bool:
    """Return True if navsense created this hidden folder."""
    return not folder.is_symlink() and inputs.path_exists(folder / MARKER) and (folder / MARKER).is_file()


def _empty_folder(folder: Path) -> None:
    """Remove the content of a hidden folder, except its marker."""
    for path in [path for path in folder.iterdir() if path.name != MARKER]:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


def remove_hidden_folder(folder: Path) -> None:
    """Remove a hidden folder. The marker is last: a crash in between leaves a folder that navsense recognizes."""
    _empty_folder(folder)
    shutil.rmtree(folder)


def _restore_backup(folder: Path, target: Path) -> None:
    """Restore the old folder of a writer that crashed while it replaced that folder."""
    backup = folder / BACKUP_NAME
    if backup.is_dir() and not target.exists():
        backup.rename(target)


@contextmanager
def lock_leftover(target: Path) -> Iterator[Path]:
    """Lock the hidden folder that a crash left of `target`, and yield it.

    If the crash happened while a folder was replaced, the old folder is restored first. Raises `RecordingError` if it
    has a live writer.
    """
    hidden_folder = make_hidden_path(target)
    try:
        descriptor = os.open(hidden_folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise RecordingError("has no truncated recording", error.strerror, where=Where(str(target))) from error
    lock = Lock(descriptor)
    try:
        if not _wait_for_lock(descriptor):
            raise make_unfinished_error(target)
        if not is_hidden_folder(hidden_folder) or not _is_open_file(descriptor, hidden_folder):
            raise RecordingError("has no truncated recording", where=Where(str(target)))
        _restore_backup(hidden_folder, resolve_link(target))
        yield hidden_folder
    finally:
        lock.release()


def make_crashed_path(target: Path) -> Path:
    """Return the name under which the truncated recording of `target` is kept when `target` is recorded again."""
    return target.with_name(f"{target.stem}-crashed{target.suffix}")


def _compute_folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _keep_recording(folder: Path, target: Path) -> None:
    """Rename the hidden folder of a truncated recording, so that `target` can be recorded again.

    One is kept for each name, the largest.
    """
    kept = make_crashed_path(target)
    if is_hidden_folder(make_hidden_path(kept)):
        with lock_leftover(kept) as older:
            smaller, larger = sorted((folder, older), key=_compute_folder_size)
            remove_hidden_folder(smaller)
        if larger == older:
            LOG.warning("%s: a larger one is kept; recover it with: navsense recover %s", target, kept)
            return
    folder.rename(make_hidden_path(kept))
    LOG.warning("%s: a truncated recording is kept; recover it with: navsense recover %s", target, kept)


def _must_keep_path(path: Path, must_keep: Callable[[BinaryIO], bool]) -> bool:
    """Return True if `must_keep` does so for the file at a path."""
    with FileIO(path) as file:
        return must_keep(file)


def _keep_file(path: Path, must_keep: Callable[[BinaryIO], bool]) -> bool:
    """Rename a file that must be kept and return True. Return False for another file, or if a larger one is kept.

    One is kept for each name, the largest. Raises `RecordingError` if another file is at `make_crashed_path`.
    """
    if not _must_keep_path(path, must_keep):
        return False
    target = resolve_link(path)
    kept = make_crashed_path(target)
    if inputs.path_exists(kept) and (
        not kept.is_file() or is_being_written(kept) or not _must_keep_path(kept, must_keep)
    ):
        remedy = f"recover it with: navsense recover {path}, then delete it"
        raise RecordingError("contains a truncated recording", where=Where(str(path)), remedy=remedy)
    if kept.exists() and kept.stat().st_size > target.stat().st_size:
        LOG.warning("%s: a larger one is kept; recover it with: navsense recover %s", path, kept)
        return False
    target.replace(kept)
    LOG.warning("%s: a truncated recording is kept; recover it with: navsense recover %s", path, kept)
    return True


class HiddenFolder:
    """The hidden folder for writing one output, with its locks."""

    def __init__(self, target: Path, *, is_recording: bool = False) -> None:
        """Create the folder, lock it and remove the files that a crash left in it.

        `is_recording` is True if `navsense recover` can read the truncated content. Such content is kept at
        `make_crashed_path`. A symbolic link is followed. Raises `RecordingError` if `target` is an input or has another
        writer, or if another program created the folder, and `OSError` if the folder cannot be created.
        """
        check_not_input(target)
        self.target = resolve_link(target)
        self.folder = make_hidden_path(target)
        self._locks = [self._lock_folder()]
        try:
            self._lock_target()
            _empty_folder(self.folder)
            (self.folder / MARKER).write_text(_RECORDING if is_recording else "", encoding="utf-8")
        except BaseException:
            self.release()
            raise

    def _lock_folder(self) -> Lock:
        """Create the folder if necessary, and return its lock. Nothing in the folder is needed any more."""
        while True:
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir()
            try:
                descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:  # its writer has just removed it
                continue
            lock = Lock(descriptor)
            if not _wait_for_lock(descriptor):
                raise make_busy_output_error(self.target)
            if _is_open_file(descriptor, self.folder) and self._is_disposable():
                return lock
            lock.release()

    def _is_disposable(self) -> bool:
        """Return True if the content of the locked folder can be removed; keep a truncated recording elsewhere."""
        if not any(self.folder.iterdir()):
            return True
        if not is_hidden_folder(self.folder):
            what = "the hidden folder for this output was created by another program"
            remedy = "rename that folder, or name another output"
            raise RecordingError(what, str(self.folder), where=Where(str(self.target)), remedy=remedy)
        _restore_backup(self.folder, self.target)
        is_recording = (self.folder / MARKER).stat().st_size > 0
        if not is_recording or len(list(self.folder.iterdir())) == 1:
            return True
        _keep_recording(self.folder, self.target)
        return False

    def _lock_target(self) -> None:
        """Lock the file that will be replaced. Raises `RecordingError` if a process writes to it in place."""
        try:
            if not stat.S_ISREG(self.target.stat().st_mode):
                return
            descriptor = _open_for_lock(self.target)
        except OSError:
            return
        self._locks.append(Lock(descriptor))
        if not _wait_for_lock(descriptor):
            raise make_busy_output_error(self.target)

    @property
    def backup(self) -> Path:
        """Path of the old folder while a new one replaces it."""
        return self.folder / BACKUP_NAME

    def commit(self, path: Path) -> None:
        """Rename `path` to the target. If this fails, restore the folder that was there."""
        if not path.is_dir():
            path.replace(self.target)
            return
        if not self.target.is_dir():
            path.rename(self.target)
            return
        self.target.rename(self.backup)
        try:
            path.rename(self.target)
        except OSError:
            self.backup.rename(self.target)
            raise

    def release(self) -> None:
        """Remove the folder with its content, and release the locks; never raises."""
        if self._locks:
            with contextlib.suppress(OSError):
                remove_hidden_folder(self.folder)
        self.keep()

    def keep(self) -> None:
        """Release the locks and keep the folder as a crash leaves it, for `navsense recover`."""
        for lock in self._locks:
            lock.release()
        self._locks = []


@contextmanager
def replace_file(target: Path) -> Iterator[Path]:
    """Yield the file to write. At the end of the context it replaces `target`, unless there was an error.

    Links are followed. A device such as /dev/stdout is written to directly.
    """
    if target.exists() and not target.is_file():
        yield target
        return
    work = HiddenFolder(target)
    try:
        new_file = work.folder / target.name
        yield new_file
        work.commit(new_file)
    finally:
        work.release()
