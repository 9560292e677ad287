"""One-sided power spectral density of a record by Welch's averaged periodograms.

    S(f) = 2 <|sum_j w_j y_j e^(-2 pi i f j / rate)|^2> / (rate sum_j w_j^2),    0 < f < rate / 2

over segments of `length` values with the share `overlap` in common. y is the record minus its mean, w the window. The
integral over 0 to rate / 2 is the variance. White noise with the two-sided density N has S = 2 N^2, so N = sqrt(S / 2).

Source: Welch 1967, IEEE Trans. Audio Electroacoust. 15(2), 70-73; `scipy.signal`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.errors import AnalysisError
from navsense.core.ticks import check_rate
from navsense.core.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Spectrum:
    """One-sided density of a record.

    frequency: (k,) Hz
    density: (*runs, k, axis) in the unit squared per hertz
    dof: degrees of freedom of each value; its relative standard error is sqrt(2 / dof)

    >>> white = np.random.default_rng(1).standard_normal(20000)
    >>> spectrum = ns.analysis.densities.welch(white, rate=100.0)
    >>> round(float(spectrum.density.mean()), 2)  # 2 / 100 Hz
    0.02
    """

    frequency: FloatArray
    density: FloatArray
    dof: float


def welch(
    values: ArrayLike, rate: float, length: int | None = None, *, window: str = "hann", overlap: float = 0.5
) -> Spectrum:
    """Return the one-sided density of values (n,) or (*runs, n, axis) at `rate` (Hz).

    length: of a segment; by default an eighth of the record, rounded down to a power of two
    window: a name that `scipy.signal` knows
    overlap: from 0 to below 1

    The ends, 0 Hz and rate / 2, have half the density by definition and are left out. Raises `AnalysisError`.

    >>> spectrum = ns.analysis.densities.welch(run["imu"]["linear_acceleration"], rate=1000.0)
    >>> spectrum.density.shape  # frequencies, axes
    (31, 3)
    """
    from scipy.signal import get_window, welch

    array = np.asarray(values, dtype=np.float64)
    time_axis = 0 if array.ndim == 1 else array.ndim - 2
    if not array.ndim or not np.isfinite(array).all():
        raise AnalysisError("values", f"shape {array.shape}", allowed="must be (n,) finite numbers")
    count = array.shape[time_axis]
    segment = length or 1 << max(3, int(math.log2(max(count / 8.0, 1.0))))
    if not 8 <= segment <= count:
        raise AnalysisError("length", segment, allowed=f"must be from 8 to {count}, the record's own")
    if not 0.0 <= overlap < 1.0:
        raise AnalysisError("overlap", overlap, allowed="must be from 0 to below 1")
    shared = int(overlap * segment)
    # Removing the mean of each segment would remove a part of the lowest frequency.
    series = array - array.mean(axis=time_axis, keepdims=True)
    frequency, density = welch(
        series, check_rate(rate), window=window, nperseg=segment, noverlap=shared, detrend=False, axis=time_axis
    )
    segments = (count - shared) // (segment - shared)
    bins = slice(1, (segment + 1) // 2)
    inner_density = np.moveaxis(np.moveaxis(density, time_axis, 0)[bins], 0, time_axis)
    dof = _compute_degrees_of_freedom(get_window(window, segment), segment - shared, segments)
    return Spectrum(frequency[bins], inner_density, dof)


def _compute_degrees_of_freedom(window: FloatArray, step: int, segments: int) -> float:
    """Return the degrees of freedom of a mean over overlapping segments `step` apart (Welch)."""
    total, power = float(segments), float(np.sum(window**2))
    for offset in range(1, min(segments - 1, (window.size - 1) // step) + 1):
        correlation = float(np.sum(window[offset * step :] * window[: window.size - offset * step])) / power
        total += 2.0 * (segments - offset) * correlation**2
    return 2.0 * segments**2 / total
