"""Replay of a recorded current: velocities by time with linear interpolation.

    v(t) = v_i + (t - t_i) / (t_(i+1) - t_i) (v_(i+1) - v_i)

The current is the same everywhere. Times are from the start of the run. `outside` is the rule outside the record:
"error" raises `FieldError`, "hold" returns the first or last velocity. `recordings.currents.read_current` reads a
record from a file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternion, Times, Vectors
from navsense.environment.current.base import (
    MAX_COORDINATE,
    MAX_SPEED,
    OutsideRule,
    check_coordinate,
    check_outside_rule,
    interpolate_rows,
    make_read_only_array,
    rotate_heading,
    to_world_axes,
)

FRAMES = ("world", "enu", "ned")


@dataclass(frozen=True, eq=False)
class CurrentReplay:
    """A recorded current.

    times: (n,) s, increasing.
    velocity: (n, 3) m/s.
    frame: "world", "enu" or "ned".
    heading: angle from east to the world's x axis (rad), for "enu" and "ned".
    outside: rule for times outside the record.

    Raises `FieldError` for times that do not increase and for invalid velocities.

    >>> velocity = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0]])
    >>> record = ns.environment.current.CurrentReplay(np.array([0.0, 60.0]), velocity)
    >>> record.at(np.zeros((1, 3)), np.array([30.0]))
    array([[0.15, 0.  , 0.  ]])
    """

    times: FloatArray
    velocity: Vectors
    frame: str = "world"
    heading: float = 0.0
    outside: OutsideRule = "error"

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        if self.frame not in FRAMES:
            raise FieldError("frame of a current", self.frame, allowed=f"must be one of {', '.join(FRAMES)}")
        check_outside_rule("outside of a record", self.outside)
        check_coordinate("heading of a current (rad)", self.heading)
        times, velocity = (np.asarray(array, dtype=np.float64) for array in (self.times, self.velocity))
        if times.ndim != 1 or times.size == 0 or velocity.shape != (times.size, 3):
            shapes = f"{times.shape} and {velocity.shape}"
            raise FieldError("shapes of times and velocities", shapes, allowed="must be (n,) and (n, 3), n at least 1")
        invalid = ~(np.abs(times) <= MAX_COORDINATE * 1e3)
        invalid[1:] |= ~(np.diff(times) > 0.0)
        if invalid.any():
            row, allowed = int(np.argmax(invalid)), "must be finite and after the row before"
            raise FieldError("time of a current (s)", float(times[row]), row=row, allowed=allowed)
        invalid_rows = ~(np.abs(velocity) <= MAX_SPEED).all(axis=1)
        if invalid_rows.any():
            row, allowed = int(np.argmax(invalid_rows)), f"must be finite and of absolute value up to {MAX_SPEED:g}"
            raise FieldError("velocity of a current (m/s)", tuple(velocity[row].tolist()), row=row, allowed=allowed)

    @cached_property
    def _arrays(self) -> tuple[FloatArray, Vectors]:
        """The times, and the velocities along the world's axes."""
        velocity = np.asarray(self.velocity, dtype=np.float64)
        if self.frame == "ned":
            velocity = np.stack((velocity[:, 1], velocity[:, 0], -velocity[:, 2]), axis=1)
        return make_read_only_array(np.asarray(self.times).tolist()), to_world_axes(velocity.tolist(), self.heading)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` outside the record if the rule is "error"."""
        times, values = self._arrays
        out = np.empty((time.shape[0], 3))
        row = interpolate_rows(time, 1.0, 0.0, times, values, self.outside == "hold", out)
        if row >= 0:
            allowed = f"must be from {times[0]:.9g} to {times[-1]:.9g}, the span of the recorded current"
            remedy = 'use outside="hold" for the first or last velocity'
            raise FieldError("instant (s)", float(time[row]), row=row, allowed=allowed, remedy=remedy)
        return out

    def rotate(self, rotation: Quaternion) -> CurrentReplay:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        return replace(self, heading=rotate_heading(self.heading, rotation))
