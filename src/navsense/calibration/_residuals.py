"""Residuals of some thousand readings with known attitude: what their shape, their place and their direction give away.

    r = (m - b - A u) / scale      u = R_ws^-1 f      cov(r) = N + s^2 S (1 - u u') S'

in fractions of the field. N is the magnetometer's noise, s (rad) the deviation of attitude errors about each axis,
from reading to reading anew: these turn the field, so that they show across it and never along it. s^2 is the slope of
the products r_a r_b on the entries of S (1 - u u') S', whatever N, which is alike for all u.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from navsense.calibration._attitude_fit import AttitudeFit, SecondMoments, noise_covariance
from navsense.calibration._gram_sums import attitude_rows
from navsense.calibration.checks import Subsample
from navsense.calibration.verdict import ROUNDING_VARIANCE, direction_dependence_reasons, distribution_reasons
from navsense.typing import FloatArray, Vectors

SIGNIFICANCE: Final = 5.0
"""Deviations of the slope from which attitude errors are seen: 3e-7 of false alarm were it normal."""

PAIRS: Final = ((0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2))
"""Rows and columns of the products."""


class Residuals(NamedTuple):
    """Residuals (n, 3) of the field's strength, their squares q (n,) over their variance, u (n, 3) and S (3, 3).

    `stddev` is that of an axis in the unit of the readings; `noisy` False: they are rounding.
    """

    rows: Vectors
    squares: FloatArray
    seen: Vectors
    iron: FloatArray
    stddev: float
    noisy: bool

    @classmethod
    def from_fit(
        cls, kept: Subsample, turns: Subsample, first: FloatArray, sums: SecondMoments, fit: AttitudeFit
    ) -> Residuals:
        """Return those of the readings kept with their attitudes; `first` is what `Sums` are about."""
        z = attitude_rows(turns.rows)
        rows = (kept.rows - first) / sums.size - z @ fit.theta.T
        noise = noise_covariance(sums, fit)
        squares = 3.0 * np.sum(rows**2, axis=1) / float(np.trace(noise))
        seen = np.einsum("nkj,k->nj", z[:, :9].reshape(-1, 3, 3), fit.direction)
        noisy = float(np.trace(noise)) > ROUNDING_VARIANCE * float(np.trace(sums.square))
        stddev = sums.size * math.sqrt(float(np.trace(noise)) / 3.0)
        return cls(rows / fit.scale, squares, seen, fit.iron / fit.scale, stddev, noisy)

    def attitude_stddev(self, inflation: float) -> float:
        """Return the deviation s (rad) of the attitude's errors that is seen, 0 where none is."""
        one = PAIRS
        across = self.iron @ self.iron.T - np.einsum("ni,nj->nij", self.seen @ self.iron.T, self.seen @ self.iron.T)
        slopes, products = across[:, one[0], one[1]], self.rows[:, one[0]] * self.rows[:, one[1]]
        slopes, products = slopes - slopes.mean(axis=0), products - products.mean(axis=0)
        weight = float(np.sum(slopes**2))
        if not (self.noisy and weight > 0.0):
            return 0.0
        square = float(np.sum(slopes * products)) / weight
        deviation = math.sqrt(float(np.sum(np.sum(slopes * (products - square * slopes), axis=1) ** 2))) / weight
        return math.sqrt(square) if square > SIGNIFICANCE * math.sqrt(inflation) * deviation else 0.0

    def distribution_reasons(self, kept: Subsample) -> tuple[str, ...]:
        """Return what the shape of the residuals says against the readings kept."""
        return distribution_reasons(self.squares, 3, kept, self.stddev) if self.noisy else ()

    def direction_reasons(self, inflation: float) -> tuple[str, ...]:
        """Return what their dependence on the place says against a calibration."""
        if not self.noisy:
            return ()
        return direction_dependence_reasons(
            np.sum(self.seen * np.linalg.solve(self.iron, self.rows.T).T, axis=1), self.seen, inflation
        )
