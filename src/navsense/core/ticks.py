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
"""Ticks beyond which a double no longer tells one from the next."""


@dataclass(frozen=True)
class Ticks:
    """Sample instants of one sensor: `index` (n,) increasing integers, `rate` in Hz; t = index / rate.

    `spacing` (ticks) is what stands for the step before the first sample: the usual one.
    """

    index: IntArray
    rate: float
    spacing: int = 1
    time: Times = field(init=False, repr=False, compare=False)
    """The instants (n,) in seconds since the run's start."""

    def __post_init__(self) -> None:
        """Work out the instants."""
        object.__setattr__(self, "time", self.index / self.rate)

    def __len__(self) -> int:
        """Return how many there are."""
        return int(self.index.size)


def check_rate(rate: float, what: str = "rate") -> float:
    """Return the rate (Hz); raise `SimulationError` outside 0.001 Hz to 10 MHz, or where it is no number."""
    if not isinstance(rate, int | float | np.number) or not MIN_RATE <= rate <= MAX_RATE:
        raise SimulationError(what, rate, allowed=f"must be from {MIN_RATE} to {MAX_RATE:.0f} Hz")
    return float(rate)


def step_to_rate(step: float) -> float:
    """Return the rate (Hz) of sampling at every step (s): 1 / step, made whole where it is but for rounding."""
    rate = 1.0 / step
    whole = round(rate)
    return float(whole) if whole and abs(rate - whole) <= 1e-9 * rate else rate


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
    """Return the ticks with start <= k / rate < end (s): k = 0 ... ceil(end rate) - 1 where start is 0."""
    first, stop = find_first_tick(start, rate), find_first_tick(end, rate)
    return Ticks(np.arange(first, stop, dtype=np.int64), rate)


def count_samples(duration: float, rate: float) -> int:
    """Return how many samples a run of `duration` (s) has."""
    return find_first_tick(duration, rate)
