"""What one clock shows to one reader at any instant, not only at the instants of a sensor's samples.

    at a sample, t = k / rate           the error of the stamp, to the last bit
    between samples                     saturate(curve(t) + mean + stddev w(t)), then quantised, as a stamp is

``w(t)`` is a standard normal that depends on the seed, the run, the reader's name and t alone. It advances no stream.
The same question therefore has the same answer whenever it is asked, and asking changes no stamp.

The readings of a monotonic clock do not go back between samples either. Between two samples at a and b the reading at
the middle is drawn and held between the readings at a and b; then each half is divided in the same way, until the
middle is t. That makes the reading a non-decreasing function of t.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.clock.base import Clock
from navsense.clock.curve import Curve, checked_instants
from navsense.clock.stamps import Stamps, add_jitter, bound
from navsense.streams import BLOCK, first_state, normals_at
from navsense.ticks import MOST_TICKS, Ticks
from navsense.typing import FloatArray, IntArray, Times

KEPT = 10.0
"""Seconds of the clock's curve that a reader holds before its latest instant."""

CLOCK_RATE = 1.0
"""Rate (Hz) of the readings of a clock that no sensor reads: between them a monotonic clock is divided as above."""


class ClockReadings:
    """The error of one clock as one reader sees it: a sensor with samples at `rate` (Hz), or the clock alone.

    A later instant than the last is quick. An instant more than `KEPT` seconds earlier starts again from t = 0.
    """

    def __init__(self, clock: Clock | None, name: str, seed: int, run: int, rate: float) -> None:
        """Draw nothing yet. `name` is that of the sensor whose stamps these are; None is global time."""
        self._clock = clock or Clock(name)
        self._name, self._seed, self._run, self._rate = name, seed, run, rate
        self._key = first_state(seed, (run, "reading", name))
        self._at, self._first = math.inf, int(MOST_TICKS)  # the first question starts both
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
            out = self._drawn(time)
            if self._clock.noise.stddev > 0.0:
                out[is_sample] = self._stamped(before[is_sample])
            return out
        out = np.empty(time.size)
        out[is_sample] = self._stamped(before[is_sample])
        out[~is_sample] = self._held(time[~is_sample], before[~is_sample])
        return out

    def _ticks_before(self, time: Times) -> IntArray:
        """Return the last tick k (n,) with k / rate <= t."""
        k = np.floor(time * self._rate).astype(np.int64)
        k += (k + 1) / self._rate <= time
        k -= k / self._rate > time
        return k

    def _held(self, time: Times, before: IntArray) -> FloatArray:
        """Return the error (n,) s of a monotonic clock between the samples `before` (n,) and those that follow them."""
        ticks = np.unique(np.concatenate((before, before + 1)))
        shown = ticks / self._rate + self._stamped(ticks)
        first = np.searchsorted(ticks, before)
        paths = [_middles(t, k / self._rate, (k + 1) / self._rate) for t, k in zip(time, before.tolist(), strict=True)]
        instants = np.concatenate((np.empty(0), *paths))
        order = np.argsort(instants, kind="stable")
        drawn = np.empty(instants.size)
        drawn[order] = instants[order] + self._drawn(instants[order])
        out, place = np.empty(time.size), 0
        for i, path in enumerate(paths):
            low, high = shown[first[i]], shown[first[i] + 1]
            for middle in path:
                reading = min(max(drawn[place], low), high)
                low, high = (reading, high) if time[i] > middle else (low, reading)
                place += 1
            out[i] = reading - time[i]
        return out

    def _drawn(self, time: Times) -> FloatArray:
        """Return the error (n,) s of readings at non-decreasing instants between samples, before they are ordered."""
        if not time.size:
            return np.empty(0)
        if self._at > time[0]:
            self._curve, self._at = Curve(self._clock, self._seed, self._run), 0.0
        out = self._curve.beside().drift(time)
        self._at = max(self._at, float(time[-1]) - KEPT)
        self._curve.drift_at(self._at)
        noise = self._clock.noise
        draws = normals_at(self._key, time.view(np.uint64)) if noise.stddev > 0.0 else np.zeros(time.size)
        add_jitter(self._curve.constant, noise.mean, noise.stddev, draws, out)
        bound(noise, time, out)
        return out

    def _stamped(self, index: IntArray) -> FloatArray:
        """Return the errors (n,) s of the stamps of samples `index` (n,), which never goes back."""
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


def _middles(time: float, a: float, b: float) -> list[float]:
    """Return the middles of [a, b] and of the halves that hold `time`, down to `time` itself, which is between them."""
    found = [0.5 * (a + b)]
    while found[-1] != time:
        a, b = (found[-1], b) if time > found[-1] else (a, found[-1])
        middle = 0.5 * (a + b)
        found.append(middle if a < middle < b else time)
    return found
