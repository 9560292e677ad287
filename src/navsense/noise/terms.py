"""The terms of the noise model: one formula each, with w, v, u standard normals unless stated.

    white noise     mean + sigma w                  sigma^2 = stddev^2 + density^2 / dt
    turn-on bias    mean + stddev u                 drawn once per run
    Gauss-Markov    b_k = phi b_(k-1) + q v_k       phi = exp(-dt / tau)
                                                    q = d sqrt(tau / 2) sqrt(1 - exp(-2 dt / tau))
    random walk     b_k = b_(k-1) + K sqrt(dt) v_k  b_0 = 0, variance K^2 t
    flicker         b(t) = sum_j g_j(t)             Gauss-Markov processes g_j, see below
    outlier         stddev w where u < probability, else 0                             u uniform on [0, 1)
    saturation      min(max(x, minimum), maximum)
    quantisation    precision sign(x) floor(|x / precision| + 1/2)

White noise: `stddev` applies to each sample at any rate. `density` is two-sided (unit per root hertz, see
docs/reference/conventions.md), for a sensor that is band-limited to its own rate. Source: IEEE 952-1997, annex C; the
Kalibr manual.

Gauss-Markov: d is the driving density (unit per root second). The stationary standard deviation is
``d sqrt(tau / 2)``. The step is exact for any dt. `expm1` keeps all digits of a short step, for example a
microsecond with a correlation time of an hour. Source: Maybeck 1979, Stochastic Models, Estimation and Control 1,
eq. 4-114; Gazebo's dynamic bias.

Random walk: K is in the channel's unit per root second (rate random walk of an Allan plot). Source: IEEE 952-1997,
annex C.

Flicker noise is a sum of independent Gauss-Markov processes with time constants in equal ratios::

    tau_j = tau_0 r^j            j = 0 ... m - 1, r at most 10
    s_j^2 = B^2 ln(r) / pi       stationary variance; the first and the last times r / (r - 1)

B is the bias instability in the channel's unit. The two-sided power spectral density is ``B^2 / (2 pi f)``. The Allan
deviation is flat at ``sqrt(2 ln 2 / pi) B = 0.664 B``. Processes at equal steps of ln tau add up to this density,
because the integral of ``2 tau / (1 + (omega tau)^2)`` over ln tau is ``pi / omega``. The first process also replaces
all faster processes, and the last one all slower processes. Each of these sums is a geometric series, hence the factor
r / (r - 1).

The floor is within 2 percent for averaging times from `shortest` to `longest` (s). Outside this band the Allan
deviation falls. The sum is stationary from the first sample: it takes m standard normals at the start and m per sample.
Source: IEEE Std 952-1997, annex C, for B and the density; Zucca and Tavella 2005, IEEE UFFC 52(2) 289-296, for why no
process of finite order is flicker noise. The tests evaluate the flatness from the closed Allan variance of the
Gauss-Markov process.

Quantisation rounds to the nearest multiple, halves away from zero. The half is compared after the fraction is taken,
which is exact: 0.49999999999999994 is not rounded up. If |x / precision| is 2^52 or more, x is returned unchanged,
because a double then has no digits below the precision.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray

MAX_RATIO = 10.0
"""Largest ratio of neighbouring time constants of flicker noise. One per decade ripples by one percent."""

MARGIN_BELOW, MARGIN_ABOVE = 4.5, 1.75
"""Factors by which the time constants of flicker noise extend the band, so that its ends are within 2 percent."""

MIN_BAND_RATIO = 4.0
"""Smallest ratio of the ends of a flicker band for which the floor is within 2 percent."""

_EXACT_LIMIT = 4503599627370496.0


@kernel
def white_noise(mean: float, sigma: float, w: float) -> float:
    """Return one value of white noise."""
    return mean + sigma * w


@kernel
def compute_white_stddev(dt: float, stddev: float, density: float) -> float:
    """Return sigma, the standard deviation of the white noise of samples dt (s) apart."""
    return stddev if density == 0.0 else math.sqrt(stddev * stddev + density * density / dt)


def compute_turn_on_bias(mean: float, stddev: float, u: float) -> float:
    """Return the turn-on bias in the channel's unit."""
    return mean + stddev * u


def randomise_sign(value: float, uniform: float) -> float:
    """Return the value with Gazebo's random sign: negative if a uniform on [0, 1) is below one half."""
    return -value if uniform < 0.5 else value


@kernel
def stationary_stddev(driving_density: float, tau: float) -> float:
    """Return the stationary deviation of a Gauss-Markov process with correlation time tau (s)."""
    return driving_density * math.sqrt(0.5 * tau)


@kernel
def decay_factor(dt: float, tau: float) -> float:
    """Return phi for a step dt (s)."""
    return math.exp(-dt / tau)


@kernel
def gauss_markov_stddev(dt: float, driving_density: float, tau: float) -> float:
    """Return q, the standard deviation that a step dt (s) adds to a Gauss-Markov process."""
    return driving_density * math.sqrt(-0.5 * tau * math.expm1(-2.0 * dt / tau))


@kernel
def gauss_markov_step(b: float, phi: float, q: float, v: float) -> float:
    """Return the next value of a Gauss-Markov process."""
    return phi * b + q * v


@kernel
def random_walk_stddev(dt: float, density: float) -> float:
    """Return K sqrt(dt), the standard deviation that a step dt (s) adds to a random walk."""
    return density * math.sqrt(dt)


@kernel
def random_walk_step(b: float, q: float, v: float) -> float:
    """Return the next value of a random walk."""
    return b + q * v


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


def make_flicker_components(instability: float, shortest: float, longest: float) -> tuple[FloatArray, FloatArray]:
    """Return time constants (m,) s and stationary deviations (m,) of flicker noise, in the unit of `instability`."""
    tau = place_time_constants(shortest, longest)
    ratio = float(tau[1] / tau[0])
    deviation = np.full(tau.size, instability * math.sqrt(math.log(ratio) / math.pi))
    deviation[[0, -1]] *= math.sqrt(ratio / (ratio - 1.0))
    return tau, deviation


@kernel
def write_coefficients(dt: float, tau: FloatArray, deviation: FloatArray, phi: FloatArray, q: FloatArray) -> None:
    """Write phi (m,) and q (m,) of each process of flicker noise for a step dt (s)."""
    for j in range(tau.shape[0]):
        phi[j] = decay_factor(dt, tau[j])
        q[j] = deviation[j] * math.sqrt(-math.expm1(-2.0 * dt / tau[j]))


@kernel
def add_flicker(phi: FloatArray, q: FloatArray, draws: FloatArray, state: FloatArray, out: FloatArray) -> None:
    """Add the sum of the processes to out (n,), one step per sample; draws (m, n); `state` (m,) is updated."""
    for i in range(out.shape[0]):
        total = 0.0
        for j in range(state.shape[0]):
            state[j] = gauss_markov_step(state[j], phi[j], q[j], draws[j, i])
            total += state[j]
        out[i] += total


@kernel
def outlier(probability: float, stddev: float, u: float, w: float) -> float:
    """Return the outlier that is added to one sample: 0 for most samples.

    u and w are drawn for every sample, so the number of draws per tick is constant.
    """
    return stddev * w if u < probability else 0.0


@kernel
def saturate(x: float, minimum: float, maximum: float) -> float:
    """Return x clipped to [minimum, maximum]; NaN stays NaN."""
    x = minimum if x < minimum else x  # noqa: FURB136 - max() would lose NaN
    return maximum if x > maximum else x  # noqa: FURB136 - min() would lose NaN


@kernel
def quantise(x: float, precision: float) -> float:
    """Return x rounded to `precision` (same unit, > 0)."""
    steps = abs(x / precision)
    coarse = steps if steps < _EXACT_LIMIT else 0.0
    multiple = np.floor(coarse)  # a float, so that the compiler vectorises loops over this function
    multiple = multiple + 1.0 if coarse - multiple >= 0.5 else multiple
    return math.copysign(multiple * precision, x) if steps < _EXACT_LIMIT else x
