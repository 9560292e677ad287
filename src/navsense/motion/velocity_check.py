"""Comparison of the velocities of a live system with its poses.

Over a step of length h from state 0 to state 1, the poses and the velocities differ by

    e = p_1 - p_0 - (v_0 + v_1) h / 2          m, world axes
    e = log(q_0^-1 q_1) - (w_0 + w_1) h / 2    rad, body axes

In a window of at least 25 steps, the poses or the velocities move by at least 1 m or 1 rad. E is the sum of all e, P is
the displacement of the poses, and V that of the velocities. A window contradicts if

    |E| > 0.3 max(|P|, |V|)   and   |E|^2 > 9 sum |e|^2

Three such windows in a row are a contradiction. The first condition is the size. Axes that are wrong by more than 17
degrees exceed it. So do velocities of zero, and a unit that is wrong by a factor of 1.43. The second condition excludes
noise and jumps of the poses, such as the corrections of a filter. For independent e, |E|^2 / sum |e|^2 is chi-squared
with three degrees of freedom over 3. It is above 9 with a probability of 6e-6. For a constant contradiction it is the
number of steps. Velocities that are averages over a step, or those of its start, add h / 2 times a change of velocity
to E.

The comparison ends after 20 windows without a contradiction. It uses states at least 8 ms apart, so that a topic at
1 kHz costs little.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.core.rotation import multiply_python, to_rotation_vector_python
from navsense.core.typing import FloatArray

SHORTEST_STEP = 0.008
"""Length (s) of the shortest step that is compared."""

WINDOW_SIZE = 1.0
"""Displacement (m or rad) of a window."""

WINDOW_STEPS = 25
"""Smallest number of steps of a window."""

SIZE_LIMIT = 0.3
"""Largest difference as a share of the displacement."""

NOISE_LIMIT = 9.0
"""Largest squared sum of the differences over the sum of their squares."""

CONTRADICTIONS = 3
"""Number of windows in a row that contradict."""

WINDOWS = 20
"""Number of windows without a contradiction after which the comparison ends."""


class DisplacementComparison:
    """Compares displacements of poses with those of velocities, of position or of attitude.

    unit: "m" or "rad", for messages.
    is_done: true after a contradiction, or after `WINDOWS` windows without one.
    """

    def __init__(self, unit: str) -> None:
        """Start without a step."""
        self._unit, self.is_done = unit, False
        self._contradictions = self._windows = 0
        self._start_window()

    def _start_window(self) -> None:
        self._poses, self._velocities = np.zeros(3), np.zeros(3)
        self._squares, self._steps, self._length = 0.0, 0, 0.0

    def add(self, pose_change: FloatArray, velocity_change: FloatArray, length: float) -> str:
        """Add a step of `length` (s) with its displacements (3,). Return the problem, "" without one."""
        difference = pose_change - velocity_change
        self._poses, self._velocities = self._poses + pose_change, self._velocities + velocity_change
        self._squares += _compute_square(difference)
        self._steps, self._length = self._steps + 1, self._length + length
        size = max(_compute_square(self._poses), _compute_square(self._velocities))
        if self._steps < WINDOW_STEPS or size < WINDOW_SIZE * WINDOW_SIZE:
            return ""
        total = _compute_square(self._poses - self._velocities)
        contradicts = total > SIZE_LIMIT * SIZE_LIMIT * size and total > NOISE_LIMIT * self._squares
        self._contradictions = self._contradictions + 1 if contradicts else 0
        self._windows += not contradicts
        problem = ""
        if self._contradictions == CONTRADICTIONS:
            poses, velocities = (_format_vector(vector) for vector in (self._poses, self._velocities))
            problem = (
                f"in {self._length:.3g} s the poses move by {poses} {self._unit}, their velocities by {velocities}"
            )
        self.is_done = bool(problem) or self._windows == WINDOWS
        self._start_window()
        return problem


class VelocityCheck:
    """Finds velocities and angular velocities that contradict the poses.

    >>> from navsense.motion.velocity_check import VelocityCheck
    >>> check = VelocityCheck()
    >>> for k in range(400):  # 1 m/s along x, but a velocity along y
    ...     state = ns.State(ns.Pose((0.01 * k, 0.0, 0.0)), velocity=(0.0, 1.0, 0.0))
    ...     if problem := check.add(0.01 * k, ns.motion.state_row(state)):
    ...         print(problem)
    in 1 s the poses move by (1, 0, 0) m, their velocities by (0, 1, 0)
    """

    def __init__(self) -> None:
        """Start without a state."""
        self._time, self._row = -math.inf, np.full(19, math.nan)
        self._linear, self._angular = DisplacementComparison("m"), DisplacementComparison("rad")

    @property
    def is_done(self) -> bool:
        """True if nothing is compared any more."""
        return self._linear.is_done and self._angular.is_done

    def add(self, time: float, row: FloatArray) -> str:
        """Add a state (19,) of `state_row` at `time` (s), NaN for what was not sent.

        Returns a problem, "" without one.
        """
        length, start = time - self._time, self._row
        if length < SHORTEST_STEP:
            return ""
        self._time, self._row = time, row
        if math.isnan(start[0]):
            return ""
        if not self._linear.is_done and not math.isnan(start[7] + row[7]):
            change = 0.5 * length * (start[7:10] + row[7:10])
            if problem := self._linear.add(row[:3] - start[:3], change, length):
                return problem
        if not self._angular.is_done and not math.isnan(start[10] + row[10]):
            w, x, y, z = start[3:7].tolist()
            turn = to_rotation_vector_python(*multiply_python(w, -x, -y, -z, *row[3:7].tolist()))
            return self._angular.add(np.array(turn), 0.5 * length * (start[10:13] + row[10:13]), length)
        return ""


def _compute_square(vector: FloatArray) -> float:
    """Return the squared length of a vector (3,)."""
    x, y, z = vector.tolist()
    return float(x * x + y * y + z * z)


def _format_vector(vector: FloatArray) -> str:
    """Return a vector as "(1.2, 0, 0)"."""
    return f"({', '.join(f'{value + 0.0:.3g}' for value in np.round(vector, 6))})"
