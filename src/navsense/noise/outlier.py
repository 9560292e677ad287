"""Outliers: now and then one sample is off, by much more than its noise.

    y = size w  where u < probability, else 0

u is a uniform on [0, 1) and w a standard normal, both drawn for every sample, so that the draws of a tick are a fixed
number. `size` is the deviation of the outliers, in the channel's unit.
"""

from __future__ import annotations

from navsense.kernels import kernel


@kernel
def outlier(probability: float, size: float, u: float, w: float) -> float:
    """Return what an outlier adds to one sample: 0 in most."""
    return size * w if u < probability else 0.0
