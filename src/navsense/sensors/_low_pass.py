"""Bandwidth: a Butterworth low-pass of second order, exact for an input that is linear between its samples.

    y'' = omega_c^2 (x - y) - sqrt(2) omega_c y'          half the power at bandwidth f_c, omega_c = 2 pi f_c

With a = omega_c / sqrt(2), v = y' / a, a step of tau = a dt over which x goes from x_0 to x_0 + d, and E = exp(-tau), c
= cos(tau), s = sin(tau):

    y_1 = y_0 + A (x_0 - y_0) + E s v_0 + (1 + (E c - 1) / tau) d        A = 1 - E (c + s)
    v_1 = 2 E s (x_0 - y_0) + E (c - s) v_0 + A d / tau

This is the exact solution for any step: a constant input stays the same to the last bit. Components of the input above
half the sampling rate are aliased before the filter. At f the gain is ``1 / sqrt(1 + (f / f_c)^4)``, the phase
``-atan2(sqrt(2) f / f_c, 1 - (f / f_c)^2)``.
Source: Butterworth 1930, Experimental Wireless 7, 536-541. The step follows from y - (x - x' / a), which oscillates
freely.
"""

from __future__ import annotations

import math

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, IntArray

VALUE, SLOPE, INPUT = range(3)
"""Columns of the state of a channel: y, v, and the input at the last sample; NaN before the first."""

_SERIES_LIMIT = 0.5
_SERIES_TERMS = 22


@kernel
def compute_coefficients(tau: float) -> tuple[float, float, float, float, float]:
    """Return A, E s, E (c - s), 1 + (E c - 1) / tau and A / tau, by their series if the closed forms cancel."""
    if tau >= _SERIES_LIMIT:
        decay = math.exp(-tau)
        c, s = decay * math.cos(tau), decay * math.sin(tau)
        return 1.0 - (c + s), s, c - s, 1.0 + (c - 1.0) / tau, (1.0 - (c + s)) / tau
    real, imaginary = -tau, tau  # of ((i - 1) tau)^k / k!, whose sum over k is E (c + i s)
    reals, imaginaries = 0.0, 0.0
    for k in range(2, _SERIES_TERMS):
        real, imaginary = -tau * (real + imaginary) / k, tau * (real - imaginary) / k
        reals, imaginaries = reals + real, imaginaries + imaginary
    gain = -(reals + imaginaries)
    return gain, tau + imaginaries, 1.0 - 2.0 * tau + (reals - imaginaries), reals / tau, gain / tau


@kernel
def filter_rows(stiffness: float, index: IntArray, rate: float, last: int, state: FloatArray, rows: FloatArray) -> None:
    """Filter rows (c, n) in place; `stiffness` is a (1/s). `state` (c, 3) of tick `last` becomes that of the last row.

    A channel starts at rest at its first input, and again after an invalid input.
    """
    previous, last_gap = last, 0  # the first sample has no interval
    gain, turn, keep, rise, lift = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(index.shape[0]):
        gap, previous = index[i] - previous, index[i]
        if gap != last_gap:
            gain, turn, keep, rise, lift = compute_coefficients(stiffness * (gap / rate))
            last_gap = gap
        for c in range(rows.shape[0]):
            x, x0 = rows[c, i], state[c, INPUT]
            if x0 != x0:
                state[c, VALUE], state[c, SLOPE] = x, 0.0
            else:
                y, v, d = state[c, VALUE], state[c, SLOPE], x - x0
                state[c, VALUE] = y + ((gain * (x0 - y) + turn * v) + rise * d)
                state[c, SLOPE] = (2.0 * turn * (x0 - y) + keep * v) + lift * d
            state[c, INPUT] = x
            rows[c, i] = state[c, VALUE]


def compute_stiffness(bandwidth: float) -> float:
    """Return a (1/s) for a bandwidth (Hz)."""
    return math.sqrt(2.0) * math.pi * bandwidth


def compute_response(frequency: float, bandwidth: float) -> tuple[float, float]:
    """Return gain and phase (rad) at a frequency (Hz); bandwidth (Hz), 0 for no limit."""
    if bandwidth == 0.0:
        return 1.0, 0.0
    u = frequency / bandwidth
    return 1.0 / math.hypot(1.0, u * u), -math.atan2(math.sqrt(2.0) * u, 1.0 - u * u)
