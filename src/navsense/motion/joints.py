"""Joints that follow a log of positions: the motion of a frame that turns or slides relative to its base.

The position q (rad or m) of a joint is a cubic C2 spline through the rows of its log. Frame j is fixed in the base;
frame k lies on it at q = 0. With R = rotation_wj, the axis u (unit vector, equal in j and k), and omega and alpha of j:

    revolute     p_k = p_j,   v_k = v_j,   a_k = a_j
                 rotation_wk = rotation_wj exp([u q]x),   w = exp([u q]x)^-1 omega
                 omega_k = w + u q',   alpha_k = exp([u q]x)^-1 alpha + u q'' + w x u q'
    prismatic    p_k = p_j + R u q,   v_k = v_j + R (omega x u q + u q')
                 a_k = a_j + R (alpha x u q + omega x (omega x u q) + 2 omega x u q' + u q'')
                 rotation_wk = rotation_wj,   omega_k = omega,   alpha_k = alpha
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from navsense.core.errors import MotionError, Where
from navsense.core.intervals import find_interval
from navsense.core.kernels import kernel
from navsense.core.rotation import cross, multiply, rotate
from navsense.core.summaries import format_spec
from navsense.core.text import format_count
from navsense.core.typing import FloatArray, Quaternions, Times, Vector, Vectors
from navsense.motion._spline import interpolate, split_rows
from navsense.motion.base import (
    LogContext,
    LogSource,
    Motion,
    MotionBlock,
    check_instants,
    copy_read_only,
    empty_arrays,
)
from navsense.motion.log_table import (
    QUANTITIES,
    UNITS,
    LogColumn,
    LogFile,
    LogKind,
    Quantity,
    check_column,
    count_rows,
    parse_column,
    read_header,
    split_unit,
)

JointKind = Literal["revolute", "prismatic"]

JointUnit = Literal["", "rad", "m"]

LARGEST_STATE = 1e100
"""Positions, velocities and accelerations of a joint must be below it (SI). The square of one is finite."""


@kernel
def _evaluate_positions(knots: Times, rows: FloatArray, time: Times, out: FloatArray) -> None:
    """Write the position, velocity and acceleration (n, 3) at each time (s).

    rows (m, 2): value and slope at each knot.
    """
    segment = 0
    for i in range(time.shape[0]):
        segment = find_interval(knots, time[i], segment)
        h, x = knots[segment + 1] - knots[segment], time[i] - knots[segment]
        value, start, end = rows[segment, 0], rows[segment, 1], rows[segment + 1, 1]
        slope = (rows[segment + 1, 0] - value) / h
        curvature = (start + end - 2.0 * slope) / h
        cubic, square = curvature / h, (slope - start) / h - curvature
        out[i, 0] = value + x * (start + x * (square + x * cubic))
        out[i, 1] = start + x * (2.0 * square + x * 3.0 * cubic)
        out[i, 2] = 2.0 * square + 6.0 * x * cubic


@dataclass(frozen=True, eq=False)
class JointTrack:
    """The position of a joint over time: the cubic C2 spline through the rows of a log.

    time: (n,) s, strictly increasing, n >= 2. The first one is 0 or earlier.
    position: (n,) rad or m.
    unit: of the position, if its log has one.
    where: the header of its log, if it was read from one.
    is_recorded: the joint moved in a recording, which has the truth of its links, but not its positions. The rows are
        placeholders, and a run with them is an error.
    source: the log that it was read from; None for arrays.
    notes: for the user, for example messages that were not read.

    Raises `MotionError` for wrong shapes, numbers that are not finite, times that do not increase, and a first time
    after 0. Positions, velocities and accelerations of 1e100 and more are errors too.

    >>> swing = ns.motion.JointTrack(np.linspace(0.0, 2.0, 201), np.sin(np.linspace(0.0, 2.0, 201)))
    >>> swing.at(np.array([1.0])).round(4)  # sin, cos, -sin
    array([[ 0.8415,  0.5403, -0.8415]])
    """

    time: Times
    position: FloatArray
    unit: JointUnit = ""
    where: Where | None = field(default=None, repr=False)
    is_recorded: bool = False
    source: LogSource | None = None
    notes: tuple[str, ...] = ()
    _rows: FloatArray = field(init=False, repr=False)

    __repr__ = format_spec

    def __post_init__(self) -> None:
        """Check the rows and compute the spline."""
        object.__setattr__(self, "time", copy_read_only(self.time))
        object.__setattr__(self, "position", copy_read_only(self.position))
        count = self.time.size
        shapes = (self.time.shape, self.position.shape)
        if shapes != ((count,), (count,)):
            raise MotionError("shapes of time and position of a joint", shapes, allowed="must be (n,) and (n,)")
        if count < 2:
            raise MotionError("number of rows of a joint", count, allowed="must be >= 2")
        for name, values in (("time", self.time), ("position", self.position)):
            bad = np.flatnonzero(~np.isfinite(values))
            if bad.size:
                raise MotionError(f"{name} of row {bad[0]} of a joint", float(values[bad[0]]), allowed="must be finite")
        late = np.flatnonzero(np.diff(self.time, prepend=-math.inf) <= 0.0)
        if late.size:
            raise _make_order_error(self.time, int(late[0]), f"row {late[0]} of a joint", None)
        if self.time[0] > 0.0:
            allowed, remedy = "must be 0 or earlier", "subtract it from all times"
            raise MotionError("time of row 0 of a joint", float(self.time[0]), allowed=allowed, remedy=remedy)
        rows = np.empty((count, 2, 1))
        rows[:, 0, 0] = self.position
        with np.errstate(all="ignore"):  # the states are checked
            interpolate(self.time, rows, "not-a-knot")
        object.__setattr__(self, "_rows", copy_read_only(np.ascontiguousarray(rows[:, :, 0])))
        self._check_states()

    def _check_states(self) -> None:
        """Raise `MotionError` if the motion at a row is too large for the products of accelerations."""
        for part in split_rows(self.time.size):
            states = np.empty((self.time[part].size, 3))
            _evaluate_positions(self.time, self._rows, self.time[part], states)
            large = np.argwhere(~(np.abs(states) < LARGEST_STATE))
            if large.size:
                row, column = large[0].tolist()
                name = ("position", "velocity", "acceleration")[column]
                allowed, remedy = f"must be below {LARGEST_STATE:g}", "correct the row"
                what, value = f"{name} in row {part.start + row} of a joint", float(states[row, column])
                raise MotionError(what, value, allowed=allowed, remedy=remedy)

    @property
    def end(self) -> float:
        """Time (s) of the last row."""
        return float(self.time[-1])

    def at(self, time: Times) -> FloatArray:
        """Return position, velocity and acceleration (n, 3) of the joint at `time` (n,) s, in any order.

        Raises `MotionError` for a time that is below 0, after `end` or not finite.
        """
        time = check_instants(time, self.end)
        out = np.empty((time.shape[0], 3))
        _evaluate_positions(self.time, self._rows, time, out)
        out.setflags(write=False)
        return out


WRAP_TOLERANCE = 1e-3
"""rad: positions in a range of one turn and this much are wrapped, if they jump. Logs have few digits."""


def unwrap(track: JointTrack) -> JointTrack:
    """Return the track of a joint without limits that turns on where its positions (rad) jump from pi to -pi.

    Positions in one turn whose steps exceed half a turn are wrapped. Each such step is replaced by its remainder in
    (-pi, pi]. Other tracks are returned unchanged.

    >>> from navsense.motion.joints import unwrap
    >>> unwrap(ns.motion.JointTrack(np.array([0.0, 1.0, 2.0]), np.array([2.0, 3.0, -2.28]))).position.round(2)
    array([2., 3., 4.])
    """
    position = track.position
    count = int(np.count_nonzero(np.abs(np.diff(position)) > math.pi))
    if not count or float(np.ptp(position)) > 2.0 * math.pi + WRAP_TOLERANCE:
        return track
    note = f"positions are wrapped to one turn: {format_count(count, 'step')} above half a turn unwrapped"
    return replace(track, position=np.unwrap(position), notes=(*track.notes, note))


def _make_order_error(time: Times, row: int, name: str, where: Where | None) -> MotionError:
    allowed, remedy = f"must be after the row before, {float(time[row - 1])!r}", "sort the rows and remove duplicates"
    return MotionError(f"time of {name} (s)", float(time[row]), allowed=allowed, where=where, remedy=remedy)


JointTracks = Mapping[str, JointTrack]
"""Name of a joint -> its position over time."""


def joint_positions(time: Times, positions: Mapping[str, FloatArray]) -> dict[str, JointTrack]:
    """Return the tracks of joints through `positions` (n,) rad or m at `time` (n,) s.

    positions: by the name of the joint, or any unambiguous ending of it. The first row is at t = 0.

    Raises `MotionError` as `JointTrack` does.

    >>> time = np.linspace(0.0, 2.0, 21)
    >>> tracks = ns.motion.joint_positions(time, {"elbow": 0.5 * time})
    >>> tracks["elbow"].at(np.array([1.0]))[0, :2].round(6)  # rad, rad/s
    array([0.5, 0.5])
    """
    times = np.array(time, dtype=np.float64)
    if times.size and np.isfinite(times.flat[0]):
        times -= times.flat[0]
    return {name: JointTrack(times, np.array(values, dtype=np.float64)) for name, values in positions.items()}


_ANGLE_SUFFIX = re.compile(r"_(deg|degrees?|rad|radians?)$", re.IGNORECASE)
"""Units behind an underscore: of angles only, because the name of a joint can end in `_m`."""

POSITION = Quantity("rad or m")
"""Position of a joint in a log."""


def read_joint_csv(name: str) -> dict[str, JointTrack]:
    """Return the tracks of a CSV log with the header `time,JOINT,...`. Raises `MotionError` with the line.

    Delimiters, comments, quotes and units of time are those of motion logs (`motion.log_table`). A joint has its unit
    in brackets, `slide [m]`, or an angle behind an underscore, `elbow_deg`; without one it is in rad or m.
    """
    header = read_header(name)
    where = Where(name, header.line)
    columns = [_parse_column(index, cell) for index, cell in enumerate(header.cells)]
    times = [column for column in columns if column.quantity == "time"]
    joints = [column for column in columns if column.quantity != "time"]
    names = [column.quantity for column in joints]
    if len(times) != 1 or not joints or "" in names or len(set(names)) < len(names):
        allowed = "must be time,JOINT,... with the name of each joint once"
        remedy = "name the columns in the first line" if len(times) != 1 else "add or rename the columns"
        text = header.text or None
        raise MotionError("header of the log of joints", text, allowed=allowed, where=where, remedy=remedy)
    quantities = {"time": QUANTITIES["time"], **dict.fromkeys(names, POSITION)}
    for column in (*times, *joints):
        check_column(column, quantities[column.quantity], columns, where)
    kind = LogKind(("time", *names), _reject_build)
    start, count = count_rows(name, kind, header.rows)
    log = LogFile(
        name, kind, (*times, *joints), len(columns), header.delimiter, header.line, start, count, quantities=quantities
    )
    values = log.read_values()
    late = np.flatnonzero(np.diff(values[:, 0], prepend=-math.inf) <= 0.0)
    if late.size:
        row = int(late[0])
        raise _make_order_error(values[:, 0], row, f"row {row}", log.find_line(row))
    values[:, 0] -= values[0, 0]
    tracks = {}
    for column, positions in zip(joints, values[:, 1:].T, strict=True):
        unit: JointUnit = "" if column.unit is None else "rad" if column.unit in UNITS["rad"] else "m"
        try:
            tracks[column.quantity] = JointTrack(values[:, 0], positions, unit, where)
        except MotionError as error:
            error.what, error.where = error.what.replace("a joint", f"joint {column.quantity}"), Where(name)
            raise
    return tracks


def _parse_column(index: int, cell: str) -> LogColumn:
    """Return a column whose quantity is `time` or the name of a joint."""
    column = parse_column(index, cell)
    if column.quantity == "time":
        return column
    joint, unit = split_unit(cell)
    suffix = None if unit is not None else _ANGLE_SUFFIX.search(joint)
    if suffix is not None:
        joint, unit = joint[: suffix.start()], suffix.group(1).lower()
    return LogColumn(index, cell.strip(), joint, unit)


def _reject_build(log: LogFile, _context: LogContext, _bandwidth: float | None) -> Motion:
    """Raise `MotionError`: a log of joints is no motion of a model."""
    raise MotionError("log of joints", "is no motion of a model", where=log.where, remedy="give it as --joints")


@kernel
def _move_joint(
    is_revolute: bool,
    sign: float,
    axis: FloatArray,
    states: FloatArray,
    position: Vectors,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    acceleration: Vectors,
    alpha: Vectors,
    out_position: Vectors,
    out_rotation: Quaternions,
    out_velocity: Vectors,
    out_omega: Vectors,
    out_acceleration: Vectors,
    out_alpha: Vectors,
) -> None:
    """Write the motion of frame k from that of frame j. states (n, 3): position of the joint and its derivatives."""
    ux, uy, uz = axis[0], axis[1], axis[2]
    for i in range(position.shape[0]):
        q, dq, ddq = sign * states[i, 0], sign * states[i, 1], sign * states[i, 2]
        w, x, y, z = rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3]
        ox, oy, oz = omega[i, 0], omega[i, 1], omega[i, 2]
        ax, ay, az = alpha[i, 0], alpha[i, 1], alpha[i, 2]
        for axis_index in range(3):
            out_position[i, axis_index] = position[i, axis_index]
            out_velocity[i, axis_index] = velocity[i, axis_index]
            out_acceleration[i, axis_index] = acceleration[i, axis_index]
        if is_revolute:
            s = math.sin(0.5 * q)
            tw, tx, ty, tz = math.cos(0.5 * q), s * ux, s * uy, s * uz
            w, x, y, z = multiply(w, x, y, z, tw, tx, ty, tz)
            ox, oy, oz = rotate(tw, -tx, -ty, -tz, ox, oy, oz)
            ax, ay, az = rotate(tw, -tx, -ty, -tz, ax, ay, az)
            cx, cy, cz = cross(ox, oy, oz, dq * ux, dq * uy, dq * uz)
            ox, oy, oz = ox + dq * ux, oy + dq * uy, oz + dq * uz
            ax, ay, az = ax + ddq * ux + cx, ay + ddq * uy + cy, az + ddq * uz + cz
        else:
            px, py, pz = rotate(w, x, y, z, q * ux, q * uy, q * uz)
            out_position[i, 0] += px
            out_position[i, 1] += py
            out_position[i, 2] += pz
            cx, cy, cz = cross(ox, oy, oz, q * ux, q * uy, q * uz)
            px, py, pz = rotate(w, x, y, z, cx + dq * ux, cy + dq * uy, cz + dq * uz)
            out_velocity[i, 0] += px
            out_velocity[i, 1] += py
            out_velocity[i, 2] += pz
            # omega x (omega x u q + 2 u q')
            cx, cy, cz = cross(ox, oy, oz, cx + 2.0 * dq * ux, cy + 2.0 * dq * uy, cz + 2.0 * dq * uz)
            tx, ty, tz = cross(ax, ay, az, q * ux, q * uy, q * uz)
            px, py, pz = rotate(w, x, y, z, cx + tx + ddq * ux, cy + ty + ddq * uy, cz + tz + ddq * uz)
            out_acceleration[i, 0] += px
            out_acceleration[i, 1] += py
            out_acceleration[i, 2] += pz
        out_rotation[i, 0], out_rotation[i, 1], out_rotation[i, 2], out_rotation[i, 3] = w, x, y, z
        out_omega[i, 0], out_omega[i, 1], out_omega[i, 2] = ox, oy, oz
        out_alpha[i, 0], out_alpha[i, 1], out_alpha[i, 2] = ax, ay, az


@dataclass(frozen=True, eq=False)
class JointMotion:
    """The motion of the frame of a joint that moves with it, from the motion `base` of the frame that does not.

    kind: "revolute" or "prismatic".
    axis: unit vector in the frame of the joint.
    track: position of the joint over time.
    sign: 1.0; -1.0 if `base` is that of the child.

    >>> swing = ns.motion.JointTrack(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    >>> arm = ns.motion.JointMotion(ns.motion.Stationary(), "revolute", (0.0, 0.0, 1.0), swing)
    >>> arm.at(np.array([1.0])).angular_velocity_b
    array([[0. , 0. , 0.5]])
    """

    base: Motion
    kind: JointKind
    axis: Vector
    track: JointTrack
    sign: float = 1.0

    __repr__ = format_spec

    @property
    def end(self) -> float:
        """Last time (s) of the base and of the log of the joint."""
        return min(self.base.end, self.track.end)

    def at(self, time: Times) -> MotionBlock:
        """Return the motion at `time` (n,) s. Raises `MotionError` for a time below 0 or after `end`."""
        states, body = self.track.at(time), self.base.at(time)
        arrays = empty_arrays(states.shape[0])
        _move_joint(
            self.kind == "revolute", self.sign, copy_read_only(np.array(self.axis)), states, *body.arrays, *arrays
        )
        return MotionBlock(*arrays)
