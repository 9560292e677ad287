"""Random walk: white noise summed, as the rate random walk of an Allan plot has it, from zero at the start.

    b_k = b_(k-1) + K sqrt(dt) v_k,   b_0 = 0

K is in the channel's unit per root second; the variance grows as K^2 t. Source: IEEE 952-1997, annex C.
"""

from __future__ import annotations

import math

from navsense.kernels import kernel


@kernel
def random_walk_stddev(dt: float, density: float) -> float:
    """Return K sqrt(dt), the deviation that a step dt (s) adds."""
    return density * math.sqrt(dt)


@kernel
def random_walk_step(b: float, q: float, v: float) -> float:
    """Return the next value."""
    return b + q * v
