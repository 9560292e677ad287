"""Readings of a clock at any instant, not only at the samples of a sensor.

    at a sample, t = k / rate           the error of the stamp, to the last bit
    between samples                     saturate(curve(t) + mean + stddev w(t)), then quantised, as a stamp is

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
from navsense.clock.curve import Curve, checked_instants
from navsense.clock.stamps import Stamps, add_jitter, limit_and_quantise
from navsense.streams import BLOCK, draw_normals, first_state
from navsense.ticks import MOST_TICKS, Ticks
from navsense.typing import FloatArray, IntArray, Times

CURVE_MEMORY = 10.0
"""Length (s) of the clock's curve that a reader keeps before its latest instant."""

CLOCK_RATE = 1.0
"""Rate (Hz) of the samples of a clock without a sensor; a monotonic clock is bisected between them."""


class ClockReadings:
    """The error of one clock for one reader: a sensor with samples at `rate` (Hz), or the clock itself.

    Queries at increasing instants are fast. An instant more than `CURVE_MEMORY` seconds before the latest one restarts
    the curve at t = 0.
    """

    def __init__(self, clock: Clock | None, name: str, seed: int, run: int, rate: float) -> None:
        """Store the arguments. `name` is the name of the reader, such as a sensor. `clock` None is global time."""
        self._clock = clock or Clock(name)
        self._name, self._seed, self._run, self._rate = name, seed, run, rate
        self._key = first_state(seed, (run, "reading", name))
        self._curve_start, self._first = math.inf, int(MOST_TICKS)  # the first query starts both
        self._curve: Curve
        self._reader: Stamps
        self._stamps = np.empty(0)

    def errors(self, time: Times) -> FloatArray:
        """Return the error (n,) s at instants `time` (n,) s, in any order. Raises `ClockError` for an invalid one."""
        order = np.argsort(time, kind="stable")
        instants = checked_instants(time[order])
        out = np.empty(instants.size)
        out[order] = self._sorted_errors(instants)
        return out

    def _sorted_errors(self, time: Times) -> FloatArray:
        """Return the error (n,) s at non-decreasing instants."""
        before = self._ticks_before(time)
        is_sample = before / self._rate == time
        if not self._clock.monotonic:
            out = self._draw(time)
            if self._clock.noise.stddev > 0.0:
                out[is_sample] = self._stamp_errors(before[is_sample])
            return out
        out = np.empty(time.size)
        out[is_sample] = self._stamp_errors(before[is_sample])
        out[~is_sample] = self._errors_between_samples(time[~is_sample], before[~is_sample])
        return out

    def _ticks_before(self, time: Times) -> IntArray:
        """Return the last tick k (n,) with k / rate <= t."""
        k = np.floor(time * self._rate).astype(np.int64)
        k += (k + 1) / self._rate <= time
        k -= k / self._rate > time
        return k

    def _errors_between_samples(self, time: Times, before: IntArray) -> FloatArray:
        """Return the error (n,) s of a monotonic clock between the samples `before` (n,) and the next samples."""
        ticks = np.unique(np.concatenate((before, before + 1)))
        readings = ticks / self._rate + self._stamp_errors(ticks)
        first = np.searchsorted(ticks, before)
        paths = [_bisect(t, k / self._rate, (k + 1) / self._rate) for t, k in zip(time, before.tolist(), strict=True)]
        instants = np.concatenate((np.empty(0), *paths))
        order = np.argsort(instants, kind="stable")
        drawn = np.empty(instants.size)
        drawn[order] = instants[order] + self._draw(instants[order])
        out, place = np.empty(time.size), 0
        for i, path in enumerate(paths):
            low, high = readings[first[i]], readings[first[i] + 1]
            for middle in path:
                reading = min(max(drawn[place], low), high)
                low, high = (reading, high) if time[i] > middle else (low, reading)
                place += 1
            out[i] = reading - time[i]
        return out

    def _draw(self, time: Times) -> FloatArray:
        """Return the error (n,) s at non-decreasing instants between samples, without the monotonic rule."""
        if not time.size:
            return np.empty(0)
        if self._curve_start > time[0]:
            self._curve, self._curve_start = Curve(self._clock, self._seed, self._run), 0.0
        out = self._curve.beside().drift(time)
        self._curve_start = max(self._curve_start, float(time[-1]) - CURVE_MEMORY)
        self._curve.drift_at(self._curve_start)
        noise = self._clock.noise
        draws = draw_normals(self._key, time.view(np.uint64)) if noise.stddev > 0.0 else np.zeros(time.size)
        add_jitter(self._curve.constant, noise.mean, noise.stddev, draws, out)
        limit_and_quantise(noise, time, out)
        return out

    def _stamp_errors(self, index: IntArray) -> FloatArray:
        """Return the stamp errors (n,) s of samples `index` (n,), which does not decrease."""
        out, done = np.empty(index.size), 0
        if index.size and index[0] < self._first:
            self._reader, self._first = Stamps(self._clock, self._name, self._seed, self._run), 0
            self._stamps = np.empty(0)
        while done < index.size:
            following = self._first + self._stamps.size
            known = int(np.searchsorted(index, following))
            out[done:known] = self._stamps[index[done:known] - self._first]
            done = known
            if done < index.size:
                count = min(BLOCK, int(index[-1]) + 1 - following)
                new = self._reader.errors(Ticks(np.arange(following, following + count), self._rate).time)
                kept = self._stamps[-BLOCK:]
                self._first, self._stamps = following - kept.size, np.concatenate((kept, new))
        return out


def _bisect(time: float, a: float, b: float) -> list[float]:
    """Return the midpoints of [a, b] and of the halves that contain `time`, down to `time` itself."""
    found = [0.5 * (a + b)]
    while found[-1] != time:
        a, b = (found[-1], b) if time > found[-1] else (a, found[-1])
        middle = 0.5 * (a + b)
        found.append(middle if a < middle < b else time)
    return found
