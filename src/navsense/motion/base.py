"""The motion protocol: the true motion of one frame as a function of time. Checks that all motions share.

Symbols: world frame w, moving frame b. `rotation_wb` takes coordinates of b to coordinates of w.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from navsense.core.errors import MotionError
from navsense.core.geodesy import Origin
from navsense.core.kernels import kernel
from navsense.core.pose import Pose
from navsense.core.typing import AnyArray, FloatArray, Quaternions, Times, Vectors


@dataclass(frozen=True, init=False)
class MotionBlock:
    """The true motion of one frame at n times.

    position_w: (n, 3) m.
    rotation_wb: (n, 4) quaternion w x y z.
    velocity_w: (n, 3) m/s.
    angular_velocity_b: (n, 3) rad/s.
    acceleration_w: (n, 3) m/s^2, of the frame's origin, without gravity.
    angular_acceleration_b: (n, 3) rad/s^2.

    The constructor makes the arrays read-only.

    >>> block = ns.motion.Stationary(ns.Pose((0.0, 0.0, -10.0))).at(np.array([0.0, 1.0]))
    >>> block.position_w
    array([[  0.,   0., -10.],
           [  0.,   0., -10.]])
    """

    position_w: Vectors
    rotation_wb: Quaternions
    velocity_w: Vectors
    angular_velocity_b: Vectors
    acceleration_w: Vectors
    angular_acceleration_b: Vectors

    def __init__(
        self,
        position_w: Vectors,
        rotation_wb: Quaternions,
        velocity_w: Vectors,
        angular_velocity_b: Vectors,
        acceleration_w: Vectors,
        angular_acceleration_b: Vectors,
    ) -> None:
        """Store the arrays read-only. Written for speed: a live run creates a block per sensor and step."""
        linear = (position_w, rotation_wb, velocity_w)
        for array in (*linear, angular_velocity_b, acceleration_w, angular_acceleration_b):
            array.setflags(False)  # type: ignore[call-arg]  # twice as fast as with the keyword
        fields = self.__dict__
        fields["position_w"], fields["rotation_wb"], fields["velocity_w"] = linear
        fields["angular_velocity_b"], fields["acceleration_w"] = angular_velocity_b, acceleration_w
        fields["angular_acceleration_b"] = angular_acceleration_b

    @property
    def arrays(self) -> tuple[Vectors, Quaternions, Vectors, Vectors, Vectors, Vectors]:
        """The six arrays in the order of the fields."""
        return (
            self.position_w,
            self.rotation_wb,
            self.velocity_w,
            self.angular_velocity_b,
            self.acceleration_w,
            self.angular_acceleration_b,
        )


@dataclass(frozen=True)
class LogContext:
    """What a log can need of its world.

    origin: the place of the world on earth; None without one.
    surface: height (m) of the water surface in the world.
    command_topic: topic of the velocity commands of the model; "" if it has no drive.
    model: name of the model.
    root: pose of the canonical link in the model.
    """

    origin: Origin | None = None
    surface: float = 0.0
    command_topic: str = ""
    model: str = ""
    root: Pose = Pose()


NO_CONTEXT = LogContext()
"""The context of a log without a world."""


@dataclass(frozen=True)
class LogStart:
    """The time in a recording that is t = 0 of a log.

    path: the absolute path of the recording.
    stamp: ns; None for a topic without stamps.
    log_time: ns, of the same message.
    """

    path: str
    stamp: int | None
    log_time: int

    def get_time(self, *, has_stamps: bool) -> int:
        """Return the stamp (ns), or the log time (ns)."""
        return self.stamp if has_stamps and self.stamp is not None else self.log_time


@dataclass(frozen=True)
class LogSource:
    """Where a motion was read.

    >>> ns.motion.LogSource("dive.mcap", "/odom").series
    '/odom'

    file: the name of the log or recording, without its folder.
    series: the topic, or the link, in a recording; "" in a log.
    bandwidth: that of the smoothing, Hz; None without.
    start: t = 0 in a recording of messages.
    has_states: the motion follows the states of a live system, whose URL is `file`.
    """

    file: str
    series: str = ""
    bandwidth: float | None = None
    start: LogStart | None = field(default=None, compare=False, repr=False)
    has_states: bool = False


@runtime_checkable
class HasSource(Protocol):
    """A motion from a file."""

    source: LogSource | None


@runtime_checkable
class HasNotes(Protocol):
    """A motion that informs its user, for example about noise.

    notes: what was not read.
    """

    notes: tuple[str, ...]

    def find_warnings(self) -> Iterator[str]:
        """Yield the warnings, each with its remedy."""
        ...


def empty_arrays(count: int) -> tuple[FloatArray, ...]:
    """Return six empty arrays for a block of `count` rows."""
    vectors, quaternions = (count, 3), (count, 4)
    linear = (np.empty(vectors), np.empty(quaternions), np.empty(vectors))
    return (*linear, np.empty(vectors), np.empty(vectors), np.empty(vectors))


@runtime_checkable
class Motion(Protocol):
    """The true motion of one frame.

    >>> class Drift:  # a motion of your own: 0.3 m/s along x
    ...     end = float("inf")
    ...     def at(self, time):
    ...         zero, velocity = np.zeros((time.size, 3)), np.tile([0.3, 0.0, 0.0], (time.size, 1))
    ...         rotation = np.tile([1.0, 0.0, 0.0, 0.0], (time.size, 1))
    ...         return ns.motion.MotionBlock(velocity * time[:, None], rotation, velocity, zero, zero, zero)
    >>> drifting = ns.simulate(world, 1.0, motion={"quadrotor": Drift()})
    >>> drifting.truth["base_link"].velocity[-1]
    array([0.3, 0. , 0. ])
    """

    @property
    def end(self) -> float:
        """Last time (s) at which the motion is defined, `math.inf` if it never ends."""
        ...

    def at(self, time: Times) -> MotionBlock:
        """Return the motion at `time` (n,) s, in any order. Each row depends only on its own time.

        Raises `MotionError` for a time below 0 or after `end`.
        """
        ...


@kernel
def _first_outside(time: Times, end: float) -> int:
    """Return the first row with a time that is not finite or not in [0, end], or -1."""
    for row in range(time.shape[0]):
        t = time[row]
        if not (0.0 <= t <= end and t < math.inf):
            return row
    return -1


def check_instants(time: Times, end: float) -> Times:
    """Return `time` (n,) s as contiguous, read-only float64, the one type that kernels are compiled for.

    Raises `MotionError` for a time that is not in [0, end] or not finite.
    """
    array: AnyArray = np.ascontiguousarray(time, dtype=np.float64).view()
    array.setflags(write=False)
    if np.ndim(time) != 1:
        raise MotionError("the shape of the instants", np.shape(time), allowed="must be (n,)")
    row = _first_outside(array, end)
    if row >= 0:
        allowed = f"must be from 0 to {end!r} s, the end of the motion" if end < math.inf else "must be >= 0 and finite"
        remedy = "shorten the run or give a longer motion" if array[row] > end else ""
        raise MotionError(f"instant {row} (s)", float(array[row]), allowed=allowed, remedy=remedy)
    return array


def find_first_true(flags: AnyArray) -> int:
    """Return the index of the first true flag, or -1."""
    return int(np.argmax(flags)) if bool(flags.any()) else -1


def pose_row(pose: Pose) -> FloatArray:
    """Return x y z (m) and unit w x y z of `pose` as one read-only array (7,)."""
    row = np.array((*pose.position, *pose.rotation))
    row.setflags(write=False)
    return row


def copy_read_only(array: FloatArray) -> FloatArray:
    """Return the array as contiguous, read-only float64; a copy unless the array already has these properties."""
    values = np.asarray(array)
    if values.dtype == np.float64 and values.flags.c_contiguous and not values.flags.writeable:
        return values
    values = np.array(values, dtype=np.float64, order="C")
    values.setflags(write=False)
    return values
