"""Saturation: the output stops at the ends of the range, before it is rounded."""

from __future__ import annotations

from navsense.compiled import kernel


@kernel
def saturate(x: float, minimum: float, maximum: float) -> float:
    """Return x clipped to [minimum, maximum]; NaN stays NaN."""
    if x < minimum:
        return minimum
    if x > maximum:
        return maximum
    return x
