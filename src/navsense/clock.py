"""Clocks: what a sensor's time stamps are off by, as a function of the run, the clock and the time.

The stamp of a sample at true time t is formed at the border as ``epoch + t + error``. The error of a clock is::

    error(t) = saturate(turn_on + drift(t) + jitter)            without precision
    error(t) = quantise(t + that, precision) - t                with it: the clock shows multiples of its precision

`turn_on` and `drift` are the clock's own: drawn from streams keyed by the clock, the drift a Gauss-Markov process on
integer nodes 1 ms apart and linear between them, so every sensor on the clock reads the same curve and removing one
leaves the others as they were. `jitter` is reading noise, ``mean + stddev w``, drawn for each stamp from a stream of
the sensor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from navsense.compiled import kernel
from navsense.errors import ClockError, Where
from navsense.noise.channel import Noise
from navsense.noise.channels import Channels
from navsense.noise.gauss_markov import decay, drive, step
from navsense.noise.quantise import quantise
from navsense.noise.saturate import saturate
from navsense.noise.white import white
from navsense.series import LONGEST_TIME
from navsense.streams import BLOCK, Draws, Process
from navsense.typing import FloatArray, IntArray, Times

NODES_PER_SECOND = 1000.0
"""Nodes of a clock's drift: 1 ms apart, whatever the sensors' rates."""

SHORTEST_CORRELATION = 0.1
"""Seconds: from here on the drift between nodes has its variance to half a percent."""

_CHANNEL = "clock"


@dataclass(frozen=True)
class Clock:
    """One clock: its full name `model::link::clock`, its noise in seconds, and where it was declared."""

    name: str
    noise: Noise
    where: Where | None = None

    def __post_init__(self) -> None:
        """Refuse a drift that is gone before its next node."""
        tau = self.noise.dynamic_bias_correlation_time
        if self.noise.drifts and tau < SHORTEST_CORRELATION:
            raise ClockError(
                f"dynamic_bias_correlation_time of clock {self.name}",
                tau,
                allowed=f"must be at least {SHORTEST_CORRELATION} s: a clock's drift lives on nodes 1 ms apart",
                remedy="what is faster is jitter: give it as stddev",
                where=self.where,
            )


@kernel
def _follow(
    time: Times, start: int, node: IntArray, ends: FloatArray, phi: float, q: float, draws: FloatArray, out: FloatArray
) -> int:
    """Write the drift at time[start:] until the draws are used up; return the sample that could not be reached.

    node = [index of the left node, draws used]; ends = [drift at the left node, drift at the right node].
    """
    count: int = time.shape[0]
    for i in range(start, count):
        place = time[i] * NODES_PER_SECOND
        left = math.floor(place)
        while node[0] < left:
            if node[1] == draws.shape[0]:
                return i
            ends[0] = ends[1]
            ends[1] = step(ends[1], phi, q, draws[node[1]])
            node[0] += 1
            node[1] += 1
        out[i] = ends[0] + (place - left) * (ends[1] - ends[0])
    return count


@kernel
def _read(time: Times, constant: float, sheet: FloatArray, draws: FloatArray, out: FloatArray) -> None:
    """Turn the drift in out (n,) into the error of each stamp; sheet = mean, stddev, minimum, maximum, precision."""
    mean, stddev, minimum, maximum, precision = sheet[0], sheet[1], sheet[2], sheet[3], sheet[4]
    for i in range(time.shape[0]):
        w = draws[i] if stddev > 0.0 else 0.0
        error = saturate(constant + out[i] + white(mean, stddev, w), minimum, maximum)
        if precision > 0.0:
            error = quantise(time[i] + error, precision) - time[i]
        out[i] = error


class Curve:
    """The turn-on and drift of one clock in one run, read forwards: what every sensor on it has in common."""

    def __init__(self, clock: Clock, seed: int, run: int) -> None:
        """Draw the clock's turn-on error and the two nodes around t = 0."""
        noise = clock.noise
        channel = Channels((_CHANNEL,), (noise,))
        own = tuple(process for process in channel.processes if process.name != "white")
        self._draws = Draws(own, seed, (run, "clock", clock.name))
        state = channel.init(self._draws.initial)
        self.constant = float(state.turn_on[0])
        self._drifts = noise.drifts
        if not self._drifts:
            return
        dt, sigma, tau = 1.0 / NODES_PER_SECOND, noise.dynamic_bias_stddev, noise.dynamic_bias_correlation_time
        self._phi, self._q = decay(dt, tau), drive(dt, sigma, tau)
        self._buffer = np.empty(0)
        self._node = np.array([-1, 0], dtype=np.int64)
        self._ends = np.array([0.0, float(state.drift[0])])

    def drift(self, time: Times) -> FloatArray:
        """Return the drift (n,) s at `time` (n,) s, which never goes back, not even between calls."""
        out = np.zeros(time.shape[0])
        if not self._drifts or not time.shape[0]:
            return out
        if math.floor(time[0] * NODES_PER_SECOND) < self._node[0]:
            raise ClockError("time", float(time[0]), allowed="must not go back", remedy="open a new curve")
        done = _follow(time, 0, self._node, self._ends, self._phi, self._q, self._buffer, out)
        while done < time.shape[0]:
            ahead = math.floor(time[-1] * NODES_PER_SECOND) - int(self._node[0])
            self._buffer = self._draws.take(min(max(ahead, 256), BLOCK))[0].copy()
            self._node[1] = 0
            done = _follow(time, done, self._node, self._ends, self._phi, self._q, self._buffer, out)
        return out


class Stamps:
    """The stamp errors of one sensor in one run: the curve of its clock plus its own reading jitter."""

    def __init__(self, clock: Clock | None, sensor: str, seed: int, run: int, *, ahead: int = 0) -> None:
        """Open the clock's curve and the sensor's jitter; None is global time, whose error is zero."""
        self._curve = Curve(clock, seed, run) if clock else None
        noise = clock.noise if clock else Noise()
        jitter = (Process(_CHANNEL, "jitter"),) if noise.stddev > 0.0 else ()
        self._draws = Draws(jitter, seed, (run, "stamp", sensor), ahead=ahead if jitter else 0)
        self._sheet = np.array([noise.mean, noise.stddev, noise.minimum, noise.maximum, noise.precision])
        self._jitters = bool(jitter)

    def errors(self, time: Times) -> FloatArray:
        """Return the error (n,) s of the stamps of samples at `time` (n,) s, which never goes back."""
        if self._curve is None:
            return np.zeros(time.shape[0])
        out = self._curve.drift(time)
        draws = self._draws.take(time.shape[0])[0] if self._jitters else out
        _read(time, self._curve.constant, self._sheet, draws, out)
        return out


def error(clock: Clock, time: Times, *, seed: int, run: int = 0) -> FloatArray:
    """Return a clock's own error (n,) s at non-decreasing instants `time` (n,) s: turn-on and drift, no jitter.

    Raises `ClockError` for instants that are negative, not finite or go back.
    """
    curve = Curve(clock, seed, run)
    return curve.constant + curve.drift(checked_instants(time))


def checked_instants(time: Times) -> Times:
    """Return instants (n,) s; raise `ClockError` unless they are finite, not negative, and never go back."""
    instants: Times = np.asarray(time, dtype=np.float64)
    if instants.ndim != 1:
        raise ClockError("instants", f"shape {instants.shape}", allowed="must be (n,)")
    sound = np.isfinite(instants) & (instants >= 0.0) & (instants < LONGEST_TIME)
    if not sound.all():
        allowed = f"must be from 0 to {LONGEST_TIME:g} s"
        raise ClockError("instant (s)", float(instants[~sound][0]), allowed=allowed)
    if (np.diff(instants) < 0.0).any():
        raise ClockError("instants", "go back", allowed="must not go back")
    return instants
