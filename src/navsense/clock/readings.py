"""Readings of a clock at any instant, not only at the samples of a sensor.

    at a sample, t = k / rate           the error of the stamp, to the last bit
    between samples                     saturate(clock(t) + mean + stddev w(t)), then quantised like a stamp

``w(t)`` is a standard normal that depends only on the seed, the run, the name of the reader and t. It advances no
random stream. A query at t therefore always returns the same value, and a query changes no stamp.

The readings of a monotonic clock do not decrease between samples either. Bisection ensures this: between two samples
at a and b, the reading at the midpoint is drawn and clamped to the readings at a and b. The half that contains t is
bisected in the same way, until the midpoint is t. The reading is then a non-decreasing function of t.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.clock.base import Clock
from navsense.clock.realisation import ClockRealisation, check_instants
from navsense.clock.stamps import SensorClock, add_jitter, saturate_and_quantise
from navsense.core.kernels import kernel
from navsense.core.random_streams import BLOCK_SAMPLES, draw_normals, make_initial_state
from navsense.core.readings import LONGEST_TIME
from navsense.core.ticks import MAX_TICKS, Ticks
from navsense.core.typing import FloatArray, IntArray, Times
from navsense.noise.terms import quantise, saturate, white_noise

REALISATION_MEMORY = 10.0
"""Length (s) of the clock's realisation that a reader keeps before its latest time."""

CLOCK_RATE = 1.0
"""Rate (Hz) of the samples of a clock without a sensor; a monotonic clock is bisected between them."""

STAMPS_AHEAD = 0.25
"""Length (s) of the stamps that are computed at once, about that of the clock's nodes."""


class ClockReadings:
    """The error of one clock for one reader: a sensor with samples at `rate` (Hz), or the clock itself.

    Queries at increasing times are fast. A time more than `REALISATION_MEMORY` seconds before the latest one restarts
    the realisation at t = 0.

    >>> clock = ns.clock.Clock("auv::hull::computer", oscillator=ns.clock.Oscillator(frequency=20e-6))
    >>> round(ns.clock.ClockReadings(clock, "logger", seed=1, run=0, rate=10.0).error(60.0), 6)  # s
    0.0012
    """

    def __init__(self, clock: Clock | None, name: str, seed: int, run: int, rate: float) -> None:
        """Store the arguments. `name` is the name of the reader, such as a sensor. `clock` None is true time."""
        self._clock = clock or Clock(name)
        self._name, self._seed, self._run, self._rate = name, seed, run, rate
        self._key = make_initial_state(seed, (run, "reading", name))
        self._has_stamps = self._clock.monotonic or self._clock.noise.stddev > 0.0
        self._realisation_start, self._first = math.inf, int(MAX_TICKS)  # the first query starts both
        self._realisation: ClockRealisation
        self._latest: ClockRealisation  # reader of the same realisation, at the latest query
        self._reader: SensorClock
        self._stamps = np.empty(0)

    def errors(self, time: Times) -> FloatArray:
        """Return the error (n,) s at instants `time` (n,) s, in any order. Raises `ClockError` for an invalid one."""
        order = np.argsort(time, kind="stable")
        instants = check_instants(time[order])
        out = np.empty(instants.size)
        out[order] = self._sorted_errors(instants)
        return out

    def error(self, time: float) -> float:
        """Return the error (s) at a time (s), the same bits as `errors`. Raises `ClockError` for an invalid one."""
        if not 0.0 <= time < LONGEST_TIME:
            check_instants(np.array([time]))
        if self._has_stamps:
            k = math.floor(time * self._rate)
            k += (k + 1) / self._rate <= time
            k -= k / self._rate > time
            if k / self._rate == time:
                return self._stamp_error(k)
            if self._clock.monotonic:
                return self._error_between(time, k, self._stamp_error(k), self._stamp_error(k + 1))
        return self._draw_one(time)

    def _sorted_errors(self, time: Times) -> FloatArray:
        """Return the error (n,) s at non-decreasing instants."""
        if not self._has_stamps:
            return self._draw(time)
        sample = self._ticks_before(time)
        is_sample = sample / self._rate == time
        out = np.empty(time.size) if self._clock.monotonic else self._draw(time)
        out[is_sample] = self._stamp_errors(sample[is_sample])
        if self._clock.monotonic:
            between = np.flatnonzero(~is_sample)
            ticks = np.unique(np.concatenate((sample[between], sample[between] + 1)))
            errors = dict(zip(ticks.tolist(), self._stamp_errors(ticks).tolist(), strict=True))
            for i, t, k in zip(between.tolist(), time[between].tolist(), sample[between].tolist(), strict=True):
                out[i] = self._error_between(t, k, errors[k], errors[k + 1])
        return out

    def _ticks_before(self, time: Times) -> IntArray:
        """Return the last tick k (n,) with k / rate <= t."""
        k = np.floor(time * self._rate).astype(np.int64)
        k += (k + 1) / self._rate <= time
        k -= k / self._rate > time
        return k

    def _error_between(self, time: float, k: int, low: float, high: float) -> float:
        """Return the error (s) of a monotonic clock at a time (s) between samples k and k + 1.

        low, high (s) are the errors of these samples.
        """
        a, b = k / self._rate, (k + 1) / self._rate
        midpoints = np.empty(count_midpoints(time, a, b))
        write_midpoints(time, a, b, midpoints)
        return float(descend(time, a, b, a + low, b + high, midpoints, self._draw(midpoints)))

    def _open_realisation(self, time: float) -> ClockRealisation:
        """Return a reader of the realisation at or before a time (s)."""
        if self._realisation_start > time:
            self._realisation, self._realisation_start = ClockRealisation(self._clock, self._seed, self._run), 0.0
            self._latest = self._realisation.copy()
        elif self._latest.has_passed(time):
            self._latest = self._realisation.copy()
        return self._latest

    def _trim_realisation(self, latest: float) -> None:
        """Free the realisation more than `REALISATION_MEMORY` before the latest time (s), in steps of a second."""
        if latest - REALISATION_MEMORY - self._realisation_start > 1.0:
            self._realisation_start = latest - REALISATION_MEMORY
            self._realisation.varying_error_at(self._realisation_start)

    def _draw(self, time: Times) -> FloatArray:
        """Return the error (n,) s at non-decreasing instants between samples, without the monotonic rule."""
        if not time.size:
            return np.empty(0)
        realisation, noise = self._open_realisation(float(time[0])), self._clock.noise
        out = realisation.varying_error(time)
        self._trim_realisation(float(time[-1]))
        draws = draw_normals(self._key, time.view(np.uint64)) if noise.stddev > 0.0 else np.zeros(time.size)
        add_jitter(realisation.constant, noise.mean, noise.stddev, draws, out)
        saturate_and_quantise(noise, time, out)
        return out

    def _draw_one(self, time: float) -> float:
        """Return the result of `_draw` for one time (s) with fewer arrays."""
        realisation, noise = self._open_realisation(time), self._clock.noise
        drift = realisation.varying_error_at(time)
        self._trim_realisation(time)
        draw = draw_normals(self._key, np.array([time]).view(np.uint64)).item() if noise.stddev > 0.0 else 0.0
        error = saturate(
            (realisation.constant + drift) + white_noise(noise.mean, noise.stddev, draw), noise.minimum, noise.maximum
        )
        return float(quantise(time + error, noise.precision) - time if noise.precision > 0.0 else error)

    def _stamp_error(self, k: int) -> float:
        """Return the stamp error (s) of sample k."""
        row = k - self._first
        if 0 <= row < self._stamps.size:
            return float(self._stamps[row])
        return float(self._stamp_errors(np.array([k]))[0])

    def _stamp_errors(self, index: IntArray) -> FloatArray:
        """Return the stamp errors (n,) s of samples `index` (n,), which does not decrease."""
        out, done = np.empty(index.size), 0
        if index.size and index[0] < self._first:
            self._reader, self._first = SensorClock(self._clock, self._name, self._seed, self._run), 0
            self._stamps = np.empty(0)
        while done < index.size:
            next_sample = self._first + self._stamps.size
            end = int(np.searchsorted(index, next_sample))
            out[done:end] = self._stamps[index[done:end] - self._first]
            done = end
            if done < index.size:
                count = min(BLOCK_SAMPLES, int(index[-1]) + 1 - next_sample + math.floor(STAMPS_AHEAD * self._rate))
                errors = self._reader.compute_errors(
                    Ticks(np.arange(next_sample, next_sample + count), self._rate).time
                )
                previous = self._stamps[-BLOCK_SAMPLES:]
                self._first, self._stamps = next_sample - previous.size, np.concatenate((previous, errors))
        return out


@kernel
def count_midpoints(time: float, a: float, b: float) -> int:
    """Return the number of midpoints of [a, b] and of the halves that contain `time`, down to `time` itself (s)."""
    count, middle = 1, 0.5 * (a + b)
    while middle != time:
        if time > middle:
            a = middle
        else:
            b = middle
        middle = 0.5 * (a + b)
        if not a < middle < b:
            middle = time
        count += 1
    return count


@kernel
def write_midpoints(time: float, a: float, b: float, out: Times) -> None:
    """Write the midpoints (n,) s that `count_midpoints` counts, in increasing order."""
    first, last, middle = 0, out.shape[0] - 1, 0.5 * (a + b)
    while first < last:
        if time > middle:
            out[first], a = middle, middle
            first += 1
        else:
            out[last], b = middle, middle
            last -= 1
        middle = 0.5 * (a + b)
        if not a < middle < b:
            middle = time
    out[first] = time


@kernel
def descend(time: float, a: float, b: float, low: float, high: float, midpoints: Times, errors: FloatArray) -> float:
    """Return the error (s) at `time` (s): each reading is clamped to the readings at the ends of its interval.

    low, high (s) are the readings at a and b; `errors` (n,) s are those drawn at the midpoints (n,) s.
    """
    first, last = 0, midpoints.shape[0] - 1
    while first < last:
        middle = 0.5 * (a + b)
        if time > middle:
            a, low = middle, min(max(middle + errors[first], low), high)
            first += 1
        else:
            b, high = middle, min(max(middle + errors[last], low), high)
            last -= 1
    reading: float = min(max(time + errors[first], low), high)
    return reading - time
