"""Motion that follows the states of a live system, such as a simulator, as they arrive.

The motion inside a step, between two states, is that of `navsense.motion.driven`. Missing quantities are derived as
there. The motion does not depend on how the states are grouped when they arrive. A recording of the states therefore
gives the same motion to the last bit.

The motion begins with the first state, at `start`. Before it, the frame stands still in the pose of the first state,
and a run publishes nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from navsense.core.errors import MotionError
from navsense.core.typing import BoolArray, FloatArray, Times
from navsense.motion.base import LogSource, MotionBlock, empty_arrays
from navsense.motion.driven import complete_step, evaluate_step

_INITIAL_CAPACITY = 1024
"""Initial number of states of the arrays."""

STATE_SIZE = 19
"""Numbers in a state: position, orientation, velocity, angular velocity, acceleration, angular acceleration."""


class ReceivedMotion:
    """The motion of a frame through states.

    start: time (s) of the first state.
    source: the URL of the live system.
    end: infinity until `finish`.

    >>> motion = ns.motion.ReceivedMotion(0.5, ns.motion.state_row(ns.State(ns.Pose())), ns.motion.LogSource("gz://"))
    >>> motion.append(1.5, ns.motion.state_row(ns.State(ns.Pose((2.0, 0.0, 0.0)))))
    >>> motion.at(np.array([1.0])).position_w
    array([[1., 0., 0.]])
    """

    def __init__(self, start: float, row: FloatArray, source: LogSource, *, capacity: int = _INITIAL_CAPACITY) -> None:
        """Begin at `start` (s) with a state (19,), a row of `navsense.motion.driven.state_row`.

        capacity: number of states for which room is made. It grows with the states.

        Raises `MotionError` for a start below 0.
        """
        if not 0.0 <= start < math.inf:
            raise MotionError("time of the first state (s)", start, allowed="must be a finite number >= 0")
        self.start, self.source = start, replace(source, has_states=True)
        self.end = math.inf
        # The step before the first one has length zero.
        count = capacity + 1
        self._ends, self._rows = np.full(count, start), np.empty((count, STATE_SIZE))
        self._turns = np.zeros((count, 3))
        self._rows[:2] = row
        self._first: FloatArray | None = None
        self._early_blocks: dict[float, MotionBlock] = {}
        self._oldest, self._last = 2, 1

    def __repr__(self) -> str:
        """Return a short description."""
        return f"<ReceivedMotion from {self.source.file}: {self.start:g} to {self.last_time:g} s>"

    @property
    def last_time(self) -> float:
        """Time (s) of the last state."""
        return float(self._ends[self._last])

    @property
    def last_step(self) -> float:
        """Time (s) from the state before to the last state; 0 before the second state."""
        return float(self._ends[self._last] - self._ends[self._last - 1])

    @property
    def has_step(self) -> bool:
        """True from the second state on. The motion at `start` may depend on it."""
        return self._first is not None

    def append(self, time: float, row: FloatArray) -> None:
        """Add a state (19,) at `time` (s). Raises `MotionError` if time does not increase."""
        if not time > self.last_time:
            raise MotionError("time of a state (s)", time, allowed=f"must be after {self.last_time!r}")
        if self._last + 1 == self._ends.shape[0]:
            self._make_room()
        self._last += 1
        self._ends[self._last], self._rows[self._last] = time, row
        complete_step(self._last, self._ends, self._rows, self._turns)
        if self._first is None:
            self._first = self._rows[1].copy()  # its missing quantities are known now

    def finish(self) -> None:
        """End the motion with the last state. A run without a duration contains the samples at its instant."""
        self.end = math.nextafter(self.last_time, math.inf)

    def forget(self, time: float) -> None:
        """Drop the steps that end at or before `time` (s), except the last step."""
        index = int(np.searchsorted(self._ends[: self._last], time, side="right"))
        self._oldest = max(self._oldest, min(index, self._last))

    def _make_room(self) -> None:
        """Remove the steps before `_oldest` and resize the arrays to twice the number of steps left."""
        first = max(self._oldest - 2, 0)
        count = self._last + 1 - first
        capacity = max(_INITIAL_CAPACITY, 2 * count)
        for name in ("_ends", "_rows", "_turns"):
            old = self.__dict__[name]
            new = np.zeros((capacity, *old.shape[1:]))
            new[:count] = old[first : self._last + 1]
            self.__dict__[name] = new
        self._oldest, self._last = self._oldest - first, count - 1

    def list_times(self, start: float, end: float) -> Times:
        """Return the times (n,) s of the states in start <= t < end that are not forgotten."""
        first, last = np.searchsorted(self._ends[max(self._oldest - 1, 1) : self._last + 1], (start, end))
        times: Times = self._ends[max(self._oldest - 1, 1) : self._last + 1][first:last].copy()
        return times

    def at(self, time: Times) -> MotionBlock:
        """Return the motion at times (n,) s. Raises `MotionError` after the last state and for forgotten times.

        Sensors ask again for the motion at t = 0, so it stays known, and the block of one such time is kept.
        """
        if self._first is None:
            raise MotionError("motion", f"one state of {self.source.file}", allowed="needs two states")
        if time.shape[0] == 1 and time.item() <= self.start:
            t = time.item()
            if t not in self._early_blocks:
                self._early_blocks = {t: self._evaluate_early(self._first, time)}
            return self._early_blocks[t]
        time = np.ascontiguousarray(time, dtype=np.float64)
        if self.end < math.inf:
            time = np.where((time > self.last_time) & (time <= self.end), self.last_time, time)
        is_early: BoolArray = time <= self.start
        if not is_early.any():
            return self._evaluate(time)
        arrays = empty_arrays(time.shape[0])
        blocks = [(is_early, self._evaluate_early(self._first, time[is_early]))]
        if not is_early.all():
            blocks.append((~is_early, self._evaluate(time[~is_early])))
        for rows, block in blocks:
            for array, part in zip(arrays, block.arrays, strict=True):
                array[rows] = part
        return MotionBlock(*arrays)

    def _evaluate_early(self, row: FloatArray, time: Times) -> MotionBlock:
        """Return the motion up to the start: at rest, and at the start that of the first state, `row` (19,)."""
        position, rotation, *rates = arrays = empty_arrays(time.shape[0])
        position[:], rotation[:] = row[:3], row[3:7]
        is_start = time == self.start
        for index, rate in enumerate(rates):
            first = 7 + 3 * index
            rate[:] = np.where(is_start[:, None], row[first : first + 3], 0.0)
        return MotionBlock(*arrays)

    def _evaluate(self, time: Times) -> MotionBlock:
        """Return the motion inside the steps that are kept."""
        arrays = empty_arrays(time.shape[0])
        row = evaluate_step(self._oldest, self._last, self._ends, self._rows, self._turns, time, *arrays)
        if row >= 0:
            start, end = float(self._ends[self._oldest - 1]), self.last_time
            allowed = f"must be from {start!r} to {end!r} s, where states of {self.source.file} are known"
            raise MotionError("time (s)", float(time[row]), allowed=allowed)
        return MotionBlock(*arrays)
