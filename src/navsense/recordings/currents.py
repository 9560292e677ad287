"""Reads recorded currents from tables, archives, bags and recordings of navsense."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import (
    MAX_FILE_SIZE,
    FileKind,
    archive_expansion_problem,
    check_regular_file,
    expansion_problem,
    path_exists,
)
from navsense.core.typing import FloatArray, Vectors
from navsense.environment.current import CurrentReplay
from navsense.environment.current.base import OutsideRule
from navsense.environment.tables import add_lines_to_errors, read_table
from navsense.recordings.csv_tables import find_current_table
from navsense.recordings.quantities import read_velocities

TABLE_FRAMES = {"time,x,y,z": "world", "time,east,north,up": "enu", "time,north,east,down": "ned"}
"""Frame of the velocities by the header of a table."""

_BAGS = (".bag", ".mcap", ".db3")
_FILE_KIND = FileKind(
    "record of a current",
    FieldError,
    "must be a CSV file of time and velocity, a bag, an .npz archive or a .parquet table",
)


def read_current(
    path: str | os.PathLike[str],
    *,
    topic: str | None = None,
    frame: str | None = None,
    heading: float = 0.0,
    start: float | None = None,
    outside: OutsideRule = "error",
) -> CurrentReplay:
    """Read a record of a current.

    | file | content |
    |---|---|
    | `.csv` | one of the headers `TABLE_FRAMES`, which defines the frame |
    | folder of CSV files | a recording of navsense with a current |
    | `.npz` | arrays `time` (n,) s and `velocity` (n, 3) m/s, or a recording of navsense |
    | `.parquet` | a recording of navsense |
    | `.bag`, `.mcap`, `.db3`, ROS bag folder | a `topic` of geometry_msgs |

    Supported messages are Twist, TwistStamped, TwistWithCovarianceStamped, Vector3 and Vector3Stamped. The time of
    a message is its stamp, or its receive time if it has no stamp.

    topic: required if a bag has several topics with a velocity; must not be given for other files.
    frame: "world", "enu" or "ned". It defaults to "world", for a table to the frame of its header.
    heading: angle from east to the world's x axis (rad), for "enu" and "ned".
    start: time (s) in the record at the start of the run. It defaults to the first row.
    outside: rule for times outside the record.

    Raises `FieldError` with file and line for an unreadable file, another header, message type or topic, and rows out
    of order.

    >>> from navsense.recordings.currents import read_current
    >>> np.savez("current.npz", time=[0.0, 60.0], velocity=[[0.0, 0.0, 0.0], [0.3, 0.0, 0.0]])
    >>> read_current("current.npz").at(np.zeros((1, 3)), np.array([30.0]))
    array([[0.15, 0.  , 0.  ]])
    """
    name = os.fspath(path)
    if not (path_exists(Path(name)) and Path(name).is_file()):
        name = str(find_current_table(Path(name)))
    file, suffix = Path(name), Path(name).suffix.lower()
    lines: list[int] = []
    is_bag = suffix in _BAGS or (path_exists(file) and file.is_dir())
    if topic is not None and not is_bag:
        allowed = "must not be given: only a ROS bag has topics"
        raise FieldError("topic of the current", topic, allowed=allowed, where=Where(name))
    if is_bag:
        times, velocity = read_velocities(file, topic, start)
        start = 0.0
    elif suffix == ".npz":
        times, velocity = _read_npz(name)
    elif suffix == ".parquet":
        times, velocity = _read_parquet(name)
    else:
        header, lines, numbers = read_table(name, _FILE_KIND, TABLE_FRAMES)
        times, velocity = numbers[:, 0].copy(), numbers[:, 1:].copy()
        if frame not in (None, TABLE_FRAMES[header]):
            allowed = f"must be {TABLE_FRAMES[header]}, the frame of the header"
            raise FieldError("frame of a current", frame, allowed=allowed, where=Where(name))
        frame = TABLE_FRAMES[header]
    frame = frame or "world"
    begin = float(times[0]) if start is None and times.size else start or 0.0
    with add_lines_to_errors(name, lines):
        return CurrentReplay(times - begin, velocity, frame, 0.0 if frame == "world" else heading, outside)


def _check_run_count(name: str, runs: int) -> None:
    """Raise `FieldError` for a record of several runs or without a run."""
    if runs != 1:
        allowed = "must have one run"
        remedy = "extract one run with: navsense convert --run" if runs else "record a world with a current"
        raise FieldError("record of a current", f"{runs} runs", allowed=allowed, where=Where(name), remedy=remedy)


def _read_parquet(name: str) -> tuple[FloatArray, Vectors]:
    """Return times and velocities of the current in a Parquet recording of navsense. Raises `FieldError`."""
    check_regular_file(name, _FILE_KIND, MAX_FILE_SIZE)
    names = ["run", "time", *(f"velocity.{axis}" for axis in "xyz")]
    try:
        from pyarrow import parquet

        rows = parquet.read_metadata(name).num_rows
        problem = expansion_problem(8 * rows * len(names), Path(name).stat().st_size)
        if problem:
            raise FieldError("record of a current", problem, where=Where(name))  # noqa: TRY301
        table = parquet.read_table(name, columns=names, filters=[("series", "==", "current")])
        columns = [np.asarray(table[key], dtype=np.float64) for key in names]
    except FieldError:
        raise
    except Exception as cause:
        raise FieldError("record of a current", str(cause), allowed=_FILE_KIND.allowed, where=Where(name)) from cause
    _check_run_count(name, np.unique(columns[0]).size)
    return columns[1], np.stack(columns[2:], axis=1)


def _read_npz(name: str) -> tuple[FloatArray, Vectors]:
    """Return times and velocities of an .npz archive. Raises `FieldError`."""
    check_regular_file(name, _FILE_KIND, MAX_FILE_SIZE)
    if not zipfile.is_zipfile(name):  # the error of NumPy would recommend allow_pickle
        raise FieldError("record of a current", "is not an archive", allowed=_FILE_KIND.allowed, where=Where(name))
    try:
        problem = archive_expansion_problem(name)
        if problem:
            raise FieldError("record of a current", problem, where=Where(name))
        with np.load(name, allow_pickle=False) as archive:
            prefix = "current/" if "current/time" in archive else ""
            time, velocity = (np.array(archive[prefix + key], dtype=np.float64) for key in ("time", "velocity"))
    except KeyError as cause:
        allowed = "must hold time and velocity, or be a recording of navsense with a current"
        raise FieldError("record of a current", str(cause), allowed=allowed, where=Where(name)) from cause
    except (OSError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as cause:
        raise FieldError("record of a current", str(cause), allowed=_FILE_KIND.allowed, where=Where(name)) from cause
    if velocity.ndim == 3:  # runs first
        _check_run_count(name, velocity.shape[0])
        velocity = velocity[0]
    return time, velocity
