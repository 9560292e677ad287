"""Clocks: the error of a sensor's time stamps as a function of the run, the clock and the time.

The stamp of a sample at true time t is ``epoch + t + error``. The error of a clock is::

    e(t) = saturate(turn_on + dynamic(t) + x(t) + correction(t) + jitter)
    error(t) = e(t)                                         without precision
    error(t) = quantise(t + e(t), precision) - t            with precision: the clock shows multiples of it

`turn_on` and `dynamic` are terms of the clock's `Noise`. x is the phase error of its `Oscillator`, and `correction` the
correction by its `Discipline`. These four terms are common to all sensors on the clock: the keys of their random
streams contain the name of the clock. So removing a sensor changes no other sensor. The terms are computed on integer
nodes 1 ms apart and are linear between nodes; polynomials of time are exact.

`jitter` is reading noise, ``mean + stddev w``, drawn for each stamp from a stream of the sensor. The discipline
measures the error of the clock before limits, precision and jitter.
"""

from navsense.clock.base import Clock, ClockStep
from navsense.clock.discipline import Discipline
from navsense.clock.grades import GRADES, OscillatorGrade, get_oscillator
from navsense.clock.latency import ArrivalTimes, Latency
from navsense.clock.oscillator import Oscillator, TemperatureSignal, per_day, per_month, per_year
from navsense.clock.readings import CLOCK_RATE, ClockReadings
from navsense.clock.realisation import ClockRealisation, check_instants, compute_error
from navsense.clock.stamps import SensorClock

__all__ = [
    "CLOCK_RATE",
    "GRADES",
    "ArrivalTimes",
    "Clock",
    "ClockReadings",
    "ClockRealisation",
    "ClockStep",
    "Discipline",
    "Latency",
    "Oscillator",
    "OscillatorGrade",
    "SensorClock",
    "TemperatureSignal",
    "check_instants",
    "compute_error",
    "get_oscillator",
    "per_day",
    "per_month",
    "per_year",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
