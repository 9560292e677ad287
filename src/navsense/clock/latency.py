"""Latency: the time from a sample to its arrival at the receiver.

    latency_k = fixed + r_k          r_k lognormal with mean `mean` and standard deviation `stddev`
    arrival_k = max(t_k + latency_k, previous_k)      for an emitted sample
    arrival_k = max(t_k, previous_k)                  for another sample

    r = exp(m + s w),   s^2 = ln(1 + (stddev / mean)^2),   m = ln(mean) - s^2 / 2

t_k is the time of the sample and previous_k the arrival of the last emitted sample before it. Both are true time: the
sensor's clock has no effect on arrivals. A late sample delays the samples behind it, as on a serial line. A sample that
is not emitted delays none. `simulation.live_run.LiveSensor` holds samples back until they arrive.

Source: the moments of the lognormal distribution, NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.6.9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from navsense.core.errors import ClockError
from navsense.core.field_metadata import NON_NEGATIVE
from navsense.core.kernels import kernel
from navsense.core.random_streams import Draws, RandomProcess
from navsense.core.readings import LONGEST_TIME
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import BoolArray, FloatArray, Times
from navsense.core.validation import check_limits, validate_types

MAX_STDDEV_RATIO = 1e6
"""Largest ratio of `stddev` to `mean`. Above it, nearly all samples are far below the mean."""


@dataclass(frozen=True)
class Latency:
    """The latency of a sensor's samples: `fixed` (s) plus a random part with `mean` and `stddev` (s).

    Raises `ClockError` for a value that is negative, not finite or longer than any run, a `stddev` without a `mean`,
    and a `stddev` above `MAX_STDDEV_RATIO` times the mean.

    >>> camera = ns.clock.Latency(fixed=0.02, mean=0.005, stddev=0.002)  # s: exposure, then a random delay
    >>> camera.fixed + camera.mean
    0.025
    """

    fixed: float = field(default=0.0, metadata=NON_NEGATIVE)
    mean: float = field(default=0.0, metadata=NON_NEGATIVE)
    stddev: float = field(default=0.0, metadata=NON_NEGATIVE)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        validate_types(self, error=ClockError)
        check_limits(self, error=ClockError)
        for name, value in vars(self).items():
            if value > LONGEST_TIME:
                raise ClockError(name, value, allowed=f"must be at most {LONGEST_TIME:g} s", field=name)
        if self.stddev > 0.0 and self.mean == 0.0:
            remedy = "give the mean of the random part in seconds"
            raise ClockError("mean", 0.0, allowed="must be > 0 if stddev is", remedy=remedy, field="mean")
        if self.stddev > MAX_STDDEV_RATIO * self.mean:
            allowed = f"must be at most {MAX_STDDEV_RATIO:g} times the mean, {self.mean:g} s"
            raise ClockError("stddev", self.stddev, allowed=allowed, field="stddev")


@kernel
def _write_arrivals(
    time: Times, emitted: BoolArray, fixed: float, m: float, s: float, draws: FloatArray, last: float, out: FloatArray
) -> float:
    """Write the arrivals (n,) s of samples at time (n,) s; return the arrival of the last `emitted` (n,) sample."""
    for i in range(time.shape[0]):
        due = time[i] + (fixed + math.exp(m + s * draws[i])) if emitted[i] else time[i]
        out[i] = due if due > last else last  # noqa: FURB136 - as in the module docstring
        last = out[i] if emitted[i] else last
    return last


class ArrivalTimes:
    """The arrivals of one sensor's samples in one run. Random stream: (run, "latency", sensor, "latency", "random").

    >>> arrivals = ns.clock.ArrivalTimes(ns.clock.Latency(fixed=0.05), "imu", seed=1, run=0)
    >>> arrivals.compute_arrivals(np.array([0.0, 0.1]), np.array([True, True]))
    array([0.05, 0.15])
    """

    def __init__(self, latency: Latency | None, sensor: str, seed: int, run: int, *, prefetch: int = 0) -> None:
        """Open the random stream. A latency of None is zero; `prefetch` is the number of draws to prefetch."""
        spec = latency or Latency()
        self._latency, self._last = spec, -math.inf
        random = (RandomProcess("latency", "random"),) if spec.stddev > 0.0 else ()
        self._draws = Draws(random, seed, (run, "latency", sensor), prefetch=prefetch if random else 0)
        if random:
            variance = math.log1p((spec.stddev / spec.mean) ** 2)
            self._m, self._s = math.log(spec.mean) - 0.5 * variance, math.sqrt(variance)

    def compute_arrivals(self, time: Times, emitted: BoolArray) -> FloatArray:
        """Return the arrivals (n,) s, true time, of samples at `time` (n,) s; `emitted` (n,) marks emitted samples.

        The arrival of another sample is its own time, or the previous arrival if that is later.
        """
        spec = self._latency
        if spec.stddev == 0.0:
            return self._compute_constant(time, emitted, spec.fixed + spec.mean)
        out = np.empty(time.shape[0])
        draws = self._draws.take(time.shape[0])[0]
        self._last = _write_arrivals(
            time, np.ascontiguousarray(emitted), spec.fixed, self._m, self._s, draws, self._last, out
        )
        return out

    def _compute_constant(self, time: Times, emitted: BoolArray, delay: float) -> FloatArray:
        """Return the arrivals (n,) s with a constant delay (s)."""
        due = time + delay
        if emitted.all():
            self._last = float(due[-1]) if due.size else self._last
            return due
        due[~emitted] = -math.inf
        latest = np.maximum.accumulate(np.concatenate(([self._last], due)))
        self._last = float(latest[-1])
        return np.maximum(latest[1:], time)
