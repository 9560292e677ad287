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
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from navsense import inputs
from navsense.errors import SinkError, Where

LOG = logging.getLogger(__name__)

HIDDEN_SUFFIX = ".part"
"""Suffix of a hidden folder."""

MAX_NAME_BYTES = 240
"""Longest name (bytes) that the name of a hidden folder contains; file systems allow 255."""

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""Error numbers of file systems without locks."""


def hidden_path(place: Path) -> Path:
    """Return the hidden folder for writing a file or folder."""
    name = place.name
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        name = f"{name[:40]}.{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
    return place.with_name(f".{name}{HIDDEN_SUFFIX}")


def check_not_input(place: Path) -> None:
    """Raise `SinkError` if writing `place` would change an input of the same command.

    Files are compared by identity, so links and relative names count. `place` must not contain an input, and must not
    be in a folder that is an input.
    """
    real = Path(os.path.realpath(place))
    where, remedy = Where(str(place)), "name another output"
    for name in inputs.current_inputs():
        source = Path(os.path.realpath(name))
        if real == source or _is_same_file(place, name):
            raise SinkError("is an input of the same command", where=where, remedy=remedy)
        if real in source.parents:
            raise SinkError("contains an input of the same command", name, where=where, remedy=remedy)
        if source in real.parents and source.is_dir():
            raise SinkError("is in a folder that the same command reads", name, where=where, remedy=remedy)


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


def _try_lock(descriptor: int) -> bool:
    """Lock an open file. True if this succeeds, and on file systems without locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _NO_LOCKS
    return True


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
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def writer_error(place: Path) -> SinkError:
    """Return the error of a file that already has a writer."""
    what = "is being written by another process, or by another thread of this one"
    return SinkError(what, where=Where(str(place)), remedy="name another output, or wait until it is complete")


def open_in_place(path: Path) -> FileIO:
    """Open a file for writing under its own name, lock it and truncate it. It has no buffer, so a crash loses nothing.

    Raises `SinkError` if the file is an input or has another writer, and `OSError` if it cannot be opened.
    """
    check_not_input(path)
    if is_being_written(hidden_path(path)):
        raise writer_error(path)
    while True:
        # Truncate only after locking: the file may be the recording of another process.
        file = FileIO(path, "wb", opener=lambda name, flags: os.open(name, flags & ~os.O_TRUNC, 0o666))
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        if not _try_lock(file.fileno()):
            file.close()
            raise writer_error(path)
        if _is_open_file(file.fileno(), path):
            file.truncate(0)
            return file
        file.close()


def save_text(path: Path, text: str) -> None:
    """Write a text file atomically: a crash leaves the old text or the new one."""
    part = path.with_name(f"{path.name}.new")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


@contextmanager
def lock_leftover(place: Path) -> Iterator[Path]:
    """Lock the hidden folder that a crash left of `place`, and yield it. Raises `SinkError` if it has a live writer."""
    try:
        descriptor = os.open(hidden_path(place), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise SinkError("has no unfinished recording", error.strerror, where=Where(str(place))) from error
    lock = Lock(descriptor)
    try:
        if not _try_lock(descriptor):
            raise writer_error(place)
        yield hidden_path(place)
    finally:
        lock.release()


class HiddenFolder:
    """The hidden folder for writing one output, with its locks."""

    def __init__(self, place: Path) -> None:
        """Create the folder, lock it and remove the files that a crash left in it.

        Raises `SinkError` if `place` is an input or has another writer, and `OSError` if the folder cannot be created.
        """
        check_not_input(place)
        self.place = place
        self.folder = hidden_path(place)
        self._locks = [self._lock_folder()]
        try:
            self._lock_target()
            self._empty_folder()
        except BaseException:
            self.release()
            raise

    def _lock_folder(self) -> Lock:
        """Create the folder if necessary, and return its lock."""
        while True:
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir()
            try:
                descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:  # its writer has just removed it
                continue
            lock = Lock(descriptor)
            if not _try_lock(descriptor):
                raise writer_error(self.place)
            if _is_open_file(descriptor, self.folder):
                return lock
            lock.release()

    def _lock_target(self) -> None:
        """Lock the file that will be replaced. Raises `SinkError` if a process writes to it in place."""
        try:
            if not stat.S_ISREG(self.place.stat().st_mode):
                return
            descriptor = os.open(self.place, os.O_RDONLY)
        except OSError:
            return
        self._locks.append(Lock(descriptor))
        if not _try_lock(descriptor):
            raise writer_error(self.place)

    def _empty_folder(self) -> None:
        """Remove the files of a crashed run. If it crashed while replacing a folder, restore that folder."""
        left = list(self.folder.iterdir())
        if self.backup.is_dir() and not self.place.exists():
            self.backup.rename(self.place)
        for path in left:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        if left:
            LOG.info("%s: the unfinished recording of a run that crashed is replaced", self.place)

    @property
    def backup(self) -> Path:
        """Path of the old folder while a new one replaces it."""
        return self.folder / ".old"

    def commit(self, made: Path) -> None:
        """Rename `made` to the target. If this fails, restore the folder that was there."""
        if not made.is_dir():
            made.replace(self.place)
            return
        if not self.place.is_dir():
            made.rename(self.place)
            return
        self.place.rename(self.backup)
        try:
            made.rename(self.place)
        except OSError:
            self.backup.rename(self.place)
            raise

    def release(self) -> None:
        """Remove the folder with its content, and release the locks; never raises."""
        if self._locks:
            shutil.rmtree(self.folder, ignore_errors=True)
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
    work = HiddenFolder(Path(os.path.realpath(target)))
    try:
        part = work.folder / target.name
        yield part
        work.commit(part)
    finally:
        work.release()
