"""Recordings: what a run is written to, one format a suffix."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from navsense import outputs
from navsense.errors import SinkError, Where
from navsense.sinks.base import Opener, Recording, Sink, check_target, recording, storage_path, to_path
from navsense.sinks.device import ADDRESS, DeviceSink, PortSink, address, is_port, meant, served
from navsense.sinks.euroc import EurocSink
from navsense.sinks.gazebo import GazeboSink
from navsense.sinks.mcap import McapSink
from navsense.sinks.npz import NpzSink
from navsense.sinks.parquet import ParquetSink, library
from navsense.sinks.rosbag import Ros1Sink, Ros2Sink, bag_file
from navsense.sinks.rosbag import check_folder as check_bag
from navsense.sinks.tables import CsvSink, check_folder
from navsense.world import World

__all__ = ["SINKS", "Recording", "Sink", "check", "check_name", "open", "place", "recording", "written"]

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


def check_name(path: Path) -> None:
    """Raise `SinkError` where a path names nothing, or has a suffix with nothing before it."""
    if not path.name or path.name.lower() in SINKS:
        allowed = "must have something before its suffix" if path.name else "must be a file's"
        raise SinkError("name of a recording", str(path), allowed=allowed, remedy=f"write run{path.name or '.mcap'}")


def check(path: str | os.PathLike[str], world: World | None = None) -> Opener:
    """Return what writes to `path`, by its suffix; raise `SinkError` where nothing can. Touches no file.

    Of a `world` it is asked too whether it has the instrument that a device's log is of.
    """
    target = to_path(path)
    if is_port(target):
        address(target)
        if world is not None:
            served(target, world)
        return PortSink
    check_name(target)
    opener = SINKS.get("".join(target.suffixes[-2:]).lower()) or SINKS.get(target.suffix.lower())
    if opener is None and ADDRESS.fullmatch(str(target)):
        address(target)
    if opener is None:
        raise SinkError(
            "no recording has this suffix",
            target.suffix or target.name,
            allowed="known are " + ", ".join(SINKS),
            where=Where(str(target)),
            remedy="name the file with one of them",
        )
    check_target(target)
    outputs.check_not_input(place(target))
    if opener is DeviceSink and world is not None:
        meant(target, world)
    if opener is ParquetSink:
        library(target)
    if opener is Ros2Sink:
        check_bag(target)
    if opener in (CsvSink, EurocSink):
        check_folder(target)
    return opener


def place(path: str | os.PathLike[str]) -> Path:
    """Return the file or the folder that a recording of this name is."""
    return storage_path(Path(path))


def written(path: str | os.PathLike[str]) -> Path:
    """Return what holds a recording of this name: itself, of a bag of ROS 2 the file in its folder, a folder of CSV."""
    target = Path(path)
    return bag_file(target) if target.suffix.lower() == ".db3" else place(target)


def open(path: str | os.PathLike[str], head: Recording) -> Sink:  # noqa: A001 - read as sinks.open
    """Return a sink that writes to `path`, by its suffix. Raise `SinkError` where it cannot be opened."""
    return check(path)(Path(path), head)
