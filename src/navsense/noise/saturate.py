"""Saturation: the output stops at the ends of the range, before it is rounded."""

from __future__ import annotations

from navsense.kernels import kernel


@kernel
def saturate(x: float, minimum: float, maximum: float) -> float:
    """Return x clipped to [minimum, maximum]; NaN stays NaN."""
    x = minimum if x < minimum else x  # noqa: FURB136 - max() would lose NaN
    return maximum if x > maximum else x  # noqa: FURB136 - min() would lose NaN
