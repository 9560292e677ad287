"""Motion from velocity commands: twists in the body frame, each held until the next row.

With R = rotation_wb, the velocity v and the angular velocity omega of the body frame in body axes:

    p' = R v,   R' = R [omega]x,   a = R (v' + omega x v),   alpha = omega'

Between two rows without a limit of acceleration v and omega are constant. The motion is the exponential map of SE(3),
with phi = omega t:

    R(t) = R_0 exp([phi]x),   p(t) = p_0 + R_0 (I + (1 - cos |phi|) / |phi|^2 [phi]x
                                                  + (|phi| - sin |phi|) / |phi|^3 [phi]x^2) v t

Velocities jump at a row. The new values hold from the time of the row on. A jump has no acceleration: a sensor that
samples the acceleration does not see it, a mean over an interval sees the change of velocity. With limits, v and omega
follow ramps of constant rate. A vehicle that steers follows the ramp of wz within |wz| <= |vx| / r at each instant, as
in gz-sim's AckermannSteering. Where the limit applies, wz is vx / r or -vx / r. On a ramp, R is the exponential of the
Magnus series to order t^3, and p an integral by Gauss's rule. A ramp is split into short steps (`STEP_ANGLE`,
`STEP_GROWTH`, `STEP_ERROR`).

Source: Lynch and Park 2017, Modern Robotics, proposition 3.25; Blanes et al. 2009, Physics Reports 470, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from navsense.core.errors import MotionError, Where
from navsense.core.intervals import find_interval
from navsense.core.kernels import kernel
from navsense.core.pose import Pose
from navsense.core.rotation import cross, multiply, rotate, rotate_python
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import AnyArray, FloatArray, Quaternions, Times, Vector, Vectors
from navsense.core.validation import validate_types
from navsense.motion.base import LogSource, MotionBlock, check_instants, copy_read_only, empty_arrays, pose_row
from navsense.motion.driven import LIMITS, State

COMMAND_COLUMNS = ("time", "vx", "vy", "vz", "wx", "wy", "wz")
"""Columns of a log of velocity commands: s, m/s, rad/s, in the body frame."""

STEP_ANGLE = 0.5
STEP_GROWTH = 0.1
"""Largest |omega| t and |omega'| t^2 (rad) in one step of a ramp: the error of Gauss's rule is below 1e-12 of the path.

The rule of 5 points has the error |f^(10)| t^11 (5!)^4 / (11 (10!)^3), with f the integrand.
"""

STEP_ERROR = 1e-14
"""Largest error (rad) of the attitude in one step of a ramp."""

MAX_COMMAND = 1e150
"""Largest magnitude of a command (m/s, rad/s): its square is a number."""

LARGE_COMMAND = 1e6
"""Magnitude of a command (m/s, rad/s) from which on a ramp counts from its start: the distance to the command has too
few digits for the velocity."""

MAX_SEGMENTS = 5_000_000
"""Largest number of steps. Each takes 160 bytes."""

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(5)
GAUSS_POINTS = tuple((0.5 + 0.5 * _POINTS).tolist())
GAUSS_WEIGHTS = tuple((0.5 * _WEIGHTS).tolist())
"""Points and weights of Gauss's rule on [0, 1]."""


@dataclass(frozen=True)
class CommandLimits:
    """Limits of a drive. Commands beyond a velocity are clipped; a change of velocity becomes a ramp.

    min_velocity, max_velocity: of vx, m/s; of a holonomic drive, of vx and of vy.
    min_angular_velocity, max_angular_velocity: of wz, rad/s.
    max_acceleration: m/s^2, of vx; of a holonomic drive, of vx and of vy. Without a planar drive, of the vector.
    max_deceleration: m/s^2, where vx (of a holonomic drive, vx or vy) falls. Without a planar drive, if vy and vz stay.
        None: as max_acceleration.
    max_angular_acceleration: rad/s^2, of wz. Without a planar drive, of the vector.
    max_angular_deceleration: rad/s^2, where wz falls. Without a planar drive, if wx and wy stay.
        None: as max_angular_acceleration.
    track: m, the distance of the wheels. If it is above 0, max_acceleration is that of the rim of each of two wheels,
        and the limits of angular acceleration do not apply. Without a planar drive, if vy, vz, wx and wy stay.
    min_turning_radius: m, of a vehicle that steers: |wz| is at most |vx| / min_turning_radius, also on a ramp.

    Infinity is no limit. Raises `MotionError` for a limit of acceleration that is not above 0.

    >>> ns.motion.CommandLimits(max_acceleration=1.0).max_acceleration
    1.0
    """

    min_velocity: float = -math.inf
    max_velocity: float = math.inf
    min_angular_velocity: float = -math.inf
    max_angular_velocity: float = math.inf
    max_acceleration: float = math.inf
    max_deceleration: float | None = None
    max_angular_acceleration: float = math.inf
    max_angular_deceleration: float | None = None
    track: float = 0.0
    min_turning_radius: float = 0.0

    def __post_init__(self) -> None:
        """Reject fields of a wrong type, and limits that no motion satisfies."""
        validate_types(self, "of velocity commands")
        down, turn_down = self.max_deceleration, self.max_angular_deceleration
        rates = {
            "max_acceleration": self.max_acceleration,
            "max_deceleration": self.max_acceleration if down is None else down,
            "max_angular_acceleration": self.max_angular_acceleration,
            "max_angular_deceleration": self.max_angular_acceleration if turn_down is None else turn_down,
        }
        for name, rate in rates.items():
            if not rate > 0.0:
                raise MotionError(name, rate, allowed="must be above 0", remedy="omit it for no limit")
        for name, low, high in (
            ("velocity", self.min_velocity, self.max_velocity),
            ("angular_velocity", self.min_angular_velocity, self.max_angular_velocity),
        ):
            if not low <= high:
                raise MotionError(f"max_{name}", high, allowed=f"must be at least min_{name}, {low!r}")
        for name, length in (("track", self.track), ("min_turning_radius", self.min_turning_radius)):
            if not 0.0 <= length < math.inf:
                raise MotionError(name, length, allowed="must be >= 0 and finite")

    @property
    def row(self) -> FloatArray:
        """The limits for `_build_segments` (6,): rates of vx up, vx down, wz up, wz down; track, turning radius."""
        down, turn_down = self.max_deceleration, self.max_angular_deceleration
        return np.array((
            self.max_acceleration,
            self.max_acceleration if down is None else down,
            self.max_angular_acceleration,
            self.max_angular_acceleration if turn_down is None else turn_down,
            self.track,
            self.min_turning_radius,
        ))  # fmt: skip

    def clip(self, commands: FloatArray, *, holonomic: bool = False) -> FloatArray:
        """Return commands (n, 6) with vx and wz within the limits of velocity; vy too for a holonomic drive."""
        clipped = commands.copy()
        for column in (0, 1) if holonomic else (0,):
            np.clip(commands[:, column], self.min_velocity, self.max_velocity, out=clipped[:, column])
        np.clip(commands[:, 5], self.min_angular_velocity, self.max_angular_velocity, out=clipped[:, 5])
        return clipped


NO_LIMITS = CommandLimits()

DriveKind = Literal["differential", "holonomic", "free"]
"""Commands that a drive follows: vx and wz; vx, vy and wz; all six."""

USED_COMMANDS: dict[DriveKind, tuple[str, ...]] = {
    "differential": ("vx", "wz"),
    "holonomic": ("vx", "vy", "wz"),
    "free": COMMAND_COLUMNS[1:],
}


@dataclass(frozen=True)
class Drive:
    """How a model follows velocity commands.

    name: of the plug-in, for messages.
    kind: "differential" (vx and wz), "holonomic" (vx, vy and wz) or "free" (all six). The first two are planar: height
        stays, roll and pitch are zero.
    topic: of the commands.
    pose: of the commanded frame in the frame of the model, such as the middle of the driven axle.
    limits: of velocity and acceleration.

    >>> ns.motion.Drive("plug-in DiffDrive").topic
    'cmd_vel'
    """

    name: str
    kind: DriveKind = "differential"
    topic: str = "cmd_vel"
    pose: Pose = Pose()
    limits: CommandLimits = NO_LIMITS

    __repr__ = format_spec

    def __post_init__(self) -> None:
        """Reject fields of a wrong type."""
        validate_types(self, f"of drive {self.name}")


@kernel
def _rotation_quaternion(x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """Return the quaternion of a rotation vector (rad)."""
    angle = math.sqrt(x * x + y * y + z * z)
    scale = 0.5 if angle < 1e-12 else math.sin(0.5 * angle) / angle
    return math.cos(0.5 * angle), scale * x, scale * y, scale * z


@kernel
def _integrate_constant(vx: float, vy: float, vz: float, fx: float, fy: float, fz: float) -> tuple[float, float, float]:
    """Return the displacement (m) by v t (m) under the rotation vector phi (rad), in the axes at the start."""
    square = fx * fx + fy * fy + fz * fz
    angle = math.sqrt(square)
    if angle < 0.3:
        first = 0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0 - square * (1.0 / 40320.0 - square / 3628800.0)))
        second = (1.0 / 6.0) - square * (
            1.0 / 120.0 - square * (1.0 / 5040.0 - square * (1.0 / 362880.0 - square / 39916800.0))
        )
    else:
        half = math.sin(0.5 * angle)
        first = 2.0 * half * half / square
        second = (angle - math.sin(angle)) / (square * angle)
    ax, ay, az = cross(fx, fy, fz, vx, vy, vz)
    bx, by, bz = cross(fx, fy, fz, ax, ay, az)
    return vx + first * ax + second * bx, vy + first * ay + second * by, vz + first * az + second * bz


@kernel
def _rotate_ramp(twist: FloatArray, slope: FloatArray, t: float) -> tuple[float, float, float]:
    """Return the rotation vector (rad) after t (s) with omega = twist + slope t: the Magnus series to order t^3."""
    x, y, z = cross(twist[3], twist[4], twist[5], slope[3], slope[4], slope[5])
    cube = t * t * t / 12.0
    return (
        t * (twist[3] + 0.5 * t * slope[3]) + cube * x,
        t * (twist[4] + 0.5 * t * slope[4]) + cube * y,
        t * (twist[5] + 0.5 * t * slope[5]) + cube * z,
    )


@kernel
def _is_constant(slope: FloatArray) -> bool:
    """Return True if a twist does not change."""
    is_constant = True
    for column in range(6):
        is_constant = is_constant and slope[column] == 0.0
    return is_constant


@kernel
def _advance(pose: FloatArray, twist: FloatArray, slope: FloatArray, t: float, out: FloatArray) -> None:
    """Write the pose (7,) that is t (s) after `pose` with the twist (6,) and its rate of change `slope` (6,)."""
    if _is_constant(slope):
        rx, ry, rz = t * twist[3], t * twist[4], t * twist[5]
        dx, dy, dz = _integrate_constant(t * twist[0], t * twist[1], t * twist[2], rx, ry, rz)
    else:
        rx, ry, rz = _rotate_ramp(twist, slope, t)
        dx, dy, dz = 0.0, 0.0, 0.0
        for point in range(5):
            s = t * GAUSS_POINTS[point]
            weight = t * GAUSS_WEIGHTS[point]
            sx, sy, sz = _rotate_ramp(twist, slope, s)
            w, x, y, z = _rotation_quaternion(sx, sy, sz)
            x, y, z = rotate(w, x, y, z, twist[0] + s * slope[0], twist[1] + s * slope[1], twist[2] + s * slope[2])
            dx += weight * x
            dy += weight * y
            dz += weight * z
    w, x, y, z = pose[3], pose[4], pose[5], pose[6]
    dx, dy, dz = rotate(w, x, y, z, dx, dy, dz)
    out[0], out[1], out[2] = pose[0] + dx, pose[1] + dy, pose[2] + dz
    ew, ex, ey, ez = _rotation_quaternion(rx, ry, rz)
    w, x, y, z = multiply(w, x, y, z, ew, ex, ey, ez)
    length = math.sqrt(w * w + x * x + y * y + z * z)
    out[3], out[4], out[5], out[6] = w / length, x / length, y / length, z / length


@kernel
def _plan_ramps(change: FloatArray, limits: FloatArray, planar: bool, times: FloatArray, slopes: FloatArray) -> None:
    """Write the times (3,) s of three ramps and their rates of change (3, 6) for a change of the twist (6,).

    The ramps are those of the rims and vy, of vx, wz and vy, or of the vectors v and omega.
    """
    times[:] = 0.0
    slopes[:] = 0.0
    track = limits[4]
    if track > 0.0 and (planar or (change[1] == change[2] == change[3] == change[4] == 0.0)):
        for wheel in range(2):
            side = wheel - 0.5  # of the track: left -0.5, right 0.5
            difference = change[0] + side * track * change[5]
            up = difference > 0.0
            rate = limits[0] if up else limits[1]
            times[wheel] = abs(difference) / rate
            if times[wheel] > 0.0:
                rate = rate if up else -rate
                slopes[wheel, 0], slopes[wheel, 5] = 0.5 * rate, side * 2.0 * rate / track
    else:
        for part in range(2):
            first = 3 * part
            column = first + 2 * part  # vx, wz
            square = 0.0
            for axis in range(3):
                if not planar or first + axis == column:
                    square += change[first + axis] * change[first + axis]
            length = math.sqrt(square)
            # Only a change along the axis can fall.
            is_falling = change[column] < 0.0 and length == -change[column]
            times[part] = length / (limits[2 * part + 1] if is_falling else limits[2 * part])
            if times[part] > 0.0:
                for axis in range(3):
                    if not planar or first + axis == column:
                        slopes[part, first + axis] = change[first + axis] / times[part]
    if planar and change[1] != 0.0:
        times[2] = abs(change[1]) / (limits[1] if change[1] < 0.0 else limits[0])
        if times[2] > 0.0:
            slopes[2, 1] = change[1] / times[2]


@kernel
def _count_steps(twist: FloatArray, slope: FloatArray, length: float) -> float:
    """Return the number of steps into which a ramp of a length (s) is split. It may be beyond each integer."""
    spin, growth = 0.0, 0.0
    for axis in range(3, 6):
        end = twist[axis] + length * slope[axis]
        spin += max(twist[axis] * twist[axis], end * end)
        growth += slope[axis] * slope[axis]
    if growth == 0.0:
        if _is_constant(slope):
            return 1.0
        return 1.0 + math.floor(math.sqrt(spin) * length / STEP_ANGLE)
    spin, growth = math.sqrt(spin), math.sqrt(growth)
    rate = max(spin / STEP_ANGLE, math.sqrt(growth / STEP_GROWTH))
    x, y, z = cross(twist[3], twist[4], twist[5], slope[3], slope[4], slope[5])
    if x != 0.0 or y != 0.0 or z != 0.0:
        rate = max(rate, (spin * growth * (spin * spin + growth) / (240.0 * STEP_ERROR)) ** 0.2)
    return 1.0 + math.floor(length * rate)


@kernel
def _split_turn(twist: FloatArray, slope: FloatArray, length: float, radius: float, cuts: Times) -> int:
    """Write the times (s) within a piece at which the limit of the turn rate begins or ends, and return their number.

    They are the roots of vx, vx - radius wz and vx + radius wz, in increasing order.
    """
    count = 0
    if radius == 0.0:
        return count
    for root in range(3):
        side = (root - 1) * radius
        rate = slope[0] + side * slope[5]
        if rate == 0.0:
            continue
        cut = -(twist[0] + side * twist[5]) / rate
        if not 0.0 < cut < length:
            continue
        place = count
        while place > 0 and cuts[place - 1] > cut:
            cuts[place] = cuts[place - 1]
            place -= 1
        cuts[place] = cut
        count += 1
    return count


@kernel
def _steer(twist: FloatArray, slope: FloatArray, length: float, radius: float) -> None:
    """Limit the turn rate of a piece without a cut, in place: |wz| <= |vx| / radius."""
    vx, wz = twist[0] + 0.5 * length * slope[0], twist[5] + 0.5 * length * slope[5]
    if radius > 0.0 and abs(wz) * radius > abs(vx):
        curvature = 1.0 / radius if (wz > 0.0) == (vx > 0.0) else -1.0 / radius
        twist[5], slope[5] = curvature * twist[0], curvature * slope[0]


@kernel
def _write_piece(
    start: float,
    stop: float,
    twist: FloatArray,
    slope: FloatArray,
    radius: float,
    max_steps: int,
    count: int,
    knots: FloatArray,
    twists: FloatArray,
    slopes: FloatArray,
) -> float:
    """Write the segments of a piece after the first `count` ones, and return the number of all segments.

    The piece at the end has the length 0 and one segment. A number above `max_steps` ends the piece.
    """
    limited_twist, limited_slope, cuts = np.empty(6), np.empty(6), np.empty(3)
    cut_count = _split_turn(twist, slope, stop - start, radius, cuts)
    part_start = start
    for part in range(cut_count + 1):
        part_end = start + cuts[part] if part < cut_count else stop
        if not (part_end > part_start or stop == start):
            continue
        for column in range(6):
            limited_twist[column] = twist[column] + (part_start - start) * slope[column]
            limited_slope[column] = slope[column]
        _steer(limited_twist, limited_slope, part_end - part_start, radius)
        step_count = 1.0 if stop == start else _count_steps(limited_twist, limited_slope, part_end - part_start)
        # The opposite of <= is true for NaN too.
        if not step_count <= max_steps - count:
            return count + step_count
        steps = int(step_count)
        for step in range(steps):
            share = (part_end - part_start) * (step / steps)
            if count < knots.shape[0]:
                knots[count] = part_start + share
                for column in range(6):
                    twists[count, column] = limited_twist[column] + share * limited_slope[column]
                    slopes[count, column] = limited_slope[column]
            count += 1
        part_start = part_end
    return float(count)


@kernel
def _build_segments(
    time: Times,
    commands: FloatArray,
    limits: FloatArray,
    planar: bool,
    max_steps: int,
    twist: FloatArray,
    knots: FloatArray,
    twists: FloatArray,
    slopes: FloatArray,
) -> float:
    """Write the segments on which the twist is linear in time, and return their number.

    `twist` (6,) is that before the first row, and becomes the one at the end, without the limit of the turn rate.

    The last segment starts at the end. Only the first `knots.shape[0]` segments are written. The count ends at the
    first ramp with which it is above `max_steps`: the time is then short for each log.
    """
    count = 0
    change, slope, row_twist = np.empty(6), np.empty(6), np.empty(6)
    times, ends, rates = np.empty(3), np.empty(3), np.empty((3, 6))
    for row in range(time.shape[0]):
        end = time[row + 1] if row + 1 < time.shape[0] else time[row]
        for column in range(6):
            row_twist[column] = twist[column]
            change[column] = commands[row, column] - twist[column]
        _plan_ramps(change, limits, planar, times, rates)
        start = time[row]
        # A piece ends where a ramp ends, and at the next row.
        ends[0], ends[2] = min(times[0], times[1], times[2]), max(times[0], times[1], times[2])
        ends[1] = max(min(times[0], times[1]), min(max(times[0], times[1]), times[2]))
        for piece in range(4):
            stop = min(time[row] + ends[piece], end) if piece < 3 else end
            is_last = row + 1 == time.shape[0] and piece == 3
            if not (stop > start or is_last):
                continue
            for column in range(6):
                slope[column] = 0.0
                # A ramp that is over has added its whole change, to the last bit.
                velocity, sum_from_start = commands[row, column], row_twist[column]
                for ramp in range(3):
                    sum_from_start += rates[ramp, column] * min(start - time[row], times[ramp])
                    if start < time[row] + times[ramp] and rates[ramp, column] != 0.0:
                        slope[column] += rates[ramp, column]
                        velocity -= rates[ramp, column] * (time[row] + times[ramp] - start)
                is_ramp = slope[column] != 0.0
                twist[column] = sum_from_start if is_ramp and abs(commands[row, column]) > LARGE_COMMAND else velocity
            step_count = _write_piece(start, stop, twist, slope, limits[5], max_steps, count, knots, twists, slopes)
            if not step_count <= max_steps:
                return step_count
            count = int(step_count)
            for column in range(6):
                twist[column] += (stop - start) * slope[column]
            start = stop
        if end >= time[row] + ends[2]:
            for column in range(6):
                twist[column] = commands[row, column]
    return float(count)


@kernel
def _integrate(knots: FloatArray, twists: FloatArray, slopes: FloatArray, poses: FloatArray) -> None:
    """Write the pose (n, 7) at each knot (n,) after the first one."""
    for segment in range(knots.shape[0] - 1):
        step = knots[segment + 1] - knots[segment]
        _advance(poses[segment], twists[segment], slopes[segment], step, poses[segment + 1])


@kernel
def _evaluate_twists(
    knots: FloatArray,
    twists: FloatArray,
    slopes: FloatArray,
    poses: FloatArray,
    time: Times,
    position: Vectors,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    acceleration: Vectors,
    alpha: Vectors,
) -> None:
    """Write the motion at each time (s)."""
    pose, segment, last = np.empty(7), 0, knots.shape[0] - 1
    for i in range(time.shape[0]):
        segment = find_interval(knots, time[i], segment)
        row = last if time[i] >= knots[last] else segment
        t = time[i] - knots[row]
        twist, slope = twists[row], slopes[row]
        _advance(poses[row], twist, slope, t, pose)
        w, x, y, z = pose[3], pose[4], pose[5], pose[6]
        vx, vy, vz = twist[0] + t * slope[0], twist[1] + t * slope[1], twist[2] + t * slope[2]
        ox, oy, oz = twist[3] + t * slope[3], twist[4] + t * slope[4], twist[5] + t * slope[5]
        ax, ay, az = cross(ox, oy, oz, vx, vy, vz)
        position[i, 0], position[i, 1], position[i, 2] = pose[0], pose[1], pose[2]
        rotation[i, 0], rotation[i, 1], rotation[i, 2], rotation[i, 3] = w, x, y, z
        omega[i, 0], omega[i, 1], omega[i, 2] = ox, oy, oz
        alpha[i, 0], alpha[i, 1], alpha[i, 2] = slope[3], slope[4], slope[5]
        ax, ay, az = rotate(w, x, y, z, ax + slope[0], ay + slope[1], az + slope[2])
        acceleration[i, 0], acceleration[i, 1], acceleration[i, 2] = ax, ay, az
        vx, vy, vz = rotate(w, x, y, z, vx, vy, vz)
        velocity[i, 0], velocity[i, 1], velocity[i, 2] = vx, vy, vz


@dataclass(frozen=True, eq=False)
class VelocityCommands:
    """The motion of a frame with velocity commands in its own axes, from the first row (t = 0) to the last row.

    time: (n,) s from 0, strictly increasing.
    commands: (n, 6) vx vy vz m/s, wx wy wz rad/s.
    start: pose of the frame in the world at t = 0. None: the initial pose of the model; without a model, the origin.
    limits: of velocity and acceleration. None: those of the model's drive, else none.
    drive: the drive that follows the commands, None for all six commands.
    is_placed: `start` and `drive` are those of a model.
    source: the file that the commands were read from.
    notes: for the user, for example the columns that were not read.

    Make it with `velocity_commands`.

    >>> turn = ns.motion.velocity_commands([0.0, 4.0], [[0.5, 0.0, 0.0]] * 2, [[0.0, 0.0, 0.25]] * 2)
    >>> turn.at(np.array([4.0])).position_w.round(6)  # on a circle of 2 m
    array([[1.682942, 0.919395, 0.      ]])
    """

    time: Times
    commands: FloatArray
    start: Pose | None = None
    limits: CommandLimits | None = None
    drive: Drive | None = None
    is_placed: bool = False
    source: LogSource | None = None
    notes: tuple[str, ...] = ()
    _knots: FloatArray = field(init=False, repr=False)
    _twists: FloatArray = field(init=False, repr=False)
    _slopes: FloatArray = field(init=False, repr=False)
    _poses: FloatArray = field(init=False, repr=False)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the commands and compute the pose at each change of the twist."""
        object.__setattr__(self, "time", copy_read_only(self.time))
        object.__setattr__(self, "commands", copy_read_only(self.commands))
        self._check()
        drive, limits, where = self.drive, self.limits, Where(self.source.file) if self.source else None
        if limits is None:
            limits = drive.limits if drive else NO_LIMITS
        used = USED_COMMANDS[drive.kind] if drive else COMMAND_COLUMNS[1:]
        mask = np.array([float(column in used) for column in COMMAND_COLUMNS[1:]])
        planar = drive is not None and drive.kind != "free"
        commands = limits.clip(self.commands * mask, holonomic=drive is not None and drive.kind == "holonomic")
        arguments = (self.time, copy_read_only(commands), limits.row, planar)
        # A limited drive starts from rest.
        counted = (np.zeros(6), np.empty(0), np.empty((0, 6)), np.empty((0, 6)))
        step_count = _build_segments(*arguments, MAX_SEGMENTS, *counted)
        if not step_count <= MAX_SEGMENTS:
            remedy = "raise the limits of acceleration, or use commands with less rotation"
            what, allowed = "number of steps of the ramps", f"must be <= {MAX_SEGMENTS}"
            raise MotionError(what, f"{step_count:.3g} or more", allowed=allowed, remedy=remedy, where=where)
        count = int(step_count)
        knots, twists, slopes, poses = np.empty(count), np.empty((count, 6)), np.empty((count, 6)), np.empty((count, 7))
        _build_segments(*arguments, MAX_SEGMENTS, np.zeros(6), knots, twists, slopes)
        poses[0] = pose_row(self.start or Pose())
        _integrate(knots, twists, slopes, poses)
        for name, array in (("_knots", knots), ("_twists", twists), ("_slopes", slopes), ("_poses", poses)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        bad = np.flatnonzero(~np.isfinite(poses).all(axis=1))
        if bad.size:
            what = f"pose at {float(knots[bad[0]])!r} s"
            raise MotionError(what, allowed="must be finite", remedy="command lower velocities", where=where)

    def _check(self) -> None:
        """Raise `MotionError` for wrong shapes and rows."""
        count = self.time.size
        if self.time.shape != (count,) or self.commands.shape != (count, 6):
            shapes = (self.time.shape, self.commands.shape)
            raise MotionError("shapes of time and commands", shapes, allowed="must be (n,) and (n, 6)")
        if count < 2:
            remedy = "end with a row at the end of the motion"
            raise MotionError("number of velocity commands", count, allowed="must be >= 2", remedy=remedy)
        table = np.column_stack((self.time, self.commands))
        bad = np.argwhere(~(np.abs(table) <= MAX_COMMAND))
        if bad.size:
            row, column = bad[0].tolist()
            what = f"{COMMAND_COLUMNS[column]} of row {row}"
            allowed = f"must be finite, and at most {MAX_COMMAND:g} in magnitude"
            raise MotionError(what, float(table[row, column]), allowed=allowed)
        early_rows = np.flatnonzero(np.diff(self.time) <= 0.0) + 1
        if early_rows.size:
            row = int(early_rows[0])
            allowed = f"must be after the row before, {float(self.time[row - 1])!r}"
            remedy = "sort the rows and remove duplicates"
            raise MotionError(f"time of row {row} (s)", float(self.time[row]), allowed=allowed, remedy=remedy)

    @property
    def end(self) -> float:
        """Time (s) of the last row."""
        return float(self.time[-1])

    def at(self, time: Times) -> MotionBlock:
        """Return the motion at `time` (n,) s, in any order.

        Raises `MotionError` for a time that is below 0, after `end` or not finite.
        """
        time = check_instants(time, self.end)
        arrays = empty_arrays(time.shape[0])
        _evaluate_twists(self._knots, self._twists, self._slopes, self._poses, time, *arrays)
        return MotionBlock(*arrays)

    def place(self, drive: Drive | None, start: Pose) -> VelocityCommands:
        """Return the motion of the frame of a drive that starts at `start` (world). A planar drive starts upright."""
        if drive is not None and drive.kind != "free":
            start = make_upright(start)
        return replace(self, drive=drive, start=start, is_placed=True)

    @property
    def start_speeds(self) -> tuple[float, float]:
        """The velocity (m/s) and the angular velocity (rad/s) at t = 0; 0 if limits make a ramp of each."""
        return float(np.linalg.norm(self._twists[0, :3])), float(np.linalg.norm(self._twists[0, 3:]))

    @property
    def largest_jumps(self) -> tuple[float, float]:
        """The largest jumps of velocity (m/s) and angular velocity (rad/s) after t = 0; 0 on ramps."""
        before = self._twists[:-1] + np.diff(self._knots)[:, None] * self._slopes[:-1]
        jumps = self._twists[1:] - before
        linear, angular = (float(np.linalg.norm(part, axis=1).max()) for part in (jumps[:, :3], jumps[:, 3:]))
        # The ends of a ramp differ by rounding errors.
        return linear if linear > 1e-9 else 0.0, angular if angular > 1e-9 else 0.0

    def find_warnings(self) -> Iterator[str]:
        """Yield a warning about commands that the drive does not follow."""
        if self.drive is None:
            return
        used = USED_COMMANDS[self.drive.kind]
        columns = zip(COMMAND_COLUMNS[1:], self.commands.T, strict=True)
        ignored = [name for name, column in columns if name not in used and column.any()]
        if ignored:
            followed = ", ".join(used)
            yield f"ignores {', '.join(ignored)} of its velocity commands: {self.drive.name} follows {followed}"


class CommandFollower:
    """A frame that follows velocity commands as they arrive, by the law of `VelocityCommands`.

    pose: x y z (m) and w x y z (7,) of the frame in the world now.
    twist: vx vy vz (m/s) and wx wy wz (rad/s) (6,) in body axes now.

    >>> follower = ns.motion.CommandFollower(None, ns.Pose((0.0, 0.0, 2.0)))
    >>> follower.advance(4.0, (0.5, 0.0, 0.0, 0.0, 0.0, 0.25))
    >>> follower.pose[:3].round(6)  # on a circle of 2 m
    array([1.682942, 0.919395, 2.      ])
    """

    def __init__(self, drive: Drive | None, start: Pose) -> None:
        """Stand still at `start` (world). A planar drive starts upright. Without a drive, all six commands count."""
        self._drive, self._limits = drive, drive.limits if drive else NO_LIMITS
        self._planar = drive is not None and drive.kind != "free"
        used = USED_COMMANDS[drive.kind] if drive else COMMAND_COLUMNS[1:]
        self._mask = np.array([float(column in used) for column in COMMAND_COLUMNS[1:]])
        self.pose: FloatArray = np.array(pose_row(make_upright(start) if self._planar else start))
        self.twist: FloatArray = np.zeros(6)
        self._unlimited_twist = np.zeros(6)

    def advance(self, duration: float, command: Sequence[float]) -> None:
        """Follow a command (6,) for `duration` (s), which is above 0.

        Raises `MotionError` if the ramps need too many steps.
        """
        row = np.array([command], dtype=np.float64) * self._mask
        holonomic = self._drive is not None and self._drive.kind == "holonomic"
        commands = np.repeat(self._limits.clip(row, holonomic=holonomic), 2, axis=0)
        arguments = (np.array((0.0, duration)), commands, self._limits.row, self._planar, MAX_SEGMENTS)
        counted = (self._unlimited_twist.copy(), np.empty(0), np.empty((0, 6)), np.empty((0, 6)))
        step_count = _build_segments(*arguments, *counted)
        if not step_count <= MAX_SEGMENTS:
            allowed, remedy = f"must be <= {MAX_SEGMENTS}", "raise the limits of acceleration"
            raise MotionError("number of steps of the ramps", f"{step_count:.3g}", allowed=allowed, remedy=remedy)
        count = int(step_count)
        knots, twists, slopes, poses = np.empty(count), np.empty((count, 6)), np.empty((count, 6)), np.empty((count, 7))
        _build_segments(*arguments, self._unlimited_twist, knots, twists, slopes)
        poses[0] = self.pose
        _integrate(knots, twists, slopes, poses)
        # The last segment has no length and begins at the end.
        self.pose, self.twist = poses[-1], twists[-1]


class CommandedLink:
    """A link of a model that follows velocity commands as they arrive. It stands still until the first one.

    The commands are in the axes of the frame that the drive moves. The link is fixed in this frame.

    >>> from navsense.motion.velocity_commands import CommandedLink
    >>> link = CommandedLink(None, ns.Pose((1.0, 0.0, 0.0)), ns.Pose())
    >>> link.set_command((0.5, 0.0, 0.0), (0.0, 0.0, 0.0))
    ''
    >>> link.advance(2.0)
    >>> link.state.pose.position
    (2.0, 0.0, 0.0)

    command: vx vy vz (m/s) and wx wy wz (rad/s) that the link follows now.
    """

    def __init__(self, drive: Drive | None, start: Pose, link: Pose) -> None:
        """Stand still.

        drive: how the model follows commands. None: all six of them, in the axes of the link.
        start: pose of the model in the world. A planar drive starts upright.
        link: pose of the link in the model.
        """
        driven = link if drive is None else drive.pose
        self._follower = CommandFollower(drive, start @ driven)
        self._link, self._drive = driven.inverse() @ link, drive
        self.command: tuple[float, ...] = (0.0,) * 6

    def set_command(self, linear: Vector, angular: Vector) -> str:
        """Follow a command (m/s and rad/s) from now on. Returns what the drive ignores, "" for nothing.

        Raises `MotionError` for invalid numbers.
        """
        command = (*linear, *angular)
        largest = LIMITS["velocity"][0]
        if not all(abs(value) <= largest for value in command):
            allowed = f"must be finite, and at most {largest:g} in magnitude"
            raise MotionError("velocity command", command, allowed=allowed)
        self.command = command
        used = USED_COMMANDS[self._drive.kind] if self._drive else COMMAND_COLUMNS[1:]
        pairs = zip(COMMAND_COLUMNS[1:], command, strict=True)
        ignored = [name for name, value in pairs if value and name not in used]
        if not ignored or self._drive is None:
            return ""
        return f"{', '.join(ignored)} of the commands: {self._drive.name} follows {', '.join(used)}"

    def advance(self, duration: float) -> None:
        """Follow the command for `duration` (s), which is above 0.

        Raises `MotionError` if the ramps need too many steps.
        """
        self._follower.advance(duration, self.command)

    @property
    def state(self) -> State:
        """The state of the link now. Its velocities are in its own axes."""
        x, y, z, w, i, j, k = self._follower.pose.tolist()
        vx, vy, vz, wx, wy, wz = self._follower.twist.tolist()
        ax, ay, az = np.cross((wx, wy, wz), self._link.position).tolist()
        to_link = self._link.inverse().rotation
        return State(
            Pose((x, y, z), (w, i, j, k)) @ self._link,
            rotate_python(*to_link, vx + ax, vy + ay, vz + az),
            angular_velocity=rotate_python(*to_link, wx, wy, wz),
            frame="body",
        )


def make_upright(pose: Pose) -> Pose:
    """Return a pose with its yaw alone."""
    w, x, y, z = pose.rotation
    yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return Pose(pose.position, (math.cos(0.5 * yaw), 0.0, 0.0, math.sin(0.5 * yaw)))


def velocity_commands(
    time: Sequence[float] | Times,
    velocity: Sequence[Sequence[float]] | Vectors,
    angular_velocity: Sequence[Sequence[float]] | Vectors,
    *,
    start: Pose | None = None,
    limits: CommandLimits | None = None,
) -> VelocityCommands:
    """Return the motion of velocity commands in the body frame: rotation_wb' = rotation_wb omega / 2, p' = R v.

    time: (n,) s. The first row is at t = 0, the last row ends the motion.
    velocity: (n, 3) m/s, body frame, held until the next row.
    angular_velocity: (n, 3) rad/s, body frame, held until the next row.
    start: pose of the model's canonical link in the world at t = 0. None: the initial pose of the model.
    limits: of velocity and acceleration. None: those of the model's drive, else none.

    The body is the canonical link of the model, or the frame that its drive moves (`Drive`). A row holds from its time
    on. Without a limit of acceleration the velocities jump, and a jump has no acceleration. With one, the motion starts
    from rest.

    Raises `MotionError` for wrong shapes, fewer than two rows, numbers that are not finite and times that do not
    increase.

    >>> stop, ahead = [0.0, 0.0, 0.0], [0.2, 0.0, 0.0]
    >>> drive = ns.motion.velocity_commands([0.0, 5.0], [ahead, stop], [stop, stop])
    >>> drive.at(np.array([2.5, 5.0])).position_w
    array([[0.5, 0. , 0. ],
           [1. , 0. , 0. ]])
    """
    try:
        times, linear, angular = (np.array(array, dtype=np.float64) for array in (time, velocity, angular_velocity))
    except (TypeError, ValueError) as error:
        raise MotionError("velocity commands", str(error), allowed="must be arrays of numbers") from error
    count = times.size
    shapes = (times.shape, linear.shape, angular.shape)
    if shapes != ((count,), (count, 3), (count, 3)):
        allowed = "must be (n,), (n, 3) and (n, 3)"
        raise MotionError("shapes of time, velocity and angular velocity", shapes, allowed=allowed)
    if count and math.isfinite(times[0]):
        times -= times[0]
    commands: AnyArray = np.concatenate((linear, angular), axis=1)
    return VelocityCommands(times, commands, start, limits)
