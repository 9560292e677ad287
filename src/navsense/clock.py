"""Clocks: what a sensor's time stamps are off by, as a function of the run, the clock and the time.

The stamp of a sample at true time t is formed at the border as ``epoch + t + error``. The error of a clock is::

    error(t) = turn_on + drift(t) + jitter                      without precision
    error(t) = quantise(t + turn_on + drift(t) + jitter) - t    with it: the clock shows multiples of its precision

`turn_on` and `drift` are the clock's own: drawn from streams keyed by the clock, the drift on integer nodes 1 ms
apart and linear between them, so every sensor on the clock reads the same curve. `jitter` is reading noise, mean plus
standard deviation, drawn for each stamp from a stream of the sensor.
"""

from __future__ import annotations

from dataclasses import dataclass

from navsense.errors import Where
from navsense.noise.channel import Noise


@dataclass(frozen=True)
class Clock:
    """One clock: its full name `model::link::clock`, its noise in seconds, and where it was declared."""

    name: str
    noise: Noise
    where: Where | None = None
