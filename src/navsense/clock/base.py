"""The specification of a clock."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from navsense.clock.discipline import Discipline
from navsense.clock.oscillator import Oscillator
from navsense.core.errors import ClockError, Where
from navsense.core.readings import LONGEST_TIME
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.validation import validate_types
from navsense.noise.specification import NO_NOISE, Noise

MIN_CORRELATION_TIME = 0.1
"""s. From this correlation time on, the variance of the dynamic bias between nodes is within half a percent."""

SUPPORTED_NOISE_FIELDS = frozenset(
    """mean stddev bias_mean bias_stddev dynamic_bias_stddev dynamic_bias_correlation_time precision minimum maximum
    classic""".split()
)
"""Fields of `Noise` that a clock supports: those of SDF."""


@dataclass(frozen=True)
class ClockStep:
    """A scheduled fault: from `start` to `end` (s, true time) the clock reads `size` (s) too much.

    No discipline corrects it.

    Raises `ClockError` for invalid times and a size that is not finite.

    >>> jump = ns.clock.ClockStep(start=60.0, end=90.0, size=1.0)
    >>> clock = ns.clock.Clock("auv::hull::computer", steps=(jump,))
    >>> ns.clock.compute_error(clock, np.array([59.0, 60.0, 90.0]), seed=1)
    array([0., 1., 0.])
    """

    start: float
    end: float = math.inf
    size: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        validate_types(self, "of a clock's step", error=ClockError)
        if not (math.isfinite(self.start) and self.end > self.start):
            allowed = "must be from a finite time to a later one"
            raise ClockError("times of a clock's step (s)", f"{self.start:g} to {self.end:g}", allowed=allowed)
        if not abs(self.size) < LONGEST_TIME:
            raise ClockError(
                "step of a clock (s)", self.size, allowed=f"must be of absolute value below {LONGEST_TIME:g}"
            )


@dataclass(frozen=True)
class Clock:
    """The specification of one clock.

    name: full name, `model::link::clock`.
    noise: noise in seconds. Only the fields `SUPPORTED_NOISE_FIELDS` are supported.
    oscillator, discipline: None if the clock has none.
    monotonic: each stamp of a sensor is at least one nanosecond after the previous stamp.
    where: location of the declaration in a file.
    steps: scheduled faults.

    Raises `ClockError` for a correlation time below `MIN_CORRELATION_TIME` and for noise that a clock does not support.

    >>> oscillator = ns.clock.Oscillator(frequency=20e-6)
    >>> clock = ns.clock.Clock("auv::hull::computer", ns.Noise(bias_mean=0.002), oscillator)
    >>> ns.clock.compute_error(clock, np.array([0.0, 60.0]), seed=1)  # s: 2 ms, and 1.2 ms more after a minute
    array([0.002 , 0.0032])
    """

    name: str
    noise: Noise = NO_NOISE
    oscillator: Oscillator | None = None
    discipline: Discipline | None = None
    monotonic: bool = False
    where: Where | None = None
    steps: tuple[ClockStep, ...] = ()

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        validate_types(self, f"of clock {self.name}", error=ClockError)
        tau = self.noise.dynamic_bias_correlation_time
        if self.noise.has_dynamic_bias and tau < MIN_CORRELATION_TIME:
            raise ClockError(
                f"dynamic_bias_correlation_time of clock {self.name}",
                tau,
                allowed=f"must be at least {MIN_CORRELATION_TIME} s: the dynamic bias is computed every 1 ms",
                remedy="give faster noise as stddev (jitter)",
                field="dynamic_bias_correlation_time",
                where=self.where,
            )
        for field in fields(Noise):
            value = getattr(self.noise, field.name)
            if field.name not in SUPPORTED_NOISE_FIELDS and value != field.default:
                raise ClockError(
                    f"{field.name} of clock {self.name}",
                    value,
                    allowed="is a field of sensor channels, not of clocks",
                    remedy="give the clock an oscillator",
                    field=field.name,
                    where=self.where,
                )
