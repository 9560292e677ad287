"""A current that is received while a run goes on: each velocity holds until the next one.

    v(t) = v_i    for t_i <= t < t_(i+1)

The current is the same everywhere. The velocity at a time never changes after a query: a sample that arrives later than
a query of its time takes effect just after the latest query.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternion, Times, Vector, Vectors
from navsense.environment.current.base import (
    check_coordinate,
    check_speed,
    rotate_heading,
    to_world_axes,
)
from navsense.environment.current.replay import FRAMES

_INITIAL_CAPACITY = 64


@dataclass(eq=False)
class _Samples:
    """The samples so far: the first `count` rows of the arrays. asked: the latest time of a query (s)."""

    time: FloatArray
    velocity: Vectors
    count: int = 0
    asked: float = -math.inf

    def append(self, time: float, velocity: Vector) -> None:
        """Append a sample; one of the same time replaces the last."""
        if self.count and time == self.time[self.count - 1]:
            self.velocity[self.count - 1] = velocity
            return
        if self.count == self.time.size:
            self.time = np.concatenate((self.time, np.empty_like(self.time)))
            self.velocity = np.concatenate((self.velocity, np.empty_like(self.velocity)))
        self.time[self.count], self.velocity[self.count] = time, velocity
        self.count += 1

    def remove_before(self, time: float) -> None:
        """Remove the samples that are over before a time, if they are more than half of all."""
        first = int(np.searchsorted(self.time[: self.count], time, side="right")) - 1
        if first > max(_INITIAL_CAPACITY, self.count // 2):
            self.time, self.velocity = self.time[first:].copy(), self.velocity[first:].copy()
            self.count -= first


def _make_samples() -> _Samples:
    return _Samples(np.empty(_INITIAL_CAPACITY), np.empty((_INITIAL_CAPACITY, 3)))


@dataclass(frozen=True, eq=False)
class LiveCurrent:
    """A current that is received during a run. `append` and `at` are called in one thread.

    frame: of the velocities: "world", "enu" or "ned".
    heading: angle from east to the world's x axis (rad), for "enu" and "ned".
    memory: time (s) before the latest query that stays defined; older samples are removed.

    Raises `FieldError` for an unknown frame, and for a memory that is not >= 0.

    >>> current = ns.environment.current.LiveCurrent()
    >>> current.append(0.0, (0.3, 0.0, 0.0))
    0.0
    >>> current.append(2.0, (0.5, 0.0, 0.0))
    2.0
    >>> current.at(np.zeros((3, 3)), np.array([0.0, 1.9, 2.0]))[:, 0]
    array([0.3, 0.3, 0.5])
    """

    frame: str = "world"
    heading: float = 0.0
    memory: float = math.inf
    _samples: _Samples = field(default_factory=_make_samples, repr=False)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        if self.frame not in FRAMES:
            raise FieldError("frame of a current", self.frame, allowed=f"must be one of {', '.join(FRAMES)}")
        check_coordinate("heading of a current (rad)", self.heading)
        if not self.memory >= 0.0:
            raise FieldError("memory of a current (s)", self.memory, allowed="must be >= 0")

    @property
    def times(self) -> FloatArray:
        """The times (n,) s at which the samples took effect."""
        return self._samples.time[: self._samples.count].copy()

    @property
    def velocity(self) -> Vectors:
        """The velocities (n, 3) m/s of the samples, in `frame`."""
        return self._samples.velocity[: self._samples.count].copy()

    def append(self, time: float, velocity: Vector) -> float:
        """Add a velocity (m/s, in `frame`) from `time` (s) on, and return the time at which it takes effect (s).

        This is `time`, or just after the latest query. Raises `FieldError` for a time before the last sample, and for
        an invalid time or velocity.
        """
        samples = self._samples
        check_coordinate("time of a current (s)", time)
        for value in velocity:
            check_speed("velocity of a current (m/s)", value)
        if not time > samples.asked:
            time = math.nextafter(samples.asked, math.inf)
        last = float(samples.time[samples.count - 1]) if samples.count else -math.inf
        if time < last:
            raise FieldError("time of a current (s)", time, allowed=f"must not be before the last sample, {last!r}")
        samples.append(time, velocity)
        return time

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` before the first sample, and before the memory."""
        samples = self._samples
        times = samples.time[: samples.count]
        rows = np.searchsorted(times, time, side="right") - 1
        if rows.size and (rows.min() < 0 or np.isnan(time).any()):
            row = int(np.argmin(rows)) if rows.min() < 0 else int(np.argmax(np.isnan(time)))
            allowed = "must be after the first sample of the current, and there is none"
            if times.size:
                allowed = f"must be >= {float(times[0])!r}, the first sample of the current"
            remedy = "wait for the first sample before the run starts"
            raise FieldError("instant (s)", float(time[row]), row=row, allowed=allowed, remedy=remedy)
        if rows.size:
            samples.asked = max(samples.asked, float(time.max()))
        velocity = samples.velocity[rows]
        if self.memory < math.inf:
            samples.remove_before(samples.asked - self.memory)
        if self.frame == "world" and self.heading == 0.0:
            return velocity
        if self.frame == "ned":
            velocity = np.stack((velocity[:, 1], velocity[:, 0], -velocity[:, 2]), axis=1)
        return to_world_axes(velocity.tolist(), self.heading)

    def rotate(self, rotation: Quaternion) -> LiveCurrent:
        """Return the current in a world rotated by `rotation`; it has the same samples.

        Raises `FieldError` unless the rotation is about the vertical.
        """
        return replace(self, heading=rotate_heading(self.heading, rotation))
