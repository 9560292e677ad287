"""The pace of a run: how many simulated seconds a second of the wall may have, for software that listens to a port.

The n-th time slice, which ends at t_n of simulated time, is handed on at wall time T_n::

    T_1 = when it is made,        T_n >= T_1 + (t_n - t_1) / speed

A run that falls behind goes as fast as it can until it has caught up; nothing that is simulated depends on it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from navsense.core.errors import SimulationError

WALL_STEP = 0.05
"""Wall time (s) from one time slice to the next."""

MIN_SPEED = 1e-6
"""Simulated seconds a second of the slowest run: a day of one has less than a sample."""


class RealTimeLimiter:
    """Holds a run back to `speed` simulated seconds a second. Raises `SimulationError` for a speed that is none."""

    def __init__(
        self, speed: float, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Take what tells the time (s) and what waits (s)."""
        if isinstance(speed, bool) or not isinstance(speed, int | float) or not MIN_SPEED <= speed < math.inf:
            allowed = f"must be a finite number >= {MIN_SPEED:g}, 1 for real time"
            raise SimulationError("speed (simulated seconds a second)", speed, allowed=allowed)
        self.window = speed * WALL_STEP
        self.behind = 0.0
        self._speed, self._now, self._sleep = float(speed), now, sleep
        self._origin: float | None = None

    def wait(self, end: float) -> None:
        """Wait until the time slice with the end `end` (s) is due, and update the largest delay `behind` (s)."""
        due = end / self._speed
        if self._origin is None:
            self._origin = self._now() - due
        left = self._origin + due - self._now()
        if left > 0.0:
            self._sleep(left)
        self.behind = max(self.behind, -left)
