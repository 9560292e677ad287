"""Recordings: files of readings, ground truth and metadata, in one of the registered formats."""

from __future__ import annotations

import os
from pathlib import Path

from navsense.core.errors import RecordingError, Where
from navsense.recordings import csv_tables, device_logs, euroc, message_formats, npz, parquet
from navsense.recordings.base import check_recording_path, require_format, to_path
from navsense.recordings.dataset import Dataset
from navsense.recordings.format import (
    Capability,
    Format,
    find_format_by_suffix,
    find_suffix,
    format_runs_remedy,
    get_storage_path,
    list_formats,
    list_suffixes,
    register_format,
)
from navsense.recordings.info import RecordedRun, RecordingWriter, make_recorded_run
from navsense.world import World

__all__ = [
    "FORMATS",
    "Capability",
    "Dataset",
    "Format",
    "RecordedRun",
    "RecordingWriter",
    "check_name",
    "find_output_format",
    "get_data_path",
    "get_storage_path",
    "make_recorded_run",
    "open",
    "open_writer",
    "register_format",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


FORMATS = (
    message_formats.MCAP,
    message_formats.GAZEBO,
    message_formats.GAZEBO_CLASSIC,
    npz.FORMAT,
    parquet.FORMAT,
    message_formats.ROS1_BAG,
    message_formats.ROS2_BAG,
    euroc.FORMAT,
    csv_tables.FORMAT,
    *device_logs.FORMATS,
    message_formats.ROS2_MCAP_BAG,
)
"""The formats of navsense."""

for _format in FORMATS:
    register_format(_format)


def check_name(path: Path) -> None:
    """Raise `RecordingError` for a path without a file name, and for a name that is only a suffix.

    >>> ns.recordings.check_name(Path("run.mcap"))
    """
    if not path.name or path.name.lower() in list_suffixes():
        allowed = "must have something before its suffix" if path.name else "must be a file's"
        raise RecordingError(
            "name of a recording", str(path), allowed=allowed, remedy=f"write run{path.name or '.mcap'}"
        )


def find_output_format(path: Path, world: World | None = None) -> Format:
    """Return the format in which a recording with this path is written, by its suffix. Opens no file.

    Raises `RecordingError` if no format has the suffix, or the path cannot be written; with `world` also if the format
    cannot hold its sensors.

    >>> ns.recordings.find_output_format(Path("run.csv")).is_folder
    True
    """
    check_name(path)
    recording_format = find_format_by_suffix(path)
    if recording_format is None or recording_format.open_writer is None:
        raise RecordingError(
            "no recording has this suffix",
            path.suffix or path.name,
            allowed="known are " + ", ".join(list_suffixes(entry for entry in list_formats() if entry.open_writer)),
            where=Where(str(path)),
            remedy="name the file with one of them",
        )
    check_recording_path(recording_format, path, world)
    return recording_format


def get_data_path(path: str | os.PathLike[str]) -> Path:
    """Return the file or folder with the data of a recording.

    `run.mcap` -> `run.mcap`; `run.csv` -> `run`; `run.db3` -> `run/run.db3`, while `get_storage_path` returns `run`.

    >>> str(ns.recordings.get_data_path("run.db3"))
    'run/run.db3'
    """
    target = Path(path)
    recording_format = find_format_by_suffix(target)
    return (
        recording_format.data_path(target)
        if recording_format and recording_format.data_path
        else get_storage_path(target)
    )


def open_writer(path: str | os.PathLike[str], recorded_run: RecordedRun) -> RecordingWriter:
    """Open a recording for writing, in the format of its suffix. Raises `RecordingError` if it cannot be opened.

    The writer of a format is its `Format.open_writer`: of .mcap `mcap.writer.McapWriter` (see `message_formats`).

    >>> with ns.recordings.open_writer("flight.mcap", ns.recordings.make_recorded_run(run.session)) as writer:
    ...     for time_slice in run.slices():
    ...         writer.write(time_slice)
    """
    target = to_path(path)
    recording_format = find_output_format(target)
    if Capability.RUNS not in recording_format.capabilities and len(recorded_run.runs) != 1:
        allowed = f"a recording in {find_suffix(target)} holds one run"
        raise RecordingError(
            "runs",
            len(recorded_run.runs),
            allowed=allowed,
            where=Where(str(target)),
            remedy=f"choose one with --run, or {format_runs_remedy()}",
        )
    assert recording_format.open_writer is not None  # noqa: S101 - `find_output_format` returns no other
    return recording_format.open_writer(target, recorded_run)


def open(path: str | os.PathLike[str]) -> Dataset:  # noqa: A001 - it opens a recording as `open` opens a file
    """Return a recording of any format: a mapping of sensor name -> `Reading`.

    A recording in .npz, .parquet or .csv returns exactly what was recorded. One of messages, of navsense or of another
    program, returns one run, without the samples that were not published. Raises `RecordingError` if the file is not a
    recording, is damaged or is truncated.

    >>> run.save("flight.mcap")
    >>> recording = ns.open("flight.mcap")
    >>> recording["imu"]["angular_velocity"].shape
    (1000, 3)
    >>> recording.truth["quadrotor"].position.shape
    (100, 3)
    """
    target = to_path(path)
    return require_format(target).read(target)
