"""Truncated recordings: hidden folders next to the recording, and truncated files.

A killed process leaves one, and so does a write that fails, for example on a full disk.

| format | recovered content |
|---|---|
| `.mcap`, `.gz.mcap`, `.gazebo.mcap` | all complete chunks |
| `.bag` | all complete chunks |
| `.db3` | all committed transactions |
| `.npz`, `.csv`, `.euroc` | all rows that are complete in every array of a sensor |
| `.parquet` | nothing of a killed process: a file without its footer cannot be read |

The formats declare this as `Format.recovery`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from navsense.core import atomic, inputs
from navsense.core.errors import NavsenseError, RecordingError, Where
from navsense.recordings.base import (
    check_recording_path,
    find_unrecoverable_remedy,
    is_recovered,
    make_os_error,
    make_recovered_path,
    open_for_reading,
    require_format,
    to_path,
)
from navsense.recordings.format import (
    Format,
    Recovery,
    RecoveryResult,
    find_format_by_suffix,
    get_storage_path,
    list_formats,
    list_suffixes,
)
from navsense.recordings.metadata import make_damaged_error
from navsense.recordings.summary import read_summary

MAGIC_SIZE = 16
"""Bytes at the start of a file that determine its format."""


@dataclass(frozen=True)
class Leftover:
    """A truncated recording: its name, output path, format (None if unknown), size in bytes and writer state."""

    path: Path
    target: Path
    format: Format | None
    size: int
    is_being_written: bool

    def __str__(self) -> str:
        """Return the state and the command to run."""
        if self.is_being_written:
            return f"{self.path}: is still being written by another process; wait until it ends"
        if is_recovered(self.path):
            saved = get_storage_path(make_recovered_path(self.path))
            return f"{self.path}: {self.size} bytes of a truncated recording; recovered already: {saved}"
        left = f"{self.path}: {self.size} bytes of a truncated recording"
        if self.recovery.recover:
            return f"{left}; recover it with: navsense recover {self.path}"
        return f"{left}; {self.recovery.obstacle}; remove it with: navsense recover --remove {self.path}"

    @property
    def recovery(self) -> Recovery:
        """How it is recovered."""
        return self.format.recovery if self.format else Recovery()


def find_leftover(path: Path) -> Leftover | None:
    """Return the truncated recording in a hidden folder, or None. `path` is its name or the folder."""
    if path.name.startswith(".") and path.suffix == atomic.HIDDEN_SUFFIX:
        place = path.with_name(path.name[1:].removesuffix(atomic.HIDDEN_SUFFIX))
    else:
        place = get_storage_path(path)
    hidden_folder = atomic.make_hidden_path(place) if place.name else None
    if hidden_folder is None or not atomic.is_hidden_folder(hidden_folder):
        return None
    recording_format = _find_format(hidden_folder)
    suffix = recording_format.suffixes[0] if recording_format and recording_format.is_folder else ""
    name = place.with_name(place.name + suffix)
    size = sum(file.stat().st_size for file in hidden_folder.rglob("*") if file.is_file())
    return Leftover(name, place, recording_format, size, atomic.is_being_written(hidden_folder))


def _find_format(folder: Path) -> Format | None:
    """Return the format of the recording in a hidden folder; None if it is unknown."""
    for recording_format in list_formats():
        files = recording_format.recovery.files
        if files and all(any(folder.glob(pattern)) for pattern in files):
            return recording_format
    return None


def list_leftovers(folder: str | os.PathLike[str]) -> list[Leftover]:
    """Return the truncated recordings in a folder: hidden folders, and truncated MCAP files."""
    suffixes = tuple(list_suffixes(entry for entry in list_formats() if entry.recovery.is_truncated))
    leftovers = []
    try:
        for path in sorted(to_path(folder).iterdir()):
            if path.name.startswith(".") and path.suffix == atomic.HIDDEN_SUFFIX:
                left = find_leftover(path)
            else:
                left = _find_truncated_file(path) if path.name.lower().endswith(suffixes) else None
            leftovers += [left] if left else []
    except OSError as error:
        raise make_os_error(to_path(folder), error, "read") from error
    return leftovers


def _find_truncated_file(path: Path) -> Leftover | None:
    """Return a truncated file; None for a complete one, and for other files."""
    recording_format = find_format_by_suffix(path)
    if recording_format is None or recording_format.recovery.is_truncated is None or not path.is_file():
        return None
    with open_for_reading(path) as file:
        if not recording_format.recovery.is_truncated(file):
            return None
        size = file.seek(0, os.SEEK_END)
    return Leftover(path, path, recording_format, size, atomic.is_being_written(path))


def is_intact(path: Path) -> bool:
    """Return True for a recording that can be read to its end. The log of an instrument has no end: False."""
    try:
        return bool(require_format(path).recovery.files and read_summary(path))
    except NavsenseError:
        return False


def remove_leftover(leftover: Leftover) -> bool:
    """Remove a hidden folder. Return True if there was one. Truncated files are not removed.

    Raises `RecordingError` if a live process writes to it.
    """
    hidden_folder = atomic.make_hidden_path(leftover.target)
    if not atomic.is_hidden_folder(hidden_folder):
        return False
    with atomic.lock_leftover(leftover.target):
        atomic.remove_hidden_folder(hidden_folder)
    return True


def recover(path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> RecoveryResult:
    """Recover the truncated recording `path` to `out`, by default `path` with -recovered in its name.

    An existing MCAP file or ROS 1 bag is read and kept. For other recordings, the hidden folder is read and then
    removed. An intact recording without a hidden folder is not written again. For an MCAP file or a ROS 1 bag, `out`
    writes it in any case.

    Raises `RecordingError` if nothing can be recovered, or if `out` cannot be written, has another suffix or is
    `path`.
    """
    path = to_path(path)
    recording_format = find_format_by_suffix(path)
    left = (
        None if path.is_file() and recording_format and recording_format.recovery.is_truncated else find_leftover(path)
    )
    with inputs.collect_inputs():
        inputs.add_input(path)
        if left is None and not (recording_format and recording_format.recovery.recovers_files) and is_intact(path):
            return RecoveryResult("", 0, complete=True, is_truncated=False, is_intact=True)
        if left is None:
            return _recover_file(path, path, _find_file_format(path), out)
        with atomic.lock_leftover(left.target) as hidden_folder:
            if left.format is None or not left.recovery.recover:
                remedy = f"remove it with: navsense recover --remove {left.path}"
                raise RecordingError(left.recovery.obstacle, where=Where(str(left.path)), remedy=remedy)
            saved = _recover_file(next(hidden_folder.glob(left.recovery.files[0])), left.path, left.format, out)
            atomic.remove_hidden_folder(hidden_folder)
        return saved


def _find_file_format(path: Path) -> Format:
    """Return the format of a file by its first bytes. Raises `RecordingError` for a file that cannot be recovered."""
    with open_for_reading(path) as file:
        head = file.read(MAGIC_SIZE)
    for recording_format in list_formats():
        if recording_format.recovery.recovers_files and head.startswith(recording_format.recovery.magic):
            return recording_format
    remedy = find_unrecoverable_remedy(path)
    raise RecordingError("is not an MCAP file or a ROS 1 bag", where=Where(str(path)), remedy=remedy)


def _recover_file(
    file: Path, path: Path, recording_format: Format, out: str | os.PathLike[str] | None
) -> RecoveryResult:
    """Recover the complete part of the recording `path`, of which `file` is in the hidden folder."""
    target = make_recovered_path(path) if out is None else to_path(out)
    suffix = recording_format.suffixes[0]
    if target.suffix.lower() != suffix:
        raise RecordingError(
            f"the recovered recording has the format {suffix}",
            target.suffix or target.name,
            allowed=f"its name must end in {suffix}",
            where=Where(str(target)),
            remedy=f"name it {target.with_suffix(suffix).name}",
        )
    check_recording_path(recording_format, target)
    recover_file = recording_format.recovery.recover
    if out is None and file == path:
        recover_file = recording_format.recovery.recover_unless_intact or recover_file
    assert recover_file is not None  # noqa: S101 - the callers pass no other format
    try:
        return recover_file(file, target)
    except NavsenseError:
        raise
    except OSError as error:
        raise make_os_error(target, error) from error
    except Exception as error:
        raise make_damaged_error(path, error) from error
