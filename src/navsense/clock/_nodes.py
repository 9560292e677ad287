"""The nodes of a clock's error: where they are, and the straight lines between them.

    t_k = k / 1000 s                                                      k = 0, 1, 2, ...
    e(t) = after_k + (1000 t - k) (before_(k+1) - after_k)                t_k <= t < t_(k+1)

`before` and `after` are the error just before and at a node; they differ where the clock is stepped.
"""

from __future__ import annotations

import numpy as np

from navsense.kernels import kernel
from navsense.noise.terms import gauss_markov_step
from navsense.typing import FloatArray, Times

NODE_RATE = 1000.0
"""Nodes of a clock's error: 1 ms apart, whatever the sensors' rates."""

NODE_INTERVAL = 1.0 / NODE_RATE
"""Seconds from one node to the next."""


@kernel
def parabola(t: float, offset: float, frequency: float, ageing: float) -> float:
    """Return x0 + y0 t + D t^2 / 2 (s) at t (s)."""
    return offset + t * (frequency + 0.5 * ageing * t)


@kernel
def write_drift(start: float, phi: float, q: float, draws: FloatArray, out: FloatArray) -> float:
    """Write a Gauss-Markov process at the nodes (n,) that follow `start`; return it at the last."""
    for i in range(out.shape[0]):
        start = gauss_markov_step(start, phi, q, draws[i])
        out[i] = start
    return start


@kernel
def interpolate(time: Times, start: int, first: int, before: FloatArray, after: FloatArray, out: FloatArray) -> int:
    """Write the error at time[start:] while it lies between nodes; return the sample that does not, else their number.

    before, after (n + 1,) are the error at the nodes from `first` on.
    """
    last: int = before.shape[0] - 1
    count: int = time.shape[0]
    for i in range(start, count):
        place = time[i] * NODE_RATE
        left = int(place)  # no instant is negative
        if left < first or left - first >= last:
            return i
        k = np.uint64(left - first)  # an index whose sign nobody asks for
        out[i] = after[k] + (place - left) * (before[k + np.uint64(1)] - after[k])
    return count


@kernel
def add_parabola(time: Times, offset: float, frequency: float, ageing: float, out: FloatArray) -> None:
    """Add x0 + y0 t + D t^2 / 2 to out (n,) s."""
    for i in range(time.shape[0]):
        out[i] += parabola(time[i], offset, frequency, ageing)
