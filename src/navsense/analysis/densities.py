"""Power spectral density of a record, by Welch's averaged periodograms; **one-sided**.

    S(f) = 2 <|sum_j w_j y_j e^(-2 pi i f j / rate)|^2> / (rate sum_j w_j^2),    0 < f < rate / 2

over segments of `length` values that overlap by `overlap` of it, y without the mean of the record, w the window. The
integral over 0 to rate / 2 is the variance. White noise of the density N, which is two-sided by this project's
convention, stands at 2 N^2 in it, and sqrt(S / 2) reads N.

Source: Welch 1967, IEEE Trans. Audio Electroacoust. 15(2), 70-73; `scipy.signal`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from navsense.errors import AnalysisError
from navsense.ticks import check_rate
from navsense.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Spectrum:
    """One-sided density (*runs, k, axis) in the unit squared per hertz, at the frequencies (k,) Hz.

    `freedom` is the number of degrees of freedom of each value: it lies within sqrt(2 / freedom) of the true one.
    """

    frequency: FloatArray
    density: FloatArray
    freedom: float

    @property
    def two_sided_root(self) -> FloatArray:
        """Return sqrt(density / 2): N where the noise is white, unit per root hertz."""
        return np.asarray(np.sqrt(0.5 * self.density))


def welch(
    values: ArrayLike, rate: float, length: int | None = None, *, window: str = "hann", overlap: float = 0.5
) -> Spectrum:
    """Return the one-sided density of values (n,) or (*runs, n, axis) at `rate` (Hz).

    length is of a segment (None: an eighth of the record, a power of two), `window` a name that `scipy.signal` knows,
    overlap from 0 to below 1. The ends, 0 Hz and rate / 2, have half the density by definition and are left out.
    Raises `AnalysisError`.
    """
    from scipy.signal import get_window, welch

    given = np.asarray(values, dtype=np.float64)
    along = 0 if given.ndim == 1 else given.ndim - 2
    if not given.ndim or not np.isfinite(given).all():
        raise AnalysisError("values", f"shape {given.shape}", allowed="must be (n,) finite numbers")
    count = given.shape[along]
    segment = length or 1 << max(3, int(math.log2(max(count / 8.0, 1.0))))
    if not 8 <= segment <= count:
        raise AnalysisError("length", segment, allowed=f"must be from 8 to {count}, the record's own")
    if not 0.0 <= overlap < 1.0:
        raise AnalysisError("overlap", overlap, allowed="must be from 0 to below 1")
    shared = int(overlap * segment)
    # The mean of each segment, taken out instead, would take part of the lowest frequency with it.
    rest = given - given.mean(axis=along, keepdims=True)
    frequency, density = welch(
        rest, check_rate(rate), window=window, nperseg=segment, noverlap=shared, detrend=False, axis=along
    )
    segments = (count - shared) // (segment - shared)
    inner = slice(1, (segment + 1) // 2)
    kept = np.moveaxis(np.moveaxis(density, along, 0)[inner], 0, along)
    return Spectrum(frequency[inner], kept, _freedom(get_window(window, segment), segment - shared, segments))


def _freedom(window: FloatArray, step: int, segments: int) -> float:
    """Return the degrees of freedom of a mean over segments `step` apart: Welch's equation for overlapping ones."""
    total, power = float(segments), float(np.sum(window**2))
    for apart in range(1, min(segments - 1, (window.size - 1) // step) + 1):
        common = float(np.sum(window[apart * step :] * window[: window.size - apart * step])) / power
        total += 2.0 * (segments - apart) * common**2
    return 2.0 * segments**2 / total
