"""Discipline: what keeps a clock near a reference, as NTP or a receiver's pulse each second does.

    m = e(t_n) + mean + stddev w                       measured at t_n = n interval, n = 1, 2, ...; e the clock's error
    |m| > step_threshold:   e is stepped by -m at t_n; the frequency stays as corrected
    otherwise:              f_n = f_(n-1) - integral m / interval
                            u_n = f_n - proportional m / interval, held within +- slew_rate
    the clock is slewed at the fractional frequency u_n until t_(n+1)

While u_n is held at its limit, f stays (no wind-up). Polls before `until`, to the nearest millisecond, count: from then
on the reference is lost. The slew of the last one goes on to its end, the instant of the next; from there the clock
runs on at its own frequency and f, the last correction of it. What is measured is the clock's own error, so a turn-on
error and a drift of its `Noise` are corrected as the oscillator's are; jitter is not.

The loop is that of an alpha-beta filter, alpha = `proportional`, beta = `integral`; it is stable for 0 < alpha < 2 and
0 <= beta < 4 - 2 alpha. Where it neither steps nor is limited, the error just before a poll has, once settled, the mean
``-mean`` and the variance::

    ((2 alpha^2 + 2 beta + alpha beta) stddev^2 + 2 q_1 interval) / (alpha (4 - 2 alpha - beta))

under white measurement noise and white FM of q_1 = h_0 / 2; a constant frequency leaves nothing if beta > 0.

Source: the defaults are those of ntpd's documentation (step at 128 ms, slew at 500 ppm, polls of 64 s); the variance is
the alpha-beta filter's, derived in the tests from the loop's own matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from navsense.clock._nodes import NODE_INTERVAL, NODE_RATE, parabola
from navsense.clock.oscillator import check_number
from navsense.errors import ClockError
from navsense.field_metadata import NON_NEGATIVE, get_file_fields, in_file
from navsense.kernels import kernel
from navsense.random_streams import Draws, RandomProcess, StreamKey
from navsense.series import LONGEST_TIME
from navsense.typing import FloatArray
from navsense.validation import validate_types

_LIMIT = in_file(minimum=0.0, may_be_infinite=True)

_MEAN, _STDDEV, _THRESHOLD, _SLEW, _PROPORTIONAL, _INTEGRAL = range(6)
_SHIFT, _RATE, _FREQUENCY, _SINCE = range(4)


@dataclass(frozen=True)
class Discipline:
    """How a clock is corrected; the loop stands at the head of this file.

    interval (s) between polls, whole milliseconds; step_threshold (s), infinite for a clock that is never stepped;
    slew_rate (fraction); proportional, integral (gains); mean, stddev (s) of the measured offset's error; until (s),
    when the reference is lost.

    Raises `ClockError` for a value that is not possible, or gains of a loop that is not stable.
    """

    interval: float = 64.0
    step_threshold: float = field(default=0.128, metadata=_LIMIT)
    slew_rate: float = field(default=500e-6, metadata=NON_NEGATIVE)
    proportional: float = 0.5
    integral: float = field(default=0.1, metadata=NON_NEGATIVE)
    mean: float = 0.0
    stddev: float = field(default=0.0, metadata=NON_NEGATIVE)
    until: float = field(default=math.inf, metadata=_LIMIT)

    def __post_init__(self) -> None:
        """Refuse what is no discipline."""
        validate_types(self, error=ClockError)
        for name, file in get_file_fields(Discipline).items():
            value = getattr(self, name)
            if not file.may_be_infinite or value != math.inf:
                check_number(name, value, minimum=file.minimum)
        nodes = self.interval * NODE_RATE
        if self.interval > LONGEST_TIME:
            raise ClockError("interval", self.interval, allowed=f"must be at most {LONGEST_TIME:g} s")
        if nodes < 1.0 or abs(nodes - round(nodes)) > 1e-9 * nodes:
            raise ClockError("interval", self.interval, allowed="must be a whole number of milliseconds, at least one")
        if not 0.0 < self.proportional < 2.0:
            raise ClockError("proportional", self.proportional, allowed="must be between 0 and 2, or it swings up")
        if self.integral >= 4.0 - 2.0 * self.proportional:
            allowed = f"must be below 4 - 2 proportional = {4.0 - 2.0 * self.proportional:g}, or the loop swings up"
            raise ClockError("integral", self.integral, allowed=allowed)


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
    """Write the corrected error before and after the nodes (n,) from `first` on, without the line of the oscillator.

    line = offset, frequency, ageing; last_poll is the last node at which a poll counts; state = [shift (s) and rate of
    the correction at its last change, frequency correction, node of that change]; draws holds a normal for each poll.
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
                    a_second = measured / (float(interval) * NODE_INTERVAL)
                    frequency = state[_FREQUENCY] - settings[_INTEGRAL] * a_second
                    rate = frequency - settings[_PROPORTIONAL] * a_second
                    if abs(rate) <= limit:
                        state[_FREQUENCY] = frequency
                    state[_RATE] = min(max(rate, -limit), limit)
            state[_SHIFT], state[_SINCE] = shift, float(k)
        after[i] = nodes[i] + shift


class ClockSteering:
    """The discipline of one clock in one run, read forwards node by node."""

    def __init__(self, discipline: Discipline, seed: int, key: StreamKey) -> None:
        """Open the stream of the measured offset, and stand at node 0, where nothing is corrected."""
        self._draws = Draws((RandomProcess("discipline", "measured"),), seed, key)
        self._interval = round(discipline.interval * NODE_RATE)
        self._last_poll = round(min(discipline.until * NODE_RATE, 2.0**62)) - 1
        sizes = (discipline.mean, discipline.stddev, discipline.step_threshold, discipline.slew_rate)
        self._settings = np.array([*sizes, discipline.proportional, discipline.integral])
        self._state = np.zeros(4)

    def advance(
        self, first: int, nodes: FloatArray, polynomial: FloatArray, before: FloatArray, after: FloatArray
    ) -> None:
        """Write the error (n,) s before and after the nodes from `first` on; nodes (n,) is the error left alone."""
        done, goal = first - 1, first - 1 + nodes.size
        polls = min(goal, self._last_poll) // self._interval - min(done, self._last_poll) // self._interval
        draws = self._draws.take(polls)[0]
        settings = (self._interval, self._last_poll, self._settings)
        steer(nodes, first, polynomial, *settings, draws, self._state, before, after)
