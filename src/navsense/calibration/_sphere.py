"""What soft iron that a sphere leaves out would do to it, as far as the motion cannot exclude it.

    x = (b, scale) is fitted, y = 0 is not: A = scale + Y,  Y symmetric without trace, five numbers, lengths kept
    y ~ N(0, (t scale)^2),  t = `PLAUSIBLE`        x_found - x = M_xx^-1 M_xy y
    cov(y | readings) = P = s (M_c + s / (t scale)^2)^-1,  mean y^ = -P g / s,    M_c = M_yy - M_yx M_xx^-1 M_xy

M, s and the score g of y are those of `_ellipsoid_fit`. A motion that shows all of the sphere gives M_xy = 0; one about a
vertical axis shifts and swells the sphere with iron that the residuals do not show. The mean square of the error that
is left, M_xx^-1 M_xy (P + y^ y^') M_yx M_xx^-1, is never above what the fit with soft iron has for the same readings.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from navsense.calibration import _ellipsoid_diagnosis
from navsense.calibration._ellipsoid_distance import PARAMETERS
from navsense.calibration._ellipsoid_fit import ELLIPSOIDS, EllipsoidFit
from navsense.calibration._power_sums import ReadingSpread
from navsense.calibration.verdict import FALSE_ALARM, REFUSE_ABOVE, WARN_ABOVE
from navsense.typing import FloatArray

TYPICAL_SOFT_IRON: Final = 0.02
"""Deviation of each number of a soft iron that a sensor may have though it is said to have none."""

ROUNDS: Final = 20

CONVERGED: Final = 0.99
"""Part of the noise's variance, against the round before, that ends the search for what iron explains."""

TRACELESS: FloatArray = np.zeros((PARAMETERS, 5))
"""Columns: theta of symmetric matrices without trace, of length 1 and at right angles."""
TRACELESS[[3, 6, 8], 0] = np.array([1.0, -1.0, 0.0]) / math.sqrt(2.0)
TRACELESS[[3, 6, 8], 1] = np.array([1.0, 1.0, -2.0]) / math.sqrt(6.0)
TRACELESS[[4, 5, 7], [2, 3, 4]] = math.sqrt(0.5)


class NeglectedSoftIron(NamedTuple):
    """Soft iron left out: its likely size, whether it is seen, and what it does to bias and scale, of the strength.

    `shift` (4,) is their likely error by it, `unseen` (4, 4) the covariance of their error beside that.
    """

    size: float
    seen: bool
    shift: FloatArray
    unseen: FloatArray

    @property
    def error(self) -> float:
        """Return the rms of the largest combination of errors."""
        return _largest_stddev(self.unseen + np.outer(self.shift, self.shift))

    @property
    def hidden_error(self) -> float:
        """Return the same of what is not seen."""
        return _largest_stddev(self.unseen)


class _SoftIronInformation(NamedTuple):
    """What the readings say of y: M_c as eigenvalues (5,) and axes (5, 5), in these g (5,) and M_xx^-1 M_xy (p, 5)."""

    told: FloatArray
    axes: FloatArray
    score: FloatArray
    gain: FloatArray

    def estimate(self, noise: float, size: float) -> tuple[FloatArray, FloatArray]:
        """Return mean y^ (5,) and variances (5,) at the noise's variance; `size` is t scale."""
        held = np.maximum(self.told, 0.0) * size**2 + noise
        return -self.score * size**2 / held, noise * size**2 / held


def _soft_iron_information(fit: EllipsoidFit) -> _SoftIronInformation:
    """Return what the readings of a sphere say of soft iron."""
    total = fit.sums.total
    motion = total[:PARAMETERS, :PARAMETERS] - fit.variance * fit.sums.noisy
    score = TRACELESS.T @ (total[:PARAMETERS, 9] - fit.variance * total[:PARAMETERS, 10])
    gain = np.linalg.solve(fit.basis.T @ motion @ fit.basis, fit.basis.T @ motion @ TRACELESS)
    told, axes = np.linalg.eigh(TRACELESS.T @ motion @ (TRACELESS - fit.basis @ gain))
    return _SoftIronInformation(told, axes, axes.T @ score, gain @ axes)


def estimate_neglected_soft_iron(fit: EllipsoidFit) -> NeglectedSoftIron:
    """Return what the soft iron is that a sphere leaves out, of readings with noise and a motion that tells a sphere.

    The noise is that of the residuals that the iron does not explain, and what they hang together counts as noise.
    """
    from scipy.special import chdtri

    iron, size = _soft_iron_information(fit), TYPICAL_SOFT_IRON * fit.strength
    variance, white = fit.variance, fit.whiteness
    for _ in range(ROUNDS):
        found, _ = iron.estimate(variance, size)
        left, white = fit.residuals(TRACELESS @ iron.axes @ found - fit.basis @ (iron.gain @ found))
        if not left < CONVERGED * variance:
            break
        variance = left
    noise = variance * white.inflation
    found, spread = iron.estimate(noise, size)
    gain = iron.gain / fit.strength
    return NeglectedSoftIron(
        size=float(np.linalg.norm(found)) / fit.strength,
        seen=-float(iron.score @ found) > noise * float(chdtri(found.size, FALSE_ALARM)),
        shift=gain @ found,
        unseen=(gain * spread) @ gain.T,
    )


def _largest_stddev(square: FloatArray) -> float:
    """Return the root of the largest eigenvalue."""
    return math.sqrt(max(float(np.linalg.eigvalsh(square)[-1]), 0.0))


def soft_iron_reasons(fit: EllipsoidFit, spread: ReadingSpread) -> tuple[str, ...]:
    """Return the reason that soft iron is which a sphere leaves out, none where the sphere hardly feels it.

    Raises `CalibrationError` where the motion leaves the sphere to what soft iron there is.
    """
    found = estimate_neglected_soft_iron(fit)
    if found.is_detected and max(found.size, found.error) >= WARN_ABOVE:
        reason = (
            f"soft iron of some {100.0 * found.size:.2g} % is seen, which makes scale and bias wrong by some"
            f" {100.0 * found.error:.2g} %: calibrate with soft iron"
        )
        return (reason,)
    if found.error < WARN_ABOVE:
        return ()
    missing = _ellipsoid_diagnosis.find_missing_motion(replace(fit, basis=ELLIPSOIDS), spread, WARN_ABOVE)
    if found.hidden_error > REFUSE_ABOVE:
        raise _ellipsoid_diagnosis.missing_motion_error(missing)
    reason = (
        f"{missing.motion}: soft iron of {100.0 * TYPICAL_SOFT_IRON:g} %, which that does not exclude, would make scale and"
        f" bias wrong by {100.0 * found.error:.2g} %; {missing.remedy}, and calibrate with soft iron"
    )
    return (reason,)
