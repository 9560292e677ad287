"""Clocks: what a sensor's time stamps are off by, as a function of the run, the clock and the time.

The stamp of a sample at true time t is formed at the border as ``epoch + t + error``. The error of a clock is::

    error(t) = saturate(turn_on + drift(t) + x(t) + correction(t) + jitter)     without precision
    error(t) = quantise(t + that, precision) - t                                with it: it shows multiples of it

`turn_on` and `drift` are those of the clock's `Noise`, x is its `Oscillator`'s phase and `correction` its
`Discipline`'s. All four are the clock's own: drawn from streams keyed by the clock, on integer nodes 1 ms apart and
linear between them (what is a polynomial of time is exact), so every sensor on the clock reads the same curve and
removing one leaves the others as they were. `jitter` is reading noise, ``mean + stddev w``, drawn for each stamp from a
stream of the sensor. The corrections follow the clock's own error; limits, precision and jitter are the reading's.
"""

from navsense.clock.base import Clock
from navsense.clock.discipline import Discipline
from navsense.clock.grades import GRADES, OscillatorGrade, get_oscillator
from navsense.clock.latency import ArrivalQueue, Latency
from navsense.clock.oscillator import Oscillator, TemperatureSignal, per_day, per_month, per_year
from navsense.clock.readings import CLOCK_RATE, ClockReadings
from navsense.clock.realisation import ClockRealisation, check_instants, compute_error
from navsense.clock.stamps import Stamps

__all__ = [
    "CLOCK_RATE",
    "GRADES",
    "ArrivalQueue",
    "Clock",
    "ClockReadings",
    "ClockRealisation",
    "Discipline",
    "Latency",
    "Oscillator",
    "OscillatorGrade",
    "Stamps",
    "TemperatureSignal",
    "check_instants",
    "compute_error",
    "get_oscillator",
    "per_day",
    "per_month",
    "per_year",
]
