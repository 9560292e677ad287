"""White noise: ``mean + sigma w``, w a standard normal.

    sigma^2 = stddev^2 + density^2 / dt

`stddev` is of each sample, whatever the rate; `density` N (unit per root hertz, two-sided, see docs/conventions.md) is of a
sensor that is band-limited to its own rate, so its samples spread the more the closer they stand.
Source: IEEE 952-1997, annex C; the Kalibr manual.
"""

from __future__ import annotations

import math

from navsense.kernels import kernel


@kernel
def white_noise(mean: float, sigma: float, w: float) -> float:
    """Return one value of white noise."""
    return mean + sigma * w


@kernel
def white_stddev(dt: float, stddev: float, density: float) -> float:
    """Return sigma of samples dt (s) apart."""
    return stddev if density == 0.0 else math.sqrt(stddev * stddev + density * density / dt)
