"""Pacing of a run in real time, for software that receives its output live.

The n-th time slice, which ends at simulated time t_n, is passed on at wall time T_n::

    T_1 = when it is computed,        T_n >= T_1 + (t_n - t_1) / speed

A run that falls behind runs as fast as possible until it has caught up. The pace does not change results.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from navsense.core.errors import SimulationError

WALL_STEP = 0.05
"""Wall time (s) from one time slice to the next."""

MIN_SPEED = 1e-6
"""Minimum speed: at a lower speed a day of real time has less than one sample."""


class RealTimeLimiter:
    """Limits a run to `speed` simulated seconds per second of real time.

    Raises `SimulationError` for an invalid speed.
    """

    def __init__(
        self, speed: float, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Store the functions that return the time (s) and that sleep (s)."""
        if isinstance(speed, bool) or not isinstance(speed, int | float) or not MIN_SPEED <= speed < math.inf:
            allowed = f"must be a finite number >= {MIN_SPEED:g}, 1 for real time"
            raise SimulationError("speed (simulated seconds per second)", speed, allowed=allowed)
        self.time_slice_length = speed * WALL_STEP
        self.max_delay = 0.0
        self._speed, self._now, self._sleep = float(speed), now, sleep
        self._origin: float | None = None

    def wait(self, end: float) -> None:
        """Wait until the time slice with the end `end` (s) is due, and update `max_delay` (s)."""
        due = end / self._speed
        if self._origin is None:
            self._origin = self._now() - due
        left = self._origin + due - self._now()
        if left > 0.0:
            self._sleep(left)
        self.max_delay = max(self.max_delay, -left)
