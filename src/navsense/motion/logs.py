"""Motion logs: CSV with named columns, or TUM. `LOG_KINDS` lists the columns of each kind, and what reads them.

| columns besides time | pose |
|---|---|
| x y z qw qx qy qz | of the body in the world |
| x y z roll pitch yaw | the same, rotation_wb = Rz(yaw) Ry(pitch) Rx(roll) |
| latitude longitude depth or altitude, heading pitch roll | on earth, below |
| vx vy vz wx wy wz | velocity commands (`motion.velocity_commands`) |

Latitude, longitude and height h define a position on WGS-84. The attitude of a geodetic log is that of aviation and of
ships. Heading psi is clockwise from true north. Pitch theta is positive up, roll phi positive to starboard. The axes of
the body are forward, starboard, down (FRD), in the local frame north, east, down (NED):

    rotation_ned_frd = Rz(psi) Ry(theta) Rx(phi)

The body of navsense has the axes forward, left, up (FLU), and the local frame of a position east, north, up (ENU):

    rotation_enu_flu = Rz(pi/2 - psi) Ry(-theta) Rx(phi)
    rotation_e_enu = Rz(longitude + pi/2) Rx(pi/2 - latitude)
    rotation_wb = rotation_ew^-1 rotation_e_enu rotation_enu_flu

e is the earth's frame, and `core.geodesy` has rotation_ew. `altitude` is h. `depth` is below the water surface of the
world, which is level:

    h = (surface - depth - z_0) / u_z,  u = rotation_ew^-1 n

n is the normal of the ellipsoid, and z_0 the height in the world of the ellipsoid at this latitude and longitude.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from navsense.core.errors import MotionError, Where
from navsense.core.geodesy import Origin, compute_distances
from navsense.core.rotation import multiply_arrays
from navsense.core.typing import FloatArray, Quaternions, Times, Vectors
from navsense.core.units import DEGREE
from navsense.motion.base import LogContext, LogSource, Motion, find_first_true
from navsense.motion.log_table import LIMIT_TOLERANCE, LogColumn, LogFile, LogKind, list_lines, open_csv
from navsense.motion.replay import Replay, build_replay, stack_rows
from navsense.motion.velocity_commands import COMMAND_COLUMNS, MAX_COMMAND, VelocityCommands, velocity_commands

LOG_COLUMNS = ("time", "x", "y", "z", "qw", "qx", "qy", "qz")
"""Columns of the log that navsense writes: s, m, unit quaternion."""

TUM_COLUMNS = ("t", "x", "y", "z", "qx", "qy", "qz", "qw")
"""Columns of a TUM log in the order of the file."""


def load(
    path: str | os.PathLike[str],
    *,
    bandwidth: float | None = None,
    origin: Origin | None = None,
    surface: float = 0.0,
) -> Replay | VelocityCommands:
    """Read a motion log of poses or velocity commands and return its motion.

    path: CSV with the columns `time,x,y,z,qw,qx,qy,qz` (s, m, world frame, of the model's canonical link) in any order,
        or those of the table in `navsense.motion.logs`; or TUM, with rows ``t x y z qx qy qz qw`` and `#` comments. The
        suffix .csv, .tum or .txt decides, otherwise the first row. The first row is at t = 0.
    bandwidth: that of `from_arrays`, Hz.
    origin: the place of the world on earth, for a log with latitude and longitude: `world.environment.origin`.
    surface: height (m) of the water surface in the world, for a log with a depth.

    Raises `MotionError` with file and line for an unreadable file and for invalid rows.

    >>> rows = [[0, 0, 0, 5, 1, 0, 0, 0], [1, 1, 0, 5, 1, 0, 0, 0], [2, 2, 0, 5, 1, 0, 0, 0]]
    >>> np.savetxt("track.csv", rows, delimiter=",", header="time,x,y,z,qw,qx,qy,qz", comments="")
    >>> log = ns.motion.load("track.csv")
    >>> replayed = ns.simulate(world, motion={"quadrotor": log}, seed=7)  # ends with the log
    >>> replayed["imu"].time.size
    2000
    """
    motion = load_log(path, LogContext(origin, surface), bandwidth=bandwidth)
    if not isinstance(motion, Replay | VelocityCommands):
        raise MotionError("log", "has no poses", where=Where(os.fspath(path)), remedy="give it to motion= as a path")
    return motion


def load_log(path: str | os.PathLike[str], context: LogContext, *, bandwidth: float | None = None) -> Motion:
    """Read a motion log of any kind and return its motion; `bandwidth` (Hz) smooths poses.

    Raises `MotionError` with file and line for an unreadable file and for invalid rows.
    """
    log = open_log(os.fspath(path))
    try:
        motion = log.kind.build(log, context, bandwidth)
    except MotionError as error:
        if error.where is None:
            error.where = Where(os.fspath(path))
        raise
    if isinstance(motion, Replay | VelocityCommands):
        return replace(
            motion, source=LogSource(Path(path).name, bandwidth=bandwidth), notes=(*motion.notes, *log.notes)
        )
    return motion


def open_log(path: str) -> LogFile:
    """Return a log with its kind and columns. The suffix decides between CSV and TUM, else a comma in the first row."""
    suffix = Path(path).suffix.lower()
    is_csv = suffix == ".csv"
    if suffix not in (".csv", ".tum", ".txt"):
        is_csv = "," in next((line for _, line in list_lines(path, is_csv=False)), "")
    if is_csv:
        return open_csv(path, LOG_KINDS)
    rows = list_lines(path, is_csv=False)
    start, _ = next(rows, (0, ""))
    if not start:
        raise MotionError("log without rows", where=Where(path), allowed=f"must hold rows of {' '.join(TUM_COLUMNS)}")
    names = ("time", *TUM_COLUMNS[1:])
    columns = tuple(LogColumn(names.index(name), name, name) for name in LOG_COLUMNS)
    return LogFile(path, POSES, columns, len(names), None, 0, start, 1 + sum(1 for _ in rows))


def _build_poses(log: LogFile, _context: LogContext, bandwidth: float | None) -> Replay:
    """Return the motion of the columns x y z qw qx qy qz."""
    return build_replay(*_stack_poses(log), bandwidth)


def _stack_poses(log: LogFile) -> tuple[Times, FloatArray]:
    """Return times and values for a spline. The table of the file is freed on return."""
    values = log.read_values()
    return stack_rows(values[:, 0], values[:, 1:4], values[:, 4:], log.find_line)


def _build_angle_poses(log: LogFile, _context: LogContext, bandwidth: float | None) -> Replay:
    """Return the motion of the columns x y z roll pitch yaw."""
    values = log.read_values()
    roll, pitch, yaw = values[:, 4:].T
    rows = stack_rows(values[:, 0], values[:, 1:4], make_rotations(roll, pitch, yaw), log.find_line)
    return build_replay(*rows, bandwidth)


def _build_geodetic(log: LogFile, context: LogContext, bandwidth: float | None) -> Replay:
    """Return the motion of the columns latitude longitude depth or altitude, heading pitch roll."""
    origin = context.origin
    if origin is None:
        remedy = "add <spherical_coordinates> to the world, or origin= in Python"
        allowed = "needs the place of the world on earth"
        raise MotionError("log with latitude and longitude", where=log.where, allowed=allowed, remedy=remedy)
    values = log.read_values()
    places = values[:, 1:4]
    notes = _check_distances(log, origin, places)
    if "depth" in log.kind.columns:
        places[:, 2] = _find_heights(origin, places[:, :2], context.surface - places[:, 2])
    heading, pitch, roll = values[:, 4:].T
    local = make_rotations(roll, -pitch, 0.5 * np.pi - heading)
    rotation = multiply_arrays(find_local_rotations(origin, places), local)
    position = origin.to_world(places)
    notes += _check_heading_unit(log, heading, position)
    rows = stack_rows(values[:, 0], position, rotation, log.find_line)
    return replace(build_replay(*rows, bandwidth), notes=notes)


FAR_DISTANCE, LARGEST_DISTANCE = 100e3, 5000e3
"""m from the origin of the world: from the first one on, a geodetic log has a note. The second one is an error: the
vertical at the place has turned by 45 degrees. A depth below the level water surface then has no meaning."""


def _check_distances(log: LogFile, origin: Origin, places: Vectors) -> tuple[str, ...]:
    """Return the note about places (n, 3) far from the origin. Raises `MotionError` beyond `LARGEST_DISTANCE`."""
    distance = compute_distances(origin, places[:, :2])
    row = find_first_true(distance > LARGEST_DISTANCE)
    remedy = "set <spherical_coordinates> to the place of the log, or correct its columns"
    if row >= 0:
        what, value = f"place of row {row}", f"{distance[row] / 1e3:.0f} km from the origin of the world"
        allowed = f"must be within {LARGEST_DISTANCE / 1e3:g} km"
        raise MotionError(what, value, allowed=allowed, where=log.find_line(row), remedy=remedy)
    farthest = float(distance.max())
    if farthest < FAR_DISTANCE:
        return ()
    return (f"{Path(log.path).name}: up to {farthest / 1e3:.0f} km from the origin of the world; if not so, {remedy}",)


SMALL_TURN = 1.0
"""rad: a course that turns by less does not tell whether headings are degrees or radians."""

SLOW_SHARE = 0.1
"""Steps shorter than this share of the longest one have no course."""


def _check_heading_unit(log: LogFile, heading: FloatArray, position: Vectors) -> tuple[str, ...]:
    """Return the note about headings without a unit that are all in one turn of radians, while the course turns."""
    index = log.kind.columns.index("heading")
    column = log.columns[index]
    if column.unit is not None or float(np.abs(heading).max()) > 2.0 * np.pi * DEGREE + LIMIT_TOLERANCE:
        return ()
    steps = np.diff(position[:, :2], axis=0)
    lengths = np.hypot(steps[:, 0], steps[:, 1])
    is_moving = lengths > SLOW_SHARE * lengths.max(initial=0.0)
    directions = np.unwrap(np.arctan2(steps[is_moving, 1], steps[is_moving, 0]))
    turn = float(np.ptp(directions)) if directions.size else 0.0
    if turn <= SMALL_TURN:
        return ()
    angles = f"from {np.degrees(heading.min()):.3g} to {np.degrees(heading.max()):.3g} deg"
    course = f"the course turns by {np.degrees(turn):.0f} deg"
    remedy = f"if it is in radians, write {column.name}_rad in the header"
    return (f"{Path(log.path).name}: {column.name} is {angles}, but {course}; {remedy}",)


def _find_heights(origin: Origin, coordinates: FloatArray, heights_w: FloatArray) -> FloatArray:
    """Return heights (n,) m above the ellipsoid for heights (n,) m in the world.

    coordinates: latitudes and longitudes (n, 2) rad.
    """
    ends = [origin.to_world(np.column_stack((coordinates, np.full(len(coordinates), h))))[:, 2] for h in (0.0, 1e3)]
    heights: FloatArray = (heights_w - ends[0]) / (ends[1] - ends[0]) * 1e3
    return heights


def find_local_rotations(origin: Origin, places: Vectors) -> Quaternions:
    """Return the rotations (n, 4) from east, north, up at places (n, 3) to the world.

    A place is a row of latitude, longitude (rad) and altitude (m).
    """
    half_x, half_z = 0.25 * np.pi - 0.5 * places[:, 0], 0.5 * places[:, 1] + 0.25 * np.pi
    earth = _multiply_z_x(half_z, half_x)
    world = _multiply_z_x(
        np.array([0.5 * origin.longitude + 0.25 * np.pi]), np.array([0.25 * np.pi - 0.5 * origin.latitude])
    )[0]
    heading = np.array([np.cos(0.5 * origin.heading), 0.0, 0.0, np.sin(0.5 * origin.heading)])
    conjugate = multiply_arrays(world, heading) * (1.0, -1.0, -1.0, -1.0)
    return multiply_arrays(conjugate, earth)


def _multiply_z_x(half_z: FloatArray, half_x: FloatArray) -> Quaternions:
    """Return Rz Rx (n, 4) of half angles (n,) rad."""
    cz, sz, cx, sx = np.cos(half_z), np.sin(half_z), np.cos(half_x), np.sin(half_x)
    return np.stack((cz * cx, cz * sx, sz * sx, sz * cx), axis=-1)


def make_rotations(roll: FloatArray, pitch: FloatArray, yaw: FloatArray) -> Quaternions:
    """Return the quaternions (n, 4) of Rz(yaw) Ry(pitch) Rx(roll), angles (n,) rad."""
    cr, sr = np.cos(0.5 * roll), np.sin(0.5 * roll)
    cp, sp = np.cos(0.5 * pitch), np.sin(0.5 * pitch)
    cy, sy = np.cos(0.5 * yaw), np.sin(0.5 * yaw)
    return np.stack(
        (
            cy * cp * cr + sy * sp * sr,
            cy * cp * sr - sy * sp * cr,
            cy * sp * cr + sy * cp * sr,
            sy * cp * cr - cy * sp * sr,
        ),
        axis=-1,
    )


def _build_commands(log: LogFile, _context: LogContext, bandwidth: float | None) -> VelocityCommands:
    """Return the motion of the columns vx vy vz wx wy wz."""
    check_no_bandwidth(bandwidth)
    values = log.read_values()
    late = find_first_true(np.diff(values[:, 0], prepend=-np.inf) <= 0.0)
    if late >= 0:
        allowed = f"must be after the row before, {float(values[late - 1, 0])!r}"
        what, remedy = f"time of row {late} (s)", "sort the rows and remove duplicates"
        where = log.find_line(late)
        raise MotionError(what, float(values[late, 0]), allowed=allowed, where=where, remedy=remedy)
    large = np.argwhere(np.abs(values[:, 1:]) > MAX_COMMAND)
    if large.size:
        row, index = large[0].tolist()
        what, value = f"{log.columns[index + 1].name} of row {row}", float(values[row, index + 1])
        allowed = f"must be at most {MAX_COMMAND:g} in magnitude"
        raise MotionError(what, value, allowed=allowed, where=log.find_line(row), remedy="correct the row")
    return velocity_commands(values[:, 0], values[:, 1:4], values[:, 4:])


def check_no_bandwidth(bandwidth: float | None) -> None:
    """Raise `MotionError` for a bandwidth of velocity commands."""
    if bandwidth is not None:
        allowed = "smooths poses, not velocity commands"
        remedy = "omit it; the drive plug-in of the model limits the acceleration, in Python limits=CommandLimits(...)"
        raise MotionError("bandwidth (Hz)", bandwidth, allowed=allowed, remedy=remedy)


POSES = LogKind(LOG_COLUMNS, _build_poses)
_HEADING = ("heading", "pitch", "roll")

LOG_KINDS: Sequence[LogKind] = (
    POSES,
    LogKind(("time", "x", "y", "z", "roll", "pitch", "yaw"), _build_angle_poses),
    *(
        LogKind(("time", "latitude", "longitude", height, *_HEADING), _build_geodetic, DEGREE, {"heading": "yaw"})
        for height in ("depth", "altitude")
    ),
    LogKind(COMMAND_COLUMNS, _build_commands),
)
"""The kinds of CSV logs. The first one whose columns a header has is read."""
