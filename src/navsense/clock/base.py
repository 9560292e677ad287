"""The data sheet of a clock."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from navsense.clock.discipline import Discipline
from navsense.clock.oscillator import Oscillator
from navsense.errors import ClockError, Where
from navsense.noise.channel import NEUTRAL, Noise
from navsense.series import LONGEST_TIME
from navsense.validation import validate_types

MIN_CORRELATION_TIME = 0.1
"""Seconds: from here on the drift between nodes has its variance to half a percent."""

CLOCK_FIELDS = frozenset(
    """mean stddev bias_mean bias_stddev dynamic_bias_stddev dynamic_bias_correlation_time precision minimum maximum
    classic""".split()
)
"""Fields of `Noise` that a clock knows: SDF's."""


@dataclass(frozen=True)
class ClockStep:
    """A fault on purpose: from `start` to `end` (s, true time) a clock shows `size` (s) more, whoever corrects it.

    Raises `ClockError` for times that are none, and a size that is not finite.
    """

    start: float
    end: float = math.inf
    size: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no step."""
        validate_types(self, "of a clock's step", error=ClockError)
        if not (math.isfinite(self.start) and self.end > self.start):
            allowed = "must be from a finite time to a later one"
            raise ClockError("times of a clock's step (s)", (self.start, self.end), allowed=allowed)
        if not abs(self.size) < LONGEST_TIME:
            raise ClockError("step of a clock (s)", self.size, allowed=f"must be of a size below {LONGEST_TIME:g}")


@dataclass(frozen=True)
class Clock:
    """One clock: its full name `model::link::clock`, its noise in seconds, its oscillator, and who corrects it.

    With `monotonic`, the stamps of each sensor on it rise by at least a nanosecond: one that would not is set to a
    nanosecond above the one before. `where` is the place of its declaration, `steps` are scheduled faults.

    Raises `ClockError` for a drift that is gone before its next node, and for noise in terms that a clock has not.
    """

    name: str
    noise: Noise = NEUTRAL
    oscillator: Oscillator | None = None
    discipline: Discipline | None = None
    monotonic: bool = False
    where: Where | None = None
    steps: tuple[ClockStep, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no clock can have."""
        validate_types(self, f"of clock {self.name}", error=ClockError)
        tau = self.noise.dynamic_bias_correlation_time
        if self.noise.has_dynamic_bias and tau < MIN_CORRELATION_TIME:
            raise ClockError(
                f"dynamic_bias_correlation_time of clock {self.name}",
                tau,
                allowed=f"must be at least {MIN_CORRELATION_TIME} s: a clock's drift lives on nodes 1 ms apart",
                remedy="what is faster is jitter: give it as stddev",
                where=self.where,
            )
        for field in fields(Noise):
            value = getattr(self.noise, field.name)
            if field.name not in CLOCK_FIELDS and value != field.default:
                raise ClockError(
                    f"{field.name} of clock {self.name}",
                    value,
                    allowed="belongs to a sensor's channel, not to a clock",
                    remedy="give the clock an oscillator",
                    where=self.where,
                )
