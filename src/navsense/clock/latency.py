"""Latency: from the instant that a sample is about to its arrival, and the queue that keeps arrivals in order.

    latency_k = fixed + r_k          r_k lognormal of mean `mean` and standard deviation `stddev`, never negative
    arrival_k = max(t_k + latency_k, last_k)          of a sample that is sent
    arrival_k = max(t_k, last_k)                      of one that is not; last_k: that of the last one sent before

    r = exp(m + s w),   s^2 = ln(1 + (stddev / mean)^2),   m = ln(mean) - s^2 / 2

The time of validity is the sample's own t_k; the arrival is true time too, and not seen by the sensor's clock. A sample
that is held up holds up those behind it, as on one wire; one that is not sent holds up none. Source: the moments of the
lognormal distribution, NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.6.9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from navsense.clock.oscillator import check_number
from navsense.errors import ClockError
from navsense.field_metadata import NON_NEGATIVE, get_file_fields
from navsense.kernels import kernel
from navsense.random_streams import Draws, RandomProcess
from navsense.series import LONGEST_TIME
from navsense.typing import BoolArray, FloatArray, Times
from navsense.validation import validate_types

MAX_STDDEV_RATIO = 1e6
"""A deviation of the random part beyond so many of its means is a mistake: almost all of it is then far below them."""


@dataclass(frozen=True)
class Latency:
    """How long a sensor's samples are on their way: `fixed` (s), and a random part of `mean` and `stddev` (s).

    Raises `ClockError` for a value that is negative, not finite or longer than any run, a deviation without a mean, or
    one above `WIDEST` of it.
    """

    fixed: float = field(default=0.0, metadata=NON_NEGATIVE)
    mean: float = field(default=0.0, metadata=NON_NEGATIVE)
    stddev: float = field(default=0.0, metadata=NON_NEGATIVE)

    def __post_init__(self) -> None:
        """Refuse what no latency can be."""
        validate_types(self, error=ClockError)
        for name, file in get_file_fields(Latency).items():
            value = getattr(self, name)
            check_number(name, value, minimum=file.minimum)
            if value > LONGEST_TIME:
                raise ClockError(name, value, allowed=f"must be at most {LONGEST_TIME:g} s")
        if self.stddev > 0.0 and self.mean == 0.0:
            raise ClockError(
                "mean", 0.0, allowed="must be > 0 where stddev is", remedy="a latency that is never negative has a mean"
            )
        if self.stddev > MAX_STDDEV_RATIO * self.mean:
            raise ClockError(
                "stddev", self.stddev, allowed=f"must be at most {MAX_STDDEV_RATIO:g} times the mean, {self.mean:g} s"
            )


@kernel
def _write_arrivals(
    time: Times, sent: BoolArray, fixed: float, m: float, s: float, draws: FloatArray, last: float, out: FloatArray
) -> float:
    """Write the arrivals (n,) s of samples at time (n,) s; return the last one of a sample that was `sent` (n,)."""
    for i in range(time.shape[0]):
        due = time[i] + (fixed + math.exp(m + s * draws[i])) if sent[i] else time[i]
        out[i] = due if due > last else last  # noqa: FURB136 - as the equation says
        last = out[i] if sent[i] else last
    return last


class ArrivalQueue:
    """The arrivals of one sensor's samples in one run: stream (run, "latency", sensor, "latency", "random")."""

    def __init__(self, latency: Latency | None, sensor: str, seed: int, run: int, *, ahead: int = 0) -> None:
        """Open the sensor's stream; None is a latency of zero."""
        sheet = latency or Latency()
        self._latency, self._last = sheet, -math.inf
        random = (RandomProcess("latency", "random"),) if sheet.stddev > 0.0 else ()
        self._draws = Draws(random, seed, (run, "latency", sensor), prefetch=ahead if random else 0)
        if random:
            square = math.log1p((sheet.stddev / sheet.mean) ** 2)
            self._m, self._s = math.log(sheet.mean) - 0.5 * square, math.sqrt(square)

    def compute_arrivals(self, time: Times, sent: BoolArray) -> FloatArray:
        """Return when samples at `time` (n,) s arrive, (n,) s of true time, never before an earlier one that is `sent`.

        What is not `sent` (n,) has its own instant, or the last arrival before it where that is later.
        """
        sheet = self._latency
        if sheet.stddev == 0.0:
            return self._compute_constant(time, sent, sheet.fixed + sheet.mean)
        out = np.empty(time.shape[0])
        draws = self._draws.take(time.shape[0])[0]
        self._last = _write_arrivals(
            time, np.ascontiguousarray(sent), sheet.fixed, self._m, self._s, draws, self._last, out
        )
        return out

    def _compute_constant(self, time: Times, sent: BoolArray, delay: float) -> FloatArray:
        """Return what `of` does where every sample takes `delay` (s)."""
        due = time + delay
        if sent.all():
            self._last = float(due[-1]) if due.size else self._last
            return due
        due[~sent] = -math.inf
        latest = np.maximum.accumulate(np.concatenate(([self._last], due)))
        self._last = float(latest[-1])
        return np.maximum(latest[1:], time)
