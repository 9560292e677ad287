"""Oscillators: the frequency of what a clock counts, as its data sheet gives it.

    x(t) = x0 + integral of y           x the error of the clock (s), y its fractional frequency
    y(t) = y0 + u + (D + v) t + a (T(t) - T0) + b (T(t) - T0)^2 + noise
    S_y(f) = h_0 + h_-1 / f + h_-2 / f^2                                  one-sided, noise without its ageing walk

`offset` x0, `frequency` y0, `ageing` D; u and v normals of deviations `frequency_stddev` and `ageing_stddev`, drawn
once for each run; a `temperature_linear`, b `temperature_quadratic`, T0 `turnover_temperature`. The noise is

    white FM         h_0    `white_frequency` (s)            Allan variance h_0 / (2 tau)
    flicker FM       h_-1   `flicker_frequency`              2 ln 2 h_-1
    random-walk FM   h_-2   `random_walk_frequency` (1/s)    (2 pi^2 / 3) h_-2 tau
    ageing's walk    q_3    `ageing_random_walk` (1/s^3)     none: it grows; Hadamard variance 11 q_3 tau^3 / 120

A data sheet that gives the Allan deviation s at averaging time tau instead: on the slope -1/2, h_0 = 2 tau s^2; on the
floor, h_-1 = s^2 / (2 ln 2); on the slope +1/2, h_-2 = 3 s^2 / (2 pi^2 tau). Two- and three-state clock models write
q_1 = h_0 / 2 and q_2 = 2 pi^2 h_-2.

Source: IEEE Std 1139-2008; NIST SP 1065 (2008); Zucca and Tavella 2005, IEEE UFFC 52(2) 289-296.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Protocol, runtime_checkable

from navsense.errors import ClockError
from navsense.noise.channel import ROOM_TEMPERATURE
from navsense.typing import FloatArray, Times
from navsense.validation import MAX_MAGNITUDE

DAY, MONTH, YEAR = 86400.0, 30.0 * 86400.0, 365.25 * 86400.0
"""Seconds; a data sheet's month has 30 days."""

FLICKER_BAND = (0.1, 1e5)
"""Seconds: averaging times between which the floor of flicker FM is flat to 2 percent."""

NON_NEGATIVE_FIELDS = frozenset(
    """frequency_stddev ageing_stddev white_frequency flicker_frequency random_walk_frequency ageing_random_walk
    temperature turnover_temperature""".split()
)
"""Fields of `Oscillator` that are deviations, spectral coefficients or temperatures."""


@runtime_checkable
class TemperatureSignal(Protocol):
    """A temperature as a function of time, as `navsense.environment.signal.Signal` is one."""

    def at(self, time: Times) -> FloatArray:
        """Return the temperature (n,) K at instants (n,) s."""
        ...


@dataclass(frozen=True)
class Oscillator:
    """One oscillator's data sheet, every field neutral by default; the model stands at the head of this file.

    offset (s), frequency, frequency_stddev (fractions), ageing, ageing_stddev (fraction a second; `per_day`,
    `per_month`, `per_year` convert a data sheet's), white_frequency h_0 (s), flicker_frequency h_-1,
    random_walk_frequency h_-2 (1/s), ageing_random_walk q_3 (1/s^3), temperature_linear (1/K), temperature_quadratic
    (1/K^2), turnover_temperature (K), temperature (K, a number or a function of time).

    Raises `ClockError` for a value that is not finite, or is negative where a deviation or coefficient stands.
    """

    offset: float = 0.0
    frequency: float = 0.0
    frequency_stddev: float = 0.0
    white_frequency: float = 0.0
    flicker_frequency: float = 0.0
    random_walk_frequency: float = 0.0
    ageing: float = 0.0
    ageing_stddev: float = 0.0
    ageing_random_walk: float = 0.0
    temperature_linear: float = 0.0
    temperature_quadratic: float = 0.0
    turnover_temperature: float = ROOM_TEMPERATURE
    temperature: float | TemperatureSignal = ROOM_TEMPERATURE

    def __post_init__(self) -> None:
        """Refuse what no oscillator can have."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float):
                check_number(field.name, value, minimum=0.0 if field.name in NON_NEGATIVE_FIELDS else -math.inf)
            elif field.name != "temperature":
                raise ClockError(field.name, value, allowed="must be a number")
            elif not isinstance(value, TemperatureSignal):
                raise ClockError(field.name, value, allowed="must be a number (K) or a signal")

    def allan_deviation(self, tau: float) -> float:
        """Return the Allan deviation at averaging time tau (s): power-law noise and steady ageing, at one temperature.

        The walk of the ageing is not in it: its Allan variance grows with the length of the record.
        """
        noise = self.white_frequency / (2.0 * tau) + 2.0 * math.log(2.0) * self.flicker_frequency
        noise += 2.0 / 3.0 * math.pi**2 * self.random_walk_frequency * tau
        return math.sqrt(noise + (self.ageing**2 + self.ageing_stddev**2) * tau**2 / 2.0)

    def temperature_shift(self, temperature: float) -> float:
        """Return the fractional frequency that `temperature` (K) adds."""
        warmth = temperature - self.turnover_temperature
        return warmth * (self.temperature_linear + self.temperature_quadratic * warmth)


def check_number(what: str, value: float, *, minimum: float = -math.inf) -> None:
    """Raise `ClockError` unless the value is finite, of a size that squares, and at least `least`."""
    if not -math.inf < value < math.inf:
        raise ClockError(what, value, allowed="must be a finite number")
    if abs(value) > MAX_MAGNITUDE:
        raise ClockError(what, value, allowed=f"must be of a size below {MAX_MAGNITUDE:g}")
    if value < minimum:
        raise ClockError(what, value, allowed=f"must be >= {minimum:g}")


def per_day(change: float) -> float:
    """Return an ageing (1/s) from the change of the fractional frequency in a day."""
    return change / DAY


def per_month(change: float) -> float:
    """Return an ageing (1/s) from the change of the fractional frequency in a month of 30 days."""
    return change / MONTH


def per_year(change: float) -> float:
    """Return an ageing (1/s) from the change of the fractional frequency in a year."""
    return change / YEAR
