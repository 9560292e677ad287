"""Flicker noise: a sum of Gauss-Markov processes with time constants in equal ratios, exact for any step.

    b(t) = sum_j g_j(t)          g_j Gauss-Markov of time constant tau_j and stationary deviation s_j, independent
    tau_j = tau_0 r^j            j = 0 ... m - 1, r at most 10
    s_j^2 = B^2 ln(r) / pi       the first and the last times r / (r - 1)

`B` is the instability, in the channel's unit: power spectral density ``B^2 / (2 pi f)``, two-sided, and an Allan
deviation that is flat at ``sqrt(2 ln 2 / pi) B = 0.664 B``. Equal shares of ln tau add up to that density, since the
integral of ``2 tau / (1 + (omega tau)^2)`` over ln tau is ``pi / omega``. Processes beyond the ends are not simulated;
the first stands for all faster ones, which on its right add up like their time constants, the last for all slower ones,
which on its left add up like their inverses: geometric series both, hence r / (r - 1).

The floor is met within 2 percent at averaging times from `shortest` to `longest` (s), for which `components` places
the time constants; beyond them the Allan deviation falls. The sum is stationary from the first sample: it starts from
m standard normals and takes m for each sample.

Source: IEEE Std 952-1997, annex C, for B and the spectral density; Zucca and Tavella 2005, IEEE UFFC 52(2) 289-296,
for why no process of finite order is flicker noise. How flat the sum is follows from the Gauss-Markov process's closed
Allan variance, which the tests evaluate.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.errors import SensorError
from navsense.kernels import kernel
from navsense.noise.gauss_markov import decay_factor, gauss_markov_step
from navsense.typing import FloatArray

MAX_RATIO = 10.0
"""Largest ratio of neighbouring time constants: one a decade ripples by one percent."""

MARGIN_BELOW, MARGIN_ABOVE = 4.5, 1.75
"""How far the time constants reach beyond the band of averaging times, so that its ends are within 2 percent."""

MIN_BAND_RATIO = 4.0
"""Ratio of the ends of a band from which on the floor is met within 2 percent."""


def place_time_constants(shortest: float, longest: float) -> FloatArray:
    """Return the time constants (m,) s for a floor from averaging time `shortest` to `longest` (s).

    Raises `SensorError` for a band narrower than a factor of 4.
    """
    if not 0.0 < MIN_BAND_RATIO * shortest <= longest < math.inf:
        allowed = f"must be positive, the longest at least {MIN_BAND_RATIO:g} times the shortest"
        raise SensorError("band of flicker noise (s)", (shortest, longest), allowed=allowed)
    first, last = shortest / MARGIN_BELOW, longest * MARGIN_ABOVE
    span = math.log(last / first)
    count = 1 + math.ceil(span / math.log(MAX_RATIO))
    return np.array([first * math.exp(span * j / (count - 1)) for j in range(count)])


def make_components(instability: float, shortest: float, longest: float) -> tuple[FloatArray, FloatArray]:
    """Return time constants (m,) s and stationary deviations (m,) of the processes; `instability` in their unit."""
    tau = place_time_constants(shortest, longest)
    ratio = float(tau[1] / tau[0])
    deviation = np.full(tau.size, instability * math.sqrt(math.log(ratio) / math.pi))
    deviation[[0, -1]] *= math.sqrt(ratio / (ratio - 1.0))
    return tau, deviation


@kernel
def write_coefficients(dt: float, tau: FloatArray, deviation: FloatArray, phi: FloatArray, q: FloatArray) -> None:
    """Write what a step dt (s) keeps of each process, phi (m,), and the deviation that it adds, q (m,)."""
    for j in range(tau.shape[0]):
        phi[j] = decay_factor(dt, tau[j])
        q[j] = deviation[j] * math.sqrt(-math.expm1(-2.0 * dt / tau[j]))


@kernel
def add_flicker(phi: FloatArray, q: FloatArray, draws: FloatArray, state: FloatArray, out: FloatArray) -> None:
    """Add the sum of the processes to out (n,), one step a sample; draws (m, n), state (m,) is left at the last."""
    for i in range(out.shape[0]):
        total = 0.0
        for j in range(state.shape[0]):
            state[j] = gauss_markov_step(state[j], phi[j], q[j], draws[j, i])
            total += state[j]
        out[i] += total
