"""Pacing of a run in real time, for software that receives its output live.

The n-th time slice, which ends at simulated time t_n, is passed on at wall time T_n::

    T_1 = when it is computed,        T_n >= T_1 + (t_n - t_1) / speed

A run that falls behind runs as fast as possible until it has caught up. Another thread can pause the run and change its
speed. The pace does not change results.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from navsense.core.errors import SimulationError

WALL_STEP = 0.05
"""Wall time (s) from one time slice to the next."""

LONGEST_SLEEP = 0.1
"""Longest wall time (s) until a change of the speed has an effect."""

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
        self._pause_start: float | None = None
        self._lock = threading.Lock()

    @property
    def speed(self) -> float:
        """Simulated seconds per second of real time."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        """Change the speed of the time slices that are not due yet."""
        with self._lock:
            now = self._now() if self._pause_start is None else self._pause_start
            if self._origin is not None:
                self._origin = now - (now - self._origin) * self._speed / speed
            self._speed = speed

    @property
    def is_paused(self) -> bool:
        """True while the run waits."""
        return self._pause_start is not None

    @is_paused.setter
    def is_paused(self, is_paused: bool) -> None:
        """Pause the run, or let it go on. A pause delays all later time slices."""
        with self._lock:
            if is_paused and self._pause_start is None:
                self._pause_start = self._now()
            elif not is_paused and self._pause_start is not None:
                if self._origin is not None:
                    self._origin += self._now() - self._pause_start
                self._pause_start = None

    def wait(self, end: float) -> None:
        """Wait until the time slice with the end `end` (s) is due, and update `max_delay` (s)."""
        left = self._compute_time_left(end)
        self.max_delay = max(self.max_delay, -left)
        while left > 0.0:
            self._sleep(min(left, LONGEST_SLEEP))
            left = self._compute_time_left(end)

    def _compute_time_left(self, end: float) -> float:
        """Return the time (s) until the end `end` (s) of a time slice is due; one step while the run is paused."""
        with self._lock:
            if self._origin is None:
                self._origin = self._now() - end / self._speed
            if self._pause_start is not None:
                return WALL_STEP
            return self._origin + end / self._speed - self._now()
