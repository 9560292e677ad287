"""Recordings: what a run is written to, one format a suffix."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from navsense.errors import SinkError, Where
from navsense.sinks.base import Opener, Recording, Sink, check_target, recording
from navsense.sinks.device import DeviceSink, PortSink, is_port
from navsense.sinks.euroc import EurocSink
from navsense.sinks.gazebo import GazeboSink
from navsense.sinks.mcap import McapSink
from navsense.sinks.npz import NpzSink
from navsense.sinks.parquet import ParquetSink, library
from navsense.sinks.rosbag import Ros1Sink, Ros2Sink, bag_file
from navsense.sinks.rosbag import check_folder as check_bag
from navsense.sinks.tables import CsvSink, check_folder, folder_of

__all__ = ["SINKS", "Recording", "Sink", "check", "open", "recording", "written"]

SINKS: Mapping[str, Opener] = {
    ".mcap": McapSink,
    ".gz.mcap": GazeboSink,
    ".npz": NpzSink,
    ".parquet": ParquetSink,
    ".bag": Ros1Sink,
    ".db3": Ros2Sink,
    ".csv": CsvSink,
    ".euroc": EurocSink,
    ".pd0": DeviceSink,
    ".pd6": DeviceSink,
    ".wl.json": DeviceSink,
    ".nmea": DeviceSink,
}
"""Suffix, or the last two -> what opens such a recording."""


def check(path: str | os.PathLike[str]) -> Opener:
    """Return what writes to `path`, by its suffix; raise `SinkError` where nothing can. Touches no file."""
    target = Path(path)
    if is_port(target):
        return PortSink
    opener = SINKS.get("".join(target.suffixes[-2:]).lower()) or SINKS.get(target.suffix.lower())
    if opener is None:
        raise SinkError(
            "no recording has this suffix",
            target.suffix or target.name,
            allowed="known are " + ", ".join(SINKS),
            where=Where(str(target)),
            remedy="name the file with one of them",
        )
    check_target(target)
    if opener is ParquetSink:
        library(target)
    if opener is Ros2Sink:
        check_bag(target)
    if opener in (CsvSink, EurocSink):
        check_folder(target)
    return opener


def written(path: str | os.PathLike[str]) -> Path:
    """Return what holds a recording of this name: itself, of a bag of ROS 2 the file in its folder, a folder of CSV."""
    target = Path(path)
    if target.suffix.lower() in (".csv", ".euroc"):
        return folder_of(target)
    return bag_file(target) if target.suffix.lower() == ".db3" else target


def open(path: str | os.PathLike[str], head: Recording) -> Sink:  # noqa: A001 - read as sinks.open
    """Return a sink that writes to `path`, by its suffix. Raise `SinkError` where it cannot be opened."""
    return check(path)(Path(path), head)
