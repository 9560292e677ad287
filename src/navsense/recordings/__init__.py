"""Recordings: what a run is written to, one format a suffix."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from navsense import outputs
from navsense.errors import RecordingError, Where
from navsense.recordings.base import (
    RecordingHeader,
    RecordingWriter,
    WriterFactory,
    build_header,
    check_target,
    storage_path,
    to_path,
)
from navsense.recordings.csv_tables import CsvWriter, check_table_folder
from navsense.recordings.device_writers import (
    ADDRESS_PATTERN,
    DeviceLogWriter,
    DevicePortWriter,
    is_port_address,
    parse_address,
    resolve_log,
    resolve_port,
)
from navsense.recordings.euroc import EurocWriter
from navsense.recordings.gazebo import GazeboWriter
from navsense.recordings.mcap.writer import McapWriter
from navsense.recordings.npz import NpzWriter
from navsense.recordings.parquet import ParquetWriter, import_pyarrow
from navsense.recordings.rosbag.writer import Ros1BagWriter, Ros2BagWriter, bag_database, check_bag_folder
from navsense.world import World

__all__ = [
    "WRITERS",
    "RecordingHeader",
    "RecordingWriter",
    "build_header",
    "check_name",
    "data_path",
    "find_writer",
    "open_writer",
    "output_path",
]

WRITERS: Mapping[str, WriterFactory] = {
    ".mcap": McapWriter,
    ".gz.mcap": GazeboWriter,
    ".npz": NpzWriter,
    ".parquet": ParquetWriter,
    ".bag": Ros1BagWriter,
    ".db3": Ros2BagWriter,
    ".csv": CsvWriter,
    ".euroc": EurocWriter,
    ".pd0": DeviceLogWriter,
    ".pd6": DeviceLogWriter,
    ".wl.json": DeviceLogWriter,
    ".nmea": DeviceLogWriter,
}
"""Suffix, or the last two -> what opens such a recording."""


def check_name(path: Path) -> None:
    """Raise `RecordingError` where a path names nothing, or has a suffix with nothing before it."""
    if not path.name or path.name.lower() in WRITERS:
        allowed = "must have something before its suffix" if path.name else "must be a file's"
        raise RecordingError(
            "name of a recording", str(path), allowed=allowed, remedy=f"write run{path.name or '.mcap'}"
        )


def find_writer(path: str | os.PathLike[str], world: World | None = None) -> WriterFactory:
    """Return what writes to `path`, by its suffix; raise `RecordingError` where nothing can. Touches no file.

    Of a `world` it is asked too whether it has the instrument that a device's log is of.
    """
    target = to_path(path)
    if is_port_address(target):
        parse_address(target)
        if world is not None:
            resolve_port(target, world)
        return DevicePortWriter
    check_name(target)
    opener = WRITERS.get("".join(target.suffixes[-2:]).lower()) or WRITERS.get(target.suffix.lower())
    if opener is None and ADDRESS_PATTERN.fullmatch(str(target)):
        parse_address(target)
    if opener is None:
        raise RecordingError(
            "no recording has this suffix",
            target.suffix or target.name,
            allowed="known are " + ", ".join(WRITERS),
            where=Where(str(target)),
            remedy="name the file with one of them",
        )
    check_target(target)
    outputs.check_not_input(output_path(target))
    if opener is DeviceLogWriter and world is not None:
        resolve_log(target, world)
    if opener is ParquetWriter:
        import_pyarrow(target)
    if opener is Ros2BagWriter:
        check_bag_folder(target)
    if opener in (CsvWriter, EurocWriter):
        check_table_folder(target)
    return opener


def output_path(path: str | os.PathLike[str]) -> Path:
    """Return the file or the folder that a recording of this name is."""
    return storage_path(Path(path))


def data_path(path: str | os.PathLike[str]) -> Path:
    """Return what holds a recording of this name: itself, of a bag of ROS 2 the file in its folder, a folder of CSV."""
    target = Path(path)
    return bag_database(target) if target.suffix.lower() == ".db3" else output_path(target)


def open_writer(path: str | os.PathLike[str], header: RecordingHeader) -> RecordingWriter:
    """Return a writer that writes to `path`, by its suffix. Raise `RecordingError` where it cannot be opened."""
    return find_writer(path)(Path(path), header)
