"""The stamps of one sensor: the realisation of its clock plus reading jitter.

    clock(t) = turn_on + dynamic(t) + x(t) + correction(t)  the realisation
    e = saturate(clock(t) + mean + stddev w)                w drawn for each stamp, from a stream of the sensor
    e = quantise(t + e, precision) - t                      with precision: the clock shows multiples of it
    stamp = max(t + e, previous stamp + 1 ns)               monotonic clock, in integer nanoseconds

All sensors on a clock share its realisation. The jitter and the monotonic rule are separate for each sensor.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.clock.base import Clock
from navsense.clock.realisation import ClockRealisation
from navsense.core.kernels import kernel
from navsense.core.random_streams import Draws, RandomProcess
from navsense.core.readings import NANOSECONDS
from navsense.core.typing import FloatArray, Times
from navsense.noise.specification import NO_NOISE, Noise
from navsense.noise.terms import quantise, saturate, white_noise

ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE = 2e-9, 1e-15
"""Two times that differ by more than this (s, and relative) never round to the same nanosecond."""


@kernel
def add_jitter(constant: float, mean: float, stddev: float, draws: FloatArray, out: FloatArray) -> None:
    """Add the constant and the jitter to out (n,) s."""
    for i in range(out.shape[0]):
        out[i] = (constant + out[i]) + white_noise(mean, stddev, draws[i])


@kernel
def _saturate(minimum: float, maximum: float, out: FloatArray) -> None:
    """Saturate the errors (n,) s at their limits."""
    for i in range(out.shape[0]):
        out[i] = saturate(out[i], minimum, maximum)


@kernel
def _quantise(time: Times, precision: float, out: FloatArray) -> None:
    """Change the errors (n,) s so that the clock shows multiples of `precision` (s)."""
    for i in range(out.shape[0]):
        out[i] = quantise(time[i] + out[i], precision) - time[i]


@kernel
def _make_increasing(time: Times, previous_stamp: float, out: FloatArray) -> float:
    """Change the errors (n,) s so that the stamps increase, starting after `previous_stamp` (s); return the last stamp.

    The step is one nanosecond, or the resolution of a double if that is larger.
    """
    for i in range(out.shape[0]):
        stamp = time[i] + out[i]
        # Above the tolerance, the nanoseconds differ.
        if stamp - previous_stamp < ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * abs(stamp):
            last, step = np.rint(previous_stamp * NANOSECONDS), 1.0
            while np.rint(stamp * NANOSECONDS) <= last:
                out[i] = (last + step) / NANOSECONDS - time[i]
                stamp, step = time[i] + out[i], 2.0 * step
        previous_stamp = stamp
    return previous_stamp


def saturate_and_quantise(noise: Noise, time: Times, out: FloatArray) -> None:
    """Saturate the errors (n,) s of readings at `time` (n,) s to their limits, and quantise the readings."""
    if noise.minimum > -math.inf or noise.maximum < math.inf:
        _saturate(noise.minimum, noise.maximum, out)
    if noise.precision > 0.0:
        _quantise(time, noise.precision, out)


class SensorClock:
    """The clock of one sensor in one run: the realisation of the clock plus the jitter of its stamps.

    >>> clock = ns.clock.Clock("auv::hull::computer", ns.Noise(bias_mean=0.002))
    >>> ns.clock.SensorClock(clock, "imu", seed=1, run=0).compute_errors(np.array([0.0, 0.01]))  # s
    array([0.002, 0.002])
    """

    def __init__(
        self,
        clock: Clock | None,
        sensor: str,
        seed: int,
        run: int,
        *,
        prefetch: int = 0,
        realisation: ClockRealisation | None = None,
    ) -> None:
        """Open the stream of the jitter. A clock of None is true time, without an error.

        prefetch: number of draws to prefetch.
        realisation: shared realisation of the clock; None creates one.
        """
        self._realisation = realisation or (ClockRealisation(clock, seed, run) if clock else None)
        self._noise = clock.noise if clock else NO_NOISE
        self._monotonic = clock.monotonic if clock else False
        self._last_stamp = -math.inf
        jitter = (RandomProcess("clock", "jitter"),) if self._noise.stddev > 0.0 else ()
        self._draws = Draws(jitter, seed, (run, "stamp", sensor), prefetch=prefetch if jitter else 0)

    def compute_errors(self, time: Times) -> FloatArray:
        """Return the clock errors (n,) s of samples at non-decreasing times (n,) s."""
        if self._realisation is None:
            return np.zeros(time.shape[0])
        noise, out = self._noise, self._sample_realisation(self._realisation, time)
        saturate_and_quantise(noise, time, out)
        if self._monotonic:
            self._last_stamp = float(_make_increasing(time, self._last_stamp, out))
        return out

    def _sample_realisation(self, realisation: ClockRealisation, time: Times) -> FloatArray:
        """Return the error of the clock plus jitter (n,) s."""
        mean, stddev, count = float(self._noise.mean), float(self._noise.stddev), time.shape[0]
        if count == 1 or not realisation.varies:
            offset = (
                realisation.constant + realisation.varying_error_at(float(time[0]))
                if realisation.varies
                else realisation.constant
            )
            if stddev > 0.0:
                return self._draws.take_scaled(count, offset, mean, stddev)
            out = np.empty(count)
            out.fill(offset + mean)
            return out
        out = realisation.varying_error(time)
        if stddev == 0.0:
            out += realisation.constant
            out += mean
        else:
            add_jitter(realisation.constant, mean, stddev, self._draws.take(count)[0], out)
        return out
