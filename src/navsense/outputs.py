"""Files that navsense writes: each has one writer at a time, and none is an input of the same command.

A file is either written in place (`open_in_place`) or made in a hidden folder beside it and renamed when it is complete
(`Workplace`, `replacing`). The writer holds an advisory lock of the operating system on the file or on the hidden
folder. The system releases the lock when the process dies, so a crash blocks no later run; the hidden folder that it
leaves is named by `navsense recover`.
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

PART = ".part"
"""Suffix of a hidden folder."""

LONGEST_NAME = 240
"""Bytes of a name that a hidden folder still repeats; file systems allow 255."""

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""Errors of file systems that have no locks."""


def part_of(place: Path) -> Path:
    """Return the hidden folder in which a file or folder is made."""
    name = place.name
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = f"{name[:40]}.{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
    return place.with_name(f".{name}{PART}")


def check_not_input(place: Path) -> None:
    """Raise `SinkError` where writing `place` would change an input of the same command.

    Files are compared by identity, so that links and relative names count. `place` may also not contain an input, nor
    lie in a folder that is one.
    """
    real = Path(os.path.realpath(place))
    where, remedy = Where(str(place)), "name another output"
    for name in inputs.current_inputs():
        source = Path(os.path.realpath(name))
        if real == source or _same(place, name):
            raise SinkError("is an input of the same command", where=where, remedy=remedy)
        if real in source.parents:
            raise SinkError("contains an input of the same command", name, where=where, remedy=remedy)
        if source in real.parents and source.is_dir():
            raise SinkError("is in a folder that the same command reads", name, where=where, remedy=remedy)


def _same(one: Path, other: str) -> bool:
    """Return whether two names are of one file."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


class Lock:
    """An exclusive advisory lock on a file or folder, until it is released or the process ends."""

    def __init__(self, number: int) -> None:
        """Keep the open file."""
        self._number: int | None = number

    def release(self) -> None:
        """Release the lock."""
        number, self._number = self._number, None
        if number is not None:
            os.close(number)

    def __del__(self) -> None:
        """Release the lock of a writer that was not closed."""
        self.release()


def _is_locked_by(number: int) -> bool:
    """Lock an open file; return whether that worked. A file system without locks counts as locked by us."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _NO_LOCKS
    return True


def _is_still(number: int, path: Path) -> bool:
    """Return whether an open file is the one that a path names; another process may have replaced it."""
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except FileNotFoundError:
        return False


def is_being_written(path: Path) -> bool:
    """Return whether a live process, this one included, holds the lock on a file or folder."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return not _is_locked_by(number)
    finally:
        os.close(number)


def busy(place: Path) -> SinkError:
    """Return the error of a file that has a writer already."""
    what = "is being written by another process, or by another thread of this one"
    return SinkError(what, where=Where(str(place)), remedy="name another output, or wait until it is complete")


def open_in_place(path: Path) -> FileIO:
    """Open a file for writing under its own name, emptied and locked; unbuffered, so that a crash loses nothing.

    Raises `SinkError` where it is an input or has another writer, and `OSError` where it cannot be opened.
    """
    check_not_input(path)
    if is_being_written(part_of(path)):
        raise busy(path)
    while True:
        # Not emptied before it is locked: it may be the recording of another process.
        file = FileIO(path, "wb", opener=lambda name, flags: os.open(name, flags & ~os.O_TRUNC, 0o666))
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        if not _is_locked_by(file.fileno()):
            file.close()
            raise busy(path)
        if _is_still(file.fileno(), path):
            file.truncate(0)
            return file
        file.close()


def save_text(path: Path, text: str) -> None:
    """Write a text file at once: a crash leaves the old text or the new one."""
    part = path.with_name(f"{path.name}.new")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


@contextmanager
def locked_leftover(place: Path) -> Iterator[Path]:
    """Yield the hidden folder that a crash left of `place`, locked. Raises `SinkError` where it has a live writer."""
    try:
        number = os.open(part_of(place), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise SinkError("a crash left nothing of it", error.strerror, where=Where(str(place))) from error
    lock = Lock(number)
    try:
        if not _is_locked_by(number):
            raise busy(place)
        yield part_of(place)
    finally:
        lock.release()


class Workplace:
    """The hidden folder in which one output is made, and the right to make it."""

    def __init__(self, place: Path) -> None:
        """Make the folder, empty. What a crash left in it is removed.

        Raises `SinkError` where `place` is an input or has another writer, and `OSError` where the folder cannot be
        made.
        """
        check_not_input(place)
        self.place = place
        self.folder = part_of(place)
        self._locks = [self._locked()]
        try:
            self._lock_place()
            self._clear()
        except BaseException:
            self.release()
            raise

    def _locked(self) -> Lock:
        """Return the lock on the folder, which is made if need be."""
        while True:
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir()
            try:
                number = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:  # its owner has just removed it
                continue
            lock = Lock(number)
            if not _is_locked_by(number):
                raise busy(self.place)
            if _is_still(number, self.folder):
                return lock
            lock.release()

    def _lock_place(self) -> None:
        """Lock the file that will be replaced. Raises `SinkError` where a process writes to it in place."""
        try:
            if not stat.S_ISREG(self.place.stat().st_mode):
                return
            number = os.open(self.place, os.O_RDONLY)
        except OSError:
            return
        self._locks.append(Lock(number))
        if not _is_locked_by(number):
            raise busy(self.place)

    def _clear(self) -> None:
        """Remove what a crash left in the folder; give back a folder that was about to be replaced."""
        left = list(self.folder.iterdir())
        if self.old.is_dir() and not self.place.exists():
            self.old.rename(self.place)
        for path in left:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        if left:
            LOG.info("%s: the unfinished recording of a run that crashed is replaced", self.place)

    @property
    def old(self) -> Path:
        """Return where a folder lies that is being replaced."""
        return self.folder / ".old"

    def deliver(self, made: Path) -> None:
        """Rename what was made to its place. A folder that is there is put back if that fails."""
        if not made.is_dir():
            made.replace(self.place)
            return
        if not self.place.is_dir():
            made.rename(self.place)
            return
        self.place.rename(self.old)
        try:
            made.rename(self.place)
        except OSError:
            self.old.rename(self.place)
            raise

    def release(self) -> None:
        """Remove the folder with what is in it, and release the locks; never raises."""
        if self._locks:
            shutil.rmtree(self.folder, ignore_errors=True)
        for lock in self._locks:
            lock.release()
        self._locks = []


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield the file to write; it takes the place of `target` at the end of the context, unless there was an error.

    A link is followed. A device, such as /dev/stdout, is written to directly.
    """
    if target.exists() and not target.is_file():
        yield target
        return
    work = Workplace(Path(os.path.realpath(target)))
    try:
        part = work.folder / target.name
        yield part
        work.deliver(part)
    finally:
        work.release()
