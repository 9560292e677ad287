"""Discipline: synchronisation of a clock to a reference such as NTP or the pulse per second of a receiver.

    m = e(t_n) + mean + stddev w       offset measured at t_n = n interval, n = 1, 2, ...; e is the clock's error
    if |m| > step_threshold:           e is stepped by -m at t_n; the frequency correction is unchanged
    otherwise:                         f_n = f_(n-1) - integral m / interval
                                       u_n = f_n - proportional m / interval, clamped to +- slew_rate
    the clock is slewed at the fractional frequency u_n until t_(n+1)

While u_n is clamped, f is constant (no wind-up). Only polls before `until` (rounded to a millisecond) are used; from
then on the reference is lost (holdover). The slew of the last poll ends at the time of the next poll. After that the
clock runs at its own frequency plus the last correction f. The measured error includes the turn-on bias and the dynamic
bias of the clock's `Noise`, but not the jitter.

The loop is an alpha-beta filter with alpha = `proportional` and beta = `integral`. It is stable for 0 < alpha < 2 and
0 <= beta < 4 - 2 alpha. Without steps and clamping, the settled error just before a poll has the mean ``-mean`` and the
variance::

    ((2 alpha^2 + 2 beta + alpha beta) stddev^2 + 2 q_1 interval) / (alpha (4 - 2 alpha - beta))

with white measurement noise and white FM of q_1 = h_0 / 2. If beta > 0, a constant frequency offset causes no error.

Source: the defaults are those of the documentation of ntpd (step at 128 ms, slew at 500 ppm, polls of 64 s). The tests
derive the variance from the matrix of the loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from navsense.clock._nodes import NODE_INTERVAL, NODE_RATE, parabola
from navsense.core.errors import ClockError
from navsense.core.field_metadata import NON_NEGATIVE, in_file
from navsense.core.kernels import kernel
from navsense.core.random_streams import Draws, RandomProcess, StreamKey
from navsense.core.readings import LONGEST_TIME
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray
from navsense.core.validation import check_limits, validate_types

_LIMIT = in_file(minimum=0.0, may_be_infinite=True)

_MEAN, _STDDEV, _THRESHOLD, _SLEW, _PROPORTIONAL, _INTEGRAL = range(6)
_SHIFT, _RATE, _FREQUENCY, _SINCE = range(4)


@dataclass(frozen=True)
class Discipline:
    """The specification of a discipline. The module docstring has the loop.

    interval: time between polls (s), an integer number of milliseconds.
    step_threshold: s, infinite for a clock that is never stepped.
    slew_rate: largest slew (fraction).
    proportional, integral: gains.
    mean, stddev: error of the measured offset (s).
    until: time at which the reference is lost (s).

    Raises `ClockError` for an invalid value and for gains with which the loop is not stable.

    >>> ntp = ns.clock.Discipline(interval=16.0, stddev=100e-6)
    >>> clock = ns.clock.Clock("auv::hull::computer", oscillator=ns.clock.Oscillator(frequency=20e-6), discipline=ntp)
    >>> error = ns.clock.compute_error(clock, np.array([15.0, 900.0]), seed=1)
    >>> bool(abs(error[0]) > abs(error[1]))  # the loop finds the frequency of the oscillator
    True
    """

    interval: float = 64.0
    step_threshold: float = field(default=0.128, metadata=_LIMIT)
    slew_rate: float = field(default=500e-6, metadata=NON_NEGATIVE)
    proportional: float = 0.5
    integral: float = field(default=0.1, metadata=NON_NEGATIVE)
    mean: float = 0.0
    stddev: float = field(default=0.0, metadata=NON_NEGATIVE)
    until: float = field(default=math.inf, metadata=_LIMIT)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        validate_types(self, error=ClockError)
        check_limits(self, error=ClockError)
        nodes = self.interval * NODE_RATE
        if self.interval > LONGEST_TIME:
            allowed = f"must be at most {LONGEST_TIME:g} s"
            raise ClockError("interval", self.interval, allowed=allowed, field="interval")
        if nodes < 1.0 or abs(nodes - round(nodes)) > 1e-9 * nodes:
            allowed = "must be a whole number of milliseconds, at least one"
            raise ClockError("interval", self.interval, allowed=allowed, field="interval")
        if not 0.0 < self.proportional < 2.0:
            allowed = "must be between 0 and 2: the loop is unstable"
            raise ClockError("proportional", self.proportional, allowed=allowed, field="proportional")
        if self.integral >= 4.0 - 2.0 * self.proportional:
            allowed = f"must be below 4 - 2 proportional = {4.0 - 2.0 * self.proportional:g}: the loop is unstable"
            raise ClockError("integral", self.integral, allowed=allowed, field="integral")


@kernel
def steer(
    nodes: FloatArray,
    first: int,
    polynomial: FloatArray,
    interval: int,
    last_poll: float,
    settings: FloatArray,
    draws: FloatArray,
    state: FloatArray,
    before: FloatArray,
    after: FloatArray,
) -> None:
    """Write the corrected error before and after the nodes (n,) from `first` on, without the oscillator's polynomial.

    polynomial: offset, frequency, ageing.
    last_poll: last node with a poll.
    draws: one normal per poll.
    state: shift (s) and rate of the correction at its last change, frequency correction, node of that change.
    """
    polls, limit = 0, settings[_SLEW]
    for i in range(nodes.shape[0]):
        k = first + i
        shift = state[_SHIFT] + state[_RATE] * ((float(k) - state[_SINCE]) * NODE_INTERVAL)
        before[i] = nodes[i] + shift
        if k % interval == 0:
            state[_RATE] = state[_FREQUENCY]
            if k <= last_poll:
                error = before[i] + parabola(float(k) * NODE_INTERVAL, polynomial[0], polynomial[1], polynomial[2])
                measured = error + settings[_MEAN] + settings[_STDDEV] * draws[polls]
                polls += 1
                if abs(measured) > settings[_THRESHOLD]:
                    shift -= measured
                else:
                    offset_rate = measured / (float(interval) * NODE_INTERVAL)
                    frequency = state[_FREQUENCY] - settings[_INTEGRAL] * offset_rate
                    rate = frequency - settings[_PROPORTIONAL] * offset_rate
                    if abs(rate) <= limit:
                        state[_FREQUENCY] = frequency
                    state[_RATE] = min(max(rate, -limit), limit)
            state[_SHIFT], state[_SINCE] = shift, float(k)
        after[i] = nodes[i] + shift


class ClockSteering:
    """The discipline of one clock in one run, computed forwards node by node."""

    def __init__(self, discipline: Discipline, seed: int, key: StreamKey) -> None:
        """Start at node 0 without a correction."""
        self._draws = Draws((RandomProcess("discipline", "measured"),), seed, key)
        self._interval = round(discipline.interval * NODE_RATE)
        self._last_poll = round(min(discipline.until * NODE_RATE, 2.0**62)) - 1
        limits = (discipline.mean, discipline.stddev, discipline.step_threshold, discipline.slew_rate)
        self._settings = np.array([*limits, discipline.proportional, discipline.integral])
        self._state = np.zeros(4)

    def advance(
        self, first: int, nodes: FloatArray, polynomial: FloatArray, before: FloatArray, after: FloatArray
    ) -> None:
        """Write the error (n,) s before and after the nodes from `first` on; `nodes` (n,) is the uncorrected error."""
        start, end = first - 1, first - 1 + nodes.size
        polls = min(end, self._last_poll) // self._interval - min(start, self._last_poll) // self._interval
        draws = self._draws.take(polls)[0]
        settings = (self._interval, self._last_poll, self._settings)
        steer(nodes, first, polynomial, *settings, draws, self._state, before, after)
