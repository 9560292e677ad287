"""What a sink is, what it must know before the first reading, and the errors of files."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Protocol, Self

from navsense import inputs, outputs
from navsense.errors import NavsenseError, SinkError, Where
from navsense.messages.schemas import DEFAULT_DISTRIBUTION, DISTRIBUTIONS
from navsense.recordings.format import (
    Capability,
    Format,
    find_suffix,
    format_of_name,
    format_of_recording,
    list_formats,
    list_suffixes,
    storage_path,
)
from navsense.recordings.topic_names import TopicNames, allocate_topics
from navsense.series import TimeSlice
from navsense.world import World


@dataclass(frozen=True, eq=False)
class RecordingHeader:
    """The head of a recording: the world, the run, and what to keep.

    `epoch` is the integer second of t = 0, `duration` the seconds that were asked for: a run may end before. `runs` are
    the numbers of the runs, one or those along the leading axis of the readings. `truth` false leaves out ideal values,
    hidden errors and the truth of links. `ros` is the ROS 2 distribution of the message definitions. `topics` are those
    of the recording that this one is made from, if there is one. Raises `SinkError` for an unknown distribution.
    """

    world: World
    epoch: int = 0
    seed: int = 0
    duration: float = 0.0
    runs: Sequence[int] = (0,)
    truth: bool = True
    ros: str = DEFAULT_DISTRIBUTION
    topics: TopicNames | None = None

    def __post_init__(self) -> None:
        """Reject an unknown ROS distribution."""
        if self.ros not in DISTRIBUTIONS:
            allowed = f"must be one of {', '.join(DISTRIBUTIONS)}; jazzy includes later distributions"
            raise SinkError("distribution of ROS", self.ros, allowed=allowed)

    def allocate_topics(self) -> TopicNames:
        """Return the topics of everything in the recording."""
        return allocate_topics(self.world, self.topics, truth=self.truth)


class HasRunSettings(Protocol):
    """What `recording` reads of a run that is about to be made."""

    @property
    def world(self) -> World:
        """Return the world."""
        ...

    @property
    def epoch(self) -> int:
        """Return the integer second of t = 0."""
        ...

    @property
    def seed(self) -> int:
        """Return the seed."""
        ...

    @property
    def duration(self) -> float:
        """Return the duration in s, infinite for a live run."""
        ...

    @property
    def runs(self) -> Sequence[int]:
        """Return the numbers of the runs."""
        ...


def build_header(run: HasRunSettings, *, truth: bool = True, ros: str = DEFAULT_DISTRIBUTION) -> RecordingHeader:
    """Return the head of the recording of a run; `truth` false leaves out what no robot could know."""
    return RecordingHeader(run.world, run.epoch, run.seed, run.duration, tuple(run.runs), truth, ros)


class RecordingWriter(Protocol):
    """Where slabs go, in order of time; a context that closes it, or ends it after an error."""

    def __enter__(self) -> Self:
        """Return this sink."""
        ...

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close, or end after an error."""
        ...

    def write(self, time_slice: TimeSlice) -> None:
        """Take one slab. Raise `SinkError` where it cannot be kept."""
        ...

    def close(self) -> None:
        """Finish the recording; nothing may be written afterwards. Raise `SinkError` where it cannot be finished."""
        ...

    def abort(self) -> None:
        """Give up: of a format that cannot be read unfinished nothing is left; never raises."""
        ...


class WriterBase(ABC):
    """How a sink that is a context ends: closed, or after an error elsewhere with what the format can keep."""

    def __enter__(self) -> Self:
        """Return this sink."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close, or keep what can be kept."""
        if kind is None:
            self.close()
        else:
            # The error that ended the run is the one to be seen.
            with contextlib.suppress(Exception):
                self.salvage()

    @abstractmethod
    def close(self) -> None:
        """Finish the recording."""

    @abstractmethod
    def salvage(self) -> None:
        """End with what can be kept of the slabs that came before an error."""


def closed_error(path: Path | str) -> SinkError:
    """Return the error of a recording that takes nothing more."""
    return SinkError("the recording is closed, or has already failed", where=Where(str(path)))


@contextlib.contextmanager
def add_path_to_errors(path: Path) -> Iterator[None]:
    """Add the name of a recording to an error that names no file."""
    try:
        yield
    except NavsenseError as error:
        error.where = error.where or Where(str(path))
        raise


def write_all(file: FileIO, data: bytes | memoryview) -> None:
    """Write all of some bytes to a file without a buffer, which may take a part of them at a time."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


ROS_KEY = "ros"
"""Metadata key of the ROS 2 distribution of the message definitions."""

WORLD_KEY = "layout"
"""Key of the world's JSON, see `world_json`, beside what a recording says of itself."""


def get_version() -> str:
    """Return the version of navsense, "0" where it is not installed."""
    try:
        return metadata.version("navsense")
    except metadata.PackageNotFoundError:
        return "0"


def requested_duration(recording: RecordingHeader) -> float | None:
    """Return the duration (s) that was asked for; None for a run without an end of its own."""
    return recording.duration if math.isfinite(recording.duration) else None


def format_runs(recording: RecordingHeader) -> str:
    """Return the numbers of the runs as a JSON list."""
    return json.dumps([int(run) for run in recording.runs])


def os_error(path: Path, error: OSError, doing: str = "write") -> SinkError:
    """Return an operating-system error as one of ours, with its remedy."""
    remedies = {
        errno.ENOSPC: "free some space or choose another disk",
        errno.EDQUOT: "free some of the quota or choose another disk",
        errno.EFBIG: "raise the limit on file sizes or record a shorter time",
        errno.EACCES: "choose a place that you may write to" if doing == "write" else "ask for the right to read it",
        errno.EPERM: "choose a place that you may write to" if doing == "write" else "ask for the right to read it",
        errno.EROFS: "choose a disk that is not read-only",
        errno.ENOENT: "create the directory first" if doing == "write" else "check the name",
        errno.ENOTDIR: "a part of the path is a file: choose another",
        errno.EISDIR: "name a file, not a directory",
        errno.ENAMETOOLONG: "choose a shorter name",
        errno.ELOOP: "choose another name: this is a link to itself",
    }
    part = outputs.hidden_path(storage_path(path)) if path.name else path
    is_missing = doing == "read" and error.errno == errno.ENOENT
    if is_missing and outputs.is_hidden_folder(part) and outputs.is_being_written(part):
        return outputs.reader_error(path)
    what = f"cannot be {'written' if doing == 'write' else 'read'}: {(error.strerror or str(error)).lower()}"
    remedy = remedies.get(error.errno or 0, "")
    if is_missing:
        remedy = recovery_command(path) or remedy
    return SinkError(what, where=Where(str(path)), remedy=remedy)


def no_thread_error(where: Where) -> SinkError:
    """Return the error of a recording if the system cannot start its thread."""
    what = "cannot be written: the system cannot start another thread"
    return SinkError(what, where=where, remedy="end other programs or raise the limit on processes (ulimit -u)")


SUFFIX = ".mcap"
"""Suffix of MCAP files."""


def recovery_command(path: Path) -> str:
    """Return the remedy that recovers a crashed recording; "" if there is none."""
    part = outputs.hidden_path(storage_path(path)) if path.name else path
    return f"recover the crashed recording with: navsense recover {path}" if outputs.is_hidden_folder(part) else ""


def to_path(path: object) -> Path:
    """Return a path. Raises `SinkError` for another type, an empty path (the current folder), and a null character."""
    if not isinstance(path, str | os.PathLike):
        allowed = "must be a file name or a path"
        raise SinkError("path of a recording", repr(path), allowed=allowed, remedy='write "run.mcap"')
    if not os.fspath(path):
        raise SinkError("the name of a recording is empty", remedy="name a file or a folder")
    if "\0" in os.fsdecode(path):
        raise SinkError("path of a recording", repr(path), allowed="must not contain a null character")
    return Path(os.fsdecode(path))


def recovered_name(path: str | os.PathLike[str]) -> Path:
    """Return the default path of a recovered recording: the old path with -recovered added to the name."""
    old = to_path(path)
    found = format_of_name(old)
    suffix = find_suffix(old) if found and Capability.RECOVERY in found.capabilities else ""
    stem = old.name[: len(old.name) - len(suffix)]
    return old.with_name(f"{stem}-recovered{suffix or SUFFIX}")


def is_recovered(path: Path) -> bool:
    """Return True if the recovered recording of a truncated file exists and is not older."""
    saved = storage_path(recovered_name(path))
    return path.is_file() and saved.exists() and saved.stat().st_mtime >= path.stat().st_mtime


def find_format(path: Path) -> Format:
    """Return the format of an existing recording. Raises `SinkError` if it is unknown."""
    found = format_of_recording(path)
    if found:
        return found
    if path.is_dir():
        files = " or ".join(file for one in list_formats() for file in one.folder_files)
        remedy = f"name a file in it, or a folder that holds {files}"
        raise SinkError("is a directory, and no recording", where=Where(str(path)), remedy=remedy)
    if not path.exists() and recovery_command(path):
        raise os_error(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), "read")
    raise SinkError(
        "no recording has this suffix",
        path.suffix or path.name,
        allowed="known are " + ", ".join(list_suffixes()),
        where=Where(str(path)),
    )


def check_target(path: Path) -> None:
    """Raise `SinkError` if `path` cannot be a new file: it is a directory, a pipe or an input, or has no directory."""
    outputs.check_not_input(path)
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # raises for a link to itself
        if path.is_dir():
            raise SinkError("is a directory", where=Where(str(path)), remedy="name a file in it")
        if path.is_fifo() or path.is_socket():
            raise SinkError(
                "is a pipe; a recording is written to a file", where=Where(str(path)), remedy="choose another name"
            )
        if not path.parent.is_dir():
            raise SinkError(
                "the directory does not exist", str(path.parent), where=Where(str(path)), remedy="create it first"
            )
    except (OSError, ValueError) as error:
        raise SinkError(f"no possible file name: {error}", where=Where(str(path))) from error


def open_for_reading(path: Path) -> BinaryIO:
    """Return a file opened for reading. Raises `SinkError` if that fails or the file is special (`inputs`)."""
    inputs.add_input(path)
    try:
        if inputs.is_special(path.stat()):
            # Asked before opening: a pipe that nobody writes to is never open.
            raise SinkError(inputs.SPECIAL, where=Where(str(path)), remedy="copy its content to a file")
        return path.open("rb")
    except OSError as error:
        raise os_error(path, error, "read") from error
    except ValueError as error:
        raise SinkError(f"no possible file name: {error}", where=Where(str(path))) from error
