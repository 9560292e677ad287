"""White noise: ``mean + stddev w``, w a standard normal; `stddev` is per sample, in the channel's unit."""

from __future__ import annotations

from navsense.compiled import kernel


@kernel
def white(mean: float, stddev: float, w: float) -> float:
    """Return one value of white noise."""
    return mean + stddev * w
