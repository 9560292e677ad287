"""Oscillators: frequency offset, ageing, temperature and noise of a clock's oscillator.

    x(t) = x0 + integral of y           x time error of the clock (s), y fractional frequency
    y(t) = y0 + u + (D + v) t + a (T(t) - T0) + b (T(t) - T0)^2 + noise
    S_y(f) = h_0 + h_-1 / f + h_-2 / f^2                                  one-sided, without the ageing random walk

x0 is `offset`, y0 `frequency`, D `ageing`, a `temperature_linear`, b `temperature_quadratic` and T0
`turnover_temperature`. u and v are normals with the standard deviations `frequency_stddev` and `ageing_stddev`, drawn
once per run. The noise terms are::

    white FM              h_0    `white_frequency` (s)            Allan variance h_0 / (2 tau)
    flicker FM            h_-1   `flicker_frequency`              2 ln 2 h_-1
    random-walk FM        h_-2   `random_walk_frequency` (1/s)    (2 pi^2 / 3) h_-2 tau
    ageing random walk    q_3    `ageing_random_walk` (1/s^3)     Hadamard variance 11 q_3 tau^3 / 120

The Allan variance of the ageing random walk is not stationary. If a datasheet specifies the Allan deviation s at
averaging time tau: on the slope -1/2, h_0 = 2 tau s^2; on the floor, h_-1 = s^2 / (2 ln 2); on the slope +1/2,
h_-2 = 3 s^2 / (2 pi^2 tau). Two- and three-state clock models use q_1 = h_0 / 2 and q_2 = 2 pi^2 h_-2.

The simulation computes the phase at nodes dt = 1 ms apart. The states x (s), y (fraction) and d (1/s) advance exactly::

    x' = x + y dt + d dt^2 / 2 + dt (f + f') / 2 + e_x       f: flicker FM and temperature at both ends of the step
    y' = y + d dt + e_y
    d' = d + e_d

The covariance of (e_x, e_y, e_d) is that of the two- and three-state clock. It is the sum of three independent parts,
each written as its Cholesky factor::

    white FM         q_1 dt                  e_x = sqrt(q_1 dt) w
    random-walk FM   q_2 [dt^3/3  dt^2/2]    e_y = sqrt(q_2 dt) w_1
                         [dt^2/2  dt    ]    e_x = sqrt(q_2 dt) dt (w_1 / 2 + w_2 / sqrt(12))
    ageing           q_3 [dt^5/20 dt^4/8 dt^3/6]    e_d = sqrt(q_3 dt) w_1
    random walk          [dt^4/8  dt^3/3 dt^2/2]    e_y = sqrt(q_3 dt) dt (w_1 / 2 + w_2 / sqrt(12))
                         [dt^3/6  dt^2/2 dt    ]    e_x = sqrt(q_3 dt) dt^2 (w_1 / 6 + w_2 / sqrt(48) + w_3 / sqrt(720))

Flicker FM is the flicker noise of `noise.terms` with B = sqrt(pi h_-1). The trapezoidal integral changes the density of
its fastest process (22 ms) by (dt / tau)^2 / 12 = 2e-4.

Source: IEEE Std 1139-2008; NIST SP 1065 (2008); Zucca and Tavella 2005, IEEE UFFC 52(2) 289-296.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from navsense.clock._nodes import NODE_INTERVAL, NODE_RATE
from navsense.core.errors import ClockError
from navsense.core.field_metadata import NON_NEGATIVE
from navsense.core.kernels import kernel
from navsense.core.random_streams import Draws, RandomProcess, StreamKey, find_first_rows, split_initial_draws
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, IntArray, Times
from navsense.core.validation import check_limits
from navsense.noise.specification import ROOM_TEMPERATURE
from navsense.noise.terms import add_flicker, make_flicker_components, write_coefficients

DAY, MONTH, YEAR = 86400.0, 30.0 * 86400.0, 365.25 * 86400.0
"""Seconds. A month of a datasheet has 30 days."""

FLICKER_BAND = (0.1, 1e5)
"""Averaging times (s) between which the floor of flicker FM is flat to 2 percent."""


@runtime_checkable
class TemperatureSignal(Protocol):
    """A temperature as a function of time, such as `navsense.environment.signal.Signal`.

    >>> isinstance(ns.environment.Signal((0.0, 600.0), (290.0, 300.0)), ns.clock.TemperatureSignal)
    True
    """

    def at(self, time: Times) -> FloatArray:
        """Return the temperature (n,) K at times (n,) s."""
        ...


@dataclass(frozen=True)
class Oscillator:
    """The specification of an oscillator. The default has no errors. The module docstring has the model.

    offset: s.
    frequency, frequency_stddev: fractions.
    ageing, ageing_stddev: 1/s. `per_day`, `per_month` and `per_year` convert the values of a datasheet.
    white_frequency: h_0 (s); flicker_frequency: h_-1; random_walk_frequency: h_-2 (1/s).
    ageing_random_walk: q_3 (1/s^3).
    temperature_linear: 1/K; temperature_quadratic: 1/K^2; turnover_temperature: K.
    temperature: K, a number or a function of time.

    Raises `ClockError` for a value that is not finite, or is negative where only positive values are possible.

    >>> quartz = ns.clock.Oscillator(frequency_stddev=2e-6, ageing=ns.clock.per_year(1e-6), white_frequency=2e-19)
    >>> f"{quartz.allan_deviation(1.0):.2g}"
    '3.2e-10'
    >>> watch = ns.clock.Oscillator(temperature_quadratic=-0.03e-6, turnover_temperature=298.15)
    >>> f"{watch.temperature_shift(278.15):.2g}"  # at 5 degrees Celsius
    '-1.2e-05'
    """

    offset: float = 0.0
    frequency: float = 0.0
    frequency_stddev: float = field(default=0.0, metadata=NON_NEGATIVE)
    white_frequency: float = field(default=0.0, metadata=NON_NEGATIVE)
    flicker_frequency: float = field(default=0.0, metadata=NON_NEGATIVE)
    random_walk_frequency: float = field(default=0.0, metadata=NON_NEGATIVE)
    ageing: float = 0.0
    ageing_stddev: float = field(default=0.0, metadata=NON_NEGATIVE)
    ageing_random_walk: float = field(default=0.0, metadata=NON_NEGATIVE)
    temperature_linear: float = 0.0
    temperature_quadratic: float = 0.0
    turnover_temperature: float = field(default=ROOM_TEMPERATURE, metadata=NON_NEGATIVE)
    temperature: float | TemperatureSignal = field(default=ROOM_TEMPERATURE, metadata=NON_NEGATIVE)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        is_constant = isinstance(self.temperature, int | float)
        check_limits(self, skip=() if is_constant else ("temperature",), error=ClockError)
        if not (is_constant or isinstance(self.temperature, TemperatureSignal)):
            allowed = "must be a number (K) or a signal"
            raise ClockError("temperature", self.temperature, allowed=allowed, field="temperature")

    def allan_deviation(self, tau: float) -> float:
        """Return the Allan deviation of power-law noise and constant ageing at averaging time tau (s).

        The ageing random walk is not included: its Allan variance grows with the length of the record.
        """
        variance = self.white_frequency / (2.0 * tau) + 2.0 * math.log(2.0) * self.flicker_frequency
        variance += 2.0 / 3.0 * math.pi**2 * self.random_walk_frequency * tau
        return math.sqrt(variance + (self.ageing**2 + self.ageing_stddev**2) * tau**2 / 2.0)

    def temperature_shift(self, temperature: float) -> float:
        """Return the fractional frequency that `temperature` (K) adds."""
        difference = temperature - self.turnover_temperature
        return difference * (self.temperature_linear + self.temperature_quadratic * difference)


def per_day(change: float) -> float:
    """Return an ageing (1/s) from the change of the fractional frequency per day.

    >>> ns.clock.Oscillator(ageing=ns.clock.per_day(1e-9)).ageing * 86400.0
    1e-09
    """
    return change / DAY


def per_month(change: float) -> float:
    """Return an ageing (1/s) from the change of the fractional frequency per month of 30 days.

    >>> f"{ns.clock.per_month(9e-10) * 30 * 86400.0:.2g}"
    '9e-10'
    """
    return change / MONTH


def per_year(change: float) -> float:
    """Return an ageing (1/s) from the change of the fractional frequency per year.

    >>> f"{ns.clock.per_year(3e-6):.2g}"
    '9.5e-14'
    """
    return change / YEAR


_CHANNEL = "oscillator"
_WHITE, _WALK, _AGEING, _FLICKER = "white_frequency", "random_walk_frequency", "ageing_walk", "flicker_frequency"
_HALF, _TWELFTH, _SIXTH = 1.0 / 2.0, 1.0 / math.sqrt(12.0), 1.0 / 6.0
_FORTY_EIGHTH, _LAST = 1.0 / math.sqrt(48.0), 1.0 / math.sqrt(720.0)


@kernel
def integrate(
    dt: float,
    frequency: FloatArray,
    draws: FloatArray,
    rows: IntArray,
    density: FloatArray,
    state: FloatArray,
    out: FloatArray,
) -> None:
    """Add the phase (s) at the next nodes, dt (s) apart, to out (n,); state = [x, y, d] is updated to the last node.

    frequency (n + 1,): fractional frequency of flicker FM and temperature, from the previous node on.
    rows (3,): first row of draws of white FM, random-walk FM and ageing random walk, -1 if not active.
    density (3,): sqrt(q dt) of the same three.
    """
    x, y, d = state[0], state[1], state[2]
    for i in range(out.shape[0]):
        e_x, e_y, e_d = 0.0, 0.0, 0.0
        if rows[0] >= 0:
            e_x = density[0] * draws[rows[0], i]
        if rows[1] >= 0:
            w_1, w_2 = draws[rows[1], i], draws[rows[1] + 1, i]
            e_y = density[1] * w_1
            e_x += density[1] * dt * (_HALF * w_1 + _TWELFTH * w_2)
        if rows[2] >= 0:
            w_1, w_2, w_3 = draws[rows[2], i], draws[rows[2] + 1, i], draws[rows[2] + 2, i]
            e_d = density[2] * w_1
            e_y += density[2] * dt * (_HALF * w_1 + _TWELFTH * w_2)
            e_x += density[2] * dt * dt * (_SIXTH * w_1 + _FORTY_EIGHTH * w_2 + _LAST * w_3)
        x += dt * (y + 0.5 * dt * d) + 0.5 * dt * (frequency[i] + frequency[i + 1]) + e_x
        y += dt * d + e_y
        d += e_d
        out[i] += x
    state[0], state[1], state[2] = x, y, d


@kernel
def add_temperature_shift(
    linear: float, quadratic: float, turnover: float, temperature: FloatArray, out: FloatArray
) -> None:
    """Add the fractional frequency at a temperature (n,) K to out (n,)."""
    for i in range(out.shape[0]):
        difference = temperature[i] - turnover
        out[i] += difference * (linear + quadratic * difference)


def list_processes(oscillator: Oscillator) -> tuple[RandomProcess, ...]:
    """Return the random processes of the active noise terms."""
    count = make_flicker_components(0.0, *FLICKER_BAND)[0].size
    all_processes = (
        (oscillator.frequency_stddev, RandomProcess(_CHANNEL, "frequency", initial=1, per_tick=0)),
        (oscillator.ageing_stddev, RandomProcess(_CHANNEL, "ageing", initial=1, per_tick=0)),
        (oscillator.white_frequency, RandomProcess(_CHANNEL, _WHITE)),
        (oscillator.random_walk_frequency, RandomProcess(_CHANNEL, _WALK, per_tick=2)),
        (oscillator.ageing_random_walk, RandomProcess(_CHANNEL, _AGEING, per_tick=3)),
        (oscillator.flicker_frequency, RandomProcess(_CHANNEL, _FLICKER, initial=count, per_tick=count)),
    )
    return tuple(process for size, process in all_processes if size > 0.0)


class OscillatorPhase:
    """The phase of one oscillator in one run, computed forwards node by node.

    polynomial: offset (s), frequency and ageing (1/s) of this run, including a constant temperature.
    varies: true if there is noise or a varying temperature.
    """

    def __init__(self, oscillator: Oscillator, seed: int, key: StreamKey) -> None:
        """Start at node 0."""
        processes = list_processes(oscillator)
        self._draws = Draws(processes, seed, key)
        initial = split_initial_draws(processes, self._draws.initial)
        self._oscillator = oscillator
        frequency, ageing = oscillator.frequency, oscillator.ageing
        if (_CHANNEL, "frequency") in initial:
            frequency += oscillator.frequency_stddev * float(initial[_CHANNEL, "frequency"][0])
        if (_CHANNEL, "ageing") in initial:
            ageing += oscillator.ageing_stddev * float(initial[_CHANNEL, "ageing"][0])
        self._temperature: TemperatureSignal | None = None
        if isinstance(oscillator.temperature, int | float):
            frequency += oscillator.temperature_shift(oscillator.temperature)
        elif oscillator.temperature_linear != 0.0 or oscillator.temperature_quadratic != 0.0:
            self._temperature = oscillator.temperature
        self.polynomial = (oscillator.offset, frequency, ageing)
        self.varies = self._draws.rows > 0 or self._temperature is not None
        rows = find_first_rows(processes)
        self._rows = np.array([rows.get((_CHANNEL, name), -1) for name in (_WHITE, _WALK, _AGEING)], dtype=np.int64)
        self._density = np.array([math.sqrt(q * NODE_INTERVAL) for q in _compute_intensities(oscillator)])
        self._state = np.zeros(3)
        self._modes, self._phi, self._q = _init_flicker(oscillator, initial.get((_CHANNEL, _FLICKER)))
        self._flicker_row = rows.get((_CHANNEL, _FLICKER), 0)
        self._frequency = np.zeros(1)
        for mode in self._modes:
            self._frequency[0] += mode
        self._add_temperature_shift(0, self._frequency)

    def advance(self, first: int, out: FloatArray) -> None:
        """Add the phase (s) at the nodes from `first` on to out (n,). They follow the nodes of the previous call."""
        draws = self._draws.take(out.size)
        frequency = np.zeros(out.size + 1)
        frequency[0] = self._frequency[-1]
        row = self._flicker_row
        add_flicker(self._phi, self._q, draws[row : row + self._phi.size], self._modes, frequency[1:])
        self._add_temperature_shift(first, frequency[1:])
        integrate(NODE_INTERVAL, frequency, draws, self._rows, self._density, self._state, out)
        self._frequency = frequency

    def _add_temperature_shift(self, first: int, out: FloatArray) -> None:
        if self._temperature is not None:
            nodes = np.arange(first, first + out.size) / NODE_RATE
            spec = self._oscillator
            coefficients = (spec.temperature_linear, spec.temperature_quadratic, spec.turnover_temperature)
            add_temperature_shift(*coefficients, self._temperature.at(nodes), out)


def _compute_intensities(oscillator: Oscillator) -> tuple[float, float, float]:
    """Return q_1 (s), q_2 (1/s) and q_3 (1/s^3)."""
    walk = 2.0 * math.pi**2 * oscillator.random_walk_frequency
    return (oscillator.white_frequency / 2.0, walk, oscillator.ageing_random_walk)


def _init_flicker(oscillator: Oscillator, draws: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the modes of flicker FM at node 0 and phi and q of a step; empty arrays without flicker FM."""
    if draws is None:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    tau, deviation = make_flicker_components(math.sqrt(math.pi * oscillator.flicker_frequency), *FLICKER_BAND)
    phi, q = np.empty(tau.size), np.empty(tau.size)
    write_coefficients(NODE_INTERVAL, tau, deviation, phi, q)
    return deviation * draws, phi, q
