"""Quantisation: the nearest multiple of the precision, halves away from zero, however small the precision.

    y = precision * sign(x) * floor(|x / precision| + 1/2)

The half is compared after the fraction is taken, which is exact, so 0.49999999999999994 is not rounded up. Where
|x / precision| is 2^52 or more, a double has no finer digits than the precision and x stays as it is.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.kernels import kernel

_EXACT_LIMIT = 4503599627370496.0


@kernel
def quantise(x: float, precision: float) -> float:
    """Return x rounded to `precision` (same unit, > 0)."""
    steps = abs(x / precision)
    coarse = steps if steps < _EXACT_LIMIT else 0.0
    whole = np.floor(coarse)  # stays a float, so that a loop over it is done several values at a time
    whole = whole + 1.0 if coarse - whole >= 0.5 else whole
    return math.copysign(whole * precision, x) if steps < _EXACT_LIMIT else x
