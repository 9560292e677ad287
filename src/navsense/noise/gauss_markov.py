"""First-order Gauss-Markov process, exact for any step and stationary from the first sample.

    b_k = phi b_(k-1) + q v_k,   phi = exp(-dt / tau),   q = sigma sqrt(tau / 2) sqrt(1 - exp(-2 dt / tau))

`sigma` is the driving density (unit per root second): the stationary deviation is ``sigma sqrt(tau / 2)``. The variance
goes through `expm1`, so that a step of a microsecond under a correlation time of an hour loses no digit.
Source: Maybeck 1979, Stochastic Models, Estimation and Control 1, eq. 4-114; facts of Gazebo's dynamic bias.
"""

from __future__ import annotations

import math

from navsense.kernels import kernel


@kernel
def stationary_stddev(sigma: float, tau: float) -> float:
    """Return the stationary deviation of driving density sigma (unit per root second) and correlation time tau (s)."""
    return sigma * math.sqrt(0.5 * tau)


@kernel
def decay_factor(dt: float, tau: float) -> float:
    """Return phi for a step dt (s)."""
    return math.exp(-dt / tau)


@kernel
def step_stddev(dt: float, sigma: float, tau: float) -> float:
    """Return q, the deviation that a step dt (s) adds."""
    return sigma * math.sqrt(-0.5 * tau * math.expm1(-2.0 * dt / tau))


@kernel
def gauss_markov_step(b: float, phi: float, q: float, v: float) -> float:
    """Return the next value."""
    return phi * b + q * v
