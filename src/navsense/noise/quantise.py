"""Quantisation: the nearest multiple of the precision, halves away from zero, however small the precision.

    y = precision * sign(x) * floor(|x / precision| + 1/2)

The half is compared after the fraction is taken, which is exact, so 0.49999999999999994 is not rounded up. Where
|x / precision| is 2^52 or more, a double has no finer digits than the precision and x stays as it is.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.compiled import kernel
from navsense.typing import FloatArray

_WHOLE = 4503599627370496.0


@kernel
def quantise(x: float, precision: float) -> float:
    """Return x rounded to `precision` (same unit, > 0)."""
    steps = abs(x / precision)
    coarse = steps if steps < _WHOLE else 0.0
    whole = np.floor(coarse)  # stays a float, so that a loop over it is done several values at a time
    whole = whole + 1.0 if coarse - whole >= 0.5 else whole
    return math.copysign(whole * precision, x) if steps < _WHOLE else x


_DOUBT = 1e-15
"""More than what x * (1 / precision) can be off x / precision, as a share of it (3.4e-16)."""


@kernel
def quantised_quickly(values: FloatArray, precision: float) -> bool:
    """Round values (n,) in place by a product instead of a quotient, in half the time; return whether all hold.

    They do, to the last bit, unless the product of one is so close to a half (or not finite) that the quotient could be
    on its other side: then the caller has to start anew with `quantise`.
    """
    inverse, doubtful = 1.0 / precision, 0
    for i in range(values.shape[0]):
        steps = abs(values[i] * inverse)
        whole = np.floor(steps)
        rest = steps - whole
        doubtful += 0 if abs(rest - 0.5) > _DOUBT * steps else 1
        whole = whole + 1.0 if rest > 0.5 else whole
        values[i] = math.copysign(whole * precision, values[i])
    return doubtful == 0
