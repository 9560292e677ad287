"""The nodes of a clock's error and the linear interpolation between them.

    t_k = k / 1000 s                                                      k = 0, 1, 2, ...
    e(t) = after_k + (1000 t - k) (before_(k+1) - after_k)                t_k <= t < t_(k+1)

`before` and `after` are the error just before and at a node. They differ if the clock is stepped at the node.
"""

from __future__ import annotations

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Times
from navsense.noise.terms import gauss_markov_step

NODE_RATE = 1000.0
"""Nodes per second, at any rate of the sensors."""

NODE_INTERVAL = 1.0 / NODE_RATE
"""Time between nodes (s)."""


@kernel
def parabola(t: float, offset: float, frequency: float, ageing: float) -> float:
    """Return x0 + y0 t + D t^2 / 2 (s) at t (s)."""
    return offset + t * (frequency + 0.5 * ageing * t)


@kernel
def write_gauss_markov(start: float, phi: float, q: float, draws: FloatArray, out: FloatArray) -> float:
    """Write a Gauss-Markov process at the nodes (n,) after one with the value `start`; return the last value."""
    for i in range(out.shape[0]):
        start = gauss_markov_step(start, phi, q, draws[i])
        out[i] = start
    return start


@kernel
def interpolate(time: Times, start: int, first: int, before: FloatArray, after: FloatArray, out: FloatArray) -> int:
    """Write the error at time[start:] until the first time outside the nodes; return its index, or the count.

    before, after (n + 1,): the error at the nodes from `first` on.
    """
    last: int = before.shape[0] - 1
    count: int = time.shape[0]
    for i in range(start, count):
        position = time[i] * NODE_RATE
        left = int(position)  # times are not negative
        if left < first or left - first >= last:
            return i
        k = np.uint64(left - first)  # an unsigned index skips the check for negative values
        out[i] = after[k] + (position - left) * (before[k + np.uint64(1)] - after[k])
    return count


@kernel
def add_parabola(time: Times, offset: float, frequency: float, ageing: float, out: FloatArray) -> None:
    """Add x0 + y0 t + D t^2 / 2 to out (n,) s."""
    for i in range(time.shape[0]):
        out[i] += parabola(time[i], offset, frequency, ageing)
