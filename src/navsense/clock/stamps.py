"""The stamps of one sensor: the curve of its clock and its own reading of it.

    error = saturate(curve(t) + mean + stddev w)          w drawn for each stamp, from a stream of the sensor
    error = quantise(t + that, precision) - t             with precision: the clock shows multiples of it
    shown = max(t + that, shown before + 1 ns)            monotonic, shown in whole nanoseconds

The curve is that of every sensor on the clock; how it is read, and the order of the stamps, is the sensor's own.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.clock.base import Clock
from navsense.clock.realisation import ClockRealisation
from navsense.kernels import kernel
from navsense.noise.channel import NEUTRAL, Noise
from navsense.noise.terms import quantise, saturate, white_noise
from navsense.random_streams import Draws, RandomProcess
from navsense.series import NANOSECONDS
from navsense.typing import FloatArray, Times

ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE = 2e-9, 1e-15
"""Seconds, and a share of them, above which two instants are not shown as the same nanosecond."""


@kernel
def add_jitter(constant: float, mean: float, stddev: float, draws: FloatArray, out: FloatArray) -> None:
    """Add the constant and the jitter to out (n,) s."""
    for i in range(out.shape[0]):
        out[i] = (constant + out[i]) + white_noise(mean, stddev, draws[i])


@kernel
def _clamp(minimum: float, maximum: float, out: FloatArray) -> None:
    """Hold the errors (n,) s between their limits."""
    for i in range(out.shape[0]):
        out[i] = saturate(out[i], minimum, maximum)


@kernel
def _quantise(time: Times, precision: float, out: FloatArray) -> None:
    """Make the errors (n,) s such that the clock shows multiples of `precision` (s)."""
    for i in range(out.shape[0]):
        out[i] = quantise(time[i] + out[i], precision) - time[i]


@kernel
def _make_increasing(time: Times, before: float, out: FloatArray) -> float:
    """Make the errors (n,) s such that what is shown rises, from `before` (s) on; return what is shown last (s).

    By a nanosecond, or by the least that a double of so many seconds can hold.
    """
    for i in range(out.shape[0]):
        shown = time[i] + out[i]
        if shown - before < ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * abs(
            shown
        ):  # else the nanoseconds differ, and there is nothing to look at
            last, up = np.rint(before * NANOSECONDS), 1.0
            while np.rint(shown * NANOSECONDS) <= last:
                out[i] = (last + up) / NANOSECONDS - time[i]
                shown, up = time[i] + out[i], 2.0 * up
        before = shown
    return before


def limit_and_quantise(noise: Noise, time: Times, out: FloatArray) -> None:
    """Clamp the errors (n,) s of readings at `time` (n,) s to their limits, and quantise the readings."""
    if noise.minimum > -math.inf or noise.maximum < math.inf:
        _clamp(noise.minimum, noise.maximum, out)
    if noise.precision > 0.0:
        _quantise(time, noise.precision, out)


class Stamps:
    """The stamp errors of one sensor in one run: the curve of its clock plus its own reading jitter."""

    def __init__(
        self,
        clock: Clock | None,
        sensor: str,
        seed: int,
        run: int,
        *,
        ahead: int = 0,
        realisation: ClockRealisation | None = None,
    ) -> None:
        """Open the clock's curve, or read the one given, and the sensor's jitter.

        None is global time, whose error is zero.
        """
        self._realisation = realisation or (ClockRealisation(clock, seed, run) if clock else None)
        self._noise = clock.noise if clock else NEUTRAL
        self._monotonic = clock.monotonic if clock else False
        self._shown = -math.inf
        jitter = (RandomProcess("clock", "jitter"),) if self._noise.stddev > 0.0 else ()
        self._draws = Draws(jitter, seed, (run, "stamp", sensor), prefetch=ahead if jitter else 0)

    def errors(self, time: Times) -> FloatArray:
        """Return the error (n,) s of the stamps of samples at `time` (n,) s, which never goes back."""
        if self._realisation is None:
            return np.zeros(time.shape[0])
        noise, out = self._noise, self._sample_realisation(self._realisation, time)
        limit_and_quantise(noise, time, out)
        if self._monotonic:
            self._shown = float(_make_increasing(time, self._shown, out))
        return out

    def _sample_realisation(self, realisation: ClockRealisation, time: Times) -> FloatArray:
        """Return the curve and the jitter (n,) s."""
        mean, stddev, count = float(self._noise.mean), float(self._noise.stddev), time.shape[0]
        if count == 1 or not realisation.varies:
            value = (
                realisation.constant + realisation.varying_error_at(float(time[0]))
                if realisation.varies
                else realisation.constant
            )
            if stddev > 0.0:
                return self._draws.take_scaled(count, value, mean, stddev)
            out = np.empty(count)
            out.fill(value + mean)
            return out
        out = realisation.varying_error(time)
        if stddev == 0.0:
            out += realisation.constant
            out += mean
        else:
            add_jitter(realisation.constant, mean, stddev, self._draws.take(count)[0], out)
        return out
