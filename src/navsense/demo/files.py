"""The files of the demo: recording, report and picture of a simulated quadrotor, and a compass to calibrate."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from navsense.core.errors import RecordingError, Where
from navsense.demo.flight_picture import write_flight_picture
from navsense.picture import draw
from navsense.recordings.base import make_os_error, to_path
from navsense.report import write as write_report
from navsense.runner.run import record
from navsense.sdf import load
from navsense.simulation.run_arrays import Progress

QUADROTOR = Path(__file__).parent / "quadrotor.sdf"
"""World file of a quadrotor that flies in a circle: IMU, compass, barometer, altimeter and GPS, on two clocks."""

COMPASS = Path(__file__).parent / "compass.sdf"
"""World file of a compass near iron that is turned in all directions, for `navsense calibrate`."""

DURATION = 60.0
"""Duration (s) of both recordings: one round of the quadrotor."""

EPOCH = 1767225600
"""Unix time of the start, 2026-01-01: viewers show a date, and ROS 1 has no stamps before 1970."""


@dataclass(frozen=True)
class DemoFile:
    """A file that the demo wrote.

    kind: the recording of the quadrotor, its report, its picture, or the recording of the compass.
    content: in a few words.
    """

    kind: Literal["flight", "report", "picture", "compass"]
    path: Path
    content: str


NAMES = ("quadrotor.mcap", "quadrotor.html", "quadrotor.png", "quadrotor.svg", "compass.mcap")
"""Names of the files."""


def remove_demo(folder: str | os.PathLike[str]) -> bool:
    """Delete the files of an earlier demo in a folder: an interrupted demo would leave some of them beside its own.

    Return True if there was one. Raises `RecordingError` if a file cannot be deleted.
    """
    files = [path for path in (to_path(folder) / name for name in NAMES) if path.is_file()]
    for path in files:
        try:
            path.unlink()
        except OSError as error:
            raise make_os_error(path, error) from error
    return bool(files)


def write_demo(folder: str | os.PathLike[str], *, progress: Progress | None = None) -> tuple[DemoFile, ...]:
    """Write the demo into a folder, and return its files. They replace files of the same names.

    The picture is a PNG if matplotlib is installed, else an SVG.

    Raises `RecordingError` if the folder cannot be created or a file in it cannot be written.
    """
    target = to_path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        where = Where(str(target))
        raise RecordingError("is a file, not a folder", where=where, remedy="name another folder") from error
    except OSError as error:
        raise make_os_error(target, error) from error
    world, flight, compass = load(QUADROTOR), target / "quadrotor.mcap", target / "compass.mcap"
    record(world, flight, DURATION, epoch=EPOCH, progress=progress)
    report = write_report(flight, target / "quadrotor.html", world=str(QUADROTOR))
    picture = write_picture(flight, target)
    record(load(COMPASS), compass, DURATION, epoch=EPOCH, progress=progress)
    return (
        DemoFile("flight", flight, f"{DURATION:g} s of {len(world.sensors)} sensors"),
        DemoFile("report", report, "report"),
        DemoFile("picture", picture, "picture of the flight"),
        DemoFile("compass", compass, f"{DURATION:g} s of a compass near iron"),
    )


def write_picture(flight: Path, folder: Path) -> Path:
    """Write the picture of a recorded flight into a folder, and return its path."""
    if find_spec("matplotlib") is None:
        path = folder / "quadrotor.svg"
        write_flight_picture(flight, path)
        return path
    path = folder / "quadrotor.png"
    draw(path, load(QUADROTOR), duration=DURATION)
    return path
