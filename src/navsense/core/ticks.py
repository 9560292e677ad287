"""Sample instants as integers: sample k of a sensor is at k / rate, never accumulated, never truncated."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from navsense.core.errors import SimulationError
from navsense.core.typing import IntArray, Times

MIN_RATE, MAX_RATE = 0.001, 1e7
"""Rates (Hz) that a sensor can have."""

MAX_TICKS = 2.0**52
"""Largest tick: larger integers are not exact in a double."""


@dataclass(frozen=True)
class Ticks:
    """Sample instants of one sensor: `index` (n,) increasing integers, `rate` in Hz; t = index / rate.

    `nominal_step` (ticks) is 1, or the first step of your own times (`apply`), whose ticks are nanoseconds. White noise
    and interval means use it for sample 0, which has no sample before it. Biases take no step there.

    >>> from navsense.core.ticks import Ticks
    >>> Ticks(np.arange(3), rate=100.0).time
    array([0.  , 0.01, 0.02])
    """

    index: IntArray
    rate: float
    nominal_step: int = 1
    time: Times = field(init=False, repr=False, compare=False)
    """The instants (n,) in seconds since the run's start."""

    def __post_init__(self) -> None:
        """Compute the instants."""
        object.__setattr__(self, "time", self.index / self.rate)

    def __len__(self) -> int:
        """Return the number of ticks."""
        return int(self.index.size)

    @property
    def row_rate(self) -> float:
        """The nominal rate (Hz) of the rows. `rate` is that of the ticks."""
        return self.rate / self.nominal_step


def check_rate(rate: float, what: str = "rate") -> float:
    """Return the rate (Hz). Raises `SimulationError` outside 0.001 Hz to 10 MHz, and for an invalid number."""
    if not isinstance(rate, int | float | np.number) or not MIN_RATE <= rate <= MAX_RATE:
        raise SimulationError(what, rate, allowed=f"must be from {MIN_RATE} to {MAX_RATE:.0f} Hz")
    return float(rate)


def step_to_rate(step: float) -> float:
    """Return the rate (Hz) for a step (s): 1 / step, rounded to a whole number within rounding errors."""
    rate = 1.0 / step
    rounded = round(rate)
    return float(rounded) if rounded and abs(rate - rounded) <= 1e-9 * rate else rate


def find_first_tick(time: float, rate: float) -> int:
    """Return the first tick k >= 0 with k / rate >= time (s)."""
    if not time * rate < MAX_TICKS:
        raise SimulationError("time (s)", time, allowed=f"must be below {MAX_TICKS / rate:g} s at {rate:g} Hz")
    k = max(math.ceil(time * rate) - 1, 0)
    while k > 0 and (k - 1) / rate >= time:
        k -= 1
    while k / rate < time:
        k += 1
    return k


def make_ticks(start: float, end: float, rate: float) -> Ticks:
    """Return the ticks with start <= k / rate < end (s): k = 0 ... ceil(end rate) - 1 for start 0."""
    first, stop = find_first_tick(start, rate), find_first_tick(end, rate)
    return Ticks(np.arange(first, stop, dtype=np.int64), rate)


def count_samples(duration: float, rate: float) -> int:
    """Return the number of samples in a run of `duration` (s)."""
    return find_first_tick(duration, rate)
