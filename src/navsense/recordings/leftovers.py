"""Crashed recordings: hidden folders next to the recording, and truncated files.

| format | recovered content |
|---|---|
| `.mcap`, `.gz.mcap` | all complete chunks |
| `.bag` | all complete chunks |
| `.db3` | all committed transactions |
| `.npz`, `.csv`, `.euroc` | all rows that are complete in every array of a sensor |
| `.parquet` | nothing: a file without its footer cannot be read |
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from navsense.core import atomic, inputs
from navsense.core.atomic import HiddenFolder
from navsense.core.errors import RecordingError, Where
from navsense.recordings import csv_tables, npz
from navsense.recordings.base import is_recovered, open_for_reading, os_error, recovered_name, to_path
from navsense.recordings.format import Capability, format_of_name, storage_path
from navsense.recordings.header import WORLD_KEY
from navsense.recordings.mcap import records
from navsense.recordings.mcap.recovery import RecoveryResult, recover_mcap
from navsense.recordings.message_copy import check_message_target, copy_messages
from navsense.recordings.npz import write_archive
from navsense.recordings.rosbag.reader import map_bag_errors
from navsense.recordings.rosbag.recovery import MAGIC as BAG_MAGIC
from navsense.recordings.rosbag.recovery import TruncatedBagReader, TruncatedDatabaseReader
from navsense.recordings.world_json import notes_about

_METADATA = inputs.FileKind("metadata", RecordingError, "must be a JSON object")

NO_FOOTER = "a .parquet cannot be read without its footer"
"""Reason why a Parquet file cannot be recovered."""


@dataclass(frozen=True)
class Leftover:
    """A crashed recording: its name, output path, format ("" if unknown), size in bytes and writer state."""

    path: Path
    target: Path
    suffix: str
    size: int
    is_being_written: bool

    def __str__(self) -> str:
        """Return the state and the command to run."""
        if self.is_being_written:
            return f"{self.path}: is still being written by another process; wait until it ends"
        if is_recovered(self.path):
            saved = storage_path(recovered_name(self.path))
            return f"{self.path}: {self.size} bytes of a truncated recording; recovered already: {saved}"
        left = f"{self.path}: {self.size} bytes of a truncated recording"
        if self.is_recoverable:
            return f"{left}; recover it with: navsense recover {self.path}"
        return f"{left}; {self.reason}; remove it with: navsense recover --remove {self.path}"

    @property
    def is_recoverable(self) -> bool:
        """True if the format of the recording is known and can be recovered."""
        found = format_of_name(Path(f"x{self.suffix}")) if self.suffix else None
        return found is not None and Capability.RECOVERY in found.capabilities

    @property
    def reason(self) -> str:
        """Return the reason why it cannot be recovered."""
        return NO_FOOTER if self.suffix == ".parquet" else "it contains no complete data"


def find_leftover(path: Path) -> Leftover | None:
    """Return the crashed recording in a hidden folder of navsense, or None. `path` is its name or the hidden folder."""
    if path.name.startswith(".") and path.suffix == atomic.HIDDEN_SUFFIX:
        place = path.with_name(path.name[1:].removesuffix(atomic.HIDDEN_SUFFIX))
    else:
        place = storage_path(path)
    part = atomic.hidden_path(place) if place.name else None
    if part is None or not atomic.is_hidden_folder(part):
        return None
    suffix = _find_format(part)
    found = format_of_name(Path(f"x{suffix}")) if suffix else None
    name = place.with_name(place.name + suffix) if found and found.is_folder else place
    size = sum(file.stat().st_size for file in part.rglob("*") if file.is_file())
    return Leftover(name, place, suffix, size, atomic.is_being_written(part))


def _find_format(folder: Path) -> str:
    """Return the format of the recording in a hidden folder; "" if it is unknown."""
    if (folder / npz.STATE_FILE).is_file():
        return ".npz"
    if (folder / csv_tables.CONTENT_FOLDER / csv_tables.METADATA_FILE).is_file():
        return ".euroc" if (folder / csv_tables.CONTENT_FOLDER / "mav0").is_dir() else ".csv"
    found = [*folder.glob("*.mcap"), *folder.glob("*.bag"), *folder.glob("*.parquet"), *folder.glob("*/*.db3")]
    return found[0].suffix if found else ""


def list_leftovers(folder: str | os.PathLike[str]) -> list[Leftover]:
    """Return the crashed recordings in a folder: hidden folders, and truncated MCAP files."""
    found = []
    try:
        for path in sorted(to_path(folder).iterdir()):
            if path.name.startswith(".") and path.suffix == atomic.HIDDEN_SUFFIX:
                left = find_leftover(path)
            else:
                left = _find_truncated_mcap(path) if path.suffix.lower() == ".mcap" else None
            found += [left] if left else []
    except OSError as error:
        raise os_error(to_path(folder), error, "read") from error
    return found


def _find_truncated_mcap(path: Path) -> Leftover | None:
    """Return a truncated MCAP file; None for a complete MCAP file and for other files."""
    if not path.is_file():
        return None
    with open_for_reading(path) as file:
        if not records.is_truncated(file):
            return None
        size = file.tell()
    return Leftover(path, path, ".mcap", size, atomic.is_being_written(path))


def remove_leftover(leftover: Leftover) -> bool:
    """Remove a hidden folder. Return True if there was one. Truncated files are not removed.

    Raises `RecordingError` if a live process writes to it.
    """
    part = atomic.hidden_path(leftover.target)
    if not atomic.is_hidden_folder(part):
        return False
    with atomic.lock_leftover(leftover.target):
        atomic.remove_hidden_folder(part)
    return True


def recover(path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> RecoveryResult:
    """Recover the crashed recording `path` to `out`, by default `path` with -recovered in its name.

    An existing MCAP file or ROS 1 bag is read and kept. For other recordings, the hidden folder is read and then
    removed.
    Raises `RecordingError` if nothing can be recovered, or if `out` cannot be written, has another suffix or is
    `path`.
    """
    path = to_path(path)
    left = None if path.is_file() and path.suffix.lower() == ".mcap" else find_leftover(path)
    with inputs.collect_inputs():
        inputs.add_input(path)
        if left is not None:
            return _recover_leftover(left, out)
        target = recovered_name(path) if out is None else to_path(out)
        if path.is_file() and _is_ros1_bag(path):
            _check_output(target, ".bag")
            return _recover_bag(path, target)
        return recover_mcap(path, target)


def _is_ros1_bag(path: Path) -> bool:
    """Return True if a file is a ROS 1 bag."""
    with open_for_reading(path) as file:
        return file.read(len(BAG_MAGIC)) == BAG_MAGIC


def _check_output(out: Path, suffix: str) -> None:
    """Raise `RecordingError` if the recovered recording cannot be written to `out`."""
    if out.suffix.lower() != suffix:
        raise RecordingError(
            f"the recovered recording has the format {suffix}",
            out.suffix or out.name,
            allowed=f"its name must end in {suffix}",
            where=Where(str(out)),
            remedy=f"name it {out.with_suffix(suffix).name}",
        )
    check_message_target(out)
    if suffix in (".csv", ".euroc"):
        csv_tables.check_table_folder(out)
    atomic.check_not_input(storage_path(out))


def _recover_leftover(left: Leftover, out: str | os.PathLike[str] | None) -> RecoveryResult:
    """Recover the recording in a hidden folder, and remove the folder."""
    target = recovered_name(left.path) if out is None else to_path(out)
    with atomic.lock_leftover(left.target) as part:
        if not left.is_recoverable:
            remedy = f"remove it with: navsense recover --remove {left.path}"
            raise RecordingError(left.reason, where=Where(str(left.path)), remedy=remedy)
        if left.suffix != ".mcap":
            _check_output(target, left.suffix)
        try:
            saved = _save_recording(part, left, target)
        except OSError as error:
            raise os_error(target, error) from error
        atomic.remove_hidden_folder(part)
    return saved


def _save_recording(folder: Path, left: Leftover, out: Path) -> RecoveryResult:
    """Recover the recording in a hidden folder."""
    if left.suffix == ".mcap":
        return recover_mcap(next(folder.glob("*.mcap")), out)
    if left.suffix == ".bag":
        return _recover_bag(next(folder.glob("*.bag")), out)
    if left.suffix == ".db3":
        source = TruncatedDatabaseReader(next(folder.glob("*/*.db3")))
        try:
            count, _ = copy_messages(source, out)
        finally:
            source.close()
        notes = notes_about(source.metadata.get(WORLD_KEY))
        return RecoveryResult(str(out), count, 0, 0, complete=False, notes=notes)
    work = HiddenFolder(storage_path(out))
    try:
        made = work.folder / work.target.name
        with map_bag_errors(left.path):
            save = _save_arrays if left.suffix == ".npz" else _save_tables
            count, metadata = save(folder, made)
        work.commit(made)
    finally:
        work.release()
    return RecoveryResult(str(out), count, 0, 0, complete=False, unit="row", notes=notes_about(metadata.get(WORLD_KEY)))


def _recover_bag(path: Path, out: Path) -> RecoveryResult:
    """Recover the complete chunks of a ROS 1 bag."""
    with open_for_reading(path) as file, map_bag_errors(path):
        source = TruncatedBagReader(path, file)
        count, _ = copy_messages(source, out)
    notes = notes_about(source.metadata.get(WORLD_KEY))
    return RecoveryResult(str(out), count, source.chunk_count, source.damaged_count, complete=False, notes=notes)


def _save_arrays(folder: Path, output: Path) -> tuple[int, Mapping[str, Any]]:
    """Write the archive of the arrays in a hidden folder; return the rows of all sensors, and the metadata."""
    columns, text = npz.read_unfinished_columns(folder)
    write_archive(output, columns, text)
    metadata = inputs.parse_json(text)
    return sum(columns[f"{name}/time"].count for name in metadata["sensors"]), metadata


def _save_tables(folder: Path, output: Path) -> tuple[int, Mapping[str, Any]]:
    """Write the tables of a hidden folder without their incomplete last lines.

    Return the rows of all series, and the metadata.
    """
    old = folder / csv_tables.CONTENT_FOLDER
    shutil.copytree(old, output, ignore=shutil.ignore_patterns("*.new"))
    files = sorted(output.rglob("*.csv"))
    counts = {file: sum(1 for _ in _complete_lines(file)) for file in files}
    companions = set[Path]()
    for file in files:  # two tables of one series get the length of the shorter one
        for other in (".rates.csv", ".layers.csv"):
            companion = file.with_name(file.name.removesuffix(".csv") + other)
            if companion in counts:
                counts[file] = counts[companion] = min(counts[file], counts[companion])
                companions.add(companion)
    for file, count in counts.items():
        os.truncate(file, sum(map(len, islice(_complete_lines(file), count))))
    rows = sum(max(count - 1, 0) for file, count in counts.items() if file not in companions)
    return rows, inputs.parse_json(inputs.read_bytes(str(old / csv_tables.METADATA_FILE), _METADATA))


def _complete_lines(file: Path) -> Iterator[bytes]:
    """Yield the complete lines of a table."""
    with open_for_reading(file) as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield line
